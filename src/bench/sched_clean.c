/*
 * sched_clean.c - a Postmark-like load on a file system that has been in use:
 * without cleaning (move/move.h), with it beside the load, and with cleaning
 * that costs no time, the ideal (Lumb et al., OSDI 2000, 5).
 *
 * Files are written (used_fs.h), then half of them are deleted and others
 * written, five times, so that what is free lies in pieces.  A day later
 * transactions begin.  Files and transactions are the same however full it is.
 */
#include <stdio.h>

#include "base/units.h"
#include "bench/sched.h"
#include "bench/used_fs.h"

#define ROUNDS 6u
#define TRANSACTIONS 6000u
/* Of the files that transactions make one in so many is large: whole tracks
 * are wanted where small files were. */
#define LOAD_LARGE_SHARE 8u
/* Transactions between two pauses that do not count, in which ideal cleaning is
 * done, and how long it may take. */
#define PAUSE_EVERY 500u
#define IDEAL_NS (UINT64_C(3600) * NS_PER_SECOND)
#define DAY_NS (UINT64_C(86400) * NS_PER_SECOND)
#define PAUSE_NS (UINT64_C(700) * NS_PER_SECOND)

enum clean_way { CLEAN_NEVER, CLEAN_BESIDE, CLEAN_IDEAL };

struct clean_row {
	double per_second;
	double large_kib;	/* of an extent of a large file */
	struct moves_status moved;
};

static int make_used(struct used *u)
{
	uint32_t left;
	int err = 0;

	for (unsigned round = 0; round < ROUNDS && !err; round++) {
		err = used_fill(u);
		left = round + 1 < ROUNDS ? u->files / 2 : 0;
		for (; left && !err; left--)
			err = used_file_delete(u, used_any(u));
	}
	sim_advance(u->rig.sim, DAY_NS);
	return err;
}

/* A pause, in which ideal cleaning goes on until nothing is left to clean. */
static void pause_load(struct used *u, enum clean_way way)
{
	uint64_t now_ns = sim_now_ns(u->rig.sim);
	uint64_t quiet_ns = now_ns + PAUSE_NS, end_ns = quiet_ns + IDEAL_NS;

	if (u->moves) {
		moves_pause(u->moves, way != CLEAN_IDEAL);
		moves_order_pause(u->moves, way != CLEAN_IDEAL);
	}
	do {
		used_turn(u, false);
		now_ns = sim_now_ns(u->rig.sim);
	} while (now_ns < quiet_ns ||
		 (way == CLEAN_IDEAL && now_ns < end_ns &&
		  u->moves_ns < now_ns + 60 * NS_PER_SECOND));
	if (u->moves)
		moves_pause(u->moves, way != CLEAN_BESIDE);
}

static int load_run(struct used *u, const struct sched_options *options,
		    enum clean_way way, struct clean_row *row)
{
	unsigned n = TRANSACTIONS / (options->quick ? 6 : 1);
	uint64_t begin_ns = sim_now_ns(u->rig.sim), pause_ns;
	int err = 0;

	if (options->requests)
		n = (unsigned)options->requests;
	u->counts = true;
	u->large_share = LOAD_LARGE_SHARE;
	for (unsigned i = 0; i < n && !err; i++) {
		if (i % PAUSE_EVERY == 0) {
			pause_ns = sim_now_ns(u->rig.sim);
			pause_load(u, way);
			begin_ns += sim_now_ns(u->rig.sim) - pause_ns;
		}
		err = used_transaction(u);
	}
	if (!err)
		err = used_sync(u);
	row->per_second = n * 1e9 /
			  (double)(sim_now_ns(u->rig.sim) - begin_ns);
	row->large_kib = (double)u->large_bytes / 1024 /
			 (double)(u->large_extents ? u->large_extents : 1);
	return err;
}

static int measure(const struct sched_options *options, unsigned percent,
		   enum clean_way way, struct clean_row *row)
{
	struct used u;
	int err = used_open(options, percent, &u);

	*row = (struct clean_row){ 0 };
	if (!err)
		err = make_used(&u);
	if (!err && way != CLEAN_NEVER)
		err = moves_open(u.fs, &u.moves);
	if (!err)
		err = load_run(&u, options, way, row);
	if (u.moves)
		moves_get_status(u.moves, &row->moved);
	used_close(&u);
	return err;
}

int sched_clean(const struct sched_options *options)
{
	/* With the nodes of the tree 85 are 92, and 93 have no room. */
	static const unsigned full[] = { 60, 85 };
	static const char *const ways[] = {
		[CLEAN_NEVER] = "no cleaning", [CLEAN_BESIDE] = "cleaning",
		[CLEAN_IDEAL] = "ideal cleaning",
	};
	struct clean_row row;
	int err = 0;

	printf("transactions/s, and what moved meanwhile\n"
	       "full                    trans/s  KiB/extent   tracks    begun"
	       " moved MB stale MB\n");
	for (unsigned i = 0; i < 2 && !err; i++)
		for (unsigned way = 0; way < 3 && !err; way++) {
			err = measure(options, full[i], way, &row);
			if (err)
				break;
			printf("%3u %%  %-15s %8.1f %11.1f %8llu %8llu %8.1f "
			       "%8.1f\n", full[i], ways[way], row.per_second,
			       row.large_kib,
			       (unsigned long long)row.moved.tracks,
			       (unsigned long long)row.moved.begun,
			       (double)row.moved.sectors / 2048,
			       (double)row.moved.stale_sectors / 2048);
			fflush(stdout);
		}
	return err;
}

/*
 * sched_clean.c - a Postmark-like load without pauses on a file system that has
 * been in use: as it is, as tracks are emptied in quiet times only
 * (move/move.h), and with cleaning that costs no time, the ideal (Lumb et al.,
 * OSDI 2000, 5).
 *
 * Files are written (used_fs.h), then half of them are deleted and others
 * written, five times, so that what is free is fragmented.  A day later
 * transactions begin.  Files and transactions are the same however full it is.
 * Files are not brought into an order meanwhile: that is measured by sched age.
 */
#include <stdio.h>

#include "base/units.h"
#include "bench/sched.h"
#include "bench/used_fs.h"

/* Rounds of writing files, between which half of them are deleted, and the
 * number of transactions. */
#define ROUNDS 6u
#define TRANSACTIONS 6000u
/* Of the files that transactions make, one in this many is large: it wants
 * whole tracks where small files were. */
#define LOAD_LARGE_SHARE 8u
/* Transactions between two pauses that do not count, in which ideal cleaning is
 * done; the longest such cleaning; and the pause before it, which both have. */
#define PAUSE_EVERY 500u
#define IDEAL_NS (UINT64_C(3600) * NS_PER_SECOND)
#define PAUSE_NS (UINT64_C(700) * NS_PER_SECOND)

enum clean_way { CLEAN_NEVER, CLEAN_IDEAL };

struct clean_row {
	double full;		/* share, by statfs */
	double per_second;
	double large_kib;	/* mean KiB of an extent of a large file */
	/* per transaction */
	double accesses, seek_ms, rotation_ms, transfer_ms;
	struct moves_status moved;
};

/* What the load has cost so far, pauses left out. */
struct clean_load {
	uint64_t ns;
	uint64_t begun_ns;
	struct drive_times head;
	uint32_t since;		/* files before that were counted */
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
	sim_advance(u->rig.sim, NS_PER_DAY);
	return err;
}

/* A pause, in which ideal cleaning goes on until nothing is left to clean. */
static void pause_load(struct used *u, enum clean_way way)
{
	uint64_t now_ns = sim_now_ns(u->rig.sim);
	uint64_t quiet_ns = now_ns + PAUSE_NS, end_ns = quiet_ns + IDEAL_NS;

	if (u->moves)
		moves_pause(u->moves, false);
	do {
		used_turn(u, false);
		now_ns = sim_now_ns(u->rig.sim);
	} while (now_ns < quiet_ns ||
		 (way == CLEAN_IDEAL && now_ns < end_ns &&
		  u->moves_ns < now_ns + 60 * NS_PER_SECOND));
	if (u->moves)
		moves_pause(u->moves, true);
}

static void load_begin(struct used *u, struct clean_load *load)
{
	load->since = u->made;
	load->begun_ns = sim_now_ns(u->rig.sim);
	drive_clear_times(sim_drive(u->rig.sim), load->begun_ns);
}

/* Writes everything, as before a pause. */
static int load_end(struct used *u, struct clean_load *load)
{
	struct drive_times times;
	uint64_t now_ns;
	int err = used_sync(u);

	now_ns = sim_now_ns(u->rig.sim);
	load->ns += now_ns - load->begun_ns;
	drive_get_times(sim_drive(u->rig.sim), now_ns, &times);
	load->head.accesses += times.accesses;
	load->head.seek_ns += times.seek_ns + times.switch_ns;
	load->head.rotation_ns += times.rotation_ns;
	load->head.transfer_ns += times.transfer_ns + times.prefetch_ns;
	return err ? err : used_count_fragments(u, load->since);
}

static int load_run(struct used *u, const struct sched_options *options,
		    enum clean_way way, struct clean_row *row)
{
	unsigned n = TRANSACTIONS / (options->quick ? 6 : 1), i;
	struct clean_load load = { 0 };
	int err = 0;

	if (options->requests)
		n = (unsigned)options->requests;
	u->large_share = LOAD_LARGE_SHARE;
	for (i = 0; i < n && !err; i++) {
		if (i % PAUSE_EVERY == 0) {
			err = i ? load_end(u, &load) : 0;
			pause_load(u, way);
			load_begin(u, &load);
		}
		err = err ? err : used_transaction(u);
	}
	if (!err)
		err = load_end(u, &load);
	row->per_second = n * 1e9 / (double)load.ns;
	row->accesses = (double)load.head.accesses / n;
	row->seek_ms = (double)load.head.seek_ns / 1e6 / n;
	row->rotation_ms = (double)load.head.rotation_ns / 1e6 / n;
	row->transfer_ms = (double)load.head.transfer_ns / 1e6 / n;
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
	if (u.moves)
		moves_order_pause(u.moves, true);
	if (!err) {
		row->full = used_full(&u);
		err = load_run(&u, options, way, row);
	}
	if (u.moves)
		moves_get_status(u.moves, &row->moved);
	used_close(&u);
	return err;
}

static void print(const struct clean_row *row, const char *way)
{
	printf("%5.1f %%  %-14s %8.1f %10.1f %5.2f %5.2f %5.2f %5.2f %7llu "
	       "%6llu %7.1f\n", row->full * 100, way, row->per_second,
	       row->large_kib, row->accesses, row->seek_ms, row->rotation_ms,
	       row->transfer_ms, (unsigned long long)row->moved.tracks,
	       (unsigned long long)row->moved.begun,
	       (double)row->moved.sectors / 2048);
	fflush(stdout);
}

int sched_clean(const struct sched_options *options)
{
	static const unsigned full[] = { 60, 85, 93 };
	static const char *const ways[] = {
		[CLEAN_NEVER] = "no cleaning",
		[CLEAN_IDEAL] = "ideal cleaning",
	};
	struct clean_row row;
	int err = 0;

	printf("transactions/s; accesses and ms of one: seeks, rotation, "
	       "transfer; what moved\n"
	       "full                      trans/s KiB/extent  acc.  seek   "
	       "rot. trans  tracks  begun moved MB\n");
	for (unsigned i = 0; i < sizeof(full) / sizeof(full[0]); i++)
		for (unsigned way = 0; way <= CLEAN_IDEAL && !err; way++) {
			err = measure(options, full[i], way, &row);
			if (!err)
				print(&row, ways[way]);
		}
	return err;
}

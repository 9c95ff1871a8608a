/*
 * sched_age.c - a month of use at 85 % full: each day files are deleted and
 * others made, some are appended to, and some overwritten in part (used_fs.h).
 * Then, against a fresh file system: new files, the same in all rows, written
 * and read cold; all the others, read cold, a directory after the other; and
 * transactions.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sort.h"
#include "base/units.h"
#include "bench/sched.h"
#include "bench/used_fs.h"

/* Per cent of the room that is full, and how many days it is used. */
#define FULL_PERCENT 85u
#define DAYS 30u
/* One file in this many is deleted in a day, appended to, overwritten in part;
 * and the bytes of an append and of an overwrite. */
#define DELETE_SHARE 10u
#define APPEND_SHARE 20u
#define OVERWRITE_SHARE 20u
#define APPEND_BYTES 16384u
#define OVERWRITE_BYTES 8192u
/* The quiet part of a day in which the disk turns. */
#define NIGHT_NS (UINT64_C(1800) * NS_PER_SECOND)
/* One file in this many is deleted before the new files are made, which are as
 * much of all bytes, so that there is room for them. */
#define NEW_SHARE 16u
/* Added to the seed for the sizes of the new files: what was drawn before
 * differs from row to row. */
#define NEW_SEED 1000u
#define TRANSACTIONS 2000u	/* Transactions that are measured at the end. */

enum age_way { AGE_FRESH, AGE_USED, AGE_MOVES, AGE_ORDER };

struct age_row {
	double write, read_new, read_old;	/* MB/s */
	double per_second;			/* transactions */
	double moved_mb;
};

static int overwrite(struct used *u, uint32_t i)
{
	const struct used_file *file = &u->file[i];
	uint64_t at = rig_random(&u->seed) % file->bytes;
	uint64_t end = at + OVERWRITE_BYTES;

	return used_io(u, file->ino, FS_WRITE, at,
		       end < file->bytes ? end : file->bytes);
}

static void pass_time(struct used *u, uint64_t ns)
{
	uint64_t end_ns = sim_now_ns(u->rig.sim) + ns;

	while (sim_now_ns(u->rig.sim) < end_ns)
		used_turn(u, false);
}

static int day(struct used *u)
{
	uint32_t n, i;
	int err = 0;

	for (n = u->files / DELETE_SHARE, i = 0; i < n && !err; i++)
		err = used_file_delete(u, used_any(u));
	for (n = u->files / APPEND_SHARE, i = 0; i < n && !err; i++)
		err = used_append(u, used_any(u),
				  1 + (uint32_t)(rig_random(&u->seed) %
						 APPEND_BYTES));
	for (n = u->files / OVERWRITE_SHARE, i = 0; i < n && !err; i++)
		err = overwrite(u, used_any(u));
	if (!err)
		err = used_fill(u);
	pass_time(u, NIGHT_NS);
	sim_advance(u->rig.sim, NS_PER_DAY - NIGHT_NS);
	return err;
}

/* ---- What is measured ---- */

static int by_directory(const void *a, const void *b)
{
	const struct used_file *x = a, *y = b;

	return sort_order(x->number % USED_DIRS, y->number % USED_DIRS) ?:
	       sort_order(x->number, y->number);
}

/* Reads files [first, end); *rate is in MB/s. */
static int read_files(struct used *u, uint32_t first, uint32_t end,
		      double *rate)
{
	uint64_t begin_ns, bytes = 0;
	int err = used_remount(u);

	begin_ns = sim_now_ns(u->rig.sim);
	qsort(u->file + first, end - first, sizeof(*u->file), by_directory);
	for (uint32_t i = first; i < end && !err; i++) {
		err = used_io(u, u->file[i].ino, FS_READ, 0, u->file[i].bytes);
		bytes += u->file[i].bytes;
	}
	*rate = (double)bytes * 1e3 /
		(double)(sim_now_ns(u->rig.sim) - begin_ns);
	return err;
}

static int measure_new(struct used *u, uint64_t seed, struct age_row *row)
{
	uint32_t first, n = u->files / NEW_SHARE;
	uint64_t begin_ns, bytes = 0;
	int err = 0;

	while (n-- && !err)
		err = used_file_delete(u, used_any(u));
	if (!err)
		err = used_sync(u);
	if (!err)
		err = used_remount(u);
	begin_ns = sim_now_ns(u->rig.sim);
	first = u->files;
	u->seed = seed + NEW_SEED;
	if (!err)
		err = used_make(u, USED_BYTES / NEW_SHARE);
	for (uint32_t i = first; i < u->files; i++)
		bytes += u->file[i].bytes;
	row->write = (double)bytes * 1e3 /
		     (double)(sim_now_ns(u->rig.sim) - begin_ns);
	return err ? err : read_files(u, first, u->files, &row->read_new);
}

static int measure_load(struct used *u, unsigned n, struct age_row *row)
{
	uint64_t begin_ns;
	int err = used_remount(u);

	begin_ns = sim_now_ns(u->rig.sim);
	for (unsigned i = 0; i < n && !err; i++)
		err = used_transaction(u);
	if (!err)
		err = used_sync(u);
	row->per_second = n * 1e9 /
			  (double)(sim_now_ns(u->rig.sim) - begin_ns);
	return err;
}

/* ---- The month ---- */

static int bring_together(struct used *u)
{
	struct order_status s;
	int err = 0;

	qsort(u->file, u->files, sizeof(*u->file), by_directory);
	for (uint32_t i = 0; i < u->files && !err;) {
		err = moves_order(u->moves, u->file[i].ino);
		i += !err;
		for (; err == -EAGAIN; err = 0)
			pass_time(u, NS_PER_SECOND);
	}
	do {
		pass_time(u, NS_PER_SECOND);
		order_get_status(u->moves, &s);
	} while (s.wanted || s.is_at_work);
	return err;
}

static int use(struct used *u, unsigned days, enum age_way way,
	       struct age_row *row)
{
	struct moves_status s;
	int err = used_fill(u);

	if (!err && way >= AGE_MOVES)
		err = moves_open(u->fs, &u->moves);
	for (unsigned i = 0; i < days && way != AGE_FRESH && !err; i++)
		err = day(u);
	if (!err && way == AGE_ORDER)
		err = bring_together(u);
	if (u->moves) {
		moves_get_status(u->moves, &s);
		row->moved_mb = (double)s.sectors / 2048;
	}
	moves_close(u->moves);
	u->moves = NULL;
	return err;
}

static int measure(const struct sched_options *options, enum age_way way,
		   struct age_row *row)
{
	unsigned n = options->requests ? (unsigned)options->requests :
					 TRANSACTIONS;
	struct used u;
	int err = used_open(options, FULL_PERCENT, &u);

	*row = (struct age_row){ 0 };
	if (!err)
		err = use(&u, options->quick ? DAYS / 10 : DAYS, way, row);
	if (!err)
		err = read_files(&u, 0, u.files, &row->read_old);
	if (!err)
		err = measure_new(&u, options->seed, row);
	if (!err)
		err = measure_load(&u, n, row);
	used_close(&u);
	return err;
}

int sched_age(const struct sched_options *options)
{
	static const char *const ways[] = {
		[AGE_FRESH] = "fresh", [AGE_USED] = "a month, no moves",
		[AGE_MOVES] = "with cleaning", [AGE_ORDER] = "and order now",
	};
	struct age_row row;
	int err = 0;

	printf("%u %% full                new, MB/s       old, MB/s\n"
	       "                      write     read      read  trans/s"
	       "  moved MB\n", FULL_PERCENT);
	for (unsigned way = 0; way <= AGE_ORDER && !err; way++) {
		err = measure(options, way, &row);
		if (err)
			break;
		printf("%-18s %8.2f %8.2f  %8.2f %8.1f %9.1f\n", ways[way],
		       row.write, row.read_new, row.read_old, row.per_second,
		       row.moved_mb);
		fflush(stdout);
	}
	return err;
}

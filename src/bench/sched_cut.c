/*
 * sched_cut.c - what others see while a file of very many extents is deleted or
 * truncated.
 *
 * The file is preallocated and every other block punched out, so no data is
 * needed.  After a mount it is cut; others read a block (of the cut file's
 * beginning where it is truncated), make a file and delete it, once before and
 * then once in each millisecond of virtual time, until the room is back.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "base/turn.h"
#include "base/units.h"
#include "bench/sched_scale.h"
#include "format/format.h"

#define EXTENTS 1000000u	/* Extents of the file that is cut. */
#define MOST_BYTES (UINT64_C(16) << 30)	/* most bytes of one preallocation */
/* Runs of which the least time of each turn counts. */
#define RUNS 3u
/* The cut is over when no room has come back for this long. */
#define QUIET_NS (10 * (uint64_t)NS_PER_SECOND)

struct cut {
	struct scale s;
	uint64_t ino, other;	/* the file that is cut, and one whose blocks
				 * others read */
	uint64_t extents;
	uint64_t answered_ns, back_ns;	/* the time until the cut is answered,
					 * and until its room is back */
	uint64_t back;		/* blocks that have come back */
	uint64_t ops, max_ns, sum_ns;	/* operations of the others, and their
					 * longest time and sum of times */
	uint8_t data[TRAX_BLOCK_BYTES] __attribute__((aligned(4096)));
};

static int fallocate_blocks(struct cut *c, uint32_t mode, uint64_t from,
			    uint64_t blocks)
{
	struct fs_op op = { .type = FS_FALLOCATE, .ino = c->ino,
			    .flags = mode, .offset = from * TRAX_BLOCK_BYTES,
			    .size = blocks * TRAX_BLOCK_BYTES };

	return scale_do(&c->s, &op);
}

static int make_files(struct cut *c)
{
	const uint64_t blocks = 2 * c->extents;
	const uint64_t most = MOST_BYTES / TRAX_BLOCK_BYTES;
	struct fs_op op = { .type = FS_WRITE, .size = TRAX_BLOCK_BYTES,
			    .data = c->data };
	int err = scale_make(&c->s, 1, FS_MKNOD, "cut", &c->ino);

	for (uint64_t i = 0; i < blocks && !err; i += most)
		err = fallocate_blocks(c, 0, i,
				       blocks - i < most ? blocks - i : most);
	for (uint64_t i = 0; i < blocks && !err; i += 2)
		err = fallocate_blocks(c, FALLOC_FL_PUNCH_HOLE |
				       FALLOC_FL_KEEP_SIZE, i, 1);
	if (!err)
		err = scale_make(&c->s, 1, FS_MKNOD, "other", &c->other);
	op.ino = c->other;
	return err ? err : scale_do(&c->s, &op);
}

static int free_blocks(struct cut *c, uint64_t *blocks)
{
	struct fs_op op = { .type = FS_STATFS, .ino = 1 };
	const int err = scale_do(&c->s, &op);

	*blocks = op.statfs.free;
	return err;
}

/* Does one operation beside the cut. */
static int beside(struct cut *c, struct fs_op *op)
{
	const uint64_t begin_ns = sim_now_ns(c->s.rig.sim);
	const int err = scale_do(&c->s, op);
	const uint64_t ns = sim_now_ns(c->s.rig.sim) - begin_ns;

	c->ops++;
	c->sum_ns += ns;
	c->max_ns = c->max_ns > ns ? c->max_ns : ns;
	return err;
}

static int others(struct cut *c, bool truncate)
{
	struct fs_op read = { .type = FS_READ, .size = TRAX_BLOCK_BYTES,
			      .ino = truncate ? c->ino : c->other,
			      .buffer = c->data };
	struct fs_op make = { .type = FS_MKNOD, .ino = 1, .name = "new",
			      .mode = 0644 };
	struct fs_op delete = { .type = FS_UNLINK, .ino = 1, .name = "new" };
	struct fs_op forget = { .type = FS_FORGET, .size = 1 };
	int err = beside(c, &read);

	if (!err)
		err = beside(c, &make);
	forget.ino = make.attr.ino;
	if (!err)
		err = beside(c, &delete);
	return err ? err : scale_do(&c->s, &forget);
}

/* Time passes, in turns. */
static void pass(struct cut *c, uint64_t ns)
{
	const uint64_t end_ns = sim_now_ns(c->s.rig.sim) + ns;
	const bool done = true;

	while (sim_now_ns(c->s.rig.sim) < end_ns) {
		scale_turn(&c->s, &done);
		sim_advance(c->s.rig.sim, NS_PER_MS / 10);
	}
}

static int measure(struct cut *c, bool truncate, struct turn_times *turns)
{
	struct loop_turn *turn = &c->s.rig.env->turn;
	struct fs_op cut = {
		.type = truncate ? FS_SETATTR : FS_UNLINK,
		.ino = truncate ? c->ino : 1, .name = "cut",
		.flags = truncate ? FS_SET_SIZE : 0,
		.attr.size = TRAX_BLOCK_BYTES,
	};
	uint64_t before, now, last, begin_ns, answered_ns, back_ns;
	int err = others(c, truncate);

	c->ops = c->max_ns = c->sum_ns = 0;
	if (!err)
		err = free_blocks(c, &before);
	c->s.turns = turns;
	turns->n = 0;
	turn->max_charged_ns = 0;
	begin_ns = sim_now_ns(c->s.rig.sim);
	if (!err)
		err = scale_do(&c->s, &cut);
	answered_ns = back_ns = sim_now_ns(c->s.rig.sim);
	last = now = before;
	while (!err && sim_now_ns(c->s.rig.sim) < back_ns + QUIET_NS) {
		err = others(c, truncate);
		pass(c, NS_PER_MS);
		if (!err)
			err = free_blocks(c, &now);
		if (now > last) {
			last = now;
			back_ns = sim_now_ns(c->s.rig.sim);
		}
	}
	c->answered_ns = answered_ns - begin_ns;
	c->back_ns = back_ns - begin_ns;
	c->back = last - before;
	return err;
}

static uint64_t longest_ns(const struct turn_times *turns)
{
	uint64_t most = 0;

	for (size_t i = 0; i < turns->n; i++)
		most = most > turns->ns[i] ? most : turns->ns[i];
	return most;
}

static void print_row(const struct cut *c, bool truncate,
		      const struct turn_times *turns)
{
	printf("%9llu %-9s %10.2f %8.2f %7.1f %9llu %9.3f %9.2f %9.2f %9.2f\n",
	       (unsigned long long)c->extents, truncate ? "truncate" : "delete",
	       (double)c->answered_ns / NS_PER_MS,
	       (double)c->back_ns / NS_PER_SECOND,
	       100. * (double)c->back / (double)c->extents,
	       (unsigned long long)c->ops,
	       (double)c->sum_ns / (double)c->ops / NS_PER_MS,
	       (double)c->max_ns / NS_PER_MS,
	       (double)c->s.rig.env->turn.max_charged_ns / NS_PER_MS,
	       (double)longest_ns(turns) / NS_PER_MS);
}

static int cut_once(const struct sched_options *options, bool truncate,
		    bool print, struct turn_times *turns)
{
	struct cut c = { .extents = options->requests ? options->requests :
							EXTENTS };
	int err = scale_open(&c.s, options);

	if (!err)
		err = make_files(&c);
	if (!err)
		err = scale_unmount(&c.s);
	if (!err)
		err = scale_mount(&c.s);
	if (!err)
		err = measure(&c, truncate, turns);
	if (!err && print)
		print_row(&c, truncate, turns);
	scale_close(&c.s);
	return err;
}

static int cut_row(const struct sched_options *options, bool truncate)
{
	struct turn_times turns = { .n = 0 };
	int err = 0;

	for (unsigned run = 0; run < RUNS && !err; run++)
		err = cut_once(options, truncate, run == RUNS - 1, &turns);
	free(turns.ns);
	return err;
}

int sched_cut(const struct sched_options *options)
{
	int err = 0;

	printf("  extents           answered ms  room s       %%    others   "
	       "mean ms    max ms  turn: charged, processor ms\n");
	for (unsigned row = 0; row < 2 && !err; row++)
		err = cut_row(options, row);
	if (err)
		msg_error("cut: %s", strerror(-err));
	return err;
}

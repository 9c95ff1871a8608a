/*
 * test_scrub.c - the scrub on a simulated disk: everything is read, damage is
 * found and named, what changes meanwhile is none, and a pass goes on after a
 * power cut.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "diskmodel/spec.h"
#include "fs/op/fs_internal.h"
#include "fs/mkfs.h"
#include "fs/data/file_data.h"
#include "fs/replica/replicate.h"
#include "fs/table/replica.h"
#include "sched/head/head.h"
#include "sched/freeblock/freeblock.h"
#include "scrub/scrub_internal.h"
#include "scrub/scrub.h"
#include "tests/rig/rig_scrub.h"
#include "tests/rig/test.h"
#include "tests/rig/tree_verify.h"
#include "tree/tree_internal.h"

/* The first is smaller than a chunk, the others end with one. */
static const size_t file_bytes[] = {
	5000, 2u << 18, 4u << 18, 6u << 18, 8u << 18, 10u << 18,
};

static void bench_open(struct rig_scrub *b)
{
	rig_scrub_open(b, file_bytes, RIG_SCRUB_FILES);
}

static void bench_close(struct rig_scrub *b)
{
	scrub_close(b->scrub);
	rig_close(&b->rig);
}

static enum scrub_state state_of(struct rig_scrub *b, struct scrub_status *s)
{
	scrub_get_status(b->scrub, s);
	return s->state;
}

/* Runs until a pass has ended, or so many turns. */
static void run_pass(struct rig_scrub *b, struct scrub_status *s,
		     unsigned turns)
{
	scrub_start(b->scrub);
	do {
		rig_scrub_turn(b);
	} while (--turns && state_of(b, s) == SCRUB_RUNNING);
}

START_TEST(all_is_read)
{
	struct scrub_status s;
	struct rig_scrub b;
	json_t *errors;
	char *text;

	bench_open(&b);
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_int_eq(s.state, SCRUB_WAITING);
	ck_assert_uint_eq(s.passes, 1);
	ck_assert_uint_eq(s.errors, 0);
	/* 7.5 MiB of data, the log, the roots and the superblocks. */
	ck_assert_uint_gt(s.run_sectors, 15 << 10);
	ck_assert_uint_eq(s.done_sectors, s.run_sectors);
	ck_assert_uint_le(s.done_sectors, s.all_sectors);
	errors = rig_errors(&b.rig);
	ck_assert_uint_eq(json_array_size(errors), 0);
	json_decref(errors);
	text = scrub_json(b.scrub);
	ck_assert_ptr_nonnull(strstr(text, "\"waiting\""));
	free(text);
	bench_close(&b);
}
END_TEST

/* Rot and a sector that cannot be read: found, with the names of the files. */
START_TEST(damage_is_named)
{
	struct scrub_status s;
	struct rig_scrub b;
	json_t *errors, *error;
	const char *first, *second;
	size_t i;

	bench_open(&b);
	rig_scrub_flip(&b, 3, 300000);
	ck_assert_int_eq(sim_damage(b.rig.sim,
				    rig_scrub_sector(&b, 5, 1 << 20), 1), 0);
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_int_eq(s.state, SCRUB_WAITING);
	errors = rig_errors(&b.rig);
	ck_assert_uint_ge(json_array_size(errors), 2);
	first = second = NULL;
	json_array_foreach(errors, i, error) {
		const char *path =
			json_string_value(json_object_get(error, "path"));
		const char *what =
			json_string_value(json_object_get(error, "what"));

		if (path && !strcmp(path, "/file3"))
			first = what;
		if (path && !strcmp(path, "/file5"))
			second = what;
	}
	ck_assert_ptr_nonnull(first);
	ck_assert_str_eq(first, "checksum");
	ck_assert_ptr_nonnull(second);
	ck_assert_str_eq(second, "unreadable");
	ck_assert_uint_ge(s.suspects, 2);
	json_decref(errors);
	/* The checker would have its say, too. */
	scrub_close(b.scrub);
	ck_assert_int_eq(fs_close(b.rig.fs), 0);
	sim_free(b.rig.sim);
}
END_TEST

/* Between its windows the pass asks for leaves of the tree, and it stores its
 * cursors: no user is there for whom it would wait after that.  Idle time
 * begins once, after 100 ms. */
START_TEST(a_pass_with_no_user_does_not_pause)
{
	const uint64_t most_ns = 300000000;
	struct scrub_status s;
	uint64_t begin_ns;
	struct rig_scrub b;

	bench_open(&b);
	begin_ns = sim_now_ns(b.rig.sim);
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_int_eq(s.state, SCRUB_WAITING);
	ck_assert_uint_lt(sim_now_ns(b.rig.sim) - begin_ns, most_ns);
	bench_close(&b);
}
END_TEST

static void pass_time(struct rig_scrub *b, unsigned minutes)
{
	for (; minutes; minutes--) {
		for (unsigned i = 0; i < 20; i++)
			rig_scrub_turn(b);
		sim_advance(b->rig.sim, 60 * NS_PER_SECOND);
	}
}

/* A pass falls due while the drive may sleep: it begins when somebody asks for
 * something. */
START_TEST(a_pass_that_falls_due_wakes_no_drive)
{
	static uint8_t bytes[4096];
	struct fs_op read = { .type = FS_READ, .size = sizeof(bytes),
			      .buffer = bytes };
	const struct sim_counts *counts;
	struct scrub_status s;
	struct rig_scrub b;
	uint64_t before;

	rig_open(&b.rig, RIG_SCRUB_MIB, RIG_SCRUB_SEED);
	rig_scrub_files(&b, file_bytes, RIG_SCRUB_FILES);
	rig_remount(&b.rig);
	ck_assert_int_eq(scrub_open(b.rig.fs, 1, &b.scrub), 0);
	fs_set_quiet(b.rig.fs, 0, 600 * NS_PER_SECOND);
	read.ino = b.ino[5];
	pass_time(&b, 20);
	counts = sim_counts(b.rig.sim);
	before = counts->reads + counts->writes;
	pass_time(&b, 2 * 24 * 60);
	ck_assert_uint_eq(counts->reads + counts->writes, before);
	ck_assert_int_eq(state_of(&b, &s), SCRUB_WAITING);
	ck_assert_uint_eq(s.passes, 0);
	ck_assert_int_eq(rig_do(&b.rig, &read), 0);
	for (unsigned i = 0; i < RIG_SCRUB_TURNS && !s.passes; i++) {
		rig_scrub_turn(&b);
		state_of(&b, &s);
	}
	ck_assert_uint_eq(s.passes, 1);
	bench_close(&b);
}
END_TEST

static uint64_t class_count(struct rig_scrub *b, enum queue_class class)
{
	return queue_stats(b->rig.fs->queue)->class[class].requests;
}

/* A bad place: what was to be read together with it is read in few parts, none
 * of them before what users read; the place itself a few times only. */
START_TEST(a_bad_place_is_not_hammered)
{
	struct sim_fault fault = { .kind = SIM_FAIL, .ops = SIM_READS,
				   .sectors = 8, .k = 1 };
	struct scrub_status s;
	uint64_t reads, users;
	struct rig_scrub b;

	bench_open(&b);
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_uint_eq(s.errors, 0);
	fault.first = rig_scrub_sector(&b, 5, 1 << 20) & ~UINT64_C(7);
	reads = sim_counts(b.rig.sim)->reads;
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	reads = sim_counts(b.rig.sim)->reads - reads;
	ck_assert_int_eq(sim_fault_add(b.rig.sim, &fault), 0);
	users = class_count(&b, QUEUE_READ);
	reads += sim_counts(b.rig.sim)->reads;
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	printf("%llu reads more than before, %llu of the bad place, "
	       "%llu of users\n",
	       (unsigned long long)(sim_counts(b.rig.sim)->reads - reads),
	       (unsigned long long)sim_fault_hits(b.rig.sim),
	       (unsigned long long)(class_count(&b, QUEUE_READ) - users));
	ck_assert_uint_ge(s.errors, 1);
	ck_assert_uint_lt(sim_counts(b.rig.sim)->reads, reads + 100);
	ck_assert_uint_le(sim_fault_hits(b.rig.sim), 12);
	ck_assert_uint_le(class_count(&b, QUEUE_READ) - users, 4);
	scrub_close(b.scrub);
	ck_assert_int_eq(fs_close(b.rig.fs), 0);
	sim_free(b.rig.sim);
}
END_TEST

/* Rot in a superblock and in one of two roots; read-only, so that there is no
 * next root. */
START_TEST(fixed_is_judged)
{
	const struct super *super;
	const struct root *root;
	struct scrub_status s;
	uint64_t place[3];
	struct rig_scrub b;

	bench_open(&b);
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_uint_eq(s.errors, 0);
	ck_assert_uint_ge(s.suspects, 5);
	scrub_close(b.scrub);
	b.rig.options.read_only = true;
	rig_remount(&b.rig);
	rig_scrub_begin(&b);
	super = fs_super(b.rig.fs);
	super_places(super, place);
	ck_assert_int_eq(sim_flip(b.rig.sim, place[1] + 1, 77), 0);
	root = tree_durable_root(b.rig.fs->tree);
	ck_assert_int_eq(sim_flip(b.rig.sim,
				  super->area_sector[root->gen & 1][1] + 8, 5),
			 0);
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_uint_eq(s.errors, 2);
	bench_close(&b);
}
END_TEST

#define MORE_FILES 600u

/* Where the copies of a leaf lie that nothing changes: the first ones of so
 * many inodes' are those of the scrub itself. */
static struct node_ptr quiet_leaf(struct rig_scrub *b)
{
	struct tree *tree;
	struct fs_attr attr;
	uint64_t ino = 0;
	char name[16];

	for (unsigned i = 0; i < MORE_FILES; i++) {
		snprintf(name, sizeof(name), "more%u", i);
		ck_assert_int_eq(rig_mknod(&b->rig, TRAX_ROOT_INO, name,
					   0100644, &ino), 0);
	}
	scrub_close(b->scrub);
	rig_remount(&b->rig);
	ck_assert_int_eq(scrub_open(b->rig.fs, 0, &b->scrub), 0);
	ck_assert_int_eq(rig_getattr(&b->rig, ino, &attr), 0);
	tree = b->rig.fs->tree;
	ck_assert_uint_gt(tree->root->level, 0);
	return tree_leaf(tree, key_make(ino, ITEM_INODE, 0))->ptr;
}

/* A node, or its mirror, that cannot be read or has a flipped bit, is written
 * again from the other copy. */
START_TEST(nodes_are_healed)
{
	const bool mirror = _i & 1, flip = _i & 2;
	struct node_ptr ptr;
	struct scrub_status s;
	json_t *errors, *error;
	struct rig_scrub b;
	uint64_t at, slots;

	bench_open(&b);
	ptr = quiet_leaf(&b);
	at = addr_sector(mirror ? ptr.addr2 : ptr.addr);
	ck_assert_int_eq(flip ? sim_flip(b.rig.sim, at + 31, 1000) :
				sim_damage(b.rig.sim, at + 9, 1), 0);
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	errors = rig_errors(&b.rig);
	ck_assert_uint_eq(json_array_size(errors), 1);
	error = json_array_get(errors, 0);
	ck_assert(json_is_true(json_object_get(error, "healed")));
	json_decref(errors);
	ck_assert_int_eq(rig_sync(&b.rig), 0);
	ck_assert_int_eq(tree_check(b.rig.fs->tree, &slots), 0);
	bench_close(&b);
}
END_TEST

/* Rot in a record of the log that is needed. */
START_TEST(log_is_judged)
{
	const struct super *super;
	struct log_found found;
	struct scrub_status s;
	struct log *log;
	struct rig_scrub b;
	uint64_t end;

	bench_open(&b);
	rig_scrub_write(&b, 0, 0, 5000, 7);
	ck_assert_int_eq(rig_sync(&b.rig), 0);
	super = fs_super(b.rig.fs);
	log = tree_log(b.rig.fs->tree);
	end = super->sectors;
	ck_assert(log_record_next(log, 0, end, &found));
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_uint_eq(s.errors, 0);
	ck_assert(log_record_next(log, 0, end, &found));
	ck_assert_int_eq(sim_flip(b.rig.sim, found.sector, 40), 0);
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_uint_eq(s.errors, 1);
	bench_close(&b);
}
END_TEST

static void copies_made(void *arg, uint64_t copies)
{
	*(int64_t *)arg = (int64_t)copies;
}

/* Copies of all of a file, and where one of them lies. */
static uint64_t copy_file(struct rig_scrub *b, unsigned file)
{
	const struct replica_want want = { b->ino[file], 0, file * 2 * 64 };
	uint64_t sector = UINT64_MAX;
	const struct replica_region *region;
	int64_t copies = -1;

	b->rig.options.replicas = 1;
	scrub_close(b->scrub);
	rig_remount(&b->rig);
	ck_assert_int_eq(replica_make(b->rig.fs, &want, 1, 0, false,
				      copies_made, &copies), 0);
	ck_assert_int_eq(scrub_open(b->rig.fs, 0, &b->scrub), 0);
	for (int i = 0; i < 100000 && copies < 0; i++)
		rig_scrub_turn(b);
	ck_assert_int_eq(copies, file * 2 * 4);
	ck_assert_int_eq(rig_sync(&b->rig), 0);
	region = regions_at(b->rig.fs->replicas->regions, 0);
	ck_assert_ptr_nonnull(region);
	sector = region->sector;
	return sector;
}

/* Copies are read and compared, too; a bad one is noted and goes. */
START_TEST(copies_are_judged)
{
	struct scrub_status s;
	struct rig_scrub b;
	json_t *errors, *error;
	uint64_t sector, read;

	bench_open(&b);
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	read = s.run_sectors;
	sector = copy_file(&b, 3);
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_int_eq(s.state, SCRUB_WAITING);
	ck_assert_uint_eq(s.errors, 0);
	ck_assert_uint_ge(s.run_sectors, read + 6 * 512);
	ck_assert_int_eq(sim_flip(b.rig.sim, sector + 200, 9), 0);
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_uint_eq(s.errors, 1);
	ck_assert_uint_eq(b.rig.fs->replicas->stats.bad, 1);
	errors = rig_errors(&b.rig);
	ck_assert_uint_eq(json_array_size(errors), 1);
	error = json_array_get(errors, 0);
	ck_assert_str_eq(json_string_value(json_object_get(error, "path")),
			 "/file3");
	ck_assert(json_is_true(json_object_get(error, "healed")));
	json_decref(errors);
	/* It is no copy any more. */
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_uint_eq(s.errors, 0);
	ck_assert_uint_eq(b.rig.fs->replicas->stats.bad, 1);
	bench_close(&b);
}
END_TEST

/* Files are written over, cut and deleted while they are read. */
START_TEST(change_is_no_damage)
{
	struct scrub_status s;
	struct rig_scrub b;
	json_t *errors;
	unsigned turns = 0;

	bench_open(&b);
	scrub_start(b.scrub);
	do {
		rig_scrub_turn(&b);
		if (turns < 200 && turns % 4 == 0)
			rig_scrub_write(&b, 1 + turns / 4 % 4,
				 (turns * 37 % 60) << 12, 8192, turns);
		if (turns == 60)
			ck_assert_int_eq(rig_unlink(&b.rig, 1, "file5"), 0);
		if (turns % 40 == 20 && turns < 200)
			ck_assert_int_eq(rig_sync(&b.rig), 0);
	} while (++turns < RIG_SCRUB_TURNS &&
		 (state_of(&b, &s) == SCRUB_RUNNING ||
		  turns < 200));
	ck_assert_int_eq(s.state, SCRUB_WAITING);
	errors = rig_errors(&b.rig);
	ck_assert_msg(json_array_size(errors) == 0, "%s",
		      json_dumps(errors, 0));
	json_decref(errors);
	bench_close(&b);
}
END_TEST

/* Paused, it does nothing; resumed, and after a crash, it goes on. */
START_TEST(a_scrub_goes_on_after_a_pause_and_a_crash)
{
	struct scrub_status s;
	struct rig_scrub b;
	uint64_t read;

	bench_open(&b);
	/* Until a little after the beginning of idle time. */
	run_pass(&b, &s, 60);
	ck_assert_int_eq(s.state, SCRUB_RUNNING);
	scrub_pause(b.scrub);
	for (int i = 0; i < 20; i++)
		rig_scrub_turn(&b);
	state_of(&b, &s);
	read = s.run_sectors;
	for (int i = 0; i < 500; i++)
		rig_scrub_turn(&b);
	ck_assert_int_eq(state_of(&b, &s), SCRUB_PAUSED);
	ck_assert_uint_eq(s.run_sectors, read);
	ck_assert_int_eq(rig_sync(&b.rig), 0);
	/* Power goes. */
	scrub_close(b.scrub);
	rig_crash(&b.rig);
	rig_scrub_begin(&b);
	rig_scrub_turn(&b);
	ck_assert_int_eq(state_of(&b, &s), SCRUB_PAUSED);
	scrub_resume(b.scrub);
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_int_eq(s.state, SCRUB_WAITING);
	ck_assert_uint_eq(s.passes, 1);
	ck_assert_uint_eq(s.errors, 0);
	bench_close(&b);
}
END_TEST

#define DAY_SECONDS UINT64_C(86400)
#define DAY_NS (DAY_SECONDS * 1000000000u)

static int64_t wall_offset_ns;

static int64_t shifted_wall(struct env *env)
{
	return (int64_t)env_now_ns(env) + wall_offset_ns;
}

/* A pass is due each 30 days, on a clock that a test can set. */
static void bench_open_with_clock(struct rig_scrub *b)
{
	wall_offset_ns = (int64_t)(20 * 365 * DAY_NS);
	rig_open(&b->rig, RIG_SCRUB_MIB, RIG_SCRUB_SEED);
	sim_env(b->rig.sim)->wall_ns = shifted_wall;
	rig_scrub_files(b, file_bytes, RIG_SCRUB_FILES);
	ck_assert_int_eq(scrub_open(b->rig.fs, 30, &b->scrub), 0);
}

/* The clock was ten years ahead at the first mount, or at the last pass. */
START_TEST(a_clock_set_back_stops_no_scrub)
{
	struct scrub_status s;
	struct rig_scrub b;
	unsigned i;

	bench_open_with_clock(&b);
	if (_i)
		run_pass(&b, &s, RIG_SCRUB_TURNS);
	for (i = 0; i < 100; i++)
		rig_scrub_turn(&b);
	ck_assert_int_eq(state_of(&b, &s), SCRUB_WAITING);
	ck_assert_uint_eq(s.passes, (unsigned)_i);
	wall_offset_ns -= (int64_t)(10 * 365 * DAY_NS);
	scrub_close(b.scrub);
	rig_remount(&b.rig);
	ck_assert_int_eq(scrub_open(b.rig.fs, 30, &b.scrub), 0);
	for (i = 0; i < 100; i++)
		rig_scrub_turn(&b);
	sim_advance(b.rig.sim, 31 * DAY_NS);
	for (i = 0; i < 100; i++)
		rig_scrub_turn(&b);
	state_of(&b, &s);
	ck_assert(s.state == SCRUB_RUNNING || s.passes > (unsigned)_i);
	bench_close(&b);
}
END_TEST

/* Paused while it waits, no pass begins when one is due, also after a remount;
 * resumed, it does. */
START_TEST(a_pause_between_passes_holds)
{
	struct scrub_status s;
	struct rig_scrub b;
	unsigned i;

	bench_open_with_clock(&b);
	for (i = 0; i < 100; i++)
		rig_scrub_turn(&b);
	ck_assert_int_eq(state_of(&b, &s), SCRUB_WAITING);
	scrub_pause(b.scrub);
	for (i = 0; i < 100; i++)
		rig_scrub_turn(&b);
	scrub_close(b.scrub);
	rig_remount(&b.rig);
	ck_assert_int_eq(scrub_open(b.rig.fs, 30, &b.scrub), 0);
	sim_advance(b.rig.sim, 31 * DAY_NS);
	for (i = 0; i < 100; i++)
		rig_scrub_turn(&b);
	ck_assert_int_eq(state_of(&b, &s), SCRUB_HELD);
	ck_assert_uint_eq(s.passes, 0);
	ck_assert_int_eq(s.next_seconds, 0);
	scrub_resume(b.scrub);
	for (i = 0; i < 100; i++)
		rig_scrub_turn(&b);
	state_of(&b, &s);
	ck_assert(s.state == SCRUB_RUNNING || s.passes == 1);
	bench_close(&b);
}
END_TEST

static bool file_is_suspect(const struct scrub *scrub)
{
	for (unsigned i = 0; i < scrub->suspects; i++)
		if (scrub->suspect[i].ino)
			return true;
	return false;
}

/* Paused and closed while something is suspect that lies in a window that is
 * over: that is not said to have been read. */
START_TEST(suspects_are_not_stored)
{
	struct scrub_status s;
	unsigned turns = 0, i;
	struct rig_scrub b;
	json_t *errors;

	bench_open(&b);
	for (i = 0; i < 40; i++)
		rig_scrub_flip(&b, 5, i << 16);
	scrub_start(b.scrub);
	do {
		fs_run(b.rig.fs, 0);
		freeblock_promote(b.scrub->task, file_is_suspect(b.scrub));
		scrub_run(b.scrub);
		sim_advance(b.rig.sim, RIG_SCRUB_TURN_NS);
	} while (!(b.scrub->moved && file_is_suspect(b.scrub)) &&
		 turns++ < RIG_SCRUB_TURNS);
	ck_assert_uint_lt(turns, RIG_SCRUB_TURNS);
	scrub_pause(b.scrub);
	scrub_close(b.scrub);
	/* The checker would have its say, too. */
	ck_assert_int_eq(fs_close(b.rig.fs), 0);
	ck_assert_int_eq(fs_open(sim_env(b.rig.sim), sim_disk(b.rig.sim),
				 &b.rig.options, &b.rig.fs), 0);
	rig_scrub_begin(&b);
	rig_scrub_turn(&b);
	scrub_resume(b.scrub);
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_uint_eq(s.passes, 1);
	errors = rig_errors(&b.rig);
	ck_assert_uint_ge(json_array_size(errors), 40);
	json_decref(errors);
	scrub_close(b.scrub);
	ck_assert_int_eq(fs_close(b.rig.fs), 0);
	sim_free(b.rig.sim);
}
END_TEST

static void remount_with(struct rig_scrub *b, size_t memory_bytes)
{
	scrub_close(b->scrub);
	b->rig.options.memory_bytes = memory_bytes;
	rig_remount(&b->rig);
	ck_assert_int_eq(scrub_open(b->rig.fs, 0, &b->scrub), 0);
	rig_scrub_turn(b);
}

/* With other memory the disk has other bands: what was read of the pass is not
 * read again, but for a little, and nothing is left out. */
START_TEST(with_other_bands_nothing_is_left_out)
{
	static const size_t memory[] = { 256u << 20, 32u << 20, 128u << 20 };
	uint64_t all, done, read = 0;
	struct scrub_status s;
	struct rig_scrub b;

	rig_open(&b.rig, 2048, 7);
	for (unsigned i = 0; i < 8; i++) {
		char name[8];
		struct fs_op op = { .type = FS_FALLOCATE, .size = 200u << 20 };

		snprintf(name, sizeof(name), "room%u", i);
		ck_assert_int_eq(rig_mknod(&b.rig, 1, name, S_IFREG | 0644,
					   &op.ino), 0);
		ck_assert_int_eq(rig_do(&b.rig, &op), 0);
	}
	rig_remount(&b.rig);
	rig_scrub_begin(&b);
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	all = s.done_sectors;
	ck_assert_uint_gt(all, 1600u << 11);
	ck_assert_uint_eq(s.run_sectors, all);

	for (unsigned i = 0; i < 3; i++) {
		uint64_t part = all / 4 * (i + 1);

		scrub_start(b.scrub);
		do {
			rig_scrub_turn(&b);
			state_of(&b, &s);
		} while (s.state == SCRUB_RUNNING && s.done_sectors < part);
		ck_assert_int_eq(s.state, SCRUB_RUNNING);
		done = s.done_sectors;
		read += s.run_sectors;
		remount_with(&b, memory[i]);
		state_of(&b, &s);
		ck_assert_uint_gt(s.done_sectors, done / 2);
	}
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_int_eq(s.state, SCRUB_WAITING);
	ck_assert_uint_eq(s.passes, 2);
	read += s.run_sectors;
	ck_assert_uint_ge(read, all);
	ck_assert_uint_lt(read, all * 2);
	bench_close(&b);
}
END_TEST

/* Where the room of large files goes to others during a pass, sectors may be in
 * windows of two bands: it comes to its end. */
START_TEST(a_pass_ends_though_owners_change)
{
	static const uint64_t seeds[] = { 2, 3, 7 };
	uint64_t seed = seeds[_i], ino[16] = { 0 };
	struct scrub_status s;
	unsigned turns, i;
	struct rig_scrub b;
	char name[8];

	rig_open(&b.rig, 1024, 7);
	b.rig.options.memory_bytes = 1u << 30;
	rig_remount(&b.rig);
	rig_scrub_begin(&b);
	for (turns = 0; turns < 40000; turns++) {
		struct fs_op op = { .type = FS_FALLOCATE };

		if (turns > 600 && state_of(&b, &s) == SCRUB_WAITING)
			scrub_start(b.scrub);
		rig_scrub_turn(&b);
		if (turns % 40)
			continue;
		i = test_random(&seed) % 16;
		snprintf(name, sizeof(name), "room%u", i);
		if (ino[i]) {
			ck_assert_int_eq(rig_unlink(&b.rig, 1, name), 0);
			rig_forget(&b.rig, ino[i], 1);
			ck_assert_int_eq(rig_sync(&b.rig), 0);
		}
		ck_assert_int_eq(rig_mknod(&b.rig, 1, name, S_IFREG | 0644,
					   &ino[i]), 0);
		op.ino = ino[i];
		op.size = (1280 + test_random(&seed) % 12800) << 12;
		ck_assert_int_eq(rig_do(&b.rig, &op), 0);
	}
	run_pass(&b, &s, RIG_SCRUB_TURNS);
	ck_assert_int_eq(s.state, SCRUB_WAITING);
	bench_close(&b);
}
END_TEST

/* ---- on a drive that turns ---- */

static const char drive_text[] =
	"{ \"surfaces\": 4, \"rpm\": 10000, \"order\": \"cylinder\", "
	"\"head_switch_ms\": 0.8, \"write_settle_ms\": 0.4, "
	"\"overhead\": { \"read_ms\": 0.05, \"write_ms\": 0.2 }, "
	"\"zero_latency\": { \"read\": true, \"write\": true }, "
	"\"seek\": [[1, 1.2], [10, 1.5], [100, 2.5], [500, 5]], "
	"\"zones\": [ { \"cylinders\": [0, 95], "
	"\"sectors_per_track\": 600, \"track_skew\": 0.15, "
	"\"cylinder_skew\": 0.25 } ] }";

struct load {
	struct rig_scrub *b;
	struct queue_request req;
	struct iovec iov;
	uint64_t seed, spent_ns;
	unsigned left;
};

static void load_ask(struct load *load);

static void load_done(struct disk_request *disk)
{
	struct load *load = disk->owner;

	load->spent_ns += disk->complete_ns - disk->submit_ns;
	if (--load->left)
		load_ask(load);
}

/* Reads of blocks all over the disk, one after the other. */
static void load_ask(struct load *load)
{
	struct queue *queue = load->b->rig.fs->queue;
	uint64_t blocks = queue_limits(queue)->sectors / 8;

	load->req = (struct queue_request){
		.disk = {
			.op = DISK_READ,
			.sector = test_random(&load->seed) % blocks * 8,
			.sectors = 8,
			.iov = &load->iov,
			.iov_n = 1,
			.done = load_done,
			.owner = load,
		},
		.class = QUEUE_READ,
	};
	/* No operation of a user stands behind it, as does behind others. */
	queue_set_own(queue, false);
	queue_submit(queue, &load->req);
}

static double run_load(struct rig_scrub *b, unsigned n)
{
	struct load load = { .b = b, .left = n, .seed = 21 };

	load.iov.iov_len = 4096;
	load.iov.iov_base = aligned_alloc(4096, 4096);
	load_ask(&load);
	while (load.left) {
		fs_run(b->rig.fs, -1);
		scrub_run(b->scrub);
	}
	free(load.iov.iov_base);
	return (double)load.spent_ns / n;
}

static void drive_open(struct rig_scrub *b, struct spec **spec,
		       struct spec **model,
		       struct geom **geom, struct head **head)
{
	struct sim_options sim_options = { .seed = 3, .physical_bytes = 512 };
	struct mkfs_options mkfs = { 0 };
	struct head_options head_options;
	struct mkfs_plan plan;
	struct disk *disk;

	ck_assert_int_eq(spec_parse(drive_text, "test", spec), 0);
	ck_assert_int_eq(spec_parse(drive_text, "test", model), 0);
	ck_assert_int_eq(spec_geom(*model, geom), 0);
	b->rig.sim = sim_new(*spec, 0, &sim_options);
	ck_assert_ptr_nonnull(b->rig.sim);
	disk = sim_disk(b->rig.sim);
	ck_assert_int_eq(mkfs_plan(sim_env(b->rig.sim), &disk->limits, &mkfs,
				   &plan), 0);
	ck_assert_int_eq(mkfs_write(sim_env(b->rig.sim), disk, &mkfs, &plan),
			 0);
	head_options = (struct head_options){
		.geom = *geom,
		.mech = &(*model)->mech,
		.read_overhead_ns = (*model)->read_overhead_ns,
		.write_overhead_ns = (*model)->write_overhead_ns,
	};
	ck_assert_int_eq(head_open(sim_env(b->rig.sim), &head_options, head),
			 0);
	b->rig.options = (struct fs_options){ .memory_bytes = 64 << 20,
					      .head = *head };
	ck_assert_int_eq(fs_open(sim_env(b->rig.sim), disk, &b->rig.options,
				 &b->rig.fs), 0);
}

/* In the gaps of random reads it reads on, and they do not notice. */
START_TEST(nothing_is_delayed)
{
	struct rig_scrub b = { .scrub = NULL };
	struct spec *spec, *model;
	struct scrub_status s;
	struct geom *geom;
	struct head *head;
	double without, with;

	drive_open(&b, &spec, &model, &geom, &head);
	rig_scrub_files(&b, file_bytes, RIG_SCRUB_FILES);
	rig_scrub_begin(&b);
	run_load(&b, 400);
	without = run_load(&b, 1500);
	scrub_start(b.scrub);
	with = run_load(&b, 1500);
	scrub_get_status(b.scrub, &s);
	printf("reads: %.3f ms alone, %.3f ms with the scrub, which has read "
	       "%.1f of %.1f MB\n", without / 1e6, with / 1e6,
	       (double)s.run_sectors * 512 / 1e6,
	       (double)s.all_sectors * 512 / 1e6);
	/* A pass with all that is looked at again, in a few seconds. */
	ck_assert_double_lt(with, without * 1.02);
	ck_assert_uint_gt(s.run_sectors, s.all_sectors / 4);
	ck_assert_uint_eq(s.errors, 0);
	scrub_close(b.scrub);
	ck_assert_int_eq(fs_close(b.rig.fs), 0);
	sim_free(b.rig.sim);
	head_close(head);
	geom_free(geom);
	spec_free(spec);
	spec_free(model);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("scrub");
	TCase *tcase = tcase_create("scrub");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, all_is_read);
	tcase_add_test(tcase, a_pass_with_no_user_does_not_pause);
	tcase_add_test(tcase, a_pass_that_falls_due_wakes_no_drive);
	tcase_add_test(tcase, damage_is_named);
	tcase_add_test(tcase, a_bad_place_is_not_hammered);
	tcase_add_test(tcase, fixed_is_judged);
	tcase_add_loop_test(tcase, nodes_are_healed, 0, 4);
	tcase_add_test(tcase, log_is_judged);
	tcase_add_test(tcase, copies_are_judged);
	tcase_add_test(tcase, change_is_no_damage);
	tcase_add_test(tcase, a_scrub_goes_on_after_a_pause_and_a_crash);
	tcase_add_test(tcase, a_pause_between_passes_holds);
	tcase_add_loop_test(tcase, a_clock_set_back_stops_no_scrub, 0, 2);
	tcase_add_test(tcase, suspects_are_not_stored);
	tcase_add_test(tcase, with_other_bands_nothing_is_left_out);
	tcase_add_loop_test(tcase, a_pass_ends_though_owners_change, 0, 3);
	tcase_add_test(tcase, nothing_is_delayed);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}

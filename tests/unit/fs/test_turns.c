/*
 * test_turns.c - no turn of the loop is long, whatever there is to do: by what
 * is charged to it (base/turn.h), not by a clock.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/data/file_data.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define DISK_MIB 4096u
#define LONE_FILES 3000u	/* each in a directory of its own */
#define EXTENTS 20000u		/* of one file, each a block */
#define FILE_BYTES 8192u
#define OWNERS_MOST 1000u	/* looked up in one turn */
#define SECOND_NS 1000000000ull

/* The last step of a turn begins before it is full. */
#define MOST_NS (TURN_FULL_NS + 150000u)

struct scene {
	struct rig rig;
	uint8_t data[FILE_BYTES];
};

static struct scene *scene_open(void)
{
	struct scene *w = calloc(1, sizeof(*w));

	ck_assert_ptr_nonnull(w);
	rig_open(&w->rig, DISK_MIB, 5);
	w->rig.options.memory_bytes = 256 << 20;
	w->rig.options.replicas = 1;
	rig_remount(&w->rig);
	return w;
}

/* `cut`: there was more to do than one turn takes. */
static void scene_close(struct scene *w, bool cut)
{
	const struct loop_turn *turn = &w->rig.fs->env->turn;

	ck_assert(!cut || turn->cuts);
	ck_assert_msg(turn->max_charged_ns <= MOST_NS,
		      "a turn was charged %llu us, mostly %s",
		      (unsigned long long)turn->max_charged_ns / 1000,
		      turn_part_name(turn->max_charged_part));
	rig_close(&w->rig);
	free(w);
}

/* The file system runs meanwhile. */
static void pass(struct scene *w, uint64_t ns)
{
	uint64_t end = sim_now_ns(w->rig.sim) + ns, next, now;

	while ((now = sim_now_ns(w->rig.sim)) < end) {
		next = fs_run(w->rig.fs, 0);
		if (sim_next_ns(w->rig.sim) < next)
			next = sim_next_ns(w->rig.sim);
		next = next < end ? next : end;
		if (next > now)
			sim_advance(w->rig.sim, next - now);
	}
}

static void put(struct scene *w, uint64_t ino, uint64_t offset, uint64_t n)
{
	struct fs_op op = { .type = FS_WRITE, .ino = ino, .offset = offset,
			    .size = n, .data = w->data };

	ck_assert_int_eq(rig_do(&w->rig, &op), 0);
}

static uint64_t create(struct scene *w, uint64_t dir, const char *name)
{
	uint64_t ino;

	ck_assert_int_eq(rig_mknod(&w->rig, dir, name, S_IFREG | 0644, &ino),
			 0);
	return ino;
}

static void make_lone_files(struct scene *w)
{
	char name[16];
	uint64_t dir;

	for (unsigned i = 0; i < LONE_FILES; i++) {
		snprintf(name, sizeof(name), "lone%u", i);
		ck_assert_int_eq(rig_mkdir(&w->rig, 1, name, &dir), 0);
		put(w, create(w, dir, "file"), 0, FILE_BYTES);
	}
}

START_TEST(sync_of_many_directories_takes_short_turns)
{
	struct scene *w = scene_open();

	make_lone_files(w);
	ck_assert_int_eq(rig_sync(&w->rig), 0);
	scene_close(w, true);
}
END_TEST

START_TEST(age_of_many_directories_takes_short_turns)
{
	struct scene *w = scene_open();

	make_lone_files(w);
	pass(w, 60 * SECOND_NS);
	ck_assert_uint_eq(w->rig.fs->files->dirty_count, 0);
	scene_close(w, true);
}
END_TEST

/* Every other block, so that each is an extent. */
static uint64_t make_extents(struct scene *w)
{
	uint64_t ino = create(w, 1, "extents");

	ck_assert_int_eq(rig_open_file(&w->rig, ino, O_RDWR), 0);
	for (uint64_t i = 0; i < EXTENTS; i++)
		put(w, ino, i * 2 * BLOCK_BYTES, BLOCK_BYTES);
	ck_assert_int_eq(rig_sync(&w->rig), 0);
	return ino;
}

/* Its preallocation, of which every other block is used, goes back at close. */
START_TEST(close_of_many_holes_takes_short_turns)
{
	struct scene *w = scene_open();
	uint64_t ino = make_extents(w);

	ck_assert_int_eq(rig_release(&w->rig, ino), 0);
	rig_settle(&w->rig);
	scene_close(w, true);
}
END_TEST

START_TEST(delete_of_many_extents_takes_short_turns)
{
	struct scene *w = scene_open();
	uint64_t ino = make_extents(w);

	ck_assert_int_eq(rig_release(&w->rig, ino), 0);
	ck_assert_int_eq(rig_unlink(&w->rig, 1, "extents"), 0);
	ck_assert_int_eq(rig_forget(&w->rig, ino, 1), 0);
	pass(w, 60 * SECOND_NS);
	scene_close(w, true);
}
END_TEST

/* A new file loads the group of the many extents, in several turns. */
static void load_is_cut(struct scene *w)
{
	const struct loop_turn *turn = &w->rig.fs->env->turn;
	const uint64_t before = turn->cuts;

	put(w, create(w, 1, "new"), 0, FILE_BYTES);
	ck_assert_int_eq(rig_sync(&w->rig), 0);
	ck_assert_uint_ge(turn->cuts - before, EXTENTS / OWNERS_MOST);
}

/* Whoever allocates after a mount waits for the owners of the group. */
START_TEST(load_of_many_owners_takes_short_turns)
{
	struct scene *w = scene_open();

	make_extents(w);
	rig_remount(&w->rig);
	/* Unmounting is not cut. */
	w->rig.fs->env->turn.max_charged_ns = 0;
	load_is_cut(w);
	scene_close(w, true);
}
END_TEST

/* The same when the group's owners have just gone, so that all that is between
 * them is between pending runs. */
START_TEST(load_of_pending_runs_takes_short_turns)
{
	struct scene *w = scene_open();
	const uint64_t ino = make_extents(w);
	struct fs_op cut = { .type = FS_SETATTR, .ino = ino,
			     .flags = FS_SET_SIZE };
	struct space_counts counts;

	rig_remount(&w->rig);
	w->rig.fs->env->turn.max_charged_ns = 0;
	ck_assert_int_eq(rig_do(&w->rig, &cut), 0);
	rig_settle(&w->rig);
	space_count(tree_space(w->rig.fs->tree), &counts);
	ck_assert_uint_ge(counts.pending, EXTENTS * (BLOCK_BYTES / 512));
	load_is_cut(w);
	scene_close(w, true);
}
END_TEST

static void cut_over(struct fs_op *op)
{
	*(bool *)op->owner = true;
}

/* Virtual time that an operation takes. */
static uint64_t taken_ns(struct scene *w, struct fs_op *op)
{
	const uint64_t begin_ns = sim_now_ns(w->rig.sim);

	ck_assert_int_eq(rig_do(&w->rig, op), 0);
	return sim_now_ns(w->rig.sim) - begin_ns;
}

#define WAIT_NS 250000000ull	/* as for reads beside any load */
#define BESIDE 500u		/* the cut takes 1,800 transactions */

/* While thousands of extents are cut off a file, or go with it, reads of its
 * begin and what happens to other files do not wait for that. */
START_TEST(others_do_not_wait_for_a_long_cut)
{
	struct scene *w = scene_open();
	const uint64_t ino = make_extents(w), other = create(w, 1, "other");
	bool over = false;
	struct fs_op cut = {
		.type = FS_SETATTR, .ino = ino, .flags = FS_SET_SIZE,
		.attr.size = BLOCK_BYTES, .done = cut_over, .owner = &over,
	};
	struct fs_op read = { .type = FS_READ, .size = BLOCK_BYTES,
			      .buffer = w->data };
	struct fs_op name = { .type = FS_UNLINK, .ino = 1, .name = "new" };
	unsigned rounds = 0;

	put(w, other, 0, BLOCK_BYTES);
	ck_assert_int_eq(rig_sync(&w->rig), 0);
	fs_submit(w->rig.fs, &cut);
	/* It is answered when the size is true; the extents go afterwards. */
	while (rounds < BESIDE) {
		read.ino = rounds % 2 ? ino : other;
		ck_assert_uint_lt(taken_ns(w, &read), WAIT_NS);
		ck_assert_uint_eq(read.result, BLOCK_BYTES);
		create(w, 1, "new");
		ck_assert_uint_lt(taken_ns(w, &name), WAIT_NS);
		rounds++;
	}
	ck_assert(over);
	ck_assert_int_eq(cut.rc, 0);
	ck_assert_int_eq(rig_release(&w->rig, ino), 0);
	scene_close(w, false);
}
END_TEST

#define READ_BLOCKS 16384u	/* of one file: 64 MiB */
#define READS 3000u

/* While users are never quiet, thousands of reads are judged at a time. */
START_TEST(choice_of_replicas_takes_short_turns)
{
	struct scene *w = scene_open();
	uint64_t ino = create(w, 1, "read"), seed = 7;
	struct fs_op op = { .type = FS_READ, .ino = ino, .size = BLOCK_BYTES,
			    .buffer = w->data };

	ck_assert_uint_gt(w->rig.options.replicas, 0);
	for (uint64_t i = 0; i < READ_BLOCKS; i += 2)
		put(w, ino, i * BLOCK_BYTES, 2 * BLOCK_BYTES);
	ck_assert_int_eq(rig_sync(&w->rig), 0);
	rig_remount(&w->rig);
	for (unsigned i = 0; i < READS; i++) {
		op.offset = test_random(&seed) % READ_BLOCKS * BLOCK_BYTES;
		ck_assert_int_eq(rig_do(&w->rig, &op), 0);
	}
	pass(w, 10 * SECOND_NS);
	scene_close(w, true);
}
END_TEST

#define TREE_FILES 12000u	/* kept in the tree: 24 MB of leaves */
#define TREE_BYTES 2000u

/* Thousands of nodes are dirty when the checkpoint begins. */
START_TEST(checkpoint_of_many_nodes_takes_short_turns)
{
	struct scene *w = scene_open();
	uint64_t dir;
	char name[16];

	for (unsigned i = 0; i < TREE_FILES; i++) {
		snprintf(name, sizeof(name), "%u", i);
		if (i % 100 == 0)
			ck_assert_int_eq(rig_mkdir(&w->rig, 1, name, &dir), 0);
		put(w, create(w, dir, name), 0, TREE_BYTES);
	}
	ck_assert_int_eq(rig_sync(&w->rig), 0);
	pass(w, 60 * SECOND_NS);
	scene_close(w, true);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("turns");
	Suite *suite = suite_create("turns");

	tcase_add_test(tc, sync_of_many_directories_takes_short_turns);
	tcase_add_test(tc, age_of_many_directories_takes_short_turns);
	tcase_add_test(tc, close_of_many_holes_takes_short_turns);
	tcase_add_test(tc, delete_of_many_extents_takes_short_turns);
	tcase_add_test(tc, load_of_many_owners_takes_short_turns);
	tcase_add_test(tc, load_of_pending_runs_takes_short_turns);
	tcase_add_test(tc, others_do_not_wait_for_a_long_cut);
	tcase_add_test(tc, choice_of_replicas_takes_short_turns);
	tcase_add_test(tc, checkpoint_of_many_nodes_takes_short_turns);
	tcase_set_timeout(tc, 300);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}

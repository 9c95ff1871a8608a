/*
 * test_small_files.c - when small files are written, and in how many accesses:
 * counted in virtual time.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/data/dirty_block.h"
#include "fs/data/file_data.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define FILE_BYTES 8192u
#define DIRS 100u
#define DISK_MIB 1024u
#define LONE_FILES 2000u		/* each in a directory of its own */
#define LOOKS 20u		/* at files, for each that is written */
#define APPENDED 2000u		/* files that are appended to */
#define METADATA_FILES 28000u
#define SECOND_NS 1000000000ull

struct scene {
	struct rig rig;
	uint64_t dir[DIRS];
	uint8_t data[FILE_BYTES];
};

static struct scene *scene_open_on(uint64_t mib)
{
	struct scene *w = calloc(1, sizeof(*w));
	char name[16];

	ck_assert_ptr_nonnull(w);
	rig_open(&w->rig, mib, 5);
	for (unsigned i = 0; i < DIRS; i++) {
		snprintf(name, sizeof(name), "dir%u", i);
		ck_assert_int_eq(rig_mkdir(&w->rig, 1, name, &w->dir[i]), 0);
	}
	ck_assert_int_eq(rig_sync(&w->rig), 0);
	return w;
}

static struct scene *scene_open(void)
{
	struct scene *w = scene_open_on(DISK_MIB);

	w->rig.options.memory_bytes = 128 << 20;
	rig_remount(&w->rig);
	return w;
}

static void scene_close(struct scene *w)
{
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

static void name_of(char *name, size_t room, unsigned i)
{
	snprintf(name, room, "file%u", i);
}

static void make_content(struct scene *w, uint64_t ino, uint64_t offset)
{
	for (unsigned i = 0; i < FILE_BYTES; i++)
		w->data[i] = (uint8_t)(ino + offset / 4096 + i);
}

static void put(struct scene *w, uint64_t ino, uint64_t offset)
{
	struct fs_op op = { .type = FS_WRITE, .ino = ino, .offset = offset,
			    .size = FILE_BYTES, .data = w->data };

	make_content(w, ino, offset);
	ck_assert_int_eq(rig_do(&w->rig, &op), 0);
}

/* Opened, written, closed. */
static uint64_t create(struct scene *w, unsigned i)
{
	char name[16];
	uint64_t ino;

	name_of(name, sizeof(name), i);
	ck_assert_int_eq(rig_mknod(&w->rig, w->dir[i % DIRS], name,
				   S_IFREG | 0644, &ino), 0);
	ck_assert_int_eq(rig_open_file(&w->rig, ino, O_RDWR), 0);
	put(w, ino, 0);
	ck_assert_int_eq(rig_release(&w->rig, ino), 0);
	return ino;
}

static void delete(struct scene *w, unsigned i, uint64_t ino)
{
	char name[16];

	name_of(name, sizeof(name), i);
	ck_assert_int_eq(rig_unlink(&w->rig, w->dir[i % DIRS], name), 0);
	ck_assert_int_eq(rig_forget(&w->rig, ino, 1), 0);
}

static uint64_t data_bytes(const struct scene *w)
{
	return w->rig.fs->files->written_bytes;
}

/* What is deleted within half a minute is never written. */
START_TEST(what_is_deleted_soon_is_not_written)
{
	struct scene *w = scene_open();
	uint64_t ino[400], before = data_bytes(w);

	for (unsigned i = 0; i < 400; i++) {
		ino[i] = create(w, i);
		pass(w, SECOND_NS / 20);
	}
	for (unsigned i = 0; i < 400; i++)
		delete(w, i, ino[i]);
	pass(w, 60 * SECOND_NS);
	ck_assert_uint_eq(data_bytes(w), before);
	scene_close(w);
}
END_TEST

/* What stays is written when it is 35 s old; of a file that has been open for
 * long, what arrives may be 30 s old already. */
START_TEST(old_data_is_written)
{
	struct scene *w = scene_open();
	uint64_t ino = create(w, 0), before = data_bytes(w);

	pass(w, 30 * SECOND_NS);
	ck_assert_uint_eq(data_bytes(w), before);
	pass(w, 8 * SECOND_NS);
	ck_assert_uint_eq(data_bytes(w), before + FILE_BYTES);
	ck_assert_int_eq(rig_open_file(&w->rig, ino, O_RDWR), 0);
	pass(w, 60 * SECOND_NS);
	before = data_bytes(w);
	put(w, ino, FILE_BYTES);
	pass(w, 3 * SECOND_NS);
	ck_assert_uint_eq(data_bytes(w), before);
	pass(w, 4 * SECOND_NS);
	ck_assert_uint_eq(data_bytes(w), before + FILE_BYTES);
	ck_assert_int_eq(rig_release(&w->rig, ino), 0);
	scene_close(w);
}
END_TEST

/* More than an eighth of the pool, in all directories by turns: what is not
 * young is written in one sweep of long accesses, and nothing more. */
START_TEST(one_sweep_writes_what_is_not_young)
{
	struct scene *w = scene_open();
	struct queue *queue = w->rig.fs->queue;
	const size_t pool = pool_count(w->rig.fs->files->dirty_pool);
	uint64_t before = data_bytes(w), accesses, bytes;
	unsigned files = (unsigned)(pool / SWEEP_PART * BLOCK_BYTES /
				    FILE_BYTES);

	for (unsigned i = 0; i < files; i++)
		create(w, i);
	pass(w, SECOND_NS / 2);
	ck_assert_uint_eq(data_bytes(w), before);
	accesses = queue_stats(queue)->accesses;
	create(w, files);
	pass(w, SECOND_NS / 2);
	bytes = data_bytes(w) - before;
	accesses = queue_stats(queue)->accesses - accesses;
	ck_assert_uint_ge(bytes, (uint64_t)files * FILE_BYTES / 3);
	ck_assert_uint_le(bytes, (uint64_t)files * FILE_BYTES * 2 / 3);
	ck_assert_uint_ge(bytes / accesses, 128 << 10);
	scene_close(w);
}
END_TEST

/* Where half of what is made is deleted soon nothing is written early, though
 * the disk is idle, until half of the pool is full. */
START_TEST(little_is_written_where_files_live_shortly)
{
	struct scene *w = scene_open();
	const struct files *files = w->rig.fs->files;
	const unsigned n = (unsigned)(pool_count(files->dirty_pool) *
				      BLOCK_BYTES / FILE_BYTES * 3 / 4);
	uint64_t before = data_bytes(w);

	for (unsigned i = 0; i < n; i++) {
		uint64_t ino = create(w, i);

		if (i % 2)
			delete(w, i, ino);
		if (i % 16 == 0)
			pass(w, SECOND_NS / 50);
	}
	ck_assert_uint_gt(files->dirty_count,
			  pool_count(files->dirty_pool) / SWEEP_PART);
	ck_assert_uint_eq(data_bytes(w), before);
	scene_close(w);
}
END_TEST

static void check_content(struct scene *w, uint64_t ino, uint64_t offset)
{
	uint8_t data[FILE_BYTES];
	struct fs_op op = { .type = FS_READ, .ino = ino, .offset = offset,
			    .size = FILE_BYTES, .buffer = data };

	ck_assert_int_eq(rig_do(&w->rig, &op), 0);
	ck_assert_uint_eq(op.result, FILE_BYTES);
	make_content(w, ino, offset);
	ck_assert_mem_eq(data, w->data, FILE_BYTES);
}

/* Bytes written for a file, mirrors included; the log of a small disk can't
 * hold what is made of them, so that there are checkpoints meanwhile.  With
 * more memory all nodes fit. */
static const struct {
	uint64_t disk_mib;
	size_t memory_bytes;
	unsigned file_bytes;
	bool spills;
} metadata[] = {
	{ 32768, 32 << 20, 1024, true },
	{ 32768, 64 << 20, 512, false },
	{ DISK_MIB, 32 << 20, 4096, false },
	{ DISK_MIB, 64 << 20, 4096, false },
};

/* With the node cache as large as the metadata, or less: leaves that files are
 * made in by turns stay in memory, others are written early, and after a crash
 * all is there. */
START_TEST(metadata_larger_than_memory_survives_a_crash)
{
	struct scene *w = scene_open_on(metadata[_i].disk_mib);
	struct tree_stats stats;
	struct fs_attr attr;
	char name[16];

	w->rig.options.memory_bytes = metadata[_i].memory_bytes;
	rig_remount(&w->rig);
	for (unsigned i = 0; i < METADATA_FILES; i++)
		create(w, i);
	ck_assert_int_eq(rig_sync(&w->rig), 0);
	tree_get_stats(w->rig.fs->tree, &stats);
	ck_assert_int_eq(stats.spills > 0, metadata[_i].spills);
	ck_assert_uint_le(stats.node_writes * TRAX_NODE_BYTES,
			  METADATA_FILES * metadata[_i].file_bytes);
	rig_crash(&w->rig);
	for (unsigned i = 0; i < METADATA_FILES; i++) {
		name_of(name, sizeof(name), i);
		ck_assert_int_eq(rig_lookup(&w->rig, w->dir[i % DIRS], name,
					    &attr), 0);
		ck_assert_uint_eq(attr.size, FILE_BYTES);
	}
	scene_close(w);
}
END_TEST

/* The block in which a file ended is written with what is appended, in one
 * access, instead of to the log and then to its old place. */
START_TEST(an_append_takes_the_last_block_along)
{
	struct scene *w = scene_open();
	struct files *files = w->rig.fs->files;
	struct fs_extent extent[4];
	const uint64_t half = FILE_BYTES - BLOCK_BYTES / 2;
	struct fs_op list = { .type = FS_EXTENTS, .buffer = extent, .size = 4 };
	struct fs_op begin = { .type = FS_WRITE, .data = w->data,
			       .size = half };
	uint64_t bytes, ino;

	ck_assert_int_eq(rig_mknod(&w->rig, w->dir[0], "file", S_IFREG | 0644,
				   &ino), 0);
	list.ino = begin.ino = ino;
	ck_assert_int_eq(rig_do(&w->rig, &begin), 0);
	pass(w, 60 * SECOND_NS);
	bytes = files->written_bytes;
	put(w, ino, half);
	pass(w, 60 * SECOND_NS);
	ck_assert_uint_eq(files->dirty_count + files->pinned_count, 0);
	ck_assert_uint_eq(files->written_bytes - bytes, 3 * BLOCK_BYTES);
	ck_assert_int_eq(rig_do(&w->rig, &list), 0);
	ck_assert_uint_eq(list.result, 2);
	ck_assert_uint_eq(extent[1].offset, BLOCK_BYTES);
	rig_crash(&w->rig);
	ck_assert_int_eq(rig_do(&w->rig, &list), 0);
	ck_assert_uint_eq(list.result, 2);
	check_content(w, ino, half);
	ck_assert_int_eq(rig_forget(&w->rig, ino, 1), 0);
	scene_close(w);
}
END_TEST

/* Nor is the last block of many files logged and then written to its old place
 * when what is appended fits into it: but for the first of them, all such
 * blocks go to a new place together.  One that is synced keeps its place. */
START_TEST(an_append_within_a_block_is_written_with_others)
{
	struct scene *w = scene_open();
	struct files *files = w->rig.fs->files;
	struct fs_extent extent[4];
	struct fs_op list = { .type = FS_EXTENTS, .buffer = extent, .size = 4 };
	const uint64_t half = FILE_BYTES - BLOCK_BYTES / 2;
	struct fs_op begin = { .type = FS_WRITE, .data = w->data,
			       .size = half };
	struct fs_op more = { .type = FS_WRITE, .offset = half,
			      .data = w->data + half,
			      .size = FILE_BYTES - half };
	struct fs_op fsync = { .type = FS_FSYNC };
	uint64_t writes, *ino = calloc(APPENDED, sizeof(*ino));
	unsigned i, moved = 0;

	ck_assert_ptr_nonnull(ino);
	for (i = 0; i < APPENDED; i++) {
		char name[16];

		name_of(name, sizeof(name), i);
		ck_assert_int_eq(rig_mknod(&w->rig, w->dir[i % DIRS], name,
					   S_IFREG | 0644, &ino[i]), 0);
		make_content(w, ino[i], 0);
		begin.ino = ino[i];
		ck_assert_int_eq(rig_do(&w->rig, &begin), 0);
	}
	pass(w, 60 * SECOND_NS);
	writes = sim_counts(w->rig.sim)->writes;
	for (i = 0; i < APPENDED; i++) {
		make_content(w, ino[i], 0);
		more.ino = ino[i];
		ck_assert_int_eq(rig_do(&w->rig, &more), 0);
	}
	fsync.ino = ino[0];
	ck_assert_int_eq(rig_do(&w->rig, &fsync), 0);
	pass(w, 60 * SECOND_NS);
	ck_assert_uint_eq(files->dirty_count + files->pinned_count, 0);
	ck_assert_uint_le(sim_counts(w->rig.sim)->writes - writes,
			  APPENDED / 2);
	rig_crash(&w->rig);
	for (i = 0; i < APPENDED; i++) {
		list.ino = ino[i];
		ck_assert_int_eq(rig_do(&w->rig, &list), 0);
		ck_assert_uint_le(list.result, i ? 2 : 1);
		moved += list.result == 2;
		check_content(w, ino[i], 0);
		ck_assert_int_eq(rig_forget(&w->rig, ino[i], 1), 0);
	}
	ck_assert_uint_ge(moved, APPENDED * 9 / 10);
	free(ino);
	scene_close(w);
}
END_TEST

/* What belongs together is found without a look at all that is dirty: a sync of
 * many directories took a time that grew with the square of their number. */
START_TEST(a_sync_does_not_look_at_all_that_is_dirty)
{
	struct scene *w = scene_open();
	const struct files *files = w->rig.fs->files;
	char name[16];
	uint64_t dir, ino;
	unsigned i;

	for (i = 0; i < LONE_FILES; i++) {
		snprintf(name, sizeof(name), "lone%u", i);
		ck_assert_int_eq(rig_mkdir(&w->rig, 1, name, &dir), 0);
		ck_assert_int_eq(rig_mknod(&w->rig, dir, "file",
					   S_IFREG | 0644, &ino), 0);
		put(w, ino, 0);
	}
	ck_assert_int_eq(rig_sync(&w->rig), 0);
	ck_assert_uint_gt(files->group_looks, 0);
	ck_assert_uint_le(files->group_looks, LOOKS * LONE_FILES);
	scene_close(w);
}
END_TEST

static void op_done(struct fs_op *op)
{
	op->owner = op;
}

/* Nor does each write-back that ends while a sync waits for it look at all that
 * has become dirty since. */
START_TEST(a_sync_does_not_look_at_what_came_later)
{
	struct scene *w = scene_open();
	const struct files *files = w->rig.fs->files;
	struct fs_op sync = { .type = FS_SYNCFS, .done = op_done };
	unsigned i;

	for (i = 0; i < LONE_FILES; i++)
		create(w, i);
	fs_submit(w->rig.fs, &sync);
	/* Until all that is older is on its way. */
	for (; !sync.owner; i++) {
		ck_assert_uint_lt(i, 20 * LONE_FILES);
		create(w, i);
	}
	ck_assert_int_eq(sync.rc, 0);
	ck_assert_uint_gt(i, 2 * LONE_FILES);
	ck_assert_uint_le(files->sync_looks, LOOKS * LONE_FILES);
	scene_close(w);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("small files");
	Suite *suite = suite_create("small files");

	tcase_add_test(tc, what_is_deleted_soon_is_not_written);
	tcase_add_test(tc, old_data_is_written);
	tcase_add_test(tc, one_sweep_writes_what_is_not_young);
	tcase_add_test(tc, little_is_written_where_files_live_shortly);
	tcase_add_test(tc, a_sync_does_not_look_at_all_that_is_dirty);
	tcase_add_test(tc, a_sync_does_not_look_at_what_came_later);
	tcase_add_test(tc, an_append_takes_the_last_block_along);
	tcase_add_test(tc, an_append_within_a_block_is_written_with_others);
	tcase_add_loop_test(tc, metadata_larger_than_memory_survives_a_crash, 0,
			    sizeof(metadata) / sizeof(*metadata));
	tcase_set_timeout(tc, 60);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}

/*
 * test_gap_writeback.c - a file read and rewritten at random on a simulated
 * drive whose head is known: write-back goes in gaps, the rest of tracks comes
 * in them, and every byte is what was written.
 */
#include <stdlib.h>
#include <string.h>

#include "diskmodel/spec.h"
#include "fs/data/file_data.h"
#include "fs/mkfs.h"
#include "sched/head/head.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define FILE_BLOCKS 4096u
#define LEARN 300u
#define TURNS 2500u

static const char drive_text[] =
	"{ \"surfaces\": 4, \"rpm\": 7200, \"order\": \"cylinder\", "
	"\"head_switch_ms\": 0.8, \"write_settle_ms\": 0.4, "
	"\"overhead\": { \"read_ms\": 0.05, \"write_ms\": 0.2 }, "
	"\"zero_latency\": { \"read\": true, \"write\": true }, "
	"\"seek\": [[1, 1.2], [10, 1.5], [39, 2.5]], "
	"\"zones\": [ { \"cylinders\": [0, 39], \"sectors_per_track\": 1200, "
	"\"track_skew\": 0.15, \"cylinder_skew\": 0.25 } ] }";

struct bench {
	struct rig rig;
	struct spec *spec, *model;
	struct geom *geom;
	struct head *head;
	uint64_t ino, rng;
	uint8_t version[FILE_BLOCKS];
};

static void fill(const struct bench *b, uint64_t block, uint8_t *data)
{
	for (unsigned i = 0; i < BLOCK_BYTES; i++)
		data[i] = (uint8_t)(block * 31 + b->version[block] * 7 + i);
}

static void put(struct bench *b, uint64_t block)
{
	uint8_t data[BLOCK_BYTES];
	struct fs_op op = { .type = FS_WRITE, .ino = b->ino,
			    .offset = block * BLOCK_BYTES,
			    .size = BLOCK_BYTES, .data = data };

	b->version[block]++;
	fill(b, block, data);
	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
}

static void look(struct bench *b, uint64_t block)
{
	uint8_t data[BLOCK_BYTES], right[BLOCK_BYTES];
	struct fs_op op = { .type = FS_READ, .ino = b->ino,
			    .offset = block * BLOCK_BYTES,
			    .size = BLOCK_BYTES, .buffer = data };

	fill(b, block, right);
	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
	ck_assert_uint_eq(op.result, BLOCK_BYTES);
	ck_assert_int_eq(memcmp(data, right, BLOCK_BYTES), 0);
}

static void mount(struct bench *b)
{
	ck_assert_int_eq(fs_open(sim_env(b->rig.sim), sim_disk(b->rig.sim),
				 &b->rig.options, &b->rig.fs), 0);
}

static void bench_open(struct bench *b)
{
	struct sim_options sim_options = { .seed = 3, .physical_bytes = 512 };
	struct mkfs_options mkfs = { 0 };
	struct head_options head_options;
	struct mkfs_plan plan;
	struct disk *disk;

	ck_assert_int_eq(spec_parse(drive_text, "test", &b->spec), 0);
	ck_assert_int_eq(spec_parse(drive_text, "test", &b->model), 0);
	ck_assert_int_eq(spec_geom(b->model, &b->geom), 0);
	b->rig.sim = sim_new(b->spec, 0, &sim_options);
	disk = sim_disk(b->rig.sim);
	mkfs.geom = b->geom;
	ck_assert_int_eq(mkfs_plan(sim_env(b->rig.sim), &disk->limits, &mkfs,
				   &plan), 0);
	ck_assert_int_eq(mkfs_write(sim_env(b->rig.sim), disk, &mkfs, &plan),
			 0);
	head_options = (struct head_options){
		.geom = b->geom,
		.mech = &b->model->mech,
		.read_overhead_ns = b->model->read_overhead_ns,
		.write_overhead_ns = b->model->write_overhead_ns,
	};
	ck_assert_int_eq(head_open(sim_env(b->rig.sim), &head_options,
				   &b->head), 0);
	b->rig.options = (struct fs_options){ .memory_bytes = 64 << 20,
					      .head = b->head };
	mount(b);
	ck_assert_int_eq(rig_mknod(&b->rig, 1, "file", S_IFREG | 0644,
				   &b->ino), 0);
	for (unsigned i = 0; i < FILE_BLOCKS; i++)
		put(b, i);
	ck_assert_int_eq(fs_close(b->rig.fs), 0);
	mount(b);
}

static void bench_close(struct bench *b)
{
	ck_assert_int_eq(fs_close(b->rig.fs), 0);
	sim_free(b->rig.sim);
	head_close(b->head);
	geom_free(b->geom);
	spec_free(b->spec);
	spec_free(b->model);
}

START_TEST(all_is_as_written)
{
	static struct bench b;
	struct fs_op sync;
	uint64_t gaps;

	b.rng = 5;
	bench_open(&b);
	for (unsigned i = 0; i < TURNS; i++) {
		/* Somebody else's reads, so that the disk is always read. */
		uint8_t other[BLOCK_BYTES] __attribute__((aligned(4096)));

		ck_assert_int_eq(queue_read(b.rig.fs->queue,
			test_random(&b.rng) % 23000 * 8, 8, other), 0);
		fs_run(b.rig.fs, 0);
		look(&b, test_random(&b.rng) % FILE_BLOCKS);
		if (i < LEARN || i % 4)
			continue;
		put(&b, test_random(&b.rng) % FILE_BLOCKS);
		sync = (struct fs_op){ .type = FS_FSYNC, .ino = b.ino };
		ck_assert_int_eq(rig_do(&b.rig, &sync), 0);
	}
	gaps = queue_stats(b.rig.fs->queue)->gaps;
	ck_assert_uint_gt(b.rig.fs->files->gap_queued_total, 50);
	ck_assert_uint_gt(b.rig.fs->files->gap_queued_total,
			  2 * b.rig.fs->files->gap_recalled_total);
	ck_assert_uint_gt(gaps, 50);
	ck_assert_ptr_nonnull(b.rig.fs->files->gap_readahead);
	ck_assert_int_eq(fs_close(b.rig.fs), 0);
	mount(&b);
	for (unsigned i = 0; i < FILE_BLOCKS; i++)
		look(&b, i);
	bench_close(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gap_writeback");
	TCase *tcase = tcase_create("gap_writeback");

	tcase_add_test(tcase, all_is_as_written);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}

/*
 * test_late_place.c - files that are synced on a simulated drive whose head is
 * known: places are chosen when they are written, which is quicker; writers
 * that come together are written together; what was synced outlives a crash.
 */
#include <stdlib.h>
#include <string.h>

#include "diskmodel/spec.h"
#include "fs/op/fs_internal.h"
#include "fs/mkfs.h"
#include "sched/head/head.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define FILE_BYTES (100u << 10)
#define FILES 60u
#define DIRS 3u
#define LEARN 300u
#define AT_ONCE 6u
#define ROUNDS 8u

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
	uint64_t dir[DIRS], ino[FILES];
	uint8_t data[FILE_BYTES], right[FILE_BYTES];
};

static void learn(struct bench *b)
{
	uint8_t block[4096] __attribute__((aligned(4096)));
	uint64_t rng = 7;

	for (unsigned i = 0; i < LEARN; i++) {
		ck_assert_int_eq(queue_read(b->rig.fs->queue,
			test_random(&rng) % 23000 * 8, 8, block), 0);
		fs_run(b->rig.fs, 0);
	}
}

static void bench_open(struct bench *b, bool fixed)
{
	struct sim_options sim_options = { .seed = 3, .physical_bytes = 512 };
	struct mkfs_options mkfs = { 0 };
	struct head_options head_options;
	struct mkfs_plan plan;
	struct disk *disk;
	char name[8];

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
					      .head = b->head,
					      .fixed_places = fixed };
	ck_assert_int_eq(fs_open(sim_env(b->rig.sim), disk, &b->rig.options,
				 &b->rig.fs), 0);
	for (unsigned i = 0; i < DIRS; i++) {
		snprintf(name, sizeof(name), "dir%u", i);
		ck_assert_int_eq(rig_mkdir(&b->rig, 1, name, &b->dir[i]), 0);
	}
	learn(b);
}

static void bench_close(struct bench *b)
{
	rig_close(&b->rig);
	head_close(b->head);
	geom_free(b->geom);
	spec_free(b->spec);
	spec_free(b->model);
}

static void fill(uint8_t *data, unsigned file)
{
	for (unsigned i = 0; i < FILE_BYTES; i++)
		data[i] = (uint8_t)(file * 31 + i / 512 * 7 + i);
}

static void put(struct bench *b, unsigned file)
{
	struct fs_op op = { .type = FS_WRITE, .size = FILE_BYTES,
			    .data = b->data };
	char name[8];

	snprintf(name, sizeof(name), "f%u", file);
	ck_assert_int_eq(rig_mknod(&b->rig, b->dir[file % DIRS], name,
				   S_IFREG | 0644, &b->ino[file]), 0);
	op.ino = b->ino[file];
	fill(b->data, file);
	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
}

static void look(struct bench *b, unsigned file)
{
	struct fs_op op = { .type = FS_READ, .size = FILE_BYTES,
			    .buffer = b->data };
	struct fs_attr attr;
	char name[8];

	snprintf(name, sizeof(name), "f%u", file);
	ck_assert_int_eq(rig_lookup(&b->rig, b->dir[file % DIRS], name, &attr),
			 0);
	op.ino = attr.ino;
	fill(b->right, file);
	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
	ck_assert_uint_eq(op.result, FILE_BYTES);
	ck_assert_int_eq(memcmp(b->data, b->right, FILE_BYTES), 0);
}

/* One after the other; how long it took. */
static uint64_t write_synced(struct bench *b)
{
	uint64_t begin_ns = sim_now_ns(b->rig.sim);

	for (unsigned i = 0; i < FILES; i++) {
		struct fs_op sync = { .type = FS_FSYNC };

		put(b, i);
		sync.ino = b->ino[i];
		ck_assert_int_eq(rig_do(&b->rig, &sync), 0);
	}
	return sim_now_ns(b->rig.sim) - begin_ns;
}

START_TEST(chosen_is_quicker)
{
	static struct bench b;
	uint64_t ns[2];

	for (unsigned fixed = 0; fixed < 2; fixed++) {
		bench_open(&b, fixed);
		ns[fixed] = write_synced(&b);
		rig_crash(&b.rig);
		for (unsigned i = 0; i < FILES; i++)
			look(&b, i);
		bench_close(&b);
	}
	ck_assert_uint_lt(ns[0] * 10, ns[1] * 8);
}
END_TEST

static void synced(struct fs_op *op)
{
	unsigned *left = op->owner;

	ck_assert_int_eq(op->rc, 0);
	(*left)--;
}

/* Several at once; accesses of the disk. */
static uint64_t write_together(struct bench *b)
{
	uint64_t accesses = queue_stats(b->rig.fs->queue)->accesses;

	for (unsigned r = 0; r < ROUNDS; r++) {
		struct fs_op sync[AT_ONCE];
		unsigned left = AT_ONCE;

		for (unsigned i = 0; i < AT_ONCE; i++)
			put(b, r * AT_ONCE + i);
		for (unsigned i = 0; i < AT_ONCE; i++) {
			sync[i] = (struct fs_op){
				.type = FS_FSYNC, .done = synced,
				.ino = b->ino[r * AT_ONCE + i], .owner = &left,
			};
			fs_submit(b->rig.fs, &sync[i]);
		}
		while (left)
			fs_run(b->rig.fs, 1);
	}
	return queue_stats(b->rig.fs->queue)->accesses - accesses;
}

START_TEST(together_they_are_few)
{
	static struct bench b;
	uint64_t accesses[2];

	for (unsigned fixed = 0; fixed < 2; fixed++) {
		bench_open(&b, fixed);
		accesses[fixed] = write_together(&b);
		rig_crash(&b.rig);
		for (unsigned i = 0; i < ROUNDS * AT_ONCE; i++)
			look(&b, i);
		bench_close(&b);
	}
	ck_assert_uint_lt(accesses[0], accesses[1] + ROUNDS * 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("place");
	TCase *tcase = tcase_create("place");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, chosen_is_quicker);
	tcase_add_test(tcase, together_they_are_few);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}

/*
 * test_late_place.c - small files on a simulated drive whose head is known:
 * places are chosen when they are written, and cost no more; what somebody
 * waits for stays where it is; what was synced outlives a crash.
 */
#include <stdlib.h>
#include <string.h>

#include "diskmodel/spec.h"
#include "fs/op/fs_internal.h"
#include "fs/mkfs.h"
#include "sched/head/head.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define SMALL_BYTES (16u << 10)
#define LARGE_BYTES (100u << 10)	/* too much for a record of the log */
#define FILES 4000u
#define LARGE_FILES 48u
#define DIRS 20u
#define DIR_FILES (FILES / DIRS)
#define LEARN 300u
#define THINK_NS 60000u		/* between two files: a program that unpacks */
#define AT_ONCE 6u

/* Two drives, %u: the last cylinder, again, and sectors of a track. */
static const char drive_text[] =
	"{ \"surfaces\": 4, \"rpm\": 7200, \"order\": \"cylinder\", "
	"\"head_switch_ms\": 0.8, \"write_settle_ms\": 0.4, "
	"\"overhead\": { \"read_ms\": 0.05, \"write_ms\": 0.2 }, "
	"\"zero_latency\": { \"read\": true, \"write\": true }, "
	"\"seek\": [[1, 1.2], [10, 1.5], [%u, 2.5]], "
	"\"zones\": [ { \"cylinders\": [0, %u], \"sectors_per_track\": %u, "
	"\"track_skew\": 0.15, \"cylinder_skew\": 0.25 } ] }";

struct drive_kind {
	unsigned last_cylinder, track_sectors;
};

static const struct drive_kind long_tracks = { 39, 4000 };
static const struct drive_kind short_tracks = { 459, 340 };

struct bench {
	struct rig rig;
	struct spec *spec, *model;
	struct geom *geom;
	struct head *head;
	uint64_t dir[DIRS], ino[FILES];
	uint8_t data[LARGE_BYTES], right[LARGE_BYTES];
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

static void bench_open(struct bench *b, const struct drive_kind *kind,
		       bool fixed)
{
	struct sim_options sim_options = { .seed = 3, .physical_bytes = 512 };
	struct mkfs_options mkfs = { 0 };
	struct head_options head_options;
	struct mkfs_plan plan;
	struct disk *disk;
	char name[8], text[sizeof(drive_text) + 32];

	snprintf(text, sizeof(text), drive_text, kind->last_cylinder,
		 kind->last_cylinder, kind->track_sectors);
	ck_assert_int_eq(spec_parse(text, "test", &b->spec), 0);
	ck_assert_int_eq(spec_parse(text, "test", &b->model), 0);
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

static void fill(uint8_t *data, unsigned file, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		data[i] = (uint8_t)(file * 31 + i / 512 * 7 + i);
}

static void put(struct bench *b, unsigned file, unsigned bytes)
{
	struct fs_op op = { .type = FS_WRITE, .size = bytes,
			    .data = b->data };
	char name[8];

	snprintf(name, sizeof(name), "f%u", file);
	ck_assert_int_eq(rig_mknod(&b->rig, b->dir[file / DIR_FILES], name,
				   S_IFREG | 0644, &b->ino[file]), 0);
	op.ino = b->ino[file];
	fill(b->data, file, bytes);
	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
}

static void look(struct bench *b, unsigned file, unsigned bytes)
{
	struct fs_op op = { .type = FS_READ, .size = bytes,
			    .buffer = b->data };
	struct fs_attr attr;
	char name[8];

	snprintf(name, sizeof(name), "f%u", file);
	ck_assert_int_eq(rig_lookup(&b->rig, b->dir[file / DIR_FILES], name,
				    &attr), 0);
	op.ino = attr.ino;
	fill(b->right, file, bytes);
	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
	ck_assert_uint_eq(op.result, bytes);
	ck_assert_int_eq(memcmp(b->data, b->right, bytes), 0);
}

static unsigned small_bytes(unsigned file)
{
	uint64_t rng = file + 1;

	return 512 + (unsigned)(test_random(&rng) % (SMALL_BYTES - 512));
}

/* Small files that nobody waits for, and a sync; how long it took. */
static uint64_t write_small(struct bench *b)
{
	struct fs_op sync = { .type = FS_SYNCFS };
	uint64_t begin_ns = sim_now_ns(b->rig.sim);

	for (unsigned i = 0; i < FILES; i++) {
		uint64_t next_ns = sim_now_ns(b->rig.sim) + THINK_NS;

		put(b, i, small_bytes(i));
		while (sim_now_ns(b->rig.sim) < next_ns) {
			env_wait(sim_env(b->rig.sim),
				 (int64_t)(next_ns -
					   sim_now_ns(b->rig.sim)));
			fs_run(b->rig.fs, 0);
		}
	}
	ck_assert_int_eq(rig_do(&b->rig, &sync), 0);
	return sim_now_ns(b->rig.sim) - begin_ns;
}

START_TEST(small_files_get_chosen_places)
{
	static struct bench b;
	uint64_t ns[2];

	for (unsigned fixed = 0; fixed < 2; fixed++) {
		bench_open(&b, &long_tracks, fixed);
		ns[fixed] = write_small(&b);
		rig_crash(&b.rig);
		for (unsigned i = 0; i < FILES; i++)
			look(&b, i, small_bytes(i));
		bench_close(&b);
	}
	/* Somebody has got another place, and it was no bad one. */
	ck_assert_uint_ne(ns[0], ns[1]);
	ck_assert_uint_lt(ns[0] * 100, ns[1] * 110);
}
END_TEST

/* Number of writes for small files that all wait for one sync. */
static uint64_t writes_of_sync(struct bench *b)
{
	struct fs_op sync = { .type = FS_SYNCFS };
	const uint64_t before = sim_counts(b->rig.sim)->writes;

	for (unsigned i = 0; i < FILES; i++)
		put(b, i, small_bytes(i));
	ck_assert_int_eq(rig_do(&b->rig, &sync), 0);
	return sim_counts(b->rig.sim)->writes - before;
}

START_TEST(whole_tracks_need_no_choice)
{
	static struct bench b;
	uint64_t writes[2];

	for (unsigned fixed = 0; fixed < 2; fixed++) {
		bench_open(&b, &short_tracks, fixed);
		writes[fixed] = writes_of_sync(&b);
		bench_close(&b);
	}
	/* Nothing is left free that single files fill later: it was 619 and
	 * 342. */
	ck_assert_uint_lt(writes[0] * 100, writes[1] * 110);
}
END_TEST

static void synced(struct fs_op *op)
{
	unsigned *left = op->owner;

	ck_assert_int_eq(op->rc, 0);
	(*left)--;
}

/* Several wait at once; how long all of them took. */
static uint64_t write_waiting(struct bench *b)
{
	uint64_t begin_ns = sim_now_ns(b->rig.sim);

	for (unsigned first = 0; first < LARGE_FILES; first += AT_ONCE) {
		struct fs_op sync[AT_ONCE];
		unsigned left = AT_ONCE;

		for (unsigned i = 0; i < AT_ONCE; i++)
			put(b, first + i, LARGE_BYTES);
		for (unsigned i = 0; i < AT_ONCE; i++) {
			sync[i] = (struct fs_op){
				.type = FS_FSYNC, .done = synced,
				.ino = b->ino[first + i], .owner = &left,
			};
			fs_submit(b->rig.fs, &sync[i]);
		}
		while (left)
			fs_run(b->rig.fs, 1);
	}
	return sim_now_ns(b->rig.sim) - begin_ns;
}

START_TEST(what_is_waited_for_stays_in_order)
{
	static struct bench b;
	uint64_t ns[2];

	for (unsigned fixed = 0; fixed < 2; fixed++) {
		bench_open(&b, &long_tracks, fixed);
		ns[fixed] = write_waiting(&b);
		rig_crash(&b.rig);
		for (unsigned i = 0; i < LARGE_FILES; i++)
			look(&b, i, LARGE_BYTES);
		bench_close(&b);
	}
	ck_assert_uint_eq(ns[0], ns[1]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("place");
	TCase *tcase = tcase_create("place");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, small_files_get_chosen_places);
	tcase_add_test(tcase, whole_tracks_need_no_choice);
	tcase_add_test(tcase, what_is_waited_for_stays_in_order);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}

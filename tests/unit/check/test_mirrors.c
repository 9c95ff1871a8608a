/*
 * test_mirrors.c - any 64 KiB of a disk that are lost cost no file but those
 * whose data lay there.
 *
 * A small populated disk; each 64 KiB of it that hold anything, in turn, cannot
 * be read or hold garbage, after an unmount or a power cut.  Then it is mounted
 * and everything read; and it is repaired, mounted, and everything read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "check/check.h"
#include "tests/rig/lab.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define DISK_MIB 24u
#define LOST_SECTORS 128u	/* 64 KiB */
#define FILES 120u
#define MAX_BYTES 200000u
#define MAX_RUNS 512u
/* By then the log has second copies of all that was acknowledged. */
#define COPIES_NS 5000000000ull
/* Of the places that hold nothing one in so many is tried, too. */
#define EMPTY_SHARE 16u

enum loss { UNREADABLE, GARBAGE, LOSSES };

/* Whose data lie where. */
struct data_run {
	uint64_t ino, sector, n;
};

struct world {
	struct media *content;
	struct data_run run[MAX_RUNS];
	unsigned runs;
	uint64_t ino[FILES];
};

static uint8_t buffer[MAX_BYTES], wanted[MAX_BYTES];

static void fill(uint8_t *buf, size_t bytes, unsigned seed)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		buf[i] = (uint8_t)(i * 5 + i / 4096 + seed);
}

/* Most are in the tree, some have extents. */
static size_t size_of(unsigned i)
{
	return i % 8 ? 900 + 7 * i : 5000 + 1500 * i;
}

static void name_of(unsigned i, char name[32])
{
	snprintf(name, 32, "a file, number %u", i);
}

/* Every third file has an attribute, every fifth a link, every seventh a
 * symlink beside it. */
static void make_file(struct rig *rig, uint64_t dir, unsigned i, uint64_t *ino)
{
	struct fs_op op = {
		.type = FS_WRITE, .size = (uint32_t)size_of(i), .data = buffer,
	};
	char name[32], other[48];

	name_of(i, name);
	ck_assert_int_eq(rig_mknod(rig, dir, name, S_IFREG | 0640, ino), 0);
	fill(buffer, size_of(i), i);
	op.ino = *ino;
	ck_assert_int_eq(rig_do(rig, &op), 0);
	ck_assert_uint_eq(op.result, size_of(i));
	if (i % 3 == 0)
		ck_assert_int_eq(rig_setxattr(rig, *ino, "user.name", name,
					      strlen(name), 0), 0);
	snprintf(other, sizeof(other), "%s, link", name);
	if (i % 5 == 0)
		ck_assert_int_eq(rig_link(rig, *ino, dir, other), 0);
	snprintf(other, sizeof(other), "%s, symlink", name);
	if (i % 7 == 0)
		ck_assert_int_eq(rig_symlink(rig, dir, other, name, NULL), 0);
}

static void world_runs(struct world *world, struct sim *sim)
{
	struct lab lab = { .sim = sim };
	size_t i;

	lab_load(&lab);
	for (i = 0; i < item_set_count(&lab.set); i++) {
		const struct item_set_item *item = item_set_at(&lab.set, i);
		const struct extent_item *e = item_set_value(&lab.set, item);

		if (item->key.type != ITEM_EXTENT)
			continue;
		ck_assert_uint_lt(world->runs, MAX_RUNS);
		world->run[world->runs++] = (struct data_run){
			item->key.ino, addr_sector(le64_get(e->addr)),
			le64_get(e->sectors),
		};
	}
	lab_unload(&lab);
}

/* A clean content is one that was unmounted; else power has gone when the log
 * had its second copies. */
static void world_content(struct world *world, struct rig *rig, bool clean)
{
	struct sim *sim = rig->sim;
	uint64_t end;

	if (clean) {
		ck_assert_int_eq(fs_close(rig->fs), 0);
		world->content = sim_content(sim);
		return;
	}
	ck_assert_int_eq(rig_sync(rig), 0);
	for (end = sim_now_ns(sim) + COPIES_NS; sim_now_ns(sim) < end;) {
		fs_run(rig->fs, 1);
		rig_settle(rig);
		sim_advance(sim, 1000000);
	}
	ck_assert_int_eq(sim_power_cut(sim, SIM_CUT_DROP, 1), 0);
	fs_abandon(rig->fs);
	sim_restart(sim);
	world->content = sim_content(sim);
	/* The replay says where the data lie. */
	ck_assert_int_eq(fs_open(sim_env(sim), sim_disk(sim), &rig->options,
				 &rig->fs), 0);
	ck_assert_int_eq(fs_close(rig->fs), 0);
}

static void world_make(struct world *world, bool clean)
{
	uint64_t dir = TRAX_ROOT_INO;
	struct rig rig;
	char name[32];
	unsigned i;

	memset(world, 0, sizeof(*world));
	rig_open(&rig, DISK_MIB, 9);
	for (i = 0; i < FILES; i++) {
		if (i % 30 == 0) {
			snprintf(name, sizeof(name), "dir %u", i);
			ck_assert_int_eq(rig_mkdir(&rig, dir, name, &dir), 0);
		}
		make_file(&rig, dir, i, &world->ino[i]);
		if (i % 40 == 0)
			ck_assert_int_eq(rig_sync(&rig), 0);
	}
	world_content(world, &rig, clean);
	world_runs(world, rig.sim);
	sim_free(rig.sim);
}

/* Did data of this file lie in what is lost? */
static bool is_hit(const struct world *world, uint64_t ino, uint64_t lost)
{
	unsigned i;

	for (i = 0; i < world->runs; i++)
		if (world->run[i].ino == ino &&
		    world->run[i].sector < lost + LOST_SECTORS &&
		    lost < world->run[i].sector + world->run[i].n)
			return true;
	return false;
}

/* NULL, or what is wrong with a file. */
static const char *file_wrong(struct rig *rig, uint64_t dir, unsigned i,
			      bool hit)
{
	struct fs_op op = {
		.type = FS_READ, .size = (uint32_t)size_of(i),
		.buffer = buffer,
	};
	char name[32], other[48];
	struct fs_attr attr;
	int rc;

	name_of(i, name);
	if (rig_lookup(rig, dir, name, &attr))
		return "name";
	if (attr.size != size_of(i) || attr.mode != (S_IFREG | 0640) ||
	    attr.nlink != 1u + (i % 5 == 0))
		return "inode";
	op.ino = attr.ino;
	rc = rig_do(rig, &op);
	fill(wanted, size_of(i), i);
	if (rc ? !hit : op.result != size_of(i) ||
			memcmp(buffer, wanted, size_of(i)))
		return "data";
	if (i % 3 == 0 &&
	    (rig_getxattr(rig, attr.ino, "user.name", other, sizeof(other)) !=
		     (int)strlen(name) ||
	     memcmp(other, name, strlen(name))))
		return "attribute";
	snprintf(other, sizeof(other), "%s, link", name);
	if (i % 5 == 0 && rig_lookup(rig, dir, other, &attr))
		return "link";
	snprintf(other, sizeof(other), "%s, symlink", name);
	if (i % 7 == 0 && (rig_lookup(rig, dir, other, &attr) ||
			   !S_ISLNK(attr.mode) || attr.size != strlen(name)))
		return "symlink";
	return NULL;
}

static void expect_files(const struct world *world, struct rig *rig,
			 uint64_t lost, const char *when)
{
	uint64_t dir = TRAX_ROOT_INO;
	struct fs_attr attr;
	const char *why;
	char name[32];
	unsigned i;

	ck_assert_msg(!fs_open(sim_env(rig->sim), sim_disk(rig->sim),
			       &rig->options, &rig->fs),
		      "%llu lost, %s: no mount", (unsigned long long)lost,
		      when);
	for (i = 0; i < FILES; i++) {
		if (i % 30 == 0) {
			snprintf(name, sizeof(name), "dir %u", i);
			ck_assert_msg(!rig_lookup(rig, dir, name, &attr),
				      "%llu lost, %s: %s",
				      (unsigned long long)lost, when, name);
			dir = attr.ino;
		}
		why = file_wrong(rig, dir, i,
				 is_hit(world, world->ino[i], lost));
		ck_assert_msg(!why, "%llu lost, %s: file %u: %s",
			      (unsigned long long)lost, when, i, why);
	}
	ck_assert_int_eq(fs_close(rig->fs), 0);
}

static void lose(struct sim *sim, uint64_t lost, enum loss loss)
{
	uint64_t state = lost, *word;

	if (loss == UNREADABLE) {
		ck_assert_int_eq(sim_damage(sim, lost, LOST_SECTORS), 0);
		return;
	}
	word = aligned_alloc(4096, LOST_SECTORS * SECTOR_BYTES);
	for (unsigned i = 0; i < LOST_SECTORS * SECTOR_BYTES / 8; i++)
		word[i] = test_random(&state);
	ck_assert_int_eq(disk_write(sim_disk(sim), lost, LOST_SECTORS, word),
			 0);
	free(word);
}

static struct rig rig_of(const struct world *world, uint64_t lost,
			 enum loss loss)
{
	struct sim_options options = { .seed = 9, .content = world->content };
	struct rig rig = { .options.memory_bytes = 64 << 20 };

	rig.sim = sim_new(NULL, (uint64_t)DISK_MIB << 11, &options);
	ck_assert_ptr_nonnull(rig.sim);
	lose(rig.sim, lost, loss);
	return rig;
}

static bool holds_nothing(const struct world *world, uint64_t sector)
{
	static uint8_t data[LOST_SECTORS * SECTOR_BYTES];
	size_t i;

	ck_assert_int_eq(media_read(world->content, sector, LOST_SECTORS, data,
				    NULL), 0);
	for (i = 0; i < sizeof(data); i++)
		if (data[i])
			return false;
	return true;
}

START_TEST(any_64_kib_lost_cost_only_the_data_there)
{
	struct check_options options = { .repair = true, .data = true };
	const uint64_t sectors = (uint64_t)DISK_MIB << 11;
	struct check_result result;
	unsigned empty = 0;
	struct world world;
	uint64_t lost;
	struct rig rig;

	world_make(&world, _i / LOSSES);
	for (lost = 0; lost < sectors; lost += LOST_SECTORS) {
		if (holds_nothing(&world, lost) && empty++ % EMPTY_SHARE)
			continue;
		rig = rig_of(&world, lost, _i % LOSSES);
		expect_files(&world, &rig, lost, "mounted");
		sim_free(rig.sim);
		rig = rig_of(&world, lost, _i % LOSSES);
		ck_assert_int_eq(check_run(sim_env(rig.sim),
					   sim_disk(rig.sim), &options,
					   &result), 0);
		expect_files(&world, &rig, lost, "repaired");
		sim_free(rig.sim);
	}
	media_free(world.content);
}
END_TEST

static Suite *mirrors_suite(void)
{
	Suite *suite = suite_create("mirrors");
	TCase *tcase = tcase_create("a place is lost");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, any_64_kib_lost_cost_only_the_data_there, 0,
			    2 * LOSSES);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(mirrors_suite());
}

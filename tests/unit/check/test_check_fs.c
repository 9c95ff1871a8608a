/*
 * test_check_fs.c - the check on what the file system itself leaves behind:
 * crashes, logs to be replayed, roots that are gone.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "check/check.h"
#include "format/format.h"
#include "tests/rig/lab.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define FILES 60u
#define BIG_BYTES 300000u
#define DISK_MIB 64u

struct seen {
	char text[1 << 16];
};

static bool seen_found(void *arg, const struct check_found *found)
{
	struct seen *seen = arg;
	size_t used = strlen(seen->text);

	snprintf(seen->text + used, sizeof(seen->text) - used, "[%s]%s %s\n",
		 found->problem->name, found->again ? " again" : "",
		 found->text);
	return true;
}

static int run(struct rig *rig, bool repair, struct seen *seen,
	       struct check_result *result)
{
	struct check_options options = {
		.repair = repair,
		.data = true,
		.found = seen_found,
		.arg = seen,
	};

	memset(seen, 0, sizeof(*seen));
	return check_run(sim_env(rig->sim), sim_disk(rig->sim), &options,
			 result);
}

static void expect_silent(struct rig *rig)
{
	struct check_result result;
	struct seen seen;

	ck_assert_int_eq(run(rig, false, &seen, &result), 0);
	ck_assert_msg(!seen.text[0], "not silent:\n%s", seen.text);
}

static void fill(uint8_t *buf, size_t bytes, unsigned seed)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		buf[i] = (uint8_t)(i * 7 + i / 4096 + seed);
}

static size_t size_of(unsigned i)
{
	return i % 4 == 0 ? BIG_BYTES : 100 + 97 * i;
}

static int io(struct rig *rig, enum fs_op_type type, uint64_t ino,
	      uint8_t *buf, size_t bytes)
{
	struct fs_op op = {
		.type = type, .ino = ino, .size = bytes, .data = buf,
		.buffer = buf,
	};
	int rc = rig_do(rig, &op);

	ck_assert(rc || op.result == bytes);
	return rc;
}

static void make_files(struct rig *rig)
{
	uint8_t *buf = malloc(BIG_BYTES);
	uint64_t dir, ino;
	char name[32];
	unsigned i;

	ck_assert_int_eq(rig_mkdir(rig, TRAX_ROOT_INO, "dir", &dir), 0);
	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file %u", i);
		ck_assert_int_eq(rig_mknod(rig, dir, name, S_IFREG | 0644,
					   &ino), 0);
		fill(buf, size_of(i), i);
		ck_assert_int_eq(io(rig, FS_WRITE, ino, buf, size_of(i)), 0);
	}
	free(buf);
}

static void expect_files(struct rig *rig)
{
	uint8_t *buf = malloc(BIG_BYTES), *want = malloc(BIG_BYTES);
	struct fs_attr dir, attr;
	char name[32];
	unsigned i;

	ck_assert_int_eq(rig_lookup(rig, TRAX_ROOT_INO, "dir", &dir), 0);
	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file %u", i);
		ck_assert_int_eq(rig_lookup(rig, dir.ino, name, &attr), 0);
		ck_assert_uint_eq(attr.size, size_of(i));
		fill(want, size_of(i), i);
		ck_assert_int_eq(io(rig, FS_READ, attr.ino, buf, size_of(i)),
				 0);
		ck_assert(!memcmp(buf, want, size_of(i)));
	}
	free(buf);
	free(want);
}

static void mount(struct rig *rig)
{
	ck_assert_int_eq(fs_open(sim_env(rig->sim), sim_disk(rig->sim),
				 &rig->options, &rig->fs), 0);
}

/* Power goes after everything has been synced, but nothing unmounted. */
static void crash(struct rig *rig)
{
	ck_assert_int_eq(rig_sync(rig), 0);
	ck_assert_int_eq(sim_power_cut(rig->sim, SIM_CUT_DROP, 1), 0);
	fs_abandon(rig->fs);
	sim_restart(rig->sim);
}

static struct super read_super(struct rig *rig)
{
	uint8_t *buf = aligned_alloc(4096, TRAX_BLOCK_BYTES);
	struct super super;

	ck_assert_int_eq(disk_read(sim_disk(rig->sim), TRAX_SUPER_SECTOR,
				   TRAX_BLOCK_SECTORS, buf), 0);
	ck_assert_ptr_null(super_decode(buf, TRAX_SUPER_SECTOR, &super));
	free(buf);
	return super;
}

START_TEST(a_repair_replays_the_log)
{
	struct check_result result;
	struct seen seen;
	struct rig rig;

	rig_open(&rig, DISK_MIB, 3);
	make_files(&rig);
	crash(&rig);
	/* Without writing, only the last root can be looked at. */
	ck_assert_int_eq(run(&rig, false, &seen, &result), 0);
	ck_assert(!result.was_clean && !result.found && !result.changed);
	ck_assert_ptr_nonnull(strstr(seen.text, "[not-clean]"));
	ck_assert_int_eq(run(&rig, true, &seen, &result), 0);
	ck_assert(result.replayed && !result.found && !result.left);
	expect_silent(&rig);
	mount(&rig);
	expect_files(&rig);
	rig_close(&rig);
}
END_TEST

/* The highest sequence number in a log track; with `kill` not 0 all records of
 * that number are overwritten. */
static uint64_t scan_track(struct rig *rig, const struct super *super,
			   const struct super_track *track, uint64_t kill)
{
	uint8_t *buf = aligned_alloc(4096, TRAX_MAX_RECORD_BYTES);
	struct disk *disk = sim_disk(rig->sim);
	uint64_t at = (track->sector + 7) & ~7ull, max = 0;
	uint64_t end = track->sector + track->sectors;

	for (; at + 8 <= end; at += 8) {
		uint64_t n = TRAX_MAX_RECORD_BYTES / SECTOR_BYTES;
		const struct log_header *h = (const void *)buf;

		if (n > end - at)
			n = (end - at) & ~7ull;
		ck_assert_int_eq(disk_read(disk, at, (uint32_t)n, buf), 0);
		if (log_header_verify(buf, n * SECTOR_BYTES, super->uuid, at))
			continue;
		if (le64_get(h->seq) > max)
			max = le64_get(h->seq);
		if (kill && le64_get(h->seq) == kill) {
			n = le32_get(h->bytes) / SECTOR_BYTES;
			memset(buf, 0, n * SECTOR_BYTES);
			ck_assert_int_eq(disk_write(disk, at, (uint32_t)n,
						    buf), 0);
		}
	}
	free(buf);
	return max;
}

static uint64_t scan_log(struct rig *rig, uint64_t kill)
{
	struct super super = read_super(rig);
	uint64_t max = 0, here;
	unsigned i;

	for (i = 0; i < super.log_tracks; i++) {
		here = scan_track(rig, &super, &super.log[i], kill);
		if (here > max)
			max = here;
	}
	return max;
}

/* An acknowledged record is gone, and its mirror: what comes before it counts,
 * though the file system itself will only be read. */
START_TEST(records_before_a_lost_one_count)
{
	struct check_result result;
	struct seen seen;
	struct fs_attr attr;
	struct rig rig;
	uint64_t max;
	unsigned i;
	char name[32];

	rig_open(&rig, DISK_MIB, 4);
	make_files(&rig);
	for (i = 0; i < 8; i++) {
		ck_assert_int_eq(rig_sync(&rig), 0);
		snprintf(name, sizeof(name), "later %u", i);
		ck_assert_int_eq(rig_mkdir(&rig, TRAX_ROOT_INO, name, NULL),
				 0);
	}
	crash(&rig);
	max = scan_log(&rig, 0);
	ck_assert_uint_gt(max, 4);
	scan_log(&rig, max - 2);
	ck_assert_int_eq(run(&rig, true, &seen, &result), 0);
	ck_assert_msg(strstr(seen.text, "[log-replay]") != NULL, "found:\n%s",
		      seen.text);
	ck_assert_msg(!result.left && result.changed, "left:\n%s", seen.text);
	expect_silent(&rig);
	mount(&rig);
	expect_files(&rig);
	ck_assert_int_eq(rig_lookup(&rig, TRAX_ROOT_INO, "later 0", &attr), 0);
	ck_assert_int_eq(rig_lookup(&rig, TRAX_ROOT_INO, "later 7", &attr),
			 -ENOENT);
	rig_close(&rig);
}
END_TEST

/* Every root is gone: all is found again from the leaves. */
START_TEST(without_roots_all_is_found_from_leaves)
{
	struct check_result result;
	struct super super;
	struct seen seen;
	struct rig rig;
	unsigned i;

	rig_open(&rig, DISK_MIB, 5);
	make_files(&rig);
	ck_assert_int_eq(fs_close(rig.fs), 0);
	super = read_super(&rig);
	for (i = 0; i < 4; i++)
		sim_damage(rig.sim, super.area_sector[i / 2][i % 2], 8);
	ck_assert_int_eq(run(&rig, true, &seen, &result), 0);
	ck_assert_msg(!result.left, "left:\n%s", seen.text);
	expect_silent(&rig);
	mount(&rig);
	expect_files(&rig);
	rig_close(&rig);
}
END_TEST

static int read_at(struct rig *rig, uint64_t ino, uint64_t offset)
{
	uint8_t buf[TRAX_BLOCK_BYTES];
	struct fs_op op = {
		.type = FS_READ, .ino = ino, .offset = offset,
		.size = sizeof(buf), .buffer = buf,
	};

	return rig_do(rig, &op);
}

/* Overwrites the k-th leaf on the disk, and its mirror; false: there are
 * fewer. */
static bool zero_leaf(struct rig *rig, unsigned k)
{
	struct disk *disk = sim_disk(rig->sim);
	uint8_t *buf = aligned_alloc(4096, TRAX_NODE_BYTES);
	const struct node_header *h = (const void *)buf;
	uint64_t at, mirror;
	bool found = false;

	for (at = 0; at + TRAX_NODE_SECTORS <= disk->limits.sectors && !found;
	     at += 8) {
		ck_assert_int_eq(disk_read(disk, at, TRAX_NODE_SECTORS, buf),
				 0);
		if (le32_get(h->magic) != TRAX_NODE_MAGIC || h->level ||
		    le64_get(h->addr) != at || k--)
			continue;
		mirror = addr_sector(le64_get(h->addr2));
		memset(buf, 0, TRAX_NODE_BYTES);
		ck_assert_int_eq(disk_write(disk, at, TRAX_NODE_SECTORS, buf),
				 0);
		ck_assert_uint_ne(mirror, 0);
		ck_assert_int_eq(disk_write(disk, mirror, TRAX_NODE_SECTORS,
					    buf), 0);
		found = true;
	}
	free(buf);
	return found;
}

/* Files that lost data say so; returns how many, or that have no name. */
static unsigned expect_no_wrong_bytes(struct rig *rig)
{
	uint8_t *buf = malloc(BIG_BYTES), *want = malloc(BIG_BYTES);
	struct fs_attr dir, attr;
	unsigned i, lost = 0;
	char name[32];
	int rc;

	if (rig_lookup(rig, TRAX_ROOT_INO, "dir", &dir))
		dir.ino = TRAX_ROOT_INO;
	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file %u", i);
		rc = rig_lookup(rig, dir.ino, name, &attr);
		if (!rc && attr.size == size_of(i))
			rc = io(rig, FS_READ, attr.ino, buf, size_of(i));
		if (rc) {
			lost++;
			continue;
		}
		fill(want, size_of(i), i);
		ck_assert_msg(attr.size != size_of(i) ||
			      !memcmp(buf, want, size_of(i)),
			      "%s has wrong bytes", name);
	}
	free(buf);
	free(want);
	return lost;
}

/* What has lost its data does not read as zeros, until it is emptied. */
static void empty_lost(struct rig *rig)
{
	struct fs_op cut = { .type = FS_SETATTR, .flags = FS_SET_SIZE };
	uint8_t buf[5000] = { 1 };
	struct fs_attr dir, attr;
	char name[32];
	unsigned i;

	if (rig_lookup(rig, TRAX_ROOT_INO, "dir", &dir))
		return;
	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file %u", i);
		if (rig_lookup(rig, dir.ino, name, &attr) || attr.size < 5000 ||
		    !io(rig, FS_READ, attr.ino, buf, 5000))
			continue;
		cut.ino = attr.ino;
		cut.attr.size = 0;
		ck_assert_int_eq(rig_do(rig, &cut), 0);
		cut.attr.size = 5000;
		ck_assert_int_eq(rig_do(rig, &cut), 0);
		ck_assert_int_eq(io(rig, FS_READ, attr.ino, buf, 5000), 0);
		ck_assert_int_eq(buf[0], 0);
	}
}

START_TEST(without_a_leaf_the_rest_is_repaired)
{
	struct check_result result;
	unsigned k, lost = 0;
	struct seen seen;
	struct rig rig;

	for (k = 0;; k++) {
		rig_open(&rig, DISK_MIB, 6);
		make_files(&rig);
		ck_assert_int_eq(fs_close(rig.fs), 0);
		if (!zero_leaf(&rig, k))
			break;
		ck_assert_int_eq(run(&rig, true, &seen, &result), 0);
		ck_assert_msg(!result.left, "left:\n%s", seen.text);
		expect_silent(&rig);
		mount(&rig);
		lost += expect_no_wrong_bytes(&rig);
		empty_lost(&rig);
		rig_close(&rig);
	}
	ck_assert_uint_gt(k, 1);
	ck_assert_uint_gt(lost, 0);
	mount(&rig);
	expect_files(&rig);
	rig_close(&rig);
}
END_TEST

/* Files of several blocks, each with its number in it. */
#define OWNED_FILES 150u
#define OWNED_BYTES 20000u

static void make_owned(struct rig *rig, uint64_t *ino)
{
	uint8_t *buf = malloc(OWNED_BYTES);
	uint64_t dir;
	char name[32];
	unsigned i;

	ck_assert_int_eq(rig_mkdir(rig, TRAX_ROOT_INO, "dir", &dir), 0);
	for (i = 0; i < OWNED_FILES; i++) {
		snprintf(name, sizeof(name), "owned %u", i);
		ck_assert_int_eq(rig_mknod(rig, dir, name, S_IFREG | 0644,
					   &ino[i]), 0);
		fill(buf, OWNED_BYTES, i);
		ck_assert_int_eq(io(rig, FS_WRITE, ino[i], buf, OWNED_BYTES),
				 0);
	}
	free(buf);
}

/* How many files have neither their name nor a place in lost+found with all
 * their data. */
static unsigned count_gone(struct rig *rig, const uint64_t *ino)
{
	uint8_t *buf = malloc(OWNED_BYTES), *want = malloc(OWNED_BYTES);
	struct fs_attr dir = { 0 }, lost = { 0 }, attr;
	unsigned i, gone = 0;
	char name[32];

	rig_lookup(rig, TRAX_ROOT_INO, "dir", &dir);
	rig_lookup(rig, TRAX_ROOT_INO, "lost+found", &lost);
	for (i = 0; i < OWNED_FILES; i++) {
		bool found;

		snprintf(name, sizeof(name), "owned %u", i);
		found = dir.ino && !rig_lookup(rig, dir.ino, name, &attr);
		snprintf(name, sizeof(name), "#%llu",
			 (unsigned long long)ino[i]);
		if (!found && lost.ino)
			found = !rig_lookup(rig, lost.ino, name, &attr);
		fill(want, OWNED_BYTES, i);
		if (!found || attr.size < OWNED_BYTES ||
		    io(rig, FS_READ, attr.ino, buf, OWNED_BYTES) ||
		    memcmp(buf, want, OWNED_BYTES))
			gone++;
	}
	free(buf);
	free(want);
	return gone;
}

/* Overwrites all leaves, of any age, that have extents and no owners. */
static void zero_extent_leaves(struct rig *rig)
{
	struct disk *disk = sim_disk(rig->sim);
	uint8_t *buf = aligned_alloc(4096, TRAX_NODE_BYTES);
	const struct node_header *h = (const void *)buf;
	const struct leaf_slot *slot = (const void *)(h + 1);
	uint64_t at;
	unsigned i;

	for (at = 0; at + TRAX_NODE_SECTORS <= disk->limits.sectors; at += 8) {
		bool zero = false;

		ck_assert_int_eq(disk_read(disk, at, TRAX_NODE_SECTORS, buf),
				 0);
		if (le32_get(h->magic) != TRAX_NODE_MAGIC || h->level ||
		    (le64_get(h->addr) != at && le64_get(h->addr2) != at))
			continue;
		for (i = 0; i < le16_get(h->n); i++)
			zero |= slot[i].key.type == ITEM_EXTENT;
		if (!zero || !key_get(&slot[0].key).ino)
			continue;
		memset(buf, 0, TRAX_NODE_BYTES);
		ck_assert_int_eq(disk_write(disk, at, TRAX_NODE_SECTORS, buf),
				 0);
	}
	free(buf);
}

/* All leaves with extents are gone, whatever their age, but not those with
 * owners: these say where the data lie. */
START_TEST(files_come_back_from_owners)
{
	struct check_result result;
	uint64_t ino[OWNED_FILES];
	struct seen seen;
	struct rig rig;

	rig_open(&rig, DISK_MIB, 8);
	make_owned(&rig, ino);
	ck_assert_int_eq(fs_close(rig.fs), 0);
	zero_extent_leaves(&rig);
	ck_assert_int_eq(run(&rig, true, &seen, &result), 0);
	ck_assert_msg(!result.left, "left:\n%s", seen.text);
	ck_assert_ptr_nonnull(strstr(seen.text, "[data-unsure]"));
	expect_silent(&rig);
	mount(&rig);
	ck_assert_uint_eq(count_gone(&rig, ino), 0);
	rig_close(&rig);
}
END_TEST

/* Without any one leaf it mounts, and what is left can be read. */
START_TEST(without_a_leaf_it_mounts)
{
	struct rig rig;
	unsigned k;

	for (k = 0;; k++) {
		rig_open(&rig, DISK_MIB, 6);
		make_files(&rig);
		ck_assert_int_eq(fs_close(rig.fs), 0);
		if (!zero_leaf(&rig, k))
			break;
		rig.options.read_only = _i;
		mount(&rig);
		expect_no_wrong_bytes(&rig);
		fs_close(rig.fs);
		sim_free(rig.sim);
	}
	ck_assert_uint_gt(k, 1);
	mount(&rig);
	rig_close(&rig);
}
END_TEST

/* A file that has lost an extent: the rest can be read, the gap cannot, until
 * the file is emptied. */
START_TEST(a_lost_extent_does_not_read_as_zeros)
{
	struct fs_op cut = { .type = FS_SETATTR, .ino = LAB_HOLES,
			     .flags = FS_SET_SIZE };
	uint8_t buf[TRAX_BLOCK_BYTES];
	struct extent_item *extent;
	struct check_result result;
	struct rig rig = { 0 };
	struct seen seen;
	struct lab lab;

	lab_init(&lab);
	lab_load(&lab);
	extent = lab_value(&lab, key_make(LAB_HOLES, ITEM_EXTENT,
					  300 * TRAX_BLOCK_SECTORS));
	extent->addr = le64_put(addr_make(0, LAB_SECTORS - 4));
	lab_store(&lab);
	rig.sim = lab.sim;
	ck_assert_int_eq(run(&rig, true, &seen, &result), 0);
	ck_assert_msg(strstr(seen.text, "[data-lost]") != NULL, "found:\n%s",
		      seen.text);
	expect_silent(&rig);
	mount(&rig);
	ck_assert_int_eq(io(&rig, FS_READ, LAB_HOLES, buf, sizeof(buf)), 0);
	ck_assert_int_eq(read_at(&rig, LAB_HOLES, 300 * TRAX_BLOCK_BYTES),
			 -EIO);
	ck_assert_int_eq(rig_do(&rig, &cut), 0);
	cut.attr.size = TRAX_BLOCK_BYTES;
	ck_assert_int_eq(rig_do(&rig, &cut), 0);
	ck_assert_int_eq(io(&rig, FS_READ, LAB_HOLES, buf, sizeof(buf)), 0);
	ck_assert_int_eq(fs_close(rig.fs), 0);
	lab_fini(&lab);
}
END_TEST

static Suite *check_fs_suite(void)
{
	Suite *suite = suite_create("check_fs");
	TCase *tcase = tcase_create("left behind");

	tcase_add_test(tcase, a_repair_replays_the_log);
	tcase_add_test(tcase, records_before_a_lost_one_count);
	tcase_add_test(tcase, without_roots_all_is_found_from_leaves);
	tcase_add_test(tcase, without_a_leaf_the_rest_is_repaired);
	tcase_add_test(tcase, files_come_back_from_owners);
	tcase_add_loop_test(tcase, without_a_leaf_it_mounts, 0, 2);
	tcase_add_test(tcase, a_lost_extent_does_not_read_as_zeros);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(check_fs_suite());
}

/*
 * test_grow.c - a file system grows onto a disk that has become larger: what is
 * in it stays, what is new can be used, and a power cut at every write leaves
 * either of the two, whole.
 */
#include <errno.h>
#include <string.h>

#include "check/check.h"
#include "fs/grow.h"
#include "fs/mkfs.h"
#include "fs/op/fs_internal.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define ROOT 1u
#define MIB_SECTORS 2048u
#define OLD_MIB 64u
#define NEW_MIB 200u
#define FILES 40u
#define FILE_BYTES 70000u
#define LARGE_BYTES (1u << 20)
#define MOST_MOMENTS 400u

static struct rig rig;
static struct sim_moment *moment[MOST_MOMENTS];
static unsigned moments;
static uint8_t content[LARGE_BYTES];

/* ---- A disk that becomes larger ---- */

static void set_size(uint64_t mib)
{
	sim_disk(rig.sim)->limits.sectors = mib * MIB_SECTORS;
}

static void make(uint64_t old_mib, uint64_t new_mib, const struct geom *geom)
{
	struct sim_options options = { .seed = 3, .volatile_cache = true };
	const struct mkfs_options mkfs = { .geom = geom };
	struct mkfs_plan plan;
	struct disk *disk;

	memset(&rig, 0, sizeof(rig));
	rig.options.memory_bytes = 64 << 20;
	rig.sim = sim_new(NULL, new_mib * MIB_SECTORS, &options);
	ck_assert_ptr_nonnull(rig.sim);
	disk = sim_disk(rig.sim);
	set_size(old_mib);
	ck_assert_int_eq(mkfs_plan(sim_env(rig.sim), &disk->limits, &mkfs,
				   &plan), 0);
	ck_assert_int_eq(mkfs_write(sim_env(rig.sim), disk, &mkfs, &plan), 0);
}

static void open_rig(struct rig *r)
{
	ck_assert_int_eq(fs_open(sim_env(r->sim), sim_disk(r->sim),
				 &r->options, &r->fs), 0);
}

static bool is_problem(void *arg, const struct check_found *found)
{
	(void)arg;
	ck_abort_msg("the checker: %s", found->text);
	return false;
}

static void check_disk(struct sim *sim)
{
	struct check_options options = { .data = true, .found = is_problem };
	struct check_result result;

	ck_assert_int_eq(check_run(sim_env(sim), sim_disk(sim), &options,
				   &result), 0);
	ck_assert_uint_eq(result.found, 0);
}

static void close_rig(struct rig *r)
{
	ck_assert_int_eq(fs_close(r->fs), 0);
	check_disk(r->sim);
}

/* ---- What is in it ---- */

static void write_file(struct rig *r, const char *name, uint8_t what,
		       uint64_t bytes)
{
	struct fs_op op = { .type = FS_WRITE, .data = content };

	ck_assert_int_eq(rig_mknod(r, ROOT, name, S_IFREG | 0644, &op.ino), 0);
	memset(content, what, sizeof(content));
	for (; op.offset < bytes; op.offset += op.size) {
		op.size = bytes - op.offset < LARGE_BYTES ?
			  bytes - op.offset : LARGE_BYTES;
		ck_assert_int_eq(rig_do(r, &op), 0);
	}
}

static void read_file(struct rig *r, const char *name, uint8_t what,
		      uint64_t bytes)
{
	struct fs_op op = { .type = FS_READ, .buffer = content,
			    .size = LARGE_BYTES };
	struct fs_attr attr;

	ck_assert_int_eq(rig_lookup(r, ROOT, name, &attr), 0);
	ck_assert_uint_eq(attr.size, bytes);
	op.ino = attr.ino;
	for (; op.offset < bytes; op.offset += op.result) {
		memset(content, ~what, sizeof(content));
		ck_assert_int_eq(rig_do(r, &op), 0);
		ck_assert_uint_gt(op.result, 0);
		for (size_t i = 0; i < op.result; i += 511)
			ck_assert_uint_eq(content[i], what);
	}
}

static const char *name_of(unsigned i)
{
	static char name[16];

	snprintf(name, sizeof(name), "file%u", i);
	return name;
}

static void write_files(struct rig *r)
{
	for (unsigned i = 0; i < FILES; i++)
		write_file(r, name_of(i), (uint8_t)(i + 1), FILE_BYTES);
}

static void read_files(struct rig *r)
{
	for (unsigned i = 0; i < FILES; i++)
		read_file(r, name_of(i), (uint8_t)(i + 1), FILE_BYTES);
}

static uint64_t total_mib(struct rig *r)
{
	struct fs_op op = { .type = FS_STATFS };

	ck_assert_int_eq(rig_do(r, &op), 0);
	return op.statfs.blocks >> 8;
}

static void grow(uint64_t was_mib, uint64_t now_mib)
{
	struct fs_grown grown;

	ck_assert_int_eq(fs_grow(sim_env(rig.sim), sim_disk(rig.sim), &grown),
			 0);
	ck_assert_uint_eq(grown.was, was_mib * MIB_SECTORS);
	ck_assert_uint_eq(grown.now, now_mib * MIB_SECTORS);
	check_disk(rig.sim);
}

static void make_with_files(uint64_t old_mib, uint64_t new_mib)
{
	make(old_mib, new_mib, NULL);
	open_rig(&rig);
	write_files(&rig);
	close_rig(&rig);
	set_size(new_mib);
}

START_TEST(what_is_in_it_stays)
{
	make_with_files(OLD_MIB, NEW_MIB);
	grow(OLD_MIB, NEW_MIB);
	open_rig(&rig);
	read_files(&rig);
	ck_assert_uint_ge(total_mib(&rig), NEW_MIB - 4);
	/* More than the old one had room for. */
	write_file(&rig, "large", 'L', 100 << 20);
	rig_sync(&rig);
	close_rig(&rig);
	open_rig(&rig);
	read_files(&rig);
	read_file(&rig, "large", 'L', 100 << 20);
	close_rig(&rig);
	sim_free(rig.sim);
}
END_TEST

/* Groups of 1 GiB: a part of one becomes whole, and others come. */
START_TEST(groups_are_added)
{
	make_with_files(700, 2500);
	set_size(1000);
	grow(700, 1000);
	set_size(1024);
	grow(1000, 1024);
	set_size(2500);
	grow(1024, 2500);
	open_rig(&rig);
	read_files(&rig);
	ck_assert_uint_ge(total_mib(&rig), 2500 - 30);
	write_file(&rig, "large", 'L', 1200ull << 20);
	read_file(&rig, "large", 'L', 1200ull << 20);
	close_rig(&rig);
	sim_free(rig.sim);
}
END_TEST

START_TEST(a_log_is_replayed_before)
{
	make_with_files(OLD_MIB, NEW_MIB);
	open_rig(&rig);
	write_file(&rig, "late", 'l', 3000);
	ck_assert_int_eq(rig_sync(&rig), 0);
	ck_assert_int_eq(sim_power_cut(rig.sim, SIM_CUT_DROP, 1), 0);
	fs_abandon(rig.fs);
	sim_restart(rig.sim);
	grow(OLD_MIB, NEW_MIB);
	open_rig(&rig);
	read_files(&rig);
	read_file(&rig, "late", 'l', 3000);
	close_rig(&rig);
	sim_free(rig.sim);
}
END_TEST

START_TEST(too_little_is_refused)
{
	struct fs_grown grown;

	make_with_files(OLD_MIB, NEW_MIB);
	set_size(OLD_MIB);
	grow(OLD_MIB, OLD_MIB);
	sim_disk(rig.sim)->limits.sectors += 16;
	ck_assert_int_eq(fs_grow(sim_env(rig.sim), sim_disk(rig.sim), &grown),
			 -ENOSPC);
	open_rig(&rig);
	read_files(&rig);
	ck_assert_uint_lt(total_mib(&rig), OLD_MIB);
	close_rig(&rig);
	sim_free(rig.sim);
}
END_TEST

/* What is known of a smaller disk is not known of this one. */
START_TEST(profile_is_dropped)
{
	struct geom *geom;

	ck_assert_int_eq(geom_regular(OLD_MIB * MIB_SECTORS, 1024, &geom), 0);
	make(OLD_MIB, NEW_MIB, geom);
	geom_free(geom);
	open_rig(&rig);
	ck_assert_uint_ne(fs_super(rig.fs)->geom_sector, 0);
	write_files(&rig);
	close_rig(&rig);
	set_size(NEW_MIB);
	grow(OLD_MIB, NEW_MIB);
	open_rig(&rig);
	ck_assert_uint_eq(fs_super(rig.fs)->geom_sector, 0);
	read_files(&rig);
	close_rig(&rig);
	sim_free(rig.sim);
}
END_TEST

/* The other two superblocks tell of it. */
START_TEST(superblocks_stand_in)
{
	uint64_t place[3];

	make_with_files(OLD_MIB, NEW_MIB);
	grow(OLD_MIB, NEW_MIB);
	open_rig(&rig);
	super_places(fs_super(rig.fs), place);
	close_rig(&rig);
	ck_assert_uint_eq(place[1], OLD_MIB * MIB_SECTORS / 2);
	ck_assert_uint_eq(place[2], NEW_MIB * MIB_SECTORS - 8);
	ck_assert_int_eq(sim_damage(rig.sim, place[0], 8), 0);
	ck_assert_int_eq(sim_damage(rig.sim, place[1], 8), 0);
	open_rig(&rig);
	read_files(&rig);
	ck_assert_uint_ge(total_mib(&rig), NEW_MIB - 4);
	close_rig(&rig);
	ck_assert_int_eq(sim_damage(rig.sim, place[2], 8), 0);
	open_rig(&rig);
	close_rig(&rig);
	sim_free(rig.sim);
}
END_TEST

/* ---- Power cuts ---- */

static void take(struct sim *sim, const struct disk_request *req, void *arg)
{
	(void)arg;
	if (req->op == DISK_READ)
		return;
	ck_assert_uint_lt(moments + 1, MOST_MOMENTS);
	moment[moments++] = sim_moment_take(sim);
}

static struct sim *cut_at(unsigned n, enum sim_cut cut)
{
	struct media *media = sim_moment_cut(moment[n], cut, n);
	struct sim_options options = {
		.seed = n, .content = media, .volatile_cache = true,
	};
	struct sim *sim = sim_new(NULL, NEW_MIB * MIB_SECTORS, &options);

	ck_assert_ptr_nonnull(sim);
	media_free(media);
	return sim;
}

/* Whole, as large as before or as it is to be, and it can be grown. */
static uint64_t after_cut(unsigned n, enum sim_cut cut)
{
	struct sim *all = rig.sim;
	uint64_t mib;

	rig.sim = cut_at(n, cut);
	open_rig(&rig);
	read_files(&rig);
	mib = total_mib(&rig);
	write_file(&rig, "behind", 'b', 10 << 20);
	close_rig(&rig);
	mib = mib < OLD_MIB ? OLD_MIB : NEW_MIB;
	grow(mib, NEW_MIB);
	open_rig(&rig);
	read_files(&rig);
	read_file(&rig, "behind", 'b', 10 << 20);
	ck_assert_uint_ge(total_mib(&rig), NEW_MIB - 4);
	close_rig(&rig);
	sim_free(rig.sim);
	rig.sim = all;
	return mib;
}

static void record_growth(void)
{
	make_with_files(OLD_MIB, NEW_MIB);
	moments = 0;
	sim_set_hook(rig.sim, take, NULL);
	grow(OLD_MIB, NEW_MIB);
	sim_set_hook(rig.sim, NULL, NULL);
	moment[moments++] = sim_moment_take(rig.sim);
}

static void forget_growth(void)
{
	while (moments)
		sim_moment_free(moment[--moments]);
	sim_free(rig.sim);
}

static void cut_everywhere(enum sim_cut cut)
{
	unsigned old = 0, new = 0;

	record_growth();
	for (unsigned n = 0; n < moments; n++) {
		uint64_t mib = after_cut(n, cut);

		/* Once it is large with what was flushed alone it stays so;
		 * before, a write may get there in one cut and not in the
		 * next. */
		if (cut == SIM_CUT_DROP)
			ck_assert(mib == NEW_MIB || !new);
		else if (mib == OLD_MIB)
			ck_assert_uint_eq(after_cut(n, SIM_CUT_DROP), OLD_MIB);
		old += mib == OLD_MIB;
		new += mib == NEW_MIB;
	}
	ck_assert_uint_gt(old, 5);
	ck_assert_uint_gt(new, 3);
	ck_assert_uint_eq(after_cut(moments - 1, cut), NEW_MIB);
	forget_growth();
}

START_TEST(cut_and_nothing_gets_there)
{
	cut_everywhere(SIM_CUT_DROP);
}
END_TEST

START_TEST(cut_and_all_gets_there)
{
	cut_everywhere(SIM_CUT_KEEP);
}
END_TEST

START_TEST(cut_and_torn)
{
	cut_everywhere(SIM_CUT_TORN);
}
END_TEST

START_TEST(cut_at_random)
{
	cut_everywhere(SIM_CUT_RANDOM);
}
END_TEST

/* The last superblock of a growth that was cut short is not found later, when
 * the file system has gone on without it and the first one is bad. */
START_TEST(what_was_cut_short_is_forgotten)
{
	const uint64_t last = NEW_MIB * MIB_SECTORS - TRAX_BLOCK_SECTORS;
	struct super super;
	unsigned left = 0;
	void *block = aligned_alloc(4096, TRAX_BLOCK_BYTES);
	struct sim *all;

	ck_assert_ptr_nonnull(block);
	record_growth();
	all = rig.sim;
	for (unsigned n = 0; n < moments; n++) {
		rig.sim = cut_at(n, SIM_CUT_DROP);
		ck_assert_int_eq(disk_read(sim_disk(rig.sim), last,
					   TRAX_BLOCK_SECTORS, block), 0);
		left += !super_decode(block, last, &super);
		open_rig(&rig);
		if (total_mib(&rig) < OLD_MIB) {
			write_file(&rig, "behind", 'b', 10 << 20);
			close_rig(&rig);
			ck_assert_int_eq(sim_damage(rig.sim, TRAX_SUPER_SECTOR,
						    TRAX_BLOCK_SECTORS), 0);
			ck_assert_int_eq(fs_open(sim_env(rig.sim),
						 sim_disk(rig.sim),
						 &rig.options, &rig.fs),
					 -EINVAL);
		} else {
			close_rig(&rig);
		}
		sim_free(rig.sim);
	}
	ck_assert_uint_gt(left, 0);
	rig.sim = all;
	free(block);
	forget_growth();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("grow");
	TCase *c = tcase_create("grow");

	tcase_set_timeout(c, 600);
	tcase_add_test(c, what_is_in_it_stays);
	tcase_add_test(c, groups_are_added);
	tcase_add_test(c, a_log_is_replayed_before);
	tcase_add_test(c, too_little_is_refused);
	tcase_add_test(c, profile_is_dropped);
	tcase_add_test(c, superblocks_stand_in);
	tcase_add_test(c, cut_and_nothing_gets_there);
	tcase_add_test(c, cut_and_all_gets_there);
	tcase_add_test(c, cut_and_torn);
	tcase_add_test(c, cut_at_random);
	tcase_add_test(c, what_was_cut_short_is_forgotten);
	suite_add_tcase(suite, c);
	return test_run(suite);
}

/*
 * test_scan_power.c - power goes at each write of a mount in which users and a
 * file scan work beside each other.  What the scan has said of a file, and its
 * program has noted in a cursor as libtrax does, is true of the file system
 * that comes back, the scan goes on from there, and the checker is silent.
 */
#include <errno.h>
#include <string.h>

#include "base/rangeset.h"
#include "base/units.h"
#include "check/check.h"
#include "fs/mkfs.h"
#include "fs/op/fs_state.h"
#include "scan/file_scan.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define MIB_SECTORS 2048u
#define DISK_MIB 64u
#define FILES 10u
#define FILE_MOST (400u << 10)
#define CHANGES 250u
#define TURN_NS 2000000u
#define MAX_TURNS 100000u
#define MOST_MOMENTS 4000u
#define MOST_SAID 400u
#define DAMAGED 3u		/* sectors of the free space, each at a place of
				 * its own */

/* A file that was said to be whole: what a cursor has of it, and what was given
 * of it before moment `moment`. */
struct said {
	unsigned file, moment;
	struct fs_attr attr;
	uint64_t hash;
};

/* A file in the scan: what tells that it is the same, and what has come. */
struct scanned {
	bool in_scan, whole, changed;
	struct fs_attr attr;
	uint8_t given[FILE_MOST];
};

struct bench {
	struct rig rig;
	struct file_scans *scans;
	struct file_scan *scan;
	struct scanned file[FILES];
	uint64_t dice;
	bool over;
	uint64_t passed;	/* bytes of the disk: free space given so far */
	uint8_t buffer[1 << 20];
};

static struct bench before, after;
static struct sim_moment *moment[MOST_MOMENTS];
static unsigned moments;
static struct said said[MOST_SAID];
static unsigned saids;
static uint8_t content[FILE_MOST];

static uint64_t roll(struct bench *b, uint64_t n)
{
	return test_random(&b->dice) % n;
}

static uint64_t hash_of(const uint8_t *bytes, size_t n)
{
	uint64_t hash = 14695981039346656037u;

	while (n--)
		hash = (hash ^ *bytes++) * 1099511628211u;
	return hash;
}

static const char *name_of(unsigned i)
{
	static char name[16];

	snprintf(name, sizeof(name), "file%u", i);
	return name;
}

/* ---- A disk, and power cuts ---- */

static void on_request(struct sim *sim, const struct disk_request *req,
		       void *arg)
{
	(void)arg;
	if (req->op == DISK_READ)
		return;
	ck_assert_uint_lt(moments, MOST_MOMENTS);
	moment[moments] = sim_moment_take(sim);
	ck_assert_ptr_nonnull(moment[moments++]);
}

static void disk_open_on(struct bench *b, const struct media *media, bool cache)
{
	const struct sim_options options = { .seed = b->dice, .content = media,
					     .volatile_cache = cache };

	b->rig = (struct rig){ .options.memory_bytes = 32 << 20 };
	b->rig.sim = sim_new(NULL, DISK_MIB * MIB_SECTORS, &options);
	ck_assert_ptr_nonnull(b->rig.sim);
}

static void mount_it(struct bench *b)
{
	ck_assert_int_eq(fs_open(sim_env(b->rig.sim), sim_disk(b->rig.sim),
				 &b->rig.options, &b->rig.fs), 0);
	ck_assert_int_eq(file_scans_open(b->rig.fs, &b->scans), 0);
}

static bool is_problem(void *arg, const struct check_found *found)
{
	(void)arg;
	ck_abort_msg("the checker: %s", found->text);
	return false;
}

/* Damage in the free space is none of a file. */
static void unmount_it(struct bench *b)
{
	struct check_options options = { .data = true, .found = is_problem };
	struct check_result result;

	file_scans_close(b->scans);
	ck_assert_int_eq(fs_close(b->rig.fs), 0);
	ck_assert_int_eq(check_run(sim_env(b->rig.sim), sim_disk(b->rig.sim),
				   &options, &result), 0);
	sim_free(b->rig.sim);
}

/* ---- Users ---- */

static void write_at(struct bench *b, uint64_t ino, uint64_t offset,
		     size_t bytes)
{
	struct fs_op op = { .type = FS_WRITE, .ino = ino, .offset = offset,
			    .size = bytes, .data = content };

	for (size_t i = 0; i < bytes; i++)
		content[i] = (uint8_t)(1 + roll(b, 255));
	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
}

/* The kernel says when it was, behind what it writes. */
static void set_time(struct bench *b, uint64_t ino)
{
	const int64_t ns = env_wall_ns(sim_env(b->rig.sim));
	struct fs_op op = { .type = FS_SETATTR, .ino = ino,
			    .flags = FS_SET_MTIME };

	op.attr.mtime = (struct timespec){ ns / NS_PER_SECOND,
					   ns % NS_PER_SECOND };
	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
}

static void make_files(struct bench *b)
{
	static const size_t sizes[] = {
		100, 4096, 70000, 300001, 2047, FILE_MOST, 123456, 0, 8192,
		200000,
	};

	for (unsigned i = 0; i < FILES; i++) {
		uint64_t ino;

		ck_assert_int_eq(rig_mknod(&b->rig, TRAX_ROOT_INO, name_of(i),
					   S_IFREG | 0644, &ino), 0);
		if (sizes[i])
			write_at(b, ino, 0, sizes[i]);
		ck_assert_int_eq(rig_forget(&b->rig, ino, 1), 0);
	}
	ck_assert_int_eq(rig_sync(&b->rig), 0);
}

static void change_file(struct bench *b, unsigned i)
{
	struct fs_op op = { .type = FS_SETATTR, .flags = FS_SET_SIZE };
	struct fs_attr attr;

	if (rig_lookup(&b->rig, TRAX_ROOT_INO, name_of(i), &attr)) {
		ck_assert_int_eq(rig_mknod(&b->rig, TRAX_ROOT_INO, name_of(i),
					   S_IFREG | 0644, &attr.ino), 0);
		attr.size = 0;
	}
	op.ino = attr.ino;
	op.attr.size = roll(b, FILE_MOST / 2);
	if (roll(b, 6) == 0)
		ck_assert_int_eq(rig_do(&b->rig, &op), 0);
	else
		write_at(b, attr.ino, roll(b, FILE_MOST / 2),
			 1 + roll(b, 20000));
	set_time(b, attr.ino);
	if (roll(b, 2) == 0) {
		op = (struct fs_op){ .type = FS_FSYNC, .ino = attr.ino };
		ck_assert_int_eq(rig_do(&b->rig, &op), 0);
	}
	ck_assert_int_eq(rig_forget(&b->rig, attr.ino, 1), 0);
}

static void change_something(struct bench *b)
{
	const unsigned i = (unsigned)roll(b, FILES);

	switch (roll(b, 8)) {
	case 0:
		rig_unlink(&b->rig, TRAX_ROOT_INO, name_of(i));
		break;
	case 1:
		ck_assert_int_eq(rig_sync(&b->rig), 0);
		break;
	default:
		change_file(b, i);
	}
}

/* ---- The program that scans ---- */

static void add_file(struct bench *b, unsigned i)
{
	struct scanned *file = &b->file[i];

	memset(file->given, 0, sizeof(file->given));
	file->in_scan = false;
	if (rig_lookup(&b->rig, TRAX_ROOT_INO, name_of(i), &file->attr))
		return;
	ck_assert_int_eq(file_scan_add(b->scan, file->attr.ino), 0);
	file->in_scan = true;
	ck_assert_int_eq(rig_forget(&b->rig, file->attr.ino, 1), 0);
}

static unsigned file_of(const struct bench *b, uint64_t ino)
{
	unsigned i = 0;

	while (i < FILES && !(b->file[i].in_scan && b->file[i].attr.ino == ino))
		i++;
	ck_assert_uint_lt(i, FILES);
	return i;
}

static bool is_same(const struct fs_attr *a, const struct fs_attr *b)
{
	return a->ino == b->ino && a->size == b->size &&
	       a->mtime.tv_sec == b->mtime.tv_sec &&
	       a->mtime.tv_nsec == b->mtime.tv_nsec;
}

/* As libtrax does, it is noted only when the file is what it was when it was
 * added: the scan may have begun it anew since. */
static void note_whole(struct bench *b, unsigned i, uint64_t size)
{
	struct scanned *file = &b->file[i];
	struct fs_attr now;

	file->in_scan = false;
	file->whole = true;
	if (b != &before ||
	    rig_lookup(&b->rig, TRAX_ROOT_INO, name_of(i), &now)) {
		file->attr.size = size;
		return;
	}
	if (is_same(&file->attr, &now)) {
		ck_assert_uint_lt(saids, MOST_SAID);
		ck_assert_uint_eq(size, now.size);
		said[saids++] = (struct said){
			.file = i, .moment = moments, .attr = now,
			.hash = hash_of(file->given, size),
		};
	}
	ck_assert_int_eq(rig_forget(&b->rig, now.ino, 1), 0);
}

static void take_record(struct bench *b, const struct scan_record *r,
			const uint8_t *data)
{
	if (r->type == SCAN_OVER)
		b->over = true;
	else if (r->type == SCAN_PASSED)
		b->passed = r->offset;
	else if (!r->ino)
		return;
	else if (r->type == SCAN_DATA)
		memcpy(b->file[file_of(b, r->ino)].given + r->offset, data,
		       r->bytes);
	else if (r->type == SCAN_WHOLE)
		note_whole(b, file_of(b, r->ino), r->offset);
	else if (r->type == SCAN_CHANGED)
		b->file[file_of(b, r->ino)].changed = true;
	else
		ck_abort_msg("a record of type %u", r->type);
}

/* What has changed is added again when nothing more of it can come. */
static void take_records(struct bench *b)
{
	size_t n = file_scan_read(b->scan, b->buffer, sizeof(b->buffer));
	struct scan_record r;

	for (size_t at = 0; at < n;
	     at += sizeof(r) + (r.type == SCAN_DATA ? r.bytes : 0)) {
		memcpy(&r, b->buffer + at, sizeof(r));
		take_record(b, &r, b->buffer + at + sizeof(r));
	}
	for (unsigned i = 0; i < FILES; i++) {
		if (!b->file[i].changed)
			continue;
		b->file[i].changed = false;
		add_file(b, i);
	}
}

static void turn(struct bench *b)
{
	fs_run(b->rig.fs, 0);
	file_scans_run(b->scans);
	fs_run(b->rig.fs, 0);
	sim_advance(b->rig.sim, TURN_NS);
	take_records(b);
}

static void run_scan(struct bench *b)
{
	unsigned turns = 0;

	while (!b->over) {
		ck_assert_uint_lt(turns++, MAX_TURNS);
		turn(b);
	}
	file_scan_end(b->scan);
}

static bool any_in_scan(const struct bench *b)
{
	unsigned i = 0;

	while (i < FILES && !b->file[i].in_scan)
		i++;
	return i < FILES;
}

static void scan_begin(struct bench *b, const struct file_scan_options *options)
{
	b->over = false;
	b->passed = 0;
	memset(b->file, 0, sizeof(b->file));
	ck_assert_int_eq(file_scan_begin(b->scans, options, &b->scan), 0);
}

/* ---- What comes back ---- */

static uint64_t read_hash(struct bench *b, const struct fs_attr *attr)
{
	struct fs_op op = { .type = FS_READ, .ino = attr->ino,
			    .buffer = content, .size = FILE_MOST };

	ck_assert_uint_le(attr->size, FILE_MOST);
	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
	ck_assert_uint_eq(op.result, attr->size);
	return hash_of(content, attr->size);
}

/* Was the file through before this moment?  Then what was given of it is what
 * it holds. */
static bool was_through(struct bench *b, unsigned i, unsigned at)
{
	struct fs_attr attr;
	bool is = false;

	if (rig_lookup(&b->rig, TRAX_ROOT_INO, name_of(i), &attr))
		return true;
	for (unsigned k = 0; k < saids && said[k].moment <= at; k++) {
		if (said[k].file != i || !is_same(&said[k].attr, &attr))
			continue;
		is = true;
		ck_assert_msg(read_hash(b, &attr) == said[k].hash,
			      "moment %u: file %u is not what was given", at,
			      i);
	}
	ck_assert_int_eq(rig_forget(&b->rig, attr.ino, 1), 0);
	return is;
}

/* Mounts what a cut has left, and scans the rest. */
static void come_back(const struct file_scan_options *options, unsigned at,
		      enum sim_cut mode, bool cache)
{
	struct media *media = sim_moment_cut(moment[at], mode, at);
	struct bench *b = &after;

	ck_assert_ptr_nonnull(media);
	disk_open_on(b, media, cache);
	media_free(media);
	mount_it(b);
	scan_begin(b, options);
	for (unsigned i = 0; !options->free_space && i < FILES; i++)
		if (!was_through(b, i, at))
			add_file(b, i);
	while (any_in_scan(b))
		turn(b);
	if (!options->free_space)
		file_scan_seal(b->scan);
	run_scan(b);
	for (unsigned i = 0; i < FILES; i++)
		if (b->file[i].whole)
			ck_assert_uint_eq(read_hash(b, &b->file[i].attr),
					  hash_of(b->file[i].given,
						  b->file[i].attr.size));
	unmount_it(b);
}

static void come_back_everywhere(const struct file_scan_options *options,
				 bool cache)
{
	static const enum sim_cut modes[] = { SIM_CUT_RANDOM, SIM_CUT_DROP,
					      SIM_CUT_KEEP };

	for (unsigned at = 0; at < moments; at++)
		come_back(options, at, modes[at % 3], cache);
}

/* ---- The mount that is cut ---- */

static void bench_open(struct bench *b, uint64_t seed, bool cache)
{
	struct mkfs_options mkfs = { .pseudo_track_sectors = 512 };
	struct mkfs_plan plan;
	struct disk *disk;

	memset(b, 0, sizeof(*b));
	moments = saids = 0;
	b->dice = seed;
	disk_open_on(b, NULL, cache);
	disk = sim_disk(b->rig.sim);
	ck_assert_int_eq(mkfs_plan(sim_env(b->rig.sim), &disk->limits, &mkfs,
				   &plan), 0);
	ck_assert_int_eq(mkfs_write(sim_env(b->rig.sim), disk, &mkfs, &plan),
			 0);
	mount_it(b);
	make_files(b);
	/* Nothing of it is in memory. */
	file_scans_close(b->scans);
	ck_assert_int_eq(fs_close(b->rig.fs), 0);
	mount_it(b);
	sim_set_hook(b->rig.sim, on_request, b);
}

static void moments_free(void)
{
	while (moments)
		sim_moment_free(moment[--moments]);
}

/* Files that users change all the while, with and without a write cache, in
 * both orders of a scan. */
START_TEST(what_was_said_holds)
{
	const struct file_scan_options options = { .file_order = _i & 1 };
	const bool cache = _i & 2;
	struct bench *b = &before;

	bench_open(b, 50 + (uint64_t)_i, cache);
	scan_begin(b, &options);
	for (unsigned i = 0; i < FILES; i++)
		add_file(b, i);
	for (unsigned n = 0; n < CHANGES; n++) {
		change_something(b);
		for (uint64_t turns = roll(b, 6); turns; turns--)
			turn(b);
		for (unsigned i = 0; i < FILES; i++)
			if (!b->file[i].in_scan && roll(b, 4) == 0)
				add_file(b, i);
	}
	while (any_in_scan(b))
		turn(b);
	file_scan_seal(b->scan);
	run_scan(b);
	sim_set_hook(b->rig.sim, NULL, NULL);
	unmount_it(b);
	ck_assert_uint_ge(saids, FILES / 2);
	ck_assert_uint_gt(moments, CHANGES / 4);
	come_back_everywhere(&options, cache);
	moments_free();
}
END_TEST

/* A file that changes before anything of it was given is begun anew without a
 * word.  Noted with the times that it had when it was added it would be taken
 * for the earlier one, which a power cut may bring back. */
START_TEST(what_was_begun_anew_is_not_noted)
{
	const struct file_scan_options options = { .file_order = _i };
	struct bench *b = &before;
	struct fs_attr attr;
	unsigned i = 3;

	bench_open(b, 90, true);
	scan_begin(b, &options);
	file_scan_pause(b->scan, true);
	add_file(b, i);
	attr = b->file[i].attr;
	write_at(b, attr.ino, 0, 5000);
	set_time(b, attr.ino);
	file_scan_pause(b->scan, false);
	while (any_in_scan(b))
		turn(b);
	ck_assert(b->file[i].whole);
	ck_assert_uint_eq(saids, 0);
	ck_assert_int_eq(sim_power_cut(b->rig.sim, SIM_CUT_DROP, 1), 0);
	fs_run(b->rig.fs, 0);
	file_scans_close(b->scans);
	fs_abandon(b->rig.fs);
	sim_restart(b->rig.sim);
	mount_it(b);
	ck_assert_int_eq(rig_lookup(&b->rig, TRAX_ROOT_INO, name_of(i),
				    &b->file[i].attr), 0);
	ck_assert(is_same(&attr, &b->file[i].attr));
	ck_assert_uint_ne(read_hash(b, &attr),
			  hash_of(b->file[i].given, attr.size));
	ck_assert_int_eq(rig_forget(&b->rig, attr.ino, 1), 0);
	sim_set_hook(b->rig.sim, NULL, NULL);
	unmount_it(b);
	moments_free();
}
END_TEST

/* A scan of the free space writes where it cannot read. */
START_TEST(free_space_is_scanned_again)
{
	const struct file_scan_options options = { .free_space = true };
	const struct rangeset *set;
	struct bench *b = &before;
	struct range run;

	bench_open(b, 70, _i);
	scan_begin(b, &options);
	run_scan(b);
	set = space_free_set(tree_space(b->rig.fs->tree));
	ck_assert(rangeset_next_long(set, 0, 20000, &run));
	for (uint64_t i = 0; i < DAMAGED; i++)
		ck_assert_int_eq(sim_damage(b->rig.sim, run.first + 999 +
						i * 4000, 1), 0);
	scan_begin(b, &options);
	run_scan(b);
	rig_settle(&b->rig);
	ck_assert_int_eq(rig_sync(&b->rig), 0);
	sim_set_hook(b->rig.sim, NULL, NULL);
	unmount_it(b);
	ck_assert_uint_gt(moments, 0);
	come_back_everywhere(&options, _i);
	moments_free();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("scan power");
	TCase *tcase = tcase_create("scan power");

	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, what_was_said_holds, 0, 4);
	tcase_add_loop_test(tcase, what_was_begun_anew_is_not_noted, 0, 2);
	tcase_add_loop_test(tcase, free_space_is_scanned_again, 0, 2);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}

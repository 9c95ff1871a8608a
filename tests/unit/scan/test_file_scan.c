/*
 * test_file_scan.c - file scans on a simulated disk: what is said to be whole
 * is what the file holds at that moment, whatever happens meanwhile.
 */
#include <errno.h>
#include <string.h>

#include "base/rangeset.h"
#include "fs/data/file_data.h"
#include "fs/op/fs_state.h"
#include "scan/file_scan.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define MIB 128u
#define FILES 12u
#define FILE_MOST (3u << 20)
#define MAX_TURNS 200000u
#define TURN_NS 2000000u
#define FREE_TURNS 20000u	/* 40 s */
#define BAD_PLACES 100u
#define LARGE_MIB 2560u		/* three groups */

/* A file as it is, and as the scan has given it. */
struct twofold {
	uint64_t ino, size;
	uint8_t *now, *given;
	uint64_t given_bytes;
	unsigned whole, changed, errors;
	uint64_t last;		/* end of the last record */
	uint8_t *was;		/* before a change of which it is not known
				   whether the scan was before it */
	uint64_t was_size;
	bool may_be_old;
	bool gone, in_scan;
};

struct bench {
	struct rig rig;
	struct file_scans *scans;
	struct file_scan *scan;
	struct twofold file[FILES];
	uint64_t dice;
	bool ordered, over;
	uint8_t buffer[1 << 20];
};

static uint64_t roll(struct bench *b, uint64_t n)
{
	return test_random(&b->dice) % n;
}

static void write_at(struct bench *b, struct twofold *file, uint64_t offset,
		     size_t bytes)
{
	struct fs_op op = { .type = FS_WRITE, .ino = file->ino,
			    .offset = offset, .size = bytes,
			    .data = file->now + offset };
	size_t i;

	for (i = 0; i < bytes; i++)
		file->now[offset + i] = (uint8_t)test_random(&b->dice);
	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
	if (offset + bytes > file->size)
		file->size = offset + bytes;
}

static void truncate_to(struct bench *b, struct twofold *file, uint64_t size)
{
	struct fs_op op = { .type = FS_SETATTR, .ino = file->ino,
			    .flags = FS_SET_SIZE, .attr.size = size };

	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
	if (size < file->size)
		memset(file->now + size, 0, file->size - size);
	file->size = size;
}

static void name_of(unsigned i, char *name)
{
	sprintf(name, "file%u", i);
}

/* Inline, a byte, holes, tails, large ones. */
static void make_file(struct bench *b, unsigned i)
{
	static const uint64_t sizes[] = {
		100, 1, 4096, 4097, 70000, 1 << 20, 300001, 0, 2047,
		FILE_MOST, 1 << 19, 123456,
	};
	struct twofold *file = &b->file[i];
	char name[16];

	file->now = calloc(1, FILE_MOST);
	file->given = calloc(1, FILE_MOST);
	file->was = calloc(1, FILE_MOST);
	name_of(i, name);
	ck_assert_int_eq(rig_mknod(&b->rig, 1, name, S_IFREG | 0644,
				   &file->ino), 0);
	if (i == 5) {
		write_at(b, file, 300000, 100000);
		write_at(b, file, 900001, sizes[i] - 900001);
	} else if (sizes[i]) {
		write_at(b, file, 0, sizes[i]);
	}
}

static void bench_open(struct bench *b, uint64_t seed)
{
	unsigned i;

	memset(b, 0, sizeof(*b));
	b->dice = seed;
	rig_open(&b->rig, MIB, seed);
	for (i = 0; i < FILES; i++)
		make_file(b, i);
	ck_assert_int_eq(rig_sync(&b->rig), 0);
	/* Nothing of it in memory. */
	rig_remount(&b->rig);
	ck_assert_int_eq(file_scans_open(b->rig.fs, &b->scans), 0);
}

static void bench_close(struct bench *b)
{
	unsigned i;

	file_scans_close(b->scans);
	rig_close(&b->rig);
	for (i = 0; i < FILES; i++) {
		free(b->file[i].now);
		free(b->file[i].given);
		free(b->file[i].was);
	}
}

static void scan_begin(struct bench *b, const struct file_scan_options *options)
{
	unsigned i;

	b->over = false;
	b->ordered = options->file_order;
	ck_assert_int_eq(file_scan_begin(b->scans, options, &b->scan), 0);
	for (i = 0; i < FILES; i++) {
		ck_assert_int_eq(file_scan_add(b->scan, b->file[i].ino), 0);
		b->file[i].in_scan = true;
	}
}

static struct twofold *file_of(struct bench *b, uint64_t ino)
{
	unsigned i;

	for (i = 0; i < FILES; i++)
		if (b->file[i].ino == ino)
			return &b->file[i];
	ck_abort_msg("no such file");
	return NULL;
}

static void forget_given(struct twofold *file)
{
	memset(file->given, 0, FILE_MOST);
	file->given_bytes = file->last = 0;
}

static void take_data(struct bench *b, const struct scan_record *r,
		      const uint8_t *data)
{
	struct twofold *file = file_of(b, r->ino);
	uint64_t i;

	ck_assert(file->in_scan);
	ck_assert_uint_le(r->offset + r->bytes, FILE_MOST);
	ck_assert_uint_le(r->bytes, SCAN_DATA_MOST);
	ck_assert_uint_gt(r->bytes, 0);
	if (b->ordered)
		ck_assert_uint_ge(r->offset, file->last);
	file->last = r->offset + r->bytes;
	for (i = 0; i < r->bytes; i++)
		if (data[i] && file->given[r->offset + i])
			ck_abort_msg("byte %llu has come twice",
				     (unsigned long long)(r->offset + i));
	memcpy(file->given + r->offset, data, r->bytes);
	file->given_bytes += r->bytes;
}

static void check_whole(const struct twofold *file, uint64_t size)
{
	uint64_t i;

	if (file->may_be_old && size == file->was_size &&
	    !memcmp(file->given, file->was, size))
		return;
	ck_assert_uint_eq(size, file->size);
	for (i = 0; i < size; i++)
		if (file->given[i] != file->now[i])
			ck_abort_msg("inode %llu, byte %llu of %llu differs",
				     (unsigned long long)file->ino,
				     (unsigned long long)i,
				     (unsigned long long)size);
}

static void take_record(struct bench *b, const struct scan_record *r,
			const uint8_t *data)
{
	struct twofold *file;

	if (r->type == SCAN_OVER) {
		b->over = true;
		return;
	}
	if (r->type == SCAN_DATA) {
		take_data(b, r, data);
		return;
	}
	file = file_of(b, r->ino);
	ck_assert(file->in_scan);
	switch (r->type) {
	case SCAN_WHOLE:
		file->whole++;
		file->in_scan = false;
		check_whole(file, r->offset);
		break;
	case SCAN_CHANGED:
		file->changed++;
		file->in_scan = false;
		if (file->gone)
			break;
		forget_given(file);
		if (file_scan_add(b->scan, file->ino) == 0)
			file->in_scan = true;
		break;
	case SCAN_ERROR:
		ck_assert_int_eq(r->error, -EIO);
		/* What cannot be given counts as right. */
		memcpy(file->given + r->offset, file->now + r->offset,
		       r->bytes);
		file->errors++;
		break;
	default:
		ck_abort_msg("a record of type %u", r->type);
	}
}

static void take_records(struct bench *b)
{
	struct scan_record r;
	size_t n = file_scan_read(b->scan, b->buffer, sizeof(b->buffer));
	size_t at = 0;

	while (at < n) {
		memcpy(&r, b->buffer + at, sizeof(r));
		at += sizeof(r);
		take_record(b, &r, b->buffer + at);
		at += r.type == SCAN_DATA ? r.bytes : 0;
	}
	ck_assert_uint_eq(at, n);
}

static void turn(struct bench *b)
{
	fs_run(b->rig.fs, 0);
	file_scans_run(b->scans);
	fs_run(b->rig.fs, 0);
	sim_advance(b->rig.sim, TURN_NS);
}

static void run_scan(struct bench *b)
{
	unsigned turns = MAX_TURNS;

	while (!b->over && turns--) {
		turn(b);
		take_records(b);
	}
	ck_assert(b->over);
}

static void all_are_whole(struct bench *b)
{
	unsigned i;

	for (i = 0; i < FILES; i++)
		ck_assert_uint_eq(b->file[i].whole, !b->file[i].gone);
}

/* Each file, each byte that is not in a hole, once; in both orders, also with
 * less memory than the files need. */
START_TEST(all_is_given)
{
	struct file_scan_options options = { .file_order = _i & 1 };
	struct scan_status s;
	static struct bench b;

	if (_i & 2)
		options.memory_bytes = 1200000;
	bench_open(&b, 5);
	scan_begin(&b, &options);
	ck_assert_int_eq(file_scan_add(b.scan, b.file[3].ino), -EEXIST);
	file_scan_seal(b.scan);
	run_scan(&b);
	all_are_whole(&b);
	/* The blocks that hold the two pieces of file 5. */
	ck_assert_uint_eq(b.file[5].given_bytes,
			  401408 - 299008 + (1 << 20) - 897024);
	file_scan_get_status(b.scan, &s);
	ck_assert_uint_eq(s.whole_files, FILES);
	ck_assert_uint_eq(s.state, SCAN_ENDED);
	ck_assert_uint_eq(s.changed_files, 0);
	file_scan_end(b.scan);
	bench_close(&b);
}
END_TEST

static void change_something(struct bench *b)
{
	struct twofold *file = &b->file[roll(b, FILES)];
	uint64_t at = roll(b, FILE_MOST - 10000);
	char name[16];

	if (file->gone)
		return;
	memcpy(file->was, file->now, FILE_MOST);
	file->was_size = file->size;
	file->may_be_old = true;
	switch (roll(b, 8)) {
	case 0:
		truncate_to(b, file, at);
		break;
	case 1:
		if (file != &b->file[2] && file != &b->file[9])
			break;
		name_of((unsigned)(file - b->file), name);
		file->gone = true;
		ck_assert_int_eq(rig_unlink(&b->rig, 1, name), 0);
		ck_assert_int_eq(rig_forget(&b->rig, file->ino, 1), 0);
		break;
	case 2:
		ck_assert_int_eq(rig_sync(&b->rig), 0);
		break;
	default:
		write_at(b, file, at % (file->size + 1), 1 + roll(b, 9000));
	}
	take_records(b);
	file->may_be_old = false;
}

/* Writes, truncations, deletions and syncs at random moments. */
START_TEST(changes_are_never_torn)
{
	struct file_scan_options options = { .file_order = _i % 2 };
	static struct bench b;
	unsigned i, changed = 0;

	bench_open(&b, 100 + (uint64_t)_i);
	scan_begin(&b, &options);
	for (i = 0; i < 300; i++) {
		unsigned turns = (unsigned)roll(&b, 8);

		change_something(&b);
		while (turns--) {
			turn(&b);
			take_records(&b);
		}
	}
	file_scan_seal(b.scan);
	for (i = 0; i < FILES; i++)
		changed += b.file[i].changed;
	ck_assert_uint_gt(changed, 0);
	run_scan(&b);
	for (i = 0; i < FILES; i++)
		ck_assert(b.file[i].whole || b.file[i].changed);
	file_scan_end(b.scan);
	bench_close(&b);
}
END_TEST

/* What cannot be read is said, and the rest is given. */
START_TEST(damage_is_an_error)
{
	struct file_scan_options options = { .file_order = _i };
	struct fs_extent extent;
	static struct bench b;
	struct fs_op op = { .type = FS_EXTENTS, .buffer = &extent, .size = 1 };

	bench_open(&b, 9);
	op.ino = b.file[9].ino;
	op.offset = 1 << 20;
	ck_assert_int_eq(rig_do(&b.rig, &op), 0);
	ck_assert_int_eq(sim_damage(b.rig.sim, extent.lbn + 40, 1), 0);
	ck_assert_int_eq(sim_flip(b.rig.sim, extent.lbn + 80, 3), 0);
	scan_begin(&b, &options);
	file_scan_seal(b.scan);
	run_scan(&b);
	all_are_whole(&b);
	ck_assert_uint_ge(b.file[9].errors, 1);
	ck_assert_uint_eq(b.file[9].given_bytes,
			  FILE_MOST - b.file[9].errors * 4096);
	file_scans_close(b.scans);
	ck_assert_int_eq(fs_close(b.rig.fs), 0);
	sim_free(b.rig.sim);
}
END_TEST

/* A program that does not read stops the scan and nothing else. */
START_TEST(slow_program_stops_the_scan)
{
	struct file_scan_options options = { .file_order = _i };
	static struct bench b;
	struct scan_status s, later;
	unsigned i;

	bench_open(&b, 11);
	for (i = 0; i < 8; i++) {
		struct twofold *file = &b.file[i];

		truncate_to(&b, file, 0);
		write_at(&b, file, 0, FILE_MOST);
	}
	scan_begin(&b, &options);
	file_scan_seal(b.scan);
	for (i = 0; i < 3000; i++)
		turn(&b);
	file_scan_get_status(b.scan, &s);
	ck_assert_uint_lt(s.given_bytes, 16 << 20);
	ck_assert_uint_ge(s.given_bytes, 4 << 20);
	for (i = 0; i < 500; i++)
		turn(&b);
	file_scan_get_status(b.scan, &later);
	ck_assert_uint_eq(later.given_bytes, s.given_bytes);
	ck_assert_uint_eq(later.state, SCAN_BLOCKED);
	/* It is through, and said so in a record that waits. */
	memcpy(b.file[11].was, b.file[11].now, FILE_MOST);
	b.file[11].was_size = b.file[11].size;
	b.file[11].may_be_old = true;
	write_at(&b, &b.file[11], 0, 100000);
	ck_assert_int_eq(rig_sync(&b.rig), 0);
	run_scan(&b);
	for (i = 0; i < FILES; i++)
		ck_assert_uint_eq(b.file[i].whole, 1);
	file_scan_end(b.scan);
	bench_close(&b);
}
END_TEST

/* Paused it does nothing; a sample ends when there is enough of it; a scan that
 * is given up in the middle leaves nothing. */
START_TEST(pause_sample_and_end)
{
	struct file_scan_options options = { .sample_bytes = 2 << 20 };
	static struct bench b;
	struct scan_status s;
	uint64_t given = 0;
	unsigned i;

	bench_open(&b, 13);
	scan_begin(&b, &options);
	file_scan_pause(b.scan, true);
	for (i = 0; i < 300; i++)
		turn(&b);
	file_scan_get_status(b.scan, &s);
	ck_assert_uint_eq(s.given_bytes, 0);
	ck_assert_uint_eq(s.state, SCAN_PAUSED);
	file_scan_pause(b.scan, false);
	run_scan(&b);
	for (i = 0; i < FILES; i++)
		given += b.file[i].given_bytes;
	ck_assert_uint_ge(given, 2 << 20);
	file_scan_end(b.scan);
	for (i = 0; i < FILES; i++)
		forget_given(&b.file[i]);
	options.sample_bytes = 0;
	scan_begin(&b, &options);
	for (i = 0; i < 40; i++)
		turn(&b);
	file_scan_end(b.scan);
	ck_assert_ptr_null(file_scan_at(b.scans, 0));
	bench_close(&b);
}
END_TEST

/* What a scan of the free space has given. */
struct freely {
	struct rangeset seen;
	uint64_t given_bytes, bad_bytes, first_bad;
	uint64_t passed;	/* sector before which all has been given */
	bool over;
};

static void take_free(struct bench *b, struct freely *f)
{
	struct scan_record r;
	size_t n = file_scan_read(b->scan, b->buffer, sizeof(b->buffer));
	size_t at = 0;

	for (; at < n; at += sizeof(r) + (r.type == SCAN_DATA ? r.bytes : 0)) {
		memcpy(&r, b->buffer + at, sizeof(r));
		f->over |= r.type == SCAN_OVER;
		if (r.type == SCAN_PASSED) {
			ck_assert_uint_gt(r.offset / SECTOR_BYTES, f->passed);
			f->passed = r.offset / SECTOR_BYTES;
		}
		if (r.type == SCAN_OVER || r.type == SCAN_PASSED)
			continue;
		ck_assert(r.type == SCAN_DATA || r.type == SCAN_ERROR);
		ck_assert_uint_eq(r.ino, 0);
		ck_assert(!rangeset_meets(&f->seen, r.offset / SECTOR_BYTES,
					  r.bytes / SECTOR_BYTES));
		ck_assert_int_eq(rangeset_add(&f->seen,
					      r.offset / SECTOR_BYTES,
					      r.bytes / SECTOR_BYTES), 0);
		f->given_bytes += r.bytes;
		if (r.type == SCAN_ERROR) {
			f->bad_bytes += r.bytes;
			f->first_bad = r.offset / SECTOR_BYTES;
		}
	}
}

/* Reads free space from a sector on, until all before `until` has come. */
static void run_part(struct bench *b, struct freely *f, uint64_t first,
		     uint64_t until)
{
	const struct file_scan_options options = {
		.free_space = true, .first = first * SECTOR_BYTES,
	};
	unsigned turns = MAX_TURNS;

	*f = (struct freely){ .passed = first };
	rangeset_init(&f->seen);
	ck_assert_int_eq(file_scan_begin(b->scans, &options, &b->scan), 0);
	ck_assert_int_eq(file_scan_add(b->scan, b->file[0].ino), -EINVAL);
	while (!f->over && f->passed < until && turns--) {
		turn(b);
		take_free(b, f);
	}
	ck_assert(f->over || f->passed >= until);
	file_scan_end(b->scan);
}

static void run_free(struct bench *b, struct freely *f)
{
	run_part(b, f, 0, UINT64_MAX);
	ck_assert(f->over);
}

/* All that is free, once, and nothing else.  What cannot be read and not be
 * written either has an owner then, what a write mends is free again. */
START_TEST(free_space_is_read)
{
	struct sim_fault fault = { .kind = SIM_FAIL, .ops = SIM_READS,
				   .sectors = 8, .k = 1 };
	const struct rangeset *free;
	struct range run;
	struct freely f;
	static struct bench b;
	uint64_t before, n;
	unsigned i;

	if (_i)
		fault.ops |= SIM_WRITES;
	bench_open(&b, 31);
	run_free(&b, &f);
	free = space_free_set(tree_space(b.rig.fs->tree));
	before = free->total;
	ck_assert_uint_eq(f.given_bytes, before * SECTOR_BYTES);
	ck_assert_uint_eq(f.bad_bytes, 0);
	for (n = 0; rangeset_next(free, n, &run); n = run.first + run.n)
		ck_assert(rangeset_has(&f.seen, run.first, run.n));
	ck_assert(rangeset_next_long(free, 0, 100000, &run));
	rangeset_fini(&f.seen);

	fault.first = (run.first + 50000) & ~UINT64_C(7);
	ck_assert_int_eq(sim_fault_add(b.rig.sim, &fault), 0);
	run_free(&b, &f);
	ck_assert_uint_eq(f.given_bytes, before * SECTOR_BYTES);
	ck_assert_uint_eq(f.bad_bytes, 8 * SECTOR_BYTES);
	ck_assert_uint_eq(f.first_bad, fault.first);
	rangeset_fini(&f.seen);
	/* A place that fails once more after a pause is bad. */
	for (i = 0; i < FREE_TURNS; i++)
		turn(&b);
	ck_assert_uint_eq(rangeset_has(free, fault.first, 8), !_i);
	ck_assert(rangeset_has(free, fault.first - 8, 8));
	ck_assert(rangeset_has(free, fault.first + 8, 8));
	bench_close(&b);
}
END_TEST

/* More bad places than are examined at a time: each gets an owner. */
START_TEST(many_bad_places)
{
	struct sim_fault fault = { .kind = SIM_FAIL, .k = 1, .sectors = 8,
				   .ops = SIM_READS | SIM_WRITES };
	const struct rangeset *free;
	struct range run;
	struct freely f;
	static struct bench b;
	unsigned i;

	bench_open(&b, 37);
	run_free(&b, &f);
	rangeset_fini(&f.seen);
	free = space_free_set(tree_space(b.rig.fs->tree));
	ck_assert(rangeset_next_long(free, 0, 100000, &run));
	for (i = 0; i < BAD_PLACES; i++) {
		fault.first = (run.first & ~UINT64_C(7)) + 8 + 64 * i;
		ck_assert_int_eq(sim_fault_add(b.rig.sim, &fault), 0);
	}
	run_free(&b, &f);
	ck_assert_uint_eq(f.bad_bytes, BAD_PLACES * fault.sectors *
				       SECTOR_BYTES);
	rangeset_fini(&f.seen);
	for (i = 0; i < FREE_TURNS; i++)
		turn(&b);
	file_scans_close(b.scans);
	rig_remount(&b.rig);
	ck_assert_int_eq(file_scans_open(b.rig.fs, &b.scans), 0);
	run_free(&b, &f);
	ck_assert_uint_eq(f.bad_bytes, 0);
	rangeset_fini(&f.seen);
	bench_close(&b);
}
END_TEST

/* A scan of the free space that was broken off goes on behind the groups that
 * were given. */
START_TEST(free_space_goes_on)
{
	const struct rangeset *free;
	struct range run;
	struct freely before, after;
	static struct bench b;
	uint64_t n, at;

	memset(&b, 0, sizeof(b));
	rig_open(&b.rig, LARGE_MIB, 41);
	ck_assert_int_eq(file_scans_open(b.rig.fs, &b.scans), 0);
	b.file[0].ino = TRAX_ROOT_INO;
	run_part(&b, &before, 0, 1);
	ck_assert_uint_eq(before.passed % TRAX_GROUP_SECTORS, 0);
	run_part(&b, &after, before.passed, UINT64_MAX);
	ck_assert(after.over);
	ck_assert(!rangeset_meets(&after.seen, 0, before.passed));
	free = space_free_set(tree_space(b.rig.fs->tree));
	for (n = 0; rangeset_next(free, n, &run); n = run.first + run.n)
		for (at = run.first; at < run.first + run.n; at += 8)
			ck_assert(rangeset_has(at < before.passed ?
					       &before.seen : &after.seen,
					       at, 8));
	rangeset_fini(&before.seen);
	rangeset_fini(&after.seen);
	file_scans_close(b.scans);
	rig_close(&b.rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("file_scan");
	TCase *tcase = tcase_create("file_scan");

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, all_is_given, 0, 4);
	tcase_add_loop_test(tcase, changes_are_never_torn, 0, 4);
	tcase_add_loop_test(tcase, damage_is_an_error, 0, 2);
	tcase_add_loop_test(tcase, slow_program_stops_the_scan, 0, 2);
	tcase_add_test(tcase, pause_sample_and_end);
	tcase_add_loop_test(tcase, free_space_is_read, 0, 2);
	tcase_add_test(tcase, many_bad_places);
	tcase_add_test(tcase, free_space_goes_on);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}

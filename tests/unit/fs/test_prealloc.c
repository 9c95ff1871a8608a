/*
 * test_prealloc.c - room that is kept for a growing file and not used goes
 * back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "fs/data/file_data.h"
#include "fs/data/prealloc.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define MIB (1u << 20)

static uint64_t open_file(struct rig *rig, const char *name)
{
	uint64_t ino;

	ck_assert_int_eq(rig_mknod(rig, 1, name, S_IFREG | 0644, &ino), 0);
	ck_assert_int_eq(rig_open_file(rig, ino, O_RDWR), 0);
	return ino;
}

/* From the first MiB on as much as there is room for, at most n MiB; what was
 * written. */
static uint64_t fill(struct rig *rig, uint64_t ino, unsigned first, unsigned n)
{
	uint8_t *data = calloc(1, MIB);
	struct fs_op op = { .type = FS_WRITE, .ino = ino, .data = data };
	uint64_t bytes = 0;
	int rc = 0;

	ck_assert_ptr_nonnull(data);
	memset(data, 5, MIB);
	for (unsigned i = 0; i < n && !rc; i++) {
		op.offset = (uint64_t)first * MIB + bytes;
		op.size = MIB;
		rc = rig_do(rig, &op);
		ck_assert(rc == 0 || rc == -ENOSPC);
		bytes += rc ? 0 : op.result;
	}
	free(data);
	return bytes;
}

static void grow(struct rig *rig, uint64_t ino)
{
	ck_assert_uint_eq(fill(rig, ino, 0, 8), 8 * MIB);
	ck_assert_int_eq(rig_sync(rig), 0);
	ck_assert_uint_eq(fill(rig, ino, 8, 1), MIB);
	ck_assert_int_eq(rig_sync(rig), 0);
}

/* It goes back with the last handle, and at once when room is scarce: a full
 * disk holds as much with it as without. */
START_TEST(preallocated_room_goes_back)
{
	uint64_t a, b, bytes[2];
	struct files *files;
	struct rig rig;

	for (unsigned kept = 0; kept < 2; kept++) {
		rig_open(&rig, 128, 1);
		files = rig.fs->files;
		a = open_file(&rig, "a");
		grow(&rig, a);
		ck_assert_uint_gt(files->prealloc_sectors, 0);
		ck_assert_uint_le(files->prealloc_sectors, 128 * 2048 / 8);
		if (!kept)
			ck_assert_int_eq(rig_release(&rig, a), 0);
		ck_assert_int_eq(files->prealloc_sectors > 0, kept);
		b = open_file(&rig, "b");
		bytes[kept] = fill(&rig, b, 0, 128);
		ck_assert_int_eq(rig_sync(&rig), 0);
		ck_assert_int_eq(rig_release(&rig, b), 0);
		if (kept)
			ck_assert_int_eq(rig_release(&rig, a), 0);
		ck_assert_uint_eq(files->prealloc_sectors, 0);
		rig_remount(&rig);
		rig_close(&rig);
	}
	ck_assert_uint_ge(bytes[1] + MIB, bytes[0]);
}
END_TEST

/* A crash leaves nothing of it: rig_close checks what is owned. */
START_TEST(a_crash_leaves_no_preallocated_room)
{
	struct rig rig;
	uint64_t a;

	rig_open(&rig, 128, 1);
	a = open_file(&rig, "a");
	grow(&rig, a);
	ck_assert_uint_gt(rig.fs->files->prealloc_sectors, 0);
	rig_crash(&rig);
	ck_assert_uint_eq(rig.fs->files->prealloc_sectors, 0);
	rig_close(&rig);
}
END_TEST

static unsigned extents_of(struct rig *rig, uint64_t ino)
{
	static struct fs_extent extent[512];
	struct fs_op op = { .type = FS_EXTENTS, .ino = ino, .size = 512,
			    .buffer = extent };

	ck_assert_int_eq(rig_do(rig, &op), 0);
	ck_assert_uint_lt(op.result, 512);
	return (unsigned)op.result;
}

#define LATE_EACH 2u	/* one extent in so many comes late ... */
#define LATE_BY 41u	/* ... by so many extents */
#define NEVER 10u	/* this extent does not come at all */

/*
 * A file is written from its beginning to its end, but some extents come late
 * and are written back after those behind them, as happens where memory is
 * short, and one is a hole.  They have their places among the others.
 */
START_TEST(extents_that_come_late_have_their_places)
{
	const unsigned extents = 500;
	struct rig rig;
	uint64_t a;

	rig_open(&rig, 2048, 1);
	a = open_file(&rig, "a");
	for (unsigned i = 0; i < extents + LATE_BY; i++) {
		if (i >= LATE_BY && (i - LATE_BY) % LATE_EACH == 1)
			fill(&rig, a, i - LATE_BY, 1);
		if (i < extents && i % LATE_EACH != 1 && i != NEVER)
			fill(&rig, a, i, 1);
		if (i % 3 == 0)
			ck_assert_int_eq(rig_sync(&rig), 0);
	}
	ck_assert_int_eq(rig_sync(&rig), 0);
	ck_assert_uint_le(extents_of(&rig, a), 16);
	ck_assert_int_eq(rig_release(&rig, a), 0);
	ck_assert_uint_eq(rig.fs->files->prealloc_sectors, 0);
	rig_close(&rig);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("preallocation");
	Suite *suite = suite_create("preallocation");

	tcase_add_test(tc, preallocated_room_goes_back);
	tcase_add_test(tc, a_crash_leaves_no_preallocated_room);
	tcase_add_test(tc, extents_that_come_late_have_their_places);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}

/*
 * test_fs_names.c - names, attributes, extended attributes on a simulated
 * disk: each operation with its errors.  Random ones are in test_fs_random.c.
 */
#include "tests/rig/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "format/format.h"
#include "fs/op/fs_internal.h"
#include "fs/mkfs.h"
#include "tests/rig/rig_fs.h"

#define ROOT TRAX_ROOT_INO
#define MIB 48u

static struct rig rig;

static void setup(void)
{
	rig_open(&rig, MIB, 1);
}

static void teardown(void)
{
	rig_close(&rig);
}

static char *long_name(size_t bytes)
{
	static char name[5000];

	memset(name, 'n', bytes);
	name[bytes] = '\0';
	return name;
}

/* ---- mkfs ---- */

static int plan_on_tracks(uint64_t bytes, uint32_t track,
			  struct mkfs_plan *plan)
{
	struct sim_options options = { .seed = 7 };
	struct sim *sim = sim_new(NULL, 1 << 16, &options);
	struct disk_limits limits = sim_disk(sim)->limits;
	struct mkfs_options mkfs = { .pseudo_track_sectors = track };
	int rc;

	limits.sectors = bytes / 512;
	rc = mkfs_plan(sim_env(sim), &limits, &mkfs, plan);
	sim_free(sim);
	return rc;
}

static int plan_of(uint64_t bytes, struct mkfs_plan *plan)
{
	return plan_on_tracks(bytes, 0, plan);
}

/* On tracks of 167 KB a log place is several tracks, as long as the log keeps
 * below its share of the disk. */
START_TEST(short_tracks_make_no_small_log)
{
	static const struct { uint64_t disk, least, most; } want[] = {
		{ 9000000000ull, 48 << 20, 80 << 20 },
		{ 1ull << 30, 4 << 20, 10 << 20 },
		{ 1000000000000ull, 60 << 20, 80 << 20 },
	};
	struct mkfs_plan plan;

	for (unsigned i = 0; i < sizeof(want) / sizeof(*want); i++) {
		uint64_t bytes = 0;

		ck_assert_int_eq(plan_on_tracks(want[i].disk, 334, &plan), 0);
		for (unsigned k = 0; k < plan.super.log_tracks; k++)
			bytes += plan.super.log[k].sectors * SECTOR_BYTES;
		ck_assert_uint_ge(bytes, want[i].least);
		ck_assert_uint_le(bytes, want[i].most);
	}
}
END_TEST

START_TEST(plan_is_believed)
{
	static const uint64_t sizes[] = {
		16ull << 20, (16ull << 20) + 4096 * 3 + 512, 100ull << 20,
		1ull << 30, 80000000000ull, 20000000000000ull,
	};
	uint8_t buf[TRAX_BLOCK_BYTES];
	struct mkfs_plan plan;
	struct super super;
	unsigned i, k;
	uint64_t own;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ck_assert_int_eq(plan_of(sizes[i], &plan), 0);
		super_encode(&plan.super, TRAX_SUPER_SECTOR, buf);
		ck_assert_ptr_null(super_decode(buf, TRAX_SUPER_SECTOR,
						&super));
		ck_assert_uint_ge(super.log_tracks, 4);
		own = super_fixed_sectors(&super);
		for (k = 0; k < plan.node_tracks; k++)
			own += plan.nodes[k].sectors;
		ck_assert_uint_eq(plan.data_sectors, super.sectors - own);
		if (sizes[i] >= 1ull << 30)
			ck_assert_uint_lt(own, super.sectors / 100);
		else
			ck_assert_uint_lt(own, super.sectors / 2);
	}
	ck_assert_uint_eq(plan.super.log_tracks, TRAX_MAX_LOG_TRACKS);
	ck_assert_int_eq(plan_of((16ull << 20) - 4096, &plan), -ENOSPC);
}
END_TEST

/* ---- Making and finding ---- */

START_TEST(create_and_lookup)
{
	struct fs_attr attr, attr2;
	uint64_t dir, file;

	ck_assert_int_eq(rig_getattr(&rig, ROOT, &attr), 0);
	ck_assert_uint_eq(attr.mode, S_IFDIR | 0755);
	ck_assert_uint_eq(attr.nlink, 2);
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &dir), 0);
	ck_assert_int_eq(rig_mknod(&rig, dir, "f", S_IFREG | 0640, &file), 0);
	ck_assert_int_eq(rig_getattr(&rig, ROOT, &attr), 0);
	ck_assert_uint_eq(attr.nlink, 3);
	ck_assert_int_eq(rig_lookup(&rig, dir, "f", &attr), 0);
	ck_assert_uint_eq(attr.ino, file);
	ck_assert_uint_eq(attr.mode, S_IFREG | 0640);
	ck_assert_uint_eq(attr.nlink, 1);
	ck_assert_int_eq(rig_lookup(&rig, dir, ".", &attr), 0);
	ck_assert_uint_eq(attr.ino, dir);
	ck_assert_int_eq(rig_lookup(&rig, dir, "..", &attr), 0);
	ck_assert_uint_eq(attr.ino, ROOT);
	ck_assert_int_eq(rig_lookup(&rig, file, ".", &attr), 0);
	ck_assert_uint_eq(attr.ino, file);
	rig_remount(&rig);
	ck_assert_int_eq(rig_lookup(&rig, ROOT, "d", &attr), 0);
	ck_assert_uint_eq(attr.ino, dir);
	ck_assert_int_eq(rig_lookup(&rig, dir, "f", &attr2), 0);
	ck_assert_uint_eq(attr2.ino, file);
}
END_TEST

START_TEST(making_fails_as_posix_says)
{
	uint64_t dir, file, ino;
	struct fs_attr attr;

	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &dir), 0);
	ck_assert_int_eq(rig_mknod(&rig, ROOT, "f", S_IFREG, &file), 0);
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &ino), -EEXIST);
	ck_assert_int_eq(rig_mknod(&rig, ROOT, "d", S_IFREG, &ino), -EEXIST);
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "..", &ino), -EEXIST);
	ck_assert_int_eq(rig_mkdir(&rig, file, "x", &ino), -ENOTDIR);
	ck_assert_int_eq(rig_mkdir(&rig, 4711, "x", &ino), -ESTALE);
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "", &ino), -ENOENT);
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "a/b", &ino), -EINVAL);
	ck_assert_int_eq(rig_mknod(&rig, ROOT, "x", S_IFDIR, &ino), -EINVAL);
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, long_name(256), &ino),
			 -ENAMETOOLONG);
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, long_name(255), &ino), 0);
	ck_assert_int_eq(rig_lookup(&rig, ROOT, long_name(255), &attr), 0);
	ck_assert_int_eq(rig_lookup(&rig, ROOT, long_name(1025), &attr),
			 -ENAMETOOLONG);
	ck_assert_int_eq(rig_lookup(&rig, ROOT, "no", &attr), -ENOENT);
	ck_assert_int_eq(rig_lookup(&rig, file, "no", &attr), -ENOTDIR);
	ck_assert_int_eq(rig_symlink(&rig, ROOT, "s", "", &ino), -ENOENT);
	ck_assert_int_eq(rig_symlink(&rig, ROOT, "s", long_name(4096), &ino),
			 -ENAMETOOLONG);
}
END_TEST

START_TEST(symlinks_of_any_length_are_read_back)
{
	static const size_t sizes[] = { 1, 200, 2048, 2049, 4095 };
	struct fs_op op = { .type = FS_READLINK };
	struct fs_attr attr;
	char buf[4096], name[8];
	uint64_t ino;
	size_t i;

	for (i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "s%zu", i);
		ck_assert_int_eq(rig_symlink(&rig, ROOT, name,
					     long_name(sizes[i]), &ino), 0);
		op.ino = ino;
		op.buffer = buf;
		ck_assert_int_eq(rig_do(&rig, &op), 0);
		ck_assert_uint_eq(op.result, sizes[i]);
		ck_assert_int_eq(memcmp(buf, long_name(sizes[i]), sizes[i]), 0);
		ck_assert_int_eq(rig_getattr(&rig, ino, &attr), 0);
		ck_assert_uint_eq(attr.size, sizes[i]);
		ck_assert_uint_eq(attr.mode, S_IFLNK | 0777);
	}
	op.ino = ROOT;
	ck_assert_int_eq(rig_do(&rig, &op), -EINVAL);
}
END_TEST

START_TEST(special_files_and_sgid)
{
	struct fs_op op = { .type = FS_MKNOD, .ino = ROOT, .name = "blk",
			    .mode = S_IFBLK | 0666, .umask = 022, .uid = 3,
			    .gid = 4, .rdev = 0x801 };
	struct fs_op chmod = { .type = FS_SETATTR, .flags = FS_SET_MODE |
			       FS_SET_GID };
	struct fs_attr attr;
	uint64_t dir, sub;

	ck_assert_int_eq(rig_do(&rig, &op), 0);
	ck_assert_uint_eq(op.attr.mode, S_IFBLK | 0644);
	ck_assert_uint_eq(op.attr.rdev, 0x801);
	ck_assert_uint_eq(op.attr.uid, 3);
	ck_assert_uint_eq(op.attr.gid, 4);
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &dir), 0);
	chmod.ino = dir;
	chmod.attr.mode = 02775;
	chmod.attr.gid = 77;
	ck_assert_int_eq(rig_do(&rig, &chmod), 0);
	ck_assert_uint_eq(chmod.attr.mode, S_IFDIR | 02775);
	ck_assert_int_eq(rig_mkdir(&rig, dir, "sub", &sub), 0);
	ck_assert_int_eq(rig_getattr(&rig, sub, &attr), 0);
	ck_assert_uint_eq(attr.mode, S_IFDIR | 02755);
	ck_assert_uint_eq(attr.gid, 77);
	op.ino = dir;
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	ck_assert_uint_eq(op.attr.gid, 77);
}
END_TEST

/* ---- Links and removal ---- */

START_TEST(links_are_counted)
{
	uint64_t dir, file;
	struct fs_attr attr;

	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &dir), 0);
	ck_assert_int_eq(rig_mknod(&rig, ROOT, "f", S_IFREG, &file), 0);
	ck_assert_int_eq(rig_link(&rig, file, dir, "g"), 0);
	ck_assert_int_eq(rig_link(&rig, file, dir, "g"), -EEXIST);
	ck_assert_int_eq(rig_link(&rig, dir, ROOT, "x"), -EPERM);
	ck_assert_int_eq(rig_link(&rig, file, file, "x"), -ENOTDIR);
	ck_assert_int_eq(rig_getattr(&rig, file, &attr), 0);
	ck_assert_uint_eq(attr.nlink, 2);
	ck_assert_int_eq(rig_unlink(&rig, ROOT, "f"), 0);
	ck_assert_int_eq(rig_getattr(&rig, file, &attr), 0);
	ck_assert_uint_eq(attr.nlink, 1);
	ck_assert_int_eq(rig_unlink(&rig, dir, "g"), 0);
	ck_assert_int_eq(rig_getattr(&rig, file, &attr), 0);
	ck_assert_uint_eq(attr.nlink, 0);
	ck_assert_int_eq(rig_link(&rig, file, dir, "h"), -ENOENT);
	/* Made and linked: two references. */
	ck_assert_int_eq(rig_forget(&rig, file, 2), 0);
	rig_settle(&rig);
	ck_assert_int_eq(rig_getattr(&rig, file, &attr), -ESTALE);
	ck_assert_int_eq(rig_lookup(&rig, file, ".", &attr), -ESTALE);
}
END_TEST

START_TEST(removing_fails_as_posix_says)
{
	uint64_t dir, file;

	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &dir), 0);
	ck_assert_int_eq(rig_mknod(&rig, dir, "f", S_IFREG, &file), 0);
	ck_assert_int_eq(rig_unlink(&rig, ROOT, "d"), -EISDIR);
	ck_assert_int_eq(rig_rmdir(&rig, ROOT, "d"), -ENOTEMPTY);
	ck_assert_int_eq(rig_rmdir(&rig, dir, "f"), -ENOTDIR);
	ck_assert_int_eq(rig_rmdir(&rig, dir, "."), -EINVAL);
	ck_assert_int_eq(rig_rmdir(&rig, dir, ".."), -ENOTEMPTY);
	ck_assert_int_eq(rig_unlink(&rig, dir, "no"), -ENOENT);
	ck_assert_int_eq(rig_unlink(&rig, file, "no"), -ENOTDIR);
	ck_assert_int_eq(rig_unlink(&rig, dir, "f"), 0);
	ck_assert_int_eq(rig_rmdir(&rig, ROOT, "d"), 0);
	/* Still referenced, but nothing can be made in it. */
	ck_assert_int_eq(rig_mknod(&rig, dir, "g", S_IFREG, NULL), -ENOENT);
}
END_TEST

START_TEST(open_unlinked_survives)
{
	struct fs_attr attr;
	uint64_t file;

	ck_assert_int_eq(rig_mknod(&rig, ROOT, "f", S_IFREG, &file), 0);
	ck_assert_int_eq(rig_open_file(&rig, file, O_RDWR), 0);
	ck_assert_int_eq(rig_unlink(&rig, ROOT, "f"), 0);
	ck_assert_int_eq(rig_forget(&rig, file, 1), 0);
	rig_settle(&rig);
	ck_assert_int_eq(rig_getattr(&rig, file, &attr), 0);
	ck_assert_int_eq(rig_release(&rig, file), 0);
	rig_settle(&rig);
	ck_assert_int_eq(rig_getattr(&rig, file, &attr), -ESTALE);
}
END_TEST

START_TEST(orphans_go_at_mount)
{
	struct fs_op stat = { .type = FS_STATFS };
	struct fs_attr attr;
	uint64_t file, files;

	ck_assert_int_eq(rig_do(&rig, &stat), 0);
	files = stat.statfs.files - stat.statfs.files_free;
	ck_assert_int_eq(rig_mknod(&rig, ROOT, "f", S_IFREG, &file), 0);
	ck_assert_int_eq(rig_unlink(&rig, ROOT, "f"), 0);
	ck_assert_int_eq(rig_sync(&rig), 0);
	rig_crash(&rig);
	rig_settle(&rig);
	ck_assert_int_eq(rig_getattr(&rig, file, &attr), -ESTALE);
	ck_assert_int_eq(rig_do(&rig, &stat), 0);
	ck_assert_uint_eq(stat.statfs.files - stat.statfs.files_free, files);
}
END_TEST

START_TEST(tmpfile_gets_a_name)
{
	struct fs_op op = { .type = FS_TMPFILE, .ino = ROOT,
			    .mode = S_IFREG | 0600 };
	struct fs_attr attr;
	uint64_t kept, lost;

	ck_assert_int_eq(rig_do(&rig, &op), 0);
	kept = op.attr.ino;
	ck_assert_uint_eq(op.attr.nlink, 0);
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	lost = op.attr.ino;
	ck_assert_int_eq(rig_link(&rig, kept, ROOT, "t"), 0);
	ck_assert_int_eq(rig_sync(&rig), 0);
	rig_crash(&rig);
	rig_settle(&rig);
	ck_assert_int_eq(rig_lookup(&rig, ROOT, "t", &attr), 0);
	ck_assert_uint_eq(attr.ino, kept);
	ck_assert_uint_eq(attr.nlink, 1);
	ck_assert_int_eq(rig_getattr(&rig, lost, &attr), -ESTALE);
}
END_TEST

/* The room of what was written and deleted before it was written back. */
START_TEST(dirty_and_deleted)
{
	static char data[1 << 20];
	struct fs_op before = { .type = FS_STATFS, .ino = ROOT };
	struct fs_op after = before;
	struct fs_op write = { .type = FS_WRITE, .data = data,
			       .size = sizeof(data) };

	ck_assert_int_eq(rig_do(&rig, &before), 0);
	ck_assert_int_eq(rig_mknod(&rig, ROOT, "f", S_IFREG, &write.ino), 0);
	ck_assert_int_eq(rig_do(&rig, &write), 0);
	ck_assert_int_eq(rig_unlink(&rig, ROOT, "f"), 0);
	ck_assert_int_eq(rig_forget(&rig, write.ino, 1), 0);
	rig_settle(&rig);
	ck_assert_int_eq(rig_do(&rig, &after), 0);
	ck_assert_uint_eq(after.statfs.free, before.statfs.free);
}
END_TEST

/* ---- Renaming ---- */

START_TEST(renaming_a_file_replaces_and_exchanges)
{
	uint64_t a, b, dir;
	struct fs_attr attr;

	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &dir), 0);
	ck_assert_int_eq(rig_mknod(&rig, ROOT, "a", S_IFREG, &a), 0);
	ck_assert_int_eq(rig_mknod(&rig, dir, "b", S_IFREG, &b), 0);
	ck_assert_int_eq(rig_rename(&rig, ROOT, "no", dir, "x", 0), -ENOENT);
	ck_assert_int_eq(rig_rename(&rig, ROOT, "a", dir, "b",
				    FS_RENAME_NOREPLACE), -EEXIST);
	ck_assert_int_eq(rig_rename(&rig, ROOT, "a", dir, "c",
				    FS_RENAME_EXCHANGE), -ENOENT);
	ck_assert_int_eq(rig_rename(&rig, ROOT, "a", dir, "c",
				    FS_RENAME_EXCHANGE | FS_RENAME_NOREPLACE),
			 -EINVAL);
	ck_assert_int_eq(rig_rename(&rig, ROOT, "a", dir, "b",
				    FS_RENAME_EXCHANGE), 0);
	ck_assert_int_eq(rig_lookup(&rig, ROOT, "a", &attr), 0);
	ck_assert_uint_eq(attr.ino, b);
	ck_assert_int_eq(rig_lookup(&rig, dir, "b", &attr), 0);
	ck_assert_uint_eq(attr.ino, a);
	ck_assert_int_eq(rig_rename(&rig, ROOT, "a", dir, "b", 0), 0);
	ck_assert_int_eq(rig_lookup(&rig, ROOT, "a", &attr), -ENOENT);
	ck_assert_int_eq(rig_lookup(&rig, dir, "b", &attr), 0);
	ck_assert_uint_eq(attr.ino, b);
	ck_assert_int_eq(rig_getattr(&rig, a, &attr), 0);
	ck_assert_uint_eq(attr.nlink, 0);
	/* Two names of one inode: nothing happens. */
	ck_assert_int_eq(rig_link(&rig, b, ROOT, "b2"), 0);
	ck_assert_int_eq(rig_rename(&rig, dir, "b", ROOT, "b2", 0), 0);
	ck_assert_int_eq(rig_lookup(&rig, dir, "b", &attr), 0);
	ck_assert_uint_eq(attr.nlink, 2);
}
END_TEST

/* The old name leads to a device 0:0 of mode 0, the new one to the file. */
static void check_whiteout(uint64_t from, const char *name, uint64_t to,
			   const char *name2, uint64_t ino)
{
	struct fs_attr attr;

	ck_assert_int_eq(rig_lookup(&rig, to, name2, &attr), 0);
	ck_assert_uint_eq(attr.ino, ino);
	ck_assert_int_eq(rig_forget(&rig, attr.ino, 1), 0);
	ck_assert_int_eq(rig_lookup(&rig, from, name, &attr), 0);
	ck_assert_uint_eq(attr.mode, S_IFCHR);
	ck_assert_uint_eq(attr.rdev, 0);
	ck_assert_uint_eq(attr.nlink, 1);
	ck_assert_int_eq(rig_forget(&rig, attr.ino, 1), 0);
}

static void try_whiteouts(uint64_t name_mask)
{
	uint64_t a, b, file, other, dir;

	rig.fs->name_mask = name_mask;
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "a", &a), 0);
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "b", &b), 0);
	ck_assert_int_eq(rig_mknod(&rig, a, "f", S_IFREG | 0644, &file), 0);
	ck_assert_int_eq(rig_mknod(&rig, b, "old", S_IFREG | 0644, &other), 0);
	ck_assert_int_eq(rig_mkdir(&rig, a, "d", &dir), 0);
	/* In its directory; to another one, over a file; a directory. */
	ck_assert_int_eq(rig_rename(&rig, a, "f", a, "g", FS_RENAME_WHITEOUT),
			 0);
	check_whiteout(a, "f", a, "g", file);
	ck_assert_int_eq(rig_rename(&rig, a, "g", b, "old",
				    FS_RENAME_WHITEOUT), 0);
	check_whiteout(a, "g", b, "old", file);
	ck_assert_int_eq(rig_rename(&rig, a, "d", b, "d",
				    FS_RENAME_WHITEOUT |
				    FS_RENAME_NOREPLACE), 0);
	check_whiteout(a, "d", b, "d", dir);
	/* Over a whiteout, within a directory. */
	ck_assert_int_eq(rig_rename(&rig, a, "f", a, "g", FS_RENAME_WHITEOUT),
			 0);
	ck_assert_int_eq(rig_rename(&rig, b, "d", b, "e",
				    FS_RENAME_WHITEOUT |
				    FS_RENAME_EXCHANGE), -EINVAL);
}

START_TEST(rename_leaves_whiteouts)
{
	try_whiteouts(rig.fs->name_mask);
}
END_TEST

START_TEST(rename_leaves_whiteouts_in_one_item)
{
	try_whiteouts(1);
}
END_TEST

START_TEST(a_directory_never_moves_into_itself)
{
	uint64_t a, b, c, file;
	struct fs_attr attr;

	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "a", &a), 0);
	ck_assert_int_eq(rig_mkdir(&rig, a, "b", &b), 0);
	ck_assert_int_eq(rig_mkdir(&rig, b, "c", &c), 0);
	ck_assert_int_eq(rig_mknod(&rig, ROOT, "f", S_IFREG, &file), 0);
	ck_assert_int_eq(rig_rename(&rig, ROOT, "a", a, "x", 0), -EINVAL);
	ck_assert_int_eq(rig_rename(&rig, ROOT, "a", c, "x", 0), -EINVAL);
	ck_assert_int_eq(rig_rename(&rig, b, "c", ROOT, "a", 0), -ENOTEMPTY);
	ck_assert_int_eq(rig_rename(&rig, b, "c", ROOT, "a",
				    FS_RENAME_EXCHANGE), -EINVAL);
	ck_assert_int_eq(rig_rename(&rig, ROOT, "f", a, "b", 0), -EISDIR);
	ck_assert_int_eq(rig_rename(&rig, b, "c", ROOT, "f", 0), -ENOTDIR);
	ck_assert_int_eq(rig_rename(&rig, a, ".", ROOT, "x", 0), -EBUSY);
	ck_assert_int_eq(rig_rename(&rig, b, "c", ROOT, "c", 0), 0);
	ck_assert_int_eq(rig_lookup(&rig, c, "..", &attr), 0);
	ck_assert_uint_eq(attr.ino, ROOT);
	ck_assert_uint_eq(attr.nlink, 4);
	ck_assert_int_eq(rig_getattr(&rig, b, &attr), 0);
	ck_assert_uint_eq(attr.nlink, 2);
	/* Over an empty one. */
	ck_assert_int_eq(rig_rename(&rig, a, "b", ROOT, "c", 0), 0);
	ck_assert_int_eq(rig_lookup(&rig, ROOT, "c", &attr), 0);
	ck_assert_uint_eq(attr.ino, b);
	ck_assert_int_eq(rig_getattr(&rig, ROOT, &attr), 0);
	ck_assert_uint_eq(attr.nlink, 4);
	ck_assert_int_eq(rig_getattr(&rig, a, &attr), 0);
	ck_assert_uint_eq(attr.nlink, 2);
	/* A directory and a file change places. */
	ck_assert_int_eq(rig_rename(&rig, ROOT, "f", ROOT, "c",
				    FS_RENAME_EXCHANGE), 0);
	ck_assert_int_eq(rig_rename(&rig, ROOT, "c", a, "f", 0), 0);
	ck_assert_int_eq(rig_rename(&rig, a, "f", ROOT, "f",
				    FS_RENAME_EXCHANGE), 0);
	ck_assert_int_eq(rig_getattr(&rig, a, &attr), 0);
	ck_assert_uint_eq(attr.nlink, 3);
	ck_assert_int_eq(rig_lookup(&rig, b, "..", &attr), 0);
	ck_assert_uint_eq(attr.ino, a);
}
END_TEST

/* Who opens with O_NOATIME sets no access time, and others still do. */
START_TEST(who_wants_no_access_time_sets_none)
{
	uint8_t data[100] = { 1 };
	struct fs_op write = { .type = FS_WRITE, .data = data, .size = 100 };
	struct fs_op read = { .type = FS_READ, .buffer = data, .size = 100,
			      .flags = O_NOATIME };
	struct fs_attr before, after;
	uint64_t file;

	ck_assert_int_eq(rig_mknod(&rig, ROOT, "f", S_IFREG | 0600, &file), 0);
	read.ino = write.ino = file;
	ck_assert_int_eq(rig_do(&rig, &write), 0);
	ck_assert_int_eq(rig_getattr(&rig, file, &before), 0);
	sim_advance(rig.sim, 2000000000);
	ck_assert_int_eq(rig_open_file(&rig, file, O_RDONLY | O_NOATIME), 0);
	ck_assert_int_eq(rig_do(&rig, &read), 0);
	ck_assert_int_eq(rig_release(&rig, file), 0);
	ck_assert_int_eq(rig_sync(&rig), 0);
	ck_assert_int_eq(rig_getattr(&rig, file, &after), 0);
	ck_assert_int_eq(after.atime.tv_sec, before.atime.tv_sec);
	ck_assert_int_eq(rig_open_file(&rig, file, O_RDONLY), 0);
	ck_assert_int_eq(rig_release(&rig, file), 0);
	ck_assert_int_eq(rig_getattr(&rig, file, &after), 0);
	ck_assert_int_gt(after.atime.tv_sec, before.atime.tv_sec);
}
END_TEST

/* Deep trees are walked in several transactions. */
START_TEST(deep_trees_are_walked_in_several_transactions)
{
	uint64_t dir[60];
	unsigned i;

	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &dir[0]), 0);
	for (i = 1; i < 60; i++)
		ck_assert_int_eq(rig_mkdir(&rig, dir[i - 1], "d", &dir[i]), 0);
	ck_assert_int_eq(rig_rename(&rig, ROOT, "d", dir[59], "x", 0),
			 -EINVAL);
	ck_assert_int_eq(rig_rename(&rig, dir[30], "d", dir[59], "x", 0),
			 -EINVAL);
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "e", NULL), 0);
	ck_assert_int_eq(rig_rename(&rig, ROOT, "e", dir[59], "x", 0), 0);
}
END_TEST

/* ---- Attributes ---- */

START_TEST(times_are_set_and_kept)
{
	struct fs_op op = { .type = FS_SETATTR, .flags = FS_SET_ATIME |
			    FS_SET_MTIME };
	struct fs_attr before, after;
	uint64_t dir, file;

	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &dir), 0);
	ck_assert_int_eq(rig_getattr(&rig, dir, &before), 0);
	sim_advance(rig.sim, 2000000000);
	ck_assert_int_eq(rig_mknod(&rig, dir, "f", S_IFREG, &file), 0);
	ck_assert_int_eq(rig_getattr(&rig, dir, &after), 0);
	ck_assert_int_gt(after.mtime.tv_sec, before.mtime.tv_sec);
	ck_assert_int_eq(after.ctime.tv_sec, after.mtime.tv_sec);
	ck_assert_int_eq(after.atime.tv_sec, before.atime.tv_sec);
	op.ino = file;
	op.attr.atime = (struct timespec){ 15032385535, 999999999 };
	op.attr.mtime = (struct timespec){ -1, 5 };
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	rig_remount(&rig);
	ck_assert_int_eq(rig_getattr(&rig, file, &after), 0);
	ck_assert_int_eq(after.atime.tv_sec, 15032385535);
	ck_assert_int_eq(after.atime.tv_nsec, 999999999);
	ck_assert_int_eq(after.mtime.tv_sec, -1);
	ck_assert_int_eq(after.mtime.tv_nsec, 5);
	op.attr.atime = (struct timespec){ 15032385536, 1 };
	op.attr.mtime = (struct timespec){ INT64_MIN, 1 };
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	ck_assert_int_eq(op.attr.atime.tv_sec, 15032385535);
	ck_assert_int_eq(op.attr.mtime.tv_sec, -2147483648ll);
}
END_TEST

static int set_flags(uint64_t ino, uint32_t flags)
{
	struct fs_op op = { .type = FS_SETFLAGS, .ino = ino, .flags = flags };

	return rig_do(&rig, &op);
}

START_TEST(immutable_and_append)
{
	struct fs_op chmod = { .type = FS_SETATTR, .flags = FS_SET_MODE };
	struct fs_op get = { .type = FS_GETFLAGS };
	uint64_t dir, file;

	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &dir), 0);
	ck_assert_int_eq(rig_mknod(&rig, dir, "f", S_IFREG, &file), 0);
	ck_assert_int_eq(set_flags(file, 0x80000000u), -EOPNOTSUPP);
	ck_assert_int_eq(set_flags(file, INODE_IMMUTABLE), 0);
	get.ino = chmod.ino = file;
	ck_assert_int_eq(rig_do(&rig, &get), 0);
	ck_assert_uint_eq(get.result, INODE_IMMUTABLE);
	ck_assert_int_eq(rig_do(&rig, &chmod), -EPERM);
	ck_assert_int_eq(rig_unlink(&rig, dir, "f"), -EPERM);
	ck_assert_int_eq(rig_rename(&rig, dir, "f", ROOT, "g", 0), -EPERM);
	ck_assert_int_eq(rig_link(&rig, file, ROOT, "g"), -EPERM);
	ck_assert_int_eq(rig_open_file(&rig, file, O_WRONLY), -EPERM);
	ck_assert_int_eq(rig_open_file(&rig, file, O_RDONLY), 0);
	ck_assert_int_eq(rig_setxattr(&rig, file, "user.a", "1", 1, 0),
			 -EPERM);
	ck_assert_int_eq(set_flags(file, INODE_APPEND), 0);
	ck_assert_int_eq(rig_open_file(&rig, file, O_WRONLY), -EPERM);
	ck_assert_int_eq(rig_open_file(&rig, file, O_WRONLY | O_APPEND), 0);
	ck_assert_int_eq(set_flags(file, 0), 0);
	ck_assert_int_eq(set_flags(dir, INODE_APPEND), 0);
	ck_assert_int_eq(rig_mknod(&rig, dir, "g", S_IFREG, NULL), 0);
	ck_assert_int_eq(rig_unlink(&rig, dir, "g"), -EPERM);
	ck_assert_int_eq(set_flags(dir, INODE_IMMUTABLE), 0);
	ck_assert_int_eq(rig_mknod(&rig, dir, "h", S_IFREG, NULL), -EPERM);
	ck_assert_int_eq(set_flags(dir, 0), 0);
	ck_assert_int_eq(rig_unlink(&rig, dir, "g"), 0);
}
END_TEST

/* ---- readdir ---- */

#define SEEN_MAX 20100u

struct seen {
	unsigned n, max;	/* stops after max */
	uint64_t next;
	bool plus;
	uint64_t ino[SEEN_MAX];
};

static bool seen_fill(void *arg, const char *name, size_t bytes, uint64_t ino,
		      unsigned d_type, uint64_t next,
		      const struct fs_attr *attr)
{
	struct seen *seen = arg;
	bool dots = name[0] == '.';

	if (seen->n == seen->max)
		return false;
	ck_assert_uint_lt(seen->n, SEEN_MAX);
	ck_assert_uint_gt(bytes, 0);
	ck_assert_uint_gt(next, seen->next);
	ck_assert(d_type == DT_DIR || !dots);
	ck_assert_int_eq(attr != NULL, seen->plus && !dots);
	if (attr)
		ck_assert_uint_eq(attr->ino, ino);
	seen->ino[seen->n++] = ino;
	seen->next = next;
	return true;
}

/* Reads on from seen->next: at most `max` entries, a batch. */
static unsigned read_batch(uint64_t dir, struct seen *seen, unsigned max)
{
	struct fs_op op = { .type = FS_READDIR, .ino = dir,
			    .offset = seen->next, .fill = seen_fill,
			    .fill_arg = seen, .plus = seen->plus };
	unsigned before = seen->n;

	seen->max = before + max;
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	return seen->n - before;
}

START_TEST(readdir_begins_with_the_dots)
{
	static struct seen seen;
	uint64_t dir, ino[3];
	char name[8];
	unsigned i;

	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &dir), 0);
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		ck_assert_int_eq(rig_mknod(&rig, dir, name, S_IFREG, &ino[i]),
				 0);
	}
	for (i = 0; i < 2; i++) {
		memset(&seen, 0, sizeof(seen));
		seen.plus = i;
		while (read_batch(dir, &seen, 1))
			;
		ck_assert_uint_eq(seen.n, 5);
		ck_assert_uint_eq(seen.ino[0], dir);
		ck_assert_uint_eq(seen.ino[1], ROOT);
		ck_assert_int_eq(memcmp(seen.ino + 2, ino, sizeof(ino)), 0);
	}
}
END_TEST

/*
 * 20,000 entries, read in batches, while every other one of those already seen
 * is removed, others are renamed, and new ones are made: each that is there all
 * the time is seen once.
 */
START_TEST(readdir_shows_what_stays_exactly_once)
{
	static struct seen seen;
	uint64_t dir, ino, first = 0;
	unsigned i, k = 0, n;
	struct fs_attr attr;
	char name[24], name2[24];

	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &dir), 0);
	for (i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "file-%u", i);
		ck_assert_int_eq(rig_mknod(&rig, dir, name, S_IFREG, &ino), 0);
		ck_assert_int_eq(rig_forget(&rig, ino, 1), 0);
		if (i == 0)
			first = ino;
	}
	memset(&seen, 0, sizeof(seen));
	seen.plus = true;
	while ((n = read_batch(dir, &seen, 300))) {
		for (; k + 2 < seen.n && k < 20000; k++) {
			snprintf(name, sizeof(name), "file-%u", k);
			snprintf(name2, sizeof(name2), "moved-%u", k);
			if (k % 2)
				ck_assert_int_eq(rig_unlink(&rig, dir, name),
						 0);
			else
				ck_assert_int_eq(rig_rename(&rig, dir, name,
							    dir, name2, 0), 0);
		}
		if (seen.n > 19990)
			break;
		snprintf(name, sizeof(name), "new-%u", k);
		ck_assert_int_eq(rig_mknod(&rig, dir, name, S_IFREG, &ino), 0);
	}
	while (read_batch(dir, &seen, 300))
		;
	for (i = 0; i < 20000; i++)
		ck_assert_uint_eq(seen.ino[i + 2], first + i);
	for (i = 2; i < seen.n; i++)
		rig_forget(&rig, seen.ino[i], 1);
	rig_remount(&rig);
	ck_assert_int_eq(rig_getattr(&rig, dir, &attr), 0);
	ck_assert_int_eq(rig_lookup(&rig, dir, "moved-4444", &attr), 0);
	ck_assert_int_eq(rig_lookup(&rig, dir, "file-4445", &attr), -ENOENT);
}
END_TEST

/* ---- Hashes that collide ---- */

START_TEST(names_of_one_hash)
{
	struct fs_attr attr;
	uint64_t ino[16], dir;
	char name[8], name2[8];
	unsigned i;

	rig.fs->name_mask = 0x1;
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &dir), 0);
	for (i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		ck_assert_int_eq(rig_mknod(&rig, dir, name, S_IFREG, &ino[i]),
				 0);
	}
	for (i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		snprintf(name2, sizeof(name2), "g%u", i % 4);
		ck_assert_int_eq(rig_rename(&rig, dir, name, dir, name2, 0),
				 0);
		ck_assert_int_eq(rig_lookup(&rig, dir, name2, &attr), 0);
		ck_assert_uint_eq(attr.ino, ino[i]);
	}
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		snprintf(name2, sizeof(name2), "g%u", 3 - i);
		ck_assert_int_eq(rig_rename(&rig, dir, name, dir, name2,
					    FS_RENAME_EXCHANGE), 0);
	}
	for (i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		ck_assert_int_eq(rig_lookup(&rig, dir, name, &attr), 0);
		ck_assert_uint_eq(attr.ino, ino[15 - i]);
		ck_assert_int_eq(rig_unlink(&rig, dir, name), 0);
	}
	ck_assert_int_eq(rig_rmdir(&rig, ROOT, "d"), 0);
}
END_TEST

static int make_long(unsigned i)
{
	char name[256];

	memset(name, 'x', 250);
	snprintf(name + 250, 6, "%u", i);
	return rig_mknod(&rig, ROOT, name, S_IFREG, NULL);
}

/* Names of two hashes: each item holds about fifteen of them. */
START_TEST(hash_item_full)
{
	unsigned i = 0, k = 0;
	char name[256];
	int rc;

	rig.fs->name_mask = 1;
	while (!(rc = make_long(i)))
		i++;
	ck_assert_int_eq(rc, -ENOSPC);
	ck_assert_uint_ge(i, TRAX_MAX_ITEM_BYTES / (18 + 252));
	ck_assert_uint_le(i, 2 * (TRAX_MAX_ITEM_BYTES / (18 + 251)));
	while ((rc = make_long(i)) == -ENOSPC) {
		ck_assert_uint_lt(k, i);
		memset(name, 'x', 250);
		snprintf(name + 250, 6, "%u", k++);
		ck_assert_int_eq(rig_rename(&rig, ROOT, name, ROOT, name + 249,
					    0), 0);
		ck_assert_int_eq(rig_unlink(&rig, ROOT, name + 249), 0);
	}
	ck_assert_int_eq(rc, 0);
}
END_TEST

/* ---- Extended attributes ---- */

START_TEST(xattrs_are_set_replaced_and_removed)
{
	char buf[64];
	uint64_t f;

	ck_assert_int_eq(rig_mknod(&rig, ROOT, "f", S_IFREG, &f), 0);
	ck_assert_int_eq(rig_getxattr(&rig, f, "user.a", buf, 64), -ENODATA);
	ck_assert_int_eq(rig_setxattr(&rig, f, "user.a", "one", 3,
				      XATTR_REPLACE), -ENODATA);
	ck_assert_int_eq(rig_setxattr(&rig, f, "user.a", "one", 3, 0), 0);
	ck_assert_int_eq(rig_setxattr(&rig, f, "user.a", "two", 3,
				      XATTR_CREATE), -EEXIST);
	ck_assert_int_eq(rig_getxattr(&rig, f, "user.a", NULL, 0), 3);
	ck_assert_int_eq(rig_getxattr(&rig, f, "user.a", buf, 2), -ERANGE);
	ck_assert_int_eq(rig_getxattr(&rig, f, "user.a", buf, 64), 3);
	ck_assert_int_eq(memcmp(buf, "one", 3), 0);
	ck_assert_int_eq(rig_setxattr(&rig, f, "user.", "", 0, 0), -EINVAL);
	ck_assert_int_eq(rig_setxattr(&rig, f, "trax.pin", "", 0, 0),
			 -EOPNOTSUPP);
	ck_assert_int_eq(rig_setxattr(&rig, f, "foo", "", 0, 0), -EOPNOTSUPP);
	ck_assert_int_eq(rig_setxattr(&rig, f, "system.x", "", 0, 0),
			 -EOPNOTSUPP);
	ck_assert_int_eq(rig_setxattr(&rig, f, long_name(256), "", 0, 0),
			 -ERANGE);
	ck_assert_int_eq(rig_setxattr(&rig, f, "trusted.e", "", 0, 0), 0);
	ck_assert_int_eq(rig_getxattr(&rig, f, "trusted.e", buf, 64), 0);
	ck_assert_int_eq(rig_removexattr(&rig, f, "user.a"), 0);
	ck_assert_int_eq(rig_removexattr(&rig, f, "user.a"), -ENODATA);
	ck_assert_int_eq(rig_getxattr(&rig, f, "user.a", buf, 64), -ENODATA);
}
END_TEST

static void fill_value(uint8_t *value, size_t bytes, uint64_t seed)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		value[i] = (uint8_t)test_random(&seed);
}

START_TEST(xattrs_of_any_size_survive_a_mount)
{
	static const size_t sizes[] = { 0, 1, 3780, 3790, 3800, 7600, 7601,
					65536, 30000, 65535, 12 };
	static uint8_t value[65537], back[65536];
	uint64_t f;
	size_t i;

	ck_assert_int_eq(rig_mknod(&rig, ROOT, "f", S_IFREG, &f), 0);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fill_value(value, sizes[i], i);
		ck_assert_int_eq(rig_setxattr(&rig, f, "user.big", value,
					      sizes[i], 0), 0);
		ck_assert_int_eq(rig_setxattr(&rig, f, "user.other", value,
					      sizes[i] / 2, 0), 0);
		if (i % 3 == 1)
			rig_remount(&rig);
		ck_assert_int_eq(rig_getxattr(&rig, f, "user.big", back,
					      sizeof(back)), (int)sizes[i]);
		ck_assert_int_eq(memcmp(back, value, sizes[i]), 0);
	}
	ck_assert_int_eq(rig_setxattr(&rig, f, "user.big", value, 65537, 0),
			 -E2BIG);
	ck_assert_int_eq(rig_unlink(&rig, ROOT, "f"), 0);
}
END_TEST

START_TEST(many_xattrs_are_listed)
{
	struct fs_op list = { .type = FS_LISTXATTR };
	static uint8_t value[9000];
	char name[32], names[4096];
	size_t total = 0;
	unsigned i;
	uint64_t f;

	ck_assert_int_eq(rig_mknod(&rig, ROOT, "f", S_IFREG, &f), 0);
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "user.name%u", i);
		total += strlen(name) + 1;
		ck_assert_int_eq(rig_setxattr(&rig, f, name, value,
					      i * 90, 0), 0);
	}
	list.ino = f;
	ck_assert_int_eq(rig_do(&rig, &list), 0);
	ck_assert_uint_eq(list.result, total);
	list.buffer = names;
	list.size = total - 1;
	ck_assert_int_eq(rig_do(&rig, &list), -ERANGE);
	list.size = sizeof(names);
	ck_assert_int_eq(rig_do(&rig, &list), 0);
	ck_assert_uint_eq(list.result, total);
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "user.name%u", i);
		ck_assert_ptr_nonnull(memmem(names, total, name,
					     strlen(name) + 1));
		ck_assert_int_eq(rig_removexattr(&rig, f, name), 0);
	}
	ck_assert_int_eq(rig_do(&rig, &list), 0);
	ck_assert_uint_eq(list.result, 0);
}
END_TEST

START_TEST(xattr_of_one_hash)
{
	char name[16], buf[16];
	uint64_t f;
	int i;

	rig.fs->name_mask = 0xff;
	ck_assert_int_eq(rig_mknod(&rig, ROOT, "f", S_IFREG, &f), 0);
	for (i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "user.%d", i);
		ck_assert_int_eq(rig_setxattr(&rig, f, name, name, 6, 0),
				 i < 4 ? 0 : -ENOSPC);
	}
	ck_assert_int_eq(rig_removexattr(&rig, f, "user.1"), 0);
	for (i = 2; i < 4; i++) {
		snprintf(name, sizeof(name), "user.%d", i);
		ck_assert_int_eq(rig_getxattr(&rig, f, name, buf, 16), 6);
		ck_assert_int_eq(memcmp(buf, name, 6), 0);
	}
	ck_assert_int_eq(rig_setxattr(&rig, f, "user.4", "x", 1, 0), 0);
	ck_assert_int_eq(rig_setxattr(&rig, f, "user.3", "y", 1,
				      XATTR_REPLACE), 0);
	ck_assert_int_eq(rig_getxattr(&rig, f, "user.3", buf, 16), 1);
}
END_TEST

/* ---- ACLs ---- */

struct acl_row {
	uint16_t tag, perm;
	uint32_t id;
};

static size_t acl_make(uint8_t *value, const struct acl_row *row, unsigned n)
{
	uint32_t version = htole32(2);

	memcpy(value, &version, 4);
	memcpy(value + 4, row, n * sizeof(*row));
	return 4 + n * sizeof(*row);
}

static const struct acl_row acl_rows[] = {
	{ 0x01, 7, UINT32_MAX }, { 0x02, 5, 1000 }, { 0x04, 5, UINT32_MAX },
	{ 0x10, 7, UINT32_MAX }, { 0x20, 0, UINT32_MAX },
};
static const struct acl_row acl_plain[] = {
	{ 0x01, 6, UINT32_MAX }, { 0x04, 4, UINT32_MAX },
	{ 0x20, 4, UINT32_MAX },
};
static const char acl_access[] = "system.posix_acl_access";
static const char acl_default[] = "system.posix_acl_default";

START_TEST(acl_sets_mode)
{
	struct fs_op chmod = { .type = FS_SETATTR, .flags = FS_SET_MODE };
	uint8_t value[64], back[64];
	struct fs_attr attr;
	size_t n;
	uint64_t f;

	ck_assert_int_eq(rig_mknod(&rig, ROOT, "f", S_IFREG | 0600, &f), 0);
	n = acl_make(value, acl_rows, 5);
	ck_assert_int_eq(rig_setxattr(&rig, f, acl_access, value, n - 1, 0),
			 -EINVAL);
	ck_assert_int_eq(rig_setxattr(&rig, f, acl_access, value, n - 8, 0),
			 -EINVAL);
	ck_assert_int_eq(rig_setxattr(&rig, f, acl_default, value, n, 0),
			 -EACCES);
	ck_assert_int_eq(rig_setxattr(&rig, f, acl_access, value, n, 0), 0);
	ck_assert_int_eq(rig_getattr(&rig, f, &attr), 0);
	ck_assert_uint_eq(attr.mode, S_IFREG | 0770);
	chmod.ino = f;
	chmod.attr.mode = 0651;
	ck_assert_int_eq(rig_do(&rig, &chmod), 0);
	ck_assert_int_eq(rig_getxattr(&rig, f, acl_access, back, 64), (int)n);
	ck_assert_uint_eq(back[4 + 2], 6);		/* owner */
	ck_assert_uint_eq(back[4 + 8 + 2], 5);		/* user 1000 */
	ck_assert_uint_eq(back[4 + 3 * 8 + 2], 5);	/* mask */
	ck_assert_uint_eq(back[4 + 4 * 8 + 2], 1);	/* others */
	/* One that the mode says all of is not kept. */
	n = acl_make(value, acl_plain, 3);
	ck_assert_int_eq(rig_setxattr(&rig, f, acl_access, value, n, 0), 0);
	ck_assert_int_eq(rig_getxattr(&rig, f, acl_access, back, 64),
			 -ENODATA);
	ck_assert_int_eq(rig_getattr(&rig, f, &attr), 0);
	ck_assert_uint_eq(attr.mode, S_IFREG | 0644);
	ck_assert_int_eq(rig_removexattr(&rig, f, acl_access), 0);
}
END_TEST

START_TEST(acl_is_inherited)
{
	struct fs_op op = { .type = FS_MKNOD, .name = "f", .umask = 077,
			    .mode = S_IFREG | 0666 };
	uint8_t value[64], back[64];
	struct fs_attr attr;
	uint64_t dir, sub;
	int n;

	n = (int)acl_make(value, acl_rows, 5);
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &dir), 0);
	ck_assert_int_eq(rig_setxattr(&rig, dir, acl_default, value, (size_t)n,
				      0), 0);
	op.ino = dir;
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	ck_assert_uint_eq(op.attr.mode, S_IFREG | 0660);
	ck_assert_int_eq(rig_getxattr(&rig, op.attr.ino, acl_access, back, 64),
			 n);
	ck_assert_uint_eq(back[4 + 3 * 8 + 2], 6);	/* mask */
	ck_assert_uint_eq(back[4 + 2 * 8 + 2], 5);	/* group */
	ck_assert_int_eq(rig_getxattr(&rig, op.attr.ino, acl_default, back,
				      64), -ENODATA);
	ck_assert_int_eq(rig_mkdir(&rig, dir, "s", &sub), 0);
	ck_assert_int_eq(rig_getxattr(&rig, sub, acl_default, back, 64), n);
	ck_assert_int_eq(memcmp(back, value, (size_t)n), 0);
	ck_assert_int_eq(rig_getattr(&rig, sub, &attr), 0);
	ck_assert_uint_eq(attr.mode, S_IFDIR | 0750);
	ck_assert_int_eq(rig_symlink(&rig, dir, "l", "x", &sub), 0);
	ck_assert_int_eq(rig_getxattr(&rig, sub, acl_access, back, 64),
			 -ENODATA);
}
END_TEST

START_TEST(a_change_of_content_takes_suid_and_capabilities)
{
	struct fs_op op = { .type = FS_SETATTR, .flags = FS_SET_MODE };
	uint64_t f;

	ck_assert_int_eq(rig_mknod(&rig, ROOT, "f", S_IFREG | 0755, &f), 0);
	ck_assert_int_eq(rig_setxattr(&rig, f, "security.capability",
				      "0123456789", 10, 0), 0);
	op.ino = f;
	op.attr.mode = 06755;
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	op.flags = FS_SET_KILL_PRIV | FS_SET_UID;
	op.attr.uid = 9;
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	ck_assert_uint_eq(op.attr.mode, S_IFREG | 0755);
	ck_assert_uint_eq(op.attr.uid, 9);
	ck_assert_int_eq(rig_getxattr(&rig, f, "security.capability", NULL, 0),
			 -ENODATA);
}
END_TEST

/* ---- The rest ---- */

START_TEST(read_only_refuses)
{
	struct fs_attr attr;
	uint64_t dir;

	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "d", &dir), 0);
	ck_assert_int_eq(rig_sync(&rig), 0);
	rig.options.read_only = true;
	rig_crash(&rig);
	ck_assert(fs_read_only(rig.fs));
	ck_assert_int_eq(rig_lookup(&rig, ROOT, "d", &attr), 0);
	ck_assert_uint_eq(attr.ino, dir);
	ck_assert_int_eq(rig_mkdir(&rig, ROOT, "e", NULL), -EROFS);
	ck_assert_int_eq(rig_rmdir(&rig, ROOT, "d"), -EROFS);
	ck_assert_int_eq(rig_setxattr(&rig, dir, "user.a", "", 0, 0), -EROFS);
	ck_assert_int_eq(rig_sync(&rig), 0);
	rig_settle(&rig);
	ck_assert_uint_eq(sim_counts(rig.sim)->writes, ({
		rig_remount(&rig);
		sim_counts(rig.sim)->writes;
	}));
}
END_TEST

/* A file kept in its inode's leaf has no extent that could be taken out. */
START_TEST(a_hole_in_an_inline_file_reads_as_zeros)
{
	struct fs_op op = { .type = FS_WRITE, .size = 2000 };
	char buf[4096];
	uint64_t file;

	memset(buf, 'a', sizeof(buf));
	ck_assert_int_eq(rig_mknod(&rig, ROOT, "f", S_IFREG, &file), 0);
	op.ino = file;
	op.data = buf;
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	rig_remount(&rig);
	op = (struct fs_op){ .type = FS_FALLOCATE, .ino = file,
			     .flags = FALLOC_FL_PUNCH_HOLE |
				      FALLOC_FL_KEEP_SIZE, .size = 4096 };
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	rig_remount(&rig);
	op = (struct fs_op){ .type = FS_READ, .ino = file, .buffer = buf,
			     .size = 4096 };
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	ck_assert_uint_eq(op.result, 2000);
	ck_assert_int_eq(buf[0], 0);
	ck_assert_int_eq(memcmp(buf, buf + 1, 1999), 0);
}
END_TEST

START_TEST(facts_are_json)
{
	char *text = fs_stats_json(rig.fs);

	ck_assert_ptr_nonnull(text);
	ck_assert_ptr_nonnull(strstr(text, "\"commits\""));
	ck_assert_ptr_nonnull(strstr(text, "\"lookup\""));
	free(text);
	text = fs_model_json(rig.fs);
	ck_assert_ptr_nonnull(text);
	ck_assert_ptr_nonnull(strstr(text, "\"known\": false"));
	free(text);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("fs names");
	TCase *plan = tcase_create("plan");
	TCase *names = tcase_create("names");

	tcase_add_test(plan, short_tracks_make_no_small_log);
	tcase_add_test(plan, plan_is_believed);
	suite_add_tcase(s, plan);
	tcase_add_checked_fixture(names, setup, teardown);
	tcase_add_test(names, create_and_lookup);
	tcase_add_test(names, making_fails_as_posix_says);
	tcase_add_test(names, symlinks_of_any_length_are_read_back);
	tcase_add_test(names, special_files_and_sgid);
	tcase_add_test(names, links_are_counted);
	tcase_add_test(names, removing_fails_as_posix_says);
	tcase_add_test(names, open_unlinked_survives);
	tcase_add_test(names, orphans_go_at_mount);
	tcase_add_test(names, tmpfile_gets_a_name);
	tcase_add_test(names, dirty_and_deleted);
	tcase_add_test(names, renaming_a_file_replaces_and_exchanges);
	tcase_add_test(names, rename_leaves_whiteouts);
	tcase_add_test(names, rename_leaves_whiteouts_in_one_item);
	tcase_add_test(names, a_directory_never_moves_into_itself);
	tcase_add_test(names, deep_trees_are_walked_in_several_transactions);
	tcase_add_test(names, times_are_set_and_kept);
	tcase_add_test(names, who_wants_no_access_time_sets_none);
	tcase_add_test(names, immutable_and_append);
	tcase_add_test(names, readdir_begins_with_the_dots);
	tcase_add_test(names, readdir_shows_what_stays_exactly_once);
	tcase_add_test(names, names_of_one_hash);
	tcase_add_test(names, hash_item_full);
	tcase_add_test(names, xattrs_are_set_replaced_and_removed);
	tcase_add_test(names, xattrs_of_any_size_survive_a_mount);
	tcase_add_test(names, many_xattrs_are_listed);
	tcase_add_test(names, xattr_of_one_hash);
	tcase_add_test(names, acl_sets_mode);
	tcase_add_test(names, acl_is_inherited);
	tcase_add_test(names, a_change_of_content_takes_suid_and_capabilities);
	tcase_add_test(names, read_only_refuses);
	tcase_add_test(names, a_hole_in_an_inline_file_reads_as_zeros);
	tcase_add_test(names, facts_are_json);
	suite_add_tcase(s, names);
	return s;
}

int main(void)
{
	return test_run(suite());
}

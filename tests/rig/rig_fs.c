/*
 * rig_fs.c - see rig_fs.h.  Time passes only when nothing else can happen.
 */
#include "tests/rig/rig_fs.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "fs/op/fs_internal.h"
#include "fs/mkfs.h"

/* Turns of the loop without an end: something hangs. */
#define MAX_TURNS 100000u

static void rig_mount(struct rig *rig)
{
	int rc = fs_open(sim_env(rig->sim), sim_disk(rig->sim), &rig->options,
			 &rig->fs);

	ck_assert_int_eq(rc, 0);
}

void rig_open(struct rig *rig, uint64_t mib, uint64_t seed)
{
	struct sim_options options = { .seed = seed };
	struct mkfs_options mkfs = { 0 };
	struct mkfs_plan plan;
	struct disk *disk;

	memset(rig, 0, sizeof(*rig));
	pool_set_poison(true);
	rig->options.memory_bytes = 64 << 20;
	rig->sim = sim_new(NULL, mib << 11, &options);
	ck_assert_ptr_nonnull(rig->sim);
	disk = sim_disk(rig->sim);
	ck_assert_int_eq(mkfs_plan(sim_env(rig->sim), &disk->limits, &mkfs,
				   &plan), 0);
	ck_assert_int_eq(mkfs_write(sim_env(rig->sim), disk, &mkfs, &plan), 0);
	rig_mount(rig);
}

static bool rig_problem(void *arg, const struct check_found *found)
{
	(void)arg;
	ck_abort_msg("the checker: %s", found->text);
	return false;
}

/* Leaves a file system that is whole. */
static void rig_unmount(struct rig *rig)
{
	struct check_options options = {
		.data = true,
		.name_mask = rig->fs->name_mask,
		.found = rig_problem,
	};
	struct check_result result;

	ck_assert_uint_eq(rig->fs->overruns, 0);
	ck_assert_int_eq(fs_close(rig->fs), 0);
	/* What a crash left for a read-only mount is for the next one. */
	if (rig->options.read_only)
		return;
	ck_assert_int_eq(check_run(sim_env(rig->sim), sim_disk(rig->sim),
				   &options, &result), 0);
	ck_assert_uint_eq(result.found, 0);
}

void rig_close(struct rig *rig)
{
	rig_unmount(rig);
	sim_free(rig->sim);
}

void rig_remount(struct rig *rig)
{
	rig_unmount(rig);
	rig_mount(rig);
}

void rig_crash(struct rig *rig)
{
	ck_assert_int_eq(sim_power_cut(rig->sim, SIM_CUT_KEEP, 1), 0);
	fs_abandon(rig->fs);
	sim_restart(rig->sim);
	rig_mount(rig);
}

/* Time passes if nothing but time brings on what is waited for. */
static void rig_turn(struct rig *rig, const bool *done)
{
	uint64_t next = fs_run(rig->fs, 1);
	uint64_t now = sim_now_ns(rig->sim);

	if (!*done && sim_outstanding(rig->sim) == 0 && next != UINT64_MAX &&
	    next > now)
		sim_advance(rig->sim, next - now);
}

void rig_run_until(struct rig *rig, const bool *done)
{
	while (!*done)
		rig_turn(rig, done);
}

static void rig_done(struct fs_op *op)
{
	*(bool *)op->owner = true;
}

int rig_do(struct rig *rig, struct fs_op *op)
{
	unsigned turns = 0;
	bool done = false;

	op->done = rig_done;
	op->owner = &done;
	fs_submit(rig->fs, op);
	while (!done) {
		ck_assert_uint_lt(turns++, MAX_TURNS);
		rig_turn(rig, &done);
	}
	return op->rc;
}

void rig_settle(struct rig *rig)
{
	unsigned turns = 0;

	while (!fs_idle(rig->fs)) {
		ck_assert_uint_lt(turns++, MAX_TURNS);
		rig_turn(rig, &(bool){ false });
	}
}

int rig_lookup(struct rig *rig, uint64_t dir, const char *name,
	       struct fs_attr *attr)
{
	struct fs_op op = { .type = FS_LOOKUP, .ino = dir, .name = name };
	int rc = rig_do(rig, &op);

	if (!rc)
		*attr = op.attr;
	return rc;
}

int rig_getattr(struct rig *rig, uint64_t ino, struct fs_attr *attr)
{
	struct fs_op op = { .type = FS_GETATTR, .ino = ino };
	int rc = rig_do(rig, &op);

	if (!rc)
		*attr = op.attr;
	return rc;
}

static int rig_create(struct rig *rig, struct fs_op *op, uint64_t *ino)
{
	int rc = rig_do(rig, op);

	if (!rc && ino)
		*ino = op->attr.ino;
	return rc;
}

int rig_mknod(struct rig *rig, uint64_t dir, const char *name, uint32_t mode,
	      uint64_t *ino)
{
	struct fs_op op = { .type = FS_MKNOD, .ino = dir, .name = name,
			    .mode = mode };

	return rig_create(rig, &op, ino);
}

int rig_mkdir(struct rig *rig, uint64_t dir, const char *name, uint64_t *ino)
{
	struct fs_op op = { .type = FS_MKDIR, .ino = dir, .name = name,
			    .mode = 0755 };

	return rig_create(rig, &op, ino);
}

int rig_symlink(struct rig *rig, uint64_t dir, const char *name,
		const char *target, uint64_t *ino)
{
	struct fs_op op = { .type = FS_SYMLINK, .ino = dir, .name = name,
			    .name2 = target };

	return rig_create(rig, &op, ino);
}

int rig_link(struct rig *rig, uint64_t ino, uint64_t dir, const char *name)
{
	struct fs_op op = { .type = FS_LINK, .ino = dir, .name = name,
			    .ino2 = ino };

	return rig_do(rig, &op);
}

int rig_unlink(struct rig *rig, uint64_t dir, const char *name)
{
	struct fs_op op = { .type = FS_UNLINK, .ino = dir, .name = name };

	return rig_do(rig, &op);
}

int rig_rmdir(struct rig *rig, uint64_t dir, const char *name)
{
	struct fs_op op = { .type = FS_RMDIR, .ino = dir, .name = name };

	return rig_do(rig, &op);
}

int rig_rename(struct rig *rig, uint64_t from, const char *name, uint64_t to,
	       const char *name2, uint32_t flags)
{
	struct fs_op op = { .type = FS_RENAME, .ino = from, .name = name,
			    .ino2 = to, .name2 = name2, .flags = flags };

	return rig_do(rig, &op);
}

int rig_forget(struct rig *rig, uint64_t ino, uint64_t n)
{
	struct fs_op op = { .type = FS_FORGET, .ino = ino, .size = n };

	return rig_do(rig, &op);
}

int rig_open_file(struct rig *rig, uint64_t ino, int flags)
{
	struct fs_op op = { .type = FS_OPEN, .ino = ino,
			    .flags = (uint32_t)flags };

	return rig_do(rig, &op);
}

int rig_release(struct rig *rig, uint64_t ino)
{
	struct fs_op op = { .type = FS_RELEASE, .ino = ino };

	return rig_do(rig, &op);
}

int rig_sync(struct rig *rig)
{
	struct fs_op op = { .type = FS_SYNCFS, .ino = 1 };

	return rig_do(rig, &op);
}

int rig_setxattr(struct rig *rig, uint64_t ino, const char *name,
		 const void *value, size_t bytes, uint32_t flags)
{
	struct fs_op op = { .type = FS_SETXATTR, .ino = ino, .name2 = name,
			    .data = value, .size = bytes, .flags = flags };

	return rig_do(rig, &op);
}

int rig_getxattr(struct rig *rig, uint64_t ino, const char *name, void *value,
		 size_t bytes)
{
	struct fs_op op = { .type = FS_GETXATTR, .ino = ino, .name2 = name,
			    .buffer = value, .size = bytes };
	int rc = rig_do(rig, &op);

	return rc ? rc : (int)op.result;
}

int rig_removexattr(struct rig *rig, uint64_t ino, const char *name)
{
	struct fs_op op = { .type = FS_REMOVEXATTR, .ino = ino,
			    .name2 = name };

	return rig_do(rig, &op);
}

uint64_t rig_sector_of(struct rig *rig, uint64_t ino, uint64_t offset)
{
	struct fs_extent list[64];
	struct fs_op op = { .type = FS_EXTENTS, .ino = ino, .buffer = list,
			    .size = 64 };

	ck_assert_int_eq(rig_do(rig, &op), 0);
	for (uint64_t i = 0; i < op.result && i < 64; i++)
		if (offset >= list[i].offset &&
		    offset < list[i].offset + list[i].bytes)
			return list[i].lbn + (offset - list[i].offset) / 512;
	ck_abort_msg("no such block");
	return 0;
}

json_t *rig_errors(struct rig *rig)
{
	struct fs_op op = { .type = FS_ERRORS };
	json_t *array;

	rig_settle(rig);
	ck_assert_int_eq(rig_do(rig, &op), 0);
	array = json_loads(op.buffer, 0, NULL);
	free(op.buffer);
	ck_assert_ptr_nonnull(array);
	return array;
}

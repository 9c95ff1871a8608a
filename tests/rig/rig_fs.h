/*
 * rig_fs.h - a file system on a simulated disk, for tests of src/fs: operations
 * run one at a time to their end.  These functions fail the test when they
 * cannot go on; they return the results of operations.
 */
#ifndef TRAX_RIG_RIG_FS_H
#define TRAX_RIG_RIG_FS_H

#include <jansson.h>
#include <stdint.h>

#include "fs/fs.h"
#include "sim/sim.h"

struct rig {
	struct sim *sim;
	struct fs *fs;
	struct fs_options options;
};

/* Makes a disk of `mib` MiB and a file system on it, and opens it. */
void rig_open(struct rig *rig, uint64_t mib, uint64_t seed);
void rig_close(struct rig *rig);

/* Opens it again: after a clean close and a check, or after a crash in which
 * all that had been written survives. */
void rig_remount(struct rig *rig);
void rig_crash(struct rig *rig);

/* Runs the file system until the operation is over; returns op->rc. */
int rig_do(struct rig *rig, struct fs_op *op);
/* Runs the file system until *done is true. */
void rig_run_until(struct rig *rig, const bool *done);
/* Runs the file system until no work is left in the background. */
void rig_settle(struct rig *rig);

/* Short forms.  `ino` may be NULL. */
int rig_lookup(struct rig *rig, uint64_t dir, const char *name,
	       struct fs_attr *attr);
int rig_getattr(struct rig *rig, uint64_t ino, struct fs_attr *attr);
int rig_mknod(struct rig *rig, uint64_t dir, const char *name, uint32_t mode,
	      uint64_t *ino);
int rig_mkdir(struct rig *rig, uint64_t dir, const char *name, uint64_t *ino);
int rig_symlink(struct rig *rig, uint64_t dir, const char *name,
		const char *target, uint64_t *ino);
int rig_link(struct rig *rig, uint64_t ino, uint64_t dir, const char *name);
int rig_unlink(struct rig *rig, uint64_t dir, const char *name);
int rig_rmdir(struct rig *rig, uint64_t dir, const char *name);
int rig_rename(struct rig *rig, uint64_t from, const char *name, uint64_t to,
	       const char *name2, uint32_t flags);
int rig_forget(struct rig *rig, uint64_t ino, uint64_t n);
int rig_open_file(struct rig *rig, uint64_t ino, int flags);
int rig_release(struct rig *rig, uint64_t ino);
int rig_sync(struct rig *rig);
int rig_setxattr(struct rig *rig, uint64_t ino, const char *name,
		 const void *value, size_t bytes, uint32_t flags);
/* Returns the size of the value, or a negative errno. */
int rig_getxattr(struct rig *rig, uint64_t ino, const char *name, void *value,
		 size_t bytes);
int rig_removexattr(struct rig *rig, uint64_t ino, const char *name);

/* The sector in which a byte of a file lies. */
uint64_t rig_sector_of(struct rig *rig, uint64_t ino, uint64_t offset);
/* The damage that is noted, when nothing is left to be noted: an array that the
 * caller frees. */
json_t *rig_errors(struct rig *rig);

#endif

/*
 * real.h - file systems on an emulated drive in real time, asked by the same
 * operations as a file system in this process: struct fs_op, by way of system
 * calls.  Inode numbers are places in a list of names.
 *
 * Needs root, loop devices and FUSE.  Functions return 0 or a negative errno,
 * reported through msg.
 */
#ifndef TRAX_BENCH_REAL_H
#define TRAX_BENCH_REAL_H

#include "diskmodel/spec.h"
#include "fs/fs.h"
#include "sim/drive.h"

struct real;

/* Starts the drive; image_dir NULL: /var/tmp. */
int real_open(const struct spec *spec, const char *image_dir,
	      struct real **real);
/* Also cleans up after errors. NULL is harmless. */
void real_close(struct real *real);

/* Makes a file system with all that is known of the drive. name: "traxfs" or
 * "ext4". */
int real_mkfs(struct real *real, const char *name);
/* Mounts with all caches cold, the drive's included; `memory_bytes` is the
 * memory of traxfs. */
int real_mount(struct real *real, unsigned replicas, size_t memory_bytes);
/* Drops everything from the kernel's caches. */
int real_forget(void);
int real_unmount(struct real *real);

/* Does MKDIR, MKNOD, WRITE, READ, FALLOCATE, SYNCFS or LOOKUP by system calls;
 * returns op->rc. */
int real_do(struct real *real, struct fs_op *op);

/* Counters of the drive's head, since real_clear. */
int real_clear(struct real *real);
int real_times(struct real *real, struct drive_times *times);

#endif

/*
 * statx.h - FUSE_STATX (protocol 7.39), which <linux/fuse.h> of the supported
 * distributions does not know yet.
 */
#ifndef TRAX_FUSE_STATX_H
#define TRAX_FUSE_STATX_H

#include <assert.h>
#include <stdint.h>

#define STATX_OPCODE 52

struct statx_in {
	uint32_t getattr_flags;
	uint32_t reserved;
	uint64_t fh;
	uint32_t flags;
	uint32_t mask;			/* STATX_* asked for */
};

struct statx_time {
	int64_t seconds;
	uint32_t ns;
	int32_t reserved;
};

struct statx_out {
	uint64_t attr_valid;		/* seconds */
	uint32_t attr_valid_nsec;
	uint32_t flags;
	uint64_t spare[2];
	uint32_t mask;			/* STATX_* that follow */
	uint32_t blksize;
	uint64_t attributes;
	uint32_t nlink;
	uint32_t uid;
	uint32_t gid;
	uint16_t mode;
	uint16_t spare0;
	uint64_t ino;
	uint64_t size;
	uint64_t blocks;
	uint64_t attributes_mask;
	struct statx_time atime, btime, ctime, mtime;
	uint32_t rdev_major;
	uint32_t rdev_minor;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint64_t spare2[14];
};
static_assert(sizeof(struct statx_out) == 288, "struct fuse_statx_out");

#endif

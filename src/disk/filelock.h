/*
 * filelock.h - a lock on the bytes of an image file that everybody sees who
 * uses them, as an image or through a loop device.
 */
#ifndef TRAX_DISK_FILELOCK_H
#define TRAX_DISK_FILELOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* A lock that somebody has; fd -1: there was nothing to lock. */
struct filelock {
	int fd;			/* that holds it */
	bool own;		/* fd was opened for this */
	uint64_t first, bytes;	/* the range; 0 bytes: to the end */
};

/*
 * Locks what `fd`, an open image file or block device with this status, gives
 * access to: all of an image; the part of its backing file that a loop device
 * or a partition of one shows.  Another device is not locked: its number is the
 * same for all who use it, and the kernel claims it.  Shared when `read_only`,
 * otherwise for one alone.  The lock on an image lasts until the last duplicate
 * of `fd` is closed; the other one until filelock_drop.  -EBUSY: somebody else
 * has a lock; or what fcntl(2) says.
 */
int filelock_take(int fd, const struct stat *st, bool read_only,
		  struct filelock *lock);

/* Shares a lock, or has it alone.  -EBUSY, and nothing has changed. */
int filelock_change(const struct filelock *lock, bool read_only);

void filelock_drop(struct filelock *lock);

#endif

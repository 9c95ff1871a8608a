/*
 * filelock.h - a lock on the bytes of an image file, which all programs see
 * that use these bytes, as an image or through a loop device.
 */
#ifndef TRAX_DISK_FILELOCK_H
#define TRAX_DISK_FILELOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* A lock that somebody has; fd -1: there was nothing to lock. */
struct filelock {
	int fd;			/* the descriptor that holds the lock */
	bool own;		/* fd was opened for this */
	uint64_t first, bytes;	/* the range; 0 bytes: to the end */
};

/*
 * Locks what `fd`, an open image file or block device with this status, gives
 * access to: all of an image; the part of its backing file that a loop device
 * or a partition of one shows.  Another device is not locked: its number is the
 * same for all programs, and the kernel claims it.  The lock is shared when
 * `read_only`, otherwise exclusive.  The lock on an image lasts until the last
 * duplicate of `fd` is closed; the other one until filelock_drop.  -EBUSY:
 * somebody else has a lock; or what fcntl(2) says.
 */
int filelock_take(int fd, const struct stat *st, bool read_only,
		  struct filelock *lock);

/* Makes a lock shared, or exclusive.  -EBUSY: nothing has changed. */
int filelock_change(const struct filelock *lock, bool read_only);

void filelock_drop(struct filelock *lock);

#endif

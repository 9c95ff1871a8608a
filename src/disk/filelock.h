/*
 * filelock.h - a lock on the bytes of an image file that everybody sees who
 * uses them, as an image or through a loop device.
 */
#ifndef TRAX_DISK_FILELOCK_H
#define TRAX_DISK_FILELOCK_H

#include <stdbool.h>
#include <sys/stat.h>

/*
 * Locks what `fd`, an open image file or block device with this status, gives
 * access to: all of an image; the part of its backing file that a loop device
 * or a partition of one shows.  Another device is not locked: its number is the
 * same for all who use it, and the kernel claims it.  Shared when `read_only`,
 * otherwise for one alone.  The lock on an image lasts until the last duplicate
 * of `fd` is closed; the other one until *lock_fd is, -1: there is none.
 * -EBUSY: somebody else has a lock; or what fcntl(2) says.
 */
int filelock_take(int fd, const struct stat *st, bool read_only, int *lock_fd);

#endif

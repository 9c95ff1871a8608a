/*
 * backing.h - finds which bytes a path gives access to, whatever it is called:
 * an image file, a loop device of it, a partition of that loop device.
 */
#ifndef TRAX_DISK_BACKING_H
#define TRAX_DISK_BACKING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define BACKING_PATH_BYTES 4096u	/* PATH_MAX of Linux. */

/* The file that a loop device, or a partition of one, stands on. */
struct backing {
	char path[BACKING_PATH_BYTES];	/* may be of another mount namespace */
	dev_t dev;		/* device number of the file system that has the
				 * file */
	uint64_t inode;
	uint64_t first, bytes;	/* the part of the file that the device shows */
};

/*
 * Finds the file behind a block device; fd is open on the device, or -1 if it
 * cannot be opened: then the file is looked up by its path. -ENOENT: this is no
 * loop device; other errors: why the file is not known.
 */
int backing_find(int fd, dev_t device, struct backing *backing);

/* Bytes [first, first + bytes) of a file, or of a device that is no loop
 * device. */
struct file_bytes {
	bool device;
	dev_t dev;		/* the device's own number, or as in backing */
	uint64_t inode;		/* inode of the file */
	uint64_t first, bytes;
};

/* False: it is neither a file nor a device, or nothing is known of it. */
bool file_bytes_get(const char *path, struct file_bytes *bytes);

bool file_bytes_overlap(const struct file_bytes *a, const struct file_bytes *b);

#endif

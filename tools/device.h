/*
 * device.h - what the tools want to know of a device before they touch it.
 */
#ifndef TRAX_TOOLS_DEVICE_H
#define TRAX_TOOLS_DEVICE_H

#include <stdbool.h>

#include "disk/disk.h"
#include "format/format.h"

/*
 * Is the device or image file mounted, also through a loop device?  where: a
 * buffer for the mount point, `bytes` long.
 */
bool device_is_mounted(const char *path, char *where, size_t bytes);

/*
 * Reads the superblock from the first of its places that is good.  -EINVAL:
 * none is, nothing is said; -EIO.
 */
int device_read_super(struct disk *disk, struct super *super);

/* "1.8 TiB" and the like; buf of 16 bytes.  Returns buf. */
char *device_size_text(uint64_t bytes, char *buf);

#endif

/*
 * device.h - what the tools want to know of a device before they touch it.
 */
#ifndef TRAX_TOOLS_DEVICE_H
#define TRAX_TOOLS_DEVICE_H

#include <stdbool.h>

#include "disk/disk.h"
#include "format/format.h"

/*
 * Opens a device or an image file for exclusive use.  -EBUSY, reported through
 * msg: it is mounted (under any name) or in use.  A disk that is held but not
 * mounted is waited for, an image for two minutes and a device for half a
 * minute: umount(8) takes a mount away before its daemon has written the last
 * data.
 */
int device_open(const char *path, bool read_only, struct disk **disk);

/* Are its bytes mounted under any name: as an image, by a loop device of it?
 * Says where through msg. */
bool device_in_use(const char *path);

/* Is a mount there whose daemon has ended without unmounting it? */
bool device_mount_ended(const char *mountpoint);

/* Do both names stand for the same bytes, an image and its loop device? */
bool device_is_same(const char *a, const char *b);

/*
 * Reads the superblock from the first of its places that is good.  -EINVAL:
 * none is; -EIO.  Neither is reported through msg.
 */
int device_read_super(struct disk *disk, struct super *super);

/* Gives this thread a real-time priority, if the caller may, while times are
 * measured: a busy host is late by more than a turn. */
void device_realtime(bool on);

#endif

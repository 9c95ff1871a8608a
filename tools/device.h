/*
 * device.h - what the tools want to know of a device before they touch it.
 */
#ifndef TRAX_TOOLS_DEVICE_H
#define TRAX_TOOLS_DEVICE_H

#include <stdbool.h>

#include "disk/disk.h"
#include "format/format.h"

/*
 * Opens a device or an image file for oneself.  -EBUSY, said through msg: it is
 * mounted (under any name) or in use.  What is held but not mounted
 * is waited for: umount(8) takes a mount away before its daemon has written its
 * last.  An image for two minutes, a device for half a one.
 */
int device_open(const char *path, bool read_only, struct disk **disk);

/* Are its bytes mounted under any name: as an image, by a loop device of it?
 * Says where through msg. */
bool device_in_use(const char *path);

/* Has the daemon of what is mounted there ended without unmounting it? */
bool device_mount_ended(const char *mountpoint);

/* Do both names stand for the same bytes, an image and its loop device? */
bool device_is_same(const char *a, const char *b);

/*
 * Reads the superblock from the first of its places that is good.  -EINVAL:
 * none is, nothing is said; -EIO.
 */
int device_read_super(struct disk *disk, struct super *super);

/* While times are measured nothing may keep this thread waiting, as far as that
 * is allowed: a busy host is late by more than a turn. */
void device_realtime(bool on);

#endif

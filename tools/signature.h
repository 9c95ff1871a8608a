/*
 * signature.h - does a device hold content that must not be overwritten?
 */
#ifndef TRAX_TOOLS_SIGNATURE_H
#define TRAX_TOOLS_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>

#include "disk/disk.h"

/* Is there a file system, RAID member, partition table ... that libblkid knows,
 * or a traxfs?  Reports which through msg, and that -f overwrites it. */
bool signature_found(const char *device, struct disk *disk);

/* Names for people what libblkid finds: "ext4", "a partition table (gpt)".
 * False: nothing.  *is_fs: it is a file system. */
bool signature_name(const char *device, char *name, size_t bytes, bool *is_fs);

#endif

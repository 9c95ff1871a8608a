/*
 * signature.h - does a device hold anything that somebody might miss?
 */
#ifndef TRAX_TOOLS_SIGNATURE_H
#define TRAX_TOOLS_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>

#include "disk/disk.h"

/* A file system, RAID member, partition table ... that libblkid knows, or a
 * traxfs: says which through msg, and that -f goes on all the same. */
bool signature_found(const char *device, struct disk *disk);

/* What is there as libblkid knows it, for people: "ext4", "a partition table
 * (gpt)"; false: nothing.  *is_fs: a file system. */
bool signature_name(const char *device, char *name, size_t bytes, bool *is_fs);

#endif

/*
 * grow.h - makes a file system as large as its disk.
 */
#ifndef TRAX_FS_GROW_H
#define TRAX_FS_GROW_H

#include <stdint.h>

#include "base/env.h"
#include "disk/disk.h"

struct fs_grown {
	uint64_t was, now;	/* sectors; the same: there was nothing to do */
};

/*
 * The file system is closed; it is opened as a mount opens it, and left clean.
 * Waits.  A power cut leaves it as it was, or grown.  -ENOSPC: what has been
 * added is too small for what a larger file system needs (told through msg);
 * -EROFS: it cannot be written; else see fs_open.
 */
int fs_grow(struct env *env, struct disk *disk, struct fs_grown *out);

#endif

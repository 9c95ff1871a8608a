/*
 * mkfs.h - makes a file system on a disk.
 */
#ifndef TRAX_FS_MKFS_H
#define TRAX_FS_MKFS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "disk/disk.h"
#include "diskmodel/geom.h"
#include "diskmodel/profile.h"
#include "format/format.h"

struct mkfs_options {
	const struct geom *geom;	/* NULL: regular pseudo-tracks */
	/* Profile of the drive, which contains the geometry above; NULL: there
	 * is none. */
	const struct profile *profile;
	uint32_t pseudo_track_sectors;	/* 0: 2048 (1 MiB) */
	const char *label;		/* NULL: none */
	const uint8_t *uuid;		/* NULL: random */
	uint64_t sectors;		/* 0: the whole disk */
	uint32_t root_uid, root_gid, root_mode; /* of the root directory;
						   mode 0: 0755 */
};

/* What mkfs decided; mkfs.traxfs prints it, and with -n does no more. */
struct mkfs_plan {
	struct super super;
	struct super_track nodes[64];	/* first node tracks */
	unsigned node_tracks;
	uint64_t data_sectors;		/* sectors that remain for files */
};

/*
 * Decides where everything will lie, and writes nothing. -ENOSPC: the disk is
 * too small (less than 16 MiB); -EINVAL: the geometry is one of another size.
 * Log and node tracks are true tracks where the geometry knows them.  They take
 * less than 1 % of the outermost zone.
 */
int mkfs_plan(struct env *env, const struct disk_limits *limits,
	      const struct mkfs_options *options, struct mkfs_plan *plan);

/* Writes the file system, the superblocks last, so that an interrupted mkfs
 * leaves none.  Signatures of other file systems in the first and last MiB are
 * wiped.  Waits. */
int mkfs_write(struct env *env, struct disk *disk,
	       const struct mkfs_options *options,
	       const struct mkfs_plan *plan);

/* Sectors of a root area on a disk with this many sectors and tracks. */
uint32_t mkfs_area_sectors(uint64_t sectors, uint64_t tracks);

#endif

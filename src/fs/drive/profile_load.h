/*
 * profile_load.h - the record of the drive's profile: where the superblock
 * says.
 */
#ifndef TRAX_DRIVE_PROFILE_LOAD_H
#define TRAX_DRIVE_PROFILE_LOAD_H

#include "disk/disk.h"
#include "diskmodel/profile.h"
#include "format/format.h"

/* Who reads; buf is aligned to blocks.  0 or -errno. */
struct profile_reader {
	int (*read)(void *arg, uint64_t sector, uint32_t sectors, void *buf);
	void *arg;
};

/*
 * Reads it; where it is damaged, the one before it, if that still lies in the
 * other half of the room (told through msg).  -ENOENT: there is none.  -EIO;
 * -EBADMSG, -EUCLEAN: it is damaged, or of another disk (through msg).
 */
int profile_load(const struct profile_reader *reader, const struct super *super,
		struct profile **profile);

/* The same by the disk itself, waiting: for those who look before or without a
 * mount. */
int profile_record_read(struct disk *disk, const struct super *super,
		struct profile **profile);

/* The same from bytes that somebody has read: whole blocks of it. */
int profile_record_decode(const struct super *super, const void *buf,
		  struct profile **profile);

/* Whole blocks of it; what follows it in the last one is zero. */
uint64_t profile_record_sectors(const struct super *super);

#endif

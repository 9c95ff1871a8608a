/*
 * profile_load.h - reads the record of the drive's profile, whose place the
 * superblock names.
 */
#ifndef TRAX_DRIVE_PROFILE_LOAD_H
#define TRAX_DRIVE_PROFILE_LOAD_H

#include "disk/disk.h"
#include "diskmodel/profile.h"
#include "format/format.h"

/* How the record is read: buf is aligned to blocks; read() returns 0 or
 * -errno. */
struct profile_reader {
	int (*read)(void *arg, uint64_t sector, uint32_t sectors, void *buf);
	void *arg;
};

/*
 * Reads the record, and makes *profile from it, which the caller frees.  When
 * the record is damaged, the one before it is taken, if that still lies in the
 * other half of the room (reported by msg).  -ENOENT: there is no record.
 * -EIO.  -EBADMSG, -EUCLEAN: it is damaged, or of another disk (reported by
 * msg).
 */
int profile_load(const struct profile_reader *reader, const struct super *super,
		struct profile **profile);

/* The same from a disk that is not mounted; waits for each read. */
int profile_record_read(struct disk *disk, const struct super *super,
		struct profile **profile);

/* The same from bytes in memory: the whole blocks of the record. */
int profile_record_decode(const struct super *super, const void *buf,
		  struct profile **profile);

/* Length of the record in sectors, up to whole blocks; zeros follow it in the
 * last block. */
uint64_t profile_record_sectors(const struct super *super);

#endif

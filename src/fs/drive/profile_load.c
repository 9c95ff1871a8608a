/*
 * profile_load.c - reads the profile of the drive.
 *
 * The profile is advice: a mount that cannot read it goes on without.
 */
#include "fs/drive/profile_load.h"

#include <errno.h>
#include <stdlib.h>

#include "base/csum.h"
#include "base/msg.h"

/* The length of a profile record is in its bytes 8 to 15. */
#define BYTES_AT 8u

uint64_t profile_record_sectors(const struct super *super)
{
	return (super->geom_bytes + TRAX_BLOCK_BYTES - 1ull) /
	       TRAX_BLOCK_BYTES * TRAX_BLOCK_SECTORS;
}

int profile_record_decode(const struct super *super, const void *buf,
		  struct profile **profile)
{
	struct profile *p;
	int rc;

	if (csum(buf, super->geom_bytes) != super->geom_csum)
		return -EBADMSG;
	rc = profile_decode(buf, super->geom_bytes, &p);
	if (rc)
		return rc;
	if (p->sectors < super->sectors) {
		msg_error("profile record: of a smaller drive");
		profile_free(p);
		return -EUCLEAN;
	}
	*profile = p;
	return 0;
}

static int read_all(const struct profile_reader *reader, uint64_t first,
		    uint64_t sectors, uint8_t *buf)
{
	uint64_t at, n;
	int rc = 0;

	for (at = 0; at < sectors && !rc; at += n) {
		n = sectors - at;
		if (n > 16 * TRAX_BLOCK_SECTORS)
			n = 16 * TRAX_BLOCK_SECTORS;
		rc = reader->read(reader->arg, first + at, (uint32_t)n,
				  buf + at * SECTOR_BYTES);
	}
	return rc;
}

/* `known`: the superblock has the checksum of the record. */
static int read_one(const struct profile_reader *reader,
		    const struct super *super, bool known,
		    struct profile **profile)
{
	uint64_t sectors = profile_record_sectors(super);
	struct super one = *super;
	void *buf = aligned_alloc(TRAX_BLOCK_BYTES, sectors * SECTOR_BYTES);
	int rc;

	if (!buf)
		return -ENOMEM;
	rc = read_all(reader, super->geom_sector, sectors, buf);
	if (!known)
		one.geom_csum = csum(buf, one.geom_bytes);
	if (!rc)
		rc = profile_record_decode(&one, buf, profile);
	free(buf);
	return rc;
}

/* Reads the record that was written before the valid one. */
static int read_other(const struct profile_reader *reader,
		      const struct super *super, struct profile **profile)
{
	uint32_t half = super->room_sectors / 2;
	struct super other = *super;
	uint64_t bytes;
	uint8_t *buf;
	int rc;

	if (!half)
		return -ENOENT;
	other.geom_sector = super->geom_sector == super->room_sector ?
				    super->room_sector + half :
				    super->room_sector;
	buf = aligned_alloc(TRAX_BLOCK_BYTES, TRAX_BLOCK_BYTES);
	if (!buf)
		return -ENOMEM;
	rc = reader->read(reader->arg, other.geom_sector, TRAX_BLOCK_SECTORS,
			  buf);
	bytes = le64_get(*(const le64 *)(buf + BYTES_AT));
	free(buf);
	if (!rc && (!bytes || bytes > (uint64_t)half * SECTOR_BYTES))
		rc = -ENOENT;
	if (rc)
		return rc;
	other.geom_bytes = (uint32_t)bytes;
	return read_one(reader, &other, false, profile);
}

int profile_load(const struct profile_reader *reader, const struct super *super,
		struct profile **profile)
{
	int rc;

	if (!super->geom_sector)
		return -ENOENT;
	if (super->geom_sector > super->sectors ||
	    profile_record_sectors(super) > super->sectors - super->geom_sector)
		return -EUCLEAN;
	rc = read_one(reader, super, true, profile);
	if (!rc || rc == -ENOMEM ||
	    read_other(reader, super, profile))
		return rc;
	msg_warn("the record of the drive at sector %llu is bad; the one "
		 "before it is used", (unsigned long long)super->geom_sector);
	return 0;
}

static int disk_reads(void *arg, uint64_t sector, uint32_t sectors, void *buf)
{
	struct disk *disk = arg;

	return disk_read(disk, sector, sectors, buf);
}

int profile_record_read(struct disk *disk, const struct super *super,
		struct profile **profile)
{
	const struct profile_reader reader = { disk_reads, disk };

	return super->sectors > disk->limits.sectors ?
		       -EUCLEAN : profile_load(&reader, super, profile);
}

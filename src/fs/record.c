/*
 * record.c - reading the profile of the drive.
 *
 * It is advice: whoever cannot read it goes on without.
 */
#include "fs/record.h"

#include <errno.h>
#include <stdlib.h>

#include "base/csum.h"
#include "base/msg.h"

uint64_t record_sectors(const struct super *super)
{
	return (super->geom_bytes + TRAX_BLOCK_BYTES - 1ull) /
	       TRAX_BLOCK_BYTES * TRAX_BLOCK_SECTORS;
}

int record_decode(const struct super *super, const void *buf,
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

static int read_all(struct disk *disk, uint64_t first, uint64_t sectors,
		    uint8_t *buf)
{
	uint64_t at, n;
	int rc = 0;

	for (at = 0; at < sectors && !rc; at += n) {
		n = sectors - at;
		if (n > 16 * TRAX_BLOCK_SECTORS)
			n = 16 * TRAX_BLOCK_SECTORS;
		rc = disk_read(disk, first + at, (uint32_t)n,
			       buf + at * SECTOR_BYTES);
	}
	return rc;
}

int record_read(struct disk *disk, const struct super *super,
		struct profile **profile)
{
	uint64_t sectors = record_sectors(super);
	void *buf;
	int rc;

	if (!super->geom_sector)
		return -ENOENT;
	if (super->geom_sector > disk->limits.sectors ||
	    sectors > disk->limits.sectors - super->geom_sector)
		return -EUCLEAN;
	buf = aligned_alloc(TRAX_BLOCK_BYTES, sectors * SECTOR_BYTES);
	if (!buf)
		return -ENOMEM;
	rc = read_all(disk, super->geom_sector, sectors, buf);
	if (!rc)
		rc = record_decode(super, buf, profile);
	free(buf);
	return rc;
}

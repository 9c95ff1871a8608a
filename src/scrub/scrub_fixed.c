/*
 * scrub_fixed.c - structures with fixed places: superblocks, the roots of the
 * durable generation, the geometry.  They are few and small, so a pass that
 * reads one of their sectors reads the whole structure once more and compares
 * it.  The same is done for records of the log that were read in part, or
 * looked damaged: a record is damaged if it is still needed after it has been
 * read again, and is not what was written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/msg.h"
#include "fs/op/errors.h"
#include "log/log.h"
#include "scrub/scrub_internal.h"

/* Reads of a structure before it counts as damaged; the largest one that is
 * read; and the alignment of the buffer; both in bytes. */
#define SCRUB_FIXED_TRIES 2u
#define SCRUB_FIXED_MOST_BYTES (64u << 20)
#define SCRUB_FIXED_ALIGN 4096u

/* Returns the durable root if its area begins at this sector; NULL. */
static const struct root *root_at(const struct scrub *scrub, uint64_t sector)
{
	const struct super *super = fs_super(scrub->fs);
	const struct root *root = tree_durable_root(scrub->fs->tree);
	const uint64_t *area = super->area_sector[root->gen & 1];

	return sector == area[0] || sector == area[1] ? root : NULL;
}

static bool is_super(const struct scrub *scrub, uint64_t sector)
{
	uint64_t place[3];

	super_places(fs_super(scrub->fs), place);
	return sector == place[0] || sector == place[1] || sector == place[2];
}

static size_t payload_bytes(const struct root *root)
{
	return (size_t)root->slotmap_bytes + root->group_bytes;
}

/* Does a record of the log that is needed begin here? */
static bool log_at(const struct scrub *scrub, uint64_t sector,
		   struct log_found *found)
{
	return log_record_next(tree_log(scrub->fs->tree), sector, sector + 1,
			       found);
}

/* Bytes of the structure that begins where the suspect is; 0: none that can be
 * compared. */
static size_t scrub_fixed_bytes(const struct scrub *scrub,
				const struct scrub_suspect *suspect)
{
	uint64_t sector = suspect->sector;
	const struct super *super = fs_super(scrub->fs);
	const struct root *root = root_at(scrub, sector);
	struct log_found found;
	size_t bytes = 0;

	if (is_super(scrub, sector))
		bytes = TRAX_BLOCK_BYTES;
	else if (root)
		bytes = TRAX_BLOCK_BYTES + payload_bytes(root);
	else if (super->geom_sector && sector == super->geom_sector)
		bytes = super->geom_bytes;
	else if (log_at(scrub, sector, &found))
		bytes = (size_t)found.sectors * SECTOR_BYTES;
	else
		bytes = (size_t)suspect->sectors * SECTOR_BYTES;
	return bytes <= SCRUB_FIXED_MOST_BYTES ? bytes : 0;
}

/* Why the structure is damaged; NULL: it is good, or is not there any more. */
static const char *scrub_fixed_why(const struct scrub *scrub, uint64_t sector,
			     const uint8_t *data)
{
	const struct super *super = fs_super(scrub->fs);
	const struct root *root = root_at(scrub, sector);
	struct log_found found;
	struct super other;
	struct root read;
	const char *why;

	if (is_super(scrub, sector))
		return super_decode(data, sector, &other);
	if (!root && sector != super->geom_sector)
		return log_at(scrub, sector, &found) ?
			log_record_verify(tree_log(scrub->fs->tree), &found,
					  data) : NULL;
	if (!root)
		return csum(data, super->geom_bytes) == super->geom_csum ?
			       NULL : "geometry: wrong checksum";
	why = root_decode(data, super->uuid, sector, &read);
	if (why)
		return why;
	if (read.gen != root->gen)
		return "root of another generation";
	return csum(data + TRAX_BLOCK_BYTES, payload_bytes(root)) ==
			       root->payload_csum ?
		       NULL : "root payload: wrong checksum";
}

void scrub_fixed_passed(struct scrub *scrub, uint64_t sector, uint64_t n)
{
	const struct super *super = fs_super(scrub->fs);
	const struct root *root = tree_durable_root(scrub->fs->tree);
	uint64_t place[6] = {
		super->area_sector[root->gen & 1][0],
		super->area_sector[root->gen & 1][1],
		super->geom_sector,
	};
	unsigned i;

	super_places(super, place + 3);
	for (i = 0; i < 6; i++)
		if (place[i] >= sector && place[i] < sector + n)
			scrub_suspect_fixed(scrub, place[i]);
}

static void scrub_fixed_over(struct scrub *scrub, const char *why, int result)
{
	uint64_t sector = scrub->suspect[0].sector;

	if (why) {
		errors_add(scrub->fs, &(struct error){
			.sector = sector,
			.sectors = scrub->node_req.disk.sectors,
			.what = result ? ERROR_READ : ERROR_CSUM });
		msg_error("%s: sector %llu: %s", scrub->fs->disk->name,
			  (unsigned long long)sector, why);
	}
	free(scrub->fixed);
	scrub->fixed = NULL;
	scrub->suspect_over(scrub);
}

/* A number that goes up when another root is durable, or another superblock is
 * written. */
static uint64_t scrub_fixed_version(const struct scrub *scrub)
{
	return tree_durable_root(scrub->fs->tree)->gen +
	       fs_super(scrub->fs)->version;
}

static void scrub_fixed_read(struct scrub *scrub);

static void scrub_fixed_done(struct disk_request *disk)
{
	struct scrub *scrub = disk->owner;
	struct scrub_suspect *suspect = &scrub->suspect[0];
	size_t bytes = scrub_fixed_bytes(scrub, suspect);
	const char *why = NULL;

	/* Another root is durable now, or another geometry is valid. */
	if (bytes && bytes == scrub->fixed_bytes &&
	    scrub_fixed_version(scrub) == scrub->fixed_version)
		why = disk->result ? "cannot be read" :
		      scrub_fixed_why(scrub, suspect->sector, scrub->fixed);
	if (why && !scrub->closing && ++suspect->tries < SCRUB_FIXED_TRIES)
		scrub_fixed_read(scrub);
	else
		scrub_fixed_over(scrub, scrub->closing ? NULL : why,
				 disk->result);
}

static void scrub_fixed_read(struct scrub *scrub)
{
	uint32_t block = queue_limits(scrub->fs->queue)->logical_bytes;
	size_t bytes = (scrub->fixed_bytes + block - 1) / block * block;

	scrub->node_iov = (struct iovec){ scrub->fixed, bytes };
	scrub->node_req = (struct queue_request){
		.disk = {
			.op = DISK_READ,
			.sector = scrub->suspect[0].sector,
			.sectors = (uint32_t)(bytes / SECTOR_BYTES),
			.iov = &scrub->node_iov,
			.iov_n = 1,
			.done = scrub_fixed_done,
			.owner = scrub,
		},
		.class = QUEUE_READ_AHEAD,
	};
	queue_submit(scrub->fs->queue, &scrub->node_req);
}

void scrub_fixed_look(struct scrub *scrub)
{
	size_t bytes = scrub_fixed_bytes(scrub, &scrub->suspect[0]);

	scrub->fixed_bytes = bytes;
	scrub->fixed_version = scrub_fixed_version(scrub);
	if (bytes)
		scrub->fixed = aligned_alloc(SCRUB_FIXED_ALIGN,
					     (bytes + SCRUB_FIXED_ALIGN - 1) /
						     SCRUB_FIXED_ALIGN *
						     SCRUB_FIXED_ALIGN);
	if (scrub->fixed)
		scrub_fixed_read(scrub);
	else
		scrub_fixed_over(scrub, NULL, 0);
}

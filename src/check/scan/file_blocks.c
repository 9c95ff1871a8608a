/*
 * file_blocks.c - where a file's data is, and that every block of it has a
 * checksum.
 *
 * Written extents become ranges of blocks (those that touch are one, so a file
 * written in order is one range); the checksum windows that follow are compared
 * with them.  Of one window only the first difference is told.
 */
#include <string.h>

#include "check/scan/check_internal.h"

static struct problem_place at_inode(const struct inode_state *now)
{
	return (struct problem_place){ .ino = now->ino };
}

void blocks_written_add(struct check *check, struct written *written,
			uint64_t off, uint64_t sectors)
{
	uint64_t first = off / TRAX_BLOCK_SECTORS;
	uint64_t end = (off + sectors + TRAX_BLOCK_SECTORS - 1) /
		       TRAX_BLOCK_SECTORS;
	struct block_range *last = NULL;

	if (written->ranges.n)
		last = vec_at(&written->ranges, written->ranges.n - 1);
	if (last && first <= last->first + last->n) {
		if (end > last->first + last->n)
			last->n = end - last->first;
		return;
	}
	last = check_add(check, &written->ranges);
	if (last)
		*last = (struct block_range){ first, end - first };
}

/* Data may not end behind the last block of the file. */
static void extent_eof(struct check *check, const struct inode_state *now,
		       uint64_t off, uint64_t sectors)
{
	uint64_t size = le64_get(now->item.size);
	uint64_t blocks = size / TRAX_BLOCK_BYTES +
			  (size % TRAX_BLOCK_BYTES != 0);

	if (now->have && !now->orphan &&
	    off + sectors > blocks * TRAX_BLOCK_SECTORS)
		problem_report(check, PROBLEM_EXTENT_EOF, at_inode(now),
			       (unsigned long long)now->ino,
			       (unsigned long long)off);
}

/* Reports, as advice only, an extent that neither begins nor ends with a track.
 * Where only some tracks were known, a mount may have learned more than its
 * record says. */
static void extent_track(struct check *check, const struct inode_state *now,
			 uint64_t sector, uint64_t sectors, uint32_t flags)
{
	struct geom_track first, last;

	if (!check->geom || !(flags & EXTENT_KNOWN) ||
	    sector + sectors > geom_sectors(check->geom))
		return;
	geom_track_of(check->geom, sector, &first);
	geom_track_of(check->geom, sector + sectors - 1, &last);
	if (geom_known(check->geom) && (!first.known || !last.known))
		return;
	if (first.index == last.index || first.first == sector ||
	    last.first + last.sectors == sector + sectors)
		return;
	problem_report(check, PROBLEM_EXTENT_TRACK,
		       (struct problem_place){ now->ino, sector },
		       (unsigned long long)now->ino,
		       (unsigned long long)sector);
}

void blocks_extent(struct check *check, struct inode_state *now,
		   uint64_t off, const struct extent_item *item)
{
	uint64_t sectors = le64_get(item->sectors);
	uint32_t flags = le32_get(item->flags);

	owners_extent(check, now->ino, off, item);
	if (off < now->extent_end)
		problem_report(check, PROBLEM_EXTENT_OVERLAP, at_inode(now),
			       (unsigned long long)now->ino,
			       (unsigned long long)off);
	if (off + sectors > now->extent_end)
		now->extent_end = off + sectors;
	now->sectors += sectors;
	extent_track(check, now, addr_sector(le64_get(item->addr)), sectors,
		     flags);
	if (flags & EXTENT_UNWRITTEN)
		return;
	extent_eof(check, now, off, sectors);
	blocks_written_add(check, &now->written, off, sectors);
}

uint64_t blocks_written_next(struct written *written, uint64_t first,
			     uint64_t end)
{
	while (written->at < written->ranges.n) {
		const struct block_range *r = vec_at(&written->ranges,
						     written->at);

		if (r->first + r->n > first) {
			uint64_t at = r->first > first ? r->first : first;

			return at < end ? at : end;
		}
		written->at++;
	}
	return end;
}

uint16_t blocks_written_mask(struct written *written, uint64_t block)
{
	uint64_t end = block + TRAX_CSUM_CHUNK_BLOCKS, at = block;
	uint16_t mask = 0;

	while ((at = blocks_written_next(written, at, end)) < end) {
		const struct block_range *r = vec_at(&written->ranges,
						     written->at);

		for (; at < end && at < r->first + r->n; at++)
			mask |= (uint16_t)(1u << (at - block));
	}
	return mask;
}

static void report_block(struct check *check, const struct inode_state *now,
			 enum problem problem, uint64_t block)
{
	problem_report(check, problem, at_inode(now),
		       (unsigned long long)now->ino,
		       (unsigned long long)block);
}

/* Reports written blocks from summed_to up to `end`, which have no
 * checksums. */
static void blocks_gap(struct check *check, struct inode_state *now,
		       uint64_t end)
{
	uint64_t block = blocks_written_next(&now->written, now->summed_to,
					     end);

	if (block < end && !now->orphan)
		report_block(check, now, PROBLEM_CSUM_MISSING, block);
	now->summed_to = end;
}

static void chunk_compare(struct check *check, struct inode_state *now,
			  uint64_t block, uint16_t has, bool *reported)
{
	uint16_t want = blocks_written_mask(&now->written, block);
	uint16_t missing = want & ~has, stray = has & ~want;

	if (*reported || now->orphan || !(missing | stray))
		return;
	*reported = true;
	if (missing)
		report_block(check, now, PROBLEM_CSUM_MISSING,
			     block + (unsigned)__builtin_ctz(missing));
	else
		report_block(check, now, PROBLEM_CSUM_STRAY,
			     block + (unsigned)__builtin_ctz(stray));
}

void blocks_csum(struct check *check, struct inode_state *now, uint64_t block,
		 const void *value, size_t bytes)
{
	struct csum_window window;
	bool reported = false;
	unsigned i;

	if (csum_window_decode(value, bytes, &window))
		return;		/* cannot fail: item_verify has decoded it
				 * before */
	blocks_gap(check, now, block);
	for (i = 0; i < TRAX_CSUM_CHUNKS; i++) {
		uint16_t has = window.mask[i];

		chunk_compare(check, now, block + i * TRAX_CSUM_CHUNK_BLOCKS,
			      has, &reported);
	}
	now->summed_to = block + TRAX_CSUM_WINDOW_BLOCKS;
}

void blocks_finish(struct check *check, struct inode_state *now)
{
	blocks_gap(check, now, UINT64_MAX);
}

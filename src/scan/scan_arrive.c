/*
 * scan_arrive.c - takes data that was read: cuts it into blocks, compares them
 * with their checksums, and gives them.
 *
 * Data comes in any order and is cut anywhere.  A block of which only a part
 * has come waits for the rest; when too many wait, the oldest is read again as
 * a whole.  The same sectors may come twice, when room has changed hands:
 * sectors that a run has had already are left out then.
 */
#include "scan/scan_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Parts of blocks that are kept: 4 MiB of data. */
#define PARTS_MOST 1024u

static uint64_t run_sector(const struct scan_run *run, uint64_t file_sector)
{
	return run->at.first + (file_sector - run->off);
}

/* ---- parts ---- */

static void part_free(struct file_scan *scan, struct scan_part *part)
{
	list_del(&part->link);
	scan->parts_held--;
	scan->bytes -= sizeof(*part);
	free(part);
}

void scan_arrive_drop(struct file_scan *scan, const struct scan_file *file)
{
	struct list *pos, *next;

	list_for_each_safe(pos, next, &scan->parts)
		if (list_entry(pos, struct scan_part, link)->file == file)
			part_free(scan,
				  list_entry(pos, struct scan_part, link));
}

/* Gives up the part of a block, and has it read again. */
static void part_leave(struct file_scan *scan, struct scan_part *part)
{
	unsigned i;

	for (i = 0; i < BLOCK_SECTORS; i++)
		/* Without memory for this the file would never end. */
		if ((part->have >> i & 1) &&
		    freeblock_want(scan->task,
				   run_sector(part->run[i],
					      part->block * BLOCK_SECTORS + i),
				   1))
			scan_file_touch(part->file, -ENOMEM);
	part_free(scan, part);
}

static struct scan_part *part_find(const struct scan_file *file, uint64_t block)
{
	struct scan_part *part;
	struct list *pos;

	list_for_each(pos, &file->scan->parts) {
		part = list_entry(pos, struct scan_part, link);
		if (part->file == file && part->block == block)
			return part;
	}
	return NULL;
}

static struct scan_part *part_get(struct scan_run *run, uint64_t block)
{
	struct file_scan *scan = run->file->scan;
	struct scan_part *part = part_find(run->file, block);

	if (part)
		return part;
	part = calloc(1, sizeof(*part));
	if (!part)
		return NULL;
	part->file = run->file;
	part->block = block;
	list_add(&scan->parts, &part->link);
	scan->parts_held++;
	scan->bytes += sizeof(*part);
	return part;
}

/* ---- blocks ---- */

static bool block_fits(const struct scan_run *run, unsigned i,
		       const uint8_t *data)
{
	return csum_block(data) == run->sum[i];
}

/* A block is complete that may lie in several runs: only the first of them
 * gives it. */
static void part_whole(struct scan_part *part)
{
	struct scan_run *owner = part->run[0];
	unsigned block = (unsigned)(part->block - owner->first), i;

	for (i = 1; i < BLOCK_SECTORS; i++)
		if (part->run[i] != part->run[i - 1])
			scan_run_done(part->run[i],
				      (unsigned)(part->block -
						 part->run[i]->first), 1);
	if (!block_fits(owner, block, part->data) ||
	    scan_give_blocks(owner, block, 1, part->data)) {
		owner->slow |= UINT64_C(1) << block;
		scan_slow_add(part->file, owner, block);
	}
	part_free(part->file->scan, part);
}

/* Adds sectors [off, off + n) of the file, within a block. */
static void part_add(struct scan_run *run, uint64_t off, unsigned n,
		     const uint8_t *data)
{
	unsigned from = (unsigned)(off % BLOCK_SECTORS), i;
	struct scan_part *part = part_get(run, off / BLOCK_SECTORS);

	if (!part) {
		scan_file_touch(run->file, -ENOMEM);
		return;
	}
	memcpy(part->data + from * SECTOR_BYTES, data, n * SECTOR_BYTES);
	for (i = from; i < from + n; i++) {
		part->have |= (uint8_t)(1u << i);
		part->run[i] = run;
	}
	if (part->have == UINT8_MAX)
		part_whole(part);
}

/* Takes whole blocks [i, i + n) of a run: those that match their checksums are
 * given together. */
static void blocks_arrive(struct scan_run *run, unsigned i, unsigned n,
			  const uint8_t *data)
{
	unsigned end = i + n, good;

	while (i < end) {
		for (good = 0; i + good < end && block_fits(run, i + good,
				data + good * BLOCK_BYTES); good++)
			;
		if (good && !scan_give_blocks(run, i, good, data)) {
			i += good;
			data += good * BLOCK_BYTES;
		} else {
			run->slow |= UINT64_C(1) << i;
			scan_slow_add(run->file, run, i++);
			data += BLOCK_BYTES;
		}
	}
}

static bool is_given(const struct scan_run *run, uint64_t block)
{
	return (run->done | run->held | run->slow) >> (block - run->first) & 1;
}

/* A sector of a block cannot be read at its place. */
static void block_unreadable(struct scan_file *file, uint64_t block)
{
	struct scan_part *part = part_find(file, block);
	struct list *pos, *next;

	if (part)
		part_free(file->scan, part);
	list_for_each_safe(pos, next, &file->runs) {
		struct scan_run *run = list_entry(pos, struct scan_run, link);
		unsigned i = (unsigned)(block - run->first);

		if (block < run->first || i >= run->blocks)
			continue;
		if (run->own >> i & 1) {
			run->slow |= UINT64_C(1) << i;
			scan_slow_add(file, run, i);
		} else {
			scan_run_done(run, i, 1);
		}
	}
}

/* End of the sectors that are treated alike: those of blocks that were given
 * already, of a part of a block, or of whole blocks. */
static uint64_t alike_end(const struct scan_run *run, uint64_t off,
			  uint64_t end)
{
	uint64_t block = off / BLOCK_SECTORS;
	uint64_t to = (block + 1) * BLOCK_SECTORS;

	if (off % BLOCK_SECTORS || to > end || is_given(run, block))
		return to < end ? to : end;
	while (to + BLOCK_SECTORS <= end && !is_given(run, to / BLOCK_SECTORS))
		to += BLOCK_SECTORS;
	return to;
}

/* Takes sectors [off, end) of the file, all of one run; data NULL: they are
 * unreadable. */
static void run_arrive(struct scan_run *run, uint64_t off, uint64_t end,
		       const uint8_t *data)
{
	uint64_t to, block;

	for (; off < end; off = to) {
		to = alike_end(run, off, end);
		block = off / BLOCK_SECTORS;
		if (is_given(run, block))
			;
		else if (!data)
			block_unreadable(run->file, block);
		else if (off % BLOCK_SECTORS || to - off < BLOCK_SECTORS)
			part_add(run, off, (unsigned)(to - off), data);
		else
			blocks_arrive(run, (unsigned)(block - run->first),
				      (unsigned)((to - off) / BLOCK_SECTORS),
				      data);
		data = data ? data + (to - off) * SECTOR_BYTES : NULL;
	}
}

/* ---- what has been read ---- */

struct arrival {
	uint64_t sector, end;
	const uint8_t *data;	/* NULL: unreadable */
};

static bool arrive_at(const struct interval *at, const void *arg)
{
	const struct arrival *arrival = arg;
	struct scan_run *run =
		container_of((struct interval *)at, struct scan_run, at);
	uint64_t from = at->first > arrival->sector ? at->first :
						      arrival->sector;
	uint64_t end = at->end < arrival->end ? at->end : arrival->end;

	run_arrive(run, run->off + (from - at->first),
		   run->off + (end - at->first), arrival->data ?
		   arrival->data + (from - arrival->sector) * SECTOR_BYTES :
		   NULL);
	return false;
}

static void scan_got(void *arg, uint64_t sector, uint32_t sectors,
		     const void *bytes, int result)
{
	struct file_scan *scan = arg;
	struct arrival arrival = {
		.sector = sector,
		.end = sector + sectors,
		.data = result ? NULL : bytes,
	};

	if (scan->ended)
		return;
	/* Without memory to want the sectors again, they are given after
	 * all. */
	if (scan_give_full(scan) &&
	    !freeblock_want(scan->task, sector, sectors))
		return;
	if (scan->options.free_space) {
		scan_free_arrive(scan, sector, sectors, arrival.data);
		return;
	}
	interval_any(scan->runs, arrival.sector, arrival.end, arrive_at,
		     &arrival);
	while (scan->parts_held > PARTS_MOST)
		part_leave(scan, list_first(&scan->parts, struct scan_part,
					    link));
	scan_sweep(scan);
}

const struct freeblock_ops scan_arrive_ops = { .got = scan_got };

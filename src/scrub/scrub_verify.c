/*
 * scrub_verify.c - verifies the data that has been read.
 *
 * Data comes in any order and is cut anywhere; a block is compared when all of
 * it is there.  Parts of blocks are kept in a few buffers; when these are full
 * the oldest chunk is wanted again as a whole.  A chunk that is incomplete when
 * all of its window has been read, because the rest lies in another window,
 * becomes a suspect, which is read separately.
 */
#include <string.h>

#include "base/csum.h"
#include "fs/op/errors.h"
#include "log/log.h"
#include "scrub/scrub_internal.h"

/* Index of the first run that ends after a sector. */
static uint32_t run_lower(const struct scrub_window *w, uint64_t sector)
{
	uint32_t lo = 0, hi = w->runs;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (w->run[mid].sector + w->run[mid].n <= sector)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static uint32_t block_sum(const struct scrub_sums *sums, unsigned block)
{
	return sums->sum[__builtin_popcount(sums->mask & ((1u << block) - 1))];
}

/* ---- whole blocks and chunks ---- */

static void scrub_verify_bad(struct scrub *scrub, const struct scrub_spot *at,
		      uint16_t blocks, bool unreadable)
{
	if (at->copy)
		scrub_suspect_copy(scrub, at->ino, at->chunk, at->place, blocks,
			     unreadable);
	else
		scrub_suspect_file(scrub, at->ino, at->chunk, blocks);
}

/* Blocks could not be compared: makes them a suspect.  A replica is left to the
 * next pass. */
static void scrub_verify_unsure(struct scrub *scrub,
				const struct scrub_spot *at, uint16_t blocks)
{
	if (!at->copy)
		scrub_suspect_file(scrub, at->ino, at->chunk, blocks);
}

static void scrub_verify_block(struct scrub *scrub, const struct scrub_spot *at,
			const struct scrub_sums *sums, unsigned block,
			const void *data)
{
	if ((sums->mask >> block & 1) &&
	    csum_block(data) != block_sum(sums, block))
		scrub_verify_bad(scrub, at, (uint16_t)(1u << block), false);
}

/* ---- parts ---- */

static bool run_is_of(const struct scrub_extent *run,
		      const struct scrub_spot *at)
{
	return run->ino == at->ino &&
	       (at->copy ? run->kind == OWNER_REPLICA &&
				   run_place(run, at->chunk) == at->place :
			   run->kind == OWNER_DATA);
}

/* Gives up the part of a chunk that was read, and has it read again. */
static void part_leave(struct scrub *scrub, struct scrub_part *part)
{
	uint64_t first = part->at.chunk * CHUNK_SECTORS, end, from;
	uint64_t wanted = freeblock_wanted(scrub->task);
	struct scrub_window *w = part->at.window;
	int err = 0;
	uint32_t i;

	for (i = 0; i < w->runs && !err; i++) {
		const struct scrub_extent *run = &w->run[i];

		if (!run_is_of(run, &part->at) ||
		    run->off >= first + CHUNK_SECTORS ||
		    run->off + run->n <= first)
			continue;
		from = run->off > first ? run->off : first;
		end = run->off + run->n;
		if (end > first + CHUNK_SECTORS)
			end = first + CHUNK_SECTORS;
		err = freeblock_want(scrub->task,
				     run->sector + (from - run->off),
				     end - from);
	}
	w->left += freeblock_wanted(scrub->task) - wanted;
	if (err)
		scrub_verify_unsure(scrub, &part->at, part->sums->mask);
	part->at.ino = 0;
}

static bool spot_is(const struct scrub_spot *a, const struct scrub_spot *b)
{
	return a->ino == b->ino && a->chunk == b->chunk &&
	       a->copy == b->copy && a->place == b->place;
}

static struct scrub_part *part_get(struct scrub *scrub,
				   const struct scrub_spot *at,
				   const struct scrub_sums *sums)
{
	struct scrub_part *oldest = scrub->part, *part, *none = NULL;

	for (part = scrub->part; part < scrub->part + SCRUB_PARTS; part++) {
		if (spot_is(&part->at, at))
			return part;
		if (!part->at.ino)
			none = part;
		if (part->used < oldest->used)
			oldest = part;
	}
	part = none;
	if (!part) {
		part_leave(scrub, oldest);
		part = oldest;
	}
	if (!part->data)
		part->data = abandon_alloc(scrub->fs, CHUNK_BYTES);
	if (!part->data) {
		scrub_verify_unsure(scrub, at, sums->mask);
		return NULL;
	}
	part->at = *at;
	part->sums = sums;
	part->have[0] = part->have[1] = 0;
	return part;
}

static uint8_t part_block(const struct scrub_part *part, unsigned block)
{
	return (uint8_t)(part->have[block / 8] >> block % 8 * 8);
}

static void part_check(struct scrub *scrub, struct scrub_part *part)
{
	unsigned i;

	for (i = 0; i < CHUNK_BLOCKS; i++) {
		if (part_block(part, i) != UINT8_MAX)
			continue;
		scrub_verify_block(scrub, &part->at, part->sums, i,
			    part->data + i * BLOCK_BYTES);
		part->have[i / 8] &= ~(UINT64_C(255) << i % 8 * 8);
	}
	if (!part->have[0] && !part->have[1])
		part->at.ino = 0;
}

/* Adds sectors [first, first + n) of a chunk. */
static void part_add(struct scrub *scrub, const struct scrub_spot *at,
		     const struct scrub_sums *sums, unsigned first, unsigned n,
		     const uint8_t *data)
{
	struct scrub_part *part = part_get(scrub, at, sums);
	unsigned i;

	if (!part)
		return;
	part->used = ++scrub->part_clock;
	memcpy(part->data + first * SECTOR_BYTES, data, n * SECTOR_BYTES);
	for (i = first; i < first + n; i++)
		part->have[i / 64] |= UINT64_C(1) << i % 64;
	part_check(scrub, part);
}

/* ---- data ---- */

/* Takes sectors [first, first + n) of a chunk: compares whole blocks at once,
 * and keeps the ends. */
static void scrub_verify_fine(struct scrub *scrub, const struct scrub_spot *at,
			      const struct scrub_sums *sums, unsigned first,
			      unsigned n, const uint8_t *data)
{
	while (n) {
		unsigned block = first / BLOCK_SECTORS;
		unsigned left = BLOCK_SECTORS - first % BLOCK_SECTORS;
		unsigned take = n < left ? n : left;

		if (take == BLOCK_SECTORS)
			scrub_verify_block(scrub, at, sums, block, data);
		else if (sums->mask >> block & 1)
			part_add(scrub, at, sums, first, take, data);
		first += take;
		data += take * SECTOR_BYTES;
		n -= take;
	}
}

/* The blocks of these sectors of a chunk that have checksums, as bits. */
static uint16_t blocks_of(const struct scrub_sums *sums, unsigned first,
			  unsigned n)
{
	unsigned from = first / BLOCK_SECTORS;
	unsigned to = (first + n - 1) / BLOCK_SECTORS + 1;

	return (uint16_t)(((1u << to) - (1u << from)) & sums->mask);
}

static void scrub_verify_data(struct scrub *scrub, struct scrub_window *w,
		       const struct scrub_extent *run, uint64_t at, uint64_t n,
		       const uint8_t *data)
{
	uint64_t off = run->off + at, first_chunk = run->off / CHUNK_SECTORS;

	while (n) {
		uint64_t chunk = off / CHUNK_SECTORS;
		unsigned first = (unsigned)(off % CHUNK_SECTORS);
		unsigned left = CHUNK_SECTORS - first;
		unsigned take = n < left ? (unsigned)n : left;
		const struct scrub_sums *sums =
			&w->chunk[run->chunk + chunk - first_chunk];

		struct scrub_spot spot = {
			.ino = run->ino,
			.chunk = chunk,
			.copy = run->kind == OWNER_REPLICA,
			.window = w,
		};

		if (spot.copy)
			spot.place = run_place(run, chunk);
		if (!data)
			scrub_verify_bad(scrub, &spot,
					 blocks_of(sums, first, take), true);
		else
			scrub_verify_fine(scrub, &spot, sums, first, take,
					  data);
		off += take;
		n -= take;
		data = data ? data + take * SECTOR_BYTES : NULL;
	}
}

/* ---- the rest ---- */

static void scrub_verify_error(struct scrub *scrub, uint64_t sector, uint64_t n,
			enum error_what what)
{
	errors_add(scrub->fs, &(struct error){
		.sector = sector, .sectors = (uint32_t)n, .what = what });
}

bool scrub_verify_node(const struct scrub *scrub, uint64_t sector,
		       const void *data)
{
	const struct node_header *header = data;
	struct node_ptr ptr = {
		.addr = le64_get(header->addr),
		.addr2 = le64_get(header->addr2),
		.gen = le64_get(header->gen),
	};
	uint64_t addr = addr_make(0, sector);
	le64 fsid;

	memcpy(&fsid, fs_super(scrub->fs)->uuid, sizeof(fsid));
	return (ptr.addr == addr || ptr.addr2 == addr) &&
	       !node_verify(data, le64_get(fsid), &ptr, header->level,
			    key_get(&header->low), key_get(&header->high)) &&
	       tree_node_is_good(scrub->fs->tree, data);
}

/* Verifies the nodes that lie within [at, at + n) of a node track. */
static void scrub_verify_nodes(struct scrub *scrub,
			       const struct scrub_extent *run, uint64_t at,
			       uint64_t n, const uint8_t *data)
{
	uint64_t slot = at / TRAX_NODE_SECTORS, sector;
	const struct space *space = tree_space(scrub->fs->tree);

	for (; slot * TRAX_NODE_SECTORS < at + n; slot++) {
		bool whole = slot * TRAX_NODE_SECTORS >= at &&
			     (slot + 1) * TRAX_NODE_SECTORS <= at + n;

		sector = run->sector + slot * TRAX_NODE_SECTORS;
		if ((slot + 1) * TRAX_NODE_SECTORS > run->n ||
		    !space_slot_used(space, addr_make(0, sector)))
			continue;
		/* One that was cut is read again whole. */
		if (!data || !whole ||
		    !scrub_verify_node(scrub, sector,
				data + (slot * TRAX_NODE_SECTORS - at) *
					       SECTOR_BYTES))
			scrub_suspect_node(scrub, sector);
	}
}

/* Verifies the records of the log that lie within [at, at + n) of a log
 * track. */
static void scrub_verify_log(struct scrub *scrub,
			     const struct scrub_extent *run, uint64_t at,
			     uint64_t n, const uint8_t *data)
{
	const struct log *log = tree_log(scrub->fs->tree);
	uint64_t from = run->sector + at, first = from, end = from + n;
	struct log_found found;

	for (; log_record_next(log, from, end, &found);
	     from = found.sector + found.sectors)
		/* One that was cut is read again whole. */
		if (found.sector + found.sectors > end ||
		    log_record_verify(log, &found, data +
				      (found.sector - first) * SECTOR_BYTES))
			scrub_suspect_fixed(scrub, found.sector);
}

static void scrub_verify_run(struct scrub *scrub, struct scrub_window *w,
		      const struct scrub_extent *run, uint64_t at, uint64_t n,
		      const uint8_t *data)
{
	if (run->kind == OWNER_DATA || run->kind == OWNER_REPLICA)
		scrub_verify_data(scrub, w, run, at, n, data);
	else if (run->kind == OWNER_NODES)
		scrub_verify_nodes(scrub, run, at, n, data);
	else if (!data)
		scrub_verify_error(scrub, run->sector + at, n, ERROR_READ);
	else if (run->kind == OWNER_LOG)
		scrub_verify_log(scrub, run, at, n, data);
	else
		scrub_fixed_passed(scrub, run->sector + at, n);
}

/* Takes the part of [sector, end) that belongs to a window. */
static void scrub_verify_window(struct scrub *scrub, struct scrub_window *w,
			 uint64_t sector, uint64_t end, const uint8_t *data)
{
	uint64_t from, to;
	uint32_t i;

	w->arrived = true;
	for (i = run_lower(w, sector); i < w->runs && w->run[i].sector < end;
	     i++) {
		const struct scrub_extent *run = &w->run[i];

		from = run->sector > sector ? run->sector : sector;
		to = run->sector + run->n;
		to = to < end ? to : end;
		w->left -= to - from < w->left ? to - from : w->left;
		scrub_verify_run(scrub, w, run, from - run->sector, to - from,
			  data ? data + (from - sector) * SECTOR_BYTES : NULL);
	}
}

static void scrub_verify_got(void *arg, uint64_t sector, uint32_t sectors,
		      const void *bytes, int result)
{
	struct scrub *scrub = arg;
	struct scrub_window *w;
	unsigned i;

	scrub->run_sectors += sectors;
	for (i = 0; i < scrub->bands; i++) {
		const struct scrub_band *band = &scrub->band[i];

		if (band->cursor >= sector + sectors || band->loaded <= sector)
			continue;
		for (w = band->first; w; w = w->next)
			if (w->from < sector + sectors && w->end > sector)
				scrub_verify_window(scrub, w, sector,
					     sector + sectors,
					     result ? NULL : bytes);
	}
}

const struct freeblock_ops scrub_verify_ops = { .got = scrub_verify_got };

void scrub_verify_rest(struct scrub *scrub, const struct scrub_window *window)
{
	struct scrub_part *part;

	for (part = scrub->part; part < scrub->part + SCRUB_PARTS; part++)
		if (part->at.ino && part->at.window == window) {
			scrub_verify_unsure(scrub, &part->at, part->sums->mask);
			part->at.ino = 0;
		}
}

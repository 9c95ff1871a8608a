/*
 * gap_readahead.c - ranges to read in gaps, and their data.
 *
 *   read --> range: the track's rest --(gap)--> got: buffers of 64 KiB
 *     --> fetch (cache_chunk.c): extents and sums as always, bytes from there
 *
 * A range is advice for the moment: there are MAX_RANGES, and a new one
 * replaces the oldest.  Only whole chunks of 64 KiB are kept.  Their data is
 * trusted no more than data from the disk: the fetch verifies it by the sums
 * that the tree has then.
 */
#include "fs/place/gap_readahead.h"

#include "fs/data/cache_chunk.h"
#include "fs/data/prefix.h"

#include <string.h>

#include "sched/freeblock/freeblock.h"
#include "sched/head/head.h"

/* Ranges at a time, and buffers of 64 KiB (2 MiB) for the data read for them,
 * both reused by turns.  Round numbers: a range is served or obsolete after a
 * few accesses. */
#define MAX_RANGES 8u
#define BUFFERS 32u
#define CHUNK_SECTORS (CHUNK_BLOCKS * BLOCK_SECTORS)
/* Read-ahead in gaps needs this many free chunks: otherwise other data would
 * leave memory for data that may not be wanted. */
#define FREE_CHUNKS 64u
/* With so many reads waiting the next one is so near that nothing fits into its
 * gap. */
#define MANY_READS 6u

struct readahead_range {
	uint64_t first, end;	/* sectors of the disk; end 0: none */
	uint64_t ino;
	uint64_t off;		/* offset of sector `first` in the file */
};

struct readahead_buffer {
	uint64_t addr;
	uint8_t *data;		/* NULL: none */
};

struct gap_readahead {
	struct files *files;
	struct freeblock_task *task;
	struct readahead_range range[MAX_RANGES];
	struct readahead_buffer buffer[BUFFERS];
	unsigned ranges, buffers;
};

static bool there_is_room(const struct files *files)
{
	const struct list *pos;
	unsigned n = 0;

	list_for_each(pos, &files->chunk_free)
		if (++n >= FREE_CHUNKS)
			return true;
	return false;
}

/* Are files of this directory read in part, and does the block lie in that
 * part?  Then users want no more of the file than they read now. */
static bool ends_soon(const struct file *file, uint64_t block)
{
	uint64_t bytes = prefix_expected(file);

	return bytes != PREFIX_UNKNOWN && bytes != PREFIX_WHOLE &&
	       block * BLOCK_BYTES < bytes;
}

/* Has the file been read at random long enough?  Such a reader may soon end or
 * go elsewhere, and reading in gaps costs a little: it begins when the reads
 * made so far have taken the head as long as reading all of the file in order
 * would, at a turn for each track. */
static bool has_paid(const struct file *file)
{
	uint64_t track = alloc_track_sectors(file->files->fs->alloc,
					     file->goal);

	return file->lone_reads * track * SECTOR_BYTES >= file->size;
}

static bool is_worth_it(const struct file *file, uint64_t block,
			struct head_state *head_state)
{
	const struct fs *fs = file->files->fs;

	if (fs->options.gap_writeback == FS_GAP_WRITEBACK_NEVER ||
	    fs->closing || file->copies || !fs->head ||
	    head_mode(fs->head) != HEAD_ON || !has_paid(file) ||
	    !there_is_room(file->files))
		return false;
	head_get_state(fs->head, head_state);
	/* A file that is being written is not read ahead: the head has better
	 * uses. */
	return head_state->reads && !file->blocks &&
	       !(block && chunk_block(file, block - 1)) &&
	       !file_is_streamed(file, block) && !ends_soon(file, block);
}

/* ---- Data from gaps ---- */

static void chunk_arrived(struct gap_readahead *p,
			  const struct readahead_range *range, uint64_t addr,
			  const void *bytes)
{
	uint64_t block = (range->off + (addr - range->first)) / BLOCK_SECTORS;
	struct vnode *vnode = vnode_find(p->files->fs, range->ino);
	struct file *file = vnode ? vnode->file : NULL;
	struct readahead_buffer *buffer = &p->buffer[p->buffers % BUFFERS];

	if (!file || !file->loaded || vnode->unlinked ||
	    !list_empty(&file->excl_locks) || !there_is_room(p->files))
		return;
	if (!buffer->data)
		buffer->data = abandon_alloc(p->files->fs, CHUNK_BYTES);
	if (!buffer->data)
		return;
	p->buffers++;
	buffer->addr = addr;
	memcpy(buffer->data, bytes, CHUNK_BYTES);
	chunks_read_ahead(file, block, block + CHUNK_BLOCKS, AHEAD_SURE,
			  0);
}

static void gap_readahead_got(void *arg, uint64_t sector, uint32_t sectors,
			 const void *bytes, int result)
{
	struct gap_readahead *p = arg;
	uint64_t end = sector + sectors, at;
	struct readahead_range range;
	unsigned i;

	for (i = 0; !result && i < MAX_RANGES; i++) {
		range = p->range[i];
		if (sector >= range.end || end <= range.first)
			continue;
		at = sector > range.first ? sector : range.first;
		at += (CHUNK_SECTORS - (range.off + (at - range.first)) %
		       CHUNK_SECTORS) % CHUNK_SECTORS;
		for (; at + CHUNK_SECTORS <= end &&
		       at + CHUNK_SECTORS <= range.end; at += CHUNK_SECTORS)
			chunk_arrived(p, &range, at, (const uint8_t *)bytes +
				   (at - sector) * SECTOR_BYTES);
		return;
	}
}

static const struct freeblock_ops gap_readahead_ops = {
	.got = gap_readahead_got};

static bool gap_readahead_take(const struct read_segment *segment)
{
	struct gap_readahead *p = segment->file->files->gap_readahead;
	uint64_t addr = segment->addr, n = segment->n;
	const struct iovec *iov = segment->iov;
	const uint8_t *from;
	unsigned i;

	for (i = 0; p && i < BUFFERS; i++)
		if (p->buffer[i].addr && addr >= p->buffer[i].addr &&
		    addr + n <= p->buffer[i].addr + CHUNK_SECTORS)
			break;
	if (!p || i == BUFFERS)
		return false;
	from = p->buffer[i].data + (addr - p->buffer[i].addr) * SECTOR_BYTES;
	for (i = 0; i < segment->iov_n; i++) {
		memcpy(iov[i].iov_base, from, iov[i].iov_len);
		from += iov[i].iov_len;
	}
	return true;
}

/* ---- Wishes ---- */

static struct gap_readahead *gap_readahead_get(struct files *files)
{
	const struct freeblock_options options = {
		.name = "prefetch",
		.no_idle = true, .any = true,
	};
	struct gap_readahead *p = files->gap_readahead;

	if (p)
		return p;
	p = abandon_alloc(files->fs, sizeof(*p));
	if (!p)
		return NULL;
	p->files = files;
	if (freeblock_open(files->fs->queue, &options, &gap_readahead_ops, p,
			   &p->task)) {
		abandon_free(p);
		return NULL;
	}
	files->gap_readahead = p;
	return p;
}

static void unwant(struct gap_readahead *p, uint64_t first, uint64_t end)
{
	if (end > first)
		freeblock_unwant(p->task, first, end - first);
}

static void unwant_all(struct gap_readahead *p)
{
	struct readahead_range *range;

	for (range = p->range; range < p->range + MAX_RANGES; range++) {
		unwant(p, range->first, range->end);
		*range = (struct readahead_range){ .end = 0 };
	}
}

/* Wishes the rest of the extent on the track that a user's read goes to. */
static void gap_readahead_want(const struct read_segment *segment)
{
	struct file *file = segment->file;
	struct files *files = file->files;
	uint64_t addr = segment->addr, n = segment->n, off = segment->off;
	uint64_t first = segment->first, end = segment->end;
	struct gap_readahead *p;
	struct geom_track track;
	struct head_state head_state;
	struct readahead_range *range;

	file->lone_reads++;
	if (!is_worth_it(file, off / BLOCK_SECTORS, &head_state))
		return;
	p = gap_readahead_get(files);
	if (!p)
		return;
	if (queue_reads_wait(files->fs->queue) >= MANY_READS) {
		unwant_all(p);
		return;
	}
	geom_track_of(head_state.geom, addr, &track);
	if (first < track.first)
		first = track.first;
	if (end > track.first + track.sectors)
		end = track.first + track.sectors;
	if (!track.known || addr < first || addr + n > end ||
	    end - first < CHUNK_SECTORS)
		return;
	range = &p->range[p->ranges++ % MAX_RANGES];
	unwant(p, range->first, range->end);
	*range = (struct readahead_range){first, end, file->ino,
					off - (addr - first)};
	if (freeblock_want(p->task, first, end - first))
		unwant(p, first, end);
	unwant(p, addr, addr + n);
}

static void gap_readahead_close(struct files *files)
{
	if (files->gap_readahead)
		freeblock_close(files->gap_readahead->task);
	files->gap_readahead = NULL;
}

const struct read_events gap_readahead_events = {
	.take = gap_readahead_take,
	.submitted = gap_readahead_want,
	.close = gap_readahead_close,
};

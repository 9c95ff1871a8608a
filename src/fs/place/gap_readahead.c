/*
 * gap_readahead.c - wishes, and what has come of them.
 *
 *   read --> wish: the track's rest --(gap)--> got: buffers of 64 KiB
 *     --> fetch (cache_chunk.c): extents and sums as always, bytes from there
 *
 * A wish is advice for the moment: there are WISHES, and the oldest goes when
 * another comes.  Only whole pieces of 64 KiB are kept, because one sum may be
 * for all of such.  What comes is believed no more than what the disk gives:
 * the fetch verifies it by what the tree says then.
 */
#include "fs/place/gap_readahead.h"

#include <string.h>

#include "sched/freeblock/freeblock.h"
#include "sched/head/head.h"

#define WISHES 8u
#define BUFFERS 32u
#define PIECE_SECTORS (PIECE_BLOCKS * BLOCK_SECTORS)
/* So many pieces must be free, or something would leave for them. */
#define FREE_PIECES 64u

struct wish {
	uint64_t first, end;	/* sectors of the disk; end 0: none */
	uint64_t ino;
	uint64_t off;		/* of the first, in the file */
};

struct buffer {
	uint64_t addr;
	uint8_t *data;		/* NULL: none */
};

struct prefetch {
	struct files *files;
	struct freeblock_task *task;
	struct wish wish[WISHES];
	struct buffer buffer[BUFFERS];
	unsigned wishes, buffers;
};

static bool there_is_room(const struct files *files)
{
	const struct list *pos;
	unsigned n = 0;

	list_for_each(pos, &files->piece_free)
		if (++n >= FREE_PIECES)
			return true;
	return false;
}

static bool is_worth_it(const struct file *file, uint64_t block,
			struct belief *belief)
{
	const struct fs *fs = file->files->fs;

	if (fs->options.prewrite == FS_PREWRITE_NEVER || fs->closing ||
	    file->copies || !fs->head || head_mode(fs->head) != HEAD_ON ||
	    !there_is_room(file->files))
		return false;
	head_get_belief(fs->head, belief);
	/* Who reads on is read ahead for; who writes has other use for the
	 * head. */
	return belief->reads && !file->blocks &&
	       !(block && piece_block(file, block - 1));
}

/* ---- What comes ---- */

static void piece_came(struct prefetch *p, const struct wish *wish,
		       uint64_t addr, const void *bytes)
{
	uint64_t block = (wish->off + (addr - wish->first)) / BLOCK_SECTORS;
	struct vnode *vnode = vnode_find(p->files->fs, wish->ino);
	struct file *file = vnode ? vnode->file : NULL;
	struct buffer *buffer = &p->buffer[p->buffers % BUFFERS];

	if (!file || !file->loaded || vnode->unlinked ||
	    !list_empty(&file->excls) || !there_is_room(p->files))
		return;
	if (!buffer->data)
		buffer->data = files_alloc(p->files, PIECE_BYTES);
	if (!buffer->data)
		return;
	p->buffers++;
	buffer->addr = addr;
	memcpy(buffer->data, bytes, PIECE_BYTES);
	pieces_ahead(file, block, block + PIECE_BLOCKS, false);
}

static void prefetch_got(void *arg, uint64_t sector, uint32_t sectors,
			 const void *bytes, int result)
{
	struct prefetch *p = arg;
	uint64_t end = sector + sectors, at;
	struct wish wish;
	unsigned i;

	for (i = 0; !result && i < WISHES; i++) {
		wish = p->wish[i];
		if (sector >= wish.end || end <= wish.first)
			continue;
		at = sector > wish.first ? sector : wish.first;
		at += (PIECE_SECTORS - (wish.off + (at - wish.first)) %
		       PIECE_SECTORS) % PIECE_SECTORS;
		for (; at + PIECE_SECTORS <= end &&
		       at + PIECE_SECTORS <= wish.end; at += PIECE_SECTORS)
			piece_came(p, &wish, at, (const uint8_t *)bytes +
				   (at - sector) * SECTOR_BYTES);
		return;
	}
}

static const struct freeblock_ops prefetch_ops = { .got = prefetch_got };

bool prefetch_take(struct files *files, uint64_t addr, uint64_t n,
		   const struct iovec *iov, unsigned iov_n)
{
	struct prefetch *p = files->prefetch;
	const uint8_t *from;
	unsigned i;

	for (i = 0; p && i < BUFFERS; i++)
		if (p->buffer[i].addr && addr >= p->buffer[i].addr &&
		    addr + n <= p->buffer[i].addr + PIECE_SECTORS)
			break;
	if (!p || i == BUFFERS)
		return false;
	from = p->buffer[i].data + (addr - p->buffer[i].addr) * SECTOR_BYTES;
	for (i = 0; i < iov_n; i++) {
		memcpy(iov[i].iov_base, from, iov[i].iov_len);
		from += iov[i].iov_len;
	}
	return true;
}

/* ---- Wishes ---- */

static struct prefetch *prefetch_get(struct files *files)
{
	const struct freeblock_options options = {
		.name = "prefetch",
		.unit_sectors = queue_limits(files->fs->queue)->logical_bytes /
				SECTOR_BYTES,
		.no_idle = true, .any = true,
	};
	struct prefetch *p = files->prefetch;

	if (p)
		return p;
	p = files_alloc(files, sizeof(*p));
	if (!p)
		return NULL;
	p->files = files;
	if (freeblock_open(files->fs->queue, &options, &prefetch_ops, p,
			   &p->task)) {
		files_release(p);
		return NULL;
	}
	files->prefetch = p;
	return p;
}

static void unwant(struct prefetch *p, uint64_t first, uint64_t end)
{
	if (end > first)
		freeblock_unwant(p->task, first, end - first);
}

void prefetch_wish(struct file *file, uint64_t addr, uint64_t n,
		   uint64_t first, uint64_t end, uint64_t off)
{
	struct files *files = file->files;
	struct prefetch *p;
	struct geom_track track;
	struct belief belief;
	struct wish *wish;

	if (!is_worth_it(file, off / BLOCK_SECTORS, &belief))
		return;
	p = prefetch_get(files);
	if (!p)
		return;
	geom_track_of(belief.geom, addr, &track);
	if (first < track.first)
		first = track.first;
	if (end > track.first + track.sectors)
		end = track.first + track.sectors;
	if (!track.known || addr < first || addr + n > end ||
	    end - first < PIECE_SECTORS)
		return;
	wish = &p->wish[p->wishes++ % WISHES];
	unwant(p, wish->first, wish->end);
	*wish = (struct wish){ first, end, file->ino, off - (addr - first) };
	if (freeblock_want(p->task, first, end - first))
		unwant(p, first, end);
	unwant(p, addr, addr + n);
}

void prefetch_close(struct files *files)
{
	if (files->prefetch)
		freeblock_close(files->prefetch->task);
	files->prefetch = NULL;
}

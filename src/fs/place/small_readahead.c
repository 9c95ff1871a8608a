/*
 * small_readahead.c - reading ahead from one small file to the next on the
 * disk.
 *
 *   miss near the last one --> [ticket: OWNER items behind it] --> a file each
 *     --> loaded --> read ahead (cache_chunk.c); neighbours merge in the queue
 *
 * Small files of a directory lie next to each other in the order they were
 * made, and are mostly read in that order or in one near it.  What follows on
 * the disk is known by its owners.  A small file that has to be read less than
 * a track from where the last one was makes a stream; each time it goes on,
 * twice as much is read ahead, up to a track.  The file in the middle of what
 * was read ahead carries a mark (file->onward): when somebody comes to it, the
 * next stretch is read.
 *
 * It is advice only: owners are believed no further than to say which file to
 * look at; that file's own extents and sums decide what is read.
 */
#include "fs/data/file_data.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SECTORS (128u << 1)	/* 128 KiB */
#define NEAR_FILES 512u			/* of one stretch */
#define LEAVES 6u			/* of owners, fetched together */

struct near_file {
	uint64_t ino, addr;
	uint64_t first, end;		/* blocks */
};

struct near_look {
	struct near *near;
	struct files *files;
	uint64_t from, to;		/* sectors */
	unsigned n, max;
	struct near_file file[];
};

/* A file that is loaded before it is read ahead. */
struct near_ahead {
	struct gated gated;
	struct file *file;
	uint64_t first, end;		/* blocks */
};

/* ---- One file ---- */

static void ahead_step(struct gated *gated)
{
	struct near_ahead *ahead = container_of(gated, struct near_ahead,
						gated);
	struct file *file = ahead->file;
	uint64_t end;
	int rc = -EBUSY;

	/* Who has a file for himself may be deleting it. */
	if (list_empty(&file->excls) && !file->vnode->unlinked)
		rc = file_enter(file, gated);
	if (rc == TICKET_WAIT)
		return;
	end = (file->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	end = ahead->end < end ? ahead->end : end;
	if (!rc && file->size <= SMALL_BYTES && ahead->first < end)
		pieces_ahead(file, ahead->first, end, true);
	files_release(ahead);
	file_put(file);
}

static void ahead_start(struct files *files, const struct near_file *near,
			uint64_t onward)
{
	struct near_ahead *ahead = files_alloc(files, sizeof(*ahead));
	struct file *file = ahead ? file_get(files->fs, near->ino) : NULL;

	if (!file) {
		files_release(ahead);
		return;
	}
	ahead->file = file;
	ahead->first = near->first;
	ahead->end = near->end;
	ahead->gated.again = ahead_step;
	list_init(&ahead->gated.link);
	if (onward)
		file->onward = onward;
	ahead_step(&ahead->gated);
}

/* ---- Who lies there ---- */

static void look_take(struct near_look *look, const struct tree_item *item)
{
	const struct owner_item *owner = item->value;
	struct near_file *file = &look->file[look->n];
	uint64_t off, n;

	if (item->bytes != sizeof(*owner) || owner->kind != OWNER_DATA)
		return;
	off = le64_get(owner->off);
	n = le64_get(owner->sectors);
	if (!n || off > SMALL_BYTES / SECTOR_BYTES ||
	    n > SMALL_BYTES / SECTOR_BYTES)
		return;
	file->ino = le64_get(owner->ino);
	file->addr = addr_sector(item->key.off);
	file->first = off / BLOCK_SECTORS;
	file->end = (off + n + BLOCK_SECTORS - 1) / BLOCK_SECTORS;
	look->n++;
}

static int look_run(struct ticket *ticket)
{
	struct near_look *look = ticket->state;
	struct key at = key_make(0, ITEM_OWNER, addr_make(0, look->from));
	struct key last = key_make(0, ITEM_OWNER, addr_make(0, look->to - 1));
	struct tree_item item;
	int rc = 0;

	look->n = 0;
	tree_prefetch(ticket->txn, at, last, LEAVES);
	while (look->n < look->max &&
	       tree_txn_room(ticket->txn) >= 2) {
		rc = tree_seek_ge(ticket->txn, at, last, &item);
		if (rc)
			break;
		look_take(look, &item);
		if (key_cmp(item.key, last) == 0)
			break;
		at = key_after(item.key);
	}
	return rc == -ENOENT ? 0 : rc;
}

static void look_end(struct ticket *ticket, int rc, uint64_t seq)
{
	struct near_look *look = ticket->state;
	uint64_t middle = look->from + (look->to - look->from) / 2;
	bool marked = false, mark;
	unsigned i;

	(void)seq;
	ticket_finish(ticket, 0);
	look->near->busy = false;
	if (!rc && look->n == look->max)
		look->to = look->file[look->n - 1].addr + BLOCK_SECTORS;
	look->near->next = look->to;
	for (i = 0; !rc && i < look->n; i++) {
		mark = !marked && (look->file[i].addr >= middle ||
				   i + 1 == look->n);
		marked |= mark;
		ahead_start(look->files, &look->file[i], mark ? look->to : 0);
	}
	files_release(look);
}

static const struct ticket_type look_type = {
	.name = "read ahead",
	.paths = LEAVES + 2,
	.stages = LEAVES + 2,
	.run = look_run,
	.end = look_end,
};

/* ---- Streams ---- */

static uint64_t near_track(const struct files *files, uint64_t sector)
{
	return alloc_track_sectors(files->fs->alloc, sector);
}

static struct near *near_find(struct files *files, uint64_t sector)
{
	uint64_t reach = near_track(files, sector);
	struct near *near = files->near, *oldest = near;

	for (; near < files->near + NEAR_STREAMS; near++) {
		if (near->used && sector <= near->next + reach &&
		    near->next <= sector + reach)
			return near;
		if (near->used < oldest->used)
			oldest = near;
	}
	return oldest;
}

/* Reads ahead from `from` on, twice as much as the last time. */
static void near_go(struct files *files, struct near *near, uint64_t from)
{
	size_t max = pool_count(files->piece_pool) / 8;
	uint64_t sectors = files->fs->disk->limits.sectors;
	struct near_look *look;

	max = max < NEAR_FILES ? max : NEAR_FILES;
	look = files_alloc(files, sizeof(*look) + max * sizeof(look->file[0]));
	if (!look)
		return;
	near->window = near->window ? near->window * 2 : FIRST_SECTORS;
	if (near->window > near_track(files, from))
		near->window = near_track(files, from);
	look->near = near;
	look->files = files;
	look->from = from;
	look->to = from + near->window;
	look->to = look->to < sectors ? look->to : sectors;
	look->max = (unsigned)max;
	near->next = look->to;
	near->busy = true;
	if (look->from < look->to &&
	    !ticket_start(files->fs, &look_type, NULL, look))
		return;
	near->busy = false;
	files_release(look);
}

void near_missed(struct files *files, uint64_t sector, uint64_t n)
{
	struct near *near = near_find(files, sector);
	uint64_t reach = near_track(files, sector);
	bool goes_on = near->used && sector <= near->next + reach &&
		       near->next <= sector + reach;

	if (near->busy)
		return;
	near->used = ++files->near_clock;
	if (goes_on) {
		near_go(files, near, sector + n);
	} else {
		near->next = sector + n;
		near->window = 0;
	}
}

void near_reached(struct file *file)
{
	struct files *files = file->files;
	uint64_t from = file->onward;
	struct near *near = near_find(files, from);

	file->onward = 0;
	if (near->busy || !near->used || near->next != from)
		return;
	near->used = ++files->near_clock;
	near_go(files, near, from);
}

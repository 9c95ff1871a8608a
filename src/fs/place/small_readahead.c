/*
 * small_readahead.c - reading ahead from one small file to the next on the disk
 *
 *   miss near the last one --> [txn: OWNER items behind it] --> a file each
 *     --> loaded --> read ahead (cache_chunk.c); neighbours merge in the queue
 *
 * Small files of a directory lie next to each other in the order in which they
 * were made, and are mostly read in this order or one like it.  The owners of
 * the following sectors are known (OWNER items).  A small file that has to be
 * read near the last one (small_ra_reach) makes a stream; each time the stream
 * goes on, twice as much is read ahead, up to a track.  If the files of a
 * directory are read in part, this part of each is read, over more tracks; if
 * they are read whole, two tracks or 1 MiB (prefix.h).  The file in the middle
 * of what was read ahead carries a mark (file->readahead_next): when a user
 * comes to it, the next stretch is read.
 *
 * The owners are advice only: they say which file to look at; the file's own
 * extents and sums decide what is read.
 */
#include "fs/place/small_readahead.h"

#include "fs/data/cache_chunk.h"
#include "fs/data/file.h"
#include "fs/data/prefix.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SECTORS (128u << 1)	/* Sectors read ahead when a stream
					 * begins: 128 KiB. */
#define SMALL_RA_FILES 512u			/* files of one stretch, at
						 * most */
#define LEAVES 6u			/* leaves with OWNER items that are
					 * fetched together */
/* Files up to this size are read whole: 1 MiB. */
#define WHOLE_SECTORS (1u << 11)
/* Tracks over which parts of files are read ahead, and files whose parts are
 * read at a time: of more, the queue would take the nearest first and come back
 * for the others. */
#define PART_TRACKS 16u
#define PART_FILES 2u

/* Read-ahead is in vain when VAIN_LEAST beginnings of files were wasted, and
 * VAIN_TIMES as many as were used; then only VAIN_SECTORS (8 KiB) are read
 * ahead. */
#define VAIN_TIMES 3u
#define VAIN_LEAST 24u
#define VAIN_SECTORS (8u << 1)

struct small_ra_file {
	uint64_t ino, addr;
	uint64_t first, end;		/* blocks */
};

struct small_ra_look {
	struct small_ra *small_ra;
	struct files *files;
	uint64_t from, to;		/* sectors */
	uint64_t window, brought;	/* sectors wanted, and sectors of files
					 * found */
	unsigned n, max;
	struct small_ra_file file[];
};

/* A file that is loaded before it is read ahead. */
struct small_ra_ahead {
	struct shared_lock lock;
	struct file *file;
	uint64_t first, end;		/* blocks */
};

/* ---- One file ---- */

/* Blocks that users want of a stretch that ends at `end`. */
static uint64_t prefix_blocks(const struct file *file, uint64_t end)
{
	uint64_t bytes = file->loaded ? prefix_expected(file) : PREFIX_UNKNOWN;

	if (bytes == PREFIX_UNKNOWN || bytes >= end * BLOCK_BYTES)
		return end;
	return (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
}

static void ahead_step(struct shared_lock *lock)
{
	struct small_ra_ahead *ahead = container_of(lock, struct small_ra_ahead,
						lock);
	struct file *file = ahead->file;
	uint64_t end;
	int rc = -EBUSY;

	/* An exclusive operation may be deleting the file. */
	if (list_empty(&file->excl_locks) && !file->vnode->unlinked)
		rc = file_lock_shared(file, lock);
	if (rc == FS_TXN_WAIT)
		return;
	end = (file->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	end = ahead->end < end ? ahead->end : end;
	end = prefix_blocks(file, end);
	if (!rc && file->size <= SMALL_FILE_BYTES && ahead->first < end)
		chunks_read_ahead(file, ahead->first, end, AHEAD_GUESS,
				  0);
	abandon_free(ahead);
	file_put(file);
}

static void ahead_start(struct files *files, const struct small_ra_file *near,
			uint64_t onward)
{
	struct small_ra_ahead *ahead =
		abandon_alloc(files->fs, sizeof(*ahead));
	struct file *file = ahead ? file_get(files->fs, near->ino) : NULL;

	if (!file) {
		abandon_free(ahead);
		return;
	}
	ahead->file = file;
	ahead->first = near->first;
	ahead->end = near->end;
	ahead->lock.granted = ahead_step;
	list_init(&ahead->lock.link);
	if (onward)
		file->readahead_next = onward;
	ahead_step(&ahead->lock);
}

/* ---- Looking up the owners of sectors ---- */

/* Sectors that are wanted of a file with n sectors. */
static uint64_t look_wants(const struct small_ra_look *look, uint64_t n)
{
	uint64_t most = (look->small_ra->prefix + SECTOR_BYTES - 1) /
			SECTOR_BYTES;

	return most && most < n ? most : n;
}

static void look_take(struct small_ra_look *look, const struct tree_item *item)
{
	const struct owner_item *owner = item->value;
	struct small_ra_file *file = &look->file[look->n];
	uint64_t off, n;

	if (item->bytes != sizeof(*owner) || owner->kind != OWNER_DATA)
		return;
	off = le64_get(owner->off);
	n = le64_get(owner->sectors);
	if (!n || off > SMALL_FILE_BYTES / SECTOR_BYTES ||
	    n > SMALL_FILE_BYTES / SECTOR_BYTES)
		return;
	if (look->small_ra->prefix && off * SECTOR_BYTES >=
						look->small_ra->prefix)
		return;
	look->brought += look_wants(look, n);
	file->ino = le64_get(owner->ino);
	file->addr = addr_sector(item->key.off);
	file->first = off / BLOCK_SECTORS;
	file->end = (off + n + BLOCK_SECTORS - 1) / BLOCK_SECTORS;
	look->n++;
}

static int look_run(struct fs_txn *txn)
{
	struct small_ra_look *look = txn->state;
	struct key at = key_make(0, ITEM_OWNER, addr_make(0, look->from));
	struct key last = key_make(0, ITEM_OWNER, addr_make(0, look->to - 1));
	struct tree_item item;
	int rc = 0;

	look->n = 0;
	look->brought = 0;
	tree_prefetch(txn->tree_txn, at, last, LEAVES);
	while (look->n < look->max && look->brought < look->window &&
	       tree_txn_room(txn->tree_txn) >= 2) {
		rc = tree_seek_ge(txn->tree_txn, at, last, &item);
		if (rc)
			break;
		look_take(look, &item);
		if (key_cmp(item.key, last) == 0)
			break;
		at = key_after(item.key);
	}
	return rc == -ENOENT ? 0 : rc;
}

static void look_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct small_ra_look *look = txn->state;
	uint64_t middle = look->from + (look->to - look->from) / 2;
	bool marked = false, mark;
	unsigned i;

	(void)seq;
	fs_txn_finish(txn, 0);
	look->small_ra->busy = false;
	if (!rc && look->n &&
	    (look->n == look->max || look->brought >= look->window))
		look->to = look->file[look->n - 1].addr + BLOCK_SECTORS;
	look->small_ra->next = look->to;
	for (i = 0; !rc && i < look->n; i++) {
		mark = !marked && (look->file[i].addr >= middle ||
				   i + 1 == look->n);
		marked |= mark;
		ahead_start(look->files, &look->file[i], mark ? look->to : 0);
	}
	abandon_free(look);
}

static const struct fs_txn_type look_type = {
	.name = "read ahead",
	.paths = LEAVES + 2,
	.stages = LEAVES + 2,
	.run = look_run,
	.end = look_end,
};

/* ---- Streams ---- */

static uint64_t small_ra_track(const struct files *files, uint64_t sector)
{
	return alloc_track_sectors(files->fs->alloc, sector);
}

/* Distance within which the next file of a stream begins: behind the longest
 * file, on the next track at most. */
static uint64_t small_ra_reach(const struct files *files, uint64_t sector)
{
	uint64_t track = small_ra_track(files, sector);

	return track + (track > SMALL_FILE_BYTES / SECTOR_BYTES ?
			track : SMALL_FILE_BYTES / SECTOR_BYTES);
}

static struct small_ra *small_ra_find(struct files *files, uint64_t sector)
{
	uint64_t reach = small_ra_reach(files, sector);
	struct small_ra *small_ra = files->small_ra, *oldest = small_ra;

	for (; small_ra < files->small_ra + SMALL_RA_STREAMS; small_ra++) {
		if (small_ra->used && sector <= small_ra->next + reach &&
		    small_ra->next <= sector + reach)
			return small_ra;
		if (small_ra->used < oldest->used)
			oldest = small_ra;
	}
	return oldest;
}

/* Sectors of the disk whose owners are looked up; *most: how many of them are
 * read at most. */
static uint64_t small_ra_span(const struct small_ra *small_ra, uint64_t track,
			      uint64_t *most)
{
	*most = track;
	if (small_ra->prefix == PREFIX_UNKNOWN)
		return track;
	if (small_ra->prefix != PREFIX_WHOLE) {
		*most = PART_FILES * small_ra->prefix / SECTOR_BYTES;
		return PART_TRACKS * track;
	}
	*most = 2 * track > WHOLE_SECTORS ? 2 * track : WHOLE_SECTORS;
	return *most;
}

/* Has most of what was read ahead of late left memory before anybody read it?
 * Then only a file or two are read ahead, to see whether that has changed. */
static bool is_in_vain(const struct files *files)
{
	return files->ahead_wasted >= VAIN_LEAST &&
	       files->ahead_wasted >= VAIN_TIMES * files->ahead_used;
}

/* Reads ahead from `from` on, twice as much as last time. */
static void small_ra_go(struct file *file, struct small_ra *small_ra,
			uint64_t from)
{
	struct files *files = file->files;
	size_t max = pool_count(files->chunk_pool) / 8;
	uint64_t sectors = files->fs->disk->limits.sectors, most, span, prefix;
	struct small_ra_look *look;

	max = max < SMALL_RA_FILES ? max : SMALL_RA_FILES;
	look = abandon_alloc(files->fs,
			     sizeof(*look) + max * sizeof(look->file[0]));
	if (!look)
		return;
	prefix = prefix_expected(file);
	if (prefix != PREFIX_UNKNOWN)
		small_ra->prefix = prefix;
	span = small_ra_span(small_ra, small_ra_track(files, from), &most);
	small_ra->window =
		small_ra->window ? small_ra->window * 2 : FIRST_SECTORS;
	if (small_ra->window > most)
		small_ra->window = most;
	if (is_in_vain(files))
		small_ra->window = VAIN_SECTORS;
	if (small_ra->prefix == PREFIX_UNKNOWN)
		span = small_ra->window;
	look->small_ra = small_ra;
	look->files = files;
	look->from = from;
	look->window = small_ra->window;
	look->to = from + span;
	look->to = look->to < sectors ? look->to : sectors;
	look->max = (unsigned)max;
	small_ra->next = look->to;
	small_ra->busy = true;
	if (look->from < look->to &&
	    !fs_txn_start(files->fs, &look_type, NULL, look))
		return;
	small_ra->busy = false;
	abandon_free(look);
}

static void small_ra_missed(struct file *file, uint64_t sector, uint64_t n)
{
	struct files *files = file->files;
	struct small_ra *small_ra = small_ra_find(files, sector);
	uint64_t reach = small_ra_reach(files, sector);
	bool goes_on = small_ra->used && sector <= small_ra->next + reach &&
		       small_ra->next <= sector + reach;

	if (small_ra->busy)
		return;
	small_ra->used = ++files->small_ra_clock;
	if (goes_on) {
		small_ra_go(file, small_ra, sector + n);
	} else {
		small_ra->next = sector + n;
		small_ra->window = 0;
		small_ra->prefix = PREFIX_UNKNOWN;
	}
}

static void small_ra_reached(struct file *file)
{
	struct files *files = file->files;
	uint64_t from = file->readahead_next;
	struct small_ra *small_ra = small_ra_find(files, from);

	file->readahead_next = 0;
	if (small_ra->busy || !small_ra->used || small_ra->next != from)
		return;
	small_ra->used = ++files->small_ra_clock;
	small_ra_go(file, small_ra, from);
}

const struct read_events small_readahead_events = {
	.reached = small_ra_reached,
	.missed = small_ra_missed,
};

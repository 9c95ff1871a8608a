/*
 * move_notice.c - notices which files users read whole though they are
 * fragmented.
 *
 * A file that was read from the disk a number of times in a month is expected
 * to be read as often in the next one; data that the kernel has in memory costs
 * nothing and is not seen.  For NOTICE_FILES files the reads that are in order
 * are counted.  When they amount to all of a file once, twice, four times and
 * so on, and there were fragments, the file is given to order, which finds out
 * whether moving it pays.
 */
#include "base/units.h"
#include "move/move_internal.h"

/* Sectors by which reads of a stream may overtake each other: eight of the
 * kernel's reads ahead, which have 128 KiB. */
#define NEAR_SECTORS 2048u

/* Returns the entry of an inode, else begins the entry anew that was not used
 * for longest, or for a month. */
static struct notice_file *file_of(struct noticing *notice, uint64_t ino,
				   uint64_t now_ns)
{
	struct notice_file *oldest = &notice->file[0], *file;
	unsigned i;

	for (i = 0; i < NOTICE_FILES; i++) {
		file = &notice->file[i];
		if (file->ino == ino) {
			oldest = file;
			break;
		}
		if (file->used_ns < oldest->used_ns)
			oldest = file;
	}
	if (oldest->ino != ino || now_ns - oldest->begun_ns > MOVE_MONTH_NS)
		*oldest = (struct notice_file){ .ino = ino,
						.begun_ns = now_ns };
	oldest->used_ns = now_ns;
	return oldest;
}

static bool is_in_order(const struct notice_file *file, uint64_t off)
{
	return !off || (off + NEAR_SECTORS > file->next &&
			off < file->next + NEAR_SECTORS);
}

static void notice_read(struct read_watch *watch,
			const struct read_segment *segment)
{
	struct moves *moves = container_of(watch, struct moves, notice.watch);
	uint64_t size = segment->file->size / SECTOR_BYTES;
	struct notice_file *file = file_of(&moves->notice, segment->file->ino,
					   env_now_ns(moves->fs->env));

	if (!is_in_order(file, segment->off)) {
		file->next = segment->off + segment->n;
		return;
	}
	file->breaks += segment->off && segment->addr == segment->first &&
			segment->addr != file->end;
	file->next = segment->off + segment->n;
	file->end = segment->addr + segment->n;
	file->sectors += segment->n;
	if (!size || file->sectors < size * (file->reads + 1))
		return;
	file->reads++;
	if (file->breaks && !(file->reads & (file->reads - 1)))
		order_want(moves, file->ino, file->reads);
}

void notice_begin(struct moves *moves)
{
	moves->notice.watch.read = notice_read;
	moves->fs->read_watch = &moves->notice.watch;
}

void notice_end(struct moves *moves)
{
	moves->fs->read_watch = NULL;
}

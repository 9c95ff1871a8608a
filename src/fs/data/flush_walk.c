/*
 * flush_walk.c - see flush_walk.h.
 *
 * Each walk goes once over files->dirty_files.  Files that become dirty
 * meanwhile are added behind: a walk leaves them out by their stamp, or it does
 * no harm to take them.
 */
#include "fs/data/flush_walk.h"

#include "fs/data/dirty_block.h"
#include "fs/data/writeback.h"
#include "fs/data/writeback_internal.h"

/* Charged for a look at a file, in nanoseconds: one miss of the processor's
 * cache. */
#define LOOK_NS 60u
/* Files that are looked at in any turn, however full it is, so that each walk
 * ends. */
#define LOOKS_LEAST 64u

/* ---- One directory ---- */

/* Stamp of the last write to a file; 0: the file is not dirty. */
static uint64_t file_stamp(const struct file *file)
{
	return list_empty(&file->dirty) ? 0 :
	       list_entry(file->dirty.prev, struct block, link)->stamp;
}

/* Files of one directory that are looked at in one go, and the time charged for
 * each, in nanoseconds: a miss of the processor's cache, and an insertion into
 * a list. */
#define GROUP_LOOKS 512u
#define GROUP_LOOK_NS 100u

static bool group_takes(const struct file *file, const struct file *other,
			uint64_t before, uint64_t track)
{
	return other->parent == file->parent &&
	       file_stamp(other) <= before &&
	       other->dirty_count * BLOCK_SECTORS <= track;
}

/* Flushes the small files of the directory that became dirty after this one: a
 * walk by age has visited those before.  Of more than GROUP_LOOKS files the
 * walk visits the rest itself. */
static void flush_group(struct file *file, uint64_t before, bool sync)
{
	struct files *files = file->files;
	uint64_t stamp = files->stamp, sum = 0;
	uint64_t track = alloc_track_sectors(files->fs->alloc, file->goal);
	const struct list *end = file_group(file);
	struct list *pos;
	struct file *other;
	unsigned looks = 0;

	if (file->dirty_count * BLOCK_SECTORS > track) {
		writeback_flush(file, stamp, sync, true);
		return;
	}
	for (pos = &file->group_link; pos != end && looks < GROUP_LOOKS;
	     pos = pos->next, looks++) {
		other = list_entry(pos, struct file, group_link);
		if (other->size > TRAX_MAX_INLINE_BYTES &&
		    group_takes(file, other, before, track))
			sum += other->dirty_count * BLOCK_SECTORS;
	}
	files->group_looks += 2 * looks;
	turn_charge(&files->fs->env->turn, TURN_FLUSH, looks * GROUP_LOOK_NS);
	for (pos = &file->group_link; looks-- > 0; pos = pos->next) {
		other = list_entry(pos, struct file, group_link);
		if (!group_takes(file, other, before, track))
			continue;
		other->batch_sectors = sum;
		writeback_flush(other, stamp, sync, true);
	}
}

/* ---- What is due ---- */

static bool step_all(struct files *files, struct flush_walk *walk,
		     struct file *file)
{
	if (file->flush_stamp >= walk->stamp)
		return false;
	flush_group(file, UINT64_MAX, walk->sync);
	(void)files;
	return true;
}

static bool step_old(struct files *files, struct flush_walk *walk,
		     struct file *file)
{
	const struct block *block =
		list_first(&file->dirty, struct block, link);

	(void)walk;
	if (env_now_ns(files->fs->env) - block->dirty_ns < WRITE_BACK_AGE_NS ||
	    file->flush_stamp >= block->stamp)
		return false;
	flush_group(file, UINT64_MAX, false);
	return true;
}

static bool step_sweep(struct files *files, struct flush_walk *walk,
		       struct file *file)
{
	(void)files;
	if (!file_is_small(file) || file_stamp(file) > walk->stamp)
		return false;
	walk->any = true;
	if (file->flush_stamp >= file_stamp(file))
		return false;
	flush_group(file, walk->stamp, false);
	return true;
}

static bool (*const steps[FLUSH_WALKS])(struct files *files,
					struct flush_walk *walk,
					struct file *file) = {
	[FLUSH_ALL] = step_all,
	[FLUSH_OLD] = step_old,
	[FLUSH_SWEEP] = step_sweep,
};

/* ---- Walking ---- */

static void walk_begin(struct files *files, enum flush_walks kind,
		       uint64_t stamp)
{
	files->walks[kind] = (struct flush_walk){
		.next = files->dirty_files.next, .stamp = stamp,
	};
}

static void walk_run(struct files *files, enum flush_walks kind)
{
	struct flush_walk *walk = &files->walks[kind];
	struct loop_turn *turn = &files->fs->env->turn;
	struct file *file;
	unsigned n;

	for (n = 0; walk->next && walk->next != &files->dirty_files; n++) {
		if (n >= LOOKS_LEAST && turn_is_full(turn))
			return;
		turn_charge(turn, TURN_FLUSH, LOOK_NS);
		file = list_entry(walk->next, struct file, dirty_link);
		walk->next = walk->next->next;
		walk->flushed |= steps[kind](files, walk, file);
	}
	walk->next = NULL;
}

void flush_all(struct files *files, bool sync)
{
	/* A walk for another sync is cut off here: this one also covers it. */
	sync |= files->walks[FLUSH_ALL].next && files->walks[FLUSH_ALL].sync;
	walk_begin(files, FLUSH_ALL, files->stamp);
	files->walks[FLUSH_ALL].sync = sync;
	walk_run(files, FLUSH_ALL);
}

void flush_old(struct files *files)
{
	if (files->walks[FLUSH_OLD].next)
		return;
	walk_begin(files, FLUSH_OLD, files->stamp);
	walk_run(files, FLUSH_OLD);
}

void flush_oldest(struct files *files)
{
	flush_group(list_first(&files->dirty_files, struct file, dirty_link),
		    UINT64_MAX, false);
}

bool flush_sweep(struct files *files, unsigned young_part)
{
	struct flush_walk *walk = &files->walks[FLUSH_SWEEP];
	uint64_t young = pool_count(files->dirty_pool) / young_part;
	uint64_t stamp = files->stamp - young;

	if (files->stamp < young)
		return false;
	/* The last walk found everything there is to flush; its files may have
	 * been written since. */
	if (!walk->next && !walk->flushed && walk->stamp == stamp)
		return walk->any && files->wbs_busy;
	if (!walk->next)
		walk_begin(files, FLUSH_SWEEP, stamp);
	walk_run(files, FLUSH_SWEEP);
	return walk->any || walk->next;
}

bool flush_walks_run(struct files *files)
{
	enum flush_walks kind;
	bool any = false;

	for (kind = 0; kind < FLUSH_WALKS; kind++) {
		if (!files->walks[kind].next)
			continue;
		walk_run(files, kind);
		any = true;
	}
	return any;
}

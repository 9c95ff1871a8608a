/*
 * file_sync.c - waits for write-back: fsync, syncfs, unmount, and operations
 * that want a file for themselves.
 *
 *   fsync -> dirty blocks flushed -> [no write-back of them left] -> commit
 *
 * A sync is looked at again whenever a write-back of its file (or of any, for
 * all files) has ended.
 */
#include "fs/data/file_sync.h"
#include "fs/data/failure.h"
#include "fs/data/dirty_block.h"
#include "fs/data/file.h"
#include "fs/data/flush_walk.h"
#include "fs/data/prealloc.h"
#include "fs/data/unwritten.h"
#include "fs/data/write_order.h"
#include "fs/data/writeback.h"
#include "fs/data/writeback_policy.h"

#include <errno.h>

#include "base/msg.h"
#include "fs/op/op.h"

static void files_committed(struct waiter *waiter, int rc)
{
	struct files *files = waiter->owner;

	files->committing = false;
	log_pin_run(files, rc ? 0 : files->commit_number);
	writeback_pump(files);
}

void files_commit(struct files *files)
{
	if (files->committing)
		return;
	files->committing = true;
	files->commit_number = log_pin_cover(files);
	files->commit = (struct waiter){
		.done = files_committed, .owner = files,
	};
	list_init(&files->commit.link);
	tree_commit(files->fs->tree, UINT64_MAX, &files->commit);
}

/* Ends the syncs of a list that are over. done() may change the list, so it is
 * searched anew after each. */
static void syncs_check_list(struct list *syncs)
{
	struct list *pos = syncs->next;

	while (pos != syncs)
		pos = sync_check(list_entry(pos, struct sync, link)) ?
			syncs->next : pos->next;
}

void file_wake_waiters(struct file *file)
{
	struct files *files = file->files;

	file->users++;
	syncs_check_list(&file->syncs);
	syncs_check_list(&files->syncs);
	excl_lock_grant_next(file);
	if (list_empty(&file->excl_locks))
		lock_waits_wake(&file->lock_waits);
	file_put(file);
}

/* Wakes the waiters of all files.  This may end files, so the first of the list
 * is taken each time. */
void files_settled(struct files *files)
{
	size_t n = files->file_count;
	struct file *file;

	while (n-- && (file = list_first(&files->all, struct file, link))) {
		list_del(&file->link);
		list_add(&files->all, &file->link);
		file_wake_waiters(file);
	}
	syncs_check_list(&files->syncs);
}

static bool sync_file_over(const struct file *file, uint64_t stamp)
{
	const struct list *pos;

	list_for_each(pos, &file->dirty) {
		const struct block *block =
			list_entry(pos, struct block, link);

		if (block->stamp > stamp)
			return true;
		/* The content is durable; it is dirty only to get another
		 * place. */
		if (!block_is_logged(block))
			return false;
	}
	return true;
}

static bool sync_writebacks_done(const struct files *files,
				 const struct sync *sync)
{
	const struct writeback *wb;
	const struct list *pos;

	list_for_each(pos, &files->data_wbs) {
		wb = list_entry(pos, struct writeback, link);
		if ((!sync->file || wb->file == sync->file) &&
		    wb->claimed && !wb->relocates && wb->stamp <= sync->stamp)
			return false;
	}
	return !sync->destage ||
	       (!files->destages_busy && files->pinned_count == 0);
}

static bool sync_files_over(struct files *files, uint64_t stamp)
{
	const struct list *pos;

	list_for_each(pos, &files->dirty_files) {
		files->sync_looks++;
		if (!sync_file_over(list_entry(pos, struct file, dirty_link),
				    stamp))
			return false;
	}
	return true;
}

bool sync_check(struct sync *sync)
{
	struct files *files = sync->waiter.owner;

	if (tree_failed(files->fs->tree)) {
		list_del(&sync->link);
		sync->done(sync, -EIO);
		return true;
	}
	/* Each write-back that ends asks this: while others are left that count
	 * not all that is dirty is looked at. */
	if (!sync_writebacks_done(files, sync) ||
	    (sync->file ? !sync_file_over(sync->file, sync->stamp) :
			  !sync_files_over(files, sync->stamp)))
		return false;
	list_del(&sync->link);
	sync->done(sync, 0);
	return true;
}

bool sync_is_over(struct file *file)
{
	struct sync sync = { .file = file, .stamp = file->files->stamp };

	return sync_file_over(file, sync.stamp) &&
	       sync_writebacks_done(file->files, &sync);
}

void sync_start(struct files *files, struct sync *sync)
{
	sync->stamp = files->stamp;
	sync->waiter.owner = files;
	list_init(&sync->link);
	/* This comes before the sync is put into a list, as write-backs that
	 * end by it look for syncs that wait. */
	if (sync->file)
		files->policy->recall_data(sync->file);
	else
		files->policy->recall_all(files);
	if (sync->file) {
		list_add(&sync->file->syncs, &sync->link);
		writeback_flush(sync->file, sync->stamp, true, true);
	} else {
		list_add(&files->syncs, &sync->link);
		/* Much data is not logged: it would be written twice. */
		flush_all(files, files->dirty_count <= SYNC_LOG_BLOCKS);
		if (sync->destage)
			files->destage_seq = UINT64_MAX;
	}
	if (!sync_check(sync))
		writeback_pump(files);
}

struct fsync {
	struct shared_lock lock;
	struct sync sync;
	struct waiter waiter;
	struct order_wait order;
	struct fs *fs;
	struct fs_op *op;	/* NULL: see `close` */
	struct waiter *close;	/* the unmount that waits for everything; NULL:
				 * see `op` */
	bool all;		/* all of the file system, not one inode */
	unsigned commits;
	uint64_t commit_number;	/* for close, see log_pin_cover */
};

static void fsync_over(struct fsync *fsync, int rc)
{
	struct file *file = fsync->sync.file;
	struct fs *fs = fsync->fs;
	struct waiter *close = fsync->close;
	struct fs_op *op = fsync->op;
	struct files *files = fs->files;

	if (!rc && file)
		rc = loss_report(file, op->handle);
	if (!rc && !file && files->loss && fsync->all) {
		rc = files->loss;
		if (op)
			files->loss = 0;
	}
	if (fsync->all)
		unwritten_over(files);
	abandon_free(fsync);
	if (file)
		file_put(file);
	if (op) {
		fs_answer(fs, op, rc);
	} else {
		fs->answers++;	/* so that fs_run returns */
		close->done(close, rc);
	}
}

static void fsync_commit(struct fsync *fsync);

/* For unmount: logged data is destaged, and the pins that this made superfluous
 * are dropped when it is durable, too. */
static void fsync_committed(struct waiter *waiter, int rc)
{
	struct fsync *fsync = waiter->owner;
	struct files *files = fsync->fs->files;

	log_pin_run(files, rc ? 0 : fsync->commit_number);
	fsync->commits++;
	if (rc || !fsync->close || fsync->commits == 2) {
		fsync_over(fsync, rc ? -EIO : 0);
		return;
	}
	fsync->sync.destage = true;
	sync_start(files, &fsync->sync);
}

static void fsync_commit(struct fsync *fsync)
{
	if (fsync->close)
		fsync->commit_number = log_pin_cover(fsync->fs->files);
	fsync->waiter = (struct waiter){
		.done = fsync_committed, .owner = fsync,
	};
	list_init(&fsync->waiter.link);
	tree_commit(fsync->fs->tree, UINT64_MAX, &fsync->waiter);
}

static void fsync_ordered(struct order_wait *wait)
{
	fsync_commit(container_of(wait, struct fsync, order));
}

static void fsync_written(struct sync *sync, int rc)
{
	struct fsync *fsync = sync->owner;

	fsync->order.go = fsync_ordered;
	if (rc)
		fsync_over(fsync, rc);
	else if (!order_waits(fsync->fs->files, &fsync->order))
		fsync_commit(fsync);
}

static void fsync_step(struct shared_lock *lock)
{
	struct fsync *fsync = container_of(lock, struct fsync, lock);
	struct file *file = fsync->sync.file;
	int rc = 0;

	if (file && (file->blocks || !list_empty(&file->excl_locks)))
		rc = file_lock_shared(file, lock);
	if (rc == FS_TXN_WAIT)
		return;
	if (rc)
		fsync_over(fsync, rc);
	else
		sync_start(fsync->fs->files, &fsync->sync);
}

enum fsync_scope { FSYNC_ONE, FSYNC_ALL };

/* Starts a sync: of the data of `file` (NULL: none of it is in memory), then a
 * commit. */
static void fsync_start(struct fs *fs, struct fs_op *op, struct file *file,
			struct waiter *close, enum fsync_scope scope)
{
	struct fsync *fsync = abandon_alloc(fs, sizeof(*fsync));

	if (!fsync) {
		if (op)
			fs_answer(fs, op, -ENOMEM);
		else
			close->done(close, -ENOMEM);
		return;
	}
	fsync->fs = fs;
	fsync->op = op;
	fsync->close = close;
	fsync->lock.granted = fsync_step;
	fsync->all = scope == FSYNC_ALL;
	fsync->sync.file = file;
	fsync->sync.done = fsync_written;
	fsync->sync.owner = fsync;
	if (file)
		file->users++;
	if (fsync->all)
		unwritten_wait(fs->files);
	if (!file && scope == FSYNC_ONE)
		fsync_written(&fsync->sync, 0);
	else
		fsync_step(&fsync->lock);
}

void file_fsync(struct fs *fs, struct fs_op *op)
{
	struct vnode *vnode = vnode_find(fs, op->ino);

	if (fs->options.read_only)
		fs_answer(fs, op, 0);
	else
		fsync_start(fs, op, vnode ? vnode->file : NULL,
			    NULL, FSYNC_ONE);
}

void file_syncfs(struct fs *fs, struct fs_op *op)
{
	if (fs->options.read_only)
		fs_answer(fs, op, 0);
	else
		fsync_start(fs, op, NULL, NULL, FSYNC_ALL);
}

void files_sync(struct fs *fs, struct waiter *waiter)
{
	fsync_start(fs, NULL, NULL, waiter, FSYNC_ALL);
}

void file_closed(struct vnode *vnode)
{
	if (!vnode->file)
		return;
	prealloc_settle(vnode->file);
	order_closed(vnode->file);
}

/*
 * file.c - what is known of files in memory: who works on them, what is to be
 * written back, and when.
 *
 *   write -> dirty --age, pressure, fsync, a track's worth--> write-back
 *   write-back -> clean, or pinned by the log -> destaged -> clean
 *
 * 1. A file is loaded (its INODE item read once) before anything is done with
 *    it; from then on its size is the one in memory.
 * 2. Operations that change the mapping other than by adding to it (truncate,
 *    punch, delete) are exclusive: they start when no write-back is under way,
 *    and meanwhile everybody else waits at the gate.
 * 3. Back-pressure delays WRITE and nothing else: at three quarters of the
 *    dirty pool.  The last quarter is for what must go on.
 */
#include "fs/data/failure.h"
#include "fs/data/read_events.h"
#include "fs/data/writeback_policy.h"

#include <errno.h>
#include <stdlib.h>

#include "base/msg.h"

#define SECOND_NS 1000000000ull
/* Of dirty data, the time in the kernel's cache included, as ext4 has it: 30 s
 * until it is written back and 5 s until that is committed. */
#define AGE_NS (35 * SECOND_NS)
#define DESTAGE_AGE_NS (30 * SECOND_NS)	/* of what is in the log only */
#define DESTAGE_AGES 10u		/* when they are destaged in gaps */
#define SCAN_NS SECOND_NS
#define EXCL_LOCK_LOG_PERCENT 50u
#define MIN_DIRTY_BLOCKS 512u
#define MIN_CHUNKS 48u

/* ---- The state of the file system ---- */

static int files_pools(struct files *files)
{
	struct fs *fs = files->fs;
	size_t blocks = fs->budget.dirty / BLOCK_BYTES;
	size_t pieces = fs->budget.tracks / CHUNK_BYTES;
	size_t i;
	int rc;

	blocks = blocks < MIN_DIRTY_BLOCKS ? MIN_DIRTY_BLOCKS : blocks;
	pieces = pieces < MIN_CHUNKS ? MIN_CHUNKS : pieces;
	rc = pool_new(BLOCK_BYTES, blocks, &files->dirty_pool);
	if (!rc)
		rc = pool_new(CHUNK_BYTES, pieces, &files->chunk_pool);
	if (rc)
		return rc;
	files->block_store = calloc(blocks, sizeof(struct block));
	files->chunk_store = calloc(pieces, sizeof(struct chunk));
	if (!files->block_store || !files->chunk_store)
		return -ENOMEM;
	for (i = blocks; i-- > 0;) {
		files->block_store[i].next = files->block_free;
		files->block_free = &files->block_store[i];
	}
	for (i = 0; i < pieces; i++) {
		files->chunk_store[i].data = pool_get(files->chunk_pool);
		list_add(&files->chunk_free, &files->chunk_store[i].lru);
	}
	return 0;
}

static void files_lists(struct files *files)
{
	list_init(&files->chunk_free);
	list_init(&files->lru);
	list_init(&files->chunk_waits);
	list_init(&files->all);
	list_init(&files->dirty_files);
	list_init(&files->flush[0]);
	list_init(&files->flush[1]);
	list_init(&files->pinned_files);
	list_init(&files->writers);
	list_init(&files->syncs);
	list_init(&files->order_waits);
	list_init(&files->log_pins);
	list_init(&files->log_unpins);
	list_init(&files->broken);
	list_init(&files->wb_free[0]);
	list_init(&files->wb_free[1]);
	list_init(&files->data_wbs);
	list_init(&files->destages);
	list_init(&files->gap_queue);
	list_init(&files->suspects);
}

static const struct vnode_data_ops files_data_ops = {
	.delete = file_delete,
	.resume_truncate = file_resume_truncate,
	.fix_attr = file_fix_attr,
	.order = file_order,
	.set_size = file_set_size,
	.fallocate = file_fallocate,
	.copy_range = file_copy_range,
};

int files_new(struct fs *fs)
{
	struct files *files = calloc(1, sizeof(*files));
	int rc;

	if (!files)
		return -ENOMEM;
	files->fs = fs;
	files->wake_ns = UINT64_MAX;
	fs->files = files;
	files->policy = fs->writeback_policy;
	fs->data_ops = &files_data_ops;
	files_lists(files);
	rc = files_pools(files);
	if (!rc)
		rc = writebacks_new(files);
	if (rc) {
		files_free(fs);
		return rc;
	}
	tree_set_destage(fs->tree, destage_want, files);
	tree_set_order(fs->tree, order_commit, files);
	return 0;
}

/* Also after a crash in a test: nothing is given back to tree or space. */
void files_free(struct fs *fs)
{
	struct files *files = fs->files;
	struct file *file;

	if (!files)
		return;
	files->policy->close(files);
	for_each_read_event(ev, fs, close)
		(*ev)->close(files);
	while ((file = list_first(&files->all, struct file, link))) {
		list_del(&file->link);
		file->vnode->file = NULL;
		if (file->chunks)
			hashmap_free(file->chunks);
		free(file);
	}
	abandon_free_all(fs);
	if (files->chunk_pool)
		pool_free(files->chunk_pool);
	if (files->dirty_pool)
		pool_free(files->dirty_pool);
	free(files->block_store);
	free(files->chunk_store);
	free(files->writebacks);
	free(files->wb_data);
	free(files->wb_iov);
	free(files);
	fs->files = NULL;
}

size_t files_room(const struct files *files)
{
	size_t count = pool_count(files->dirty_pool);
	size_t left = pool_available(files->dirty_pool);

	return left > count / 4 ? left - count / 4 : 0;
}

bool files_idle(const struct fs *fs)
{
	return !fs->files->wbs_busy && !fs->files->fetches &&
	       !fs->files->heals && !fs->files->bad_writes;
}

static void files_committed(struct waiter *waiter, int rc)
{
	struct files *files = waiter->owner;

	files->committing = false;
	log_pin_run(files, rc == 0);
	writeback_pump(files);
}

void files_commit(struct files *files)
{
	if (files->committing)
		return;
	files->committing = true;
	log_pin_cover(files);
	files->commit = (struct waiter){
		.done = files_committed, .owner = files,
	};
	list_init(&files->commit.link);
	tree_commit(files->fs->tree, UINT64_MAX, &files->commit);
}

/* ---- Files ---- */

static struct file *file_new(struct files *files, struct vnode *vnode)
{
	struct file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->files = files;
	file->vnode = vnode;
	file->ino = vnode->ino;
	list_init(&file->lock_waits);
	list_init(&file->load_waits);
	list_init(&file->excl_locks);
	list_init(&file->read_waits);
	list_init(&file->fetches);
	list_init(&file->syncs);
	list_init(&file->dirty);
	list_init(&file->dirty_link);
	list_init(&file->flush_link);
	list_init(&file->pinned_link);
	list_add(&files->all, &file->link);
	files->file_count++;
	vnode->file = file;
	return file;
}

struct file *file_get(struct fs *fs, uint64_t ino)
{
	struct vnode *vnode = vnode_get(fs, ino);
	struct file *file;

	if (!vnode)
		return NULL;
	file = vnode->file ? vnode->file : file_new(fs->files, vnode);
	if (file)
		file->users++;
	else
		vnode_drop_unused(fs, vnode);
	return file;
}

void file_put(struct file *file)
{
	file->users--;
	file_unused(file);
}

void file_unused(struct file *file)
{
	struct files *files = file->files;
	struct vnode *vnode = file->vnode;

	if (file->users || file->writebacks || file->blocks || file->loading ||
	    vnode->opens || !list_empty(&file->excl_locks) ||
	    !list_empty(&file->read_waits) || (file->loss && vnode->refs) ||
	    (file->chunks && hashmap_count(file->chunks)))
		return;
	list_del(&file->link);
	list_del(&file->flush_link);
	files->file_count--;
	loss_free(file);
	if (file->chunks)
		hashmap_free(file->chunks);
	free(file);
	vnode->file = NULL;
	vnode_drop_unused(files->fs, vnode);
}

/* ---- Loading, gate, exclusive operations ---- */

static int load_run(struct fs_txn *txn)
{
	struct file *file = txn->state;
	struct inode_item item;
	struct tree_item data;
	uint32_t mode;
	int rc, err;

	err = tree_get(txn->tree_txn, key_make(file->ino, ITEM_INLINE, 0),
		       &data);
	rc = inode_get(txn, file->ino, &item);
	if (rc)
		return rc == -ENOENT ? -ESTALE : rc;
	mode = le32_get(item.mode);
	if (!S_ISREG(mode))
		return S_ISDIR(mode) ? -EISDIR : -EINVAL;
	if (err && err != -ENOENT)
		return err;
	file->has_inline = err == 0;
	file->size = le64_get(item.size);
	file->parent = le64_get(item.parent);
	file->goal = addr_sector(le64_get(item.goal));
	file->copies = le32_get(item.flags) & INODE_HAS_COPIES;
	file->lost = le32_get(item.flags) & INODE_DATA_LOST;
	file->loaded = true;
	return 0;
}

static void lock_waits_wake(struct list *waits)
{
	struct list now;
	struct shared_lock *lock;

	list_init(&now);
	while ((lock = list_first(waits, struct shared_lock, link))) {
		list_del(&lock->link);
		list_add(&now, &lock->link);
	}
	while ((lock = list_first(&now, struct shared_lock, link))) {
		list_del(&lock->link);
		lock->granted(lock);
	}
}

static void load_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct file *file = txn->state;

	(void)seq;
	fs_txn_finish(txn, rc);
	file->users++;
	file->loading = false;
	file->load_rc = rc;
	lock_waits_wake(&file->load_waits);
	file_wake_waiters(file);
	file->load_rc = 0;
	file_put(file);
}

static const struct fs_txn_type load_type = {
	.name = "load",
	.paths = 2,
	.run = load_run,
	.end = load_end,
};

static int file_load(struct file *file)
{
	int rc;

	if (file->loading)
		return 0;
	file->loading = true;
	rc = fs_txn_start(file->files->fs, &load_type, NULL, file);
	if (rc)
		file->loading = false;
	return rc;
}

int file_lock_shared(struct file *file, struct shared_lock *lock)
{
	int rc;

	if (file->load_rc)
		return file->load_rc;
	if (!list_empty(&file->excl_locks)) {
		list_add(&file->lock_waits, &lock->link);
		return FS_TXN_WAIT;
	}
	if (file->loaded)
		return 0;
	rc = file_load(file);
	if (rc)
		return rc;
	list_add(&file->load_waits, &lock->link);
	return FS_TXN_WAIT;
}

/* What this file has in the log may be what fills it. */
static bool file_fills_log(const struct file *file)
{
	return file->pinned_count && !tree_failed(file->files->fs->tree) &&
	       log_fill_percent(tree_log(file->files->fs->tree)) >
		       EXCL_LOCK_LOG_PERCENT;
}

bool file_writeback_blocked(const struct file *file)
{
	const struct excl_lock *excl =
		list_first(&file->excl_locks, struct excl_lock, link);

	return excl && (excl->active || !file_fills_log(file));
}

static void excl_lock_grant_next(struct file *file)
{
	struct excl_lock *excl =
		list_first(&file->excl_locks, struct excl_lock, link);

	if (!excl || excl->active)
		return;
	if (file_fills_log(file)) {
		file->files->destage_seq = UINT64_MAX;
		return;
	}
	if (file->writebacks)
		return;
	if (!file->loaded && !file->load_rc)
		return;
	excl->active = true;
	excl->start(excl, file->loaded ? 0 : file->load_rc);
}

/* done() may change the list: looked through anew after each. */
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

/* What goes on may end files: each is looked at once, at the front. */
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

void file_lock_excl(struct excl_lock *excl)
{
	struct file *file = excl->file;
	struct files *files = file->files;
	int rc = 0;

	file->users++;
	excl->active = false;
	list_add(&file->excl_locks, &excl->link);
	file->files->policy->recall_file(file);
	if (!file->loaded)
		rc = file_load(file);
	if (rc)
		file->load_rc = rc;
	excl_lock_grant_next(file);
	file->load_rc = 0;
	file_put(file);
	writeback_pump(files);
}

void file_unlock_excl(struct excl_lock *excl)
{
	struct file *file = excl->file;
	struct files *files = file->files;

	list_del(&excl->link);
	excl->active = false;
	file_wake_waiters(file);
	writeback_pump(files);
}

/* ---- Waiting for write-back ---- */

static bool sync_file_over(const struct file *file, uint64_t stamp)
{
	const struct block *block;

	if (list_empty(&file->dirty))
		return true;
	block = list_entry(file->dirty.next, struct block, link);
	return block->stamp > stamp;
}

static bool sync_writebacks_done(const struct files *files,
				 const struct sync *sync)
{
	const struct writeback *wb;
	const struct list *pos;

	list_for_each(pos, &files->data_wbs) {
		wb = list_entry(pos, struct writeback, link);
		if ((!sync->file || wb->file == sync->file) &&
		    wb->claimed && wb->stamp <= sync->stamp)
			return false;
	}
	return !sync->destage ||
	       (!files->destages_busy && files->pinned_count == 0);
}

bool sync_check(struct sync *sync)
{
	struct files *files = sync->waiter.owner;
	struct list *pos;

	if (tree_failed(files->fs->tree)) {
		list_del(&sync->link);
		sync->done(sync, -EIO);
		return true;
	}
	if (sync->file) {
		if (!sync_file_over(sync->file, sync->stamp))
			return false;
	} else {
		list_for_each(pos, &files->dirty_files)
			if (!sync_file_over(list_entry(pos, struct file,
						       dirty_link),
					    sync->stamp))
				return false;
	}
	if (!sync_writebacks_done(files, sync))
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

uint64_t file_stamp(const struct file *file)
{
	return list_empty(&file->dirty) ? 0 :
	       list_entry(file->dirty.prev, struct block, link)->stamp;
}

void files_flush_group(struct file *file, uint64_t before, bool sync)
{
	struct files *files = file->files;
	uint64_t stamp = files->stamp, sum = 0;
	uint64_t track = alloc_track_sectors(files->fs->alloc, file->goal);
	struct list *pos;
	struct file *other;

	if (file->dirty_count * BLOCK_SECTORS > track) {
		writeback_flush(file, stamp, sync, true);
		return;
	}
	list_for_each(pos, &files->dirty_files) {
		other = list_entry(pos, struct file, dirty_link);
		if (other->parent == file->parent &&
		    other->size > TRAX_MAX_INLINE_BYTES &&
		    file_stamp(other) <= before &&
		    other->dirty_count * BLOCK_SECTORS <= track)
			sum += other->dirty_count * BLOCK_SECTORS;
	}
	list_for_each(pos, &files->dirty_files) {
		other = list_entry(pos, struct file, dirty_link);
		if (other->parent != file->parent ||
		    other->dirty_count * BLOCK_SECTORS > track ||
		    file_stamp(other) > before)
			continue;
		other->batch_sectors = sum;
		writeback_flush(other, stamp, sync, true);
	}
}

static void files_flush_all(struct files *files, bool sync)
{
	struct list *pos, *tmp;
	struct file *file;

	list_for_each_safe(pos, tmp, &files->dirty_files) {
		file = list_entry(pos, struct file, dirty_link);
		if (file->flush_stamp < files->stamp)
			files_flush_group(file, UINT64_MAX, sync);
	}
}

void sync_start(struct files *files, struct sync *sync)
{
	sync->stamp = files->stamp;
	sync->waiter.owner = files;
	list_init(&sync->link);
	/* First: what ends by it looks who waits. */
	if (sync->file)
		files->policy->recall_data(sync->file);
	else
		files->policy->recall_all(files);
	if (sync->file) {
		list_add(&sync->file->syncs, &sync->link);
		writeback_flush(sync->file, sync->stamp, true, true);
	} else {
		list_add(&files->syncs, &sync->link);
		/* Much of it is not for the log: it would be written twice. */
		files_flush_all(files, files->dirty_count <= SYNC_LOG_BLOCKS);
		if (sync->destage)
			files->destage_seq = UINT64_MAX;
	}
	if (!sync_check(sync))
		writeback_pump(files);
}

/* ---- fsync, syncfs ---- */

struct fsync {
	struct shared_lock lock;
	struct sync sync;
	struct waiter waiter;
	struct order_wait order;
	struct fs *fs;
	struct fs_op *op;	/* or */
	struct waiter *close;	/* everything, for unmount */
	bool all;		/* of the file system, not of one inode */
	unsigned commits;
};

static void fsync_over(struct fsync *fsync, int rc)
{
	struct file *file = fsync->sync.file;
	struct fs *fs = fsync->fs;
	struct waiter *close = fsync->close;
	struct fs_op *op = fsync->op;
	struct files *files = fs->files;

	if (!rc && file)
		rc = loss_tell(file, op->handle);
	if (!rc && !file && files->loss && fsync->all) {
		rc = files->loss;
		if (op)
			files->loss = 0;
	}
	abandon_free(fsync);
	if (file)
		file_put(file);
	if (op) {
		fs_answer(fs, op, rc);
	} else {
		fs->answers++;	/* fs_run is not to wait any more */
		close->done(close, rc);
	}
}

static void fsync_commit(struct fsync *fsync);

/* For unmount: what was logged is destaged, and what that made superfluous is
 * given up when it is durable, too. */
static void fsync_committed(struct waiter *waiter, int rc)
{
	struct fsync *fsync = waiter->owner;
	struct files *files = fsync->fs->files;

	log_pin_run(files, !rc && fsync->close);
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
		log_pin_cover(fsync->fs->files);
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

/* One: the data of `file` (NULL: it has none in memory), then a commit. */
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
	if (vnode->file)
		order_closed(vnode->file);
}

/* ---- Attributes, age ---- */

void file_fix_attr(struct fs *fs, uint64_t ino, struct fs_attr *attr)
{
	struct vnode *vnode = vnode_find(fs, ino);
	struct file *file = vnode ? vnode->file : NULL;
	uint64_t whole, sectors;

	if (!file || !file->loaded)
		return;
	attr->size = file->size;
	/* Room is promised also for what has a place already: a file has no
	 * more than its size asks for, or than it had. */
	whole = (file->size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_SECTORS;
	sectors = attr->sectors + file->reserved_count * BLOCK_SECTORS;
	if (sectors > whole)
		sectors = attr->sectors > whole ? attr->sectors : whole;
	attr->sectors = sectors;
}

/* Those that waited for the log, which has become emptier without them. */
static void excl_locks_retry(struct files *files)
{
	const struct excl_lock *excl;
	struct list *pos;
	struct file *file;

	list_for_each(pos, &files->pinned_files) {
		file = list_entry(pos, struct file, pinned_link);
		excl = list_first(&file->excl_locks, struct excl_lock, link);
		if (!excl || excl->active || file->writebacks ||
		    file_fills_log(file))
			continue;
		file_wake_waiters(file);
		return;		/* the list may have changed */
	}
}

static void files_scan(struct files *files, uint64_t now_ns)
{
	struct list *pos, *tmp;
	struct block *block;
	struct file *file;
	uint64_t age;

	list_for_each_safe(pos, tmp, &files->dirty_files) {
		file = list_entry(pos, struct file, dirty_link);
		block = list_entry(file->dirty.next, struct block, link);
		if (now_ns - block->dirty_ns >= AGE_NS &&
		    file->flush_stamp < block->stamp)
			files_flush_group(file, UINT64_MAX, false);
	}
	age = DESTAGE_AGE_NS *
	      (files->policy->gap_destages(files) ? DESTAGE_AGES : 1);
	if (files->pinned_count && now_ns - files->oldest_pinned_ns >= age) {
		destage_now(files);
		files->oldest_pinned_ns = now_ns;
	}
}

uint64_t files_run(struct fs *fs, uint64_t now_ns)
{
	struct files *files = fs->files;
	uint64_t next_ns = order_run(files, now_ns);

	chunks_run(files);
	log_pin_run(files, false);
	files->policy->run(files, now_ns);
	files_stop(files);
	if (files->fs->closing)
		bads_run(files, now_ns);
	if (now_ns >= files->wake_ns) {
		files->wake_ns = UINT64_MAX;
		bads_run(files, now_ns);
		writeback_pump(files);
	}
	if (now_ns >= files->scan_ns) {
		files->scan_ns = now_ns + SCAN_NS;
		files_scan(files, now_ns);
		excl_locks_retry(files);
		writeback_pump(files);
	}
	if (!list_empty(&files->broken))
		return now_ns;
	next_ns = files->wake_ns < next_ns ? files->wake_ns : next_ns;
	if (files->dirty_count || files->pinned_count || files->gap_queued ||
	    !list_empty(&files->log_unpins))
		next_ns = files->scan_ns < next_ns ? files->scan_ns : next_ns;
	return next_ns;
}

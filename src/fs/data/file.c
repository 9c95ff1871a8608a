/*
 * file.c - the state of one file in memory: its users, its size, and the locks
 * that its operations take.
 *
 * 1. A file is loaded (its INODE item read once) before anything is done with
 *    it; from then on its size is the one in memory.
 * 2. Operations that change the mapping other than by adding to it (truncate,
 *    punch, delete) are exclusive: they start when no write-back is under way,
 *    and meanwhile all others wait for the shared lock.
 * 3. Back-pressure delays WRITE and nothing else: when three quarters of the
 *    dirty pool are used.  The last quarter is for operations that must go on.
 */
#include "fs/data/file.h"
#include "fs/data/failure.h"
#include "fs/data/dirty_block.h"
#include "fs/data/file_sync.h"
#include "fs/data/prealloc.h"
#include "fs/data/writeback_policy.h"

#include <errno.h>
#include <stdlib.h>

/* If the log is fuller than this, the data of the file that it holds is
 * destaged before an exclusive operation on the file begins: meanwhile nothing
 * of it could be. */
#define EXCL_LOCK_LOG_PERCENT 50u

size_t files_room(const struct files *files)
{
	size_t count = pool_count(files->dirty_pool);
	size_t left = pool_available(files->dirty_pool);

	return left > count / 4 ? left - count / 4 : 0;
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
	list_init(&file->group_link);
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

void file_free(struct file *file)
{
	free(file->streams);
	loss_free(file);
	if (file->chunks)
		hashmap_free(file->chunks);
	free(file);
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
	for (unsigned i = 0; file->streams && i < STREAMS_PER_FILE; i++)
		pace_end(files, &file->streams[i].pace);
	list_del(&file->link);
	list_del(&file->flush_link);
	files->file_count--;
	prealloc_release(file);
	file_free(file);
	vnode->file = NULL;
	vnode_drop_unused(files->fs, vnode);
}

/* ---- Loading, shared and exclusive locks ---- */

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
	file_set_parent(file, le64_get(item.parent));
	file->goal = addr_sector(le64_get(item.goal));
	file->copies = le32_get(item.flags) & INODE_HAS_COPIES;
	file->lost = le32_get(item.flags) & INODE_DATA_LOST;
	file->loaded = true;
	return 0;
}

void lock_waits_wake(struct list *waits)
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
	file->files->ops->wake_waiters(file);
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

int file_lock_read(struct file *file, struct shared_lock *lock)
{
	const struct excl_lock *excl =
		list_first(&file->excl_locks, struct excl_lock, link);

	if (excl && excl->active && excl->readable && file->loaded &&
	    !file->load_rc)
		return 0;
	return file_lock_shared(file, lock);
}

/* Wakes all that wait for the shared lock; writers among them wait again. */
void file_let_read(struct excl_lock *excl)
{
	struct file *file = excl->file;

	excl->readable = true;
	file->users++;
	lock_waits_wake(&file->lock_waits);
	file_put(file);
}

/* May the data of this file in the log be what fills it? */
bool file_fills_log(const struct file *file)
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

void excl_lock_grant_next(struct file *file)
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

void file_lock_excl(struct excl_lock *excl)
{
	struct file *file = excl->file;
	struct files *files = file->files;
	int rc = 0;

	file->users++;
	excl->active = excl->readable = false;
	if (list_empty(&file->excl_locks))
		list_add(&files->excl_files, &file->excl_link);
	list_add(&file->excl_locks, &excl->link);
	file->files->policy->recall_file(file);
	if (!file->loaded)
		rc = file_load(file);
	if (rc)
		file->load_rc = rc;
	excl_lock_grant_next(file);
	file->load_rc = 0;
	file_put(file);
	files->ops->pump(files);
}

void file_unlock_excl(struct excl_lock *excl)
{
	struct file *file = excl->file;
	struct files *files = file->files;

	list_del(&excl->link);
	if (list_empty(&file->excl_locks))
		list_del(&file->excl_link);
	excl->active = false;
	file->files->ops->wake_waiters(file);
	files->ops->pump(files);
}

/* ---- Attributes ---- */

void file_fix_attr(struct fs *fs, uint64_t ino, struct fs_attr *attr)
{
	struct vnode *vnode = vnode_find(fs, ino);
	struct file *file = vnode ? vnode->file : NULL;
	uint64_t whole, sectors;

	if (!file || !file->loaded)
		return;
	attr->size = file->size;
	/* Room is reserved also for blocks that have a place already: a file
	 * shows no more than its size needs, or than it had. */
	whole = (file->size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_SECTORS;
	sectors = attr->sectors + file->reserved_count * BLOCK_SECTORS;
	if (sectors > whole)
		sectors = attr->sectors > whole ? attr->sectors : whole;
	attr->sectors = sectors;
}

/* ---- Pauses after a failure ---- */

static bool pauses_until(struct files *files, uint64_t until_ns)
{
	if (!until_ns || env_now_ns(files->fs->env) >= until_ns)
		return false;
	files_wake_at(files, until_ns);
	return true;
}

bool file_pauses(const struct file *file)
{
	return pauses_until(file->files, file->pause_ns);
}

bool file_destage_pauses(const struct file *file)
{
	return pauses_until(file->files, file->destage_pause_ns);
}

void files_turn(struct files *files, const void *stream)
{
	files->turns += files->turn_of != stream;
	files->turn_of = stream;
}

void files_wake_at(struct files *files, uint64_t ns)
{
	if (ns < files->wake_ns)
		files->wake_ns = ns;
}

static void pause_set(struct files *files, uint64_t *at_ns, uint64_t pause_ns)
{
	uint64_t until_ns = env_now_ns(files->fs->env) + pause_ns;

	if (!pause_ns)
		return;
	if (until_ns > *at_ns)
		*at_ns = until_ns;
	files_wake_at(files, *at_ns);
}

void file_pause(struct file *file, uint64_t pause_ns)
{
	pause_set(file->files, &file->pause_ns, pause_ns);
}

void file_destage_pause(struct file *file, uint64_t pause_ns)
{
	pause_set(file->files, &file->destage_pause_ns, pause_ns);
}

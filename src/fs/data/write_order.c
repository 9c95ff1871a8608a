/*
 * write_order.c - data before names and sizes.  A file that is replaced without
 * an fsync, by truncating and rewriting it or by renaming another over it,
 * holds its old content or its new one after a power cut, whole.
 *
 *   (none) --truncated to nothing, while open--> CUT
 *   CUT    --last close, with data-------------> FLUSH --written--> (none)
 *   CUT    --last close, without data----------> (none)
 *
 * 1. A rename over an existing name waits for the data of the renamed file.
 * 2. The commit by age waits for files in FLUSH, and a short time for files
 *    that have just been truncated (CUT).
 * 3. A commit that an fsync asks for waits for files in FLUSH.
 * 4. All these waits are bounded: a slow or failing disk delays commits, and
 *    no more.
 *
 * A file larger than one transaction maps (TXN_BLOCKS) is written at once, but
 * nobody waits for it.  Data that the kernel still has is not known here: an
 * fsync of another file between truncation and close commits the truncation.
 */
#include "base/units.h"
#include "fs/data/file.h"
#include "fs/data/write_order.h"
#include "fs/data/file_sync.h"
#include "fs/data/writeback.h"

#include <errno.h>

/* A commit waits this long for the new content of a file that was truncated to
 * nothing: programs write it in less. */
#define CUT_WAIT_NS NS_PER_SECOND
/* An fsync waits this long for such files other than its own. */
#define SYNC_WAIT_NS NS_PER_SECOND

struct order {
	struct sync sync;
	struct fs_txn *txn;	/* the rename that waits; NULL: a file in
				 * FLUSH */
};

/* ---- Rename ---- */

static void order_freed(struct order *order)
{
	struct file *file = order->sync.file;

	abandon_free(order);
	file_put(file);
}

static void rename_may(struct sync *sync, int rc)
{
	struct order *order = sync->owner;
	struct fs_txn *txn = order->txn;

	(void)rc;
	order_freed(order);
	fs_txn_restart(txn);
}

static struct order *order_new(struct file *file,
			       void (*done)(struct sync *sync, int rc))
{
	struct order *order = abandon_alloc(file->files->fs, sizeof(*order));

	if (!order)
		return NULL;
	order->sync.file = file;
	order->sync.owner = order;
	order->sync.done = done;
	file->users++;
	return order;
}

int file_order(struct fs_txn *txn, uint64_t ino)
{
	struct vnode *vnode = vnode_find(txn->fs, ino);
	struct file *file = vnode ? vnode->file : NULL;
	struct order *order;

	if (!file || sync_is_over(file))
		return 0;
	order = order_new(file, rename_may);
	if (!order)
		return -ENOMEM;
	order->txn = txn;
	sync_start(file->files, &order->sync);
	return FS_TXN_WAIT;
}

/* ---- Truncated and rewritten ---- */

static void waits_end(struct files *files)
{
	struct order_wait *wait;

	while ((wait = list_first(&files->order_waits, struct order_wait,
				  link))) {
		list_del(&wait->link);
		wait->go(wait);
	}
}

static void flush_over(struct sync *sync, int rc)
{
	struct file *file = sync->file;
	struct files *files = file->files;

	(void)rc;
	file->order = ORDER_NONE;
	files->order_flushes--;
	order_freed(sync->owner);
	if (!files->order_flushes)
		waits_end(files);
}

void order_cut(struct file *file)
{
	struct files *files = file->files;

	if (file->order != ORDER_NONE || !file->vnode->opens)
		return;
	file->order = ORDER_CUT;
	files->order_cuts++;
	files->order_cut_ns = env_now_ns(files->fs->env);
}

void order_closed(struct file *file)
{
	struct files *files = file->files;
	struct order *order;

	if (file->order != ORDER_CUT)
		return;
	file->order = ORDER_NONE;
	files->order_cuts--;
	if (sync_is_over(file))
		return;
	order = file->dirty_count <= TXN_BLOCKS ?
			order_new(file, flush_over) : NULL;
	if (!order) {
		writeback_flush(file, files->stamp, false, true);
		writeback_pump(files);
		return;
	}
	file->order = ORDER_FLUSH;
	files->order_flushes++;
	sync_start(files, &order->sync);
}

bool order_waits(struct files *files, struct order_wait *wait)
{
	if (!files->order_flushes)
		return false;
	wait->until_ns = env_now_ns(files->fs->env) + SYNC_WAIT_NS;
	list_add(&files->order_waits, &wait->link);
	return true;
}

uint64_t order_run(struct files *files, uint64_t now_ns)
{
	struct order_wait *wait;

	while ((wait = list_first(&files->order_waits, struct order_wait,
				  link))) {
		if (now_ns < wait->until_ns)
			return wait->until_ns;
		list_del(&wait->link);
		wait->go(wait);
	}
	return UINT64_MAX;
}

uint64_t order_commit(void *arg)
{
	const struct files *files = arg;

	if (files->order_flushes)
		return UINT64_MAX;
	return files->order_cuts ? files->order_cut_ns + CUT_WAIT_NS : 0;
}

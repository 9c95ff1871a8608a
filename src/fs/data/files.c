/*
 * files.c - the data of all files: opened, run in the loop of the file system,
 * and closed.
 */
#include "base/units.h"
#include "fs/data/admission.h"
#include "fs/data/file_data.h"
#include "fs/data/bad_sectors.h"
#include "fs/data/cache_chunk.h"
#include "fs/data/destage.h"
#include "fs/data/dirty_block.h"
#include "fs/data/file.h"
#include "fs/data/file_sync.h"
#include "fs/data/flush_walk.h"
#include "fs/data/read_events.h"
#include "fs/data/write_order.h"
#include "fs/data/writeback.h"
#include "fs/data/writeback_policy.h"

#include <errno.h>
#include <stdlib.h>

#include "base/msg.h"
#include "fs/data/failure.h"
#include "fs/data/prealloc.h"
#include "fs/data/prefix.h"
#include "fs/op/abandon_alloc.h"
#include "fs/op/vnode.h"

/* DESTAGE_AGE_NS is ten times as long while destages are written in gaps. */
#define DESTAGE_AGES 10u
/* Ages of dirty and pinned data are checked once a second. */
#define SCAN_NS NS_PER_SECOND
/* Least number of buffers: dirty blocks for one transaction of TXN_BLOCKS (2
 * MiB), and chunks for two of the largest read waits (READ_WAIT_CHUNKS) and
 * some more (3 MiB). */
#define MIN_DIRTY_BLOCKS 512u
#define MIN_CHUNKS 48u

static int files_pools(struct files *files)
{
	struct fs *fs = files->fs;
	size_t blocks = fs->budget.dirty / BLOCK_BYTES;
	size_t chunks = fs->budget.tracks / CHUNK_BYTES;
	size_t i;
	int rc;

	blocks = blocks < MIN_DIRTY_BLOCKS ? MIN_DIRTY_BLOCKS : blocks;
	chunks = chunks < MIN_CHUNKS ? MIN_CHUNKS : chunks;
	rc = pool_new(BLOCK_BYTES, blocks, &files->dirty_pool);
	if (!rc)
		rc = pool_new(CHUNK_BYTES, chunks, &files->chunk_pool);
	if (rc)
		return rc;
	files->block_store = calloc(blocks, sizeof(struct block));
	files->chunk_store = calloc(chunks, sizeof(struct chunk));
	if (!files->block_store || !files->chunk_store)
		return -ENOMEM;
	for (i = blocks; i-- > 0;) {
		files->block_store[i].next = files->block_free;
		files->block_free = &files->block_store[i];
	}
	for (i = 0; i < chunks; i++) {
		files->chunk_store[i].data = pool_get(files->chunk_pool);
		list_add(&files->chunk_free, &files->chunk_store[i].lru);
	}
	return 0;
}

static void files_lists(struct files *files)
{
	unsigned i;

	list_init(&files->chunk_free);
	list_init(&files->lru);
	list_init(&files->paced);
	list_init(&files->promises);
	list_init(&files->chunk_waits);
	list_init(&files->all);
	list_init(&files->dirty_files);
	for (i = 0; i < DIRTY_GROUPS; i++)
		list_init(&files->dirty_groups[i]);
	list_init(&files->flush[0]);
	list_init(&files->flush[1]);
	list_init(&files->pinned_files);
	list_init(&files->excl_files);
	list_init(&files->writers);
	list_init(&files->room_waits);
	list_init(&files->syncs);
	list_init(&files->order_waits);
	list_init(&files->preallocs);
	list_init(&files->preallocs_left);
	list_init(&files->prealloc_waits);
	list_init(&files->log_pins);
	list_init(&files->log_unpins);
	list_init(&files->broken);
	list_init(&files->wb_free[0]);
	list_init(&files->wb_free[1]);
	list_init(&files->data_wbs);
	list_init(&files->destages);
	list_init(&files->gap_queue);
	list_init(&files->suspects);
	rangeset_init(&files->unexamined);
	rangeset_init(&files->stretch.held);
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

static const struct files_ops files_ops = {
	.wake_waiters = file_wake_waiters,
	.pump = writeback_pump,
	.run_writers = writers_run,
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
	files->ops = &files_ops;
	fs->data_ops = &files_data_ops;
	files_lists(files);
	files->prefixes = prefixes_new();
	rc = files->prefixes ? files_pools(files) : -ENOMEM;
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

/* Frees everything, also after a crash in a test, and gives nothing back to
 * tree and space. */
void files_free(struct fs *fs)
{
	struct files *files = fs->files;
	struct file *file;

	if (!files)
		return;
	/* The tree goes on until it is closed. */
	tree_set_destage(fs->tree, NULL, NULL);
	tree_set_order(fs->tree, NULL, NULL);
	files->policy->close(files);
	preallocs_free(files);
	rangeset_fini(&files->stretch.held);
	rangeset_fini(&files->unexamined);
	for_each_read_event(ev, fs, close)
		(*ev)->close(files);
	while ((file = list_first(&files->all, struct file, link))) {
		list_del(&file->link);
		file->vnode->file = NULL;
		file_free(file);
	}
	abandon_free_all(fs);
	if (files->chunk_pool)
		pool_free(files->chunk_pool);
	if (files->dirty_pool)
		pool_free(files->dirty_pool);
	free(files->block_store);
	free(files->chunk_store);
	free(files->writebacks);
	free(files->wb_segment);
	free(files->wb_data);
	free(files->wb_iov);
	prefixes_free(files->prefixes);
	admission_free(files);
	free(files);
	fs->files = NULL;
}

bool files_idle(const struct fs *fs)
{
	return !fs->files->wbs_busy && !fs->files->fetches &&
	       !fs->files->heals && !fs->files->bad_writes;
}

/* Lets exclusive operations go on that waited for the log, if it has become
 * emptier by itself. */
static void excl_locks_retry(struct files *files)
{
	const struct excl_lock *excl;
	struct list *pos;
	struct file *file;

	list_for_each(pos, &files->excl_files) {
		file = list_entry(pos, struct file, excl_link);
		excl = list_first(&file->excl_locks, struct excl_lock, link);
		if (excl->active || !file->pinned_count || file->writebacks ||
		    file_fills_log(file))
			continue;
		file_wake_waiters(file);
		return;		/* the list may have changed by it */
	}
}

static void files_scan(struct files *files, uint64_t now_ns)
{
	uint64_t age;

	flush_old(files);
	age = DESTAGE_AGE_NS *
	      (files->policy->gap_destages(files) ? DESTAGE_AGES : 1);
	if (files->pinned_count && now_ns - files->oldest_pinned_ns >= age) {
		destage_now(files);
		files->oldest_pinned_ns = now_ns;
	}
}

/* After a failure of the file system: ends all waits for write-back, as none
 * begins any more. */
static void files_stop(struct files *files)
{
	if (files->stopped || !tree_failed(files->fs->tree))
		return;
	files->stopped = true;
	bads_run(files, env_now_ns(files->fs->env));
	files->policy->recall_all(files);
	if (files->dirty_count)
		msg_error("%s: %zu bytes are in memory only and can't be "
			  "written", files->fs->disk->name,
			  files->dirty_count * BLOCK_BYTES);
	files_settled(files);
	writers_run(files);
}

/* Recovered data is destaged as soon as the log has been started. */
static void recovered_run(struct files *files)
{
	if (!files->recovered || !log_durable_seq(tree_log(files->fs->tree)))
		return;
	files->recovered = false;
	destage_now(files);
	writeback_pump(files);
}

uint64_t files_run(struct fs *fs, uint64_t now_ns)
{
	struct files *files = fs->files;
	uint64_t next_ns = order_run(files, now_ns);

	chunks_run(files);
	log_pin_run(files, 0);
	recovered_run(files);
	files->policy->run(files, now_ns);
	files_stop(files);
	if (flush_walks_run(files))
		writeback_pump(files);
	preallocs_run(files);
	destage_go_on(files);
	if (files->fs->closing)
		bads_run(files, now_ns);
	if (now_ns >= files->wake_ns) {
		files->wake_ns = UINT64_MAX;
		read_waits_feed(files);
		bads_run(files, now_ns);
		bad_stretch_run(files, now_ns);
		writeback_pump(files);
	}
	if (now_ns >= files->scan_ns) {
		files->scan_ns = now_ns + SCAN_NS;
		files_scan(files, now_ns);
		preallocs_check(files);
		excl_locks_retry(files);
		writeback_pump(files);
	}
	if (!list_empty(&files->broken) || files->destage_more ||
	    files->destage_again ||
	    !list_empty(&files->prealloc_waits))
		return now_ns;
	next_ns = files->wake_ns < next_ns ? files->wake_ns : next_ns;
	if (files->dirty_count || files->pinned_count || files->gap_queued ||
	    !list_empty(&files->log_unpins))
		next_ns = files->scan_ns < next_ns ? files->scan_ns : next_ns;
	return next_ns;
}

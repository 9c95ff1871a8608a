/*
 * data_recovery.c - logged data that had not been destaged when a crash came.
 *
 * Each block is looked up in the tree as it is after replay: where the sum is
 * that of the logged content, this content is the file's, and enters the memory
 * of files as what it was before the crash: a pinned block.  From there
 * ordinary write-back destages it, whatever else happens.  Otherwise newer
 * content has taken its place.  No more blocks are taken from the log at once
 * than the dirty pool has room for.  No other operation is served before all
 * blocks have been looked up, as any operation may need one of them.  This
 * begins when the first root of the mount is durable.
 *
 * On a read-only mount nothing is destaged: the blocks stay in memory, beyond
 * the pool if need be, and reads are served from them.
 */
#include "fs/data/file_data.h"

#include <errno.h>
#include <stdlib.h>

#include "base/msg.h"
#include "fs/data/bmap.h"
#include "fs/data/destage.h"
#include "fs/data/dirty_block.h"
#include "fs/data/file.h"

#define AT_ONCE 256u	/* Blocks that are looked up at the same time. */
/* At most this part of the dirty pool is filled with recovered blocks;
 * write-back needs the rest. */
#define POOL_PART 2u

struct rescue {
	struct recovery *recovery;
	struct list link;		/* in the list of those that are not
					 * over */
	struct shared_lock lock;		/* waits until the file is
						 * loaded */
	const struct tree_data *data;
	struct file *file;
	bool valid;
	bool foreign;			/* the buffer is not of the pool */
	void *buffer;
};

struct recovery {
	struct fs *fs;
	struct list rescues;
	unsigned busy;
	bool over;		/* one of them has ended since this was last
				 * cleared */
	uint64_t kept, foreign;	/* blocks that are content of files: all, and
				 * those not of the pool */
	int rc;
};

static void buffer_free(struct rescue *rescue)
{
	if (rescue->foreign)
		abandon_free(rescue->buffer);
	else
		pool_put(rescue->recovery->fs->files->dirty_pool,
			 rescue->buffer);
}

/* Ends one block. rc: its file is not known, and its record stays in the
 * log. */
static void rescue_over(struct rescue *rescue, int rc)
{
	struct recovery *recovery = rescue->recovery;

	if (rc && !recovery->rc)
		recovery->rc = rc;
	if (rescue->buffer)
		buffer_free(rescue);
	if (!rc && rescue->buffer && !recovery->fs->options.read_only)
		tree_log_unpin(recovery->fs->tree, rescue->data->seq);
	if (rescue->file)
		file_put(rescue->file);
	recovery->busy--;
	recovery->over = true;
	list_del(&rescue->link);
	free(rescue);
}

/* ---- Lookup ---- */

static int rescue_run(struct fs_txn *txn)
{
	struct rescue *rescue = txn->state;
	const struct tree_data *data = rescue->data;
	uint64_t sector = data->block * BLOCK_SECTORS;
	uint64_t end = sector + BLOCK_SECTORS;
	unsigned p = data->block % TRAX_CSUM_WINDOW_BLOCKS / CHUNK_BLOCKS;
	unsigned i = data->block % CHUNK_BLOCKS;
	struct csum_window window;
	struct extent extent;
	int rc;

	rescue->valid = false;
	rc = bmap_window(txn, data->ino,
			data->block / TRAX_CSUM_WINDOW_BLOCKS, &window);
	if (rc)
		return rc;
	if (!(window.mask[p] & 1u << i) ||
	    window.sum[p][i] != (uint32_t)data->sum)
		return 0;
	while (sector < end) {
		rc = bmap_extent(txn, data->ino, sector, &extent);
		if (rc == -ENOENT || (rc == 0 && extent.off > sector))
			return 0;
		if (!rc && txn->fs->options.verify_owners)
			rc = bmap_verify_owner(txn, data->ino, &extent);
		if (rc)
			return rc;
		sector = extent.off + extent.n;
	}
	rescue->valid = true;
	return 0;
}

/* ---- Content of a file ---- */

static int keep_held(struct rescue *rescue)
{
	struct files *files = rescue->recovery->fs->files;
	struct log_pin *pin = abandon_alloc(files->fs, sizeof(*pin));

	if (!pin)
		return -ENOMEM;
	pin->seq = rescue->data->seq;
	list_add(&files->log_pins, &pin->link);
	block_add_held(rescue->file, rescue->data->block, rescue->buffer, pin);
	return 0;
}

static int keep_foreign(struct rescue *rescue)
{
	struct block *block = block_add_foreign(rescue->file,
						rescue->data->block,
						rescue->buffer);

	return block ? 0 : -ENOMEM;
}

static void rescue_keep(struct rescue *rescue)
{
	struct recovery *recovery = rescue->recovery;
	int rc = recovery->fs->options.read_only ? keep_foreign(rescue) :
						   keep_held(rescue);

	if (!rc) {
		rescue->buffer = NULL;
		recovery->kept++;
		recovery->foreign += rescue->foreign;
	}
	rescue_over(rescue, rc);
}

static void rescue_loaded(struct shared_lock *lock)
{
	struct rescue *rescue = container_of(lock, struct rescue, lock);
	int rc = file_lock_shared(rescue->file, lock);

	if (rc < 0)
		rescue_over(rescue, rc);
	else if (!rc)
		rescue_keep(rescue);
}

static void rescue_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct rescue *rescue = txn->state;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (rc || !rescue->valid) {
		rescue_over(rescue, rc);
		return;
	}
	rescue->file = file_get(rescue->recovery->fs, rescue->data->ino);
	rescue->lock.granted = rescue_loaded;
	list_init(&rescue->lock.link);
	if (rescue->file)
		rescue_loaded(&rescue->lock);
	else
		rescue_over(rescue, -ENOMEM);
}

static const struct fs_txn_type rescue_type = {
	.name = "recover data",
	.bounds = { .nodes = 64 },
	.stages = 40,
	.run = rescue_run,
	.end = rescue_end,
};

/* ---- All blocks ---- */

static void *buffer_get(struct recovery *recovery, bool *foreign)
{
	struct files *files = recovery->fs->files;
	void *buffer = pool_get(files->dirty_pool);

	*foreign = !buffer;
	if (!buffer && recovery->fs->options.read_only)
		buffer = abandon_alloc(files->fs, BLOCK_BYTES);
	return buffer;
}

static int rescue_add(void *arg, const struct tree_data *data,
		      const void *bytes)
{
	struct recovery *recovery = arg;
	struct rescue *rescue = calloc(1, sizeof(*rescue));

	if (!rescue)
		return -ENOMEM;
	rescue->buffer = buffer_get(recovery, &rescue->foreign);
	if (!rescue->buffer) {
		free(rescue);
		return -ENOMEM;
	}
	memcpy(rescue->buffer, bytes, BLOCK_BYTES);
	rescue->recovery = recovery;
	rescue->data = data;
	list_add(&recovery->rescues, &rescue->link);
	recovery->busy++;
	return 0;
}

/* Number of blocks that may be taken from the log now; 0: write-back makes room
 * first. */
static size_t recover_room(const struct fs *fs)
{
	const struct pool *pool = fs->files->dirty_pool;
	const size_t kept = pool_count(pool) / POOL_PART;
	const size_t room = pool_available(pool);

	if (fs->options.read_only)
		return AT_ONCE;
	return room <= kept ? 0 : room - kept < AT_ONCE ? room - kept : AT_ONCE;
}

/* Takes n from the log and starts to look them up. */
static int recover_batch(struct recovery *recovery, size_t first, size_t n)
{
	struct list *pos, *tmp;
	int rc = tree_recovered_read(recovery->fs->tree, first, n, rescue_add,
				     recovery);

	list_for_each_safe(pos, tmp, &recovery->rescues) {
		struct rescue *r = list_entry(pos, struct rescue, link);
		int err = rc ? rc : fs_txn_start(recovery->fs, &rescue_type,
						 NULL, r);

		if (err)
			rescue_over(r, err);
	}
	return rc ? rc : recovery->rc;
}

/* Runs one turn of the loop, so that lookups and write-back go on. */
static int recover_turn(struct recovery *recovery)
{
	struct fs *fs = recovery->fs;
	uint64_t next_ns;

	recovery->over = false;
	next_ns = fs->run(fs, 0);
	if (!recovery->over && !fs->disk_gone &&
	    (recovery->busy || !recover_room(fs)))
		fs_sleep(fs, next_ns);
	return fs->disk_gone || tree_failed(fs->tree) ? -EIO : 0;
}

static void recover_forget(struct recovery *recovery)
{
	while (!list_empty(&recovery->rescues))
		rescue_over(list_first(&recovery->rescues, struct rescue, link),
			    -EIO);
}

static void recover_tell(const struct recovery *recovery)
{
	const char *name = recovery->fs->disk->name;

	if (recovery->kept)
		msg_info("%s: %llu logged blocks are %s", name,
			 (unsigned long long)recovery->kept,
			 recovery->fs->options.read_only ?
			 "read from the log" : "being destaged");
	if (recovery->foreign)
		msg_warn("%s: the log holds more than the memory allowed: %llu "
			 "MiB beyond it are used until it is unmounted", name,
			 (unsigned long long)(recovery->foreign *
					      BLOCK_BYTES >> 20) + 1);
}

int files_recover(struct fs *fs)
{
	struct recovery recovery = { .fs = fs };
	const struct tree_data *data;
	const size_t n = tree_recovered_data(fs->tree, &data);
	size_t i = 0, room;
	int rc = 0;

	list_init(&recovery.rescues);
	while (!rc && (i < n || recovery.busy)) {
		room = recovery.busy ? 0 : recover_room(fs);
		room = room < n - i ? room : n - i;
		if (room) {
			rc = recover_batch(&recovery, i, room);
			i += room;
		} else {
			destage_now(fs->files);
			rc = recover_turn(&recovery);
		}
	}
	if (fs->disk_gone)
		recover_forget(&recovery);
	while (recovery.busy && !fs->disk_gone)
		recover_turn(&recovery);
	fs->files->recovered = recovery.kept && !fs->options.read_only;
	recover_tell(&recovery);
	tree_recovered_end(fs->tree);
	return rc ? rc : recovery.rc;
}

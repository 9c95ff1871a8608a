/*
 * replicate.c - makes replicas: read, collected to a track, written, attached.
 *
 *   collect --(track full)--> place --> write --> region --> attach --+
 *      ^                     [txn]  [idle]   [txn]   [txns]           |
 *      +--------------------------------------------------------------+
 *
 * 1. The collected content is the one that the tree says the blocks have,
 *    verified.  A replica is attached by a transaction that finds the
 *    original's checksums to be those of the written content; otherwise it is
 *    not attached, and has no meaning.
 * 2. The region is in the tree before anything points into it.
 * 3. Nothing is attached to a file that is being cut (replica_clear).
 * 4. It holds at most one track of free space that has no owner yet; an
 *    allocation that finds no room makes it stop.
 */
#include "fs/replica/replicate.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/data/cache_chunk.h"
#include "fs/data/dirty_block.h"
#include "fs/data/file.h"
#include "fs/data/file_data.h"
#include "fs/replica/access_trace.h"
#include "fs/replica/copy_limit.h"
#include "fs/replica/replicate_internal.h"
#include "fs/table/replica.h"

/* Most and least blocks of a region: 4 MiB and 16 KiB; a usual track lies
 * between. */
#define MAX_TRACK_BLOCKS 1024u
#define LEAST_TRACK_BLOCKS 4u
#define STEP_BLOCKS 256u	/* least number of blocks of a step */
#define NODE_BLOCKS (TRAX_NODE_BYTES / BLOCK_BYTES)
/* Bytes of log for the items of a region; its lists of up to MAX_TRACK_BLOCKS
 * blocks are the largest part. */
#define REGION_LOG_BYTES 32768u

struct fs *replica_maker_fs(const struct replica_maker *maker)
{
	return maker->replicas->fs;
}

static void replica_maker_free(struct replica_maker *maker)
{
	if (!maker)
		return;
	free(maker->want);
	free(maker->buffer);
	free(maker->entry);
	free(maker);
}

void replica_maker_close(struct fs *fs)
{
	if (fs->replicas)
		replica_maker_free(fs->replicas->maker);
}

bool replica_maker_stop(struct replica_maker *maker)
{
	if (!maker)
		return false;
	maker->stop = true;
	return maker->taken;
}

bool replica_maker_is_paused(const struct replica_maker *maker)
{
	return maker && maker->paused;
}

void replica_maker_resume(struct replica_maker *maker)
{
	maker->paused = false;
	replica_maker_step(maker);
}

void replica_maker_cancel(struct replica_maker *maker)
{
	if (!maker)
		return;
	maker->stop = true;
	if (maker->paused)
		replica_maker_resume(maker);
}

static void replica_maker_give_back(struct replica_maker *maker)
{
	if (maker->taken)
		space_give_back(tree_space(replica_maker_fs(maker)->tree),
				maker->extent.sector, maker->extent.n);
	maker->taken = false;
}

static void replica_maker_end(struct replica_maker *maker)
{
	struct replicas *replicas = maker->replicas;
	void (*done)(void *arg, uint64_t copies) = maker->done;
	void *arg = maker->arg;
	uint64_t copies = maker->copies;

	replica_maker_give_back(maker);
	replicas->maker = NULL;
	replica_maker_free(maker);
	room_pump(replicas);
	if (done)
		done(arg, copies);
}

/* ---- Collect ---- */

/* The content that the tree says a block has; NULL: it is not in memory. */
static const void *tree_block(const struct read_wait *rwait, uint64_t index)
{
	const struct block *block = block_find(rwait->file, index);

	if (block && block->pin)
		return block->pinned_data;
	return chunk_block(rwait->file, index);
}

static bool unit_in_memory(const struct replica_maker *maker)
{
	unsigned i;

	for (i = 0; i < maker->unit.blocks; i++)
		if (!tree_block(&maker->rwait, maker->unit.block + i))
			return false;
	return true;
}

static void unit_keep(struct replica_maker *maker)
{
	struct replica_entry *unit = &maker->unit;
	uint8_t *to = maker->buffer + (size_t)maker->blocks * BLOCK_BYTES;
	const void *data;
	unsigned i;

	for (i = 0; i < unit->blocks; i++) {
		data = tree_block(&maker->rwait, unit->block + i);
		if (!data)
			return;
		memcpy(to + (size_t)i * BLOCK_BYTES, data, BLOCK_BYTES);
	}
	unit->at = maker->blocks;
	maker->entry[maker->entries++] = *unit;
	maker->blocks += unit->blocks;
}

static void unit_end(struct replica_maker *maker)
{
	struct file *file = maker->file;

	read_wait_end(&maker->rwait);
	maker->file = NULL;
	file_put(file);
}

/* Takes the next blocks of one chunk; false: there are none. */
static bool unit_next(struct replica_maker *maker)
{
	struct replica_want *want;
	uint64_t left;

	while (maker->next < maker->wants) {
		want = &maker->want[maker->next];
		if (!want->blocks) {
			maker->next++;
			continue;
		}
		left = CHUNK_BLOCKS - want->block % CHUNK_BLOCKS;
		left = left < want->blocks ? left : want->blocks;
		/* The unit is at most half a track, as the next track may have
		 * less room than this one. */
		left = left < maker->track / 2 ? left : maker->track / 2;
		maker->unit = (struct replica_entry){
			.ino = want->ino, .block = want->block,
			.blocks = (unsigned)left,
		};
		return true;
	}
	return false;
}

static void unit_take(struct replica_maker *maker)
{
	struct replica_want *want = &maker->want[maker->next];

	want->block += maker->unit.blocks;
	want->blocks -= maker->unit.blocks;
}

static bool unit_is_new(const struct replica_maker *maker)
{
	const struct replica_entry *unit = &maker->unit, *e;

	for (e = maker->entry; e < maker->entry + maker->entries; e++)
		if (e->ino == unit->ino &&
		    e->block < unit->block + unit->blocks &&
		    unit->block < e->block + e->blocks)
			return false;
	return true;
}

/* Cuts a unit to the file's end; false: nothing of it is left. */
static bool unit_clip(struct replica_maker *maker)
{
	const struct file *file = maker->file;
	uint64_t end = (file->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	struct replica_entry *unit = &maker->unit;

	if (file->dead || file->has_inline || unit->block >= end) {
		maker->want[maker->next].blocks = 0;
		return false;
	}
	if (unit->blocks > end - unit->block)
		unit->blocks = (unsigned)(end - unit->block);
	return true;
}

/* Reads a unit whose file is loaded. 0: done; -EINPROGRESS: a read is under
 * way. */
static int unit_read(struct replica_maker *maker)
{
	int rc = file_lock_shared(maker->file, &maker->lock);

	if (rc == FS_TXN_WAIT)
		return -EINPROGRESS;
	if (rc)
		maker->want[maker->next].blocks = 0;
	if (rc || !unit_clip(maker))
		return 0;
	maker->rwait = (struct read_wait){
		.file = maker->file, .first = maker->unit.block,
		.n = maker->unit.blocks, .tree = true, .background = true,
		.ready = maker->rwait.ready, .owner = maker,
	};
	list_init(&maker->rwait.link);
	/* Blocks that users at work have pushed out of memory are not read
	 * again for this. */
	if (maker->background && !access_trace_quiet(replica_maker_fs(maker)) &&
	    !unit_in_memory(maker))
		return 0;
	rc = read_wait_start(&maker->rwait);
	if (rc == 0)
		unit_keep(maker);
	return rc == -EINPROGRESS ? rc : 0;
}

static void replica_maker_ready(struct read_wait *rwait, int rc)
{
	struct replica_maker *maker = rwait->owner;

	if (!rc)
		unit_keep(maker);
	unit_end(maker);
	replica_maker_step(maker);
}

static void replica_maker_again(struct shared_lock *lock)
{
	struct replica_maker *maker =
		container_of(lock, struct replica_maker, lock);

	if (unit_read(maker) == -EINPROGRESS)
		return;
	unit_end(maker);
	replica_maker_step(maker);
}

/* While users are at work a buffer is copied now and then, so seldom that they
 * do not notice.  Its blocks are collected before the pause, because later they
 * might have been pushed out of memory. */
static bool replica_maker_pauses(struct replica_maker *maker)
{
	uint64_t now_ns = env_now_ns(replica_maker_fs(maker)->env);

	if (maker->stop || !maker->background || maker->in_step)
		return false;
	if (copies_wait(replica_maker_fs(maker)) ||
	    (!access_trace_quiet(replica_maker_fs(maker)) &&
	     now_ns < maker->replicas->next_ns)) {
		maker->paused = true;
		return true;
	}
	maker->in_step = true;
	maker->step = maker->blocks;
	maker->begun_ns = now_ns;
	return false;
}

uint64_t replica_maker_next_ns(const struct replica_maker *maker)
{
	return maker->replicas->next_ns;
}

/* Collects nodes of the tree; those that do not fit are copied another time. */
static void replica_maker_collect_nodes(struct replica_maker *maker)
{
	const void *node;

	while (!maker->stop && maker->node &&
	       maker->blocks + NODE_BLOCKS <= maker->room) {
		node = maker->node(maker->arg);
		if (!node) {
			maker->node = NULL;
			return;
		}
		memcpy(maker->buffer + (size_t)maker->blocks * BLOCK_BYTES,
		       node, TRAX_NODE_BYTES);
		maker->entry[maker->entries++] = (struct replica_entry){
			.blocks = NODE_BLOCKS, .at = maker->blocks,
		};
		maker->blocks += NODE_BLOCKS;
	}
}

/* Collects blocks. true: the buffer is as full as it gets; false: a read is
 * under way. */
static bool replica_maker_collect(struct replica_maker *maker)
{
	replica_maker_collect_nodes(maker);
	while (!maker->stop && unit_next(maker)) {
		if (maker->blocks + maker->unit.blocks > maker->room)
			return true;
		unit_take(maker);
		if (!unit_is_new(maker))
			continue;
		maker->file =
			file_get(replica_maker_fs(maker), maker->unit.ino);
		if (!maker->file)
			continue;
		list_init(&maker->lock.link);
		maker->rwait.file = maker->file;
		if (unit_read(maker) == -EINPROGRESS)
			return false;
		unit_end(maker);
	}
	return true;
}

static const struct fs_txn_type region_type = {
	.name = "make region",
	.bounds = { .log_bytes = REGION_LOG_BYTES },
	.paths = 8,
	.changes = 14,
	.stages = 8,
	.run = replica_region_run,
	.end = replica_region_end,
};

/* ---- Place and write ---- */

static void replica_maker_written(struct disk_request *req)
{
	struct replica_maker *maker = req->owner;

	access_trace_access(replica_maker_fs(maker), ACCESS_TRACE_MADE,
			    maker->extent.sector, maker->extent.n);
	if (req->result)
		maker->stop = true;
	if (maker->stop ||
	    fs_txn_start(replica_maker_fs(maker), &region_type, NULL, maker)) {
		maker->stop = true;
		replica_maker_step(maker);
	}
}

/* Writes the buffer.  With class QUEUE_IDLE it would never be written where the
 * disk is never idle. */
static void replica_maker_write(struct replica_maker *maker)
{
	struct fs *fs = replica_maker_fs(maker);

	maker->iov = (struct iovec){
		maker->buffer, (size_t)maker->extent.n * SECTOR_BYTES,
	};
	maker->req = (struct queue_request){
		.disk = {
			.op = DISK_WRITE, .sector = maker->extent.sector,
			.sectors = (uint32_t)maker->extent.n,
			.iov = &maker->iov, .iov_n = 1,
			.done = replica_maker_written, .owner = maker,
		},
		.class = maker->background && access_trace_quiet(fs) ?
				 QUEUE_IDLE : QUEUE_WRITE_BACK,
		.origin = FAULT_COPY,
	};
	queue_submit(fs->queue, &maker->req);
}

/* Finds the entries that fit into the place found. */
static void replica_maker_fit(struct replica_maker *maker)
{
	uint64_t blocks = maker->extent.n / BLOCK_SECTORS, used = 0;

	for (maker->fit = 0; maker->fit < maker->entries; maker->fit++) {
		if (used + maker->entry[maker->fit].blocks > blocks)
			break;
		used += maker->entry[maker->fit].blocks;
	}
	if (used < blocks) {
		space_give_back(tree_space(replica_maker_fs(maker)->tree),
				maker->extent.sector + used * BLOCK_SECTORS,
				maker->extent.n - used * BLOCK_SECTORS);
		maker->extent.n = used * BLOCK_SECTORS;
		maker->taken = used > 0;
	}
}

static int place_run(struct fs_txn *txn)
{
	struct replica_maker *maker = txn->state;
	uint64_t blocks = maker->blocks < maker->track ? maker->blocks :
							 maker->track;
	uint32_t group;
	int rc;

	if (regions_full(maker->replicas->regions))
		return -ENOSPC;
	rc = alloc_copies(txn->fs->alloc, maker->near, blocks * BLOCK_SECTORS,
			  access_trace_closed(txn->fs), &maker->extent, &group);
	if (rc == -EAGAIN)
		return fs_txn_wait_group(txn, group);
	if (rc)
		return rc;
	maker->taken = true;
	return 0;
}

static void place_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct replica_maker *maker = txn->state;
	struct fs *fs = txn->fs;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (!rc)
		replica_maker_fit(maker);
	if (rc || maker->stop || !maker->fit) {
		maker->stop = true;
		replica_maker_step(maker);
		/* Later regions find room in the table. */
		if (rc == -ENOSPC && regions_full(fs->replicas->regions))
			replica_reclaim_least(fs);
		return;
	}
	do {
		maker->number = env_random(fs->env);
	} while (!maker->number);
	replica_maker_write(maker);
}

static const struct fs_txn_type place_type = {
	.name = "place copies",
	.bounds = { .nodes = 1 },
	.run = place_run,
	.end = place_end,
};

/* ---- Steps ---- */

/* A region is done: entries that did not fit into it begin the next. */
static void replica_maker_rest(struct replica_maker *maker)
{
	unsigned i, n = maker->entries - maker->fit;
	uint64_t now_ns = env_now_ns(replica_maker_fs(maker)->env);
	unsigned from = n ? maker->entry[maker->fit].at : maker->blocks;

	for (i = 0; i < n; i++) {
		maker->entry[i] = maker->entry[maker->fit + i];
		maker->entry[i].at -= from;
	}
	memmove(maker->buffer, maker->buffer + (size_t)from * BLOCK_BYTES,
		(size_t)(maker->blocks - from) * BLOCK_BYTES);
	maker->step -= from < maker->step ? from : maker->step;
	if (!maker->step) {
		maker->in_step = false;
		maker->replicas->next_ns = now_ns + BUSY_SHARE *
			(now_ns - maker->begun_ns + STEP_NS);
	}
	maker->near = maker->extent.sector + maker->extent.n;
	maker->blocks -= from;
	maker->entries = n;
	maker->fit = maker->attached = 0;
}

void replica_maker_step(struct replica_maker *maker)
{
	struct fs *fs = replica_maker_fs(maker);

	if (!maker->stop && maker->fit && maker->attached < maker->fit) {
		if (replica_maker_attach(maker) == 0)
			return;
		maker->stop = true;
	}
	if (!maker->stop) {
		if (maker->fit)
			replica_maker_rest(maker);
		if (!replica_maker_collect(maker) ||
		    (maker->entries && replica_maker_pauses(maker)))
			return;
		if (!maker->stop && maker->entries &&
		    !fs_txn_start(fs, &place_type, NULL, maker))
			return;
	}
	replica_maker_end(maker);
}

/* Allocates the buffer: for a track near there, or for several small ones. */
static int replica_maker_alloc(struct replica_maker *maker,
			       const struct replica_want *want, size_t n)
{
	struct fs *fs = replica_maker_fs(maker);

	maker->track = alloc_track_sectors(fs->alloc, maker->near) /
		       BLOCK_SECTORS;
	if (maker->track > MAX_TRACK_BLOCKS)
		maker->track = MAX_TRACK_BLOCKS;
	if (maker->track < LEAST_TRACK_BLOCKS)
		maker->track = LEAST_TRACK_BLOCKS;
	maker->room = maker->track < STEP_BLOCKS ? STEP_BLOCKS : maker->track;
	maker->want = malloc((n + 1) * sizeof(*want));
	maker->entry = calloc(maker->room, sizeof(*maker->entry));
	maker->buffer = aligned_alloc(BLOCK_BYTES,
				      (size_t)maker->room * BLOCK_BYTES);
	if (!maker->want || !maker->entry || !maker->buffer)
		return -ENOMEM;
	if (n)
		memcpy(maker->want, want, n * sizeof(*want));
	maker->wants = n;
	return 0;
}

static int replica_maker_new(struct fs *fs, const struct replica_want *want,
			     size_t n, uint64_t near,
			     struct replica_maker **out)
{
	struct replicas *replicas = fs->replicas;
	struct replica_maker *maker;
	int rc;

	if (fs_read_only(fs))
		return -EROFS;
	/* While the file system is being closed nothing would resume it. */
	if (!replicas || replicas->maker || fs->closing)
		return -EBUSY;
	maker = calloc(1, sizeof(*maker));
	if (!maker)
		return -ENOMEM;
	maker->replicas = replicas;
	maker->near = near;
	maker->lock.granted = replica_maker_again;
	maker->rwait.ready = replica_maker_ready;
	list_init(&maker->rwait.link);
	rc = replica_maker_alloc(maker, want, n);
	if (rc) {
		replica_maker_free(maker);
		return rc;
	}
	*out = maker;
	return 0;
}

static void replica_maker_start(struct replica_maker *maker, bool background,
			void (*done)(void *arg, uint64_t copies), void *arg)
{
	maker->background = background;
	maker->done = done;
	maker->arg = arg;
	maker->replicas->maker = maker;
	replica_maker_step(maker);
}

int replica_make(struct fs *fs, const struct replica_want *want, size_t n,
		 uint64_t near, bool background,
		 void (*done)(void *arg, uint64_t copies), void *arg)
{
	struct replica_maker *maker;
	int rc = n ? replica_maker_new(fs, want, n, near, &maker) : -EINVAL;

	if (!rc)
		replica_maker_start(maker, background, done, arg);
	return rc;
}

int replica_make_nodes(struct fs *fs, const void *(*next)(void *arg),
		       void (*done)(void *arg, uint64_t copies), void *arg,
		       uint64_t near)
{
	struct replica_maker *maker;
	int rc = replica_maker_new(fs, NULL, 0, near, &maker);

	if (rc)
		return rc;
	maker->nodes = true;
	maker->node = next;
	replica_maker_start(maker, true, done, arg);
	return 0;
}

/*
 * fs.c - open and close, the loop, the table of operations.
 *
 * Opening: queue -> tree (superblock, root, log replay) -> drive -> alloc
 * -> tree started -> files (recovered data in memory) -> orphans resumed.
 * Closing goes back the same way, after everything has been written.
 *
 * One turn of the loop: completions, then the tree, then the data; what these
 * have submitted goes to the disk when the queue is polled again.
 */
#include "base/units.h"
#include "fs/fs_model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "fs/data/file.h"
#include "fs/name/names.h"
#include "base/msg.h"
#include "fs/op/errors.h"
#include "fs/data/failure.h"
#include "fs/data/heal.h"
#include "fs/data/unwritten.h"
#include "fs/data/writeback_policy.h"
#include "fs/drive/profile_save.h"
#include "fs/replica/node_replicas.h"
#include "fs/drive/relocate_txn.h"
#include "fs/replica/replicate.h"
#include "fs/replica/replica_ops.h"
#include "fs/replica/replica_readahead.h"
#include "fs/drive/super_edit.h"
#include "fs/drive/fs_trim.h"
#include "fs/place/gap_readahead.h"
#include "fs/place/gap_writeback.h"
#include "fs/place/late_place.h"
#include "fs/place/small_readahead.h"
#include "fs/replica/access_trace.h"
#include "sched/freeblock/freeblock.h"

/* Without the mount option commit=, changes wait at most 5 seconds in memory
 * before the log is written, as in ext4. */
#define COMMIT_SECONDS 5u
/* What the file system asks of the disk is its own work when no operation of a
 * user has been under way for this long: what an operation leaves behind, as
 * read-ahead, begins sooner. */
#define USERS_GONE_NS (100 * NS_PER_MS)
/* Below LOW_PERCENT of free room a group is closed to new replicas and loses
 * those of least worth; below CRITICAL_PERCENT it loses whole regions until
 * LOW_PERCENT is free; at HIGH_PERCENT it is open again.  Round numbers: with
 * larger ones fewer replicas fit on a full disk, with smaller ones new data
 * finds fewer whole tracks. */
#define HIGH_PERCENT 15u
#define LOW_PERCENT 10u
#define CRITICAL_PERCENT 5u

/* ---- Operations of a line or two ---- */

static void fs_op_forget(struct fs *fs, struct fs_op *op)
{
	struct vnode *vnode = vnode_find(fs, op->ino);

	if (vnode) {
		vnode->refs -= op->size < vnode->refs ? op->size : vnode->refs;
		if (!vnode->refs && vnode->file)
			file_unused(vnode->file);
		vnode = vnode_find(fs, op->ino);
	}
	if (vnode)
		vnode_drop_unused(fs, vnode);
	fs_answer(fs, op, 0);
}

static void fs_close_handle(struct fs *fs, uint64_t ino)
{
	struct vnode *vnode = vnode_find(fs, ino);

	if (!vnode || !vnode->opens)
		return;
	vnode->opens--;
	if (!vnode->opens)
		file_closed(vnode);
	vnode = vnode_find(fs, ino);	/* the file's data may have been what
					 * kept the inode in memory */
	if (vnode)
		vnode_drop_unused(fs, vnode);
}

uint64_t fs_new_handle(struct fs *fs)
{
	return ++fs->handles;
}

static void fs_op_release(struct fs *fs, struct fs_op *op)
{
	struct vnode *vnode = vnode_find(fs, op->ino);

	if (vnode && vnode->file)
		loss_closed(vnode->file, op->handle);
	fs_close_handle(fs, op->ino);
	fs_answer(fs, op, 0);
}

static void fs_op_read(struct fs *fs, struct fs_op *op)
{
	if (!(op->flags & O_NOATIME))
		inode_touch(fs, op->ino);
	file_read(fs, op);
}

/* After a change the next read looks at the access time again (relatime). */
static void fs_changes(struct fs *fs, uint64_t ino)
{
	struct vnode *vnode = vnode_find(fs, ino);

	if (vnode)
		vnode->atime_done = false;
}

static void fs_op_write(struct fs *fs, struct fs_op *op)
{
	fs_changes(fs, op->ino);
	file_write(fs, op);
}

static void fs_op_fallocate(struct fs *fs, struct fs_op *op)
{
	fs_changes(fs, op->ino);
	inode_op_change(fs, op);
}

static void fs_op_copy_range(struct fs *fs, struct fs_op *op)
{
	fs_changes(fs, op->ino2);
	inode_op_change(fs, op);
}

static void fs_op_fsync(struct fs *fs, struct fs_op *op)
{
	if (fs->options.read_only)
		fs_answer(fs, op, 0);
	else
		file_fsync(fs, op);
}

static void fs_op_syncfs(struct fs *fs, struct fs_op *op)
{
	if (fs->options.read_only)
		fs_answer(fs, op, 0);
	else
		file_syncfs(fs, op);
}

static uint64_t fs_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* statfs counts one sector (512 bytes) of free room for each inode that can
 * still be made.  An inode takes about half a kilobyte of a tree node, so this
 * is an upper bound, which sinks as data takes the room. */
#define INODE_SECTORS 1u

uint64_t fs_room(const struct fs *fs)
{
	if (fs->files->cutting)
		return UINT64_MAX;
	return space_room(tree_space(fs->tree)) * SECTOR_BYTES;
}

uint64_t fs_room_accepted(const struct fs *fs)
{
	if (fs->files->cutting)
		return UINT64_MAX;
	return space_room_accepted(tree_space(fs->tree)) * SECTOR_BYTES;
}

void fs_expect(struct fs *fs, uint64_t bytes)
{
	space_expect(tree_space(fs->tree), bytes / SECTOR_BYTES);
}

static void fs_op_statfs(struct fs *fs, struct fs_op *op)
{
	struct fs_statfs *out = &op->statfs;
	struct space_counts count;
	uint64_t avail;

	space_count(tree_space(fs->tree), &count);
	avail = fs_less(count.free, count.reserved + count.own);
	out->blocks = count.total / TRAX_BLOCK_SECTORS;
	out->free = fs_less(count.free, count.reserved) / TRAX_BLOCK_SECTORS;
	out->avail = avail / TRAX_BLOCK_SECTORS;
	out->files_free = avail / INODE_SECTORS;
	if (out->files_free > tree_ino_seqs_left(fs->tree))
		out->files_free = tree_ino_seqs_left(fs->tree);
	out->files = tree_inodes(fs->tree) + out->files_free;
	fs_answer(fs, op, 0);
}

/* ---- The table ---- */

static void fs_shut_down(struct fs *fs, struct fs_op *op)
{
	tree_fail(fs->tree, "somebody has shut it down");
	fs->shut_down = true;
	fs_answer(fs, op, 0);
}

struct shutdown {
	struct waiter waiter;
	struct fs *fs;
	struct fs_op *op;
};

static void fs_shutdown_committed(struct waiter *waiter, int rc)
{
	struct shutdown *s = waiter->owner;
	struct fs *fs = s->fs;
	struct fs_op *op = s->op;

	(void)rc;	/* the file system has failed by itself then */
	abandon_free(s);
	fs_shut_down(fs, op);
}

/* First makes durable what was answered, as far as it is in the tree. */
static void fs_op_shutdown(struct fs *fs, struct fs_op *op)
{
	struct shutdown *s = abandon_alloc(fs, sizeof(*s));

	if (!s) {
		fs_shut_down(fs, op);
		return;
	}
	*s = (struct shutdown){
		.waiter = { .done = fs_shutdown_committed, .owner = s },
		.fs = fs, .op = op,
	};
	list_init(&s->waiter.link);
	tree_commit(fs->tree, UINT64_MAX, &s->waiter);
}

static const struct fs_row {
	void (*start)(struct fs *fs, struct fs_op *op);
	bool changes;		/* whether a file system that is read-only or
				 * has failed refuses the operation */
} fs_rows[FS_OP_TYPES] = {
	[FS_LOOKUP] = { names_op_lookup, false },
	[FS_FORGET] = { fs_op_forget, false },
	[FS_GETATTR] = { inode_op_getattr, false },
	[FS_SETATTR] = { inode_op_setattr, true },
	[FS_READLINK] = { names_op_readlink, false },
	[FS_MKNOD] = { names_op_create, true },
	[FS_MKDIR] = { names_op_create, true },
	[FS_SYMLINK] = { names_op_create, true },
	[FS_TMPFILE] = { names_op_create, true },
	[FS_LINK] = { names_op_link, true },
	[FS_UNLINK] = { names_op_unlink, true },
	[FS_RMDIR] = { names_op_unlink, true },
	[FS_RENAME] = { rename_op, true },
	[FS_OPEN] = { inode_op_open, false },
	[FS_RELEASE] = { fs_op_release, false },
	[FS_READ] = { fs_op_read, false },
	[FS_WRITE] = { fs_op_write, true },
	[FS_FSYNC] = { fs_op_fsync, false },
	[FS_SYNCFS] = { fs_op_syncfs, false },
	[FS_READDIR] = { dir_op_readdir, false },
	[FS_STATFS] = { fs_op_statfs, false },
	[FS_SETXATTR] = { xattr_op_set, true },
	[FS_GETXATTR] = { xattr_op_get, false },
	[FS_LISTXATTR] = { xattr_op_list, false },
	[FS_REMOVEXATTR] = { xattr_op_remove, true },
	[FS_FALLOCATE] = { fs_op_fallocate, true },
	[FS_COPY_RANGE] = { fs_op_copy_range, true },
	[FS_GETFLAGS] = { inode_op_getflags, false },
	[FS_SETFLAGS] = { inode_op_setflags, true },
	[FS_EXTENTS] = { file_extents, false },
	[FS_ERRORS] = { errors_op_list, false },
	[FS_COPIES] = { copies_op_list, false },
	[FS_HEAT] = { copies_op_heat, false },
	[FS_COPIES_MAKE] = { copies_op_make, true },
	[FS_COPIES_DROP] = { copies_op_drop, true },
	[FS_COPIES_SET] = { copies_op_set, false },
	[FS_SEEK] = { file_seek, false },
	[FS_TRIM] = { trim_op, true },
	[FS_SET_LABEL] = { super_edit_op, true },
	[FS_ERRORS_CLEAR] = { errors_op_clear, true },
	[FS_SET_UUID] = { super_edit_op, true },
	[FS_SHUTDOWN] = { fs_op_shutdown, false },
};

void fs_submit(struct fs *fs, struct fs_op *op)
{
	const struct fs_row *row;

	queue_set_own(fs->queue, false);
	op_begin(fs, op);
	if ((unsigned)op->type >= FS_OP_TYPES) {
		fs_answer(fs, op, -ENOSYS);
		return;
	}
	row = &fs_rows[op->type];
	if (fs->shut_down && (row->changes || op->type == FS_READ))
		fs_answer(fs, op, -EIO);
	else if (row->changes && fs_read_only(fs))
		fs_answer(fs, op, -EROFS);
	else
		row->start(fs, op);
}

void fs_each_inode(const struct fs *fs,
		   void (*each)(void *arg, uint64_t ino), void *arg)
{
	size_t pos = 0;
	uint64_t ino;

	while (hashmap_next(fs->vnodes, &pos, &ino))
		each(arg, ino);
}

/* ---- The loop ---- */

static uint64_t fs_turn(struct fs *fs, uint64_t now_ns)
{
	/* Comes first: transactions that this begins run in tree_run. */
	uint64_t watch_ns = access_trace_run(fs, now_ns);
	uint64_t tree_ns = tree_run(fs->tree, now_ns);
	uint64_t files_ns = files_run(fs, now_ns);
	uint64_t keep_ns = profile_save_run(fs->profile_save, now_ns);
	uint64_t trim_ns = trim_run(fs, now_ns);
	uint64_t edit_ns = super_edit_run(fs, now_ns);
	uint64_t message_ns = unwritten_run(fs, now_ns);
	uint64_t queue_ns = queue_next_ns(fs->queue);
	uint64_t next_ns = tree_ns < files_ns ? tree_ns : files_ns;

	next_ns = watch_ns < next_ns ? watch_ns : next_ns;
	next_ns = keep_ns < next_ns ? keep_ns : next_ns;
	next_ns = trim_ns < next_ns ? trim_ns : next_ns;
	next_ns = edit_ns < next_ns ? edit_ns : next_ns;
	next_ns = message_ns < next_ns ? message_ns : next_ns;
	/* Files and answered operations may have begun transactions. */
	if (tree_due(fs->tree))
		return now_ns;
	return queue_ns < next_ns ? queue_ns : next_ns;
}

uint64_t fs_run(struct fs *fs, int timeout_ms)
{
	struct loop_turn *turn = &fs->env->turn;
	uint64_t answers = fs->answers, now_ns, next_ns;
	int done;

	if (!turn->running)
		turn_next(turn);
	/* An idle queue has no completions.  What the turn submits, and what
	 * the queue then does by itself, is reported by the second poll. */
	done = queue_idle(fs->queue) ? 0 : queue_poll(fs->queue, 0);
	now_ns = env_now_ns(fs->env);
	queue_set_own(fs->queue, list_empty(&fs->ops) &&
				 now_ns - fs->answer_ns >= USERS_GONE_NS);
	next_ns = fs_turn(fs, now_ns);
	if (done != 0 || answers != fs->answers || turn->cut)
		timeout_ms = 0;
	timeout_ms = op_timeout_ms(timeout_ms, now_ns, next_ns);
	done = queue_poll(fs->queue, timeout_ms);
	if (done > 0 || trim_due(fs))
		next_ns = fs_turn(fs, env_now_ns(fs->env));
	fs->disk_gone = done < 0;
	return turn_next(turn) ? now_ns : next_ns;
}

int fs_event_fd(struct fs *fs)
{
	return queue_event_fd(fs->queue);
}

size_t fs_request_bytes(const struct fs *fs)
{
	return fs->budget.flight;
}

bool fs_idle(const struct fs *fs)
{
	return list_empty(&fs->ops) && !fs->txn_count && files_idle(fs) &&
	       tree_idle(fs->tree) && queue_idle(fs->queue);
}

const struct geom *fs_geom(const struct fs *fs)
{
	return fs->geom;
}

const struct super *fs_super(const struct fs *fs)
{
	return tree_super(fs->tree);
}

void fs_set_access_times(struct fs *fs, bool noatime, bool strictatime,
			 bool nodiratime)
{
	fs->options.noatime = noatime;
	fs->options.strictatime = strictatime;
	fs->options.nodiratime = nodiratime;
}

void fs_set_budget(struct fs *fs, unsigned ppm)
{
	queue_set_budget(fs->queue, ppm);
}

void fs_set_quiet(struct fs *fs, uint64_t quiet_ns, uint64_t sleep_ns)
{
	if (quiet_ns)
		freeblock_set_quiet(fs->queue, quiet_ns);
	freeblock_set_sleep(fs->queue, sleep_ns);
}

/* ---- Node tracks ---- */

static void fs_node_group_loaded(struct waiter *waiter, int rc)
{
	struct fs *fs = waiter->owner;

	(void)rc;	/* the tree asks again */
	fs->node_waiting = false;
}

static int fs_pick_nodes(void *arg, traxaddr *addr, uint32_t *sectors)
{
	struct fs *fs = arg;
	uint64_t sector;
	uint32_t group;
	int rc = alloc_node_track(fs->alloc, fs->node_near, fs->node_loads,
				  &sector, sectors, &group);

	if (rc == -ENOSPC && replica_more_room(fs, 0))
		return -EAGAIN;
	if (rc == 0) {
		fs->node_near = sector;
		*addr = addr_make(0, sector);
	}
	if (rc != -EAGAIN)
		fs->node_loads = 0;
	if (rc == -EAGAIN && !fs->node_waiting) {
		fs->node_waiting = true;
		fs->node_loads++;
		fs->node_waiter.done = fs_node_group_loaded;
		fs->node_waiter.owner = fs;
		list_init(&fs->node_waiter.link);
		tree_load_group(fs->tree, group, &fs->node_waiter);
	}
	return rc;
}

/* ---- Open ---- */

/* The parts that take part in reads, in the order in which they are called.
 * The first whose buffer has the data supplies it. */
static const struct read_events *const fs_read_events[] = {
	&gap_readahead_events, &small_readahead_events, &access_trace_events,
	&replica_ra_events, &heal_events, NULL,
};

static const struct replica_table_ops fs_replica_table_ops = {
	.dropped = replica_ra_forget,
	.stop = replica_maker_stop,
};

static void fs_written(struct fs *fs, uint64_t sector, uint64_t n)
{
	access_trace_access(fs, ACCESS_TRACE_WRITE, sector, n);
}

static const struct writeback_policy fs_writeback_policy = {
	.choose_place = late_place_choose,
	.place_over = late_place_over,
	.written = fs_written,
	.gap_may = gap_writeback_may,
	.gap_destages = gap_writeback_destages,
	.gap_blocks = gap_writeback_most,
	.gap_queue = gap_writeback_add,
	.recall_data = gap_writeback_recall_data,
	.recall_file = gap_writeback_recall_file,
	.recall_all = gap_writeback_recall_all,
	.recall_destages = gap_writeback_recall_destages,
	.touched = gap_writeback_touched,
	.run = gap_writeback_run,
	.close = gap_writeback_close,
};

static int fs_new(struct env *env, struct disk *disk,
		  const struct fs_options *options, struct fs **out)
{
	struct fs *fs = calloc(1, sizeof(*fs));
	int rc;

	if (!fs)
		return -ENOMEM;
	fs->env = env;
	fs->disk = disk;
	fs->options = *options;
	fs->options.read_only |= disk->limits.read_only;
	if (!options->high_percent && !options->low_percent) {
		fs->options.high_percent = HIGH_PERCENT;
		fs->options.low_percent = LOW_PERCENT;
		fs->options.critical_percent = CRITICAL_PERCENT;
	}
	fs->name_mask = UINT64_MAX;
	fs->run = fs_run;
	fs->read_events = fs_read_events;
	fs->writeback_policy = &fs_writeback_policy;
	list_init(&fs->allocated);
	list_init(&fs->ops);
	list_init(&fs->rename_lock_waits);
	list_init(&fs->resume);
	list_init(&fs->all_txns);
	rc = pool_budget_make(options->memory_bytes, &fs->budget);
	if (!rc) {
		fs->vnodes = hashmap_new();
		rc = fs->vnodes ? 0 : -ENOMEM;
	}
	if (rc) {
		free(fs);
		return rc;
	}
	*out = fs;
	return 0;
}

static int fs_open_tree(struct fs *fs)
{
	unsigned seconds = fs->options.commit_seconds;
	struct tree_options options = {
		.read_only = fs->options.read_only,
		.accept_loss = fs->options.accept_loss,
		.no_replay = fs->options.no_replay,
		/* Memory of other pools that are still unused while the log is
		 * replayed. */
		.recover_bytes = fs->budget.replicas + fs->budget.flight / 2,
		.node_pool_bytes = fs->budget.nodes,
		.commit_ns = (seconds ? seconds : COMMIT_SECONDS) *
			     NS_PER_SECOND,
	};
	struct queue_options queue_options = { 0 };
	int rc = queue_open(fs->env, fs->disk, &queue_options, &fs->queue);

	if (rc)
		return rc;
	fs->head = fs->options.head;
	queue_set_head(fs->queue, fs->head);
	return tree_open(fs->env, fs->queue, &options, &fs->tree);
}

/* Turns the mount read-only for reasons that only the content of the disk
 * shows. */
static void fs_check_writable(struct fs *fs)
{
	const struct super *super = tree_super(fs->tree);
	const char *why = NULL;

	if (fs->options.read_only)
		return;
	if (tree_recovered(fs->tree)->damaged && !fs->options.accept_loss)
		why = "what was acknowledged last is lost; chkfs.traxfs -y, or "
		      "the mount option accept_loss, goes on without it";
	else if (super->ro_compat & ~TRAX_RO_COMPAT_KNOWN)
		why = "it has features that this version may only read";
	if (!why)
		return;
	msg_warn("%s: mounted read-only: %s", fs->disk->name, why);
	fs->options.read_only = true;
}

/* Free sets of groups in memory take at most an eighth of the memory for
 * requests in flight, as few requests are so large that they need all of it. */
#define FREE_SETS_SHARE 8u

static int fs_open_rest(struct fs *fs)
{
	uint32_t physical = tree_super(fs->tree)->physical_bytes;
	int rc = fs_open_profile(fs);

	if (!rc) {
		fs->geom = fs->profile->geom;
		rc = fs_open_head(fs);
	}
	fs->options.past_reads_n = 0;	/* belongs to the caller, who frees it
					 * when fs_open returns */
	if (!rc)
		rc = alloc_new(tree_space(fs->tree), fs->geom,
			       physical / SECTOR_BYTES, &fs->alloc);
	if (!rc)
		rc = files_new(fs);
	if (rc)
		return rc;
	alloc_set_turn(fs->alloc, &fs->env->turn);
	space_set_budget(tree_space(fs->tree), fs->budget.flight /
			 FREE_SETS_SHARE / SPACE_RUN_BYTES);
	tree_set_node_place(fs->tree, fs_pick_nodes, fs);
	return 0;
}

static void fs_free(struct fs *fs)
{
	turn_stop(&fs->env->turn);
	vnodes_free(fs);
	vnode_forget_resume(fs);
	fs_txn_free_all(fs);
	access_trace_free(fs);
	node_replicas_free(fs);
	profile_save_free(fs->profile_save);
	replica_maker_close(fs);
	replicas_free(fs);
	replica_ra_free(fs);
	errors_free(fs);
	alloc_free(fs->alloc);
	queue_close(fs->queue);
	head_close(fs->own_head);
	profile_free(fs->profile);
	free(fs);
}

/* Damage does not stop a mount.  But where operations that a crash interrupted,
 * or replicas that may be dropped, are not known, nothing may be changed
 * (`stop`): the mount is read-only then. */
static int fs_do_without(struct fs *fs, int rc, const char *what, bool stop)
{
	if ((rc != -EIO && rc != -EUCLEAN && rc != -EBADMSG) || fs->disk_gone)
		return rc;
	msg_warn("%s: %s cannot be read; chkfs.traxfs repairs it",
		 fs->disk->name, what);
	if (stop && !fs->options.read_only)
		tree_fail(fs->tree, "damage was found at the mount");
	return 0;
}

static int fs_begin(struct fs *fs)
{
	int rc = 0;

	/* After a clean unmount the first root is written before the mount is
	 * answered; after a crash, when there is much to write, in the
	 * background. */
	if (!fs->options.read_only)
		rc = tree_recovered(fs->tree)->was_clean ?
			tree_start(fs->tree) : tree_start_begin(fs->tree);
	if (!rc)
		rc = fs_do_without(fs, files_recover(fs),
				   "some of what the log holds", true);
	if (!fs->options.read_only) {
		if (!rc)
			rc = fs_do_without(fs, relocation_resume(fs),
					   "what moves", true);
		if (!rc)
			rc = fs_do_without(fs, vnode_resume_orphans(fs),
					   "what was being deleted", true);
	}
	if (!rc)
		rc = profile_save_open(fs, &fs->profile_save);
	if (!rc)
		rc = fs_do_without(fs, replicas_open(fs, &fs_replica_table_ops),
				   "the table of copies", true);
	if (!rc)
		rc = replica_ra_new(fs);
	if (!rc)
		rc = fs_do_without(fs, access_trace_open(fs),
				   "what was learned", false);
	return rc ? rc : node_replicas_new(fs);
}

/* Requests that the disk has are waited for: they write to memory that is freed
 * here. */
void fs_abandon(struct fs *fs)
{
	if (fs->queue)
		queue_drain(fs->queue);
	if (fs->files)
		files_free(fs);
	if (fs->tree)
		tree_abandon(fs->tree);
	fs_free(fs);
}

int fs_open(struct env *env, struct disk *disk,
	    const struct fs_options *options, struct fs **out)
{
	struct fs *fs;
	int rc = fs_new(env, disk, options, &fs);

	if (rc)
		return rc;
	rc = fs_open_tree(fs);
	if (!rc) {
		fs_check_writable(fs);
		rc = fs_open_rest(fs);
	}
	if (!rc)
		rc = fs_begin(fs);
	if (rc) {
		fs_abandon(fs);
		return rc;
	}
	*out = fs;
	return 0;
}

/* ---- Close ---- */

struct close_wait {
	struct waiter waiter;
	bool over;
	int rc;
};

static void fs_close_synced(struct waiter *waiter, int rc)
{
	struct close_wait *wait = waiter->owner;

	wait->over = true;
	wait->rc = rc;
}

static bool fs_works(const struct fs *fs)
{
	return fs->orphans_pending || fs->txn_count || !files_idle(fs) ||
	       !profile_save_idle(fs->profile_save) ||
	       !replicas_idle(fs->replicas) || !replica_ra_idle(fs) ||
	       !node_replicas_idle(fs);
}

/* After a failure of the file system destages are not waited for, as none
 * begins any more. */
static int fs_write_all(struct fs *fs, struct close_wait *wait)
{
	uint64_t next_ns;

	wait->waiter.done = fs_close_synced;
	wait->waiter.owner = wait;
	list_init(&wait->waiter.link);
	fs->closing = true;
	if (fs->replicas)
		replica_maker_cancel(fs->replicas->maker);
	vnode_drop_all(fs);
	files_sync(fs, &wait->waiter);
	while (!wait->over && !fs->disk_gone && !tree_failed(fs->tree)) {
		next_ns = fs_run(fs, 0);
		if (!wait->over && !fs->disk_gone)
			fs_sleep(fs, next_ns);
	}
	return wait->over ? wait->rc : -EIO;
}

int fs_close(struct fs *fs)
{
	struct close_wait wait = { .over = false };
	uint64_t next_ns;
	int rc = 0, rc2;

	unwritten_wait(fs->files);
	access_trace_leave(fs);
	if (!fs->options.read_only)
		rc = fs_write_all(fs, &wait);
	if (!fs->disk_gone && !fs_read_only(fs)) {
		access_trace_save(fs);
		profile_save_close(fs->profile_save);
		if (!fs->disk_gone)
			profile_save_run(fs->profile_save, env_now_ns(fs->env));
	}
	while (!fs->disk_gone && fs_works(fs)) {
		next_ns = fs_run(fs, 0);
		if (!fs->disk_gone && fs_works(fs))
			fs_sleep(fs, next_ns);
	}
	if (fs->disk_gone) {
		fs_abandon(fs);
		return -EIO;
	}
	/* After a failure requests may still be under way, and report to the
	 * files when they end. */
	turn_stop(&fs->env->turn);
	queue_drain(fs->queue);
	files_free(fs);
	rc2 = tree_close(fs->tree);
	fs->tree = NULL;
	fs_free(fs);
	return rc ? rc : rc2;
}

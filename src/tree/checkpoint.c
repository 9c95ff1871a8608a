/*
 * checkpoint.c - a generation becomes a root on disk.
 *
 *   idle --cut--> writing --all nodes written, log durable--> flushing
 *     ^                                                          |
 *     +-- all released, waiters told -- releasing <-- written -- root
 *
 * The cut: the log's open record is closed, the slot map and group table are
 * saved as the root will say them, dirty nodes become frozen, and the next
 * generation begins.  It is made between transactions, never inside one.
 *
 * Nodes have their addresses since they were first changed.  A node's checksum
 * must be known before its parent's (sealing).  They go out by level, then by
 * address; then their mirrors do, which were given slots one behind the other,
 * by address alone.  Where a frozen parent is only a shadow its children are
 * found by address; a live parent, perhaps already of the next generation, is
 * told by the child.
 *
 * A copy that can't be written takes another slot once all others are through;
 * then the nodes above are sealed and written again.  The old slot is pending
 * like any that was freed; whoever gets it and fails takes another in turn.
 *
 * The root is written when every node is on the medium and the log is durable
 * up to the cut: what it holds of data that is not destaged must be readable
 * when the tree says its checksum.
 *
 * Invariants: 1. nothing of a generation is freed before its root is durable.
 * 2. at most one generation is frozen.  3. no frozen buffer is written before
 * all frozen ones below it are sealed.
 */
#include "base/units.h"
#include "tree/ckpt_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"

/* A checkpoint that was due to the fill of the log and could trim nothing,
 * because records are pinned, is repeated after 1 s at the earliest. */
#define FILL_PAUSE_NS NS_PER_SECOND
/* Charged to the turn for a buffer that is frozen, and for one that is clean
 * again, in nanoseconds. */
#define FREEZE_NS 50u
/* Below this fill of the log a checkpoint waits until pinned data has been
 * destaged, because it can trim the log then. */
#define FILL_WAIT_PERCENT 60

int ckpt_init(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;

	list_init(&ckpt->idle);
	list_init(&ckpt->now);
	list_init(&ckpt->next_list);
	for (unsigned i = 0; i < CKPT_WRITES; i++) {
		ckpt->write[i].tree = tree;
		list_add(&ckpt->idle, &ckpt->write[i].link);
	}
	ckpt->buffer = calloc(tree->buffers->count, sizeof(*ckpt->buffer));
	ckpt->moved = calloc(tree->buffers->count, sizeof(*ckpt->moved));
	if (!ckpt->buffer || !ckpt->moved)
		return -ENOMEM;
	return sort_init(&ckpt->order, tree->buffers->count);
}

void ckpt_fini(struct tree *tree)
{
	free(tree->ckpt.buffer);
	sort_fini(&tree->ckpt.order);
	free(tree->ckpt.moved);
	free(tree->ckpt.area[0]);
	free(tree->ckpt.area[1]);
	free(tree->ckpt.payload);
}

/* ---- Cut ---- */

void ckpt_add(struct checkpoint *ckpt, struct buffer *buffer)
{
	buffer->sealed = buffer->written = buffer->mirrored = false;
	buffer->tries = 0;
	buffer->frozen_as = (uint32_t)ckpt->n;
	ckpt->buffer[ckpt->n++] = buffer;
}

void ckpt_freeze(struct tree *tree, struct buffer *buffer)
{
	buffer_set_state(tree->buffers, buffer, BUFFER_FROZEN);
	ckpt_add(&tree->ckpt, buffer);
	turn_charge(&tree->env->turn, TURN_CHECKPOINT, FREEZE_NS);
}

static void freeze(struct tree *tree)
{
	struct list *pos, *next;

	tree->ckpt.n = 0;
	list_for_each_safe(pos, next, &tree->buffers->dirty)
		ckpt_freeze(tree, list_entry(pos, struct buffer, link));
}

void ckpt_begin_writing(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;

	ckpt_order(tree, false);
	ckpt->mirrors = false;
	ckpt->phase = CKPT_WRITING;
}

static void log_is_durable(struct waiter *waiter, int rc)
{
	struct tree *tree = waiter->owner;

	tree->ckpt.log_done = true;
	if (rc)
		tree_fail(tree, "the log can't be written");
}

/* The log's position at the cut; before the log is started: the end that
 * recovery found. */
static void cut_log(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct root *root = &ckpt->root;
	uint64_t held;

	if (!tree->log_started) {
		root->cut_seq = tree->last_seq;
		root->cut_chain = tree->last_chain;
		root->tail_seq = replay_tail(tree) <= root->cut_seq ?
				 replay_tail(tree) : root->cut_seq + 1;
		ckpt->log_done = true;
		return;
	}
	log_cut(tree->log, tree->gen + 1, &root->cut_seq, &root->cut_chain);
	held = log_oldest_pinned(tree->log);
	root->tail_seq = held <= root->cut_seq ? held : root->cut_seq + 1;
	ckpt->log_done = false;
	ckpt->log_waiter = (struct waiter){
		.seq = root->cut_seq, .done = log_is_durable, .owner = tree,
	};
	log_commit(tree->log, &ckpt->log_waiter);
}

/* Gets buffers for both copies of the root area; they never become smaller. */
static int area_reserve(struct tree *tree, size_t bytes)
{
	struct checkpoint *ckpt = &tree->ckpt;

	if (bytes > (size_t)tree->super.area_sectors * SECTOR_BYTES)
		return -EFBIG;
	if (bytes <= ckpt->area_bytes)
		return 0;
	ckpt->area_bytes = 0;
	for (unsigned i = 0; i < 2; i++) {
		free(ckpt->area[i]);
		ckpt->area[i] = aligned_alloc(TRAX_BLOCK_BYTES, bytes);
		if (!ckpt->area[i])
			return -ENOMEM;
	}
	ckpt->area_bytes = bytes;
	return 0;
}

static int cut(struct tree *tree, uint64_t now_ns)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct root *root = &ckpt->root;
	int rc;

	ckpt_gather(tree);
	ckpt_line_up(tree);
	free(ckpt->payload);
	ckpt->payload = NULL;
	*root = (struct root){
		.gen = tree->gen,
		.epoch = tree->epoch,
		.level = tree->root->level,
		.next_ino_seq = tree->next_ino_seq,
		.next_dirgroup = tree->next_dirgroup,
		.inodes = tree->inodes,
		.wall_ns = env_wall_ns(tree->env),
	};
	rc = area_reserve(tree,
			  format_area_bytes(space_cut_bytes(tree->space)));
	/* This is the last step that can fail, as a generation can end only
	 * once. */
	if (!rc)
		rc = space_cut(tree->space, &ckpt->payload,
			       &root->slotmap_bytes, &root->group_bytes);
	if (rc)
		return rc;
	cut_log(tree);
	root->clean = tree->closing && root->tail_seq > root->cut_seq;
	root->tree = tree->root->ptr;
	tree->growth.map_bytes = root->slotmap_bytes + root->group_bytes;
	ckpt->gen = tree->gen++;
	ckpt->moved_n = 0;
	ckpt->failures = ckpt->root_failures = ckpt->cut_failures = 0;
	ckpt->pause_ns = ckpt->retry_ns = 0;
	ckpt->started_ns = now_ns;
	freeze(tree);
	tree->pending_frozen = tree->pending;
	tree->pending = 0;
	tree->gen_changed = false;
	ckpt->wanted = false;
	ckpt->destage_seq = 0;
	while (!list_empty(&ckpt->next_list)) {
		struct list *l = ckpt->next_list.next;

		list_del(l);
		list_add(&ckpt->now, l);
	}
	ckpt_begin_writing(tree);
	return 0;
}

/* ---- Root ---- */

/* Runs of free sectors released at a time, and the nanoseconds charged for
 * each. */
#define RELEASE_RUNS 32u
#define RELEASE_RUN_NS 3000u

/* False: nothing is left. */
static bool release_some(struct tree *tree)
{
	turn_charge(&tree->env->turn, TURN_RELEASE,
		    RELEASE_RUNS * RELEASE_RUN_NS);
	return space_release_some(tree->space, RELEASE_RUNS);
}

static void finish(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct list *pos, *next;

	list_for_each_safe(pos, next, &tree->buffers->frozen) {
		struct buffer *f = list_entry(pos, struct buffer, link);

		f->sealed = f->written = f->mirrored = false;
		buffer_set_state(tree->buffers, f, BUFFER_CLEAN);
		if (!f->live)
			buffer_drop(tree->buffers, f);
		turn_charge(&tree->env->turn, TURN_CHECKPOINT, FREEZE_NS);
	}
	tree->durable = ckpt->root;
	tree->stats.checkpoints++;
	space_durable(tree->space, ckpt->gen);
	/* Where they are few nobody waits a turn for slots. */
	release_some(tree);
	if (tree->log_started)
		log_trim(tree->log, ckpt->root.cut_seq);
	ckpt->helped = log_fill_percent(tree->log) < CKPT_LOG_PERCENT;
	ckpt->phase = CKPT_RELEASING;
	txn_feed_starved(tree);
}

/* Releases slots and sectors in steps, as a generation may have freed tens of
 * thousands of slots, and millions of runs.  Waiters for the checkpoint wait
 * until their room is free. */
static void run_releasing(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct loop_turn *turn = &tree->env->turn;

	while (release_some(tree))
		if (turn_is_full(turn))
			return;
	tree->pending_frozen = 0;
	tree->growth.full = false;
	ckpt->phase = CKPT_IDLE;
	txn_feed_starved(tree);
	tree_wake(&ckpt->now, 0);
}

/* Ends the checkpoint, with nothing in flight, because the tree has failed. */
static void give_up(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;

	ckpt->phase = CKPT_IDLE;
	ckpt->wanted = false;
	tree_wake(&ckpt->now, -EIO);
	tree_wake(&ckpt->next_list, -EIO);
}

/* No copy of the root could be written: has both written again after a
 * pause. */
static void root_failed(struct tree *tree, const struct disk_request *req)
{
	struct checkpoint *ckpt = &tree->ckpt;
	const enum fault_class class = fault_class(req->op, req->result);
	uint64_t pause_ns;

	if (fault_next(FAULT_ROOT, class, ++ckpt->root_failures, &pause_ns) ==
	    FAULT_RETRY) {
		ckpt->retry_ns = env_now_ns(tree->env) + pause_ns;
		return;
	}
	tree_fail(tree, "no root can be written");
	give_up(tree);
}

/* There is no memory for a root, and nothing has changed yet.  Returns the time
 * of the next try; UINT64_MAX: never. */
static uint64_t cut_failed(struct tree *tree, int rc, uint64_t now_ns)
{
	struct checkpoint *ckpt = &tree->ckpt;
	uint64_t pause_ns;

	if (rc == -ENOMEM &&
	    fault_next(FAULT_ROOT, FAULT_MEMORY, ++ckpt->cut_failures,
		       &pause_ns) == FAULT_RETRY) {
		ckpt->retry_ns = now_ns + pause_ns;
		return ckpt->retry_ns;
	}
	tree_fail(tree, "no room for a root");
	give_up(tree);
	return UINT64_MAX;
}

/* One good copy is enough: the next root is written to the other area. */
static void root_done(struct disk_request *req)
{
	struct tree *tree = req->owner;
	struct checkpoint *ckpt = &tree->ckpt;

	if (req->result)
		msg_error("root area at sector %" PRIu64 ": write error (%s)",
			  req->sector, strerror(-req->result));
	else
		ckpt->roots_good++;
	if (--ckpt->roots_left)
		return;
	if (ckpt->roots_good)
		finish(tree);	/* the loop continues it */
	else
		root_failed(tree, req);
}

static void write_root(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct root *root = &ckpt->root;
	const size_t payload = root->slotmap_bytes + root->group_bytes;
	const size_t bytes = format_area_bytes(payload);
	const uint64_t *place = tree->super.area_sector[root->gen & 1];

	root->payload_csum = csum(ckpt->payload, payload);
	ckpt->phase = CKPT_ROOT;
	ckpt->roots_left = 2;
	ckpt->roots_good = 0;
	for (unsigned i = 0; i < 2; i++) {
		format_area(&tree->super, root, ckpt->payload, place[i],
			    ckpt->area[i]);
		ckpt->root_iov[i] = (struct iovec){ ckpt->area[i], bytes };
		ckpt->root_req[i] = (struct queue_request){
			.disk = {
				.op = DISK_WRITE,
				.fua = true,
				.sector = place[i],
				.sectors = (uint32_t)(bytes / SECTOR_BYTES),
				.iov = &ckpt->root_iov[i],
				.iov_n = 1,
				.done = root_done,
				.owner = tree,
			},
			.class = QUEUE_COMMIT,
		};
		queue_submit(tree->queue, &ckpt->root_req[i]);
	}
}

static void flush_done(struct disk_request *req)
{
	struct tree *tree = req->owner;

	if (!req->result) {
		write_root(tree);
		return;
	}
	tree_fail(tree, "flush failed");
	give_up(tree);
}

/* ---- Going on ---- */

static void run_writing(struct tree *tree, uint64_t now_ns)
{
	struct checkpoint *ckpt = &tree->ckpt;

	if (now_ns < ckpt->retry_ns && !tree->failed)
		return;
	ckpt_pump(tree);
	if (ckpt->writes || (!ckpt_all_submitted(ckpt) && !tree->failed))
		return;
	if (ckpt->failures && !tree->failed) {
		ckpt_write_again(tree, now_ns);
		return;
	}
	if (tree->failed) {
		if (ckpt->log_done)
			give_up(tree);
		return;
	}
	if (!ckpt->log_done)
		return;
	ckpt->phase = CKPT_FLUSHING;
	ckpt->flush_req.disk.done = flush_done;
	ckpt->flush_req.disk.owner = tree;
	queue_flush(tree->queue, &ckpt->flush_req);
}

bool ckpt_would_help(const struct tree *tree)
{
	return tree->pending || tree->pending_frozen;
}

/* Does the checkpoint wait, though the log is full enough for it?  It does
 * while pinned data is being destaged, as after that it would trim more. */
static bool waits_for_destage(struct tree *tree, unsigned fill)
{
	struct checkpoint *ckpt = &tree->ckpt;

	if (!ckpt->destage_seq)
		ckpt->destage_seq = log_durable_seq(tree->log);
	return fill < FILL_WAIT_PERCENT && tree->destage &&
	       log_oldest_pinned(tree->log) <= ckpt->destage_seq;
}

/* Is it time for a checkpoint? *next_ns is when it will be. */
static bool is_due(struct tree *tree, uint64_t now_ns, uint64_t *next_ns)
{
	struct checkpoint *ckpt = &tree->ckpt;
	const unsigned fill = log_fill_percent(tree->log);
	uint64_t due_ns;

	if (ckpt->wanted || !list_empty(&ckpt->next_list))
		return true;
	if (!tree->gen_changed)
		return false;
	if (tree->buffers->n_dirty > tree_dirty_most(tree))
		ckpt->pressed = true;
	if (fill >= CKPT_LOG_PERCENT && !waits_for_destage(tree, fill)) {
		due_ns = ckpt->helped ? 0 : ckpt->started_ns + FILL_PAUSE_NS;
		if (now_ns >= due_ns)
			return true;
		*next_ns = due_ns;
	}
	due_ns = tree->changed_ns + tree->options.checkpoint_ns;
	if (due_ns > log_checkpoint_ns(tree->log))
		due_ns = log_checkpoint_ns(tree->log);
	if (now_ns >= due_ns)
		return true;
	if (due_ns < *next_ns)
		*next_ns = due_ns;
	return false;
}

/* Would a checkpoint make the log shorter, because pinned data was destaged
 * since the last one? */
static bool would_trim(const struct tree *tree)
{
	return tree->log_started &&
	       tree->durable.tail_seq <= tree->durable.cut_seq &&
	       log_oldest_pinned(tree->log) > tree->durable.tail_seq;
}

/* Is the checkpoint that was asked for needless, as nothing has changed since
 * the last root, and leaves need not be brought together? */
static bool is_needless(const struct tree *tree)
{
	return !tree->ckpt.gather && !tree->gen_changed && !would_trim(tree) &&
	       !tree->pending && !tree->buffers->n_dirty &&
	       tree->closing == tree->durable.clean &&
	       tree->durable.epoch == tree->epoch;
}

/* Time at which the checkpoint goes on by itself: while it releases, or when
 * failed writes are repeated; UINT64_MAX: it waits for a write. */
static uint64_t ckpt_retry_ns(const struct checkpoint *ckpt, uint64_t now_ns)
{
	const bool waits = !ckpt->writes && ckpt->log_done &&
			   (ckpt->phase == CKPT_WRITING ||
			    (ckpt->phase == CKPT_ROOT && !ckpt->roots_left));

	if (ckpt->phase == CKPT_RELEASING)
		return now_ns;
	if (!waits)
		return UINT64_MAX;
	return ckpt->retry_ns > now_ns ? ckpt->retry_ns : now_ns;
}

uint64_t ckpt_run(struct tree *tree, uint64_t now_ns)
{
	struct checkpoint *ckpt = &tree->ckpt;
	uint64_t next_ns = UINT64_MAX;
	int rc;

	if (!tree->started)
		return next_ns;
	if (ckpt->phase == CKPT_WRITING)
		run_writing(tree, now_ns);
	else if (ckpt->phase == CKPT_ROOT && !ckpt->roots_left &&
		 now_ns >= ckpt->retry_ns)
		write_root(tree);
	else if (ckpt->phase == CKPT_RELEASING)
		run_releasing(tree);
	else if (ckpt->phase == CKPT_SPILLING)
		ckpt_spill_run(tree);
	if (ckpt->phase != CKPT_IDLE)
		return ckpt_retry_ns(ckpt, now_ns);
	if (tree->failed) {
		give_up(tree);
		return next_ns;
	}
	/* No cut is made inside a transaction that has changed something. */
	if (tree->changing)
		return next_ns;
	if (!is_due(tree, now_ns, &next_ns)) {
		if (!ckpt->pressed || ckpt_spill_begin(tree))
			return next_ns;
	}
	ckpt->pressed = false;
	if (is_needless(tree)) {
		ckpt->wanted = false;
		tree_wake(&ckpt->next_list, 0);
		return next_ns;
	}
	if (now_ns < ckpt->retry_ns)
		return ckpt->retry_ns;
	rc = cut(tree, now_ns);
	if (rc)
		return cut_failed(tree, rc, now_ns);
	run_writing(tree, now_ns);
	return ckpt_retry_ns(ckpt, now_ns);
}

void tree_checkpoint(struct tree *tree, struct waiter *waiter)
{
	if (tree->failed || !tree->started)
		list_add(&tree->doomed, &waiter->link);
	else
		list_add(&tree->ckpt.next_list, &waiter->link);
}

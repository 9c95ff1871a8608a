/*
 * tree.c - the loop that drives the rest, and what users ask of a tree.
 */
#include "tree/tree.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/msg.h"
#include "base/units.h"
#include "tree/tree_internal.h"

/* When only NUMBERS_FEW inode numbers are left (an eighth: at 1,000 creates a
 * second they last for 4 years), a message says so at each mount and after each
 * NUMBERS_STEP further ones. */
#define NUMBERS_FEW (TRAX_INO_SEQS / 8)
#define NUMBERS_STEP (NUMBERS_FEW / 128)

/* ---- The loop ---- */

static void commit_done(struct waiter *waiter, int rc)
{
	struct tree *tree = waiter->owner;

	tree->committing = false;
	if (rc)
		tree_fail(tree, "the log can't be written");
}

/* The longest time that order() may delay a commit (tree_set_order). */
#define ORDER_MOST_NS (2 * NS_PER_SECOND)

static uint64_t ordered_ns(const struct tree *tree, uint64_t due_ns)
{
	uint64_t until_ns = tree->order ? tree->order(tree->order_arg) : 0;
	uint64_t most_ns = due_ns + ORDER_MOST_NS;

	return until_ns < most_ns ? until_ns : most_ns;
}

/* Commits changes that have become older than commit_ns. */
static uint64_t run_commit(struct tree *tree, uint64_t now_ns)
{
	uint64_t due_ns;

	if (!tree->log_started || tree->committing || tree->failed ||
	    !log_has_pending(tree->log))
		return UINT64_MAX;
	due_ns = log_pending_since_ns(tree->log) + tree->options.commit_ns;
	if (now_ns >= due_ns)
		due_ns = ordered_ns(tree, due_ns);
	if (now_ns < due_ns)
		return due_ns;
	tree->committing = true;
	tree->commit_waiter = (struct waiter){
		.seq = UINT64_MAX, .done = commit_done, .owner = tree,
	};
	log_commit(tree->log, &tree->commit_waiter);
	return UINT64_MAX;
}

/* Pinned data keeps log tracks in use: has it destaged before they are
 * needed. */
static void run_destage(struct tree *tree)
{
	const uint64_t durable = log_durable_seq(tree->log);

	if (!tree->destage || durable <= tree->destage_seq ||
	    log_oldest_pinned(tree->log) > durable ||
	    log_fill_percent(tree->log) <= 30)
		return;
	tree->destage_seq = durable;
	tree->destage(tree->destage_arg, durable);
}

/*
 * An urgent transaction that finds no room in a log that is alone waits until
 * logged data is in its place.  That may need a new place, which is such a
 * transaction, too: then nothing is freed any more, and the file system fails
 * rather than waiting for ever.  The log keeps what it has for the next mount.
 *
 * A write is tried for 35 s at most (disk/fault.h).  A checkpoint frees room at
 * its end, and may have more nodes to write than a slow drive takes in 60 s.
 * Looks are counted, not the time between the first and the last, as the
 * process may have been stopped.
 */
#define STUCK_LOOKS 60u
#define STUCK_LOOK_NS NS_PER_SECOND

/* A number that grows with all that leads to more room. */
static uint64_t log_progress(const struct tree *tree)
{
	return log_freed(tree->log) + tree->stats.node_writes;
}

static uint64_t run_log_stuck(struct tree *tree, uint64_t now_ns)
{
	struct log_stuck *stuck = &tree->log_stuck;

	if (!stuck->met || tree->failed) {
		stuck->looks = 0;
		return UINT64_MAX;
	}
	if (!stuck->looks || stuck->progress != log_progress(tree))
		stuck->looks = 0;
	else if (now_ns < stuck->look_ns)
		return stuck->look_ns;
	if (stuck->looks++ == STUCK_LOOKS) {
		tree_fail(tree, "the log is full of data that finds no place");
		return now_ns;
	}
	stuck->progress = log_progress(tree);
	stuck->look_ns = now_ns + STUCK_LOOK_NS;
	return stuck->look_ns;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t tree_run(struct tree *tree, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	tree_wake(&tree->doomed, -EIO);
	tree_wake(&tree->granted, 0);
	if (!tree->log_started)
		start_go_on(tree);
	if (tree->log_started) {
		next_ns = log_run(tree->log, now_ns);
		if (log_failed(tree->log))
			tree_fail(tree, "the log can't be written");
		run_destage(tree);
		next_ns = least(next_ns, growth_run(tree, now_ns));
	}
	if (txn_run_all(tree))
		next_ns = now_ns;
	next_ns = least(next_ns, run_log_stuck(tree, now_ns));
	if (tree->growth.wanted && !tree->growth.txn && growth_can_help(tree))
		next_ns = least(next_ns, tree->growth.retry_ns);
	next_ns = least(next_ns, run_commit(tree, now_ns));
	next_ns = least(next_ns, ckpt_run(tree, now_ns));
	return least(next_ns, leave_run(tree, now_ns));
}

bool tree_due(const struct tree *tree)
{
	return !list_empty(&tree->doomed) || !list_empty(&tree->granted) ||
	       !list_empty(&tree->ready) || tree->begun ||
	       log_due(tree->log) ||
	       (tree->start_rooted && !tree->log_started && !tree->failed);
}

bool tree_idle(const struct tree *tree)
{
	return tree->ckpt.phase == CKPT_IDLE && !tree->ckpt.wanted &&
	       list_empty(&tree->waiting) && list_empty(&tree->ready) &&
	       list_empty(&tree->starved) && list_empty(&tree->open) &&
	       list_empty(&tree->loads) && list_empty(&tree->early) &&
	       !tree->committing &&
	       !tree->growth.txn && !tree->leaving.txn;
}

int tree_poll(struct tree *tree, uint64_t next_ns)
{
	const uint64_t now_ns = env_now_ns(tree->env);
	int64_t timeout_ns = -1;
	int rc;

	if (next_ns <= now_ns)
		timeout_ns = 0;
	else if (next_ns - now_ns < INT64_MAX)
		timeout_ns = (int64_t)(next_ns - now_ns);
	rc = queue_poll_ns(tree->queue, timeout_ns);
	return rc < 0 ? rc : 0;
}

int tree_wait(struct tree *tree, const bool *done)
{
	int rc = 0;

	while (!rc && !*done) {
		const uint64_t next_ns =
			tree_run(tree, env_now_ns(tree->env));

		if (!*done)
			rc = tree_poll(tree, next_ns);
	}
	return rc;
}

/* ---- Accessors ---- */

const struct tree_recovery *tree_recovered(const struct tree *tree)
{
	return &tree->recovery;
}

const struct super *tree_super(const struct tree *tree)
{
	return &tree->super;
}

struct space *tree_space(struct tree *tree)
{
	return tree->space;
}

struct log *tree_log(struct tree *tree)
{
	return tree->log;
}

const struct root *tree_durable_root(const struct tree *tree)
{
	return &tree->durable;
}

bool tree_failed(const struct tree *tree)
{
	return tree->failed;
}

void tree_warn_numbers(const struct tree *tree)
{
	const uint64_t left = TRAX_INO_SEQS - tree->next_ino_seq;

	if (left <= NUMBERS_FEW)
		msg_warn("%" PRIu64 " of %llu inode numbers are left; they are "
			 "not used twice: copy the files to a new file system "
			 "in time", left, TRAX_INO_SEQS);
}

uint64_t tree_new_ino_seq(struct tree *tree)
{
	if (tree->next_ino_seq >= TRAX_INO_SEQS)
		return 0;
	if (!(tree->next_ino_seq % NUMBERS_STEP))
		tree_warn_numbers(tree);
	return tree->next_ino_seq++;
}

uint64_t tree_ino_seqs_left(const struct tree *tree)
{
	return TRAX_INO_SEQS - tree->next_ino_seq;
}

uint64_t tree_new_dirgroup(struct tree *tree)
{
	return tree->next_dirgroup++;
}

uint64_t tree_inodes(const struct tree *tree)
{
	return tree->inodes;
}

void tree_commit(struct tree *tree, uint64_t seq, struct waiter *waiter)
{
	waiter->seq = seq;
	if (tree->failed || !tree->started)
		list_add(&tree->doomed, &waiter->link);
	else if (!tree->log_started)
		list_add(&tree->early, &waiter->link);
	else
		log_commit(tree->log, waiter);
}

void tree_set_order(struct tree *tree, uint64_t (*order)(void *arg), void *arg)
{
	tree->order = order;
	tree->order_arg = arg;
}

void tree_set_destage(struct tree *tree,
		      void (*destage)(void *arg, uint64_t seq), void *arg)
{
	tree->destage = destage;
	tree->destage_arg = arg;
}

void tree_log_unpin(struct tree *tree, uint64_t seq)
{
	log_unpin(tree->log, seq);
}

void tree_get_stats(const struct tree *tree, struct tree_stats *out)
{
	*out = tree->stats;
	out->nodes_cached = tree->buffers->count - tree->buffers->n_free;
	out->nodes_dirty = tree->buffers->n_dirty;
	out->levels = tree->root->level + 1u;
}

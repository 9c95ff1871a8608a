/*
 * ckpt_spill.c - writes leaves without a checkpoint, so that their buffers can
 * be used for others.
 *
 * When too many nodes are dirty, a checkpoint would write all of them, also
 * those that will soon be changed again: when files are made in a hundred
 * directories by turns, each checkpoint would write the same leaves again.  So
 * only those that were not changed for longest are written: mostly they are
 * full.  They go one behind the other, in the order of their keys, to slots on
 * a track that was the emptiest, and their mirrors to another one: two sweeps,
 * however far apart they were.  No root knows these slots; a crash leaves
 * nothing of them, and the log has their content.  Their checksums are in their
 * parents, which are dirty and stay in memory until the checkpoint.
 *
 * While they are written they are frozen.  A leaf that is changed meanwhile
 * goes on in another slot, as at a checkpoint; slots that are given up
 * meanwhile are pending, because a write to them may be under way.
 */
#include <errno.h>
#include <stdlib.h>

#include "tree/ckpt_internal.h"

/* One part in eight of the dirty nodes is written, never those changed last: of
 * more, many would soon be changed again.  If there are fewer leaves than
 * SPILL_LEAST a checkpoint is made instead. */
#define SPILL_PART 8u
#define SPILL_LEAST 16u
/* Most leaves that one spill writes, so that it takes no long turn. */
#define SPILL_MOST 512u

static bool may_spill(const struct buffer *buffer)
{
	return !buffer->level && buffer->live && buffer->parent;
}

static int by_key(const void *a, const void *b)
{
	const struct buffer *x = *(struct buffer *const *)a;
	const struct buffer *y = *(struct buffer *const *)b;

	return key_cmp(node_low(x->node), node_low(y->node));
}

void ckpt_take_next(struct tree *tree, struct buffer *leaf)
{
	const unsigned i = apply_index(leaf);
	const struct node_ptr old = leaf->ptr;
	struct node_ptr ptr = old;

	if (!space_slots_reserve(tree->space, 2))
		return;
	ptr.addr = space_slot_take_next(tree->space);
	if (!ptr.addr) {
		space_slots_release(tree->space, 2);
		return;
	}
	ptr.addr2 = space_slot_take_mirror(tree->space, ptr.addr);
	buffer_set_ptr(tree->buffers, leaf, &ptr);
	node_set_place(leaf->node, ptr.addr, ptr.addr2, ptr.gen);
	node_child_set(leaf->parent->node, i, &ptr);
	apply_free_slots(tree, &old);
}

bool ckpt_spill_begin(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	const size_t part = tree->buffers->n_dirty / SPILL_PART;
	const size_t least = part > SPILL_LEAST ? part : SPILL_LEAST;
	const size_t most = least < SPILL_MOST ? least : SPILL_MOST;
	struct list *pos;
	size_t n = 0;

	ckpt->n = 0;
	list_for_each(pos, &tree->buffers->dirty) {
		struct buffer *f = list_entry(pos, struct buffer, link);

		if (n == most)
			break;
		if (may_spill(f))
			ckpt->buffer[n++] = f;
	}
	if (!tree->log_started || n < SPILL_LEAST)
		return false;
	free(ckpt->payload);	/* payload of the last root */
	ckpt->payload = NULL;
	qsort(ckpt->buffer, n, sizeof(*ckpt->buffer), by_key);
	for (size_t i = 0; i < n; i++)
		ckpt_take_next(tree, ckpt->buffer[i]);
	turn_charge(&tree->env->turn, TURN_CHECKPOINT, n * CKPT_TAKE_NS);
	for (size_t i = 0; i < n; i++)
		ckpt_freeze(tree, ckpt->buffer[i]);
	tree->stats.spills++;
	ckpt->pressed = false;
	ckpt->failures = 0;
	ckpt_begin_writing(tree);
	ckpt->phase = CKPT_SPILLING;
	ckpt_spill_run(tree);
	return true;
}

static void spill_over(struct tree *tree)
{
	struct list *pos, *next;

	list_for_each_safe(pos, next, &tree->buffers->frozen) {
		struct buffer *f = list_entry(pos, struct buffer, link);
		const bool again = f->live && (f->bad || tree->failed);

		f->sealed = f->written = f->mirrored = f->bad = false;
		buffer_set_state(tree->buffers, f, again ? BUFFER_DIRTY :
							   BUFFER_CLEAN);
		if (!f->live)
			buffer_drop(tree->buffers, f);
		/* A checkpoint pauses, and finds other places. */
		tree->ckpt.wanted |= again;
	}
	tree->ckpt.phase = CKPT_IDLE;
	txn_feed_starved(tree);
}

void ckpt_spill_run(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;

	ckpt_pump(tree);
	if (!ckpt->writes && (ckpt_all_submitted(ckpt) || tree->failed))
		spill_over(tree);
}

/* ---- Recovery ---- */

/* Waits until all nodes of the order and their mirrors are written. */
static int spill_write(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	int rc = 0;

	while (rc >= 0) {
		const uint64_t now_ns = env_now_ns(tree->env);

		if (now_ns < ckpt->retry_ns && !tree->failed) {
			rc = queue_poll_ns(tree->queue,
					   (int64_t)(ckpt->retry_ns - now_ns));
			continue;
		}
		ckpt_pump(tree);
		if (ckpt->writes) {
			rc = queue_poll(tree->queue, -1);
			continue;
		}
		if (tree->failed)
			return -EIO;
		if (!ckpt->failures)
			return 0;
		ckpt_write_again(tree, now_ns);
	}
	return rc;
}

/*
 * Writes leaves that replay has changed, and their mirrors, to their new slots,
 * which no root knows, so that their buffers can be evicted.  They may be
 * changed and written again, as their generation goes on.
 */
int ckpt_spill(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct list *pos, *next;
	int rc;

	ckpt->n = 0;
	list_for_each_safe(pos, next, &tree->buffers->dirty) {
		struct buffer *f = list_entry(pos, struct buffer, link);

		if (!f->level && f->parent)
			ckpt_add(ckpt, f);
	}
	ckpt_begin_writing(tree);
	rc = spill_write(tree);
	ckpt->phase = CKPT_IDLE;
	for (size_t i = 0; i < ckpt->n && !rc; i++) {
		ckpt->buffer[i]->written = ckpt->buffer[i]->mirrored = false;
		buffer_set_state(tree->buffers, ckpt->buffer[i], BUFFER_CLEAN);
	}
	return rc;
}

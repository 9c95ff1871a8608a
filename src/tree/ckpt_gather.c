/*
 * ckpt_gather.c - gives leaves that follow each other in the tree, and lie
 * apart on the disk, slots one behind the other.
 *
 * A changed leaf stays in its node track while there is room, but after weeks
 * the leaves of a directory lie wherever a slot was free when they were
 * changed.  Siblings that lie together are read in one access (node_run.c).
 *
 * Two things are done about it at a cut.  Where most leaves below a parent are
 * dirty, and they lie apart, these are lined up: they are written anyway.  And
 * if it was asked for (tree_gather), because the disk has nothing
 * else to do, leaves that did not change are changed, too, as far as they are
 * in memory, so that all below a parent lie together; before that they are
 * filled, as deletions leave leaves half empty.  The content of the tree stays,
 * so nothing is logged.
 */
#include "tree/ckpt_internal.h"

/* Most leaves that one cut gathers or lines up, so that it takes no long
 * turn. */
#define GATHER_MOST 512u
/* Slots of other nodes that a run of leaves may have between two, see
 * node_run.c. */
#define GATHER_GAP 8u
/* Slots that pass in the time that it takes to go to a leaf elsewhere. */
#define AWAY_SLOTS 8u
/* The leaves below a parent lie apart when reading them costs this part more
 * than reading as many leaves in a row, and more than a single way. */
#define APART_PART 2u
/* Dirty leaves are lined up when at most this part of all below a parent is
 * clean: those stay where they are and are read by themselves then. */
#define CLEAN_PART 4u
/* Leaves are filled to this percentage.  Directories that neither grow nor
 * shrink change a leaf by less than the rest. */
#define PACK_PERCENT 80u
/* This part of all slots stays free: other nodes change meanwhile. */
#define FREE_PART 8u
/* Charged for a buffer that is looked at, in nanoseconds; and what the rest of
 * the cut takes for each dirty node. */
#define LOOK_NS 2u
#define CUT_NODE_NS 200u

void tree_gather(struct tree *tree)
{
	tree->ckpt.gather = true;
}

/* Do the children of a node lie apart? */
static bool lie_apart(const void *parent)
{
	const unsigned children = node_count(parent);
	uint64_t at = 0, next, cost = 0;
	unsigned i;

	for (i = 0; i < children; i++, at = next + TRAX_NODE_SECTORS) {
		next = addr_sector(node_child(parent, i).addr);
		if (next < at || next > at + GATHER_GAP * TRAX_NODE_SECTORS)
			cost += AWAY_SLOTS;
		else
			cost += (next - at) / TRAX_NODE_SECTORS;
	}
	return cost > children / APART_PART + AWAY_SLOTS;
}

static struct buffer *child_buffer(const struct tree *tree,
				   const struct buffer *parent, unsigned i)
{
	return buffer_find(tree->buffers, node_child(parent->node, i).addr);
}

/* May it be changed now? */
static bool may_gather(struct tree *tree, const struct buffer *buffer)
{
	return buffer && buffer->live &&
	       (buffer->state == BUFFER_DIRTY ||
		(buffer->state == BUFFER_CLEAN &&
		 tree->buffers->n_dirty < tree_dirty_most(tree) / 2));
}

/* ---- Leaves that are written anyway ---- */

static bool is_dirty(const struct buffer *leaf)
{
	return leaf && leaf->live && leaf->state == BUFFER_DIRTY;
}

/* Does the turn have time to line up that many leaves, and for the cut?  If not
 * they stay where they are. */
static bool has_time(const struct tree *tree, unsigned leaves)
{
	const struct loop_turn *turn = &tree->env->turn;

	return !turn->running ||
	       turn->all_ns + tree->buffers->n_dirty * CUT_NODE_NS +
			       leaves * CKPT_TAKE_NS < TURN_FULL_NS;
}

/* Gives the dirty leaves below a parent slots one behind the other, if that is
 * worth it; returns their number. */
static unsigned line_up(struct tree *tree, struct buffer *parent)
{
	const unsigned children = node_count(parent->node);
	unsigned i, n = 0;

	for (i = 0; i < children; i++)
		n += is_dirty(child_buffer(tree, parent, i));
	turn_charge(&tree->env->turn, TURN_CHECKPOINT,
		    (uint64_t)children * LOOK_NS);
	if (n < children - children / CLEAN_PART ||
	    !lie_apart(parent->node) || !has_time(tree, n))
		return 0;
	space_run_begin(tree->space);
	for (i = 0; i < children; i++)
		if (is_dirty(child_buffer(tree, parent, i)))
			ckpt_take_next(tree, child_buffer(tree, parent, i));
	turn_charge(&tree->env->turn, TURN_CHECKPOINT, n * CKPT_TAKE_NS);
	return n;
}

void ckpt_line_up(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct list *pos;
	unsigned leaves = 0;
	size_t n = 0;

	if (!tree->log_started || tree->failed)
		return;
	list_for_each(pos, &tree->buffers->dirty) {
		struct buffer *f = list_entry(pos, struct buffer, link);

		if (f->level == 1 && f->live)
			ckpt->buffer[n++] = f;
	}
	while (n && leaves < GATHER_MOST)
		leaves += line_up(tree, ckpt->buffer[--n]);
	tree->stats.lined += leaves;
}

/* ---- All leaves below a parent ---- */

/* Number of first items of a leaf for which its left neighbour has room. */
static unsigned items_to_take(const void *left, const void *leaf)
{
	const unsigned count = node_count(leaf);
	size_t sum = node_used(left), item;
	unsigned n;

	for (n = 0; n < count; n++) {
		node_value(leaf, n, &item);
		sum += item + NODE_ITEM_BYTES;
		if (sum > NODE_BODY_BYTES * PACK_PERCENT / 100)
			break;
	}
	return n;
}

/* Fills the leaves below a parent from left to right; those that are empty then
 * leave the tree.  Returns their number. */
static unsigned pack(struct tree *tree, struct buffer *parent)
{
	const unsigned before = node_count(parent->node);
	struct buffer *left, *leaf;
	unsigned i = 0, n;

	while (i + 1 < node_count(parent->node)) {
		left = child_buffer(tree, parent, i);
		leaf = child_buffer(tree, parent, i + 1);
		n = may_gather(tree, left) && may_gather(tree, leaf) ?
			    items_to_take(left->node, leaf->node) : 0;
		if (n) {
			apply_touch(tree, left);
			apply_touch(tree, leaf);
		}
		if (n && n == node_count(leaf->node)) {
			apply_join(tree, left, leaf, i + 1);
			continue;
		}
		if (n)
			apply_give(left, leaf, n, node_key(leaf->node, n));
		i++;
	}
	return before - node_count(parent->node);
}

static unsigned gather_children(struct tree *tree, struct buffer *parent)
{
	const uint64_t kept = space_slots_total(tree->space) / FREE_PART;
	const unsigned before = node_count(parent->node);
	struct buffer *leaf;
	unsigned i, n;

	if (!lie_apart(parent->node) ||
	    space_slots_free(tree->space) < before * 2 + kept)
		return 0;
	n = pack(tree, parent);
	space_run_begin(tree->space);
	for (i = 0; i < node_count(parent->node); i++) {
		leaf = child_buffer(tree, parent, i);
		if (!may_gather(tree, leaf))
			continue;
		apply_touch(tree, leaf);
		ckpt_take_next(tree, leaf);
		n++;
	}
	turn_charge(&tree->env->turn, TURN_CHECKPOINT, before * CKPT_TAKE_NS);
	return n;
}

void ckpt_gather(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct buffer_cache *buffers = tree->buffers;
	const bool asked = ckpt->gather;
	unsigned leaves = 0;
	size_t n = 0;

	ckpt->gather = false;
	if (!asked || !tree->log_started || tree->failed)
		return;
	tree->leaving.asked = true;
	turn_charge(&tree->env->turn, TURN_CHECKPOINT,
		    buffers->count * LOOK_NS);
	for (size_t i = 0; i < buffers->count; i++)
		if (buffers->all[i].level == 1 &&
		    may_gather(tree, &buffers->all[i]))
			ckpt->buffer[n++] = &buffers->all[i];
	while (n && leaves < GATHER_MOST)
		leaves += gather_children(tree, ckpt->buffer[--n]);
	tree->stats.gathered += leaves;
}

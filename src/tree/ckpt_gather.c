/*
 * ckpt_gather.c - gives leaves that follow each other in the tree, and lie
 * apart on the disk, slots one behind the other.
 *
 * A changed leaf stays in its node track while there is room, but after weeks
 * the leaves of a directory lie wherever a slot was free when they were
 * changed.  Siblings that lie together are read in one access (node_run.c).
 *
 * This is done at a cut, if it was asked for (tree_gather) because the disk has
 * nothing else to do: the leaves of some parents that have changed are changed,
 * too, as far as they are in memory, and are written with that checkpoint.
 * Their content stays, so nothing is logged.
 */
#include "tree/ckpt_internal.h"

/* Most leaves that one cut gathers, so that it takes no long turn. */
#define GATHER_MOST 512u
/* Leaves are not gathered where this many or more lie one behind the other on
 * the average: reading them takes longer than the way there, so nothing is
 * gained. */
#define GATHER_RUN 4u
/* Free slots that there must be for each one needed: other nodes change
 * meanwhile. */
#define GATHER_SLOTS 2u
/* Slots of other nodes that a run of leaves may have between two, see
 * node_run.c. */
#define GATHER_GAP 8u

void tree_gather(struct tree *tree)
{
	tree->ckpt.gather = true;
}

/* Number of children whose slot does not follow soon behind that of the child
 * before. */
static unsigned breaks(const void *parent)
{
	const unsigned children = node_count(parent);
	uint64_t at = 0, next;
	unsigned i, n = 0;

	for (i = 0; i < children; i++, at = next) {
		next = addr_sector(node_child(parent, i).addr);
		n += next <= at || next > at + (1 + GATHER_GAP) *
						       TRAX_NODE_SECTORS;
	}
	return n;
}

/* May it be changed now? */
static bool may_gather(struct tree *tree, const struct buffer *leaf)
{
	return leaf && leaf->live &&
	       (leaf->state == BUFFER_DIRTY ||
		(leaf->state == BUFFER_CLEAN &&
		 tree->buffers->n_dirty < tree_dirty_most(tree) / 2));
}

static unsigned gather_children(struct tree *tree, struct buffer *parent)
{
	const unsigned children = node_count(parent->node);
	struct buffer *leaf;
	unsigned i, n = 0;

	if (breaks(parent->node) <= children / GATHER_RUN + 1 ||
	    space_slots_free(tree->space) < children * 2 * GATHER_SLOTS)
		return 0;
	for (i = 0; i < children; i++) {
		leaf = buffer_find(tree->buffers,
				   node_child(parent->node, i).addr);
		if (!may_gather(tree, leaf))
			continue;
		apply_touch(tree, leaf);
		ckpt_take_next(tree, leaf);
		n++;
	}
	turn_charge(&tree->env->turn, TURN_CHECKPOINT, n * CKPT_TAKE_NS);
	return n;
}

void ckpt_gather(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct list *pos;
	unsigned leaves = 0;
	size_t n = 0;

	if (!ckpt->gather || !tree->log_started || tree->failed)
		return;
	ckpt->gather = false;
	tree->leaving.asked = true;
	list_for_each(pos, &tree->buffers->dirty) {
		struct buffer *f = list_entry(pos, struct buffer, link);

		if (f->level == 1 && f->live)
			ckpt->buffer[n++] = f;
	}
	while (n && leaves < GATHER_MOST)
		leaves += gather_children(tree, ckpt->buffer[--n]);
	tree->stats.gathered += leaves;
}

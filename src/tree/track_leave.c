/*
 * track_leave.c - node tracks that are not needed go back to the free space.
 *
 * After a checkpoint a track of which no slot is busy is given back when the
 * others have enough: no slot is given there any more, and a transaction of the
 * tree's own deletes its owner.  No durable root has a node there then, and its
 * sectors are pending like any that lose their owner.
 *
 * Changes leave some nodes on most tracks.  So when nobody else needs the disk
 * (tree_gather) the track with the fewest is chosen: what is on it is changed
 * without a change, so that it goes to other slots with the next checkpoint.
 */
#include <errno.h>

#include "tree/tree_internal.h"

/* No track leaves if that would leave fewer slots than these, which is about
 * what mkfs gives: one part in KEPT_SHARE of the disk, KEPT_LEAST at least. */
#define KEPT_SHARE 2048u
#define KEPT_LEAST 128u

/* Nodes that are moved before the next checkpoint, at most: each costs two
 * writes then, and perhaps a read now. */
#define MOVES_MOST 64u

static const struct tree_bounds leave_bounds = {
	.nodes = 4, .new_nodes = 8, .log_bytes = 128, .urgent = true,
};

/* A checkpoint is over. */
static void look(struct leaving *l, uint64_t checkpoints)
{
	l->seen = checkpoints;
	l->look = true;
	l->moves = l->asked ? MOVES_MOST : 0;
	l->asked = false;
	l->from = KEY_MIN;
}

/* Deletes the owner of a track that has no node. */
static int give_back(struct tree_txn *txn, const struct range *track)
{
	const struct key key = key_make(0, ITEM_OWNER, track->first);
	struct tree_item item;
	int rc = tree_get(txn, key, &item);

	if (!rc)
		tree_del(txn, key);
	return rc;
}

/* Moves a node off the track; -EINPROGRESS: there is none in this part of the
 * tree. */
static int move_off(struct tree_txn *txn, struct leaving *l)
{
	struct tree_item item;
	struct key low;
	int rc = lookup_on_track(txn, &l->track, &l->from, &low);

	if (rc)
		return rc;
	rc = tree_get(txn, low, &item);
	if (rc && rc != -ENOENT)
		return rc;
	tree_touch(txn, low);
	l->moves--;
	return 0;
}

static void leave(struct tree_txn *txn, void *arg, int rc)
{
	struct tree *tree = arg;
	struct leaving *l = &tree->leaving;

	if (!rc && (tree->closing ||
		    !space_track_leaves(tree->space, &l->track, &l->busy)))
		rc = -ECANCELED;
	if (!rc)
		rc = l->busy ? move_off(txn, l) : give_back(txn, &l->track);
	if (rc == -EAGAIN) {
		tree_txn_fetch(txn);
		return;
	}
	if (rc && rc != -EINPROGRESS)
		l->look = false;
	tree_txn_end(txn);
	l->txn = NULL;
}

static const struct tree_txn_ops leave_ops = { leave };

/* Is there a track that can be given back, or from which nodes may be moved? */
static bool has_work(struct tree *tree)
{
	const uint64_t kept = tree->super.sectors / KEPT_SHARE /
			      TRAX_NODE_SECTORS;
	struct leaving *l = &tree->leaving;

	if (!space_track_leaves(tree->space, &l->track, &l->busy) &&
	    !space_track_leave(tree->space, kept > KEPT_LEAST ? kept :
							       KEPT_LEAST,
			       l->moves > 0))
		return false;
	return space_track_leaves(tree->space, &l->track, &l->busy) &&
	       (!l->busy || l->moves);
}

uint64_t leave_run(struct tree *tree, uint64_t now_ns)
{
	struct leaving *l = &tree->leaving;

	if (tree->ckpt.phase != CKPT_IDLE)
		return UINT64_MAX;
	if (l->seen != tree->stats.checkpoints)
		look(l, tree->stats.checkpoints);
	if (!l->look || l->txn || tree->growth.txn || tree->growth.wanted ||
	    !growth_can_help(tree) || tree->closing)
		return UINT64_MAX;
	l->look = has_work(tree) &&
		  !txn_begin_own(tree, &leave_bounds, &leave_ops, tree,
				 &l->txn);
	return l->look ? now_ns : UINT64_MAX;
}

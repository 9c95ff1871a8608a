/*
 * tree_grow.c - makes a tree that of a larger file system.
 *
 * The new root goes to root areas that lie beyond the old end, and its nodes to
 * slots that the old root does not use, so that nothing of the old file system
 * is overwritten before the superblock at the first place has its new size.
 * That write is the commit point.  The last superblock is written before it, so
 * that the file system is found when exactly this write is torn; a mount that
 * finds it beyond the end that the first one names wipes it (grow_undo).  The
 * steps are those of doc/format.md, section 10.1.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "tree/tree_internal.h"

static int wipe(struct tree *tree, uint64_t sector)
{
	void *zeros = aligned_alloc(TRAX_BLOCK_BYTES, TRAX_BLOCK_BYTES);
	int rc = -ENOMEM;

	if (zeros) {
		memset(zeros, 0, TRAX_BLOCK_BYTES);
		rc = queue_write_as(tree->queue, FAULT_SUPER, sector,
				    TRAX_BLOCK_SECTORS, zeros);
	}
	free(zeros);
	return rc ? rc : queue_flush_wait(tree->queue);
}

int grow_undo(struct tree *tree)
{
	const struct disk_limits *limits = queue_limits(tree->queue);
	struct super found;
	uint64_t place[3];
	void *block;
	int rc;

	super_usual_places(limits->sectors, place);
	if (place[2] < tree->super.sectors)
		return 0;
	block = aligned_alloc(TRAX_BLOCK_BYTES, TRAX_BLOCK_BYTES);
	if (!block)
		return -ENOMEM;
	rc = queue_read_as(tree->queue, FAULT_READ_SUPER, place[2],
			   TRAX_BLOCK_SECTORS, block);
	if (!rc && !super_decode(block, place[2], &found) &&
	    !memcmp(found.uuid, tree->super.uuid, sizeof(found.uuid)))
		rc = wipe(tree, place[2]);
	free(block);
	/* Sectors that cannot be read will not be taken for a superblock later
	 * either. */
	return rc == -ENOMEM ? rc : 0;
}

/* Writes the last superblock, then the first, which is the commit point, then
 * the second. */
static int write_supers(struct tree *tree, const struct super *next,
			uint64_t old_last)
{
	static const unsigned order[3] = { 2, 0, 1 };
	void *block = aligned_alloc(TRAX_BLOCK_BYTES, TRAX_BLOCK_BYTES);
	uint64_t place[3];
	unsigned failures = 0;
	int rc = block ? 0 : -ENOMEM;

	super_places(next, place);
	for (unsigned i = 0; i < 3 && !rc; i++) {
		super_encode(next, place[order[i]], block);
		rc = super_write_one(tree, place[order[i]], block, &failures);
		if (!rc && i == 0)
			rc = wipe(tree, old_last);
	}
	free(block);
	return rc;
}

/* Makes sure that nothing that an earlier growth has left there is taken for a
 * root of the new areas. */
static int wipe_areas(struct tree *tree, const struct super *next)
{
	int rc = 0;

	for (unsigned i = 0; i < 4 && !rc; i++)
		rc = wipe(tree, next->area_sector[i / 2][i % 2]);
	return rc;
}

int tree_grow(struct tree *tree, const struct super *super,
	      const struct tree_change *change, size_t n)
{
	struct super next = *super;
	uint64_t old[3];
	int rc;

	if (tree->read_only || tree->started || !tree->durable.clean ||
	    tree->roots_doubted) {
		msg_error("it is not clean: chkfs.traxfs looks why");
		return -EUCLEAN;
	}
	super_places(&tree->super, old);
	rc = wipe_areas(tree, &next);
	if (!rc)
		rc = space_grow(tree->space, next.sectors);
	if (rc)
		return rc;
	next.version = tree->super.version + 1;
	tree->supers_differ = false;
	tree_set_super(tree, &next);
	rc = replay_changes(tree, change, n);
	if (!rc)
		rc = tree_start(tree);
	return rc ? rc : write_supers(tree, &next, old[2]);
}

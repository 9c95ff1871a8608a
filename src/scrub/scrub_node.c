/*
 * scrub_node.c - looks at a copy of a node that may be damaged.
 *
 *   read again -> checkpoint -> read again ... -> find -> touch -> checkpoint
 *                                                [txn]+  [txn]
 *
 * A slot that looks bad may have been taken and not yet been written, so it is
 * read again after a checkpoint.  A copy that stays bad is healed from the
 * other one: the node is found by its address in the nodes above it, loaded
 * from the good copy, and touched without a change, so that the next checkpoint
 * writes both copies to other slots.
 */
#include <errno.h>

#include "base/msg.h"
#include "fs/op/errors.h"
#include "fs/op/fs_txn.h"
#include "scrub/scrub_internal.h"

/* Reads of a copy, with checkpoints between them, before it counts as
 * damaged. */
#define NODE_TRIES 3u

static void node_report(struct scrub *scrub, bool healed)
{
	const struct scrub_suspect *suspect = &scrub->suspect[0];

	errors_add(scrub->fs, &(struct error){
		.sector = suspect->sector, .sectors = TRAX_NODE_SECTORS,
		.what = suspect->unreadable ? ERROR_READ : ERROR_CSUM,
		.healed = healed });
	msg_error("%s: node at sector %llu: %s%s", scrub->fs->disk->name,
		  (unsigned long long)suspect->sector,
		  suspect->unreadable ? "cannot be read" : "is damaged",
		  healed ? "; it is written again from its mirror" : "");
	scrub_suspect_over(scrub);
}

/* ---- Healing ---- */

static int node_heal_run(struct fs_txn *txn)
{
	struct scrub *scrub = txn->state;
	struct tree_item item;
	struct key low;
	int rc = tree_copy_key(txn->tree_txn,
			       addr_make(0, scrub->suspect[0].sector),
			       &scrub->node_from, &low);

	/* The node is gone: there is nothing to heal. */
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	rc = tree_get(txn->tree_txn, low, &item);
	if (rc && rc != -ENOENT)
		return rc;
	tree_touch(txn->tree_txn, low);
	return 0;
}

static void node_heal(struct scrub *scrub);

static void heal_written(struct waiter *waiter, int rc)
{
	node_report(waiter->owner, !rc);
}

static void node_healed(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct scrub *scrub = txn->state;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (rc == -EINPROGRESS && !scrub->closing) {
		node_heal(scrub);
	} else if (rc) {
		node_report(scrub, false);
	} else {
		scrub->waiter = (struct waiter){ .done = heal_written,
						 .owner = scrub };
		list_init(&scrub->waiter.link);
		tree_checkpoint(scrub->fs->tree, &scrub->waiter);
	}
}

static const struct fs_txn_type node_heal_type = {
	.name = "heal a node",
	.paths = 2,
	.changes = 1,
	.stages = TRAX_MAX_LEVEL,
	.run = node_heal_run,
	.end = node_healed,
};

static void node_heal(struct scrub *scrub)
{
	if (fs_txn_start(scrub->fs, &node_heal_type, NULL, scrub))
		node_report(scrub, false);
}

/* ---- Looking ---- */

static void node_cut(struct waiter *waiter, int rc)
{
	(void)rc;
	scrub_node_look(waiter->owner);
}

static void node_done(struct disk_request *disk)
{
	struct scrub *scrub = disk->owner;
	struct scrub_suspect *suspect = &scrub->suspect[0];
	bool used = space_slot_used(tree_space(scrub->fs->tree),
				    addr_make(0, suspect->sector));

	if (scrub->closing || !used ||
	    (!disk->result &&
	     scrub_verify_node(scrub, suspect->sector, scrub->node))) {
		scrub_suspect_over(scrub);
		return;
	}
	suspect->unreadable = disk->result;
	if (fs_read_only(scrub->fs)) {
		node_report(scrub, false);
		return;
	}
	if (++suspect->tries < NODE_TRIES && !disk->result) {
		scrub->waiter = (struct waiter){ .done = node_cut,
						 .owner = scrub };
		list_init(&scrub->waiter.link);
		tree_checkpoint(scrub->fs->tree, &scrub->waiter);
		return;
	}
	scrub->node_from = KEY_MIN;
	node_heal(scrub);
}

void scrub_node_look(struct scrub *scrub)
{
	scrub->node_iov = (struct iovec){ scrub->node, TRAX_NODE_BYTES };
	scrub->node_req = (struct queue_request){
		.disk = {
			.op = DISK_READ,
			.sector = scrub->suspect[0].sector,
			.sectors = TRAX_NODE_SECTORS,
			.iov = &scrub->node_iov,
			.iov_n = 1,
			.done = node_done,
			.owner = scrub,
		},
		.class = QUEUE_READ_AHEAD,
	};
	queue_submit(scrub->fs->queue, &scrub->node_req);
}

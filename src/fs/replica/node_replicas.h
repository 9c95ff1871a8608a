/*
 * node_replicas.h - replicas of tree nodes: leaves that users waited for lie
 * together, in the order in which they were wanted, and are read in one go.
 *
 * A replica of a node needs no table: a node says where it belongs, and its
 * reader has the checksum from its parent. So a region of nodes holds nothing
 * but nodes; a replica of a node that has been written since has no meaning.
 * The first time that a user waits for a node after the mount these regions are
 * read; readers wait for that, and find their node in memory or read it
 * themselves.
 *
 * Memory: an eighth of the replicas' budget, and 130 KiB.
 */
#ifndef TRAX_REPLICA_NODE_REPLICAS_H
#define TRAX_REPLICA_NODE_REPLICAS_H

#include "fs/op/fs_internal.h"

int node_replicas_new(struct fs *fs);	/* called after replicas_open */
void node_replicas_free(struct fs *fs);
bool node_replicas_idle(const struct fs *fs);	/* no reads are under way */

/* Learns that the leaf with this key will be wanted. */
void node_replicas_learn(struct fs *fs, struct key key);
/* Have users waited long enough for nodes, or are there too many replicas? */
bool node_replicas_due(struct fs *fs);
/* Have all replaced regions been dropped? */
bool node_replicas_over(const struct fs *fs);
/* Copies the nodes that users waited for, whatever that gains. */
void node_replicas_make(struct fs *fs);
/* Does what is due while users are quiet and no other replicas are made. */
void node_replicas_run(struct fs *fs);

struct node_replicas_stats {
	uint64_t waits, wait_ns;	/* waits for nodes since they were
					 * copied */
	uint64_t hits, made;
};
const struct node_replicas_stats *node_replicas_stats(const struct fs *fs);

#endif

/*
 * node_replicas.h - copies of tree nodes: leaves that users waited for lie
 * together, in the order in which they were wanted, and are read in one go.
 *
 * A copy of a node needs no table: a node says where it belongs, and whoever
 * reads it knows its checksum from its parent.  So a region of nodes is nothing
 * but nodes; one that has been written since is a copy of nothing.  The first
 * time that a user waits for a node after the mount these regions are read;
 * whoever wants one waits for them, and finds it in memory or reads it himself.
 *
 * Memory: an eighth of the replicas' budget, and 130 KiB.
 */
#ifndef TRAX_REPLICA_NODE_REPLICAS_H
#define TRAX_REPLICA_NODE_REPLICAS_H

#include "fs/op/fs_internal.h"

struct node_replicas;

int node_replicas_new(struct fs *fs);	/* after replicas_open */
void node_replicas_free(struct fs *fs);
bool node_replicas_idle(const struct fs *fs);	/* no reads under way */

/* The leaf that has this key will be wanted. */
void node_replicas_learn(struct fs *fs, struct key key);
/* Has enough been waited for, or is there too much? */
bool node_replicas_due(struct fs *fs);
/* Are those dropped that others have replaced? */
bool node_replicas_over(const struct fs *fs);
/* Copies what was waited for, whatever it was worth. */
void node_replicas_make(struct fs *fs);
/* When it is quiet, and no other copies are made: does what is due. */
void node_replicas_run(struct fs *fs);

struct node_replicas_stats {
	uint64_t waits, wait_ns;	/* for nodes, since they were copied */
	uint64_t hits, made;
};
const struct node_replicas_stats *node_replicas_stats(const struct fs *fs);

#endif

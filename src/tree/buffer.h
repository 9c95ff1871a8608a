/*
 * buffer.h - the node cache: a fixed number of 16-KiB buffers.
 *
 * States of a buffer:
 *
 *   free --buffer_get--> loading --read and verified--> clean --evicted--> free
 *                 \--new node--> dirty <--changed-------/
 *                                  | cut
 *                                  v
 *                                frozen --its root is durable--> clean
 *
 * A live buffer is part of the running tree: its parent is resident, is known
 * here, and counts it.  A buffer that is not live any more, but frozen, loading
 * or pinned, is kept until that ends.  A frozen live buffer that is to be
 * changed stays the live one; its old content moves to a shadow, a buffer that
 * is only frozen.
 *
 * Invariants: 1. a buffer is on the lru list exactly when it may be evicted:
 * clean, live, no pins, no children.  2. the hash finds every buffer that has
 * an address, by it.  3. the ancestors of a dirty buffer are dirty.
 */
#ifndef TRAX_TREE_BUFFER_H
#define TRAX_TREE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "cache/pool.h"
#include "format/format.h"
#include "sched/queue/queue.h"

enum buffer_state {
	BUFFER_FREE, BUFFER_LOADING, BUFFER_CLEAN, BUFFER_DIRTY, BUFFER_FROZEN
};

struct tree;

struct buffer {
	void *node;
	struct node_ptr ptr;	/* csum is known once the buffer is clean or
				 * sealed */
	uint8_t level;
	enum buffer_state state;
	bool live;
	bool sealed;		/* frozen: checksum taken, may be written */
	bool written;		/* frozen: the write of its node has ended */
	bool mirrored;		/* frozen: the write of its mirror has ended */
	bool bad, bad_mirror;	/* frozen: that copy's write failed */
	bool sibling;		/* it was read because it lay near another one,
				 * and has not been used yet */
	uint8_t tries;		/* loading: copies tried so far; frozen: how
				 * often it was moved */
	uint8_t writes;		/* frozen: writes that are outstanding */
	uint32_t frozen_as;	/* frozen: its place in the checkpoint's
				 * buffer[] */
	uint32_t pins;
	uint32_t children;	/* buffers whose parent this is */
	struct buffer *parent;	/* NULL: the root, or not live */
	struct buffer *hash_next;
	struct list link;	/* member of free, lru, dirty or frozen */
	struct list waiting;	/* loading: struct txn_miss of transactions that
				 * wait for it */
	struct buffer_load *load;	/* its own, for its whole life */
};

/* What a buffer needs while it is loading.  It is apart from the buffer because
 * most buffers of a tree that is written are never loaded. */
struct buffer_load {
	struct buffer *buffer;
	struct key low, high;	/* the range of keys that the parent gives the
				 * node */
	struct list later;	/* member of the tree's list `later`, see
				 * tree_copies */
	uint64_t begun_ns;	/* when the read began */
	struct tree *tree;	/* the tree that reads it */
	struct queue_request req;	/* the read */
	struct iovec iov;
};

struct buffer_cache {
	struct buffer *all;
	struct buffer_load *load;	/* by buffer */
	size_t count;
	struct buffer **buckets;
	size_t mask;
	struct pool *pool;
	struct list free, lru, dirty, frozen;
	size_t n_free, n_lru, n_dirty, n_frozen;
	/* number of such buffers that were used, and that were evicted without
	 * having been */
	uint64_t siblings_used, siblings_unused;
};

/* -ENOMEM. */
int buffer_cache_new(size_t bytes, struct buffer_cache **buffers);
void buffer_cache_free(struct buffer_cache *buffers);

/* The buffer at this address, whatever its state; NULL: none. */
struct buffer *buffer_find(const struct buffer_cache *buffers, traxaddr addr);

/* Gives a buffer without an address, evicting another if necessary. NULL: none
 * can be evicted. */
struct buffer *buffer_get(struct buffer_cache *buffers);
/* Number of buffers that buffer_get could return. */
size_t buffer_available(const struct buffer_cache *buffers);

/* Makes a buffer free. It must not be pinned, have children or be on anybody
 * else's list. */
void buffer_put(struct buffer_cache *buffers, struct buffer *buffer);

/* Gives the buffer an address, or another one instead of its old one. */
void buffer_set_ptr(struct buffer_cache *buffers, struct buffer *buffer,
		   const struct node_ptr *ptr);

/* Changes the state of a buffer, and the list that it is on with it. */
void buffer_set_state(struct buffer_cache *buffers, struct buffer *buffer,
		     enum buffer_state state);

void buffer_set_parent(struct buffer_cache *buffers, struct buffer *buffer,
		      struct buffer *parent);

void buffer_pin(struct buffer_cache *buffers, struct buffer *buffer);
void buffer_unpin(struct buffer_cache *buffers, struct buffer *buffer);

/* The node leaves the running tree: its buffer is freed at once, or when it is
 * no longer frozen, loading or pinned. */
void buffer_drop(struct buffer_cache *buffers, struct buffer *buffer);

/* Checks the invariants; NULL when they hold, else which one does not. */
const char *buffer_check(const struct buffer_cache *buffers);

#endif

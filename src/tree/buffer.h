/*
 * buffer.h - the node cache: a fixed number of 16-KiB frames.
 *
 * States of a frame:
 *
 *   free --frame_get--> loading --read and verified--> clean --evicted--> free
 *                 \--new node--> dirty <--changed-------/
 *                                  | cut
 *                                  v
 *                                frozen --its root is durable--> clean
 *
 * A live frame is part of the running tree: its parent is resident, is known
 * here, and counts it.  What is not live any more, but frozen, loading or
 * pinned, is kept until that ends.  A frozen live frame that is to be changed
 * stays the live one; what it held moves to a shadow, a frame that is only
 * frozen.
 *
 * Invariants: 1. a frame is on the lru list exactly when it may be evicted:
 * clean, live, no pins, no children.  2. the hash finds every frame that has
 * an address, by it.  3. the ancestors of a dirty frame are dirty.
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

enum frame_state {
	FRAME_FREE, FRAME_LOADING, FRAME_CLEAN, FRAME_DIRTY, FRAME_FROZEN
};

struct tree;

struct frame {
	void *node;
	struct node_ptr ptr;	/* csum is known when clean, or sealed */
	uint8_t level;
	enum frame_state state;
	bool live;
	bool sealed;		/* frozen: checksum taken, may be written */
	bool written;		/* frozen: the write of its node has ended */
	bool mirrored;		/* frozen: the write of its mirror has ended */
	bool bad, bad_twin;	/* frozen: that copy's write failed */
	uint8_t tries;		/* loading: copies tried; frozen: moved */
	uint8_t writes;		/* frozen: outstanding */
	size_t order;		/* frozen: position in the checkpoint's */
	uint32_t pins;
	uint32_t children;	/* frames whose parent this is */
	struct frame *parent;	/* NULL: the root, or not live */
	struct frame *hash_next;
	struct list link;	/* free, lru, dirty or frozen */
	struct list waiting;	/* loading: who waits (struct fetch_wait) */
	struct key low, high;	/* loading: what the parent says */
	struct list later;	/* loading: the tree's, see tree_copies */
	uint64_t begun_ns;	/* loading */
	struct tree *tree;	/* loading */
	struct queue_request req;	/* loading */
	struct iovec iov;
};

struct frames {
	struct frame *all;
	size_t count;
	struct frame **buckets;
	size_t mask;
	struct pool *pool;
	struct list free, lru, dirty, frozen;
	size_t n_free, n_lru, n_dirty, n_frozen;
};

/* -ENOMEM. */
int frame_cache_new(size_t bytes, struct frames **frames);
void frame_cache_free(struct frames *frames);

/* The frame at this address, whatever its state; NULL: none. */
struct frame *frame_find(const struct frames *frames, traxaddr addr);

/* A frame without an address, evicting if need be.  NULL: none can be. */
struct frame *frame_get(struct frames *frames);
/* How many frame_get would give. */
size_t frame_available(const struct frames *frames);

/* Back to free; it is in no list of others, not pinned, without children. */
void frame_put(struct frames *frames, struct frame *frame);

/* Gives it an address, or another one; the old one is forgotten. */
void frame_set_ptr(struct frames *frames, struct frame *frame,
		   const struct node_ptr *ptr);

/* Moves it between the lists that go with states. */
void frame_set_state(struct frames *frames, struct frame *frame,
		     enum frame_state state);

void frame_set_parent(struct frames *frames, struct frame *frame,
		      struct frame *parent);

void frame_pin(struct frames *frames, struct frame *frame);
void frame_unpin(struct frames *frames, struct frame *frame);

/* Leaves the running tree: frees it, unless it is still frozen, loading or
 * pinned; then when that ends. */
void frame_drop(struct frames *frames, struct frame *frame);

/* Checks the invariants; NULL when they hold, else which one does not. */
const char *frame_check(const struct frames *frames);

#endif

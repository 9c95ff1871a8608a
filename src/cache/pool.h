/*
 * pool.h - fixed pools of equal buffers, and the memory budget they come from.
 *
 * A pool is one mapping made at start; getting a buffer never allocates and
 * fails (NULL) when the pool is empty: the caller waits.  Buffers are aligned
 * to 4096.  The pool belongs to whoever made it.
 *
 * References to a buffer are counted: every pointer to it that is kept owns
 * one, got by pool_get or pool_share and given back by one pool_put; the last
 * of these frees the buffer.  Content changes only while there is one.
 */
#ifndef TRAX_CACHE_POOL_H
#define TRAX_CACHE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool;

int pool_new(size_t buffer_bytes, size_t count, struct pool **pool);
void pool_free(struct pool *pool);
void *pool_get(struct pool *pool);
/* Another reference to a buffer that is in use; returns the buffer. */
void *pool_share(struct pool *pool, void *buffer);
bool pool_is_shared(const struct pool *pool, const void *buffer);
/* Gives back one reference; aborts when there is none. */
void pool_put(struct pool *pool, void *buffer);
/* For tests: pools made from now on fill free buffers with a pattern, and abort
 * when a buffer was changed while it was free. */
void pool_set_poison(bool on);
size_t pool_count(const struct pool *pool);
size_t pool_available(const struct pool *pool);

/* How the memory is split, in bytes: nodes of the tree; dirty blocks; cache
 * chunks; replica read-ahead; requests under way. */
struct pool_budget {
	size_t nodes, dirty, tracks, replicas, flight;
};

/*
 * Splits `bytes`; 0: min(3/16 of what the process may use, 1 GiB), where that
 * is RAM or the tightest memory limit of its cgroup (v1 and v2), whichever is
 * less.  -EINVAL below 32 MiB.
 */
int pool_budget_make(size_t bytes, struct pool_budget *budget);

#endif

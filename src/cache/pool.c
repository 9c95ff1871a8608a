/*
 * pool.c - a stack of free buffers over one anonymous mapping; the limits of
 * the control group are read from /proc and /sys once, when the budget is made.
 */
#include "cache/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cache/limit.h"

/* Alignment of buffers in bytes, for direct I/O to any disk. */
#define ALIGNMENT 4096u
/* The least budget, and the most that is taken by default. */
#define MIN_BUDGET_BYTES ((size_t)32 << 20)
/* Least bytes for nodes, up to half of the memory: the nodes of some ten
 * thousand files in a hundred directories, changed by turns.  With fewer each
 * of them is written again and again. */
#define LEAST_NODES_BYTES ((size_t)24 << 20)
/* Part of the memory beside nodes and dirty blocks that replicas may take: two
 * tracks of them can be read at once with 64 MiB. */
#define REPLICAS_SHARE 6u
#define MAX_DEFAULT_BYTES ((size_t)1 << 30)
/* Of what the process may use this much is taken by default.  The kernel's
 * pages of the files share the rest: with a quarter of a control group of 256
 * MB the pages of 20,000 small files did not fit beside it. */
#define DEFAULT_SIXTEENTHS 3u
/* One part in this many is for dirty blocks; with little memory, less than
 * LITTLE_BYTES, one part in SMALL_DIRTY_SHARE: what waits to be written is in
 * the kernel's pages too. */
#define DIRTY_SHARE 4u
#define SMALL_DIRTY_SHARE 8u
#define LITTLE_BYTES ((size_t)128 << 20)

struct pool {
	uint8_t *base;
	size_t stride, count, available;
	void **free;		/* free buffers: the first `available`
				 * entries */
	uint16_t *refs;		/* references to each buffer */
	bool poison;
	bool *poisoned;		/* by buffer: it has been given back at least
				 * once */
};

#define POISON 0xd5	/* The pattern of free buffers (pool_set_poison). */

static bool poison_new_pools;

void pool_set_poison(bool on)
{
	poison_new_pools = on;
}

static void pool_free_lists(struct pool *pool)
{
	free(pool->free);
	free(pool->refs);
	free(pool->poisoned);
	free(pool);
}

int pool_new(size_t buffer_bytes, size_t count, struct pool **pool)
{
	const size_t stride = (buffer_bytes + ALIGNMENT - 1) / ALIGNMENT *
			      ALIGNMENT;
	struct pool *p;

	if (!stride || !count || stride < buffer_bytes ||
	    count > SIZE_MAX / stride)
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->free = calloc(count, sizeof(*p->free));
	p->refs = calloc(count, sizeof(*p->refs));
	p->poisoned = calloc(count, sizeof(*p->poisoned));
	p->base = p->free && p->refs && p->poisoned ?
		mmap(NULL, stride * count, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) :
		MAP_FAILED;
	if (p->base == MAP_FAILED) {
		pool_free_lists(p);
		return -ENOMEM;
	}
	p->poison = poison_new_pools;
	p->stride = stride;
	p->count = p->available = count;
	for (size_t i = 0; i < count; i++)
		p->free[i] = p->base + (count - 1 - i) * stride;
	*pool = p;
	return 0;
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	munmap(pool->base, pool->stride * pool->count);
	pool_free_lists(pool);
}

static size_t pool_index(const struct pool *pool, const void *buffer)
{
	const size_t off = (size_t)((const uint8_t *)buffer - pool->base);

	assert(off < pool->stride * pool->count && off % pool->stride == 0);
	return off / pool->stride;
}

static bool poison_is_whole(const struct pool *pool, const uint8_t *buffer)
{
	return buffer[0] == POISON &&
	       !memcmp(buffer, buffer + 1, pool->stride - 1);
}

void *pool_get(struct pool *pool)
{
	void *buffer;
	size_t i;

	if (!pool->available)
		return NULL;
	buffer = pool->free[--pool->available];
	i = pool_index(pool, buffer);
	assert(!pool->refs[i]);
	assert(!pool->poisoned[i] || poison_is_whole(pool, buffer));
	pool->poisoned[i] = false;
	pool->refs[i] = 1;
	return buffer;
}

void *pool_share(struct pool *pool, void *buffer)
{
	const size_t i = pool_index(pool, buffer);

	assert(pool->refs[i] && pool->refs[i] < UINT16_MAX);
	pool->refs[i]++;
	return buffer;
}

bool pool_is_shared(const struct pool *pool, const void *buffer)
{
	return pool->refs[pool_index(pool, buffer)] > 1;
}

void pool_put(struct pool *pool, void *buffer)
{
	const size_t i = pool_index(pool, buffer);

	assert(pool->refs[i]);
	if (--pool->refs[i])
		return;
	if (pool->poison) {
		memset(buffer, POISON, pool->stride);
		pool->poisoned[i] = true;
	}
	pool->free[pool->available++] = buffer;
}

size_t pool_count(const struct pool *pool)
{
	return pool->count;
}

size_t pool_available(const struct pool *pool)
{
	return pool->available;
}

static size_t usable_bytes(void)
{
	const long pages = sysconf(_SC_PHYS_PAGES);
	const long page_bytes = sysconf(_SC_PAGESIZE);
	const uint64_t ram = pages > 0 && page_bytes > 0 ?
		(uint64_t)pages * (uint64_t)page_bytes : MIN_BUDGET_BYTES * 4;
	const uint64_t limit = limit_memory("");

	return (size_t)(limit < ram ? limit : ram);
}

int pool_budget_make(size_t bytes, struct pool_budget *budget)
{
	size_t nodes, dirty, rest;

	if (!bytes) {
		bytes = usable_bytes() / 16 * DEFAULT_SIXTEENTHS;
		if (bytes > MAX_DEFAULT_BYTES)
			bytes = MAX_DEFAULT_BYTES;
		if (bytes < MIN_BUDGET_BYTES)
			bytes = MIN_BUDGET_BYTES;
	}
	if (bytes < MIN_BUDGET_BYTES)
		return -EINVAL;
	nodes = bytes / 4;
	if (nodes < LEAST_NODES_BYTES)
		nodes = LEAST_NODES_BYTES < bytes / 2 ? LEAST_NODES_BYTES :
							bytes / 2;
	dirty = bytes < LITTLE_BYTES ? bytes / SMALL_DIRTY_SHARE :
				       bytes / DIRTY_SHARE;
	rest = bytes - nodes - dirty;
	*budget = (struct pool_budget){
		.nodes = nodes,
		.dirty = dirty,
		.tracks = rest / 2,
		.replicas = rest / REPLICAS_SHARE,
		.flight = rest - rest / 2 - rest / REPLICAS_SHARE,
	};
	return 0;
}

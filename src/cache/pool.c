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

#define ALIGNMENT 4096u
#define MIN_BUDGET_BYTES ((size_t)32 << 20)
#define MAX_DEFAULT_BYTES ((size_t)1 << 30)

struct pool {
	uint8_t *base;
	size_t stride, count, available;
	void **free;		/* the first `available` are free */
};

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
	p->base = p->free ? mmap(NULL, stride * count, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				 -1, 0) : MAP_FAILED;
	if (p->base == MAP_FAILED) {
		free(p->free);
		free(p);
		return -ENOMEM;
	}
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
	free(pool->free);
	free(pool);
}

void *pool_get(struct pool *pool)
{
	return pool->available ? pool->free[--pool->available] : NULL;
}

void pool_put(struct pool *pool, void *buffer)
{
	const size_t off = (size_t)((uint8_t *)buffer - pool->base);

	assert(off < pool->stride * pool->count && off % pool->stride == 0);
	assert(pool->available < pool->count);
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
	if (!bytes) {
		bytes = usable_bytes() / 4;
		if (bytes > MAX_DEFAULT_BYTES)
			bytes = MAX_DEFAULT_BYTES;
		if (bytes < MIN_BUDGET_BYTES)
			bytes = MIN_BUDGET_BYTES;
	}
	if (bytes < MIN_BUDGET_BYTES)
		return -EINVAL;
	*budget = (struct pool_budget){
		.nodes = bytes / 4,
		.dirty = bytes / 4,
		.tracks = bytes / 4,
		.replicas = bytes / 16,
	};
	budget->flight = bytes - budget->nodes - budget->dirty -
			 budget->tracks - budget->replicas;
	return 0;
}

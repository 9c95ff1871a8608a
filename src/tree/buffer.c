/*
 * buffer.c - buffers are chained in a hash by address; the clean ones that
 * nobody needs form a queue from which the oldest is evicted.
 *
 * Lists: free and lru hold what their names say; dirty and frozen hold all of
 * that state; a loading buffer, and a clean one that can't be evicted, is on no
 * list.
 */
#include "tree/buffer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int buffer_cache_new(size_t bytes, struct buffer_cache **buffers)
{
	const size_t count = bytes / TRAX_NODE_BYTES;
	struct buffer_cache *f = calloc(1, sizeof(*f));
	size_t buckets = 1;

	if (!f)
		return -ENOMEM;
	while (buckets < count)
		buckets *= 2;
	f->mask = buckets - 1;
	f->count = f->n_free = count;
	f->all = calloc(count, sizeof(*f->all));
	f->load = calloc(count, sizeof(*f->load));
	f->buckets = calloc(buckets, sizeof(*f->buckets));
	list_init(&f->free);
	list_init(&f->lru);
	list_init(&f->dirty);
	list_init(&f->frozen);
	if (!f->all || !f->load || !f->buckets ||
	    pool_new(TRAX_NODE_BYTES, count, &f->pool)) {
		buffer_cache_free(f);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		f->all[i].node = pool_get(f->pool);
		list_init(&f->all[i].waiting);
		f->all[i].load = &f->load[i];
		list_add(&f->free, &f->all[i].link);
	}
	*buffers = f;
	return 0;
}

void buffer_cache_free(struct buffer_cache *buffers)
{
	if (!buffers)
		return;
	pool_free(buffers->pool);
	free(buffers->buckets);
	free(buffers->load);
	free(buffers->all);
	free(buffers);
}

static struct buffer **bucket(const struct buffer_cache *buffers, traxaddr addr)
{
	uint64_t x = addr / TRAX_NODE_SECTORS * 0x9e3779b97f4a7c15;

	return &buffers->buckets[(x >> 32) & buffers->mask];
}

struct buffer *buffer_find(const struct buffer_cache *buffers, traxaddr addr)
{
	struct buffer *f = *bucket(buffers, addr);

	while (f && f->ptr.addr != addr)
		f = f->hash_next;
	return f;
}

static void hash_remove(struct buffer_cache *buffers, struct buffer *buffer)
{
	struct buffer **p;

	if (!buffer->ptr.addr)
		return;
	p = bucket(buffers, buffer->ptr.addr);
	while (*p != buffer)
		p = &(*p)->hash_next;
	*p = buffer->hash_next;
	buffer->hash_next = NULL;
	buffer->ptr.addr = 0;
}

void buffer_set_ptr(struct buffer_cache *buffers, struct buffer *buffer,
		   const struct node_ptr *ptr)
{
	struct buffer **p;

	hash_remove(buffers, buffer);
	buffer->ptr = *ptr;
	if (!ptr->addr)
		return;
	p = bucket(buffers, ptr->addr);
	buffer->hash_next = *p;
	*p = buffer;
}

static bool evictable(const struct buffer *buffer)
{
	return buffer->state == BUFFER_CLEAN && buffer->live && !buffer->pins &&
	       !buffer->children;
}

/* Removes a buffer from the list that it is on. */
static void unlist(struct buffer_cache *buffers, struct buffer *buffer)
{
	if (buffer->state == BUFFER_FREE)
		buffers->n_free--;
	else if (buffer->state == BUFFER_DIRTY)
		buffers->n_dirty--;
	else if (buffer->state == BUFFER_FROZEN)
		buffers->n_frozen--;
	else if (!list_empty(&buffer->link))
		buffers->n_lru--;
	list_del(&buffer->link);
}

static void enlist(struct buffer_cache *buffers, struct buffer *buffer)
{
	if (buffer->state == BUFFER_FREE) {
		/* It is used next, as its memory has been touched. */
		list_add_front(&buffers->free, &buffer->link);
		buffers->n_free++;
	} else if (buffer->state == BUFFER_DIRTY) {
		list_add(&buffers->dirty, &buffer->link);
		buffers->n_dirty++;
	} else if (buffer->state == BUFFER_FROZEN) {
		list_add(&buffers->frozen, &buffer->link);
		buffers->n_frozen++;
	} else if (evictable(buffer)) {
		list_add(&buffers->lru, &buffer->link);
		buffers->n_lru++;
	}
}

void buffer_set_state(struct buffer_cache *buffers, struct buffer *buffer,
		     enum buffer_state state)
{
	unlist(buffers, buffer);
	buffer->state = state;
	enlist(buffers, buffer);
}

/* Puts a buffer on the list that it belongs to, after something has changed
 * that decides whether it can be evicted. */
static void relist(struct buffer_cache *buffers, struct buffer *buffer)
{
	if (buffer->state != BUFFER_CLEAN ||
	    evictable(buffer) == !list_empty(&buffer->link))
		return;
	unlist(buffers, buffer);
	enlist(buffers, buffer);
}

void buffer_set_parent(struct buffer_cache *buffers, struct buffer *buffer,
		      struct buffer *parent)
{
	struct buffer *old = buffer->parent;

	if (old == parent)
		return;
	buffer->parent = parent;
	if (old) {
		old->children--;
		relist(buffers, old);
	}
	if (parent) {
		parent->children++;
		relist(buffers, parent);
	}
}

struct buffer *buffer_get(struct buffer_cache *buffers)
{
	struct buffer *f = list_first(&buffers->free, struct buffer, link);

	if (!f) {
		f = list_first(&buffers->lru, struct buffer, link);
		if (!f)
			return NULL;
		buffer_put(buffers, f);
	}
	buffer_set_state(buffers, f, BUFFER_LOADING);
	return f;
}

size_t buffer_available(const struct buffer_cache *buffers)
{
	return buffers->n_free + buffers->n_lru;
}

void buffer_put(struct buffer_cache *buffers, struct buffer *buffer)
{
	assert(!buffer->pins && !buffer->children && !buffer->writes &&
	       list_empty(&buffer->waiting));
	hash_remove(buffers, buffer);
	buffer_set_parent(buffers, buffer, NULL);
	buffer_set_state(buffers, buffer, BUFFER_FREE);
	buffers->siblings_unused += buffer->sibling;
	buffer->sibling = false;
	buffer->live = buffer->sealed = buffer->written = false;
	buffer->mirrored = false;
	buffer->bad = buffer->bad_mirror = false;
	buffer->tries = 0;
	buffer->ptr = (struct node_ptr){ 0, 0, 0, 0 };
}

void buffer_pin(struct buffer_cache *buffers, struct buffer *buffer)
{
	buffer->pins++;
	buffers->siblings_used += buffer->sibling;
	buffer->sibling = false;
	relist(buffers, buffer);
}

void buffer_unpin(struct buffer_cache *buffers, struct buffer *buffer)
{
	assert(buffer->pins);
	buffer->pins--;
	if (buffer->live)
		relist(buffers, buffer);
	else
		buffer_drop(buffers, buffer);
}

void buffer_drop(struct buffer_cache *buffers, struct buffer *buffer)
{
	if (buffer->live) {
		buffer->live = false;
		buffer_set_parent(buffers, buffer, NULL);
		relist(buffers, buffer);
	}
	if (buffer->state == BUFFER_FROZEN)
		return;
	/* Another node may have been given its slot. */
	hash_remove(buffers, buffer);
	if (buffer->state == BUFFER_DIRTY)
		buffer_set_state(buffers, buffer, BUFFER_CLEAN);
	if (buffer->state == BUFFER_CLEAN && !buffer->pins)
		buffer_put(buffers, buffer);
}

static const char *check_one(const struct buffer_cache *buffers,
			     const struct buffer *f)
{
	const bool listed = !list_empty(&f->link);

	if (f->state == BUFFER_FREE)
		return f->pins || f->children || f->ptr.addr ?
			"a free frame is in use" : NULL;
	if (f->ptr.addr && buffer_find(buffers, f->ptr.addr) != f)
		return "a frame is not found by its address";
	if (f->state == BUFFER_CLEAN && listed != evictable(f))
		return "a frame is wrongly on the lru list";
	if (f->live && f->parent && !f->parent->live)
		return "a live frame's parent is not live";
	if (f->live && f->state == BUFFER_DIRTY && f->parent &&
	    f->parent->state != BUFFER_DIRTY)
		return "a dirty frame's parent is not dirty";
	return NULL;
}

const char *buffer_check(const struct buffer_cache *buffers)
{
	size_t free = 0;

	for (size_t i = 0; i < buffers->count; i++) {
		const char *why = check_one(buffers, &buffers->all[i]);

		if (why)
			return why;
		free += buffers->all[i].state == BUFFER_FREE;
	}
	return free == buffers->n_free ? NULL : "free frames are miscounted";
}

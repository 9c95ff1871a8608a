/*
 * buffer.c - frames are chained in a hash by address; the clean ones that
 * nobody needs form a queue from which the oldest is evicted.
 *
 * Lists: free and lru hold what their names say; dirty and frozen hold all of
 * that state; a loading frame, and a clean one that can't be evicted, is on no
 * list.
 */
#include "tree/buffer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int frame_cache_new(size_t bytes, struct frames **frames)
{
	const size_t count = bytes / TRAX_NODE_BYTES;
	struct frames *f = calloc(1, sizeof(*f));
	size_t buckets = 1;

	if (!f)
		return -ENOMEM;
	while (buckets < count)
		buckets *= 2;
	f->mask = buckets - 1;
	f->count = f->n_free = count;
	f->all = calloc(count, sizeof(*f->all));
	f->buckets = calloc(buckets, sizeof(*f->buckets));
	list_init(&f->free);
	list_init(&f->lru);
	list_init(&f->dirty);
	list_init(&f->frozen);
	if (!f->all || !f->buckets ||
	    pool_new(TRAX_NODE_BYTES, count, &f->pool)) {
		frame_cache_free(f);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		f->all[i].node = pool_get(f->pool);
		list_init(&f->all[i].waiting);
		list_init(&f->all[i].later);
		list_add(&f->free, &f->all[i].link);
	}
	*frames = f;
	return 0;
}

void frame_cache_free(struct frames *frames)
{
	if (!frames)
		return;
	pool_free(frames->pool);
	free(frames->buckets);
	free(frames->all);
	free(frames);
}

static struct frame **bucket(const struct frames *frames, traxaddr addr)
{
	uint64_t x = addr / TRAX_NODE_SECTORS * 0x9e3779b97f4a7c15;

	return &frames->buckets[(x >> 32) & frames->mask];
}

struct frame *frame_find(const struct frames *frames, traxaddr addr)
{
	struct frame *f = *bucket(frames, addr);

	while (f && f->ptr.addr != addr)
		f = f->hash_next;
	return f;
}

static void hash_remove(struct frames *frames, struct frame *frame)
{
	struct frame **p;

	if (!frame->ptr.addr)
		return;
	p = bucket(frames, frame->ptr.addr);
	while (*p != frame)
		p = &(*p)->hash_next;
	*p = frame->hash_next;
	frame->hash_next = NULL;
	frame->ptr.addr = 0;
}

void frame_set_ptr(struct frames *frames, struct frame *frame,
		   const struct node_ptr *ptr)
{
	struct frame **p;

	hash_remove(frames, frame);
	frame->ptr = *ptr;
	if (!ptr->addr)
		return;
	p = bucket(frames, ptr->addr);
	frame->hash_next = *p;
	*p = frame;
}

static bool evictable(const struct frame *frame)
{
	return frame->state == FRAME_CLEAN && frame->live && !frame->pins &&
	       !frame->children;
}

/* Takes it off whatever list it is on. */
static void unlist(struct frames *frames, struct frame *frame)
{
	if (frame->state == FRAME_FREE)
		frames->n_free--;
	else if (frame->state == FRAME_DIRTY)
		frames->n_dirty--;
	else if (frame->state == FRAME_FROZEN)
		frames->n_frozen--;
	else if (!list_empty(&frame->link))
		frames->n_lru--;
	list_del(&frame->link);
}

static void enlist(struct frames *frames, struct frame *frame)
{
	if (frame->state == FRAME_FREE) {
		list_add(&frames->free, &frame->link);
		frames->n_free++;
	} else if (frame->state == FRAME_DIRTY) {
		list_add(&frames->dirty, &frame->link);
		frames->n_dirty++;
	} else if (frame->state == FRAME_FROZEN) {
		list_add(&frames->frozen, &frame->link);
		frames->n_frozen++;
	} else if (evictable(frame)) {
		list_add(&frames->lru, &frame->link);
		frames->n_lru++;
	}
}

void frame_set_state(struct frames *frames, struct frame *frame,
		     enum frame_state state)
{
	unlist(frames, frame);
	frame->state = state;
	enlist(frames, frame);
}

/* Something that decides over eviction has changed. */
static void relist(struct frames *frames, struct frame *frame)
{
	if (frame->state != FRAME_CLEAN ||
	    evictable(frame) == !list_empty(&frame->link))
		return;
	unlist(frames, frame);
	enlist(frames, frame);
}

void frame_set_parent(struct frames *frames, struct frame *frame,
		      struct frame *parent)
{
	struct frame *old = frame->parent;

	if (old == parent)
		return;
	frame->parent = parent;
	if (old) {
		old->children--;
		relist(frames, old);
	}
	if (parent) {
		parent->children++;
		relist(frames, parent);
	}
}

struct frame *frame_get(struct frames *frames)
{
	struct frame *f = list_first(&frames->free, struct frame, link);

	if (!f) {
		f = list_first(&frames->lru, struct frame, link);
		if (!f)
			return NULL;
		frame_put(frames, f);
	}
	frame_set_state(frames, f, FRAME_LOADING);
	return f;
}

size_t frame_available(const struct frames *frames)
{
	return frames->n_free + frames->n_lru;
}

void frame_put(struct frames *frames, struct frame *frame)
{
	assert(!frame->pins && !frame->children && !frame->writes &&
	       list_empty(&frame->waiting));
	hash_remove(frames, frame);
	frame_set_parent(frames, frame, NULL);
	frame_set_state(frames, frame, FRAME_FREE);
	frame->live = frame->sealed = frame->written = false;
	frame->mirrored = false;
	frame->bad = frame->bad_twin = false;
	frame->tries = 0;
	frame->ptr = (struct node_ptr){ 0, 0, 0, 0 };
}

void frame_pin(struct frames *frames, struct frame *frame)
{
	frame->pins++;
	relist(frames, frame);
}

void frame_unpin(struct frames *frames, struct frame *frame)
{
	assert(frame->pins);
	frame->pins--;
	if (frame->live)
		relist(frames, frame);
	else
		frame_drop(frames, frame);
}

void frame_drop(struct frames *frames, struct frame *frame)
{
	if (frame->live) {
		frame->live = false;
		frame_set_parent(frames, frame, NULL);
		relist(frames, frame);
	}
	if (frame->state == FRAME_FROZEN)
		return;
	/* Its slot may be taken by another node now. */
	hash_remove(frames, frame);
	if (frame->state == FRAME_DIRTY)
		frame_set_state(frames, frame, FRAME_CLEAN);
	if (frame->state == FRAME_CLEAN && !frame->pins)
		frame_put(frames, frame);
}

static const char *check_one(const struct frames *frames,
			     const struct frame *f)
{
	const bool listed = !list_empty(&f->link);

	if (f->state == FRAME_FREE)
		return f->pins || f->children || f->ptr.addr ?
			"a free frame is in use" : NULL;
	if (f->ptr.addr && frame_find(frames, f->ptr.addr) != f)
		return "a frame is not found by its address";
	if (f->state == FRAME_CLEAN && listed != evictable(f))
		return "a frame is wrongly on the lru list";
	if (f->live && f->parent && !f->parent->live)
		return "a live frame's parent is not live";
	if (f->live && f->state == FRAME_DIRTY && f->parent &&
	    f->parent->state != FRAME_DIRTY)
		return "a dirty frame's parent is not dirty";
	return NULL;
}

const char *frame_check(const struct frames *frames)
{
	size_t free = 0;

	for (size_t i = 0; i < frames->count; i++) {
		const char *why = check_one(frames, &frames->all[i]);

		if (why)
			return why;
		free += frames->all[i].state == FRAME_FREE;
	}
	return free == frames->n_free ? NULL : "free frames are miscounted";
}

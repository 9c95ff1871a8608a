/*
 * segments.c - the read cache of a drive. It has a handful of segments, so they
 * are searched one after the other.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/segments.h"

int segments_init(struct segments *segments, uint32_t count,
		  uint32_t room_lbns)
{
	*segments = (struct segments){
		.v = calloc(count ? count : 1, sizeof(*segments->v)),
		.count = count,
		.room_lbns = room_lbns,
	};
	return segments->v ? 0 : -ENOMEM;
}

void segments_fini(struct segments *segments)
{
	free(segments->v);
	segments->v = NULL;
}

void segments_clear(struct segments *segments)
{
	for (uint32_t i = 0; i < segments->count; i++)
		segments->v[i] = (struct cache_segment){ 0 };
}

struct cache_segment *segments_find(struct segments *segments, uint64_t lbn)
{
	for (uint32_t i = 0; i < segments->count; i++) {
		struct cache_segment *s = &segments->v[i];

		if (lbn >= s->first && lbn - s->first < s->n) {
			s->used = ++segments->clock;
			return s;
		}
	}
	return NULL;
}

bool segments_has(struct segments *segments, uint64_t lbn, uint32_t n)
{
	const struct cache_segment *s = segments_find(segments, lbn);

	return s && lbn + n <= s->first + s->n;
}

static struct cache_segment *oldest(struct segments *segments)
{
	struct cache_segment *s = segments->v;

	for (uint32_t i = 1; i < segments->count; i++) {
		if (segments->v[i].used < s->used)
			s = &segments->v[i];
	}
	return s;
}

struct cache_segment *segments_add(struct segments *segments, uint64_t lbn,
			     uint32_t n)
{
	struct cache_segment *s = NULL;
	uint64_t end = lbn + n;

	if (!segments->count)
		return NULL;
	for (uint32_t i = 0; i < segments->count && !s; i++) {
		struct cache_segment *at = &segments->v[i];

		if (at->n && lbn >= at->first && lbn <= at->first + at->n)
			s = at;
	}
	if (!s) {
		s = oldest(segments);
		*s = (struct cache_segment){ .first = lbn };
	}
	if (end < s->first + s->n)
		end = s->first + s->n;
	if (end - s->first > segments->room_lbns)
		s->first = end - segments->room_lbns;
	s->n = (uint32_t)(end - s->first);
	s->used = ++segments->clock;
	return s;
}

void segments_drop(struct segments *segments, uint64_t lbn, uint32_t n)
{
	for (uint32_t i = 0; i < segments->count; i++) {
		struct cache_segment *s = &segments->v[i];

		if (s->first >= lbn + n || lbn >= s->first + s->n)
			continue;
		if (lbn > s->first)
			s->n = (uint32_t)(lbn - s->first);
		else
			*s = (struct cache_segment){ 0 };
	}
}

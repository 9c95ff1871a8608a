/*
 * recent.c - a ring of ranges, the last of which may still grow.
 *
 * Segments are taken over least recently used first, and what goes on from one
 * that is there, or is of it, uses that one.
 */
#include "extract/probe/recent.h"

void recent_init(struct recent *recent)
{
	*recent = (struct recent){ 0 };
	recent_forget(recent);
}

void recent_forget(struct recent *recent)
{
	for (unsigned i = 0; i < RECENT_MAX; i++)
		recent->ring[i].first = recent->ring[i].end = UINT64_MAX;
	recent->read_end = UINT64_MAX;
}

bool recent_streams(const struct recent *recent, uint64_t unit)
{
	return recent->ahead && unit >= recent->read_end &&
	       unit - recent->read_end <= recent->ahead;
}

/* What goes on from a range, or is of it, makes that the last one used: it is
 * taken out of its place, and is part of [*first, *end). */
static void renew(struct recent *recent, uint64_t *first, uint64_t *end)
{
	unsigned n = recent->depth < RECENT_MAX ? recent->depth : RECENT_MAX;

	for (unsigned i = 1; i <= n; i++) {
		unsigned k = (recent->next + RECENT_MAX - i) % RECENT_MAX;

		if (*first < recent->ring[k].first ||
		    *first > recent->ring[k].end)
			continue;
		*first = recent->ring[k].first;
		if (*end < recent->ring[k].end)
			*end = recent->ring[k].end;
		for (; --i; k = (k + 1) % RECENT_MAX)
			recent->ring[k] = recent->ring[(k + 1) % RECENT_MAX];
		recent->next = k;
		return;
	}
}

void recent_add(struct recent *recent, uint64_t first, uint64_t end,
		bool idle)
{
	unsigned last = (recent->next + RECENT_MAX - 1) % RECENT_MAX;
	uint64_t got, keep = end;

	if (recent->read_end != UINT64_MAX) {
		got = idle ? recent->ahead : recent->slack;
		if (recent_streams(recent, first))
			got = first - recent->read_end;
		recent->ring[last].end = recent->read_end + got;
	}
	renew(recent, &first, &keep);
	recent->ring[recent->next].first = first;
	recent->ring[recent->next].end = keep;
	recent->next = (recent->next + 1) % RECENT_MAX;
	recent->read_end = end;
}

bool recent_has(const struct recent *recent, uint64_t unit)
{
	unsigned n = recent->depth < RECENT_MAX ? recent->depth : RECENT_MAX;

	for (unsigned i = 1; i <= n; i++) {
		unsigned k = (recent->next + RECENT_MAX - i) % RECENT_MAX;

		if (unit >= recent->ring[k].first &&
		    unit < recent->ring[k].end)
			return true;
	}
	return false;
}

void recent_more(struct recent *recent)
{
	recent->depth = recent->depth < RECENT_MAX / 2 ? recent->depth * 2 + 1 :
							 RECENT_MAX;
	recent->slack = recent->slack * 2 + 1 < recent->ahead ?
				recent->slack * 2 + 1 : recent->ahead;
}

/*
 * remap_detect.c - a small table of tracks whose readings were off.
 *
 * Completions come late now and then, but not by the same time: a track is
 * suspected when it was off by about as much each time and never right in
 * between.  While readings are off here and there the model is wrong and not a
 * track.
 */
#include <math.h>
#include <stddef.h>

#include "sched/head/remap_detect.h"

/* In revolutions: a reading that is off by less is right, and two that differ
 * by less are off by the same. */
#define RIGHT 0.02
#define SAME 0.025
/* A track has moved when it was off this many times by the same; and this many
 * readings must be right before each of them. */
#define TIMES 4u
#define RIGHT_BEFORE 2u

static struct remap_detect_track *find(struct remap_detect *c, uint64_t number)
{
	unsigned i;

	for (i = 0; i < REMAP_DETECT_TRACKS; i++)
		if (c->track[i].number == number)
			return &c->track[i];
	return NULL;
}

bool remap_detect_see(struct remap_detect *c, uint64_t track, double off)
{
	uint64_t number = track + 1;
	struct remap_detect_track *g = find(c, number);
	uint64_t right = c->right;

	c->right = fabs(off) < RIGHT ? right + 1 : 0;
	if (c->right) {
		if (g)
			g->number = 0;
		return false;
	}
	if (right < RIGHT_BEFORE)
		return false;
	if (!g) {
		g = &c->track[c->next++ % REMAP_DETECT_TRACKS];
		*g = (struct remap_detect_track){ number, off, 0 };
	}
	if (fabs(off - g->off) > SAME) {
		if (g->times > 1)
			g->times--;	/* one of them came late */
		else
			*g = (struct remap_detect_track){ number, off, 1 };
		return false;
	}
	if (++g->times < TIMES)
		return false;
	g->number = 0;
	return true;
}

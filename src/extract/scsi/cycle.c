/*
 * cycle.c - where the n-th track of a repeating order lies, and back.
 */
#include <string.h>

#include "extract/scsi/cycle.h"

void cycle_settle(struct cycle *cycle)
{
	unsigned i;

	cycle->tracks = cycle->blocks = 0;
	for (i = 0; i < cycle->slots; i++) {
		struct cycle_slot *slot = &cycle->slot[i];

		slot->before = cycle->tracks;
		slot->before_blocks = cycle->blocks;
		cycle->tracks += slot->tracks;
		cycle->blocks += slot->tracks * slot->blocks;
	}
}

unsigned cycle_slot_of(const struct cycle *cycle, uint64_t track,
		       uint64_t *in_slot)
{
	uint64_t r = track % cycle->tracks;
	unsigned lo = 0, hi = cycle->slots, mid;

	while (hi - lo > 1) {
		mid = (lo + hi) / 2;
		if (cycle->slot[mid].before <= r)
			lo = mid;
		else
			hi = mid;
	}
	*in_slot = r - cycle->slot[lo].before;
	return lo;
}

void cycle_place_of(const struct cycle *cycle, uint64_t track,
		    struct cycle_place *out)
{
	uint64_t i;
	const struct cycle_slot *slot =
		&cycle->slot[cycle_slot_of(cycle, track, &i)];

	out->head = slot->head;
	out->cylinder = (uint32_t)(slot->cylinder +
				   (int64_t)(track / cycle->tracks) *
					   cycle->cylinder_step +
				   slot->step * (int64_t)i);
}

uint64_t cycle_blocks_before(const struct cycle *cycle, uint64_t track)
{
	uint64_t i;
	const struct cycle_slot *slot =
		&cycle->slot[cycle_slot_of(cycle, track, &i)];

	return track / cycle->tracks * cycle->blocks + slot->before_blocks +
	       i * slot->blocks;
}

static bool slots_match(const struct cycle_slot *a, const struct cycle_slot *b,
			int64_t shift)
{
	return a->head == b->head && a->step == b->step &&
	       a->tracks == b->tracks && a->blocks == b->blocks &&
	       b->cylinder - a->cylinder == shift;
}

static bool repeats_by(const struct cycle_slot *slot, unsigned n, unsigned by)
{
	const struct cycle_slot *a = slot + n - 2 * by, *b = a + by;
	int64_t shift = b->cylinder - a->cylinder;
	unsigned i;

	for (i = 0; i < by; i++)
		if (!shift || !slots_match(&a[i], &b[i], shift))
			return false;
	return true;
}

bool cycle_recognise(const struct cycle_slot *slot, unsigned n,
		     struct cycle *out)
{
	unsigned by, i;

	for (by = 1; 2 * by <= n && by <= CYCLE_MAX_SLOTS; by++) {
		if (!repeats_by(slot, n, by))
			continue;
		memcpy(out->slot, slot + n - by, by * sizeof(*slot));
		out->slots = by;
		out->cylinder_step = slot[n - by].cylinder -
				     slot[n - 2 * by].cylinder;
		for (i = 0; i < by; i++)
			out->slot[i].cylinder += out->cylinder_step;
		cycle_settle(out);
		return true;
	}
	return false;
}

/*
 * scsi_order.c - where the n-th track of an order lies, and what orders tracks
 * make.
 */
#include <string.h>

#include "extract/scsi/scsi_order.h"

/* Slots that are looked at to see whether they repeat. */
#define LOOKS 512u
/*
 * Tracks of a slot in a row that are odd by the same, so that they are of
 * another zone: along a surface; cylinders, if most of their tracks are odd; or
 * tracks of one head, which a scratch may go over, too.
 */
#define ZONE_TIMES 3u
#define ZONE_CYLINDERS 2u
#define ZONE_ALONE 6u

void order_settle(struct track_order *o)
{
	o->tracks = o->blocks = 0;
	for (unsigned i = 0; i < o->slots; i++) {
		o->slot[i].before = o->tracks;
		o->slot[i].before_blocks = o->blocks;
		o->tracks += o->slot[i].tracks;
		o->blocks += o->slot[i].tracks * o->slot[i].blocks;
	}
}

struct order_slot *order_slot_of(struct track_order *o, uint64_t track,
				 uint64_t *in_slot)
{
	uint64_t r = track % o->tracks;
	unsigned lo = 0, hi = o->slots, mid;

	while (hi - lo > 1) {
		mid = (lo + hi) / 2;
		if (o->slot[mid].before <= r)
			lo = mid;
		else
			hi = mid;
	}
	*in_slot = r - o->slot[lo].before;
	return &o->slot[lo];
}

void order_place(struct track_order *o, uint64_t track, struct track_place *out)
{
	uint64_t i;
	const struct order_slot *slot = order_slot_of(o, track, &i);

	out->head = slot->head;
	out->cylinder = (uint32_t)(slot->cylinder + slot->step * (int64_t)i +
				   (int64_t)(track / o->tracks) *
					   o->cylinder_step);
}

uint64_t order_blocks(struct track_order *o, uint64_t track)
{
	uint64_t i;
	const struct order_slot *slot = order_slot_of(o, track, &i);

	return track / o->tracks * o->blocks + slot->before_blocks +
	       i * slot->blocks;
}

void order_begin(struct track_order *o, const struct track_place *place,
		 const struct track_place *next, uint32_t blocks)
{
	int64_t step = (int64_t)next->cylinder - place->cylinder;

	if (next->head != place->head || step < -1 || step > 1)
		step = 0;
	o->slot[0] = (struct order_slot){
		.head = place->head, .cylinder = place->cylinder,
		.step = (int32_t)step, .tracks = step ? UINT32_MAX : 1,
		.blocks = blocks,
	};
	o->slots = 1;
	o->cylinder_step = 0;
	order_settle(o);
}

unsigned order_ahead(struct track_order *o, uint64_t track,
		     const struct track_place *place, unsigned most)
{
	uint64_t in_slot;
	const struct order_slot *slot = order_slot_of(o, track, &in_slot);
	struct track_place there;

	if (slot->tracks > 2 && in_slot + most >= slot->tracks)
		most = (unsigned)(slot->tracks - in_slot);
	for (unsigned i = 1; i <= most; i++) {
		order_place(o, track + i, &there);
		if (there.cylinder == place->cylinder &&
		    there.head == place->head)
			return i;
	}
	return 0;
}

/* ---- which orders there are ---- */

/* The slots of the tracks found last: slot[0] is that of the last ones. */
static unsigned last_slots(const struct track_runs *runs,
			   struct order_slot *slot)
{
	const struct track_run *run;
	struct order_slot *s = NULL;
	unsigned n = 0;

	for (size_t i = runs->n; i-- > 0;) {
		run = &runs->v[i];
		if (s && run->step && s->step == run->step &&
		    s->head == run->place.head &&
		    s->cylinder == run->place.cylinder +
				   (int64_t)run->count * run->step) {
			s->cylinder = run->place.cylinder;
			s->tracks += run->count;
			continue;
		}
		if (n == LOOKS)
			break;
		s = &slot[n++];
		*s = (struct order_slot){
			.head = run->place.head,
			.cylinder = run->place.cylinder,
			.step = run->step, .tracks = run->count,
			.blocks = run->usual,
		};
	}
	return n;
}

/* Are the last slots the same as those `by` before, some cylinders further? */
static bool repeats_by(const struct order_slot *slot, unsigned by)
{
	int64_t shift = slot[0].cylinder - slot[by].cylinder;

	for (unsigned i = 0; i < by; i++) {
		const struct order_slot *a = &slot[i], *b = &slot[i + by];

		if (!shift || a->head != b->head || a->step != b->step ||
		    a->tracks != b->tracks ||
		    a->cylinder - b->cylinder != shift)
			return false;
	}
	return true;
}

/* The order that the slots make, as it begins behind them. */
static bool make_order(struct track_order *o, const struct order_slot *slot,
		       unsigned n)
{
	unsigned by = 1, i;

	while (2 * by <= n && !repeats_by(slot, by))
		by++;
	if (2 * by > n)
		return false;
	o->slots = by;
	o->cylinder_step = slot[0].cylinder - slot[by].cylinder;
	for (i = 0; i < by; i++) {
		o->slot[i] = slot[by - 1 - i];
		o->slot[i].cylinder += o->cylinder_step;
	}
	return true;
}

bool order_recognise(struct track_order *o, const struct track_runs *runs,
		     const struct track_place *place)
{
	struct order_slot slot[LOOKS];

	if (!make_order(o, slot, last_slots(runs, slot)) ||
	    o->slot[0].head != place->head ||
	    o->slot[0].cylinder != place->cylinder) {
		o->slots = 0;
		return false;
	}
	order_settle(o);
	return true;
}

bool order_odd(struct track_order *o, uint64_t track, int32_t more)
{
	uint64_t number;
	struct order_slot *slot = order_slot_of(o, track, &number);
	unsigned odd = 0, times = ZONE_TIMES;

	number += track / o->tracks * slot->tracks;
	if (slot->more != more || number != slot->odd + 1)
		slot->times = 0;
	slot->more = more;
	slot->odd = number;
	slot->times++;
	if (slot->tracks == 1) {
		for (unsigned i = 0; i < o->slots; i++)
			odd += o->slot[i].times && o->slot[i].odd + 1 >= number;
		times = 2 * odd > o->slots ? ZONE_CYLINDERS : ZONE_ALONE;
	}
	if (slot->times < times)
		return false;
	slot->seen = slot->times = 0;
	for (unsigned i = 0; i < o->slots && times == ZONE_CYLINDERS; i++)
		o->slot[i].seen = o->slot[i].times = 0;
	return true;
}

/* ---- along it ---- */

static bool by_cylinder(const struct track_order *o)
{
	for (unsigned i = 0; i < o->slots; i++)
		if (o->slot[i].tracks > 2)
			return false;
	return o->cylinder_step;
}

uint64_t order_region_last(struct track_order *o, uint64_t track)
{
	struct track_place here, next;
	const struct order_slot *slot;
	uint64_t in_slot;

	if (!by_cylinder(o)) {
		slot = order_slot_of(o, track, &in_slot);
		return track + slot->tracks - 1 - in_slot;
	}
	order_place(o, track, &here);
	for (;; track++) {
		order_place(o, track + 1, &next);
		if (next.cylinder != here.cylinder)
			return track;
	}
}

/*
 * scsi_order.c - slots, and the cycles that they make.
 */
#include <string.h>

#include "extract/scsi/scsi_order.h"

/* An order has been followed when so many of its slots have ended. */
#define FOLLOWED 2u

static void record_slot(struct order *order, struct cycle_slot slot,
			uint64_t tracks)
{
	struct cycle_slot *last;

	if (order->records == ORDER_RECORDS) {
		order->records /= 2;
		memmove(order->record, order->record + ORDER_RECORDS / 2,
			order->records * sizeof(slot));
	}
	last = order->records ? &order->record[order->records - 1] : NULL;
	slot.tracks = tracks;
	if (last && slot.step && last->head == slot.head &&
	    last->step == slot.step && slot.cylinder == last->cylinder +
				       slot.step * (int64_t)last->tracks)
		last->tracks += tracks;
	else
		order->record[order->records++] = slot;
}

void order_end(struct order *order, uint64_t track)
{
	const struct cycle *c = &order->cycle;
	uint64_t left;

	order->fresh = order->repeats &&
		       track / c->tracks * c->slots +
		       cycle_slot_of(c, track, &left) >= FOLLOWED;
	if (order->fresh)
		order->records = 0;
	for (unsigned i = 0; !order->fresh && i < c->slots &&
	     track > c->slot[i].before; i++) {
		left = track - c->slot[i].before;
		record_slot(order, c->slot[i], left < c->slot[i].tracks ?
						       left :
						       c->slot[i].tracks);
	}
	order->cycle.slots = 0;
	order->repeats = false;
	memset(order->slot, 0, sizeof(order->slot));
}

/* Two tracks where the head turns round, the last of a cylinder and the first
 * of the next, need not be of one size. */
static void split_turns(struct cycle *c)
{
	unsigned i, n = 0;

	for (i = 0; i < c->slots; i++) {
		if (c->slot[i].tracks > 2)
			return;
		n += (unsigned)c->slot[i].tracks;
	}
	if (n > CYCLE_MAX_SLOTS)
		return;
	for (i = c->slots, c->slots = n; i-- > 0;) {
		struct cycle_slot slot = c->slot[i];

		if (slot.tracks == 2) {
			c->slot[--n] = slot;
			c->slot[n].cylinder += slot.step;
			c->slot[n].tracks = 1;
		}
		slot.tracks = 1;
		c->slot[--n] = slot;
	}
	cycle_settle(c);
}

/* Does the cycle before go on there with its slot i? */
static bool goes_on_with(const struct order *order, unsigned i,
			 const struct cycle_place *place)
{
	const struct cycle *c = &order->before;
	const struct cycle_slot *slot = &c->slot[i], *prev, *last;
	int64_t wrap = i ? 0 : c->cylinder_step;

	if (slot->head != place->head)
		return false;
	if (order->fresh)
		return true;
	if (!order->records)
		return false;
	prev = &c->slot[i ? i - 1 : c->slots - 1];
	last = &order->record[order->records - 1];
	return last->head == prev->head && last->step == prev->step &&
	       last->tracks == prev->tracks &&
	       place->cylinder - last->cylinder ==
		       slot->cylinder + wrap - prev->cylinder;
}

static bool take_up_last(struct order *order, const struct cycle_place *place)
{
	const struct cycle *from = &order->before;
	struct cycle *to = &order->cycle;
	unsigned i, k;

	for (i = 0; i < from->slots && !goes_on_with(order, i, place); i++)
		;
	if (i == from->slots)
		return false;
	to->slots = from->slots;
	to->cylinder_step = from->cylinder_step;
	for (k = 0; k < from->slots; k++) {
		to->slot[k] = from->slot[(i + k) % from->slots];
		to->slot[k].cylinder += place->cylinder -
					from->slot[i].cylinder;
		if (i + k >= from->slots)
			to->slot[k].cylinder += from->cylinder_step;
	}
	cycle_settle(to);
	return true;
}

bool order_recognise(struct order *order, const struct cycle_place *place)
{
	struct cycle *c = &order->cycle;
	bool found = cycle_recognise(order->record, order->records, c) &&
		     c->slot[0].cylinder == place->cylinder &&
		     c->slot[0].head == place->head;

	if (found)
		order->before = *c;
	else
		found = take_up_last(order, place);
	order->repeats = found;
	if (found)
		split_turns(c);
	else
		c->slots = 0;
	return found;
}

void order_begin_slot(struct order *order, const struct cycle_place *place,
		      const struct cycle_place *next, uint32_t blocks)
{
	struct cycle_slot *slot = &order->cycle.slot[0];

	memset(slot, 0, sizeof(*slot));
	slot->head = place->head;
	slot->cylinder = place->cylinder;
	slot->blocks = blocks;
	slot->step = (int32_t)(next->cylinder - place->cylinder);
	if (next->head != slot->head || slot->step < -1 || slot->step > 1)
		slot->step = 0;
	slot->tracks = slot->step ? UINT32_MAX : 1;
	order->cycle.slots = 1;
	order->cycle.cylinder_step = 0;
	cycle_settle(&order->cycle);
}

uint32_t order_last_blocks(const struct order *order, uint32_t head)
{
	for (unsigned i = order->records; i > 0; i--)
		if (order->record[i - 1].head == head)
			return order->record[i - 1].blocks;
	return order->records ? order->record[order->records - 1].blocks :
	       order->before.slots ? order->before.slot[0].blocks : 0;
}

struct order_slot *order_slot_of(struct order *order, uint64_t track)
{
	uint64_t in_slot;

	return &order->slot[cycle_slot_of(&order->cycle, track, &in_slot)];
}

void order_set_size(struct order *order, uint64_t track, uint32_t blocks)
{
	uint64_t in_slot;
	unsigned slot = cycle_slot_of(&order->cycle, track, &in_slot);

	order->cycle.slot[slot].blocks = blocks;
	order->slot[slot].seen = 1;
	order->slot[slot].summed = false;
	order->slot[slot].times = 0;
	cycle_settle(&order->cycle);
}

unsigned order_odd(struct order *order, uint64_t track, int32_t more)
{
	const struct cycle *c = &order->cycle;
	uint64_t in_slot, number;
	unsigned slot = cycle_slot_of(c, track, &in_slot);
	struct order_slot *state = &order->slot[slot];

	number = track / c->tracks * c->slot[slot].tracks + in_slot;
	if (!state->times || state->more != more || number != state->odd + 1)
		state->times = 0;
	state->more = more;
	state->odd = number;
	return ++state->times;
}

static bool by_cylinder(const struct order *order)
{
	for (unsigned i = 0; i < order->cycle.slots; i++)
		if (order->cycle.slot[i].tracks > 2)
			return false;
	return order->repeats;
}

uint64_t order_region_last(const struct order *order, uint64_t track)
{
	struct cycle_place here, next;
	uint64_t in_slot;
	unsigned slot;

	if (!by_cylinder(order)) {
		slot = cycle_slot_of(&order->cycle, track, &in_slot);
		return track + order->cycle.slot[slot].tracks - 1 - in_slot;
	}
	cycle_place_of(&order->cycle, track, &here);
	for (;; track++) {
		cycle_place_of(&order->cycle, track + 1, &next);
		if (next.cylinder != here.cylinder)
			return track;
	}
}

unsigned order_ahead(const struct order *order, uint64_t track,
		     const struct cycle_place *place, unsigned most)
{
	struct cycle_place there;

	for (unsigned i = 1; i <= most; i++) {
		cycle_place_of(&order->cycle, track + i, &there);
		if (there.cylinder == place->cylinder &&
		    there.head == place->head)
			return i;
	}
	return 0;
}

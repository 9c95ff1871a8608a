/*
 * scsi_model.c - slots, cycles, and how sure they are.
 */
#include <string.h>

#include "extract/scsi_model.h"

#define ZONE_TIMES 8u
#define SURE 3u

static struct cycle_slot *slot_at(struct model *model, uint64_t track,
				  unsigned *slot)
{
	uint64_t in_slot;

	*slot = cycle_slot_of(&model->cycle, track, &in_slot);
	return &model->cycle.slot[*slot];
}

static void record_slot(struct model *model, struct cycle_slot slot,
			uint64_t tracks)
{
	if (model->records == MODEL_RECORDS) {
		model->records /= 2;
		memmove(model->record, model->record + MODEL_RECORDS / 2,
			model->records * sizeof(slot));
	}
	slot.tracks = tracks;
	model->record[model->records++] = slot;
}

/* Only for the sizes: nothing follows it. */
static void record_cycle(struct model *model)
{
	unsigned i;

	model->records = 0;
	for (i = 0; i < model->cycle.slots; i++)
		model->record[model->records++] = model->cycle.slot[i];
	model->record[0].head = UINT32_MAX;
}

void model_end(struct model *model, uint64_t track, bool proven)
{
	const struct cycle *c = &model->cycle;
	unsigned i;

	model->fresh = model->in_cycle && proven;
	if (model->fresh)
		record_cycle(model);
	else
		for (i = 0; i < c->slots && track > c->slot[i].before; i++)
			record_slot(model, c->slot[i],
				    track - c->slot[i].before <
						    c->slot[i].tracks ?
					    track - c->slot[i].before :
					    c->slot[i].tracks);
	model->cycle.slots = 0;
	model->in_cycle = false;
	memset(model->slot, 0, sizeof(model->slot));
}

bool model_recognise(struct model *model, const struct cycle_place *place)
{
	struct cycle_place first;

	if (!cycle_recognise(model->record, model->records, &model->cycle))
		return false;
	cycle_place_of(&model->cycle, 0, &first);
	if (first.cylinder != place->cylinder || first.head != place->head) {
		model->cycle.slots = 0;
		return false;
	}
	model->in_cycle = true;
	model->before = model->cycle;
	return true;
}

/* Does the cycle before go on there with its slot i? */
static bool recall_fits(const struct model *model, unsigned i,
			const struct cycle_place *place)
{
	const struct cycle *c = &model->before;
	const struct cycle_slot *slot = &c->slot[i], *prev, *last;
	int64_t wrap = i ? 0 : c->cylinder_step;

	if (slot->head != place->head)
		return false;
	if (model->fresh)
		return true;
	if (!model->records)
		return false;
	prev = &c->slot[i ? i - 1 : c->slots - 1];
	last = &model->record[model->records - 1];
	return last->head == prev->head && last->step == prev->step &&
	       last->tracks == prev->tracks &&
	       place->cylinder - last->cylinder ==
		       slot->cylinder + wrap - prev->cylinder;
}

bool model_recall(struct model *model, const struct cycle_place *place)
{
	const struct cycle *from = &model->before;
	struct cycle *to = &model->cycle;
	unsigned i, k;

	for (i = 0; i < from->slots && !recall_fits(model, i, place); i++)
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
	model->in_cycle = true;
	return true;
}

bool model_by_cylinder(const struct model *model)
{
	unsigned i;

	for (i = 0; i < model->cycle.slots; i++)
		if (model->cycle.slot[i].tracks > 2)
			return false;
	return model->in_cycle;
}

/* Is one of its tracks the last of a cylinder? */
static bool slot_may_spare(const struct model *model, unsigned slot)
{
	const struct cycle_slot *s = &model->cycle.slot[slot];
	uint64_t i;

	if (!model_by_cylinder(model))
		return false;
	for (i = 0; i < s->tracks; i++)
		if (model_region_last(model, s->before + i) == s->before + i)
			return true;
	return false;
}

/* Along a surface tracks are of one size, whichever sweep they belong to; but
 * for the last of a cylinder, which may hold spares. */
static void share_size(struct model *model, unsigned slot)
{
	const struct cycle_slot *from = &model->cycle.slot[slot];
	unsigned i;

	cycle_settle(&model->cycle);
	if (!model->in_cycle || slot_may_spare(model, slot))
		return;
	for (i = 0; i < model->cycle.slots; i++)
		if (model->cycle.slot[i].head == from->head &&
		    !slot_may_spare(model, i)) {
			model->cycle.slot[i].blocks = from->blocks;
			model->slot[i].right = model->slot[slot].right;
		}
	cycle_settle(&model->cycle);
}

bool model_fresh(const struct model *model, uint64_t track)
{
	uint64_t in_slot;
	const struct model_slot *state = &model->slot[cycle_slot_of(
		&model->cycle, track, &in_slot)];

	return !state->right && !state->times;
}

void model_set_blocks(struct model *model, uint64_t track, uint32_t blocks)
{
	unsigned slot;

	slot_at(model, track, &slot)->blocks = blocks;
	model->slot[slot].right = 1;
	share_size(model, slot);
}

void model_begin_slot(struct model *model, const struct cycle_place *place,
		      const struct cycle_place *next, uint32_t blocks)
{
	struct cycle_slot *slot = &model->cycle.slot[0];

	memset(slot, 0, sizeof(*slot));
	slot->head = place->head;
	slot->cylinder = place->cylinder;
	slot->blocks = blocks;
	slot->step = (int32_t)(next->cylinder - place->cylinder);
	if (next->head != slot->head || slot->step < -1 || slot->step > 1)
		slot->step = 0;
	slot->tracks = slot->step ? UINT32_MAX : 1;
	model->slot[0].right = 1;
	model->cycle.slots = 1;
	model->cycle.cylinder_step = 0;
	cycle_settle(&model->cycle);
}

uint32_t model_last_blocks(const struct model *model, uint32_t head)
{
	unsigned i;

	for (i = model->records; i > 0; i--)
		if (model->record[i - 1].head == head)
			return model->record[i - 1].blocks;
	return model->records ? model->record[model->records - 1].blocks : 0;
}

uint64_t model_sure(const struct model *model, uint64_t track, uint64_t most)
{
	uint64_t n = 0, in_slot;
	unsigned slot, seen;

	for (seen = 0; n < most && seen <= model->cycle.slots; seen++) {
		slot = cycle_slot_of(&model->cycle, track + n, &in_slot);
		if (model->slot[slot].right < SURE)
			break;
		n += model->cycle.slot[slot].tracks - in_slot;
	}
	return n < most && seen <= model->cycle.slots ? n : most;
}

void model_right(struct model *model, uint64_t track)
{
	unsigned slot;

	slot_at(model, track, &slot);
	model->slot[slot].right++;
	if (model->slot[slot].right <= SURE)
		share_size(model, slot);
}

/*
 * Has another slot's track changed in the last two cycles?  1; 2: and its slot
 * was then changed.
 */
static int others_odd(const struct model *model, unsigned slot, uint64_t track)
{
	const struct model_slot *other;
	int most = 0, now;
	unsigned i;

	for (i = 0; i < model->cycle.slots && most < 2; i++) {
		other = &model->slot[i];
		if (i == slot || !other->times ||
		    track - other->odd_track >= 2 * model->cycle.tracks)
			continue;
		now = other->more || track - other->odd_track >=
					     model->cycle.tracks ? 1 : 2;
		most = now > most ? now : most;
	}
	return most;
}

/*
 * A slot's tracks hold what the fullest does: slips only take away.  Less, on
 * track after track, is a new zone when other surfaces say the same, or when it
 * goes on; a scratch over some tracks of one surface is not.  Where the rest of
 * the cylinder has begun a new zone one track is enough.
 */
bool model_odd(struct model *model, uint64_t track, int32_t more)
{
	unsigned slot;
	struct cycle_slot *s = slot_at(model, track, &slot);
	struct model_slot *state = &model->slot[slot];
	uint64_t number = track / model->cycle.tracks * s->tracks +
			  track % model->cycle.tracks - s->before;
	bool next = number == state->odd_number + 1;
	int others = others_odd(model, slot, track);

	state->times = state->times && next && state->more == more ?
			       state->times + 1 : 1;
	if (others > 1 && !model_by_cylinder(model))
		others = 1;
	state->more = more;
	state->odd_track = track;
	state->odd_number = number;
	if (more < 0 && state->times < ZONE_TIMES &&
	    (int)state->times + others < 3)
		return false;
	s->blocks += (uint32_t)more;
	state->more = 0;
	state->right = more < 0 ? state->times : 1;
	share_size(model, slot);
	return true;
}

void model_doubt(struct model *model)
{
	unsigned i;

	for (i = 0; i < model->cycle.slots; i++)
		model->slot[i].right = 0;
}

/* ---- regions ---- */

uint64_t model_region_last(const struct model *model, uint64_t track)
{
	struct cycle_place here, next;
	uint64_t in_slot;
	unsigned slot;

	if (!model_by_cylinder(model)) {
		slot = cycle_slot_of(&model->cycle, track, &in_slot);
		return track + model->cycle.slot[slot].tracks - 1 - in_slot;
	}
	cycle_place_of(&model->cycle, track, &here);
	for (;; track++) {
		cycle_place_of(&model->cycle, track + 1, &next);
		if (next.cylinder != here.cylinder)
			return track;
	}
}

/* Where all tracks of a cylinder are full there is no room for any. */
bool model_may_spare(const struct model *model)
{
	const struct cycle *c = &model->cycle;
	unsigned i;

	if (!model->in_cycle || c->tracks == 1)
		return false;
	if (!model_by_cylinder(model))
		return true;
	for (i = 1; i < c->slots; i++)
		if (c->slot[i].blocks != c->slot[0].blocks)
			return true;
	return false;
}

unsigned model_ahead(const struct model *model, uint64_t track,
		     const struct cycle_place *place, unsigned most)
{
	struct cycle_place there;
	unsigned i;

	for (i = 1; i <= most; i++) {
		cycle_place_of(&model->cycle, track + i, &there);
		if (there.cylinder == place->cylinder &&
		    there.head == place->head)
			return i;
	}
	return 0;
}

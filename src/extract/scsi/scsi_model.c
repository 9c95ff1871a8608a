/*
 * scsi_model.c - slots, cycles, and how sure they are.
 */
#include <string.h>

#include "extract/scsi/scsi_model.h"

#define ZONE_TIMES 8u
#define SURE 3u
/* What no slips are, but another zone: this part of a track. */
#define MANY 64u
/* No more than this part of a track is taken for slips, seen too late. */
#define LITTLE 16u

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
	struct cycle_slot *last = model->records ?
		&model->record[model->records - 1] : NULL;

	if (model->records == MODEL_RECORDS) {
		model->records /= 2;
		memmove(model->record, model->record + MODEL_RECORDS / 2,
			model->records * sizeof(slot));
		last = &model->record[model->records - 1];
	}
	slot.tracks = tracks;
	if (last && slot.step && last->head == slot.head &&
	    last->step == slot.step && slot.cylinder == last->cylinder +
				       slot.step * (int64_t)last->tracks)
		last->tracks += tracks;
	else
		model->record[model->records++] = slot;
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
	model->changed = model->zone = 0;
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
	split_turns(&model->cycle);
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
	split_turns(to);
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
			model->slot[i].seen = model->slot[slot].seen;
			model->slot[i].sure_track =
				model->slot[slot].sure_track;
		}
	cycle_settle(&model->cycle);
}

bool model_fresh(const struct model *model, uint64_t track)
{
	uint64_t in_slot;
	const struct model_slot *state = &model->slot[cycle_slot_of(
		&model->cycle, track, &in_slot)];

	return !state->seen && !state->times;
}

/* How sure a track without slips makes.  Its very last sectors may be slipped,
 * which is all the same as none: mostly found out later. */
static unsigned full(const struct model *model)
{
	return model->careful ? SURE - 1 : SURE;
}

uint32_t model_first(struct model *model, uint64_t track, uint32_t blocks,
		     int slips)
{
	unsigned slot;
	struct cycle_slot *s = slot_at(model, track, &slot);
	struct model_slot *state = &model->slot[slot];

	s->blocks = blocks + (slips > 0 ? (uint32_t)slips : 0);
	state->right = slips == 0 ? full(model) : slips == MODEL_UNTOLD;
	state->seen = true;
	state->sure_track = track;
	share_size(model, slot);
	return s->blocks;
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
	model->slot[0].seen = true;
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

void model_right(struct model *model, uint64_t track, int slips)
{
	struct model_slot *state;
	unsigned slot;

	slot_at(model, track, &slot);
	state = &model->slot[slot];
	state->seen = true;
	state->sure_track = track;
	if (state->right >= SURE || (slips && slips != MODEL_UNTOLD))
		return;
	state->right += slips || state->right ? 1 : full(model);
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

/* The number of a track among those of its slot. */
static uint64_t number_in(const struct model *model,
			  const struct cycle_slot *s, uint64_t track)
{
	return track / model->cycle.tracks * s->tracks +
	       track % model->cycle.tracks - s->before;
}

/* Tracks of a slot next to each other that held so many more, this one
 * included. */
static unsigned times_of(const struct model *model, unsigned slot,
			 uint64_t track, int32_t more)
{
	const struct model_slot *state = &model->slot[slot];

	return state->times && state->more == more &&
	       number_in(model, &model->cycle.slot[slot], track) ==
		       state->odd_number + 1 ? state->times + 1 : 1;
}

bool model_wonders(const struct model *model, uint64_t track, int32_t more)
{
	uint64_t in_slot;
	unsigned slot = cycle_slot_of(&model->cycle, track, &in_slot);
	uint32_t blocks = model->cycle.slot[slot].blocks;

	return more > 0 || model->slot[slot].right < SURE ||
	       (uint32_t)-more > blocks / MANY ||
	       times_of(model, slot, track, more) > 1 ||
	       others_odd(model, slot, track) > 1;
}

bool model_misled(const struct model *model, uint64_t track, int32_t more)
{
	uint64_t in_slot;
	unsigned slot = cycle_slot_of(&model->cycle, track, &in_slot);

	return !model->careful && model->in_cycle && more > 0 &&
	       model->slot[slot].right >= SURE &&
	       (uint32_t)more <= model->cycle.slot[slot].blocks / LITTLE;
}

/* A zone has begun, or has before: what has not been looked at since is not
 * sure, though its cylinders may hold as much as those before. */
static void doubt_others(struct model *model, unsigned slot, uint64_t track)
{
	unsigned i;

	if (!model->in_cycle)
		return;
	if (track - model->changed > 2 * model->cycle.tracks)
		model->zone = track;
	model->changed = track;
	for (i = 0; i < model->cycle.slots; i++)
		if (i != slot && model->slot[i].right &&
		    model->slot[i].sure_track < model->zone)
			model->slot[i].right = 0;
}

static void change_slot(struct model *model, unsigned slot, int32_t more,
			unsigned right)
{
	struct model_slot *state = &model->slot[slot];

	doubt_others(model, slot, state->odd_track);
	model->cycle.slot[slot].blocks += (uint32_t)more;
	state->sure_track = state->odd_track;
	state->more = 0;
	state->right = right;
	state->seen = true;
	share_size(model, slot);
}

/* The drive tells of slips: the size is that of a track without any, and no
 * track has more sectors than the last one's number says.  The last track of a
 * zone may be short, though, and go all the way. */
static bool odd_told(struct model *model, unsigned slot, int32_t more,
		     int slips, bool others)
{
	bool less = more < 0;

	if (slips && more + slips >= 0 && less)
		return false;
	change_slot(model, slot, more + slips,
		    slips ? 0 : less && !others ? SURE - 1 : full(model));
	return true;
}

/*
 * A slot's tracks hold what the fullest does: slips only take away.  Less, on
 * track after track, is a new zone when other surfaces say the same, or when it
 * goes on; a scratch over some tracks of one surface is not.  Where the rest of
 * the cylinder has begun a new zone one track is enough.
 */
bool model_odd(struct model *model, uint64_t track, int32_t more, int slips)
{
	unsigned slot;
	struct cycle_slot *s = slot_at(model, track, &slot);
	struct model_slot *state = &model->slot[slot];
	int others = others_odd(model, slot, track);

	state->times = times_of(model, slot, track, more);
	if (others > 1 && !model_by_cylinder(model))
		others = 1;
	state->more = more;
	state->odd_track = track;
	state->odd_number = number_in(model, s, track);
	if (slips >= 0)
		return odd_told(model, slot, more, slips, others);
	if (slips == MODEL_UNSURE && -more <= (int32_t)(s->blocks / MANY))
		return false;
	if (more < 0 && slips == MODEL_UNTOLD && state->times < ZONE_TIMES &&
	    (int)state->times + others < 3)
		return false;
	change_slot(model, slot, more, slips == MODEL_UNSURE ? 0 :
				       more < 0 ? state->times : 1);
	return true;
}

void model_doubt(struct model *model)
{
	unsigned i;

	for (i = 0; i < model->cycle.slots; i++) {
		model->slot[i].right = 0;
		model->slot[i].seen = false;
	}
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

bool model_may_spare(const struct model *model)
{
	return model->in_cycle && model->cycle.tracks > 1;
}

bool model_alike(const struct model *model)
{
	const struct cycle *c = &model->cycle;
	unsigned i;

	if (!model_by_cylinder(model))
		return false;
	for (i = 1; i < c->slots; i++)
		if (c->slot[i].blocks != c->slot[0].blocks)
			return false;
	return true;
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

/*
 * scsi_map.c - from translations to tracks.
 *
 * At every moment the map is exact up to a track's first block (`first`), and
 * a model says how it goes on: a cycle, or while none is recognised a single
 * slot that goes on along one surface.  Two steps:
 *
 *   leap   the model's prediction n tracks ahead is checked; when it holds all
 *          n tracks are taken and n doubles, else the first track that does
 *          not hold is found by halving;
 *   event  that track: its end is found, what follows it too.  Fewer blocks
 *          than predicted: slips.  The same again on the surface's next track:
 *          a new zone.  Another place than predicted: slipped tracks, or the
 *          model is at its end and a new one is learned.
 *
 * Slips push all blocks behind them on, so that a leap sees them; but spares in
 * every cylinder take them up there and hide them from the next one.  In an
 * order of cylinders each is checked at both ends of its last track, until a
 * few slips have shown that they do push.  At the end tracks are tried at
 * random; if any is wrong, all is done again by walking.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "diskmodel/geom_build.h"
#include "extract/cycle.h"
#include "extract/scsi_map.h"

#define VERIFY 300u	/* tracks at random, and as many listed ones */
#define SLIPPED_MAX 64u
#define ZONE_TIMES 8u
#define SURE 3u
#define PUSHED 6u
#define RECORD_MAX (2u * CYCLE_MAX_SLOTS)
#define PROGRESS_EACH 256u

/* Slips the drive's list predicts on a track of the model. */
struct listed {
	uint64_t track;
	uint32_t n;
	uint64_t before;	/* sum of n of those before */
};

struct spot {
	struct cycle_place place;
	uint32_t at;
};

/* How sure it is what the tracks of a slot hold. */
struct slot_state {
	unsigned right;		/* tracks that held it, one by one */
	int32_t more;		/* than it the last odd track held ... */
	uint64_t odd_track;	/* ... which was this one */
	unsigned times;		/* that, on tracks next to each other */
};

struct map {
	struct translate *translate;
	const struct scsi_map_options *options;
	struct geom_build *build;
	struct scsi_map *out;
	uint32_t unit;		/* sectors of a block */
	bool by_sector;		/* spot.at counts blocks */
	unsigned at_zero, elsewhere; /* where tracks were seen to begin */

	uint64_t first;		/* block: all before are mapped */
	uint64_t leap;		/* tracks to try next */
	uint64_t gap;		/* between events, lately */
	bool in_cycle;		/* the model is a recognised one */
	unsigned pushed, absorbed; /* slips: by all behind, by the cylinder */
	bool walk;
	bool listing;		/* the drive's list is believed */
	uint64_t track;		/* of the model, that begins at `first` */
	struct cycle model;
	struct listed *listed;
	size_t listed_n;
	uint64_t *believed;	/* blocks on tracks whose slips were listed */
	size_t believed_n;
	struct cycle_slot record[RECORD_MAX];
	unsigned records;

	struct slot_state slot[CYCLE_MAX_SLOTS];
};

/* ---- asking ---- */

/* A reassigned block lies anywhere; where it should be, the next one tells. */
static int map_where_next(struct map *m, uint64_t block, struct spot *out)
{
	struct translate_place place;
	int err;

	if (block + 1 < m->options->blocks) {
		err = translate_block(m->translate, block + 1, &place);
		if (err)
			return err;
		if (!place.alternate && place.address.at) {
			out->place.cylinder = place.address.cylinder;
			out->place.head = place.address.head;
			out->at = place.address.at - 1;
			return 0;
		}
	}
	if (!block)
		return -ENODATA;
	err = translate_block(m->translate, block - 1, &place);
	if (err)
		return err;
	out->place.cylinder = place.address.cylinder;
	out->place.head = place.address.head;
	out->at = place.address.at + 1;
	return place.alternate ? -ENODATA : 0;
}

static int map_where(struct map *m, uint64_t block, struct spot *out)
{
	struct translate_place place;
	int err = translate_block(m->translate, block, &place);

	if (err)
		return err;
	if (place.alternate)
		return map_where_next(m, block, out);
	out->place.cylinder = place.address.cylinder;
	out->place.head = place.address.head;
	out->at = place.address.at;
	return 0;
}

static bool same_place(const struct cycle_place *a, const struct cycle_place *b)
{
	return a->cylinder == b->cylinder && a->head == b->head;
}

/* 1: the block is on that track, 0: it is not; or an error. */
static int map_on_track(struct map *m, uint64_t block,
			const struct cycle_place *place)
{
	struct spot spot;
	int err;

	if (block >= m->options->blocks)
		return 0;
	err = map_where(m, block, &spot);
	return err ? err : same_place(&spot.place, place);
}

/* Do tracks begin at sector 0, on this drive?  Then one answer tells whether a
 * block is its track's first. */
static bool map_zero_based(const struct map *m)
{
	return m->by_sector && m->at_zero > 4 * m->elsewhere;
}

static void map_note_first(struct map *m, const struct spot *first)
{
	if (first->at)
		m->elsewhere++;
	else
		m->at_zero++;
}

/* ---- prediction ---- */

/* Slips listed on the tracks before one of the model. */
static uint64_t listed_before(const struct map *m, uint64_t track)
{
	size_t lo = 0, hi = m->listed_n, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (m->listed[mid].track < track)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < m->listed_n)
		return m->listed[lo].before;
	return lo ? m->listed[lo - 1].before + m->listed[lo - 1].n : 0;
}

/* The first block of a track at or behind the present one. */
static uint64_t map_predict(const struct map *m, uint64_t track)
{
	return m->first + cycle_blocks_before(&m->model, track) -
	       cycle_blocks_before(&m->model, m->track) -
	       (listed_before(m, track) - listed_before(m, m->track));
}

static int listed_compare(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return x->track < y->track ? -1 : x->track > y->track;
}

/* Puts the drive's list into the model's order of tracks. */
static void map_list_defects(struct map *m)
{
	const struct scsi_address *list = m->options->primary;
	uint64_t track, sum = 0;
	size_t i, j;

	m->listed_n = 0;
	if (m->absorbed || m->walk || !m->listing)
		return;
	for (i = 0; i < m->options->primary_n; i = j) {
		const struct cycle_place place = { list[i].cylinder,
						   list[i].head };

		for (j = i; j < m->options->primary_n &&
		     list[j].cylinder == list[i].cylinder &&
		     list[j].head == list[i].head; j++)
			;
		if (cycle_find(&m->model, &place, &track) &&
		    track >= m->track)
			m->listed[m->listed_n++] =
				(struct listed){ track, (uint32_t)(j - i), 0 };
	}
	qsort(m->listed, m->listed_n, sizeof(*m->listed), listed_compare);
	for (i = 0; i < m->listed_n; i++) {
		m->listed[i].before = sum;
		sum += m->listed[i].n;
	}
}

/*
 * Does a track of the model begin where predicted?  1, 0 or an error.  Where
 * tracks don't begin at sector 0 the block before must lie elsewhere.  A track
 * whose first sector is slipped is taken for one that does not.
 */
static int map_check(struct map *m, uint64_t track)
{
	uint64_t block = map_predict(m, track);
	struct cycle_place place;
	struct spot spot;
	int rc;

	cycle_place_of(&m->model, track, &place);
	rc = map_where(m, block, &spot);
	if (rc)
		return rc;
	if (!same_place(&spot.place, &place))
		return 0;
	if (map_zero_based(m))
		return !spot.at;
	rc = map_on_track(m, block - 1, &place);
	return rc < 0 ? rc : !rc;
}

/* ---- what is known goes into the geometry ---- */

static int map_add(struct map *m, const struct cycle_place *place, int32_t step,
		   uint32_t count, uint64_t blocks, bool known)
{
	struct geom_sweep sweep = {
		.count = count,
		.sectors = (uint32_t)(blocks * m->unit),
		.around = (uint32_t)(blocks * m->unit),
		.cylinder = place->cylinder,
		.surface = (int32_t)place->head,
		.cylinder_step = step,
		.known = known,
	};

	m->out->tracks += count;
	return geom_build_sweep(m->build, &sweep);
}

static int map_add_odd(struct map *m, uint64_t ahead, int64_t more)
{
	m->out->odd++;
	return geom_build_odd(m->build, geom_build_tracks(m->build) + ahead,
			      (int32_t)(more * m->unit));
}

/* Listed slips on the next n tracks of the model. */
static int map_take_listed(struct map *m, uint64_t n)
{
	const struct listed *l;
	size_t i;
	int err = 0;

	for (i = 0; i < m->listed_n && !err; i++) {
		l = &m->listed[i];
		if (l->track < m->track || l->track >= m->track + n)
			continue;
		if (m->believed_n < m->options->primary_n)
			m->believed[m->believed_n++] =
				map_predict(m, l->track);
		err = map_add_odd(m, l->track - m->track, -(int64_t)l->n);
	}
	return err;
}

/* Takes n tracks as predicted. */
static int map_take(struct map *m, uint64_t n)
{
	uint64_t end = m->track + n, next = map_predict(m, end), in_slot, run;
	int err = map_take_listed(m, n);

	while (!err && m->track < end) {
		const struct cycle_slot *slot = &m->model.slot[cycle_slot_of(
			&m->model, m->track, &in_slot)];
		struct cycle_place place;

		run = slot->tracks - in_slot;
		if (run > end - m->track)
			run = end - m->track;
		cycle_place_of(&m->model, m->track, &place);
		err = map_add(m, &place, slot->step, (uint32_t)run,
			      slot->blocks, true);
		m->track += run;
	}
	m->first = next;
	return err;
}

/* ---- a single track ---- */

/* The limits of a track's end, drawn together: lo is on it, hi is not. */
struct bounds {
	uint64_t lo, hi;
	struct spot at_hi;
	bool hi_known;
};

static int bounds_try(struct map *m, const struct cycle_place *place,
		      uint64_t try, struct bounds *b)
{
	struct spot spot;
	int err = map_where(m, try, &spot);

	if (err)
		return err;
	if (same_place(&spot.place, place)) {
		b->lo = try;
	} else {
		b->hi = try;
		b->at_hi = spot;
		b->hi_known = true;
	}
	return 0;
}

/* From the guess away, in growing steps, until the end lies between. */
static int bounds_find(struct map *m, const struct cycle_place *place,
		       uint64_t guess, struct bounds *b)
{
	uint64_t step = 1, try = guess;
	bool up = false, down = false;
	int err = 0;

	while (!err && try > b->lo && try < b->hi && !(up && down)) {
		err = bounds_try(m, place, try, b);
		up = up || b->lo == try;
		down = down || b->hi == try;
		try = up ? b->lo + step : b->hi > b->lo + step ?
						  b->hi - step : b->lo;
		step *= 4;
	}
	return err;
}

/*
 * The block behind a track's last, from a guess; *next is where it lies (not
 * at the end of the disk).  `expected`: the track that should follow, or NULL.
 */
static int map_find_end(struct map *m, const struct cycle_place *place,
			const struct cycle_place *expected, uint64_t guess,
			uint64_t *end, struct spot *next)
{
	struct bounds b = { .lo = m->first, .hi = m->options->blocks };
	int err = 0;

	if (guess <= b.lo || guess >= b.hi)
		guess = b.lo + (b.hi - b.lo < 2048 ? (b.hi - b.lo) / 2 : 1024);
	if (guess > b.lo)
		err = bounds_try(m, place, guess, &b);
	/* Slips move the beginning of the next track as far as it says. */
	if (!err && b.hi_known && map_zero_based(m) && b.at_hi.at &&
	    b.at_hi.at < b.hi - b.lo)
		err = bounds_try(m, place, b.hi - b.at_hi.at, &b);
	if (!err && b.hi_known && map_zero_based(m) && !b.at_hi.at &&
	    expected && same_place(&b.at_hi.place, expected))
		b.lo = b.hi - 1;
	if (!err)
		err = bounds_find(m, place,
				  b.hi_known ? b.hi - 1 : b.lo + 1, &b);
	while (!err && b.hi - b.lo > 1)
		err = bounds_try(m, place, b.lo + (b.hi - b.lo) / 2, &b);
	if (err)
		return err;
	*end = b.hi;
	*next = b.at_hi;
	if (b.hi < m->options->blocks)
		map_note_first(m, next);
	return 0;
}

/* Has any other slot's tracks changed in the last two cycles? */
static bool map_others_odd(const struct map *m, unsigned slot)
{
	unsigned i;

	for (i = 0; i < m->model.slots; i++)
		if (i != slot && m->slot[i].times &&
		    m->track - m->slot[i].odd_track < 2 * m->model.tracks)
			return true;
	return false;
}

/*
 * A slot's tracks hold what the fullest does: slips only take away.  Less, on
 * track after track, is a new zone when other surfaces say the same, or when it
 * goes on; a scratch over some tracks of one surface is not.
 */
static void map_note_odd(struct map *m, unsigned slot, int32_t more)
{
	struct slot_state *state = &m->slot[slot];
	uint64_t since = m->track - state->odd_track;
	bool next = since == 1 || since == m->model.tracks;

	if (!more)
		return;
	/* More on a track than ever: it may have taken up slips.  Less on one
	 * alone: the blocks behind it have moved. */
	if (m->in_cycle && more > 0)
		m->absorbed++;
	else if (m->in_cycle && !map_others_odd(m, slot))
		m->pushed++;
	state->times = state->times && next && state->more == more ?
			       state->times + 1 : 1;
	state->more = more;
	state->odd_track = m->track;
	state->right = 0;
	if (more < 0 && state->times < ZONE_TIMES &&
	    !(state->times > 1 && map_others_odd(m, slot)))
		return;
	m->pushed -= m->pushed > 0;
	m->model.slot[slot].blocks += more;
	cycle_settle(&m->model);
	state->more = 0;
}

/* From here on track by track, until all slots are sure again. */
static void map_doubt(struct map *m)
{
	unsigned i;

	for (i = 0; i < m->model.slots; i++)
		m->slot[i].right = 0;
}

/* A slot of the model has ended, or all of it: looks for a cycle. */
static void map_end_model(struct map *m)
{
	struct cycle_slot slot = m->model.slot[0];
	unsigned i;

	if (m->in_cycle) {
		/* Only for the lengths: nothing follows it. */
		m->records = 0;
		for (i = 0; i < m->model.slots; i++)
			m->record[m->records++] = m->model.slot[i];
		m->record[0].head = UINT32_MAX;
	} else if (m->model.slots) {
		slot.tracks = m->track;
		if (m->records == RECORD_MAX) {
			m->records /= 2;
			memmove(m->record, m->record + RECORD_MAX / 2,
				m->records * sizeof(slot));
		}
		m->record[m->records++] = slot;
	}
	m->model.slots = 0;
	m->in_cycle = false;
	m->listed_n = 0;
	memset(m->slot, 0, sizeof(m->slot));
}

/* Tracks of the model between the predicted place and where it is; 0: it is
 * not where the model goes. */
static unsigned map_slipped_to(const struct map *m, const struct spot *next)
{
	struct cycle_place place;
	unsigned i;

	for (i = 1; i <= SLIPPED_MAX; i++) {
		cycle_place_of(&m->model, m->track + i, &place);
		if (same_place(&place, &next->place))
			return i;
	}
	return 0;
}

/* The track that does not do as predicted, and what follows it. */
static int map_event(struct map *m)
{
	uint64_t in_slot, end;
	unsigned slot = cycle_slot_of(&m->model, m->track, &in_slot), ahead;
	uint32_t nominal = m->model.slot[slot].blocks;
	struct cycle_place place, expected;
	struct spot next;
	int err;

	cycle_place_of(&m->model, m->track, &place);
	cycle_place_of(&m->model, m->track + 1, &expected);
	err = map_find_end(m, &place, &expected,
			   map_predict(m, m->track + 1), &end, &next);
	if (err)
		return err;
	if (end - m->first < nominal)
		err = map_add_odd(m, 0, (int64_t)(end - m->first) - nominal);
	if (!err)
		err = map_add(m, &place, 0, 1,
			      end - m->first < nominal ? nominal :
							 end - m->first,
			      true);
	if (err)
		return err;
	map_note_odd(m, slot, (int32_t)(end - m->first) - (int32_t)nominal);
	ahead = end < m->options->blocks ? map_slipped_to(m, &next) : 1;
	m->first = end;
	m->track += ahead ? ahead : 1;
	if (!ahead) {
		map_end_model(m);
	} else if (ahead > 1) {
		/* Or another order that goes on there by chance. */
		m->out->slipped += ahead - 1;
		map_doubt(m);
	}
	return 0;
}

/* ---- learning a model ---- */

static void map_begin_cycle(struct map *m)
{
	m->in_cycle = true;
	m->track = 0;
	m->out->cycles++;
	m->leap = 1;
}

/* Blocks on the surface's last track, or on the last one at all. */
static uint32_t map_last_length(const struct map *m, uint32_t head)
{
	unsigned i;

	for (i = m->records; i > 0; i--)
		if (m->record[i - 1].head == head)
			return m->record[i - 1].blocks;
	return m->records ? m->record[m->records - 1].blocks : 0;
}

/* A slot of which only the first track is known, and which way it goes on. */
static int map_begin_slot(struct map *m, const struct spot *spot)
{
	uint64_t guess = map_last_length(m, spot->place.head);
	struct cycle_slot *slot = &m->model.slot[0];
	struct spot next = *spot;
	uint64_t end;
	int err = map_find_end(m, &spot->place, NULL, m->first + guess, &end,
			       &next);

	if (err)
		return err;
	memset(slot, 0, sizeof(*slot));
	slot->head = spot->place.head;
	slot->cylinder = spot->place.cylinder;
	slot->blocks = (uint32_t)(end - m->first);
	slot->step = (int32_t)(next.place.cylinder - spot->place.cylinder);
	if (next.place.head != slot->head || slot->step < -1 || slot->step > 1)
		slot->step = 0;
	slot->tracks = slot->step ? UINT32_MAX : 1;
	m->model.slots = 1;
	m->model.cylinder_step = 0;
	m->track = 0;
	cycle_settle(&m->model);
	/* As long as the last one, with luck. */
	m->leap = m->records && m->record[m->records - 1].tracks > 2 ?
			  m->record[m->records - 1].tracks - 1 : 1;
	if (slot->step)
		return 0;
	err = map_take(m, 1);
	map_end_model(m);
	return err;
}

static int map_learn(struct map *m)
{
	struct spot spot;
	struct cycle_place place;
	int err = map_where(m, m->first, &spot);

	if (err)
		return err;
	if (!m->walk && cycle_recognise(m->record, m->records, &m->model)) {
		cycle_place_of(&m->model, 0, &place);
		if (same_place(&place, &spot.place)) {
			map_begin_cycle(m);
			map_list_defects(m);
			return 0;
		}
	}
	m->model.slots = 0;
	err = map_begin_slot(m, &spot);
	if (!err && m->model.slots)
		map_list_defects(m);
	return err;
}

/* ---- leaping ---- */

/* May a slip be hidden from the next cylinder? */
static bool map_may_absorb(const struct map *m)
{
	unsigned i;

	for (i = 0; i < m->model.slots; i++)
		if (m->model.slot[i].step)
			return false;
	return m->absorbed || m->pushed < PUSHED;
}

/*
 * From the present track to the next that is its cylinder's first or last: a
 * slip and what makes up for it lie apart then.
 */
static uint64_t map_cylinder_end(const struct map *m)
{
	struct cycle_place before, place, next;
	uint64_t n = 0;

	cycle_place_of(&m->model, m->track, &place);
	cycle_place_of(&m->model, m->track + 1, &next);
	do {
		before = place;
		place = next;
		n++;
		cycle_place_of(&m->model, m->track + n + 1, &next);
	} while (place.cylinder == before.cylinder &&
		 next.cylinder == place.cylinder && n < m->model.tracks);
	return n;
}

/* Tracks from the present one on whose slots are sure, at most `most`. */
static uint64_t map_sure_length(const struct map *m, uint64_t most)
{
	uint64_t n = 0, in_slot;
	unsigned slot, seen;

	for (seen = 0; n < most && seen <= m->model.slots; seen++) {
		slot = cycle_slot_of(&m->model, m->track + n, &in_slot);
		if (m->slot[slot].right < SURE)
			break;
		n += m->model.slot[slot].tracks - in_slot;
	}
	return n < most && seen <= m->model.slots ? n : most;
}

/*
 * How far the next leap may go: one track on a slot that is not sure; within
 * the disk; with spares in every cylinder to the last track of one.
 */
static uint64_t map_leap_length(const struct map *m)
{
	uint64_t n = m->walk ? 1 : m->leap, to;

	if (m->in_cycle && map_may_absorb(m)) {
		to = map_cylinder_end(m);
		n = n < to ? n : to;
	}
	if (!m->in_cycle && m->track + n > m->model.slot[0].tracks)
		n = m->model.slot[0].tracks - m->track;
	n = map_sure_length(m, n);
	if (!n)
		n = 1;
	while (n && map_predict(m, m->track + n) >= m->options->blocks)
		n /= 2;
	return n;
}

/* The prediction n tracks on does not hold: how many are right? */
static int map_halve(struct map *m, uint64_t n, uint64_t *good)
{
	uint64_t lo = 0, hi = n, mid;
	int rc;

	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		rc = map_check(m, m->track + mid);
		if (rc < 0)
			return rc;
		*(rc ? &lo : &hi) = mid;
	}
	*good = lo;
	return 0;
}

/* One track, by itself: as predicted, or an event. */
static int map_step(struct map *m)
{
	uint64_t in_slot;
	unsigned slot = cycle_slot_of(&m->model, m->track, &in_slot);
	int rc = 0;

	if (map_predict(m, m->track + 1) < m->options->blocks)
		rc = map_check(m, m->track + 1);
	if (rc < 0)
		return rc;
	if (!rc)
		return map_event(m);
	m->slot[slot].right++;
	return map_take(m, 1);
}

static int map_leap(struct map *m)
{
	uint64_t n = map_leap_length(m), good = 0;
	int rc;

	if (n <= 1) {
		m->leap = 2;
		return map_step(m);
	}
	rc = map_check(m, m->track + n);
	if (rc < 0)
		return rc;
	if (rc) {
		m->leap = 2 * n;
		return map_take(m, n);
	}
	rc = map_halve(m, n, &good);
	if (!rc && good)
		rc = map_take(m, good);
	/* So many between events are to be expected. */
	m->gap = (7 * m->gap + good) / 8;
	m->leap = m->gap > 1 ? m->gap : 1;
	return rc ? rc : map_event(m);
}

/* Blocks that the drive says nothing of: up to the next track's beginning. */
static int map_skip(struct map *m)
{
	const struct cycle_place nowhere = { 0, 0 };
	uint64_t step, end, from = m->first;
	struct spot spot;
	int err;

	for (step = 1024; from + step < m->options->blocks; step *= 2) {
		m->first = from + step;
		if (map_where(m, m->first, &spot))
			continue;
		err = map_find_end(m, &spot.place, NULL, m->first + 1024,
				   &end, &spot);
		if (!err)
			break;
	}
	m->first = from;
	if (from + step >= m->options->blocks)
		end = m->options->blocks;
	m->out->unknown_blocks += end - from;
	map_end_model(m);
	for (err = 0; !err && m->first < end; m->first += step) {
		step = end - m->first < 4096 ? end - m->first : 4096;
		err = map_add(m, &nowhere, 0, 1, step, false);
	}
	return err;
}

static int map_progress(struct map *m)
{
	const struct scsi_map_options *o = m->options;

	if (o->progress && !o->progress(o->arg, m->first, o->blocks))
		return -EINTR;
	return 0;
}

static int map_all(struct map *m)
{
	uint64_t steps = 0;
	int err = 0;

	while (!err && m->first < m->options->blocks) {
		err = m->model.slots ? map_leap(m) : map_learn(m);
		if (err == -ENODATA || err == -EIO)
			err = map_skip(m);
		if (!err && !(++steps % PROGRESS_EACH))
			err = map_progress(m);
	}
	return err;
}

/* ---- grown defects ---- */

/* Is this block where the drive put it, instead of on its track? */
static int map_try_remap(struct map *m, const struct geom_track *track,
			 uint64_t block)
{
	struct translate_place place;
	struct geom_remap remap;
	int err = translate_block(m->translate, block, &place);

	if (err)
		return err;
	if (place.address.cylinder == track->cylinder &&
	    place.address.head == track->surface)
		return 0;
	remap = (struct geom_remap){
		.lbn = block * m->unit,
		.n = m->unit,
		.cylinder = place.address.cylinder,
		.surface = place.address.head,
		.sector = place.address.at * m->unit,
		.around = track->sectors,
	};
	if (remap.sector >= remap.around)
		remap.sector = remap.around - 1;
	err = geom_build_remap(m->build, &remap);
	if (!err)
		m->out->remaps++;
	return err;
}

/* The first of the sorted grown defects on a track. */
static size_t grown_on(const struct scsi_map_options *o,
		       const struct geom_track *track)
{
	size_t lo = 0, hi = o->grown_n, mid;

	while (lo < hi) {
		const struct scsi_address *a;

		mid = (lo + hi) / 2;
		a = &o->grown[mid];
		if (a->cylinder < track->cylinder ||
		    (a->cylinder == track->cylinder &&
		     a->head < track->surface))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * Blocks that were on grown defects.  The geometry has no way from a track's
 * place to its number: one pass over the tracks finds them all, in order.
 */
static int map_add_remaps(struct map *m, const struct geom *geom)
{
	const struct scsi_map_options *o = m->options;
	struct geom_track track;
	uint64_t i;
	size_t k;
	int rc = 0;

	for (i = 0; i < geom_tracks(geom) && rc >= 0; i++) {
		geom_track_at(geom, i, &track);
		if (!track.known)
			continue;
		for (k = grown_on(o, &track);
		     rc >= 0 && k < o->grown_n &&
		     o->grown[k].cylinder == track.cylinder &&
		     o->grown[k].head == track.surface; k++)
			if (o->grown[k].at < track.sectors / m->unit)
				rc = map_try_remap(m, &track,
						   track.first / m->unit +
							   o->grown[k].at);
	}
	return rc < 0 ? rc : 0;
}

/* ---- trying it ---- */

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* 1: both ends of a track are where the geometry says. */
static int map_verify_track(struct map *m, const struct geom_track *track)
{
	const struct cycle_place place = { track->cylinder, track->surface };
	uint64_t first = track->first / m->unit;
	uint64_t end = first + track->sectors / m->unit;
	int rc = map_on_track(m, first, &place);

	if (rc == 1)
		rc = map_on_track(m, end - 1, &place);
	if (rc == 1 && end < m->options->blocks) {
		rc = map_on_track(m, end, &place);
		rc = rc < 0 ? rc : !rc;
	}
	return rc;
}

/* The track of a block; -EUCLEAN: it is another one. */
static int map_verify_at(struct map *m, const struct geom *geom, uint64_t block)
{
	struct geom_track track;
	int rc;

	geom_track_of(geom, block * m->unit, &track);
	if (!track.known)
		return 0;
	rc = map_verify_track(m, &track);
	if (rc == -ENODATA)
		return 0;
	m->out->verified += rc == 1;
	return rc < 0 ? rc : rc ? 0 : -EUCLEAN;
}

/* Tracks at random, and of those whose slips the drive's list told. */
static int map_verify(struct map *m, const struct geom *geom)
{
	unsigned n = m->options->verify ? m->options->verify : VERIFY, i;
	uint64_t state = m->options->blocks;
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = map_verify_at(m, geom,
				    next_random(&state) % m->options->blocks);
	if (n > m->believed_n)
		n = (unsigned)m->believed_n;
	for (i = 0; i < n && !err; i++)
		err = map_verify_at(m, geom,
				    m->believed[i * m->believed_n / n]);
	return err;
}

/* ---- the whole ---- */

static int map_finish(struct map *m)
{
	struct geom *geom;
	int err = geom_build_finish(m->build, &geom);

	if (err)
		return err;
	if (m->options->grown_n) {
		err = map_add_remaps(m, geom);
		geom_free(geom);
		if (!err)
			err = geom_build_finish(m->build, &geom);
		if (err)
			return err;
	}
	err = map_verify(m, geom);
	if (err)
		geom_free(geom);
	else
		m->out->geom = geom;
	return err;
}

static int map_try(struct translate *translate,
		   const struct scsi_map_options *options, bool listing,
		   bool walk, struct scsi_map *out)
{
	struct map *m = calloc(1, sizeof(*m));
	int err = -ENOMEM;

	memset(out, 0, sizeof(*out));
	if (!m)
		return -ENOMEM;
	m->translate = translate;
	m->options = options;
	m->out = out;
	m->unit = options->block_bytes / 512;
	m->walk = walk;
	m->listing = listing;
	m->by_sector = !translate_in_bytes(translate);
	m->leap = 1;
	m->build = geom_build_new(0, 0);
	m->listed = calloc(options->primary_n + 1, sizeof(*m->listed));
	m->believed = calloc(options->primary_n + 1, sizeof(*m->believed));
	if (m->build && m->listed && m->believed)
		err = map_all(m);
	if (!err)
		err = map_finish(m);
	geom_build_free(m->build);
	free(m->listed);
	free(m->believed);
	free(m);
	out->walked = walk;
	return err;
}

int scsi_map_make(struct translate *translate,
		  const struct scsi_map_options *options,
		  struct scsi_map *out)
{
	uint64_t before = translate_count(translate);
	bool listing = options->primary_n;
	int err = map_try(translate, options, listing, options->walk, out);

	if (err == -EUCLEAN && listing && !options->walk) {
		msg_warn("the drive's list of defects is not right: it is not "
			 "used");
		err = map_try(translate, options, false, false, out);
	}
	if (err == -EUCLEAN && !options->walk) {
		msg_warn("translations: a prediction that had been checked is "
			 "wrong; every track is asked for");
		err = map_try(translate, options, false, true, out);
	}
	if (err == -EUCLEAN)
		msg_error("translations contradict each other");
	out->translations = translate_count(translate) - before;
	return err;
}

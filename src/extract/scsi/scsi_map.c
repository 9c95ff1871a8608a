/*
 * scsi_map.c - from translations to tracks: predict, ask, bisect, verify.
 *
 * At every moment the map is known up to a track's first block.  The order
 * (scsi_order.h) predicts where the tracks ahead begin.  Of one of them it is
 * asked where it does (a *fact*, one translation or two):
 *
 *   it is what is predicted: all tracks before it are taken;
 *   it is not, and it is the next track's: that track is odd;
 *   it is not: what lies half way is asked for, up to there, and so on.
 *
 * Where no fact can be had the track's end is looked for block by block
 * (map_event).
 *
 * A sum proves its summands only if none holds more than predicted, and if no
 * spares make up for a slip.  So facts are asked for of the last track of every
 * region (a cylinder, or a sweep along a surface), which is the one that slips
 * move whoever makes up for them; of fewer regions once slips were seen to move
 * all behind their region (`pushed`).
 *
 * All else that could be believed wrongly is found by one means (map_doubt).
 * An order with its sizes begins as measured, track by track.  Whenever
 * something comes up that slips do not explain (a zone, an order that ends, a
 * track that is not there), the beginnings of the slots before it are asked
 * for, one round of them: if they are right, so is all that is believed since
 * it began.  If one is not, or a size was too small, the map goes back to there
 * and asks track by track.
 *
 * At the end tracks are tried at random; if any is wrong nothing is believed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "extract/scsi/scsi_ask.h"
#include "extract/scsi/scsi_map.h"
#include "extract/scsi/scsi_order.h"

#define VERIFY 100u		/* tracks tried at the end */
#define SLIPPED_MAX 64u		/* tracks in a row that hold nothing */
/* Tracks of a slot that tell its size: the first may have slips. */
#define SEEN 2u
/* Tracks ahead that a fact is asked of where no region ends before: more after
 * each that was as predicted. */
#define AHEAD_FIRST 4u
#define AHEAD_MOST (UINT64_C(1) << 24)
/* Regions whose slips moved all behind them, so that no spares make up for any;
 * where so many last tracks of a region had the size that they have. */
#define PUSHED 3u
#define PUSHED_SEEN 8u
#define PROGRESS_EACH 16u

/* A track ahead and its first block. */
struct fact {
	uint64_t track, start;
};

struct scsi_mapping {
	struct scsi_ask ask;
	const struct scsi_map_options *options;
	struct scsi_map *out;

	struct track_runs runs;	/* all that is mapped */
	uint64_t first;		/* block: all before are mapped */
	struct track_order order;	/* what is predicted behind it ... */
	uint64_t track;		/* ... begins with this track of it */
	unsigned changes;	/* of the order: facts ahead are none then */

	uint64_t ahead;		/* tracks to try at once */
	uint64_t expect;	/* tracks of a sweep, if it is like the last */
	int64_t lost;		/* blocks that the region so far lacks */
	unsigned pushed;	/* slips that moved all behind their region */

	/* The sealed runs are right, which end there; what follows is asked
	 * track by track up to a block. */
	uint64_t safe, doubted;
};

/* The first block of a track at or behind the present one. */
static uint64_t map_predict(struct scsi_mapping *m, uint64_t track)
{
	return m->first + order_blocks(&m->order, track) -
	       order_blocks(&m->order, m->track);
}

static struct order_slot *map_slot(struct scsi_mapping *m)
{
	uint64_t in_slot;

	return order_slot_of(&m->order, m->track, &in_slot);
}

static bool map_by_track(const struct scsi_mapping *m)
{
	return m->first < m->doubted;
}

static bool map_ends_region(struct scsi_mapping *m)
{
	return order_region_last(&m->order, m->track) == m->track;
}

static void map_end_order(struct scsi_mapping *m)
{
	m->expect = m->order.cylinder_step ? 0 : m->track;
	m->order.slots = 0;
	m->lost = 0;
	m->changes++;
}

/* ---- doubt ---- */

static void map_safe(struct scsi_mapping *m)
{
	m->runs.sealed = m->runs.n;
	m->safe = m->first;
}

static void map_go_back(struct scsi_mapping *m)
{
	m->doubted = m->first + 1;
	m->first = m->safe;
	m->runs.n = m->runs.sealed;
	map_end_order(m);
}

/* 1: the first and the last track of the runs before the present track begin
 * where it is believed, of a round; 0: one does not.  (Two tracks where the
 * head turns are a run.) */
static int map_confirm(struct scsi_mapping *m)
{
	unsigned left = m->order.slots;
	uint64_t start = m->first;
	const struct track_run *run;
	struct track_place place;
	int rc = 1;

	for (size_t i = m->runs.n; rc == 1 && left && i-- > m->runs.sealed;
	     left--) {
		run = &m->runs.v[i];
		place = run->place;
		start -= (uint64_t)run->count * run->blocks;
		if (start)
			rc = ask_begins(&m->ask, start, &place);
		if (rc != 1 || run->count == 1)
			continue;
		place.cylinder += (run->count - 1) * (uint32_t)run->step;
		rc = ask_begins(&m->ask, start + (uint64_t)(run->count - 1) *
				run->blocks, &place);
	}
	return rc;
}

/*
 * Something has come up that slips do not explain.  1: what is believed up to
 * here is right, or has been asked track by track, and is safe now; 0: it is
 * asked once more.
 */
static int map_doubt(struct scsi_mapping *m)
{
	int rc = map_by_track(m) ? 1 : map_confirm(m);

	if (rc == 1)
		map_safe(m);
	else if (!rc)
		map_go_back(m);
	return rc;
}

/* ---- tracks that are taken ---- */

static int map_add(struct scsi_mapping *m, uint64_t count, uint32_t blocks)
{
	const struct order_slot *slot = map_slot(m);
	struct track_run run = {
		.step = slot->step, .count = (uint32_t)count,
		.blocks = blocks, .usual = slot->blocks,
	};

	order_place(&m->order, m->track, &run.place);
	m->track += count;
	m->first += count * blocks;
	return runs_add(&m->runs, &run);
}

/* Takes the tracks before `end` as predicted. */
static int map_take(struct scsi_mapping *m, uint64_t end)
{
	struct order_slot *slot;
	uint64_t in_slot, n;
	int err = 0;

	if (m->track < end && order_region_last(&m->order, m->track) < end)
		m->lost = 0;
	while (!err && m->track < end) {
		slot = order_slot_of(&m->order, m->track, &in_slot);
		n = slot->tracks - in_slot;
		n = n < end - m->track ? n : end - m->track;
		n = n < AHEAD_MOST ? n : AHEAD_MOST;
		slot->seen += n;
		err = map_add(m, n, slot->blocks);
	}
	return err;
}

/* The slot's tracks hold so many blocks.  So would the last of its tracks that
 * were found to hold `was`, at most n, if nothing were slipped. */
static void map_size(struct scsi_mapping *m, uint32_t blocks, uint32_t was,
		     uint64_t n)
{
	struct order_slot *slot = map_slot(m);
	struct track_run *run;

	for (size_t i = m->runs.n; n && i-- > 0;) {
		run = &m->runs.v[i];
		if (run->place.head != slot->head)
			continue;
		if (run->blocks != was || run->usual != slot->blocks)
			break;
		n -= n < run->count ? n : run->count;
		run->usual = blocks;
	}
	slot->blocks = blocks;
	slot->seen = 1;
	order_settle(&m->order);
	m->changes++;
}

/* Takes the present track, behind which the next block is `end`. */
static int map_take_track(struct scsi_mapping *m, uint64_t end)
{
	struct order_slot *slot = map_slot(m);
	uint32_t blocks = (uint32_t)(end - m->first);
	int32_t more = (int32_t)(blocks - slot->blocks);
	bool last = map_ends_region(m);
	bool zone = more && slot->seen &&
		    order_odd(&m->order, m->track, more);
	bool larger = more > 0 && (!last || m->lost < more);
	int rc = zone ? map_doubt(m) : 1;

	if (rc <= 0)
		return rc;
	/* What was taken by too small a size is asked once more. */
	if (larger && !zone && slot->seen > SEEN && !map_by_track(m)) {
		map_go_back(m);
		return 0;
	}
	/* Have slips moved the next region? */
	if (last && !more && m->lost > 0 && slot->seen >= PUSHED_SEEN)
		m->pushed++;
	if (more > 0 || zone || (last && more))
		m->pushed = 0;
	if (!slot->seen)
		map_size(m, blocks, blocks, UINT64_MAX);
	else if (larger)
		map_size(m, blocks, slot->blocks, slot->seen == 1);
	else if (!more && !(last && m->lost > 0))
		slot->seen++;
	m->lost = last ? 0 : m->lost + slot->blocks - blocks;
	return map_add(m, 1, blocks);
}

/* ---- where a track does not follow ---- */

/* The end of a track that is not followed by what is predicted is looked for,
 * and where it goes on: with the order's next track, or behind slipped ones
 * that hold no blocks, or elsewhere. */
static int map_event(struct scsi_mapping *m)
{
	uint64_t end, track = m->track;
	struct track_place place;
	struct ask_spot next;
	unsigned ahead = 1;
	int err;

	order_place(&m->order, track, &place);
	err = ask_end(&m->ask, m->first, &place, map_predict(m, track + 1),
		      &end, &next);
	if (err)
		return err;
	if (end < m->ask.blocks)
		ahead = order_ahead(&m->order, track, &next.place, SLIPPED_MAX);
	m->changes++;
	if (ahead != 1 && m->order.cylinder_step) {
		err = map_doubt(m);
		if (err <= 0)
			return err;
	}
	err = map_take_track(m, end);
	if (err || ahead == 1 || m->first != end)
		return err;
	if (ahead)
		m->track += ahead - 1;
	else
		map_end_order(m);
	m->out->slipped += ahead ? ahead - 1 : 0;
	return 0;
}

/* ---- orders ---- */

/* The order that goes on at the present block, by the tracks before it; or else
 * a slot of which only the first track is known, and
 * which way it goes on. */
static int map_learn(struct scsi_mapping *m)
{
	uint32_t size = m->runs.n ? m->runs.v[m->runs.n - 1].usual : 0;
	struct ask_spot here, next;
	uint64_t end;
	int err = ask_where(&m->ask, m->first, &here);

	if (err)
		return err;
	m->track = 0;
	m->ahead = AHEAD_FIRST;
	m->pushed = 0;
	map_safe(m);
	if (order_recognise(&m->order, &m->runs, &here.place))
		return 0;
	next = here;
	err = ask_end(&m->ask, m->first, &here.place, m->first + size, &end,
		      &next);
	if (err)
		return err;
	order_begin(&m->order, &here.place, &next.place,
		    (uint32_t)(end - m->first));
	err = map_take(m, 1);
	if (!err && !m->order.slot[0].step)
		map_end_order(m);
	return err;
}

/* ---- facts ---- */

/* How many tracks a single fact may decide about. */
static uint64_t map_reach(struct scsi_mapping *m)
{
	uint64_t track = m->track, last, in_slot;
	const struct order_slot *slot = map_slot(m);

	if (map_by_track(m) || slot->seen < SEEN)
		return 1;
	if (!m->order.cylinder_step)
		return track + 1 < m->expect ? m->expect - 1 - track :
					       m->ahead;
	/* Do spares make up for what has been lost? */
	if (map_ends_region(m) && m->lost > 0)
		return 1;
	last = order_region_last(&m->order, track + map_ends_region(m));
	while (m->pushed >= PUSHED && last < track + m->ahead)
		last = order_region_last(&m->order, last + 1);
	/* No further than a slot of which nothing is known. */
	do {
		slot = order_slot_of(&m->order, track, &in_slot);
		if (slot->seen < SEEN)
			return track - m->track;
		track += slot->tracks - in_slot;
	} while (track < last);
	return last - m->track;
}

static int map_towards(struct scsi_mapping *m, const struct fact *fact,
		       const struct fact *beyond);

/* Goes to a track so many ahead, or nearer, that lies before a fact. */
static int map_go(struct scsi_mapping *m, uint64_t n, const struct fact *beyond)
{
	struct track_place place;
	struct fact fact;
	int err;

	for (; n; n /= 2) {
		fact.track = m->track + n;
		order_place(&m->order, fact.track, &place);
		err = ask_start(&m->ask, &place, map_predict(m, fact.track),
				&fact.start);
		if (!err && fact.start > m->first &&
		    (!beyond || fact.start < beyond->start))
			return map_towards(m, &fact, beyond);
		if (err && err != -ENODATA)
			return err;
		m->ahead = AHEAD_FIRST;
	}
	return map_event(m);
}

/*
 * All is as predicted up to a fact.  A sum says nothing of the order of what it
 * sums up, though: along a surface the last track before the fact must be where
 * it should, too, for the head may be on its way back.  Of two facts on one
 * surface the nearer one can't be.
 */
static int map_accept(struct scsi_mapping *m, const struct fact *fact,
		      const struct fact *beyond)
{
	uint64_t in_slot;
	const struct order_slot *slot = order_slot_of(&m->order, fact->track,
						      &in_slot);
	struct track_place place;
	int rc = 1;

	if (in_slot > 1 && (!beyond || beyond->track - fact->track >=
					       slot->tracks - in_slot)) {
		order_place(&m->order, fact->track - 1, &place);
		rc = ask_on_track(&m->ask, fact->start - 1, &place);
	}
	if (!rc)
		return map_go(m, (fact->track - m->track) / 2, fact);
	return rc < 0 ? rc : map_take(m, fact->track);
}

/* The next track begins at a block; does the present one end there? */
static int map_single(struct scsi_mapping *m, uint64_t start)
{
	struct track_place place;
	int rc;

	order_place(&m->order, m->track, &place);
	rc = ask_on_track(&m->ask, start - 1, &place);
	if (!rc || rc == -ENODATA)
		return map_event(m);
	return rc < 0 ? rc : map_take_track(m, start);
}

/* Takes what lies before a fact, as long as the order remains. */
static int map_towards(struct scsi_mapping *m, const struct fact *fact,
		       const struct fact *beyond)
{
	unsigned changes = m->changes;
	uint64_t n = fact->track - m->track, reach;
	bool right = map_predict(m, fact->track) == fact->start;
	int err = 0;

	if (right && n >= m->ahead && m->ahead < AHEAD_MOST)
		m->ahead *= 4;
	while (!err && m->changes == changes && m->track < fact->track) {
		n = fact->track - m->track;
		reach = map_reach(m);
		right = map_predict(m, fact->track) == fact->start;
		if (n == 1)
			err = map_single(m, fact->start);
		else if (right && n <= reach)
			err = map_accept(m, fact, beyond);
		else
			err = map_go(m, n > reach ? reach : n / 2, fact);
	}
	return err;
}

static int map_step(struct scsi_mapping *m)
{
	if (!m->order.slots)
		return map_learn(m);
	if (m->doubted && !map_by_track(m)) {
		m->doubted = 0;
		map_safe(m);
	}
	/* Turns are looked for where they are expected. */
	if (!m->order.cylinder_step && m->track + 1 == m->expect)
		return map_event(m);
	return map_go(m, map_reach(m), NULL);
}

/* ---- the whole ---- */

static int map_all(struct scsi_mapping *m)
{
	const struct scsi_map_options *o = m->options;
	uint64_t steps = 0;
	int err = 0;

	map_safe(m);
	while (!err && (m->first < o->blocks || !(err = map_doubt(m)))) {
		err = map_step(m);
		if (!err && !(++steps % PROGRESS_EACH) && o->progress &&
		    !o->progress(o->arg, m->first, o->blocks))
			err = -EINTR;
	}
	return err < 0 ? err : 0;
}

/* 1: a track's ends are where the geometry says. */
static int map_track_right(struct scsi_mapping *m,
			   const struct geom_track *track, uint32_t unit)
{
	const struct track_place place = { track->cylinder, track->surface };
	uint64_t first = track->first / unit;
	uint64_t end = first + track->sectors / unit;
	int rc = ask_begins(&m->ask, first, &place);

	if (rc == 1)
		rc = ask_on_track(&m->ask, end - 1, &place);
	if (rc == 1) {
		rc = ask_on_track(&m->ask, end, &place);
		rc = rc < 0 ? rc : !rc;
	}
	return rc;
}

/* Tracks at random, once more against the drive.  -EUCLEAN: one is not
 * right. */
static int map_verify(struct scsi_mapping *m, const struct geom *geom,
		      uint32_t unit)
{
	unsigned n = m->options->verify ? m->options->verify : VERIFY;
	uint64_t state = m->ask.blocks;
	struct geom_track track;
	int rc;

	while (n--) {
		geom_track_of(geom, random_next(&state) % m->ask.blocks * unit,
			      &track);
		if (!track.known)
			continue;
		rc = map_track_right(m, &track, unit);
		if (!rc)
			return -EUCLEAN;
		if (rc < 0 && rc != -ENODATA)
			return rc;
		m->out->verified += rc == 1;
	}
	return 0;
}

static int map_finish(struct scsi_mapping *m)
{
	uint32_t unit = m->options->block_bytes / 512;
	struct geom *geom;
	int err = runs_geom(&m->runs, unit, &geom);

	if (err)
		return err;
	err = map_verify(m, geom, unit);
	for (size_t i = 0; i < m->runs.n; i++) {
		const struct track_run *run = &m->runs.v[i];

		m->out->tracks += run->count;
		m->out->odd += run->blocks != run->usual ? run->count : 0;
	}
	if (err)
		geom_free(geom);
	else
		m->out->geom = geom;
	return err;
}

int scsi_map_make(struct translate *translate,
		  const struct scsi_map_options *options,
		  struct scsi_map *out)
{
	uint64_t before = translate_count(translate);
	struct scsi_mapping *m = calloc(1, sizeof(*m));
	int err;

	memset(out, 0, sizeof(*out));
	if (!m)
		return -ENOMEM;
	m->ask = (struct scsi_ask){ .translate = translate,
				    .blocks = options->blocks };
	m->options = options;
	m->out = out;
	err = map_all(m);
	if (!err)
		err = map_finish(m);
	free(m->runs.v);
	free(m);
	out->translations = translate_count(translate) - before;
	return err;
}

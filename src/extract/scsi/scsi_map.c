/*
 * scsi_map.c - from translations to tracks: predict, ask, verify.
 *
 * At every moment the map is known up to a track's first block.  The order
 * (scsi_order.h) predicts where the tracks ahead begin; of some of them it has
 * been asked where they do (`fact`, the nearest on top).  A step looks at the
 * nearest fact:
 *
 *   it is what is predicted: all tracks before it are taken;
 *   it is not, and it is the next track's: that track is odd, and is asked
 *   whether it does end there;
 *   it is not: what lies half way is asked for.
 *
 * Where a track is not at its place its end is looked for block by block
 * (map_event).
 *
 * A sum proves its summands only if none holds more than predicted, and if no
 * spares make up for a slip.  So the beginning of the last track of every
 * region (a cylinder, or a sweep along a surface) is asked for, which is the
 * one that slips move whoever makes up for them.
 *
 * All else that could be believed wrongly is found by one means (map_doubt).
 * An order with its sizes begins as measured, track by track.  Whenever
 * something comes up that slips do not explain (a size that is too small or
 * changes, an order that ends, a track that is not there), the beginnings of
 * the slots before it are asked for, one round of those that nothing is known
 * of: if they are right, so is all that is believed since it began.  If one is
 * not, the map goes back to there and asks track by track.  What was asked
 * before is not asked of the drive again.
 *
 * At the end tracks are tried at random; if any is wrong, all is done again
 * track by track.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "extract/scsi/scsi_ask.h"
#include "extract/scsi/scsi_map.h"
#include "extract/scsi/scsi_order.h"
#include "extract/scsi/scsi_runs.h"

#define VERIFY 100u		/* tracks tried at the end */
#define SLIPPED_MAX 64u		/* tracks in a row that hold nothing */
/* Tracks of a slot in a row that hold less by the same: another zone. */
#define ZONE_TIMES 3u
/* Tracks of a slot that tell its size: the first may have slips. */
#define SEEN 2u
#define FACTS 128u
#define LEARN_FIRST 4u		/* tracks of an unknown slot, then more */
#define LEARN_MOST (UINT64_C(1) << 24)
#define PROGRESS_EACH 256u

/* A track of the order and its first block. */
struct fact {
	uint64_t track, start;
};

/* How far the map is; what going back brings back. */
struct state {
	struct order order;
	uint64_t first;		/* block: all before are mapped */
	uint64_t track;		/* of the order, that begins there */
	uint64_t learn;		/* tracks of an unknown slot to try next */
	uint64_t expect;	/* its tracks, if it is like the last one */
	struct track_runs runs;	/* the list itself stays */
	struct track_run last;	/* its last member */

	uint64_t lost_last;	/* the last track of a region ... */
	int64_t lost;		/* ... in which so many blocks are missing */
};

struct map {
	struct ask ask;
	const struct scsi_map_options *options;
	struct scsi_map *out;
	uint32_t surfaces;	/* of the actuators before this one */
	bool walk;		/* all is asked track by track */

	struct state now;
	struct state safe;	/* the map is right up to there */
	uint64_t doubted;	/* block: all before are asked by track */

	struct ask_spot here;	/* where the block here_first is */
	uint64_t here_first;
	struct fact fact[FACTS];
	unsigned facts;
};

/* ---- prediction ---- */

static uint32_t map_usual(const struct map *m, uint64_t track)
{
	const struct cycle *c = &m->now.order.cycle;
	uint64_t in_slot;

	return c->slot[cycle_slot_of(c, track, &in_slot)].blocks;
}

/* The first block of a track at or behind the present one. */
static uint64_t map_predict(const struct map *m, uint64_t track)
{
	const struct cycle *c = &m->now.order.cycle;

	return m->now.first + cycle_blocks_before(c, track) -
	       cycle_blocks_before(c, m->now.track);
}

static bool map_by_track(const struct map *m)
{
	return m->walk || m->now.first < m->doubted;
}

/* ---- doubt ---- */

static void map_safe(struct map *m)
{
	m->safe = m->now;
	if (m->now.runs.n)
		m->safe.last = m->now.runs.v[m->now.runs.n - 1];
}

static void map_go_back(struct map *m)
{
	struct track_runs runs = m->now.runs;

	m->doubted = m->now.first + 1;
	m->now = m->safe;
	m->now.runs.v = runs.v;
	m->now.runs.room = runs.room;
	if (m->now.runs.n)
		runs.v[m->now.runs.n - 1] = m->safe.last;
	m->facts = 0;
}

/* 1: the runs before the present track begin where it is believed, a round of
 * those that nothing was known of; 0: one does not. */
static int map_confirm(struct map *m)
{
	unsigned left = m->now.order.cycle.slots;
	uint64_t start = m->now.first, there, before;
	struct cycle_place place;
	const struct track_run *run;
	int err;

	for (size_t i = m->now.runs.n; left && i-- > m->safe.runs.n;) {
		run = &m->now.runs.v[i];
		start -= (uint64_t)run->count * run->blocks;
		place = run->place;
		place.head -= m->surfaces;
		before = translate_count(m->ask.translate);
		err = ask_start(&m->ask, &place, start, &there);
		if (err && err != -ENODATA)
			return err;
		if (err || there != start)
			return 0;
		left -= translate_count(m->ask.translate) > before;
	}
	return 1;
}

/*
 * Something has come up that slips do not explain.  1: what is believed up to
 * here is right, or has been asked track by track, and is safe now; 0: it is
 * asked once more.
 */
static int map_doubt(struct map *m)
{
	int rc = map_by_track(m) ? 1 : map_confirm(m);

	if (rc == 1)
		map_safe(m);
	else if (!rc)
		map_go_back(m);
	return rc;
}

/* ---- tracks that are taken ---- */

static int map_add(struct map *m, uint64_t count, uint32_t blocks)
{
	const struct cycle *c = &m->now.order.cycle;
	uint64_t in_slot;
	const struct cycle_slot *slot = &c->slot[cycle_slot_of(c, m->now.track,
							       &in_slot)];
	struct track_run run = {
		.step = slot->step, .count = (uint32_t)count,
		.blocks = blocks, .usual = slot->blocks, .known = true,
	};

	cycle_place_of(c, m->now.track, &run.place);
	run.place.head += m->surfaces;
	m->now.track += count;
	return runs_add(&m->now.runs, &run);
}

/* Blocks are missing in the present track. */
static void map_lose(struct map *m, uint64_t last, int32_t n)
{
	m->now.lost = (m->now.lost_last == last ? m->now.lost : 0) + n;
	m->now.lost_last = last;
}

/* Takes the tracks before `end` as predicted. */
static int map_take(struct map *m, uint64_t end)
{
	const struct cycle *c = &m->now.order.cycle;
	uint64_t first = map_predict(m, end), in_slot, n;
	bool sum = end - m->now.track > 1;
	struct order_slot *slot;
	int err = 0;

	if (end > m->now.lost_last)
		m->now.lost = 0;
	while (!err && m->now.track < end) {
		n = c->slot[cycle_slot_of(c, m->now.track, &in_slot)].tracks -
		    in_slot;
		n = n < end - m->now.track ? n : end - m->now.track;
		n = n < LEARN_MOST ? n : LEARN_MOST;
		slot = order_slot_of(&m->now.order, m->now.track);
		slot->summed |= sum;
		slot->seen += slot->seen < SEEN ? (unsigned)n : 0;
		err = map_add(m, n, map_usual(m, m->now.track));
	}
	m->now.first = first;
	return err;
}

static void map_size(struct map *m, uint32_t blocks)
{
	order_set_size(&m->now.order, m->now.track, blocks);
	m->facts = 0;
}

/* Takes the present track, behind which the next block is `end`. */
static int map_take_track(struct map *m, uint64_t end)
{
	uint64_t track = m->now.track, last;
	uint32_t blocks = (uint32_t)(end - m->now.first);
	int32_t more = (int32_t)(blocks - map_usual(m, track));
	struct order *o = &m->now.order;
	struct order_slot *slot;
	bool made_up, zone;
	int err, rc = 1;

	last = order_region_last(o, track);
	made_up = more > 0 && track == last && m->now.lost_last == last &&
		  m->now.lost >= more;
	slot = order_slot_of(o, track);
	zone = more < 0 && slot->seen &&
	       order_odd(o, track, more) >= ZONE_TIMES;
	if (zone || (more > 0 && !made_up && slot->summed))
		rc = map_doubt(m);
	if (rc <= 0)
		return rc;
	if (!slot->seen || zone || (more > 0 && !made_up))
		map_size(m, blocks);
	else if (more < 0)
		map_lose(m, last, -more);
	err = map_add(m, 1, blocks);
	m->now.first = end;
	if (track == last)
		m->now.lost = 0;
	return err;
}

/* ---- where a track does not follow ---- */

static void map_end_order(struct map *m)
{
	order_end(&m->now.order, m->now.track);
	m->facts = 0;
	m->now.lost = 0;
}

/*
 * The order's tracks between this one and where it goes on: slipped ones, if
 * there are no blocks on them.  Else another order of tracks has come to the
 * same place; 0 then.
 */
static int map_skipped(struct map *m, const struct ask_spot *next)
{
	unsigned ahead = order_ahead(&m->now.order, m->now.track, &next->place,
				     SLIPPED_MAX);
	struct cycle_place place;
	int rc;

	if (ahead < 2)
		return (int)ahead;
	cycle_place_of(&m->now.order.cycle, m->now.track + 1, &place);
	rc = ask_hole(&m->ask, &place);
	return rc == 1 ? (int)ahead : rc;
}

/* The end of a track that is not followed by what is predicted is looked for,
 * and where it goes on. */
static int map_event(struct map *m)
{
	const struct cycle *cycle = &m->now.order.cycle;
	uint64_t end, first = m->now.first, track = m->now.track;
	struct cycle_place place;
	struct ask_spot next;
	int err, ahead = 1;

	cycle_place_of(cycle, track, &place);
	err = ask_end(&m->ask, first, &place, map_predict(m, track + 1), &end,
		      &next);
	if (!err && end < m->ask.blocks)
		ahead = map_skipped(m, &next);
	if (err || ahead < 0)
		return err ? err : ahead;
	m->facts = 0;
	if (ahead == 1)
		return map_take_track(m, end);
	if (m->now.order.repeats) {
		err = map_doubt(m);
		if (err <= 0)
			return err;
	}
	err = map_take_track(m, end);
	if (err || m->now.track != track + 1)
		return err;
	m->here = next;
	m->here_first = end;
	if (ahead)
		m->now.track += (unsigned)ahead - 1;
	else
		map_end_order(m);
	m->out->slipped += ahead ? (unsigned)ahead - 1 : 0;
	return 0;
}

/* The next track begins at `start`, which is not as predicted. */
static int map_single(struct map *m, uint64_t start)
{
	struct cycle_place place;
	int rc;

	cycle_place_of(&m->now.order.cycle, m->now.track, &place);
	rc = ask_on_track(&m->ask, start - 1, &place);
	if (rc == 0 || rc == -ENODATA)
		return map_event(m);
	return rc < 0 ? rc : map_take_track(m, start);
}

/* ---- learning an order ---- */

/* A slot of which only the first track is known, and which way it goes on. */
static int map_begin_slot(struct map *m, const struct ask_spot *spot)
{
	struct order *o = &m->now.order;
	struct ask_spot next = *spot;
	uint64_t end;
	int err = ask_end(&m->ask, m->now.first, &spot->place, m->now.first +
			  order_last_blocks(o, spot->place.head), &end, &next);

	if (err)
		return err;
	order_begin_slot(o, &spot->place, &next.place,
			 (uint32_t)(end - m->now.first));
	m->now.learn = LEARN_FIRST;
	m->now.expect = o->records ? o->record[o->records - 1].tracks : 0;
	err = map_take(m, 1);
	if (!err && !o->cycle.slot[0].step)
		map_end_order(m);
	return err;
}

static int map_learn(struct map *m)
{
	struct ask_spot spot = m->here;
	int err = 0;

	if (m->here_first != m->now.first)
		err = ask_where(&m->ask, m->now.first, &spot);
	if (err)
		return err;
	m->now.track = 0;
	map_safe(m);
	if (m->walk || !order_recognise(&m->now.order, &spot.place))
		return map_begin_slot(m, &spot);
	m->out->cycles++;
	return 0;
}

/* ---- facts ---- */

/* Asks where a track begins; what can't be so is no answer. */
static int map_ask_fact(struct map *m, uint64_t track)
{
	uint64_t most = m->facts ? m->fact[m->facts - 1].start :
				   m->ask.blocks;
	uint64_t guess = map_predict(m, track), start;
	struct cycle_place place;
	int err;

	cycle_place_of(&m->now.order.cycle, track, &place);
	err = ask_start(&m->ask, &place, guess, &start);
	if (!err && (start <= m->now.first || start >= most))
		err = -ENODATA;
	if (err)
		return err;
	if (m->facts == FACTS)
		memmove(m->fact, m->fact + 1, --m->facts * sizeof(*m->fact));
	m->fact[m->facts++] = (struct fact){ .track = track, .start = start };
	return 0;
}

/* A fact so many tracks ahead, or nearer. */
static int map_ask_ahead(struct map *m, uint64_t n)
{
	int rc;

	for (; n; n /= 2) {
		rc = map_ask_fact(m, m->now.track + n);
		if (rc != -ENODATA)
			return rc;
		m->now.learn = LEARN_FIRST;
	}
	return map_event(m);
}

/* How many tracks a single fact may decide about. */
static uint64_t map_reach(struct map *m)
{
	struct order *o = &m->now.order;
	uint64_t track = m->now.track, last = track;

	if (map_by_track(m) || order_slot_of(o, track)->seen < SEEN)
		return 1;
	/* Do spares make up for what has been lost? */
	if (m->now.lost && m->now.lost_last == track)
		return 1;
	if (!o->repeats)
		return track + 1 < m->now.expect ? m->now.expect - 1 - track :
						   m->now.learn;
	if (order_region_last(o, last) == last)
		last++;
	last = order_region_last(o, last);
	/* No further than a slot of which nothing is known. */
	while (o->cycle.slots > 1) {
		uint64_t in_slot;
		unsigned slot = cycle_slot_of(&o->cycle, track, &in_slot);

		track += o->cycle.slot[slot].tracks - in_slot;
		if (track >= last)
			break;
		if (order_slot_of(o, track)->seen < SEEN)
			return track - m->now.track;
	}
	return last - m->now.track;
}

/* Does a track ahead begin where it is predicted? */
static int map_begins(struct map *m, uint64_t track)
{
	struct cycle_place place;
	uint64_t start;
	int err;

	cycle_place_of(&m->now.order.cycle, track, &place);
	err = ask_start(&m->ask, &place, map_predict(m, track), &start);
	return err == -ENODATA ? 0 : err ? err :
	       start == map_predict(m, track);
}

/*
 * All is as predicted up to the nearest fact.  A sum says nothing of the order
 * of what it sums up, though: along a surface the last track before the fact
 * must be where it should, too, for the fact may be on the way back.  Of two
 * facts on one surface the nearer one can't be.
 */
static int map_accept(struct map *m, uint64_t end)
{
	const struct cycle *c = &m->now.order.cycle;
	uint64_t in_slot, left, far = end - m->now.track;
	unsigned slot = cycle_slot_of(c, end, &in_slot);
	int rc = 1;

	left = c->slot[slot].tracks - in_slot;
	if (far > 1 && in_slot > 1 &&
	    (m->facts < 2 || m->fact[m->facts - 2].track >= end + left))
		rc = map_begins(m, end - 1);
	if (rc <= 0)
		return rc ? rc : map_ask_ahead(m, far / 2);
	if (!m->now.order.repeats && far == m->now.learn &&
	    m->now.learn < LEARN_MOST)
		m->now.learn *= 4;
	m->facts--;
	return map_take(m, end);
}

static int map_towards(struct map *m, const struct fact *fact)
{
	uint64_t track = m->now.track, n = fact->track - track;
	uint64_t reach = map_reach(m);
	bool right = map_predict(m, fact->track) == fact->start;

	if (right && n <= reach && (n > 1 || !map_by_track(m)))
		return map_accept(m, fact->track);
	if (n == 1)
		return map_single(m, fact->start);
	if (n > reach)
		return map_ask_ahead(m, reach);
	/* Is it what has been lost that the last track makes up for? */
	if (order_region_last(&m->now.order, track) == track)
		return map_ask_ahead(m, 1);
	return map_ask_ahead(m, n / 2);
}

/* The first fact: far away, but on the disk. */
static int map_leap(struct map *m)
{
	uint64_t n = map_reach(m);

	if (m->doubted && !map_by_track(m)) {
		m->doubted = 0;
		map_safe(m);
	}
	if (!m->now.order.repeats && m->now.track + 1 == m->now.expect)
		return map_event(m);
	while (n && map_predict(m, m->now.track + n) >= m->ask.blocks)
		n /= 2;
	return n ? map_ask_ahead(m, n) : map_event(m);
}

static int map_step(struct map *m)
{
	const struct fact *top;

	if (!m->now.order.cycle.slots)
		return map_learn(m);
	while (m->facts) {
		top = &m->fact[m->facts - 1];
		if (top->track > m->now.track && top->start > m->now.first)
			return map_towards(m, top);
		m->facts--;
	}
	return map_leap(m);
}

/* ---- the whole ---- */

/* Blocks that the drive says nothing of: up to the next track's beginning. */
static int map_skip(struct map *m)
{
	struct track_run run = { .count = 1 };
	uint64_t step, end = m->ask.blocks, at;
	struct ask_spot spot;
	int err;

	for (step = 1024; m->now.first + step < m->ask.blocks; step *= 2) {
		at = m->now.first + step;
		if (ask_where(&m->ask, at, &spot))
			continue;
		if (!ask_end(&m->ask, at, &spot.place, at + 1024, &end, &spot))
			break;
		end = m->ask.blocks;
	}
	m->out->unknown_blocks += end - m->now.first;
	order_end(&m->now.order, m->now.track);
	for (err = 0; !err && m->now.first < end; m->now.first += run.blocks) {
		step = end - m->now.first;
		run.blocks = run.usual = step < 4096 ? (uint32_t)step : 4096;
		err = runs_add(&m->now.runs, &run);
	}
	m->facts = 0;
	map_safe(m);
	return err;
}

/* All tracks up to a block: one actuator's. */
static int map_range(struct map *m, uint64_t end)
{
	const struct scsi_map_options *o = m->options;
	uint64_t steps = 0;
	int err = 0;

	m->ask.blocks = end;
	map_safe(m);
	while (!err && (m->now.first < end ||
			!(err = map_doubt(m)))) {
		err = map_step(m);
		if (err == -ENODATA || err == -EIO)
			err = map_skip(m);
		if (!err && !(++steps % PROGRESS_EACH) && o->progress &&
		    !o->progress(o->arg, m->now.first, o->blocks))
			err = -EINTR;
	}
	return err < 0 ? err : 0;
}

static int map_all(struct map *m)
{
	const struct scsi_map_options *o = m->options;
	uint64_t end = 0;
	int err = ask_find_pitch(&m->ask);

	if (!err && !o->range)
		return map_range(m, o->blocks);
	for (unsigned i = 0; i < o->ranges && !err; i++) {
		/* Nothing that was learned goes over to the next. */
		memset(&m->now.order, 0, sizeof(m->now.order));
		m->here_first = UINT64_MAX;
		m->facts = 0;
		m->surfaces = i * SCSI_MAP_SURFACES;
		end += o->range[i].blocks;
		/* Places of the two may have the same names. */
		err = ask_try_back(&m->ask, end - 1);
		if (!err)
			err = map_range(m, end);
	}
	return err;
}

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* 1: a track's ends are where the geometry says. */
static int map_track_right(struct map *m, const struct geom_track *track,
			   uint32_t unit)
{
	const struct cycle_place place = { track->cylinder,
					   track->surface % SCSI_MAP_SURFACES };
	uint64_t first = track->first / unit;
	int rc = ask_begins(&m->ask, first, &place, true);

	if (rc == 1)
		rc = ask_begins(&m->ask, first + track->sectors / unit, &place,
				false);
	return rc;
}

/* Tracks at random, once more against the drive.  -EUCLEAN: one is not
 * right. */
static int map_verify(struct map *m, const struct geom *geom, uint32_t unit)
{
	unsigned n = m->options->verify ? m->options->verify : VERIFY;
	uint64_t state = m->ask.blocks;
	struct geom_track track;
	int rc;

	while (n--) {
		geom_track_of(geom, next_random(&state) % m->ask.blocks * unit,
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

static int map_finish(struct map *m)
{
	uint32_t unit = m->options->block_bytes / 512;
	struct geom *geom;
	int err = runs_geom(&m->now.runs, unit, &geom);

	if (err)
		return err;
	err = map_verify(m, geom, unit);
	m->out->tracks = m->now.runs.tracks;
	m->out->odd = m->now.runs.odd;
	if (err)
		geom_free(geom);
	else
		m->out->geom = geom;
	return err;
}

static int map_try(struct translate *translate,
		   const struct scsi_map_options *options, bool walk,
		   struct scsi_map *out)
{
	struct map *m = calloc(1, sizeof(*m));
	int err;

	memset(out, 0, sizeof(*out));
	if (!m)
		return -ENOMEM;
	m->ask = (struct ask){ .translate = translate,
			       .blocks = options->blocks, .plain = walk };
	m->options = options;
	m->out = out;
	m->walk = out->walked = walk;
	m->here_first = UINT64_MAX;
	err = map_all(m);
	if (!err)
		err = map_finish(m);
	runs_fini(&m->now.runs);
	free(m);
	return err;
}

int scsi_map_make(struct translate *translate,
		  const struct scsi_map_options *options,
		  struct scsi_map *out)
{
	uint64_t before = translate_count(translate);
	int err = map_try(translate, options, options->walk, out);

	if (err == -EUCLEAN && !options->walk) {
		msg_warn("translations: a prediction that had been checked is "
			 "wrong; all tracks are asked for");
		err = map_try(translate, options, true, out);
	}
	if (err == -EUCLEAN)
		msg_error("translations contradict each other");
	out->translations = translate_count(translate) - before;
	return err;
}

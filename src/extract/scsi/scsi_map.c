/*
 * scsi_map.c - from translations to tracks.
 *
 * At every moment the map is exact up to a track's first block (`first`), the
 * model says how it goes on, and of some tracks ahead it is known where they
 * begin (`fact`, the nearest on top).  A step looks at the nearest fact:
 *
 *   it is what the model predicts: all tracks before it are taken, and if
 *   there was no other fact the next one is asked for four times as far away;
 *   it is not, and it is the next track: that track is odd (slips, or a new
 *   zone: the model's matter);
 *   it is not: what lies half way is asked for.
 *
 * A fact tells how many blocks are missing before it, so that of several odd
 * tracks in a leap none is looked for where there can't be one.
 *
 * A sum proves its summands only if none can be more than foretold: sizes must
 * have been seen (model_sure); and where the spares of a cylinder may take up a
 * slip so that the next cylinder knows nothing of it, the beginning of its last
 * track is asked for, the only one that moves, until slips have shown that they
 * do move all that follows.
 *
 * Where a track is not where the model says (a slipped one, the model's end)
 * its end is looked for block by block (map_event).  At the end tracks are
 * tried at random; if any is wrong, all is done again by walking.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "diskmodel/geom_build.h"
#include "extract/scsi/scsi_around.h"
#include "extract/scsi/scsi_ask.h"
#include "extract/scsi/scsi_check.h"
#include "extract/scsi/scsi_map.h"
#include "extract/scsi/scsi_model.h"

#define VERIFY 100u
#define SLIPPED_MAX 64u
#define PUSHED 2u
#define PUSHED_HERE 8u		/* where other zones' slips were made up for */
#define CROSSED 2u
#define PASSES 8u
#define FACTS 128u
#define LEAP_FIRST 1024u
#define LEAP_MOST (UINT64_C(1) << 32)
#define PROGRESS_EACH 256u
/* A track that lacks more than this part is looked at twice. */
#define LITTLE 16u

/* What is done again with less, when something is found to be wrong. */
enum belief {
	BELIEVE_SUMS,
	BELIEVE_NOTHING,	/* no leaps */
};

/* A track of the model and its first block. */
struct fact {
	uint64_t track, start;
	bool likely;		/* only slips are missing before it */
};

struct map {
	struct ask ask;
	struct model model;
	const struct scsi_map_options *options;
	struct geom_build *build;
	struct geom_sweep pending;	/* not in it yet */
	struct scsi_map *out;
	uint32_t unit;		/* sectors of a block */
	uint32_t surfaces;	/* of the actuators before this one */
	enum belief belief;

	uint64_t first;		/* block: all before are mapped */
	struct ask_spot here;	/* where it is, ... */
	uint64_t here_first;	/* ... if this is it */
	uint64_t track;		/* of the model, that begins there */
	uint64_t leap;		/* tracks to try next */
	uint64_t expect;	/* tracks of a slot that is being learned */
	struct fact fact[FACTS];
	unsigned facts;

	uint64_t passes;
	bool passed;		/* the last leap was not looked into */
	unsigned crossed;	/* ends of slots seen since the last surprise */

	/* Slips: moved all behind them, or were made up for in the region. */
	unsigned pushed, absorbed;
	unsigned pushed_ever;
	bool absorbed_ever;
	uint32_t room;		/* the most blocks that were made up for */
	uint64_t lost_last;	/* the region's last track ... */
	int64_t lost;		/* ... in which so many blocks are missing, */
	bool lost_maybe;	/* or not, for sizes were not sure */
};

static bool map_walks(const struct map *m)
{
	return m->belief == BELIEVE_NOTHING;
}

/* ---- prediction ---- */

static uint32_t map_nominal(const struct map *m, uint64_t track)
{
	uint64_t in_slot;

	return m->model.cycle.slot[cycle_slot_of(&m->model.cycle, track,
						 &in_slot)].blocks;
}

/* The first block of a track at or behind the present one. */
static uint64_t map_predict(const struct map *m, uint64_t track)
{
	return m->first + cycle_blocks_before(&m->model.cycle, track) -
	       cycle_blocks_before(&m->model.cycle, m->track);
}

/* ---- slips and who makes up for them ---- */

static void map_lose(struct map *m, uint64_t track, int64_t n)
{
	uint64_t last = model_region_last(&m->model, track);

	if (m->lost_last != last) {
		m->lost = 0;
		m->lost_maybe = false;
	}
	m->lost_last = last;
	m->lost += n;
	m->lost_maybe |= !model_sure(&m->model, track, 1);
}

/* May the region's last track hold spares?  Where all tracks of a cylinder are
 * alike it would be chance, and this drive one that has shown none. */
static bool map_may_spare(const struct map *m)
{
	return model_may_spare(&m->model) &&
	       (!model_alike(&m->model) || m->absorbed_ever ||
		m->pushed_ever < PUSHED);
}

/* May a slip be hidden by the spares of its region? */
static bool map_guarded(const struct map *m)
{
	return map_may_spare(m) &&
	       (m->absorbed ||
		m->pushed < (m->absorbed_ever ? PUSHED_HERE : PUSHED));
}

/* A region's last track held so much more than its slot says. */
static void map_note_region(struct map *m, uint64_t track, int32_t more)
{
	if (!m->model.in_cycle || m->lost_last != track || m->lost <= 0 ||
	    more < 0)
		return;
	if (more > (int32_t)m->room)
		m->room = (uint32_t)more;
	if (more) {
		m->absorbed++;
		m->pushed = 0;
		m->absorbed_ever = true;
	} else if (!m->lost_maybe) {
		m->pushed++;
		m->pushed_ever++;
	}
}

/* ---- what is known goes into the geometry ---- */

/* Sectors for blocks of others around the present track, as far as seen. */
static uint32_t map_room(const struct map *m)
{
	if (!m->model.cycle.slots || !model_by_cylinder(&m->model) ||
	    model_region_last(&m->model, m->track) != m->track)
		return 0;
	return m->room;
}

/* What is pending goes into the geometry. */
static int map_flush(struct map *m)
{
	int err = m->pending.count ? geom_build_sweep(m->build, &m->pending) :
				     0;

	m->pending.count = 0;
	return err;
}

/*
 * Tracks along a surface, so many cylinders apart.  What goes on is put
 * together, however it was found: else the geometry would not repeat.
 */
static int map_add(struct map *m, const struct cycle_place *place, int32_t step,
		   uint32_t count, uint64_t blocks, bool known)
{
	struct geom_sweep *last = &m->pending;
	struct geom_sweep sweep = {
		.count = count,
		.sectors = (uint32_t)(blocks * m->unit),
		.around = (uint32_t)((blocks + map_room(m)) * m->unit),
		.cylinder = place->cylinder,
		.surface = (int32_t)(place->head + m->surfaces),
		.cylinder_step = step,
		.known = known,
	};
	int err;

	m->out->tracks += count;
	if (last->count && step && last->cylinder_step == step &&
	    last->surface == sweep.surface && last->known == known &&
	    last->sectors == sweep.sectors && last->around == sweep.around &&
	    last->cylinder + (int64_t)last->count * step == sweep.cylinder &&
	    last->count < UINT32_MAX / 2) {
		last->count += count;
		return 0;
	}
	err = map_flush(m);
	m->pending = sweep;
	return err;
}

static int map_add_odd(struct map *m, int64_t more)
{
	m->out->odd++;
	return geom_build_odd(m->build, geom_build_tracks(m->build) +
						m->pending.count,
			      (int32_t)(more * m->unit));
}

/* Tracks of nominal size. */
static int map_add_plain(struct map *m, uint64_t end)
{
	const struct cycle *cycle = &m->model.cycle;
	uint64_t in_slot, run;
	int err = 0;

	while (!err && m->track < end) {
		const struct cycle_slot *slot = &cycle->slot[cycle_slot_of(
			cycle, m->track, &in_slot)];
		struct cycle_place place;

		run = slot->tracks - in_slot;
		if (run > end - m->track)
			run = end - m->track;
		if (run > UINT32_MAX / 2)
			run = UINT32_MAX / 2;
		cycle_place_of(cycle, m->track, &place);
		err = map_add(m, &place, slot->step, (uint32_t)run,
			      slot->blocks, true);
		m->track += run;
	}
	return err;
}

/* One track that holds so many more blocks than its slot says. */
static int map_add_track(struct map *m, int64_t more)
{
	const struct cycle *cycle = &m->model.cycle;
	uint32_t nominal = map_nominal(m, m->track);
	struct cycle_place place;
	uint64_t in_slot;
	int err = 0;

	cycle_place_of(cycle, m->track, &place);
	/* Of another zone, most likely, whose tracks have other sectors. */
	if (more > map_room(m) || -more > nominal / LITTLE)
		nominal += (uint32_t)more;
	else if (more)
		err = map_add_odd(m, more);
	if (!err)
		err = map_add(m, &place,
			      cycle->slot[cycle_slot_of(cycle, m->track,
							&in_slot)].step,
			      1, nominal, true);
	m->track++;
	return err;
}

/* Takes the tracks before `end` as predicted. */
static int map_take(struct map *m, uint64_t end)
{
	uint64_t next = map_predict(m, end);
	int err = map_add_plain(m, end);

	m->first = next;
	return err;
}

/* ---- the model's end ---- */

static void map_end_model(struct map *m)
{
	model_end(&m->model, m->track, m->crossed >= CROSSED);
	m->facts = 0;
	m->lost = 0;
}

/* ---- a single track ---- */

/* A new zone: what was learned of spares holds for the old one. */
static void map_new_zone(struct map *m)
{
	if (model_by_cylinder(&m->model))
		m->pushed = m->absorbed = 0;
	m->room = 0;
	m->crossed = 0;
}

/* What the present track says of its slot's size. */
static int map_slips(struct map *m, uint64_t end, int *slips)
{
	int n;

	*slips = MODEL_UNSURE;
	if (m->lost > 0 && m->lost_last == m->track)
		return 0;
	n = ask_slips(&m->ask, end, (uint32_t)(end - m->first));
	*slips = n == -ENODATA ? MODEL_UNTOLD : n;
	return n < 0 && n != -ENODATA ? n : 0;
}

/* The same, if it is worth asking for. */
static int map_wonder(struct map *m, uint64_t end, int32_t more, int *slips)
{
	*slips = MODEL_UNTOLD;
	return !map_walks(m) && model_wonders(&m->model, m->track, more) ?
		       map_slips(m, end, slips) : 0;
}

/* Takes the present track, behind which the next block is `end`. */
static int map_take_track(struct map *m, uint64_t end)
{
	uint64_t track = m->track;
	int64_t more = (int64_t)(end - m->first) -
		       (int64_t)map_nominal(m, track);
	bool makes_up = more > 0 && m->model.in_cycle && m->lost > 0 &&
			m->lost_last == track;
	int slips = MODEL_UNTOLD, err = 0;

	if (!makes_up && model_misled(&m->model, track, (int32_t)more))
		return -ESTALE;
	if (more && !makes_up)
		err = map_wonder(m, end, (int32_t)more, &slips);
	if (!err)
		err = map_add_track(m, more);
	if (err)
		return err;
	m->first = end;
	if (more < 0)
		map_lose(m, track, -more);
	if (makes_up)
		map_note_region(m, track, (int32_t)more);
	else if (more && model_odd(&m->model, track, (int32_t)more, slips))
		map_new_zone(m);
	return 0;
}

/*
 * The model's tracks between this one and where it goes on: slipped ones, if
 * there are no blocks on them.  Else another order of tracks has come to the
 * same place; 0 then.
 */
static int map_skipped(struct map *m, const struct ask_spot *next)
{
	unsigned ahead = model_ahead(&m->model, m->track, &next->place,
				     SLIPPED_MAX);
	struct scsi_address address = { 0 };
	struct cycle_place place;
	int rc;

	if (ahead < 2 || !ask_knows_holes(&m->ask))
		return (int)ahead;
	cycle_place_of(&m->model.cycle, m->track + 1, &place);
	address.cylinder = place.cylinder;
	address.head = place.head;
	rc = ask_hole(&m->ask, &address);
	return rc == 1 ? (int)ahead : rc;
}

static bool map_ends_slot(const struct map *m, uint64_t track)
{
	uint64_t in_slot;
	unsigned slot = cycle_slot_of(&m->model.cycle, track, &in_slot);

	return in_slot + 1 == m->model.cycle.slot[slot].tracks;
}

/* May a zone end there, so that there are other tracks before the next one that
 * is foretold? */
static bool map_jumps(const struct map *m, uint64_t track)
{
	return model_by_cylinder(&m->model) ?
		       model_region_last(&m->model, track) == track :
		       map_ends_slot(m, track);
}

/*
 * The track that is not followed by what the model says: its end is looked for,
 * and where it goes on.
 */
static int map_event(struct map *m)
{
	const struct cycle *cycle = &m->model.cycle;
	struct cycle_place place, expected;
	uint64_t end, track = m->track;
	struct ask_spot next;
	int err, ahead = 1;

	cycle_place_of(cycle, track, &place);
	cycle_place_of(cycle, track + 1, &expected);
	err = ask_end(&m->ask, m->first, &place,
		      map_jumps(m, track) ? &place : &expected,
		      map_predict(m, track + 1), &end, &next);
	if (err)
		return err;
	if (end < m->ask.blocks)
		ahead = map_skipped(m, &next);
	if (ahead < 0)
		return ahead;
	m->facts = 0;
	err = map_take_track(m, end);
	m->here = next;
	m->here_first = end;
	if (!ahead) {
		map_end_model(m);
	} else if (ahead > 1) {
		/* Or another order that goes on there by chance. */
		m->track += (unsigned)ahead - 1;
		m->out->slipped += (unsigned)ahead - 1;
		m->crossed = 0;
		model_doubt(&m->model);
	}
	return err;
}

/* The first track of a slot that is seen: so large are its tracks. */
static int map_first(struct map *m, uint64_t start)
{
	uint32_t blocks = (uint32_t)(start - m->first), nominal;
	struct cycle_place place;
	int rc, slips;

	cycle_place_of(&m->model.cycle, m->track, &place);
	rc = ask_on_track(&m->ask, start - 1, &place);
	if (rc <= 0)
		return rc && rc != -ENODATA ? rc : map_event(m);
	rc = map_slips(m, start, &slips);
	if (rc)
		return rc;
	nominal = model_first(&m->model, m->track, blocks, slips);
	if (nominal > blocks)
		map_lose(m, m->track, nominal - blocks);
	rc = map_add_track(m, (int64_t)blocks - nominal);
	m->first = start;
	map_new_zone(m);
	return rc;
}

/* The next track begins at `start`, which is not as predicted. */
static int map_single(struct map *m, uint64_t start)
{
	int64_t nominal = map_nominal(m, m->track);
	int64_t more = (int64_t)(start - m->first) - nominal;
	uint64_t track = m->track;
	struct cycle_place place;
	int rc;

	if (model_fresh(&m->model, track))
		return map_first(m, start);
	if (map_walks(m) || -more > nominal / LITTLE || map_jumps(m, track) ||
	    (more > 0 && (m->lost_last != track || more > m->lost))) {
		cycle_place_of(&m->model.cycle, track, &place);
		rc = ask_on_track(&m->ask, start - 1, &place);
		if (rc <= 0)
			return rc && rc != -ENODATA ? rc : map_event(m);
	}
	return map_take_track(m, start);
}

/* ---- learning a model ---- */

/* A slot of which only the first track is known, and which way it goes on. */
static int map_begin_slot(struct map *m, const struct ask_spot *spot)
{
	uint64_t guess = model_last_blocks(&m->model, spot->place.head);
	unsigned records = m->model.records;
	struct ask_spot next = *spot;
	uint64_t end;
	int slips, err = ask_end(&m->ask, m->first, &spot->place, NULL,
			  m->first + guess, &end, &next);

	if (err)
		return err;
	model_begin_slot(&m->model, &spot->place, &next.place,
			 (uint32_t)(end - m->first));
	m->track = 0;
	/* As long as the last one, with luck. */
	m->expect = records ? m->model.record[records - 1].tracks : 0;
	m->leap = 4;
	if (m->model.cycle.slot[0].step) {
		err = map_slips(m, end, &slips);
		if (!err)
			model_first(&m->model, 0, (uint32_t)(end - m->first),
				    slips);
		return err;
	}
	err = map_take(m, 1);
	map_end_model(m);
	return err;
}

static int map_learn(struct map *m)
{
	struct ask_spot spot = m->here;
	int err = 0;

	if (m->here_first != m->first)
		err = ask_where(&m->ask, m->first, &spot);
	if (err)
		return err;
	m->facts = 0;
	m->lost = 0;
	m->crossed = 0;
	if (!map_walks(m) && model_recognise(&m->model, &spot.place))
		m->crossed = CROSSED;
	if (m->crossed ||
	    (!map_walks(m) && model_recall(&m->model, &spot.place))) {
		m->track = 0;
		m->out->cycles++;
		m->leap = LEAP_FIRST;
		return 0;
	}
	return map_begin_slot(m, &spot);
}

/* ---- leaping ---- */

/* Tracks to the next end of a slot; or that one, when it has been reached. */
static uint64_t map_to_slot_end(const struct map *m)
{
	uint64_t in_slot, left;
	unsigned slot = cycle_slot_of(&m->model.cycle, m->track, &in_slot);

	left = m->model.cycle.slot[slot].tracks - 1 - in_slot;
	return left ? left : 1;
}

/* How many tracks a single fact may decide about. */
static uint64_t map_reach(struct map *m)
{
	uint64_t n, last;

	if (map_walks(m))
		return 1;
	n = model_sure(&m->model, m->track, LEAP_MOST);
	if (n > 1 && map_guarded(m)) {
		last = model_region_last(&m->model, m->track);
		if (last == m->track && m->lost_last == last && m->lost)
			last++;
		else if (last == m->track)
			last = model_region_last(&m->model, last + 1);
		if (last - m->track < n)
			n = last - m->track;
	}
	if (n > 1 && m->model.in_cycle && m->crossed < CROSSED) {
		last = map_to_slot_end(m);
		n = last < n ? last : n;
	}
	return n ? n : 1;
}

/* Asks where a track begins; what is not between here and the next fact is no
 * answer. */
static int map_ask_fact(struct map *m, uint64_t track)
{
	uint64_t most = m->facts ? m->fact[m->facts - 1].start :
				   m->ask.blocks;
	uint64_t guess = map_predict(m, track), start;
	struct cycle_place place;
	int err;

	cycle_place_of(&m->model.cycle, track, &place);
	err = ask_start(&m->ask, &place, guess, &start);
	if (!err && (start <= m->first || start >= most))
		err = -ENODATA;
	if (err)
		return err;
	if (m->facts == FACTS)
		memmove(m->fact, m->fact + 1,
			--m->facts * sizeof(*m->fact));
	m->fact[m->facts++] = (struct fact){
		.track = track, .start = start,
		.likely = start <= guess &&
			  guess - start <= (track - m->track) / 2 + 64,
	};
	return 0;
}

/* A fact so many tracks ahead, or nearer. */
static int map_ask_ahead(struct map *m, uint64_t n)
{
	int rc;

	for (; n; n /= 2) {
		rc = map_ask_fact(m, m->track + n);
		if (rc != -ENODATA)
			return rc;
		m->leap = n;
	}
	return map_event(m);
}

static bool map_begins_region(const struct map *m, uint64_t track)
{
	return !track || model_region_last(&m->model, track - 1) == track - 1;
}

/* From one cylinder's last track to the next one's, again and again: that is
 * looked at now and then, and if it is wrong then the map is begun anew. */
static bool map_passes(struct map *m, const struct fact *fact)
{
	if (m->model.careful || !model_by_cylinder(&m->model) ||
	    !map_guarded(m) ||
	    model_region_last(&m->model, m->track) != m->track ||
	    model_region_last(&m->model, m->track + 1) != fact->track)
		return false;
	return ++m->passes % PASSES;
}

/*
 * A sum says nothing of the order of what it sums up, and that of other sizes
 * may be the same by chance: does the track before the fact begin where it
 * should, too?  Not asked between facts that only slips keep apart; but the
 * cylinders of two zones may hold the same.
 */
static int map_both_sides(struct map *m, const struct fact *fact)
{
	uint64_t last = fact->track - 1;
	struct cycle_place place;
	bool passed = m->passed;
	int rc;

	if (last == m->track)
		return 1;
	if (model_by_cylinder(&m->model) && !map_begins_region(m, m->track) &&
	    last < model_region_last(&m->model, m->track))
		return 1;
	if (m->facts > 1 && fact[-1].likely &&
	    !(model_by_cylinder(&m->model) &&
	      map_begins_region(m, fact->track)))
		return 1;
	m->passed = map_passes(m, fact);
	if (m->passed)
		return 1;
	cycle_place_of(&m->model.cycle, last, &place);
	rc = ask_begins(&m->ask, map_predict(m, last), &place, true);
	if (rc && rc != -ENODATA)
		return rc;
	return passed ? -ESTALE : 0;
}

/* All as foretold up to a fact. */
static int map_accept(struct map *m, uint64_t end)
{
	bool alone = end == m->track + 1;
	uint64_t track = m->track;
	int rc = 0, slips = MODEL_UNTOLD;
	int32_t more;

	if (!alone)
		return map_take(m, end);
	more = (int32_t)(map_predict(m, end) - m->first) -
	       (int32_t)map_nominal(m, track);
	if (!map_walks(m) && !model_sure(&m->model, track, 1))
		rc = map_slips(m, map_predict(m, end), &slips);
	if (rc < 0)
		return rc;
	m->crossed += map_ends_slot(m, track);
	model_right(&m->model, track, slips);
	rc = map_take(m, end);
	map_note_region(m, track, more);
	return rc;
}

static int map_towards(struct map *m, const struct fact *fact)
{
	uint64_t n = fact->track - m->track, reach = map_reach(m);
	bool foretold = map_predict(m, fact->track) == fact->start;
	int rc;

	if (foretold && n <= reach) {
		rc = map_both_sides(m, fact);
		if (rc)
			return rc < 0 ? rc : map_accept(m, fact->track);
		m->facts--;
	}
	if (n == 1)
		return map_single(m, fact->start);
	return map_ask_ahead(m, n > reach ? reach : n / 2);
}

/* The first fact: far away, but on the disk. */
static int map_leap(struct map *m)
{
	uint64_t n = m->leap;
	uint64_t reach = map_reach(m);

	if (!m->model.in_cycle && m->track + 1 < m->expect)
		n = m->expect - 1 - m->track;
	if (!m->model.in_cycle && m->track + 1 == m->expect)
		return map_event(m);
	if (n > 1 && model_by_cylinder(&m->model))
		n = model_region_last(&m->model, m->track + n) - m->track;
	if (n > reach)
		n = reach;
	while (n && map_predict(m, m->track + n) >= m->ask.blocks)
		n /= 2;
	if (!n)
		return map_event(m);
	if (n >= m->leap)
		m->leap = 4 * m->leap < LEAP_MOST ? 4 * m->leap : LEAP_MOST;
	return map_ask_ahead(m, n);
}

static int map_step(struct map *m)
{
	const struct fact *top;

	if (!m->model.cycle.slots)
		return map_learn(m);
	while (m->facts) {
		top = &m->fact[m->facts - 1];
		if (top->track > m->track && top->start > m->first)
			return map_towards(m, top);
		m->facts--;
	}
	return map_leap(m);
}

/* Blocks that the drive says nothing of: up to the next track's beginning. */
static int map_skip(struct map *m)
{
	const struct cycle_place nowhere = { 0, 0 };
	uint64_t step, end = m->ask.blocks, at;
	struct ask_spot spot;
	int err;

	for (step = 1024; m->first + step < m->ask.blocks; step *= 2) {
		at = m->first + step;
		if (ask_where(&m->ask, at, &spot))
			continue;
		if (!ask_end(&m->ask, at, &spot.place, NULL, at + 1024, &end,
			     &spot))
			break;
		end = m->ask.blocks;
	}
	m->out->unknown_blocks += end - m->first;
	map_end_model(m);
	for (err = 0; !err && m->first < end; m->first += step) {
		step = end - m->first < 4096 ? end - m->first : 4096;
		err = map_add(m, &nowhere, 0, 1, step, false);
	}
	return err;
}

/* All tracks up to a block: one actuator's. */
static int map_range(struct map *m, uint64_t end)
{
	const struct scsi_map_options *o = m->options;
	uint64_t steps = 0;
	int err = 0;

	m->ask.blocks = end;
	while (!err && m->first < end) {
		err = map_step(m);
		if (err == -ENODATA || err == -EIO)
			err = map_skip(m);
		if (!err && !(++steps % PROGRESS_EACH) && o->progress &&
		    !o->progress(o->arg, m->first, o->blocks))
			err = -EINTR;
	}
	return err;
}

static int map_all(struct map *m)
{
	const struct scsi_map_options *o = m->options;
	uint64_t end = 0;
	unsigned i;
	int err = ask_find_pitch(&m->ask);

	if (err)
		return err;
	if (!o->range)
		return map_range(m, o->blocks);
	for (i = 0; i < o->ranges && !err; i++) {
		if (i)
			map_end_model(m);
		/* Nothing that was learned goes over to the next. */
		m->model = (struct model){ .careful = m->model.careful };
		m->here_first = UINT64_MAX;
		m->pushed = m->absorbed = 0;
		m->surfaces = i * SCSI_MAP_SURFACES;
		end += o->range[i].blocks;
		/* Places of the two may have the same names. */
		err = ask_try_back(&m->ask, end - 1);
		if (!err)
			err = map_range(m, end);
	}
	return err;
}

/* ---- the whole ---- */

static int map_finish(struct map *m)
{
	const struct scsi_map_options *o = m->options;
	struct scsi_check check = { .ask = &m->ask, .unit = m->unit };
	unsigned verify = o->verify ? o->verify : VERIFY;
	struct geom *geom;
	int err = map_flush(m);

	if (!err)
		err = geom_build_finish(m->build, &geom);
	if (err)
		return err;
	check.geom = geom;
	err = scsi_check_grown(&check, o->grown, o->grown_n);
	if (!err)
		err = scsi_check_tracks(&check, verify);
	if (!err)
		err = scsi_around(&geom);
	m->out->verified = check.verified;
	m->out->remaps = check.remaps;
	if (err)
		geom_free(geom);
	else
		m->out->geom = geom;
	return err;
}

static int map_try(struct translate *translate,
		   const struct scsi_map_options *options, enum belief belief,
		   bool careful, struct scsi_map *out)
{
	struct map *m = calloc(1, sizeof(*m));
	int err = -ENOMEM;

	memset(out, 0, sizeof(*out));
	if (!m)
		return -ENOMEM;
	m->belief = belief;
	m->model.careful = careful;
	m->ask = (struct ask){ .translate = translate,
			       .blocks = options->blocks,
			       .plain = map_walks(m) };
	m->options = options;
	m->out = out;
	m->unit = options->block_bytes / 512;
	m->leap = 1;
	m->here_first = UINT64_MAX;
	m->build = geom_build_new(0, 0);
	if (m->build)
		err = map_all(m);
	if (!err)
		err = map_finish(m);
	geom_build_free(m->build);
	out->walked = map_walks(m);
	free(m);
	return err;
}

int scsi_map_make(struct translate *translate,
		  const struct scsi_map_options *options,
		  struct scsi_map *out)
{
	uint64_t before = translate_count(translate);
	enum belief belief = options->walk ? BELIEVE_NOTHING : BELIEVE_SUMS;
	bool careful = false;
	int err;

	while ((err = map_try(translate, options, belief, careful, out))) {
		if (err == -ESTALE && !careful)
			careful = true;
		else if (err == -EUCLEAN && belief == BELIEVE_SUMS)
			belief = BELIEVE_NOTHING;
		else
			break;
		if (belief == BELIEVE_NOTHING)
			msg_warn("translations: a prediction that had been "
				 "checked is wrong; all tracks are asked for");
	}
	if (err == -EUCLEAN)
		msg_error("translations contradict each other");
	out->translations = translate_count(translate) - before;
	return err;
}

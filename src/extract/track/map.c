/*
 * map.c - ranges of a disk: walked one after another, and proven.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "extract/probe/calibrate.h"
#include "extract/track/even.h"
#include "extract/track/map_state.h"
#include "extract/track/seam.h"

/* Tracks that a walk, and one over what was wrong, leaps over at most. */
#define LEAP_MAX 480u
#define LEAP_CAREFUL 8u
/* How many are walked before they are looked at once more, and how many before
 * them are looked at with them. */
#define CHUNK_TRACKS 256u
/* Where not all are looked at, more and more of them as long as little fails;
 * stretches to be looked at after which it is done all the same. */
#define CHUNK_MOST 16384u
#define CHUNK_RANGES 128u
#define FEW_FAIL 8u
#define CONTEXT_TRACKS 70u
/* Drives with fewer tracks are looked at track by track.  Of others it is what
 * was measured, and so many tracks before and behind it. */
#define DENSE_TRACKS 5000u
#define DOUBT_BEFORE 3u
#define DOUBT_BEHIND 3u
/* How often holes behind the frontier are tried to fill. */
#define AGAIN 3u
/* Reads for an angle where one is not enough. */
#define REPEAT_AGAIN 5u
/* How often that is tried where too little became known. */
#define SHARPEN_MOST 2u
/* The share of what was walked over, as a divisor, that is known then at most:
 * where some is, its skews are seen, and what is not has other reasons. */
#define LITTLE 2u
/* Of what map_quick may take, the share of the beginning of the disk. */
#define QUICK_SHARE 3u
#define QUICK_PLACES 64u
#define QUICK_TRACKS 24u
/* From one report to the next. */
#define REPORT_NS UINT64_C(500000000)

static int prepare(struct map *m)
{
	int err;

	if (m->prepared)
		return 0;
	err = calibrate_reader(&m->reader, 0);
	if (!err && m->anchored)
		err = map_clock_hold(m, true);
	m->prepared = !err;
	return err;
}

/* Tells how far it is, now and then. */
static int report(struct map *m)
{
	struct map_progress p = {
		.done_sectors = m->walk.plan.first * m->reader.unit_sectors,
		.total_sectors = m->report_end * m->reader.unit_sectors,
	};
	uint64_t now_ns = env_now_ns(m->reader.prober->env);

	if (!m->options.progress || now_ns - m->told_ns < REPORT_NS)
		return 0;
	m->told_ns = now_ns;
	return m->options.progress(&p, m->options.arg);
}

int map_tick(void *map)
{
	int err = map_clock_hold(map, false);

	return err ? err : report(map);
}

void map_forget_clock(struct map *map)
{
	map->prepared = false;
}

int map_open(struct prober *prober, const struct map_options *options,
	    struct map **map)
{
	const struct disk_limits *l = prober->limits;
	uint32_t unit = options->unit_sectors;
	struct map *m;

	if (!unit)
		unit = l->physical_bytes / SECTOR_BYTES;
	if (unit < l->logical_bytes / SECTOR_BYTES)
		unit = l->logical_bytes / SECTOR_BYTES;
	if (!unit || !options->period_ps ||
	    l->sectors < options->aligned + 4096 * (uint64_t)unit)
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->options = *options;
	reader_init(&m->reader, prober, (double)options->period_ps / 1000,
		    unit, options->aligned);
	m->walk.reader = &m->reader;
	m->walk.store = &m->store;
	m->walk.leap_max = LEAP_MAX;
	m->repeat = 1;
	m->prove.reader = &m->reader;
	m->prove.tick = map_tick;
	m->prove.arg = m;
	m->prove.store = &m->store;
	*map = m;
	return 0;
}

void map_close(struct map *map)
{
	if (!map)
		return;
	store_fini(&map->store);
	prove_fini(&map->prove);
	free(map);
}

/* ---- extraction ---- */

static bool out_of_time(const struct map *m)
{
	return m->deadline_ns &&
	       env_now_ns(m->reader.prober->env) > m->deadline_ns;
}

uint64_t map_unit_of(const struct map *m, uint64_t sector)
{
	uint64_t unit = sector < m->reader.offset ? 0 :
			(sector - m->reader.offset) / m->reader.unit_sectors;

	return unit < m->reader.units ? unit : m->reader.units;
}

int map_forget(struct map *map, uint64_t first, uint64_t end)
{
	struct map *m = map;
	int err = store_cut(&m->store, map_unit_of(m, first),
			    map_unit_of(m, end));

	m->walk.there = m->mender.there = false;
	return err;
}

/* The first unit at or after one that is in no piece. */
static uint64_t next_hole(const struct map *m, uint64_t unit)
{
	for (size_t i = store_find(&m->store, unit); i < m->store.n &&
	     m->store.pieces[i].first <= unit; i++)
		unit = m->store.pieces[i].first + m->store.pieces[i].units;
	return unit;
}

/* Where the hole at a unit ends. */
static uint64_t hole_end(const struct map *m, uint64_t at)
{
	size_t i = store_find(&m->store, at);

	return i < m->store.n ? m->store.pieces[i].first : m->reader.units;
}

/* Is every track looked at? */
static bool is_dense(struct map *m)
{
	if (m->walk.plan.now.size > m->largest)
		m->largest = m->walk.plan.now.size;
	if (m->largest && m->reader.units / m->largest < DENSE_TRACKS)
		m->dense = true;
	return m->dense;
}

/* Where not all are: those that were measured, and what is around them. */
static int doubt(struct map *m, const struct walk *w, uint64_t from)
{
	uint64_t size = plan_guess(&w->plan), end = w->plan.first;
	int err = prove_add(&m->prove, from, m->doubt < end ? m->doubt : end);

	if (err || w->leapt)
		return err;
	m->doubt = end + DOUBT_BEHIND * size;
	from = w->measured > DOUBT_BEFORE * size ?
		       w->measured - DOUBT_BEFORE * size : 0;
	return prove_add(&m->prove, from, end);
}

/* Walks the hole at `unit`, as far as `end` or the next piece. */
static int fill_hole(struct map *m, struct walk *w, uint64_t unit,
		     uint64_t end)
{
	size_t i = store_find(&m->store, unit);
	uint64_t limit = hole_end(m, unit);
	bool after = !unit || (i && m->store.pieces[i - 1].tracks &&
			       m->store.pieces[i - 1].first +
			       m->store.pieces[i - 1].units == unit);
	uint64_t from;
	int err = 0;

	w->limit = limit;
	if (!w->there || w->plan.first != unit) {
		err = walk_begin(w, unit, after);
		if (!err && !is_dense(m))
			err = prove_add(&m->prove, unit, w->plan.first);
	}
	while (!err && w->there && w->plan.first < end &&
	       w->plan.first < limit &&
	       (is_dense(m) || m->prove.ranges < CHUNK_RANGES)) {
		map_clock_anchor(m);
		err = map_tick(m);
		if (!err && out_of_time(m))
			break;
		from = w->plan.first;
		if (!err)
			err = walk_step(w);
		if (!err && !is_dense(m))
			err = doubt(m, w, from);
	}
	map_clock_anchor(m);
	return err;
}

/* ---- proof ---- */

/* Forgets what has been refuted; [*first, *end): a stretch of it from
 * `from` on.  False: there is none. */
static bool next_refuted(const struct map *m, size_t *i, uint64_t *first,
			 uint64_t *end)
{
	const struct prove_claim *c = m->prove.claim;
	size_t k = *i;

	while (k < m->prove.n && c[k].state != PROVE_FAILS)
		k++;
	if (k == m->prove.n)
		return false;
	*first = c[k].first;
	for (; k < m->prove.n && c[k].state == PROVE_FAILS; k++)
		*end = c[k].first + c[k].size;
	*i = k;
	return true;
}

/* What does not hold is forgotten.  Returns how much that was, or an error. */
static int forget_refuted(struct map *m, bool for_good)
{
	uint64_t first, end = 0;
	int err = 0, n = 0;

	if (for_good)
		prove_leave_to_gaps(&m->prove);
	for (size_t i = 0; !err && next_refuted(m, &i, &first, &end); n++) {
		err = for_good ? store_unknown(&m->store, first, end - first) :
				 store_cut(&m->store, first, end);
		if (!err && !for_good)
			err = prove_add(&m->prove, first, end);
		m->failed++;
	}
	return err ? err : n;
}

static uint64_t context(const struct map *m)
{
	return (uint64_t)CONTEXT_TRACKS * (m->walk.plan.now.size + 1);
}

/* What the walk has given up is tried once more: late completions may have
 * been many. */
static int forget_unknown(struct map *m, uint64_t first, uint64_t end)
{
	int err = 0, n = 0;

	for (size_t i = store_find(&m->store, first); !err && i < m->store.n &&
	     m->store.pieces[i].first < end;) {
		const struct piece p = m->store.pieces[i];

		if (p.tracks || p.first < first) {
			i++;
			continue;
		}
		store_remove(&m->store, i, 1);
		err = prove_add(&m->prove, p.first, p.first + p.units);
		n++;
	}
	return err ? err : n;
}

/* Walks over the holes in the first n ranges that are not proven. */
static int mend(struct map *m, size_t n)
{
	uint64_t at, end;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		at = next_hole(m, m->prove.range[i].first);
		end = m->prove.range[i].end;
		while (!err && at < end) {
			err = fill_hole(m, &m->mender, at, end);
			if (next_hole(m, at) == at)
				break;
			at = next_hole(m, at);
		}
		/* It may have gone further. */
		if (!err)
			err = prove_add(&m->prove, end,
					m->mender.plan.first);
	}
	return err;
}

/* The end of all that is not proven. */
static uint64_t unproven_end(const struct map *m, uint64_t end)
{
	for (size_t i = 0; i < m->prove.ranges; i++) {
		if (m->prove.range[i].end > end)
			end = m->prove.range[i].end;
	}
	return end;
}

/* Looks at what has been walked, and walks over again, once, what does not
 * hold and what is unknown from `first` on. */
static int settle(struct map *m, uint64_t from, uint64_t first, uint64_t end)
{
	uint64_t at;
	int err, unknown = 0;

	err = prove_tracks(&m->prove, from, end, true);
	err = err ? err : forget_refuted(m, false);
	if (err >= 0)
		unknown = forget_unknown(m, first, end);
	if (err < 0 || unknown < 0 || err + unknown == 0)
		return err < 0 ? err : unknown;
	m->mender = m->walk;
	m->mender.there = false;
	m->mender.plan.first = 0;
	m->mender.leap_max = LEAP_CAREFUL;
	err = mend(m, m->prove.ranges);
	at = m->mender.plan.first > end ? m->mender.plan.first : end;
	if (m->mender.there && next_hole(m, end) == at && at > end) {
		m->walk = m->mender;
		m->walk.leap_max = LEAP_MAX;
	}
	/* Of several holes not the last one may be what it went furthest
	 * from. */
	if (!err)
		err = prove_tracks(&m->prove, from, unproven_end(m, at), true);
	if (!err)
		err = forget_refuted(m, true);
	return err < 0 ? err : 0;
}

/* What is not proven is not known. */
static int drop_unproven(struct map *m)
{
	struct prove *p = &m->prove;
	int err = 0;

	for (size_t i = 0; i < p->ranges && !err; i++) {
		if (p->range[i].end >= m->walk.plan.first)
			m->walk.there = false;
		err = store_cut(&m->store, p->range[i].first,
				p->range[i].end);
	}
	for (size_t i = 0; i < p->laters && !err; i++)
		err = store_cut(&m->store, p->later[i].first, p->later[i].end);
	p->ranges = p->laters = 0;
	return err;
}

/* The tracks in [first, end) with those around them. */
static int settle_around(struct map *m, uint64_t first, uint64_t end)
{
	uint64_t far = context(m), from = first > far ? first - far : 0;
	int err = prove_add(&m->prove, first, end);

	if (!err)
		err = prove_tracks(&m->prove, from, end + far, false);
	return err ? err : forget_refuted(m, true);
}

/* What had to wait until all around it was known.  It is no track before that,
 * so it stays in the list until it has been looked at. */
static int settle_later(struct map *m)
{
	struct prove *p = &m->prove;
	int err = 0;

	while (err >= 0 && p->laters && !out_of_time(m)) {
		const struct prove_range range = p->later[p->laters - 1];

		err = map_tick(m);
		if (!err)
			err = settle_around(m, range.first, range.end);
		if (err >= 0)
			p->laters--;
	}
	return err < 0 ? err : 0;
}

/* What is known of [first, end). */
static uint64_t known_units(const struct map *m, uint64_t first, uint64_t end)
{
	uint64_t known = 0;

	for (size_t i = store_find(&m->store, first); i < m->store.n &&
	     m->store.pieces[i].first < end; i++) {
		if (m->store.pieces[i].tracks)
			known += m->store.pieces[i].units;
	}
	return known;
}

/* Where much could not be made known, skews may be too small for angles that
 * are read once: *more: it is walked again with more reads of each, and so is
 * what comes, if that helps. */
static void sharpen(struct map *m, uint64_t first, uint64_t end, bool *more)
{
	unsigned repeat = m->reader.repeat;

	*more = false;
	if (known_units(m, first, end) > (end - first) / LITTLE) {
		m->repeat = repeat;
		return;
	}
	if (m->sharpened >= SHARPEN_MOST)
		return;
	*more = repeat < READER_REPEAT_MAX;
	m->sharpened += !*more;
	if (*more)
		repeat = repeat < REPEAT_AGAIN ? REPEAT_AGAIN :
						 READER_REPEAT_MAX;
	reader_sharpen(&m->reader, *more ? repeat : m->repeat);
}

/* Once more, from the beginning. */
static int anew(struct map *m, uint64_t first, uint64_t end)
{
	m->walk.there = false;
	m->prove.ranges = 0;
	return store_cut(&m->store, first, end);
}

/* Walks on from the first hole, by some tracks, and looks at them. */
static int extract_some(struct map *m, uint64_t at, uint64_t end)
{
	uint64_t chunk = at + (uint64_t)(m->chunk ? m->chunk : CHUNK_TRACKS) *
			      (m->walk.plan.now.size + 64);
	uint64_t before = context(m) < at ? at - context(m) : 0, to;
	uint64_t failed = m->failed;
	int err, dropped = 0;
	bool more = false;

	m->open_first = at;
	m->open_end = hole_end(m, at);
	err = fill_hole(m, &m->walk, at, chunk < end ? chunk : end);
	to = next_hole(m, at);
	if (is_dense(m))
		dropped = prove_add(&m->prove, at, to);
	err = err ? err : dropped;
	if (!err)
		err = settle(m, before, at, to);
	m->open_first = m->open_end;
	if (is_dense(m) || m->failed > failed + FEW_FAIL)
		m->chunk = CHUNK_TRACKS;
	else if (m->chunk < CHUNK_MOST)
		m->chunk = m->chunk ? 2 * m->chunk : CHUNK_TRACKS;
	if (!err && !out_of_time(m))
		sharpen(m, at, to, &more);
	return !err && more ? anew(m, at, to) : err;
}

/* The tracks in [first, end) that were only leapt over. */
static int prove_known(struct map *m, uint64_t first, uint64_t end)
{
	uint64_t each = (uint64_t)CHUNK_TRACKS * (m->walk.plan.now.size + 64);
	uint64_t to;
	int err = 0;

	for (uint64_t at = first; !err && at < end; at = to) {
		to = at + each < end ? at + each : end;
		err = prove_add(&m->prove, at, to);
		if (!err)
			err = settle(m, context(m) < at ? at - context(m) : 0,
				     to, to);
	}
	return err;
}

/* Where unequal surfaces seem to be equal, leaps see no slips: all that was
 * mapped, once it is known that surfaces are unequal, or in [first, end). */
static int prove_even(struct map *m, uint64_t first, uint64_t end)
{
	bool all = !m->looked || !m->round, room;
	uint64_t to;
	int err = 0;

	if (m->dense)
		return 0;
	if (!m->round)
		m->round = even_rounds(&m->store, m->looked ? first : 0,
				       m->looked ? end : m->reader.units);
	m->looked = true;
	first = all ? 0 : first;
	end = all ? m->reader.units : end;
	while (m->round && !err && even_next(&m->store, &first, &to) &&
	       first < end) {
		err = even_has_room(&m->reader, &m->store, first, to, m->round,
				    &room);
		if (!err && room)
			err = prove_known(m, first, to);
		first = to;
	}
	return err ? err : drop_unproven(m);
}

/* Tracks where zones meet that are none are not known.  Where there are few
 * tracks more of them meet one, and there is time to look closely. */
static int doubt_seams(struct map *m, uint64_t first, uint64_t end)
{
	struct seam seam = { .store = &m->store };
	enum reader_purpose was;
	struct store_track t;
	bool holds;
	int err = 0;

	was = reader_set_purpose(&m->reader, READER_PROOF);
	while (!err && seam_next(&seam, &t)) {
		if (t.first < first || t.first >= end)
			continue;
		if (out_of_time(m))
			break;
		err = map_tick(m);
		if (!err)
			err = seam_holds(&m->reader, &t, m->dense, &holds);
		if (!err && !holds)
			err = store_unknown(&m->store, t.first, t.size);
	}
	reader_set_purpose(&m->reader, was);
	return err;
}

/* What has been left open behind the frontier too often is unknown. */
static int close_hole(struct map *m, uint64_t at)
{
	return store_unknown(&m->store, at, hole_end(m, at) - at);
}

/* Walks over all of [first, end) that is not mapped. */
static int walk_all(struct map *m, uint64_t first, uint64_t end)
{
	uint64_t at = next_hole(m, first), reached = at;
	unsigned again = 0;
	int err = 0, dropped;

	while (!err && at < end) {
		again = at > reached ? 0 : again + 1;
		reached = at > reached ? at : reached;
		err = again > AGAIN ? close_hole(m, at) :
				      extract_some(m, at, end);
		at = next_hole(m, first);
		if (out_of_time(m))
			break;
	}
	if (!err)
		err = settle_later(m);
	dropped = drop_unproven(m);
	return err ? err : dropped;
}

/* Tracks that are known from another run say whether the drive is a large one:
 * else all would be looked at again whenever that shows. */
static void see_largest(struct map *m)
{
	for (size_t i = 0; i < m->store.n; i++) {
		const struct piece *p = &m->store.pieces[i];

		if (p->tracks && p->size > m->largest)
			m->largest = p->size;
	}
}

static int extract(struct map *m, uint64_t first, uint64_t end)
{
	uint64_t began_ns = env_now_ns(m->reader.prober->env);
	uint64_t from, now_ns;
	int err = prepare(m);

	see_largest(m);
	end = end < m->reader.units ? end : m->reader.units;
	m->report_end = end;
	if (!err)
		err = walk_all(m, first, end);
	/* What is further away may not have been mapped. */
	from = first > map_gaps_most(m) ? first - map_gaps_most(m) : 0;
	if (!err && !out_of_time(m))
		err = prove_even(m, first, end);
	if (!err && !out_of_time(m))
		err = doubt_seams(m, first, end);
	now_ns = env_now_ns(m->reader.prober->env);
	m->spent_ns += now_ns - began_ns;
	if (!err)
		err = map_gaps_close(m, from, end);
	m->spent_ns += env_now_ns(m->reader.prober->env) - now_ns;
	return err;
}

int map_extract(struct map *map, uint64_t first, uint64_t end)
{
	return extract(map, map_unit_of(map, first), map_unit_of(map, end));
}

/* The bits of i backwards: places that stay evenly spread. */
static uint64_t spread(uint64_t i, uint64_t n)
{
	uint64_t v = 0;

	for (uint64_t k = 1; k < n; k *= 2, i /= 2)
		v = 2 * v + i % 2;
	return v;
}

int map_quick(struct map *map, uint64_t most_ns)
{
	uint64_t now_ns = env_now_ns(map->reader.prober->env);
	uint64_t end_ns = now_ns + most_ns, at, track;
	bool dense;
	int err;

	map->deadline_ns = now_ns + most_ns / QUICK_SHARE;
	err = extract(map, 0, map->reader.units);
	map->deadline_ns = end_ns;
	dense = map->dense;
	/* Of the places all tracks are looked at. */
	map->dense = true;
	for (uint64_t i = 1; !err && i < QUICK_PLACES; i++) {
		if (env_now_ns(map->reader.prober->env) > end_ns)
			break;
		track = map->walk.plan.now.size;
		at = map->reader.units / QUICK_PLACES *
		     spread(i, QUICK_PLACES);
		err = extract(map, at, at + QUICK_TRACKS * track);
	}
	map->dense = dense;
	map->deadline_ns = 0;
	return err;
}

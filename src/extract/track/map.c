/*
 * map.c - ranges of a disk, walked one after another.
 *
 * The clock is held by the first track that was mapped: every few seconds a few
 * of its sectors are read, and how late they are corrects phase and period, so
 * that all angles of a map are those of one revolution.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diskmodel/geom_build.h"
#include "extract/probe/calibrate.h"
#include "extract/track/even.h"
#include "extract/track/gap.h"
#include "extract/track/map.h"
#include "extract/track/map_state.h"
#include "extract/track/sample.h"
#include "extract/track/seam.h"
#include "extract/track/segment.h"

#define LOCK_NS UINT64_C(8000000000)
#define LOCK_FIRST_NS UINT64_C(1000000000)
#define LOCK_READS 3u
/* The middle one of those, in standard deviations of one. */
#define LOCK_SIGMA 0.7
/* Errors one after another that can't be noise any more. */
#define STRAYED_MAX 2u
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
 * was measured, so many tracks of it, and those before and behind it. */
#define DENSE_TRACKS 20000u
#define DOUBT_MOST 4u
#define DOUBT_BEFORE 3u
#define DOUBT_BEHIND 3u
/* How often holes behind the frontier are tried to fill. */
#define AGAIN 3u
/* Gaps of more tracks are walked over once more, reading so often. */
#define GAP_MOST 24u
#define REPEAT_AGAIN 5u
/* Disk time for gaps, of that of all else, and at least; the share of the space
 * that may stay unknown where not all tracks are looked at, as a divisor. */
#define GAPS_SHARE 2u
#define GAPS_LEAST_NS UINT64_C(180000000000)
#define GAPS_ENOUGH 1250u
/* So few are closed in order: what one says serves the next. */
#define ORDERED_MOST 32u
/* Tracks of one size in a row are certain; of others so many are looked at
 * beside a gap. */
#define ROW_LEAST 3u
#define WIDER_MOST 3u
/* Pieces on both sides that say how tracks follow each other; revolutions that
 * count as the same. */
#define PIECES_NEAR 20u
#define STEP_SAME 0.003
/* Tracks of less than this are no measure of how others follow them. */
#define STEP_SPAN 0.98
/* Of two parts of a track one is not more than half, about; no scratch takes so
 * much, nor do spares. */
#define PART_OF_TRACK 0.52
#define PARTS_MOST 2u
/* In standard deviations of a read, what a turn may be wrong by. */
#define TURN_NOISE 3.0
/* Of a tolerance, the least leap that is seen well; how often, and at how many
 * places, it is found out how large they are. */
#define LEAP_SEEN 3.5
#define SCOUTED_MOST 4u
/* The share of what was walked over, as a divisor, that is unknown then. */
#define LITTLE 8u
#define SCOUTS 4u
/* Of what map_quick may take, the share of the beginning of the disk. */
#define QUICK_SHARE 3u
#define QUICK_PLACES 64u
#define QUICK_TRACKS 24u
#define PSEUDO_SECTORS 2048u
/* Angles in a geometry may be off by this much, in 2^-32 revolutions. */
#define GEOM_TOLERANCE (UINT32_MAX / 250)

/* ---- the clock ---- */

static int lock_once(struct map *m, double *error)
{
	struct env *env = m->reader.prober->env;
	double v[LOCK_READS], turn;
	int err = 0;

	for (unsigned i = 0; i < LOCK_READS && !err; i++) {
		uint64_t at = env_random(env) % m->anchor.size;

		err = reader_read(&m->reader, m->anchor.first + at, &turn);
		v[i] = phase_wrap(turn - m->anchor.start -
				  (double)(at + 1) * m->anchor.pitch);
	}
	*error = fmax(fmin(v[0], v[1]), fmin(fmax(v[0], v[1]), v[2]));
	return err;
}

/* An error is the clock's, or it is that of where the anchor was thought to
 * be. */
static void lock_by(struct map *m, uint64_t now_ns, double error, double sigma)
{
	double all, share;

	if (!m->locks)
		m->anchor_var = m->reader.noise * m->reader.noise;
	all = m->anchor_var + m->reader.phase.aa + sigma * sigma;
	share = m->anchor_var / all;
	phase_correct(&m->reader.phase, now_ns, error,
		      sqrt(sigma * sigma + m->anchor_var));
	m->anchor.start = phase_part(m->anchor.start + share * error);
	m->anchor_var *= 1 - share;
}

/* Keeps the clock right; `first`: whatever it takes. */
static int lock(struct map *m, bool first)
{
	struct env *env = m->reader.prober->env;
	uint64_t now_ns = env_now_ns(env);
	uint64_t every_ns = m->locks < 12 ? LOCK_FIRST_NS : LOCK_NS;
	double error, sigma = LOCK_SIGMA * m->reader.noise;
	enum reader_purpose was;
	int err;

	if (!m->anchored || (!first && now_ns - m->reader.phase.locked_ns <
					       every_ns))
		return 0;
	was = reader_set_purpose(&m->reader, READER_CLOCK);
	err = lock_once(m, &error);
	reader_set_purpose(&m->reader, was);
	if (err || isnan(error))
		return err;
	now_ns = env_now_ns(env);
	m->strayed = fabs(error) < 2 * m->reader.tolerance ? 0 :
							     m->strayed + 1;
	if (first || m->strayed > STRAYED_MAX)
		phase_restart(&m->reader.phase, now_ns, error, sigma);
	else if (m->strayed)
		m->reader.phase.locked_ns = now_ns;
	else
		lock_by(m, now_ns, error, sigma);
	/* The angles before it were those of another clock. */
	line_doubt(&m->walk.line, m->strayed ? m->reader.noise : sigma / 2, 0,
		   0);
	m->locks++;
	return 0;
}

static int tick(void *arg)
{
	return lock(arg, false);
}

static void anchor_set(struct map *m)
{
	const struct piece *p = m->store.pieces;

	for (size_t i = 0; i < m->store.n && !m->anchored; i++) {
		if (!p[i].tracks)
			continue;
		store_track(&m->store, &p[i], 0, &m->anchor);
		m->anchored = true;
		m->reader.phase.locked_ns =
			env_now_ns(m->reader.prober->env);
	}
}

static int prepare(struct map *m)
{
	int err;

	if (m->prepared)
		return 0;
	err = calibrate_reader(&m->reader, 0);
	if (!err && m->anchored)
		err = lock(m, true);
	m->prepared = !err;
	return err;
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
	m->prove.reader = &m->reader;
	m->prove.tick = tick;
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

static uint64_t unit_of(const struct map *m, uint64_t sector)
{
	uint64_t unit = sector < m->reader.offset ? 0 :
			(sector - m->reader.offset) / m->reader.unit_sectors;

	return unit < m->reader.units ? unit : m->reader.units;
}

int map_forget(struct map *map, uint64_t first, uint64_t end)
{
	struct map *m = map;
	int err = store_cut(&m->store, unit_of(m, first), unit_of(m, end));

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

static int report(struct map *m, uint64_t at, uint64_t end)
{
	struct map_progress p = {
		.done_sectors = at * m->reader.unit_sectors,
		.total_sectors = end * m->reader.unit_sectors,
	};
	uint64_t now_ns = env_now_ns(m->reader.prober->env);

	if (!m->options.progress || now_ns - m->told_ns < 500000000)
		return 0;
	m->told_ns = now_ns;
	return m->options.progress(&p, m->options.arg);
}

/* Is every track looked at? */
static bool is_dense(struct map *m)
{
	if (m->walk.plan.now.size > m->largest)
		m->largest = m->walk.plan.now.size;
	if (m->largest && m->reader.units / m->largest < DENSE_TRACKS)
		m->dense = true;
	m->loose |= m->largest && !m->dense;
	return m->dense;
}

/* Where not all are: those that were measured, and what is around them. */
static int doubt(struct map *m, const struct walk *w, uint64_t from)
{
	uint64_t size = plan_guess(&w->plan), end = w->plan.first;

	if (w->leapt)
		return prove_add(&m->prove, from, m->doubt < end ? m->doubt :
								   end);
	m->doubt = end + DOUBT_BEHIND * size;
	if (end > from + DOUBT_MOST * size)
		from = end - DOUBT_MOST * size;
	from = from > DOUBT_BEFORE * size ? from - DOUBT_BEFORE * size : 0;
	return prove_add(&m->prove, from, end);
}

/* Walks the hole at `unit`, as far as `end` or the next piece. */
static int fill_hole(struct map *m, struct walk *w, uint64_t unit,
		     uint64_t end)
{
	size_t i = store_find(&m->store, unit);
	uint64_t limit = i < m->store.n ? m->store.pieces[i].first :
					  m->reader.units;
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
		anchor_set(m);
		err = lock(m, false);
		if (!err)
			err = report(m, w->plan.first, end);
		if (!err && out_of_time(m))
			break;
		from = w->plan.first;
		if (!err)
			err = walk_step(w);
		if (!err && !is_dense(m))
			err = doubt(m, w, from);
	}
	anchor_set(m);
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

	m->prove.brief = !is_dense(m);
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
	p->ranges = 0;
	return err;
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

/* Reads for an angle that leaps of that size take. */
static unsigned repeat_for(struct map *m, double leap)
{
	static const unsigned repeat[] = { 1, 3, 5, 9, READER_REPEAT_MAX };
	unsigned was = m->reader.repeat, i = 0;

	for (; i < sizeof(repeat) / sizeof(repeat[0]); i++) {
		reader_sharpen(&m->reader, repeat[i]);
		if (LEAP_SEEN * m->reader.tolerance <= leap)
			break;
	}
	reader_sharpen(&m->reader, was);
	return i < sizeof(repeat) / sizeof(repeat[0]) ? repeat[i] :
							READER_REPEAT_MAX;
}

/* Where much could not be made known: are the leaps just too small for angles
 * that are read once?  *more: from now on they are read more often. */
static int sharpen(struct map *m, uint64_t first, uint64_t end, bool *more)
{
	double leap = NAN, around = m->largest ? m->largest :
						 m->reader.around;
	double last = m->walk.plan.now.size ? m->walk.plan.now.size : around;
	unsigned was = m->reader.repeat, repeat = was;
	int err = 0;

	*more = false;
	if (!(around > 0) || known_units(m, first, end) >
				     (end - first) - (end - first) / LITTLE ||
	    m->scouted >= SCOUTED_MOST)
		return 0;
	m->scouted++;
	reader_sharpen(&m->reader, 1);
	for (unsigned i = 0; i < SCOUTS && !err && isnan(leap); i++)
		err = segment_leap(&m->reader, first + i * (end - first) /
				   SCOUTS, i % 2 ? around : last, &leap);
	if (!isnan(leap))
		repeat = repeat_for(m, leap);
	*more = repeat > was;
	reader_sharpen(&m->reader, *more ? repeat : was);
	return err;
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

	err = fill_hole(m, &m->walk, at, chunk < end ? chunk : end);
	to = next_hole(m, at);
	if (is_dense(m))
		dropped = prove_add(&m->prove, at, to);
	err = err ? err : dropped;
	if (!err)
		err = settle(m, before, at, to);
	if (is_dense(m) || m->failed > failed + FEW_FAIL)
		m->chunk = CHUNK_TRACKS;
	else if (m->chunk < CHUNK_MOST)
		m->chunk = m->chunk ? 2 * m->chunk : CHUNK_TRACKS;
	if (!err && !out_of_time(m))
		err = sharpen(m, at, to, &more);
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
		err = lock(m, false);
		if (!err)
			err = seam_holds(&m->reader, &t, m->dense, &holds);
		if (!err && !holds)
			err = store_unknown(&m->store, t.first, t.size);
	}
	reader_set_purpose(&m->reader, was);
	return err;
}

/* Nor are tracks that are larger than those around, and single ones where gaps
 * were closed are looked at as closely. */
static int doubt_single(struct map *m, uint64_t first, uint64_t end)
{
	enum reader_purpose was;
	struct store_track t;
	bool holds;
	int err = 0;

	was = reader_set_purpose(&m->reader, READER_PROOF);
	for (size_t i = 0; i < m->store.n && !err; i++) {
		const struct piece p = m->store.pieces[i];

		holds = !seam_is_grown(&m->store, i);
		if (holds && p.first >= first && p.first < end &&
		    seam_is_between(&m->store, i) && !out_of_time(m)) {
			store_track(&m->store, &p, 0, &t);
			err = seam_holds(&m->reader, &t, true, &holds);
		}
		if (!err && !holds)
			err = store_unknown(&m->store, p.first, p.units);
	}
	reader_set_purpose(&m->reader, was);
	return err;
}

/* What has been left open behind the frontier too often is unknown. */
static int close_hole(struct map *m, uint64_t at)
{
	size_t i = store_find(&m->store, at);
	uint64_t to = i < m->store.n ? m->store.pieces[i].first :
				       m->reader.units;

	return store_unknown(&m->store, at, to - at);
}

/* ---- gaps ---- */

/* The next gap from a unit on between tracks that are known. */
static bool next_gap(const struct map *m, uint64_t from, struct gap *gap)
{
	const struct piece *p = m->store.pieces, *behind;
	size_t i = store_find(&m->store, from);
	uint64_t end;

	*gap = (struct gap){ 0 };
	if (i && p[i - 1].tracks)
		i--;
	for (; i <= m->store.n; i++) {
		if (i && !p[i - 1].tracks)
			continue;
		end = i ? p[i - 1].first + p[i - 1].units : 0;
		behind = &p[i];
		while (behind < p + m->store.n && !behind->tracks)
			behind++;
		if (behind == p + m->store.n)
			break;
		if (end >= from && behind->first > end)
			break;
	}
	if (i > m->store.n)
		return false;
	gap->first = end;
	gap->end = behind < p + m->store.n ? behind->first : m->reader.units;
	if (i)
		store_track(&m->store, &p[i - 1], p[i - 1].tracks - 1,
			    &gap->before);
	if (behind < p + m->store.n)
		store_track(&m->store, behind, 0, &gap->behind);
	return gap->first >= from && gap->first < gap->end;
}

/* Units of a gap that is looked at as such. */
static uint64_t gap_most(const struct map *m)
{
	return (uint64_t)GAP_MOST * m->largest;
}

/* Steps that were seen once. */
struct steps {
	double v[GAP_STEPS];
	unsigned n;
};

static bool is_among(const double *step, unsigned n, double by)
{
	for (unsigned i = 0; i < n; i++) {
		if (fabs(phase_wrap(step[i] - by)) < STEP_SAME)
			return true;
	}
	return false;
}

/* `sure`, or seen again. */
static void gap_step(struct gap *gap, struct steps *once, double by, bool sure)
{
	if (is_among(gap->step, gap->steps, by))
		return;
	if (sure || is_among(once->v, once->n, by)) {
		if (gap->steps < GAP_STEPS)
			gap->step[gap->steps++] = phase_part(by);
	} else if (once->n < GAP_STEPS) {
		once->v[once->n++] = phase_part(by);
	}
}

/* By how much its tracks, and the one behind it, are later than others. */
static void gap_steps_of(const struct map *m, struct gap *gap,
			 struct steps *once, size_t i)
{
	const struct piece *p = &m->store.pieces[i], *q = p + 1;
	double last = p->start + (p->tracks - 1) * p->step;

	if (!p->tracks)
		return;
	if (p->tracks > 1)
		gap_step(gap, once, p->step, true);
	if (i + 1 < m->store.n && q->tracks &&
	    q->first == p->first + p->units)
		gap_step(gap, once, q->start - last, p->span > STEP_SPAN);
}

static void gap_steps(const struct map *m, struct gap *gap)
{
	size_t left = store_find(&m->store, gap->first);
	size_t right = store_find(&m->store, gap->end);
	struct steps once = { .n = 0 };

	for (size_t n = 0; n < PIECES_NEAR; n++) {
		if (n < left)
			gap_steps_of(m, gap, &once, left - 1 - n);
		if (right + n < m->store.n)
			gap_steps_of(m, gap, &once, right + n);
	}
}

/* Has a track more units than there are on a turn?  Some are another's then,
 * that it goes on from without a leap. */
static bool is_too_long(const struct map *m, const struct store_track *t)
{
	double most = fmax(t->pitch / 2, TURN_NOISE * m->reader.noise_once);

	return t->size * t->pitch > 1 + most;
}

static int put_gap(struct map *m, const struct gap_track *v, unsigned n)
{
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++) {
		const struct store_track *t = &v[i].track;

		err = v[i].known && !is_too_long(m, t) ?
			store_add(&m->store, t, t->size,
				  t->size * t->pitch) :
			store_unknown(&m->store, t->first, t->size);
	}
	return err;
}

/* Is a track one of many? */
static bool in_row(const struct map *m, const struct store_track *t)
{
	const struct piece *p = &m->store.pieces[store_find(&m->store,
							    t->first)];

	return p->tracks >= ROW_LEAST && p->size == t->size;
}

/* A track beside a gap that is one of few is looked at closely; what is not
 * whole is not known. */
static int doubt_beside(struct map *m, const struct store_track *t,
			bool *wider)
{
	bool whole = true;
	int err;

	if (!t->size || in_row(m, t))
		return 0;
	err = gap_is_whole(&m->reader, t, &whole);
	if (err || whole)
		return err;
	*wider = true;
	return store_unknown(&m->store, t->first, t->size);
}

/* Widens a gap until what is beside it is certain. */
static int widen(struct map *m, struct gap *gap)
{
	bool wider = true;
	int err = 0;

	for (unsigned i = 0; i < WIDER_MOST && wider && !err; i++) {
		wider = false;
		err = doubt_beside(m, &gap->before, &wider);
		if (!err)
			err = doubt_beside(m, &gap->behind, &wider);
		if (wider && !err)
			next_gap(m, gap->before.size ? gap->before.first : 0,
				 gap);
	}
	return err;
}

/* A gap to be closed. */
struct open_gap {
	uint64_t first, units;
};

struct open_gaps {
	struct open_gap *v;
	size_t n, room;
	uint64_t units;		/* of all */
};

static int gap_cmp(const void *a, const void *b)
{
	const struct open_gap *x = a, *y = b;

	return x->units != y->units ? (x->units < y->units ? 1 : -1) :
	       x->first < y->first ? -1 : x->first > y->first;
}

/* Those that are not too long; of many the longest first. */
static int list_gaps(const struct map *m, uint64_t from, uint64_t end,
		     struct open_gaps *gaps)
{
	struct gap gap;

	*gaps = (struct open_gaps){ 0 };
	for (; next_gap(m, from, &gap) && gap.end <= end; from = gap.end) {
		uint64_t units = gap.end - gap.first;

		if (units > gap_most(m))
			continue;
		if (gaps->n == gaps->room) {
			size_t room = 2 * gaps->room + 16;
			struct open_gap *v = realloc(gaps->v,
						     room * sizeof(*v));

			if (!v)
				return -ENOMEM;
			gaps->v = v;
			gaps->room = room;
		}
		gaps->v[gaps->n++] = (struct open_gap){ gap.first, units };
		gaps->units += units;
	}
	if (gaps->n > ORDERED_MOST)
		qsort(gaps->v, gaps->n, sizeof(*gaps->v), gap_cmp);
	return 0;
}

/* Parts of tracks are found where zones meet, one on each side.  Others are
 * slips that were taken for ends, and what was found with them is not believed
 * either. */
static void doubt_parts(const struct map *m, const struct gap *gap,
			struct gap_track *v, unsigned n)
{
	unsigned parts = 0;

	for (unsigned i = 0; i < n; i++)
		parts += v[i].known && v[i].track.size * v[i].track.pitch <
					       PART_OF_TRACK;
	if (!parts || (parts <= PARTS_MOST &&
		       seam_may_be(&m->store, gap->first, gap->end)))
		return;
	for (unsigned i = 0; i < n; i++)
		v[i].known = false;
}

static int close_gap(struct map *m, struct gap *gap)
{
	struct gap_track v[GAP_TRACKS];
	unsigned n;
	int err = lock(m, false);

	if (!err)
		err = widen(m, gap);
	if (err)
		return err;
	gap_steps(m, gap);
	err = gap_close(&m->reader, gap, v, &n);
	if (err)
		return err;
	doubt_parts(m, gap, v, n);
	return put_gap(m, v, n);
}

/* When no more time is to be spent on gaps. */
static uint64_t gaps_until(const struct map *m, uint64_t now_ns)
{
	uint64_t most_ns = (m->spent_ns - m->gaps_ns) / GAPS_SHARE, until_ns;

	if (most_ns < GAPS_LEAST_NS)
		most_ns = GAPS_LEAST_NS;
	until_ns = now_ns + most_ns;
	until_ns -= m->gaps_ns < most_ns ? m->gaps_ns : most_ns;
	return m->deadline_ns && m->deadline_ns < until_ns ? m->deadline_ns :
							     until_ns;
}

static int close_all(struct map *m, const struct open_gaps *gaps,
		     uint64_t enough)
{
	uint64_t left = gaps->units;
	struct gap gap;
	int err = 0;

	for (size_t i = 0; i < gaps->n && left > enough && !err; i++) {
		left -= gaps->v[i].units;
		if (next_gap(m, gaps->v[i].first, &gap) &&
		    gap.first == gaps->v[i].first)
			err = close_gap(m, &gap);
	}
	return err;
}

/* Looks again, closely, at what is unknown between known tracks: as long as
 * that is worth it. */
static int close_gaps(struct map *m, uint64_t from, uint64_t end)
{
	uint64_t began_ns = env_now_ns(m->reader.prober->env);
	unsigned repeat = m->reader.repeat;
	struct open_gaps gaps;
	int err = list_gaps(m, from, end, &gaps);

	reader_set_purpose(&m->reader, READER_GAP);
	/* It reads as often as it has to. */
	reader_sharpen(&m->reader, 1);
	m->reader.until_ns = gaps_until(m, began_ns);
	if (!err)
		err = close_all(m, &gaps, m->dense ? 0 :
						     (end - from) /
							     GAPS_ENOUGH);
	m->reader.until_ns = 0;
	reader_sharpen(&m->reader, repeat);
	m->gaps_ns += env_now_ns(m->reader.prober->env) - began_ns;
	free(gaps.v);
	return err == -ETIME ? 0 : err;
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
		m->dense |= m->walk.lies;
		if (!err && is_dense(m) && m->loose) {
			m->loose = false;
			err = prove_known(m, 0, m->reader.units);
		}
		if (out_of_time(m))
			break;
	}
	dropped = drop_unproven(m);
	return err ? err : dropped;
}

/* Walks over long gaps again, reading more than once for an angle: what spoils
 * a leap for some time are late completions. */
static int walk_again(struct map *m, uint64_t from, uint64_t end)
{
	unsigned was = m->reader.repeat;
	struct gap gap;
	int err = 0;

	while (!err && !out_of_time(m) && next_gap(m, from, &gap) &&
	       gap.end <= end) {
		from = gap.end;
		if (gap.end - gap.first <= gap_most(m))
			continue;
		if (was < REPEAT_AGAIN)
			reader_sharpen(&m->reader, REPEAT_AGAIN);
		err = anew(m, gap.first, gap.end);
		if (!err)
			err = walk_all(m, gap.first, gap.end);
		reader_sharpen(&m->reader, was);
	}
	return err;
}

static int extract(struct map *m, uint64_t first, uint64_t end)
{
	uint64_t began_ns = env_now_ns(m->reader.prober->env);
	uint64_t from, now_ns;
	int err = prepare(m);

	end = end < m->reader.units ? end : m->reader.units;
	if (!err)
		err = walk_all(m, first, end);
	/* What is further away may not have been mapped. */
	from = first > gap_most(m) ? first - gap_most(m) : 0;
	if (!err)
		err = walk_again(m, from, end);
	if (!err && !out_of_time(m))
		err = prove_even(m, first, end);
	if (!err && !out_of_time(m))
		err = doubt_seams(m, first, end);
	now_ns = env_now_ns(m->reader.prober->env);
	m->spent_ns += now_ns - began_ns;
	if (!err)
		err = close_gaps(m, from, end);
	if (!err)
		err = doubt_single(m, first, end);
	m->spent_ns += env_now_ns(m->reader.prober->env) - now_ns;
	return err;
}

int map_extract(struct map *map, uint64_t first, uint64_t end)
{
	return extract(map, unit_of(map, first), unit_of(map, end));
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
	bool dense, loose;
	int err;

	map->deadline_ns = now_ns + most_ns / QUICK_SHARE;
	err = extract(map, 0, map->reader.units);
	map->deadline_ns = end_ns;
	dense = map->dense;
	loose = map->loose;
	/* Of the places all tracks are looked at. */
	map->dense = true;
	map->loose = false;
	for (uint64_t i = 1; !err && i < QUICK_PLACES; i++) {
		if (env_now_ns(map->reader.prober->env) > end_ns)
			break;
		track = map->walk.plan.now.size;
		at = map->reader.units / QUICK_PLACES *
		     spread(i, QUICK_PLACES);
		err = extract(map, at, at + QUICK_TRACKS * track);
	}
	map->dense = dense;
	map->loose = loose;
	map->deadline_ns = 0;
	return err;
}

/* ---- verification ---- */

/* The tracks that have units in [first, end), once more. */
static int verify_tracks_of(struct map *m, uint64_t first, uint64_t end)
{
	uint64_t far = context(m), from = first > far ? first - far : 0;
	uint64_t to = end + far < m->reader.units ? end + far :
						    m->reader.units;
	int err = prove_add(&m->prove, first, end), dropped;

	if (!err)
		err = settle(m, from, to, to);
	m->walk.there = false;
	dropped = drop_unproven(m);
	return err ? err : dropped;
}

/* A boundary behind a unit, and the tracks beside it if it is not where it
 * should be. */
static int verify_at(struct map *m, uint64_t unit)
{
	struct sample s;
	int err = lock(m, false);

	if (!err)
		err = sample_boundary(&m->reader, &m->store, unit, &s);
	if (err || !s.seen)
		return err;
	m->checks++;
	return s.fits ? 0 : verify_tracks_of(m, s.before.first,
					     s.behind.first + s.behind.size);
}

int map_verify(struct map *map, uint64_t first, uint64_t end, uint64_t checks)
{
	struct env *env = map->reader.prober->env;
	uint64_t began_ns = env_now_ns(env);
	uint64_t a = unit_of(map, first), b = unit_of(map, end);
	uint64_t each = checks ? (b - a) / checks : 0;
	enum reader_purpose was;
	int err = prepare(map);

	was = reader_set_purpose(&map->reader, READER_PROOF);
	/* All of them have been looked at. */
	if (is_dense(map))
		checks = 0;
	for (uint64_t i = 0; i < checks && !err && each; i++)
		err = verify_at(map, a + i * each + env_random(env) % each);
	reader_set_purpose(&map->reader, was);
	map->spent_ns += env_now_ns(env) - began_ns;
	return err;
}

/* ---- what it is ---- */

uint64_t map_known(const struct map *map, uint64_t sector, bool *known)
{
	uint64_t unit = unit_of(map, sector);
	size_t i = store_find(&map->store, unit);
	const struct piece *p = &map->store.pieces[i];

	*known = i < map->store.n && p->first <= unit && p->tracks;
	if (!*known) {
		while (i < map->store.n && !p->tracks)
			p = &map->store.pieces[++i];
		unit = i < map->store.n ? p->first : map->reader.units;
	} else {
		for (; i < map->store.n && p->first <= unit && p->tracks;
		     p = &map->store.pieces[++i])
			unit = p->first + p->units;
	}
	return unit >= map->reader.units ?
		       map->reader.prober->limits->sectors :
		       map->reader.offset + unit * map->reader.unit_sectors;
}

static angle to_angle(double turn)
{
	return (angle)(int64_t)llrint(ldexp(phase_part(turn), 32));
}

static int add_pseudo(struct geom_build *b, uint64_t to)
{
	return to > geom_build_sectors(b) ?
		       geom_build_pseudo(b, to, PSEUDO_SECTORS) : 0;
}

static int add_piece(const struct map *m, struct geom_build *b,
		     const struct piece *p)
{
	uint32_t unit = m->reader.unit_sectors;
	uint64_t track = geom_build_tracks(b), at = p->first;
	size_t i = store_find_odd(&m->store, p->first);
	struct geom_sweep s = {
		.count = p->tracks,
		.sectors = p->size * unit,
		.around = (uint32_t)lrint(p->size / fmin(p->span, 1)) * unit,
		.cylinder = (int64_t)(track % GEOM_MAX_CYLINDERS),
		.cylinder_step = 1,
		.base = to_angle(p->start),
		.base_step = to_angle(p->step),
		.known = true,
	};
	uint64_t less = 0, k;
	int err = geom_build_sweep(b, &s);

	for (; !err && i < m->store.odds_n &&
	     m->store.odds[i].first < p->first + p->units; i++) {
		const struct odd *odd = &m->store.odds[i];

		k = (odd->first + less - at) / p->size;
		err = geom_build_odd(b, track + k,
				     -(int32_t)(odd->less * unit));
		less += odd->less;
	}
	return err;
}

int map_geom(const struct map *map, struct geom **geom)
{
	const struct reader *r = &map->reader;
	struct geom_build *b;
	int err = 0;

	b = geom_build_new((uint64_t)r->phase.period_ns, GEOM_TOLERANCE);
	if (!b)
		return -ENOMEM;
	for (size_t i = 0; i < map->store.n && !err; i++) {
		const struct piece *p = &map->store.pieces[i];

		if (!p->tracks)
			continue;
		err = add_pseudo(b, r->offset + p->first * r->unit_sectors);
		if (!err)
			err = add_piece(map, b, p);
	}
	if (!err)
		err = add_pseudo(b, r->prober->limits->sectors);
	if (!err)
		err = geom_build_finish(b, geom);
	geom_build_free(b);
	return err;
}

void map_get_stats(const struct map *map, struct map_stats *stats)
{
	const struct reader *r = &map->reader;

	*stats = (struct map_stats){
		.reads = r->reads,
		.hits = r->hits,
		.evictions = r->evictions,
		.errors = r->errors,
		.disk_ns = map->spent_ns,
		.leaps = map->walk.leaps,
		.events = map->walk.events,
		.slips = map->walk.slips,
		.gone = map->walk.gone,
		.checks = map->checks,
		.failed = map->failed,
		.noise = r->noise,
		.period_ns = r->phase.period_ns,
		.period_ppm = 1e6 * sqrt(fmax(r->phase.pp, 0)),
	};
	memcpy(stats->reads_for, r->reads_for, sizeof(r->reads_for));
	memcpy(stats->ns_for, r->ns_for, sizeof(r->ns_for));
	for (size_t i = 0; i < map->store.n; i++) {
		const struct piece *p = &map->store.pieces[i];

		stats->tracks += p->tracks;
		*(p->tracks ? &stats->known_sectors :
			      &stats->unknown_sectors) +=
			p->units * r->unit_sectors;
	}
}

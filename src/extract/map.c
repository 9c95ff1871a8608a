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

#include "diskmodel/geom_build.h"
#include "extract/map.h"
#include "extract/map_state.h"

#define LOCK_NS UINT64_C(8000000000)
#define LOCK_FIRST_NS UINT64_C(1000000000)
#define LOCK_READS 3u
#define LEAP_MAX 480u
#define LEAP_CAREFUL 8u
/* Of what map_quick may take, the share of the beginning of the disk. */
#define QUICK_SHARE 3u
#define QUICK_PLACES 64u
#define QUICK_TRACKS 24u
#define PSEUDO_SECTORS 2048u
/* Angles in a geometry may be off by this much, in 2^-32 revolutions. */
#define GEOM_TOLERANCE (UINT32_MAX / 250)

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
	*map = m;
	return 0;
}

void map_close(struct map *map)
{
	if (!map)
		return;
	store_fini(&map->store);
	free(map);
}

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

/* Keeps the clock right; `first`: whatever it takes. */
static int lock(struct map *m, bool first)
{
	struct env *env = m->reader.prober->env;
	uint64_t now_ns = env_now_ns(env);
	uint64_t every_ns = m->locks < 12 ? LOCK_FIRST_NS : LOCK_NS;
	double error;
	int err;

	if (!m->anchored || (!first && now_ns - m->reader.phase.locked_ns <
					       every_ns))
		return 0;
	err = lock_once(m, &error);
	if (err || isnan(error))
		return err;
	now_ns = env_now_ns(env);
	if (first) {
		m->reader.phase.turn -= error;
		m->reader.phase.locked_ns = now_ns;
	} else if (fabs(error) < 2 * m->reader.tolerance) {
		phase_correct(&m->reader.phase, now_ns, error);
	} else {
		m->reader.phase.locked_ns = now_ns;
	}
	m->locks++;
	return 0;
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
	err = reader_calibrate(&m->reader, 0);
	if (!err && m->anchored)
		err = lock(m, true);
	m->prepared = !err;
	return err;
}

void map_forget_clock(struct map *map)
{
	map->prepared = false;
}

/* ---- extraction ---- */

static uint64_t unit_of(const struct map *m, uint64_t sector)
{
	uint64_t unit = sector < m->reader.offset ? 0 :
			(sector - m->reader.offset) / m->reader.unit_sectors;

	return unit < m->reader.units ? unit : m->reader.units;
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

/* Cuts what the walk has added beyond a hole's end.  The next piece begins a
 * track there, so that an overlap shows a contradiction: both are suspect. */
static int meet(struct map *m, uint64_t limit)
{
	size_t i = store_find(&m->store, limit);
	struct piece *p = i ? &m->store.pieces[i - 1] : NULL;
	uint64_t first, at = m->walk.plan.first;

	if (at <= limit || !p)
		return 0;
	/* What overlaps becomes unknown together with its last piece. */
	for (i = 0; i < m->store.n; i++) {
		p = &m->store.pieces[i];
		if (p->first < limit && p->first + p->units > limit) {
			first = p->first;
			store_remove(&m->store, i, 1);
			return store_unknown(&m->store, first, limit - first);
		}
	}
	return 0;
}

/* Walks the hole at `unit`, as far as `end` or the next piece. */
static int fill_hole(struct map *m, uint64_t unit, uint64_t end)
{
	size_t i = store_find(&m->store, unit);
	uint64_t limit = i < m->store.n ? m->store.pieces[i].first :
					  m->reader.units;
	bool after = !unit || (i && m->store.pieces[i - 1].tracks &&
			       m->store.pieces[i - 1].first +
			       m->store.pieces[i - 1].units == unit);
	int err = 0;

	m->walk.limit = limit;
	if (!m->walk.there || m->walk.plan.first != unit)
		err = walk_begin(&m->walk, unit, after);
	while (!err && m->walk.there && m->walk.plan.first < end &&
	       m->walk.plan.first < limit) {
		anchor_set(m);
		err = lock(m, false);
		if (!err)
			err = report(m, m->walk.plan.first, end);
		if (!err && m->deadline_ns &&
		    env_now_ns(m->reader.prober->env) > m->deadline_ns)
			break;
		if (!err)
			err = walk_step(&m->walk);
	}
	anchor_set(m);
	if (!err)
		err = meet(m, limit);
	return err;
}

static int extract(struct map *m, uint64_t first, uint64_t end)
{
	uint64_t began_ns = env_now_ns(m->reader.prober->env);
	uint64_t at, was;
	int err = prepare(m);

	for (at = next_hole(m, first); !err && at < end;) {
		was = at;
		err = fill_hole(m, at, end);
		at = next_hole(m, first);
		if (at == was || (m->deadline_ns &&
		    env_now_ns(m->reader.prober->env) > m->deadline_ns))
			break;
	}
	m->spent_ns += env_now_ns(m->reader.prober->env) - began_ns;
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
	int err;

	map->deadline_ns = now_ns + most_ns / QUICK_SHARE;
	err = extract(map, 0, map->reader.units);
	map->deadline_ns = end_ns;
	for (uint64_t i = 1; !err && i < QUICK_PLACES; i++) {
		if (env_now_ns(map->reader.prober->env) > end_ns)
			break;
		track = map->walk.plan.now.size;
		at = map->reader.units / QUICK_PLACES *
		     spread(i, QUICK_PLACES);
		err = extract(map, at, at + QUICK_TRACKS * track);
	}
	map->deadline_ns = 0;
	return err;
}

/* ---- verification ---- */

/* Is the boundary before a track where the map says?  Asked twice when not. */
static int check_boundary(struct map *m, const struct store_track *a,
			  const struct store_track *b, bool *good)
{
	double end = a->start + a->size * a->pitch, low = NAN, high = NAN;
	double near = 1.3 * m->reader.tolerance;
	int err = 0;

	*good = true;
	if (fabs(phase_wrap(b->start - end)) < 2.2 * m->reader.tolerance)
		return 0;
	for (unsigned i = 0; i < 2 && !err; i++) {
		err = reader_read(&m->reader, b->first - 1, &low);
		if (!err)
			err = reader_read(&m->reader, b->first, &high);
		*good = fabs(phase_wrap(low - end)) <= near &&
			fabs(phase_wrap(high - b->start - b->pitch)) <= near;
		if (*good)
			break;
	}
	m->checks++;
	return err;
}

/* Makes the map around a piece that was wrong again. */
static int mend(struct map *m, size_t i)
{
	uint64_t first = m->store.pieces[i].first;
	uint64_t end = first + m->store.pieces[i].units;
	int err;

	m->failed++;
	store_remove(&m->store, i, 1);
	m->walk.there = false;
	m->walk.leap_max = LEAP_CAREFUL;
	err = extract(m, first, end);
	m->walk.leap_max = LEAP_MAX;
	m->walk.there = false;
	return err;
}

static int verify_at(struct map *m, uint64_t unit)
{
	size_t i = store_find(&m->store, unit);
	const struct piece *p = &m->store.pieces[i];
	struct store_track a, b;
	uint32_t k;
	bool good;
	int err;

	if (i >= m->store.n || p->first > unit || p->tracks < 2)
		return 0;
	k = (uint32_t)((unit - p->first) * p->tracks / p->units);
	k = k ? k : 1;
	store_track(&m->store, p, k - 1, &a);
	store_track(&m->store, p, k, &b);
	err = lock(m, false);
	if (!err)
		err = check_boundary(m, &a, &b, &good);
	return err || good ? err : mend(m, i);
}

int map_verify(struct map *map, uint64_t first, uint64_t end, uint64_t checks)
{
	struct env *env = map->reader.prober->env;
	uint64_t began_ns = env_now_ns(env);
	uint64_t a = unit_of(map, first), b = unit_of(map, end);
	uint64_t each = checks ? (b - a) / checks : 0;
	int err = prepare(map);

	for (uint64_t i = 0; i < checks && !err && each; i++)
		err = verify_at(map, a + i * each + env_random(env) % each);
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
	};
	for (size_t i = 0; i < map->store.n; i++) {
		const struct piece *p = &map->store.pieces[i];

		stats->tracks += p->tracks;
		*(p->tracks ? &stats->known_sectors :
			      &stats->unknown_sectors) +=
			p->units * r->unit_sectors;
	}
}

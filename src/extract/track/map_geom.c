/*
 * map_geom.c - what a map knows, as a geometry and as numbers.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "diskmodel/geom_build.h"
#include "extract/track/map_state.h"

/* Sectors of the tracks that stand for what is unknown. */
#define PSEUDO_SECTORS 2048u
/* Angles in a geometry may be off by this much, in 2^-32 revolutions. */
#define GEOM_TOLERANCE (UINT32_MAX / 250)

uint64_t map_known(const struct map *map, uint64_t sector, bool *known)
{
	uint64_t unit = map_unit_of(map, sector);
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

int map_proven(const struct map *map, struct store *proven)
{
	const struct prove *p = &map->prove;
	int err = store_copy(&map->store, proven);

	if (!err && map->open_first < map->open_end)
		err = store_cut(proven, map->open_first, map->open_end);
	for (size_t i = 0; i < p->ranges && !err; i++)
		err = store_cut(proven, p->range[i].first, p->range[i].end);
	for (size_t i = 0; i < p->laters && !err; i++)
		err = store_cut(proven, p->later[i].first, p->later[i].end);
	if (err)
		store_fini(proven);
	return err;
}

static int add_pseudo(struct geom_build *b, uint64_t to)
{
	return to > geom_build_sectors(b) ?
		       geom_build_pseudo(b, to, PSEUDO_SECTORS) : 0;
}

static int add_piece(const struct store *store, uint32_t unit,
		     struct geom_build *b, const struct piece *p)
{
	uint64_t track = geom_build_tracks(b), at = p->first;
	size_t i = store_find_odd(store, p->first);
	struct geom_sweep s = {
		.count = p->tracks,
		.sectors = p->size * unit,
		.around = (uint32_t)lrint(p->size / fmin(p->span, 1)) * unit,
		.cylinder = (int64_t)(track % GEOM_MAX_CYLINDERS),
		.cylinder_step = 1,
		.base = phase_angle(p->start),
		.base_step = phase_angle(p->step),
		.known = true,
	};
	uint64_t less = 0, k;
	int err = geom_build_sweep(b, &s);

	for (; !err && i < store->odds_n &&
	     store->odds[i].first < p->first + p->units; i++) {
		const struct odd *odd = &store->odds[i];

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
	struct store proven;
	int err = map_proven(map, &proven);

	if (err)
		return err;
	b = geom_build_new((uint64_t)r->phase.period_ns, GEOM_TOLERANCE);
	if (!b)
		err = -ENOMEM;
	for (size_t i = 0; i < proven.n && !err; i++) {
		const struct piece *p = &proven.pieces[i];

		if (!p->tracks)
			continue;
		err = add_pseudo(b, r->offset + p->first * r->unit_sectors);
		if (!err)
			err = add_piece(&proven, r->unit_sectors, b, p);
	}
	store_fini(&proven);
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

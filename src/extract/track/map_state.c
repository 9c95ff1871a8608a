/*
 * map_state.c - a map as JSON: pieces, odd tracks, and what holds the clock.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/msg.h"
#include "diskmodel/geom_build.h"
#include "extract/track/map_state.h"

/* Revolutions, of whatever turn; more is no angle. */
#define TURNS_MOST 1e6

static int append(json_t *array, json_t *value)
{
	return value ? json_array_append_new(array, value) : -1;
}

json_t *map_save(const struct map *map)
{
	json_t *pieces, *odds;
	struct store s;
	int err = map_proven(map, &s);

	if (err)
		return NULL;
	pieces = json_array();
	odds = json_array();
	for (size_t i = 0; i < s.n && !err; i++) {
		const struct piece *p = &s.pieces[i];

		err = append(pieces, json_pack("[I,I,i,i,f,f,f]",
			(json_int_t)p->first, (json_int_t)p->units,
			(int)p->tracks, (int)p->size, p->start, p->step,
			p->span));
	}
	for (size_t i = 0; i < s.odds_n && !err; i++)
		err = append(odds, json_pack("[I,i]",
			(json_int_t)s.odds[i].first, (int)s.odds[i].less));
	store_fini(&s);
	if (err) {
		json_decref(pieces);
		json_decref(odds);
		return NULL;
	}
	return json_pack("{s:I,s:i,s:f,s:o,s:o}", "units",
			 (json_int_t)map->reader.units, "unit_sectors",
			 (int)map->reader.unit_sectors, "period_ns",
			 map->reader.phase.period_ns, "pieces", pieces,
			 "odds", odds);
}

static int load_piece(struct map *m, json_t *value, uint64_t *end)
{
	json_int_t first, units;
	int tracks, size;
	struct piece p;

	if (json_unpack(value, "[I,I,i,i,F,F,F]", &first, &units, &tracks,
			&size, &p.start, &p.step, &p.span))
		return -EINVAL;
	if (first < 0 || units <= 0 || tracks < 0 || size < 0 ||
	    (uint64_t)first < *end ||
	    (uint64_t)units > m->reader.units ||
	    (uint64_t)first > m->reader.units - (uint64_t)units ||
	    !(fabs(p.start) <= TURNS_MOST) || !(fabs(p.step) <= TURNS_MOST) ||
	    (uint32_t)size > GEOM_MAX_TRACK_SECTORS / m->reader.unit_sectors ||
	    (tracks && (!size || !(p.span > 0.01) || p.span > 1.05 ||
			(uint64_t)units > (uint64_t)tracks *
					  (uint64_t)size)))
		return -EINVAL;
	p.first = (uint64_t)first;
	p.units = (uint64_t)units;
	p.tracks = (uint32_t)tracks;
	p.size = (uint32_t)size;
	*end = p.first + p.units;
	return store_insert(&m->store, &p);
}

static int load_odd(struct map *m, json_t *value, uint64_t *from)
{
	const struct store *s = &m->store;
	json_int_t first;
	int less;
	size_t i;

	if (json_unpack(value, "[I,i]", &first, &less) || first < 0 ||
	    (uint64_t)first < *from)
		return -EINVAL;
	*from = (uint64_t)first + 1;
	i = store_find(s, (uint64_t)first);
	if (i >= s->n || s->pieces[i].first > (uint64_t)first || less <= 0 ||
	    (uint32_t)less >= s->pieces[i].size)
		return -EINVAL;
	return store_odd(&m->store, (uint64_t)first, (uint32_t)less);
}

/* Do the tracks of each piece add up to what it holds? */
static bool adds_up(const struct store *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct piece *p = &s->pieces[i];
		size_t k = store_find_odd(s, p->first);
		uint64_t sum = (uint64_t)p->tracks * p->size;

		for (; k < s->odds_n &&
		     s->odds[k].first < p->first + p->units; k++)
			sum -= s->odds[k].less;
		if (p->tracks && sum != p->units)
			return false;
	}
	return true;
}

int map_load(struct map *map, const json_t *state)
{
	json_t *pieces, *odds, *value, *root = (json_t *)state;
	json_int_t units;
	int unit_sectors, err = 0;
	double period_ns;
	uint64_t end = 0;
	size_t i;

	if (json_unpack(root, "{s:I,s:i,s:F,s:o,s:o}", "units", &units,
			"unit_sectors", &unit_sectors, "period_ns",
			&period_ns, "pieces", &pieces, "odds", &odds) ||
	    (uint64_t)units != map->reader.units ||
	    (uint32_t)unit_sectors != map->reader.unit_sectors) {
		msg_error("the state is not that of a map of this drive");
		return -EINVAL;
	}
	json_array_foreach(pieces, i, value) {
		if (!err)
			err = load_piece(map, value, &end);
	}
	end = 0;
	json_array_foreach(odds, i, value) {
		if (!err)
			err = load_odd(map, value, &end);
	}
	if (!err && !adds_up(&map->store))
		err = -EINVAL;
	if (err) {
		store_fini(&map->store);
		msg_error("the state of a map contradicts itself");
		return err;
	}
	for (i = 0; i < map->store.n && !map->anchored; i++) {
		if (!map->store.pieces[i].tracks)
			continue;
		store_track(&map->store, &map->store.pieces[i], 0,
			    &map->anchor);
		map->anchored = true;
	}
	return 0;
}

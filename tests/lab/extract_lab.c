/*
 * extract_lab.c - the map of tracks of drives, against their true ones; by
 * hand.
 *
 *   extract_lab [--seed N] [--limit SECTORS] [--verify CHECKS] [--why] SPEC...
 *
 * --verify: then so many boundaries are looked at as extraction does it at its
 * end.
 * --why: a line for what is unknown, with the true tracks there: sectors of how
 * many around, zone, and by how many percent of a turn the angle leaps between.
 * A SPEC is a file, or "random:SEED[,KEY=VALUE...]" (sim/specgen.h).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diskmodel/spec.h"
#include "extract/drive/verify.h"
#include "extract/probe/phase.h"
#include "sim/drive.h"
#include "sim/specgen.h"
#include "tests/rig/extract_rig.h"

static const char *const purposes[READER_PURPOSES] = {
	"clock", "leap", "inside", "event", "proof", "gap"
};

struct lab {
	uint64_t seed, limit, checks, quick_ms;
	bool quiet, why;
};

static unsigned zone_of(const struct spec *spec, const struct geom_track *t)
{
	unsigned z = 0;

	while (z < spec->zones_n && t->cylinder > spec->zones[z].last_cylinder)
		z++;
	return z;
}

/* Do sectors of a track lie neither in LBNs nor among its spares?  Drives that
 * are given by their tracks have no zones to tell. */
static bool is_spoilt(const struct spec *spec, const struct geom_track *t,
		      uint32_t around)
{
	return spec->zones_n &&
	       t->sectors + spec->zones[zone_of(spec, t)].spares_track *
			    (spec->physical_bytes / 512) < around;
}

/* Of a turn, at the beginning of a track. */
static double leap_at(const struct geom *truth, uint64_t i)
{
	struct geom_track a, b;

	if (!i || i >= geom_tracks(truth))
		return 0;
	geom_track_at(truth, i - 1, &a);
	geom_track_at(truth, i, &b);
	return phase_wrap(((double)b.start - a.start -
			   (double)a.sectors * a.per_sector) * 0x1p-32);
}

#define LEAP_LEAST 0.027

static void tell(const struct spec *spec, const struct geom *truth,
		 uint64_t first, uint64_t end)
{
	bool zone = false, leap = false, spoilt = false;
	struct geom_track t, before = { 0 };
	uint64_t i;

	geom_track_of(truth, first, &t);
	printf("  why %ju+%ju:", (uintmax_t)first, (uintmax_t)(end - first));
	for (i = t.index; i < geom_tracks(truth); i++) {
		double by = leap_at(truth, i);
		uint32_t around;

		geom_track_at(truth, i, &t);
		if (i && before.sectors)
			zone |= zone_of(spec, &t) != zone_of(spec, &before);
		leap |= fabs(by) < LEAP_LEAST;
		if (t.first >= end)
			break;
		around = (uint32_t)(4294967296.0 / t.per_sector + 0.5);
		spoilt |= is_spoilt(spec, &t, around);
		if (end - first < 40 * t.sectors)
			printf(" %+.1f %u/%u.%u", 100 * by, t.sectors, around,
			       zone_of(spec, &t));
		before = t;
	}
	printf(" CAUSE%s%s%s%s\n", zone ? ".zone" : "", leap ? ".noleap" : "",
	       spoilt ? ".short" : "",
	       zone || leap || spoilt ? "" : ".none");
}

static void tell_wrong(const struct geom *truth, const struct geom_track *t)
{
	struct geom_track is;

	geom_track_of(truth, t->first, &is);
	if (is.first != t->first || is.sectors != t->sectors)
		printf("  wrong %ju+%u: is %ju+%u\n", (uintmax_t)t->first,
		       t->sectors, (uintmax_t)is.first, is.sectors);
}

static void tell_all(const struct spec *spec, const struct extract_rig *rig,
		     const struct geom *geom)
{
	const struct geom *truth = drive_geom(sim_drive(rig->sim));
	uint64_t first = 0, end = 0;
	struct geom_track t;

	for (uint64_t i = 0; i < geom_tracks(geom); i++) {
		geom_track_at(geom, i, &t);
		if (t.known)
			tell_wrong(truth, &t);
		if (t.known && first < end)
			tell(spec, truth, first, end);
		end = t.first + t.sectors;
		if (t.known)
			first = end;
	}
	if (first < end)
		tell(spec, truth, first, end);
}

static int drive(const char *name, struct spec **spec)
{
	static const char random[] = "random:";
	struct specgen options;
	int err;

	if (strncmp(name, random, sizeof(random) - 1))
		return spec_read(name, spec);
	err = specgen_parse(name + sizeof(random) - 1, &options);
	return err ? err : specgen_make(&options, spec);
}

static int run(const struct lab *lab, const char *path)
{
	struct extract_rig rig;
	struct extract_verdict v;
	struct verify checked;
	struct map_stats s;
	struct spec *spec;
	struct geom *geom;
	struct map *map;
	int err = drive(path, &spec);

	if (err || extract_rig_init(&rig, spec, lab->seed))
		return 1;
	rig.quiet |= lab->quiet;
	struct map_options o = {
		.period_ps = spec->mech.period_ps * 1000001 / 1000000,
	};
	uint64_t end = lab->limit ? lab->limit : rig.prober.limits->sectors;

	err = map_open(&rig.prober, &o, &map);
	if (!err)
		err = lab->quick_ms ? map_quick(map, lab->quick_ms * 1000000) :
				      map_extract(map, 0, end);
	if (!err)
		err = map_geom(map, &geom);
	if (!err)
		err = verify_boundaries(&rig.prober, geom, o.period_ps,
					(unsigned)lab->checks, &checked);
	if (err) {
		printf("%s: error %d\n", path, err);
		return 1;
	}
	extract_rig_judge(&rig, geom, &v);
	map_get_stats(map, &s);
	printf("%-28s tracks %8ju wrong %ju unknown %.4f%% (%.4f%%) reads %ju "
	       "%.4f/track %.1f s leaps %ju events %ju odd %ju gone %ju "
	       "hits %ju evict %ju checks %u of %u failed %ju noise %.4f "
	       "angle p99 %.4f first wrong %ju\n",
	       strrchr(path, '/') ? strrchr(path, '/') + 1 : path,
	       (uintmax_t)s.tracks, (uintmax_t)v.wrong,
	       100.0 * (1 - (double)s.known_sectors / (double)end),
	       100.0 * (double)v.unknown_sectors / (double)v.sectors,
	       (uintmax_t)s.reads, (double)s.reads / (double)s.tracks,
	       (double)s.disk_ns * 1e-9, (uintmax_t)s.leaps,
	       (uintmax_t)s.events, (uintmax_t)s.slips, (uintmax_t)s.gone,
	       (uintmax_t)s.hits, (uintmax_t)s.evictions,
	       checked.right, checked.right + checked.wrong,
	       (uintmax_t)s.failed, s.noise, v.angle_p99,
	       (uintmax_t)v.first_wrong);
	for (int i = 0; i < READER_PURPOSES; i++)
		printf("    %-6s %9ju reads %8.1f s\n", purposes[i],
		       (uintmax_t)s.reads_for[i], (double)s.ns_for[i] * 1e-9);
	if (lab->why)
		tell_all(spec, &rig, geom);
	geom_free(geom);
	map_close(map);
	extract_rig_fini(&rig);
	spec_free(spec);
	return v.wrong != 0;
}

int main(int argc, char **argv)
{
	struct lab lab = { .seed = 1, .checks = 1000 };
	int bad = 0;

	for (int i = 1; i < argc; i++) {
		uint64_t *value = !strcmp(argv[i], "--seed") ? &lab.seed :
				  !strcmp(argv[i], "--limit") ? &lab.limit :
				  !strcmp(argv[i], "--verify") ? &lab.checks :
				  !strcmp(argv[i], "--quick") ? &lab.quick_ms :
				  NULL;

		if (!strcmp(argv[i], "--quiet"))
			lab.quiet = true;
		else if (!strcmp(argv[i], "--why"))
			lab.why = true;
		else if (value && i + 1 < argc)
			*value = strtoull(argv[++i], NULL, 0);
		else
			bad |= run(&lab, argv[i]);
	}
	return bad;
}

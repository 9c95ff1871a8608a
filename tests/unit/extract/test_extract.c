/*
 * test_extract.c - the map of tracks by timing is exact, on simulated drives
 * behind a noisy host; it survives interruption and being written down.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diskmodel/spec.h"
#include "extract/track/again.h"
#include "extract/track/seam.h"
#include "extract/track/store.h"
#include "sim/specgen.h"
#include "tests/rig/extract_rig.h"
#include "tests/rig/test.h"

static struct spec *spec_of(const char *name)
{
	const char *dir = getenv("top_srcdir");
	struct spec *spec;
	char path[512];

	snprintf(path, sizeof(path), "%s/drives/%s", dir ? dir : ".", name);
	ck_assert_int_eq(spec_read(path, &spec), 0);
	return spec;
}

static struct map *map_of(struct extract_rig *rig, const struct spec *spec)
{
	/* As well as a period is measured. */
	struct map_options o = {
		.period_ps = spec->mech.period_ps * 1000001 / 1000000,
	};
	struct map *map;

	ck_assert_int_eq(map_open(&rig->prober, &o, &map), 0);
	return map;
}

/* All that is known is true, and nearly all is known. */
static void judge(const struct extract_rig *rig, const struct map *map,
		  uint64_t sectors)
{
	struct extract_verdict v;
	struct map_stats s;
	struct geom *geom;

	ck_assert_int_eq(map_geom(map, &geom), 0);
	ck_assert_uint_eq(geom_sectors(geom), rig->prober.limits->sectors);
	extract_rig_judge(rig, geom, &v);
	ck_assert_uint_eq(v.wrong, 0);
	map_get_stats(map, &s);
	ck_assert_uint_ge(s.known_sectors, sectors - sectors / 50);
	geom_free(geom);
}

START_TEST(exact)
{
	static const struct {
		const char *name;
		uint64_t sectors;
	} drives[] = {
		{ "modern.json", 20000000 },
		{ "wd800.json", 3000000 },
		{ "atlas-10k.json", 1000000 },
	};
	struct spec *spec = spec_of(drives[_i].name);
	struct extract_rig rig;
	struct map *map;

	ck_assert_int_eq(extract_rig_init(&rig, spec, 7), 0);
	map = map_of(&rig, spec);
	ck_assert_int_eq(map_extract(map, 0, drives[_i].sectors), 0);
	judge(&rig, map, drives[_i].sectors);
	map_close(map);
	extract_rig_fini(&rig);
	spec_free(spec);
}
END_TEST

START_TEST(interrupted)
{
	struct spec *spec = spec_of("modern.json");
	struct extract_rig rig;
	struct map *map, *again;
	bool known;
	json_t *state;

	ck_assert_int_eq(extract_rig_init(&rig, spec, 3), 0);
	map = map_of(&rig, spec);
	rig.stop_at = 2000;
	ck_assert_int_eq(map_extract(map, 0, 8000000), -EINTR);
	ck_assert_uint_gt(map_known(map, 0, &known), 100000);
	ck_assert(known);
	state = map_save(map);
	ck_assert_ptr_nonnull(state);
	map_close(map);
	rig.stop_at = 0;
	again = map_of(&rig, spec);
	ck_assert_int_eq(map_load(again, state), 0);
	json_decref(state);
	ck_assert_int_eq(map_extract(again, 0, 8000000), 0);
	judge(&rig, again, 8000000);
	/* A place in the middle, of which nothing is known. */
	ck_assert_int_eq(map_extract(again, 3000000000, 3000200000), 0);
	ck_assert_uint_ge(map_known(again, 3000100000, &known), 3000200000);
	ck_assert(known);
	judge(&rig, again, 8200000);
	map_close(again);
	extract_rig_fini(&rig);
	spec_free(spec);
}
END_TEST

/* What is no map is not believed, and nothing of it stays. */
START_TEST(hostile_states)
{
	static const char *const states[] = {
		"[[0,100,1,100,1e300,0,1]],'odds':[]",
		"[[0,100,1,100,0,-1e300,1]],'odds':[]",
		"[[0,100,1,100,0,0,1],[50,100,1,100,0,0,1]],'odds':[]",
		"[[0,98,1,100,0,0,1]],'odds':[[0,1],[0,1]]",
		"[[0,197,2,100,0,0,1]],'odds':[[100,2],[0,1]]",
		"[[0,99,1,100,0,0,1]],'odds':[]",
		"[[0,300000000,1,300000000,0,0,1]],'odds':[]",
	};
	struct spec *spec = spec_of("modern.json");
	struct extract_rig rig;
	struct map *map;
	json_t *state, *more;
	char text[200];
	bool known;

	ck_assert_int_eq(extract_rig_init(&rig, spec, 3), 0);
	map = map_of(&rig, spec);
	state = map_save(map);
	snprintf(text, sizeof(text), "{'pieces':%s}", states[_i]);
	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	more = json_loads(text, 0, NULL);
	ck_assert_ptr_nonnull(more);
	ck_assert_int_eq(json_object_update(state, more), 0);
	ck_assert_int_eq(map_load(map, state), -EINVAL);
	map_known(map, 0, &known);
	ck_assert(!known);
	json_decref(more);
	json_decref(state);
	map_close(map);
	extract_rig_fini(&rig);
	spec_free(spec);
}
END_TEST

/*
 * Nothing that is known is wrong, on drives that once had wrong tracks: pieces
 * that overlapped (26), tracks in another order with the same sum (5), tracks
 * that begin behind something unknown (17, 40), one boundary by itself (74,
 * 116), two short tracks that are a turn together (636), eight tracks as long
 * as eight others (40 of 40 GB), cylinders with spares (46 and 55 of 80 GB), a
 * track whose first sector lies elsewhere (46), what was walked beyond the last
 * of several holes (1206), the last and the first track of two zones taken for
 * one (33319, 33380, 31358) and the other way round (32025), a track that is
 * longer than the others by a sector that is another's (18126), slips that the
 * longer one of two surfaces makes up for (6013 of 80 GB).
 */
START_TEST(certain)
{
	static const char *const drives[] = {
		"5", "17", "22", "26", "36", "40", "74", "116", "165", "636",
		"711", "818,cache=0", "19,odd=1", "46,odd=1", "245,odd=1",
		"1206,odd=1", "84", "168,odd=1", "318,odd=1", "134,odd=1",
		"348,odd=1", "1504,bytes=150M",
		"40,bytes=40G,noise=1", "46,bytes=80G", "55,bytes=80G",
		"33319,bytes=300M", "33380,bytes=300M",
		"31358,bytes=150M,odd=1", "18126,bytes=150M,odd=1",
		"32025,bytes=60M,odd=1", "6013,bytes=80G,slipped=0.0005",
		/* Where zones meet a short track and the next one are as long
		 * together as one with slips. */
		"970106,bytes=40G", "972016,bytes=40G,cache=1,noise=1",
		/* They are a turn long, and all their sizes were known. */
		"7153189,bytes=2G,slipped=0.005",
	};
	struct extract_verdict v;
	struct specgen options;
	struct extract_rig rig;
	struct spec *spec;
	struct geom *geom;
	struct map *map;

	ck_assert_int_eq(specgen_parse(drives[_i], &options), 0);
	ck_assert_int_eq(specgen_make(&options, &spec), 0);
	ck_assert_int_eq(extract_rig_init(&rig, spec, 1), 0);
	map = map_of(&rig, spec);
	ck_assert_int_eq(map_extract(map, 0, rig.prober.limits->sectors), 0);
	ck_assert_int_eq(map_geom(map, &geom), 0);
	extract_rig_judge(&rig, geom, &v);
	ck_assert_msg(!v.wrong, "%s: %ju wrong, first at %ju", drives[_i],
		      (uintmax_t)v.wrong, (uintmax_t)v.first_wrong);
	ck_assert_uint_lt(v.unknown_sectors, v.sectors / 4);
	geom_free(geom);
	map_close(map);
	extract_rig_fini(&rig);
	spec_free(spec);
}
END_TEST

/* The same, with other noise: a track that goes on elsewhere without a leap, of
 * which the next sectors could not be reached in time either (1504), two zones
 * with a few sectors between (41216, 46260, 46397), ends of lines that are none
 * (42487, 42533), two that are as long as one (47278) or as those of another
 * surface (40026, 41130) or larger than all (64354), a slip at the beginning of
 * one behind spares (51297), a row of tracks that are all too short (8006),
 * one in two parts where no zones meet (81108), or in three (94339),
 * two that look like one with slips (52264, 104637), the last unit of one with
 * slips that is late twice (77), what waits in a read-ahead (930001 of 40 GB),
 * what was measured and left out of the proof (20047), a slip that a size in
 * the wrong place makes up for (930001 of 80 GB), an end of a row that was
 * refuted and then late (20112), a run that ended a track early just before a
 * leap (8327), one longer than its neighbours, between them (18126), 12 tracks
 * and one of another run that are 13 of a third (1201096, 1500509), the ends of
 * two zones between tracks of one size (1300111), two tracks in a gap that are
 * as long as those on both sides (1500819), a zone's last track of a single
 * unit (1510436), reads that are late by most of a turn among many of one unit
 * (1511134). */
START_TEST(certain_again)
{
	static const struct {
		const char *drive;
		uint64_t seed;
	} drives[] = {
		{ "1504,bytes=150M", 12 }, { "1504,bytes=150M", 55 },
		{ "41216,bytes=150M,odd=1", 3 },
		{ "41216,bytes=150M,odd=1", 22 },
		{ "42487,bytes=60M,odd=1", 30 },
		{ "42533,bytes=60M,odd=1", 4 },
		{ "46260,bytes=2G,slipped=0.005", 1 },
		{ "46397,bytes=2G,slipped=0.005", 2 },
		{ "47278,bytes=300M,slipped=0.022", 1 },
		{ "51297,bytes=150M,odd=1", 11 },
		{ "73044,bytes=2G,slipped=0.005", 1 },
		{ "40026,bytes=80G,slipped=0.0005", 1 },
		{ "41130,bytes=80G,slipped=0.0005", 1 },
		{ "64354,bytes=10G", 11 },
		{ "8006,bytes=80G,slipped=0.022", 1 },
		{ "77,bytes=80G,slipped=0.022", 1 },
		{ "81108,bytes=80G,slipped=0.022", 5 },
		{ "94339,bytes=10G", 3 },
		{ "52264,bytes=300M", 1 },
		{ "104637,bytes=2G,cache=1", 1 },
		{ "930001,bytes=40G,slipped=0.022", 9 },
		{ "20047,bytes=80G,slipped=0.022", 66 },
		{ "20112,bytes=80G,slipped=0.022", 34 },
		{ "8327,bytes=20G,slipped=0.022", 83 },
		{ "930001,bytes=80G,slipped=0.022", 37 },
		{ "18126,bytes=150M,odd=1", 2 },
		{ "1201096,bytes=20G,group=12,noise=1", 1 },
		{ "1500509,bytes=40G,cache=0,odd=1,slipped=0.005", 1 },
		{ "1300111,bytes=9G,odd=1,cache=1,slipped=0.01", 1 },
		{ "1500819,bytes=9G,cache=0,odd=1,slipped=0.005", 1 },
		{ "1510436,bytes=4G,group=6,noise=1", 1 },
		{ "1511134,bytes=4G,slipped=0.01,noise=1,odd=1", 1 },
	};
	struct extract_verdict v;
	struct specgen options;
	struct extract_rig rig;
	struct spec *spec;
	struct geom *geom;
	struct map *map;

	ck_assert_int_eq(specgen_parse(drives[_i].drive, &options), 0);
	ck_assert_int_eq(specgen_make(&options, &spec), 0);
	ck_assert_int_eq(extract_rig_init(&rig, spec, drives[_i].seed), 0);
	map = map_of(&rig, spec);
	ck_assert_int_eq(map_extract(map, 0, rig.prober.limits->sectors), 0);
	ck_assert_int_eq(map_geom(map, &geom), 0);
	extract_rig_judge(&rig, geom, &v);
	ck_assert_msg(!v.wrong, "%s: %ju wrong, first at %ju",
		      drives[_i].drive, (uintmax_t)v.wrong,
		      (uintmax_t)v.first_wrong);
	geom_free(geom);
	map_close(map);
	extract_rig_fini(&rig);
	spec_free(spec);
}
END_TEST

struct witness {
	struct extract_rig rig;
	struct map *map;
	unsigned reports;
};

/* What would be kept if all ended here? */
static int see_what_is_known(const struct map_progress *progress, void *arg)
{
	struct witness *w = arg;
	struct extract_verdict v;
	struct geom *geom;

	(void)progress;
	w->reports++;
	ck_assert_int_eq(map_geom(w->map, &geom), 0);
	extract_rig_judge(&w->rig, geom, &v);
	ck_assert_msg(!v.wrong, "report %u: %ju wrong, first at %ju",
		      w->reports, (uintmax_t)v.wrong,
		      (uintmax_t)v.first_wrong);
	geom_free(geom);
	return 0;
}

/* What has been walked over, and not been looked at, is not known yet. */
START_TEST(nothing_is_known_too_soon)
{
	static const struct {
		const char *name;
		uint64_t noise;
	} drives[] = {
		{ "51297,bytes=150M,odd=1", 1 }, { "42533,bytes=60M,odd=1", 1 },
		{ "1504,bytes=150M", 1 }, { "94339,bytes=10G", 1 },
		/* What waits until all around it is known is no track. */
		{ "972016,bytes=40G,cache=1,noise=1", 3 },
	};
	struct witness w = { .reports = 0 };
	struct map_options o = { .progress = see_what_is_known, .arg = &w };
	struct specgen options;
	struct spec *spec;

	ck_assert_int_eq(specgen_parse(drives[_i].name, &options), 0);
	ck_assert_int_eq(specgen_make(&options, &spec), 0);
	ck_assert_int_eq(extract_rig_init(&w.rig, spec,
					  drives[_i].noise), 0);
	o.period_ps = spec->mech.period_ps * 1000001 / 1000000;
	ck_assert_int_eq(map_open(&w.rig.prober, &o, &w.map), 0);
	ck_assert_int_eq(map_extract(w.map, 0, w.rig.prober.limits->sectors),
			 0);
	ck_assert_uint_gt(w.reports, 10);
	map_close(w.map);
	extract_rig_fini(&w.rig);
	spec_free(spec);
}
END_TEST

/* The share of a drive that stays unknown with some noise; nothing is wrong. */
static double unknown_share(const char *drive, uint64_t seed)
{
	struct extract_verdict v;
	struct specgen options;
	struct extract_rig rig;
	struct spec *spec;
	struct geom *geom;
	struct map *map;

	ck_assert_int_eq(specgen_parse(drive, &options), 0);
	ck_assert_int_eq(specgen_make(&options, &spec), 0);
	ck_assert_int_eq(extract_rig_init(&rig, spec, seed), 0);
	map = map_of(&rig, spec);
	ck_assert_int_eq(map_extract(map, 0, rig.prober.limits->sectors), 0);
	ck_assert_int_eq(map_geom(map, &geom), 0);
	extract_rig_judge(&rig, geom, &v);
	ck_assert_uint_eq(v.wrong, 0);
	geom_free(geom);
	map_close(map);
	extract_rig_fini(&rig);
	spec_free(spec);
	return (double)v.unknown_sectors / (double)v.sectors;
}

#define ENDS_SURFACES 4u
#define ENDS_ROW 32u
#define ENDS_ROUNDS 8u
#define ENDS_ZONES 4u

/* One row of tracks of n sectors of 4096 bytes, of which two are spares: taken
 * by slips in some tracks, and else left in the last one. */
static void put_row(FILE *f, unsigned row, unsigned n, double *turn,
		    uint64_t *random)
{
	unsigned round = row / ENDS_SURFACES, surface = row % ENDS_SURFACES;
	unsigned spares = 2;

	if (round % 2)
		surface = ENDS_SURFACES - 1 - surface;
	for (unsigned t = 0; t < ENDS_ROW; t++) {
		unsigned less = t + 1 == ENDS_ROW ? spares :
				spares && test_random(random) % 25 == 0;

		fprintf(f, "%s{\"tracks\": 1, \"sectors\": %u, \"around\": %u, "
			"\"cylinder\": %u, \"surface\": %u, \"angle\": %.9f}",
			row || t ? ", " : "", 8 * (n - less), 8 * n,
			round * ENDS_ROW +
			(surface % 2 ? ENDS_ROW - 1 - t : t), surface, *turn);
		spares -= less;
		*turn = fmod(*turn + 0.2, 1);
	}
}

/* A drive whose rows of tracks all end with spares. */
static struct spec *rows_with_spares(uint64_t seed)
{
	static const double sizes[ENDS_SURFACES] = { 1, 0.97, 1.02, 0.99 };
	double turn = 0;
	struct spec *spec;
	size_t bytes;
	char *text;
	FILE *f = open_memstream(&text, &bytes);

	fprintf(f, "{\"physical_bytes\": 4096, \"surfaces\": %u, "
		"\"revolution_ms\": 8.333, \"head_switch_ms\": 1.0, "
		"\"seek\": [[1, 0.9], [30, 1.8], [1000, 9.0]], "
		"\"geometry\": {\"runs\": [{\"tracks\": %u, \"pattern\": 0}], "
		"\"patterns\": [{\"sweeps\": [", ENDS_SURFACES,
		ENDS_SURFACES * ENDS_ROW * ENDS_ROUNDS * ENDS_ZONES);
	for (unsigned i = 0; i < ENDS_SURFACES * ENDS_ROUNDS * ENDS_ZONES;
	     i++) {
		unsigned zone = i / (ENDS_SURFACES * ENDS_ROUNDS);
		unsigned k = i % ENDS_SURFACES;

		if (i / ENDS_SURFACES % 2)
			k = ENDS_SURFACES - 1 - k;
		put_row(f, i, (unsigned)((488 - 12 * zone) * sizes[k]),
			&turn, &seed);
	}
	fprintf(f, "]}]}}");
	fclose(f);
	ck_assert_int_eq(spec_parse(text, "rows", &spec), 0);
	free(text);
	return spec;
}

/* Last tracks of rows that lack what is left of the spares, as those of other
 * rows do, hold without being looked at as single ones: that took 30 % more
 * reads. */
START_TEST(ends_of_rows)
{
	struct spec *spec = rows_with_spares(1);
	struct extract_verdict v;
	struct extract_rig rig;
	struct map_stats stats;
	struct geom *geom;
	struct map *map;

	ck_assert_int_eq(extract_rig_init(&rig, spec, 1), 0);
	map = map_of(&rig, spec);
	ck_assert_int_eq(map_extract(map, 0, rig.prober.limits->sectors), 0);
	ck_assert_int_eq(map_geom(map, &geom), 0);
	extract_rig_judge(&rig, geom, &v);
	map_get_stats(map, &stats);
	ck_assert_uint_eq(v.wrong, 0);
	ck_assert_uint_lt(v.unknown_sectors, v.sectors / 1000);
	ck_assert_uint_lt(stats.reads, 28000);
	geom_free(geom);
	map_close(map);
	extract_rig_fini(&rig);
	spec_free(spec);
}
END_TEST

#define NOISES 4u

/* Gaps are closed: the ends of zones and the beginning of the disk (1, 4),
 * several slips in a track (12), skews of 2 % of a turn (31289).  The mean of
 * some noises: each leaves twice as much of some. */
START_TEST(closed)
{
	static const char *const drives[] = {
		"1", "4", "12", "31289,bytes=150M,odd=1",
	};
	double share = 0;

	for (unsigned i = 0; i < NOISES; i++)
		share += unknown_share(drives[_i], 4 + i) / NOISES;
	ck_assert_msg(share < 0.006, "%s: %g unknown", drives[_i], share);
}
END_TEST

/*
 * Unequal surfaces one after another, and cylinders with spares: rounds of few
 * tracks are leapt over, and what slips in them is seen (124, 132: a few in
 * each zone; 127: equal but for the last of a cylinder; 414: slips that were
 * made up for within one leap).
 */
START_TEST(in_rounds)
{
	static const char *const drives[] = {
		"124,bytes=80G,slipped=0.0005", "132,bytes=80G,slipped=0.0005",
		"127,bytes=80G,slipped=0.0005", "414,bytes=30G,odd=1",
	};
	struct extract_verdict v;
	struct specgen options;
	struct extract_rig rig;
	struct map_stats s;
	struct spec *spec;
	struct geom *geom;
	struct map *map;

	ck_assert_int_eq(specgen_parse(drives[_i], &options), 0);
	ck_assert_int_eq(specgen_make(&options, &spec), 0);
	ck_assert_int_eq(extract_rig_init(&rig, spec, 1), 0);
	map = map_of(&rig, spec);
	ck_assert_int_eq(map_extract(map, 0, rig.prober.limits->sectors), 0);
	ck_assert_int_eq(map_geom(map, &geom), 0);
	extract_rig_judge(&rig, geom, &v);
	ck_assert_msg(!v.wrong, "%s: %ju wrong, first at %ju", drives[_i],
		      (uintmax_t)v.wrong, (uintmax_t)v.first_wrong);
	ck_assert_uint_lt(v.unknown_sectors, v.sectors / 100);
	map_get_stats(map, &s);
	/* Without the few gaps. */
	ck_assert_uint_lt(s.reads - s.reads_for[READER_GAP],
			  (options.odd ? 10 : 2) * s.tracks);
	geom_free(geom);
	map_close(map);
	extract_rig_fini(&rig);
	spec_free(spec);
}
END_TEST

/*
 * What a gap may be, it may be otherwise: the ends of two zones of one pitch,
 * with what looks like a slip between them (105); a track in which more slipped
 * than shows, which begins as a short one would end (301).
 */
START_TEST(not_claimed)
{
	static const struct {
		const char *drive;
		uint64_t seed, around;
	} places[] = {
		{ "105,bytes=80G,slipped=0.0005", 1, 118726437 },
		{ "301,bytes=80G", 6, 128435384 },
	};
	uint64_t around = places[_i].around;
	struct extract_verdict v;
	struct specgen options;
	struct extract_rig rig;
	struct spec *spec;
	struct geom *geom;
	struct map *map;

	ck_assert_int_eq(specgen_parse(places[_i].drive, &options), 0);
	ck_assert_int_eq(specgen_make(&options, &spec), 0);
	ck_assert_int_eq(extract_rig_init(&rig, spec, places[_i].seed), 0);
	map = map_of(&rig, spec);
	ck_assert_int_eq(map_extract(map, around - 100000, around + 100000),
			 0);
	ck_assert_int_eq(map_geom(map, &geom), 0);
	extract_rig_judge(&rig, geom, &v);
	ck_assert_uint_eq(v.wrong, 0);
	ck_assert_uint_lt(v.unknown_sectors, v.sectors - 190000);
	geom_free(geom);
	map_close(map);
	extract_rig_fini(&rig);
	spec_free(spec);
}
END_TEST

/*
 * A part of a drive of which little stays unknown, and takes no longer than so
 * many seconds of disk time: where a slow interface makes what is read ahead
 * come late (920246), where two surfaces have as many units a track because one
 * has the spares (970028), where spares at the end of a round make up for slips
 * in it (970352).
 */
START_TEST(little_unknown)
{
	static const struct {
		const char *drive;
		uint64_t first, end, most_s;
	} parts[] = {
		{ "920246,bytes=40G", 0, 3000000, 60 },
		{ "970028,bytes=40G", 16400000, 18400000, 100 },
		{ "970352,bytes=40G", 22000000, 26000000, 200 },
	};
	struct extract_verdict v;
	struct specgen options;
	struct extract_rig rig;
	uint64_t size = parts[_i].end - parts[_i].first;
	struct map_stats s;
	struct spec *spec;
	struct geom *geom;
	struct map *map;

	ck_assert_int_eq(specgen_parse(parts[_i].drive, &options), 0);
	ck_assert_int_eq(specgen_make(&options, &spec), 0);
	ck_assert_int_eq(extract_rig_init(&rig, spec, 1), 0);
	map = map_of(&rig, spec);
	ck_assert_int_eq(map_extract(map, parts[_i].first, parts[_i].end), 0);
	ck_assert_int_eq(map_geom(map, &geom), 0);
	extract_rig_judge(&rig, geom, &v);
	map_get_stats(map, &s);
	ck_assert_uint_eq(v.wrong, 0);
	ck_assert_uint_lt(v.unknown_sectors, v.sectors - size + size / 100);
	ck_assert_uint_lt(s.disk_ns, parts[_i].most_s * UINT64_C(1000000000));
	geom_free(geom);
	map_close(map);
	extract_rig_fini(&rig);
	spec_free(spec);
}
END_TEST

/* A part of a generated drive, or all (end 0) of it, with a host's noise. */
static void part_is_right(const char *drive, uint64_t noise, uint64_t first,
			  uint64_t end)
{
	struct extract_verdict v;
	struct specgen options;
	struct extract_rig rig;
	struct spec *spec;
	struct geom *geom;
	struct map *map;

	ck_assert_int_eq(specgen_parse(drive, &options), 0);
	ck_assert_int_eq(specgen_make(&options, &spec), 0);
	ck_assert_int_eq(extract_rig_init(&rig, spec, noise), 0);
	map = map_of(&rig, spec);
	ck_assert_int_eq(map_extract(map, first, end ? end :
				     rig.prober.limits->sectors), 0);
	ck_assert_int_eq(map_geom(map, &geom), 0);
	extract_rig_judge(&rig, geom, &v);
	ck_assert_msg(!v.wrong, "noise %ju: %ju wrong, first at %ju",
		      (uintmax_t)noise, (uintmax_t)v.wrong,
		      (uintmax_t)v.first_wrong);
	geom_free(geom);
	map_close(map);
	extract_rig_fini(&rig);
	spec_free(spec);
}

/* A few units that were read with noise may lie on a line of angles that fall:
 * no request becomes longer than the drive takes by that. */
START_TEST(no_line_goes_backwards)
{
	part_is_right("910188,bytes=40G", 36, 0, 4000000);
}
END_TEST

/*
 * Two tracks that are as long together as was foretold, but not each of them: a
 * leap that is wrong between them, and right behind, is no leap.
 */
START_TEST(sum_of_two)
{
	static const uint64_t noises[] = { 14, 31, 41 };

	part_is_right("21093,bytes=80G,slipped=0.022", noises[_i], 0, 0);
}
END_TEST

/* A leap is no leap either for a read that is late by just as much. */
START_TEST(late_by_a_leap)
{
	part_is_right("21093,bytes=80G,slipped=0.022", 33, 136412054,
		      136662054);
}
END_TEST

/* Where the interface is slower than the medium, a few units behind a boundary
 * seemed to come early and were taken for a track's end. */
START_TEST(read_over_a_boundary)
{
	part_is_right("910188,bytes=40G", 23, 0, 2000000);
}
END_TEST

/* Tracks of 302 of 310 units between those of 302 hide slips: they are looked
 * at one by one, though slips and gaps lie between them. */
START_TEST(slips_among_equals)
{
	part_is_right("920329,bytes=80G", 9, 53600000, 56500000);
}
END_TEST

/* Gaps take a part of the time of all else or three minutes, at most: where a
 * cache has to be got out of the way, too. */
START_TEST(bounded)
{
	struct extract_verdict v;
	struct specgen options;
	struct extract_rig rig;
	struct map_stats s;
	struct spec *spec;
	struct geom *geom;
	struct map *map;

	ck_assert_int_eq(specgen_parse("139,bytes=80G,slipped=0.0005",
				       &options), 0);
	ck_assert_int_eq(specgen_make(&options, &spec), 0);
	ck_assert_int_eq(extract_rig_init(&rig, spec, 1), 0);
	map = map_of(&rig, spec);
	ck_assert_int_eq(map_extract(map, 0, rig.prober.limits->sectors), 0);
	ck_assert_int_eq(map_geom(map, &geom), 0);
	extract_rig_judge(&rig, geom, &v);
	ck_assert_uint_eq(v.wrong, 0);
	ck_assert_uint_lt(v.unknown_sectors, v.sectors / 200);
	map_get_stats(map, &s);
	ck_assert_uint_lt(s.disk_ns, UINT64_C(800000000000));
	ck_assert(s.ns_for[READER_GAP] < s.disk_ns / 3 ||
		  s.ns_for[READER_GAP] < UINT64_C(185000000000));
	geom_free(geom);
	map_close(map);
	extract_rig_fini(&rig);
	spec_free(spec);
}
END_TEST

static struct run run_of(uint32_t size)
{
	return (struct run){ .count = 1, .size = size, .cross = 0.1,
			     .step = 0.1, .span = 1 };
}

/* A run of that many tracks has come, and another of that size begins. */
static void next_run(struct plan *plan, uint32_t count, uint32_t size)
{
	struct run run = run_of(size);

	plan->now.count = count;
	plan_begin(plan, &run);
}

/* Three heads: their runs come again, are all cut where a zone ends, and come
 * in the same order in the next, where none of them has to be seen twice. */
START_TEST(zone_foreseen)
{
	static const uint32_t was[] = { 400, 380, 420 }, is[] = { 360, 342,
								  378 };
	struct plan plan = { 0 };

	for (unsigned i = 0; i < 12; i++)
		next_run(&plan, i ? 20 : 0, was[i % 3]);
	ck_assert(plan.trusted);
	ck_assert_uint_eq(plan.expected, 20);
	ck_assert_uint_eq(plan_guess(&plan), 400);
	next_run(&plan, 20, 400);
	next_run(&plan, 9, 380);
	ck_assert(plan.trusted);
	ck_assert_uint_eq(plan.expected, 9);
	next_run(&plan, 9, 420);
	for (unsigned i = 0; i < 3; i++) {
		next_run(&plan, i ? 20 : 9, is[i]);
		ck_assert_uint_eq(plan.trusted, i == 2);
		ck_assert_uint_eq(plan.expected, 20);
		ck_assert_uint_eq(plan_guess(&plan), is[(i + 1) % 3]);
	}
	next_run(&plan, 20, 360);
	ck_assert(plan.trusted);
	ck_assert_uint_eq(plan_guess(&plan), 342);
}
END_TEST

/* Slips in a track or two, and what a defect takes of a run, are no runs of a
 * pattern: it goes on as it was. */
START_TEST(defects_forgiven)
{
	static const uint32_t sizes[] = { 400, 380, 420 };
	struct plan plan = { 0 };

	for (unsigned i = 0; i < 9; i++)
		next_run(&plan, i ? 20 : 0, sizes[i % 3]);
	next_run(&plan, 12, 418);
	next_run(&plan, 2, 420);
	ck_assert_uint_eq(plan.now.count, 15);
	ck_assert(plan.trusted);
	ck_assert_uint_eq(plan.expected, 20);
	/* It was missing some. */
	next_run(&plan, 17, 400);
	ck_assert_uint_eq(plan.expected, 17);
	plan_overrun(&plan);
	next_run(&plan, 20, 380);
	next_run(&plan, 20, 420);
	ck_assert(plan.trusted);
	ck_assert_uint_eq(plan.expected, 20);
	ck_assert_uint_eq(plan_guess(&plan), 400);
}
END_TEST

/* Past a track of 400 units that lacks some. */
static void pass_one(struct plan *plan, int32_t less)
{
	const struct ahead a = { .size = 400, .whole = 400 };

	plan_pass(plan, &a);
	if (less)
		plan_slip(plan, less);
}

/* The last of six tracks alike has four spares, whatever the angles: slips
 * before it are taken from those. */
START_TEST(spares_are_foreseen)
{
	struct run run = { .count = 1, .size = 400, .step = 0.1, .span = 1 };
	struct plan plan = { 0 };
	struct ahead ahead[16];

	plan_begin(&plan, &run);
	for (unsigned i = 1; i < 24; i++)
		pass_one(&plan, i % 6 == 5 ? 4 : 0);
	ck_assert(plan.trusted);
	ck_assert_uint_eq(plan.expected, 6);
	ck_assert_uint_eq(plan_ahead(&plan, ahead, 15), 15);
	for (unsigned i = 0; i < 15; i++) {
		ck_assert_uint_eq(ahead[i].size, i % 6 == 5 ? 396 : 400);
		ck_assert_uint_eq(ahead[i].whole, 400);
	}
	plan_pass(&plan, &ahead[0]);
	plan_pass(&plan, &ahead[1]);
	plan_slip(&plan, 1);
	plan_ahead(&plan, ahead, 15);
	ck_assert_uint_eq(ahead[3].size, 397);
	ck_assert_uint_eq(ahead[9].size, 396);
}
END_TEST

/* Three tracks of which the last is short, twice and three times. */
START_TEST(round_learned)
{
	static const uint32_t sizes[] = { 400, 400, 390 };
	struct store store = { 0 };
	struct plan plan = { 0 };
	double start = 0.3;

	for (unsigned i = 0; i < 9; i++) {
		struct store_track t = { plan.first, sizes[i % 3], start, 0 };

		ck_assert(!again_learn(&store, &plan));
		ck_assert_int_eq(store_add(&store, &t, t.size, 1), 0);
		plan.first += t.size;
		start += i % 3 == 2 ? 0.2 : 0.1;
	}
	ck_assert(again_learn(&store, &plan));
	ck_assert_uint_eq(plan.period, 3);
	ck_assert_uint_eq(plan.now.size, 390);
	ck_assert_uint_eq(plan.past[0].size, 390);
	ck_assert_uint_eq(plan.past[1].size, 400);
	ck_assert_double_eq_tol(plan.past[1].cross, 0.2, 0.001);
	ck_assert_double_eq_tol(plan.past[2].cross, 0.1, 0.001);
	store_fini(&store);
}
END_TEST

static void store_adds_up(const struct store *s, uint64_t units)
{
	uint64_t at = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct piece *p = &s->pieces[i];
		struct store_track t;
		uint64_t end = p->first;

		ck_assert_uint_ge(p->first, at);
		for (uint32_t k = 0; k < p->tracks; k++) {
			store_track(s, p, k, &t);
			ck_assert_uint_eq(t.first, end);
			ck_assert_uint_eq(store_track_at(s, p, t.first), k);
			ck_assert_uint_eq(store_track_at(s, p, t.first +
							 t.size - 1), k);
			end += t.size;
		}
		at = p->first + p->units;
		ck_assert(!p->tracks || end == at);
	}
	ck_assert_uint_le(at, units);
}

/* What comes later takes whole tracks away, wherever it lies. */
START_TEST(overlaps)
{
	struct store store = { 0 };
	uint64_t at = 0, seed = 5;

	for (unsigned i = 0; i < 40; i++) {
		struct store_track t = { at, i % 7 ? 100 : 98, i * 0.1, 0 };

		ck_assert_int_eq(store_add(&store, &t, 100, 1), 0);
		at += t.size;
	}
	store_adds_up(&store, at);
	for (unsigned i = 0; i < 60; i++) {
		uint64_t first = test_random(&seed) % at;
		uint64_t n = 1 + test_random(&seed) % 250;
		struct store_track t = { first, 90, 0.5, 0 };

		n = first + n > at ? at - first : n;
		if (i % 3 == 0)
			ck_assert_int_eq(store_cut(&store, first, first + n),
					 0);
		else if (i % 3 == 1)
			ck_assert_int_eq(store_unknown(&store, first, n), 0);
		else if (first + 90 <= at)
			ck_assert_int_eq(store_add(&store, &t, 95, 1), 0);
		store_adds_up(&store, at);
	}
	store_fini(&store);
}
END_TEST

/* Both tracks where sizes change, also when the first of them is forgotten
 * meanwhile. */
START_TEST(seams)
{
	struct store store = { 0 };
	struct seam seam = { .store = &store };
	struct store_track t = { .first = 0 };

	for (unsigned i = 0; i < 9; i++) {
		t = (struct store_track){ t.first + t.size,
					  100 - i / 3 * 10, 0, 0 };
		ck_assert_int_eq(store_add(&store, &t, t.size, 1), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		ck_assert(seam_next(&seam, &t));
		ck_assert_uint_eq(t.first, i ? 480 : 200);
		ck_assert_uint_eq(t.size, i ? 90 : 100);
		ck_assert_int_eq(store_unknown(&store, t.first, t.size), 0);
		ck_assert(seam_next(&seam, &t));
		ck_assert_uint_eq(t.first, i ? 570 : 300);
		ck_assert_uint_eq(t.size, i ? 80 : 90);
	}
	ck_assert(!seam_next(&seam, &t));
	store_fini(&store);
}
END_TEST

/* Within its time, also where places are near the end of a small disk. */
START_TEST(quick)
{
	struct specgen options = {
		.seed = 1 + (uint64_t)_i, .slipped = -1, .cache = -1,
		.zero_latency = -1, .noise = 1,
	};
	struct extract_verdict v;
	struct extract_rig rig;
	struct spec *spec;
	struct geom *geom;
	struct map *map;

	ck_assert_int_eq(specgen_make(&options, &spec), 0);
	ck_assert_int_eq(extract_rig_init(&rig, spec, 1), 0);
	map = map_of(&rig, spec);
	ck_assert_int_eq(map_quick(map, UINT64_C(24000000000)), 0);
	ck_assert_uint_lt(env_now_ns(rig.prober.env), UINT64_C(60000000000));
	ck_assert_int_eq(map_geom(map, &geom), 0);
	extract_rig_judge(&rig, geom, &v);
	ck_assert_uint_eq(v.wrong, 0);
	ck_assert_uint_lt(v.unknown_sectors, v.sectors * 9 / 10);
	geom_free(geom);
	map_close(map);
	extract_rig_fini(&rig);
	spec_free(spec);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("extract");
	TCase *tc = tcase_create("map");

	/* Seconds, on a busy machine. */
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, exact, 0, 3);
	tcase_add_test(tc, interrupted);
	tcase_add_loop_test(tc, certain, 0, 33);
	tcase_add_loop_test(tc, certain_again, 0, 32);
	tcase_add_loop_test(tc, nothing_is_known_too_soon, 0, 5);
	tcase_add_loop_test(tc, closed, 0, 4);
	tcase_add_loop_test(tc, in_rounds, 0, 4);
	tcase_add_loop_test(tc, not_claimed, 0, 2);
	tcase_add_test(tc, no_line_goes_backwards);
	tcase_add_loop_test(tc, little_unknown, 0, 3);
	tcase_add_loop_test(tc, sum_of_two, 0, 3);
	tcase_add_test(tc, late_by_a_leap);
	tcase_add_test(tc, read_over_a_boundary);
	tcase_add_test(tc, slips_among_equals);
	tcase_add_test(tc, bounded);
	tcase_add_test(tc, ends_of_rows);
	tcase_add_test(tc, spares_are_foreseen);
	tcase_add_test(tc, round_learned);
	tcase_add_test(tc, zone_foreseen);
	tcase_add_test(tc, defects_forgiven);
	tcase_add_loop_test(tc, quick, 0, 4);
	suite_add_tcase(suite, tc);
	tc = tcase_create("store");
	tcase_add_loop_test(tc, hostile_states, 0, 7);
	tcase_add_test(tc, overlaps);
	tcase_add_test(tc, seams);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}

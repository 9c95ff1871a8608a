/*
 * test_profile.c - profiles: as files and as records, and what of them is not
 * believed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/le.h"
#include "base/msg.h"
#include "diskmodel/geom_build.h"
#include "diskmodel/profile.h"
#include "tests/rig/test.h"

static const char *const shipped[] = { "atlas-10k", "cheetah-9lp",
				       "ultrastar-18es", "hp-c2247a", "wd800",
				       "modern" };
#define SHIPPED ((int)(sizeof(shipped) / sizeof(*shipped)))
#define CSUM_AT 16
#define HEAD_BYTES 424

static char last_line[512];

static void keep_line(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	snprintf(last_line, sizeof(last_line), "%s", line);
}

static void setup(void)
{
	msg_set_sink(keep_line, NULL);
}

static void teardown(void)
{
	msg_set_sink(NULL, NULL);
}

static struct profile *load(const char *name)
{
	const char *top = getenv("top_srcdir");
	struct profile *p = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/drives/%s.json", top ? top : ".",
		 name);
	ck_assert_msg(profile_read(path, &p) == 0, "%s", last_line);
	return p;
}

static struct profile *parse(const char *text)
{
	struct profile *p = NULL;

	ck_assert_msg(profile_parse(text, "t", &p) == 0, "%s", last_line);
	return p;
}

static char *text_of(const struct profile *p)
{
	size_t bytes;
	char *text;
	FILE *f = open_memstream(&text, &bytes);

	ck_assert_int_eq(profile_write(p, f), 0);
	fclose(f);
	return text;
}

/* Records are the same when, and only when, all that they hold is. */
static void same(const struct profile *a, const struct profile *b)
{
	size_t bytes[2];
	void *buf[2];

	ck_assert_int_eq(profile_encode(a, &buf[0], &bytes[0]), 0);
	ck_assert_int_eq(profile_encode(b, &buf[1], &bytes[1]), 0);
	ck_assert_uint_eq(bytes[0], bytes[1]);
	ck_assert_mem_eq(buf[0], buf[1], bytes[0]);
	free(buf[0]);
	free(buf[1]);
}

/* What a measurement leaves behind. */
static void measured(struct profile *p)
{
	p->made_wall_ns = INT64_C(1795248000000000000);
	snprintf(p->serial, sizeof(p->serial), "W \"1\" \\ 2");
	snprintf(p->firmware, sizeof(p->firmware), "0001");
	for (int i = 0; i < PROFILE_PARTS; i++) {
		p->part[i].method = (enum profile_method)
			(i % PROFILE_METHODS);
		p->part[i].confidence_ppm = i % PROFILE_METHODS ?
			999999 - (uint32_t)i : 0;
	}
}

START_TEST(a_profile_is_read_back_from_its_file)
{
	struct profile *a = load(shipped[_i]), *b;
	char *text[2];

	measured(a);
	text[0] = text_of(a);
	b = parse(text[0]);
	same(a, b);
	text[1] = text_of(b);
	ck_assert_str_eq(text[0], text[1]);
	free(text[0]);
	free(text[1]);
	profile_free(a);
	profile_free(b);
}
END_TEST

START_TEST(a_record_is_read_back_with_its_progress)
{
	struct profile *a = load(shipped[_i]), *b, *c;
	size_t bytes;
	void *buf;

	measured(a);
	a->progress = strdup("half way");
	a->progress_bytes = strlen("half way");
	ck_assert_int_eq(profile_encode(a, &buf, &bytes), 0);
	ck_assert_int_eq(profile_decode(buf, bytes, &b), 0);
	same(a, b);
	ck_assert_mem_eq(b->progress, "half way", b->progress_bytes);
	ck_assert_str_eq(a->serial, b->serial);
	ck_assert_int_eq(b->part[PROFILE_SEEK].method, PROFILE_SCSI);
	ck_assert_int_eq(profile_copy(b, &c), 0);
	same(a, c);
	free(buf);
	profile_free(a);
	profile_free(b);
	profile_free(c);
}
END_TEST

START_TEST(a_specification_is_certain)
{
	struct profile *p = load("atlas-10k");

	ck_assert_int_eq(p->part[PROFILE_BOUNDARIES].method, PROFILE_GIVEN);
	ck_assert_uint_eq(p->part[PROFILE_SETTLE].confidence_ppm,
			  PROFILE_CERTAIN_PPM);
	ck_assert_uint_eq(p->sectors, 17938986);
	ck_assert_uint_eq(p->mech.period_ps, 5985037000);
	ck_assert_uint_eq(p->mech.head_switch_ns, 800000);
	ck_assert_uint_eq(p->write_overhead_ns, 345000);
	ck_assert(p->mech.zero_latency_read);
	ck_assert_uint_eq(geom_known_sectors(p->geom), p->sectors);
	profile_free(p);
}
END_TEST

/* Of a drive that has been measured in part. */
static const char part_known[] =
	"{ \"identity\": { \"model\": \"X\" },\n"
	"  \"measured\": { \"date\": \"2026-11-21T08:00:00Z\",\n"
	"    \"boundaries\": { \"method\": \"timing\", "
	"\"confidence\": 0.5 } },\n"
	"  \"geometry\": { \"patterns\": [\n"
	"    { \"cylinder_step\": 1, \"angle_step\": \"1/3\", \"sweeps\": [\n"
	"      { \"tracks\": 2, \"sectors\": 100, \"surface_step\": 1,\n"
	"        \"angle_step\": 0.1 } ] },\n"
	"    { \"sweeps\": [ { \"tracks\": 5, \"sectors\": 64, "
	"\"cylinder_step\": 1, \"known\": false } ] } ],\n"
	"  \"runs\": [ { \"tracks\": 9, \"skip\": 1 },\n"
	"    { \"pattern\": 1, \"tracks\": 5, \"cylinder\": 7 } ],\n"
	"  \"odd_tracks\": [[2, -3]], \"slips\": [[2, 50, 3]] } }";

START_TEST(what_was_not_measured_is_zero)
{
	struct profile *p = parse(part_known);
	struct geom_track t;
	struct spec *spec = NULL;

	ck_assert_uint_eq(p->sectors, 9 * 100 - 3 + 5 * 64);
	ck_assert_uint_eq(geom_known_sectors(p->geom), 9 * 100 - 3);
	ck_assert_uint_eq(p->mech.period_ps, 0);
	ck_assert_uint_eq(p->mech.seek_n, 0);
	ck_assert_int_eq(p->part[PROFILE_PERIOD].method, PROFILE_NONE);
	ck_assert_uint_eq(p->part[PROFILE_BOUNDARIES].confidence_ppm, 500000);
	ck_assert_int_eq(p->made_wall_ns, 1795248000000000000);
	geom_track_at(p->geom, 2, &t);
	ck_assert_uint_eq(t.sectors, 97);
	ck_assert_uint_eq(t.surface, 1);
	geom_track_at(p->geom, 9, &t);
	ck_assert(!t.known);
	profile_free(p);
	/* Too little to build a drive from. */
	ck_assert_int_eq(spec_parse(part_known, "t", &spec), -EINVAL);
	ck_assert_str_eq(last_line, "t: revolution_ms: missing or too small");
}
END_TEST

/* A profile that is complete makes an emulated drive with the same tracks. */
START_TEST(a_profile_makes_a_drive_with_the_same_tracks)
{
	struct profile *p = load("hp-c2247a");
	char *text = text_of(p);
	struct spec *spec = NULL;
	struct geom *geom;
	void *buf[2];
	size_t bytes[2];

	ck_assert_msg(spec_parse(text, "t", &spec) == 0, "%s", last_line);
	ck_assert_int_eq(spec_geom(spec, &geom), 0);
	ck_assert_int_eq(geom_encode(geom, &buf[0], &bytes[0]), 0);
	ck_assert_int_eq(geom_encode(p->geom, &buf[1], &bytes[1]), 0);
	ck_assert_uint_eq(bytes[0], bytes[1]);
	ck_assert_mem_eq(buf[0], buf[1], bytes[0]);
	free(buf[0]);
	free(buf[1]);
	free(text);
	geom_free(geom);
	spec_free(spec);
	profile_free(p);
}
END_TEST

#define GEOM(patterns, runs, rest) \
	"{ \"measured\": {}, \"geometry\": { \"patterns\": [" patterns \
	"], \"runs\": [" runs "]" rest " } }"
#define SWEEP "{ \"sweeps\": [ { \"sectors\": 10 } ] }"

static const struct {
	const char *text, *says;
} bad_profiles[] = {
	{ "{ \"measured\": {}\n \"rpm\": 1 }", "t:2:" },
	{ "{ \"measured\": {} }", "surfaces: missing" },
	{ "{ \"measured\": [], " "\"geometry\": {} }", "no tracks" },
	{ GEOM("", "", ""), "geometry: no tracks" },
	{ GEOM("{}", "{ \"tracks\": 1 }", ""), "a pattern without parts" },
	{ GEOM("{ \"sweeps\": [ {} ] }", "", ""), "sectors: missing" },
	{ GEOM("{ \"sweeps\": [ 7 ] }", "", ""), "patterns[0]" },
	{ GEOM("{ \"sweep\": [] }", "", ""),
	  "geometry.patterns[0].sweep: unknown key" },
	{ GEOM(SWEEP, "{ \"pattern\": 1, \"tracks\": 1 }", ""),
	  "a run without a pattern" },
	{ GEOM(SWEEP, "{ \"tracks\": -1 }", ""),
	  "geometry.runs[0].tracks: -1 is not between" },
	{ GEOM(SWEEP, "{ \"tracks\": 1, \"cylinder\": -1 }", ""),
	  "a cylinder or surface out of range" },
	{ GEOM(SWEEP, "{ \"tracks\": 1 }", ", \"odd_tracks\": [[7, 1]]"),
	  "odd tracks out of order" },
	{ GEOM(SWEEP, "{ \"tracks\": 1 }", ", \"slips\": [[0, 1]]"),
	  "slips: not a whole number" },
	{ GEOM(SWEEP, "{ \"tracks\": 1 }", ", \"slips\": 3"),
	  "slips: not an array" },
	{ GEOM(SWEEP, "{ \"tracks\": 1 }", ", \"zones\": []"),
	  "zones: unknown key" },
	{ "{ \"measured\": {}, \"lbns\": 11, \"geometry\": { \"patterns\": ["
	  SWEEP "], \"runs\": [{ \"tracks\": 1 }] } }",
	  "lbns: the geometry has 10" },
	{ "{ \"measured\": { \"date\": \"today\" }, \"geometry\": { "
	  "\"patterns\": [" SWEEP "], \"runs\": [{ \"tracks\": 1 }] } }",
	  "date: not like" },
	{ "{ \"measured\": { \"seek\": { \"method\": \"guess\" } }, "
	  "\"geometry\": { \"patterns\": [" SWEEP
	  "], \"runs\": [{ \"tracks\": 1 }] } }", "method: not one of" },
	{ "{ \"measured\": {}, \"identity\": { \"model\": \"\\u00e9\" }, "
	  "\"geometry\": { \"patterns\": [" SWEEP
	  "], \"runs\": [{ \"tracks\": 1 }] } }", "not plain text" },
};
#define BAD_PROFILES ((int)(sizeof(bad_profiles) / sizeof(*bad_profiles)))

START_TEST(a_bad_profile_is_refused_with_its_reason)
{
	struct profile *p = NULL;

	ck_assert_int_eq(profile_parse(bad_profiles[_i].text, "t", &p),
			 -EINVAL);
	ck_assert_msg(strstr(last_line, bad_profiles[_i].says) != NULL,
		      "\"%s\" does not say \"%s\"", last_line,
		      bad_profiles[_i].says);
	ck_assert_ptr_null(p);
}
END_TEST

/* Every byte of a record in turn, with the checksum right and wrong. */
START_TEST(no_record_is_trusted)
{
	struct profile *a = parse(part_known), *b;
	struct geom_track t;
	uint8_t *buf;
	size_t bytes;
	void *rec;

	ck_assert_int_eq(profile_encode(a, &rec, &bytes), 0);
	buf = rec;
	for (size_t at = 0; at < bytes; at++) {
		for (unsigned flip = 1; flip < 256; flip *= 2) {
			le64 sum = le64_put(0);

			buf[at] ^= (uint8_t)flip;
			ck_assert_int_ne(profile_decode(buf, bytes, &b), 0);
			memcpy(buf + CSUM_AT, &sum, sizeof(sum));
			sum = le64_put(csum(buf, bytes));
			memcpy(buf + CSUM_AT, &sum, sizeof(sum));
			if (!profile_decode(buf, bytes, &b)) {
				geom_track_of(b->geom, b->sectors - 1, &t);
				ck_assert_uint_eq(t.first + t.sectors,
						  b->sectors);
				profile_free(b);
			}
			buf[at] ^= (uint8_t)flip;
			sum = le64_put(0);
			memcpy(buf + CSUM_AT, &sum, sizeof(sum));
			sum = le64_put(csum(buf, bytes));
			memcpy(buf + CSUM_AT, &sum, sizeof(sum));
		}
	}
	for (size_t n = 0; n < bytes; n += 7)
		ck_assert_int_ne(profile_decode(buf, n, &b), 0);
	free(rec);
	profile_free(a);
}
END_TEST

/* Tracks with something odd about them: one of so many has slipped sectors, is
 * left out as a whole, or makes up for another; 0: none. */
struct defects {
	unsigned slips, gone, spares;
};

static const struct defects large_defects[] = {
	{ .slips = 200, .gone = 2000 },
	{ .gone = 200 },
	{ .slips = 400, .spares = 400 },
	{ .slips = 600, .gone = 600, .spares = 600 },
};

/* Chance; whether it is one of `every`. */
static bool one_of(uint64_t *seed, unsigned every)
{
	*seed = *seed * 6364136223846793005u + 1;
	return every && !((*seed >> 33) % every);
}

/* The tracks [from, to) of a sweep. */
static void large_part(struct geom_build *b, struct geom_sweep s,
		       uint32_t from, uint32_t to)
{
	s.count = to - from;
	s.cylinder += (int64_t)from * s.cylinder_step;
	s.base += from * s.base_step;
	if (s.count)
		geom_build_sweep(b, &s);
}

/* A sweep of tracks, some of them odd. */
static void large_sweep(struct geom_build *b, const struct geom_sweep *s,
			const struct defects *d, uint64_t *seed)
{
	uint32_t i, from = 0;
	uint64_t track;

	for (i = 0; i < s->count; i++) {
		track = geom_build_tracks(b) + i - from;
		if (one_of(seed, d->gone)) {
			large_part(b, *s, from, i);
			from = i + 1;
		} else if (one_of(seed, d->slips)) {
			geom_build_odd(b, track, -8);
			geom_build_slip(b, &(struct geom_slip){
				track, (uint32_t)(*seed >> 40) %
				(s->around / 16) * 8, 8 });
		} else if (one_of(seed, d->spares)) {
			geom_build_odd(b, track, 8);
		}
	}
	large_part(b, *s, from, i);
}

/*
 * 20 TB: 20 heads in serpentine groups of 140 tracks, 15 zones, every head its
 * own track size.
 */
static struct geom *large_drive(const struct defects *d)
{
	struct geom_build *b = geom_build_new(8333333, 0);
	uint64_t want = UINT64_C(20000000000000) / 512, seed = 7;
	struct geom *geom;

	for (uint32_t c = 0; geom_build_sectors(b) < want; c += 140) {
		for (int32_t h = 0; h < 20; h++) {
			uint32_t around = 8 * (uint32_t)(650 - h * 3 -
				(int)(c / 35000) * 22);
			struct geom_sweep s = {
				.count = 140, .sectors = around - 64,
				.around = around, .surface = h,
				.cylinder = c + (h % 2 ? 139 : 0),
				.cylinder_step = h % 2 ? -1 : 1,
				.base = (angle)((c / 140 * 20 +
					(uint32_t)h) * 140 * 268435456u),
				.base_step = 268435456u,
				.known = true,
			};

			large_sweep(b, &s, d, &seed);
		}
	}
	ck_assert_int_eq(geom_build_finish(b, &geom), 0);
	geom_build_free(b);
	return geom;
}

START_TEST(large_drives_have_small_records)
{
	const struct defects *d = &large_defects[_i];
	struct geom *geom = large_drive(d);
	struct profile *p = profile_from_geom(geom, PROFILE_TIMING), *q;
	size_t bytes;
	void *buf;

	ck_assert_uint_gt(geom_tracks(geom), 8000000);
	ck_assert_uint_gt(d->gone ? geom->runs_n : geom->odds_n,
			  geom_tracks(geom) / 2200);
	ck_assert_int_eq(profile_encode(p, &buf, &bytes), 0);
	ck_assert_msg(bytes < 1000000, "%zu bytes", bytes);
	ck_assert_int_eq(profile_decode(buf, bytes, &q), 0);
	same(p, q);
	free(buf);
	profile_free(p);
	profile_free(q);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("profile");
	TCase *t = tcase_create("profile");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, a_profile_is_read_back_from_its_file, 0,
			    SHIPPED);
	tcase_add_loop_test(t, a_record_is_read_back_with_its_progress, 0,
			    SHIPPED);
	tcase_add_test(t, a_specification_is_certain);
	tcase_add_test(t, what_was_not_measured_is_zero);
	tcase_add_test(t, a_profile_makes_a_drive_with_the_same_tracks);
	tcase_add_loop_test(t, a_bad_profile_is_refused_with_its_reason,
			    0, BAD_PROFILES);
	tcase_add_test(t, no_record_is_trusted);
	tcase_add_loop_test(t, large_drives_have_small_records, 0,
			    sizeof(large_defects) / sizeof(large_defects[0]));
	suite_add_tcase(s, t);
	return test_run(s);
}

/*
 * test_drive.c - drives: specifications, their geometry, and whether the
 * simulated ones spend their time as published ones do.
 *
 * Published: breakdown of head usage under random requests (Lumb et al.,
 * "Towards Higher Disk Head Utilization", OSDI 2000, figures 2 and 5), and the
 * gain of track-aligned reads (Schindler et al., "Track-aligned Extents", FAST
 * 2002, 5.2).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/msg.h"
#include "diskmodel/spec.h"
#include "sim/drive.h"
#include "sim/emul.h"
#include "sim/sim.h"
#include "tests/rig/test.h"

static const char *const shipped[] = { "atlas-10k", "cheetah-9lp",
				       "ultrastar-18es", "hp-c2247a", "wd800",
				       "modern" };
#define SHIPPED ((int)(sizeof(shipped) / sizeof(*shipped)))

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

static struct spec *load(const char *name)
{
	const char *top = getenv("top_srcdir");
	struct spec *spec = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/drives/%s.json", top ? top : ".",
		 name);
	ck_assert_msg(spec_read(path, &spec) == 0, "%s", last_line);
	return spec;
}

/* ---- specifications ---- */

#define SMALL(zone) \
	"{ \"surfaces\": 2, \"rpm\": 7200, \"seek\": [[1, 1], [100, 5]],\n" \
	"  \"zones\": [ { " zone " } ] }"
#define ZONE "\"cylinders\": [0, 9], \"sectors_per_track\": 100"

static const struct {
	const char *text, *says;
} bad_specs[] = {
	{ "{ \"surfaces\": 2,\n \"rpm\" 7200 }", "t:2:" },
	{ "[]", "not an object" },
	{ "{ }", "surfaces: missing" },
	{ "{ \"surfaces\": 2, \"surface\": 2 }", "surface: unknown key" },
	{ "{ \"surfaces\": 0 }", "surfaces: 0 is not between 1" },
	{ "{ \"surfaces\": 2 }", "revolution_ms: missing" },
	{ "{ \"surfaces\": 2, \"rpm\": 7200 }", "seek: missing" },
	{ "{ \"surfaces\": 2, \"rpm\": 7200, \"seek\": [[2, 1], [1, 2]] }",
	  "seek: cylinders not ascending" },
	{ "{ \"surfaces\": 2, \"rpm\": 7200, \"seek\": [[1, 1]] }",
	  "zones: missing" },
	{ "{ \"surfaces\": 2, \"order\": \"x\", \"rpm\": 7200 }",
	  "order: not one of cylinder" },
	{ "{ \"surfaces\": 2, \"physical_bytes\": 520 }", "physical_bytes" },
	{ SMALL(""), "zones[0].cylinders: missing" },
	{ SMALL("\"cylinders\": [9, 0]"), "zones[0].cylinders" },
	{ SMALL("\"cylinders\": [0, 9], \"sectors_per_track\": [1, 2, 3]"),
	  "3 sizes for 2 surfaces" },
	{ SMALL(ZONE ", \"track_skew\": \"5/4\""), "track_skew: not a" },
	{ SMALL(ZONE ", \"track_skew\": 1.5"), "track_skew: 1.5 is not" },
	{ SMALL(ZONE ", \"slips\": [3, 3]"), "slips: not ascending" },
	{ SMALL(ZONE ", \"slips\": [2000]"), "slips: 2000 is not" },
	{ SMALL(ZONE ", \"spares\": { \"zones\": 1 }"), "zones: unknown key" },
};
#define BAD_SPECS ((int)(sizeof(bad_specs) / sizeof(*bad_specs)))

START_TEST(a_bad_specification_is_refused_with_its_reason)
{
	struct spec *spec = NULL;

	ck_assert_int_eq(spec_parse(bad_specs[_i].text, "t", &spec), -EINVAL);
	ck_assert_msg(strstr(last_line, bad_specs[_i].says) != NULL,
		      "\"%s\" does not say \"%s\"", last_line,
		      bad_specs[_i].says);
	ck_assert_ptr_null(spec);
}
END_TEST

START_TEST(a_missing_specification_is_named)
{
	struct spec *spec = NULL;

	ck_assert_int_eq(spec_read("/nowhere/x.json", &spec), -ENOENT);
	ck_assert_ptr_nonnull(strstr(last_line, "/nowhere/x.json"));
}
END_TEST

/* More capacity than the zones have. */
START_TEST(too_many_lbns_are_refused)
{
	struct spec *spec;
	struct geom *geom;

	ck_assert_int_eq(spec_parse(
		"{ \"surfaces\": 2, \"rpm\": 7200, \"seek\": [[1, 1]], "
		"\"lbns\": 2001, \"zones\": [ { " ZONE " } ] }", "t", &spec),
		0);
	ck_assert_int_eq(spec_geom(spec, &geom), -EINVAL);
	ck_assert_ptr_nonnull(strstr(last_line, "lbns: more than the 2000"));
	spec_free(spec);
}
END_TEST

/* What is written is read back the same: it is written the same again. */
START_TEST(a_specification_is_written_as_it_was_read)
{
	struct spec *a = load(shipped[_i]), *b;
	char *text[2];
	size_t bytes;
	FILE *f;

	f = open_memstream(&text[0], &bytes);
	ck_assert_int_eq(spec_write(a, f), 0);
	fclose(f);
	ck_assert_msg(spec_parse(text[0], "again", &b) == 0, "%s", last_line);
	f = open_memstream(&text[1], &bytes);
	ck_assert_int_eq(spec_write(b, f), 0);
	fclose(f);
	ck_assert_str_eq(text[0], text[1]);
	for (size_t i = 0; i < a->zones_n; i++) {
		ck_assert_uint_eq(a->zones[i].track_skew,
				  b->zones[i].track_skew);
		ck_assert_uint_eq(a->zones[i].cylinder_skew,
				  b->zones[i].cylinder_skew);
	}
	free(text[0]);
	free(text[1]);
	spec_free(a);
	spec_free(b);
}
END_TEST

/* ---- geometry ---- */

static struct geom *geom_of(const char *text)
{
	struct spec *spec;
	struct geom *geom;

	ck_assert_msg(spec_parse(text, "t", &spec) == 0, "%s", last_line);
	ck_assert_msg(spec_geom(spec, &geom) == 0, "%s", last_line);
	spec_free(spec);
	return geom;
}

static void is_track(const struct geom *g, uint64_t index, uint64_t first,
		     uint32_t sectors, uint32_t cylinder, uint32_t surface)
{
	struct geom_track t;

	geom_track_at(g, index, &t);
	ck_assert_uint_eq(t.first, first);
	ck_assert_uint_eq(t.sectors, sectors);
	ck_assert_uint_eq(t.cylinder, cylinder);
	ck_assert_uint_eq(t.surface, surface);
	ck_assert(t.known);
}

#define HEAD "{ \"surfaces\": 2, \"rpm\": 7200, \"seek\": [[1, 1]], "

START_TEST(cylinder_order_has_the_surfaces_in_turn)
{
	struct geom *g = geom_of(HEAD "\"zones\": [ { " ZONE
		", \"track_skew\": 0.25, \"cylinder_skew\": 0.5 } ] }");
	struct geom_track t;

	ck_assert_uint_eq(geom_tracks(g), 20);
	is_track(g, 0, 0, 100, 0, 0);
	is_track(g, 1, 100, 100, 0, 1);
	is_track(g, 2, 200, 100, 1, 0);
	geom_track_at(g, 1, &t);
	ck_assert_uint_eq(t.start, 1u << 30);
	geom_track_at(g, 2, &t);
	ck_assert_uint_eq(t.start, 3u << 30);
	geom_track_at(g, 3, &t);
	ck_assert_uint_eq(t.start, 0);
	geom_free(g);
}
END_TEST

START_TEST(serpentines_turn_at_their_groups)
{
	struct geom *g = geom_of(HEAD "\"order\": \"cylinder-serpentine\", "
		"\"zones\": [ { " ZONE " } ] }");

	is_track(g, 1, 100, 100, 0, 1);
	is_track(g, 2, 200, 100, 1, 1);
	is_track(g, 3, 300, 100, 1, 0);
	is_track(g, 4, 400, 100, 2, 0);
	geom_free(g);
	g = geom_of(HEAD "\"order\": \"serpentine\", \"group_cylinders\": 4, "
		    "\"zones\": [ { \"cylinders\": [0, 9], "
		    "\"sectors_per_track\": [100, 90] } ] }");
	ck_assert_uint_eq(geom_tracks(g), 20);
	is_track(g, 0, 0, 100, 0, 0);
	is_track(g, 3, 300, 100, 3, 0);
	is_track(g, 4, 400, 90, 3, 1);
	is_track(g, 7, 670, 90, 0, 1);
	is_track(g, 8, 760, 100, 4, 0);
	is_track(g, 16, 1520, 100, 8, 0);
	is_track(g, 18, 1720, 90, 9, 1);
	is_track(g, 19, 1810, 90, 8, 1);
	geom_free(g);
}
END_TEST

START_TEST(slips_and_remaps_move_lbns)
{
	/* Track 1 has two slips, track 3 is slipped as a whole, 70 spares. */
	struct geom *g = geom_of(HEAD "\"zones\": [ { " ZONE
		", \"slips\": [100, 150], \"slipped_tracks\": [3], "
		"\"reserved\": 10, \"spares\": { \"zone\": 170 } } ], "
		"\"remaps\": [ { \"lbn\": 50, \"cylinder\": 9, "
		"\"surface\": 1, \"sector\": 99 } ] }");
	struct geom_place p;
	struct geom_track t;
	uint64_t first;
	uint32_t n;

	ck_assert_uint_eq(geom_sectors(g), 2000 - 170 - 10);
	is_track(g, 0, 0, 90, 0, 0);
	is_track(g, 1, 90, 98, 0, 1);
	is_track(g, 2, 188, 100, 1, 0);
	is_track(g, 3, 288, 100, 2, 0);
	geom_track_at(g, geom_tracks(g) - 1, &t);
	ck_assert_uint_eq(t.sectors, 32);
	geom_place_of(g, 0, &p);
	ck_assert_uint_eq(p.sector, 10);
	geom_place_of(g, 90, &p);
	ck_assert_uint_eq(p.sector, 1);
	geom_place_of(g, 90 + 48, &p);
	ck_assert_uint_eq(p.sector, 49);
	geom_place_of(g, 90 + 49, &p);
	ck_assert_uint_eq(p.sector, 51);
	geom_track_at(g, 1, &t);
	for (uint64_t lbn = 90; lbn < 188; lbn++) {
		geom_place_of(g, lbn, &p);
		ck_assert_uint_eq(geom_lbn_at(g, &t, p.start), lbn);
	}
	ck_assert(geom_remap_next(g, 0, &first, &n));
	ck_assert_uint_eq(first, 50);
	ck_assert_uint_eq(n, 1);
	geom_place_of(g, 50, &p);
	ck_assert_uint_eq(p.cylinder, 9);
	ck_assert_uint_eq(p.surface, 1);
	ck_assert_uint_eq(p.sector, 99);
	ck_assert(!geom_remap_next(g, 51, &first, &n));
	geom_free(g);
}
END_TEST

/* Spares of a cylinder take up its slips; those of a track its own. */
START_TEST(spares_take_up_slips)
{
	struct geom *g = geom_of(HEAD "\"zones\": [ { " ZONE
		", \"slips\": [5], \"spares\": { \"cylinder\": 3 } } ] }");

	is_track(g, 0, 0, 99, 0, 0);
	is_track(g, 1, 99, 98, 0, 1);
	is_track(g, 2, 197, 100, 1, 0);
	is_track(g, 3, 297, 97, 1, 1);
	geom_free(g);
	g = geom_of(HEAD "\"zones\": [ { " ZONE
		", \"slips\": [5], \"spares\": { \"track\": 3 } } ] }");
	is_track(g, 0, 0, 97, 0, 0);
	is_track(g, 1, 97, 97, 0, 1);
	geom_free(g);
}
END_TEST

/* Sectors of 4096 bytes: eight LBNs each, everywhere. */
START_TEST(large_sectors_hold_eight_lbns)
{
	struct geom *g = geom_of(HEAD "\"physical_bytes\": 4096, "
		"\"zones\": [ { " ZONE ", \"slips\": [105] } ] }");
	struct geom_place p, q;

	is_track(g, 0, 0, 800, 0, 0);
	is_track(g, 1, 800, 792, 0, 1);
	geom_place_of(g, 800 + 39, &p);
	geom_place_of(g, 800 + 40, &q);
	ck_assert_uint_eq(p.sector, 39);
	ck_assert_uint_eq(q.sector, 48);
	geom_free(g);
}
END_TEST

/* Every track of a drive: in order, and found again from both ends. */
START_TEST(every_track_is_found_from_both_ends)
{
	struct spec *spec = load(shipped[_i]);
	struct geom *g, *h;
	struct geom_track t, u;
	struct geom_place p;
	uint64_t lbn = 0, step, sectors = 0;
	void *buf;
	size_t bytes;

	ck_assert_int_eq(spec_geom(spec, &g), 0);
	ck_assert_uint_eq(geom_sectors(g), spec->lbns);
	ck_assert_int_eq(geom_encode(g, &buf, &bytes), 0);
	ck_assert_uint_lt(bytes, 16384);
	ck_assert_int_eq(geom_decode(buf, bytes, &h), 0);
	step = geom_tracks(g) / 20000 + 1;
	for (uint64_t i = 0; i < geom_tracks(g); i += step) {
		geom_track_at(g, i, &t);
		ck_assert_uint_eq(t.index, i);
		ck_assert(step > 1 || t.first == lbn);
		geom_track_of(h, t.first + t.sectors - 1, &u);
		ck_assert(u.index == i && u.first == t.first &&
			  u.start == t.start && u.cylinder == t.cylinder);
		lbn = t.first + t.sectors;
		sectors += t.sectors;
		geom_place_of(g, t.first + t.sectors / 2, &p);
		ck_assert_uint_eq(geom_lbn_at(g, &t, p.start),
				  t.first + t.sectors / 2);
	}
	ck_assert(step > 1 || sectors == geom_sectors(g));
	free(buf);
	geom_free(g);
	geom_free(h);
	spec_free(spec);
}
END_TEST

/* 20 TB: ten million tracks in 40 zones, heads that differ, 2,000 slips. */
static char *large_text(void)
{
	char *text;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);

	fprintf(f, "{ \"surfaces\": 20, \"rpm\": 7200, \"seek\": [[1, 1]], "
		"\"physical_bytes\": 4096, \"order\": \"serpentine\", "
		"\"group_cylinders\": 315, \"zones\": [");
	for (unsigned z = 0; z < 40; z++) {
		fprintf(f, "%s{ \"cylinders\": [%u, %u], "
			"\"sectors_per_track\": [", z ? ", " : "", z * 13125,
			z * 13125 + 13124);
		for (unsigned s = 0; s < 20; s++)
			fprintf(f, "%s%u", s ? ", " : "",
				610 - 8 * z + s * 7 % 40);
		fprintf(f, "], \"track_skew\": 0.0625, \"cylinder_skew\": "
			"0.0625, \"group_skew\": 0.5625, \"slips\": [");
		for (unsigned i = 0; i < 50; i++)
			fprintf(f, "%s%u", i ? ", " : "", i * 1299827 + z);
		fprintf(f, "] }");
	}
	fprintf(f, "] }");
	fclose(f);
	return text;
}

START_TEST(a_drive_of_20_tb_is_made_in_seconds)
{
	char *text = large_text();
	clock_t begin = clock();
	struct geom *g = geom_of(text);
	double spent = (double)(clock() - begin) / CLOCKS_PER_SEC;
	struct geom_track t;
	void *buf;
	size_t bytes;

	/* Generous: instrumented builds are slow. */
	ck_assert_double_lt(spent, 5);
	ck_assert_uint_eq(geom_tracks(g), 20 * 525000);
	ck_assert_uint_gt(geom_sectors(g), UINT64_C(38000000000));
	ck_assert_int_eq(geom_encode(g, &buf, &bytes), 0);
	ck_assert_uint_lt(bytes, 200000);
	begin = clock();
	for (uint64_t i = 0; i < 200000; i++)
		geom_track_of(g, i * 190000, &t);
	spent = (double)(clock() - begin) / CLOCKS_PER_SEC;
	ck_assert_double_lt(spent, 5);
	free(buf);
	free(text);
	geom_free(g);
}
END_TEST

/* ---- service ---- */

START_TEST(angles_and_times)
{
	struct service_mech m = { .period_ps = 8000000000, .phase_ns = 1000,
				  .phase = 5 };

	ck_assert_uint_eq(service_angle(&m, 1000), 5);
	ck_assert_uint_eq(service_angle(&m, 1000 + 8000000), 5);
	ck_assert_uint_eq(service_angle(&m, 1000 + 2000000), 5 + (1u << 30));
	ck_assert_uint_eq(service_angle(&m, 0), 5 - 536870u);
	ck_assert_uint_eq(service_wait_ns(&m, 1000, 5 + (1u << 31)), 4000000);
	ck_assert_uint_eq(service_wait_ns(&m, 1000, 5), 0);
	/* Missed by a nanosecond of rounding: not missed. */
	ck_assert_uint_eq(service_wait_ns(&m, 1001, 5), 0);
	ck_assert_uint_eq(service_wait_ns(&m, 2000, 5), 7999000);
	/* A year on, to the nanosecond. */
	ck_assert_uint_eq(service_angle(&m, 1000 + UINT64_C(31536000) *
					1000000000 * 8), 5);
}
END_TEST

/* A whole track, met in the middle: one turn or one and a half. */
START_TEST(zero_latency_reads_a_track_in_one_turn)
{
	struct geom *g = geom_of(HEAD "\"zones\": [ { " ZONE " } ] }");
	struct service_seek seek = { 1, 1000000 };
	struct service_mech m = { .period_ps = 8000000000, .seek = &seek,
				  .seek_n = 1 };
	struct service_head head = { .at_ns = 4010000 };
	struct service_request req = { .sectors = 100 };
	struct service s;

	service_estimate(g, &m, &head, &req, &s);
	ck_assert_uint_eq(s.seek_ns + s.switch_ns, 0);
	ck_assert_uint_eq(s.rotation_ns, 3990000);
	ck_assert_uint_eq(s.transfer_ns, 8000000);
	m.zero_latency_read = true;
	service_estimate(g, &m, &head, &req, &s);
	ck_assert_uint_eq(s.transfer_ns, 8000000);
	/* Begins with the next sector of 80 us. */
	ck_assert_uint_le(s.rotation_ns, 80000);
	ck_assert_uint_eq(s.head.at_ns, head.at_ns + s.rotation_ns +
			  s.transfer_ns);
	/* A small request is not met inside. */
	req.sectors = 10;
	service_estimate(g, &m, &head, &req, &s);
	ck_assert_uint_eq(s.rotation_ns, 3990000);
	ck_assert_uint_eq(s.transfer_ns, 800000);
	geom_free(g);
}
END_TEST

/* Reading on over tracks costs the skew and no more. */
START_TEST(reading_on_costs_the_skew)
{
	struct geom *g = geom_of(HEAD "\"zones\": [ { " ZONE
		", \"track_skew\": 0.2, \"cylinder_skew\": 0.3 } ] }");
	struct service_seek seek = { 1, 2000000 };
	struct service_mech m = { .period_ps = 8000000000, .seek = &seek,
				  .seek_n = 1, .head_switch_ns = 1500000 };
	struct service_head head = { 0 };
	struct service_request req = { .sectors = 400 };
	struct service s, sum = { 0 };

	service_estimate(g, &m, &head, &req, &s);
	ck_assert_int_le(llabs((long long)s.head.at_ns -
			       (4 * 8000000 + 1600000 * 2 + 2400000)), 10);
	ck_assert_uint_eq(s.switch_ns, 3000000);
	ck_assert_uint_eq(s.seek_ns, 2000000);
	ck_assert_uint_eq(s.transfer_ns / 1000, 32000);
	/* The same in steps, stopped anywhere. */
	head = (struct service_head){ 0 };
	for (uint64_t lbn = 0, until = 700000; lbn < 400; until += 700000)
		lbn += service_stream(g, &m, &head, lbn,
				      (uint32_t)(400 - lbn), until, &sum);
	ck_assert_int_le(llabs((long long)head.at_ns -
			       (long long)s.head.at_ns), 2000);
	geom_free(g);
}
END_TEST

/* ---- the published breakdown ---- */

struct load {
	unsigned outstanding, requests;
	enum spec_policy policy;
	uint64_t first, lbns;	/* where */
	uint32_t sectors;
	bool whole_tracks;
	bool writes;		/* 2:1 */
};

static void op_random(const struct drive *d, const struct load *l,
		      struct drive_op *op, uint64_t *seed)
{
	const struct geom *g = drive_geom(d);
	uint64_t lbn = l->first + test_random(seed) % (l->lbns - 1000);
	struct geom_track track;

	*op = (struct drive_op){ .lbn = lbn, .sectors = l->sectors };
	if (l->writes && test_random(seed) % 3 == 0)
		op->op = DISK_WRITE;
	if (l->whole_tracks) {
		geom_track_of(g, lbn, &track);
		op->lbn = track.first;
		op->sectors = track.sectors;
	}
}

/* Keeps so many requests outstanding; the breakdown of it all. */
static void run_load(struct spec *spec, const struct load *l,
		     struct drive_times *times)
{
	struct drive_op ops[32], *done;
	struct drive *d;
	uint64_t now = 0, seed = 42;

	spec->policy = l->policy;
	ck_assert_int_eq(drive_new(spec, 1, &d), 0);
	for (unsigned i = 0; i < l->outstanding; i++) {
		op_random(d, l, &ops[i], &seed);
		drive_submit(d, &ops[i], 0);
	}
	for (unsigned n = l->outstanding; n < l->requests; n++) {
		while (!(done = drive_run(d, now)))
			now = drive_next_ns(d);
		op_random(d, l, done, &seed);
		drive_submit(d, done, now);
	}
	drive_get_times(d, now, times);
	drive_free(d);
}

/* Shares of seek (with switches), rotation and transfer in their sum. */
static void shares(const struct drive_times *t, double *share)
{
	double seek = (double)(t->seek_ns + t->switch_ns);
	double rotation = (double)t->rotation_ns;
	double transfer = (double)t->transfer_ns;
	double all = seek + rotation + transfer;

	share[0] = 100 * seek / all;
	share[1] = 100 * rotation / all;
	share[2] = 100 * transfer / all;
}

static const struct {
	const char *drive;
	unsigned outstanding;
	enum spec_policy policy;
	double share[3];	/* published; 0: not said */
} published[] = {
	{ "atlas-10k", 1, SPEC_FCFS, { 64, 34, 2 } },
	{ "atlas-10k", 20, SPEC_SSTF, { 0, 50, 0 } },
	{ "atlas-10k", 20, SPEC_SPTF, { 0, 22, 0 } },
	/* "about one third (27-36%)" */
	{ "cheetah-9lp", 1, SPEC_FCFS, { 0, 32, 0 } },
	{ "ultrastar-18es", 1, SPEC_FCFS, { 0, 35, 0 } },
};

START_TEST(times_are_those_published)
{
	struct spec *spec = load(published[_i].drive);
	struct load l = {
		.outstanding = published[_i].outstanding,
		.policy = published[_i].policy,
		.requests = 10000,
		.lbns = spec->lbns,
		.sectors = 8,
		.writes = true,
	};
	struct drive_times t;
	double share[3];

	run_load(spec, &l, &t);
	shares(&t, share);
	printf("%s, %u outstanding: seek %.1f, rotation %.1f, transfer %.1f\n",
	       published[_i].drive, l.outstanding, share[0], share[1],
	       share[2]);
	for (int i = 0; i < 3; i++) {
		if (published[_i].share[i] > 0)
			ck_assert_double_eq_tol(share[i],
						published[_i].share[i], 4);
	}
	spec_free(spec);
}
END_TEST

/* Whole tracks of the first zone, two outstanding: 32 % less. */
START_TEST(aligned_tracks_are_a_third_faster)
{
	struct spec *spec = load("atlas-10k");
	struct load l = {
		.outstanding = 2,
		.requests = 5000,
		.lbns = 2534800,
		.sectors = 334,
	};
	struct drive_times t;
	double head_ms[2];

	spec->cache_segments = 0;
	for (int i = 0; i < 2; i++) {
		l.whole_tracks = i == 1;
		run_load(spec, &l, &t);
		head_ms[i] = 1e-6 * (double)(t.seek_ns + t.switch_ns +
				t.rotation_ns + t.transfer_ns) / l.requests;
	}
	printf("whole tracks: %.2f ms unaligned, %.2f ms aligned, %.1f %%\n",
	       head_ms[0], head_ms[1], 100 - 100 * head_ms[1] / head_ms[0]);
	ck_assert_double_eq_tol(1 - head_ms[1] / head_ms[0], 0.32, 0.03);
	spec_free(spec);
}
END_TEST

/* ---- what a drive does besides ---- */

static uint64_t run_one(struct drive *d, struct drive_op *op, uint64_t now)
{
	const struct drive_op *done;

	drive_submit(d, op, now);
	while (!(done = drive_run(d, now)))
		now = drive_next_ns(d);
	ck_assert_ptr_eq(done, op);
	return op->done_ns;
}

/* The times add up to the time that passed, whatever was done. */
START_TEST(times_add_up)
{
	struct spec *spec = load(shipped[_i]);
	struct drive_times t;
	struct drive *d;
	uint64_t now = 0, seed = 7, sum;

	ck_assert_int_eq(drive_new(spec, 1, &d), 0);
	for (int i = 0; i < 1000; i++) {
		struct drive_op op = {
			.op = i % 5 == 4 ? DISK_WRITE : DISK_READ,
			.lbn = i % 3 ? test_random(&seed) % 1000 * 64 :
				       test_random(&seed) % (spec->lbns - 64),
			.sectors = 64,
		};

		op.lbn -= op.lbn % 8;
		now = run_one(d, &op, now) + test_random(&seed) % 20000000;
		while (drive_run(d, now))
			;
	}
	drive_get_times(d, now, &t);
	sum = t.seek_ns + t.switch_ns + t.rotation_ns + t.transfer_ns +
	      t.prefetch_ns + t.overhead_ns + t.idle_ns;
	ck_assert_uint_eq(sum, now);
	ck_assert_uint_gt(t.read_hits + t.prefetched_sectors, 0);
	drive_free(d);
	spec_free(spec);
}
END_TEST

/* Reading in order, one request at a time, runs at the speed of the medium:
 * the drive reads ahead while the host thinks. */
START_TEST(reading_in_order_runs_at_media_rate)
{
	struct spec *spec = load(shipped[_i]);
	struct drive *d;
	uint64_t now = 0, best = 0;
	struct service_head head = { 0 };
	struct service_request all = { .sectors = 20000 };
	struct service s;

	ck_assert_int_eq(drive_new(spec, 1, &d), 0);
	for (uint64_t lbn = 0; lbn < 20000; lbn += 80) {
		struct drive_op op = { .lbn = lbn, .sectors = 80 };

		now = run_one(d, &op, now);
		if (!best)
			best = now;
	}
	service_estimate(drive_geom(d), drive_mech(d), &head, &all, &s);
	best = s.head.at_ns - s.media_ns;
	ck_assert_double_lt((double)now, 1.1 * (double)best + 2e7);
	drive_free(d);
	spec_free(spec);
}
END_TEST

/* Neighbours that wait together, also late ones, take one turn. */
START_TEST(neighbours_take_one_turn)
{
	struct spec *spec = load("modern");
	struct drive_op op[3] = {
		{ .lbn = 4000000 }, { .sectors = 1000 }, { .sectors = 1000 },
	};
	struct geom_track t;
	struct drive_times times;
	struct drive *d;
	uint64_t now = 0;
	unsigned n = 0;

	ck_assert_int_eq(drive_new(spec, 1, &d), 0);
	geom_track_of(drive_geom(d), 4000000, &t);
	op[0].lbn = t.first;
	op[0].sectors = 1000;
	op[1].lbn = t.first + 1000;
	op[2].lbn = t.first + 2000;
	op[2].sectors = t.sectors - 2000;
	drive_submit(d, &op[0], 0);
	drive_submit(d, &op[1], 50000);
	while (drive_run(d, 300000))
		;
	/* On its way by now. */
	drive_submit(d, &op[2], 300000);
	while (n < 3) {
		now = drive_next_ns(d);
		while (drive_run(d, now))
			n++;
	}
	drive_get_times(d, now, &times);
	ck_assert_uint_eq(times.accesses, 1);
	ck_assert_uint_eq(times.joined, 2);
	ck_assert_uint_lt(times.rotation_ns + times.transfer_ns, 8500000);
	drive_free(d);
	spec_free(spec);
}
END_TEST

/* A volatile cache answers at once and is empty after a flush. */
START_TEST(a_cache_answers_at_once_until_flushed)
{
	struct spec *spec = load("wd800");
	struct drive_op write = { .op = DISK_WRITE, .sectors = 8 };
	struct drive_op flush = { .op = DISK_FLUSH };
	struct drive_op fua = { .op = DISK_WRITE, .sectors = 8, .fua = true,
				.lbn = 90000000 };
	struct drive_times t;
	struct drive *d;
	uint64_t now = 0, before, seed = 3;

	spec->write_cache_lbns = 4096;
	ck_assert_int_eq(drive_new(spec, 1, &d), 0);
	for (int i = 0; i < 20; i++) {
		write.lbn = test_random(&seed) % 100000000;
		before = now;
		now = run_one(d, &write, now);
		ck_assert_uint_lt(now - before, 1000000);
	}
	before = now;
	now = run_one(d, &flush, now);
	ck_assert_uint_gt(now - before, 50000000);
	drive_get_times(d, now, &t);
	ck_assert_uint_eq(t.accesses, 20);
	before = now;
	now = run_one(d, &fua, now);
	ck_assert_uint_gt(now - before, 1000000);
	before = now;
	now = run_one(d, &flush, now);
	ck_assert_uint_lt(now - before, 1000000);
	drive_free(d);
	spec_free(spec);
}
END_TEST

/* Part of a physical sector: read, and written a revolution later. */
START_TEST(part_of_a_physical_sector_costs_a_turn)
{
	struct spec *spec = load("modern");
	struct drive_op whole = { .op = DISK_WRITE, .lbn = 800, .sectors = 8 };
	struct drive_op part = { .op = DISK_WRITE, .lbn = 1601, .sectors = 8 };
	struct drive *d;
	uint64_t now;

	ck_assert_int_eq(drive_new(spec, 1, &d), 0);
	now = run_one(d, &whole, 0);
	ck_assert_uint_lt(now, 9000000);
	ck_assert_uint_gt(run_one(d, &part, now) - now, 8300000);
	drive_free(d);
	spec_free(spec);
}
END_TEST

static void job_done(struct emul_request *job)
{
	job->done = NULL;
}

/* Without waiting the emulator is the drive, one request after another. */
START_TEST(the_emulator_is_the_drive)
{
	struct spec *spec = load("atlas-10k");
	struct emul_options options = { .seed = 1, .fast = true };
	struct emul_stats st;
	struct emul *e;
	struct drive *d;
	uint64_t now = 0, seed = 5;

	ck_assert_int_eq(emul_start(spec, &options, &e), 0);
	ck_assert_int_eq(drive_new(spec, 1, &d), 0);
	for (int i = 0; i < 200; i++) {
		struct emul_request job = { .done = job_done };
		struct drive_op op = {
			.op = i % 3 == 2 ? DISK_WRITE : DISK_READ,
			.lbn = test_random(&seed) % (spec->lbns - 64),
			.sectors = 64,
		};

		job.timing = op;
		emul_submit(e, &job);
		ck_assert_ptr_null(job.done);
		now = run_one(d, &op, now);
		ck_assert_uint_eq(job.timing.done_ns, now);
	}
	emul_get_stats(e, &st);
	ck_assert_uint_eq(st.elapsed_ns, now);
	ck_assert_uint_eq(st.reads, 134);
	ck_assert_uint_eq(st.writes, 66);
	emul_reset_stats(e);
	emul_get_stats(e, &st);
	ck_assert_uint_eq(st.elapsed_ns + st.reads + st.times.seek_ns, 0);
	emul_stop(e);
	drive_free(d);
	spec_free(spec);
}
END_TEST

static void request_done(struct disk_request *req)
{
	++*(int *)req->owner;
}

/* The simulated disk with a head: data are right in whatever order it serves,
 * and the same seed takes the same time. */
START_TEST(the_same_seed_takes_the_same_time)
{
	struct spec *spec = load("modern");
	struct disk_request req[32];
	struct iovec iov[32];
	uint64_t took[2];

	for (int run = 0; run < 2; run++) {
		struct sim *sim = sim_new(spec, 0,
					  &(struct sim_options){ .seed = 9 });
		uint64_t seed = 11;
		int done = 0;

		for (int i = 0; i < 32; i++) {
			uint64_t at = test_random(&seed) % 1000000;

			iov[i].iov_base = aligned_alloc(4096, 8192);
			iov[i].iov_len = 8192;
			memset(iov[i].iov_base, i, 8192);
			req[i] = (struct disk_request){
				.op = DISK_WRITE, .sector = at * 5000 + 16,
				.sectors = 16, .iov = &iov[i], .iov_n = 1,
				.done = request_done, .owner = &done,
			};
			disk_submit(sim_disk(sim), &req[i]);
		}
		ck_assert_int_eq(sim_drain(sim), 32);
		for (int i = 0; i < 32; i++) {
			memset(iov[i].iov_base, 99, 8192);
			req[i].op = DISK_READ;
			disk_submit(sim_disk(sim), &req[i]);
		}
		ck_assert_int_eq(sim_drain(sim), 32);
		ck_assert_int_eq(done, 64);
		for (int i = 0; i < 32; i++) {
			ck_assert_int_eq(((uint8_t *)iov[i].iov_base)[0], i);
			ck_assert_int_eq(((uint8_t *)iov[i].iov_base)[8191],
					 i);
			free(iov[i].iov_base);
		}
		took[run] = sim_now_ns(sim);
		disk_close(sim_disk(sim));
	}
	ck_assert_uint_eq(took[0], took[1]);
	spec_free(spec);
}
END_TEST

static void add_specs(Suite *s)
{
	TCase *t = tcase_create("spec");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, a_bad_specification_is_refused_with_its_reason,
			    0, BAD_SPECS);
	tcase_add_test(t, a_missing_specification_is_named);
	tcase_add_test(t, too_many_lbns_are_refused);
	tcase_add_loop_test(t, a_specification_is_written_as_it_was_read,
			    0, SHIPPED);
	tcase_add_test(t, cylinder_order_has_the_surfaces_in_turn);
	tcase_add_test(t, serpentines_turn_at_their_groups);
	tcase_add_test(t, slips_and_remaps_move_lbns);
	tcase_add_test(t, spares_take_up_slips);
	tcase_add_test(t, large_sectors_hold_eight_lbns);
	tcase_add_loop_test(t, every_track_is_found_from_both_ends, 0, SHIPPED);
	tcase_add_test(t, a_drive_of_20_tb_is_made_in_seconds);
	suite_add_tcase(s, t);
}

static void add_timing(Suite *s)
{
	TCase *t = tcase_create("timing");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, angles_and_times);
	tcase_add_test(t, zero_latency_reads_a_track_in_one_turn);
	tcase_add_test(t, reading_on_costs_the_skew);
	tcase_add_loop_test(t, times_are_those_published, 0,
			    (int)(sizeof(published) / sizeof(*published)));
	tcase_add_test(t, aligned_tracks_are_a_third_faster);
	tcase_add_loop_test(t, times_add_up, 0, SHIPPED);
	tcase_add_loop_test(t, reading_in_order_runs_at_media_rate, 0, SHIPPED);
	tcase_add_test(t, neighbours_take_one_turn);
	tcase_add_test(t, a_cache_answers_at_once_until_flushed);
	tcase_add_test(t, part_of_a_physical_sector_costs_a_turn);
	tcase_add_test(t, the_emulator_is_the_drive);
	tcase_add_test(t, the_same_seed_takes_the_same_time);
	suite_add_tcase(s, t);
}

int main(void)
{
	Suite *s = suite_create("drive");

	add_specs(s);
	add_timing(s);
	return test_run(s);
}

/*
 * test_heads.c - how many surfaces, in which order, and in which cylinder a
 * track lies: right or not said.
 */
#include "diskmodel/geom_build.h"
#include "extract/surface/heads.h"
#include "sim/drive.h"
#include "sim/specgen.h"
#include "tests/rig/extract_rig.h"
#include "tests/rig/test.h"

#define ZONES 4u
#define PERIOD_NS 8333333u

/* Sizes in the order of tracks, so many tracks each, and so often in a zone. */
static struct geom *geom_of(const char *order, uint32_t group, unsigned times)
{
	struct geom_build *b = geom_build_new(PERIOD_NS, UINT32_MAX / 1000);
	struct geom *geom;
	int64_t at = 0;

	for (unsigned i = 0; i < ZONES * times; i++) {
		for (const char *c = order; *c; c++) {
			uint32_t size = (uint32_t)(*c - 'A') * 16 + 1000 -
					i / times * 200;
			struct geom_sweep s = {
				.count = group, .sectors = size,
				.around = size, .cylinder = at,
				.cylinder_step = 1, .known = true,
			};

			ck_assert_int_eq(geom_build_sweep(b, &s), 0);
			at += group;
		}
	}
	ck_assert_int_eq(geom_build_finish(b, &geom), 0);
	geom_build_free(b);
	return geom;
}

START_TEST(orders)
{
	static const struct {
		const char *order;
		uint32_t group, times, surfaces;
		bool back;
	} cases[] = {
		{ "ABCF", 1, 200, 4, false },
		{ "AB", 1, 200, 2, false },
		{ "CADDAC", 1, 200, 3, true },
		/* Surfaces alike, and a cylinder's spares. */
		{ "BBBBBA", 1, 200, 6, false },
		/* Two pairs alike, or two that are gone over in turns. */
		{ "AABB", 1, 200, 0, false },
		{ "AABBCC", 1, 200, 0, false },
		{ "A", 100, 40, 0, false },
		{ "AAB", 1, 200, 0, false },
		{ "AAAABBBB", 1, 100, 0, false },
	};
	struct geom *geom = geom_of(cases[_i].order, cases[_i].group,
				    cases[_i].times);
	struct geom_track a, b;
	struct heads heads;
	struct geom *out;

	ck_assert_int_eq(heads_measure(NULL, 0, 0, geom, &heads, &out), 0);
	ck_assert_msg(heads.surfaces == cases[_i].surfaces, "%s: %u",
		      cases[_i].order, heads.surfaces);
	ck_assert(heads.back == cases[_i].back);
	ck_assert(!heads.surfaces == !out);
	ck_assert(!heads.surfaces == !heads.confidence_ppm);
	for (uint64_t i = 0; out && i < geom_tracks(geom); i++) {
		geom_track_at(geom, i, &a);
		geom_track_at(out, i, &b);
		ck_assert_uint_eq(a.first, b.first);
		ck_assert_uint_eq(a.sectors, b.sectors);
		ck_assert_uint_lt(b.surface, heads.surfaces);
		/* Each cycle is one of cylinders. */
		ck_assert_uint_eq(b.cylinder / heads.group,
				  i / heads.group / heads.surfaces);
	}
	geom_free(out);
	geom_free(geom);
}
END_TEST

/* As measuring leaves it: each track a cylinder. */
static struct geom *flat(const struct geom *truth)
{
	struct geom_build *b = geom_build_new(PERIOD_NS, UINT32_MAX / 1000);
	struct geom_track t;
	struct geom *geom;

	for (uint64_t i = 0; i < geom_tracks(truth); i++) {
		struct geom_sweep s = { .count = 1, .known = true };

		geom_track_at(truth, i, &t);
		s.around = (uint32_t)((0x1p32 + t.per_sector / 2) /
				      t.per_sector);
		/* What is missing of a turn hardly shows. */
		if (t.sectors > s.around * 0.988)
			s.around = t.sectors;
		s.sectors = t.sectors;
		s.cylinder = (int64_t)i;
		s.base = t.start;
		ck_assert_int_eq(geom_build_sweep(b, &s), 0);
	}
	ck_assert_int_eq(geom_build_finish(b, &geom), 0);
	geom_build_free(b);
	return geom;
}

static uint32_t apart(const struct geom *geom, uint64_t a, uint64_t b)
{
	struct geom_track s, t;

	geom_track_at(geom, a, &s);
	geom_track_at(geom, b, &t);
	return s.cylinder < t.cylinder ? t.cylinder - s.cylinder :
					 s.cylinder - t.cylinder;
}

/* Distances are right to some per cent of the disk, and two groups: which way
 * those run does not show. */
static void judge(const struct geom *truth, const struct geom *out,
		  const struct spec *spec)
{
	uint64_t n = geom_tracks(truth), seed = 3, a, b;
	uint32_t most = apart(truth, 0, n - 1), is, seems;

	for (unsigned i = 0; i < 500; i++) {
		a = test_random(&seed) % n;
		b = test_random(&seed) % n;
		is = apart(truth, a, b);
		seems = apart(out, a, b);
		ck_assert_uint_le(seems < is ? is - seems : seems - is,
				  most / 8 + 2 * spec->group_cylinders);
	}
}

/* Never a wrong number, over drives of all orders. */
START_TEST(never_wrong)
{
	struct specgen options = {
		.bytes = UINT64_C(40000000000), .slipped = 0.0005, .cache = -1,
		.zero_latency = -1,
	};
	struct geom *truth, *geom, *out;
	unsigned right = 0, kinds = 0;
	struct heads heads;
	struct spec *spec;

	for (uint64_t i = 0; i < 6; i++) {
		options.seed = 101 + 6 * (uint64_t)_i + i;
		ck_assert_int_eq(specgen_make(&options, &spec), 0);
		ck_assert_int_eq(spec_geom(spec, &truth), 0);
		geom = flat(truth);
		ck_assert_int_eq(heads_measure(NULL, 0, 0, geom, &heads,
					       &out), 0);
		ck_assert_msg(!out || heads.surfaces == spec->surfaces,
			      "seed %u: %u for %u", (unsigned)options.seed,
			      heads.surfaces, spec->surfaces);
		if (out)
			judge(truth, out, spec);
		right += out != NULL;
		kinds |= 1u << spec->order;
		geom_free(out);
		geom_free(geom);
		geom_free(truth);
		spec_free(spec);
	}
	ck_assert_uint_gt(right, 0);
	ck_assert_uint_gt(kinds, 1);
}
END_TEST

/* Surfaces that are alike, and skews: along a surface, to the next one, and to
 * the next group; so many surfaces are told. */
START_TEST(skews)
{
	static const struct {
		uint32_t surfaces, group;
		double along, across, further;
		uint32_t told;
	} cases[] = {
		{ 4, 1, 0, 0.1, 0.17, 4 },
		{ 2, 1, 0, 0.1, 0.17, 2 },
		{ 4, 1, 0, 0.1, 0.1, 0 },
		/* Groups, or bands: seeks would tell. */
		{ 6, 140, 0.1, 0.17, 0.62, 0 },
		{ 2, 32, 0.1, 0.17, 0.62, 0 },
		{ 6, 140, 0.1, 0.17, 0.17, 0 },
		{ 6, 140, 0.1, 0.1, 0.17, 0 },
		{ 1, 140, 0.1, 0.17, 0.62, 0 },
	};
	struct geom_build *b = geom_build_new(PERIOD_NS, UINT32_MAX / 1000);
	uint32_t n = cases[_i].surfaces, group = cases[_i].group;
	struct geom *geom, *out;
	struct heads heads;
	double at = 0;

	for (uint32_t i = 0; i < 24000; i++) {
		struct geom_sweep s = {
			.count = 1, .sectors = 1000 - i / 6720 * 50,
			.around = 1000 - i / 6720 * 50, .cylinder = i,
			.base = (angle)(int64_t)(at * 0x1p32), .known = true,
		};

		ck_assert_int_eq(geom_build_sweep(b, &s), 0);
		at += (i + 1) % group ? cases[_i].along :
		      (i + 1) % (group * n) ? cases[_i].across :
					      cases[_i].further;
	}
	ck_assert_int_eq(geom_build_finish(b, &geom), 0);
	geom_build_free(b);
	ck_assert_int_eq(heads_measure(NULL, 0, 0, geom, &heads, &out), 0);
	ck_assert_uint_eq(heads.surfaces, cases[_i].told);
	ck_assert(!heads.surfaces == !out);
	for (uint32_t i = 0; out && i < 23520; i++) {
		struct geom_track t;

		geom_track_at(out, i, &t);
		ck_assert_uint_eq(t.surface, i / group % n);
		ck_assert_uint_eq(t.cylinder / group, i / group / n);
	}
	geom_free(out);
	geom_free(geom);
}
END_TEST

/* What neither sizes nor skews tell seeks do on some drives, and on none
 * wrongly. */
START_TEST(seeks)
{
	static const struct {
		uint64_t seed, bytes;
		bool told;
	} drives[] = {
		/* A group's end alone, sweeps without; one surface, of which
		 * each track is a cylinder; a disk full of cylinders, and a
		 * serpentine that nothing shows. */
		{ 217, UINT64_C(80000000000), true },
		{ 229, UINT64_C(80000000000), true },
		{ 281, UINT64_C(80000000000), false },
		{ 237, UINT64_C(80000000000), false },
		{ 220, UINT64_C(80000000000), true },
		/* Zones shorter than groups, six surfaces and ten; groups of
		 * 32, inwards, and by turns from the other side. */
		{ 31500, UINT64_C(5000000000), true },
		{ 31506, UINT64_C(5000000000), true },
		{ 31517, UINT64_C(5000000000), true },
		{ 31529, UINT64_C(40000000000), true },
	};
	struct specgen options = {
		.seed = drives[_i].seed, .bytes = drives[_i].bytes,
		.slipped = 0.0005, .cache = -1, .zero_latency = -1, .noise = 1,
	};
	struct extract_rig rig;
	struct geom *geom, *out;
	struct heads heads;
	struct spec *spec;

	ck_assert_int_eq(specgen_make(&options, &spec), 0);
	ck_assert_int_eq(extract_rig_init(&rig, spec, options.seed), 0);
	geom = flat(drive_geom(sim_drive(rig.sim)));
	ck_assert_int_eq(heads_measure(&rig.prober, spec->mech.period_ps,
				       UINT64_C(60000000000), geom, &heads,
				       &out), 0);
	ck_assert_uint_eq(heads.surfaces,
			  drives[_i].told ? spec->surfaces : 0);
	ck_assert(!heads.surfaces == !out);
	if (out)
		judge(drive_geom(sim_drive(rig.sim)), out, spec);
	geom_free(out);
	geom_free(geom);
	extract_rig_fini(&rig);
	spec_free(spec);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("heads");
	TCase *tc = tcase_create("order");

	tcase_add_loop_test(tc, orders, 0, 9);
	tcase_add_loop_test(tc, never_wrong, 0, 4);
	tcase_add_loop_test(tc, skews, 0, 8);
	tcase_add_loop_test(tc, seeks, 0, 9);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}

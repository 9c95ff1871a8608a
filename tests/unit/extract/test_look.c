/*
 * test_look.c - looks at boundaries that a walk foretells: what was seen is not
 * read again, and what was late is.
 */
#include <math.h>

#include "base/list.h"
#include "diskmodel/spec.h"
#include "extract/probe/reader.h"
#include "extract/track/look.h"
#include "sim/drive.h"
#include "sim/sim.h"
#include "sim/specgen.h"
#include "tests/rig/extract_rig.h"
#include "tests/rig/test.h"

#define TRACKS 40u		/* that are foretold */
#define LATE 0.3		/* revolutions */

/* A walk over tracks that are known, on a drive that is never late but when a
 * test says so. */
struct way {
	struct extract_rig rig;
	struct prober prober;	/* what the reader is given */
	struct spec *spec;
	struct reader reader;
	struct walk walk;
	uint64_t late_unit;	/* is late the next times that it is read */
	unsigned late_n;
};

static int way_access(struct prober *prober, struct probe_access *access,
		      unsigned n, unsigned depth)
{
	struct way *w = container_of(prober, struct way, prober);
	uint64_t last = (access[0].sector + access[0].sectors) /
			w->reader.unit_sectors - 1;
	int err = w->rig.prober.access(&w->rig.prober, access, n, depth);

	if (last == w->late_unit && w->late_n) {
		w->late_n--;
		access[0].complete_ns += (uint64_t)(LATE *
				w->reader.phase.period_ns);
	}
	return err;
}

/* The tracks ahead are as they are. */
static void foretell(struct way *w)
{
	const struct geom *geom = drive_geom(sim_drive(w->rig.sim));
	double off = 0, turn;
	struct geom_track t;

	for (unsigned i = 0; i < TRACKS; i++) {
		struct ahead *a = &w->walk.ahead[i];

		geom_track_at(geom, 100 + i, &t);
		*a = (struct ahead){
			.first = t.first / w->reader.unit_sectors,
			.size = t.sectors / w->reader.unit_sectors,
			.whole = t.sectors / w->reader.unit_sectors,
			.start = t.start * 0x1p-32,
			.span = (double)t.sectors * t.per_sector * 0x1p-32,
		};
		if (i)
			continue;
		/* The clock has an origin of its own. */
		ck_assert_int_eq(reader_read(&w->reader, a->first, &turn), 0);
		off = turn - a->start - a->span / a->size;
	}
	for (unsigned i = 0; i < TRACKS; i++)
		w->walk.ahead[i].start = phase_part(w->walk.ahead[i].start +
						    off);
}

static void way_init(struct way *w)
{
	struct specgen options = {
		.seed = 500, .surfaces = 2, .slipped = 0, .cache = 0,
		.zero_latency = 0,
	};

	*w = (struct way){ .prober.access = way_access };
	ck_assert_int_eq(specgen_make(&options, &w->spec), 0);
	ck_assert_int_eq(extract_rig_init(&w->rig, w->spec, 1), 0);
	w->rig.quiet = true;
	w->prober.env = w->rig.prober.env;
	w->prober.limits = w->rig.prober.limits;
	reader_init(&w->reader, &w->prober,
		    (double)w->spec->mech.period_ps / 1e3,
		    w->prober.limits->physical_bytes / SECTOR_BYTES, 0);
	w->walk.reader = &w->reader;
	foretell(w);
}

static void way_fini(struct way *w)
{
	extract_rig_fini(&w->rig);
	spec_free(w->spec);
}

/* A look at a boundary: how many reads did that take? */
static uint64_t look(struct way *w, unsigned at, bool right)
{
	struct look_landing l = { .ok = true };
	uint64_t reads = w->reader.reads;

	ck_assert_int_eq(look_at(&w->walk, at, &l), 0);
	ck_assert(l.ok == right);
	return w->reader.reads - reads;
}

/* A boundary that can be seen. */
static unsigned visible(const struct way *w)
{
	unsigned at = look_pick(&w->walk, LOOK_LOW, 1, TRACKS - 1);

	ck_assert_uint_ne(at, 0);
	return at;
}

/* Its far side has been seen twice: enough, until much else was read. */
START_TEST(seen_is_not_read_again)
{
	struct way w;
	unsigned at;
	double turn;

	way_init(&w);
	at = visible(&w);
	ck_assert_uint_eq(look(&w, at, true), 2);
	ck_assert_uint_eq(look(&w, at, true), 2);
	ck_assert_uint_eq(look(&w, at, true), 0);
	for (uint64_t i = 0; i < READER_MEMO; i++)
		ck_assert_int_eq(reader_read(&w.reader, 1000 + 40 * i, &turn),
				 0);
	ck_assert_uint_eq(look(&w, at, true), 2);
	way_fini(&w);
}
END_TEST

/* A side that was elsewhere is, and what was seen before that does not count:
 * the near one has to be seen once more, the far one twice. */
START_TEST(late_is_read_again)
{
	struct way w;
	unsigned at;
	double turn;

	way_init(&w);
	at = visible(&w);
	look(&w, at, true);
	look(&w, at, true);
	for (uint64_t side = 0; side < 2; side++) {
		ck_assert_uint_eq(look(&w, at, true), 0);
		w.late_unit = w.walk.ahead[at].first - 1 + side;
		/* A late one is only believed when it comes twice. */
		w.late_n = 2;
		ck_assert_int_eq(reader_read(&w.reader, w.late_unit, &turn),
				 0);
		ck_assert_uint_eq(w.late_n, 0);
		ck_assert_uint_ge(look(&w, at, true), 2 + side);
	}
	way_fini(&w);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("look");
	TCase *tc = tcase_create("look");

	tcase_add_test(tc, seen_is_not_read_again);
	tcase_add_test(tc, late_is_read_again);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}

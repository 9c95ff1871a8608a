/*
 * test_reader.c - what one reading rests on: the clock, the line of angles,
 * and what a cache may hold.
 */
#include <math.h>
#include <stdlib.h>

#include "base/list.h"
#include "extract/probe/calibrate.h"
#include "extract/probe/middle.h"
#include "extract/probe/prober_disk.h"
#include "extract/probe/spots.h"
#include "extract/track/line.h"
#include "extract/track/track.h"
#include "sim/drive.h"
#include "sim/sim.h"
#include "sim/specgen.h"
#include "tests/rig/test.h"

#define PERIOD_NS 8333333.0

static uint64_t seed = 1;

/* About a normal one. */
static double noise(double sigma)
{
	double sum = -6;

	for (unsigned i = 0; i < 12; i++)
		sum += (double)(test_random(&seed) >> 11) * 0x1p-53;
	return sigma * sum;
}

/* ---- The clock ---- */

/* Looks at a platter that turns a little slower than was said; by how much it
 * is still off. */
static double follow(struct phase *phase, double true_ns, unsigned looks,
		     double sigma, int stray)
{
	uint64_t at_ns = 1000000000, first_ns = at_ns;
	double turn, error;

	phase_init(phase, PERIOD_NS, at_ns);
	phase->locked_ns = at_ns;
	for (unsigned i = 0; i < looks; i++) {
		at_ns += UINT64_C(1000000000);
		turn = phase_part((double)(at_ns - first_ns) / true_ns);
		error = phase_wrap(phase_at(phase, at_ns) - turn);
		error += (int)i == stray ? 0.04 : noise(sigma);
		phase_correct(phase, at_ns, error, sigma);
	}
	turn = phase_part((double)(at_ns - first_ns) / true_ns);
	return fabs(phase_wrap(phase_at(phase, at_ns) - turn));
}

START_TEST(clock_learns_the_period)
{
	struct phase phase;
	double off = follow(&phase, PERIOD_NS * (1 + 2e-6), 30, 0.002, -1);

	ck_assert(off < 0.003);
	ck_assert(fabs(phase.period_ns / PERIOD_NS - 1 - 2e-6) < 4e-7);
}
END_TEST

START_TEST(clock_gets_over_what_was_wrong)
{
	struct phase phase;

	/* A period that is off by much more than was said. */
	ck_assert(follow(&phase, PERIOD_NS * (1 + 6e-5), 30, 0.002, -1) <
		  0.004);
	ck_assert(fabs(phase.period_ns / PERIOD_NS - 1 - 6e-5) < 2e-6);
	/* One look that was. */
	ck_assert(follow(&phase, PERIOD_NS, 12, 0.002, 11) < 0.003);
	ck_assert(fabs(phase.period_ns / PERIOD_NS - 1) < 2e-6);
}
END_TEST

/* ---- The line ---- */

START_TEST(line_knows_how_sure_it_is)
{
	struct line_place near = { 4, 1 }, far = { 40, 10 };
	double step, cross, before;
	struct line line;

	line_begin(&line, 0.003, 0.003, 0.003);
	before = line_sigma(&line, far);
	ck_assert(line_sigma(&line, near) < before);
	/* An error far ahead is nearly all the steps', little the start's. */
	ck_assert(line_share(&line, far, 0.003, far) > 0.99);
	ck_assert(line_share(&line, far, 0.003,
			     (struct line_place){ 0, 0 }) < 0.01);
	line_go(&line, near, 0.003, &step, &cross);
	ck_assert(step > 0 && cross > 0 && 3 * step + cross < 1);
	ck_assert(line_sigma(&line, far) < before);
	ck_assert(line_sigma(&line, (struct line_place){ 0, 0 }) < 0.0032);
}
END_TEST

/* ---- The cache ---- */

START_TEST(recent_holds_what_may_be_cached)
{
	struct recent r;

	recent_init(&r);
	r.depth = 2;
	r.ahead = 100;
	r.slack = 10;
	recent_add(&r, 1000, 1001, false);
	ck_assert(recent_has(&r, 1000));
	ck_assert(!recent_has(&r, 999));
	ck_assert(recent_streams(&r, 1050));
	ck_assert(!recent_streams(&r, 1102));
	/* Elsewhere at once: little was read ahead. */
	recent_add(&r, 5000, 5001, false);
	ck_assert(recent_has(&r, 1010));
	ck_assert(!recent_has(&r, 1011));
	/* On the way: all in between was. */
	recent_add(&r, 5080, 5081, false);
	ck_assert(recent_has(&r, 5040));
	/* With them, which makes one of two. */
	ck_assert(recent_has(&r, 1000));
	/* What was not used since two others were is forgotten. */
	recent_add(&r, 9000, 9001, false);
	ck_assert(!recent_has(&r, 1000));
	recent_add(&r, 5005, 5006, false);
	recent_add(&r, 20000, 20001, false);
	ck_assert(recent_has(&r, 5000));
	ck_assert(!recent_has(&r, 9000));
}
END_TEST

static void open_drive(uint64_t from, uint64_t bytes, int cache,
		       struct spec **spec, struct sim **sim,
		       struct prober **prober)
{
	struct specgen options = {
		.seed = from, .bytes = bytes, .slipped = 0, .cache = cache,
		.zero_latency = -1, .noise = 1,
	};
	struct sim_options o = { .seed = from };

	ck_assert_int_eq(specgen_make(&options, spec), 0);
	*sim = sim_new(*spec, 0, &o);
	ck_assert_ptr_nonnull(*sim);
	*prober = prober_disk_new(sim_env(*sim), sim_disk(*sim), false, NULL);
	ck_assert_ptr_nonnull(*prober);
}

#define READS 40u

/* How many are not where most are. */
static unsigned count_strays(const double turn[READS], double tolerance)
{
	unsigned least = READS;

	for (unsigned i = 0; i < READS; i++) {
		unsigned n = 0;

		for (unsigned k = 0; k < READS; k++)
			n += !(fabs(phase_wrap(turn[k] - turn[i])) <
			       tolerance);
		least = n < least ? n : least;
	}
	return least;
}

/* A sector of a cached drive, again and again: its angle each time. */
START_TEST(cache_is_not_believed)
{
	double turn[READS];
	struct prober *prober;
	struct reader reader;
	struct spec *spec;
	struct sim *sim;
	uint32_t unit;

	open_drive(400 + (uint64_t)_i, 0, 1, &spec, &sim, &prober);
	unit = prober->limits->physical_bytes / SECTOR_BYTES;
	reader_init(&reader, prober, (double)spec->mech.period_ps / 1e3, unit,
		    0);
	ck_assert_int_eq(calibrate_reader(&reader, 0), 0);
	ck_assert(reader.whole);
	ck_assert(reader.any_order == spec->mech.zero_latency_read);
	ck_assert_uint_gt(reader.hit_ns, 0);
	ck_assert_uint_ge(reader.recent.depth, spec->cache_segments);
	ck_assert_uint_ge(reader.recent.ahead * unit + 4 * unit,
			  spec->read_ahead_lbns / 2);
	reader.reads = 0;
	for (unsigned i = 0; i < READS; i++)
		ck_assert_int_eq(reader_read(&reader, reader.units / 3,
					     &turn[i]), 0);
	/* Those that were late. */
	ck_assert_uint_le(count_strays(turn, reader.tolerance), 5);
	/* Without the cache being filled for each: every few. */
	ck_assert_uint_lt(reader.reads, READS + 8 * reader.recent.depth);
	prober_disk_free(prober);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

/* Is a unit elsewhere than the one before it says, `n` units away? */
static bool strays_behind(struct reader *reader, uint64_t at, unsigned n,
			  double pitch)
{
	double before, turn;

	ck_assert_int_eq(reader_read(reader, at, &before), 0);
	ck_assert_int_eq(reader_read(reader, at + n, &turn), 0);
	before += n * pitch;
	return fabs(phase_wrap(turn - before)) > reader->tolerance;
}

/* What comes by before a drive that reads ahead has understood that it is
 * wanted is answered late, and always by as much: it has no angle. */
START_TEST(read_ahead_is_not_believed)
{
	unsigned strays = 0, tracks = READS * 3;
	double pitch;
	struct geom_track t;
	struct prober *prober;
	struct reader reader;
	struct spec *spec;
	struct sim *sim;
	uint64_t at;
	uint32_t unit;

	open_drive(930001 + (uint64_t)_i, 0, 1, &spec, &sim, &prober);
	unit = prober->limits->physical_bytes / SECTOR_BYTES;
	reader_init(&reader, prober, (double)spec->mech.period_ps / 1e3, unit,
		    0);
	ck_assert_int_eq(calibrate_reader(&reader, 0), 0);
	for (unsigned i = 0; i < tracks; i++) {
		geom_track_at(drive_geom(sim_drive(sim)), 50 + i, &t);
		pitch = (double)t.per_sector * unit * 0x1p-32;
		at = t.first / unit + 4;
		/* A read in thirty is late, and rarely both times. */
		strays += strays_behind(&reader, at, 1 + i % 4, pitch) &&
			  strays_behind(&reader, at + 32, 1 + i % 4, pitch);
	}
	ck_assert_uint_le(strays, tracks / 30);
	prober_disk_free(prober);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

#define LONGER 24u

/*
 * Where the interface is slower than the medium a read ends later the longer it
 * is: what begins before a unit, further and further, because a cache has the
 * rest, says the same all the same.  So it does of the first unit of a track
 * (1), though the interface caught up while the head got there.
 */
START_TEST(long_reads_are_not_late)
{
	double turn[LONGER], off[LONGER], first = 0, last = 0;
	struct geom_track t;
	uint64_t unit;
	struct prober *prober;
	struct reader reader;
	struct spec *spec;
	struct sim *sim;

	open_drive(_i ? 910188 : 21030, UINT64_C(80000000000), 1, &spec, &sim,
		   &prober);
	reader_init(&reader, prober, (double)spec->mech.period_ps / 1e3,
		    prober->limits->physical_bytes / SECTOR_BYTES, 0);
	ck_assert_int_eq(calibrate_reader(&reader, 0), 0);
	ck_assert(reader.whole && reader.late > 0);
	geom_track_of(drive_geom(sim_drive(sim)),
		      reader.units / 3 * reader.unit_sectors, &t);
	unit = (t.first + (_i ? 0 : t.sectors / 2)) / reader.unit_sectors;
	for (unsigned i = 0; i < LONGER; i++) {
		ck_assert_int_eq(reader_read(&reader, unit, &turn[i]), 0);
		off[i] = phase_wrap(turn[i] - turn[0]);
	}
	first = middle_of(off, LONGER / 3);
	last = middle_of(off + 2 * LONGER / 3, LONGER / 3);
	ck_assert(fabs(last - first) < 2 * reader.noise);
	prober_disk_free(prober);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

/* A prober of which one access is late. */
struct late_prober {
	struct prober prober, *of;
	uint64_t late_ns;	/* of the next access */
};

static int late_access(struct prober *prober, struct probe_access *access,
		       unsigned n, unsigned depth)
{
	struct late_prober *p = container_of(prober, struct late_prober,
					     prober);
	int err = p->of->access(p->of, access, n, depth);

	access[0].complete_ns += p->late_ns;
	p->late_ns = 0;
	return err;
}

/* What was seen elsewhere than before is read once more: a unit of the next
 * track that was late by nearly a turn looked like one of this track. */
START_TEST(late_is_not_elsewhere)
{
	struct late_prober late;
	struct prober *prober;
	struct reader reader;
	struct spec *spec;
	struct sim *sim;
	double turn, again;
	unsigned strays = 0;

	open_drive(500, 0, 0, &spec, &sim, &prober);
	late = (struct late_prober){ .prober = *prober, .of = prober };
	late.prober.access = late_access;
	reader_init(&reader, &late.prober, (double)spec->mech.period_ps / 1e3,
		    prober->limits->physical_bytes / SECTOR_BYTES, 0);
	for (uint64_t i = 0; i < READS; i++) {
		ck_assert_int_eq(reader_read(&reader, 1000 + 40 * i, &turn), 0);
		late.late_ns = spec->mech.period_ps / 1000 * (3 + i) / 50;
		ck_assert_int_eq(reader_read(&reader, 1000 + 40 * i, &again),
				 0);
		strays += fabs(phase_wrap(again - turn)) > reader.tolerance;
	}
	/* Where the drive's own noise was late as well. */
	ck_assert_uint_le(strays, 4);
	prober_disk_free(prober);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

#define SPOTS 60u

/* All that is wanted is read once; what is wanted again waits for others. */
START_TEST(spots_wait_for_others)
{
	struct spots spots = { .n = 0 };
	struct prober *prober;
	struct reader reader;
	struct spec *spec;
	struct sim *sim;
	uint64_t again = 0;
	size_t i;

	open_drive(500, 0, 0, &spec, &sim, &prober);
	reader_init(&reader, prober, (double)spec->mech.period_ps / 1e3,
		    prober->limits->physical_bytes / SECTOR_BYTES, 0);
	for (i = 0; i < SPOTS; i++) {
		ck_assert_int_eq(spots_add(&spots, 1000 + 50 * i, 0.01 * i, i),
				 0);
		spots_want(&spots, i);
	}
	for (unsigned n = 0; n <= SPOTS; n++) {
		ck_assert_int_eq(spots_read(&reader, &spots, &i), 0);
		ck_assert_uint_lt(i, SPOTS);
		ck_assert(!isnan(spots.v[i].turn));
		if (!n) {
			spots_want(&spots, i);
			again = i;
		} else if (i == again) {
			ck_assert_uint_ge(n, 8);
		}
	}
	for (i = 0; i < SPOTS; i++)
		ck_assert_uint_eq(spots.v[i].looks, 1 + (i == again));
	ck_assert_int_eq(spots_read(&reader, &spots, &i), 0);
	ck_assert_uint_eq(i, SPOTS);
	free(spots.v);
	prober_disk_free(prober);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

/* On large tracks a read-ahead gets far before the next read. */
START_TEST(large_tracks_are_read_whole)
{
	struct prober *prober;
	struct reader reader;
	struct spec *spec;
	struct sim *sim;
	uint32_t unit;

	open_drive(8007 + (uint64_t)_i, UINT64_C(80000000000), 1, &spec, &sim,
		   &prober);
	unit = prober->limits->physical_bytes / SECTOR_BYTES;
	reader_init(&reader, prober, (double)spec->mech.period_ps / 1e3, unit,
		    0);
	ck_assert_int_eq(calibrate_reader(&reader, 0), 0);
	ck_assert(reader.whole);
	prober_disk_free(prober);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

/* Where the next track begins too soon after the one before it for a drive that
 * takes what it reads in any order: the cache is not filled for each read. */
START_TEST(beginnings_are_read_again)
{
	struct geom_track t;
	struct prober *prober;
	struct reader reader;
	struct spec *spec;
	struct sim *sim;
	double turn;

	open_drive(31326, UINT64_C(80000000000), 1, &spec, &sim, &prober);
	reader_init(&reader, prober, (double)spec->mech.period_ps / 1e3, 1, 0);
	ck_assert_int_eq(calibrate_reader(&reader, 0), 0);
	ck_assert(reader.any_order);
	reader.reads = 0;
	for (uint64_t i = 0; i < 8; i++) {
		geom_track_at(drive_geom(sim_drive(sim)), 200 + 3 * i, &t);
		for (int k = 0; k < 4; k++)
			ck_assert_int_eq(reader_read(&reader, t.first, &turn),
					 0);
	}
	ck_assert_uint_lt(reader.reads, 4 * 8 * 3);
	prober_disk_free(prober);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

/* ---- The end of a track ---- */

#define TRACKS 12u

/* A track as it is; its start is read. */
static void track_of(struct reader *reader, const struct geom_track *is,
		     struct track *track)
{
	double turn;

	track->first = is->first / reader->unit_sectors;
	track->pitch = (double)is->per_sector * reader->unit_sectors *
		       0x1p-32;
	ck_assert_int_eq(reader_read(reader, track->first, &turn), 0);
	track->start = phase_part(turn - track->pitch);
}

/* Is the end of a track found, thought to be `off` units from there, and soon?
 * With another pitch it is seen as soon that it is another track: returns the
 * reads that took.  Counts what was *found. */
static uint64_t look_for_end(struct reader *reader, const struct geom_track *is,
			     int64_t off, unsigned *found)
{
	uint32_t size = is->sectors / reader->unit_sectors;
	struct track track;
	int err;

	track_of(reader, is, &track);
	reader->reads = 0;
	err = track_find(reader, &track, track.first + size - (uint64_t)off);
	ck_assert(err || track.size == size);
	*found += !err;
	/* One of the reads may have been late. */
	ck_assert_uint_lt(reader->reads, off ? 60 : 30);
	track_of(reader, is, &track);
	track.pitch *= 1.08;
	reader->reads = 0;
	ck_assert_int_ne(track_find(reader, &track, track.first +
				    (uint64_t)(size / 1.08)), 0);
	return reader->reads;
}

START_TEST(ends_are_found_soon)
{
	struct geom_track is;
	struct prober *prober;
	struct reader reader;
	const struct geom *geom;
	unsigned found = 0;
	uint64_t reads = 0;
	struct spec *spec;
	struct sim *sim;
	uint32_t unit;

	open_drive(8000 + (uint64_t)_i, UINT64_C(80000000000), 0, &spec, &sim,
		   &prober);
	geom = drive_geom(sim_drive(sim));
	unit = prober->limits->physical_bytes / SECTOR_BYTES;
	reader_init(&reader, prober, (double)spec->mech.period_ps / 1e3, unit,
		    0);
	ck_assert_int_eq(calibrate_reader(&reader, 0), 0);
	reader_sharpen(&reader, 1);
	for (uint64_t i = 0; i < TRACKS; i++) {
		geom_track_at(geom, 100 + 7 * i, &is);
		reads += look_for_end(&reader, &is, (int64_t)(i % 4) * 3,
				      &found);
	}
	/* Late reads may spoil some. */
	ck_assert_uint_ge(found, TRACKS * 3 / 4);
	ck_assert_uint_lt(reads, 12 * TRACKS);
	prober_disk_free(prober);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

/* A read that is late by most of a turn seems to be early by the rest: what all
 * say together is not between that and the others. */
START_TEST(late_is_never_early)
{
	double v[] = { 0, 0.016, -0.002, -0.005, -0.457, -0.002 };

	ck_assert_double_eq_tol(middle_low(v, 6, 0.04), -0.002, 0.003);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reader");
	TCase *tc = tcase_create("reader");

	tcase_add_test(tc, clock_learns_the_period);
	tcase_add_test(tc, clock_gets_over_what_was_wrong);
	tcase_add_test(tc, line_knows_how_sure_it_is);
	tcase_add_test(tc, recent_holds_what_may_be_cached);
	tcase_add_loop_test(tc, cache_is_not_believed, 0, 12);
	tcase_add_loop_test(tc, read_ahead_is_not_believed, 0, 24);
	tcase_add_loop_test(tc, long_reads_are_not_late, 0, 2);
	tcase_add_test(tc, late_is_not_elsewhere);
	tcase_add_test(tc, late_is_never_early);
	tcase_add_test(tc, spots_wait_for_others);
	tcase_add_loop_test(tc, large_tracks_are_read_whole, 0, 12);
	tcase_add_test(tc, beginnings_are_read_again);
	tcase_add_loop_test(tc, ends_are_found_soon, 0, 6);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}

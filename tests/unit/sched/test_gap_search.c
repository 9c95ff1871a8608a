/*
 * test_gap_search.c - wanted sectors by track, and the freeblock search against
 * trying everything.
 */
#include <stdio.h>
#include <stdlib.h>

#include "diskmodel/spec.h"
#include "sched/freeblock/gap_search.h"
#include "tests/rig/test.h"

/* Two zones, six surfaces, slips, spares, serpentine: 3,000 tracks. */
static const char small_drive[] =
	"{ \"surfaces\": 6, \"rpm\": 10000, \"order\": \"%s\", "
	"\"group_cylinders\": 20, \"head_switch_ms\": 0.8, "
	"\"write_settle_ms\": 0.4, "
	"\"zero_latency\": { \"read\": true, \"write\": true }, "
	"\"seek\": [[1, 1.2], [2, 1.1], [10, 1.5], [100, 2.5], [500, 5]], "
	"\"zones\": [ { \"cylinders\": [0, 249], \"sectors_per_track\": 120, "
	"\"track_skew\": 0.15, \"cylinder_skew\": 0.25, "
	"\"slips\": [777, 9000], \"spares\": { \"zone\": 10 } }, "
	"{ \"cylinders\": [250, 499], \"sectors_per_track\": 93, "
	"\"track_skew\": 0.15, \"cylinder_skew\": 0.25, \"slips\": [50] } ] }";

static struct spec *spec_of(const char *order)
{
	struct spec *spec;
	char text[1024];

	snprintf(text, sizeof(text), small_drive, order);
	ck_assert_int_eq(spec_parse(text, "test", &spec), 0);
	return spec;
}

static struct geom *geom_of(const struct spec *spec)
{
	struct geom *geom;

	ck_assert_int_eq(spec_geom(spec, &geom), 0);
	return geom;
}

/* ---- wanted ---- */

struct naive {
	uint8_t *wanted;	/* of each unit */
	uint64_t units;
	uint32_t unit;
};

static void naive_set(struct naive *naive, uint64_t sector, uint64_t n,
		      bool on)
{
	uint64_t i;

	for (i = sector / naive->unit; i < (sector + n) / naive->unit; i++)
		if (i < naive->units)
			naive->wanted[i] = on;
}

/* One assertion for all: libcheck writes to a pipe for each. */
static void is_same(const struct freeblock_set *w, const struct naive *naive)
{
	uint64_t at = 0, sum = 0, i = 0;
	bool same = true;
	struct range r;

	while (freeblock_set_next(w, at, &r)) {
		for (; i < r.first / naive->unit; i++)
			same = same && !naive->wanted[i];
		at = r.first + r.n;
		for (; i < at / naive->unit; i++)
			same = same && naive->wanted[i];
		sum += r.n;
	}
	for (; i < naive->units; i++)
		same = same && !naive->wanted[i];
	ck_assert(same);
	ck_assert_uint_eq(sum, freeblock_set_sectors(w));
}

/* What the summaries promise holds for every track. */
static void is_bounded(const struct freeblock_set *w, const struct geom *geom)
{
	struct geom_track t;
	struct freeblock_set_node node;
	uint64_t i, span, bits;
	uint32_t units;
	bool good = true;
	unsigned level;

	for (i = 0; i < geom_tracks(geom); i++) {
		geom_track_at(geom, i, &t);
		units = freeblock_set_on(w, &t);
		span = FREEBLOCK_SET_LEAF_TRACKS;
		for (level = 0; level < freeblock_set_levels(w); level++) {
			bool any =
				freeblock_set_node(w, level, i / span, &node);

			good = good && (any || !units) &&
			       (!any || (node.most >= units &&
					 t.cylinder >= node.geom.low &&
					 t.cylinder <= node.geom.high &&
					 t.sectors <= node.geom.around));
			span *= FREEBLOCK_SET_FANOUT;
		}
		bits = freeblock_set_tracks(w, i / FREEBLOCK_SET_LEAF_TRACKS);
		good = good &&
		       (bits >> i % FREEBLOCK_SET_LEAF_TRACKS & 1 || !units);
	}
	ck_assert(good);
}

static const uint32_t unit_sizes[] = { 1, 8, 64 };

START_TEST(a_set_holds_what_was_added)
{
	struct spec *spec = spec_of(_i == 1 ? "serpentine" : "cylinder");
	struct geom *geom = geom_of(spec);
	struct naive naive = { .unit = unit_sizes[_i] };
	uint64_t seed = 5, first, n;
	struct freeblock_set *w;

	naive.units = geom_sectors(geom) / naive.unit;
	naive.wanted = calloc(naive.units, 1);
	ck_assert_int_eq(freeblock_set_open(geom, naive.unit, &w), 0);
	for (int i = 0; i < 4000; i++) {
		bool on = test_random(&seed) % 2;

		first = test_random(&seed) % naive.units;
		n = test_random(&seed) % (i % 50 ? 40 : naive.units - first);
		if (n > naive.units - first)
			n = naive.units - first;
		first *= naive.unit;
		n *= naive.unit;
		naive_set(&naive, first, n, on);
		ck_assert_int_eq(on ? freeblock_set_add(w, first, n) :
				      freeblock_set_remove(w, first, n), 0);
		if (i % 400 == 0) {
			is_same(w, &naive);
			is_bounded(w, geom);
		}
	}
	is_same(w, &naive);
	ck_assert_int_eq(freeblock_set_add(w, 0, naive.units * naive.unit), 0);
	ck_assert_uint_eq(freeblock_set_sectors(w), naive.units * naive.unit);
	ck_assert_uint_lt(freeblock_set_bytes(w), 4096);
	ck_assert_int_eq(freeblock_set_remove(w, 0, naive.units * naive.unit),
			 0);
	ck_assert_uint_eq(freeblock_set_sectors(w), 0);
	freeblock_set_close(w);
	free(naive.wanted);
	geom_free(geom);
	spec_free(spec);
}
END_TEST

/* ---- the search ---- */

struct rig {
	struct spec *spec;
	struct geom *geom;
	struct service_mech mech;
	struct head_state head_state;
	struct freeblock_set *wanted;
	uint64_t seed;
};

static void rig_init(struct rig *rig, struct spec *spec, uint32_t unit)
{
	*rig = (struct rig){ .spec = spec, .seed = 11 };
	rig->geom = geom_of(spec);
	rig->mech = spec->mech;
	rig->head_state = (struct head_state){
		.geom = rig->geom,
		.mech = &rig->mech,
		.read_overhead_ns = 10000,
		.write_overhead_ns = 300000,
		.reads = true,
		.writes = true,
	};
	ck_assert_int_eq(freeblock_set_open(rig->geom, unit, &rig->wanted), 0);
}

static void rig_fini(struct rig *rig)
{
	freeblock_set_close(rig->wanted);
	geom_free(rig->geom);
	spec_free(rig->spec);
}

/* Wants this share of all units, in runs of up to so many. */
static void rig_want(struct rig *rig, double share, unsigned run)
{
	uint32_t unit = freeblock_set_unit(rig->wanted);
	uint64_t units = geom_sectors(rig->geom) / unit;
	uint64_t n = (uint64_t)((double)units * share);

	freeblock_set_remove(rig->wanted, 0, units * unit);
	if (share >= 1)
		freeblock_set_add(rig->wanted, 0, units * unit);
	while (freeblock_set_sectors(rig->wanted) < n * unit)
		freeblock_set_add(rig->wanted,
			   test_random(&rig->seed) % (units - run) * unit,
			   (1 + test_random(&rig->seed) % run) * unit);
}

/* The head behind some sector, a request somewhere. */
static void rig_query(struct rig *rig, struct gap_query *query)
{
	uint64_t sectors = geom_sectors(rig->geom);
	uint64_t lbn = test_random(&rig->seed) % sectors;
	struct geom_track track;

	geom_track_of(rig->geom, lbn, &track);
	rig->mech.phase = (angle)test_random(&rig->seed);
	rig->head_state.now_ns = 1000000000;
	rig->head_state.head_lbn = lbn;
	rig->head_state.head = (struct service_head){
		1000000000 + rig->mech.period_ps / 16000 +
			test_random(&rig->seed) % 300000,
		track.cylinder, track.surface };
	*query = (struct gap_query){
		.head_state = &rig->head_state,
		.target = {
			.write = test_random(&rig->seed) % 3 == 0,
			.lbn = test_random(&rig->seed) % 4 ?
				test_random(&rig->seed) % (sectors - 16) :
				(lbn + test_random(&rig->seed) % 2000) %
					(sectors - 16),
			.sectors = 16,
		},
		.max_sectors = 4096,
		.joins = true,
		.steps = UINT32_MAX,
	};
}

/* The most time that what is wanted of one track takes to pass between arriving
 * and leaving, unit by unit. */
static int64_t best_single(struct rig *rig, const struct gap_query *query,
			    const struct gap_plan *plan)
{
	const struct head_state *b = query->head_state;
	uint64_t begin = head_state_start_ns(b, false), i;
	uint32_t unit = freeblock_set_unit(rig->wanted);
	int64_t best = 0, sum;
	struct service_head head = b->head;
	struct geom_track t, source, target;
	struct range r;

	geom_track_of(rig->geom, rig->head_state.head_lbn, &source);
	geom_track_of(rig->geom, query->target.lbn, &target);
	for (i = 0; i < geom_tracks(rig->geom); i++) {
		struct service_head on;
		uint64_t in, out, at, lead = 0;
		uint32_t units = 0;

		geom_track_at(rig->geom, i, &t);
		if (!freeblock_set_on(rig->wanted, &t))
			continue;
		in = begin + service_move_ns(&rig->mech, &head, t.cylinder,
					     t.surface, false);
		on = (struct service_head){ 0, t.cylinder, t.surface };
		out = plan->target_ns - service_move_ns(&rig->mech, &on,
				target.cylinder, target.surface,
				query->target.write);
		at = t.first;
		while (freeblock_set_next_on(rig->wanted, &t, at, &r)) {
			for (at = r.first; at < r.first + r.n; at += unit) {
				struct geom_place a, z;
				uint64_t from, n;

				if (at + unit > t.first + t.sectors)
					continue;
				geom_place_of(rig->geom, at, &a);
				geom_place_of(rig->geom, at + unit - 1, &z);
				from = in + service_wait_ns(&rig->mech, in,
							    a.start);
				n = service_turn_ns(&rig->mech,
					(angle)(z.start - a.start) +
						t.per_sector);
				units += from + n + lead <= out;
			}
		}
		sum = units *
		      (int64_t)service_turn_ns(&rig->mech,
					       (uint64_t)t.per_sector * unit);
		if (sum > best)
			best = sum;
	}
	return best;
}

/* A command behind one that the head has begun to move for at some moment,
 * ahead of its time by so much: when it can move for this. */
static void follow(const struct rig *rig, uint64_t *begun_ns,
		   uint64_t *ahead_ns, struct service_head *head, bool write)
{
	uint64_t ns = *begun_ns +
		      head_state_behind_ns(&rig->head_state, *ahead_ns) +
		      (write ? rig->head_state.write_overhead_ns
			     : rig->head_state.read_overhead_ns);

	if (head->at_ns < ns)
		head->at_ns = ns;
	*begun_ns = head->at_ns;
	*ahead_ns = head->at_ns - ns;
}

/* Carries a plan out: all that was counted is there, and the request begins
 * when it would have anyway. */
static void is_free(struct rig *rig, const struct gap_query *query,
		    const struct gap_plan *plan)
{
	struct service_head head = rig->head_state.head;
	struct service s;
	const struct gap_extent *last = plan->extent + plan->extents_n - 1;
	uint64_t units = 0, begun, ahead;
	struct geom_track track;
	struct range r;

	head.at_ns = head_state_start_ns(
		&rig->head_state, query->target.write && !plan->extents_n);
	begun = head.at_ns;
	ahead = begun - rig->head_state.now_ns -
		rig->head_state.read_overhead_ns;
	for (unsigned i = 0; i < plan->extents_n; i++) {
		const struct gap_extent *p = &plan->extent[i];
		struct service_request req = { .lbn = p->sector,
					       .sectors = p->sectors };

		if (i)
			follow(rig, &begun, &ahead, &head, false);
		service_estimate(rig->geom, &rig->mech, &head, &req, &s);
		ck_assert_uint_le(llabs((long long)(s.media_ns -
						    p->begin_ns)), 1000);
		head = s.head;
		for (uint64_t at = p->sector;
		     freeblock_set_next(rig->wanted, at, &r) &&
		     r.first < p->sector + p->sectors; at = r.first + r.n) {
			if (r.n > p->sector + p->sectors - r.first)
				r.n = p->sector + p->sectors - r.first;
			units += r.n / freeblock_set_unit(rig->wanted);
		}
	}
	ck_assert_uint_eq(units, plan->units);
	/* On its track and before it: one command. */
	geom_track_of(rig->geom, query->target.lbn, &track);
	if (plan->extents_n &&
	    (query->target.write || last->sector < track.first ||
	     last->sector + last->sectors > query->target.lbn))
		follow(rig, &begun, &ahead, &head, query->target.write);
	service_estimate(rig->geom, &rig->mech, &head, &query->target, &s);
	ck_assert_uint_le(llabs((long long)(s.media_ns - plan->target_ns)),
			  2000);
}

static const struct {
	const char *order;
	double share;
	unsigned run;
	uint32_t unit;
} searches[] = {
	{ "cylinder", 1, 1, 1 },	{ "cylinder", 0.3, 20, 1 },
	{ "cylinder", 0.02, 5, 8 },	{ "serpentine", 1, 1, 8 },
	{ "serpentine", 0.2, 9, 8 },	{ "serpentine", 0.003, 2, 8 },
	{ "serpentine", 0.0005, 1, 1 },
};

START_TEST(a_search_finds_the_best_track)
{
	struct gap_query query;
	struct gap_plan plan;
	struct rig rig;
	unsigned found = 0, more = 0;

	rig_init(&rig, spec_of(searches[_i].order), searches[_i].unit);
	rig_want(&rig, searches[_i].share, searches[_i].run);
	/* Shorter than a sector: nothing is too short to be followed. */
	rig.head_state.write_overhead_ns = 100000;
	for (int i = 0; i < 40; i++) {
		int64_t best;

		rig_query(&rig, &query);
		gap_search(&query, rig.wanted, &plan);
		ck_assert(plan.complete);
		best = plan.gap_ns ? best_single(&rig, &query, &plan) : 0;
		ck_assert_msg(plan.worth_ns >= best, "%lld < %lld",
			      (long long)plan.worth_ns, (long long)best);
		more += plan.worth_ns > best;
		found += plan.units > 0;
		is_free(&rig, &query, &plan);
	}
	ck_assert_uint_gt(found, 15);
	printf("%s, %g: %u gaps used, in %u more than one track\n",
	       searches[_i].order, searches[_i].share, found, more);
	rig_fini(&rig);
}
END_TEST

/* Guards hold, and without the right to predict there is nothing. */
START_TEST(the_search_keeps_its_guards)
{
	struct gap_query query;
	struct gap_plan plan;
	struct rig rig;
	uint64_t guard = 250000;

	rig_init(&rig, spec_of("cylinder"), 8);
	rig_want(&rig, 1, 1);
	rig.head_state.read_guard_ns = rig.head_state.read_next_guard_ns =
		guard;
	rig.head_state.write_next_guard_ns = guard;
	for (int i = 0; i < 200; i++) {
		uint64_t at;

		rig_query(&rig, &query);
		gap_search(&query, rig.wanted, &plan);
		is_free(&rig, &query, &plan);
		at = head_state_start_ns(&rig.head_state, false);
		for (unsigned k = 0; k < plan.extents_n; k++) {
			ck_assert_uint_ge(plan.extent[k].begin_ns + 1000,
					  at + guard);
			at = plan.extent[k].end_ns;
		}
	}
	rig.head_state.reads = false;
	gap_search(&query, rig.wanted, &plan);
	ck_assert_uint_eq(plan.extents_n, 0);
	ck_assert_uint_gt(plan.target_ns, 0);
	rig_fini(&rig);
}
END_TEST

/* A decision costs little, whatever is wanted: in steps, which are what
 * bounds it. */
START_TEST(the_search_takes_few_steps)
{
	static const double shares[] = { 1, 0.5, 0.05, 0.002 };
	struct gap_query query;
	struct gap_plan plan;
	struct rig rig;
	unsigned complete = 0;

	rig_init(&rig, spec_of("cylinder"), 8);
	rig_want(&rig, shares[_i], 3);
	for (int i = 0; i < 2000; i++) {
		rig_query(&rig, &query);
		query.steps = 200;
		gap_search(&query, rig.wanted, &plan);
		ck_assert_uint_le(plan.steps, 200 + FREEBLOCK_SET_LEAF_TRACKS);
		complete += plan.complete;
	}
	printf("%g wanted: %u of 2000 searches complete\n", shares[_i],
	       complete);
	if (!_i)
		ck_assert_uint_ge(complete, 1990);
	rig_fini(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gap");
	TCase *tcase = tcase_create("wanted");

	tcase_add_loop_test(tcase, a_set_holds_what_was_added, 0, 3);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("search");
	tcase_add_loop_test(tcase, a_search_finds_the_best_track, 0,
			    sizeof(searches) / sizeof(*searches));
	tcase_add_test(tcase, the_search_keeps_its_guards);
	tcase_add_loop_test(tcase, the_search_takes_few_steps, 0, 4);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}

/*
 * test_range_write.c - range writes: the hierarchical search finds what trying
 * every place finds, and loses little where it does not look at all tracks.
 */
#include <errno.h>
#include <stdio.h>

#include "base/list.h"
#include "diskmodel/spec.h"
#include "sched/queue/range_write.h"
#include "tests/rig/test.h"

#define SECTORS 8u

/* ---- A drive, and a head somewhere over it ---- */

struct rig {
	struct spec *spec;
	struct geom *geom;
	struct head_state head_state;
	uint64_t rng;
};

static const char *const drives[] = { "hp-c2247a", "atlas-10k", "modern" };

static struct rig rig_new(const char *drive)
{
	const char *top = getenv("top_srcdir");
	struct rig r = { .rng = 7 };
	char path[4096];

	snprintf(path, sizeof(path), "%s/drives/%s.json", top ? top : ".",
		 drive);
	ck_assert_int_eq(spec_read(path, &r.spec), 0);
	ck_assert_int_eq(spec_geom(r.spec, &r.geom), 0);
	r.head_state = (struct head_state){
		.geom = r.geom, .mech = &r.spec->mech,
		.write_overhead_ns = r.spec->write_overhead_ns,
		.place_guard_ns = 100000, .writes = true,
	};
	return r;
}

static void rig_free(struct rig *r)
{
	geom_free(r->geom);
	spec_free(r->spec);
}

static uint64_t below(struct rig *r, uint64_t n)
{
	return test_random(&r->rng) % n;
}

static uint32_t track_at(struct rig *r, uint64_t sector)
{
	struct geom_track track;

	geom_track_of(r->geom, sector, &track);
	return track.sectors;
}

/* The head at any time over a track near a sector. */
static void head_near(struct rig *r, uint64_t sector)
{
	struct geom_track track;

	geom_track_of(r->geom, sector, &track);
	r->head_state.now_ns = 1000000000 + below(r, 100000000);
	r->head_state.head = (struct service_head){
		.at_ns = r->head_state.now_ns - below(r, 100000),
		.cylinder = track.cylinder + (uint32_t)below(r, 20),
		.surface = (uint32_t)below(r, r->spec->surfaces),
	};
}

/* Some of the sectors of [first, first + n): `percent` of them, in ranges. */
static size_t make_list(struct rig *r, uint64_t first, uint64_t n,
			unsigned percent, struct range *out, size_t max)
{
	const uint64_t end = first + n;
	size_t k = 0;

	while (first < end && k < max) {
		uint64_t run = 1 + below(r, 60);

		if (run > end - first)
			run = end - first;
		if (below(r, 100) < percent)
			out[k++] = (struct range){ first, run };
		first += run;
	}
	return k;
}

/* What is acceptable: ranges in ascending order; places are multiples of
 * `align`. */
struct range_list {
	struct range_set set;
	const struct range *range;
	size_t n;
	uint32_t align;
};

static bool list_next(const struct range_set *set, uint64_t from, uint64_t end,
		      uint32_t sectors, uint64_t *place)
{
	const struct range_list *list =
		container_of(set, const struct range_list, set);

	for (size_t i = 0; i < list->n && list->range[i].first < end; i++) {
		const struct range *r = &list->range[i];
		uint64_t at = r->first > from ? r->first : from;

		at = (at + list->align - 1) / list->align * list->align;
		if (at + sectors <= r->first + r->n && at + sectors <= end) {
			*place = at;
			return true;
		}
	}
	return false;
}

static void range_list_init(struct range_list *list, const struct range *range,
			    size_t n, uint32_t align)
{
	*list = (struct range_list){ { list_next }, range, n, align };
}

/* The reference: every place is estimated (expand and cancel). */
static uint64_t best_of_all(struct rig *r, const struct range_query *q)
{
	uint64_t best = UINT64_MAX, place;

	for (size_t i = 0; i < q->within_n; i++) {
		const uint64_t end = q->within[i].first + q->within[i].n;

		for (uint64_t at = q->within[i].first;
		     q->set->next(q->set, at, end, q->sectors, &place);
		     at = place + 1) {
			struct geom_track track;
			uint64_t cost;

			geom_track_of(r->geom, place, &track);
			if (place + q->sectors > track.first + track.sectors)
				continue;
			cost = range_cost_ns(&r->head_state, q, place);
			best = cost < best ? cost : best;
		}
	}
	return best;
}

static void check_answer(struct rig *r, const struct range_query *q,
			 const struct range_answer *a)
{
	uint64_t place;

	ck_assert(q->set->next(q->set, a->sector, a->sector + q->sectors,
			       q->sectors, &place));
	ck_assert_uint_eq(place, a->sector);
	/* Angles and times are rounded. */
	ck_assert_uint_le(range_cost_ns(&r->head_state, q, a->sector),
			  a->cost_ns + 1000);
	ck_assert_uint_ge(range_cost_ns(&r->head_state, q, a->sector) + 1000,
			  a->cost_ns);
}

/* Of a few tracks the search looks at all. */
START_TEST(finds_what_all_find)
{
	struct rig r = rig_new(drives[_i % 3]);
	struct range list[64];
	struct range_list set;
	/* A drive that may begin anywhere finds no better beginning. */
	struct range_query q = { .set = &set.set, .sectors = SECTORS };

	r.spec->mech.zero_latency_write = false;
	for (unsigned round = 0; round < 40; round++) {
		const uint64_t first = below(&r, r.spec->lbns / 2);
		const uint64_t n = 1 + below(&r, 6 * track_at(&r, first));
		struct range within = { first, n };
		uint64_t best;
		struct range_answer a;
		const size_t ranges = make_list(&r, first, n,
						20 + (unsigned)below(&r, 80),
						list, 64);
		int rc;

		range_list_init(&set, list, ranges, _i / 3 ? SECTORS : 1);
		q.within = &within;
		q.within_n = 1;
		q.lambda = round % 3 ? 0 : 4;
		head_near(&r, below(&r, 4) ? first :
					     below(&r, r.spec->lbns));
		q.ideal = r.head_state.head.cylinder + (uint32_t)below(&r, 9);
		rc = range_find(&r.head_state, &q, &a);
		best = best_of_all(&r, &q);
		ck_assert_int_eq(rc, best == UINT64_MAX ? -ENOSPC : 0);
		if (rc)
			continue;
		check_answer(&r, &q, &a);
		/* A place over which the head just is may be passed over. */
		ck_assert_uint_le(a.cost_ns, best + 1000 +
				  r.spec->mech.period_ps / 1000 /
				  track_at(&r, a.sector));
	}
	rig_free(&r);
}
END_TEST

/* Group-sized: eight tracks cost little more than all. */
START_TEST(eight_tracks_are_enough)
{
	struct rig r = rig_new(drives[_i % 3]);
	const uint64_t n = 4096 * 8, lbns = r.spec->lbns;
	static struct range list[4096];
	struct range_list set;
	struct range within = { .n = n };
	struct range_query q = { .set = &set.set, .within = &within,
				 .within_n = 1, .sectors = SECTORS };
	uint64_t few_ns = 0, all_ns = 0;

	for (unsigned round = 0; round < 100; round++) {
		struct range_answer few;
		uint64_t best;

		within.first = below(&r, lbns - n);
		range_list_init(&set, list,
				make_list(&r, within.first, n,
					  _i / 3 ? 100 : 30, list, 4096),
				SECTORS);
		head_near(&r, within.first + below(&r, n));
		ck_assert_int_eq(range_find(&r.head_state, &q, &few), 0);
		best = best_of_all(&r, &q);
		check_answer(&r, &q, &few);
		ck_assert_uint_ge(few.cost_ns + 1000, best);
		few_ns += few.cost_ns;
		all_ns += best;
	}
	ck_assert_uint_le(few_ns, all_ns + all_ns / 10);
	rig_free(&r);
}
END_TEST

/* One place left somewhere in a group, perhaps far from the head. */
START_TEST(finds_the_last_place)
{
	struct rig r = rig_new(drives[_i]);
	const uint64_t n = 4096 * 8;
	struct range within = { .n = n }, last = { .n = SECTORS };
	struct range_list set;
	struct range_query q = { .set = &set.set, .within = &within,
				 .within_n = 1, .sectors = SECTORS };
	struct range_answer a;
	struct geom_track track;

	for (unsigned round = 0; round < 50; round++) {
		within.first = below(&r, r.spec->lbns - n);
		last.first = within.first + below(&r, n - SECTORS);
		geom_track_of(r.geom, last.first, &track);
		if (last.first + SECTORS > track.first + track.sectors)
			continue;
		range_list_init(&set, &last, 1, 1);
		head_near(&r, within.first + below(&r, n));
		ck_assert_int_eq(range_find(&r.head_state, &q, &a), 0);
		ck_assert_uint_eq(a.sector, last.first);
	}
	range_list_init(&set, NULL, 0, 1);
	ck_assert_int_eq(range_find(&r.head_state, &q, &a), -ENOSPC);
	rig_free(&r);
}
END_TEST

/* Lambda keeps data where it belongs unless that is far slower. */
START_TEST(distance_has_its_price)
{
	struct rig r = rig_new("modern");
	struct range within[2] = { { 0, 4000 }, { 3000000000, 4000 } };
	struct range list[2] = { within[0], within[1] };
	struct range_list set;
	struct geom_track home;
	struct range_query q = { .set = &set.set, .within = within,
				 .within_n = 2, .sectors = SECTORS };
	struct range_answer a;

	range_list_init(&set, list, 2, SECTORS);
	geom_track_of(r.geom, 0, &home);
	q.ideal = home.cylinder;
	head_near(&r, 3000000000);
	ck_assert_int_eq(range_find(&r.head_state, &q, &a), 0);
	ck_assert_uint_ge(a.sector, 3000000000);
	q.lambda = 4;
	ck_assert_int_eq(range_find(&r.head_state, &q, &a), 0);
	ck_assert_uint_lt(a.sector, 4000);
	rig_free(&r);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("range");
	TCase *tc = tcase_create("range");

	tcase_add_loop_test(tc, finds_what_all_find, 0, 6);
	tcase_add_loop_test(tc, eight_tracks_are_enough, 0, 6);
	tcase_add_loop_test(tc, finds_the_last_place, 0, 3);
	tcase_add_test(tc, distance_has_its_price);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return test_run(suite());
}

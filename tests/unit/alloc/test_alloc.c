/*
 * test_alloc.c - placement, on regular and odd tracks: properties that hold for
 * every answer, and the preferences one by one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc/alloc.h"
#include "tests/rig/test.h"

#define SECTORS (TRAX_GROUP_SECTORS * 2 + 30000)
#define EXTENTS 64

struct bench {
	uint32_t empty;		/* see scattered_open */
	struct space *space;
	struct geom *geom;
	struct alloc *alloc;
	uint32_t unit;
};

/* Zones of tracks with odd lengths, some shorter by a few sectors. */
static struct geom *odd_geom(void)
{
	char path[] = "/tmp/alloc-tracks-XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");
	uint64_t first = 0, n, i = 0;
	struct geom *geom;

	ck_assert_ptr_nonnull(file);
	while (first < SECTORS) {
		n = 1003 - i / 700 * 61 - (i % 23 == 5 ? 7 : 0);
		n = n < SECTORS - first ? n : SECTORS - first;
		fprintf(file, "%lu %lu %lu %lu 0\n", (unsigned long)first,
			(unsigned long)n, (unsigned long)i / 2,
			(unsigned long)i % 2);
		first += n;
		i++;
	}
	fclose(file);
	ck_assert_int_eq(geom_read_table(path, SECTORS, &geom), 0);
	unlink(path);
	return geom;
}

static void bench_load(struct bench *bench, uint32_t group)
{
	ck_assert_int_eq(space_load_begin(bench->space, group), 0);
	ck_assert_int_eq(space_load_end(bench->space, group), 0);
}

static void bench_open(struct bench *bench, bool odd, uint32_t unit)
{
	uint32_t group;

	bench->unit = unit;
	ck_assert_int_eq(space_new(SECTORS, &bench->space), 0);
	if (odd)
		bench->geom = odd_geom();
	else
		ck_assert_int_eq(geom_regular(SECTORS, 2048, &bench->geom), 0);
	ck_assert_int_eq(alloc_new(bench->space, bench->geom, unit,
				   &bench->alloc), 0);
	for (group = 0; group < space_groups(bench->space); group++)
		bench_load(bench, group);
}

static void bench_close(struct bench *bench)
{
	alloc_free(bench->alloc);
	geom_free(bench->geom);
	space_free(bench->space);
}

static struct geom_track track_of(const struct bench *bench, uint64_t sector)
{
	struct geom_track track;

	geom_track_of(bench->geom, sector, &track);
	return track;
}

/* What holds for every answer. */
static uint64_t check_extents(const struct bench *bench,
			     const struct alloc_want *want,
			     const struct alloc_extent *extents, int n)
{
	uint64_t sum = 0, end;
	struct geom_track a, z;
	bool whole;
	int i;

	ck_assert_int_ge(n, 1);
	for (i = 0; i < n; i++) {
		end = extents[i].sector + extents[i].n;
		a = track_of(bench, extents[i].sector);
		z = track_of(bench, end - 1);
		whole = a.first == extents[i].sector &&
			z.first + z.sectors == end;
		ck_assert(a.index == z.index || whole);
		ck_assert_int_eq(extents[i].whole_tracks, whole);
		ck_assert_uint_eq(extents[i].sector % bench->unit, 0);
		ck_assert_uint_eq(extents[i].n % bench->unit, 0);
		ck_assert(!rangeset_meets(space_free_set(bench->space),
					  extents[i].sector, extents[i].n));
		sum += extents[i].n;
	}
	ck_assert_uint_eq(sum % 8, 0);
	if (want->stream)
		ck_assert_uint_le(sum, want->sectors);
	else
		ck_assert_uint_eq(sum, want->sectors);
	return sum;
}

static int bench_take(struct bench *bench, const struct alloc_want *want,
		      struct alloc_extent *extents)
{
	uint64_t before = space_free_set(bench->space)->total;
	uint32_t load;
	int n = alloc_take(bench->alloc, want, extents, EXTENTS, &load);

	if (n > 0)
		before -= check_extents(bench, want, extents, n);
	ck_assert_uint_eq(space_free_set(bench->space)->total, before);
	return n;
}

static void give_back(struct bench *bench, const struct alloc_extent *extent)
{
	space_give_back(bench->space, extent->sector, extent->n);
}

/* ---- Properties ---- */

#define KEPT 4000u

static void random_run(bool odd, uint32_t unit, uint64_t rng)
{
	static struct alloc_extent kept[KEPT];
	struct alloc_extent extents[EXTENTS];
	struct alloc_want want;
	struct bench bench;
	unsigned i, kept_n = 0;
	int n, full = 0;

	bench_open(&bench, odd, unit);
	for (i = 0; i < 6000 && full < 3; i++) {
		want = (struct alloc_want){
			.sectors = (test_random(&rng) % 60 + 1) * 8,
			.dir = test_random(&rng) % 20,
			.goal = test_random(&rng) % 2 * TRAX_GROUP_SECTORS,
			.stream = test_random(&rng) % 4 == 0,
		};
		if (test_random(&rng) % 8 == 0)
			want.sectors *= 200;
		if (kept_n && test_random(&rng) % 3 == 0)
			want.after = kept[kept_n - 1].sector +
				     kept[kept_n - 1].n;
		n = bench_take(&bench, &want, extents);
		full += n == -ENOSPC;
		while (n > 0 && kept_n < KEPT)
			kept[kept_n++] = extents[--n];
		while (kept_n > KEPT / 2 && test_random(&rng) % 4 == 0) {
			unsigned k = (unsigned)(test_random(&rng) % kept_n);

			give_back(&bench, &kept[k]);
			kept[k] = kept[--kept_n];
		}
	}
	bench_close(&bench);
}

START_TEST(each_answer_keeps_the_rules)
{
	random_run(_i & 1, _i & 2 ? 8 : 1, 77 + (uint64_t)_i);
}
END_TEST

/* Nothing is refused while room is left. */
START_TEST(nothing_is_refused_to_the_last_sector)
{
	struct alloc_want want = { .sectors = 8 * 90 };
	struct alloc_extent extents[EXTENTS];
	struct bench bench;
	int n = 1;

	bench_open(&bench, true, 1);
	while (want.sectors) {
		n = bench_take(&bench, &want, extents);
		if (n <= 0)
			want.sectors = want.sectors / 16 * 8;
	}
	ck_assert_int_eq(n, -ENOSPC);
	ck_assert_uint_lt(space_free_set(bench.space)->total, 8);
	bench_close(&bench);
}
END_TEST

/* ---- Preferences ---- */

START_TEST(a_file_goes_on_behind_its_end)
{
	struct alloc_want want = { .sectors = 80, .dir = 7 };
	struct alloc_extent a[EXTENTS], b[EXTENTS];
	struct bench bench;

	bench_open(&bench, true, 1);
	ck_assert_int_eq(bench_take(&bench, &want, a), 1);
	want.dir = 9;
	want.after = a[0].sector + a[0].n;
	ck_assert_int_eq(bench_take(&bench, &want, b), 1);
	ck_assert_uint_eq(b[0].sector, want.after);
	bench_close(&bench);
}
END_TEST

START_TEST(goes_on_to_the_end_of_a_track)
{
	struct alloc_extent extent;
	struct bench bench;

	bench_open(&bench, false, 1);
	ck_assert_int_eq(alloc_fill_at(bench.alloc, 2048, 80, &extent), 0);
	ck_assert_uint_eq(extent.sector, 2048);
	ck_assert_uint_eq(extent.n, 80);
	ck_assert_int_eq(alloc_fill_at(bench.alloc, 2128, 5000, &extent), 0);
	ck_assert_uint_eq(extent.sector, 2128);
	ck_assert_uint_eq(extent.n, 2048 - 80);
	ck_assert_int_eq(alloc_fill_at(bench.alloc, 2128, 80, &extent),
			 -ENOSPC);
	bench_close(&bench);
}
END_TEST

START_TEST(a_directory_stays_together)
{
	struct alloc_want want = { .sectors = 8, .batch = 1600 };
	struct alloc_extent extents[EXTENTS];
	uint64_t first[2] = { UINT64_MAX, UINT64_MAX }, last[2] = { 0, 0 };
	struct bench bench;
	unsigned i, d;

	bench_open(&bench, true, 1);
	for (i = 0; i < 400; i++) {
		uint64_t index;

		d = i % 2;
		want.dir = 100 + d;
		ck_assert_int_eq(bench_take(&bench, &want, extents), 1);
		index = track_of(&bench, extents[0].sector).index;
		first[d] = index < first[d] ? index : first[d];
		last[d] = index > last[d] ? index : last[d];
	}
	/* 1,600 sectors each, on tracks of a thousand. */
	for (d = 0; d < 2; d++)
		ck_assert_uint_le(last[d] - first[d], 3);
	bench_close(&bench);
}
END_TEST

/* A file that does not fit opens another track; the smaller ones behind it
 * fill the first. */
START_TEST(what_a_large_file_leaves_is_filled)
{
	static const uint64_t sectors[] = { 800, 640, 200, 400, 120 };
	struct alloc_want want = { .dir = 100, .batch = 2160 };
	struct alloc_extent extents[EXTENTS];
	uint64_t index[5];
	struct bench bench;
	unsigned i;

	bench_open(&bench, true, 1);
	for (i = 0; i < 5; i++) {
		want.sectors = sectors[i];
		ck_assert_int_eq(bench_take(&bench, &want, extents), 1);
		index[i] = track_of(&bench, extents[0].sector).index;
	}
	ck_assert_uint_ne(index[1], index[0]);
	ck_assert_uint_eq(index[2], index[0]);
	ck_assert_uint_ne(index[3], index[1]);
	ck_assert_uint_eq(index[4], index[1]);
	bench_close(&bench);
}
END_TEST

/* Small directories and large ones by turns, as a tree is unpacked. */
START_TEST(directories_lie_one_behind_the_other)
{
	struct alloc_want want = { .sectors = 80 };
	struct alloc_extent extents[EXTENTS];
	uint64_t index, before = 0, tracks = 0;
	struct bench bench;
	unsigned d, i, files;

	bench_open(&bench, true, 1);
	for (d = 0; d < 40; d++) {
		files = d % 2 ? 30 : 2;
		want.dir = 100 + d;
		want.batch = files * want.sectors;
		for (i = 0; i < files; i++) {
			ck_assert_int_eq(bench_take(&bench, &want, extents), 1);
			index = track_of(&bench, extents[0].sector).index;
			ck_assert(index == before || index == before + 1);
			tracks += index != before;
			before = index;
		}
	}
	/* 12 of 80 on each track of a thousand. */
	ck_assert_uint_le(tracks, 20 * 32 / 12 + 1);
	bench_close(&bench);
}
END_TEST

/* A growing file fills whole tracks, one behind the other. */
START_TEST(a_growing_file_fills_whole_tracks)
{
	struct alloc_want want = { .sectors = 8 * 400, .stream = true };
	struct alloc_extent extents[EXTENTS];
	uint64_t end = 0;
	struct bench bench;
	int i, n, k;

	bench_open(&bench, true, 1);
	for (i = 0; i < 40; i++) {
		want.after = end;
		n = bench_take(&bench, &want, extents);
		for (k = 0; k < n; k++) {
			if (end)
				ck_assert_uint_eq(extents[k].sector, end);
			end = extents[k].sector + extents[k].n;
		}
		/* Others leave the track alone on which it goes on. */
		want = (struct alloc_want){ .sectors = 16, .dir = 5 };
		n = bench_take(&bench, &want, extents);
		ck_assert_int_eq(n, 1);
		ck_assert_uint_ne(extents[0].sector, end);
		want = (struct alloc_want){ .sectors = 8 * 400,
					    .stream = true };
	}
	bench_close(&bench);
}
END_TEST

START_TEST(a_tail_lies_in_one_track)
{
	struct alloc_want want = { .sectors = 8 * 300 };
	struct alloc_extent extents[EXTENTS];
	uint64_t whole = 0;
	struct bench bench;
	int i, n;

	bench_open(&bench, true, 1);
	n = bench_take(&bench, &want, extents);
	for (i = 0; i < n; i++)
		whole += extents[i].whole_tracks ? extents[i].n : 0;
	ck_assert_int_le(n, 2);
	ck_assert_uint_ge(whole, want.sectors - 1003);
	bench_close(&bench);
}
END_TEST

START_TEST(it_asks_for_groups_that_are_not_loaded)
{
	struct alloc_want want = { .sectors = 80 };
	struct alloc_extent extent;
	struct bench bench = { .unit = 1 };
	uint32_t load = 99;

	ck_assert_int_eq(space_new(SECTORS, &bench.space), 0);
	ck_assert_int_eq(geom_regular(SECTORS, 2048, &bench.geom), 0);
	ck_assert_int_eq(alloc_new(bench.space, bench.geom, 1, &bench.alloc),
			 0);
	want.goal = TRAX_GROUP_SECTORS + 5;
	ck_assert_int_eq(alloc_take(bench.alloc, &want, &extent, 1, &load),
			 -EAGAIN);
	ck_assert_uint_eq(load, 1);
	bench_load(&bench, 1);
	ck_assert_int_eq(alloc_take(bench.alloc, &want, &extent, 1, &load), 1);
	ck_assert_uint_ge(extent.sector, TRAX_GROUP_SECTORS);
	bench_close(&bench);
}
END_TEST

START_TEST(too_many_extents_are_refused)
{
	struct alloc_want want = { .sectors = 8 };
	struct alloc_extent extents[EXTENTS];
	uint64_t s, before;
	struct bench bench;
	uint32_t load;

	bench_open(&bench, false, 1);
	/* A comb: 8 sectors in each 16 are free. */
	for (s = 0; s < SECTORS; s += 16)
		ck_assert_int_eq(space_take(bench.space, s, 8), 0);
	before = space_free_set(bench.space)->total;
	want.sectors = 80;
	ck_assert_int_eq(alloc_take(bench.alloc, &want, extents, 4, &load),
			 -E2BIG);
	ck_assert_uint_eq(space_free_set(bench.space)->total, before);
	ck_assert_int_eq(alloc_take(bench.alloc, &want, extents, 10, &load),
			 10);
	bench_close(&bench);
}
END_TEST

START_TEST(a_node_track_is_a_whole_track)
{
	struct bench bench;
	uint64_t sector;
	uint32_t n, load;

	bench_open(&bench, true, 1);
	ck_assert_int_eq(alloc_node_track(bench.alloc, 0, 0, &sector, &n,
					  &load), 0);
	ck_assert_uint_eq(track_of(&bench, sector).first, sector);
	ck_assert_uint_eq(n, 1003 / 32 * 32);
	bench_close(&bench);
}
END_TEST

/* What is free of a track: the longest part, not the first or the smallest. */
START_TEST(a_node_track_is_the_longest_free_part)
{
	struct geom_track track;
	struct bench bench;
	uint64_t sector, i;
	uint32_t n, load;

	bench_open(&bench, false, 1);
	for (sector = 0; sector < SECTORS; sector += track.sectors) {
		i = sector / 2048;
		track = track_of(&bench, sector);
		/* 1/8 of each track; of one nearly all */
		ck_assert_int_eq(space_take(bench.space, sector,
					    i == 77 ? 100 : track.sectors -
					    track.sectors / 8), 0);
	}
	ck_assert_int_eq(alloc_node_track(bench.alloc, 0, 0, &sector, &n,
					  &load), 0);
	ck_assert_uint_eq(sector, 77 * 2048 + 100);
	ck_assert_uint_eq(n, (2048 - 100) / 32 * 32);
	/* Nothing so long is left: the next is one of 1/8. */
	ck_assert_int_eq(alloc_node_track(bench.alloc, 0, 0, &sector, &n,
					  &load), 0);
	ck_assert_uint_eq(n, 2048 / 8 / 32 * 32);
	bench_close(&bench);
}
END_TEST

/* Where a size was found not to fit nobody looks again, until something is
 * free there. */
START_TEST(misfits_are_passed_over)
{
	struct alloc_want want = { .sectors = 96, .goal = 0 };
	struct alloc_extent extents[EXTENTS];
	struct bench bench;
	uint64_t t;

	bench_open(&bench, false, 8);
	/* 64 sectors on both sides of each boundary in the first group. */
	for (t = 0; t < TRAX_GROUP_SECTORS; t += 2048)
		ck_assert_int_eq(space_take(bench.space, t + 64, 2048 - 128),
				 0);
	ck_assert_int_eq(space_take(bench.space, TRAX_GROUP_SECTORS - 64, 64),
			 0);
	ck_assert_int_eq(bench_take(&bench, &want, extents), 1);
	ck_assert_uint_ge(extents[0].sector, TRAX_GROUP_SECTORS);
	ck_assert_uint_eq(space_group_misfit(bench.space, 0,
					     SPACE_FIT_PART), 96);
	space_give_back(bench.space, 2048 * 9 + 64, 64);
	ck_assert_uint_gt(space_group_misfit(bench.space, 0,
					     SPACE_FIT_PART), 96);
	ck_assert_int_eq(bench_take(&bench, &want, extents), 1);
	ck_assert_uint_eq(extents[0].sector, 2048 * 9);
	bench_close(&bench);
}
END_TEST

/* Every place of a window is one the extent may go to, and where it goes its
 * directory goes on. */
START_TEST(every_place_of_a_window_can_be_taken)
{
	struct alloc_want want = { .sectors = 96, .dir = 7, .batch = 96 };
	struct alloc_extent extent, extents[EXTENTS];
	uint64_t at, place, total, seen, rng = 11;
	struct bench bench;
	struct range window;
	unsigned i, keep;

	bench_open(&bench, true, 8);
	for (i = 0; i < 300; i++) {
		want.dir = 7 + i % 5;
		ck_assert_int_eq(bench_take(&bench, &want, extents), 1);
		extent = extents[0];
		total = space_free_set(bench.space)->total;
		alloc_window(bench.alloc, &extent, &window);
		ck_assert_uint_le(window.first, extent.sector);
		keep = (unsigned)(test_random(&rng) % 8);
		for (at = window.first, seen = 0; seen <= keep &&
		     alloc_next(bench.alloc, at, window.first + window.n,
				extent.n, &place); at = place + 1, seen++) {
			ck_assert_uint_ge(place, at);
			ck_assert(rangeset_has(space_free_set(bench.space),
					       place, extent.n));
			ck_assert_uint_eq(place % bench.unit, 0);
			ck_assert_uint_eq(track_of(&bench, place).index,
				track_of(&bench, place + extent.n - 1).index);
		}
		if (!seen)
			continue;
		ck_assert_int_eq(alloc_move(bench.alloc, &extent, place), 0);
		ck_assert_uint_eq(extent.sector, place);
		ck_assert(rangeset_has(space_free_set(bench.space),
				       extents[0].sector, 8));
		ck_assert(!rangeset_meets(space_free_set(bench.space), place,
					  extent.n));
		ck_assert_uint_eq(space_free_set(bench.space)->total, total);
		if (bench_take(&bench, &want, extents) == 1 &&
		    extents[0].follows)
			ck_assert_uint_ge(extents[0].sector, place + extent.n);
	}
	bench_close(&bench);
}
END_TEST

START_TEST(an_extent_ends_with_its_track_or_is_whole_tracks)
{
	struct bench bench;
	struct geom_track t, u;

	bench_open(&bench, true, 1);
	geom_track_at(bench.geom, 10, &t);
	geom_track_at(bench.geom, 13, &u);
	ck_assert_uint_eq(alloc_cut(bench.alloc, t.first, u.first + 5),
			  u.first);
	ck_assert_uint_eq(alloc_cut(bench.alloc, t.first, u.first), u.first);
	ck_assert_uint_eq(alloc_cut(bench.alloc, t.first + 3, u.first),
			  t.first + t.sectors);
	ck_assert_uint_eq(alloc_cut(bench.alloc, t.first, t.first + 4),
			  t.first + 4);
	ck_assert(alloc_is_whole(bench.alloc, t.first, u.first - t.first));
	ck_assert(!alloc_is_whole(bench.alloc, t.first, 17));
	bench_close(&bench);
}
END_TEST

/* Half a millisecond, by what is charged. */
#define SEARCH_NS 500000u

/* Each free run lies across the end of a track: none has a part of a track that
 * is large enough, and each has to be looked at to know it. */
START_TEST(searches_are_bounded)
{
	const struct alloc_want want = { .sectors = 304 };
	struct loop_turn turn = { .running = true };
	struct alloc_extent extent;
	struct bench bench;
	unsigned turns = 0;
	uint32_t load;
	int rc;

	bench_open(&bench, false, 1);
	for (uint64_t s = 0; s + 2048 <= SECTORS; s += 2048)
		ck_assert_int_eq(space_take(bench.space, s + 200, 1648), 0);
	alloc_set_turn(bench.alloc, &turn);
	do {
		turn.all_ns = 0;
		rc = _i ? alloc_copies(bench.alloc, 0, 1024, NULL, &extent,
				       &load) :
			  alloc_take(bench.alloc, &want, &extent, 1, &load);
		ck_assert_int_ge(rc, _i ? -ENOSPC : -E2BIG);
		ck_assert_uint_gt(turn.all_ns, 0);
		ck_assert_uint_le(turn.all_ns, SEARCH_NS);
	} while (turns++ < 5);
	bench_close(&bench);
}
END_TEST

/* ---- Many groups that are not loaded ---- */

#define GROUPS 640u
/* Each group has so many free runs of 1.3 tracks across the end of a track, so
 * that they hold neither a whole one nor 0.9 of one. */
#define HOLES 20u
#define HOLE_STEP 102400u
#define HOLE_AT 1000u
#define HOLE_SECTORS 2700u
/* Groups that may be loaded: some to find a good place, and more to take what
 * there is. */
#define LOADS_MOST 24u

/* Calls each() for what of a group has an owner. */
static void each_owner(struct bench *bench, uint32_t group,
		       int (*each)(struct space *space, uint32_t group,
				   uint64_t sector, uint64_t n))
{
	uint64_t at = (uint64_t)group * TRAX_GROUP_SECTORS;
	const uint64_t end = at + TRAX_GROUP_SECTORS, begin = at;

	for (unsigned i = 0; i < HOLES; i++) {
		const uint64_t hole = begin + i * HOLE_STEP + HOLE_AT;

		ck_assert_int_eq(each(bench->space, group, at, hole - at), 0);
		at = hole + HOLE_SECTORS;
	}
	ck_assert_int_eq(each(bench->space, group, at, end - at), 0);
}

static int put_owner(struct space *space, uint32_t group, uint64_t sector,
		     uint64_t n)
{
	(void)group;
	return space_owner_put(space, sector, n, OWNER_DATA);
}

static int feed_owner(struct space *space, uint32_t group, uint64_t sector,
		      uint64_t n)
{
	return space_load_feed(space, group, sector, n);
}

static void scattered_load(struct bench *bench, uint32_t group)
{
	ck_assert_int_eq(space_load_begin(bench->space, group), 0);
	if (group != bench->empty)
		each_owner(bench, group, feed_owner);
	ck_assert_int_eq(space_load_end(bench->space, group), 0);
}

/* As after a mount: no group is loaded, and what the root says is known. */
static void forget_groups(struct bench *bench, uint64_t sectors)
{
	uint32_t map_bytes, group_bytes;
	void *payload;

	ck_assert_int_eq(space_cut(bench->space, &payload, &map_bytes,
				   &group_bytes), 0);
	space_free(bench->space);
	ck_assert_int_eq(space_new(sectors, &bench->space), 0);
	ck_assert_int_eq(space_load_root(bench->space, payload, map_bytes,
					 (uint8_t *)payload + map_bytes,
					 group_bytes), 0);
	free(payload);
}

/* `empty`: a group without owners, if there is one with that number. */
static void scattered_open(struct bench *bench, uint32_t groups,
			   uint32_t empty, uint32_t track)
{
	const uint64_t sectors = (uint64_t)groups * TRAX_GROUP_SECTORS;

	*bench = (struct bench){ .unit = 1, .empty = empty };
	ck_assert_int_eq(space_new(sectors, &bench->space), 0);
	for (uint32_t group = 0; group < groups; group++) {
		if (group != empty)
			each_owner(bench, group, put_owner);
		scattered_load(bench, group);
	}
	forget_groups(bench, sectors);
	ck_assert_int_eq(geom_regular(sectors, track, &bench->geom), 0);
	ck_assert_int_eq(alloc_new(bench->space, bench->geom, 1,
				   &bench->alloc), 0);
}

/* Takes room, or a node track; returns how many groups were loaded for it. */
static unsigned take_loading(struct bench *bench, struct alloc_want *want,
			     struct alloc_extent *extents)
{
	uint32_t load, sectors;
	uint64_t sector;
	int rc;

	for (;; want->loads++) {
		rc = want->sectors ?
			alloc_take(bench->alloc, want, extents, EXTENTS,
				   &load) :
			alloc_node_track(bench->alloc, 0, want->loads, &sector,
					 &sectors, &load);
		if (rc != -EAGAIN)
			break;
		scattered_load(bench, load);
	}
	ck_assert_int_ge(rc, 0);
	return want->loads;
}

/* What has no good place gets some place after a few loads, as each takes some
 * reads of the disk: 4 tracks, 0.9 tracks, a node track. */
START_TEST(few_groups_are_loaded_for_a_good_place)
{
	struct alloc_want want = { .sectors = _i == 2 ? 0 :
					      _i ? 1840 : 4 * 2048 };
	struct alloc_extent extents[EXTENTS];
	struct bench bench;

	scattered_open(&bench, GROUPS, GROUPS, 2048);
	ck_assert_uint_le(take_loading(&bench, &want, extents), LOADS_MOST);
	bench_close(&bench);
}
END_TEST

/* Where there is surely a good place it is taken, however far away. */
START_TEST(a_good_place_far_away_is_found)
{
	struct alloc_want want = { .sectors = _i ? 1840 : 4 * 2048 };
	struct alloc_extent extents[EXTENTS];
	struct bench bench;

	scattered_open(&bench, GROUPS, GROUPS - 1, 2048);
	ck_assert_uint_le(take_loading(&bench, &want, extents), LOADS_MOST);
	ck_assert_uint_ge(extents[0].sector,
			  (GROUPS - 1) * (uint64_t)TRAX_GROUP_SECTORS);
	ck_assert_uint_eq(extents[0].n, want.sectors);
	bench_close(&bench);
}
END_TEST

static uint64_t charged_beside(uint32_t groups, bool dir)
{
	struct loop_turn turn = { .running = true };
	struct alloc_want want = { .sectors = 1840 };
	struct alloc_extent extents[EXTENTS];
	struct bench bench;

	scattered_open(&bench, groups, groups, 2048);
	for (uint32_t group = 0; group < groups; group++)
		space_set_misfit(bench.space, group, SPACE_FIT_PART, 1840);
	alloc_set_turn(bench.alloc, &turn);
	if (dir)
		alloc_dir_goal(bench.alloc, 0);
	else
		take_loading(&bench, &want, extents);
	bench_close(&bench);
	return turn.all_ns;
}

/* Looking at a group takes time, also when it is passed over. */
START_TEST(groups_that_are_passed_over_are_charged)
{
	ck_assert_uint_ge(charged_beside(GROUPS, _i),
			  charged_beside(GROUPS / 2, _i) + GROUPS);
}
END_TEST

/* What a search is charged that passes `groups` groups over. */
static uint64_t charged_for_full(uint32_t groups, uint64_t sectors)
{
	struct loop_turn turn = { .running = true };
	struct alloc_want want = { .sectors = sectors };
	struct alloc_extent extents[EXTENTS];
	struct bench bench;

	scattered_open(&bench, groups, groups - 1, 4096);
	take_loading(&bench, &want, extents);
	alloc_set_turn(bench.alloc, &turn);
	take_loading(&bench, &want, extents);
	ck_assert_uint_ge(extents[0].sector,
			  (groups - 1) * (uint64_t)TRAX_GROUP_SECTORS);
	bench_close(&bench);
	return turn.all_ns;
}

/* Groups whose free runs are all too short are not looked at one by one. */
START_TEST(full_groups_are_passed_over_together)
{
	const uint64_t sectors = _i ? 2800 : 4 * 4096;

	ck_assert_uint_le(charged_for_full(GROUPS, sectors),
			  charged_for_full(GROUPS / 10, sectors) + GROUPS);
}
END_TEST

/* No group has room for a directory: not each directory looks at all. */
START_TEST(directories_do_not_look_at_all_groups)
{
	struct loop_turn turn = { .running = true };
	struct bench bench;

	scattered_open(&bench, GROUPS, GROUPS, 2048);
	alloc_set_turn(bench.alloc, &turn);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_uint_eq(alloc_dir_goal(bench.alloc, 4711), 4711);
	ck_assert_uint_lt(turn.all_ns, 50 * GROUPS);
	bench_close(&bench);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("alloc");
	TCase *tcase = tcase_create("alloc");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, each_answer_keeps_the_rules, 0, 4);
	tcase_add_test(tcase, nothing_is_refused_to_the_last_sector);
	tcase_add_test(tcase, a_file_goes_on_behind_its_end);
	tcase_add_test(tcase, goes_on_to_the_end_of_a_track);
	tcase_add_test(tcase, a_directory_stays_together);
	tcase_add_test(tcase, what_a_large_file_leaves_is_filled);
	tcase_add_test(tcase, directories_lie_one_behind_the_other);
	tcase_add_test(tcase, a_growing_file_fills_whole_tracks);
	tcase_add_test(tcase, a_tail_lies_in_one_track);
	tcase_add_test(tcase, it_asks_for_groups_that_are_not_loaded);
	tcase_add_test(tcase, too_many_extents_are_refused);
	tcase_add_test(tcase, a_node_track_is_a_whole_track);
	tcase_add_test(tcase, a_node_track_is_the_longest_free_part);
	tcase_add_test(tcase, misfits_are_passed_over);
	tcase_add_test(tcase, every_place_of_a_window_can_be_taken);
	tcase_add_test(tcase, an_extent_ends_with_its_track_or_is_whole_tracks);
	tcase_add_loop_test(tcase, searches_are_bounded, 0, 2);
	tcase_add_loop_test(tcase, few_groups_are_loaded_for_a_good_place, 0,
			    3);
	tcase_add_loop_test(tcase, a_good_place_far_away_is_found, 0, 2);
	tcase_add_loop_test(tcase, groups_that_are_passed_over_are_charged, 0,
			    2);
	tcase_add_loop_test(tcase, full_groups_are_passed_over_together, 0, 2);
	tcase_add_test(tcase, directories_do_not_look_at_all_groups);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}

/*
 * test_geom.c - geometries: regular, from tables, as records.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/csum.h"
#include "base/le.h"
#include "base/msg.h"
#include "diskmodel/geom.h"

#define CSUM_AT 56

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

/* Reads a table given as text. */
static int read_text(const char *text, uint64_t sectors, struct geom **geom)
{
	char path[] = "/tmp/test_geom.XXXXXX";
	int fd = mkstemp(path), err;
	FILE *f;

	ck_assert_int_ge(fd, 0);
	f = fdopen(fd, "w");
	fputs(text, f);
	fclose(f);
	err = geom_read_table(path, sectors, geom);
	unlink(path);
	return err;
}

/* A disk of 3 surfaces in cylinder order, 100 and 90 sectors a track, with a
 * slip in track 7; angles with `decimals` digits. */
static char *table_text(int cylinders, int decimals)
{
	char *text;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);
	uint64_t lbn = 0;
	double at = 0;

	fprintf(f, "# first sectors cylinder surface angle\n\n");
	for (int t = 0; t < 3 * cylinders; t++) {
		int n = t < 3 * cylinders / 2 ? 100 : 90;

		if (t == 7)
			n--;
		fprintf(f, "%ju %d %d %d %.*f\n", (uintmax_t)lbn, n, t / 3,
			t % 3, decimals, at - (int)at);
		lbn += (uint64_t)n;
		at += t % 3 == 2 ? 0.31 : 0.17;
	}
	fclose(f);
	return text;
}

static void same_geom(const struct geom *a, const struct geom *b)
{
	struct geom_track ta, tb;

	ck_assert_uint_eq(geom_sectors(a), geom_sectors(b));
	ck_assert_uint_eq(geom_tracks(a), geom_tracks(b));
	ck_assert_uint_eq(geom_period_ns(a), geom_period_ns(b));
	for (uint64_t i = 0; i < geom_tracks(a); i++) {
		geom_track_at(a, i, &ta);
		geom_track_at(b, i, &tb);
		ck_assert_uint_eq(ta.first, tb.first);
		ck_assert_uint_eq(ta.sectors, tb.sectors);
		ck_assert_uint_eq(ta.cylinder, tb.cylinder);
		ck_assert_uint_eq(ta.surface, tb.surface);
		ck_assert_uint_eq(ta.start, tb.start);
		ck_assert_uint_eq(ta.per_sector, tb.per_sector);
		ck_assert_int_eq(ta.known, tb.known);
	}
}

START_TEST(pseudo_tracks_cover_a_disk)
{
	struct geom *g;
	struct geom_track t;
	struct geom_place p;
	/* 20 TB */
	uint64_t sectors = UINT64_C(39062500001);

	ck_assert_int_eq(geom_regular(sectors, 2048, &g), 0);
	ck_assert_uint_eq(geom_sectors(g), sectors);
	ck_assert_uint_eq(geom_tracks(g), (sectors + 2047) / 2048);
	ck_assert(!geom_known(g));
	geom_track_of(g, 2048 * 1000 + 5, &t);
	ck_assert_uint_eq(t.index, 1000);
	ck_assert_uint_eq(t.first, 2048000);
	ck_assert_uint_eq(t.sectors, 2048);
	ck_assert(!t.known);
	ck_assert_uint_eq(t.start, 0);
	geom_track_of(g, sectors - 1, &t);
	ck_assert_uint_eq(t.index, geom_tracks(g) - 1);
	ck_assert_uint_eq(t.first + t.sectors, sectors);
	geom_place_of(g, 12345, &p);
	ck_assert_uint_eq(p.start, 0);
	geom_free(g);
}
END_TEST

START_TEST(a_disk_shorter_than_a_track_has_one_track)
{
	struct geom *g;
	struct geom_track t;

	ck_assert_int_eq(geom_regular(5, 2048, &g), 0);
	ck_assert_uint_eq(geom_tracks(g), 1);
	geom_track_at(g, 0, &t);
	ck_assert_uint_eq(t.sectors, 5);
	geom_free(g);
	ck_assert_int_eq(geom_regular(5, 0, &g), -EINVAL);
	ck_assert_int_eq(geom_regular(0, 2048, &g), -EINVAL);
}
END_TEST

START_TEST(a_table_becomes_the_same_tracks)
{
	char *text = table_text(400, 10);
	struct geom *g;
	struct geom_track t, u;
	struct geom_place p;
	uint64_t lbn = 0;

	ck_assert_int_eq(read_text(text, 113999 + 5000, &g), 0);
	free(text);
	ck_assert_uint_eq(geom_tracks(g), 1200 + 3);
	ck_assert_uint_eq(geom_sectors(g), 113999 + 5000);
	ck_assert(geom_known(g));
	for (uint64_t i = 0; i < geom_tracks(g); i++) {
		geom_track_at(g, i, &t);
		ck_assert_uint_eq(t.index, i);
		ck_assert_uint_eq(t.first, lbn);
		ck_assert_int_eq(t.known, i < 1200);
		if (i < 1200) {
			ck_assert_uint_eq(t.cylinder, i / 3);
			ck_assert_uint_eq(t.surface, i % 3);
		}
		geom_track_of(g, lbn, &u);
		ck_assert_uint_eq(u.index, i);
		lbn += t.sectors;
		geom_track_of(g, lbn - 1, &u);
		ck_assert_uint_eq(u.index, i);
	}
	/* One sector was lost on track 7; it still has 100 around it. */
	geom_track_at(g, 7, &t);
	ck_assert_uint_eq(t.sectors, 99);
	ck_assert_uint_eq(t.per_sector, (angle)((UINT64_C(1) << 32) / 100));
	geom_place_of(g, t.first + 50, &p);
	ck_assert_uint_eq(p.start,
			  t.start + (angle)((UINT64_C(50) << 32) / 100));
	geom_free(g);
}
END_TEST

/* Odd tracks that lack more in all than the first tracks have. */
START_TEST(short_tracks_may_lack_more_than_the_first_has)
{
	struct geom *g;
	struct geom_track t;
	char *text;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);
	unsigned lbn = 0, n;

	for (unsigned i = 0; i < 100; i++, lbn += n) {
		n = i % 3 == 1 ? 1 : 10;
		fprintf(f, "%u %u %u 0 %u.%u\n", lbn, n, i, i % 2,
			i * 7 % 10);
	}
	fclose(f);
	ck_assert_int_eq(read_text(text, lbn, &g), 0);
	free(text);
	ck_assert_uint_eq(geom_sectors(g), lbn);
	for (unsigned i = 0; i < 100; i++) {
		geom_track_at(g, i, &t);
		ck_assert_uint_eq(t.sectors, i % 3 == 1 ? 1 : 10);
	}
	geom_free(g);
}
END_TEST

/* Angles as a person would write them: nothing is more wrong than rounding
 * and the tolerance make it, and the geometry stays small. */
START_TEST(rounded_angles_cost_no_more_than_rounding)
{
	char *text = table_text(400, 5);
	struct geom *g;
	struct geom_track t;
	double at = 0;
	void *buf;
	size_t bytes;

	ck_assert_int_eq(read_text(text, 113999, &g), 0);
	free(text);
	for (uint64_t i = 0; i < 1200; i++) {
		double off;

		geom_track_at(g, i, &t);
		off = t.start / 4294967296.0 - (at - (int)at);
		off -= off > 0.5 ? 1 : off < -0.5 ? -1 : 0;
		ck_assert_double_eq_tol(off, 0, 6e-5);
		at += i % 3 == 2 ? 0.31 : 0.17;
	}
	ck_assert_int_eq(geom_encode(g, &buf, &bytes), 0);
	ck_assert_uint_lt(bytes, 2000);
	free(buf);
	geom_free(g);
}
END_TEST

START_TEST(angles_of_a_table_are_the_tracks_starts)
{
	struct geom *g;
	struct geom_track t;
	struct geom_place p;

	ck_assert_int_eq(read_text("0 10 0 0 0.25\n10 10 0 1 -0.5\n", 20, &g),
			 0);
	geom_track_at(g, 0, &t);
	ck_assert_uint_eq(t.start, 1u << 30);
	for (uint64_t lbn = 0; lbn < 10; lbn++) {
		geom_place_of(g, lbn, &p);
		ck_assert_uint_eq(geom_lbn_at(g, &t, p.start), lbn);
		ck_assert_uint_eq(geom_lbn_at(g, &t, p.start + 1),
				  (lbn + 1) % 10);
		ck_assert_uint_eq(geom_lbn_at(g, &t, p.start - 5), lbn);
	}
	geom_track_at(g, 1, &t);
	ck_assert_uint_eq(t.start, 1u << 31);
	geom_free(g);
}
END_TEST

/* As traxtract --list says it: at the beginning, in the middle, at the end. */
START_TEST(table_with_unknown)
{
	static const struct {
		uint64_t first;
		uint32_t sectors;
		bool known;
	} is[] = {
		{ 0, 30, false }, { 30, 10, true }, { 40, 9, true },
		{ 49, 10, true }, { 59, 2048, false }, { 2107, 2048, false },
		{ 4155, 10, true }, { 4165, 10, true }, { 4175, 25, false },
	};
	struct geom_track t;
	struct geom *g;

	ck_assert_int_eq(read_text("# first sectors cylinder surface angle\n"
				   "# 0 30 unknown\n30 10 3 0 0\n40 9 4 0 0\n"
				   "49 10 5 0 0\n# 59 4096 unknown\n"
				   "4155 10 9 0 0\n4165 10 10 0 0\n"
				   "# 4175 25 unknown\n", 4200, &g), 0);
	ck_assert_uint_eq(geom_tracks(g), 9);
	for (unsigned i = 0; i < 9; i++) {
		geom_track_at(g, i, &t);
		ck_assert_uint_eq(t.first, is[i].first);
		ck_assert_uint_eq(t.sectors, is[i].sectors);
		ck_assert_int_eq(t.known, is[i].known);
	}
	geom_track_at(g, 6, &t);
	ck_assert_uint_eq(t.cylinder, 9);
	geom_free(g);
}
END_TEST

static const struct {
	const char *text, *says;
} bad_tables[] = {
	{ "", "no tracks" },
	{ "# nothing\n", "no tracks" },
	{ "5 10 0 0 0\n", ":1: the first track does not begin at 0" },
	{ "0 10 0 0 0\n\n11 10 0 0 0\n", ":3: a gap" },
	{ "0 10 0 0 0\n9 10 0 0 0\n", ":2: a track that overlaps" },
	{ "0 10 0 0 0\n# 10 5 unknown\n11 10 0 0 0\n", ":3: a track that o" },
	{ "0 10 0 0 0\n# 11 5 unknown\n16 10 0 0 0\n", ":3: a gap" },
	{ "0 10 0 0\n", "not an angle" },
	{ "0 10 0 0 nan\n", "not an angle" },
	{ "0 10 0 0 0 7\n", "more than five" },
	{ "0 0 0 0 0\n", "no sectors" },
	{ "0 -1 0 0 0\n", "not a number" },
	{ "0 10 0 99999 0\n", "out of range" },
	{ "0 99999999999999999999999 0 0 0\n", "out of range" },
};

START_TEST(a_bad_table_is_refused_with_its_reason)
{
	struct geom *g = NULL;

	last_line[0] = 0;
	ck_assert_int_eq(read_text(bad_tables[_i].text, 1000, &g), -EINVAL);
	ck_assert_ptr_nonnull(strstr(last_line, bad_tables[_i].says));
	ck_assert_ptr_null(g);
}
END_TEST

START_TEST(a_table_longer_than_the_disk_is_cut)
{
	struct geom *g;

	ck_assert_int_eq(read_text("0 10 0 0 0\n10 10 1 0 0\n20 10 2 0 0\n", 15,
				   &g), 0);
	ck_assert_uint_eq(geom_sectors(g), 15);
	ck_assert_uint_eq(geom_tracks(g), 2);
	ck_assert_ptr_nonnull(strstr(last_line, "past the end"));
	geom_free(g);
}
END_TEST

START_TEST(a_geometry_record_is_read_back)
{
	char *text = table_text(400, 10);
	struct geom *g, *h;
	void *buf;
	size_t bytes;

	ck_assert_int_eq(read_text(text, 200000, &g), 0);
	free(text);
	ck_assert_int_eq(geom_encode(g, &buf, &bytes), 0);
	ck_assert_uint_lt(bytes, 1000);
	ck_assert_int_eq(geom_decode(buf, bytes, &h), 0);
	same_geom(g, h);
	geom_free(h);
	/* Cut short, or any bit of it changed. */
	for (size_t n = 0; n < bytes; n++)
		ck_assert_int_eq(geom_decode(buf, n, &h), -EBADMSG);
	for (size_t i = 0; i < bytes; i++) {
		((uint8_t *)buf)[i] ^= 1u << (i % 8);
		ck_assert_int_eq(geom_decode(buf, bytes, &h), -EBADMSG);
		((uint8_t *)buf)[i] ^= 1u << (i % 8);
	}
	free(buf);
	geom_free(g);
}
END_TEST

/* Version 1 told every run in full, without saying so. */
START_TEST(record_of_version_1)
{
	const size_t version_at = 4, bytes_at = 8, csum_at = 56, run = 6;
	struct geom *g, *h;
	uint8_t *rec;
	size_t bytes;
	void *buf;

	ck_assert_int_eq(geom_regular(100 * 2048, 2048, &g), 0);
	ck_assert_int_eq(geom_encode(g, &buf, &bytes), 0);
	rec = buf;
	ck_assert_uint_eq(rec[bytes - run - 1], 0);
	memmove(rec + bytes - run - 1, rec + bytes - run, run);
	bytes--;
	rec[version_at] = 1;
	rec[bytes_at]--;
	memset(rec + csum_at, 0, sizeof(le64));
	*(le64 *)(rec + csum_at) = le64_put(csum(rec, bytes));
	ck_assert_int_eq(geom_decode(rec, bytes, &h), 0);
	same_geom(g, h);
	geom_free(h);
	geom_free(g);
	free(buf);
}
END_TEST

/* Looks at every track; out of range would be caught by the sanitizers. */
static void walk(const struct geom *g)
{
	struct geom_track t;
	struct geom_place p;
	uint64_t step = geom_tracks(g) / 64 + 1;

	for (uint64_t i = 0; i < geom_tracks(g); i += step) {
		geom_track_at(g, i, &t);
		ck_assert_uint_eq(t.index, i);
		geom_place_of(g, t.first, &p);
		geom_lbn_at(g, &t, p.start);
		geom_track_of(g, t.first + t.sectors - 1, &t);
		ck_assert_uint_eq(t.index, i);
	}
}

/* Records with a good checksum and bad contents. */
START_TEST(a_record_with_bad_contents_is_refused)
{
	char *text = table_text(40, 10);
	struct geom *g, *h;
	uint8_t *buf, *copy;
	void *rec;
	size_t bytes;
	unsigned taken = 0;
	uint64_t seed = 1;

	ck_assert_int_eq(read_text(text, 20000, &g), 0);
	free(text);
	ck_assert_int_eq(geom_encode(g, &rec, &bytes), 0);
	buf = rec;
	copy = malloc(bytes);
	for (int i = 0; i < 20000; i++) {
		le64 sum = le64_put(0);
		int n = 1 + i % 3;

		memcpy(copy, buf, bytes);
		while (n--) {
			seed = seed * UINT64_C(6364136223846793005) + 1;
			copy[16 + (seed >> 33) % (bytes - 16)] =
				(uint8_t)(seed >> 24);
		}
		memcpy(copy + CSUM_AT, &sum, sizeof(sum));
		sum = le64_put(csum(copy, bytes));
		memcpy(copy + CSUM_AT, &sum, sizeof(sum));
		if (geom_decode(copy, bytes, &h) == 0) {
			taken++;
			walk(h);
			geom_free(h);
		}
	}
	/* Some changes are harmless (an angle), most are not. */
	ck_assert_uint_gt(taken, 0);
	ck_assert_uint_lt(taken, 15000);
	free(copy);
	free(rec);
	geom_free(g);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("geom");
	TCase *t = tcase_create("geom");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, pseudo_tracks_cover_a_disk);
	tcase_add_test(t, a_disk_shorter_than_a_track_has_one_track);
	tcase_add_test(t, a_table_becomes_the_same_tracks);
	tcase_add_test(t, short_tracks_may_lack_more_than_the_first_has);
	tcase_add_test(t, rounded_angles_cost_no_more_than_rounding);
	tcase_add_test(t, angles_of_a_table_are_the_tracks_starts);
	tcase_add_test(t, table_with_unknown);
	tcase_add_loop_test(t, a_bad_table_is_refused_with_its_reason, 0,
			    (int)(sizeof(bad_tables) / sizeof(*bad_tables)));
	tcase_add_test(t, a_table_longer_than_the_disk_is_cut);
	tcase_add_test(t, a_geometry_record_is_read_back);
	tcase_add_test(t, record_of_version_1);
	tcase_add_test(t, a_record_with_bad_contents_is_refused);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

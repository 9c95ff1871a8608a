/*
 * test_scsi.c - maps by translation, against drives with every known habit.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "diskmodel/geom_build.h"
#include "diskmodel/spec.h"
#include "extract/drive/settings.h"
#include "extract/scsi/scsi_order.h"
#include "extract/scsi/scsi_map.h"
#include "sim/model_error.h"
#include "sim/specgen.h"
#include "tests/rig/scsi_target.h"
#include "tests/rig/test.h"

struct bench {
	struct spec *spec;
	struct geom *truth;
	struct scsi_target *target;
	struct translate *translate;
	struct scsi_map map;
	struct model_error judge;
};

static void quiet(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

static void bench_open_as(struct bench *b, struct specgen options,
			  const struct scsi_target_habits *habits)
{
	struct scsi_target_habits h = *habits;

	memset(b, 0, sizeof(*b));
	msg_set_sink(quiet, NULL);
	/* Blocks of 4096 bytes: the next drive that has them. */
	for (;; options.seed++) {
		ck_assert_int_eq(specgen_make(&options, &b->spec), 0);
		if (h.block_bytes <= b->spec->physical_bytes)
			break;
		spec_free(b->spec);
	}
	if (h.block_bytes)
		b->spec->logical_bytes = h.block_bytes;
	ck_assert_int_eq(spec_geom(b->spec, &b->truth), 0);
	h.block_bytes = b->spec->logical_bytes;
	b->target = scsi_target_new(b->truth, &h);
	ck_assert_ptr_nonnull(b->target);
}

static void bench_open(struct bench *b, uint64_t seed, uint64_t bytes,
		       const struct scsi_target_habits *habits)
{
	bench_open_as(b, (struct specgen){ .seed = seed, .bytes = bytes,
					   .slipped = 0.01, .cache = -1,
					   .zero_latency = -1 }, habits);
}

static void bench_close(struct bench *b)
{
	geom_free(b->map.geom);
	translate_close(b->translate);
	scsi_target_free(b->target);
	geom_free(b->truth);
	spec_free(b->spec);
	msg_set_sink(NULL, NULL);
}

/* Every track lies where it is believed to. */
static void bench_places(const struct bench *b)
{
	struct geom_track t, model;

	for (uint64_t i = 0; i < geom_tracks(b->truth); i++) {
		geom_track_at(b->truth, i, &t);
		geom_track_of(b->map.geom, t.first, &model);
		ck_assert_uint_eq(model.cylinder, t.cylinder);
		ck_assert_uint_eq(model.surface, t.surface);
	}
}

/* The whole way a tool goes; the map must be right to the block. */
static void bench_map(struct bench *b)
{
	struct scsi_port *port = scsi_target_port(b->target);
	struct scsi_map_options options = { 0 };
	struct scsi_capacity capacity;

	ck_assert_int_eq(scsi_read_capacity(port, &capacity), 0);
	options.block_bytes = capacity.block_bytes;
	options.blocks = capacity.blocks;
	ck_assert_int_eq(translate_open(port, options.blocks, &b->translate),
			 0);
	ck_assert_int_eq(scsi_map_make(b->translate, &options, &b->map), 0);
	ck_assert_int_eq(model_error_geom(b->truth, b->map.geom, &b->judge), 0);
	ck_assert_uint_eq(b->judge.wrong, 0);
	ck_assert_uint_eq(b->judge.unknown_sectors, 0);
	ck_assert_uint_gt(b->map.verified, 0);
	bench_places(b);
}

/* Every habit, over drives of every order. */
static const struct scsi_target_habits habits[] = {
	{ 0 },
	{ .capacity_10_only = true },
	{ .short_only = true },
	{ .last_page_only = true },
	{ .short_only = true, .last_page_only = true },
	{ .attention = 97 },
	{ .two_places = true, .alternate_track = true },
	{ .block_bytes = 4096 },
};

START_TEST(habits_of_drives)
{
	struct bench b;

	bench_open(&b, 11 + (uint64_t)_i, UINT64_C(1000000000), &habits[_i]);
	bench_map(&b);
	bench_close(&b);
}
END_TEST

/* Short tracks, and a zone's first ones, have as many sectors around them as
 * others of their zone: the angles at their ends depend on it. */
START_TEST(sectors_around)
{
	const struct scsi_target_habits h = { 0 };
	struct geom_track t, model;
	uint64_t off = 0;
	struct bench b;

	bench_open(&b, 835 + (uint64_t)_i, UINT64_C(600000000), &h);
	bench_map(&b);
	for (uint64_t i = 0; i < geom_tracks(b.truth); i++) {
		geom_track_at(b.truth, i, &t);
		geom_track_of(b.map.geom, t.first, &model);
		off += model.per_sector > t.per_sector + t.per_sector / 40 ||
		       model.per_sector < t.per_sector - t.per_sector / 40;
	}
	ck_assert_uint_le(off, 1);
	bench_close(&b);
}
END_TEST

/* 3,000,000,000,000 bytes, more blocks than 32 bits can tell; of each 100
 * tracks one has so many sectors slipped. */
static struct geom *large_drive(uint32_t slipped)
{
	struct geom_build *build = geom_build_new(0, 0);
	struct geom_sweep sweep = { .known = true };
	struct geom *geom;

	for (unsigned i = 0; i < 40; i++) {
		sweep.count = 100;
		sweep.sectors = sweep.around = i % 2 ? 1500000 : 1400000;
		sweep.surface = (int32_t)(i % 2);
		sweep.cylinder_step = i % 2 ? -1 : 1;
		sweep.cylinder = 100 * (i / 2) + (i % 2 ? 99 : 0);
		ck_assert_int_eq(geom_build_odd(build, 100 * i + 7 * i % 90,
						-(int32_t)slipped), 0);
		ck_assert_int_eq(geom_build_slip(build, &(struct geom_slip){
			100 * i + 7 * i % 90, 8 * i, slipped }), 0);
		ck_assert_int_eq(geom_build_sweep(build, &sweep), 0);
	}
	ck_assert_int_eq(geom_build_finish(build, &geom), 0);
	geom_build_free(build);
	return geom;
}

static void bench_open_large(struct bench *b, uint32_t slipped,
			     const struct scsi_target_habits *h)
{
	bench_open(b, 5, UINT64_C(300000000), h);
	scsi_target_free(b->target);
	geom_free(b->truth);
	b->truth = large_drive(slipped);
	b->target = scsi_target_new(b->truth, h);
	ck_assert_ptr_nonnull(b->target);
}

START_TEST(beyond_32_bits)
{
	struct scsi_target_habits h = { .capacity_10_only = _i == 2,
					.short_only = _i == 1 };
	struct scsi_capacity capacity;
	struct translate *translate;
	struct bench b;

	bench_open_large(&b, 8, &h);
	ck_assert_uint_gt(geom_sectors(b.truth), UINT32_MAX);
	if (_i == 0) {
		bench_map(&b);
		ck_assert_uint_gt(b.map.odd, 30);
	} else if (_i == 1) {
		/* Such addresses don't go to the end of it. */
		ck_assert_int_eq(translate_open(scsi_target_port(b.target),
						geom_sectors(b.truth),
						&translate), -EOPNOTSUPP);
	} else {
		/* A capacity of "more than can be said" is none. */
		ck_assert_int_lt(scsi_read_capacity(scsi_target_port(b.target),
						    &capacity), 0);
	}
	bench_close(&b);
}
END_TEST

/* More cylinders than three bytes can tell. */
START_TEST(beyond_24_bits)
{
	const struct geom_sweep sweep = {
		.count = (1u << 24) + 100, .sectors = 16, .around = 16,
		.cylinder_step = 1, .known = true,
	};
	struct geom_build *build = geom_build_new(0, 0);
	struct translate *translate;
	struct bench b;

	bench_open(&b, 5, UINT64_C(300000000),
		   &(struct scsi_target_habits){ 0 });
	scsi_target_free(b.target);
	geom_free(b.truth);
	ck_assert_int_eq(geom_build_sweep(build, &sweep), 0);
	ck_assert_int_eq(geom_build_finish(build, &b.truth), 0);
	geom_build_free(build);
	b.target = scsi_target_new(b.truth, &(struct scsi_target_habits){ 0 });
	ck_assert_int_eq(translate_open(scsi_target_port(b.target),
					geom_sectors(b.truth), &translate),
			 -ERANGE);
	bench_close(&b);
}
END_TEST

/* Blocks to blocks, places to places: 5/26. */
START_TEST(pairs_of_one_class)
{
	static const uint8_t cdb[6] = { 0x1d, 0x10, 0, 0, 14 };
	const struct scsi_target_habits h = { 0 };
	uint8_t page[14] = { 0x40, 0, 0, 10, TRANSLATE_LONG_BLOCK,
			     TRANSLATE_SHORT_BLOCK };
	struct scsi_command command = { .cdb = cdb, .cdb_bytes = 6,
					.out = page, .out_bytes = 14 };
	struct bench b;

	bench_open(&b, 5, UINT64_C(300000000), &h);
	ck_assert_int_eq(scsi_do(scsi_target_port(b.target), &command),
			 -EOPNOTSUPP);
	ck_assert_uint_eq(command.asc, 0x26);
	page[4] = TRANSLATE_SECTOR;
	page[5] = TRANSLATE_SECTOR;
	ck_assert_int_eq(scsi_do(scsi_target_port(b.target), &command),
			 -EOPNOTSUPP);
	bench_close(&b);
}
END_TEST

START_TEST(orders_of_tracks)
{
	const struct scsi_target_habits h = { 0 };
	struct bench b;

	bench_open(&b, 40 + (uint64_t)_i, UINT64_C(2000000000), &h);
	bench_map(&b);
	bench_close(&b);
}
END_TEST

START_TEST(a_map_costs_what_is_irregular)
{
	const struct scsi_target_habits h = { 0 };
	struct bench b;

	bench_open(&b, 2, UINT64_C(20000000000), &h);
	bench_map(&b);
	ck_assert_uint_lt(b.map.translations, 16 * b.map.odd + 1000);
	bench_close(&b);
}
END_TEST

/*
 * Drives that were got wrong once: two zones whose cylinders hold the same, or
 * some tracks of which do; two short tracks that together are no track; orders
 * that come to the same place by another way.
 */
static const struct {
	uint64_t seed, bytes;
	struct scsi_target_habits habits;
	bool odd;
	double slipped;		/* 0: by the seed */
} traps[] = {
	{ 261, UINT64_C(10000000000), { 0 }, false, 0 },
	{ 264, UINT64_C(10000000000), { 0 }, false, 0 },
	{ 7, UINT64_C(73000000000), { 0 }, false, 0 },
	{ 12, UINT64_C(73000000000), { 0 }, false, 0 },
	{ 10, UINT64_C(73000000000), { 0 }, false, 0 },
	/* Two zones whose cylinders hold the same, a slip before the first. */
	{ 125, UINT64_C(10000000000), { 0 }, false, 0 },
	/* Equal slips on the first tracks of a surface, or at their ends. */
	{ 296, UINT64_C(10000000000), { 0 }, false, 0 },
	{ 7310, UINT64_C(2000000000), { 0 }, true, 0.05 },
	/* Surfaces alike but for the spares of a cylinder. */
	{ 7045, UINT64_C(2000000000), { 0 }, true, 0 },
	/* A zone's last track that is short, and where the head turns round. */
	{ 7076, UINT64_C(10000000000), { 0 }, true, 0.05 },
	{ 7205, UINT64_C(2000000000), { 0 }, true, 0.05 },
	{ 7495, UINT64_C(2000000000), { 0 }, true, 0 },
	/* A zone that begins at the other end of its cylinder. */
	{ 7016, UINT64_C(2000000000), { 0 }, false, 0.022 },
	/* Part of a track that is as long as one with the next zone's first,
	 * behind another track of its head. */
	{ 353, UINT64_C(20000000000), { 0 }, false, 0.01 },
	/* Spares of tracks and of cylinders. */
	{ 7007, UINT64_C(10000000000), { 0 }, true, 0.05 },
	{ 7212, UINT64_C(10000000000), { 0 }, true, 0.05 },
	{ 2, UINT64_C(73000000000), { 0 }, false, 0.022 },
	/* Slips where sums don't tell. */
	{ 1, UINT64_C(73000000000), { 0 }, false, 0.022 },
	{ 4, UINT64_C(73000000000), { 0 }, false, 0.022 },
	{ 5, UINT64_C(73000000000), { 0 }, false, 0.022 },
	/* All blocks of a track's first sector are reassigned. */
	{ 133, UINT64_C(600000000), { 0 }, false, 0.01 },
	{ 1528, UINT64_C(600000000), { 0 }, false, 0.01 },
	/* Spares that do not make up for some slips. */
	{ 7299, UINT64_C(10000000000), { 0 }, true, 0.05 },
	/* A size learned from a scratch, and a sum that is right by it. */
	{ 20252, UINT64_C(1000000000), { 0 }, true, 0.05 },
	/* Spares that make up for what two slips of three lost. */
	{ 500768, UINT64_C(4000000000), { 0 }, true, 0.05 },
	{ 702316, UINT64_C(4000000000), { 0 }, true, 0.05 },
	{ 700695, UINT64_C(9000000000), { 0 }, true, 0 },
	/* A sweep that comes from the other end. */
	{ 126, UINT64_C(2000000000), { .two_places = true,
				       .alternate_track = true }, false,
	  0.022 },
	{ 20068, UINT64_C(600000000), { .two_places = true,
					.alternate_track = true }, true, 0 },
};

START_TEST(traps_of_old)
{
	struct specgen options = { .seed = traps[_i].seed,
				   .bytes = traps[_i].bytes, .cache = -1,
				   .zero_latency = -1 };
	struct bench b;

	options.odd = traps[_i].odd;
	options.slipped = traps[_i].slipped > 0 ? traps[_i].slipped :
			  options.seed > 100 ? -1 : 0.022;
	bench_open_as(&b, options, &traps[_i].habits);
	bench_map(&b);
	bench_close(&b);
}
END_TEST

/* Tracks of one head hold a block less in some cylinders in a row, and as many
 * as before behind them, where a slip of another head makes up for it. */
START_TEST(a_scratch_is_no_zone)
{
	const char *top = getenv("top_srcdir");
	struct bench b = { 0 };
	char path[4096];

	snprintf(path, sizeof(path), "%s/drives/cheetah-9lp.json",
		 top ? top : ".");
	msg_set_sink(quiet, NULL);
	ck_assert_int_eq(spec_read(path, &b.spec), 0);
	ck_assert_int_eq(spec_geom(b.spec, &b.truth), 0);
	b.target = scsi_target_new(b.truth, &(struct scsi_target_habits){ 0 });
	ck_assert_ptr_nonnull(b.target);
	bench_map(&b);
	bench_close(&b);
}
END_TEST

START_TEST(no_page_is_said)
{
	const struct scsi_target_habits h = { .no_page = true };
	struct bench b;

	bench_open(&b, 3, UINT64_C(300000000), &h);
	ck_assert_int_eq(translate_open(scsi_target_port(b.target), 1000,
					&b.translate), -EOPNOTSUPP);
	bench_close(&b);
}
END_TEST

static bool stop_soon(void *arg, uint64_t done, uint64_t blocks)
{
	(void)done;
	(void)blocks;
	return --*(int *)arg > 0;
}

START_TEST(interrupted)
{
	const struct scsi_target_habits h = { 0 };
	int left = 2;
	struct scsi_map_options options = { .progress = stop_soon,
					    .arg = &left };
	struct bench b;

	bench_open_as(&b, (struct specgen){
		.seed = 2, .bytes = UINT64_C(73000000000), .slipped = 0.022,
		.cache = -1, .zero_latency = -1 }, &h);
	options.block_bytes = b.spec->logical_bytes;
	options.blocks = geom_sectors(b.truth) / (options.block_bytes / 512);
	ck_assert_int_eq(translate_open(scsi_target_port(b.target),
					options.blocks, &b.translate), 0);
	ck_assert_int_eq(scsi_map_make(b.translate, &options, &b.map), -EINTR);
	ck_assert_ptr_null(b.map.geom);
	bench_close(&b);
}
END_TEST

/* ---- settings ---- */

static bool page_is(const struct bench *b, unsigned page, unsigned at,
		    uint8_t value)
{
	unsigned n;
	const uint8_t *is = scsi_target_page(b->target, page, &n);

	return is && at < n && is[at] == value;
}

/* What is set otherwise is what can be, and comes back; also by who finds only
 * the text.  The write cache only where writes are measured. */
START_TEST(settings_of_a_drive)
{
	const struct scsi_target_habits h = { .attention = 3 };
	struct settings s = { 0 }, later = { 0 };
	char text[2048], *line, *at;
	struct scsi_port *port;
	struct bench b;

	bench_open(&b, 5, UINT64_C(300000000), &h);
	port = scsi_target_port(b.target);
	settings_look_pages(&s, port, "/dev/x", _i);
	ck_assert_uint_eq(s.n, 3);
	for (unsigned i = 0; i < s.n; i++)
		ck_assert_int_eq(settings_set_page(port, s.v[i].want), 0);
	ck_assert(page_is(&b, 0x08, 2, _i ? 0x01 : 0x05));
	ck_assert(page_is(&b, 0x08, 12, 0));
	ck_assert(page_is(&b, 0x11c, 4, 0));
	ck_assert(page_is(&b, 0x1a, 2, 0));
	ck_assert(page_is(&b, 0x1a, 3, 0));

	ck_assert_uint_lt(settings_text(&s, text, sizeof(text)), sizeof(text));
	for (line = strtok_r(text, "\n", &at); line;
	     line = strtok_r(NULL, "\n", &at))
		ck_assert(settings_parse(&later, line));
	ck_assert_uint_eq(later.n, 3);
	for (unsigned i = 0; i < later.n; i++)
		ck_assert_int_eq(settings_set_page(port, later.v[i].was), 0);
	ck_assert(page_is(&b, 0x08, 2, 0x04));
	ck_assert(page_is(&b, 0x11c, 4, 1));
	ck_assert(page_is(&b, 0x1a, 2, 1));
	ck_assert(page_is(&b, 0x1a, 3, 0x0f));
	/* Nonsense in a state file. */
	ck_assert_int_lt(settings_set_page(port, "zz"), 0);
	ck_assert_int_lt(settings_set_page(port, "08"), 0);
	ck_assert_int_lt(settings_set_page(port, "5c010fff01"), 0);
	bench_close(&b);
}
END_TEST

/* A serpentine of two surfaces, three cylinders each. */
START_TEST(order_there_and_back)
{
	static struct track_order order = {
		.slot = {
			{ .head = 0, .cylinder = 0, .step = 1, .tracks = 3,
			  .blocks = 10 },
			{ .head = 1, .cylinder = 2, .step = -1, .tracks = 3,
			  .blocks = 9 },
		},
		.slots = 2,
		.cylinder_step = 3,
	};
	static const int cylinder[] = { 0, 1, 2, 2, 1, 0 };
	struct track_place place;

	order_settle(&order);
	ck_assert_uint_eq(order_blocks(&order, 7), 57 + 10);
	for (unsigned track = 0; track < 30; track++) {
		order_place(&order, track, &place);
		ck_assert_int_eq(place.head, track / 3 % 2);
		ck_assert_int_eq(place.cylinder, (int)track / 6 * 3 +
						 cylinder[track % 6]);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("scsi");
	TCase *tc = tcase_create("scsi");

	tcase_add_loop_test(tc, habits_of_drives, 0,
			    sizeof(habits) / sizeof(habits[0]));
	tcase_add_loop_test(tc, sectors_around, 0, 4);
	tcase_add_loop_test(tc, beyond_32_bits, 0, 3);
	tcase_add_test(tc, beyond_24_bits);
	tcase_add_test(tc, pairs_of_one_class);
	tcase_add_loop_test(tc, orders_of_tracks, 0, 8);
	tcase_add_test(tc, a_map_costs_what_is_irregular);
	tcase_add_loop_test(tc, traps_of_old, 0,
			    sizeof(traps) / sizeof(traps[0]));
	tcase_add_test(tc, a_scratch_is_no_zone);
	tcase_add_test(tc, no_page_is_said);
	tcase_add_test(tc, interrupted);
	tcase_add_loop_test(tc, settings_of_a_drive, 0, 2);
	tcase_add_test(tc, order_there_and_back);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}

/*
 * scsi_lab.c - maps by translation of drives from seeds, against their true
 * ones; by hand.
 *
 *   scsi_lab [--HABIT] [--attention N] [--show TRACKS] [--quiet] SPEC...
 *
 * A SPEC is a file, or "SEED[,KEY=VALUE...]" (sim/specgen.h).  For habits see
 * the table below, and tests/rig/scsi_target.h.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "diskmodel/geom_build.h"
#include "diskmodel/spec.h"
#include "extract/scsi/scsi_map.h"
#include "sim/model_error.h"
#include "sim/specgen.h"
#include "tests/rig/scsi_target.h"

struct sum {
	uint64_t drives, translations, most, wrong, places;
	uint64_t around;	/* tracks shown beside a wrong one */
};

static const struct {
	const char *name;
	size_t at;		/* a bool of the habits */
} habit_names[] = {
#define HABIT(name, member) \
	{ name, offsetof(struct scsi_target_habits, member) }
	HABIT("--short", short_only),
	HABIT("--last-page", last_page_only),
	HABIT("--two-places", two_places),
	HABIT("--alternate-track", alternate_track),
#undef HABIT
};
#define HABITS (sizeof(habit_names) / sizeof(*habit_names))

static bool set_habit(const char *name, struct scsi_target_habits *habits)
{
	for (size_t i = 0; i < HABITS; i++) {
		if (!strcmp(name, habit_names[i].name)) {
			*(bool *)((char *)habits + habit_names[i].at) = true;
			return true;
		}
	}
	return false;
}

static void quiet(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

static int make_spec(const char *text, struct spec **spec)
{
	struct specgen options;
	char *end;

	strtoul(text, &end, 0);
	if (end == text || (*end && *end != ','))
		return spec_read(text, spec);
	return specgen_parse(text, &options) ? 1 :
					       specgen_make(&options, spec);
}

static const char *order_of(const struct spec *spec)
{
	return spec->order == SPEC_CYLINDER ? "cylinder" :
	       spec->order == SPEC_CYLINDER_SERPENTINE ? "back-forth" :
							 "serpentine";
}

/* One number for all that a map says of its tracks (FNV-1a). */
static uint64_t map_sum(const struct geom *geom)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);
	struct geom_track t;

	for (uint64_t i = 0; i < geom_tracks(geom); i++) {
		geom_track_at(geom, i, &t);
		const uint64_t said[] = { t.first, t.sectors, t.cylinder,
					  t.surface, t.per_sector, t.known };

		for (size_t k = 0; k < sizeof(said) / sizeof(*said); k++)
			sum = (sum ^ said[k]) * UINT64_C(0x100000001b3);
	}
	return sum;
}

static void report(const char *name, const struct spec *spec,
		   const struct scsi_map *map, const struct model_error *judge)
{
	const struct spec_zone *z = &spec->zones[0];
	size_t bytes = 0;
	void *record;

	if (!geom_encode(map->geom, &record, &bytes))
		free(record);
	printf("%-30s %-10s heads %2u group %4u spares %u/%u tracks %8ju odd "
	       "%5ju translations %7ju", name, order_of(spec), spec->surfaces,
	       spec->group_cylinders, z->spares_track, z->spares_cylinder,
	       (uintmax_t)map->tracks, (uintmax_t)map->odd,
	       (uintmax_t)map->translations);
	printf(" wrong %ju unknown %ju%s map %016jx record %zu: %u patterns of "
	       "%u parts, %u runs, %u odd\n", (uintmax_t)judge->wrong,
	       (uintmax_t)judge->unknown_sectors,
	       "", (uintmax_t)map_sum(map->geom),
	       bytes, map->geom->patterns_n, map->geom->parts_n,
	       map->geom->runs_n, map->geom->odds_n);
}

/* A track and so many on both sides of it. */
static void show(const char *who, const struct geom *geom, uint64_t lbn,
		 uint64_t around)
{
	struct geom_track t;
	uint64_t i, end;

	geom_track_of(geom, lbn, &t);
	end = t.index + around < geom_tracks(geom) ? t.index + around :
						     geom_tracks(geom);
	for (i = t.index > around ? t.index - around : 0; i < end; i++) {
		geom_track_at(geom, i, &t);
		printf("  %s %ju: %ju + %u at %u/%u\n", who, (uintmax_t)i,
		       (uintmax_t)t.first, t.sectors, t.cylinder, t.surface);
	}
}

/* Tracks right in their blocks, and believed to lie elsewhere. */
static uint64_t misplaced(const struct geom *truth, const struct geom *geom,
			  uint64_t around)
{
	struct geom_track t, b;
	uint64_t i, n = 0;

	for (i = 0; i < geom_tracks(truth); i++) {
		geom_track_at(truth, i, &t);
		geom_track_of(geom, t.first, &b);
		if (b.known && b.first == t.first &&
		    (b.cylinder != t.cylinder || b.surface != t.surface)) {
			if (!n)
				show("misplaced", geom, t.first, around);
			if (!n)
				show("true", truth, t.first, around);
			n++;
		}
	}
	return n;
}

/* Tracks that are believed to have many more or fewer sectors around them than
 * they have. */
static uint64_t misread(const struct geom *truth, const struct geom *geom)
{
	struct geom_track t, b;
	uint64_t n = 0;

	for (uint64_t i = 0; i < geom_tracks(truth); i++) {
		geom_track_at(truth, i, &t);
		geom_track_of(geom, t.first, &b);
		n += b.per_sector > t.per_sector + t.per_sector / 40 ||
		     b.per_sector < t.per_sector - t.per_sector / 40;
	}
	return n;
}

static int run(const char *name, const struct scsi_target_habits *habits,
	       struct sum *sum)
{
	struct scsi_map_options options = { 0 };
	struct scsi_target_habits h = *habits;
	struct translate *translate;
	struct scsi_target *target;
	struct scsi_port *port;
	struct geom *truth;
	struct model_error judge;
	struct scsi_map map;
	struct spec *spec;
	uint64_t places;

	if (make_spec(name, &spec) || spec_geom(spec, &truth))
		return 1;
	h.block_bytes = spec->logical_bytes;
	target = scsi_target_new(truth, &h);
	if (!target)
		return 1;
	port = scsi_target_port(target);
	options.block_bytes = h.block_bytes;
	options.blocks = geom_sectors(truth) / (h.block_bytes / 512);
	if (translate_open(port, options.blocks, &translate) ||
	    scsi_map_make(translate, &options, &map) ||
	    model_error_geom(truth, map.geom, &judge)) {
		printf("%s: failed\n", name);
		return 1;
	}
	report(name, spec, &map, &judge);
	if (judge.wrong) {
		show("true", truth, judge.first_wrong, sum->around);
		show("believed", map.geom, judge.first_wrong,
		     sum->around);
	}
	printf("  %ju of another size around\n",
	       (uintmax_t)misread(truth, map.geom));
	places = misplaced(truth, map.geom, sum->around);
	if (places)
		printf("  %ju misplaced\n", (uintmax_t)places);
	sum->places += places;
	sum->drives++;
	sum->translations += map.translations;
	if (map.translations > sum->most)
		sum->most = map.translations;
	sum->wrong += judge.wrong;
	geom_free(map.geom);
	translate_close(translate);
	scsi_target_free(target);
	geom_free(truth);
	spec_free(spec);
	return judge.wrong || places;
}

int main(int argc, char **argv)
{
	struct scsi_target_habits habits = { 0 };
	struct sum sum = { .around = 4 };
	int bad = 0;

	for (int i = 1; i < argc; i++) {
		if (set_habit(argv[i], &habits))
			continue;
		if (!strcmp(argv[i], "--quiet"))
			msg_set_sink(quiet, NULL);
		else if (!strcmp(argv[i], "--show") && i + 1 < argc)
			sum.around = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--attention") && i + 1 < argc)
			habits.attention = (unsigned)atoi(argv[++i]);
		else
			bad |= run(argv[i], &habits, &sum);
	}
	printf("%ju drives, translations: mean %ju, most %ju; wrong %ju, "
	       "misplaced %ju\n", (uintmax_t)sum.drives,
	       (uintmax_t)(sum.drives ? sum.translations / sum.drives : 0),
	       (uintmax_t)sum.most, (uintmax_t)sum.wrong,
	       (uintmax_t)sum.places);
	return bad;
}

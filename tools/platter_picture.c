/*
 * platter_picture.c - see platter_picture.h.
 *
 * The first sectors lie outside.  The disk is shown in equal parts, each of
 * them a ring.  A ring has an arc for each kind of use, whose share of the ring
 * is the kind's share of the part.  Heat is shown in a sector that the arcs
 * leave free.
 */
#include "tools/platter_picture.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "tools/draw.h"
#include "tools/facts.h"

/* The picture, in pixels: a ring, and a legend beside it. */
#define WIDTH 560u
#define HEIGHT 400u
#define CENTRE 190.0		/* from the left and from above */
#define OUTER 175.0		/* radius of the outermost track */
#define INNER 55.0		/* radius of the innermost one */
#define LEGEND 395.0		/* from the left */
#define LINE 24.0		/* of the legend */
#define TEXT_DOWN 12.0
#define USE_TURN 0.88		/* of a turn is for what lies where ... */
#define HEAT_FROM 0.9		/* ... and this is the strip for heat */
#define HEAT_TURN 0.08
/* Tracks whose lengths differ by less than this part lie in one zone: slips and
 * spares make such differences. */
#define SAME_ZONE 0.004

/* Places in an array of trax.platter. */
enum { FREE, LOG, COPIES, TRACK_SECTORS, KNOWN };

static const char *const file_colour = "#1f4e9c";
static const char *const free_colour = "#e8ecf4";
static const char *const log_colour = "#d2691e", *const copy_colour = "#3a9a5c";
static const char *const heat_colour = "#b00020", *const zone_colour = "#222";

/* Sectors are spread over the area: the outer tracks hold more. */
static double radius_of(double share)
{
	return sqrt(OUTER * OUTER - share * (OUTER * OUTER - INNER * INNER));
}

/* Draws an arc that begins at the share `from` of a turn and is `turn` long;
 * the ring is `width` wide. */
static void arc(FILE *f, double radius, double width, double from, double turn,
		const char *colour, double opacity)
{
	double around = 2 * M_PI * radius;

	if (turn <= 0)
		return;
	fprintf(f, "<circle cx=\"%.0f\" cy=\"%.0f\" r=\"%.2f\" fill=\"none\" "
		"stroke=\"%s\" stroke-opacity=\"%.2f\" stroke-width=\"%.2f\" "
		"stroke-dasharray=\"%.2f %.2f\" transform=\"rotate(%.2f %.0f "
		"%.0f)\"/>\n", CENTRE, CENTRE, radius, colour, opacity, width,
		turn * around, (1 - turn) * around, 360 * from - 90, CENTRE,
		CENTRE);
}

static void put_part(FILE *f, json_t *part, double from, double to)
{
	/* A little wider than it is, so that no gaps show. */
	double outer = radius_of(from), width = outer - radius_of(to) + 0.3;
	double radius = outer - width / 2;
	double log = sample_number(part, LOG);
	double copies = sample_number(part, COPIES);
	double free = sample_number(part, FREE);
	double files = fmax(0, 1 - free - log - copies);

	arc(f, radius, width, 0, USE_TURN * files, file_colour, 1);
	arc(f, radius, width, USE_TURN * files, USE_TURN * copies, copy_colour,
	    1);
	arc(f, radius, width, USE_TURN * (files + copies), USE_TURN * log,
	    log_colour, 1);
}

static void put_heat(FILE *f, json_t *heat)
{
	json_t *regions = json_object_get(heat, "regions"), *region;
	double sectors = fact_number(heat, "sectors"), most = 1;
	double unit = fact_number(heat, "region_sectors");
	size_t i;

	arc(f, (OUTER + INNER) / 2, OUTER - INNER, HEAT_FROM, HEAT_TURN,
	    "#f6e9e9", 1);
	json_array_foreach(regions, i, region)
		most = fmax(most, sample_number(region, 1));
	json_array_foreach(regions, i, region) {
		double first = sample_number(region, 0) * unit / sectors;
		double outer = radius_of(fmin(first, 1));
		double inner = radius_of(fmin(first + unit / sectors, 1));
		/* Thin rings are to be seen, too. */
		double width = fmax(outer - inner, 1);

		arc(f, outer - width / 2, width, HEAT_FROM, HEAT_TURN,
		    heat_colour, 0.15 + 0.85 * sample_number(region, 1) / most);
	}
}

/* Returns how many zones there are; 0: no tracks are known. */
static unsigned put_zones(FILE *f, json_t *parts)
{
	double count = (double)json_array_size(parts), before = 0;
	unsigned zones = 0;
	json_t *part;
	size_t i;

	json_array_foreach(parts, i, part) {
		double track = sample_number(part, TRACK_SECTORS);

		if (!json_is_true(json_array_get(part, KNOWN)))
			continue;
		if (fabs(track - before) > SAME_ZONE * before) {
			zones++;
			if (before > 0)
				fprintf(f, "<circle cx=\"%.0f\" cy=\"%.0f\" "
					"r=\"%.2f\" fill=\"none\" stroke=\"%s\""
					" stroke-width=\"0.8\"/>\n", CENTRE,
					CENTRE, radius_of((double)i / count),
					zone_colour);
		}
		before = track;
	}
	return zones;
}

static void put_key(FILE *f, unsigned line, const char *colour,
		    const char *text)
{
	double y = 60 + LINE * line;

	fprintf(f, "<rect x=\"%.0f\" y=\"%.0f\" width=\"14\" height=\"14\" "
		"fill=\"%s\" stroke=\"#888\"/>\n", LEGEND, y, colour);
	draw_text(f, LEGEND + 22, y + TEXT_DOWN, "start", zone_colour, text);
}

static void put_legend(FILE *f, json_t *parts, unsigned zones, bool heat)
{
	double sum[KNOWN] = { 0 }, n = (double)json_array_size(parts);
	char text[64];
	json_t *part;
	size_t i, kind;

	json_array_foreach(parts, i, part)
		for (kind = FREE; kind <= COPIES; kind++)
			sum[kind] += 100 * sample_number(part, kind) / n;
	snprintf(text, sizeof(text), "files and tree %.1f %%",
		 fmax(0, 100 - sum[FREE] - sum[LOG] - sum[COPIES]));
	put_key(f, 0, file_colour, text);
	snprintf(text, sizeof(text), "copies %.1f %%", sum[COPIES]);
	put_key(f, 1, copy_colour, text);
	snprintf(text, sizeof(text), "log %.2f %%", sum[LOG]);
	put_key(f, 2, log_colour, text);
	snprintf(text, sizeof(text), "free %.1f %%", sum[FREE]);
	put_key(f, 3, free_colour, text);
	if (heat)
		put_key(f, 4, heat_colour, "used most (strip)");
	snprintf(text, sizeof(text), "circles: %u zones", zones);
	draw_text(f, LEGEND, 60 + LINE * 6, "start", zone_colour,
		  zones ? text : "no zones known");
	draw_text(f, LEGEND, 60 + LINE * 7, "start", zone_colour,
		  "first sectors outside");
}

void platter_svg(FILE *f, json_t *platter, json_t *heat)
{
	json_t *parts = json_object_get(platter, "parts"), *part;
	double n = (double)json_array_size(parts);
	unsigned zones;
	size_t i;

	if (n <= 0)
		return;
	draw_begin(f, WIDTH, HEIGHT, 13);
	arc(f, (OUTER + INNER) / 2, OUTER - INNER, 0, USE_TURN, free_colour, 1);
	json_array_foreach(parts, i, part)
		put_part(f, part, (double)i / n, (double)(i + 1) / n);
	if (heat)
		put_heat(f, heat);
	zones = put_zones(f, parts);
	fprintf(f, "<circle cx=\"%.0f\" cy=\"%.0f\" r=\"8\" fill=\"#556\"/>\n",
		CENTRE, CENTRE);
	put_legend(f, parts, zones, heat);
	draw_end(f);
}

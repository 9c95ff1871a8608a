/*
 * peers_page.c - see peers_page.h.
 *
 * The page begins with the workloads in which traxfs is slower than the best
 * other file system.  Then it has everything as a table and as bars, the times
 * of single operations, what the head did, and where things lie.
 */
#include "tools/peers_page.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/amounts.h"
#include "tools/draw.h"
#include "tools/facts.h"
#include "tools/page.h"
#include "tools/platter_picture.h"

/* A bar, in pixels: its place, what is beside it, and the room for its text. */
#define BAR_LEFT 90.0
#define BAR_MOST 420.0
#define BAR_HEIGHT 18.0
#define BAR_APART 24.0
#define BAR_TEXT 190.0
/* A panel of the times of operations, in pixels. */
#define PANEL_WIDTH 420.0
#define PANEL_HEIGHT 200.0
#define PANEL_MARGIN 60.0
#define PANEL_KEY 110.0		/* for the names, right of it */
#define KEY_APART 18.0
/* Number of colours for file systems; with more of them colours repeat. */
#define COLOURS 6u

static const char *const fs_colours[COLOURS] = {
	"#1f4e9c", "#d2691e", "#3a9a5c", "#b03060", "#8060b0", "#707070",
};

static const struct {
	const char *key, *name, *colour;
} head_parts[] = {
	{ "seek_s", "seek", "#b03060" },
	{ "rotation_s", "rotation", "#d2691e" },
	{ "transfer_s", "transfer", "#1f4e9c" },
	{ "ahead_s", "read ahead by the drive", "#7aa6e0" },
	{ "idle_s", "idle", "#dddddd" },
};
#define HEAD_PARTS (sizeof(head_parts) / sizeof(head_parts[0]))

static const char *const latency_keys[] = {
	"p50_ms", "p90_ms", "p99_ms", "p999_ms", "longest_ms",
};
#define LATENCIES (sizeof(latency_keys) / sizeof(latency_keys[0]))

/* ---- Rows of a report ---- */

static bool is_of(json_t *row, const char *key, const char *text)
{
	return !strcmp(fact_string(row, key), text);
}

/* The i-th row of a workload; NULL: there are fewer. */
static json_t *row_of(json_t *rows, const char *workload, unsigned i)
{
	json_t *row;
	size_t k;

	json_array_foreach(rows, k, row)
		if (is_of(row, "workload", workload) && !i--)
			return row;
	return NULL;
}

/* The row of traxfs, and that of the best other; either may be NULL. */
static json_t *best_other(json_t *rows, const char *workload, json_t **ours)
{
	json_t *best = NULL, *row;

	*ours = NULL;
	for (unsigned i = 0; (row = row_of(rows, workload, i)); i++) {
		if (is_of(row, "fs", "traxfs"))
			*ours = row;
		else if (!best || fact_number(row, "traxfs_over_this") >
				  fact_number(best, "traxfs_over_this"))
			best = row;
	}
	return best;
}

/* Is it the first row of its workload? */
static bool is_first(json_t *rows, json_t *row)
{
	return row_of(rows, fact_string(row, "workload"), 0) == row;
}

static struct text value_text(json_t *row)
{
	struct text text;

	snprintf(text.s, sizeof(text.s), "%.4g %s", fact_number(row, "value"),
		 fact_string(row, "unit"));
	return text;
}

/* ---- Tables ---- */

static void put_slower(FILE *f, json_t *rows)
{
	json_t *row, *ours, *best;
	unsigned n = 0;
	size_t i;

	fputs("<h2 id=\"slower\">Where traxfs is slower than the best other"
	      "</h2>\n<table>\n<tr><th>workload<th class=\"n\">traxfs<th>best "
	      "other<th class=\"n\">it<th class=\"n\">times as slow</tr>\n", f);
	json_array_foreach(rows, i, row) {
		if (!is_first(rows, row))
			continue;
		best = best_other(rows, fact_string(row, "workload"), &ours);
		if (!ours || !best ||
		    fact_number(best, "traxfs_over_this") <= 1)
			continue;
		fprintf(f, "<tr><td>%s<td class=\"n\">%s<td>%s<td class=\"n\">"
			"%s<td class=\"n bad\">%.2f</tr>\n",
			fact_string(row, "workload"), value_text(ours).s,
			fact_string(best, "fs"), value_text(best).s,
			fact_number(best, "traxfs_over_this"));
		n++;
	}
	fputs("</table>\n", f);
	if (!n)
		fputs("<p>Nowhere.</p>\n", f);
}

static void put_all(FILE *f, json_t *rows)
{
	static const char *const keys[] = {
		"least", "most", "traxfs_over_this", "over_limit", "requests",
		"p50_ms", "p99_ms", "longest_ms", "beside_mb_s",
	};
	json_t *row;
	size_t i, k;

	fputs("<h2 id=\"all\">All workloads</h2>\n<table>\n<tr><th>workload<th>"
	      "file system<th class=\"n\">median<th class=\"n\">least<th "
	      "class=\"n\">most<th class=\"n\">traxfs / it<th class=\"n\">of "
	      "the limit<th class=\"n\">requests<th class=\"n\">p50 ms<th "
	      "class=\"n\">p99 ms<th class=\"n\">longest ms<th class=\"n\">"
	      "MB/s beside</tr>\n", f);
	json_array_foreach(rows, i, row) {
		fprintf(f, "<tr title=\"%s\"><td>%s<td>%s<td class=\"n\">%s",
			fact_string(row, "about"), fact_string(row, "workload"),
			fact_string(row, "fs"), value_text(row).s);
		for (k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
			if (json_object_get(row, keys[k]))
				fprintf(f, "<td class=\"n\">%.4g",
					fact_number(row, keys[k]));
			else
				fputs("<td>", f);
		fputs("</tr>\n", f);
	}
	fputs("</table>\n", f);
}

/* ---- Pictures ---- */

static void put_bar(FILE *f, double x, double y, double width,
		    const char *colour)
{
	fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
		"height=\"%.0f\" fill=\"%s\"/>\n", x, y, width, BAR_HEIGHT,
		colour);
}

static unsigned picture_begin(FILE *f, json_t *rows, const char *workload)
{
	unsigned n = 0;

	while (row_of(rows, workload, n))
		n++;
	draw_begin(f, (unsigned)(BAR_LEFT + BAR_MOST + BAR_TEXT),
		   (unsigned)(BAR_APART * (n + 1)), 13);
	draw_text(f, 0, BAR_HEIGHT - 4, "start", "black", workload);
	return n;
}

static void bars_of_values(FILE *f, json_t *rows, const char *workload)
{
	unsigned n = picture_begin(f, rows, workload);
	double most = 0;

	for (unsigned i = 0; i < n; i++) {
		double v = fact_number(row_of(rows, workload, i), "value");

		most = v > most ? v : most;
	}
	for (unsigned i = 0; i < n; i++) {
		json_t *row = row_of(rows, workload, i);
		double y = BAR_APART * (i + 1);
		double width = most > 0 ? BAR_MOST *
			fact_number(row, "value") / most : 0;

		draw_text(f, BAR_LEFT - 8, y + BAR_HEIGHT - 4, "end", "black",
			  fact_string(row, "fs"));
		put_bar(f, BAR_LEFT, y, width, fs_colours[i % COLOURS]);
		draw_text(f, BAR_LEFT + width + 6, y + BAR_HEIGHT - 4, "start",
			  "black", value_text(row).s);
	}
	draw_end(f);
}

static double head_seconds(json_t *row)
{
	double sum = 0;

	for (size_t k = 0; k < HEAD_PARTS; k++)
		sum += fact_number(row, head_parts[k].key);
	return sum;
}

static void bars_of_head(FILE *f, json_t *rows, const char *workload)
{
	unsigned n = picture_begin(f, rows, workload);
	double most = 0;

	for (unsigned i = 0; i < n; i++) {
		double v = head_seconds(row_of(rows, workload, i));

		most = v > most ? v : most;
	}
	for (unsigned i = 0; i < n && most > 0; i++) {
		json_t *row = row_of(rows, workload, i);
		double x = BAR_LEFT, y = BAR_APART * (i + 1);
		char text[64];

		draw_text(f, BAR_LEFT - 8, y + BAR_HEIGHT - 4, "end", "black",
			  fact_string(row, "fs"));
		for (size_t k = 0; k < HEAD_PARTS; k++) {
			double width = BAR_MOST / most *
				fact_number(row, head_parts[k].key);

			put_bar(f, x, y, width, head_parts[k].colour);
			x += width;
		}
		snprintf(text, sizeof(text), "%.3g s", head_seconds(row));
		draw_text(f, x + 6, y + BAR_HEIGHT - 4, "start", "black", text);
	}
	draw_end(f);
}

/* How long the slower part of operations took: from the half that is faster, at
 * the left, to all of them. */
static void curves_of_latency(FILE *f, json_t *rows, const char *workload)
{
	struct draw_panel p = {
		.f = f, .left = PANEL_MARGIN, .top = 30, .width = PANEL_WIDTH,
		.height = PANEL_HEIGHT, .x_max = LATENCIES - 1,
	};
	static const char *const names[LATENCIES] = {
		"50 %", "90 %", "99 %", "99.9 %", "all",
	};
	json_t *row;

	if (!json_object_get(row_of(rows, workload, 0), latency_keys[0]))
		return;
	for (unsigned i = 0; (row = row_of(rows, workload, i)); i++) {
		double v = fact_number(row, latency_keys[LATENCIES - 1]);

		p.y_max = v > p.y_max ? v : p.y_max;
	}
	draw_begin(f, (unsigned)(PANEL_MARGIN + PANEL_WIDTH + PANEL_KEY),
		   (unsigned)(PANEL_HEIGHT + PANEL_MARGIN), 12);
	draw_border(&p, workload);
	draw_y_axis(&p, &(struct draw_axis){ 1, "", "ms, at most", 45 });
	for (size_t k = 0; k < LATENCIES; k++)
		draw_text(f, p.left + p.width * (double)k / p.x_max,
			  p.top + p.height + 16, "middle", "black", names[k]);
	for (unsigned i = 0; (row = row_of(rows, workload, i)); i++) {
		p.colour = fs_colours[i % COLOURS];
		draw_curve(&p);
		for (size_t k = 0; k < LATENCIES; k++)
			draw_curve_to(&p, (double)k,
				      fact_number(row, latency_keys[k]));
		draw_curve_end(&p);
		draw_text(f, p.left + p.width + 8, p.top + KEY_APART * (i + 1),
			  "start", p.colour, fact_string(row, "fs"));
	}
	draw_end(f);
}

static void put_pictures(FILE *f, json_t *rows, const char *id,
			 const char *title,
			 void (*draw)(FILE *f, json_t *rows,
				      const char *workload))
{
	json_t *row;
	size_t i;

	fprintf(f, "<h2 id=\"%s\">%s</h2>\n<div class=\"row\">\n", id, title);
	json_array_foreach(rows, i, row)
		if (is_first(rows, row))
			draw(f, rows, fact_string(row, "workload"));
	fputs("</div>\n", f);
}

static void put_head_key(FILE *f)
{
	fputs("<p>", f);
	for (size_t k = 0; k < HEAD_PARTS; k++)
		fprintf(f, "<span style=\"color:%s\">&#9632;</span> %s ",
			head_parts[k].colour, head_parts[k].name);
	fputs("</p>\n", f);
}

static void put_page(FILE *f, json_t *report)
{
	json_t *rows = json_object_get(report, "rows");
	json_t *platter = json_object_get(report, "platter");

	page_begin(f, "traxfs and its peers");
	fputs("<h1>traxfs and its peers</h1>\n<p>Drive: ", f);
	page_text(f, fact_string(report, "drive"));
	fprintf(f, ". Medians of %.0f rounds, sizes at %.0f %%",
		fact_number(report, "rounds"), fact_number(report, "percent"));
	if (fact_number(report, "memory_mib") > 0)
		fprintf(f, ", with %.0f MiB of memory",
			fact_number(report, "memory_mib"));
	if (fact_number(report, "aged_percent") > 0)
		fprintf(f, "; aged: used until it was %.0f %% full",
			fact_number(report, "aged_percent"));
	fputs(".</p>\n", f);
	put_slower(f, rows);
	put_all(f, rows);
	put_pictures(f, rows, "bars", "What counts", bars_of_values);
	put_pictures(f, rows, "latencies", "How long operations took",
		     curves_of_latency);
	put_pictures(f, rows, "head", "What the head did", bars_of_head);
	put_head_key(f);
	if (json_is_object(platter)) {
		fputs("<h2 id=\"map\">Where things lie on traxfs</h2>\n", f);
		platter_svg(f, platter, NULL);
	}
	page_end(f);
}

int peers_page_write(json_t *report, const char *path)
{
	FILE *f = fopen(path, "w");
	int err = f ? 0 : -errno;

	if (f) {
		put_page(f, report);
		err = ferror(f) ? -EIO : 0;
		if (fclose(f) && !err)
			err = -EIO;
	}
	if (err)
		fprintf(stderr, "%s: %s\n", path, strerror(-err));
	return err;
}

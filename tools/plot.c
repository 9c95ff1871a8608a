/*
 * plot.c - four panels of dots and lines.
 *
 * The access times are those that the profile predicts for random pairs of
 * tracks, from random phases: the band that FS2 shows (SOSP 2005, Fig. 8), a
 * revolution high above the seek curve, which is drawn below and above it.
 */
#include <errno.h>
#include <math.h>

#include "tools/plot.h"

#define WIDTH 1080
#define HEIGHT 710
#define PANEL_W 440.0
#define PANEL_H 250.0
#define MARGIN 70.0
#define MOST_DOTS 1500u
#define DOTS 1200u

/* One panel of the picture: where it is, and the values at its edges. */
struct panel {
	FILE *f;
	double left, top;
	double x_max, y_max;
	const char *color;
};

static double at_x(const struct panel *p, double x)
{
	return p->left + PANEL_W * x / p->x_max;
}

static double at_y(const struct panel *p, double y)
{
	return p->top + PANEL_H * (1 - y / p->y_max);
}

/* The least value that is four times a round number and not below v. */
static double round_up(double v)
{
	static const double rounds[] = {
		1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 7.5
	};
	double unit = pow(10, floor(log10(v / 4)));

	for (unsigned i = 0; i < sizeof(rounds) / sizeof(*rounds); i++)
		if (4 * unit * rounds[i] >= v)
			return 4 * unit * rounds[i];
	return 40 * unit;
}

static void panel_begin(struct panel *p, unsigned number, const char *title,
			const char *x_name, double x_scale, const char *y_name)
{
	p->left = MARGIN + (number % 2) * (PANEL_W + 90);
	p->top = 50 + (number / 2) * (PANEL_H + 100);
	if (!(p->x_max > 0))
		p->x_max = 1;
	if (!(p->y_max > 0))
		p->y_max = 1;
	p->x_max = round_up(p->x_max);
	p->y_max = round_up(p->y_max);
	fprintf(p->f, "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\""
		"%.0f\" fill=\"none\" stroke=\"#888\"/>\n", p->left, p->top,
		PANEL_W, PANEL_H);
	fprintf(p->f, "<text x=\"%.0f\" y=\"%.0f\" font-weight=\"bold\">%s"
		"</text>\n", p->left, p->top - 10, title);
	for (int i = 0; i <= 4; i++) {
		double x = p->x_max * i / 4, y = p->y_max * i / 4;

		if (i > 0 && i < 4)
			fprintf(p->f, "<path d=\"M%.1f %.1fh%.1fM%.1f %.1fv"
				"%.1f\" stroke=\"#ddd\"/>\n", p->left,
				at_y(p, y), PANEL_W, at_x(p, x), p->top,
				PANEL_H);
		fprintf(p->f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle"
			"\">%.5g</text>\n", at_x(p, x), p->top + PANEL_H + 16,
			x * x_scale);
		fprintf(p->f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">"
			"%.5g</text>\n", p->left - 6, at_y(p, y) + 4, y);
	}
	fprintf(p->f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s"
		"</text>\n", p->left + PANEL_W / 2, p->top + PANEL_H + 34,
		x_name);
	fprintf(p->f, "<text text-anchor=\"middle\" transform=\"translate("
		"%.1f %.1f) rotate(-90)\">%s</text>\n", p->left - 46,
		p->top + PANEL_H / 2, y_name);
}

static void panel_empty(const struct panel *p)
{
	fprintf(p->f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" "
		"fill=\"#888\">not known</text>\n", p->left + PANEL_W / 2,
		p->top + PANEL_H / 2);
}

static void dot(const struct panel *p, double x, double y)
{
	fprintf(p->f, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"1.2\" fill=\"%s\"/>"
		"\n", at_x(p, x), at_y(p, y), p->color);
}

/* ---- The panels ---- */

static uint64_t step_of(const struct geom *geom)
{
	return geom_tracks(geom) / MOST_DOTS + 1;
}

static void plot_sizes(FILE *f, const struct profile *profile)
{
	struct panel p = { .f = f, .color = "#1565c0" };
	uint64_t step = step_of(profile->geom), i;
	struct geom_track t;

	p.x_max = (double)profile->sectors;
	for (i = 0; i < geom_tracks(profile->geom); i += step) {
		geom_track_at(profile->geom, i, &t);
		if (t.known && t.sectors > p.y_max)
			p.y_max = t.sectors;
	}
	panel_begin(&p, 0, "Sectors per track", "LBN, millions", 1e-6,
		    "sectors of 512 bytes");
	if (!geom_known(profile->geom))
		panel_empty(&p);
	for (i = 0; i < geom_tracks(profile->geom); i += step) {
		geom_track_at(profile->geom, i, &t);
		if (t.known)
			dot(&p, (double)t.first, t.sectors);
	}
}

static void plot_skews(FILE *f, const struct profile *profile)
{
	struct panel p = { .f = f, .color = "#6a1b9a", .y_max = 1 };
	uint64_t step = step_of(profile->geom), i;
	struct geom_track t, next;
	double skew;

	p.x_max = (double)profile->sectors;
	panel_begin(&p, 1, "Skew to the next track", "LBN, millions", 1e-6,
		    "revolutions");
	if (!profile->part[PROFILE_ANGLES].confidence_ppm) {
		panel_empty(&p);
		return;
	}
	for (i = 0; i + 1 < geom_tracks(profile->geom); i += step) {
		geom_track_at(profile->geom, i, &t);
		geom_track_at(profile->geom, i + 1, &next);
		if (!t.known || !next.known)
			continue;
		skew = (double)(angle)(next.start - t.start -
				       t.per_sector * t.sectors) /
		       4294967296.0;
		dot(&p, (double)t.first, skew);
	}
}

static void plot_seek(FILE *f, const struct profile *profile)
{
	const struct service_mech *m = &profile->mech;
	struct panel p = { .f = f, .color = "#2e7d32" };
	uint32_t i;

	if (m->seek && m->seek_n) {
		p.x_max = m->seek[m->seek_n - 1].cylinders;
		p.y_max = (double)m->seek[m->seek_n - 1].ns / 1e6;
	}
	panel_begin(&p, 2, "Seek", "cylinders", 1, "ms");
	if (!m->seek || !m->seek_n) {
		panel_empty(&p);
		return;
	}
	fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" points=\"", p.color);
	for (i = 0; i < m->seek_n; i++)
		fprintf(f, "%.2f,%.2f ", at_x(&p, m->seek[i].cylinders),
			at_y(&p, (double)m->seek[i].ns / 1e6));
	fprintf(f, "\"/>\n");
	for (i = 0; i < m->seek_n; i++)
		dot(&p, m->seek[i].cylinders, (double)m->seek[i].ns / 1e6);
}

/* The seek curve, as far in sectors as cylinders are on the average; or what is
 * so much later. */
static void plot_bounds(const struct panel *p, const struct profile *profile,
			double later_ms)
{
	const struct service_mech *m = &profile->mech;
	struct geom_track last;
	double each;
	uint32_t i;

	geom_track_at(profile->geom, geom_tracks(profile->geom) - 1, &last);
	each = (double)profile->sectors / (last.cylinder + 1.0);
	fprintf(p->f, "<polyline fill=\"none\" stroke=\"#444\" points=\"");
	for (i = 0; i < m->seek_n; i++)
		if (m->seek[i].cylinders * each <= p->x_max)
			fprintf(p->f, "%.2f,%.2f ",
				at_x(p, m->seek[i].cylinders * each),
				at_y(p, (double)(m->seek[i].ns +
					profile->read_overhead_ns) / 1e6 +
					later_ms));
	fprintf(p->f, "\"/>\n");
}

/* A number that looks random, the same in every picture. */
static uint64_t scatter(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) +
		 UINT64_C(1442695040888963407);
	return *state >> 16;
}

static void plot_access(FILE *f, const struct profile *profile)
{
	struct service_mech m = profile->mech;
	struct panel p = { .f = f, .color = "#c62828" };
	uint64_t state = 1;
	bool known = m.period_ps && m.seek && m.seek_n;

	p.x_max = (double)profile->sectors;
	if (known)
		p.y_max = (double)(profile->read_overhead_ns +
				   m.seek[m.seek_n - 1].ns) / 1e6 +
			  (double)m.period_ps / 1e9;
	panel_begin(&p, 3, "Access time against distance, predicted",
		    "sectors, millions", 1e-6, "ms");
	if (!known) {
		panel_empty(&p);
		return;
	}
	plot_bounds(&p, profile, 0);
	plot_bounds(&p, profile, (double)m.period_ps / 1e9);
	for (unsigned i = 0; i < DOTS; i++) {
		uint64_t from = scatter(&state) % profile->sectors;
		uint64_t to = scatter(&state) % profile->sectors;
		struct service_head head = { 0 };
		struct service_request req = { .sectors = 1 };
		struct geom_place place;
		struct service s;

		m.phase = (angle)scatter(&state);
		geom_place_of(profile->geom, from, &place);
		head.cylinder = place.cylinder;
		head.surface = place.surface;
		req.lbn = to;
		service_estimate(profile->geom, &m, &head, &req, &s);
		dot(&p, (double)(from < to ? to - from : from - to),
		    (double)(s.head.at_ns + profile->read_overhead_ns) / 1e6);
	}
}

static void plot_title(FILE *f, const struct profile *profile)
{
	fprintf(f, "<text x=\"%.0f\" y=\"20\" font-size=\"14\">", MARGIN);
	for (const char *c = profile->model; *c; c++) {
		if (*c == '<' || *c == '&')
			fprintf(f, *c == '<' ? "&lt;" : "&amp;");
		else
			putc(*c, f);
	}
	fprintf(f, "%s%.2f GB", *profile->model ? ", " : "",
		(double)profile->sectors * 512 / 1e9);
	if (profile->mech.period_ps)
		fprintf(f, ", %.4f ms a revolution",
			(double)profile->mech.period_ps / 1e9);
	fprintf(f, "</text>\n");
}

int plot_write(const struct profile *profile, FILE *f)
{
	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" font-family=\"sans-serif\" font-size=\"11\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		WIDTH, HEIGHT);
	plot_title(f, profile);
	plot_sizes(f, profile);
	plot_skews(f, profile);
	plot_seek(f, profile);
	plot_access(f, profile);
	fprintf(f, "</svg>\n");
	return ferror(f) ? -EIO : 0;
}

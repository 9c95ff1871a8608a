/*
 * plot.c - four panels of dots and lines.
 *
 * The access times are those that the profile predicts for random pairs of
 * tracks, from random phases: the band that FS2 shows (SOSP 2005, Fig. 8), a
 * revolution high above the seek curve, which is drawn below and above it.
 */
#include <errno.h>

#include "tools/draw.h"
#include "tools/plot.h"

/* The picture and its four panels, in pixels. */
#define WIDTH 1080
#define HEIGHT 710
#define PANEL_W 440.0
#define PANEL_H 250.0
#define MARGIN 70.0
#define TICKS_APART 90.0
#define HEAD_ROOM 1.05		/* above the highest value */
/* The most tracks that are drawn, evenly spread over the disk. More than three
 * in a column of pixels would not be seen. */
#define MOST_DOTS 1500u
/* Number of random accesses in the panel of access times. */
#define DOTS 1200u

static void panel_begin(struct draw_panel *p, unsigned number,
			const char *title, const char *x_name, double x_scale,
			const char *y_name)
{
	p->left = MARGIN + (number % 2) * (PANEL_W + 90);
	p->top = 50 + (number / 2) * (PANEL_H + 100);
	p->width = PANEL_W;
	p->height = PANEL_H;
	if (!(p->x_max > 0))
		p->x_max = 1;
	if (!(p->y_max > 0))
		p->y_max = 1;
	p->y_max *= HEAD_ROOM;
	draw_border(p, title);
	draw_x_axis(p, &(struct draw_axis){ x_scale, "", x_name, TICKS_APART });
	draw_y_axis(p, &(struct draw_axis){ 1, "", y_name, TICKS_APART / 2 });
}

static void panel_empty(const struct draw_panel *p)
{
	draw_text(p->f, p->left + PANEL_W / 2, p->top + PANEL_H / 2, "middle",
		  "#888", "not known");
}

static void dot(const struct draw_panel *p, double x, double y)
{
	draw_dot(p, x, y, 1.2);
}

/* ---- The panels ---- */

static uint64_t step_of(const struct geom *geom)
{
	return geom_tracks(geom) / MOST_DOTS + 1;
}

static void plot_sizes(FILE *f, const struct profile *profile)
{
	struct draw_panel p = { .f = f, .colour = "#1565c0" };
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
	struct draw_panel p = { .f = f, .colour = "#6a1b9a", .y_max = 1 };
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
	struct draw_panel p = { .f = f, .colour = "#2e7d32" };
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
	draw_curve(&p);
	for (i = 0; i < m->seek_n; i++)
		draw_curve_to(&p, m->seek[i].cylinders,
			      (double)m->seek[i].ns / 1e6);
	draw_curve_end(&p);
	for (i = 0; i < m->seek_n; i++)
		dot(&p, m->seek[i].cylinders, (double)m->seek[i].ns / 1e6);
}

/* Draws the seek curve, moved up by later_ms. A distance in cylinders becomes
 * one in sectors by the mean number of sectors in a cylinder. */
static void plot_bounds(struct draw_panel p, const struct profile *profile,
			double later_ms)
{
	const struct service_mech *m = &profile->mech;
	struct geom_track last;
	double each;
	uint32_t i;

	geom_track_at(profile->geom, geom_tracks(profile->geom) - 1, &last);
	each = (double)profile->sectors / (last.cylinder + 1.0);
	p.colour = "#444";
	draw_curve(&p);
	for (i = 0; i < m->seek_n; i++)
		if (m->seek[i].cylinders * each <= p.x_max)
			draw_curve_to(&p, m->seek[i].cylinders * each,
				      (double)(m->seek[i].ns +
					profile->read_overhead_ns) / 1e6 +
				      later_ms);
	draw_curve_end(&p);
}

/* Returns the next pseudo-random number; each picture has the same sequence. */
static uint64_t scatter(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) +
		 UINT64_C(1442695040888963407);
	return *state >> 16;
}

static void plot_access(FILE *f, const struct profile *profile)
{
	struct service_mech m = profile->mech;
	struct draw_panel p = { .f = f, .colour = "#c62828" };
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
	plot_bounds(p, profile, 0);
	plot_bounds(p, profile, (double)m.period_ps / 1e9);
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
	char text[256], turn[64] = "";

	if (profile->mech.period_ps)
		snprintf(turn, sizeof(turn), ", %.4f ms a revolution",
			 (double)profile->mech.period_ps / 1e9);
	snprintf(text, sizeof(text), "%.128s%s%.2f GB%s", profile->model,
		 *profile->model ? ", " : "",
		 (double)profile->sectors * 512 / 1e9, turn);
	draw_text(f, MARGIN, 20, "start", "black", text);
}

int plot_write(const struct profile *profile, FILE *f)
{
	draw_begin(f, WIDTH, HEIGHT, 11);
	plot_title(f, profile);
	plot_sizes(f, profile);
	plot_skews(f, profile);
	plot_seek(f, profile);
	plot_access(f, profile);
	draw_end(f);
	return ferror(f) ? -EIO : 0;
}

/*
 * draw.h - parts of pictures (SVG) with axes, for all drawings of the tools.
 */
#ifndef TRAX_TOOLS_DRAW_H
#define TRAX_TOOLS_DRAW_H

#include <stdio.h>

/* Where a panel is, in pixels, and the values at its right and upper edges; the
 * values at its left and lower edges are 0. */
struct draw_panel {
	FILE *f;
	double left, top, width, height;
	double x_max, y_max;
	const char *colour;	/* of dots and curves */
};

struct draw_axis {
	double scale;		/* what is printed for a value of 1 */
	const char *unit;	/* behind each number, "" for none */
	const char *name;	/* beside the axis, NULL for none */
	double apart;		/* pixels between numbers, about */
};

void draw_begin(FILE *f, unsigned width, unsigned height, unsigned font);
void draw_end(FILE *f);

/* anchor: "start", "middle" or "end".  Any text may be given: it is escaped. */
void draw_text(FILE *f, double x, double y, const char *anchor,
	       const char *colour, const char *text);

void draw_border(const struct draw_panel *p, const char *title);
/* Draws numbers that are 1, 2 or 5 times a power of ten apart, each with a line
 * through the panel. */
void draw_x_axis(const struct draw_panel *p, const struct draw_axis *axis);
void draw_y_axis(const struct draw_panel *p, const struct draw_axis *axis);

void draw_dot(const struct draw_panel *p, double x, double y, double radius);
/* To be called in this order, draw_curve_to for each point. */
void draw_curve(const struct draw_panel *p);
void draw_curve_to(const struct draw_panel *p, double x, double y);
void draw_curve_end(const struct draw_panel *p);

#endif

/*
 * draw.h - pictures (SVG) with axes: all drawings of the tools are made of it.
 */
#ifndef TRAX_TOOLS_DRAW_H
#define TRAX_TOOLS_DRAW_H

#include <stdio.h>

/* Where a panel is, in pixels, and the values at its right and upper edges;
 * those at the others are 0. */
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

/* anchor: "start", "middle" or "end". The text may be anybody's. */
void draw_text(FILE *f, double x, double y, const char *anchor,
	       const char *colour, const char *text);

void draw_border(const struct draw_panel *p, const char *title);
/* Numbers 1, 2 or 5 times a power of ten apart, with lines through it. */
void draw_x_axis(const struct draw_panel *p, const struct draw_axis *axis);
void draw_y_axis(const struct draw_panel *p, const struct draw_axis *axis);

void draw_dot(const struct draw_panel *p, double x, double y, double radius);
/* draw_curve, any number of points, draw_curve_end. */
void draw_curve(const struct draw_panel *p);
void draw_curve_to(const struct draw_panel *p, double x, double y);
void draw_curve_end(const struct draw_panel *p);

#endif

/*
 * draw.c - see draw.h.
 */
#include <math.h>

#include "tools/draw.h"

#define TEXT_BELOW 16.0		/* pixels from the border to its numbers */
#define NAME_BELOW 34.0		/* and to the axis' name */
#define NAME_LEFT 46.0

void draw_begin(FILE *f, unsigned width, unsigned height, unsigned font)
{
	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" "
		"viewBox=\"0 0 %u %u\" width=\"%u\" height=\"%u\" "
		"font-family=\"sans-serif\" font-size=\"%u\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		width, height, width, height, font);
}

void draw_end(FILE *f)
{
	fputs("</svg>\n", f);
}

void draw_text(FILE *f, double x, double y, const char *anchor,
	       const char *colour, const char *text)
{
	fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" "
		"fill=\"%s\">", x, y, anchor, colour);
	for (; *text; text++) {
		if (*text == '<' || *text == '&')
			fputs(*text == '<' ? "&lt;" : "&amp;", f);
		else
			putc(*text, f);
	}
	fputs("</text>\n", f);
}

static double at_x(const struct draw_panel *p, double x)
{
	return p->left + p->width * x / p->x_max;
}

static double at_y(const struct draw_panel *p, double y)
{
	return p->top + p->height * (1 - y / p->y_max);
}

void draw_border(const struct draw_panel *p, const char *title)
{
	fprintf(p->f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
		"height=\"%.1f\" fill=\"none\" stroke=\"#888\"/>\n", p->left,
		p->top, p->width, p->height);
	draw_text(p->f, p->left, p->top - 8, "start", "black", title);
}

static double tick_step(double range, double n)
{
	static const double steps[] = { 1, 2, 5, 10 };
	double power = pow(10, floor(log10(range / n)));
	unsigned i = 0;

	while (i < 3 && steps[i] * power < range / n)
		i++;
	return steps[i] * power;
}

static void line(const struct draw_panel *p, double x, double y, double x2,
		 double y2)
{
	fprintf(p->f, "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#ddd\"/>\n",
		x, y, x2, y2);
}

void draw_x_axis(const struct draw_panel *p, const struct draw_axis *axis)
{
	double all = p->x_max * axis->scale, below = p->top + p->height;
	double step = tick_step(all, p->width / axis->apart), v;
	char text[64];

	for (v = 0; v <= all; v += step) {
		double x = at_x(p, v / axis->scale);

		if (v > 0 && v < all)
			line(p, x, p->top, x, below);
		snprintf(text, sizeof(text), "%.5g%s", v, axis->unit);
		draw_text(p->f, x, below + TEXT_BELOW, "middle", "black", text);
	}
	if (axis->name)
		draw_text(p->f, p->left + p->width / 2, below + NAME_BELOW,
			  "middle", "black", axis->name);
}

void draw_y_axis(const struct draw_panel *p, const struct draw_axis *axis)
{
	double all = p->y_max * axis->scale;
	double step = tick_step(all, p->height / axis->apart), v;
	char text[64];

	for (v = 0; v <= all; v += step) {
		double y = at_y(p, v / axis->scale);

		if (v > 0 && v < all)
			line(p, p->left, y, p->left + p->width, y);
		snprintf(text, sizeof(text), "%.5g%s", v, axis->unit);
		draw_text(p->f, p->left - 6, y + 4, "end", "black", text);
	}
	if (!axis->name)
		return;
	fprintf(p->f, "<g transform=\"translate(%.1f %.1f) rotate(-90)\">",
		p->left - NAME_LEFT, p->top + p->height / 2);
	draw_text(p->f, 0, 0, "middle", "black", axis->name);
	fputs("</g>\n", p->f);
}

void draw_dot(const struct draw_panel *p, double x, double y, double radius)
{
	fprintf(p->f, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.1f\" "
		"fill=\"%s\"/>\n", at_x(p, x), at_y(p, y), radius, p->colour);
}

void draw_curve(const struct draw_panel *p)
{
	fprintf(p->f, "<polyline fill=\"none\" stroke=\"%s\" points=\"",
		p->colour);
}

void draw_curve_to(const struct draw_panel *p, double x, double y)
{
	fprintf(p->f, "%.2f,%.2f ", at_x(p, x), at_y(p, y));
}

void draw_curve_end(const struct draw_panel *p)
{
	fputs("\"/>\n", p->f);
}

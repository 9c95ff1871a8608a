/*
 * line.h - the angles at which tracks start, one after another: a line that is
 * learned as it is followed.
 *
 * How far the angle, its step from track to track and its step from one run of
 * tracks to the next may be off is kept as what it is, errors that are not
 * independent (a Kalman filter), so that it is known how far the line can be
 * trusted, and what an angle seen far ahead says of all those before it.
 *
 * Angles in revolutions.
 */
#ifndef TRAX_TRACK_LINE_H
#define TRAX_TRACK_LINE_H

#define LINE_PARTS 3u

struct line {
	double c[LINE_PARTS][LINE_PARTS]; /* covariances: angle, step, cross */
	double apart;		/* variance of each cross by itself, */
	double period;		/* of so many */
};

/* Somewhere ahead: tracks, and how many of them begin another run. */
struct line_place {
	double tracks, runs;
};

/* Standard deviations of what is known now. */
void line_begin(struct line *line, double angle, double step, double cross);

/* Standard deviation of the angle ahead. */
double line_sigma(const struct line *line, struct line_place at);

/* What an error seen there says of another place, as a share of it. */
double line_share(const struct line *line, struct line_place seen,
		  double noise, struct line_place at);

/* Goes there, where an error was seen with some noise: the shares of it that a
 * step and a cross were off by.  That of the angle is line_share(.., seen). */
void line_go(struct line *line, struct line_place seen, double noise,
	     double *step, double *cross);

/* Adds to what may be wrong. */
void line_doubt(struct line *line, double angle, double step, double cross);

/* Likewise when runs have come again some times, with a period: each cross is
 * `apart` off by itself, the rest for all of them. */
void line_steady(struct line *line, double apart, double period, double step,
		 double cross);

#endif

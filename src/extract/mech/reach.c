/*
 * reach.c - bisection that forgives.
 *
 * A try that took t and was not missed says "t is enough"; one that was missed
 * says "t less a revolution is not".  Whether it was missed is seen from what
 * was aimed at: the actual time differs from it by about nothing or about a
 * revolution.
 */
#include <math.h>

#include "extract/mech/reach.h"
#include "extract/probe/phase.h"

#define STRAYS 0.05		/* revolutions */
#define GAIN 0.2
#define MOST_STRAYS 3u
/* Of what it must be at least: faster is a cache. */
#define FASTEST 0.8

/* ---- The clock ---- */

double reach_angle(const struct geom *geom, uint64_t sector, uint32_t sectors)
{
	struct geom_track track;
	struct geom_place place;

	geom_track_of(geom, sector + sectors - 1, &track);
	geom_place_of(geom, sector + sectors - 1, &place);
	return phase_part(((double)place.start + track.per_sector) /
			  4294967296.0);
}

static double clock_turn(const struct reach_clock *c, uint64_t at_ns)
{
	return phase_part((double)(at_ns % (uint64_t)(c->period_ns * 1e6)) /
		    c->period_ns);
}

bool reach_clock_see(struct reach_clock *clock, uint64_t at_ns, double at)
{
	double turn = phase_part(clock_turn(clock, at_ns) - at);
	double off = phase_wrap(turn - clock->turn);

	if (!clock->set || clock->strayed >= MOST_STRAYS) {
		clock->turn = turn;
		clock->set = true;
		clock->strayed = 0;
		return true;
	}
	if (fabs(off) > STRAYS) {
		clock->strayed++;
		return false;
	}
	clock->strayed = 0;
	clock->turn = phase_part(clock->turn + GAIN * off);
	return true;
}

double reach_clock_wait(const struct reach_clock *clock, uint64_t at_ns,
			double at)
{
	return clock->period_ns *
	       phase_part(at + clock->turn - clock_turn(clock, at_ns));
}

/* ---- The estimate ---- */

void reach_init(struct reach *reach, double lo_ns, double hi_ns)
{
	*reach = (struct reach){ .lo_ns = lo_ns, .hi_ns = hi_ns };
}

/* Tries that contradict a value, half a one for each bound passed. */
static double against(const struct reach *r, double ns)
{
	double n = 0;

	for (unsigned i = 0; i < r->n; i++)
		n += r->tries[i].missed ? r->tries[i].ns >= ns :
					  r->tries[i].ns < ns;
	return n + (ns < r->lo_ns ? 0.5 : 0) + (ns > r->hi_ns ? 0.5 : 0);
}

/* The widest stretch with the fewest against it, beginning at one of the
 * values. */
static void consider(const struct reach *r, double from, double *best,
		     double *lo, double *hi)
{
	double to = INFINITY, n;

	for (unsigned i = 0; i < r->n; i++) {
		if (r->tries[i].ns > from && r->tries[i].ns < to)
			to = r->tries[i].ns;
	}
	if (r->lo_ns > from && r->lo_ns < to)
		to = r->lo_ns;
	if (r->hi_ns > from && r->hi_ns < to)
		to = r->hi_ns;
	if (isinf(to))
		to = from + (r->hi_ns - r->lo_ns) / 2;
	n = against(r, (from + to) / 2);
	if (n < *best || (n <= *best && to - from > *hi - *lo)) {
		*best = n;
		*lo = from;
		*hi = to;
	}
}

double reach_estimate(const struct reach *reach)
{
	double best = INFINITY, lo = 0, hi = 0;

	consider(reach, reach->lo_ns, &best, &lo, &hi);
	consider(reach, reach->hi_ns, &best, &lo, &hi);
	for (unsigned i = 0; i < reach->n; i++)
		consider(reach, reach->tries[i].ns, &best, &lo, &hi);
	return (lo + hi) / 2;
}

double reach_doubt(const struct reach *reach)
{
	if (!reach->n)
		return 1;
	return against(reach, reach_estimate(reach)) / reach->n;
}

/* ---- Trying ---- */

static int access_one(struct prober *prober, uint64_t sector,
		      uint32_t sectors, bool write, struct probe_access *a)
{
	*a = (struct probe_access){ .sector = sector, .sectors = sectors,
				    .write = write };
	return prober->access(prober, a, 1, 1);
}

/* The unit of a track whose trailing edge comes by an angle after another's;
 * relative to the track's first. */
static uint32_t unit_at(const struct geom_track *track, uint32_t unit,
			double after_first)
{
	uint32_t units = track->sectors / unit;
	double turn = (double)track->per_sector / 4294967296.0 * unit;
	double k = turn > 0 ? floor(after_first / turn + 0.5) : 0;

	return units && k < units ? (uint32_t)k : 0;
}

/* Anywhere on a track but at its end: a cache does not know all of it.  What is
 * read ahead may reach the next track, so it is not for tracks side by side. */
static uint64_t some_unit(struct prober *prober, const struct geom_track *track,
			  uint32_t unit)
{
	uint32_t units = track->sectors / unit;

	return units > 2 ? env_random(prober->env) % (units - 2) * unit : 0;
}

uint64_t reach_first(const struct geom_track *track, uint32_t unit)
{
	return (track->first + unit - 1) / unit * unit;
}

static void note(struct reach *r, double period_ns, double aimed_ns,
		 double took_ns)
{
	bool missed = took_ns > aimed_ns + period_ns / 2;

	/* More than one revolution: the host; less than none: a cache. */
	if (took_ns > aimed_ns + 1.5 * period_ns ||
	    took_ns < aimed_ns - period_ns / 2 ||
	    took_ns < FASTEST * r->lo_ns || r->n >= REACH_TRIES)
		return;
	r->tries[r->n].ns = missed ? took_ns - period_ns : took_ns;
	r->tries[r->n++].missed = missed;
}

int reach_try(struct reach *reach, struct prober *prober,
	      struct reach_clock *clock, const struct geom *geom,
	      const struct geom_track *from, const struct geom_track *to,
	      bool write)
{
	uint32_t unit = prober->limits->physical_bytes / SECTOR_BYTES;
	uint64_t first = reach_first(to, unit), at;
	double want_ns = reach_estimate(reach), zero_ns, aim_ns, took_ns;
	double unit_ns = clock->period_ns * unit * (double)to->per_sector /
			 4294967296.0;
	struct probe_access a, b;
	int err;

	/* On the same track: from its end round to its beginning, which no
	 * read-ahead has been at. */
	at = reach_first(from, unit);
	if (from->index == to->index)
		at += from->sectors / unit * unit - 2 * unit;
	else if (clock->strict)
		at += some_unit(prober, from, unit);
	err = access_one(prober, at, unit, false, &a);
	if (err || a.result)
		return err;
	/* From a cache: the head is somewhere else. */
	if (!reach_clock_see(clock, a.complete_ns,
			     reach_angle(geom, at, unit)) && clock->strict)
		return 0;
	zero_ns = reach_clock_wait(clock, a.complete_ns,
				   reach_angle(geom, first, unit)) - unit_ns;
	/* From the first unit of `to` on to the one that is wanted. */
	at = first + (uint64_t)unit * unit_at(to, unit,
			phase_part((want_ns - zero_ns) / clock->period_ns));
	aim_ns = reach_clock_wait(clock, a.complete_ns,
				  reach_angle(geom, at, unit)) - unit_ns;
	while (aim_ns < want_ns - clock->period_ns / 2)
		aim_ns += clock->period_ns;
	err = access_one(prober, at, unit, write, &b);
	if (err || b.result)
		return err;
	took_ns = (double)(b.complete_ns - a.complete_ns) - unit_ns;
	reach_clock_see(clock, b.complete_ns, reach_angle(geom, at, unit));
	note(reach, clock->period_ns, aim_ns, took_ns);
	return 0;
}

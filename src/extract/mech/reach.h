/*
 * reach.h - how long a drive needs until it can read (or write) somewhere.
 *
 * A sector that comes under the head before the drive is ready is missed and
 * costs a revolution more.  So the time from one completion to another is
 * looked for below which a revolution is lost: sectors further round or nearer
 * are tried, always in the middle of what is still possible.  What has been
 * tried stays in account with its actual times, and the estimate is what the
 * fewest of them contradict: late completions do no harm, and an error of the
 * geometry's angles only steers a little worse.
 *
 * The time includes everything from one completion to the leading edge of the
 * next sector: the host, the command, the move.  Differences of reaches are
 * moves.
 */
#ifndef TRAX_MECH_REACH_H
#define TRAX_MECH_REACH_H

#include <stdbool.h>

#include "diskmodel/geom.h"
#include "extract/probe/probe.h"

#define REACH_TRIES 64u

struct reach {
	double lo_ns, hi_ns;	/* between these it must be */
	struct {
		double ns;
		bool missed;
	} tries[REACH_TRIES];
	unsigned n;
};

/* Where accesses end relative to the clock. */
struct reach_clock {
	double period_ns;
	double turn;		/* of a completion, less the geometry's angle */
	unsigned strayed;	/* completions in a row that were elsewhere */
	bool set;
	bool strict;		/* what was elsewhere is no beginning */
};

void reach_init(struct reach *reach, double lo_ns, double hi_ns);

/* What the fewest tries contradict. */
double reach_estimate(const struct reach *reach);

/* Share of the tries that contradict it. */
double reach_doubt(const struct reach *reach);

/* One try: reads on the track `from`, then reads or writes on `to` such that it
 * comes when the estimate is tested most.  What a cache answers does not
 * count.  0 or why measuring has to stop. */
int reach_try(struct reach *reach, struct prober *prober,
	      struct reach_clock *clock, const struct geom *geom,
	      const struct geom_track *from, const struct geom_track *to,
	      bool write);

/* Angle of the trailing edge of an access, in revolutions. */
double reach_angle(const struct geom *geom, uint64_t sector, uint32_t sectors);

/* First sector of the first unit that lies in a track as a whole. */
uint64_t reach_first(const struct geom_track *track, uint32_t unit);

/* Learns from a completion on the medium; false: it was elsewhere. */
bool reach_clock_see(struct reach_clock *clock, uint64_t at_ns, double at);

/* When, after a moment, an angle has come by, in [0, period). */
double reach_clock_wait(const struct reach_clock *clock, uint64_t at_ns,
			double at);

#endif

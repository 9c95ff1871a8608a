/*
 * extract_rig.h - a simulated drive with a host's noise, for extraction.
 *
 * It is a prober over a simulated disk: a host makes every completion late (8
 * us normal, 20 us exponential; 1 % by 0.1 to 3 ms), and the next access is
 * handed over only then.
 */
#ifndef TRAX_RIG_EXTRACT_RIG_H
#define TRAX_RIG_EXTRACT_RIG_H

#include "extract/probe/probe.h"
#include "extract/track/map.h"
#include "sim/sim.h"

struct spec;

struct extract_rig {
	struct prober prober;
	struct sim *sim;
	void *buf;
	uint64_t seed;
	bool quiet;		/* no noise */
	uint64_t stop_at;	/* accesses until -EINTR; 0: never */
};

int extract_rig_init(struct extract_rig *rig, const struct spec *spec,
		     uint64_t seed);
void extract_rig_fini(struct extract_rig *rig);

struct extract_verdict {
	uint64_t tracks, wrong;		/* true ones; known but not true */
	uint64_t sectors, unknown_sectors;
	uint64_t first_wrong;		/* LBN */
	double angle_p99;		/* revolutions, of starts */
};

/* Compares a geometry with the truth. */
void extract_rig_judge(const struct extract_rig *rig,
		       const struct geom *geom,
		       struct extract_verdict *verdict);

#endif

/*
 * mech.h - what moves in a drive, and how fast, once its tracks are known.
 *
 * Every part says how sure it is of itself, in millionths; 0: it could not be
 * decided and its value means nothing.  Times are from one completion to
 * another (reach.h): what the host needs is in the overhead.
 */
#ifndef TRAX_MECH_MECH_H
#define TRAX_MECH_MECH_H

#include "diskmodel/geom.h"
#include "diskmodel/service.h"
#include "extract/probe/probe.h"

#define MECH_SEEKS 48u

struct mech {
	uint64_t overhead_ns, write_overhead_ns;
	uint32_t overhead_ppm, write_overhead_ppm;
	/* Beyond the overhead, ascending; never less than a shorter one. */
	struct service_seek seek[MECH_SEEKS];
	uint32_t seek_n;
	uint32_t seek_ppm;
	uint64_t head_switch_ns;
	uint32_t head_switch_ppm;
	uint64_t write_settle_ns;
	uint32_t write_settle_ppm;
	bool zero_latency;
	uint32_t zero_latency_ppm;
	uint32_t read_ahead_sectors;	/* 0: none; about */
	uint64_t hit_ns;		/* of what is in the cache; 0: none */
	uint32_t read_ahead_ppm;
};

enum mech_stage {
	MECH_OVERHEAD, MECH_SWITCH, MECH_SEEK, MECH_CACHE, MECH_SETTLE,
	MECH_STAGES
};

struct mech_options {
	uint64_t most_ns;	/* 0: as long as it takes: half a minute */
	bool scratch;		/* writes are allowed, anywhere */
	/* NULL, or called as it goes on: how much of a stage is done. */
	void (*progress)(void *arg, enum mech_stage stage, double part);
	void *arg;
};

/* The geometry must have known tracks with angles.  0, or why measuring had to
 * stop: what was measured until then is in *mech. */
int mech_measure(struct prober *prober, const struct geom *geom,
		 uint64_t period_ps, const struct mech_options *options,
		 struct mech *mech);

#endif

/*
 * mix.h - kinds of load that a disk queue serves at the same time, and how long
 * each waits: closed loops on a rig, in virtual time.
 */
#ifndef TRAX_BENCH_MIX_H
#define TRAX_BENCH_MIX_H

#include "bench/rig.h"

#define MIX_KINDS 8u	/* Number of kinds of load. */

struct mix_kind {
	const char *name;
	enum queue_class class;
	enum disk_op op;
	unsigned clients;	/* requests outstanding */
	uint32_t sectors;	/* sectors of a request */
	bool sequential;	/* each request follows the last one; otherwise
				 * anywhere */
};

extern const struct mix_kind mix_kinds[MIX_KINDS];

struct mix_result {
	uint64_t requests, bytes;
	uint64_t wait_ns;	/* times from submission to completion, summed
				 * up */
	uint64_t max_ns;	/* the longest time; a request that still waits
				 * at the end counts */
};

/* Runs the kinds whose bit is set in `kinds` for `ns` of virtual time; fills
 * result[] by kind. 0 or a negative errno. */
int mix_run(struct rig *rig, unsigned kinds, uint64_t ns, uint64_t seed,
	    struct mix_result result[MIX_KINDS]);

#endif

/*
 * mix.h - kinds of load that a disk queue serves at the same time, and how long
 * each waits: closed loops on a rig, in virtual time.
 */
#ifndef TRAX_BENCH_MIX_H
#define TRAX_BENCH_MIX_H

#include "bench/rig.h"

#define MIX_KINDS 8u

struct mix_kind {
	const char *name;
	enum queue_class class;
	enum disk_op op;
	unsigned clients;	/* requests outstanding */
	uint32_t sectors;	/* of a request */
	bool sequential;	/* each goes on where the last one ended; else
				 * anywhere */
};

extern const struct mix_kind mix_kinds[MIX_KINDS];

struct mix_result {
	uint64_t requests, bytes;
	uint64_t wait_ns;	/* from submission to completion, summed */
	uint64_t max_ns;	/* the longest of these; at the end what still
				 * waits counts as well */
};

/* Runs the kinds whose bit is set in `kinds` for so long; result[] by kind.
 * 0 or a negative errno. */
int mix_run(struct rig *rig, unsigned kinds, uint64_t ns, uint64_t seed,
	    struct mix_result result[MIX_KINDS]);

#endif

/*
 * probe.h - timed accesses, one after another, for those who measure a drive.
 *
 * Straight-line code: each call returns when its reads are done.  Who measures
 * does not know whether a tool runs it on a device of its own, a test on a
 * simulated drive, or a mount in its idle time.
 *
 * Units: sectors of 512 bytes, nanoseconds on the environment's clock.
 */
#ifndef TRAX_PROBE_PROBE_H
#define TRAX_PROBE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "disk/disk.h"

struct probe_access {
	uint64_t sector;
	uint32_t sectors;
	bool write;		/* only on a scratch disk */
	uint64_t not_before_ns;	/* 0: as soon as the one before is over */
	/* Set by the prober. */
	uint64_t submit_ns, complete_ns;
	int result;		/* 0, -EIO ... */
};

struct prober {
	struct env *env;
	const struct disk_limits *limits;
	/*
	 * Does n accesses in order, `depth` outstanding (1: each is handed over
	 * when the one before has completed, as fast as can be).  0, or why
	 * the measuring must stop: -EINTR, -ENODEV.  Errors of single accesses
	 * are their result.
	 */
	int (*access)(struct prober *prober, struct probe_access *access,
		      unsigned n, unsigned depth);
	uint64_t accesses;	/* done so far */
	/* NULL, or called now and then by who computes for long: others may
	 * have waited. */
	void (*pause)(struct prober *prober);
};

/* The i-th of many steps that take a microsecond at most; prober may be NULL.
 */
#define PROBER_STEPS 2048u
static inline void prober_pause(struct prober *prober, uint64_t i)
{
	if (prober && prober->pause && i % PROBER_STEPS == PROBER_STEPS - 1)
		prober->pause(prober);
}

/* The same for those who take only a function and what it gets. */
static inline void prober_pause_now(void *prober)
{
	struct prober *p = prober;

	if (p && p->pause)
		p->pause(p);
}

#endif

/*
 * emul.h - a drive in real time: requests are done when the drive would have
 * done them, on the machine's clock.
 *
 * A request is submitted from any thread and belongs to the emulator until
 * done() is called, once, from the emulator's own thread (fast: from
 * emul_submit).  The emulator moves no data; its caller does.
 */
#ifndef TRAX_SIM_EMUL_H
#define TRAX_SIM_EMUL_H

#include <stdio.h>

#include "sim/drive.h"

struct emul;

struct emul_request {
	struct drive_op timing;	/* op, fua, lbn, sectors: the caller's */
	void (*done)(struct emul_request *request);
};

struct emul_options {
	uint64_t seed;
	double slow;		/* all times stretched by this; 0: 1 */
	bool fast;		/* time is counted, not waited for */
	FILE *trace;		/* one line for each request; NULL: none */
};

struct emul_stats {
	struct drive_times times;	/* in the drive's time */
	uint64_t elapsed_ns;		/* likewise, since the last reset */
	uint64_t reads, writes, flushes;
	uint64_t read_sectors, written_sectors;
	uint64_t late_n;		/* requests of which the lateness is
					 * known */
	uint64_t late_median_ns, late_p99_ns, late_max_ns; /* real time */
};

/* The specification must outlive it.  -ENOMEM, -EAGAIN: no thread, -EINVAL:
 * what the specification says (reported). */
int emul_start(const struct spec *spec, const struct emul_options *options,
	       struct emul **emul);

/* Stops the drive; done() is never called for requests that are outstanding. */
void emul_stop(struct emul *emul);

/*
 * Gives the calling thread timers to the nanosecond and, where that is allowed,
 * a real-time priority (1: threads that submit; the emulator's own has 2), so
 * that the drive does not get slower when the machine is busy.
 */
void emul_expedite(int priority);

void emul_submit(struct emul *emul, struct emul_request *request);

void emul_get_stats(struct emul *emul, struct emul_stats *stats);
void emul_reset_stats(struct emul *emul);

#endif

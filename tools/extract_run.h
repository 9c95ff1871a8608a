/*
 * extract_run.h - the stages of a measurement, one after another.
 *
 * What a stage finds goes into the profile at once, and the state is written
 * after each stage (and now and then within the long one), so that whatever
 * ends a run, the next goes on from there.
 */
#ifndef TRAX_TOOLS_EXTRACT_RUN_H
#define TRAX_TOOLS_EXTRACT_RUN_H

#include <signal.h>

#include "extract/map.h"
#include "extract/probe.h"
#include "extract/verify.h"
#include "tools/extract_state.h"

/* How it ended; the tool's exit codes. */
enum extract_end {
	EXTRACT_DONE = 0,
	EXTRACT_FAILED = 1,
	EXTRACT_WRONG_USE = 2,
	EXTRACT_REFUSED = 3,	/* mounted, in use, not one to be measured */
	EXTRACT_UNMEASURABLE = 4, /* does not rotate, or as the verdict says */
	EXTRACT_INCOMPLETE = 5,	/* interrupted; run again to go on */
	EXTRACT_GONE = 6,	/* the device has vanished */
	EXTRACT_UNFIT = 7,	/* a profile does not fit */
	EXTRACT_SMALL = 8,	/* too small */
	EXTRACT_NOISY = 9,	/* completions stray: a host too busy, mostly */
	EXTRACT_UNREADABLE = 10, /* read errors wherever it was tried */
};

/* How it is told how far a stage has come: not at all, on one line of a
 * terminal, or as a line every few seconds. */
enum extract_progress {
	EXTRACT_SILENT,
	EXTRACT_TERMINAL,
	EXTRACT_LINES,
};

struct extract_run {
	struct prober *prober;
	struct extract_state *state;	/* its profile is made if NULL */
	const char *state_path;
	const struct identity *identity;
	const char *scsi;		/* ask this device for its tracks, */
	struct scsi_port *port;		/* by this way; NULL: the device's */
	bool quick, scratch;
	enum extract_progress progress;
	uint64_t said_ns;		      /* when progress was told last */
	const volatile sig_atomic_t *stopped; /* by a signal; or NULL */

	/* Set by it. */
	const char *verdict;		/* why it can't be measured; NULL, */
	enum extract_end end;		/* and how it ends therefore */
	struct verify verify;
	struct map_stats map;
};

enum extract_end extract_run(struct extract_run *run);

#endif

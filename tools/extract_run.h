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

#include "extract/drive/verify.h"
#include "extract/probe/probe.h"
#include "extract/track/map.h"
#include "tools/extract_state.h"

/* How a run ended: the tool's exit codes. */
enum extract_end {
	EXTRACT_DONE = 0,
	EXTRACT_FAILED = 1,
	EXTRACT_WRONG_USE = 2,
	EXTRACT_REFUSED = 3,	/* mounted, in use, or of a refused kind */
	EXTRACT_UNMEASURABLE = 4, /* does not rotate, or as the verdict says */
	EXTRACT_INCOMPLETE = 5,	/* interrupted; run again to go on */
	EXTRACT_GONE = 6,	/* the device has vanished */
	EXTRACT_UNFIT = 7,	/* a profile does not fit */
	EXTRACT_SMALL = 8,	/* too small */
	EXTRACT_NOISY = 9,	/* completion times vary too much: the host is
				 * too busy, mostly */
	EXTRACT_UNREADABLE = 10, /* read errors wherever it was tried */
};

struct progress;

struct extract_run {
	struct prober *prober;
	struct extract_state *state;	/* its profile is made if NULL */
	const char *state_path;
	const struct identity *identity;
	const char *scsi;		/* device that is asked for its tracks
					 * by SCSI; NULL: none */
	struct scsi_port *port;		/* port by which it is asked; NULL: the
					 * device is opened */
	bool quick, scratch;
	struct progress *progress;	/* NULL: nothing is said of it */
	const volatile sig_atomic_t *stopped; /* set by a signal; NULL: never */

	/* Set by extract_run: */
	const char *verdict;		/* why the drive cannot be measured;
					 * NULL: it can */
	enum extract_end end;		/* the exit code that follows from the
					 * verdict */
	struct verify verify;
	struct map_stats map;
};

enum extract_end extract_run(struct extract_run *run);

#endif

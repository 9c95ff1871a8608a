/*
 * pipeline.h - the stages by which a drive is measured, and their order.
 *
 * A host is whoever measures: the tool, mkfs within some seconds, or a mount in
 * its idle time.  It brings a function for each stage that it can do; what
 * these find out is the host's to keep.  The head of pipeline.c tells what the
 * stages do.
 */
#ifndef TRAX_EXTRACT_PIPELINE_H
#define TRAX_EXTRACT_PIPELINE_H

#include <stdbool.h>

#include "diskmodel/profile.h"

enum pipeline_step {
	PIPELINE_PERIOD,
	PIPELINE_TRANSLATIONS,
	PIPELINE_TRACKS,
	PIPELINE_ANGLES,
	PIPELINE_VERIFICATION,
	PIPELINE_ALL_ANGLES,
	PIPELINE_SURFACES,
	PIPELINE_MECHANICS,
	PIPELINE_STEPS
};

/* A stage says so when there is nothing more to be found out. */
#define PIPELINE_OVER 1

struct pipeline_host {
	bool scsi;		/* the drive tells where its tracks lie */
	/* Does the host know that part of a profile? */
	bool (*knows)(void *arg, enum profile_part part);
	/* NULL: the host does without that stage.  0, PIPELINE_OVER, or why
	 * measuring must stop. */
	int (*run[PIPELINE_STEPS])(void *arg);
	/* NULL, or called before each stage with its name, and after it. */
	void (*begin)(void *arg, const char *name);
	void (*end)(void *arg);
};

/* Runs the stages whose needs are met, in their order.  0, or what a stage
 * stopped with. */
int pipeline_run(const struct pipeline_host *host, void *arg);

#endif

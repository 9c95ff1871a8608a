/*
 * samples.h - the state of a mounted file system at one moment, for the
 * commands that show it over time: traxctl top, traxctl report.
 */
#ifndef TRAX_TOOLS_SAMPLES_H
#define TRAX_TOOLS_SAMPLES_H

#include <jansson.h>

#include "tools/facts.h"

#define SAMPLE_CLASSES 5u

/* Counts of one class of requests, since the mount. */
struct class_sample {
	double requests, bytes, wait_s, service_s;
};

struct sample {
	json_t *stats, *model, *scrub;
	json_t *platter;	/* what lies where */
	json_t *heat;		/* NULL: this user may not see it */
	struct class_sample class[SAMPLE_CLASSES];
};

/* "commits" and the like. */
extern const char *const sample_names[SAMPLE_CLASSES];

/* 0, or -1 with errno. */
int sample_take(const char *mountpoint, struct sample *sample);
void sample_drop(struct sample *sample);

/* What requests of a class did between two samples. */
struct class_sample sample_between(const struct sample *before,
				   const struct sample *after, unsigned class);

/* Gives the seconds that the disk spent on each class within the last hour.
 * Returns how long that hour is: it is shorter soon after a mount. */
double sample_past_hour(const struct sample *sample,
			double service_s[SAMPLE_CLASSES]);

#endif

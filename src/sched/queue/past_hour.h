/*
 * past_hour.h - sums up, by the minute, what the disk's time went to within the
 * last hour.
 */
#ifndef TRAX_QUEUE_PAST_HOUR_H
#define TRAX_QUEUE_PAST_HOUR_H

#include <stdint.h>

#include "base/units.h"

#define PAST_HOUR_MINUTES 60u
#define PAST_HOUR_NS (3600 * NS_PER_SECOND)
#define PAST_HOUR_KINDS 5u	/* kinds of time that the caller tells apart */

struct past_hour {
	struct past_minute {
		uint64_t from_ns;
		uint64_t ns[PAST_HOUR_KINDS];
	} minute[PAST_HOUR_MINUTES];	/* a ring; minutes without any time are
					 * left out */
	unsigned newest;
};

void past_hour_add(struct past_hour *hour, uint64_t now_ns, unsigned kind,
		   uint64_t ns);
/* Sums up what was added in the hour before now. */
void past_hour_sum(const struct past_hour *hour, uint64_t now_ns,
		   uint64_t sum[PAST_HOUR_KINDS]);

#endif

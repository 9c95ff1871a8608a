/*
 * past_hour.c - see past_hour.h.
 */
#include "sched/queue/past_hour.h"

#include <string.h>

#define MINUTE_NS (PAST_HOUR_NS / PAST_HOUR_MINUTES)

void past_hour_add(struct past_hour *hour, uint64_t now_ns, unsigned kind,
		   uint64_t ns)
{
	struct past_minute *minute = &hour->minute[hour->newest];

	if (!minute->from_ns || now_ns - minute->from_ns >= MINUTE_NS) {
		hour->newest = (hour->newest + 1) % PAST_HOUR_MINUTES;
		minute = &hour->minute[hour->newest];
		memset(minute, 0, sizeof(*minute));
		minute->from_ns = now_ns;
	}
	minute->ns[kind] += ns;
}

void past_hour_sum(const struct past_hour *hour, uint64_t now_ns,
		   uint64_t sum[PAST_HOUR_KINDS])
{
	unsigned i, kind;

	memset(sum, 0, PAST_HOUR_KINDS * sizeof(*sum));
	for (i = 0; i < PAST_HOUR_MINUTES; i++) {
		const struct past_minute *minute = &hour->minute[i];

		if (!minute->from_ns ||
		    now_ns - minute->from_ns >= PAST_HOUR_NS)
			continue;
		for (kind = 0; kind < PAST_HOUR_KINDS; kind++)
			sum[kind] += minute->ns[kind];
	}
}

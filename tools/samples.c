/*
 * samples.c - see samples.h.
 */
#include "tools/samples.h"

#include <stdio.h>
#include <string.h>

#include "tools/facts.h"
#include "tools/traxctl.h"

const char *const sample_names[SAMPLE_CLASSES] = {
	"commits", "reads", "read-ahead", "write-back", "idle work",
};

static const char *const keys[SAMPLE_CLASSES] = {
	"commit", "read", "read_ahead", "write_back", "idle",
};

static double class_number(const struct sample *sample, unsigned class,
			   const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "queue.%s.%s", keys[class], name);
	return fact_number(sample->stats, path);
}

int sample_take(const char *mountpoint, struct sample *sample)
{
	unsigned i;

	memset(sample, 0, sizeof(*sample));
	sample->stats = read_json(mountpoint, "trax.stats");
	if (!sample->stats)
		return -1;
	sample->model = read_json(mountpoint, "trax.model");
	sample->scrub = read_json(mountpoint, "trax.scrub");
	sample->platter = read_json(mountpoint, "trax.platter");
	sample->heat = read_json(mountpoint, "trax.heat");
	for (i = 0; i < SAMPLE_CLASSES; i++)
		sample->class[i] = (struct class_sample){
			.requests = class_number(sample, i, "requests"),
			.bytes = class_number(sample, i, "bytes"),
			.wait_s = class_number(sample, i, "wait_ns") / 1e9,
			.service_s = class_number(sample, i, "service_ns") /
				     1e9,
		};
	return 0;
}

void sample_drop(struct sample *sample)
{
	json_decref(sample->stats);
	json_decref(sample->model);
	json_decref(sample->scrub);
	json_decref(sample->platter);
	json_decref(sample->heat);
	memset(sample, 0, sizeof(*sample));
}

struct class_sample sample_between(const struct sample *before,
				   const struct sample *after, unsigned class)
{
	const struct class_sample *a = &before->class[class];
	const struct class_sample *b = &after->class[class];

	return (struct class_sample){
		b->requests - a->requests, b->bytes - a->bytes,
		b->wait_s - a->wait_s, b->service_s - a->service_s,
	};
}

double sample_past_hour(const struct sample *sample,
			double service_s[SAMPLE_CLASSES])
{
	char path[64];
	unsigned i;

	for (i = 0; i < SAMPLE_CLASSES; i++) {
		snprintf(path, sizeof(path), "queue.past_hour_ns.%s", keys[i]);
		service_s[i] = fact_number(sample->stats, path) / 1e9;
	}
	return fact_number(sample->stats, "queue.past_hour_ns.seconds");
}

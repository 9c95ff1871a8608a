/*
 * sched_mix.c - runs eight kinds of load alone, in pairs, and all together:
 * what each of them gets, and how long it waits at most.
 */
#include <stdio.h>

#include "bench/mix.h"
#include "bench/sched.h"

#define RUN_NS 20000000000ull	/* Virtual time of a measurement: 20 s. */

static int mix_measure(const struct sched_options *options, unsigned kinds,
		       bool blind, struct mix_result result[MIX_KINDS])
{
	struct rig_options rig_options = {
		.drive = options->drive ? options->drive : "modern",
		.seed = options->seed,
		.blind = blind,
		.volatile_cache = true,
		.host_ns = options->host_ns,
	};
	uint64_t ns = options->quick ? RUN_NS / 10 : RUN_NS;
	struct rig rig;
	int rc = rig_open(&rig_options, &rig);

	/* The head has to be found before anything is measured. */
	if (!rc)
		rc = mix_run(&rig, 1, ns / 2, options->seed, result);
	if (!rc)
		rc = mix_run(&rig, kinds, ns, options->seed, result);
	for (unsigned k = 0; k < MIX_KINDS; k++)
		result[k].bytes = (uint64_t)((double)result[k].bytes * 1e9 /
					     (double)ns);
	rig_close(&rig);
	return rc;
}

static void mix_print(unsigned kinds, const struct mix_result *result)
{
	unsigned k;

	for (k = 0; k < MIX_KINDS; k++) {
		const struct mix_result *r = &result[k];

		if (!(kinds & 1u << k))
			continue;
		printf("  %-22s %9lu %9.1f %9.1f %9.1f\n", mix_kinds[k].name,
		       (unsigned long)r->requests,
		       r->requests ? (double)r->wait_ns / 1e6 /
			       (double)r->requests : 0,
		       (double)r->max_ns / 1e6, (double)r->bytes / 1e6);
	}
}

int sched_mix(const struct sched_options *options)
{
	/* Sets of kinds that are run together, a bit for each kind. */
	static const unsigned mixtures[] = {
		0x01, 0x02, 0x03, 0x05, 0x11, 0x12, 0x21, 0x41, 0x24, 0x60,
		0x33, 0xff,
	};
	struct mix_result result[MIX_KINDS];
	int rc = 0;
	size_t i;
	int blind;

	for (blind = 0; blind < 2 && !rc; blind++) {
		printf("%-24s %9s %9s %9s %9s\n",
		       blind ? "head unknown" : "head known", "requests",
		       "mean ms", "most ms", "MB/s");
		for (i = 0; i < sizeof(mixtures) / sizeof(*mixtures) && !rc;
		     i++) {
			rc = mix_measure(options, mixtures[i], blind, result);
			if (!rc)
				mix_print(mixtures[i], result);
			printf("\n");
		}
	}
	return rc;
}

/*
 * measure_lab.c - runs all that traxtract does on simulated drives in virtual
 * time, and compares the profile with the drive; to be run by hand.
 *
 *   measure_lab [--seed N] [--quick] [--scratch] [--seeks] [--damage N] SPEC...
 *
 * A SPEC is a file, or "random:SEED[,KEY=VALUE...]" (sim/specgen.h).  A file
 * that says nothing of noise gets that of the generated ones.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diskmodel/spec.h"
#include "extract/probe/prober_disk.h"
#include "sim/model_error.h"
#include "sim/sim.h"
#include "sim/specgen.h"
#include "tools/extract_run.h"

struct lab {
	uint64_t seed;
	uint64_t damage;	/* bad places, spread over the drive */
	bool quick, scratch, seeks;
};

static int drive_spec(const char *name, struct spec **spec)
{
	static const char random[] = "random:";
	struct specgen options;
	int err;

	if (!strncmp(name, random, sizeof(random) - 1)) {
		err = specgen_parse(name + sizeof(random) - 1, &options);
		return err ? err : specgen_make(&options, spec);
	}
	err = spec_read(name, spec);
	if (!err && !(*spec)->noise.normal_ns) {
		(*spec)->noise = (struct spec_noise){
			.normal_ns = 8000, .exponential_ns = 20000,
			.late = 0.03, .late_min_ns = 100000,
			.late_max_ns = 3000000,
		};
	}
	return err;
}

/* How far a measured time is off, in microseconds. */
static double off_us(uint64_t seems_ns, uint64_t is_ns)
{
	return ((double)seems_ns - (double)is_ns) / 1e3;
}

/* Returns the number of surfaces in the profile; 0: it has none. */
static uint32_t surfaces_of(const struct profile *p)
{
	uint64_t n = geom_tracks(p->geom);
	struct geom_track t;
	uint32_t most = 0;

	for (uint64_t i = 0; i < n && i < 1000000; i++) {
		geom_track_at(p->geom, i, &t);
		most = t.known && t.surface > most ? t.surface : most;
	}
	return p->part[PROFILE_SURFACES].confidence_ppm ? most + 1 : 0;
}

static void print_seeks(const struct profile *p, const struct spec *spec)
{
	double worst = 0;

	printf("  seek off, us:");
	for (uint32_t i = 0; i < p->mech.seek_n; i++) {
		const struct service_seek *s = &p->mech.seek[i];
		uint32_t each = surfaces_of(p) ? 1 : spec->surfaces;
		uint32_t cylinders = s->cylinders / each;
		double off = off_us(s->ns, service_seek_ns(&spec->mech, 0,
					cylinders ? cylinders : 1));

		printf(" %u:%+.0f", s->cylinders, off);
		worst = fmax(worst, fabs(off));
	}
	printf(" (worst %.0f)\n", worst);
}

static void print_mech(const struct lab *lab, const struct profile *p,
		       const struct spec *spec)
{
	printf("  overhead %+.0f us, head switch %+.0f us (%u), settle %+.0f "
	       "us (%u), zero latency %s (%u), read-ahead %u for %u (%u), "
	       "seeks %u\n",
	       off_us(p->read_overhead_ns, spec->read_overhead_ns),
	       off_us(p->mech.head_switch_ns, spec->mech.head_switch_ns),
	       p->part[PROFILE_SWITCH].confidence_ppm,
	       off_us(p->mech.write_settle_ns, spec->mech.write_settle_ns),
	       p->part[PROFILE_SETTLE].confidence_ppm,
	       p->mech.zero_latency_read == spec->mech.zero_latency_read ?
		       "right" : "WRONG",
	       p->part[PROFILE_ZERO_LATENCY].confidence_ppm,
	       p->read_ahead_sectors, spec->read_ahead_lbns,
	       p->part[PROFILE_READ_AHEAD].confidence_ppm, p->mech.seek_n);
	if (lab->seeks && p->mech.seek_n)
		print_seeks(p, spec);
}

static uint32_t cylinders(const struct geom *geom)
{
	struct geom_track t;

	geom_track_at(geom, geom_tracks(geom) - 1, &t);
	return t.cylinder + 1;
}

static bool judge(const struct lab *lab, const char *name,
		  const struct extract_run *run, enum extract_end end,
		  const struct spec *spec)
{
	const struct profile *p = run->state->profile;
	struct geom *truth;
	uint32_t surfaces;
	struct model_error j;

	printf("%s: ends with %d%s%s, %" PRIu64 " reads, %.1f s\n", name, end,
	       run->verdict ? ", " : "", run->verdict ? run->verdict : "",
	       run->prober->accesses,
	       (double)env_now_ns(run->prober->env) / 1e9);
	if (!p || !p->mech.period_ps || spec_geom(spec, &truth))
		return false;
	if (model_error_geom(truth, p->geom, &j))
		return false;
	printf("  period off by %.2f millionths; %" PRIu64 " tracks right, %"
	       PRIu64 " WRONG, %.3f %% unknown, angles p50 %.2f p99 %.2f max "
	       "%.2f %%\n",
	       1e6 * ((double)p->mech.period_ps /
		      (double)spec->mech.period_ps - 1),
	       j.right, j.wrong, 100 * (double)j.unknown_sectors /
				 (double)geom_sectors(truth),
	       j.angle_p50_ppm / 1e4, j.angle_p99_ppm / 1e4,
	       j.angle_max_ppm / 1e4);
	print_mech(lab, p, spec);
	surfaces = surfaces_of(p);
	printf("  surfaces %u of %u%s (%u), cylinders %u of %u\n", surfaces,
	       spec->surfaces, surfaces && surfaces != spec->surfaces ?
		       " WRONG" : "",
	       p->part[PROFILE_SURFACES].confidence_ppm, cylinders(p->geom),
	       cylinders(truth));
	geom_free(truth);
	return !j.wrong && (!surfaces || surfaces == spec->surfaces);
}

static bool measure(const struct lab *lab, const char *name)
{
	struct sim_options options = { .seed = lab->seed };
	struct extract_state state = { 0 };
	struct identity identity = { .rotational = true };
	struct extract_run run = {
		.state = &state, .identity = &identity,
		.quick = lab->quick, .scratch = lab->scratch,
	};
	struct spec *spec;
	struct sim *sim;
	enum extract_end end;
	bool right;

	if (drive_spec(name, &spec))
		return false;
	sim = sim_new(spec, 0, &options);
	run.prober = sim ? prober_disk_new(sim_env(sim), sim_disk(sim),
					   lab->scratch, NULL) : NULL;
	if (!run.prober)
		return false;
	for (uint64_t i = 0; i < lab->damage; i++)
		sim_damage(sim, run.prober->limits->sectors / lab->damage * i +
				i * 7919 % 997, 8);
	end = extract_run(&run);
	right = judge(lab, name, &run, end, spec);
	extract_state_free(&state);
	prober_disk_free(run.prober);
	sim_free(sim);
	spec_free(spec);
	return right;
}

int main(int argc, char **argv)
{
	struct lab lab = { .seed = 1 };
	bool right = true;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			lab.seed = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--damage") && i + 1 < argc)
			lab.damage = strtoull(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "--quick"))
			lab.quick = true;
		else if (!strcmp(argv[i], "--scratch"))
			lab.scratch = true;
		else if (!strcmp(argv[i], "--seeks"))
			lab.seeks = true;
		else
			right &= measure(&lab, argv[i]);
	}
	return !right;
}

/*
 * sched_head.c - what the head does with its time (Freeblock, OSDI 2000,
 * figures 2 to 6): random 4-KiB requests, two thirds of them reads, by drive,
 * request size, locality, scheduler, and the window of SPTF-SWn%.
 */
#include <stdio.h>
#include <string.h>

#include "bench/rig.h"
#include "bench/sched_measures.h"

static const char *const drives[] = {
	"atlas-10k", "cheetah-9lp", "ultrastar-18es", "hp-c2247a", "modern",
	NULL
};

/* A policy that wants gaps and uses none, to measure what choosing with gaps in
 * mind costs. */
static struct queue_request *no_gap(void *arg,
				    const struct head_state *head_state,
				    const struct service_request *next,
				    bool joins)
{
	(void)arg;
	(void)head_state;
	(void)next;
	(void)joins;
	return NULL;
}

static struct queue_request *no_idle(void *arg,
				     const struct head_state *head_state,
				     uint64_t quiet_ns, uint64_t *again_ns)
{
	(void)arg;
	(void)head_state;
	(void)quiet_ns;
	*again_ns = UINT64_MAX;
	return NULL;
}

static bool wants_always(void *arg)
{
	(void)arg;
	return true;
}

static const struct queue_filler idle_filler = {
	no_gap, no_idle, wants_always, NULL, NULL,
};

static double percent_of(uint64_t part_ns, uint64_t all_ns)
{
	return 100.0 * (double)part_ns / (double)all_ns;
}

/* A real head reports no times; prints how well it was predicted. */
static void print_real(const struct sched_head_load *m,
		       const struct sched_head_use *use)
{
	const struct head_stats *s = &use->stats;
	uint64_t n = s->read.predictions + s->write.predictions;

	printf("%-16s %s, wrong %5.2f %%, guard %.2f ms %9.2f %9.2f\n",
	       m->label, s->mode == HEAD_ON ? "on " : "off",
	       n ? percent_of(s->read.wrong + s->write.wrong, n) : 0.0,
	       (double)s->read.guard_ns / 1e6, use->result.head_mean_ns / 1e6,
	       use->result.mean_ns / 1e6);
}

int sched_head_uses(const struct sched_options *options,
		    const struct sched_head_load *m,
		    struct sched_head_use *use)
{
	struct rig_options rig_options = {
		.drive = options->drive ? options->drive : m->drive,
		.seed = options->seed,
		.policy = m->policy,
		.no_cache = true,
		.device = options->device,
		.scratch = options->scratch,
	};
	struct rig_load load = {
		.clients = m->clients,
		.sectors = m->sectors,
		.read_percent = 67,
		.near = m->near,
		.warmup = 300,
		.requests = options->requests ? options->requests : 10000,
		.seed = options->seed,
	};
	struct rig rig;
	int err = rig_open(&rig_options, &rig);

	if (options->quick)
		load.requests /= 10;
	if (err)
		return err;
	if (m->budget_ppm) {
		queue_set_filler(rig.queue, &idle_filler, NULL);
		queue_set_budget(rig.queue, m->budget_ppm);
	}
	err = rig_run(&rig, &load, &use->result);
	head_get_stats(rig.head, &use->stats);
	rig_close(&rig);
	return err;
}

static int measure_one(const struct sched_options *options,
		       const struct sched_head_load *m)
{
	struct sched_head_use use;
	const struct rig_result *r = &use.result;
	int err = sched_head_uses(options, m, &use);

	if (!err && options->device)
		print_real(m, &use);
	else if (!err)
		printf("%-16s %8.1f %8.1f %8.1f %8.1f %9.2f %9.2f\n", m->label,
		       percent_of(r->times.seek_ns + r->times.switch_ns,
				  r->ns),
		       percent_of(r->times.rotation_ns, r->ns),
		       percent_of(r->times.transfer_ns, r->ns),
		       percent_of(r->times.overhead_ns + r->times.idle_ns,
				  r->ns),
		       r->head_mean_ns / 1e6, r->mean_ns / 1e6);
	fflush(stdout);
	return err;
}

static void heading(const char *what)
{
	printf("\n%-16s %8s %8s %8s %8s %9s %9s\n", what, "seek %", "rot. %",
	       "transf %", "other %", "access ms", "resp. ms");
}

static int by_drive(const struct sched_options *options)
{
	struct sched_head_load m = { .policy = "fcfs", .clients = 1,
				     .sectors = 8 };
	int err = 0, i;

	heading("drive");
	for (i = 0; drives[i] && !err && (!i || !options->drive); i++) {
		m.drive = drives[i];
		m.label = options->drive ? "the given" : drives[i];
		err = measure_one(options, &m);
	}
	return err;
}

static int by_size(const struct sched_options *options)
{
	static const struct {
		const char *label;
		uint32_t sectors;
	} rows[] = {
		{ "4 KiB", 8 }, { "8 KiB", 16 }, { "32 KiB", 64 },
		{ "64 KiB", 128 }, { "128 KiB", 256 }, { "256 KiB", 512 },
	};
	struct sched_head_load m = { .drive = "atlas-10k", .policy = "fcfs",
				     .clients = 1 };
	int err = 0;
	size_t i;

	heading("request size");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]) && !err; i++) {
		m.label = rows[i].label;
		m.sectors = rows[i].sectors;
		err = measure_one(options, &m);
	}
	return err;
}

static int by_locality(const struct sched_options *options)
{
	static const struct {
		const char *label;
		uint64_t near;
	} rows[] = {
		{ "whole disk", 0 }, { "within 1 GB", 1000000 },
		{ "within 100 MB", 100000 }, { "within 10 MB", 10000 },
	};
	struct sched_head_load m = { .drive = "atlas-10k", .policy = "fcfs",
				     .clients = 1, .sectors = 8 };
	int err = 0;
	size_t i;

	heading("locality");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]) && !err; i++) {
		m.label = rows[i].label;
		m.near = rows[i].near;
		err = measure_one(options, &m);
	}
	return err;
}

static int by_scheduler(const struct sched_options *options)
{
	static const char *const names[] = { "fcfs", "c-look", "sstf", "sptf" };
	struct sched_head_load m = { .drive = "atlas-10k", .clients = 20,
				     .sectors = 8 };
	int err = 0;
	size_t i;

	heading("scheduler (20)");
	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !err; i++) {
		m.label = m.policy = names[i];
		err = measure_one(options, &m);
	}
	return err;
}

int sched_head(const struct sched_options *options)
{
	int err = by_drive(options);

	printf("published: rotation 27 to 36 %%, by drive\n");
	if (!err)
		err = by_size(options);
	if (!err)
		err = by_locality(options);
	if (!err)
		err = by_scheduler(options);
	printf("published: rotation 50 %% with SSTF, 22 %% with SPTF\n");
	return err;
}

int sched_order(const struct sched_options *options)
{
	static const char *const names[] = {
		"sptf", "sptf-sw5", "sptf-sw10", "sptf-sw20", "sptf-sw40",
		"sptf-sw60", "sptf-sw80", "sptf-sw100", "sptf-sw200", "sstf",
	};
	struct sched_head_load m = { .drive = "atlas-10k", .clients = 20,
				     .sectors = 8 };
	int err = 0;
	size_t i;

	heading("20 outstanding");
	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !err; i++) {
		m.label = m.policy = names[i];
		err = measure_one(options, &m);
	}
	m.policy = NULL;
	m.label = "cost 0.5 %";
	m.budget_ppm = 5000;
	if (!err)
		err = measure_one(options, &m);
	m.label = "cost 2 %";
	m.budget_ppm = 20000;
	if (!err)
		err = measure_one(options, &m);
	printf("published: SW40%% costs 6 %% of access time, rotation 36 %%\n");
	return err;
}

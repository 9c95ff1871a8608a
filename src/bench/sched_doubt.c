/*
 * sched_doubt.c - shows that a wrong model costs little time: compares a load
 * with a wrong model to the same load without a model, on drives from seeds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rig.h"
#include "bench/sched.h"

/* Number of drives from seeds, and of requests of a measurement. */
#define DRIVES 6u
#define REQUESTS 2000u

static void skew_off(struct spec *is, struct spec *model, void *arg)
{
	(void)is;
	(void)arg;
	for (size_t i = 0; i < model->zones_n; i++)
		model->zones[i].track_skew +=
			(angle)(UINT64_C(0x100000000) /
				model->zones[i].around[0]);
}

static void bound_off(struct spec *is, struct spec *model, void *arg)
{
	(void)is;
	(void)arg;
	for (size_t i = 0; i + 1 < model->zones_n; i++) {
		model->zones[i].last_cylinder++;
		model->zones[i + 1].first_cylinder++;
	}
}

static void spindle_fast(struct spec *is, struct spec *model, void *arg)
{
	(void)model;
	(void)arg;
	is->mech.period_ps -= is->mech.period_ps * 3 / 1000;
}

/* Adds a defect at the front of each zone that the model does not have. */
static void slip_unlisted(struct spec *is, struct spec *model, void *arg)
{
	(void)is;
	(void)arg;
	for (size_t i = 0; i < model->zones_n; i++) {
		struct spec_list *slips = &model->zones[i].slips;

		if (slips->n) {
			slips->n--;
			memmove(slips->v, slips->v + 1,
				slips->n * sizeof(*slips->v));
		}
	}
}

static void seeks_short(struct spec *is, struct spec *model, void *arg)
{
	(void)is;
	(void)arg;
	for (uint32_t i = 0; i < model->mech.seek_n; i++)
		model->mech.seek[i].ns -= model->mech.seek[i].ns / 10;
	model->read_overhead_ns /= 3;
	model->write_overhead_ns /= 3;
}

static void settle_off(struct spec *is, struct spec *model, void *arg)
{
	(void)is;
	(void)arg;
	model->mech.write_settle_ns /= 4;
	model->write_overhead_ns /= 4;
}

static void nothing_off(struct spec *is, struct spec *model, void *arg)
{
	(void)is;
	(void)model;
	(void)arg;
}

static const struct {
	const char *name;
	void (*doubt)(struct spec *is, struct spec *model, void *arg);
} sched_doubts[] = {
	{ "nothing", nothing_off },
	{ "skew by a sector", skew_off },
	{ "zone bounds by a cylinder", bound_off },
	{ "spindle by 0.3 %", spindle_fast },
	{ "a slip unlisted", slip_unlisted },
	{ "seeks short by 10 %", seeks_short },
	{ "settling of writes", settle_off },
	{ NULL, NULL },
};

struct bench_load {
	const char *name;
	unsigned clients, read_percent;
};

static const struct bench_load loads[] = {
	{ "1 r", 1, 100 }, { "1 rw", 1, 67 }, { "4 rw", 4, 67 },
	{ "16 rw", 16, 67 }, { "16 w", 16, 0 },
};
#define LOADS (sizeof(loads) / sizeof(loads[0]))

/* How many of the requests the head was predicted for. */
struct head_on {
	struct rig *rig;
	uint64_t over;		/* requests completed */
	uint64_t off;		/* number of the first request without
				 * prediction; 0: none */
	uint64_t on;		/* number of requests with prediction */
};

static void head_on_count(void *arg, unsigned client, struct queue_request *req)
{
	struct head_on *head_on = arg;
	enum head_mode mode;

	(void)client;
	(void)req;
	head_on->over++;
	if (!head_on->rig->head)
		return;
	mode = head_mode(head_on->rig->head);
	head_on->on += mode == HEAD_ON;
	if (mode == HEAD_OFF && !head_on->off)
		head_on->off = head_on->over;
}

static int run_one(const struct sched_options *options, const char *drive,
		   size_t doubt, const struct bench_load *what, bool blind,
		   struct head_on *head_on, double *ns)
{
	const struct rig_options rig_options = {
		.drive = drive, .seed = options->seed, .blind = blind,
		.doubt = sched_doubts[doubt].doubt,
	};
	const struct rig_load load = {
		.clients = what->clients, .sectors = 8,
		.read_percent = what->read_percent,
		.requests = (options->requests ? options->requests : REQUESTS) /
			    (options->quick ? 10 : 1),
		.seed = options->seed,
		.over = head_on_count,
		.arg = head_on,
	};
	struct rig_result result;
	struct rig rig;
	int err = rig_open(&rig_options, &rig);

	if (err)
		return err;
	*head_on = (struct head_on){ .rig = &rig };
	err = rig_run(&rig, &load, &result);
	*ns = (double)result.ns;
	rig_close(&rig);
	return err;
}

/* Not every drive can have a model that is wrong in this way. */
static int doubt_row(const struct sched_options *options, const char *drive,
		     size_t doubt)
{
	struct head_on head_on[LOADS];
	int err = 0;

	printf("%-12s %-26s", drive, sched_doubts[doubt].name);
	for (size_t i = 0; i < LOADS && !err; i++) {
		double with = 0, without = 1;

		err = run_one(options, drive, doubt, &loads[i], true,
				      &head_on[i], &without);
		if (!err)
			err = run_one(options, drive, doubt, &loads[i], false,
				      &head_on[i], &with);
		if (!err)
			printf("%8.1f%%", 100 * (with / without - 1));
		fflush(stdout);
	}
	for (size_t i = 0; i < LOADS && !err; i++)
		printf("%6llu %3.0f%%", (unsigned long long)head_on[i].off,
		       100.0 * (double)head_on[i].on / (double)head_on[i].over);
	printf(err == -EINVAL ? "       -\n" : "\n");
	return err == -EINVAL ? 0 : err;
}

int sched_doubt(const struct sched_options *options)
{
	unsigned drives = options->drive ? 1 : DRIVES;
	char name[32];
	int err = 0;

	printf("time beyond that of a plain queue, by what is believed "
	       "wrongly\n%-39s", "");
	for (size_t i = 0; i < LOADS; i++)
		printf("%9s", loads[i].name);
	printf("  first off (request), and how long on\n");
	for (unsigned d = 0; d < drives && !err; d++) {
		snprintf(name, sizeof(name), "random:%llu",
			 (unsigned long long)options->seed * 100 + d);
		for (size_t i = 0; sched_doubts[i].name && !err; i++)
			err = doubt_row(options, options->drive ?
					options->drive : name, i);
	}
	return err;
}

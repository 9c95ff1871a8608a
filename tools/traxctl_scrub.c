/*
 * traxctl_scrub.c - scrub status, start, pause, resume; budget.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "tools/amounts.h"
#include "tools/facts.h"
#include "tools/progress.h"
#include "tools/traxctl.h"

#define ATTRIBUTE "trax.scrub"
#define WAIT_US 500000		/* between two looks at a running scrub */

/* Prints how far a pass is, its rate, and the time that is left. */
static void print_progress(json_t *status)
{
	printf("%.1f %% of %s, %.1f MB/s, %s left",
	       fact_number(status, "percent"),
	       size_text(fact_number(status, "all_bytes")).s,
	       fact_number(status, "mb_per_s"),
	       duration_text(fact_number(status, "eta_seconds")).s);
}

static void print_status(json_t *status)
{
	const char *state = fact_string(status, "state");
	double requests = fact_number(status, "foreground_delay.requests");

	printf("state     %s\n", state);
	if (!strcmp(state, "running")) {
		fputs("progress  ", stdout);
		print_progress(status);
		putchar('\n');
	}
	printf("begun     %s\n",
	       date_text(fact_number(status, "begun_seconds")).s);
	printf("ended     %s, passes: %.0f\n",
	       date_text(fact_number(status, "ended_seconds")).s,
	       fact_number(status, "passes"));
	printf("next      %s\n",
	       date_text(fact_number(status, "next_seconds")).s);
	printf("damage    %s\n",
	       count_text((uint64_t)fact_number(status, "errors"), "place").s);
	if (requests)
		printf("delay     of %s meanwhile: mean %.2f ms, "
		       "99 in 100 below %.2f ms, worst %.2f ms\n",
		       count_text((uint64_t)requests, "request").s,
		       fact_number(status, "foreground_delay.mean_ms"),
		       fact_number(status, "foreground_delay.p99_ms"),
		       fact_number(status, "foreground_delay.worst_ms"));
	printf("read      %s while the platter turned for nothing, %s while "
	       "idle\n",
	       size_text(fact_number(status, "free_bandwidth.gap_bytes")).s,
	       size_text(fact_number(status, "free_bandwidth.idle_bytes")).s);
}

static int act(const struct arguments *a, uint32_t command)
{
	struct trax_control c = { .command = command };

	return control_ioctl(a->path, &c) ? complain(a, "scrub") : 0;
}

static void say_progress(struct progress *progress, json_t *status)
{
	char more[96];

	snprintf(more, sizeof(more), "of %s, %.1f MB/s",
		 size_text(fact_number(status, "all_bytes")).s,
		 fact_number(status, "mb_per_s"));
	progress_say(progress, fact_number(status, "percent") / 100, more);
}

/* Reports how a pass has ended, or why it goes on no more. */
static int say_end(const struct arguments *a, json_t *status)
{
	double errors = fact_number(status, "errors");
	double seconds = fact_number(status, "ended_seconds") -
			 fact_number(status, "begun_seconds");

	if (!strcmp(fact_string(status, "state"), "paused")) {
		fprintf(stderr, "traxctl: %s: paused at %.1f %%: \"traxctl "
			"scrub resume\" goes on\n", a->path,
			fact_number(status, "percent"));
		return EXIT_FAILED;
	}
	printf("scrub: %.0f %% of %s in %s, %s\n",
	       fact_number(status, "percent"),
	       size_text(fact_number(status, "all_bytes")).s,
	       duration_text(seconds).s, errors ? "damage" : "no damage");
	if (!errors)
		return EXIT_SUCCESS;
	fprintf(stderr, "traxctl: %s: damage in %s: \"traxctl errors "
		"%s\" lists it\n", a->path,
		count_text((uint64_t)errors, "place").s, a->path);
	return EXIT_FAILED;
}

/* Waits until no pass is under way; its result. */
static int wait_for_end(const struct arguments *a)
{
	struct progress progress;
	json_t *status = NULL;
	int code;

	progress_begin(&progress, "scrub");
	do {
		json_decref(status);
		usleep(WAIT_US);
		status = read_json(a->path, ATTRIBUTE);
		if (!status)
			return complain(a, ATTRIBUTE);
		say_progress(&progress, status);
	} while (!strcmp(fact_string(status, "state"), "running"));
	progress_clear(&progress);
	code = say_end(a, status);
	json_decref(status);
	return code;
}

int run_scrub(const struct arguments *a)
{
	static const struct {
		const char *name;
		uint32_t command;	/* 0: none */
	} actions[] = {
		{ "status", 0 },
		{ "start", TRAX_CONTROL_SCRUB_START },
		{ "pause", TRAX_CONTROL_SCRUB_PAUSE },
		{ "resume", TRAX_CONTROL_SCRUB_RESUME },
	};
	struct arguments on = *a;
	size_t i = 0;
	int code;

	if (a->paths_n != 2) {
		fputs("traxctl: scrub status|start|pause|resume MOUNTPOINT\n",
		      stderr);
		return EXIT_WRONG_USE;
	}
	on.path = a->paths[1];
	while (strcmp(actions[i].name, a->paths[0]))
		if (++i == sizeof(actions) / sizeof(actions[0])) {
			fprintf(stderr, "traxctl: scrub: no \"%s\"\n",
				a->paths[0]);
			return EXIT_WRONG_USE;
		}
	if (!actions[i].command)
		return show_attribute(&on, ATTRIBUTE, print_status);
	code = act(&on, actions[i].command);
	if (!code && a->wait)
		code = wait_for_end(&on);
	return code;
}

int run_budget(const struct arguments *a)
{
	struct trax_control c = { .command = TRAX_CONTROL_SET_BUDGET,
				  .payload_bytes = sizeof(uint64_t) };
	struct arguments on = *a;
	double percent = -1;
	uint64_t ppm;
	char *end;

	if (a->paths_n == 2) {
		percent = strtod(a->paths[0], &end);
		percent = end == a->paths[0] || *end ? -1 : percent;
	}
	if (!(percent >= 0 && percent <= TRAX_BUDGET_MOST_PPM / 1e4)) {
		fprintf(stderr, "traxctl: a number of percent from 0 to %g is "
			"wanted, and a mountpoint\n",
			TRAX_BUDGET_MOST_PPM / 1e4);
		return EXIT_WRONG_USE;
	}
	ppm = (uint64_t)(percent * 1e4 + 0.5);
	memcpy(c.payload, &ppm, sizeof(ppm));
	on.path = a->paths[1];
	return control_ioctl(on.path, &c) ? complain(&on, "budget") : 0;
}

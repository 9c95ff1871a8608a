/*
 * traxctl_scrub.c - scrub status, start, pause, resume; budget.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/traxctl.h"

#define ATTRIBUTE "trax.scrub"
#define WAIT_US 500000

static int show_status(const struct arguments *a)
{
	json_t *status = read_json(a->path, ATTRIBUTE);
	int code;

	if (!status)
		return complain(a, ATTRIBUTE);
	code = a->json ? print_json(status) : print_facts(status);
	json_decref(status);
	return code;
}

static int act(const struct arguments *a, uint32_t command)
{
	struct trax_control c = { .command = command };

	return control_ioctl(a->path, &c) ? complain(a, "scrub") : 0;
}

/* Waits until no pass is under way; its result. */
static int wait_for_end(const struct arguments *a)
{
	json_t *status, *errors;
	const char *state;
	bool running, bad;

	do {
		usleep(WAIT_US);
		status = read_json(a->path, ATTRIBUTE);
		if (!status)
			return complain(a, ATTRIBUTE);
		state = json_string_value(json_object_get(status, "state"));
		running = state && !strcmp(state, "running");
		errors = json_object_get(status, "errors");
		bad = json_integer_value(errors) != 0;
		json_decref(status);
	} while (running);
	if (bad)
		fprintf(stderr, "traxctl: %s: damage was met: traxctl errors\n",
			a->path);
	return bad ? EXIT_FAILED : 0;
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
		return show_status(&on);
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
		fprintf(stderr, "traxctl: budget PERCENT MOUNTPOINT, 0 to %g\n",
			TRAX_BUDGET_MOST_PPM / 1e4);
		return EXIT_WRONG_USE;
	}
	ppm = (uint64_t)(percent * 1e4 + 0.5);
	memcpy(c.payload, &ppm, sizeof(ppm));
	on.path = a->paths[1];
	return control_ioctl(on.path, &c) ? complain(&on, "budget") : 0;
}

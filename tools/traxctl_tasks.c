/*
 * traxctl_tasks.c - shows the background tasks of a mount as one table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "tools/amounts.h"
#include "tools/facts.h"
#include "tools/traxctl.h"

#define ATTRIBUTE "trax.tasks"

static void print_row(json_t *row)
{
	double all = fact_number(row, "all_bytes");

	printf("%-10s %-8s ", fact_string(row, "name"),
	       fact_string(row, "state"));
	if (all > 0)
		printf("%5.1f %% of %-9s ", fact_number(row, "percent"),
		       size_text(all).s);
	else
		printf("%20s ", size_text(fact_number(row, "done_bytes")).s);
	printf("%8.1f MB/s  %-14s %6.0f %8.1f ms  %s\n",
	       fact_number(row, "mb_per_s"),
	       duration_text(fact_number(row, "eta_seconds")).s,
	       fact_number(row, "delayed_requests"),
	       fact_number(row, "delay_ms"),
	       fact_number(row, "next_seconds") > 0 ?
	       date_text(fact_number(row, "next_seconds")).s : "-");
}

static void print_table(json_t *tasks)
{
	json_t *row;
	size_t i;

	fputs(mark("bold"), stdout);
	printf("%-10s %-8s %-20s %13s  %-14s %-18s  %s", "task", "state",
	       "done", "rate", "left", "delayed requests", "next");
	puts(mark(""));
	json_array_foreach(fact_at(tasks, "tasks"), i, row)
		print_row(row);
	printf("delay of %s of users: mean %.2f ms, 99 in 100 below "
	       "%.2f ms, worst %.2f ms; limit %g %% of the head's time\n",
	       count_text((uint64_t)fact_number(tasks,
			"foreground_delay.requests"), "request").s,
	       fact_number(tasks, "foreground_delay.mean_ms"),
	       fact_number(tasks, "foreground_delay.p99_ms"),
	       fact_number(tasks, "foreground_delay.worst_ms"),
	       fact_number(tasks, "limit_percent"));
}

static int act(const struct arguments *a, uint32_t command, const char *name)
{
	struct trax_control c = { .command = command,
				  .payload_bytes = TRAX_TASK_NAME_BYTES };

	strncpy((char *)c.payload, name, TRAX_TASK_NAME_BYTES - 1);
	if (!control_ioctl(a->path, &c))
		return 0;
	if (errno != ENOENT || access(a->path, F_OK))
		return complain(a, name);
	fprintf(stderr, "traxctl: %s: no task has the name %s\n", a->path,
		name);
	return EXIT_FAILED;
}

static int wrong_use(void)
{
	fputs("traxctl: tasks [pause TASK|resume TASK|limit PERCENT] "
	      "MOUNTPOINT\n", stderr);
	return EXIT_WRONG_USE;
}

int run_tasks(const struct arguments *a)
{
	struct arguments on = *a;

	if (a->paths_n == 1)
		return show_attribute(a, ATTRIBUTE, print_table);
	if (a->paths_n != 3)
		return wrong_use();
	on.path = a->paths[2];
	if (!strcmp(a->paths[0], "pause"))
		return act(&on, TRAX_CONTROL_TASK_PAUSE, a->paths[1]);
	if (!strcmp(a->paths[0], "resume"))
		return act(&on, TRAX_CONTROL_TASK_RESUME, a->paths[1]);
	if (strcmp(a->paths[0], "limit"))
		return wrong_use();
	on.paths = a->paths + 1;
	on.paths_n = 2;
	return run_budget(&on);
}

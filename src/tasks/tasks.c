/*
 * tasks.c - shows the scrub, file scans, moves and the making of replicas: what
 * each does, how far it is, how fast, and by how much all of them together have
 * delayed users.
 */
#include "tasks/tasks.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/op/fs_state.h"
#include "fs/table/replica.h"
#include "move/move.h"
#include "scan/file_scan.h"
#include "sched/freeblock/freeblock.h"
#include "scrub/scrub.h"

#define SCAN_NAME "scan-%llu"

struct task_row {
	const char *name, *state;
	uint64_t done_bytes, all_bytes;	/* 0: not known */
	uint64_t run_ns, run_bytes;	/* which its rate comes from */
	int64_t next_seconds;		/* since 1970; 0: not known */
	const char *freeblock;		/* the name that the queue knows it by;
					 * NULL: none */
};

static json_t *row_json(const struct tasks *tasks, const struct task_row *row)
{
	struct freeblock_delay delay = { 0, 0 };
	double rate = row->run_ns ? (double)row->run_bytes * 1e9 /
				    (double)row->run_ns : 0;
	double left = row->all_bytes > row->done_bytes ?
			      (double)(row->all_bytes - row->done_bytes) : 0;
	bool known = rate > 0 && row->all_bytes &&
		     !strcmp(row->state, "running");

	if (row->freeblock)
		freeblock_get_delay(tasks->fs->queue, row->freeblock, &delay);
	return json_pack("{s:s, s:s, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:f}",
		"name", row->name, "state", row->state,
		"done_bytes", (json_int_t)row->done_bytes,
		"all_bytes", (json_int_t)row->all_bytes,
		"percent", row->all_bytes ? 100.0 * (double)row->done_bytes /
					    (double)row->all_bytes : 0.0,
		"mb_per_s", rate / 1e6,
		"eta_seconds", known ? (json_int_t)(left / rate) :
				       (json_int_t)-1,
		"next_seconds", (json_int_t)row->next_seconds,
		"delayed_requests", (json_int_t)delay.requests,
		"delay_ms", (double)delay.sum_ns / 1e6);
}

static json_t *scrub_row(const struct tasks *tasks, struct scrub *scrub)
{
	static const char *const states[] = {
		[SCRUB_WAITING] = "waiting", [SCRUB_RUNNING] = "running",
		[SCRUB_PAUSED] = "paused", [SCRUB_HELD] = "paused",
	};
	struct scrub_status s;

	scrub_get_status(scrub, &s);
	return row_json(tasks, &(struct task_row){
		.name = "scrub",
		.state = states[s.state],
		.done_bytes = s.done_sectors * SECTOR_BYTES,
		.all_bytes = s.all_sectors * SECTOR_BYTES,
		.run_ns = s.run_ns,
		.run_bytes = s.run_sectors * SECTOR_BYTES,
		.next_seconds = s.next_seconds,
		.freeblock = "scrub",
	});
}

static void scan_name(uint64_t id, char *name, size_t bytes)
{
	snprintf(name, bytes, SCAN_NAME, (unsigned long long)id);
}

static json_t *scan_row(const struct tasks *tasks,
			 struct file_scan *scan)
{
	static const char *const states[] = {
		[SCAN_RUNNING] = "running", [SCAN_PAUSED] = "paused",
		[SCAN_BLOCKED] = "blocked", [SCAN_ENDED] = "ended",
		[SCAN_FAILED] = "failed",
	};
	struct scan_status s;
	char name[32];

	file_scan_get_status(scan, &s);
	scan_name(s.id, name, sizeof(name));
	return row_json(tasks, &(struct task_row){
		.name = name,
		.state = states[s.state],
		.done_bytes = s.given_bytes,
		.all_bytes = s.total_bytes,
		.run_ns = s.run_ns,
		.run_bytes = s.given_bytes,
		.freeblock = "file scan",
	});
}

static json_t *copies_row(const struct tasks *tasks,
			 const struct replicas *replicas)
{
	return row_json(tasks, &(struct task_row){
		.name = "copies",
		.state = replicas->paused_most ? "paused" :
			 replicas->most ? "running" : "off",
		.done_bytes = replicas->stats.made_bytes,
	});
}

static json_t *moves_row(const struct tasks *tasks,
			 const struct moves *moves)
{
	struct moves_status s;

	moves_get_status(moves, &s);
	return row_json(tasks, &(struct task_row){
		.name = "cleaning",
		.state = s.paused ? "paused" :
			 s.under_way ? "running" : "waiting",
		.done_bytes = s.sectors * SECTOR_BYTES,
		.run_ns = s.run_ns,
		.run_bytes = s.sectors * SECTOR_BYTES,
		.freeblock = "moves",
	});
}

static json_t *order_row(const struct tasks *tasks,
			 const struct moves *moves)
{
	struct order_status s;

	order_get_status(moves, &s);
	return row_json(tasks, &(struct task_row){
		.name = "order",
		.state = s.paused ? "paused" :
			 s.is_at_work || s.wanted ? "running" : "waiting",
		.done_bytes = s.sectors * SECTOR_BYTES,
		.freeblock = "moves",
	});
}

static json_t *rows_json(const struct tasks *tasks)
{
	json_t *rows = json_array();
	struct file_scan *scan;
	unsigned i;

	if (tasks->scrub)
		json_array_append_new(rows, scrub_row(tasks, tasks->scrub));
	if (tasks->fs->replicas)
		json_array_append_new(rows, copies_row(tasks,
						       tasks->fs->replicas));
	if (tasks->moves) {
		json_array_append_new(rows, moves_row(tasks, tasks->moves));
		json_array_append_new(rows, order_row(tasks, tasks->moves));
	}
	for (i = 0; tasks->scans &&
	     (scan = file_scan_at(tasks->scans, i)); i++)
		json_array_append_new(rows, scan_row(tasks, scan));
	return rows;
}

char *tasks_json(const struct tasks *tasks)
{
	struct freeblock_stats s;
	unsigned limit_ppm;
	json_t *json;
	char *text;

	freeblock_get_stats(tasks->fs->queue, NULL, &s);
	limit_ppm = queue_stats(tasks->fs->queue)->budget_ppm;
	json = json_pack("{s:o, s:f, s:{s:I, s:f, s:f, s:f}}",
		"tasks", rows_json(tasks),
		"limit_percent", (double)limit_ppm / 1e4,
		"foreground_delay",
		"requests", (json_int_t)s.delays,
		"mean_ms", s.delays ? (double)s.delay_ns /
				(double)s.delays / 1e6 : 0.0,
		"p99_ms", (double)s.p99_delay_ns / 1e6,
		"worst_ms", (double)s.max_delay_ns / 1e6);
	text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
	json_decref(json);
	return text;
}

static void pause_copies(struct replicas *replicas, bool paused)
{
	if (paused && replicas->most) {
		replicas->paused_most = replicas->most;
		replicas->most = 0;
	} else if (!paused && replicas->paused_most) {
		replicas->most = replicas->paused_most;
		replicas->paused_most = 0;
	}
}

int tasks_pause(const struct tasks *tasks, const char *name, bool paused)
{
	struct file_scan *scan;
	char scan_is[32];
	unsigned i;

	if (tasks->scrub && !strcmp(name, "scrub")) {
		(paused ? scrub_pause : scrub_resume)(tasks->scrub);
		return 0;
	}
	if (tasks->fs->replicas && !strcmp(name, "copies")) {
		pause_copies(tasks->fs->replicas, paused);
		return 0;
	}
	if (tasks->moves && !strcmp(name, "cleaning")) {
		moves_pause(tasks->moves, paused);
		return 0;
	}
	if (tasks->moves && !strcmp(name, "order")) {
		moves_order_pause(tasks->moves, paused);
		return 0;
	}
	for (i = 0; tasks->scans &&
	     (scan = file_scan_at(tasks->scans, i)); i++) {
		scan_name(file_scan_id(scan), scan_is, sizeof(scan_is));
		if (!strcmp(name, scan_is)) {
			file_scan_pause(scan, paused);
			return 0;
		}
	}
	return -ENOENT;
}

/*
 * traxctl_order.c - has the data of files brought together, and shows what that
 * has gained.
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

#define ATTRIBUTE "trax.moves"
#define NOTHING_MOVES "nothing is moved: no disk that rotates, or moves=0"
/* Pause before it is tried again whether the daemon takes more files, or has
 * done all: 0.2 s. */
#define LOOK_US 200000u

static struct count_text waiting_files(json_t *order)
{
	return count_text((uint64_t)fact_number(order, "files_waiting"),
			  "file");
}

static int show(const char *path, const struct arguments *a)
{
	json_t *moves = read_json(path, ATTRIBUTE);
	json_t *order = moves ? fact_at(moves, "order") : NULL;
	const char *state;

	if (!moves)
		return complain(a, ATTRIBUTE);
	if (a->json) {
		print_json(order ? order : moves);
	} else if (!order) {
		puts(NOTHING_MOVES);
	} else {
		state = fact_is_set(order, "paused") ? "paused" :
			fact_is_set(order, "at_work") ||
			fact_number(order, "files_waiting") > 0 ?
				"running" : "waiting";
		printf("%-14s%s, waiting: %s\n", "state", state,
		       waiting_files(order).s);
		printf("%-14s%s, fragments: %.0f before, %.0f now\n",
		       "moved", size_text(fact_number(order, "moved_bytes")).s,
		       fact_number(order, "fragments_before"),
		       fact_number(order, "fragments_after"));
		printf("%-14s%.0f of %.0f times\n", "left alone",
		       fact_number(order, "left"),
		       fact_number(order, "batches"));
	}
	json_decref(moves);
	return EXIT_SUCCESS;
}

static int act(const char *root, uint32_t command, const struct arguments *a)
{
	struct trax_control c = { .command = command,
				  .payload_bytes = TRAX_TASK_NAME_BYTES };

	strcpy((char *)c.payload, "order");
	return control_ioctl(root, &c) ? complain(a, "order") : EXIT_SUCCESS;
}

/* ---- now ---- */

#define BATCH_FILES (TRAX_CONTROL_PAYLOAD_BYTES / sizeof(uint64_t))

struct order_batch {
	const char *root;
	uint64_t ino[BATCH_FILES];
	unsigned n;
	uint64_t sent, all;		/* files */
	struct progress progress;
};

static int batch_send(struct order_batch *batch)
{
	struct trax_control c;
	unsigned left = batch->n;

	while (left) {
		c = (struct trax_control){
			.command = TRAX_CONTROL_ORDER,
			.payload_bytes = left * (uint32_t)sizeof(uint64_t),
		};
		memcpy(c.payload, batch->ino + batch->n - left,
		       c.payload_bytes);
		if (control_ioctl(batch->root, &c))
			return -1;
		batch->sent += c.result < left ? c.result : left;
		left -= c.result < left ? (unsigned)c.result : left;
		progress_say(&batch->progress, (double)batch->sent /
					       (double)batch->all,
			     "of the files looked at");
		if (left)
			usleep(LOOK_US);
	}
	batch->n = 0;
	return 0;
}

static int batch_count(void *arg, uint64_t ino)
{
	struct order_batch *batch = arg;

	(void)ino;
	batch->all++;
	return 0;
}

static int batch_add(void *arg, uint64_t ino)
{
	struct order_batch *batch = arg;

	batch->ino[batch->n++] = ino;
	return batch->n == BATCH_FILES ? batch_send(batch) : 0;
}

/* Waits until no file waits any more, or the task is paused. */
static int wait_for_end(const char *root)
{
	struct progress progress;
	double waiting, most = 1;
	bool over = false;
	json_t *moves, *order;
	char more[64];

	progress_begin(&progress, "order");
	while (!over) {
		usleep(LOOK_US);
		moves = read_json(root, ATTRIBUTE);
		if (!moves)
			return -1;
		order = fact_at(moves, "order");
		waiting = fact_number(order, "files_waiting");
		most = waiting > most ? waiting : most;
		snprintf(more, sizeof(more), "waiting: %s",
			 waiting_files(order).s);
		progress_say(&progress, 1 - waiting / most, more);
		over = !order || fact_is_set(order, "paused") ||
		       (!fact_is_set(order, "at_work") && !(waiting > 0));
		json_decref(moves);
	}
	progress_clear(&progress);
	return 0;
}

static int order_now(const char *root, const struct arguments *a)
{
	struct order_batch batch = { .root = root };
	/* Data that is not on the disk yet has no place. */
	int rc = sync_mount(root);

	if (!rc)
		rc = walk_files(a->paths + 1, batch_count, &batch);
	progress_begin(&batch.progress, "order");
	if (!rc)
		rc = walk_files(a->paths + 1, batch_add, &batch);
	if (!rc)
		rc = batch_send(&batch);
	progress_clear(&batch.progress);
	if (!rc && a->wait)
		rc = wait_for_end(root);
	if (rc)
		return complain(a, "order");
	return a->wait ? show(root, a) : EXIT_SUCCESS;
}

/* Is anything moved on this mount?  Says so if not. */
static bool something_moves(const char *root, const struct arguments *a)
{
	json_t *moves = read_json(root, ATTRIBUTE);
	bool is = moves && fact_at(moves, "order");

	if (!moves)
		complain(a, ATTRIBUTE);
	else if (!is)
		fprintf(stderr, "traxctl: %s: " NOTHING_MOVES "\n", root);
	json_decref(moves);
	return is;
}

int run_order(const struct arguments *a)
{
	struct arguments on = *a;
	char *root;
	int code = EXIT_WRONG_USE;

	on.path = a->paths[1];
	root = mount_point(on.path);
	if (!root)
		return complain(&on, "stat");
	if (a->paths_n == 2 && !strcmp(a->paths[0], "status"))
		code = show(root, &on);
	else if (!something_moves(root, &on))
		code = EXIT_FAILED;
	else if (!strcmp(a->paths[0], "now"))
		code = order_now(root, &on);
	else if (a->paths_n == 2 && !strcmp(a->paths[0], "pause"))
		code = act(root, TRAX_CONTROL_TASK_PAUSE, &on);
	else if (a->paths_n == 2 && !strcmp(a->paths[0], "resume"))
		code = act(root, TRAX_CONTROL_TASK_RESUME, &on);
	else
		fputs("traxctl: order status|pause|resume|now PATH\n", stderr);
	free(root);
	return code;
}

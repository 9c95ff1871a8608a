/*
 * traxctl_copies.c - replicas, replicate, heat, errors.
 */
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "format/format.h"
#include "tools/amounts.h"
#include "tools/draw.h"
#include "tools/facts.h"
#include "tools/progress.h"
#include "tools/traxctl.h"

/* While other copies are being made the command is repeated, for a minute and
 * ten times a second. */
#define BUSY_TRIES 600
#define BUSY_US 100000
/* The picture in pixels, and where its axis is. */
#define WIDTH 1000
#define HEIGHT 600
#define LEFT 80

/* ---- errors ---- */

/* Reads all pages of trax.errors: numbers begin with 0 and go up, and an empty
 * page is the last. */
static json_t *read_errors(const char *path)
{
	json_t *all = json_array(), *page = NULL;
	json_int_t from = 0;
	char name[64];
	size_t n;

	do {
		snprintf(name, sizeof(name), "trax.errors:%lld",
			 (long long)from);
		page = read_json(path, name);
		n = json_array_size(page);
		if (n)
			from = json_integer_value(json_object_get(
				json_array_get(page, n - 1), "number")) + 1;
		if (!page || json_array_extend(all, page))
			n = 0;
		if (page)
			json_decref(page);
	} while (n);
	if (!page) {
		json_decref(all);
		return NULL;
	}
	return all;
}

/* Has the daemon look at every place again, and waits until it has. */
static int recheck_errors(const struct arguments *a)
{
	struct trax_control c = { .command = TRAX_CONTROL_ERRORS_RECHECK };
	struct progress progress;
	json_t *scrub = NULL;
	bool under_way;

	if (control_ioctl(a->path, &c))
		return complain(a, "recheck");
	progress_begin(&progress, "recheck");
	do {
		json_decref(scrub);
		usleep(BUSY_US);
		scrub = read_json(a->path, "trax.scrub");
		if (!scrub)
			return complain(a, "trax.scrub");
		under_way = json_is_true(json_object_get(scrub, "rechecking"));
		if (under_way)
			progress_say(&progress, -1, "");
	} while (under_way);
	progress_clear(&progress);
	json_decref(scrub);
	return EXIT_SUCCESS;
}

/* Removes all errors that are listed now. */
static int clear_errors(const struct arguments *a)
{
	struct trax_control c = { .command = TRAX_CONTROL_ERRORS_CLEAR,
				  .payload_bytes = sizeof(uint64_t) };
	json_t *array = read_errors(a->path);
	size_t n = json_array_size(array);
	uint64_t end = 0;
	int rc;

	if (!array)
		return complain(a, "trax.errors");
	if (n)
		end = (uint64_t)fact_number(json_array_get(array, n - 1),
					    "number") + 1;
	json_decref(array);
	memcpy(c.payload, &end, sizeof(end));
	rc = control_ioctl(a->path, &c);
	if (rc)
		return complain(a, "clear");
	printf("removed: %s\n", count_text(n, "entry").s);
	return EXIT_SUCCESS;
}

int run_errors(const struct arguments *a)
{
	static const char *const columns[] = {
		"number", "what", "healed", "path", "offset", "lbn", "sectors",
	};
	json_t *array;
	int code;

	if (a->clear)
		return clear_errors(a);
	code = a->recheck ? recheck_errors(a) : EXIT_SUCCESS;
	if (code)
		return code;
	array = read_errors(a->path);
	if (!array)
		return complain(a, "trax.errors");
	code = a->json ? print_json(array) : print_objects(array, columns, 7);
	json_decref(array);
	return code;
}

/* ---- replicas ---- */

static int change_replicas(const struct arguments *a, uint32_t command,
			   uint64_t value)
{
	struct trax_control c = { .command = command,
				  .payload_bytes = sizeof(value) };
	char *root = mount_point(a->path);
	int rc;

	memcpy(c.payload, &value, sizeof(value));
	rc = root ? control_ioctl(root, &c) : -1;
	free(root);
	return rc ? complain(a, "control") : EXIT_SUCCESS;
}

static int drop_replicas(const struct arguments *a)
{
	char *root = mount_point(a->path), *full = realpath(a->path, NULL);
	uint64_t ino = 1;
	struct stat st;
	int code;

	if (!root || !full || stat(full, &st)) {
		code = complain(a, "stat");
	} else {
		if (strcmp(root, full))
			ino = st.st_ino;
		code = change_replicas(a, TRAX_CONTROL_DROP_REPLICAS, ino);
	}
	free(root);
	free(full);
	return code;
}

/* Makes one line of each copy. */
static json_t *flat_copies(json_t *array)
{
	json_t *flat = json_array(), *e, *copy;
	size_t i, k;

	json_array_foreach(array, i, e) {
		json_array_foreach(json_object_get(e, "copies"), k, copy) {
			json_t *line = json_copy(copy);

			json_object_set(line, "offset",
					json_object_get(e, "offset"));
			json_object_set(line, "length",
					json_object_get(e, "length"));
			json_object_set_new(line, "last_use", json_string(
				date_text(fact_number(copy, "last_use")).s));
			json_array_append_new(flat, line);
		}
	}
	return flat;
}

/* Reads all copies of a file, page by page. */
static json_t *read_copies(const char *path)
{
	json_t *all = json_array(), *page, *last;
	int64_t offset = 0, end;
	char name[64];

	do {
		snprintf(name, sizeof(name), "trax.replicas:%lld",
			 (long long)offset);
		page = read_json(path, name);
		if (!page || !json_is_array(page)) {
			json_decref(all);
			return page;
		}
		last = json_array_get(page, json_array_size(page) - 1);
		end = last ? json_integer_value(json_object_get(last,
								"offset")) +
			     json_integer_value(json_object_get(last,
								"length")) :
			     offset;
		json_array_extend(all, page);
		json_decref(page);
		if (end <= offset)
			break;
		offset = end;
	} while (1);
	return all;
}

/* Prints the counts of the mount as a whole. */
static int print_counts(json_t *json)
{
	double reads = fact_number(json, "reads_offered");
	const char *why = json_string_value(json_object_get(json, "why_not"));

	printf("%-14s%.0f of a block at most\n", "wanted",
	       fact_number(json, "most"));
	printf("%-14s%s in %.0f regions\n", "there",
	       size_text(512 * fact_number(json, "sectors")).s,
	       fact_number(json, "regions"));
	printf("%-14s%.0f, %s, since the mount%s\n", "made",
	       fact_number(json, "made"),
	       size_text(fact_number(json, "made_bytes")).s,
	       fact_is_set(json, "busy") ? "; more are being made" : "");
	if (why)
		printf("%-14s%s\n", "none now", why);
	printf("%-14s%.0f given up, %.0f bad\n", "dropped",
	       fact_number(json, "dropped"), fact_number(json, "bad"));
	printf("%-14s%.0f of %.0f that could, %s\n", "reads by them",
	       fact_number(json, "reads_used"), reads,
	       size_text(fact_number(json, "bytes_used")).s);
	return EXIT_SUCCESS;
}

int run_replicas(const struct arguments *a)
{
	static const char *const columns[] = {
		"offset", "length", "lbn", "track", "angle", "uses",
		"last_use",
	};
	json_t *json, *flat;
	int code;

	if (a->drop)
		return drop_replicas(a);
	if (a->set > TRAX_MAX_REPLICAS) {
		fprintf(stderr, "traxctl: --set: %u of a block at most\n",
			TRAX_MAX_REPLICAS);
		return EXIT_WRONG_USE;
	}
	if (a->set >= 0)
		return change_replicas(a, TRAX_CONTROL_SET_REPLICAS,
				       (uint64_t)a->set);
	json = read_copies(a->path);
	if (!json)
		return complain(a, "trax.replicas");
	if (a->json) {
		code = print_json(json);
	} else if (!json_is_array(json)) {
		code = print_counts(json);
	} else {
		flat = flat_copies(json);
		code = print_objects(flat, columns, 7);
		json_decref(flat);
	}
	json_decref(json);
	return code;
}

/* ---- replicate ---- */

struct batch {
	char *root;		/* mount point */
	struct trax_copies copies;
	uint64_t made;
	uint64_t files, all;	/* number of files sent, and of all */
	struct progress progress;
};

static int batch_send(struct batch *batch)
{
	struct trax_control c = { .command = TRAX_CONTROL_REPLICATE,
				  .payload_bytes = sizeof(batch->copies) };
	int tries, rc = 0;

	if (!batch->copies.n)
		return 0;
	memcpy(c.payload, &batch->copies, sizeof(batch->copies));
	for (tries = 0; tries < BUSY_TRIES; tries++) {
		rc = control_ioctl(batch->root, &c);
		if (!rc || errno != EBUSY)
			break;
		usleep(BUSY_US);
	}
	batch->made += c.result;
	batch->files += batch->copies.n;
	batch->copies.n = 0;
	progress_say(&batch->progress, (double)batch->files /
				       (double)batch->all, "of the files");
	return rc;
}

/* Compares names, so that files come in order of name. */
static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

int walk_files(char **paths, int (*each)(void *arg, uint64_t ino), void *arg)
{
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_XDEV, by_name);
	FTSENT *e;
	int rc = fts ? 0 : -1;

	while (!rc && (e = fts_read(fts)))
		if (e->fts_info == FTS_F)
			rc = each(arg, e->fts_statp->st_ino);
	if (fts)
		fts_close(fts);
	return rc;
}

static int batch_count(void *arg, uint64_t ino)
{
	struct batch *batch = arg;

	(void)ino;
	batch->all++;
	return 0;
}

static int batch_add(void *arg, uint64_t ino)
{
	struct batch *batch = arg;

	batch->copies.ino[batch->copies.n++] = ino;
	return batch->copies.n == TRAX_COPIES_FILES ? batch_send(batch) : 0;
}

static int batch_walk(struct batch *batch, char **paths)
{
	int rc = walk_files(paths, batch_count, batch);

	progress_begin(&batch->progress, "replicate");
	if (!rc)
		rc = walk_files(paths, batch_add, batch);
	if (!rc)
		rc = batch_send(batch);
	progress_clear(&batch->progress);
	return rc;
}

/* The LBN at which the file begins that copies shall be near. */
static uint64_t lbn_of(const char *path)
{
	json_t *extents = read_json(path, "trax.extents");
	uint64_t lbn = (uint64_t)json_integer_value(json_object_get(
		json_array_get(extents, 0), "lbn"));

	json_decref(extents);
	return lbn;
}

int run_replicate(const struct arguments *a)
{
	struct batch batch = { .root = NULL };
	int rc;

	batch.copies.near = a->near ? lbn_of(a->near) : a->at;
	if (a->near && !batch.copies.near) {
		fprintf(stderr, "traxctl: %s: has no place of its own\n",
			a->near);
		return EXIT_FAILED;
	}
	batch.root = mount_point(a->path);
	if (!batch.root)
		return complain(a, "stat");
	/* Only data that is on the disk can be copied. */
	rc = sync_mount(batch.root);
	if (!rc)
		rc = batch_walk(&batch, a->paths);
	if (rc && errno == ERANGE)
		fprintf(stderr, "traxctl: %s: the disk has no sector %llu "
			"(--at)\n", a->path, (unsigned long long)a->at);
	else if (rc)
		complain(a, "replicate");
	else
		printf("%s\n", count_text(batch.made, "copy").s);
	free(batch.root);
	return rc ? EXIT_FAILED : EXIT_SUCCESS;
}

/* ---- heat ---- */

/* Reads all pages: the regions of the first one, and the trace of all. */
json_t *read_heat(const char *path)
{
	json_t *all = read_json(path, "trax.heat"), *page;
	json_t *trace = json_object_get(all, "trace");
	int64_t next = json_integer_value(json_object_get(all, "next"));
	char name[64];

	while (all && next) {
		snprintf(name, sizeof(name), "trax.heat:%lld",
			 (long long)next);
		page = read_json(path, name);
		if (!page)
			break;
		json_array_extend(trace, json_object_get(page, "trace"));
		next = json_integer_value(json_object_get(page, "next"));
		json_decref(page);
	}
	if (all)
		json_object_del(all, "next");
	return all;
}

static double at(json_t *point, unsigned i)
{
	return json_number_value(json_array_get(point, i));
}

/* FS2, figures 1 and 9: LBN over time, with copies in another colour. Reads
 * before the first copy was made are on the left, later ones on the right. */
struct panel {
	const char *name;
	size_t begin, end;	/* range of the trace */
	int left, width;
};

#define KIND_COPY 1u		/* a copy was read */
#define PANEL_GAP 40

static const struct {
	const char *colour, *name;
} kinds[] = {
	{ "#1f4e9c", "originals read" }, { "#d2691e", "copies read" },
	{ "#909090", "written" }, { "#2e8b57", "copies written" },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static unsigned kind_of(json_t *point)
{
	return (unsigned)at(point, 2) % KINDS;
}

/* Returns the number of panels: one if nothing was read before the first copy,
 * or nothing after it. */
static unsigned panels_of(json_t *trace, struct panel *panels)
{
	size_t n = json_array_size(trace), first = 0;

	while (first < n &&
	       kind_of(json_array_get(trace, first)) != KIND_COPY)
		first++;
	if (!first || first == n) {
		panels[0] = (struct panel){
			first ? "no copies read" : "with copies", 0, n, LEFT,
			WIDTH,
		};
		return 1;
	}
	panels[0] = (struct panel){ "before copies", 0, first, LEFT,
				    (WIDTH - PANEL_GAP) / 2 };
	panels[1] = (struct panel){ "with copies", first, n,
				    LEFT + (WIDTH + PANEL_GAP) / 2,
				    (WIDTH - PANEL_GAP) / 2 };
	return 2;
}

static void draw_heat(FILE *f, json_t *trace, const struct panel *panel,
		      double bytes)
{
	double unit = bytes >= 4e12 ? 1e12 : bytes >= 4e9 ? 1e9 : 1e6;
	double first = at(json_array_get(trace, panel->begin), 0);
	struct draw_panel p = {
		.f = f, .left = panel->left, .top = 24,
		.width = panel->width, .height = HEIGHT, .y_max = bytes,
	};
	json_t *point;
	size_t i;

	for (i = panel->begin; i < panel->end; i++) {
		point = json_array_get(trace, i);
		if (at(point, 0) - first > p.x_max)
			p.x_max = at(point, 0) - first;
	}
	draw_border(&p, panel->name);
	if (p.x_max > 0)
		draw_x_axis(&p, &(struct draw_axis){ 1e-3, " s", NULL, 120 });
	else
		p.x_max = 1;
	if (panel->left == LEFT)
		draw_y_axis(&p, &(struct draw_axis){ 1 / unit,
			unit == 1e12 ? " TB" : unit == 1e9 ? " GB" : " MB",
			NULL, HEIGHT / 6 });
	for (i = panel->begin; i < panel->end; i++) {
		point = json_array_get(trace, i);
		p.colour = kinds[kind_of(point)].colour;
		draw_dot(&p, at(point, 0) - first, at(point, 1) * 512, 1.5);
	}
}

void heat_svg(FILE *f, json_t *heat)
{
	double sectors = json_number_value(json_object_get(heat, "sectors"));
	json_t *trace = json_object_get(heat, "trace");
	struct panel panels[2];
	unsigned i, n = sectors > 0 ? panels_of(trace, panels) : 0;

	draw_begin(f, LEFT + WIDTH + 20, HEIGHT + 84, 14);
	for (i = 0; i < n; i++)
		draw_heat(f, trace, &panels[i], sectors * 512);
	for (i = 0; i < KINDS; i++)
		draw_text(f, LEFT + i * 180, HEIGHT + 72, "start",
			  kinds[i].colour, kinds[i].name);
	draw_end(f);
}

static int draw(const struct arguments *a, json_t *heat)
{
	FILE *f = fopen(a->svg, "w");

	if (!f)
		return complain(a, a->svg);
	heat_svg(f, heat);
	return fclose(f) ? complain(a, a->svg) : EXIT_SUCCESS;
}

/* Regions, the most used first. */
static int print_heat(json_t *heat)
{
	static const char bar[] = "########################################";
	json_t *regions = json_object_get(heat, "regions"), *region;
	double unit = json_number_value(json_object_get(heat,
							"region_sectors"));
	double sum = 0;
	size_t i;

	json_array_foreach(regions, i, region)
		sum += at(region, 1);
	printf("%-24s%8s\n", "of the disk", "use");
	json_array_foreach(regions, i, region) {
		double first = at(region, 0) * unit * 512;
		char place[160];

		snprintf(place, sizeof(place), "%s + %s", size_text(first).s,
			 size_text(unit * 512).s);
		printf("%-24s%6.1f %%  %.*s\n", place,
		       100 * at(region, 1) / sum,
		       (int)(40 * at(region, 1) / sum), bar);
	}
	printf("\n%zu of the last accesses are known: --json lists, --svg "
	       "draws them\n",
	       json_array_size(json_object_get(heat, "trace")));
	return EXIT_SUCCESS;
}

int run_heat(const struct arguments *a)
{
	json_t *heat = read_heat(a->path);
	int code;

	if (!heat)
		return complain(a, "trax.heat");
	code = a->svg ? draw(a, heat) : a->json ? print_json(heat) :
						  print_heat(heat);
	json_decref(heat);
	return code;
}

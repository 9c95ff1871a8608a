/*
 * geom_table.c - a geometry from a plain table of tracks.
 *
 * A table tells how many LBNs a track holds, not how many sectors go around
 * it.  The two differ where sectors were slipped or spared: a track with fewer
 * LBNs than both the one before and the one after it on the same surface is
 * taken to be as large as the one before, and odd (geom_build.h).
 *
 * Tables are written with few decimals, so steps are fitted, and angles within
 * TOLERANCE (a hundredth of a sector) count as the same.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "diskmodel/geom_build.h"

#define TOLERANCE (1u << 16)	/* As an angle: 1/65536 of a revolution. */

struct geom_row {
	uint64_t first;
	uint32_t sectors;
	uint32_t around;
	uint32_t cylinder;
	uint32_t surface;
	angle start;
	bool unknown;		/* the range before it, from the last row on, is
				 * unknown */
};

struct table {
	struct geom_row *rows;
	size_t n, room;
	uint64_t end;		/* LBN at which the next row has to begin */
	bool unknown;		/* the range from there on was said to be
				 * unknown */
};

static const char *field_number(char **p, uint64_t max, uint64_t *out)
{
	char *end;

	while (**p == ' ' || **p == '\t')
		(*p)++;
	if (**p < '0' || **p > '9')
		return "not a number";
	errno = 0;
	*out = strtoull(*p, &end, 10);
	if (errno || *out > max)
		return "a number out of range";
	*p = end;
	return NULL;
}

static const char *field_angle(char **p, angle *out)
{
	double revs, whole;
	char *end;

	errno = 0;
	revs = strtod(*p, &end);
	if (end == *p || !isfinite(revs))
		return "not an angle in revolutions";
	revs = modf(revs, &whole);
	if (revs < 0)
		revs += 1;
	*out = (angle)(uint64_t)llround(revs * 4294967296.0);
	*p = end;
	return NULL;
}

static const char *row_parse(char *line, struct geom_row *row)
{
	uint64_t sectors = 0, cylinder = 0, surface = 0;
	const char *why;

	why = field_number(&line, GEOM_MAX_SECTORS, &row->first);
	if (!why)
		why = field_number(&line, GEOM_MAX_TRACK_SECTORS, &sectors);
	if (!why)
		why = field_number(&line, GEOM_MAX_CYLINDERS - 1, &cylinder);
	if (!why)
		why = field_number(&line, GEOM_MAX_SURFACES - 1, &surface);
	if (!why)
		why = field_angle(&line, &row->start);
	if (why)
		return why;
	if (line[strspn(line, " \t\r\n")])
		return "more than five fields";
	if (!sectors)
		return "a track of no sectors";
	row->sectors = row->around = (uint32_t)sectors;
	row->cylinder = (uint32_t)cylinder;
	row->surface = (uint32_t)surface;
	return NULL;
}

static const char *row_add(struct table *t, char *line)
{
	struct geom_row row = { .unknown = t->unknown };
	const char *why;

	why = row_parse(line, &row);
	if (why)
		return why;
	if (row.first < t->end)
		return "a track that overlaps the one before";
	if (row.first > t->end)
		return t->n ? "a gap after the track before" :
			      "the first track does not begin at 0";
	if (t->n == t->room) {
		size_t room = t->room ? 2 * t->room : 1024;
		struct geom_row *rows = realloc(t->rows, room * sizeof(*rows));

		if (!rows)
			return "out of memory";
		t->rows = rows;
		t->room = room;
	}
	t->rows[t->n++] = row;
	t->end = row.first + row.sectors;
	t->unknown = false;
	return NULL;
}

/* Reads a remark. "# FIRST SECTORS unknown", as traxtract --list prints it,
 * makes a gap; any other remark is ignored. */
static void remark_add(struct table *t, char *line)
{
	uint64_t first, sectors;

	line += strspn(line, " \t") + 1;
	if (field_number(&line, GEOM_MAX_SECTORS, &first) ||
	    field_number(&line, GEOM_MAX_SECTORS, &sectors) ||
	    strncmp(line + strspn(line, " \t"), "unknown", 7) ||
	    first != t->end || !sectors || sectors > GEOM_MAX_SECTORS - first)
		return;
	t->end += sectors;
	t->unknown = true;
}

static int table_load(struct table *t, const char *path, FILE *f)
{
	char *line = NULL;
	size_t room = 0;
	unsigned number = 0;
	const char *why = NULL;

	while (!why && getline(&line, &room, f) >= 0) {
		size_t blank = strspn(line, " \t\r\n");

		number++;
		if (line[blank] == '#')
			remark_add(t, line);
		else if (line[blank])
			why = row_add(t, line);
	}
	free(line);
	if (!why && ferror(f)) {
		msg_error("%s: %s", path, strerror(errno));
		return -EIO;
	}
	if (!why && !t->n)
		why = "no tracks";
	if (why) {
		msg_error("%s:%u: %s", path, number, why);
		return -EINVAL;
	}
	return 0;
}

/* Cuts the table off at the end of the disk. */
static void table_clip(struct table *t, const char *path, uint64_t sectors)
{
	struct geom_row *last = &t->rows[t->n - 1];

	if (last->first + last->sectors <= sectors)
		return;
	msg_warn("%s: the table goes past the end of the disk", path);
	while (last->first >= sectors)
		last = &t->rows[--t->n - 1];
	if (last->first + last->sectors > sectors)
		last->sectors = (uint32_t)(sectors - last->first);
}

/* Sets `around` of the rows that are smaller than both neighbours on their
 * surface; where there is only one neighbour, it alone counts. */
static int table_around(struct table *t)
{
	uint32_t *next, *seen, before;

	next = calloc(t->n, sizeof(*next));
	seen = calloc(GEOM_MAX_SURFACES, sizeof(*seen));
	if (!next || !seen) {
		free(next);
		free(seen);
		return -ENOMEM;
	}
	for (size_t i = t->n; i-- > 0;) {
		next[i] = seen[t->rows[i].surface];
		seen[t->rows[i].surface] = t->rows[i].sectors;
	}
	memset(seen, 0, GEOM_MAX_SURFACES * sizeof(*seen));
	for (size_t i = 0; i < t->n; i++) {
		struct geom_row *r = &t->rows[i];

		before = seen[r->surface] ? seen[r->surface] : next[i];
		if (r->sectors < before &&
		    (!next[i] || r->sectors < next[i]))
			r->around = before;
		/* A row that is an exception says nothing of those after it. */
		seen[r->surface] = r->around;
	}
	free(next);
	free(seen);
	return 0;
}

static struct geom_sweep sweep_of(const struct geom_row *r)
{
	return (struct geom_sweep){
		.count = 1,
		.sectors = r->around,
		.around = r->around,
		.cylinder = r->cylinder,
		.surface = (int32_t)r->surface,
		.base = r->start,
		.known = true,
	};
}

/* Adds a row to a sweep; false: it does not belong there. */
static bool sweep_take(struct geom_sweep *s, struct geom_fit *fit,
		       const struct geom_row *r)
{
	int64_t n = s->count;

	if (s->around != r->around)
		return false;
	if (n == 1) {
		s->cylinder_step = (int32_t)(r->cylinder - s->cylinder);
		s->surface_step = (int32_t)r->surface - s->surface;
		*fit = (struct geom_fit){ r->start - s->base, TOLERANCE,
					  INT32_MIN, INT32_MAX };
	}
	if (r->cylinder != s->cylinder + n * s->cylinder_step ||
	    r->surface != s->surface + n * s->surface_step ||
	    !geom_build_fit(fit, r->start - s->base, s->count))
		return false;
	s->base_step = geom_build_fitted(fit);
	s->count++;
	return true;
}

/* Begins a sweep with a row, and appends what is unknown before it. */
static int sweep_begin(struct geom_build *build, const struct geom_row *r,
		       struct geom_sweep *s)
{
	int err = s->count ? geom_build_sweep(build, s) : 0;

	if (!err && r->unknown)
		err = geom_build_pseudo(build, r->first, GEOM_PSEUDO_SECTORS);
	*s = sweep_of(r);
	return err;
}

static int table_build(const struct table *t, struct geom_build *build)
{
	struct geom_sweep s = { 0 };
	struct geom_fit fit = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < t->n; i++) {
		const struct geom_row *r = &t->rows[i];

		if (!s.count || r->unknown || !sweep_take(&s, &fit, r))
			err = sweep_begin(build, r, &s);
		if (!err && r->sectors != r->around)
			err = geom_build_odd(build, geom_build_tracks(build) +
							    s.count - 1,
					     (int32_t)r->sectors -
						     (int32_t)r->around);
	}
	return err ? err : geom_build_sweep(build, &s);
}

static int table_geom(struct table *t, uint64_t sectors, struct geom **geom)
{
	struct geom_build *build;
	int err;

	err = table_around(t);
	if (err)
		return err;
	build = geom_build_new(0, TOLERANCE);
	if (!build)
		return -ENOMEM;
	err = table_build(t, build);
	if (!err)
		err = geom_build_pseudo(build, sectors, GEOM_PSEUDO_SECTORS);
	if (!err)
		err = geom_build_finish(build, geom);
	geom_build_free(build);
	return err;
}

int geom_read_table(const char *path, uint64_t sectors, struct geom **geom)
{
	struct table t = { 0 };
	FILE *f;
	int err;

	if (!sectors)
		return -EINVAL;
	f = fopen(path, "re");
	if (!f) {
		err = -errno;
		msg_error("%s: %s", path, strerror(errno));
		return err;
	}
	err = table_load(&t, path, f);
	fclose(f);
	if (!err) {
		table_clip(&t, path, sectors);
		err = table_geom(&t, sectors, geom);
		if (err)
			msg_error("%s: %s", path, strerror(-err));
	}
	free(t.rows);
	return err;
}

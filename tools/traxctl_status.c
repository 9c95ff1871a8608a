/*
 * traxctl_status.c - how a mounted file system is, on one page.
 *
 * What a person asks first, from statvfs(2), /proc/mounts and the attributes
 * trax.stats, trax.model and trax.scrub; one function a line of the page.
 * Every count there is comes with --all.
 */
#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "tools/traxctl.h"

struct page {
	const struct arguments *a;
	json_t *stats, *model, *scrub;
};

/* ---- Facts and how they are written ---- */

/* The value at "outer.inner"; NULL: none. */
static json_t *at(json_t *object, const char *path)
{
	char name[64];
	const char *dot;

	while ((dot = strchr(path, '.'))) {
		snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
		object = json_object_get(object, name);
		path = dot + 1;
	}
	return json_object_get(object, path);
}

static double number(json_t *object, const char *path)
{
	return json_number_value(at(object, path));
}

static const char *string(json_t *object, const char *path)
{
	const char *s = json_string_value(at(object, path));

	return s ? s : "";
}

static bool is_set(json_t *object, const char *path)
{
	return json_is_true(at(object, path));
}

__attribute__((format(printf, 2, 3)))
static void line(const char *name, const char *format, ...)
{
	va_list args;

	printf("%-9s", name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

struct text {
	char s[64];
};

static struct text size_text(double bytes)
{
	static const char *const units[] = {
		"bytes", "KiB", "MiB", "GiB", "TiB", "PiB",
	};
	struct text t;
	unsigned unit = 0;

	while (bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(*units)) {
		bytes /= 1024;
		unit++;
	}
	snprintf(t.s, sizeof(t.s), "%.*f %s", unit ? 1 : 0, bytes, units[unit]);
	return t;
}

static struct text date_text(double seconds)
{
	time_t when = (time_t)seconds;
	struct tm tm;
	struct text t = { "never" };

	if (when > 0 && localtime_r(&when, &tm))
		strftime(t.s, sizeof(t.s), "%Y-%m-%d %H:%M", &tm);
	return t;
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

/* ---- The lines ---- */

/* What is mounted on `path`; the last line that names it counts. */
static void find_device(const char *path, char *device, size_t bytes)
{
	char real[PATH_MAX];
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	struct mntent *m;

	snprintf(device, bytes, "?");
	if (!mounts)
		return;
	while (realpath(path, real) && (m = getmntent(mounts)))
		if (!strcmp(m->mnt_dir, real))
			snprintf(device, bytes, "%s", m->mnt_fsname);
	endmntent(mounts);
}

static void show_device(const struct page *p)
{
	char device[PATH_MAX];
	const char *drive = string(p->model, "profile.model");

	find_device(p->a->path, device, sizeof(device));
	line("device", "%s%s%s", device, *drive ? ", " : "", drive);
}

static void show_space(const struct page *p)
{
	struct statvfs s;
	double unit;

	if (statvfs(p->a->path, &s))
		return;
	unit = (double)s.f_frsize;
	line("space", "%s of %s free, %.0f inodes, %.0f %% of the inode "
	     "numbers left", size_text(unit * (double)s.f_bavail).s,
	     size_text(unit * (double)s.f_blocks).s,
	     number(p->stats, "tree.inodes"),
	     percent(number(p->stats, "tree.inode_numbers_left"),
		     (double)(1ull << 40)));
}

static void show_tracks(const struct page *p)
{
	const char *how = string(p->model, "profile.parts.boundaries.method");
	const char *refine = string(p->model, "refine.state");

	if (!is_set(p->model, "known")) {
		line("tracks", "not known: guessed");
	} else {
		line("tracks", "%.0f, %.2f %% of the disk known (%s)%s",
		     number(p->model, "tracks"),
		     100 * number(p->model, "profile.known_share"), how,
		     is_set(p->model, "profile.doubted") ?
			     "; the profile does not fit and is not used" : "");
	}
	if (*refine && strcmp(refine, "complete"))
		line("measuring", "%s, %.1f %% of the disk looked at", refine,
		     percent(number(p->model, "refine.done_sectors"),
			     number(p->model, "refine.all_sectors")));
}

static void show_kind(const struct page *p, const char *kind, char *out,
		      size_t bytes)
{
	json_t *k = json_object_get(at(p->model, "head"), kind);
	double predictions = number(k, "predictions");

	if (!is_set(k, "on"))
		snprintf(out, bytes, "%s not predicted", kind);
	else if (!predictions)
		snprintf(out, bytes, "%s predicted", kind);
	else
		snprintf(out, bytes, "%s predicted (%.1f %% right)", kind,
			 100 - percent(number(k, "wrong"), predictions));
}

static void show_head(const struct page *p)
{
	char reads[64], writes[64];

	if (!at(p->model, "head")) {
		line("head", "not followed: a plain queue");
		return;
	}
	show_kind(p, "reads", reads, sizeof(reads));
	show_kind(p, "writes", writes, sizeof(writes));
	line("head", "%.1f rpm, %s, %s", number(p->model, "rpm"), reads,
	     writes);
}

static void show_log(const struct page *p)
{
	line("log", "%.0f commits in %.0f writes, %.0f %% full",
	     number(p->stats, "log.commits"), number(p->stats, "log.records"),
	     number(p->stats, "log.fill_percent"));
}

/* What a read costs the head, in ms; 0: none yet. */
static double read_cost(const struct page *p, const char *which)
{
	json_t *access = at(at(p->stats, "replicas"), which);
	double reads = number(access, "reads");

	return reads ? (number(access, "seek_ms") +
			number(access, "rotation_ms") +
			number(access, "transfer_ms")) / reads : 0;
}

static void show_copies(const struct page *p)
{
	double cost = read_cost(p, "access");

	if (!number(p->stats, "replicas.most")) {
		line("copies", "off");
		return;
	}
	line("copies", "%s, read %.0f times",
	     size_text(512 * number(p->stats, "replicas.sectors")).s,
	     number(p->stats, "replicas.reads_used"));
	if (cost)
		line("", "a read costs the head %.2f ms, without them %.2f",
		     cost, read_cost(p, "access_without"));
}

static void show_scrub(const struct page *p)
{
	const char *state = string(p->scrub, "state");

	if (!strcmp(state, "running"))
		line("scrub", "running, %.1f %% of %s",
		     number(p->scrub, "percent"),
		     size_text(number(p->scrub, "all_bytes")).s);
	else
		line("scrub", "%s, last ended: %s, next: %s", state,
		     date_text(number(p->scrub, "ended_seconds")).s,
		     date_text(number(p->scrub, "next_seconds")).s);
}

static void show_health(const struct page *p)
{
	double errors = number(p->stats, "errors");

	if (errors)
		line("damage", "%.0f places: traxctl errors %s", errors,
		     p->a->path);
	else
		line("damage", "none met");
	if (is_set(p->stats, "failed"))
		line("state", "FAILED: nothing more is written; see its "
		     "messages");
	else if (is_set(p->stats, "read_only"))
		line("state", "read-only");
}

int run_status(const struct arguments *a)
{
	static void (*const lines[])(const struct page *p) = {
		show_device, show_space, show_tracks, show_head, show_log,
		show_copies, show_scrub, show_health,
	};
	struct page p = { .a = a };
	size_t i;

	p.stats = read_json(a->path, "trax.stats");
	if (!p.stats)
		return complain(a, "trax.stats");
	if (a->json || a->all) {
		(a->json ? print_json : print_facts)(p.stats);
	} else {
		p.model = read_json(a->path, "trax.model");
		p.scrub = read_json(a->path, "trax.scrub");
		for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
			lines[i](&p);
	}
	json_decref(p.stats);
	json_decref(p.model);
	json_decref(p.scrub);
	return EXIT_SUCCESS;
}

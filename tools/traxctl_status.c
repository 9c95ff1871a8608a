/*
 * traxctl_status.c - the state of a mounted file system on one page.
 *
 * The page has what people ask first, from statvfs(2), /proc/mounts and the
 * attributes trax.stats, trax.model, trax.scrub and trax.moves; each of its
 * lines has a function.  With --all every count is printed.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/text.h"
#include "tools/amounts.h"
#include "tools/facts.h"
#include "tools/traxctl.h"

struct page {
	const struct arguments *a;
	json_t *stats, *model, *scrub, *moves;
};

/* ---- How a line is written ---- */

static void line_as(const char *how, const char *name, const char *format,
		    va_list args)
{
	char text[LINE_MAX];

	vsnprintf(text, sizeof(text), format, args);
	/* Names of drives come from the image. */
	text_tame(text);
	printf("%s%-10s%s%s%s%s\n", mark("bold"), name, mark(""),
	       *how ? mark(how) : "", text, *how ? mark("") : "");
}

__attribute__((format(printf, 2, 3)))
static void line(const char *name, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line_as("", name, format, args);
	va_end(args);
}

/* Prints a line about something that the user has to act on. */
__attribute__((format(printf, 2, 3)))
static void bad_line(const char *name, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line_as("bad", name, format, args);
	va_end(args);
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

/* ---- The lines ---- */

static void show_device(const struct page *p)
{
	char device[PATH_MAX] = "?";
	const char *drive = fact_string(p->model, "profile.model");

	mount_device(p->a->path, device, sizeof(device));
	line("device", "%s%s%s", device, *drive ? ", " : "", drive);
	line("UUID", "%s", fact_string(p->stats, "uuid"));
}

static void show_space(const struct page *p)
{
	struct statvfs s;
	double unit;

	if (statvfs(p->a->path, &s))
		return;
	unit = (double)s.f_frsize;
	line("space", "%s of %s free, %s, %.0f %% of the inode "
	     "numbers left", size_text(unit * (double)s.f_bavail).s,
	     size_text(unit * (double)s.f_blocks).s,
	     count_text((uint64_t)fact_number(p->stats, "tree.inodes"),
			"inode").s,
	     percent(fact_number(p->stats, "tree.inode_numbers_left"),
		     (double)(1ull << 40)));
}

static void show_tracks(const struct page *p)
{
	const char *how = fact_string(p->model,
				      "profile.parts.boundaries.method");
	const char *refine = fact_string(p->model, "refine.state");

	if (!fact_is_set(p->model, "known")) {
		line("tracks", "not known: guessed");
	} else {
		line("tracks", "%.0f, %.2f %% of the disk known (%s)%s",
		     fact_number(p->model, "tracks"),
		     100 * fact_number(p->model, "profile.known_share"), how,
		     fact_is_set(p->model, "profile.doubted") ?
			     "; the profile does not fit and is not used" : "");
	}
	if (*refine && strcmp(refine, "complete"))
		line("measuring", "%s, %.1f %% of the disk looked at", refine,
		     percent(fact_number(p->model, "refine.done_sectors"),
			     fact_number(p->model, "refine.all_sectors")));
}

static void show_kind(const struct page *p, const char *kind, char *out,
		      size_t bytes)
{
	json_t *k = json_object_get(fact_at(p->model, "head"), kind);
	double predictions = fact_number(k, "predictions");

	if (!fact_is_set(k, "on"))
		snprintf(out, bytes, "%s not predicted", kind);
	else if (!predictions)
		snprintf(out, bytes, "%s predicted", kind);
	else
		snprintf(out, bytes, "%s predicted (%.1f %% right)", kind,
			 100 - percent(fact_number(k, "wrong"), predictions));
}

static void show_head(const struct page *p)
{
	char reads[64], writes[64];

	if (!fact_at(p->model, "head")) {
		line("head", "not followed: a plain queue");
		return;
	}
	show_kind(p, "reads", reads, sizeof(reads));
	show_kind(p, "writes", writes, sizeof(writes));
	line("head", "%.1f rpm, %s, %s", fact_number(p->model, "rpm"), reads,
	     writes);
}

static void show_log(const struct page *p)
{
	line("log", "%.0f commits in %.0f writes, %.0f %% full",
	     fact_number(p->stats, "log.commits"),
	     fact_number(p->stats, "log.records"),
	     fact_number(p->stats, "log.fill_percent"));
}

/* What a read costs the head, in ms; 0: none yet. */
static double read_cost(const struct page *p, const char *which)
{
	json_t *access = fact_at(fact_at(p->stats, "replicas"), which);
	double reads = fact_number(access, "reads");

	return reads ? (fact_number(access, "seek_ms") +
			fact_number(access, "rotation_ms") +
			fact_number(access, "transfer_ms")) / reads : 0;
}

static void show_copies(const struct page *p)
{
	double cost = read_cost(p, "access");

	if (!fact_number(p->stats, "replicas.most")) {
		line("copies", "off");
		return;
	}
	line("copies", "%s, %s by them",
	     size_text(512 * fact_number(p->stats, "replicas.sectors")).s,
	     count_text((uint64_t)fact_number(p->stats, "replicas.reads_used"),
			"read").s);
	if (cost)
		line("", "a read costs the head %.2f ms, without them %.2f",
		     cost, read_cost(p, "access_without"));
}

static void show_scrub(const struct page *p)
{
	const char *state = fact_string(p->scrub, "state");

	if (!strcmp(state, "running"))
		line("scrub", "running, %.1f %% of %s",
		     fact_number(p->scrub, "percent"),
		     size_text(fact_number(p->scrub, "all_bytes")).s);
	else
		line("scrub", "%s, last ended: %s, next: %s", state,
		     date_text(fact_number(p->scrub, "ended_seconds")).s,
		     date_text(fact_number(p->scrub, "next_seconds")).s);
}

static void show_moves(const struct page *p)
{
	double cost = fact_number(p->moves, "write_cost");

	if (!fact_at(p->moves, "tracks")) {
		line("cleaning", "off");
		return;
	}
	line("cleaning", "%s%s emptied%s",
	     fact_is_set(p->moves, "paused") ? "paused, " : "",
	     count_text((uint64_t)fact_number(p->moves, "tracks"), "track").s,
	     fact_number(p->moves, "under_way") ? ", at work" : "");
	if (cost)
		line("", "overall write cost %.2f sectors for each that was "
		     "written", cost);
}

static void show_health(const struct page *p)
{
	double errors = fact_number(p->stats, "errors");

	if (errors)
		bad_line("damage", "%s: traxctl errors %s",
			 count_text((uint64_t)errors, "place").s, p->a->path);
	else
		line("damage", "none met");
	if (fact_is_set(p->stats, "failed"))
		bad_line("state", "FAILED: nothing more is written; see its "
			 "messages");
	else if (fact_is_set(p->stats, "read_only"))
		line("state", "read-only");
}

int run_status(const struct arguments *a)
{
	static void (*const lines[])(const struct page *p) = {
		show_device, show_space, show_tracks, show_head, show_log,
		show_copies, show_scrub, show_moves, show_health,
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
		p.moves = read_json(a->path, "trax.moves");
		for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
			lines[i](&p);
	}
	json_decref(p.stats);
	json_decref(p.model);
	json_decref(p.scrub);
	json_decref(p.moves);
	return EXIT_SUCCESS;
}

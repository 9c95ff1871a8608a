/*
 * traxctl_model.c - what is believed of the drive, for people.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tools/amounts.h"
#include "tools/facts.h"
#include "tools/traxctl.h"

#define BINS 64			/* bins of errors, each 1/64 of a turn wide */

static void print_name(json_t *model, const char *what, const char *path)
{
	char *text = text_escape(fact_string(model, path));

	if (text && *text)
		printf("%-14s%s\n", what, text);
	free(text);
}

static void print_parts(json_t *model)
{
	json_t *parts = fact_at(model, "profile.parts"), *part;
	const char *name;

	puts("\nknown of it    how               how sure");
	json_object_foreach(parts, name, part)
		printf("%-15s%-18s%.0f %%\n", name, fact_string(part, "method"),
		       100 * fact_number(part, "confidence"));
}

/* Within an eighth of a turn of where they were expected. */
static double near_share(json_t *bins)
{
	double near = 0, all = 0;
	json_t *bin;
	size_t i;

	json_array_foreach(bins, i, bin) {
		double n = json_number_value(bin);

		all += n;
		if (i >= BINS / 2 - BINS / 8 && i < BINS / 2 + BINS / 8)
			near += n;
	}
	return all ? near / all : 0;
}

static void print_kind(json_t *model, const char *kind)
{
	json_t *k = json_object_get(fact_at(model, "head"), kind);

	printf("%-14s%s", kind,
	       fact_is_set(k, "on") ? "predicted" : "not predicted");
	if (fact_number(k, "predictions"))
		printf(", %.0f of %.0f wrong, %.1f %% within an eighth of a "
		       "turn",
		       fact_number(k, "wrong"), fact_number(k, "predictions"),
		       100 * near_share(fact_at(k, "errors_by_64th_turn")));
	putchar('\n');
}

static void print_model(json_t *m)
{
	print_name(m, "drive", "profile.model");
	print_name(m, "serial", "profile.serial");
	print_name(m, "firmware", "profile.firmware");
	if (fact_number(m, "profile.made_seconds"))
		printf("%-14s%s\n", "measured",
		       date_text(fact_number(m, "profile.made_seconds")).s);
	printf("%-14s%s\n", "size", size_text(512 * fact_number(m,
							"sectors")).s);
	if (fact_number(m, "rpm"))
		printf("%-14s%.2f ms, %.1f rpm\n", "a turn",
		       fact_number(m, "period_ns") / 1e6,
		       fact_number(m, "rpm"));
	printf("%-14s%.0f, %.2f %% of the disk known%s\n", "tracks",
	       fact_number(m, "tracks"),
	       100 * fact_number(m, "profile.known_share"),
	       fact_is_set(m, "profile.doubted") ?
		       "; the profile does not fit and is not used" : "");
	printf("%-14s%s outermost, %s innermost\n", "track length",
	       size_text(512 * fact_number(m, "outermost.sectors")).s,
	       size_text(512 * fact_number(m, "innermost.sectors")).s);
	printf("%-14s%s, %s known by it\n", "measuring",
	       fact_string(m, "refine.state"),
	       size_text(512 * fact_number(m, "refine.known_sectors")).s);
	if (fact_at(m, "head")) {
		printf("%-14s%s, %.0f readings\n", "head",
		       fact_string(m, "head.mode"),
		       fact_number(m, "head.readings"));
		print_kind(m, "reads");
		print_kind(m, "writes");
	} else {
		printf("%-14snot followed\n", "head");
	}
	print_parts(m);
}

int run_model(const struct arguments *a)
{
	return show_attribute(a, "trax.model", print_model);
}

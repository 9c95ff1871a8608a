/*
 * traxctl_streams.c - shows readers with a pace, and promises rates to them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "fuse/trax_stream.h"
#include "tools/amounts.h"
#include "tools/facts.h"
#include "tools/traxctl.h"

#define ATTRIBUTE "trax.streams"

static void print_table(json_t *streams)
{
	json_t *row;
	size_t i;

	fputs(mark("bold"), stdout);
	printf("%12s %14s %9s %8s %10s %8s", "inode", "rate", "promised",
	       "slack s", "reads", "late");
	puts(mark(""));
	json_array_foreach(fact_at(streams, "streams"), i, row)
		printf("%12.0f %12s/s %9s %8.2f %10.0f %8.0f\n",
		       fact_number(row, "ino"),
		       size_text(fact_number(row, "rate")).s,
		       fact_is_set(row, "promised") ? "yes" : "no",
		       fact_number(row, "slack_s"), fact_number(row, "reads"),
		       fact_number(row, "late"));
	printf("promised to all: %s/s\n",
	       size_text(fact_number(streams, "promised_rate")).s);
}

/* Parses a number of bytes, which K, M or G may follow; false: it is none. */
static bool parse_rate(const char *text, uint64_t *rate)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	errno = 0;
	*rate = strtoull(text, &end, 10);
	if (errno || end == text || *text == '-')
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (!unit)
		return !*end;
	if (end[1] || *rate > UINT64_MAX >> 30)
		return false;
	*rate <<= 10 * (unit - units + 1);
	return true;
}

static int admit(const struct arguments *a, uint64_t rate)
{
	struct trax_stream stream = { .rate = rate };
	int fd = open(a->path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return complain(a, "open");
	err = ioctl(fd, TRAX_IOC_STREAM, &stream) ? errno : 0;
	close(fd);
	if (err == EBUSY) {
		fprintf(stderr, "traxctl: %s: refused: the disk can't do that "
			"beside what it has promised\n", a->path);
		return EXIT_FAILED;
	}
	if (err == EDQUOT || err == EPERM) {
		fprintf(stderr, "traxctl: %s: refused: %s\n", a->path,
			err == EDQUOT ? "one user has half of what the disk "
			"can do at most; give something back" :
			"another user has a promise for it");
		return EXIT_FAILED;
	}
	if (err == EOPNOTSUPP) {
		fprintf(stderr, "traxctl: %s: refused: not known how fast the "
			"disk reads, its tracks are not measured\n", a->path);
		return EXIT_FAILED;
	}
	errno = err;
	if (err)
		return complain(a, "admit");
	printf("%s; promised now: %s/s to %s\n",
	       rate ? "admitted" : "given back",
	       size_text((double)stream.promised).s,
	       count_text(stream.streams, "file").s);
	return EXIT_SUCCESS;
}

int run_streams(const struct arguments *a)
{
	struct arguments on = *a;
	uint64_t rate;

	if (a->paths_n == 1)
		return show_attribute(a, ATTRIBUTE, print_table);
	if (a->paths_n != 3 || strcmp(a->paths[0], "admit") ||
	    !parse_rate(a->paths[2], &rate)) {
		fputs("traxctl: streams MOUNTPOINT, or streams admit FILE "
		      "RATE\n", stderr);
		return EXIT_WRONG_USE;
	}
	on.path = a->paths[1];
	return admit(&on, rate);
}

/*
 * traxctl_top.c - a live view: the disk from its first sector to its last with
 * what was just done there, each class of requests, and background work.
 *
 * On a terminal it shows a new frame each second, until q or Ctrl-C; otherwise
 * one frame, of the first second.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "tools/amounts.h"
#include "tools/facts.h"
#include "tools/samples.h"
#include "tools/traxctl.h"

#define PERIOD_MS 1000		/* between two samples */
#define MIN_COLUMNS 60u		/* less has no room for the disk */
#define MAX_COLUMNS 200u	/* more would be hard to follow */
#define MARGIN 12u		/* left of the disk, in columns */

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static unsigned columns(void)
{
	struct winsize size;
	unsigned n = 80;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		n = size.ws_col;
	return n < MIN_COLUMNS ? MIN_COLUMNS : n > MAX_COLUMNS ? MAX_COLUMNS :
								 n;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- The disk ---- */

/* Draws how hot each column is, in four steps. */
static void draw_heat(json_t *heat, char *line, unsigned n)
{
	static const char shades[] = ".:+#";
	double sectors = fact_number(heat, "sectors"), most = 0, at;
	double unit = fact_number(heat, "region_sectors");
	json_t *regions = json_object_get(heat, "regions"), *region;
	size_t i;

	memset(line, '.', n);
	line[n] = 0;
	json_array_foreach(regions, i, region)
		if (sample_number(region, 1) > most)
			most = sample_number(region, 1);
	json_array_foreach(regions, i, region) {
		unsigned from, to, k;
		double share = sample_number(region, 1) / most;

		at = sample_number(region, 0) * unit / sectors * n;
		from = at < n ? (unsigned)at : n - 1;
		to = from + (unsigned)(unit / sectors * n) + 1;
		for (k = from; k < to && k < n; k++)
			line[k] = shades[share > 0.5 ? 3 : share > 0.1 ? 2 : 1];
	}
}

/* Draws where the head was since the last frame. */
static void draw_accesses(json_t *heat, double since_ms, char *line,
			  unsigned n)
{
	static const char kinds[] = "rcwC";
	double sectors = fact_number(heat, "sectors");
	json_t *trace = json_object_get(heat, "trace"), *point;
	size_t i;

	memset(line, ' ', n);
	line[n] = 0;
	json_array_foreach(trace, i, point) {
		double at = sample_number(point, 1) / sectors * n;
		unsigned kind = (unsigned)sample_number(point, 2);

		if (sample_number(point, 0) > since_ms && at >= 0 && at < n)
			line[(unsigned)at] = kinds[kind % 4];
	}
}

static double last_ms(json_t *heat)
{
	json_t *trace = json_object_get(heat, "trace"), *point;
	double last = 0;
	size_t i;

	json_array_foreach(trace, i, point)
		if (sample_number(point, 0) > last)
			last = sample_number(point, 0);
	return last;
}

static void show_disk(const struct sample *before, const struct sample *now,
		      unsigned width)
{
	char line[MAX_COLUMNS + 1];

	if (!now->heat) {
		puts("disk        seen by root and by whoever mounted only");
		return;
	}
	draw_heat(now->heat, line, width);
	printf("%-*s%s\n", MARGIN, "heat", line);
	draw_accesses(now->heat, last_ms(before->heat), line, width);
	printf("%-*s%s\n", MARGIN, "head", line);
	printf("%-*s%-*s%s\n", MARGIN, "", (int)width - 9, "first sector",
	       "last one");
	printf("%-*sr read, c from a copy, w written, C a copy written\n",
	       MARGIN, "");
}

/* ---- Numbers ---- */

static void show_classes(const struct sample *before, const struct sample *now,
			 double seconds)
{
	unsigned i;

	printf("\n%-12s%10s%10s%12s%12s%8s\n", "requests", "a second",
	       "MB/s", "wait ms", "service ms", "at disk");
	for (i = 0; i < SAMPLE_CLASSES; i++) {
		struct class_sample c = sample_between(before, now, i);
		double each = c.requests ? 1e3 / c.requests : 0;

		printf("%-12s%10.1f%10.2f%12.2f%12.2f%8.2f\n",
		       sample_names[i], c.requests / seconds,
		       c.bytes / 1e6 / seconds, c.wait_s * each,
		       c.service_s * each, c.service_s / seconds);
	}
}

static double between(const struct sample *before, const struct sample *now,
		      const char *path)
{
	return fact_number(now->stats, path) -
	       fact_number(before->stats, path);
}

static void show_rest(const struct sample *before, const struct sample *now)
{
	json_t *s = now->stats;

	printf("\nlog         %s, %.0f %% full\n",
	       count_text((uint64_t)between(before, now, "log.commits"),
			  "commit").s,
	       fact_number(s, "log.fill_percent"));
	printf("gaps        %.0f used, %s in idle time\n",
	       between(before, now, "queue.gaps"),
	       count_text((uint64_t)between(before, now, "queue.idle_steps"),
			  "step").s);
	printf("copies      %s, %s by them\n",
	       size_text(512 * fact_number(s, "replicas.sectors")).s,
	       count_text((uint64_t)between(before, now,
					    "replicas.reads_used"), "read").s);
	printf("scrub       %s", fact_string(now->scrub, "state"));
	if (!strcmp(fact_string(now->scrub, "state"), "running"))
		printf(", %.1f %%, left: %s",
		       fact_number(now->scrub, "percent"),
		       duration_text(fact_number(now->scrub,
						 "eta_seconds")).s);
	printf("\nmeasuring   %s\n", fact_string(now->model, "refine.state"));
	printf("damage      %s%s\n",
	       count_text((uint64_t)fact_number(s, "errors"), "place").s,
	       fact_is_set(s, "failed") ? "; FAILED: nothing is written" :
	       fact_is_set(s, "read_only") ? "; read-only" : "");
}

static void show_screen(const struct arguments *a, const struct sample *before,
			const struct sample *now, double seconds)
{
	double rpm = fact_number(now->model, "rpm");
	time_t t = time(NULL);
	char clock[16];

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime(&t));
	printf("traxfs on %s, %s", a->path, clock);
	if (rpm > 0)
		printf(", %.0f rpm", rpm);
	fputs("\n\n", stdout);
	show_disk(before, now, columns() - MARGIN - 1);
	show_classes(before, now, seconds);
	show_rest(before, now);
}

/* ---- The loop ---- */

/* Waits for the next frame; a key may end it. */
static void pause_for_key(bool terminal)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	char key;

	if (poll(&in, terminal ? 1 : 0, PERIOD_MS) <= 0)
		return;
	if (read(STDIN_FILENO, &key, 1) == 1 && (key == 'q' || key == 'Q'))
		ended = 1;
}

static int show_screens(const struct arguments *a, bool terminal)
{
	struct sample before, now;
	double then = now_s();

	if (sample_take(a->path, &before))
		return complain(a, "trax.stats");
	do {
		pause_for_key(terminal);
		if (ended)
			break;
		if (sample_take(a->path, &now)) {
			sample_drop(&before);
			return complain(a, "trax.stats");
		}
		fputs(terminal ? "\033[H\033[2J" : "", stdout);
		show_screen(a, &before, &now, now_s() - then);
		fputs(terminal ? "\nq ends\n" : "", stdout);
		fflush(stdout);
		then = now_s();
		sample_drop(&before);
		before = now;
	} while (terminal && !ended);
	sample_drop(&before);
	return EXIT_SUCCESS;
}

int run_top(const struct arguments *a)
{
	const bool terminal = isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
	struct sigaction stop = { .sa_handler = end };
	struct termios cooked, raw;
	int code;

	if (!terminal)
		return show_screens(a, false);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	if (tcgetattr(STDIN_FILENO, &cooked))
		return complain(a, "terminal");
	raw = cooked;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	/* Switches to the terminal's second screen and hides the cursor; the
	 * first screen comes back at the end. */
	fputs("\033[?1049h\033[?25l", stdout);
	code = show_screens(a, true);
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &cooked);
	return code;
}

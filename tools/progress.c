/*
 * progress.c - see progress.h.
 */
#include "tools/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/env.h"

/* Time between two updates on a terminal, 0.2 s; between two lines of a log,
 * 5 s. */
#define TERMINAL_NS UINT64_C(200000000)
#define LINES_NS UINT64_C(5000000000)
/* From a smaller part the time that is left cannot be estimated. */
#define PART_LEAST 0.01

static bool mute;

void progress_mute(void)
{
	mute = true;
}

void progress_begin_as(struct progress *p, const char *what, struct env *env,
		       bool terminal)
{
	*p = (struct progress){
		.env = env,
		.what = what,
		.begun_ns = env_now_ns(env),
		.terminal = terminal,
	};
	p->said_ns = p->begun_ns;
}

void progress_begin(struct progress *p, const char *what)
{
	progress_begin_as(p, what, env_real(), isatty(STDERR_FILENO));
}

void progress_stage(struct progress *p, const char *what)
{
	p->what = what;
	p->begun_ns = env_now_ns(p->env);
	/* A line is not older than its stage. */
	if (p->terminal)
		p->said_ns = 0;
}

static void say_left(double took_s, double part)
{
	unsigned left_s = (unsigned)(took_s * (1 - part) / part);

	fprintf(stderr, ", %u:%02u left", left_s / 60, left_s % 60);
}

void progress_say(struct progress *p, double part, const char *more)
{
	uint64_t now_ns = env_now_ns(p->env);

	if (mute ||
	    now_ns - p->said_ns < (p->terminal ? TERMINAL_NS : LINES_NS))
		return;
	p->said_ns = now_ns;
	p->shown = p->terminal;
	fprintf(stderr, "%s%s:", p->terminal ? "\r\033[K" : "", p->what);
	if (part >= 0)
		fprintf(stderr, " %.0f %%", 100 * (part < 1 ? part : 1));
	fprintf(stderr, "%s%s", *more ? " " : "", more);
	if (part >= PART_LEAST && part < 1)
		say_left((double)(now_ns - p->begun_ns) / 1e9, part);
	if (!p->terminal)
		fputc('\n', stderr);
	fflush(stderr);
}

void progress_clear(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}

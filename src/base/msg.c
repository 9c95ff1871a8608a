/*
 * msg.c - a line is formatted once, cut at LINE_MAX_BYTES, and handed to the
 * sink.  The sink and the level are the process's, as standard error is; they
 * are set before other threads begin.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/msg.h"
#include "base/text.h"

#define LINE_MAX_BYTES 1024	/* Room for a line; a longer one is cut off. */
/* Number of formats that are counted apart, more than the code has; beyond it
 * formats share a limit. */
#define KINDS 1024u

void msg_to_stderr(enum msg_level level, const char *line, void *arg)
{
	static const char *const prefix[] = {
		[MSG_ERROR] = "error: ",
		[MSG_WARN] = "warning: ",
		[MSG_INFO] = "",
		[MSG_DEBUG] = "debug: ",
	};

	(void)arg;
	fprintf(stderr, "%s: %s%s\n", program_invocation_short_name,
		prefix[level], line);
}

static struct {
	msg_sink sink;
	void *arg;
	enum msg_level level;
	bool muted;
} out = { msg_to_stderr, NULL, MSG_INFO, false };

void msg_set_sink(msg_sink sink, void *arg)
{
	out.sink = sink ? sink : msg_to_stderr;
	out.arg = arg;
}

void msg_mute(bool mute)
{
	out.muted = mute;
}

void msg_set_level(enum msg_level level)
{
	out.level = level;
}

static struct {
	unsigned burst;
	uint64_t period_ns;
	struct kind {
		const char *fmt;
		uint64_t begun_ns;
		unsigned lines, left_out;	/* lines since then, said and
						 * left out */
	} kinds[KINDS];
} limit;

void msg_set_limit(unsigned burst, unsigned seconds)
{
	memset(&limit, 0, sizeof(limit));
	limit.burst = burst;
	limit.period_ns = seconds * UINT64_C(1000000000);
}

static struct kind *kind_of(const char *fmt)
{
	const unsigned first = (uintptr_t)fmt / 8 % KINDS;
	struct kind *kind;
	unsigned i;

	for (i = 0; i < KINDS; i++) {
		kind = &limit.kinds[(first + i) % KINDS];
		if (!kind->fmt)
			kind->fmt = fmt;
		if (kind->fmt == fmt)
			return kind;
	}
	return &limit.kinds[first];
}

/* May this line be said? *left_out: the number of lines of its kind before it
 * that were not. */
static bool may_say(const char *fmt, unsigned *left_out)
{
	struct kind *kind = kind_of(fmt);
	uint64_t now = env_now_ns(env_real());

	if (!kind->lines || now - kind->begun_ns >= limit.period_ns) {
		*left_out = kind->left_out;
		kind->begun_ns = now;
		kind->lines = 0;
		kind->left_out = 0;
	}
	if (kind->lines++ < limit.burst)
		return true;
	kind->left_out++;
	return false;
}

void msg(enum msg_level level, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	unsigned left_out = 0;
	va_list args;

	if (level > out.level || out.muted)
		return;
	if (limit.burst && level < MSG_DEBUG && !may_say(fmt, &left_out))
		return;
	if (left_out) {
		snprintf(line, sizeof(line), "left out: %s like the next",
			 count_text(left_out, "line").s);
		out.sink(level, line, out.arg);
	}
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	/* The line may hold text from a disk or a profile. */
	text_tame(line);
	out.sink(level, line, out.arg);
}

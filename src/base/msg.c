/*
 * msg.c - a line is formatted once, cut at LINE_MAX_BYTES, and handed to the
 * sink.  The sink and the level are the process's, as standard error is; they
 * are set before other threads begin.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/msg.h"

#define LINE_MAX_BYTES 1024

static void msg_to_stderr(enum msg_level level, const char *line, void *arg)
{
	static const char *const prefix[] = {
		[MSG_ERROR] = "error: ",
		[MSG_WARN] = "warning: ",
		[MSG_INFO] = "",
		[MSG_DEBUG] = "debug: ",
	};

	(void)arg;
	fprintf(stderr, "%s%s\n", prefix[level], line);
}

static struct {
	msg_sink sink;
	void *arg;
	enum msg_level level;
} out = { msg_to_stderr, NULL, MSG_INFO };

void msg_set_sink(msg_sink sink, void *arg)
{
	out.sink = sink ? sink : msg_to_stderr;
	out.arg = arg;
}

void msg_set_level(enum msg_level level)
{
	out.level = level;
}

void msg(enum msg_level level, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	va_list args;

	if (level > out.level)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	out.sink(level, line, out.arg);
}

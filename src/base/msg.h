/*
 * msg.h - messages for people: one line, with place and reason.
 *
 * An error is reported once, where it arises, and returned as a negative errno
 * from there on.  Lines go to standard error unless a sink is set (syslog for
 * the daemon, a buffer in tests).
 */
#ifndef TRAX_BASE_MSG_H
#define TRAX_BASE_MSG_H

#include <stdbool.h>

enum msg_level { MSG_ERROR, MSG_WARN, MSG_INFO, MSG_DEBUG };

typedef void (*msg_sink)(enum msg_level level, const char *line, void *arg);

/* NULL restores standard error. */
void msg_set_sink(msg_sink sink, void *arg);

/* The sink at the start: the program's name, the level, the line.  `arg` is not
 * used. */
void msg_to_stderr(enum msg_level level, const char *line, void *arg);

/* Drops all messages until it is called with false, while something is tried
 * that may fail. */
void msg_mute(bool mute);

/* Lines above this level are dropped; MSG_INFO at start. */
void msg_set_level(enum msg_level level);

/*
 * Limits messages from now on to `burst` lines of a kind (of one format) in
 * `seconds`; 0: no limit, as at the start.  The first line after some that were
 * left out says how many.
 */
void msg_set_limit(unsigned burst, unsigned seconds);

void msg(enum msg_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define msg_error(...) msg(MSG_ERROR, __VA_ARGS__)
#define msg_warn(...) msg(MSG_WARN, __VA_ARGS__)
#define msg_info(...) msg(MSG_INFO, __VA_ARGS__)
#define msg_debug(...) msg(MSG_DEBUG, __VA_ARGS__)

#endif

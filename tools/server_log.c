/*
 * server_log.c - see server_log.h.
 */
#include "tools/server_log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <uuid/uuid.h>

#include "base/msg.h"

#define LINE_BYTES 2048		/* a message and the longest usual path */
/* Lines of one kind that are printed within LINES_SECONDS; the kernel limits
 * its own messages in the same way. */
#define LINES_OF_A_KIND 10u
#define LINES_SECONDS 5u

/* Puts the device's name before messages that lack it: those of lower layers do
 * not say which of several mounts they are about. */
static void with_name(struct server *s, enum msg_level level, const char *line,
		      char *out, size_t bytes)
{
	bool has = !strncmp(line, s->name, strlen(s->name));

	s->said_why |= level == MSG_ERROR;
	snprintf(out, bytes, "%s%s%s", has ? "" : s->name, has ? "" : ": ",
		 line);
}

/* The sinks of messages; `arg` is the server. */
static void to_terminal(enum msg_level level, const char *line, void *arg)
{
	char named[LINE_BYTES];

	with_name(arg, level, line, named, sizeof(named));
	msg_to_stderr(level, named, NULL);
}

static void to_syslog(enum msg_level level, const char *line, void *arg)
{
	static const int priority[] = { LOG_ERR, LOG_WARNING, LOG_INFO,
					LOG_DEBUG };
	char named[LINE_BYTES];

	with_name(arg, level, line, named, sizeof(named));
	syslog(priority[level], "%s", named);
}

/* The terminal gets warnings and errors, the log everything. */
static void to_both(enum msg_level level, const char *line, void *arg)
{
	to_syslog(level, line, arg);
	if (level < MSG_INFO)
		to_terminal(level, line, arg);
}

void server_log_begin(struct server *s, bool background)
{
	openlog("traxfs", LOG_PID, LOG_DAEMON);
	msg_set_sink(background ? to_both : to_terminal, s);
}

void server_log_only(struct server *s)
{
	msg_set_sink(to_syslog, s);
	msg_set_limit(LINES_OF_A_KIND, LINES_SECONDS);
}

void server_say_mounted(const struct server *s)
{
	char uuid[37];

	uuid_unparse_lower(s->uuid, uuid);
	msg_info("%s: mounted on %s%s%s%s, UUID %s", s->name, s->mountpoint,
		 s->device == s->name ? "" : " by ",
		 s->device == s->name ? "" : s->device,
		 fs_read_only(s->fs) ? " read-only" : "", uuid);
}

void server_say_unmounted(const struct server *s, int rc)
{
	char uuid[37];

	uuid_unparse_lower(s->uuid, uuid);
	if (rc)
		msg_error("%s: unmounted, and not all was written: %s, UUID %s",
			  s->name, strerror(-rc), uuid);
	else
		msg_info("%s: unmounted, UUID %s", s->name, uuid);
}

void server_say_not_mounted(const struct server *s, int rc)
{
	if (rc == -ENOMEM)
		msg_error("%s: not enough memory; limits are shown by "
			  "prlimit(1)", s->name);
	else if (rc == -EIO || rc == -EUCLEAN || rc == -EBADMSG)
		msg_error("%s: not mounted; \"chkfs.traxfs -n %s\" shows what "
			  "is damaged", s->name, s->name);
	else if (!s->said_why)
		msg_error("%s: not mounted: %s", s->name, strerror(-rc));
}

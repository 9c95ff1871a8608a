/*
 * server_log.h - where the daemon's messages go, each with the device's name,
 * and what it says when a mount stands, ends, or does not come about.
 */
#ifndef TRAX_TOOLS_SERVER_LOG_H
#define TRAX_TOOLS_SERVER_LOG_H

#include "tools/server.h"

/* Sends messages to the terminal, and to the system's log if the daemon is
 * to go to the background. */
void server_log_begin(struct server *s, bool background);
/* Sends messages to the system's log only: nobody reads stderr any more. */
void server_log_only(struct server *s);

void server_say_mounted(const struct server *s);
/* rc: 0, or the error with which something was not written. */
void server_say_unmounted(const struct server *s, int rc);
/* Reports a mount that failed, and after damage how to go on. */
void server_say_not_mounted(const struct server *s, int rc);

#endif

/*
 * server_log.h - where the daemon's messages go, each with the device's name,
 * and what it says when a mount stands, ends, or does not come about.
 */
#ifndef TRAX_TOOLS_SERVER_LOG_H
#define TRAX_TOOLS_SERVER_LOG_H

#include "tools/server.h"

/* To the terminal, and to the system's log where it goes to the background. */
void server_log_begin(struct server *s, bool background);
/* From now on to the system's log only: nobody reads stderr any more. */
void server_log_only(struct server *s);

void server_say_mounted(const struct server *s);
/* rc: what was not written. */
void server_say_unmounted(const struct server *s, int rc);
/* No mount fails without a word, and who meets damage learns what to do. */
void server_say_not_mounted(const struct server *s, int rc);

#endif

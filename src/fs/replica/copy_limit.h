/*
 * copy_limit.h - when no copies are made by themselves, and why.
 */
#ifndef TRAX_REPLICA_COPY_LIMIT_H
#define TRAX_REPLICA_COPY_LIMIT_H

#include <stdbool.h>

struct fs;

/* Are streams being read (pace.h), or has a day had its copies? */
bool copies_wait(struct fs *fs);

/* Why no copies are being made now, for users; NULL: they are, or soon will
 * be. */
const char *copies_why_not(struct fs *fs);

#endif

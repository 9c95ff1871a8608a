/*
 * copy_limit.h - says when no replicas are made by themselves, and why.
 */
#ifndef TRAX_REPLICA_COPY_LIMIT_H
#define TRAX_REPLICA_COPY_LIMIT_H

#include <stdbool.h>

struct fs;

/* Must making replicas wait, because streams are being read (pace.h) or the
 * limit of the day is reached? */
bool copies_wait(struct fs *fs);

/* Why no replicas are being made now, as a text for users; NULL: they are, or
 * soon will be. */
const char *copies_why_not(struct fs *fs);

#endif

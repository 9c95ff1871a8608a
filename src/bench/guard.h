/*
 * guard.h - what a benchmark has made in the system goes when it ends, in
 * whatever way, kill -9 too.
 *
 * All of it is in one directory: `mnt` and `drive` are mount points, `loop`
 * holds the name of a loop device; each if it is there.
 */
#ifndef TRAX_BENCH_GUARD_H
#define TRAX_BENCH_GUARD_H

#include <sys/types.h>

struct guard {
	pid_t pid;
	int fd;
};

/* `dir` is there, with an absolute path and without a quote.  0 or a negative
 * errno: nobody cares for it. */
int guard_begin(struct guard *guard, const char *dir);
/* Now; waits. */
void guard_end(struct guard *guard, const char *dir);

#endif

/*
 * guard.h - undoes what a benchmark has made in the system when it ends, in
 * whatever way, kill -9 too.
 *
 * All of it is in one directory: `mnt` and `drive` are mount points, `loop`
 * holds the name of a loop device, `group` that of a control group; each may be
 * missing.
 */
#ifndef TRAX_BENCH_GUARD_H
#define TRAX_BENCH_GUARD_H

#include <sys/types.h>

struct guard {
	pid_t pid;
	int fd;
};

/* Begins to watch over `dir`, in a mount namespace of its own.  `dir` exists,
 * and its path is absolute and has no quote. 0, or a negative errno: nothing
 * watches over it. */
int guard_begin(struct guard *guard, const char *dir);
/* Undoes everything now, and waits for it. */
void guard_end(struct guard *guard, const char *dir);

#endif

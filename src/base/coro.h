/*
 * coro.h - straight-line code that can wait for an event loop.
 *
 * A body runs only inside coro_resume, up to its next coro_yield or its end:
 * never at the same time as who resumed it, so that nothing needs a lock and a
 * run with the same inputs is the same run.
 */
#ifndef TRAX_BASE_CORO_H
#define TRAX_BASE_CORO_H

#include <stdbool.h>

struct coro;

/* Does not run it yet.  -ENOMEM, -EAGAIN: no room for its stack. */
int coro_new(void (*body)(struct coro *coro, void *arg), void *arg,
	     struct coro **coro);

/* Of one that has ended.  NULL is harmless. */
void coro_free(struct coro *coro);

/* Runs it on; false: it has ended. */
bool coro_resume(struct coro *coro);

/* From inside the body: back to who resumed it. */
void coro_yield(struct coro *coro);

#endif

/*
 * coro.h - straight-line code that can wait for an event loop.
 *
 * A body runs only inside coro_resume, up to its next coro_yield or its end. It
 * never runs at the same time as its caller: nothing needs a lock, and a run
 * with the same inputs is the same run.
 */
#ifndef TRAX_BASE_CORO_H
#define TRAX_BASE_CORO_H

#include <stdbool.h>

struct coro;

/* Makes a coroutine and does not run it yet. -ENOMEM or -EAGAIN: there is no
 * room for its stack. */
int coro_new(void (*body)(struct coro *coro, void *arg), void *arg,
	     struct coro **coro);

/* Frees a coroutine that has ended. NULL is harmless. */
void coro_free(struct coro *coro);

/* Runs the body up to its next yield; false: it has ended. */
bool coro_resume(struct coro *coro);

/* Called from inside the body: goes back to coro_resume's caller. */
void coro_yield(struct coro *coro);

#endif

/*
 * coro.c - a thread with strict hand-over: one semaphore for either side.
 *
 * A thread, not a stack of our own, because sanitizers and debuggers know
 * threads.  It takes no signals.
 */
#include "base/coro.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>

struct coro {
	void (*body)(struct coro *coro, void *arg);
	void *arg;
	pthread_t thread;
	sem_t run, rest;
	bool over;
};

static void hand_over(sem_t *to, sem_t *back)
{
	sem_post(to);
	while (sem_wait(back))
		;
}

static void *coro_main(void *arg)
{
	struct coro *coro = arg;

	while (sem_wait(&coro->run))
		;
	coro->body(coro, coro->arg);
	coro->over = true;
	sem_post(&coro->rest);
	return NULL;
}

int coro_new(void (*body)(struct coro *coro, void *arg), void *arg,
	     struct coro **out)
{
	struct coro *coro = calloc(1, sizeof(*coro));
	sigset_t all, before;
	int err;

	if (!coro)
		return -ENOMEM;
	coro->body = body;
	coro->arg = arg;
	sem_init(&coro->run, 0, 0);
	sem_init(&coro->rest, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&coro->thread, NULL, coro_main, coro);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		free(coro);
		return -err;
	}
	*out = coro;
	return 0;
}

void coro_free(struct coro *coro)
{
	if (!coro)
		return;
	assert(coro->over);
	pthread_join(coro->thread, NULL);
	sem_destroy(&coro->run);
	sem_destroy(&coro->rest);
	free(coro);
}

bool coro_resume(struct coro *coro)
{
	if (!coro->over)
		hand_over(&coro->run, &coro->rest);
	return !coro->over;
}

void coro_yield(struct coro *coro)
{
	hand_over(&coro->rest, &coro->run);
}

/*
 * env.c - the real environment: the machine's clocks and random numbers.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <sys/random.h>
#include <time.h>

#include "base/env.h"

static int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;
	int err = clock_gettime(clock, &ts);

	assert(!err);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static uint64_t real_now_ns(struct env *env)
{
	(void)env;
	return (uint64_t)clock_ns(CLOCK_MONOTONIC);
}

/* Reads the kernel's coarse clock, which stamps files, too: a file that the
 * kernel stamps must not seem older than one that traxfs stamped before it. */
static int64_t real_wall_ns(struct env *env)
{
	(void)env;
	return clock_ns(CLOCK_REALTIME_COARSE);
}

/* A caller that is woken too early waits again. */
static void real_wait(struct env *env, uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000),
	};

	(void)env;
	nanosleep(&ts, NULL);
}

/* getrandom(2) never returns less than asked for up to 256 bytes, except before
 * the kernel's pool is ready. */
static uint64_t real_random(struct env *env)
{
	uint64_t value;
	ssize_t got;

	(void)env;
	do
		got = getrandom(&value, sizeof(value), 0);
	while (got < 0 && errno == EINTR);
	assert(got == (ssize_t)sizeof(value));
	return value;
}

struct env *env_real(void)
{
	static struct env real = {
		.now_ns = real_now_ns,
		.wall_ns = real_wall_ns,
		.random = real_random,
		.wait = real_wait,
	};

	return &real;
}

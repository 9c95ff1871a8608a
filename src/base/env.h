/*
 * env.h - the one interface through which time and random numbers enter.
 *
 * All code from src/fs down asks an environment for the time and for random
 * numbers, and uses no other source, so that the same seed gives the same run.
 * Real: env_real().  Virtual: the simulated drive's (src/sim/sim.h).  An
 * environment is owned by the code that made it and outlives all its users.
 */
#ifndef TRAX_BASE_ENV_H
#define TRAX_BASE_ENV_H

#include <stdint.h>

#include "base/turn.h"
#include "base/units.h"

struct env {
	/* Monotonic time, nanoseconds; never goes back. */
	uint64_t (*now_ns)(struct env *env);
	/* Wall clock, nanoseconds since 1970; used for timestamps only. */
	int64_t (*wall_ns)(struct env *env);
	/* 64 uniformly distributed bits. */
	uint64_t (*random)(struct env *env);
	/* Lets time pass; NULL: time passes by itself. */
	void (*wait)(struct env *env, uint64_t ns);
	struct loop_turn turn;	/* of the loop that runs in it */
};

/* The machine's clocks and the kernel's random numbers; never NULL. */
struct env *env_real(void);

static inline uint64_t env_now_ns(struct env *env)
{
	return env->now_ns(env);
}

static inline int64_t env_wall_ns(struct env *env)
{
	return env->wall_ns(env);
}

static inline int64_t env_wall_seconds(struct env *env)
{
	return env_wall_ns(env) / NS_PER_SECOND;
}

static inline uint64_t env_random(struct env *env)
{
	return env->random(env);
}

/* For threads that may block and have nothing else to wait for. */
static inline void env_wait(struct env *env, uint64_t ns)
{
	if (env->wait)
		env->wait(env, ns);
}

#endif

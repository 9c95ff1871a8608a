/*
 * burst.c - spinning, and the limit for processors that sleep.
 */
#include "fuse/burst.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/msg.h"

#define LIMIT_PATH "/dev/cpu_dma_latency"
#define CPUIDLE "/sys/devices/system/cpu/"

/* The loop spins this long after a request: waking costs more than a short
 * request, about 10 us. */
#define SPIN_NS 30000u
/* A burst has begun when this many turns have each found a request while the
 * loop was spinning.  Setting the limit wakes all processors once. */
#define BURST_TURNS 16u
/* A burst goes on over pauses of this length, as when a program waits for a
 * block of the drive's cache. */
#define PAUSE_NS 1000000u
/* What PM QoS takes for "no limit". */
#define NO_LIMIT (-1)

struct burst {
	bool spins;		/* there is another processor for the others */
	int fd;			/* of the limit; -1: it is not used */
	int32_t limit_us;	/* the longest time to wake up, in a burst */
	bool limited;
	unsigned turns;		/* that found a request while spinning */
	uint64_t asked_ns;	/* the last turn that took requests ended */
};

/* Reads the first word of a file below CPUIDLE; false: it can't be read. */
static bool read_word(const char *name, char word[32])
{
	char path[128];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), CPUIDLE "%s", name);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fscanf(f, "%31s", word) == 1;
	fclose(f);
	return ok;
}

/*
 * Which limit to set, or NO_LIMIT where none makes a difference.  In a virtual
 * machine any sleep leaves it, and the driver haltpoll polls only when nothing
 * else is allowed.  Elsewhere the shallowest sleep (state 1; 0 is polling) is
 * woken from in 1 or 2 us, and polling would cost power.
 */
static int32_t useful_limit(void)
{
	char word[32];

	if (!read_word("cpuidle/current_driver", word))
		return NO_LIMIT;
	if (!strcmp(word, "haltpoll"))
		return 0;
	if (!read_word("cpu0/cpuidle/state1/latency", word))
		return NO_LIMIT;
	return (int32_t)strtol(word, NULL, 10);
}

struct burst *burst_new(bool awake)
{
	struct burst *burst = calloc(1, sizeof(*burst));

	if (!burst)
		return NULL;
	burst->spins = sysconf(_SC_NPROCESSORS_ONLN) > 1;
	burst->limit_us = awake ? useful_limit() : NO_LIMIT;
	burst->fd = -1;
	if (burst->limit_us != NO_LIMIT)
		burst->fd = open(LIMIT_PATH, O_WRONLY | O_CLOEXEC);
	/* Opening it asks for nothing yet. */
	if (burst->limit_us != NO_LIMIT && burst->fd < 0)
		msg_debug(LIMIT_PATH ": %s", strerror(errno));
	return burst;
}

static void set_limit(struct burst *burst, bool limited)
{
	int32_t us = limited ? burst->limit_us : NO_LIMIT;

	burst->limited = limited;
	if (write(burst->fd, &us, sizeof(us)) == sizeof(us))
		return;
	msg_warn(LIMIT_PATH ": %s: processors are not kept awake any more",
		 strerror(errno));
	close(burst->fd);	/* which takes the limit away */
	burst->fd = -1;
	burst->limited = false;
}

void burst_asked(struct burst *burst, uint64_t begin_ns, uint64_t end_ns)
{
	burst->turns = burst_spins(burst, begin_ns) ? burst->turns + 1 : 0;
	burst->asked_ns = end_ns;
	if (burst->fd >= 0 && !burst->limited && burst->turns >= BURST_TURNS)
		set_limit(burst, true);
}

bool burst_spins(const struct burst *burst, uint64_t now_ns)
{
	return burst->spins && burst->asked_ns &&
	       now_ns < burst->asked_ns + SPIN_NS;
}

uint64_t burst_run(struct burst *burst, uint64_t now_ns)
{
	if (!burst->limited)
		return UINT64_MAX;
	if (now_ns < burst->asked_ns + PAUSE_NS)
		return burst->asked_ns + PAUSE_NS;
	set_limit(burst, false);
	return UINT64_MAX;
}

void burst_free(struct burst *burst)
{
	if (burst && burst->fd >= 0)
		close(burst->fd);
	free(burst);
}

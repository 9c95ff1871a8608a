/*
 * commit_burst.c - the background (write-back, checkpoints, mirrors of the log)
 * waits for a turn and then works through what has gathered.
 *
 * An access in the background takes the head away from the log, a turn and more
 * each; one after each commit would double the time of all commits, and move
 * the head to and fro for nothing.  So the background waits while commits
 * follow each other, for WAIT_COMMITS or WAIT_NS, and then has the head for
 * TURN_NS, or twice as long if it did not finish the last time: less than one
 * commit in a hundred waits for it, and long, instead of each.
 */
#include "sched/queue/commit_burst.h"

#include "base/units.h"

/* Commits in a row that make a burst, if they are this close together. */
#define RUN 3u
#define THINK_MAX_NS 2500000u	/* 2.5 ms */
/* A longer pause ends the row. */
#define PAUSE_NS (20 * NS_PER_MS)
/* The least time for which the next commit is waited for: 0.2 ms. */
#define LEAST_NS 200000u
/* A commit within this time before now is recent (commit_burst_of_late). */
#define LATE_NS (100 * NS_PER_MS)
/* The background waits this long, or for this many commits, before its turn. */
#define WAIT_NS (400 * NS_PER_MS)
#define WAIT_COMMITS 150u
/* Length of a turn of the background. */
#define TURN_NS (50 * NS_PER_MS)

static bool is_burst(const struct commit_burst *burst)
{
	return burst->run >= RUN && burst->think_ns <= THINK_MAX_NS;
}

void commit_burst_submit(struct commit_burst *burst, uint64_t now_ns)
{
	uint64_t think_ns = now_ns - burst->done_ns;

	if (burst->commits++)
		return;
	if (think_ns > PAUSE_NS) {
		burst->run = 0;
		burst->think_ns = THINK_MAX_NS;
		return;
	}
	burst->think_ns = (7 * burst->think_ns + think_ns) / 8;
	burst->run++;
}

void commit_burst_done(struct commit_burst *burst, uint64_t now_ns, bool waits)
{
	burst->commits--;
	burst->done_ns = now_ns;
	if (!waits) {
		burst->since_ns = 0;
		burst->again = false;
	} else if (!burst->since_ns) {
		burst->since_ns = now_ns;
		burst->passed = 0;
	}
	burst->passed++;
}

uint64_t commit_burst_until_ns(const struct commit_burst *burst,
			       uint64_t now_ns)
{
	if (!is_burst(burst) || commit_burst_is_turn(burst, now_ns))
		return 0;
	if (burst->commits)
		return UINT64_MAX;
	return burst->done_ns + LEAST_NS + 3 * burst->think_ns;
}

bool commit_burst_of_late(const struct commit_burst *burst, uint64_t now_ns)
{
	return burst->commits ||
	       (burst->done_ns && now_ns - burst->done_ns < LATE_NS);
}

void commit_burst_turn(struct commit_burst *burst, uint64_t now_ns)
{
	if (!burst->since_ns || (burst->passed < WAIT_COMMITS &&
				 now_ns - burst->since_ns < WAIT_NS))
		return;
	burst->since_ns = 0;
	burst->until_ns = now_ns + (burst->again ? 2 : 1) * TURN_NS;
	burst->again = true;
}

bool commit_burst_is_turn(const struct commit_burst *burst, uint64_t now_ns)
{
	return is_burst(burst) && now_ns < burst->until_ns;
}

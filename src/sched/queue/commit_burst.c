/*
 * commit_burst.c - the background (write-back, checkpoints, twins of the log)
 * waits for a turn and then works through what has gathered.
 *
 * An access in the background takes the head away from the log, a turn and more
 * each; one after each commit would double the time of all of them, and move
 * the head to and fro for nothing.  So it waits while commits follow each
 * other, for WAIT_COMMITS or WAIT_NS, and then has the head for TURN_NS, or
 * twice as long if it did not come to its end before: less than one commit in a
 * hundred waits for it, and long, instead of each.
 */
#include "sched/queue/commit_burst.h"

#define RUN 3u
#define THINK_MAX_NS 2500000u
#define PAUSE_NS 20000000u
#define LEAST_NS 200000u
#define LATE_NS 100000000u
#define WAIT_NS 400000000u
#define WAIT_COMMITS 150u
#define TURN_NS 50000000u

static bool is_hurry(const struct hurry *hurry)
{
	return hurry->run >= RUN && hurry->think_ns <= THINK_MAX_NS;
}

void hurry_submit(struct hurry *hurry, uint64_t now_ns)
{
	uint64_t think_ns = now_ns - hurry->done_ns;

	if (hurry->commits++)
		return;
	if (think_ns > PAUSE_NS) {
		hurry->run = 0;
		hurry->think_ns = THINK_MAX_NS;
		return;
	}
	hurry->think_ns = (7 * hurry->think_ns + think_ns) / 8;
	hurry->run++;
}

void hurry_done(struct hurry *hurry, uint64_t now_ns, bool waits)
{
	hurry->commits--;
	hurry->done_ns = now_ns;
	if (!waits) {
		hurry->since_ns = 0;
		hurry->again = false;
	} else if (!hurry->since_ns) {
		hurry->since_ns = now_ns;
		hurry->passed = 0;
	}
	hurry->passed++;
}

uint64_t hurry_until_ns(const struct hurry *hurry, uint64_t now_ns)
{
	if (!is_hurry(hurry) || hurry_is_turn(hurry, now_ns))
		return 0;
	if (hurry->commits)
		return UINT64_MAX;
	return hurry->done_ns + LEAST_NS + 3 * hurry->think_ns;
}

bool hurry_of_late(const struct hurry *hurry, uint64_t now_ns)
{
	return hurry->commits ||
	       (hurry->done_ns && now_ns - hurry->done_ns < LATE_NS);
}

void hurry_turn(struct hurry *hurry, uint64_t now_ns)
{
	if (!hurry->since_ns || (hurry->passed < WAIT_COMMITS &&
				 now_ns - hurry->since_ns < WAIT_NS))
		return;
	hurry->since_ns = 0;
	hurry->until_ns = now_ns + (hurry->again ? 2 : 1) * TURN_NS;
	hurry->again = true;
}

bool hurry_is_turn(const struct hurry *hurry, uint64_t now_ns)
{
	return is_hurry(hurry) && now_ns < hurry->until_ns;
}

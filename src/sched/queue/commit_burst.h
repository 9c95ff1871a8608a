/*
 * commit_burst.h - commits that follow one another without a pause: is it worth
 * waiting for the next one before background work takes the head away?
 *
 * Units: nanoseconds.
 */
#ifndef TRAX_QUEUE_COMMIT_BURST_H
#define TRAX_QUEUE_COMMIT_BURST_H

#include <stdbool.h>
#include <stdint.h>

struct commit_burst {
	unsigned commits;	/* commits submitted and not completed */
	uint64_t done_ns;	/* when the last commit completed */
	uint64_t think_ns;	/* recent time from done_ns to the next one */
	unsigned run;		/* commits that came soon after another */
	uint64_t since_ns;	/* since when the background waits; 0: it does
				   not wait */
	unsigned passed;	/* commits since since_ns */
	bool again;		/* the background still waited at the end of
				   its last turn */
	uint64_t until_ns;	/* when the background's turn ends */
};

/* A commit is submitted; it is over, and something in the background waits. */
void commit_burst_submit(struct commit_burst *burst, uint64_t now_ns);
void commit_burst_done(struct commit_burst *burst, uint64_t now_ns, bool waits);

/*
 * Until when the background has to wait for the next commit; 0: not at all,
 * UINT64_MAX: until the commit that runs is over, at least.
 */
uint64_t commit_burst_until_ns(const struct commit_burst *burst,
			       uint64_t now_ns);

/* Was there a commit within the last tenth of a second?  Another may come. */
bool commit_burst_of_late(const struct commit_burst *burst, uint64_t now_ns);

/* Now and then the background has its turn, and goes before commits. */
void commit_burst_turn(struct commit_burst *burst, uint64_t now_ns);
bool commit_burst_is_turn(const struct commit_burst *burst, uint64_t now_ns);

#endif

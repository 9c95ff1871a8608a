/*
 * class_share.c - every class has its share of the head while several wait.
 *
 * The time that a class uses is counted, divided by its weight; of the classes
 * that wait the one that has used least is next, the higher one if they are
 * equal.  Commits and reads weigh by the number that wait, so that the time of
 * one of them does not depend on how many there are; requests that nobody waits
 * for have one weight however many they are.
 *
 * Going to another class and back costs a seek and half a revolution each way.
 * So a class begins before a higher one only when it is owed `begin` of time,
 * and it goes on until it has had `keep` more than it is owed: while both wait
 * all the time it has begin + keep at a stretch, and a higher class that asks
 * now and then waits for `keep` at most.
 *
 * A class that does not wait saves nothing up: when it begins to wait, it has
 * used at least as much as any that waits.
 */
#include "sched/queue/class_share.h"

#include "base/units.h"

/* The time that is counted is divided by the weight and multiplied by this. */
#define SCALE 64u
/* Somebody waits for requests of the first classes: commits and reads. */
#define AWAITED_CLASSES 2
/* Turns are this many times as long where nobody waits for any of the requests:
 * fewer seeks, and nobody is delayed. */
#define STRETCH 3u

/* One row a class, the highest first. */
static const struct {
	uint64_t begin_ns, keep_ns;	/* when a class's own time begins, and
					 * how long it lasts */
	unsigned weight;	/* weight of each request that waits */
	unsigned most;		/* number of requests that count, at most */
} rules[QUEUE_CLASSES] = {
	{ 0, 0, 12, 8 },	/* commits: one access each */
	{ 0, 0, 4, 32 },
	/* Read-ahead lies together: it reads some tracks each time, so that the
	 * way there and back (20 ms) is less than half of it. */
	{ 35 * NS_PER_MS, 30 * NS_PER_MS, 14, 1 },
	/* Nobody waits for write-back until memory is full. */
	{ 20 * NS_PER_MS, 10 * NS_PER_MS, 6, 1 },
	{ 10 * NS_PER_MS, 0, 1, 1 },
};

static uint64_t scaled_ns(const struct class_share *share, int class,
			  uint64_t ns)
{
	/* The request that is being served does not wait any more. */
	unsigned n = share->count[class] + (class == share->holder);

	if (n > rules[class].most)
		n = rules[class].most;
	return ns * SCALE / (rules[class].weight * (n ? n : 1));
}

static uint64_t used_ns(const struct class_share *share, int class,
			uint64_t now_ns)
{
	if (class != share->holder)
		return share->used_ns[class];
	/* The time may be a prediction that did not come true. */
	return share->used_ns[class] +
	       (now_ns < share->since_ns ? 0 :
			scaled_ns(share, class, now_ns - share->since_ns));
}

/* The factor by which turns are longer if nobody waits for any request. */
static uint64_t stretch(const struct class_share *share)
{
	int class;

	for (class = 0; class < AWAITED_CLASSES; class++)
		if (share->count[class] || share->holder == class)
			return 1;
	return STRETCH;
}

/* Time that the class must be owed to begin before the others. */
static uint64_t begin_ns(const struct class_share *share, int class)
{
	return stretch(share) * scaled_ns(share, class, rules[class].begin_ns);
}

static void count_time(struct class_share *share, uint64_t now_ns)
{
	share->used_ns[share->holder] = used_ns(share, share->holder, now_ns);
	share->since_ns = now_ns;
}

static bool anything_waits(const struct class_share *share)
{
	unsigned class, n = 0;

	for (class = 0; class < QUEUE_CLASSES; class++)
		n += share->count[class];
	return n;
}

/* The least that the holder and those that wait have used. */
static uint64_t least_used_ns(const struct class_share *share)
{
	uint64_t least_ns = share->used_ns[share->holder];
	unsigned class;

	for (class = 0; class < QUEUE_CLASSES; class++)
		if (share->count[class] && share->used_ns[class] < least_ns)
			least_ns = share->used_ns[class];
	return least_ns;
}

void class_share_add(struct class_share *share, int class, bool busy,
		     uint64_t now_ns)
{
	uint64_t least_ns;

	if (!share->count[class]) {
		if (busy || anything_waits(share))
			count_time(share, now_ns);
		share->since_ns = now_ns;
		least_ns = least_used_ns(share);
		if (share->used_ns[class] < least_ns)
			share->used_ns[class] = least_ns;
	}
	share->count[class]++;
}

void class_share_remove(struct class_share *share, int class)
{
	share->count[class]--;
}

bool class_share_keeps(const struct class_share *share, uint64_t now_ns)
{
	int class = share->holder, other;
	uint64_t mine_ns = used_ns(share, class, now_ns);
	uint64_t keep_ns = stretch(share) *
			   scaled_ns(share, class, rules[class].keep_ns);

	for (other = 0; other < (int)QUEUE_CLASSES; other++)
		if (other != class && share->count[other] &&
		    mine_ns > share->used_ns[other] +
				      (other < class ? keep_ns :
						       begin_ns(share, other)))
			return false;
	return true;
}

int class_share_next(const struct class_share *share, uint64_t now_ns)
{
	int best = -1, class;

	if (share->count[share->holder] && class_share_keeps(share, now_ns))
		return share->holder;
	for (class = 0; class < (int)QUEUE_CLASSES; class++)
		if (share->count[class] &&
		    (best < 0 || used_ns(share, class, now_ns) +
				  begin_ns(share, class) <
			    used_ns(share, best, now_ns)))
			best = class;
	return best;
}

void class_share_take(struct class_share *share, int class, uint64_t now_ns)
{
	count_time(share, now_ns);
	share->holder = class;
}

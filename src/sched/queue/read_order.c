/*
 * read_order.c - the queue and the drive order reads by turns, and the one that
 * needs less time for a read has nearly all turns.
 *
 * The drive knows its head best, and needs no host that answers in time; but
 * many drives order badly or hold only a few commands.  So each has a turn of
 * TURN_READS while at least LEAST_READS are there to be ordered.  The first
 * reads of a turn still show the order before, and are not counted, nor are
 * those that come when there is little to be ordered.
 */
#include <math.h>

#include "sched/queue/read_order.h"

#include "base/units.h"

/* With fewer there is hardly an order: the queue's choice, which hides the
 * way of the answer and of the next command, is as good as any. */
#define LEAST_READS 3u
/* Reads of a turn that are counted, and those before that are not. */
#define TURN_READS 96u
#define SKIPPED_READS 32u
/* Turns over which the mean is taken: the times of random reads differ so much
 * that one turn is off by 4 %. */
#define MEAN_TURNS 4.0
/* The slower one has a turn after TURNS_LEAST others: drives and loads change,
 * and the head must be measured.  Twice as many each time that nothing has
 * changed, up to TURNS_MOST. */
#define TURNS_LEAST 8u
#define TURNS_MOST 64u
/* If it is much slower its turns come so seldom that all of them cost no more
 * than this, in percent of the time. */
#define LOSS_PERCENT 1.0
/* After another request reads are ordered by the queue for this long: others
 * like it will follow, and would have to wait behind all that the drive has. */
#define ALONE_NS (250 * NS_PER_MS)

static void turn_begin(struct read_order *order)
{
	order->skipped = order->reads = 0;
	order->turn_ns = 0;
}

void read_order_other(struct read_order *order, uint64_t now_ns)
{
	order->alone_ns = now_ns + ALONE_NS;
	turn_begin(order);
}

/* Whose turn is next? */
static enum read_orderer next_turn(struct read_order *order)
{
	const double *mean_ns = order->mean_ns;
	enum read_orderer other = order->by == ORDERED_BY_QUEUE ?
					  ORDERED_BY_DRIVE : ORDERED_BY_QUEUE;
	enum read_orderer best =
		mean_ns[ORDERED_BY_DRIVE] < mean_ns[ORDERED_BY_QUEUE] ?
			ORDERED_BY_DRIVE : ORDERED_BY_QUEUE;
	unsigned turns;

	if (!mean_ns[other])
		return other;
	turns = (unsigned)(100 / LOSS_PERCENT *
			   fabs(mean_ns[other] - mean_ns[order->by]) /
			   mean_ns[best]);
	if (best != order->best)
		order->turns_most = order->turns = 0;
	order->best = best;
	if (order->turns_most < TURNS_LEAST)
		order->turns_most = TURNS_LEAST;
	if (++order->turns < order->turns_most || order->turns < turns)
		return best;
	order->turns = 0;
	if (order->turns_most < TURNS_MOST)
		order->turns_most *= 2;
	return best == ORDERED_BY_QUEUE ? ORDERED_BY_DRIVE : ORDERED_BY_QUEUE;
}

static void turn_end(struct read_order *order)
{
	double *mean_ns = &order->mean_ns[order->by];
	double turn_ns = (double)order->turn_ns / order->reads;

	*mean_ns += *mean_ns ? (turn_ns - *mean_ns) / MEAN_TURNS : turn_ns;
	order->by = next_turn(order);
	turn_begin(order);
}

void read_order_done(struct read_order *order, unsigned left, uint64_t now_ns)
{
	uint64_t last_ns = order->last_ns;

	/* The time up to the first read of the next burst is a pause. */
	order->last_ns = left + 1 < LEAST_READS ? 0 : now_ns;
	if (!last_ns || left + 1 < LEAST_READS || now_ns < order->alone_ns)
		return;
	if (order->skipped < SKIPPED_READS) {
		order->skipped++;
		return;
	}
	order->turn_ns += now_ns - last_ns;
	if (++order->reads == TURN_READS)
		turn_end(order);
}

bool read_order_is_drives(const struct read_order *order, unsigned reads,
			  uint64_t now_ns)
{
	return order->by == ORDERED_BY_DRIVE && reads >= LEAST_READS &&
	       now_ns >= order->alone_ns;
}

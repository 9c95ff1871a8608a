/*
 * read_order.h - who orders many small reads: the queue, by where it believes
 * the head to be, or the drive, which has them all?  Found out by trying.
 *
 * Units: nanoseconds.
 */
#ifndef TRAX_QUEUE_READ_ORDER_H
#define TRAX_QUEUE_READ_ORDER_H

#include <stdbool.h>
#include <stdint.h>

enum read_orderer { ORDERED_BY_QUEUE, ORDERED_BY_DRIVE, READ_ORDERERS };

struct read_order {
	enum read_orderer by;	/* whose turn it is */
	unsigned skipped, reads;	/* of this turn */
	enum read_orderer best;	/* who needs less time */
	unsigned turns, turns_most; /* since the other was tried, and until it
				 * is tried again */
	uint64_t last_ns;	/* when its last read was over */
	uint64_t turn_ns;	/* the time that `reads` took */
	double mean_ns[READ_ORDERERS];	/* of a read, of late; 0: unknown */
	uint64_t alone_ns;	/* nothing but reads was asked for since */
};

/* Something was submitted that is no small read: the queue orders for a
 * while. */
void read_order_other(struct read_order *order, uint64_t now_ns);

/* A small read is over, and so many are still to be read. */
void read_order_done(struct read_order *order, unsigned left, uint64_t now_ns);

/* Is the drive to have all of the reads that wait, of which there are so many
 * with those that it has? */
bool read_order_is_drives(const struct read_order *order, unsigned reads,
			  uint64_t now_ns);

#endif

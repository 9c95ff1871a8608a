/*
 * read_order.h - decides by trying whether many small reads are ordered by the
 * queue, from the predicted head state, or by the drive, which is given all of
 * them.
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
	unsigned skipped, reads; /* reads of this turn: those that are not
				 * counted, and those that are */
	enum read_orderer best;	/* the one that needs less time */
	unsigned turns, turns_most; /* turns since the other was tried, and
				 * until it is tried again */
	uint64_t last_ns;	/* when the last read of this turn was over */
	uint64_t turn_ns;	/* the time that `reads` took */
	double mean_ns[READ_ORDERERS];	/* recent mean time of a read; 0: not
				 * known */
	uint64_t alone_ns;	/* since when only reads were submitted */
};

/* A request was submitted that is no small read: the queue orders reads for a
 * while. */
void read_order_other(struct read_order *order, uint64_t now_ns);

/* A small read is over; `left` are still to be read. */
void read_order_done(struct read_order *order, unsigned left, uint64_t now_ns);

/* Is the drive given all reads that wait?  `reads`: their number, with those
 * that it has. */
bool read_order_is_drives(const struct read_order *order, unsigned reads,
			  uint64_t now_ns);

#endif

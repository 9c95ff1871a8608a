/*
 * head_state.h - the predicted state of a drive at one moment: the input of
 * every decision that depends on rotation (request choice, nearest replica,
 * range writes, freeblock).  Pure data, made by head.h.
 *
 * Units: nanoseconds on the environment's clock; see service.h and geom.h.
 */
#ifndef TRAX_HEAD_HEAD_STATE_H
#define TRAX_HEAD_HEAD_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "diskmodel/geom.h"
#include "diskmodel/service.h"

struct head_state {
	uint64_t now_ns;		/* the moment */
	const struct geom *geom;
	const struct service_mech *mech; /* with the present phase */
	/* The head, free from head.at_ns on (perhaps past) for the next
	 * request, behind all that the disk has been given. */
	struct service_head head;
	uint64_t head_lbn;		/* LBN on the track under the head, if
					 * there is one */
	/* Time between handing a request over and the head's first move. */
	uint64_t read_overhead_ns, write_overhead_ns;
	/* Guards: a target must be this far ahead of the head to be met in 98 %
	 * of cases.  The first two are for a command handed over now, the
	 * others for one handed over while that is running. */
	uint64_t read_guard_ns, write_guard_ns;
	uint64_t read_next_guard_ns, write_next_guard_ns;
	/* How far ahead a place is best chosen for a write handed over now. */
	uint64_t place_guard_ns;
	/* Guards that suffice in three of four cases, for targets that may be
	 * missed. */
	uint64_t read_likely_ns, write_likely_ns;
	/* How late the host is when it hands a read to an idle drive. */
	uint64_t late_ns;
	/* A target that passed this long before the head is surely missed. */
	uint64_t read_early_ns, write_early_ns;
	/* A read from here on goes on where the last one ends and needs no
	 * positioning; UINT64_MAX: none would. */
	uint64_t stream_lbn;
	/* Behind a read that ends at most this many sectors before a track's
	 * end the drive goes to the next track before it serves another
	 * command; 0: it does not. */
	uint32_t goes_on_sectors;
	/* Sectors that the drive stores, and reads, as one. */
	uint32_t physical_sectors;
	/* May rotation be predicted for reads, for writes? */
	bool reads, writes;
	/* Is the head where it is predicted to be, though the drive may be
	 * bringing writes from its cache to the medium?  Else no gap holds. */
	bool stays;
	/* May range writes be placed by the head?  Being right half of the time
	 * is enough: a miss costs a turn, and so does not aiming. */
	bool places;
};

/* When the head begins to move for a request that is handed over now. */
static inline uint64_t head_state_start_ns(const struct head_state *head_state,
					   bool write)
{
	uint64_t decoded_ns = head_state->now_ns + (write ?
		head_state->write_overhead_ns : head_state->read_overhead_ns);

	return decoded_ns > head_state->head.at_ns ? decoded_ns :
						 head_state->head.at_ns;
}

/*
 * Time after the head began to move for a free read at which the command behind
 * it is handed over.  The free read had been decoded ahead_ns earlier.  If it
 * were late, the drive would hold both commands and take the nearer one first.
 */
uint64_t head_state_behind_ns(const struct head_state *head_state,
			      uint64_t ahead_ns);

/*
 * Estimates a request that is handed over now, the guard included: a target
 * that would be met only just counts as missed. out->head is where the head
 * will be, out->bus_ns when the request completes.
 */
void head_state_estimate(const struct head_state *head_state,
		     const struct service_request *req, struct service *out);

#endif

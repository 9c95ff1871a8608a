/*
 * belief.c - the guard is time the head is taken to need more before it can
 * begin: then a target that comes by within the guard is one revolution away.
 */
#include "sched/belief.h"

void belief_estimate(const struct belief *belief,
		     const struct service_request *req, struct service *out)
{
	struct service_head head = belief->head;

	head.at_ns = belief_start_ns(belief, req->write) +
		     (req->write ? belief->write_guard_ns :
				   belief->read_guard_ns);
	service_estimate(belief->geom, belief->mech, &head, req, out);
}

/*
 * head_state.c - the guard is time the head is taken to need more before it can
 * begin: then a target that comes by within the guard is one revolution away.
 */
#include "sched/head/head_state.h"

#define BEHIND_PART 16u
#define BEHIND_NS 20000u

void belief_estimate(const struct belief *belief,
		     const struct service_request *req, struct service *out)
{
	struct service_head head = belief->head;

	head.at_ns = belief_start_ns(belief, req->write) +
		     (req->write ? belief->write_guard_ns :
				   belief->read_guard_ns);
	service_estimate(belief->geom, belief->mech, &head, req, out);
}

uint64_t belief_behind_ns(const struct belief *belief, uint64_t ahead_ns)
{
	uint64_t ns = belief->mech->period_ps / 1000 / BEHIND_PART;

	return ahead_ns + BEHIND_NS < ns ? ns - ahead_ns : BEHIND_NS;
}

/*
 * head_state.c - the guard is time the head is taken to need more before it can
 * begin: then a target that comes by within the guard is one revolution away.
 */
#include "sched/head/head_state.h"

#define BEHIND_PART 16u
#define BEHIND_NS 20000u

void head_state_estimate(const struct head_state *head_state,
		     const struct service_request *req, struct service *out)
{
	struct service_head head = head_state->head;

	head.at_ns = head_state_start_ns(head_state, req->write) +
		     (req->write ? head_state->write_guard_ns :
				   head_state->read_guard_ns);
	service_estimate(head_state->geom, head_state->mech, &head, req, out);
}

uint64_t head_state_behind_ns(const struct head_state *head_state,
			      uint64_t ahead_ns)
{
	uint64_t ns = head_state->mech->period_ps / 1000 / BEHIND_PART;

	return ahead_ns + BEHIND_NS < ns ? ns - ahead_ns : BEHIND_NS;
}

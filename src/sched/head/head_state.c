/*
 * head_state.c - estimates with a guard: the head is assumed to need this much
 * longer before it can begin, so a target that passes within the guard is one
 * revolution away.
 */
#include "sched/head/head_state.h"

/* The command behind a free read is handed over a 16th of a turn after that was
 * decoded, but at least BEHIND_NS after the head began to move for it. */
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

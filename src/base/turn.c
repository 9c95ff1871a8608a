/*
 * turn.c - see turn.h.
 */
#include "base/turn.h"

#include <string.h>

static const char *const part_names[TURN_PARTS] = {
	[TURN_TRANSACTIONS] = "transactions",
	[TURN_COMPLETIONS] = "completions",
	[TURN_FLUSH] = "flush",
	[TURN_DESTAGE] = "destage",
	[TURN_RELEASE] = "release",
	[TURN_CHECKPOINT] = "checkpoint",
	[TURN_LEARN] = "learn",
	[TURN_PLACE] = "place",
};

const char *turn_part_name(enum turn_part part)
{
	return part_names[part];
}

static enum turn_part largest_part(const struct loop_turn *turn)
{
	enum turn_part best = 0, part;

	for (part = 1; part < TURN_PARTS; part++)
		if (turn->charged_ns[part] > turn->charged_ns[best])
			best = part;
	return best;
}

bool turn_next(struct loop_turn *turn)
{
	const bool cut = turn->cut;

	turn->turns++;
	turn->cuts += cut;
	if (turn->all_ns > turn->max_charged_ns) {
		turn->max_charged_ns = turn->all_ns;
		turn->max_charged_part = largest_part(turn);
	}
	turn->running = true;
	turn->cut = false;
	turn->all_ns = 0;
	memset(turn->charged_ns, 0, sizeof(turn->charged_ns));
	return cut;
}

void turn_stop(struct loop_turn *turn)
{
	turn_next(turn);
	turn->running = false;
}

void turn_measured(struct loop_turn *turn, uint64_t ns)
{
	if (turn->max_ns < ns)
		turn->max_ns = ns;
}

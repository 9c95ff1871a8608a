/*
 * accuracy.c - a ring of outcomes.  Switching on or off empties it, so that
 * either change needs as many new outcomes as the other.
 */
#include <string.h>

#include "sched/head/accuracy.h"

/* Percent of wrong predictions in a window at which prediction goes off, and
 * down to which it goes on again; the distance keeps it from going on and
 * off. */
#define OFF_PERCENT 5u
#define ON_PERCENT 3u

void accuracy_clear(struct accuracy *accuracy)
{
	accuracy->n = accuracy->next = accuracy->wrongs = 0;
}

static bool accuracy_switch(struct accuracy *accuracy, bool on)
{
	accuracy->on = on;
	accuracy->switched++;
	accuracy_clear(accuracy);
	return true;
}

bool accuracy_see(struct accuracy *accuracy, bool wrong, unsigned enough)
{
	if (accuracy->n == ACCURACY_WINDOW)
		accuracy->wrongs -= accuracy->wrong[accuracy->next];
	else
		accuracy->n++;
	accuracy->wrong[accuracy->next] = wrong;
	accuracy->wrongs += wrong;
	accuracy->next = (accuracy->next + 1) % ACCURACY_WINDOW;
	if (accuracy->on && accuracy_hopeless(accuracy))
		return accuracy_switch(accuracy, false);
	if (!accuracy->on && accuracy->n >= enough &&
	    accuracy->wrongs * 100 <= accuracy->n * (accuracy->on_percent ?
			accuracy->on_percent : ON_PERCENT))
		return accuracy_switch(accuracy, true);
	return false;
}

bool accuracy_hopeless(const struct accuracy *accuracy)
{
	return accuracy->wrongs * 100 >
	       ACCURACY_WINDOW * (accuracy->off_percent ? accuracy->off_percent
							: OFF_PERCENT);
}

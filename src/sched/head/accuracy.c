/*
 * accuracy.c - a ring of outcomes.  Switching forgets them, so that one way
 * needs as many anew as the other.
 */
#include <string.h>

#include "sched/head/accuracy.h"

#define OFF_PERCENT 5u
#define ON_PERCENT 3u

void judge_clear(struct judge *judge)
{
	judge->n = judge->next = judge->wrongs = 0;
}

static bool judge_switch(struct judge *judge, bool on)
{
	judge->on = on;
	judge->switched++;
	judge_clear(judge);
	return true;
}

bool judge_see(struct judge *judge, bool wrong, unsigned enough)
{
	if (judge->n == JUDGE_WINDOW)
		judge->wrongs -= judge->wrong[judge->next];
	else
		judge->n++;
	judge->wrong[judge->next] = wrong;
	judge->wrongs += wrong;
	judge->next = (judge->next + 1) % JUDGE_WINDOW;
	if (judge->on && judge_hopeless(judge))
		return judge_switch(judge, false);
	if (!judge->on && judge->n >= enough &&
	    judge->wrongs * 100 <= judge->n * (judge->on_percent ?
			judge->on_percent : ON_PERCENT))
		return judge_switch(judge, true);
	return false;
}

bool judge_hopeless(const struct judge *judge)
{
	return judge->wrongs * 100 > JUDGE_WINDOW * (judge->off_percent ?
			judge->off_percent : OFF_PERCENT);
}

/*
 * accuracy.h - is a prediction good enough to be used?  With hysteresis, over
 * the last predictions made, used or not.
 */
#ifndef TRAX_HEAD_ACCURACY_H
#define TRAX_HEAD_ACCURACY_H

#include <stdbool.h>
#include <stdint.h>

#define ACCURACY_WINDOW 200u

struct accuracy {
	bool on;
	unsigned on_percent, off_percent;	/* wrong; 0: 3 and 5 */
	bool wrong[ACCURACY_WINDOW];	/* a ring */
	unsigned n;			/* in the ring */
	unsigned next;
	unsigned wrongs;		/* among them */
	uint64_t switched;
};

/* Forgets what has been seen; stays on or off. */
void accuracy_clear(struct accuracy *accuracy);

/*
 * A prediction was right or wrong.  Switches off as soon as off_percent of a
 * window are wrong, on when of at least `enough` (at most a window) seen while
 * off no more than on_percent are.  True: it has been switched.
 */
bool accuracy_see(struct accuracy *accuracy, bool wrong, unsigned enough);

/* So many wrong ones that `enough` good ones would not help. */
bool accuracy_hopeless(const struct accuracy *accuracy);

#endif

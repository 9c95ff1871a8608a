/*
 * accuracy.h - decides whether predictions are good enough to be used, with
 * hysteresis, from the last predictions made, used or not.
 */
#ifndef TRAX_HEAD_ACCURACY_H
#define TRAX_HEAD_ACCURACY_H

#include <stdbool.h>
#include <stdint.h>

/* Predictions that are looked at together: 5 percent of them are 10. */
#define ACCURACY_WINDOW 200u

struct accuracy {
	bool on;
	/* Percent of wrong predictions at which prediction goes on and off; 0:
	 * 3 and 5. */
	unsigned on_percent, off_percent;
	bool wrong[ACCURACY_WINDOW];	/* a ring */
	unsigned n;			/* predictions in the ring */
	unsigned next;			/* place of the next one */
	unsigned wrongs;		/* wrong ones in the ring */
	uint64_t switched;		/* times it went on or off */
};

/* Forgets what has been seen; stays on or off. */
void accuracy_clear(struct accuracy *accuracy);

/*
 * Takes in whether a prediction was right or wrong.  Switches off as soon as
 * off_percent of a window are wrong; switches on when at least `enough` (at
 * most a window) were seen while off and no more than on_percent of them were
 * wrong.  True: it has been switched.
 */
bool accuracy_see(struct accuracy *accuracy, bool wrong, unsigned enough);

/* Would `enough` right predictions in a row still not switch prediction on? */
bool accuracy_hopeless(const struct accuracy *accuracy);

#endif

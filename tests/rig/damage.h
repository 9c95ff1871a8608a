/*
 * damage.h - ways to damage the lab's file system, one for each row of the
 * table of problems.
 */
#ifndef TRAX_RIG_DAMAGE_H
#define TRAX_RIG_DAMAGE_H

#include "tests/rig/lab.h"

struct damage {
	enum problem problem;	/* the problem that the check must find */
	void (*apply)(struct lab *lab);
	bool loaded;		/* changes the loaded set; else the disk */
	uint64_t victim;	/* need not be whole; 0: nobody's loss */
};

extern const struct damage damages[];
extern const unsigned damages_n;

#endif

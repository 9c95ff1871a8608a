/*
 * bad_stretch.h - free room near failed writes, which is not used for a while.
 */
#ifndef TRAX_DATA_BAD_STRETCH_H
#define TRAX_DATA_BAD_STRETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rangeset.h"

struct files;

struct bad_stretch {
	struct range window;	/* range in which failed writes lie; n 0: there
				 * is none */
	struct rangeset held;	/* free sectors in this range and earlier ones
				 * that are held back (space_take) */
	uint64_t until_ns;	/* when they are given back */
};

/* A write to these sectors has failed. */
void bad_stretch_failed(struct files *files, uint64_t sector, uint64_t n);
/* Gives back what is held when its time has come. */
void bad_stretch_run(struct files *files, uint64_t now_ns);
/* Gives back all that is held; true: there was some. */
bool bad_stretch_give_back(struct files *files);

#endif

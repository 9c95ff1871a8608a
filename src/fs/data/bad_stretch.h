/*
 * bad_stretch.h - free room near failed writes, which is left alone for a
 * while.
 */
#ifndef TRAX_DATA_BAD_STRETCH_H
#define TRAX_DATA_BAD_STRETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rangeset.h"

struct files;

struct bad_stretch {
	struct range window;	/* that failed writes lie in; n 0: there is
				   none */
	struct rangeset held;	/* free sectors in it and in earlier ones, which
				   are taken (space_take) */
	uint64_t until_ns;	/* when they are given back */
};

/* A write to these sectors has failed. */
void bad_stretch_failed(struct files *files, uint64_t sector, uint64_t n);
/* Gives back what is held when its time has come, or at once. */
void bad_stretch_run(struct files *files, uint64_t now_ns);
/* True: some was held. */
bool bad_stretch_give_back(struct files *files);

#endif

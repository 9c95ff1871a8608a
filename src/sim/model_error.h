/*
 * model_error.h - what is believed of a drive against what it is.
 *
 * For tests and for whoever reports how well a drive was measured.
 */
#ifndef TRAX_SIM_MODEL_ERROR_H
#define TRAX_SIM_MODEL_ERROR_H

#include <stdint.h>

#include "diskmodel/geom.h"

struct model_error {
	uint64_t tracks;	/* there are */
	uint64_t right;		/* believed tracks that are one */
	uint64_t wrong;		/* believed to be known, and are none */
	uint64_t first_wrong;	/* LBN; UINT64_MAX: none */
	uint64_t unknown_sectors;
	/* Of the right tracks: where their first sectors are believed to be,
	 * in millionths of a revolution off, all turned by what makes the
	 * median 0. */
	uint32_t angle_p50_ppm, angle_p99_ppm, angle_max_ppm;
};

/* -ENOMEM; -EINVAL: not the same number of sectors. */
int model_error_geom(const struct geom *truth, const struct geom *model,
		     struct model_error *judge);

#endif

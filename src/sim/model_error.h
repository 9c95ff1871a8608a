/*
 * model_error.h - compares the geometry that a model has of a drive with the
 * true one.
 *
 * For tests and for programs that report how well a drive was measured.
 */
#ifndef TRAX_SIM_MODEL_ERROR_H
#define TRAX_SIM_MODEL_ERROR_H

#include <stdint.h>

#include "diskmodel/geom.h"

struct model_error {
	uint64_t tracks;	/* tracks of the model */
	uint64_t right;		/* tracks of the model that are true tracks */
	uint64_t wrong;		/* tracks marked as known that are no true
				 * tracks */
	uint64_t first_wrong;	/* first LBN of the first wrong track;
				 * UINT64_MAX: none */
	uint64_t unknown_sectors;
	/* Errors of the angles of the right tracks' first sectors, in
	 * millionths of a revolution, after all angles were turned so that the
	 * median is 0. */
	uint32_t angle_p50_ppm, angle_p99_ppm, angle_max_ppm;
};

/* -ENOMEM; -EINVAL: not the same number of sectors. */
int model_error_geom(const struct geom *truth, const struct geom *model,
		     struct model_error *result);

#endif

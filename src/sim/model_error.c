/*
 * model_error.c - walks over the believed tracks and looks each up in the
 * truth.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/model_error.h"

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return x < y ? -1 : x > y;
}

static uint32_t ppm_of(int32_t turn)
{
	int64_t away = turn < 0 ? -(int64_t)turn : turn;

	return (uint32_t)((away * 1000000) >> 32);
}

/* Angles are relative: the first right track's error turns them all. */
static void model_error_angles(int32_t *error, size_t n,
			       struct model_error *result)
{
	int32_t middle;

	if (!n)
		return;
	qsort(error, n, sizeof(*error), by_size);
	middle = error[n / 2];
	for (size_t i = 0; i < n; i++) {
		error[i] = (int32_t)((uint32_t)error[i] - (uint32_t)middle);
		if (error[i] < 0 && error[i] != INT32_MIN)
			error[i] = -error[i];
	}
	qsort(error, n, sizeof(*error), by_size);
	result->angle_p50_ppm = ppm_of(error[n / 2]);
	result->angle_p99_ppm = ppm_of(error[n * 99 / 100]);
	result->angle_max_ppm = ppm_of(error[n - 1]);
}

int model_error_geom(const struct geom *truth, const struct geom *model,
		     struct model_error *result)
{
	uint64_t n = geom_tracks(model);
	struct geom_track is, seems;
	int32_t *error;
	angle turn = 0;

	if (geom_sectors(truth) != geom_sectors(model))
		return -EINVAL;
	error = malloc((n + 1) * sizeof(*error));
	if (!error)
		return -ENOMEM;
	*result = (struct model_error){ .tracks = geom_tracks(truth),
				 .first_wrong = UINT64_MAX };
	for (uint64_t i = 0; i < n; i++) {
		geom_track_at(model, i, &seems);
		if (!seems.known) {
			result->unknown_sectors += seems.sectors;
			continue;
		}
		geom_track_of(truth, seems.first, &is);
		if (is.first != seems.first || is.sectors != seems.sectors) {
			if (!result->wrong++)
				result->first_wrong = seems.first;
			continue;
		}
		if (!result->right)
			turn = seems.start - is.start;
		error[result->right++] =
			(int32_t)(seems.start - is.start - turn);
	}
	model_error_angles(error, result->right, result);
	free(error);
	return 0;
}

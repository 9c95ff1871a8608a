/*
 * scsi_runs.c - a list of tracks, and how many sectors go round them.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "diskmodel/geom_build.h"
#include "extract/scsi/scsi_runs.h"

/* What a track lacks by slips is no more than this part of it. */
#define LITTLE 16u
#define HEADS 256u		/* a head's number is a byte */

static bool goes_on(const struct track_run *last, const struct track_run *run)
{
	return run->step && last->step == run->step &&
	       last->place.head == run->place.head &&
	       last->blocks == run->blocks &&
	       last->usual == run->usual &&
	       last->place.cylinder + (int64_t)last->count * last->step ==
		       run->place.cylinder &&
	       last->count < UINT32_MAX / 2;
}

int runs_add(struct track_runs *runs, const struct track_run *run)
{
	struct track_run *last = runs->n > runs->sealed ?
				 &runs->v[runs->n - 1] : NULL;
	int err;

	if (last && goes_on(last, run)) {
		last->count += run->count;
		return 0;
	}
	err = array_grow(&runs->v, &runs->room, runs->n, sizeof(*runs->v));
	if (!err)
		runs->v[runs->n++] = *run;
	return err;
}

/* Do two runs lie in the same zone of one surface, in the same place of its
 * order? */
static bool alike(const struct track_run *a, const struct track_run *b)
{
	return a->place.head == b->place.head && a->usual == b->usual;
}

/*
 * Sectors around the tracks of each run, in blocks: those that are alike have
 * as many as the fullest of them.  A surface may have two kinds by turns: where
 * heads go back and forth, every other of its tracks is a cylinder's last and
 * has spares.
 */
static uint32_t *find_around(const struct track_runs *runs)
{
	uint32_t *around = calloc(runs->n + 1, sizeof(*around)), most;
	size_t *first = calloc(runs->n + 1, sizeof(*first));
	size_t open[HEADS][2] = { { 0 } }, *kind, at;
	const struct track_run *run;

	for (size_t i = 0; around && first && i < runs->n; i++) {
		run = &runs->v[i];
		kind = open[run->place.head];
		at = alike(&runs->v[kind[0]], run) ? kind[0] :
		     alike(&runs->v[kind[1]], run) ? kind[1] : i;
		if (at != kind[0]) {
			kind[1] = kind[0];
			kind[0] = at;
		}
		first[i] = at;
		most = run->blocks > run->usual ? run->blocks : run->usual;
		if (most > around[at])
			around[at] = most;
	}
	for (size_t i = 0; around && first && i < runs->n; i++)
		around[i] = around[first[i]];
	if (!first) {
		free(around);
		around = NULL;
	}
	free(first);
	return around;
}

/* ---- the geometry ---- */

static int add_run(struct geom_build *b, const struct track_run *run,
		   uint32_t around, uint32_t unit)
{
	int64_t more = (int64_t)run->blocks - run->usual;
	uint64_t first = geom_build_tracks(b);
	/* A track that lacks more than slips is of another zone. */
	bool odd = more && -more <= run->usual / LITTLE;

	for (uint32_t i = 0; odd && i < run->count; i++)
		if (geom_build_odd(b, first + i, (int32_t)(more * unit)))
			return -ENOMEM;
	return geom_build_sweep(b, &(struct geom_sweep){
		.count = run->count,
		.sectors = (odd ? run->usual : run->blocks) * unit,
		.around = around * unit,
		.cylinder = run->place.cylinder,
		.surface = (int32_t)run->place.head,
		.cylinder_step = run->step,
		.known = true,
	});
}

int runs_geom(const struct track_runs *runs, uint32_t unit, struct geom **out)
{
	struct geom_build *b = geom_build_new(0, 0);
	uint32_t *around = find_around(runs);
	int err = b && around ? 0 : -ENOMEM;

	for (size_t i = 0; i < runs->n && !err; i++)
		err = add_run(b, &runs->v[i], around[i], unit);
	if (!err)
		err = geom_build_finish(b, out);
	geom_build_free(b);
	free(around);
	return err;
}

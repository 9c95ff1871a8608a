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

static bool goes_on(const struct track_run *last, const struct track_run *run)
{
	return run->step && last->step == run->step &&
	       last->surface == run->surface && last->known == run->known &&
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
	return a->surface == b->surface && a->known == b->known &&
	       a->usual == b->usual;
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
	size_t open[GEOM_MAX_SURFACES][2] = { { 0 } }, *kind, at;
	const struct track_run *run;

	for (size_t i = 0; around && first && i < runs->n; i++) {
		run = &runs->v[i];
		kind = open[run->surface];
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

struct maker {
	struct geom_build *build;
	struct geom_sweep pending;	/* not in it yet */
	uint32_t unit;
};

static int flush(struct maker *m)
{
	int err = m->pending.count ? geom_build_sweep(m->build, &m->pending) :
				     0;

	m->pending.count = 0;
	return err;
}

/* What goes on is put together, however it was found: else the geometry would
 * not repeat. */
static int add_sweep(struct maker *m, const struct geom_sweep *sweep)
{
	struct geom_sweep *last = &m->pending;
	int err;

	if (last->count && sweep->cylinder_step &&
	    last->cylinder_step == sweep->cylinder_step &&
	    last->surface == sweep->surface && last->known == sweep->known &&
	    last->sectors == sweep->sectors && last->around == sweep->around &&
	    last->cylinder + (int64_t)last->count * last->cylinder_step ==
		    sweep->cylinder && last->count < UINT32_MAX / 2) {
		last->count += sweep->count;
		return 0;
	}
	err = flush(m);
	m->pending = *sweep;
	return err;
}

static int add_run(struct maker *m, const struct track_run *run,
		   uint32_t around)
{
	int64_t more = (int64_t)run->blocks - run->usual;
	uint64_t first = geom_build_tracks(m->build) + m->pending.count;
	/* A track that lacks more than slips is of another zone. */
	bool odd = run->known && more && -more <= run->usual / LITTLE;
	const struct geom_sweep sweep = {
		.count = run->count,
		.sectors = (odd ? run->usual : run->blocks) * m->unit,
		.around = around * m->unit,
		.cylinder = run->place.cylinder,
		.surface = (int32_t)run->surface,
		.cylinder_step = run->step,
		.known = run->known,
	};

	for (uint32_t i = 0; odd && i < run->count; i++)
		if (geom_build_odd(m->build, first + i,
				   (int32_t)(more * m->unit)))
			return -ENOMEM;
	return add_sweep(m, &sweep);
}

int runs_geom(const struct track_runs *runs, uint32_t unit, struct geom **out)
{
	struct maker m = { .unit = unit, .build = geom_build_new(0, 0) };
	uint32_t *around = find_around(runs);
	int err = m.build && around ? 0 : -ENOMEM;

	for (size_t i = 0; i < runs->n && !err; i++)
		err = add_run(&m, &runs->v[i], around[i]);
	if (!err)
		err = flush(&m);
	if (!err)
		err = geom_build_finish(m.build, out);
	geom_build_free(m.build);
	free(around);
	return err;
}

/*
 * scsi_around.c - runs of tracks along a surface that hold nearly the same,
 * but for single ones among them.
 *
 * The first tracks of a run may have been taken for odd ones of the zone
 * before; and of spares behind their blocks, as more slips have shown, the most
 * is known last.  So all have as many sectors around them as the last one.
 */
#include <errno.h>
#include <stdlib.h>

#include "diskmodel/geom_build.h"
#include "extract/angle/angles.h"
#include "extract/angle/skews.h"
#include "extract/scsi/scsi_around.h"

/* What sizes that are nearly the same differ by: this part of them. */
#define NEARLY 64u
#define NONE UINT32_MAX

struct run {
	uint32_t blocks;	/* sectors on its last track */
	uint32_t most;		/* on any of its tracks */
	uint32_t around;	/* of all */
	uint32_t tracks;
	uint32_t before;	/* run of more than one along the surface */
	uint32_t behind;	/* the next such run */
};

struct runs {
	const struct geom *geom;
	struct run *v;
	uint32_t n;
	uint32_t *of;		/* by track */
	uint32_t *last;		/* by surface: its run */
};

static bool nearly(uint32_t a, uint32_t b)
{
	uint32_t more = a > b ? a - b : b - a;

	return more <= (a > b ? a : b) / NEARLY;
}

static void take_track(struct runs *r, const struct geom_track *t)
{
	uint32_t last = r->last[t->surface], around = skews_around(t);
	struct run *run = last == NONE ? NULL : &r->v[last];

	/* Behind a single one it goes on. */
	if (run && run->tracks == 1 && run->before != NONE &&
	    nearly(r->v[run->before].blocks, t->sectors)) {
		r->last[t->surface] = run->before;
		run = &r->v[run->before];
	}
	if (!run || !nearly(run->blocks, t->sectors)) {
		r->v[r->n] = (struct run){
			.before = !run ? NONE : run->tracks > 1 ? last :
								  run->before,
			.behind = NONE,
		};
		run = &r->v[r->n];
		r->last[t->surface] = r->n++;
	}
	run->blocks = t->sectors;
	run->tracks++;
	if (t->sectors > run->most)
		run->most = t->sectors;
	run->around = around > run->most ? around : run->most;
	r->of[t->index] = r->last[t->surface];
}

/* Of a run of one the next one of more is known when that is. */
static void find_behind(struct runs *r)
{
	struct geom_track t;
	uint32_t *good = r->last;

	for (uint32_t i = 0; i < GEOM_MAX_SURFACES; i++)
		good[i] = NONE;
	for (uint64_t i = geom_tracks(r->geom); i-- > 0;) {
		geom_track_at(r->geom, i, &t);
		if (!t.known)
			continue;
		if (r->v[r->of[i]].tracks > 1)
			good[t.surface] = r->of[i];
		else
			r->v[r->of[i]].behind = good[t.surface];
	}
}

/* Sectors around a track of a run. */
static uint32_t around_of(const struct runs *r, const struct geom_track *t)
{
	const struct run *run = &r->v[r->of[t->index]];
	uint32_t beside[2] = { run->before, run->behind };

	if (run->tracks > 1)
		return run->around > t->sectors ? run->around : t->sectors;
	for (unsigned i = 0; i < 2; i++) {
		if (beside[i] != NONE && r->v[beside[i]].around >= t->sectors)
			return r->v[beside[i]].around;
	}
	return t->sectors;
}

/* Sets around[] by track; are there any that are not believed to be so? */
static bool find_around(struct runs *r, uint32_t *around)
{
	struct geom_track t;
	bool any = false;

	for (uint64_t i = 0; i < geom_tracks(r->geom); i++) {
		geom_track_at(r->geom, i, &t);
		around[i] = t.known ? around_of(r, &t) : skews_around(&t);
		any |= around[i] != skews_around(&t);
	}
	return any;
}

static void find_runs(struct runs *r)
{
	struct geom_track t;

	for (uint32_t i = 0; i < GEOM_MAX_SURFACES; i++)
		r->last[i] = NONE;
	for (uint64_t i = 0; i < geom_tracks(r->geom); i++) {
		geom_track_at(r->geom, i, &t);
		if (t.known)
			take_track(r, &t);
	}
	find_behind(r);
}

int scsi_around(struct geom **geom)
{
	uint64_t n = geom_tracks(*geom);
	struct runs r = { .geom = *geom };
	uint32_t *around = calloc(n, sizeof(*around));
	angle *bases = calloc(n, sizeof(*bases));
	struct geom *mended;
	int err = -ENOMEM;

	r.v = calloc(n, sizeof(*r.v));
	r.of = calloc(n, sizeof(*r.of));
	r.last = calloc(GEOM_MAX_SURFACES, sizeof(*r.last));
	if (around && bases && r.v && r.of && r.last) {
		err = 0;
		find_runs(&r);
		if (find_around(&r, around))
			err = angles_put(*geom, NULL, bases, around,
					 &mended);
		else
			mended = NULL;
		if (!err && mended) {
			geom_free(*geom);
			*geom = mended;
		}
	}
	free(around);
	free(bases);
	free(r.v);
	free(r.of);
	free(r.last);
	return err;
}

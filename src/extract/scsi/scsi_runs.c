/*
 * scsi_runs.c - a list of tracks, and how many sectors go round them.
 *
 * The last track of a zone may be short, and the first ones of the next zone
 * are taken for odd ones of the last while they are mapped.  Their neighbours
 * along the surface tell: tracks that hold nearly the same, but for single ones
 * among them, have as many sectors around them as the fullest of these.
 */
#include <errno.h>
#include <stdlib.h>

#include "diskmodel/geom_build.h"
#include "extract/scsi/scsi_runs.h"

/* What sizes that are nearly the same differ by: this part of them. */
#define NEARLY 64u
/* What a track lacks by slips is no more than this part. */
#define LITTLE 16u
#define NONE SIZE_MAX

static bool goes_on(const struct track_run *last, const struct track_run *run)
{
	return run->step && last->step == run->step &&
	       last->place.head == run->place.head &&
	       last->known == run->known && last->blocks == run->blocks &&
	       last->usual == run->usual &&
	       last->place.cylinder + (int64_t)last->count * last->step ==
		       run->place.cylinder &&
	       last->count < UINT32_MAX / 2;
}

int runs_add(struct track_runs *runs, const struct track_run *run)
{
	struct track_run *last = runs->n ? &runs->v[runs->n - 1] : NULL;
	size_t room = runs->room ? 2 * runs->room : 1024;

	runs->tracks += run->count;
	runs->odd += run->blocks != run->usual ? run->count : 0;
	if (last && goes_on(last, run)) {
		last->count += run->count;
		return 0;
	}
	if (runs->n == runs->room) {
		last = reallocarray(runs->v, room, sizeof(*last));
		if (!last)
			return -ENOMEM;
		runs->v = last;
		runs->room = room;
	}
	runs->v[runs->n++] = *run;
	return 0;
}

void runs_fini(struct track_runs *runs)
{
	free(runs->v);
	*runs = (struct track_runs){ 0 };
}

/* ---- sectors around ---- */

/* Tracks of one surface that hold nearly the same. */
struct kin {
	uint32_t last, most;	/* blocks of its last track, of its fullest */
	uint64_t tracks;
	size_t before, behind;	/* kin of more than one along the surface */
};

struct kins {
	struct kin *v;
	size_t n;
	size_t *of;		/* by run */
	size_t *open;		/* by surface: its kin */
};

static bool nearly(uint32_t a, uint32_t b)
{
	uint32_t more = a > b ? a - b : b - a;

	return more <= (a > b ? a : b) / NEARLY;
}

static size_t kin_of(struct kins *k, const struct track_run *run)
{
	size_t *open = &k->open[run->place.head];
	struct kin *kin = *open == NONE ? NULL : &k->v[*open];

	/* Behind a single one it goes on. */
	if (kin && kin->tracks == 1 && kin->before != NONE &&
	    nearly(k->v[kin->before].last, run->blocks)) {
		*open = kin->before;
		kin = &k->v[*open];
	}
	if (!kin || !nearly(kin->last, run->blocks)) {
		k->v[k->n] = (struct kin){
			.before = !kin ? NONE : kin->tracks > 1 ? *open :
								  kin->before,
			.behind = NONE,
		};
		*open = k->n++;
		kin = &k->v[*open];
	}
	kin->last = run->blocks;
	kin->tracks += run->count;
	if (run->blocks > kin->most)
		kin->most = run->blocks;
	return *open;
}

static uint32_t around_of(const struct kins *k, const struct track_run *run,
			  const struct kin *kin)
{
	const size_t beside[2] = { kin->before, kin->behind };

	if (kin->tracks > 1)
		return kin->most;
	for (unsigned i = 0; i < 2; i++)
		if (beside[i] != NONE && k->v[beside[i]].most >= run->blocks)
			return k->v[beside[i]].most;
	return run->blocks;
}

static void forget_open(struct kins *k)
{
	for (size_t i = 0; i < GEOM_MAX_SURFACES; i++)
		k->open[i] = NONE;
}

static void find_around(struct track_runs *runs, struct kins *k)
{
	size_t *good;

	forget_open(k);
	for (size_t i = 0; i < runs->n; i++)
		if (runs->v[i].known)
			k->of[i] = kin_of(k, &runs->v[i]);
	forget_open(k);
	for (size_t i = runs->n; i-- > 0;) {
		good = &k->open[runs->v[i].place.head];
		if (runs->v[i].known && k->v[k->of[i]].tracks > 1)
			*good = k->of[i];
		else if (runs->v[i].known)
			k->v[k->of[i]].behind = *good;
	}
	for (size_t i = 0; i < runs->n; i++)
		runs->v[i].around = !runs->v[i].known ? runs->v[i].blocks :
			around_of(k, &runs->v[i], &k->v[k->of[i]]);
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

static int add_run(struct maker *m, const struct track_run *run)
{
	int64_t more = (int64_t)run->blocks - run->usual;
	uint64_t first = geom_build_tracks(m->build) + m->pending.count;
	/* A track that lacks more than slips is of another zone. */
	bool odd = run->known && more && run->usual <= run->around &&
		   -more <= run->usual / LITTLE;
	const struct geom_sweep sweep = {
		.count = run->count,
		.sectors = (odd ? run->usual : run->blocks) * m->unit,
		.around = run->around * m->unit,
		.cylinder = run->place.cylinder,
		.surface = (int32_t)run->place.head,
		.cylinder_step = run->step,
		.known = run->known,
	};

	for (uint32_t i = 0; odd && i < run->count; i++)
		if (geom_build_odd(m->build, first + i,
				   (int32_t)(more * m->unit)))
			return -ENOMEM;
	return add_sweep(m, &sweep);
}

int runs_geom(struct track_runs *runs, uint32_t unit, struct geom **out)
{
	struct maker m = { .unit = unit, .build = geom_build_new(0, 0) };
	struct kins k = {
		.v = calloc(runs->n + 1, sizeof(*k.v)),
		.of = calloc(runs->n + 1, sizeof(*k.of)),
		.open = calloc(GEOM_MAX_SURFACES, sizeof(*k.open)),
	};
	int err = m.build && k.v && k.of && k.open ? 0 : -ENOMEM;

	if (!err)
		find_around(runs, &k);
	for (size_t i = 0; i < runs->n && !err; i++)
		err = add_run(&m, &runs->v[i]);
	if (!err)
		err = flush(&m);
	if (!err)
		err = geom_build_finish(m.build, out);
	geom_build_free(m.build);
	free(k.v);
	free(k.of);
	free(k.open);
	return err;
}

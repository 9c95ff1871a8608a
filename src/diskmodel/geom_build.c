/*
 * geom_build.c - from sweeps of tracks to runs of repeating patterns.
 *
 * Appending joins what can be joined (a sweep that continues the last one).
 * Finishing goes over the sweeps once: at each it tries every period up to
 * PERIOD_MAX sweeps and takes the one that repeats the longest. Sweeps that
 * repeat become one run, others a run of a single sweep. A pattern met before,
 * beginning at any of its parts (a slipped track interrupts a zone anywhere),
 * is found again and shared.
 *
 * Before that it looks whether one of the last runs goes on, behind tracks that
 * are missing or different, anywhere in its pattern: otherwise each wholly
 * slipped track would make two patterns. Where there are so many of them that
 * nothing repeats twice, sweeps are joined across missing tracks (bridged) to
 * find the period.
 *
 * Zones are never told apart: a new zone is merely where repetition ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diskmodel/geom_build.h"

/* Sweeps of a period: twice the surfaces of the largest drives, and room for
 * odd ones. */
#define PERIOD_MAX 96u
/* Number of patterns looked at, newest first, for one to share. */
#define SHARE_MAX 16u

/* Number of runs looked at, newest first, for one that goes on, and number of
 * tracks that may be missing from it. */
#define RESUME_RUNS 4u
/* Round number; a larger one costs as many comparisons for each new run. */
#define RESUME_SKIP 64u
/* Tracks that may be missing within a sweep that is bridged, and number of
 * sweeps that are bridged to find a period. */
#define BRIDGE_TRACKS_MAX 8u
/* Four times PERIOD_MAX and a little: a period has to repeat to be found. */
#define BRIDGED_SWEEPS_MAX 400u
/* Least number of sweeps between two calls of pause(). */
#define PAUSE_SWEEPS 2048u

struct geom_build {
	struct geom *geom;	/* the geometry under construction */
	struct geom_sweep *sweeps;
	size_t sweeps_n;
	angle tolerance;
	uint64_t tracks, sectors; /* tracks and virtual sectors that have been
				   * appended */
	int64_t more;		/* sum over all odd tracks, those still to come
				 * included */
	/* Allocated, in elements. */
	size_t sweeps_room, parts_room, patterns_room, runs_room, odds_room,
		slips_room, remaps_room;
	void (*pause)(void *arg);	/* called now and then; NULL: nothing
					 * is */
	void *pause_arg;
};

/* Makes room for `more` elements by doubling. */
static int grow(void *array, size_t *room, size_t n, size_t more, size_t each)
{
	size_t want = *room ? *room : 16;
	void **slot = array;
	void *p;

	while (want < n + more)
		want *= 2;
	if (want == *room)
		return 0;
	p = realloc(*slot, want * each);
	if (!p)
		return -ENOMEM;
	*slot = p;
	*room = want;
	return 0;
}

struct geom_build *geom_build_new(uint64_t period_ns, angle tolerance)
{
	struct geom_build *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->geom = calloc(1, sizeof(*b->geom));
	if (!b->geom) {
		free(b);
		return NULL;
	}
	b->geom->period_ns = period_ns;
	b->tolerance = tolerance;
	return b;
}

void geom_build_free(struct geom_build *build)
{
	if (!build)
		return;
	geom_free(build->geom);
	free(build->sweeps);
	free(build);
}

uint64_t geom_build_tracks(const struct geom_build *build)
{
	return build->tracks;
}

uint64_t geom_build_sectors(const struct geom_build *build)
{
	return build->sectors + (uint64_t)build->more;
}

bool geom_build_fit(struct geom_fit *fit, angle off, uint32_t n)
{
	int64_t dev = (int32_t)(off - n * fit->step);
	int64_t lo = dev - fit->tolerance, hi = dev + fit->tolerance;

	/* The two bounds are rounded towards each other. */
	lo = lo > 0 ? (lo + n - 1) / n : lo / (int64_t)n;
	hi = hi < 0 ? (hi - (int64_t)n + 1) / (int64_t)n : hi / n;
	if (lo < fit->lo)
		lo = fit->lo;
	if (hi > fit->hi)
		hi = fit->hi;
	if (lo > hi)
		return false;
	fit->lo = lo;
	fit->hi = hi;
	return true;
}

angle geom_build_fitted(const struct geom_fit *fit)
{
	return fit->step + (angle)((fit->lo + fit->hi) / 2);
}

static bool angle_near(angle a, angle b, angle tolerance)
{
	return a - b <= tolerance || b - a <= tolerance;
}

static const char *sweep_verify(const struct geom_sweep *s)
{
	int64_t last = (int64_t)s->count - 1;
	int64_t cylinder = s->cylinder + last * s->cylinder_step;
	int64_t surface = s->surface + last * s->surface_step;

	if (!s->count || s->count > GEOM_MAX_CYLINDERS)
		return "a sweep of no or too many tracks";
	if (!s->sectors || s->sectors > s->around)
		return "a track of no sectors, or of more than go around";
	if (s->around > GEOM_MAX_TRACK_SECTORS)
		return "a track of too many sectors";
	if (s->cylinder < 0 || s->cylinder >= GEOM_MAX_CYLINDERS ||
	    cylinder < 0 || cylinder >= GEOM_MAX_CYLINDERS)
		return "a cylinder out of range";
	if (s->surface < 0 || s->surface >= (int32_t)GEOM_MAX_SURFACES ||
	    surface < 0 || surface >= GEOM_MAX_SURFACES)
		return "a surface out of range";
	return NULL;
}

/* Do the tracks of `next` go on where those of `last` end?  They do behind a
 * single one, too, if that has the step that leads on from it. */
static bool sweep_continues(const struct geom_sweep *last,
			    const struct geom_sweep *next, angle tolerance)
{
	int64_t n = last->count;

	if (last->sectors != next->sectors || last->around != next->around ||
	    last->known != next->known)
		return false;
	if (next->count > 1 &&
	    (next->cylinder_step != last->cylinder_step ||
	     next->surface_step != last->surface_step ||
	     !angle_near(next->base_step, last->base_step, tolerance)))
		return false;
	return next->cylinder == last->cylinder + n * last->cylinder_step &&
	       next->surface == last->surface + n * last->surface_step &&
	       angle_near(next->base,
			  last->base + (angle)n * last->base_step, tolerance);
}

int geom_build_sweep(struct geom_build *build, const struct geom_sweep *sweep)
{
	struct geom_sweep *last;
	int err;

	if (sweep_verify(sweep))
		return -EINVAL;
	if (build->sectors + (uint64_t)sweep->count * sweep->sectors >
	    GEOM_MAX_SECTORS)
		return -EINVAL;
	err = grow(&build->sweeps, &build->sweeps_room, build->sweeps_n, 1,
		   sizeof(*sweep));
	if (err)
		return err;
	last = build->sweeps + build->sweeps_n - 1;
	if (build->sweeps_n &&
	    sweep_continues(last, sweep, build->tolerance) &&
	    last->count + (uint64_t)sweep->count <= GEOM_MAX_CYLINDERS)
		last->count += sweep->count;
	else
		build->sweeps[build->sweeps_n++] = *sweep;
	build->tracks += sweep->count;
	build->sectors += (uint64_t)sweep->count * sweep->sectors;
	return 0;
}

int geom_build_odd(struct geom_build *build, uint64_t track, int32_t more)
{
	struct geom *g = build->geom;
	int err;

	err = grow(&g->odds, &build->odds_room, g->odds_n, 1,
		   sizeof(*g->odds));
	if (err)
		return err;
	g->odds[g->odds_n++] = (struct geom_odd){
		.track = track, .more = more
	};
	build->more += more;
	return 0;
}

int geom_build_slip(struct geom_build *build, const struct geom_slip *slip)
{
	struct geom *g = build->geom;
	int err;

	err = grow(&g->slips, &build->slips_room, g->slips_n, 1,
		   sizeof(*slip));
	if (!err)
		g->slips[g->slips_n++] = *slip;
	return err;
}

int geom_build_remap(struct geom_build *build, const struct geom_remap *remap)
{
	struct geom *g = build->geom;
	int err;

	err = grow(&g->remaps, &build->remaps_room, g->remaps_n, 1,
		   sizeof(*remap));
	if (!err)
		g->remaps[g->remaps_n++] = *remap;
	return err;
}

int geom_build_pseudo(struct geom_build *build, uint64_t sectors,
		      uint32_t track_sectors)
{
	uint64_t have = geom_build_sectors(build), left = sectors - have;
	struct geom_sweep s = { .cylinder_step = 1 };
	const struct geom_sweep *last;
	int err = 0;

	if (sectors < have || !track_sectors ||
	    track_sectors > GEOM_MAX_TRACK_SECTORS)
		return -EINVAL;
	if (build->sweeps_n) {
		last = &build->sweeps[build->sweeps_n - 1];
		s.cylinder = last->cylinder + 1 +
			     (int64_t)(last->count - 1) * last->cylinder_step;
	}
	while (left && !err) {
		uint64_t tracks = left / track_sectors;

		s.sectors = tracks ? track_sectors : (uint32_t)left;
		s.around = s.sectors;
		s.count = tracks ? tracks < GEOM_MAX_CYLINDERS ?
			(uint32_t)tracks : GEOM_MAX_CYLINDERS : 1;
		left -= (uint64_t)s.count * s.sectors;
		err = geom_build_sweep(build, &s);
		s.cylinder += s.count;
	}
	return err;
}

/* Have the sweeps the same shape, wherever they lie? */
static bool sweep_same(const struct geom_sweep *a, const struct geom_sweep *b,
		       angle tolerance)
{
	return a->count == b->count && a->sectors == b->sectors &&
	       a->around == b->around && a->known == b->known &&
	       (a->count == 1 ||
		(a->cylinder_step == b->cylinder_step &&
		 a->surface_step == b->surface_step &&
		 angle_near(a->base_step, b->base_step,
			    tolerance / a->count)));
}

/* Does sweep i repeat the one of the first period that it corresponds to?
 * Always compared with the first period, so that errors do not add up. */
static bool repeats_at(const struct geom_sweep *s, size_t p, size_t i,
		       struct geom_fit *fit)
{
	const struct geom_sweep *a = &s[i % p];
	int64_t q = (int64_t)(i / p);

	return sweep_same(a, &s[i], (angle)fit->tolerance) &&
	       s[i].cylinder == a->cylinder +
			q * (s[p].cylinder - s[0].cylinder) &&
	       s[i].surface == a->surface +
			(int32_t)q * (s[p].surface - s[0].surface) &&
	       geom_build_fit(fit, s[i].base - a->base, (uint32_t)q);
}

/* A period: `p` sweeps that repeat over `covers` sweeps in all, each time
 * turned by `step`. */
struct period {
	size_t p, covers;
	angle step;
};

/* Number of the `n` sweeps that repeat with period `p`, from the first one
 * on. */
static struct period repeats(const struct geom_sweep *s, size_t n, size_t p,
			     angle tolerance)
{
	struct geom_fit fit = { s[p].base - s[0].base, tolerance, INT32_MIN,
				INT32_MAX };
	size_t i = p;

	while (i < n && repeats_at(s, p, i, &fit))
		i++;
	return (struct period){ p, i, geom_build_fitted(&fit) };
}

/* The period at `s`: it comes at least twice, or is a single sweep. */
static struct period find_period(const struct geom_sweep *s, size_t n,
				 angle tolerance)
{
	struct period best = { 1, 1, 0 };

	for (size_t p = 1; p <= PERIOD_MAX && 2 * p <= n; p++) {
		struct period at = repeats(s, n, p, tolerance);

		if (at.covers >= 2 * p && at.covers > best.covers)
			best = at;
		/* A multiple of a good period cannot cover much more; but the
		 * period of a cylinder's tracks alone is too short. */
		if (best.covers >= 4 * PERIOD_MAX && p >= 4 * best.p)
			break;
	}
	return best;
}

/* Are the sweeps of a period those of the pattern, beginning with its part
 * `r`? */
static bool pattern_matches(const struct geom *g,
			    const struct geom_pattern *pattern, uint32_t r,
			    const struct geom_sweep *s,
			    const struct period *period, angle tolerance)
{
	const struct geom_part *part = g->parts + pattern->part;
	const struct geom_sweep *a = &part[r].sweep;

	for (uint32_t i = 0; i < pattern->parts; i++) {
		const struct geom_sweep *b =
			&part[(r + i) % pattern->parts].sweep;
		bool over = r + i >= pattern->parts;

		if (!sweep_same(b, &s[i], tolerance) ||
		    s[i].cylinder - s[0].cylinder !=
			    b->cylinder - a->cylinder +
				    over * pattern->cylinder_step ||
		    s[i].surface - s[0].surface !=
			    b->surface - a->surface +
				    over * pattern->surface_step ||
		    !angle_near(s[i].base - s[0].base,
				b->base - a->base +
					over * pattern->base_step,
				tolerance))
			return false;
	}
	if (period->covers == period->p)
		return true;
	return s[period->p].cylinder - s[0].cylinder ==
		       pattern->cylinder_step &&
	       s[period->p].surface - s[0].surface == pattern->surface_step &&
	       angle_near(period->step, pattern->base_step,
			  tolerance / (angle)(period->covers / period->p));
}

static int pattern_add(struct geom_build *b, const struct geom_sweep *s,
		       const struct period *period)
{
	uint32_t p = (uint32_t)period->p;
	struct geom *g = b->geom;
	struct geom_pattern *pattern;
	int err;

	err = grow(&g->patterns, &b->patterns_room, g->patterns_n, 1,
		   sizeof(*g->patterns));
	if (!err)
		err = grow(&g->parts, &b->parts_room, g->parts_n, p,
			   sizeof(*g->parts));
	if (err)
		return err;
	pattern = &g->patterns[g->patterns_n++];
	*pattern = (struct geom_pattern){ .part = g->parts_n, .parts = p };
	if (period->covers > p) {
		pattern->cylinder_step = s[p].cylinder - s[0].cylinder;
		pattern->surface_step = s[p].surface - s[0].surface;
		pattern->base_step = period->step;
	}
	for (uint32_t i = 0; i < p; i++) {
		struct geom_part *part = &g->parts[g->parts_n++];

		part->sweep = s[i];
		part->sweep.cylinder -= s[0].cylinder;
		part->sweep.surface -= s[0].surface;
		part->sweep.base -= s[0].base;
		part->first_track = pattern->tracks;
		part->first_lbn = pattern->sectors;
		pattern->tracks += s[i].count;
		pattern->sectors += (uint64_t)s[i].count * s[i].sectors;
	}
	return 0;
}

/* Finds a pattern to share or adds one; *r is the part to begin with. */
static int pattern_get(struct geom_build *b, const struct geom_sweep *s,
		       const struct period *period, uint32_t *pattern,
		       uint32_t *r)
{
	struct geom *g = b->geom;
	uint32_t tries = g->patterns_n < SHARE_MAX ? g->patterns_n : SHARE_MAX;

	for (uint32_t i = 1; i <= tries; i++) {
		*pattern = g->patterns_n - i;
		if (g->patterns[*pattern].parts != period->p)
			continue;
		for (*r = 0; *r < period->p; (*r)++) {
			if (pattern_matches(g, &g->patterns[*pattern], *r, s,
					    period, b->tolerance))
				return 0;
		}
	}
	*pattern = g->patterns_n;
	*r = 0;
	return pattern_add(b, s, period);
}

/* ---- Going on with a run ---- */

void geom_run_after(const struct geom *g, const struct geom_run *run,
		    uint64_t ahead, struct geom_run *out)
{
	const struct geom_pattern *p = &g->patterns[run->pattern];
	uint64_t phase = run->phase + run->count + ahead;
	uint64_t periods = phase / p->tracks;

	*out = *run;
	out->count = 0;
	out->phase = phase % p->tracks;
	/* Unsigned, because a record may hold any numbers. */
	out->cylinder = (int64_t)((uint64_t)out->cylinder +
				  periods * (uint64_t)p->cylinder_step);
	out->surface = (int32_t)((uint32_t)out->surface +
				 (uint32_t)periods *
					 (uint32_t)p->surface_step);
	out->base += (angle)periods * p->base_step;
}

/* Tracks of one sweep of a run's pattern, from the run's i-th track on. */
static uint32_t run_sweep_at(const struct geom *g, const struct geom_run *run,
			     uint64_t i, struct geom_sweep *out)
{
	const struct geom_pattern *p = &g->patterns[run->pattern];
	const struct geom_part *part = g->parts + p->part;
	uint64_t track = run->phase + i;
	int64_t periods = (int64_t)(track / p->tracks);
	uint32_t lo = 0, hi = p->parts, mid, in;

	track %= p->tracks;
	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (part[mid].first_track <= track)
			lo = mid;
		else
			hi = mid;
	}
	in = (uint32_t)(track - part[lo].first_track);
	*out = part[lo].sweep;
	out->count -= in;
	out->cylinder += run->cylinder + periods * p->cylinder_step +
			 (int64_t)in * out->cylinder_step;
	out->surface += run->surface + (int32_t)periods * p->surface_step +
			(int32_t)in * out->surface_step;
	out->base += run->base + (angle)periods * p->base_step +
		     in * out->base_step;
	return out->count;
}

/* Drops the first i tracks of a sweep. */
static void sweep_from(struct geom_sweep *s, uint32_t i)
{
	s->count -= i;
	s->cylinder += (int64_t)i * s->cylinder_step;
	s->surface += (int32_t)i * s->surface_step;
	s->base += i * s->base_step;
}

/* Do both begin with the same track? */
static bool sweeps_meet(const struct geom_sweep *a, const struct geom_sweep *b,
			angle tolerance)
{
	return a->cylinder == b->cylinder && a->surface == b->surface &&
	       a->sectors == b->sectors && a->around == b->around &&
	       a->known == b->known && angle_near(a->base, b->base, tolerance);
}

/* Number of tracks of the sweeps that a run which goes on would have. */
static uint64_t run_follows(const struct geom_build *b,
			    const struct geom_run *run,
			    const struct geom_sweep *s, size_t left)
{
	struct geom_sweep here = *s, there;
	uint64_t n = 0;
	uint32_t both;

	while (left) {
		run_sweep_at(b->geom, run, n, &there);
		if (!sweeps_meet(&here, &there, b->tolerance))
			return n;
		both = here.count < there.count ? here.count : there.count;
		if (both > 1 && (here.cylinder_step != there.cylinder_step ||
				 here.surface_step != there.surface_step ||
				 !angle_near(here.base_step, there.base_step,
					     b->tolerance / both)))
			return n + 1;
		n += both;
		sweep_from(&here, both);
		if (!here.count && --left)
			here = *++s;
	}
	return n;
}

/*
 * Looks for one of the last runs that goes on at `s`, behind tracks that are
 * missing (slipped) or different. *begin: how it then begins, with its count;
 * the count is 0 if there is none.
 */
static void run_resume(const struct geom_build *b, const struct geom_sweep *s,
		       size_t left, struct geom_run *best)
{
	const struct geom *g = b->geom;
	struct geom_run run;
	struct geom_sweep there;
	uint64_t since = 0, ahead;
	uint32_t i;

	best->count = 0;
	for (i = 1; i <= RESUME_RUNS && i <= g->runs_n; i++) {
		const struct geom_run *r = &g->runs[g->runs_n - i];

		for (ahead = 0; ahead <= since + RESUME_SKIP; ahead++) {
			geom_run_after(g, r, ahead, &run);
			run_sweep_at(g, &run, 0, &there);
			if (!sweeps_meet(s, &there, b->tolerance))
				continue;
			run.count = run_follows(b, &run, s, left);
			if (run.count > best->count)
				*best = run;
			break;
		}
		since += r->count < RESUME_SKIP ? r->count : RESUME_SKIP;
	}
}

static int run_push(struct geom_build *b, const struct geom_run *run)
{
	struct geom *g = b->geom;
	int err = grow(&g->runs, &b->runs_room, g->runs_n, 1, sizeof(*run));

	if (!err)
		g->runs[g->runs_n++] = *run;
	return err;
}

/* Moves past the tracks that a run has taken; a sweep is cut where the run
 * ends. */
static void sweeps_pass(struct geom_sweep **s, size_t *left, uint64_t tracks)
{
	while (tracks && tracks >= (*s)->count) {
		tracks -= (*s)->count;
		++*s;
		--*left;
	}
	if (tracks)
		sweep_from(*s, (uint32_t)tracks);
}

static uint64_t period_tracks(const struct geom_sweep *s,
			      const struct period *period)
{
	uint64_t n = 0;

	for (size_t i = 0; i < period->covers; i++)
		n += s[i].count;
	return n;
}

static int run_add(struct geom_build *b, const struct geom_sweep *s,
		   const struct period *period)
{
	struct geom *g = b->geom;
	const struct geom_part *part;
	struct geom_run run = { 0 };
	uint32_t r;
	int err;

	err = pattern_get(b, s, period, &run.pattern, &r);
	if (err)
		return err;
	part = &g->parts[g->patterns[run.pattern].part + r];
	run.phase = part->first_track;
	run.cylinder = s->cylinder - part->sweep.cylinder;
	run.surface = s->surface - part->sweep.surface;
	run.base = s->base - part->sweep.base;
	run.count = period_tracks(s, period);
	return run_push(b, &run);
}

/* Is `next` the rest of a sweep in which tracks are missing? Then `last` is
 * extended to its end. */
static bool sweep_bridges(struct geom_sweep *last,
			  const struct geom_sweep *next, angle tolerance)
{
	const struct geom_sweep *s = last->count > 1 ? last : next;
	int64_t step = s->cylinder_step, far = next->cylinder - last->cylinder;

	if (s->count == 1 || s->surface_step || !step || far % step ||
	    last->surface != next->surface || last->sectors != next->sectors ||
	    last->around != next->around || last->known != next->known)
		return false;
	if (next->count > 1 &&
	    (next->cylinder_step != step ||
	     !angle_near(next->base_step, s->base_step, tolerance)))
		return false;
	far /= step;
	if (far <= last->count ||
	    far > last->count + (int64_t)BRIDGE_TRACKS_MAX ||
	    !angle_near(next->base, last->base + (angle)far * s->base_step,
			tolerance))
		return false;
	last->cylinder_step = s->cylinder_step;
	last->surface_step = s->surface_step;
	last->base_step = s->base_step;
	last->count = (uint32_t)far + next->count;
	return true;
}

/* The period of the first sweeps when missing tracks are bridged; the joined
 * sweeps are put into `bridged`. */
static struct period bridged_period(const struct geom_sweep *s, size_t left,
				    angle tolerance, struct geom_sweep *bridged)
{
	size_t n = 0;

	for (; left && n < BRIDGED_SWEEPS_MAX; s++, left--)
		if (!n || !sweep_bridges(&bridged[n - 1], s, tolerance))
			bridged[n++] = *s;
	return find_period(bridged, n, tolerance);
}

/* Begins a run by the period that is found, bridged if need be. */
static int run_begin(struct geom_build *b, const struct geom_sweep *s,
		     size_t left, struct geom_run *again)
{
	struct geom_sweep bridged[BRIDGED_SWEEPS_MAX];
	struct period period = find_period(s, left, b->tolerance), would;
	struct geom_run *run;
	int err;

	if (again->count > period_tracks(s, &period) / 2)
		return run_push(b, again);
	if (period.covers >= 2 * period.p)
		return run_add(b, s, &period);
	would = bridged_period(s, left, b->tolerance, bridged);
	if (would.covers < 2 * would.p)
		return run_add(b, s, &period);
	err = run_add(b, bridged, &would);
	if (err)
		return err;
	run = &b->geom->runs[b->geom->runs_n - 1];
	run->count = run_follows(b, run, s, left);
	return 0;
}

/* Takes the next run: an earlier one that goes on, or a new period. */
static int run_next(struct geom_build *b, struct geom_sweep **s, size_t *left)
{
	struct geom_run again;
	int err;

	run_resume(b, *s, *left, &again);
	if (again.count &&
	    again.count >= b->geom->patterns[again.pattern].tracks)
		err = run_push(b, &again);
	else
		err = run_begin(b, *s, *left, &again);
	if (!err)
		sweeps_pass(s, left,
			    b->geom->runs[b->geom->runs_n - 1].count);
	return err;
}

void geom_build_pause(struct geom_build *build, void (*pause)(void *arg),
		      void *arg)
{
	build->pause = pause;
	build->pause_arg = arg;
}

int geom_build_finish(struct geom_build *build, struct geom **geom)
{
	struct geom_sweep *s = build->sweeps;
	size_t left = build->sweeps_n, paused = left;
	int err;

	while (left) {
		err = run_next(build, &s, &left);
		if (err)
			return err;
		if (build->pause && paused - left >= PAUSE_SWEEPS) {
			build->pause(build->pause_arg);
			paused = left;
		}
	}
	if (geom_build_verify(build->geom))
		return -EINVAL;
	*geom = build->geom;
	build->geom = NULL;
	return 0;
}

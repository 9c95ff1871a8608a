/*
 * geom_verify.c - does a geometry have all properties that lookups rely on?
 *
 * Records come from a disk and tables from a user, so nothing is trusted: every
 * track of every run must have a cylinder and a surface in range, every slip
 * must lie on its track and leave room for its LBNs. Members that follow from
 * others are computed here, for makers and records alike.
 *
 * Places in a run are linear in the period, so its first and its last period
 * bound all of them.
 */
#include "diskmodel/geom_build.h"

static const char *pattern_derive(struct geom *g, struct geom_pattern *p)
{
	struct geom_part *part = g->parts + p->part;

	if (!p->parts || p->part > g->parts_n ||
	    p->parts > g->parts_n - p->part)
		return "a pattern without parts";
	p->tracks = p->sectors = 0;
	for (uint32_t i = 0; i < p->parts; i++) {
		const struct geom_sweep *s = &part[i].sweep;

		if (!s->count || s->count > GEOM_MAX_CYLINDERS)
			return "a sweep of no or too many tracks";
		if (!s->sectors || s->sectors > s->around ||
		    s->around > GEOM_MAX_TRACK_SECTORS)
			return "a track of no or too many sectors";
		part[i].first_track = p->tracks;
		part[i].first_lbn = p->sectors;
		p->tracks += s->count;
		p->sectors += (uint64_t)s->count * s->sectors;
		if (p->sectors > GEOM_MAX_SECTORS)
			return "a pattern of too many sectors";
		if (s->known)
			g->known = true;
	}
	return NULL;
}

/* Are both ends of start + periods * step + offset + [0, last] * inner in
 * [0, end)? */
static bool line_fits(int64_t start, int64_t periods, int64_t step,
		      int64_t offset, int64_t last, int64_t inner, int64_t end)
{
	int64_t v;

	if (__builtin_mul_overflow(periods, step, &v) ||
	    __builtin_add_overflow(v, start, &v) ||
	    __builtin_add_overflow(v, offset, &v) || v < 0 || v >= end)
		return false;
	v += last * inner;
	return v >= 0 && v < end;
}

/* Is a part of a pattern in range in one period? */
static bool place_fits(const struct geom_run *run,
		       const struct geom_pattern *p,
		       const struct geom_sweep *s, int64_t period)
{
	int64_t last = (int64_t)s->count - 1;

	return line_fits(run->cylinder, period, p->cylinder_step, s->cylinder,
			 last, s->cylinder_step, GEOM_MAX_CYLINDERS) &&
	       line_fits(run->surface, period, p->surface_step, s->surface,
			 last, s->surface_step, GEOM_MAX_SURFACES);
}

/*
 * A part need not fit in the periods that the run does not reach: before its
 * phase in the first, after its end in the last.
 */
static bool part_fits(const struct geom_run *run, const struct geom_pattern *p,
		      const struct geom_part *part)
{
	uint64_t end = run->phase + run->count;
	uint64_t last = part->first_track + part->sweep.count;
	int64_t from = last <= run->phase ? 1 : 0;
	int64_t to;

	if (end <= part->first_track + (uint64_t)from * p->tracks)
		return true;
	to = (int64_t)((end - 1 - part->first_track) / p->tracks);
	return place_fits(run, p, &part->sweep, from) &&
	       place_fits(run, p, &part->sweep, to);
}

static uint64_t lbns_until(const struct geom *g, const struct geom_pattern *p,
			   uint64_t tracks)
{
	const struct geom_part *part = g->parts + p->part;
	uint64_t rest = tracks % p->tracks;
	uint32_t i = p->parts - 1;

	while (part[i].first_track > rest)
		i--;
	return tracks / p->tracks * p->sectors + part[i].first_lbn +
	       (rest - part[i].first_track) * part[i].sweep.sectors;
}

static const char *run_derive(struct geom *g, struct geom_run *run)
{
	const struct geom_pattern *p;

	if (run->pattern >= g->patterns_n)
		return "a run without a pattern";
	p = &g->patterns[run->pattern];
	if (!run->count || run->count > GEOM_MAX_SECTORS)
		return "a run of no or too many tracks";
	if (run->phase >= p->tracks)
		return "a run that begins past its pattern";
	if ((run->phase + run->count) / p->tracks >
	    GEOM_MAX_SECTORS / p->sectors)
		return "a run of too many sectors";
	for (uint32_t i = 0; i < p->parts; i++) {
		if (!part_fits(run, p, &g->parts[p->part + i]))
			return "a cylinder or surface out of range";
	}
	run->first_track = g->tracks;
	run->first_lbn = g->sectors;
	run->phase_lbn = lbns_until(g, p, run->phase);
	g->tracks += run->count;
	g->sectors += lbns_until(g, p, run->phase + run->count) -
		      run->phase_lbn;
	if (g->sectors > GEOM_MAX_SECTORS)
		return "too many sectors";
	return NULL;
}

/* The sweep of a track, and its first virtual LBN. */
static const struct geom_sweep *sweep_of(const struct geom *g, uint64_t track,
					 uint64_t *lbn)
{
	uint32_t lo = 0, hi = g->runs_n;
	const struct geom_pattern *p;
	const struct geom_run *run;
	uint32_t i;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (g->runs[mid].first_track <= track)
			lo = mid;
		else
			hi = mid;
	}
	run = &g->runs[lo];
	p = &g->patterns[run->pattern];
	track = track - run->first_track + run->phase;
	*lbn = run->first_lbn + lbns_until(g, p, track) - run->phase_lbn;
	track %= p->tracks;
	for (i = p->parts - 1; g->parts[p->part + i].first_track > track;)
		i--;
	return &g->parts[p->part + i].sweep;
}

static const char *odds_derive(struct geom *g)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < g->odds_n; i++) {
		struct geom_odd *odd = &g->odds[i];
		const struct geom_sweep *sweep;
		int64_t sectors;

		if (odd->track >= g->tracks ||
		    (i && odd->track <= odd[-1].track))
			return "odd tracks out of order";
		sweep = sweep_of(g, odd->track, &odd->first_lbn);
		sectors = (int64_t)sweep->sectors + odd->more;
		if (sectors < 1 || sectors > sweep->around)
			return "an odd track of no or too many sectors";
		odd->sectors = (uint32_t)sectors;
		odd->first_lbn += (uint64_t)sum;
		odd->before = sum;
		sum += odd->more;
	}
	g->sectors += (uint64_t)sum;
	return NULL;
}

/* LBNs that a track has more than its sweep says; *odd moves forward over the
 * list. */
static int32_t more_of(const struct geom *g, uint64_t track, uint32_t *odd)
{
	while (*odd < g->odds_n && g->odds[*odd].track < track)
		++*odd;
	return *odd < g->odds_n && g->odds[*odd].track == track ?
		g->odds[*odd].more : 0;
}

static const char *slips_verify(const struct geom *g)
{
	uint64_t lost = 0, lbn;
	uint32_t odd = 0;

	for (uint32_t i = 0; i < g->slips_n; i++) {
		const struct geom_slip *s = &g->slips[i];
		const struct geom_slip *prev = i ? s - 1 : NULL;
		const struct geom_sweep *sweep;

		if (s->track >= g->tracks)
			return "a slip on a track that is not there";
		sweep = sweep_of(g, s->track, &lbn);
		if (!s->n || s->at >= sweep->around ||
		    s->n > sweep->around - s->at)
			return "a slip past the end of its track";
		if (prev && (prev->track > s->track ||
			  (prev->track == s->track &&
			   prev->at + prev->n > s->at)))
			return "slips out of order";
		lost = prev && prev->track == s->track ? lost + s->n : s->n;
		if ((int64_t)(sweep->sectors + lost) +
		    more_of(g, s->track, &odd) > (int64_t)sweep->around)
			return "slips that leave no room for the track's LBNs";
	}
	return NULL;
}

static const char *remaps_verify(const struct geom *g)
{
	for (uint32_t i = 0; i < g->remaps_n; i++) {
		const struct geom_remap *r = &g->remaps[i];
		const struct geom_remap *prev = i ? r - 1 : NULL;

		if (!r->n || r->lbn >= g->sectors ||
		    r->n > g->sectors - r->lbn)
			return "a remap of LBNs that are not there";
		if (prev && prev->lbn + prev->n > r->lbn)
			return "remaps out of order";
		if (r->cylinder >= GEOM_MAX_CYLINDERS ||
		    r->surface >= GEOM_MAX_SURFACES)
			return "a remap to a place out of range";
		if (r->around > GEOM_MAX_TRACK_SECTORS ||
		    r->sector >= r->around || r->n > r->around - r->sector)
			return "a remap past the end of its track";
	}
	return NULL;
}

const char *geom_build_verify(struct geom *geom)
{
	const char *why;

	geom->tracks = geom->sectors = 0;
	geom->known = false;
	if (!geom->runs_n)
		return "no tracks";
	for (uint32_t i = 0; i < geom->patterns_n; i++) {
		why = pattern_derive(geom, &geom->patterns[i]);
		if (why)
			return why;
	}
	for (uint32_t i = 0; i < geom->runs_n; i++) {
		why = run_derive(geom, &geom->runs[i]);
		if (why)
			return why;
	}
	why = odds_derive(geom);
	if (!why)
		why = slips_verify(geom);
	return why ? why : remaps_verify(geom);
}

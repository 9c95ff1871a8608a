/*
 * geom.c - looking things up in a geometry.
 *
 * LBN or track number -> run (binary search) -> period (division) -> part of
 * the pattern (binary search) -> track (division). Slips of the track are found
 * by binary search in the one list of them.
 *
 * Runs and patterns count in virtual LBNs, as if there were no odd tracks. The
 * sum of the LBNs that odd tracks have more or less converts one to the other.
 *
 * Physical positions: sector p of a track that has `around` sectors begins at
 * base + p / around. The k-th LBN of the track is at position k plus the
 * slipped sectors before it.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diskmodel/geom_build.h"

/* A track, with members that geom_track leaves out. */
struct found {
	struct geom_track track;
	angle base;
	uint32_t around;
	uint32_t slip, slips;	/* range [slip, slip + slips) of its slips */
};

void geom_free(struct geom *geom)
{
	if (!geom)
		return;
	free(geom->parts);
	free(geom->patterns);
	free(geom->runs);
	free(geom->odds);
	free(geom->slips);
	free(geom->remaps);
	free(geom);
}

static void *copy_array(const void *from, uint32_t n, size_t each, bool *bad)
{
	void *to = malloc((n ? n : 1) * each);

	if (!to)
		*bad = true;
	else if (n)
		memcpy(to, from, n * each);
	return to;
}

int geom_copy(const struct geom *geom, struct geom **copy)
{
	struct geom *g = malloc(sizeof(*g));
	uint32_t parts = geom->parts_n;
	bool bad = false;

	if (!g)
		return -ENOMEM;
	*g = *geom;
	g->parts = copy_array(geom->parts, parts, sizeof(*g->parts), &bad);
	g->patterns = copy_array(geom->patterns, geom->patterns_n,
				 sizeof(*g->patterns), &bad);
	g->runs = copy_array(geom->runs, geom->runs_n, sizeof(*g->runs), &bad);
	g->odds = copy_array(geom->odds, geom->odds_n, sizeof(*g->odds), &bad);
	g->slips = copy_array(geom->slips, geom->slips_n, sizeof(*g->slips),
			      &bad);
	g->remaps = copy_array(geom->remaps, geom->remaps_n,
			       sizeof(*g->remaps), &bad);
	if (bad) {
		geom_free(g);
		return -ENOMEM;
	}
	*copy = g;
	return 0;
}

uint64_t geom_sectors(const struct geom *geom)
{
	return geom->sectors;
}

uint64_t geom_tracks(const struct geom *geom)
{
	return geom->tracks;
}

bool geom_known(const struct geom *geom)
{
	return geom->known;
}

/* Known sectors of the first `tracks` tracks of a pattern that repeats for
 * ever. */
static uint64_t known_within(const struct geom *geom,
			     const struct geom_pattern *pattern,
			     uint64_t tracks)
{
	const struct geom_part *part = geom->parts + pattern->part;
	uint64_t rest = tracks % pattern->tracks, one = 0, last = 0;

	for (uint32_t i = 0; i < pattern->parts; i++) {
		const struct geom_sweep *s = &part[i].sweep;
		uint64_t n = s->count;

		if (!s->known)
			continue;
		one += n * s->sectors;
		if (part[i].first_track >= rest)
			continue;
		if (n > rest - part[i].first_track)
			n = rest - part[i].first_track;
		last += n * s->sectors;
	}
	return tracks / pattern->tracks * one + last;
}

uint64_t geom_known_sectors(const struct geom *geom)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < geom->runs_n; i++) {
		const struct geom_run *r = &geom->runs[i];
		const struct geom_pattern *p = &geom->patterns[r->pattern];

		sum += known_within(geom, p, r->phase + r->count) -
		       known_within(geom, p, r->phase);
	}
	for (uint32_t i = 0; i < geom->odds_n; i++) {
		struct geom_track t;

		geom_track_at(geom, geom->odds[i].track, &t);
		if (t.known)
			sum += (uint64_t)geom->odds[i].more;
	}
	return sum;
}

uint64_t geom_period_ns(const struct geom *geom)
{
	return geom->period_ns;
}

static angle angle_of(uint64_t position, uint32_t around)
{
	return (angle)((position << 32) / around);
}

/* First odd track at or after a track. */
static uint32_t odd_lower(const struct geom *geom, uint64_t track)
{
	uint32_t lo = 0, hi = geom->odds_n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (geom->odds[mid].track < track)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int32_t geom_more(const struct geom *geom, uint64_t track)
{
	uint32_t i = odd_lower(geom, track);

	return i < geom->odds_n && geom->odds[i].track == track ?
		       geom->odds[i].more : 0;
}

/* Number of odd tracks that begin at or before an LBN. */
static uint32_t odds_until(const struct geom *geom, uint64_t lbn)
{
	uint32_t lo = 0, hi = geom->odds_n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (geom->odds[mid].first_lbn <= lbn)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* First slip on or after a track. */
static uint32_t slip_lower(const struct geom *geom, uint64_t track)
{
	uint32_t lo = 0, hi = geom->slips_n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (geom->slips[mid].track < track)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Position of the k-th LBN of a track. */
static uint32_t position_of(const struct geom *geom, const struct found *f,
			    uint32_t k)
{
	for (uint32_t i = 0; i < f->slips; i++) {
		const struct geom_slip *s = &geom->slips[f->slip + i];

		if (s->at > k)
			break;
		k += s->n;
	}
	return k;
}

/* The inverse: number of LBNs that lie before a position. */
static uint32_t lbns_before(const struct geom *geom, const struct found *f,
			    uint32_t position)
{
	uint32_t gone = 0;

	for (uint32_t i = 0; i < f->slips; i++) {
		const struct geom_slip *s = &geom->slips[f->slip + i];

		if (s->at >= position)
			break;
		gone += position - s->at < s->n ? position - s->at : s->n;
	}
	return position - gone;
}

/* Corrects a track for the odd tracks before it, and for being odd itself. */
static void apply_odds(const struct geom *geom, struct geom_track *t)
{
	uint32_t i = odd_lower(geom, t->index);
	const struct geom_odd *odd = geom->odds + i;

	if (i < geom->odds_n && odd->track == t->index) {
		t->sectors = odd->sectors;
		t->first = odd->first_lbn;
	} else if (i) {
		t->first += (uint64_t)(odd[-1].before + odd[-1].more);
	}
}

/* The track that is `inside` tracks into a part, `period` periods on. */
static void fill(const struct geom *geom, const struct geom_run *run,
		 const struct geom_part *part, uint64_t period,
		 uint64_t inside, struct found *f)
{
	const struct geom_pattern *pattern = &geom->patterns[run->pattern];
	const struct geom_sweep *s = &part->sweep;
	uint64_t track = period * pattern->tracks + part->first_track + inside;
	uint64_t lbn = period * pattern->sectors + part->first_lbn +
		       inside * s->sectors;
	struct geom_track *t = &f->track;

	t->index = run->first_track + track - run->phase;
	t->first = run->first_lbn + lbn - run->phase_lbn;
	t->sectors = s->sectors;
	t->cylinder = (uint32_t)(run->cylinder +
				 (int64_t)period * pattern->cylinder_step +
				 s->cylinder +
				 (int64_t)inside * s->cylinder_step);
	t->surface = (uint32_t)(run->surface +
				(int64_t)period * pattern->surface_step +
				s->surface +
				(int64_t)inside * s->surface_step);
	t->known = s->known;
	apply_odds(geom, t);
	f->base = run->base + (angle)period * pattern->base_step + s->base +
		  (angle)inside * s->base_step;
	f->around = s->around;
	f->slip = slip_lower(geom, t->index);
	f->slips = 0;
	while (f->slip + f->slips < geom->slips_n &&
	       geom->slips[f->slip + f->slips].track == t->index)
		f->slips++;
	t->start = f->base + angle_of(position_of(geom, f, 0), f->around);
	t->per_sector = t->known ? angle_of(1, f->around) : 0;
}

static void find_virtual(const struct geom *geom, uint64_t lbn, struct found *f)
{
	uint32_t lo = 0, hi = geom->runs_n;
	const struct geom_run *run;
	const struct geom_pattern *pattern;
	const struct geom_part *part;
	uint64_t off;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (geom->runs[mid].first_lbn <= lbn)
			lo = mid;
		else
			hi = mid;
	}
	run = &geom->runs[lo];
	pattern = &geom->patterns[run->pattern];
	off = lbn - run->first_lbn + run->phase_lbn;
	part = &geom->parts[pattern->part];
	lo = 0;
	hi = pattern->parts;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (part[mid].first_lbn <= off % pattern->sectors)
			lo = mid;
		else
			hi = mid;
	}
	part += lo;
	fill(geom, run, part, off / pattern->sectors,
	     (off % pattern->sectors - part->first_lbn) / part->sweep.sectors,
	     f);
}

static void find_track(const struct geom *geom, uint64_t index,
		       struct found *f)
{
	uint32_t lo = 0, hi = geom->runs_n;
	const struct geom_run *run;
	const struct geom_pattern *pattern;
	const struct geom_part *part;
	uint64_t off;

	assert(index < geom->tracks);
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (geom->runs[mid].first_track <= index)
			lo = mid;
		else
			hi = mid;
	}
	run = &geom->runs[lo];
	pattern = &geom->patterns[run->pattern];
	off = index - run->first_track + run->phase;
	part = &geom->parts[pattern->part];
	lo = 0;
	hi = pattern->parts;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (part[mid].first_track <= off % pattern->tracks)
			lo = mid;
		else
			hi = mid;
	}
	part += lo;
	fill(geom, run, part, off / pattern->tracks,
	     off % pattern->tracks - part->first_track, f);
}

static void find_lbn(const struct geom *geom, uint64_t lbn, struct found *f)
{
	uint32_t n = odds_until(geom, lbn);
	const struct geom_odd *odd = geom->odds + n;

	assert(lbn < geom->sectors);
	if (!n) {
		find_virtual(geom, lbn, f);
		return;
	}
	odd--;
	if (lbn < odd->first_lbn + odd->sectors)
		find_track(geom, odd->track, f);
	else
		find_virtual(geom, lbn - (uint64_t)(odd->before + odd->more),
			     f);
}

void geom_track_of(const struct geom *geom, uint64_t lbn,
		   struct geom_track *out)
{
	struct found f;

	find_lbn(geom, lbn, &f);
	*out = f.track;
}

void geom_track_at(const struct geom *geom, uint64_t index,
		   struct geom_track *out)
{
	struct found f;

	find_track(geom, index, &f);
	*out = f.track;
}

static void bounds_add(struct geom_bounds *out, int64_t cylinder,
		       uint32_t around)
{
	if (cylinder < out->low)
		out->low = (uint32_t)cylinder;
	if (cylinder > out->high)
		out->high = (uint32_t)cylinder;
	if (around > out->around)
		out->around = around;
	if (around < out->least)
		out->least = around;
}

/* Tracks of a run from `off` into its pattern on, at most n, as far as their
 * sweep goes.  Returns how many. */
static uint64_t bounds_sweep(const struct geom *geom,
			     const struct geom_run *run, uint64_t off,
			     uint64_t n, struct geom_bounds *out)
{
	const struct geom_pattern *pattern = &geom->patterns[run->pattern];
	const struct geom_part *part = &geom->parts[pattern->part];
	uint64_t period = off / pattern->tracks;
	uint64_t inside = off % pattern->tracks;
	uint32_t lo = 0, hi = pattern->parts;
	int64_t cylinder;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (part[mid].first_track <= inside)
			lo = mid;
		else
			hi = mid;
	}
	part += lo;
	inside -= part->first_track;
	if (n > part->sweep.count - inside)
		n = part->sweep.count - inside;
	cylinder = run->cylinder + (int64_t)period * pattern->cylinder_step +
		   part->sweep.cylinder +
		   (int64_t)inside * part->sweep.cylinder_step;
	bounds_add(out, cylinder, part->sweep.around);
	bounds_add(out, cylinder + (int64_t)(n - 1) *
				part->sweep.cylinder_step,
		   part->sweep.around);
	return n;
}

void geom_bounds_of(const struct geom *geom, uint64_t first, uint64_t n,
		    struct geom_bounds *out)
{
	uint32_t lo = 0, hi = geom->runs_n;
	uint64_t off, left;

	assert(n && first < geom->tracks && n <= geom->tracks - first);
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (geom->runs[mid].first_track <= first)
			lo = mid;
		else
			hi = mid;
	}
	*out = (struct geom_bounds){ .low = UINT32_MAX, .least = UINT32_MAX };
	for (; n; lo++) {
		const struct geom_run *run = &geom->runs[lo];

		off = first - run->first_track;
		left = run->count - off < n ? run->count - off : n;
		first += left;
		n -= left;
		for (off += run->phase; left;) {
			uint64_t done = bounds_sweep(geom, run, off, left, out);

			off += done;
			left -= done;
		}
	}
}

/* First remap that ends after an LBN. */
static uint32_t remap_lower(const struct geom *geom, uint64_t lbn)
{
	uint32_t lo = 0, hi = geom->remaps_n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (geom->remaps[mid].lbn + geom->remaps[mid].n <= lbn)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool geom_remap_next(const struct geom *geom, uint64_t lbn, uint64_t *first,
		     uint32_t *sectors)
{
	uint32_t i = remap_lower(geom, lbn);

	if (i == geom->remaps_n)
		return false;
	*first = geom->remaps[i].lbn;
	*sectors = geom->remaps[i].n;
	return true;
}

static bool place_remapped(const struct geom *geom, uint64_t lbn,
			   struct geom_place *out)
{
	uint32_t i = remap_lower(geom, lbn);
	const struct geom_remap *r = geom->remaps + i;

	if (i == geom->remaps_n || r->lbn > lbn)
		return false;
	out->cylinder = r->cylinder;
	out->surface = r->surface;
	out->sector = r->sector + (uint32_t)(lbn - r->lbn);
	out->start = r->start + angle_of(lbn - r->lbn, r->around);
	return true;
}

void geom_place_of(const struct geom *geom, uint64_t lbn,
		   struct geom_place *out)
{
	struct found f;

	if (place_remapped(geom, lbn, out))
		return;
	find_lbn(geom, lbn, &f);
	out->cylinder = f.track.cylinder;
	out->surface = f.track.surface;
	out->sector = position_of(geom, &f, (uint32_t)(lbn - f.track.first));
	out->start = f.track.known ?
		f.base + angle_of(out->sector, f.around) : 0;
}

uint64_t geom_lbn_at(const struct geom *geom, const struct geom_track *track,
		     angle at)
{
	struct found f;
	uint64_t position, k;

	find_track(geom, track->index, &f);
	if (!f.track.known)
		return f.track.first;
	position = ((uint64_t)(angle)(at - f.base) * f.around +
		    UINT32_MAX) >> 32;
	k = lbns_before(geom, &f, (uint32_t)position);
	return f.track.first + (k < f.track.sectors ? k : 0);
}

int geom_regular(uint64_t sectors, uint32_t track_sectors, struct geom **geom)
{
	struct geom_build *build;
	int err;

	build = geom_build_new(0, 0);
	if (!build)
		return -ENOMEM;
	err = geom_build_pseudo(build, sectors, track_sectors);
	if (!err)
		err = geom_build_finish(build, geom);
	geom_build_free(build);
	return err;
}

/*
 * bands.c - what explains most of what shows, and is so when it is asked for.
 *
 * Tracks of another size, and skews that come again, are marks.  For each
 * number of surfaces the disk is cut into bands by what explains most marks:
 * where a band begins is known, where it ends is tried at each mark that may be
 * its end; sweeps are all of one length then, and other marks must lie where
 * they begin.  A band at the end of a zone is shorter than others.  Then the
 * drive is asked, from the most surfaces on, as bands that are too short lie
 * in one another: what lies in one cylinder must be near, what does not must
 * not.
 */
#include "extract/surface/bands.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/sort.h"
#include "diskmodel/geom_build.h"

#define SURFACES_MOST 24u
/* Tracks of which one shows that a change of size is but a defect. */
#define CHANGE_LASTS 3u
/* Tracks that may be missing of a sweep: slipped as a whole, spares; and of
 * short ones, this part. */
#define LACKING 5.0
#define LACKING_PART 6.0
#define EACH_LEAST 4.0
#define GROUP_LEAST 8.0
/* Ends that are tried. */
#define MARKS_AHEAD 20u
/* What it counts for that a mark ends it, and that it is like the one before;
 * against it, that it is not quite there, that another size or another skew is
 * not explained, or no mark there. */
#define WORTH_END 1.5
#define WORTH_ALIKE 1.0
#define WORTH_EXACT 0.5
#define STRANGE_SIZE 2.0
#define STRANGE_SKEW 0.7
#define MISSING 0.5
#define ALIKE 1.6
#define SHORT 9.0
/* Of all tracks, those in bands that are clear. */
#define CLEAR 0.8
/* Parts of a sweep that are near, and that do not matter. */
#define REACH 6
#define EDGE_REACH 3
#define STRAY 40
#define PICKS 64u
#define CHOOSE_PAIRS 8u
/* Of all that was asked, what agreed. */
#define ALL_LEAST 0.88
#define SEEKS_PPM 990000u

/* Which way sweeps run: all the same, or the first one so and by turns. */
enum sweep_way { WAY_IN, WAY_OUT, WAY_TURNS_IN, WAY_TURNS_OUT };

/* Tracks are counted as they lie; what is unknown has as many as would fit. */
struct band_mark {
	uint64_t track;
	double at;
	bool cut, sized;	/* a mark; its tracks are of another size */
};

struct band {
	double at, each;	/* where it begins; tracks of a sweep */
	uint32_t cylinder;
	bool clear;		/* all that shows says so */
};

struct bands {
	struct near *near;
	/* Marks, and where what is unknown begins and ends; the last one is
	 * the disk's end. */
	struct band_mark *mark;
	size_t marks, marks_room;
	/* What is believed: */
	uint32_t surfaces;
	bool inside;		/* where sweeps begin shows, not only bands */
	enum sweep_way way;
	struct band *v;
	size_t n, room;
	double usual;		/* tracks of most sweeps */
};

/* ---- Marks ---- */

/* Do tracks of another size begin?  One or two among those of one size have
 * slips. */
static bool size_changes(const struct symbols *s, uint64_t i, uint32_t size)
{
	for (uint64_t k = i; k < i + CHANGE_LASTS && k < s->n; k++) {
		if (symbols_same_size(s->v[k].size, size))
			return false;
	}
	return s->v[i].size;
}

static int add_mark(struct bands *b, const struct band_mark *mark)
{
	int err = array_grow(&b->mark, &b->marks_room, b->marks,
			     sizeof(*mark));

	if (!err)
		b->mark[b->marks++] = *mark;
	return err;
}

/* Of the first known track. */
static uint32_t first_sectors(const struct bands *b)
{
	struct geom_track t;

	for (uint64_t i = 0; i < geom_tracks(b->near->geom); i++) {
		prober_pause(b->near->prober, i);
		geom_track_at(b->near->geom, i, &t);
		if (t.known)
			return t.sectors;
	}
	return 1;
}

static int make_marks(struct bands *b, const struct symbols *s)
{
	struct geom_track t, last = { .known = true,
				      .sectors = first_sectors(b) };
	struct band_mark m = { 0 };
	uint32_t size = 0;
	int err = 0;

	for (uint64_t i = 0; i < s->n && !err; i++) {
		prober_pause(b->near->prober, i);
		geom_track_at(b->near->geom, i, &t);
		m.track = i;
		m.sized = size_changes(s, i, size);
		m.cut = m.sized || (s->v[i].skew != SYMBOL_USUAL &&
				    s->v[i].skew != SYMBOL_ODD);
		size = m.sized ? s->v[i].size : size;
		if (!i || m.cut || t.known != last.known)
			err = add_mark(b, &m);
		m.at += t.known ? 1 : (double)t.sectors / last.sectors;
		t.sectors = t.known ? t.sectors : last.sectors;
		last = t;
	}
	m.track = s->n;
	m.cut = m.sized = true;
	return err ? err : add_mark(b, &m);
}

static double disk_end(const struct bands *b)
{
	return b->mark[b->marks - 1].at;
}

static uint64_t track_at(const struct bands *b, double at)
{
	size_t lo = 0, hi = b->marks - 1, mid;
	const struct band_mark *m;

	while (lo + 1 < hi) {
		mid = lo + (hi - lo) / 2;
		if (b->mark[mid].at <= at)
			lo = mid;
		else
			hi = mid;
	}
	m = &b->mark[lo];
	if (!(m[1].at > m->at) || at <= m->at)
		return m->track;
	at = fmin((at - m->at) / (m[1].at - m->at), 1);
	return m->track + (uint64_t)(at * (double)(m[1].track - m->track));
}

/* ---- Cutting ---- */

struct cutting {
	struct bands *b;
	size_t from;		/* of the marks, behind the band's beginning */
	double at, last;	/* sweeps of the last clear band */
	unsigned asked, failed;	/* ends of bands */
};

static double lacking(double each)
{
	return fmin(LACKING, 1 + each / LACKING_PART);
}

/* How well sweeps of that length explain the marks up to their end. */
static double score(const struct cutting *c, double each)
{
	const struct bands *b = c->b;
	double may = lacking(each), end = c->at + each * b->surfaces;
	double last = 0, k, explained = 0, strange = 0, ends = 0, off, sum = 0;

	for (size_t i = c->from; i < b->marks; i++) {
		const struct band_mark *m = &b->mark[i];

		if (!m->cut || m->at <= c->at + may)
			continue;
		if (m->at > end + may)
			break;
		k = floor((m->at - c->at) / each + 0.5);
		off = fabs(m->at - c->at - k * each);
		if (m->at >= end - may) {
			ends = WORTH_END - WORTH_EXACT * off / may;
			continue;
		}
		if (!b->inside || off > may) {
			strange += m->sized ? STRANGE_SIZE : STRANGE_SKEW;
		} else if (k > last) {
			explained++;
			sum += off;
		}
		last = k;
	}
	strange += WORTH_EXACT * sum / may;
	if (b->inside)
		strange += MISSING * (b->surfaces - 1 - explained);
	return explained - strange + ends;
}

/* The mark nearest to where a band ought to end. */
static double snap(const struct cutting *c, double end, double may)
{
	double best = end, off = may;

	for (size_t i = c->from; i < c->b->marks; i++) {
		const struct band_mark *m = &c->b->mark[i];

		if (m->at > end + may)
			break;
		if (m->cut && fabs(m->at - end) <= off) {
			off = fabs(m->at - end);
			best = m->at;
		}
	}
	return best;
}

static void try_each(const struct cutting *c, double each, double *best,
		     double *best_each)
{
	double s;

	if (each < EACH_LEAST ||
	    c->at + each * c->b->surfaces > disk_end(c->b) + LACKING)
		return;
	s = score(c, each) + (fabs(each - c->last) <= ALIKE ? WORTH_ALIKE : 0);
	if (s > *best) {
		*best = s;
		*best_each = each;
	}
}

/* How long sweeps are from here on, and how well that goes: as long as they
 * were, or some of them end at one of the next marks. */
static double find_each(const struct cutting *c, double *each)
{
	const struct bands *b = c->b;
	double best = -INFINITY;
	unsigned marks = 0;

	*each = 0;
	try_each(c, c->last, &best, each);
	/* All that shows, and nothing else? */
	if (best > (b->inside ? b->surfaces - 1 : 0) + WORTH_END)
		return best;
	for (size_t i = c->from; i < b->marks && marks < MARKS_AHEAD; i++) {
		if (!b->mark[i].cut)
			continue;
		marks++;
		for (uint32_t k = 1; k <= b->surfaces; k++)
			try_each(c, (b->mark[i].at - c->at) / k, &best, each);
	}
	return best;
}

static bool runs_in(enum sweep_way way, uint32_t sweep)
{
	switch (way) {
	case WAY_IN:
		return true;
	case WAY_OUT:
		return false;
	case WAY_TURNS_IN:
		return sweep % 2 == 0;
	default:
		return sweep % 2;
	}
}

/* Where a sweep is that goes on for so long; anywhere, if none does. */
static uint64_t place_for(void *arg, uint32_t tracks)
{
	const struct bands *b = arg;

	for (unsigned i = 0; i < PICKS; i++) {
		const struct band_mark *m = &b->mark[near_below(b->near,
							   b->marks - 1)];
		uint64_t length = m[1].track - m->track;

		if (length > tracks + tracks / 4)
			return m->track + near_below(b->near, length - tracks);
	}
	return near_below(b->near, geom_tracks(b->near->geom));
}

/* Where a part of a sweep is, counted from the outside. */
static uint64_t track_of(const struct bands *b, const struct band *v,
			 uint32_t sweep, double part)
{
	if (!runs_in(b->way, sweep))
		part = 1 - part;
	return track_at(b, v->at + v->each * sweep + (v->each - 1) * part);
}

/* From lo to hi. */
static double between(const struct bands *b, double lo, double hi)
{
	return lo + (hi - lo) * (double)near_below(b->near, 1000) / 1000;
}

/* Are a part of one sweep and a part of another near each other, as sweeps of
 * that band go? */
static int ask(struct bands *b, const struct band *v, uint64_t from,
	       uint64_t to, unsigned reach, int *answer)
{
	double ns;
	int err = near_limit(b->near, (uint32_t)fmax(1, v->each / reach),
			     place_for, b, &ns);

	*answer = 0;
	if (err || isnan(ns))
		return err;
	return near_ask(b->near, from, to, (uint32_t)(v->each / STRAY), ns,
			answer);
}

/* Is a sweep so many further on of the same band? */
static int same_band(struct bands *b, const struct band *v, uint32_t by,
		     int *yes)
{
	double part = between(b, 0.15, 0.85);

	return ask(b, v, track_of(b, v, 0, part), track_of(b, v, by, part),
		   REACH, yes);
}

/* Does a band end where it is believed to?  If not, after so many sweeps
 * another one begins. */
static int find_end(struct cutting *c, const struct band *v, uint32_t *sweeps)
{
	uint32_t lo = 0, hi = c->b->surfaces - 1, mid;
	int yes, err = same_band(c->b, v, hi, &yes);

	*sweeps = c->b->surfaces;
	c->asked++;
	if (err || yes >= 0)
		return err;
	c->failed++;
	while (hi - lo > 1 && !err && c->failed < c->asked) {
		mid = lo + (hi - lo) / 2;
		err = same_band(c->b, v, mid, &yes);
		*(yes > 0 ? &lo : &hi) = mid;
	}
	*sweeps = hi;
	return err;
}

/* Is it like the one before, that was right? */
static bool goes_on(const struct bands *b, double each)
{
	return b->n && b->v[b->n - 1].clear &&
	       fabs(b->v[b->n - 1].each - each) <= ALIKE;
}

static int cut_one(struct cutting *c)
{
	struct bands *b = c->b;
	struct band v = { .at = c->at };
	uint32_t sweeps = b->surfaces;
	double each;
	int err = array_grow(&b->v, &b->room, b->n, sizeof(*b->v));

	v.clear = find_each(c, &v.each) > 0;
	if (v.each <= 0)
		v.each = (disk_end(b) - c->at) / b->surfaces;
	each = v.each;
	/* Of short ones seeks tell little; what follows will show. */
	if (!err && v.clear && !goes_on(b, each) &&
	    each > fmax(SHORT, c->last / 4))
		err = find_end(c, &v, &sweeps);
	if (err)
		return err;
	if (sweeps < b->surfaces) {
		/* What is left of another one. */
		v.each *= (double)sweeps / b->surfaces;
		v.clear = false;
	} else if (v.clear && each > SHORT) {
		c->last = each;
	}
	if (b->n)
		v.cylinder = b->v[b->n - 1].cylinder +
			     (uint32_t)ceil(b->v[b->n - 1].each);
	b->v[b->n++] = v;
	c->at = snap(c, c->at + each * sweeps, lacking(each));
	return 0;
}

/* Sweeps of most tracks. */
static int find_usual(struct bands *b)
{
	double *v = calloc(b->n + 1, sizeof(*v)), all = 0, sum = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < b->n; i++) {
		v[i] = b->v[i].each;
		all += v[i];
	}
	qsort(v, b->n, sizeof(*v), sort_double_cmp);
	for (size_t i = 0; i < b->n && sum < all / 2; i++) {
		b->usual = v[i];
		sum += v[i];
	}
	free(v);
	return 0;
}

/* Wherever it is asked, it is wrong. */
static bool is_vain(const struct cutting *c)
{
	return c->failed && c->failed * 4 > c->asked * 3;
}

/* Is most of the disk clear? */
static bool is_clear(const struct bands *b)
{
	double sum = 0;

	for (size_t i = 0; i < b->n; i++)
		sum += b->v[i].clear ? b->v[i].each * b->surfaces : 0;
	return b->n && sum >= CLEAR * disk_end(b);
}

static int cut(struct bands *b)
{
	struct cutting c = { .b = b };
	int err = 0;

	b->n = 0;
	while (!err && c.at + EACH_LEAST * b->surfaces < disk_end(b)) {
		while (c.from < b->marks && b->mark[c.from].at <= c.at + 0.5)
			c.from++;
		err = cut_one(&c);
		if (is_vain(&c)) {
			b->n = 0;
			return err;
		}
		prober_pause_now(b->near->prober);
	}
	return err ? err : find_usual(b);
}

/* ---- Placing ---- */

struct band_placing {
	const struct bands *b;
	size_t band, mark;
};

static void place_one(void *arg, const struct geom_track *track,
		      struct geom_sweep *sweep)
{
	struct band_placing *p = arg;
	const struct bands *b = p->b;
	uint64_t n = track->index;
	const struct band_mark *m;
	double at, each;

	while (p->mark + 2 < b->marks && b->mark[p->mark + 1].track <= n)
		p->mark++;
	m = &b->mark[p->mark];
	at = m->at + (double)(n - m->track) * (m[1].at - m->at) /
			     (double)(m[1].track - m->track);
	while (p->band + 1 < b->n && b->v[p->band + 1].at <= at)
		p->band++;
	each = b->v[p->band].each;
	at = (at - b->v[p->band].at) / each;
	sweep->surface = (int32_t)fmin(at, b->surfaces - 1);
	at = fmin(at - sweep->surface, 1) * (each - 1);
	if (!runs_in(b->way, (uint32_t)sweep->surface))
		at = each - 1 - at;
	sweep->cylinder = b->v[p->band].cylinder + llrint(at);
}

static int place(const struct bands *b, struct geom **out)
{
	struct band_placing p = { .b = b };

	return geom_change(b->near->geom, &(struct geom_changer){
		.change = place_one, .arg = &p,
		.pause = prober_pause_now, .pause_arg = b->near->prober,
	}, out);
}

/* ---- Proof ---- */

/* Pairs that are asked for, the last kind after which way sweeps run has been
 * decided. */
enum pair {
	PAIR_SAME,		/* one cylinder, two sweeps of a band */
	PAIR_INSIDE,		/* one band, cylinders that are far apart */
	PAIR_NEXT,		/* the same place of the next band */
	PAIR_OPPOSITE,		/* as if it were the next sweep of one band */
	PAIR_EDGE,		/* where two bands meet */
	PAIRS
};

static const struct {
	int tries;
	double least;		/* how much more often than not */
} rows[PAIRS] = {
	[PAIR_SAME] = { 32, 0.7 },
	[PAIR_INSIDE] = { 24, 0.6 },
	[PAIR_NEXT] = { 16, 0.6 },
	[PAIR_OPPOSITE] = { 16, 0.6 },
	/* Angles are known worse there, and the way has been decided. */
	[PAIR_EDGE] = { 12, 0 },
};

/* A band of which enough shows and the next one, most likely a long one; where
 * there are none side by side it can't be proven. */
static const struct band *pick(const struct bands *b)
{
	for (unsigned i = 0; i < PICKS && b->n > 1; i++) {
		const struct band *v = &b->v[near_below(b->near, b->n - 1)];

		if (v->clear && v[1].clear && v->each >= GROUP_LEAST &&
		    v[1].each >= GROUP_LEAST &&
		    between(b, 0, b->usual) < v->each)
			return v;
	}
	return NULL;
}

/* 1: as it must be, -1: not, 0: can't be told. */
static int ask_pair(struct bands *b, enum pair pair, int *answer)
{
	const struct band *v = pick(b);
	uint32_t n = b->surfaces, a = (uint32_t)near_below(b->near, n), c;
	double at = between(b, 0.08, 0.92), to = at;
	int err;

	*answer = 0;
	if (!v)
		return 0;
	c = (a + 1 + (uint32_t)near_below(b->near, n - 1)) % n;
	if (pair == PAIR_EDGE) {
		at = between(b, 0.97, 1);
		to = between(b, 0, 0.03);
	} else if (pair == PAIR_INSIDE) {
		/* Where two or three sweeps would be taken for one: theirs. */
		static const double by[] = { 0.5, 0.667, 0 };

		at = between(b, 0.05, 0.28);
		to = by[near_below(b->near, 3)];
		to = to > 0 ? at + to : 1 - at;
	} else if (pair == PAIR_OPPOSITE) {
		at = between(b, 0.08, 0.36);
		to = 1 - at;
	}
	err = ask(b, v, track_of(b, v, a, at),
		  track_of(b, v + (pair > PAIR_INSIDE), c, to),
		  pair == PAIR_EDGE ? EDGE_REACH : REACH, answer);
	if (pair != PAIR_SAME && pair != PAIR_EDGE)
		*answer = -*answer;
	return err;
}

/* How much more often than not; stops when that can't be enough any more. */
static int vote(struct bands *b, enum pair pair, int tries, int *sum)
{
	int least = (int)ceil(rows[pair].least * tries), one, err = 0;

	*sum = 0;
	for (int i = 0; i < tries && !err && *sum + tries - i >= least; i++) {
		err = ask_pair(b, pair, &one);
		*sum += one;
	}
	return err;
}

/* Do the first sweeps run inwards or outwards? */
static int choose_way(struct bands *b)
{
	enum sweep_way in = b->way;
	int inwards, outwards = 0, err = vote(b, PAIR_EDGE, CHOOSE_PAIRS,
					      &inwards);

	b->way = in + 1;
	if (!err)
		err = vote(b, PAIR_EDGE, CHOOSE_PAIRS, &outwards);
	if (inwards >= outwards)
		b->way = in;
	return err;
}

/* Enough of each kind, agreeing less not? */
static int prove(struct bands *b, double *share)
{
	double sum = 0, all = 0;
	int yes, err = 0;

	*share = 0;
	for (enum pair i = 0; i < PAIRS && !err; i++) {
		if (i == PAIR_EDGE)
			err = choose_way(b);
		if (!err)
			err = vote(b, i, rows[i].tries, &yes);
		if (err || yes < rows[i].least * rows[i].tries)
			return err;
		sum += rows[i].tries + yes;
		all += 2 * rows[i].tries;
	}
	*share = !err && sum >= ALL_LEAST * all ? sum / all : 0;
	return err;
}

/* ---- All that may be ---- */

static int try_surfaces(struct bands *b, uint32_t surfaces, double *share)
{
	static const enum sweep_way ways[] = { WAY_IN, WAY_TURNS_IN };
	int err = 0;

	b->surfaces = surfaces;
	*share = 0;
	for (unsigned i = 0; i < 2 && !err && *share <= 0; i++) {
		b->way = ways[i];
		err = cut(b);
		if (!err && is_clear(b))
			err = prove(b, share);
	}
	return err;
}

static int find(struct bands *b, struct heads *heads, struct geom **out)
{
	double share = 0;
	int err = 0;

	for (unsigned i = 0; i < 2 && !err; i++) {
		b->inside = !i;
		for (uint32_t n = SURFACES_MOST;
		     n > 1 && !err && !*out && !near_late(b->near); n--) {
			err = try_surfaces(b, n, &share);
			if (!err && share > 0)
				err = place(b, out);
		}
	}
	if (*out)
		*heads = (struct heads){
			.order = HEADS_SERPENTINE, .surfaces = b->surfaces,
			.group = (uint32_t)lrint(b->usual),
			.confidence_ppm = (uint32_t)(SEEKS_PPM * share),
		};
	return err;
}

int bands_find(struct near *near, const struct symbols *symbols,
	       struct heads *heads, struct geom **out)
{
	struct bands b = { .near = near };
	int err = make_marks(&b, symbols);

	*out = NULL;
	if (!err)
		err = find(&b, heads, out);
	free(b.mark);
	free(b.v);
	return err;
}

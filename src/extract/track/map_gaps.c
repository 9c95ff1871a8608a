/*
 * map_gaps.c - what a map does not know between tracks that it knows.
 *
 * A gap is handed to gap_close with the tracks on both sides, once they are
 * certain.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/sort.h"
#include "extract/track/gap.h"
#include "extract/track/map_state.h"

/* Tracks of a gap that is closed as such; longer ones are walked over. */
#define GAP_MOST 24u
/* Disk time for gaps, of that of all else, and at least; the share of the space
 * that may stay unknown where not all tracks are looked at, as a divisor. */
#define GAPS_SHARE 2u
#define GAPS_LEAST_NS UINT64_C(180000000000)
#define GAPS_ENOUGH 1250u
/* So few are closed in order: what one says serves the next. */
#define ORDERED_MOST 32u
/* Tracks of one size in a row are certain; of others so many are looked at
 * beside a gap. */
#define ROW_LEAST 3u
#define WIDER_MOST 3u
/* In standard deviations of a read, what a turn may be wrong by. */
#define TURN_NOISE 3.0

/* The next gap from a unit on between tracks that are known. */
bool map_gaps_next(const struct map *m, uint64_t from, struct gap *gap)
{
	const struct piece *p = m->store.pieces, *behind;
	size_t i = store_find(&m->store, from);
	uint64_t end;

	*gap = (struct gap){ .store = &m->store };
	if (i && p[i - 1].tracks)
		i--;
	for (; i <= m->store.n; i++) {
		if (i && !p[i - 1].tracks)
			continue;
		end = i ? p[i - 1].first + p[i - 1].units : 0;
		behind = &p[i];
		while (behind < p + m->store.n && !behind->tracks)
			behind++;
		if (behind == p + m->store.n)
			break;
		if (end >= from && behind->first > end)
			break;
	}
	if (i > m->store.n)
		return false;
	gap->first = end;
	gap->end = behind < p + m->store.n ? behind->first : m->reader.units;
	if (i)
		store_track(&m->store, &p[i - 1], p[i - 1].tracks - 1,
			    &gap->before);
	if (behind < p + m->store.n)
		store_track(&m->store, behind, 0, &gap->behind);
	return gap->first >= from && gap->first < gap->end;
}

/* Units of a gap that is looked at as such. */
uint64_t map_gaps_most(const struct map *m)
{
	return (uint64_t)GAP_MOST * m->largest;
}

/* Has a track more units than there are on a turn?  Some are another's then,
 * that it goes on from without a leap. */
static bool is_too_long(const struct map *m, const struct store_track *t)
{
	double most = fmax(t->pitch / 2, TURN_NOISE * m->reader.noise_once);

	return t->size * t->pitch > 1 + most;
}

static int put_gap(struct map *m, const struct gap_track *v, unsigned n)
{
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++) {
		const struct store_track *t = &v[i].track;

		err = v[i].known && !is_too_long(m, t) ?
			store_add(&m->store, t, t->size,
				  t->size * t->pitch) :
			store_unknown(&m->store, t->first, t->size);
	}
	return err;
}

/* Is a track one of many? */
static bool in_row(const struct map *m, const struct store_track *t)
{
	const struct piece *p = &m->store.pieces[store_find(&m->store,
							    t->first)];

	return p->tracks >= ROW_LEAST && p->size == t->size;
}

/* A track beside a gap that is one of few is looked at closely; what is not
 * whole is not known. */
static int doubt_beside(struct map *m, const struct store_track *t,
			bool *wider)
{
	bool whole = true;
	int err;

	if (!t->size || in_row(m, t))
		return 0;
	err = gap_is_whole(&m->reader, t, &whole);
	if (err || whole)
		return err;
	*wider = true;
	return store_unknown(&m->store, t->first, t->size);
}

/* Widens a gap until what is beside it is certain. */
static int widen(struct map *m, struct gap *gap)
{
	bool wider = true;
	int err = 0;

	for (unsigned i = 0; i < WIDER_MOST && wider && !err; i++) {
		wider = false;
		err = doubt_beside(m, &gap->before, &wider);
		if (!err)
			err = doubt_beside(m, &gap->behind, &wider);
		if (wider && !err)
			map_gaps_next(m, gap->before.size ?
					 gap->before.first : 0, gap);
	}
	return err;
}

/* A gap to be closed. */
struct open_gap {
	uint64_t first, units;
};

struct open_gaps {
	struct open_gap *v;
	size_t n, room;
	uint64_t units;		/* of all */
};

static int gap_cmp(const void *a, const void *b)
{
	const struct open_gap *x = a, *y = b;

	return sort_order(y->units, x->units) ?:
	       sort_order(x->first, y->first);
}

/* Those that are not too long; of many the longest first. */
static int list_gaps(const struct map *m, uint64_t from, uint64_t end,
		     struct open_gaps *gaps)
{
	struct gap gap;

	*gaps = (struct open_gaps){ 0 };
	for (; map_gaps_next(m, from, &gap) && gap.end <= end; from = gap.end) {
		uint64_t units = gap.end - gap.first;

		if (units > map_gaps_most(m))
			continue;
		if (gaps->n == gaps->room) {
			size_t room = 2 * gaps->room + 16;
			struct open_gap *v = realloc(gaps->v,
						     room * sizeof(*v));

			if (!v)
				return -ENOMEM;
			gaps->v = v;
			gaps->room = room;
		}
		gaps->v[gaps->n++] = (struct open_gap){ gap.first, units };
		gaps->units += units;
	}
	if (gaps->n > ORDERED_MOST)
		qsort(gaps->v, gaps->n, sizeof(*gaps->v), gap_cmp);
	return 0;
}

static int close_gap(struct map *m, struct gap *gap)
{
	struct gap_track v[GAP_TRACKS];
	unsigned n;
	int err = map_tick(m);

	if (!err)
		err = widen(m, gap);
	if (err)
		return err;
	err = gap_close(&m->reader, gap, v, &n);
	return err ? err : put_gap(m, v, n);
}

/* When no more time is to be spent on gaps. */
static uint64_t gaps_until(const struct map *m, uint64_t now_ns)
{
	uint64_t most_ns = (m->spent_ns - m->gaps_ns) / GAPS_SHARE, until_ns;

	if (most_ns < GAPS_LEAST_NS)
		most_ns = GAPS_LEAST_NS;
	until_ns = now_ns + most_ns;
	until_ns -= m->gaps_ns < most_ns ? m->gaps_ns : most_ns;
	return m->deadline_ns && m->deadline_ns < until_ns ? m->deadline_ns :
							     until_ns;
}

static int close_all(struct map *m, const struct open_gaps *gaps,
		     uint64_t enough)
{
	uint64_t left = gaps->units;
	struct gap gap;
	int err = 0;

	for (size_t i = 0; i < gaps->n && left > enough && !err; i++) {
		left -= gaps->v[i].units;
		if (map_gaps_next(m, gaps->v[i].first, &gap) &&
		    gap.first == gaps->v[i].first)
			err = close_gap(m, &gap);
	}
	return err;
}

/* Looks again, closely, at what is unknown between known tracks: as long as
 * that is worth it. */
int map_gaps_close(struct map *m, uint64_t from, uint64_t end)
{
	uint64_t began_ns = env_now_ns(m->reader.prober->env);
	unsigned repeat = m->reader.repeat;
	struct open_gaps gaps;
	int err = list_gaps(m, from, end, &gaps);

	reader_set_purpose(&m->reader, READER_GAP);
	/* It reads as often as it has to. */
	reader_sharpen(&m->reader, 1);
	m->reader.until_ns = gaps_until(m, began_ns);
	if (!err)
		err = close_all(m, &gaps, m->dense ? 0 :
						     (end - from) /
							     GAPS_ENOUGH);
	m->reader.until_ns = 0;
	reader_sharpen(&m->reader, repeat);
	m->gaps_ns += env_now_ns(m->reader.prober->env) - began_ns;
	free(gaps.v);
	return err == -ETIME ? 0 : err;
}

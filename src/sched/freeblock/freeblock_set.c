/*
 * freeblock_set.c - wanted sectors by track.
 *
 * Leaves of 64 tracks: a bit for each track that is wanted whole, and for those
 * wanted in part one sorted array of runs (track, first unit, units), units
 * counted from the first that begins on the track.  Sixteen leaves are a page;
 * of a page that is all wanted, or not at all, only the pointer exists.  Above
 * the pages come levels of summaries.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sched/freeblock/freeblock_set.h"

#define PAGE_TRACKS ((uint64_t)FREEBLOCK_SET_LEAF_TRACKS * FREEBLOCK_SET_FANOUT)
#define LEVELS_MAX 16u
/* The price of a neighbourhood rises by PRICE_SLOPE with its share of what is
 * left, within PRICE_LEAST and PRICE_MOST.  Prices are computed anew when
 * 1/PRICE_PART of what was left has gone.  Found by trying. */
#define PRICE_SLOPE 0.5
#define PRICE_LEAST 0.5
#define PRICE_MOST 2.0
#define PRICE_PART 64u

struct unit_run {
	uint16_t track;		/* within the leaf */
	uint16_t first, n;	/* units; n of 65536 is wanted whole */
};

struct set_leaf {
	uint64_t whole;
	struct unit_run *runs;
	uint32_t runs_n, room;
	uint32_t most;
};

struct set_page {
	struct set_leaf leaf[FREEBLOCK_SET_FANOUT];
};

/* Pages as neighbourhoods. */
struct near_units {
	uint32_t units, wanted;
	uint32_t price;
};

struct freeblock_set {
	const struct geom *geom;
	uint32_t unit;
	uint64_t tracks;
	uint64_t units;			/* wanted */
	uint64_t end_unit;		/* of the disk */
	uint64_t pages_n;
	struct set_page **pages;		/* NULL: nothing of it */
	struct set_page *full;		/* stands for: all of it */
	struct near_units *near;		/* by page */
	uint64_t priced_units;		/* wanted when prices were made */
	size_t bytes;
	unsigned levels;		/* summaries, level 1 the pages */
	uint64_t nodes[LEVELS_MAX];
	struct freeblock_set_node *node[LEVELS_MAX];
	struct unit_run *scratch;
	uint32_t scratch_room;
};

/* Where a track's units are. */
struct set_pos {
	uint64_t first, end;	/* units */
	uint64_t track;
};

/* ---- making ---- */

static void bounds_join(struct geom_bounds *to, const struct geom_bounds *from)
{
	if (from->low < to->low)
		to->low = from->low;
	if (from->high > to->high)
		to->high = from->high;
	if (from->around > to->around)
		to->around = from->around;
	if (from->least < to->least)
		to->least = from->least;
}

static void bounds_of(const struct freeblock_set *w, uint64_t first,
		      uint64_t tracks, struct geom_bounds *out)
{
	if (tracks > w->tracks - first)
		tracks = w->tracks - first;
	geom_bounds_of(w->geom, first, tracks, out);
}

static void level_fill(struct freeblock_set *w, unsigned level)
{
	struct freeblock_set_node *node = w->node[level];
	uint64_t i, j, end;

	for (i = 0; i < w->nodes[level]; i++) {
		if (level == 1) {
			bounds_of(w, i * PAGE_TRACKS, PAGE_TRACKS,
				  &node[i].geom);
			continue;
		}
		j = i * FREEBLOCK_SET_FANOUT;
		end = j + FREEBLOCK_SET_FANOUT;
		if (end > w->nodes[level - 1])
			end = w->nodes[level - 1];
		node[i].geom = w->node[level - 1][j].geom;
		while (++j < end)
			bounds_join(&node[i].geom,
				    &w->node[level - 1][j].geom);
	}
}

static int levels_make(struct freeblock_set *w)
{
	uint64_t n = w->pages_n;
	unsigned level = 1;

	for (;;) {
		w->nodes[level] = n;
		w->node[level] = calloc(n, sizeof(*w->node[level]));
		if (!w->node[level])
			return -ENOMEM;
		w->bytes += n * sizeof(*w->node[level]);
		level_fill(w, level);
		w->levels = ++level;
		if (n == 1)
			return 0;
		n = (n + FREEBLOCK_SET_FANOUT - 1) / FREEBLOCK_SET_FANOUT;
	}
}

/* The highest price below, of all nodes above the pages. */
static void levels_price(struct freeblock_set *w)
{
	unsigned level;
	uint64_t i;

	for (level = 2; level < w->levels; level++) {
		for (i = 0; i < w->nodes[level]; i++)
			w->node[level][i].price = 0;
		for (i = 0; i < w->nodes[level - 1]; i++) {
			struct freeblock_set_node *up =
				&w->node[level][i / FREEBLOCK_SET_FANOUT];

			if (up->price < w->node[level - 1][i].price)
				up->price = w->node[level - 1][i].price;
		}
	}
}

/* All worth the same. */
static void near_fill(struct freeblock_set *w)
{
	uint64_t i, last;
	struct geom_track a, z;

	for (i = 0; i < w->pages_n; i++) {
		last = (i + 1) * PAGE_TRACKS - 1;
		geom_track_at(w->geom, i * PAGE_TRACKS, &a);
		geom_track_at(w->geom, last < w->tracks ? last : w->tracks - 1,
			      &z);
		w->near[i].units = (uint32_t)((z.first + z.sectors - a.first) /
					      w->unit + 1);
		w->near[i].price = FREEBLOCK_SET_PRICE;
		w->node[1][i].price = FREEBLOCK_SET_PRICE;
	}
	levels_price(w);
}

int freeblock_set_open(const struct geom *geom, uint32_t unit_sectors,
		struct freeblock_set **wanted)
{
	struct freeblock_set *w;

	if (!unit_sectors || unit_sectors > UINT16_MAX)
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->geom = geom;
	w->unit = unit_sectors;
	w->tracks = geom_tracks(geom);
	w->end_unit = geom_sectors(geom) / unit_sectors;
	w->pages_n = (w->tracks + PAGE_TRACKS - 1) / PAGE_TRACKS;
	w->nodes[0] = (w->tracks + FREEBLOCK_SET_LEAF_TRACKS - 1) /
		      FREEBLOCK_SET_LEAF_TRACKS;
	w->pages = calloc(w->pages_n, sizeof(*w->pages));
	w->full = calloc(1, sizeof(*w->full));
	w->near = calloc(w->pages_n, sizeof(*w->near));
	w->bytes = sizeof(*w) + w->pages_n * (sizeof(*w->pages) +
					      sizeof(*w->near));
	if (!w->pages || !w->full || !w->near || levels_make(w)) {
		freeblock_set_close(w);
		return -ENOMEM;
	}
	near_fill(w);
	*wanted = w;
	return 0;
}

static void page_free(struct freeblock_set *w, struct set_page *page)
{
	unsigned i;

	if (!page || page == w->full)
		return;
	for (i = 0; i < FREEBLOCK_SET_FANOUT; i++) {
		w->bytes -= page->leaf[i].room * sizeof(struct unit_run);
		free(page->leaf[i].runs);
	}
	w->bytes -= sizeof(*page);
	free(page);
}

void freeblock_set_close(struct freeblock_set *wanted)
{
	uint64_t i;

	if (!wanted)
		return;
	for (i = 0; wanted->pages && i < wanted->pages_n; i++)
		page_free(wanted, wanted->pages[i]);
	for (i = 0; i < LEVELS_MAX; i++)
		free(wanted->node[i]);
	free(wanted->near);
	free(wanted->pages);
	free(wanted->full);
	free(wanted->scratch);
	free(wanted);
}

uint64_t freeblock_set_sectors(const struct freeblock_set *wanted)
{
	return wanted->units * wanted->unit;
}

uint32_t freeblock_set_unit(const struct freeblock_set *wanted)
{
	return wanted->unit;
}

size_t freeblock_set_bytes(const struct freeblock_set *wanted)
{
	return wanted->bytes;
}

/* ---- places ---- */

static uint64_t unit_from(const struct freeblock_set *w, uint64_t sector)
{
	uint64_t unit = (sector + w->unit - 1) / w->unit;

	return unit < w->end_unit ? unit : w->end_unit;
}

static void place_of(const struct freeblock_set *w,
		     const struct geom_track *track, struct set_pos *out)
{
	out->track = track->index;
	out->first = unit_from(w, track->first);
	out->end = unit_from(w, track->first + track->sectors);
}

static void place_at(const struct freeblock_set *w, uint64_t index,
		     struct set_pos *out)
{
	struct geom_track track;

	geom_track_at(w->geom, index, &track);
	place_of(w, &track, out);
}

/* The track a unit begins on. */
static void place_of_unit(const struct freeblock_set *w, uint64_t unit,
			  struct set_pos *out)
{
	struct geom_track track;

	geom_track_of(w->geom, unit * w->unit, &track);
	place_of(w, &track, out);
}

static const struct set_leaf *leaf_of(const struct freeblock_set *w,
				      uint64_t track)
{
	const struct set_page *page = w->pages[track / PAGE_TRACKS];

	return page && page != w->full
		       ? &page->leaf[track / FREEBLOCK_SET_LEAF_TRACKS %
				     FREEBLOCK_SET_FANOUT]
		       : NULL;
}

static unsigned bit_of(uint64_t track)
{
	return (unsigned)(track % FREEBLOCK_SET_LEAF_TRACKS);
}

/* Is all of the track wanted because more than it is? */
static bool is_whole(const struct freeblock_set *w, uint64_t track)
{
	const struct set_leaf *leaf = leaf_of(w, track);

	if (!leaf)
		return w->pages[track / PAGE_TRACKS] == w->full;
	return leaf->whole >> bit_of(track) & 1;
}

/* The first run of a leaf at or after a track's unit: one that ends after. */
static uint32_t run_lower(const struct set_leaf *leaf, unsigned track,
			  uint32_t unit)
{
	uint32_t lo = 0, hi = leaf->runs_n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct unit_run *run = &leaf->runs[mid];

		if (run->track < track ||
		    (run->track == track &&
		     (uint32_t)run->first + run->n <= unit))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* ---- changing ---- */

/* The nodes above a page, after a change in it. */
static void levels_update(struct freeblock_set *w, uint64_t page)
{
	const struct set_page *p = w->pages[page];
	uint64_t i = page, j, end;
	uint32_t most = 0;
	unsigned level;

	for (j = 0; p && p != w->full && j < FREEBLOCK_SET_FANOUT; j++)
		if (p->leaf[j].most > most)
			most = p->leaf[j].most;
	if (p == w->full)
		most = UINT32_MAX;
	w->node[1][page].most = most;
	for (level = 2; level < w->levels; level++) {
		j = i / FREEBLOCK_SET_FANOUT * FREEBLOCK_SET_FANOUT;
		i /= FREEBLOCK_SET_FANOUT;
		end = j + FREEBLOCK_SET_FANOUT;
		if (end > w->nodes[level - 1])
			end = w->nodes[level - 1];
		most = 0;
		for (; j < end; j++)
			if (w->node[level - 1][j].most > most)
				most = w->node[level - 1][j].most;
		if (w->node[level][i].most == most)
			return;
		w->node[level][i].most = most;
	}
}

static void leaf_update(struct set_leaf *leaf)
{
	uint32_t i, sum = 0;

	leaf->most = leaf->whole ? UINT32_MAX : 0;
	for (i = 0; !leaf->whole && i < leaf->runs_n; i++) {
		if (i && leaf->runs[i].track != leaf->runs[i - 1].track)
			sum = 0;
		sum += leaf->runs[i].n;
		if (sum > leaf->most)
			leaf->most = sum;
	}
}

/* Nothing or everything in it: then it need not exist. */
static void page_fold(struct freeblock_set *w, uint64_t index)
{
	struct set_page *page = w->pages[index];
	uint64_t left = w->tracks - index * PAGE_TRACKS, want;
	bool none = true, all = true;
	unsigned i;

	for (i = 0; i < FREEBLOCK_SET_FANOUT; i++) {
		want = left >= FREEBLOCK_SET_LEAF_TRACKS ?
			       UINT64_MAX :
			       (UINT64_C(1) << left) - 1;
		left -= left < FREEBLOCK_SET_LEAF_TRACKS
				? left
				: FREEBLOCK_SET_LEAF_TRACKS;
		none = none && !page->leaf[i].whole && !page->leaf[i].runs_n;
		all = all && page->leaf[i].whole == want;
	}
	if (!none && !all)
		return;
	page_free(w, page);
	w->pages[index] = all ? w->full : NULL;
}

static int page_make(struct freeblock_set *w, uint64_t index)
{
	uint64_t left = w->tracks - index * PAGE_TRACKS;
	bool all = w->pages[index] == w->full;
	struct set_page *page;
	unsigned i;

	if (w->pages[index] && !all)
		return 0;
	page = calloc(1, sizeof(*page));
	if (!page)
		return -ENOMEM;
	for (i = 0; all && left && i < FREEBLOCK_SET_FANOUT; i++) {
		page->leaf[i].whole = left >= FREEBLOCK_SET_LEAF_TRACKS ?
			UINT64_MAX : (UINT64_C(1) << left) - 1;
		page->leaf[i].most = UINT32_MAX;
		left -= left < FREEBLOCK_SET_LEAF_TRACKS
				? left
				: FREEBLOCK_SET_LEAF_TRACKS;
	}
	w->bytes += sizeof(*page);
	w->pages[index] = page;
	return 0;
}

static int scratch_need(struct freeblock_set *w, uint32_t runs)
{
	struct unit_run *scratch;

	if (runs <= w->scratch_room)
		return 0;
	scratch = realloc(w->scratch, runs * 2 * sizeof(*scratch));
	if (!scratch)
		return -ENOMEM;
	w->scratch = scratch;
	w->scratch_room = runs * 2;
	return 0;
}

/* Replaces the runs [at, at + old) of a leaf by n from scratch. */
static int leaf_splice(struct freeblock_set *w, struct set_leaf *leaf,
		       uint32_t at, uint32_t old, uint32_t n)
{
	uint32_t need = leaf->runs_n - old + n, room;
	struct unit_run *runs;

	if (need > leaf->room) {
		room = need + need / 2 + 4;
		runs = realloc(leaf->runs, room * sizeof(*runs));
		if (!runs)
			return -ENOMEM;
		w->bytes += (room - leaf->room) * sizeof(*runs);
		leaf->runs = runs;
		leaf->room = room;
	}
	if (leaf->runs_n > at + old)
		memmove(leaf->runs + at + n, leaf->runs + at + old,
			(leaf->runs_n - at - old) * sizeof(*leaf->runs));
	if (n)
		memcpy(leaf->runs + at, w->scratch, n * sizeof(*leaf->runs));
	leaf->runs_n = need;
	return 0;
}

/* Appends to scratch, joining what touches; returns the new length. */
static uint32_t scratch_put(struct freeblock_set *w, uint32_t n, unsigned track,
			    uint32_t first, uint32_t end)
{
	struct unit_run *last = n ? &w->scratch[n - 1] : NULL;

	if (first >= end)
		return n;
	if (last && (uint32_t)last->first + last->n >= first) {
		if (end > (uint32_t)last->first + last->n)
			last->n = (uint16_t)(end - last->first);
		return n;
	}
	w->scratch[n] = (struct unit_run){ (uint16_t)track, (uint16_t)first,
				      (uint16_t)(end - first) };
	return n + 1;
}

/* The runs of one track with [first, end) added or removed, into scratch. */
static uint32_t track_merge(struct freeblock_set *w,
			    const struct unit_run *runs, uint32_t runs_n,
			    unsigned track, uint32_t first, uint32_t end,
			    bool add)
{
	uint32_t n = 0, i;
	bool put = !add;

	for (i = 0; i < runs_n; i++) {
		uint32_t a = runs[i].first, b = a + runs[i].n;

		if (add) {
			if (!put && first <= a) {
				n = scratch_put(w, n, track, first, end);
				put = true;
			}
			n = scratch_put(w, n, track, a, b);
		} else {
			n = scratch_put(w, n, track, a, b < first ? b : first);
			n = scratch_put(w, n, track, a > end ? a : end, b);
		}
	}
	if (!put)
		n = scratch_put(w, n, track, first, end);
	return n;
}

static uint32_t runs_units(const struct unit_run *runs, uint32_t n)
{
	uint32_t sum = 0;

	while (n--)
		sum += runs[n].n;
	return sum;
}

/* ---- prices ---- */

static void units_add(struct freeblock_set *w, uint64_t page, int64_t n)
{
	w->units += (uint64_t)n;
	w->near[page].wanted += (uint32_t)n;
}

/* By the part of each neighbourhood that is wanted, compared with that around
 * the average wanted unit. */
static void prices_make(struct freeblock_set *w)
{
	double sum = 0, part, usual;
	uint64_t i;

	for (i = 0; i < w->pages_n; i++)
		sum += (double)w->near[i].wanted * w->near[i].wanted /
		       w->near[i].units;
	usual = sum / (double)w->units;
	for (i = 0; i < w->pages_n; i++) {
		part = (double)w->near[i].wanted / w->near[i].units / usual;
		part = 1 + (part - 1) * PRICE_SLOPE;
		if (part < PRICE_LEAST)
			part = PRICE_LEAST;
		if (part > PRICE_MOST)
			part = PRICE_MOST;
		w->near[i].price = (uint32_t)(part * FREEBLOCK_SET_PRICE);
		w->node[1][i].price = w->near[i].price;
	}
	levels_price(w);
	w->priced_units = w->units;
}

static void prices_follow(struct freeblock_set *w)
{
	uint64_t off = w->units > w->priced_units ?
		w->units - w->priced_units : w->priced_units - w->units;

	if (w->units && off > w->priced_units / PRICE_PART + w->pages_n)
		prices_make(w);
}

/* Part of a track, in units of its own; neither nothing nor all of it. */
static int track_set_part(struct freeblock_set *w, const struct set_pos *place,
			  uint32_t first, uint32_t end, bool add)
{
	uint32_t all = (uint32_t)(place->end - place->first);
	unsigned bit = bit_of(place->track);
	struct set_leaf *leaf = (struct set_leaf *)leaf_of(w, place->track);
	uint32_t at = run_lower(leaf, bit, 0), old = 0, n, had;
	struct unit_run whole = { (uint16_t)bit, 0, (uint16_t)all };
	bool was_whole = leaf->whole >> bit & 1;

	while (at + old < leaf->runs_n && leaf->runs[at + old].track == bit)
		old++;
	if (scratch_need(w, old + 3))
		return -ENOMEM;
	had = was_whole ? all : runs_units(leaf->runs + at, old);
	n = was_whole ?
		    track_merge(w, &whole, 1, bit, first, end, add) :
		    track_merge(w, leaf->runs + at, old, bit, first, end, add);
	units_add(w, place->track / PAGE_TRACKS, -(int64_t)had);
	had = runs_units(w->scratch, n);
	if (had == all)
		n = 0;
	if (leaf_splice(w, leaf, at, old, n)) {
		units_add(w, place->track / PAGE_TRACKS,
			  was_whole ? all : runs_units(leaf->runs + at, old));
		return -ENOMEM;
	}
	units_add(w, place->track / PAGE_TRACKS, had);
	leaf->whole &= ~(UINT64_C(1) << bit);
	if (had == all)
		leaf->whole |= UINT64_C(1) << bit;
	leaf_update(leaf);
	return 0;
}

/* Units [first, end) of one track, which need not exist. */
static int track_set(struct freeblock_set *w, const struct set_pos *place,
		     uint64_t first, uint64_t end, bool add)
{
	uint64_t page = place->track / PAGE_TRACKS;
	int err;

	if (first >= end || (add && is_whole(w, place->track)) ||
	    (!add && !w->pages[page]))
		return 0;
	err = page_make(w, page);
	if (err)
		return err;
	err = track_set_part(w, place, (uint32_t)(first - place->first),
			     (uint32_t)(end - place->first), add);
	page_fold(w, page);
	levels_update(w, page);
	return err;
}

/* The units that begin in a page. */
static uint64_t page_units(const struct freeblock_set *w, uint64_t page)
{
	uint64_t last = (page + 1) * PAGE_TRACKS - 1;
	struct set_pos from, to;

	place_at(w, page * PAGE_TRACKS, &from);
	place_at(w, last < w->tracks ? last : w->tracks - 1, &to);
	return to.end - from.first;
}

static uint64_t page_wanted(const struct freeblock_set *w, uint64_t index)
{
	const struct set_page *page = w->pages[index];
	uint64_t sum = 0, bits, track;
	struct set_pos place;
	unsigned i;

	if (!page)
		return 0;
	if (page == w->full)
		return page_units(w, index);
	for (i = 0; i < FREEBLOCK_SET_FANOUT; i++) {
		sum += runs_units(page->leaf[i].runs, page->leaf[i].runs_n);
		for (bits = page->leaf[i].whole; bits; bits &= bits - 1) {
			track = index * PAGE_TRACKS +
				i * FREEBLOCK_SET_LEAF_TRACKS +
				(unsigned)__builtin_ctzll(bits);
			place_at(w, track, &place);
			sum += place.end - place.first;
		}
	}
	return sum;
}

static void page_set(struct freeblock_set *w, uint64_t index, bool add)
{
	units_add(w, index, -(int64_t)page_wanted(w, index));
	page_free(w, w->pages[index]);
	w->pages[index] = add ? w->full : NULL;
	units_add(w, index, (int64_t)page_wanted(w, index));
	levels_update(w, index);
}

static int freeblock_set_set(struct freeblock_set *w, uint64_t sector,
			     uint64_t n, bool add)
{
	uint64_t unit = sector / w->unit, end = (sector + n) / w->unit, page;
	struct set_pos place, last;
	int err;

	if (sector % w->unit || n % w->unit || sector + n < sector)
		return -EINVAL;
	if (end > w->end_unit)
		end = w->end_unit;
	while (unit < end) {
		place_of_unit(w, unit, &place);
		if (place.end - place.first > UINT16_MAX)
			return -EINVAL;
		page = place.track / PAGE_TRACKS;
		if (!(place.track % PAGE_TRACKS) && unit == place.first) {
			place_at(w, page + 1 < w->pages_n ?
					    (page + 1) * PAGE_TRACKS - 1 :
					    w->tracks - 1, &last);
			if (last.end <= end) {
				page_set(w, page, add);
				unit = last.end;
				continue;
			}
		}
		err = track_set(w, &place, unit,
				end < place.end ? end : place.end, add);
		if (err)
			return err;
		unit = place.end;
	}
	return 0;
}

int freeblock_set_add(struct freeblock_set *wanted, uint64_t sector, uint64_t n)
{
	int err = freeblock_set_set(wanted, sector, n, true);

	prices_follow(wanted);
	return err;
}

int freeblock_set_remove(struct freeblock_set *wanted, uint64_t sector,
			 uint64_t n)
{
	int err = freeblock_set_set(wanted, sector, n, false);

	prices_follow(wanted);
	return err;
}

uint32_t freeblock_set_price(const struct freeblock_set *wanted, uint64_t track)
{
	return wanted->near[track / PAGE_TRACKS].price;
}

bool freeblock_set_is_seam(const struct geom *geom,
			   const struct geom_track *track, uint64_t sector)
{
	uint64_t moved;
	uint32_t n;

	if (sector == track->first || sector == track->first + track->sectors)
		return true;
	return geom_remap_next(geom, sector - 1, &moved, &n) &&
	       (moved == sector || moved + n == sector);
}

/* ---- asking ---- */

/* From unit `from` on, of one track. */
static bool next_of_place(const struct freeblock_set *w,
			  const struct set_pos *place, uint64_t from,
			  struct range *out)
{
	const struct set_leaf *leaf = leaf_of(w, place->track);
	uint64_t first = from, end = place->end;
	uint32_t i;

	if (from < place->first)
		first = from = place->first;
	if (from >= place->end)
		return false;
	if (!is_whole(w, place->track)) {
		if (!leaf)
			return false;
		i = run_lower(leaf, bit_of(place->track),
			      (uint32_t)(from - place->first));
		if (i == leaf->runs_n ||
		    leaf->runs[i].track != bit_of(place->track))
			return false;
		first = place->first + leaf->runs[i].first;
		end = first + leaf->runs[i].n;
		if (first < from)
			first = from;
	}
	*out = (struct range){ first * w->unit, (end - first) * w->unit };
	return true;
}

bool freeblock_set_next_on(const struct freeblock_set *wanted,
		    const struct geom_track *track, uint64_t from,
		    struct range *out)
{
	struct set_pos place;

	place_of(wanted, track, &place);
	return next_of_place(wanted, &place, unit_from(wanted, from), out);
}

uint32_t freeblock_set_on(const struct freeblock_set *wanted,
			  const struct geom_track *track)
{
	const struct set_leaf *leaf = leaf_of(wanted, track->index);
	struct set_pos place;
	uint32_t at, sum = 0;

	place_of(wanted, track, &place);
	if (is_whole(wanted, track->index))
		return (uint32_t)(place.end - place.first);
	if (!leaf)
		return 0;
	for (at = run_lower(leaf, bit_of(track->index), 0);
	     at < leaf->runs_n &&
	     leaf->runs[at].track == bit_of(track->index); at++)
		sum += leaf->runs[at].n;
	return sum;
}

/* The first track at or after one with anything wanted; tracks: none. */
static uint64_t track_next(const struct freeblock_set *w, uint64_t track)
{
	uint64_t bits;

	while (track < w->tracks) {
		if (!w->pages[track / PAGE_TRACKS]) {
			track += PAGE_TRACKS - track % PAGE_TRACKS;
			continue;
		}
		bits = freeblock_set_tracks(
			       w, track / FREEBLOCK_SET_LEAF_TRACKS) >>
		       bit_of(track);
		if (bits)
			return track + (unsigned)__builtin_ctzll(bits);
		track += FREEBLOCK_SET_LEAF_TRACKS - bit_of(track);
	}
	return w->tracks;
}

bool freeblock_set_next(const struct freeblock_set *wanted, uint64_t from,
		 struct range *out)
{
	uint64_t unit = unit_from(wanted, from);
	struct set_pos place;

	if (unit >= wanted->end_unit)
		return false;
	place_of_unit(wanted, unit, &place);
	while (!next_of_place(wanted, &place, unit, out)) {
		place.track = track_next(wanted, place.track + 1);
		if (place.track >= wanted->tracks)
			return false;
		place_at(wanted, place.track, &place);
	}
	return true;
}

/* ---- for searches ---- */

unsigned freeblock_set_levels(const struct freeblock_set *wanted)
{
	return wanted->levels;
}

uint64_t freeblock_set_nodes(const struct freeblock_set *wanted, unsigned level)
{
	return wanted->nodes[level];
}

bool freeblock_set_node(const struct freeblock_set *wanted, unsigned level,
			uint64_t index, struct freeblock_set_node *out)
{
	uint64_t track = index * FREEBLOCK_SET_LEAF_TRACKS;
	const struct set_leaf *leaf;

	if (level) {
		*out = wanted->node[level][index];
		return out->most;
	}
	leaf = leaf_of(wanted, track);
	out->most = leaf ? leaf->most :
		    wanted->pages[track / PAGE_TRACKS] ? UINT32_MAX : 0;
	out->price = wanted->near[track / PAGE_TRACKS].price;
	if (out->most)
		bounds_of(wanted, track, FREEBLOCK_SET_LEAF_TRACKS, &out->geom);
	return out->most;
}

uint64_t freeblock_set_tracks(const struct freeblock_set *wanted, uint64_t leaf)
{
	uint64_t first = leaf * FREEBLOCK_SET_LEAF_TRACKS, bits;
	const struct set_leaf *l = leaf_of(wanted, first);
	uint32_t i;

	if (!l) {
		if (!wanted->pages[first / PAGE_TRACKS])
			return 0;
		return wanted->tracks - first >= FREEBLOCK_SET_LEAF_TRACKS ?
			       UINT64_MAX :
			       (UINT64_C(1) << (wanted->tracks - first)) - 1;
	}
	bits = l->whole;
	for (i = 0; i < l->runs_n; i++)
		bits |= UINT64_C(1) << l->runs[i].track;
	return bits;
}

/*
 * set_change.c - adds sectors to the wanted set and removes them: bits, runs,
 * pages and summaries.
 */
#include "sched/freeblock/freeblock_set_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sched/freeblock/freeblock_set.h"

/* ---- changing ---- */

/* Updates the nodes above a page after a change in it. */
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

/* Frees a page in which nothing or everything is wanted. */
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
	set_page_free(w, page);
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

/* Appends a run to scratch, joined with an adjacent one; returns the new
 * length. */
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

/* Sets a part of a track, in units of its own; neither nothing nor all of
 * it. */
static int track_set_part(struct freeblock_set *w, const struct set_pos *place,
			  uint32_t first, uint32_t end, bool add)
{
	uint32_t all = (uint32_t)(place->end - place->first);
	unsigned bit = set_bit_of(place->track);
	struct set_leaf *leaf = (struct set_leaf *)set_leaf_of(w, place->track);
	uint32_t at = set_run_lower(leaf, bit, 0), old = 0, n, had;
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
	w->units -= had;
	had = runs_units(w->scratch, n);
	if (had == all)
		n = 0;
	if (leaf_splice(w, leaf, at, old, n)) {
		w->units += was_whole ? all : runs_units(leaf->runs + at, old);
		return -ENOMEM;
	}
	w->units += had;
	leaf->whole &= ~(UINT64_C(1) << bit);
	if (had == all)
		leaf->whole |= UINT64_C(1) << bit;
	leaf_update(leaf);
	return 0;
}

/* Sets units [first, end) of one track, which need not exist. */
static int track_set(struct freeblock_set *w, const struct set_pos *place,
		     uint64_t first, uint64_t end, bool add)
{
	uint64_t page = place->track / PAGE_TRACKS;
	int err;

	if (first >= end || (add && set_is_whole(w, place->track)) ||
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
static uint64_t set_page_units(const struct freeblock_set *w, uint64_t page)
{
	uint64_t last = (page + 1) * PAGE_TRACKS - 1;
	struct set_pos from, to;

	set_place_at(w, page * PAGE_TRACKS, &from);
	set_place_at(w, last < w->tracks ? last : w->tracks - 1, &to);
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
		return set_page_units(w, index);
	for (i = 0; i < FREEBLOCK_SET_FANOUT; i++) {
		sum += runs_units(page->leaf[i].runs, page->leaf[i].runs_n);
		for (bits = page->leaf[i].whole; bits; bits &= bits - 1) {
			track = index * PAGE_TRACKS +
				i * FREEBLOCK_SET_LEAF_TRACKS +
				(unsigned)__builtin_ctzll(bits);
			set_place_at(w, track, &place);
			sum += place.end - place.first;
		}
	}
	return sum;
}

static void page_set(struct freeblock_set *w, uint64_t index, bool add)
{
	w->units -= page_wanted(w, index);
	set_page_free(w, w->pages[index]);
	w->pages[index] = add ? w->full : NULL;
	w->units += page_wanted(w, index);
	levels_update(w, index);
}

static int set_range(struct freeblock_set *w, uint64_t sector,
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
		set_place_of_unit(w, unit, &place);
		if (place.end - place.first > UINT16_MAX)
			return -EINVAL;
		page = place.track / PAGE_TRACKS;
		if (!(place.track % PAGE_TRACKS) && unit == place.first) {
			set_place_at(w, page + 1 < w->pages_n ?
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
	return set_range(wanted, sector, n, true);
}

int freeblock_set_remove(struct freeblock_set *wanted, uint64_t sector,
			 uint64_t n)
{
	return set_range(wanted, sector, n, false);
}

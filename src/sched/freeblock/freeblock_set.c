/*
 * freeblock_set.c - wanted sectors by track.
 *
 * A leaf stands for 64 tracks: a bit for each track that is wanted whole, and
 * for the others one sorted array of runs (track, first unit, units), units
 * counted from the first that begins on the track.  Sixteen leaves are a page;
 * for a page that is all wanted, or not at all, there is only a pointer.  Above
 * the pages are levels of summaries.
 */
#include "sched/freeblock/freeblock_set.h"

#include <errno.h>
#include <stdlib.h>

#include "sched/freeblock/freeblock_set_internal.h"

/* ---- making ---- */

static void set_bounds_join(struct geom_bounds *to,
			    const struct geom_bounds *from)
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
			set_bounds_join(&node[i].geom,
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
	w->bytes = sizeof(*w) + w->pages_n * sizeof(*w->pages);
	if (!w->pages || !w->full || levels_make(w)) {
		freeblock_set_close(w);
		return -ENOMEM;
	}
	*wanted = w;
	return 0;
}

void set_page_free(struct freeblock_set *w, struct set_page *page)
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
		set_page_free(wanted, wanted->pages[i]);
	for (i = 0; i < LEVELS_MAX; i++)
		free(wanted->node[i]);
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

static uint64_t set_unit_from(const struct freeblock_set *w, uint64_t sector)
{
	uint64_t unit = (sector + w->unit - 1) / w->unit;

	return unit < w->end_unit ? unit : w->end_unit;
}

static void set_place_of(const struct freeblock_set *w,
			 const struct geom_track *track, struct set_pos *out)
{
	out->track = track->index;
	out->first = set_unit_from(w, track->first);
	out->end = set_unit_from(w, track->first + track->sectors);
}

void set_place_at(const struct freeblock_set *w, uint64_t index,
		  struct set_pos *out)
{
	struct geom_track track;

	geom_track_at(w->geom, index, &track);
	set_place_of(w, &track, out);
}

void set_place_of_unit(const struct freeblock_set *w, uint64_t unit,
		       struct set_pos *out)
{
	struct geom_track track;

	geom_track_of(w->geom, unit * w->unit, &track);
	set_place_of(w, &track, out);
}

const struct set_leaf *set_leaf_of(const struct freeblock_set *w,
				   uint64_t track)
{
	const struct set_page *page = w->pages[track / PAGE_TRACKS];

	return page && page != w->full
		       ? &page->leaf[track / FREEBLOCK_SET_LEAF_TRACKS %
				     FREEBLOCK_SET_FANOUT]
		       : NULL;
}

unsigned set_bit_of(uint64_t track)
{
	return (unsigned)(track % FREEBLOCK_SET_LEAF_TRACKS);
}

bool set_is_whole(const struct freeblock_set *w, uint64_t track)
{
	const struct set_leaf *leaf = set_leaf_of(w, track);

	if (!leaf)
		return w->pages[track / PAGE_TRACKS] == w->full;
	return leaf->whole >> set_bit_of(track) & 1;
}

uint32_t set_run_lower(const struct set_leaf *leaf, unsigned track,
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

/* ---- asking ---- */

/* Finds the next wanted unit of one track, from `from` on. */
static bool next_of_place(const struct freeblock_set *w,
			  const struct set_pos *place, uint64_t from,
			  struct range *out)
{
	const struct set_leaf *leaf = set_leaf_of(w, place->track);
	uint64_t first = from, end = place->end;
	uint32_t i;

	if (from < place->first)
		first = from = place->first;
	if (from >= place->end)
		return false;
	if (!set_is_whole(w, place->track)) {
		if (!leaf)
			return false;
		i = set_run_lower(leaf, set_bit_of(place->track),
				  (uint32_t)(from - place->first));
		if (i == leaf->runs_n ||
		    leaf->runs[i].track != set_bit_of(place->track))
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

	set_place_of(wanted, track, &place);
	return next_of_place(wanted, &place, set_unit_from(wanted, from), out);
}

uint32_t freeblock_set_on(const struct freeblock_set *wanted,
			  const struct geom_track *track)
{
	const struct set_leaf *leaf = set_leaf_of(wanted, track->index);
	struct set_pos place;
	uint32_t at, sum = 0;

	set_place_of(wanted, track, &place);
	if (set_is_whole(wanted, track->index))
		return (uint32_t)(place.end - place.first);
	if (!leaf)
		return 0;
	for (at = set_run_lower(leaf, set_bit_of(track->index), 0);
	     at < leaf->runs_n &&
	     leaf->runs[at].track == set_bit_of(track->index); at++)
		sum += leaf->runs[at].n;
	return sum;
}

/* Finds the first track at or after this one with anything wanted; tracks:
 * there is none. */
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
		       set_bit_of(track);
		if (bits)
			return track + (unsigned)__builtin_ctzll(bits);
		track += FREEBLOCK_SET_LEAF_TRACKS - set_bit_of(track);
	}
	return w->tracks;
}

bool freeblock_set_next(const struct freeblock_set *wanted, uint64_t from,
		 struct range *out)
{
	uint64_t unit = set_unit_from(wanted, from);
	struct set_pos place;

	if (unit >= wanted->end_unit)
		return false;
	set_place_of_unit(wanted, unit, &place);
	while (!next_of_place(wanted, &place, unit, out)) {
		place.track = track_next(wanted, place.track + 1);
		if (place.track >= wanted->tracks)
			return false;
		set_place_at(wanted, place.track, &place);
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
	leaf = set_leaf_of(wanted, track);
	out->most = leaf ? leaf->most :
		    wanted->pages[track / PAGE_TRACKS] ? UINT32_MAX : 0;
	if (out->most)
		bounds_of(wanted, track, FREEBLOCK_SET_LEAF_TRACKS, &out->geom);
	return out->most;
}

uint64_t freeblock_set_tracks(const struct freeblock_set *wanted, uint64_t leaf)
{
	uint64_t first = leaf * FREEBLOCK_SET_LEAF_TRACKS, bits;
	const struct set_leaf *l = set_leaf_of(wanted, first);
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

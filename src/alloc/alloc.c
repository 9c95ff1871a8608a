/*
 * alloc.c - placement by track and group.
 *
 * Free runs are walked, never tracks: a run consists of a head (the end of a
 * partly used track), whole free tracks, and a tail (the beginning of one).
 * A file up to a track wants a head or a tail with room, or a whole track; a
 * larger one wants whole tracks in order.
 *
 * 1. Everything handed out is a multiple of the drive's physical block and
 *    aligned to it; a track is used from the first such boundary in it to the
 *    last.
 * 2. What a directory's open track is, and where growing files will go on, is
 *    remembered in small tables whose loss costs locality only.
 * 3. Groups without a run that is long enough are passed over, and those where
 *    as much has been found not to fit, until what is free there changes.  Of
 *    a group at most WALK_RUNS runs are looked at, in all of them together
 *    WALK_ALL_RUNS; then any free sectors are taken.
 */
#include "alloc/alloc.h"

#include <errno.h>
#include <stdlib.h>

#define OPEN_TRACKS 256u
#define STREAMS 64u
/* Number of free runs looked at in one group before the best so far is
 * taken. */
#define WALK_RUNS 1024u
/* The same limit once a whole free track has been found. */
#define WALK_MORE_RUNS 64u
/* Number of free runs looked at in all groups for one request: about 1 ms. */
#define WALK_ALL_RUNS 4096u
/* A new file begins at least this many sectors (32 MiB) behind one that is
 * growing, so that both can go on in order. */
#define STREAM_SKIP 65536u
/* A partly used track becomes a directory's open track only when at least one
 * part in this many of it is free. */
#define ROOMY_SHARE 8u
/* A directory moves to another group when fewer sectors than this are free in
 * its own group: a sixteenth of a group. */
#define GROUP_ROOM (TRAX_GROUP_SECTORS / 16)

struct span {
	uint64_t first, end;
};

struct open_track {
	uint64_t dir;		/* inode number; 0: this entry is unused */
	struct span span;	/* the free part of the open track */
	uint64_t used;		/* value of the clock when it was last used */
};

struct alloc {
	struct space *space;
	const struct geom *geom;
	uint32_t unit;		/* the drive's physical block, in sectors */
	struct open_track open[OPEN_TRACKS];
	uint64_t streams[STREAMS]; /* the sectors at which growing files go on;
				    * 0: unused */
	unsigned stream_next;
	uint64_t clock;
	uint64_t sectors;	/* sectors that both space and geometry know */
};

/* One request, and what has been taken for it so far. */
struct taking {
	struct alloc *alloc;
	const struct alloc_want *want;
	struct alloc_piece *pieces;
	int n, max;
	uint64_t left;		/* sectors still to be taken */
	unsigned walk;		/* number of runs that may still be looked at */
	uint32_t *load;
};

/* The parts of a free run. */
struct run_parts {
	struct span head, whole, tail;
};

int alloc_new(struct space *space, const struct geom *geom,
	      uint32_t physical_sectors, struct alloc **out)
{
	struct alloc *alloc = calloc(1, sizeof(*alloc));

	if (!alloc)
		return -ENOMEM;
	alloc->space = space;
	alloc->unit = physical_sectors ? physical_sectors : 1;
	alloc_set_geom(alloc, geom);
	*out = alloc;
	return 0;
}

void alloc_free(struct alloc *alloc)
{
	free(alloc);
}

void alloc_set_geom(struct alloc *alloc, const struct geom *geom)
{
	alloc->geom = geom;
	alloc->sectors = geom_sectors(geom);
	space_forget_misfits(alloc->space);
}

/* ---- Tracks ---- */

static uint64_t round_up(const struct alloc *alloc, uint64_t sector)
{
	return (sector + alloc->unit - 1) / alloc->unit * alloc->unit;
}

static uint64_t round_down(const struct alloc *alloc, uint64_t sector)
{
	return sector / alloc->unit * alloc->unit;
}

/* The usable part of the track that holds a sector. */
static struct span track_span(const struct alloc *alloc, uint64_t sector)
{
	struct geom_track track;

	if (sector >= alloc->sectors)
		return (struct span){ sector, sector };
	geom_track_of(alloc->geom, sector, &track);
	return (struct span){
		round_up(alloc, track.first),
		round_down(alloc, track.first + track.sectors),
	};
}

static bool track_known(const struct alloc *alloc, uint64_t sector)
{
	struct geom_track track;

	geom_track_of(alloc->geom, sector, &track);
	return track.known;
}

/* Is there a track boundary, and may an extent end there? */
static bool is_boundary(const struct alloc *alloc, uint64_t sector)
{
	struct geom_track track;

	if (sector % alloc->unit)
		return false;
	if (sector >= alloc->sectors)
		return sector == alloc->sectors;
	geom_track_of(alloc->geom, sector, &track);
	return track.first == sector;
}

bool alloc_is_whole(const struct alloc *alloc, uint64_t sector, uint64_t n)
{
	return n && sector + n <= alloc->sectors &&
	       is_boundary(alloc, sector) && is_boundary(alloc, sector + n);
}

/*
 * The end of the run of whole tracks that begins at `sector` and ends at `end`
 * or before; 0: there is none.  Where boundaries are not aligned to the drive's
 * blocks, a few tracks are gone back to find one that is.
 */
static uint64_t whole_end(const struct alloc *alloc, uint64_t sector,
			  uint64_t end)
{
	struct geom_track track;
	unsigned i;

	if (!is_boundary(alloc, sector))
		return 0;
	for (i = 0; i < TRAX_BLOCK_SECTORS && end > sector; i++) {
		if (is_boundary(alloc, end))
			return end;
		geom_track_of(alloc->geom, end - 1, &track);
		end = track.first;
	}
	return 0;
}

uint64_t alloc_cut(const struct alloc *alloc, uint64_t sector, uint64_t end)
{
	struct span span = track_span(alloc, sector);
	uint64_t whole;

	if (span.end >= end || span.end <= sector)
		return end;
	whole = whole_end(alloc, sector, end);
	return whole ? whole : span.end;
}

uint32_t alloc_track_sectors(const struct alloc *alloc, uint64_t goal)
{
	struct geom_track track;

	if (goal >= alloc->sectors)
		goal = 0;
	geom_track_of(alloc->geom, goal, &track);
	return track.sectors;
}

static bool span_has(struct span span, uint64_t n)
{
	return span.end >= span.first + n;
}

static uint64_t span_len(struct span span)
{
	return span.end > span.first ? span.end - span.first : 0;
}

/* Cuts a free run into its parts. */
static void view_of(const struct alloc *alloc, struct span run,
		    struct run_parts *view)
{
	struct span track = track_span(alloc, run.first);
	struct geom_track next;

	*view = (struct run_parts){ { 0, 0 }, { 0, 0 }, { 0, 0 } };
	view->whole.first = run.first;
	if (track.first != run.first || track.end > run.end) {
		view->head = run;
		if (track.end >= run.end)
			return;
		view->head.end = track.end;
		geom_track_of(alloc->geom, run.first, &next);
		view->whole.first = round_up(alloc, next.first + next.sectors);
	}
	if (view->whole.first >= run.end)
		return;
	view->whole.end = run.end;
	track = track_span(alloc, run.end - 1);
	if (track.end > run.end) {
		view->tail = (struct span){ track.first, run.end };
		view->whole.end = track.first;
	} else {
		view->whole.end = track.end;
	}
}

/* The free run of at least `least` sectors at or behind `from` that begins
 * before `to`, clipped to units.  Sets *next to where to look on. */
static bool next_run(const struct alloc *alloc, uint64_t from, uint64_t to,
		     uint64_t least, struct span *run, uint64_t *next)
{
	struct range range;

	if (!rangeset_next_long(space_free_set(alloc->space), from, least,
				&range) ||
	    range.first >= to)
		return false;
	*next = range.first + range.n;
	run->first = round_up(alloc, range.first > from ? range.first : from);
	run->end = range.first + range.n;
	if (run->end > alloc->sectors)
		run->end = alloc->sectors;
	run->end = round_down(alloc, run->end);
	return true;
}

/* ---- Groups ---- */

static uint64_t group_first(uint32_t group)
{
	return (uint64_t)group * TRAX_GROUP_SECTORS;
}

static uint32_t group_of(const struct alloc *alloc, uint64_t sector)
{
	uint32_t groups = space_groups(alloc->space);
	uint64_t group = sector / TRAX_GROUP_SECTORS;

	return group < groups ? (uint32_t)group : 0;
}

/* The i-th group to try: the goal's, then all from the outer edge. */
static uint32_t group_nth(uint32_t goal, uint32_t i)
{
	if (i == 0)
		return goal;
	return i <= goal ? i - 1 : i;
}

/* 0, -EAGAIN, or -ENOSPC when there can't be n sectors in a row. */
static int group_ready(struct taking *taking, uint32_t group, uint64_t n)
{
	const struct space *space = taking->alloc->space;

	if (space_group_free(space, group) < n ||
	    space_group_largest(space, group) < n)
		return -ENOSPC;
	if (space_group_loaded(space, group))
		return 0;
	*taking->load = group;
	return -EAGAIN;
}

/* Like group_ready, and n sectors have not been found not to fit there since
 * the free space of the group last changed. */
static int group_may_fit(struct taking *taking, uint32_t group,
			 enum space_fit fit, uint64_t n)
{
	if (space_group_misfit(taking->alloc->space, group, fit) <= n ||
	    !taking->walk)
		return -ENOSPC;
	return group_ready(taking, group, n);
}

/* ---- Taking ---- */

static void taking_undo(struct taking *taking)
{
	while (taking->n) {
		taking->n--;
		space_give_back(taking->alloc->space,
				taking->pieces[taking->n].sector,
				taking->pieces[taking->n].n);
	}
}

/* Takes [sector, sector + n) and adds it to the pieces. -E2BIG: there are too
 * many pieces; -ENOMEM. */
static int take(struct taking *taking, uint64_t sector, uint64_t n)
{
	struct alloc *alloc = taking->alloc;
	int rc;

	if (taking->n == taking->max)
		return -E2BIG;
	rc = space_take(alloc->space, sector, n);
	if (rc)
		return rc;
	taking->pieces[taking->n++] = (struct alloc_piece){
		.sector = sector,
		.n = n,
		.whole_tracks = alloc_is_whole(alloc, sector, n),
		.known = track_known(alloc, sector),
	};
	taking->left -= n < taking->left ? n : taking->left;
	return 0;
}

/* The free run that begins at exactly this sector; empty: the sector is not
 * free. */
static struct span free_from(const struct alloc *alloc, uint64_t sector)
{
	struct span run = { sector, sector };
	uint64_t next;

	if (sector % alloc->unit == 0 && sector < alloc->sectors &&
	    next_run(alloc, sector, sector + 1, 1, &run, &next) &&
	    run.first == sector && run.end > sector)
		return run;
	return (struct span){ sector, sector };
}

static bool is_stream(const struct alloc *alloc, uint64_t sector)
{
	unsigned i;

	for (i = 0; i < STREAMS; i++)
		if (alloc->streams[i] == sector)
			return true;
	return false;
}

static void stream_moved(struct alloc *alloc, uint64_t from, uint64_t to)
{
	unsigned i;

	for (i = 0; i < STREAMS; i++)
		if (from && alloc->streams[i] == from)
			alloc->streams[i] = 0;
	if (!to)
		return;
	alloc->streams[alloc->stream_next++ % STREAMS] = to;
}

/* ---- Up to a track ---- */

static struct open_track *open_find(struct alloc *alloc, uint64_t dir)
{
	unsigned i;

	for (i = 0; dir && i < OPEN_TRACKS; i++)
		if (alloc->open[i].dir == dir)
			return &alloc->open[i];
	return NULL;
}

static void open_set(struct alloc *alloc, uint64_t dir, struct span span)
{
	struct open_track *open = open_find(alloc, dir);
	unsigned i;

	if (!dir)
		return;
	if (!open) {
		open = &alloc->open[0];
		for (i = 1; i < OPEN_TRACKS; i++)
			if (alloc->open[i].used < open->used)
				open = &alloc->open[i];
	}
	open->dir = dir;
	open->span = span;
	open->used = ++alloc->clock;
}

void alloc_forget_dir(struct alloc *alloc, uint64_t dir)
{
	struct open_track *open = open_find(alloc, dir);

	if (open) {
		open->dir = 0;
		open->used = 0;
	}
}

/* First free n sectors inside a span. */
static bool span_find(const struct alloc *alloc, struct span span, uint64_t n,
		      struct span *run)
{
	uint64_t from = span.first;

	while (from < span.end &&
	       next_run(alloc, from, span.end, n, run, &from)) {
		if (run->end > span.end)
			run->end = span.end;
		if (span_has(*run, n))
			return true;
	}
	return false;
}

struct best {
	bool longest;		/* take the longest part and not the one that
				 * fits best */
	struct span roomy, fit, whole;	/* candidates of three kinds; empty:
					 * none found */
};

static void best_partial(const struct alloc *alloc, struct span part,
			 uint64_t n, uint64_t roomy, struct best *best)
{
	if (!span_has(part, n) || is_stream(alloc, part.first))
		return;
	if (!span_len(best->roomy) && span_has(part, roomy))
		best->roomy = part;
	if (!span_len(best->fit) ||
	    (best->longest ? span_len(part) > span_len(best->fit) :
			     span_len(part) < span_len(best->fit)))
		best->fit = part;
}

/* The first of some free tracks that is not where a growing file goes on. */
static struct span best_track(const struct alloc *alloc, struct span whole)
{
	struct geom_track track;

	if (!is_stream(alloc, whole.first))
		return track_span(alloc, whole.first);
	geom_track_of(alloc->geom, whole.first, &track);
	if (track.first + track.sectors >= whole.end)
		return (struct span){ 0, 0 };
	return track_span(alloc, track.first + track.sectors);
}

/* Looks through a group for room for n sectors inside a track. */
static void best_of_runs(struct taking *taking, uint32_t group, uint64_t n,
			 uint64_t roomy, struct best *best)
{
	const struct alloc *alloc = taking->alloc;
	uint64_t from = group_first(group), to = group_first(group + 1);
	struct span run, track;
	struct run_parts view;
	unsigned left = WALK_RUNS;

	while (left && taking->walk && !span_len(best->roomy)) {
		if (!next_run(alloc, from, to, n, &run, &from))
			return;
		left--;
		taking->walk--;
		if (!span_has(run, n))
			continue;
		view_of(alloc, run, &view);
		best_partial(alloc, view.head, n, roomy, best);
		best_partial(alloc, view.tail, n, roomy, best);
		if (span_len(best->whole) || !span_len(view.whole))
			continue;
		track = best_track(alloc, view.whole);
		if (!span_has(track, n) || !span_len(track))
			continue;
		best->whole = track;
		left = left < WALK_MORE_RUNS ? left : WALK_MORE_RUNS;
	}
}

/* A roomy partly used track, a free track, or the partly used track that fits
 * best; empty: n sectors fit nowhere. */
static struct span best_of_group(struct taking *taking, uint32_t group,
				 uint64_t n, uint64_t roomy, bool longest)
{
	struct best best = { .longest = longest };

	best_of_runs(taking, group, n, roomy, &best);
	if (span_len(best.roomy))
		return best.roomy;
	if (span_len(best.whole))
		return best.whole;
	if (!span_len(best.fit) && taking->walk)
		space_set_misfit(taking->alloc->space, group,
				 SPACE_FIT_PART, (uint32_t)n);
	return best.fit;
}

/* The number of free sectors that a track should have to become the directory's
 * open track. */
static uint64_t roomy_of(const struct taking *taking, uint64_t n)
{
	uint64_t track = alloc_track_sectors(taking->alloc, taking->want->goal);
	uint64_t roomy = taking->want->batch;

	if (n < track / ROOMY_SHARE && roomy < track / ROOMY_SHARE)
		roomy = track / ROOMY_SHARE;
	if (roomy > track)
		roomy = track;
	return roomy > n ? roomy : n;
}

/* The best part of a track in the goal's group, else in the first in order
 * that has any. */
static int small_search(struct taking *taking, uint64_t n, struct span *at)
{
	struct alloc *alloc = taking->alloc;
	uint32_t goal = group_of(alloc, taking->want->goal);
	uint32_t groups = space_groups(alloc->space);
	uint64_t roomy = roomy_of(taking, n);
	uint32_t i, group;
	int rc;

	for (i = 0; i < groups; i++) {
		group = group_nth(goal, i);
		rc = group_may_fit(taking, group, SPACE_FIT_PART, n);
		if (rc == -EAGAIN)
			return rc;
		if (rc)
			continue;
		*at = best_of_group(taking, group, n, roomy, false);
		if (span_len(*at))
			return 0;
	}
	return -ENOSPC;
}

/*
 * n sectors inside one track:
 *  1. right behind what the file has, on the same track;
 *  2. the directory's open track;
 *  3. as small_search has it; that track becomes the open one.
 */
static int take_small(struct taking *taking, uint64_t after, uint64_t n)
{
	struct alloc *alloc = taking->alloc;
	struct open_track *open;
	struct span run;
	int rc;

	if (after) {
		run = free_from(alloc, after);
		if (span_has(run, n) &&
		    after + n <= track_span(alloc, after).end)
			return take(taking, after, n);
	}
	open = open_find(alloc, taking->want->dir);
	if (open && span_find(alloc, open->span, n, &run)) {
		open->used = ++alloc->clock;
		rc = take(taking, run.first, n);
		if (!rc)
			taking->pieces[taking->n - 1].follows = true;
		return rc;
	}
	rc = small_search(taking, n, &run);
	if (rc)
		return rc;
	rc = take(taking, run.first, n);
	if (!rc && taking->want->dir)
		open_set(alloc, taking->want->dir, run);
	return rc;
}

/* ---- More than a track ---- */

/* The longest run of whole tracks in a group, or the first with `enough`; none
 * is shorter than half of `track`. */
static struct span whole_of_group(struct taking *taking, uint32_t group,
				  uint64_t track, uint64_t enough)
{
	struct alloc *alloc = taking->alloc;
	uint64_t from = group_first(group), to = group_first(group + 1);
	struct span best = { 0, 0 }, run;
	struct run_parts view;
	unsigned i;

	for (i = 0; i < WALK_RUNS && taking->walk && from < to; i++) {
		if (!next_run(alloc, from, to, track / 2, &run, &from))
			break;
		taking->walk--;
		view_of(alloc, run, &view);
		if (span_len(view.whole) > span_len(best))
			best = view.whole;
		if (span_len(best) >= enough)
			break;
	}
	if (!span_len(best) && taking->walk)
		space_set_misfit(alloc->space, group, SPACE_FIT_WHOLE,
				 (uint32_t)track);
	return best;
}

/* Moves the begin of a large file away from one that is growing, where there is
 * room for that: otherwise the two would take every other track. */
static void whole_apart(const struct alloc *alloc, struct span *at,
			uint64_t want)
{
	uint64_t first;

	if (!is_stream(alloc, at->first) ||
	    span_len(*at) < STREAM_SKIP + STREAM_SKIP / 2 + want)
		return;
	first = track_span(alloc, at->first + STREAM_SKIP).first;
	if (is_boundary(alloc, first))
		at->first = first;
}

static int whole_search(struct taking *taking, struct span *at)
{
	struct alloc *alloc = taking->alloc;
	uint32_t goal = group_of(alloc, taking->want->goal);
	uint32_t groups = space_groups(alloc->space);
	uint64_t track;
	uint32_t i, group;
	int rc;

	for (i = 0; i < groups; i++) {
		group = group_nth(goal, i);
		track = alloc_track_sectors(alloc, group_first(group));
		rc = group_may_fit(taking, group, SPACE_FIT_WHOLE, track);
		if (rc == -EAGAIN)
			return rc;
		if (rc)
			continue;
		*at = whole_of_group(taking, group, track, taking->left);
		if (span_len(*at)) {
			whole_apart(alloc, at, taking->left);
			return 0;
		}
	}
	return -ENOSPC;
}

/* Takes whole tracks from the beginning of a span, as many as are wanted; one
 * by one where their boundaries are not aligned. */
static int take_whole(struct taking *taking, struct span span)
{
	struct alloc *alloc = taking->alloc;
	uint64_t end = span.first + taking->left;

	end = whole_end(alloc, span.first, end < span.end ? end : span.end);
	if (!end) {
		span.end = track_span(alloc, span.first).end;
		if (span_len(span) > taking->left || !span_len(span))
			return -ENOSPC;
		end = span.end;
	}
	return take(taking, span.first, end - span.first);
}

/*
 * Goes on right behind the file's last sector: the rest of its track, then the
 * tracks that follow as far as they are free.
 */
static int take_after(struct taking *taking, uint64_t after)
{
	struct alloc *alloc = taking->alloc;
	struct span run = free_from(alloc, after);
	struct span track = track_span(alloc, after);
	uint64_t n;
	int rc;

	if (!span_len(run) && after < alloc->sectors &&
	    !space_group_loaded(alloc->space, group_of(alloc, after))) {
		*taking->load = group_of(alloc, after);
		return -EAGAIN;
	}
	if (span_len(run) && track.first != after && track.end > after) {
		n = (run.end < track.end ? run.end : track.end) - after;
		if (n > taking->left)
			n = taking->left;
		rc = take(taking, after, n);
		if (rc)
			return rc;
		run.first = round_up(alloc, after + n);
		if (run.first >= run.end || after + n != track.end)
			return 0;
	}
	if (!span_len(run) || track_span(alloc, run.first).first != run.first)
		return 0;
	if (taking->left < span_len(track_span(alloc, run.first)))
		return 0;
	if (span_has(run, span_len(track_span(alloc, run.first))))
		return take_whole(taking, run);
	return 0;
}

static uint64_t taking_end(const struct taking *taking)
{
	const struct alloc_piece *last;

	if (!taking->n)
		return taking->want->after;
	last = &taking->pieces[taking->n - 1];
	return last->sector + last->n;
}

/*
 * The end of a piece of a growing file: takes as much of the next track as
 * makes the sum a multiple of 8 sectors.
 */
static int take_rounding(struct taking *taking)
{
	uint64_t had = taking->want->sectors - taking->left;
	uint64_t n = (TRAX_BLOCK_SECTORS - had % TRAX_BLOCK_SECTORS) %
		     TRAX_BLOCK_SECTORS;
	struct span run, track;
	int rc;

	if (n == 0)
		return 0;
	run = free_from(taking->alloc, taking_end(taking));
	track = track_span(taking->alloc, taking_end(taking));
	if (span_len(run) && span_has(track, n) &&
	    span_has(run, span_len(track)))
		return take(taking, run.first, n);
	rc = whole_search(taking, &run);
	if (rc == 0)
		return take(taking, run.first, n);
	return rc == -ENOSPC ? take_small(taking, taking_end(taking), n) : rc;
}

/* Takes all of a free run that is wanted. Where a track does not end on a
 * physical block, the block across its end belongs to no track. */
static int take_run(struct taking *taking, struct span run)
{
	struct alloc *alloc = taking->alloc;
	struct geom_track track;
	uint64_t end;
	int rc = 0;

	while (!rc && taking->left && run.first < run.end) {
		end = run.end;
		if (span_len(run) > taking->left)
			end = run.first + taking->left;
		if (track_span(alloc, run.first).end <= run.first) {
			geom_track_of(alloc->geom, run.first, &track);
			run.first = round_up(alloc,
					     track.first + track.sectors);
			continue;
		}
		end = alloc_cut(alloc, run.first, end);
		rc = take(taking, run.first, end - run.first);
		run.first = end;
	}
	return rc;
}

/*
 * Takes any free sectors, in pieces that lie inside a track or are whole ones.
 * It passes over runs so short that more of them would be needed than there are
 * pieces; -E2BIG when there are only such runs.
 */
static int take_any(struct taking *taking)
{
	struct alloc *alloc = taking->alloc;
	const uint32_t goal = group_of(alloc, taking->want->goal);
	const uint32_t groups = space_groups(alloc->space);
	uint64_t from, to, least = alloc->unit;
	uint32_t i, group;
	bool shorter = false;
	struct span run;
	int rc;

	for (i = 0; i < groups && taking->left; i++) {
		group = group_nth(goal, i);
		if (taking->n == taking->max)
			return -E2BIG;
		least = 1 + (taking->left - 1) / (taking->max - taking->n);
		least = least > alloc->unit ? least : alloc->unit;
		rc = group_ready(taking, group, least);
		if (rc == -EAGAIN)
			return rc;
		from = group_first(group);
		to = group_first(group + 1);
		while (!rc && taking->left &&
		       next_run(alloc, from, to, least, &run, &from)) {
			rc = take_run(taking, run);
			if (rc)
				return rc;
		}
		shorter |= space_group_free(alloc->space, group) != 0;
	}
	if (!taking->left)
		return 0;
	return shorter && least > alloc->unit ? -E2BIG : -ENOSPC;
}

/*
 * More than a track:
 *  1. right behind the file's last sector;
 *  2. whole tracks, longest runs in the goal's group, then in others;
 *  3. what is left, less than a track, inside one;
 *  4. anything.
 */
static int take_large(struct taking *taking)
{
	struct alloc *alloc = taking->alloc;
	uint64_t track = alloc_track_sectors(alloc, taking->want->goal);
	struct span at;
	int rc = 0;

	if (taking->want->after)
		rc = take_after(taking, taking->want->after);
	while (!rc && taking->left >= track) {
		rc = whole_search(taking, &at);
		if (rc == 0 && taking->left <
		    span_len(track_span(alloc, at.first)))
			break;
		if (rc == 0)
			rc = take_whole(taking, at);
	}
	if (!rc && taking->left && taking->want->stream && taking->n)
		return take_rounding(taking);
	if (!rc && taking->left)
		rc = take_small(taking, taking_end(taking), taking->left);
	return rc == -ENOSPC ? take_any(taking) : rc;
}

static int taking_all(struct taking *taking)
{
	const struct alloc_want *want = taking->want;
	uint64_t track = alloc_track_sectors(taking->alloc, want->goal);
	int rc;

	if (taking->left > track)
		return take_large(taking);
	rc = take_small(taking, want->after, taking->left);
	return rc == -ENOSPC ? take_large(taking) : rc;
}

int alloc_take(struct alloc *alloc, const struct alloc_want *want,
	       struct alloc_piece *pieces, int max, uint32_t *load)
{
	struct taking taking = {
		.alloc = alloc, .want = want, .pieces = pieces, .max = max,
		.left = want->sectors, .walk = WALK_ALL_RUNS, .load = load,
	};
	uint64_t end;
	int rc;

	rc = taking_all(&taking);
	if (rc) {
		taking_undo(&taking);
		return rc;
	}
	end = taking_end(&taking);
	stream_moved(alloc, want->after, want->stream ? end : 0);
	return taking.n;
}

/* ---- Places that are chosen later ---- */

/* Number of tracks looked at for another one with room. */
#define WINDOW_LOOK 64u

/* The free part of a track from a sector on or, when that sector is not free,
 * the one around it; it ends where a growing file will go on. Empty: there is
 * none. */
static struct span free_part(const struct alloc *alloc, uint64_t sector)
{
	struct span part = track_span(alloc, sector);
	struct range run;
	unsigned i;

	if (!rangeset_next(space_free_set(alloc->space), sector, &run) ||
	    run.first >= part.end)
		return (struct span){ part.end, part.end };
	if (part.first < run.first)
		part.first = round_up(alloc, run.first);
	if (part.end > run.first + run.n)
		part.end = round_down(alloc, run.first + run.n);
	for (i = 0; i < STREAMS; i++)
		if (alloc->streams[i] >= part.first &&
		    alloc->streams[i] < part.end)
			part.end = alloc->streams[i];
	return part;
}

static uint64_t track_after(const struct alloc *alloc, uint64_t sector)
{
	struct geom_track track;

	geom_track_of(alloc->geom, sector, &track);
	return track.first + track.sectors;
}

bool alloc_next(const struct alloc *alloc, uint64_t from, uint64_t end,
		uint64_t n, uint64_t *place)
{
	struct span part;
	struct range run;

	if (end > alloc->sectors)
		end = alloc->sectors;
	while (from < end &&
	       rangeset_next(space_free_set(alloc->space), from, &run) &&
	       run.first < end) {
		from = run.first > from ? run.first : from;
		part = free_part(alloc, from);
		if (part.first < from)
			part.first += (from - part.first + n - 1) / n * n;
		if (part.first + n <= part.end && part.first + n <= end) {
			*place = part.first;
			return true;
		}
		from = track_after(alloc, from);
		if (from > run.first + run.n)
			from = run.first + run.n;
	}
	return false;
}

void alloc_window(const struct alloc *alloc, const struct alloc_piece *piece,
		  struct range *window)
{
	const struct span own = track_span(alloc, piece->sector);
	uint64_t at = track_after(alloc, piece->sector), end, place;
	unsigned look = WINDOW_LOOK;

	*window = (struct range){ own.first, own.end - own.first };
	while (look-- && at < alloc->sectors) {
		end = track_after(alloc, at);
		if (alloc_next(alloc, at, end, piece->n, &place)) {
			window->n = end - own.first;
			return;
		}
		at = end;
	}
}

int alloc_move(struct alloc *alloc, struct alloc_piece *piece, uint64_t to)
{
	struct span part = free_part(alloc, to);
	int rc = space_take(alloc->space, to, piece->n);
	unsigned i;

	if (rc)
		return rc;
	space_give_back(alloc->space, piece->sector, piece->n);
	part.first = to;
	for (i = 0; i < OPEN_TRACKS; i++)
		if (alloc->open[i].dir &&
		    alloc->open[i].span.first < piece->sector + piece->n &&
		    alloc->open[i].span.end > piece->sector)
			alloc->open[i].span = part;
	piece->sector = to;
	piece->known = track_known(alloc, to);
	return 0;
}

/* ---- Node tracks ---- */

/* A free part that is smaller than one in this many of a track is taken for
 * nodes only when nothing larger is free. */
#define NODE_TRACK_SHARE 4u

/* A whole free track in the group of `near` or, if it has none, the longest
 * part of one, unless another group has more. */
static int node_search(struct taking *taking, uint64_t near, uint64_t least,
		       struct span *at)
{
	struct alloc *alloc = taking->alloc;
	uint32_t goal = group_of(alloc, near);
	uint32_t groups = space_groups(alloc->space);
	uint32_t i, group;
	int rc;

	for (i = 0; i < groups; i++) {
		group = group_nth(goal, i);
		rc = group_may_fit(taking, group, SPACE_FIT_PART, least);
		if (rc == -EAGAIN)
			return rc;
		if (rc)
			continue;
		*at = best_of_group(taking, group, least, UINT64_MAX / 2, true);
		if (span_len(*at))
			return 0;
	}
	return -ENOSPC;
}

int alloc_node_track(struct alloc *alloc, uint64_t near, uint64_t *sector,
		     uint32_t *sectors, uint32_t *load)
{
	struct alloc_want want = { .sectors = TRAX_NODE_SECTORS };
	struct alloc_piece piece;
	struct taking taking = {
		.alloc = alloc, .want = &want, .pieces = &piece, .max = 1,
		.walk = WALK_ALL_RUNS, .load = load,
	};
	uint64_t least = alloc_track_sectors(alloc, near) / NODE_TRACK_SHARE;
	struct span at;
	uint64_t n;
	int rc = -ENOSPC;

	if (least > TRAX_NODE_SECTORS)
		rc = node_search(&taking, near, least, &at);
	taking.walk = WALK_ALL_RUNS;
	if (rc == -ENOSPC)
		rc = node_search(&taking, near, TRAX_NODE_SECTORS, &at);
	if (rc)
		return rc;
	/* Slots are aligned to what the drive writes in one piece. */
	n = span_len(at) / TRAX_NODE_SECTORS * TRAX_NODE_SECTORS;
	rc = take(&taking, at.first, n);
	if (rc)
		return rc;
	*sector = at.first;
	*sectors = (uint32_t)n;
	return 0;
}

/* ---- Copies ---- */

/* A full group counts as if it were this many groups further away. */
#define FULL_DISTANCE 8u
/* Replicas take a part of a track only when it has at least one in this many of
 * the sectors that were asked for. */
#define COPIES_SHARE 4u

/* What makes a group good for replicas: near, and empty. The lowest cost
 * wins. */
static uint64_t copies_cost(const struct alloc *alloc, uint32_t group,
			    uint32_t goal)
{
	uint64_t distance = group > goal ? group - goal : goal - group;
	uint64_t used = TRAX_GROUP_SECTORS -
			space_group_free(alloc->space, group);

	return distance * TRAX_GROUP_SECTORS + used * FULL_DISTANCE;
}

/* The best group that has not been tried; false: none. */
static bool copies_group(const struct alloc *alloc, uint32_t goal,
			 uint64_t least, const bool *closed, uint64_t above,
			 uint32_t *group)
{
	uint32_t i, groups = space_groups(alloc->space);
	uint64_t cost, best = UINT64_MAX;

	for (i = 0; i < groups; i++) {
		cost = copies_cost(alloc, i, goal) * groups + i + 1;
		if (cost <= above || cost >= best || (closed && closed[i]) ||
		    space_group_free(alloc->space, i) < least ||
		    space_group_largest(alloc->space, i) < least)
			continue;
		best = cost;
		*group = i;
	}
	return best != UINT64_MAX;
}

/* The first free track from `near` on in a group, else its best part of one. */
static struct span copies_search(const struct alloc *alloc, uint32_t group,
				 uint64_t near, uint64_t n)
{
	uint64_t low = group_first(group), to = group_first(group + 1);
	uint64_t from = near > low && near < to ? near : low;
	struct span best = { 0, 0 }, run, track;
	struct run_parts view;
	unsigned turn, left;

	for (turn = 0; turn < 2; turn++, to = from, from = low) {
		uint64_t at = from;

		for (left = WALK_RUNS; left && at < to; left--) {
			if (!next_run(alloc, at, to, n / COPIES_SHARE + 1,
				      &run, &at))
				break;
			view_of(alloc, run, &view);
			track = view.whole;
			if (span_len(track))
				track = track_span(alloc, track.first);
			if (span_has(view.head, n))
				return view.head;
			if (span_len(track) && span_len(track) >= n)
				return track;
			if (span_len(view.head) > span_len(best))
				best = view.head;
			if (span_len(track) > span_len(best))
				best = track;
			if (span_len(view.tail) > span_len(best))
				best = view.tail;
		}
	}
	return best;
}

/* From the first block boundary on: copies are whole blocks. */
static int copies_take(struct taking *taking, struct span at, uint64_t n)
{
	const uint64_t unit = taking->alloc->unit > TRAX_BLOCK_SECTORS ?
		taking->alloc->unit : TRAX_BLOCK_SECTORS;
	uint64_t first = at.first, sectors = span_len(at);

	if (taking->alloc->unit >= TRAX_BLOCK_SECTORS)
		first = (first + unit - 1) / unit * unit;
	if (first >= at.end)
		return -ENOSPC;
	sectors = at.end - first;
	sectors = (sectors < n ? sectors : n) / unit * unit;
	if (sectors < n / COPIES_SHARE || !sectors)
		return -ENOSPC;
	return take(taking, first, sectors);
}

int alloc_copies(struct alloc *alloc, uint64_t near, uint64_t n,
		 const bool *closed, struct alloc_piece *piece, uint32_t *load)
{
	struct alloc_want want = { .sectors = n };
	struct taking taking = {
		.alloc = alloc, .want = &want, .pieces = piece, .max = 1,
		.walk = WALK_RUNS, .load = load,
	};
	uint32_t goal = group_of(alloc, near), group, groups;
	uint64_t above = 0;
	int rc;

	groups = space_groups(alloc->space);
	while (copies_group(alloc, goal, n / COPIES_SHARE + 1, closed, above,
			    &group)) {
		above = copies_cost(alloc, group, goal) * groups + group + 1;
		rc = group_ready(&taking, group, n / COPIES_SHARE + 1);
		if (!rc)
			rc = copies_take(&taking, copies_search(alloc, group,
								near, n), n);
		if (rc != -ENOSPC)
			return rc;
	}
	return -ENOSPC;
}

/* ---- Directories ---- */

uint64_t alloc_dir_goal(struct alloc *alloc, uint64_t parent_goal)
{
	uint32_t goal = group_of(alloc, parent_goal);
	uint32_t groups = space_groups(alloc->space);
	uint32_t i, group;

	for (i = 0; i < groups; i++) {
		group = group_nth(goal, i);
		if (space_group_free(alloc->space, group) >= GROUP_ROOM)
			return group_first(group);
	}
	return parent_goal;
}

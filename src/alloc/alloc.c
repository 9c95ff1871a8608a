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

#include "alloc/alloc_internal.h"

/* The same limit once a whole free track has been found. */
#define WALK_MORE_RUNS 64u
/* A partly used track becomes a directory's open track only when at least one
 * part in this many of it is free: smaller parts take two or three files, and
 * whoever reads the directory seeks for each. */
#define ROOMY_SHARE 2u
/* Files that fill more than a track go on where the last directory has ended
 * when at least one part in this many of that track is free. */
#define LAST_SHARE 8u
/* A directory moves to another group when fewer sectors than this are free in
 * its own group: a sixteenth of a group. */
#define GROUP_ROOM (TRAX_GROUP_SECTORS / 16)
/* So many directories are made between two looks at all groups: with 20,000 of
 * them a look takes some 50 us. */
#define DIRS_PER_LOOK 256u

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

void alloc_set_turn(struct alloc *alloc, struct loop_turn *turn)
{
	alloc->turn = turn;
}

void alloc_charge(const struct alloc *alloc, uint64_t ns)
{
	if (alloc->turn)
		turn_charge(alloc->turn, TURN_PLACE, ns);
}

void alloc_set_geom(struct alloc *alloc, const struct geom *geom)
{
	alloc->geom = geom;
	alloc->sectors = geom_sectors(geom);
	space_forget_misfits(alloc->space);
}

/* ---- Tracks ---- */

uint64_t alloc_round_up(const struct alloc *alloc, uint64_t sector)
{
	return (sector + alloc->unit - 1) / alloc->unit * alloc->unit;
}

uint64_t alloc_round_down(const struct alloc *alloc, uint64_t sector)
{
	return sector / alloc->unit * alloc->unit;
}

struct span track_span(const struct alloc *alloc, uint64_t sector)
{
	struct geom_track track;

	if (sector >= alloc->sectors)
		return (struct span){ sector, sector };
	geom_track_of(alloc->geom, sector, &track);
	return (struct span){
		alloc_round_up(alloc, track.first),
		alloc_round_down(alloc, track.first + track.sectors),
	};
}

bool track_known(const struct alloc *alloc, uint64_t sector)
{
	struct geom_track track;

	geom_track_of(alloc->geom, sector, &track);
	return track.known;
}

bool track_is_boundary(const struct alloc *alloc, uint64_t sector)
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
	       track_is_boundary(alloc, sector) &&
	       track_is_boundary(alloc, sector + n);
}

uint64_t track_whole_end(const struct alloc *alloc, uint64_t sector,
			 uint64_t end)
{
	struct geom_track track;
	unsigned i;

	if (!track_is_boundary(alloc, sector))
		return 0;
	for (i = 0; i < TRAX_BLOCK_SECTORS && end > sector; i++) {
		if (track_is_boundary(alloc, end))
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
	whole = track_whole_end(alloc, sector, end);
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

bool span_has(struct span span, uint64_t n)
{
	return span.end >= span.first + n;
}

uint64_t span_len(struct span span)
{
	return span.end > span.first ? span.end - span.first : 0;
}

void span_view(const struct alloc *alloc, struct span run,
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
		view->whole.first =
			alloc_round_up(alloc, next.first + next.sectors);
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

bool group_next_run(const struct alloc *alloc, uint64_t from, uint64_t to,
		    uint64_t least, struct span *run, uint64_t *next)
{
	struct range range;

	alloc_charge(alloc, WALK_RUN_NS);
	if (!rangeset_next_long(space_free_set(alloc->space), from, least,
				&range) ||
	    range.first >= to)
		return false;
	*next = range.first + range.n;
	run->first =
		alloc_round_up(alloc, range.first > from ? range.first : from);
	run->end = range.first + range.n;
	if (run->end > alloc->sectors)
		run->end = alloc->sectors;
	run->end = alloc_round_down(alloc, run->end);
	return true;
}

/* ---- Groups ---- */

uint64_t group_first(uint32_t group)
{
	return (uint64_t)group * TRAX_GROUP_SECTORS;
}

uint32_t group_of(const struct alloc *alloc, uint64_t sector)
{
	uint32_t groups = space_groups(alloc->space);
	uint64_t group = sector / TRAX_GROUP_SECTORS;

	return group < groups ? (uint32_t)group : 0;
}

uint32_t group_nth(uint32_t goal, uint32_t i)
{
	if (i == 0)
		return goal;
	return i <= goal ? i - 1 : i;
}

bool group_walk_next(const struct alloc *alloc, struct group_walk *walk,
		     uint64_t n, uint32_t *group)
{
	const struct space *space = alloc->space;

	if (!walk->begun) {
		walk->begun = true;
		*group = walk->goal;
		return true;
	}
	*group = space_group_next(space, walk->next, n);
	if (*group == walk->goal)
		*group = space_group_next(space, walk->goal + 1, n);
	walk->next = *group + 1;
	return *group < space_groups(space);
}

int group_ready(struct taking *taking, uint32_t group, uint64_t n)
{
	const struct space *space = taking->alloc->space;

	alloc_charge(taking->alloc, WALK_GROUP_NS);
	if (space_group_free(space, group) < n ||
	    space_group_largest(space, group) < n)
		return -ENOSPC;
	if (space_group_loaded(space, group))
		return 0;
	*taking->load = group;
	return -EAGAIN;
}

/* May the group be loaded to see whether n sectors fit?  Of a run that is twice
 * as long one side of a track's end is long enough. */
static bool may_load(const struct taking *taking, uint32_t group, uint64_t n)
{
	const unsigned loads = taking->want->loads;

	return loads < SEARCH_LOADS ||
	       (loads < 2 * SEARCH_LOADS &&
		space_group_largest(taking->alloc->space, group) >= 2 * n);
}

int group_may_fit(struct taking *taking, uint32_t group,
		  enum space_fit fit, uint64_t n)
{
	int rc;

	if (space_group_misfit(taking->alloc->space, group, fit) <= n ||
	    !taking->walk) {
		alloc_charge(taking->alloc, WALK_GROUP_NS);
		return -ENOSPC;
	}
	rc = group_ready(taking, group, n);
	return rc == -EAGAIN && !may_load(taking, group, n) ? -ENOSPC : rc;
}

/* ---- Taking ---- */

static void taking_undo(struct taking *taking)
{
	while (taking->n) {
		taking->n--;
		space_give_back(taking->alloc->space,
				taking->extents[taking->n].sector,
				taking->extents[taking->n].n);
	}
}

int taking_add(struct taking *taking, uint64_t sector, uint64_t n)
{
	struct alloc *alloc = taking->alloc;
	int rc;

	if (taking->n == taking->max)
		return -E2BIG;
	rc = space_take(alloc->space, sector, n);
	if (rc)
		return rc;
	taking->extents[taking->n++] = (struct alloc_extent){
		.sector = sector,
		.n = n,
		.whole_tracks = alloc_is_whole(alloc, sector, n),
		.known = track_known(alloc, sector),
	};
	taking->left -= n < taking->left ? n : taking->left;
	return 0;
}

struct span span_free_from(const struct alloc *alloc, uint64_t sector)
{
	struct span run = { sector, sector };
	uint64_t next;

	if (sector % alloc->unit == 0 && sector < alloc->sectors &&
	    group_next_run(alloc, sector, sector + 1, 1, &run, &next) &&
	    run.first == sector && run.end > sector)
		return run;
	return (struct span){ sector, sector };
}

bool stream_is_at(const struct alloc *alloc, uint64_t sector)
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

static struct open_dir *open_find(struct alloc *alloc, uint64_t dir)
{
	unsigned i;

	for (i = 0; dir && i < OPEN_DIRS; i++)
		if (alloc->open[i].dir == dir)
			return &alloc->open[i];
	return NULL;
}

/* A directory opens a track, and gives up the one it has had longest. */
static void open_add(struct alloc *alloc, uint64_t dir, struct span part)
{
	struct open_dir *open = open_find(alloc, dir);
	unsigned i;

	if (!dir)
		return;
	if (!open) {
		open = &alloc->open[0];
		for (i = 1; i < OPEN_DIRS; i++)
			if (alloc->open[i].used < open->used)
				open = &alloc->open[i];
		*open = (struct open_dir){ .dir = dir };
	}
	for (i = 1; i < OPEN_PARTS; i++)
		open->part[i - 1] = open->part[i];
	open->part[OPEN_PARTS - 1] = part;
	open->used = ++alloc->clock;
	alloc->opened = part.first;
}

void alloc_forget_dir(struct alloc *alloc, uint64_t dir)
{
	struct open_dir *open = open_find(alloc, dir);

	if (open)
		*open = (struct open_dir){ .dir = 0 };
}

/* Finds the first n free sectors inside a span. */
static bool span_find(const struct alloc *alloc, struct span span, uint64_t n,
		      struct span *run)
{
	uint64_t from = span.first;

	while (from < span.end &&
	       group_next_run(alloc, from, span.end, n, run, &from)) {
		if (run->end > span.end)
			run->end = span.end;
		if (span_has(*run, n))
			return true;
	}
	return false;
}

/* Finds the first n free sectors on the open tracks of a directory. */
static bool open_room(const struct alloc *alloc, const struct open_dir *open,
		      uint64_t n, struct span *run)
{
	unsigned i;

	for (i = 0; i < OPEN_PARTS; i++)
		if (span_find(alloc, open->part[i], n, run))
			return true;
	return false;
}

static void best_partial(const struct alloc *alloc, struct span part,
			 uint64_t n, uint64_t roomy, struct best *best)
{
	if (!span_has(part, n) || stream_is_at(alloc, part.first))
		return;
	if (!span_len(best->roomy) && span_has(part, roomy))
		best->roomy = part;
	if (!span_len(best->fit) ||
	    (best->longest ? span_len(part) > span_len(best->fit) :
			     span_len(part) < span_len(best->fit)))
		best->fit = part;
}

/* Returns the first of some free tracks that is not where a growing file goes
 * on. */
static struct span track_best(const struct alloc *alloc, struct span whole)
{
	struct geom_track track;

	if (!stream_is_at(alloc, whole.first))
		return track_span(alloc, whole.first);
	geom_track_of(alloc->geom, whole.first, &track);
	if (track.first + track.sectors >= whole.end)
		return (struct span){ 0, 0 };
	return track_span(alloc, track.first + track.sectors);
}

/* Looks for room for n sectors inside a track in the runs of a group. */
static void best_of_runs(struct taking *taking, uint32_t group, uint64_t n,
			 uint64_t roomy, struct best *best)
{
	const struct alloc *alloc = taking->alloc;
	uint64_t from = group_first(group), to = group_first(group + 1);
	struct span run, track;
	struct run_parts view;
	unsigned left = WALK_RUNS;

	while (left && taking->walk && !span_len(best->roomy)) {
		if (!group_next_run(alloc, from, to, n, &run, &from))
			return;
		left--;
		taking->walk--;
		if (!span_has(run, n))
			continue;
		span_view(alloc, run, &view);
		best_partial(alloc, view.head, n, roomy, best);
		best_partial(alloc, view.tail, n, roomy, best);
		if (!span_len(view.whole) ||
		    (span_len(best->whole) &&
		     !(best->spare && span_len(view.whole) < best->run)))
			continue;
		track = track_best(alloc, view.whole);
		if (!span_has(track, n) || !span_len(track))
			continue;
		best->whole = track;
		best->run = span_len(view.whole);
		if (!best->spare)
			left = left < WALK_MORE_RUNS ? left : WALK_MORE_RUNS;
	}
}

/* Chooses in a group a roomy partly used track, else a free track, else the
 * partly used track that fits best; empty: n sectors fit nowhere. */
static struct span group_best(struct taking *taking, uint32_t group,
		       uint64_t n, uint64_t roomy, bool longest)
{
	struct best best = { .longest = longest,
			     .spare = taking->want->spare };

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

int part_search(struct taking *taking, uint64_t goal, uint64_t n,
		uint64_t roomy, bool longest, struct span *at)
{
	struct group_walk walk = { .goal = group_of(taking->alloc, goal) };
	uint32_t group;
	int rc;

	while (group_walk_next(taking->alloc, &walk, n, &group)) {
		rc = group_may_fit(taking, group, SPACE_FIT_PART, n);
		if (rc == -EAGAIN)
			return rc;
		if (rc)
			continue;
		*at = group_best(taking, group, n, roomy, longest);
		if (span_len(*at))
			return 0;
	}
	return -ENOSPC;
}

/*
 * The rest of the track that a directory has opened last, if that is in the
 * goal's group and has room for the whole batch, or if the batch fills more
 * than a track anyway.  So directories that are written one after the other lie
 * one behind the other, and the last track of each is filled.
 */
static bool last_room(const struct taking *taking, uint64_t n,
		      struct span *run)
{
	const struct alloc *alloc = taking->alloc;
	const struct alloc_want *want = taking->want;
	uint64_t track = alloc_track_sectors(alloc, want->goal);
	uint64_t least = want->batch > track ? track / LAST_SHARE :
					       want->batch;

	return want->dir && alloc->opened &&
	       group_of(alloc, alloc->opened) == group_of(alloc, want->goal) &&
	       span_find(alloc, track_span(alloc, alloc->opened),
			 least > n ? least : n, run) &&
	       !stream_is_at(alloc, run->first);
}

int take_small(struct taking *taking, uint64_t after, uint64_t n)
{
	struct alloc *alloc = taking->alloc;
	struct open_dir *open;
	struct span run;
	int rc;

	if (after) {
		run = span_free_from(alloc, after);
		if (span_has(run, n) &&
		    after + n <= track_span(alloc, after).end)
			return taking_add(taking, after, n);
	}
	open = open_find(alloc, taking->want->dir);
	if (open && open_room(alloc, open, n, &run)) {
		open->used = ++alloc->clock;
		rc = taking_add(taking, run.first, n);
		if (!rc)
			taking->extents[taking->n - 1].follows = true;
		return rc;
	}
	rc = last_room(taking, n, &run) ? 0 :
	     part_search(taking, taking->want->goal, n, roomy_of(taking, n),
			 false, &run);
	if (rc)
		return rc;
	rc = taking_add(taking, run.first, n);
	if (!rc && taking->want->dir)
		open_add(alloc, taking->want->dir, run);
	return rc;
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
	       struct alloc_extent *extents, int max, uint32_t *load)
{
	struct taking taking = {
		.alloc = alloc, .want = want, .extents = extents, .max = max,
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

/* ---- Directories ---- */

static bool group_is_roomy(const struct alloc *alloc, uint32_t group)
{
	return group < space_groups(alloc->space) &&
	       space_group_free(alloc->space, group) >= GROUP_ROOM;
}

/* Looks for the first group with room, from the outer edge. */
static void dir_look(struct alloc *alloc)
{
	const uint32_t groups = space_groups(alloc->space);
	uint32_t group = 0;

	while (group < groups && !group_is_roomy(alloc, group))
		group++;
	alloc_charge(alloc, (uint64_t)group * WALK_GROUP_NS);
	alloc->dir_group = group;
	alloc->dirs_left = DIRS_PER_LOOK;
}

uint64_t alloc_dir_goal(struct alloc *alloc, uint64_t parent_goal)
{
	if (group_is_roomy(alloc, group_of(alloc, parent_goal)))
		return group_first(group_of(alloc, parent_goal));
	if (!alloc->dirs_left ||
	    (!group_is_roomy(alloc, alloc->dir_group) &&
	     alloc->dir_group < space_groups(alloc->space)))
		dir_look(alloc);
	alloc->dirs_left--;
	return group_is_roomy(alloc, alloc->dir_group) ?
	       group_first(alloc->dir_group) : parent_goal;
}

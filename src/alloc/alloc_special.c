/*
 * alloc_special.c - places that are chosen when they are written, node tracks,
 * and room for replicas.
 */
#include "alloc/alloc_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "alloc/alloc.h"

/* ---- Places that are chosen later ---- */

/* Tracks looked at for another one with room, so that a search takes some
 * microseconds. */
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
		part.first = alloc_round_up(alloc, run.first);
	if (part.end > run.first + run.n)
		part.end = alloc_round_down(alloc, run.first + run.n);
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

void alloc_window(const struct alloc *alloc, const struct alloc_extent *extent,
		  struct range *window)
{
	const struct span own = track_span(alloc, extent->sector);
	uint64_t at = track_after(alloc, extent->sector), end, place;
	unsigned look = WINDOW_LOOK;

	*window = (struct range){ own.first, own.end - own.first };
	while (look-- && at < alloc->sectors) {
		end = track_after(alloc, at);
		if (alloc_next(alloc, at, end, extent->n, &place)) {
			window->n = end - own.first;
			return;
		}
		at = end;
	}
}

int alloc_move(struct alloc *alloc, struct alloc_extent *extent, uint64_t to)
{
	struct span part = free_part(alloc, to);
	int rc = space_take(alloc->space, to, extent->n);
	struct span *open;
	unsigned i;

	if (rc)
		return rc;
	space_give_back(alloc->space, extent->sector, extent->n);
	part.first = to;
	for (i = 0; i < OPEN_DIRS * OPEN_PARTS; i++) {
		open = &alloc->open[i / OPEN_PARTS].part[i % OPEN_PARTS];
		if (open->first < extent->sector + extent->n &&
		    open->end > extent->sector)
			*open = part;
	}
	extent->sector = to;
	extent->known = track_known(alloc, to);
	return 0;
}

/* ---- Node tracks ---- */

/* A free part that is smaller than one in this many of a track is taken for
 * nodes only when nothing larger is free. */
#define NODE_TRACK_SHARE 4u

/* Finds a whole free track in the group of `near` or, if it has none, the
 * longest part of one, unless another group has more. */
static int node_search(struct taking *taking, uint64_t near, uint64_t least,
		       struct span *at)
{
	return part_search(taking, near, least, UINT64_MAX / 2, true, at);
}

int alloc_node_track(struct alloc *alloc, uint64_t near, unsigned loads,
		     uint64_t *sector, uint32_t *sectors, uint32_t *load)
{
	struct alloc_want want = { .sectors = TRAX_NODE_SECTORS,
				   .loads = loads };
	struct alloc_extent extent;
	struct taking taking = {
		.alloc = alloc, .want = &want, .extents = &extent, .max = 1,
		.walk = WALK_ALL_RUNS, .load = load,
	};
	uint64_t least = alloc_track_sectors(alloc, near) / NODE_TRACK_SHARE;
	struct span at;
	uint64_t n;
	int rc = -ENOSPC;

	if (least > TRAX_NODE_SECTORS)
		rc = node_search(&taking, near, least, &at);
	taking.walk = WALK_ALL_RUNS;
	/* This one is not refused while there is any room. */
	want.loads = 0;
	if (rc == -ENOSPC)
		rc = node_search(&taking, near, TRAX_NODE_SECTORS, &at);
	if (rc)
		return rc;
	/* Slots are aligned to the drive's physical block. */
	n = span_len(at) / TRAX_NODE_SECTORS * TRAX_NODE_SECTORS;
	rc = taking_add(&taking, at.first, n);
	if (rc)
		return rc;
	*sector = at.first;
	*sectors = (uint32_t)n;
	return 0;
}

/* ---- Replicas ---- */

/* A full group counts as if it were this many groups further away. */
#define FULL_DISTANCE 8u
/* Replicas take a part of a track only when it has at least one in this many of
 * the sectors that were asked for. */
#define COPIES_SHARE 4u

/* The cost of a group for replicas: the lowest one wins, of a group that is
 * near and empty. */
static uint64_t copies_cost(const struct alloc *alloc, uint32_t group,
			    uint32_t goal)
{
	uint64_t distance = group > goal ? group - goal : goal - group;
	uint64_t used = TRAX_GROUP_SECTORS -
			space_group_free(alloc->space, group);

	return distance * TRAX_GROUP_SECTORS + used * FULL_DISTANCE;
}

/* Groups that are tried for one request; each may have to be loaded. */
#define COPIES_GROUPS 8u

struct copies_group {
	uint32_t group;
	uint64_t cost;
};

/* Lists the best groups, the best one first; returns their number. */
static unsigned copies_groups(const struct alloc *alloc, uint32_t goal,
			      uint64_t least, const bool *closed,
			      struct copies_group *best)
{
	const struct space *space = alloc->space;
	const uint32_t groups = space_groups(space);
	unsigned n = 0, at;

	alloc_charge(alloc, (uint64_t)groups * WALK_GROUP_NS);
	for (uint32_t i = 0; i < groups; i++) {
		const uint64_t cost = copies_cost(alloc, i, goal);

		if ((closed && closed[i]) ||
		    (n == COPIES_GROUPS && cost >= best[n - 1].cost) ||
		    space_group_free(space, i) < least ||
		    space_group_misfit(space, i, SPACE_FIT_PART) <= least ||
		    space_group_largest(space, i) < least)
			continue;
		n += n < COPIES_GROUPS;
		for (at = n - 1; at && best[at - 1].cost > cost; at--)
			best[at] = best[at - 1];
		best[at] = (struct copies_group){ i, cost };
	}
	return n;
}

/* Keeps the better one of the free parts of a run and *best; true: it has n
 * sectors. */
static bool copies_look(const struct alloc *alloc, struct span run, uint64_t n,
			struct span *best)
{
	struct run_parts view;
	struct span track;

	span_view(alloc, run, &view);
	track = view.whole;
	if (span_len(track))
		track = track_span(alloc, track.first);
	if (span_has(view.head, n)) {
		*best = view.head;
		return true;
	}
	if (span_len(track) && span_len(track) >= n) {
		*best = track;
		return true;
	}
	if (span_len(view.head) > span_len(*best))
		*best = view.head;
	if (span_len(track) > span_len(*best))
		*best = track;
	if (span_len(view.tail) > span_len(*best))
		*best = view.tail;
	return false;
}

/* Finds the first free track from `near` on in a group, else its largest free
 * part of one. */
static struct span copies_search(struct taking *taking, uint32_t group,
				 uint64_t near, uint64_t n)
{
	const struct alloc *alloc = taking->alloc;
	const uint64_t least = n / COPIES_SHARE + 1;
	uint64_t low = group_first(group), to = group_first(group + 1);
	uint64_t from = near > low && near < to ? near : low;
	struct span best = { 0, 0 }, run;

	for (unsigned turn = 0; turn < 2; turn++, to = from, from = low) {
		uint64_t at = from;

		while (taking->walk && at < to &&
		       group_next_run(alloc, at, to, least, &run, &at)) {
			taking->walk--;
			if (copies_look(alloc, run, n, &best))
				return best;
		}
	}
	if (span_len(best) < least && taking->walk)
		space_set_misfit(alloc->space, group, SPACE_FIT_PART,
				 (uint32_t)least);
	return best;
}

/* Takes sectors from the first block boundary on, as replicas are whole
 * blocks. */
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
	return taking_add(taking, first, sectors);
}

int alloc_copies(struct alloc *alloc, uint64_t near, uint64_t n,
		 const bool *closed, struct alloc_extent *extent,
		 uint32_t *load)
{
	struct alloc_want want = { .sectors = n };
	struct taking taking = {
		.alloc = alloc, .want = &want, .extents = extent, .max = 1,
		.walk = WALK_ALL_RUNS, .load = load,
	};
	const uint64_t least = n / COPIES_SHARE + 1;
	struct copies_group best[COPIES_GROUPS];
	const unsigned groups = copies_groups(alloc, group_of(alloc, near),
					      least, closed, best);
	int rc;

	for (unsigned i = 0; i < groups && taking.walk; i++) {
		rc = group_ready(&taking, best[i].group, least);
		if (!rc)
			rc = copies_take(&taking,
					 copies_search(&taking, best[i].group,
						       near, n), n);
		if (rc != -ENOSPC)
			return rc;
	}
	return -ENOSPC;
}

/* ---- Room in tracks that are in use ---- */

void alloc_track(const struct alloc *alloc, uint64_t sector,
		 struct range *track)
{
	struct span span = track_span(alloc, sector);

	*track = (struct range){ span.first, span_len(span) };
}

static void fill_look(struct span part, uint64_t n, struct span *best)
{
	uint64_t has = span_len(part), had = span_len(*best);

	if (had < n ? has > had : has >= n && has < had)
		*best = part;
}

static struct span fill_search(const struct alloc *alloc, uint32_t group,
			       uint64_t n)
{
	uint64_t at = group_first(group), to = group_first(group + 1);
	struct span best = { 0, 0 }, run;
	struct run_parts view;
	unsigned left;

	for (left = WALK_RUNS; left && at < to; left--) {
		if (!group_next_run(alloc, at, to, TRAX_BLOCK_SECTORS, &run,
				    &at))
			break;
		if (!span_len(run))
			continue;
		span_view(alloc, run, &view);
		fill_look(view.head, n, &best);
		fill_look(view.tail, n, &best);
	}
	return best;
}

int alloc_fill(struct alloc *alloc, uint64_t near, uint64_t n,
	       struct alloc_extent *extent, uint32_t *load)
{
	struct alloc_want want = { .sectors = n };
	struct taking taking = {
		.alloc = alloc, .want = &want, .extents = extent, .max = 1,
		.walk = WALK_RUNS, .load = load,
	};
	uint32_t group = group_of(alloc, near);
	struct span best;
	uint64_t has;
	int rc = group_ready(&taking, group, TRAX_BLOCK_SECTORS);

	if (rc)
		return rc;
	best = fill_search(alloc, group, n);
	has = span_len(best) / TRAX_BLOCK_SECTORS * TRAX_BLOCK_SECTORS;
	has = has < n ? has : n;
	return has ? taking_add(&taking, best.first, has) : -ENOSPC;
}

int alloc_fill_at(struct alloc *alloc, uint64_t sector, uint64_t n,
		  struct alloc_extent *extent)
{
	struct alloc_want want = { .sectors = n };
	struct taking taking = {
		.alloc = alloc, .want = &want, .extents = extent, .max = 1,
	};
	const struct span track = track_span(alloc, sector);
	const struct span run = span_free_from(alloc, sector);
	uint64_t has = run.end < track.end ? run.end : track.end;

	has = has > sector ? (has - sector) / TRAX_BLOCK_SECTORS *
				     TRAX_BLOCK_SECTORS : 0;
	has = has < n ? has : n;
	return has ? taking_add(&taking, sector, has) : -ENOSPC;
}

/*
 * alloc_large.c - room for more than a track: whole tracks in order, and other
 * runs where there are none.
 */
#include "alloc/alloc_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "alloc/alloc.h"

/* A new file begins at least this many sectors (32 MiB) behind one that is
 * growing, so that both can go on in order. */
#define STREAM_SKIP 65536u

/* Where there are no whole tracks, free runs down to this part of a track are
 * taken, the longest first, in this many groups, before shorter ones are. */
#define LONG_PART 8u
#define LONG_GROUPS 8u

/* ---- More than a track ---- */

/* Finds the longest run of whole tracks in a group, or the first with `enough`;
 * none that is shorter than half of `track`. */
static struct span whole_of_group(struct taking *taking, uint32_t group,
				  uint64_t track, uint64_t enough)
{
	struct alloc *alloc = taking->alloc;
	uint64_t from = group_first(group), to = group_first(group + 1);
	struct span best = { 0, 0 }, run;
	struct run_parts view;
	unsigned i;

	for (i = 0; i < WALK_RUNS && taking->walk && from < to; i++) {
		if (!group_next_run(alloc, from, to, track / 2, &run, &from))
			break;
		taking->walk--;
		span_view(alloc, run, &view);
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

	if (!stream_is_at(alloc, at->first) ||
	    span_len(*at) < STREAM_SKIP + STREAM_SKIP / 2 + want)
		return;
	first = track_span(alloc, at->first + STREAM_SKIP).first;
	if (track_is_boundary(alloc, first))
		at->first = first;
}

/* Sectors of the shortest track, which is the innermost, or an eighth less, for
 * defects. */
static uint64_t short_track(const struct alloc *alloc, uint64_t goal)
{
	const uint64_t here = alloc_track_sectors(alloc, goal);
	uint64_t n = here;
	struct geom_track last;

	/* The end of the disk may cut its last track short. */
	geom_track_of(alloc->geom, alloc->sectors - 1, &last);
	if (last.first)
		n = alloc_track_sectors(alloc, last.first - 1);
	n = n < here ? n : here;
	return n - n / 8;
}

static int whole_search(struct taking *taking, struct span *at)
{
	struct alloc *alloc = taking->alloc;
	const uint64_t least = short_track(alloc, taking->want->goal);
	struct group_walk walk = {
		.goal = group_of(alloc, taking->want->goal),
	};
	uint64_t track;
	uint32_t group;
	int rc;

	while (group_walk_next(alloc, &walk, least, &group)) {
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

	end = track_whole_end(alloc, span.first,
			      end < span.end ? end : span.end);
	if (!end) {
		span.end = track_span(alloc, span.first).end;
		if (span_len(span) > taking->left || !span_len(span))
			return -ENOSPC;
		end = span.end;
	}
	return taking_add(taking, span.first, end - span.first);
}

/*
 * Takes room right behind the file's last sector: the rest of its track, then
 * the following tracks as far as they are free.
 */
static int take_after(struct taking *taking, uint64_t after)
{
	struct alloc *alloc = taking->alloc;
	struct span run = span_free_from(alloc, after);
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
		rc = taking_add(taking, after, n);
		if (rc)
			return rc;
		run.first = alloc_round_up(alloc, after + n);
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

uint64_t taking_end(const struct taking *taking)
{
	const struct alloc_extent *last;

	if (!taking->n)
		return taking->want->after;
	last = &taking->extents[taking->n - 1];
	return last->sector + last->n;
}

/*
 * Ends an extent of a growing file: takes as much of the next track as makes
 * the sum a multiple of 8 sectors.
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
	run = span_free_from(taking->alloc, taking_end(taking));
	track = track_span(taking->alloc, taking_end(taking));
	if (span_len(run) && span_has(track, n) &&
	    span_has(run, span_len(track)))
		return taking_add(taking, run.first, n);
	rc = whole_search(taking, &run);
	if (rc == 0)
		return taking_add(taking, run.first, n);
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
			run.first = alloc_round_up(alloc,
						   track.first + track.sectors);
			continue;
		}
		end = alloc_cut(alloc, run.first, end);
		rc = taking_add(taking, run.first, end - run.first);
		run.first = end;
	}
	return rc;
}

/* Takes the free runs of a group that have `least` sectors or more. */
static int take_runs(struct taking *taking, uint32_t group, uint64_t least)
{
	uint64_t from = group_first(group), to = group_first(group + 1);
	struct span run;
	int rc = group_ready(taking, group, least);

	while (!rc && taking->left &&
	       group_next_run(taking->alloc, from, to, least, &run, &from))
		rc = take_run(taking, run);
	return rc;
}

/* Takes long runs first, in some groups, as each extent costs a seek, whatever
 * its length. -ENOSPC: they do not suffice. */
static int take_long(struct taking *taking)
{
	const uint32_t goal = group_of(taking->alloc, taking->want->goal);
	const uint32_t groups = space_groups(taking->alloc->space);
	uint64_t track = alloc_track_sectors(taking->alloc,
					     taking->want->goal);
	unsigned part;
	uint32_t i;
	int rc;

	for (i = 0; i < groups && i < LONG_GROUPS; i++)
		for (part = 2; part <= LONG_PART && taking->left; part *= 2) {
			rc = take_runs(taking, group_nth(goal, i),
				       track / part);
			if (rc && rc != -ENOSPC)
				return rc;
		}
	return taking->left ? -ENOSPC : 0;
}

/*
 * Takes any free sectors, in extents that lie inside a track or are whole ones.
 * It passes over runs so short that more of them would be needed than there are
 * extents; -E2BIG when there are only such runs.
 */
static int take_any(struct taking *taking)
{
	struct alloc *alloc = taking->alloc;
	const uint32_t goal = group_of(alloc, taking->want->goal);
	const uint32_t groups = space_groups(alloc->space);
	uint64_t least = alloc->unit;
	uint32_t i, group;
	bool shorter = false;
	int rc;

	for (i = 0; i < groups && taking->left; i++) {
		group = group_nth(goal, i);
		if (taking->n == taking->max)
			return -E2BIG;
		least = 1 + (taking->left - 1) / (taking->max - taking->n);
		least = least > alloc->unit ? least : alloc->unit;
		rc = take_runs(taking, group, least);
		if (rc && rc != -ENOSPC)
			return rc;
		shorter |= space_group_free(alloc->space, group) != 0;
	}
	if (!taking->left)
		return 0;
	return shorter && least > alloc->unit ? -E2BIG : -ENOSPC;
}

int take_large(struct taking *taking)
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
	if (!rc && taking->left && taking->want->stream && taking->n) {
		rc = take_rounding(taking);
		if (rc != -ENOSPC)
			return rc;
	} else if (!rc && taking->left) {
		rc = take_small(taking, taking_end(taking), taking->left);
	}
	if (rc == -ENOSPC)
		rc = take_long(taking);
	return rc == -ENOSPC ? take_any(taking) : rc;
}

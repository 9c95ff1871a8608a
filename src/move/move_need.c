/*
 * move_need.c - finds out whether users need free tracks.  While users are at
 * work tracks are emptied only if large files had to go to many small pieces of
 * late.
 *
 * A piece costs about a turn, when it is written and each time it is read.
 * Emptying a track beside users costs some turns for lookups and changes of the
 * mapping, though the data is read and written in gaps.
 */
#include "base/units.h"
#include "move/move_internal.h"

/* Time constant with which earlier placements are forgotten: after it a piece
 * counts for 1/e of a new one. */
#define NEED_NS (UINT64_C(60) * NS_PER_SECOND)
#define NEED_LOOK_NS NS_PER_SECOND
/* Pieces in which a track's worth of a large file lies from which on emptying
 * tracks pays. */
#define NEED_PIECES 3u

void need_look(struct moves *moves, uint64_t now_ns)
{
	struct move_need *need = &moves->need;
	const struct alloc_large *large = alloc_large(moves->fs->alloc);
	struct space *space = tree_space(moves->fs->tree);
	uint64_t passed_ns = now_ns - need->looked_ns;
	double keep, tracks;
	uint32_t track;

	if (passed_ns < NEED_LOOK_NS)
		return;
	keep = passed_ns < NEED_NS ? 1 - (double)passed_ns / NEED_NS : 0;
	need->looked_ns = now_ns;
	need->sectors = need->sectors * keep +
			(double)(large->sectors - need->seen.sectors);
	need->pieces = need->pieces * keep +
		       (double)(large->pieces - need->seen.pieces);
	need->seen = *large;
	track = alloc_track_sectors(moves->fs->alloc,
				    (uint64_t)large->group *
				    TRAX_GROUP_SECTORS);
	tracks = need->sectors / track;
	need->is_needed = tracks >= 1 &&
		need->pieces > NEED_PIECES * tracks &&
		space_group_loaded(space, large->group) &&
		(double)alloc_free_tracks(moves->fs->alloc, large->group,
					  (uint64_t)need->sectors) <
			need->sectors;
}

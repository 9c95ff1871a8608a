/*
 * alloc.h - chooses places for data: on track boundaries, near its directory,
 * from the outer edge inwards.
 *
 * Policy only.  It looks at the free sets of the space and at the geometry, and
 * takes the room that it chooses (space_take).  The caller makes that lasting
 * by OWNER items, or returns it by space_give_back.  It does no I/O: if it
 * needs a group whose free set is not loaded, it returns -EAGAIN and the
 * group's number.
 *
 * An extent lies inside one track or is a run of whole tracks.
 */
#ifndef TRAX_ALLOC_ALLOC_H
#define TRAX_ALLOC_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/turn.h"
#include "diskmodel/geom.h"
#include "space/space.h"

struct alloc;

struct alloc_extent {
	uint64_t sector;
	uint64_t n;
	bool whole_tracks;	/* it is a run of whole tracks */
	bool known;		/* it lies on tracks whose boundaries the
				 * geometry knows */
	bool follows;		/* it lies on the open track of its directory */
};

int alloc_new(struct space *space, const struct geom *geom,
	      uint32_t physical_sectors, struct alloc **alloc);
void alloc_free(struct alloc *alloc);
/* Searches are charged to this turn of the loop, which outlives the
 * allocator. */
void alloc_set_turn(struct alloc *alloc, struct loop_turn *turn);

/* Is [sector, sector + n) a run of whole tracks? */
bool alloc_is_whole(const struct alloc *alloc, uint64_t sector, uint64_t n);
/* The end of the longest part of [sector, end) that may be one extent: inside
 * one track, or a run of whole tracks. */
uint64_t alloc_cut(const struct alloc *alloc, uint64_t sector, uint64_t end);
/* The part of the track around a sector that may be given out; its length is 0
 * if nothing of it may. */
void alloc_track(const struct alloc *alloc, uint64_t sector,
		 struct range *track);
/* Sectors of the track that a file with this goal would get. */
uint32_t alloc_track_sectors(const struct alloc *alloc, uint64_t goal);

/* The geometry became known or better; old data stays where it is. */
void alloc_set_geom(struct alloc *alloc, const struct geom *geom);

struct alloc_want {
	uint64_t sectors;	/* sectors asked for, a multiple of 8 */
	uint64_t goal;		/* sector near which the directory's files go;
				   0: outer edge */
	uint64_t after;		/* continue right behind this sector if the
				   file's last extent ends there; 0: none */
	uint64_t dir;		/* directory inode: small files of one
				   directory share its open track */
	uint64_t batch;		/* sectors that will be asked for this directory
				   together, these included; 0: only these */
	bool stream;		/* more of the file follows soon: whole tracks
				   are enough, see alloc_take */
	bool spare;		/* when a free track is taken, then one of the
				   shortest run of them: long ones stay */
	unsigned loads;		/* groups that were loaded for this request so
				   far: after some, no others are looked at for
				   a better place */
};

/*
 * Finds and takes room.  Preferences, in order:
 *  1. right behind `after` on the same track or, for whole tracks, the next
 *     tracks in order;
 *  2. up to a track: inside one track: the directory's open tracks, then
 *     where the last directory has ended, then partly used tracks of the goal's
 *     group, then a free track there;
 *  3. more than a track: free whole tracks in order from the goal on, longest
 *     runs near it first; then the tail inside one track;
 *  4. the same in the next group with room, from the outer edge;
 *  5. any free sectors in extents: nothing is refused while room is left.
 * With `stream`, and more than a track wanted, the answer may be less than was
 * asked: whole tracks, and of the next one only what makes the sum a multiple
 * of 8; the file goes on there (`after`).  The sum is always one.
 * Fills extents[], returns their number (>= 1) when all of it was found;
 * -EAGAIN with *load = group whose free set is wanted; -ENOSPC (nothing is
 * taken): only pending space is left, or none; -E2BIG: more than max extents
 * (ask for less).
 */
int alloc_take(struct alloc *alloc, const struct alloc_want *want,
	       struct alloc_extent *extents, int max, uint32_t *load);

/*
 * An extent inside one track may still go elsewhere, until it is written.
 * alloc_window: its track, and the tracks up to the next one with room for n.
 * alloc_next: the first free place at or behind `from` that ends at or before
 * `end`, inside a track; what is free there is given out from its beginning in
 * steps of n, so that what is left can be used.
 * alloc_move: gives the extent back and takes the place; a directory whose open
 * track it was goes on at the new place.  -ENOMEM: nothing has changed.
 */
void alloc_window(const struct alloc *alloc, const struct alloc_extent *extent,
		  struct range *window);
bool alloc_next(const struct alloc *alloc, uint64_t from, uint64_t end,
		uint64_t n, uint64_t *place);
int alloc_move(struct alloc *alloc, struct alloc_extent *extent, uint64_t to);

/* A whole free track for nodes, near other node tracks; `loads` groups have
 * been loaded for it so far.  As alloc_take. */
int alloc_node_track(struct alloc *alloc, uint64_t near, unsigned loads,
		     uint64_t *sector, uint32_t *sectors, uint32_t *load);

/*
 * Takes room for replicas of other data: n free sectors or fewer (a multiple of
 * 8) inside one track, near a sector, preferably in emptier groups. A wholly
 * free track comes first, then the largest free part of one. Errors are those
 * of alloc_take; -ENOSPC also when only small parts are free. Groups whose
 * number is set in `closed` are left out (NULL: none is closed).
 */
int alloc_copies(struct alloc *alloc, uint64_t near, uint64_t n,
		 const bool *closed, struct alloc_extent *extent,
		 uint32_t *load);

/*
 * Takes room for data that leaves another track: at most n free sectors, a
 * multiple of 8, in a part of a track that is in use, in the group of `near`:
 * in the smallest such part that n fit into, else in the largest.  Wholly free
 * tracks stay free.  -ENOSPC: there is no such part; else as alloc_take.
 */
int alloc_fill(struct alloc *alloc, uint64_t near, uint64_t n,
	       struct alloc_extent *extent, uint32_t *load);
/* The same right at a sector: as much of n as is free there on its track. */
int alloc_fill_at(struct alloc *alloc, uint64_t sector, uint64_t n,
		  struct alloc_extent *extent);

/* The goal of a new directory: near its parent's while there is room. */
uint64_t alloc_dir_goal(struct alloc *alloc, uint64_t parent_goal);

/* A directory is forgotten: its open track is given up. */
void alloc_forget_dir(struct alloc *alloc, uint64_t dir);

#endif

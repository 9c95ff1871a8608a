/*
 * alloc_internal.h - the allocator from inside: alloc.c (tracks, groups, room
 * inside a track), alloc_large.c (more than a track), alloc_special.c (late
 * places, node tracks, replicas).
 */
#ifndef TRAX_ALLOC_ALLOC_INTERNAL_H
#define TRAX_ALLOC_ALLOC_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/alloc.h"

/* Directories whose open tracks, and growing files whose ends, are remembered;
 * of more, those not used for longest are forgotten. */
#define OPEN_DIRS 256u
#define STREAMS 64u
/* Free runs looked at in one group before the best one so far is taken: with
 * 400 ns each they take 0.2 ms. */
#define WALK_RUNS 512u

struct span {
	uint64_t first, end;
};

/* Number of tracks that a directory has open.  What a file that does not fit
 * leaves of one is for smaller files that come later.  A tree of 8,900 files on
 * tracks of 167 KB is read cold in 8.9 s with one, 8.1 with two, and 7.8 with
 * three, over which the files of a directory lie scattered. */
#define OPEN_PARTS 2u

/* The open tracks of a directory. */
struct open_dir {
	uint64_t dir;		/* inode number; 0: this entry is unused */
	struct span part[OPEN_PARTS];	/* the free parts of its open tracks,
				 * the one opened first first; empty: none */
	uint64_t used;		/* value of the clock when it was last used */
};

struct alloc {
	struct space *space;
	const struct geom *geom;
	uint32_t unit;		/* the drive's physical block, in sectors */
	struct open_dir open[OPEN_DIRS];
	uint64_t opened;	/* where a directory has opened a track last */
	uint64_t streams[STREAMS]; /* the sectors at which growing files go on;
				    * 0: unused */
	unsigned stream_next;
	uint64_t clock;
	uint64_t sectors;	/* sectors of the disk that both space and
				 * geometry know */
	struct loop_turn *turn;	/* turn of the loop that searches are charged
				 * to, or NULL */
	/* alloc_dir_goal: */
	uint32_t dir_group;	/* the group that the last look at all groups
				 * has found; `groups`: none */
	unsigned dirs_left;	/* directories until the next look */
};

/* One request, and what has been taken for it so far. */
struct taking {
	struct alloc *alloc;
	const struct alloc_want *want;
	struct alloc_extent *extents;
	int n, max;
	uint64_t left;		/* sectors still to be taken */
	unsigned walk;		/* number of runs that may still be looked at */
	uint32_t *load;
};

/* The parts of a free run. */
struct run_parts {
	struct span head, whole, tail;
};

struct best {
	bool longest;		/* take the longest part and not the one that
				 * fits best */
	bool spare;		/* see alloc_want */
	struct span roomy, fit, whole;	/* candidates of three kinds; empty:
					 * none found */
	uint64_t run;		/* sectors of the free tracks around `whole` */
};

/* Free runs looked at in all groups for one request; and the nanoseconds that
 * are charged to the turn for one, and for a group that is passed over. */
#define WALK_ALL_RUNS 1024u
/* Groups that may be loaded for one request to look for a good place, in 0.1 to
 * 0.2 s, and then as many that surely have one; after that what is known is
 * taken.  On a full disk each of 20,000 groups may have a run that is long
 * enough, but lies across two tracks. */
#define SEARCH_LOADS 8u
#define WALK_RUN_NS 400u
#define WALK_GROUP_NS 25u

/* Groups in the order of a search: the goal's, then from the outer edge. */
struct group_walk {
	uint32_t goal, next;
	bool begun;
};

/* ---- alloc.c ---- */

/* The next group that may have a free run of n sectors; false: there is no
 * other. */
bool group_walk_next(const struct alloc *alloc, struct group_walk *walk,
		     uint64_t n, uint32_t *group);

/* Charges the turn for what was looked at. */
void alloc_charge(const struct alloc *alloc, uint64_t ns);

uint64_t alloc_round_up(const struct alloc *alloc, uint64_t sector);

/* The usable part of the track that holds a sector. */
struct span track_span(const struct alloc *alloc, uint64_t sector);

/* Is there a track boundary, and may an extent end there? */
bool track_is_boundary(const struct alloc *alloc, uint64_t sector);

/*
 * The end of the run of whole tracks that begins at `sector` and ends at `end`
 * or before; 0: there is none.  Where boundaries are not aligned to the drive's
 * blocks, a few tracks are gone back to find one that is.
 */
uint64_t track_whole_end(const struct alloc *alloc, uint64_t sector,
			 uint64_t end);

bool span_has(struct span span, uint64_t n);

uint64_t span_len(struct span span);

/* Cuts a free run into its parts. */
void span_view(const struct alloc *alloc, struct span run,
	       struct run_parts *view);

/* The free run of at least `least` sectors at or behind `from` that begins
 * before `to`, clipped to units.  Sets *next to where to look on. */
bool group_next_run(const struct alloc *alloc, uint64_t from, uint64_t to,
		    uint64_t least, struct span *run, uint64_t *next);

uint64_t group_first(uint32_t group);

uint32_t group_of(const struct alloc *alloc, uint64_t sector);

/* The i-th group to try: the goal's, then all from the outer edge. */
uint32_t group_nth(uint32_t goal, uint32_t i);

/* 0, -EAGAIN, or -ENOSPC when there can't be n sectors in a row. */
int group_ready(struct taking *taking, uint32_t group, uint64_t n);

/* Like group_ready, and n sectors have not been found not to fit there since
 * the free space of the group last changed. */
int group_may_fit(struct taking *taking, uint32_t group,
		  enum space_fit fit, uint64_t n);

/* Takes [sector, sector + n) and adds it to the extents. -E2BIG: there are too
 * many extents; -ENOMEM. */
int taking_add(struct taking *taking, uint64_t sector, uint64_t n);

/* The free run that begins at exactly this sector; empty: the sector is not
 * free. */
struct span span_free_from(const struct alloc *alloc, uint64_t sector);

bool stream_is_at(const struct alloc *alloc, uint64_t sector);

/*
 * Takes n sectors inside one track:
 *
 *  1. right behind what the file has, on the same track;
 *  2. on the directory's open tracks;
 *  3. where the last directory has ended;
 *  4. where part_search finds them.  The track of 3 or 4 becomes an open one.
 */
int take_small(struct taking *taking, uint64_t after, uint64_t n);

uint64_t alloc_round_down(const struct alloc *alloc, uint64_t sector);

bool track_known(const struct alloc *alloc, uint64_t sector);

/* Finds the best part of a track for n sectors (group_best) in the first group
 * that has any, beginning with the group of the sector `goal`. */
int part_search(struct taking *taking, uint64_t goal, uint64_t n,
		uint64_t roomy, bool longest, struct span *at);

/* ---- alloc_large.c ---- */

uint64_t taking_end(const struct taking *taking);

/*
 * Takes more than a track:
 *
 *  1. right behind the file's last sector;
 *  2. whole tracks, longest runs in the goal's group, then in others;
 *  3. the rest, less than a track, inside one;
 *  4. any free sectors.
 */
int take_large(struct taking *taking);

#endif

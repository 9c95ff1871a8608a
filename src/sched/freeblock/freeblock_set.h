/*
 * freeblock_set.h - the sectors that a freeblock task still wants, by track.
 *
 * They are counted in units of some sectors, from sector 0; a unit belongs to
 * the track on which it begins, though its end may lie on the next one.  A disk
 * of which all is wanted costs 9 bytes for each 1,024 tracks, tracks that are
 * wanted in part 6 bytes a run.  Made for one geometry, which must outlive it.
 *
 * For searches the tracks are the leaves of a tree, 64 to a node of level 0, 16
 * nodes to one of the next level; every node knows the most units wanted on one
 * of its tracks.
 */
#ifndef TRAX_FREEBLOCK_FREEBLOCK_SET_H
#define TRAX_FREEBLOCK_FREEBLOCK_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rangeset.h"
#include "diskmodel/geom.h"

/* Tracks of a leaf of the set, and children of a node.  Round numbers: fewer
 * mean more memory for nodes, more a longer search in each. */
#define FREEBLOCK_SET_LEAF_TRACKS 64u
#define FREEBLOCK_SET_FANOUT 16u

struct freeblock_set;

/* unit_sectors 1 to 65535.  -ENOMEM, -EINVAL. */
int freeblock_set_open(const struct geom *geom, uint32_t unit_sectors,
		struct freeblock_set **wanted);
void freeblock_set_close(struct freeblock_set *wanted);

/* Add or remove whole units.  A unit across the end of the disk is never
 * wanted. -ENOMEM: done in part, and the units done are counted. -EINVAL: not
 * whole units. */
int freeblock_set_add(struct freeblock_set *wanted, uint64_t sector,
		      uint64_t n);
int freeblock_set_remove(struct freeblock_set *wanted, uint64_t sector,
			 uint64_t n);

uint64_t freeblock_set_sectors(const struct freeblock_set *wanted);
uint32_t freeblock_set_unit(const struct freeblock_set *wanted);
size_t
freeblock_set_bytes(const struct freeblock_set *wanted); /* memory held */

/* The first wanted run that begins or goes on at or after `from`, from there on
 * and within one track; false: none. */
bool freeblock_set_next(const struct freeblock_set *wanted, uint64_t from,
		 struct range *out);

/* The same for the units that begin on one track. */
bool freeblock_set_next_on(const struct freeblock_set *wanted,
		    const struct geom_track *track, uint64_t from,
		    struct range *out);

/* Number of wanted units that begin on a track. */
uint32_t freeblock_set_on(const struct freeblock_set *wanted,
		   const struct geom_track *track);

/* ---- for searches ---- */

struct freeblock_set_node {
	struct geom_bounds geom;
	uint32_t most;		/* an upper bound of the wanted units on one of
				 * its tracks */
};

unsigned
freeblock_set_levels(const struct freeblock_set *wanted); /* at least 1 */
uint64_t freeblock_set_nodes(const struct freeblock_set *wanted,
			     unsigned level);

/* false: nothing is wanted there. */
bool freeblock_set_node(const struct freeblock_set *wanted, unsigned level,
			uint64_t index, struct freeblock_set_node *out);

/* A bit for each track of a node of level 0: is anything wanted on it? */
uint64_t freeblock_set_tracks(const struct freeblock_set *wanted,
			      uint64_t leaf);

#endif

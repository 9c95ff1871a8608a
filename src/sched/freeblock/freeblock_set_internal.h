/*
 * freeblock_set_internal.h - the set of wanted sectors from inside:
 * freeblock_set.c (making, lookups), set_change.c (changes).
 */
#ifndef TRAX_FREEBLOCK_FREEBLOCK_SET_INTERNAL_H
#define TRAX_FREEBLOCK_FREEBLOCK_SET_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/freeblock/freeblock_set.h"

#define PAGE_TRACKS ((uint64_t)FREEBLOCK_SET_LEAF_TRACKS * FREEBLOCK_SET_FANOUT)
/* Levels of summaries, at most. */
#define LEVELS_MAX 16u

struct unit_run {
	uint16_t track;		/* within the leaf */
	uint16_t first, n;	/* units; a track with 65536 units or more can
				 * only be wanted whole */
};

struct set_leaf {
	uint64_t whole;
	struct unit_run *runs;
	uint32_t runs_n, room;
	uint32_t most;
};

struct set_page {
	struct set_leaf leaf[FREEBLOCK_SET_FANOUT];
};

struct freeblock_set {
	const struct geom *geom;
	uint32_t unit;
	uint64_t tracks;
	uint64_t units;			/* number of wanted units */
	uint64_t end_unit;		/* number of units of the disk */
	uint64_t pages_n;
	struct set_page **pages;		/* NULL: nothing in it is
						 * wanted */
	struct set_page *full;		/* stands for a page of which all is
					 * wanted */
	size_t bytes;
	unsigned levels;		/* levels of summaries; level 1 is that
					 * of the pages */
	uint64_t nodes[LEVELS_MAX];
	struct freeblock_set_node *node[LEVELS_MAX];
	struct unit_run *scratch;
	uint32_t scratch_room;
};

/* Position of a track's units in the set. */
struct set_pos {
	uint64_t first, end;	/* units */
	uint64_t track;
};

/* ---- freeblock_set.c ---- */

void set_page_free(struct freeblock_set *w, struct set_page *page);

void set_place_at(const struct freeblock_set *w, uint64_t index,
		  struct set_pos *out);

/* The track a unit begins on. */
void set_place_of_unit(const struct freeblock_set *w, uint64_t unit,
		       struct set_pos *out);

const struct set_leaf *set_leaf_of(const struct freeblock_set *w,
				   uint64_t track);

unsigned set_bit_of(uint64_t track);

/* Is the whole track wanted because it is part of a larger range of which
 * everything is? */
bool set_is_whole(const struct freeblock_set *w, uint64_t track);

/* The first run of a leaf at or after a track's unit: one that ends after. */
uint32_t set_run_lower(const struct set_leaf *leaf, unsigned track,
		       uint32_t unit);

#endif

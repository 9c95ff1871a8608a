/*
 * store.h - what a map holds: pieces of tracks in order of LBN.
 *
 * A piece is tracks of one size at constant steps of angle, or a stretch that
 * is decided to be unknown; what lies between pieces has not been looked at.
 * Tracks with fewer units than their piece says are listed as odd.  Units and
 * angles as in reader.h.
 */
#ifndef TRAX_TRACK_STORE_H
#define TRAX_TRACK_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct piece {
	uint64_t first, units;
	uint32_t tracks;	/* 0: unknown */
	uint32_t size;
	double start, step, span;
};

struct odd {
	uint64_t first;		/* unit of the track */
	uint32_t less;
};

struct store {
	struct piece *pieces;
	struct odd *odds;
	size_t n, room, odds_n, odds_room;
};

struct store_track {
	uint64_t first;
	uint32_t size;		/* its own */
	double start, pitch;
};

/* -ENOMEM.  What was known of the same units is forgotten: whole tracks. */
int store_add(struct store *store, const struct store_track *track,
	      uint32_t nominal, double span);
int store_unknown(struct store *store, uint64_t first, uint64_t units);
int store_insert(struct store *store, const struct piece *piece);
int store_odd(struct store *store, uint64_t first, uint32_t less);

/* The piece that holds a unit, or the first one after it; n: none. */
size_t store_find(const struct store *store, uint64_t unit);

/* The first odd track at or after a unit. */
size_t store_find_odd(const struct store *store, uint64_t unit);

/* Takes pieces [i, i + n) away. */
void store_remove(struct store *store, size_t i, size_t n);

/* Forgets all tracks that have units in [first, end).  -ENOMEM. */
int store_cut(struct store *store, uint64_t first, uint64_t end);

/* Takes away the track of that size that ends at a unit. */
void store_undo(struct store *store, uint64_t end, uint32_t size);

/* -ENOMEM. */
int store_copy(const struct store *store, struct store *copy);

/* The k-th track of a piece. */
void store_track(const struct store *store, const struct piece *piece,
		 uint32_t k, struct store_track *track);

/* The number of the track of a piece that a unit of it is on. */
uint32_t store_track_at(const struct store *store, const struct piece *piece,
			uint64_t unit);

/* Tracks of a size in the 64 pieces before the one that holds a unit, or behind
 * it. */
#define STORE_NEAR 64u
uint32_t store_before(const struct store *store, uint64_t unit, uint32_t size);
uint32_t store_behind(const struct store *store, uint64_t unit, uint32_t size);

void store_fini(struct store *store);

#endif

/*
 * prove.h - which of the tracks that a store holds are certain.
 *
 * The walk foretells and checks what it foretold; what it believes is a claim.
 * Here claims are looked at by themselves: whatever the walk took for granted
 * is not.  Units and angles as in reader.h.
 */
#ifndef TRAX_TRACK_PROVE_H
#define TRAX_TRACK_PROVE_H

#include "extract/probe/spots.h"
#include "extract/track/store.h"

enum prove_state {
	PROVE_OPEN,	/* not looked at, or not to be decided yet */
	PROVE_HOLDS,
	PROVE_FAILS,
};

/* A track that is believed. */
struct prove_claim {
	uint64_t first;
	uint32_t size, nominal;
	double start, pitch;
	double leap;		/* from the track before; NAN: not known */
	bool seen;		/* it was looked at, */
	bool among;		/* as one of many alike */
	bool doubted;		/* it may have units of another track */
	bool waits;		/* for tracks far behind it (prove.later) */
	enum prove_state state;
};

/* What is read of a claim, in order of LBN. */
enum prove_spot {
	PROVE_BEFORE, PROVE_FIRST, PROVE_INNER, PROVE_LAST = PROVE_INNER + 4,
	PROVE_BEHIND, PROVE_SPOTS
};

/* How often each spot was where it should be and how often not, and how often
 * it has to be. */
struct prove_trial {
	size_t at[PROVE_SPOTS];		/* among those listed; none: SIZE_MAX */
	unsigned looks[PROVE_SPOTS];	/* at it that were weighed */
	double turn[PROVE_SPOTS];	/* as seen last; NAN: not yet */
	unsigned need[PROVE_SPOTS], right[PROVE_SPOTS], wrong[PROVE_SPOTS];
	bool off[PROVE_SPOTS];		/* wrong when it was weighed last */
	double leap[2];		/* as seen first; NAN: not yet */
	unsigned weighed;	/* how often */
	bool alone;
};

struct prove_range {
	uint64_t first, end;
};

struct prove {
	struct reader *reader;
	const struct store *store;
	/* Keeps the clock right, now and then; or NULL. */
	int (*tick)(void *arg);
	void *arg;
	struct prove_claim *claim;	/* by LBN */
	struct prove_trial *trial;	/* of each */
	size_t n, room, trials_room;
	struct spots spots;	/* to be read next */
	struct prove_range *range;	/* not proven, in order */
	size_t ranges, ranges_room;
	struct prove_range *later;	/* to be proven when more is known */
	size_t laters, laters_room;
};

/* Takes a range that is not proven, behind those there are.  -ENOMEM. */
int prove_add(struct prove *prove, uint64_t first, uint64_t end);

/*
 * Looks at the tracks of all ranges; those in [first, end) outside of them
 * hold.  `more`: tracks behind `end` are still to come, so that what needs them
 * stays open.  Afterwards the ranges are those that are open, and the claims
 * stay until the next time.  0, -ENOMEM, or why measuring must stop.
 */
int prove_tracks(struct prove *prove, uint64_t first, uint64_t end, bool more);

/* Claims of the last time that hold, beside one that fails, and may have some
 * units of another track, fail: gap.h tells. */
void prove_leave_to_gaps(struct prove *prove);

void prove_fini(struct prove *prove);

#endif

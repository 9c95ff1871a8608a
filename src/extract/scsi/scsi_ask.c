/*
 * scsi_ask.c - asking about tracks.
 *
 * The number of a sector is a hint: what it says of a track's beginning is
 * tried.
 */
#include <errno.h>

#include "extract/scsi/scsi_ask.h"

/* Blocks that may have been reassigned together. */
#define BESIDE 64u
/* Blocks of the first track, whose size nobody knows. */
#define ANY_SIZE 1024u

static bool same_place(const struct track_place *a, const struct track_place *b)
{
	return a->cylinder == b->cylinder && a->head == b->head;
}

static int where_is(struct scsi_ask *ask, uint64_t block, struct ask_spot *out,
		    bool *alternate)
{
	struct translate_place place;
	int err;

	if (block >= ask->blocks)
		return -ENODATA;
	err = translate_block(ask->translate, block, &place);
	if (err)
		return err;
	out->place.cylinder = place.cylinder;
	out->place.head = place.head;
	out->at = place.sector;
	*alternate = place.alternate;
	return 0;
}

/*
 * A reassigned block lies anywhere; where it should be, its neighbours tell.
 * Drives of large sectors reassign all blocks of one, which may be a track's
 * first or last: it is on the track of those behind it if so many of their
 * sectors lie before them.
 */
static int where_beside(struct scsi_ask *ask, uint64_t block,
			struct ask_spot *out)
{
	uint32_t off = 0;
	bool alternate = true;
	int err = 0;

	while (!err && alternate && ++off <= BESIDE)
		err = where_is(ask, block + off, out, &alternate);
	if (!err && off <= BESIDE && out->at >= off) {
		out->at -= off;
		return 0;
	}
	if (err && err != -ENODATA)
		return err;
	for (off = 1; off <= BESIDE && off <= block; off++) {
		err = where_is(ask, block - off, out, &alternate);
		if (err || !alternate)
			return err;
	}
	return -ENODATA;
}

int ask_where(struct scsi_ask *ask, uint64_t block, struct ask_spot *out)
{
	bool alternate;
	int err = where_is(ask, block, out, &alternate);

	return !err && alternate ? where_beside(ask, block, out) : err;
}

int ask_on_track(struct scsi_ask *ask, uint64_t block,
		 const struct track_place *place)
{
	struct ask_spot spot;
	int err;

	if (block >= ask->blocks)
		return 0;
	err = ask_where(ask, block, &spot);
	return err ? err : same_place(&spot.place, place);
}

int ask_begins(struct scsi_ask *ask, uint64_t block,
	       const struct track_place *place)
{
	int rc = ask_on_track(ask, block, place);

	if (rc == 1 && block) {
		rc = ask_on_track(ask, block - 1, place);
		rc = rc < 0 ? rc : !rc;
	}
	return rc;
}

/* Does sector 0 begin a track? */
static bool zero_based(const struct scsi_ask *ask)
{
	return ask->at_zero > 4 * ask->elsewhere;
}

int ask_start(struct scsi_ask *ask, const struct track_place *place,
	      uint64_t guess, uint64_t *start)
{
	struct ask_spot spot;
	int rc = guess < ask->blocks ? ask_where(ask, guess, &spot) : -ENODATA;

	if (rc)
		return rc;
	if (!same_place(&spot.place, place) || spot.at >= guess)
		return -ENODATA;
	*start = guess - spot.at;
	if (spot.at)
		rc = ask_where(ask, *start, &spot);
	if (rc)
		return rc;
	if (!same_place(&spot.place, place))
		return -ENODATA;
	if (zero_based(ask) && !spot.at)
		return 0;
	rc = ask_on_track(ask, *start - 1, place);
	return rc == 1 ? -ENODATA : rc;
}

/* ---- where a track ends ---- */

/* The limits of a track's end, drawn together: lo is on it, hi is not. */
struct bounds {
	uint64_t lo, hi;
	struct ask_spot at_hi;
};

static int bounds_try(struct scsi_ask *ask, const struct track_place *place,
		      uint64_t try, struct bounds *b)
{
	struct ask_spot spot;
	int err;

	if (try <= b->lo || try >= b->hi)
		return 0;
	err = ask_where(ask, try, &spot);
	if (err)
		return err;
	if (same_place(&spot.place, place)) {
		b->lo = try;
	} else {
		b->hi = try;
		b->at_hi = spot;
	}
	return 0;
}

int ask_end(struct scsi_ask *ask, uint64_t first,
	    const struct track_place *place,
	    uint64_t guess, uint64_t *end, struct ask_spot *next)
{
	struct bounds b = { .lo = first, .hi = ask->blocks };
	uint64_t step, mid;
	int err;

	if (guess <= b.lo)
		guess = b.lo + ANY_SIZE;
	if (guess >= b.hi)
		guess = b.lo + (b.hi - b.lo) / 2;
	err = bounds_try(ask, place, guess, &b);
	/* Slips move the beginning of the next track as far as it says. */
	if (!err && b.hi == guess && b.at_hi.at < b.hi - b.lo)
		err = bounds_try(ask, place, b.hi - b.at_hi.at, &b);
	/* From there away, in growing steps, until the end lies between. */
	for (step = 1; !err && b.hi - b.lo > 2 * step; step *= 4) {
		mid = b.hi <= guess ? b.hi - step : b.lo + step;
		err = bounds_try(ask, place, mid, &b);
		if (b.hi <= guess ? b.lo == mid : b.hi == mid)
			break;
	}
	while (!err && b.hi - b.lo > 1)
		err = bounds_try(ask, place, b.lo + (b.hi - b.lo) / 2, &b);
	if (err)
		return err;
	*end = b.hi;
	*next = b.at_hi;
	if (b.hi < ask->blocks && next->at)
		ask->elsewhere++;
	else if (b.hi < ask->blocks)
		ask->at_zero++;
	return 0;
}

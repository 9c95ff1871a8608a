/*
 * scsi_ask.c - asking about tracks.
 *
 * Once tracks have been seen to begin at sector 0 a single answer tells a
 * track's first block: that at its sector 0, or the block that is there.  Else
 * it takes both sides of the boundary.
 */
#include <errno.h>

#include "extract/scsi/scsi_ask.h"

/* Pairs of blocks that tell how far sectors are apart. */
#define PITCH_LOOKS 5u
/* Blocks that may have been reassigned together. */
#define BESIDE 64

static bool same_place(const struct track_place *a, const struct track_place *b)
{
	return a->cylinder == b->cylinder && a->head == b->head;
}

/* A pitch that does not fit is none. */
static void take_spot(struct ask *ask, const struct translate_place *place,
		      int more, struct ask_spot *out)
{
	out->place.cylinder = place->address.cylinder;
	out->place.head = place->address.head;
	out->at = place->address.at;
	if (ask->pitch && out->at % ask->pitch)
		ask->pitch = 0;
	if (ask->pitch)
		out->at = out->at / ask->pitch + (uint32_t)more;
}

/* The first block above (or below) one that has not been reassigned. */
static int unassigned(struct ask *ask, uint64_t block, bool up, int *off,
		      struct translate_place *place)
{
	int err;

	for (*off = 1; *off <= BESIDE; ++*off) {
		if (up ? block + (unsigned)*off >= ask->blocks :
			 block < (unsigned)*off)
			return -ENODATA;
		err = translate_block(ask->translate,
				      up ? block + (unsigned)*off :
					   block - (unsigned)*off, place);
		if (err || !place->alternate)
			return err;
	}
	return -ENODATA;
}

/*
 * A reassigned block lies anywhere; where it should be, its neighbours tell.
 * Drives of large sectors reassign all blocks of one, which may be a track's
 * first or last.
 */
static int where_beside(struct ask *ask, uint64_t block, struct ask_spot *out)
{
	uint32_t pitch = ask->pitch ? ask->pitch : 1;
	struct translate_place place;
	int off, err = unassigned(ask, block, true, &off, &place);

	if (err && err != -ENODATA)
		return err;
	if (!err && place.address.at / pitch >= (unsigned)off) {
		take_spot(ask, &place, -off, out);
		return 0;
	}
	err = unassigned(ask, block, false, &off, &place);
	if (!err)
		take_spot(ask, &place, off, out);
	return err;
}

int ask_where(struct ask *ask, uint64_t block, struct ask_spot *out)
{
	struct translate_place place;
	int err = translate_block(ask->translate, block, &place);

	if (err)
		return err;
	if (place.alternate)
		return where_beside(ask, block, out);
	take_spot(ask, &place, 0, out);
	return 0;
}

int ask_on_track(struct ask *ask, uint64_t block,
		 const struct track_place *place)
{
	struct ask_spot spot;
	int err;

	if (block >= ask->blocks)
		return 0;
	err = ask_where(ask, block, &spot);
	return err ? err : same_place(&spot.place, place);
}

static bool zero_based(const struct ask *ask)
{
	return !ask->plain && ask->at_zero > 4 * ask->elsewhere;
}

int ask_begins(struct ask *ask, uint64_t block,
	       const struct track_place *place, bool that)
{
	struct ask_spot spot;
	int rc;

	if (block >= ask->blocks)
		return 1;
	rc = ask_where(ask, block, &spot);
	if (rc)
		return rc;
	if (same_place(&spot.place, place) != that)
		return 0;
	if (!block || (zero_based(ask) && !spot.at))
		return 1;
	rc = ask_on_track(ask, block - 1, &spot.place);
	return rc < 0 ? rc : !rc;
}

/* Do sector numbers count blocks? */
static bool by_block(const struct ask *ask)
{
	return zero_based(ask) && ask->pitch;
}

/* ---- where a track begins ---- */

/* Down from a block that is on the track. */
static int start_search(struct ask *ask, const struct track_place *place,
			uint64_t on, uint64_t *start)
{
	uint64_t step = 1, off, mid;
	int rc = 1;

	while (on && rc == 1) {
		off = on > step ? on - step : 0;
		rc = ask_on_track(ask, off, place);
		if (rc == 1)
			on = off;
		step *= 4;
	}
	while (!rc && on - off > 1) {
		mid = off + (on - off) / 2;
		rc = ask_on_track(ask, mid, place);
		if (rc == 1)
			on = mid;
		else
			off = mid;
		rc = rc < 0 ? rc : 0;
	}
	*start = on;
	return rc < 0 ? rc : 0;
}

static int start_forward(struct ask *ask, const struct track_place *place,
			 uint64_t guess, uint64_t *start)
{
	struct ask_spot spot;
	int err;

	if (guess >= ask->blocks)
		return -ENODATA;
	err = ask_where(ask, guess, &spot);
	if (err)
		return err;
	if (!same_place(&spot.place, place))
		return -ENODATA;
	if (by_block(ask) && spot.at && spot.at <= guess) {
		err = start_forward(ask, place, guess - spot.at, start);
		if (err != -ENODATA)
			return err;
	}
	*start = guess;
	return zero_based(ask) && !spot.at ? 0 :
		start_search(ask, place, guess, start);
}

int ask_start(struct ask *ask, const struct track_place *place, uint64_t guess,
	      uint64_t *start)
{
	const struct scsi_address address = { place->cylinder, place->head, 0 };
	int err = -ENODATA;

	if (zero_based(ask) && !ask->one_way)
		err = translate_back(ask->translate, &address, start);
	if (!err)
		return 0;
	if (err != -ENODATA && err != -EOPNOTSUPP && err != -EINVAL)
		return err;
	return start_forward(ask, place, guess, start);
}

/* ---- where a track ends ---- */

/* The limits of a track's end, drawn together: lo is on it, hi is not. */
struct bounds {
	uint64_t lo, hi;
	struct ask_spot at_hi;
	bool hi_known;
};

static int bounds_try(struct ask *ask, const struct track_place *place,
		      uint64_t try, struct bounds *b)
{
	struct ask_spot spot;
	int err = ask_where(ask, try, &spot);

	if (err)
		return err;
	if (same_place(&spot.place, place)) {
		b->lo = try;
	} else {
		b->hi = try;
		b->at_hi = spot;
		b->hi_known = true;
	}
	return 0;
}

/* From the guess away, in growing steps, until the end lies between. */
static int bounds_find(struct ask *ask, const struct track_place *place,
		       uint64_t guess, struct bounds *b)
{
	uint64_t step = 1, try = guess;
	bool up = false, down = false;
	int err = 0;

	while (!err && try > b->lo && try < b->hi && !(up && down)) {
		err = bounds_try(ask, place, try, b);
		up = up || b->lo == try;
		down = down || b->hi == try;
		try = up ? b->lo + step : b->hi > b->lo + step ?
						  b->hi - step : b->lo;
		step *= 4;
	}
	return err;
}

int ask_end(struct ask *ask, uint64_t first, const struct track_place *place,
	    uint64_t guess, uint64_t *end, struct ask_spot *next)
{
	struct bounds b = { .lo = first, .hi = ask->blocks };
	int err = 0;

	if (guess <= b.lo || guess >= b.hi)
		guess = b.lo + (b.hi - b.lo < 2048 ? (b.hi - b.lo) / 2 : 1024);
	if (guess > b.lo)
		err = bounds_try(ask, place, guess, &b);
	/* Slips move the beginning of the next track as far as it says. */
	if (!err && b.hi_known && by_block(ask) && b.at_hi.at &&
	    b.at_hi.at < b.hi - b.lo)
		err = bounds_try(ask, place, b.hi - b.at_hi.at, &b);
	if (!err)
		err = bounds_find(ask, place,
				  b.hi_known ? b.hi - 1 : b.lo + 1, &b);
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

int ask_find_pitch(struct ask *ask)
{
	struct translate_place a, b;
	uint32_t least = 0, off;
	uint64_t block;
	unsigned i;
	int err = 0;

	ask->pitch = 1;
	if (!translate_in_bytes(ask->translate))
		return 0;
	for (i = 0; i < PITCH_LOOKS && !err; i++) {
		block = ask->blocks / PITCH_LOOKS * i;
		err = translate_block(ask->translate, block, &a);
		if (!err)
			err = translate_block(ask->translate, block + 1, &b);
		off = b.address.at - a.address.at;
		if (!err && !a.alternate && !b.alternate &&
		    b.address.at > a.address.at && (!least || off < least))
			least = off;
		if (err == -ENODATA || err == -EIO)
			err = 0;
	}
	ask->pitch = least;
	return err;
}

/* ---- holes ---- */

int ask_try_back(struct ask *ask, uint64_t block)
{
	struct translate_place place;
	uint64_t back;
	int err;

	ask->one_way = true;
	if (!translate_goes_back(ask->translate))
		return 0;
	err = translate_block(ask->translate, block, &place);
	if (!err && place.alternate)
		return 0;
	if (!err)
		err = translate_back(ask->translate, &place.address, &back);
	if (!err)
		ask->one_way = back != block;
	return err == -ENODATA || err == -EIO ? 0 : err;
}

int ask_hole(struct ask *ask, const struct track_place *place)
{
	const struct scsi_address address = { place->cylinder, place->head, 0 };
	uint64_t block;
	int err;

	if (ask->plain || ask->one_way || translate_in_bytes(ask->translate))
		return 1;
	err = translate_back(ask->translate, &address, &block);
	return err == -ENODATA || err == -EOPNOTSUPP ? 1 : err;
}

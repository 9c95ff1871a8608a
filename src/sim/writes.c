/*
 * writes.c - what a power cut leaves of a write.
 *
 * A drive transfers a write's atomic units one after the other, so a torn one
 * has some of its units new, the one under the head unreadable (its error
 * correcting code does not match), the others old.  A unit never reads back
 * as a mix.
 */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "sim/writes.h"

#define GARBAGE 0xdb		/* each byte of what is discarded */

struct write *writes_new(const struct disk_request *req)
{
	struct write *w = malloc(sizeof(*w) +
				 (size_t)req->sectors * SECTOR_BYTES);
	uint8_t *to;

	if (!w)
		return NULL;
	*w = (struct write){
		.refs = 1,
		.sector = req->sector,
		.sectors = req->sectors,
	};
	if (req->op == DISK_DISCARD)
		memset(w->data, GARBAGE, (size_t)req->sectors * SECTOR_BYTES);
	to = w->data;
	for (unsigned i = 0; i < req->iov_n; i++) {
		memcpy(to, req->iov[i].iov_base, req->iov[i].iov_len);
		to += req->iov[i].iov_len;
	}
	return w;
}

struct write *writes_get(struct write *write)
{
	write->refs++;
	return write;
}

void writes_put(struct write *write)
{
	if (write && !--write->refs)
		free(write);
}

int writes_apply(const struct write *write, struct media *media)
{
	return media_write(media, write->sector, write->sectors, write->data);
}

/* Puts units [from, from + n) of a write on a medium. */
static int apply_units(const struct write *w, struct media *media,
		       uint32_t unit, uint64_t from, uint64_t n)
{
	uint64_t at = from * unit, sectors = n * unit;

	if (sectors > w->sectors - at)
		sectors = w->sectors - at;
	return media_write(media, w->sector + at, sectors,
			   w->data + at * SECTOR_BYTES);
}

static int apply_torn(const struct write *w, struct media *media,
		      uint32_t unit, bool damage, uint64_t *seed)
{
	uint64_t units = (w->sectors + unit - 1) / unit;
	uint64_t torn = random_next(seed) % units;
	int err = apply_units(w, media, unit, 0, torn);

	if (err || !damage)
		return err;
	return media_damage(media, w->sector + torn * unit,
			    torn + 1 < units ? unit :
					       w->sectors - torn * unit);
}

/* Puts some units on the medium, in no order: a drive may begin in the middle
 * of a track. */
static int apply_some(const struct write *w, struct media *media,
		      uint32_t unit, uint64_t *seed)
{
	uint64_t units = (w->sectors + unit - 1) / unit;
	int err = 0;

	for (uint64_t i = 0; !err && i < units; i++) {
		if (random_next(seed) & 1)
			err = apply_units(w, media, unit, i, 1);
	}
	return err;
}

int writes_apply_cut(const struct write *write, struct media *media,
		     enum sim_cut cut, uint32_t unit_sectors, bool damage,
		     uint64_t *seed)
{
	if (write->durable)
		return writes_apply(write, media);
	if (cut == SIM_CUT_RANDOM) {
		unsigned what = random_next(seed) % 4;

		if (what == 3)
			return apply_some(write, media, unit_sectors, seed);
		cut = what == 0 ? SIM_CUT_KEEP :
		      what == 1 ? SIM_CUT_DROP : SIM_CUT_TORN;
	}
	if (cut == SIM_CUT_KEEP)
		return writes_apply(write, media);
	if (cut == SIM_CUT_TORN)
		return apply_torn(write, media, unit_sectors, damage, seed);
	return 0;
}

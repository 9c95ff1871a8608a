/*
 * csum_window.c - the checksums of 1 MiB of a file in one item.
 *
 * The encoding of a window is unique: bits and counts that say nothing are
 * refused, so that equal windows are equal bytes.
 */
#include <string.h>

#include "format/format.h"

static_assert(2 * sizeof(le16) +
	      TRAX_CSUM_PIECES * (sizeof(le16) +
				  TRAX_CSUM_PIECE_BLOCKS * sizeof(le64)) <=
	      TRAX_MAX_ITEM_BYTES, "a full window fits an item");

static uint8_t *put(uint8_t *p, const void *field, size_t bytes)
{
	memcpy(p, field, bytes);
	return p + bytes;
}

static uint8_t *encode_piece(const struct csum_window *w, unsigned piece,
			     uint8_t *p)
{
	const le16 mask = le16_put(w->mask[piece]);

	if (w->coarse >> piece & 1) {
		const le64 sum = le64_put(w->sum[piece][0]);

		return put(p, &sum, sizeof(sum));
	}
	p = put(p, &mask, sizeof(mask));
	for (unsigned b = 0; b < TRAX_CSUM_PIECE_BLOCKS; b++) {
		const le64 sum = le64_put(w->sum[piece][b]);

		if (w->mask[piece] >> b & 1)
			p = put(p, &sum, sizeof(sum));
	}
	return p;
}

size_t csum_window_encode(const struct csum_window *w, void *buf)
{
	uint8_t *p = buf;
	uint16_t present = 0;
	le16 head[2];

	for (unsigned i = 0; i < TRAX_CSUM_PIECES; i++)
		if ((w->present >> i & 1) &&
		    ((w->coarse >> i & 1) || w->mask[i]))
			present |= 1u << i;
	if (!present)
		return 0;
	head[0] = le16_put(present);
	head[1] = le16_put(w->coarse & present);
	p = put(p, head, sizeof(head));
	for (unsigned i = 0; i < TRAX_CSUM_PIECES; i++)
		if (present >> i & 1)
			p = encode_piece(w, i, p);
	return (size_t)(p - (uint8_t *)buf);
}

struct csum_reader {
	const uint8_t *p;
	size_t left;
};

static bool take(struct csum_reader *r, void *field, size_t bytes)
{
	if (r->left < bytes)
		return false;
	memcpy(field, r->p, bytes);
	r->p += bytes;
	r->left -= bytes;
	return true;
}

static const char *decode_piece(struct csum_reader *r, struct csum_window *w,
				unsigned piece)
{
	le16 mask;
	le64 sum;

	if (w->coarse >> piece & 1) {
		if (!take(r, &sum, sizeof(sum)))
			return "checksums are cut off";
		w->sum[piece][0] = le64_get(sum);
		w->mask[piece] = UINT16_MAX;
		return NULL;
	}
	if (!take(r, &mask, sizeof(mask)))
		return "checksums are cut off";
	w->mask[piece] = le16_get(mask);
	if (!w->mask[piece])
		return "checksums of no block";
	for (unsigned b = 0; b < TRAX_CSUM_PIECE_BLOCKS; b++) {
		if (!(w->mask[piece] >> b & 1))
			continue;
		if (!take(r, &sum, sizeof(sum)))
			return "checksums are cut off";
		w->sum[piece][b] = le64_get(sum);
	}
	return NULL;
}

const char *csum_window_decode(const void *buf, size_t bytes,
			       struct csum_window *w)
{
	struct csum_reader r = { buf, bytes };
	le16 head[2];

	memset(w, 0, sizeof(*w));
	if (!take(&r, head, sizeof(head)))
		return "checksums are cut off";
	w->present = le16_get(head[0]);
	w->coarse = le16_get(head[1]);
	if (!w->present || (w->coarse & ~w->present))
		return "checksums of no piece";
	for (unsigned i = 0; i < TRAX_CSUM_PIECES; i++) {
		const char *why;

		if (!(w->present >> i & 1))
			continue;
		why = decode_piece(&r, w, i);
		if (why)
			return why;
	}
	return r.left ? "checksums have the wrong length" : NULL;
}

/*
 * csum_window.c - the checksums of 256 KiB of a file in one item.
 *
 * Each window has exactly one encoding: decoding refuses an item with parts
 * that hold no checksum, so that equal windows are equal bytes.
 */
#include <string.h>

#include "format/format.h"

struct csum_head {
	le16 mask[TRAX_CSUM_CHUNKS];
};

static_assert(sizeof(struct csum_head) +
	      TRAX_CSUM_WINDOW_BLOCKS * sizeof(le32) <= TRAX_MAX_ITEM_BYTES,
	      "a full window fits an item");
static_assert(TRAX_CSUM_CHUNKS * TRAX_CSUM_CHUNK_BLOCKS ==
	      TRAX_CSUM_WINDOW_BLOCKS, "pieces make a window");

static bool has(const struct csum_window *w, unsigned block)
{
	return w->mask[block / TRAX_CSUM_CHUNK_BLOCKS] >>
	       block % TRAX_CSUM_CHUNK_BLOCKS & 1;
}

static uint32_t *sum_of(struct csum_window *w, unsigned block)
{
	return &w->sum[block / TRAX_CSUM_CHUNK_BLOCKS]
		      [block % TRAX_CSUM_CHUNK_BLOCKS];
}

size_t csum_window_encode(const struct csum_window *w, void *buf)
{
	struct csum_window copy = *w;
	struct csum_head head;
	uint16_t any = 0;
	uint8_t *p = buf;
	le32 sum;

	for (unsigned i = 0; i < TRAX_CSUM_CHUNKS; i++) {
		head.mask[i] = le16_put(w->mask[i]);
		any |= w->mask[i];
	}
	if (!any)
		return 0;
	memcpy(p, &head, sizeof(head));
	p += sizeof(head);
	for (unsigned b = 0; b < TRAX_CSUM_WINDOW_BLOCKS; b++) {
		if (!has(w, b))
			continue;
		sum = le32_put(*sum_of(&copy, b));
		memcpy(p, &sum, sizeof(sum));
		p += sizeof(sum);
	}
	return (size_t)(p - (uint8_t *)buf);
}

const char *csum_window_decode(const void *buf, size_t bytes,
			       struct csum_window *w)
{
	const uint8_t *p = buf;
	struct csum_head head;
	size_t want = sizeof(head);
	le32 sum;

	memset(w, 0, sizeof(*w));
	if (bytes < want)
		return "checksums are cut off";
	memcpy(&head, p, sizeof(head));
	for (unsigned i = 0; i < TRAX_CSUM_CHUNKS; i++) {
		w->mask[i] = le16_get(head.mask[i]);
		want += sizeof(sum) *
			(unsigned)__builtin_popcount(w->mask[i]);
	}
	if (want == sizeof(head))
		return "checksums of no block";
	if (bytes != want)
		return "checksums have the wrong length";
	p += sizeof(head);
	for (unsigned b = 0; b < TRAX_CSUM_WINDOW_BLOCKS; b++) {
		if (!has(w, b))
			continue;
		memcpy(&sum, p, sizeof(sum));
		*sum_of(w, b) = le32_get(sum);
		p += sizeof(sum);
	}
	return NULL;
}

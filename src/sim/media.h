/*
 * media.h - what is on a simulated disk: sparse, copy-on-write sectors.
 *
 * A clone costs nothing and shares all pages with its original until one of
 * them is written.  Sectors never written read as zeros.  A sector can be
 * damaged: it cannot be read until it is written again.
 *
 * Units: sectors of 512 bytes.  Not thread safe, clones of one another
 * included.  Functions that can fail return -ENOMEM and change nothing that
 * a read would show, except that a write may be done in part.
 */
#ifndef TRAX_SIM_MEDIA_H
#define TRAX_SIM_MEDIA_H

#include <stdbool.h>
#include <stdint.h>

struct media;

struct media *media_new(uint64_t sectors);	/* NULL: out of memory */
struct media *media_clone(const struct media *media);
void media_free(struct media *media);

uint64_t media_sectors(const struct media *media);

/* -EIO: a sector is damaged (*bad tells the first if not NULL); the buffer
 * holds what could be read. */
int media_read(const struct media *media, uint64_t sector, uint64_t sectors,
	       void *buf, uint64_t *bad);

/* Repairs what it writes over. */
int media_write(struct media *media, uint64_t sector, uint64_t sectors,
		const void *buf);

int media_damage(struct media *media, uint64_t sector, uint64_t sectors);

/* Inverts one bit of a sector. */
int media_flip(struct media *media, uint64_t sector, unsigned bit);

#endif

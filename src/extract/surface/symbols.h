/*
 * symbols.h - what tracks look like, from which their order is read.
 *
 * A track's symbol is how many sectors go round it and how it is skewed against
 * the track before it.  Most tracks of a drive are skewed alike; where another
 * surface, or another cylinder, begins the skew is mostly another one, which
 * comes again.
 */
#ifndef TRAX_SURFACE_SYMBOLS_H
#define TRAX_SURFACE_SYMBOLS_H

#include "diskmodel/geom.h"
#include "extract/probe/probe.h"

#define SYMBOL_SKEWS 12u
#define SYMBOL_USUAL 0u
#define SYMBOL_ODD SYMBOL_SKEWS	/* like no other; or something is missing */

struct symbol {
	uint32_t size;		/* sectors that go round; 0: not known */
	uint16_t lead;		/* behind the track before: 1/65536 of a turn */
	uint8_t skew;		/* the usual one, the next in number, ... */
};

struct symbols {
	struct symbol *v;	/* of each track */
	uint64_t n;
	uint64_t common[SYMBOL_SKEWS + 1];	/* tracks of each skew */
};

/* Costs by the number of tracks; prober: only to pause now and then, may be
 * NULL.  -ENOMEM */
int symbols_make(const struct geom *geom, struct prober *prober,
		 struct symbols *symbols);
void symbols_free(struct symbols *symbols);

/* Are two sizes one?  Measured ones are never quite alike. */
bool symbols_same_size(uint32_t a, uint32_t b);

#endif

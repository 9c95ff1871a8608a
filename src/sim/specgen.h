/*
 * specgen.h - drives that nobody has seen: specifications from a seed.
 *
 * They differ in all that drives are known to differ in: order of tracks
 * (head first, serpentines of 32 to 9,200 tracks in either direction,
 * irregular), sizes of tracks by surface and zone, skews, defects of every
 * kind, spindle speed, caches, seek curve, noise.  The same seed and options
 * give the same drive.
 */
#ifndef TRAX_SIM_SPECGEN_H
#define TRAX_SIM_SPECGEN_H

#include "diskmodel/spec.h"

/* The seed chooses for members that are 0 (or < 0 where the comment says
 * so). */
struct specgen {
	uint64_t seed;
	uint64_t bytes;		/* approximate size; 0: 300 MB */
	uint32_t surfaces;
	uint32_t group_cylinders; /* cylinders of a serpentine's group; 0: any
				   * order of tracks */
	double slipped;		/* share of tracks with slips; < 0: the seed
				 * chooses */
	int cache;		/* read cache: 0: none, 1: with read-ahead; < 0:
				 * the seed chooses */
	int zero_latency;	/* zero-latency reads: 0, 1; < 0: chosen */
	/* also what few drives have: scratches over many tracks, boundaries
	 * with hardly any skew or none, spares in every cylinder, slipped
	 * tracks side by side, partial tracks at the ends of the disk */
	bool odd;
	int noise;		/* 0: none; otherwise 8 us, exponential 20 us,
				 * and 1 to 3 % of completions late by 0.1 to 3
				 * ms */
};

/*
 * "SEED" or "SEED,KEY=VALUE...": bytes (with K, M, G or T), surfaces, group,
 * slipped, cache, zero-latency, noise, odd.  -EINVAL, said through msg.
 */
int specgen_parse(const char *text, struct specgen *options);

/* -ENOMEM, or -EINVAL (reported) for a drive that cannot be. */
int specgen_make(const struct specgen *options, struct spec **spec);

#endif

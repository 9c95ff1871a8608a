/*
 * doubt.h - a drive and a model of it that may be wrong: two specifications of
 * the same drive, one for the simulation, one for the code under test.
 */
#ifndef TRAX_RIG_DOUBT_H
#define TRAX_RIG_DOUBT_H

#include "base/env.h"
#include "disk/disk.h"
#include "diskmodel/spec.h"
#include "sched/head/head.h"

enum doubt_kind {
	DOUBT_NONE,
	DOUBT_SKEW,		/* off by a sector */
	DOUBT_PERIOD,		/* 0.3 % */
	DOUBT_SLIP,		/* one that is not listed */
	DOUBT_SEEK,		/* half as long as they are */
	DOUBT_SURFACES,		/* another order of the tracks altogether */
	DOUBT_KINDS
};

struct doubt {
	struct spec *is, *model;
	struct geom *geom;	/* of the model */
};

/* `drive`: of drives/, or "random:SEED" (sim/named.h).  `sectors`: of the drive
 * that are used, 0: all.  Aborts when it can't. */
void doubt_init(struct doubt *doubt, const char *drive, uint64_t sectors,
		enum doubt_kind kind);
void doubt_fini(struct doubt *doubt);

/* Opens a head that begins with the model; the caller closes it. */
struct head *doubt_head(const struct doubt *doubt, struct env *env);

/* Reads blocks here and there and writes them back, until the head has learned
 * what it can. */
void doubt_learn(struct env *env, struct disk *disk, struct head *head,
		 uint64_t seed);

#endif

/*
 * seek_learn.h - learns from completions how long seeks, settling and overheads
 * take, and how far ahead a target must be to be met.
 */
#ifndef TRAX_HEAD_SEEK_LEARN_H
#define TRAX_HEAD_SEEK_LEARN_H

#include <stdbool.h>
#include <stdint.h>

#include "diskmodel/service.h"

enum seek_learn_kind { SEEK_LEARN_READ, SEEK_LEARN_WRITE, SEEK_LEARN_KINDS };

/* An access handed to an idle drive is late when the host is.  One that
 * was handed over while the drive was busy for longer than the host is late is
 * late only when the head is. */
enum seek_learn_when { SEEK_LEARN_IDLE, SEEK_LEARN_BUSY, SEEK_LEARN_WHENS };

/* Bins of the seek distance: no move, another surface, then two for each
 * doubling of the cylinders. */
#define SEEK_LEARN_BINS 66u
/* Steps of the time between arrival and target: 1/128 revolution each. */
#define SEEK_LEARN_STEPS 32u

struct seek_learn {
	struct service_seek *seek;	/* the seek curve as given; owned */
	uint32_t seek_n;
	uint64_t switch_ns, settle_ns, overhead_given_ns[SEEK_LEARN_KINDS];
	int64_t bin_ns[SEEK_LEARN_BINS];	/* corrections of seek times */
	/* Accesses to a busy drive that tell of these, up to BIN_KNOWN. */
	uint8_t bin_seen[SEEK_LEARN_BINS];
	/* Accesses in a row that were late (negative: early). */
	int8_t run[SEEK_LEARN_KINDS];
	int64_t settle_off_ns, overhead_off_ns[SEEK_LEARN_KINDS];
	/* The margin of places that are chosen for writes to an idle drive, in
	 * 65536ths of a turn; misses one after another; has any been missed? */
	uint32_t place_margin;
	unsigned place_run;
	bool place_missed;
	struct seek_learn_steps {
		/* Targets by how many steps they were ahead of the head, and
		 * how many of these were missed. */
		uint16_t seen[SEEK_LEARN_STEPS], missed[SEEK_LEARN_STEPS];
		unsigned guard_steps, likely_steps;
		unsigned missed_run;	/* misses one after another */
		unsigned met;		/* targets met since caution changed */
		unsigned caution_steps;	/* lower bound of the guard */
	} steps[SEEK_LEARN_KINDS][SEEK_LEARN_WHENS];
	/* Targets by how many steps before the head they passed, and how many
	 * of these were met all the same. */
	struct seek_learn_early {
		uint16_t seen[SEEK_LEARN_STEPS], met[SEEK_LEARN_STEPS];
		unsigned early_steps;
	} early[SEEK_LEARN_KINDS];
};

/* -ENOMEM. */
int seek_learn_init(struct seek_learn *learn, const struct service_mech *mech,
	       uint64_t read_overhead_ns, uint64_t write_overhead_ns);
void seek_learn_fini(struct seek_learn *learn);

/* Forgets all corrections: the seeks are those given at the start again. */
void seek_learn_forget(struct seek_learn *learn);

/*
 * Takes in an access after a move of `cylinders` (switched: also or only to
 * another surface) that met or missed a target which passed offset_ns after the
 * head was expected there; negative: before.  chosen: a place that was chosen
 * for being seek_learn_place_ns ahead.
 */
struct seek_learn_access {
	enum seek_learn_kind kind;
	enum seek_learn_when when;
	uint32_t cylinders;
	bool switched, chosen;
};
void seek_learn_see(struct seek_learn *learn,
		    const struct seek_learn_access *access, int64_t offset_ns,
		    bool met, uint64_t period_ns);

/* Puts what has been learned into mechanics that began as the same. */
void seek_learn_apply(const struct seek_learn *learn,
		      struct service_mech *mech);

uint64_t seek_learn_overhead_ns(const struct seek_learn *learn,
				enum seek_learn_kind kind);

/* How far ahead a target must be to be met in 98 % of cases. */
uint64_t seek_learn_guard_ns(const struct seek_learn *learn,
			     enum seek_learn_kind kind,
			     enum seek_learn_when when, uint64_t period_ns);

/* How far ahead a place is best chosen for a write to an idle drive. */
uint64_t seek_learn_place_ns(const struct seek_learn *learn,
			     uint64_t period_ns);

/* The time that suffices in three of four cases. */
uint64_t seek_learn_likely_ns(const struct seek_learn *learn,
			      enum seek_learn_kind kind,
			      enum seek_learn_when when, uint64_t period_ns);

/* How far behind a target must be to be missed in 98 % of cases. */
uint64_t seek_learn_early_ns(const struct seek_learn *learn,
			     enum seek_learn_kind kind, uint64_t period_ns);

#endif

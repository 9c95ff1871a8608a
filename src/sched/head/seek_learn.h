/*
 * seek_learn.h - what completions teach about seeks, settling and overheads,
 * and how far ahead a target must be to be met.
 *
 * Units: nanoseconds; cylinders.
 */
#ifndef TRAX_HEAD_SEEK_LEARN_H
#define TRAX_HEAD_SEEK_LEARN_H

#include <stdbool.h>
#include <stdint.h>

#include "diskmodel/service.h"

enum learn_kind { LEARN_READ, LEARN_WRITE, LEARN_KINDS };

/* Handed over to an idle drive, so as late as the host is; or while it had
 * something to do: then only the head can be late. */
enum learn_when { LEARN_IDLE, LEARN_BUSY, LEARN_WHENS };

/* Not moved, another surface, then two bins for each doubling of the seek. */
#define LEARN_BINS 66u
/* Of the distance between arrival and target: 1/128 revolution each. */
#define LEARN_STEPS 32u

struct learn {
	struct service_seek *seek;	/* as given; owned */
	uint32_t seek_n;
	uint64_t switch_ns, settle_ns, overhead_given_ns[LEARN_KINDS];
	int64_t bin_ns[LEARN_BINS];	/* corrections */
	/* So many were late (below 0: early) one after another. */
	int8_t run[LEARN_KINDS];
	int64_t settle_off_ns, overhead_off_ns[LEARN_KINDS];
	struct learn_steps {
		/* Targets so far ahead, and those of them missed. */
		uint16_t seen[LEARN_STEPS], missed[LEARN_STEPS];
		unsigned guard_steps, likely_steps;
		unsigned missed_run;	/* one after another */
		unsigned met;		/* since caution has changed */
		unsigned caution_steps;	/* the guard is no less */
	} steps[LEARN_KINDS][LEARN_WHENS];
	/* Targets that came by so far before, and those of them met. */
	struct learn_early {
		uint16_t seen[LEARN_STEPS], met[LEARN_STEPS];
		unsigned early_steps;
	} early[LEARN_KINDS];
};

/* -ENOMEM. */
int learn_init(struct learn *learn, const struct service_mech *mech,
	       uint64_t read_overhead_ns, uint64_t write_overhead_ns);
void learn_fini(struct learn *learn);

/* Back to what was given. */
void learn_forget(struct learn *learn);

/*
 * An access after a move of `cylinders` (switched: also or only to another
 * surface) met or missed a target that came by offset_ns after it was expected
 * to be there; negative: before.
 */
struct learn_access {
	enum learn_kind kind;
	enum learn_when when;
	uint32_t cylinders;
	bool switched;
};
void learn_see(struct learn *learn, const struct learn_access *access,
	       int64_t offset_ns, bool met, uint64_t period_ns);

/* Puts what has been learned into mechanics that began as the same. */
void learn_apply(const struct learn *learn, struct service_mech *mech);

uint64_t learn_overhead_ns(const struct learn *learn, enum learn_kind kind);

/* How far ahead a target must be to be met in 98 % of cases. */
uint64_t learn_guard_ns(const struct learn *learn, enum learn_kind kind,
			enum learn_when when, uint64_t period_ns);

/* The same, in three of four. */
uint64_t learn_likely_ns(const struct learn *learn, enum learn_kind kind,
			 enum learn_when when, uint64_t period_ns);

/* How far behind a target must be to be missed in 98 % of cases. */
uint64_t learn_early_ns(const struct learn *learn, enum learn_kind kind,
			uint64_t period_ns);

#endif

/*
 * reader.h - single reads and the angle at which they came.
 *
 * A reader reads one unit (a physical sector) at a time through a prober and
 * says at what angle its trailing edge passed.  What a cache answered has no
 * angle: what it may hold is asked for together with a unit before it that it
 * can't hold, and what it answers all the same is recognised by its speed, the
 * cache is filled with other things and the unit is read again.
 *
 * Units are counted from the first aligned sector.  Angles in revolutions,
 * from an arbitrary origin.  Functions return 0 or why measuring must stop
 * (probe.h); a unit that cannot be read has the angle NAN.
 */
#ifndef TRAX_PROBE_READER_H
#define TRAX_PROBE_READER_H

#include <stdbool.h>

#include "extract/probe/phase.h"
#include "extract/probe/probe.h"
#include "extract/probe/recent.h"

#define READER_CLASSES 48	/* of distances, by powers of two */
#define READER_MEMO 64
#define READER_REPEAT_MAX 15u
#define READER_BAD 64u

/* What a read is for. */
enum reader_purpose {
	READER_CLOCK,		/* also what calibrates */
	READER_LEAP,		/* the end of one */
	READER_INSIDE,		/* what it went over */
	READER_EVENT,		/* why one failed */
	READER_PROOF,
	READER_GAP,		/* what lies between known tracks */
	READER_PURPOSES
};

struct reader {
	struct prober *prober;
	struct phase phase;
	uint32_t unit_sectors;
	uint64_t offset;	/* sector of unit 0 */
	uint64_t units;
	double noise;		/* revolutions, standard deviation */
	double tolerance;	/* what noise leaves unharmed */
	double noise_once;	/* of one read alone */
	unsigned repeat;	/* reads for an angle, odd */
	uint64_t hit_ns;	/* faster is from a cache; 0: there is none */
	uint64_t stream_ns;	/* likewise of what is being read ahead */
	struct recent recent;	/* what the cache may hold */
	double around;		/* units of a turn, about; 0: not known */
	bool learned;		/* what a cache does is known; */
	bool whole;		/* reads of which it has a part are not begun
				 * from it; */
	double late;		/* how much later one ends for each unit before
				 * the last, as data go over the interface */
	bool any_order;		/* it begins with what comes by first */
	uint64_t last;		/* unit read last */
	uint64_t last_ns;	/* when that completed, */
	uint64_t took_ns;	/* and how long it took */
	uint64_t done_ns;	/* when all so far had completed */
	uint64_t until_ns;	/* -ETIME behind it; 0: there is time */
	double reach[READER_CLASSES]; /* ns to get to the medium */
	struct {
		uint64_t unit;
		double turn;
	} memo[READER_MEMO];
	unsigned memo_next;
	/* That could not be read, so often: drives try long. */
	struct {
		uint64_t unit;
		unsigned errors;
	} bad[READER_BAD];
	unsigned bad_next;

	/* Statistics. */
	uint64_t reads, hits, evictions, errors;
	enum reader_purpose purpose;	/* of those to come */
	uint64_t reads_for[READER_PURPOSES], ns_for[READER_PURPOSES];
};

/* `sector_of_unit_0` is the lowest aligned one. */
void reader_init(struct reader *reader, struct prober *prober,
		 double period_ns, uint32_t unit_sectors, uint64_t offset);

/* What reads are for from now on; returns what they were for. */
enum reader_purpose reader_set_purpose(struct reader *reader,
				       enum reader_purpose purpose);

/* From now on so many reads make an angle, rather the early ones of them: noise
 * and tolerance follow. */
void reader_sharpen(struct reader *reader, unsigned repeat);

/* Units that may be read before one that is wanted, at most. */
uint64_t reader_prefix_most(const struct reader *reader);

/* A read of some units just as it is asked for. */
int reader_raw(struct reader *reader, uint64_t unit, uint32_t units,
	       struct probe_access *access);

/* n reads at places that no cache knows, all over a part of the disk. */
int reader_elsewhere(struct reader *reader, uint64_t unit, unsigned n);

int reader_read(struct reader *reader, uint64_t unit, double *turn);

/* The angle at which a unit came lately; false: that is not known. */
bool reader_knows(const struct reader *reader, uint64_t unit, double *turn);

/* How often it came at an angle, lately, since it came at another one. */
unsigned reader_saw(const struct reader *reader, uint64_t unit, double turn);

/* As reader_read, not read again when that was done lately. */
int reader_recall(struct reader *reader, uint64_t unit, double *turn);

/* The same for one that is thought to lie at an angle; learns how long it
 * takes to get there. */
int reader_expect(struct reader *reader, uint64_t unit, double expected,
		  double *turn);

/*
 * Reads units from the medium, the first of which begins at an angle.  They are
 * asked for when that is a part of a revolution off, that of `ahead`; for as
 * many whole ones the drive is left alone before.  Where a cache has to be got
 * out of the way the head comes from before or `behind` them.  *turns: from
 * when it came by until all were read; NAN: they were not.
 */
int reader_span(struct reader *reader, uint64_t unit, uint32_t units,
		double begins, double ahead, bool behind, double *turns);

/* Something else first if what lies between the last unit and this one would
 * otherwise get into the cache on the way: what lets this one, which is thought
 * to lie at an angle or anywhere (NAN), be read soonest. */
int reader_part(struct reader *reader, uint64_t unit, double expected);

/* How long it will take to read a unit at an angle, in ns. */
double reader_cost(const struct reader *reader, uint64_t unit,
		   double expected);

/* Likewise, and what it takes to get a cache out of the way. */
double reader_effort(const struct reader *reader, uint64_t unit,
		     double expected);

#endif

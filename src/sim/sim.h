/*
 * sim.h - a simulated disk in virtual time.
 *
 * A struct disk like any other, with a clock of its own that only moves when
 * somebody waits: disk_poll with a timeout goes to the next completion (but no
 * further than the timeout), sim_advance lets time pass.  sim_env is that
 * clock and a seeded source of numbers, for the code under test.  The same seed
 * gives the same run.
 *
 * Two kinds of drive: one with a specification has a true geometry, a head and
 * caches; one without (spec NULL) takes the same time for every request, any
 * number of them at once.  The file system must never be given the
 * specification the drive has.
 *
 * Durability: a write is on the medium when it completes, or, with a volatile
 * cache, when a flush submitted after that completes (or it was FUA).
 * Until then a power cut may keep, drop or tear it.
 *
 * Bugs of the caller are asserted: bounds, alignment, two requests on the same
 * sectors one of which is a write, a buffer that changes under a write.
 */
#ifndef TRAX_SIM_SIM_H
#define TRAX_SIM_SIM_H

#include "base/env.h"
#include "disk/disk.h"
#include "sim/media.h"

struct drive;
struct sim;
struct spec;

/* What happens to the parts of a write that are not durable when power goes. */
enum sim_cut {
	SIM_CUT_KEEP,		/* all of it gets there */
	SIM_CUT_DROP,		/* nothing of it */
	SIM_CUT_TORN,		/* its atomic units up to one; that one, but of
				 * one write only, cannot be read; the rest is
				 * as it was */
	SIM_CUT_RANDOM,		/* each write: any of these, or its units in any
				 * order */
};

struct sim_options {
	uint64_t seed;
	uint64_t latency_ns;	/* without a specification; 0: 100 us */
	uint32_t logical_bytes;	/* 0: of the specification, or 512 */
	uint32_t physical_bytes; /* 0: of the specification, or 4096 */
	uint32_t atomic_bytes;	/* 0: logical_bytes */
	uint32_t max_sectors;	/* 0: 2048 */
	bool volatile_cache;	/* it has one, even if the specification has
				 * none */
	/* How late a busy host is, at the median: a request reaches the drive
	 * so late, its completion is told so late, and who waits for a moment
	 * is woken so late; one time in a hundred several times as late. */
	uint64_t host_ns;
	const struct media *content; /* the disk begins with a clone of this;
				      * NULL: with zeros */
};

/* `sectors` 0: as many as the specification has, which must outlive the disk.
 * NULL: out of memory, or a specification that cannot be (reported). */
struct sim *sim_new(const struct spec *spec, uint64_t sectors,
		    const struct sim_options *options);

/* Also the disk_close of its disk.  Requests still outstanding are gone. */
void sim_free(struct sim *sim);

struct disk *sim_disk(struct sim *sim);
struct env *sim_env(struct sim *sim);

/* ---- time ---- */

uint64_t sim_now_ns(const struct sim *sim);

/* Lets time pass.  What completes meanwhile is delivered, with its time, by
 * the next disk_poll. */
void sim_advance(struct sim *sim, uint64_t ns);

/* Time of the next completion (perhaps past); UINT64_MAX: none to come. */
uint64_t sim_next_ns(struct sim *sim);

/* Number of requests submitted and not delivered. */
unsigned sim_outstanding(const struct sim *sim);

/*
 * Polls until nothing is outstanding, including what done() submits.  Returns
 * how many completed, or what disk_poll failed with.
 */
int sim_drain(struct sim *sim);

/*
 * The drive becomes one that takes the same short time for everything (an
 * emulator at full speed, a moved virtual machine), or itself again; nothing is
 * outstanding.  Its spindle turns on meanwhile.  -ENOMEM.
 */
int sim_set_flat(struct sim *sim, bool flat);

/* ---- content ---- */

/* A clone of what reads return now; NULL: out of memory. */
struct media *sim_content(const struct sim *sim);

/* Latent errors and bit rot: the medium changes, nobody is told. */
int sim_damage(struct sim *sim, uint64_t sector, uint64_t sectors);
int sim_flip(struct sim *sim, uint64_t sector, unsigned bit);

/* ---- power ---- */

/*
 * Power goes now.  Outstanding requests never complete; disk_poll returns
 * -ESHUTDOWN and what is submitted is swallowed until sim_restart.
 */
int sim_power_cut(struct sim *sim, enum sim_cut cut, uint64_t seed);

/* Power goes when the k-th write from now (1: the next) is submitted: that
 * one and all others not yet durable are in the air.  0 disarms. */
void sim_power_cut_at(struct sim *sim, uint64_t k, enum sim_cut cut,
		      uint64_t seed);

bool sim_is_off(const struct sim *sim);

/* Power is back.  The content is what the cut left; time went on. */
void sim_restart(struct sim *sim);

/*
 * A moment of a drive, for trying many cuts without running up to each again:
 * taking one costs nothing but a copy of the writes in the air.
 */
struct sim_moment;

struct sim_moment *sim_moment_take(const struct sim *sim);
void sim_moment_free(struct sim_moment *moment);

/* What would be on the medium if power had gone then; caller frees. */
struct media *sim_moment_cut(const struct sim_moment *moment,
			     enum sim_cut cut, uint64_t seed);

/* ---- watching ---- */

/* Sets a function that is called for every request when it is submitted, after
 * it is in the air, so that a moment taken then has it. */
typedef void (*sim_hook)(struct sim *sim, const struct disk_request *req,
			 void *arg);
void sim_set_hook(struct sim *sim, sim_hook hook, void *arg);

/* ---- faults ---- */

enum sim_fault_kind {
	SIM_FAIL,		/* nothing is transferred, result = error */
	SIM_LOSE,		/* a write that reports success */
	SIM_MISDIRECT,		/* a write that goes `shift` sectors on */
	SIM_FLIP,		/* one bit of what is read or written */
	SIM_SLOW,		/* takes delay_ns longer */
	SIM_STUCK,		/* never completes */
};

#define SIM_READS (1u << DISK_READ)
#define SIM_WRITES (1u << DISK_WRITE)
#define SIM_FLUSHES (1u << DISK_FLUSH)
#define SIM_ALL (SIM_READS | SIM_WRITES | SIM_FLUSHES)

/*
 * Meets requests of the kinds in `ops` that touch [first, first + sectors)
 * (0 sectors: anywhere), from the k-th such on (1: the next), `times` times
 * (0: for ever).
 */
struct sim_fault {
	enum sim_fault_kind kind;
	unsigned ops;
	uint64_t first, sectors;
	uint64_t k, times;
	int error;		/* SIM_FAIL; 0: -EIO */
	int64_t shift;
	uint64_t delay_ns;
};

int sim_fault_add(struct sim *sim, const struct sim_fault *fault);
void sim_fault_clear(struct sim *sim);

/* Number of requests that have met a fault since the last clear. */
uint64_t sim_fault_hits(const struct sim *sim);

/* ---- counting ---- */

struct sim_counts {
	uint64_t reads, writes, flushes;	/* requests delivered */
	uint64_t read_sectors, written_sectors;
};

const struct sim_counts *sim_counts(const struct sim *sim);

/* The timing of it (sim/drive.h): head times, true geometry and mechanics, for
 * those who judge, never for the code under test. */
struct drive *sim_drive(struct sim *sim);

#endif

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
	SIM_CUT_KEEP,		/* all of it gets to the medium */
	SIM_CUT_DROP,		/* nothing of it does */
	SIM_CUT_TORN,		/* its atomic units up to one are new; that one
				 * cannot be read, in one of the writes only;
				 * the rest is old */
	SIM_CUT_RANDOM,		/* for each write any of these, or some of its
				 * units in any order */
};

struct sim_options {
	uint64_t seed;
	uint64_t latency_ns;	/* time of a request without a specification; 0:
				 * 100 us */
	uint32_t logical_bytes;	/* 0: that of the specification, or 512 */
	uint32_t physical_bytes; /* 0: that of the specification, or 4096 */
	uint32_t atomic_bytes;	/* 0: logical_bytes */
	uint32_t max_sectors;	/* 0: 2048 */
	bool volatile_cache;	/* the drive has one even if its specification
				 * has none */
	/* Median delay of a busy host: a request reaches the drive this much
	 * later, its completion is delivered this much later, and whoever waits
	 * for a time is woken this much later. One delay in a hundred is
	 * several times as long. */
	uint64_t host_ns;
	const struct media *content; /* the disk begins with a clone of this;
				      * NULL: with zeros */
};

/* sectors 0: as many as the specification has. The specification outlives the
 * disk. NULL: out of memory, or a specification that cannot be (reported). */
struct sim *sim_new(const struct spec *spec, uint64_t sectors,
		    const struct sim_options *options);

/* Does what disk_close does as well. Requests that are outstanding are
 * forgotten. */
void sim_free(struct sim *sim);

struct disk *sim_disk(struct sim *sim);
struct env *sim_env(struct sim *sim);

/* ---- time ---- */

uint64_t sim_now_ns(const struct sim *sim);

/* Lets time pass. What completes meanwhile has its own time, and is delivered
 * by the next disk_poll. */
void sim_advance(struct sim *sim, uint64_t ns);

/* Time of the next completion, which may be in the past; UINT64_MAX: there is
 * none to come. */
uint64_t sim_next_ns(struct sim *sim);

/* Number of requests submitted and not delivered. */
unsigned sim_outstanding(const struct sim *sim);

/*
 * Polls until nothing is outstanding, requests that done() submits included.
 * Returns how many completed, or the error of disk_poll.
 */
int sim_drain(struct sim *sim);

/*
 * Makes the drive one that takes the same short time for everything (an
 * emulator at full speed, a virtual machine that was moved), or makes it itself
 * again; nothing may be outstanding. Its spindle turns on meanwhile. -ENOMEM.
 */
int sim_set_flat(struct sim *sim, bool flat);

/* ---- content ---- */

/* A clone of the content that reads return now; NULL: out of memory. */
struct media *sim_content(const struct sim *sim);

/* Latent errors and bit rot: the medium changes, and nobody is told. */
int sim_damage(struct sim *sim, uint64_t sector, uint64_t sectors);
int sim_flip(struct sim *sim, uint64_t sector, unsigned bit);

/* ---- power ---- */

/*
 * Cuts the power now. Outstanding requests never complete; disk_poll returns
 * -ESHUTDOWN and requests are swallowed until sim_restart.
 */
int sim_power_cut(struct sim *sim, enum sim_cut cut, uint64_t seed);

/* Cuts the power when the k-th write from now (1: the next) is submitted: that
 * write and all others that are not durable may be lost. 0 disarms it. */
void sim_power_cut_at(struct sim *sim, uint64_t k, enum sim_cut cut,
		      uint64_t seed);

bool sim_is_off(const struct sim *sim);

/* Restores power. The content is what the cut has left; time has gone on. */
void sim_restart(struct sim *sim);

/*
 * A moment of a drive, for trying many cuts without running up to each again.
 * Taking one costs no more than a copy of the list of outstanding writes.
 */
struct sim_moment;

struct sim_moment *sim_moment_take(const struct sim *sim);
void sim_moment_free(struct sim_moment *moment);

/* The content of the medium if power had gone at that moment. The caller frees
 * it. */
struct media *sim_moment_cut(const struct sim_moment *moment,
			     enum sim_cut cut, uint64_t seed);

/* ---- watching ---- */

/* Sets a function that is called for every request when it has been submitted,
 * so that a moment taken then contains it. */
typedef void (*sim_hook)(struct sim *sim, const struct disk_request *req,
			 void *arg);
void sim_set_hook(struct sim *sim, sim_hook hook, void *arg);

/* ---- faults ---- */

enum sim_fault_kind {
	SIM_FAIL,		/* nothing is transferred; the result is
				 * `error` */
	SIM_LOSE,		/* a write changes nothing but reports
				 * success */
	SIM_MISDIRECT,		/* a write goes to a place `shift` sectors
				 * further on */
	SIM_FLIP,		/* one bit of what is read or written is
				 * inverted */
	SIM_SLOW,		/* the request takes delay_ns longer */
	SIM_STUCK,		/* the request never completes */
};

#define SIM_READS (1u << DISK_READ)	/* Sets of operations, as bits. */
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
	int error;		/* for SIM_FAIL; 0: -EIO */
	int64_t shift;
	uint64_t delay_ns;
};

int sim_fault_add(struct sim *sim, const struct sim_fault *fault);
void sim_fault_clear(struct sim *sim);

/* Number of requests that have met a fault since the last sim_fault_clear. */
uint64_t sim_fault_hits(const struct sim *sim);

/* ---- counting ---- */

struct sim_counts {
	uint64_t reads, writes, flushes;	/* requests that were
						 * delivered */
	uint64_t read_sectors, written_sectors;
};

const struct sim_counts *sim_counts(const struct sim *sim);

/* The drive's timing (sim/drive.h): head times, true geometry and mechanics. It
 * is for judging results, never for the code under test. */
struct drive *sim_drive(struct sim *sim);

#endif

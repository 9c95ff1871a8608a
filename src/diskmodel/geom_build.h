/*
 * geom_build.h - how a geometry is put together and what it is made of.
 *
 * For the makers of geometries only (specification, table, record); users of
 * a geometry need geom.h alone.
 *
 * A maker hands over the tracks in LBN order as *sweeps*: tracks that differ
 * by constant steps in cylinder, surface and angle and hold the same number of
 * sectors.  geom_build_finish finds where sweeps repeat with a period and keeps
 * each repetition once: that is why the size of a geometry does not depend on
 * the number of tracks.
 *
 *   geometry = runs; run = `count` tracks that follow a pattern cyclically from
 *   a phase; pattern = sweeps, with their offsets from the pattern's beginning.
 *
 * Defects do not interrupt a pattern.  Tracks that hold more or fewer LBNs than
 * the pattern says are listed as odd; slipped sectors inside a track and
 * remapped sectors are listed too.  LBNs that leave the odd tracks out of
 * account are called virtual.
 */
#ifndef TRAX_DISKMODEL_GEOM_BUILD_H
#define TRAX_DISKMODEL_GEOM_BUILD_H

#include "diskmodel/geom.h"

/* Bounds of what a geometry may hold; checked wherever one is made. */
#define GEOM_MAX_CYLINDERS (1u << 28)
#define GEOM_MAX_SURFACES 4096u
#define GEOM_MAX_TRACK_SECTORS (1u << 24)
#define GEOM_MAX_SECTORS (UINT64_C(1) << 56)

/* Tracks [0, count): cylinder + i * cylinder_step, and so on. */
struct geom_sweep {
	uint32_t count;
	uint32_t sectors;	/* LBNs on each track */
	uint32_t around;	/* physical sectors around it, >= sectors */
	int64_t cylinder;
	int32_t surface;
	angle base;		/* angle of physical sector 0 */
	int32_t cylinder_step;
	int32_t surface_step;
	angle base_step;
	bool known;
};

/* A track that holds `more` LBNs than its sweep says; it may be negative. */
struct geom_odd {
	uint64_t track;
	int32_t more;

	/* Derived members. */
	uint32_t sectors;
	uint64_t first_lbn;
	int64_t before;		/* sum of `more` of all odd tracks before it */
};

/* Physical sectors [at, at + n) of a track that hold no LBN. */
struct geom_slip {
	uint64_t track;
	uint32_t at;
	uint32_t n;
};

/* LBNs [lbn, lbn + n) that lie somewhere else. */
struct geom_remap {
	uint64_t lbn;
	uint32_t n;
	uint32_t cylinder;
	uint32_t surface;
	uint32_t sector;	/* physical position there */
	uint32_t around;	/* physical sectors of that track */
	angle start;
};

/* A sweep within a pattern: its place is relative to the pattern's start. */
struct geom_part {
	struct geom_sweep sweep;
	uint64_t first_track;
	uint64_t first_lbn;
};

struct geom_pattern {
	uint32_t part;		/* first of its parts */
	uint32_t parts;
	uint64_t tracks;	/* tracks of one period */
	uint64_t sectors;
	int64_t cylinder_step;	/* added to the cylinder with each period */
	int32_t surface_step;
	angle base_step;
};

/*
 * The values hold for the virtual beginning of period 0; its first `phase`
 * tracks are not part of the run.
 */
struct geom_run {
	uint64_t first_track;	/* first track of the run */
	uint64_t first_lbn;	/* first LBN of the run, virtual */
	uint64_t count;		/* number of tracks */
	uint64_t phase;		/* tracks into the pattern */
	uint64_t phase_lbn;	/* the same distance in sectors */
	int64_t cylinder;
	int32_t surface;
	angle base;
	uint32_t pattern;
};

struct geom {
	uint64_t sectors;
	uint64_t tracks;
	uint64_t period_ns;
	bool known;
	struct geom_part *parts;
	struct geom_pattern *patterns;
	struct geom_run *runs;
	struct geom_odd *odds;		/* sorted by track */
	struct geom_slip *slips;	/* sorted by track, then by position */
	struct geom_remap *remaps;	/* sorted by LBN */
	uint32_t parts_n, patterns_n, runs_n, odds_n, slips_n, remaps_n;
};

/*
 * Fits a constant step to angles that are only right to a tolerance: after
 * any number of takes, n * geom_build_fitted is within it of every `off` taken.
 * Begins with a step that the first one has, lo INT32_MIN, hi INT32_MAX.
 */
struct geom_fit {
	angle step;
	int64_t tolerance;
	int64_t lo, hi;		/* bounds of what may be added to the step */
};

/* The angle after n steps, n at least 1; false: no step fits all angles. */
bool geom_build_fit(struct geom_fit *fit, angle off, uint32_t n);
angle geom_build_fitted(const struct geom_fit *fit);

/* How a run goes on `ahead` tracks behind its end, with count 0. */
void geom_run_after(const struct geom *geom, const struct geom_run *run,
		    uint64_t ahead, struct geom_run *out);

struct geom_build;

/* Angles that differ by no more than `tolerance` count as equal. */
struct geom_build *geom_build_new(uint64_t period_ns, angle tolerance);
void geom_build_free(struct geom_build *build);

/* Appends tracks. -EINVAL: the sweep is out of bounds. */
int geom_build_sweep(struct geom_build *build, const struct geom_sweep *sweep);

/* Adds irregularities of tracks that were appended already or are appended
 * next; each kind in ascending order. */
int geom_build_odd(struct geom_build *build, uint64_t track, int32_t more);
int geom_build_slip(struct geom_build *build, const struct geom_slip *slip);
int geom_build_remap(struct geom_build *build, const struct geom_remap *remap);

/* Appends pseudo-tracks, whose boundaries are unknown, up to `sectors` in
 * all. */
int geom_build_pseudo(struct geom_build *build, uint64_t sectors,
		      uint32_t track_sectors);

/* Number of tracks appended so far. */
uint64_t geom_build_tracks(const struct geom_build *build);
uint64_t geom_build_sectors(const struct geom_build *build);

/* Sets a function that is called now and then while the geometry is made,
 * because many tracks take long. */
void geom_build_pause(struct geom_build *build, void (*pause)(void *arg),
		      void *arg);

/* Makes the geometry; `build` remains the caller's. */
int geom_build_finish(struct geom_build *build, struct geom **geom);

/* Sectors that go round a track: those on it, if that is not known. */
uint32_t geom_around(const struct geom_track *track);

/* How many sectors more a track holds than others of its sweep. */
int32_t geom_more(const struct geom *geom, uint64_t track);

/* What is to be changed of the tracks of a geometry. */
struct geom_changer {
	/* Of each in order: cylinder, surface, base (of its first sector),
	 * around and known of the sweep (of one) may be set. */
	void (*change)(void *arg, const struct geom_track *track,
		       struct geom_sweep *sweep);
	void *arg;
	/* NULL, or called now and then, because many tracks take long. */
	void (*pause)(void *arg);
	void *pause_arg;
};

/* Makes a geometry of the same tracks, so changed; slipped and remapped sectors
 * are left out, and angles may move by one part in GEOM_CHANGE_TURNS of a
 * revolution. */
#define GEOM_CHANGE_TURNS 2000u
int geom_change(const struct geom *geom, const struct geom_changer *changer,
		struct geom **changed);

/* The same tracks, but unknown where knows() returns false. */
int geom_less(const struct geom *geom,
	      bool (*knows)(void *arg, const struct geom_track *track),
	      void *arg, struct geom **less);

/* NULL when every part of a geometry is within bounds and consistent, otherwise
 * what is wrong. Computes the derived members. */
const char *geom_build_verify(struct geom *geom);

#endif

/*
 * map.h - the map of tracks by timing.
 *
 * A map is what is known of where tracks begin and end and at which angles,
 * got from a drive that answers reads and from nothing else: single reads,
 * whose completion times modulo the period are angles
 * (extract/probe/reader.h).  It grows by ranges; what can't be decided is
 * unknown, never guessed.
 *
 * Tracks are sectors of 512 bytes; angles are those of one reference sector
 * for the whole map.  A map is owned by who made it; the prober outlives it.
 * Functions return 0 or a negative errno: the prober's (-EINTR, -ENODEV), after
 * which what was learned is still there and the same call goes on;
 * -EOPNOTSUPP, the noise is too large; -EIO, nothing can be read there.
 */
#ifndef TRAX_TRACK_MAP_H
#define TRAX_TRACK_MAP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "diskmodel/geom.h"
#include "extract/probe/probe.h"
#include "extract/probe/reader.h"

struct map;

struct map_progress {
	uint64_t done_sectors, total_sectors;
	uint64_t tracks;
};

struct map_options {
	uint64_t period_ps;	/* right to a few millionths */
	uint32_t unit_sectors;	/* of a physical sector; 0: of the limits */
	uint64_t aligned;	/* lowest aligned sector */
	/* Called now and then; not 0 ends the measuring with that.  Or NULL. */
	int (*progress)(const struct map_progress *progress, void *arg);
	void *arg;
};

struct map_stats {
	uint64_t reads, hits, evictions, errors;
	uint64_t disk_ns;	/* in map_extract */
	uint64_t tracks;	/* known */
	uint64_t known_sectors, unknown_sectors; /* decided to be unknown */
	uint64_t leaps, events;	/* leaps that failed */
	uint64_t slips, gone;	/* odd tracks, tracks without sectors */
	uint64_t failed;	/* stretches that were refuted */
	uint64_t reads_for[READER_PURPOSES], ns_for[READER_PURPOSES];
	double noise;		/* revolutions */
	double period_ns;	/* as refined, */
	double period_ppm;	/* and to how many millionths */
};

int map_open(struct prober *prober, const struct map_options *options,
	    struct map **map);
void map_close(struct map *map);

/* Maps [first, end) as far as it is not mapped; whole tracks, perhaps a few
 * more. */
int map_extract(struct map *map, uint64_t first, uint64_t end);

/*
 * Within `most_ns`, what serves best: the beginning of the disk, and as many
 * places spread evenly over it as there is time for, a few tracks each.  The
 * rest stays unknown.
 */
int map_quick(struct map *map, uint64_t most_ns);

/* The end of the run of known (or unknown) sectors that `sector` is in. */
uint64_t map_known(const struct map *map, uint64_t sector, bool *known);

/* known = false for all that is not known. */
int map_geom(const struct map *map, struct geom **geom);

/* Nothing is known of [first, end) and the tracks around: to be extracted
 * again.  -ENOMEM. */
int map_forget(struct map *map, uint64_t first, uint64_t end);

/* The spindle was left alone for long: the next call finds the phase again. */
void map_forget_clock(struct map *map);

void map_get_stats(const struct map *map, struct map_stats *stats);

/* To go on another day: map_load on a map_new of the same drive.  NULL: no
 * memory.  -EINVAL: not a state of this drive (reported). */
json_t *map_save(const struct map *map);
int map_load(struct map *map, const json_t *state);

#endif

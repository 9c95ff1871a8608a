/*
 * spec.h - a drive on paper: specification and profile (traxfs-profile(5)).
 *
 * One JSON format serves both: the specification of a simulated drive, and the
 * profile of a real one as far as it has been measured.  The caller that reads
 * or makes a spec owns it and frees it with spec_free.
 *
 * Units: sectors in a spec are physical sectors (physical_bytes), except where
 * a name says lbn; LBNs are sectors of 512 bytes.  Angles as in geom.h.
 */
#ifndef TRAX_DISKMODEL_SPEC_H
#define TRAX_DISKMODEL_SPEC_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "diskmodel/geom.h"
#include "diskmodel/service.h"

/* Bytes of an LBN, whatever the drive's own sectors have. */
#define SPEC_SECTOR_BYTES 512u

/* Order in which LBNs go over the tracks of a zone. */
enum spec_order {
	SPEC_CYLINDER,		/* all surfaces of a cylinder, next cylinder */
	SPEC_CYLINDER_SERPENTINE, /* the same, every other cylinder backwards */
	SPEC_SERPENTINE,	/* group_cylinders along one surface, back along
				 * the next, ..., next group */
};

/* Directions in which a serpentine's groups run. */
enum spec_direction {
	SPEC_ALTERNATE,		/* inwards on the first surface, outwards on the
				 * next one, and so on */
	SPEC_ALTERNATE_OUT,	/* outwards on the first surface, inwards on the
				 * next one, and so on */
	SPEC_INWARDS,		/* inwards on all surfaces */
	SPEC_OUTWARDS,
};

/* Which waiting request a drive serves next: the oldest, the one with the
 * shortest seek, or the one that the head reaches first. */
enum spec_policy { SPEC_FCFS, SPEC_SSTF, SPEC_SPTF };

struct spec_list {
	uint64_t *v;
	size_t n;
};

struct spec_zone {
	uint32_t first_cylinder, last_cylinder;
	uint32_t *around;	/* sectors of a track on each surface */
	uint32_t *surface_order; /* order of the surfaces; NULL: 0, 1, ... */
	angle track_skew;	/* skew to the next surface */
	angle cylinder_skew;	/* skew to the next cylinder */
	angle group_skew;	/* skew to the next group of a serpentine */
	bool start_given;
	angle start;		/* angle of the zone's first track */
	uint32_t reserved;	/* sectors without LBNs at the front of the
				 * zone */
	uint32_t spares_zone;	/* sectors without LBNs at the end of each
				 * zone */
	uint32_t spares_cylinder;
	uint32_t spares_track;
	struct spec_list slips;	/* slipped sectors, counted from the zone's
				 * first */
	struct spec_list slipped_tracks; /* slipped tracks, counted from the
					  * zone's first */
};

struct spec_remap {
	uint64_t lbn;
	uint32_t lbns;
	uint32_t cylinder, surface, sector;
};

/* Delays with which completions arrive, never negative. */
struct spec_noise {
	uint64_t normal_ns;	/* standard deviation; they arrive about three
				 * times this late */
	uint64_t exponential_ns; /* mean of an exponential delay */
	double late;		/* share of completions that are later still, by
				 * ... */
	uint64_t late_min_ns, late_max_ns;
};

struct spec {
	char *name;
	uint32_t logical_bytes, physical_bytes;
	uint64_t lbns;		/* number of LBNs; 0: all there is room for */
	uint32_t surfaces;
	enum spec_order order;
	uint32_t group_cylinders;
	enum spec_direction direction;
	bool alternate_surfaces; /* every other group begins with the last
				  * surface */
	struct spec_zone *zones;
	size_t zones_n;
	struct spec_remap *remaps;	/* sorted by LBN */
	size_t remaps_n;
	/* Used instead of zones and remaps: the tracks as they were
	 * measured. */
	struct geom *geom;
	struct service_mech mech;
	uint64_t read_overhead_ns, write_overhead_ns, hit_overhead_ns;
	uint32_t cache_segments;	/* 0: no read cache */
	uint32_t segment_lbns, read_ahead_lbns;
	/* Behind a read up to a track's end it goes to the next track, to read
	 * ahead there, before it serves another command. */
	bool read_ahead_moves;
	uint32_t write_cache_lbns;	/* LBNs of the write cache, which is
					 * volatile; 0: none */
	enum spec_policy policy;
	uint32_t depth;			/* depth of its queue, at least 1 */
	uint64_t seek_jitter_ns, overhead_jitter_ns;
	struct spec_noise noise;
	double idle_w, active_w, seek_w;
};

/* Reads a file.  -errno of open and read, -EINVAL for what is wrong in it,
 * with file, line or key, and reason through msg. */
int spec_read(const char *path, struct spec **spec);

/* Reads a specification from text; `name` is for messages. */
int spec_parse(const char *text, const char *name, struct spec **spec);

void spec_free(struct spec *spec);

/* Writes all of a spec. Reading it back gives the same spec. */
int spec_write(const struct spec *spec, FILE *f);

/* The geometry the spec describes.  -EINVAL: impossible (through msg). */
int spec_geom(const struct spec *spec, struct geom **geom);

#endif

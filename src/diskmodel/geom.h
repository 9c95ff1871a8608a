/*
 * geom.h - which sectors lie on which track, and at which angle.
 *
 * A geometry is a model (what the file system assumes) or the truth (what a
 * simulated drive is); the two are never the same instance. It is immutable
 * once made, does no I/O and knows no clock. Its size grows with the
 * irregularity of the drive, not with its number of tracks; lookups are
 * logarithmic in the number of irregularities.
 *
 * Units: LBN and lengths in sectors of 512 bytes; angles in 2^-32 revolutions
 * (wrap-around is free); tracks are numbered in LBN order from 0; cylinders and
 * surfaces count from 0 at the outer edge.
 */
#ifndef TRAX_DISKMODEL_GEOM_H
#define TRAX_DISKMODEL_GEOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t angle;		/* 2^32 = one revolution */

struct geom;

struct geom_track {
	uint64_t index;		/* number of the track, in LBN order */
	uint64_t first;		/* first LBN */
	uint32_t sectors;	/* number of LBNs on it; 0 never occurs */
	uint32_t cylinder;
	uint32_t surface;
	angle start;		/* angle of the first LBN's leading edge */
	angle per_sector;	/* angle of one LBN, rounded down */
	bool known;		/* measured or given, not a pseudo-track */
};

struct geom_place {
	uint32_t cylinder;
	uint32_t surface;
	uint32_t sector;	/* among the track's physical sectors */
	angle start;		/* angle of its leading edge */
};

/* Length of a pseudo-track where nothing else is said: 1 MiB. */
#define GEOM_PSEUDO_SECTORS 2048u

/*
 * Regular pseudo-tracks of `track_sectors` over `sectors`, for disks of which
 * nothing is known: known = false, one surface, angles 0.
 */
int geom_regular(uint64_t sectors, uint32_t track_sectors, struct geom **geom);

/*
 * Reads a plain table (mkfs.traxfs --tracks): one line a track: first LBN,
 * length, cylinder, surface, angle of the first sector in revolutions; sectors
 * of 512 bytes.  Must begin at 0 and have no gaps or overlaps; lines with # are
 * ignored, but that "# FIRST SECTORS unknown" is a gap of pseudo-tracks; such
 * are LBNs past the last line, too, up to `sectors`.
 * -EINVAL with file, line and reason through msg.
 */
int geom_read_table(const char *path, uint64_t sectors, struct geom **geom);

int geom_copy(const struct geom *geom, struct geom **copy);
void geom_free(struct geom *geom);

uint64_t geom_sectors(const struct geom *geom);
uint64_t geom_tracks(const struct geom *geom);

/* Is the boundary of any track known? */
bool geom_known(const struct geom *geom);

/* Number of sectors on tracks whose boundaries are known. */
uint64_t geom_known_sectors(const struct geom *geom);

/* Nominal period of a revolution; 0 when not known. */
uint64_t geom_period_ns(const struct geom *geom);
/* A period to reckon with when it is not known, in nanoseconds: that of a drive
 * with 7,200 revolutions a minute. */
#define GEOM_USUAL_PERIOD_NS 8333333u

/* The track that holds an LBN.  lbn < geom_sectors. */
void geom_track_of(const struct geom *geom, uint64_t lbn,
		   struct geom_track *out);

/* The index-th track.  index < geom_tracks. */
void geom_track_at(const struct geom *geom, uint64_t index,
		   struct geom_track *out);

/* Bounds over the tracks [first, first + n), n at least 1. The cost grows with
 * the changes of pattern, not with n. */
struct geom_bounds {
	uint32_t low, high;	/* cylinders, both included */
	uint32_t around;	/* sectors around the longest track, slipped
				 * ones included */
	uint32_t least;		/* sectors on the shortest track */
};
void geom_bounds_of(const struct geom *geom, uint64_t first, uint64_t n,
		    struct geom_bounds *out);

/* Cylinder, surface, sector and angle of an LBN, defects applied. */
void geom_place_of(const struct geom *geom, uint64_t lbn,
		   struct geom_place *out);

/* The first run of remapped LBNs that ends after `lbn`; false: there is none.
 * Remapped LBNs are not on the track that their number gives. */
bool geom_remap_next(const struct geom *geom, uint64_t lbn, uint64_t *first,
		     uint32_t *sectors);

/* The inverse: the LBN whose sector is at or after this angle on a track. */
uint64_t geom_lbn_at(const struct geom *geom, const struct geom_track *track,
		     angle at);

/*
 * Compact binary record for the file system (versioned, checksummed).
 * geom_encode allocates *buf (caller frees).  geom_decode believes nothing:
 * -EBADMSG or -EUCLEAN with the reason through msg.
 */
int geom_encode(const struct geom *geom, void **buf, size_t *bytes);
int geom_decode(const void *buf, size_t bytes, struct geom **geom);

#endif

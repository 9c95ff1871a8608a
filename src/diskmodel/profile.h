/*
 * profile.h - what is known of one drive, by which method, and how certainly.
 *
 * Advice, never truth. A profile belongs to the code that made or read it,
 * which calls profile_free.
 *
 * Units: sectors of 512 bytes; see geom.h and service.h.
 */
#ifndef TRAX_DISKMODEL_PROFILE_H
#define TRAX_DISKMODEL_PROFILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "diskmodel/geom.h"
#include "diskmodel/service.h"
#include "diskmodel/spec.h"

enum profile_method {
	PROFILE_NONE,		/* not known */
	PROFILE_GIVEN,		/* from a specification or a table that a person
				 * gave */
	PROFILE_TIMING,
	PROFILE_SCSI,
	PROFILE_TRACE,		/* lower envelope of requests (FS2, 4.2) */
	PROFILE_METHODS
};

enum profile_part {
	PROFILE_PERIOD, PROFILE_BOUNDARIES, PROFILE_ANGLES, PROFILE_SEEK,
	PROFILE_SWITCH, PROFILE_SETTLE, PROFILE_OVERHEAD, PROFILE_ZERO_LATENCY,
	PROFILE_READ_AHEAD,
	PROFILE_SURFACES,	/* which surface and cylinder each track lies
				 * on */
	PROFILE_PARTS
};

/* Confidence of a part that is certain, in millionths. */
#define PROFILE_CERTAIN_PPM 1000000u

/* Power in watts while seeking, and while turning, of a drive of which it is
 * not known: FS2, table 1. */
#define PROFILE_USUAL_SEEK_W 14.0
#define PROFILE_USUAL_ACTIVE_W 8.0

struct profile {
	/* Printable ASCII; "": not known. */
	char model[64], serial[64], firmware[32];
	uint64_t sectors;	/* number of sectors, that of the geometry */
	uint32_t physical_bytes;
	int64_t made_wall_ns;	/* 0: not known; files keep whole seconds */
	struct {
		enum profile_method method;
		uint32_t confidence_ppm;
	} part[PROFILE_PARTS];
	struct geom *geom;	/* never NULL */
	/* Times of the mechanics. seek: owned, NULL: not known; phase is not
	 * used; period_ps 0: not known. */
	struct service_mech mech;
	uint64_t read_overhead_ns, write_overhead_ns, hit_overhead_ns;
	uint32_t read_ahead_sectors;
	double idle_w, active_w, seek_w; /* power in watts; 0: not known; kept
					  * to a milliwatt */
	/* State of a measurement under way, opaque, for the code that measures
	 * to go on from. Owned; NULL: none. Records hold it, files do not. */
	void *progress;
	size_t progress_bytes;
};

/* Most bytes of the state of a measurement; a record with more is damaged. */
#define PROFILE_MAX_PROGRESS (16u << 20)

/* Reads a profile or a drive specification (one JSON format;
 * traxfs-profile(5)).  -errno of open and read, -EINVAL for what is wrong in
 * it, with file, line or key, and reason through msg. */
int profile_read(const char *path, struct profile **profile);
/* Reads a profile from text; `name` is for messages. */
int profile_parse(const char *text, const char *name,
		  struct profile **profile);
int profile_write(const struct profile *profile, FILE *f);

int profile_from_spec(const struct spec *spec, struct profile **profile);
/* Makes a profile that has only this geometry, which it then owns. NULL: no
 * memory; the geometry is still the caller's. */
struct profile *profile_from_geom(struct geom *geom, enum profile_method how);
int profile_copy(const struct profile *profile, struct profile **copy);
void profile_free(struct profile *profile);

/* A part is known in that way, and how surely; 0: it is not known. */
void profile_found(struct profile *profile, enum profile_part part,
		   enum profile_method how, uint32_t ppm);

/* Forgets the seek curve: its distances are counted in cylinders, which have
 * been redefined. */
void profile_forget_seeks(struct profile *profile);

/* The compact record of a profile in the file system. profile_encode allocates
 * *buf. profile_decode trusts nothing: -EBADMSG or -EUCLEAN with the reason
 * through msg. The record of a geometry alone (geom_encode) is read as a
 * profile of which nothing else is known. */
int profile_encode(const struct profile *profile, void **buf, size_t *bytes);
int profile_decode(const void *buf, size_t bytes, struct profile **profile);

/* NULL when all is within bounds, else what is wrong. */
const char *profile_verify(const struct profile *profile);

/* Name of a method, as "timing". */
const char *profile_method_name(enum profile_method method);
const char *profile_part_name(enum profile_part part);

#endif

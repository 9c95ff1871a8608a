/*
 * service.h - how long a drive takes: pure functions of where the head is.
 *
 * The simulated drive asks with the true mechanics and geometry, the scheduler
 * with what it believes; neither knows the other's.
 *
 * Units: nanoseconds on any clock, as long as it is one; angles as in geom.h.
 */
#ifndef TRAX_DISKMODEL_SERVICE_H
#define TRAX_DISKMODEL_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "diskmodel/geom.h"

/* A seek of that many cylinders takes that long, to be ready to read. */
struct service_seek {
	uint32_t cylinders;
	uint64_t ns;
};

/* What moves, and how fast. */
struct service_mech {
	uint64_t period_ps;	/* of one revolution */
	uint64_t phase_ns;	/* at this time ... */
	angle phase;		/* ... this angle was under the head */
	struct service_seek *seek; /* ascending, at least one; interpolated */
	uint32_t seek_n;
	uint64_t head_switch_ns;
	uint64_t write_settle_ns; /* after a seek or switch, before writing */
	bool zero_latency_read;	/* begins anywhere within the request */
	bool zero_latency_write;
	uint64_t bus_bytes_per_s; /* 0: infinite */
};

/* The head, free for the next request from at_ns on. */
struct service_head {
	uint64_t at_ns;
	uint32_t cylinder;
	uint32_t surface;
};

struct service_request {
	bool write;
	uint64_t lbn;
	uint32_t sectors;	/* at least 1 */
	int64_t error_ns;	/* of positioning; 0 in a prediction */
};

/* The parts add up to the head's time. */
struct service {
	uint64_t seek_ns;	/* with the settling for a write */
	uint64_t switch_ns;	/* of heads, without a seek */
	uint64_t rotation_ns;
	uint64_t transfer_ns;
	uint64_t media_ns;	/* when the medium was first read or written */
	uint64_t bus_ns;	/* when all had gone over the bus, in order */
	struct service_head head; /* afterwards */
};

/* What is under the head at a time. */
angle service_angle(const struct service_mech *mech, uint64_t at_ns);

/* How long to turn by an angle; `turn` up to a revolution, 2^32. */
uint64_t service_turn_ns(const struct service_mech *mech, uint64_t turn);

/* How long until an angle comes under the head.  A sector that has only just
 * passed because of rounding has not. */
uint64_t service_wait_ns(const struct service_mech *mech, uint64_t at_ns,
			 angle until);

/* Zero for the same cylinder. */
uint64_t service_seek_ns(const struct service_mech *mech, uint32_t from,
			 uint32_t to);

/* From one track to another: seek, or switch, and settling. */
uint64_t service_move_ns(const struct service_mech *mech,
			 const struct service_head *head, uint32_t cylinder,
			 uint32_t surface, bool write);

/* The whole request, track by track, remapped sectors included. */
void service_estimate(const struct geom *geom, const struct service_mech *mech,
		      const struct service_head *head,
		      const struct service_request *req, struct service *out);

/*
 * How many sectors from `lbn` on have passed under the head by a moment when
 * it just goes on reading; at most `max`.  *head is where it is afterwards:
 * at the end of the last whole sector.  Counts the time in *out, which adds
 * up.
 */
uint32_t service_stream(const struct geom *geom,
			const struct service_mech *mech,
			struct service_head *head, uint64_t lbn, uint32_t max,
			uint64_t until_ns, struct service *out);

#endif

/*
 * service.h - how long a drive takes: pure functions of where the head is.
 *
 * The simulated drive calls them with the true mechanics and geometry, the
 * scheduler with its model; neither has the other's.
 *
 * Units: nanoseconds on any one clock; angles as in geom.h.
 */
#ifndef TRAX_DISKMODEL_SERVICE_H
#define TRAX_DISKMODEL_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "diskmodel/geom.h"

/* One point of the seek curve: time of a seek over `cylinders` until the head
 * can read. */
struct service_seek {
	uint32_t cylinders;
	uint64_t ns;
};

/* The mechanics: everything that moves, and its speed. */
struct service_mech {
	uint64_t period_ps;	/* period of a revolution */
	uint64_t phase_ns;	/* the time at which the phase was `phase` */
	angle phase;		/* ... this angle was under the head */
	struct service_seek *seek; /* seek curve, ascending, at least one point;
				    * interpolated */
	uint32_t seek_n;
	uint64_t head_switch_ns;
	uint64_t write_settle_ns; /* added after a seek or switch, before
				   * writing */
	bool zero_latency_read;	/* reading may begin anywhere within the
				 * request */
	bool zero_latency_write;
	uint64_t bus_bytes_per_s; /* rate of the bus; 0: infinite */
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
	int64_t error_ns;	/* error of positioning; 0 in a prediction */
};

/* Times of one request; the parts add up to the head's time. */
struct service {
	uint64_t seek_ns;	/* seek time, with settling for a write */
	uint64_t switch_ns;	/* time of a head switch without a seek */
	uint64_t rotation_ns;
	uint64_t transfer_ns;
	uint64_t media_ns;	/* when the head began to read or write on the
				 * medium */
	uint64_t bus_ns;	/* when all data had gone over the bus, in
				 * order */
	struct service_head head; /* the head afterwards */
};

/* The angle under the head at a time. */
angle service_angle(const struct service_mech *mech, uint64_t at_ns);

/* Time to turn by an angle; `turn` is at most one revolution, 2^32. */
uint64_t service_turn_ns(const struct service_mech *mech, uint64_t turn);

/* Time until an angle comes under the head. A sector that has passed only
 * because of rounding counts as not yet passed. */
uint64_t service_wait_ns(const struct service_mech *mech, uint64_t at_ns,
			 angle until);

/* Time of a seek; zero within a cylinder. */
uint64_t service_seek_ns(const struct service_mech *mech, uint32_t from,
			 uint32_t to);

/* Time to go from one track to another: seek or switch, and settling. */
uint64_t service_move_ns(const struct service_mech *mech,
			 const struct service_head *head, uint32_t cylinder,
			 uint32_t surface, bool write);

/* Estimates the whole request, track by track, remapped sectors included. */
void service_estimate(const struct geom *geom, const struct service_mech *mech,
		      const struct service_head *head,
		      const struct service_request *req, struct service *out);

/*
 * Number of sectors from `lbn` on, at most `max`, that have passed under a head
 * that just reads on until a moment. *head: where it is then, at the end of the
 * last whole sector. Adds the times to *out.
 */
uint32_t service_stream(const struct geom *geom,
			const struct service_mech *mech,
			struct service_head *head, uint64_t lbn, uint32_t max,
			uint64_t until_ns, struct service *out);

/* The head has read all up to `lbn` and goes on: if a track begins there, it
 * moves to that. Returns the time of the move. */
uint64_t service_go_on(const struct geom *geom, const struct service_mech *mech,
		       struct service_head *head, uint64_t lbn);

#endif

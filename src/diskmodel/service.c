/*
 * service.c - a request as the head meets it.
 *
 * A request is cut into parts that lie in one arc of one track; for each the
 * head moves, waits and transfers:
 *
 *        move           wait             transfer
 *   |-------------|---------------|====================|
 *
 * With zero-latency access a head that arrives inside the arc begins with the
 * next sector and is done one revolution later; otherwise it waits for the
 * beginning.
 *
 * The bus delivers in LBN order, so what was read before the first LBN waits
 * in the buffer until that has come by.
 */
#include "diskmodel/service.h"

#define TURN (UINT64_C(1) << 32)	/* A whole revolution as an angle. */
/* Times are rounded to nanoseconds and angles to 2^-32, so an angle that is
 * missed by less than this counts as met. */
#define SLACK_NS 200u

/* Part of a request that lies within one arc of one track. */
struct transfer_part {
	uint32_t sectors;
	uint32_t cylinder, surface;
	angle start;
	angle per_sector;
	uint64_t arc;
};

angle service_angle(const struct service_mech *mech, uint64_t at_ns)
{
	uint64_t forward = at_ns >= mech->phase_ns;
	uint64_t dt_ns = forward ? at_ns - mech->phase_ns :
				   mech->phase_ns - at_ns;
	unsigned __int128 ps = (unsigned __int128)dt_ns * 1000u;
	angle turn = (angle)(((ps % mech->period_ps) << 32) / mech->period_ps);

	return forward ? mech->phase + turn : mech->phase - turn;
}

uint64_t service_turn_ns(const struct service_mech *mech, uint64_t turn)
{
	unsigned __int128 ps = (unsigned __int128)turn * mech->period_ps;

	return (uint64_t)((ps >> 32) + 500) / 1000;
}

uint64_t service_wait_ns(const struct service_mech *mech, uint64_t at_ns,
			 angle until)
{
	angle turn = until - service_angle(mech, at_ns);

	if (service_turn_ns(mech, (angle)-turn) <= SLACK_NS)
		return 0;
	return service_turn_ns(mech, turn);
}

uint64_t service_seek_ns(const struct service_mech *mech, uint32_t from,
			 uint32_t to)
{
	uint32_t d = from < to ? to - from : from - to;
	uint32_t lo = 0, hi = mech->seek_n;
	const struct service_seek *a, *b;

	if (!d)
		return 0;
	/* Searches for the first point beyond the distance. */
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (mech->seek[mid].cylinders <= d)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || lo == mech->seek_n)
		return mech->seek[lo ? lo - 1 : 0].ns;
	a = &mech->seek[lo - 1];
	b = &mech->seek[lo];
	return (uint64_t)((int64_t)a->ns +
			  ((int64_t)b->ns - (int64_t)a->ns) *
				  (int64_t)(d - a->cylinders) /
				  (int64_t)(b->cylinders - a->cylinders));
}

uint64_t service_move_ns(const struct service_mech *mech,
			 const struct service_head *head, uint32_t cylinder,
			 uint32_t surface, bool write)
{
	uint64_t ns = service_seek_ns(mech, head->cylinder, cylinder);

	if (surface != head->surface && ns < mech->head_switch_ns)
		ns = mech->head_switch_ns;
	if (ns && write)
		ns += mech->write_settle_ns;
	return ns;
}

static void part_at(const struct geom *geom, uint64_t lbn, uint32_t sectors,
		     struct transfer_part *part)
{
	struct geom_track track;
	struct geom_place first, last;
	uint64_t moved, end;
	uint32_t moved_n;

	geom_track_of(geom, lbn, &track);
	end = track.first + track.sectors;
	if (geom_remap_next(geom, lbn, &moved, &moved_n)) {
		if (moved > lbn && moved < end)
			end = moved;
		else if (moved <= lbn && moved + moved_n < end)
			end = moved + moved_n;
	}
	if (sectors > end - lbn)
		sectors = (uint32_t)(end - lbn);
	geom_place_of(geom, lbn, &first);
	last = first;
	if (sectors > 1)
		geom_place_of(geom, lbn + sectors - 1, &last);
	part->sectors = sectors;
	part->cylinder = first.cylinder;
	part->surface = first.surface;
	part->start = first.start;
	part->per_sector = track.per_sector;
	part->arc = (uint64_t)(angle)(last.start - first.start) +
		     track.per_sector;
	if (part->arc > TURN)
		part->arc = TURN;
}

/* Moves the head to the track of a part. */
static void move_to(const struct service_mech *mech,
		    const struct transfer_part *p, bool write, int64_t error_ns,
		    struct service *out)
{
	struct service_head *head = &out->head;
	uint64_t ns = service_move_ns(mech, head, p->cylinder, p->surface,
				      write);

	if (ns && (int64_t)ns + error_ns > 0)
		ns = (uint64_t)((int64_t)ns + error_ns);
	if (head->cylinder != p->cylinder)
		out->seek_ns += ns;
	else
		out->switch_ns += ns;
	head->cylinder = p->cylinder;
	head->surface = p->surface;
	head->at_ns += ns;
}

/* Waits and transfers; returns when the first LBN of the part has passed. */
static uint64_t pass_over(const struct service_mech *mech,
			  const struct transfer_part *p, bool zero_latency,
			  struct service *out)
{
	struct service_head *head = &out->head;
	uint64_t wait_ns = service_wait_ns(mech, head->at_ns, p->start);
	uint64_t arc_ns = service_turn_ns(mech, p->arc);
	uint64_t begin_ns = head->at_ns + wait_ns, next_ns, turn_ns;
	angle in = service_angle(mech, head->at_ns) - p->start;

	if (zero_latency && wait_ns && p->per_sector &&
	    in + (uint64_t)p->per_sector < p->arc) {
		/* The head begins with the next sector and goes round to the
		 * one before it. */
		next_ns = service_wait_ns(mech, head->at_ns, p->start +
				(in / p->per_sector + 1) * p->per_sector);
		turn_ns = service_turn_ns(mech, TURN);
		if (next_ns + turn_ns < wait_ns + arc_ns) {
			if (!out->media_ns)
				out->media_ns = head->at_ns + next_ns;
			head->at_ns += next_ns + turn_ns;
			out->transfer_ns += arc_ns;
			out->rotation_ns += next_ns + turn_ns - arc_ns;
			return begin_ns;
		}
	}
	if (!out->media_ns)
		out->media_ns = begin_ns;
	head->at_ns = begin_ns + arc_ns;
	out->rotation_ns += wait_ns;
	out->transfer_ns += arc_ns;
	return begin_ns;
}

static uint64_t bus_time_ns(const struct service_mech *mech, uint32_t sectors)
{
	if (!mech->bus_bytes_per_s)
		return 0;
	return sectors * UINT64_C(512000000000) / mech->bus_bytes_per_s;
}

void service_estimate(const struct geom *geom, const struct service_mech *mech,
		      const struct service_head *head,
		      const struct service_request *req, struct service *out)
{
	bool zero_latency = req->write ? mech->zero_latency_write :
					 mech->zero_latency_read;
	uint64_t lbn = req->lbn, passed_ns;
	uint32_t left = req->sectors;
	int64_t error_ns = req->error_ns;
	struct transfer_part p;

	*out = (struct service){ .head = *head, .bus_ns = head->at_ns };
	while (left) {
		part_at(geom, lbn, left, &p);
		move_to(mech, &p, req->write, error_ns, out);
		error_ns = 0;
		passed_ns = pass_over(mech, &p, zero_latency, out);
		if (out->bus_ns < passed_ns)
			out->bus_ns = passed_ns;
		out->bus_ns += bus_time_ns(mech, p.sectors);
		lbn += p.sectors;
		left -= p.sectors;
	}
	if (out->bus_ns < out->head.at_ns || req->write)
		out->bus_ns = out->head.at_ns;
}

/* Number of whole sectors of a part that have passed when the head, which met
 * its start at begin_ns, is stopped. */
static uint32_t passed_by(const struct service_mech *mech,
			  const struct transfer_part *p, uint64_t begin_ns,
			  uint64_t until_ns)
{
	uint64_t sector_ns, n;

	if (until_ns <= begin_ns)
		return 0;
	if (until_ns >= begin_ns + service_turn_ns(mech, p->arc))
		return p->sectors;
	sector_ns = service_turn_ns(mech, p->per_sector);
	n = (until_ns - begin_ns) / (sector_ns ? sector_ns : 1);
	return n < p->sectors ? (uint32_t)n : p->sectors;
}

uint32_t service_stream(const struct geom *geom,
			const struct service_mech *mech,
			struct service_head *head, uint64_t lbn, uint32_t max,
			uint64_t until_ns, struct service *out)
{
	uint32_t done = 0, n;
	struct service one;
	struct transfer_part p;

	while (done < max && lbn + done < geom_sectors(geom)) {
		one = (struct service){ .head = *head };
		part_at(geom, lbn + done, max - done, &p);
		move_to(mech, &p, false, 0, &one);
		n = passed_by(mech, &p, one.head.at_ns +
				service_wait_ns(mech, one.head.at_ns, p.start),
			      until_ns);
		if (!n)
			break;
		if (n < p.sectors)
			part_at(geom, lbn + done, n, &p);
		pass_over(mech, &p, false, &one);
		out->seek_ns += one.seek_ns;
		out->switch_ns += one.switch_ns;
		out->rotation_ns += one.rotation_ns;
		out->transfer_ns += one.transfer_ns;
		*head = one.head;
		done += p.sectors;
		if (head->at_ns >= until_ns)
			break;
	}
	return done;
}

uint64_t service_go_on(const struct geom *geom, const struct service_mech *mech,
		       struct service_head *head, uint64_t lbn)
{
	struct geom_track track;
	uint64_t ns;

	geom_track_of(geom, lbn, &track);
	if (track.first != lbn)
		return 0;
	ns = service_move_ns(mech, head, track.cylinder, track.surface, false);
	*head = (struct service_head){ head->at_ns + ns, track.cylinder,
				       track.surface };
	return ns;
}

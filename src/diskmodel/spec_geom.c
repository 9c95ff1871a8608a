/*
 * spec_geom.c - from zones, skews and defects to tracks in LBN order.
 *
 * A zone is walked sweep by sweep (geom_build.h) in the drive's order. Every
 * sector of the walk has a number, by which slips are listed, and every track
 * too. Slips make odd tracks (geom_build.h) but do not interrupt a sweep;
 * slipped tracks do, and so does the end of the room. LBNs are taken from a
 * budget: the room of a zone, a cylinder and the disk as a whole, less their
 * spares.
 *
 * Skews accumulate over all tracks in the order, those without LBNs included:
 * skews depend on where tracks are, not on what they hold.
 */
#include <errno.h>

#include "base/msg.h"
#include "diskmodel/geom_build.h"
#include "diskmodel/spec.h"

/* The walk over one zone. */
struct spec_walk {
	const struct spec *spec;
	const struct spec_zone *zone;
	struct geom_build *build;
	uint32_t unit;		/* LBNs of a sector */
	bool even;		/* all surfaces have tracks of the same size */
	angle base;		/* angle of the zone's first track */
	uint64_t track;		/* number of the next track within the zone */
	uint64_t sector;	/* number of the next sector within the zone */
	size_t slip, slipped;	/* index of the next slip, and of the next
				 * slipped track */
	uint64_t room;		/* sectors left for LBNs in the zone */
	uint64_t cylinder_room;	/* sectors left for LBNs in the cylinder */
	uint64_t disk_room;	/* LBNs left on the disk */
};

static uint32_t cylinders_of(const struct spec_zone *z)
{
	return z->last_cylinder - z->first_cylinder + 1;
}

static bool zone_even(const struct spec *s, const struct spec_zone *z)
{
	for (uint32_t i = 1; i < s->surfaces; i++) {
		if (z->around[i] != z->around[0])
			return false;
	}
	return true;
}

/* The k-th surface in the order of a zone. */
static int32_t surface_of(const struct spec_zone *z, uint32_t k)
{
	return (int32_t)(z->surface_order ? z->surface_order[k] : k);
}

/* Does the k-th sweep of a serpentine's group run inwards? */
static bool runs_inwards(const struct spec *s, uint32_t k)
{
	if (s->direction == SPEC_INWARDS || s->direction == SPEC_OUTWARDS)
		return s->direction == SPEC_INWARDS;
	return (k % 2 == 0) == (s->direction == SPEC_ALTERNATE);
}

/* Sweep i of a zone in which a sweep is a cylinder, or, when the surfaces
 * differ, a single track. */
static bool cylinder_sweep(const struct spec_walk *w, uint64_t i,
			   struct geom_sweep *s)
{
	const struct spec_zone *z = w->zone;
	uint32_t surfaces = w->spec->surfaces;
	uint64_t c = w->even ? i : i / surfaces;
	uint32_t k = w->even ? 0 : (uint32_t)(i % surfaces);
	bool back = w->spec->order == SPEC_CYLINDER_SERPENTINE && c % 2;

	if (c >= cylinders_of(z))
		return false;
	s->count = w->even ? surfaces : 1;
	s->cylinder = z->first_cylinder + (int64_t)c;
	s->surface = surface_of(z, back ? surfaces - 1 - k : k);
	s->surface_step = w->even && surfaces > 1 ? back ? -1 : 1 : 0;
	s->base_step = z->track_skew;
	s->base = w->base + k * z->track_skew +
		  (angle)c * ((surfaces - 1) * z->track_skew +
			      z->cylinder_skew);
	return true;
}

/* Sweep i of a serpentine zone: the tracks of a group on one surface. */
static bool serpentine_sweep(const struct spec_walk *w, uint64_t i,
			     struct geom_sweep *s)
{
	const struct spec_zone *z = w->zone;
	uint32_t surfaces = w->spec->surfaces;
	uint32_t length = w->spec->group_cylinders;
	uint64_t group = i / surfaces;
	uint32_t k = (uint32_t)(i % surfaces), n = length;
	uint64_t first = group * length;
	angle along, across;
	bool inwards;

	if (first >= cylinders_of(z))
		return false;
	if (n > cylinders_of(z) - first)
		n = (uint32_t)(cylinders_of(z) - first);
	along = (n - 1) * z->cylinder_skew + z->track_skew;
	across = (surfaces * (length - 1)) * z->cylinder_skew +
		 (surfaces - 1) * z->track_skew + z->group_skew;
	inwards = runs_inwards(w->spec, k);
	s->count = n;
	s->cylinder = z->first_cylinder + (int64_t)first +
		      (inwards ? 0 : n - 1);
	s->cylinder_step = inwards ? 1 : -1;
	s->surface = surface_of(z, w->spec->alternate_surfaces && group % 2 ?
					   surfaces - 1 - k : k);
	s->base = w->base + (angle)group * across + k * along;
	s->base_step = z->cylinder_skew;
	return true;
}

/* The i-th sweep of the walk; false past the last. */
static bool sweep_at(const struct spec_walk *w, uint64_t i,
		     struct geom_sweep *s)
{
	bool there;

	*s = (struct geom_sweep){ .known = true };
	there = w->spec->order == SPEC_SERPENTINE ?
			serpentine_sweep(w, i, s) : cylinder_sweep(w, i, s);
	if (there)
		s->around = w->zone->around[s->surface];
	return there;
}

/* Number of the next `n` tracks of a sweep that are regular, and so can be
 * emitted together. */
static uint32_t regular_tracks(const struct spec_walk *w,
			       const struct geom_sweep *s, uint32_t n)
{
	const struct spec_zone *z = w->zone;
	uint32_t lbns = s->around - z->spares_track;
	uint64_t most;

	if (w->sector < z->reserved || z->spares_track >= s->around)
		return 0;
	if (w->slipped < z->slipped_tracks.n &&
	    z->slipped_tracks.v[w->slipped] - w->track < n)
		n = (uint32_t)(z->slipped_tracks.v[w->slipped] - w->track);
	most = w->room < w->cylinder_room ? w->room : w->cylinder_room;
	if (w->disk_room / w->unit < most)
		most = w->disk_room / w->unit;
	return most / lbns < n ? (uint32_t)(most / lbns) : n;
}

/* Appends `n` tracks of a sweep from its i-th on, each with this number of LBN
 * sectors. */
static int emit(struct spec_walk *w, const struct geom_sweep *s, uint32_t i,
		uint32_t n, uint32_t sectors)
{
	struct geom_sweep part = *s;
	uint64_t all = (uint64_t)sectors * n;
	int err;

	part.count = n;
	part.sectors = sectors * w->unit;
	part.around = s->around * w->unit;
	part.cylinder += (int64_t)i * s->cylinder_step;
	part.surface += (int32_t)i * s->surface_step;
	part.base += i * s->base_step;
	err = geom_build_sweep(w->build, &part);
	w->room -= all;
	w->cylinder_room -= all;
	w->disk_room -= all * w->unit;
	return err;
}

/* Lists the slips of a track whose sectors begin at `sector` of the zone; the
 * first `front` of them are reserved. */
static int list_slips(struct spec_walk *w, uint64_t track, uint64_t sector,
		      uint32_t around, uint32_t front)
{
	const struct spec_list *slips = &w->zone->slips;
	struct geom_slip slip = { .track = track };
	int err = 0;

	if (front) {
		slip.n = front * w->unit;
		err = geom_build_slip(w->build, &slip);
	}
	for (; !err && w->slip < slips->n &&
	     slips->v[w->slip] < sector + around; w->slip++) {
		if (slips->v[w->slip] - sector < front)
			continue;
		slip.at = (uint32_t)(slips->v[w->slip] - sector) * w->unit;
		slip.n = w->unit;
		err = geom_build_slip(w->build, &slip);
	}
	return err;
}

/* Number of slips among `n` sectors of the zone. */
static uint32_t slips_within(const struct spec_walk *w, uint64_t sector,
			     uint64_t n)
{
	const struct spec_list *slips = &w->zone->slips;
	size_t i = w->slip, before;

	while (i < slips->n && slips->v[i] < sector)
		i++;
	before = i;
	while (i < slips->n && slips->v[i] < sector + n)
		i++;
	return (uint32_t)(i - before);
}

/* Lists the slips of the next `n` tracks. A track has fewer LBNs by the slips
 * that its spares do not make up for. */
static int slip_tracks(struct spec_walk *w, uint32_t around, uint32_t n)
{
	const struct spec_zone *z = w->zone;
	int err = 0;

	while (!err && w->slip < z->slips.n &&
	       z->slips.v[w->slip] < w->sector + (uint64_t)n * around) {
		uint64_t i = (z->slips.v[w->slip] - w->sector) / around;
		uint64_t track = geom_build_tracks(w->build) + i;
		uint64_t sector = w->sector + i * around;
		uint32_t gone = slips_within(w, sector, around);

		gone = gone > z->spares_track ? gone - z->spares_track : 0;
		err = list_slips(w, track, sector, around, 0);
		if (err || !gone)
			continue;
		err = geom_build_odd(w->build, track,
				     -(int32_t)(gone * w->unit));
		w->room += gone;
		w->cylinder_room += gone;
		w->disk_room += gone * w->unit;
	}
	return err;
}

static uint64_t min3(uint64_t a, uint64_t b, uint64_t c)
{
	a = a < b ? a : b;
	return a < c ? a : c;
}

/* Appends one irregular track. */
static int odd_track(struct spec_walk *w, const struct geom_sweep *s,
		     uint32_t i)
{
	const struct spec_zone *z = w->zone;
	uint32_t front = 0, gone, sectors;
	int err;

	if (w->slipped < z->slipped_tracks.n &&
	    z->slipped_tracks.v[w->slipped] == w->track)
		return 0;
	if (w->sector < z->reserved)
		front = (uint32_t)min3(z->reserved - w->sector, s->around,
				       UINT64_MAX);
	gone = front + slips_within(w, w->sector + front, s->around - front);
	/* Spares of the track make up for its slips. */
	if (z->spares_track > gone)
		gone = z->spares_track;
	sectors = gone < s->around ? s->around - gone : 0;
	sectors = (uint32_t)min3(sectors, min3(w->room, w->cylinder_room,
					       UINT64_MAX),
				 w->disk_room / w->unit);
	if (!sectors)
		return 0;
	err = list_slips(w, geom_build_tracks(w->build), w->sector, s->around,
			 front);
	return err ? err : emit(w, s, i, 1, sectors);
}

/* Moves the walk past `n` tracks of a sweep. */
static void step_over(struct spec_walk *w, const struct geom_sweep *s,
		      uint32_t n)
{
	const struct spec_zone *z = w->zone;

	w->track += n;
	w->sector += (uint64_t)n * s->around;
	while (w->slip < z->slips.n && z->slips.v[w->slip] < w->sector)
		w->slip++;
	while (w->slipped < z->slipped_tracks.n &&
	       z->slipped_tracks.v[w->slipped] < w->track)
		w->slipped++;
}

static int walk_sweep(struct spec_walk *w, const struct geom_sweep *s)
{
	uint32_t i = 0, n;
	int err = 0;

	while (!err && i < s->count) {
		n = regular_tracks(w, s, s->count - i);
		if (n) {
			err = slip_tracks(w, s->around, n);
			if (!err)
				err = emit(w, s, i, n,
					   s->around - w->zone->spares_track);
		} else {
			n = 1;
			err = odd_track(w, s, i);
		}
		step_over(w, s, n);
		i += n;
	}
	return err;
}

static uint64_t cylinder_sectors(const struct spec_walk *w)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < w->spec->surfaces; i++)
		sum += w->zone->around[i];
	return sum;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Sets up the walk of a zone that begins at an angle. */
static void walk_init(struct spec_walk *w, const struct spec_zone *z,
		      angle base)
{
	w->zone = z;
	w->even = zone_even(w->spec, z) && !z->surface_order;
	w->base = z->start_given ? z->start : base;
	w->track = w->sector = 0;
	w->slip = w->slipped = 0;
	w->room = less(cylinder_sectors(w) * cylinders_of(z),
		       (uint64_t)z->spares_zone + z->reserved);
	w->cylinder_room = UINT64_MAX / 2;
}

static int walk_zone(struct spec_walk *w)
{
	bool by_cylinder = w->spec->order != SPEC_SERPENTINE &&
			   w->zone->spares_cylinder;
	uint32_t per_cylinder = w->even ? 1 : w->spec->surfaces;
	struct geom_sweep s;
	int err = 0;

	for (uint64_t i = 0; !err && sweep_at(w, i, &s); i++) {
		if (by_cylinder && i % per_cylinder == 0)
			w->cylinder_room = less(cylinder_sectors(w),
						w->zone->spares_cylinder);
		err = walk_sweep(w, &s);
	}
	return err;
}

/* The angle at which the zone after this one begins. */
static angle walk_end(const struct spec_walk *w)
{
	uint32_t n = cylinders_of(w->zone), surfaces = w->spec->surfaces;
	uint32_t length = w->spec->group_cylinders;
	struct geom_sweep s = { 0 };
	uint64_t last;

	if (w->spec->order == SPEC_SERPENTINE)
		last = ((uint64_t)(n - 1) / length + 1) * surfaces - 1;
	else
		last = w->even ? n - 1 : (uint64_t)n * surfaces - 1;
	sweep_at(w, last, &s);
	return s.base + (s.count - 1) * s.base_step + w->zone->cylinder_skew;
}

/* The angle of a sector given by its place. */
static int place_angle(const struct spec *spec, const struct spec_remap *r,
		       uint32_t unit, struct geom_remap *out)
{
	struct spec_walk w = { .spec = spec };
	struct geom_sweep s;
	angle base = 0;

	for (size_t z = 0; z < spec->zones_n; z++) {
		walk_init(&w, &spec->zones[z], base);
		base = walk_end(&w);
		if (r->cylinder > w.zone->last_cylinder)
			continue;
		for (uint64_t i = 0; sweep_at(&w, i, &s); i++) {
			for (uint32_t k = 0; k < s.count; k++) {
				if (s.cylinder + (int64_t)k * s.cylinder_step
				    != r->cylinder ||
				    s.surface + (int32_t)k * s.surface_step
				    != (int32_t)r->surface)
					continue;
				if (r->sector >= s.around)
					return -EINVAL;
				out->around = s.around * unit;
				out->start = s.base + k * s.base_step + (angle)
					(((uint64_t)r->sector << 32) /
					 s.around);
				return 0;
			}
		}
	}
	return -EINVAL;
}

static int add_remaps(const struct spec *spec, uint32_t unit,
		      struct geom_build *build)
{
	int err = 0;

	for (size_t i = 0; !err && i < spec->remaps_n; i++) {
		const struct spec_remap *r = &spec->remaps[i];
		struct geom_remap m = {
			.lbn = r->lbn,
			.n = r->lbns,
			.cylinder = r->cylinder,
			.surface = r->surface,
			.sector = r->sector * unit,
		};

		err = place_angle(spec, r, unit, &m);
		if (err)
			msg_error("%s: remaps[%zu]: no such place",
				  spec->name, i);
		else
			err = geom_build_remap(build, &m);
	}
	return err;
}

static int build_all(const struct spec *spec, struct geom_build *build)
{
	struct spec_walk w = {
		.spec = spec,
		.build = build,
		.unit = spec->physical_bytes / 512,
		.disk_room = spec->lbns ? spec->lbns : GEOM_MAX_SECTORS,
	};
	angle base = 0;
	int err = 0;

	for (size_t i = 0; !err && i < spec->zones_n; i++) {
		walk_init(&w, &spec->zones[i], base);
		base = walk_end(&w);
		err = walk_zone(&w);
	}
	if (!err && spec->lbns && w.disk_room) {
		msg_error("%s: lbns: more than the %ju that the zones have",
			  spec->name,
			  (uintmax_t)geom_build_sectors(build));
		err = -EINVAL;
	}
	return err ? err : add_remaps(spec, w.unit, build);
}

int spec_geom(const struct spec *spec, struct geom **geom)
{
	struct geom_build *build;
	int err;

	if (spec->geom)
		return geom_copy(spec->geom, geom);
	build = geom_build_new(spec->mech.period_ps / 1000, 0);
	if (!build)
		return -ENOMEM;
	err = build_all(spec, build);
	if (!err) {
		err = geom_build_finish(build, geom);
		if (err == -EINVAL)
			msg_error("%s: the zones make no geometry",
				  spec->name);
	}
	geom_build_free(build);
	return err;
}

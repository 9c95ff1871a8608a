/*
 * specgen.c - drives from a seed.
 *
 * The order of what is drawn is fixed, and each part has a stream of numbers of
 * its own, so that giving one option does not change what is drawn for the
 * rest.  Ranges are those of published measurements of real drives.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "base/random.h"
#include "base/sort.h"
#include "sim/specgen.h"

#define TURN 4294967296.0	/* A whole revolution as an angle. */
/* Size of a drive for which none is given: 300 MB, so that tests may go over
 * all of it. */
#define DEFAULT_BYTES UINT64_C(300000000)
/* A drive with fewer cylinders than this is none: tracks are made smaller
 * instead. */
#define FEW_CYLINDERS 240u
#define MOST_SLIPS 8u	/* Most sectors of one defect that slips. */

/* The specification that is being made, and its sources of chance. */
struct gen {
	const struct specgen *options;
	struct spec *spec;
	uint64_t state;
	uint32_t unit;		/* LBNs of a physical sector */
	uint32_t outer;		/* about how many sectors the outermost track
				 * has */
	uint32_t cylinders;
};

/* ---- Chance ---- */

static void stream(struct gen *g, uint64_t part)
{
	g->state = g->options->seed * UINT64_C(0x9e3779b97f4a7c15) + part;
	random_next(&g->state);
}

static uint64_t below(struct gen *g, uint64_t n)
{
	return random_next(&g->state) % n;
}

static uint32_t between(struct gen *g, uint32_t lo, uint32_t hi)
{
	return lo + (uint32_t)below(g, (uint64_t)hi - lo + 1);
}

static double real(struct gen *g, double lo, double hi)
{
	return lo + (hi - lo) * random_part(&g->state);
}

static bool chance(struct gen *g, double p)
{
	return real(g, 0, 1) < p;
}

static angle fraction(double revs)
{
	return (angle)(uint64_t)llround((revs - floor(revs)) * TURN);
}

/* ---- Parts ---- */

static void make_sizes(struct gen *g)
{
	static const uint32_t surfaces[] = { 1, 2, 2, 3, 4, 4, 6, 10, 16, 20 };
	struct spec *s = g->spec;
	uint64_t bytes = g->options->bytes ? g->options->bytes :
					     DEFAULT_BYTES;
	uint32_t lbns, drawn;
	double tracks;

	stream(g, 1);
	s->logical_bytes = 512;
	s->physical_bytes = chance(g, 0.6) ? 4096 : 512;
	g->unit = s->physical_bytes / 512;
	drawn = surfaces[below(g, sizeof(surfaces) / sizeof(surfaces[0]))];
	s->surfaces = g->options->surfaces ? g->options->surfaces : drawn;
	if (!g->options->surfaces && bytes < UINT64_C(2000000000) &&
	    s->surfaces > 6)
		s->surfaces -= 6;
	lbns = between(g, 1100, 4600);
	/* A small drive has small tracks, so that it has more than a few. */
	tracks = (double)bytes / 512 / (0.76 * lbns);
	while (lbns > (g->unit > 1 ? 900 : 400) &&
	       tracks < FEW_CYLINDERS * (double)s->surfaces) {
		lbns = lbns * 4 / 5;
		tracks = (double)bytes / 512 / (0.76 * lbns);
	}
	g->outer = lbns / g->unit;
	g->cylinders = (uint32_t)(tracks / s->surfaces) + 40;
}

static void make_order(struct gen *g)
{
	static const uint32_t groups[] = { 32, 115, 140, 315, 9200 };
	struct spec *s = g->spec;
	uint32_t group, kind;

	stream(g, 2);
	kind = between(g, 0, 9);
	group = groups[below(g, 5)];
	if (group != 32)
		group += (uint32_t)below(g, group / 20 + 1);
	while (group > g->cylinders / 6 && group > 8)
		group = group * 2 / 3;
	s->order = kind < 2 ? SPEC_CYLINDER :
		   kind < 3 ? SPEC_CYLINDER_SERPENTINE : SPEC_SERPENTINE;
	s->group_cylinders = 1;
	s->direction = (enum spec_direction)below(g, 4);
	s->alternate_surfaces = chance(g, 0.5);
	if (g->options->group_cylinders) {
		s->order = SPEC_SERPENTINE;
		group = g->options->group_cylinders;
	}
	if (s->order == SPEC_SERPENTINE)
		s->group_cylinders = group;
	else
		s->direction = SPEC_ALTERNATE;
	if (s->order != SPEC_SERPENTINE)
		s->alternate_surfaces = false;
}

static int make_seek(struct gen *g, double revolution_ms)
{
	struct spec *s = g->spec;
	double one = real(g, 0.3, 0.52) * revolution_ms / 8.33;
	double full = real(g, 12, 24), knee = real(g, 0.25, 0.4);
	uint32_t most = g->cylinders, d = 1;

	s->mech.seek = calloc(64, sizeof(*s->mech.seek));
	if (!s->mech.seek)
		return -ENOMEM;
	while (d < most) {
		double x = (double)d / most, root, ms;

		/* The seek time grows with the root of the distance up to the
		 * knee, and linearly beyond it. */
		root = sqrt(x < knee ? x : knee) / sqrt(knee);
		ms = one + (full - one) * 0.55 * root;
		if (x > knee)
			ms += (full - one) * 0.45 * (x - knee) / (1 - knee);
		s->mech.seek[s->mech.seek_n++] = (struct service_seek){
			d, (uint64_t)(ms * 1e6) };
		d = d < 4 ? d + 1 : d * 8 / 5;
	}
	s->mech.seek[s->mech.seek_n++] = (struct service_seek){
		most, (uint64_t)(full * 1e6) };
	return 0;
}

static int make_mechanics(struct gen *g)
{
	static const double rpms[] = { 5400, 7200, 7200, 7200, 10000, 15000 };
	struct spec *s = g->spec;
	double revolution_ms;
	bool zero;

	stream(g, 3);
	revolution_ms = 60000 / rpms[below(g, 6)] / real(g, 0.9935, 1.0065);
	s->mech.period_ps = (uint64_t)llround(revolution_ms * 1e9);
	s->mech.head_switch_ns = (uint64_t)(real(g, 0.1, 0.4) * 1e6);
	s->mech.write_settle_ns = (uint64_t)(real(g, 0.05, 0.5) * 1e6);
	s->mech.bus_bytes_per_s = chance(g, 0.5) ? 600000000 : 300000000;
	s->read_overhead_ns = (uint64_t)(real(g, 0.04, 0.25) * 1e6);
	s->write_overhead_ns = s->read_overhead_ns + 20000;
	s->hit_overhead_ns = (uint64_t)(real(g, 0.02, 0.08) * 1e6);
	s->seek_jitter_ns = (uint64_t)(real(g, 0.02, 0.15) * 1e6);
	s->overhead_jitter_ns = (uint64_t)(real(g, 0, 0.02) * 1e6);
	zero = chance(g, 0.5);
	if (g->options->zero_latency >= 0)
		zero = g->options->zero_latency;
	s->mech.zero_latency_read = s->mech.zero_latency_write = zero;
	return make_seek(g, revolution_ms);
}

static void make_electronics(struct gen *g)
{
	struct spec *s = g->spec;
	bool cache;

	stream(g, 4);
	cache = chance(g, 0.4);
	if (g->options->cache >= 0)
		cache = g->options->cache;
	s->cache_segments = between(g, 1, 24);
	s->segment_lbns = 512u << below(g, 5);
	s->read_ahead_lbns = chance(g, 0.2) ? 0 :
				between(g, s->segment_lbns / 4,
					s->segment_lbns);
	if (!cache)
		s->cache_segments = s->segment_lbns = s->read_ahead_lbns = 0;
	s->policy = SPEC_SPTF;
	s->depth = 32;
	s->idle_w = 5;
	s->active_w = 6.5;
	s->seek_w = 9;
	s->noise.late = real(g, 0.01, 0.03);
	if (g->options->noise) {
		s->noise.normal_ns = 8000;
		s->noise.exponential_ns = 20000;
		s->noise.late_min_ns = 100000;
		s->noise.late_max_ns = 3000000;
	} else {
		s->noise.late = 0;
	}
}

/* ---- Zones ---- */

/* Makes skews as drives have them: none is shorter than the move that it
 * hides. */
static angle make_skew(struct gen *g)
{
	static const double skews[] = {
		3.0 / 29, 19.0 / 132, 3.0 / 16, 2.0 / 18, 4.0 / 27, 1.0 / 15,
		7.0 / 42, 0.2402, 1.0 / 5
	};

	return fraction(skews[below(g, 9)]);
}

static void make_skews(struct gen *g, struct spec_zone *z)
{
	const struct spec_zone *before = g->spec->zones;
	uint32_t kind;

	if (z != before) {
		z->track_skew = before->track_skew;
		z->cylinder_skew = before->cylinder_skew;
		z->group_skew = before->group_skew;
	} else {
		z->track_skew = z->cylinder_skew = make_skew(g);
		if (chance(g, 0.5))
			z->track_skew = make_skew(g);
		kind = between(g, 0, 3);
		z->group_skew = kind == 0 ? 0 :
				kind == 1 ? z->track_skew :
				kind == 2 ? fraction(real(g, 0.05, 0.95)) :
					    z->cylinder_skew + (1u << 31);
	}
	z->start_given = chance(g, 0.3);
	z->start = z->start_given ? fraction(real(g, 0, 1)) : 0;
}

static int make_around(struct gen *g, struct spec_zone *z, double size,
		       const double *head)
{
	uint32_t n = g->spec->surfaces;

	z->around = calloc(n, sizeof(*z->around));
	if (!z->around)
		return -ENOMEM;
	for (uint32_t k = 0; k < n; k++)
		z->around[k] = (uint32_t)(size * head[k]);
	return 0;
}

/* Irregular order: every zone goes over its surfaces in another order. */
static int make_surface_order(struct gen *g, struct spec_zone *z)
{
	uint32_t n = g->spec->surfaces;

	z->surface_order = calloc(n, sizeof(*z->surface_order));
	if (!z->surface_order)
		return -ENOMEM;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t at = (uint32_t)below(g, k + 1);

		z->surface_order[k] = z->surface_order[at];
		z->surface_order[at] = k;
	}
	return 0;
}

static uint64_t zone_tracks(const struct gen *g, const struct spec_zone *z)
{
	return (uint64_t)(z->last_cylinder - z->first_cylinder + 1) *
	       g->spec->surfaces;
}

static int list_add_to(struct spec_list *list, uint64_t v)
{
	uint64_t *more = realloc(list->v, (list->n + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	list->v = more;
	more[list->n++] = v;
	return 0;
}

/* Tracks are spoiled in clusters, because a scratch goes over several. */
static int make_slips(struct gen *g, struct spec_zone *z, double rate)
{
	uint64_t tracks = zone_tracks(g, z);
	double track = 0;
	uint64_t i;
	uint32_t smallest = z->around[0];

	for (uint32_t k = 1; k < g->spec->surfaces; k++)
		smallest = z->around[k] < smallest ? z->around[k] : smallest;
	for (;;) {
		uint32_t n = chance(g, 0.8) ? 1 : between(g, 2, MOST_SLIPS);

		track -= log(1 - real(g, 0, 1)) / rate;
		i = (uint64_t)track;
		/* Counts with the smallest track, so that it stays within the
		 * zone in any order. */
		if (!(track < (double)tracks - 2))
			return 0;
		for (uint32_t k = 0; k < n; k++) {
			uint64_t at = i * smallest +
				      below(g, smallest / 8) * 8 + k;

			if ((!z->slips.n || z->slips.v[z->slips.n - 1] < at) &&
			    list_add_to(&z->slips, at))
				return -ENOMEM;
		}
		track += 1;
	}
}

static int make_slipped_tracks(struct gen *g, struct spec_zone *z)
{
	uint64_t tracks = zone_tracks(g, z), at = 0;
	uint32_t n = chance(g, 0.3) ? between(g, 1, 4) : 0;

	while (n--) {
		at += 1 + below(g, tracks / 5 + 1);
		if (at + 2 < tracks && list_add_to(&z->slipped_tracks, at))
			return -ENOMEM;
	}
	return 0;
}

static int make_zone(struct gen *g, struct spec_zone *z, double size,
		     const double *head, bool irregular, double rate)
{
	int err = make_around(g, z, size, head);

	if (!err && irregular)
		err = make_surface_order(g, z);
	if (err)
		return err;
	make_skews(g, z);
	if (chance(g, 0.2))
		z->reserved = between(g, 1, 3 * z->around[0]);
	z->spares_zone = between(g, 1, 3 * z->around[0]);
	if (g->spec->order == SPEC_CYLINDER && chance(g, 0.3))
		z->spares_cylinder = between(g, 1, 20);
	else if (chance(g, 0.15))
		z->spares_track = between(g, 1, 2);
	if (rate > 0)
		err = make_slips(g, z, rate);
	return err ? err : make_slipped_tracks(g, z);
}

static double slip_rate(struct gen *g)
{
	static const double rates[] = { 0.0005, 0.0005, 0.005, 0.022 };
	double rate = rates[below(g, 4)];

	return g->options->slipped >= 0 ? g->options->slipped : rate;
}

static int make_zones(struct gen *g)
{
	struct spec *s = g->spec;
	uint32_t n, first = 0;
	bool uneven, irregular;
	double head[64], rate;
	int err = 0;

	stream(g, 5);
	n = between(g, 4, 24);
	if (n > g->cylinders / 60 + 1)
		n = g->cylinders / 60 + 1;
	uneven = chance(g, 0.7);
	irregular = s->order == SPEC_SERPENTINE && chance(g, 0.2);
	rate = slip_rate(g);
	for (uint32_t k = 0; k < 64; k++)
		head[k] = uneven ? real(g, 0.9, 1.05) : 1;
	s->zones = calloc(n, sizeof(*s->zones));
	if (!s->zones)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < n; i++) {
		struct spec_zone *z = &s->zones[s->zones_n++];
		uint32_t left = g->cylinders - first, each = left / (n - i);

		z->first_cylinder = first;
		z->last_cylinder = first + each - 1;
		if (i + 1 < n)
			z->last_cylinder += (uint32_t)below(g, each / 4 + 1);
		first = z->last_cylinder + 1;
		err = make_zone(g, z, g->outer * (1 - 0.52 * i / n), head,
				irregular, rate);
	}
	return err;
}

/* ---- Remaps: a few LBNs that lie among the spares of the last zone ---- */

static int make_remaps(struct gen *g)
{
	struct spec *s = g->spec;
	const struct spec_zone *z = &s->zones[s->zones_n - 1];
	uint32_t n;
	uint64_t lbn = 0, room;

	stream(g, 6);
	n = chance(g, 0.4) ? between(g, 1, 6) : 0;
	s->remaps = calloc(n + 1, sizeof(*s->remaps));
	if (!s->remaps)
		return -ENOMEM;
	room = zone_tracks(g, s->zones) * s->zones[0].around[0] * g->unit / 2;
	while (n--) {
		lbn += g->unit * (1 + below(g, room / 8 / g->unit));
		if (lbn > room)
			break;
		s->remaps[s->remaps_n++] = (struct spec_remap){
			.lbn = lbn,
			.lbns = g->unit,
			.cylinder = z->last_cylinder,
			.surface = s->surfaces - 1,
			.sector = (uint32_t)s->remaps_n + 1,
		};
		lbn += g->unit;
	}
	return 0;
}

/* ---- What few drives have ---- */

static void list_sort(struct spec_list *list)
{
	size_t n = 0;

	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), sort_u64_cmp);
	for (size_t i = 0; i < list->n; i++) {
		if (!n || list->v[i] != list->v[n - 1])
			list->v[n++] = list->v[i];
	}
	list->n = n;
}

/* A scratch goes over some tracks in a row, at about the same distance from
 * their beginning. */
static int make_scratch(struct gen *g, struct spec_zone *z)
{
	uint32_t around = z->around[0], wide = 1 + around / 24;
	uint64_t tracks = zone_tracks(g, z), first, at = below(g, around / 2);
	uint32_t long_tracks = between(g, 2, 12), n;
	int err = 0;

	if (tracks < 4 * long_tracks)
		return 0;
	first = below(g, tracks - 2 * long_tracks);
	for (uint32_t i = 0; i < long_tracks && !err; i++) {
		n = between(g, 1, wide);
		for (uint32_t k = 0; k < n && !err; k++)
			err = list_add_to(&z->slips,
					  (first + i) * around + at + k);
	}
	list_sort(&z->slips);
	return err;
}

static int make_gone(struct gen *g, struct spec_zone *z)
{
	uint64_t at = below(g, zone_tracks(g, z) / 2 + 1);
	uint32_t n = between(g, 2, 6);
	int err = 0;

	for (uint32_t i = 0; i < n && !err && at + 4 < zone_tracks(g, z);
	     i++) {
		err = list_add_to(&z->slipped_tracks, at);
		at += between(g, 1, 2);
	}
	list_sort(&z->slipped_tracks);
	return err;
}

static int make_odd(struct gen *g)
{
	struct spec *s = g->spec;
	angle skew, group;
	bool leap, hardly, spares, scratch, gone;
	int err = 0;

	stream(g, 7);
	hardly = chance(g, 0.15);
	skew = fraction(real(g, 0.02, 0.05));
	leap = chance(g, 0.4);
	group = chance(g, 0.5) ? 0 : fraction(real(g, -0.03, 0.03));
	spares = chance(g, 0.5);
	scratch = chance(g, 0.5);
	gone = chance(g, 0.4);
	for (size_t i = 0; i < s->zones_n && !err; i++) {
		struct spec_zone *z = &s->zones[i];

		if (hardly)
			z->track_skew = z->cylinder_skew = skew;
		if (leap)
			z->group_skew = group;
		if (spares && s->order != SPEC_SERPENTINE)
			z->spares_cylinder = between(g, 1, 30);
		if (scratch && chance(g, 0.5))
			err = make_scratch(g, z);
		if (!err && gone && chance(g, 0.5))
			err = make_gone(g, z);
	}
	if (chance(g, 0.5))
		s->zones[0].reserved = between(g, 1, s->zones[0].around[0]);
	return err;
}

/* ---- All of it ---- */

int specgen_make(const struct specgen *options, struct spec **spec)
{
	struct gen g = { .options = options };
	char name[64];
	int err;

	if (options->surfaces > 64 || (options->bytes &&
				       options->bytes < 10000000)) {
		msg_error("a drive of seed %llu: too small, or too many heads",
			  (unsigned long long)options->seed);
		return -EINVAL;
	}
	g.spec = calloc(1, sizeof(*g.spec));
	if (!g.spec)
		return -ENOMEM;
	snprintf(name, sizeof(name), "generated, seed %llu",
		 (unsigned long long)options->seed);
	g.spec->name = strdup(name);
	make_sizes(&g);
	make_order(&g);
	make_electronics(&g);
	err = g.spec->name ? make_mechanics(&g) : -ENOMEM;
	if (!err)
		err = make_zones(&g);
	if (!err)
		err = make_remaps(&g);
	if (!err && options->odd)
		err = make_odd(&g);
	if (err)
		spec_free(g.spec);
	else
		*spec = g.spec;
	return err;
}

/* ---- Options as text ---- */

static bool parse_bytes(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	char *end;
	double v = strtod(text, &end);
	const char *unit = *end ? strchr(units, *end) : NULL;

	if (end == text || !(v > 0) || (*end && (!unit || end[1])))
		return false;
	for (; unit && unit >= units; unit--)
		v *= 1000;
	*bytes = (uint64_t)v;
	return v < 1e17;
}

static bool parse_one(const char *text, struct specgen *o)
{
	double v;
	int end = 0;

	if (!strncmp(text, "bytes=", 6))
		return parse_bytes(text + 6, &o->bytes);
	if (sscanf(text, "%*[^=]=%lf%n", &v, &end) != 1 || text[end] ||
	    !(v >= 0 && v <= 1e6))
		return false;
	if (!strncmp(text, "surfaces=", 9))
		o->surfaces = (uint32_t)v;
	else if (!strncmp(text, "group=", 6))
		o->group_cylinders = (uint32_t)v;
	else if (!strncmp(text, "slipped=", 8))
		o->slipped = v < 1 ? v : 1;
	else if (!strncmp(text, "cache=", 6))
		o->cache = v > 0;
	else if (!strncmp(text, "zero-latency=", 13))
		o->zero_latency = v > 0;
	else if (!strncmp(text, "noise=", 6))
		o->noise = v > 0;
	else if (!strncmp(text, "odd=", 4))
		o->odd = v > 0;
	else
		return false;
	return true;
}

int specgen_parse(const char *text, struct specgen *options)
{
	char *copy = strdup(text), *at, *word, *end;
	bool good;

	if (!copy)
		return -ENOMEM;
	*options = (struct specgen){
		.slipped = -1, .cache = -1, .zero_latency = -1, .noise = 1,
	};
	word = strtok_r(copy, ",", &at);
	options->seed = word ? strtoull(word, &end, 0) : 0;
	good = word && end != word && !*end;
	while (good && (word = strtok_r(NULL, ",", &at)))
		good = parse_one(word, options);
	if (!good)
		msg_error("%s: not SEED[,bytes=N][,surfaces=N][,group=N]"
			  "[,slipped=SHARE][,cache=0|1][,zero-latency=0|1]"
			  "[,noise=0|1][,odd=0|1]", text);
	free(copy);
	return good ? 0 : -EINVAL;
}

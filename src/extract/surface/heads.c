/*
 * heads.c - which sizes of tracks come again, and after how many.
 *
 * Tracks of one size in a row are an item.  In cylinder order most items are
 * single tracks, in a serpentine they have as many tracks as a group has
 * cylinders; so an item is some slots, a slot being that part of a surface
 * which is gone over at once.  The slots of a zone are a cycle: each surface
 * once, or once forth and once back.  Every place on the disk votes for how
 * many surfaces there are; nearly all must agree, or nothing is said.
 *
 * What looks the same for different numbers of surfaces is not decided:
 *   - groups of 2 to 7 (two surfaces that are alike in each pair, or groups);
 *   - cycles in which fewer than half of the sizes differ, but for one short
 *     track among equal ones (the spares of a cylinder).
 */
#include "extract/surface/heads.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diskmodel/geom_build.h"
#include "extract/surface/bands.h"
#include "extract/surface/islands.h"
#include "extract/surface/pieces.h"

/* No drive had more; a cycle that long is a pattern of something else. */
#define SURFACES_MOST 24u
#define CYCLE_MOST (2 * SURFACES_MOST)
#define GROUP_LEAST 8u
/* Of all items, those of the smallest group at least; and its multiples. */
#define GROUP_SHARE 0.1
#define MULTIPLES_SHARE 0.6
#define ITEMS_LEAST 24u
/* Votes, and those that agree. */
#define VOTES_LEAST 12u
#define AGREE 0.95
#define SURE_PPM 999000u
#define SEEKS_PPM 990000u
#define GUESSES 6u
/* More tracks than cylinders have; steps that a group has at least, and at
 * most. */
#define CYLINDER_MOST 24u
#define ALONE_STEPS 8u
#define ALONE_REACH 60u
/* Cylinders times surfaces, to the tracks there are. */
#define FULL 1.08
/* Of known tracks, those that were not known before are too many. */
#define OTHERS_LEAST 8u
/* A track without its cylinder's spares. */
#define SPARES_MOST 0.05
/* Slots that tell where in a cycle they are. */
#define PLACED_BY 4u
/* Tracks with slips in a row. */
#define INTERRUPTED 2u
#define TOLERANCE (UINT32_MAX / 1000)

struct slot {
	uint64_t track;
	uint32_t tracks;
	uint32_t size;		/* around; 0: not known */
	uint32_t at;		/* in the cycle */
	uint32_t cylinder;	/* the outermost of its cycle */
};

struct work {
	const struct geom *geom;
	struct prober *prober;	/* to pause; or NULL */
	struct heads *heads;
	struct slot *item;	/* then: the slots */
	size_t n, room;
	uint32_t cycle;		/* slots */
	uint32_t table[CYCLE_MOST];	/* sizes in it, in this zone */
};

/* ---- Items ---- */

static uint32_t around(const struct geom_track *t)
{
	return t->known && t->per_sector ?
		       (uint32_t)lrint(0x1p32 / t->per_sector) : 0;
}

static int push(struct work *w, const struct slot *slot)
{
	size_t room = w->room ? 2 * w->room : 1024;
	struct slot *more;

	if (w->n == w->room) {
		more = reallocarray(w->item, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		w->item = more;
		w->room = room;
	}
	w->item[w->n++] = *slot;
	return 0;
}

static int make_items(struct work *w)
{
	struct slot s = { 0 };
	struct geom_track t;
	int err = 0;

	for (uint64_t i = 0; i < geom_tracks(w->geom) && !err; i++) {
		prober_pause(w->prober, i);
		geom_track_at(w->geom, i, &t);
		if (s.tracks && around(&t) == s.size) {
			s.tracks++;
			continue;
		}
		if (s.tracks)
			err = push(w, &s);
		s = (struct slot){ .track = i, .tracks = 1,
				   .size = around(&t) };
	}
	return err ? err : push(w, &s);
}

/* Is it a track or two with slips that are taken for another size? */
static bool is_interruption(const struct slot *s)
{
	return s[1].tracks <= INTERRUPTED && s[0].size == s[2].size &&
	       s[1].size < s[0].size &&
	       s[1].size > (1 - SPARES_MOST) * s[0].size;
}

static void join_items(struct work *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++) {
		struct slot *last = n ? &w->item[n - 1] : NULL;

		if (last && i + 1 < w->n && last->size == w->item[i + 1].size &&
		    is_interruption((struct slot[]){
			    *last, w->item[i], w->item[i + 1] })) {
			last->tracks += w->item[i].tracks +
					w->item[i + 1].tracks;
			i++;
			continue;
		}
		w->item[n++] = w->item[i];
	}
	w->n = n;
}

/* ---- Groups ---- */

/* Is it known where it begins and ends? */
static bool is_whole(const struct work *w, size_t i)
{
	return i && i + 1 < w->n && w->item[i].size && w->item[i - 1].size &&
	       w->item[i + 1].size;
}

/* Of items with a whole number of such groups, the share; *once: of those that
 * are one. */
static double share_of(const struct work *w, uint32_t group, double *once)
{
	size_t all = 0, same = 0, multiples = 0;

	for (size_t i = 0; i < w->n; i++) {
		if (!is_whole(w, i))
			continue;
		all++;
		same += w->item[i].tracks == group;
		multiples += w->item[i].tracks % group == 0;
	}
	*once = all ? (double)same / (double)all : 0;
	return all >= ITEMS_LEAST ? (double)multiples / (double)all : 0;
}

static uint32_t smallest_above(const struct work *w, uint32_t group)
{
	uint32_t least = UINT32_MAX;

	for (size_t i = 0; i < w->n; i++) {
		if (is_whole(w, i) && w->item[i].tracks > group &&
		    w->item[i].tracks < least)
			least = w->item[i].tracks;
	}
	return least;
}

/* The tracks of a slot; 0: there is no such number. */
static uint32_t find_group(const struct work *w)
{
	uint32_t group = 0;
	double once, multiples;

	while ((group = smallest_above(w, group)) != UINT32_MAX) {
		multiples = share_of(w, group, &once);
		if (once < GROUP_SHARE)
			continue;
		return multiples >= MULTIPLES_SHARE &&
		       (group == 1 || group >= GROUP_LEAST) ? group : 0;
	}
	return 0;
}

/* Items become slots. */
static int make_slots(struct work *w, uint32_t group)
{
	struct slot *items = w->item;
	size_t n = w->n;
	int err = 0;

	w->item = NULL;
	w->n = w->room = 0;
	for (size_t i = 0; i < n && !err; i++) {
		struct slot s = items[i], one = s;

		/* The last of a zone, or of what is known. */
		for (; s.tracks && !err; s.tracks -= one.tracks) {
			one.tracks = s.size && s.tracks >= group + group / 2 +
				     (group == 1) ? group : s.tracks;
			err = push(w, &one);
			one.track += one.tracks;
		}
	}
	free(items);
	return err;
}

/* ---- Cycles ---- */

static bool repeats(const struct work *w, size_t i, uint32_t cycle)
{
	const struct slot *s = &w->item[i];

	if (i + 2 * (size_t)cycle > w->n)
		return false;
	for (uint32_t k = 0; k < cycle; k++) {
		if (!s[k].size || s[k].size != s[k + cycle].size)
			return false;
	}
	return true;
}

static unsigned sizes_in(const struct slot *s, uint32_t n)
{
	unsigned differ = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = 0;

		while (k < i && s[k].size != s[i].size)
			k++;
		differ += k == i;
	}
	return differ;
}

/* Forth and back, wherever it begins. */
static bool is_there_and_back(const struct slot *s, uint32_t n,
			      uint32_t *from)
{
	for (*from = 0; n % 2 == 0 && *from < n; ++*from) {
		uint32_t k = 0;

		while (k < n / 2 && s[(*from + k) % n].size ==
				    s[(*from + n - 1 - k) % n].size)
			k++;
		if (k == n / 2)
			return true;
	}
	return false;
}

/* All alike, but for one that is a little shorter? */
static bool has_spares(const struct slot *s, uint32_t n)
{
	uint32_t least = UINT32_MAX, most = 0;
	unsigned shorter = 0;

	for (uint32_t i = 0; i < n; i++) {
		least = s[i].size < least ? s[i].size : least;
		most = s[i].size > most ? s[i].size : most;
	}
	for (uint32_t i = 0; i < n; i++)
		shorter += s[i].size == least;
	return n > 2 && shorter == 1 && least >= (1 - SPARES_MOST) * most;
}

/* Two surfaces, forth and back, of which the last track of each cylinder lacks
 * the spares, would look like four. */
static bool is_two_with_spares(const struct slot *s)
{
	for (uint32_t i = 0; i < 4; i++) {
		const struct slot *a = &s[i], *b = &s[(i + 1) % 4],
				  *c = &s[(i + 2) % 4], *d = &s[(i + 3) % 4];

		if (a->size > d->size && a->size - d->size == c->size - b->size)
			return true;
	}
	return false;
}

/* Surfaces that a cycle goes over; 0: it can't be said. */
static uint32_t surfaces_of(const struct slot *s, uint32_t cycle,
			    uint32_t group, bool *back)
{
	unsigned differ = sizes_in(s, cycle);
	uint32_t from;

	*back = differ < cycle && cycle >= 6 && differ > 2 &&
		is_there_and_back(s, cycle, &from);
	if (*back)
		return 4 * differ > cycle ? cycle / 2 : 0;
	if (group == 1 && cycle == 4 && is_two_with_spares(s))
		return 0;
	if (differ == cycle || (differ > 2 && 2 * differ > cycle) ||
	    (group == 1 && differ == 2 && has_spares(s, cycle)))
		return cycle;
	return 0;
}

/* The smallest cycle at a slot; 0: none. */
static uint32_t cycle_at(const struct work *w, size_t i)
{
	for (uint32_t n = 2; n <= CYCLE_MOST; n++) {
		if (repeats(w, i, n) && sizes_in(&w->item[i], n) > 1)
			return n;
	}
	return 0;
}

/* All places vote.  How many surfaces, and how sure that is. */
static void vote(struct work *w)
{
	size_t votes[2][SURFACES_MOST + 1] = { 0 };
	size_t all = 0, said = 0, best = 0;
	struct heads *h = w->heads;
	size_t step = w->n / 4096 + 1;

	for (size_t i = 0; i < w->n; i += step) {
		uint32_t cycle = cycle_at(w, i), n;
		bool back;

		/* Each is as many steps. */
		prober_pause(w->prober, i / step * CYCLE_MOST + CYCLE_MOST - 1);
		if (!cycle)
			continue;
		n = surfaces_of(&w->item[i], cycle, h->group, &back);
		all++;
		if (!n || n > SURFACES_MOST)
			continue;
		said++;
		votes[back][n]++;
		if (votes[back][n] > best) {
			best = votes[back][n];
			h->surfaces = n;
			h->back = back;
		}
	}
	if (best < VOTES_LEAST || (double)best < AGREE * (double)said ||
	    2 * best < all) {
		h->surfaces = 0;
		return;
	}
	w->cycle = h->back ? 2 * h->surfaces : h->surfaces;
	h->confidence_ppm = (uint32_t)((double)SURE_PPM * (double)best /
				       (double)said);
}

/* ---- Where each slot is ---- */

static bool fits(const struct work *w, size_t i, uint32_t at, uint32_t n)
{
	if (i + n > w->n)
		n = (uint32_t)(w->n - i);
	for (uint32_t k = 0; k < n; k++) {
		if (w->item[i + k].size != w->table[(at + k) % w->cycle])
			return false;
	}
	return true;
}

/* How unlike a new zone's sizes are to those of the last one, if its first slot
 * is at a place of the cycle: surfaces keep their proportions. */
static double unlike(const struct work *w, size_t i, uint32_t at)
{
	double sum = 0, squares = 0;

	for (uint32_t k = 0; k < w->cycle; k++) {
		double r = log((double)w->item[i + k].size /
			       w->table[(at + k) % w->cycle]);

		sum += r;
		squares += r * r;
	}
	return squares - sum * sum / w->cycle;
}

/* A zone begins: the sizes of its cycle.  `at`: where it would be if nothing
 * were missing. */
static uint32_t begin_zone(struct work *w, size_t i, uint32_t at, bool first)
{
	uint32_t best = at, k;
	double least, off;

	if (first && w->heads->back)
		is_there_and_back(&w->item[i], w->cycle, &k);
	else
		k = 0;
	if (first) {
		best = (w->cycle - k) % w->cycle;
	} else {
		least = unlike(w, i, at) * 0.9;
		for (k = 0; k < w->cycle; k++) {
			off = unlike(w, i, k);
			if (off < least) {
				least = off;
				best = k;
			}
		}
	}
	for (k = 0; k < w->cycle; k++)
		w->table[(best + k) % w->cycle] = w->item[i + k].size;
	return best;
}

/* Slots that are missing: how many places further is this one? */
static bool find_place(const struct work *w, size_t i, uint32_t *at)
{
	uint32_t n = w->cycle < PLACED_BY ? w->cycle : PLACED_BY;

	for (uint32_t k = 0; k < w->cycle; k++) {
		if (fits(w, i, (*at + k) % w->cycle, n)) {
			*at = (*at + k) % w->cycle;
			return true;
		}
	}
	return false;
}

/* Has a cycle begun between two slots that follow each other?  Zones begin with
 * one; in cylinder order what is not there is known by its surface. */
static bool is_begin(const struct work *w, uint32_t was, uint32_t at,
		     uint32_t zone_at)
{
	uint32_t n = w->heads->surfaces;

	if (w->heads->group > 1) {
		was += w->cycle - zone_at;
		at += w->cycle - zone_at;
	}
	return at % w->cycle % n <= was % w->cycle % n;
}

static void place_slots(struct work *w)
{
	bool known = false, begins = false;
	uint32_t at = 0, cylinder = 0, wide = 0, zone_at = 0;

	for (size_t i = 0; i < w->n; i++) {
		struct slot *s = &w->item[i];
		uint32_t was = at;

		at = i ? (at + 1) % w->cycle : 0;
		begins = false;
		if (!(known && s->size == w->table[at]) &&
		    !(known && find_place(w, i, &at)) &&
		    repeats(w, i, w->cycle) &&
		    sizes_in(s, w->cycle) > 1) {
			at = begin_zone(w, i, at, !known);
			begins = known && w->heads->group > 1;
			zone_at = at;
			known = true;
		}
		if (i && (begins || is_begin(w, was, at, zone_at))) {
			cylinder += wide;
			wide = 0;
		}
		if (s->size && s->tracks > wide)
			wide = s->tracks < w->heads->group ? s->tracks :
							     w->heads->group;
		s->at = at;
		s->cylinder = cylinder;
	}
}

/* ---- The geometry ---- */

static void place_of(const struct work *w, const struct slot *s,
		     uint64_t track, struct geom_sweep *out)
{
	uint32_t n = w->heads->surfaces, group = w->heads->group;
	uint32_t off = (uint32_t)(track - s->track);
	bool out_wards = s->at % n % 2;

	out->surface = (int32_t)(s->at < n ? s->at : 2 * n - 1 - s->at);
	/* Which way a group runs does not show; mostly they alternate. */
	if (group > 1 && out_wards)
		off = off < s->tracks ? s->tracks - 1 - off : 0;
	out->cylinder = (int64_t)s->cylinder +
			(off < group ? off : group - 1);
}

static int build(const struct work *w, struct geom **out)
{
	struct geom_build *b = geom_build_new(geom_period_ns(w->geom),
					      TOLERANCE);
	struct geom_track t;
	size_t i = 0;
	int err = b ? 0 : -ENOMEM;

	for (uint64_t k = 0; k < geom_tracks(w->geom) && !err; k++) {
		struct geom_sweep s = { .count = 1 };

		prober_pause(w->prober, k);
		geom_track_at(w->geom, k, &t);
		while (i + 1 < w->n && w->item[i + 1].track <= k)
			i++;
		place_of(w, &w->item[i], k, &s);
		s.sectors = t.sectors;
		s.around = around(&t) > t.sectors ? around(&t) : t.sectors;
		s.base = t.start;
		s.known = t.known;
		err = geom_build_sweep(b, &s);
	}
	if (!err) {
		geom_build_pause(b, prober_pause_now, w->prober);
		err = geom_build_finish(b, out);
	}
	geom_build_free(b);
	return err;
}

/* From what is in a row to where it lies. */
static int find(struct work *w, bool join)
{
	struct heads *h = w->heads;
	int err;

	w->n = 0;
	err = make_items(w);
	if (!err && join)
		join_items(w);
	h->group = err ? 0 : find_group(w);
	if (h->group)
		err = make_slots(w, h->group);
	if (!err && h->group)
		vote(w);
	return err;
}

static int find_by_sizes(const struct geom *geom, struct prober *prober,
			 struct heads *heads, struct geom **out)
{
	struct work w = { .geom = geom, .prober = prober, .heads = heads };
	int err;

	/* A short track may be one with slips, or come again. */
	err = find(&w, true);
	if (!err && !heads->surfaces)
		err = find(&w, false);
	if (!err && heads->surfaces) {
		heads->order = heads->group > 1 ? HEADS_SERPENTINE :
						  HEADS_CYLINDER;
		place_slots(&w);
		err = build(&w, out);
	} else {
		*heads = (struct heads){ 0 };
	}
	free(w.item);
	return err;
}

/* ---- By skews, and by seeks ---- */

/* Cylinders that are all but full?  Else bands were torn apart. */
static bool is_full(const struct geom *geom, uint32_t surfaces)
{
	uint64_t n = geom_tracks(geom), most = 0;
	struct geom_track t;

	for (uint64_t i = 0; i < n; i++) {
		geom_track_at(geom, i, &t);
		most = t.cylinder > most ? t.cylinder : most;
	}
	return (double)(most + 1) * surfaces <= FULL * (double)n;
}

static int place_pieces(const struct pieces *p, enum pieces_are are,
			uint32_t surfaces, uint32_t sure_ppm,
			const struct geom *geom, struct heads *heads,
			struct geom **out)
{
	int err;

	*heads = (struct heads){
		.order = are == PIECES_CYLINDERS ? HEADS_CYLINDER :
						   HEADS_SERPENTINE,
		.surfaces = surfaces,
		.group = are == PIECES_CYLINDERS ? 1 : p->group,
		.confidence_ppm = sure_ppm,
	};
	err = pieces_place(p, are, surfaces, geom, out);
	if (!err && !is_full(*out, surfaces)) {
		geom_free(*out);
		*out = NULL;
		*heads = (struct heads){ 0 };
	}
	return err;
}

/* What is found by going near and far, if it all is so. */
static int try_bands(struct near *near, const struct pieces *p,
		     const struct bands_guess *guess,
		     struct heads *heads, struct geom **out)
{
	struct bands bands;
	double share = 0;
	int err = bands_cut(near, p, guess, &bands);

	if (!err)
		err = bands_prove(&bands, near, p, &share);
	if (!err && share > 0)
		err = bands_place(&bands, near, out);
	if (*out)
		*heads = (struct heads){
			.order = HEADS_SERPENTINE,
			.surfaces = guess->surfaces,
			.group = (uint32_t)lrint(bands.usual),
			.confidence_ppm = (uint32_t)(SEEKS_PPM * share),
		};
	bands_fini(&bands);
	return err;
}

/* Groups show, larger than cylinders are; and nothing further on is near. */
static bool is_alone(const struct islands *islands, const struct pieces *p)
{
	return p->group > CYLINDER_MOST && islands->alone_from &&
	       islands->alone_from * ALONE_STEPS <= p->group &&
	       islands->alone_to * ALONE_REACH >= p->group;
}

/* So many surfaces, however that may be believed to show. */
static int try_surfaces(struct near *near, const struct pieces *p,
			uint32_t surfaces, double sweep, struct heads *heads,
			struct geom **out)
{
	struct bands_guess guess;
	int votes, err = bands_turn(near, p, &votes);

	for (unsigned i = 0; i < GUESSES && !err && !*out; i++) {
		guess = (struct bands_guess){
			.surfaces = surfaces, .sweep = sweep,
			.sizes = i < 2, .inside = i < 4,
			.turns = (votes > 0) != i % 2,
		};
		if ((i % 2 && (surfaces < 2 || abs(votes) >= BANDS_VOTES)) ||
		    (guess.sizes && surfaces < 2))
			continue;
		err = try_bands(near, p, &guess, heads, out);
	}
	return err;
}

/* `likely`: so many surfaces are believed; 0. */
static int by_seeks(struct near *near, const struct pieces *p, uint32_t likely,
		    struct heads *heads, struct geom **out)
{
	struct islands islands = { 0 };
	uint32_t n;
	int err = islands_count(near, p, &islands);

	n = islands.surfaces;
	if (!err && is_alone(&islands, p))
		err = try_surfaces(near, p, 1, 0, heads, out);
	if (!err && !*out && n > 1)
		err = try_surfaces(near, p, n, islands.sweep, heads, out);
	if (!err && !*out && likely > 1 && likely != n)
		err = try_surfaces(near, p, likely, 0, heads, out);
	return err;
}

int heads_measure(struct prober *prober, uint64_t period_ps, uint64_t most_ns,
		  const struct geom *geom, struct heads *heads,
		  struct geom **out)
{
	uint32_t surfaces, likely, sure_ppm = 0;
	enum pieces_are are;
	struct pieces p;
	struct near near;
	int err;

	*heads = (struct heads){ 0 };
	*out = NULL;
	err = find_by_sizes(geom, prober, heads, out);
	if (err || (heads->surfaces &&
		    (!prober || heads->order == HEADS_CYLINDER)))
		return err;
	likely = heads->surfaces;
	*heads = (struct heads){ 0 };
	geom_free(*out);
	*out = NULL;
	err = pieces_cut(geom, prober, &p);
	if (err)
		return err;
	surfaces = pieces_count(&p, &are, &sure_ppm);
	if (prober && !(surfaces && are == PIECES_CYLINDERS)) {
		err = near_begin(&near, prober, geom, (double)period_ps / 1e3,
				 most_ns);
		if (!err && near.least_ns > 0)
			err = by_seeks(&near, &p, likely ? likely : surfaces,
				       heads, out);
	} else if (surfaces) {
		err = place_pieces(&p, are, surfaces, sure_ppm, geom, heads,
				   out);
	}
	pieces_free(&p);
	return err;
}

/* ---- Measured anew ---- */

int heads_keep(const struct geom *was, const struct geom *now,
	       struct geom **out)
{
	struct geom_build *b = geom_build_new(geom_period_ns(now), TOLERANCE);
	uint64_t known = 0, others = 0;
	struct geom_track t, old;
	int err = b ? 0 : -ENOMEM;

	*out = NULL;
	for (uint64_t i = 0; i < geom_tracks(now) && !err; i++) {
		struct geom_sweep s = { .count = 1 };

		geom_track_at(now, i, &t);
		geom_track_of(was, t.first, &old);
		known += t.known;
		others += t.known && (!old.known || old.first != t.first);
		s.cylinder = old.cylinder;
		s.surface = (int32_t)old.surface;
		s.sectors = t.sectors;
		s.around = around(&t) > t.sectors ? around(&t) : t.sectors;
		s.base = t.start;
		s.known = t.known;
		err = geom_build_sweep(b, &s);
	}
	if (!err && others <= known / OTHERS_LEAST)
		err = geom_build_finish(b, out);
	geom_build_free(b);
	return err;
}

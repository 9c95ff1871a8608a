/*
 * geom_code.c - the record of a geometry in the file system.
 *
 * A header with the number of entries of each kind, the record's length and a
 * checksum; then patterns with their parts, runs, odd tracks, slips and remaps
 * as variable length integers (7 bits a byte, least significant first; signed
 * ones zigzag). Tracks and LBNs of the last three kinds are differences to the
 * one before. Members that follow from others are not stored; neither is the
 * begin of a run that goes on with an earlier one behind a few tracks that hold
 * nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/le.h"
#include "base/msg.h"
#include "diskmodel/geom_build.h"

#define RECORD_MAGIC 0x6d6f6567u	/* "geom" */
/* Version 1 stored every run in full. */
#define RECORD_VERSION 2u
#define VARINT_MAX 10u	/* Bytes of the longest number: 64 bits, 7 in a byte. */
/* Number of runs to look back for one that goes on. */
#define RESUME_RUNS 4u
/* Most tracks that may be missing between the two.  A larger gap is stored as a
 * run in full. */
#define RESUME_SKIP 65536u

struct trax_geom_record {
	le32 magic;
	le32 version;
	le64 bytes;		/* bytes of header and entries */
	le64 sectors;		/* sum of the sectors of all entries */
	le64 period_ns;
	le32 patterns;
	le32 parts;
	le32 runs;
	le32 odds;
	le32 slips;
	le32 remaps;
	le64 csum;		/* checksum of the record, with 0 in this
				 * field */
};

_Static_assert(sizeof(struct trax_geom_record) == 64, "size of the record");

struct geom_writer {
	uint8_t *p;
};

struct geom_reader {
	const uint8_t *p, *end;
	bool bad;
};

static void put(struct geom_writer *w, uint64_t v)
{
	while (v >= 0x80) {
		*w->p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*w->p++ = (uint8_t)v;
}

static void put_signed(struct geom_writer *w, int64_t v)
{
	put(w, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

/* A value of at most `max`; a larger one, or an integer that is cut off, sets
 * the reader's error. */
static uint64_t get(struct geom_reader *r, uint64_t max)
{
	uint64_t v = 0;
	unsigned shift = 0;

	while (!r->bad && r->p < r->end && shift < 64) {
		uint8_t b = *r->p++;

		v |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
		if (!(b & 0x80)) {
			if (v > max)
				r->bad = true;
			return r->bad ? 0 : v;
		}
	}
	r->bad = true;
	return 0;
}

static int64_t get_signed(struct geom_reader *r, uint64_t max)
{
	uint64_t v = get(r, 2 * max);

	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static void put_sweep(struct geom_writer *w, const struct geom_sweep *s)
{
	put(w, s->count * UINT64_C(2) + s->known);
	put(w, s->sectors);
	put(w, s->around - s->sectors);
	put_signed(w, s->cylinder);
	put_signed(w, s->surface);
	put(w, s->base);
	if (s->count > 1) {
		put_signed(w, s->cylinder_step);
		put_signed(w, s->surface_step);
		put(w, s->base_step);
	}
}

static void get_sweep(struct geom_reader *r, struct geom_sweep *s)
{
	uint64_t count = get(r, 2 * (uint64_t)GEOM_MAX_CYLINDERS + 1);

	*s = (struct geom_sweep){ 0 };
	s->known = count & 1;
	s->count = (uint32_t)(count >> 1);
	s->sectors = (uint32_t)get(r, GEOM_MAX_TRACK_SECTORS);
	s->around = s->sectors + (uint32_t)get(r, GEOM_MAX_TRACK_SECTORS);
	s->cylinder = get_signed(r, GEOM_MAX_CYLINDERS);
	s->surface = (int32_t)get_signed(r, GEOM_MAX_SURFACES);
	s->base = (angle)get(r, UINT32_MAX);
	if (s->count > 1) {
		s->cylinder_step = (int32_t)get_signed(r, GEOM_MAX_CYLINDERS);
		s->surface_step = (int32_t)get_signed(r, GEOM_MAX_SURFACES);
		s->base_step = (angle)get(r, UINT32_MAX);
	}
}

/* Does a run go on with an earlier one? Then the result is the number of tracks
 * between them. */
static bool run_resumes(const struct geom *g, const struct geom_run *earlier,
			const struct geom_run *run, uint64_t *ahead)
{
	const struct geom_pattern *p = &g->patterns[run->pattern];
	uint64_t end = earlier->phase + earlier->count, at = run->phase;
	struct geom_run again;

	if (earlier->pattern != run->pattern)
		return false;
	if (p->cylinder_step)
		at += (uint64_t)((run->cylinder - earlier->cylinder) /
				 p->cylinder_step) * p->tracks;
	else if (p->surface_step)
		at += (uint64_t)((run->surface - earlier->surface) /
				 p->surface_step) * p->tracks;
	if (at < end || at - end > RESUME_SKIP)
		return false;
	*ahead = at - end;
	geom_run_after(g, earlier, *ahead, &again);
	return again.phase == run->phase && again.cylinder == run->cylinder &&
	       again.surface == run->surface && again.base == run->base;
}

static void put_run(struct geom_writer *w, const struct geom *g, uint32_t i)
{
	const struct geom_run *r = &g->runs[i];
	uint64_t ahead;

	for (uint32_t back = 1; back <= RESUME_RUNS && back <= i; back++) {
		if (!run_resumes(g, r - back, r, &ahead))
			continue;
		put(w, back);
		put(w, ahead);
		put(w, r->count);
		return;
	}
	put(w, 0);
	put(w, r->pattern);
	put(w, r->phase);
	put(w, r->count);
	put_signed(w, r->cylinder);
	put_signed(w, r->surface);
	put(w, r->base);
}

static void put_entries(struct geom_writer *w, const struct geom *g)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < g->patterns_n; i++) {
		const struct geom_pattern *p = &g->patterns[i];

		put(w, p->parts);
		put_signed(w, p->cylinder_step);
		put_signed(w, p->surface_step);
		put(w, p->base_step);
		for (uint32_t k = 0; k < p->parts; k++)
			put_sweep(w, &g->parts[p->part + k].sweep);
	}
	for (uint32_t i = 0; i < g->runs_n; i++)
		put_run(w, g, i);
	for (uint32_t i = 0; i < g->odds_n; i++) {
		put(w, g->odds[i].track - at);
		put_signed(w, g->odds[i].more);
		at = g->odds[i].track;
	}
	at = 0;
	for (uint32_t i = 0; i < g->slips_n; i++) {
		put(w, g->slips[i].track - at);
		put(w, g->slips[i].at);
		put(w, g->slips[i].n);
		at = g->slips[i].track;
	}
	at = 0;
	for (uint32_t i = 0; i < g->remaps_n; i++) {
		const struct geom_remap *r = &g->remaps[i];

		put(w, r->lbn - at);
		put(w, r->n);
		put(w, r->cylinder);
		put(w, r->surface);
		put(w, r->sector);
		put(w, r->around);
		put(w, r->start);
		at = r->lbn;
	}
}

/* Tracks of a part; how runs go on is read before patterns are verified. */
static uint64_t get_part(struct geom_reader *r, struct geom_sweep *s)
{
	get_sweep(r, s);
	return s->count;
}

static void get_patterns(struct geom_reader *r, struct geom *g)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < g->patterns_n && !r->bad; i++) {
		struct geom_pattern *p = &g->patterns[i];

		p->part = used;
		p->parts = (uint32_t)get(r, g->parts_n - used);
		p->cylinder_step = get_signed(r, GEOM_MAX_CYLINDERS);
		p->surface_step = (int32_t)get_signed(r, GEOM_MAX_SURFACES);
		p->base_step = (angle)get(r, UINT32_MAX);
		for (uint32_t k = 0; k < p->parts; k++)
			p->tracks += get_part(r, &g->parts[used++].sweep);
	}
	if (used != g->parts_n)
		r->bad = true;
}

/* A run that goes on with an earlier one. */
static void get_resumed(struct geom_reader *r, const struct geom *g, uint32_t i,
			uint32_t back)
{
	uint64_t ahead = get(r, RESUME_SKIP);
	uint64_t count = get(r, GEOM_MAX_SECTORS);
	const struct geom_run *earlier = &g->runs[i - back];
	const int64_t most = 4 * (int64_t)GEOM_MAX_CYLINDERS;
	struct geom_run *run = &g->runs[i];

	if (r->bad || earlier->pattern >= g->patterns_n ||
	    !g->patterns[earlier->pattern].tracks) {
		r->bad = true;
		return;
	}
	geom_run_after(g, earlier, ahead, run);
	run->count = count;
	/* Bounds of runs that are stored in full. */
	if (run->cylinder > most || run->cylinder < -most ||
	    run->surface > 4 * (int32_t)GEOM_MAX_SURFACES ||
	    run->surface < -4 * (int32_t)GEOM_MAX_SURFACES)
		r->bad = true;
}

static void get_runs(struct geom_reader *r, struct geom *g, uint32_t version)
{
	for (uint32_t i = 0; i < g->runs_n && !r->bad; i++) {
		struct geom_run *run = &g->runs[i];
		uint32_t back = 0;

		if (version > 1)
			back = (uint32_t)get(r, i < RESUME_RUNS ? i :
							   RESUME_RUNS);
		if (back) {
			get_resumed(r, g, i, back);
			continue;
		}
		run->pattern = (uint32_t)get(r, UINT32_MAX);
		run->phase = get(r, GEOM_MAX_SECTORS);
		run->count = get(r, GEOM_MAX_SECTORS);
		/* Periods that lie before the run may have negative places. */
		run->cylinder = get_signed(r, 4 * (uint64_t)GEOM_MAX_CYLINDERS);
		run->surface = (int32_t)get_signed(r, 4 * GEOM_MAX_SURFACES);
		run->base = (angle)get(r, UINT32_MAX);
	}
}

static void get_defects(struct geom_reader *r, struct geom *g)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < g->odds_n && !r->bad; i++) {
		at += get(r, GEOM_MAX_SECTORS);
		g->odds[i].track = at;
		g->odds[i].more = (int32_t)get_signed(r,
						      GEOM_MAX_TRACK_SECTORS);
	}
	at = 0;
	for (uint32_t i = 0; i < g->slips_n && !r->bad; i++) {
		at += get(r, GEOM_MAX_SECTORS);
		g->slips[i].track = at;
		g->slips[i].at = (uint32_t)get(r, GEOM_MAX_TRACK_SECTORS);
		g->slips[i].n = (uint32_t)get(r, GEOM_MAX_TRACK_SECTORS);
	}
	at = 0;
	for (uint32_t i = 0; i < g->remaps_n && !r->bad; i++) {
		struct geom_remap *m = &g->remaps[i];

		at += get(r, GEOM_MAX_SECTORS);
		m->lbn = at;
		m->n = (uint32_t)get(r, GEOM_MAX_TRACK_SECTORS);
		m->cylinder = (uint32_t)get(r, GEOM_MAX_CYLINDERS);
		m->surface = (uint32_t)get(r, GEOM_MAX_SURFACES);
		m->sector = (uint32_t)get(r, GEOM_MAX_TRACK_SECTORS);
		m->around = (uint32_t)get(r, GEOM_MAX_TRACK_SECTORS);
		m->start = (angle)get(r, UINT32_MAX);
	}
}

/* Largest number of bytes that an encoding can take. */
static size_t encode_bound(const struct geom *g)
{
	return sizeof(struct trax_geom_record) +
	       (size_t)VARINT_MAX * (4 * (size_t)g->patterns_n +
				     9 * (size_t)g->parts_n +
				     7 * (size_t)g->runs_n +
				     2 * (size_t)g->odds_n +
				     3 * (size_t)g->slips_n +
				     7 * (size_t)g->remaps_n);
}

int geom_encode(const struct geom *geom, void **buf, size_t *bytes)
{
	struct trax_geom_record *rec = malloc(encode_bound(geom));
	struct geom_writer w = { (uint8_t *)(rec + 1) };

	if (!rec)
		return -ENOMEM;
	put_entries(&w, geom);
	*bytes = (size_t)(w.p - (uint8_t *)rec);
	*rec = (struct trax_geom_record){
		.magic = le32_put(RECORD_MAGIC),
		.version = le32_put(RECORD_VERSION),
		.bytes = le64_put(*bytes),
		.sectors = le64_put(geom->sectors),
		.period_ns = le64_put(geom->period_ns),
		.patterns = le32_put(geom->patterns_n),
		.parts = le32_put(geom->parts_n),
		.runs = le32_put(geom->runs_n),
		.odds = le32_put(geom->odds_n),
		.slips = le32_put(geom->slips_n),
		.remaps = le32_put(geom->remaps_n),
	};
	rec->csum = le64_put(csum(rec, *bytes));
	*buf = rec;
	return 0;
}

static int record_verify(const void *buf, size_t bytes)
{
	const struct trax_geom_record *rec = buf;
	struct trax_geom_record *copy;
	uint64_t sum;

	if (bytes < sizeof(*rec) || le32_get(rec->magic) != RECORD_MAGIC ||
	    le64_get(rec->bytes) != bytes) {
		msg_error("geometry record: bad magic or length");
		return -EBADMSG;
	}
	copy = malloc(bytes);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, buf, bytes);
	copy->csum = le64_put(0);
	sum = csum(copy, bytes);
	free(copy);
	if (sum != le64_get(rec->csum)) {
		msg_error("geometry record: bad checksum");
		return -EBADMSG;
	}
	if (!le32_get(rec->version) ||
	    le32_get(rec->version) > RECORD_VERSION) {
		msg_error("geometry record: version %u is not known",
			  le32_get(rec->version));
		return -EUCLEAN;
	}
	return 0;
}

/* Every entry takes bytes, so a record's length bounds the memory that it can
 * make us allocate. */
static struct geom *geom_alloc(const struct trax_geom_record *rec,
			       size_t bytes)
{
	struct geom *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->period_ns = le64_get(rec->period_ns);
	g->patterns_n = le32_get(rec->patterns);
	g->parts_n = le32_get(rec->parts);
	g->runs_n = le32_get(rec->runs);
	g->odds_n = le32_get(rec->odds);
	g->slips_n = le32_get(rec->slips);
	g->remaps_n = le32_get(rec->remaps);
	if (g->patterns_n > bytes || g->parts_n > bytes || g->runs_n > bytes ||
	    g->odds_n > bytes || g->slips_n > bytes ||
	    g->remaps_n > bytes) {
		*g = (struct geom){ 0 };
		return g;
	}
	g->patterns = calloc(g->patterns_n + 1u, sizeof(*g->patterns));
	g->parts = calloc(g->parts_n + 1u, sizeof(*g->parts));
	g->runs = calloc(g->runs_n + 1u, sizeof(*g->runs));
	g->odds = calloc(g->odds_n + 1u, sizeof(*g->odds));
	g->slips = calloc(g->slips_n + 1u, sizeof(*g->slips));
	g->remaps = calloc(g->remaps_n + 1u, sizeof(*g->remaps));
	if (!g->patterns || !g->parts || !g->runs || !g->odds || !g->slips ||
	    !g->remaps) {
		geom_free(g);
		return NULL;
	}
	return g;
}

int geom_decode(const void *buf, size_t bytes, struct geom **geom)
{
	const struct trax_geom_record *rec = buf;
	struct geom_reader r = { .end = (const uint8_t *)buf + bytes };
	const char *why = NULL;
	struct geom *g;
	int err;

	err = record_verify(buf, bytes);
	if (err)
		return err;
	g = geom_alloc(rec, bytes);
	if (!g)
		return -ENOMEM;
	r.p = (const uint8_t *)(rec + 1);
	get_patterns(&r, g);
	get_runs(&r, g, le32_get(rec->version));
	get_defects(&r, g);
	if (r.bad || r.p != r.end)
		why = "an entry cut off or out of range";
	if (!why)
		why = geom_build_verify(g);
	if (!why && g->sectors != le64_get(rec->sectors))
		why = "the tracks do not add up to the sectors";
	if (why) {
		msg_error("geometry record: %s", why);
		geom_free(g);
		return -EUCLEAN;
	}
	*geom = g;
	return 0;
}

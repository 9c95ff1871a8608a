/*
 * prove_judge.c - tracks whose both ends were seen, and that may be none.
 *
 * A piece between two ends of tracks is a track if it goes round once; if it
 * does not (slips, spares, the end of a zone), if what is around it leaves no
 * other explanation.
 */
#include <math.h>

#include "extract/track/prove_internal.h"

/* Shorter tracks are not taken for parts of the middle of a zone. */
#define SHORT_LEAST 0.8
/* Unless so many in a row are alike, of which two are more than a turn. */
#define SHORTEST 0.55
#define SHORT_ROW 8u
/* As far as others of the same size may be away. */
#define ALIKE_FAR 64u
/* Pieces near one among which rows that end as one does are searched for, and
 * how many must. */
#define ROWS_NEAR 64u
#define ROWS_ALIKE 3u
/* Short tracks of one size. */
#define REPEATED 3u
/* Looks at two units beyond an end that has nothing known behind it. */
#define EDGE_LOOKS 4u

/* A track in two parts may be as long as those of another surface, but its
 * units pass as those of its own. */
static bool pass_alike(const struct prove *p, const struct prove_claim *a,
		       const struct prove_claim *b)
{
	return a->size == b->size &&
	       fabs(a->pitch - b->pitch) * a->size <= p->reader->tolerance;
}

static bool same(const struct prove *p, const struct prove_claim *a,
		 const struct prove_claim *b)
{
	return b && b->state == PROVE_HOLDS && b->size == b->nominal &&
	       pass_alike(p, a, b);
}

/* Are there so many of one size in a row? */
static bool is_one_of(const struct prove *p, size_t i, unsigned many)
{
	const struct prove_claim *c = &p->claim[i];
	unsigned n = 1;

	for (size_t k = i; n < many && same(p, c, prove_neighbour(p, k, -1));
	     k--)
		n++;
	for (size_t k = i; n < many && same(p, c, prove_neighbour(p, k, 1));
	     k++)
		n++;
	return n >= many;
}

/* With spares on each track none goes round; that several in a row end at the
 * same slip is out of the question. */
static bool is_whole(const struct prove *p, size_t i)
{
	const struct prove_claim *c = &p->claim[i];
	const struct prove_claim *a = prove_neighbour(p, i, -1);
	const struct prove_claim *b = prove_neighbour(p, i, 1);
	unsigned n = 1;

	if (prove_goes_round(p->reader, c))
		return true;
	if (c->size != c->nominal)
		return false;
	if (c->size * c->pitch < SHORT_LEAST)
		return c->size * c->pitch > SHORTEST &&
		       is_one_of(p, i, SHORT_ROW);
	n += same(p, c, a) + same(p, c, b);
	if (n == 2 && same(p, c, a))
		n += same(p, c, prove_neighbour(p, i - 1, -1));
	else if (n == 2)
		n += same(p, c, prove_neighbour(p, i + 1, 1));
	return n >= 3;
}

/* Is there a whole track of the same full size that way?  -1: perhaps further
 * on.  `joined`: with nothing unknown between. */
static int alike(const struct prove *p, size_t i, int step, bool joined)
{
	const struct prove_claim *c = &p->claim[i], *b;

	for (unsigned k = 0; k < ALIKE_FAR; k++) {
		if (step > 0 && i + 1 == p->n)
			return -1;
		b = prove_neighbour(p, i, step);
		if (joined && (!b || b->state != PROVE_HOLDS))
			return 0;
		if (step < 0 && !i)
			return 0;
		i = step > 0 ? i + 1 : i - 1;
		b = &p->claim[i];
		if (b->state == PROVE_HOLDS && is_whole(p, i) &&
		    b->nominal == c->nominal)
			return 1;
	}
	return 0;
}

/* At the beginning and the end of the disk a zone begins and ends. */
static bool at_edge(const struct prove *p, const struct prove_claim *c)
{
	return !c->first || c->first + c->size >= p->reader->units;
}

static bool whole_beside(const struct prove *p, size_t i, int step)
{
	const struct prove_claim *b = prove_neighbour(p, i, step);

	return b && b->state == PROVE_HOLDS &&
	       is_whole(p, (size_t)(b - p->claim));
}

/* A little shorter than two that are as long as each other? */
static bool is_between(const struct prove *p, size_t i)
{
	const struct prove_claim *c = &p->claim[i];

	return whole_beside(p, i, -1) && whole_beside(p, i, 1) &&
	       c[-1].size == c[1].size && c[1].size > c->size &&
	       c->size >= SHORT_LEAST * c[1].size;
}

/* The last track of each cylinder, without its spares, comes again. */
static bool is_repeated(const struct prove *p, size_t i)
{
	size_t k = i > ALIKE_FAR ? i - ALIKE_FAR : 0;
	unsigned n = 0;

	if (!whole_beside(p, i, -1) || !whole_beside(p, i, 1))
		return false;
	for (; k < p->n && k <= i + ALIKE_FAR; k++)
		n += p->claim[k].state == PROVE_HOLDS &&
		     pass_alike(p, &p->claim[k], &p->claim[i]);
	return n >= REPEATED;
}

/* A row of tracks as a store holds it: pieces of one size, one behind the
 * other, and perhaps a shorter track that is a piece of its own. */
struct whole_row {
	uint32_t size, tracks;
	uint64_t less;		/* units that it lacks in all, */
	uint64_t last;		/* and the first of its last track */
};

/* Does piece i go on a row of tracks of that size? */
static bool goes_on(const struct store *s, size_t i, uint32_t size)
{
	const struct piece *p = &s->pieces[i], *a = p - 1;

	return i < s->n && p->tracks && a->first + a->units == p->first &&
	       (p->size == size ||
		(p->tracks == 1 && p->size < size &&
		 p->size >= SHORT_LEAST * size));
}

/* The row that begins with piece *i; *i: the piece behind it. */
static struct whole_row take_row(const struct store *s, size_t *i)
{
	const struct piece *p = &s->pieces[*i];
	struct whole_row row = { .size = p->size, .last = p->first };
	struct store_track t;

	do {
		p = &s->pieces[(*i)++];
		row.tracks += p->tracks;
		row.less += (uint64_t)p->tracks * row.size - p->units;
		if (p->tracks) {
			store_track(s, p, p->tracks - 1, &t);
			row.last = t.first;
		}
	} while (p->tracks && p->size == row.size &&
		 goes_on(s, *i, row.size));
	return row;
}

/* The first piece of the row that piece i is of. */
static size_t row_begin(const struct store *s, size_t i)
{
	if (i && s->pieces[i].tracks == 1 &&
	    s->pieces[i - 1].size > s->pieces[i].size &&
	    goes_on(s, i, s->pieces[i - 1].size))
		i--;
	while (i && s->pieces[i - 1].size == s->pieces[i].size &&
	       goes_on(s, i, s->pieces[i].size))
		i--;
	return i;
}

/* Does a long row end with this track as others do, which hold as many tracks
 * and lack as many units in all, whatever their size?  Slips are taken from its
 * spares.  Where zones meet no two rows are cut in that way. */
static bool is_usual_end(const struct prove *p, const struct prove_claim *c)
{
	const struct store *s = p->store;
	size_t at = store_find(s, c->first), i, from;
	struct whole_row own, row;
	unsigned n = 0;

	if (at >= s->n)
		return false;
	i = from = row_begin(s, at);
	own = take_row(s, &i);
	if (own.last != c->first || !own.less || own.tracks < SHORT_ROW)
		return false;
	i = row_begin(s, from > ROWS_NEAR ? from - ROWS_NEAR : 0);
	while (i < s->n && i <= at + ROWS_NEAR && n < ROWS_ALIKE) {
		row = take_row(s, &i);
		n += row.last != own.last && row.tracks == own.tracks &&
		     row.less == own.less;
	}
	return n >= ROWS_ALIKE;
}

/* A whole track has one like it on some side. */
static enum prove_state judge_whole(const struct prove *p, size_t i)
{
	int after = alike(p, i, 1, false);

	if (is_usual_end(p, &p->claim[i]))
		return PROVE_HOLDS;
	if (after > 0 || alike(p, i, -1, false) > 0 || is_between(p, i))
		return PROVE_HOLDS;
	return after < 0 ? PROVE_OPEN : PROVE_FAILS;
}

static enum prove_state judge_short(const struct prove *p, size_t i)
{
	const struct prove_claim *c = &p->claim[i];
	int before = c->first ? alike(p, i, -1, true) : 1;
	int after = c->first + c->size < p->reader->units ?
		    alike(p, i, 1, true) : 1;

	if (is_between(p, i) || is_repeated(p, i) || is_usual_end(p, c))
		return PROVE_HOLDS;
	if (before != 1 || !after || (!at_edge(p, c) &&
				      c->size < SHORT_LEAST * c->nominal))
		return PROVE_FAILS;
	return after > 0 ? PROVE_HOLDS : PROVE_OPEN;
}

/* What one rests on may fall itself. */
void prove_judge(struct prove *p, bool more)
{
	enum prove_state now;
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; i < p->n; i++) {
			struct prove_claim *c = &p->claim[i];

			if (c->state != PROVE_HOLDS || !c->seen)
				continue;
			now = is_whole(p, i) ? judge_whole(p, i) :
					       judge_short(p, i);
			if (now == PROVE_OPEN && !more)
				now = PROVE_FAILS;
			again |= now != PROVE_HOLDS;
			c->state = now;
		}
	}
}

/* ---- Where nothing is known on the other side ---- */

/* Is what is there a unit by itself, in the place of one that is defective?
 * Then the leap is none.  Two that follow each other say that it is not. */
static int try_edge(struct prove *p, size_t i, bool behind, bool *good)
{
	const struct prove_claim *c = &p->claim[i];
	uint64_t lo = behind ? c->first + c->size : c->first - 2;
	double a, b;
	int err = 0;

	*good = false;
	for (unsigned n = 0; n < EDGE_LOOKS && !*good && !err; n++) {
		err = reader_read(p->reader, lo + 1, &b);
		if (!err)
			err = reader_read(p->reader, lo, &a);
		*good = fabs(prove_off(b, a + c->pitch)) <=
			p->reader->tolerance;
	}
	return err;
}

static bool has_edge(const struct prove *p, size_t i, bool behind, bool more)
{
	const struct prove_claim *c = &p->claim[i];
	const struct prove_claim *b = prove_neighbour(p, i, behind ? 1 : -1);

	if (c->state != PROVE_HOLDS || !c->seen ||
	    (b && b->state != PROVE_FAILS))
		return false;
	if (behind)
		return !(more && i + 1 == p->n) &&
		       c->first + c->size + 1 < p->reader->units;
	return c->first > 1;
}

int prove_edges(struct prove *p, bool more)
{
	bool again = true, good;
	int err = 0;

	while (again && !err) {
		again = false;
		for (size_t i = 0; i < 2 * p->n && !err; i++) {
			if (!has_edge(p, i / 2, i % 2, more))
				continue;
			err = try_edge(p, i / 2, i % 2, &good);
			if (!good && !err)
				p->claim[i / 2].state = PROVE_FAILS;
			again |= !good;
		}
	}
	return err;
}

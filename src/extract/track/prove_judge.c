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
/* As far as others of the same size may be away. */
#define ALIKE_FAR 64u
/* Of a full track, what one with slips keeps at least when it is to leave no
 * room for a second one; so many such may follow each other. */
#define NEARLY_WHOLE 0.97
#define ENCLOSED_MOST 3u
/* So many tracks of a size are no chance. */
#define TIMES_LEAST 2u
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
	if (c->size != c->nominal || c->size * c->pitch < SHORT_LEAST)
		return false;
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

/* Are there others of its size around a track that goes round once? */
static bool is_firm(const struct prove *p, size_t i)
{
	return is_whole(p, i) && (alike(p, i, 1, false) > 0 ||
				  alike(p, i, -1, false) > 0);
}

/* Does a track leave no room for another one on its turn? */
static bool is_nearly_whole(const struct prove *p, const struct prove_claim *c)
{
	return c->size >= NEARLY_WHOLE * c->nominal &&
	       prove_takes_turn(p->reader, c, c->nominal);
}

/* The firm track that way, behind a few at most that leave no room for others;
 * NULL: there is none. */
static const struct prove_claim *firm_beside(const struct prove *p, size_t i,
					     int step)
{
	for (unsigned n = 0; n < ENCLOSED_MOST; n++) {
		const struct prove_claim *b = prove_neighbour(p, i, step);

		if (!b || b->state != PROVE_HOLDS)
			return NULL;
		i = (size_t)(b - p->claim);
		if (is_firm(p, i))
			return b;
		if (!is_nearly_whole(p, b))
			return NULL;
	}
	return NULL;
}

/* Does a zone go on from one track to another?  The sizes of its surfaces come
 * again, those of another zone are new.  -1: perhaps further on. */
static int is_one_zone(const struct prove *p, const struct prove_claim *before,
		       const struct prove_claim *behind)
{
	const struct store *s = p->store;

	if (before->size == behind->size ||
	    store_before(s, before->first, behind->size) >= TIMES_LEAST ||
	    store_behind(s, before->first, before->size) >= TIMES_LEAST)
		return 1;
	return store_find(s, before->first) + STORE_NEAR < s->n ? 0 : -1;
}

/* Is it the only track between two that are certain: too long for a second one
 * beside it, with no end of a zone, whose last track may be of any size?  -1:
 * what comes further on will say. */
static int is_only_one(const struct prove *p, size_t i)
{
	const struct prove_claim *before, *behind;

	if (!is_nearly_whole(p, &p->claim[i]))
		return 0;
	before = firm_beside(p, i, -1);
	behind = firm_beside(p, i, 1);
	/* What is longer than both has a unit of another in it. */
	if (!before || !behind || (p->claim[i].size > before->size &&
				   p->claim[i].size > behind->size))
		return 0;
	return is_one_zone(p, before, behind);
}

/* A whole track has one like it on some side. */
static enum prove_state judge_whole(struct prove *p, size_t i)
{
	int after = alike(p, i, 1, false), only;

	if (after > 0 || alike(p, i, -1, false) > 0)
		return PROVE_HOLDS;
	only = is_only_one(p, i);
	p->claim[i].waits = only < 0;
	if (only > 0)
		return PROVE_HOLDS;
	return after < 0 || only < 0 ? PROVE_OPEN : PROVE_FAILS;
}

static enum prove_state judge_short(struct prove *p, size_t i)
{
	const struct prove_claim *c = &p->claim[i];
	int before = c->first ? alike(p, i, -1, true) : 1;
	int after = c->first + c->size < p->reader->units ?
		    alike(p, i, 1, true) : 1;
	int only = is_only_one(p, i);

	p->claim[i].waits = only < 0;
	if (is_repeated(p, i) || only > 0)
		return PROVE_HOLDS;
	if (before != 1 || !after || (!at_edge(p, c) &&
				      c->size < SHORT_LEAST * c->nominal))
		return only < 0 ? PROVE_OPEN : PROVE_FAILS;
	return after > 0 ? PROVE_HOLDS : PROVE_OPEN;
}

/*
 * May a zone end in what is unknown beside the claim at i, and is that unlike
 * the track on its other side?  It may have a few units of another one then,
 * which go on from it without a skew.
 */
static bool may_have_more(const struct prove *p, size_t i, int step)
{
	const struct prove_claim *c = &p->claim[i];
	const struct prove_claim *b = prove_neighbour(p, i, step);
	size_t far = i;

	if ((b && b->state != PROVE_FAILS) ||
	    same(p, c, prove_neighbour(p, i, -step)))
		return false;
	do {
		if (step < 0 ? !far : far + 1 == p->n)
			return false;
		far = step < 0 ? far - 1 : far + 1;
		b = &p->claim[far];
	} while (b->state == PROVE_FAILS);
	return is_one_zone(p, step < 0 ? b : c, step < 0 ? c : b) < 1;
}

/* What one of them was beside does not fall with it, so all are found before
 * the first is dropped. */
void prove_leave_to_gaps(struct prove *p)
{
	for (size_t i = 0; i < p->n; i++)
		p->claim[i].doubted = p->claim[i].state == PROVE_HOLDS &&
			(may_have_more(p, i, 1) || may_have_more(p, i, -1));
	for (size_t i = 0; i < p->n; i++) {
		if (p->claim[i].doubted)
			p->claim[i].state = PROVE_FAILS;
	}
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

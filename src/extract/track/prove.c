/*
 * prove.c - both ends of every track, and what is between them.
 *
 * A track holds when
 *   - the angle leaps at its first unit and behind its last one, by more than
 *     noise can;
 *   - its last unit is as far behind its first as its size says: no leap is
 *     between them;
 *   - it goes round once.
 * A leap may be slipped sectors in the middle of a track instead of its end,
 * but then the track begins or ends within a turn of it, and the last unit of
 * what was taken for a track lies behind the leap there.  That is why a track
 * that does not go round once (slips, spares, the end of a zone) needs
 * neighbours that do, and others of its full size before and after it: it is in
 * the middle of a zone then, and between two ends of tracks there is room for
 * no second one.
 *
 * Angles are differences between readings of about the same time, which the
 * clock is right for.  What is not where it should be is looked at again: once
 * may be a late completion, and it must then be right more often than not.  Of
 * a leap that was wrong once the side is read again that is off the line of its
 * track, or the other one.
 * All that is to be read of many tracks is read in the order in which it comes
 * under the head (spots.h), and so is what is to be read again.
 */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "extract/track/prove_internal.h"

/* A leap is seen from so many tolerances on, and known to so many. */
#define JUMP 2.2
#define SAME_JUMP 1.1
/* Tracks of one size, one after another, that have no slips all alike. */
#define ROW 3u
/* Slipped sectors that hardly show in the angle take no more of it. */
#define SLACK_LITTLE 0.25
/* So many like it on both sides; of those next to one that fails so many are
 * looked at. */
#define AMONG 1u
#define SPREAD 2u
/* Looks at a claim at most. */
#define LOOKS 12u
/* How much more often wrong than right. */
#define REFUTED 3u

double prove_off(double turn, double expected)
{
	double d = turn - expected;

	return isnan(d) ? d : phase_wrap(d);
}

static bool is_inner(unsigned spot)
{
	return spot >= PROVE_INNER && spot < PROVE_LAST;
}

static uint64_t unit_of(const struct prove_claim *c, unsigned spot)
{
	static const double inner[] = { 0.1, 0.36, 0.68, 0.9 };

	switch (spot) {
	case PROVE_BEFORE:
		return c->first - 1;
	case PROVE_FIRST:
		return c->first;
	case PROVE_LAST:
		return c->first + c->size - 1;
	case PROVE_BEHIND:
		return c->first + c->size;
	default:
		return c->first +
		       (uint32_t)(c->size * inner[spot - PROVE_INNER]);
	}
}

/* By how much later units of a track may be: sectors slipped before them. */
static double slack(const struct prove_claim *c)
{
	return (c->nominal - c->size) * c->pitch;
}

/* Is a unit of a track where the first says?  Slipped sectors before it make
 * it later. */
static bool on_line(const struct reader *r, const struct prove_claim *c,
		    double first, uint32_t at, double turn)
{
	double late = prove_off(turn, first + at * c->pitch);

	return late >= -r->tolerance && late <= slack(c) + r->tolerance;
}

/* Slipped sectors that are seen take more than that from a turn. */
bool prove_takes_turn(const struct reader *r, const struct prove_claim *c,
		      uint32_t units)
{
	return units * c->pitch > 1 - JUMP * r->tolerance;
}

bool prove_goes_round(const struct reader *r, const struct prove_claim *c)
{
	return c->size == c->nominal && prove_takes_turn(r, c, c->size);
}

/* The claim that goes on from the one at i, or that it goes on from; NULL:
 * none. */
const struct prove_claim *prove_neighbour(const struct prove *p, size_t i,
					   int step)
{
	const struct prove_claim *a = &p->claim[i], *b = a + step;

	if ((step < 0 && !i) || (step > 0 && i + 1 == p->n))
		return NULL;
	return (step < 0 ? b->first + b->size == a->first :
			   a->first + a->size == b->first) ? b : NULL;
}

/* One that slipped some sectors among them does not part them: looked at by
 * itself it says where they end. */
static bool alone_on(const struct prove *p, size_t i, int step)
{
	const struct prove_claim *c = &p->claim[i], *b;
	unsigned alike = 0, odd = 0;

	while (alike < AMONG) {
		b = prove_neighbour(p, i, step);
		if (!b || b->nominal != c->nominal ||
		    b->state == PROVE_FAILS ||
		    fabs(b->pitch - c->pitch) * c->size > p->reader->tolerance)
			return true;
		if (b->size == c->size)
			alike++;
		else if (odd++)
			return true;
		i = (size_t)(b - p->claim);
	}
	return false;
}

/* Tracks that are not among others of their size are looked at between their
 * ends as well, and more often.  Of the others none could end elsewhere without
 * another being longer than all: one like it on both sides is enough, for what
 * the walk has measured itself, and may have read wrong, is beside a change. */
static bool is_alone(const struct prove *p, size_t i)
{
	return p->claim[i].size != p->claim[i].nominal ||
	       alone_on(p, i, -1) || alone_on(p, i, 1);
}

/* Has enough been seen of a spot?  What is late is late by just the leap that
 * was foretold once in some hundred times: that one wrong look is not made up
 * for makes it twice as likely that what is wrong is believed, no more. */
static bool is_settled(const struct prove_trial *t, unsigned spot)
{
	unsigned wrong = t->wrong[spot];

	return t->right[spot] >= t->need[spot] + (wrong ? wrong - 1 : 0);
}

static bool is_refuted(const struct prove_trial *t, unsigned spot)
{
	return t->wrong[spot] >= t->right[spot] + REFUTED;
}

/* The end of the disk has nothing before it and nothing behind. */
static bool is_there(const struct prove *p, const struct prove_claim *c,
		     unsigned spot)
{
	return spot == PROVE_BEFORE ? c->first > 0 :
	       spot != PROVE_BEHIND || c->first + c->size < p->reader->units;
}

/* Where it should be. */
static double angle_of(const struct prove *p, size_t i, unsigned spot)
{
	const struct prove_claim *c = &p->claim[i];
	double units = (double)unit_of(c, spot) - (double)c->first + 1;

	if (spot == PROVE_BEHIND && prove_neighbour(p, i, 1))
		return angle_of(p, i + 1, PROVE_FIRST);
	if (spot == PROVE_BEFORE && prove_neighbour(p, i, -1))
		return angle_of(p, i - 1, PROVE_LAST);
	return phase_part(c->start + units * c->pitch);
}

/* Lists what may be read of the claim at i, and wants it; `on`: the one before
 * it is listed, and what both have in common. */
static int list_claim(struct prove *p, size_t i, bool on)
{
	struct prove_trial *t = &p->trial[i];
	int err = 0;

	for (unsigned k = 0; k < PROVE_SPOTS && !err; k++) {
		t->at[k] = SIZE_MAX;
		if (!is_there(p, &p->claim[i], k) || !t->need[k])
			continue;
		t->at[k] = p->spots.n;
		if (on && (k == PROVE_BEFORE || k == PROVE_FIRST))
			t->at[k] = t[-1].at[k == PROVE_FIRST ? PROVE_BEHIND :
							       PROVE_LAST];
		else
			err = spots_add(&p->spots, unit_of(&p->claim[i], k),
					angle_of(p, i, k), i);
		if (!err)
			spots_want(&p->spots, t->at[k]);
	}
	return err;
}

/* All that are open. */
static int list_open(struct prove *p)
{
	bool on = false;
	int err = 0;

	p->spots.n = p->spots.from = 0;
	for (size_t i = 0; i < p->n && !err; i++) {
		bool open = p->claim[i].state == PROVE_OPEN;

		if (open)
			err = list_claim(p, i, on && prove_neighbour(p, i, -1));
		on = open;
	}
	return err;
}

/* A look at a spot, or at two of which one is new. */
static void note(struct prove_trial *t, unsigned spot, bool right)
{
	t->off[spot] = !right;
	++*(right ? &t->right[spot] : &t->wrong[spot]);
}

/* Where the track starts, as most of what was read on it says. */
static double frame(const struct prove_claim *c, const struct prove_trial *t)
{
	double v[PROVE_SPOTS], from = NAN;
	unsigned n = 0;

	for (unsigned i = PROVE_FIRST; i <= PROVE_LAST; i++) {
		double turn = t->turn[i] - (double)(unit_of(c, i) - c->first) *
					   c->pitch;
		unsigned k = n;

		if (isnan(turn) || (i > PROVE_FIRST && c->size < c->nominal))
			continue;
		if (isnan(from))
			from = turn;
		turn = prove_off(turn, from);
		for (n++; k && v[k - 1] > turn; k--)
			v[k] = v[k - 1];
		v[k] = turn;
	}
	return n ? from + (v[n / 2] + v[(n - 1) / 2]) / 2 : NAN;
}

/* Has a spot been seen since it was weighed? */
static bool is_new(const struct prove *p, const struct prove_trial *t,
		   unsigned spot)
{
	return t->at[spot] < p->spots.n && !isnan(t->turn[spot]) &&
	       p->spots.v[t->at[spot]].looks > t->looks[spot];
}

/* Is a claim that goes round once followed, that way, by a row of its size? */
static bool begins_row(const struct prove *p, size_t i, int step)
{
	const struct prove_claim *c = &p->claim[i], *b = c;

	for (unsigned n = 0; n < ROW && b; n++) {
		b = prove_neighbour(p, (size_t)(b - p->claim), step);
		if (!b || b->state == PROVE_FAILS || b->size != c->size)
			return false;
	}
	return prove_goes_round(p->reader, c);
}

/*
 * Must the claim at i end where it does, even if no leap shows it?  Rows of two
 * sizes meet there, of tracks that go round once: none is longer than a turn,
 * so neither of the two at the end can have what is the other's.
 */
static bool is_forced(const struct prove *p, size_t i)
{
	return prove_neighbour(p, i, 1) && begins_row(p, i, -1) &&
	       begins_row(p, i + 1, 1);
}

/* A leap: can it be told from none, is it the one that was seen before, and
 * that the walk has seen? */
static void note_leap(const struct prove *p, size_t i,
		      struct prove_trial *t, bool behind, double said)
{
	const struct prove_claim *c = &p->claim[i];
	unsigned lo = behind ? PROVE_LAST : PROVE_BEFORE, hi = lo + 1;
	double leap = prove_off(t->turn[hi], t->turn[lo] + c->pitch);
	double near = SAME_JUMP * p->reader->tolerance;
	double seen = JUMP * p->reader->tolerance;
	bool forced = !(fabs(said) > seen) &&
		      (behind ? is_forced(p, i) : i && is_forced(p, i - 1));
	bool right = (forced || fabs(leap) > seen) &&
		     !(fabs(prove_off(leap, said)) > near) &&
		     !(fabs(prove_off(leap, t->leap[behind])) > near);

	if (isnan(leap) || (!is_new(p, t, lo) && !is_new(p, t, hi)))
		return;
	if (right && isnan(t->leap[behind]))
		t->leap[behind] = leap;
	note(t, behind ? PROVE_BEHIND : PROVE_BEFORE, right);
}

/* As the walk has seen it. */
static double leap_behind(const struct prove *p, size_t i)
{
	const struct prove_claim *c = &p->claim[i];

	return i + 1 < p->n && c[1].first == c->first + c->size ? c[1].leap :
								  NAN;
}

/* What was seen of all spots of the claim at i. */
static void weigh_all(const struct prove *p, size_t i, struct prove_trial *t)
{
	const struct prove_claim *c = &p->claim[i];
	double start = frame(c, t);

	for (unsigned k = PROVE_FIRST; k <= PROVE_LAST; k++) {
		if (is_new(p, t, k))
			note(t, k, on_line(p->reader, c, start,
					   (uint32_t)(unit_of(c, k) - c->first),
					   t->turn[k]));
	}
	if (is_there(p, c, PROVE_BEFORE))
		note_leap(p, i, t, false, c->leap);
	if (is_there(p, c, PROVE_BEHIND))
		note_leap(p, i, t, true, leap_behind(p, i));
}

static void weigh(const struct prove *p, size_t i, struct prove_trial *t)
{
	for (unsigned k = 0; k < PROVE_SPOTS; k++) {
		if (t->at[k] < p->spots.n)
			t->turn[k] = p->spots.v[t->at[k]].turn;
	}
	weigh_all(p, i, t);
	for (unsigned k = 0; k < PROVE_SPOTS; k++) {
		if (t->at[k] < p->spots.n)
			t->looks[k] = p->spots.v[t->at[k]].looks;
	}
	t->weighed++;
}

static bool is_decided(const struct prove *p, const struct prove_claim *c,
		       const struct prove_trial *t, bool *holds)
{
	*holds = true;
	for (unsigned i = 0; i < PROVE_SPOTS; i++) {
		if (!is_there(p, c, i))
			continue;
		*holds = *holds && is_settled(t, i);
		if (is_refuted(t, i)) {
			*holds = false;
			return true;
		}
	}
	return *holds;
}

/* Is a spot between the ends of a track to be read?  A leap there shows in the
 * last unit unless another one makes up for it.  What lies between two leaps is
 * met if it is longer than a third of the track: by two spots no less than by
 * four, which serve where sectors slipped. */
static bool needs_inner(const struct prove *p, size_t i, unsigned spot)
{
	const struct prove_claim *c = &p->claim[i];

	return p->trial[i].alone &&
	       (slack(c) > SLACK_LITTLE * p->reader->tolerance ||
		spot == PROVE_INNER + 1 || spot == PROVE_INNER + 2);
}

static void try_begin(struct prove *p, size_t i)
{
	struct prove_trial *t = &p->trial[i];

	*t = (struct prove_trial){ .alone = is_alone(p, i),
				   .leap = { NAN, NAN } };
	for (unsigned k = 0; k < PROVE_SPOTS; k++)
		t->turn[k] = NAN;
	p->claim[i].among = !t->alone;
	for (unsigned k = 0; k < PROVE_SPOTS; k++)
		t->need[k] = is_inner(k) ? needs_inner(p, i, k) : 1 + t->alone;
	/* A leap that nobody has foretold may be two late completions. */
	t->need[PROVE_BEFORE] += t->alone && isnan(p->claim[i].leap);
	t->need[PROVE_BEHIND] += t->alone && isnan(leap_behind(p, i));
	p->claim[i].seen = true;
}

/* A leap that has to be seen again: both sides, or the one that was late. */
static void want_leap(struct prove *p, const struct prove_trial *t,
		      bool behind)
{
	unsigned on = behind ? PROVE_LAST : PROVE_FIRST;
	unsigned across = behind ? PROVE_BEHIND : PROVE_BEFORE;
	bool one = t->off[across] && t->wrong[across] == 1;

	if (!one || t->off[on])
		spots_want(&p->spots, t->at[on]);
	if (!one || !t->off[on])
		spots_want(&p->spots, t->at[across]);
}

/* What has to be seen again of the claim at i. */
static void want_more(struct prove *p, size_t i)
{
	const struct prove_trial *t = &p->trial[i];

	for (unsigned k = 0; k < PROVE_SPOTS; k++) {
		if (t->at[k] >= p->spots.n || is_settled(t, k))
			continue;
		if (k == PROVE_BEFORE || k == PROVE_BEHIND)
			want_leap(p, t, k == PROVE_BEHIND);
		else
			spots_want(&p->spots, t->at[k]);
	}
}

/* A spot of the claim at i has been seen: is that all? */
static void consider(struct prove *p, size_t i)
{
	struct prove_claim *c = &p->claim[i];
	struct prove_trial *t = &p->trial[i];
	bool holds;

	if (c->state != PROVE_OPEN)
		return;
	for (unsigned k = 0; k < PROVE_SPOTS; k++) {
		if (t->at[k] < p->spots.n && p->spots.v[t->at[k]].wanted)
			return;
	}
	weigh(p, i, t);
	if (is_decided(p, c, t, &holds))
		c->state = holds ? PROVE_HOLDS : PROVE_FAILS;
	else if (t->weighed >= LOOKS)
		c->state = PROVE_FAILS;
	else
		want_more(p, i);
}

/* Does the claim at i have a spot in common with the one before it? */
static bool shares(const struct prove *p, size_t i, size_t spot)
{
	return i < p->n && p->claim[i].state == PROVE_OPEN &&
	       (p->trial[i].at[PROVE_BEFORE] == spot ||
		p->trial[i].at[PROVE_FIRST] == spot);
}

/* Until all are decided. */
static int try_all(struct prove *p)
{
	int err = list_open(p);
	size_t spot, owner;

	while (!err) {
		err = p->tick ? p->tick(p->arg) : 0;
		if (!err)
			err = spots_read(p->reader, &p->spots, &spot);
		if (err || spot == p->spots.n)
			break;
		owner = p->spots.v[spot].owner;
		consider(p, owner);
		if (shares(p, owner + 1, spot))
			consider(p, owner + 1);
	}
	return err;
}

static void try_anew(struct prove *p, size_t i)
{
	try_begin(p, i);
	p->claim[i].state = PROVE_OPEN;
}

/* All that are in a state. */
static int try_those(struct prove *p, enum prove_state state)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->claim[i].state == state)
			try_anew(p, i);
	}
	return try_all(p);
}

/* Opens those next to one at i that were not looked at. */
static bool spread(struct prove *p, size_t i, int step)
{
	bool any = false;

	for (unsigned k = 0; k < SPREAD; k++) {
		if (!prove_neighbour(p, i, step))
			break;
		i = step > 0 ? i + 1 : i - 1;
		if (p->claim[i].seen || p->claim[i].state != PROVE_HOLDS)
			continue;
		try_anew(p, i);
		any = true;
	}
	return any;
}

/* What is next to one that fails is not believed either before it was looked
 * at. */
static bool open_around(struct prove *p)
{
	bool any = false;

	for (size_t i = 0; i < p->n; i++) {
		if (p->claim[i].state != PROVE_FAILS)
			continue;
		any |= spread(p, i, 1);
		any |= spread(p, i, -1);
	}
	return any;
}

/* Those that were thought to be among others of their size when they were
 * looked at, and are not. */
static bool open_lonely(struct prove *p)
{
	bool any = false;

	for (size_t i = 0; i < p->n; i++) {
		const struct prove_claim *c = &p->claim[i];

		if (c->state != PROVE_HOLDS || !c->among || !is_alone(p, i))
			continue;
		try_anew(p, i);
		any = true;
	}
	return any;
}

/* As long as some are opened. */
static int try_while(struct prove *p, bool (*open)(struct prove *p))
{
	int err = 0;

	while (!err && open(p))
		err = try_all(p);
	return err;
}

static enum prove_state state_at(const struct prove *p, uint64_t unit)
{
	for (size_t i = 0; i < p->ranges; i++) {
		if (unit >= p->range[i].first && unit < p->range[i].end)
			return PROVE_OPEN;
	}
	return PROVE_HOLDS;
}

/* ---- The claims ---- */

int prove_add(struct prove *prove, uint64_t first, uint64_t end)
{
	int err = array_grow(&prove->range, &prove->ranges_room, prove->ranges,
			     sizeof(*prove->range));

	if (!err && first < end)
		prove->range[prove->ranges++] =
			(struct prove_range){ first, end };
	return err;
}

static int add_later(struct prove *p, const struct prove_claim *c)
{
	int err = array_grow(&p->later, &p->laters_room, p->laters,
			     sizeof(*p->later));

	if (!err)
		p->later[p->laters++] =
			(struct prove_range){ c->first, c->first + c->size };
	return err;
}

static int add(struct prove *p, const struct store_track *t, uint32_t nominal)
{
	int err = array_grow(&p->claim, &p->room, p->n, sizeof(*p->claim));
	const struct prove_claim *last;
	struct prove_claim c = {
		.first = t->first, .size = t->size, .nominal = nominal,
		.start = t->start, .pitch = t->pitch, .leap = NAN,
		.state = state_at(p, t->first),
	};

	if (!err)
		err = array_grow(&p->trial, &p->trials_room, p->n,
				 sizeof(*p->trial));
	if (err)
		return err;
	last = p->claim + p->n - 1;
	if (p->n && last->first + last->size == t->first &&
	    slack(last) <= SLACK_LITTLE * p->reader->tolerance)
		c.leap = prove_off(t->start, last->start +
					     last->size * last->pitch);
	p->claim[p->n++] = c;
	return 0;
}

static int add_piece(struct prove *p, const struct piece *piece,
		     uint64_t first, uint64_t end)
{
	struct store_track t;
	uint32_t k = 0;
	int err = 0;

	if (piece->tracks && first > piece->first)
		k = store_track_at(p->store, piece, first);
	for (; k < piece->tracks && !err; k++) {
		store_track(p->store, piece, k, &t);
		if (t.first >= end)
			break;
		if (t.first >= first)
			err = add(p, &t, piece->size);
	}
	return err;
}

static int keep_open(struct prove *p)
{
	int err = 0;

	p->ranges = 0;
	for (size_t i = 0; i < p->n && !err; i++) {
		const struct prove_claim *c = &p->claim[i];

		if (c->state == PROVE_OPEN)
			err = c->waits ? add_later(p, c) :
					 prove_add(p, c->first,
						   c->first + c->size);
	}
	return err;
}

/* The tracks of the store in [first, end) are the claims. */
static int claim_all(struct prove *p, uint64_t first, uint64_t end)
{
	const struct store *s = p->store;
	int err = 0;

	p->n = 0;
	for (size_t i = store_find(s, first); i < s->n && !err &&
	     s->pieces[i].first < end; i++)
		err = add_piece(p, &s->pieces[i], first, end);
	return err;
}

int prove_tracks(struct prove *prove, uint64_t first, uint64_t end, bool more)
{
	enum reader_purpose was;
	int err;

	was = reader_set_purpose(prove->reader, READER_PROOF);
	err = claim_all(prove, first, end);
	if (!err)
		err = try_those(prove, PROVE_OPEN);
	/* A second chance: late completions may have been many. */
	if (!err)
		err = try_those(prove, PROVE_FAILS);
	if (!err)
		err = try_while(prove, open_around);
	if (!err)
		err = try_while(prove, open_lonely);
	if (!err)
		prove_judge(prove, more);
	if (!err)
		err = prove_edges(prove, more);
	reader_set_purpose(prove->reader, was);
	return err ? err : keep_open(prove);
}

void prove_fini(struct prove *prove)
{
	free(prove->claim);
	free(prove->trial);
	free(prove->range);
	free(prove->later);
	free(prove->spots.v);
	*prove = (struct prove){ 0 };
}

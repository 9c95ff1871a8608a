/*
 * walk.c - skips over tracks that are as predicted, bisection where not.
 *
 *   skip:     some tracks ahead, both sides of a boundary are read that comes
 *             under the head soon; and on the way those at which what has
 *             happened before them shows but not behind them.
 *   right:    the frontier goes there (go_to).
 *   wrong:    up to the last boundary that was right all is as predicted.  What
 *             lies between that and the first that was wrong is explained by a
 *             hypothesis (slip.h), or halved; a single track that none of them
 *             explains is measured (mispredict).
 *
 * Tracks between two boundaries, both sides of which are where the same row
 * predicts them, are proven, and so are tracks with slips that are bracketed by
 * two such boundaries.  What was measured is not.
 */
#include <math.h>
#include <string.h>

#include "extract/slip.h"
#include "extract/track.h"
#include "extract/walk.h"

/* Of the tolerance, what the angle at the end of a skip may be unsure by. */
#define UNSURE 0.28
/* An angle is seen from two sides. */
#define BOTH_SIDES 0.8
/* A row of so many tracks has told its step, and to how much of the noise. */
#define LONG_ROW 8u
#define STEP_KNOWN 0.16
/* Revolutions: what another row may be off by. */
#define ROW_ANGLE 0.0015
#define ROW_STEP 2e-5
#define ROW_APART 0.0025
/* What all are off by when rows have come again so often; less and less. */
#define STEADY_CYCLES 2.0
#define STEADY_STEP 5e-6
#define STEADY_CROSS 0.0005
/* Tracks that are skipped at first, and behind something that is explained. */
#define SKIP_FIRST 4u
#define SKIP_GROWS 3u
/* Tracks from one mispredict to the next: over how many of them the mean is
 * taken, and what counts at most. */
#define APART_EVENTS 8.0
#define APART_MOST 4000.0
/* Skips of so many tracks are looked into. */
#define INSIDE_LEAST 6u
#define INSIDE_FEW 4u
/* Looks among which the next one is chosen. */
#define WINDOW 16u
/* Mispredicts in a row after which the model is forgotten. */
#define STREAK_MOST 12u
#define SIZES 40u
#define SKIPS 24u
#define GUESS_OFF 4.0
/* Tracks without units, one after another. */
#define GONE_MOST 3u
#define NEAR 1.3
/* Revolutions: steps that are the same. */
#define SAME_STEP 0.012
/* Tracks of one size at most between two that are known, of which the ends can't
 * be seen. */
#define CLOSE_MOST 3u
/* Reads of a place where a zone may have ended. */
#define CLOSELY 5u
/* Standard deviations that two groups of those may be apart. */
#define LEVEL 4.5
/* Revolutions that a whole track may be off one. */
#define ROUND 0.01
/* Tracks of one size, one after another, that make sure that it is full. */
#define SURE 2u
/* The share of a track that slips leave at least. */
#define SHORT_LEAST 0.8
/* Tracks of a cylinder at most. */
#define CYCLE_MOST 64u
/* Skips of fewer tracks are looked at with care: just before them something
 * was not predicted. */
#define CAREFUL 8u
/* Of few tracks all may have slips, the share of their units as a divisor. */
#define FEW 3u
#define FEW_SLIPS 64u
/* Reads of a unit of a measured track at most. */
#define CERTIFY_READS 3u
/* Tracks with slips that are found at once. */
#define SLIPPED_MOST 4u

static struct boundary_view view(const struct walk *w)
{
	return (struct boundary_view){ w->reader, w->ahead, 0, true };
}

static struct line_place place_of(const struct walk *w, unsigned n)
{
	return (struct line_place){ n, w->ahead[n].row };
}

/* Does another row begin with track k, or end with the one before it? */
static bool begins_row(const struct walk *w, unsigned k)
{
	return w->ahead[k].row != w->ahead[k - 1].row;
}

/* ---- The frontier ---- */

/* Past the first n of the tracks ahead, of which the one at `odd` has so many
 * units fewer. */
static int pass(struct walk *w, unsigned n, unsigned odd, uint32_t slips)
{
	int err = 0;

	for (unsigned j = 0; j < n && !err; j++) {
		struct ahead *a = &w->ahead[j];
		uint32_t less = j == odd ? slips : 0;
		struct store_track t = { w->predict.first, a->size - less,
					 phase_part(a->start), 0 };

		err = store_add(w->store, &t, a->size, a->span);
		predict_pass(&w->predict, a, less);
		if (less)
			predict_slipped(&w->predict, less);
		w->slips += less > 0;
		w->last_start = a->start;
		w->predict.first += t.size;
	}
	w->steady += n;
	w->predict.start = phase_part(w->ahead[n].start);
	return err;
}

/* Boundary n was seen at another angle than predicted: what of that is its
 * own, while the rest is noise. */
static double learn(struct walk *w, unsigned n, double off)
{
	struct predict *m = &w->predict;
	double noise = BOTH_SIDES * w->reader->noise, step, cross, share;
	double cycle = predict_cycle(m);
	struct line_place at = place_of(w, n);

	share = line_share(&w->line, at, noise, at);
	line_go(&w->line, at, noise, &step, &cross);
	if (!w->ahead[n].row)
		m->now.step += step * off;
	else
		m->rate += step * off;
	m->cross_rate += cross * off;
	if (w->ahead[n].row && w->steady > STEADY_CYCLES * cycle)
		line_steady(&w->line, ROW_APART, (double)(m->n - m->like),
			    STEADY_STEP * STEADY_CYCLES * cycle / w->steady,
			    STEADY_CROSS * STEADY_CYCLES * cycle / w->steady);
	else if (w->ahead[n].row)
		line_doubt(&w->line, ROW_ANGLE, ROW_STEP, w->reader->noise / 4);
	return share * off;
}

/* Is a unit of a measured track on its line?  Slips before it make it later by
 * `slack` at most.  What is not is read again. */
static int on_line(struct walk *w, uint64_t unit, double expected,
		   double slack, bool *ok)
{
	double near = NEAR * w->reader->tolerance, turn, off;
	int err = 0;

	*ok = false;
	for (unsigned i = 0; i < CERTIFY_READS && !*ok && !err; i++) {
		err = reader_expect(w->reader, unit, expected, &turn);
		off = phase_wrap(turn - expected);
		*ok = off >= -near && off <= slack + near;
	}
	return err;
}

/* Units between the ends of a track are on its line: what lies between two jumps
 * that make up for each other is met if it is longer than a quarter of it. */
static int whole_inside(struct walk *w, uint64_t first, uint32_t size,
			double start, double pitch, double slack, bool *ok)
{
	static const double inner[] = { 0.12, 0.36, 0.64, 0.88 };
	int err = 0;

	*ok = true;
	for (unsigned i = 0; i < 4 && *ok && !err; i++) {
		uint64_t at = (uint64_t)(size * inner[i]);

		err = on_line(w, first + at, start + ((double)at + 1) * pitch,
			      slack, ok);
	}
	return err;
}

/* Are places late by the same, whichever of the first are taken for those of
 * another track? */
static bool are_level(const double *off, unsigned n, double noise)
{
	for (unsigned k = 1; k < n; k++) {
		double a = 0, b = 0;

		for (unsigned i = 0; i < n; i++)
			*(i < k ? &a : &b) += off[i] / (i < k ? k : n - k);
		if (!(fabs(a - b) <= LEVEL * noise *
				     sqrt(1.0 / k + 1.0 / (n - k))))
			return false;
	}
	return true;
}

/* As whole_inside where a zone may have ended: each place is read some times. */
static int whole_closely(struct walk *w, uint64_t first, uint32_t size,
			 double start, double pitch, bool *ok)
{
	static const double inner[] = { 0.02, 0.12, 0.36, 0.64, 0.88, 0.98 };
	unsigned repeat = w->reader->repeat;
	double off[6], turn, expected;
	int err = 0;

	*ok = false;
	if (repeat < CLOSELY)
		reader_sharpen(w->reader, CLOSELY);
	for (unsigned n = 0; n < 2 && !*ok && !err; n++) {
		for (unsigned i = 0; i < 6 && !err; i++) {
			uint64_t at = (uint64_t)(size * inner[i]);

			expected = start + ((double)at + 1) * pitch;
			err = reader_expect(w->reader, first + at, expected,
					    &turn);
			off[i] = phase_wrap(turn - expected);
		}
		*ok = !err && are_level(off, 6, w->reader->noise);
	}
	reader_sharpen(w->reader, repeat);
	return err;
}

/* Is what was measured one track?  Its ends and the first unit behind it are
 * seen once more. */
static int certify(struct walk *w, const struct track *t, uint32_t slips,
		   bool *ok)
{
	double slack = slips * t->pitch;
	uint64_t at = t->first + t->size;
	int err = whole_inside(w, t->first, t->size, t->start, t->pitch, slack,
			       ok);

	if (*ok && !err)
		err = on_line(w, t->first, t->start + t->pitch, 0, ok);
	if (*ok && !err)
		err = on_line(w, at - 1, t->start + t->size * t->pitch, slack,
			      ok);
	if (*ok && !err && at < w->reader->units)
		err = on_line(w, at, t->next + t->pitch, 0, ok);
	return err;
}

/* A measured track becomes known, if it is one.  Where zones meet a short one
 * may be parts of two. */
static int keep(struct walk *w, const struct track *t, uint32_t nominal,
		double span)
{
	struct store_track s = { t->first, t->size, phase_part(t->start), 0 };
	bool ok = t->size >= SHORT_LEAST * nominal;
	int err = ok ? certify(w, t, nominal - t->size, &ok) : 0;

	if (err)
		return err;
	return ok ? store_add(w->store, &s, nominal, span) :
		    store_unknown(w->store, t->first, t->size);
}

static void claim(struct walk *w, const struct track *t, uint32_t nominal)
{
	w->claim = *t;
	w->claim_nominal = nominal;
	w->claim_slips = w->predict.slips;
	w->claim_new = false;
	w->claim_ends = w->predict.expected &&
			w->predict.now.tracks + 1 == w->predict.expected;
}

/* Is a track a whole one, perhaps with spares as others have? */
static bool goes_round(const struct walk *w, double span)
{
	const struct predict *p = &w->predict;

	return fabs(span - 1) <= ROUND ||
	       (p->n && p->past[p->n - 1].sure &&
		fabs(span - p->past[p->n - 1].span) <= ROUND);
}

/* The row of the claim has not gone on.  It may have as many spares as others at
 * their ends, or be where its row should end.  Else, where rows are long, it may be parts of two tracks where
 * zones meet; where they are not, it is known if it goes round once. */
static int claim_alone(struct walk *w)
{
	struct track t = w->claim;
	uint32_t less;

	if (!t.size)
		return 0;
	w->claim.size = 0;
	less = w->claim_nominal - t.size;
	if (less && (w->claim_ends ||
		     less + w->claim_slips == predict_spare(&w->predict)))
		return keep(w, &t, w->claim_nominal, w->predict.now.span);
	if (less || (w->claim_new && predict_is_long(&w->predict)) ||
	    !goes_round(w, t.size * t.pitch))
		return store_unknown(w->store, t.first, t.size);
	return keep(w, &t, t.size, 1);
}

/* It has.  Zones may have met in it all the same. */
static int claim_holds(struct walk *w)
{
	struct track t = w->claim;
	struct store_track s = { t.first, t.size, phase_part(t.start), 0 };
	uint32_t less = w->claim_nominal - t.size;
	bool ok;
	int err;

	if (!t.size)
		return 0;
	w->claim.size = 0;
	/* What was not predicted may be another zone. */
	err = w->claim_new && !less ?
		whole_closely(w, t.first, t.size, t.start, t.pitch, &ok) :
		whole_inside(w, t.first, t.size, t.start, t.pitch,
			     less * t.pitch, &ok);
	if (err)
		return err;
	return ok ? store_add(w->store, &s, w->claim_nominal,
			      w->predict.now.span) :
		    store_unknown(w->store, t.first, t.size);
}

/* To boundary n, which was seen to be late by `off`: all tracks that are passed
 * learn from it.  NAN: it was not seen. */
static int go_to(struct walk *w, unsigned n, double off, unsigned odd,
		 uint32_t slips)
{
	double noise = BOTH_SIDES * w->reader->noise, late = 0;
	int err = w->ahead[0].row ? claim_alone(w) : claim_holds(w);

	if (err)
		return err;
	if (!isnan(off)) {
		for (unsigned k = 0; k < n; k++)
			w->ahead[k].start += off *
				line_share(&w->line, place_of(w, n), noise,
					   place_of(w, k));
		late = learn(w, n, off);
		w->ahead[n].start += late;
	}
	w->predict.first = w->ahead[0].first;
	w->passed = n;
	w->passed_from = w->ahead[0].first;
	w->last[1] = w->ahead[n - 1];
	if (n > 1)
		w->last[0] = w->ahead[n - 2];
	return pass(w, n, odd, slips);
}

/* ---- What can't be predicted ---- */

/* Is a size not even about that which was predicted?  0: it is not known yet. */
static bool is_other(const struct walk *w, uint32_t size)
{
	double cross;
	uint32_t guess = predict_guess(&w->predict, &cross);
	uint32_t off = guess > size ? guess - size : size - guess;

	/* A row that was as long as others has not ended with a zone. */
	if (w->predict.expected &&
	    w->predict.now.tracks == w->predict.expected)
		return false;
	return !guess || (size && off > size / FEW_SLIPS);
}

/* Another row, of tracks of that size, begins at the frontier: are the tracks
 * before it really of the size that was passed?  Where zones meet, others may add up to the same. */
static int check_passed(struct walk *w, uint32_t size)
{
	const struct ahead *a = &w->last[0], *b = &w->last[1];
	bool odd = b->first + b->size != w->predict.first;
	struct boundary_view v = { w->reader, a, 0, true };
	double pitch = b->span / b->size, off[SIDES];
	bool ok = true;
	enum side bad;
	int err = 0;

	if (!w->passed || odd)
		return 0;
	if (w->passed > 1 && boundary_is_visible(&v, 1))
		err = boundary_both(&v, 1, &ok, &bad, off);
	/* What was not predicted may be another zone. */
	if (!err && ok)
		err = is_other(w, size) ?
			whole_closely(w, b->first, b->size, b->start, pitch,
				      &ok) :
			whole_inside(w, b->first, b->size, b->start, pitch, 0,
				     &ok);
	if (!err && !ok)
		err = store_unknown(w->store, w->passed_from,
				    w->predict.first - w->passed_from);
	w->passed = 0;
	return err;
}

/* A row begins at the frontier with a track that has been measured. */
static int row_begin(struct walk *w, const struct track *t, double cross)
{
	double span = t->pitch * t->size;
	struct row row = {
		.tracks = 1,
		.size = t->size,
		.step = phase_part(t->next - t->start),
		.cross = isnan(cross) ? NAN : phase_part(cross),
		.span = fabs(span - 1) < 0.012 ? 1 : span,
	};
	bool known, is_new;
	int err = claim_alone(w);

	if (!err && t->first == w->predict.first)
		err = check_passed(w, t->size);
	w->passed = 0;
	is_new = is_other(w, t->size);
	if (err)
		return err;
	predict_begin(&w->predict, &row);
	w->steady = 0;
	known = row.step != w->predict.now.step && w->predict.expected > LONG_ROW;
	line_begin(&w->line, w->reader->noise,
		   w->reader->noise * (known ? STEP_KNOWN : 1),
		   w->reader->noise);
	w->skip = SKIP_FIRST;
	w->predict.first = t->first + t->size;
	w->predict.start = phase_part(t->next);
	w->last_start = t->start;
	claim(w, t, t->size);
	w->claim_new = is_new;
	return 0;
}

/* A size that is not too far off. */
static uint32_t about(const struct walk *w)
{
	double cross;
	uint32_t size = predict_guess(&w->predict, &cross);

	size = size ? size : w->predict.now.size;
	return size < w->guess / 2 ? w->guess : size;
}

/* Measures a track.  `blind`: nothing that is known of others is any help. */
static int measure_as(struct walk *w, struct track *t, uint64_t first,
		      bool blind)
{
	uint32_t sizes[SIZES];
	unsigned n = w->predict.now.size ? predict_sizes(&w->predict, sizes, SIZES) :
					 0;
	uint32_t guess = blind ? 0 : about(w);
	double around;
	int err;

	*t = (struct track){ .first = first };
	err = track_measure(w->reader, t, guess, sizes, blind ? 0 : n);
	/* What was thought of as a size may have been a short track's. */
	around = t->pitch > 0 ? 1 / t->pitch : 0;
	if (err != TRACK_UNDECIDED || around < guess * 1.25 ||
	    around > guess * GUESS_OFF)
		return err;
	*t = (struct track){ .first = first };
	return track_measure(w->reader, t, (uint32_t)around, NULL, 0);
}

/* Late completions may spoil it once. */
static int measure(struct walk *w, struct track *t, uint64_t first)
{
	int err = measure_as(w, t, first, false);

	return err == TRACK_UNDECIDED ? measure_as(w, t, first, false) : err;
}

/* From a unit to the first track that can be measured behind it. */
static int find_track(struct walk *w, uint64_t unit, struct track *t)
{
	uint64_t at = unit, size = w->predict.now.size ? w->predict.now.size :
				   w->guess ? w->guess : 64;
	uint32_t guess = w->guess;
	bool blind;
	int err = TRACK_UNDECIDED;

	for (unsigned i = 0; err == TRACK_UNDECIDED && i < SKIPS; i++) {
		if (at + size / 8 >= w->limit)
			return TRACK_UNDECIDED;
		blind = i % 3 == 2;
		err = measure_as(w, t, at, blind);
		if (!err && t->first + t->size < w->reader->units)
			err = measure_as(w, t, t->first + t->size, blind);
		/* Other zones have other sizes. */
		if (err && w->guess > 64)
			w->guess = i % 6 == 5 ? guess : w->guess * 7 / 8;
		at += size * 7 / 10 + i / 4 * size;
	}
	return err;
}

/* From a track to the next like it: most rows have the same step. */
static double step_of(const struct walk *w, const struct track *t)
{
	double step = t->next - t->start, now = w->predict.now.step;

	return fabs(phase_wrap(step - now)) < SAME_STEP ? now : step;
}

/* Are k tracks of the present row and then j like `t` what lies between? */
static int are_between(struct walk *w, const struct track *t, unsigned k,
		       unsigned j, bool *ok)
{
	const struct row *now = &w->predict.now;
	double step = step_of(w, t);
	int err = 0;

	*ok = true;
	for (unsigned i = 0; i < k && *ok && !err; i++)
		err = whole_inside(w, w->predict.first +
				   (uint64_t)i * now->size, now->size,
				   w->predict.start + i * now->step,
				   now->span / now->size, 0, ok);
	for (unsigned i = 1; i <= j && *ok && !err; i++)
		err = whole_inside(w, t->first - (uint64_t)i * t->size,
				   t->size, t->start - i * step, t->pitch, 0,
				   ok);
	return err;
}

/* k tracks of the present row and j like `t` lie between. */
static int put_between(struct walk *w, const struct track *t, unsigned k,
		       unsigned j)
{
	const struct row *now = &w->predict.now;
	double step = step_of(w, t);
	int err = 0;

	for (unsigned i = 0; i < k + j && !err; i++) {
		bool old = i < k;
		struct store_track s = {
			.first = old ? w->predict.first +
					       (uint64_t)i * now->size :
				       t->first - (uint64_t)(k + j - i) *
						  t->size,
			.size = old ? now->size : t->size,
			.start = phase_part(old ? w->predict.start +
						  i * now->step :
						  t->start - (k + j - i) *
							     step),
		};

		err = store_add(w->store, &s, s.size, old ? now->span : 1);
	}
	w->predict.now.tracks += k;
	return err;
}

/*
 * Tracks between the frontier and the track `t`, of which no ends can be seen:
 * as many of the size before and of that behind as fill it, if those are on
 * lines and nothing else does.  *cross: from the last of the row to the first
 * of the next, if it is known; *after: tracks of that.
 */
static int close_up(struct walk *w, const struct track *t, double *cross,
		    unsigned *after)
{
	const struct row *now = &w->predict.now;
	uint64_t units = t->first - w->predict.first;
	double step = step_of(w, t);
	bool like = now->size == t->size, ok = false;
	double expected;
	int err = 0;

	*cross = NAN;
	*after = 0;
	if (!now->tracks || !now->sure ||
	    (!like && (!predict_is_long(&w->predict) ||
		       predict_guess(&w->predict, &expected) != t->size)))
		return store_unknown(w->store, w->predict.first, units);
	for (unsigned k = CLOSE_MOST + 1; k-- && !ok && !err;) {
		uint64_t rest = units - (uint64_t)k * now->size;
		unsigned j = (unsigned)(rest / t->size);

		if ((uint64_t)k * now->size > units || rest % t->size ||
		    j > CLOSE_MOST)
			continue;
		err = are_between(w, t, k, j, &ok);
		if (err || !ok)
			continue;
		*cross = t->start - j * step -
			 (k ? w->predict.start + (k - 1) * now->step :
			      w->last_start);
		*after = j;
		return put_between(w, t, k, j);
	}
	return err ? err : store_unknown(w->store, w->predict.first, units);
}

/* Over what can't be decided, beginning at the frontier. */
static int give_up(struct walk *w, uint64_t from)
{
	uint64_t at = w->predict.first, to;
	struct track t;
	unsigned after;
	double cross;
	int err;

	w->skip = SKIP_FIRST;
	err = claim_alone(w);
	if (!err)
		err = check_passed(w, 0);
	if (err)
		return err;
	err = find_track(w, from, &t);
	if (err && err != TRACK_UNDECIDED)
		return err;
	if (err || t.first + t.size > w->limit) {
		/* The rest of the disk, or a stretch of it. */
		to = err ? from + 64 * (uint64_t)(w->predict.now.size + 64) :
			   w->limit;
		w->there = false;
		return store_unknown(w->store, at,
				     (to < w->limit ? to : w->limit) - at);
	}
	err = close_up(w, &t, &cross, &after);
	if (!err)
		err = row_begin(w, &t, cross);
	w->predict.now.tracks += after;
	return err;
}

int walk_begin(struct walk *walk, uint64_t unit, bool on_track)
{
	struct track t;
	int err;

	walk->guess = walk->predict.now.size ? about(walk) : walk->guess;
	walk->event_at = unit;
	if (!(walk->apart > 0))
		walk->apart = APART_MOST;
	predict_break(&walk->predict, unit);
	walk->there = true;
	reader_set_purpose(walk->reader, READER_EVENT);
	if (!on_track)
		return give_up(walk, unit);
	err = measure(walk, &t, unit);
	if (err == TRACK_UNDECIDED)
		return give_up(walk, unit + 64);
	return err ? err : row_begin(walk, &t, 0);
}

/* How many tracks without units explain the angle of what comes next? */
static unsigned missing(const struct walk *w, const struct track *t)
{
	const struct row *now = &w->predict.now;

	if (t->size != now->size || now->tracks < 3 ||
	    (w->predict.expected && now->tracks + 1 >= w->predict.expected))
		return 0;
	for (unsigned i = 1; i <= GONE_MOST; i++) {
		if (fabs(phase_wrap(t->next - t->start - (1 + i) * now->step))
		    <= w->reader->tolerance)
			return i;
	}
	return 0;
}

/* The track at the frontier begins another row, or can't be measured. */
static int another_row(struct walk *w)
{
	struct track t;
	int err = measure(w, &t, w->predict.first);

	if (err == TRACK_UNDECIDED ||
	    (!err && fabs(phase_wrap(t.start - w->predict.start)) >
			     NEAR * w->reader->tolerance))
		return give_up(w, w->predict.first + w->predict.now.size * 3 / 2);
	return err ? err : row_begin(w, &t, t.start - w->last_start);
}

/* Spares lie at the end of a row, but for what slips took of them. */
static void see_spares(struct walk *w, uint32_t less)
{
	struct predict *p = &w->predict;

	if (p->now.tracks >= FEW && (less || !p->slips))
		p->now.less = less ? less + p->slips : 0;
}

/* The row ends behind the track at the frontier, which has been measured. */
static int last_of_row(struct walk *w, const struct track *t)
{
	const struct ahead *a = &w->ahead[0];
	struct row *now = &w->predict.now;
	double cross = t->next - t->start;
	struct track n;
	bool good;
	int err = track_check(w->reader, t, &good);

	if (err)
		return err;
	if (!good || t->size > now->size)
		return another_row(w);
	/* It goes on from the claim, if that is of its row. */
	err = t->size == now->size ? claim_holds(w) : claim_alone(w);
	if (!err)
		err = check_passed(w, 0);
	if (err)
		return err;
	if (t->size == now->size ||
	    t->size + now->less == now->size + w->predict.slips)
		err = keep(w, t, now->size, now->span);
	else if (now->tracks + 1 == w->predict.expected)
		err = keep(w, t, now->size, now->span);
	else
		err = store_unknown(w->store, t->first, t->size);
	predict_pass(&w->predict, a, 0);
	see_spares(w, now->size - t->size);
	w->last_start = t->start;
	w->predict.first = t->first + t->size;
	w->predict.start = phase_part(t->next);
	if (err || w->predict.first >= w->limit)
		return err;
	err = measure(w, &n, w->predict.first);
	if (err == TRACK_UNDECIDED)
		return give_up(w, w->predict.first + now->size * 3 / 2);
	return err ? err : row_begin(w, &n, cross);
}

static void note_event(struct walk *w)
{
	double apart = w->predict.now.size ?
		(double)(w->predict.first - w->event_at) / w->predict.now.size : 0;

	if (w->predict.first > w->event_at)
		w->apart += (fmin(apart, APART_MOST) - w->apart) / APART_EVENTS;
	w->event_at = w->predict.first;
	w->events++;
}

/* Slips right behind the frontier may have been before it: is what lies before
 * it on the track that was passed? */
static int frontier_holds(struct walk *w, bool *ok)
{
	const struct ahead *a = &w->last[1];
	double turn = a->start + a->span;

	*ok = true;
	if (!w->passed || a->first + a->size != w->predict.first)
		return 0;
	return on_line(w, w->predict.first - 1, turn, 0, ok);
}

/* Is a track at the frontier the last of its row, with as many spares as it
 * should have? */
static bool is_end(const struct walk *w, uint32_t size)
{
	const struct row *now = &w->predict.now;

	return now->tracks + 1 == w->predict.expected && now->less &&
	       size + now->less == now->size + w->predict.slips;
}

/* Behind a claim another track of its row has been measured. */
static int claim_next(struct walk *w, const struct track *t)
{
	bool holds = w->predict.now.sure || t->size == w->claim.size;
	int err = holds ? claim_holds(w) : claim_alone(w);

	claim(w, t, w->predict.now.size);
	return err;
}

/* The track at the frontier is of its row, and may have fewer units. */
static int odd(struct walk *w, const struct track *t)
{
	struct row *now = &w->predict.now;
	struct ahead a = w->ahead[0];
	uint32_t slips = now->size - t->size;
	bool again = slips && w->odd_end == t->first && w->odd_size == t->size;
	int err;

	/* Two that lack as many are the first of another row. */
	if (again && now->tracks > 1) {
		now->tracks--;
		w->odd_end = 0;
		err = row_begin(w, t, t->start - w->last_start);
		w->predict.now.tracks++;
		return err;
	}
	w->odd_end = t->first + t->size;
	w->odd_size = t->size;
	if (t->size < SHORT_LEAST * now->size)
		err = store_unknown(w->store, t->first, t->size);
	else if (now->sure &&
		 (t->size == now->size || is_end(w, t->size)))
		err = keep(w, t, now->size, now->span);
	else
		err = claim_next(w, t);
	if (err)
		return err;

	if (now->tracks + 1 == w->predict.expected) {
		see_spares(w, slips);
		a.spares = slips > 0;
		slips = 0;
	}
	w->predict.start = phase_part(t->next);
	if (!w->ahead[1].row && !w->gone_now) {
		double off = phase_wrap(t->next - w->ahead[1].start);

		w->predict.start = phase_part(w->ahead[1].start +
					      learn(w, 1, off));
	}
	predict_pass(&w->predict, &a, slips);
	w->slips += slips > 0;
	w->last_start = t->start;
	w->predict.first = t->first + t->size;
	return err;
}

/* Measures the track at the frontier, which no hypothesis explains, and finds
 * out what comes next. */
static int mispredict(struct walk *w)
{
	const struct ahead *a = w->ahead;
	struct row *now = &w->predict.now;
	struct track t = { a->first, a->start, a->span / a->size, 0, 0 };
	double near = NEAR * w->reader->tolerance, off;
	bool of_row = !a->row && now->tracks, holds;
	unsigned gone;
	int err;

	w->skip = SKIP_FIRST;
	if (w->predict.like < w->predict.n && ++w->streak > STREAK_MOST) {
		predict_forget(&w->predict);
		w->streak = 0;
	}
	w->gone_now = false;
	err = frontier_holds(w, &holds);
	if (err)
		return err;
	/* It was passed by mistake. */
	if (!holds) {
		err = store_unknown(w->store, w->passed_from,
				    a->first - w->passed_from);
		w->passed = 0;
		return err ? err : give_up(w, a->first + now->size / 2);
	}
	if (!of_row)
		return another_row(w);
	err = track_find(w->reader, &t, a->first + a->size);
	if (err == TRACK_UNDECIDED)
		return another_row(w);
	if (err)
		return err;
	off = phase_wrap(t.next - t.start - now->step);
	if (fabs(off) > near) {
		gone = missing(w, &t);
		if (!gone && now->tracks + 1 < FEW && t.size != now->size)
			return row_begin(w, &t, t.start - w->last_start);
		if (!gone)
			return last_of_row(w, &t);
		now->tracks += gone;
		w->gone += gone;
		w->gone_now = true;
	} else if (a[1].row && t.size == a->size && a->spares) {
		/* It ends as predicted, but for an angle. */
		predict_crossed(&w->predict,
				phase_wrap(t.next - a[1].start));
		err = keep(w, &t, now->size, now->span);
		predict_pass(&w->predict, a, 0);
		w->last_start = t.start;
		w->predict.first = t.first + t.size;
		w->predict.start = phase_part(t.next);
		return err;
	} else if (a[1].row) {
		/* A longer row than was thought. */
		predict_overrun(&w->predict);
		predict_ahead(&w->predict, w->ahead, 2);
	}
	if (t.size > now->size && now->tracks < FEW &&
	    t.size - now->size < now->size / FEW_SLIPS)
		predict_resize(&w->predict, t.size);
	if (t.size > now->size)
		return another_row(w);
	if (!now->sure && t.size != now->size &&
	    (!predict_is_long(&w->predict) ||
	     now->size - t.size > now->size / FEW_SLIPS))
		return row_begin(w, &t, t.start - w->last_start);
	return odd(w, &t);
}

/* The present row should have ended at the frontier: has it? */
static int next_row(struct walk *w)
{
	double near = NEAR * w->reader->tolerance;
	struct row *now = &w->predict.now;
	struct track t;
	int err = measure(w, &t, w->predict.first);

	w->skip = SKIP_FIRST;
	if (err == TRACK_UNDECIDED)
		return give_up(w, w->predict.first + now->size * 3 / 2);
	if (err || t.size != now->size || now->less ||
	    fabs(phase_wrap(t.start - w->last_start - now->step)) > near)
		return err ? err : row_begin(w, &t, t.start - w->last_start);
	predict_overrun(&w->predict);
	predict_ahead(&w->predict, w->ahead, 2);
	err = pass(w, 1, 1, 0);
	w->predict.start = phase_part(t.next);
	return err;
}

/* The size of the row that begins at the frontier is only about known. */
static int scaled_row(struct walk *w)
{
	double cross;
	uint32_t size = predict_guess(&w->predict, &cross);
	struct track t = { .first = w->predict.first, .start = w->predict.start };
	int err = TRACK_UNDECIDED;

	w->skip = SKIP_FIRST;
	if (size && !isnan(cross) && t.first + 2 * (uint64_t)size < w->limit) {
		t.pitch = 1.0 / size;
		err = track_find_about(w->reader, &t, t.first + size);
	}
	if (err == TRACK_UNDECIDED)
		return next_row(w);
	return err ? err : row_begin(w, &t, t.start - w->last_start);
}

/* The last row that begins before boundary `to`; 0: none. */
static unsigned last_row(const struct walk *w, unsigned to)
{
	while (to > 1 && !begins_row(w, --to))
		;
	return to && begins_row(w, to) ? to : 0;
}

/* Both sides of the last row that begins before boundary `to`, or of one
 * between.  *bad: the one that is wrong, or 0. */
static int inside_holds(struct walk *w, unsigned to, unsigned *bad)
{
	struct boundary_view v = view(w);
	unsigned at = last_row(w, to);
	double off[SIDES];
	enum side side;
	bool ok;
	int err;

	*bad = 0;
	if (!at && to >= INSIDE_FEW)
		at = boundary_soonest(&v, LOW, to / 4 + 1, to - 2);
	if (!boundary_is_visible(&v, at))
		return 0;
	err = boundary_both(&v, at, &ok, &side, off);
	if (!ok)
		*bad = at;
	return err;
}

/* The same, and both sides of `to` first. */
static int both_hold(struct walk *w, unsigned to, double off[SIDES],
		     unsigned *bad)
{
	struct boundary_view v = view(w);
	enum side side;
	bool ok;
	int err = boundary_both(&v, to, &ok, &side, off);

	*bad = to;
	return err || !ok ? err : inside_holds(w, to, bad);
}

/* ---- Why a boundary is not where it was predicted ---- */

/* Is it certain that the tracks ahead have full sizes?  Of short rows it is when
 * all of a cylinder have come as they were predicted. */
static bool is_sure(const struct walk *w)
{
	double cycle = predict_cycle(&w->predict);

	return w->predict.now.sure &&
	       (predict_is_long(&w->predict) || w->predict.now.tracks >= LONG_ROW
		|| (cycle > 0 && w->steady >= cycle));
}

/* Tracks before a boundary that slips moved. */
struct slipped {
	unsigned n;
	unsigned track[SLIPPED_MOST];
	uint32_t slips[SLIPPED_MOST];
};

/* Which tracks before boundary `at`, which is `shift` units earlier, slipped?
 * Tracks that all lack as many are rather tracks of another size. */
static int find_slipped(struct boundary_view v, unsigned at, uint32_t shift,
			struct slipped *s)
{
	unsigned lo = 0;
	int err = 0;

	s->n = 0;
	while (!err && shift) {
		unsigned *track = &s->track[s->n];
		uint32_t *slips = &s->slips[s->n];

		if (s->n == SLIPPED_MOST || lo >= at)
			return SLIP_NONE;
		err = slip_place(&v, lo, at, shift, track, slips);
		if (err)
			break;
		if (s->n && track[0] == track[-1] + 1 && slips[0] == slips[-1])
			return SLIP_NONE;
		lo = *track + 1;
		shift -= *slips;
		v.shift += *slips;
		s->n++;
	}
	return err;
}

/* Slips in the last track before a boundary are its slips if the track behind
 * it goes on as predicted: else tracks of another size begin there. */
static int goes_on(struct walk *w, unsigned at, uint32_t shift,
		   const struct slipped *s, bool *ok)
{
	struct boundary_view v = { w->reader, w->ahead, shift, true };
	double off[SIDES];
	enum side bad;

	*ok = s->track[s->n - 1] + 1 < at;
	if (*ok || at + 1 > w->known || !boundary_is_visible(&v, at + 1))
		return 0;
	return boundary_both(&v, at + 1, ok, &bad, off);
}

/* Slips between the frontier and boundary `at`: passes all before it. */
static int explain_slips(struct walk *w, unsigned at, bool *done)
{
	struct boundary_view v = view(w);
	struct slipped s;
	unsigned from = 0;
	uint32_t shift;
	int err;

	*done = false;
	if (!is_sure(w))
		return 0;
	err = slip_shift(&v, at, &shift);
	if (!err)
		err = find_slipped(v, at, shift, &s);
	if (!err)
		err = goes_on(w, at, shift, &s, done);
	if (!err && *done && !s.track[0])
		err = frontier_holds(w, done);
	if (err || !*done)
		return err == SLIP_NONE ? 0 : err;
	note_event(w);
	for (unsigned i = 0; i < s.n && !err; i++) {
		unsigned n = s.track[i] + 1 - from;

		err = go_to(w, n, NAN, n - 1, s.slips[i]);
		from += n;
		memmove(w->ahead, w->ahead + n,
			(at + 1 - from) * sizeof(*w->ahead));
		for (unsigned j = 0; j <= at - from; j++)
			w->ahead[j].first -= s.slips[i];
	}
	return err || from == at ? err : go_to(w, at - from, NAN, at, 0);
}

/* Do tracks without units explain an angle? */
static bool is_gone(const struct walk *w, double turn)
{
	for (unsigned i = 1; i <= GONE_MOST; i++) {
		if (fabs(phase_wrap(turn - i * w->predict.now.step)) <=
		    w->reader->tolerance)
			return true;
	}
	return false;
}

/* Are the tracks on both sides of a turn whole, the first and the last of two
 * zones? */
static int turned_whole(struct walk *w, unsigned track, double turn, bool *ok)
{
	const struct ahead *a = &w->ahead[track - 1], *b = a + 1;
	int err = whole_inside(w, a->first, a->size, a->start,
			       a->span / a->size, 0, ok);

	if (!err && *ok && track < w->known)
		err = whole_inside(w, b->first, b->size, b->start + turn,
				   b->span / b->size, 0, ok);
	return err;
}

/* Tracks without units, or rows that follow each other otherwise. */
static int explain_turn(struct walk *w, unsigned at, bool *done)
{
	struct boundary_view v = view(w);
	unsigned track, row, bad = 0;
	double turn;
	bool after;
	int err;

	*done = false;
	if (!is_sure(w))
		return 0;
	err = slip_turn(&v, at, &turn, &after);
	track = at;
	if (!err && !after)
		err = slip_turn_place(&v, 0, at, turn, &track);
	if (!err && after && !begins_row(w, at))
		err = SLIP_NONE;
	if (err || !track)
		return err == SLIP_NONE ? 0 : err;
	if (!begins_row(w, track) && !is_gone(w, turn))
		return 0;
	err = turned_whole(w, track, turn, done);
	if (!err && *done)
		err = inside_holds(w, track, &bad);
	if (err || !*done || bad) {
		*done = false;
		return err;
	}
	note_event(w);
	row = w->ahead[track].row;
	for (unsigned i = track; i <= at; i++)
		w->ahead[i].start += turn;
	w->gone += !begins_row(w, track);
	if (row == w->ahead[0].row + 1 && begins_row(w, track))
		predict_crossed(&w->predict, turn);
	err = go_to(w, at, NAN, at, 0);
	line_begin(&w->line, w->reader->noise, w->reader->noise / 2,
		   w->reader->noise);
	return err;
}

/* Slips that were passed were absorbed by spares before boundary `at`. */
static int explain_absorbed(struct walk *w, unsigned at, bool *done)
{
	struct boundary_view v = view(w);
	uint32_t slips = w->predict.pending;
	double off[SIDES];
	enum side bad;
	int err;

	*done = false;
	if (!slips)
		return 0;
	for (unsigned i = at; i <= at + 1; i++)
		w->ahead[i].first += slips;
	err = boundary_both(&v, at, done, &bad, off);
	for (unsigned i = at; i <= at + 1; i++)
		w->ahead[i].first -= slips;
	if (err || !*done)
		return err;
	note_event(w);
	err = at > 1 ? go_to(w, at - 1, NAN, at, 0) : 0;
	if (!err) {
		struct ahead a = w->ahead[at - 1];

		w->ahead[0] = a;
		w->ahead[1] = w->ahead[at];
		w->ahead[0].size += slips;
		predict_absorbed(&w->predict);
		err = pass(w, 1, 1, 0);
	}
	return err;
}

/* Boundary `at` is not where it was predicted. */
static int explain(struct walk *w, unsigned at)
{
	double off[SIDES];
	unsigned bad;
	bool done;
	int err;

	reader_set_purpose(w->reader, READER_EVENT);
	for (;;) {
		struct boundary_view v = view(w);
		unsigned mid;

		err = explain_absorbed(w, at, &done);
		if (!err && !done)
			err = explain_slips(w, at, &done);
		if (!err && !done)
			err = explain_turn(w, at, &done);
		if (err || done)
			return err;
		mid = at > 1 ? boundary_soonest(&v, LOW, (at + 2) / 3,
						at - 1 - (at - 1) / 4) : 0;
		mid = !mid && at > 1 ? boundary_soonest(&v, LOW, 1, at - 1) :
				       mid;
		if (!mid)
			break;
		err = both_hold(w, mid, off, &bad);
		if (err)
			return err;
		if (bad) {
			at = bad;
			continue;
		}
		err = go_to(w, mid, (off[LOW] + off[HIGH]) / 2, mid, 0);
		if (err)
			return err;
		w->predict.now.sure |= !w->ahead[mid - 1].row &&
				       mid >= SURE;
		at -= mid;
		w->known -= mid;
		predict_ahead(&w->predict, w->ahead, w->known + 1);
	}
	note_event(w);
	return mispredict(w);
}

/* ---- Skips ---- */

/* Can't it be said any more at what angle track n ahead starts? */
static bool unsure(const struct walk *w, unsigned n)
{
	return line_sigma(&w->line, place_of(w, n)) >
	       UNSURE * w->reader->tolerance;
}

static void want(struct walk *w, unsigned at, enum side side)
{
	w->look[w->looks++] = (struct look){ at, side };
}

/* How long is the row that track k is of, as far as can be seen? */
static bool in_long_row(const struct walk *w, unsigned k, unsigned n)
{
	return (!w->ahead[k].row && w->predict.now.tracks >= LONG_ROW) ||
	       (k + LONG_ROW <= n &&
		w->ahead[k + LONG_ROW - 1].row == w->ahead[k].row) ||
	       (k >= LONG_ROW && w->ahead[k - LONG_ROW].row ==
					 w->ahead[k - 1].row);
}

/* From which boundary on both sides of all are looked at for a skip to boundary
 * `to`: tracks of a cylinder that differ may come in another order. */
static unsigned both_from(const struct walk *w, unsigned to)
{
	unsigned cycle = predict_cycle(&w->predict);
	bool differ = false;

	for (unsigned j = 1; j < to; j++)
		differ |= begins_row(w, j) && !w->ahead[j - 1].spares &&
			  w->ahead[j].size != w->ahead[j - 1].size;
	if (!differ || cycle > CYCLE_MOST)
		return to;
	return to > cycle ? to - cycle : 1;
}

/* May spares of track k absorb slips?  It is known to have some, or it is shorter
 * than those beside it. */
static bool may_absorb(const struct walk *w, unsigned k)
{
	const struct ahead *a = &w->ahead[k];

	return a->spares || (a->size < a[-1].size && a->size < a[1].size);
}

/* Is boundary j just before the end of a long row?  Fewer tracks than predicted,
 * and slips, may make up for each other at the end itself. */
static bool near_end(const struct walk *w, unsigned j, unsigned to)
{
	return j + 2 <= to && begins_row(w, j + 2) && !begins_row(w, j + 1) &&
	       predict_is_long(&w->predict);
}

/* What has to be looked at for a skip to boundary `to`: where spares absorb
 * slips, the boundary before them; where long rows begin, both sides, and where
 * the last short one does; and all of a cylinder in which there were slips. */
static void list_looks(struct walk *w, unsigned to, unsigned n)
{
	struct boundary_view v = view(w);
	bool any = false;
	unsigned both = both_from(w, to), last = last_row(w, to);
	unsigned care = (w->predict.slips || w->predict.pending_left) &&
			!predict_is_long(&w->predict) ?
			predict_cycle(&w->predict) + 1 : 0;

	w->looks = 0;
	for (unsigned j = 1; j < to; j++) {
		bool begins = !is_sure(w) || j == last || j >= both ||
			      j <= care || near_end(w, j, to) ||
			      (begins_row(w, j) && in_long_row(w, j, n));

		if (!boundary_is_visible(&v, j) ||
		    (!w->predict.hidden && !begins && !may_absorb(w, j)))
			continue;
		any = true;
		want(w, j, LOW);
		if (begins || w->predict.pending_left)
			want(w, j, HIGH);
	}
	if (!any && to >= INSIDE_LEAST) {
		unsigned j = boundary_soonest(&v, LOW, to / 4, to - 1);

		if (j) {
			want(w, j, LOW);
			want(w, j, HIGH);
		}
	}
	want(w, to, LOW);
	want(w, to, HIGH);
}

/* Of the next ones the one that can be read soonest. */
static unsigned next_look(const struct walk *w, const struct boundary_view *v)
{
	double best_ns = INFINITY;
	unsigned best = 0;

	for (unsigned i = 0; i < w->looks && i < WINDOW; i++) {
		double ns = reader_effort(w->reader,
					  boundary_unit(v, w->look[i]),
					  boundary_angle(v, w->look[i]));

		if (ns < best_ns) {
			best_ns = ns;
			best = i;
		}
	}
	return best;
}

/* Looks at all that is listed.  *bad: the first boundary that is wrong, or 0;
 * *good: the last one before it that is right. */
static int look_at_all(struct walk *w, unsigned to, unsigned *bad,
		       unsigned *good)
{
	struct boundary_view v = view(w);
	bool ok;
	int err = 0;

	v.careful = to < CAREFUL;
	*bad = *good = 0;
	memset(w->right, 0, (to + 1) * sizeof(*w->right));
	while (w->looks && !err) {
		unsigned i = next_look(w, &v);
		struct look look = w->look[i];
		double off;

		memmove(w->look + i, w->look + i + 1,
			(w->looks - i - 1) * sizeof(*w->look));
		w->looks--;
		reader_set_purpose(w->reader, look.at == to ? READER_LEAP :
							      READER_INSIDE);
		err = boundary_side(&v, look, &ok, &off);
		if (look.at == to)
			w->off[look.side] = off;
		if (err)
			break;
		w->right[look.at] |= ok && look.side == LOW;
		if (ok)
			continue;
		*bad = look.at;
		while (w->looks && w->look[w->looks - 1].at >= *bad)
			w->looks--;
	}
	for (unsigned j = 1; j < *bad; j++)
		*good = w->right[j] ? j : *good;
	return err;
}

/* All before boundary *good seems to be right, *bad is not: goes there if that
 * is so.  Else *bad is nearer. */
static int go_to_good(struct walk *w, unsigned *good, unsigned *bad)
{
	double off[SIDES];
	unsigned at;
	int err = both_hold(w, *good, off, &at);

	if (err || at) {
		*bad = at ? at : *bad;
		return err;
	}
	err = go_to(w, *good, NAN, *good, 0);
	*bad -= *good;
	w->known -= *good;
	predict_ahead(&w->predict, w->ahead, w->known + 1);
	return err;
}

/* Looks at `to` and what is before it. */
static int skip_to(struct walk *w, unsigned to, unsigned n)
{
	unsigned bad, good;
	int err;

	list_looks(w, to, n);
	w->leaps++;
	err = look_at_all(w, to, &bad, &good);
	if (err)
		return err;
	if (!bad) {
		err = go_to(w, to, (w->off[LOW] + w->off[HIGH]) / 2, to, 0);
		w->predict.now.sure |= !w->ahead[to - 1].row && to >= SURE;
		w->streak = 0;
		w->skip = (unsigned)fmin(w->skip * SKIP_GROWS,
				fmin(w->skip_max, SKIP_FIRST + w->apart));
		return err;
	}
	if (good) {
		err = go_to_good(w, &good, &bad);
		if (err)
			return err;
	}
	return err ? err : explain(w, bad);
}

/* Is one of the tracks ahead only a part of a track?  What has not come often
 * is not believed then. */
static bool has_part(const struct walk *w, unsigned to)
{
	for (unsigned j = 0; j < to; j++) {
		if (w->ahead[j].part)
			return true;
	}
	return false;
}

int walk_step(struct walk *walk)
{
	struct walk *w = walk;
	unsigned most = 2 * w->skip + 16, n, to, all;
	struct boundary_view v = view(w);
	double cross;
	bool over;

	reader_set_purpose(w->reader, READER_LEAP);
	n = predict_ahead(&w->predict, w->ahead,
			most < PREDICT_AHEAD ? most : PREDICT_AHEAD);
	predict_guess(&w->predict, &cross);
	all = n;
	over = !n;
	while (n && w->ahead[n - 1].first + w->ahead[n - 1].size >= w->limit)
		n--;
	if (over) {
		reader_set_purpose(w->reader, READER_EVENT);
		note_event(w);
		return scaled_row(w);
	}
	/* Where the row behind them begins is not known. */
	if (n && isnan(cross) && w->predict.expected && n == all)
		n--;
	w->known = n;
	most = w->skip < n ? w->skip : n;
	while (most > SKIP_FIRST && unsure(w, most))
		most -= most / 8 + 1;
	/* The size of what comes behind the last one may not be known. */
	if (most && most == n && !boundary_is_visible(&v, n))
		most = n - 1;
	to = most ? boundary_soonest(&v, LOW, most - most / 4, most) : 0;
	if (!to || has_part(w, to)) {
		reader_set_purpose(w->reader, READER_EVENT);
		note_event(w);
		return mispredict(w);
	}
	return skip_to(w, to, n);
}

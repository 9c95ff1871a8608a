/*
 * predict.c - rows that come again.
 *
 * The present row corresponds to the past one for which most rows before the
 * two match as well.  Rows of one zone match when their sizes are equal, rows
 * of different zones when their sizes relative to the zone's scale are.  The
 * scale of a new zone follows from its first row, which is expected to be the
 * one that would have come anyway; if the second does not fit that, any other
 * past row may be the first one's counterpart.
 */
#include <math.h>
#include <string.h>

#include "extract/predict.h"
#include "extract/phase.h"

/* Revolutions: steps, and angles between rows, that count as the same. */
#define SAME_STEP 0.012
#define SAME_CROSS 0.02
/* Sizes in two zones change by one factor, but for rounding (units) and this
 * share. */
#define SCALE_UNITS 2.0
#define SCALE_SHARE 0.0015
/* Sizes of two zones that meet differ by no more than this factor. */
#define ZONE_MOST 1.3
/* Rows before two that are compared; so many matches make a counterpart. */
#define COMPARED 64u
#define MATCHES 2u
#define EQUAL 3u
#define MATCHES_NEW 5u
/* Rows that vote on how many tracks a row has. */
#define VOTERS 16u
/* Rows of so many tracks differ in length only where a zone ends. */
#define LONG_ROW 8u
/* Tracks of a cylinder at most, as far as hidden spares are concerned. */
#define CYLINDER_MOST 64u
/* Revolutions of a track that is not only a part of one. */
#define WHOLE 0.95
#define PART_SEEN 3u
/* Times that tracks of different sizes must have followed each other to be those
 * of a cylinder. */
#define UNEVEN_SEEN 8u

static bool near(double a, double b, double tolerance)
{
	return fabs(phase_wrap(a - b)) <= tolerance;
}

/* The past row i, or the present one. */
static const struct row *at(const struct predict *m, size_t i)
{
	return i < m->n ? &m->past[i] : &m->now;
}

/* Is size a in a zone of scale sa what b is in one of scale sb? */
static bool is_scaled(double a, double sa, double b, double sb)
{
	double expected = b * sa / sb;

	return fabs(a - expected) <= SCALE_UNITS + SCALE_SHARE * expected;
}

/* Do rows correspond, the first of which is in a zone of that scale? */
static bool matches(const struct row *a, double scale, const struct row *b)
{
	if (a->size != b->size &&
	    (a->zone == b->zone ||
	     !is_scaled(a->size, scale, b->size, b->scale)))
		return false;
	if (!isnan(a->cross) && !isnan(b->cross) && a->cross != 0 &&
	    !near(a->cross, b->cross, SAME_CROSS))
		return false;
	if (a->tracks != b->tracks && (a->tracks < LONG_ROW) !=
				      (b->tracks < LONG_ROW))
		return false;
	return a->tracks < 3 || b->tracks < 3 ||
	       near(a->step, b->step, SAME_STEP);
}

/* The present row need not be over: only what it is by now is compared. */
static bool begins_as(const struct row *now, double scale,
		      const struct row *b)
{
	struct row a = *now;

	a.tracks = b->tracks;
	a.step = b->step;
	return matches(&a, scale, b);
}

/* Is it what was predicted?  Where a zone ends rows follow each other by other
 * angles. */
static bool follows(const struct row *now, const struct row *b)
{
	struct row a = *now;

	a.cross = NAN;
	return begins_as(&a, a.scale, b);
}

/* How many rows, the present one and those before it, match those up to i?
 * `scale`: of the present zone, of which all rows must match. */
static size_t score(const struct predict *m, size_t i, double scale)
{
	size_t k = 1;

	if (!begins_as(&m->now, scale, &m->past[i]))
		return 0;
	for (; k <= i && k < COMPARED; k++) {
		const struct row *a = &m->past[m->n - k];
		bool present = a->zone == m->now.zone;

		if (matches(a, present ? scale : a->scale, &m->past[i - k]))
			continue;
		return present && a->zone != m->past[i - k].zone &&
		       m->past[m->n - k].tracks >= LONG_ROW ? 0 : k;
	}
	return k;
}

/* The counterpart of the present row, taken to be in the zone of the row
 * before it. */
static size_t find_in_zone(const struct predict *m, size_t *most)
{
	size_t best = m->n;

	*most = 0;
	for (size_t i = m->n; i-- && i + COMPARED * 2 > m->n;) {
		size_t s = score(m, i, m->now.scale);

		if (s > *most) {
			*most = s;
			best = i;
		}
	}
	return best;
}

static double scale_by(const struct predict *m, size_t i)
{
	return m->past[i].scale * m->now.size / m->past[i].size;
}

static bool is_zone_change(const struct predict *m, size_t i)
{
	double by = (double)m->now.size / m->past[i].size;

	return by < ZONE_MOST && by > 1 / ZONE_MOST;
}

/* Likewise when the present row is the first of a new zone: what came before
 * must match, all the more if no row was predicted, and that row's size says
 * the scale. */
static size_t find_new_zone(struct predict *m, bool foreseen)
{
	size_t best = m->n, most = foreseen ? 1 : MATCHES_NEW - 1;

	m->now.zone++;
	for (size_t i = m->n; i-- > 1 && i + COMPARED * 2 > m->n;) {
		size_t s = is_zone_change(m, i) ? score(m, i, scale_by(m, i)) :
						  0;

		if (s > most) {
			most = s;
			best = i;
		}
	}
	if (best == m->n)
		m->now.zone--;
	return best;
}

/* Likewise when the scale of the present zone, of which there are few rows, is
 * not what was thought. */
static size_t find_scale(const struct predict *m)
{
	size_t rows = 0;

	while (rows < m->n && m->past[m->n - 1 - rows].zone == m->now.zone)
		rows++;
	if (!rows || m->past[m->n - rows].zone == m->past[0].zone)
		return m->n;
	for (size_t i = m->n - rows; i-- > rows;) {
		if (is_zone_change(m, i) && m->past[i].zone != m->now.zone &&
		    score(m, i, scale_by(m, i)) > rows)
			return i;
	}
	return m->n;
}

/* The counterpart by sizes that are equal, whatever zones were thought to be
 * between: all rows since are of one. */
static size_t find_equal(struct predict *m)
{
	size_t best = m->n, most = EQUAL - 1;

	for (size_t i = m->n; i-- && i + COMPARED * 2 > m->n;) {
		size_t k = 0;

		while (k <= i && k < COMPARED &&
		       at(m, m->n - k)->size == m->past[i - k].size &&
		       (k ? matches(at(m, m->n - k), 1, &m->past[i - k]) :
			    begins_as(&m->now, 1, &m->past[i])))
			k++;
		if (k > most) {
			most = k;
			best = i;
		}
	}
	for (size_t i = best; i < m->n; i++) {
		m->past[i].zone = m->now.zone;
		m->past[i].scale = m->now.scale;
	}
	return best;
}

static void set_scale(struct predict *m, double scale)
{
	m->now.scale = scale;
	for (size_t i = m->n; i-- && m->past[i].zone == m->now.zone;)
		m->past[i].scale = scale;
}

/* Finds the row that the present one corresponds to.  `next`: the one that was
 * expected; n: none. */
static void find_like(struct predict *m, size_t next)
{
	size_t most = 0, like = find_equal(m), equal = like;

	if (like == m->n)
		like = find_in_zone(m, &most);
	m->like = m->n;
	if (like < m->n && (equal < m->n || most >= MATCHES || like == next)) {
		m->like = like;
	} else if (next < m->n && follows(&m->now, &m->past[next])) {
		m->like = next;
	} else {
		like = find_scale(m);
		if (like < m->n) {
			set_scale(m, scale_by(m, like));
			m->like = like;
		} else {
			like = find_new_zone(m, next < m->n);
			if (like < m->n) {
				m->now.scale = scale_by(m, like);
				m->like = like;
			}
			if (like < m->n)
				m->cut = 0;
		}
	}
	m->now.was = 0;
	if (m->like < m->n)
		m->now.was = m->past[m->like].zone == m->now.zone ?
			     m->past[m->like].was : m->past[m->like].size;
}

/* How many tracks most of the last rows have. */
static uint32_t usual_count(const struct predict *m)
{
	size_t from = m->n > VOTERS ? m->n - VOTERS : 0;
	uint32_t count = 0;
	unsigned most = 1;

	for (size_t i = m->n; i-- > from;) {
		unsigned same = 0;

		for (size_t k = from; k < m->n; k++)
			same += m->past[k].whole &&
				m->past[k].whole == m->past[i].whole;
		if (same > most) {
			most = same;
			count = m->past[i].whole;
		}
	}
	return count;
}

/* How many units the last tracks of most of the last long rows have fewer. */
static uint32_t usual_less(const struct predict *m)
{
	size_t from = m->n > VOTERS ? m->n - VOTERS : 0;
	unsigned most = 1, rows = 0;
	uint32_t less = 0;

	for (size_t i = m->n; i-- > from;) {
		unsigned same = 0;

		rows += m->past[i].tracks >= LONG_ROW;
		for (size_t k = from; k < m->n; k++)
			same += m->past[k].tracks >= LONG_ROW &&
				m->past[k].less == m->past[i].less;
		if (same > most) {
			most = same;
			less = m->past[i].less;
		}
	}
	return 2 * most > rows ? less : 0;
}

static uint32_t count_of(const struct predict *m, const struct row *row)
{
	uint32_t whole = row->whole ? row->whole : usual_count(m);

	return m->cut && m->cut < whole ? m->cut : whole;
}

/* The row that row q from now corresponds to, q at least 1. */
static size_t source(const struct predict *m, size_t q)
{
	return m->like + (q - 1) % (m->n - m->like) + 1;
}

/* What a size of the zone before is in the present one; 0: not known. */
static uint32_t size_now(const struct predict *m, uint32_t was)
{
	for (size_t i = m->n + 1; i-- && at(m, i)->zone == m->now.zone;) {
		if (at(m, i)->was == was)
			return at(m, i)->size;
	}
	return 0;
}

/* Has a row come often enough for its size?  Slips may have left a part of a
 * track once, or twice. */
static bool is_seen(const struct row *row)
{
	return row->span > WHOLE || row->seen >= PART_SEEN;
}

/* Row q from now as it is predicted; its size is 0 when only about known. */
static struct row row_at(const struct predict *m, size_t q)
{
	size_t i = source(m, q);
	struct row row = *at(m, i);

	row.tracks = i == m->n && m->expected ? m->expected :
						count_of(m, &row);
	row.sure |= row.zone == m->now.zone && is_seen(&row);
	if (row.tracks >= LONG_ROW)
		row.less = usual_less(m);
	if (row.zone != m->now.zone) {
		row.was = row.size;
		row.size = size_now(m, row.size);
		row.zone = m->now.zone;
		row.scale = m->now.scale;
	}
	if (isnan(row.cross))
		row.cross = row.step;
	return row;
}

static bool foresees(const struct predict *m)
{
	return m->like < m->n;
}

/* The last track of a row, whose spares slips may have taken. */
static void set_end(const struct row *row, bool last, uint32_t slips,
		    struct ahead *a)
{
	if (last && row->less) {
		a->size -= row->less - (slips < row->less ? slips : row->less);
		a->spares = true;
	}
	a->span = row->span * a->size / row->size;
}

unsigned predict_ahead(const struct predict *predict, struct ahead *ahead,
		     unsigned max)
{
	struct row row = predict->now;
	uint32_t slips = predict->slips;
	uint32_t left = !predict->expected ? UINT32_MAX :
			predict->expected > row.tracks ?
			predict->expected - row.tracks : 0;
	struct ahead a = { .first = predict->first, .start = predict->start };
	unsigned n = 0;

	if (!left && foresees(predict)) {
		row = row_at(predict, 1);
		left = row.tracks ? row.tracks : UINT32_MAX;
		a.row = 1;
	}
	while (n < max && left && row.size) {
		struct row next;

		a.size = row.size;
		a.part = row.span < WHOLE && !row.sure;
		a.spares = false;
		set_end(&row, left == 1, slips, &a);
		if (a.spares)
			slips = 0;
		ahead[n++] = a;
		a.first += a.size;
		if (--left || !foresees(predict)) {
			a.start = phase_part(a.start + row.step + predict->rate);
			continue;
		}
		next = row_at(predict, ++a.row);
		a.start = phase_part(a.start + next.cross +
				     predict->cross_rate);
		row = next;
		left = row.tracks ? row.tracks : UINT32_MAX;
	}
	a.size = row.size ? row.size : 1;
	a.span = row.span;
	a.spares = false;
	ahead[n] = a;
	return n;
}

uint32_t predict_guess(const struct predict *predict, double *cross)
{
	struct row row;
	const struct row *src;

	*cross = NAN;
	if (!foresees(predict))
		return 0;
	row = row_at(predict, 1);
	*cross = row.cross;
	if (row.size)
		return row.size;
	src = at(predict, source(predict, 1));
	return (uint32_t)(src->size * predict->now.scale / src->scale + 0.5);
}

static void push(struct predict *m)
{
	if (m->n == PREDICT_ROWS) {
		m->n = PREDICT_ROWS / 2;
		memmove(m->past, m->past + PREDICT_ROWS - m->n,
			m->n * sizeof(*m->past));
	}
	m->past[m->n++] = m->now;
}

/* The present row has ended; `known`: it is known where. */
static void see_end(struct predict *m, bool known)
{
	struct row *now = &m->now;

	if (!known) {
		now->whole = 0;
		m->cut = 0;
	} else if (!m->ragged && (!m->cut || now->tracks > m->cut)) {
		now->whole = now->tracks;
	}
}

/* The row before the present one ended early.  If the present one is that which
 * was predicted, a zone ends, and so do the rows to come. */
static void see_cut(struct predict *m, uint32_t expected, bool predicted)
{
	struct row *last = &m->past[m->n - 1];

	if (expected <= last->tracks)
		return;
	if (predicted && m->now.zone == last->zone) {
		last->whole = m->cut ? m->cut < last->tracks ? expected :
					       last->whole : expected;
		m->cut = last->tracks;
	} else {
		last->whole = 0;
	}
}

/*
 * Where each cylinder may have spares, slips in it do not show behind it.  Long
 * rows have them at their ends, if at all; so have rows of a cylinder each, of
 * which the last track is seen to be short.  Of cylinders whose tracks differ
 * any track may have some; or of those that are alike, if others differ.
 */
static void set_spares(struct predict *m)
{
	bool differ = false;

	for (size_t i = foresees(m) ? m->like + 1 : m->n; i < m->n; i++)
		differ |= m->past[i].size != m->now.size || m->past[i].less;
	m->hidden = !predict_is_long(m) &&
		    !(m->now.less && foresees(m) && m->like + 1 == m->n);
	m->uneven |= m->hidden && differ && m->now.seen >= UNEVEN_SEEN &&
		     predict_cycle(m) <= CYLINDER_MOST;
	m->hidden |= m->uneven && !m->now.less &&
		     (!m->expected || m->expected <= CYLINDER_MOST);
}

/* A step that was measured once is the same as that of the counterpart, or of a
 * long row passed lately, if it is near it. */
static double known_step(const struct predict *m)
{
	double step = m->now.step;
	const struct row *old = foresees(m) ? &m->past[m->like] : NULL;

	if (old && old->tracks > 1 && old->zone == m->now.zone &&
	    near(old->step, step, SAME_STEP))
		return old->step;
	for (size_t i = m->n; i-- && i + COMPARED > m->n;) {
		old = &m->past[i];
		if (old->tracks >= LONG_ROW && near(old->step, step, SAME_STEP))
			return old->step;
	}
	return step;
}

/* What is known of the present row from its counterpart or those around it. */
static void take_over(struct predict *m)
{
	const struct row *old;

	m->expected = foresees(m) ? count_of(m, &m->past[m->like]) :
		      m->cut ? m->cut : usual_count(m);
	if (m->expected == 1 && !foresees(m))
		m->expected = 0;
	m->now.whole = usual_count(m);
	m->now.less = 0;
	if (!m->n)
		return;
	old = &m->past[foresees(m) ? m->like : m->n - 1];
	m->now.less = old->tracks >= LONG_ROW ? usual_less(m) :
		      foresees(m) ? old->less : 0;
	m->now.step = known_step(m);
	if (!foresees(m))
		return;
	m->now.whole = old->whole;
	m->now.seen = old->zone == m->now.zone ? old->seen + 1 : 0;
	m->now.sure = m->now.seen && m->like == m->next && is_seen(&m->now);
	if (isnan(m->now.cross))
		m->now.cross = old->cross;
}

void predict_begin(struct predict *predict, const struct row *row)
{
	struct predict *m = predict;
	uint32_t zone = m->now.zone, expected = m->expected;
	size_t next = foresees(m) ? source(m, 1) : PREDICT_ROWS + 1, n = m->n;
	double scale = m->now.scale > 0 ? m->now.scale : 1;
	bool pushed = m->now.tracks;

	if (pushed) {
		see_end(m, !isnan(row->cross));
		push(m);
		if (m->n <= n)
			next = next > n + 1 - m->n ? next - (n + 1 - m->n) :
						     PREDICT_ROWS + 1;
	}
	next = next < m->n ? next : m->n;
	m->now = *row;
	m->now.zone = zone;
	m->now.scale = scale;
	m->rate = m->cross_rate = 0;
	m->slips = 0;
	m->next = next;
	m->ragged = isnan(row->cross);
	/* What was not predicted may be what absorbed slips. */
	m->pending = m->pending_left = 0;
	find_like(m, next);
	if (pushed && !isnan(row->cross))
		see_cut(m, expected, next < m->n && m->like == next);
	take_over(m);
	set_spares(m);
}

void predict_resize(struct predict *predict, uint32_t size)
{
	struct predict *m = predict;
	uint32_t zone = m->n ? m->past[m->n - 1].zone : m->now.zone;

	m->now.size = size;
	m->now.zone = zone;
	m->now.scale = m->n ? m->past[m->n - 1].scale : 1;
	find_like(m, m->next);
	take_over(m);
	set_spares(m);
}

/* Odd tracks come again after as many tracks: those are rows, of which the
 * last track has spares. */
static void fold(struct predict *m, uint32_t apart, uint32_t less)
{
	struct row row = m->now;

	row.tracks = row.whole = apart;
	row.less = less;
	row.cross = row.step;
	row.sure = true;
	m->now = row;
	push(m);
	push(m);
	m->now.tracks = 0;
	m->like = m->n - 1;
	m->expected = apart;
	m->hidden = false;
	m->slips = 0;
	m->cut = 0;
	m->odds = 0;
}

/* Are all tracks of one size, so many tracks back? */
static bool is_even(const struct predict *m, uint64_t tracks)
{
	uint64_t n = m->now.tracks;

	for (size_t i = m->n; i-- && n < tracks; n += m->past[i].tracks) {
		if (m->past[i].size != m->now.size)
			return false;
	}
	return !m->now.less;
}

static void see_odd(struct predict *m, uint32_t slips)
{
	struct predict_odd *odd = m->odd;
	uint64_t apart;

	if (m->odds == PREDICT_ODDS) {
		memmove(odd, odd + 1, (PREDICT_ODDS - 1) * sizeof(*odd));
		m->odds--;
	}
	odd[m->odds++] = (struct predict_odd){ m->passed, slips };
	if (m->odds < PREDICT_ODDS)
		return;
	apart = odd[1].track - odd[0].track;
	for (unsigned i = 1; i < PREDICT_ODDS; i++) {
		if (odd[i].slips != slips || odd[0].slips != slips ||
		    odd[i].track - odd[i - 1].track != apart)
			return;
	}
	if (apart > 1 && apart <= CYLINDER_MOST &&
	    is_even(m, (PREDICT_ODDS - 1) * apart))
		fold(m, (uint32_t)apart, slips);
}

void predict_pass(struct predict *predict, const struct ahead *track, uint32_t slips)
{
	struct predict *m = predict;

	if (m->expected && m->now.tracks >= m->expected && foresees(m)) {
		struct row next = row_at(m, 1);
		size_t like = source(m, 1);

		see_end(m, true);
		if (m->n == PREDICT_ROWS)
			like -= PREDICT_ROWS / 2;
		push(m);
		m->expected = next.tracks;
		next.tracks = 0;
		next.whole = m->past[like].whole;
		next.seen++;
		m->now = next;
		m->ragged = false;
		m->like = like;
		m->slips = 0;
			if (m->like >= m->n)
			m->like = m->n - 1;
		set_spares(m);
	}
	m->now.tracks++;
	m->slips = track->spares ? 0 : m->slips + slips;
	if (m->pending_left && !--m->pending_left)
		m->pending = 0;
	if (m->now.tracks == LONG_ROW)
		set_spares(m);
	m->passed++;
	if (slips)
		see_odd(m, slips);
}

void predict_overrun(struct predict *predict)
{
	predict->expected = 0;
	predict->cut = 0;
	predict->like = predict->n;
	predict->now.less = 0;
	predict->pending = predict->pending_left = 0;
}

uint32_t predict_spare(const struct predict *predict)
{
	return usual_less(predict);
}

bool predict_is_long(const struct predict *predict)
{
	const struct predict *m = predict;

	return m->expected >= LONG_ROW || m->now.tracks >= LONG_ROW ||
	       (m->n && m->past[m->n - 1].tracks >= LONG_ROW) ||
	       usual_count(m) >= LONG_ROW;
}

void predict_crossed(struct predict *predict, double by)
{
	struct predict *m = predict;
	size_t i;

	if (!foresees(m))
		return;
	i = source(m, 1);
	if (i == m->n)
		m->now.cross = phase_part(m->now.cross + by);
	else
		m->past[i].cross = phase_part(m->past[i].cross + by);
}

void predict_break(struct predict *predict, uint64_t unit)
{
	struct predict *m = predict;

	if (m->now.tracks) {
		see_end(m, false);
		push(m);
	}
	m->now.tracks = 0;
	m->like = m->n;
	m->expected = m->cut = 0;
	m->pending = m->pending_left = 0;
	m->slips = 0;
	m->first = unit;
}

void predict_forget(struct predict *predict)
{
	predict->n = 0;
	predict->like = 0;
	predict->expected = predict->cut = 0;
	predict->rate = predict->cross_rate = 0;
	predict->slips = 0;
	predict->hidden = false;
	predict->pending = 0;
}

unsigned predict_cycle(const struct predict *predict)
{
	unsigned tracks = 0;

	if (!foresees(predict))
		return 0;
	for (size_t q = 1; q <= predict->n - predict->like; q++)
		tracks += row_at(predict, q).tracks;
	return tracks;
}

unsigned predict_sizes(const struct predict *predict, uint32_t *sizes, unsigned max)
{
	unsigned n = 0;

	for (size_t i = predict->n + 1; i-- && n < max;)
		sizes[n++] = at(predict, i)->size;
	return n;
}

void predict_slipped(struct predict *predict, uint32_t slips)
{
	if (!predict->hidden)
		return;
	/* Two at once can't be told apart. */
	predict->pending = predict->pending ? 0 : slips;
	predict->pending_left = CYLINDER_MOST;
}

void predict_absorbed(struct predict *predict)
{
	predict->pending = predict->pending_left = 0;
	predict->slips = 0;
}

/*
 * trim.c - over the disk and back, a few times, reading where it pays.
 *
 * Half of the tracks chosen are read on the way up and half on the way down, so
 * that what the clock is off by does not tilt all angles.  Each is read where
 * it comes under the head soon: its angle is nearly known.  What goes round a
 * track may be believed wrongly as well (pitch.h).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/sort.h"
#include "diskmodel/geom_build.h"
#include "extract/angle/pitch.h"
#include "extract/angle/skews.h"
#include "extract/angle/trim.h"
#include "extract/mech/reach.h"
#include "extract/probe/calibrate.h"
#include "extract/probe/middle.h"

/* Reads of the first round, of each one after it, and of all, with such a turn;
 * shorter ones say less each, and there are more in the same time.  Those count
 * that fail. */
#define FIRST_READS 1024u
#define MORE_READS 512u
#define MOST_READS 6144u
#define MOST_TURN_PS 8333333333.0
#define MOST_TIMES 1.5
/* Revolutions: an angle as sure as that is good, if nearly all are. */
#define SURE 0.0011
#define NEARLY 0.99
#define CHOICES 12u
#define ENDS 3u
#define REPORT_READS 32u
/* The track that holds the clock: so many are tried; it is read again after a
 * while, sooner at first, as the period is not known well. */
#define ANCHORS 16u
#define LOCK_NS UINT64_C(6000000000)
#define LOCK_FIRST_NS UINT64_C(1000000000)
#define LOCKS_FIRST 12u
/* Reads of a track of which one may be late; and of that one, which all others
 * are told by. */
#define READS 3u
#define READS_WELL 9u

struct trimming {
	struct reader reader;
	const struct geom *geom;
	struct geom_track anchor;	/* holds the clock, ... */
	double turned;		/* ... by that more than the geometry says */
	unsigned locks;
	struct geom *found;	/* with the first angles, where none were */
	const struct trim_options *options;
	struct skews *skews;
	struct pitch_read *read;	/* by track */
	size_t n, looked, most;		/* of those, and tries */
	struct pitch pitch[PITCH_MOST];	/* those that are wrong */
	size_t pitches;
	float *late, *sigma;	/* of each track; sigma < 0: not known */
	uint64_t tracks, known;
	uint64_t end_ns;
};

static int by_track(const void *a, const void *b)
{
	const struct pitch_read *x = a, *y = b;

	return sort_order(x->track, y->track);
}

/* ---- The clock ---- */

/* The first unit that begins on a track. */
static uint64_t first_unit(const struct trimming *t,
			   const struct geom_track *track)
{
	return reach_first(track, t->reader.unit_sectors) /
	       t->reader.unit_sectors;
}

/* Where the geometry says that a unit ends. */
static double angle_of(const struct trimming *t, uint64_t unit)
{
	uint32_t each = t->reader.unit_sectors;

	return reach_angle(t->geom, unit * each, each);
}

/* By how much the geometry is turned, as the middle of some units of a track
 * has it.  The first ones, where it does not matter how long a revolution of it
 * is believed to be; downwards, as a read-ahead has got what is above. */
static int read_track(struct trimming *t, const struct geom_track *track,
		      unsigned reads, double *turned)
{
	uint64_t n = track->sectors / t->reader.unit_sectors, unit;
	double v[READS_WELL], one, near = NAN;
	unsigned k = 0;
	int err = 0;

	for (unsigned i = reads; i-- > 0 && !err;) {
		unit = first_unit(t, track) + i % (n > 1 ? n - 1 : 1);
		err = reader_read(&t->reader, unit, &one);
		if (err || isnan(one))
			continue;
		one -= angle_of(t, unit);
		near = k ? near : one;
		v[k++] = near + phase_wrap(one - near);
	}
	*turned = k ? phase_part(middle_of(v, k)) : NAN;
	return err;
}

/* When some seconds have passed since the last time. */
static int lock(struct trimming *t)
{
	struct env *env = t->reader.prober->env;
	struct phase *phase = &t->reader.phase;
	double turned;
	int err;

	if (env_now_ns(env) < phase->locked_ns +
		    (t->locks < LOCKS_FIRST ? LOCK_FIRST_NS : LOCK_NS))
		return 0;
	err = read_track(t, &t->anchor, READS, &turned);
	if (err || isnan(turned))
		return err;
	phase_correct(phase, env_now_ns(env), phase_wrap(turned - t->turned),
		      t->reader.noise);
	t->locks++;
	return 0;
}

/* ---- Reading where it pays ---- */

/* A unit near one end of a track, of about every other near the other: that
 * tells how much goes round.  (Not of every other: a surface's tracks may all
 * have even numbers.)  The one of some that comes soonest. */
static uint64_t choose_unit(struct trimming *t, const struct geom_track *track)
{
	struct env *env = t->reader.prober->env;
	uint64_t first = first_unit(t, track), best = first, at, from;
	uint64_t units = track->sectors / t->reader.unit_sectors;
	uint64_t end = units / ENDS + 1;
	double best_ns = INFINITY, ns;

	from = track->index * UINT64_C(0x9e3779b97f4a7c15) >> 63 &&
	       units > end ? units - end - 1 : 0;
	for (unsigned i = 0; i < CHOICES && units > 1; i++) {
		at = first + from + env_random(env) % end;
		if (recent_has(&t->reader.recent, at))
			continue;
		ns = reader_cost(&t->reader, at, angle_of(t, at) + t->turned);
		if (ns >= best_ns)
			continue;
		best_ns = ns;
		best = at;
	}
	return best;
}

/* How many sectors tracks like that one hold, of which none has been lost. */
static uint32_t usual(const struct geom *geom, const struct geom_track *track)
{
	return track->sectors - (uint32_t)geom_more(geom, track->index);
}

/* One reading, unless it can't be had. */
static int look(struct trimming *t, uint64_t index)
{
	struct geom_track track;
	double at, turn, base;
	uint64_t unit;
	int err;

	geom_track_at(t->geom, index, &track);
	unit = choose_unit(t, &track);
	t->looked++;
	at = angle_of(t, unit) + t->turned;
	err = reader_expect(&t->reader, unit, at, &turn);
	if (err || isnan(turn))
		return err;
	base = ldexp(track.start, -32) + t->turned;
	t->read[t->n++] = (struct pitch_read){
		.track = index,
		.sectors = usual(t->geom, &track),
		.around = geom_around(&track),
		.part = phase_part(at - base),
		.late = phase_wrap(turn - at),
	};
	return 0;
}

static bool in_time(const struct trimming *t)
{
	return !t->end_ns || env_now_ns(t->reader.prober->env) < t->end_ns;
}

/* The tracks of list[], every other one there and the others back. */
static int look_at(struct trimming *t, const uint64_t *list, size_t n)
{
	size_t at;
	int err = 0;

	for (size_t i = 0; i < n && !err && in_time(t); i++) {
		at = 2 * i < n ? 2 * i : 2 * (n - i) - 1;
		err = lock(t);
		if (!err)
			err = look(t, list[at]);
		if (!err && t->options->progress && i % REPORT_READS == 0)
			err = t->options->progress(t->options->arg,
				(double)t->looked / (FIRST_READS + MORE_READS +
						     (double)t->looked));
	}
	qsort(t->read, t->n, sizeof(*t->read), by_track);
	return err;
}

/* By how much it pays to read a track. */
static double worth(const struct trimming *t, uint64_t i, bool first)
{
	double sigma = t->sigma[i];

	if (sigma < 0)
		return 0;
	return first ? 1 : fmax(sigma * sigma - SURE * SURE, 0);
}

/* `n` tracks, most where it is worth most. */
static size_t choose(const struct trimming *t, uint64_t *list, size_t n,
		     bool first)
{
	double all = 0, sum, next;
	size_t k = 0;

	for (uint64_t i = 0; i < t->tracks; i++) {
		prober_pause(t->reader.prober, i);
		all += worth(t, i, first);
	}
	sum = 0;
	next = all / (double)n *
	       (double)(env_random(t->reader.prober->env) % 1000) / 1000;
	for (uint64_t i = 0; i < t->tracks && k < n; i++) {
		prober_pause(t->reader.prober, i);
		sum += worth(t, i, first);
		if (sum <= next)
			continue;
		list[k++] = i;
		next += all / (double)n;
		next = next > sum ? next : sum;
	}
	return k;
}

/* ---- Angles from readings ---- */

/* How many sectors really go round a track. */
static uint32_t around(const struct trimming *t, uint32_t sectors,
		       uint32_t believed)
{
	for (size_t i = 0; i < t->pitches; i++) {
		if (t->pitch[i].sectors == sectors &&
		    t->pitch[i].around == believed)
			return t->pitch[i].right;
	}
	return believed;
}

static int understand(struct trimming *t)
{
	struct skews_read *read = calloc(t->n, sizeof(*read));
	struct geom_track track;
	int err;

	if (!read)
		return -ENOMEM;
	t->pitches = pitch_find(t->read, t->n, t->reader.noise,
				t->reader.unit_sectors, t->pitch);
	for (size_t i = 0; i < t->n; i++) {
		const struct pitch_read *r = &t->read[i];
		double longer = (double)r->around / around(t, r->sectors,
							   r->around) - 1;

		read[i].track = r->track;
		read[i].late = r->late - r->part * longer;
	}
	err = skews_smooth(t->skews, read, t->n, t->reader.noise, t->late,
			   t->sigma);
	free(read);
	for (uint64_t i = 0; i < t->tracks; i++) {
		prober_pause(t->reader.prober, i);
		geom_track_at(t->geom, i, &track);
		if (!track.known)
			t->sigma[i] = -1;
	}
	return err;
}

static bool is_sure(const struct trimming *t)
{
	uint64_t sure = 0;

	for (uint64_t i = 0; i < t->tracks; i++) {
		prober_pause(t->reader.prober, i);
		sure += t->sigma[i] >= 0 && t->sigma[i] <= SURE;
	}
	return (double)sure >= NEARLY * (double)t->known;
}

static int look_around(struct trimming *t)
{
	uint64_t *list = calloc(FIRST_READS, sizeof(*list));
	size_t n = FIRST_READS < t->known ? FIRST_READS : t->known;
	bool first = true;
	int err = list ? 0 : -ENOMEM;

	while (!err && n && t->looked + n <= t->most && in_time(t)) {
		n = choose(t, list, n, first);
		err = look_at(t, list, n);
		if (!err)
			err = understand(t);
		if (err || is_sure(t))
			break;
		n = MORE_READS < t->known ? MORE_READS : t->known;
		first = false;
	}
	free(list);
	return err;
}

/* A known track at or behind one, or the last known. */
static void known_track(const struct trimming *t, uint64_t from,
			struct geom_track *track)
{
	for (uint64_t i = from; i < t->tracks; i++) {
		geom_track_at(t->geom, i, track);
		if (track->known)
			return;
	}
	for (uint64_t i = from; i-- > 0;) {
		geom_track_at(t->geom, i, track);
		if (track->known)
			return;
	}
}

/* Lets a track hold the clock: in the middle of what is known, or elsewhere
 * when that cannot be read. */
static int hold(struct trimming *t)
{
	struct env *env = t->reader.prober->env;
	int err = 0;

	t->turned = NAN;
	t->locks = 0;
	known_track(t, t->tracks / 2, &t->anchor);
	for (unsigned i = 0; i < ANCHORS && !err && isnan(t->turned); i++) {
		if (i)
			known_track(t, env_random(env) % t->tracks,
				    &t->anchor);
		err = read_track(t, &t->anchor, READS_WELL, &t->turned);
	}
	t->reader.phase.locked_ns = env_now_ns(env);
	return err ? err : isnan(t->turned) ? -EIO : 0;
}

static int begin(struct trimming *t, struct prober *prober)
{
	struct geom_track track = { 0 };
	int err;

	for (uint64_t i = 0; i < t->tracks; i++) {
		prober_pause(prober, i);
		geom_track_at(t->geom, i, &track);
		t->sigma[i] = track.known ? 0 : -1;
		t->known += track.known;
	}
	if (!t->known)
		return -EINVAL;
	reader_init(&t->reader, prober, (double)t->options->period_ps / 1e3,
		    prober->limits->physical_bytes / SECTOR_BYTES, 0);
	known_track(t, t->tracks / 2, &track);
	err = calibrate_reader(&t->reader, first_unit(t, &track));
	return err ? err : hold(t);
}

/* As late as it was seen, and with what really goes round it. */
static void turn_one(void *arg, const struct geom_track *track,
		     struct geom_sweep *sweep)
{
	const struct trimming *t = arg;

	sweep->around = around(t, usual(t->geom, track), sweep->around);
	if (t->sigma[track->index] >= 0)
		sweep->base += phase_angle(t->late[track->index]);
}

static int turn_all(struct trimming *t, struct geom **out)
{
	return geom_change(t->geom, &(struct geom_changer){
		.change = turn_one, .arg = t,
		.pause = prober_pause_now, .pause_arg = t->reader.prober,
	}, out);
}

/* ---- Angles from nothing ---- */

static int read_angle(void *arg, uint64_t index, bool surely, double *at)
{
	struct trimming *t = arg;
	struct geom_track track;
	int err = lock(t);

	geom_track_at(t->geom, index, &track);
	if (!err && t->options->progress)
		err = t->options->progress(t->options->arg, (double)index /
					   (double)t->tracks);
	return err ? err : read_track(t, &track, surely ? READS : 1, at);
}

/* The geometry from here on. */
static int find_angles(struct trimming *t, struct prober *prober)
{
	const struct skews_reader reader = {
		.read = read_angle, .arg = t,
		.tolerance = t->reader.tolerance,
	};
	struct skews *skews = NULL;
	int err = skews_new(t->geom, prober, &skews);

	if (!err)
		err = skews_find(skews, t->reader.noise, &reader, t->late);
	if (!err)
		err = turn_all(t, &t->found);
	if (!err)
		t->geom = t->found;
	skews_free(skews);
	if (t->options->most_ns)
		t->end_ns = env_now_ns(prober->env) + t->options->most_ns;
	return err ? err : hold(t);
}

/* The angles as they are now. */
static int put(struct trimming *t, struct geom **out,
	       struct trim_stats *stats)
{
	double sum = 0, square = 0, sigma = 0, n = (double)t->known, late;

	for (uint64_t i = 0; i < t->tracks; i++) {
		prober_pause(t->reader.prober, i);
		if (t->sigma[i] < 0)
			continue;
		late = phase_wrap(t->late[i]);
		sum += late;
		square += late * late;
		sigma += (double)t->sigma[i] * t->sigma[i];
	}
	stats->moved = sqrt(fmax(square / n - sum / n * sum / n, 0));
	stats->sigma = sqrt(sigma / n);
	return turn_all(t, out);
}

static int trim_all(struct trimming *t, struct prober *prober,
		    struct geom **out, struct trim_stats *stats)
{
	int err;

	t->tracks = geom_tracks(t->geom);
	t->late = calloc(t->tracks, sizeof(*t->late));
	t->sigma = calloc(t->tracks, sizeof(*t->sigma));
	t->most = (size_t)(MOST_READS * fmin(fmax(MOST_TURN_PS /
				(double)t->options->period_ps, 1), MOST_TIMES));
	t->read = calloc(t->most, sizeof(*t->read));
	if (!t->late || !t->sigma || !t->read)
		return -ENOMEM;
	err = begin(t, prober);
	if (!err && t->options->unknown)
		err = find_angles(t, prober);
	if (!err)
		err = skews_new(t->geom, prober, &t->skews);
	if (!err)
		err = look_around(t);
	stats->reads = t->reader.reads;
	stats->period_ns = t->reader.phase.period_ns;
	stats->period_ppm = 1e6 * sqrt(fmax(t->reader.phase.pp, 0));
	return err ? err : put(t, out, stats);
}

int trim_angles(struct prober *prober, const struct geom *geom,
		const struct trim_options *options, struct geom **out,
		struct trim_stats *stats)
{
	struct trimming *t = calloc(1, sizeof(*t));
	int err;

	*stats = (struct trim_stats){ 0 };
	if (!t)
		return -ENOMEM;
	t->geom = geom;
	t->options = options;
	if (options->most_ns)
		t->end_ns = env_now_ns(prober->env) + options->most_ns;
	err = trim_all(t, prober, out, stats);
	skews_free(t->skews);
	geom_free(t->found);
	free(t->late);
	free(t->sigma);
	free(t->read);
	free(t);
	return err;
}

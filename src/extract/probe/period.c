/*
 * period.c - the period from completions of the same sectors.
 *
 * Samples are (site, completion).  Without a cache there is one site, read
 * every revolution: the number of reads counts for more than gaps would.  With
 * one there are many, in a cycle, twice as many whenever the cache still knew
 * them.
 *
 * The first estimate is the lowest frequency at which the times between visits
 * of a site all have the same phase (whole multiples of it do as well).  From
 * there on the revolutions between visits can be counted, short times first;
 * the fit is least squares with a free offset for each site, and weights that
 * fall with the distance so that late completions do not count.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "extract/probe/period.h"

#define MAX_SAMPLES 6000u
#define MAX_SITES 1024u
#define FIRST_SITES 48u
#define DEFAULT_NS UINT64_C(10000000000)
#define SMALL_SECTORS 20000u
#define TARGET_PPM 0.3
/* What revolutions are looked for, in seconds; slow ones are emulated. */
#define SHORTEST 0.0035
#define LONGEST 0.25
#define COARSE_PAIRS 128u
#define COHERENT 0.6
/* Completions are usable when this share is within this of a revolution or
 * that time. */
#define GATE_SHARE 0.8
#define GATE_TURN 0.02
#define GATE_NS 120e3
/* Revolutions by which a visit is not what was expected. */
#define STRAYS 0.15
/* With less the first estimate was wrong. */
#define FITTING 0.8
/* Nothing that rotates is that fast on the average. */
#define FLAT_NS 1300000u
#define RANDOM_READS 24u
#define REPEATS 8u
/* Of reads at so many places, the phases are the same: the mean is that long.
 * By chance it is once in a thousand million. */
#define PLACES 48u
#define SAME_PHASE 0.66
/* What is slower is no hit of a cache. */
#define HIT_MOST_NS 1500000u

struct sample {
	uint32_t site;
	uint64_t at_ns;
	int64_t revs;		/* since the site's first */
	double weight;
};

struct period_work {
	struct prober *prober;
	uint32_t unit;		/* sectors of a read */
	struct sample *samples;
	size_t n;
	uint64_t sites[MAX_SITES];
	uint32_t order[MAX_SITES];
	uint32_t sites_n;
	double period_ns;	/* 0: not known */
	double above_hz;	/* look for it there */
	double residual_ns;	/* typical */
	double good;		/* share of residuals within the gate */
	struct rotation *out;
};

const char *period_verdict_text(enum period_verdict verdict)
{
	static const char *const texts[] = {
		[PERIOD_GOOD] = "timing is usable",
		[PERIOD_SMALL] = "too small to be measured",
		[PERIOD_FLAT] = "not a rotating disk",
		[PERIOD_NOISY] = ("completions come too irregularly: not a "
				  "rotating disk, or a host too busy"),
		[PERIOD_CACHED] = "a cache that cannot be turned off answers",
		[PERIOD_UNREADABLE] = "cannot be read",
	};

	return texts[verdict];
}

/* ---- Reading ---- */

static int read_at(struct period_work *w, uint64_t sector,
		   struct probe_access *a)
{
	int err;

	*a = (struct probe_access){ .sector = sector, .sectors = w->unit };
	err = w->prober->access(w->prober, a, 1, 1);
	w->out->reads++;
	return err;
}

static uint64_t align(const struct period_work *w, uint64_t sector)
{
	return sector / w->unit * w->unit;
}

/* The median time of reads all over the disk; *readable: how many worked. */
static int random_reads(struct period_work *w, uint64_t *median_ns,
			unsigned *readable)
{
	uint64_t room = w->prober->limits->sectors - w->unit;
	uint64_t taken[RANDOM_READS];
	struct probe_access a;
	unsigned n = 0;

	for (unsigned i = 0; i < RANDOM_READS; i++) {
		uint64_t at = env_random(w->prober->env) % room;
		int err = read_at(w, align(w, at), &a);

		if (err)
			return err;
		if (!a.result)
			taken[n++] = a.complete_ns - a.submit_ns;
	}
	*readable = n;
	qsort(taken, n, sizeof(*taken), sort_u64_cmp);
	*median_ns = n ? taken[n / 2] : 0;
	return 0;
}

/* Is a sector that was just read answered faster than by a revolution? */
static int find_cache(struct period_work *w, uint64_t site)
{
	uint64_t taken[REPEATS];
	struct probe_access a;

	for (unsigned i = 0; i <= REPEATS; i++) {
		int err = read_at(w, site, &a);

		if (err)
			return err;
		if (i)
			taken[i - 1] = a.complete_ns - a.submit_ns;
	}
	qsort(taken, REPEATS, sizeof(*taken), sort_u64_cmp);
	w->out->cached = taken[REPEATS / 2] < HIT_MOST_NS;
	w->out->hit_ns = w->out->cached ? taken[REPEATS / 2] : 0;
	return 0;
}

static bool is_hit(const struct period_work *w, const struct probe_access *a)
{
	return w->out->cached &&
	       a->complete_ns - a->submit_ns <
		       2 * w->out->hit_ns + 200000;
}

static void sample_add(struct period_work *w, uint32_t site, uint64_t at_ns)
{
	if (w->n < MAX_SAMPLES)
		w->samples[w->n++] = (struct sample){ .site = site,
						      .at_ns = at_ns };
}

/* ---- The first estimate ---- */

/* Times between visits of a site, the shortest first; how many. */
static size_t pairs(const struct period_work *w, double *apart, size_t max)
{
	uint64_t *last = calloc(w->sites_n, sizeof(*last));
	size_t n = 0;

	for (size_t i = 0; last && i < w->n; i++) {
		const struct sample *s = &w->samples[i];

		if (last[s->site] && n < MAX_SAMPLES)
			apart[n++] = 1e-9 * (double)(s->at_ns - last[s->site]);
		last[s->site] = s->at_ns;
	}
	free(last);
	qsort(apart, n, sizeof(*apart), sort_double_cmp);
	return n < max ? n : max;
}

/* How much the times have one phase at a frequency: 1, all of them. */
static double coherence(const double *apart, size_t n, double hz)
{
	double c = 0, s = 0;

	for (size_t i = 0; i < n; i++) {
		double turn = apart[i] * hz;

		c += cos(2 * M_PI * (turn - floor(turn)));
		s += sin(2 * M_PI * (turn - floor(turn)));
	}
	/* Whole revolutions: the phase is 0, not just any. */
	return n && c > 0 && fabs(s) < c ? c / (double)n : 0;
}

/* The top of the lowest peak that is nearly as coherent as `best`, beginning
 * at `hz`; 0: there is none.  0 as best: the best of all. */
static double find_peak(const double *apart, size_t n, double hz, double step,
			double *best)
{
	double found = 0, peak = 0, c;

	for (; hz < 1 / SHORTEST; hz += step) {
		c = coherence(apart, n, hz);
		if (c > 0.93 * *best && c > peak) {
			peak = c;
			found = hz;
		} else if (*best > 0 && found > 0 && c < 0.5 * *best) {
			break;
		}
	}
	*best = peak;
	return found;
}

/* The top of a peak found in steps. */
static double refine(const double *apart, size_t n, double hz, double step)
{
	double best = 0, at = hz, c;

	for (double f = hz - step; f <= hz + step; f += step / 25) {
		c = coherence(apart, n, f);
		if (c > best) {
			best = c;
			at = f;
		}
	}
	return at;
}

/* The lowest frequency at which there is coherence; 0: none. */
static double find_frequency(const struct period_work *w)
{
	double *apart = malloc(MAX_SAMPLES * sizeof(*apart));
	double best = 0, found = 0, hz = 0, step;
	size_t n;

	if (!apart)
		return 0;
	n = pairs(w, apart, COARSE_PAIRS);
	step = n ? 0.1 / apart[n - 1] : 1;
	/* What is next to no frequency at all is coherent too. */
	while (n > 8 && hz < 1 / SHORTEST && coherence(apart, n, hz) > 0.3)
		hz += step;
	if (hz < w->above_hz)
		hz = w->above_hz;
	if (n > 8)
		find_peak(apart, n, hz, step, &best);
	if (best > COHERENT)
		found = find_peak(apart, n, hz, step, &best);
	if (found > 0)
		found = refine(apart, n, found, step);
	free(apart);
	return found;
}

/* ---- The fit ---- */

/* The visit of a site from which the next are counted. */
struct mark {
	uint64_t at_ns;
	int64_t revs;
	unsigned strayed;	/* visits since then that did not fit it */
};

/* Counts the revolutions with the period as known.  A late completion must
 * not be what the next is counted from: half a revolution late, a revolution
 * would get lost for good. */
static void count_revs(struct period_work *w, struct mark *marks)
{
	memset(marks, 0, w->sites_n * sizeof(*marks));
	for (size_t i = 0; i < w->n; i++) {
		struct sample *s = &w->samples[i];
		struct mark *m = &marks[s->site];
		double revs = m->at_ns ? (double)(s->at_ns - m->at_ns) /
						 w->period_ns : 0;

		s->revs = m->revs + llround(revs);
		if (fabs(revs - round(revs)) < STRAYS || ++m->strayed > 3) {
			m->at_ns = s->at_ns;
			m->revs = s->revs;
			m->strayed = 0;
		}
	}
}

/* The sums of one site. */
struct sums {
	double w, n, t, nn, nt;
	uint64_t first_ns;
};

/* Least squares over all sites; residuals go to `off`.  The sum that says how
 * sharp it is. */
static double fit_once(struct period_work *w, struct sums *sums, double *off)
{
	double nn = 0, nt = 0;

	memset(sums, 0, w->sites_n * sizeof(*sums));
	for (size_t i = 0; i < w->n; i++) {
		const struct sample *s = &w->samples[i];
		struct sums *u = &sums[s->site];
		double t;

		if (!u->first_ns)
			u->first_ns = s->at_ns;
		t = (double)(s->at_ns - u->first_ns);
		u->w += s->weight;
		u->n += s->weight * (double)s->revs;
		u->t += s->weight * t;
		u->nn += s->weight * (double)s->revs * (double)s->revs;
		u->nt += s->weight * (double)s->revs * t;
	}
	for (uint32_t k = 0; k < w->sites_n; k++) {
		const struct sums *u = &sums[k];

		if (!(u->w > 0))
			continue;
		nn += u->nn - u->n * u->n / u->w;
		nt += u->nt - u->n * u->t / u->w;
	}
	if (nn > 0)
		w->period_ns = nt / nn;
	for (size_t i = 0; i < w->n; i++) {
		const struct sample *s = &w->samples[i];
		const struct sums *u = &sums[s->site];

		off[i] = (double)(s->at_ns - u->first_ns) - u->t / u->w -
			 w->period_ns * ((double)s->revs - u->n / u->w);
	}
	return nn;
}

/* Weights from residuals; their typical size. */
static void weigh(struct period_work *w, const double *off, double *sorted)
{
	double gate = GATE_TURN * w->period_ns;
	size_t within = 0;

	for (size_t i = 0; i < w->n; i++)
		sorted[i] = fabs(off[i]);
	qsort(sorted, w->n, sizeof(*sorted), sort_double_cmp);
	w->residual_ns = 1.4826 * sorted[w->n / 2] + 100;
	gate = gate > GATE_NS ? gate : GATE_NS;
	for (size_t i = 0; i < w->n; i++) {
		double far = fabs(off[i]) / (2 * w->residual_ns);

		w->samples[i].weight = far <= 1 ? 1 : 1 / (far * far);
		within += fabs(off[i]) <= gate;
	}
	w->good = (double)within / (double)w->n;
}

/* Fits the period to all samples, which must be known well enough to count
 * revolutions.  -ENOMEM. */
static int fit(struct period_work *w)
{
	struct sums *sums = calloc(w->sites_n, sizeof(*sums));
	struct mark *marks = calloc(w->sites_n, sizeof(*marks));
	double *off = calloc(w->n + 1, sizeof(*off));
	double *sorted = calloc(w->n + 1, sizeof(*sorted));
	double nn = 0;
	int err = sums && marks && off && sorted ? 0 : -ENOMEM;

	for (size_t i = 0; i < w->n; i++)
		w->samples[i].weight = 1;
	for (unsigned i = 0; !err && w->n && i < 10; i++) {
		count_revs(w, marks);
		nn = fit_once(w, sums, off);
		weigh(w, off, sorted);
	}
	w->out->sigma_ppm = nn > 0 ? 1e6 * w->residual_ns / sqrt(nn) /
					     w->period_ns : 1e6;
	free(sums);
	free(marks);
	free(off);
	free(sorted);
	return err;
}

/* ---- Gathering ---- */

/* Mixes the order of visits a little: if all took equally long between two
 * visits of a site, that would be taken for the revolution. */
static void mix(struct period_work *w)
{
	uint32_t block = w->sites_n / 4 + 1;

	for (uint32_t i = 0; i < w->sites_n; i++) {
		uint32_t rest = block - i % block, k;
		uint32_t was = w->order[i];

		if (rest > w->sites_n - i)
			rest = w->sites_n - i;
		k = i + (uint32_t)(env_random(w->prober->env) % rest);
		w->order[i] = w->order[k];
		w->order[k] = was;
	}
}

/* All sites once. */
static int visit_all(struct period_work *w, uint32_t *hits)
{
	struct probe_access a;
	int err = 0;

	*hits = 0;
	mix(w);
	for (uint32_t k = 0; !err && k < w->sites_n; k++) {
		uint32_t i = w->order[k];

		err = read_at(w, w->sites[i], &a);
		if (err || a.result)
			continue;
		if (is_hit(w, &a))
			++*hits;
		else
			sample_add(w, i, a.complete_ns);
	}
	return err;
}

/* Spreads sites over the front of the disk, at uneven distances. */
static void place_sites(struct period_work *w, uint32_t n)
{
	uint64_t sectors = w->prober->limits->sectors;
	uint64_t stride = UINT64_C(40000), at = sectors / 50;

	if (stride > sectors * 9 / 10 / (n + 1))
		stride = sectors * 9 / 10 / (n + 1);
	w->sites_n = n;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t uneven = env_random(w->prober->env) %
				  (stride / 2 + 1);

		w->sites[i] = align(w, at + uneven);
		w->order[i] = n - 1 - i;
		at += stride;
	}
	w->n = 0;
	w->period_ns = 0;
	w->above_hz = 1 / LONGEST;
}

/* A first estimate if there is none, then the fit.  Nothing found is no
 * error; what does not fit is forgotten. */
static int estimate(struct period_work *w)
{
	double hz;
	int err;

	if (w->period_ns <= 0) {
		hz = find_frequency(w);
		if (hz <= 0)
			return 0;
		w->period_ns = 1e9 / hz;
	}
	err = fit(w);
	if (!err && w->good < FITTING) {
		/* Next time the next. */
		w->above_hz = 1.2e9 / w->period_ns;
		if (w->above_hz > 1 / SHORTEST)
			w->above_hz = 1 / LONGEST;
		w->period_ns = 0;
	}
	return err;
}

static bool enough(const struct period_work *w, uint64_t until_ns)
{
	return w->n >= MAX_SAMPLES ||
	       env_now_ns(w->prober->env) >= until_ns ||
	       (w->period_ns > 0 && w->n > 100 &&
		w->out->sigma_ppm < TARGET_PPM);
}

/* One site where nothing answers but the medium. */
static int gather(struct period_work *w, uint64_t until_ns)
{
	uint32_t hits, n = w->out->cached ? FIRST_SITES : 1;
	int err;

	place_sites(w, n);
	do {
		err = 0;
		for (uint32_t i = 0; !err && i * n < FIRST_SITES; i++)
			err = visit_all(w, &hits);
		if (!err && hits > n / 4) {
			w->out->verdict = PERIOD_CACHED;
			if (n >= MAX_SITES)
				return 0;
			n = n * 2 < MAX_SITES ? n * 2 : MAX_SITES;
			place_sites(w, n);
		} else if (!err) {
			w->out->verdict = PERIOD_GOOD;
			err = estimate(w);
		}
	} while (!err && !enough(w, until_ns));
	return err;
}

/* ---- Does it turn? ---- */

/* A host that lets nobody run but at its ticks has a period, too (4 ms, 15,000
 * rpm).  But what turns passes each place at a phase of its own. */
static int is_tick(struct period_work *w, bool *tick)
{
	uint64_t room = w->prober->limits->sectors - w->unit;
	double c = 0, s = 0, n = 0, turn;
	struct probe_access a;
	int err = 0;

	for (unsigned i = 0; i < PLACES && !err; i++) {
		uint64_t at = i * UINT64_C(11400714819323198485);

		err = read_at(w, align(w, at % room), &a);
		if (err || a.result || is_hit(w, &a))
			continue;
		turn = fmod((double)(a.complete_ns - w->samples[0].at_ns),
			    w->period_ns) / w->period_ns;
		c += cos(2 * M_PI * turn);
		s += sin(2 * M_PI * turn);
		n++;
	}
	*tick = n > PLACES / 2 && hypot(c, s) > SAME_PHASE * n;
	return err;
}

/* ---- All of it ---- */

static int measure(struct period_work *w, uint64_t until_ns)
{
	struct rotation *p = w->out;
	uint64_t median_ns;
	unsigned readable;
	bool tick = false;
	int err = random_reads(w, &median_ns, &readable);

	if (err)
		return err;
	p->verdict = readable < RANDOM_READS / 3 ? PERIOD_UNREADABLE :
		     median_ns < FLAT_NS ? PERIOD_FLAT : PERIOD_GOOD;
	if (p->verdict != PERIOD_GOOD)
		return 0;
	err = find_cache(w, align(w, w->prober->limits->sectors / 50));
	if (err)
		return err;
	err = gather(w, until_ns);
	if (err || p->verdict != PERIOD_GOOD)
		return err;
	p->period_ps = (uint64_t)llround(w->period_ns * 1e3);
	p->noise_ns = w->residual_ns;
	p->late = 1 - w->good;
	if (w->period_ns <= 0 || w->good < GATE_SHARE) {
		p->verdict = PERIOD_NOISY;
		return 0;
	}
	err = is_tick(w, &tick);
	if (tick)
		p->verdict = PERIOD_FLAT;
	return err;
}

int period_measure(struct prober *prober, uint64_t most_ns,
		   struct rotation *period)
{
	struct period_work *w;
	uint64_t until_ns;
	int err;

	*period = (struct rotation){ .verdict = PERIOD_SMALL };
	if (prober->limits->sectors < SMALL_SECTORS)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->prober = prober;
	w->out = period;
	w->unit = prober->limits->physical_bytes / SECTOR_BYTES;
	w->samples = calloc(MAX_SAMPLES, sizeof(*w->samples));
	until_ns = env_now_ns(prober->env) + (most_ns ? most_ns : DEFAULT_NS);
	err = w->samples ? measure(w, until_ns) : -ENOMEM;
	free(w->samples);
	free(w);
	return err;
}

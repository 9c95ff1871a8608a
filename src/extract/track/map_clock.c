/*
 * map_clock.c - the clock of a map.
 *
 * The first track that was mapped holds it: every few seconds a few of its
 * sectors are read, and how late they are corrects phase and period, so that
 * all angles of a map are those of one revolution.
 */
#include <math.h>

#include "extract/track/map_state.h"

/* From one look at the anchor to the next, and at first, while the period is
 * not known well; reads of each. */
#define LOCK_NS UINT64_C(8000000000)
#define LOCK_FIRST_NS UINT64_C(1000000000)
#define LOCK_READS 3u
/* The middle one of those, in standard deviations of one. */
#define LOCK_SIGMA 0.7
/* Errors one after another that can't be noise any more. */
#define STRAYED_MAX 2u

static int lock_once(struct map *m, double *error)
{
	struct env *env = m->reader.prober->env;
	double v[LOCK_READS], turn;
	int err = 0;

	for (unsigned i = 0; i < LOCK_READS && !err; i++) {
		uint64_t at = env_random(env) % m->anchor.size;

		err = reader_read(&m->reader, m->anchor.first + at, &turn);
		v[i] = phase_wrap(turn - m->anchor.start -
				  (double)(at + 1) * m->anchor.pitch);
	}
	*error = fmax(fmin(v[0], v[1]), fmin(fmax(v[0], v[1]), v[2]));
	return err;
}

/* An error is the clock's, or it is that of where the anchor was thought to
 * be. */
static void lock_by(struct map *m, uint64_t now_ns, double error, double sigma)
{
	double all, share;

	if (!m->locks)
		m->anchor_var = m->reader.noise * m->reader.noise;
	all = m->anchor_var + m->reader.phase.aa + sigma * sigma;
	share = m->anchor_var / all;
	phase_correct(&m->reader.phase, now_ns, error,
		      sqrt(sigma * sigma + m->anchor_var));
	m->anchor.start = phase_part(m->anchor.start + share * error);
	m->anchor_var *= 1 - share;
}

/* Keeps the clock right; `first`: whatever it takes. */
int map_clock_hold(struct map *m, bool first)
{
	struct env *env = m->reader.prober->env;
	uint64_t now_ns = env_now_ns(env);
	uint64_t every_ns = m->locks < 12 ? LOCK_FIRST_NS : LOCK_NS;
	double error, sigma = LOCK_SIGMA * m->reader.noise;
	enum reader_purpose was;
	int err;

	if (!m->anchored || (!first && now_ns - m->reader.phase.locked_ns <
					       every_ns))
		return 0;
	was = reader_set_purpose(&m->reader, READER_CLOCK);
	err = lock_once(m, &error);
	reader_set_purpose(&m->reader, was);
	if (err || isnan(error))
		return err;
	now_ns = env_now_ns(env);
	m->strayed = fabs(error) < 2 * m->reader.tolerance ? 0 :
							     m->strayed + 1;
	if (first || m->strayed > STRAYED_MAX)
		phase_restart(&m->reader.phase, now_ns, error, sigma);
	else if (m->strayed)
		m->reader.phase.locked_ns = now_ns;
	else
		lock_by(m, now_ns, error, sigma);
	/* The angles before it were those of another clock. */
	line_doubt(&m->walk.line, m->strayed ? m->reader.noise : sigma / 2, 0,
		   0);
	m->locks++;
	return 0;
}

void map_clock_anchor(struct map *m)
{
	const struct piece *p = m->store.pieces;

	for (size_t i = 0; i < m->store.n && !m->anchored; i++) {
		if (!p[i].tracks)
			continue;
		store_track(&m->store, &p[i], 0, &m->anchor);
		m->anchored = true;
		m->reader.phase.locked_ns =
			env_now_ns(m->reader.prober->env);
	}
}

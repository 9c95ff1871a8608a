/*
 * sim_power.c - the content of a simulated disk, power cuts, and moments at
 * which many cuts are tried.
 */
#include "sim/sim_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/random.h"
#include "sim/sim.h"
#include "sim/writes.h"

struct sim_moment {
	struct media *durable;
	uint32_t unit_sectors;
	size_t n;
	struct write *writes[];	/* writes that are not flushed, then those in
				 * the air */
};

/* ---- content, power, faults ---- */

struct media *sim_content(const struct sim *sim)
{
	return media_clone(sim->now);
}

int sim_damage(struct sim *sim, uint64_t sector, uint64_t sectors)
{
	int err = media_damage(sim->now, sector, sectors);

	if (!err && sim->durable)
		err = media_damage(sim->durable, sector, sectors);
	return err;
}

int sim_flip(struct sim *sim, uint64_t sector, unsigned bit)
{
	int err = media_flip(sim->now, sector, bit);

	if (!err && sim->durable)
		err = media_flip(sim->durable, sector, bit);
	return err;
}

struct sim_moment *sim_moment_take(const struct sim *sim)
{
	struct sim_moment *m;
	size_t n = sim->unflushed_n + sim->outstanding;
	struct list *pos;

	m = calloc(1, sizeof(*m) + n * sizeof(*m->writes));
	if (!m)
		return NULL;
	m->durable = media_clone(sim->durable ? sim->durable : sim->now);
	if (!m->durable) {
		free(m);
		return NULL;
	}
	m->unit_sectors = sim->disk.limits.atomic_bytes / SECTOR_BYTES;
	for (size_t i = 0; i < sim->unflushed_n; i++)
		m->writes[m->n++] = writes_get(sim->unflushed[i]);
	list_for_each(pos, &sim->air) {
		struct op *op = list_entry(pos, struct op, link);

		if (op->write)
			m->writes[m->n++] = writes_get(op->write);
	}
	return m;
}

void sim_moment_free(struct sim_moment *moment)
{
	if (!moment)
		return;
	media_free(moment->durable);
	for (size_t i = 0; i < moment->n; i++)
		writes_put(moment->writes[i]);
	free(moment);
}

struct media *sim_moment_cut(const struct sim_moment *moment,
			     enum sim_cut cut, uint64_t seed)
{
	struct media *m = media_clone(moment->durable);
	/* The head is over one write only when power goes. */
	const size_t under_head = moment->n ? random_next(&seed) % moment->n :
					      0;

	for (size_t i = 0; m && i < moment->n; i++) {
		if (writes_apply_cut(moment->writes[i], m, cut,
				     moment->unit_sectors, i == under_head,
				     &seed)) {
			media_free(m);
			m = NULL;
		}
	}
	return m;
}

int sim_power_cut(struct sim *sim, enum sim_cut cut, uint64_t seed)
{
	struct sim_moment *moment = sim_moment_take(sim);
	struct media *left = NULL, *durable = NULL;

	if (moment)
		left = sim_moment_cut(moment, cut, seed);
	if (left && sim->durable)
		durable = media_clone(left);
	sim_moment_free(moment);
	if (!left || (sim->durable && !durable)) {
		media_free(left);
		return -ENOMEM;
	}
	sim_drop_all(sim);
	media_free(sim->now);
	media_free(sim->durable);
	sim->now = left;
	sim->durable = durable;
	sim->off = true;
	sim->cut_at = 0;
	return 0;
}

void sim_power_cut_at(struct sim *sim, uint64_t k, enum sim_cut cut,
		      uint64_t seed)
{
	sim->cut_at = k;
	sim->cut = cut;
	sim->cut_seed = seed;
}

bool sim_is_off(const struct sim *sim)
{
	return sim->off;
}

void sim_restart(struct sim *sim)
{
	sim->off = false;
}

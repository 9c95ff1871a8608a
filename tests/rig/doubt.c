/*
 * doubt.c - see doubt.h.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/queue/queue.h"
#include "sim/named.h"
#include "tests/rig/doubt.h"
#include "tests/rig/test.h"

/* Accesses after which a head with the right model predicts. */
#define LEARN_ACCESSES 200u

static struct spec *read_spec(const char *drive, uint64_t sectors)
{
	const char *top = getenv("top_srcdir");
	struct spec *spec;
	char path[4096];
	int rc;

	snprintf(path, sizeof(path), "%s/drives/%s.json", top ? top : "..",
		 drive);
	rc = named_spec(strncmp(drive, "random:", 7) ? path : drive, &spec);
	assert(!rc);
	if (sectors)
		spec->lbns = sectors;
	return spec;
}

static void doubt_skews(struct spec *spec)
{
	for (size_t i = 0; i < spec->zones_n; i++) {
		struct spec_zone *zone = &spec->zones[i];

		zone->cylinder_skew += (angle)(UINT32_MAX / zone->around[0]);
		zone->track_skew -= (angle)(UINT32_MAX / zone->around[0]);
	}
}

static void doubt_wrong(struct doubt *doubt, enum doubt_kind kind)
{
	struct spec *spec = doubt->model;

	if (kind == DOUBT_SKEW)
		doubt_skews(spec);
	else if (kind == DOUBT_PERIOD)
		spec->mech.period_ps += spec->mech.period_ps * 3 / 1000;
	else if (kind == DOUBT_SLIP)
		spec->zones[0].slips.n = 0;
	else if (kind == DOUBT_SURFACES)
		spec->order = spec->order == SPEC_CYLINDER ?
			SPEC_CYLINDER_SERPENTINE : SPEC_CYLINDER;
	for (uint32_t i = 0; kind == DOUBT_SEEK && i < spec->mech.seek_n; i++)
		spec->mech.seek[i].ns /= 2;
}

void doubt_init(struct doubt *doubt, const char *drive, uint64_t sectors,
		enum doubt_kind kind)
{
	int rc;

	doubt->is = read_spec(drive, sectors);
	doubt->model = read_spec(drive, sectors);
	doubt_wrong(doubt, kind);
	rc = spec_geom(doubt->model, &doubt->geom);
	assert(!rc);
}

void doubt_fini(struct doubt *doubt)
{
	geom_free(doubt->geom);
	spec_free(doubt->is);
	spec_free(doubt->model);
}

struct head *doubt_head(const struct doubt *doubt, struct env *env)
{
	const struct spec *spec = doubt->model;
	const struct head_options options = {
		.geom = doubt->geom,
		.mech = &spec->mech,
		.read_overhead_ns = spec->read_overhead_ns,
		.write_overhead_ns = spec->write_overhead_ns,
		.hit_overhead_ns = spec->hit_overhead_ns,
		.read_ahead_sectors = spec->read_ahead_lbns,
	};
	struct head *head;
	int rc = head_open(env, &options, &head);

	assert(!rc);
	return head;
}

void doubt_learn(struct env *env, struct disk *disk, struct head *head,
		 uint64_t seed)
{
	static uint8_t buf[4096] __attribute__((aligned(4096)));
	const struct queue_options options = { 0 };
	struct queue *queue;
	int rc = queue_open(env, disk, &options, &queue);

	assert(!rc);
	queue_set_head(queue, head);
	for (unsigned i = 0; i < LEARN_ACCESSES; i++) {
		const uint64_t sector = test_random(&seed) %
					(disk->limits.sectors / 8) * 8;

		rc = queue_read(queue, sector, 8, buf);
		assert(!rc);
		rc = queue_write(queue, sector, 8, buf);
		assert(!rc);
	}
	queue_close(queue);
}

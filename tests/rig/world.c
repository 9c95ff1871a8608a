/*
 * world.c - see world.h.
 */
#include "tests/rig/world.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cache/pool.h"

#define SECOND_NS UINT64_C(1000000000)
#define TURNS_A_SECOND 400u	/* at most: it may be busy without an end */

static void on_request(struct sim *sim, const struct disk_request *req,
		       void *arg)
{
	struct world *world = arg;

	if (req->op == DISK_READ)
		return;
	world->events++;
	if (!world->record)
		return;
	if (world->moments == world->room) {
		world->room = 2 * world->room + 64;
		world->moment = realloc(world->moment,
					world->room * sizeof(*world->moment));
		world->noted = realloc(world->noted,
				       world->room * sizeof(*world->noted));
		assert(world->moment && world->noted);
	}
	world->noted[world->moments] = world->note ?
		world->note(world->note_arg) : 0;
	world->moment[world->moments] = sim_moment_take(sim);
	assert(world->moment[world->moments]);
	world->moments++;
}

void world_init(struct world *world, const struct spec *spec, uint64_t sectors,
		const struct sim_options *options, bool record)
{
	memset(world, 0, sizeof(*world));
	pool_set_poison(true);
	world->events = 1;
	world->record = record;
	world->recorded = 1;
	world->sim = sim_new(spec, sectors, options);
	assert(world->sim);
	sim_set_hook(world->sim, on_request, world);
}

void world_record(struct world *world)
{
	if (world->record)
		return;
	world->record = true;
	world->recorded = world->events;
}

void world_fini(struct world *world)
{
	for (uint64_t i = 0; i < world->moments; i++)
		sim_moment_free(world->moment[i]);
	free(world->moment);
	free(world->noted);
	sim_free(world->sim);
}

void world_submit(struct world *world, struct fs *fs, struct fs_op *op)
{
	bool before = world->inside;

	world->inside = true;
	fs_submit(fs, op);
	world->inside = before;
}

void world_drive_until(struct world *world, struct fs *fs, uint64_t until_ns)
{
	uint64_t next, now;

	world->inside = true;
	next = fs_run(fs, 0);
	world->inside = false;
	now = sim_now_ns(world->sim);
	if (sim_next_ns(world->sim) < next)
		next = sim_next_ns(world->sim);
	if (until_ns < next)
		next = until_ns;
	if (next != UINT64_MAX && next > now)
		sim_advance(world->sim, next - now);
}

void world_drive(struct world *world, struct fs *fs)
{
	world_drive_until(world, fs, UINT64_MAX);
}

void world_settle(struct world *world, struct fs *fs, unsigned seconds)
{
	for (unsigned s = 0; s < seconds; s++) {
		const uint64_t end_ns = sim_now_ns(world->sim) + SECOND_NS;

		for (unsigned n = 0; n < TURNS_A_SECOND &&
				     sim_now_ns(world->sim) < end_ns; n++)
			world_drive_until(world, fs, end_ns);
	}
}

static void call_done(struct fs_op *op)
{
	*(bool *)op->owner = true;
}

int world_call(struct fs *fs, struct world *world, struct fs_op *op)
{
	bool done = false;

	op->done = call_done;
	op->owner = &done;
	world_submit(world, fs, op);
	for (unsigned i = 0; !done; i++) {
		assert(i < 10000000 && "the file system hangs");
		world_drive(world, fs);
	}
	return op->rc;
}

uint64_t world_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

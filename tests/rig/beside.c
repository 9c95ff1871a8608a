/*
 * beside.c - see beside.h.
 */
#include "tests/rig/beside.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "move/move_internal.h"
#include "tests/rig/oracle_model.h"
#include "tree/tree_internal.h"

#define FILES 1000u
#define VALUE_BYTES 1500u	/* of an attribute: ten of these fill a leaf */
#define SHORT_BYTES 40u		/* of one that has become short */
#define LONG_PART 12u		/* one value of so many is long while the tree
				 * shrinks */
#define PHASE 12u		/* turns of work until it grows or shrinks */
#define CHANGES 150u		/* in one turn of work */
#define GATHER_TURNS 100u	/* most turns that a turn of work waits for a
				 * checkpoint */
#define MOVE_TURNS 200u		/* most turns of the mover at a time */
#define MAX_TURNS 10000000u	/* turns after which the test fails */
#define NAME "user.beside"

/* The versions that were durable when the next event had this number. */
struct synced {
	uint64_t event;
	unsigned version[FILES];
};

/* The numbers of the first event of a checkpoint that brings leaves together,
 * and of the first one behind it. */
struct gathering {
	uint64_t first, end;
};

struct beside {
	uint64_t rng;
	struct beside_kinds kinds;
	struct fs *fs;
	struct world *world;
	struct moves *mover;	/* NULL: no moves */
	uint64_t dir;
	/* The newest version (an odd one is short), and how far it is from that
	 * which was not refused: what was refused may be there or not. */
	unsigned version[FILES], unsure[FILES];
	struct synced *synced;
	size_t syncs;
	struct gathering *gathering;
	size_t gatherings;
	struct waiter waiter;	/* for the checkpoint */
	bool waiting;
	unsigned turns;
	uint64_t slots;		/* of all node tracks, when looked last */
	uint64_t spilled, begun, gathered, lined, given_back;
};

struct beside *beside_new(uint64_t seed, const struct beside_kinds *kinds)
{
	struct beside *b = calloc(1, sizeof(*b));

	assert(b);
	b->rng = seed;
	b->kinds = *kinds;
	/* Nothing is older than what beside_make has made. */
	b->synced = calloc(1, sizeof(*b->synced));
	assert(b->synced);
	b->syncs = 1;
	return b;
}

void beside_free(struct beside *b)
{
	free(b->gathering);
	free(b->synced);
	free(b);
}

static bool has_files(const struct beside *b)
{
	return b->kinds.spills || b->kinds.gathers;
}

/* ---- Operations, one at a time ---- */

static void call_done(struct fs_op *op)
{
	*(bool *)op->owner = true;
}

/* Runs one operation.  No other time passes, or there would be a checkpoint
 * between any two operations. */
static int call(struct beside *b, struct fs_op *op)
{
	bool done = false;

	op->done = call_done;
	op->owner = &done;
	world_submit(b->world, b->fs, op);
	for (unsigned i = 0; !done; i++) {
		assert(i < MAX_TURNS && "the file system hangs");
		b->world->inside = true;
		fs_run(b->fs, 0);
		b->world->inside = false;
		if (!done)
			world_drive(b->world, b->fs);
	}
	return op->rc;
}

/* ---- Files with attributes ---- */

/* Returns its length. */
static size_t value_make(unsigned file, unsigned version, uint8_t *value)
{
	memset(value, (int)(file * 7 + version * 31), VALUE_BYTES);
	memcpy(value, &file, sizeof(file));
	memcpy(value + sizeof(file), &version, sizeof(version));
	return version % 2 ? SHORT_BYTES : VALUE_BYTES;
}

static void file_forget(struct beside *b, uint64_t ino)
{
	struct fs_op op = { .type = FS_FORGET, .ino = ino, .size = 1 };

	call(b, &op);
}

static int file_find(struct beside *b, unsigned file, uint64_t *ino)
{
	char name[16];
	struct fs_op op = { .type = FS_LOOKUP, .ino = b->dir, .name = name };
	int rc;

	snprintf(name, sizeof(name), "f%u", file);
	rc = call(b, &op);
	*ino = op.attr.ino;
	return rc;
}

static int file_set(struct beside *b, uint64_t ino, unsigned file,
		    unsigned version)
{
	uint8_t value[VALUE_BYTES];
	struct fs_op op = { .type = FS_SETXATTR, .ino = ino, .name2 = NAME,
			    .data = value };

	op.size = value_make(file, version, value);
	return call(b, &op);
}

static void file_change(struct beside *b, unsigned file, bool is_short)
{
	unsigned before = b->version[file];
	uint64_t ino;

	if (file_find(b, file, &ino))
		return;
	b->version[file] = (before / 2 + 1) * 2 + is_short;
	b->unsure[file] += b->version[file] - before;
	if (!file_set(b, ino, file, b->version[file]))
		b->unsure[file] = 0;
	file_forget(b, ino);
}

static void sync_all(struct beside *b)
{
	struct fs_op op = { .type = FS_SYNCFS, .ino = TRAX_ROOT };
	struct synced *s;

	if (call(b, &op))
		return;
	s = realloc(b->synced, (b->syncs + 1) * sizeof(*s));
	assert(s);
	b->synced = s;
	s += b->syncs++;
	s->event = b->world->events;
	for (unsigned i = 0; i < FILES; i++)
		s->version[i] = b->version[i] - b->unsure[i];
}

void beside_make(struct beside *b, struct fs *fs, struct world *world)
{
	struct fs_op sync = { .type = FS_SYNCFS, .ino = TRAX_ROOT };
	struct fs_op dir = { .type = FS_MKDIR, .ino = TRAX_ROOT,
			     .name = "beside", .mode = S_IFDIR | 0755 };
	char name[16];

	if (!has_files(b))
		return;
	b->fs = fs;
	b->world = world;
	if (call(b, &dir))
		abort();
	b->dir = dir.attr.ino;
	for (unsigned i = 0; i < FILES; i++) {
		struct fs_op op = { .type = FS_MKNOD, .ino = b->dir,
				    .name = name, .mode = S_IFREG | 0644 };

		snprintf(name, sizeof(name), "f%u", i);
		if (call(b, &op) ||
		    file_set(b, op.attr.ino, i, 0))
			abort();
		file_forget(b, op.attr.ino);
	}
	file_forget(b, b->dir);
	if (call(b, &sync))
		abort();
}

static const char *value_verify(struct beside *b, uint64_t ino, unsigned file,
				unsigned first, unsigned last)
{
	uint8_t got[VALUE_BYTES], want[VALUE_BYTES];
	struct fs_op op = { .type = FS_GETXATTR, .ino = ino, .name2 = NAME,
			    .buffer = got, .size = VALUE_BYTES };
	unsigned version;

	if (call(b, &op) || op.result < SHORT_BYTES)
		return "an attribute cannot be read";
	memcpy(&version, got + sizeof(file), sizeof(version));
	if (op.result != value_make(file, version, want) ||
	    memcmp(got, want, op.result))
		return "an attribute never had this value";
	return version < first || version > last ?
		       "an attribute has a value of another time" : NULL;
}

const char *beside_verify(struct beside *b, struct fs *fs, struct world *world,
			  uint64_t event)
{
	struct fs_op dir = { .type = FS_LOOKUP, .ino = TRAX_ROOT,
			     .name = "beside" };
	const struct synced *s = b->synced + b->syncs;
	const char *wrong = NULL;

	if (!has_files(b))
		return NULL;
	b->fs = fs;
	b->world = world;
	do
		s--;
	while (s->event > event);
	if (call(b, &dir))
		return "a directory is gone";
	for (unsigned i = 0; i < FILES && !wrong; i++) {
		const unsigned first = event == UINT64_MAX ?
			b->version[i] - b->unsure[i] : s->version[i];
		uint64_t ino;

		if (file_find(b, i, &ino))
			return "a file is gone";
		wrong = value_verify(b, ino, i, first, b->version[i]);
		file_forget(b, ino);
	}
	file_forget(b, dir.attr.ino);
	return wrong;
}

/* ---- Work ---- */

void beside_open(struct beside *b, struct fs *fs, struct world *world)
{
	struct fs_op dir = { .type = FS_LOOKUP, .ino = TRAX_ROOT,
			     .name = "beside" };

	b->fs = fs;
	b->world = world;
	if (has_files(b) && call(b, &dir))
		abort();
	b->dir = dir.attr.ino;
	if (!b->kinds.moves)
		return;
	if (moves_open(fs, &b->mover))
		abort();
	/* Old or young, wherever there is room: one after the other. */
	b->mover->limits = (struct move_limits){ -1, 1, 100, 1, 0,
						   true };
}

static void drive_gather(struct beside *b, uint64_t turns)
{
	for (uint64_t i = 0; i < turns && b->waiting; i++) {
		assert(i < MAX_TURNS && "the file system hangs");
		world_drive(b->world, b->fs);
	}
}

/* Notes what has happened so far. */
static void look(struct beside *b)
{
	struct moves_status status;
	struct tree_stats stats;

	tree_get_stats(b->fs->tree, &stats);
	b->spilled = stats.spills;
	b->gathered = stats.gathered;
	b->lined = stats.lined;
	if (!b->mover)
		return;
	moves_get_status(b->mover, &status);
	b->begun = status.begun;
}

void beside_close(struct beside *b)
{
	drive_gather(b, UINT64_MAX);
	look(b);
	if (has_files(b))
		file_forget(b, b->dir);
	if (!b->mover)
		return;
	moves_close(b->mover);
	b->mover = NULL;
}

static void work_moves(struct beside *b)
{
	for (uint64_t n = world_random(&b->rng) % MOVE_TURNS; n; n--) {
		b->world->inside = true;
		moves_run(b->mover);
		b->world->inside = false;
		world_drive(b->world, b->fs);
	}
}

static void evict(struct buffer_cache *buffers)
{
	while (!list_empty(&buffers->lru))
		buffer_put(buffers, list_first(&buffers->lru, struct buffer,
					       link));
}

static void work_spills(struct beside *b)
{
	struct tree *tree = b->fs->tree;

	for (unsigned i = 0; i < CHANGES; i++)
		file_change(b, world_random(&b->rng) % FILES, false);
	tree->ckpt.pressed = true;
	do
		world_drive(b->world, b->fs);
	while (tree->ckpt.phase == CKPT_SPILLING);
	evict(tree->buffers);
	if (world_random(&b->rng) % 4 == 0)
		sync_all(b);
}

static void gather_over(struct waiter *waiter, int rc)
{
	struct beside *b = container_of(waiter, struct beside, waiter);
	const uint64_t slots = space_slots_total(tree_space(b->fs->tree));

	(void)rc;
	b->given_back += slots < b->slots;
	b->slots = slots;
	b->waiting = false;
	b->gathering[b->gatherings - 1].end = b->world->events;
}

/* What moves do when they are over. */
static void gather_begin(struct beside *b)
{
	struct gathering *g = realloc(b->gathering,
				      (b->gatherings + 1) * sizeof(*g));

	assert(g);
	b->gathering = g;
	g[b->gatherings++] = (struct gathering){ b->world->events, UINT64_MAX };
	b->waiter = (struct waiter){ .done = gather_over };
	list_init(&b->waiter.link);
	b->waiting = true;
	tree_gather(b->fs->tree);
	tree_checkpoint(b->fs->tree, &b->waiter);
}

/* Changes many leaves or few, and brings leaves together; often it goes on
 * beside the clients.  The next changes are beside that, too. */
static void work_gathers(struct beside *b)
{
	const uint64_t changes = world_random(&b->rng) % CHANGES;
	const bool shrinks = b->turns++ / PHASE % 2 == 0;

	for (uint64_t i = 0; i < changes; i++)
		file_change(b, world_random(&b->rng) % FILES,
			    shrinks && world_random(&b->rng) % LONG_PART);
	if (!b->waiting)
		gather_begin(b);
	drive_gather(b, world_random(&b->rng) % GATHER_TURNS);
	if (world_random(&b->rng) % 4 == 0)
		evict(b->fs->tree->buffers);
	if (world_random(&b->rng) % 4 == 0)
		sync_all(b);
}

void beside_work(struct beside *b)
{
	if (b->kinds.moves)
		work_moves(b);
	if (b->kinds.spills)
		work_spills(b);
	if (b->kinds.gathers)
		work_gathers(b);
	look(b);
}

bool beside_gathers_at(const struct beside *b, uint64_t event)
{
	for (size_t i = 0; i < b->gatherings; i++)
		if (event >= b->gathering[i].first &&
		    event < b->gathering[i].end)
			return true;
	return false;
}

void beside_print(const struct beside *b)
{
	if (b->kinds.moves || b->kinds.spills || b->kinds.gathers)
		printf("%lu moves begun, %lu times leaves were written, "
		       "%lu leaves brought together, %lu lined up, "
		       "%lu times node tracks were given back; ",
		       (long)b->begun, (long)b->spilled, (long)b->gathered,
		       (long)b->lined, (long)b->given_back);
}

const char *beside_idle(const struct beside *b)
{
	if (b->kinds.moves && !b->begun)
		return "no move was begun";
	if (b->kinds.spills && !b->spilled)
		return "no leaf was written because memory is short";
	if (b->kinds.gathers && (!b->gathered || !b->lined))
		return "no leaves were brought together and lined up";
	if (b->kinds.gathers && !b->given_back)
		return "no node track was given back";
	return NULL;
}

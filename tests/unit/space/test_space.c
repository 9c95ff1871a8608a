/*
 * test_space.c - src/space against a model that keeps a state for each cell
 * of 4096 sectors and each node slot, through random changes, cuts, roots that
 * become durable, groups loaded meanwhile, and crashes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "space/space.h"
#include "tests/rig/test.h"

/* One run at a time. */
static void make_durable(struct space *s, uint64_t gen)
{
	space_durable(s, gen);
	while (space_release_some(s, 1))
		;
}

#define CELL 4096u
#define GROUP_CELLS (TRAX_GROUP_SECTORS / CELL)
#define CELLS (2 * GROUP_CELLS + 40)
#define TAIL 1000u			/* the last cell is shorter */
#define SECTORS ((uint64_t)(CELLS - 1) * CELL + TAIL)
#define GROUPS 3u
#define SLOTS (CELL / TRAX_NODE_SECTORS)

/* ---- The model ---- */

struct cell {
	uint8_t owner;		/* enum owner_kind or 0 */
	bool taken;
	uint64_t pending;	/* generation, 0: not */
	bool tree[SLOTS];
	uint64_t slot_gen[SLOTS];	/* taken in */
	uint64_t slot_pending[SLOTS];
};

struct model {
	struct cell cell[CELLS];
	bool loaded[GROUPS], loading[GROUPS];
	unsigned cursor[GROUPS];	/* cell */
	uint64_t gen;
	uint64_t reserved;		/* slots */
};

struct image {			/* a root and what the model was */
	struct model model;
	void *payload;
	uint32_t map, table;
};

struct run {
	struct space *space;
	struct model m;
	struct image durable, cut;	/* cut: being written if payload */
	uint64_t rng;
};

static uint64_t cell_sectors(unsigned first, unsigned n)
{
	return first + n == CELLS ? (uint64_t)(n - 1) * CELL + TAIL :
				    (uint64_t)n * CELL;
}

static bool cell_is_free(const struct cell *c)
{
	return !c->owner && !c->taken && !c->pending;
}

static unsigned pick(struct run *r, unsigned n)
{
	return (unsigned)(test_random(&r->rng) % n);
}

/* ---- Comparing ---- */

static void check_free_set(const struct run *r)
{
	const struct rangeset *set = space_free_set(r->space);

	for (unsigned i = 0; i < CELLS; i++) {
		const bool is_free = cell_is_free(&r->m.cell[i]) &&
				     r->m.loaded[i / GROUP_CELLS];
		const uint64_t n = cell_sectors(i, 1);

		if (is_free)
			ck_assert(rangeset_has(set, (uint64_t)i * CELL, n));
		else
			ck_assert(!rangeset_meets(set, (uint64_t)i * CELL,
						  n));
	}
}

static void check_groups(const struct run *r)
{
	struct space_counts counts;
	uint64_t free = 0, pending = 0;

	for (unsigned g = 0; g < GROUPS; g++) {
		uint64_t in_group = 0, run = 0, largest = 0;

		for (unsigned i = g * GROUP_CELLS;
		     i < (g + 1) * GROUP_CELLS && i < CELLS; i++) {
			const struct cell *c = &r->m.cell[i];
			const uint64_t n = cell_sectors(i, 1);

			in_group += c->owner ? 0 : n;
			pending += c->pending ? n : 0;
			run = cell_is_free(c) ? run + n : 0;
			largest = run > largest ? run : largest;
		}
		ck_assert_uint_eq(space_group_free(r->space, g), in_group);
		ck_assert(space_group_loaded(r->space, g) == r->m.loaded[g]);
		if (r->m.loaded[g])
			ck_assert_uint_eq(space_group_largest(r->space, g),
					  largest);
		ck_assert_uint_ge(space_group_largest(r->space, g), largest);
		ck_assert_uint_eq(space_group_next(r->space, g, largest), g);
		free += in_group;
	}
	space_count(r->space, &counts);
	ck_assert_uint_eq(counts.free - counts.replicas, free);
	ck_assert_uint_eq(counts.pending, pending);
}

static bool slot_is_busy(const struct cell *c, unsigned slot)
{
	return c->tree[slot] || c->slot_pending[slot];
}

static void check_slots(const struct run *r)
{
	uint64_t total = 0, busy = 0;

	for (unsigned i = 0; i < CELLS; i++) {
		const struct cell *c = &r->m.cell[i];

		if (c->owner != OWNER_NODES)
			continue;
		total += SLOTS;
		for (unsigned k = 0; k < SLOTS; k++) {
			busy += slot_is_busy(c, k);
			ck_assert(space_slot_used(r->space,
						  (uint64_t)i * CELL +
						  k * TRAX_NODE_SECTORS) ==
				  c->tree[k]);
		}
	}
	ck_assert_uint_eq(space_slots_total(r->space), total);
	ck_assert_uint_eq(space_slots_free(r->space),
			  total - busy - r->m.reserved);
}

static void check_all(const struct run *r)
{
	check_free_set(r);
	check_groups(r);
	check_slots(r);
}

/* ---- Steps ---- */

/* A random run of cells that fits(); returns its length, 0: none found. */
static unsigned find_run(struct run *r, unsigned *first,
			 bool (*fits)(const struct run *r, unsigned i))
{
	const unsigned max = 1 + pick(r, 20);
	unsigned n = 0;

	*first = pick(r, 4) ? pick(r, CELLS) : GROUP_CELLS - 1 - pick(r, 6);
	while (n < max && *first + n < CELLS && fits(r, *first + n))
		n++;
	return n;
}

static bool fits_take(const struct run *r, unsigned i)
{
	return r->m.loaded[i / GROUP_CELLS] && cell_is_free(&r->m.cell[i]);
}

static bool fits_taken(const struct run *r, unsigned i)
{
	return r->m.cell[i].taken;
}

static bool fits_owned(const struct run *r, unsigned i)
{
	return r->m.cell[i].owner == OWNER_DATA;
}

static bool fits_replica(const struct run *r, unsigned i)
{
	return r->m.cell[i].owner == OWNER_REPLICA;
}

/* As replay does: nobody has taken it, nobody has looked at the group. */
static bool fits_unknown(const struct run *r, unsigned i)
{
	const unsigned g = i / GROUP_CELLS;

	return !r->m.loaded[g] && !r->m.loading[g] &&
	       cell_is_free(&r->m.cell[i]);
}

static void set_owner(struct run *r, unsigned first, unsigned n,
		      enum owner_kind kind)
{
	ck_assert_int_eq(space_owner_put(r->space, (uint64_t)first * CELL,
					 cell_sectors(first, n), kind), 0);
	for (unsigned i = first; i < first + n; i++) {
		r->m.cell[i].owner = (uint8_t)kind;
		r->m.cell[i].taken = false;
		r->m.cell[i].pending = 0;
	}
}

static void unset_owner(struct run *r, unsigned first, unsigned n,
			enum owner_kind kind)
{
	ck_assert_int_eq(space_owner_del(r->space, (uint64_t)first * CELL,
					 cell_sectors(first, n), kind), 0);
	if (kind == OWNER_REPLICA) {
		ck_assert_uint_eq(space_cover_dropped(r->space),
				  cell_sectors(first, n));
		space_release_dropped(r->space);
	}
	for (unsigned i = first; i < first + n; i++) {
		r->m.cell[i].owner = 0;
		r->m.cell[i].pending = kind == OWNER_REPLICA ? 0 : r->m.gen;
	}
}

static void step_take(struct run *r)
{
	unsigned first, n = find_run(r, &first, fits_take);

	if (!n)
		return;
	ck_assert_int_eq(space_take(r->space, (uint64_t)first * CELL,
				    cell_sectors(first, n)), 0);
	for (unsigned i = first; i < first + n; i++)
		r->m.cell[i].taken = true;
}

/* What is not free is never handed out, whoever asks. */
static void step_take_wrong(struct run *r)
{
	const unsigned i = pick(r, CELLS);

	if (!fits_take(r, i))
		ck_assert_int_eq(space_take(r->space, (uint64_t)i * CELL, 1),
				 -ENOSPC);
}

static void step_put(struct run *r)
{
	static const enum owner_kind kinds[] = {
		OWNER_DATA, OWNER_DATA, OWNER_REPLICA,
	};
	unsigned first, n = find_run(r, &first, fits_taken);

	if (n)
		set_owner(r, first, n, kinds[pick(r, 3)]);
}

static void step_put_unknown(struct run *r)
{
	unsigned first, n = find_run(r, &first, fits_unknown);

	if (n)
		set_owner(r, first, n, OWNER_DATA);
}

static void step_give_back(struct run *r)
{
	unsigned first, n = find_run(r, &first, fits_taken);

	if (!n)
		return;
	space_give_back(r->space, (uint64_t)first * CELL,
			cell_sectors(first, n));
	for (unsigned i = first; i < first + n; i++)
		r->m.cell[i].taken = false;
}

static void step_del(struct run *r)
{
	unsigned first, n = find_run(r, &first, fits_owned);

	if (n)
		unset_owner(r, first, n, OWNER_DATA);
	n = find_run(r, &first, fits_replica);
	if (n)
		unset_owner(r, first, n, OWNER_REPLICA);
}

/* An owner item that is replaced by a longer or shorter one. */
static void step_rewrite(struct run *r)
{
	unsigned first, n = find_run(r, &first, fits_owned);

	if (!n)
		return;
	unset_owner(r, first, n, OWNER_DATA);
	set_owner(r, first, 1 + pick(r, n), OWNER_DATA);
}

static void step_contradict(struct run *r)
{
	const unsigned i = pick(r, CELLS), g = i / GROUP_CELLS;
	const struct cell *c = &r->m.cell[i];

	if (!r->m.loaded[g])
		return;
	if (c->owner)
		ck_assert_int_eq(space_owner_put(r->space, (uint64_t)i * CELL,
						 1, OWNER_DATA), -EUCLEAN);
	else
		ck_assert_int_eq(space_owner_del(r->space, (uint64_t)i * CELL,
						 1, OWNER_DATA), -EUCLEAN);
}

/* ---- Loading groups ---- */

/* Feeds the first owner that ends after the cursor; a gap before it is taken in
 * at once, in part, or not before. */
static void load_feed(struct run *r, unsigned g)
{
	const unsigned end = g == GROUPS - 1 ? CELLS : (g + 1) * GROUP_CELLS;
	unsigned i = r->m.cursor[g], n = 0;

	while (i < end && !r->m.cell[i].owner)
		i++;
	if (space_load_gap(r->space, g, (uint64_t)i * CELL, pick(r, 4)))
		return;
	if (i == end) {
		ck_assert_int_eq(space_load_end(r->space, g), 0);
		r->m.loading[g] = false;
		r->m.loaded[g] = true;
		return;
	}
	if (i == g * GROUP_CELLS)	/* it began in the group before */
		while (i && r->m.cell[i - 1].owner)
			i--;
	while (i + n < CELLS && r->m.cell[i + n].owner)
		n++;
	ck_assert_int_eq(space_load_feed(r->space, g, (uint64_t)i * CELL,
					 cell_sectors(i, n)), 0);
	r->m.cursor[g] = i + n;
}

static void step_load(struct run *r)
{
	const unsigned g = pick(r, GROUPS);

	if (r->m.loaded[g])
		return;
	if (!r->m.loading[g]) {
		ck_assert_int_eq(space_load_begin(r->space, g), 0);
		r->m.loading[g] = true;
		r->m.cursor[g] = g * GROUP_CELLS;
	} else if (pick(r, 50) == 0) {
		space_load_abort(r->space, g);
		r->m.loading[g] = false;
	} else {
		load_feed(r, g);
	}
}

/* ---- Node slots ---- */

static void step_node_track(struct run *r)
{
	unsigned first, n = find_run(r, &first, fits_taken);

	if (n && first != CELLS - 1 && pick(r, 4) == 0)
		set_owner(r, first, 1, OWNER_NODES);
}

static void step_node_track_del(struct run *r)
{
	const unsigned i = pick(r, CELLS);
	const struct cell *c = &r->m.cell[i];
	unsigned busy = 0;

	if (c->owner != OWNER_NODES)
		return;
	for (unsigned k = 0; k < SLOTS; k++)
		busy += slot_is_busy(c, k);
	if (busy)
		ck_assert_int_eq(space_owner_del(r->space, (uint64_t)i * CELL,
						 CELL, OWNER_NODES),
				 -EUCLEAN);
	else if (space_slots_free(r->space) >= SLOTS)
		unset_owner(r, i, 1, OWNER_NODES);
}

static unsigned track_free_slots(const struct cell *c)
{
	unsigned n = 0;

	for (unsigned k = 0; k < SLOTS; k++)
		n += c->owner == OWNER_NODES && !slot_is_busy(c, k);
	return n;
}

static void step_slot_take(struct run *r)
{
	const unsigned want = 1 + pick(r, 30), at = pick(r, CELLS);
	const bool apart = pick(r, 4) == 0;
	const traxaddr near = (uint64_t)at * CELL + 32 * pick(r, SLOTS);

	if (!space_slots_reserve(r->space, want)) {
		ck_assert_uint_lt(space_slots_free(r->space), want);
		return;
	}
	r->m.reserved += want;
	for (unsigned i = 0; i < want; i++) {
		const unsigned here = track_free_slots(&r->m.cell[at]);
		const traxaddr a = space_slot_take(r->space, near, apart);
		struct cell *c = &r->m.cell[a / CELL];
		const unsigned k = (unsigned)(a % CELL / TRAX_NODE_SECTORS);

		ck_assert_uint_eq(a % TRAX_NODE_SECTORS, 0);
		ck_assert_int_eq(c->owner, OWNER_NODES);
		ck_assert(!slot_is_busy(c, k));
		if (here && near && !apart)
			ck_assert_uint_eq(a / CELL, at);
		c->tree[k] = true;
		c->slot_gen[k] = r->m.gen;
		r->m.reserved--;
	}
}

static void step_slot_free(struct run *r)
{
	struct cell *c = &r->m.cell[pick(r, CELLS)];
	const uint64_t at = (uint64_t)(c - r->m.cell) * CELL;

	if (c->owner != OWNER_NODES)
		return;
	for (unsigned k = pick(r, SLOTS); k < SLOTS; k += 1 + pick(r, 9)) {
		if (!c->tree[k])
			continue;
		space_slot_free(r->space, at + k * TRAX_NODE_SECTORS,
				c->slot_gen[k]);
		c->tree[k] = false;
		if (c->slot_gen[k] != r->m.gen)
			c->slot_pending[k] = r->m.gen;
	}
}

/* ---- Generations ---- */

/* What a mount from the root that is cut now would find. */
static void model_settle(struct model *m)
{
	for (unsigned i = 0; i < CELLS; i++) {
		m->cell[i].taken = false;
		m->cell[i].pending = 0;
		memset(m->cell[i].slot_pending, 0,
		       sizeof(m->cell[i].slot_pending));
	}
	memset(m->loaded, 0, sizeof(m->loaded));
	memset(m->loading, 0, sizeof(m->loading));
	m->reserved = 0;
	m->gen++;
}

static void step_cut(struct run *r)
{
	struct image *c = &r->cut;

	if (c->payload)
		return;
	c->model = r->m;
	model_settle(&c->model);
	ck_assert_int_eq(space_cut(r->space, &c->payload, &c->map, &c->table),
			 0);
	r->m.gen++;
	ck_assert_uint_eq(space_gen(r->space), r->m.gen);
}

static void step_durable(struct run *r)
{
	const uint64_t gen = r->m.gen - 1;

	if (!r->cut.payload)
		return;
	make_durable(r->space, gen);
	free(r->durable.payload);
	r->durable = r->cut;
	r->cut.payload = NULL;
	for (unsigned i = 0; i < CELLS; i++) {
		struct cell *c = &r->m.cell[i];

		if (c->pending <= gen)
			c->pending = 0;
		for (unsigned k = 0; k < SLOTS; k++)
			if (c->slot_pending[k] <= gen)
				c->slot_pending[k] = 0;
	}
}

static void step_crash(struct run *r)
{
	const struct image *d = &r->durable;

	if (!d->payload || pick(r, 20))
		return;
	free(r->cut.payload);
	r->cut.payload = NULL;
	space_free(r->space);
	ck_assert_int_eq(space_new(SECTORS, &r->space), 0);
	ck_assert_int_eq(space_load_root(r->space, d->payload, d->map,
					 (char *)d->payload + d->map,
					 d->table), 0);
	r->m = d->model;
	space_set_gen(r->space, r->m.gen);
	check_all(r);
}

/* ---- The property ---- */

static void quiet(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

START_TEST(agrees_with_the_model)
{
	static void (*const steps[])(struct run *) = {
		step_take, step_take, step_take, step_take_wrong, step_put,
		step_put, step_put_unknown, step_give_back, step_del,
		step_del, step_rewrite, step_contradict, step_load, step_load,
		step_node_track, step_node_track_del, step_slot_take,
		step_slot_free, step_slot_free, step_cut, step_durable,
		step_crash,
	};
	static struct run r;

	memset(&r, 0, sizeof(r));
	r.rng = (uint64_t)_i;
	r.m.gen = 1;
	msg_set_sink(quiet, NULL);
	ck_assert_int_eq(space_new(SECTORS, &r.space), 0);
	space_set_gen(r.space, 1);
	for (unsigned i = 0; i < 2500; i++) {
		steps[pick(&r, sizeof(steps) / sizeof(steps[0]))](&r);
		if (i % 16 == 0)
			check_all(&r);
	}
	check_all(&r);
	space_free(r.space);
	free(r.cut.payload);
	free(r.durable.payload);
	msg_set_sink(NULL, NULL);
}
END_TEST

/* ---- Single rules ---- */

static struct space *space_example(uint64_t sectors)
{
	struct space *s;

	ck_assert_int_eq(space_new(sectors, &s), 0);
	space_set_gen(s, 1);
	ck_assert_int_eq(space_load_begin(s, 0), 0);
	ck_assert_int_eq(space_load_end(s, 0), 0);
	return s;
}

START_TEST(reserve_keeps_its_own)
{
	const uint64_t sizes[] = { 32768, 1 << 18, 1 << 21 };

	for (unsigned i = 0; i < 3; i++) {
		struct space *s = space_example(sizes[i]);
		struct space_counts c;

		space_set_fixed(s, 1000);
		space_count(s, &c);
		ck_assert_uint_eq(c.total, sizes[i] - 1000);
		ck_assert_uint_gt(c.own, 0);
		ck_assert_uint_le(c.own, c.total / 32);
		ck_assert_int_eq(space_reserve(s, c.free - c.own + 1),
				 -ENOSPC);
		ck_assert_int_eq(space_reserve(s, c.free - c.own), 0);
		ck_assert_int_eq(space_reserve(s, 1), -ENOSPC);
		space_release(s, 1);
		ck_assert_int_eq(space_reserve(s, 1), 0);
		/* Data that was accepted has a part of it. */
		ck_assert_uint_eq(space_room(s), 0);
		ck_assert_uint_eq(space_room_accepted(s), c.own / 4);
		ck_assert_int_eq(space_reserve_accepted(s, c.own / 4 + 1),
				 -ENOSPC);
		ck_assert_int_eq(space_reserve_accepted(s, c.own / 4), 0);
		ck_assert_uint_eq(space_room_accepted(s), 0);
		ck_assert(space_may_grow(s));
		space_free(s);
	}
}
END_TEST

START_TEST(pending_counts_as_room)
{
	struct space *s = space_example(32768);
	struct space_counts before, after;

	space_count(s, &before);
	ck_assert_int_eq(space_take(s, 100, 1000), 0);
	ck_assert_int_eq(space_owner_put(s, 100, 1000, OWNER_DATA), 0);
	ck_assert_int_eq(space_owner_del(s, 100, 1000, OWNER_DATA), 0);
	space_count(s, &after);
	ck_assert_uint_eq(before.free, after.free);
	ck_assert_uint_eq(after.pending, 1000);
	ck_assert_int_eq(space_take(s, 100, 1), -ENOSPC);
	space_free(s);
}
END_TEST

#define MANY_GROUPS 40u
#define EVERY 4096u	/* sectors, of which one has an owner */
#define RUNS (TRAX_GROUP_SECTORS / EVERY)
#define BUSY_GROUPS 20u

static void load_many(struct space *s, uint32_t g)
{
	const uint64_t low = (uint64_t)g * TRAX_GROUP_SECTORS;
	uint64_t a;

	ck_assert_int_eq(space_load_begin(s, g), 0);
	for (a = low; a < low + TRAX_GROUP_SECTORS; a += EVERY)
		ck_assert_int_eq(space_load_feed(s, g, a, 1), 0);
	ck_assert_int_eq(space_load_end(s, g), 0);
}

/* Free sets beyond the budget are given back, those used the longest ago
 * first, but not where something is taken; what is known of a group stays. */
START_TEST(groups_are_given_back)
{
	const uint64_t sectors = (uint64_t)MANY_GROUPS * TRAX_GROUP_SECTORS;
	struct space *s;
	void *payload;
	uint64_t a;
	uint32_t g, n;

	ck_assert_int_eq(space_new(sectors, &s), 0);
	space_set_gen(s, 1);
	for (a = 0; a < sectors; a += EVERY)
		ck_assert_int_eq(space_owner_put(s, a, 1, OWNER_DATA), 0);
	space_set_budget(s, 20 * RUNS);
	load_many(s, 0);
	ck_assert_int_eq(space_take(s, 5, 3), 0);
	for (g = 1; g < MANY_GROUPS; g++) {
		load_many(s, g);
		ck_assert_uint_le(space_free_set(s)->count, 20 * RUNS);
		ck_assert(space_group_loaded(s, g));
	}
	ck_assert(space_group_loaded(s, 0));
	ck_assert(!space_group_loaded(s, 1));
	ck_assert_uint_eq(space_group_largest(s, 1), EVERY - 1);
	ck_assert(!rangeset_meets(space_free_set(s), TRAX_GROUP_SECTORS,
				  TRAX_GROUP_SECTORS));
	/* An owner goes: the two runs beside it may be one now. */
	a = TRAX_GROUP_SECTORS + 7 * EVERY;
	ck_assert_int_eq(space_owner_del(s, a, 1, OWNER_DATA), 0);
	ck_assert_int_eq(space_cut(s, &payload, &n, &n), 0);
	free(payload);
	make_durable(s, 1);
	ck_assert_uint_ge(space_group_largest(s, 1), 2 * EVERY - 1);
	space_give_back(s, 5, 3);
	ck_assert_int_eq(space_load_begin(s, 1), 0);
	for (uint64_t b = TRAX_GROUP_SECTORS; b < 2 * TRAX_GROUP_SECTORS;
	     b += EVERY)
		if (b != a)
			ck_assert_int_eq(space_load_feed(s, 1, b, 1), 0);
	ck_assert_int_eq(space_load_end(s, 1), 0);
	ck_assert_uint_eq(space_group_largest(s, 1), 2 * EVERY - 1);
	space_free(s);
}
END_TEST

/* A group's set is freed in steps, so none is given back before the last one is
 * gone. */
START_TEST(large_sets_are_freed_in_steps)
{
	const uint64_t sectors = (uint64_t)MANY_GROUPS * TRAX_GROUP_SECTORS;
	struct space *s;
	uint32_t g;

	ck_assert_int_eq(space_new(sectors, &s), 0);
	space_set_gen(s, 1);
	for (g = 0; g < BUSY_GROUPS; g++)
		for (uint64_t a = 0; a < TRAX_GROUP_SECTORS; a += EVERY)
			ck_assert_int_eq(space_owner_put(
				s, (uint64_t)g * TRAX_GROUP_SECTORS + a, 1,
				OWNER_DATA), 0);
	space_set_budget(s, (BUSY_GROUPS - 1) * RUNS);
	for (g = 0; g < BUSY_GROUPS; g++)
		load_many(s, g);
	ck_assert(!space_group_loaded(s, 0));
	/* An empty group feeds nothing, and finds much of the first set. */
	space_set_budget(s, 1);
	ck_assert_int_eq(space_load_begin(s, g), 0);
	ck_assert_int_eq(space_load_end(s, g), 0);
	ck_assert(space_group_loaded(s, 1));
	/* Taking is a step, too. */
	for (unsigned i = 0; i < RUNS; i++)
		ck_assert_int_eq(space_take(s, (uint64_t)g *
					    TRAX_GROUP_SECTORS + i, 1), 0);
	ck_assert_int_eq(space_load_begin(s, g + 1), 0);
	ck_assert_int_eq(space_load_end(s, g + 1), 0);
	ck_assert(!space_group_loaded(s, 1));
	ck_assert(space_group_loaded(s, 2));
	space_free(s);
}
END_TEST

#define PENDING_RUNS 1000u

/* New owners, before, at and behind the sector that the load has reached. */
static void put_and_feed(struct space *s)
{
	static const traxaddr new[] = { 16, 8000, 15984 };

	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(space_owner_put(s, new[i], 8, OWNER_DATA), 0);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(space_load_gap(s, 0, new[i], SIZE_MAX), 0);
		ck_assert_int_eq(space_load_feed(s, 0, new[i], 8), 0);
	}
}

/* Free sectors between thousands of pending runs are taken in by a few at a
 * time, while others come and go. */
START_TEST(a_gap_is_loaded_in_steps)
{
	struct space *s;
	unsigned steps = 0;

	ck_assert_int_eq(space_new(TRAX_GROUP_SECTORS, &s), 0);
	space_set_gen(s, 1);
	for (uint64_t i = 0; i < PENDING_RUNS; i++)
		ck_assert_int_eq(space_owner_put(s, 8 + 16 * i, 8, OWNER_DATA),
				 0);
	for (uint64_t i = 0; i < PENDING_RUNS; i++)
		ck_assert_int_eq(space_owner_del(s, 8 + 16 * i, 8, OWNER_DATA),
				 0);
	ck_assert_int_eq(space_load_begin(s, 0), 0);
	while (space_load_gap(s, 0, TRAX_GROUP_SECTORS, 10) == -EAGAIN)
		if (++steps == PENDING_RUNS / 20)
			put_and_feed(s);
	ck_assert_uint_ge(steps, PENDING_RUNS / 20);
	ck_assert_int_eq(space_load_end(s, 0), 0);
	ck_assert(space_group_loaded(s, 0));
	ck_assert(rangeset_has(space_free_set(s), 0, 8));
	ck_assert_uint_eq(space_free_set(s)->total,
			  TRAX_GROUP_SECTORS - 8 * PENDING_RUNS - 24);
	space_free(s);
}
END_TEST

START_TEST(owner_across_the_cursor)
{
	struct space *s;

	ck_assert_int_eq(space_new(32768, &s), 0);
	space_set_gen(s, 1);
	ck_assert_int_eq(space_owner_put(s, 100, 50, OWNER_DATA), 0);
	ck_assert_int_eq(space_owner_put(s, 150, 20, OWNER_DATA), 0);
	ck_assert_int_eq(space_load_begin(s, 0), 0);
	ck_assert_int_eq(space_load_feed(s, 0, 100, 50), 0);
	/* Both become one item, whose key the scan is past. */
	ck_assert_int_eq(space_owner_del(s, 100, 50, OWNER_DATA), 0);
	ck_assert_int_eq(space_owner_del(s, 150, 20, OWNER_DATA), 0);
	ck_assert_int_eq(space_owner_put(s, 100, 70, OWNER_DATA), 0);
	ck_assert_int_eq(space_load_end(s, 0), 0);
	ck_assert(!rangeset_meets(space_free_set(s), 100, 70));
	ck_assert(rangeset_has(space_free_set(s), 170, 32768 - 170));
	space_free(s);
}
END_TEST

START_TEST(load_refuses_contradictions)
{
	struct space *s;

	msg_set_sink(quiet, NULL);
	ck_assert_int_eq(space_new(32768, &s), 0);
	space_set_gen(s, 1);
	ck_assert_int_eq(space_owner_put(s, 100, 50, OWNER_DATA), 0);
	ck_assert_int_eq(space_load_begin(s, 0), 0);
	ck_assert_int_eq(space_load_feed(s, 0, 100, 50), 0);
	ck_assert_int_eq(space_load_feed(s, 0, 90, 20), -EUCLEAN);
	ck_assert_int_eq(space_load_feed(s, 0, 200, 10), 0);
	ck_assert_int_eq(space_load_end(s, 0), -EUCLEAN);
	ck_assert(!space_group_loaded(s, 0));
	ck_assert_uint_eq(space_free_set(s)->total, 0);
	ck_assert_int_eq(space_owner_put(s, 32760, 9, OWNER_DATA), -EUCLEAN);
	ck_assert_int_eq(space_owner_put(s, addr_make(1, 0), 9, OWNER_DATA),
			 -EUCLEAN);
	ck_assert_int_eq(space_owner_del(s, 0, 32767, OWNER_DATA), -EUCLEAN);
	space_free(s);
	msg_set_sink(NULL, NULL);
}
END_TEST

static int root_try(const void *map, size_t bytes, uint32_t free_n,
		    uint32_t largest)
{
	const struct group_item g = { le32_put(free_n), le32_put(largest) };
	struct space *s;
	int rc;

	ck_assert_int_eq(space_new(32768, &s), 0);
	rc = space_load_root(s, map, bytes, &g, sizeof(g));
	space_free(s);
	return rc;
}

START_TEST(root_refuses_contradictions)
{
	uint8_t map[24] = { 0 };
	struct slot_track a = { le64_put(1024), le16_put(9) };
	struct slot_track b = { le64_put(1024 + 9 * 32), le16_put(8) };

	msg_set_sink(quiet, NULL);
	memcpy(map, &a, 10);
	memcpy(map + 12, &b, 10);
	ck_assert_int_eq(root_try(map, 23, 32768, 0), 0);
	ck_assert_int_eq(root_try(map, 23, 32769, 0), -EUCLEAN);
	ck_assert_int_eq(root_try(map, 23, 32, 33), -EUCLEAN);
	for (size_t cut = 1; cut < 23; cut++)
		ck_assert_int_eq(root_try(map, cut, 32768, 0),
				 cut == 12 ? 0 : -EUCLEAN);
	map[11] = 2;		/* a tenth slot */
	ck_assert_int_eq(root_try(map, 23, 32768, 0), -EUCLEAN);
	map[11] = 1;
	ck_assert_int_eq(root_try(map, 23, 32768, 0), 0);
	b.addr = le64_put(1024 + 8 * 32);	/* overlaps */
	memcpy(map + 12, &b, 10);
	ck_assert_int_eq(root_try(map, 23, 32768, 0), -EUCLEAN);
	b.addr = le64_put(512);			/* not in order */
	memcpy(map + 12, &b, 10);
	ck_assert_int_eq(root_try(map, 23, 32768, 0), -EUCLEAN);
	b.addr = le64_put(32768 - 7 * 32);	/* beyond the end */
	memcpy(map + 12, &b, 10);
	ck_assert_int_eq(root_try(map, 23, 32768, 0), -EUCLEAN);
	b.addr = le64_put(UINT64_MAX);
	memcpy(map + 12, &b, 10);
	ck_assert_int_eq(root_try(map, 23, 32768, 0), -EUCLEAN);
	msg_set_sink(NULL, NULL);
}
END_TEST

START_TEST(slot_freed_twice_is_told)
{
	struct space *s = space_example(32768);
	traxaddr a;

	msg_set_sink(quiet, NULL);
	ck_assert_int_eq(space_take(s, 1024, 1024), 0);
	ck_assert_int_eq(space_owner_put(s, 1024, 1024, OWNER_NODES), 0);
	ck_assert(space_slots_reserve(s, 2));
	a = space_slot_take(s, 0, false);
	space_slot_free(s, a, 0);
	space_slot_free(s, a, 0);
	space_slot_free(s, 5, 0);
	ck_assert_uint_eq(space_slots_free(s), 30);
	space_slots_release(s, 1);
	ck_assert_uint_eq(space_slots_free(s), 31);
	msg_set_sink(NULL, NULL);
	space_free(s);
}
END_TEST

/* Nodes that are written together lie one behind the other, and their mirrors
 * do on another track. */
START_TEST(a_run_of_slots_lies_apart_from_mirrors)
{
	struct space *s = space_example(32768);
	traxaddr run[5], mirror[5];

	for (uint32_t track = 0; track < 2; track++) {
		ck_assert_int_eq(space_take(s, 1024 + track * 2048, 1024), 0);
		ck_assert_int_eq(space_owner_put(s, 1024 + track * 2048, 1024,
						 OWNER_NODES), 0);
	}
	ck_assert(space_slots_reserve(s, 11));
	space_slot_take(s, 0, false);
	for (unsigned i = 0; i < 5; i++) {
		run[i] = space_slot_take_next(s);
		mirror[i] = space_slot_take_mirror(s, run[i]);
		ck_assert_uint_ne(run[i], 0);
		ck_assert_uint_eq(run[i] < 3072, run[0] < 3072);
		ck_assert_uint_ne(run[i] < 3072, mirror[i] < 3072);
		if (i) {
			ck_assert_uint_eq(run[i], run[i - 1] + 32);
			ck_assert_uint_eq(mirror[i], mirror[i - 1] + 32);
		}
	}
	space_free(s);
}
END_TEST

/* Four node tracks of 32 slots. */
static struct space *space_of_nodes(void)
{
	struct space *s = space_example(32768);

	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_int_eq(space_take(s, 1024 + i * 2048, 1024), 0);
		ck_assert_int_eq(space_owner_put(s, 1024 + i * 2048, 1024,
						 OWNER_NODES), 0);
	}
	return s;
}

/* A track that is to go back gives no slot, until they are needed. */
START_TEST(a_track_that_leaves_gives_no_slot)
{
	struct space *s = space_of_nodes();
	struct range track;
	unsigned busy;

	ck_assert(space_slots_reserve(s, 19));
	space_slot_take(s, 1024, false);
	ck_assert(!space_track_leave(s, 97, false));
	ck_assert(space_track_leave(s, 96, false));
	ck_assert(space_track_leaves(s, &track, &busy));
	ck_assert_uint_eq(busy, 0);
	ck_assert_uint_ne(track.first, 1024);
	ck_assert_uint_eq(space_slots_free(s), 3 * 32 - 19);
	for (unsigned i = 0; i < 9; i++) {
		const traxaddr near = track.first + 64;
		traxaddr a = space_slot_take_next(s);

		ck_assert(a < track.first || a >= track.first + track.n);
		a = i % 2 ? space_slot_take(s, near, false) :
			    space_slot_take_mirror(s, near);
		ck_assert(a < track.first || a >= track.first + track.n);
	}
	ck_assert(space_slots_have(s, 77));
	ck_assert(space_track_leaves(s, &track, &busy));
	ck_assert(space_slots_reserve(s, 78));
	ck_assert(!space_track_leaves(s, &track, &busy));
	ck_assert_uint_eq(space_slots_free(s), 4 * 32 - 97);
	space_slots_release(s, 78);
	ck_assert(!space_track_leave(s, 0, false));
	ck_assert_int_eq(space_owner_del(s, track.first, track.n, OWNER_NODES),
			 0);
	ck_assert_uint_eq(space_slots_free(s), 3 * 32 - 19);
	space_free(s);
}
END_TEST

/* A generation may have freed so many that all at once take some ms. */
START_TEST(slots_are_released_in_steps)
{
	struct space *s = space_of_nodes();
	const uint64_t gen = space_gen(s);
	uint32_t map_bytes, group_bytes;
	traxaddr slots[100];
	uint64_t free_n;
	void *payload;

	ck_assert(space_slots_reserve(s, 100));
	for (unsigned i = 0; i < 100; i++)
		slots[i] = space_slot_take(s, 1024, false);
	ck_assert_int_eq(space_cut(s, &payload, &map_bytes, &group_bytes), 0);
	free(payload);
	for (unsigned i = 0; i < 100; i++)
		space_slot_free(s, slots[i], gen);
	ck_assert_int_eq(space_cut(s, &payload, &map_bytes, &group_bytes), 0);
	free(payload);
	free_n = space_slots_free(s);
	space_durable(s, gen + 1);
	for (unsigned step = 0; step < 6; step++) {
		ck_assert(space_release_some(s, 1));
		ck_assert_uint_eq(space_slots_free(s),
				  free_n + (step + 1) * 16);
	}
	make_durable(s, gen + 1);
	ck_assert_uint_eq(space_slots_free(s), free_n + 100);
	space_free(s);
}
END_TEST

/* The free slots of tracks on which a write has failed. */
START_TEST(failed_slots_are_counted)
{
	struct space *s = space_of_nodes();
	struct range track;
	traxaddr a;

	ck_assert(space_slots_reserve(s, 3));
	a = space_slot_take(s, 1024, false);
	for (unsigned twice = 0; twice < 2; twice++)
		space_slot_written(s, a, false);
	ck_assert_uint_eq(space_slots_failed(s), 31);
	space_slot_free(s, a, space_gen(s));
	ck_assert_uint_eq(space_slots_failed(s), 32);
	ck_assert(space_track_leave_unused(s, 1024));
	ck_assert_uint_eq(space_slots_failed(s), 0);
	space_track_stay(s);
	ck_assert_uint_eq(space_slots_failed(s), 32);
	space_slot_written(s, 3072, false);
	ck_assert_uint_eq(space_slots_failed(s), 64);
	space_slot_written(s, 1024, true);
	ck_assert_uint_eq(space_slots_failed(s), 32);
	/* Only where all have failed is one of them taken. */
	space_slot_written(s, 1024, false);
	space_slot_written(s, 5120, false);
	space_slot_written(s, 7168, false);
	a = space_slot_take(s, 3072, false);
	ck_assert_uint_eq(space_slots_failed(s), 127);
	ck_assert(space_track_leave(s, 0, false));
	ck_assert_uint_eq(space_slots_failed(s), 95);
	track = (struct range){ 0, 0 };
	ck_assert(space_track_leaves(s, &track, &(unsigned){ 0 }));
	ck_assert_int_eq(space_owner_del(s, track.first, track.n, OWNER_NODES),
			 0);
	ck_assert_uint_eq(space_slots_failed(s), 95);
	space_free(s);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("space");
	TCase *tc = tcase_create("space");

	tcase_add_loop_test(tc, agrees_with_the_model, 0, 8);
	tcase_add_test(tc, reserve_keeps_its_own);
	tcase_add_test(tc, pending_counts_as_room);
	tcase_add_test(tc, groups_are_given_back);
	tcase_add_test(tc, large_sets_are_freed_in_steps);
	tcase_add_test(tc, a_gap_is_loaded_in_steps);
	tcase_add_test(tc, owner_across_the_cursor);
	tcase_add_test(tc, a_track_that_leaves_gives_no_slot);
	tcase_add_test(tc, slots_are_released_in_steps);
	tcase_add_test(tc, failed_slots_are_counted);
	tcase_add_test(tc, load_refuses_contradictions);
	tcase_add_test(tc, root_refuses_contradictions);
	tcase_add_test(tc, slot_freed_twice_is_told);
	tcase_add_test(tc, a_run_of_slots_lies_apart_from_mirrors);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return test_run(suite());
}

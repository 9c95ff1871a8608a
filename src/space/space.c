/*
 * space.c - generations and roots.
 *
 * What is freed in generation g waits in pending[g % PENDING_GENS] until the
 * root of g is durable.  A cut saves the state as it will be when all that is
 * pending has become free, which is what the root's tree says.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/msg.h"
#include "space/space_internal.h"

static struct space_group group_unused(const struct space *s, uint32_t group)
{
	return (struct space_group){
		.free = group_sectors(s, group),
		.largest = group_sectors(s, group),
		.misfit = { UINT32_MAX, UINT32_MAX },
	};
}

static size_t blocks_of(uint64_t groups)
{
	return (groups + BLOCK_GROUPS - 1) / BLOCK_GROUPS;
}

int space_new(uint64_t sectors, struct space **space)
{
	const uint64_t groups = (sectors + TRAX_GROUP_SECTORS - 1) /
				TRAX_GROUP_SECTORS;
	struct space *s;

	if (!sectors || groups > UINT32_MAX)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->group = calloc(groups, sizeof(*s->group));
	s->block = calloc(blocks_of(groups), sizeof(*s->block));
	if (!s->group || !s->block) {
		free(s->group);
		free(s->block);
		free(s);
		return -ENOMEM;
	}
	s->sectors = s->free_total = sectors;
	s->groups = (uint32_t)groups;
	for (uint32_t g = 0; g < s->groups; g++)
		s->group[g] = group_unused(s, g);
	blocks_renew(s);
	rangeset_init(&s->free);
	rangeset_init(&s->taken);
	rangeset_init(&s->unloaded);
	list_init(&s->loads);
	for (unsigned i = 0; i < PENDING_GENS; i++)
		rangeset_init(&s->pending[i].sectors);
	rangeset_init(&s->dropped);
	rangeset_init(&s->covered);
	*space = s;
	return 0;
}

static void slots_forget(struct pending *p)
{
	free(p->slots);
	p->slots = NULL;
	p->slots_n = p->slots_room = 0;
}

void space_free(struct space *s)
{
	if (!s)
		return;
	while (!list_empty(&s->loads))
		space_load_abort(s, list_first(&s->loads, struct space_load,
					       link)->group);
	for (unsigned i = 0; i < PENDING_GENS; i++) {
		rangeset_fini(&s->pending[i].sectors);
		slots_forget(&s->pending[i]);
	}
	rangeset_fini(&s->free);
	rangeset_fini(&s->taken);
	rangeset_fini(&s->unloaded);
	rangeset_fini(&s->dropped);
	rangeset_fini(&s->covered);
	slots_clear(s);
	free(s->group);
	free(s->block);
	free(s);
}

int space_grow(struct space *s, uint64_t sectors)
{
	const uint64_t groups = (sectors + TRAX_GROUP_SECTORS - 1) /
				TRAX_GROUP_SECTORS;
	const uint32_t last = s->groups - 1, had = group_sectors(s, last);
	struct space_group *group;
	uint32_t *block;

	assert(sectors >= s->sectors && !s->loaded && list_empty(&s->loads));
	if (groups > UINT32_MAX)
		return -EINVAL;
	group = realloc(s->group, groups * sizeof(*group));
	if (!group)
		return -ENOMEM;
	s->group = group;
	block = realloc(s->block, blocks_of(groups) * sizeof(*block));
	if (!block)
		return -ENOMEM;
	s->block = block;
	s->free_total += sectors - s->sectors;
	s->sectors = sectors;
	s->groups = (uint32_t)groups;
	/* Its free run at the end continues in the new sectors. */
	group[last].free += group_sectors(s, last) - had;
	group[last].largest += group_sectors(s, last) - had;
	for (uint32_t g = last + 1; g < s->groups; g++)
		group[g] = group_unused(s, g);
	blocks_renew(s);
	return 0;
}

void space_set_fixed(struct space *s, uint64_t sectors)
{
	assert(sectors <= s->sectors);
	s->fixed = sectors;
}

/* ---- Generations --------------------------------------------------------- */

struct pending *pending_running(struct space *s)
{
	struct pending *p = &s->pending[s->gen % PENDING_GENS];

	assert(p->gen == s->gen || (!p->sectors.total && !p->slots_n));
	p->gen = s->gen;
	return p;
}

uint64_t space_gen(const struct space *s)
{
	return s->gen;
}

void space_set_gen(struct space *s, uint64_t gen)
{
	assert(!sectors_pending(s));
	s->gen = gen;
}

/* Frees at most `most` runs of a set; returns their number. */
static size_t sectors_release_some(struct space *s, struct rangeset *sectors,
				   size_t most)
{
	struct range r;
	size_t n = 0;

	for (; n < most && rangeset_next(sectors, 0, &r); n++) {
		/* A run is removed from the pending set before it is free, as a
		 * group that is being loaded counts both.  A whole run needs no
		 * memory. */
		rangeset_remove(sectors, r.first, r.n);
		sectors_release(s, r.first, r.n);
	}
	return n;
}

void space_durable(struct space *s, uint64_t gen)
{
	assert(gen < s->gen);
	s->durable_gen = gen;
}

/* Slots that are released in the time of a run of sectors: each is looked for
 * among thousands of tracks. */
#define SLOTS_PER_RUN 16u

/* Frees slots, as many as take the time of `most` runs; returns the number of
 * runs. */
static size_t slots_release_some(struct space *s, struct pending *p,
				 size_t most)
{
	size_t n = 0;

	for (; n < most && p->slots_n; n++)
		slots_release(s, p, SLOTS_PER_RUN);
	if (!p->slots_n)
		slots_forget(p);
	return n;
}

bool space_release_some(struct space *s, size_t most)
{
	for (unsigned i = 0; i < PENDING_GENS && most; i++) {
		struct pending *p = &s->pending[i];

		if (p->gen > s->durable_gen)
			continue;
		most -= slots_release_some(s, p, most);
		most -= sectors_release_some(s, &p->sectors, most);
	}
	return !most;
}

uint64_t space_cover_dropped(struct space *s)
{
	if (!s->covered.total) {
		const struct rangeset none = s->covered;

		s->covered = s->dropped;
		s->dropped = none;
	}
	return s->covered.total;
}

void space_release_dropped(struct space *s)
{
	sectors_release_some(s, &s->covered, SIZE_MAX);
}

/* ---- Roots --------------------------------------------------------------- */

/* The longest free run of a group as the root has it: what is pending lies
 * between runs that are free.  Of a group with some, or of which no more than
 * a guess is known, the bound is all that is free. */
static uint32_t largest_saved(const struct space *s, uint32_t group)
{
	const struct space_group *g = &s->group[group];

	return g->guessed || g->freed > s->durable_gen + 1 ?
		       g->free : space_group_largest(s, group);
}

/* The same for replicas that were dropped, which wait for the log alone, and
 * for what is taken, which may get no owner. */
static void without_owner_save(const struct space *s,
			       const struct rangeset *set,
			       struct group_item *item)
{
	struct range r;

	for (uint64_t at = 0; rangeset_next(set, at, &r);
	     at = r.first + r.n)
		for (uint64_t g = r.first / TRAX_GROUP_SECTORS;
		     g * TRAX_GROUP_SECTORS < r.first + r.n; g++)
			item[g].largest = le32_put(s->group[g].free);
}

static void groups_save(const struct space *s, struct group_item *item)
{
	for (uint32_t g = 0; g < s->groups; g++)
		item[g] = (struct group_item){
			le32_put(s->group[g].free),
			le32_put(largest_saved(s, g)),
		};
	without_owner_save(s, &s->dropped, item);
	without_owner_save(s, &s->covered, item);
	without_owner_save(s, &s->taken, item);
}

size_t space_cut_bytes(const struct space *s)
{
	return slots_map_bytes(s) + s->groups * sizeof(struct group_item);
}

int space_cut(struct space *s, void **payload, uint32_t *slotmap_bytes,
	      uint32_t *group_bytes)
{
	const size_t map = slots_map_bytes(s);
	const size_t table = s->groups * sizeof(struct group_item);
	uint8_t *buf;

	if (map > UINT32_MAX || table > UINT32_MAX)
		return -EFBIG;
	buf = malloc(map + table);
	if (!buf)
		return -ENOMEM;
	slots_map_save(s, buf);
	groups_save(s, (struct group_item *)(buf + map));
	*payload = buf;
	*slotmap_bytes = (uint32_t)map;
	*group_bytes = (uint32_t)table;
	s->gen++;
	return 0;
}

static int groups_load(struct space *s, const struct group_item *item)
{
	uint64_t total = 0;

	for (uint32_t g = 0; g < s->groups; g++) {
		const uint32_t free_n = le32_get(item[g].free);
		const uint32_t largest = le32_get(item[g].largest);

		if (free_n > group_sectors(s, g) || largest > free_n)
			return -EUCLEAN;
		s->group[g] = (struct space_group){
			.free = free_n, .largest = largest,
			.guessed = largest == free_n &&
				   free_n < group_sectors(s, g),
			.misfit = { UINT32_MAX, UINT32_MAX },
		};
		total += free_n;
	}
	s->free_total = total;
	blocks_renew(s);
	return 0;
}

int space_load_root(struct space *s, const void *slotmap, size_t bytes,
		    const void *groups, size_t group_bytes)
{
	int rc = -EUCLEAN;

	assert(!s->tracks && !s->free.total && list_empty(&s->loads));
	if (group_bytes == s->groups * sizeof(struct group_item))
		rc = groups_load(s, groups);
	if (rc == -EUCLEAN)
		msg_error("root: the group table contradicts the size of the "
			  "file system");
	if (rc)
		return rc;
	rc = slots_map_load(s, slotmap, bytes);
	if (rc == -EUCLEAN)
		msg_error("root: the slot map is not valid");
	return rc;
}

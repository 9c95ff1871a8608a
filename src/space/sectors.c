/*
 * sectors.c - free sectors.
 *
 * In a loaded group a sector is in exactly one of: `free`, `taken`, one of the
 * pending sets (those of replicas, `dropped` and `covered`, are among them), or
 * it has an owner and is in none.  Of other groups only the
 * count of sectors without an owner is known, and what became pending.
 * A group being loaded is loaded below its cursor and unknown above.
 *
 * Every change is first checked against that as a whole, then made, so that a
 * contradiction changes nothing.  After -ENOMEM the sets may disagree: the
 * caller gives up the file system (nothing wrong is handed out).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/msg.h"
#include "space/space_internal.h"

/* Room kept for deletes on a full disk and for node tracks: one 200th of the
 * disk, at least 4 MiB, but not more than one 32nd of a small disk. */
#define OWN_FRACTION 200u
#define OWN_MIN_SECTORS 8192u
#define OWN_MAX_FRACTION 32u

/* This part of it is for data that was accepted when no room was left.
 * Half of it is for deletes alone (space_may_grow), a quarter remains for the
 * nodes of the accepted data. */
#define OWN_ACCEPTED_PART 4u

/* ---- Ranges by group --------------------------------------------------- */

uint32_t group_sectors(const struct space *s, uint32_t group)
{
	const uint64_t first = (uint64_t)group * TRAX_GROUP_SECTORS;
	const uint64_t left = s->sectors - first;

	return left < TRAX_GROUP_SECTORS ? (uint32_t)left :
					   TRAX_GROUP_SECTORS;
}

static struct space_load *load_find(const struct space *s, uint32_t group)
{
	struct list *pos;

	list_for_each(pos, &s->loads) {
		struct space_load *l = list_entry(pos, struct space_load, link);

		if (l->group == group)
			return l;
	}
	return NULL;
}

/* The part of a range that lies in one group. */
struct sector_part {
	uint32_t group;
	uint64_t first, n;
	struct space_load *load;	/* the load of the group; NULL: it is
					 * not being loaded */
	struct rangeset *set;	/* free set of the known part, NULL: none */
	uint64_t known;		/* leading sectors whose state is known */
	bool goes_on;		/* the range began in the group before */
};

/* The part of [first, first + n) that lies in its first group. */
static struct sector_part part_first(struct space *s, uint64_t first,
				      uint64_t n)
{
	struct sector_part p = { .first = first };
	uint64_t end;

	p.group = (uint32_t)(first / TRAX_GROUP_SECTORS);
	end = (uint64_t)(p.group + 1) * TRAX_GROUP_SECTORS;
	p.n = n < end - first ? n : end - first;
	if (s->group[p.group].loaded) {
		p.set = &s->free;
		p.known = p.n;
		return p;
	}
	p.load = load_find(s, p.group);
	if (p.load && p.load->cursor > first) {
		p.set = &p.load->free;
		p.known = p.load->cursor - first;
		if (p.known > p.n)
			p.known = p.n;
	}
	return p;
}

#define PENDING_SETS (PENDING_GENS + 2)

static const struct rangeset *pending_set(const struct space *s, unsigned i)
{
	if (i < PENDING_GENS)
		return &s->pending[i].sectors;
	return i == PENDING_GENS ? &s->dropped : &s->covered;
}

static uint64_t count_pending(const struct space *s, uint64_t first,
			      uint64_t n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PENDING_SETS; i++)
		sum += rangeset_sum(pending_set(s, i), first, n);
	return sum;
}

uint64_t sectors_pending(const struct space *s)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PENDING_SETS; i++)
		sum += pending_set(s, i)->total;
	return sum;
}

static int contradiction(const char *what, uint64_t first, uint64_t n)
{
	msg_error("sectors %" PRIu64 "+%" PRIu64 ": %s", first, n, what);
	return -EUCLEAN;
}

/* ---- The longest free run of a group ----------------------------------- */

/* Length of a run of the free set as far as it lies in the group. */
static uint32_t run_in_group(const struct space *s, uint32_t group,
			     const struct range *r)
{
	const uint64_t low = (uint64_t)group * TRAX_GROUP_SECTORS;
	const uint64_t high = low + group_sectors(s, group);
	const uint64_t a = r->first > low ? r->first : low;
	const uint64_t b = r->first + r->n < high ? r->first + r->n : high;

	return b > a ? (uint32_t)(b - a) : 0;
}

/* An upper bound, without computing anything. */
static uint32_t group_bound(const struct space_group *g)
{
	return g->largest < g->free ? g->largest : g->free;
}

static void block_raise(struct space *s, uint32_t group)
{
	uint32_t *bound = &s->block[group / BLOCK_GROUPS];
	const uint32_t n = group_bound(&s->group[group]);

	*bound = *bound > n ? *bound : n;
}

static void block_renew(struct space *s, uint32_t block)
{
	const uint32_t first = block * BLOCK_GROUPS;

	s->block[block] = 0;
	for (uint32_t g = first; g < first + BLOCK_GROUPS && g < s->groups; g++)
		block_raise(s, g);
}

void blocks_renew(struct space *s)
{
	for (uint32_t g = 0; g < s->groups; g += BLOCK_GROUPS)
		block_renew(s, g / BLOCK_GROUPS);
}

static void largest_renew(struct space *s, uint32_t group)
{
	const uint64_t low = (uint64_t)group * TRAX_GROUP_SECTORS;

	s->group[group].largest = (uint32_t)
		rangeset_longest(&s->free, low, group_sectors(s, group));
	s->group[group].stale = false;
	s->group[group].guessed = false;
	block_raise(s, group);
}

/* Called when the run that holds `first` has grown, or before it is cut. */
static void largest_touch(struct space *s, const struct sector_part *p,
			  bool grown)
{
	struct space_group *g = &s->group[p->group];
	struct range r;
	uint32_t n;

	if (!g->loaded || !rangeset_next(&s->free, p->first, &r) ||
	    r.first >= p->first + p->n)
		return;
	n = run_in_group(s, p->group, &r);
	if (grown && n > g->largest)
		g->largest = n;
	else if (!grown && n >= g->largest)
		g->stale = true;
}

/* ---- Owners come and go ------------------------------------------------ */

static bool range_is_valid(const struct space *s, traxaddr addr, uint64_t n)
{
	return n && addr < s->sectors && n <= s->sectors - addr;
}

/* Checks an addition: all known sectors of the part must be free, taken, or
 * freed in this generation by the same change (an owner that is rewritten). */
static int put_check(struct space *s, const struct sector_part *p)
{
	const struct rangeset *mine = &pending_running(s)->sectors;

	if (s->group[p->group].free < p->n)
		return contradiction("more owners than sectors in the group",
				     p->first, p->n);
	if (p->known &&
	    rangeset_sum(p->set, p->first, p->known) +
	    rangeset_sum(&s->taken, p->first, p->known) +
	    rangeset_sum(mine, p->first, p->known) != p->known)
		return contradiction("have an owner already", p->first, p->n);
	return 0;
}

static int put_apply(struct space *s, const struct sector_part *p)
{
	int rc = rangeset_remove(&pending_running(s)->sectors, p->first,
				 p->n);

	/* In a replay the room of a replica may have a new owner already. */
	if (!rc)
		rc = rangeset_remove(&s->dropped, p->first, p->n);
	largest_touch(s, p, false);
	if (!rc && p->known)
		rc = rangeset_remove(p->set, p->first, p->known);
	if (!rc)
		rc = rangeset_remove(&s->taken, p->first, p->n);
	/* An owner across the cursor began before it: the scan may be past
	 * its key and never feed it. */
	if (p->load && (p->known || p->goes_on) && p->known < p->n)
		p->load->cursor = p->first + p->n;
	s->group[p->group].free -= (uint32_t)p->n;
	s->free_total -= p->n;
	return rc;
}

/* Checks a removal: all known sectors of the part must have an owner. */
static int del_check(struct space *s, const struct sector_part *p)
{
	if (p->n > group_sectors(s, p->group) - s->group[p->group].free)
		return contradiction("more free sectors than the group has",
				     p->first, p->n);
	if (count_pending(s, p->first, p->n) ||
	    (p->known && (rangeset_meets(p->set, p->first, p->known) ||
			  rangeset_meets(&s->taken, p->first, p->known))))
		return contradiction("have no owner to lose", p->first, p->n);
	return 0;
}

static int del_apply(struct space *s, const struct sector_part *p)
{
	s->group[p->group].free += (uint32_t)p->n;
	s->group[p->group].freed = s->gen + 1;
	s->free_total += p->n;
	block_raise(s, p->group);
	return 0;
}

/* Calls fn for each group's part of the range. */
static int for_parts(struct space *s, uint64_t first, uint64_t n,
		      int (*fn)(struct space *s, const struct sector_part *p))
{
	const uint64_t begin = first;

	while (n) {
		struct sector_part p = part_first(s, first, n);
		int rc;

		p.goes_on = first != begin;
		rc = fn(s, &p);
		if (rc)
			return rc;
		first += p.n;
		n -= p.n;
	}
	return 0;
}

int space_owner_put(struct space *s, traxaddr addr, uint64_t n,
		    enum owner_kind kind)
{
	int rc;

	if (!range_is_valid(s, addr, n))
		return contradiction("owner outside the disk", addr, n);
	if (kind != OWNER_NODES && slots_meet(s, addr, n))
		return contradiction("belong to a node track", addr, n);
	rc = for_parts(s, addr, n, put_check);
	if (!rc && kind == OWNER_NODES)
		rc = slots_add_track(s, addr,
				     (uint32_t)(n / TRAX_NODE_SECTORS));
	if (!rc)
		rc = for_parts(s, addr, n, put_apply);
	if (!rc && kind == OWNER_REPLICA)
		s->replicas += n;
	return rc;
}

static void misfits_forget(struct space_group *g)
{
	for (unsigned i = 0; i < SPACE_FITS; i++)
		g->misfit[i] = UINT32_MAX;
}

/* Raises the upper bound of the longest run of a group that is not loaded:
 * freed sectors may lie between two runs. */
static void largest_guess(struct space_group *g, uint64_t n)
{
	const uint64_t most = 2 * (uint64_t)g->largest + n;

	g->largest = most < g->free ? (uint32_t)most : g->free;
}

static int release_part(struct space *s, const struct sector_part *p)
{
	struct space_group *g = &s->group[p->group];
	int rc = p->known ? rangeset_add(p->set, p->first, p->known) : 0;

	misfits_forget(g);
	if (!g->loaded)
		largest_guess(g, p->n);
	largest_touch(s, p, true);
	block_raise(s, p->group);
	return rc;
}

/* Without memory the sectors stay unused until the next mount. */
void sectors_release(struct space *s, uint64_t first, uint64_t n)
{
	if (for_parts(s, first, n, release_part))
		msg_warn("sectors %" PRIu64 "+%" PRIu64 " are lost until the "
			 "next mount: out of memory", first, n);
}

static void replicas_less(struct space *s, uint64_t n)
{
	s->replicas -= n < s->replicas ? n : s->replicas;
}

/* No recovery goes back to the content of a replica, so its room need not wait
 * for the root: it can be written once the record that drops it is durable. */
int space_owner_del(struct space *s, traxaddr addr, uint64_t n,
		    enum owner_kind kind)
{
	int rc;

	if (!range_is_valid(s, addr, n))
		return contradiction("owner outside the disk", addr, n);
	rc = for_parts(s, addr, n, del_check);
	if (!rc && kind == OWNER_NODES)
		rc = slots_del_track(s, addr,
				     (uint32_t)(n / TRAX_NODE_SECTORS));
	if (!rc)
		rc = rangeset_add(kind == OWNER_REPLICA ? &s->dropped :
				  &pending_running(s)->sectors, addr, n);
	if (rc)
		return rc;
	for_parts(s, addr, n, del_apply);
	if (kind == OWNER_REPLICA)
		replicas_less(s, n);
	return 0;
}

void space_set_replicas(struct space *s, uint64_t sectors)
{
	s->replicas = sectors;
}

/* ---- Groups ------------------------------------------------------------ */

uint32_t space_groups(const struct space *s)
{
	return s->groups;
}

bool space_group_loaded(const struct space *s, uint32_t group)
{
	return s->group[group].loaded;
}

uint32_t space_group_free(const struct space *s, uint32_t group)
{
	return s->group[group].free;
}

bool space_group_is_guessed(const struct space *s, uint32_t group)
{
	return s->group[group].guessed;
}

/* The value is a cache, and computed anew when it is stale. */
uint32_t space_group_largest(const struct space *s, uint32_t group)
{
	const struct space_group *g = &s->group[group];

	if (g->stale)
		largest_renew((struct space *)s, group);
	return g->largest < g->free ? g->largest : g->free;
}

/* The bound of a block is a cache, too: it is computed anew when a search would
 * look at its groups. */
uint32_t space_group_next(const struct space *s, uint32_t group, uint64_t n)
{
	while (group < s->groups) {
		const uint32_t block = group / BLOCK_GROUPS;

		if (group % BLOCK_GROUPS == 0 && s->block[block] >= n)
			block_renew((struct space *)s, block);
		if (s->block[block] >= n)
			return group;
		group = (block + 1) * BLOCK_GROUPS;
	}
	return s->groups;
}

uint32_t space_group_misfit(const struct space *s, uint32_t group,
			    enum space_fit fit)
{
	return s->group[group].misfit[fit];
}

void space_set_misfit(struct space *s, uint32_t group, enum space_fit fit,
		      uint32_t n)
{
	if (n < s->group[group].misfit[fit])
		s->group[group].misfit[fit] = n;
}

void space_forget_misfits(struct space *s)
{
	for (uint32_t g = 0; g < s->groups; g++)
		misfits_forget(&s->group[g]);
}

/* ---- Unloading groups ---- */

/* Number of groups that stay loaded whatever memory they need, so that an
 * operation which has waited for one still finds it. */
#define LOADED_LEAST 16u
/* Ranges of an unloaded set that are freed at a time, of 0.3 us each; and with
 * each owner of a group that is being loaded, which adds one at most. */
#define SHRINK_RUNS 16u
#define SHRINK_FED_RUNS 2u

static void shrink_unloaded(struct space *s, size_t most)
{
	if (rangeset_shrink(&s->unloaded, most))
		rangeset_init(&s->unloaded);
}

/* A group in which something is taken has to stay: a scan of the owners would
 * call it free. */
static bool may_unload(const struct space *s, uint32_t group)
{
	return s->group[group].loaded &&
	       !rangeset_meets(&s->taken, (uint64_t)group * TRAX_GROUP_SECTORS,
			       group_sectors(s, group));
}

/* The group that was not used for longest, but not the newest one; none:
 * `groups`. */
static uint32_t unload_candidate(const struct space *s)
{
	uint32_t best = s->groups;

	for (uint32_t g = 0; g < s->groups; g++)
		if (s->group[g].used != s->clock && may_unload(s, g) &&
		    (best == s->groups ||
		     s->group[g].used < s->group[best].used))
			best = g;
	return best;
}

static void unload(struct space *s, uint32_t group)
{
	struct space_group *g = &s->group[group];

	space_group_largest(s, group);
	if (rangeset_move_out(&s->free, (uint64_t)group * TRAX_GROUP_SECTORS,
			      group_sectors(s, group), &s->unloaded))
		return;		/* without memory it stays loaded */
	g->loaded = false;
	s->loaded--;
}

/* One group at a time: as long as something is left of the one before, nothing
 * more is given back. */
static void unload_some(struct space *s)
{
	while (s->runs_most && s->free.count > s->runs_most &&
	       s->loaded > LOADED_LEAST) {
		const uint32_t before = s->loaded;
		const uint32_t group = unload_candidate(s);

		shrink_unloaded(s, SHRINK_RUNS);
		if (s->unloaded.root)
			return;
		if (group < s->groups)
			unload(s, group);
		if (s->loaded == before)
			return;
	}
}

void space_set_budget(struct space *s, size_t runs)
{
	s->runs_most = runs;
}

const struct rangeset *space_free_set(const struct space *s)
{
	return &s->free;
}

int space_load_begin(struct space *s, uint32_t group)
{
	struct space_load *l;

	assert(group < s->groups && !s->group[group].loaded &&
	       !load_find(s, group));
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->group = group;
	l->cursor = (uint64_t)group * TRAX_GROUP_SECTORS;
	rangeset_init(&l->free);
	list_add(&s->loads, &l->link);
	return 0;
}

static void load_free(struct space_load *l)
{
	list_del(&l->link);
	rangeset_fini(&l->free);
	free(l);
}

void space_load_abort(struct space *s, uint32_t group)
{
	struct space_load *l = load_find(s, group);

	if (l)
		load_free(l);
}

/* The first pending run that ends behind a sector. */
static bool pending_next(const struct space *s, uint64_t from,
			 struct range *out)
{
	bool found = false;
	struct range r;

	for (unsigned i = 0; i < PENDING_SETS; i++)
		if (rangeset_next(pending_set(s, i), from, &r) &&
		    (!found || r.first < out->first)) {
			*out = r;
			found = true;
		}
	return found;
}

/* Sectors from the cursor to `end` have no owner: those before the next pending
 * run are free.  The cursor goes behind that run. */
static int load_run(struct space *s, struct space_load *l, uint64_t end)
{
	uint64_t free_end = end, next = end;
	struct range r;
	int rc = 0;

	if (pending_next(s, l->cursor, &r) && r.first < end) {
		free_end = r.first > l->cursor ? r.first : l->cursor;
		next = r.first + r.n < end ? r.first + r.n : end;
	}
	if (free_end > l->cursor)
		rc = rangeset_add(&l->free, l->cursor, free_end - l->cursor);
	if (!rc)
		l->cursor = next;
	return rc;
}

static int load_gap(struct space *s, struct space_load *l, uint64_t end,
		    size_t most)
{
	int rc = 0;

	while (!rc && l->cursor < end) {
		if (!most--)
			return -EAGAIN;
		rc = load_run(s, l, end);
	}
	return rc;
}

int space_load_gap(struct space *s, uint32_t group, traxaddr end, size_t most)
{
	const uint64_t high = (uint64_t)group * TRAX_GROUP_SECTORS +
			      group_sectors(s, group);

	return load_gap(s, load_find(s, group), end < high ? end : high, most);
}

int space_load_feed(struct space *s, uint32_t group, traxaddr addr, uint64_t n)
{
	const uint64_t low = (uint64_t)group * TRAX_GROUP_SECTORS;
	const uint64_t high = low + group_sectors(s, group);
	struct space_load *l = load_find(s, group);
	uint64_t end = addr + n;
	int rc;

	assert(l);
	shrink_unloaded(s, SHRINK_FED_RUNS);
	if (end <= low || addr >= high)
		return 0;
	if (addr < low)
		addr = low;
	if (end > high)
		end = high;
	if (addr < l->cursor) {
		const uint64_t upto = end < l->cursor ? end : l->cursor;

		if (rangeset_meets(&l->free, addr, upto - addr))
			return contradiction("are free and have an owner",
					     addr, upto - addr);
		if (end <= l->cursor)
			return 0;
		addr = l->cursor;
	}
	rc = load_gap(s, l, addr, SIZE_MAX);
	l->cursor = end;
	return rc;
}

int space_load_end(struct space *s, uint32_t group)
{
	const uint64_t low = (uint64_t)group * TRAX_GROUP_SECTORS;
	const uint32_t size = group_sectors(s, group);
	struct space_load *l = load_find(s, group);
	int rc;

	assert(l);
	rc = load_gap(s, l, low + size, SIZE_MAX);
	if (!rc && l->free.total + count_pending(s, low, size) !=
		   s->group[group].free)
		rc = contradiction("the group's count of free sectors does "
				   "not agree with the owners", low, size);
	if (!rc)
		rangeset_move_in(&s->free, &l->free);
	load_free(l);
	if (rc)
		return rc;
	s->group[group].loaded = true;
	s->group[group].used = ++s->clock;
	s->loaded++;
	largest_renew(s, group);
	unload_some(s);
	return 0;
}

/* ---- Taking and reserving ---------------------------------------------- */

static int touch_cut(struct space *s, const struct sector_part *p)
{
	s->group[p->group].used = ++s->clock;
	misfits_forget(&s->group[p->group]);
	largest_touch(s, p, false);
	return 0;
}

int space_take(struct space *s, uint64_t sector, uint64_t n)
{
	int rc;

	shrink_unloaded(s, SHRINK_RUNS);
	if (!n || !rangeset_has(&s->free, sector, n))
		return -ENOSPC;
	rc = rangeset_add(&s->taken, sector, n);
	if (rc)
		return rc;
	for_parts(s, sector, n, touch_cut);
	rc = rangeset_remove(&s->free, sector, n);
	if (rc)
		rangeset_remove(&s->taken, sector, n);
	return rc;
}

void space_give_back(struct space *s, uint64_t sector, uint64_t n)
{
	assert(rangeset_has(&s->taken, sector, n));
	if (!rangeset_remove(&s->taken, sector, n))
		sectors_release(s, sector, n);
}

static uint64_t own_sectors(const struct space *s)
{
	const uint64_t total = s->sectors - s->fixed;
	const uint64_t most = total / OWN_MAX_FRACTION;
	uint64_t own = total / OWN_FRACTION;

	if (own < OWN_MIN_SECTORS)
		own = OWN_MIN_SECTORS;
	return own < most ? own : most;
}

/* What can be reserved when `own` sectors stay with the file system. */
static uint64_t room_beside(const struct space *s, uint64_t own)
{
	const uint64_t kept = s->reserved + own;
	const uint64_t room = s->free_total + s->replicas;

	return room > kept ? room - kept : 0;
}

static int reserve_of(struct space *s, uint64_t sectors, uint64_t room)
{
	if (room < sectors)
		return -ENOSPC;
	s->reserved += sectors;
	return 0;
}

uint64_t space_room(const struct space *s)
{
	return room_beside(s, own_sectors(s));
}

void space_expect(struct space *s, uint64_t sectors)
{
	s->expected = sectors;
}

int space_reserve(struct space *s, uint64_t sectors)
{
	return reserve_of(s, sectors,
			  room_beside(s, own_sectors(s) + s->expected));
}

int space_reserve_expected(struct space *s, uint64_t sectors)
{
	return reserve_of(s, sectors, space_room(s));
}

uint64_t space_room_accepted(const struct space *s)
{
	const uint64_t own = own_sectors(s);

	return room_beside(s, own - own / OWN_ACCEPTED_PART);
}

int space_reserve_accepted(struct space *s, uint64_t sectors)
{
	return reserve_of(s, sectors, space_room_accepted(s));
}

bool space_may_grow(const struct space *s)
{
	return s->free_total + s->replicas > s->reserved + own_sectors(s) / 2;
}

void space_release(struct space *s, uint64_t sectors)
{
	assert(s->reserved >= sectors);
	s->reserved -= sectors;
}

void space_count(const struct space *s, struct space_counts *out)
{
	*out = (struct space_counts){
		.total = s->sectors - s->fixed,
		.free = s->free_total + s->replicas,
		.replicas = s->replicas,
		.pending = sectors_pending(s),
		.reserved = s->reserved,
		.own = own_sectors(s),
	};
}

/*
 * owners.c - which sectors belong to what. It is stored twice: in owner items
 * in order of address, and in the extents of files in order of inode.
 *
 * For each group of 1 GiB one order-free sum over the owners of data minus the
 * extents must be zero. When owners do not overlap and the sums are equal,
 * extents do not overlap either. Only the groups that differ are collected and
 * compared one by one, in a second walk.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/csum.h"
#include "base/sort.h"
#include "check/scan/check_internal.h"

/* Most claims that a second walk collects; the rest is left to the next run. */
#define MAX_EXACT (32u << 20)

static uint64_t claim_hash(uint64_t sector, uint64_t n, uint64_t ino,
			   uint64_t off)
{
	uint64_t tuple[4] = { sector, n, ino, off };

	return csum(tuple, sizeof(tuple));
}

void owners_begin(struct check *check)
{
	struct owners *owners = &check->owners;
	uint64_t groups = (check->super.sectors + TRAX_GROUP_SECTORS - 1) /
			  TRAX_GROUP_SECTORS;

	memset(owners, 0, sizeof(*owners));
	vec_init(&owners->fixed, sizeof(struct claim));
	vec_init(&owners->exact, sizeof(struct claim));
	owners->groups = (uint32_t)groups;
	owners->sum = calloc(groups, sizeof(*owners->sum));
	owners->owned = calloc(groups, sizeof(*owners->owned));
	if (!owners->sum || !owners->owned)
		check_fail(check, -ENOMEM);
}

void owners_free(struct check *check)
{
	struct owners *owners = &check->owners;

	free(owners->sum);
	free(owners->owned);
	owners->sum = NULL;
	owners->owned = NULL;
	vec_fini(&owners->fixed);
	vec_fini(&owners->exact);
}

static bool is_inside(const struct check *check, uint64_t addr, uint64_t n)
{
	return !addr_device(addr) && addr < check->super.sectors &&
	       n <= check->super.sectors - addr;
}

static void count_owned(struct owners *owners, uint64_t sector, uint64_t n)
{
	while (n) {
		uint64_t group = sector / TRAX_GROUP_SECTORS;
		uint64_t here = (group + 1) * TRAX_GROUP_SECTORS - sector;

		if (here > n)
			here = n;
		owners->owned[group] += (uint32_t)here;
		sector += here;
		n -= here;
	}
}

static void claim_from_owner(struct claim *claim, struct key key,
			     const struct owner_item *item)
{
	*claim = (struct claim){
		.sector = addr_sector(key.off),
		.n = le64_get(item->sectors),
		.ino = le64_get(item->ino),
		.off = le64_get(item->off),
		.kind = item->kind,
	};
}

void owners_item(struct check *check, struct key key,
		 const struct owner_item *item)
{
	struct owners *owners = &check->owners;
	struct problem_place place = { .sector = addr_sector(key.off) };
	struct claim claim, *fixed;
	uint64_t n;

	claim_from_owner(&claim, key, item);
	if (!is_inside(check, key.off, claim.n)) {
		problem_report(check, PROBLEM_OWNER_OUTSIDE, place,
			       (unsigned long long)claim.n,
			       (unsigned long long)claim.sector);
		return;
	}
	if (claim.sector < owners->end) {
		problem_report(check, PROBLEM_OWNER_OVERLAP, place,
			       (unsigned long long)claim.sector,
			       (unsigned long long)owners->end);
		/* Equal sums would prove nothing here, so they are made
		 * unequal: the second walk has to look. */
		owners->sum[owners->last / TRAX_GROUP_SECTORS]++;
		owners->sum[claim.sector / TRAX_GROUP_SECTORS]++;
	}
	owners->last = claim.sector;
	n = claim.sector + claim.n;
	if (n > owners->end) {
		uint64_t from = claim.sector < owners->end ? owners->end :
				claim.sector;

		count_owned(owners, from, n - from);
		owners->end = n;
	}
	if (claim.kind == OWNER_DATA) {
		owners->sum[claim.sector / TRAX_GROUP_SECTORS] += claim_hash(
			claim.sector, claim.n, claim.ino, claim.off);
		check->result->data_sectors += claim.n;
		return;
	}
	fixed = check_add(check, &owners->fixed);
	if (fixed)
		*fixed = claim;
}

void owners_extent(struct check *check, uint64_t ino, uint64_t off,
		   const struct extent_item *item)
{
	uint64_t addr = le64_get(item->addr), n = le64_get(item->sectors);
	struct problem_place place = { ino, addr_sector(addr) };

	check->result->extents++;
	if (!is_inside(check, addr, n)) {
		problem_report(check, PROBLEM_EXTENT_OUTSIDE, place,
			       (unsigned long long)ino, (unsigned long long)n,
			       (unsigned long long)addr);
		return;
	}
	check->owners.sum[addr / TRAX_GROUP_SECTORS] -=
		claim_hash(addr, n, ino, off);
}

/* ---- Fixed structures ---- */

struct fixed_part {
	uint64_t sector, n;
	uint8_t kind;
	bool found;
};

static const char *kind_name(uint8_t kind)
{
	switch (kind) {
	case OWNER_LOG:
		return "log track";
	case OWNER_SUPER:
		return "superblock";
	case OWNER_AREA:
		return "root area";
	case OWNER_GEOM:
		return "geometry record";
	default:
		return "structure";
	}
}

static unsigned fixed_parts(const struct super *super,
			    struct fixed_part part[8 + TRAX_MAX_LOG_TRACKS])
{
	const struct super_run geom = super_geom_run(super);
	uint64_t place[3];
	unsigned i, n = 0;

	super_places(super, place);
	/* The boot block, and what lies between it and the superblock. */
	for (i = 0; i < 3; i++)
		part[n++] = (struct fixed_part){ place[i], TRAX_BLOCK_SECTORS,
						 OWNER_SUPER, false };
	for (i = 0; i < 4; i++)
		part[n++] = (struct fixed_part){
			super->area_sector[i / 2][i % 2], super->area_sectors,
			OWNER_AREA, false
		};
	if (geom.sectors)
		part[n++] = (struct fixed_part){ geom.sector, geom.sectors,
						 OWNER_GEOM, false };
	for (i = 0; i < super->log_tracks; i++)
		part[n++] = (struct fixed_part){ super->log[i].sector,
						 super->log[i].sectors,
						 OWNER_LOG, false };
	return n;
}

/* Marks the parts that lie in an owner's range; false: there are none. */
static bool fixed_match(const struct claim *claim, struct fixed_part *part,
			unsigned n)
{
	bool any = false;
	unsigned i;

	for (i = 0; i < n; i++) {
		if (part[i].kind != claim->kind ||
		    part[i].sector < claim->sector ||
		    part[i].sector + part[i].n > claim->sector + claim->n)
			continue;
		part[i].found = any = true;
	}
	return any;
}

/* Is this range the source or the target of a relocation? */
static bool moves(const struct owners *owners, const struct claim *claim)
{
	unsigned i;

	for (i = 0; i < OWNERS_MOVES; i++) {
		const struct owners_move *move = &owners->move[i];

		if (move->kind == claim->kind &&
		    ((move->from == claim->sector &&
		      move->from_n == claim->n) ||
		     (move->to == claim->sector && move->to_n == claim->n)))
			return true;
	}
	return false;
}

void owners_move(struct check *check, struct key key,
		 const struct move_item *item)
{
	struct owners *owners = &check->owners;

	owners->move[owners->moves_n++ % OWNERS_MOVES] = (struct owners_move){
		.kind = (uint8_t)key.off,
		.from = le64_get(item->from),
		.from_n = le64_get(item->from_sectors),
		.to = le64_get(item->to),
		.to_n = le64_get(item->to_sectors),
	};
}

static void owners_fixed(struct check *check)
{
	struct fixed_part part[8 + TRAX_MAX_LOG_TRACKS];
	unsigned i, n = fixed_parts(&check->super, part);
	size_t k;

	for (k = 0; k < check->owners.fixed.n; k++) {
		const struct claim *claim = vec_at(&check->owners.fixed, k);

		if (claim->kind == OWNER_NODES || claim->kind == OWNER_BAD ||
		    claim->kind == OWNER_REPLICA)
			continue;
		if (!fixed_match(claim, part, n) &&
		    !moves(&check->owners, claim))
			problem_report(check, PROBLEM_FIXED_STRAY,
				       (struct problem_place){
					       .sector = claim->sector },
				       (unsigned long long)claim->sector,
				       kind_name(claim->kind));
	}
	for (i = 0; i < n; i++)
		if (!part[i].found)
			problem_report(check, PROBLEM_FIXED_MISSING,
				       (struct problem_place){
					       .sector = part[i].sector },
				       kind_name(part[i].kind),
				       (unsigned long long)part[i].sector);
}

/* ---- Group table ---- */

static uint32_t group_sectors(const struct check *check, uint32_t group)
{
	uint64_t first = (uint64_t)group * TRAX_GROUP_SECTORS;
	uint64_t left = check->super.sectors - first;

	return left < TRAX_GROUP_SECTORS ? (uint32_t)left : TRAX_GROUP_SECTORS;
}

static void owners_groups(struct check *check)
{
	const struct owners *owners = &check->owners;
	const struct group_item *table;
	uint32_t i, n = check->root.group_bytes / sizeof(*table);
	uint64_t free_sectors = 0;

	for (i = 0; i < owners->groups; i++)
		free_sectors += group_sectors(check, i) - owners->owned[i];
	check->result->free_sectors = free_sectors;
	if (!check->payload)
		return;
	if (n != owners->groups) {
		problem_report(check, PROBLEM_GROUP_TABLE,
			       (struct problem_place){ 0 },
			       (unsigned long long)n,
			       (unsigned long long)owners->groups);
		return;
	}
	table = (const void *)(check->payload + check->root.slotmap_bytes);
	for (i = 0; i < n; i++) {
		uint32_t real = group_sectors(check, i) - owners->owned[i];

		if (le32_get(table[i].free) != real ||
		    le32_get(table[i].largest) > real)
			problem_report(check, PROBLEM_GROUP_FREE,
				       (struct problem_place){ 0 },
				       (unsigned long long)i,
				       (unsigned long long)
					       le32_get(table[i].free),
				       (unsigned long long)real);
	}
}

bool owners_finish(struct check *check)
{
	uint32_t i;

	owners_fixed(check);
	owners_groups(check);
	for (i = 0; i < check->owners.groups; i++)
		if (check->owners.sum[i])
			return true;
	return false;
}

/* ---- Exactly ---- */

static void exact_add(struct check *check, const struct claim *claim)
{
	struct owners *owners = &check->owners;
	struct claim *to;

	if (!is_inside(check, claim->sector, claim->n) ||
	    !owners->sum[claim->sector / TRAX_GROUP_SECTORS] ||
	    owners->exact.n >= MAX_EXACT)
		return;
	to = check_add(check, &owners->exact);
	if (to)
		*to = *claim;
}

void owners_exact_item(struct check *check, struct key key, const void *value)
{
	const struct extent_item *extent = value;
	struct claim claim;

	if (key.ino == 0 && key.type == ITEM_OWNER) {
		claim_from_owner(&claim, key, value);
		exact_add(check, &claim);
	} else if (key.type == ITEM_EXTENT && key.ino) {
		claim = (struct claim){
			.sector = le64_get(extent->addr),
			.n = le64_get(extent->sectors),
			.ino = key.ino,
			.off = key.off,
			.kind = OWNER_DATA,
			.extent = true,
		};
		exact_add(check, &claim);
	}
}

static int claim_cmp(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return sort_order(x->sector, y->sector) ?:
	       sort_order(x->extent, y->extent) ?:
	       sort_order(x->ino, y->ino) ?:
	       sort_order(x->off, y->off);
}

static bool claim_same(const struct claim *owner, const struct claim *extent)
{
	return owner->kind == OWNER_DATA && owner->sector == extent->sector &&
	       owner->n == extent->n && owner->ino == extent->ino &&
	       owner->off == extent->off;
}

static void exact_report(struct check *check, enum problem problem,
			 const struct claim *claim)
{
	struct problem_place place = { claim->ino, claim->sector };

	if (problem == PROBLEM_EXTENT_SHARED)
		problem_report(check, problem, place,
			       (unsigned long long)claim->ino,
			       (unsigned long long)claim->n,
			       (unsigned long long)claim->sector);
	else
		problem_report(check, problem, place,
			       (unsigned long long)claim->n,
			       (unsigned long long)claim->sector,
			       (unsigned long long)claim->ino);
}

/* Pairs the claims that agree among those that begin at one sector: [first,
 * end). */
static void exact_pair(struct check *check, size_t first, size_t end)
{
	struct claim *claims = check->owners.exact.items;
	size_t i, k;

	for (i = first; i < end; i++)
		for (k = i + 1; k < end && !claims[i].matched; k++)
			if (!claims[i].extent && claims[k].extent &&
			    !claims[k].matched &&
			    claim_same(&claims[i], &claims[k]))
				claims[i].matched = claims[k].matched = true;
}

static const struct claim *exact_owner_at(const struct check *check,
					  size_t first, size_t end)
{
	const struct claim *claims = check->owners.exact.items;
	size_t i;

	for (i = first; i < end; i++)
		if (!claims[i].extent && claims[i].kind == OWNER_DATA &&
		    !claims[i].matched)
			return &claims[i];
	return NULL;
}

static void exact_unmatched(struct check *check, size_t first, size_t end)
{
	struct claim *claims = check->owners.exact.items;
	const struct claim *owner = exact_owner_at(check, first, end);
	size_t i;

	for (i = first; i < end; i++) {
		struct claim *claim = &claims[i];

		if (claim->matched)
			continue;
		if (!claim->extent) {
			if (claim->kind == OWNER_DATA && end - first == 1)
				exact_report(check, PROBLEM_OWNER_STRAY, claim);
			continue;
		}
		exact_report(check, owner ? PROBLEM_OWNER_WRONG :
			     PROBLEM_OWNER_MISSING, claim);
		owner = NULL;
	}
}

/* Reports extents that overlap each other or something that is no data. */
static void exact_shared(struct check *check)
{
	struct claim *claims = check->owners.exact.items;
	struct claim *reach = NULL;	/* the claim that ends furthest behind
					 * so far */
	size_t i;

	for (i = 0; i < check->owners.exact.n; i++) {
		struct claim *claim = &claims[i];

		if (!claim->extent && claim->kind == OWNER_DATA)
			continue;
		if (reach && claim->sector < reach->sector + reach->n) {
			if (reach->extent)
				exact_report(check, PROBLEM_EXTENT_SHARED,
					     reach);
			if (claim->extent)
				exact_report(check, PROBLEM_EXTENT_SHARED,
					     claim);
		}
		if (!reach ||
		    claim->sector + claim->n > reach->sector + reach->n)
			reach = claim;
	}
}

void owners_exact_finish(struct check *check)
{
	struct vec *exact = &check->owners.exact;
	struct claim *claims;
	size_t first, end;

	vec_sort(exact, claim_cmp);
	claims = exact->items;
	for (first = 0; first < exact->n; first = end) {
		for (end = first + 1; end < exact->n; end++)
			if (claims[end].sector != claims[first].sector)
				break;
		exact_pair(check, first, end);
		exact_unmatched(check, first, end);
	}
	exact_shared(check);
}

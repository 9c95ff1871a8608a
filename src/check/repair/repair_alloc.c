/*
 * repair_alloc.c - which sectors have which owner after a repair, and where the
 * new tree goes.
 *
 * Owners are made anew from the extents, which are the truth. But no node is
 * placed on a sector that had an owner: its extent may be lost while its data
 * is there. The new tree goes to slots of node tracks that the old tree does
 * not use. As these are usually too few, new node tracks are made, too: whole
 * free tracks from the outer edge on and, when there is none, any free run that
 * holds a node.
 */
#include <errno.h>
#include <string.h>

#include "base/sort.h"
#include "check/repair/repair_internal.h"

/* Most node slots that one track is given, a round number: they are 64 MiB, far
 * more than a track holds.  It bounds what a damaged record can claim. */
#define MAX_TRACK_SLOTS 4096u
/* Number of slots in reserve for those that cannot be written: half a MiB. */
#define SPARE_SLOTS 32u

/* ---- Owners ---- */

static struct key owner_key(uint64_t sector)
{
	return key_make(0, ITEM_OWNER, addr_make(0, sector));
}

static int owner_put(struct item_set *set, uint64_t sector, uint64_t n,
		     uint8_t kind, uint64_t ino, uint64_t off)
{
	struct owner_item item = {
		.sectors = le64_put(n),
		.kind = kind,
		.ino = le64_put(ino),
		.off = le64_put(off),
	};

	return item_set_put(set, owner_key(sector), &item, sizeof(item));
}

static size_t owners_first(const struct item_set *set)
{
	return item_set_seek(set, owner_key(0));
}

static bool is_owner(const struct item_set *set, size_t i)
{
	const struct item_set_item *item;

	if (i >= item_set_count(set))
		return false;
	item = item_set_at(set, i);
	return item->key.ino == 0 && item->key.type == ITEM_OWNER;
}

static int track_add(struct check *check, struct vec *tracks, uint64_t sector,
		     uint64_t sectors)
{
	struct repair_alloc_track *track;
	uint64_t slots = sectors / TRAX_NODE_SECTORS;

	if (!slots || slots > UINT16_MAX ||
	    sector >= check->super.sectors ||
	    slots * TRAX_NODE_SECTORS > check->super.sectors - sector)
		return 0;
	track = check_add(check, tracks);
	if (!track)
		return -ENOMEM;
	*track = (struct repair_alloc_track){ sector, (uint32_t)slots };
	return 0;
}

/* Removes the old owners from the set. Node tracks are kept apart; owners of
 * data stay until the new tree has its slots. */
static int owners_clear(struct check *check, struct item_set *set,
			struct vec *tracks)
{
	size_t i;
	int rc = 0;

	for (i = owners_first(set); is_owner(set, i) && !rc; i++) {
		struct item_set_item *item = item_set_at(set, i);
		const struct owner_item *owner = item_set_value(set, item);

		if (owner->kind == OWNER_BAD || owner->kind == OWNER_DATA)
			continue;
		if (owner->kind == OWNER_NODES)
			rc = track_add(check, tracks,
				       addr_sector(item->key.off),
				       le64_get(owner->sectors));
		item_set_remove(item);
	}
	return rc;
}

/* Reads the node tracks from the old slot map when that can be trusted. */
static int map_tracks(struct check *check, struct vec *tracks)
{
	const uint8_t *p = check->payload;
	size_t left = p ? check->root.slotmap_bytes : 0;
	int rc = 0;

	while (left >= sizeof(struct slot_track) && !rc) {
		const struct slot_track *track = (const void *)p;
		size_t bytes = sizeof(*track) +
			       (le16_get(track->slots) + 7u) / 8;

		if (bytes > left)
			break;
		rc = track_add(check, tracks,
			       addr_sector(le64_get(track->addr)),
			       (uint64_t)le16_get(track->slots) *
			       TRAX_NODE_SECTORS);
		p += bytes;
		left -= bytes;
	}
	return rc;
}

static int owners_fixed(struct check *check, struct item_set *set)
{
	const struct super *super = &check->super;
	const struct super_run geom = super_geom_run(super);
	uint64_t place[3];
	unsigned i;
	int rc;

	super_places(super, place);
	rc = owner_put(set, 0, place[0] + TRAX_BLOCK_SECTORS, OWNER_SUPER, 0,
		       0);
	for (i = 1; i < 3 && !rc; i++)
		rc = owner_put(set, place[i], TRAX_BLOCK_SECTORS, OWNER_SUPER,
			       0, 0);
	for (i = 0; i < 4 && !rc; i++)
		rc = owner_put(set, super->area_sector[i / 2][i % 2],
			       super->area_sectors, OWNER_AREA, 0, 0);
	if (geom.sectors && !rc)
		rc = owner_put(set, geom.sector, geom.sectors, OWNER_GEOM, 0,
			       0);
	for (i = 0; i < super->log_tracks && !rc; i++)
		rc = owner_put(set, super->log[i].sector,
			       super->log[i].sectors, OWNER_LOG, 0, 0);
	return rc;
}

/* Extents outside the device, whose repair was refused, cannot have owners. */
static int owners_extents(const struct check *check, struct item_set *set)
{
	size_t i, n = item_set_count(set);
	int rc = 0;

	for (i = item_set_seek(set, key_make(1, ITEM_INODE, 0)); i < n && !rc;
	     i++) {
		const struct item_set_item *item = item_set_at(set, i);
		const struct extent_item *extent = item_set_value(set, item);
		uint64_t sector, sectors;

		if (item->key.type != ITEM_EXTENT)
			continue;
		sector = le64_get(extent->addr);
		sectors = le64_get(extent->sectors);
		if (sector < check->super.sectors &&
		    sectors <= check->super.sectors - sector)
			rc = owner_put(set, sector, sectors, OWNER_DATA,
				       item->key.ino, item->key.off);
	}
	return rc;
}

static int track_cmp(const void *a, const void *b)
{
	const struct repair_alloc_track *x = a, *y = b;

	return sort_order(x->sector, y->sector);
}

/* Does [sector, sector + n) touch an owner of the settled set? */
static bool owners_meet(const struct item_set *set, uint64_t sector, uint64_t n)
{
	size_t i = item_set_seek(set, owner_key(sector));
	const struct owner_item *owner;

	if (is_owner(set, i) &&
	    addr_sector(item_set_at(set, i)->key.off) < sector + n)
		return true;
	if (i == 0 || !is_owner(set, i - 1))
		return false;
	owner = item_set_value(set, item_set_at(set, i - 1));
	return addr_sector(item_set_at(set, i - 1)->key.off) +
	       le64_get(owner->sectors) > sector;
}

/* Old node tracks become owners again where they overlap nothing else. */
static int owners_tracks(struct item_set *set, struct vec *tracks)
{
	struct repair_alloc_track *track = tracks->items;
	uint64_t end = 0;
	size_t i, n = 0;
	int rc = 0;

	vec_sort(tracks, track_cmp);
	for (i = 0; i < tracks->n && !rc; i++) {
		uint64_t sectors = (uint64_t)track[i].slots *
				   TRAX_NODE_SECTORS;

		if (track[i].sector < end ||
		    owners_meet(set, track[i].sector, sectors))
			continue;
		end = track[i].sector + sectors;
		rc = owner_put(set, track[i].sector, sectors, OWNER_NODES, 0,
			       0);
		track[n++] = track[i];
	}
	tracks->n = n;
	return rc ? rc : item_set_merge(set);
}

/* ---- Slots ---- */

/* Does the old tree, or what was salvaged, use this slot? */
static bool slot_used(const struct check *check, uint64_t sector)
{
	const uint64_t *nodes = check->nodes.items;
	size_t low = 0, high = check->nodes.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (nodes[mid] + TRAX_NODE_SECTORS <= sector)
			low = mid + 1;
		else
			high = mid;
	}
	return low < check->nodes.n &&
	       nodes[low] < sector + TRAX_NODE_SECTORS;
}

static int slots_of_track(struct check *check, struct repair_alloc *place,
			  const struct repair_alloc_track *track)
{
	uint32_t i;

	for (i = 0; i < track->slots; i++) {
		uint64_t sector = track->sector +
				  (uint64_t)i * TRAX_NODE_SECTORS;
		uint64_t *slot;

		if (slot_used(check, sector))
			continue;
		slot = check_add(check, &place->slots);
		if (!slot)
			return -ENOMEM;
		*slot = sector;
	}
	return 0;
}

int repair_alloc_owners(struct check *check, struct item_set *set,
			struct repair_alloc *place)
{
	size_t i;
	int rc;

	memset(place, 0, sizeof(*place));
	vec_init(&place->tracks, sizeof(struct repair_alloc_track));
	vec_init(&place->slots, sizeof(uint64_t));
	rc = owners_clear(check, set, &place->tracks);
	if (!rc)
		rc = map_tracks(check, &place->tracks);
	if (!rc)
		rc = owners_fixed(check, set);
	if (!rc)
		rc = owners_extents(check, set);
	if (!rc)
		rc = item_set_merge(set);
	if (!rc)
		rc = owners_tracks(set, &place->tracks);
	vec_sort(&check->nodes, sort_u64_cmp);
	for (i = 0; i < place->tracks.n && !rc; i++)
		rc = slots_of_track(check, place, vec_at(&place->tracks, i));
	return rc;
}

/* ---- New node tracks ---- */

struct gaps {
	struct check *check;
	struct item_set *set;
	size_t owner;		/* index of the next owner in the set */
	uint64_t at;		/* everything below this sector has been looked
				 * at */
};

/* The next free run [*first, *first + *n). */
static bool gap_next(struct gaps *gaps, uint64_t *first, uint64_t *n)
{
	uint64_t end = gaps->check->super.sectors;

	while (gaps->at < end) {
		const struct owner_item *owner;
		uint64_t from = gaps->at, to = end, next = end;

		if (is_owner(gaps->set, gaps->owner)) {
			struct item_set_item *item = item_set_at(gaps->set,
						       gaps->owner++);

			owner = item_set_value(gaps->set, item);
			to = addr_sector(item->key.off);
			next = to + le64_get(owner->sectors);
		}
		if (next > gaps->at)
			gaps->at = next;
		if (to > from) {
			*first = from;
			*n = to - from;
			return true;
		}
	}
	return false;
}

/* The first track that begins at or after `sector`: where it begins, and its
 * length. */
static void track_from(const struct check *check, uint64_t sector,
		       uint64_t *first, uint64_t *n)
{
	const struct geom *geom = check->geom;
	uint64_t regular = check->super.pseudo_track_sectors;
	struct geom_track track;

	if (geom && sector < geom_sectors(geom)) {
		geom_track_of(geom, sector, &track);
		if (track.first < sector &&
		    track.index + 1 < geom_tracks(geom))
			geom_track_at(geom, track.index + 1, &track);
		*first = track.first;
		*n = track.sectors;
		return;
	}
	if (!regular)
		regular = GEOM_PSEUDO_SECTORS;
	*first = (sector + regular - 1) / regular * regular;
	*n = regular;
}

/* The part of [first, first + n) that slots may use. */
static void align_slots(const struct check *check, uint64_t *first,
			uint64_t *n)
{
	uint64_t unit = check->super.physical_bytes / SECTOR_BYTES;
	uint64_t skip = (unit - *first % unit) % unit;

	*first += skip;
	*n = *n > skip ? (*n - skip) / TRAX_NODE_SECTORS : 0;
	if (*n > MAX_TRACK_SLOTS)
		*n = MAX_TRACK_SLOTS;
	*n *= TRAX_NODE_SECTORS;
}

/* Room for a node track in a free run: its first whole track, or with `any`
 * whatever there is.  n: 0: none. */
static void gap_track(const struct check *check, bool any, uint64_t *first,
		      uint64_t *n)
{
	uint64_t track = *first, sectors = *n;

	if (!any) {
		track_from(check, *first, &track, &sectors);
		if (track < *first || track + sectors > *first + *n)
			sectors = 0;
	}
	align_slots(check, &track, &sectors);
	*first = track;
	*n = sectors;
}

static int tracks_make(struct check *check, struct item_set *set,
		       struct repair_alloc *place, uint64_t nodes, bool any)
{
	struct gaps gaps = { .check = check, .set = set };
	uint64_t first, n;
	size_t from = place->tracks.n;
	int rc = 0;

	gaps.owner = owners_first(set);
	while (place->slots.n < nodes && !rc && gap_next(&gaps, &first, &n)) {
		uint64_t end = first + n;

		gap_track(check, any, &first, &n);
		if (!n)
			continue;
		rc = owner_put(set, first, n, OWNER_NODES, 0, 0);
		if (!rc)
			rc = track_add(check, &place->tracks, first, n);
		if (!rc && place->tracks.n > from)
			rc = slots_of_track(check, place,
					    vec_at(&place->tracks,
						   place->tracks.n - 1));
		/* The rest of the run may hold another track. */
		if (first + n < end) {
			gaps.at = first + n;
			gaps.owner = item_set_seek(set, owner_key(gaps.at));
		}
	}
	return rc ? rc : item_set_merge(set);
}

/* Is there an extent that agrees with this owner of data? */
static bool owner_has_extent(const struct item_set *set,
			     const struct item_set_item *item)
{
	const struct owner_item *owner = item_set_value(set, item);
	const struct item_set_item *found = item_set_find(
		set, key_make(le64_get(owner->ino), ITEM_EXTENT,
			      le64_get(owner->off)));
	const struct extent_item *e = found ? item_set_value(set, found) : NULL;

	return e && le64_get(e->addr) == item->key.off &&
	       le64_get(e->sectors) == le64_get(owner->sectors);
}

/* Removes old owners of data that belongs to no file. */
static int owners_drop(struct item_set *set)
{
	size_t i;

	for (i = owners_first(set); is_owner(set, i); i++) {
		struct item_set_item *item = item_set_at(set, i);
		const struct owner_item *owner = item_set_value(set, item);

		if (owner->kind == OWNER_DATA && !owner_has_extent(set, item))
			item_set_remove(item);
	}
	return item_set_merge(set);
}

int repair_alloc_slots(struct check *check, struct item_set *set,
		       struct repair_alloc *place, uint64_t nodes)
{
	int rc = tracks_make(check, set, place, nodes + SPARE_SLOTS, false);

	if (!rc && place->slots.n < nodes)
		rc = tracks_make(check, set, place, nodes, true);
	vec_sort(&place->tracks, track_cmp);
	vec_sort(&place->slots, sort_u64_cmp);
	place->next[0] = 0;
	place->last[0] = place->next[1] = place->slots.n / 2;
	place->last[1] = place->slots.n;
	if (!rc && place->slots.n < nodes)
		rc = -ENOSPC;
	return rc ? rc : owners_drop(set);
}

uint64_t repair_alloc_take(struct repair_alloc *place, bool mirror)
{
	const uint64_t *slots = place->slots.items;
	unsigned half = mirror;

	/* Slots that could not be written may have used up one half. */
	if (place->next[half] == place->last[half])
		half = !half;
	if (place->next[half] == place->last[half])
		return 0;
	return slots[place->next[half]++];
}

void repair_alloc_free(struct repair_alloc *place)
{
	vec_fini(&place->tracks);
	vec_fini(&place->slots);
}

/*
 * slot_map.c - the slot map against the nodes that were met and the node tracks
 * that have an owner.
 *
 * Both are lists in address order, walked side by side.  Runs after the first
 * walk and before owners_finish gives up the list of owners.
 */
#include <string.h>

#include "base/sort.h"
#include "check/scan/check_internal.h"

struct slot_cursor {
	const uint8_t *p, *end;
	uint64_t sector;	/* first sector of the track */
	unsigned slots;
	const uint8_t *bits;
};

/* Reads the next track of the map: 1; 0 at the end; -1: the map is cut off. */
static int cursor_next(struct slot_cursor *cursor)
{
	const struct slot_track *track = (const void *)cursor->p;
	size_t left = (size_t)(cursor->end - cursor->p), bytes;

	if (!left)
		return 0;
	if (left < sizeof(*track))
		return -1;
	cursor->sector = addr_sector(le64_get(track->addr));
	cursor->slots = le16_get(track->slots);
	bytes = sizeof(*track) + (cursor->slots + 7u) / 8;
	if (left < bytes)
		return -1;
	cursor->bits = (const uint8_t *)(track + 1);
	cursor->p += bytes;
	return 1;
}

static void report_sector(struct check *check, enum problem problem,
			  uint64_t sector)
{
	problem_report(check, problem,
		       (struct problem_place){ .sector = sector },
		       (unsigned long long)sector);
}

/* Compares the nodes from *at on that lie below the end of this track. */
static void slots_track(struct check *check, const struct slot_cursor *cursor,
			size_t *at)
{
	uint64_t *nodes = check->nodes.items;
	size_t n = check->nodes.n;
	unsigned i;

	for (i = 0; i < cursor->slots; i++) {
		uint64_t sector = cursor->sector +
				  (uint64_t)i * TRAX_NODE_SECTORS;
		bool used = cursor->bits[i / 8] >> i % 8 & 1;
		bool met = false;

		for (; *at < n && nodes[*at] <= sector; ++*at) {
			if (nodes[*at] == sector)
				met = true;
			else
				report_sector(check, PROBLEM_NODE_PLACE,
					      nodes[*at]);
		}
		if (used && !met)
			report_sector(check, PROBLEM_SLOT_LEAKED, sector);
		if (met && !used)
			report_sector(check, PROBLEM_SLOT_UNMAPPED, sector);
	}
}

static void report_track(struct check *check, uint64_t sector, const char *why)
{
	problem_report(check, PROBLEM_SLOT_TRACKS,
		       (struct problem_place){ .sector = sector },
		       (unsigned long long)sector, why);
}

/* The next owner of a node track; NULL: no more. */
static const struct claim *next_track(const struct check *check, size_t *at)
{
	const struct vec *fixed = &check->owners.fixed;

	while (*at < fixed->n) {
		const struct claim *claim = vec_at(fixed, (*at)++);

		if (claim->kind == OWNER_NODES)
			return claim;
	}
	return NULL;
}

static bool slots_same(const struct claim *track,
		       const struct slot_cursor *cursor)
{
	return track->n / TRAX_NODE_SECTORS == cursor->slots;
}

/* The owners of node tracks and the tracks of the map must be the same. */
static void slots_owners(struct check *check)
{
	struct slot_cursor cursor = {
		.p = check->payload,
		.end = check->payload + check->root.slotmap_bytes,
	};
	size_t at = 0;
	const struct claim *track = next_track(check, &at);
	int more = cursor_next(&cursor);

	while (track || more > 0) {
		if (more <= 0 || (track && track->sector < cursor.sector)) {
			report_track(check, track->sector,
				     "it is not in the slot map");
			track = next_track(check, &at);
		} else if (!track || cursor.sector < track->sector) {
			report_track(check, cursor.sector, "it has no owner");
			more = cursor_next(&cursor);
		} else {
			if (!slots_same(track, &cursor))
				report_track(check, track->sector,
					     "its length is wrong");
			track = next_track(check, &at);
			more = cursor_next(&cursor);
		}
	}
	if (more < 0)
		report_track(check, 0, "the slot map is cut off");
}

static void slots_twice(struct check *check)
{
	const uint64_t *nodes = check->nodes.items;
	size_t i;

	for (i = 1; i < check->nodes.n; i++)
		if (nodes[i] < nodes[i - 1] + TRAX_NODE_SECTORS)
			report_sector(check, PROBLEM_NODE_TWICE, nodes[i]);
}

void slots_finish(struct check *check)
{
	struct slot_cursor cursor = { .p = check->payload };
	uint64_t *nodes;
	size_t at = 0;

	vec_sort(&check->nodes, sort_u64_cmp);
	slots_twice(check);
	if (!check->payload)
		return;
	cursor.end = check->payload + check->root.slotmap_bytes;
	while (cursor_next(&cursor) > 0)
		slots_track(check, &cursor, &at);
	nodes = check->nodes.items;
	for (; at < check->nodes.n; at++)
		report_sector(check, PROBLEM_NODE_PLACE, nodes[at]);
	slots_owners(check);
}

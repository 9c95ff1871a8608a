/*
 * space_internal.h - what the files of src/space share.
 *
 *   sectors.c  free sectors, pending sets, loading of groups, reservation
 *   node_slots.c  node tracks and their slots
 *   space.c    generations, roots, counts
 */
#ifndef TRAX_SPACE_SPACE_INTERNAL_H
#define TRAX_SPACE_SPACE_INTERNAL_H

#include "base/list.h"
#include "base/rangeset.h"
#include "space/space.h"

/* Generations whose pending sets are kept: the running one, one being written,
 * and two to spare; a power of two. */
#define PENDING_GENS 4u

/* Sectors and slots freed in one generation, which wait for its root. */
struct pending {
	uint64_t gen;
	struct rangeset sectors;
	traxaddr *slots;
	size_t slots_n, slots_room;
};

struct space_group {
	uint32_t free;		/* sectors without an owner, pending or not */
	uint32_t largest;	/* longest free run; an upper bound when it is
				 * stale or the group is not loaded */
	uint32_t misfit[SPACE_FITS]; /* see space_group_misfit */
	uint64_t used;		/* value of space->clock at its last use */
	uint64_t freed;		/* the generation in which sectors have lost
				 * their owner last, plus one */
	bool stale;
	bool guessed;		/* the root had no better bound than all that is
				 * free, and it was not loaded since */
	bool loaded;
};

/* A group being loaded: below the cursor it is as if loaded, with a set of its
 * own; from the cursor on nothing is known. */
struct space_load {
	struct list link;
	uint32_t group;
	uint64_t cursor;
	struct rangeset free;
};

struct node_track {
	uint64_t addr;		/* address of slot 0 */
	uint32_t slots;
	uint32_t busy_n;
	uint64_t *busy;		/* bit set: the slot may not be taken; set
				 * beyond the last slot, too */
	uint64_t *tree;		/* bit set: the running tree uses the slot */
	bool failed;		/* the last write to one of its slots has
				 * failed */
	bool fresh;		/* it joined after the last cut */
	bool leaving;		/* no slot is given there any more */
	size_t saved_at;	/* not fresh: where the payload of the last cut
				 * has its bits */
};

struct space {
	uint64_t sectors, fixed;
	uint64_t gen, durable_gen;	/* the running generation, and that of
					 * the last durable root */

	struct space_group *group;
	uint32_t groups;
	uint32_t *block;	/* for each BLOCK_GROUPS groups: no free run of
				 * theirs is longer than this */
	uint64_t free_total;	/* free sectors of all groups */
	uint64_t reserved;
	uint64_t expected;	/* of space_expect */
	struct rangeset free;	/* free sectors of loaded groups */
	struct rangeset taken;	/* taken sectors, which have no owner yet */
	struct rangeset unloaded; /* set of a group that was given back, freed
				   * in steps */
	uint32_t loaded;	/* number of loaded groups */
	size_t runs_most;	/* ranges of `free` above which groups are given
				 * back */
	uint64_t clock;		/* counts uses of groups */
	struct list loads;
	struct pending pending[PENDING_GENS];	/* pending sets, by gen %
						 * PENDING_GENS */
	struct rangeset dropped, covered; /* sectors of dropped replicas, see
					   * space.h */
	uint64_t replicas;	/* sectors that replicas own */

	struct node_track *track;	/* node tracks, by address */
	size_t tracks, tracks_room;
	uint64_t *spare_busy;	/* kept for the bits of a further track */
	size_t spare_words;
	uint64_t slots_total, slots_busy, slots_reserved;
	uint64_t reserved_most;	/* the most that were reserved lately, see
				 * space_track_leave */
	bool leaves;		/* one of the tracks is leaving */
	uint64_t leaving_free;	/* slots on it that are not busy */
	uint64_t failed_free;	/* the same of tracks that have failed and are
				 * not leaving */
	traxaddr last_slot;	/* slot of the last node that had no
				 * neighbour */
	traxaddr last_mirror;	/* the slot that was taken last for a mirror */
	traxaddr last_run;	/* the slot that was taken last for a node that
				 * was to lie behind others
				 * (space_slot_take_next) */
};

/* Groups that a search passes over together. */
#define BLOCK_GROUPS 64u

struct pending *pending_running(struct space *space);

/* sectors.c */
uint32_t group_sectors(const struct space *space, uint32_t group);
/* Computes space->block from the groups. */
void blocks_renew(struct space *space);
uint64_t sectors_pending(const struct space *space);
/* Frees sectors that have lost their owner and are needed by no root. */
void sectors_release(struct space *space, uint64_t first, uint64_t n);

/* node_slots.c */
int slots_add_track(struct space *space, uint64_t addr, uint32_t slots);
int slots_del_track(struct space *space, uint64_t addr, uint32_t slots);
void slots_clear(struct space *space);
/* Does a node track have one of these sectors? */
bool slots_meet(const struct space *space, uint64_t addr, uint64_t n);
/* Makes at most `most` slots of the list free, the last ones first. */
void slots_release(struct space *space, struct pending *pending, size_t most);
size_t slots_map_bytes(const struct space *space);
/* The map of a cut. */
void slots_map_save(struct space *space, uint8_t *map);
int slots_map_load(struct space *space, const uint8_t *map, size_t bytes);

#endif

/*
 * space.h - which sectors and node slots may be written: free sectors, slots,
 * generations.
 *
 * Pure memory: no I/O, no tree.  A sector is free, used, or pending(g): freed
 * in generation g, and free when the root of g is durable
 * (doc/design/space.md).  A generation g is the time between two cuts; its root
 * describes the state at the cut that ended it.  Sectors of a replica are free
 * earlier: when the record that drops it is durable.
 *
 * The OWNER items of the tree are the truth about data; a sector without an
 * owner is free.  Every change of an OWNER item, in normal running and in
 * replay, goes to space_owner_put or space_owner_del, which alone change counts
 * and pending sets.  Free sets of groups are loaded from the OWNER items on
 * first use (tree_load_group).
 *
 * Lifetime: owned by the tree (tree/tree.h).  Errors: -ENOMEM, -ENOSPC,
 * -EUCLEAN (contradiction; reported through msg).
 */
#ifndef TRAX_SPACE_SPACE_H
#define TRAX_SPACE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rangeset.h"
#include "format/format.h"

struct space;

int space_new(uint64_t sectors, struct space **space);
void space_free(struct space *space);

/* Adds sectors, all of them free; no group may be loaded. -ENOMEM, -EINVAL. */
int space_grow(struct space *space, uint64_t sectors);

/* Sectors that no user can ever have (super_fixed_sectors); 0 at first. */
void space_set_fixed(struct space *space, uint64_t sectors);

/* The running generation; it goes up at each cut. */
uint64_t space_gen(const struct space *space);
void space_set_gen(struct space *space, uint64_t gen);

/* ---- Data sectors ---- */

/*
 * Follows the OWNER items.  put: [addr, addr + n) got an owner.  It was free,
 * or taken by space_take, or lost its owner in this generation (an item that is
 * rewritten: del of the old run, put of the new one).  del: the run lost its
 * owner and is pending in this generation; that of a replica is dropped
 * (below). Node tracks (OWNER_NODES; slot 0 at addr, n / TRAX_NODE_SECTORS
 * slots) join and leave the slot map here; one that leaves must have no busy
 * slot. After -ENOMEM the space is not to be used on; -EUCLEAN changes nothing.
 */
int space_owner_put(struct space *space, traxaddr addr, uint64_t n,
		    enum owner_kind kind);
int space_owner_del(struct space *space, traxaddr addr, uint64_t n,
		    enum owner_kind kind);

/*
 * Dropped sectors of replicas become free in two steps: cover; then release,
 * once everything that was in the log at the time of cover is durable.  cover
 * returns the number of sectors that wait for a release, those of an earlier
 * cover included.
 */
uint64_t space_cover_dropped(struct space *space);
void space_release_dropped(struct space *space);
/* Sets the number of sectors that replicas have, at the mount. */
void space_set_replicas(struct space *space, uint64_t sectors);

uint32_t space_groups(const struct space *space);
bool space_group_loaded(const struct space *space, uint32_t group);
uint32_t space_group_free(const struct space *space, uint32_t group);
/* Length of the longest free run; an upper bound when the group is not
 * loaded. */
uint32_t space_group_largest(const struct space *space, uint32_t group);
/* Is the bound no more than a guess, since sectors of the group were pending
 * when the root was written that was mounted, and it was not loaded yet? */
bool space_group_is_guessed(const struct space *space, uint32_t group);
/* The first group, from this one on, that may have a free run of n sectors; the
 * number of groups: there is none.  Full groups are passed over many at a
 * time. */
uint32_t space_group_next(const struct space *space, uint32_t group,
			  uint64_t n);
/*
 * The least number of sectors that were found not to fit into a part of a track
 * of the group, or not to be free in whole tracks; forgotten when the free set
 * of the group changes.  UINT32_MAX: nothing is known.
 */
enum space_fit { SPACE_FIT_PART, SPACE_FIT_WHOLE, SPACE_FITS };
uint32_t space_group_misfit(const struct space *space, uint32_t group,
			    enum space_fit fit);
void space_set_misfit(struct space *space, uint32_t group, enum space_fit fit,
		      uint32_t n);
void space_forget_misfits(struct space *space);

/* When the free sets hold more runs than this, groups that have not been used
 * for long are given back: they are loaded again when they are needed.  0: they
 * all stay. */
void space_set_budget(struct space *space, size_t runs);
/* Memory of one range, with the overhead of malloc(3). */
#define SPACE_RUN_BYTES 80u

/*
 * Loading a group: begin; feed each owner of the group in address order (runs
 * may begin before or end after the group); end.  Changes told by owner_put
 * and owner_del meanwhile are kept right: those at or above the cursor (the
 * end of the last owner fed, or what space_load_gap has reached) are ignored
 * because the scan will see them.
 */
int space_load_begin(struct space *space, uint32_t group);
/*
 * No owner lies between the last one fed and `end`, the next one's begin or the
 * end of the group: takes at most `most` free runs in, so that feed and end
 * find less to do.  -EAGAIN: there are more, -ENOMEM.
 */
int space_load_gap(struct space *space, uint32_t group, traxaddr end,
		   size_t most);
/* An owner, or part of one, may be fed twice. */
int space_load_feed(struct space *space, uint32_t group, traxaddr addr,
		    uint64_t n);
int space_load_end(struct space *space, uint32_t group);
void space_load_abort(struct space *space, uint32_t group);

/* The free sectors of loaded groups: neither owned, nor taken, nor pending. */
const struct rangeset *space_free_set(const struct space *space);

/* Takes free sectors for a coming write; this is not logged.  The OWNER item
 * that follows makes it lasting; space_give_back undoes it. */
int space_take(struct space *space, uint64_t sector, uint64_t n);
void space_give_back(struct space *space, uint64_t sector, uint64_t n);

/* Sectors that can still be reserved, what is expected included. */
uint64_t space_room(const struct space *space);
/* `sectors` will be asked for by space_reserve_expected, for data that a
 * program takes for written: nobody else gets them. */
void space_expect(struct space *space, uint64_t sectors);
/* Reserves room for data that is written to memory, until it has a place.
 * -ENOSPC: free and pending sectors, less what is reserved, what is expected
 * and what the file system keeps for itself, do not suffice. */
int space_reserve(struct space *space, uint64_t sectors);
/* The same for data that was expected. */
int space_reserve_expected(struct space *space, uint64_t sectors);
/* It may have a quarter of what the file system keeps for itself as well. */
uint64_t space_room_accepted(const struct space *space);
int space_reserve_accepted(struct space *space, uint64_t sectors);
void space_release(struct space *space, uint64_t sectors);

/* May node tracks be made for any transaction?  Half of the kept room is only
 * for deletes and for the nodes of data for which room was reserved. */
bool space_may_grow(const struct space *space);

struct space_counts {
	uint64_t total;		/* sectors users could ever use: all but the
				   fixed ones; node tracks count as used */
	uint64_t free;		/* sectors without an owner, pending ones and
				   those of replicas included */
	uint64_t replicas;	/* of `free`, those of replicas */
	uint64_t pending;
	uint64_t reserved;	/* promised by space_reserve */
	uint64_t own;		/* kept for deletes and node tracks */
};
void space_count(const struct space *space, struct space_counts *out);

/* ---- Node slots ---- */

/* Number of free slots that are not reserved.  A transaction reserves what it
 * may need. */
uint64_t space_slots_free(const struct space *space);
uint64_t space_slots_total(const struct space *space);
bool space_slots_reserve(struct space *space, unsigned n);
/* Are that many free?  A track that is leaving stays when they are needed. */
bool space_slots_have(struct space *space, uint64_t n);
void space_slots_release(struct space *space, unsigned n);

/*
 * Takes a slot for a node that should lie near `near` (0: anywhere): on the
 * same node track, else on the nearest track with a free slot; `apart`: on
 * another track than near's if possible (a mirror).  Never fails when a slot
 * was reserved, and uses the reservation.  Returns the slot's address.
 */
traxaddr space_slot_take(struct space *space, traxaddr near, bool apart);

/*
 * Takes a slot for the mirror of the node at `of`, on another track while one
 * has a free slot.  Mirrors of any nodes follow one another on a track that was
 * the emptiest, so that a checkpoint writes them in few accesses.  Uses one
 * reserved slot, like space_slot_take.
 */
traxaddr space_slot_take_mirror(struct space *space, traxaddr of);

/*
 * Takes a slot behind the one that it returned last, on a track that was the
 * emptiest and to which no mirrors go: nodes that are written together need few
 * accesses. 0: there is none.  Uses one reserved slot.
 */
traxaddr space_slot_take_next(struct space *space);
/* The next one begins a new row on the track that is the emptiest now. */
void space_run_begin(struct space *space);

/* Frees a slot: at once when it was taken in the running generation and is
 * not yet part of a frozen one, else pending. */
void space_slot_free(struct space *space, traxaddr addr, uint64_t node_gen);

/*
 * Takes another slot for a node or mirror that could not be written to `bad`;
 * if possible on another track than that one and than the other copy (`other`;
 * 0: there is none); `frozen`: on a track that the last cut knew.  Uses one
 * reserved slot. 0: there is none, and the reservation stays.
 */
traxaddr space_slot_take_other(struct space *space, traxaddr bad,
			       traxaddr other, bool frozen);

/*
 * A write to a slot has ended, well or not.  After a failed write the track is
 * used only where no other has a free slot, until a write to it succeeds.
 */
void space_slot_written(struct space *space, traxaddr addr, bool good);
/* Free slots of such tracks. */
uint64_t space_slots_failed(const struct space *space);

/*
 * A node track that is leaving gives no slot any more, so that it becomes free
 * of nodes and its owner can be deleted; one track at a time.  Leave: the one
 * with the fewest busy slots, `used`: even if there are any; false: none can be
 * spared, or the others have fewer than `least` slots.  The slots that are free
 * and those that have failed are then without its own.
 */
bool space_track_leave(struct space *space, uint64_t least, bool used);
/* The track at addr, if none of its slots is busy. */
bool space_track_leave_unused(struct space *space, traxaddr addr);
/* The track that is leaving, and the number of its busy slots. */
bool space_track_leaves(const struct space *space, struct range *track,
			unsigned *busy);
void space_track_stay(struct space *space);

/* Keeps memory for a node track of `slots`, so that space_owner_put of it
 * cannot fail for lack of it.  -ENOMEM. */
int space_reserve_track(struct space *space, uint64_t slots);

/* Is this the address of a slot that is in use by the running tree? */
bool space_slot_used(const struct space *space, traxaddr addr);

/* The first node track that begins at or behind an address. */
bool space_slots_next_track(const struct space *space, traxaddr from,
			    struct range *track);

/* Loads the slots that the tree of a root uses, at the mount. */
int space_load_root(struct space *space, const void *slotmap, size_t bytes,
		    const void *groups, size_t group_bytes);

/* ---- Cut and durable ---- */

/* The length that the payload of a cut would have now. */
size_t space_cut_bytes(const struct space *space);

/*
 * Ends the running generation: writes what its root will say into a payload
 * (slot map, then group table; allocated, caller frees), and starts the next
 * generation.  Nothing has changed when it fails: -ENOMEM, -EFBIG.
 */
int space_cut(struct space *space, void **payload, uint32_t *slotmap_bytes,
	      uint32_t *group_bytes);

/* Marks a slot as used or not in the payload of the last cut.  NULL, and slots
 * that this cut did not know, are passed over. */
void space_cut_mark(const struct space *space, void *payload, traxaddr addr,
		    bool used);

/*
 * The root of generation gen is durable: what was freed in it becomes free by
 * space_release_some.  That is called until it returns false before the next
 * cut; it frees at most `most` runs of sectors, or slots in the same time.
 */
void space_durable(struct space *space, uint64_t gen);
bool space_release_some(struct space *space, size_t most);

#endif

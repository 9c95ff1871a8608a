/*
 * ckpt_place.c - where a leaf goes is decided when it is written.
 *
 * A leaf has had a slot since it was first changed.  When its turn comes at the
 * disk, the slot of the same track that comes by first takes its place: copy on
 * write without losing the neighbours.  Its checksum is taken only then, and
 * its parent is sealed only when all leaves have their places.
 *
 * Neither slot is known to any root: the one in memory was free before this
 * generation, and so is the other.  Not moved: a shadow (its slot is pending
 * already), a leaf whose parent on disk is a shadow (who names it by address),
 * one that has been written before, and neighbours, which go out as one.
 */
#include <assert.h>
#include <errno.h>

#include "base/list.h"
#include "sched/queue/range_write.h"
#include "tree/tree_internal.h"

/* Free slots of one track, and the leaf's own. */
struct slots {
	struct range_set set;
	const struct space *space;
	traxaddr own;
};

static bool slots_next(const struct range_set *set, uint64_t from,
		       uint64_t end, uint32_t sectors, uint64_t *place)
{
	const struct slots *s = container_of(set, const struct slots, set);
	traxaddr slot;

	if (!space_slot_next(s->space, s->own, addr_make(0, from), &slot) ||
	    addr_sector(slot) + sectors > end)
		return false;
	*place = addr_sector(slot);
	return true;
}

bool ckpt_may_place(const struct tree *tree, size_t i)
{
	const struct checkpoint *ckpt = &tree->ckpt;
	const struct buffer *f = ckpt_nth(ckpt, i);

	if (f->level || f->tries || !f->live || !f->parent)
		return false;
	if (i && ckpt_nth(ckpt, i - 1)->ptr.addr + TRAX_NODE_SECTORS ==
	    f->ptr.addr)
		return false;
	return i + 1 == ckpt->n || ckpt_nth(ckpt, i + 1)->ptr.addr !=
				   f->ptr.addr + TRAX_NODE_SECTORS;
}

static int place_find(struct queue_place *place,
		      const struct head_state *head_state, uint32_t sectors,
		      uint64_t *sector, uint64_t *cost_ns)
{
	const struct ckpt_write *w =
		container_of(place, struct ckpt_write, place);
	const struct buffer *f = w->buffer;
	const struct slots slots = {
		.set = { slots_next }, .space = w->tree->space,
		.own = f->ptr.addr,
	};
	struct range track;
	const struct range_query query = {
		.set = &slots.set, .within = &track, .within_n = 1,
		.sectors = sectors,
	};
	struct range_answer answer;

	*sector = addr_sector(f->ptr.addr);
	*cost_ns = 0;
	if (!head_state)
		return 0;
	space_slot_track(w->tree->space, f->ptr.addr, &track);
	if (!f->live || f->parent->state != BUFFER_FROZEN ||
	    range_find(head_state, &query, &answer)) {
		*cost_ns = range_cost_ns(head_state, &query, *sector);
		return 0;
	}
	*sector = answer.sector;
	*cost_ns = answer.cost_ns;
	return 0;
}

static void place_take(struct queue_place *place, struct queue_request *req,
		       uint64_t sector)
{
	struct ckpt_write *w = container_of(place, struct ckpt_write, place);
	struct node_ptr ptr = w->buffer->ptr;

	(void)req;
	ptr.addr = addr_make(0, sector);
	if (ptr.addr != w->buffer->ptr.addr)
		ckpt_move_leaf(w->tree, w->buffer, &ptr);
	ckpt_seal(w->tree, w->buffer);
	w->tree->ckpt.unplaced--;
}

void ckpt_leave_open(struct ckpt_write *w)
{
	w->place = (struct queue_place){ .find = place_find,
					   .take = place_take };
	w->req.place = &w->place;
	w->tree->ckpt.unplaced++;
}

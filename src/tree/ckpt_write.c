/*
 * ckpt_write.c - writes the nodes of a checkpoint: seals them, and finds other
 * slots for those that cannot be written.
 */
#include "tree/ckpt_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/msg.h"

/* ---- Sealing ---- */

/* The frozen buffer of the node that a pointer in a frozen node names. */
static struct buffer *frozen_child(struct tree *tree, traxaddr addr)
{
	const struct checkpoint *ckpt = &tree->ckpt;
	struct buffer *f;

	for (size_t i = 0; i < ckpt->moved_n; i++)
		if (ckpt->moved[i].old == addr)
			return ckpt->moved[i].buffer;
	f = buffer_find(tree->buffers, addr);
	return f && f->state == BUFFER_FROZEN ? f : NULL;
}

static void seal_children(struct tree *tree, struct buffer *buffer)
{
	const unsigned n = node_count(buffer->node);

	for (unsigned i = 0; i < n; i++) {
		const struct node_ptr ptr = node_child(buffer->node, i);
		struct buffer *child;

		if (ptr.gen != tree->ckpt.gen)
			continue;
		child = frozen_child(tree, ptr.addr);
		if (!child)	/* recovery has spilled it */
			continue;
		assert(child->sealed);
		node_child_set(buffer->node, i, &child->ptr);
	}
}

/* Takes the checksum of a frozen node and writes it into the parent. */
static void ckpt_seal(struct tree *tree, struct buffer *buffer)
{
	if (buffer->level)
		seal_children(tree, buffer);
	buffer->ptr.csum = csum(buffer->node, TRAX_NODE_BYTES);
	buffer->sealed = true;
	if (buffer->live)
		apply_update_parent(buffer);
	if (buffer->ptr.addr == tree->ckpt.root.tree.addr)
		tree->ckpt.root.tree = buffer->ptr;
}

void ckpt_replace(struct tree *tree, struct buffer *buffer,
		  struct buffer *shadow)
{
	struct checkpoint *ckpt = &tree->ckpt;

	shadow->frozen_as = buffer->frozen_as;
	ckpt->buffer[shadow->frozen_as] = shadow;
	for (unsigned i = 0; i < CKPT_WRITES; i++)
		if (ckpt->write[i].buffer == buffer)
			ckpt->write[i].buffer = shadow;
	for (size_t i = 0; i < ckpt->moved_n; i++)
		if (ckpt->moved[i].buffer == buffer)
			ckpt->moved[i].buffer = shadow;
}

/* ---- Writing nodes ---- */

/* Moves the copy of a node that could not be written to another slot, or fails
 * the tree. */
static void write_failed(struct tree *tree, const struct ckpt_write *w)
{
	const struct disk_request *req = &w->req.disk;
	struct buffer *buffer = w->buffer;
	uint64_t pause_ns;

	msg_warn("node at sector %" PRIu64 ": write error (%s)", req->sector,
		 strerror(-req->result));
	if (tree->ckpt.phase == CKPT_SPILLING) {
		buffer->bad = true;	/* left to the next checkpoint */
		return;
	}
	if (fault_next(FAULT_NODE, fault_class(req->op, req->result),
		       w->req.failures, &pause_ns) != FAULT_RELOCATE) {
		tree_fail(tree, "nodes can't be written");
		return;
	}
	if (buffer->tries < w->req.failures)
		buffer->tries = (uint8_t)w->req.failures;
	if (tree->ckpt.pause_ns < pause_ns)
		tree->ckpt.pause_ns = pause_ns;
	if (w->mirror)
		buffer->bad_mirror = true;
	else
		buffer->bad = true;
	tree->ckpt.failures++;
}

static void write_done(struct disk_request *req)
{
	struct ckpt_write *w = req->owner;
	struct tree *tree = w->tree;
	struct buffer *buffer = w->buffer;

	buffer->writes--;
	tree->ckpt.writes--;
	tree->stats.node_writes++;
	space_slot_written(tree->space, addr_make(0, req->sector),
			   !req->result);
	if (req->result)
		write_failed(tree, w);
	if (w->mirror)
		buffer->mirrored = true;
	else
		buffer->written = true;
	w->buffer = NULL;
	list_add(&tree->ckpt.idle, &w->link);
	ckpt_pump(tree);
}

static void submit(struct tree *tree, struct buffer *buffer, bool mirror)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct ckpt_write *w = list_first(&ckpt->idle, struct ckpt_write,
					  link);

	list_del(&w->link);
	w->buffer = buffer;
	w->mirror = mirror;
	w->iov = (struct iovec){ buffer->node, TRAX_NODE_BYTES };
	w->req = (struct queue_request){
		.disk = {
			.op = DISK_WRITE,
			.sector = addr_sector(mirror ? buffer->ptr.addr2 :
						     buffer->ptr.addr),
			.sectors = TRAX_NODE_SECTORS,
			.iov = &w->iov,
			.iov_n = 1,
			.done = write_done,
			.owner = w,
		},
		.class = QUEUE_WRITE_BACK,
		.origin = FAULT_NODE,
		.failures = buffer->tries,
	};
	buffer->writes++;
	ckpt->writes++;
	queue_submit(tree->queue, &w->req);
}

static bool has_room(const struct tree *tree)
{
	const struct checkpoint *ckpt = &tree->ckpt;

	return ckpt->next < ckpt->n && ckpt->writes < CKPT_WRITES &&
	       !tree->failed;
}

/* A spilled node that was changed meanwhile need not be written. */
static bool is_superfluous(const struct tree *tree, const struct buffer *buffer)
{
	return tree->ckpt.phase == CKPT_SPILLING && !buffer->live;
}

/* ---- The order ---- */

/* Steps of the sort between two checks whether the turn is full. */
#define ORDER_STEP 512u

static struct buffer *ckpt_nth(const struct checkpoint *ckpt, size_t i)
{
	return ckpt->buffer[ckpt->order.item[i].value];
}

/* Levels go up to TRAX_MAX_LEVEL; no two nodes begin in the same
 * TRAX_NODE_SECTORS sectors. */
#define LEVEL_SHIFT 59u

void ckpt_order(struct tree *tree, bool mirrors)
{
	struct checkpoint *ckpt = &tree->ckpt;

	for (size_t i = 0; i < ckpt->n; i++) {
		const struct buffer *f = ckpt->buffer[i];

		ckpt->order.item[i] = (struct sort_item){
			.key = mirrors ? f->ptr.addr2 :
			       (uint64_t)f->level << LEVEL_SHIFT |
			       f->ptr.addr / TRAX_NODE_SECTORS,
			.value = (uint32_t)i,
		};
	}
	turn_charge(&tree->env->turn, TURN_CHECKPOINT,
		    ckpt->n * SORT_ITEM_NS);
	sort_begin(&ckpt->order, ckpt->n);
	ckpt->ordered = false;
	ckpt->next = 0;
}

static bool is_ordered(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;

	while (!ckpt->ordered) {
		ckpt->ordered = sort_step(&ckpt->order, ORDER_STEP);
		turn_charge(&tree->env->turn, TURN_CHECKPOINT,
			    ORDER_STEP * SORT_ITEM_NS);
		if (turn_is_full(&tree->env->turn))
			break;
	}
	return ckpt->ordered;
}

/* ---- Submitting ---- */

/* Charged in nanoseconds for a node that is sealed and submitted, for each of
 * its children, and for a mirror. */
#define NODE_NS 6000u
#define CHILD_NS 60u
#define MIRROR_NS 1500u

/* Seals and submits nodes as long as there is room for writes. */
static void pump_nodes(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct loop_turn *turn = &tree->env->turn;
	unsigned n = 0;

	while (has_room(tree) && (!n++ || !turn_is_full(turn))) {
		struct buffer *buffer = ckpt_nth(ckpt, ckpt->next++);

		if (buffer->written || is_superfluous(tree, buffer))
			continue;
		ckpt_seal(tree, buffer);
		submit(tree, buffer, false);
		turn_charge(turn, TURN_CHECKPOINT, NODE_NS + (buffer->level ?
			    node_count(buffer->node) * CHILD_NS : 0));
	}
}

/* A mirror holds the checksum of its node, so mirrors follow when all nodes are
 * sealed. */
static void pump_mirrors(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct loop_turn *turn = &tree->env->turn;
	unsigned n = 0;

	while (has_room(tree) && (!n++ || !turn_is_full(turn))) {
		struct buffer *buffer = ckpt_nth(ckpt, ckpt->next++);

		if (!buffer->ptr.addr2 || buffer->mirrored ||
		    is_superfluous(tree, buffer))
			continue;
		submit(tree, buffer, true);
		turn_charge(turn, TURN_CHECKPOINT, MIRROR_NS);
	}
}

void ckpt_pump(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;

	if (tree->failed || !is_ordered(tree))
		return;
	if (!ckpt->mirrors) {
		pump_nodes(tree);
		if (ckpt->next < ckpt->n)
			return;
		ckpt->mirrors = true;
		ckpt_order(tree, true);
		if (!is_ordered(tree))
			return;
	}
	pump_mirrors(tree);
}

bool ckpt_all_submitted(const struct checkpoint *ckpt)
{
	return ckpt->mirrors && ckpt->next == ckpt->n;
}

/* ---- Slots that can't be written ---- */

/* Takes another slot.  The running generation has the node at the same place,
 * or has already left the bad slot for another (with a shadow) and will never
 * use it. */
static traxaddr another_slot(struct tree *tree, const struct buffer *buffer,
			     traxaddr bad, traxaddr other)
{
	struct space *space = tree->space;
	traxaddr addr;

	if (!space_slots_reserve(space, 1))
		return 0;
	/* Recovery has no payload yet: what it takes will be in the first. */
	addr = space_slot_take_other(space, bad, other, tree->ckpt.payload);
	if (!addr) {
		space_slots_release(space, 1);
		return 0;
	}
	space_cut_mark(space, tree->ckpt.payload, addr, true);
	space_cut_mark(space, tree->ckpt.payload, bad, false);
	space_slot_free(space, buffer->live ? bad : addr, tree->ckpt.gen);
	return addr;
}

/* Where there is no other slot the old one is tried again. */
static void move(struct tree *tree, struct buffer *buffer)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct node_ptr ptr = buffer->ptr;
	const bool is_root = ptr.addr == ckpt->root.tree.addr;
	unsigned i = 0;

	if (buffer->bad)
		ptr.addr = another_slot(tree, buffer, ptr.addr, ptr.addr2);
	ptr.addr = ptr.addr ? ptr.addr : buffer->ptr.addr;
	if (buffer->bad_mirror)
		ptr.addr2 = another_slot(tree, buffer, ptr.addr2, ptr.addr);
	ptr.addr2 = ptr.addr2 ? ptr.addr2 : buffer->ptr.addr2;
	if (buffer->live && buffer->parent)
		i = apply_index(buffer);
	ckpt->moved[ckpt->moved_n++] = (struct ckpt_moved){
		buffer->ptr.addr, buffer,
	};
	buffer_set_ptr(tree->buffers, buffer, &ptr);
	node_set_place(buffer->node, ptr.addr, ptr.addr2, ptr.gen);
	if (buffer->live && buffer->parent)
		node_child_set(buffer->parent->node, i, &ptr);
	if (is_root)
		ckpt->root.tree = ptr;
	buffer->bad = buffer->bad_mirror = false;
	buffer->written = buffer->mirrored = false;
}

void ckpt_write_again(struct tree *tree, uint64_t now_ns)
{
	struct checkpoint *ckpt = &tree->ckpt;

	ckpt->moved_n = 0;
	for (size_t i = 0; i < ckpt->n; i++) {
		struct buffer *buffer = ckpt->buffer[i];

		if (buffer->bad || buffer->bad_mirror)
			move(tree, buffer);
		if (buffer->level)
			buffer->written = buffer->mirrored = false;
	}
	ckpt->failures = 0;
	ckpt->retry_ns = now_ns + ckpt->pause_ns;
	ckpt->pause_ns = 0;
	ckpt_begin_writing(tree);
}

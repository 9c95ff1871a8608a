/*
 * checkpoint.c - a generation becomes a root on disk.
 *
 *   idle --cut--> writing --all nodes written, log durable--> flushing
 *     ^                                                          |
 *     +------ root area written, all waiters told ------ root <--+
 *
 * The cut: the log's open record is closed, the slot map and group table are
 * saved as the root will say them, dirty nodes become frozen, and the next
 * generation begins.  It is made between transactions, never inside one.
 *
 * Nodes have their addresses since they were first changed, but a leaf may get
 * another when it is written (ckpt_place.c).  A node's checksum must be known
 * before its parent's (sealing), a leaf's is when it has its place.  They go
 * out by level, then by address; then their mirrors do, which were given slots
 * one behind the other, by address alone.  Where a frozen parent is
 * only a shadow its children are found by address; a live parent, perhaps
 * already of the next generation, is told by the child.
 *
 * A copy that can't be written takes another slot once all others are through;
 * then the nodes above are sealed and written again.  The old slot is pending
 * like any that was freed; whoever gets it and fails takes another in turn.
 *
 * The root is written when every node is on the medium and the log is durable
 * up to the cut: what it holds of data that is not destaged must be readable
 * when the tree says its checksum.
 *
 * Invariants: 1. nothing of a generation is freed before its root is durable.
 * 2. at most one generation is frozen.  3. no frozen buffer is written before
 * all frozen ones below it are sealed.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/msg.h"
#include "disk/fault.h"
#include "tree/tree_internal.h"

/* Fill driven ones that can't trim because of pinned records don't repeat. */
#define FILL_PAUSE_NS 1000000000ull
/* Until then they wait for pinned data to be destaged, which they can trim. */
#define FILL_WAIT_PERCENT 60

int ckpt_init(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;

	list_init(&ckpt->idle);
	list_init(&ckpt->now);
	list_init(&ckpt->next_list);
	for (unsigned i = 0; i < CKPT_WRITES; i++) {
		ckpt->write[i].tree = tree;
		list_add(&ckpt->idle, &ckpt->write[i].link);
	}
	ckpt->order = calloc(tree->buffers->count, sizeof(*ckpt->order));
	ckpt->moved = calloc(tree->buffers->count, sizeof(*ckpt->moved));
	return ckpt->order && ckpt->moved ? 0 : -ENOMEM;
}

void ckpt_fini(struct tree *tree)
{
	free(tree->ckpt.order);
	free(tree->ckpt.moved);
	free(tree->ckpt.area[0]);
	free(tree->ckpt.area[1]);
	free(tree->ckpt.payload);
}

/* ---- Cut ---- */

static int by_mirror(const void *a, const void *b)
{
	const struct buffer *x = *(struct buffer *const *)a;
	const struct buffer *y = *(struct buffer *const *)b;

	return x->ptr.addr2 < y->ptr.addr2 ? -1 : x->ptr.addr2 > y->ptr.addr2;
}

static int by_place(const void *a, const void *b)
{
	const struct buffer *x = *(struct buffer *const *)a;
	const struct buffer *y = *(struct buffer *const *)b;

	if (x->level != y->level)
		return x->level < y->level ? -1 : 1;
	return x->ptr.addr < y->ptr.addr ? -1 : x->ptr.addr > y->ptr.addr;
}

static void order_all(struct checkpoint *ckpt,
		      int (*cmp)(const void *a, const void *b))
{
	qsort(ckpt->order, ckpt->n, sizeof(*ckpt->order), cmp);
	for (size_t i = 0; i < ckpt->n; i++)
		ckpt->order[i]->order = i;
}

static void freeze(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct list *pos, *next;

	ckpt->n = 0;
	list_for_each_safe(pos, next, &tree->buffers->dirty) {
		struct buffer *f = list_entry(pos, struct buffer, link);

		buffer_set_state(tree->buffers, f, BUFFER_FROZEN);
		f->sealed = f->written = f->mirrored = false;
		f->tries = 0;
		ckpt->order[ckpt->n++] = f;
	}
}

/* Begins to write all nodes that are not written, and then mirrors. */
static void begin_writing(struct checkpoint *ckpt)
{
	order_all(ckpt, by_place);
	ckpt->next = 0;
	ckpt->mirrors = false;
	ckpt->phase = CKPT_WRITING;
}

static void log_is_durable(struct waiter *waiter, int rc)
{
	struct tree *tree = waiter->owner;

	tree->ckpt.log_done = true;
	if (rc)
		tree_fail(tree, "the log can't be written");
}

/* What the log has at the cut; before it is started: where it ended. */
static void cut_log(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct root *root = &ckpt->root;
	uint64_t held;

	if (!tree->log_started) {
		root->cut_seq = tree->last_seq;
		root->cut_chain = tree->last_chain;
		root->tail_seq = replay_tail(tree) <= root->cut_seq ?
				 replay_tail(tree) : root->cut_seq + 1;
		ckpt->log_done = true;
		return;
	}
	log_cut(tree->log, tree->gen + 1, &root->cut_seq, &root->cut_chain);
	held = log_oldest_pinned(tree->log);
	root->tail_seq = held <= root->cut_seq ? held : root->cut_seq + 1;
	ckpt->log_done = false;
	ckpt->log_waiter = (struct waiter){
		.seq = root->cut_seq, .done = log_is_durable, .owner = tree,
	};
	log_commit(tree->log, &ckpt->log_waiter);
}

/* Buffers for both copies of the root area; they never shrink. */
static int area_reserve(struct tree *tree, size_t bytes)
{
	struct checkpoint *ckpt = &tree->ckpt;

	if (bytes > (size_t)tree->super.area_sectors * SECTOR_BYTES)
		return -EFBIG;
	if (bytes <= ckpt->area_bytes)
		return 0;
	ckpt->area_bytes = 0;
	for (unsigned i = 0; i < 2; i++) {
		free(ckpt->area[i]);
		ckpt->area[i] = aligned_alloc(TRAX_BLOCK_BYTES, bytes);
		if (!ckpt->area[i])
			return -ENOMEM;
	}
	ckpt->area_bytes = bytes;
	return 0;
}

static int cut(struct tree *tree, uint64_t now_ns)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct root *root = &ckpt->root;
	int rc;

	free(ckpt->payload);
	ckpt->payload = NULL;
	*root = (struct root){
		.gen = tree->gen,
		.epoch = tree->epoch,
		.level = tree->root->level,
		.next_ino_seq = tree->next_ino_seq,
		.next_dirgroup = tree->next_dirgroup,
		.inodes = tree->inodes,
		.wall_ns = env_wall_ns(tree->env),
	};
	rc = space_cut(tree->space, &ckpt->payload, &root->slotmap_bytes,
		       &root->group_bytes);
	if (!rc)
		rc = area_reserve(tree, format_area_bytes(root->slotmap_bytes +
							  root->group_bytes));
	if (rc)
		return rc;
	cut_log(tree);
	root->clean = tree->closing && root->tail_seq > root->cut_seq;
	root->tree = tree->root->ptr;
	tree->growth.map_bytes = root->slotmap_bytes + root->group_bytes;
	ckpt->gen = tree->gen++;
	ckpt->moved_n = 0;
	ckpt->failures = ckpt->root_failures = 0;
	ckpt->pause_ns = ckpt->retry_ns = 0;
	ckpt->started_ns = now_ns;
	freeze(tree);
	tree->pending_frozen = tree->pending;
	tree->pending = 0;
	tree->gen_changed = false;
	ckpt->wanted = false;
	ckpt->destage_seq = 0;
	while (!list_empty(&ckpt->next_list)) {
		struct list *l = ckpt->next_list.next;

		list_del(l);
		list_add(&ckpt->now, l);
	}
	begin_writing(ckpt);
	return 0;
}

/* ---- Sealing ---- */

/* The frozen buffer that a pointer in a frozen node means. */
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
		if (!child)	/* written out early, by recovery */
			continue;
		assert(child->sealed);
		node_child_set(buffer->node, i, &child->ptr);
	}
}

void ckpt_seal(struct tree *tree, struct buffer *buffer)
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

	shadow->order = buffer->order;
	ckpt->order[shadow->order] = shadow;
	for (unsigned i = 0; i < CKPT_WRITES; i++)
		if (ckpt->write[i].buffer == buffer)
			ckpt->write[i].buffer = shadow;
	for (size_t i = 0; i < ckpt->moved_n; i++)
		if (ckpt->moved[i].buffer == buffer)
			ckpt->moved[i].buffer = shadow;
}

/* ---- Writing nodes ---- */

static void pump(struct tree *tree);

/* The copy of a node that could not be written goes to another slot, or the
 * tree has failed. */
static void write_failed(struct tree *tree, const struct ckpt_write *w)
{
	const struct disk_request *req = &w->req.disk;
	struct buffer *buffer = w->buffer;
	uint64_t pause_ns;

	msg_warn("node at sector %" PRIu64 ": write error (%s)", req->sector,
		 strerror(-req->result));
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
	if (req->result)
		write_failed(tree, w);
	if (w->mirror)
		buffer->mirrored = true;
	else
		buffer->written = true;
	w->buffer = NULL;
	list_add(&tree->ckpt.idle, &w->link);
	pump(tree);
}

static void submit(struct tree *tree, struct buffer *buffer, bool mirror,
		   bool open)
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
		.who = FAULT_NODE,
		.failures = buffer->tries,
	};
	if (open)
		ckpt_leave_open(w);
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

/* Seals and submits as long as there is room. */
static void pump_nodes(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;

	while (has_room(tree)) {
		struct buffer *buffer = ckpt->order[ckpt->next];
		const bool open = ckpt_may_place(tree, ckpt->next);

		if (buffer->level && ckpt->unplaced)
			return;
		ckpt->next++;
		if (buffer->written)
			continue;
		if (!open)
			ckpt_seal(tree, buffer);
		submit(tree, buffer, false, open);
	}
}

/* Mirrors hold the place and the checksum of their nodes: they follow when all
 * nodes have places. */
static void pump_mirrors(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;

	if (!ckpt->mirrors) {
		if (ckpt->next < ckpt->n || ckpt->unplaced)
			return;
		order_all(ckpt, by_mirror);
		ckpt->next = 0;
		ckpt->mirrors = true;
	}
	while (has_room(tree)) {
		struct buffer *buffer = ckpt->order[ckpt->next++];

		if (buffer->ptr.addr2 && !buffer->mirrored)
			submit(tree, buffer, true, false);
	}
}

static void pump(struct tree *tree)
{
	if (!tree->ckpt.mirrors)
		pump_nodes(tree);
	pump_mirrors(tree);
}

/* Nothing is left to be submitted. */
static bool all_submitted(const struct checkpoint *ckpt)
{
	return ckpt->mirrors && ckpt->next == ckpt->n;
}

/* ---- Slots that can't be written ---- */

/* Marks a slot as used or not in the payload that was saved at the cut. */
static void payload_mark(struct checkpoint *ckpt, traxaddr addr, bool used)
{
	uint8_t *map = ckpt->payload;
	size_t off = 0;

	while (map && off < ckpt->root.slotmap_bytes) {
		struct slot_track head;
		uint64_t first;
		unsigned slots;

		memcpy(&head, map + off, sizeof(head));
		off += sizeof(head);
		first = le64_get(head.addr);
		slots = le16_get(head.slots);
		if (addr >= first &&
		    addr < first + (uint64_t)slots * TRAX_NODE_SECTORS) {
			const unsigned i = (unsigned)((addr - first) /
						      TRAX_NODE_SECTORS);

			const uint8_t bit = (uint8_t)(1u << i % 8);

			if (used)
				map[off + i / 8] |= bit;
			else
				map[off + i / 8] &= (uint8_t)~bit;
			return;
		}
		off += (slots + 7) / 8;
	}
}

/* A track that joined after the cut is not in the payload.  Recovery has no
 * payload yet: what it takes will be in the first. */
static bool payload_knows(const struct checkpoint *ckpt, traxaddr addr)
{
	const uint8_t *map = ckpt->payload;
	size_t off = 0;

	if (!map)
		return true;
	while (off < ckpt->root.slotmap_bytes) {
		struct slot_track head;
		uint64_t first, end;

		memcpy(&head, map + off, sizeof(head));
		first = le64_get(head.addr);
		end = first + (uint64_t)le16_get(head.slots) *
			      TRAX_NODE_SECTORS;
		if (addr >= first && addr < end)
			return true;
		off += sizeof(head) + (le16_get(head.slots) + 7u) / 8;
	}
	return false;
}

/* The running generation, too, has the node there, or it has left the bad slot
 * before (a shadow) and will never use the other. */
static traxaddr another_slot(struct tree *tree, const struct buffer *buffer,
			     traxaddr bad, bool mirror)
{
	struct space *space = tree->space;
	traxaddr addr = 0;

	if (mirror && space_slots_reserve(space, 1))
		addr = space_slot_take_mirror(space, buffer->ptr.addr);
	if (addr && !payload_knows(&tree->ckpt, addr)) {
		space_slot_free(space, addr, tree->gen);
		addr = 0;
	}
	if (!addr && space_slots_reserve(space, 1))
		addr = space_slot_take(space, bad, true);
	if (!addr)
		return 0;
	if (!payload_knows(&tree->ckpt, addr)) {
		space_slot_free(space, addr, tree->gen);
		return 0;
	}
	payload_mark(&tree->ckpt, addr, true);
	payload_mark(&tree->ckpt, bad, false);
	space_slot_free(space, buffer->live ? bad : addr, tree->ckpt.gen);
	return addr;
}

void ckpt_move_leaf(struct tree *tree, struct buffer *buffer,
		    const struct node_ptr *ptr)
{
	const unsigned i = apply_index(buffer);

	tree->stats.leaves_placed++;
	space_slot_exchange(tree->space, buffer->ptr.addr, ptr->addr);
	payload_mark(&tree->ckpt, buffer->ptr.addr, false);
	payload_mark(&tree->ckpt, ptr->addr, true);
	buffer_set_ptr(tree->buffers, buffer, ptr);
	node_set_place(buffer->node, ptr->addr, ptr->addr2, ptr->gen);
	node_child_set(buffer->parent->node, i, ptr);
}

/* Where there is no other slot the old one is tried again. */
static void move(struct tree *tree, struct buffer *buffer)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct node_ptr ptr = buffer->ptr;
	const bool is_root = ptr.addr == ckpt->root.tree.addr;
	unsigned i = 0;

	if (buffer->bad)
		ptr.addr = another_slot(tree, buffer, buffer->ptr.addr, false);
	if (buffer->bad_mirror)
		ptr.addr2 = another_slot(tree, buffer, buffer->ptr.addr2, true);
	ptr.addr = ptr.addr ? ptr.addr : buffer->ptr.addr;
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

/* All writes are through and some failed: those move, all above them are
 * written again after the pause.  These name what moved the time before by the
 * places that it has now. */
static void write_again(struct tree *tree, uint64_t now_ns)
{
	struct checkpoint *ckpt = &tree->ckpt;

	ckpt->moved_n = 0;
	for (size_t i = 0; i < ckpt->n; i++) {
		struct buffer *buffer = ckpt->order[i];

		if (buffer->bad || buffer->bad_mirror)
			move(tree, buffer);
		if (buffer->level)
			buffer->written = buffer->mirrored = false;
	}
	ckpt->failures = 0;
	ckpt->retry_ns = now_ns + ckpt->pause_ns;
	ckpt->pause_ns = 0;
	begin_writing(ckpt);
}

/* ---- Root ---- */

static void finish(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct list *pos, *next;

	list_for_each_safe(pos, next, &tree->buffers->frozen) {
		struct buffer *f = list_entry(pos, struct buffer, link);

		f->sealed = f->written = f->mirrored = false;
		buffer_set_state(tree->buffers, f, BUFFER_CLEAN);
		if (!f->live)
			buffer_drop(tree->buffers, f);
	}
	tree->durable = ckpt->root;
	tree->stats.checkpoints++;
	tree->pending_frozen = 0;
	tree->growth.full = false;
	space_durable(tree->space, ckpt->gen);
	if (tree->log_started)
		log_trim(tree->log, ckpt->root.cut_seq);
	ckpt->helped = log_fill_percent(tree->log) < CKPT_LOG_PERCENT;
	ckpt->phase = CKPT_IDLE;
	txn_feed_starved(tree);
	tree_wake(&ckpt->now, 0);
}

/* Ends with nothing in flight; the tree has failed. */
static void give_up(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;

	ckpt->phase = CKPT_IDLE;
	ckpt->wanted = false;
	tree_wake(&ckpt->now, -EIO);
	tree_wake(&ckpt->next_list, -EIO);
}

/* No copy of the root could be written: both are again, after a pause. */
static void root_failed(struct tree *tree, const struct disk_request *req)
{
	struct checkpoint *ckpt = &tree->ckpt;
	const enum fault_class class = fault_class(req->op, req->result);
	uint64_t pause_ns;

	if (fault_next(FAULT_ROOT, class, ++ckpt->root_failures, &pause_ns) ==
	    FAULT_RETRY) {
		ckpt->retry_ns = env_now_ns(tree->env) + pause_ns;
		return;
	}
	tree_fail(tree, "no root can be written");
	give_up(tree);
}

/* One good copy is enough: the next root is written to the other area. */
static void root_done(struct disk_request *req)
{
	struct tree *tree = req->owner;
	struct checkpoint *ckpt = &tree->ckpt;

	if (req->result)
		msg_error("root area at sector %" PRIu64 ": write error (%s)",
			  req->sector, strerror(-req->result));
	else
		ckpt->roots_good++;
	if (--ckpt->roots_left)
		return;
	if (ckpt->roots_good)
		finish(tree);
	else
		root_failed(tree, req);
}

static void write_root(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct root *root = &ckpt->root;
	const size_t payload = root->slotmap_bytes + root->group_bytes;
	const size_t bytes = format_area_bytes(payload);
	const uint64_t *place = tree->super.area_sector[root->gen & 1];

	root->payload_csum = csum(ckpt->payload, payload);
	ckpt->phase = CKPT_ROOT;
	ckpt->roots_left = 2;
	ckpt->roots_good = 0;
	for (unsigned i = 0; i < 2; i++) {
		format_area(&tree->super, root, ckpt->payload, place[i],
			    ckpt->area[i]);
		ckpt->root_iov[i] = (struct iovec){ ckpt->area[i], bytes };
		ckpt->root_req[i] = (struct queue_request){
			.disk = {
				.op = DISK_WRITE,
				.fua = true,
				.sector = place[i],
				.sectors = (uint32_t)(bytes / SECTOR_BYTES),
				.iov = &ckpt->root_iov[i],
				.iov_n = 1,
				.done = root_done,
				.owner = tree,
			},
			.class = QUEUE_COMMIT,
		};
		queue_submit(tree->queue, &ckpt->root_req[i]);
	}
}

static void flush_done(struct disk_request *req)
{
	struct tree *tree = req->owner;

	if (!req->result) {
		write_root(tree);
		return;
	}
	tree_fail(tree, "flush failed");
	give_up(tree);
}

/* ---- Going on ---- */

static void run_writing(struct tree *tree, uint64_t now_ns)
{
	struct checkpoint *ckpt = &tree->ckpt;

	if (now_ns < ckpt->retry_ns && !tree->failed)
		return;
	pump(tree);
	if (ckpt->writes || (!all_submitted(ckpt) && !tree->failed))
		return;
	if (ckpt->failures && !tree->failed) {
		write_again(tree, now_ns);
		return;
	}
	if (tree->failed) {
		if (ckpt->log_done)
			give_up(tree);
		return;
	}
	if (!ckpt->log_done)
		return;
	ckpt->phase = CKPT_FLUSHING;
	ckpt->flush_req.disk.done = flush_done;
	ckpt->flush_req.disk.owner = tree;
	queue_flush(tree->queue, &ckpt->flush_req);
}

bool ckpt_would_help(const struct tree *tree)
{
	return tree->pending || tree->pending_frozen;
}

/* The log is full enough for a checkpoint, but pinned data is being destaged:
 * a checkpoint after that would trim more. */
static bool waits_for_destage(struct tree *tree, unsigned fill)
{
	struct checkpoint *ckpt = &tree->ckpt;

	if (!ckpt->destage_seq)
		ckpt->destage_seq = log_durable_seq(tree->log);
	return fill < FILL_WAIT_PERCENT && tree->destage &&
	       log_oldest_pinned(tree->log) <= ckpt->destage_seq;
}

/* Is it time for one?  *next_ns: when it will be. */
static bool is_due(struct tree *tree, uint64_t now_ns, uint64_t *next_ns)
{
	const struct checkpoint *ckpt = &tree->ckpt;
	const unsigned fill = log_fill_percent(tree->log);
	uint64_t due_ns;

	if (ckpt->wanted || !list_empty(&ckpt->next_list))
		return true;
	if (!tree->gen_changed)
		return false;
	if (tree->buffers->n_dirty > tree_dirty_most(tree))
		return true;
	if (fill >= CKPT_LOG_PERCENT && !waits_for_destage(tree, fill)) {
		due_ns = ckpt->helped ? 0 : ckpt->started_ns + FILL_PAUSE_NS;
		if (now_ns >= due_ns)
			return true;
		*next_ns = due_ns;
	}
	due_ns = tree->changed_ns + tree->options.checkpoint_ns;
	if (due_ns > log_checkpoint_ns(tree->log))
		due_ns = log_checkpoint_ns(tree->log);
	if (now_ns >= due_ns)
		return true;
	if (due_ns < *next_ns)
		*next_ns = due_ns;
	return false;
}

/* Would the log be shorter, because pinned data was destaged? */
static bool would_trim(const struct tree *tree)
{
	return tree->log_started &&
	       tree->durable.tail_seq <= tree->durable.cut_seq &&
	       log_oldest_pinned(tree->log) > tree->durable.tail_seq;
}

/* Nothing has changed since the last root, which is what was asked for. */
static bool is_needless(const struct tree *tree)
{
	return !tree->gen_changed && !would_trim(tree) && !tree->pending &&
	       !tree->buffers->n_dirty &&
	       tree->closing == tree->durable.clean &&
	       tree->durable.epoch == tree->epoch;
}

/* When what has failed is written again; UINT64_MAX: a write is awaited. */
static uint64_t ckpt_retry_ns(const struct checkpoint *ckpt, uint64_t now_ns)
{
	const bool waits = !ckpt->writes && ckpt->log_done &&
			   (ckpt->phase == CKPT_WRITING ||
			    (ckpt->phase == CKPT_ROOT && !ckpt->roots_left));

	if (!waits)
		return UINT64_MAX;
	return ckpt->retry_ns > now_ns ? ckpt->retry_ns : now_ns;
}

uint64_t ckpt_run(struct tree *tree, uint64_t now_ns)
{
	struct checkpoint *ckpt = &tree->ckpt;
	uint64_t next_ns = UINT64_MAX;

	if (!tree->started)
		return next_ns;
	if (ckpt->phase == CKPT_WRITING)
		run_writing(tree, now_ns);
	else if (ckpt->phase == CKPT_ROOT && !ckpt->roots_left &&
		 now_ns >= ckpt->retry_ns)
		write_root(tree);
	if (ckpt->phase != CKPT_IDLE)
		return ckpt_retry_ns(ckpt, now_ns);
	if (tree->failed) {
		give_up(tree);
		return next_ns;
	}
	/* Inside a transaction that has changed something there is no cut. */
	if (tree->changing || !is_due(tree, now_ns, &next_ns))
		return next_ns;
	if (is_needless(tree)) {
		ckpt->wanted = false;
		tree_wake(&ckpt->next_list, 0);
		return next_ns;
	}
	if (cut(tree, now_ns)) {
		tree_fail(tree, "no room for a root");
		give_up(tree);
		return next_ns;
	}
	run_writing(tree, now_ns);
	return ckpt_retry_ns(ckpt, now_ns);
}

void tree_checkpoint(struct tree *tree, struct waiter *waiter)
{
	if (tree->failed || !tree->started)
		list_add(&tree->doomed, &waiter->link);
	else
		list_add(&tree->ckpt.next_list, &waiter->link);
}

/* ---- Recovery ---- */

/* Waits until all nodes of the order and their mirrors are written. */
static int spill_write(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	int rc = 0;

	while (rc >= 0) {
		const uint64_t now_ns = env_now_ns(tree->env);

		if (now_ns < ckpt->retry_ns && !tree->failed) {
			rc = queue_poll_ns(tree->queue,
					   (int64_t)(ckpt->retry_ns - now_ns));
			continue;
		}
		pump(tree);
		if (ckpt->writes) {
			rc = queue_poll(tree->queue, -1);
			continue;
		}
		if (tree->failed)
			return -EIO;
		if (!ckpt->failures)
			return 0;
		write_again(tree, now_ns);
	}
	return rc;
}

/*
 * Leaves that replay has changed, and their mirrors, are written to their new
 * slots, which no root knows, so that their buffers can be evicted.  They may
 * be changed and written again: their generation goes on.
 */
int ckpt_spill(struct tree *tree)
{
	struct checkpoint *ckpt = &tree->ckpt;
	struct list *pos, *next;
	int rc;

	ckpt->n = 0;
	list_for_each_safe(pos, next, &tree->buffers->dirty) {
		struct buffer *f = list_entry(pos, struct buffer, link);

		if (f->level || !f->parent)
			continue;
		f->sealed = f->written = f->mirrored = false;
		f->tries = 0;
		ckpt->order[ckpt->n++] = f;
	}
	begin_writing(ckpt);
	rc = spill_write(tree);
	ckpt->phase = CKPT_IDLE;
	for (size_t i = 0; i < ckpt->n && !rc; i++) {
		ckpt->order[i]->written = ckpt->order[i]->mirrored = false;
		buffer_set_state(tree->buffers, ckpt->order[i], BUFFER_CLEAN);
	}
	return rc;
}

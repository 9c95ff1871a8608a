/*
 * fetch.c - reads nodes from the disk: all that a transaction missed at once,
 * each verified before it is used.
 *
 * A loading buffer hangs below its parent like a resident one, so whatever
 * happens to the parent meanwhile (copied, split, joined) is done to it, too.
 * If the node leaves the tree while it is being read, its content is thrown
 * away.
 *
 * A copy is bad when the read fails, its checksum is not its pointer's, or
 * node_verify finds a reason.  Then the mirror is read.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/csum.h"
#include "base/msg.h"
#include "disk/fault.h"
#include "tree/tree_internal.h"

static void submit(struct buffer *buffer);

/* Without this check the slot would be given to another node. */
static bool slot_is_used(const struct tree *tree, traxaddr addr)
{
	return !addr || space_slot_used(tree->space, addr);
}

/* Returns why the copy just read cannot be used; NULL: it can. */
static const char *copy_damage(struct buffer *buffer)
{
	const struct buffer_load *load = buffer->load;

	if (load->req.disk.result)
		return "read error";
	if (csum(buffer->node, TRAX_NODE_BYTES) != buffer->ptr.csum)
		return "wrong checksum";
	if (!slot_is_used(load->tree, buffer->ptr.addr) ||
	    !slot_is_used(load->tree, buffer->ptr.addr2))
		return "its slot is not in use";
	return node_verify(buffer->node, load->tree->fsid, &buffer->ptr,
			   buffer->level, load->low, load->high);
}

static void wake_waiting(struct buffer *buffer, int rc)
{
	while (!list_empty(&buffer->waiting)) {
		struct txn_miss *miss = list_first(&buffer->waiting,
						   struct txn_miss, link);

		list_del(&miss->link);
		txn_loaded(miss->txn, miss->ptr.addr, rc);
	}
}

/* The range that the parent gives is the true one.  After a repair it may be
 * larger than the node says, and must be stored when the node is written
 * next. */
static void normalize(struct buffer *buffer)
{
	node_set_low(buffer->node, buffer->load->low);
	node_set_high(buffer->node, buffer->load->high);
	if (buffer->level)
		node_child_set_key(buffer->node, 0, buffer->load->low);
}

/* Ends a load for which no copy is left; why: what was wrong with the last one,
 * NULL if nothing was. */
static void load_over(struct buffer *buffer, const char *why)
{
	struct tree *tree = buffer->load->tree;

	buffer_set_state(tree->buffers, buffer, BUFFER_CLEAN);
	if (buffer->live && !why)
		normalize(buffer);
	wake_waiting(buffer, why ? -EIO : 0);
	if (why || !buffer->live)
		buffer_drop(tree->buffers, buffer);
}

static void load_delivered(const struct buffer *buffer, uint64_t wait_ns)
{
	const struct tree_copies *copies = &buffer->load->tree->copies;

	if (copies->node_read)
		copies->node_read(copies->arg, &(struct tree_node_read){
			.low = buffer->load->low, .high = buffer->load->high,
			.level = buffer->level, .addr = buffer->ptr.addr,
			.wait_ns = wait_ns,
		});
}

/* Takes the node from a replica, if the tree's supplier of replicas has one.  A
 * replica need not be right, so it is verified.  False: the node must be read
 * from its place. */
static bool load_copy(struct buffer *buffer)
{
	const struct tree_copies *copies = &buffer->load->tree->copies;
	enum tree_copy copy = TREE_COPY_NONE;

	if (copies->copy)
		copy = copies->copy(copies->arg, buffer->ptr.addr,
				    buffer->node);
	if (copy == TREE_COPY_LATER) {
		list_add(&buffer->load->tree->later, &buffer->load->later);
		return true;
	}
	buffer->load->req.disk.result = 0;
	if (copy == TREE_COPY_NONE || copy_damage(buffer))
		return false;
	load_delivered(buffer, 0);
	load_over(buffer, NULL);
	return true;
}

/* After a bad copy: is the mirror read next? */
static bool goes_on(struct buffer *buffer)
{
	const struct disk_request *req = &buffer->load->req.disk;
	const enum fault_class class = req->result ?
		fault_class(req->op, req->result) : FAULT_MEDIA;

	buffer->tries = (uint8_t)(req->result ? buffer->load->req.failures :
						buffer->tries + 1u);
	return fault_next(FAULT_READ_NODE, class, buffer->tries, NULL) ==
	       FAULT_RELOCATE;
}

static void load_verify(struct buffer *buffer)
{
	struct tree *tree = buffer->load->tree;
	const struct disk_request *req = &buffer->load->req.disk;
	const char *why = buffer->live ? copy_damage(buffer) : NULL;
	const bool again = why && goes_on(buffer);

	/* A device number, which no node has, tells the report of a warning
	 * from that of a loss. */
	if (why && !fetch_is_reported(tree, addr_make(again, req->sector)))
		msg(again ? MSG_WARN : MSG_ERROR,
		    "node at sector %" PRIu64 ", level %u: %s%s", req->sector,
		    buffer->level, again ? "" : "lost: ", why);
	if (again) {
		submit(buffer);
		return;
	}
	tree->stats.node_reads++;
	load_delivered(buffer,
		       env_now_ns(tree->env) - buffer->load->begun_ns + 1);
	load_over(buffer, why);
}

static void load_done(struct disk_request *req)
{
	load_verify(req->owner);
}

void fetch_arrived(struct buffer *buffer, int result)
{
	buffer->load->req.disk.sector = addr_sector(buffer->ptr.addr);
	buffer->load->req.disk.result = result;
	if (buffer->sibling && list_empty(&buffer->waiting)) {
		buffer->load->tree->stats.siblings_read++;
		load_over(buffer, buffer->live ? copy_damage(buffer) : NULL);
	} else if (result) {
		submit(buffer);	/* Read by itself it may be whole. */
	} else {
		load_verify(buffer);
	}
}

static void submit(struct buffer *buffer)
{
	struct buffer_load *load = buffer->load;
	struct tree *tree = load->tree;
	traxaddr addr = buffer->ptr.addr;

	if (buffer->tries && buffer->ptr.addr2)
		addr = buffer->ptr.addr2;
	load->iov = (struct iovec){ buffer->node, TRAX_NODE_BYTES };
	load->req = (struct queue_request){
		.disk = {
			.op = DISK_READ,
			.sector = addr_sector(addr),
			.sectors = TRAX_NODE_SECTORS,
			.iov = &load->iov,
			.iov_n = 1,
			.done = load_done,
			.owner = buffer,
		},
		.class = QUEUE_READ,
		.origin = FAULT_READ_NODE,
		.failures = buffer->tries,
	};
	queue_submit(tree->queue, &load->req);
}

/* Gets a buffer for a node that is to be loaded; NULL: there is none now. */
static struct buffer *prepare(struct tree *tree, const struct txn_miss *miss)
{
	struct buffer *buffer;

	/* Pins the parent, or it could be evicted to make room for its
	 * child. */
	if (miss->parent)
		buffer_pin(tree->buffers, miss->parent);
	buffer = buffer_get(tree->buffers);
	if (buffer) {
		buffer_set_ptr(tree->buffers, buffer, &miss->ptr);
		buffer->level = (uint8_t)miss->level;
		buffer->load->buffer = buffer;
		buffer->load->low = miss->low;
		buffer->load->high = miss->high;
		buffer->load->tree = tree;
		buffer->live = true;
		buffer->tries = 0;
		buffer_set_parent(tree->buffers, buffer, miss->parent);
		buffer->load->begun_ns = env_now_ns(tree->env);
	}
	if (miss->parent)
		buffer_unpin(tree->buffers, miss->parent);
	return buffer;
}

struct buffer *fetch_prepare(struct tree *tree, struct buffer *parent,
			     unsigned i)
{
	const struct txn_miss miss = {
		.ptr = node_child(parent->node, i),
		.level = parent->level - 1u,
		.low = node_key(parent->node, i),
		.high = node_child_high(parent->node, i),
		.parent = parent,
	};

	return prepare(tree, &miss);
}

/* The same, and starts the read.  Recovery reads each node by itself, as it
 * does not count the buffers that it needs. */
static struct buffer *load(struct tree *tree, const struct txn_miss *miss,
			   bool alone)
{
	struct buffer *buffer = prepare(tree, miss);

	if (buffer && !load_copy(buffer) &&
	    (alone || !node_run_start(buffer)))
		submit(buffer);
	return buffer;
}

bool fetch_start(struct tree_txn *txn)
{
	struct tree *tree = txn->tree;

	txn->loads = 0;
	for (unsigned i = 0; i < txn->miss_n; i++) {
		struct txn_miss *miss = &txn->miss[i];
		struct buffer *buffer =
			buffer_find(tree->buffers, miss->ptr.addr);

		/* Loading one node may have evicted the parent of another. */
		if (!buffer && miss->parent &&
		    (!miss->parent->live ||
		     miss->parent->state == BUFFER_LOADING))
			continue;
		if (!buffer)
			buffer = load(tree, miss, !txn->ops);
		if (!buffer)
			continue;
		txn_pin(txn, buffer);
		if (buffer->state == BUFFER_LOADING) {
			list_add(&buffer->waiting, &miss->link);
			txn->loads++;
		}
	}
	return txn->loads > 0;
}

void tree_copies_ready(struct tree *tree)
{
	struct list wanted, *pos, *tmp;
	struct buffer_load *load;
	struct buffer *buffer;

	list_init(&wanted);
	list_for_each_safe(pos, tmp, &tree->later) {
		list_del(pos);
		list_add(&wanted, pos);
	}
	while ((load = list_first(&wanted, struct buffer_load, later))) {
		buffer = load->buffer;
		list_del(&load->later);
		if (!buffer->live)
			load_over(buffer, NULL);
		else if (!load_copy(buffer))
			submit(buffer);
	}
}

/* Returns the lowest resident buffer on the way to the node of a level where a
 * key is. */
static struct buffer *buffer_down(struct tree *tree, struct key key,
				unsigned level)
{
	struct buffer *buffer = tree->root, *child;

	while (buffer->level > level) {
		child = tree_child(tree, buffer,
				   node_child_find(buffer->node, key));
		if (!child || !tree_resident(child))
			break;
		buffer = child;
	}
	return buffer;
}

const void *tree_clean_node(struct tree *tree, struct key key, unsigned level,
			    struct key *high)
{
	const struct buffer *buffer = buffer_down(tree, key, level);

	if (buffer->level != level || buffer->state != BUFFER_CLEAN ||
	    csum(buffer->node, TRAX_NODE_BYTES) != buffer->ptr.csum)
		return NULL;
	*high = node_high(buffer->node);
	return buffer->node;
}

bool tree_node_is_at(struct tree *tree, struct key key, unsigned level,
		     traxaddr addr)
{
	const struct buffer *buffer = buffer_down(tree, key, level);
	unsigned i;

	if (buffer->level == level)
		return buffer->state == BUFFER_CLEAN &&
		       buffer->ptr.addr == addr;
	if (buffer->level != level + 1u)
		return true;
	i = node_child_find(buffer->node, key);
	return node_child(buffer->node, i).addr == addr;
}

bool tree_node_is_good(struct tree *tree, const void *node)
{
	const struct node_header *header = node;
	const struct key low = key_get(&header->low);
	const struct buffer *parent =
		buffer_down(tree, low, header->level + 1u), *child;
	struct node_ptr ptr;

	if (parent->level != header->level + 1u)
		return true;
	ptr = node_child(parent->node, node_child_find(parent->node, low));
	child = buffer_find(tree->buffers, ptr.addr);
	/* The checksum of a node that will be written is not known yet. */
	if (ptr.addr != le64_get(header->addr) ||
	    ptr.gen != le64_get(header->gen) ||
	    (child && child->state != BUFFER_CLEAN))
		return true;
	return csum(node, TRAX_NODE_BYTES) == ptr.csum;
}

void tree_set_copies(struct tree *tree, const struct tree_copies *copies)
{
	tree->copies = copies ? *copies : (struct tree_copies){ .arg = NULL };
}

int fetch_root(struct tree *tree, const struct node_ptr *ptr, unsigned level,
	       struct buffer **root)
{
	const struct txn_miss miss = {
		.ptr = *ptr, .level = level, .low = KEY_MIN, .high = KEY_MAX,
	};
	struct buffer *buffer = load(tree, &miss, true);

	assert(buffer);
	buffer_pin(tree->buffers, buffer);
	while (buffer->state == BUFFER_LOADING) {
		int rc = queue_poll(tree->queue, -1);

		if (rc < 0)
			return rc;
	}
	if (!buffer->live) {
		buffer_unpin(tree->buffers, buffer);
		return -EIO;
	}
	*root = buffer;
	return 0;
}

/*
 * tree_recovery.c - from a disk to a running tree, and back.
 *
 *   tree_open    superblock (best of three) -> root (best of four copies with a
 *                valid payload) -> slot map, group table -> root node -> log:
 *                entries behind the cut are applied to the tree in memory, one
 *                generation above the root's; logged data is collected
 *   tree_start   one checkpoint with a new epoch; only then the log goes on,
 *                and with it whoever wants to change something.  Reads need
 *                not wait.  Records whose data is not destaged stay, and are
 *                pinned
 *   tree_close   one checkpoint with the clean flag
 *
 * Until tree_start's root is durable nothing is written that the old root or
 * its log needs: replayed nodes go to slots that root does not use, and they
 * are written before only when they do not fit in the pool.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/msg.h"
#include "base/units.h"
#include "tree/tree_internal.h"

#define SECTORS_PER_MIB 2048
/* Defaults of tree_options, see tree.h. */
#define DEFAULT_POOL_BYTES ((size_t)32 << 20)
/* One part in this many of the memory for nodes may hold copies of log records
 * that nobody has waited for: 512 KiB with 32 MiB. */
#define UNTOLD_SHARE 64u
#define DEFAULT_COMMIT_NS (5 * NS_PER_SECOND)
#define DEFAULT_CHECKPOINT_NS (60 * NS_PER_SECOND)

/* ---- Superblock ---- */

/* Reads the superblock at a sector. -ENOMEM: it was not read. */
static int read_super(struct tree *tree, uint64_t sector, void *buf,
		      struct super *best, const char **why)
{
	const uint64_t version = best->sectors ? best->version : 0;
	struct super super;
	const char *bad = "read error";
	int rc = queue_read_as(tree->queue, FAULT_READ_SUPER, sector,
			       TRAX_BLOCK_SECTORS, buf);

	if (rc == -ENOMEM)
		return rc;
	if (!rc)
		bad = super_decode(buf, sector, &super);
	if (bad) {
		*why = *why ? *why : bad;
		tree->supers_differ = true;
		return 0;
	}
	tree->supers_differ |= version && super.version != version;
	if (best->sectors && (super.version <= best->version ||
			      memcmp(super.uuid, best->uuid, 16)))
		return 0;
	*best = super;
	return 0;
}

/* The first place is the same on every disk and says where the others are. If
 * it is bad, the others are looked for where a new file system of the disk's
 * size has them. */
static int find_super(struct tree *tree, void *buf)
{
	const uint64_t sectors = queue_limits(tree->queue)->sectors;
	struct super best = { .sectors = 0 };
	const char *why = NULL;
	uint64_t place[3];
	int rc;

	if (sectors < TRAX_SUPER_SECTOR + TRAX_BLOCK_SECTORS) {
		msg_error("the device is too small for a superblock");
		return -EINVAL;
	}
	rc = read_super(tree, TRAX_SUPER_SECTOR, buf, &best, &why);
	if (best.sectors)
		super_places(&best, place);
	else
		super_usual_places(sectors, place);
	for (unsigned i = 1; i < 3 && !rc; i++)
		if (place[i] + TRAX_BLOCK_SECTORS <= sectors)
			rc = read_super(tree, place[i], buf, &best, &why);
	if (rc)
		return rc;
	if (!best.sectors) {
		msg_error("superblock at sector %u: %s", TRAX_SUPER_SECTOR,
			  why);
		return -EINVAL;
	}
	if (why)
		msg_warn("a superblock is damaged (%s); another is good", why);
	tree->super = best;
	return 0;
}

static int check_super(struct tree *tree)
{
	const struct disk_limits *limits = queue_limits(tree->queue);
	const struct super *super = &tree->super;
	le64 fsid;

	if (super->sectors > limits->sectors) {
		msg_error("the device has %.1f MiB, the file system %.1f: make "
			  "the device as large as it was; a file system cannot "
			  "be made smaller", (double)limits->sectors /
			  SECTORS_PER_MIB, (double)super->sectors /
			  SECTORS_PER_MIB);
		return -EFBIG;
	}
	if (super->logical_bytes < limits->logical_bytes) {
		msg_error("the file system was made for blocks of %u bytes, "
			  "the device has %u", super->logical_bytes,
			  limits->logical_bytes);
		return -EINVAL;
	}
	if (super->ro_compat & ~TRAX_RO_COMPAT_KNOWN && !tree->read_only) {
		msg_warn("the file system has features that this version can "
			 "only read: read-only");
		tree->read_only = true;
	}
	if (limits->read_only && !tree->read_only) {
		msg_error("the device is read-only");
		return -EROFS;
	}
	memcpy(&fsid, super->uuid, sizeof(fsid));
	tree->fsid = le64_get(fsid);
	return 0;
}

int super_write_one(struct tree *tree, uint64_t place, const void *buf,
		    unsigned *failures)
{
	enum disk_op op = DISK_WRITE;
	int rc = queue_write_as(tree->queue, FAULT_SUPER, place,
				TRAX_BLOCK_SECTORS, buf);

	/* The places are written one after the other, so that a power cut tears
	 * only one of them. */
	if (!rc) {
		op = DISK_FLUSH;
		rc = queue_flush_wait(tree->queue);
	}
	if (!rc)
		return 0;
	return fault_next(FAULT_SUPER, fault_class(op, rc), ++*failures,
			  NULL) == FAULT_RELOCATE ? -EIO : -ECANCELED;
}

/* Writes this superblock, with a new version, to all places. Waits. */
static int tree_write_super(struct tree *tree, const struct super *super)
{
	struct super next = *super;
	uint64_t place[3];
	void *buf;
	unsigned failures = 0;
	int rc, good = 0;

	if (tree->read_only || tree->failed)
		return -EROFS;
	buf = aligned_alloc(TRAX_BLOCK_BYTES, TRAX_BLOCK_BYTES);
	if (!buf)
		return -ENOMEM;
	next.version = tree->super.version + 1;
	super_places(&next, place);
	for (unsigned i = 0; i < 3; i++) {
		super_encode(&next, place[i], buf);
		rc = super_write_one(tree, place[i], buf, &failures);
		good += !rc;
		if (rc == -ECANCELED)
			break;
	}
	free(buf);
	if (!good)
		return -EIO;
	tree->super = next;
	return 0;
}

void tree_set_super(struct tree *tree, const struct super *super)
{
	tree->super = *super;
	space_set_fixed(tree->space, super_fixed_sectors(super));
}

/* ---- Root ---- */

struct tree_root_copy {
	struct root root;
	uint64_t sector;
};

/* Notes that a copy of a root is bad: a crash has torn it, or it was the newest
 * root.  The log, which is read next, shows which. */
static void doubt_roots(struct tree *tree, uint64_t sector, const char *why)
{
	msg_warn("root at sector %" PRIu64 ": %s", sector, why);
	tree->roots_doubted = true;
}

/* The number of good copies, sorted with the newest first; -ENOMEM. */
static int find_roots(struct tree *tree, void *buf,
		      struct tree_root_copy copy[4])
{
	int n = 0, at;

	for (unsigned i = 0; i < 4; i++) {
		const uint64_t sector = tree->super.area_sector[i / 2][i % 2];
		struct tree_root_copy c = { .sector = sector };
		const char *why = "read error";
		int rc = queue_read_as(tree->queue, FAULT_READ_ROOT, sector,
				       TRAX_BLOCK_SECTORS, buf);

		if (rc == -ENOMEM)
			return rc;
		if (!rc)
			why = root_is_blank(buf) ? NULL :
			      root_decode(buf, tree->super.uuid, sector,
					  &c.root);
		if (!why && c.root.gen && (c.root.gen & 1) != i / 2)
			why = "it belongs to the other area";
		if (why)
			doubt_roots(tree, sector, why);
		if (why || !c.root.gen)
			continue;
		for (at = n++; at && copy[at - 1].root.gen < c.root.gen; at--)
			copy[at] = copy[at - 1];
		copy[at] = c;
	}
	return n;
}

/* Reads the payload of a root.  *payload stays NULL, with a message, if it
 * cannot be read or does not match the root. -ENOMEM. */
static int read_payload(struct tree *tree, const struct tree_root_copy *copy,
			void **payload)
{
	const struct root *root = &copy->root;
	const size_t bytes = (size_t)root->slotmap_bytes + root->group_bytes;
	const size_t area_bytes = format_area_bytes(bytes);
	const char *why = NULL;
	uint8_t *buf;
	int rc;

	if (area_bytes > (size_t)tree->super.area_sectors * SECTOR_BYTES) {
		doubt_roots(tree, copy->sector, "it is larger than its area");
		return 0;
	}
	buf = aligned_alloc(TRAX_BLOCK_BYTES, area_bytes);
	if (!buf)
		return -ENOMEM;
	rc = queue_read_as(tree->queue, FAULT_READ_ROOT,
			   copy->sector + TRAX_BLOCK_SECTORS,
			   (uint32_t)((area_bytes - TRAX_BLOCK_BYTES) /
				      SECTOR_BYTES), buf);
	if (rc)
		why = "its slot map cannot be read";
	else if (csum(buf, bytes) != root->payload_csum)
		why = "the checksum of its slot map is wrong";
	if (!why)
		*payload = buf;
	else
		free(buf);
	if (rc == -ENOMEM)
		return rc;
	if (why)
		doubt_roots(tree, copy->sector, why);
	return 0;
}

static int load_space(struct tree *tree, const void *payload)
{
	const struct root *root = &tree->durable;
	int rc = space_new(tree->super.sectors, &tree->space);

	if (rc)
		return rc;
	space_set_fixed(tree->space, super_fixed_sectors(&tree->super));
	rc = space_load_root(tree->space, payload, root->slotmap_bytes,
			     (const uint8_t *)payload + root->slotmap_bytes,
			     root->group_bytes);
	if (rc)
		return rc;
	tree->gen = root->gen + TRAX_ROOT_GEN_STEP;
	space_set_gen(tree->space, tree->gen);
	tree->next_ino_seq = root->next_ino_seq;
	tree->next_dirgroup = root->next_dirgroup;
	tree->inodes = root->inodes;
	if (!space_slot_used(tree->space, root->tree.addr)) {
		msg_error("root node at sector %" PRIu64 ": not a used slot",
			  addr_sector(root->tree.addr));
		return -EUCLEAN;
	}
	return 0;
}

static int load_root(struct tree *tree, void *buf)
{
	struct tree_root_copy copy[4];
	const int n = find_roots(tree, buf, copy);
	void *payload = NULL;
	int i, rc = n < 0 ? n : 0;

	for (i = 0; i < n && !payload && !rc; i++)
		rc = read_payload(tree, &copy[i], &payload);
	if (rc)
		return rc;
	if (!payload) {
		msg_error("no valid root in the four root areas");
		return -EBADMSG;
	}
	tree->durable = copy[i - 1].root;
	tree->epoch = tree->durable.epoch;
	tree->recovery.was_clean = tree->durable.clean;
	rc = load_space(tree, payload);
	free(payload);
	return rc;
}

static int load_root_node(struct tree *tree)
{
	struct buffer *root;
	int rc = fetch_root(tree, &tree->durable.tree, tree->durable.level,
			    &root);

	if (rc)
		return rc;
	tree_set_root(tree, root);
	buffer_unpin(tree->buffers, root);	/* fetch_root had pinned it */
	return 0;
}

/* ---- The log ---- */

static int recover_log(struct tree *tree)
{
	const struct log_options options = {
		.read_only = tree->read_only,
		.untold_bytes = tree->options.node_pool_bytes / UNTOLD_SHARE,
	};
	int rc = log_open(tree->env, tree->queue, &tree->super, &options,
			  &tree->log);

	if (rc)
		return rc;
	tree->last_seq = tree->durable.cut_seq;
	tree->last_chain = tree->durable.cut_chain;
	if (tree->durable.clean && !tree->roots_doubted)
		return 0;
	if (!tree->options.no_replay)
		return replay_log(tree);
	msg_warn("the log is not replayed: what was written last is not there, "
		 "and what was overwritten last may not be readable");
	return 0;
}

/* ---- Open ---- */

static void tree_init(struct tree *tree, struct env *env, struct queue *queue,
		      const struct tree_options *options)
{
	tree->env = env;
	tree->queue = queue;
	if (options)
		tree->options = *options;
	tree->read_only = tree->options.read_only;
	if (!tree->options.node_pool_bytes)
		tree->options.node_pool_bytes = DEFAULT_POOL_BYTES;
	if (!tree->options.commit_ns)
		tree->options.commit_ns = DEFAULT_COMMIT_NS;
	if (!tree->options.checkpoint_ns)
		tree->options.checkpoint_ns = DEFAULT_CHECKPOINT_NS;
	list_init(&tree->later);
	list_init(&tree->waiting);
	list_init(&tree->ready);
	list_init(&tree->starved);
	list_init(&tree->open);
	list_init(&tree->loads);
	list_init(&tree->doomed);
	list_init(&tree->granted);
	list_init(&tree->early);
	list_init(&tree->ckpt.now);
	list_init(&tree->ckpt.next_list);
}

static int open_all(struct tree *tree)
{
	void *buf = aligned_alloc(TRAX_BLOCK_BYTES, TRAX_BLOCK_BYTES);
	int rc = buf ? find_super(tree, buf) : -ENOMEM;

	if (!rc)
		rc = check_super(tree);
	if (!rc)
		rc = buffer_cache_new(tree->options.node_pool_bytes,
				     &tree->buffers);
	if (!rc)
		rc = node_runs_new(tree);
	if (!rc)
		rc = load_root(tree, buf);
	if (!rc)
		rc = ckpt_init(tree);
	if (!rc)
		rc = load_root_node(tree);
	if (!rc)
		rc = recover_log(tree);
	free(buf);
	return rc;
}

int tree_open(struct env *env, struct queue *queue,
	      const struct tree_options *options, struct tree **tree)
{
	struct tree *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	tree_init(t, env, queue, options);
	rc = t->options.node_pool_bytes < TREE_MIN_POOL_BYTES ||
	     (t->options.no_replay && !t->read_only) ? -EINVAL : open_all(t);
	/* A write error or a contradiction in replay was reported where it was
	 * found. */
	if (!rc && t->failed)
		rc = -EUCLEAN;
	if (rc) {
		tree_abandon(t);
		return rc;
	}
	tree_warn_numbers(t);
	*tree = t;
	return 0;
}

/* ---- Start ---- */

struct sync_waiter {
	struct waiter waiter;
	bool done;
	int rc;
};

static void sync_done(struct waiter *waiter, int rc)
{
	struct sync_waiter *s = waiter->owner;

	s->done = true;
	s->rc = rc;
}

static void sync_init(struct sync_waiter *s)
{
	*s = (struct sync_waiter){
		.waiter = { .done = sync_done, .owner = s },
	};
}

static int checkpoint_wait(struct tree *tree)
{
	struct sync_waiter s;
	int rc;

	sync_init(&s);
	tree_checkpoint(tree, &s.waiter);
	rc = tree_wait(tree, &s.done);
	return rc ? rc : s.rc;
}

static void start_rooted(struct waiter *waiter, int rc)
{
	struct tree *tree = waiter->owner;

	tree->start_rooted = !rc;
}

int tree_start_begin(struct tree *tree)
{
	int rc;

	if (tree->read_only)
		return -EROFS;
	tree->epoch = env_random(tree->env) | 1;
	rc = grow_undo(tree);
	if (rc)
		return rc;
	if (tree->supers_differ)
		tree_write_super(tree, &tree->super);
	log_keep(tree->log, replay_tail(tree) <= tree->last_seq ?
			    replay_tail(tree) : tree->last_seq + 1);
	replay_hold(tree);
	tree->started = true;
	tree->start_waiter = (struct waiter){
		.done = start_rooted, .owner = tree,
	};
	list_init(&tree->start_waiter.link);
	tree_checkpoint(tree, &tree->start_waiter);
	return 0;
}

void start_go_on(struct tree *tree)
{
	if (tree->failed)
		tree_wake(&tree->early, -EIO);
	if (tree->failed || !tree->start_rooted || tree->log_started)
		return;
	if (log_start(tree->log, tree->epoch, tree->gen, tree->last_seq,
		      tree->last_chain, tree->durable.tail_seq)) {
		tree_fail(tree, "the log can't be started");
		return;
	}
	tree->log_started = true;
	if (tree->recovered_over)
		tree_recovered_end(tree);
	/* All that was replayed is in the new root. */
	if (space_cover_dropped(tree->space))
		space_release_dropped(tree->space);
	while (!list_empty(&tree->early)) {
		struct waiter *w = list_first(&tree->early, struct waiter,
					      link);

		list_del(&w->link);
		log_commit(tree->log, w);
	}
}

static int start_wait(struct tree *tree)
{
	int rc = 0;

	while (!tree->log_started && !tree->failed && rc >= 0) {
		tree_run(tree, env_now_ns(tree->env));
		if (!tree->log_started && !tree->failed)
			rc = queue_poll(tree->queue, tree->start_rooted ? 0 :
							-1);
	}
	return rc < 0 ? rc : tree->failed ? -EIO : 0;
}

int tree_start(struct tree *tree)
{
	int rc = tree_start_begin(tree);

	return rc ? rc : start_wait(tree);
}

/* ---- Close ---- */

static int commit_wait(struct tree *tree, bool drain)
{
	struct sync_waiter s;
	int rc;

	sync_init(&s);
	s.waiter.seq = UINT64_MAX;
	if (drain)
		log_drain(tree->log, &s.waiter);
	else
		log_commit(tree->log, &s.waiter);
	rc = tree_wait(tree, &s.done);
	return rc ? rc : s.rc;
}

static int close_started(struct tree *tree)
{
	bool idle = false;
	int rc = commit_wait(tree, false);

	/* Waits for what the tree has begun by itself: node tracks, loads of
	 * groups. */
	while (!rc && !idle) {
		uint64_t next_ns;

		idle = tree_idle(tree);
		next_ns = tree_run(tree, env_now_ns(tree->env));
		rc = tree_poll(tree, idle ? 0 : next_ns);
	}
	tree->closing = true;
	if (!rc)
		rc = checkpoint_wait(tree);
	if (!rc)
		rc = commit_wait(tree, true);
	return rc;
}

/* Transactions of the tree's own may be open at any time. */
static bool only_own(const struct tree *tree, const struct list *txns)
{
	const struct list *pos;

	list_for_each(pos, txns)
		if (!groups_own(tree, list_entry(pos, struct tree_txn, link)))
			return false;
	return true;
}

int tree_close(struct tree *tree)
{
	int rc = 0;

	assert(only_own(tree, &tree->ready) &&
	       only_own(tree, &tree->starved));
	if (tree->started && !tree->failed)
		rc = start_wait(tree);
	if (tree->log_started && !tree->failed && !rc)
		rc = close_started(tree);
	else if (tree->failed)
		rc = -EIO;
	if (queue_drain(tree->queue) && !rc)
		rc = -EIO;
	tree_abandon(tree);
	return rc;
}

static void free_txns(struct list *list)
{
	while (!list_empty(list)) {
		struct tree_txn *txn = list_first(list, struct tree_txn, link);

		list_del(&txn->link);
		txn_free(txn);
	}
}

void tree_abandon(struct tree *tree)
{
	free_txns(&tree->waiting);
	free_txns(&tree->ready);
	free_txns(&tree->starved);
	free_txns(&tree->open);
	groups_free(tree);
	free(tree->rmap_spare[0]);
	free(tree->rmap_spare[1]);
	if (tree->log)
		log_close(tree->log);
	logged_data_free(tree->data);
	ckpt_fini(tree);
	node_runs_free(tree->runs);
	buffer_cache_free(tree->buffers);
	space_free(tree->space);
	free(tree);
}

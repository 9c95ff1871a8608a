/*
 * tree_internal.h - what the parts of src/tree share.
 *
 *   node.c        one node in place         buffer.c   the node cache
 *   tree.c        the loop, accessors
 *   lookup.c      lookups over resident nodes
 *   fetch.c       nodes from disk, verified, mirror when bad
 *   node_run.c    siblings that lie near one another, read in one access
 *   apply.c       changes: copy on write, splits, merges
 *   delete_range.c  deleting a range of keys
 *   txn.c         transactions: admission, runs, the entries for the log
 *   txn_state.c   one by itself: made, freed, its pins, its lists
 *   rmap.c        what transactions tell the space and the counters
 *   checkpoint.c  cut, writing a generation, its root
 *   ckpt_*.c      parts of a checkpoint (ckpt_internal.h)
 *   tree_recovery.c  superblock, root, start and close
 *   replay.c      the log's records are applied
 *   logged_data.c  logged data found by recovery
 *   groups.c      loading free sets, new node tracks
 *   track_leave.c  node tracks that go back to the free space
 *   tree_format.c the first tree
 */
#ifndef TRAX_TREE_TREE_INTERNAL_H
#define TRAX_TREE_TREE_INTERNAL_H

#include "base/list.h"
#include "base/sort.h"
#include "tree/buffer.h"
#include "tree/node.h"
#include "tree/tree.h"

/* The least node pool (tree_options): 256 buffers. */
#define TREE_MIN_POOL_BYTES ((size_t)4 << 20)
#define TREE_OWN_PINS 24	/* buffers kept for the tree's own work */
/* Unreadable nodes that one transaction remembers; with more the whole
 * transaction fails. */
#define TREE_MAX_FAILED 8
/* Bad nodes that are remembered, so that each is reported once. */
#define TREE_REPORTED 32

/* ---- Ownership changes of one transaction, netted ---- */

struct rmap_range {
	uint64_t first, n;
	uint8_t kind;
};

struct rmap_list {
	struct rmap_range *range;
	unsigned n, room;
};

struct rmap_delta {
	struct rmap_list put, del;
};

/* ---- Transactions ---- */

enum txn_state { TXN_WAITING, TXN_READY, TXN_OPEN, TXN_FETCHING };

/* A node that a probe missed. */
struct txn_miss {
	struct node_ptr ptr;
	unsigned level;
	struct key low, high;
	struct buffer *parent;
	struct tree_txn *txn;
	struct list link;	/* member of the loading buffer's list of
				 * waiters */
};

struct tree_txn {
	struct tree *tree;
	struct list link;	/* member of the list of those that wait, are
				 * ready, or are open */
	enum txn_state state;
	bool own;		/* the tree itself runs it, and it may use what
				 * is kept for that */
	bool changed, has_data;
	bool waited;		/* it has waited for admission, which is counted
				 * once */
	struct tree_bounds bounds;
	const struct tree_txn_ops *ops;
	void *arg;
	int rc;			/* result for its next run */
	uint64_t runs;

	unsigned slots;		/* slots that it still has reserved */
	unsigned pins_n, pins_room, leaves;
	struct buffer **pins;
	unsigned miss_n, loads;
	struct txn_miss *miss;	/* room for bounds.nodes; NULL: nothing was
				 * missed yet */
	unsigned failed_n;
	traxaddr failed[TREE_MAX_FAILED];

	uint8_t *log;		/* the entries of its log record */
	size_t log_used;
	struct rmap_delta rmap;
};

/* ---- Checkpoints ---- */

enum ckpt_phase {
	CKPT_IDLE, CKPT_WRITING, CKPT_FLUSHING, CKPT_ROOT,
	CKPT_SPILLING,		/* see ckpt_spill.c */
	CKPT_RELEASING,		/* what was freed before the root is given back
				 * to the free space */
};

/* Fill of the log in percent at which a checkpoint begins. */
#define CKPT_LOG_PERCENT 40
/* Writes that a checkpoint has outstanding at most: enough that the queue has a
 * choice. */
#define CKPT_WRITES 64

struct ckpt_write {
	struct queue_request req;
	struct iovec iov;
	struct tree *tree;
	struct buffer *buffer;
	bool mirror;
	struct list link;
};

struct ckpt_moved {
	traxaddr old;
	struct buffer *buffer;
};

struct checkpoint {
	enum ckpt_phase phase;
	bool wanted;
	bool pressed;		/* too many nodes are dirty */
	bool gather;		/* the next cut brings leaves together */
	bool log_done;
	uint64_t gen;		/* generation that is being written */
	struct root root;	/* the root that it will have */
	struct buffer **buffer;	/* the frozen buffers */
	struct sort order;	/* of them: by level and then address, or by the
				 * addresses of their mirrors */
	size_t n, next;		/* number of them, and the next of the order to
				 * be submitted */
	bool ordered;		/* `order` is sorted */
	bool mirrors;		/* mirrors are being submitted; `order` is by
				 * the mirrors' addresses */
	unsigned failures;	/* copies of nodes whose write failed */
	unsigned root_failures;	/* times that both copies of the root failed */
	unsigned cut_failures;	/* times that there was no memory for it */
	uint64_t pause_ns;	/* pause before failed writes are repeated */
	uint64_t retry_ns;	/* end of that pause */
	struct ckpt_write write[CKPT_WRITES];
	struct list idle;	/* elements of write[] that are not in use */
	unsigned writes;	/* writes that are outstanding */
	struct ckpt_moved *moved;	/* nodes that have moved in this round
					 * of writing */
	size_t moved_n;
	void *payload;
	uint8_t *area[2];	/* buffers for both copies: root block and
				 * payload */
	size_t area_bytes;
	struct queue_request root_req[2], flush_req;
	struct iovec root_iov[2];
	unsigned roots_left, roots_good;
	struct waiter log_waiter;
	struct list now, next_list;	/* waiters for this checkpoint, and for
					 * the next one */
	uint64_t started_ns;
	uint64_t destage_seq;	/* the checkpoint waits for data up to this
				 * record to be destaged; 0: it does not wait */
	bool helped;		/* the last checkpoint has left the log less
				 * full */
};

/* ---- Node tracks and group loads (groups.c) ---- */

struct growth {
	struct tree_txn *txn;
	int (*pick)(void *arg, traxaddr *addr, uint32_t *sectors);
	void *arg;
	bool wanted;		/* somebody waits for slots */
	bool picked, full;	/* a place was picked; there is no place until
				 * the next checkpoint */
	traxaddr addr;
	uint32_t sectors;
	uint64_t retry_ns;
	size_t map_bytes;	/* size of the slot map in the payload, if a
				 * root were cut now */
};

/* ---- A log that nothing frees ---- */

struct log_stuck {
	bool met;		/* in the last admission an urgent transaction
				 * found no room in a log that is alone */
	uint64_t progress;	/* log_progress() when it was looked at last */
	uint64_t look_ns;	/* not before this time is it looked at again */
	unsigned looks;		/* in a row that saw no difference */
};

/* ---- Node tracks that go back (track_leave.c) ---- */

struct leaving {
	struct tree_txn *txn;
	uint64_t seen;		/* number of checkpoints when it was looked for
				 * a track last */
	bool look;		/* since then it was not yet found that there is
				 * nothing to do */
	bool asked;		/* nodes may be moved after the next checkpoint,
				 * too */
	unsigned moves;		/* nodes that may still be moved */
	struct range track;	/* the track that is leaving */
	unsigned busy;		/* its busy slots */
	struct key from;	/* nodes up to this key are not on it */
};

struct logged_data;		/* see logged_data.c */
struct node_runs;		/* see node_run.c */

struct tree {
	struct env *env;
	struct queue *queue;
	struct tree_options options;
	struct super super;
	bool supers_differ;	/* a superblock place holds something else than
				 * the others */
	uint64_t fsid;
	struct space *space;
	struct log *log;
	struct buffer_cache *buffers;
	struct buffer *root;	/* the root node, pinned once */
	uint64_t gen;		/* the running generation */
	struct root durable;	/* the last durable root */
	bool roots_doubted;	/* a copy of a root was found to be bad */
	uint64_t epoch;
	uint64_t last_seq, last_chain;	/* end of the log as the root or
					 * recovery gives it, before the log is
					 * started */
	uint64_t next_ino_seq, next_dirgroup, inodes;
	bool read_only, started, failed, closing, log_started;
	bool gen_changed;	/* something was changed since the last cut */
	uint64_t changed_ns;	/* when the first such change was made */
	unsigned pending, pending_frozen;	/* slots freed in the running
						   and the frozen generation */

	struct rmap_range *rmap_spare[2];	/* memory that is kept for
						 * rmap.c */
	struct list waiting, ready, starved, open;
	bool begun;		/* some that admit_all has not seen */
	unsigned changing;	/* open transactions that have changed
				 * something */
	size_t pins_reserved, new_reserved;
	struct tree_txn *txn;	/* the transaction that is applying its changes;
				 * slots are taken from its reservation */
	uint64_t nowhere;	/* after a failure: number of addresses given
				 * out that are not slots */

	struct checkpoint ckpt;
	struct growth growth;
	struct log_stuck log_stuck;
	struct leaving leaving;
	struct list loads;	/* loads of groups that are under way */
	struct list early;	/* waiters for a commit, until the log is
				 * started */
	struct waiter start_waiter;	/* waits for the first root of the
					 * mount */
	bool start_rooted;	/* that root is durable */
	bool recovered_over;	/* recovered data was given up
				 * (tree_recovered_end) */
	struct list doomed, granted;	/* waiters that will be told -EIO;
					 * waiters that will be told 0 */
	void (*destage)(void *arg, uint64_t seq);
	void *destage_arg;
	uint64_t (*order)(void *arg);	/* see tree_set_order; or NULL */
	void *order_arg;
	uint64_t destage_seq;	/* destaging was asked for up to this record */
	struct waiter commit_waiter;
	bool committing;

	struct node_runs *runs;
	unsigned run_slots;	/* longest run in slots; tests make it
				 * shorter */
	struct tree_copies copies;
	struct list later;	/* loading buffers that wait for somebody's
				 * copies */
	traxaddr
		reported[TREE_REPORTED]; /* the last bad nodes that were
					  * reported */
	unsigned reported_n;

	struct tree_recovery recovery;
	struct logged_data *data;
	struct tree_stats stats;
};

/* ---- tree.c ---- */

void tree_set_root(struct tree *tree, struct buffer *root);
/* Calls all waiters of a list with rc, after emptying it. */
void tree_wake(struct list *list, int rc);
/* Writes a message if few inode numbers are left. */
void tree_warn_numbers(const struct tree *tree);
/* Polls the disk until `next_ns`, which tree_run has returned, at most; 0 or an
 * error. */
int tree_poll(struct tree *tree, uint64_t next_ns);
/* Polls the queue and runs the tree until *done. */
int tree_wait(struct tree *tree, const bool *done);
static inline bool tree_resident(const struct buffer *buffer)
{
	return buffer && buffer->state != BUFFER_LOADING;
}
/* Child i of a node, resident or loading; NULL: neither.  (A damaged tree may
 * name a node twice: it belongs to the place that had it first.) */
struct buffer *tree_child(const struct tree *tree, const struct buffer *parent,
			 unsigned i);
/* The resident leaf that covers key; NULL: a node on the way is not
 * resident. */
struct buffer *tree_leaf(struct tree *tree, struct key key);

/* ---- fetch.c ---- */

/* Was damage of this node reported before? Each node is reported once, or the
 * scan of a bad disk would report nothing else. */
bool fetch_is_reported(struct tree *tree, traxaddr addr);
/* Starts reads of all nodes that were noted; false: there is nothing to wait
 * for. */
bool fetch_start(struct tree_txn *txn);
/* Reads the root node of a tree that is being opened. */
int fetch_root(struct tree *tree, const struct node_ptr *ptr, unsigned level,
	       struct buffer **root);

/* Gets a buffer for child i of a node, to be loaded. NULL: no buffer is free
 * now. */
struct buffer *fetch_prepare(struct tree *tree, struct buffer *parent,
			     unsigned i);
/* The first copy of a node was read together with others; result: that of the
 * access. */
void fetch_arrived(struct buffer *buffer, int result);

/* ---- node_run.c ---- */

int node_runs_new(struct tree *tree);	/* makes tree->runs */
void node_runs_free(struct node_runs *runs);
/* Reads a node, and siblings with it.  false: there are none near it. */
bool node_run_start(struct buffer *buffer);

/* ---- lookup.c ---- */

/* A key of a node that has a copy in this range of addresses and is not of the
 * running generation, looked for from *from on, like tree_copy_key. */
int lookup_on_track(struct tree_txn *txn, const struct range *track,
		    struct key *from, struct key *low);

/* ---- apply.c: cannot fail ---- */

void apply_put(struct tree *tree, struct key key, const void *value,
	       size_t bytes);
void apply_del(struct tree *tree, struct key key);
/* Makes a buffer dirty in the running generation, so that its content may be
 * changed. */
void apply_touch(struct tree *tree, struct buffer *buffer);
void apply_touch_leaf(struct tree *tree, struct key key);
/* A new dirty node without parent. */
struct buffer *apply_new_node(struct tree *tree, unsigned level, struct key low,
			     struct key high, traxaddr near);
void apply_free_slots(struct tree *tree, const struct node_ptr *ptr);
/* Joins a node that may have become small with a resident neighbour. */
void apply_shrink(struct tree *tree, struct buffer *buffer);
/* Joins a touched node with the sibling at position i of their parent. */
void apply_join(struct tree *tree, struct buffer *buffer,
		struct buffer *sibling, unsigned i);
/* Gives the first n items of a touched leaf, but not all, to its left
 * neighbour, which is touched, too, and has room; the leaf begins with key
 * `low` then. */
void apply_give(struct buffer *left, struct buffer *leaf, unsigned n,
		struct key low);
/* The position of a node in its parent. */
unsigned apply_index(const struct buffer *buffer);
/* Writes a buffer's address and checksum into its parent. */
void apply_update_parent(struct buffer *buffer);

/* ---- delete_range.c ---- */

struct key range_delete(struct tree *tree, struct key first, struct key last,
			unsigned max_nodes);

/* ---- rmap.c ---- */

/* Notes that an item is about to replace `old` (NULL: none), or to be
 * deleted. */
void rmap_note_put(struct tree *tree, struct rmap_delta *delta,
		    struct key key, const void *value, const void *old);
void rmap_note_del(struct tree *tree, struct rmap_delta *delta,
		    struct key key, const void *old);
/* Tells the space of all changes and empties delta. */
int rmap_cancel(struct tree *tree, struct rmap_delta *delta);
/* Tells the space of node tracks only, because replay needs their slots, or no
 * longer gives them, for what follows in the same record. */
int owner_settle_nodes(struct tree *tree, struct rmap_delta *delta);
void rmap_free(struct rmap_delta *delta);
/* Gets memory for all that a transaction may change; false: out of memory. */
bool rmap_reserve(struct tree *tree);

/* ---- txn.c, txn_state.c ---- */

int txn_new(struct tree *tree, const struct tree_bounds *bounds,
	    const struct tree_txn_ops *ops, void *arg, struct tree_txn **txn);
/* Before it runs: is there room for what it may log?  Those that only wait to
 * be admitted have none. */
bool txn_may_log(struct tree_txn *txn);
/* Frees a transaction and its pins. */
void txn_free(struct tree_txn *txn);
/* Begins a transaction of the tree's own: it is admitted before others and uses
 * what is kept for it. */
int txn_begin_own(struct tree *tree, const struct tree_bounds *bounds,
		  const struct tree_txn_ops *ops, void *arg,
		  struct tree_txn **txn);
void txn_pin(struct tree_txn *txn, struct buffer *buffer);
void txn_unpin_all(struct tree_txn *txn);
/* A read that the transaction waited for has ended. */
void txn_loaded(struct tree_txn *txn, traxaddr addr, int rc);
/* Admits and runs transactions; true: there is more to do at once. */
bool txn_run_all(struct tree *tree);
/* Lets transactions try again that found no buffers for their fetches. */
void txn_feed_starved(struct tree *tree);
/* Buffers that may be dirty before some are written. */
size_t tree_dirty_most(const struct tree *tree);
/* Buffers that may be dirty now, beside those that are being written. */
size_t tree_dirty_room(const struct tree *tree);
/* How many buffers transactions may pin. */
size_t tree_pins_most(const struct tree *tree);
void txn_add_ready(struct tree_txn *txn);

/* ---- checkpoint.c ---- */

int ckpt_init(struct tree *tree);
void ckpt_fini(struct tree *tree);
/* Starts a checkpoint or goes on with it; returns when it wants to be called
 * again. */
uint64_t ckpt_run(struct tree *tree, uint64_t now_ns);
/* The content of a frozen buffer has moved to its shadow. */
void ckpt_replace(struct tree *tree, struct buffer *buffer,
		  struct buffer *shadow);
/* Used by recovery only: writes changed leaves so that they can be evicted. */
int ckpt_spill(struct tree *tree);
/* Would a checkpoint free slots? */
bool ckpt_would_help(const struct tree *tree);

/* ---- groups.c ---- */

uint64_t growth_run(struct tree *tree, uint64_t now_ns);
bool growth_can_help(const struct tree *tree);
/* For what many transactions at once might need at worst, and hardly ever do,
 * node tracks may take this much; above it they wait for one another. */
bool growth_is_cheap(const struct tree *tree);
/* Forgets loads that are under way; their waiters are not told. */
void groups_free(struct tree *tree);
/* Did the tree itself begin this transaction, to load a group or for a node
 * track? */
bool groups_own(const struct tree *tree, const struct tree_txn *txn);

/* ---- track_leave.c ---- */

/* Gives node tracks back that are not needed; returns when it wants to be
 * called again. */
uint64_t leave_run(struct tree *tree, uint64_t now_ns);

/* ---- tree_recovery.c ---- */

/* Starts the log when the first root of the mount is durable. */
void start_go_on(struct tree *tree);

/* Writes one superblock and flushes. -EIO: it was not written; -ECANCELED: the
 * others cannot be written either. Failures are counted in `failures`, 0 at
 * first. */
int super_write_one(struct tree *tree, uint64_t place, const void *buf,
		    unsigned *failures);

/* ---- tree_grow.c ---- */

/* Wipes what a growth that was cut short has left beyond the end. */
int grow_undo(struct tree *tree);

/* ---- replay.c ---- */

int replay_log(struct tree *tree);
/* Applies changes that are in no log: the first root of the mount holds
 * them. */
int replay_changes(struct tree *tree, const struct tree_change *change,
		   size_t n);
/* The oldest record with recovered data; UINT64_MAX: there is none. */
uint64_t replay_tail(const struct tree *tree);
/* Pins each of these records, once for each block. */
void replay_hold(struct tree *tree);

/* ---- logged_data.c ---- */

int logged_data_new(struct logged_data **log);
void logged_data_free(struct logged_data *log);
int logged_data_add(struct logged_data *log, const struct tree_data *data);
/* Makes the list; nothing is added after this. */
int logged_data_close(struct logged_data *log);
size_t logged_data_list(const struct logged_data *log,
			const struct tree_data **data);

/* ---- tree_format.c ---- */

/* The number of bytes of a root area that are written for a payload. */
size_t format_area_bytes(size_t payload_bytes);
/* Fills in the root block and the payload behind it; `buf` has
 * format_area_bytes. */
void format_area(const struct super *super, const struct root *root,
		 const void *payload, uint64_t sector, void *buf);

#endif

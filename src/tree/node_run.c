/*
 * node_run.c - reads a node together with siblings that lie near it on the
 * disk, in one access.
 *
 * Leaves below one parent are mostly made one after the other and take slots
 * one behind the other, and a transaction that wants one of them often wants
 * the next one soon: the checksums of a large file, the names of a directory.
 * The parent is in memory and has their addresses.
 *
 * The number of slots of a run follows from what became of the siblings read so
 * far: `reach` grows with each one that is used and shrinks with each one that
 * is evicted unused.  A run never transfers for longer than a turn.
 *
 * A sibling that nobody waits for is advice only: if it cannot be read it is
 * given up silently, and a transaction that needs it reads it.
 */
#include <errno.h>
#include <stdlib.h>

#include "tree/tree_internal.h"

#define RUNS 4u			/* runs that the disk has at once, at most */
#define RUN_SLOTS 64u		/* longest run: 1 MiB */
/* First and least value of `reach`, in slots. */
#define FIRST_REACH 16
#define LEAST_REACH 2
/* A sibling that is used saves a positioning, which costs as much as
 * transferring about eight nodes that are not used. */
#define USED_GAIN 8
/* Most slots of other nodes in a row that a run reads and throws away: they
 * take less time than a second access. */
#define GAP_SLOTS 8
/* The length of a run where no track is known. */
#define UNKNOWN_TRACK_SLOTS 16u

struct node_run {
	struct node_runs *runs;
	struct list link;		/* member of the list of idle runs */
	struct queue_request req;
	unsigned ahead;			/* siblings in it, for which nobody
					 * waits */
	unsigned n;			/* slots that it covers */
	struct buffer *buffer[RUN_SLOTS]; /* for each slot the buffer to fill;
					   * NULL: it is thrown away */
	struct iovec iov[RUN_SLOTS];
};

struct node_runs {
	struct tree *tree;
	struct list idle;
	int reach;			/* longest extent of the next run, in
					 * slots */
	uint64_t used, unused;		/* counts of siblings when `reach` was
					 * set */
	void *scratch;			/* memory for slots that are thrown
					 * away */
	struct node_run run[RUNS];
};

/* The siblings of a node that lie near it, by their distance from it in
 * slots. */
struct siblings {
	int limit;			/* most slots of the run */
	int first, last;		/* the run's slots, as distances */
	int16_t child[2 * RUN_SLOTS];	/* for each distance the index of the
					 * child in the parent; -1: no sibling
					 * that is wanted */
};

int node_runs_new(struct tree *tree)
{
	struct node_runs *runs = calloc(1, sizeof(*runs));

	if (!runs)
		return -ENOMEM;
	tree->runs = runs;
	tree->run_slots = RUN_SLOTS;
	runs->tree = tree;
	runs->reach = FIRST_REACH;
	list_init(&runs->idle);
	for (unsigned i = 0; i < RUNS; i++) {
		runs->run[i].runs = runs;
		list_init(&runs->run[i].link);
		list_add(&runs->idle, &runs->run[i].link);
	}
	runs->scratch = aligned_alloc(TRAX_BLOCK_BYTES, TRAX_NODE_BYTES);
	return runs->scratch ? 0 : -ENOMEM;
}

void node_runs_free(struct node_runs *runs)
{
	if (runs)
		free(runs->scratch);
	free(runs);
}

/* ---- How far ---- */

static void follow_use(struct node_runs *runs)
{
	const struct buffer_cache *buffers = runs->tree->buffers;
	const uint64_t used = buffers->siblings_used - runs->used;
	const uint64_t unused = buffers->siblings_unused - runs->unused;

	runs->used = buffers->siblings_used;
	runs->unused = buffers->siblings_unused;
	if (used > RUN_SLOTS)
		runs->reach = RUN_SLOTS;
	else if (unused > RUN_SLOTS * USED_GAIN)
		runs->reach = LEAST_REACH;
	else
		runs->reach += (int)used * USED_GAIN - (int)unused;
	if (runs->reach > (int)RUN_SLOTS)
		runs->reach = RUN_SLOTS;
	if (runs->reach < LEAST_REACH)
		runs->reach = LEAST_REACH;
}

/* Buffers for siblings are counted like pins of transactions, so that a
 * transaction that was admitted still finds its buffers. */
static int slots_most(struct node_runs *runs, const struct buffer *buffer)
{
	const struct tree *tree = runs->tree;
	const size_t pins = tree_pins_most(tree) / 2;
	unsigned track = queue_track_sectors(tree->queue,
					     addr_sector(buffer->ptr.addr));
	size_t most;

	follow_use(runs);
	most = track ? track / TRAX_NODE_SECTORS : UNKNOWN_TRACK_SLOTS;
	if (most > tree->run_slots)
		most = tree->run_slots;
	if (most > (size_t)runs->reach)
		most = (size_t)runs->reach;
	if (tree->pins_reserved + most > pins)
		most = tree->pins_reserved < pins ? pins - tree->pins_reserved :
						    0;
	return (int)most;
}

/* ---- Which ---- */

/* Finds the children of the same parent that lie near and are not in memory. */
static void find_siblings(const struct tree *tree, const struct buffer *buffer,
			  struct siblings *siblings)
{
	const void *parent = buffer->parent->node;
	const unsigned n = node_count(parent);

	for (unsigned i = 0; i < 2 * RUN_SLOTS; i++)
		siblings->child[i] = -1;
	for (unsigned i = 0; i < n; i++) {
		const traxaddr addr = node_child(parent, i).addr;
		const int64_t sectors = (int64_t)(addr - buffer->ptr.addr);
		const int64_t slots = sectors / (int64_t)TRAX_NODE_SECTORS;

		if (slots <= -(int64_t)RUN_SLOTS ||
		    slots >= (int64_t)RUN_SLOTS ||
		    sectors % (int64_t)TRAX_NODE_SECTORS ||
		    buffer_find(tree->buffers, addr))
			continue;
		siblings->child[RUN_SLOTS + slots] = (int16_t)i;
	}
}

/* Extends the run to the next sibling on one side; false: it ends there. */
static bool extend(struct siblings *siblings, int step, int gap)
{
	int *end = step > 0 ? &siblings->last : &siblings->first;
	int room = siblings->limit - (siblings->last - siblings->first + 1);

	for (int i = 1; i <= gap + 1 && i <= room; i++) {
		const int slot = *end + step * i;

		if (siblings->child[(int)RUN_SLOTS + slot] < 0)
			continue;
		*end = slot;
		return true;
	}
	return false;
}

/* Extends upwards first, because siblings that are read in order lie there. */
static void choose(const struct tree *tree, struct siblings *siblings)
{
	/* A run over a slot that is being written would have to wait for
	 * that. */
	const int gap = tree->ckpt.phase == CKPT_WRITING ? 0 : GAP_SLOTS;

	siblings->first = siblings->last = 0;
	while (extend(siblings, 1, gap))
		;
	while (extend(siblings, -1, gap))
		;
}

/* ---- The access ---- */

static void run_done(struct disk_request *req)
{
	struct node_run *run = req->owner;
	struct node_runs *runs = run->runs;

	runs->tree->pins_reserved -= run->ahead;
	list_add(&runs->idle, &run->link);
	for (unsigned i = 0; i < run->n; i++)
		if (run->buffer[i])
			fetch_arrived(run->buffer[i], req->result);
	txn_feed_starved(runs->tree);
}

/* Appends a slot to the run; buffer NULL: its content is thrown away. */
static void run_add(struct node_run *run, struct buffer *buffer)
{
	run->buffer[run->n] = buffer;
	run->iov[run->n++] = (struct iovec){
		buffer ? buffer->node : run->runs->scratch, TRAX_NODE_BYTES,
	};
}

static void run_add_sibling(struct node_run *run, struct buffer *parent,
			    int child)
{
	struct buffer *buffer = NULL;

	if (child >= 0)
		buffer = fetch_prepare(run->runs->tree, parent,
				       (unsigned)child);
	if (buffer) {
		buffer->sibling = true;
		run->ahead++;
	}
	run_add(run, buffer);
}

static void run_submit(struct node_run *run, traxaddr first)
{
	struct tree *tree = run->runs->tree;

	tree->pins_reserved += run->ahead;
	run->req = (struct queue_request){
		.disk = {
			.op = DISK_READ,
			.sector = addr_sector(first),
			.sectors = run->n * TRAX_NODE_SECTORS,
			.iov = run->iov,
			.iov_n = run->n,
			.done = run_done,
			.owner = run,
		},
		.class = QUEUE_READ,
	};
	queue_submit(tree->queue, &run->req);
}

bool node_run_start(struct buffer *buffer)
{
	struct tree *tree = buffer->load->tree;
	struct node_runs *runs = tree->runs;
	struct node_run *run = list_first(&runs->idle, struct node_run, link);
	struct siblings siblings;

	if (!run || !buffer->parent)
		return false;
	siblings.limit = slots_most(runs, buffer);
	if (siblings.limit < 2)
		return false;
	find_siblings(tree, buffer, &siblings);
	choose(tree, &siblings);
	if (siblings.first == siblings.last)
		return false;
	list_del(&run->link);
	run->n = run->ahead = 0;
	for (int i = siblings.first; i <= siblings.last; i++)
		if (i)
			run_add_sibling(run, buffer->parent,
					siblings.child[(int)RUN_SLOTS + i]);
		else
			run_add(run, buffer);
	run_submit(run, buffer->ptr.addr - (traxaddr)-siblings.first *
						    TRAX_NODE_SECTORS);
	return true;
}

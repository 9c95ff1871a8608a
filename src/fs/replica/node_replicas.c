/*
 * node_replicas.c - see node_replicas.h.
 *
 *   learn --(quiet, waited enough)--> checkpoint --> copy clean nodes --+
 *     ^                                                                 |
 *     +--- the regions that this replaces, or used least, are dropped <-+
 *
 * Ranges of keys are learned, not places: writing moves a node and splits it,
 * and making replicas of files (their REPLICA items) writes just the nodes that
 * matter.  That is why a checkpoint comes first.  Before the file system is
 * closed, nodes that have been written since are copied anew, with all others
 * that were wanted, so that the next mount reads them all in one sweep.
 */
#include "fs/replica/node_replicas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "fs/data/file_data.h"
#include "fs/replica/replicate.h"
#include "fs/table/replica.h"
#include "fs/replica/access_trace.h"

/* Ranges of keys that are remembered; the oldest is replaced.  With 16 KiB each
 * their nodes take 16 MiB. */
#define USES 1024u
/* Regions of nodes that may be in memory at a time. */
#define MAX_LOADS 64u
#define SHARE 8u		/* part of the memory for replicas that loaded
				 * nodes may take */
#define MAX_TRACKS 16u		/* most tracks of nodes; reading more would take
				 * long */
/* Waits for nodes, and their time together, after which replicas of nodes are
 * made: for less they do not pay. */
#define LEAST_WAITS 6u
#define LEAST_NS (40 * NS_PER_MS)
#define LEAVE_NS (20 * NS_PER_MS) /* least waiting time that makes replicas
				   * worthwhile before closing */
/* Passes over the learned nodes before closing: each writes nodes that the next
 * one has to copy. */
#define LEAVE_TRIES 3u
/* assumed time of a wait where none was measured: a seek there and back */
#define USUAL_NS (20 * NS_PER_MS)
#define ALONE_NS (200 * NS_PER_MS) /* least waiting time where no files are
				    * copied */

struct node_use {
	struct key low, high;
	unsigned level;
	traxaddr addr;		/* address at which it was last read or
				 * copied */
	bool waited;
};

/* A region in memory. */
struct node_load {
	struct fs *fs;
	bool loading, bad;
	bool used;
	uint64_t sector;
	uint8_t *data;
	struct queue_request req;
	struct iovec iov;
};

struct node_replicas {
	struct node_use use[USES];	/* ranges that were wanted, in order */
	unsigned n, next;
	struct key at;		/* key up to which use `next` has been copied */
	bool within;
	traxaddr copied[USES];	/* addresses that were copied in this pass */
	uint64_t old[MAX_LOADS];	/* regions that will be replaced */
	unsigned old_n;
	uint64_t begun_seconds;	/* time of the mount */
	bool asked;		/* loading of the regions that existed has
				 * begun */
	bool working;		/* copies are being made */
	unsigned left;		/* passes that are left before closing */
	size_t made;		/* replicas made so far */
	struct waiter waiter;
	size_t memory, most;	/* bytes of all loads, and their bound */
	struct node_load load[MAX_LOADS];
	unsigned loads;
	uint64_t waits, wait_ns;	/* waits for nodes since the mount */
	struct node_replicas_stats stats;
};

void node_replicas_free(struct fs *fs)
{
	unsigned i;

	for (i = 0; fs->node_replicas && i < fs->node_replicas->loads; i++)
		free(fs->node_replicas->load[i].data);
	free(fs->node_replicas);
	fs->node_replicas = NULL;
}

bool node_replicas_idle(const struct fs *fs)
{
	unsigned i;

	for (i = 0; fs->node_replicas && i < fs->node_replicas->loads; i++)
		if (fs->node_replicas->load[i].loading)
			return false;
	return !fs->node_replicas || !fs->node_replicas->working;
}

const struct node_replicas_stats *node_replicas_stats(const struct fs *fs)
{
	return &fs->node_replicas->stats;
}

/* ---- The regions ---- */

static bool of_nodes(const struct replica_region *region)
{
	return !region->copies;
}

/* Finds the region of nodes that was used least; *bytes: size of all of them
 * together. */
static const struct replica_region *node_replicas_least(struct fs *fs,
							uint64_t *bytes)
{
	struct replica_regions *regions = fs->replicas->regions;
	uint64_t now = (uint64_t)env_wall_seconds(fs->env);
	const struct replica_region *region, *least = NULL;
	double worth, least_worth = 0;
	size_t i;

	*bytes = 0;
	for (i = 0; (region = regions_at(regions, i)); i++) {
		if (!of_nodes(region))
			continue;
		*bytes += (uint64_t)region->sectors * SECTOR_BYTES;
		worth = regions_worth(region, now);
		if (least && worth >= least_worth)
			continue;
		least = region;
		least_worth = worth;
	}
	return least;
}

/* ---- Reading ---- */

static void load_done(struct disk_request *req)
{
	struct node_load *load = req->owner;

	load->loading = false;
	load->bad = req->result != 0;
	access_trace_access(load->fs, ACCESS_TRACE_COPY, req->sector,
			    req->sectors);
	tree_copies_ready(load->fs->tree);
}

static void load_start(struct fs *fs, const struct replica_region *region)
{
	struct node_replicas *nodes = fs->node_replicas;
	struct node_load *load = &nodes->load[nodes->loads];
	size_t bytes = (size_t)region->sectors * SECTOR_BYTES;

	if (nodes->loads == MAX_LOADS || nodes->memory + bytes > nodes->most)
		return;
	load->data = aligned_alloc(BLOCK_BYTES, bytes);
	if (!load->data)
		return;
	nodes->loads++;
	nodes->memory += bytes;
	load->fs = fs;
	load->sector = region->sector;
	load->loading = true;
	load->iov = (struct iovec){ load->data, bytes };
	load->req = (struct queue_request){
		.disk = {
			.op = DISK_READ, .sector = region->sector,
			.sectors = region->sectors, .iov = &load->iov,
			.iov_n = 1, .done = load_done, .owner = load,
		},
		.class = QUEUE_READ,
	};
	queue_submit(fs->queue, &load->req);
}

/* A user waits for a node, and more such waits will follow: loads the
 * regions. */
static void node_replicas_load(struct fs *fs)
{
	struct replica_regions *regions = fs->replicas->regions;
	const struct replica_region *region;
	size_t i;

	fs->node_replicas->asked = true;
	for (i = 0; (region = regions_at(regions, i)); i++)
		if (of_nodes(region))
			load_start(fs, region);
}

static const uint8_t *load_find(const struct node_load *load, traxaddr addr)
{
	const struct node_header *header;
	size_t at;

	if (load->loading || load->bad)
		return NULL;
	for (at = 0; at + TRAX_NODE_BYTES <= load->iov.iov_len;
	     at += TRAX_NODE_BYTES) {
		header = (const void *)(load->data + at);
		if (le64_get(header->addr) == addr)
			return load->data + at;
	}
	return NULL;
}

static enum tree_copy node_replicas_copy(void *arg, traxaddr addr, void *node)
{
	struct fs *fs = arg;
	struct node_replicas *nodes = fs->node_replicas;
	bool loading = false;
	const uint8_t *data;
	unsigned i;

	if (!nodes->asked && fs->replicas->most && !list_empty(&fs->ops))
		node_replicas_load(fs);
	for (i = 0; i < nodes->loads; i++) {
		loading |= nodes->load[i].loading;
		data = load_find(&nodes->load[i], addr);
		if (!data)
			continue;
		memcpy(node, data, TRAX_NODE_BYTES);
		nodes->stats.hits++;
		nodes->load[i].used = true;
		replica_used(fs, nodes->load[i].sector, TRAX_NODE_BYTES);
		return TREE_COPY_HERE;
	}
	/* While regions are being loaded the reader waits: the head is there,
	 * and would have to leave and come back. */
	return loading ? TREE_COPY_LATER : TREE_COPY_NONE;
}

/* ---- Learning ---- */

static struct node_use *use_find(struct node_replicas *nodes, struct key low,
				 unsigned level)
{
	unsigned i;

	for (i = 0; i < nodes->n; i++)
		if (nodes->use[i].level == level &&
		    key_cmp(nodes->use[i].low, low) == 0)
			return &nodes->use[i];
	return NULL;
}

void node_replicas_learn(struct fs *fs, struct key key)
{
	struct node_replicas *nodes = fs->node_replicas;
	unsigned i;

	for (i = 0; i < nodes->n; i++)
		if (!nodes->use[i].level &&
		    key_cmp(nodes->use[i].low, key) <= 0 &&
		    key_cmp(key, nodes->use[i].high) <= 0)
			return;
	if (nodes->n < USES)
		nodes->use[nodes->n++] =
			(struct node_use){key, key, 0, 0, false};
}

static void node_replicas_read(void *arg, const struct tree_node_read *read)
{
	struct fs *fs = arg;
	struct node_replicas *nodes = fs->node_replicas;
	struct node_use *use;

	if (read->wait_ns)
		access_trace_access(fs, ACCESS_TRACE_READ,
				    addr_sector(read->addr), TRAX_NODE_SECTORS);
	if (list_empty(&fs->ops))
		return;
	if (read->wait_ns) {
		nodes->stats.waits++;
		nodes->waits++;
	}
	nodes->stats.wait_ns += read->wait_ns;
	nodes->wait_ns += read->wait_ns;
	use = use_find(nodes, read->low, read->level);
	if (!use && nodes->n < USES)
		use = &nodes->use[nodes->n++];
	if (use)
		*use = (struct node_use){
			read->low,  read->high,	       read->level,
			read->addr, read->wait_ns > 0,
		};
}

/* ---- Making ---- */

/* The next node of a learned range; NULL: there is none, or it is not in
 * memory. */
static const void *use_next(struct fs *fs, struct node_use *use)
{
	struct node_replicas *nodes = fs->node_replicas;
	const void *node = tree_clean_node(fs->tree, nodes->at, use->level,
					   &nodes->at);

	nodes->within = node && key_cmp(nodes->at, use->high) < 0;
	if (nodes->within)
		nodes->at = key_after(nodes->at);
	return node;
}

static bool was_copied(const struct node_replicas *nodes, traxaddr addr)
{
	size_t i;

	for (i = 0; i < nodes->made; i++)
		if (nodes->copied[i] == addr)
			return true;
	return false;
}

static const void *node_replicas_next(void *arg)
{
	struct fs *fs = arg;
	struct node_replicas *nodes = fs->node_replicas;
	const struct node_header *header;
	struct node_use *use;
	bool first;

	while ((nodes->within || nodes->next < nodes->n) &&
	       nodes->made < USES &&
	       (nodes->made + 1) * TRAX_NODE_BYTES <= nodes->most) {
		first = !nodes->within;
		if (first)
			nodes->at = nodes->use[nodes->next++].low;
		use = &nodes->use[nodes->next - 1];
		header = use_next(fs, use);
		use->waited = false;
		if (!header)
			continue;
		if (first)
			use->addr = le64_get(header->addr);
		if (was_copied(nodes, le64_get(header->addr)))
			continue;
		nodes->copied[nodes->made++] = le64_get(header->addr);
		return header;
	}
	return NULL;
}

/* Finds the regions whose nodes are copied again, together with nodes that they
 * lacked. */
static void node_replicas_replaced(struct fs *fs)
{
	struct replica_regions *regions = fs->replicas->regions;
	struct node_replicas *nodes = fs->node_replicas;
	const struct replica_region *region;
	bool used;
	unsigned k;
	size_t i;

	nodes->old_n = 0;
	for (i = 0; (region = regions_at(regions, i)); i++) {
		used = region->made_seconds >= nodes->begun_seconds;
		for (k = 0; k < nodes->loads; k++)
			used |= nodes->load[k].used &&
				nodes->load[k].sector == region->sector;
		if (of_nodes(region) && used && nodes->old_n < MAX_LOADS)
			nodes->old[nodes->old_n++] = region->sector;
	}
}

static void node_replicas_made(void *arg, uint64_t copies)
{
	struct fs *fs = arg;

	fs->node_replicas->stats.made += copies;
	fs->node_replicas->working = false;
	if (access_trace_leaving(fs))
		fs->node_replicas->left++;
	if (!copies)
		fs->node_replicas->old_n = 0;
	fs->node_replicas->stats.waits = fs->node_replicas->stats.wait_ns = 0;
}

static void node_replicas_checkpointed(struct waiter *waiter, int rc)
{
	struct fs *fs = waiter->owner;
	struct node_replicas *nodes = fs->node_replicas;

	nodes->next = nodes->made = 0;
	nodes->within = false;
	node_replicas_replaced(fs);
	if (rc || replica_make_nodes(fs, node_replicas_next, node_replicas_made,
				     fs, access_trace_hot(fs)))
		node_replicas_made(fs, 0);
}

/* Time that the next mount would wait for nodes without replicas. */
static uint64_t node_replicas_lack_ns(struct fs *fs)
{
	const struct node_replicas *nodes = fs->node_replicas;
	uint64_t ns = 0, each_ns = USUAL_NS;
	const struct node_use *use;

	if (!nodes->waits && !nodes->stats.hits)
		return 0;
	if (nodes->waits)
		each_ns = 2 * nodes->wait_ns / nodes->waits;
	for (use = nodes->use; use < nodes->use + nodes->n; use++)
		if (use->waited || !tree_node_is_at(fs->tree, use->low,
						    use->level, use->addr))
			ns += each_ns;
	return ns;
}

bool node_replicas_due(struct fs *fs)
{
	const struct node_replicas *nodes = fs->node_replicas;
	bool alone;

	if (!nodes || nodes->working)
		return false;
	alone = !fs->replicas->stats.used && !fs->replicas->stats.made;
	if (access_trace_leaving(fs) && nodes->left < LEAVE_TRIES &&
	    node_replicas_lack_ns(fs) >= (alone ? ALONE_NS : LEAVE_NS))
		return true;
	return nodes->stats.waits >= LEAST_WAITS &&
	       nodes->stats.wait_ns >= (alone ? ALONE_NS : LEAST_NS);
}

bool node_replicas_over(const struct fs *fs)
{
	return !fs->node_replicas || !fs->node_replicas->old_n;
}

/* Drops one region that was replaced; it may be gone already. */
static void node_replicas_drop_old(struct fs *fs)
{
	struct replica_regions *regions = fs->replicas->regions;
	struct node_replicas *nodes = fs->node_replicas;
	uint64_t sector = nodes->old[nodes->old_n - 1];
	const struct replica_region *region = regions_at(regions,
						 regions_index(regions,
							       sector));

	if (!region || region->sector != sector)
		nodes->old_n--;
	else
		replica_reclaim_in(fs, sector, sector + 1, region->sectors);
}

void node_replicas_make(struct fs *fs)
{
	struct node_replicas *nodes = fs->node_replicas;

	if (!nodes || nodes->working || fs_read_only(fs))
		return;
	nodes->working = true;
	nodes->waiter = (struct waiter){
		.done = node_replicas_checkpointed, .owner = fs,
	};
	list_init(&nodes->waiter.link);
	tree_checkpoint(fs->tree, &nodes->waiter);
}

void node_replicas_run(struct fs *fs)
{
	struct node_replicas *nodes = fs->node_replicas;
	const struct replica_region *least;
	uint64_t bytes;

	if (!nodes || nodes->working)
		return;
	if (nodes->old_n) {
		node_replicas_drop_old(fs);
		return;
	}
	if (node_replicas_due(fs)) {
		node_replicas_make(fs);
		return;
	}
	least = node_replicas_least(fs, &bytes);
	if (bytes > nodes->most)
		replica_reclaim_in(fs, least->sector, least->sector + 1,
				   least->sectors);
}

int node_replicas_new(struct fs *fs)
{
	struct node_replicas *nodes = calloc(1, sizeof(*nodes));
	const struct tree_copies copies = {
		.copy = node_replicas_copy,
		.node_read = node_replicas_read,
		.arg = fs,
	};
	size_t tracks = MAX_TRACKS * alloc_track_sectors(fs->alloc, 0) *
			(size_t)SECTOR_BYTES;

	if (!nodes)
		return -ENOMEM;
	nodes->most = fs->budget.replicas / SHARE;
	if (nodes->most > tracks)
		nodes->most = tracks;
	nodes->begun_seconds = (uint64_t)env_wall_seconds(fs->env);
	fs->node_replicas = nodes;
	tree_set_copies(fs->tree, &copies);
	return 0;
}

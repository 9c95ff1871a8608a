/*
 * nodes.c - see nodes.h.
 *
 *   learn --(quiet, waited enough)--> checkpoint --> copy what is clean --+
 *     ^                                                                   |
 *     +------------ what was used least is dropped <----------------------+
 *
 * What is learned are keys, not places: writing moves a node, and copying
 * files' blocks (their REPLICA items) writes just those that matter.  Hence the
 * checkpoint before.
 */
#include "fs/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/replica.h"
#include "fs/watch.h"

#define USES 1024u
#define MAX_LOADS 64u
#define NS_PER_SECOND 1000000000ull
#define SHARE 8u		/* of the replicas' memory */
#define MAX_TRACKS 16u		/* in all, or reading them would take long */
#define LEAST_WAITS 6u
#define LEAST_NS 40000000u
#define ALONE_NS 200000000u	/* where no files are copied */

struct use {
	struct key low;
	unsigned level;
};

/* A region in memory. */
struct load {
	struct fs *fs;
	bool loading, bad;
	uint64_t sector;
	uint8_t *data;
	struct queue_request req;
	struct iovec iov;
};

struct nodes {
	struct use use[USES];	/* that had to be waited for, in order */
	unsigned n, next;
	bool asked;		/* the regions that were there are read */
	bool working;		/* copies are being made */
	size_t made;		/* so far */
	struct waiter waiter;
	size_t memory, most;	/* bytes of loads */
	struct load load[MAX_LOADS];
	unsigned loads;
	struct nodes_stats stats;
};

void nodes_free(struct fs *fs)
{
	unsigned i;

	for (i = 0; fs->nodes && i < fs->nodes->loads; i++)
		free(fs->nodes->load[i].data);
	free(fs->nodes);
	fs->nodes = NULL;
}

bool nodes_idle(const struct fs *fs)
{
	unsigned i;

	for (i = 0; fs->nodes && i < fs->nodes->loads; i++)
		if (fs->nodes->load[i].loading)
			return false;
	return !fs->nodes || !fs->nodes->working;
}

const struct nodes_stats *nodes_stats(const struct fs *fs)
{
	return &fs->nodes->stats;
}

/* ---- The regions ---- */

static bool of_nodes(const struct region *region)
{
	return !region->copies;
}

/* The region of nodes that was used least; *bytes: of all. */
static const struct region *nodes_least(struct fs *fs, uint64_t *bytes)
{
	struct regions *regions = fs->replicas->regions;
	uint64_t now = (uint64_t)env_wall_ns(fs->env) / NS_PER_SECOND;
	const struct region *region, *least = NULL;
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
	struct load *load = req->owner;

	load->loading = false;
	load->bad = req->result != 0;
	watch_access(load->fs, WATCH_COPY, req->sector, req->sectors);
}

static void load_start(struct fs *fs, const struct region *region)
{
	struct nodes *nodes = fs->nodes;
	struct load *load = &nodes->load[nodes->loads];
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

/* Somebody waits for a node: he will not be the only one. */
static void nodes_load(struct fs *fs)
{
	struct regions *regions = fs->replicas->regions;
	const struct region *region;
	size_t i;

	fs->nodes->asked = true;
	for (i = 0; (region = regions_at(regions, i)); i++)
		if (of_nodes(region))
			load_start(fs, region);
}

static const uint8_t *load_find(const struct load *load, traxaddr addr)
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

static bool nodes_copy(void *arg, traxaddr addr, void *node)
{
	struct fs *fs = arg;
	struct nodes *nodes = fs->nodes;
	const uint8_t *data;
	unsigned i;

	if (!nodes->asked && fs->replicas->most && !list_empty(&fs->ops))
		nodes_load(fs);
	for (i = 0; i < nodes->loads; i++) {
		data = load_find(&nodes->load[i], addr);
		if (!data)
			continue;
		memcpy(node, data, TRAX_NODE_BYTES);
		nodes->stats.hits++;
		replica_used(fs, nodes->load[i].sector, TRAX_NODE_BYTES);
		return true;
	}
	return false;
}

/* ---- Learning ---- */

static void nodes_came(void *arg, struct key low, unsigned level,
		       uint64_t sector, uint64_t wait_ns)
{
	struct fs *fs = arg;
	struct nodes *nodes = fs->nodes;
	unsigned i;

	if (wait_ns)
		watch_access(fs, WATCH_READ, sector, TRAX_NODE_SECTORS);
	if (list_empty(&fs->ops) || !wait_ns)
		return;
	nodes->stats.waits++;
	nodes->stats.wait_ns += wait_ns;
	for (i = 0; i < nodes->n; i++)
		if (nodes->use[i].level == level &&
		    key_cmp(nodes->use[i].low, low) == 0)
			return;
	if (nodes->n < USES)
		nodes->use[nodes->n++] = (struct use){ low, level };
}

/* ---- Making ---- */

static const void *nodes_next(void *arg)
{
	struct fs *fs = arg;
	struct nodes *nodes = fs->nodes;
	const struct use *use;
	const void *node;

	while (nodes->next < nodes->n &&
	       (nodes->made + 1) * TRAX_NODE_BYTES <= nodes->most) {
		use = &nodes->use[nodes->next++];
		node = tree_clean_node(fs->tree, use->low, use->level);
		if (!node)
			continue;
		nodes->made++;
		return node;
	}
	return NULL;
}

static void nodes_made(void *arg, uint64_t copies)
{
	struct fs *fs = arg;

	fs->nodes->stats.made += copies;
	fs->nodes->working = false;
	fs->nodes->n = 0;
	fs->nodes->stats.waits = fs->nodes->stats.wait_ns = 0;
}

static void nodes_checkpointed(struct waiter *waiter, int rc)
{
	struct fs *fs = waiter->owner;
	struct nodes *nodes = fs->nodes;

	nodes->next = nodes->made = 0;
	if (rc || replica_make_nodes(fs, nodes_next, nodes_made, fs,
				     watch_hot(fs)))
		nodes_made(fs, 0);
}

bool nodes_due(struct fs *fs)
{
	const struct nodes *nodes = fs->nodes;

	if (!nodes || nodes->working || nodes->stats.waits < LEAST_WAITS)
		return false;
	return nodes->stats.wait_ns >= (fs->replicas->stats.used ||
					fs->replicas->stats.made ? LEAST_NS :
								   ALONE_NS);
}

void nodes_make(struct fs *fs)
{
	struct nodes *nodes = fs->nodes;

	if (!nodes || nodes->working || fs_read_only(fs))
		return;
	nodes->working = true;
	nodes->waiter = (struct waiter){
		.done = nodes_checkpointed, .owner = fs,
	};
	list_init(&nodes->waiter.link);
	tree_checkpoint(fs->tree, &nodes->waiter);
}

void nodes_run(struct fs *fs)
{
	struct nodes *nodes = fs->nodes;
	const struct region *least;
	uint64_t bytes;

	if (!nodes || nodes->working)
		return;
	if (nodes_due(fs)) {
		nodes_make(fs);
		return;
	}
	least = nodes_least(fs, &bytes);
	if (bytes > nodes->most)
		replica_reclaim_in(fs, least->sector, least->sector + 1,
				   least->sectors);
}

int nodes_new(struct fs *fs)
{
	struct nodes *nodes = calloc(1, sizeof(*nodes));
	const struct tree_copies copies = {
		.copy = nodes_copy, .came = nodes_came, .arg = fs,
	};
	size_t tracks = MAX_TRACKS * alloc_track_sectors(fs->alloc, 0) *
			(size_t)SECTOR_BYTES;

	if (!nodes)
		return -ENOMEM;
	nodes->most = fs->budget.replicas / SHARE;
	if (nodes->most > tracks)
		nodes->most = tracks;
	fs->nodes = nodes;
	tree_set_copies(fs->tree, &copies);
	return 0;
}

/*
 * replicate_internal.h - making replicas from inside: replicate.c (collect,
 * place, write), replica_attach.c (region and table).
 */
#ifndef TRAX_REPLICA_REPLICATE_INTERNAL_H
#define TRAX_REPLICA_REPLICATE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "fs/data/file_data.h"
#include "fs/replica/replicate.h"
#include "fs/table/replica.h"

#define BUSY_SHARE 250ull		/* a step takes one part in this many of
					 * the time: less than half a percent */
#define STEP_NS (100 * NS_PER_MS)	/* time that commit and checkpoint add
					 * to a step */
#define ATTACH_ENTRIES 16u	/* most entries that one transaction attaches */

/* Blocks of one chunk that are copied together. */
struct replica_entry {
	uint64_t ino, block;
	unsigned blocks;
	unsigned at;		/* index of its first block in the buffer */
};

struct replica_maker {
	struct replicas *replicas;
	struct replica_want *want;
	size_t wants, next;
	uint64_t near;
	void (*done)(void *arg, uint64_t copies);
	void *arg;
	uint64_t copies;
	bool stop, background, paused;
	bool nodes;		/* it copies nodes of the tree, not files */
	bool in_step;		/* the blocks that were in the buffer are being
				 * written ... */
	unsigned step;		/* ... and this many of them are left */
	uint64_t begun_ns;	/* begin of the present step */

	const void *(*node)(void *arg);	/* gives the next node; NULL: files are
					 * copied */

	struct file *file;	/* the file that is being read */
	struct shared_lock lock;
	struct read_wait rwait;
	struct replica_entry unit;

	uint8_t *buffer;
	unsigned room, blocks;	/* blocks of the buffer: room, used */
	unsigned track;		/* blocks of a track near the wanted place */
	struct replica_entry *entry;
	unsigned entries, fit, attached;
	struct alloc_extent extent;
	bool taken;
	uint64_t number;
	struct queue_request req;	/* the write of the buffer */
	struct iovec iov;
};

/* ---- replicate.c ---- */

struct fs *replica_maker_fs(const struct replica_maker *maker);

void replica_maker_step(struct replica_maker *maker);

/* ---- replica_attach.c ---- */

int replica_maker_attach(struct replica_maker *maker);

int replica_region_run(struct fs_txn *txn);

void replica_region_end(struct fs_txn *txn, int rc, uint64_t seq);

#endif

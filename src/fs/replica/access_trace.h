/*
 * access_trace.h - learns from the reads of users: records them, chooses blocks
 * when users are quiet, has replicas made, and keeps the watermarks.
 *
 * When users are not quiet (fs/op/quiet.h), or read a stream, making replicas
 * takes less than half a percent of the time.
 */
#ifndef TRAX_REPLICA_ACCESS_TRACE_H
#define TRAX_REPLICA_ACCESS_TRACE_H

#include <jansson.h>

#include "fs/data/read_events.h"
#include "fs/op/fs_internal.h"
#include "replicate/heat.h"

int access_trace_open(struct fs *fs);	/* Loads the stored trace; waits. */
void access_trace_free(struct fs *fs);
/* Called before close, when no operation is under way any more: judges and
 * copies the last reads, for some seconds at most. Waits. */
void access_trace_leave(struct fs *fs);
/* Called before close: stores the trace in the tree. Waits. */
int access_trace_save(struct fs *fs);

/* Are users quiet, or is the mount about to end? */
bool access_trace_quiet(struct fs *fs);

/* Events of reads of users, and of data that was read ahead and then used. */
extern const struct read_events access_trace_events;

enum access_kind {
	ACCESS_TRACE_READ,
	ACCESS_TRACE_COPY,
	ACCESS_TRACE_WRITE,
	ACCESS_TRACE_MADE
};

/* Records an access of any kind: by users, in the background, of a replica. */
void access_trace_access(struct fs *fs, enum access_kind kind, uint64_t sector,
		  uint64_t sectors);
/*
 * Adds the last ACCESS_TRACE_TRACE accesses to an object, from number `from`
 * on, up to `bytes` of text: "trace": [[ms, sector, kind] ...], "next": the
 * number to go on with; 0: there is nothing more.
 */
#define ACCESS_TRACE_TRACE 16384u
void access_trace_trace(struct fs *fs, uint64_t from, size_t bytes,
			json_t *object);
/* Adds estimates of the seek, rotation, transfer and energy of reads, as they
 * were and as they would have been without replicas. */
void access_trace_accounts(const struct fs *fs, json_t *object);

/* Are there reads to be judged? */
bool access_trace_waits(const struct fs *fs);

/* Is the file system about to be closed? */
bool access_trace_leaving(const struct fs *fs);

/* The sector near which replicas should lie. */
uint64_t access_trace_hot(const struct fs *fs);
const struct heat *access_trace_heat(const struct fs *fs);

/* Array over all groups: those with too little room for replicas, for
 * alloc_copies. */
const bool *access_trace_closed(const struct fs *fs);

/* Does what is due; returns when it wants to be called again. */
uint64_t access_trace_run(struct fs *fs, uint64_t now_ns);

#endif

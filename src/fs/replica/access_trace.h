/*
 * access_trace.h - learning from what users read: watches, chooses when it is
 * quiet, has copies made, and keeps the watermarks.
 *
 * Quiet is: no operation under way, and none for ten times the usual time
 * between two, at least 100 ms.  When it is not, a step (a track) is taken in
 * less than half a percent of the time, and written in gaps.
 */
#ifndef TRAX_REPLICA_ACCESS_TRACE_H
#define TRAX_REPLICA_ACCESS_TRACE_H

#include <jansson.h>

#include "fs/data/read_events.h"
#include "fs/op/fs_internal.h"
#include "replicate/heat.h"

struct access_trace;

int access_trace_open(struct fs *fs);	/* waits: what was known before */
void access_trace_free(struct fs *fs);
/* Before close, no operation is under way any more: judges and copies what was
 * read last, for some seconds at most.  Waits. */
void access_trace_leave(struct fs *fs);
/* Before close: what is known goes into the tree; waits. */
int access_trace_save(struct fs *fs);

/* An operation of a user begins. */
void access_trace_op(struct fs *fs);
bool access_trace_quiet(struct fs *fs);

/* Reads of users, and what was read ahead and then used. */
extern const struct read_events access_trace_events;

enum access_kind {
	ACCESS_TRACE_READ,
	ACCESS_TRACE_COPY,
	ACCESS_TRACE_WRITE,
	ACCESS_TRACE_MADE
};

/* Something was read or written there, by whomever; a copy was read, made. */
void access_trace_access(struct fs *fs, enum access_kind kind, uint64_t sector,
		  uint64_t sectors);
/*
 * Adds the last ACCESS_TRACE_TRACE accesses to an object, from number `from`
 * on, up to so many bytes of text: "trace": [[ms, sector, kind] ...], "next":
 * where to go on, 0: that is all.
 */
#define ACCESS_TRACE_TRACE 16384u
void access_trace_trace(struct fs *fs, uint64_t from, size_t bytes,
			json_t *object);
/* Seek, rotation, transfer and energy of reads, as they were and as they would
 * have been without copies: estimates. */
void access_trace_accounts(const struct fs *fs, json_t *object);

/* Is the file system about to be closed? */
bool access_trace_leaving(const struct fs *fs);

/* Where copies should go. */
uint64_t access_trace_hot(const struct fs *fs);
const struct heat *access_trace_heat(const struct fs *fs);

/* Groups with too little room, by number, for alloc_copies. */
const bool *access_trace_closed(const struct fs *fs);

/* Does what is due; when it wants to be called again. */
uint64_t access_trace_run(struct fs *fs, uint64_t now_ns);

#endif

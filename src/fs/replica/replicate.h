/*
 * replicate.h - making replicas of blocks of files, and of nodes of the tree.
 */
#ifndef TRAX_REPLICA_REPLICATE_H
#define TRAX_REPLICA_REPLICATE_H

#include "fs/table/replica.h"

/* After replicas_open; before replicas_free. */
int replica_maker_open(struct fs *fs);
void replica_maker_close(struct fs *fs);

/*
 * Copies these blocks, in this order, to free tracks near a sector.  Copies
 * `want`.  done() is called when all that could be copied is in the table,
 * maybe at once; not when the answer is -EBUSY (one at a time, and none while
 * it is closed), -ENOMEM or -EROFS.  `background`: while it is quiet
 * (access_trace.h), and else a track now and then.
 */
int replica_make(struct fs *fs, const struct replica_want *want, size_t n,
		 uint64_t near, bool background,
		 void (*done)(void *arg, uint64_t copies), void *arg);
/*
 * Copies nodes of the tree: `next` gives one after the other, in memory as they
 * are on the disk, NULL at the end.  Their regions have `copies` 0 (format.h).
 * In the background, as above.
 */
int replica_make_nodes(struct fs *fs, const void *(*next)(void *arg),
		       void (*done)(void *arg, uint64_t copies), void *arg,
		       uint64_t near);
bool replica_maker_is_paused(const struct replica_maker *maker); /* NULL: no */
void replica_maker_resume(struct replica_maker *maker);
/* What has waited long for gaps in which to be written waits no more. */
void replica_maker_expedite(struct replica_maker *maker);
/* When it may go on, even if it is not quiet. */
uint64_t replica_maker_next_ns(const struct replica_maker *maker);
/* Ends as soon as it can, at once if it is paused. */
void replica_maker_cancel(struct replica_maker *maker);
/* Makes it end soon, as far as it holds room; false: there is none that does.
 * room_pump() follows. */
bool replica_maker_stop(struct replica_maker *maker);

#endif

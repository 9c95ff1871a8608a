/*
 * replicate.h - making replicas of blocks of files, and of nodes of the tree.
 */
#ifndef TRAX_REPLICA_REPLICATE_H
#define TRAX_REPLICA_REPLICATE_H

#include "fs/table/replica.h"

/* Before replicas_free. */
void replica_maker_close(struct fs *fs);

/*
 * Copies these blocks, in this order, to free tracks near a sector. `want` is
 * copied. done() is called, maybe at once, when all blocks that could be copied
 * are in the table; it is not called when the answer is -EBUSY (one at a time,
 * and none while the file system is being closed), -ENOMEM or -EROFS.
 * `background`: works while users are quiet (access_trace.h), and otherwise
 * copies a track now and then.
 */
int replica_make(struct fs *fs, const struct replica_want *want, size_t n,
		 uint64_t near, bool background,
		 void (*done)(void *arg, uint64_t copies), void *arg);
/*
 * Copies nodes of the tree: `next` returns one after the other, in memory with
 * the content that it has on the disk, and NULL at the end. Their regions have
 * `copies` 0 (format.h). Works in the background, as above.
 */
int replica_make_nodes(struct fs *fs, const void *(*next)(void *arg),
		       void (*done)(void *arg, uint64_t copies), void *arg,
		       uint64_t near);
bool replica_maker_is_paused(const struct replica_maker *maker); /* NULL:
								  * false. */
void replica_maker_resume(struct replica_maker *maker);
/* When it may go on, even if users are not quiet. */
uint64_t replica_maker_next_ns(const struct replica_maker *maker);
/* Ends it as soon as possible, at once if it is paused. */
void replica_maker_cancel(struct replica_maker *maker);
/* Makes it end soon, as far as it holds room, after which it calls room_pump();
 * false: it holds none. */
bool replica_maker_stop(struct replica_maker *maker);

#endif

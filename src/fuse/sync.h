/*
 * sync.h - a sync that waits for the pages that the kernel is writing back.
 *
 * syncfs(2) on a mount that is not of a block device starts the write-back of
 * dirty pages and returns: fuse_sync_fs() sends nothing, and wait_sb_inodes()
 * passes over the pages of FUSE.  What has been started is in the kernel's
 * queues, so a sync waits here until these are empty.
 */
#ifndef TRAX_FUSE_SYNC_H
#define TRAX_FUSE_SYNC_H

#include "fuse/request.h"

/* Called for each request when its opcode is known, and when it ends. */
void sync_note_begin(struct request *req);
void sync_note_end(struct request *req);

/*
 * The request will be answered with a struct trax_control when all pages that
 * the kernel had queued are on the medium; `result` is the number of WRITEs of
 * pages that came before that.  The kernel leaves pages out while its queue is
 * full: only when two calls with syncfs(2) before each give the same number
 * nothing was left out.
 */
void sync_wait(struct request *req);

/* Starts syncs that need not wait any more; false: there were none.  To be
 * called when the connection has been read, with `drained` when nothing was
 * left to read. */
bool sync_run(struct session *session, bool drained);

/* Does a sync wait that could start now? */
bool sync_is_due(const struct session *session);

/* Starts all syncs that wait: nothing more will be read. */
void sync_stop(struct session *session);

#endif

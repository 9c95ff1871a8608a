/*
 * low_flush.h - the kernel writes out what it has when little room begins.
 *
 * Files that were written before each write(2) asked for room (room.h) may have
 * dirty pages for which nothing is reserved.  So the pages behind the known end
 * of each file that is open for writing are written out, one file after the
 * other; until then room.c takes room for them to be gone.
 */
#ifndef TRAX_FUSE_LOW_FLUSH_H
#define TRAX_FUSE_LOW_FLUSH_H

struct request;
struct session;

/* Goes on with the next file, if none is being written out; to be called in
 * each turn. */
void low_flush_run(struct session *session);

/* A request of low_flush_run, which has no opcode: its pages are written. */
void low_flush_next(struct request *req);

#endif

/*
 * op.h - what every operation needs: its answer, and waiting for something
 * inside the file system.
 */
#ifndef TRAX_OP_OP_H
#define TRAX_OP_OP_H

#include "fs/op/fs_state.h"

/* Takes an operation into the count and list of those that are not answered. */
void op_begin(struct fs *fs, struct fs_op *op);
const char *fs_op_name(enum fs_op_type type);
/* Answers an operation: rc, statistics, done(). */
void fs_answer(struct fs *fs, struct fs_op *op, int rc);

/*
 * Waiting inside the file system, at mount and close.  fs_wait runs the loop
 * until *over is set: 0, or -EIO when the disk is gone before.  What sets it
 * is often over within a turn, without any I/O, so it is looked at before each
 * sleep; fs_run(fs, -1) would sleep until the next timer first.
 */
int fs_wait(struct fs *fs, const bool *over);
/* The sleep by itself, for loops that wait for more than one thing: after
 * fs_run(fs, 0) returned next_ns, and nothing that was waited for is over.
 * Waits until then or for the next completion. */
void fs_sleep(struct fs *fs, uint64_t next_ns);
/* How long a poll may wait, in ms, of timeout_ms that the caller allows (-1:
 * any time), when there is work at next_ns. */
int op_timeout_ms(int timeout_ms, uint64_t now_ns, uint64_t next_ns);

#endif

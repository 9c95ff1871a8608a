/*
 * op.h - what every operation needs: its answer, and waiting for something
 * inside the file system.
 */
#ifndef TRAX_OP_OP_H
#define TRAX_OP_OP_H

#include "fs/op/fs_state.h"

/* Adds an operation to the count and list of those that are not answered. */
void op_begin(struct fs *fs, struct fs_op *op);
const char *fs_op_name(enum fs_op_type type);
/* Answers an operation: sets its rc, counts it, and calls done(). */
void fs_answer(struct fs *fs, struct fs_op *op, int rc);

/*
 * Waiting inside the file system, at mount and close. fs_wait runs the loop
 * until *over is set: 0, or -EIO when the disk is gone before that.  *over is
 * often set within a turn, without any I/O, so it is checked before each sleep;
 * fs_run(fs, -1) would sleep until the next timer first.
 */
int fs_wait(struct fs *fs, const bool *over);
/* Only sleeps, for loops that wait for more than one thing: called after
 * fs_run(fs, 0) has returned next_ns and nothing awaited has happened.  Sleeps
 * until next_ns or the next completion. */
void fs_sleep(struct fs *fs, uint64_t next_ns);
/* The time that a poll may wait, in ms: until next_ns, but at most timeout_ms
 * (-1: without limit). */
int op_timeout_ms(int timeout_ms, uint64_t now_ns, uint64_t next_ns);

#endif

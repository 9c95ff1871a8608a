/*
 * super_write.h - the superblocks are written, beside everything else.
 *
 * One after the other, each durable before the next, so that a cut tears only
 * one of them; the first one that is durable is the commit point.  One writer
 * at a time: whoever wants to change what the superblocks name takes them.
 */
#ifndef TRAX_DRIVE_SUPER_WRITE_H
#define TRAX_DRIVE_SUPER_WRITE_H

#include "fs/op/fs_internal.h"
#include "sched/queue/queue.h"

struct super_write {
	struct fs *fs;
	/* 0: they say so, and so does tree_super() now.  Else nobody knows
	 * what they say until the next mount. */
	void (*done)(void *arg, int rc);
	void *arg;
	/* Belong to super_write.c. */
	struct super next;
	unsigned copy, good, failures;
	bool flushing;
	void *block;
	struct queue_request req;
	struct iovec iov;
};

/* -ENOMEM. */
int super_write_init(struct super_write *supers, struct fs *fs,
		void (*done)(void *arg, int rc), void *arg);
void super_write_fini(struct super_write *supers);

/* `next` with a version of its own.  -EUCLEAN: it contradicts itself, and
 * nothing was written; else done() is called, never from inside. */
int super_write_start(struct super_write *supers, const struct super *next);

#endif

/*
 * super_write.h - writes the superblocks of a mounted file system.
 *
 * They are written one after the other, each durable before the next, so that a
 * power cut tears only one of them; the first durable one is the commit point.
 * There is one writer at a time, which changes a copy of tree_super().
 */
#ifndef TRAX_DRIVE_SUPER_WRITE_H
#define TRAX_DRIVE_SUPER_WRITE_H

#include "fs/op/fs_internal.h"
#include "sched/queue/queue.h"

struct super_write {
	struct fs *fs;
	/* 0: superblocks and tree_super() have the new content.  Otherwise it
	 * is not known which content they have until the next mount. */
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

/* Writes `next`, with a version number of its own. -EUCLEAN: it contradicts
 * itself, and nothing was written; else done() is called, never from inside. */
int super_write_start(struct super_write *supers, const struct super *next);

#endif

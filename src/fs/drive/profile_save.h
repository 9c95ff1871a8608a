/*
 * profile_save.h - what is known of the drive is written back.
 *
 * The record goes to the half of its room that the superblocks do not name,
 * then the superblocks name that one: a cut at any write leaves the old record
 * or the new one.  What has outgrown its room moves (relocate_txn.h).  Written
 * some minutes after it became better, and when the file system is closed; by
 * the way, nobody waits for it.  Nothing of it is needed to mount.
 */
#ifndef TRAX_DRIVE_PROFILE_SAVE_H
#define TRAX_DRIVE_PROFILE_SAVE_H

#include "fs/op/fs_internal.h"

struct profile_save;

/* NULL in *keep: nothing is to be kept (read-only).  -ENOMEM. */
int profile_save_open(struct fs *fs, struct profile_save **keep);
void profile_save_free(struct profile_save *keep);	/* NULL is harmless */

/* fs->profile, or what the head has learned, is better than what is kept. */
void profile_save_wanted(struct profile_save *keep);

/* Beside the tree and the files; when it wants to be called again. */
uint64_t profile_save_run(struct profile_save *keep, uint64_t now_ns);

/* Not in some minutes but now, if anything is wanted. */
void profile_save_now(struct profile_save *keep);

/* The file system is being closed: the same, and nothing waits after that. */
void profile_save_close(struct profile_save *keep);
bool profile_save_idle(const struct profile_save *keep);

struct profile_save_stats {
	uint64_t written;	/* records, since the mount */
	uint64_t moved;		/* to more room */
	uint64_t bytes;		/* of the last one; 0: none */
	int error;		/* of the last try */
};
void profile_save_get_stats(const struct profile_save *keep,
			    struct profile_save_stats *stats);

#endif

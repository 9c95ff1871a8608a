/*
 * profile_save.h - stores the profile of the drive.
 *
 * The record goes to the half of its room that the superblocks do not name,
 * then the superblocks name this half: a power cut at any write leaves the old
 * record or the new one.  A record that has outgrown its room moves
 * (relocate_txn.h).  It is written some minutes after the profile became
 * better, and when the file system is closed; nobody waits for it otherwise,
 * and no mount needs it.
 */
#ifndef TRAX_DRIVE_PROFILE_SAVE_H
#define TRAX_DRIVE_PROFILE_SAVE_H

#include "fs/op/fs_internal.h"

struct profile_save;

/* *save is NULL if nothing is to be stored (read-only). -ENOMEM. */
int profile_save_open(struct fs *fs, struct profile_save **save);
void profile_save_free(struct profile_save *save);	/* NULL is harmless */

/* fs->profile, or what the head has learned, is better than the stored
 * profile. */
void profile_save_wanted(struct profile_save *save);

/* Does what is due; returns when it wants to be called again. */
uint64_t profile_save_run(struct profile_save *save, uint64_t now_ns);

/* Writes at once what would be written in some minutes. */
void profile_save_now(struct profile_save *save);

/* The file system is being closed: writes at once, and begins nothing after
 * that. */
void profile_save_close(struct profile_save *save);
bool profile_save_idle(const struct profile_save *save);

struct profile_save_stats {
	uint64_t written;	/* records written since the mount */
	uint64_t moved;		/* records that moved to larger room */
	uint64_t bytes;		/* bytes of the last record; 0: none was
				 * written */
	int error;		/* error of the last try */
};
void profile_save_get_stats(const struct profile_save *save,
			    struct profile_save_stats *stats);

#endif

/*
 * file.h - references to the state of a file, its locks and its pauses.
 */
#ifndef TRAX_DATA_FILE_H
#define TRAX_DATA_FILE_H

#include "fs/data/file_data.h"

/* Finds or makes the state of a file, and counts a user; NULL: no memory. */
struct file *file_get(struct fs *fs, uint64_t ino);
void file_put(struct file *file);
/* Frees the state of a file if nothing needs it. */
void file_unused(struct file *file);
/* Frees it, when nobody knows it any more. */
void file_free(struct file *file);
/* Takes the shared lock. 0: go on; FS_TXN_WAIT: lock->granted() follows; else
 * an error. */
int file_lock_shared(struct file *file, struct shared_lock *lock);
/* The same for a reader, which does not wait for an exclusive operation that
 * changes only what lies behind the end of the file. */
int file_lock_read(struct file *file, struct shared_lock *lock);
/* The active exclusive operation lets readers go on from now on. */
void file_let_read(struct excl_lock *excl);
void file_lock_excl(struct excl_lock *excl);
void file_unlock_excl(struct excl_lock *excl);
/* Is the file closed to new write-backs?  While an exclusive operation waits
 * for destages it is not: blocks that cannot be destaged are written
 * elsewhere. */
bool file_writeback_blocked(const struct file *file);
/* excl_lock_grant_next starts the next exclusive operation if it may start;
 * lock_waits_wake lets the operations in a list go on. */
void excl_lock_grant_next(struct file *file);
void lock_waits_wake(struct list *waits);
/* May data of this file fill the log? */
bool file_fills_log(const struct file *file);
/* Has a write of the file failed so recently that no other one is begun?
 * writeback_pump is called again when the pause is over.  Destages have a pause
 * of their own, as nobody waits for them. */
bool file_pauses(const struct file *file);
bool file_destage_pauses(const struct file *file);
void file_pause(struct file *file, uint64_t pause_ns);
void file_destage_pause(struct file *file, uint64_t pause_ns);
/* Has writeback_pump called at this time, at the latest. */
void files_wake_at(struct files *files, uint64_t ns);
/* Notes what moves the head: `stream` points to a stream, or to `files` for the
 * write-back of a large file.  Counts in files->turns how often that
 * changes. */
void files_turn(struct files *files, const void *stream);

#endif

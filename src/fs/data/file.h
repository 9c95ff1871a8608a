/*
 * file.h - references to the state of a file, its locks and its pauses.
 */
#ifndef TRAX_DATA_FILE_H
#define TRAX_DATA_FILE_H

#include "fs/data/file_data.h"

/* Finds or makes, and counts a user; NULL: no memory. */
struct file *file_get(struct fs *fs, uint64_t ino);
void file_put(struct file *file);
/* Frees it if nothing depends on it. */
void file_unused(struct file *file);
/* 0: go on; FS_TXN_WAIT: lock->granted comes; else an error. */
int file_lock_shared(struct file *file, struct shared_lock *lock);
/* The same for a reader, which need not wait when the exclusive operation only
 * changes what lies behind the end of the file. */
int file_lock_read(struct file *file, struct shared_lock *lock);
/* From now on that is so; for the one whose exclusive lock is active. */
void file_let_read(struct excl_lock *excl);
void file_lock_excl(struct excl_lock *excl);
void file_unlock_excl(struct excl_lock *excl);
/* May no write-back of it begin?  They may while whoever wants it alone waits
 * for what it has in the log: what cannot are destaged goes elsewhere. */
bool file_writeback_blocked(const struct file *file);
/* The next exclusive operation starts if it may; the operations that wait in
 * a list go on. */
void excl_lock_grant_next(struct file *file);
void lock_waits_wake(struct list *waits);
/* May it be what the file has in the log that fills that? */
bool file_fills_log(const struct file *file);
/* Has something of the file failed just now, so that it is left alone for a
 * while?  writeback_pump comes again then.  What the log has waits by itself:
 * nobody waits for it. */
bool file_pauses(const struct file *file);
bool file_destage_pauses(const struct file *file);
void file_pause(struct file *file, uint64_t pause_ns);
void file_destage_pause(struct file *file, uint64_t pause_ns);
/* writeback_pump is to be called at this time, at the latest. */
void files_wake_at(struct files *files, uint64_t ns);

#endif

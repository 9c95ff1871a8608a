/*
 * file_sync.h - waiting until data is written back and durable.
 */
#ifndef TRAX_DATA_FILE_SYNC_H
#define TRAX_DATA_FILE_SYNC_H

#include "fs/data/file_data.h"

/* Write-backs of a file may have ended: lets its exclusive operations and syncs
 * go on. */
void file_wake_waiters(struct file *file);
/* The same for all files. */
void files_settled(struct files *files);
/* Commits the log, one commit at a time, and then calls writeback_pump. */
void files_commit(struct files *files);
/* Number of buffers that writers may take now. */
size_t files_room(const struct files *files);
/* Writes back all blocks that are dirty now; done() is called when they are
 * mapped. */
struct sync {
	struct list link;
	struct file *file;	/* NULL: all files */
	uint64_t stamp;
	bool destage;		/* waits for destages, too */
	void (*done)(struct sync *sync, int rc);
	struct waiter waiter;
	void *owner;
};
void sync_start(struct files *files, struct sync *sync);
bool sync_check(struct sync *sync);
/* Is all of a file's data mapped? */
bool sync_is_over(struct file *file);

#endif

/*
 * writeback_policy.h - what decides where and when data is written, and stands
 * above write-back: places chosen at dispatch (late_place.h), and gaps between
 * other requests (gap_writeback.h).  fs.c fills in the table.
 */
#ifndef TRAX_DATA_WRITEBACK_POLICY_H
#define TRAX_DATA_WRITEBACK_POLICY_H

#include "fs/data/file_data.h"
#include "fs/data/writeback.h"

struct writeback_policy {
	/* New data: the queue chooses the place when it dispatches it; false:
	 * it stays where it is, and is the caller's to submit. */
	bool (*choose_place)(struct writeback *wb);
	/* It has been written, or failed. */
	void (*place_over)(struct writeback *wb);
	/* Sectors were written by a write-back. */
	void (*written)(struct fs *fs, uint64_t sector, uint64_t n);

	/* May what is to be written of a file wait for gaps? */
	bool (*gap_may)(const struct file *file, enum writeback_kind kind);
	/* Are logged blocks destaged in gaps, so that they need not be
	 * otherwise? */
	bool (*gap_destages)(const struct files *files);
	/* Blocks that a gap has room for. */
	unsigned (*gap_blocks)(const struct file *file);
	/* Queues a write-back for gaps, done() follows; false: its segments are
	 * too long, nothing has been done. */
	bool (*gap_queue)(struct writeback *wb,
			  void (*done)(struct writeback *wb, int rc));
	/* What is queued is written at once instead: new data of a file, all of
	 * a file, all, all destages. */
	void (*recall_data)(struct file *file);
	void (*recall_file)(struct file *file);
	void (*recall_all)(struct files *files);
	void (*recall_destages)(struct files *files);
	/* A user writes to a block: what a queued destage would write is
	 * old. */
	void (*touched)(struct block *block);
	/* Now and then. */
	void (*run)(struct files *files, uint64_t now_ns);
	void (*close)(struct files *files);
};

#endif

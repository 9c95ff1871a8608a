/*
 * writeback_policy.h - decides where and when data is written, from above
 * write-back: places chosen at dispatch (late_place.h), and gaps between other
 * requests (gap_writeback.h).  fs.c fills in the table.
 */
#ifndef TRAX_DATA_WRITEBACK_POLICY_H
#define TRAX_DATA_WRITEBACK_POLICY_H

#include "fs/data/file_data.h"
#include "fs/data/writeback.h"

struct writeback_policy {
	/* New data: the queue chooses the place when it dispatches it; false:
	 * it stays where it is, and is the caller's to submit. */
	bool (*choose_place)(struct writeback *wb);
	/* The write of such data has ended, well or not. */
	void (*place_over)(struct writeback *wb);
	/* A write-back has written these sectors. */
	void (*written)(struct fs *fs, uint64_t sector, uint64_t n);

	/* May a write-back of this kind wait for gaps? */
	bool (*gap_may)(const struct file *file, enum writeback_kind kind);
	/* Are logged blocks destaged in gaps, so that they need not be
	 * otherwise? */
	bool (*gap_destages)(const struct files *files);
	/* Number of blocks of the file that a gap has room for. */
	unsigned (*gap_blocks)(const struct file *file);
	/* Queues a write-back for gaps, done() follows; false: its segments are
	 * too long, nothing has been done. */
	bool (*gap_queue)(struct writeback *wb,
			  void (*done)(struct writeback *wb, int rc));
	/* Write what is queued at once instead: new data of one file, all of
	 * one file, all, all destages. */
	void (*recall_data)(struct file *file);
	void (*recall_file)(struct file *file);
	void (*recall_all)(struct files *files);
	void (*recall_destages)(struct files *files);
	/* A user writes to a block: the content of a queued destage is too
	 * old. */
	void (*touched)(struct block *block);
	/* Called in each turn of the loop. */
	void (*run)(struct files *files, uint64_t now_ns);
	void (*close)(struct files *files);
};

#endif

/*
 * writeback.h - dirty blocks on their way to the disk.
 */
#ifndef TRAX_DATA_WRITEBACK_H
#define TRAX_DATA_WRITEBACK_H

#include "fs/data/file_data.h"
#include "fs/data/file_sync.h"

/* Starts the write-backs that may be started. */
void writeback_pump(struct files *files);
/* Asks for the write-back of the file's dirty blocks up to `stamp`. */
void writeback_flush(struct file *file, uint64_t stamp, bool sync, bool final);
int writebacks_new(struct files *files);
/* Asks for the write-back of a stretch of a growing file that is long
 * enough. */
void writeback_stream(struct file *file);

enum writeback_kind {
	WB_DIRECT,
	WB_IN_PLACE,
	WB_LOGGED,
	WB_INLINE,
	WB_DESTAGE
};

/* A run of sectors that a write-back is written to, in the order of the
 * file. */
struct writeback_segment {
	struct writeback *wb;
	uint64_t sector, n;
	bool known, failed;
	struct queue_request req;
};

struct writeback {
	struct list link;
	struct files *files;
	struct file *file;
	enum writeback_kind kind;
	bool small;		/* SMALL_WB_BLOCKS at most, else WB_BLOCKS */
	bool claimed, stream;
	bool relocates;		/* all of it is in the log: its place was bad */
	bool for_gap;		/* a destage that may wait for a gap */
	bool gap_queued;		/* it waits for a gap, since
					 * gap_queued_ns */
	uint64_t gap_queued_ns;
	struct list gap_link;	/* in files->gap_queue */
	uint64_t first;
	unsigned n, done;	/* number of blocks, and of those committed */
	uint64_t stamp;		/* stamp of its oldest block */
	unsigned segments, outstanding;
	bool taken;		/* its sectors have no owner yet */
	/* Of small new data that nobody waits for, see late_place.c. */
	bool may_move;		/* it continues no earlier place and lies on one
				 * track; in the first write-back of a batch:
				 * this holds for all of the batch */
	bool follows;		/* its place is on the open track of its
				 * directory */
	bool in_flight;		/* it was submitted and has not ended */
	struct queue_place place;
	struct range window;
	struct writeback *batch_next,
		*batch_last;	/* links of a batch: the next write-back; in the
				 * first one: the last */
	bool waited;		/* it has waited for a checkpoint to free
				 * space */
	unsigned want;		/* blocks to ask room for */
	uint64_t hole;		/* sector of the file at which the hole begins
				 * that it fills */
	int rc;
	bool failed;		/* a segment failed */
	enum fault_class class;	/* class of that error */
	void (*written)(struct writeback *wb, int rc);
	struct log_pin *pin;
	struct fs_txn *txn;
	struct writeback_segment *segment;	/* writeback_segments() of them
						   at most */
	void **data;		/* content of each block */
	struct iovec *iov;
};

/* Most segments of a write-back. */
static inline unsigned writeback_segments(const struct writeback *wb)
{
	return wb->small ? SMALL_WB_SEGMENTS : WB_SEGMENTS;
}

struct writeback *writeback_new(struct file *file, enum writeback_kind kind,
				uint64_t first);
/* Begins a destage that may wait for a gap; it does not count among
 * DESTAGE_WBS. */
struct writeback *writeback_new_for_gap(struct file *file, uint64_t first);
/* Marks its blocks as being written, with references to their data. */
void writeback_claim(struct writeback *wb);
/* Number of dirty blocks from wb->first on that are in no write-back, as many
 * as this one can have. */
unsigned writeback_collect(const struct writeback *wb);
/* Ends block i; `ok`: it is at its place, otherwise it is dirty again. */
void writeback_release(struct writeback *wb, unsigned i, bool ok);
/* Ends a write-back; blocks claimed and not released are dirty again. */
void writeback_end(struct writeback *wb);
/* Submits all segments; written() is called at the end. */
void writeback_write(struct writeback *wb, enum queue_class class,
	       void (*written)(struct writeback *wb, int rc));
/* writeback_write in parts: prepares the requests of all segments; submits one
 * of them; ends one of them, with its result. */
void writeback_prepare_requests(struct writeback *wb, enum queue_class class,
		  void (*written)(struct writeback *wb, int rc));
void writeback_submit(struct writeback *wb, struct writeback_segment *segment,
		enum queue_class class);
void writeback_segment_done(struct writeback_segment *segment);
/* Adds a segment; -E2BIG: there are too many. */
int writeback_add_segment(struct writeback *wb, uint64_t sector, uint64_t n,
			  bool known);

#endif

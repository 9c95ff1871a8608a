/*
 * writeback.h - dirty blocks on their way to the disk.
 */
#ifndef TRAX_DATA_WRITEBACK_H
#define TRAX_DATA_WRITEBACK_H

#include "fs/data/file_data.h"
#include "fs/data/file_sync.h"

/* Starts whatever may be started. */
void writeback_pump(struct files *files);
/* This file's dirty blocks up to `stamp` are to be written. */
void writeback_flush(struct file *file, uint64_t stamp, bool sync, bool final);
int writebacks_new(struct files *files);
/* A stretch of a growing file is complete enough to be written. */
void writeback_stream(struct file *file);

enum writeback_kind {
	WB_DIRECT,
	WB_IN_PLACE,
	WB_LOGGED,
	WB_INLINE,
	WB_DESTAGE
};

struct writeback_segment {		/* of the disk, in file order */
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
	bool for_gap;		/* of a destage: it may wait for a gap */
	bool gap_queued;		/* it does, since gap_queued_ns */
	uint64_t gap_queued_ns;
	struct list gap_link;	/* files->offered */
	uint64_t first;
	unsigned n, done;	/* blocks; committed so far */
	uint64_t stamp;		/* oldest block in it */
	unsigned segments, outstanding;
	bool taken;		/* the segments are not owned yet */
	/* Of data somebody waits for, see late_place.c. */
	bool may_move;		/* it begins anew, and lies on one track; of the
				   first of a train: so do all */
	bool follows;		/* on what its directory has open */
	bool in_flight;		/* it is not over */
	struct queue_place place;
	struct range window;
	struct writeback *batch_next,
		*batch_last;	/* in a train; of the first: its last */
	bool waited;		/* for a checkpoint that may free space */
	unsigned want;		/* blocks to ask space for */
	uint64_t hole;		/* sector of the file: no place from here on,
				   up to `first` at least */
	int rc;
	bool failed;		/* some segment */
	enum fault_class class;	/* of that error */
	void (*written)(struct writeback *wb, int rc);
	struct log_pin *pin;
	struct fs_txn *txn;
	struct writeback_segment segment[WB_SEGMENTS];
	void **data;		/* of each block */
	struct iovec *iov;
};

struct writeback *writeback_new(struct file *file, enum writeback_kind kind,
				uint64_t first);
/* A destage that may wait for a gap: not one of those kept for destaging. */
struct writeback *writeback_new_for_gap(struct file *file, uint64_t first);
/* Marks its blocks as being written, and keeps their data. */
void writeback_claim(struct writeback *wb);
/* How many dirty blocks that no write-back has there are from write-back->first
 * on, as many as the write-back can have. */
unsigned writeback_collect(const struct writeback *wb);
/* Block i is over; `ok`: it is where it belongs, else it is dirty again. */
void writeback_release(struct writeback *wb, unsigned i, bool ok);
/* Ends it; blocks claimed and not released are dirty again. */
void writeback_end(struct writeback *wb);
/* Submits the segments; written() follows. */
void writeback_write(struct writeback *wb, enum queue_class class,
	       void (*written)(struct writeback *wb, int rc));
/* The same in parts: what the segments ask of the disk; one of them submitted;
 * one of them is over, with its result. */
void writeback_prepare_requests(struct writeback *wb, enum queue_class class,
		  void (*written)(struct writeback *wb, int rc));
void writeback_submit(struct writeback *wb, struct writeback_segment *segment,
		enum queue_class class);
void writeback_segment_done(struct writeback_segment *segment);
/* Adds a segment, from the map: -E2BIG. */
int writeback_add_segment(struct writeback *wb, uint64_t sector, uint64_t n,
			  bool known);

#endif

/*
 * read_events.h - events on the way of a read, for the parts of the file system
 * above the read path: they read ahead, learn, supply data from elsewhere, and
 * heal.
 *
 * The read path calls none of these parts by name.  Each has one table of the
 * events that it wants, and fs.c lists the tables (fs->read_events, ended by
 * NULL).  The members are in the order in which the events of a read come.
 */
#ifndef TRAX_DATA_READ_EVENTS_H
#define TRAX_DATA_READ_EVENTS_H

#include "fs/op/fs_state.h"
#include "replicate/heat.h"

struct file;
struct files;

/* One run of sectors that a read has to get from the disk. */
struct read_segment {
	struct file *file;
	uint64_t addr, n;	/* where the original lies, in sectors */
	uint64_t off;		/* the same place in the file, in sectors */
	uint64_t first, end;	/* the extent in which it lies on the disk, in
				 * sectors */
	const struct iovec *iov; /* where the data belongs */
	unsigned iov_n;
};

/* One run of sectors that has been read. */
struct read_done {
	uint64_t number;	/* the number that `begun` returned for it */
	uint64_t sector, n;	/* the sectors that were read, of the original
				 * or of a replica */
	uint64_t wait_ns;	/* time since it was begun */
	bool from_replica;
};

/* A read that is not watched has no number. */
#define READ_NO_NUMBER UINT64_MAX

/* A read that waits until its replica is in a buffer. */
struct replica_run_want {
	struct list link;
	uint64_t sector;	/* set by take_replica: sector where the replica
				 * was found */
	uint32_t sectors;
	/* Called with all of the data in two parts, which are valid during the
	 * call.  `data` NULL: the replica counts no more (`gone` is set), or
	 * some sector read together with it failed: the read goes to the disk
	 * by itself. */
	bool gone;
	void (*done)(struct replica_run_want *want, const uint8_t *data,
		     size_t bytes, const uint8_t *rest);
	/* belong to replica_readahead.c */
	struct replica_run *head, *tail;
};

struct read_events {
	/* A user reads a file from its start, and the file carries a mark of
	 * read-ahead (file->readahead_next). */
	void (*reached)(struct file *file);
	/* A small file had to be read from the disk, from its start: it lies in
	 * [sector, sector + n). */
	void (*missed)(struct file *file, uint64_t sector, uint64_t n);
	/* A user's read begins.  Returns a number that `done` gets again; at
	 * most one table has this event. */
	uint64_t (*begun)(struct fs *fs, const struct heat_read *read);
	/* Has a buffer the data that is being read ahead?  Then it is
	 * copied. */
	bool (*take)(const struct read_segment *segment);
	/* Is one of these replicas in a buffer, or about to be?  Then
	 * want->done() is called, maybe at once. */
	bool (*take_replica)(struct fs *fs, struct replica_run_want *want,
			     const uint64_t *replicas, unsigned n,
			     uint64_t original);
	/* A user's read is about to be submitted for the first time. */
	void (*submitted)(const struct read_segment *segment);
	void (*done)(struct fs *fs, const struct read_done *done);
	/* Blocks of a chunk that could not be read, or had a wrong checksum,
	 * were found in a replica. */
	void (*recovered)(struct file *file, uint64_t chunk, uint16_t blocks);
	/* A user has come to data that was read ahead, from an original at
	 * `sector`; `begin` and the wait of `read` are not set. */
	void (*used)(struct fs *fs, const struct heat_read *read,
		     uint64_t sector, uint64_t wait_ns);
	/* The files are closed. */
	void (*close)(struct files *files);
};

/* Calls read() for each part of an extent that is read from the disk for users,
 * also ahead of them.  The call comes from inside an operation, so it must not
 * submit any. */
struct read_watch {
	void (*read)(struct read_watch *watch,
		     const struct read_segment *segment);
};

/* Goes over the tables that have an event: for_each_read_event(ev, fs, begun) {
 * ... } */
#define for_each_read_event(ev, fs, event)                            \
	for (const struct read_events *const *ev = (fs)->read_events; \
	     *ev; ev++)                                               \
		if ((*ev)->event)

#endif

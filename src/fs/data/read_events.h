/*
 * read_events.h - what happens on the way of a read, for the parts of the file
 * system that stand above it: they read ahead, learn, supply data from
 * elsewhere, and heal.
 *
 * The read path calls nothing of these parts by name.  Each has one table of
 * the events that it wants, and fs.c lists the tables (fs->read_events, ended
 * by NULL).  Events come in the order of a read's life, which is that of the
 * members below.
 */
#ifndef TRAX_DATA_READ_EVENTS_H
#define TRAX_DATA_READ_EVENTS_H

#include "fs/op/fs_state.h"
#include "replicate/heat.h"

struct file;
struct files;

/* One run of sectors that a read asks of the disk. */
struct read_segment {
	struct file *file;
	uint64_t addr, n;	/* sectors: where the original lies */
	uint64_t off;		/* sectors: the same place in the file */
	uint64_t first, end;	/* sectors: the extent around it, on disk */
	const struct iovec *iov; /* where the data belongs */
	unsigned iov_n;
};

/* One run of sectors that has been read. */
struct read_done {
	uint64_t number;	/* what `begun` gave for it */
	uint64_t sector, n;	/* what was read, maybe of a replica */
	uint64_t wait_ns;	/* since it was begun */
	bool from_replica;
};

/* A read that is not watched has no number. */
#define READ_NO_NUMBER UINT64_MAX

/* A read that waits for a buffer in which its replica will be. */
struct replica_run_want {
	struct list link;
	uint64_t sector;	/* set: where it was found */
	uint32_t sectors;
	/* Data of all of it in two parts, valid during the call; NULL: the
	 * replica counts no more (`gone`), or something of what was read with
	 * it could not be read: then the read goes to the disk by itself. */
	bool gone;
	void (*done)(struct replica_run_want *want, const uint8_t *data,
		     size_t bytes, const uint8_t *rest);
	struct replica_run *head, *tail; /* the supplier's */
};

struct read_events {
	/* A user reads a file from its start that carries a mark of read-ahead
	 * (file->readahead_next). */
	void (*reached)(struct file *file);
	/* A small file had to be read from [sector, sector + n), from its
	 * start. */
	void (*missed)(struct file *file, uint64_t sector, uint64_t n);
	/* A user's read begins.  The number returned comes back in `done`; one
	 * table at most has this. */
	uint64_t (*begun)(struct fs *fs, const struct heat_read *read);
	/* Does a buffer have what is being read ahead?  Then it is copied. */
	bool (*take)(const struct read_segment *segment);
	/* Is one of these replicas in a buffer, or about to be?  Then want->
	 * done() is called, maybe at once. */
	bool (*take_replica)(struct fs *fs, struct replica_run_want *want,
			     const uint64_t *replicas, unsigned n,
			     uint64_t original);
	/* A user's read is about to be submitted for the first time. */
	void (*submitted)(const struct read_segment *segment);
	void (*done)(struct fs *fs, const struct read_done *done);
	/* Blocks of a chunk that could not be read, or had a wrong checksum,
	 * were found in a replica. */
	void (*recovered)(struct file *file, uint64_t chunk, uint16_t blocks);
	/* A user has come to what was read ahead, of an original at `sector`;
	 * `begin` and the wait of `read` are not set. */
	void (*used)(struct fs *fs, const struct heat_read *read,
		     uint64_t sector, uint64_t wait_ns);
	/* The files are closed. */
	void (*close)(struct files *files);
};

/* A call for each part of an extent that is read from the disk for users, also
 * ahead of them.  It is made from inside an operation, so it must not submit
 * any. */
struct read_watch {
	void (*read)(struct read_watch *watch,
		     const struct read_segment *segment);
};

/* The tables one after the other: for_each_read_event(ev, fs, begun) { ... } */
#define for_each_read_event(ev, fs, event)                            \
	for (const struct read_events *const *ev = (fs)->read_events; \
	     *ev; ev++)                                               \
		if ((*ev)->event)

#endif

/*
 * file_scan.h - reads the data of many files in whatever order the head allows,
 * in free bandwidth (sched/freeblock/freeblock.h), for programs.
 *
 * A scan is given files by inode number and gives records (scan_record.h).  A
 * block is compared with its checksum before it is given; if it does not match,
 * it is read like a user's read, which finds replicas and heals.  Each block is
 * given once, unless its file has changed since a part of it was given: a
 * SCAN_CHANGED record then makes all earlier records of the file void.  Records
 * that file_scan_read does not take stay within a bound, and then nothing is
 * read.
 */
#ifndef TRAX_SCAN_FILE_SCAN_H
#define TRAX_SCAN_FILE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/fs.h"
#include "scan/scan_record.h"

struct file_scans;		/* all scans of a mount */
struct file_scan;

#define FILE_SCANS_MOST 4u	/* most scans at a time */

/* -ENOMEM.  Before fs_close: file_scans_close. */
int file_scans_open(struct fs *fs, struct file_scans **scans);
/* Ends all scans; waits for what is under way (fs_run).  NULL is harmless. */
void file_scans_close(struct file_scans *scans);
/* Does what is due; returns when it wants to be called again at the latest.
 * Beside fs_run. */
uint64_t file_scans_run(struct file_scans *scans);

struct file_scan_options {
	uint64_t total_bytes, sample_bytes, last_bytes;	/* struct scan_begin */
	bool file_order;
	bool free_space;	/* it reads all that is free instead of files:
				 * records of file 0, offsets on the disk */
	uint64_t first;		/* of that from here on, see struct
				 * scan_begin */
	size_t memory_bytes;	/* bytes of everything that the scan keeps; 0: a
				 * share of the memory for nodes */
};

/* -EBUSY: there are FILE_SCANS_MOST; -ENOMEM. */
int file_scan_begin(struct file_scans *scans,
		    const struct file_scan_options *options,
		    struct file_scan **scan);
/* Gives it up. */
void file_scan_end(struct file_scan *scan);

uint64_t file_scan_id(const struct file_scan *scan);

/* Adds a regular file. -EAGAIN: there is no room until records are taken;
 * -EEXIST; -ENOMEM; -EINVAL: the scan was sealed. */
int file_scan_add(struct file_scan *scan, uint64_t ino);
void file_scan_seal(struct file_scan *scan);
void file_scan_pause(struct file_scan *scan, bool paused);
/* Has the scan read like a user, `depth` requests at a time; 0: not any
 * more. */
void file_scan_promote(struct file_scan *scan, unsigned depth);

bool file_scan_readable(const struct file_scan *scan);
/* Puts whole records into a buffer of SCAN_READ_LEAST bytes or more; returns
 * their bytes, 0: there is none yet. */
size_t file_scan_read(struct file_scan *scan, void *buffer, size_t bytes);
void file_scan_get_status(const struct file_scan *scan,
			  struct scan_status *status);

/* The i-th scan; NULL: there are no more. */
struct file_scan *file_scan_at(struct file_scans *scans, unsigned i);

#endif

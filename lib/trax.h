/*
 * trax.h - libtrax: the data of many files of a mounted traxfs, read in the
 * time in which the disk's platter would turn for nothing.
 *
 * A scan is made for a directory or file, walks what is below it, and is then
 * read record by record.  Data comes in any order, or (TRAX_FILE_ORDER) in the
 * order of each file; holes are left out.  Each byte comes once, but for files
 * that change meanwhile: TRAX_VOID takes back what was given of a file, which
 * comes again.  A scan belongs to one thread.
 *
 * Functions return 0 or a negative errno unless it is said otherwise.  Records
 * and what they point to are valid until the next call with the scan.
 */
#ifndef TRAX_LIB_TRAX_H
#define TRAX_LIB_TRAX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#ifdef __cplusplus
extern "C" {
#endif

struct trax_scan;

#define TRAX_FILE_ORDER 1u
/* Instead of files all that is free on the file system of `path`, which is what
 * deleted files held: TRAX_DATA and TRAX_ERROR have that path, offsets on the
 * disk, and a stat of zeros.  What cannot be read is not used any more unless
 * writing to it helps.  Not with TRAX_FILE_ORDER. */
#define TRAX_FREE_SPACE 2u

struct trax_scan_options {
	unsigned flags;		/* TRAX_FILE_ORDER or TRAX_FREE_SPACE */
	double sample_percent;	/* of the data that is enough; 0: all */
	/* A file in which is kept which files are through; those that it has
	 * already, and that have not been written to since, are left out.  So
	 * a scan goes on after a remount or a crash.  Of free space it has how
	 * far the scan was, in steps of 1 GiB.  It is removed when a scan is
	 * over.  NULL: none. */
	const char *cursor;
	double last_percent;	/* the part at the end that is read like other
				   reads of users, so that it comes soon; 0:
				   none */
};

enum trax_record_type {
	TRAX_DATA = 1,		/* `bytes` of a file from `offset` on */
	TRAX_WHOLE,		/* all of a file has come as it was at one
				   moment; offset is its size then */
	TRAX_VOID,		/* what came of a file does not count */
	TRAX_GONE,		/* a file was deleted; what came of it does not
				   count */
	TRAX_BUSY,		/* a file changes all the time, or cannot be
				   opened (`error`); what came does not count */
	TRAX_ERROR,		/* `bytes` from `offset` on cannot be read */
	TRAX_STATUS,		/* twice a second when there is nothing else */
};

struct trax_status {
	uint64_t files, whole_files;	/* in the scan; of these, through */
	uint64_t total_bytes, given_bytes;
	uint64_t run_ns;		/* without pauses */
	/* Read from the disk in the gaps of users' requests, while it was
	 * idle, like users' reads, and by users. */
	uint64_t gap_bytes, idle_bytes, promoted_bytes, passed_bytes;
};

struct trax_record {
	enum trax_record_type type;
	int error;		/* 0 or a negative errno */
	const char *path;	/* as it was found: begins with that of
				   trax_scan_new; NULL for TRAX_STATUS */
	const struct stat *stat; /* when it was found */
	void **user;		/* the program's own, one for each file, NULL
				   at first */
	uint64_t offset, bytes;
	const void *data;	/* TRAX_DATA */
	struct trax_status status;	/* TRAX_STATUS */
};

/* Finds the regular files at or below `path`, on its file system; of several
 * names the first.  -ENOENT and the like; -ENOTSUP: it is not on a traxfs, or
 * that serves no scans; -EBUSY: too many are open; -EPERM: free space is only
 * for root and who has mounted it; -ENOMEM. */
int trax_scan_new(const char *path, const struct trax_scan_options *options,
		  struct trax_scan **scan);
/* Gives it up; NULL is harmless. */
void trax_scan_free(struct trax_scan *scan);

/* The next record; waits for it.  1, 0: the scan is over, or an error. */
int trax_scan_next(struct trax_scan *scan, struct trax_record *record);

int trax_scan_pause(struct trax_scan *scan);
int trax_scan_resume(struct trax_scan *scan);
/* From now on it is read like users' reads, `depth` requests at a time; 0: in
 * gaps again. */
int trax_scan_promote(struct trax_scan *scan, unsigned depth);

#ifdef __cplusplus
}
#endif

#endif

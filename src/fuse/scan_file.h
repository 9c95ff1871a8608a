/*
 * scan_file.h - the file by which programs reach file scans
 * (scan/scan_record.h): SCAN_FILE_NAME in the root directory, which readdir
 * does not list.  Each open of it is a scan of its own.
 */
#ifndef TRAX_FUSE_SCAN_FILE_H
#define TRAX_FUSE_SCAN_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "fuse/request.h"
#include "scan/file_scan.h"

/* No inode has this number. */
#define SCAN_FILE_INO (UINT64_MAX - 0x5343)

/* Set in the handle of a file that is open for reading: only such a file may be
 * added to a scan. */
#define SCAN_FILE_READABLE (UINT64_C(1) << 63)

struct scan_files;

/* -ENOMEM. */
int scan_files_new(struct session *session, struct scan_files **files);
void scan_files_free(struct scan_files *files);

/* Answers a LOOKUP of the scan file; false: it asks for another name. */
bool scan_file_lookup(struct request *req);
/* Answers a request on the scan file, now or in scan_files_run. */
void scan_file_dispatch(struct request *req);
/* SCAN_IOC_ADD on another file. */
void scan_file_add(struct request *req);

/* Answers reads that wait; returns when it wants to be called again. */
uint64_t scan_files_run(struct scan_files *files);
/* To be called before the scans are closed: reads that wait get EIO. */
void scan_files_forget(struct scan_files *files);
/* The session ends: reads are answered with EINTR. */
void scan_files_stop(struct scan_files *files);

#endif

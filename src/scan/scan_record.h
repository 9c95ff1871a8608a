/*
 * scan_record.h - what a program reads from a file scan, and the ioctls that
 * steer it: the interface between the daemon and libtrax.
 *
 * A scan is an open file description of SCAN_FILE_NAME in the root directory.
 * It ends with its last close.  read(2) gives whole records, as many as fit,
 * and waits half a second at most: then it gives a SCAN_STATUS.  The buffer has
 * room for SCAN_READ_LEAST bytes at least (EINVAL).  Numbers are in the byte
 * order of the machine.  Nothing here is stored.
 */
#ifndef TRAX_SCAN_SCAN_RECORD_H
#define TRAX_SCAN_SCAN_RECORD_H

#include <stdint.h>
#include <sys/ioctl.h>

#define SCAN_FILE_NAME ".traxfs-scan"

/* Bytes of file data that a record has at most. */
#define SCAN_DATA_MOST (256u << 10)
#define SCAN_READ_LEAST (SCAN_DATA_MOST + 4096u)

enum scan_record_type {
	SCAN_DATA = 1,		/* `bytes` of the file from `offset` on follow;
				   holes are left out */
	SCAN_WHOLE = 2,		/* all of the file has been given as it was at
				   one moment; offset is its size */
	SCAN_CHANGED = 3,	/* what was given of the file does not belong
				   together: it has been changed (error 0) or
				   cannot be read (error); it is not in the
				   scan any more and may be added again */
	SCAN_ERROR = 4,		/* `bytes` from `offset` on are unreadable */
	SCAN_STATUS = 5,	/* a struct scan_status of `bytes` follows */
	SCAN_OVER = 6,		/* all files that were added are through, and
				   no more are expected */
	SCAN_PASSED = 7,	/* all free space before `offset` on the disk
				   has been given */
};

struct scan_record {
	uint32_t type;		/* enum scan_record_type */
	int32_t error;		/* 0 or a negative errno */
	uint64_t ino;		/* as stat(2) has it */
	uint64_t offset;	/* bytes in the file */
	uint64_t bytes;
};

/* SCAN_FAILED: for want of memory, and it does not go on. */
enum scan_state {
	SCAN_RUNNING, SCAN_PAUSED, SCAN_BLOCKED, SCAN_ENDED, SCAN_FAILED,
};

struct scan_status {
	uint64_t id;
	uint32_t state;		/* SCAN_BLOCKED: the program does not read */
	uint32_t promoted;	/* requests at a time; 0: in gaps only */
	uint64_t files;		/* files that were added and are not complete */
	uint64_t whole_files, changed_files;
	uint64_t given_bytes;	/* of file data, in records that were made */
	uint64_t total_bytes;	/* expected, as the program said, or of free
				 * space; 0: unknown */
	uint64_t wanted_bytes;	/* bytes that are wanted from the disk now */
	uint64_t run_ns;	/* since it began, without pauses */
	uint64_t gap_bytes, idle_bytes, promoted_bytes, passed_bytes;
};

/* Of struct scan_begin. */
#define SCAN_FILE_ORDER 1u	/* the data of each file comes in its order */
/* All free space is read, and no files are added: SCAN_DATA and SCAN_ERROR of
 * ino 0 have offsets on the disk.  EPERM: only for root and who has mounted it,
 * as it is what deleted files held. */
#define SCAN_FREE_SPACE 2u

/* The first request on a scan; EBUSY: it has begun, or too many are open. */
struct scan_begin {
	uint64_t total_bytes;	/* bytes of files that will be added; 0: not
				 * known */
	uint64_t sample_bytes;	/* bytes that are enough; 0: all */
	uint64_t last_bytes;	/* this many bytes at the end are read like a
				 * user's reads; 0: none */
	uint64_t first;		/* SCAN_FREE_SPACE: offset on the disk at which
				   it goes on, as SCAN_PASSED had it; 0: all */
	uint32_t flags;		/* SCAN_FILE_ORDER or SCAN_FREE_SPACE */
	uint32_t id;		/* out: for SCAN_IOC_ADD */
	uint64_t key;		/* out: for SCAN_IOC_ADD */
};

/* On a file open for reading: adds it to a scan.  EAGAIN: there is no room
 * before some records have been read; EEXIST: it is in it; EACCES: not open
 * for reading; ENOENT: no such scan. */
struct scan_add {
	uint64_t id, key;	/* as SCAN_IOC_BEGIN gave them */
};

enum scan_action {
	SCAN_SEAL,		/* no more files will be added */
	SCAN_PAUSE, SCAN_RESUME,
	SCAN_PROMOTE,		/* value: requests at a time; 0: not any more */
};

struct scan_act {
	uint32_t action;	/* enum scan_action */
	uint32_t value;
};

#define SCAN_IOC_BEGIN _IOWR('t', 0x59, struct scan_begin)
#define SCAN_IOC_ADD _IOW('t', 0x5a, struct scan_add)
#define SCAN_IOC_ACT _IOW('t', 0x5b, struct scan_act)
#define SCAN_IOC_STATUS _IOR('t', 0x5c, struct scan_status)

#endif

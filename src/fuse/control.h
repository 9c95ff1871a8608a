/*
 * control.h - the one way in which traxctl changes something: an ioctl on the
 * root directory, for root and the mounting user only.
 *
 * What can be *seen* are the trax.* attributes (fuse/view.h).  The structure
 * is passed in and out, with the command's `result`.  The ioctl itself fails
 * with EPERM, EOPNOTSUPP (unknown command), ENOTTY (not the root directory) or
 * EIO.
 */
#ifndef TRAX_FUSE_CONTROL_H
#define TRAX_FUSE_CONTROL_H

#include <stdint.h>
#include <sys/ioctl.h>

#define TRAX_CONTROL_PAYLOAD_BYTES 1008u

enum trax_control_command {
	/* Writes to the medium all that was acknowledged, and what the kernel
	 * has begun to write back.  result: see fuse/sync.h. */
	TRAX_CONTROL_SYNC = 1,
	/* Starts, pauses, resumes the scrub (scrub/scrub.h), whose state is in
	 * trax.scrub. */
	TRAX_CONTROL_SCRUB_START = 8,
	TRAX_CONTROL_SCRUB_PAUSE = 9,
	TRAX_CONTROL_SCRUB_RESUME = 10,
	/* Payload: le64, millionths of the head's time that background work
	 * may cost (fs_set_budget). */
	TRAX_CONTROL_SET_BUDGET = 11,
	/* Payload: TRAX_TASK_NAME_BYTES of the name of a task, as trax.tasks
	 * has it (tasks/tasks.h).  ENOENT. */
	TRAX_CONTROL_TASK_PAUSE = 24,
	TRAX_CONTROL_TASK_RESUME = 25,
	/* Payload: inode numbers (le64 each) of files whose data is to be
	 * brought together (move/move.h).  result: how many of them were taken;
	 * the others have to be passed again.  EOPNOTSUPP: this mount moves
	 * nothing. */
	TRAX_CONTROL_ORDER = 26,
	/* Payload: struct trax_copies.  result: copies made.  EBUSY: others are
	 * being made. */
	TRAX_CONTROL_REPLICATE = 16,
	/* Payload: inode number (le64) of the file whose replicas are dropped;
	 * 1: those of all files. */
	TRAX_CONTROL_DROP_REPLICAS = 17,
	/* Payload: le64, number of replicas of each block from now on. */
	TRAX_CONTROL_SET_REPLICAS = 18,
	/* Payload: mount options, terminated; those that it does not name stay.
	 * The caller changes the kernel's side of the mount: to read-only
	 * before this, to writable after it.  result: 0, or an errno with the
	 * reason, a terminated text, in the payload. */
	TRAX_CONTROL_REMOUNT = 32,
	/* Extends the file system to the end of a device that has become
	 * larger.  result: 0, and a struct trax_grown in the payload, or an
	 * errno and the reason, as above. */
	TRAX_CONTROL_GROW = 33,
	/* Payload: the UUID to show.  (Linux answers FS_IOC_GETFSUUID without
	 * asking a FUSE daemon.) */
	TRAX_CONTROL_SET_UUID = 34,
	/* Looks again at damage that was noted, and removes what is whole by
	 * now (scrub_recheck): "rechecking" of trax.scrub says whether it is
	 * under way. */
	TRAX_CONTROL_ERRORS_RECHECK = 35,
	/* Payload: number (le64) behind the last note that is removed. */
	TRAX_CONTROL_ERRORS_CLEAR = 36,
};

#define TRAX_TASK_NAME_BYTES 32u	/* ended by a zero */
#define TRAX_UUID_BYTES 16u
#define TRAX_BUDGET_MOST_PPM 500000u

struct trax_control {
	uint32_t command;	/* enum trax_control_command */
	uint32_t payload_bytes;	/* used of payload; 0: none */
	uint64_t result;
	uint8_t payload[TRAX_CONTROL_PAYLOAD_BYTES];
};

#define TRAX_COPIES_FILES 100u

struct trax_copies {
	uint64_t near;		/* sector near which copies go; 0: the hot
				   region */
	uint64_t n;		/* number of inode numbers in `ino` */
	uint64_t ino[TRAX_COPIES_FILES];
};

struct trax_grown {
	uint64_t was, now;	/* bytes of the file system */
};

#define TRAX_IOC_CONTROL _IOWR('t', 0x58, struct trax_control)

#endif

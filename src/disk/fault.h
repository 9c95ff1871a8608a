/*
 * fault.h - what is done when the disk, or memory, fails a write or a read.
 *
 * There is one table for all of them, so that the same error gets the same
 * answer wherever it is met: a failed request is repeated where it was (retry),
 * then at another place (relocate), each time after a pause that doubles; when
 * both are used up, the last step is taken.  The table is in
 * doc/design/faults.md, and tests/unit/disk/test_fault checks every row.
 *
 * The queue does the retries of a request that names its origin
 * (sched/queue/queue.h); the owner does the rest, and counts its failures in a
 * row: the count goes back to 0 when one of its requests has succeeded.
 */
#ifndef TRAX_DISK_FAULT_H
#define TRAX_DISK_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "disk/disk.h"

enum fault_origin {
	FAULT_CALLER,		/* has no row: the queue repeats nothing */
	FAULT_DATA,		/* writes content that is not yet durable */
	FAULT_DESTAGE,		/* writes logged content to its extents */
	FAULT_LOG,		/* writes a log record */
	FAULT_MIRROR,		/* writes mirrors of log records */
	FAULT_NODE,		/* writes a tree node or its mirror */
	FAULT_ROOT,		/* writes the two copies of a root */
	FAULT_SUPER,		/* writes the copies of the superblock */
	FAULT_COPY,		/* writes a replica, or a block that is healed:
				   something that exists elsewhere */
	FAULT_READ_DATA,	/* reads content of a file */
	FAULT_READ_NODE,	/* reads a tree node */
	FAULT_READ_ROOT,	/* reads a root, at a mount */
	FAULT_READ_SUPER,	/* reads a superblock, at a mount */
	FAULT_READ_LOG,		/* reads a log record, at a mount */
	FAULT_ORIGINS
};

enum fault_class {
	FAULT_MEDIA,		/* these sectors fail */
	FAULT_TRANSPORT,	/* the way to the disk fails, or the disk has
				   not answered: it may be well again soon */
	FAULT_FLUSH,		/* writes may have been lost that had been
				   completed since the last good flush */
	FAULT_MEMORY,		/* memory for the operation was missing */
	FAULT_CLASSES
};

enum fault_step {
	FAULT_RETRY,		/* repeat the request at the same place */
	FAULT_RELOCATE,		/* write the content at another place, or read
				 * another copy */
	FAULT_GIVE_UP,		/* leave it undone: nothing depends on it */
	FAULT_FAIL_REQUEST,	/* answer the request with -EIO */
	FAULT_FAIL_FILE,	/* the content is lost: every descriptor of the
				   file is told once, syncfs and trax.errors */
	FAULT_FAIL_FS,		/* read-only until the next mount; the log keeps
				   what is not destaged */
	FAULT_STEPS
};

#define FAULT_FOREVER 255u	/* For `retries` or `places`: without an end. */

struct fault_row {
	bool used;		/* requests of this origin can have this
				 * error */
	uint8_t retries;	/* repetitions at the same place;
				 * FAULT_FOREVER */
	uint8_t places;		/* other places to try after that */
	uint16_t pause_ms;	/* before the second repetition (there is none
				   before the first); doubles each time, up to
				   FAULT_PAUSE_MOST_MS */
	enum fault_step last;	/* the step when all of them have failed */
};

#define FAULT_PAUSE_MOST_MS 4000u	/* Longest pause before a repetition. */

/* Finds a row; NULL: requests of this origin cannot have this error. */
const struct fault_row *fault_row(enum fault_origin origin,
				  enum fault_class class);

/* What kind of error a request of the disk has ended with; `result`: not 0. */
enum fault_class fault_class(enum disk_op op, int result);

/* The next step after `failures` in a row, 1 for the first one. *pause_ns:
 * pause before FAULT_RETRY and FAULT_RELOCATE; may be NULL. */
enum fault_step fault_next(enum fault_origin origin, enum fault_class class,
			   unsigned failures, uint64_t *pause_ns);

#endif

/*
 * trace.h - operations as the front end sent them, in a file: one line when an
 * operation was submitted, one when it had ended.
 *
 * A line holds an event, then fields of a letter and a value, of which those
 * that are 0 are left out:
 *
 *   > NUMBER =TYPE tMS FIELDS  submitted MS milliseconds after the first
 *   < NUMBER FIELDS            ended
 *   + NUMBER iINO              READDIR has given a reference to this inode
 *   @ hNUMBER                  fs_new_handle has given this number
 *
 * The content of files is not kept, a replay makes its own; values of extended
 * attributes are.
 */
#ifndef TRAX_RIG_TRACE_H
#define TRAX_RIG_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/fs.h"

enum trace_kind {
	TRACE_SUBMIT = '>',
	TRACE_END = '<',
	TRACE_ENTRY = '+',
	TRACE_HANDLE = '@',
};

struct trace_event {
	enum trace_kind kind;
	unsigned number;	/* of the operation */
	struct fs_op op;	/* SUBMIT: as it was submitted, rc and result
				   as it ended; END: ino, rc, result and what
				   attr holds of it */
	uint64_t ms;		/* SUBMIT */
	uint64_t ino;		/* SUBMIT: of the entry that it gave; ENTRY */
	uint32_t mode;		/* SUBMIT: of what it gave, or set */
	uint64_t handle;	/* HANDLE */
};

struct trace {
	struct trace_event *event;
	unsigned events, ops;
};

/* Aborts when the file can't be read or holds anything else. */
struct trace *trace_read(const char *path);
void trace_free(struct trace *trace);

/* Names by enum fs_op_type; NULL: operations of this type are left out. */
extern const char *const trace_types[FS_OP_TYPES];

#endif

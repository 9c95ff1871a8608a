/*
 * request.h - one request of the kernel, from read(2) to the reply.
 *
 * Private to src/fuse.  A request carries the fs_op it becomes.  Small
 * requests are copied into it; of large ones (WRITE, long values) it keeps the
 * receive buffer until the reply, so that the data of a WRITE is never copied
 * and lies at a multiple of 4096.  Every request ends exactly once, with
 * request_reply() or request_drop(), which also frees it.
 */
#ifndef TRAX_FUSE_REQUEST_H
#define TRAX_FUSE_REQUEST_H

#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "fs/fs.h"

struct session;
struct uring_message;
struct uring_slot;

#define REQUEST_SMALL_BYTES 4096u	/* held in the request itself */
#define REQUEST_MAX_WRITE (1u << 20)	/* bytes of one READ or WRITE */

struct request {
	struct fs_op op;
	struct session *session;
	struct list link;		/* free list; queues of others */
	uint64_t unique;
	uint32_t opcode;
	const void *fixed;		/* the opcode's fixed part */
	size_t fixed_bytes;		/* size of the fixed part, if there is
					 * one */
	const char *name[2];		/* the request's terminated strings */
	const uint8_t *data;		/* what follows them */
	size_t data_bytes;
	size_t room;			/* room for the reply in the kernel's
					 * buffer */
	size_t filled;			/* READDIR: bytes in op.buffer */
	uint64_t page_writes;		/* sync: the session's page_writes when
					 * it came, later when it was started */
	uint64_t waits_ns;		/* since when it waits for room; 0: it
					 * has not waited (room_wait) */
	void (*again)(struct request *req);
	struct uring_slot *slot;	/* the slot of io_uring that it came by;
					 * NULL: it came by read(2) */
	void *held;			/* receive buffer kept, or NULL */
	void *copy;			/* own memory of its data, or NULL */
	void *large;			/* reply buffer taken, or NULL */
	_Alignas(8) uint8_t in[REQUEST_SMALL_BYTES];
	_Alignas(8) uint8_t out[REQUEST_SMALL_BYTES];
};

/* A request with nothing in it; NULL: no memory. */
struct request *request_new(struct session *session);

/*
 * Takes apart a message as read from the kernel: `buffer` is one of the
 * session's, `bytes` what read(2) said.  Sets op.ino, uid, gid.  -EINVAL: not
 * a request.  *kept: the request has kept the buffer.
 */
int request_parse(struct request *req, void *buffer, size_t bytes,
		  bool *kept);

/* Fills in a request from a message of io_uring: nothing is copied, and the
 * slot belongs to the request until the reply. */
int request_take(struct request *req, const struct uring_message *message);

/*
 * Splits off the opcode's fixed part and `names` strings from what follows
 * the header.  -EINVAL: shorter than that, or a string without end.
 */
int request_split(struct request *req, size_t fixed_bytes, unsigned names);

/* Does it come from root or the mounting user? */
bool request_by_admin(const struct request *req);

/* Hands the op to the file system; done() is called, maybe at once. */
void request_submit(struct request *req, enum fs_op_type type,
		    void (*done)(struct fs_op *op));

/* Memory for a reply of up to `bytes` (<= REQUEST_MAX_WRITE). */
void *request_room(struct request *req, size_t bytes);

/* Ends the request.  error: 0 or a negative errno; data may be NULL.
 * Returns false when the kernel no longer waited for it. */
bool request_reply(struct request *req, int error, const void *data,
		   size_t bytes);

/*
 * Makes the kernel forget what it knows of an inode's attributes, and ask again
 * before it relies on them.  Pages are not touched, so that this never waits;
 * to be called before the reply to the request that changed them.
 */
void request_forget_attr(struct session *session, uint64_t ino);

/*
 * Gives back the large buffers of a request that is not answered yet, so that
 * whatever its answer waits for can be served meanwhile.
 */
void request_shrink(struct request *req);

/* Ends a request that has no reply. */
void request_drop(struct request *req);

static inline struct request *request_of(struct fs_op *op)
{
	return container_of(op, struct request, op);
}

#endif

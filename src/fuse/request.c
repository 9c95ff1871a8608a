/*
 * request.c - requests: taking apart, buffers, replies.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/msg.h"
#include "fuse/session_internal.h"
#include "fuse/request.h"
#include "fuse/sync.h"
#include "fuse/uring.h"

/* The largest errno that the kernel takes in a reply. */
#define MAX_REPLY_ERRNO 511

/*
 * Requests of up to this many bytes are copied into memory of their own, so
 * that small direct WRITEs that wait for room do not hold a receive buffer of a
 * megabyte each.  Copying takes about a microsecond.
 */
#define MAX_COPY_BYTES (16u << 10)

struct request *request_new(struct session *session)
{
	struct request *req;

	req = list_first(&session->requests, struct request, link);
	if (req) {
		list_del(&req->link);
	} else {
		req = malloc(sizeof(*req));
		if (!req)
			return NULL;
		list_init(&req->link);
	}
	memset(req, 0, offsetof(struct request, in));
	list_init(&req->link);
	req->session = session;
	session->outstanding++;
	return req;
}

void request_shrink(struct request *req)
{
	if (req->held)
		session_give_large(req->session, req->held);
	if (req->large)
		session_give_large(req->session, req->large);
	free(req->copy);
	req->held = req->large = req->copy = NULL;
	req->data = NULL;
	req->data_bytes = 0;
}

void request_drop(struct request *req)
{
	struct session *session = req->session;

	request_shrink(req);
	session->outstanding--;
	sync_note_end(req);
	list_add_front(&session->requests, &req->link);
}

static void take_header(struct request *req,
			const struct fuse_in_header *header)
{
	req->unique = header->unique;
	req->opcode = header->opcode;
	req->op.ino = header->nodeid;
	req->op.thread = header->pid;
	req->op.uid = header->uid;
	req->op.gid = header->gid;
	sync_note_begin(req);
}

int request_parse(struct request *req, void *buffer, size_t bytes, bool *kept)
{
	const uint8_t *message = (uint8_t *)buffer + SESSION_MESSAGE_OFFSET;
	struct fuse_in_header header;

	*kept = false;
	if (bytes < sizeof(header))
		return -EINVAL;
	memcpy(&header, message, sizeof(header));
	if (header.len != bytes)
		return -EINVAL;
	message += sizeof(header);
	bytes -= sizeof(header);

	take_header(req, &header);
	req->data_bytes = bytes;
	if (bytes > sizeof(req->in) && bytes <= MAX_COPY_BYTES)
		req->copy = malloc(bytes);
	if (req->copy) {
		memcpy(req->copy, message, bytes);
		req->data = req->copy;
	} else if (bytes > sizeof(req->in)) {
		req->held = buffer;
		req->data = message;
		*kept = true;
	} else {
		memcpy(req->in, message, bytes);
		req->data = req->in;
	}
	return 0;
}

int request_take(struct request *req, const struct uring_message *message)
{
	struct fuse_in_header header;

	memcpy(&header, message->header, sizeof(header));
	take_header(req, &header);
	req->slot = message->slot;
	if (header.len < sizeof(header) + message->payload_bytes)
		return -EINVAL;
	req->fixed = message->fixed;
	req->fixed_bytes = header.len - sizeof(header) - message->payload_bytes;
	req->data = message->payload;
	req->data_bytes = message->payload_bytes;
	return 0;
}

/* In a message that was read(2) the fixed part lies before the rest; with
 * io_uring it is apart. */
static int split_fixed(struct request *req, size_t bytes)
{
	if (req->slot)
		return req->fixed_bytes < bytes ? -EINVAL : 0;
	if (req->data_bytes < bytes)
		return -EINVAL;
	req->fixed = req->data;
	req->data += bytes;
	req->data_bytes -= bytes;
	return 0;
}

int request_split(struct request *req, size_t fixed_bytes, unsigned names)
{
	unsigned i;

	if (split_fixed(req, fixed_bytes))
		return -EINVAL;
	for (i = 0; i < names; i++) {
		const void *end = memchr(req->data, 0, req->data_bytes);
		size_t n;

		if (!end)
			return -EINVAL;
		req->name[i] = (const char *)req->data;
		n = (const uint8_t *)end - req->data + 1;
		req->data += n;
		req->data_bytes -= n;
	}
	return 0;
}

bool request_by_admin(const struct request *req)
{
	return req->op.uid == 0 || req->op.uid == req->session->options.owner;
}

void request_submit(struct request *req, enum fs_op_type type,
		    void (*done)(struct fs_op *op))
{
	req->op.type = type;
	req->op.done = done;
	req->op.rc = 0;
	fs_submit(req->session->fs, &req->op);
}

void *request_room(struct request *req, size_t bytes)
{
	if (bytes <= sizeof(req->out))
		return req->out;
	/* The data of a request is not overwritten before it has ended. */
	if (req->slot && !req->data_bytes && !req->name[0])
		return uring_payload(req->slot);
	if (!req->large)
		req->large = session_take_large(req->session);
	if (req->large || req->copy)
		return req->large;
	/* WRITEs that wait have all large buffers.  Nothing came with this
	 * request, so `copy` is free. */
	return req->copy = malloc(bytes);
}

static bool send_reply(struct request *req, int error, const void *data,
		       size_t bytes)
{
	struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + bytes),
		.error = error,
		.unique = req->unique,
	};
	struct iovec iov[2] = {
		{ &header, sizeof(header) },
		{ (void *)data, bytes },
	};

	if (req->slot) {
		uring_reply(req->slot, req->unique, error, data, bytes);
		return true;
	}
	if (writev(req->session->options.fd, iov, bytes ? 2 : 1) >= 0)
		return true;
	/* ENOENT: the process that asked was killed; ENODEV: unmounted. */
	if (errno != ENOENT && errno != ENODEV && errno != ECONNABORTED)
		msg_error("FUSE: reply to opcode %u: %s", req->opcode,
			  strerror(errno));
	return false;
}

void request_forget_attr(struct session *session, uint64_t ino)
{
	/* A negative offset: the attributes, no pages. */
	struct fuse_notify_inval_inode_out out = { .ino = ino, .off = -1 };
	struct fuse_out_header header = {
		.len = sizeof(header) + sizeof(out),
		.error = FUSE_NOTIFY_INVAL_INODE,
	};
	struct iovec iov[2] = {
		{ &header, sizeof(header) },
		{ &out, sizeof(out) },
	};

	/* ENOENT: the kernel has forgotten the inode itself. */
	if (writev(session->options.fd, iov, 2) < 0 && errno != ENOENT)
		msg_debug("FUSE: attributes of node %llu: %s",
			  (unsigned long long)ino, strerror(errno));
}

bool request_reply(struct request *req, int error, const void *data,
		   size_t bytes)
{
	bool sent;

	if (error > 0 || error < -MAX_REPLY_ERRNO)
		error = -EIO;
	sent = send_reply(req, error, data, error ? 0 : bytes);
	request_drop(req);
	return sent;
}

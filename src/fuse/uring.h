/*
 * uring.h - requests through io_uring instead of read(2) and writev(2) on the
 * connection (Linux 6.14 and later, where the administrator has set the module
 * parameter fuse.enable_uring).
 *
 * The kernel has a queue for each processor; each queue gets a fixed number of
 * slots.  A slot carries one request from its arrival to its reply, so its
 * payload buffer is at the same time the data of a WRITE and the room for the
 * reply to a READ.  Replies and the wait for the next request are one system
 * call.  FORGET, INTERRUPT and notifications still go through the descriptor.
 * Not for use by several threads.
 */
#ifndef TRAX_FUSE_URING_H
#define TRAX_FUSE_URING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uring;
struct uring_slot;

/* What one slot has received.  The pointers stay valid until the reply. */
struct uring_message {
	struct uring_slot *slot;
	const void *header;	/* struct fuse_in_header */
	const void *fixed;	/* the fixed part of the opcode, 128 bytes */
	const void *payload;	/* what follows it */
	size_t payload_bytes;
};

/* What a look at the ring has brought. */
enum uring_event {
	URING_NONE,
	URING_MESSAGE,		/* a request */
	URING_POLLED,		/* the other descriptor is readable */
	URING_GONE,		/* the connection has ended */
};

/*
 * Makes a ring for the connection `fd`, with payloads of up to `payload_bytes`
 * and at most `max_slots` slots in all; `poll_fd` is watched beside it.  Makes
 * nothing known to the kernel's FUSE yet.  -EOPNOTSUPP: the kernel cannot, or
 * there are more processors than slots; -ENOMEM.
 */
int uring_new(int fd, int poll_fd, size_t payload_bytes, unsigned max_slots,
	      struct uring **uring);

/* Slots of each of the kernel's queues. */
unsigned uring_queue_slots(const struct uring *uring);

/* Gives the slots to the kernel, after INIT has been answered. */
int uring_register(struct uring *uring);

/* The next thing that has happened, without waiting. */
enum uring_event uring_next(struct uring *uring, struct uring_message *message);

/* Sends the replies and waits up to timeout_ns (0: not at all, UINT64_MAX:
 * without an end) until uring_next has something. */
void uring_wait(struct uring *uring, uint64_t timeout_ns);

/* The payload buffer of a slot, of payload_bytes. */
void *uring_payload(const struct uring_slot *slot);

/*
 * Answers the slot's request, with the next uring_wait or uring_push.  `data`
 * may be the slot's own payload buffer; error is 0 or a negative errno.
 */
void uring_reply(struct uring_slot *slot, uint64_t unique, int error,
		 const void *data, size_t bytes);

/* Sends the replies. */
void uring_push(struct uring *uring);

void uring_free(struct uring *uring);

#endif

/*
 * uring.c - see uring.h.
 *
 * <linux/fuse.h> of the build machine may be older than the kernel: what it
 * needs of the protocol (include/uapi/linux/fuse.h of Linux 6.14) is repeated
 * here.
 */
#include <errno.h>
#include <liburing.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/msg.h"
#include "fuse/uring.h"

#define PAGE_BYTES 4096u
#define MIN_QUEUE_SLOTS 4u	/* fewer would make requests wait for others */
#define EXTRA_ENTRIES 8u	/* additional entries of the ring, for polling
				 * the descriptor */

#define SQE_BYTES 128u		/* size of an entry with IORING_SETUP_SQE128 */

/* Commands in sqe->cmd_op. */
enum { COMMAND_REGISTER = 1, COMMAND_COMMIT_AND_FETCH = 2 };

/* The first of the two buffers of a slot. */
struct slot_header {
	char in_out[128];	/* fuse_in_header, then fuse_out_header */
	char fixed[128];	/* the opcode's fixed part */
	uint64_t flags;
	uint64_t commit_id;	/* names the request in the reply */
	uint32_t payload_bytes;
	uint32_t padding;
	uint64_t reserved;
};

/* The command of FUSE, in the 80 bytes that a large entry has for one. */
struct command {
	uint64_t flags;
	uint64_t commit_id;
	uint16_t queue;
	uint8_t padding[6];
};

struct uring_slot {
	struct uring *uring;
	struct slot_header *header;
	void *payload;
	struct iovec iov[2];	/* header and payload, as the kernel wants
				 * them */
	uint16_t queue;
};

struct uring {
	struct io_uring ring;
	int fd, poll_fd;
	size_t payload_bytes;
	unsigned queues, queue_slots;
	bool polls;		/* the poll of poll_fd is armed */
	uint8_t *memory;	/* headers, then payloads */
	size_t memory_bytes;
	struct uring_slot *slots;
};

static unsigned slot_count(const struct uring *uring)
{
	return uring->queues * uring->queue_slots;
}

static size_t round_up(size_t n)
{
	return (n + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static int make_slots(struct uring *uring)
{
	unsigned i, n = slot_count(uring);
	size_t heads = round_up(n * sizeof(struct slot_header));
	size_t payload = round_up(uring->payload_bytes);

	uring->slots = calloc(n, sizeof(*uring->slots));
	uring->memory_bytes = heads + n * payload;
	uring->memory = mmap(NULL, uring->memory_bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (uring->memory == MAP_FAILED)
		uring->memory = NULL;
	if (!uring->slots || !uring->memory)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		struct uring_slot *slot = &uring->slots[i];

		slot->uring = uring;
		slot->queue = (uint16_t)(i / uring->queue_slots);
		slot->header = (struct slot_header *)uring->memory + i;
		slot->payload = uring->memory + heads + i * payload;
		slot->iov[0] = (struct iovec){ slot->header,
					       sizeof(*slot->header) };
		slot->iov[1] = (struct iovec){ slot->payload, payload };
	}
	return 0;
}

int uring_new(int fd, int poll_fd, size_t payload_bytes, unsigned max_slots,
	      struct uring **out)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SQE128 | IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN,
	};
	struct uring *uring = calloc(1, sizeof(*uring));
	int rc;

	if (!uring)
		return -ENOMEM;
	uring->fd = fd;
	uring->poll_fd = poll_fd;
	uring->payload_bytes = payload_bytes;
	uring->ring.ring_fd = -1;
	/* The kernel has a queue for each processor that there may be. */
	uring->queues = (unsigned)get_nprocs_conf();
	uring->queue_slots = max_slots / uring->queues;
	rc = uring->queue_slots < MIN_QUEUE_SLOTS ? -EOPNOTSUPP : 0;
	if (!rc)
		rc = make_slots(uring);
	if (!rc) {
		rc = io_uring_queue_init_params(slot_count(uring) +
						EXTRA_ENTRIES,
						&uring->ring, &params);
		if (rc) {
			uring->ring.ring_fd = -1;
			rc = rc == -ENOMEM ? rc : -EOPNOTSUPP;
		}
	}
	if (rc) {
		uring_free(uring);
		return rc;
	}
	*out = uring;
	return 0;
}

unsigned uring_queue_slots(const struct uring *uring)
{
	return uring->queue_slots;
}

/* There is always a free entry: one for each slot, and one for polling. */
static struct io_uring_sqe *next_sqe(struct uring *uring)
{
	struct io_uring_sqe *sqe;

	while (!(sqe = io_uring_get_sqe(&uring->ring)))
		io_uring_submit(&uring->ring);
	memset(sqe, 0, SQE_BYTES);
	return sqe;
}

static void prepare(struct uring_slot *slot, uint32_t command,
		    uint64_t commit_id)
{
	struct io_uring_sqe *sqe = next_sqe(slot->uring);
	struct command what = {
		.commit_id = commit_id, .queue = slot->queue,
	};

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = slot->uring->fd;
	sqe->off = command;
	memcpy(sqe->cmd, &what, sizeof(what));
	if (command == COMMAND_REGISTER) {
		sqe->addr = (uint64_t)(uintptr_t)slot->iov;
		sqe->len = 2;
	}
	io_uring_sqe_set_data(sqe, slot);
}

static void arm_poll(struct uring *uring)
{
	struct io_uring_sqe *sqe;

	if (uring->polls)
		return;
	sqe = next_sqe(uring);
	io_uring_prep_poll_add(sqe, uring->poll_fd, POLLIN);
	io_uring_sqe_set_data(sqe, NULL);
	uring->polls = true;
}

int uring_register(struct uring *uring)
{
	struct io_uring_cqe *cqe;
	unsigned i;
	int rc;

	for (i = 0; i < slot_count(uring); i++)
		prepare(&uring->slots[i], COMMAND_REGISTER, 0);
	rc = io_uring_submit_and_get_events(&uring->ring);
	if (rc < 0)
		return rc;
	/* What the kernel refuses it refuses at once; a request may be there
	 * as well and is left for uring_next. */
	if (!io_uring_peek_cqe(&uring->ring, &cqe) && cqe->res < 0)
		return cqe->res;
	return 0;
}

static enum uring_event slot_event(struct uring_slot *slot, int result,
				   struct uring_message *message)
{
	const struct slot_header *header = slot->header;
	size_t most = slot->iov[1].iov_len;

	if (result < 0) {
		if (result != -ENOTCONN && result != -ECONNABORTED &&
		    result != -ECANCELED)
			msg_error("FUSE: io_uring: %s", strerror(-result));
		return URING_GONE;
	}
	*message = (struct uring_message){
		.slot = slot,
		.header = header->in_out,
		.fixed = header->fixed,
		.payload = slot->payload,
		.payload_bytes = header->payload_bytes < most ?
				 header->payload_bytes : most,
	};
	return URING_MESSAGE;
}

enum uring_event uring_next(struct uring *uring, struct uring_message *message)
{
	struct uring_slot *slot;
	struct io_uring_cqe *cqe;
	enum uring_event event;

	if (io_uring_peek_cqe(&uring->ring, &cqe))
		return URING_NONE;
	slot = io_uring_cqe_get_data(cqe);
	if (slot) {
		event = slot_event(slot, cqe->res, message);
	} else {
		uring->polls = false;
		event = URING_POLLED;
	}
	io_uring_cqe_seen(&uring->ring, cqe);
	return event;
}

void uring_wait(struct uring *uring, uint64_t timeout_ns)
{
	struct __kernel_timespec limit = {
		.tv_sec = (long long)(timeout_ns / 1000000000u),
		.tv_nsec = (long long)(timeout_ns % 1000000000u),
	};
	struct io_uring_cqe *cqe;

	arm_poll(uring);
	if (timeout_ns == 0)
		io_uring_submit_and_get_events(&uring->ring);
	else
		io_uring_submit_and_wait_timeout(&uring->ring, &cqe, 1,
						 timeout_ns == UINT64_MAX ?
						 NULL : &limit, NULL);
}

void *uring_payload(const struct uring_slot *slot)
{
	return slot->payload;
}

void uring_reply(struct uring_slot *slot, uint64_t unique, int error,
		 const void *data, size_t bytes)
{
	const struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + bytes),
		.error = error,
		.unique = unique,
	};
	uint64_t commit_id = slot->header->commit_id;

	if (bytes && data != slot->payload)
		memmove(slot->payload, data, bytes);
	memcpy(slot->header->in_out, &out, sizeof(out));
	slot->header->payload_bytes = (uint32_t)bytes;
	prepare(slot, COMMAND_COMMIT_AND_FETCH, commit_id);
}

void uring_push(struct uring *uring)
{
	if (io_uring_sq_ready(&uring->ring))
		io_uring_submit(&uring->ring);
}

void uring_free(struct uring *uring)
{
	if (uring->ring.ring_fd >= 0)
		io_uring_queue_exit(&uring->ring);
	if (uring->memory)
		munmap(uring->memory, uring->memory_bytes);
	free(uring->slots);
	free(uring);
}

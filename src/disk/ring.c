/*
 * ring.c - a disk through io_uring.
 *
 * At most `depth` requests are with the kernel, each in a slot; the rest wait
 * in order.  If the kernel transfers less than was asked, the rest is submitted
 * again, from a copy of the buffer list in the slot.  Completions are stamped
 * as soon as they are seen, before any done() is called.
 */
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_MEMCHECK_H
#include <valgrind/memcheck.h>
#endif

#include "base/env.h"
#include "base/list.h"
#include "disk/device_file.h"

/* Times that a request is submitted again after the kernel has sent it back
 * (-EAGAIN, -EINTR), before it fails. */
#define MAX_TRIES 16u

struct ring_slot {
	struct disk_request *req;
	struct ring_slot *next_free;
	uint64_t moved_bytes;
	unsigned tries;		/* times that the kernel sent the request
				 * back */
	struct iovec iov[DISK_MAX_IOV];
};

struct ring {
	struct device_file file;
	struct io_uring uring;
	struct disk_request *waiting, **waiting_end;
	struct ring_slot *free_slots;
	unsigned in_kernel;
	struct ring_slot *slots;
};

static struct ring *ring_of(struct disk *disk)
{
	return container_of(disk, struct ring, file.disk);
}

static uint64_t request_bytes(const struct disk_request *req)
{
	return (uint64_t)req->sectors * SECTOR_BYTES;
}

/* ---- to the kernel ---- */

/* The part of a request's buffers that has not been transferred. */
static struct iovec *slot_iov(struct ring_slot *slot, unsigned *n)
{
	const struct disk_request *req = slot->req;
	uint64_t skip = slot->moved_bytes;
	unsigned i = 0;

	if (!skip) {
		*n = req->iov_n;
		return req->iov;
	}
	for (; skip >= req->iov[i].iov_len; i++)
		skip -= req->iov[i].iov_len;
	*n = req->iov_n - i;
	memcpy(slot->iov, req->iov + i, *n * sizeof(slot->iov[0]));
	slot->iov[0].iov_base = (char *)slot->iov[0].iov_base + skip;
	slot->iov[0].iov_len -= skip;
	return slot->iov;
}

/* There is a free entry: the ring has as many entries as there are slots. */
static void slot_submit(struct ring *ring, struct ring_slot *slot)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
	const struct disk_request *req = slot->req;
	uint64_t at = req->sector * SECTOR_BYTES + slot->moved_bytes;
	int fd = ring->file.fd, flags = 0;
	struct iovec *iov;
	unsigned n;

	switch (req->op) {
	case DISK_FLUSH:
		io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
		break;
	case DISK_READ:
		iov = slot_iov(slot, &n);
		io_uring_prep_readv(sqe, fd, iov, n, at);
		break;
	case DISK_WRITE:
		if (req->fua && ring->file.disk.limits.volatile_cache)
			flags = RWF_DSYNC;
		iov = slot_iov(slot, &n);
		io_uring_prep_writev2(sqe, fd, iov, n, at, flags);
		break;
	case DISK_DISCARD:
		io_uring_prep_fallocate(sqe, fd, DEVICE_FILE_DISCARD,
					(off_t)at, (off_t)slot->req->sectors *
					SECTOR_BYTES);
		break;
	}
	io_uring_sqe_set_data(sqe, slot);
}

static void ring_start(struct ring *ring, struct disk_request *req)
{
	struct ring_slot *slot = ring->free_slots;

	ring->free_slots = slot->next_free;
	slot->req = req;
	slot->moved_bytes = 0;
	slot->tries = 0;
	ring->in_kernel++;
	slot_submit(ring, slot);
}

/* Requests that the kernel has no room for stay in the ring until the next
 * poll. */
static void ring_push(struct ring *ring)
{
	if (io_uring_sq_ready(&ring->uring))
		io_uring_submit(&ring->uring);
}

static void ring_submit(struct disk *disk, struct disk_request *req)
{
	struct ring *ring = ring_of(disk);
	int err = device_file_check(&ring->file, req);

	req->submit_ns = env_now_ns(env_real());
	if (err) {
		device_file_finish_now(&ring->file, req, err);
	} else if (ring->free_slots) {
		ring_start(ring, req);
		ring_push(ring);
	} else {
		if (!ring->waiting)
			ring->waiting_end = &ring->waiting;
		req->next = NULL;
		*ring->waiting_end = req;
		ring->waiting_end = &req->next;
	}
}

/* ---- and back ---- */

/* Tells valgrind which memory a read has filled, because it cannot see that. */
static void slot_filled(const struct ring_slot *slot)
{
#ifdef HAVE_MEMCHECK_H
	const struct disk_request *req = slot->req;
	unsigned i;

	if (!RUNNING_ON_VALGRIND || req->op != DISK_READ)
		return;
	for (i = 0; i < req->iov_n; i++)
		VALGRIND_MAKE_MEM_DEFINED(req->iov[i].iov_base,
					  req->iov[i].iov_len);
#else
	(void)slot;
#endif
}

/*
 * Takes a completion for a slot. Returns true when the request is done, with
 * its result; otherwise the rest of it has been submitted again.
 */
static bool slot_end(struct ring *ring, struct ring_slot *slot, int res,
		     int *result)
{
	uint32_t unit = ring->file.disk.limits.logical_bytes;
	bool again = res == -EINTR || res == -EAGAIN;
	uint32_t moved = res < 0 ? 0 : (uint32_t)res - (uint32_t)res % unit;

	slot->moved_bytes += moved;
	*result = res < 0 ? res : 0;
	if (again && ++slot->tries == MAX_TRIES)
		return true;
	if (!again && (res < 0 || !slot->req->iov_n ||
		       slot->moved_bytes >= request_bytes(slot->req)))
		return true;
	if (!again && !moved) {
		*result = -EIO;		/* the file ends here */
		return true;
	}
	slot_submit(ring, slot);
	return false;
}

static void ring_reap(struct ring *ring)
{
	struct io_uring_cqe *cqe;
	struct disk_request *req;
	struct ring_slot *slot;
	int result;

	while (!io_uring_peek_cqe(&ring->uring, &cqe)) {
		slot = io_uring_cqe_get_data(cqe);
		if (slot_end(ring, slot, cqe->res, &result)) {
			if (!result)
				slot_filled(slot);
			device_file_finish(&ring->file, slot->req, result);
			slot->next_free = ring->free_slots;
			ring->free_slots = slot;
			ring->in_kernel--;
		}
		io_uring_cqe_seen(&ring->uring, cqe);
	}
	while (ring->free_slots && ring->waiting) {
		req = ring->waiting;
		ring->waiting = req->next;
		ring_start(ring, req);
	}
	ring_push(ring);
}

static void ring_wait(struct ring *ring, int64_t timeout_ns)
{
	struct __kernel_timespec ts = {
		.tv_sec = timeout_ns / 1000000000,
		.tv_nsec = timeout_ns % 1000000000,
	};
	struct io_uring_cqe *cqe;

	io_uring_submit_and_wait_timeout(&ring->uring, &cqe, 1,
					 timeout_ns < 0 ? NULL : &ts, NULL);
}

static int ring_poll(struct disk *disk, int64_t timeout_ns)
{
	struct ring *ring = ring_of(disk);

	ring_reap(ring);
	if (!ring->file.finished && timeout_ns && ring->in_kernel) {
		ring_wait(ring, timeout_ns);
		ring_reap(ring);
	} else if (!ring->file.finished && timeout_ns > 0) {
		device_file_pass_time(timeout_ns);
	}
	return device_file_deliver(&ring->file);
}

static int ring_event_fd(struct disk *disk)
{
	return ring_of(disk)->file.event_fd;
}

static void ring_close(struct disk *disk)
{
	struct ring *ring = ring_of(disk);

	io_uring_queue_exit(&ring->uring);
	device_file_fini(&ring->file);
	free(ring->slots);
	free(ring);
}

static const struct disk_ops ring_ops = {
	.submit = ring_submit,
	.poll = ring_poll,
	.event_fd = ring_event_fd,
	.set_read_only = device_file_set_read_only,
	.renew_size = device_file_renew_size,
	.discards = true,
	.close = ring_close,
};

static int ring_init(struct ring *ring, unsigned depth)
{
	int err = io_uring_queue_init(depth, &ring->uring, 0);

	if (err)
		return err;
	err = io_uring_register_eventfd(&ring->uring, ring->file.event_fd);
	if (err)
		io_uring_queue_exit(&ring->uring);
	return err;
}

int ring_open(const struct device_file *file, unsigned depth,
	      struct disk **disk)
{
	struct ring *ring = calloc(1, sizeof(*ring));
	struct ring_slot *slots = calloc(depth, sizeof(*slots));
	int err = -ENOMEM;
	unsigned i;

	if (!ring || !slots)
		goto fail;
	ring->file = *file;
	ring->file.disk.ops = &ring_ops;
	ring->slots = slots;
	for (i = 0; i < depth; i++) {
		slots[i].next_free = ring->free_slots;
		ring->free_slots = &slots[i];
	}
	err = ring_init(ring, depth);
	if (err)
		goto fail;
	*disk = &ring->file.disk;
	return 0;
fail:
	free(slots);
	free(ring);
	return err;
}

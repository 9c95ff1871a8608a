/*
 * queue_sync.c - requests that are waited for, while others complete.
 */
#include "sched/queue/queue.h"

static void sync_done(struct disk_request *disk)
{
	bool *done = disk->owner;

	*done = true;
}

static int queue_finish_sync(struct queue *queue, struct queue_request *req,
			     const bool *done)
{
	int n;

	while (!*done) {
		n = queue_poll(queue, -1);
		if (n < 0)
			return n;
	}
	return req->disk.result;
}

static int queue_transfer(struct queue *queue, enum fault_origin origin,
			  enum disk_op op, uint64_t sector, uint32_t sectors,
			  void *buf)
{
	bool done = false;
	struct iovec iov = { buf, (size_t)sectors * SECTOR_BYTES };
	struct queue_request req = {
		.disk = {
			.op = op,
			.sector = sector,
			.sectors = sectors,
			.iov = &iov,
			.iov_n = 1,
			.done = sync_done,
			.owner = &done,
		},
		.class = op == DISK_READ ? QUEUE_READ : QUEUE_COMMIT,
		.origin = origin,
	};

	queue_submit(queue, &req);
	return queue_finish_sync(queue, &req, &done);
}

int queue_read_as(struct queue *queue, enum fault_origin origin,
		  uint64_t sector, uint32_t sectors, void *buf)
{
	return queue_transfer(queue, origin, DISK_READ, sector, sectors, buf);
}

int queue_read(struct queue *queue, uint64_t sector, uint32_t sectors,
	       void *buf)
{
	return queue_read_as(queue, FAULT_CALLER, sector, sectors, buf);
}

int queue_write(struct queue *queue, uint64_t sector, uint32_t sectors,
		const void *buf)
{
	return queue_write_as(queue, FAULT_CALLER, sector, sectors, buf);
}

int queue_write_as(struct queue *queue, enum fault_origin origin,
		   uint64_t sector, uint32_t sectors, const void *buf)
{
	return queue_transfer(queue, origin, DISK_WRITE, sector, sectors,
			      (void *)buf);
}

int queue_flush_wait(struct queue *queue)
{
	bool done = false;
	struct queue_request req = {
		.disk = { .done = sync_done, .owner = &done },
	};

	queue_flush(queue, &req);
	return queue_finish_sync(queue, &req, &done);
}

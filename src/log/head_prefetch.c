/*
 * head_prefetch.c - the head goes on to the next track while nobody commits.
 *
 * When the records have used up their track the next one would pay for the way
 * to another.  So right after a record the head goes there by itself, by a read
 * of what it comes over first: who commits later has only the slot to wait for,
 * who commits meanwhile waits for the same way as before.  Where commits follow
 * each other at once there is no time for that.  At most once for each track.
 */
#include <errno.h>

#include "log/log_internal.h"

/* Less of a turn is not worth it: a switch of heads. */
#define WORTH_PART 2u

static int head_prefetch_find(struct queue_place *place,
			      const struct head_state *head_state,
			      uint32_t sectors, uint64_t *sector,
			      uint64_t *cost_ns)
{
	struct log *log = container_of(place, struct log, head_prefetch.place);

	if (!head_state || !list_empty(&log->writing) ||
	    !log_place_next(log, head_state, (size_t)sectors * SECTOR_BYTES,
			     sector, cost_ns) ||
	    *cost_ns < head_state->mech->period_ps / 1000 / WORTH_PART)
		return -ENOSPC;
	return 0;
}

static void head_prefetch_take(struct queue_place *place,
			       struct queue_request *req, uint64_t sector)
{
	(void)place;
	(void)req;
	(void)sector;
}

static void head_prefetch_done(struct disk_request *req)
{
	struct log *log = req->owner;

	log->head_prefetch.busy = false;
	log_wake(log);
}

void log_prefetch_head(struct log *log)
{
	struct log_head_prefetch *a = &log->head_prefetch;

	if (a->busy || a->from == log->main || log->failed ||
	    !list_empty(&log->writing) || !list_empty(&log->drainers) ||
	    log_commit_waits(log) || !log_wants_track(log))
		return;
	a->from = log->main;
	a->busy = true;
	a->place = (struct queue_place){ .find = head_prefetch_find,
					 .take = head_prefetch_take };
	a->iov = (struct iovec){ a->buf, log->unit_bytes };
	a->req = (struct queue_request){
		.class = QUEUE_IDLE,
		.place = &a->place,
		.disk = {
			.op = DISK_READ,
			.sectors = (uint32_t)(log->unit_bytes / SECTOR_BYTES),
			.iov = &a->iov,
			.iov_n = 1,
			.done = head_prefetch_done,
			.owner = log,
		},
	};
	queue_submit(log->queue, &a->req);
}

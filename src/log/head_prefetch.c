/*
 * head_prefetch.c - the head goes on to the next track while nobody commits.
 *
 * When the records have used up their track, the next commit would pay for the
 * move to another.  So right after a record a read takes the head there, to the
 * sector that it passes first.  A later commit waits for its slot only; a
 * commit that comes meanwhile waits for the same move as before.  This is not
 * done while commits follow each other at once, and at most once for each
 * track.
 */
#include <errno.h>

#include "log/log_internal.h"

/* The move must cost half a turn or more; a switch of heads is not worth it. */
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

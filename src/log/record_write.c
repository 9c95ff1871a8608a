/*
 * record_write.c - the way of records to the disk: one access at a time.
 *
 * Records that somebody waits for go at once, with all that were closed before
 * them; others when LOG_AT_ONCE are closed, or somebody waits for buffers.
 *
 * The commit point is record_done: from there on the record survives whatever
 * happens.  On a disk with a volatile cache everything that the record refers
 * to is flushed before it, and it is written with FUA.  Its slot is chosen when
 * the queue gives it to the disk, and only then is it sealed, as it contains
 * its address.  When a write or a flush fails disk/fault.h says what is done:
 * the write is tried on other tracks, or again after a pause if the disk did
 * not answer; then the log has failed and all waiters get -EIO.  When a flush
 * fails the log has failed at once: what the flush may have lost is not written
 * again.
 */
#include <errno.h>
#include <string.h>

#include "base/msg.h"
#include "disk/fault.h"
#include "log/log_internal.h"

static void record_send(struct log *log);

static void record_fail(struct log *log, const char *what, int rc)
{
	msg_error("log: %s, before record %llu: %s; nothing more is written",
		  what, (unsigned long long)log->durable_seq + 1,
		  strerror(-rc));
	log->failed = true;
	log_wake(log);
}

/* Has all records but the first wait again: writing one at a time is safer. */
static void record_split(struct log *log)
{
	struct list *last;

	while ((last = log->writing.prev) != log->writing.next) {
		list_del(last);
		list_add_front(&log->closed, last);
	}
}

/* Gives up the places of a write that failed.  They stay taken until the tail
 * has passed, so that they are not tried again at once, unless they are needed
 * to keep what is promised, or the error was not that of the place. */
static void record_unplace(struct log *log, bool bad)
{
	uint64_t sector = log->req.disk.sector;
	const struct list *pos;

	if (!log->placed)
		return;
	log->placed = false;
	if (bad && log_tracks_hold(log, log_needed_bytes(log)))
		return;
	list_for_each(pos, &log->writing) {
		struct log_record *r = list_entry(pos, struct log_record, link);
		const size_t bytes = log_record_bytes(log, r->payload);

		log_track_unmark(log, sector, bytes);
		sector += bytes / SECTOR_BYTES;
	}
}

static void record_retry(struct log *log, int rc)
{
	const enum fault_class class = fault_class(DISK_WRITE, rc);
	uint64_t pause_ns;
	const enum fault_step step = fault_next(FAULT_LOG, class, ++log->tries,
						&pause_ns);

	record_unplace(log, step != FAULT_RETRY);
	record_split(log);
	log->elsewhere = step == FAULT_RELOCATE;
	if (step == FAULT_FAIL_FS) {
		record_fail(log, "a record cannot be written", rc);
		return;
	}
	log->stats.retries++;
	if (pause_ns)
		log->retry_ns = env_now_ns(log->env) + pause_ns;
	else
		record_send(log);
}

uint64_t log_retry(struct log *log, uint64_t now_ns)
{
	if (!log->retry_ns)
		return UINT64_MAX;
	if (now_ns < log->retry_ns)
		return log->retry_ns;
	log->retry_ns = 0;
	record_send(log);
	return UINT64_MAX;
}

static void record_done(struct disk_request *req)
{
	struct log *log = req->owner;
	struct log_record *r;

	if (req->result) {
		record_retry(log, req->result);
		return;
	}
	log->done_ns = req->complete_ns;
	while ((r = list_first(&log->writing, struct log_record, link))) {
		list_del(&r->link);
		log->durable_seq = r->seq;
		r->track = (unsigned)(log->main - log->track);
		log->stats.records++;
		log->stats.record_bytes += log_record_bytes(log, r->payload);
		list_add(&log->durable, &r->link);
	}
	log_mirror_stage(log);
	log_dispatch(log);
	log_wake(log);
}

static void record_seal(const struct log *log, const struct log_record *r,
			uint64_t sector)
{
	struct log_header h = {
		.magic = le32_put(TRAX_LOG_MAGIC),
		.bytes = le32_put((uint32_t)log_record_bytes(log, r->payload)),
		.payload = le32_put((uint32_t)r->payload),
		.flags = le32_put(LOG_PARITY),
		.epoch = le64_put(log->epoch),
		.gen = le64_put(r->gen),
		.seq = le64_put(r->seq),
		.addr = le64_put(addr_make(0, sector)),
		.acked = le64_put(log->durable_seq),
		.prev = le64_put(r->prev),
		.chain = le64_put(r->chain),
	};
	const size_t used = sizeof(h) + r->payload;
	const size_t end = log_mirror_bytes(log, r->payload);

	memcpy(h.uuid, log->uuid, sizeof(h.uuid));
	log_header_seal(&h);
	memcpy(r->buf, &h, sizeof(h));
	memset(r->buf + used, 0, end - used);
	log_parity(r->buf, end, log->unit_bytes, r->buf + end);
}

static int place_find(struct queue_place *place,
		      const struct head_state *head_state, uint32_t sectors,
		      uint64_t *sector, uint64_t *cost_ns)
{
	struct log *log = container_of(place, struct log, place);

	return log_place_find(log, head_state, (size_t)sectors * SECTOR_BYTES,
			      log->elsewhere, sector, cost_ns) ? 0 : -ENOSPC;
}

static void place_take(struct queue_place *place, struct queue_request *req,
		       uint64_t sector)
{
	struct log *log = container_of(place, struct log, place);
	const struct list *pos;

	(void)req;
	log->placed = true;
	list_for_each(pos, &log->writing) {
		struct log_record *r = list_entry(pos, struct log_record, link);
		const size_t bytes = log_record_bytes(log, r->payload);

		log_place_take(log, sector, bytes, r->seq);
		record_seal(log, r, sector);
		sector += bytes / SECTOR_BYTES;
	}
}

/* There was room when the record was dispatched, and nobody else takes it:
 * it can be missing only after a failed write. */
static void record_write(struct log *log)
{
	const struct list *pos;
	size_t bytes = 0;
	unsigned n = 0;

	list_for_each(pos, &log->writing) {
		struct log_record *r = list_entry(pos, struct log_record, link);

		log->iov[n].iov_base = r->buf;
		log->iov[n].iov_len = log_record_bytes(log, r->payload);
		bytes += log->iov[n++].iov_len;
	}
	log->placed = false;
	log->place = (struct queue_place){ .find = place_find,
					   .take = place_take };
	log->req = (struct queue_request){
		.class = QUEUE_COMMIT,
		.place = &log->place,
		.disk = {
			.op = DISK_WRITE,
			.fua = queue_limits(log->queue)->volatile_cache,
			.sectors = (uint32_t)(bytes / SECTOR_BYTES),
			.iov = log->iov,
			.iov_n = n,
			.done = record_done,
			.owner = log,
		},
	};
	queue_submit(log->queue, &log->req);
}

static void flush_done(struct disk_request *req)
{
	struct log *log = req->owner;

	if (req->result)
		record_fail(log, "the drive's cache cannot be flushed",
			    req->result);
	else
		record_write(log);
}

static void record_send(struct log *log)
{
	if (queue_unflushed(log->queue)) {
		log->req = (struct queue_request){
			.class = QUEUE_COMMIT,
			.disk = { .done = flush_done, .owner = log },
		};
		queue_flush(log->queue, &log->req);
	} else {
		record_write(log);
	}
}

/* Must the closed records be written?  Once begun, this goes on until none is
 * left. */
static bool must_go(struct log *log, const struct log_record *first)
{
	if (list_count(&log->closed) >= LOG_AT_ONCE ||
	    list_count(&log->spare) + list_count(&log->durable) <
		    LOG_RECORDS / 2)
		log->pressed = true;
	return log->pressed || log->wanted_seq >= first->seq;
}

/* Takes the oldest closed records as far as they go out together. */
static void take_closed(struct log *log)
{
	const uint64_t most = (uint64_t)queue_limits(log->queue)->max_sectors *
			      SECTOR_BYTES;
	const size_t room = log_place_room(log);
	struct log_record *r;
	size_t sum = 0;

	for (unsigned n = 0; n < LOG_AT_ONCE; n++) {
		r = list_first(&log->closed, struct log_record, link);
		if (!r)
			break;
		sum += log_record_bytes(log, r->payload);
		if (n && (sum > room || sum > most))
			break;
		list_del(&r->link);
		list_add(&log->writing, &r->link);
	}
	if (list_empty(&log->closed))
		log->pressed = false;
}

/*
 * Sends the oldest closed records and, if somebody waits for it, the open one.
 */
void log_dispatch(struct log *log)
{
	struct log_record *r;

	if (!list_empty(&log->writing) || log->failed)
		return;
	if (list_count(&log->closed) < LOG_AT_ONCE && log->open &&
	    log->wanted_seq >= log->open->seq)
		log_close_record(log);
	r = list_first(&log->closed, struct log_record, link);
	if (!r || !must_go(log, r))
		return;
	if (!log_tracks_hold(log, log_record_bytes(log, r->payload))) {
		log->stats.stalls++;
		return;
	}
	take_closed(log);
	log->placed = false;
	log->elsewhere = false;
	log->tries = 0;
	log->sent_ns = env_now_ns(log->env);
	log->gap_ns = (3 * log->gap_ns + log->sent_ns - log->done_ns) / 4;
	record_send(log);
}

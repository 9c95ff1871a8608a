/*
 * write.c - the way of a record to the disk: one at a time.
 *
 * The commit point is record_done: from there on the record survives whatever
 * happens.  On a disk with a volatile cache what the record speaks of is
 * flushed before it, and it goes out with FUA.  Its slot is chosen when the
 * queue hands it to the disk, and only then is it sealed: it holds its address.
 * A write that fails is tried on another track, LOG_TRIES times in all; then
 * the log has failed and everybody is told.
 */
#include <errno.h>
#include <string.h>

#include "base/msg.h"
#include "log/internal.h"

/* So much goes to the twins' track when the records change theirs. */
#define TWIN_WORTH_BYTES (256u << 10)

static void record_send(struct log *log);

static void record_fail(struct log *log, int rc)
{
	msg_error("log: record %llu cannot be written: %s; nothing more is",
		  (unsigned long long)log->writing->seq, strerror(-rc));
	log->failed = true;
	log_wake(log);
}

static void record_retry(struct log *log, int rc)
{
	log->stats.retries++;
	if (++log->tries >= LOG_TRIES)
		record_fail(log, rc);
	else
		record_send(log);
}

static void record_done(struct disk_request *req)
{
	struct log *log = req->owner;
	struct log_record *r = log->writing;

	if (req->result) {
		record_retry(log, req->result);
		return;
	}
	log->writing = NULL;
	log->done_ns = req->complete_ns;
	log->durable_seq = r->seq;
	r->track = (unsigned)(log->main - log->track);
	log->stats.records++;
	log->stats.record_bytes += (uint64_t)req->sectors * SECTOR_BYTES;
	list_add(&log->durable, &r->link);
	log_twin_stage(log);
	log_dispatch(log);
	if (log->moved && log_twin_staged_bytes(log) >= TWIN_WORTH_BYTES)
		log_twin_send_here(log);
	log->moved = false;
	log_wake(log);
}

static void record_seal(const struct log *log, const struct log_record *r,
			uint64_t sector)
{
	struct log_header h = {
		.magic = le32_put(TRAX_LOG_MAGIC),
		.bytes = le32_put((uint32_t)log_record_bytes(log, r->payload)),
		.payload = le32_put((uint32_t)r->payload),
		.epoch = le64_put(log->epoch),
		.gen = le64_put(r->gen),
		.seq = le64_put(r->seq),
		.addr = le64_put(addr_make(0, sector)),
		.acked = le64_put(log->durable_seq),
		.prev = le64_put(r->prev),
		.chain = le64_put(r->chain),
	};
	const size_t used = sizeof(h) + r->payload;

	memcpy(h.uuid, log->uuid, sizeof(h.uuid));
	log_header_seal(&h);
	memcpy(r->buf, &h, sizeof(h));
	memset(r->buf + used, 0, log_record_bytes(log, r->payload) - used);
}

static int place_find(struct queue_place *place, const struct belief *belief,
		      uint32_t sectors, uint64_t *sector, uint64_t *cost_ns)
{
	struct log *log = container_of(place, struct log, place);

	return log_place_find(log, belief, (size_t)sectors * SECTOR_BYTES,
			      log->tries, sector, cost_ns) ? 0 : -ENOSPC;
}

static void place_take(struct queue_place *place, struct queue_request *req,
		       uint64_t sector)
{
	struct log *log = container_of(place, struct log, place);
	const struct log_track *before = log->main;

	log_place_take(log, sector, (size_t)req->disk.sectors * SECTOR_BYTES,
		       log->writing->seq);
	log->placed = true;
	log->moved |= before && log->main != before;
	record_seal(log, log->writing, sector);
}

/* There was room when the record was dispatched, and nobody else takes it:
 * it can be missing only after a failed write. */
static void record_write(struct log *log)
{
	const size_t bytes = log_record_bytes(log, log->writing->payload);

	log->placed = false;
	log->place = (struct queue_place){ place_find, place_take };
	log->iov = (struct iovec){ log->writing->buf, bytes };
	log->req = (struct queue_request){
		.class = QUEUE_COMMIT,
		.place = &log->place,
		.disk = {
			.op = DISK_WRITE,
			.fua = queue_limits(log->queue)->volatile_cache,
			.sectors = (uint32_t)(bytes / SECTOR_BYTES),
			.iov = &log->iov,
			.iov_n = 1,
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
		record_retry(log, req->result);
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

/*
 * Sends the oldest closed record; if there is none, closes the open one if
 * somebody waits for it.
 */
void log_dispatch(struct log *log)
{
	struct log_record *r;

	if (log->writing || log->failed)
		return;
	if (list_empty(&log->closed) && log->open &&
	    log->wanted_seq >= log->open->seq)
		log_close_record(log);
	r = list_first(&log->closed, struct log_record, link);
	if (!r)
		return;
	if (!log_tracks_hold(log, log_record_bytes(log, r->payload))) {
		log->stats.stalls++;
		return;
	}
	list_del(&r->link);
	log->writing = r;
	log->placed = false;
	log->tries = 0;
	log->sent_ns = env_now_ns(log->env);
	log->gap_ns = (3 * log->gap_ns + log->sent_ns - log->done_ns) / 4;
	record_send(log);
}

/*
 * mirror.c - the way of a record's mirror: off the path of commits.
 *
 * A record needs no mirror until something is acknowledged by it.  Unpacking a
 * tree fills records that nobody waits for: they are kept while a stage has
 * room, then forgotten.  When they are acknowledged after all, the log asks for
 * a checkpoint, which makes their mirrors needless.
 *
 * Durable records are copied back to back into a stage, so that their buffers
 * are free again.  The stage goes out by itself (in two writes, where a track
 * ends) when there was no commit for 50 ms, when it is full, and at the end.
 * Until then the newest record has one copy, which its parity protects against
 * a single bad place; the loss of an older record is noticed by the records
 * behind it.
 *
 * A mirror is not a promise: it is left out when the log is nearly full or its
 * writes fail.  Then, too, the log asks for a checkpoint.
 */
#include <errno.h>
#include <string.h>

#include "base/msg.h"
#include "base/units.h"
#include "disk/fault.h"
#include "log/log_internal.h"

/* Mirrors are left out while this percentage of all tracks is in use. */
#define FULL_PERCENT 90u
/* A write of mirrors that has waited this long (half a second) competes with
 * reads. */
#define DEADLINE_NS (500 * NS_PER_MS)

static uint64_t stage_first_seq(const struct log_stage *s)
{
	const struct log_header *h = (const void *)(s->buf + s->done);

	return le64_get(h->seq);
}

/* Does the stage hold a record that has been acknowledged? */
static bool stage_is_due(const struct log *log, const struct log_stage *s)
{
	return s->bytes > s->done && (stage_first_seq(s) <= log->acked_seq ||
				      !list_empty(&log->drainers));
}

static void stage_empty(struct log_stage *s)
{
	s->bytes = s->done = s->upto = 0;
	s->full = false;
	s->tries = 0;
}

void log_mirror_miss(struct log *log, uint64_t seq)
{
	log->stats.mirrors_skipped++;
	if (seq < log->tail_seq)
		return;
	if (!log->missing_last || seq < log->missing_first)
		log->missing_first = seq;
	if (seq > log->missing_last)
		log->missing_last = seq;
}

/* Gives up the mirrors in a stage: their records are not acknowledged and
 * others need the room, or they cannot be written. */
static void stage_forget(struct log *log, struct log_stage *s)
{
	for (size_t at = s->done; at < s->bytes; ) {
		const struct log_header *h = (const void *)(s->buf + at);

		at += le32_get(h->bytes);
		log_mirror_miss(log, le64_get(h->seq));
	}
	stage_empty(s);
}

void log_mirror_trim(struct log *log)
{
	for (unsigned i = 0; i < LOG_STAGES; i++) {
		struct log_stage *s = &log->stage[i];

		if (s == log->sending)
			continue;
		while (s->done < s->bytes &&
		       stage_first_seq(s) < log->tail_seq) {
			const struct log_header *h =
				(const void *)(s->buf + s->done);

			s->done += le32_get(h->bytes);
		}
		if (s->done == s->bytes)
			stage_empty(s);
	}
}

/* The stage that takes a record of this size: the one that is being filled, or
 * the other if that is empty or may be forgotten. NULL: none does. */
static struct log_stage *stage_for(struct log *log, size_t bytes)
{
	struct log_stage *s = log->filling;
	const size_t most = stage_is_due(log, s) ? LOG_STAGE_BYTES :
						   log->untold_bytes;

	if (!s->full && s->bytes + bytes <= most)
		return s;
	s->full = true;
	s = s == &log->stage[0] ? &log->stage[1] : &log->stage[0];
	if (s->bytes && (s == log->sending || stage_is_due(log, s)))
		return NULL;
	if (s->bytes)
		stage_forget(log, s);
	log->filling = s;
	return s;
}

bool log_mirror_waiting(const struct log *log)
{
	for (unsigned i = 0; i < LOG_STAGES; i++)
		if (log->stage[i].bytes)
			return true;
	return !list_empty(&log->durable);
}

uint64_t log_mirror_staged_bytes(const struct log *log)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < LOG_STAGES; i++)
		if (stage_is_due(log, &log->stage[i]))
			bytes += log->stage[i].bytes - log->stage[i].done;
	return bytes;
}

bool log_mirror_due(const struct log *log)
{
	return stage_is_due(log, &log->stage[0]) ||
	       stage_is_due(log, &log->stage[1]);
}

/* Copies durable records to a stage for as long as one takes them. */
static void stage_fill(struct log *log)
{
	struct log_record *r;

	while ((r = list_first(&log->durable, struct log_record, link))) {
		const size_t bytes = log_mirror_bytes(log, r->payload);
		struct log_stage *s = stage_for(log, bytes);
		struct log_header *h;

		if (!s)
			break;
		memcpy(s->buf + s->bytes, r->buf, bytes);
		h = (void *)(s->buf + s->bytes);
		h->bytes = le32_put((uint32_t)bytes);
		h->original = h->addr;
		s->original[s->bytes / SECTOR_BYTES] = (uint8_t)r->track;
		s->bytes += bytes;
		list_del(&r->link);
		/* The next one to be used: its memory has been touched. */
		list_add_front(&log->spare, &r->link);
	}
}

/* This loops because a full stage that could not be sent is forgotten, and
 * nothing else would fill it again. */
void log_mirror_stage(struct log *log)
{
	do {
		stage_fill(log);
		if (log->stage[0].full || log->stage[1].full)
			log_mirror_send(log);
	} while (!list_empty(&log->durable) && !log->sending && !log->failed);
}

/* Sets s->upto behind the records that fit into `room` and one access and whose
 * originals are not on the mirrors' track, but behind one record at least. */
static void stage_cut(const struct log *log, struct log_stage *s, size_t room)
{
	const size_t most = (size_t)queue_limits(log->queue)->max_sectors *
			    SECTOR_BYTES;

	if (room > most)
		room = most;
	s->upto = s->done;
	while (s->upto < s->bytes) {
		const struct log_header *h = (const void *)(s->buf + s->upto);
		const size_t bytes = le32_get(h->bytes);
		const unsigned at = s->original[s->upto / SECTOR_BYTES];

		if (s->upto > s->done && (s->upto + bytes - s->done > room ||
					  s->track == &log->track[at]))
			return;
		s->upto += bytes;
	}
}

static void stage_seal(struct log *log, struct log_stage *s, uint64_t sector)
{
	for (size_t at = s->done; at < s->upto; ) {
		struct log_header *h = (void *)(s->buf + at);
		const uint32_t bytes = le32_get(h->bytes);

		h->addr = le64_put(addr_make(0, sector));
		h->flags = le32_put(LOG_MIRROR);
		h->acked = le64_put(log->durable_seq);
		log_header_seal(h);
		log_track_mark(log, log_track_of(log, sector), sector, bytes,
			       le64_get(h->seq));
		sector += bytes / SECTOR_BYTES;
		at += bytes;
	}
}

static void stage_write(struct log *log, struct log_stage *s);

static void stage_failed(struct log *log, struct log_stage *s, int rc)
{
	if (rc != -ENOSPC &&
	    fault_next(FAULT_MIRROR, fault_class(DISK_WRITE, rc), ++s->tries,
		       NULL) == FAULT_RELOCATE) {
		log->stats.retries++;
		return;
	}
	if (rc != -ENOSPC)
		msg_warn("log: mirrors of records cannot be written: %s",
			 strerror(-rc));
	stage_forget(log, s);
}

static void stage_done(struct disk_request *req)
{
	struct log *log = req->owner;
	struct log_stage *s = log->sending;

	log->sending = NULL;
	if (!req->result) {
		s->done = s->upto;
		s->tries = 0;
		log->stats.mirror_writes++;
	} else {
		stage_failed(log, s, req->result);
	}
	if (s->done == s->bytes)
		stage_empty(s);
	log_dispatch(log);
	if (s->bytes && !log->sending)
		stage_write(log, s);
	log_mirror_stage(log);
	log_wake(log);
}

static bool log_is_nearly_full(const struct log *log, size_t bytes)
{
	return log_fill_percent(log) + 100 * bytes / log->total_bytes >
	       FULL_PERCENT;
}

static int stage_find(struct queue_place *place,
		      const struct head_state *head_state, uint32_t sectors,
		      uint64_t *sector, uint64_t *cost_ns)
{
	struct log_stage *s = container_of(place, struct log_stage, place);

	return log_mirror_find(s->log, s->track, head_state,
			     (size_t)sectors * SECTOR_BYTES, sector, cost_ns) ?
		0 : -ENOSPC;
}

static void stage_take(struct queue_place *place, struct queue_request *req,
		       uint64_t sector)
{
	struct log_stage *s = container_of(place, struct log_stage, place);

	(void)req;
	stage_seal(s->log, s, sector);
}

static void stage_submit(struct log *log, struct log_stage *s)
{
	s->log = log;
	s->place = (struct queue_place){ .find = stage_find,
					   .take = stage_take };
	s->iov = (struct iovec){ s->buf + s->done, s->upto - s->done };
	s->req = (struct queue_request){
		.class = QUEUE_WRITE_BACK,
		.deadline_ns = env_now_ns(log->env) + DEADLINE_NS,
		.place = &s->place,
		.disk = {
			.op = DISK_WRITE,
			.sectors = (uint32_t)(s->iov.iov_len / SECTOR_BYTES),
			.iov = &s->iov,
			.iov_n = 1,
			.done = stage_done,
			.owner = log,
		},
	};
	log->sending = s;
	queue_submit(log->queue, &s->req);
}

/* Writes as much of the stage as fits on the track. */
static void stage_write(struct log *log, struct log_stage *s)
{
	const struct log_header *h = (const void *)(s->buf + s->done);
	const unsigned original = s->original[s->done / SECTOR_BYTES];
	size_t room = 0;

	s->track = NULL;
	if (!log_is_nearly_full(log, s->bytes - s->done))
		s->track = log_mirror_track(log, le32_get(h->bytes),
					  s->bytes - s->done, original,
					  s->tries, &room);
	if (!s->track) {
		stage_forget(log, s);
		return;
	}
	stage_cut(log, s, room);
	stage_submit(log, s);
}

/* The full stage goes first: it holds the older records. */
static struct log_stage *stage_oldest(const struct log *log)
{
	for (unsigned i = 0; i < LOG_STAGES; i++)
		if (log->stage[i].full && stage_is_due(log, &log->stage[i]))
			return (struct log_stage *)&log->stage[i];
	return stage_is_due(log, log->filling) ? log->filling : NULL;
}

void log_mirror_send(struct log *log)
{
	struct log_stage *s;

	if (log->failed)
		return;
	while (!log->sending && (s = stage_oldest(log))) {
		s->full = true;
		stage_write(log, s);
	}
}

uint64_t log_mirror_due_ns(const struct log *log)
{
	return stage_oldest(log) ? log->sent_ns + log->mirror_delay_ns :
				   UINT64_MAX;
}

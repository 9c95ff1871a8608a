/*
 * log.c - adding, committing, waiting, pinning, trimming.
 *
 * Room is promised in bytes of entries and paid in slots.  Three things
 * together stay below room_percent() of all tracks: used slots, records on
 * their way, and promises (each counted as a record of its own).  They must
 * find slots however the entries are cut into records, because a checkpoint
 * waits for the records before it, so these must not wait for a checkpoint.
 * Mirrors get what is left.  Buffers are promised too, so log_add always finds
 * one.
 *
 * Waiters are called in the order in which they registered, never from inside
 * the call that registers them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "log/log_internal.h"

/* Percent of all tracks up to which room is promised to any transaction, and up
 * to which it is promised to those that make room: deletes, and new places for
 * logged data.  The last 5 percent are for mirrors, which a log so full leaves
 * out, and for what the division into records wastes.  Neither needs anything
 * when only one record is to come: a transaction that is alone gets all but a
 * rest for rounding. */
#define RESERVE_PERCENT 80u
#define URGENT_PERCENT 95u
#define ALONE_PERCENT 99u
/* Time without a commit after which mirrors are written although their stage is
 * not full. */
#define MIRROR_DELAY_NS (50 * NS_PER_MS)
/* Time without a commit after which missing mirrors make the log ask for a
 * checkpoint, which makes them needless. */
#define MISSING_DELAY_NS NS_PER_SECOND

/* ---- Open and close ------------------------------------------------------ */

static int buffers_alloc(struct log *log)
{
	for (unsigned i = 0; i < LOG_RECORDS; i++) {
		log->record[i].buf = aligned_alloc(TRAX_BLOCK_BYTES,
						   TRAX_MAX_RECORD_BYTES);
		if (!log->record[i].buf)
			return -ENOMEM;
		list_add(&log->spare, &log->record[i].link);
	}
	for (unsigned i = 0; i < LOG_STAGES; i++) {
		log->stage[i].buf = aligned_alloc(TRAX_BLOCK_BYTES,
						  LOG_STAGE_BYTES);
		if (!log->stage[i].buf)
			return -ENOMEM;
	}
	/* A record from the tail on takes at least one unit of a track, or is
	 * in a buffer, so pins of more records are never counted. */
	log->pinned_n = log->total_bytes / log->unit_bytes * LOG_GROWS +
		      LOG_RECORDS + 1;
	log->pinned = calloc(log->pinned_n, sizeof(*log->pinned));
	return log->pinned ? 0 : -ENOMEM;
}

static size_t untold_bytes(const struct log_options *options)
{
	const size_t all = options ? options->untold_bytes : 0;
	const size_t bytes = all / LOG_STAGES;

	if (!all || bytes > LOG_STAGE_BYTES)
		return LOG_STAGE_BYTES;
	return bytes < LOG_LEAST_UNTOLD_BYTES ? LOG_LEAST_UNTOLD_BYTES : bytes;
}

int log_open(struct env *env, struct queue *queue, const struct super *super,
	     const struct log_options *options, struct log **out)
{
	struct log *log = calloc(1, sizeof(*log));
	int rc;

	if (!log)
		return -ENOMEM;
	log->env = env;
	log->queue = queue;
	memcpy(log->uuid, super->uuid, sizeof(log->uuid));
	log->unit_bytes = super_record_unit(super);
	log->mirror_delay_ns = options && options->mirror_delay_ns ?
		options->mirror_delay_ns : MIRROR_DELAY_NS;
	log->untold_bytes = untold_bytes(options);
	log->filling = &log->stage[0];
	list_init(&log->spare);
	list_init(&log->closed);
	list_init(&log->writing);
	list_init(&log->durable);
	list_init(&log->waiters);
	list_init(&log->ready);
	list_init(&log->drainers);
	rc = log_tracks_init(log, super);
	if (!rc && !(options && options->read_only))
		rc = buffers_alloc(log);
	if (rc) {
		log_close(log);
		return rc;
	}
	*out = log;
	return 0;
}

void log_close(struct log *log)
{
	if (!log)
		return;
	for (unsigned i = 0; i < LOG_RECORDS; i++)
		free(log->record[i].buf);
	for (unsigned i = 0; i < LOG_STAGES; i++)
		free(log->stage[i].buf);
	if (log->scan)
		log->scan_end(log);
	free(log->pinned);
	log_tracks_fini(log);
	free(log);
}

void log_keep(struct log *log, uint64_t keep_from)
{
	log->tail_seq = keep_from;
}

int log_start(struct log *log, uint64_t epoch, uint64_t gen, uint64_t last,
	      uint64_t chain, uint64_t keep_from)
{
	if (!log->pinned)
		return -EROFS;
	log->epoch = epoch;
	log->gen = gen;
	log->last_seq = log->durable_seq = last;
	log->last_chain = chain;
	log->tail_seq = keep_from <= last ? keep_from : last + 1;
	log_tracks_refresh(log);
	if (log->scan)
		log->scan_heal(log);
	log->started = true;
	return 0;
}

/* ---- Room ---------------------------------------------------------------- */

static size_t payload_most(const struct log *log)
{
	return TRAX_MAX_RECORD_BYTES - sizeof(struct log_header) -
	       log->unit_bytes;
}

size_t log_record_bytes(const struct log *log, size_t payload)
{
	return log_mirror_bytes(log, payload) + log->unit_bytes;
}

size_t log_mirror_bytes(const struct log *log, size_t payload)
{
	const size_t bytes = sizeof(struct log_header) + payload;

	return (bytes + log->unit_bytes - 1) / log->unit_bytes *
	       log->unit_bytes;
}

static uint64_t list_bytes(const struct log *log, const struct list *list)
{
	const struct list *pos;
	uint64_t bytes = 0;

	list_for_each(pos, list)
		bytes += log_record_bytes(
			log, list_entry(pos, struct log_record, link)->payload);
	return bytes;
}

/* Bytes that closed and open records will take when they are written. */
static uint64_t coming_bytes(const struct log *log)
{
	uint64_t bytes = list_bytes(log, &log->closed);

	if (log->open)
		bytes += log_record_bytes(log, log->open->payload);
	if (!log->placed)
		bytes += list_bytes(log, &log->writing);
	return bytes;
}

uint64_t log_needed_bytes(const struct log *log)
{
	return coming_bytes(log) + log->reserved_cost;
}

/* A log that could not take the longest record although nothing is on its way
 * counts as full: only a checkpoint helps. */
unsigned log_fill_percent(const struct log *log)
{
	const uint64_t bytes = log_tracks_used_bytes(log) +
			       log_needed_bytes(log);
	const unsigned percent = (unsigned)(bytes * 100 / log->total_bytes);

	return percent < RESERVE_PERCENT &&
	       !log_tracks_hold(log, TRAX_MAX_RECORD_BYTES) ?
		RESERVE_PERCENT : percent;
}

/* Two closed records that follow each other hold more than one buffer together,
 * or they would be one. So this many buffers suffice for `bytes` more. */
static bool buffers_suffice(const struct log *log, uint64_t bytes)
{
	return list_count(&log->spare) + list_count(&log->durable) >=
	       2 * bytes / payload_most(log) + 2;
}

bool log_is_alone(const struct log *log)
{
	return !log_needed_bytes(log);
}

static unsigned room_percent(const struct log *log, bool urgent)
{
	if (!urgent)
		return RESERVE_PERCENT;
	return log_is_alone(log) ? ALONE_PERCENT : URGENT_PERCENT;
}

bool log_reserve(struct log *log, size_t bytes, bool urgent)
{
	const uint64_t limit = log->total_bytes / 100 *
			       room_percent(log, urgent);
	const size_t cost = log_record_bytes(log, bytes);
	const uint64_t need = log_needed_bytes(log) + cost;

	if (log_tracks_used_bytes(log) + need > limit ||
	    !log_tracks_hold(log, need) ||
	    !buffers_suffice(log, log->reserved_bytes + bytes)) {
		/* Transactions that have reserved room give it back some time;
		 * then this one is tried again. */
		log->pressed |= !log->reserved_bytes;
		log_dispatch(log);
		return false;
	}
	log->reserved_bytes += bytes;
	log->reserved_cost += cost;
	return true;
}

void log_release(struct log *log, size_t bytes)
{
	const size_t cost = log_record_bytes(log, bytes);

	assert(log->reserved_bytes >= bytes && log->reserved_cost >= cost);
	log->reserved_bytes -= bytes;
	log->reserved_cost -= cost;
}

/* ---- Adding -------------------------------------------------------------- */

static struct log_record *record_open(struct log *log)
{
	struct log_record *r = list_first(&log->spare, struct log_record,
					  link);

	if (!r) {
		r = list_first(&log->durable, struct log_record, link);
		assert(r);
		log_mirror_miss(log, r->seq);
	}
	list_del(&r->link);
	r->payload = 0;
	r->seq = log->last_seq + 1;
	r->since_ns = env_now_ns(log->env);
	log->open = r;
	return r;
}

void log_close_record(struct log *log)
{
	struct log_record *r = log->open;

	log->open = NULL;
	r->gen = log->gen;
	r->prev = log->last_chain;
	r->chain = log_chain(log->epoch, r->seq, r->prev,
			     r->buf + sizeof(struct log_header), r->payload);
	log->last_seq = r->seq;
	log->last_chain = r->chain;
	list_add(&log->closed, &r->link);
}

static size_t iov_bytes(const struct iovec *iov, unsigned n)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

uint64_t log_add(struct log *log, const struct iovec *iov, unsigned iov_n)
{
	const size_t bytes = iov_bytes(iov, iov_n);
	struct log_record *r = log->open;
	uint8_t *at;

	assert(log->started && bytes && bytes <= payload_most(log));
	if (log->failed)
		return log->last_seq + 1;
	if (r && r->payload + bytes > payload_most(log)) {
		log_close_record(log);
		log_dispatch(log);
		r = NULL;
	}
	if (!r)
		r = record_open(log);
	at = r->buf + sizeof(struct log_header) + r->payload;
	for (unsigned i = 0; i < iov_n; i++) {
		memcpy(at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	r->payload += bytes;
	return r->seq;
}

/* ---- Waiting ------------------------------------------------------------- */

static uint64_t newest_seq(const struct log *log)
{
	return log->open ? log->open->seq : log->last_seq;
}

void log_depend_on(struct log *log, uint64_t seq)
{
	if (seq > log->acked_seq)
		log->acked_seq = seq;
}

void log_commit(struct log *log, struct waiter *w)
{
	if (w->seq > newest_seq(log))
		w->seq = newest_seq(log);
	log_depend_on(log, w->seq);
	if (log->failed || w->seq <= log->durable_seq) {
		list_add(&log->ready, &w->link);
		return;
	}
	list_add(&log->waiters, &w->link);
	if (w->seq > log->wanted_seq)
		log->wanted_seq = w->seq;
	log_dispatch(log);
}

static bool is_drained(const struct log *log)
{
	return log->failed ?
		!log->sending :
		!log->open && list_empty(&log->writing) &&
		list_empty(&log->closed) &&
		!log_mirror_waiting(log);
}

/* Waits until all records are durable, and then until all mirrors are. */
static void drain_go_on(struct log *log)
{
	if (log->open) {
		log->wanted_seq = log->open->seq;
		log_dispatch(log);
	} else if (!list_empty(&log->closed)) {
		log->pressed = true;
		log_dispatch(log);
	} else if (list_empty(&log->writing)) {
		log_mirror_send(log);
	}
}

void log_drain(struct log *log, struct waiter *w)
{
	w->seq = newest_seq(log);
	list_add(&log->drainers, &w->link);
	drain_go_on(log);
}

static void list_move_all(struct list *to, struct list *from)
{
	while (!list_empty(from)) {
		struct list *l = from->next;

		list_del(l);
		list_add(to, l);
	}
}

/* Moves the waiters that need not wait any longer to `woken`. */
static void waiters_collect(struct log *log, struct list *woken)
{
	struct list *pos, *tmp;

	list_for_each_safe(pos, tmp, &log->waiters) {
		struct waiter *w = list_entry(pos, struct waiter, link);

		if (!log->failed && w->seq > log->durable_seq)
			continue;
		list_del(pos);
		list_add(woken, pos);
	}
	if (is_drained(log))
		list_move_all(woken, &log->drainers);
}

static void waiters_wake(struct log *log, struct list *woken)
{
	while (!list_empty(woken)) {
		struct waiter *w = list_first(woken, struct waiter, link);

		list_del(&w->link);
		log->stats.commits++;
		w->done(w, w->seq <= log->durable_seq ? 0 : -EIO);
	}
}

/* Ends the waits for records, room and buffers that are over; called after a
 * completion. */
void log_wake(struct log *log)
{
	struct list woken;

	if (!list_empty(&log->drainers))
		drain_go_on(log);
	list_init(&woken);
	waiters_collect(log, &woken);
	waiters_wake(log, &woken);
}

bool log_due(const struct log *log)
{
	return !list_empty(&log->ready);
}

uint64_t log_run(struct log *log, uint64_t now_ns)
{
	const uint64_t due = log_mirror_due_ns(log);
	struct list woken;

	list_init(&woken);
	list_move_all(&woken, &log->ready);
	if (!list_empty(&log->drainers))
		drain_go_on(log);
	if (is_drained(log))
		list_move_all(&woken, &log->drainers);
	waiters_wake(log, &woken);
	if (log_due(log))
		return now_ns;
	if (!list_empty(&log->writing) && !log->failed)
		return log_retry(log, now_ns);
	if (!log->started || log->failed || !list_empty(&log->writing) ||
	    log->sending || !log_mirror_due(log))
		return UINT64_MAX;
	if (now_ns < due)
		return due;
	log_mirror_send(log);
	return UINT64_MAX;
}

uint64_t log_checkpoint_ns(const struct log *log)
{
	const uint64_t acked = log->acked_seq < log->durable_seq ?
		log->acked_seq : log->durable_seq;

	if (!log->missing_last || log->missing_first > acked)
		return UINT64_MAX;
	return log->sent_ns + MISSING_DELAY_NS;
}

uint64_t log_durable_seq(const struct log *log)
{
	return log->durable_seq;
}

bool log_has_pending(const struct log *log)
{
	return newest_seq(log) > log->durable_seq;
}

uint64_t log_pending_since_ns(const struct log *log)
{
	const struct log_record *r = list_first(&log->writing,
						struct log_record, link);

	if (!r)
		r = list_first(&log->closed, struct log_record, link);
	if (!r)
		r = log->open;
	return r ? r->since_ns : UINT64_MAX;
}

/* ---- Holding and trimming ------------------------------------------------ */

static uint32_t *pinned_count(const struct log *log, uint64_t seq)
{
	return &log->pinned[seq % log->pinned_n];
}

void log_pin(struct log *log, uint64_t seq)
{
	if (log->failed)
		return;
	assert(seq >= log->tail_seq && seq - log->tail_seq < log->pinned_n);
	++*pinned_count(log, seq);
	if (!log->pins++ || seq < log->pinned_from)
		log->pinned_from = seq;
}

void log_unpin(struct log *log, uint64_t seq)
{
	if (log->failed)
		return;
	assert(log->pins && *pinned_count(log, seq));
	--*pinned_count(log, seq);
	--log->pins;
	log->unpinned++;
	while (log->pins && !*pinned_count(log, log->pinned_from))
		log->pinned_from++;
}

uint64_t log_freed(const struct log *log)
{
	return log->unpinned + log->tail_seq;
}

uint64_t log_oldest_pinned(const struct log *log)
{
	return log->pins ? log->pinned_from : UINT64_MAX;
}

static uint64_t tail_at(const struct log *log, uint64_t cut_seq)
{
	const uint64_t pinned = log_oldest_pinned(log);

	return pinned <= cut_seq ? pinned : cut_seq + 1;
}

void log_cut(struct log *log, uint64_t gen, uint64_t *seq, uint64_t *chain)
{
	if (log->open)
		log_close_record(log);
	log_dispatch(log);
	log->gen = gen;
	*seq = log->last_seq;
	*chain = log->last_chain;
	if (log_oldest_pinned(log) <= *seq)
		log_depend_on(log, *seq);
	assert(log->cuts < LOG_CUTS);
	log->cut[log->cuts].cut_seq = *seq;
	log->cut[log->cuts++].tail_seq = tail_at(log, *seq);
}

/* The tail that belongs to the root of this cut. The first root after a mount
 * was not cut by this log: it has the present tail. Roots become durable in
 * order. */
static uint64_t cut_forget(struct log *log, uint64_t cut_seq)
{
	uint64_t tail = tail_at(log, cut_seq);
	unsigned n = 0;

	while (n < log->cuts && log->cut[n].cut_seq < cut_seq)
		n++;
	if (n < log->cuts && log->cut[n].cut_seq == cut_seq)
		tail = log->cut[n++].tail_seq;
	log->cuts -= n;
	memmove(log->cut, log->cut + n, log->cuts * sizeof(log->cut[0]));
	return tail;
}

void log_trim(struct log *log, uint64_t cut_seq)
{
	const uint64_t tail = cut_forget(log, cut_seq);

	/* The records up to the cut are only kept for data that is not
	 * destaged, so their mirrors are needless. */
	if (log->missing_last <= cut_seq)
		log->missing_first = log->missing_last = 0;
	if (tail <= log->tail_seq)
		return;
	log->tail_seq = tail;
	log_tracks_refresh(log);
	log_mirror_trim(log);
	log_dispatch(log);
}

bool log_failed(const struct log *log)
{
	return log->failed;
}

void log_get_stats(const struct log *log, struct log_stats *out)
{
	*out = log->stats;
}

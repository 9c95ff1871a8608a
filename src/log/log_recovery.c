/*
 * log_recovery.c - reading the log back.
 *
 * The finds of record_scan.c are delivered along the chain.  A payload that was
 * not kept is read again when its turn comes, with as many of those behind it
 * as there is room for, all at once.  Two walks make the chain:
 *
 *   back from the cut, whose chain value the root tells, to the tail: records
 *   whose changes are in the tree but whose data may not be destaged.  The
 *   chain goes on over mounts, so they may be of older epochs; on from the cut:
 *   records to apply, each naming the one before.
 *
 * The log ends where the second walk finds nothing, unless a find says that
 * more was acknowledged: then, or if the first walk does not reach the tail,
 * the log is damaged.  So it is if a record has another epoch and a generation
 * behind the root's: it follows a root that is newer and cannot be found.
 *
 * The newest record may have no mirror yet.  If one of its units is bad its
 * parity makes it whole.  A power cut leaves old content where a record was to
 * go, and at most one sector that cannot be read; so two or more units that
 * cannot be read, near enough to have been one record, may have held one that
 * was acknowledged, unless it is known what they held: that is damage, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "base/sort.h"
#include "log/record_scan.h"

static bool find_is_missing(const struct found_record *f)
{
	return f->payload_bytes && !f->payload;
}

/* ---- Reading records again ----------------------------------------------- */

static void load_done(struct disk_request *req)
{
	struct load *l = req->owner;

	l->scan->reading--;
}

static size_t load_bytes(const struct found_record *f)
{
	const uint32_t most = f->bytes[0] > f->bytes[1] ? f->bytes[0] :
							  f->bytes[1];

	return (most + TRAX_BLOCK_BYTES - 1) / TRAX_BLOCK_BYTES *
	       TRAX_BLOCK_BYTES;
}

static int load_send(struct log_scan *s, struct load *l, struct found_record *f)
{
	*l = (struct load){ .scan = s, .find = f };
	l->buf = aligned_alloc(TRAX_BLOCK_BYTES, load_bytes(f));
	if (!l->buf)
		return -ENOMEM;
	l->iov = (struct iovec){ l->buf, f->bytes[0] };
	l->req = (struct queue_request){
		.class = QUEUE_READ,
		.disk = {
			.op = DISK_READ,
			.sector = f->sector[0],
			.sectors = f->bytes[0] / SECTOR_BYTES,
			.iov = &l->iov,
			.iov_n = 1,
			.done = load_done,
			.owner = l,
		},
	};
	s->reading++;
	queue_submit(s->log->queue, &l->req);
	return 0;
}

static bool load_is_good(const struct load *l, unsigned i)
{
	const struct found_record *f = l->find;
	const struct log_header *h = (const void *)l->buf;

	return !log_header_verify(h, f->bytes[i], l->scan->log->uuid,
				  f->sector[i]) &&
	       le64_get(h->chain) == f->chain;
}

/* Reads a payload again from the original or the mirror, unit by unit if
 * necessary. */
static bool load_again(struct log_scan *s, struct load *l, unsigned i)
{
	const struct found_record *f = l->find;

	if (!f->sector[i])
		return false;
	scan_units_read(s, f->sector[i], f->bytes[i] / SECTOR_BYTES, l->buf);
	if (load_is_good(l, i))
		return true;
	if (!log_record_rebuild(l->buf, f->bytes[i], s->log->unit_bytes,
				s->log->uuid, f->sector[i], s->rebuilt,
				&s->rebuild_bytes))
		return false;
	memcpy(l->buf, s->rebuilt, f->bytes[i]);
	return load_is_good(l, i);
}

static int load_take(struct log_scan *s, struct load *l)
{
	const struct found_record *f = l->find;

	if ((l->req.disk.result || !load_is_good(l, 0)) &&
	    !load_again(s, l, 1) && !load_again(s, l, 0)) {
		msg_error("log: record %" PRIu64 " at sector %" PRIu64
			  " cannot be read again", f->seq, f->sector[0]);
		return -EIO;
	}
	return find_keep(s, l->find, l->buf + sizeof(struct log_header));
}

/* Frees memory of payloads: first of those that have been delivered, then of
 * those that come last. */
static void path_drop(struct log_scan *s, const uint32_t *path, size_t i,
		      size_t n)
{
	for (size_t k = 0; k < i; k++)
		find_drop(s, &s->find[path[k]]);
	while (n > i && s->kept_bytes > s->memory_bytes / 2)
		find_drop(s, &s->find[path[--n]]);
}

/* Reads those payloads that are not in memory, from the i-th on, as many as
 * there is room for. */
static int path_load(struct log_scan *s, const uint32_t *path, size_t i,
		     size_t n)
{
	unsigned sent = 0;
	int rc = 0, poll = 0;
	size_t bytes;

	path_drop(s, path, i, n);
	bytes = s->kept_bytes;
	for (; i < n && sent < LOADS && !rc; i++) {
		struct found_record *f = &s->find[path[i]];

		if (!find_is_missing(f))
			continue;
		bytes += f->payload_bytes;
		if (sent && bytes > s->memory_bytes)
			break;
		rc = load_send(s, &s->load[sent], f);
		sent += !rc;
	}
	while (s->reading && poll >= 0)
		poll = queue_poll(s->log->queue, -1);
	for (unsigned k = 0; k < sent; k++) {
		if (!rc)
			rc = poll < 0 ? poll : load_take(s, &s->load[k]);
		free(s->load[k].buf);
	}
	return rc;
}

/* Passes the payloads from the i-th on that are in memory to the caller's
 * ahead(); returns the first that was not passed. */
static size_t path_ahead(struct log_scan *s, size_t i)
{
	const struct log_replay *r = &s->replay;
	int enough = 0;

	for (; i < s->path_n && !enough; i++) {
		const struct found_record *f = &s->find[s->path[i]];

		if (find_is_missing(f))
			break;
		enough = r->ahead(r->arg, f->payload ? (void *)f->payload : "",
				  f->payload_bytes);
	}
	r->ahead(r->arg, NULL, 0);
	return i;
}

static int path_deliver(struct log_scan *s)
{
	const struct log_replay *r = &s->replay;
	size_t shown = s->apply_from;
	int rc = 0;

	for (size_t i = 0; i < s->path_n && !rc; i++) {
		struct found_record *f = &s->find[s->path[i]];

		if (find_is_missing(f))
			rc = path_load(s, s->path, i, s->path_n);
		if (!rc && r->ahead && i >= s->apply_from && i >= shown)
			shown = path_ahead(s, i);
		if (!rc)
			rc = r->record(r->arg, f->seq, s->path[i],
				       i >= s->apply_from,
				       f->payload ? (void *)f->payload : "",
				       f->payload_bytes);
	}
	return rc;
}

int log_recovered_read(struct log *log, const uint32_t *ids, size_t n,
		       int (*record)(void *arg, uint32_t id,
				     const void *payload, size_t bytes),
		       void *arg)
{
	struct log_scan *s = log->scan;
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		struct found_record *f = &s->find[ids[i]];

		if (find_is_missing(f))
			rc = path_load(s, ids, i, n);
		if (!rc)
			rc = record(arg, ids[i], f->payload ?
				    (void *)f->payload : "", f->payload_bytes);
	}
	return rc;
}

/* ---- Walking the chain --------------------------------------------------- */

static int find_cmp(const void *va, const void *vb)
{
	const struct found_record *a = va, *b = vb;

	return sort_order(a->seq, b->seq) ?:
	       sort_order(a->chain, b->chain);
}

/* Index of the first find with this number or a higher one. */
static size_t find_lower(const struct log_scan *s, uint64_t seq)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (s->find[mid].seq < seq)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct found_record *find_by_chain(const struct log_scan *s,
					  uint64_t seq, uint64_t chain)
{
	for (size_t i = find_lower(s, seq); i < s->n && s->find[i].seq == seq;
	     i++)
		if (s->find[i].chain == chain)
			return &s->find[i];
	return NULL;
}

static struct found_record *find_by_prev(const struct log_scan *s, uint64_t seq,
				 uint64_t prev)
{
	for (size_t i = find_lower(s, seq); i < s->n && s->find[i].seq == seq;
	     i++)
		if (s->find[i].prev == prev)
			return &s->find[i];
	return NULL;
}

static int damaged(uint64_t seq)
{
	msg_error("log: record %" PRIu64 " was acknowledged but cannot be "
		  "found, nor its mirror", seq);
	return -EUCLEAN;
}

/*
 * Finds the records from the tail to the cut, backwards. *whole is false when
 * one is missing: those before it can't be trusted.
 */
static void walk_tail(struct log_scan *s, bool *whole)
{
	const struct log_replay *r = &s->replay;
	uint64_t seq = r->cut_seq, chain = r->cut_chain;

	*whole = true;
	for (; *whole && seq && seq >= r->tail_seq; seq--) {
		struct found_record *f = find_by_chain(s, seq, chain);

		if (f) {
			s->path[s->path_n++] = (uint32_t)(f - s->find);
			chain = f->prev;
		} else {
			*whole = false;
			damaged(seq);
		}
	}
	for (size_t a = 0, b = s->path_n; a + 1 < b; a++) {
		const uint32_t id = s->path[a];

		s->path[a] = s->path[--b];
		s->path[b] = id;
	}
	s->apply_from = s->path_n;
}

static void walk_on(struct log_scan *s, uint64_t *last, uint64_t *chain)
{
	const struct found_record *f;

	while ((f = find_by_prev(s, *last + 1, *chain))) {
		s->path[s->path_n++] = (uint32_t)(f - s->find);
		*last = f->seq;
		*chain = f->chain;
	}
}

/* Is the record known that lies at this sector, if it matters? */
static bool unit_is_known(const struct log_scan *s, uint64_t sector,
			  uint64_t last)
{
	const struct log_track *t = log_track_of(s->log, sector);
	const uint64_t seq = t->seq[(sector - t->first) /
				    (s->log->unit_bytes / SECTOR_BYTES)];

	return seq >= s->replay.tail_seq && seq <= last;
}

/* Could there be a record behind the last one, in a place that cannot be read
 * and with more bad units than its parity can restore? */
static bool newest_may_be_lost(const struct log_scan *s, uint64_t last)
{
	uint64_t before = 0;

	if (s->unreadable_n == MAX_UNREADABLE)
		return true;
	for (unsigned i = 0; i < s->unreadable_n; i++) {
		const uint64_t sector = s->unreadable[i];

		if (unit_is_known(s, sector, last))
			continue;
		if (before && sector - before < OVERLAP_SECTORS &&
		    log_track_of(s->log, before) ==
			    log_track_of(s->log, sector))
			return true;
		before = sector;
	}
	return false;
}

static int walk(struct log_scan *s, uint64_t *last, uint64_t *chain)
{
	bool whole;
	int rc;

	s->path = calloc(s->n + 1, sizeof(*s->path));
	if (!s->path)
		return -ENOMEM;
	walk_tail(s, &whole);
	walk_on(s, last, chain);
	rc = path_deliver(s);
	if (rc)
		return rc;
	if (s->acked > *last)
		return damaged(*last + 1);
	if (s->newer) {
		msg_error("log: record %" PRIu64 " follows a newer root, which "
			  "cannot be found", s->newer);
		return -EUCLEAN;
	}
	if (newest_may_be_lost(s, *last)) {
		msg_error("log: sectors that cannot be read may have held "
			  "record %" PRIu64 ", and it may have been "
			  "acknowledged in the last 50 ms before the crash",
			  *last + 1);
		return -EUCLEAN;
	}
	return whole ? 0 : -EUCLEAN;
}

/*
 * Each power cut may leave one sector that cannot be read. These are written,
 * or several of them would look like a lost record after a later cut. The root
 * that holds what was recovered is durable by now.
 */
static void log_heal(struct log *log)
{
	const struct log_scan *s = log->scan;
	const uint32_t unit = (uint32_t)(log->unit_bytes / SECTOR_BYTES);

	if (!s)
		return;
	memset(s->rebuilt, 0, log->unit_bytes);
	for (unsigned i = 0; i < s->unreadable_n && i < MAX_HEALED; i++) {
		const uint64_t sector = s->unreadable[i];
		const struct log_track *t = log_track_of(log, sector);

		if (t->seq[(sector - t->first) / unit] < log->tail_seq &&
		    queue_write_as(log->queue, FAULT_COPY, sector, unit,
				   s->rebuilt))
			msg_warn("log: sectors %" PRIu64 "+%u cannot be "
				 "written, either", sector, unit);
	}
}

/* ---- The whole ----------------------------------------------------------- */

void log_recover_end(struct log *log)
{
	struct log_scan *s = log->scan;

	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		free(s->find[i].payload);
	free(s->find);
	free(s->path);
	free(s->unreadable);
	free(s->rebuilt);
	hashmap_free(s->known);
	scan_reads_free(s);
	free(s);
	log->scan = NULL;
}

int log_recover(struct log *log, const struct log_replay *replay,
		uint64_t *last, uint64_t *chain)
{
	struct log_scan *s;
	int rc;

	log_recover_end(log);
	s = log->scan = scan_new(log, replay);
	if (!s)
		return -ENOMEM;
	log->scan_end = log_recover_end;
	log->scan_heal = log_heal;
	*last = replay->cut_seq;
	*chain = replay->cut_chain;
	rc = s->rc ? s->rc : scan_tracks(s);
	scan_reads_free(s);
	hashmap_free(s->known);
	s->known = NULL;
	if (!rc) {
		if (s->n)
			qsort(s->find, s->n, sizeof(*s->find), find_cmp);
		rc = walk(s, last, chain);
	}
	/* Records behind the end of the chain belong to nothing. */
	log_tracks_forget_beyond(log, *last);
	return rc;
}

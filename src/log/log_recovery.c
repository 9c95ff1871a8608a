/*
 * log_recovery.c - reading the log back.
 *
 * All log tracks are read whole, in large pieces.  What verifies and is of the
 * root's epoch is a find; originals and mirrors are the same.  A find keeps its
 * payload only as far as the memory goes that the caller allows; what was not
 * kept is read again when its turn comes, with as many of those behind it as
 * there is room for, all at once.  Then two walks:
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
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/msg.h"
#include "log/log_internal.h"

/* A piece overlaps the next by a record, so that each is read in one. */
#define PIECE_SECTORS (2u << 11)
#define OVERLAP_SECTORS (TRAX_MAX_RECORD_BYTES / SECTOR_BYTES)
#define PIECES 4u
#define MIN_MEMORY_BYTES (2u << 20)
#define LOADS 256u		/* records read again at once */

struct found_record {
	uint64_t seq, prev, chain;
	uint64_t sector[2];	/* original and mirror as found; 0: none */
	uint32_t bytes;		/* of the record on disk */
	uint32_t payload_bytes;
	uint8_t *payload;	/* NULL: not in memory, or empty */
};

struct scan_read {
	struct log_scan *scan;
	uint8_t *buf;
	struct log_track *track;
	uint32_t first, sectors;	/* in the track */
	bool busy;
	struct queue_request req;
	struct iovec iov;
};

struct load {
	struct log_scan *scan;
	struct found_record *find;
	uint8_t *buf;			/* the record */
	struct queue_request req;
	struct iovec iov;
};

struct log_scan {
	struct log *log;
	struct log_replay replay;
	struct found_record *find;
	size_t n, room;
	size_t memory_bytes, kept_bytes; /* of payloads */
	struct hashmap *known;		/* chain value to place in find[] + 1 */
	uint64_t acked;			/* highest that any find tells */
	uint64_t newer;			/* a record that follows a newer root;
					   0: none was found */
	unsigned track;			/* next piece to read */
	uint32_t sector;
	unsigned reading;
	unsigned unreadable;		/* units */
	int rc;
	struct scan_read piece[PIECES];
	uint32_t *path;			/* finds of the chain, in its order */
	size_t path_n, apply_from;
	struct load load[LOADS];
};

/* ---- Finding records ----------------------------------------------------- */

static void find_drop(struct log_scan *s, struct found_record *f)
{
	if (!f->payload)
		return;
	s->kept_bytes -= f->payload_bytes;
	free(f->payload);
	f->payload = NULL;
}

static int find_keep(struct log_scan *s, struct found_record *f,
		     const void *payload)
{
	f->payload = malloc(f->payload_bytes);
	if (!f->payload)
		return -ENOMEM;
	memcpy(f->payload, payload, f->payload_bytes);
	s->kept_bytes += f->payload_bytes;
	return 0;
}

static bool find_is_missing(const struct found_record *f)
{
	return f->payload_bytes && !f->payload;
}

static int find_add(struct log_scan *s, const struct log_header *h,
		    uint64_t sector)
{
	struct found_record *f;

	if (s->n == s->room) {
		const size_t room = s->room ? 2 * s->room : 256;
		struct found_record *more =
			realloc(s->find, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->find = more;
		s->room = room;
	}
	f = &s->find[s->n++];
	*f = (struct found_record){
		.seq = le64_get(h->seq),
		.prev = le64_get(h->prev),
		.chain = le64_get(h->chain),
		.sector = { sector },
		.bytes = le32_get(h->bytes),
		.payload_bytes = le32_get(h->payload),
	};
	if (f->payload_bytes &&
	    s->kept_bytes + f->payload_bytes <= s->memory_bytes &&
	    find_keep(s, f, h + 1))
		return -ENOMEM;
	return hashmap_put(s->known, f->chain, (void *)(uintptr_t)s->n);
}

/* The same record, found before. */
static struct found_record *find_known(const struct log_scan *s,
				       const struct log_header *h)
{
	const uintptr_t at =
		(uintptr_t)hashmap_get(s->known, le64_get(h->chain));

	return at ? &s->find[at - 1] : NULL;
}

static void scan_record(struct log_scan *s, struct log_track *t,
			uint64_t sector, const struct log_header *h)
{
	const uint64_t seq = le64_get(h->seq), acked = le64_get(h->acked);
	struct found_record *f;

	if (le64_get(h->epoch) != s->replay.epoch) {
		if (le64_get(h->gen) > s->replay.gen)
			s->newer = seq;
		/* Whether it is of the chain that leads to the cut, the chain
		 * value tells. */
		if (seq > s->replay.cut_seq || seq < s->replay.tail_seq)
			return;
	} else if (acked > s->acked) {
		s->acked = acked;
	}
	log_track_mark(s->log, t, sector, le32_get(h->bytes), seq);
	f = find_known(s, h);
	if (f)
		f->sector[1] = sector;
	else if (!s->rc && seq >= s->replay.tail_seq)
		s->rc = find_add(s, h, sector);
}

static void scan_piece(struct log_scan *s, const struct scan_read *p)
{
	const size_t unit = s->log->unit_bytes;
	const size_t bytes = (size_t)p->sectors * SECTOR_BYTES;

	for (size_t at = 0; at < bytes; ) {
		const struct log_header *h = (const void *)(p->buf + at);
		const uint64_t sector = p->track->first + p->first +
					at / SECTOR_BYTES;

		if (log_header_verify(h, bytes - at, s->log->uuid, sector) ||
		    le32_get(h->bytes) % unit) {
			at += unit;
			continue;
		}
		scan_record(s, p->track, sector, h);
		at += le32_get(h->bytes);
	}
}

/* ---- Reading tracks ------------------------------------------------------ */

/* Reads unit by unit what cannot be read at once; what cannot be read at all
 * is no record. */
static void piece_read_units(struct log_scan *s, struct scan_read *p)
{
	const uint32_t unit = (uint32_t)(s->log->unit_bytes / SECTOR_BYTES);

	for (uint32_t at = 0; at < p->sectors; at += unit) {
		uint8_t *buf = p->buf + (size_t)at * SECTOR_BYTES;
		const uint64_t sector = p->track->first + p->first + at;

		if (!queue_read(s->log->queue, sector, unit, buf))
			continue;
		memset(buf, 0, s->log->unit_bytes);
		s->unreadable++;
		msg_warn("log: sectors %" PRIu64 "+%u cannot be read", sector,
			 unit);
	}
}

static void piece_done(struct disk_request *req)
{
	struct scan_read *p = req->owner;

	p->scan->reading--;
	p->busy = false;
}

/* The next piece to read; false: all have been. */
static bool piece_next(struct log_scan *s, struct scan_read *p)
{
	struct log_track *t = &s->log->track[s->track];
	uint32_t left;

	if (s->track == s->log->tracks)
		return false;
	left = t->units * (uint32_t)(s->log->unit_bytes / SECTOR_BYTES) -
	       s->sector;
	p->track = t;
	p->first = s->sector;
	p->sectors = left;
	s->sector += PIECE_SECTORS;
	if (left > PIECE_SECTORS + OVERLAP_SECTORS) {
		p->sectors = PIECE_SECTORS + OVERLAP_SECTORS;
	} else {
		s->track++;
		s->sector = 0;
	}
	return true;
}

static void piece_send(struct log_scan *s, struct scan_read *p)
{
	p->iov = (struct iovec){ p->buf, (size_t)p->sectors * SECTOR_BYTES };
	p->req = (struct queue_request){
		.class = QUEUE_READ,
		.disk = {
			.op = DISK_READ,
			.sector = p->track->first + p->first,
			.sectors = p->sectors,
			.iov = &p->iov,
			.iov_n = 1,
			.done = piece_done,
			.owner = p,
		},
	};
	p->busy = true;
	s->reading++;
	queue_submit(s->log->queue, &p->req);
}

/* Pieces are scanned in the order in which they were sent, so that what is
 * found does not depend on the disk's order. */
static int scan_tracks(struct log_scan *s)
{
	unsigned sent = 0, scanned = 0;
	int rc = 0;

	while (sent < PIECES && piece_next(s, &s->piece[sent]))
		piece_send(s, &s->piece[sent++]);
	while (scanned < sent && rc >= 0) {
		struct scan_read *p = &s->piece[scanned % PIECES];

		if (p->busy) {
			rc = queue_poll(s->log->queue, -1);
			continue;
		}
		if (p->req.disk.result)
			piece_read_units(s, p);
		scan_piece(s, p);
		scanned++;
		if (!piece_next(s, p))
			continue;
		piece_send(s, p);
		sent++;
	}
	return rc < 0 ? rc : s->rc;
}

/* ---- Reading records again ----------------------------------------------- */

static void load_done(struct disk_request *req)
{
	struct load *l = req->owner;

	l->scan->reading--;
}

static int load_send(struct log_scan *s, struct load *l, struct found_record *f)
{
	*l = (struct load){ .scan = s, .find = f };
	l->buf = aligned_alloc(TRAX_BLOCK_BYTES,
			       (f->bytes + TRAX_BLOCK_BYTES - 1) /
			       TRAX_BLOCK_BYTES * TRAX_BLOCK_BYTES);
	if (!l->buf)
		return -ENOMEM;
	l->iov = (struct iovec){ l->buf, f->bytes };
	l->req = (struct queue_request){
		.class = QUEUE_READ,
		.disk = {
			.op = DISK_READ,
			.sector = f->sector[0],
			.sectors = f->bytes / SECTOR_BYTES,
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

static bool load_is_good(const struct load *l, uint64_t sector)
{
	const struct log_header *h = (const void *)l->buf;

	return !log_header_verify(h, l->find->bytes, l->scan->log->uuid,
				  sector) &&
	       le64_get(h->chain) == l->find->chain;
}

static int load_take(struct log_scan *s, struct load *l)
{
	const struct found_record *f = l->find;

	if (l->req.disk.result || !load_is_good(l, f->sector[0])) {
		msg_warn("log: record %" PRIu64 " at sector %" PRIu64
			 " cannot be read again", f->seq, f->sector[0]);
		if (!f->sector[1] ||
		    queue_read(s->log->queue, f->sector[1],
			       f->bytes / SECTOR_BYTES, l->buf) ||
		    !load_is_good(l, f->sector[1]))
			return -EIO;
	}
	return find_keep(s, l->find, l->buf + sizeof(struct log_header));
}

/* Makes room: what has been delivered goes first, then what comes last. */
static void path_drop(struct log_scan *s, const uint32_t *path, size_t i,
		      size_t n)
{
	for (size_t k = 0; k < i; k++)
		find_drop(s, &s->find[path[k]]);
	while (n > i && s->kept_bytes > s->memory_bytes / 2)
		find_drop(s, &s->find[path[--n]]);
}

/* Reads those that are not in memory, from the i-th on, as many as there is
 * room for. */
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

/* Shows those from the i-th on that are in memory; returns the first that was
 * not shown. */
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

	if (a->seq != b->seq)
		return a->seq < b->seq ? -1 : 1;
	return a->chain < b->chain ? -1 : a->chain > b->chain;
}

/* First find of seq or later. */
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
 * The records from the tail to the cut, found backwards.  *whole is false when
 * one is missing: those before it are not to be trusted.
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
	if (s->unreadable)
		msg_warn("log: if a sector that cannot be read held the newest "
			 "record (%" PRIu64 "), what was acknowledged in the "
			 "last 50 ms before the crash is lost", *last + 1);
	return whole ? 0 : -EUCLEAN;
}

/* ---- The whole ----------------------------------------------------------- */

static void pieces_free(struct log_scan *s)
{
	for (unsigned i = 0; i < PIECES; i++) {
		free(s->piece[i].buf);
		s->piece[i].buf = NULL;
	}
}

static struct log_scan *scan_new(struct log *log,
				 const struct log_replay *replay)
{
	struct log_scan *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->log = log;
	s->replay = *replay;
	s->memory_bytes = replay->memory_bytes > MIN_MEMORY_BYTES ?
			  replay->memory_bytes : MIN_MEMORY_BYTES;
	s->known = hashmap_new();
	if (!s->known)
		s->rc = -ENOMEM;
	for (unsigned i = 0; i < PIECES; i++) {
		s->piece[i].scan = s;
		s->piece[i].buf = aligned_alloc(TRAX_BLOCK_BYTES,
						(size_t)SECTOR_BYTES *
						(PIECE_SECTORS +
						 OVERLAP_SECTORS));
		if (!s->piece[i].buf)
			s->rc = -ENOMEM;
	}
	return s;
}

void log_recover_end(struct log *log)
{
	struct log_scan *s = log->scan;

	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		free(s->find[i].payload);
	free(s->find);
	free(s->path);
	hashmap_free(s->known);
	pieces_free(s);
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
	*last = replay->cut_seq;
	*chain = replay->cut_chain;
	rc = s->rc ? s->rc : scan_tracks(s);
	pieces_free(s);
	hashmap_free(s->known);
	s->known = NULL;
	if (!rc) {
		if (s->n)
			qsort(s->find, s->n, sizeof(*s->find), find_cmp);
		rc = walk(s, last, chain);
	}
	/* What lies behind the end of the chain is nobody's. */
	log_tracks_forget_beyond(log, *last);
	return rc;
}

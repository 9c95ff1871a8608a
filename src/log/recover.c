/*
 * recover.c - reading the log back.
 *
 * All log tracks are read whole, in large pieces.  What verifies and is of the
 * root's epoch is a find; originals and twins are the same.  Then two walks:
 *
 *   back from the cut, whose chain value the root tells, to the tail: records
 *   whose changes are in the tree but whose data may not be home;
 *   on from the cut: records to apply, each naming the one before.
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

#include "base/map.h"
#include "base/msg.h"
#include "log/internal.h"

/* A piece overlaps the next by a record, so that each is read in one. */
#define PIECE_SECTORS (2u << 11)
#define OVERLAP_SECTORS (TRAX_MAX_RECORD_BYTES / SECTOR_BYTES)
#define PIECES 4u

struct find {
	uint64_t seq, prev, chain;
	void *payload;		/* NULL: empty */
	size_t bytes;
};

struct piece {
	struct scan *scan;
	uint8_t *buf;
	struct log_track *track;
	uint32_t first, sectors;	/* in the track */
	bool busy;
	struct queue_request req;
	struct iovec iov;
};

struct scan {
	struct log *log;
	const struct log_replay *replay;
	struct find *find;
	size_t n, room;
	struct map *known;		/* chain values of these */
	uint64_t acked;			/* highest that any find tells */
	uint64_t newer;			/* a record that follows a newer root;
					   0: none was found */
	unsigned track;			/* next piece to read */
	uint32_t sector;
	unsigned reading;
	int rc;
	struct piece piece[PIECES];
};

/* ---- Finding records ----------------------------------------------------- */

static int find_add(struct scan *s, const struct log_header *h)
{
	struct find f = {
		.seq = le64_get(h->seq),
		.prev = le64_get(h->prev),
		.chain = le64_get(h->chain),
		.bytes = le32_get(h->payload),
	};

	if (s->n == s->room) {
		const size_t room = s->room ? 2 * s->room : 256;
		struct find *more = realloc(s->find, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->find = more;
		s->room = room;
	}
	if (f.bytes) {
		f.payload = malloc(f.bytes);
		if (!f.payload)
			return -ENOMEM;
		memcpy(f.payload, h + 1, f.bytes);
	}
	s->find[s->n++] = f;
	return map_put(s->known, f.chain, s);
}

/* Not needed by anyone, or its twin was found before. */
static bool find_is_known(const struct scan *s, const struct log_header *h)
{
	return le64_get(h->seq) < s->replay->tail_seq ||
	       map_get(s->known, le64_get(h->chain));
}

static void scan_record(struct scan *s, struct log_track *t, uint64_t sector,
			const struct log_header *h)
{
	const uint64_t seq = le64_get(h->seq), acked = le64_get(h->acked);

	if (le64_get(h->epoch) != s->replay->epoch) {
		if (le64_get(h->gen) > s->replay->gen)
			s->newer = seq;
		return;
	}
	if (acked > s->acked)
		s->acked = acked;
	log_track_mark(s->log, t, sector, le32_get(h->bytes), seq);
	if (!s->rc && !find_is_known(s, h))
		s->rc = find_add(s, h);
}

static void scan_piece(struct scan *s, const struct piece *p)
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
static void piece_read_units(struct scan *s, struct piece *p)
{
	const uint32_t unit = (uint32_t)(s->log->unit_bytes / SECTOR_BYTES);

	for (uint32_t at = 0; at < p->sectors; at += unit) {
		uint8_t *buf = p->buf + (size_t)at * SECTOR_BYTES;
		const uint64_t sector = p->track->first + p->first + at;

		if (!queue_read(s->log->queue, sector, unit, buf))
			continue;
		memset(buf, 0, s->log->unit_bytes);
		msg_warn("log: sectors %" PRIu64 "+%u cannot be read", sector,
			 unit);
	}
}

static void piece_done(struct disk_request *req)
{
	struct piece *p = req->owner;

	p->scan->reading--;
	p->busy = false;
}

/* The next piece to read; false: all have been. */
static bool piece_next(struct scan *s, struct piece *p)
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

static void piece_send(struct scan *s, struct piece *p)
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
static int scan_tracks(struct scan *s)
{
	unsigned sent = 0, scanned = 0;
	int rc = 0;

	while (sent < PIECES && piece_next(s, &s->piece[sent]))
		piece_send(s, &s->piece[sent++]);
	while (scanned < sent && rc >= 0) {
		struct piece *p = &s->piece[scanned % PIECES];

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

/* ---- Walking the chain --------------------------------------------------- */

static int find_cmp(const void *va, const void *vb)
{
	const struct find *a = va, *b = vb;

	if (a->seq != b->seq)
		return a->seq < b->seq ? -1 : 1;
	return a->chain < b->chain ? -1 : a->chain > b->chain;
}

/* First find of seq or later. */
static size_t find_lower(const struct scan *s, uint64_t seq)
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

static struct find *find_by_chain(const struct scan *s, uint64_t seq,
				  uint64_t chain)
{
	for (size_t i = find_lower(s, seq); i < s->n && s->find[i].seq == seq;
	     i++)
		if (s->find[i].chain == chain)
			return &s->find[i];
	return NULL;
}

static struct find *find_by_prev(const struct scan *s, uint64_t seq,
				 uint64_t prev)
{
	for (size_t i = find_lower(s, seq); i < s->n && s->find[i].seq == seq;
	     i++)
		if (s->find[i].prev == prev)
			return &s->find[i];
	return NULL;
}

static int deliver(const struct scan *s, const struct find *f, bool apply)
{
	return s->replay->record(s->replay->arg, f->seq, apply,
				 f->payload ? f->payload : "", f->bytes);
}

static int damaged(uint64_t seq)
{
	msg_error("log: record %" PRIu64 " was acknowledged but cannot be "
		  "found, nor its twin", seq);
	return -EUCLEAN;
}

/*
 * The records from the tail to the cut, found backwards, delivered forwards.
 * *whole is false when one is missing: those before it are not to be trusted.
 */
static int walk_tail(const struct scan *s, bool *whole)
{
	const struct log_replay *r = s->replay;
	uint64_t seq = r->cut_seq, chain = r->cut_chain;
	struct find **path;
	size_t n = 0;
	int rc = 0;

	*whole = true;
	if (r->tail_seq > r->cut_seq)
		return 0;
	path = calloc(s->n + 1, sizeof(*path));
	if (!path)
		return -ENOMEM;
	for (; *whole && seq && seq >= r->tail_seq; seq--) {
		struct find *f = find_by_chain(s, seq, chain);

		if (f) {
			path[n++] = f;
			chain = f->prev;
		} else {
			*whole = false;
			damaged(seq);
		}
	}
	while (!rc && n)
		rc = deliver(s, path[--n], false);
	free(path);
	return rc;
}

static int walk_on(const struct scan *s, uint64_t *last, uint64_t *chain)
{
	uint64_t seq = s->replay->cut_seq, value = s->replay->cut_chain;
	struct find *f;

	while ((f = find_by_prev(s, seq + 1, value))) {
		int rc = deliver(s, f, true);

		if (rc)
			return rc;
		seq = f->seq;
		value = f->chain;
	}
	*last = seq;
	*chain = value;
	return 0;
}

static int walk(const struct scan *s, uint64_t *last, uint64_t *chain)
{
	bool whole;
	int rc = walk_tail(s, &whole);

	if (!rc)
		rc = walk_on(s, last, chain);
	if (rc)
		return rc;
	if (s->acked > *last)
		return damaged(*last + 1);
	if (s->newer) {
		msg_error("log: record %" PRIu64 " follows a newer root, which "
			  "cannot be found", s->newer);
		return -EUCLEAN;
	}
	return whole ? 0 : -EUCLEAN;
}

/* ---- The whole ----------------------------------------------------------- */

static struct scan *scan_new(struct log *log, const struct log_replay *replay)
{
	struct scan *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->log = log;
	s->replay = replay;
	s->known = map_new();
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

static void scan_free(struct scan *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->find[i].payload);
	free(s->find);
	map_free(s->known);
	for (unsigned i = 0; i < PIECES; i++)
		free(s->piece[i].buf);
	free(s);
}

int log_recover(struct log *log, const struct log_replay *replay,
		uint64_t *last, uint64_t *chain)
{
	struct scan *s = scan_new(log, replay);
	int rc;

	if (!s)
		return -ENOMEM;
	*last = replay->cut_seq;
	*chain = replay->cut_chain;
	rc = s->rc ? s->rc : scan_tracks(s);
	if (!rc) {
		if (s->n)
			qsort(s->find, s->n, sizeof(*s->find), find_cmp);
		rc = walk(s, last, chain);
	}
	/* What lies behind the end of the chain is nobody's. */
	log_tracks_forget_beyond(log, *last);
	scan_free(s);
	return rc;
}

/*
 * record_scan.c - finding records on the log's tracks.
 *
 * All log tracks are read whole, by large reads.  What verifies, or does when
 * its parity has made it whole, and is of the root's epoch is a find; originals
 * and mirrors are the same.  A find keeps its payload only as far as the memory
 * goes that the caller allows.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "log/record_scan.h"

/* ---- Finding records ----------------------------------------------------- */

void find_drop(struct log_scan *s, struct found_record *f)
{
	if (!f->payload)
		return;
	s->kept_bytes -= f->payload_bytes;
	free(f->payload);
	f->payload = NULL;
}

int find_keep(struct log_scan *s, struct found_record *f,
		     const void *payload)
{
	f->payload = malloc(f->payload_bytes);
	if (!f->payload)
		return -ENOMEM;
	memcpy(f->payload, payload, f->payload_bytes);
	s->kept_bytes += f->payload_bytes;
	return 0;
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
		.bytes = { le32_get(h->bytes) },
		.payload_bytes = le32_get(h->payload),
	};
	if (f->payload_bytes &&
	    s->kept_bytes + f->payload_bytes <= s->memory_bytes &&
	    find_keep(s, f, h + 1))
		return -ENOMEM;
	return hashmap_put(s->known, f->chain, (void *)(uintptr_t)s->n);
}

/* Finds the same record if it was found before, as original or mirror. */
static struct found_record *find_known(const struct log_scan *s,
				       const struct log_header *h)
{
	const uintptr_t at =
		(uintptr_t)hashmap_get(s->known, le64_get(h->chain));

	return at ? &s->find[at - 1] : NULL;
}

/* Notes the place of the original that a mirror names: it is known even if it
 * cannot be read. */
static void original_mark(struct log_scan *s, const struct log_header *h)
{
	const uint64_t sector = addr_sector(le64_get(h->original));
	const uint32_t unit = (uint32_t)(s->log->unit_bytes / SECTOR_BYTES);
	struct log_track *t = log_track_of(s->log, sector);
	uint32_t at;

	if (!(le32_get(h->flags) & LOG_MIRROR) || !t ||
	    (sector - t->first) % unit)
		return;
	at = t->next;
	log_track_mark(s->log, t, sector,
		       le32_get(h->bytes) + s->log->unit_bytes,
		       le64_get(h->seq));
	t->next = at;
}

static void scan_record(struct log_scan *s, struct log_track *t,
			uint64_t sector, const struct log_header *h)
{
	const uint64_t seq = le64_get(h->seq), acked = le64_get(h->acked);
	struct found_record *f;

	if (le64_get(h->epoch) != s->replay.epoch) {
		if (le64_get(h->gen) > s->replay.gen)
			s->newer = seq;
		/* Its chain value will tell whether it belongs to the chain
		 * that leads to the cut. */
		if (seq > s->replay.cut_seq || seq < s->replay.tail_seq)
			return;
	} else if (acked > s->acked) {
		s->acked = acked;
	}
	log_track_mark(s->log, t, sector, le32_get(h->bytes), seq);
	if (seq >= s->replay.tail_seq)
		original_mark(s, h);
	f = find_known(s, h);
	if (f && sector != f->sector[0]) {
		f->sector[1] = sector;
		f->bytes[1] = le32_get(h->bytes);
	}
	if (!f && !s->rc && seq >= s->replay.tail_seq)
		s->rc = find_add(s, h, sector);
}

/* Is this a record that does not matter any more, if its header is right? */
static bool header_is_dead(const struct log_scan *s, const struct log_header *h,
			   size_t available, uint64_t sector)
{
	const struct log_replay *r = &s->replay;
	const uint64_t seq = le64_get(h->seq);

	if (log_header_check(h, available, s->log->uuid, sector))
		return false;
	return seq < r->tail_seq ||
	       (le64_get(h->epoch) != r->epoch && seq > r->cut_seq);
}

/* Looks for a record of which all units but one are intact.  If it is an old
 * one, other records may lie inside it. */
static void scan_rebuild(struct log_scan *s, const struct scan_read *p,
			 size_t at, uint64_t sector)
{
	const struct log_header *h = (const void *)(p->buf + at);
	const size_t available = (size_t)p->sectors * SECTOR_BYTES - at;

	if (header_is_dead(s, h, available, sector) ||
	    !log_record_rebuild(h, available, s->log->unit_bytes, s->log->uuid,
				sector, s->rebuilt, &s->rebuild_bytes))
		return;
	h = (const void *)s->rebuilt;
	if (header_is_dead(s, h, available, sector))
		return;
	msg_warn("log: record %" PRIu64 " at sector %" PRIu64
		 " was damaged and is rebuilt from its parity",
		 le64_get(h->seq), sector);
	scan_record(s, p->track, sector, h);
}

static void scan_read(struct log_scan *s, const struct scan_read *p)
{
	const size_t unit = s->log->unit_bytes;
	const size_t bytes = (size_t)p->sectors * SECTOR_BYTES;

	for (size_t at = 0; at < bytes; ) {
		const struct log_header *h = (const void *)(p->buf + at);
		const uint64_t sector = p->track->first + p->first +
					at / SECTOR_BYTES;

		if (log_header_verify(h, bytes - at, s->log->uuid, sector) ||
		    le32_get(h->bytes) % unit) {
			scan_rebuild(s, p, at, sector);
			at += unit;
			continue;
		}
		scan_record(s, p->track, sector, h);
		/* The parity of an old record may have been overwritten. */
		at += log_mirror_bytes(s->log, le32_get(h->payload));
	}
}

/* ---- Reading tracks ------------------------------------------------------ */

/* Reads overlap, so a unit may come twice. */
static void unreadable_add(struct log_scan *s, uint64_t sector)
{
	for (unsigned i = s->unreadable_n; i--; )
		if (s->unreadable[i] == sector)
			return;
	if (s->unreadable_n < MAX_UNREADABLE)
		s->unreadable[s->unreadable_n++] = sector;
	msg_warn("log: sectors %" PRIu64 "+%zu cannot be read", sector,
		 s->log->unit_bytes / SECTOR_BYTES);
}

void scan_units_read(struct log_scan *s, uint64_t sector, uint32_t sectors,
		uint8_t *buf)
{
	const uint32_t unit = (uint32_t)(s->log->unit_bytes / SECTOR_BYTES);

	for (uint32_t at = 0; at < sectors && !s->rc; at += unit) {
		uint8_t *to = buf + (size_t)at * SECTOR_BYTES;
		int rc = queue_read_as(s->log->queue, FAULT_READ_LOG,
				       sector + at, unit, to);

		if (!rc)
			continue;
		if (rc == -ENOMEM)
			s->rc = rc;
		memset(to, 0, s->log->unit_bytes);
		unreadable_add(s, sector + at);
	}
}

static void read_done(struct disk_request *req)
{
	struct scan_read *p = req->owner;

	p->scan->reading--;
	p->busy = false;
}

/* Chooses the next read; false: all has been read. */
static bool read_next(struct log_scan *s, struct scan_read *p)
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
	s->sector += READ_SECTORS;
	if (left > READ_SECTORS + OVERLAP_SECTORS) {
		p->sectors = READ_SECTORS + OVERLAP_SECTORS;
	} else {
		s->track++;
		s->sector = 0;
	}
	return true;
}

static void read_send(struct log_scan *s, struct scan_read *p)
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
			.done = read_done,
			.owner = p,
		},
	};
	p->busy = true;
	s->reading++;
	queue_submit(s->log->queue, &p->req);
}

/* Reads are scanned in the order in which they were sent, so that what is
 * found does not depend on the disk's order. */
int scan_tracks(struct log_scan *s)
{
	unsigned sent = 0, scanned = 0;
	int rc = 0;

	while (sent < READS && read_next(s, &s->read[sent]))
		read_send(s, &s->read[sent++]);
	while (scanned < sent && rc >= 0) {
		struct scan_read *p = &s->read[scanned % READS];

		if (p->busy) {
			rc = queue_poll(s->log->queue, -1);
			continue;
		}
		if (p->req.disk.result)
			scan_units_read(s, p->track->first + p->first,
					p->sectors, p->buf);
		if (!s->rc)
			scan_read(s, p);
		scanned++;
		if (!read_next(s, p))
			continue;
		read_send(s, p);
		sent++;
	}
	return rc < 0 ? rc : s->rc;
}

/* ---- Open and close ---- */

void scan_reads_free(struct log_scan *s)
{
	for (unsigned i = 0; i < READS; i++) {
		free(s->read[i].buf);
		s->read[i].buf = NULL;
	}
}

struct log_scan *scan_new(struct log *log, const struct log_replay *replay)
{
	struct log_scan *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->log = log;
	s->replay = *replay;
	s->memory_bytes = replay->memory_bytes > MIN_MEMORY_BYTES ?
			  replay->memory_bytes : MIN_MEMORY_BYTES;
	s->known = hashmap_new();
	s->unreadable = calloc(MAX_UNREADABLE, sizeof(*s->unreadable));
	s->rebuilt = aligned_alloc(TRAX_BLOCK_BYTES, TRAX_MAX_RECORD_BYTES);
	s->rebuild_bytes = TRAX_REBUILD_BYTES;
	if (!s->known || !s->unreadable || !s->rebuilt)
		s->rc = -ENOMEM;
	for (unsigned i = 0; i < READS; i++) {
		s->read[i].scan = s;
		s->read[i].buf = aligned_alloc(TRAX_BLOCK_BYTES,
						(size_t)SECTOR_BYTES *
						(READ_SECTORS +
						 OVERLAP_SECTORS));
		if (!s->read[i].buf)
			s->rc = -ENOMEM;
	}
	return s;
}

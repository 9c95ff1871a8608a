/*
 * log_scan.c - reads the log of a file system that cannot be opened, or only to
 * be read, because an acknowledged record or a node that replay needs is
 * missing.
 *
 * All log tracks are read. Records of the root's epoch are chained on from the
 * cut, originals and mirrors alike, up to the first one that cannot be found.
 * Their items go into the set. Data is destaged after the repair has decided
 * which file has which sectors, and only where the set then holds its checksum.
 * That is done for records before the cut, too, because their data may not have
 * reached its place.
 */
#include <errno.h>
#include <string.h>

#include "base/csum.h"
#include "base/sort.h"
#include "check/repair/repair_internal.h"

struct scanned_record {
	uint64_t seq, prev, chain;
	uint64_t sector;
	uint32_t bytes;		/* bytes of the whole record */
	uint32_t payload;
};

/* A block of file data in the log. */
struct logged {
	uint64_t ino, block;
	uint32_t sum;
};

struct log_scan_state {
	struct check *check;
	struct item_set *set;
	struct vec records;	/* struct scanned_record, by sequence */
	struct vec blocks;	/* struct logged, in order */
	uint64_t newer;		/* first record behind a newer root; 0: none */
	uint64_t last;		/* sequence number of the last record of the
				 * chain */
	uint8_t *buf;		/* memory for a record */
	uint8_t *rebuilt;	/* memory for a record that is rebuilt from its
				 * parity */
	uint64_t rebuild_bytes;	/* bytes that may still be hashed for
				 * rebuilding */
};

enum log_pass { LOG_PASS_ITEMS, LOG_PASS_NOTE, LOG_PASS_DESTAGED };

/* ---- Finding records ---- */

static void track_read(struct check *check, uint64_t first, uint64_t n,
		       uint8_t *buf)
{
	uint64_t at, unit = super_record_unit(&check->super) / SECTOR_BYTES;

	memset(buf, 0, n * SECTOR_BYTES);
	if (!device_read(check, first, n, buf))
		return;
	for (at = 0; at < n; at += unit)
		if (device_read(check, first + at, unit,
				buf + at * SECTOR_BYTES))
			memset(buf + at * SECTOR_BYTES, 0,
			       unit * SECTOR_BYTES);
}

static void record_note(struct log_scan_state *log, const struct log_header *h,
			uint64_t sector)
{
	struct scanned_record *record;

	const struct root *root = &log->check->root;
	const uint64_t gen = le64_get(h->gen);
	const bool newer = le64_get(h->epoch) != root->epoch && gen > root->gen;

	if (newer && (!log->newer || le64_get(h->seq) < log->newer))
		log->newer = le64_get(h->seq);
	if (gen > log->check->newest_gen)
		log->check->newest_gen = gen;
	/* Data of older epochs may not be destaged; whether it fits is decided
	 * by the checksums.  What follows a root that is lost goes on from the
	 * chain of the one before it. */
	if (le64_get(h->epoch) != root->epoch && !newer &&
	    le64_get(h->seq) > root->cut_seq)
		return;
	record = check_add(log->check, &log->records);
	if (record)
		*record = (struct scanned_record){
			.seq = le64_get(h->seq),
			.prev = le64_get(h->prev),
			.chain = le64_get(h->chain),
			.sector = sector,
			.bytes = le32_get(h->bytes),
			.payload = le32_get(h->payload),
		};
}

/* The record that begins here: `h`, or what its parity makes of it. NULL: there
 * is none. */
static const struct log_header *record_at(struct log_scan_state *log,
					  const void *h, size_t available,
					  uint64_t sector)
{
	const struct check *check = log->check;

	if (!log_header_verify(h, available, check->super.uuid, sector))
		return h;
	return log_record_rebuild(h, available,
				  super_record_unit(&check->super),
				  check->super.uuid, sector, log->rebuilt,
				  &log->rebuild_bytes) ?
		(const void *)log->rebuilt : NULL;
}

static void track_scan(struct log_scan_state *log,
		       const struct super_track *track)
{
	struct check *check = log->check;
	uint64_t unit = super_record_unit(&check->super) / SECTOR_BYTES;
	uint64_t skip = (unit - track->sector % unit) % unit;
	uint64_t n = track->sectors > skip ?
		     (track->sectors - skip) / unit * unit : 0, at;
	uint8_t *buf = device_buffer(check, n * SECTOR_BYTES + 1);

	if (!buf)
		return;
	track_read(check, track->sector + skip, n, buf);
	for (at = 0; at < n; at += unit) {
		const struct log_header *h =
			record_at(log, buf + at * SECTOR_BYTES,
				  (n - at) * SECTOR_BYTES,
				  track->sector + skip + at);

		if (h)
			record_note(log, h, track->sector + skip + at);
	}
	free(buf);
}

static int record_cmp(const void *a, const void *b)
{
	const struct scanned_record *x = a, *y = b;

	return sort_order(x->seq, y->seq) ?:
	       sort_order(x->sector, y->sector);
}

static size_t record_seek(const struct log_scan_state *log, uint64_t seq)
{
	size_t low = 0, high = log->records.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct scanned_record *record =
			vec_at(&log->records, mid);

		if (record->seq < seq)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The record that follows a chain value; NULL: it is missing. */
static const struct scanned_record *
record_after(const struct log_scan_state *log, uint64_t seq, uint64_t prev)
{
	size_t i;

	for (i = record_seek(log, seq); i < log->records.n; i++) {
		const struct scanned_record *record = vec_at(&log->records, i);

		if (record->seq != seq)
			break;
		if (record->prev == prev)
			return record;
	}
	return NULL;
}

/* ---- Items ---- */

static int range_delete(struct item_set *set, struct key first, struct key last)
{
	size_t i;
	int rc = item_set_merge(set);

	for (i = item_set_seek(set, first); i < item_set_count(set) && !rc;
	     i++) {
		if (key_cmp(item_set_at(set, i)->key, last) > 0)
			break;
		item_set_remove(item_set_at(set, i));
	}
	return rc ? rc : item_set_merge(set);
}

static int entry_apply(struct item_set *set, const struct log_entry *entry)
{
	switch (entry->type) {
	case LOG_PUT:
		if (item_verify(entry->key, entry->value, entry->bytes))
			return 0;
		return item_set_put(set, entry->key, entry->value,
				    entry->bytes);
	case LOG_DEL:
		return item_set_delete(set, entry->key);
	case LOG_DEL_RANGE:
		return range_delete(set, entry->key, entry->last);
	case LOG_DATA:
		break;
	}
	return 0;
}

/* ---- Data ---- */

/* Does the set hold this checksum for a block? */
static bool sum_is(const struct item_set *set, uint64_t ino, uint64_t block,
		   uint64_t sum)
{
	unsigned in = block % TRAX_CSUM_WINDOW_BLOCKS;
	unsigned chunk = in / TRAX_CSUM_CHUNK_BLOCKS;
	unsigned bit = in % TRAX_CSUM_CHUNK_BLOCKS;
	struct item_set_item *item = item_set_find(set, key_make(ino, ITEM_CSUM,
						       block - in));
	struct csum_window w;

	if (!item ||
	    csum_window_decode(item_set_value(set, item), item->bytes, &w))
		return false;
	return (w.mask[chunk] >> bit & 1) &&
	       w.sum[chunk][bit] == (uint32_t)sum;
}

/* Writes a block to the place that the extents of the set give it. */
static int block_place(struct check *check, const struct item_set *set,
		       uint64_t ino, uint64_t block, const uint8_t *data,
		       uint8_t *buf)
{
	uint64_t at = block * TRAX_BLOCK_SECTORS;
	uint64_t end = at + TRAX_BLOCK_SECTORS;
	int rc = 0;

	while (at < end && !rc) {
		size_t i =
			item_set_seek(set, key_make(ino, ITEM_EXTENT, at + 1));
		const struct item_set_item *item =
			i ? item_set_at(set, i - 1) : NULL;
		const struct extent_item *e;
		uint64_t skip, n;

		if (!item || item->key.ino != ino ||
		    item->key.type != ITEM_EXTENT)
			return 0;
		e = item_set_value(set, item);
		skip = at - item->key.off;
		if (skip >= le64_get(e->sectors) ||
		    le64_get(e->addr) > check->super.sectors)
			return 0;
		n = le64_get(e->sectors) - skip;
		if (n > end - at)
			n = end - at;
		memcpy(buf, data, n * SECTOR_BYTES);
		rc = device_write(check, addr_sector(le64_get(e->addr)) + skip,
				  n, buf);
		data += n * SECTOR_BYTES;
		at += n;
	}
	return rc;
}

static int entry_place(struct log_scan_state *log,
		       const struct log_entry *entry, uint8_t *buf)
{
	const uint8_t *data = entry->value;
	unsigned i;
	int rc = 0;

	for (i = 0; i < entry->n && !rc; i++) {
		uint64_t sum = le64_get(entry->sums[i]);
		const uint8_t *block = data + (size_t)i * TRAX_BLOCK_BYTES;

		if (sum_is(log->set, entry->ino, entry->block + i, sum) &&
		    csum(block, TRAX_BLOCK_BYTES) == sum)
			rc = block_place(log->check, log->set, entry->ino,
					entry->block + i, block, buf);
		/* Reads of the block will find that its checksum does not
		 * fit. */
		if (device_place_failed(rc)) {
			problem_report(log->check, PROBLEM_DATA_LOST,
				       (struct problem_place){
					       .ino = entry->ino },
				       (unsigned long long)entry->ino);
			paths_keep(log->check, entry->ino);
			rc = 0;
		}
	}
	return rc;
}

/* ---- Which data there is ---- */

static int logged_cmp(const void *a, const void *b)
{
	const struct logged *x = a, *y = b;

	return sort_order(x->ino, y->ino) ?:
	       sort_order(x->block, y->block) ?:
	       sort_order(x->sum, y->sum);
}

static int entry_note(struct log_scan_state *log, const struct log_entry *entry)
{
	unsigned i;

	for (i = 0; i < entry->n; i++) {
		struct logged *logged = check_add(log->check, &log->blocks);

		if (!logged)
			return -ENOMEM;
		*logged = (struct logged){
			entry->ino, entry->block + i, le64_get(entry->sums[i]),
		};
	}
	return 0;
}

/* ---- Records ---- */

static int entry_pass(struct log_scan_state *log, const struct log_entry *entry,
		      enum log_pass pass, uint8_t *block)
{
	if (pass == LOG_PASS_ITEMS)
		return entry_apply(log->set, entry);
	if (entry->type != LOG_DATA)
		return 0;
	return pass == LOG_PASS_NOTE ? entry_note(log, entry) :
				       entry_place(log, entry, block);
}

static int record_apply(struct log_scan_state *log,
			const struct scanned_record *record, enum log_pass pass)
{
	const struct log_header *h;
	uint8_t *block = device_buffer(log->check, TRAX_BLOCK_BYTES);
	struct log_entry entry;
	size_t off = 0;
	int rc = 0;

	if (!block)
		return -ENOMEM;
	track_read(log->check, record->sector, record->bytes / SECTOR_BYTES,
		   log->buf);
	h = record_at(log, log->buf, record->bytes, record->sector);
	if (!h || le64_get(h->chain) != record->chain)
		rc = -EIO;
	while (!rc) {
		if (log_entry_next(h + 1, record->payload, &off, &entry) ||
		    !entry.type)
			break;
		rc = entry_pass(log, &entry, pass, block);
	}
	free(block);
	return rc;
}

/* Puts the items of the chain into the set, from the cut on. */
static int chain_apply(struct log_scan_state *log)
{
	uint64_t seq = log->check->root.cut_seq;
	uint64_t chain = log->check->root.cut_chain;
	const struct scanned_record *record;
	int rc = 0;

	while ((record = record_after(log, seq + 1, chain)) && !rc) {
		rc = record_apply(log, record, LOG_PASS_ITEMS);
		chain = record->chain;
		seq++;
	}
	log->last = seq;
	return rc ? rc : item_set_merge(log->set);
}

bool log_scan_has(const struct check *check, uint64_t ino, uint64_t block,
		 uint32_t sum)
{
	const struct logged key = { ino, block, sum };
	const struct log_scan_state *log = check->logread;

	return log && log->blocks.n &&
	       bsearch(&key, log->blocks.items, log->blocks.n, sizeof(key),
		       logged_cmp) != NULL;
}

static int records_each(struct log_scan_state *log, enum log_pass pass)
{
	size_t i = record_seek(log, log->check->root.tail_seq);
	int rc = 0;

	for (; i < log->records.n && !rc; i++) {
		const struct scanned_record *record = vec_at(&log->records, i);

		if (record->seq > log->last)
			break;
		rc = record_apply(log, record, pass);
	}
	return rc;
}

static int records_read(struct check *check)
{
	struct log_scan_state *log = calloc(1, sizeof(*log));
	unsigned i;

	check->logread = log;
	if (!log)
		return check_fail(check, -ENOMEM);
	log->check = check;
	vec_init(&log->records, sizeof(struct scanned_record));
	vec_init(&log->blocks, sizeof(struct logged));
	log->buf = device_buffer(check, TRAX_MAX_RECORD_BYTES);
	log->rebuilt = device_buffer(check, TRAX_MAX_RECORD_BYTES);
	log->rebuild_bytes = TRAX_REBUILD_BYTES;
	for (i = 0; i < check->super.log_tracks && log->buf && log->rebuilt;
	     i++)
		track_scan(log, &check->super.log[i]);
	vec_sort(&log->records, record_cmp);
	return check->rc;
}

uint64_t log_scan_newer(struct check *check)
{
	uint64_t newer = 0;

	if (!records_read(check))
		newer = check->logread->newer;
	log_scan_free(check);
	return newer;
}

int log_scan_items(struct check *check, struct item_set *set)
{
	struct log_scan_state *log;
	int rc;

	if (!check->have_root)
		return 0;
	rc = records_read(check);
	log = check->logread;
	if (log)
		log->set = set;
	if (!rc)
		rc = chain_apply(log);
	if (!rc)
		rc = records_each(log, LOG_PASS_NOTE);
	vec_sort(&log->blocks, logged_cmp);
	return rc;
}

int log_scan_destaged(struct check *check)
{
	return check->logread ? records_each(check->logread, LOG_PASS_DESTAGED)
			      : 0;
}

void log_scan_free(struct check *check)
{
	struct log_scan_state *log = check->logread;

	if (!log)
		return;
	free(log->buf);
	free(log->rebuilt);
	vec_fini(&log->records);
	vec_fini(&log->blocks);
	free(log);
	check->logread = NULL;
}

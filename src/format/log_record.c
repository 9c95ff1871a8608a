/*
 * log_record.c - log records and the entries in them.
 *
 * A record's header is covered by its csum, its payload by its chain value,
 * which the header holds.  An entry is a type byte and then what log_entry_type
 * says.
 */
#include <string.h>

#include "base/csum.h"
#include "format/format.h"

static_assert(offsetof(struct log_header, epoch) == 32, "epoch");
static_assert(offsetof(struct log_header, chain) == 88, "chain");

#define UNIT_BYTES 512u		/* the smallest unit of records */
#define MAX_DATA_BLOCKS (TRAX_MAX_RECORD_BYTES / TRAX_BLOCK_BYTES)

uint64_t log_chain(uint64_t epoch, uint64_t seq, uint64_t prev,
		   const void *payload, size_t bytes)
{
	const le64 covered[4] = {
		le64_put(epoch), le64_put(seq), le64_put(prev),
		le64_put(csum(payload, bytes)),
	};

	return csum(covered, sizeof(covered));
}

void log_header_seal(struct log_header *header)
{
	header->csum = le64_put(0);
	header->csum = le64_put(csum(header, sizeof(*header)));
}

static bool header_csum_is_right(const struct log_header *header)
{
	struct log_header copy = *header;

	log_header_seal(&copy);
	return le64_get(copy.csum) == le64_get(header->csum);
}

static const char *verify_fields(const struct log_header *h, size_t available)
{
	const uint32_t bytes = le32_get(h->bytes);
	const uint64_t seq = le64_get(h->seq);

	if (!bytes || bytes % UNIT_BYTES ||
	    bytes > TRAX_MAX_RECORD_BYTES)
		return "record's length is out of range";
	if (bytes > available)
		return "record is cut off";
	if (le32_get(h->payload) > bytes - sizeof(*h))
		return "record's payload is longer than the record";
	if (le32_get(h->flags) & ~(LOG_MIRROR | LOG_PARITY))
		return "record has unknown flags";
	if (!seq || seq == UINT64_MAX)
		return "record's sequence number is out of range";
	if (!(le32_get(h->flags) & LOG_MIRROR) && le64_get(h->acked) >= seq)
		return "record acknowledges itself";
	return NULL;
}

const char *log_header_check(const void *record, size_t available,
			     const uint8_t uuid[16], uint64_t sector)
{
	const struct log_header *h = record;

	if (available < sizeof(*h))
		return "record is cut off";
	if (le32_get(h->magic) != TRAX_LOG_MAGIC)
		return "no record magic";
	if (!header_csum_is_right(h))
		return "record header checksum is wrong";
	if (memcmp(h->uuid, uuid, sizeof(h->uuid)))
		return "record of another file system";
	if (le64_get(h->addr) != addr_make(0, sector))
		return "record belongs to another address";
	return verify_fields(h, available);
}

const char *log_header_verify(const void *record, size_t available,
			      const uint8_t uuid[16], uint64_t sector)
{
	const struct log_header *h = record;
	const char *why = log_header_check(record, available, uuid, sector);

	if (why)
		return why;
	if (le64_get(h->chain) !=
	    log_chain(le64_get(h->epoch), le64_get(h->seq), le64_get(h->prev),
		      h + 1, le32_get(h->payload)))
		return "record payload checksum is wrong";
	return NULL;
}

/* ---- Reading entries ---------------------------------------------------- */

struct entry_reader {
	const uint8_t *p;
	size_t left;
};

static const void *take(struct entry_reader *r, size_t bytes)
{
	const void *p = r->p;

	if (r->left < bytes)
		return NULL;
	r->p += bytes;
	r->left -= bytes;
	return p;
}

static const char entry_cut_off[] = "log entry is cut off";

static const char *read_put(struct entry_reader *r, struct log_entry *e)
{
	const struct disk_key *key = take(r, sizeof(*key));
	const le16 *bytes = take(r, sizeof(*bytes));

	if (!key || !bytes)
		return entry_cut_off;
	e->key = key_get(key);
	e->bytes = le16_get(*bytes);
	e->value = take(r, e->bytes);
	if (!e->value)
		return entry_cut_off;
	return item_verify(e->key, e->value, e->bytes);
}

static const char *read_del(struct entry_reader *r, struct log_entry *e)
{
	const struct disk_key *key = take(r, sizeof(*key));

	if (!key)
		return entry_cut_off;
	e->key = key_get(key);
	return NULL;
}

static const char *read_del_range(struct entry_reader *r, struct log_entry *e)
{
	const struct disk_key *keys = take(r, 2 * sizeof(*keys));

	if (!keys)
		return entry_cut_off;
	e->key = key_get(&keys[0]);
	e->last = key_get(&keys[1]);
	if (key_cmp(e->key, e->last) > 0)
		return "log entry deletes an empty range";
	return NULL;
}

struct data_head {
	le64 ino, block;
	le16 n;
};
static_assert(sizeof(struct data_head) == 18, "data_head");

static const char *read_data(struct entry_reader *r, struct log_entry *e)
{
	const struct data_head *head = take(r, sizeof(*head));

	if (!head)
		return entry_cut_off;
	e->ino = le64_get(head->ino);
	e->block = le64_get(head->block);
	e->n = le16_get(head->n);
	if (!e->ino || e->ino >= TRAX_MAX_INO)
		return "logged data of no valid inode number";
	if (!e->n || e->n > MAX_DATA_BLOCKS ||
	    e->block >= TRAX_MAX_FILE_BLOCKS ||
	    e->n > TRAX_MAX_FILE_BLOCKS - e->block)
		return "logged data lies outside any file";
	e->sums = take(r, e->n * sizeof(le64));
	e->bytes = (size_t)e->n * TRAX_BLOCK_BYTES;
	e->value = take(r, e->bytes);
	return e->sums && e->value ? NULL : entry_cut_off;
}

const char *log_entry_next(const void *payload, size_t bytes, size_t *off,
			   struct log_entry *entry)
{
	struct entry_reader r = {(const uint8_t *)payload + *off, bytes - *off};
	const uint8_t *type = take(&r, 1);
	const char *why;

	memset(entry, 0, sizeof(*entry));
	if (!type)
		return NULL;
	switch (*type) {
	case LOG_PUT:
		why = read_put(&r, entry);
		break;
	case LOG_DEL:
		why = read_del(&r, entry);
		break;
	case LOG_DEL_RANGE:
		why = read_del_range(&r, entry);
		break;
	case LOG_DATA:
		why = read_data(&r, entry);
		break;
	default:
		return "log entry of an unknown type";
	}
	entry->type = *type;
	*off = bytes - r.left;
	return why;
}

/* ---- Writing entries ---------------------------------------------------- */

static uint8_t *put(uint8_t *p, const void *field, size_t bytes)
{
	memcpy(p, field, bytes);
	return p + bytes;
}

static uint8_t *put_key(uint8_t *p, struct key key)
{
	const struct disk_key k = key_put(key);

	return put(p, &k, sizeof(k));
}

size_t log_entry_put(void *buf, struct key key, const void *value,
		     size_t bytes)
{
	const le16 n = le16_put((uint16_t)bytes);
	uint8_t *p = buf;

	assert(bytes && bytes <= TRAX_MAX_ITEM_BYTES);
	*p++ = LOG_PUT;
	p = put_key(p, key);
	p = put(p, &n, sizeof(n));
	p = put(p, value, bytes);
	return (size_t)(p - (uint8_t *)buf);
}

size_t log_entry_del(void *buf, struct key key)
{
	uint8_t *p = buf;

	*p++ = LOG_DEL;
	p = put_key(p, key);
	return (size_t)(p - (uint8_t *)buf);
}

size_t log_entry_del_range(void *buf, struct key first, struct key last)
{
	uint8_t *p = buf;

	*p++ = LOG_DEL_RANGE;
	p = put_key(p, first);
	p = put_key(p, last);
	return (size_t)(p - (uint8_t *)buf);
}

size_t log_entry_data(void *buf, uint64_t ino, uint64_t block, unsigned n,
		      const uint64_t *sums)
{
	const struct data_head head = {
		le64_put(ino), le64_put(block), le16_put((uint16_t)n),
	};
	uint8_t *p = buf;

	assert(n && n <= MAX_DATA_BLOCKS);
	*p++ = LOG_DATA;
	p = put(p, &head, sizeof(head));
	for (unsigned i = 0; i < n; i++) {
		const le64 sum = le64_put(sums[i]);

		p = put(p, &sum, sizeof(sum));
	}
	return (size_t)(p - (uint8_t *)buf);
}

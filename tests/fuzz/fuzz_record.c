/*
 * fuzz_record.c - any bytes as a log record: as they are, and with checksums
 * made right, so that the entries are reached.
 */
#include <assert.h>
#include <string.h>

#include "base/csum.h"
#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define SECTOR 4096u

static void walk(const uint8_t *payload, size_t bytes)
{
	struct log_entry e;
	size_t off = 0, before;

	do {
		before = off;
		if (log_entry_next(payload, bytes, &off, &e))
			return;
		assert(off <= bytes && (!e.type || off > before));
		if (e.type == LOG_PUT)
			csum(e.value, e.bytes);
	} while (e.type);
	assert(off == bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const uint8_t uuid[16];
	static uint8_t record[64 << 10];
	struct log_header *h = (void *)record;
	const uint8_t *payload = (const uint8_t *)(h + 1);

	memset(record, 0, sizeof(record));
	if (bytes > sizeof(record))
		bytes = sizeof(record);
	memcpy(record, data, bytes);
	log_header_verify(record, bytes, uuid, SECTOR);
	h->magic = le32_put(TRAX_LOG_MAGIC);
	memset(h->uuid, 0, sizeof(h->uuid));
	h->addr = le64_put(SECTOR);
	if (le32_get(h->payload) <= sizeof(record) - sizeof(*h))
		h->chain = le64_put(log_chain(le64_get(h->epoch),
					      le64_get(h->seq),
					      le64_get(h->prev), payload,
					      le32_get(h->payload)));
	log_header_seal(h);
	if (!log_header_verify(record, sizeof(record), uuid, SECTOR))
		walk(payload, le32_get(h->payload));
	if (bytes > sizeof(*h))
		walk(payload, bytes - sizeof(*h));
	return 0;
}

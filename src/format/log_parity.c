/*
 * log_parity.c - the last unit of a log record is the exclusive or of all units
 * before it.
 *
 * With it a record is made whole again if any one unit cannot be read or is not
 * what was written. It need not be known which unit that is: each unit in turn
 * is made from the others, and the checksums of header and payload tell which
 * one was bad. If the bad unit is the header's, the length of the record is not
 * known either: each possible length is tried, and the right one yields a
 * header that gives the same length.
 */
#include <string.h>

#include "format/format.h"

static uint64_t word_get(const void *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

static void unit_xor(uint8_t *to, const uint8_t *from, size_t unit)
{
	for (size_t i = 0; i < unit; i += sizeof(uint64_t)) {
		const uint64_t word = word_get(to + i) ^ word_get(from + i);

		memcpy(to + i, &word, sizeof(word));
	}
}

void log_parity(const void *record, size_t bytes, size_t unit, void *parity)
{
	memset(parity, 0, unit);
	for (size_t at = 0; at < bytes; at += unit)
		unit_xor(parity, (const uint8_t *)record + at, unit);
}

/* Is the header of a record with parity whole, whatever the rest is? */
static bool header_is_whole(const struct log_header *h, size_t available,
			    size_t unit, const uint8_t uuid[16],
			    uint64_t sector)
{
	const size_t bytes = le32_get(h->bytes);

	return !log_header_check(h, available, uuid, sector) &&
	       (le32_get(h->flags) & LOG_PARITY) && !(bytes % unit) &&
	       bytes >= 2 * unit;
}

/* Makes each unit in turn from the others, until the checksums are right. */
static bool units_try(uint8_t *out, size_t bytes, size_t unit,
		      const uint8_t uuid[16], uint64_t sector, uint64_t *budget)
{
	uint8_t wrong[TRAX_MAX_UNIT_BYTES];

	log_parity(out, bytes, unit, wrong);
	for (size_t at = 0; at + unit < bytes && *budget >= bytes; at += unit) {
		*budget -= bytes;
		unit_xor(out + at, wrong, unit);
		if (!log_header_verify(out, bytes, uuid, sector))
			return true;
		unit_xor(out + at, wrong, unit);
	}
	return false;
}

/* The length of the record whose first unit is bad; 0: there is none. */
static size_t length_find(const uint8_t *record, size_t available, size_t unit)
{
	uint64_t word = 0;

	for (size_t at = unit; at + unit <= available; at += unit) {
		struct {
			le32 magic, bytes;
		} begin;

		word ^= word_get(record + at);
		memcpy(&begin, &word, sizeof(begin));
		if (le32_get(begin.magic) == TRAX_LOG_MAGIC &&
		    le32_get(begin.bytes) == at + unit)
			return at + unit;
	}
	return 0;
}

bool log_record_rebuild(const void *record, size_t available, size_t unit,
			const uint8_t uuid[16], uint64_t sector, void *out,
			uint64_t *budget)
{
	uint8_t *to = out;
	size_t bytes;

	if (available > TRAX_MAX_RECORD_BYTES)
		available = TRAX_MAX_RECORD_BYTES;
	if (available < 2 * unit)
		return false;
	if (header_is_whole(record, available, unit, uuid, sector)) {
		bytes = le32_get(((const struct log_header *)record)->bytes);
		memcpy(out, record, bytes);
		return units_try(out, bytes, unit, uuid, sector, budget);
	}
	bytes = length_find(record, available, unit);
	if (!bytes || *budget < bytes)
		return false;
	*budget -= bytes;
	memcpy(to + unit, (const uint8_t *)record + unit, bytes - unit);
	log_parity(to + unit, bytes - unit, unit, to);
	return header_is_whole(out, bytes, unit, uuid, sector) &&
	       !log_header_verify(out, bytes, uuid, sector);
}

/*
 * profile_code.c - the record of a profile in the file system.
 *
 * A header of fixed size, the seek curve, the record of the geometry
 * (geom_code.c), and the state of a measurement under way.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/le.h"
#include "base/msg.h"
#include "diskmodel/profile.h"

#define RECORD_MAGIC 0x666f7270u	/* "prof" */
#define GEOM_MAGIC 0x6d6f6567u		/* "geom": a geometry alone */
#define RECORD_VERSION 1u
#define RECORD_PARTS 16u		/* parts that the header has room for */

/* Flags of a record: what struct service_mech says of zero latency. */
#define FLAG_ZERO_LATENCY_READ 1u
#define FLAG_ZERO_LATENCY_WRITE 2u
#define FLAGS_KNOWN 3u

struct disk_part {
	le32 method;
	le32 confidence_ppm;
};

struct disk_seek {
	le32 cylinders;
	le64 ns;
};

struct trax_profile_record {
	le32 magic;
	le32 version;
	le64 bytes;		/* bytes of the record */
	le64 csum;		/* checksum of the record, with 0 in this
				 * field */
	le64 sectors;
	le64 made_wall_ns;
	le64 period_ps;
	le64 head_switch_ns;
	le64 write_settle_ns;
	le64 read_overhead_ns;
	le64 write_overhead_ns;
	le64 hit_overhead_ns;
	le64 bus_bytes_per_s;
	le32 physical_bytes;
	le32 flags;
	le32 read_ahead_sectors;
	le32 idle_mw;
	le32 active_mw;
	le32 seek_mw;
	le32 seeks;
	le32 geom_bytes;
	le32 progress_bytes;
	le32 reserved;
	char model[64];
	char serial[64];
	char firmware[32];
	struct disk_part part[RECORD_PARTS];
};

static_assert(sizeof(struct trax_profile_record) == 424, "size of the record");
static_assert(offsetof(struct trax_profile_record, csum) == 16, "csum");
static_assert(PROFILE_PARTS <= RECORD_PARTS, "room for the parts");

static le32 milliwatts(double w)
{
	return le32_put((uint32_t)lround(w * 1000));
}

static void encode_head(const struct profile *p,
			struct trax_profile_record *rec)
{
	const struct service_mech *m = &p->mech;

	rec->magic = le32_put(RECORD_MAGIC);
	rec->version = le32_put(RECORD_VERSION);
	rec->sectors = le64_put(p->sectors);
	rec->made_wall_ns = le64_put((uint64_t)p->made_wall_ns);
	rec->period_ps = le64_put(m->period_ps);
	rec->head_switch_ns = le64_put(m->head_switch_ns);
	rec->write_settle_ns = le64_put(m->write_settle_ns);
	rec->read_overhead_ns = le64_put(p->read_overhead_ns);
	rec->write_overhead_ns = le64_put(p->write_overhead_ns);
	rec->hit_overhead_ns = le64_put(p->hit_overhead_ns);
	rec->bus_bytes_per_s = le64_put(m->bus_bytes_per_s);
	rec->physical_bytes = le32_put(p->physical_bytes);
	rec->flags = le32_put(
		(m->zero_latency_read ? FLAG_ZERO_LATENCY_READ : 0) |
		(m->zero_latency_write ? FLAG_ZERO_LATENCY_WRITE : 0));
	rec->read_ahead_sectors = le32_put(p->read_ahead_sectors);
	rec->idle_mw = milliwatts(p->idle_w);
	rec->active_mw = milliwatts(p->active_w);
	rec->seek_mw = milliwatts(p->seek_w);
	rec->seeks = le32_put(m->seek_n);
	memcpy(rec->model, p->model, sizeof(rec->model));
	memcpy(rec->serial, p->serial, sizeof(rec->serial));
	memcpy(rec->firmware, p->firmware, sizeof(rec->firmware));
	for (int i = 0; i < PROFILE_PARTS; i++) {
		rec->part[i].method = le32_put(p->part[i].method);
		rec->part[i].confidence_ppm =
			le32_put(p->part[i].confidence_ppm);
	}
}

/* Encodes everything behind the header; returns its end. */
static uint8_t *encode_rest(const struct profile *p, const void *geom,
			    size_t geom_bytes, uint8_t *at)
{
	for (uint32_t i = 0; i < p->mech.seek_n; i++) {
		const struct disk_seek seek = {
			le32_put(p->mech.seek[i].cylinders),
			le64_put(p->mech.seek[i].ns),
		};

		memcpy(at, &seek, sizeof(seek));
		at += sizeof(seek);
	}
	memcpy(at, geom, geom_bytes);
	at += geom_bytes;
	if (p->progress_bytes)
		memcpy(at, p->progress, p->progress_bytes);
	return at + p->progress_bytes;
}

int profile_encode(const struct profile *profile, void **buf, size_t *bytes)
{
	struct trax_profile_record *rec;
	const char *why = profile_verify(profile);
	size_t geom_bytes;
	void *geom;
	int err;

	if (why) {
		msg_error("profile of the drive: %s", why);
		return -EINVAL;
	}
	err = geom_encode(profile->geom, &geom, &geom_bytes);
	if (err)
		return err;
	*bytes = sizeof(*rec) +
		 profile->mech.seek_n * sizeof(struct disk_seek) +
		 geom_bytes + profile->progress_bytes;
	rec = calloc(1, *bytes);
	if (!rec) {
		free(geom);
		return -ENOMEM;
	}
	encode_head(profile, rec);
	rec->bytes = le64_put(*bytes);
	rec->geom_bytes = le32_put((uint32_t)geom_bytes);
	rec->progress_bytes = le32_put((uint32_t)profile->progress_bytes);
	encode_rest(profile, geom, geom_bytes, (uint8_t *)(rec + 1));
	free(geom);
	rec->csum = le64_put(csum(rec, *bytes));
	*buf = rec;
	return 0;
}

static const char *head_verify(const struct trax_profile_record *rec,
			       size_t bytes)
{
	uint64_t rest = (uint64_t)le32_get(rec->seeks) *
			sizeof(struct disk_seek) +
			le32_get(rec->geom_bytes) +
			(uint64_t)le32_get(rec->progress_bytes);

	if (le32_get(rec->version) != RECORD_VERSION)
		return "its version is not known";
	if (rest != bytes - sizeof(*rec))
		return "its parts do not add up to its length";
	if (le32_get(rec->seeks) > UINT16_MAX ||
	    le32_get(rec->progress_bytes) > PROFILE_MAX_PROGRESS)
		return "a part is too long";
	if (le32_get(rec->flags) & ~FLAGS_KNOWN || le32_get(rec->reserved))
		return "it has flags that are not known";
	return NULL;
}

static int sum_verify(const void *buf, size_t bytes)
{
	struct trax_profile_record *copy;
	uint64_t sum, stored;

	copy = malloc(bytes);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, buf, bytes);
	stored = le64_get(copy->csum);
	copy->csum = le64_put(0);
	sum = csum(copy, bytes);
	free(copy);
	return sum == stored ? 0 : -EBADMSG;
}

static void decode_head(const struct trax_profile_record *rec,
			struct profile *p)
{
	struct service_mech *m = &p->mech;
	uint32_t flags = le32_get(rec->flags);

	p->sectors = le64_get(rec->sectors);
	p->made_wall_ns = (int64_t)le64_get(rec->made_wall_ns);
	m->period_ps = le64_get(rec->period_ps);
	m->head_switch_ns = le64_get(rec->head_switch_ns);
	m->write_settle_ns = le64_get(rec->write_settle_ns);
	p->read_overhead_ns = le64_get(rec->read_overhead_ns);
	p->write_overhead_ns = le64_get(rec->write_overhead_ns);
	p->hit_overhead_ns = le64_get(rec->hit_overhead_ns);
	m->bus_bytes_per_s = le64_get(rec->bus_bytes_per_s);
	p->physical_bytes = le32_get(rec->physical_bytes);
	m->zero_latency_read = flags & FLAG_ZERO_LATENCY_READ;
	m->zero_latency_write = flags & FLAG_ZERO_LATENCY_WRITE;
	p->read_ahead_sectors = le32_get(rec->read_ahead_sectors);
	p->idle_w = le32_get(rec->idle_mw) / 1000.0;
	p->active_w = le32_get(rec->active_mw) / 1000.0;
	p->seek_w = le32_get(rec->seek_mw) / 1000.0;
	memcpy(p->model, rec->model, sizeof(p->model));
	memcpy(p->serial, rec->serial, sizeof(p->serial));
	memcpy(p->firmware, rec->firmware, sizeof(p->firmware));
	for (int i = 0; i < PROFILE_PARTS; i++) {
		p->part[i].method = (enum profile_method)
			le32_get(rec->part[i].method);
		p->part[i].confidence_ppm =
			le32_get(rec->part[i].confidence_ppm);
	}
}

static int decode_rest(const struct trax_profile_record *rec,
		       struct profile *p)
{
	const uint8_t *at = (const uint8_t *)(rec + 1);
	uint32_t n = le32_get(rec->seeks);
	struct disk_seek seek;

	p->mech.seek = calloc(n + 1u, sizeof(*p->mech.seek));
	p->progress_bytes = le32_get(rec->progress_bytes);
	if (p->progress_bytes)
		p->progress = malloc(p->progress_bytes);
	if (!p->mech.seek || (p->progress_bytes && !p->progress))
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		memcpy(&seek, at, sizeof(seek));
		p->mech.seek[i].cylinders = le32_get(seek.cylinders);
		p->mech.seek[i].ns = le64_get(seek.ns);
		at += sizeof(seek);
	}
	p->mech.seek_n = n;
	if (p->progress_bytes)
		memcpy(p->progress, at + le32_get(rec->geom_bytes),
		       p->progress_bytes);
	return geom_decode(at, le32_get(rec->geom_bytes), &p->geom);
}

static int decode(const struct trax_profile_record *rec,
		  struct profile **profile)
{
	struct profile *p = calloc(1, sizeof(*p));
	const char *why;
	int err;

	if (!p)
		return -ENOMEM;
	decode_head(rec, p);
	err = decode_rest(rec, p);
	why = err ? NULL : profile_verify(p);
	if (why) {
		msg_error("profile record: %s", why);
		err = -EUCLEAN;
	}
	if (err) {
		profile_free(p);
		return err;
	}
	*profile = p;
	return 0;
}

static int decode_geom_alone(const void *buf, size_t bytes,
			     struct profile **profile)
{
	struct geom *geom;
	int err = geom_decode(buf, bytes, &geom);

	if (err)
		return err;
	*profile = profile_from_geom(geom, PROFILE_GIVEN);
	if (*profile)
		return 0;
	geom_free(geom);
	return -ENOMEM;
}

int profile_decode(const void *buf, size_t bytes, struct profile **profile)
{
	const struct trax_profile_record *rec = buf;
	const char *why;
	int err;

	if (bytes >= sizeof(rec->magic) && le32_get(rec->magic) == GEOM_MAGIC)
		return decode_geom_alone(buf, bytes, profile);
	if (bytes < sizeof(*rec) || le32_get(rec->magic) != RECORD_MAGIC ||
	    le64_get(rec->bytes) != bytes) {
		msg_error("profile record: bad magic or length");
		return -EBADMSG;
	}
	err = sum_verify(buf, bytes);
	if (err) {
		if (err == -EBADMSG)
			msg_error("profile record: bad checksum");
		return err;
	}
	why = head_verify(rec, bytes);
	if (why) {
		msg_error("profile record: %s", why);
		return -EUCLEAN;
	}
	return decode(rec, profile);
}

/*
 * data_sums.c - reads all file data and compares it with its checksums.
 *
 * What one checksum covers is a unit: a block of a file, in one or more
 * fragments on the device.  Units are collected in key order up to CHUNK_BYTES,
 * read in order of address, and compared.
 */
#include <errno.h>
#include <string.h>

#include "base/csum.h"
#include "base/sort.h"
#include "check/scan/check_internal.h"

/* Most bytes of data that are read in the order of the disk and then checked: a
 * round number.  More means fewer seeks, and more memory. */
#define CHUNK_BYTES (32u << 20)
/* A file system with less data than this has a buffer of this size. */
#define MIN_CHUNK_BYTES (1u << 20)

struct data_extent {
	uint64_t off, sectors, sector;
};

struct unit {
	uint64_t ino, block;
	uint32_t at;		/* its place in the buffer, in blocks */
	uint32_t sum;
	uint64_t sector;	/* sector of its first fragment */
	bool copy;		/* it is a replica */
	int rc;
};

struct data_fragment {
	uint64_t sector;
	uint32_t sectors;
	uint32_t unit;
	uint32_t off;		/* sectors from the unit's start */
	uint8_t *bounce;	/* memory of its own; NULL: it is read in
				 * place */
};

struct data_check {
	struct check *check;
	uint64_t ino;
	struct vec extents;	/* extents of inode `ino`, in order */
	size_t extent_at;
	struct vec units, fragments;
	uint32_t blocks;	/* blocks of the units so far */
	uint8_t *buf;
	uint32_t buf_blocks;
	uint64_t done_bytes;
};

/* ---- Reading a chunk ---- */

static uint8_t *fragment_place(const struct data_check *data,
			      const struct data_fragment *fragment)
{
	const struct unit *unit = vec_at(&data->units, fragment->unit);

	return data->buf + (size_t)unit->at * TRAX_BLOCK_BYTES +
	       (size_t)fragment->off * SECTOR_BYTES;
}

/* Fragments that are no whole blocks cannot be read to their place in the
 * buffer, because memory of requests is aligned. */
static bool fragment_bounces(const struct data_fragment *fragment)
{
	return fragment->off % TRAX_BLOCK_SECTORS ||
	       fragment->sectors % TRAX_BLOCK_SECTORS;
}

static uint8_t *fragment_buffer(struct data_check *data,
				struct data_fragment *fragment)
{
	if (!fragment_bounces(fragment))
		return fragment_place(data, fragment);
	fragment->bounce = device_buffer(data->check,
					 (size_t)fragment->sectors *
					 SECTOR_BYTES);
	return fragment->bounce;
}

static int fragment_cmp(const void *a, const void *b)
{
	const struct data_fragment *x = a, *y = b;

	return sort_order(x->sector, y->sector) ?:
	       sort_order(x->unit, y->unit);
}

/* Reads and fragments are both in order of address. */
static void chunk_results(struct data_check *data,
			  const struct device_read *reads)
{
	size_t i;

	for (i = 0; i < data->fragments.n; i++) {
		struct data_fragment *f = vec_at(&data->fragments, i);
		struct unit *unit = vec_at(&data->units, f->unit);

		if (reads[i].rc)
			unit->rc = reads[i].rc;
		if (f->bounce)
			memcpy(fragment_place(data, f), f->bounce,
			       (size_t)f->sectors * SECTOR_BYTES);
		free(f->bounce);
		f->bounce = NULL;
	}
}

static void chunk_read(struct data_check *data)
{
	struct vec *fragments = &data->fragments;
	struct device_read *reads = calloc(fragments->n, sizeof(*reads));
	size_t i;

	if (!reads) {
		check_fail(data->check, -ENOMEM);
		return;
	}
	vec_sort(fragments, fragment_cmp);
	for (i = 0; i < fragments->n; i++) {
		struct data_fragment *f = vec_at(fragments, i);

		reads[i].sector = f->sector;
		reads[i].sectors = f->sectors;
		reads[i].buf = fragment_buffer(data, f);
	}
	if (!data->check->rc)
		device_read_many(data->check, reads, fragments->n);
	if (!data->check->rc)
		chunk_results(data, reads);
	free(reads);
}

static void unit_compare(struct data_check *data, const struct unit *unit)
{
	const size_t bytes = TRAX_BLOCK_BYTES;
	const uint8_t *p = data->buf + (size_t)unit->at * TRAX_BLOCK_BYTES;
	struct check_result *result = data->check->result;

	result->bytes_verified += bytes;
	if (!unit->rc && csum_block(p) == unit->sum)
		return;
	if (unit->copy) {
		copies_wrong(data->check, unit->ino, unit->block, unit->sector,
			     unit->rc ? "cannot be read" :
					"differs from its original");
		return;
	}
	result->bytes_bad += bytes;
	problem_report(data->check,
		       unit->rc ? PROBLEM_DATA_READ : PROBLEM_DATA_BAD,
		       (struct problem_place){ unit->ino, unit->sector },
		       (unsigned long long)unit->ino,
		       (unsigned long long)unit->block * TRAX_BLOCK_BYTES,
		       (unsigned long long)bytes,
		       (unsigned long long)unit->sector);
}

static void chunk_verify(struct data_check *data)
{
	struct check *check = data->check;
	size_t i;

	chunk_read(data);
	for (i = 0; i < data->units.n && !check->rc; i++)
		unit_compare(data, vec_at(&data->units, i));
	data->done_bytes += (uint64_t)data->blocks * TRAX_BLOCK_BYTES;
	check_progress(check, "data", data->done_bytes,
		       check->result->data_sectors * SECTOR_BYTES);
	data->units.n = 0;
	data->fragments.n = 0;
	data->blocks = 0;
}

/* ---- Collecting units ---- */

/* The first extent that ends behind `sector` of the file; moves the cursor. */
static const struct data_extent *extent_at(struct data_check *data,
					   uint64_t sector)
{
	while (data->extent_at < data->extents.n) {
		const struct data_extent *e = vec_at(&data->extents,
						data->extent_at);

		if (e->off + e->sectors > sector)
			return e;
		data->extent_at++;
	}
	return NULL;
}

/* Fragments of [from, end) of the file; false: it is not all mapped. */
static bool unit_map(struct data_check *data, struct unit *unit)
{
	uint64_t from = unit->block * TRAX_BLOCK_SECTORS, at = from;
	uint64_t end = from + TRAX_BLOCK_SECTORS;

	while (at < end) {
		const struct data_extent *e = extent_at(data, at);
		struct data_fragment *f;
		uint64_t n;

		if (!e || e->off > at)
			return false;
		n = e->off + e->sectors - at;
		f = check_add(data->check, &data->fragments);
		if (!f)
			return false;
		*f = (struct data_fragment){
			.sector = e->sector + (at - e->off),
			.sectors = (uint32_t)(n < end - at ? n : end - at),
			.unit = (uint32_t)data->units.n - 1,
			.off = (uint32_t)(at - from),
		};
		if (at == from)
			unit->sector = f->sector;
		at += f->sectors;
	}
	return true;
}

static void unit_add(struct data_check *data, uint64_t block, uint32_t sum)
{
	size_t fragments = data->fragments.n;
	struct unit *unit = check_add(data->check, &data->units);

	if (!unit)
		return;
	*unit = (struct unit){
		.ino = data->ino,
		.block = block,
		.at = data->blocks,
		.sum = sum,
	};
	if (!unit_map(data, unit)) {
		/* The checksum belongs to no block, which the first walk has
		 * reported. */
		data->fragments.n = fragments;
		data->units.n--;
		return;
	}
	data->blocks++;
}

static void chunk_add(struct data_check *data, uint64_t block,
		      const struct csum_window *w, unsigned chunk)
{
	unsigned b;

	for (b = 0; b < TRAX_CSUM_CHUNK_BLOCKS; b++)
		if (w->mask[chunk] >> b & 1)
			unit_add(data, block + b, w->sum[chunk][b]);
}

/* ---- Copies ---- */

static void copy_unit(struct data_check *data, uint64_t block, uint32_t sum,
		      uint64_t sector)
{
	struct unit *unit = check_add(data->check, &data->units);
	struct data_fragment *f = check_add(data->check, &data->fragments);

	if (!unit || !f)
		return;
	*unit = (struct unit){
		.ino = data->ino, .block = block, .at = data->blocks,
		.sum = sum, .sector = sector, .copy = true,
	};
	*f = (struct data_fragment){
		.sector = sector, .sectors = TRAX_BLOCK_SECTORS,
		.unit = (uint32_t)data->units.n - 1,
	};
	data->blocks++;
}

/* Adds one replica of blocks of this chunk. */
static void copy_add(struct data_check *data, const struct copy_seen *copy,
		     const struct csum_window *w, unsigned chunk)
{
	unsigned first = copy->block % TRAX_CSUM_CHUNK_BLOCKS, b;

	for (b = 0; b < copy->blocks; b++) {
		if (!(w->mask[chunk] >> (first + b) & 1)) {
			copies_wrong(data->check, data->ino, copy->block,
				     copy->sector, "has no original");
			return;
		}
		copy_unit(data, copy->block + b, w->sum[chunk][first + b],
			  copy->sector + b * TRAX_BLOCK_SECTORS);
	}
}

/* Replicas of earlier blocks of this file are passed over: their originals are
 * gone. */
static const struct copy_seen *copy_next(struct data_check *data, uint64_t ino,
					 uint64_t block)
{
	struct copies *copies = &data->check->copies;

	for (; copies->at < copies->list.n; copies->at++) {
		const struct copy_seen *copy = vec_at(&copies->list,
						      copies->at);

		if (copy->ino > ino ||
		    (copy->ino == ino && copy->block >= block))
			return copy;
		copies_wrong(data->check, copy->ino, copy->block, copy->sector,
			     "has no original");
	}
	return NULL;
}

static void copies_add(struct data_check *data, uint64_t block,
		       const struct csum_window *w, unsigned chunk)
{
	const struct copy_seen *copy;

	while ((copy = copy_next(data, data->ino, block)) &&
	       copy->ino == data->ino &&
	       copy->block < block + TRAX_CSUM_CHUNK_BLOCKS) {
		if (data->blocks + TRAX_CSUM_CHUNK_BLOCKS > data->buf_blocks)
			chunk_verify(data);
		copy_add(data, copy, w, chunk);
		data->check->copies.at++;
	}
}

static void window_add(struct data_check *data, uint64_t block,
		       const void *value, size_t bytes)
{
	struct csum_window window;
	unsigned i;

	if (csum_window_decode(value, bytes, &window))
		return;
	for (i = 0; i < TRAX_CSUM_CHUNKS; i++) {
		if (!window.mask[i])
			continue;
		if (data->blocks + TRAX_CSUM_CHUNK_BLOCKS > data->buf_blocks)
			chunk_verify(data);
		chunk_add(data, block + i * TRAX_CSUM_CHUNK_BLOCKS, &window,
			  i);
		copies_add(data, block + i * TRAX_CSUM_CHUNK_BLOCKS, &window,
			   i);
	}
}

static void extent_add(struct data_check *data, uint64_t off,
		       const struct extent_item *item)
{
	struct data_extent *e = check_add(data->check, &data->extents);

	if (e)
		*e = (struct data_extent){ off, le64_get(item->sectors),
				      addr_sector(le64_get(item->addr)) };
}

static void data_item(struct check *check, struct key key, const void *value,
		      size_t bytes)
{
	struct data_check *data = check->data;

	if (key.ino != data->ino) {
		data->ino = key.ino;
		data->extents.n = 0;
		data->extent_at = 0;
	}
	if (key.ino && key.type == ITEM_EXTENT)
		extent_add(data, key.off, value);
	else if (key.ino && key.type == ITEM_CSUM)
		window_add(data, key.off, value, bytes);
}

/* A chunk need not be larger than all the data there is. */
static uint32_t chunk_bytes(const struct check *check)
{
	uint64_t bytes = check->result->data_sectors * SECTOR_BYTES;

	if (bytes > CHUNK_BYTES)
		return CHUNK_BYTES;
	return bytes < MIN_CHUNK_BYTES ? MIN_CHUNK_BYTES :
		(uint32_t)(bytes & ~(TRAX_BLOCK_BYTES - 1ull));
}

void data_verify(struct check *check)
{
	struct data_check data = { .check = check };

	vec_init(&data.extents, sizeof(struct data_extent));
	vec_init(&data.units, sizeof(struct unit));
	vec_init(&data.fragments, sizeof(struct data_fragment));
	data.buf_blocks = chunk_bytes(check) / TRAX_BLOCK_BYTES;
	data.buf = device_buffer(check, chunk_bytes(check));
	check->data = &data;
	if (data.buf)
		walk_tree(check, false, data_item);
	if (data.units.n && !check->rc)
		chunk_verify(&data);
	if (!check->rc)
		copy_next(&data, UINT64_MAX, 0);
	check->data = NULL;
	free(data.buf);
	vec_fini(&data.extents);
	vec_fini(&data.units);
	vec_fini(&data.fragments);
}

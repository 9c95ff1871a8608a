/*
 * check_io.c - reads and writes, waited for.
 *
 * Many small reads are sorted by address and those that touch become one
 * request; a request that fails is tried again in its single parts, so that one
 * bad sector costs only what lies on it.
 */
#include <errno.h>
#include <string.h>

#include "base/sort.h"
#include "check/scan/check_internal.h"

/* Most requests that are outstanding: a round number, as many as SATA drives
 * queue. */
#define BATCH_REQUESTS 32u
/* Most buffers that one request reads into; longer neighbourhoods are several
 * requests. */
#define REQUEST_IOV 64u
/* Most sectors of a request, 1 MiB, when the disk allows more. */
#define SPLIT_SECTORS 2048u

void *device_buffer(struct check *check, size_t bytes)
{
	void *buf = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

	if (!buf)
		check_fail(check, -ENOMEM);
	return buf;
}

static int device_allows(const struct check *check, uint64_t sector,
			 uint64_t sectors)
{
	const struct disk_limits *limits = &check->disk->limits;
	uint64_t unit = limits->logical_bytes / SECTOR_BYTES;

	if (sector > limits->sectors || sectors > limits->sectors - sector)
		return -ERANGE;
	return sector % unit || sectors % unit ? -ERANGE : 0;
}

static uint32_t device_step(const struct check *check, uint64_t left)
{
	uint32_t max = check->disk->limits.max_sectors;

	if (!max || max > SPLIT_SECTORS)
		max = SPLIT_SECTORS;
	max &= ~(TRAX_BLOCK_SECTORS - 1);
	return left < max ? (uint32_t)left : max;
}

int device_read(struct check *check, uint64_t sector, uint64_t sectors,
		void *buf)
{
	int rc = device_allows(check, sector, sectors);

	while (rc == 0 && sectors) {
		uint32_t n = device_step(check, sectors);

		rc = disk_read(check->disk, sector, n, buf);
		sector += n;
		sectors -= n;
		buf = (char *)buf + (size_t)n * SECTOR_BYTES;
	}
	return rc;
}

int device_write(struct check *check, uint64_t sector, uint64_t sectors,
		 const void *buf)
{
	int rc = device_allows(check, sector, sectors);

	if (!check->options.repair)
		return -EROFS;
	check->result->changed = true;
	while (rc == 0 && sectors) {
		uint32_t n = device_step(check, sectors);

		rc = disk_write(check->disk, sector, n, buf);
		sector += n;
		sectors -= n;
		buf = (const char *)buf + (size_t)n * SECTOR_BYTES;
	}
	return rc;
}

/* The errors that the block layer makes of a bad medium and of a refused
 * target. */
bool device_place_failed(int rc)
{
	return rc == -EIO || rc == -ENODATA || rc == -EREMOTEIO ||
	       rc == -EILSEQ;
}

int device_flush(struct check *check)
{
	return disk_flush(check->disk);
}

/* ---- Many at once ---- */

struct batch_request {
	struct disk_request req;
	struct iovec iov[REQUEST_IOV];
	struct device_read *reads;	/* its reads, iov_n of them */
	unsigned *left;			/* requests of the batch that are not
					 * done */
};

static int read_cmp(const void *a, const void *b)
{
	const struct device_read *x = a, *y = b;

	return sort_order(x->sector, y->sector) ?:
	       sort_order((uintptr_t)x->buf, (uintptr_t)y->buf);
}

static void batch_done(struct disk_request *req)
{
	struct batch_request *batch = req->owner;
	unsigned i;

	for (i = 0; i < req->iov_n; i++)
		batch->reads[i].rc = req->result;
	(*batch->left)--;
}

/* May `next` go into the request that ends with `last`? */
static bool batch_joins(const struct device_read *last,
			const struct device_read *next)
{
	return next->rc == 0 && last->sector + last->sectors == next->sector &&
	       last->sectors % TRAX_BLOCK_SECTORS == 0;
}

/* Puts reads[0] and those that follow it without a gap into one request;
 * returns their number. */
static size_t batch_fill(struct check *check, struct batch_request *batch,
			 struct device_read *reads, size_t n)
{
	uint32_t max = device_step(check, UINT64_MAX);
	struct disk_request *req = &batch->req;
	size_t i;

	memset(req, 0, sizeof(*req));
	req->op = DISK_READ;
	req->sector = reads[0].sector;
	req->iov = batch->iov;
	req->done = batch_done;
	req->owner = batch;
	batch->reads = reads;
	for (i = 0; i < n && i < REQUEST_IOV; i++) {
		if (i && (!batch_joins(&reads[i - 1], &reads[i]) ||
			  req->sectors + reads[i].sectors > max))
			break;
		batch->iov[i].iov_base = reads[i].buf;
		batch->iov[i].iov_len = (size_t)reads[i].sectors *
					SECTOR_BYTES;
		req->sectors += reads[i].sectors;
	}
	req->iov_n = (unsigned)i;
	return i;
}

static void batch_wait(struct check *check, unsigned *left)
{
	while (*left) {
		int rc = disk_poll(check->disk, -1);

		if (rc < 0) {
			check_fail(check, rc);
			return;
		}
	}
}

/* Submits as many requests as fit; returns the number of reads in them. */
static size_t batch_run(struct check *check, struct batch_request *batch,
			struct device_read *reads, size_t n)
{
	unsigned used = 0, left = 0;
	size_t at = 0;

	while (at < n && used < BATCH_REQUESTS) {
		size_t took = 1;

		if (reads[at].rc == 0) {
			batch[used].left = &left;
			took = batch_fill(check, &batch[used], reads + at,
					  n - at);
			left++;
			disk_submit(check->disk, &batch[used++].req);
		}
		at += took;
	}
	batch_wait(check, &left);
	return at;
}

void device_read_many(struct check *check, struct device_read *reads, size_t n)
{
	struct batch_request *batch;
	size_t i, at = 0;

	qsort(reads, n, sizeof(*reads), read_cmp);
	for (i = 0; i < n; i++)
		reads[i].rc = device_allows(check, reads[i].sector,
					    reads[i].sectors);
	batch = malloc(BATCH_REQUESTS * sizeof(*batch));
	if (!batch) {
		check_fail(check, -ENOMEM);
		for (i = 0; i < n; i++)
			reads[i].rc = -ENOMEM;
		return;
	}
	while (at < n && !check->rc)
		at += batch_run(check, batch, reads + at, n - at);
	for (i = 0; i < n && !check->rc; i++)
		if (reads[i].rc && reads[i].rc != -ERANGE)
			reads[i].rc = device_read(check, reads[i].sector,
						  reads[i].sectors,
						  reads[i].buf);
	free(batch);
}

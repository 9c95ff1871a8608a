/*
 * disk.c - opening a real disk, and the synchronous helpers.
 */
#include <errno.h>
#include <string.h>

#include "base/msg.h"
#include "disk/disk.h"
#include "disk/device_file.h"

/* Requests that the kernel has at once: as many as most drives can have. */
#define DEFAULT_DEPTH 32u

int disk_open(const char *path, const struct disk_open_options *options,
	      struct disk **disk)
{
	unsigned depth = options->depth ? options->depth : DEFAULT_DEPTH;
	struct device_file file;
	int err = device_file_init(&file, path, options);

	if (err)
		return err;
	err = ring_open(&file, depth, disk);
	if (err == -ENOSYS || err == -EPERM || err == -ENOMEM) {
		msg_debug("%s: no io_uring (%s), using system calls", path,
			  strerror(-err));
		err = plain_open(&file, disk);
	}
	if (err) {
		msg_error("%s: %s", path, strerror(-err));
		device_file_fini(&file);
	}
	return err;
}

void disk_discard(struct disk *disk, struct disk_request *req)
{
	req->op = DISK_DISCARD;
	req->iov_n = 0;
	disk_submit(disk, req);
}

int disk_set_read_only(struct disk *disk, bool read_only)
{
	if (!disk->ops->set_read_only)
		return -EOPNOTSUPP;
	return disk->ops->set_read_only(disk, read_only);
}

int disk_renew_size(struct disk *disk)
{
	if (!disk->ops->renew_size)
		return -EOPNOTSUPP;
	return disk->ops->renew_size(disk);
}

static void sync_done(struct disk_request *req)
{
	bool *done = req->owner;

	*done = true;
}

static int disk_wait(struct disk *disk, struct disk_request *req)
{
	bool done = false;
	int n;

	req->done = sync_done;
	req->owner = &done;
	disk_submit(disk, req);
	while (!done) {
		n = disk_poll(disk, -1);
		if (n < 0)
			return n;
	}
	return req->result;
}

static int disk_transfer(struct disk *disk, enum disk_op op, uint64_t sector,
			 uint32_t sectors, void *buf)
{
	struct disk_request req;
	struct iovec iov;
	uint32_t n;
	int err;

	do {
		n = sectors < disk->limits.max_sectors
			    ? sectors
			    : disk->limits.max_sectors;
		iov = (struct iovec){ buf, (size_t)n * SECTOR_BYTES };
		req = (struct disk_request){
			.op = op,
			.sector = sector,
			.sectors = n,
			.iov = &iov,
			.iov_n = 1,
		};
		err = disk_wait(disk, &req);
		sector += n;
		sectors -= n;
		buf = (char *)buf + iov.iov_len;
	} while (!err && sectors);
	return err;
}

int disk_read(struct disk *disk, uint64_t sector, uint32_t sectors, void *buf)
{
	return disk_transfer(disk, DISK_READ, sector, sectors, buf);
}

int disk_write(struct disk *disk, uint64_t sector, uint32_t sectors,
	       const void *buf)
{
	return disk_transfer(disk, DISK_WRITE, sector, sectors, (void *)buf);
}

int disk_flush(struct disk *disk)
{
	struct disk_request req = { .op = DISK_FLUSH };

	return disk_wait(disk, &req);
}

/*
 * plain.c - a disk by ordinary system calls, where io_uring may not be used.
 * A request is carried out when it is submitted and completes at the next poll.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/env.h"
#include "base/list.h"
#include "disk/device_file.h"

static struct device_file *file_of(struct disk *disk)
{
	return container_of(disk, struct device_file, disk);
}

static int plain_buffer(int fd, enum disk_op op, char *buf, size_t bytes,
			off_t at)
{
	ssize_t got;

	while (bytes) {
		got = op == DISK_READ ? pread(fd, buf, bytes, at)
				      : pwrite(fd, buf, bytes, at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EIO;
		buf += got;
		bytes -= (size_t)got;
		at += got;
	}
	return 0;
}

static int plain_execute(struct device_file *file,
			 const struct disk_request *req)
{
	off_t at = (off_t)(req->sector * SECTOR_BYTES);
	int err = 0;
	unsigned i;

	if (req->op == DISK_DISCARD)
		return fallocate(file->fd, DEVICE_FILE_DISCARD, at,
				 (off_t)req->sectors * SECTOR_BYTES) ?
			       -errno : 0;
	for (i = 0; i < req->iov_n && !err; i++) {
		err = plain_buffer(file->fd, req->op, req->iov[i].iov_base,
				   req->iov[i].iov_len, at);
		at += (off_t)req->iov[i].iov_len;
	}
	if (!err && (req->op == DISK_FLUSH ||
		     (req->fua && file->disk.limits.volatile_cache)))
		err = fdatasync(file->fd) ? -errno : 0;
	return err;
}

static void plain_submit(struct disk *disk, struct disk_request *req)
{
	struct device_file *file = file_of(disk);
	int err = device_file_check(file, req);

	req->submit_ns = env_now_ns(env_real());
	if (req->op == DISK_FLUSH)
		req->iov_n = 0;
	device_file_finish_now(file, req, err ? err : plain_execute(file, req));
}

static int plain_poll(struct disk *disk, int64_t timeout_ns)
{
	struct device_file *file = file_of(disk);

	if (!file->finished && timeout_ns > 0)
		device_file_pass_time(timeout_ns);
	return device_file_deliver(file);
}

static int plain_event_fd(struct disk *disk)
{
	return file_of(disk)->event_fd;
}

static void plain_close(struct disk *disk)
{
	struct device_file *file = file_of(disk);

	device_file_fini(file);
	free(file);
}

static const struct disk_ops plain_ops = {
	.submit = plain_submit,
	.poll = plain_poll,
	.event_fd = plain_event_fd,
	.set_read_only = device_file_set_read_only,
	.renew_size = device_file_renew_size,
	.discards = true,
	.close = plain_close,
};

int plain_open(const struct device_file *from, struct disk **disk)
{
	struct device_file *file = malloc(sizeof(*file));

	if (!file)
		return -ENOMEM;
	*file = *from;
	file->disk.ops = &plain_ops;
	*disk = &file->disk;
	return 0;
}

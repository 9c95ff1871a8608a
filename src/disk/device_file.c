/*
 * device_file.c - opens a block device or an image file and finds out what it
 * guarantees: ioctls and sysfs for a device, a trial read for a file.
 *
 * O_DIRECT is used wherever it works, so that a completion tells something
 * about the disk.  The unit of transfer of an image file is the smaller one of
 * 512 and 4096 bytes that a direct read takes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/list.h"
#include "base/msg.h"
#include "disk/device_file.h"

/* Physical block assumed of an image file, and the largest logical block that
 * is accepted. */
#define IMAGE_PHYSICAL_BYTES 4096u
#define MAX_LOGICAL_BYTES 4096u
/* Sectors of a request to an image file: 1 MiB, the largest request that the
 * kernel's FUSE takes. */
#define IMAGE_MAX_SECTORS 2048u

/* ---- sysfs ---- */

/* Reads a queue attribute of a device, one line; partitions have that of their
 * disk. */
static bool sysfs_read(dev_t dev, const char *name, char *word, size_t size)
{
	static const char *const where[] = { "queue", "../queue" };
	char path[128], *got;
	FILE *f = NULL;
	int i;

	for (i = 0; i < 2 && !f; i++) {
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s/%s",
			 major(dev), minor(dev), where[i], name);
		f = fopen(path, "re");
	}
	if (!f)
		return false;
	got = fgets(word, (int)size, f);
	fclose(f);
	if (!got)
		return false;
	word[strcspn(word, "\n")] = '\0';
	return true;
}

static bool sysfs_is(dev_t dev, const char *name, const char *value,
		     bool otherwise)
{
	char word[64];

	if (!sysfs_read(dev, name, word, sizeof(word)))
		return otherwise;
	return !strcmp(word, value);
}

static uint32_t sysfs_number(dev_t dev, const char *name, uint32_t otherwise)
{
	char word[64];
	unsigned long n;

	if (!sysfs_read(dev, name, word, sizeof(word)))
		return otherwise;
	n = strtoul(word, NULL, 10);
	return n && n <= UINT32_MAX ? (uint32_t)n : otherwise;
}

/*
 * Does the drive say that it is shingled and manages that itself?  SBC-4, Block
 * Device Characteristics page (B1h): ZONED is bits 4 and 5 of byte 8; 1:
 * host-aware, 2: device-managed.
 */
static bool is_shingled(dev_t dev)
{
	static const char *const where[] = { "device", "../device" };
	uint8_t page[64];
	char path[128];
	size_t n = 0;
	FILE *f;
	int i;

	if (sysfs_is(dev, "zoned", "host-aware", false))
		return true;
	for (i = 0; i < 2 && !n; i++) {
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s/vpd_pgb1",
			 major(dev), minor(dev), where[i]);
		f = fopen(path, "re");
		if (!f)
			continue;
		n = fread(page, 1, sizeof(page), f);
		fclose(f);
	}
	return n > 8 && (page[8] >> 4 & 3) != 0;
}

/* ---- limits ---- */

/* Sectors that the kernel hands to the drive as one command, wherever in
 * memory they are: it cuts longer ones, and a drive with a queue of its own may
 * then read the second part first, and the first a turn later. */
static uint32_t command_sectors(dev_t dev)
{
	uint32_t most = 2 * sysfs_number(dev, "max_sectors_kb",
					 IMAGE_MAX_SECTORS / 2);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE) / SECTOR_BYTES;
	uint64_t pages = sysfs_number(dev, "max_segments", UINT32_MAX);

	return pages * page < most ? (uint32_t)(pages * page) : most;
}

static int device_limits(struct device_file *file, dev_t dev)
{
	struct disk_limits *limits = &file->disk.limits;
	unsigned physical;
	int logical, is_read_only;
	uint64_t bytes;

	if (ioctl(file->fd, BLKGETSIZE64, &bytes) ||
	    ioctl(file->fd, BLKSSZGET, &logical) ||
	    ioctl(file->fd, BLKPBSZGET, &physical) ||
	    ioctl(file->fd, BLKROGET, &is_read_only))
		return -errno;
	if (sysfs_is(dev, "zoned", "host-managed", false) ||
	    logical > (int)MAX_LOGICAL_BYTES)
		return -EOPNOTSUPP;
	limits->sectors = bytes / SECTOR_BYTES;
	limits->logical_bytes = (uint32_t)logical;
	limits->physical_bytes = physical;
	limits->atomic_bytes = (uint32_t)logical;
	limits->max_sectors = command_sectors(dev);
	limits->volatile_cache =
		!sysfs_is(dev, "write_cache", "write through", false);
	limits->rotational = !sysfs_is(dev, "rotational", "0", false);
	limits->shingled = is_shingled(dev);
	limits->read_only |= is_read_only;
	file->may_write &= !is_read_only;
	return 0;
}

/* Does a direct read of this size and alignment work? */
static bool device_file_takes(int fd, uint32_t bytes)
{
	void *buf;
	bool ok;

	if (posix_memalign(&buf, 4096, bytes))
		return false;
	ok = pread(fd, buf, bytes, bytes) >= 0 || errno != EINVAL;
	free(buf);
	return ok;
}

static int image_limits(struct device_file *file, const struct stat *st)
{
	struct disk_limits *limits = &file->disk.limits;
	uint32_t logical = SECTOR_BYTES;
	int flags = fcntl(file->fd, F_GETFL);

	if (flags < 0)
		return -errno;
	if ((flags & O_DIRECT) && !device_file_takes(file->fd, logical)) {
		logical = MAX_LOGICAL_BYTES;
		if (!device_file_takes(file->fd, logical)) {
			logical = SECTOR_BYTES;
			if (fcntl(file->fd, F_SETFL, flags & ~O_DIRECT))
				return -errno;
		}
	}
	limits->sectors = (uint64_t)st->st_size / SECTOR_BYTES;
	limits->logical_bytes = logical;
	/* The emulated drive's file tells its block size in the same way. */
	limits->physical_bytes = st->st_blksize == SECTOR_BYTES ?
					 SECTOR_BYTES : IMAGE_PHYSICAL_BYTES;
	limits->atomic_bytes = logical;
	limits->max_sectors = IMAGE_MAX_SECTORS;
	limits->volatile_cache = true;
	limits->rotational = !sysfs_is(st->st_dev, "rotational", "0", false);
	return 0;
}

static int device_file_learn(struct device_file *file, const struct stat *st)
{
	struct disk_limits *limits = &file->disk.limits;
	int err = S_ISBLK(st->st_mode) ? device_limits(file, st->st_rdev)
				       : image_limits(file, st);

	if (err)
		return err;
	if (limits->physical_bytes < limits->logical_bytes)
		limits->physical_bytes = limits->logical_bytes;
	limits->sectors -=
		limits->sectors % (limits->logical_bytes / SECTOR_BYTES);
	limits->max_sectors -= limits->max_sectors % 8;
	return limits->sectors && limits->max_sectors ? 0 : -EINVAL;
}

/* ---- opening ---- */

static int device_file_open(const char *path, int flags)
{
	int fd = open(path, flags | O_DIRECT | O_CLOEXEC);

	if (fd < 0 && errno == EINVAL)
		fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int device_file_attach(struct device_file *file, const char *path,
		       const struct disk_open_options *options)
{
	bool try_write = !options->read_only || options->writable_later;
	int flags = try_write ? O_RDWR : O_RDONLY;
	struct stat st;
	int rc = 0;

	if (stat(path, &st))
		return -errno;
	if (!S_ISBLK(st.st_mode) && !S_ISREG(st.st_mode))
		return -ENOTBLK;
	if (options->exclusive && S_ISBLK(st.st_mode))
		flags |= O_EXCL;
	file->fd = device_file_open(path, flags);
	file->may_write = try_write && file->fd >= 0;
	if (file->fd < 0 && try_write && options->read_only)
		file->fd = device_file_open(path, flags & ~O_ACCMODE);
	if (file->fd < 0)
		return file->fd;
	if (fstat(file->fd, &st))
		return -errno;
	if (options->exclusive || options->locked)
		rc = filelock_take(file->fd, &st, options->read_only,
				   &file->lock);
	return rc ? rc : device_file_learn(file, &st);
}

static const char *open_reason(int err)
{
	switch (err) {
	case -ENOTBLK:
		return "neither a block device nor a regular file";
	case -EBUSY:
		return "in use";
	case -EOPNOTSUPP:
		return "host-managed zones or blocks over 4096 bytes";
	case -EINVAL:
		return "too small to be a disk";
	}
	return strerror(-err);
}

int device_file_init(struct device_file *file, const char *path,
	      const struct disk_open_options *options)
{
	int err = -ENOMEM;

	*file = (struct device_file){
		.fd = -1, .event_fd = -1, .lock = { .fd = -1 },
	};
	file->disk.limits.read_only = options->read_only;
	file->disk.name = strdup(path);
	if (file->disk.name)
		err = device_file_attach(file, path, options);
	if (!err) {
		file->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (file->event_fd < 0)
			err = -errno;
	}
	if (err) {
		msg_error("%s: %s", path, open_reason(err));
		device_file_fini(file);
	}
	return err;
}

void device_file_fini(struct device_file *file)
{
	if (file->event_fd >= 0)
		close(file->event_fd);
	if (file->fd >= 0)
		close(file->fd);
	filelock_drop(&file->lock);
	free((char *)file->disk.name);
}

int device_file_set_read_only(struct disk *disk, bool read_only)
{
	struct device_file *file = container_of(disk, struct device_file, disk);
	int rc;

	if (!read_only && !file->may_write)
		return -EROFS;
	rc = filelock_change(&file->lock, read_only);
	if (!rc)
		disk->limits.read_only = read_only;
	return rc;
}

/* Asks by lseek(2), as a confined daemon may make no other request to a
 * device. */
int device_file_renew_size(struct disk *disk)
{
	struct device_file *file = container_of(disk, struct device_file, disk);
	const uint32_t unit = disk->limits.logical_bytes;
	off_t end = lseek(file->fd, 0, SEEK_END);

	if (end < 0)
		return -errno;
	disk->limits.sectors = (uint64_t)end / unit * (unit / SECTOR_BYTES);
	return 0;
}

/* ---- requests ---- */

int device_file_check(const struct device_file *file,
		      const struct disk_request *req)
{
	const struct disk_limits *limits = &file->disk.limits;
	uint32_t unit = limits->logical_bytes / SECTOR_BYTES;

	if (req->op == DISK_FLUSH)
		return 0;
	if (!req->sectors || req->sector % unit || req->sectors % unit ||
	    req->sectors > limits->sectors ||
	    req->sector > limits->sectors - req->sectors ||
	    req->iov_n > DISK_MAX_IOV)
		return -EINVAL;
	return req->op != DISK_READ && limits->read_only ? -EROFS : 0;
}

void device_file_finish(struct device_file *file, struct disk_request *req,
			int result)
{
	if (!file->finished)
		file->finished_end = &file->finished;
	req->result = result;
	req->complete_ns = env_now_ns(env_real());
	req->next = NULL;
	*file->finished_end = req;
	file->finished_end = &req->next;
}

void device_file_finish_now(struct device_file *file, struct disk_request *req,
			    int result)
{
	if (!file->finished)
		eventfd_write(file->event_fd, 1);
	device_file_finish(file, req, result);
}

int device_file_deliver(struct device_file *file)
{
	struct disk_request *req = file->finished, *next;
	int n = 0;

	file->finished = NULL;
	for (; req; req = next, n++) {
		next = req->next;
		req->done(req);
	}
	return n;
}

void device_file_pass_time(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / 1000000000,
			       .tv_nsec = ns % 1000000000 };

	nanosleep(&ts, NULL);
}

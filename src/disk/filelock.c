/*
 * filelock.c - the backing file of a loop device, and open file description
 * locks on ranges of bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/msg.h"
#include "disk/disk.h"
#include "disk/filelock.h"

/* Reads a line of a device's attribute in sysfs; false: it has none. */
static bool attribute(dev_t dev, const char *name, char *line, int bytes)
{
	char path[128], *got;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", major(dev),
		 minor(dev), name);
	f = fopen(path, "re");
	if (!f)
		return false;
	got = fgets(line, bytes, f);
	fclose(f);
	if (got)
		line[strcspn(line, "\n")] = 0;
	return got;
}

/* First byte of a partition on its device; 0: the device is no partition. */
static uint64_t first_byte(dev_t dev)
{
	unsigned long long sector;
	char line[64];

	if (!attribute(dev, "start", line, sizeof(line)) ||
	    sscanf(line, "%llu", &sector) != 1)
		return 0;
	return sector * SECTOR_BYTES;
}

/*
 * Opens the file that a loop device stands on.  The path in sysfs may be of
 * another mount namespace, or of another file by now: the loop device says
 * which inode it has.
 */
static int open_backing(int fd, dev_t dev, bool read_only,
			struct loop_info64 *info)
{
	char path[4096];
	struct stat st;
	int backing;

	if (!attribute(dev, "loop/backing_file", path, sizeof(path)) &&
	    !attribute(dev, "../loop/backing_file", path, sizeof(path)))
		return -ENOENT;
	if (ioctl(fd, LOOP_GET_STATUS64, info))
		return -errno;
	/* Only who may write can have it alone later on. */
	backing = open(path, O_RDWR | O_CLOEXEC);
	if (backing < 0 && read_only)
		backing = open(path, O_RDONLY | O_CLOEXEC);
	if (backing < 0)
		return -errno;
	if (!fstat(backing, &st) && st.st_ino == info->lo_inode)
		return backing;
	close(backing);
	return -ESTALE;
}

static int lock_backing(int fd, dev_t dev, bool read_only,
			struct filelock *lock)
{
	struct loop_info64 info = { 0 };
	uint64_t bytes;
	int backing, rc;

	if (ioctl(fd, BLKGETSIZE64, &bytes))
		return -errno;
	backing = open_backing(fd, dev, read_only, &info);
	if (backing == -ENOENT)
		return 0;
	*lock = (struct filelock){
		backing, true, info.lo_offset + first_byte(dev), bytes,
	};
	rc = backing < 0 ? backing : filelock_change(lock, read_only);
	if (!rc)
		return 0;
	filelock_drop(lock);
	if (rc == -EBUSY)
		return rc;
	msg_warn("the file behind loop device %u:%u cannot be locked (%s): "
		 "nobody notices that it is used twice", major(dev),
		 minor(dev), strerror(-rc));
	return 0;
}

int filelock_change(const struct filelock *lock, bool read_only)
{
	struct flock range = {
		.l_type = read_only ? F_RDLCK : F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)lock->first,
		.l_len = (off_t)lock->bytes,
	};

	if (lock->fd < 0 || !fcntl(lock->fd, F_OFD_SETLK, &range))
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

void filelock_drop(struct filelock *lock)
{
	if (lock->own && lock->fd >= 0)
		close(lock->fd);
	lock->fd = -1;
}

int filelock_take(int fd, const struct stat *st, bool read_only,
		  struct filelock *lock)
{
	*lock = (struct filelock){ .fd = -1 };
	if (S_ISBLK(st->st_mode))
		return lock_backing(fd, st->st_rdev, read_only, lock);
	lock->fd = fd;
	return filelock_change(lock, read_only);
}

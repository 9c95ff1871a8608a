/*
 * backing.c - see backing.h.
 */
#include "disk/backing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "disk/disk.h"

/* Depth to which loop devices on loop devices are followed. */
#define MAX_DEPTH 8u

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

/* Reads an attribute of a loop device, or of the one that has this
 * partition. */
static bool loop_attribute(dev_t dev, const char *name, char *line, int bytes)
{
	char path[64];

	snprintf(path, sizeof(path), "loop/%s", name);
	if (attribute(dev, path, line, bytes))
		return true;
	snprintf(path, sizeof(path), "../loop/%s", name);
	return attribute(dev, path, line, bytes);
}

static uint64_t number_in(const char *line)
{
	unsigned long long n;

	return sscanf(line, "%llu", &n) == 1 ? n : 0;
}

/* First byte of a partition on its device; 0: the device is no partition. */
static uint64_t first_byte(dev_t dev)
{
	char line[64];

	return attribute(dev, "start", line, sizeof(line)) ?
		       number_in(line) * SECTOR_BYTES : 0;
}

static uint64_t size_bytes(dev_t dev)
{
	char line[64];

	return attribute(dev, "size", line, sizeof(line)) ?
		       number_in(line) * SECTOR_BYTES : 0;
}

/* Finds which file the loop device has: the path in sysfs may be of another
 * mount namespace, or of another file by now; the loop device itself tells the
 * inode. */
static int which_file(int fd, struct backing *b)
{
	struct loop_info64 info;
	struct stat st;

	if (fd >= 0 && !ioctl(fd, LOOP_GET_STATUS64, &info)) {
		b->dev = (dev_t)info.lo_device;
		b->inode = info.lo_inode;
		return 0;
	}
	if (stat(b->path, &st))
		return -errno;
	b->dev = st.st_dev;
	b->inode = st.st_ino;
	return 0;
}

int backing_find(int fd, dev_t device, struct backing *b)
{
	char line[64];

	if (!loop_attribute(device, "backing_file", b->path, sizeof(b->path)))
		return -ENOENT;
	b->first = first_byte(device);
	if (loop_attribute(device, "offset", line, sizeof(line)))
		b->first += number_in(line);
	b->bytes = size_bytes(device);
	return which_file(fd, b);
}

/* Is the file of a loop device a device itself?  Then there is another step. */
static bool is_device(const struct backing *b, dev_t *device)
{
	struct stat st;

	if (stat(b->path, &st) || !S_ISBLK(st.st_mode) ||
	    st.st_ino != b->inode || st.st_dev != b->dev)
		return false;
	*device = st.st_rdev;
	return true;
}

static bool device_bytes(const char *path, dev_t device,
			 struct file_bytes *bytes)
{
	struct backing b = { .path = "" };
	uint64_t first = 0;
	unsigned depth;
	int fd, rc;

	*bytes = (struct file_bytes){ .bytes = size_bytes(device) };
	for (depth = 0; depth < MAX_DEPTH; depth++) {
		fd = open(depth ? b.path : path,
			  O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		rc = backing_find(fd, device, &b);
		if (fd >= 0)
			close(fd);
		bytes->first = first;
		bytes->dev = device;
		bytes->device = rc == -ENOENT;
		if (rc)
			return bytes->device;
		bytes->first = first += b.first;
		bytes->dev = b.dev;
		bytes->inode = b.inode;
		if (!is_device(&b, &device))
			return true;
		bytes->inode = 0;
	}
	return false;
}

bool file_bytes_get(const char *path, struct file_bytes *bytes)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	if (S_ISBLK(st.st_mode))
		return device_bytes(path, st.st_rdev, bytes);
	*bytes = (struct file_bytes){
		.dev = st.st_dev, .inode = st.st_ino, .bytes = INT64_MAX,
	};
	return S_ISREG(st.st_mode);
}

bool file_bytes_overlap(const struct file_bytes *a, const struct file_bytes *b)
{
	return a->device == b->device && a->dev == b->dev &&
	       a->inode == b->inode && a->first < b->first + b->bytes &&
	       b->first < a->first + a->bytes;
}

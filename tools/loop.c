/*
 * loop.c - see loop.h.
 */
#include "tools/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Another process may take a loop device between the search for a free one and
 * its use; then the next one is tried, at most this often. */
#define TRIES 16

/* Opens a free loop device; `device` gets its name. */
static int open_free(bool read_only, char *device, size_t bytes)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int number, fd;

	if (control < 0)
		return -errno;
	number = ioctl(control, LOOP_CTL_GET_FREE);
	fd = number < 0 ? -errno : 0;
	close(control);
	if (fd)
		return fd;
	snprintf(device, bytes, "/dev/loop%d", number);
	fd = open(device, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int attach_to(int image_fd, const char *image, bool read_only,
		     char *device, size_t bytes)
{
	struct loop_config config = {
		.fd = (unsigned)image_fd,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO |
				 (read_only ? LO_FLAGS_READ_ONLY : 0),
	};
	int fd, rc, i;

	snprintf((char *)config.info.lo_file_name,
		 sizeof(config.info.lo_file_name), "%s", image);
	for (i = 0; i < TRIES; i++) {
		fd = open_free(read_only, device, bytes);
		if (fd < 0)
			return fd;
		if (!ioctl(fd, LOOP_CONFIGURE, &config))
			return fd;
		rc = -errno;
		close(fd);
		if (rc != -EBUSY)
			return rc;
	}
	return -EBUSY;
}

int loop_attach(const char *image, bool read_only, char *device, size_t bytes)
{
	int image_fd = open(image, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	int rc;

	if (image_fd < 0)
		return -errno;
	rc = attach_to(image_fd, image, read_only, device, bytes);
	close(image_fd);
	return rc;
}

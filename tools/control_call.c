/*
 * control_call.c - see control_call.h.
 */
#include "tools/control_call.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Files are written so fast that a sync can't keep up with them. */
#define SYNC_TIMES 64

int control_ioctl(const char *mountpoint, struct trax_control *c)
{
	int fd = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc, err;

	if (fd < 0)
		return -1;
	rc = ioctl(fd, TRAX_IOC_CONTROL, c);
	err = errno;
	close(fd);
	errno = err;
	return rc;
}

/*
 * First what the kernel still holds, then what the daemon holds.  syncfs(2) may
 * leave pages out while many are being written back, and need not wait for
 * them: see fuse/sync.h.  What was there in the beginning is on the medium when
 * nothing more comes from one time to the next.
 */
static int sync_all(int fd)
{
	struct trax_control c;
	uint64_t last = UINT64_MAX;
	int i;

	for (i = 0; i < SYNC_TIMES; i++) {
		c = (struct trax_control){ .command = TRAX_CONTROL_SYNC };
		if (syncfs(fd) || ioctl(fd, TRAX_IOC_CONTROL, &c))
			return -1;
		if (c.result == last)
			return 0;
		last = c.result;
	}
	errno = EBUSY;
	return -1;
}

int sync_mount(const char *mountpoint)
{
	int fd = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc, err;

	if (fd < 0)
		return -1;
	rc = sync_all(fd);
	err = errno;
	close(fd);
	errno = err;
	return rc;
}

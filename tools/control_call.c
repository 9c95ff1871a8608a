/*
 * control_call.c - see control_call.h.
 */
#include "tools/control_call.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Syncs before it is given up: files are then written faster than a sync can
 * follow. */
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
 * Writes first what the kernel still holds, then what the daemon holds.
 * syncfs(2) may leave pages out while many are being written back, and need not
 * wait for them: see fuse/sync.h.  Everything from before the call is on the
 * medium when two syncs in a row report the same number of WRITEs.
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

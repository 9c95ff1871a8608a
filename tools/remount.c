/*
 * remount.c - see remount.h.  The kernel does not tell a FUSE daemon of a
 * remount, so this program asks both.
 */
#include "tools/remount.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include "base/msg.h"
#include "tools/control_call.h"

static int kernel_remount(const char *mountpoint, unsigned long flags)
{
	int rc;

	if (!mount(NULL, mountpoint, NULL, MS_REMOUNT | flags, NULL))
		return 0;
	rc = -errno;
	if (rc == -EBUSY)
		msg_error("%s: files are open for writing, or were deleted and "
			  "are still open: lsof(8) and fuser(1) find who has "
			  "them", mountpoint);
	else
		msg_error("%s: remount: %s", mountpoint, strerror(-rc));
	return rc;
}

static int daemon_remount(const char *mountpoint, const char *list)
{
	struct trax_control c = { .command = TRAX_CONTROL_REMOUNT };
	const char *why = (const char *)c.payload;

	if (strlen(list) >= sizeof(c.payload)) {
		msg_error("%s: the options are too long", mountpoint);
		return -E2BIG;
	}
	memcpy(c.payload, list, strlen(list) + 1);
	c.payload_bytes = (uint32_t)strlen(list) + 1;
	if (control_ioctl(mountpoint, &c)) {
		msg_error("%s: %s", mountpoint, errno == ENOTTY ?
			  "not the mount point of a traxfs" : strerror(errno));
		return -errno;
	}
	if (!c.result)
		return 0;
	msg_error("%s: %.*s", mountpoint, (int)sizeof(c.payload) - 1, why);
	return -(int)c.result;
}

int remount(const char *mountpoint, const struct mount_settings *settings,
	    const char *list)
{
	unsigned long flags = mount_settings_flags(settings);
	struct statvfs st;
	bool was_read_only;
	int rc;

	/* The kernel must not change a mount of another file system. */
	if (statvfs(mountpoint, &st) ||
	    getxattr(mountpoint, "trax.stats", NULL, 0) < 0) {
		rc = -errno;
		msg_error("%s: %s", mountpoint,
			  rc == -EOPNOTSUPP || rc == -ENODATA ?
			  "not the mount point of a traxfs" : strerror(-rc));
		return rc;
	}
	was_read_only = st.f_flag & ST_RDONLY;
	if (settings->read_only) {
		rc = kernel_remount(mountpoint, flags);
		if (!rc && sync_mount(mountpoint)) {
			rc = -errno;
			msg_error("%s: not all could be written: %s",
				  mountpoint, strerror(errno));
		}
		if (!rc)
			rc = daemon_remount(mountpoint, list);
		/* The remount has failed: the mount stays as it was. */
		if (rc && !was_read_only)
			kernel_remount(mountpoint, flags & ~MS_RDONLY);
		return rc;
	}
	rc = daemon_remount(mountpoint, list);
	return rc ? rc : kernel_remount(mountpoint, flags);
}

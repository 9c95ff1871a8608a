/*
 * traxctl_mount.c - finds the mount that a path lies in, and reports paths for
 * which a command cannot be carried out.
 */
#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "tools/traxctl.h"

char *mount_point(const char *path)
{
	char *full = realpath(path, NULL), *slash;
	struct stat st, up;

	if (!full || stat(full, &st)) {
		free(full);
		return NULL;
	}
	for (;;) {
		char saved[PATH_MAX];

		snprintf(saved, sizeof(saved), "%s", full);
		slash = strrchr(full, '/');
		if (slash == full)
			full[1] = 0;
		else
			*slash = 0;
		if (stat(full, &up) || up.st_dev != st.st_dev) {
			snprintf(full, strlen(saved) + 1, "%s", saved);
			return full;
		}
		if (slash == full)
			return full;
	}
}

bool mount_device(const char *path, char *device, size_t bytes)
{
	char *full = mount_point(path);
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *m;
	bool found = false;

	/* The last mount on a directory is the one that is seen. */
	while (mounts && full && (m = getmntent(mounts)))
		if (!strcmp(m->mnt_dir, full)) {
			snprintf(device, bytes, "%s", m->mnt_fsname);
			found = true;
		}
	if (mounts)
		endmntent(mounts);
	free(full);
	return found;
}

char *traxfs_mount_point(const char *path)
{
	char *root = mount_point(path);

	if (root && getxattr(root, "trax.stats", NULL, 0) >= 0)
		return root;
	free(root);
	return NULL;
}

/* Why has the kernel or the daemon refused a command for this path? */
static const char *why_refused(const char *path, int err)
{
	char *root;
	struct stat st;

	if (err == ENOTCONN)
		return "its traxfs has ended without unmounting: umount it";
	if (stat(path, &st) || (err != ENODATA && err != EOPNOTSUPP &&
				err != ENOTTY && err != ENOTDIR))
		return strerror(err);
	root = traxfs_mount_point(path);
	if (!root)
		return "no traxfs is mounted there";
	free(root);
	if (err == EOPNOTSUPP)
		return "not possible in this mount";
	return S_ISDIR(st.st_mode) ?
		"a file is wanted, not a directory" :
		"a mount point is wanted, not a file";
}

int complain(const struct arguments *a, const char *what)
{
	int err = errno;
	const char *why = why_refused(a->path, err);

	if (err != ENOENT && err != ENOTDIR && !strcmp(why, strerror(err)))
		fprintf(stderr, "traxctl: %s: %s: %s\n", a->path, what, why);
	else
		fprintf(stderr, "traxctl: %s: %s\n", *a->path ? a->path :
			"\"\"", why);
	return EXIT_FAILED;
}

/*
 * second_view.c - see second_view.h.  The mount is cloned, and private before
 * it is moved to its place: a bind mount would join the peers of the first one.
 */
#include "tools/second_view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/device.h"

/* A line of /proc/self/mountinfo, with memory allocated by sscanf (%ms). */
struct line {
	char *root, *place, *rest;
};

/* Decodes \040 and the like, in place. */
static void unescape(char *text)
{
	char *to = text;
	unsigned code;

	for (; *text; text++) {
		if (*text == '\\' && sscanf(text, "\\%3o", &code) == 1) {
			*to++ = (char)code;
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = 0;
}

/* Is this a mount of the root of a traxfs on this device? */
static bool fits(const struct line *line, const char *device)
{
	char *after = strstr(line->rest, " - "), *type = NULL, *source = NULL;
	bool found = false;

	if (after && !strcmp(line->root, "/") &&
	    sscanf(after, " - %ms %ms", &type, &source) == 2 &&
	    (!strcmp(type, "fuse.traxfs") || !strcmp(type, "fuseblk.traxfs"))) {
		unescape(source);
		found = device_is_same(source, device);
	}
	free(type);
	free(source);
	return found;
}

/* Finds a mount of the device whose daemon lives; the caller frees the path.
 * NULL: there is none. */
static char *find(const char *device)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *text = NULL, *place = NULL;
	size_t bytes = 0;

	while (f && !place && getline(&text, &bytes, f) > 0) {
		struct line line = { 0 };

		if (sscanf(text, "%*d %*d %*s %ms %ms %m[^\n]", &line.root,
			   &line.place, &line.rest) == 3 &&
		    fits(&line, device)) {
			unescape(line.place);
			if (!device_mount_ended(line.place)) {
				place = line.place;
				line.place = NULL;
			}
		}
		free(line.root);
		free(line.place);
		free(line.rest);
	}
	free(text);
	if (f)
		fclose(f);
	return place;
}

/* Is the mount at `place` what is at the mount point already?  Mounting it once
 * more would be seen by nobody, and is refused by the kernel with other file
 * systems. */
static bool is_there(const char *place, const char *mountpoint)
{
	struct statx a, b;

	return !statx(AT_FDCWD, place, AT_STATX_DONT_SYNC, 0, &a) &&
	       !statx(AT_FDCWD, mountpoint, AT_STATX_DONT_SYNC, 0, &b) &&
	       a.stx_dev_major == b.stx_dev_major &&
	       a.stx_dev_minor == b.stx_dev_minor &&
	       (b.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

static uint64_t attributes(const struct mount_settings *settings)
{
	static const struct {
		unsigned long flag;
		uint64_t attribute;
	} map[] = {
		{ MS_RDONLY, MOUNT_ATTR_RDONLY },
		{ MS_NOSYMFOLLOW, MOUNT_ATTR_NOSYMFOLLOW },
		{ MS_NOSUID, MOUNT_ATTR_NOSUID },
		{ MS_NODEV, MOUNT_ATTR_NODEV },
		{ MS_NOEXEC, MOUNT_ATTR_NOEXEC },
	};
	unsigned long flags = mount_settings_flags(settings);
	uint64_t set = 0;
	size_t i;

	for (i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (flags & map[i].flag)
			set |= map[i].attribute;
	return set;
}

int second_view(const char *device, const char *mountpoint,
		const struct mount_settings *settings)
{
	struct mount_attr attr = { .attr_set = attributes(settings),
				   .propagation = MS_PRIVATE };
	char *place = find(device);
	int fd, rc = 0;

	if (!place)
		return -ENOENT;
	if (is_there(place, mountpoint)) {
		free(place);
		return -EBUSY;
	}
	fd = open_tree(AT_FDCWD, place, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	free(place);
	if (fd < 0)
		return -errno;
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) ||
	    move_mount(fd, "", AT_FDCWD, mountpoint, MOVE_MOUNT_F_EMPTY_PATH))
		rc = -errno;
	close(fd);
	return rc;
}

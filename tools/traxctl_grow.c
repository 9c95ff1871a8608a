/*
 * traxctl_grow.c - makes a file system as large as its device: a mounted one by
 * an ioctl, one that is not mounted by writing to the device or image.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/grow.h"
#include "tools/amounts.h"
#include "tools/device.h"
#include "tools/traxctl.h"

static int say_grown(const struct arguments *a, const struct trax_grown *grown)
{
	struct text now;

	if (a->json) {
		printf("{\"bytes_before\": %llu, \"bytes\": %llu}\n",
		       (unsigned long long)grown->was,
		       (unsigned long long)grown->now);
		return EXIT_SUCCESS;
	}
	now = size_text((double)grown->now);
	if (grown->was == grown->now)
		printf("%s: as large as its device already: %s\n", a->path,
		       now.s);
	else
		printf("%s: grown from %s to %s\n", a->path,
		       size_text((double)grown->was).s, now.s);
	return EXIT_SUCCESS;
}

/* A loop device takes the size of its file again only when it is told to. */
static void renew_loop(const char *mountpoint)
{
	char device[256];
	int fd;

	if (!mount_device(mountpoint, device, sizeof(device)) ||
	    strncmp(device, "/dev/loop", 9))
		return;
	fd = open(device, O_RDONLY | O_CLOEXEC);
	/* If this fails the loop device stays as large as it was. */
	if (fd >= 0 && ioctl(fd, LOOP_SET_CAPACITY, 0))
		fprintf(stderr, "traxctl: %s: its new size: %s\n", device,
			strerror(errno));
	if (fd >= 0)
		close(fd);
}

static int grow_mount(const struct arguments *a)
{
	struct trax_control c = { .command = TRAX_CONTROL_GROW };
	struct trax_grown grown;

	renew_loop(a->path);
	if (control_ioctl(a->path, &c))
		return complain(a, "grow");
	if (c.result) {
		fprintf(stderr, "traxctl: %s: not grown: %.*s\n", a->path,
			(int)sizeof(c.payload) - 1, (const char *)c.payload);
		return EXIT_FAILED;
	}
	memcpy(&grown, c.payload, sizeof(grown));
	return say_grown(a, &grown);
}

static int grow_device(const struct arguments *a)
{
	struct fs_grown sectors;
	struct trax_grown grown;
	struct disk *disk;
	int rc = device_open(a->path, false, &disk);

	if (rc)
		return EXIT_FAILED;
	rc = fs_grow(env_real(), disk, &sectors);
	disk_close(disk);
	if (rc) {
		fprintf(stderr, "traxctl: %s: not grown: %s\n", a->path,
			rc == -EINVAL ? "no traxfs" : strerror(-rc));
		return EXIT_FAILED;
	}
	grown.was = sectors.was * SECTOR_BYTES;
	grown.now = sectors.now * SECTOR_BYTES;
	return say_grown(a, &grown);
}

int run_grow(const struct arguments *a)
{
	struct stat st;

	if (!stat(a->path, &st) && !S_ISDIR(st.st_mode))
		return grow_device(a);
	return grow_mount(a);
}

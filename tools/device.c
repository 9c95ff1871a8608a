/*
 * device.c - opening, superblock, sizes.
 */
#include "tools/device.h"

#include <errno.h>
#include <glob.h>
#include <mntent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/msg.h"

/* How long a daemon may take to write its last; and how long a device that
 * nobody has mounted is waited for, which may be in other use for good. */
#define BUSY_TRIES 2400u
#define BUSY_DEVICE_TRIES 600u
#define BUSY_SAY_TRIES 20u
#define BUSY_WAIT_NS 50000000L

/* The same block device under two names? */
static bool same_device(const struct stat *st, const char *other)
{
	struct stat so;

	return S_ISBLK(st->st_mode) && other[0] == '/' && !stat(other, &so) &&
	       S_ISBLK(so.st_mode) && so.st_rdev == st->st_rdev;
}

static bool is_mounted(const char *path, const struct stat *st, char *where,
		       size_t bytes)
{
	FILE *f = setmntent("/proc/self/mounts", "r");
	bool found = false;
	struct mntent *e;

	if (!f)
		return false;
	while (!found && (e = getmntent(f))) {
		found = !strcmp(e->mnt_fsname, path) ||
			same_device(st, e->mnt_fsname);
		if (found)
			snprintf(where, bytes, "%s", e->mnt_dir);
	}
	endmntent(f);
	return found;
}

static bool has_backing_file(const char *attribute, const char *path)
{
	FILE *f = fopen(attribute, "r");
	char line[4096];
	bool same = false;

	if (!f)
		return false;
	if (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		same = !strcmp(line, path);
	}
	fclose(f);
	return same;
}

/* A mounted loop device that stands on this file. */
static bool loop_is_mounted(const char *path, char *where, size_t bytes)
{
	static const char pattern[] = "/sys/block/loop*/loop/backing_file";
	bool found = false;
	glob_t names;
	size_t i;

	if (glob(pattern, 0, NULL, &names))
		return false;
	for (i = 0; i < names.gl_pathc && !found; i++) {
		char device[64];
		struct stat st;
		int number;

		if (!has_backing_file(names.gl_pathv[i], path))
			continue;
		if (sscanf(names.gl_pathv[i], "/sys/block/loop%d",
			   &number) != 1)
			continue;
		snprintf(device, sizeof(device), "/dev/loop%d", number);
		found = !stat(device, &st) &&
			is_mounted(device, &st, where, bytes);
	}
	globfree(&names);
	return found;
}

bool device_is_loop_of(const char *device, const char *image)
{
	char attribute[64];
	int number;

	if (sscanf(device, "/dev/loop%d", &number) != 1)
		return false;
	snprintf(attribute, sizeof(attribute),
		 "/sys/block/loop%d/loop/backing_file", number);
	return has_backing_file(attribute, image);
}

bool device_in_use(const char *path)
{
	char *full = realpath(path, NULL);
	bool found = false;
	char where[4096];
	struct stat st;

	if (full && !stat(full, &st))
		found = is_mounted(full, &st, where, sizeof(where)) ||
			loop_is_mounted(full, where, sizeof(where));
	free(full);
	if (found)
		msg_error("%s: mounted on %s", path, where);
	return found;
}

/* Like disk_open, but says nothing when it is busy. */
static int try_open(const char *path, const struct disk_open_options *options,
		    struct disk **disk)
{
	int rc;

	msg_mute(true);
	rc = disk_open(path, options, disk);
	msg_mute(false);
	return rc;
}

int device_open(const char *path, bool read_only, struct disk **disk)
{
	struct disk_open_options options = {
		.read_only = read_only,
		.exclusive = true,
	};
	struct timespec moment = { 0, BUSY_WAIT_NS };
	struct stat st;
	unsigned tries, most = BUSY_TRIES;

	if (device_in_use(path))
		return -EBUSY;
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		most = BUSY_DEVICE_TRIES;
	for (tries = 0; tries < most; tries++) {
		int rc = try_open(path, &options, disk);

		if (!rc)
			break;
		if (rc != -EBUSY || nanosleep(&moment, NULL))
			return disk_open(path, &options, disk);
		if (device_in_use(path))
			return -EBUSY;
		if (tries == BUSY_SAY_TRIES)
			msg_info("%s: in use, waiting for it", path);
	}
	if (tries == most)
		return disk_open(path, &options, disk);
	if ((*disk)->limits.shingled)
		msg_warn("%s: a shingled drive that manages itself: random "
			 "writes can stall for seconds", path);
	return 0;
}

int device_read_super(struct disk *disk, struct super *super)
{
	uint64_t place[3];
	void *block;
	int rc = -EINVAL;
	int i;

	super_usual_places(disk->limits.sectors, place);
	block = aligned_alloc(4096, TRAX_BLOCK_BYTES);
	if (!block)
		return -ENOMEM;
	for (i = 0; i < 3 && rc; i++) {
		if (place[i] + TRAX_BLOCK_SECTORS > disk->limits.sectors)
			continue;
		if (disk_read(disk, place[i], TRAX_BLOCK_SECTORS, block))
			rc = -EIO;
		else
			rc = super_decode(block, place[i], super) ? -EINVAL : 0;
	}
	free(block);
	return rc;
}

void device_realtime(bool on)
{
	struct sched_param param = {.sched_priority = on};

	sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &param);
}

char *device_size_text(uint64_t bytes, char *buf)
{
	static const char *const units[] = { "B",   "KiB", "MiB", "GiB",
					     "TiB", "PiB", "EiB" };
	double size = (double)bytes;
	unsigned unit = 0;

	while (size >= 1024 && unit < 6) {
		size /= 1024;
		unit++;
	}
	snprintf(buf, 16, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
	return buf;
}

/*
 * device.c - opening, superblock, what is in use.
 */
#include "tools/device.h"

#include <errno.h>
#include <mntent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/msg.h"
#include "disk/backing.h"

/* A disk that is in use is tried again every 50 ms: an image for two minutes,
 * which a daemon that ends may need to write the last data; a device for half a
 * minute, as it may be in other use for good.  After a second the user is
 * told. */
#define BUSY_WAIT_NS 50000000L
#define BUSY_TRIES 2400u
#define BUSY_DEVICE_TRIES 600u
#define BUSY_SAY_TRIES 20u

bool device_mount_ended(const char *mountpoint)
{
	struct statvfs st;

	/* The kernel would answer stat(2) from its cache. */
	return statvfs(mountpoint, &st) && errno == ENOTCONN;
}

/* Is a mount there that has some of these bytes (with `for_writing`, one that
 * may write)?  The caller frees *where; *ended: its daemon has ended. */
static bool is_mounted(const struct file_bytes *bytes, bool for_writing,
		       char **where, bool *ended)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct file_bytes other;
	bool found = false;
	struct mntent *e;

	if (!f)
		return false;
	while (!found && (e = getmntent(f))) {
		found = e->mnt_fsname[0] == '/' &&
			!(for_writing && hasmntopt(e, "ro")) &&
			file_bytes_get(e->mnt_fsname, &other) &&
			file_bytes_overlap(bytes, &other);
		if (found && asprintf(where, "%s (as %s)", e->mnt_dir,
				      e->mnt_fsname) < 0)
			*where = NULL;
		*ended = found && device_mount_ended(e->mnt_dir);
	}
	endmntent(f);
	return found;
}

bool device_is_same(const char *a, const char *b)
{
	struct file_bytes of_a, of_b;

	return file_bytes_get(a, &of_a) && file_bytes_get(b, &of_b) &&
	       of_a.first == of_b.first && file_bytes_overlap(&of_a, &of_b);
}

static bool in_use(const char *path, bool for_writing)
{
	struct file_bytes bytes;
	char *where = NULL;
	bool ended = false;
	bool found = file_bytes_get(path, &bytes) &&
		     is_mounted(&bytes, for_writing, &where, &ended);

	if (found)
		msg_error("%s: mounted on %s%s", path, where ? where : "",
			  ended ? ", and its traxfs has ended without "
			  "unmounting: umount(8) it first" : "");
	free(where);
	return found;
}

bool device_in_use(const char *path)
{
	return in_use(path, false);
}

/* Like disk_open, but prints nothing when the disk is busy. */
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

	/* For reading, a disk that is mounted read-only may be opened. */
	if (in_use(path, read_only))
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
			msg_warn("%s: in use, waiting for it", path);
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

	if (disk->limits.sectors < TRAX_BLOCK_SECTORS)
		return -EINVAL;
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

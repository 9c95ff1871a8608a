/*
 * ram.h - traxfs beside ext4 where the disk costs no time: a loop device over a
 * file in memory.  It measures the way through FUSE and the daemon; a FUSE
 * server that does nothing shows which part FUSE has in it.
 */
#ifndef TRAX_BENCH_RAM_H
#define TRAX_BENCH_RAM_H

#include <stdbool.h>
#include <sys/types.h>

struct ram_options {
	const char *image_dir;	/* folder of the image, in memory; NULL:
				 * /dev/shm */
	const char *work;	/* comma-separated names; NULL: all */
	bool other;		/* compare with the programs in the folder
				 * $OTHER, not with ext4 */
	unsigned rounds;	/* alternating rounds; 0: 3 */
	/* Mounts a FUSE server that does nothing, a child, as the file system
	 * of a device.  The child ends with the mount; 0 or a negative errno,
	 * reported. */
	int (*mount_bare)(const char *device, const char *mnt, pid_t *pid);
	unsigned percent;	/* per cent of the usual sizes and counts; 0:
				 * 100 */
};

/*
 * Runs everything and prints a table: medians, and the ratio of ext4's time to
 * traxfs's beside the one to reach. Needs root. Cleans up what it made. 0 or a
 * negative errno, reported through msg.
 */
int ram_run(const struct ram_options *options);

#endif

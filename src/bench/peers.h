/*
 * peers.h - traxfs and other file systems side by side on one emulated drive.
 */
#ifndef TRAX_BENCH_PEERS_H
#define TRAX_BENCH_PEERS_H

#include <stdbool.h>

struct peers_options {
	const char *drive;	/* specification file */
	const char *fs;		/* comma-separated names; NULL: all */
	const char *work;	/* comma-separated names; NULL: all */
	const char *image_dir;	/* of the sparse image; NULL: /var/tmp */
	const char *tools;	/* folder of our programs; NULL: PATH */
	const char *json;	/* file to write; NULL: none */
	unsigned rounds;	/* 0: 1 */
	unsigned percent;	/* of sizes and counts; 0: 100 */
	unsigned slow;		/* stretch of the drive's times; 0: 1 */
	bool blind;		/* mkfs.traxfs learns nothing of the geometry */
};

/*
 * Runs everything, printing a table.  Needs root, loop devices and FUSE.
 * Cleans up what it made, also after an error.  0 or a negative errno,
 * reported through msg.
 */
int peers_run(const struct peers_options *options);

#endif

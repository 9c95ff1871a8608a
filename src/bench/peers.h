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
	const char *image_dir;	/* folder of the sparse image; NULL: /var/tmp */
	const char *json;	/* file to write; NULL: none */
	unsigned rounds;	/* rounds; 0: 1 */
	unsigned percent;	/* per cent of the usual sizes and counts; 0:
				 * 100 */
	unsigned slow;		/* factor by which the drive is slower; 0: 1 */
	bool blind;		/* mkfs.traxfs learns nothing of the geometry */
};

/*
 * Runs everything, printing a table.  Needs root, loop devices and FUSE.
 * Cleans up what it made, also after an error.  0 or a negative errno,
 * reported through msg.
 */
int peers_run(const struct peers_options *options);

#endif

/*
 * peers.h - traxfs and other file systems side by side on one emulated drive.
 */
#ifndef TRAX_BENCH_PEERS_H
#define TRAX_BENCH_PEERS_H

#include <jansson.h>
#include <stdbool.h>

struct peers_options {
	const char *drive;	/* specification file */
	const char *fs;		/* comma-separated names; NULL: all that the
				 * machine has */
	const char *work;	/* comma-separated names; NULL: all */
	const char *image_dir;	/* folder of the sparse image; NULL: /var/tmp */
	unsigned rounds;	/* rounds; 0: 3 */
	unsigned percent;	/* per cent of the usual sizes and counts; 0:
				 * 100 */
	unsigned slow;		/* factor by which the drive is slower; 0: 1 */
	unsigned memory_mib;	/* of a control group for file system and
				 * workload; 0: none */
	unsigned size_mib;	/* size of the drive, of which the outer tracks
				 * remain; 0: all of it */
	unsigned aged_percent;	/* how full the file system is made before the
				 * workloads run again; 0: they don't */
	bool blind;		/* mkfs.traxfs learns nothing of the geometry */
};

/*
 * Runs everything, printing a table.  Needs root, loop devices and FUSE.
 * Cleans up what it made, also after an error.  0 or a negative errno,
 * reported through msg; *report is what was measured (see peers_report.h), for
 * the caller.
 */
int peers_run(const struct peers_options *options, json_t **report);

#endif

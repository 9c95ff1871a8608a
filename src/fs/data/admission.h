/*
 * admission.h - promises rates to readers, as many as the disk can keep.
 *
 * All readers that have a promise are served once in a round.  A round is as
 * long as what half of the cache chunks hold lasts.  In it the head goes once
 * over the disk, with a stop for each reader: a seek over its part of the
 * cylinders, the wait for the platter, and the transfer of what the reader uses
 * in a round, at the rate of the innermost track.  The waits are random: a
 * promise counts with their mean and three standard deviations of their sum, so
 * that one round in a thousand is too long (Traxtents, section 5.4: soft
 * real-time), and what is ahead of the readers covers that.
 */
#ifndef TRAX_DATA_ADMISSION_H
#define TRAX_DATA_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

struct fs;
struct fs_promise;
struct files;

/* What admission needs to know of a drive and of the memory. */
struct admission_drive {
	uint64_t stroke_ns;	/* a seek over all cylinders */
	uint64_t step_ns;	/* one to the next cylinder */
	uint64_t turn_ns;
	uint64_t media_rate;	/* bytes a second of the slowest track */
	uint64_t memory;	/* bytes for what is read in a round */
};

/* Can the drive serve this number of readers, with `rate` bytes a second for
 * all of them together? */
bool admission_fits(const struct admission_drive *drive, unsigned readers,
		    uint64_t rate);

/* fs_promise (fs.h). */
int admission_ask(struct fs *fs, const struct fs_promise *ask,
		  uint64_t *rate_all, unsigned *readers);

/* The file is being read: returns the rate that was promised for it, 0 if none,
 * and keeps the promise alive. */
uint64_t admission_heard(struct files *files, uint64_t ino, uint64_t now_ns);

/* The file is being deleted: its promise ends. */
void admission_end(struct files *files, uint64_t ino);

/* Bytes a second that are promised to all files together; 0: nothing. */
uint64_t admission_rate_all(const struct files *files);

void admission_free(struct files *files);

#endif

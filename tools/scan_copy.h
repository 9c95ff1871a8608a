/*
 * scan_copy.h - the files of a scan as files below another directory, for a
 * backup.
 *
 * Data goes to its offset in whatever order it comes.  A file that is whole
 * gets the mode, the times and, for root, the owner that it had when it was
 * found.  A file that changed or went meanwhile is deleted again.
 */
#ifndef TRAX_TOOLS_SCAN_COPY_H
#define TRAX_TOOLS_SCAN_COPY_H

#include "lib/trax.h"

struct scan_copy {
	int dir;
	const char *root;	/* of the scan; paths begin with it */
};

/* Copies to the directory `to`, which is made if it is not there.  The caller
 * keeps `root` until the end.  0 or a negative errno. */
int scan_copy_open(struct scan_copy *copy, const char *to, const char *root);
void scan_copy_close(struct scan_copy *copy);
/* Takes one record; 0 or a negative errno. */
int scan_copy_take(struct scan_copy *copy, const struct trax_record *record);

#endif

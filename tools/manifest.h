/*
 * manifest.h - an older output of traxctl scan --sum, to compare with.
 */
#ifndef TRAX_TOOLS_MANIFEST_H
#define TRAX_TOOLS_MANIFEST_H

#include <stdint.h>
#include <stdio.h>

#include "tools/verity.h"

/* The first line of a manifest begins with this; the time of the scan's begin
 * follows, in seconds since 1970. */
#define MANIFEST_HEAD "# traxctl scan --sum begun at "

struct manifest;

/* -EINVAL: the file is no manifest; -ENOMEM, or the error of fopen(3). */
int manifest_open(const char *path, struct manifest **manifest);
void manifest_close(struct manifest *manifest);

enum manifest_verdict {
	MANIFEST_SAME,
	MANIFEST_NEW,		/* the manifest does not have it */
	MANIFEST_CHANGED,	/* it was written to after the scan had begun */
	MANIFEST_ROTTED,	/* it has another digest, though nobody wrote to
				 * it */
};

/* Compares a file that was last written to at `seconds`, which is done once for
 * each file. */
enum manifest_verdict manifest_judge(struct manifest *manifest,
				     const char *path,
				     const uint8_t digest[VERITY_DIGEST_BYTES],
				     int64_t seconds);

/* Prints the files that were not compared. */
void manifest_print_missing(const struct manifest *manifest, FILE *out);

#endif

/*
 * pieces.h - the extents of a file as people want to see them: cut at tracks.
 *
 * Extents that follow each other in the file and on the disk are one run.  A
 * run is cut into its share of a first track, its whole tracks together, and
 * its share of a last one.  Pure functions of extents and geometry.
 */
#ifndef TRAX_FUSE_PIECES_H
#define TRAX_FUSE_PIECES_H

#include <stddef.h>
#include <stdint.h>

#include "diskmodel/geom.h"
#include "fs/fs.h"

/*
 * JSON array of the pieces that end behind byte `from` of the file, as many as
 * fit in `room` bytes; terminated, malloc'd.  NULL: no memory.
 */
char *pieces_json(const struct fs_extent *extents, size_t n,
		  const struct geom *geom, uint64_t from, size_t room);

/*
 * The same as text, one line for each track:
 * "OFFSET BYTES lbn N track N cylinder N surface N whole|part [guessed]".
 */
char *pieces_text(const struct fs_extent *extents, size_t n,
		  const struct geom *geom, uint64_t from, size_t room);

#endif

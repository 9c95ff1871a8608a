/*
 * extent_view.h - the extents of a file as people want to see them: cut at
 * tracks.
 *
 * Extents that follow each other in the file and on the disk are one run.  A
 * run is cut into its share of a first track, its whole tracks together, and
 * its share of a last one.  The extents come in pages, so that a printer needs
 * the same memory for every file, and each call costs about the same.
 */
#ifndef TRAX_FUSE_EXTENT_VIEW_H
#define TRAX_FUSE_EXTENT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diskmodel/geom.h"
#include "fs/fs.h"

/*
 * EXTENT_VIEW_JSON: an array of objects; more than EXTENT_VIEW_TRACKS whole
 * tracks in a row are several rows.  EXTENT_VIEW_TEXT: a line for each track,
 * "OFFSET BYTES lbn N track N cylinder N surface N whole|part [guessed]".
 */
enum extent_view_style { EXTENT_VIEW_JSON, EXTENT_VIEW_TEXT };

#define EXTENT_VIEW_TRACKS 1024u

struct extent_view {
	const struct geom *geom;
	enum extent_view_style style;
	char *buffer;		/* the caller's */
	size_t used, room;	/* bytes of it; the text ends with a zero byte
				   that is in neither */
	uint64_t from;		/* bytes; rows that end behind it are still
				   to be printed */
};

/* `buffer` has room for `room` bytes (4 at least) and the zero byte. */
void extent_view_begin(struct extent_view *view, const struct geom *geom,
		  enum extent_view_style style, uint64_t from, char *buffer,
		  size_t room);

/*
 * Prints the rows of a page: `n` extents (1 at least) in the order of the
 * file, the first of them the one that holds view->from or comes next behind
 * it.  `last`: the file has no extents behind these.  Returns whether another
 * page is wanted, from the new view->from on; false: all is printed, or the
 * buffer is full.
 */
bool extent_view_add(struct extent_view *view, const struct fs_extent *extents,
		size_t n, bool last);

/* Ends the text; its length. */
size_t extent_view_end(struct extent_view *view);

#endif

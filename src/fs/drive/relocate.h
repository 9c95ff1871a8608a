/*
 * relocate.h - moves log tracks onto true tracks.
 *
 * Log tracks were laid out when less was known of the disk.  When the file
 * system begins with a geometry, or gets a better one, each log track that does
 * not lie on true tracks moves: in idle time, one after another, some seconds
 * apart.
 */
#ifndef TRAX_DRIVE_RELOCATE_H
#define TRAX_DRIVE_RELOCATE_H

#include "fs/op/fs_internal.h"

struct relocate;

/* *relocate is NULL if nothing moves (read-only). -ENOMEM. */
int relocate_open(struct fs *fs, struct relocate **relocate);
void relocate_free(struct relocate *relocate);	/* NULL is harmless */

/* There is another geometry. */
void relocate_wanted(struct relocate *relocate);
/* Moves at once, without idle time and pauses: for tests. */
void relocate_now(struct relocate *relocate);

uint64_t relocate_run(struct relocate *relocate, uint64_t now_ns);

/* A move under way goes on to its end, none begins. */
void relocate_close(struct relocate *relocate);
bool relocate_idle(const struct relocate *relocate);

struct relocate_stats {
	uint64_t logs;		/* tracks that have moved */
	uint64_t given_up;
};
void relocate_get_stats(const struct relocate *relocate,
			struct relocate_stats *stats);

#endif

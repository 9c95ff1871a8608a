/*
 * relocate.h - log and node tracks move onto true tracks.
 *
 * They were laid out when less was known of the disk.  When the file system
 * begins with a geometry, or is given a better one, each that does not keep to
 * tracks moves: in idle time, one after another, some seconds apart.
 */
#ifndef TRAX_DRIVE_RELOCATE_H
#define TRAX_DRIVE_RELOCATE_H

#include "fs/op/fs_internal.h"

struct settle;

/* NULL in *settle: nothing moves (read-only).  -ENOMEM. */
int settle_open(struct fs *fs, struct settle **settle);
void settle_free(struct settle *settle);	/* NULL is harmless */

/* There is another geometry. */
void settle_wanted(struct settle *settle);
/* Not in idle time but now, without pauses: for tests. */
void settle_now(struct settle *settle);

uint64_t settle_run(struct settle *settle, uint64_t now_ns);

/* What is under way goes on to its end, nothing new begins. */
void settle_close(struct settle *settle);
bool settle_idle(const struct settle *settle);

struct settle_stats {
	uint64_t logs, nodes;	/* tracks that have moved */
	uint64_t given_up;
};
void settle_get_stats(const struct settle *settle, struct settle_stats *stats);

#endif

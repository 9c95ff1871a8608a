/*
 * tasks.h - what works in the background of a mount, as one table: the
 * attribute trax.tasks, and by name to pause and resume.
 */
#ifndef TRAX_TASKS_TASKS_H
#define TRAX_TASKS_TASKS_H

#include <stdbool.h>

struct file_scans;
struct fs;
struct moves;
struct scrub;

/* What there is of a mount; each but fs may be NULL. */
struct tasks {
	struct fs *fs;
	struct scrub *scrub;
	struct file_scans *scans;
	struct moves *moves;
};

/* JSON text, the caller frees; NULL: no memory. */
char *tasks_json(const struct tasks *tasks);

/* "scrub", "copies", "cleaning", "order", or "scan-N"; -ENOENT: nothing has
 * that name now. */
int tasks_pause(const struct tasks *tasks, const char *name, bool paused);

#endif

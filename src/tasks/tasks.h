/*
 * tasks.h - the background tasks of a mount as one table: the attribute
 * trax.tasks, and pausing and resuming them by name.
 */
#ifndef TRAX_TASKS_TASKS_H
#define TRAX_TASKS_TASKS_H

#include <stdbool.h>

struct file_scans;
struct fs;
struct moves;
struct scrub;

/* The tasks of a mount; each but fs may be NULL. */
struct tasks {
	struct fs *fs;
	struct scrub *scrub;
	struct file_scans *scans;
	struct moves *moves;
};

/* JSON text, the caller frees; NULL: no memory. */
char *tasks_json(const struct tasks *tasks);

/* Pauses or resumes "scrub", "copies", "cleaning", "order", or "scan-N";
 * -ENOENT: there is no such task now. */
int tasks_pause(const struct tasks *tasks, const char *name, bool paused);

#endif

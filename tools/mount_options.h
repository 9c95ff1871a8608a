/*
 * mount_options.h - what stands behind -o.
 */
#ifndef TRAX_TOOLS_MOUNT_OPTIONS_H
#define TRAX_TOOLS_MOUNT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct mount_settings {
	bool read_only;
	bool accept_loss;		/* see tree/tree.h */
	bool noatime, strictatime, nodiratime;
	bool nosymfollow;
	bool allow_other;
	unsigned commit_seconds;	/* 0: not given */
	size_t memory_bytes;		/* 0: not given */
	unsigned scrub_days;		/* period; 0: by hand */
	unsigned quiet_ms;		/* before idle time; 0: not given */
	unsigned budget_ppm;		/* of background work */
	bool refine;		/* the map of tracks, in idle time */
	unsigned replicas;
	unsigned watermarks[3];		/* high, low, critical; 0: not given */
	char flags[256];		/* for the kernel: "nosuid,noexec" */
};

/* Adds a list of options to the defaults; later ones win.  -EINVAL: unknown or
 * malformed, reported through msg. */
int mount_settings_parse(struct mount_settings *settings, const char *list);

#endif

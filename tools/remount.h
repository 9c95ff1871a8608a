/*
 * remount.h - changes a mount that is there, in the kernel and in the daemon.
 */
#ifndef TRAX_TOOLS_REMOUNT_H
#define TRAX_TOOLS_REMOUNT_H

#include "tools/mount_options.h"

/*
 * `list`: the options as they were given, `settings` what they say.  Read-only
 * when the kernel takes no more changes, then the daemon writes all it has and
 * stops; the other way round for writing.  0 or a negative errno, reported.
 */
int remount(const char *mountpoint, const struct mount_settings *settings,
	    const char *list);

#endif

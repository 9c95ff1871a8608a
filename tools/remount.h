/*
 * remount.h - changes an existing mount, in the kernel and in the daemon.
 */
#ifndef TRAX_TOOLS_REMOUNT_H
#define TRAX_TOOLS_REMOUNT_H

#include "tools/mount_options.h"

/*
 * `list`: the options as they were given, `settings` what they say.  To become
 * read-only, first the kernel refuses changes, then the daemon writes all it
 * has; to become writable, the daemon goes first.  0 or a negative errno,
 * reported through msg.
 */
int remount(const char *mountpoint, const struct mount_settings *settings,
	    const char *list);

#endif

/*
 * second_view.h - mounts a device that is mounted already at a second place.
 */
#ifndef TRAX_TOOLS_SECOND_VIEW_H
#define TRAX_TOOLS_SECOND_VIEW_H

#include "tools/mount_options.h"

/*
 * When a traxfs from this device or image is mounted, mounts its root directory
 * at `mountpoint` as well, as mount(8) does with other file systems.  Only
 * those of the settings apply that belong to a single mount.  -ENOENT: it is
 * not mounted; or the kernel's error.
 */
int second_view(const char *device, const char *mountpoint,
		const struct mount_settings *settings);

#endif

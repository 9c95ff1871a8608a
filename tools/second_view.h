/*
 * second_view.h - a device that is mounted already, at another place as well.
 */
#ifndef TRAX_TOOLS_SECOND_VIEW_H
#define TRAX_TOOLS_SECOND_VIEW_H

#include "tools/mount_options.h"

/*
 * When a traxfs from this device or image is mounted, mounts its root directory
 * at `mountpoint` as well, as mount(8) does with other file systems; of the
 * settings those apply that belong to a mount.  -ENOENT: it is not mounted;
 * else what the kernel says.
 */
int second_view(const char *device, const char *mountpoint,
		const struct mount_settings *settings);

#endif

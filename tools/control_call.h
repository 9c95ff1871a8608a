/*
 * control_call.h - the tools' end of fuse/control.h.
 */
#ifndef TRAX_TOOLS_CONTROL_CALL_H
#define TRAX_TOOLS_CONTROL_CALL_H

#include "fuse/control.h"

/* The ioctl on this directory; 0 or -1 with errno. */
int control_ioctl(const char *mountpoint, struct trax_control *control);

/* Everything to the medium, what the kernel holds included.  -1: errno. */
int sync_mount(const char *mountpoint);

#endif

/*
 * control_call.h - the tools' end of fuse/control.h.
 */
#ifndef TRAX_TOOLS_CONTROL_CALL_H
#define TRAX_TOOLS_CONTROL_CALL_H

#include "fuse/control.h"

/* Calls TRAX_IOC_CONTROL on this directory; 0, or -1 with errno. */
int control_ioctl(const char *mountpoint, struct trax_control *control);

/* Writes everything to the medium, also what the kernel holds.  -1: errno. */
int sync_mount(const char *mountpoint);

#endif

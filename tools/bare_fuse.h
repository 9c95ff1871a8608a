/*
 * bare_fuse.h - a FUSE server that does nothing: names and attributes are in
 * its memory, what is written is dropped, what is read is zeros.
 *
 * It is mounted with the options that traxfs has, so that the kernel sends the
 * same requests.  The time of a workload on it is the price of FUSE alone.
 */
#ifndef TRAX_TOOLS_BARE_FUSE_H
#define TRAX_TOOLS_BARE_FUSE_H

#include <sys/types.h>

/*
 * Mounts the server, a child of this process, on `mnt` as the file system of
 * the block device `device`, which it does not touch.  The child ends with the
 * mount; the caller waits for *pid.  0 or a negative errno, reported.
 */
int bare_fuse_mount(const char *device, const char *mnt, pid_t *pid);

#endif

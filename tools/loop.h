/*
 * loop.h - a loop device for an image file, gone with its last user.
 */
#ifndef TRAX_TOOLS_LOOP_H
#define TRAX_TOOLS_LOOP_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes one, with direct I/O where the file allows it; `device` gets its name.
 * Returns a descriptor of the device: once neither that nor anybody else has it
 * open, the kernel takes it away.  Or a negative errno, nothing said.
 */
int loop_attach(const char *image, bool read_only, char *device, size_t bytes);

#endif

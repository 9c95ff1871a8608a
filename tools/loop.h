/*
 * loop.h - a loop device for an image file, which goes with its last user.
 */
#ifndef TRAX_TOOLS_LOOP_H
#define TRAX_TOOLS_LOOP_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes a loop device, with direct I/O where the file allows it; `device` gets
 * its name.  Returns a descriptor of it, or a negative errno, which is not
 * reported.  The kernel takes the device away when it is open no more.
 */
int loop_attach(const char *image, bool read_only, char *device, size_t bytes);

#endif

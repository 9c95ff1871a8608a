/*
 * unwritten.h - says in the log how much is left to write while somebody waits
 * for all of it: a syncfs, which is the longer part of an unmount, or the close
 * of the file system.
 */
#ifndef TRAX_DATA_UNWRITTEN_H
#define TRAX_DATA_UNWRITTEN_H

#include <stdint.h>

#include "fs/data/file_data.h"

/* Somebody waits from now on; each is over once. */
void unwritten_wait(struct files *files);
void unwritten_over(struct files *files);

/* Says it when it is time; returns when that is again. */
uint64_t unwritten_run(const struct fs *fs, uint64_t now_ns);

#endif

/*
 * unwritten.h - says in the log how much is left to write while somebody waits
 * for all of it: a syncfs, which is the longer part of an unmount, or the close
 * of the file system.
 */
#ifndef TRAX_DATA_UNWRITTEN_H
#define TRAX_DATA_UNWRITTEN_H

#include <stdint.h>

#include "fs/data/file_data.h"

/* unwritten_wait: somebody waits from now on; unwritten_over follows once for
 * each. */
void unwritten_wait(struct files *files);
void unwritten_over(struct files *files);

/* Logs the amount when it is time; returns when it is time again. */
uint64_t unwritten_run(const struct fs *fs, uint64_t now_ns);

#endif

/*
 * limit.h - the memory that this process may use, by its control groups.
 */
#ifndef TRAX_CACHE_LIMIT_H
#define TRAX_CACHE_LIMIT_H

#include <stdint.h>

/*
 * The tightest memory limit, in bytes, of the process's control group and all
 * those above it, version 1 or 2; UINT64_MAX: none.  `root` stands before
 * /proc/self/cgroup, /proc/self/mountinfo and what they name: "" but in tests.
 */
uint64_t limit_memory(const char *root);

#endif

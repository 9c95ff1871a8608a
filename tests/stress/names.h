/*
 * names.h - one process of "names tree" (names_process.c).
 */
#ifndef TRAX_STRESS_NAMES_H
#define TRAX_STRESS_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define NAMES_SHARED_DIRS 4u
#define NAMES_PROCESSES_MAX 16u

struct names_config {
	uint64_t seed;
	unsigned long ops;
	unsigned processes, entries;
	const char *directory;
};

/* Of all processes: how many names there must be at the end. */
struct names_shared {
	_Atomic long own, common;
};

/* False when something was wrong; it has been printed. */
bool names_process(const struct names_config *c, struct names_shared *shared,
		   unsigned process);

#endif

/*
 * papers.h - `traxbench papers`: figures that the five papers print, each
 * beside the same figure measured here, in virtual time.
 */
#ifndef TRAX_BENCH_PAPERS_H
#define TRAX_BENCH_PAPERS_H

#include <stdbool.h>
#include <stdint.h>

struct papers_options {
	const char *only;	/* part of a paper's name; NULL: all papers */
	const char *json;	/* file to write; NULL: none */
	uint64_t seed;
	bool quick;		/* a tenth of each measurement */
};

/* Prints a row for each figure.  0 or a negative errno, reported through
 * msg. */
int papers_run(const struct papers_options *options);

#endif

/*
 * work_internal.h - the workloads from inside: parts that several need, and
 * those that have a file of their own.
 */
#ifndef TRAX_BENCH_WORK_INTERNAL_H
#define TRAX_BENCH_WORK_INTERNAL_H

#include "bench/work.h"

#define MIB (1u << 20)

/* ---- work.c ---- */

/* That per cent of n, at least 1. */
unsigned work_scaled(unsigned n, unsigned percent);
uint64_t work_random(uint64_t *state);
/* Reports errno; returns it, negative. */
int work_failed(const char *what, const char *path);
int work_write_file(const char *path, uint64_t bytes, uint64_t seed);
int work_read_file(const char *path, uint64_t most);
/* Notes how long an operation took that ends now; from any thread. */
void work_took(struct work_result *result, uint64_t begun_ns);

/* ---- work_small.c: many small files ---- */

int work_pair_prepare(const char *dir, unsigned percent);
int work_pair_run(const char *dir, unsigned percent,
		  struct work_result *result);
double work_pair_limit(const struct work_drive *drive, unsigned percent);
int work_mail_run(const char *dir, unsigned percent,
		  struct work_result *result);
double work_mail_limit(const struct work_drive *drive, unsigned percent);

/* ---- work_video.c: streams ---- */

int work_video_prepare(const char *dir, unsigned percent);
int work_video_run(const char *dir, unsigned percent,
		   struct work_result *result);
int work_video_buffered_run(const char *dir, unsigned percent,
			    struct work_result *result);

#endif

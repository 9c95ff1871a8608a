/*
 * peers_report.h - what `traxbench peers` measured, as JSON and as a table.
 *
 * The report is an object: "drive", "rounds", "percent", "memory_mib", "rows",
 * and "platter", the value of trax.platter after the workloads.  A row is one
 * workload on one file system, the round at the median of what counts.
 */
#ifndef TRAX_BENCH_PEERS_REPORT_H
#define TRAX_BENCH_PEERS_REPORT_H

#include <jansson.h>

#include "bench/work.h"

/* What the drive counted, seconds of the drive's own time. */
struct peer_head {
	double elapsed;
	double seek, rotation, transfer, ahead, idle;
	double requests, read_bytes;
};

/* One workload in one round. */
struct peer_sample {
	double elapsed, value;
	double beside_mb;	/* MB/s that were read beside the workload */
	/* Seconds within which 50, 90, 99, 99.9 and 100 % of the operations
	 * were over. */
	double latency[5];
	struct peer_head head;
};

/* Takes the parts out of all that was measured, which it sorts. */
void peers_latencies(struct work_result *result, double parts[5]);

/* Adds a row; sorts the samples. */
void peers_add_row(json_t *rows, const struct work *work, const char *name,
		   const char *fs, struct peer_sample *sample, unsigned n,
		   double limit_seconds);

/* Completes rows with the ratio of traxfs to each. */
void peers_compare(json_t *rows);

void peers_print(const json_t *rows);

#endif

/*
 * replicas_internal.h - `traxbench replicas` from inside: replicas.c (runs and
 * figures), replicas_work.c (workloads).
 */
#ifndef TRAX_BENCH_REPLICAS_INTERNAL_H
#define TRAX_BENCH_REPLICAS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/replicas.h"
#include "diskmodel/spec.h"
#include "fs/fs.h"

#define CHUNK_BYTES (1u << 20)	/* Most bytes of one operation. */
#define MAX_DIRS 1024u		/* Most directories of a workload. */

struct read {
	uint32_t file;
	uint32_t offset, bytes;
};

struct bench_file {
	uint64_t ino;
	uint32_t bytes;
	uint32_t dir;
	bool seen;		/* it has been looked up in this run */
};

struct dir {
	uint64_t ino, parent;
	bool seen;
};

struct bench {
	const struct replicas_options *options;
	struct spec *spec, *model;
	struct geom *geom;
	struct sim *sim;
	struct head *head;
	struct fs *fs;
	uint64_t rng;
	/* The workload. */
	struct bench_file *file;
	uint32_t files, files_room;
	struct dir dir[MAX_DIRS];	/* directory 0 is the root */
	uint32_t dirs;
	struct read *read;
	uint32_t reads, reads_room;
	uint64_t think_ns;
	size_t memory;
};

/* ---- replicas.c ---- */

int bench_do(struct bench *bench, struct fs_op *op);

/* ---- replicas_work.c ---- */

/* Reads a file of one tree, then its counterpart of the other one, and so
 * on. */
int replicas_trees(struct bench *bench);

/* Goes through directories in another order than they were made in, as when
 * files have come and gone for years. */
int replicas_aged(struct bench *bench);

/* Reads blocks anywhere in one large file; each transaction has its own. */
int replicas_oltp(struct bench *bench);

/* Transactions in another order; `file` of a read is its transaction. */
void replicas_oltp_order(struct bench *bench);

/* Two document roots; sizes and popularity are those of the web. */
int replicas_web(struct bench *bench);

void replicas_web_order(struct bench *bench);

/* Reads parts of many libraries, and small files, always in one order. */
int replicas_desktop(struct bench *bench);

/* Reads the trees, until everything is read in another order. */
void replicas_change_order(struct bench *bench);

#endif

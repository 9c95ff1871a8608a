/*
 * writeback_internal.h - write-back from inside: writeback.c (life, requests),
 * writeback_txn.c (transactions), writeback_pump.c (which blocks, and when).
 * Each calls only those before it; upwards it goes by struct files_ops.
 */
#ifndef TRAX_DATA_WRITEBACK_INTERNAL_H
#define TRAX_DATA_WRITEBACK_INTERNAL_H

#include <stdint.h>

#include "fs/data/writeback.h"
#include "fs/data/writeback_policy.h"

/* ---- writeback.c ---- */

/* Most blocks of a write-back of this kind. */
unsigned writeback_most(const struct writeback *wb);

/* A write-back has its place: the file's next one may look for its own. */
void writeback_prepared(struct file *file);

/* As writeback_collect, at most `most` blocks; blocks whose place is bad make a
 * write-back of their own. */
unsigned writeback_collect_most(const struct writeback *wb, unsigned most);

/* Is the file written back among the small files? */
bool file_is_small(const struct file *file);

/* ---- writeback_txn.c ---- */

/* Finds the kind of a write-back and its place. */
extern const struct fs_txn_type writeback_prepare_type;

/* Logs the data of a write-back, instead of writing it to a place. */
void writeback_log(struct writeback *wb);

/* The transaction that stores a small file in its leaf. */
int writeback_inline_run(struct fs_txn *txn);

void writeback_inline_end(struct fs_txn *txn, int rc, uint64_t seq);

#endif

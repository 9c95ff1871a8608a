/*
 * log.h - the write-ahead log: changes become durable in one write.
 *
 * Records are filled in memory (the open record) and closed when full or when a
 * commit asks.  A record goes to the free slot of a log track that passes under
 * the head first, or to the next slot of the open track where the head is not
 * known.  One write is under way at a time; what arrives meanwhile shares the
 * next (group commit).  Each record chains to the one before by its checksum:
 * the order of slots means nothing.
 *
 * A record by which something was acknowledged, or on which something depends,
 * gets a mirror on another log track: behind a later record in the same write,
 * once records go there; or by itself, many in one write, when there was no
 * commit for 50 ms.  When the log is nearly full the mirror is left out.
 *
 * Sequence numbers count records from 1 and are never reused.  The log keeps
 * the records from its tail on: the tail of the durable root, which is the
 * first record that was not in its tree, or the oldest one that was pinned at
 * its cut (log_pin: its data is not yet destaged).  So a pin keeps all records
 * behind it as well, until the next root but one.
 *
 * Commit order on a disk with a volatile cache: if writes completed since the
 * last flush, flush; then the record with FUA.
 *
 * Errors: a failed write is repeated or tried in another slot as the table in
 * disk/fault.h says; then the log is failed: every waiter gets -EIO, and so
 * does everything later.  A failed flush fails it at once.
 */
#ifndef TRAX_LOG_LOG_H
#define TRAX_LOG_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/uio.h>

#include "base/env.h"
#include "base/list.h"
#include "format/format.h"
#include "sched/queue/queue.h"

struct log;

/* A waiter is embedded in the caller's structure.  done() is called exactly
 * once, never from inside the call that registers it. */
struct waiter {
	struct list link;
	uint64_t seq;
	void (*done)(struct waiter *waiter, int rc);
	void *owner;
};

struct log_options {
	uint64_t mirror_delay_ns;	/* 0: 50 ms */
	bool read_only;
	/* Memory for copies of records that nobody has waited for, which get a
	 * mirror only if somebody is told of them after all; 2 MiB at most, and
	 * 512 KiB at least; 0: 2 MiB. */
	size_t untold_bytes;
};

int log_open(struct env *env, struct queue *queue, const struct super *super,
	     const struct log_options *options, struct log **log);
/* Frees the log.  Nothing may be in flight (log_drain), unless the queue is
 * never polled again.  Waiters that are left are not called. */
void log_close(struct log *log);

/* ---- Recovery (synchronous, before anything else) ---- */

struct log_replay {
	uint64_t epoch, gen;	/* epoch and generation of the root */
	uint64_t cut_seq;	/* records behind this one are applied */
	uint64_t cut_chain;
	uint64_t tail_seq;	/* records from here on may hold data */
	size_t memory_bytes;	/* memory for records; 2 MiB at least */
	/* Called with the payloads of coming record() calls, so that it can
	 * prefetch: only of records that will be applied, and as far as they
	 * are in memory.  Returns nonzero when that is enough. payload NULL:
	 * there are no more for now.  May be NULL. */
	int (*ahead)(void *arg, const void *payload, size_t bytes);
	/* Called in sequence order for each record of the chain;
	 * `apply`: it is behind the cut; `id`: for log_recovered_read. */
	int (*record)(void *arg, uint64_t seq, uint32_t id, bool apply,
		      const void *payload, size_t bytes);
	void *arg;
};

/*
 * Reads all log tracks and walks the chain.  *last is the last sequence
 * accepted (cut_seq when none), *chain its chain value.  -EUCLEAN: an
 * acknowledged record is missing and so is its mirror, or there are records of
 * a root newer than this one, which is lost; what came before has been
 * delivered; the caller mounts read-only and says so.
 */
int log_recover(struct log *log, const struct log_replay *replay,
		uint64_t *last, uint64_t *chain);

/* Reads the payloads of these records again, in this order, which is best the
 * order of the chain. -EIO: one cannot be read any more, nor can its mirror. */
int log_recovered_read(struct log *log, const uint32_t *ids, size_t n,
		       int (*record)(void *arg, uint32_t id,
				     const void *payload, size_t bytes),
		       void *arg);
/* Frees the memory of recovery; nothing is read again after this. */
void log_recover_end(struct log *log);

/* Called before log_start: keeps records from this one on, because they may be
 * pinned. */
void log_keep(struct log *log, uint64_t keep_from);
/* Starts writing, or goes on. All units are free except those of records from
 * `keep_from` up to `last`. */
int log_start(struct log *log, uint64_t epoch, uint64_t gen, uint64_t last,
	      uint64_t chain, uint64_t keep_from);

/* ---- Running ---- */

/* Reserves room for `bytes` of entries; false: the log is too full (80 %), or
 * too much is on its way to it: try again after the next completion or
 * checkpoint.  `urgent` may use the part kept for what makes room: 95 %, or
 * 99 % while the log is alone.  Each reserve is followed by one release with
 * the same bytes, after the log_add. */
bool log_reserve(struct log *log, size_t bytes, bool urgent);
void log_release(struct log *log, size_t bytes);
/* Is nothing promised and nothing on its way to the log?  Then an urgent
 * log_reserve that finds no room finds none before something is freed. */
bool log_is_alone(const struct log *log);
/* A number that grows whenever something is unpinned, or records are freed. */
uint64_t log_freed(const struct log *log);

/*
 * Appends the entries of one operation as a whole to the open record (a new
 * one when they don't fit); cannot fail.  iov total at most
 * TRAX_MAX_RECORD_BYTES less the header and a unit.  Returns the record's
 * sequence number.
 */
uint64_t log_add(struct log *log, const struct iovec *iov, unsigned iov_n);

/* Calls the waiter when all records up to waiter->seq are durable; UINT64_MAX:
 * up to the last one that was added. */
void log_commit(struct log *log, struct waiter *waiter);

/* Something that cannot be undone depends on the durable record seq, as an
 * acknowledgement would: so the record gets a mirror. */
void log_depend_on(struct log *log, uint64_t seq);

uint64_t log_durable_seq(const struct log *log);
bool log_has_pending(const struct log *log);	/* entries were added that are
						 * not durable yet */
/* when the oldest of these was added */
uint64_t log_pending_since_ns(const struct log *log);

/* Data in record seq is not destaged yet (pin), or is in its place (unpin).
 * Pins are counted.  A root's tail_seq is the oldest pinned record, or cut_seq
 * + 1, as of the log_cut or later. */
void log_pin(struct log *log, uint64_t seq);
void log_unpin(struct log *log, uint64_t seq);
/* the oldest pinned record; UINT64_MAX: none is pinned */
uint64_t log_oldest_pinned(const struct log *log);

/* Closes the open record: everything so far is at or before *seq.  The new
 * generation starts with the next record.  *chain is the chain value of *seq.
 * The root of the cut depends on the records that are pinned. */
void log_cut(struct log *log, uint64_t gen, uint64_t *seq, uint64_t *chain);

/* A root that holds everything up to cut_seq is durable: records that it does
 * not need are freed. */
void log_trim(struct log *log, uint64_t cut_seq);

unsigned log_fill_percent(const struct log *log);
bool log_failed(const struct log *log);

/* Writes mirrors, and calls waiters whose records were durable already when
 * they registered.  Returns when it must be called again (UINT64_MAX: never).
 */
uint64_t log_run(struct log *log, uint64_t now_ns);
/* Time at which a checkpoint is wanted because acknowledged records have no
 * mirror: memory for it ran out before they were acknowledged, or the mirror
 * could not be written.  UINT64_MAX: no checkpoint is wanted. */
uint64_t log_checkpoint_ns(const struct log *log);
/* Is there a waiter that log_run can call at once? */
bool log_due(const struct log *log);

/* Writes all records and mirrors, and calls the waiter when nothing is in
 * flight; for unmount. -EIO if the log has failed. */
void log_drain(struct log *log, struct waiter *waiter);

/*
 * log_record_next finds the first record or mirror that is needed, has been
 * written, and begins in [from, end); false: none.  log_record_verify says why
 * the bytes read from that place are not that record; NULL: they are.
 */
struct log_found {
	uint64_t sector, seq;
	uint32_t sectors;
};
bool log_record_next(const struct log *log, uint64_t from, uint64_t end,
		     struct log_found *found);
const char *log_record_verify(const struct log *log,
			      const struct log_found *found,
			      const void *bytes);

struct log_stats {
	uint64_t commits;	/* log_commit calls answered */
	uint64_t records, record_bytes, retries;
	uint64_t mirror_writes;
	uint64_t mirrors_skipped; /* records whose mirror was given up */
	uint64_t stalls;	/* times that a record had to wait for room */
};
void log_get_stats(const struct log *log, struct log_stats *out);

#endif

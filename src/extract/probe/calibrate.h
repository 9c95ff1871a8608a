/*
 * calibrate.h - what single reads of a drive are worth: the noise of their
 * completions, and what a cache does to them.
 */
#ifndef TRAX_PROBE_CALIBRATE_H
#define TRAX_PROBE_CALIBRATE_H

#include "extract/probe/reader.h"

/* Near a unit, for the reader to know.  -EOPNOTSUPP: the noise is too large
 * for anything; -EIO: too little can be read. */
int calibrate_reader(struct reader *reader, uint64_t unit);

/* By how much the reader's hit_ns is longer than a hit takes. */
#define CALIBRATE_MARGIN_NS 120000u

/* By a reader that has been calibrated: does a drive read units in the order in
 * which they come by, and how many does it read ahead, to an eighth? */
int calibrate_order(struct reader *reader, bool *any_order);
int calibrate_ahead(struct reader *reader, uint64_t *ahead);

#endif

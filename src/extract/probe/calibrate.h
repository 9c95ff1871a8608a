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

#endif

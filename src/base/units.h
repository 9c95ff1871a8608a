/*
 * units.h - units of time.  All times are in nanoseconds.
 *
 * The constants are signed, so that they suit wall clocks, which may be before
 * 1970, as well as durations, which are unsigned.
 */
#ifndef TRAX_BASE_UNITS_H
#define TRAX_BASE_UNITS_H

#include <stdint.h>

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_SECOND INT64_C(1000000000)
#define SECONDS_PER_DAY INT64_C(86400)
#define NS_PER_DAY (SECONDS_PER_DAY * NS_PER_SECOND)

#endif

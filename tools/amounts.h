/*
 * amounts.h - how all tools write sizes, dates and durations for people.
 */
#ifndef TRAX_TOOLS_AMOUNTS_H
#define TRAX_TOOLS_AMOUNTS_H

struct text {
	char s[64];
};

/* "1.8 TiB" and the like. */
struct text size_text(double bytes);
/* Seconds since 1970 as a local date; 0 or less: "never". */
struct text date_text(double seconds);
/* A duration in its two largest units; negative: "not known". */
struct text duration_text(double seconds);

#endif

/*
 * recent.h - what a drive's cache may hold of what was read lately.
 *
 * A drive keeps what it reads, and what lies behind it, in some number of
 * segments that it takes over in turn.  Which of it is really there is the
 * drive's business; this remembers what may be, so that units can be asked for
 * in a way that no cache can answer, or not be asked for at all.
 *
 * Units as in reader.h.
 */
#ifndef TRAX_PROBE_RECENT_H
#define TRAX_PROBE_RECENT_H

#include <stdbool.h>
#include <stdint.h>

#define RECENT_MAX 1024u

struct recent {
	/* Learned.  */
	unsigned depth;		/* reads after which one is forgotten; 0: no
				 * cache */
	uint64_t ahead;		/* units that are read ahead, at most */
	uint64_t slack;		/* of them, before the next read */

	struct {
		uint64_t first, end;	/* [first, end) may be there */
	} ring[RECENT_MAX];
	unsigned next;
	uint64_t read_end;	/* of the last read itself */
};

void recent_init(struct recent *recent);
void recent_forget(struct recent *recent);

/* [first, end) has been read.  `idle`: the drive had time since the last. */
void recent_add(struct recent *recent, uint64_t first, uint64_t end,
		bool idle);

bool recent_has(const struct recent *recent, uint64_t unit);

/* Would a drive that is still reading ahead get to a unit, and all that is
 * before it? */
bool recent_streams(const struct recent *recent, uint64_t unit);

/* It remembered more than was believed. */
void recent_more(struct recent *recent);

#endif

/*
 * read_stream.h - readers that read on from where they were, one piece after
 * the other: is it worth waiting for the next?
 *
 * Units: sectors, nanoseconds.
 */
#ifndef TRAX_QUEUE_READ_STREAM_H
#define TRAX_QUEUE_READ_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#define STREAMS 16u

struct read_stream {
	uint64_t end;		/* of its last piece */
	uint64_t used;		/* a counter, for the least recent */
	uint64_t done_ns;	/* the last piece is over since; 0: it is not */
	uint64_t think_ns;	/* from then to the next piece, of late */
	unsigned run;		/* pieces that followed */
	unsigned missed;	/* waited for in vain, one after another */
};

struct read_streams {
	struct read_stream v[STREAMS];
	uint64_t clock;
};

/* A read is submitted; it is over. */
void read_stream_submit(struct read_streams *streams, uint64_t sector,
			uint32_t sectors, uint64_t now_ns);
void read_stream_done(struct read_streams *streams, uint64_t end,
		      uint64_t now_ns);

/*
 * Until when the next piece behind `end` is worth waiting for: 0, it is not;
 * UINT64_MAX, until the last one is over at least.
 */
uint64_t read_stream_until_ns(const struct read_streams *streams, uint64_t end);

/* The wait for what comes behind `end` was in vain. */
void read_stream_miss(struct read_streams *streams, uint64_t end);

#endif

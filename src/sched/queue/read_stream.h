/*
 * read_stream.h - sequential readers: decides whether it is worth leaving the
 * disk idle until the next read of a stream comes (anticipation).
 *
 * Units: sectors, nanoseconds.
 */
#ifndef TRAX_QUEUE_READ_STREAM_H
#define TRAX_QUEUE_READ_STREAM_H

#include <stdbool.h>
#include <stdint.h>

/* Streams that are remembered; the one not used for longest is replaced. */
#define STREAMS 16u

struct read_stream {
	uint64_t end;		/* sector behind its last read */
	uint64_t used;		/* value of the clock at its last use */
	uint64_t done_ns;	/* when its last read completed; 0: not yet */
	uint64_t think_ns;	/* recent time from done_ns to the next read */
	unsigned run;		/* reads that went on where one ended */
	unsigned missed;	/* waits in a row that were in vain */
};

struct read_streams {
	struct read_stream v[STREAMS];
	uint64_t clock;
};

/* Reports that a read was submitted, and that it completed. */
void read_stream_submit(struct read_streams *streams, uint64_t sector,
			uint32_t sectors, uint64_t now_ns);
void read_stream_done(struct read_streams *streams, uint64_t end,
		      uint64_t now_ns);

/*
 * Until when it is worth waiting for the read that begins at `end`.  0: it is
 * not; UINT64_MAX: at least until the last read of the stream has completed.
 */
uint64_t read_stream_until_ns(const struct read_streams *streams, uint64_t end);

/* Reports that the wait for a read at `end` was in vain. */
void read_stream_miss(struct read_streams *streams, uint64_t end);

#endif

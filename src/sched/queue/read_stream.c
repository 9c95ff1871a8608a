/*
 * read_stream.c - a stream is known by where its last read ends.
 *
 * A reader that has come back RUN times after its last read was done, within
 * THINK_MAX_NS of late, is waited for twice as long as it usually thinks.  A
 * read that is submitted before the last read is done (read-ahead of many
 * files that lie one behind the other) does not count as coming back.  The wait
 * is shorter than going away and coming back, so it pays even if half of the
 * waits are in vain; after MISSED such waits in a row the reader has to come
 * back RUN times again.
 */
#include <stddef.h>

#include "sched/queue/read_stream.h"

/* Times that a reader has to come back before it is waited for, and waits in
 * vain after which it has to do so again. */
#define RUN 2u
#define MISSED 2u
#define THINK_MAX_NS 1500000u	/* 1.5 ms */
/* Added to each wait, for the jitter of the host: 0.2 ms. */
#define LEAST_NS 200000u

static struct read_stream *read_stream_find(struct read_streams *streams,
					    uint64_t end)
{
	unsigned i;

	for (i = 0; i < STREAMS; i++)
		if (streams->v[i].used && streams->v[i].end == end)
			return &streams->v[i];
	return NULL;
}

static struct read_stream *read_stream_new(struct read_streams *streams)
{
	struct read_stream *oldest = &streams->v[0];
	unsigned i;

	for (i = 1; i < STREAMS; i++)
		if (streams->v[i].used < oldest->used)
			oldest = &streams->v[i];
	*oldest = (struct read_stream){ .think_ns = THINK_MAX_NS };
	return oldest;
}

void read_stream_submit(struct read_streams *streams, uint64_t sector,
			uint32_t sectors, uint64_t now_ns)
{
	struct read_stream *stream = read_stream_find(streams, sector);

	if (!stream) {
		stream = read_stream_new(streams);
	} else if (stream->done_ns) {
		stream->think_ns = (3 * stream->think_ns + now_ns -
				    stream->done_ns) / 4;
		stream->run++;
		stream->missed = 0;
	}
	stream->end = sector + sectors;
	stream->used = ++streams->clock;
	stream->done_ns = 0;
}

void read_stream_done(struct read_streams *streams, uint64_t end,
		      uint64_t now_ns)
{
	struct read_stream *stream = read_stream_find(streams, end);

	if (stream)
		stream->done_ns = now_ns;
}

uint64_t read_stream_until_ns(const struct read_streams *streams, uint64_t end)
{
	const struct read_stream *stream =
		read_stream_find((struct read_streams *)streams, end);

	if (!stream || stream->run < RUN || stream->missed >= MISSED ||
	    stream->think_ns > THINK_MAX_NS)
		return 0;
	if (!stream->done_ns)
		return UINT64_MAX;
	return stream->done_ns + LEAST_NS + 2 * stream->think_ns;
}

void read_stream_miss(struct read_streams *streams, uint64_t end)
{
	struct read_stream *stream = read_stream_find(streams, end);

	if (stream && ++stream->missed >= MISSED)
		stream->run = 0;
}

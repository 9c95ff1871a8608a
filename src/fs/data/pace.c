/*
 * pace.c - see pace.h.
 */
#include "fs/data/pace.h"

#include "base/units.h"
#include "fs/data/file_data.h"

/* A pause of 20 ms is a rest: a reader that pauses so long waits for a clock
 * and not for the disk, as programs that read on need less between reads. */
#define REST_NS (20 * NS_PER_MS)
/* A new measurement changes the rate by a quarter of the difference, as
 * readers come a little early or late. */
#define RATE_PART 4u
/* After four rests a reader is a stream, and no program that computed for a
 * moment; and so are four readers that have rested: the windows of the kernel's
 * read-ahead last for so long that one reader alone is known after 8 s. */
#define STEADY_BEATS 4u
#define STEADY_READERS 4u
/* Streams have ended when none has read for 10 s: windows of the kernel's
 * read-ahead last for some seconds. */
#define STEADY_NS (10 * NS_PER_SECOND)
/* A reader that takes more than a quarter of the media rate is no stream but a
 * program that waits for the disk, or for what it writes. */
#define LARGE_PART 4u
/* What is read ahead of a reader lasts for a second at least, so that many
 * readers can be served while the head goes once over the disk. */
#define LEAST_AHEAD_NS NS_PER_SECOND
/* A reader that has not read for 30 s has ended. */
#define GONE_NS (30 * NS_PER_SECOND)
/* A direct read has to be over a quarter before the time that its bytes last
 * at the reader's rate. */
#define WAIT_PART 4u
/* Readers without a promise have deadlines a second later than readers with
 * one. */
#define BEHIND_NS NS_PER_SECOND
/* A window grows by what can be read in half of the time by which the window
 * before came too early, divided by the number of readers. */
#define GROW_PART 2u
/* An eighth of the chunks is left for other reads. */
#define SHARE_PART 8u

void pace_end(struct files *files, struct pace *pace)
{
	if (!pace->rate)
		return;
	list_del(&pace->link);
	files->paced_count--;
	pace->rate = 0;
	pace->beats = 0;
}

/* Forgets readers that have ended; the list is in the order of their last
 * rests. */
static void pace_forget(struct files *files, uint64_t now_ns)
{
	struct pace *first = list_first(&files->paced, struct pace, link);

	if (first && first->beat_ns + GONE_NS < now_ns)
		pace_end(files, first);
}

/* Takes in a measurement: the reader has consumed `rate` bytes a second since
 * its last rest. */
static void pace_rate(struct files *files, struct pace *pace, uint64_t rate,
		      uint64_t now_ns)
{
	if (!pace->rate)
		files->paced_count++;
	else
		list_del(&pace->link);
	list_add(&files->paced, &pace->link);
	if (++pace->beats >= STEADY_BEATS ||
	    files->paced_count >= STEADY_READERS)
		files->steady_ns = now_ns;
	if (!pace->rate)
		pace->rate = rate;
	else if (rate > pace->rate)
		pace->rate += (rate - pace->rate) / RATE_PART;
	else
		pace->rate -= (pace->rate - rate) / RATE_PART;
}

static void pace_beat(struct files *files, struct pace *pace, uint64_t at,
		      uint64_t now_ns)
{
	uint64_t rate, ns = now_ns - pace->beat_ns;

	if (at == pace->beat_at)
		return;
	if (at > pace->beat_at && ns) {
		rate = (at - pace->beat_at) * NS_PER_SECOND / ns;
		if (pace->media_rate && rate > pace->media_rate / LARGE_PART)
			pace_end(files, pace);
		else
			pace_rate(files, pace, rate ? rate : 1, now_ns);
	}
	pace->beat_ns = now_ns;
	pace->beat_at = at;
	pace_forget(files, now_ns);
}

void pace_answered(struct files *files, uint32_t thread, uint64_t now_ns)
{
	if (thread)
		files->threads[thread % PACE_THREADS] =
			(struct pace_thread){ thread, now_ns };
}

uint64_t pace_rest_begin(const struct files *files, uint32_t thread,
			 uint64_t over_ns)
{
	const struct pace_thread *last = &files->threads[thread % PACE_THREADS];

	return over_ns && thread && last->thread == thread &&
	       last->over_ns > over_ns ? last->over_ns : over_ns;
}

void pace_read(struct files *files, struct pace *pace, uint64_t offset,
	       uint64_t bytes, bool direct, uint64_t over_ns, uint64_t now_ns)
{
	bool first = !pace->beat_ns;
	uint64_t at = direct ? offset : pace->window_at;

	pace->direct = direct;
	pace->bytes = bytes;
	if (!first && (!over_ns || now_ns < over_ns + REST_NS))
		return;
	if (first) {
		pace->beat_ns = now_ns;
		pace->beat_at = pace->window_at = offset;
		return;
	}
	/* The first window of the kernel is twice or four times what the reader
	 * asked for, and the second one is read when it asks again
	 * (get_init_ra_size() in Linux' mm/readahead.c). */
	if (at == pace->beat_at)
		at += (offset - at) / 2;
	pace_beat(files, pace, at, now_ns);
	pace->window_at = offset;
}

void pace_promise(struct files *files, struct pace *pace, uint64_t rate)
{
	pace->promised = rate;
	pace->behind_ns = rate || list_empty(&files->promises) ? 0 : BEHIND_NS;
	if (!rate)
		return;
	if (!pace->rate) {
		files->paced_count++;
		list_add(&files->paced, &pace->link);
	}
	pace->rate = rate;
	files->steady_ns = pace->beat_ns;
}

uint64_t pace_due_ns(const struct pace *pace, uint64_t offset)
{
	uint64_t ahead = offset > pace->beat_at ? offset - pace->beat_at : 0;

	if (!pace->rate)
		return 0;
	if (pace->direct)
		ahead += pace->bytes / WAIT_PART * (WAIT_PART - 1);
	return pace->beat_ns + 1 + ahead * NS_PER_SECOND / pace->rate +
	       pace->behind_ns;
}

uint64_t pace_read_due_ns(const struct pace *pace, uint64_t offset,
			  uint64_t now_ns)
{
	uint64_t due_ns = pace_due_ns(pace, offset);
	uint64_t wait_ns;

	if (!due_ns || !pace->direct)
		return due_ns;
	wait_ns = pace->bytes * NS_PER_SECOND / pace->rate;
	return now_ns + wait_ns / WAIT_PART * (WAIT_PART - 1) +
	       pace->behind_ns;
}

uint64_t pace_ahead_bytes(struct files *files, struct pace *pace,
			  const struct pace_ahead *ahead)
{
	uint64_t pool = pool_count(files->chunk_pool) * CHUNK_BYTES;
	uint64_t share = (pool - pool / SHARE_PART) / files->paced_count / 2;
	uint64_t least = pace->rate * LEAST_AHEAD_NS / NS_PER_SECOND;
	uint64_t at = pace->direct ? ahead->end : pace->beat_at, left;
	uint64_t most = ahead->most < share ? ahead->most : share;

	left = ahead->ahead > at ? ahead->ahead - at : 0;
	if (left >= least && left >= pace->window)
		return 0;
	if (!pace->window)
		pace->window = least;
	else if (ahead->there)
		pace->window += ahead->media_rate / files->paced_count *
			       left / pace->rate / GROW_PART;
	if (pace->window > most)
		pace->window = most > least / 2 ? most : least / 2;
	return pace->window;
}

uint64_t pace_streams_until_ns(const struct files *files)
{
	return files->steady_ns ? files->steady_ns + STEADY_NS : 0;
}

uint64_t pace_slack_ns(const struct pace *pace, uint64_t now_ns)
{
	uint64_t at = pace->beat_at;
	uint64_t end_ns = pace->beat_ns;

	if (pace->rate && pace->ahead > at)
		end_ns += (pace->ahead - at) * NS_PER_SECOND / pace->rate;
	return end_ns > now_ns ? end_ns - now_ns : 0;
}

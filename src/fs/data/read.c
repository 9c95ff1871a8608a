/*
 * read.c - READ: blocks in memory first, then verified chunks; reading ahead.
 *
 * A request is served in windows of at most 1 MiB; each is copied in one go
 * once all of it is in memory.  Reads that follow each other make a stream; it
 * is read ahead by at least 1 MiB and two tracks.  When the beginning of a file
 * is read, so much of it comes as of others of its directory was wanted; all
 * of a file up to a track where that is not known (prefix.h).
 *
 * A read's life, with the function of each step:
 *
 *   file_read         read.c         the operation gets its struct io
 *   read_step         read.c         shared lock; the file is loaded
 *   read_window       read.c         is the next window in memory?
 *   read_wait_start   cache_chunk.c  if not: chunks are pinned for it
 *   read_wait_fetch   cache_chunk.c  what nobody reads yet is fetched
 *   fetch_run         chunk_lookup.c transaction: checksums, extents, replicas
 *   fetch_end         cache_chunk.c  a request for each run of sectors, unless
 *                                    a buffer has it (read_events.h)
 *   fetch_done        chunk_read.c   one request has ended
 *   fetch_verify      chunk_read.c   checksums; what is bad is looked up and
 *                                    read again, then each of its replicas
 *   fetch_over        cache_chunk.c  good blocks are valid, waiters are woken
 *   read_copy         read.c         the window is copied to the user
 *   read_stream       read.c         what will be read next is read ahead
 *   io_end            read.c         the operation is answered
 *
 * What else hangs on it (read-ahead of small files and in gaps, learning,
 * buffers of replicas, healing) gets the events of read_events.h on the way.
 */
#include "fs/data/file_data.h"
#include "fs/data/admission.h"
#include "fs/data/cache_chunk.h"
#include "fs/data/file.h"
#include "fs/data/pace.h"
#include "fs/data/prefix.h"
#include "fs/data/read_events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* Least bytes that a stream is read ahead where streams take turns. */
#define AHEAD_BYTES (1u << 20)
#define SURE_READS 4u		/* reads in order that make a stream for
				 * certain */
/* Distance in bytes by which reads of a stream may be out of order, as the
 * kernel's own read-ahead may be. */
#define STREAM_SLACK (256u << 10)
/* Least bytes of a read that may begin a stream by continuing another one out
 * of order: the kernel's read-ahead comes in longer reads. */
#define STREAM_READ_BYTES (64u << 10)
/* Bytes that the kernel may ask for at once before the first of them is read by
 * its user. */
#define BEHIND_BYTES (16u << 20)
/* Where streams take turns, each is read ahead by at most this many tracks:
 * going from one to the other costs one or two turns. */
#define TURN_TRACKS 32u
/* The window of a stream that is alone shrinks by this part each time. */
#define ALONE_PART 8u
/* A stream that comes back after more than this many others does not take turns
 * with them. */
#define TURNS_MOST 64u
/* Leaves with checksums are read when a stream is still this far before them,
 * some tenths of a second, and for a third of this distance at a time. */
#define SUMS_AHEAD_BYTES (48ull << 20)
#define SUMS_STEP_BYTES (SUMS_AHEAD_BYTES / 3)
/* A reader with a pace is read ahead in parts of this size, the size of one
 * access, each with a deadline of its own. */
#define PACED_BYTES (READ_WAIT_BLOCKS * BLOCK_BYTES)
#define SUMS_LEAVES 4u		/* leaves that have the checksums of
				 * SUMS_AHEAD_BYTES of data, at 14 MB a leaf */

struct io *io_new(struct fs *fs, struct fs_op *op, void (*step)(struct io *io))
{
	struct io *io = abandon_alloc(fs, sizeof(*io));
	struct file *file = io ? file_get(fs, op->ino) : NULL;

	if (!file) {
		abandon_free(io);
		fs_answer(fs, op, -ENOMEM);
		return NULL;
	}
	io->op = op;
	io->file = file;
	io->pos = op->offset;
	io->step = step;
	io->rwait.file = file;
	io->rwait.owner = io;
	list_init(&io->link);
	list_init(&io->lock.link);
	list_init(&io->rwait.link);
	return io;
}

void io_end(struct io *io, int rc)
{
	struct file *file = io->file;
	struct fs *fs = file->files->fs;
	struct fs_op *op = io->op;

	read_wait_end(&io->rwait);
	if (op->type == FS_READ) {
		file->reads--;
		file->read_over_ns = env_now_ns(fs->env);
		pace_answered(file->files, op->thread, file->read_over_ns);
		if (io->stream && io->rwait.deadline_ns &&
		    file->read_over_ns > io->rwait.deadline_ns)
			io->stream->pace.late++;
	}
	abandon_free(io);
	file_put(file);
	fs_answer(fs, op, rc);
}

/* ---- Reading ahead ---- */

/* Two small reads that come near each other by chance make no stream. */
static bool stream_goes_on(const struct stream *stream, uint64_t offset,
			   uint64_t end)
{
	if (stream->count < 2 && end - offset < STREAM_READ_BYTES)
		return stream->next && offset == stream->next;
	return stream->next && offset <= stream->next + STREAM_SLACK &&
	       offset + STREAM_SLACK >= stream->next;
}

/* Most files in memory are written only, and have no streams. */
static bool streams_there(struct file *file)
{
	if (!file->streams)
		file->streams = calloc(STREAMS_PER_FILE,
				       sizeof(*file->streams));
	return file->streams;
}

static struct stream *stream_find(struct file *file, uint64_t offset,
				  uint64_t end)
{
	struct stream *stream, *oldest = &file->streams[0];
	unsigned i;

	for (i = 0; i < STREAMS_PER_FILE; i++) {
		stream = &file->streams[i];
		if (stream_goes_on(stream, offset, end))
			return stream;
		if (stream->used < oldest->used)
			oldest = stream;
	}
	pace_end(file->files, &oldest->pace);
	*oldest = (struct stream){ .next = 0 };
	return oldest;
}

bool file_is_streamed(const struct file *file, uint64_t block)
{
	const struct stream *stream;

	for (stream = file->streams;
	     stream && stream < file->streams + STREAMS_PER_FILE; stream++)
		if (stream->count >= 2 && block * BLOCK_BYTES < stream->ahead &&
		    block * BLOCK_BYTES + BEHIND_BYTES >= stream->next)
			return true;
	return false;
}

static void read_ahead_to(struct file *file, uint64_t from, uint64_t to,
			  enum ahead_kind kind)
{
	uint64_t first = from / BLOCK_BYTES, end;
	uint64_t step = READ_WAIT_BLOCKS;

	to = to < file->size ? to : file->size;
	end = (to + BLOCK_BYTES - 1) / BLOCK_BYTES;
	for (; first < end; first = (first / step + 1) * step) {
		uint64_t stop = (first / step + 1) * step;

		chunks_read_ahead(file, first, stop < end ? stop : end, kind,
				  0);
	}
}

/* The same for a reader with a pace: each part has a deadline of its own, and
 * parts for which there is no room now are asked for later. */
static void read_ahead_paced(struct file *file, struct stream *stream,
			     uint64_t end, uint64_t most)
{
	const struct pace_ahead ahead = {
		.ahead = stream->ahead,
		.there = chunk_block(file, (stream->ahead - 1) / BLOCK_BYTES),
		.end = end,
		.most = most,
		.media_rate = stream->pace.media_rate,
	};
	uint64_t at = stream->ahead;
	uint64_t to = at + pace_ahead_bytes(file->files, &stream->pace, &ahead);
	uint64_t stop;

	to = to < file->size ? to : file->size;
	for (; at < to; at = stop) {
		stop = at + PACED_BYTES < to ? at + PACED_BYTES : to;
		if (!chunks_read_ahead(file, at / BLOCK_BYTES,
				       (stop + BLOCK_BYTES - 1) / BLOCK_BYTES,
				       AHEAD_SURE,
				       pace_due_ns(&stream->pace, at)))
			break;
		stream->ahead = stop;
	}
}

/* Bytes that are enough for a stream that is alone: one track is read while the
 * other one is used. */
static uint64_t two_tracks(uint64_t track)
{
	return 2 * track > AHEAD_BYTES ? 2 * track : AHEAD_BYTES;
}

/*
 * Bytes that a stream is read ahead.  Where streams take turns the head comes
 * from another one each time, which costs about a turn of the disk, so each
 * time more is read, until this is little beside it.  More than their share of
 * the chunks would push out what the others have not used yet.
 */
static uint64_t read_window_bytes(struct files *files, struct stream *stream,
				  uint64_t track)
{
	uint64_t least = two_tracks(track);
	uint64_t pool = pool_count(files->chunk_pool) * CHUNK_BYTES;
	uint64_t turns = files->turns - stream->turns;
	uint64_t most = pool / 4, window = stream->window;

	if (turns && turns < TURNS_MOST) {
		window *= 2;
		most = pool / 2 / (turns + 1);
		most = most < TURN_TRACKS * track ? most : TURN_TRACKS * track;
	} else {
		window -= window / ALONE_PART;
	}
	window = window > least ? window : least;
	return window < most ? window : most;
}

/* Notes that the stream is read ahead now. */
static void read_turn(struct files *files, struct stream *stream,
		      uint64_t window)
{
	files_turn(files, stream);
	stream->turns = files->turns;
	stream->window = window;
}

/* A stretch of a file whose checksums are brought into memory. */
struct sums_ahead {
	uint64_t ino, first, end;	/* blocks */
	bool fetched;
};

static int sums_ahead_run(struct fs_txn *txn)
{
	struct sums_ahead *sums = txn->state;

	if (sums->fetched)
		return 0;
	sums->fetched = true;
	tree_prefetch(txn->tree_txn,
		      key_make(sums->ino, ITEM_CSUM, sums->first),
		      key_make(sums->ino, ITEM_CSUM, sums->end),
		      SUMS_LEAVES);
	return -EAGAIN;
}

static void sums_ahead_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct sums_ahead *sums = txn->state;

	(void)rc;
	(void)seq;
	fs_txn_finish(txn, 0);
	abandon_free(sums);
}

/* Reads checksums ahead of a stream: if it had to wait for them on its way, it
 * would lose a turn of the platter, and the order of its reads. */
static void read_sums_ahead(struct file *file, struct stream *stream)
{
	static const struct fs_txn_type type = {
		.name = "sums ahead",
		.paths = SUMS_LEAVES,
		.run = sums_ahead_run,
		.end = sums_ahead_end,
	};
	uint64_t from = stream->ahead > stream->sums ? stream->ahead :
						       stream->sums;
	uint64_t to = stream->ahead + SUMS_AHEAD_BYTES;
	struct sums_ahead *sums;

	if (stream->count < SURE_READS || from >= file->size ||
	    from + SUMS_STEP_BYTES > to)
		return;
	sums = abandon_alloc(file->files->fs, sizeof(*sums));
	if (!sums)
		return;
	stream->sums = to;
	sums->ino = file->ino;
	sums->first = from / BLOCK_BYTES;
	sums->end = to / BLOCK_BYTES;
	if (fs_txn_start(file->files->fs, &type, NULL, sums))
		abandon_free(sums);
}

/* Reads ahead from the beginning of a file; true if all of it is read ahead. */
static bool read_beginning(struct file *file, uint64_t track, uint64_t window)
{
	uint64_t expected = prefix_expected(file);

	if (expected == PREFIX_UNKNOWN)
		expected = file->size <= track ? file->size : 0;
	expected = expected < file->size ? expected : file->size;
	expected = expected < window ? expected : window;
	read_ahead_to(file, 0, expected, AHEAD_GUESS);
	return expected == file->size;
}

/* Bytes of a track where the file lies. */
static uint64_t track_bytes(const struct file *file)
{
	return (uint64_t)alloc_track_sectors(file->files->fs->alloc,
					     file->goal) * SECTOR_BYTES;
}

/* About how many bytes a second pass under the head where the file lies. */
static uint64_t media_rate(const struct file *file)
{
	uint64_t period_ns = geom_period_ns(file->files->fs->geom);

	return track_bytes(file) * 1000000000ull /
	       (period_ns ? period_ns : GEOM_USUAL_PERIOD_NS);
}

/* Finds the stream that a read belongs to, and takes the read into account. */
static struct stream *read_seen(struct io *io, uint64_t end)
{
	struct file *file = io->file;
	struct stream *stream = stream_find(file, io->op->offset, end);

	stream->used = ++file->stream_clock;
	if (!stream->count++)
		stream->begin = io->op->offset;
	stream->next = end > stream->next ? end : stream->next;
	stream->pace.media_rate = media_rate(file);
	pace_read(file->files, &stream->pace, io->op->offset,
		  end - io->op->offset, io->op->flags & O_DIRECT,
		  file->reads == 1 ? pace_rest_begin(file->files,
						     io->op->thread,
						     file->read_over_ns) : 0,
		  io->begun_ns);
	pace_promise(file->files, &stream->pace,
		     admission_heard(file->files, file->ino, io->begun_ns));
	stream->pace.ino = file->ino;
	stream->pace.reads++;
	io->stream = stream;
	io->rwait.deadline_ns = pace_read_due_ns(&stream->pace,
						 io->op->offset, io->begun_ns);
	return stream;
}

static void read_stream(struct io *io, struct stream *stream, uint64_t end)
{
	struct file *file = io->file;
	uint64_t offset = io->op->offset, window;
	enum ahead_kind kind;
	uint64_t track = track_bytes(file);

	window = read_window_bytes(file->files, stream, track);
	if (offset == 0 && read_beginning(file, track, window))
		return;
	if (stream->ahead < end)
		stream->ahead = end;
	stream->pace.ahead = stream->ahead;
	if (stream->pace.rate) {
		read_ahead_paced(file, stream, end, two_tracks(track));
		stream->pace.ahead = stream->ahead;
		chunks_passed(file, 0, offset / BLOCK_BYTES);
		return;
	}
	if (stream->count < 2) {
		if (offset || end - offset < STREAM_READ_BYTES)
			return;
		read_ahead_to(file, end, 2 * end, AHEAD_GUESS);
		stream->ahead = 2 * end;
		return;
	}
	/* The window doubles each time: where many streams are read, data that
	 * one of them may not want soon makes the others late. */
	if (window > 2 * (end - stream->begin))
		window = 2 * (end - stream->begin);
	if (file->files->paced_count && window > 2 * (end - offset))
		window = 2 * (end - offset);
	if (stream->ahead - end > window / 2)
		return;
	kind = stream->count < SURE_READS || file->size <= track ? AHEAD_GUESS :
	       window > 2 * track ? AHEAD_TURNS : AHEAD_SURE;
	read_turn(file->files, stream, window);
	read_ahead_to(file, stream->ahead, end + window, kind);
	stream->ahead = end + window;
	read_sums_ahead(file, stream);
	if (offset > STREAM_SLACK)
		chunks_passed(file, (offset - STREAM_SLACK) / BLOCK_BYTES,
			      offset / BLOCK_BYTES);
}

/* ---- READ ---- */

static int read_copy(struct io *io, uint64_t end)
{
	struct fs_op *op = io->op;
	uint64_t n;
	uint8_t *out;
	const uint8_t *data;

	if (!op->buffer)
		op->buffer = op->room(op);
	if (!op->buffer)
		return -ENOMEM;
	out = op->buffer;
	while (io->pos < end) {
		n = BLOCK_BYTES - io->pos % BLOCK_BYTES;
		n = n < end - io->pos ? n : end - io->pos;
		data = read_wait_block(&io->rwait, io->pos / BLOCK_BYTES);
		memcpy(out + (io->pos - op->offset),
		       data + io->pos % BLOCK_BYTES, n);
		io->pos += n;
	}
	return 0;
}

/* Serves the next window: 0 = copied, -EINPROGRESS, or an error. */
static int read_window(struct io *io)
{
	uint64_t first = io->pos / BLOCK_BYTES;
	uint64_t end = (first + READ_WAIT_BLOCKS) * BLOCK_BYTES;
	int rc = 0;

	/* A request of the kernel is fetched in one go, wherever in a chunk it
	 * begins. */
	end = end < io->end ? end / CHUNK_BYTES * CHUNK_BYTES : io->end;
	io->rwait.first = first;
	io->rwait.n = (unsigned)((end - 1) / BLOCK_BYTES - first) + 1;
	if (!read_wait_ok(&io->rwait)) {
		read_wait_end(&io->rwait);
		rc = read_wait_start(&io->rwait);
	}
	if (rc)
		return rc;
	chunks_used(&io->rwait, env_now_ns(io->file->files->fs->env) -
		       io->begun_ns);
	rc = read_copy(io, end);
	read_wait_end(&io->rwait);
	return rc;
}

static void read_step(struct io *io)
{
	struct file *file = io->file;
	struct stream *stream;
	int rc = file_lock_read(file, &io->lock);

	if (rc == FS_TXN_WAIT)
		return;
	if (rc) {
		io_end(io, rc);
		return;
	}
	io->end = io->op->offset + io->op->size;
	if (io->end > file->size || io->end < io->op->offset)
		io->end = file->size;
	if (!io->prepared && io->pos < io->end) {
		if (!streams_there(file)) {
			io_end(io, -ENOMEM);
			return;
		}
		io->prepared = true;
		io->begun_ns = env_now_ns(file->files->fs->env);
		if (io->op->offset == 0 && file->readahead_next)
			for_each_read_event(ev, file->files->fs, reached)
				(*ev)->reached(file);
		stream = read_seen(io, io->end);
		rc = read_window(io);
		read_stream(io, stream, io->end);
		prefix_read(file, io->op->offset, io->end);
	}
	while (!rc && io->pos < io->end)
		rc = read_window(io);
	if (rc == -EINPROGRESS)
		return;
	io->op->result = rc ? 0 : io->pos - io->op->offset;
	io_end(io, rc);
}

static void read_ready(struct read_wait *rwait, int rc)
{
	struct io *io = rwait->owner;

	if (rc)
		io_end(io, -EIO);
	else
		read_step(io);
}

static void read_again(struct shared_lock *lock)
{
	read_step(container_of(lock, struct io, lock));
}

void file_read(struct fs *fs, struct fs_op *op)
{
	struct io *io = io_new(fs, op, read_step);

	if (!io)
		return;
	io->lock.granted = read_again;
	io->rwait.ready = read_ready;
	io->file->reads++;
	read_step(io);
}

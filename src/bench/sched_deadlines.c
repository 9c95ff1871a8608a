/*
 * sched_deadlines.c - video: many readers, each of which reads so much of a
 * file of its own in each period, and misses its deadline when that is not
 * there at the period's end.
 *
 * Readers with O_DIRECT send one request a period.  Those with the kernel's
 * page cache between send what its read-ahead makes of it (page_cache below):
 * windows that double, each asked for when the reader comes to the one before.
 * All readers begin together, or an eighth of them in each of the first
 * periods; the first periods are not counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rig.h"
#include "bench/sched.h"
#include "fs/fs.h"
#include "sim/drive.h"

/* Number of files, one for each of the most readers; bytes of a file; and the
 * period. */
#define FILES 400u
#define FILE_BYTES (4u << 20)
#define PERIOD_NS 500000000ull
#define REQUEST_MOST (1u << 20)	/* bytes of a FUSE request, at most */
#define WINDOW_REQUESTS 5u	/* requests of a window of read-ahead, at
				 * most */
#define READERS_MOST 400u

/* One way to read. */
struct video {
	const char *name;
	bool direct;
	uint32_t bytes;		/* bytes of a period */
	unsigned periods, stagger, skip;
};

static const struct video videos[] = {
	{ "direct", true, 249856, 10, 1, 1 },
	{ "page cache", false, 250000, 20, 8, 9 },
};

struct bench;
struct stream_reader;

struct ask {
	struct fs_op op;
	struct stream_reader *reader;
	bool busy;
};

/* What the kernel has of a file: all up to `have` was asked for; the next
 * window is asked for when the reader comes to `mark`. */
struct page_cache {
	uint64_t window, have, mark;
};

struct stream_reader {
	struct bench *b;
	uint64_t ino;
	uint64_t at;			/* byte at which the next read begins */
	unsigned period;		/* number of the period that it reads
					 * in */
	uint64_t next_ns;		/* begin of that period; UINT64_MAX: the
					 * reader is at its end */
	bool waits;
	struct page_cache cache;
	struct ask ask[2 * WINDOW_REQUESTS];
};

struct bench {
	struct rig rig;
	struct fs *fs;
	const struct video *video;
	uint64_t ino[FILES], begin_ns, window_most;
	struct stream_reader reader[READERS_MOST];
	unsigned readers, running, busy;
	double late_ns[READERS_MOST * 20];
	uint64_t reads, missed;
	int err;
	struct ask one;
	uint8_t data[REQUEST_MOST];
};

/* ---- Turns ---- */

static uint64_t reader_turn(struct stream_reader *reader, uint64_t now_ns);

static void turn(struct bench *b, uint64_t until_ns)
{
	unsigned busy = b->busy;
	const uint64_t next_ns = fs_run(b->fs, 0);

	/* A reader whose read is over goes on first. */
	if (b->busy == busy)
		rig_pass(&b->rig, until_ns < next_ns ? until_ns : next_ns);
}

static void ask_done(struct fs_op *op)
{
	struct ask *ask = op->owner;
	struct bench *b = ask->reader->b;

	ask->busy = false;
	b->busy--;
	if (op->rc && !b->err)
		b->err = op->rc;
}

static void ask_submit(struct ask *ask, struct stream_reader *reader)
{
	ask->reader = reader;
	ask->op.done = ask_done;
	ask->op.owner = ask;
	ask->busy = true;
	reader->b->busy++;
	fs_submit(reader->b->fs, &ask->op);
}

static int do_one(struct bench *b, const struct fs_op *op)
{
	b->one.op = *op;
	b->reader[0].b = b;
	ask_submit(&b->one, &b->reader[0]);
	while (b->one.busy)
		turn(b, UINT64_MAX);
	return b->one.op.rc;
}

/* ---- Readers ---- */

static void ask_read(struct stream_reader *reader, uint64_t from,
		     uint64_t bytes)
{
	struct ask *ask = reader->ask;

	while (ask->busy)
		ask++;
	ask->op = (struct fs_op){
		.type = FS_READ, .ino = reader->ino, .offset = from,
		.size = bytes, .buffer = reader->b->data,
		.flags = reader->b->video->direct ? O_DIRECT : 0,
	};
	ask_submit(ask, reader);
}

static void window_read(struct stream_reader *reader, uint64_t from,
			uint64_t bytes)
{
	uint64_t end = from + bytes < FILE_BYTES ? from + bytes : FILE_BYTES, n;

	for (; from < end; from += n) {
		n = REQUEST_MOST - from % REQUEST_MOST;
		n = n < end - from ? n : end - from;
		ask_read(reader, from, n);
	}
}

/* The reader wants the bytes up to `end`. */
static void cache_read(struct stream_reader *reader, uint64_t end)
{
	struct page_cache *cache = &reader->cache;

	if (!cache->have) {
		cache->window = 512u << 10;
		window_read(reader, 0, cache->window);
		cache->have = cache->window;
		cache->mark = (end + 4095) / 4096 * 4096;
		return;
	}
	while (end > cache->mark && cache->have < FILE_BYTES) {
		cache->window *= 2;
		if (cache->window > reader->b->window_most)
			cache->window = reader->b->window_most;
		cache->mark = cache->have;
		window_read(reader, cache->have, cache->window);
		cache->have += cache->window;
	}
}

/* Is anything that the reader wants on its way? */
static bool reader_waits(const struct stream_reader *reader, uint64_t end)
{
	const struct ask *ask = reader->ask;

	for (; ask < reader->ask + 2 * WINDOW_REQUESTS; ask++)
		if (ask->busy && ask->op.offset < end)
			return true;
	return false;
}

static void reader_over(struct stream_reader *reader, uint64_t now_ns)
{
	struct bench *b = reader->b;
	const struct video *video = b->video;
	uint64_t late_ns = now_ns - reader->next_ns;

	reader->waits = false;
	reader->at += video->bytes;
	if (reader->period >= video->skip) {
		b->late_ns[b->reads++] = (double)late_ns;
		b->missed += late_ns > PERIOD_NS;
	}
	reader->next_ns += PERIOD_NS;
	if (++reader->period < video->periods)
		return;
	reader->next_ns = UINT64_MAX;
	b->running--;
}

/* Returns when it has something to do; UINT64_MAX: when something is over. */
static uint64_t reader_turn(struct stream_reader *reader, uint64_t now_ns)
{
	uint64_t bytes = reader->b->video->bytes;

	while (reader->next_ns <= now_ns) {
		if (!reader->waits) {
			if (reader->at + bytes > FILE_BYTES) {
				reader->at = 0;
				reader->cache.have = 0;
			}
			if (reader->b->video->direct)
				ask_read(reader, reader->at, bytes);
			else
				cache_read(reader, reader->at + bytes);
			reader->waits = true;
		}
		if (reader_waits(reader, reader->at + bytes))
			return UINT64_MAX;
		reader_over(reader, now_ns);
	}
	return reader->next_ns;
}

static int readers_run(struct bench *b)
{
	uint64_t now_ns, next_ns, reader_ns;
	unsigned i;

	while ((b->running || b->busy) && !b->err) {
		now_ns = sim_now_ns(b->rig.sim);
		next_ns = UINT64_MAX;
		for (i = 0; i < b->readers; i++) {
			reader_ns = reader_turn(&b->reader[i], now_ns);
			next_ns = reader_ns < next_ns ? reader_ns : next_ns;
		}
		if (b->running || b->busy)
			turn(b, next_ns);
	}
	return b->err;
}

/* ---- The file system ---- */

static int write_files(struct bench *b)
{
	uint64_t i, off;
	char name[16];
	int rc = 0;

	memset(b->data, 7, sizeof(b->data));
	for (i = 0; i < FILES && !rc; i++) {
		struct fs_op op = { .type = FS_MKNOD, .ino = 1, .name = name,
				    .mode = 0100644, .opens = true };

		snprintf(name, sizeof(name), "v%03u", (unsigned)i);
		rc = do_one(b, &op);
		b->ino[i] = b->one.op.attr.ino;
		for (off = 0; off < FILE_BYTES && !rc; off += REQUEST_MOST) {
			op = (struct fs_op){
				.type = FS_WRITE, .ino = b->ino[i],
				.offset = off, .size = REQUEST_MOST,
				.data = b->data,
			};
			rc = do_one(b, &op);
		}
		op = (struct fs_op){ .type = FS_RELEASE, .ino = b->ino[i] };
		if (!rc)
			rc = do_one(b, &op);
	}
	return rc ? rc : do_one(b, &(struct fs_op){ .type = FS_SYNCFS,
						    .ino = 1 });
}

/* Opens each file, in an order of its own. */
static int readers_open(struct bench *b, unsigned readers, uint64_t seed)
{
	unsigned i, j, perm[FILES];
	char name[16];
	int rc = 0;

	for (i = 0; i < FILES; i++) {
		j = (unsigned)(rig_random(&seed) % (i + 1));
		perm[i] = perm[j];
		perm[j] = i;
	}
	memset(b->reader, 0, sizeof(b->reader));
	b->reads = b->missed = 0;
	b->readers = b->running = readers;
	for (i = 0; i < readers && !rc; i++) {
		struct fs_op op = { .type = FS_LOOKUP, .ino = 1,
				    .name = name };

		snprintf(name, sizeof(name), "v%03u", perm[i]);
		rc = do_one(b, &op);
		op = (struct fs_op){ .type = FS_OPEN,
				     .ino = b->ino[perm[i]] };
		if (!rc)
			rc = do_one(b, &op);
		b->reader[i] = (struct stream_reader){
			.b = b, .ino = b->ino[perm[i]],
			.period = i % b->video->stagger,
		};
	}
	b->begin_ns = sim_now_ns(b->rig.sim) + PERIOD_NS;
	for (i = 0; i < readers; i++)
		b->reader[i].next_ns = b->begin_ns +
				       b->reader[i].period * PERIOD_NS;
	return rc;
}

/* A mount checks its profile with some reads, from which the position of the
 * head is known.  Here it is learned from as many reads. */
static int head_find(struct bench *b)
{
	unsigned i;
	int rc = 0;

	for (i = 0; i < 64 && !rc; i++)
		rc = do_one(b, &(struct fs_op){
			.type = FS_READ, .ino = b->ino[i * 77 % FILES],
			.offset = FILE_BYTES - 4096, .size = 4096,
			.buffer = b->data, .flags = O_DIRECT,
		});
	return rc;
}

static int measure(struct bench *b, const struct sched_options *options,
		   const struct video *video, unsigned readers)
{
	struct fs_options fs_options = {
		.head = b->rig.head,
		.memory_bytes = (size_t)options->memory_mib << 20,
	};
	struct drive *drive = sim_drive(b->rig.sim);
	double mean_ns = 0, p99_ns = 0;
	struct drive_times t;
	uint64_t i;
	int rc = fs_open(b->rig.env, sim_disk(b->rig.sim), &fs_options,
			 &b->fs);

	b->video = video;
	if (!rc)
		rc = head_find(b);
	if (!rc)
		rc = readers_open(b, readers, options->seed);
	drive_clear_times(drive, sim_now_ns(b->rig.sim));
	if (!rc)
		rc = readers_run(b);
	if (rc)
		return rc;
	drive_get_times(drive, sim_now_ns(b->rig.sim), &t);
	for (i = 0; i < b->reads; i++)
		mean_ns = b->late_ns[i] > mean_ns ? b->late_ns[i] : mean_ns;
	i = (uint64_t)mean_ns;
	rig_sum_up(b->late_ns, b->reads, &mean_ns, &p99_ns);
	printf("%-10s %5u %7lu %6lu %7.1f %7.1f %7.1f %6lu %6.2f %6.2f %6.2f "
	       "%6.2f\n", video->name, readers, (unsigned long)b->reads,
	       (unsigned long)b->missed, mean_ns / 1e6, p99_ns / 1e6,
	       (double)i / 1e6, (unsigned long)t.accesses,
	       (double)(t.seek_ns + t.switch_ns) / 1e9,
	       (double)t.rotation_ns / 1e9, (double)t.transfer_ns / 1e9,
	       (double)t.idle_ns / 1e9);
	fflush(stdout);
	rc = fs_close(b->fs);
	b->fs = NULL;
	return rc;
}

static int deadlines_run(struct bench *b, const struct sched_options *options)
{
	const struct rig_options rig_options = {
		.drive = options->drive ? options->drive : "modern",
		.seed = options->seed,
		.host_ns = options->host_ns,
		.volatile_cache = true,
	};
	struct fs_options fs_options = {
		.memory_bytes = (size_t)options->memory_mib << 20,
	};
	unsigned readers, step = options->requests ?
					 (unsigned)options->requests : 50;
	struct geom_track track;
	size_t i;
	int rc = rig_open(&rig_options, &b->rig);

	if (!rc)
		rc = rig_make_fs(&b->rig, &fs_options, &b->fs);
	if (!rc)
		rc = write_files(b);
	if (!rc)
		rc = fs_close(b->fs);
	if (rc)
		return rc;
	b->fs = NULL;
	geom_track_at(b->rig.geom, 0, &track);
	b->window_most = 2ull * track.sectors * SECTOR_BYTES;
	printf("%-10s %5s %7s %6s %7s %7s %7s %6s %6s %6s %6s %6s\n", "streams",
	       "n", "reads", "missed", "mean ms", "p99", "most", "access",
	       "seek s", "rot", "media", "idle");
	for (i = 0; i < sizeof(videos) / sizeof(*videos) && !rc; i++)
		for (readers = step; readers <= (options->quick ? step : 300) &&
		     !rc; readers += step)
			rc = measure(b, options, &videos[i], readers);
	return rc;
}

int sched_deadlines(const struct sched_options *options)
{
	struct bench *b = calloc(1, sizeof(*b));
	int rc = b ? deadlines_run(b, options) : -ENOMEM;

	if (b && b->fs)
		fs_close(b->fs);
	if (b)
		rig_close(&b->rig);
	free(b);
	return rc;
}

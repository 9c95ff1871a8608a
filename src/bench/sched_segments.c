/*
 * sched_segments.c - the overall write cost of a log-structured file system by
 * the size of its segments, which begin where tracks do or anywhere (Traxtents,
 * FAST 2002, 5.5; Matthews et al., SOSP 1997):
 *
 *   (new written + cleaned read + cleaned written) / new written
 *      * time of a segment's transfer / that at the media rate
 *
 * The first factor comes from a model of such a file system, the second one
 * from writes of segments at random tracks of the first zone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/rig.h"
#include "bench/sched_measures.h"

/* Tracks of the first zone that segments are written on. */
#define ZONE_TRACKS 2000u
#define BLOCK 8u			/* sectors of a block */

/* ---- The file system ---- */

/* Blocks of the log, and per cent of them that are in use. */
#define LOG_BLOCKS 65536u
#define FULL_PERCENT 80u
#define FILE_BLOCKS 16u		/* most blocks of a file; the least is 1 */
/* Nine of ten writes go to one file of ten. */
#define HOT_SHARE 10u
/* One segment in this many, at least one, is kept free for the cleaner. */
#define SPARE_SHARE 32u
#define PASSES 12u		/* how often the log is written; the last half
				 * is counted */
#define NOBODY UINT32_MAX	/* No file has this block. */

struct log_segment {
	uint32_t used;		/* blocks with data that is needed */
	uint32_t filled;	/* blocks that have been written */
	uint64_t written;	/* time of the last write */
};

struct log_fs {
	uint32_t segments, blocks;	/* number of segments, and blocks of a
					 * segment */
	struct log_segment *segment;
	uint32_t *owner;	/* file of a block of the log, or NOBODY */
	uint32_t (*place)[FILE_BLOCKS];	/* places of a file's blocks */
	uint8_t *size;		/* blocks of a file */
	uint32_t files, free;
	uint32_t head[2];	/* segments that are being filled: with new
				 * data, with old */
	uint64_t time, seed;
	uint64_t fresh, read, moved;	/* blocks */
};

static uint32_t segment_free(const struct log_fs *log)
{
	uint32_t i;

	for (i = 0; i < log->segments && log->segment[i].filled; i++)
		;
	return i;
}

static void block_put(struct log_fs *log, uint32_t file, uint32_t k, bool old)
{
	struct log_segment *s = &log->segment[log->head[old]];
	uint32_t at;

	if (s->filled == log->blocks) {
		log->head[old] = segment_free(log);
		s = &log->segment[log->head[old]];
		log->free--;
	}
	at = log->head[old] * log->blocks + s->filled++;
	log->owner[at] = file * FILE_BLOCKS + k;
	log->place[file][k] = at;
	s->used++;
	s->written = log->time;
}

static void block_drop(struct log_fs *log, uint32_t at)
{
	log->owner[at] = NOBODY;
	log->segment[at / log->blocks].used--;
}

/* Returns the segment to clean, by cost and benefit (Rosenblum and Ousterhout
 * 1992). */
static uint32_t segment_worst(const struct log_fs *log)
{
	double best = -1, gain, u;
	uint32_t i, at = 0;

	for (i = 0; i < log->segments; i++) {
		const struct log_segment *s = &log->segment[i];

		if (s->filled < log->blocks || s->used == log->blocks ||
		    i == log->head[0] || i == log->head[1])
			continue;
		u = (double)s->used / log->blocks;
		gain = (1 - u) * (double)(log->time - s->written + 1) / (1 + u);
		if (gain > best) {
			best = gain;
			at = i;
		}
	}
	return at;
}

static void segment_clean(struct log_fs *log)
{
	uint32_t worst = segment_worst(log), i, owner;
	struct log_segment *s = &log->segment[worst];

	log->read += s->used ? log->blocks : 0;
	log->moved += s->used;
	for (i = worst * log->blocks; i < (worst + 1) * log->blocks; i++) {
		owner = log->owner[i];
		if (owner == NOBODY)
			continue;
		block_drop(log, i);
		block_put(log, owner / FILE_BLOCKS, owner % FILE_BLOCKS, true);
	}
	*s = (struct log_segment){ 0, 0, 0 };
	log->free++;
}

static void file_write(struct log_fs *log, uint32_t file)
{
	uint32_t k, spare = 2 + log->segments / SPARE_SHARE;

	for (k = 0; k < log->size[file]; k++)
		if (log->place[file][k] != NOBODY)
			block_drop(log, log->place[file][k]);
	for (k = 0; k < log->size[file]; k++) {
		while (log->free < spare)
			segment_clean(log);
		block_put(log, file, k, false);
		log->time++;
		log->fresh++;
	}
}

static void log_close(struct log_fs *log)
{
	free(log->segment);
	free(log->owner);
	free(log->place);
	free(log->size);
}

static int log_open(struct log_fs *log, uint32_t blocks, uint64_t seed)
{
	const uint32_t most = LOG_BLOCKS / 100 * FULL_PERCENT;
	uint32_t i, sum;

	*log = (struct log_fs){ .segments = LOG_BLOCKS / blocks,
				.blocks = blocks, .seed = seed };
	log->free = log->segments - 2;
	log->head[1] = 1;
	log->segment = calloc(log->segments, sizeof(*log->segment));
	log->owner = malloc(LOG_BLOCKS * sizeof(*log->owner));
	log->place = malloc(most * sizeof(*log->place));
	log->size = malloc(most);
	if (!log->segment || !log->owner || !log->place || !log->size) {
		log_close(log);
		return -ENOMEM;
	}
	for (i = 0; i < LOG_BLOCKS; i++)
		log->owner[i] = NOBODY;
	for (sum = 0; sum + FILE_BLOCKS <= most; sum += log->size[i]) {
		i = log->files++;
		log->size[i] = (uint8_t)(1 + rig_random(&log->seed) %
					     FILE_BLOCKS);
		for (uint32_t k = 0; k < FILE_BLOCKS; k++)
			log->place[i][k] = NOBODY;
	}
	return 0;
}

/* Files are overwritten whole. */
static int write_cost(uint32_t blocks, uint64_t seed, double *cost)
{
	struct log_fs log;
	uint32_t i, hot;
	bool counts = false;
	int err = log_open(&log, blocks, seed);

	if (err)
		return err;
	hot = log.files / HOT_SHARE;
	for (i = 0; i < log.files; i++)
		file_write(&log, i);
	while (log.time < (uint64_t)PASSES * LOG_BLOCKS) {
		if (!counts && log.time > PASSES / 2 * LOG_BLOCKS) {
			counts = true;
			log.fresh = log.read = log.moved = 0;
		}
		i = rig_random(&log.seed) % HOT_SHARE ?
			    (uint32_t)rig_random(&log.seed) % hot :
			    (uint32_t)rig_random(&log.seed) % log.files;
		file_write(&log, i);
	}
	*cost = (double)(log.fresh + log.read + log.moved) / (double)log.fresh;
	log_close(&log);
	return 0;
}

/* ---- The disk ---- */

struct segment_places {
	const struct geom *geom;
	uint64_t seed;
	unsigned parts, tracks;	/* a segment is one of `parts` of a track,
				 * or that many tracks */
	bool aligned;
	uint32_t track_blocks;	/* blocks of a track, found by places_next */
};

static void places_next(void *arg, uint64_t *sector, uint32_t *sectors)
{
	struct segment_places *p = arg;
	struct geom_track track, last;
	uint64_t n;

	geom_track_at(p->geom, 1 + rig_random(&p->seed) % ZONE_TRACKS, &track);
	geom_track_of(p->geom, track.first, &last);
	for (n = last.sectors; n < (uint64_t)p->tracks * track.sectors;
	     n += last.sectors)
		geom_track_of(p->geom, track.first + n, &last);
	n = p->parts > 1 ? n / p->parts / BLOCK * BLOCK : n;
	*sector = track.first + (p->parts > 1 ?
		rig_random(&p->seed) % p->parts * n : 0);
	if (!p->aligned)
		*sector = track.first + rig_random(&p->seed) % track.sectors;
	*sectors = (uint32_t)n;
}

/* Time of a segment's transfer, against that at the rate of the zone. */
static int inefficiency(const struct sched_options *options,
			struct segment_places *p, double *times)
{
	struct rig_options rig_options = {
		.drive = options->drive ? options->drive : "atlas-10k",
		.seed = options->seed, .policy = "fcfs", .no_cache = true,
	};
	struct rig_load load = {
		.clients = 2, .sectors = 4096, .warmup = 300,
		.requests = options->requests ? options->requests : 3000,
		.seed = options->seed, .next = places_next, .arg = p,
	};
	struct geom_track track;
	struct rig_result r;
	struct rig rig;
	int err = rig_open(&rig_options, &rig);

	if (err)
		return err;
	load.requests /= options->quick ? 10 : 1;
	p->geom = rig.geom;
	geom_track_at(rig.geom, ZONE_TRACKS / 2, &track);
	p->track_blocks = track.sectors / BLOCK;
	err = rig_run(&rig, &load, &r);
	*times = r.head_mean_ns * p->parts * 1000 /
		 ((double)rig.model->mech.period_ps * p->tracks);
	rig_close(&rig);
	return err;
}

int sched_segment_costs(const struct sched_options *options, unsigned parts,
			unsigned tracks, struct sched_segment_cost *cost)
{
	struct segment_places p = { .seed = options->seed, .parts = parts,
				    .tracks = tracks };
	int err = inefficiency(options, &p, &cost->anywhere);

	p.aligned = true;
	if (!err)
		err = inefficiency(options, &p, &cost->aligned);
	return err ? err : write_cost(p.track_blocks * tracks / parts,
				      options->seed, &cost->write);
}

static int row(const struct sched_options *options, unsigned parts,
	       unsigned tracks)
{
	struct sched_segment_cost c;
	int err = sched_segment_costs(options, parts, tracks, &c);

	if (!err)
		printf("%2u/%u %11.2f %10.2f %8.2f %12.2f %8.2f %8.1f %%\n",
		       tracks, parts, c.write, c.anywhere, c.aligned,
		       c.write * c.anywhere, c.write * c.aligned,
		       100 * (c.aligned / c.anywhere - 1));
	fflush(stdout);
	return err;
}

int sched_segments(const struct sched_options *options)
{
	static const struct { unsigned parts, tracks; } rows[] = {
		{ 4, 1 }, { 2, 1 }, { 1, 1 }, { 1, 2 }, { 1, 4 }, { 1, 8 },
	};
	int err = 0;

	printf("%15s %19s %21s\ntracks %8s %10s %8s %12s %8s\n", "write",
	       "times of transfer", "overall write cost", "cost", "anywhere",
	       "aligned", "anywhere", "aligned");
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows) && !err; i++)
		err = row(options, rows[i].parts, rows[i].tracks);
	printf("published, Atlas 10K II, one track: -44 %%\n");
	return err;
}

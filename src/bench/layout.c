/*
 * layout.c - see layout.h.
 */
#include "bench/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rig.h"
#include "fs/fs.h"
#include "fs/mkfs.h"

/* Bytes of a request, those of an append, and most writers of a load. */
#define CHUNK 131072u
#define APPEND 65536u
#define WRITERS_MOST 32u
#define DEPTH 4u		/* Requests that a writer has outstanding. */
#define SHUFFLED 4u		/* Requests in a row that may change places with
				 * each other. */
#define EXTENTS_AT_ONCE 64u
#define USUAL_MIB 256u

const struct layout_load layout_loads[] = {
	{ "1 in order", 1, LAYOUT_IN_ORDER },
	{ "2 in order", 2, LAYOUT_IN_ORDER },
	{ "8 in order", 8, LAYOUT_IN_ORDER },
	{ "32 in order", 32, LAYOUT_IN_ORDER },
	{ "1 appends, fsync", 1, LAYOUT_APPENDED },
	{ "4 append, fsync", 4, LAYOUT_APPENDED },
	{ "1 at random", 1, LAYOUT_RANDOM },
	{ "4 at random", 4, LAYOUT_RANDOM },
	{ NULL, 0, LAYOUT_IN_ORDER },
};

struct bench;

struct client {
	struct fs_op op;
	struct bench *b;
	bool busy;
};

struct writer {
	uint64_t ino, next;	/* the inode, and the number of the next
				 * request */
	uint64_t *order;	/* order in which the requests are sent */
};

struct bench {
	const struct layout_load *load;
	struct rig rig;
	struct fs *fs;
	struct writer writer[WRITERS_MOST];
	struct client client[WRITERS_MOST * DEPTH];
	uint64_t requests;	/* number of requests of a writer */
	uint32_t chunk;		/* bytes of a request */
	unsigned busy;
	int err;
	uint8_t data[CHUNK];
};

/* ---- Turns ---- */

static void turn(struct bench *b)
{
	const uint64_t next_ns = fs_run(b->fs, 0);

	if (b->busy)
		rig_pass(&b->rig, next_ns);
}

static void client_done(struct fs_op *op)
{
	struct client *client = op->owner;

	client->busy = false;
	client->b->busy--;
	if (op->rc && !client->b->err)
		client->b->err = op->rc;
}

static void client_submit(struct client *client)
{
	client->op.done = client_done;
	client->op.owner = client;
	client->busy = true;
	client->b->busy++;
	fs_submit(client->b->fs, &client->op);
}

static int do_one(struct bench *b, struct fs_op *op)
{
	return rig_do(&b->rig, b->fs, op);
}

/* ---- Writers ---- */

/* Requests are sent in order, but a few change places on their way. */
static int writer_order(struct bench *b, struct writer *writer, uint64_t *seed)
{
	uint64_t i, j, other, near = b->load->order == LAYOUT_RANDOM ?
		b->requests : SHUFFLED;

	writer->order = calloc(b->requests, sizeof(*writer->order));
	if (!writer->order)
		return -ENOMEM;
	for (i = 0; i < b->requests; i++)
		writer->order[i] = i;
	for (i = 0; i < b->requests && b->load->order != LAYOUT_APPENDED;
	     i++) {
		j = i + rig_random(seed) % near;
		if (j >= b->requests)
			continue;
		other = writer->order[i];
		writer->order[i] = writer->order[j];
		writer->order[j] = other;
	}
	return 0;
}

static int writer_open(struct bench *b, unsigned i, uint64_t *seed)
{
	struct writer *writer = &b->writer[i];
	char name[16];
	struct fs_op op = { .type = FS_MKNOD, .ino = 1, .name = name,
			    .mode = 0100644, .opens = true };
	int err;

	snprintf(name, sizeof(name), "file%u", i);
	err = do_one(b, &op);
	writer->ino = op.attr.ino;
	if (!err)
		err = writer_order(b, writer, seed);
	if (err || b->load->order != LAYOUT_RANDOM)
		return err;
	op = (struct fs_op){ .type = FS_SETATTR, .ino = writer->ino,
			     .flags = FS_SET_SIZE };
	op.attr.size = b->requests * b->chunk;
	return do_one(b, &op);
}

/* The next request of a writer; false: there is none now. */
static bool writer_next(struct bench *b, unsigned i, unsigned slot)
{
	struct client *client = &b->client[i * DEPTH + slot];
	struct writer *writer = &b->writer[i];
	bool appends = b->load->order == LAYOUT_APPENDED;

	if (writer->next == b->requests * (appends ? 2 : 1) ||
	    (appends && slot))
		return false;
	client->op = (struct fs_op){
		.type = FS_WRITE, .ino = writer->ino, .size = b->chunk,
		.data = b->data,
	};
	if (appends && writer->next % 2)
		client->op = (struct fs_op){ .type = FS_FSYNC,
					     .ino = writer->ino };
	else
		client->op.offset = b->chunk *
			writer->order[writer->next / (appends ? 2 : 1)];
	writer->next++;
	client_submit(client);
	return true;
}

static int write_all(struct bench *b)
{
	struct fs_op op;
	bool more = true;
	unsigned i, j;

	while (more && !b->err) {
		more = b->busy;
		for (i = 0; i < b->load->writers; i++)
			for (j = 0; j < DEPTH; j++)
				if (!b->client[i * DEPTH + j].busy)
					more |= writer_next(b, i, j);
		turn(b);
	}
	for (i = 0; i < b->load->writers && !b->err; i++) {
		op = (struct fs_op){ .type = FS_RELEASE,
				     .ino = b->writer[i].ino };
		b->err = do_one(b, &op);
	}
	op = (struct fs_op){ .type = FS_SYNCFS, .ino = 1 };
	return b->err ? b->err : do_one(b, &op);
}

/* ---- How they lie ---- */

/* The part of [sector, sector + n) on tracks that lie inside it as a whole. */
static uint64_t whole_of(const struct geom *geom, uint64_t sector, uint64_t n)
{
	uint64_t end = sector + n, whole = 0;
	struct geom_track track;

	for (; sector < end; sector = track.first + track.sectors) {
		geom_track_of(geom, sector, &track);
		if (track.first == sector && track.first + track.sectors <= end)
			whole += track.sectors;
	}
	return whole;
}

static void count_run(const struct bench *b, const struct fs_extent *run,
		      struct layout_result *result)
{
	if (!run->bytes)
		return;
	result->runs++;
	result->bytes += run->bytes;
	result->whole_bytes += SECTOR_BYTES *
		whole_of(b->rig.geom, run->lbn, run->bytes / SECTOR_BYTES);
	if (!result->least_bytes || run->bytes < result->least_bytes)
		result->least_bytes = run->bytes;
}

static int count_file(struct bench *b, uint64_t ino,
		      struct layout_result *result)
{
	struct fs_extent extent[EXTENTS_AT_ONCE], run = { 0 };
	struct fs_op op = { .offset = 0 };
	uint64_t i;
	int err;

	do {
		op = (struct fs_op){
			.type = FS_EXTENTS, .ino = ino, .offset = op.offset,
			.buffer = extent, .size = EXTENTS_AT_ONCE,
		};
		err = do_one(b, &op);
		for (i = 0; i < op.result && !err; i++) {
			if (run.offset + run.bytes == extent[i].offset &&
			    run.lbn + run.bytes / SECTOR_BYTES ==
				    extent[i].lbn) {
				run.bytes += extent[i].bytes;
			} else {
				count_run(b, &run, result);
				run = extent[i];
			}
			op.offset = extent[i].offset + extent[i].bytes;
		}
	} while (!err && op.result == EXTENTS_AT_ONCE);
	count_run(b, &run, result);
	return err;
}

/* ---- One measurement ---- */

static int bench_open(const struct layout_options *options, struct bench *b)
{
	const struct rig_options rig_options = {
		.drive = options->drive ? options->drive : "modern",
		.seed = options->seed,
	};
	const struct rig_load load = { .clients = 1, .sectors = 8,
				       .read_percent = 50, .requests = 400 };
	struct fs_options fs_options = {
		.memory_bytes = (size_t)options->memory_mib << 20,
	};
	struct mkfs_options mkfs = { 0 };
	struct rig_result result;
	struct mkfs_plan plan;
	int err = rig_open(&rig_options, &b->rig);

	if (!err)
		err = rig_run(&b->rig, &load, &result);
	if (err)
		return err;
	queue_close(b->rig.queue);
	b->rig.queue = NULL;
	mkfs.geom = b->rig.geom;
	fs_options.head = b->rig.head;
	err = mkfs_plan(b->rig.env, &b->rig.disk->limits, &mkfs, &plan);
	if (!err)
		err = mkfs_write(b->rig.env, b->rig.disk, &mkfs, &plan);
	return err ? err : fs_open(b->rig.env, b->rig.disk, &fs_options,
				   &b->fs);
}

static int bench_run(const struct layout_options *options, struct bench *b,
		     struct layout_result *result)
{
	uint64_t seed = options->seed, begin_ns;
	uint64_t bytes = (options->mib ? options->mib : USUAL_MIB) << 20;
	int err = bench_open(options, b);
	unsigned i;

	b->chunk = b->load->order == LAYOUT_APPENDED ? APPEND : CHUNK;
	b->requests = bytes / b->load->writers / b->chunk;
	memset(b->data, 7, CHUNK);
	for (i = 0; i < WRITERS_MOST * DEPTH; i++)
		b->client[i].b = b;
	for (i = 0; i < b->load->writers && !err; i++)
		err = writer_open(b, i, &seed);
	begin_ns = b->rig.sim ? sim_now_ns(b->rig.sim) : 0;
	if (!err)
		err = write_all(b);
	if (!err)
		result->seconds = (double)(sim_now_ns(b->rig.sim) - begin_ns) /
				  1e9;
	for (i = 0; i < b->load->writers && !err; i++)
		err = count_file(b, b->writer[i].ino, result);
	return err;
}

int layout_run(const struct layout_options *options,
	       const struct layout_load *load, struct layout_result *result)
{
	struct bench *b = calloc(1, sizeof(*b));
	unsigned i;
	int err;

	*result = (struct layout_result){ 0 };
	if (!b)
		return -ENOMEM;
	b->load = load;
	err = bench_run(options, b, result);
	if (b->fs && !err)
		err = fs_close(b->fs);
	else if (b->fs)
		fs_abandon(b->fs);
	for (i = 0; i < WRITERS_MOST; i++)
		free(b->writer[i].order);
	rig_close(&b->rig);
	free(b);
	return err;
}

int layout_table(const struct layout_options *options)
{
	static const uint64_t memory_mib[] = { 32, 64, 256, 1024 };
	struct layout_options one = *options;
	const struct layout_load *load;
	struct layout_result r;
	unsigned i, n = options->memory_mib ? 1 : 4;
	int err = 0;

	printf("%-18s %7s %7s %7s %9s %9s %9s\n", "writers", "memory",
	       "whole", "runs", "mean KiB", "least", "seconds");
	for (load = layout_loads; load->name && !err; load++)
		for (i = 0; i < n && !err; i++) {
			if (!options->memory_mib)
				one.memory_mib = memory_mib[i];
			err = layout_run(&one, load, &r);
			if (err)
				break;
			printf("%-18s %7llu %6.1f%% %7llu %9llu %9llu %9.2f\n",
			       load->name, (unsigned long long)one.memory_mib,
			       100.0 * (double)r.whole_bytes / (double)r.bytes,
			       (unsigned long long)r.runs,
			       (unsigned long long)(r.bytes / r.runs / 1024),
			       (unsigned long long)(r.least_bytes / 1024),
			       r.seconds);
			fflush(stdout);
		}
	return err;
}

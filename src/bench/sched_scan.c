/*
 * sched_scan.c - a file scan (scan/file_scan.h) of a whole file system in the
 * gaps of clients: what the scan gets, and what the clients notice.  In virtual
 * time; the same clients from the same seed without a scan, then with one after
 * the other.
 *
 * Ten clients read at random with 30 ms of thinking, as the OLTP load of Lumb
 * et al. (OSDI 2000, section 6).  Four read one large file at random without
 * pauses, the file is scanned, too.
 *
 * The disk is filled with files in part, so a scan "a day" counts the data that
 * was given against the whole disk: as many bytes as the disk has, in how much
 * time.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rig.h"
#include "bench/sched.h"
#include "fs/fs.h"
#include "fs/mkfs.h"
#include "scan/file_scan.h"

#define CLIENTS_MOST 10u
#define FILES 64u
#define WRITE_BYTES 131072u

#define REQUESTS 20000u
#define MEMORY_BYTES (UINT64_C(96) << 20)
#define DAY_NS 86400e9

/* What the clients do, and what lies on the disk. */
struct scan_clients {
	const char *name, *drive;
	unsigned clients;
	double think_ns;	/* mean pause; 0: none */
	uint32_t read_bytes;
	uint64_t file_bytes;	/* of each of FILES files */
	uint64_t own_bytes;	/* of one more, which alone the clients read; 0:
				 * they read the others */
};

static const struct scan_clients oltp = {
	.name = "10 clients", .drive = "atlas-10k", .clients = 10,
	.think_ns = 30e6, .read_bytes = 8192, .file_bytes = 4u << 20,
};
static const struct scan_clients readers = {
	.name = "4 readers", .drive = "modern", .clients = 4,
	.read_bytes = 4096, .file_bytes = 1u << 20, .own_bytes = 2048u << 20,
};

struct scan_client {
	struct fs_op op;
	struct scan_bench *bench;
	uint64_t wake_ns;	/* it asks again then; 0: it waits */
	uint64_t asked_ns;
	uint64_t seed;		/* of its requests and pauses, so that they are
				   the same with a scan and without */
	uint8_t bytes[WRITE_BYTES];
};

struct scan_bench {
	const struct scan_clients *load;
	struct rig rig;
	struct fs *fs;
	struct file_scans *scans;
	struct file_scan *scan;
	uint64_t ino[FILES + 1];	/* the last one is the clients' own */
	struct scan_client client[CLIENTS_MOST];
	double *response_ns;
	uint64_t answered, most;
	uint64_t given;		/* by scans that have ended */
	unsigned ended;
	int err;
	uint8_t records[1 << 20];
};

static double dice(struct scan_client *client)
{
	uint64_t z = client->seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

static unsigned files(const struct scan_clients *load)
{
	return FILES + (load->own_bytes > 0);
}

static uint64_t all_bytes(const struct scan_clients *load)
{
	return FILES * load->file_bytes + load->own_bytes;
}

/* ---- the scan ---- */

static int scan_start(struct scan_bench *b, double part)
{
	struct file_scan_options options = {
		.total_bytes = all_bytes(b->load),
	};
	unsigned i;
	int err;

	if (part < 1)
		options.sample_bytes =
			(uint64_t)(part * (double)options.total_bytes);
	err = file_scan_begin(b->scans, &options, &b->scan);
	for (i = 0; i < files(b->load) && !err; i++)
		err = file_scan_add(b->scan, b->ino[i]);
	if (!err)
		file_scan_seal(b->scan);
	return err;
}

static uint64_t given_now(const struct scan_bench *b)
{
	struct scan_status status = { .given_bytes = 0 };

	if (b->scan)
		file_scan_get_status(b->scan, &status);
	return b->given + status.given_bytes;
}

/* Takes the records; a scan that is over is followed by another. */
static void scan_turn(struct scan_bench *b, double part)
{
	struct scan_status status;

	file_scans_run(b->scans);
	while (file_scan_read(b->scan, b->records, sizeof(b->records)))
		;
	file_scan_get_status(b->scan, &status);
	if (status.state != SCAN_ENDED)
		return;
	b->given += status.given_bytes;
	b->ended++;
	file_scan_end(b->scan);
	b->err = scan_start(b, part);
}

/* ---- clients ---- */

static uint64_t think(struct scan_client *client)
{
	return sim_now_ns(client->bench->rig.sim) + 1 +
	       (uint64_t)(-log(1 - dice(client)) *
			  client->bench->load->think_ns);
}

static void client_done(struct fs_op *op)
{
	struct scan_client *client = op->owner;
	struct scan_bench *b = client->bench;

	if (b->answered < b->most)
		b->response_ns[b->answered++] = (double)
			(sim_now_ns(b->rig.sim) - client->asked_ns);
	if (op->rc && !b->err)
		b->err = op->rc;
	client->wake_ns = think(client);
}

static void client_ask(struct scan_client *client)
{
	struct scan_bench *b = client->bench;
	const struct scan_clients *load = b->load;
	uint64_t bytes = load->own_bytes ? load->own_bytes : all_bytes(load);
	uint64_t places = bytes / load->read_bytes;
	uint64_t at = (uint64_t)(dice(client) * (double)places) *
		      load->read_bytes;
	uint64_t file = load->own_bytes ? FILES : at / load->file_bytes;

	client->wake_ns = 0;
	client->asked_ns = sim_now_ns(b->rig.sim);
	client->op = (struct fs_op){
		.type = FS_READ, .done = client_done, .owner = client,
		.ino = b->ino[file],
		.offset = load->own_bytes ? at : at % load->file_bytes,
		.size = load->read_bytes, .buffer = client->bytes,
	};
	fs_submit(b->fs, &client->op);
}

/* ---- turns ---- */

static void clients_turn(struct scan_bench *b, double part)
{
	uint64_t now_ns = sim_now_ns(b->rig.sim), next_ns;
	unsigned i;

	for (i = 0; i < b->load->clients; i++)
		if (b->client[i].wake_ns && b->client[i].wake_ns <= now_ns)
			client_ask(&b->client[i]);
	next_ns = fs_run(b->fs, 0);
	if (part > 0)
		scan_turn(b, part);
	for (i = 0; i < b->load->clients; i++)
		if (b->client[i].wake_ns && b->client[i].wake_ns < next_ns)
			next_ns = b->client[i].wake_ns;
	rig_pass(&b->rig, next_ns);
}

static void count(struct fs_op *op)
{
	++*(unsigned *)op->owner;
}

static int do_one(struct scan_bench *b, struct fs_op *op)
{
	unsigned over = 0;

	op->done = count;
	op->owner = &over;
	fs_submit(b->fs, op);
	while (!over)
		rig_pass(&b->rig, fs_run(b->fs, 0));
	return op->rc;
}

/* ---- the file system ---- */

static int make_file(struct scan_bench *b, unsigned i)
{
	char name[16];
	struct fs_op op = { .type = FS_MKDIR, .ino = 1, .name = name,
			    .mode = 0755 };
	const uint64_t bytes = i == FILES ? b->load->own_bytes :
					    b->load->file_bytes;
	uint64_t at;
	int err;

	/* Directories are spread over the disk. */
	snprintf(name, sizeof(name), "d%u", i);
	err = do_one(b, &op);
	op = (struct fs_op){ .type = FS_MKNOD, .ino = op.attr.ino,
			     .name = "file", .mode = 0100644 };
	err = err ? err : do_one(b, &op);
	b->ino[i] = op.attr.ino;
	for (at = 0; at < bytes && !err; at += WRITE_BYTES) {
		op = (struct fs_op){ .type = FS_WRITE, .ino = b->ino[i],
				     .offset = at, .size = WRITE_BYTES,
				     .data = b->client[0].bytes };
		b->client[0].bytes[at / WRITE_BYTES] = (uint8_t)i;
		err = do_one(b, &op);
	}
	return err;
}

static int open_fs(struct scan_bench *b)
{
	struct fs_options options = { .head = b->rig.head,
				      .memory_bytes = MEMORY_BYTES,
				      .replicas = 0, .noatime = true };

	return fs_open(b->rig.env, sim_disk(b->rig.sim), &options, &b->fs);
}

static int make_fs(const struct sched_options *options, struct scan_bench *b)
{
	const struct rig_options rig_options = {
		.drive = options->drive ? options->drive : b->load->drive,
		.seed = options->seed, .no_cache = true,
		.host_ns = options->host_ns,
	};
	const struct rig_load load = { .clients = 1, .sectors = 8,
				       .read_percent = 50, .requests = 1000 };
	struct rig_result result;
	struct mkfs_options mkfs = { 0 };
	struct mkfs_plan plan;
	struct disk *disk;
	unsigned i;
	int err = rig_open(&rig_options, &b->rig);

	if (err)
		return err;
	err = rig_run(&b->rig, &load, &result);
	queue_close(b->rig.queue);
	b->rig.queue = NULL;
	disk = sim_disk(b->rig.sim);
	mkfs.geom = b->rig.geom;
	if (!err)
		err = mkfs_plan(b->rig.env, &disk->limits, &mkfs, &plan);
	if (!err)
		err = mkfs_write(b->rig.env, disk, &mkfs, &plan);
	if (!err)
		err = open_fs(b);
	for (i = 0; i < files(b->load) && !err; i++)
		err = make_file(b, i);
	/* Nothing of it in memory. */
	if (!err)
		err = fs_close(b->fs);
	b->fs = NULL;
	if (!err)
		err = open_fs(b);
	return err ? err : file_scans_open(b->fs, &b->scans);
}

/* ---- measuring ---- */

struct scan_outcome {
	double mean_ns, p99_ns, ns, disk_bytes;
	uint64_t given;
	unsigned ended;
};

static int run_clients(struct scan_bench *b,
		       const struct sched_options *options, double part,
		       struct scan_outcome *out)
{
	uint64_t begun_ns = sim_now_ns(b->rig.sim);
	unsigned i;

	b->err = part > 0 ? scan_start(b, part) : 0;
	for (i = 0; i < b->load->clients; i++) {
		b->client[i].bench = b;
		b->client[i].seed = options->seed * 1000 + i;
		b->client[i].wake_ns = think(&b->client[i]);
	}
	while (!b->err && b->answered < b->most)
		clients_turn(b, part);
	if (b->err)
		return b->err;
	out->ns = (double)(sim_now_ns(b->rig.sim) - begun_ns);
	out->given = given_now(b);
	out->disk_bytes = (double)geom_sectors(b->rig.geom) * 512;
	out->ended = b->ended;
	rig_sum_up(b->response_ns, b->most, &out->mean_ns, &out->p99_ns);
	return 0;
}

static int measure(const struct sched_options *options,
		   const struct scan_clients *load, double part,
		   struct scan_outcome *out)
{
	struct scan_bench *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->load = load;
	b->most = options->requests ? options->requests : REQUESTS;
	if (options->quick)
		b->most /= 10;
	b->response_ns = calloc(b->most, sizeof(double));
	err = b->response_ns ? make_fs(options, b) : -ENOMEM;
	if (!err)
		err = run_clients(b, options, part, out);
	file_scans_close(b->scans);
	if (b->fs)
		fs_close(b->fs);
	rig_close(&b->rig);
	free(b->response_ns);
	free(b);
	return err;
}

static void print_row(const char *label, const struct scan_outcome *alone,
		      const struct scan_outcome *with, double disk_bytes)
{
	printf("%-12s %9.3f %9.3f %8.2f %8.2f %8.2f %8.1f %8u\n", label,
	       alone->mean_ns / 1e6, with->mean_ns / 1e6,
	       100 * (with->mean_ns / alone->mean_ns - 1),
	       100 * (with->p99_ns / alone->p99_ns - 1),
	       (double)with->given * 1e3 / with->ns,
	       (double)with->given * DAY_NS / with->ns / disk_bytes,
	       with->ended);
	fflush(stdout);
}

static int scan_rows(const struct sched_options *options,
		     const struct scan_clients *load)
{
	struct scan_outcome alone, with;
	int err = measure(options, load, 0, &alone);

	printf("%s\n", load->name);
	if (!err)
		err = measure(options, load, 1, &with);
	if (!err)
		print_row("all", &alone, &with, alone.disk_bytes);
	if (!err && !load->own_bytes)
		err = measure(options, load, 0.8, &with);
	if (!err && !load->own_bytes)
		print_row("any 80 %", &alone, &with, 0.8 * alone.disk_bytes);
	return err;
}

int sched_scan(const struct sched_options *options)
{
	int err;

	printf("%-12s %9s %9s %8s %8s %8s %8s %8s\n", "file scan of",
	       "alone ms", "with ms", "mean +%", "p99 +%", "MB/s", "a day",
	       "scans");
	err = scan_rows(options, &oltp);
	if (!err)
		err = scan_rows(options, &readers);
	printf("published (whole disk, with writes): 47 a day; any 80 %% over "
	       "90\n");
	return err;
}

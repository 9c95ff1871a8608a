/*
 * test_freeblock.c - tasks on simulated drives in virtual time: what they get,
 * and that the foreground does not notice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diskmodel/spec.h"
#include "sched/freeblock/gap_fill.h"
#include "sched/freeblock/freeblock.h"
#include "sim/drive.h"
#include "sim/sim.h"
#include "sim/specgen.h"
#include "tests/rig/test.h"

#define UNIT 8u
#define MARK_EVERY 4096u
#define TURNS 12

#define DRIVE_TEXT(sectors, more) \
	"\"surfaces\": 4, \"rpm\": 10000, \"order\": \"cylinder\", " \
	"\"head_switch_ms\": 0.8, \"write_settle_ms\": 0.4, " \
	"\"overhead\": { \"read_ms\": 0.05, \"write_ms\": 0.2 }, " \
	"\"zero_latency\": { \"read\": true, \"write\": true }, " \
	"\"seek\": [[1, 1.2], [10, 1.5], [100, 2.5], [500, 5]], " \
	"\"zones\": [ { \"cylinders\": [0, 99], " \
	"\"sectors_per_track\": " sectors ", " \
	"\"track_skew\": 0.15, \"cylinder_skew\": 0.25" more " } ] }"
#define SLIPS ", \"slips\": [777, 9000]"
#define CACHE_TEXT "\"cache\": { \"segments\": 8, \"segment_lbns\": 400, " \
	"\"read_ahead_lbns\": 300, \"write_lbns\": 0 }, "

static const char drive_text[] = "{ " DRIVE_TEXT("120", SLIPS);
static const char cached_text[] = "{ " CACHE_TEXT DRIVE_TEXT("120", SLIPS);
/* Its sectors are of 4 KiB, and no slip moves them over a track's end. */
static const char large_sectors_text[] =
	"{ \"physical_bytes\": 4096, " CACHE_TEXT DRIVE_TEXT("15", "");

struct bench {
	struct spec *spec, *model;
	struct sim *sim;
	struct env *env;
	struct geom *geom;
	struct head *head;
	struct queue *queue;
	struct freeblock_task *task;
	uint64_t sectors, seed;

	uint8_t *had;		/* how often each sector came */
	uint8_t *marked;	/* begins with its number, plus 1 */
	bool reads;		/* the foreground only does */
	bool streams;		/* it reads in order, two by two exchanged */
	uint64_t asked;		/* requests of the foreground */
	uint64_t got, bad;
	bool wrong;
	unsigned written;
};

/* ---- the bench ---- */

/* Marks the first sectors of a unit. */
static void put_mark(struct bench *b, uint64_t at, uint32_t sectors)
{
	uint64_t block[512] = { 0 };
	uint32_t i;

	for (i = 0; i < sectors; i++) {
		block[i * 64] = at + i + 1;
		b->marked[at + i] = 1;
	}
	ck_assert_int_eq(queue_write(b->queue, at, UNIT, block), 0);
}

static void put_marks(struct bench *b)
{
	uint64_t at;

	for (at = 0; at + UNIT <= b->sectors; at += MARK_EVERY)
		put_mark(b, at, 1);
}

/* The last two have sectors that lie elsewhere, within units. */
static const char *const seeds[] = {
	"4", "21", "104,noise=0", "8001", "8020",
};

#define CACHED (-2)
#define GOES_ON (-3)
#define GOES_ON_LARGE (-4)
#define STREAM_READS 500u
#define GOES_ON_ROUNDS 20u
#define GOES_ON_READS 200u

/* Drive: -1 the one above, CACHED the same with a cache, GOES_ON one that goes
 * to the next track behind a read up to a track's end as well, GOES_ON_LARGE
 * such a one with large sectors, or one that nobody has seen. */
static void bench_specs(struct bench *b, int drive)
{
	struct specgen options;

	if (drive < 0) {
		const char *text = drive == GOES_ON_LARGE ? large_sectors_text :
				   drive == -1 ? drive_text : cached_text;

		ck_assert_int_eq(spec_parse(text, "test", &b->spec), 0);
		ck_assert_int_eq(spec_parse(text, "test", &b->model), 0);
		b->spec->read_ahead_moves = drive <= GOES_ON;
		return;
	}
	ck_assert_int_eq(specgen_parse(seeds[drive], &options), 0);
	options.bytes = 64 << 20;
	ck_assert_int_eq(specgen_make(&options, &b->spec), 0);
	ck_assert_int_eq(specgen_make(&options, &b->model), 0);
	b->spec->cache_segments = b->spec->read_ahead_lbns = 0;
	b->spec->write_cache_lbns = 0;
}

static void bench_open_host(struct bench *b, bool blind, int drive,
			    uint64_t host_ns)
{
	struct sim_options sim_options = {
		.seed = 3, .host_ns = host_ns,
		.physical_bytes = drive == GOES_ON_LARGE ? 4096 : 512,
	};
	struct queue_options options = { 0 };
	struct head_options head_options;

	*b = (struct bench){ .seed = 9 };
	bench_specs(b, drive);
	ck_assert_int_eq(spec_geom(b->model, &b->geom), 0);
	b->sim = sim_new(b->spec, 0, &sim_options);
	ck_assert_ptr_nonnull(b->sim);
	b->env = sim_env(b->sim);
	b->sectors = geom_sectors(b->geom);
	b->had = calloc(b->sectors, 1);
	b->marked = calloc(b->sectors, 1);
	ck_assert_int_eq(queue_open(b->env, sim_disk(b->sim), &options,
				    &b->queue), 0);
	head_options = (struct head_options){
		.geom = b->geom,
		.mech = &b->model->mech,
		.read_overhead_ns = b->model->read_overhead_ns,
		.write_overhead_ns = b->model->write_overhead_ns,
		.read_ahead_sectors = b->spec->read_ahead_lbns,
		.physical_sectors = sim_options.physical_bytes / SECTOR_BYTES,
	};
	if (!blind) {
		ck_assert_int_eq(head_open(b->env, &head_options, &b->head),
				 0);
		queue_set_head(b->queue, b->head);
	}
	put_marks(b);
}

static void bench_open_drive(struct bench *b, bool blind, int drive)
{
	bench_open_host(b, blind, drive, 0);
}

static void bench_open(struct bench *b, bool blind)
{
	bench_open_drive(b, blind, -1);
}

static void bench_close(struct bench *b)
{
	freeblock_close(b->task);
	ck_assert_int_ge(queue_drain(b->queue), 0);
	queue_close(b->queue);
	head_close(b->head);
	sim_free(b->sim);
	geom_free(b->geom);
	spec_free(b->spec);
	spec_free(b->model);
	free(b->had);
	free(b->marked);
}

static void bench_got(void *arg, uint64_t sector, uint32_t sectors,
		      const void *bytes, int result)
{
	struct bench *b = arg;
	uint64_t i, mark;

	b->wrong |= !sectors || sector + sectors > b->sectors;
	if (b->wrong)
		return;
	if (result) {
		b->bad += sectors;
		b->wrong |= bytes || result != -EIO;
	}
	for (i = 0; i < sectors; i++) {
		b->wrong |= b->had[sector + i]++ != 0;
		if (result || !b->marked[sector + i])
			continue;
		memcpy(&mark, (const char *)bytes + i * SECTOR_BYTES,
		       sizeof(mark));
		b->wrong |= mark != sector + i + 1;
	}
	b->got += sectors;
}

static void bench_written(void *arg, struct queue_request *req)
{
	struct bench *b = arg;

	b->wrong |= req->disk.result != 0;
	b->written++;
}

static const struct freeblock_ops bench_ops = { .got = bench_got,
						.written = bench_written };

static uint64_t all_of(const struct bench *b)
{
	return b->sectors / UNIT * UNIT;
}

static void bench_task(struct bench *b, bool no_idle)
{
	const struct freeblock_options options = { .name = "test",
						   .no_idle = no_idle };

	ck_assert_int_eq(freeblock_open(b->queue, &options, &bench_ops, b,
					&b->task), 0);
}

/* ---- the foreground ---- */

struct load {
	struct bench *b;
	struct queue_request req;
	struct iovec iov;
	unsigned left;
	uint64_t spent_ns;
	bool over;
};

static void load_ask(struct load *load);

static void load_done(struct disk_request *disk)
{
	struct load *load = disk->owner;

	ck_assert_int_eq(disk->result, 0);
	load->spent_ns += disk->complete_ns - disk->submit_ns;
	if (--load->left)
		load_ask(load);
	else
		load->over = true;
}

static void load_ask(struct load *load)
{
	struct bench *b = load->b;
	uint64_t place = test_random(&b->seed) % (b->sectors / UNIT - 4);

	load->req = (struct queue_request){
		.disk = {
			/* The marks are left alone. */
			.op = test_random(&b->seed) % 3 || place % 512 < 4 ?
				      DISK_READ : DISK_WRITE,
			.sector = place * UNIT,
			.sectors = UNIT,
			.iov = &load->iov,
			.iov_n = 1,
			.done = load_done,
			.owner = load,
		},
		.class = QUEUE_READ,
	};
	if (place % 512 > 508 || b->reads)
		load->req.disk.op = DISK_READ;
	if (b->streams) {
		place = b->asked / 2 * 2 + 1 - b->asked % 2;
		load->req.disk.sector = place * UNIT;
	}
	b->asked++;
	queue_submit(b->queue, &load->req);
}

/* So many requests, one after the other; their mean, in ns. */
static double run_load(struct bench *b, unsigned n)
{
	struct load load = { .b = b, .left = n };

	load.iov.iov_len = UNIT * SECTOR_BYTES;
	load.iov.iov_base = aligned_alloc(4096, load.iov.iov_len);
	memset(load.iov.iov_base, 1, load.iov.iov_len);
	load_ask(&load);
	while (!load.over)
		ck_assert_int_ge(queue_poll(b->queue, -1), 0);
	free(load.iov.iov_base);
	return (double)load.spent_ns / n;
}

/* ---- gaps ---- */

START_TEST(gaps_are_free)
{
	struct freeblock_stats stats;
	struct drive_times alone, times;
	struct bench b;
	double without, with;

	bench_open(&b, false);
	run_load(&b, 400);
	drive_clear_times(sim_drive(b.sim), sim_now_ns(b.sim));
	b.seed = 77;
	without = run_load(&b, 2000);
	drive_get_times(sim_drive(b.sim), sim_now_ns(b.sim), &alone);
	bench_task(&b, true);
	ck_assert_int_eq(freeblock_want(b.task, 0, all_of(&b)), 0);
	drive_clear_times(sim_drive(b.sim), sim_now_ns(b.sim));
	b.seed = 77;
	with = run_load(&b, 2000);
	drive_get_times(sim_drive(b.sim), sim_now_ns(b.sim), &times);
	freeblock_get_stats(b.queue, NULL, &stats);
	printf("foreground %.3f ms alone, %.3f with a task that got %.0f %%; "
	       "%u delays, potential %.2f s of %.2f, used %.2f\n",
	       without / 1e6, with / 1e6, 100.0 * (double)b.got / all_of(&b),
	       (unsigned)stats.delays, (double)stats.potential_ns / 1e9,
	       (double)alone.rotation_ns / 1e9, (double)stats.used_ns / 1e9);
	ck_assert(!b.wrong);
	ck_assert_double_lt(with, without * 1.005);
	ck_assert_uint_gt(b.got, all_of(&b) * 3 / 4);
	ck_assert_uint_eq(b.got, stats.sectors);
	ck_assert_uint_eq(freeblock_wanted(b.task) + b.got, all_of(&b));
	ck_assert_uint_eq(stats.idle_sectors, 0);
	ck_assert_uint_gt(times.transfer_ns, alone.transfer_ns * 2);
	bench_close(&b);
}
END_TEST

/* Behind a read up to a track's end the head is on the next track before it can
 * go to the request: a gap must have time for that.  With sectors of 4 KiB,
 * too, where the drive reads the rest of one as well, up to the track's end. */
START_TEST(gaps_are_free_where_the_drive_goes_on)
{
	double without = 0, with = 0;
	struct freeblock_stats stats;
	struct bench b;
	unsigned i;

	bench_open_drive(&b, false, _i ? GOES_ON_LARGE : GOES_ON);
	b.reads = true;
	run_load(&b, 400);
	b.seed = 77;
	without = run_load(&b, GOES_ON_ROUNDS * GOES_ON_READS);
	bench_task(&b, true);
	b.seed = 77;
	for (i = 0; i < GOES_ON_ROUNDS; i++) {
		ck_assert_int_eq(freeblock_want(b.task, 0, all_of(&b)), 0);
		with += run_load(&b, GOES_ON_READS) / GOES_ON_ROUNDS;
		freeblock_unwant(b.task, 0, all_of(&b));
		memset(b.had, 0, b.sectors);
	}
	freeblock_get_stats(b.queue, NULL, &stats);
	printf("foreground %.3f ms alone, %.3f with a task that got %.0f %%; "
	       "%u delays\n", without / 1e6, with / 1e6,
	       100.0 * (double)b.got / all_of(&b), (unsigned)stats.delays);
	ck_assert(!b.wrong);
	ck_assert_double_lt(with, without * 1.005);
	ck_assert_uint_gt(b.got, all_of(&b) * GOES_ON_ROUNDS / 6);
	bench_close(&b);
}
END_TEST

#define PAIRS 24u
#define LONG_SECTORS 50u	/* of 120 of a track: may begin in its middle */

static void one_over(struct disk_request *disk)
{
	ck_assert_int_eq(disk->result, 0);
	*(bool *)disk->owner = true;
}

/* A read up to a track's end, and one of the same track that begins a fifth of
 * a turn behind that: too soon for a head that goes to the next track first. */
static void read_pair(struct bench *b, uint64_t lbn, void *buf)
{
	struct iovec iov[] = { { buf, UNIT * SECTOR_BYTES },
			       { buf, LONG_SECTORS * SECTOR_BYTES } };
	struct queue_request req[2];
	bool over[] = { false, false };
	struct geom_track track;
	unsigned i;

	geom_track_of(b->geom, lbn, &track);
	for (i = 0; i < 2; i++) {
		req[i] = (struct queue_request){
			.disk = {
				.op = DISK_READ, .iov = &iov[i], .iov_n = 1,
				.sector = track.first +
					  (i ? track.sectors / 5 :
					       track.sectors - UNIT),
				.sectors = i ? LONG_SECTORS : UNIT,
				.done = one_over, .owner = &over[i],
			},
			.class = QUEUE_READ,
		};
		queue_submit(b->queue, &req[i]);
	}
	while (!over[0] || !over[1])
		ck_assert_int_ge(queue_poll(b->queue, -1), 0);
}

/* Long reads, as most of those in gaps are, show it, too. */
START_TEST(long_reads_show_that_the_drive_goes_on)
{
	void *buf = aligned_alloc(4096, 64 * SECTOR_BYTES);
	struct head_state head_state;
	struct bench b;
	unsigned i;

	bench_open_drive(&b, false, _i ? GOES_ON : CACHED);
	b.reads = true;
	run_load(&b, 100);
	for (i = 0; i < PAIRS; i++)
		read_pair(&b, 5000 + 1000 * i, buf);
	head_get_state(b.head, &head_state);
	ck_assert_int_eq(head_state.goes_on_sectors > 0, _i);
	free(buf);
	bench_close(&b);
}
END_TEST

/* What follows a stream comes from the drive's cache, even if the stream's
 * requests are a little out of order: a gap before one of them would cost the
 * next ones a turn. */
START_TEST(a_stream_that_the_drive_reads_ahead_has_no_gaps)
{
	double without, with;
	struct bench b;

	bench_open_drive(&b, false, CACHED);
	run_load(&b, 400);
	b.reads = b.streams = true;
	b.asked = 0;
	without = run_load(&b, STREAM_READS);
	bench_task(&b, true);
	ck_assert_int_eq(freeblock_want(b.task, 0, all_of(&b)), 0);
	with = run_load(&b, STREAM_READS);
	ck_assert_double_lt(with, without * 1.05);
	bench_close(&b);
}
END_TEST

/* What is said of the head's time is what the drive says, on drives not seen
 * before, too. */
START_TEST(what_is_counted_is_what_the_head_did)
{
	struct freeblock_stats stats, before;
	struct drive_times alone, times;
	struct bench b;
	double free_ns;

	bench_open_drive(&b, false, _i - 1);
	bench_task(&b, true);
	run_load(&b, 400);
	drive_clear_times(sim_drive(b.sim), sim_now_ns(b.sim));
	b.seed = 5;
	run_load(&b, 600);
	drive_get_times(sim_drive(b.sim), sim_now_ns(b.sim), &alone);
	freeblock_get_stats(b.queue, NULL, &before);
	freeblock_want(b.task, 0, all_of(&b));
	drive_clear_times(sim_drive(b.sim), sim_now_ns(b.sim));
	b.seed = 5;
	run_load(&b, 600);
	drive_get_times(sim_drive(b.sim), sim_now_ns(b.sim), &times);
	freeblock_get_stats(b.queue, NULL, &stats);
	free_ns = (double)(times.transfer_ns - alone.transfer_ns);
	printf("potential %.3f s, the drive's rotation %.3f; used %.3f, its "
	       "transfer %.3f\n",
	       (double)(stats.potential_ns - before.potential_ns) / 1e9,
	       (double)alone.rotation_ns / 1e9, (double)stats.used_ns / 1e9,
	       free_ns / 1e9);
	ck_assert_double_eq_tol((double)(stats.potential_ns -
					 before.potential_ns),
				(double)alone.rotation_ns,
				0.05 * (double)alone.rotation_ns);
	ck_assert_double_eq_tol((double)stats.used_ns, free_ns,
				0.05 * free_ns);
	bench_close(&b);
}
END_TEST

/*
 * A host that is late, by 0.1 ms with each request, answer and timer: the
 * foreground hardly notices a task, by turns with it and without, and what is
 * said of the delay is what there is.
 */
START_TEST(a_late_host_delays_nobody)
{
	double mean_ns[2] = { 0, 0 }, said_ns, is_ns;
	struct freeblock_delay delay;
	struct freeblock_stats stats;
	struct bench b;
	int i;

	bench_open_host(&b, false, _i - 1, 100000);
	b.reads = true;
	bench_task(&b, true);
	freeblock_want(b.task, 0, all_of(&b));
	for (i = 0; i < 2 * TURNS + 2; i++) {
		freeblock_pause(b.task, !(i % 2));
		b.seed = 100 + (uint64_t)i / 2;
		if (i > 1)
			mean_ns[i % 2] += run_load(&b, 300) / TURNS;
		else
			run_load(&b, 300);
		/* A pass is over soon. */
		memset(b.had, 0, b.sectors);
		b.got = 0;
		freeblock_want(b.task, 0, all_of(&b));
	}
	freeblock_get_stats(b.queue, NULL, &stats);
	freeblock_get_delay(b.queue, "test", &delay);
	ck_assert_uint_eq(delay.requests, stats.delays);
	ck_assert_uint_eq(delay.sum_ns, stats.delay_ns);
	freeblock_get_delay(b.queue, "nobody", &delay);
	ck_assert_uint_eq(delay.requests, 0);
	said_ns = (double)stats.delay_ns / (300 * TURNS);
	is_ns = mean_ns[1] - mean_ns[0];
	printf("foreground %.3f ms alone, %.3f with a task that used %.0f %% "
	       "of the potential; delay %.3f ms, %.3f said\n",
	       mean_ns[0] / 1e6, mean_ns[1] / 1e6,
	       100 * (double)stats.used_ns / (double)stats.potential_ns,
	       is_ns / 1e6, said_ns / 1e6);
	ck_assert_double_lt(is_ns, 0.012 * mean_ns[0]);
	ck_assert_double_lt(said_ns, 0.0042 * mean_ns[0]);
	ck_assert_double_eq_tol(said_ns, is_ns, 0.005 * mean_ns[0]);
	ck_assert_double_gt((double)stats.used_ns,
			    0.3 * (double)stats.potential_ns);
	bench_close(&b);
}
END_TEST

#define CLIENTS 6u

/* The same from several clients; the requests of each are counted. */
static double run_clients(struct bench *b, unsigned n)
{
	struct load load[CLIENTS];
	uint64_t spent_ns = 0;
	unsigned i;

	for (i = 0; i < CLIENTS; i++) {
		load[i] = (struct load){ .b = b, .left = n };
		load[i].iov.iov_len = UNIT * SECTOR_BYTES;
		load[i].iov.iov_base =
			aligned_alloc(4096, load[i].iov.iov_len);
		load_ask(&load[i]);
	}
	for (i = 0; i < CLIENTS; i++) {
		while (!load[i].over)
			ck_assert_int_ge(queue_poll(b->queue, -1), 0);
		spent_ns += load[i].spent_ns;
		free(load[i].iov.iov_base);
	}
	return (double)spent_ns / n / CLIENTS;
}

/*
 * What goes on where the last access ends comes too late for that when the host
 * is late, and costs a turn, on a drive without a cache.  That is seldom tried,
 * and gaps that are missed are few.
 */
START_TEST(late_host_behind_others)
{
	double mean_ns[2] = { 0, 0 };
	struct freeblock_stats stats;
	struct bench b;
	int i;

	bench_open_host(&b, false, -1, 100000);
	b.reads = true;
	bench_task(&b, true);
	for (i = 0; i < 2 * TURNS + 2; i++) {
		freeblock_pause(b.task, !(i % 2));
		b.seed = 100 + (uint64_t)i / 2;
		memset(b.had, 0, b.sectors);
		freeblock_want(b.task, 0, all_of(&b));
		mean_ns[i % 2] += (i > 1) * run_clients(&b, 150) / TURNS;
	}
	freeblock_get_stats(b.queue, NULL, &stats);
	printf("%u clients: %.3f ms alone, %.3f with a task; of %u gaps %u "
	       "were missed\n", CLIENTS, mean_ns[0] / 1e6, mean_ns[1] / 1e6,
	       (unsigned)stats.gaps_used, (unsigned)stats.delays);
	ck_assert_double_lt(mean_ns[1], 1.01 * mean_ns[0]);
	ck_assert_uint_gt(stats.gaps_used, 1000);
	ck_assert_uint_lt(stats.delays, stats.gaps_used / 50);
	bench_close(&b);
}
END_TEST

/* ---- idle time and parts ---- */

/* Lets so much time pass, polling as the queue asks. */
static void run_idle(struct bench *b, uint64_t ns)
{
	uint64_t end_ns = sim_now_ns(b->sim) + ns, now_ns, next_ns;

	while ((now_ns = sim_now_ns(b->sim)) < end_ns) {
		next_ns = queue_next_ns(b->queue);
		if (next_ns > end_ns)
			next_ns = end_ns;
		ck_assert_int_ge(queue_poll_ns(b->queue, next_ns > now_ns ?
				(int64_t)(next_ns - now_ns) : 0), 0);
		if (sim_now_ns(b->sim) == now_ns)
			sim_advance(b->sim, 1000);
	}
}

START_TEST(in_idle_time_all_is_read)
{
	struct freeblock_stats stats;
	struct bench b;

	bench_open(&b, _i);
	bench_task(&b, false);
	freeblock_want(b.task, 0, all_of(&b));
	run_load(&b, 20);
	freeblock_get_stats(b.queue, NULL, &stats);
	ck_assert_uint_eq(stats.idle_sectors, 0);
	run_idle(&b, 90000000);
	freeblock_get_stats(b.queue, NULL, &stats);
	ck_assert_uint_eq(stats.idle_sectors, 0);
	freeblock_set_quiet(b.queue, 200000000);
	run_idle(&b, 90000000);
	freeblock_get_stats(b.queue, NULL, &stats);
	ck_assert_uint_eq(stats.idle_sectors, 0);
	freeblock_set_quiet(b.queue, 100000000);
	run_idle(&b, 150000000);
	freeblock_get_stats(b.queue, NULL, &stats);
	ck_assert_uint_gt(stats.idle_sectors, 0);
	/* Somebody who thinks for 50 ms is not disturbed. */
	for (int i = 0; i < 5; i++) {
		run_load(&b, 1);
		freeblock_get_stats(b.queue, NULL, &stats);
		run_idle(&b, 50000000);
	}
	run_load(&b, 1);
	freeblock_get_stats(b.queue, NULL, &stats);
	b.got = stats.idle_sectors;
	run_idle(&b, 400000000);
	freeblock_get_stats(b.queue, NULL, &stats);
	ck_assert_uint_eq(stats.idle_sectors, b.got);
	freeblock_pause(b.task, true);
	run_idle(&b, 1000000000);
	freeblock_get_stats(b.queue, NULL, &stats);
	ck_assert_uint_eq(stats.idle_sectors, b.got);
	freeblock_pause(b.task, false);
	run_idle(&b, UINT64_C(10000000000));
	ck_assert_uint_eq(freeblock_wanted(b.task), 0);
	ck_assert(!b.wrong);
	bench_close(&b);
}
END_TEST

/* Idle time goes on behind a request of the owner's own, and comes again soon
 * behind one that came after a pause of seconds. */
START_TEST(idle_time_behind_lone_requests)
{
	struct freeblock_stats stats;
	uint64_t before;
	struct bench b;

	bench_open(&b, 0);
	bench_task(&b, false);
	run_load(&b, 1);
	run_idle(&b, 200000000);
	freeblock_want(b.task, 0, all_of(&b));
	queue_set_own(b.queue, true);
	run_load(&b, 1);
	run_idle(&b, 20000000);
	freeblock_get_stats(b.queue, NULL, &stats);
	ck_assert_uint_gt(stats.idle_sectors, 0);
	queue_set_own(b.queue, false);
	freeblock_pause(b.task, true);
	run_idle(&b, UINT64_C(3000000000));
	freeblock_get_stats(b.queue, NULL, &stats);
	before = stats.idle_sectors;
	run_load(&b, 1);
	freeblock_pause(b.task, false);
	run_idle(&b, 90000000);
	freeblock_get_stats(b.queue, NULL, &stats);
	ck_assert_uint_eq(stats.idle_sectors, before);
	run_idle(&b, 60000000);
	freeblock_get_stats(b.queue, NULL, &stats);
	ck_assert_uint_gt(stats.idle_sectors, before);
	bench_close(&b);
}
END_TEST

/* Sectors that lie elsewhere: all of the disk is read in gaps, nevertheless. */
START_TEST(remapped_sectors_are_read_in_gaps)
{
	unsigned turns = 20, runs = 0;
	uint64_t at = 0, moved;
	struct bench b;
	uint32_t n;

	bench_open_drive(&b, false, _i);
	b.reads = true;
	for (; geom_remap_next(b.geom, at, &moved, &n); at = moved + n)
		runs++;
	ck_assert_uint_gt(runs, 0);
	bench_task(&b, true);
	ck_assert_int_eq(freeblock_want(b.task, 0, all_of(&b)), 0);
	while (turns-- && freeblock_wanted(b.task))
		run_load(&b, 500);
	printf("%u runs remapped, all read in %u requests\n", runs,
	       (20 - turns) * 500);
	ck_assert_uint_eq(freeblock_wanted(b.task), 0);
	ck_assert_uint_eq(b.got, all_of(&b));
	ck_assert(!b.wrong);
	bench_close(&b);
}
END_TEST

/* Patience with a reader who may go on is no reason to ask again at once. */
START_TEST(idle_is_not_asked_all_the_time)
{
	static uint8_t buf[UNIT * 512] __attribute__((aligned(4096)));
	struct bench b;
	uint64_t at;

	bench_open(&b, false);
	b.reads = true;
	run_load(&b, 300);
	bench_task(&b, false);
	for (at = 0; at < 200 * UNIT; at += UNIT) {
		ck_assert_int_eq(queue_read(b.queue, at, UNIT, buf), 0);
		queue_poll(b.queue, 0);
		ck_assert_uint_gt(queue_next_ns(b.queue),
				  sim_now_ns(b.sim));
		sim_advance(b.sim, 200000);
	}
	bench_close(&b);
}
END_TEST

/* ---- errors, promotion, writes ---- */

START_TEST(a_bad_sector_costs_no_other)
{
	struct bench b;
	uint64_t where = 1000 * UNIT + 3;

	bench_open(&b, false);
	ck_assert_int_eq(sim_damage(b.sim, where, 1), 0);
	bench_task(&b, false);
	freeblock_want(b.task, 0, all_of(&b));
	run_idle(&b, UINT64_C(10000000000));
	ck_assert(!b.wrong);
	ck_assert_uint_eq(b.got, all_of(&b));
	ck_assert_uint_eq(b.bad, 1);
	ck_assert_uint_eq(b.had[where], 1);
	bench_close(&b);
}
END_TEST

/* Idle time ends after a while, until somebody asks for something. */
START_TEST(a_sleeping_disk_is_left_alone)
{
	struct bench b;
	uint64_t got;

	bench_open(&b, false);
	bench_task(&b, false);
	freeblock_set_sleep(b.queue, 500000000);
	freeblock_want(b.task, 0, all_of(&b));
	run_load(&b, 1);
	run_idle(&b, UINT64_C(1000000000));
	got = b.got;
	ck_assert_uint_gt(got, 0);
	ck_assert_uint_lt(got, all_of(&b));
	run_idle(&b, UINT64_C(10000000000));
	ck_assert_uint_eq(b.got, got);
	/* Until the long gap before is forgotten. */
	for (int i = 0; i < 100; i++) {
		run_load(&b, 1);
		run_idle(&b, 1000000);
	}
	got = b.got;
	run_idle(&b, UINT64_C(1000000000));
	ck_assert_uint_gt(b.got, got);
	bench_close(&b);
}
END_TEST

#define CUT (6 * UNIT)
#define CUT_BAD 5003u

static void cut_done(struct disk_request *disk)
{
	*(bool *)disk->owner = true;
}

/* Reads or writes what is larger than a unit, alone; the result. */
static int cut_do(struct bench *b, enum disk_op op, uint64_t at, void *buf)
{
	bool over = false;
	struct iovec iov[2] = {
		{ buf, UNIT * SECTOR_BYTES },
		{ (char *)buf + UNIT * SECTOR_BYTES,
		  (CUT - UNIT) * SECTOR_BYTES },
	};
	struct queue_request req = {
		.disk = { .op = op, .sector = at, .sectors = CUT, .iov = iov,
			  .iov_n = 2, .done = cut_done, .owner = &over },
		.class = QUEUE_COMMIT,
	};

	queue_submit(b->queue, &req);
	while (!over)
		ck_assert_int_ge(queue_poll(b->queue, -1), 0);
	return req.disk.result;
}

/* Requests that go in two parts, with a gap between them, are as whole as
 * others, and fail as a whole. */
START_TEST(cut_by_a_gap)
{
	static uint64_t buf[CUT * 64] __attribute__((aligned(4096)));
	uint64_t *is, at, i, n, failed = 0;
	struct bench b;
	int rc;

	bench_open(&b, false);
	is = calloc(b.sectors, sizeof(*is));
	b.reads = true;
	run_load(&b, 300);
	ck_assert_int_eq(sim_damage(b.sim, CUT_BAD, 1), 0);
	bench_task(&b, true);
	freeblock_want(b.task, 20000, (b.sectors - 20000) / UNIT * UNIT);
	for (n = 1; n <= 1500; n++) {
		at = test_random(&b.seed) % 3 ?
			     6000 + test_random(&b.seed) % 14000 :
			     4900 + test_random(&b.seed) % 200;
		if (at > 5051 && n % 2) {
			for (i = 0; i < CUT; i++)
				buf[i * 64] = is[at + i] = n << 32 | i;
			ck_assert_int_eq(cut_do(&b, DISK_WRITE, at, buf), 0);
			continue;
		}
		rc = cut_do(&b, DISK_READ, at, buf);
		ck_assert_int_eq(rc, at <= CUT_BAD && CUT_BAD < at + CUT ?
					     -EIO : 0);
		failed += rc != 0;
		for (i = 0; !rc && i < CUT; i++)
			ck_assert(!is[at + i] || buf[i * 64] == is[at + i]);
	}
	ck_assert_uint_gt(failed, 10);
	ck_assert_uint_gt(queue_stats(b.queue)->gaps_inside, 50);
	free(is);
	bench_close(&b);
}
END_TEST

START_TEST(promoted_sectors_are_read_like_requests)
{
	struct freeblock_stats stats;
	struct bench b;

	bench_open(&b, _i);
	bench_task(&b, true);
	freeblock_want(b.task, 0, 100 * 120 / UNIT * UNIT);
	freeblock_unwant(b.task, 800, 800);
	freeblock_promote(b.task, 2);
	run_load(&b, 400);
	ck_assert_uint_eq(freeblock_wanted(b.task), 0);
	ck_assert_uint_eq(b.got, 100 * 120 - 800);
	ck_assert_uint_eq(b.had[800], 0);
	ck_assert_uint_eq(b.had[1600], 1);
	ck_assert(!b.wrong);
	freeblock_get_stats(b.queue, b.task, &stats);
	ck_assert_uint_eq(stats.sectors, b.got);
	bench_close(&b);
}
END_TEST

struct spot {
	struct queue_place place;
	uint64_t sector;
	unsigned taken;
};

static int spot_find(struct queue_place *place,
		     const struct head_state *head_state, uint32_t sectors,
		     uint64_t *sector, uint64_t *cost_ns)
{
	const struct spot *spot = container_of(place, struct spot, place);

	(void)head_state;
	(void)sectors;
	*sector = spot->sector;
	*cost_ns = 0;
	return 0;
}

static void spot_take(struct queue_place *place, struct queue_request *req,
		      uint64_t sector)
{
	struct spot *spot = container_of(place, struct spot, place);

	ck_assert_uint_eq(req->disk.sector, sector);
	spot->taken++;
}

/* Writes go in gaps and in idle time; what has not begun is cancelled. */
START_TEST(writes_go_in_gaps_and_idle_time)
{
	struct queue_request req[3] = { 0 };
	struct spot spot = { { .find = spot_find, .take = spot_take },
			     5000 * UNIT, 0 };
	uint64_t *data = aligned_alloc(4096, 4096), *seen;
	struct iovec iov = { data, 4096 };
	struct bench b;

	bench_open(&b, false);
	bench_task(&b, _i);
	seen = aligned_alloc(4096, 4096);
	memset(data, 0x5a, 4096);
	for (int i = 0; i < 3; i++)
		req[i].disk = (struct disk_request){
			.op = DISK_WRITE, .sector = (1000 + i * 1000) * UNIT +
				UNIT, .sectors = UNIT,
			.iov = &iov, .iov_n = 1 };
	req[1].place = &spot.place;
	freeblock_write(b.task, &req[0]);
	freeblock_write(b.task, &req[1]);
	if (_i)
		run_load(&b, 1500);
	else
		run_idle(&b, 300000000);
	ck_assert_uint_eq(b.written, 2);
	ck_assert_uint_eq(spot.taken, 1);
	ck_assert_int_eq(queue_read(b.queue, 1000 * UNIT + UNIT, UNIT, seen),
			 0);
	if (!_i)
		ck_assert_int_eq(memcmp(seen, data, 4096), 0);
	ck_assert(!b.wrong);
	freeblock_pause(b.task, true);
	freeblock_write(b.task, &req[2]);
	freeblock_close(b.task);
	b.task = NULL;
	ck_assert_uint_eq(b.written, 3);
	ck_assert_int_eq(req[2].disk.result, -ECANCELED);
	free(data);
	free(seen);
	bench_close(&b);
}
END_TEST

/* Of many writes those by the way of the foreground go first, and cost it
 * nothing; what is taken back is not written. */
#define MANY 400u

START_TEST(writes_by_the_way_go_first)
{
	struct queue_request *req = calloc(MANY, sizeof(*req));
	uint64_t *data = aligned_alloc(4096, 4096);
	double alone;
	struct iovec iov = { data, 4096 };
	unsigned cancelled = 0;
	struct bench b;

	bench_open(&b, false);
	run_load(&b, 400);
	alone = run_load(&b, 400);
	bench_task(&b, true);
	memset(data, 0x5a, 4096);
	for (unsigned i = 0; i < MANY; i++) {
		req[i].disk = (struct disk_request){
			.op = DISK_WRITE, .sectors = UNIT, .iov = &iov,
			/* Not where a track ends. */
			.sector = (all_of(&b) / UNIT / MANY * i + 1 + i % 12) *
				  UNIT,
			.iov_n = 1 };
		freeblock_write(b.task, &req[i]);
	}
	ck_assert_double_le(run_load(&b, 400), alone * 1.03);
	ck_assert_uint_ge(b.written, 100);
	for (unsigned i = 0; i < MANY; i++)
		cancelled += freeblock_write_cancel(b.task, &req[i]);
	ck_assert_uint_eq(b.written + cancelled, MANY);
	ck_assert(!b.wrong);
	freeblock_close(b.task);
	b.task = NULL;
	ck_assert_uint_eq(b.written + cancelled, MANY);
	free(req);
	free(data);
	bench_close(&b);
}
END_TEST

/* One that finds somebody at its place waits again, unless it was asked for
 * meanwhile. */
START_TEST(a_write_to_a_busy_place_waits_again)
{
	struct queue_request req = { .disk = { .op = DISK_WRITE,
					       .sector = 1000 * UNIT,
					       .sectors = UNIT } };
	struct bench b;

	bench_open(&b, false);
	bench_task(&b, true);
	freeblock_write(b.task, &req);
	for (unsigned asked = 0; asked < 2; asked++) {
		ck_assert(req.gap_waits);
		task_get(b.task);
		task_leave_write(b.task, &req);
		if (asked)
			ck_assert(!freeblock_write_cancel(b.task, &req));
		req.disk.result = -EBUSY;
		freeblock_write_done(&req.disk);
		ck_assert_uint_eq(b.written, asked);
	}
	ck_assert(!req.gap_waits);
	ck_assert(!task_writes(b.task));
	b.wrong = false;
	freeblock_close(b.task);
	b.task = NULL;
	ck_assert_uint_eq(b.written, 1);
	bench_close(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("freeblock");
	TCase *tcase = tcase_create("freeblock");

	tcase_add_test(tcase, gaps_are_free);
	tcase_add_loop_test(tcase, long_reads_show_that_the_drive_goes_on, 0,
			    2);
	tcase_add_loop_test(tcase, gaps_are_free_where_the_drive_goes_on, 0,
			    2);
	tcase_add_test(tcase,
		       a_stream_that_the_drive_reads_ahead_has_no_gaps);
	tcase_add_loop_test(tcase, what_is_counted_is_what_the_head_did, 0, 4);
	tcase_add_loop_test(tcase, a_late_host_delays_nobody, 1, 3);
	tcase_add_test(tcase, late_host_behind_others);
	tcase_add_loop_test(tcase, in_idle_time_all_is_read, 0, 2);
	tcase_add_test(tcase, idle_time_behind_lone_requests);
	tcase_add_loop_test(tcase, remapped_sectors_are_read_in_gaps, 3, 5);
	tcase_add_test(tcase, idle_is_not_asked_all_the_time);
	tcase_add_test(tcase, a_sleeping_disk_is_left_alone);
	tcase_add_test(tcase, a_bad_sector_costs_no_other);
	tcase_add_test(tcase, writes_by_the_way_go_first);
	tcase_add_test(tcase, cut_by_a_gap);
	tcase_add_loop_test(tcase, promoted_sectors_are_read_like_requests, 0,
			    2);
	tcase_add_loop_test(tcase, writes_go_in_gaps_and_idle_time, 0, 2);
	tcase_add_test(tcase, a_write_to_a_busy_place_waits_again);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}

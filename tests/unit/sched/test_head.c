/*
 * test_head.c - what is believed of the head, over simulated drives in virtual
 * time: found out from ordinary reads, given up when it is wrong.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "bench/rig.h"
#include "diskmodel/profile.h"
#include "extract/drive/fit.h"
#include "extract/probe/prober_disk.h"
#include "fs/fs.h"
#include "fs/mkfs.h"
#include "sched/freeblock/freeblock.h"
#include "sched/head/remap_detect.h"
#include "sched/queue/range_write.h"
#include "tests/rig/test.h"

typedef void (*doubt_fn)(struct spec *is, struct spec *model, void *arg);

/* Reads that are under way when the power goes. */
#define CUT_READS 3u

static struct rig rig;

static const char *drive_path(const char *name)
{
	static char path[4096];
	const char *top = getenv("top_srcdir");

	if (!strncmp(name, "random:", 7))
		return name;
	snprintf(path, sizeof(path), "%s/drives/%s.json", top ? top : ".",
		 name);
	return path;
}

static void open_rig(const struct rig_options *with, const char *drive)
{
	struct rig_options options = *with;

	options.drive = drive_path(drive);
	options.seed = 7;
	ck_assert_int_eq(rig_open(&options, &rig), 0);
}

static struct rig_result run(unsigned clients, uint32_t sectors,
			     unsigned read_percent, uint64_t requests)
{
	struct rig_load load = {
		.clients = clients,
		.sectors = sectors,
		.read_percent = read_percent,
		.requests = requests,
		.seed = 3,
	};
	struct rig_result result;

	ck_assert_int_eq(rig_run(&rig, &load, &result), 0);
	return result;
}

static struct head_stats stats(void)
{
	struct head_stats s;

	head_get_stats(rig.head, &s);
	return s;
}

/* Time with the head over time without, for the same load. */
static double compare(struct rig_options options, const char *drive,
		      unsigned clients, unsigned read_percent,
		      uint64_t requests)
{
	struct rig_result with, without;

	options.blind = true;
	open_rig(&options, drive);
	without = run(clients, 8, read_percent, requests);
	rig_close(&rig);
	options.blind = false;
	open_rig(&options, drive);
	with = run(clients, 8, read_percent, requests);
	return (double)with.ns / (double)without.ns;
}

/* ---- gaps behind writes that the drive's cache takes ---- */

static void with_large_write_cache(struct spec *is, struct spec *model,
				   void *arg)
{
	(void)model;
	(void)arg;
	is->write_cache_lbns = 1u << 20;
}

static void gap_got(void *arg, uint64_t sector, uint32_t sectors,
		    const void *bytes, int result)
{
	(void)sector;
	(void)bytes;
	ck_assert_int_eq(result, 0);
	*(uint64_t *)arg += sectors;
}

/* The mean response of so many clients, a third of whose requests are writes;
 * *got: what a task gets meanwhile, NULL: there is none. */
static double respond(unsigned clients, uint64_t *got)
{
	static const struct freeblock_ops ops = { .got = gap_got };
	const struct freeblock_options options = {
		.name = "test", .no_idle = true,
	};
	struct rig_options with = { .doubt = with_large_write_cache,
				    .volatile_cache = true };
	struct freeblock_task *task;
	struct rig_result result;

	open_rig(&with, "wd800");
	if (got) {
		*got = 0;
		ck_assert_int_eq(freeblock_open(rig.queue, &options, &ops, got,
						&task), 0);
		ck_assert_int_eq(freeblock_want(task, 0, rig_sectors(&rig) /
						8 * 8), 0);
	}
	run(clients, 8, 67, 600);
	result = run(clients, 8, 67, 4000);
	if (got)
		freeblock_close(task);
	rig_close(&rig);
	return result.mean_ns;
}

/* The drive writes the content of its cache when it has no command.  So between
 * commands gaps hold, which is found out though writes never end; after a pause
 * they do not. */
START_TEST(gaps_hold_while_the_drive_has_commands)
{
	const unsigned clients = _i ? 8 : 1;
	double alone, with;
	uint64_t got;

	alone = respond(clients, NULL);
	with = respond(clients, &got);
	printf("%u clients: %.3f ms alone, %.3f ms with a task that got %lu "
	       "sectors\n", clients, alone / 1e6, with / 1e6, (long)got);
	ck_assert_double_lt(with, alone * 1.01);
	if (clients > 1)
		ck_assert_uint_gt(got, 100000);
}
END_TEST

/* ---- finding it out ---- */

/* How far what is believed is from what is, in revolutions. */
static double phase_error(void)
{
	struct head_state head_state;
	angle is, model;

	head_get_state(rig.head, &head_state);
	is = service_angle(drive_mech(sim_drive(rig.sim)), head_state.now_ns);
	model = service_angle(head_state.mech, head_state.now_ns);
	return fabs((double)(int32_t)(is - model)) / 4294967296;
}

START_TEST(ordinary_reads_tell_the_phase)
{
	struct head_stats s;

	open_rig(&(struct rig_options){ 0 }, "modern");
	ck_assert(!stats().read.on);
	run(1, 8, 67, 300);
	s = stats();
	ck_assert(s.read.on && s.write.on);
	ck_assert_uint_eq(s.mode, HEAD_ON);
	ck_assert_uint_eq(s.read.wrong + s.write.wrong, 0);
	ck_assert_uint_eq(s.references, 0);
	ck_assert(fabs((double)s.period_ps -
		       (double)rig.spec->mech.period_ps) <
		  2e-6 * (double)s.period_ps);
	ck_assert(phase_error() < 0.002);
	rig_close(&rig);
}
END_TEST

static void noise_of_host(struct spec *is, struct spec *model, void *arg)
{
	(void)model;
	(void)arg;
	is->noise = (struct spec_noise){
		.normal_ns = 8000,
		.exponential_ns = 20000,
		.late = 0.03,
		.late_min_ns = 100000,
		.late_max_ns = 3000000,
	};
}

static const struct service_mech *rig_learned(void)
{
	struct head_state head_state;

	head_get_state(rig.head, &head_state);
	return head_state.mech;
}

/* What a host is late by is no longer seek: the choice among requests would be
 * another one. */
START_TEST(a_late_host_makes_no_seek_longer)
{
	struct rig_options options = { .host_ns = 150000 };
	const struct service_mech *is, *learned;
	double off_ns = 0;
	uint32_t i;

	open_rig(&options, _i ? "wd800" : "modern");
	run(4, 8, 100, 6000);
	is = drive_mech(sim_drive(rig.sim));
	learned = rig_learned();
	for (i = 0; i < is->seek_n; i++)
		off_ns += ((double)learned->seek[i].ns -
			   (double)is->seek[i].ns) / is->seek_n;
	printf("seeks are %.3f ms too long\n", off_ns / 1e6);
	ck_assert(fabs(off_ns) < 25000);
	rig_close(&rig);
}
END_TEST

START_TEST(noise_is_borne)
{
	struct rig_options options = { .doubt = noise_of_host };
	struct head_stats s;

	ck_assert(compare(options, "wd800", 16, 67, 2000) < 0.9);
	s = stats();
	ck_assert(s.read.on && s.write.on);
	ck_assert_uint_gt(s.outliers, 0);
	ck_assert_uint_le(s.read.switched, 1);
	rig_close(&rig);
}
END_TEST

/* Nobody reads: the phase comes from reads made for it, and they are few, and
 * then from the writes. */
START_TEST(writes_alone_need_few_reads)
{
	struct rig_result r;
	struct head_stats s;
	uint64_t saved;

	open_rig(&(struct rig_options){ 0 }, "wd800");
	r = run(8, 8, 0, 4000);
	s = stats();
	ck_assert(s.read.on && s.write.on);
	saved = 60 + r.ns / 10000000000 + 1;
	ck_assert_uint_le(s.references, saved);
	ck_assert_uint_gt(s.references, 0);
	sim_advance(rig.sim, UINT64_C(3000000000));
	run(8, 8, 0, 20);
	ck_assert(phase_error() < 0.002);
	rig_close(&rig);
}
END_TEST

/* Reads behind a late host say little of the phase: where it is known better
 * than that, none are made for it. */
START_TEST(noise_needs_no_more_references)
{
	struct rig_options options = { .host_ns = 200000 };

	open_rig(&options, "modern");
	run(1, 8, 100, 64);
	sim_advance(rig.sim, UINT64_C(500000000));
	run(1, 8, 0, 500);
	ck_assert_uint_le(stats().references, 15);
	rig_close(&rig);
}
END_TEST

/* What a mount reads to see whether the profile fits, behind a host that
 * delays, is enough to know where the head is, also for writes. */
START_TEST(reads_of_a_mount_tell_the_phase)
{
	struct rig_options options = { .doubt = noise_of_host };
	struct head_past_read past_reads[FIT_READS];
	struct prober *prober;
	struct profile *profile;
	struct head_stats s;
	struct drive_fit fit;

	open_rig(&options, "modern");
	ck_assert_int_eq(profile_from_spec(rig.model, &profile), 0);
	prober = prober_disk_new(rig.env, rig.disk, false, NULL);
	ck_assert_int_eq(fit_check(prober, profile, 5, &fit), 0);
	for (unsigned i = 0; i < fit.reads; i++)
		past_reads[i] = (struct head_past_read){
			fit.read[i].sector, fit.read[i].sectors,
			fit.read[i].submit_ns, fit.read[i].complete_ns,
		};
	head_learn_reads(rig.head, past_reads, fit.reads);
	s = stats();
	ck_assert_uint_eq(s.mode, HEAD_ON);
	ck_assert(s.read.on && s.write.on);
	run(1, 8, 0, 100);
	ck_assert(stats().write.on);
	ck_assert_uint_lt(stats().write.wrong, 6);
	prober_disk_free(prober);
	profile_free(profile);
	rig_close(&rig);
}
END_TEST

static void seeks_off(struct spec *is, struct spec *model, void *arg)
{
	uint32_t i;

	(void)is;
	(void)arg;
	for (i = 0; i < model->mech.seek_n; i++)
		model->mech.seek[i].ns -= model->mech.seek[i].ns / 20;
	model->read_overhead_ns = model->write_overhead_ns = 50000;
}

/* Seeks believed to be 5 % shorter than they are, overheads a third. */
START_TEST(seeks_are_learned)
{
	struct rig_options options = { .doubt = seeks_off };
	struct head_stats before, after;

	ck_assert(compare(options, "wd800", 8, 67, 3000) < 0.95);
	before = stats();
	ck_assert(before.read.on);
	run(8, 8, 67, 2000);
	after = stats();
	/* Once learned, it misses rarely. */
	ck_assert_uint_lt((after.read.misses - before.read.misses) * 50,
			  after.read.predictions - before.read.predictions);
	rig_close(&rig);
}
END_TEST

/* ---- where there is nothing to know ---- */

START_TEST(without_rotation_there_is_no_head)
{
	struct rig_options options = { .flat = true, .depth = 32 };

	ck_assert(compare(options, "modern", 32, 67, 20000) < 1.03);
	ck_assert_uint_eq(stats().mode, HEAD_OFF);
	ck_assert(!stats().read.on && !stats().write.on);
	rig_close(&rig);
}
END_TEST

static void with_write_cache(struct spec *is, struct spec *model, void *arg)
{
	(void)model;
	(void)arg;
	is->write_cache_lbns = 8192;
}

/* A write cache says nothing of the head. */
START_TEST(a_write_cache_tells_nothing_of_the_head)
{
	struct rig_options options = { .doubt = with_write_cache };

	ck_assert(compare(options, "wd800", 8, 67, 2000) < 1.05);
	ck_assert(!stats().write.on);
	rig_close(&rig);
}
END_TEST

/* While the drive writes what its cache has taken it is elsewhere when a read
 * comes; that says nothing of what is believed. */
START_TEST(writes_in_the_cache_spoil_no_reads)
{
	struct rig_options options = { .doubt = with_write_cache,
				       .volatile_cache = true };
	struct head_stats before, after;

	open_rig(&options, "wd800");
	run(4, 8, 100, 300);
	before = stats();
	ck_assert(before.read.on);
	run(1, 8, 67, 600);
	run(4, 8, 100, 400);
	after = stats();
	ck_assert(after.read.on);
	ck_assert_uint_eq(after.read.switched, before.read.switched);
	ck_assert_uint_lt((after.read.wrong - before.read.wrong) * 20,
			  after.read.predictions - before.read.predictions);
	rig_close(&rig);
}
END_TEST

/* A commit that may go anywhere on some tracks, and by turns something that the
 * cache takes, far away. */
struct turns {
	struct range_set set;
	struct queue_place place;
	unsigned n;
};

static bool any_next(const struct range_set *set, uint64_t from, uint64_t end,
		     uint32_t sectors, uint64_t *place)
{
	(void)set;
	*place = (from + 7) / 8 * 8;
	return *place + sectors <= end;
}

static int any_find(struct queue_place *place,
		    const struct head_state *head_state, uint32_t sectors,
		    uint64_t *sector, uint64_t *cost_ns)
{
	const struct turns *turns = container_of(place, struct turns, place);
	const struct range within = { 0, 4000 };
	const struct range_query query = {
		.set = &turns->set, .within = &within, .within_n = 1,
		.sectors = sectors,
	};
	struct range_answer answer = { 0 };
	int rc = head_state ? range_find(head_state, &query, &answer) : 0;

	*sector = answer.sector;
	*cost_ns = answer.cost_ns;
	return rc;
}

static void any_take(struct queue_place *place, struct queue_request *req,
		     uint64_t sector)
{
	(void)place;
	(void)req;
	(void)sector;
}

static void here_and_there(void *arg, unsigned client,
			   struct queue_request *req)
{
	struct turns *turns = arg;
	bool here = turns->n++ % 2;

	(void)client;
	req->class = here ? QUEUE_COMMIT : QUEUE_WRITE_BACK;
	req->place = here ? &turns->place : NULL;
	req->disk.op = DISK_WRITE;
	req->disk.fua = here;
	req->disk.sector = 100000 + turns->n * 7919 % 10000 * 8;
}

/* The drive writes that when it has nothing else to do, and so the head is
 * there when the next commit comes.  A cache says nothing of commits: they go
 * to the medium, and their places are chosen. */
START_TEST(a_cached_write_takes_the_head_along)
{
	struct rig_options options = { .doubt = with_write_cache,
				       .volatile_cache = true };
	struct turns turns = {
		.set = { any_next },
		.place = { .find = any_find, .take = any_take },
	};
	const struct rig_load load = {
		.clients = 1, .think_ns = 50000000, .sectors = 8,
		.requests = 400, .seed = 3, .prepare = here_and_there,
		.arg = &turns,
	};
	struct rig_result result;

	open_rig(&options, "wd800");
	run(4, 8, 100, 300);
	ck_assert_int_eq(rig_run(&rig, &load, &result), 0);
	ck_assert(result.mean_ns < 2.5e6);
	rig_close(&rig);
}
END_TEST

/* ---- beliefs that are off ---- */

static void skew_by_a_sector(struct spec *is, struct spec *model, void *arg)
{
	size_t i;

	(void)is;
	(void)arg;
	for (i = 0; i < model->zones_n; i++)
		model->zones[i].track_skew +=
			(angle)(UINT64_C(0x100000000) /
				model->zones[i].around[0]);
}

static void bound_by_a_cylinder(struct spec *is, struct spec *model, void *arg)
{
	size_t i;

	(void)is;
	(void)arg;
	for (i = 0; i + 1 < model->zones_n; i++) {
		model->zones[i].last_cylinder++;
		model->zones[i + 1].first_cylinder++;
	}
}

static void spindle_fast(struct spec *is, struct spec *model, void *arg)
{
	(void)model;
	(void)arg;
	is->mech.period_ps -= is->mech.period_ps * 3 / 1000;
}

/* A defect at the front of each zone that nobody wrote down. */
static void slip_unlisted(struct spec *is, struct spec *model, void *arg)
{
	struct spec_list *slips;
	size_t i;

	(void)model;
	(void)arg;
	for (i = 0; i < is->zones_n; i++) {
		slips = &is->zones[i].slips;
		slips->v = realloc(slips->v,
				   (slips->n + 1) * sizeof(*slips->v));
		ck_assert_ptr_nonnull(slips->v);
		memmove(slips->v + 1, slips->v, slips->n * sizeof(*slips->v));
		slips->v[0] = 100;
		slips->n++;
	}
}

static const struct {
	doubt_fn doubt;
	bool useless;		/* no prediction can be good */
} doubts[] = {
	{ skew_by_a_sector, true },
	{ bound_by_a_cylinder, true },
	{ spindle_fast, false },
	{ slip_unlisted, false },
};
#define DOUBTS (sizeof(doubts) / sizeof(doubts[0]))

START_TEST(wrong_models_cost_little)
{
	static const char *const drives[] = {
		"atlas-10k", "modern", "ultrastar-18es"
	};
	struct rig_options options = { .doubt = doubts[_i % DOUBTS].doubt };
	const char *drive = drives[(size_t)_i / DOUBTS];
	unsigned clients;

	for (clients = 1; clients <= 16; clients *= 4) {
		ck_assert(compare(options, drive, clients, 67, 1200) < 1.05);
		ck_assert(!doubts[_i % DOUBTS].useless || !stats().read.on);
		rig_close(&rig);
	}
}
END_TEST

/* Good until then; from one moment to the next seeks take what they like. */
START_TEST(prediction_ends_within_200_requests)
{
	open_rig(&(struct rig_options){ 0 }, "wd800");
	run(4, 8, 67, 500);
	ck_assert(stats().read.on && stats().write.on);
	rig.spec->seek_jitter_ns = rig.spec->mech.period_ps / 1000;
	run(4, 8, 67, 200);
	ck_assert(!stats().read.on);
	rig_close(&rig);
}
END_TEST

/* ---- data ---- */

#define BLOCK 8u
#define BATCH 12u

struct slot {
	struct queue_request req;
	struct iovec iov;
	uint64_t *data;
};

static void slot_done(struct disk_request *disk)
{
	ck_assert_int_eq(disk->result, 0);
}

static void slot_submit_class(struct slot *slot, enum disk_op op,
			      uint64_t sector, uint32_t sectors,
			      enum queue_class class)
{
	slot->iov = (struct iovec){ slot->data, sectors * SECTOR_BYTES };
	slot->req = (struct queue_request){
		.disk = {
			.op = op,
			.sector = sector,
			.sectors = sectors,
			.iov = &slot->iov,
			.iov_n = 1,
			.done = slot_done,
		},
		.class = class,
	};
	queue_submit(rig.queue, &slot->req);
}

static void slot_submit(struct slot *slot, enum disk_op op, uint64_t sector,
			uint32_t sectors)
{
	slot_submit_class(slot, op, sector, sectors, QUEUE_READ);
}

/* Each sector begins with its number and the round in which it was written. */
static void slot_fill(struct slot *slot, uint64_t sector, uint32_t sectors,
		      uint64_t round)
{
	uint32_t i;

	for (i = 0; i < sectors; i++) {
		slot->data[i * 64] = sector + i;
		slot->data[i * 64 + 1] = round;
	}
}

/* Whole tracks and small pieces, written and read back, with a wrong model on
 * a drive whose tracks are begun in the middle. */
START_TEST(data_stay_right_with_a_wrong_model)
{
	struct rig_options options = { .doubt = spindle_fast };
	struct slot slots[BATCH] = { 0 };
	struct geom_track track;
	unsigned round, i;
	uint32_t j;

	open_rig(&options, "ultrastar-18es");
	run(2, 8, 67, 200);
	for (i = 0; i < BATCH; i++)
		slots[i].data = aligned_alloc(4096, 1 << 20);
	for (round = 0; round < 60; round++) {
		for (i = 0; i < BATCH; i++) {
			geom_track_at(rig.geom, round * 50 + i * 3 % BATCH,
				      &track);
			track.sectors -= i % 4 * BLOCK;
			slot_fill(&slots[i], track.first, track.sectors,
				  round);
			slot_submit(&slots[i], DISK_WRITE, track.first,
				    track.sectors);
		}
		ck_assert_int_eq(queue_drain(rig.queue), 0);
		for (i = 0; i < BATCH; i++) {
			memset(slots[i].data, 0, 1 << 20);
			slot_submit(&slots[i], DISK_READ,
				    slots[i].req.disk.sector,
				    slots[i].req.disk.sectors);
		}
		ck_assert_int_eq(queue_drain(rig.queue), 0);
		for (i = 0; i < BATCH; i++)
			for (j = 0; j < slots[i].req.disk.sectors; j++) {
				ck_assert_uint_eq(slots[i].data[j * 64],
					slots[i].req.disk.sector + j);
				ck_assert_uint_eq(slots[i].data[j * 64 + 1],
						  round);
			}
	}
	ck_assert_uint_gt(queue_stats(rig.queue)->split, 100);
	for (i = 0; i < BATCH; i++)
		free(slots[i].data);
	rig_close(&rig);
}
END_TEST

/* ---- choice ---- */

static double rotation_percent(const char *policy, double *mean_ms)
{
	struct rig_options options = { .policy = policy, .no_cache = true };
	struct rig_result r;

	open_rig(&options, "atlas-10k");
	r = run(20, 8, 67, 3000);
	rig_close(&rig);
	*mean_ms = r.head_mean_ns / 1e6;
	return 100.0 * (double)r.times.rotation_ns / (double)r.ns;
}

/* Freeblock, section 3.3: 22 %, 36 %, 50 %; SW40% costs 6 %. */
START_TEST(sptf_sw_gives_the_published_rotation)
{
	double sptf_ms, sw_ms, sstf_ms, percent;

	percent = rotation_percent("sptf", &sptf_ms);
	ck_assert(percent > 20 && percent < 25);
	percent = rotation_percent("sptf-sw40", &sw_ms);
	ck_assert(percent > 33 && percent < 39);
	ck_assert(sw_ms < 1.1 * sptf_ms);
	percent = rotation_percent("sstf", &sstf_ms);
	ck_assert(percent > 46 && percent < 53);
	ck_assert(sstf_ms > 1.15 * sptf_ms);
}
END_TEST

struct tracks {
	uint64_t n;
	bool aligned;
};

static void next_track(void *arg, uint64_t *sector, uint32_t *sectors)
{
	struct tracks *tracks = arg;
	struct geom_track track;

	tracks->n = tracks->n * 6364136223846793005 + 1442695040888963407;
	geom_track_at(rig.geom, 1 + (tracks->n >> 33) % 1000, &track);
	*sector = track.first;
	if (!tracks->aligned)
		*sector += (tracks->n >> 20) % track.sectors;
	*sectors = track.sectors;
}

static double track_reads_ms(const char *drive, bool aligned)
{
	struct tracks tracks = { .aligned = aligned };
	struct rig_load load = {
		.clients = 2,
		.sectors = 4096,
		.read_percent = 100,
		.warmup = 200,
		.requests = 600,
		.next = next_track,
		.arg = &tracks,
	};
	struct rig_result r;

	open_rig(&(struct rig_options){ .policy = "fcfs", .no_cache = true },
		 drive);
	ck_assert_int_eq(rig_run(&rig, &load, &r), 0);
	rig_close(&rig);
	return r.head_mean_ns;
}

/* Traxtents, 5.2, tworeq: -32 % where the drive begins anywhere; as much where
 * it does not and the queue does. */
START_TEST(aligned_whole_tracks_are_faster)
{
	ck_assert(track_reads_ms("atlas-10k", true) <
		  0.70 * track_reads_ms("atlas-10k", false));
	ck_assert(track_reads_ms("ultrastar-18es", true) <
		  0.72 * track_reads_ms("ultrastar-18es", false));
}
END_TEST

static void slot_read_copies(struct slot *slot, uint64_t sector,
			     const uint64_t *copies, unsigned n)
{
	slot->iov = (struct iovec){ slot->data, BLOCK * SECTOR_BYTES };
	slot->req = (struct queue_request){
		.disk = {
			.op = DISK_READ,
			.sector = sector,
			.sectors = BLOCK,
			.iov = &slot->iov,
			.iov_n = 1,
			.done = slot_done,
		},
		.class = QUEUE_READ,
		.copies = copies,
		.copies_n = n,
	};
	queue_submit(rig.queue, &slot->req);
}

/* A read that lies in three places is served where it is reached first. */
START_TEST(the_copy_that_is_reached_first_is_read)
{
	uint64_t all, copies[QUEUE_COPIES];
	struct slot slot = { 0 };
	uint64_t begin_ns;
	unsigned i, kind;
	uint64_t took_ns[2];

	open_rig(&(struct rig_options){ 0 }, "wd800");
	run(1, 8, 100, 200);
	all = geom_sectors(rig.geom);
	slot.data = aligned_alloc(4096, 4096);
	for (kind = 0; kind < 2; kind++) {
		begin_ns = env_now_ns(rig.env);
		for (i = 0; i < 200; i++) {
			uint64_t at = i * UINT64_C(7919000008) % (all - BLOCK);

			at -= at % BLOCK;
			copies[0] = (at + all / 5 * 2) % (all - BLOCK);
			copies[0] -= copies[0] % BLOCK;
			copies[1] = (at + all / 5 * 3) % (all - BLOCK);
			copies[1] -= copies[1] % BLOCK;
			slot_read_copies(&slot, at, copies,
					 kind ? QUEUE_COPIES : 0);
			ck_assert_int_eq(queue_drain(rig.queue), 0);
		}
		took_ns[kind] = env_now_ns(rig.env) - begin_ns;
	}
	ck_assert_uint_lt(took_ns[1] * 5, took_ns[0] * 4);
	ck_assert_uint_gt(queue_stats(rig.queue)->copies, 100);
	free(slot.data);
	rig_close(&rig);
}
END_TEST

/* ---- classes ---- */

#define BULK 300u

static void bulk_submit(struct slot *slots, uint64_t all)
{
	uint64_t seed = 1;
	unsigned i;

	for (i = 0; i < BULK; i++) {
		seed = test_random(&seed);
		slots[i].data = aligned_alloc(4096, 65536);
		memset(slots[i].data, 1, 65536);
		slot_submit_class(&slots[i], DISK_WRITE,
				  seed % (all - 128) / BLOCK * BLOCK, 128,
				  QUEUE_WRITE_BACK);
	}
}

/* Commits and reads come into 300 bulky writes that wait: nobody stands behind
 * more than what the disk is doing, and the bulk gets on. */
START_TEST(bulk_writes_do_not_delay_others)
{
	const struct queue_class_stats *class;
	struct slot bulk[BULK] = { 0 }, one = { 0 };
	uint64_t all, turn_ns;
	unsigned i;

	open_rig(&(struct rig_options){ .blind = _i != 0 }, "wd800");
	run(1, 8, 67, 300);
	class = queue_stats(rig.queue)->class;
	all = geom_sectors(rig.geom);
	turn_ns = rig.spec->mech.period_ps / 1000;
	one.data = aligned_alloc(4096, 4096);
	memset(one.data, 2, 4096);
	bulk_submit(bulk, all);
	for (i = 0; i < 60; i++) {
		slot_submit_class(&one, i % 2 ? DISK_READ : DISK_WRITE,
				  i * UINT64_C(2000000) / BLOCK * BLOCK, BLOCK,
				  i % 2 ? QUEUE_READ : QUEUE_COMMIT);
		while (one.req.disk.complete_ns == 0)
			ck_assert_int_ge(queue_poll(rig.queue, -1), 0);
	}
	/* At most four accesses of a seek, a turn and a half each. */
	ck_assert_uint_lt(class[QUEUE_COMMIT].max_wait_ns,
			  (_i ? 4 : 2) * 4 * turn_ns);
	ck_assert_uint_lt(class[QUEUE_READ].max_wait_ns,
			  (_i ? 4 : 2) * 4 * turn_ns);
	ck_assert_int_eq(queue_drain(rig.queue), 0);
	ck_assert_uint_eq(class[QUEUE_WRITE_BACK].requests, BULK);
	for (i = 0; i < BULK; i++)
		free(bulk[i].data);
	free(one.data);
	rig_close(&rig);
}
END_TEST

#define LONG 8192u

/* A commit that comes while a hundred tracks are written goes before the rest
 * of them, and all of them is written. */
START_TEST(commits_go_before_long_writes)
{
	struct slot behind = { 0 }, one = { 0 };
	const struct queue_class_stats *class;
	uint64_t turn_ns, most_ns = 0, ns, i;

	open_rig(&(struct rig_options){ 0 }, "hp-c2247a");
	run(1, 8, 67, 300);
	turn_ns = rig.spec->mech.period_ps / 1000;
	one.data = aligned_alloc(4096, 4096);
	memset(one.data, 2, 4096);
	behind.data = aligned_alloc(4096, LONG * SECTOR_BYTES);
	for (i = 0; i < LONG * 64; i++)
		behind.data[i] = i;
	for (i = 0; i < 60; i++) {
		slot_submit_class(&one, DISK_WRITE, 40000 + i * 100 * BLOCK,
				  BLOCK, QUEUE_COMMIT);
		while (one.req.disk.complete_ns == 0)
			ck_assert_int_ge(queue_poll(rig.queue, -1), 0);
		ns = one.req.disk.complete_ns - one.req.disk.submit_ns;
		most_ns = ns > most_ns ? ns : most_ns;
		if (!i)
			slot_submit_class(&behind, DISK_WRITE, 0, LONG,
					  QUEUE_WRITE_BACK);
		ck_assert_int_ge(queue_poll_ns(rig.queue, 7000000), 0);
	}
	/* Seek and a turn and a half of what is being written, and its own. */
	ck_assert_uint_lt(most_ns, 5 * turn_ns);
	ck_assert_int_eq(queue_drain(rig.queue), 0);
	/* Nobody waits while it is served, however often it goes on. */
	class = &queue_stats(rig.queue)->class[QUEUE_WRITE_BACK];
	ck_assert_uint_lt(class->wait_ns, behind.req.disk.complete_ns -
						  behind.req.disk.submit_ns);
	memset(behind.data, 0, LONG * SECTOR_BYTES);
	slot_submit_class(&behind, DISK_READ, 0, LONG, QUEUE_READ);
	ck_assert_int_eq(queue_drain(rig.queue), 0);
	for (i = 0; i < LONG * 64; i++)
		ck_assert_uint_eq(behind.data[i], i);
	free(behind.data);
	free(one.data);
	rig_close(&rig);
}
END_TEST

/* ---- streams ---- */

static void next_piece(void *arg, unsigned client, struct queue_request *req)
{
	uint64_t *at = arg;

	req->disk.sector = at[client];
	at[client] += req->disk.sectors;
}

/* Two readers who read on, one piece at a time: the head stays with one for a
 * while, and neither waits long. */
START_TEST(two_readers_take_turns_and_neither_waits_long)
{
	uint64_t at[2] = { 0, UINT64_C(40000000) };
	struct rig_load load = {
		.clients = 2,
		.think_ns = 200000,
		.sectors = 128,
		.read_percent = 100,
		.requests = 1000,
		.prepare = next_piece,
		.arg = at,
	};
	struct rig_result r;

	open_rig(&(struct rig_options){ 0 }, "wd800");
	run(1, 8, 100, 200);
	ck_assert_int_eq(rig_run(&rig, &load, &r), 0);
	/* 65.5 MB; alone one reader has 53 MB/s, in turns both have 7. */
	ck_assert_uint_lt(r.ns, UINT64_C(65536000) * 1000 / 25);
	ck_assert_uint_gt(queue_stats(rig.queue)->patient, 500);
	ck_assert(stats().read.on);
	ck_assert_uint_lt(queue_stats(rig.queue)->class[QUEUE_READ].max_wait_ns,
			  100000000);
	rig_close(&rig);
}
END_TEST

/* A piece of a stream that waits for a write which ends where it does. */
START_TEST(streams_wait_for_a_write)
{
	struct slot slots[4] = { 0 };
	unsigned i;

	open_rig(&(struct rig_options){ 0 }, "wd800");
	run(1, 8, 100, 200);
	for (i = 0; i < 4; i++) {
		slots[i].data = aligned_alloc(4096, 65536);
		memset(slots[i].data, 0, 65536);
	}
	for (i = 0; i < 4; i++) {
		slot_submit(&slots[0], DISK_READ, i * 128, 128);
		ck_assert_int_eq(queue_drain(rig.queue), 0);
	}
	slot_submit(&slots[1], DISK_WRITE, 4 * 128, 128);
	slot_submit(&slots[2], DISK_READ, 4 * 128, 128);
	slot_submit(&slots[3], DISK_READ, UINT64_C(50000000), 128);
	ck_assert_int_eq(queue_drain(rig.queue), 0);
	for (i = 0; i < 4; i++)
		free(slots[i].data);
	rig_close(&rig);
}
END_TEST

/* ---- over time ---- */

START_TEST(after_a_rest_the_head_is_found_again)
{
	struct head_state head_state;
	int i;

	open_rig(&(struct rig_options){ .doubt = noise_of_host }, "wd800");
	run(4, 8, 67, 400);
	ck_assert(stats().read.on && stats().write.on);
	for (i = 0; i < 5; i++) {
		sim_advance(rig.sim, UINT64_C(1200000000000));
		head_get_state(rig.head, &head_state);
		ck_assert(!head_state.reads && !head_state.writes);
		ck_assert_uint_eq(queue_next_ns(rig.queue), UINT64_MAX);
		run(4, 8, 67, 200);
		head_get_state(rig.head, &head_state);
		ck_assert(head_state.reads && head_state.writes);
	}
	ck_assert_uint_eq(stats().read.switched, 1);
	rig_close(&rig);
}
END_TEST

/* Drives that nobody has seen, their order of tracks, skews and noise made from
 * a number. */
START_TEST(drives_from_seeds_are_followed)
{
	struct rig_options options = { 0 };
	char name[32];

	snprintf(name, sizeof(name), "random:%d", 40 + _i);
	ck_assert(compare(options, name, 16, 67, 1200) < 0.95);
	ck_assert(stats().read.on && stats().write.on);
	rig_close(&rig);
}
END_TEST

/* ---- in a file system ---- */

static bool mount_has_head(const struct profile *profile)
{
	const struct mkfs_options mkfs = { .geom = profile->geom,
					   .profile = profile };
	const struct fs_options options = { 0 };
	struct disk *disk = sim_disk(rig.sim);
	struct mkfs_plan *plan = calloc(1, sizeof(*plan));
	struct fs *fs;
	bool has;
	char *text;

	ck_assert_int_eq(mkfs_plan(rig.env, &disk->limits, &mkfs, plan), 0);
	ck_assert_int_eq(mkfs_write(rig.env, disk, &mkfs, plan), 0);
	free(plan);
	ck_assert_int_eq(fs_open(rig.env, disk, &options, &fs), 0);
	text = fs_model_json(fs);
	ck_assert_ptr_nonnull(text);
	has = strstr(text, "\"head\"") && strstr(text, "\"trial\"");
	free(text);
	ck_assert_int_eq(fs_close(fs), 0);
	return has;
}

/* A file system made with a profile opens its head from what it keeps. */
START_TEST(a_mount_opens_its_head_from_its_profile)
{
	struct profile *profile;

	open_rig(&(struct rig_options){ .blind = true }, "wd800");
	ck_assert_int_eq(profile_from_spec(rig.model, &profile), 0);
	ck_assert(mount_has_head(profile));
	profile->mech.period_ps = 0;
	ck_assert(!mount_has_head(profile));
	profile_free(profile);
	rig_close(&rig);
}
END_TEST

/* ---- a drive whose timing changes ---- */

/* What somebody does all the time. */
enum traffic { READS, WRITES, FSYNCS, MIXED, TRAFFICS };

/* One append after the other, on the medium when it is done. */
static void next_fsync(void *arg, unsigned client, struct queue_request *req)
{
	uint64_t *at = arg;

	(void)client;
	req->class = QUEUE_COMMIT;
	req->disk.op = DISK_WRITE;
	req->disk.fua = true;
	req->disk.sector = *at;
	*at = (*at + req->disk.sectors) % 80000;
}

static void work(enum traffic traffic, uint64_t requests)
{
	static const unsigned read_percent[] = { 100, 0, 0, 67 };
	uint64_t at = sim_now_ns(rig.sim) / 1000000 % 10000 * 8;
	struct rig_load load = {
		.clients = traffic == FSYNCS ? 1 : 3,
		.think_ns = 1000000,
		.sectors = 8,
		.read_percent = read_percent[traffic],
		.requests = requests,
		.seed = sim_now_ns(rig.sim),
		.prepare = traffic == FSYNCS ? next_fsync : NULL,
		.arg = &at,
	};
	struct rig_result result;

	ck_assert_int_eq(rig_run(&rig, &load, &result), 0);
	ck_assert_int_ge(queue_drain(rig.queue), 0);
}

static bool is_followed(enum traffic traffic)
{
	return stats().mode == HEAD_ON && stats().read.on &&
	       (traffic == READS || stats().write.on);
}

/* Requests until the head is followed again; how long that took. */
static double recover_s(enum traffic traffic)
{
	uint64_t from = sim_now_ns(rig.sim), ns;

	do {
		work(traffic, 20);
		ns = sim_now_ns(rig.sim) - from;
	} while (!is_followed(traffic) && ns < UINT64_C(60000000000));
	return (double)ns / 1e9;
}

static const struct change {
	uint64_t host_ns;
	uint64_t requests;	/* while it is something else */
	bool loop;		/* behind what always has a cache, it says */
} changes[] = {
	{ .requests = 20 },
	{ .requests = 300, .host_ns = 60000, .loop = true },
	{ .requests = 20000, .host_ns = 200000, .loop = true },
	{ .requests = 50000, .host_ns = 60000 },
	{ .requests = 300, .host_ns = 500000, .loop = true },
	{ .requests = 20000, .host_ns = 500000, .loop = true },
};
#define CHANGES (sizeof(changes) / sizeof(changes[0]))

/* At full speed for a while, whatever is done meanwhile, then itself again,
 * twice. */
START_TEST(prediction_comes_back_after_changes_of_speed)
{
	const struct change *change = &changes[(unsigned)_i % CHANGES];
	enum traffic traffic = (enum traffic)((unsigned)_i / CHANGES);
	struct rig_options options = {
		.doubt = noise_of_host, .host_ns = change->host_ns,
		.volatile_cache = change->loop && traffic != WRITES,
	};
	double s;
	int i;

	open_rig(&options, _i % 2 ? "wd800" : "modern");
	ck_assert(recover_s(traffic) < 30);
	for (i = 0; i < 2; i++) {
		work(traffic, 600);
		ck_assert_int_eq(sim_set_flat(rig.sim, true), 0);
		work(traffic, change->requests);
		ck_assert_int_eq(sim_set_flat(rig.sim, false), 0);
		s = recover_s(traffic);
		ck_assert_msg(s < 30, "traffic %d: %.1f s", traffic, s);
	}
	work(traffic, 600);
	ck_assert(is_followed(traffic));
	rig_close(&rig);
}
END_TEST

/* ---- certificates of tracks ---- */

static double late(uint64_t *seed)
{
	double u;

	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	u = (double)(*seed >> 11) / 9007199254740992.0;
	return u < 0.03 ? u * 12 : (u - 0.5) * 0.016;
}

/* Who comes late by chance is not accused; who is elsewhere is, soon. */
START_TEST(chance_lateness_is_no_remap)
{
	struct remap_detect c = { .next = 0 };
	uint64_t seed = 5;
	unsigned i;

	for (i = 0; i < 1000000; i++)
		ck_assert(!remap_detect_see(&c, i * 7919 % 50, late(&seed)));
	for (i = 0; i < 40; i++) {
		remap_detect_see(&c, 100 + i, 0.001);
		remap_detect_see(&c, 200 + i, 0.001);
		if (remap_detect_see(&c, 77, 0.1 + late(&seed)))
			break;
	}
	ck_assert_uint_lt(i, 12);
}
END_TEST

/* ---- power cuts ---- */

static void reopen_queue(void)
{
	const struct queue_options options = { .depth = CUT_READS };

	ck_assert_int_eq(queue_open(sim_env(rig.sim), sim_disk(rig.sim),
				    &options, &rig.queue), 0);
	queue_set_head(rig.queue, rig.head);
}

/* The head outlives the queue that used the disk when it went away, and is as
 * good for the next one. */
START_TEST(a_head_outlives_the_queue_of_a_power_cut)
{
	static uint8_t buf[CUT_READS][4096] __attribute__((aligned(4096)));
	struct queue_request reqs[CUT_READS] = { 0 };
	struct iovec iov[CUT_READS];

	open_rig(&(struct rig_options){ 0 }, "modern");
	run(1, 8, 67, 300);
	queue_close(rig.queue);
	reopen_queue();
	for (unsigned i = 0; i < CUT_READS; i++) {
		iov[i] = (struct iovec){ buf[i], sizeof(buf[i]) };
		reqs[i].disk.op = DISK_READ;
		reqs[i].disk.sector = UINT64_C(1000000) * (i + 1);
		reqs[i].disk.sectors = 8;
		reqs[i].disk.iov = &iov[i];
		reqs[i].disk.iov_n = 1;
		reqs[i].class = QUEUE_READ;
		queue_submit(rig.queue, &reqs[i]);
	}
	queue_poll(rig.queue, 0);
	ck_assert_uint_ne(head_begun_ns(rig.head), 0);
	ck_assert_int_eq(sim_power_cut(rig.sim, SIM_CUT_KEEP, 1), 0);
	ck_assert_int_lt(queue_poll(rig.queue, 0), 0);
	queue_close(rig.queue);
	ck_assert_uint_eq(head_begun_ns(rig.head), 0);
	ck_assert_uint_eq(head_busy_until_ns(rig.head), 0);
	sim_restart(rig.sim);
	reopen_queue();
	run(1, 8, 67, 300);
	ck_assert(stats().read.on && stats().write.on);
	ck_assert_uint_eq(stats().read.wrong, 0);
	ck_assert(phase_error() < 0.002);
	rig_close(&rig);
}
END_TEST

int main(void)
{
	const struct {
		const char *name;
		const TTest *test;
		int n;
	} tests[] = {
		{ "ordinary_reads_tell", ordinary_reads_tell_the_phase, 1 },
		{ "a_late_host_makes_no_seek_longer",
		  a_late_host_makes_no_seek_longer, 2 },
		{ "noise_is_borne", noise_is_borne, 1 },
		{ "writes_need_references", writes_alone_need_few_reads, 1 },
		{ "noisy_references", noise_needs_no_more_references, 1 },
		{ "a_mount_tells", reads_of_a_mount_tell_the_phase, 1 },
		{ "seeks_are_learned", seeks_are_learned, 1 },
		{ "cached_writes_move",
		  a_cached_write_takes_the_head_along, 1 },
		{ "no_rotation", without_rotation_there_is_no_head, 1 },
		{ "write_cache", a_write_cache_tells_nothing_of_the_head, 1 },
		{ "gaps_hold", gaps_hold_while_the_drive_has_commands, 2 },
		{ "writes_in_the_cache", writes_in_the_cache_spoil_no_reads,
		  1 },
		{ "beliefs_off", wrong_models_cost_little, 3 * DOUBTS },
		{ "off_within_200", prediction_ends_within_200_requests, 1 },
		{ "data_untouched", data_stay_right_with_a_wrong_model, 1 },
		{ "order", sptf_sw_gives_the_published_rotation, 1 },
		{ "whole_tracks", aligned_whole_tracks_are_faster, 1 },
		{ "nearest_copy", the_copy_that_is_reached_first_is_read, 1 },
		{ "bulk_in_the_back", bulk_writes_do_not_delay_others, 2 },
		{ "long_in_the_back", commits_go_before_long_writes, 1 },
		{ "streams", two_readers_take_turns_and_neither_waits_long, 1 },
		{ "stream_behind_a_write", streams_wait_for_a_write, 1 },
		{ "rest", after_a_rest_the_head_is_found_again, 1 },
		{ "mount", a_mount_opens_its_head_from_its_profile, 1 },
		{ "drives_unseen", drives_from_seeds_are_followed, 6 },
		{ "certificates", chance_lateness_is_no_remap, 1 },
		{ "power_cut", a_head_outlives_the_queue_of_a_power_cut, 1 },
		{ "speed_changes", prediction_comes_back_after_changes_of_speed,
		  TRAFFICS * CHANGES },
	};
	Suite *suite = suite_create("head");
	SRunner *runner;
	TCase *tc;
	size_t i;
	int failed;

	msg_set_level(MSG_WARN);
	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		tc = tcase_create(tests[i].name);
		tcase_add_loop_test(tc, tests[i].test, 0, tests[i].n);
		suite_add_tcase(suite, tc);
	}
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

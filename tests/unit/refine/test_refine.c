/*
 * test_refine.c - a file system that knows part of its disk's tracks finds out
 * the rest in idle time, and is right; nobody waits for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/coro.h"
#include "check/check.h"
#include "diskmodel/geom_build.h"
#include "diskmodel/spec.h"
#include "extract/drive/fit.h"
#include "extract/measure.h"
#include "extract/probe/prober_disk.h"
#include "format/format.h"
#include "fs/drive/super_write.h"
#include "fs/mkfs.h"
#include "fs/op/fs_internal.h"
#include "refine/refine.h"
#include "sched/freeblock/freeblock.h"
#include "sched/head/head.h"
#include "sched/queue/queue.h"
#include "sim/drive.h"
#include "sim/model_error.h"
#include "sim/sim.h"
#include "sim/specgen.h"
#include "tests/rig/test.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define TIMEOUT 120		/* seconds, of a test on a busy machine */
#define SHORT_READ_NS (40 * MS)	/* a seek, a turn, another read */

/* ---- coroutines ---- */

static void counts(struct coro *coro, void *arg)
{
	unsigned *n = arg;

	for (unsigned i = 0; i < 3; i++) {
		++*n;
		coro_yield(coro);
	}
}

START_TEST(a_coroutine_goes_on_where_it_yielded)
{
	struct coro *coro;
	unsigned n = 0;

	ck_assert_int_eq(coro_new(counts, &n, &coro), 0);
	for (unsigned i = 1; i <= 3; i++) {
		ck_assert(coro_resume(coro));
		ck_assert_uint_eq(n, i);
	}
	ck_assert(!coro_resume(coro));
	ck_assert(!coro_resume(coro));
	coro_free(coro);
}
END_TEST

/* ---- a disk, partly known ---- */

struct bed {
	struct spec *spec;
	struct sim *sim;
	struct fs *fs;
	struct refine *refine;
};

static void bed_measure(struct bed *bed, struct profile **profile)
{
	const struct measure_options options = { .most_ns = 8 * SECOND };
	enum period_verdict verdict;
	struct prober *prober = prober_disk_new(sim_env(bed->sim),
						sim_disk(bed->sim), false,
						NULL);

	ck_assert_ptr_nonnull(prober);
	ck_assert_int_eq(measure_some(prober, &options, &verdict, profile),
			 0);
	ck_assert_int_eq(verdict, PERIOD_GOOD);
	ck_assert_ptr_nonnull(*profile);
	prober_disk_free(prober);
}

static void bed_mount_as(struct bed *bed, bool doubt)
{
	/* Gone after fs_open. */
	struct head_past_read read = { .lbn = 8, .sectors = 8,
				       .complete_ns = 1 };
	struct fs_options options = { .past_reads = &read, .past_reads_n = 1,
				      .doubt = doubt, .measure = true };

	ck_assert_int_eq(fs_open(sim_env(bed->sim), sim_disk(bed->sim),
				 &options, &bed->fs), 0);
	read.lbn = UINT64_MAX / 2;
	ck_assert_int_eq(refine_open(bed->fs, &bed->refine), 0);
}

static void bed_mount(struct bed *bed)
{
	bed_mount_as(bed, false);
}

static void bed_unmount(struct bed *bed)
{
	refine_close(bed->refine);
	ck_assert_int_eq(fs_close(bed->fs), 0);
	bed->refine = NULL;
}

static bool bed_problem(void *arg, const struct check_found *found)
{
	(void)arg;
	ck_abort_msg("the checker: %s", found->text);
	return false;
}

static void bed_check(struct bed *bed)
{
	struct check_options options = { .data = true, .name_mask = UINT64_MAX,
					 .found = bed_problem };
	struct check_result result;

	ck_assert_int_eq(check_run(sim_env(bed->sim), sim_disk(bed->sim),
				   &options, &result), 0);
	ck_assert_uint_eq(result.found, 0);
}

static void bed_mkfs(struct bed *bed, struct mkfs_options *options)
{
	struct mkfs_plan plan;

	ck_assert_int_eq(mkfs_plan(sim_env(bed->sim),
				   &sim_disk(bed->sim)->limits, options,
				   &plan), 0);
	ck_assert_int_eq(mkfs_write(sim_env(bed->sim), sim_disk(bed->sim),
				    options, &plan), 0);
}

static void bed_make_of(struct bed *bed, const struct specgen *gen)
{
	struct sim_options sim_options = { .seed = 5 };
	struct mkfs_options options = { 0 };
	struct profile *profile;

	memset(bed, 0, sizeof(*bed));
	ck_assert_int_eq(specgen_make(gen, &bed->spec), 0);
	bed->sim = sim_new(bed->spec, 0, &sim_options);
	ck_assert_ptr_nonnull(bed->sim);
	bed_measure(bed, &profile);
	options.profile = profile;
	options.geom = profile->geom;
	bed_mkfs(bed, &options);
	profile_free(profile);
	bed_mount(bed);
}

/* `group`: cylinders of a serpentine; 0: any order. */
static void bed_make(struct bed *bed, uint32_t group)
{
	const struct specgen gen = {
		.seed = 11, .bytes = UINT64_C(4) << 30,
		.group_cylinders = group, .slipped = 0.002, .zero_latency = 1,
		.noise = 1,
	};

	bed_make_of(bed, &gen);
}

static void bed_open(struct bed *bed)
{
	bed_make(bed, 0);
}

static void bed_close(struct bed *bed)
{
	bed_unmount(bed);
	sim_free(bed->sim);
	spec_free(bed->spec);
}

/* One turn of the loop, and time passes to what comes next. */
static void bed_turn(struct bed *bed, uint64_t most_ns)
{
	uint64_t next = fs_run(bed->fs, 0);
	uint64_t refine = bed->refine ? refine_run(bed->refine) : UINT64_MAX;
	uint64_t now = sim_now_ns(bed->sim);

	next = refine < next ? refine : next;
	if (sim_next_ns(bed->sim) < next)
		next = sim_next_ns(bed->sim);
	if (most_ns < next)
		next = most_ns;
	if (next > now)
		sim_advance(bed->sim, next - now);
}

static void bed_pass(struct bed *bed, uint64_t ns)
{
	uint64_t until = sim_now_ns(bed->sim) + ns;

	while (sim_now_ns(bed->sim) < until)
		bed_turn(bed, until);
}

static void bed_judge(struct bed *bed, struct model_error *judge)
{
	ck_assert_int_eq(model_error_geom(drive_geom(sim_drive(bed->sim)),
				    fs_geom(bed->fs), judge), 0);
	ck_assert_uint_eq(judge->wrong, 0);
}

/* Here and there. */
static void bed_reads(struct bed *bed, unsigned n)
{
	static uint8_t buf[4096] __attribute__((aligned(4096)));
	uint64_t blocks = sim_disk(bed->sim)->limits.sectors / 8;
	uint64_t at;

	ck_assert_ptr_nonnull(bed->fs->head);
	for (unsigned i = 0; i < n; i++) {
		at = env_random(sim_env(bed->sim)) % blocks * 8;
		ck_assert_int_eq(queue_read(bed->fs->queue, at, 8, buf), 0);
	}
}

static uint64_t period_off(const struct bed *bed)
{
	uint64_t is = bed->spec->mech.period_ps;
	uint64_t model = bed->fs->profile->mech.period_ps;

	return is > model ? is - model : model - is;
}

struct waits {
	struct sim *sim;
	uint64_t over_ns;	/* 0: not yet */
};

static void op_over(struct fs_op *op)
{
	struct waits *waits = op->owner;

	waits->over_ns = sim_now_ns(waits->sim);
}

/* How long it took. */
static uint64_t bed_do(struct bed *bed, struct fs_op *op)
{
	uint64_t from = sim_now_ns(bed->sim);
	struct waits waits = { .sim = bed->sim };

	op->done = op_over;
	op->owner = &waits;
	fs_submit(bed->fs, op);
	while (!waits.over_ns)
		bed_turn(bed, UINT64_MAX);
	ck_assert_int_eq(op->rc, 0);
	return waits.over_ns - from;
}

static uint64_t bed_file(struct bed *bed, const char *name, void *data,
			 uint64_t bytes)
{
	struct fs_op make = { .type = FS_MKNOD, .ino = TRAX_ROOT_INO,
			      .name = name, .mode = S_IFREG | 0644 };
	struct fs_op out = { .type = FS_WRITE, .data = data, .size = bytes };
	struct fs_op sync = { .type = FS_SYNCFS, .ino = TRAX_ROOT_INO };

	bed_do(bed, &make);
	out.ino = make.attr.ino;
	bed_do(bed, &out);
	bed_do(bed, &sync);
	return out.ino;
}

/* Was all of it put where the tracks were known? */
static bool bed_known(struct bed *bed, uint64_t ino)
{
	struct fs_extent extent[8];
	struct fs_op op = { .type = FS_EXTENTS, .ino = ino,
			    .buffer = extent, .size = 8 };
	bool known = true;

	bed_do(bed, &op);
	ck_assert_uint_gt(op.result, 0);
	ck_assert_uint_le(op.result, 8);
	for (uint64_t i = 0; i < op.result; i++)
		known &= extent[i].known;
	return known;
}

/* ---- tests ---- */

START_TEST(all_tracks_are_found_in_idle_time)
{
	static char data[1 << 20];
	struct refine_status status;
	struct model_error before, after;
	struct bed bed;
	uint64_t off;

	memset(data, 7, sizeof(data));
	/* Distances in tracks are about distances in cylinders. */
	bed_make(&bed, 8);
	ck_assert_ptr_nonnull(bed.refine);
	bed_judge(&bed, &before);
	ck_assert_uint_gt(before.unknown_sectors, 0);
	bed_file(&bed, "old", data, sizeof(data));
	do {
		bed_pass(&bed, 60 * SECOND);
		refine_get_status(bed.refine, &status);
		ck_assert_uint_lt(sim_now_ns(bed.sim), 7200 * SECOND);
	} while (status.running);
	bed_judge(&bed, &after);
	ck_assert(status.complete);
	ck_assert_uint_gt(status.adopted, 1);
	ck_assert_uint_lt(after.angle_p99_ppm, 5000);
	/* What the map leaves undecided on such a drive. */
	ck_assert_uint_lt(after.unknown_sectors,
			  geom_sectors(fs_geom(bed.fs)) / 10);
	ck_assert_uint_lt(after.unknown_sectors, before.unknown_sectors / 4);
	ck_assert(bed_known(&bed, bed_file(&bed, "new", data, sizeof(data))));
	bed_unmount(&bed);
	bed_check(&bed);
	/* It is kept, and there is nothing left to look at. */
	bed_mount(&bed);
	refine_get_status(bed.refine, &status);
	ck_assert(status.complete);
	bed_judge(&bed, &before);
	ck_assert_uint_eq(before.unknown_sectors, after.unknown_sectors);
	/* And where the head is can be told. */
	bed_reads(&bed, 300);
	ck_assert_int_eq(head_mode(bed.fs->head), HEAD_ON);
	/* What it learns is kept. */
	off = period_off(&bed);
	bed_reads(&bed, 1500);
	bed_unmount(&bed);
	bed_check(&bed);
	bed_mount(&bed);
	ck_assert_uint_lt(period_off(&bed), off);
	ck_assert_uint_lt(period_off(&bed) * 2000000,
			  bed.spec->mech.period_ps);
	bed_close(&bed);
}
END_TEST

/* All tracks are as long as that. */
static void bed_tracks(struct bed *bed, uint32_t sectors)
{
	uint64_t all = sim_disk(bed->sim)->limits.sectors;
	struct geom_build *b = geom_build_new(8000000, UINT32_MAX / 250);
	struct profile *profile;
	struct geom *geom;

	ck_assert_ptr_nonnull(b);
	ck_assert_int_eq(geom_build_sweep(b, &(struct geom_sweep){
		.count = (uint32_t)(all / sectors), .sectors = sectors,
		.around = sectors, .cylinder_step = 1, .known = true,
	}), 0);
	if (all % sectors)
		ck_assert_int_eq(geom_build_pseudo(b, all, sectors), 0);
	ck_assert_int_eq(geom_build_finish(b, &geom), 0);
	geom_build_free(b);
	profile = profile_from_geom(geom, PROFILE_TIMING);
	ck_assert_ptr_nonnull(profile);
	ck_assert_int_eq(fs_adopt_profile(bed->fs, profile), 0);
}

static void named(void *arg, int rc)
{
	*(int *)arg = rc;
}

/* No two superblocks of one version say different things. */
START_TEST(a_superblock_version_is_used_once)
{
	struct sim_fault fault = { .kind = SIM_FAIL, .ops = SIM_WRITES,
				   .k = 1 };
	struct super_write supers;
	struct bed bed;
	uint64_t version;
	int rc = 1;

	bed_open(&bed);
	version = fs_super(bed.fs)->version;
	ck_assert_int_eq(super_write_init(&supers, bed.fs, named, &rc), 0);
	sim_fault_add(bed.sim, &fault);
	ck_assert_int_eq(super_write_start(&supers, fs_super(bed.fs)), 0);
	while (rc > 0)
		fs_run(bed.fs, -1);
	ck_assert_int_eq(rc, -EIO);
	ck_assert_uint_gt(fs_super(bed.fs)->version, version);
	sim_fault_clear(bed.sim);
	super_write_fini(&supers);
	bed_close(&bed);
}
END_TEST

/* The mount is closed at any moment, while other maps come. */
START_TEST(it_can_be_closed_at_any_moment)
{
	for (unsigned k = 0; k < 2000; k += 41) {
		struct bed bed;
		unsigned i;

		bed_open(&bed);
		refine_close(bed.refine);
		bed.refine = NULL;
		bed_tracks(&bed, 1237);
		for (i = 0; i < k; i++) {
			bed_turn(&bed, sim_now_ns(bed.sim) + SECOND);
			if (i % 37 == 20 && queue_idle(bed.fs->queue))
				bed_tracks(&bed, 1237 + 8 * (k % 5));
		}
		bed_unmount(&bed);
		bed_check(&bed);
		bed_mount(&bed);
		bed_unmount(&bed);
		bed_check(&bed);
		sim_free(bed.sim);
		spec_free(bed.spec);
	}
}
END_TEST

/* A new map is saved while the disk fails: nobody waits for ever, and the file
 * system is whole again. */
START_TEST(a_new_map_survives_errors)
{
	for (unsigned k = 1; k < 200; k += 2) {
		struct sim_fault fault = { .kind = SIM_FAIL, .k = k,
					   .ops = k % 2 ? SIM_ALL : SIM_WRITES,
					   .times = 1 + k % 7 };
		struct bed bed;

		bed_open(&bed);
		refine_close(bed.refine);
		bed.refine = NULL;
		sim_fault_add(bed.sim, &fault);
		bed_tracks(&bed, 1237);
		bed_pass(&bed, (3 + k % 8 * 4) * SECOND);
		fs_close(bed.fs);
		sim_fault_clear(bed.sim);
		bed_mount(&bed);
		bed_unmount(&bed);
		bed_check(&bed);
		sim_free(bed.sim);
		spec_free(bed.spec);
	}
}
END_TEST

/* Reads until all is looked at. */
static uint64_t bed_finish(struct bed *bed)
{
	struct refine_status status;

	do {
		bed_pass(bed, 20 * SECOND);
		refine_get_status(bed->refine, &status);
		ck_assert_uint_lt(sim_now_ns(bed->sim), 7200 * SECOND);
	} while (status.running);
	ck_assert(status.complete);
	return status.reads;
}

static unsigned cut_writes;

static void cut_hook(struct sim *sim, const struct disk_request *req,
		     void *arg)
{
	struct sim_moment **moment = arg;

	if (req->op != DISK_WRITE || cut_writes > 40)
		return;
	moment[cut_writes++] = sim_moment_take(sim);
}

/* Power goes at each write of what is written back: the map is the old one or
 * the new one, and the next mount goes on with it. */
START_TEST(a_cut_leaves_the_old_map_or_the_new)
{
	struct sim_moment *moment[41] = { NULL };
	struct sim_options sim_options = { .seed = 9 };
	struct model_error judge;
	struct bed bed, again;
	struct media *media;
	unsigned old = 0, new = 0;
	uint64_t before;

	bed_open(&bed);
	before = geom_known_sectors(fs_geom(bed.fs));
	bed_pass(&bed, 8 * SECOND);
	cut_writes = 0;
	sim_set_hook(bed.sim, cut_hook, moment);
	bed_unmount(&bed);
	sim_set_hook(bed.sim, NULL, NULL);
	ck_assert_uint_gt(cut_writes, 4);
	ck_assert_uint_lt(cut_writes, 41);
	for (unsigned i = 0; i < cut_writes; i++) {
		media = sim_moment_cut(moment[i], SIM_CUT_RANDOM, i);
		sim_options.content = media;
		again = bed;
		again.sim = sim_new(bed.spec, 0, &sim_options);
		ck_assert_ptr_nonnull(again.sim);
		bed_mount(&again);
		bed_judge(&again, &judge);
		*(geom_known_sectors(fs_geom(again.fs)) == before ? &old :
								   &new) += 1;
		ck_assert_ptr_nonnull(again.refine);
		bed_unmount(&again);
		bed_check(&again);
		sim_free(again.sim);
		media_free(media);
		sim_moment_free(moment[i]);
	}
	ck_assert_uint_gt(old, 0);
	ck_assert_uint_gt(new, 0);
	bed_mount(&bed);
	bed_close(&bed);
}
END_TEST

/* Unmounted again and again, it does not begin anew. */
START_TEST(it_goes_on_after_unmounts)
{
	struct refine_status status;
	struct model_error judge;
	struct bed bed;
	uint64_t once, reads = 0, known, last = 0;

	bed_open(&bed);
	once = bed_finish(&bed);
	bed_close(&bed);
	bed_open(&bed);
	for (unsigned i = 0; i < 20; i++) {
		bed_pass(&bed, (i < 8 ? 4 : 120) * SECOND);
		refine_get_status(bed.refine, &status);
		reads += status.reads;
		bed_unmount(&bed);
		bed_mount(&bed);
		known = geom_known_sectors(fs_geom(bed.fs));
		ck_assert_uint_ge(known, last);
		last = known;
		ck_assert_uint_lt(reads, 2 * once);
		refine_get_status(bed.refine, &status);
		if (status.complete)
			break;
	}
	ck_assert(status.complete);
	bed_judge(&bed, &judge);
	bed_close(&bed);
}
END_TEST

/* ---- a drive that changes ---- */

#define GROWN_FIRST 1000u	/* tracks */
#define GROWN_TRACKS 4u

/* The same tracks, but a few lie elsewhere around the platter. */
static struct geom *grown_geom(const struct geom *geom)
{
	struct geom_build *b = geom_build_new(geom_period_ns(geom),
					      UINT32_MAX / 4000);
	struct geom_track t;
	struct geom *grown;

	ck_assert_ptr_nonnull(b);
	for (uint64_t i = 0; i < geom_tracks(geom); i++) {
		geom_track_at(geom, i, &t);
		if (i >= GROWN_FIRST && i < GROWN_FIRST + GROWN_TRACKS)
			t.start += UINT32_MAX / 5;
		ck_assert_int_eq(geom_build_sweep(b, &(struct geom_sweep){
			.count = 1, .sectors = t.sectors,
			.around = (uint32_t)(((UINT64_C(1) << 32) +
					      t.per_sector / 2) /
					     t.per_sector),
			.cylinder = t.cylinder, .surface = (int32_t)t.surface,
			.base = t.start, .known = true }), 0);
	}
	ck_assert_int_eq(geom_build_finish(b, &grown), 0);
	geom_build_free(b);
	return grown;
}

/* The disk goes on as another drive with the same content. */
static void bed_change(struct bed *bed, struct spec *spec)
{
	struct media *media = sim_content(bed->sim);
	struct sim_options options = { .seed = 8, .content = media };

	sim_free(bed->sim);
	bed->sim = sim_new(spec, 0, &options);
	ck_assert_ptr_nonnull(bed->sim);
	media_free(media);
}

/* Some on the tracks that have changed, most elsewhere. */
static void bed_meet(struct bed *bed, const struct geom_track *t)
{
	static uint8_t buf[4096] __attribute__((aligned(4096)));
	uint64_t at;

	for (unsigned i = 0; i < 12; i++) {
		bed_reads(bed, 4);
		at = t->first +
		     env_random(sim_env(bed->sim)) % (t->sectors - 16);
		ck_assert_int_eq(queue_read(bed->fs->queue, at / 8 * 8, 8,
					    buf), 0);
		bed_turn(bed, sim_now_ns(bed->sim) + MS);
	}
}

START_TEST(grown_defects_are_measured_again)
{
	struct geom_track t, is;
	struct spec spec;
	struct bed bed;

	bed_make(&bed, 8);
	bed_finish(&bed);
	bed_unmount(&bed);
	spec = *bed.spec;
	spec.geom = grown_geom(drive_geom(sim_drive(bed.sim)));
	bed_change(&bed, &spec);
	bed_mount(&bed);
	geom_track_at(spec.geom, GROWN_FIRST + 1, &is);
	geom_track_of(fs_geom(bed.fs), is.first, &t);
	ck_assert(t.known && t.first == is.first);
	bed_reads(&bed, 400);
	ck_assert_int_eq(head_mode(bed.fs->head), HEAD_ON);
	bed_meet(&bed, &is);
	/* Unknown at once, when somebody has a moment ... */
	bed_pass(&bed, SECOND / 20);
	geom_track_of(fs_geom(bed.fs), is.first, &t);
	ck_assert(!t.known);
	/* ... and found again where it is now. */
	bed_finish(&bed);
	geom_track_of(fs_geom(bed.fs), is.first, &t);
	ck_assert(!t.known || t.first == is.first);
	bed_unmount(&bed);
	bed_check(&bed);
	bed_mount(&bed);
	bed_close(&bed);
	geom_free(spec.geom);
}
END_TEST

static void bed_has_surfaces(const struct bed *bed)
{
	const struct profile *p = bed->fs->profile;
	uint32_t most = 0;
	struct geom_track t;

	for (uint64_t i = 0; i < geom_tracks(p->geom); i++) {
		geom_track_at(p->geom, i, &t);
		most = t.surface > most ? t.surface : most;
	}
	ck_assert_uint_eq(most + 1, bed->spec->surfaces);
	ck_assert_uint_gt(p->part[PROFILE_SURFACES].confidence_ppm, 0);
	ck_assert_uint_gt(p->part[PROFILE_SEEK].confidence_ppm, 0);
	/* Distances are in cylinders. */
	ck_assert_uint_lt(p->mech.seek[p->mech.seek_n - 1].cylinders,
			  geom_tracks(p->geom) / bed->spec->surfaces);
}

/* Seeks tell surfaces when all tracks are known, and what is measured anew does
 * not forget them. */
START_TEST(surfaces_are_found_and_kept)
{
	const struct specgen gen = {
		.seed = 31517, .bytes = UINT64_C(5000000000), .slipped = 0.002,
		.cache = -1, .zero_latency = -1, .noise = 1,
	};
	struct spec spec;
	struct geom_track is;
	struct bed bed;

	bed_make_of(&bed, &gen);
	bed_finish(&bed);
	bed_has_surfaces(&bed);
	bed_unmount(&bed);
	spec = *bed.spec;
	spec.geom = grown_geom(drive_geom(sim_drive(bed.sim)));
	bed_change(&bed, &spec);
	bed_mount(&bed);
	bed_has_surfaces(&bed);
	geom_track_at(spec.geom, GROWN_FIRST + 1, &is);
	bed_reads(&bed, 400);
	bed_meet(&bed, &is);
	bed_pass(&bed, SECOND / 20);
	bed_has_surfaces(&bed);
	bed_pass(&bed, 400 * SECOND);
	bed_has_surfaces(&bed);
	bed_unmount(&bed);
	bed_check(&bed);
	bed_mount(&bed);
	bed_close(&bed);
	geom_free(spec.geom);
}
END_TEST

/* A mount while the drive was at full speed doubts the profile, reads next to
 * nothing, and believes it when it fits again. */
START_TEST(a_doubted_profile_is_trusted_again)
{
	struct refine_status status;
	struct bed bed;

	bed_make(&bed, 8);
	bed_finish(&bed);
	bed_unmount(&bed);
	ck_assert_int_eq(sim_set_flat(bed.sim, true), 0);
	bed_mount_as(&bed, true);
	bed_pass(&bed, 100 * SECOND);
	refine_get_status(bed.refine, &status);
	ck_assert_uint_gt(status.reads, 0);
	ck_assert_uint_le(status.reads, FIT_READS);
	ck_assert_ptr_null(bed.fs->head);
	ck_assert_int_eq(sim_set_flat(bed.sim, false), 0);
	bed_pass(&bed, 3600 * SECOND);
	refine_get_status(bed.refine, &status);
	ck_assert(status.complete);
	bed_reads(&bed, 300);
	ck_assert_int_eq(head_mode(bed.fs->head), HEAD_ON);
	bed_unmount(&bed);
	bed_check(&bed);
	bed_mount(&bed);
	bed_close(&bed);
}
END_TEST

static void never_mind(void *arg, uint64_t sector, uint32_t sectors,
		       const void *bytes, int result)
{
	(void)arg;
	(void)sector;
	(void)sectors;
	(void)bytes;
	(void)result;
}

/* What was wanted by pseudo-tracks, while the profile was doubted, is found in
 * gaps as soon as it is believed. */
START_TEST(wanted_sectors_survive_a_new_geometry)
{
	const struct freeblock_options options = {
		.name = "all", .no_idle = true,
	};
	const struct freeblock_ops ops = { .got = never_mind };
	struct freeblock_task *task;
	struct freeblock_stats stats;
	struct bed bed;

	bed_make(&bed, 8);
	bed_finish(&bed);
	bed_unmount(&bed);
	bed_mount_as(&bed, true);
	ck_assert_int_eq(freeblock_open(bed.fs->queue, &options, &ops, NULL,
					&task), 0);
	ck_assert_int_eq(freeblock_want(task, 0, 1 << 22), 0);
	ck_assert_int_eq(queue_drain(bed.fs->queue), 0);
	ck_assert_int_eq(fs_trust_profile(bed.fs), 0);
	bed_reads(&bed, 300);
	ck_assert_int_eq(head_mode(bed.fs->head), HEAD_ON);
	freeblock_get_stats(bed.fs->queue, NULL, &stats);
	ck_assert_uint_gt(stats.gaps_used, 0);
	freeblock_close(task);
	bed_close(&bed);
}
END_TEST

/* A host that is too busy to measure by is waited for. */
START_TEST(it_waits_for_a_busy_host)
{
	struct refine_status status;
	struct spec_noise quiet;
	struct model_error judge;
	struct bed bed;

	bed_make(&bed, 8);
	quiet = bed.spec->noise;
	bed.spec->noise = (struct spec_noise){
		.normal_ns = quiet.normal_ns, .exponential_ns = 2 * MS,
		.late = 0.5, .late_min_ns = MS, .late_max_ns = 5 * MS,
	};
	bed_pass(&bed, 600 * SECOND);
	refine_get_status(bed.refine, &status);
	ck_assert(status.running);
	ck_assert_uint_lt(status.reads, 100000);
	bed_judge(&bed, &judge);
	bed.spec->noise = quiet;
	bed_finish(&bed);
	bed_judge(&bed, &judge);
	bed_close(&bed);
}
END_TEST

/* Until it has come to its end. */
static void bed_refine(struct bed *bed, struct refine_status *status)
{
	uint64_t until = sim_now_ns(bed->sim) + 7200 * SECOND;

	do {
		bed_pass(bed, 60 * SECOND);
		refine_get_status(bed->refine, status);
		ck_assert_uint_lt(sim_now_ns(bed->sim), until);
	} while (status->running);
}

/* mkfs found out nothing at all, because the host was too busy; so it is at
 * first under the mount, which is cut off in the middle once, and then for a
 * while again, so that much is looked at in vain. */
START_TEST(a_disk_without_a_profile_is_measured)
{
	struct specgen gen = { .seed = 11, .bytes = UINT64_C(600) << 20,
			       .group_cylinders = 8, .zero_latency = 1 };
	struct sim_options sim_options = { .seed = 5 };
	struct mkfs_options options = { 0 };
	struct refine_status status;
	struct spec_noise quiet;
	struct model_error judge;
	struct bed bed = { 0 };

	ck_assert_int_eq(specgen_make(&gen, &bed.spec), 0);
	bed.sim = sim_new(bed.spec, 0, &sim_options);
	ck_assert_ptr_nonnull(bed.sim);
	bed_mkfs(&bed, &options);
	bed_mount(&bed);
	ck_assert_ptr_nonnull(bed.refine);
	quiet = bed.spec->noise;
	bed.spec->noise.exponential_ns = 3 * MS;
	bed_pass(&bed, 30 * SECOND);
	ck_assert(!geom_known(fs_geom(bed.fs)));
	bed.spec->noise = quiet;
	bed_pass(&bed, 75 * SECOND);
	bed_judge(&bed, &judge);
	bed_unmount(&bed);
	bed_check(&bed);
	bed_mount(&bed);
	bed.spec->noise.exponential_ns = MS / 10;
	bed_pass(&bed, 600 * SECOND);
	bed.spec->noise = quiet;
	bed_refine(&bed, &status);
	ck_assert(status.complete);
	bed_judge(&bed, &judge);
	ck_assert_uint_lt(judge.unknown_sectors,
			  geom_sectors(fs_geom(bed.fs)) / 50);
	bed_unmount(&bed);
	bed_check(&bed);
	bed_mount(&bed);
	bed_reads(&bed, 300);
	ck_assert_int_eq(head_mode(bed.fs->head), HEAD_ON);
	bed_close(&bed);
}
END_TEST

/* The image was copied to another drive, which turns faster: it is measured
 * anew. */
START_TEST(another_drive_is_measured_anew)
{
	struct refine_status status;
	struct media *content;
	struct model_error judge;
	struct bed bed;

	bed_make(&bed, 8);
	bed_finish(&bed);
	bed_unmount(&bed);
	content = sim_content(bed.sim);
	ck_assert_ptr_nonnull(content);
	sim_free(bed.sim);
	bed.spec->mech.period_ps -= bed.spec->mech.period_ps / 20;
	bed.sim = sim_new(bed.spec, 0, &(struct sim_options){
		.seed = 6, .content = content });
	ck_assert_ptr_nonnull(bed.sim);
	bed_mount_as(&bed, true);
	bed_pass(&bed, 100 * SECOND);
	ck_assert(bed.fs->options.doubt);
	bed_refine(&bed, &status);
	ck_assert(status.complete && !bed.fs->options.doubt);
	bed_judge(&bed, &judge);
	ck_assert_uint_lt(judge.unknown_sectors,
			  geom_sectors(fs_geom(bed.fs)) / 50);
	bed_reads(&bed, 300);
	ck_assert_int_eq(head_mode(bed.fs->head), HEAD_ON);
	bed_unmount(&bed);
	bed_check(&bed);
	bed_mount(&bed);
	bed_close(&bed);
	media_free(content);
}
END_TEST

/* What does not rotate is asked by a few reads. */
START_TEST(from_nothing_flat)
{
	struct sim_options sim_options = { .seed = 5 };
	struct mkfs_options options = { 0 };
	struct refine_status status;
	struct bed bed = { 0 };

	bed.sim = sim_new(NULL, 1000000, &sim_options);
	ck_assert_ptr_nonnull(bed.sim);
	bed_mkfs(&bed, &options);
	bed_mount(&bed);
	bed_pass(&bed, 60 * SECOND);
	refine_get_status(bed.refine, &status);
	ck_assert(!status.running && !status.complete);
	ck_assert_uint_lt(status.reads, 50);
	bed_unmount(&bed);
	bed_check(&bed);
	sim_free(bed.sim);
}
END_TEST

/* Reads now and then wait for no more than one of its own. */
START_TEST(users_wait_for_one_read_at_most)
{
	static char data[4096];
	struct fs_op read = { .type = FS_READ, .size = sizeof(data),
			      .buffer = data };
	struct refine_status status;
	struct model_error judge;
	struct bed bed;
	uint64_t worst = 0, took;

	bed_open(&bed);
	read.ino = bed_file(&bed, "f", data, sizeof(data));
	for (unsigned i = 0; i < 20; i++) {
		bed_pass(&bed, (3 + i % 5) * SECOND);
		took = bed_do(&bed, &read);
		worst = took > worst ? took : worst;
	}
	ck_assert_uint_lt(worst, SHORT_READ_NS);
	bed_pass(&bed, 30 * SECOND);
	refine_get_status(bed.refine, &status);
	ck_assert_uint_gt(status.reads, 100);
	bed_judge(&bed, &judge);
	bed_close(&bed);
}
END_TEST

/* Somebody who writes every few seconds does not keep it from going on. */
START_TEST(it_goes_on_between_rare_writes)
{
	static char data[4096];
	struct fs_op write = { .type = FS_WRITE, .size = sizeof(data),
			       .data = data };
	struct fs_op sync = { .type = FS_SYNCFS, .ino = TRAX_ROOT_INO };
	struct refine_status status;
	struct bed bed;
	uint64_t reads;

	bed_open(&bed);
	write.ino = bed_file(&bed, "f", data, sizeof(data));
	refine_get_status(bed.refine, &status);
	reads = status.reads;
	for (unsigned i = 0; i < 20; i++) {
		bed_pass(&bed, 4 * SECOND);
		bed_do(&bed, &write);
		bed_do(&bed, &sync);
	}
	refine_get_status(bed.refine, &status);
	/* 17,700 in 80 s; 900 if such pauses counted as gaps. */
	ck_assert_uint_gt(status.reads, reads + 5000);
	bed_close(&bed);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("refine");
	TCase *tc = tcase_create("refine");
	TCase *maps = tcase_create("maps");

	tcase_set_timeout(maps, TIMEOUT);
	tcase_set_timeout(tc, TIMEOUT);
	tcase_add_test(maps, a_superblock_version_is_used_once);
	tcase_add_test(maps, it_can_be_closed_at_any_moment);
	tcase_add_test(maps, a_new_map_survives_errors);
	suite_add_tcase(suite, maps);
	tcase_add_test(tc, a_coroutine_goes_on_where_it_yielded);
	tcase_add_test(tc, all_tracks_are_found_in_idle_time);
	tcase_add_test(tc, a_cut_leaves_the_old_map_or_the_new);
	tcase_add_test(tc, it_goes_on_after_unmounts);
	tcase_add_test(tc, grown_defects_are_measured_again);
	tcase_add_test(tc, surfaces_are_found_and_kept);
	tcase_add_test(tc, a_doubted_profile_is_trusted_again);
	tcase_add_test(tc, wanted_sectors_survive_a_new_geometry);
	tcase_add_test(tc, it_waits_for_a_busy_host);
	tcase_add_test(tc, a_disk_without_a_profile_is_measured);
	tcase_add_test(tc, from_nothing_flat);
	tcase_add_test(tc, another_drive_is_measured_anew);
	tcase_add_test(tc, users_wait_for_one_read_at_most);
	tcase_add_test(tc, it_goes_on_between_rare_writes);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}

/*
 * test_sim.c - the simulated disk: data, time, durability, power, faults.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"

#define SECTORS 4096u
#define MANY 64

/* A request with a buffer of its own. */
struct io {
	struct disk_request req;
	struct iovec iov;
	bool done;
	uint8_t *data;
};

static struct sim *sim;

static void io_done(struct disk_request *req)
{
	struct io *io = req->owner;

	ck_assert(!io->done);
	io->done = true;
}

static struct io *io_new(enum disk_op op, uint64_t sector, uint32_t sectors,
			 int fill)
{
	struct io *io = calloc(1, sizeof(*io));

	io->data = aligned_alloc(4096, 4096u * ((sectors + 7) / 8 + 1));
	memset(io->data, fill, (size_t)sectors * SECTOR_BYTES);
	io->iov = (struct iovec){ io->data, (size_t)sectors * SECTOR_BYTES };
	io->req = (struct disk_request){
		.op = op,
		.sector = sector,
		.sectors = sectors,
		.iov = &io->iov,
		.iov_n = op == DISK_FLUSH ? 0 : 1,
		.done = io_done,
		.owner = io,
		.result = 1,
	};
	return io;
}

static void io_free(struct io *io)
{
	free(io->data);
	free(io);
}

static struct io *io_start(enum disk_op op, uint64_t sector, uint32_t sectors,
			   int fill)
{
	struct io *io = io_new(op, sector, sectors, fill);

	disk_submit(sim_disk(sim), &io->req);
	return io;
}

/* One request, waited for; its result. */
static int io_run(enum disk_op op, uint64_t sector, uint32_t sectors, int fill)
{
	struct io *io = io_start(op, sector, sectors, fill);
	int result;

	sim_drain(sim);
	ck_assert(io->done);
	result = io->req.result;
	io_free(io);
	return result;
}

/* What a sector is filled with on a medium; -1: damaged, -2: a mix. */
static int filled(const struct media *m, uint64_t sector)
{
	uint8_t buf[SECTOR_BYTES];

	if (media_read(m, sector, 1, buf, NULL))
		return -1;
	for (unsigned i = 1; i < SECTOR_BYTES; i++) {
		if (buf[i] != buf[0])
			return -2;
	}
	return buf[0];
}

/* And on the disk. */
static int holds(uint64_t sector)
{
	struct media *m = sim_content(sim);
	int v = filled(m, sector);

	media_free(m);
	return v;
}

static void start(bool cache)
{
	sim_free(sim);
	sim = sim_new(NULL, SECTORS, &(struct sim_options){
			.seed = 1, .volatile_cache = cache });
	ck_assert_ptr_nonnull(sim);
}

static void setup(void)
{
	sim = NULL;
	start(false);
}

static void teardown(void)
{
	sim_free(sim);
}

START_TEST(clones_of_media_do_not_share_changes)
{
	struct media *a = media_new(1000000), *b;
	uint8_t buf[3 * SECTOR_BYTES];
	uint64_t bad;

	memset(buf, 7, sizeof(buf));
	ck_assert_int_eq(media_write(a, 999997, 3, buf), 0);
	b = media_clone(a);
	memset(buf, 8, sizeof(buf));
	ck_assert_int_eq(media_write(b, 999998, 1, buf), 0);
	ck_assert_int_eq(media_damage(b, 5, 1), 0);
	ck_assert_int_eq(filled(a, 999998), 7);
	ck_assert_int_eq(filled(b, 999998), 8);
	ck_assert_int_eq(filled(b, 999999), 7);
	ck_assert_int_eq(filled(a, 5), 0);
	ck_assert_int_eq(media_read(b, 4, 3, buf, &bad), -EIO);
	ck_assert_uint_eq(bad, 5);
	media_free(a);
	ck_assert_int_eq(filled(b, 999997), 7);
	ck_assert_int_eq(media_flip(b, 999997, 9), 0);
	ck_assert_int_eq(media_read(b, 999997, 1, buf, NULL), 0);
	ck_assert_uint_eq(buf[1], 7 ^ 2);
	ck_assert_int_eq(media_write(b, 5, 1, buf), 0);
	ck_assert_int_eq(media_read(b, 4, 3, buf, &bad), 0);
	media_free(b);
}
END_TEST

START_TEST(what_was_written_is_read)
{
	struct io *io;

	ck_assert_int_eq(io_run(DISK_WRITE, 8, 16, 0xaa), 0);
	io = io_start(DISK_READ, 0, 32, 0xff);
	ck_assert_int_eq(sim_drain(sim), 1);
	ck_assert_int_eq(io->req.result, 0);
	for (unsigned s = 0; s < 32; s++)
		ck_assert_uint_eq(io->data[s * SECTOR_BYTES],
				  s >= 8 && s < 24 ? 0xaa : 0);
	ck_assert_uint_eq(sim_counts(sim)->written_sectors, 16);
	ck_assert_uint_eq(sim_counts(sim)->reads, 1);
	io_free(io);
}
END_TEST

START_TEST(time_moves_only_by_waiting)
{
	struct io *a = io_start(DISK_READ, 0, 8, 0), *b;

	ck_assert_uint_eq(sim_now_ns(sim), 0);
	ck_assert_int_eq(disk_poll(sim_disk(sim), 0), 0);
	ck_assert(!a->done);
	sim_advance(sim, 60000);
	b = io_start(DISK_READ, 8, 8, 0);
	sim_advance(sim, 60000);
	/* Late by 20 us, but done at its time. */
	ck_assert(!a->done);
	ck_assert_int_eq(disk_poll(sim_disk(sim), -1), 1);
	ck_assert(a->done && !b->done);
	ck_assert_uint_eq(a->req.complete_ns, 100000);
	ck_assert_uint_eq(sim_now_ns(sim), 120000);
	ck_assert_int_eq(disk_poll(sim_disk(sim), -1), 1);
	ck_assert_uint_eq(sim_now_ns(sim), 160000);
	ck_assert_uint_eq(env_now_ns(sim_env(sim)), 160000);
	/* Nothing outstanding: not for ever, but a timeout is waited out. */
	ck_assert_int_eq(disk_poll(sim_disk(sim), -1), 0);
	ck_assert_uint_eq(sim_now_ns(sim), 160000);
	ck_assert_int_eq(disk_poll(sim_disk(sim), 5), 0);
	ck_assert_uint_eq(sim_now_ns(sim), 5160000);
	io_free(a);
	io_free(b);
}
END_TEST

START_TEST(time_passes_to_the_timeout_only)
{
	struct io *io;

	sim_free(sim);
	sim = sim_new(NULL, SECTORS,
		      &(struct sim_options){ .latency_ns = 5000000 });
	io = io_start(DISK_READ, 0, 8, 0);
	ck_assert_int_eq(disk_poll(sim_disk(sim), 3), 0);
	ck_assert_uint_eq(sim_now_ns(sim), 3000000);
	ck_assert_int_eq(disk_poll(sim_disk(sim), 3), 1);
	ck_assert_uint_eq(sim_now_ns(sim), 5000000);
	io_free(io);
}
END_TEST

/* A slow host: requests get there late but in order, are told of late, and who
 * waits is woken late. */
START_TEST(host_is_late)
{
	uint64_t at_ns, sum_ns = 0;
	struct io *io;
	int i;

	sim_free(sim);
	sim = sim_new(NULL, SECTORS,
		      &(struct sim_options){ .latency_ns = 5000000,
					     .host_ns = 100000 });
	for (i = 0; i < 500; i++) {
		io = io_start(DISK_READ, 0, 8, 0);
		sim_drain(sim);
		ck_assert(io->done);
		at_ns = io->req.complete_ns - io->req.submit_ns;
		ck_assert_uint_ge(at_ns, 5100000);
		ck_assert_uint_lt(at_ns, 9000000);
		sum_ns += at_ns;
		io_free(io);
	}
	ck_assert_uint_ge(sum_ns / 500, 5200000);
	ck_assert_uint_le(sum_ns / 500, 5300000);
	at_ns = sim_now_ns(sim);
	ck_assert_int_eq(disk_poll(sim_disk(sim), 1), 0);
	io = io_start(DISK_READ, 0, 8, 0);
	ck_assert_int_eq(disk_poll_ns(sim_disk(sim), 1000), 0);
	ck_assert_uint_gt(sim_now_ns(sim), at_ns + 1000000 + 1000);
	sim_drain(sim);
	io_free(io);
}
END_TEST

START_TEST(the_same_seed_draws_the_same)
{
	uint64_t a = env_random(sim_env(sim)), b = env_random(sim_env(sim));

	ck_assert_uint_ne(a, b);
	start(false);
	ck_assert_uint_eq(env_random(sim_env(sim)), a);
}
END_TEST

/* Without a cache a completed write survives, one in the air may not. */
START_TEST(cut_without_cache)
{
	static const enum sim_cut cuts[] = { SIM_CUT_DROP, SIM_CUT_KEEP };
	struct io *io;

	ck_assert_int_eq(io_run(DISK_WRITE, 0, 8, 1), 0);
	io = io_start(DISK_WRITE, 0, 16, 2);
	ck_assert_int_eq(sim_power_cut(sim, cuts[_i], 1), 0);
	ck_assert(sim_is_off(sim));
	ck_assert_int_eq(disk_poll(sim_disk(sim), -1), -ESHUTDOWN);
	ck_assert(!io->done);
	sim_restart(sim);
	ck_assert_int_eq(disk_poll(sim_disk(sim), -1), 0);
	ck_assert(!io->done);
	ck_assert_int_eq(holds(0), _i ? 2 : 1);
	ck_assert_int_eq(holds(8), _i ? 2 : 0);
	io_free(io);
}
END_TEST

START_TEST(cut_with_cache)
{
	start(true);
	ck_assert_int_eq(io_run(DISK_WRITE, 0, 8, 1), 0);
	ck_assert_int_eq(io_run(DISK_FLUSH, 0, 0, 0), 0);
	ck_assert_int_eq(io_run(DISK_WRITE, 0, 8, 2), 0);
	ck_assert_int_eq(io_run(DISK_WRITE, 8, 8, 3), 0);
	ck_assert_int_eq(holds(0), 2);
	ck_assert_int_eq(sim_power_cut(sim, SIM_CUT_DROP, 1), 0);
	sim_restart(sim);
	ck_assert_int_eq(holds(0), 1);
	ck_assert_int_eq(holds(8), 0);
}
END_TEST

/* A flush covers what had completed when it was submitted, no more. */
START_TEST(flush_covers_completed)
{
	struct io *flush, *late;

	start(true);
	ck_assert_int_eq(io_run(DISK_WRITE, 0, 8, 1), 0);
	late = io_start(DISK_WRITE, 8, 8, 2);
	sim_advance(sim, 50000);
	flush = io_start(DISK_FLUSH, 0, 0, 0);
	sim_drain(sim);
	ck_assert(late->done && flush->done);
	ck_assert_int_eq(sim_power_cut(sim, SIM_CUT_DROP, 1), 0);
	sim_restart(sim);
	ck_assert_int_eq(holds(0), 1);
	ck_assert_int_eq(holds(8), 0);
	io_free(late);
	io_free(flush);
}
END_TEST

/* FUA is durable, and no older cached write comes back over it. */
START_TEST(no_older_write_comes_back_over_fua)
{
	struct io *io;

	start(true);
	ck_assert_int_eq(io_run(DISK_WRITE, 0, 16, 1), 0);
	io = io_new(DISK_WRITE, 0, 8, 2);
	io->req.fua = true;
	disk_submit(sim_disk(sim), &io->req);
	sim_drain(sim);
	io_free(io);
	ck_assert_int_eq(sim_power_cut(sim, _i ? SIM_CUT_KEEP : SIM_CUT_DROP,
				       1), 0);
	sim_restart(sim);
	ck_assert_int_eq(holds(0), 2);
	ck_assert_int_eq(holds(8), _i ? 1 : 0);
}
END_TEST

START_TEST(cut_at_kth)
{
	struct io *io[MANY];
	int seen = 0;

	sim_power_cut_at(sim, 5, SIM_CUT_DROP, 1);
	for (int i = 0; i < MANY && !sim_is_off(sim); i++) {
		io[seen++] = io_start(DISK_WRITE, 8 * (uint64_t)i, 8, i + 1);
		if (i < 4)
			sim_drain(sim);
	}
	ck_assert_int_eq(seen, 5);
	sim_restart(sim);
	for (int i = 0; i < seen; i++) {
		ck_assert_int_eq(holds(8 * (uint64_t)i), i < 4 ? i + 1 : 0);
		ck_assert_int_eq(io[i]->done, i < 4);
		io_free(io[i]);
	}
}
END_TEST

/* A torn write: new units, one that cannot be read, old ones. */
START_TEST(a_torn_write_is_new_unreadable_and_old)
{
	struct io *io;
	int state = 0, bad = 0;

	sim_free(sim);
	sim = sim_new(NULL, SECTORS,
		      &(struct sim_options){ .atomic_bytes = 4096 });
	ck_assert_int_eq(io_run(DISK_WRITE, 0, 256, 1), 0);
	io = io_start(DISK_WRITE, 0, 256, 2);
	ck_assert_int_eq(sim_power_cut(sim, SIM_CUT_TORN, (uint64_t)_i), 0);
	sim_restart(sim);
	for (uint64_t s = 0; s < 256; s++) {
		int v = holds(s);

		ck_assert_int_eq(v, holds(s / 8 * 8));
		ck_assert(v == 2 || v == -1 || v == 1);
		if (s % 8 == 0) {
			ck_assert_int_ge(v == 2 ? 0 : v == -1 ? 1 : 2, state);
			state = v == 2 ? 0 : v == -1 ? 1 : 2;
			bad += v == -1;
		}
	}
	ck_assert_int_eq(bad, 1);
	ck_assert_int_eq(io_run(DISK_READ, 0, 256, 0), -EIO);
	ck_assert_int_eq(io_run(DISK_WRITE, 0, 256, 3), 0);
	ck_assert_int_eq(io_run(DISK_READ, 0, 256, 0), 0);
	io_free(io);
}
END_TEST

/* Every seed gives a state the cut allows, and the seeds do not agree. */
START_TEST(every_seed_gives_an_allowed_cut)
{
	struct sim_moment *m;
	struct io *io;
	int kept = 0, dropped = 0, torn = 0;

	start(true);
	ck_assert_int_eq(io_run(DISK_WRITE, 0, 64, 1), 0);
	ck_assert_int_eq(io_run(DISK_FLUSH, 0, 0, 0), 0);
	ck_assert_int_eq(io_run(DISK_WRITE, 0, 8, 2), 0);
	io = io_start(DISK_WRITE, 32, 8, 3);
	m = sim_moment_take(sim);
	sim_drain(sim);
	ck_assert_int_eq(io_run(DISK_WRITE, 0, 64, 9), 0);
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct media *left = sim_moment_cut(m, SIM_CUT_RANDOM, seed);
		int a = filled(left, 0), b = filled(left, 32);

		ck_assert(a == 1 || a == 2 || a == -1);
		ck_assert(b == 1 || b == 3 || b == -1);
		ck_assert_int_eq(filled(left, 40), 1);
		kept += a == 2;
		dropped += a == 1;
		torn += a == -1;
		media_free(left);
	}
	ck_assert(kept && dropped && torn);
	sim_moment_free(m);
	io_free(io);
}
END_TEST

/* A hundred thousand cuts are affordable. */
START_TEST(cuts_are_cheap)
{
	struct sim_moment *m;
	struct io *io;

	for (uint64_t s = 0; s < SECTORS; s += 256)
		ck_assert_int_eq(io_run(DISK_WRITE, s, 256, 1), 0);
	io = io_start(DISK_WRITE, 0, 64, 2);
	m = sim_moment_take(sim);
	for (uint64_t seed = 0; seed < 20000; seed++)
		media_free(sim_moment_cut(m, SIM_CUT_RANDOM, seed));
	sim_moment_free(m);
	sim_drain(sim);
	io_free(io);
}
END_TEST

START_TEST(fault_kth_fails)
{
	ck_assert_int_eq(sim_fault_add(sim, &(struct sim_fault){
		.kind = SIM_FAIL, .ops = SIM_WRITES, .k = 3, .times = 1 }), 0);
	for (int i = 1; i <= 5; i++)
		ck_assert_int_eq(io_run(DISK_WRITE, 8 * (uint64_t)i, 8, i),
				 i == 3 ? -EIO : 0);
	ck_assert_int_eq(holds(24), 0);
	ck_assert_uint_eq(sim_fault_hits(sim), 1);
}
END_TEST

START_TEST(fault_in_range)
{
	ck_assert_int_eq(sim_fault_add(sim, &(struct sim_fault){
		.kind = SIM_FAIL, .ops = SIM_READS, .first = 100, .sectors = 1,
		.error = -EREMOTEIO }), 0);
	ck_assert_int_eq(io_run(DISK_READ, 92, 8, 0), 0);
	ck_assert_int_eq(io_run(DISK_READ, 96, 8, 0), -EREMOTEIO);
	ck_assert_int_eq(io_run(DISK_READ, 100, 8, 0), -EREMOTEIO);
	ck_assert_int_eq(io_run(DISK_READ, 101, 8, 0), 0);
	ck_assert_int_eq(io_run(DISK_WRITE, 100, 8, 0), 0);
}
END_TEST

START_TEST(a_lying_drive_writes_elsewhere_or_not_at_all)
{
	static const struct {
		enum sim_fault_kind kind;
		int at, elsewhere;
	} lies[] = {
		{ SIM_LOSE, 1, 0 },
		{ SIM_MISDIRECT, 1, 2 },
		{ SIM_FLIP, 2, 0 },
	};

	ck_assert_int_eq(io_run(DISK_WRITE, 0, 8, 1), 0);
	ck_assert_int_eq(sim_fault_add(sim, &(struct sim_fault){
		.kind = lies[_i].kind, .ops = SIM_WRITES, .times = 1,
		.shift = 16 }), 0);
	ck_assert_int_eq(io_run(DISK_WRITE, 0, 8, 2), 0);
	ck_assert_int_eq(holds(0), lies[_i].at);
	ck_assert_int_eq(holds(16), lies[_i].elsewhere);
	if (lies[_i].kind == SIM_FLIP)
		ck_assert_int_eq(holds(4), -2);
}
END_TEST

START_TEST(fault_slow_and_stuck)
{
	struct io *slow, *stuck, *other;

	ck_assert_int_eq(sim_fault_add(sim, &(struct sim_fault){
		.kind = SIM_SLOW, .ops = SIM_READS, .times = 1,
		.delay_ns = 1000000 }), 0);
	ck_assert_int_eq(sim_fault_add(sim, &(struct sim_fault){
		.kind = SIM_STUCK, .ops = SIM_ALL, .k = 2, .times = 1 }), 0);
	slow = io_start(DISK_READ, 0, 8, 0);
	stuck = io_start(DISK_READ, 8, 8, 0);
	other = io_start(DISK_READ, 16, 8, 0);
	ck_assert_int_eq(sim_drain(sim), 2);
	ck_assert(slow->done && other->done && !stuck->done);
	ck_assert_uint_eq(other->req.complete_ns, 100000);
	ck_assert_uint_eq(slow->req.complete_ns, 1100000);
	ck_assert_uint_eq(sim_outstanding(sim), 1);
	ck_assert_int_eq(sim_power_cut(sim, SIM_CUT_KEEP, 0), 0);
	ck_assert_uint_eq(sim_outstanding(sim), 0);
	io_free(slow);
	io_free(stuck);
	io_free(other);
}
END_TEST

START_TEST(damage_and_flips_are_seen)
{
	ck_assert_int_eq(io_run(DISK_WRITE, 0, 8, 1), 0);
	ck_assert_int_eq(sim_damage(sim, 3, 1), 0);
	ck_assert_int_eq(io_run(DISK_READ, 0, 8, 0), -EIO);
	ck_assert_int_eq(io_run(DISK_READ, 4, 4, 0), 0);
	ck_assert_int_eq(sim_flip(sim, 5, 100), 0);
	ck_assert_int_eq(io_run(DISK_READ, 5, 1, 0), 0);
	ck_assert_int_eq(holds(5), -2);
}
END_TEST

/* What done() submits is served too. */
static struct io *chain[4];

static void chain_done(struct disk_request *req)
{
	struct io *io = req->owner;

	io->done = true;
	for (int i = 0; i < 3; i++) {
		if (chain[i] == io)
			disk_submit(sim_disk(sim), &chain[i + 1]->req);
	}
}

START_TEST(submits_from_done)
{
	for (int i = 0; i < 4; i++) {
		chain[i] = io_new(DISK_WRITE, 0, 8, i);
		chain[i]->req.done = chain_done;
	}
	disk_submit(sim_disk(sim), &chain[0]->req);
	ck_assert_int_eq(sim_drain(sim), 4);
	ck_assert_uint_eq(sim_now_ns(sim), 400000);
	for (int i = 0; i < 4; i++)
		io_free(chain[i]);
}
END_TEST

static void add_flat(TCase *t)
{
	tcase_add_test(t, clones_of_media_do_not_share_changes);
	tcase_add_test(t, what_was_written_is_read);
	tcase_add_test(t, time_moves_only_by_waiting);
	tcase_add_test(t, time_passes_to_the_timeout_only);
	tcase_add_test(t, host_is_late);
	tcase_add_test(t, the_same_seed_draws_the_same);
	tcase_add_loop_test(t, cut_without_cache, 0, 2);
	tcase_add_test(t, cut_with_cache);
	tcase_add_test(t, flush_covers_completed);
	tcase_add_loop_test(t, no_older_write_comes_back_over_fua, 0, 2);
	tcase_add_test(t, cut_at_kth);
	tcase_add_loop_test(t, a_torn_write_is_new_unreadable_and_old, 0, 10);
	tcase_add_test(t, every_seed_gives_an_allowed_cut);
	tcase_add_test(t, cuts_are_cheap);
	tcase_add_test(t, fault_kth_fails);
	tcase_add_test(t, fault_in_range);
	tcase_add_loop_test(t, a_lying_drive_writes_elsewhere_or_not_at_all,
			    0, 3);
	tcase_add_test(t, fault_slow_and_stuck);
	tcase_add_test(t, damage_and_flips_are_seen);
	tcase_add_test(t, submits_from_done);
}

int main(void)
{
	Suite *s = suite_create("sim");
	TCase *t = tcase_create("flat");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	add_flat(t);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

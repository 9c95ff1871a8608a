/*
 * test_queue.c - the disk queue over a disk in memory whose requests the test
 * completes when and in which order it likes.
 */
#include <errno.h>
#include <string.h>

#include "sched/queue/commit_burst.h"
#include "sched/queue/queue.h"
#include "tests/rig/test.h"

#define DISK_SECTORS 4096u
#define MAX_SECTORS 64u
#define POOL 400

/* ---- the disk ---- */

struct fake {
	struct disk disk;
	struct env env;
	uint64_t now_ns, seed;
	struct disk_request *taken[POOL];	/* in order of arrival */
	unsigned n;
	uint64_t bad_sector;			/* an access to it fails */
	bool automatic;				/* poll completes one */
	unsigned flushes;
	uint32_t content[DISK_SECTORS];		/* a number for each sector */
};

static struct fake *fake_of(struct disk *disk)
{
	return container_of(disk, struct fake, disk);
}

static bool requests_meet(const struct disk_request *a,
			  const struct disk_request *b)
{
	return a->sector < b->sector + b->sectors &&
	       b->sector < a->sector + a->sectors;
}

static void fake_submit(struct disk *disk, struct disk_request *req)
{
	struct fake *fake = fake_of(disk);
	unsigned i;

	ck_assert_uint_lt(fake->n, POOL);
	ck_assert_uint_le(req->sectors, MAX_SECTORS);
	ck_assert_uint_le(req->sector + req->sectors, DISK_SECTORS);
	for (i = 0; i < fake->n; i++)
		ck_assert(!requests_meet(fake->taken[i], req) ||
			  (fake->taken[i]->op == DISK_READ &&
			   req->op == DISK_READ));
	req->submit_ns = fake->now_ns;
	fake->taken[fake->n++] = req;
}

/* The first four bytes of a sector are its content. */
static void fake_transfer(struct fake *fake, struct disk_request *req)
{
	uint64_t sector = req->sector;
	unsigned i;
	size_t at;
	char *p;

	for (i = 0; i < req->iov_n; i++) {
		p = req->iov[i].iov_base;
		for (at = 0; at < req->iov[i].iov_len; at += SECTOR_BYTES) {
			if (req->op == DISK_READ)
				memcpy(p + at, &fake->content[sector++], 4);
			else
				memcpy(&fake->content[sector++], p + at, 4);
		}
	}
	ck_assert_uint_eq(sector, req->sector + req->sectors);
}

static void fake_complete(struct fake *fake, unsigned i)
{
	struct disk_request *req = fake->taken[i];

	fake->n--;
	memmove(&fake->taken[i], &fake->taken[i + 1],
		(fake->n - i) * sizeof(fake->taken[0]));
	fake->now_ns += 1000000;
	req->complete_ns = fake->now_ns;
	req->result = 0;
	if (req->op == DISK_FLUSH)
		fake->flushes++;
	else if (req->sector <= fake->bad_sector &&
		 fake->bad_sector < req->sector + req->sectors)
		req->result = -EIO;
	else
		fake_transfer(fake, req);
	req->done(req);
}

static int fake_poll(struct disk *disk, int64_t timeout_ns)
{
	struct fake *fake = fake_of(disk);

	(void)timeout_ns;
	if (!fake->automatic || !fake->n)
		return 0;
	fake_complete(fake, test_random(&fake->seed) % fake->n);
	return 1;
}

static int fake_event_fd(struct disk *disk)
{
	(void)disk;
	return -1;
}

static uint64_t fake_now_ns(struct env *env)
{
	return container_of(env, struct fake, env)->now_ns;
}

static const struct disk_ops fake_ops = {
	.submit = fake_submit,
	.poll = fake_poll,
	.event_fd = fake_event_fd,
};

/* ---- the requests ---- */

struct item {
	struct queue_request req;
	struct iovec iov[2];
	uint32_t *data;
	int done;
	int place;		/* the how-manieth to be done */
};

static struct fake fake;
static struct queue *queue;
static struct item items[POOL];
static int done_n;

static void setup_with(unsigned depth, const char *policy, bool volatile_cache)
{
	struct queue_options options = { depth, policy };

	memset(&fake, 0, sizeof(fake));
	memset(items, 0, sizeof(items));
	done_n = 0;
	fake.disk.ops = &fake_ops;
	fake.disk.limits = (struct disk_limits){
		.sectors = DISK_SECTORS,
		.logical_bytes = 512,
		.physical_bytes = 4096,
		.max_sectors = MAX_SECTORS,
		.volatile_cache = volatile_cache,
		.rotational = true,
	};
	fake.env.now_ns = fake_now_ns;
	fake.seed = 5;
	fake.bad_sector = UINT64_MAX;
	ck_assert_int_eq(queue_open(&fake.env, &fake.disk, &options, &queue),
			 0);
}

static void setup(void)
{
	setup_with(1, NULL, true);
}

static void teardown(void)
{
	int i;

	fake.automatic = true;
	ck_assert_int_eq(queue_drain(queue), 0);
	queue_close(queue);
	for (i = 0; i < POOL; i++)
		free(items[i].data);
}

static void item_done(struct disk_request *disk)
{
	struct item *item = disk->owner;

	item->done++;
	item->place = done_n++;
}

static struct item *submit_to(int i, enum disk_op op, enum queue_class class,
			      uint64_t sector, uint32_t sectors,
			      struct queue_place *place)
{
	struct item *item = &items[i];
	size_t half = sectors / 2 * (size_t)SECTOR_BYTES;
	size_t bytes = sectors * (size_t)SECTOR_BYTES;
	uint32_t s;

	free(item->data);
	*item = (struct item){ .data = calloc(1, bytes + 1) };
	for (s = 0; op == DISK_WRITE && s < sectors; s++)
		item->data[s * 128] = (uint32_t)(i + 1) << 16 | s;
	item->iov[0] = (struct iovec){ item->data, half };
	item->iov[1] = (struct iovec){ (char *)item->data + half,
				       bytes - half };
	item->req.class = class;
	item->req.place = place;
	item->req.disk = (struct disk_request){
		.op = op,
		.sector = sector,
		.sectors = sectors,
		.iov = item->iov,
		.iov_n = 2,
		.done = item_done,
		.owner = item,
	};
	queue_submit(queue, &item->req);
	ck_assert_int_eq(item->done, 0);
	return item;
}

static struct item *submit(int i, enum disk_op op, enum queue_class class,
			   uint64_t sector, uint32_t sectors)
{
	return submit_to(i, op, class, sector, sectors, NULL);
}

static void run(void)
{
	fake.automatic = true;
	ck_assert_int_eq(queue_drain(queue), 0);
	fake.automatic = false;
}

/* ---- choice ---- */

START_TEST(classes_come_in_order)
{
	int i;

	for (i = 0; i < QUEUE_CLASSES; i++)
		submit(i, DISK_READ, (enum queue_class)(QUEUE_CLASSES - 1 - i),
		       10 + 10 * (uint64_t)i, 1);
	run();
	for (i = 0; i < QUEUE_CLASSES; i++)
		ck_assert_int_eq(items[i].place, QUEUE_CLASSES - 1 - i);
}
END_TEST

static const uint64_t places[] = { 500, 100, 900, 300, 700 };

static void submit_places(void)
{
	int i;

	submit(9, DISK_READ, QUEUE_READ, 400, 1);
	queue_poll(queue, 0);
	for (i = 0; i < 5; i++)
		submit(i, DISK_READ, QUEUE_READ, places[i], 1);
	run();
}

START_TEST(c_look_goes_up_and_round)
{
	static const int order[] = { 0, 4, 2, 1, 3 };
	int i;

	submit_places();
	for (i = 0; i < 5; i++)
		ck_assert_int_eq(items[order[i]].place, 1 + i);
}
END_TEST

START_TEST(fcfs_keeps_order)
{
	int i;

	queue_close(queue);
	setup_with(1, "fcfs", true);
	submit_places();
	for (i = 0; i < 5; i++)
		ck_assert_int_eq(items[i].place, 1 + i);
}
END_TEST

START_TEST(age_beats_class)
{
	int i;

	submit(0, DISK_READ, QUEUE_IDLE, 4000, 1);
	submit(1, DISK_WRITE, QUEUE_WRITE_BACK, 3000, 1);
	fake.now_ns += 61000000000;
	for (i = 2; i < 20; i++)
		submit(i, DISK_READ, QUEUE_READ, (uint64_t)i * 10, 1);
	run();
	/* Each second choice goes by age. */
	ck_assert_int_le(items[0].place, 2);
	ck_assert_int_le(items[1].place, 2);
	ck_assert_uint_eq(queue_stats(queue)->overdue, 2);
}
END_TEST

/* Read-ahead that somebody waits for is a read from then on. */
START_TEST(read_ahead_is_raised)
{
	struct item *raised;
	int i;

	submit(9, DISK_READ, QUEUE_READ, 100, 1);
	queue_poll(queue, 0);
	for (i = 0; i < 3; i++)
		submit(i, DISK_READ, QUEUE_READ_AHEAD, 200 + (uint64_t)i * 40,
		       1);
	raised = submit(3, DISK_READ, QUEUE_READ_AHEAD, 2000, 1);
	queue_raise(queue, &raised->req, 0);
	queue_raise(queue, &items[9].req, 0);	/* has no effect */
	run();
	ck_assert_int_eq(items[9].place, 0);
	ck_assert_int_eq(raised->place, 1);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(items[i].done, 1);
}
END_TEST

/* Whoever raises a request brings it nearer, never farther away. */
START_TEST(the_nearer_deadline_counts)
{
	const uint64_t now_ns = fake.now_ns;
	struct item *ahead = submit(0, DISK_READ, QUEUE_READ_AHEAD, 200, 1);
	struct item *late = submit(1, DISK_READ, QUEUE_READ_AHEAD, 900, 1);

	ahead->req.deadline_ns = now_ns + 2000000000;
	queue_raise(queue, &ahead->req, now_ns + 3000000000);
	ck_assert_int_eq(ahead->req.class, QUEUE_READ);
	ck_assert_uint_eq(ahead->req.deadline_ns, now_ns + 2000000000);
	queue_raise(queue, &late->req, now_ns + 3000000000);
	ck_assert_uint_eq(late->req.deadline_ns, now_ns + 3000000000);
	queue_raise(queue, &late->req, now_ns + 1000000000);
	queue_raise(queue, &late->req, now_ns + 5000000000);
	ck_assert_uint_eq(late->req.deadline_ns, now_ns + 1000000000);
	queue_raise(queue, &late->req, 0);
	ck_assert_uint_eq(late->req.deadline_ns, 0);
	run();
	ck_assert(ahead->done && late->done);
}
END_TEST

/* Of streams that take turns one waits for the others; but not for long. */
START_TEST(hastened_read_ahead_waits_for_some_time)
{
	int i;

	for (i = 0; i < 4; i++)
		submit(i, DISK_READ, QUEUE_READ_AHEAD, 2000 - 100 * (uint64_t)i,
		       1);
	queue_hasten(queue, &items[0].req);
	queue_hasten(queue, &items[0].req);	/* the first time counts */
	submit(9, DISK_READ, QUEUE_READ, 100, 1);
	queue_poll(queue, 0);
	ck_assert_int_eq(items[0].req.class, QUEUE_READ_AHEAD);
	fake.now_ns += 121000000;
	run();
	ck_assert_int_eq(items[9].place, 0);
	ck_assert_int_eq(items[0].place, 1);
	ck_assert_uint_eq(queue_stats(queue)->overdue, 1);
}
END_TEST

/* Readers with a pace: what is wanted sooner is read first, however far, and
 * what is wanted at nearly the same time as it lies. */
START_TEST(what_is_wanted_soon_is_read_first)
{
	const uint64_t now_ns = fake.now_ns + 10000000000;
	int i;

	for (i = 0; i < 5; i++) {
		submit(i, DISK_READ, QUEUE_READ_AHEAD, 100, 1);
		run();
		items[i].done = 0;
		items[i].req.disk.sector = 100 * (unsigned)(i + 1);
	}
	items[0].req.deadline_ns = now_ns + 5000000000;
	items[1].req.deadline_ns = now_ns + 1000000000;
	items[2].req.deadline_ns = now_ns + 6000000000;
	items[3].req.deadline_ns = now_ns + 900000000;
	items[4].req.deadline_ns = now_ns + 950000000;
	submit(9, DISK_READ, QUEUE_READ, 10, 1);
	run();
	fake.now_ns = now_ns;
	done_n = 0;
	for (i = 0; i < 5; i++)
		queue_submit(queue, &items[i].req);
	run();
	ck_assert_int_eq(items[1].place, 0);
	ck_assert_int_eq(items[3].place, 1);
	ck_assert_int_eq(items[4].place, 2);
	ck_assert_int_eq(items[0].place, 3);
	ck_assert_int_eq(items[2].place, 4);
}
END_TEST

/* What a reader wants much later goes with what it wants now only if nobody
 * else is late. */
START_TEST(what_is_wanted_late_stays_back)
{
	submit(1, DISK_READ, QUEUE_READ, 216, 16);
	run();
	items[1].done = 0;
	done_n = 0;
	items[1].req.deadline_ns = fake.now_ns + 5000000000;
	submit(9, DISK_READ, QUEUE_READ, 10, 1);
	run();
	done_n = 0;
	submit(0, DISK_READ, QUEUE_READ, 200, 16);
	queue_submit(queue, &items[1].req);
	submit(2, DISK_READ, QUEUE_READ, 2000, 16);
	fake.now_ns += _i * 1000000000ull;
	queue_poll(queue, 0);
	ck_assert_uint_eq(fake.taken[0]->sector, 200);
	ck_assert_uint_eq(fake.taken[0]->sectors, _i ? 16 : 32);
	run();
	ck_assert_int_eq(items[1].done, 1);
	ck_assert_int_eq(items[1].place, _i ? 2 : 1);
}
END_TEST

/* The way to a read is made once for what is read ahead behind it, up to as
 * much as is read. */
START_TEST(read_ahead_goes_with_its_read)
{
	submit(0, DISK_READ, QUEUE_READ_AHEAD, 216, 16);
	submit(1, DISK_READ, QUEUE_READ_AHEAD, 232, 16);
	submit(2, DISK_READ, QUEUE_READ, 200, 16);
	queue_poll(queue, 0);
	ck_assert_uint_eq(fake.n, 1);
	ck_assert_uint_eq(fake.taken[0]->sector, 200);
	ck_assert_uint_eq(fake.taken[0]->sectors, 32);
	run();
	ck_assert_int_eq(items[0].done, 1);
	ck_assert_int_eq(items[1].done, 1);
}
END_TEST

/* The turn of what is read ahead has come: who waits for what lies beside it
 * needs no access of his own. */
START_TEST(a_read_goes_with_what_is_read_ahead)
{
	submit(0, DISK_READ, QUEUE_READ_AHEAD, 216, 16);
	fake.now_ns += 10000000000;
	submit(1, DISK_READ, QUEUE_READ, 200, 16);
	submit(2, DISK_READ, QUEUE_READ, 232, 16);
	submit(3, DISK_READ, QUEUE_READ, 249, 16);
	queue_poll(queue, 0);
	ck_assert_uint_eq(fake.taken[0]->sector, 200);
	ck_assert_uint_eq(fake.taken[0]->sectors, 48);
	run();
	ck_assert_int_eq(items[1].done, 1);
	ck_assert_int_eq(items[2].done, 1);
}
END_TEST

/* What is read ahead of a stream has waited for so long that it is its turn:
 * the next of the stream goes first all the same. */
START_TEST(a_stream_keeps_its_order)
{
	int i;

	for (i = 8; i < 16; i++)
		submit(i, DISK_READ, QUEUE_READ_AHEAD,
		       (uint64_t)i * MAX_SECTORS, MAX_SECTORS);
	fake.now_ns += 10000000000;
	for (i = 0; i < 8; i++)
		submit(i, DISK_READ, QUEUE_READ, (uint64_t)i * MAX_SECTORS,
		       MAX_SECTORS);
	run();
	for (i = 0; i < 16; i++)
		ck_assert_int_eq(items[i].place, i);
}
END_TEST

START_TEST(a_deadline_goes_before_class_and_position)
{
	struct item *late;

	submit(0, DISK_READ, QUEUE_READ, 100, 1);
	late = submit(1, DISK_READ, QUEUE_IDLE, 300, 1);
	run();
	ck_assert_int_eq(late->place, 1);
	fake.now_ns = 1000;
	submit(0, DISK_READ, QUEUE_READ, 100, 1);
	late->done = 0;
	late->req.deadline_ns = 1000;
	queue_submit(queue, &late->req);
	run();
	ck_assert_int_eq(late->place, 2);
	ck_assert_int_eq(items[0].place, 3);
}
END_TEST

START_TEST(depth_is_bounded)
{
	int i;

	queue_close(queue);
	setup_with(0, NULL, true);
	for (i = 0; i < 20; i++)
		submit(i, DISK_READ, QUEUE_READ, (uint64_t)i * 10, 1);
	ck_assert_uint_eq(fake.n, 0);
	queue_poll(queue, 0);
	ck_assert_uint_eq(fake.n, 4);
	fake_complete(&fake, 2);
	ck_assert_int_eq(done_n, 0);
	ck_assert_int_eq(queue_poll(queue, 0), 1);
	ck_assert_uint_eq(fake.n, 4);
	ck_assert(!queue_idle(queue));
}
END_TEST

/* ---- merging, pieces, refusals ---- */

START_TEST(neighbours_become_one_access)
{
	static const uint64_t at[] = { 108, 100, 116, 124, 92 };
	int i;

	for (i = 0; i < 5; i++)
		submit(i, DISK_WRITE, QUEUE_WRITE_BACK, at[i], 8);
	submit(5, DISK_READ, QUEUE_READ, 132, 8);
	queue_poll(queue, 0);
	fake_complete(&fake, 0);
	queue_poll(queue, 0);
	ck_assert_uint_eq(fake.n, 1);
	ck_assert_uint_eq(fake.taken[0]->sector, 92);
	ck_assert_uint_eq(fake.taken[0]->sectors, 40);
	run();
	for (i = 0; i < 5; i++) {
		ck_assert_int_eq(items[i].done, 1);
		ck_assert_int_eq(items[i].req.disk.result, 0);
		ck_assert_uint_eq(fake.content[at[i] + 7],
				  (uint32_t)(i + 1) << 16 | 7);
	}
	ck_assert_uint_eq(queue_stats(queue)->merged, 4);
	ck_assert_uint_eq(queue_stats(queue)->accesses, 2);
}
END_TEST

START_TEST(merging_has_a_limit)
{
	int i;

	for (i = 0; i < 8; i++)
		submit(i, DISK_READ, QUEUE_READ, (uint64_t)i * 24, 24);
	queue_poll(queue, 0);
	ck_assert_uint_eq(fake.taken[0]->sectors, 48);
	run();
	ck_assert_uint_eq(queue_stats(queue)->accesses, 4);
}
END_TEST

START_TEST(failure_is_not_shared)
{
	int i;

	fake.bad_sector = 120;
	for (i = 0; i < 4; i++)
		submit(i, DISK_READ, QUEUE_READ, 100 + (uint64_t)i * 8, 8);
	run();
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(items[i].done, 1);
		ck_assert_int_eq(items[i].req.disk.result,
				 i == 2 ? -EIO : 0);
	}
	ck_assert_uint_eq(queue_stats(queue)->accesses, 5);
}
END_TEST

START_TEST(large_requests_go_in_pieces)
{
	uint32_t s;

	submit(0, DISK_WRITE, QUEUE_WRITE_BACK, 1000, 1001);
	submit(1, DISK_READ, QUEUE_READ, 1000, 1001);
	run();
	ck_assert_int_eq(items[0].req.disk.result, 0);
	ck_assert_int_eq(items[1].req.disk.result, 0);
	for (s = 0; s < 1001; s++)
		ck_assert_uint_eq(items[1].data[s * 128], 1u << 16 | s);
	ck_assert_uint_eq(queue_stats(queue)->accesses, 32);
	fake.bad_sector = 1300;
	submit(2, DISK_READ, QUEUE_READ, 1000, 1001);
	run();
	ck_assert_int_eq(items[2].req.disk.result, -EIO);
}
END_TEST

START_TEST(bad_requests_are_refused)
{
	submit(0, DISK_READ, QUEUE_READ, DISK_SECTORS - 1, 2);
	submit(1, DISK_READ, QUEUE_READ, UINT64_MAX, 2);
	submit(2, DISK_READ, QUEUE_READ, 5, 0);
	fake.disk.limits.logical_bytes = 4096;
	submit(3, DISK_READ, QUEUE_READ, 8, 4);
	submit(4, DISK_READ, QUEUE_READ, 4, 8);
	fake.disk.limits.read_only = true;
	submit(5, DISK_WRITE, QUEUE_READ, 8, 8);
	submit(6, DISK_READ, QUEUE_READ, 8, 8);
	run();
	ck_assert_int_eq(items[0].req.disk.result, -EINVAL);
	ck_assert_int_eq(items[1].req.disk.result, -EINVAL);
	ck_assert_int_eq(items[2].req.disk.result, -EINVAL);
	ck_assert_int_eq(items[3].req.disk.result, -EINVAL);
	ck_assert_int_eq(items[4].req.disk.result, -EINVAL);
	ck_assert_int_eq(items[5].req.disk.result, -EROFS);
	ck_assert_int_eq(items[6].req.disk.result, 0);
}
END_TEST

START_TEST(unknown_policy_is_refused)
{
	struct queue_options options = { 1, "sstf?" };
	struct queue *other;

	ck_assert_int_eq(queue_open(&fake.env, &fake.disk, &options, &other),
			 -EINVAL);
}
END_TEST

/* ---- order ---- */

START_TEST(what_meets_a_write_waits)
{
	queue_close(queue);
	setup_with(8, NULL, true);
	submit(0, DISK_WRITE, QUEUE_WRITE_BACK, 100, 10);
	submit(1, DISK_READ, QUEUE_COMMIT, 105, 10);
	submit(2, DISK_WRITE, QUEUE_COMMIT, 109, 3);
	submit(3, DISK_READ, QUEUE_READ, 200, 1);
	submit(4, DISK_READ, QUEUE_READ, 200, 4);
	queue_poll(queue, 0);
	ck_assert_uint_eq(fake.n, 3);
	ck_assert_uint_eq(queue_stats(queue)->held, 2);
	run();
	ck_assert_int_lt(items[0].place, items[1].place);
	ck_assert_int_lt(items[1].place, items[2].place);
	ck_assert_uint_eq(items[1].data[0], 1u << 16 | 5);
	ck_assert_uint_eq(fake.content[109], 3u << 16);
}
END_TEST

/* What each sector holds when all that was submitted is taken in order. */
static uint32_t model[DISK_SECTORS];
static uint32_t expected[POOL][130];

static void submit_random(int i, uint64_t *seed)
{
	bool write = test_random(seed) % 2;
	uint32_t n = 1 + test_random(seed) % (i % 10 ? 12 : 130), s;
	uint64_t at = test_random(seed) % (300 - n);

	submit(i, write ? DISK_WRITE : DISK_READ,
	       test_random(seed) % QUEUE_CLASSES, at, n);
	for (s = 0; s < n; s++) {
		if (write)
			model[at + s] = items[i].data[s * 128];
		expected[i][s] = model[at + s];
	}
}

START_TEST(random_requests_are_as_in_order)
{
	uint64_t seed = 100 + (uint64_t)_i;
	uint32_t s;
	int i;

	queue_close(queue);
	setup_with(1 + (unsigned)_i, _i % 2 ? "fcfs" : NULL, true);
	memset(model, 0, sizeof(model));
	for (i = 0; i < POOL; i++) {
		submit_random(i, &seed);
		fake.automatic = test_random(&seed) % 2;
		if (test_random(&seed) % 4 == 0)
			ck_assert_int_ge(queue_poll(queue, 0), 0);
	}
	run();
	for (i = 0; i < POOL; i++) {
		ck_assert_int_eq(items[i].done, 1);
		ck_assert_int_eq(items[i].req.disk.result, 0);
		for (s = 0; s < items[i].req.disk.sectors; s++)
			ck_assert_uint_eq(items[i].data[s * 128],
					  expected[i][s]);
	}
	for (s = 0; s < DISK_SECTORS; s++)
		ck_assert_uint_eq(fake.content[s], model[s]);
}
END_TEST

/* ---- flushes ---- */

static void flush(int i)
{
	struct item *item = &items[i];

	*item = (struct item){ .data = NULL };
	item->req.disk.done = item_done;
	item->req.disk.owner = item;
	queue_flush(queue, &item->req);
	ck_assert_int_eq(item->done, 0);
}

START_TEST(flushes_are_saved)
{
	ck_assert(queue_unflushed(queue));
	flush(0);
	run();
	ck_assert_uint_eq(fake.flushes, 1);
	ck_assert(!queue_unflushed(queue));
	submit(1, DISK_WRITE, QUEUE_COMMIT, 8, 8);
	queue_poll(queue, 0);
	ck_assert(!queue_unflushed(queue));
	fake_complete(&fake, 0);
	ck_assert(queue_unflushed(queue));
	flush(2);
	flush(3);
	/* A write that is over before the flush has begun is covered; one
	 * that completes while it is under way is not. */
	queue_poll(queue, 0);
	ck_assert_uint_eq(fake.n, 1);
	ck_assert(queue_unflushed(queue));
	fake_complete(&fake, 0);
	ck_assert(!queue_unflushed(queue));
	flush(4);
	run();
	ck_assert_uint_eq(fake.flushes, 2);
	ck_assert_uint_eq(queue_stats(queue)->flushes, 2);
	ck_assert_uint_eq(queue_stats(queue)->flushes_saved, 1);
	ck_assert_int_eq(items[4].done, 1);
}
END_TEST

START_TEST(write_under_a_flush_stays_unflushed)
{
	queue_close(queue);
	setup_with(4, NULL, true);
	submit(0, DISK_WRITE, QUEUE_COMMIT, 8, 8);
	queue_poll(queue, 0);
	flush(1);
	queue_poll(queue, 0);
	ck_assert_uint_eq(fake.n, 2);
	fake_complete(&fake, 0);
	fake_complete(&fake, 0);
	queue_poll(queue, 0);
	ck_assert_int_eq(items[1].done, 1);
	ck_assert(queue_unflushed(queue));
}
END_TEST

START_TEST(no_cache_no_flush)
{
	queue_close(queue);
	setup_with(1, NULL, false);
	submit(0, DISK_WRITE, QUEUE_COMMIT, 8, 8);
	run();
	ck_assert(!queue_unflushed(queue));
	flush(1);
	ck_assert(!queue_idle(queue));
	ck_assert_int_eq(queue_poll(queue, -1), 1);
	ck_assert_int_eq(items[1].done, 1);
	ck_assert_uint_eq(fake.flushes, 0);
}
END_TEST

START_TEST(sync_helpers_wait)
{
	uint32_t in[128 * 4] = { 0 }, out[128 * 4] = { 0 };

	in[128] = 77;
	fake.automatic = true;
	ck_assert_int_eq(queue_write(queue, 40, 4, in), 0);
	ck_assert_int_eq(queue_flush_wait(queue), 0);
	ck_assert_int_eq(queue_read(queue, 40, 4, out), 0);
	ck_assert_uint_eq(out[128], 77);
	ck_assert_int_eq(queue_read(queue, DISK_SECTORS, 4, out), -EINVAL);
	ck_assert_uint_eq(queue_stats(queue)->class[QUEUE_READ].bytes, 2048);
}
END_TEST

/* ---- places ---- */

struct open_place {
	struct queue_place place;
	uint64_t free;		/* the next sector to give; 0: none */
	unsigned found, taken;
};

static int place_find(struct queue_place *place,
		      const struct head_state *head_state, uint32_t sectors,
		      uint64_t *sector, uint64_t *cost_ns)
{
	struct open_place *open = container_of(place, struct open_place, place);

	ck_assert_ptr_null(head_state);
	(void)sectors;
	open->found++;
	if (!open->free)
		return -ENOSPC;
	*sector = open->free;
	*cost_ns = 0;
	return 0;
}

static void place_take(struct queue_place *place, struct queue_request *req,
		       uint64_t sector)
{
	struct open_place *open = container_of(place, struct open_place, place);

	ck_assert_uint_eq(sector, open->free);
	ck_assert_uint_eq(req->disk.sector, sector);
	open->free += req->disk.sectors;
	open->taken++;
}

static void submit_open(int i, struct open_place *open, uint32_t sectors)
{
	open->place = (struct queue_place){ .find = place_find,
					    .take = place_take };
	submit_to(i, DISK_WRITE, QUEUE_WRITE_BACK, 0, sectors, &open->place);
}

START_TEST(places_are_found_at_dispatch)
{
	struct open_place open = { .free = 1000 };
	int i;

	for (i = 0; i < 3; i++)
		submit_open(i, &open, 8);
	ck_assert_uint_eq(open.found, 0);
	queue_poll(queue, 0);
	ck_assert_uint_eq(open.taken, 1);	/* depth 1 */
	run();
	ck_assert_uint_eq(open.taken, 3);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(items[i].req.disk.result, 0);
		ck_assert_uint_eq(fake.content[1000 + i * 8], (i + 1) << 16);
	}
}
END_TEST

START_TEST(no_place_ends_the_request)
{
	struct open_place open = { 0 };

	submit_open(0, &open, 8);
	submit(1, DISK_WRITE, QUEUE_WRITE_BACK, 64, 8);
	run();
	ck_assert_int_eq(items[0].req.disk.result, -ENOSPC);
	ck_assert_int_eq(items[1].req.disk.result, 0);
	ck_assert_uint_eq(open.taken, 0);
}
END_TEST

/* What a place meets is waited for, like any other. */
START_TEST(a_place_may_be_busy)
{
	struct open_place open = { .free = 64 };

	submit(0, DISK_READ, QUEUE_READ, 64, 8);
	submit(1, DISK_READ, QUEUE_READ, 200, 8);
	queue_poll(queue, 0);
	submit_open(2, &open, 8);
	run();
	ck_assert_int_eq(items[2].req.disk.result, 0);
	ck_assert_uint_eq(items[0].data[0], 0);
	ck_assert_uint_eq(fake.content[64], 3 << 16);
}
END_TEST

/* ---- idle time ---- */

static int idle_asked;
static uint64_t idle_sector;

static struct queue_request *no_gap(void *arg,
				    const struct head_state *head_state,
				    const struct service_request *next,
				    bool joins)
{
	(void)arg;
	(void)head_state;
	(void)next;
	(void)joins;
	return NULL;
}

static struct queue_request *idle_read(void *arg,
				       const struct head_state *head_state,
				       uint64_t quiet_ns, uint64_t *again_ns)
{
	struct item *item = &items[50];

	(void)arg;
	ck_assert_ptr_null(head_state);
	ck_assert_uint_le(quiet_ns, fake.now_ns);
	if (idle_asked++) {
		*again_ns = UINT64_MAX;
		return NULL;
	}
	item->iov[0] = (struct iovec){ item->data, 8 * SECTOR_BYTES };
	item->req = (struct queue_request){
		.disk = {
			.op = DISK_READ,
			.sector = idle_sector,
			.sectors = 8,
			.iov = item->iov,
			.iov_n = 1,
			.done = item_done,
			.owner = item,
		},
		.class = QUEUE_IDLE,
	};
	return &item->req;
}

static bool wants_nothing(void *arg)
{
	(void)arg;
	return false;
}

START_TEST(idle_time_is_filled)
{
	static const struct queue_filler filler = {
		no_gap, idle_read, wants_nothing, NULL, NULL
	};

	items[50].data = calloc(8, SECTOR_BYTES);
	idle_asked = 0;
	idle_sector = 96;
	queue_set_filler(queue, &filler, NULL);
	submit(0, DISK_READ, QUEUE_READ, 8, 8);
	queue_poll(queue, 0);
	ck_assert_int_eq(idle_asked, 0);
	run();
	ck_assert_int_ge(idle_asked, 1);
	run();
	ck_assert_int_eq(items[50].done, 1);
	ck_assert_int_eq(items[50].req.disk.result, 0);
	ck_assert_int_eq(idle_asked, 2);
	queue_poll(queue, 0);
	ck_assert_int_eq(idle_asked, 2);	/* never again ... */
	queue_ask_filler(queue);
	queue_poll(queue, 0);
	ck_assert_int_eq(idle_asked, 3);	/* ... unless told */
	queue_set_filler(queue, NULL, NULL);
}
END_TEST

/* Commits that follow each other at once are waited for; now and then what
 * waits behind them has its turn. */
START_TEST(commits_in_a_hurry)
{
	struct commit_burst hurry = { 0 };
	uint64_t now_ns = 1000000000, until_ns;
	unsigned n, turns = 0;

	ck_assert_uint_eq(commit_burst_until_ns(&hurry, now_ns), 0);
	for (n = 0; n < 1000; n++) {
		commit_burst_submit(&hurry, now_ns);
		commit_burst_turn(&hurry, now_ns);
		if (commit_burst_is_turn(&hurry, now_ns)) {
			turns++;
			now_ns = hurry.until_ns;
		} else if (n > 100) {
			ck_assert_uint_eq(commit_burst_until_ns(&hurry, now_ns),
					  UINT64_MAX);
		}
		now_ns += 1000000;
		commit_burst_done(&hurry, now_ns, n >= 100);
		until_ns = commit_burst_until_ns(&hurry, now_ns);
		if (n > 100 && !commit_burst_is_turn(&hurry, now_ns))
			ck_assert_uint_gt(until_ns, now_ns + 50000);
		ck_assert_uint_lt(until_ns, now_ns + 10000000);
		now_ns += 50000;
	}
	/* One commit in 150 has waited. */
	ck_assert_uint_eq(turns, 5);
	/* Who pauses is no longer waited for. */
	now_ns += 50000000;
	commit_burst_submit(&hurry, now_ns);
	commit_burst_done(&hurry, now_ns + 1000000, true);
	ck_assert_uint_eq(commit_burst_until_ns(&hurry, now_ns + 1000000), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("queue");
	TCase *all = tcase_create("all");

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, classes_come_in_order);
	tcase_add_test(all, c_look_goes_up_and_round);
	tcase_add_test(all, fcfs_keeps_order);
	tcase_add_test(all, age_beats_class);
	tcase_add_test(all, read_ahead_is_raised);
	tcase_add_test(all, the_nearer_deadline_counts);
	tcase_add_test(all, hastened_read_ahead_waits_for_some_time);
	tcase_add_test(all, what_is_wanted_soon_is_read_first);
	tcase_add_loop_test(all, what_is_wanted_late_stays_back, 0, 2);
	tcase_add_test(all, read_ahead_goes_with_its_read);
	tcase_add_test(all, a_read_goes_with_what_is_read_ahead);
	tcase_add_test(all, a_stream_keeps_its_order);
	tcase_add_test(all, a_deadline_goes_before_class_and_position);
	tcase_add_test(all, depth_is_bounded);
	tcase_add_test(all, neighbours_become_one_access);
	tcase_add_test(all, merging_has_a_limit);
	tcase_add_test(all, failure_is_not_shared);
	tcase_add_test(all, large_requests_go_in_pieces);
	tcase_add_test(all, bad_requests_are_refused);
	tcase_add_test(all, unknown_policy_is_refused);
	tcase_add_test(all, what_meets_a_write_waits);
	tcase_add_loop_test(all, random_requests_are_as_in_order, 0, 9);
	tcase_add_test(all, flushes_are_saved);
	tcase_add_test(all, write_under_a_flush_stays_unflushed);
	tcase_add_test(all, no_cache_no_flush);
	tcase_add_test(all, sync_helpers_wait);
	tcase_add_test(all, places_are_found_at_dispatch);
	tcase_add_test(all, no_place_ends_the_request);
	tcase_add_test(all, a_place_may_be_busy);
	tcase_add_test(all, idle_time_is_filled);
	tcase_add_test(all, commits_in_a_hurry);
	suite_add_tcase(suite, all);
	return test_run(suite);
}

/*
 * test_log.c - the log on the simulated disk: what was acknowledged is there
 * after any power cut, damage is healed from the mirror or told, and nothing of
 * an earlier life is taken for a record.
 */
#include <errno.h>
#include <string.h>

#include "base/msg.h"
#include "base/sort.h"
#include "disk/fault.h"
#include "log/log.h"
#include "sim/sim.h"
#include "tests/rig/doubt.h"
#include "tests/rig/test.h"

#define TRACKS 6u
#define TRACK_SECTORS 1024u
#define SECTORS 131072u
#define EPOCH 0x1111u

static const uint8_t uuid[16] = { 7, 7, 7 };

/* ---- A log on a disk ---------------------------------------------------- */

struct rig {
	const struct doubt *doubt;	/* NULL: no drive that is known */
	struct head *head;
	struct sim *sim;
	struct queue *queue;
	struct log *log;
	struct super super;
	unsigned records, waits;	/* answered by wait_done */
	unsigned depth;			/* of the queue; 0: as it likes */
	size_t untold_bytes;
	int rc;
};

static void super_make(struct super *super, unsigned tracks, uint32_t sectors,
		       uint32_t record_bytes)
{
	memset(super, 0, sizeof(*super));
	memcpy(super->uuid, uuid, 16);
	super->sectors = SECTORS;
	super->logical_bytes = 512;
	super->physical_bytes = 4096;
	super->record_bytes = record_bytes;
	super->log_tracks = tracks;
	for (unsigned i = 0; i < tracks; i++)
		super->log[i] = (struct super_track){
			1001 + i * 10000, sectors + 8
		};
}

static void rig_attach(struct rig *r)
{
	const struct queue_options options = { .depth = r->depth };
	const struct log_options log_options = {
		.untold_bytes = r->untold_bytes,
	};

	ck_assert_int_eq(queue_open(sim_env(r->sim), sim_disk(r->sim),
				    &options, &r->queue), 0);
	queue_set_head(r->queue, r->head);
	ck_assert_int_eq(log_open(sim_env(r->sim), r->queue, &r->super,
				  &log_options, &r->log), 0);
}

static void rig_detach(struct rig *r)
{
	/* The queue may have a reading of its own under way. */
	if (!sim_is_off(r->sim))
		ck_assert_int_eq(queue_drain(r->queue), 0);
	log_close(r->log);
	queue_close(r->queue);
	r->log = NULL;
	r->queue = NULL;
}

/* `doubt` NULL: a disk that takes the same time for everything. */
static struct rig rig_new_on(const struct doubt *doubt, bool volatile_cache,
			     unsigned tracks, uint32_t sectors)
{
	const struct sim_options options = {
		.seed = 1, .volatile_cache = volatile_cache,
		.atomic_bytes = doubt ? 512 : 4096,
	};
	struct rig r = { .doubt = doubt };

	super_make(&r.super, tracks, sectors, doubt ? 512 : 0);
	r.sim = sim_new(doubt ? doubt->is : NULL, SECTORS, &options);
	ck_assert_ptr_nonnull(r.sim);
	if (doubt) {
		r.head = doubt_head(doubt, sim_env(r.sim));
		doubt_learn(sim_env(r.sim), sim_disk(r.sim), r.head, 1);
	}
	rig_attach(&r);
	ck_assert_int_eq(log_start(r.log, EPOCH, 1, 0, 0, 1), 0);
	return r;
}

static struct rig rig_new(bool volatile_cache, unsigned tracks,
			  uint32_t sectors)
{
	return rig_new_on(NULL, volatile_cache, tracks, sectors);
}

static void rig_free(struct rig *r)
{
	rig_detach(r);
	head_close(r->head);
	sim_free(r->sim);
}

static void wait_done(struct waiter *w, int rc)
{
	struct rig *r = w->owner;

	r->waits++;
	r->rc = rc;
}

/* Turns the loop until `waits` are answered or power is gone. */
static void rig_turn(struct rig *r, unsigned waits)
{
	while (r->waits < waits && !sim_is_off(r->sim)) {
		log_run(r->log, sim_now_ns(r->sim));
		ck_assert_msg(r->waits == waits || !queue_idle(r->queue),
			      "stuck");
		if (r->waits < waits &&
		    queue_poll(r->queue, queue_idle(r->queue) ? 0 : -1) < 0)
			return;
	}
}

/* What a test puts into the log: a number, then bytes that follow from it. */
static uint64_t add(struct rig *r, uint64_t number, size_t bytes)
{
	static uint8_t buf[TRAX_MAX_RECORD_BYTES];
	struct iovec iov[2] = { { &number, 8 }, { buf, bytes } };

	memset(buf, (int)(number * 31), bytes);
	return log_add(r->log, iov, bytes ? 2 : 1);
}

static int commit(struct rig *r)
{
	struct waiter w = { .seq = UINT64_MAX, .done = wait_done,
			    .owner = r };
	const unsigned before = r->waits;

	list_init(&w.link);
	log_commit(r->log, &w);
	ck_assert_uint_eq(r->waits, before);
	rig_turn(r, before + 1);
	return r->waits > before ? r->rc : -ESHUTDOWN;
}

static int drain(struct rig *r)
{
	struct waiter w = { .done = wait_done, .owner = r };
	const unsigned before = r->waits;

	list_init(&w.link);
	log_drain(r->log, &w);
	rig_turn(r, before + 1);
	return r->waits > before ? r->rc : -ESHUTDOWN;
}

/* ---- Reading it back ---------------------------------------------------- */

#define MAX_SEEN 4096u

struct seen {
	uint64_t seq[MAX_SEEN];
	uint64_t number[MAX_SEEN];	/* first of the record */
	bool apply[MAX_SEEN];
	unsigned n;
	uint64_t last, chain;
};

static int see(void *arg, uint64_t seq, uint32_t id, bool apply,
	       const void *payload, size_t bytes)
{
	struct seen *s = arg;

	(void)id;
	ck_assert_uint_ge(bytes, 8);
	ck_assert_uint_lt(s->n, MAX_SEEN);
	s->seq[s->n] = seq;
	memcpy(&s->number[s->n], payload, 8);
	s->apply[s->n++] = apply;
	return 0;
}

static int recover_from(struct rig *r, uint64_t cut, uint64_t chain,
			uint64_t tail, struct seen *s)
{
	const struct log_replay replay = {
		.epoch = EPOCH, .cut_seq = cut, .cut_chain = chain,
		.tail_seq = tail, .record = see, .arg = s,
	};

	s->n = 0;
	return log_recover(r->log, &replay, &s->last, &s->chain);
}

/* Power off, if it is on, and on again, with the given fate of what is in the
 * air. */
static void reboot(struct rig *r, enum sim_cut cut)
{
	if (!sim_is_off(r->sim))
		sim_power_cut(r->sim, cut, 5);
	ck_assert_int_lt(queue_poll(r->queue, 0), 0);
	rig_detach(r);
	sim_restart(r->sim);
	head_close(r->head);
	r->head = r->doubt ? doubt_head(r->doubt, sim_env(r->sim)) : NULL;
	rig_attach(r);
}

static int recover(struct rig *r, struct seen *s)
{
	return recover_from(r, 0, 0, 1, s);
}

static void check_seen(const struct seen *s, unsigned n)
{
	ck_assert_uint_eq(s->n, n);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_uint_eq(s->seq[i], s->seq[0] + i);
		ck_assert_uint_eq(s->number[i], s->seq[i]);
	}
}

static void quiet(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

/* Where a record lies: first sector of the original or of its mirror. */
static uint64_t find_record(struct rig *r, uint64_t seq, bool mirror)
{
	static uint8_t buf[(TRACK_SECTORS + 8) * 512];
	const uint32_t unit = super_record_unit(&r->super) / 512;

	for (unsigned t = 0; t < r->super.log_tracks; t++) {
		const uint64_t first =
			(r->super.log[t].sector + unit - 1) / unit * unit;

		ck_assert_int_eq(disk_read(sim_disk(r->sim), first,
					   TRACK_SECTORS, buf), 0);
		for (uint64_t at = 0; at < TRACK_SECTORS; at += unit) {
			const struct log_header *h =
				(const void *)(buf + at * 512);

			if (log_header_verify(h, (TRACK_SECTORS - at) * 512,
					      uuid, first + at))
				continue;
			if (le64_get(h->seq) == seq &&
			    !(le32_get(h->flags) & LOG_MIRROR) == !mirror)
				return first + at;
		}
	}
	return 0;
}

/* ---- Commits ------------------------------------------------------------ */

START_TEST(commits_survive)
{
	struct rig r = rig_new(_i & 1, TRACKS, TRACK_SECTORS);
	static struct seen s;
	struct log_stats stats;

	for (unsigned i = 1; i <= 20; i++) {
		ck_assert_uint_eq(add(&r, i, i * 100), i);
		ck_assert(log_has_pending(r.log));
		ck_assert_uint_ne(log_pending_since_ns(r.log), UINT64_MAX);
		ck_assert_int_eq(commit(&r), 0);
		ck_assert_uint_eq(log_durable_seq(r.log), i);
		ck_assert(!log_has_pending(r.log));
	}
	ck_assert_uint_eq(log_pending_since_ns(r.log), UINT64_MAX);
	ck_assert_int_eq(commit(&r), 0);	/* nothing to do */
	log_get_stats(r.log, &stats);
	ck_assert_uint_eq(stats.records, 20);
	ck_assert_uint_eq(stats.commits, 21);
	add(&r, 21, 5);				/* never committed */
	reboot(&r, SIM_CUT_DROP);
	ck_assert_int_eq(recover(&r, &s), 0);
	check_seen(&s, 20);
	ck_assert_uint_eq(s.last, 20);
	ck_assert(s.apply[0]);
	rig_free(&r);
}
END_TEST

START_TEST(commits_share_a_write)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	struct waiter w[10];
	struct log_stats stats;

	for (unsigned i = 0; i < 10; i++) {
		w[i] = (struct waiter){ .seq = add(&r, 1 + i, 10),
					.done = wait_done, .owner = &r };
		ck_assert_uint_eq(w[i].seq, i ? 2 : 1);
		log_commit(r.log, &w[i]);
	}
	ck_assert_uint_eq(r.waits, 0);
	rig_turn(&r, 10);
	ck_assert_int_eq(r.rc, 0);
	log_get_stats(r.log, &stats);
	ck_assert_uint_eq(stats.records, 2);
	ck_assert_uint_eq(stats.commits, 10);
	rig_free(&r);
}
END_TEST

START_TEST(full_records_go_out_by_themselves)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	static struct seen s;

	for (unsigned i = 1; i <= 5; i++)
		ck_assert_uint_eq(add(&r, i, 200 << 10), i);
	/* Three wait for a fourth, and go with it. */
	while (log_durable_seq(r.log) < 4)
		ck_assert_int_ge(queue_poll(r.queue, -1), 0);
	ck_assert(log_has_pending(r.log));
	ck_assert_int_eq(commit(&r), 0);
	reboot(&r, SIM_CUT_DROP);
	ck_assert_int_eq(recover(&r, &s), 0);
	check_seen(&s, 5);
	rig_free(&r);
}
END_TEST

/* Data written before the commit is durable with it. */
START_TEST(flushes_what_it_speaks_of)
{
	struct rig r = rig_new(true, TRACKS, TRACK_SECTORS);
	static uint8_t data[4096] __attribute__((aligned(4096)));

	memset(data, 42, sizeof(data));
	ck_assert_int_eq(queue_write(r.queue, 60000, 8, data), 0);
	add(&r, 1, 10);
	ck_assert_int_eq(commit(&r), 0);
	reboot(&r, SIM_CUT_DROP);
	memset(data, 0, sizeof(data));
	ck_assert_int_eq(queue_read(r.queue, 60000, 8, data), 0);
	ck_assert_uint_eq(data[4095], 42);
	rig_free(&r);
}
END_TEST

/* What the drive had not yet written when its flush failed may be gone, and
 * nobody writes it again: neither this commit nor a later one succeeds. */
START_TEST(nothing_is_acknowledged_after_a_failed_flush)
{
	const struct sim_fault fault = { .kind = SIM_FAIL, .ops = SIM_FLUSHES,
					 .k = 1, .times = 1 };
	struct rig r = rig_new(true, TRACKS, TRACK_SECTORS);
	static uint8_t data[4096] __attribute__((aligned(4096)));

	ck_assert_int_eq(queue_write(r.queue, 60000, 8, data), 0);
	ck_assert_int_eq(sim_fault_add(r.sim, &fault), 0);
	add(&r, 1, 10);
	ck_assert_int_eq(commit(&r), -EIO);
	ck_assert(log_failed(r.log));
	add(&r, 2, 10);
	ck_assert_int_eq(commit(&r), -EIO);
	rig_free(&r);
}
END_TEST

/* The same when it was the flush of somebody else that failed. */
START_TEST(a_failed_flush_of_others_counts)
{
	const struct sim_fault fault = { .kind = SIM_FAIL, .ops = SIM_FLUSHES,
					 .k = 1, .times = 1 };
	struct rig r = rig_new(true, TRACKS, TRACK_SECTORS);
	static uint8_t data[4096] __attribute__((aligned(4096)));

	ck_assert_int_eq(queue_write(r.queue, 60000, 8, data), 0);
	ck_assert_int_eq(sim_fault_add(r.sim, &fault), 0);
	ck_assert_int_eq(queue_flush_wait(r.queue), -EIO);
	add(&r, 1, 10);
	ck_assert_int_eq(commit(&r), -EIO);
	ck_assert_int_eq(queue_flush_wait(r.queue), -EIO);
	rig_free(&r);
}
END_TEST

/* Writes to a track fail twice while the log is nearly as full as it may be:
 * the places that failed still have room for what was promised. */
START_TEST(failed_writes_take_no_room)
{
	static const size_t sizes[] = { 3000, 60 << 10, 120 << 10, 240 << 10 };
	const size_t bytes = sizes[_i % 4];
	struct rig r = rig_new(false, 2 + (unsigned)_i / 4, TRACK_SECTORS);
	struct sim_fault fault = { .kind = SIM_FAIL, .ops = SIM_WRITES,
				   .k = 1, .times = 3 };
	unsigned i = 0;

	while (log_reserve(r.log, bytes + 8, true)) {
		sim_fault_clear(r.sim);
		ck_assert_int_eq(sim_fault_add(r.sim, &fault), 0);
		add(&r, ++i, bytes);
		log_release(r.log, bytes + 8);
		ck_assert_int_eq(commit(&r), 0);
	}
	ck_assert_uint_gt(i, 0);
	rig_free(&r);
}
END_TEST

START_TEST(torn_tail_is_the_end)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	struct waiter w = { .seq = UINT64_MAX, .done = wait_done,
			    .owner = &r };
	static struct seen s;

	add(&r, 1, 10);
	ck_assert_int_eq(commit(&r), 0);
	add(&r, 2, 50000);
	log_commit(r.log, &w);
	ck_assert_int_eq(queue_poll(r.queue, 0), 0);	/* it is in the air */
	reboot(&r, SIM_CUT_TORN);
	ck_assert_int_eq(recover(&r, &s), 0);
	check_seen(&s, 1);
	rig_free(&r);
}
END_TEST

/* ---- Twins -------------------------------------------------------------- */

static void ten_commits(struct rig *r)
{
	for (unsigned i = 1; i <= 10; i++) {
		add(r, i, 3000);
		ck_assert_int_eq(commit(r), 0);
	}
}

/* Where nothing is known of the head a record that needs a fresh track gets the
 * one nearest to what was written last. */
START_TEST(goes_on_near_what_was_written)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	const struct super_track *near = &r.super.log[TRACKS - 2];
	static uint8_t block[4096] __attribute__((aligned(4096)));
	const uint64_t at = (near->sector + 2000) / 8 * 8;
	uint64_t seq, first, record;

	seq = add(&r, 1, 3000);
	ck_assert_int_eq(commit(&r), 0);
	first = find_record(&r, seq, false);
	ck_assert_uint_lt(first, r.super.log[1].sector);
	do {
		ck_assert_int_eq(queue_write(r.queue, at, 8, block), 0);
		seq = add(&r, seq + 1, 3000);
		ck_assert_int_eq(commit(&r), 0);
		record = find_record(&r, seq, false);
	} while (record < r.super.log[1].sector);
	ck_assert_uint_ge(record, near->sector);
	ck_assert_uint_lt(record, near->sector + near->sectors);
	rig_free(&r);
}
END_TEST

START_TEST(mirrors_wait_for_quiet)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	struct log_stats stats;
	uint64_t due;

	ten_commits(&r);
	due = log_run(r.log, sim_now_ns(r.sim));
	ck_assert_uint_gt(due, sim_now_ns(r.sim) + 45000000);
	ck_assert_uint_le(due, sim_now_ns(r.sim) + 50000000);
	ck_assert(queue_idle(r.queue));
	sim_advance(r.sim, due - sim_now_ns(r.sim) - 20000000);
	add(&r, 11, 3000);
	ck_assert_int_eq(commit(&r), 0);
	due = log_run(r.log, sim_now_ns(r.sim));
	ck_assert_uint_gt(due, sim_now_ns(r.sim) + 45000000);
	ck_assert_uint_le(due, sim_now_ns(r.sim) + 50000000);
	sim_advance(r.sim, due - sim_now_ns(r.sim));
	ck_assert_uint_eq(log_run(r.log, sim_now_ns(r.sim)), UINT64_MAX);
	ck_assert_int_eq(queue_drain(r.queue), 0);
	log_get_stats(r.log, &stats);
	ck_assert_uint_eq(stats.mirror_writes, 1);
	ck_assert_uint_eq(log_run(r.log, sim_now_ns(r.sim)), UINT64_MAX);
	for (unsigned i = 1; i <= 11; i++) {
		const uint64_t a = find_record(&r, i, false);
		const uint64_t b = find_record(&r, i, true);

		ck_assert(a && b);
		ck_assert_uint_gt(b > a ? b - a : a - b, TRACK_SECTORS);
	}
	rig_free(&r);
}
END_TEST

/* Nobody waits for these: they are not written twice.  When somebody is told of
 * them after all, those that are still there are, and a checkpoint is wanted
 * for the others. */
START_TEST(nobody_waits_for_mirrors)
{
	struct rig r = rig_new(false, 2 * TRACKS, TRACK_SECTORS);
	struct log_stats stats;
	uint64_t due, last = 0, missing;

	while (last < 14) {
		last = add(&r, last, 100000);
		ck_assert_int_eq(queue_drain(r.queue), 0);
	}
	ck_assert_uint_eq(log_run(r.log, sim_now_ns(r.sim)), UINT64_MAX);
	log_get_stats(r.log, &stats);
	ck_assert_uint_ge(stats.records, 8);
	ck_assert_uint_eq(stats.mirror_writes, 0);
	ck_assert_uint_eq(log_checkpoint_ns(r.log), UINT64_MAX);
	ck_assert_int_eq(commit(&r), 0);
	log_get_stats(r.log, &stats);
	missing = stats.mirrors_skipped;
	ck_assert_uint_gt(missing, 0);
	ck_assert_uint_ne(log_checkpoint_ns(r.log), UINT64_MAX);
	ck_assert_int_eq(queue_drain(r.queue), 0);	/* a full stage */
	due = log_run(r.log, sim_now_ns(r.sim));
	sim_advance(r.sim, due - sim_now_ns(r.sim));
	log_run(r.log, sim_now_ns(r.sim));
	ck_assert_int_eq(queue_drain(r.queue), 0);
	ck_assert_uint_ne(find_record(&r, last, true), 0);
	ck_assert_uint_eq(find_record(&r, 1, true), 0);
	log_trim(r.log, last);
	ck_assert_uint_eq(log_checkpoint_ns(r.log), UINT64_MAX);
	rig_free(&r);
}
END_TEST

/* Mirrors of records of 100 KB each that are written when nobody has waited for
 * them but at the end, or for each (`told`). */
static unsigned mirrors_of(size_t untold_bytes, bool told)
{
	struct rig r = rig_new(false, 2 * TRACKS, TRACK_SECTORS);
	unsigned mirrors = 0;
	uint64_t due, last = 0, i;

	rig_detach(&r);
	r.untold_bytes = untold_bytes;
	rig_attach(&r);
	ck_assert_int_eq(log_start(r.log, EPOCH, 1, 0, 0, 1), 0);
	while (last < 14) {
		last = add(&r, last, 100000);
		if (told)
			ck_assert_int_eq(commit(&r), 0);
		ck_assert_int_eq(queue_drain(r.queue), 0);
	}
	ck_assert_int_eq(commit(&r), 0);
	while ((due = log_run(r.log, sim_now_ns(r.sim))) != UINT64_MAX ||
	       !queue_idle(r.queue)) {
		if (due != UINT64_MAX && due > sim_now_ns(r.sim))
			sim_advance(r.sim, due - sim_now_ns(r.sim));
		log_run(r.log, sim_now_ns(r.sim));
		ck_assert_int_eq(queue_drain(r.queue), 0);
	}
	for (i = 1; i <= last; i++)
		mirrors += find_record(&r, i, true) != 0;
	rig_free(&r);
	return mirrors;
}

/* With little memory few copies of what nobody waits for are kept, and all of
 * what somebody was told of. */
START_TEST(little_memory_keeps_few_copies)
{
	const unsigned few = mirrors_of(1, false);

	ck_assert_uint_ge(few, 1);
	ck_assert_uint_ge(mirrors_of(0, false), 2 * few);
	ck_assert_uint_ge(mirrors_of(1, true), 14);
}
END_TEST

/* Who relies on a record gets it a mirror, and so does a root whose data is
 * still in the log. */
START_TEST(relied_upon_has_a_mirror)
{
	struct rig r = rig_new(false, 2 * TRACKS, TRACK_SECTORS);
	uint64_t due, last = 0, cut, chain;

	while (last < 6) {
		last = add(&r, last, 100000);
		ck_assert_int_eq(queue_drain(r.queue), 0);
	}
	ck_assert_uint_gt(log_durable_seq(r.log), 0);
	ck_assert_uint_eq(log_run(r.log, sim_now_ns(r.sim)), UINT64_MAX);
	if (_i == 0) {
		log_depend_on(r.log, 1);
	} else {
		if (_i == 2)
			log_pin(r.log, 1);
		log_cut(r.log, 2, &cut, &chain);
		ck_assert_int_eq(queue_drain(r.queue), 0);
	}
	due = log_run(r.log, sim_now_ns(r.sim));
	if (due != UINT64_MAX) {
		sim_advance(r.sim, due - sim_now_ns(r.sim));
		log_run(r.log, sim_now_ns(r.sim));
		ck_assert_int_eq(queue_drain(r.queue), 0);
	}
	ck_assert_uint_eq(find_record(&r, 1, true) != 0, _i != 1);
	rig_free(&r);
}
END_TEST

/* The log is too full for all mirrors of what somebody was told of: a
 * checkpoint is wanted instead. */
START_TEST(full_log_leaves_mirrors_out)
{
	struct rig r = rig_new(false, 2 * TRACKS, TRACK_SECTORS);
	struct log_stats stats;

	rig_detach(&r);
	r.depth = 1;			/* records go before mirrors */
	rig_attach(&r);
	ck_assert_int_eq(log_start(r.log, EPOCH, 1, 0, 0, 1), 0);
	for (uint64_t i = 1; i <= 16; i++)
		ck_assert_uint_eq(add(&r, i, 250000), i);
	ck_assert_int_eq(commit(&r), 0);
	ck_assert_int_eq(queue_drain(r.queue), 0);
	ck_assert_int_eq(drain(&r), 0);
	log_get_stats(r.log, &stats);
	ck_assert_uint_eq(stats.records, 16);
	ck_assert_uint_ge(stats.mirrors_skipped, 10);
	ck_assert_uint_ne(log_checkpoint_ns(r.log), UINT64_MAX);
	log_trim(r.log, 16);
	ck_assert_uint_eq(log_checkpoint_ns(r.log), UINT64_MAX);
	rig_free(&r);
}
END_TEST

START_TEST(drain_writes_everything)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);

	ten_commits(&r);
	add(&r, 11, 10);
	ck_assert_int_eq(drain(&r), 0);
	ck_assert(queue_idle(r.queue));
	ck_assert_uint_eq(log_durable_seq(r.log), 11);
	ck_assert_uint_ne(find_record(&r, 11, true), 0);
	ck_assert_int_eq(drain(&r), 0);		/* nothing to do */
	rig_free(&r);
}
END_TEST

enum loss { NOTHING, UNREADABLE, HEADER, PAYLOAD };

static void lose(struct rig *r, uint64_t sector, enum loss loss)
{
	ck_assert_uint_ne(sector, 0);
	if (loss == UNREADABLE)
		sim_damage(r->sim, sector, 1);
	else if (loss == HEADER)
		sim_flip(r->sim, sector, 321);
	else if (loss == PAYLOAD)
		sim_flip(r->sim, sector + 3, 7);
}

/* The seventh record is lost in one way or the other. */
static int lose_seventh(struct rig *r, enum loss original, enum loss mirror,
			struct seen *s)
{
	const uint64_t at = find_record(r, 7, false);
	const uint64_t mirror_at = find_record(r, 7, true);

	lose(r, at, original);
	if (original)
		lose(r, at + 8, original);	/* its parity */
	lose(r, mirror_at, mirror);
	reboot(r, SIM_CUT_DROP);
	return recover(r, s);
}

START_TEST(mirror_heals)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	static struct seen s;

	msg_set_sink(quiet, NULL);
	ten_commits(&r);
	ck_assert_int_eq(drain(&r), 0);
	if (_i % 2)
		ck_assert_int_eq(lose_seventh(&r, NOTHING, 1 + _i / 2, &s),
				 0);
	else
		ck_assert_int_eq(lose_seventh(&r, 1 + _i / 2, NOTHING, &s),
				 0);
	check_seen(&s, 10);
	rig_free(&r);
}
END_TEST

START_TEST(loss_of_both_is_told)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	static struct seen s;

	msg_set_sink(quiet, NULL);
	ten_commits(&r);
	ck_assert_int_eq(drain(&r), 0);
	ck_assert_int_eq(lose_seventh(&r, 1 + _i % 3, 1 + _i / 3, &s),
			 -EUCLEAN);
	check_seen(&s, 6);
	ck_assert_uint_eq(s.last, 6);
	rig_free(&r);
}
END_TEST

/* ---- Damage before there is a mirror ------------------------------------ */

enum newest_damage { UNIT_UNREADABLE, UNIT_FLIPPED, UNIT_ZEROED };

static void damage_unit(struct rig *r, uint64_t sector,
			enum newest_damage damage)
{
	static const uint8_t zeros[4096] __attribute__((aligned(4096)));

	if (damage == UNIT_UNREADABLE)
		sim_damage(r->sim, sector + 5, 1);
	else if (damage == UNIT_FLIPPED)
		sim_flip(r->sim, sector, 555);
	else
		ck_assert_int_eq(disk_write(sim_disk(r->sim), sector, 8, zeros),
				 0);
}

/* Nine records, and a tenth of `units` units and one of parity; no mirrors. */
static struct rig rig_with_newest(unsigned units, uint64_t *at)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);

	msg_set_sink(quiet, NULL);
	for (unsigned i = 1; i <= 9; i++) {
		add(&r, i, 3000);
		ck_assert_int_eq(commit(&r), 0);
	}
	add(&r, 10, 4096 * (size_t)units - 1000);
	ck_assert_int_eq(commit(&r), 0);
	*at = find_record(&r, 10, false);
	ck_assert_uint_ne(*at, 0);
	ck_assert_uint_eq(find_record(&r, 10, true), 0);
	return r;
}

static const unsigned newest_units[] = { 1, 2, 5, 62 };

/* Any one unit of the newest record may be bad: it is made again. */
START_TEST(one_bad_unit_is_rebuilt)
{
	const unsigned units = newest_units[_i % 4];
	static struct seen s;

	for (unsigned bad = 0; bad <= units; bad += bad < 5 ? 1 : 19) {
		uint64_t at;
		struct rig r = rig_with_newest(units, &at);

		damage_unit(&r, at + 8 * bad, (enum newest_damage)(_i / 4));
		reboot(&r, SIM_CUT_DROP);
		ck_assert_int_eq(recover(&r, &s), 0);
		check_seen(&s, 10);
		rig_free(&r);
	}
}
END_TEST

/* The record is read again after its payload had to leave the memory. */
START_TEST(rebuilt_records_are_read_again)
{
	static struct seen s;
	struct rig r = rig_new(false, 12, TRACK_SECTORS);
	uint64_t at;

	msg_set_sink(quiet, NULL);
	for (unsigned i = 1; i <= 11; i++) {
		add(&r, i, 240 << 10);
		ck_assert_int_eq(commit(&r), 0);
	}
	at = find_record(&r, 11, false);
	ck_assert_uint_ne(at, 0);
	damage_unit(&r, at + 8 * (unsigned)_i, _i % 3);
	reboot(&r, SIM_CUT_DROP);
	ck_assert_int_eq(recover(&r, &s), 0);
	check_seen(&s, 11);
	rig_free(&r);
}
END_TEST

/* Two sectors that cannot be read are not what a power cut leaves: it is said
 * that a record may be lost. */
START_TEST(two_unreadable_units_are_told)
{
	static struct seen s;
	uint64_t at;
	struct rig r = rig_with_newest(5, &at);

	damage_unit(&r, at + 8 * (unsigned)(_i / 6), UNIT_UNREADABLE);
	damage_unit(&r, at + 8 * (unsigned)(_i % 6), UNIT_UNREADABLE);
	reboot(&r, SIM_CUT_DROP);
	ck_assert_int_eq(recover(&r, &s),
			 _i / 6 == _i % 6 ? 0 : -EUCLEAN);
	check_seen(&s, _i / 6 == _i % 6 ? 10 : 9);
	rig_free(&r);
}
END_TEST

/* Each power cut may leave a sector that cannot be read: the next mount writes
 * it, so that several of them do not look like a lost record. */
START_TEST(torn_sectors_are_written_again)
{
	static struct seen s;
	uint64_t at;
	struct rig r = rig_with_newest(5, &at);

	damage_unit(&r, at, UNIT_ZEROED);
	damage_unit(&r, at + 24, UNIT_UNREADABLE);
	reboot(&r, SIM_CUT_DROP);
	ck_assert_int_eq(recover(&r, &s), 0);
	check_seen(&s, 9);
	ck_assert_int_eq(log_start(r.log, EPOCH + 1, 2, s.last, s.chain, 1),
			 0);
	reboot(&r, SIM_CUT_DROP);
	damage_unit(&r, at + 8, UNIT_UNREADABLE);
	ck_assert_int_eq(recover(&r, &s), 0);
	check_seen(&s, 9);
	rig_free(&r);
}
END_TEST

/* What cannot be read and is known to hold something else says nothing. */
START_TEST(unreadable_units_of_others_say_nothing)
{
	static struct seen s;
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	uint64_t at[9];

	msg_set_sink(quiet, NULL);
	for (unsigned i = 1; i <= 10; i++) {
		add(&r, i, 9000);
		ck_assert_int_eq(commit(&r), 0);
	}
	for (unsigned i = 3; i <= 8; i++)
		at[i] = find_record(&r, i, false);
	for (unsigned i = 3; i <= 8; i++)
		damage_unit(&r, at[i] + 8 * (i % 4), UNIT_UNREADABLE);
	reboot(&r, SIM_CUT_DROP);
	ck_assert_int_eq(recover(&r, &s), 0);
	check_seen(&s, 10);
	rig_free(&r);
}
END_TEST

/* A record of which a power cut left two units out is the end, without a word;
 * the mirrors of those before it tell no more than that. */
START_TEST(a_torn_record_is_the_end)
{
	static struct seen s;
	uint64_t at;
	struct rig r = rig_with_newest(5, &at);

	damage_unit(&r, at + 8, UNIT_ZEROED);
	damage_unit(&r, at + 8 * (unsigned)_i, UNIT_ZEROED);
	reboot(&r, SIM_CUT_DROP);
	ck_assert_int_eq(recover(&r, &s), 0);
	check_seen(&s, 9);
	rig_free(&r);
}
END_TEST

/* ---- Records of an earlier life ----------------------------------------- */

static void record_write(struct rig *r, uint64_t sector, uint64_t epoch,
			 uint64_t seq, uint64_t prev, uint64_t *chain)
{
	static uint8_t buf[4096] __attribute__((aligned(4096)));
	struct log_header *h = (void *)buf;

	*chain = log_chain(epoch, seq, prev, &seq, 8);
	*h = (struct log_header){
		.magic = le32_put(TRAX_LOG_MAGIC),
		.bytes = le32_put(4096),
		.payload = le32_put(8),
		.epoch = le64_put(epoch),
		.seq = le64_put(seq),
		.addr = le64_put(sector),
		.acked = le64_put(seq - 1 < 100 ? seq - 1 : 100),
		.prev = le64_put(prev),
		.chain = le64_put(*chain),
	};
	memcpy(h->uuid, uuid, 16);
	memcpy(h + 1, &seq, 8);
	log_header_seal(h);
	ck_assert_int_eq(queue_write(r->queue, sector, 8, buf), 0);
}

/*
 * 100 is the cut.  The old life lost 101 and left 102, which names the lost
 * 101.  The new life has a new epoch, then its own 101; the same once more with
 * the epoch of the old one, where only the chain can tell.
 */
START_TEST(nothing_of_an_earlier_life)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	const uint64_t epoch = _i ? EPOCH : EPOCH + 1;
	const uint64_t at = r.super.log[0].sector + 7;
	static struct seen s;
	uint64_t lost = 123, chain;

	record_write(&r, at + 8, epoch, 102, lost, &chain);
	record_write(&r, at, EPOCH, 101, 55, &chain);
	rig_detach(&r);
	rig_attach(&r);
	ck_assert_int_eq(recover_from(&r, 100, 55, 101, &s), 0);
	check_seen(&s, 1);
	ck_assert_uint_eq(s.last, 101);
	ck_assert_uint_eq(s.chain, chain);
	/* And one that another file system left here. */
	r.super.uuid[0]++;
	rig_detach(&r);
	rig_attach(&r);
	ck_assert_int_eq(recover_from(&r, 100, 55, 101, &s), 0);
	ck_assert_uint_eq(s.n, 0);
	rig_free(&r);
}
END_TEST

/* ---- Cut, hold, trim ---------------------------------------------------- */

/* Waits for room as the tree does: cuts, and its root is durable at once. */
static void add_with_room(struct rig *r, uint64_t number, size_t bytes,
			  uint64_t *cut, uint64_t *chain, uint64_t *tail)
{
	while (!log_reserve(r->log, bytes + 8, false)) {
		log_cut(r->log, 2, cut, chain);
		*tail = log_oldest_pinned(r->log);
		if (*tail > *cut)
			*tail = *cut + 1;
		ck_assert_int_eq(commit(r), 0);
		log_trim(r->log, *cut);
	}
	add(r, number, bytes);
	log_release(r->log, bytes + 8);
}

START_TEST(a_log_that_wraps_around_loses_nothing)
{
	static const struct { unsigned tracks; uint32_t sectors; } shapes[] = {
		{ 2, 512 }, { 2, 1024 }, { 3, 640 }, { 6, 1024 },
	};
	struct rig r = rig_new(_i & 1, shapes[_i / 2].tracks,
			       shapes[_i / 2].sectors);
	uint64_t cut = 0, chain = 0, tail = 1, rng = 9;
	static struct seen s;
	struct log_stats stats;

	for (unsigned i = 1; i <= 400; i++) {
		add_with_room(&r, i, test_random(&rng) % 60000, &cut, &chain,
			      &tail);
		ck_assert_int_eq(commit(&r), 0);
		if (test_random(&rng) % 8 == 0) {
			sim_advance(r.sim, 60000000);
			log_run(r.log, sim_now_ns(r.sim));
		}
		ck_assert_uint_le(log_fill_percent(r.log), 100);
	}
	log_get_stats(r.log, &stats);
	ck_assert_uint_eq(stats.records, 400);
	if (r.super.log_tracks > 3)
		ck_assert_uint_eq(stats.stalls, 0);
	ck_assert_uint_gt(cut, 0);
	reboot(&r, SIM_CUT_DROP);
	ck_assert_int_eq(recover_from(&r, cut, chain, tail, &s), 0);
	ck_assert_uint_eq(s.last, 400);
	check_seen(&s, 400 - (unsigned)cut);
	rig_free(&r);
}
END_TEST

/*
 * Promises of all sizes at once, kept in any order, each with a commit of its
 * own, while mirrors go their way: nobody waits for a checkpoint that has not
 * been promised its room.
 */
START_TEST(promises_are_kept)
{
	struct rig r = rig_new(false, 2 + (unsigned)_i % 4,
			       512u << _i / 4 % 2);
	const size_t most = TRAX_MAX_RECORD_BYTES - 2 * TRAX_BLOCK_BYTES;
	uint64_t rng = (uint64_t)_i, cut, chain, number = 0;

	for (unsigned round = 0; round < 60; round++) {
		size_t promised[200];
		unsigned n = 0;

		do {
			promised[n] = 9 + test_random(&rng) %
				(test_random(&rng) % 3 ? 3000 : most - 8);
		} while (log_reserve(r.log, promised[n], false) && ++n < 200);
		/* Who waits for buffers lets the disk work. */
		if (!n)
			ck_assert_int_eq(commit(&r), 0);
		while (n) {
			const unsigned i = (unsigned)(test_random(&rng) % n);

			if (test_random(&rng) % 4 == 0) {
				sim_advance(r.sim, 60000000);
				log_run(r.log, sim_now_ns(r.sim));
			}
			add(&r, ++number, promised[i] - 8);
			if (test_random(&rng) % 2)
				ck_assert_int_eq(commit(&r), 0);
			log_release(r.log, promised[i]);
			promised[i] = promised[--n];
		}
		if (log_fill_percent(r.log) < 40)
			continue;
		log_cut(r.log, 2, &cut, &chain);
		ck_assert_int_eq(commit(&r), 0);
		log_trim(r.log, cut);
	}
	ck_assert_uint_gt(number, 60);
	ck_assert_int_eq(drain(&r), 0);
	rig_free(&r);
}
END_TEST

START_TEST(held_records_are_kept)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	uint64_t cut, chain;
	static struct seen s;
	unsigned fill, n;

	for (n = 1; n <= 20; n++) {
		add(&r, n, 30000);
		if (n == 5 || n == 19)
			log_pin(r.log, n);
		ck_assert_int_eq(commit(&r), 0);
	}
	ck_assert_uint_eq(log_oldest_pinned(r.log), 5);
	log_cut(r.log, 2, &cut, &chain);
	ck_assert_uint_eq(cut, 20);
	log_unpin(r.log, 5);		/* after the cut: its root says 5 */
	ck_assert_uint_eq(log_oldest_pinned(r.log), 19);
	log_trim(r.log, cut);
	for (; log_reserve(r.log, 30008, true); n++) {
		add(&r, n, 30000);
		log_release(r.log, 30008);
		ck_assert_int_eq(commit(&r), 0);
	}
	ck_assert_int_eq(drain(&r), 0);
	fill = log_fill_percent(r.log);
	rig_detach(&r);
	rig_attach(&r);
	ck_assert_int_eq(recover_from(&r, cut, chain, 5, &s), 0);
	check_seen(&s, n - 5);
	ck_assert_uint_eq(s.seq[0], 5);
	ck_assert(!s.apply[15]);
	ck_assert(s.apply[16]);

	/* The next life keeps them until its first root. */
	ck_assert_int_eq(log_start(r.log, EPOCH, 2, s.last, s.chain, 5), 0);
	ck_assert_uint_ge(log_fill_percent(r.log), fill);
	log_trim(r.log, s.last);
	ck_assert_uint_eq(log_fill_percent(r.log), 0);
	rig_free(&r);
}
END_TEST

START_TEST(lost_data_record_is_told)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	uint64_t cut, chain, at;
	static struct seen s;

	msg_set_sink(quiet, NULL);
	ten_commits(&r);
	log_cut(r.log, 2, &cut, &chain);
	for (unsigned i = 11; i <= 14; i++) {
		add(&r, i, 100);
		ck_assert_int_eq(commit(&r), 0);
	}
	at = find_record(&r, 7, false);
	sim_flip(r.sim, at, 900);
	sim_flip(r.sim, at + 8, 900);		/* its parity */
	rig_detach(&r);
	rig_attach(&r);
	ck_assert_int_eq(recover_from(&r, cut, chain, 5, &s), -EUCLEAN);
	check_seen(&s, 7);		/* 8 to 14 */
	ck_assert_uint_eq(s.seq[0], 8);
	ck_assert_uint_eq(s.last, 14);
	ck_assert_int_eq(recover_from(&r, cut, chain, 8, &s), 0);
	check_seen(&s, 7);
	rig_free(&r);
}
END_TEST

START_TEST(reserves_keep_the_log_from_filling)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	unsigned n = 0;

	while (log_reserve(r.log, 100000, false))
		n++;
	ck_assert_uint_ge(n, 4);
	ck_assert_uint_le(log_fill_percent(r.log), 80);
	/* All of them add, each with a commit of its own. */
	for (unsigned i = 1; i <= n; i++) {
		add(&r, i, 100000 - 8);
		ck_assert_int_eq(commit(&r), 0);
		log_release(r.log, 100000);
	}
	for (unsigned i = n + 1; log_reserve(r.log, 30000, false); i++) {
		add(&r, i, 30000 - 8);
		ck_assert_int_eq(commit(&r), 0);
		log_release(r.log, 30000);
	}
	ck_assert_uint_ge(log_fill_percent(r.log), 70);
	ck_assert(log_reserve(r.log, 30000, true));
	ck_assert_int_eq(drain(&r), 0);
	rig_free(&r);
}
END_TEST

/* One that is alone may fill what is kept from several. */
START_TEST(the_last_room_is_for_one_alone)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	const size_t bytes = 4000;
	unsigned n = 1;

	for (; log_reserve(r.log, bytes, true); n++) {
		log_release(r.log, bytes);
		add(&r, n, bytes - 8);
		if (!log_reserve(r.log, bytes, true))
			break;
		log_release(r.log, bytes);
		ck_assert_int_eq(commit(&r), 0);
	}
	/* Beside a record that is on its way 95 % are the end. */
	ck_assert(!log_is_alone(r.log));
	ck_assert_int_eq(drain(&r), 0);
	ck_assert(log_is_alone(r.log));
	ck_assert_uint_le(log_fill_percent(r.log), 95);
	ck_assert(log_reserve(r.log, bytes, true));
	/* What it is promised it gets. */
	add(&r, n + 1, bytes - 8);
	log_release(r.log, bytes);
	ck_assert_int_eq(commit(&r), 0);
	ck_assert_uint_le(log_fill_percent(r.log), 99);
	rig_free(&r);
}
END_TEST

/* ---- Errors ------------------------------------------------------------- */

START_TEST(write_errors_are_retried)
{
	struct rig r = rig_new(_i & 1, TRACKS, TRACK_SECTORS);
	const struct sim_fault fault = {
		.kind = SIM_FAIL, .ops = SIM_WRITES, .k = 3, .times = 3,
	};
	static struct seen s;
	struct log_stats stats;

	ck_assert_int_eq(sim_fault_add(r.sim, &fault), 0);
	ten_commits(&r);
	log_get_stats(r.log, &stats);
	ck_assert_uint_eq(stats.retries, 3);
	ck_assert_uint_eq(sim_fault_hits(r.sim), 3);
	sim_fault_clear(r.sim);
	reboot(&r, SIM_CUT_DROP);
	ck_assert_int_eq(recover(&r, &s), 0);
	check_seen(&s, 10);
	rig_free(&r);
}
END_TEST

START_TEST(a_bad_track_is_left)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	const struct sim_fault fault = {
		.kind = SIM_FAIL, .ops = SIM_WRITES,
		.first = r.super.log[0].sector, .sectors = 1032, .k = 1,
	};
	struct log_stats stats;

	ck_assert_int_eq(sim_fault_add(r.sim, &fault), 0);
	ten_commits(&r);
	log_get_stats(r.log, &stats);
	ck_assert_uint_eq(stats.retries, 1);
	rig_free(&r);
}
END_TEST

START_TEST(errors_everywhere_fail_the_log)
{
	struct rig r = rig_new(_i & 1, TRACKS, TRACK_SECTORS);
	const struct sim_fault fault = {
		.kind = SIM_FAIL, .ops = SIM_WRITES, .k = 1,
	};
	struct waiter w[3];

	msg_set_sink(quiet, NULL);
	add(&r, 1, 10);
	ck_assert_int_eq(commit(&r), 0);
	ck_assert_int_eq(sim_fault_add(r.sim, &fault), 0);
	for (unsigned i = 0; i < 3; i++) {
		w[i] = (struct waiter){ .seq = add(&r, 2 + i, 10),
					.done = wait_done, .owner = &r };
		log_commit(r.log, &w[i]);
	}
	rig_turn(&r, 4);
	ck_assert_int_eq(r.rc, -EIO);
	ck_assert(log_failed(r.log));
	ck_assert_uint_eq(log_durable_seq(r.log), 1);
	for (unsigned i = 0; i < 100; i++)
		add(&r, 5, 60000);
	ck_assert_int_eq(commit(&r), -EIO);
	ck_assert_int_eq(drain(&r), -EIO);
	rig_free(&r);
}
END_TEST

/* The disk does not answer for a while: the record is written when it does, or
 * the log fails after as many tries as the table of disk/fault.h has. */
START_TEST(a_disk_that_is_away_is_waited_for)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	const struct fault_row *row = fault_row(FAULT_LOG, FAULT_TRANSPORT);
	const bool gone = _i;
	const struct sim_fault fault = {
		.kind = SIM_FAIL, .ops = SIM_WRITES, .k = 1,
		.times = row->retries + gone, .error = -ETIMEDOUT,
	};
	const uint64_t begun = sim_now_ns(r.sim);
	struct waiter w = { .seq = UINT64_MAX, .done = wait_done, .owner = &r };
	struct log_stats stats;

	msg_set_sink(quiet, NULL);
	ck_assert_int_eq(sim_fault_add(r.sim, &fault), 0);
	add(&r, 1, 3000);
	log_commit(r.log, &w);
	while (!r.waits) {
		const uint64_t next = log_run(r.log, sim_now_ns(r.sim));

		if (!queue_idle(r.queue))
			ck_assert_int_ge(queue_poll(r.queue, -1), 0);
		else if (!r.waits && next > sim_now_ns(r.sim))
			sim_advance(r.sim, next - sim_now_ns(r.sim));
	}
	ck_assert_int_eq(r.rc, gone ? -EIO : 0);
	ck_assert_int_eq(log_failed(r.log), gone);
	log_get_stats(r.log, &stats);
	ck_assert_uint_eq(stats.retries, row->retries);
	ck_assert_uint_gt(sim_now_ns(r.sim) - begun, UINT64_C(30000000000));
	rig_free(&r);
}
END_TEST

/* As many places as the table has are tried for a record. */
START_TEST(a_bad_place_is_left_for_others)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	const struct fault_row *row = fault_row(FAULT_LOG, FAULT_MEDIA);
	const struct sim_fault fault = {
		.kind = SIM_FAIL, .ops = SIM_WRITES, .k = 1,
		.times = row->places + (unsigned)_i,
	};

	msg_set_sink(quiet, NULL);
	ck_assert_int_eq(sim_fault_add(r.sim, &fault), 0);
	add(&r, 1, 3000);
	ck_assert_int_eq(commit(&r), _i ? -EIO : 0);
	ck_assert_int_eq(log_failed(r.log), _i);
	rig_free(&r);
}
END_TEST

START_TEST(mirrors_may_fail)
{
	struct rig r = rig_new(false, TRACKS, TRACK_SECTORS);
	const struct sim_fault fault = {
		.kind = SIM_FAIL, .ops = SIM_WRITES, .k = 1,
		.times = (unsigned)_i,
	};
	struct log_stats stats;

	msg_set_sink(quiet, NULL);
	ten_commits(&r);
	ck_assert_int_eq(sim_fault_add(r.sim, &fault), 0);
	ck_assert_int_eq(drain(&r), 0);
	log_get_stats(r.log, &stats);
	ck_assert_uint_eq(stats.mirrors_skipped, _i == 4 ? 10 : 0);
	rig_free(&r);
}
END_TEST

/* ---- Power cuts --------------------------------------------------------- */

/* One workload: records of many sizes, cuts, holds, quiet times.  Stops when
 * power is gone. */
struct life {
	uint64_t cut, chain, tail;	/* of the durable root */
	uint64_t acked, added;
	uint64_t held;			/* 0: none */
};

static bool live_root(struct rig *r, struct life *l)
{
	uint64_t cut, chain, tail;

	log_cut(r->log, 2, &cut, &chain);
	tail = log_oldest_pinned(r->log);
	if (commit(r))
		return false;
	l->acked = cut;
	log_trim(r->log, cut);
	l->cut = cut;
	l->chain = chain;
	l->tail = tail <= cut ? tail : cut + 1;
	return true;
}

static void live(struct rig *r, struct life *l, uint64_t seed)
{
	uint64_t rng = seed;

	for (unsigned i = 1; i <= 60 && !sim_is_off(r->sim); i++) {
		const size_t bytes = test_random(&rng) % 5 ?
			test_random(&rng) % 3000 :
			test_random(&rng) % 100000;

		while (!log_reserve(r->log, bytes + 8, false)) {
			if (l->held)
				log_unpin(r->log, l->held);
			l->held = 0;
			if (!live_root(r, l))
				return;
		}
		l->added = add(r, i, bytes);
		log_release(r->log, bytes + 8);
		if (commit(r))
			return;
		l->acked = i;
		if (l->held && test_random(&rng) % 8 == 0) {
			log_unpin(r->log, l->held);
			l->held = 0;
		} else if (!l->held && test_random(&rng) % 8 == 0) {
			l->held = i;
			log_pin(r->log, i);
		}
		if (test_random(&rng) % 16 == 0) {
			sim_advance(r->sim, 60000000);
			log_run(r->log, sim_now_ns(r->sim));
			if (queue_drain(r->queue))
				return;
		}
		if (test_random(&rng) % 20 == 0 && !live_root(r, l))
			return;
	}
}

static void cut_and_look(const struct doubt *doubt, uint64_t k,
			 enum sim_cut cut, bool volatile_cache, bool *over)
{
	struct rig r = rig_new_on(doubt, volatile_cache, 4, 1024);
	struct life l = { .tail = 1 };
	static struct seen s;

	sim_power_cut_at(r.sim, k, cut, k);
	live(&r, &l, 77);
	*over = !sim_is_off(r.sim);
	reboot(&r, cut);
	ck_assert_int_eq(recover_from(&r, l.cut, l.chain, l.tail, &s), 0);
	ck_assert_uint_ge(s.last, l.acked);
	ck_assert_uint_le(s.last, l.added);
	check_seen(&s, (unsigned)(s.last - l.tail + 1));
	rig_free(&r);
}

START_TEST(power_cut_at_every_write)
{
	static const enum sim_cut cuts[] = {
		SIM_CUT_KEEP, SIM_CUT_DROP, SIM_CUT_TORN, SIM_CUT_RANDOM,
	};
	bool over = false;

	msg_set_sink(quiet, NULL);
	for (uint64_t k = 1; !over; k++)
		cut_and_look(NULL, k, cuts[_i / 2], _i & 1, &over);
}
END_TEST

/* ---- Where the head is known ---- */

START_TEST(power_cuts_with_a_head)
{
	bool over = false;
	struct doubt doubt;

	msg_set_sink(quiet, NULL);
	doubt_init(&doubt, "hp-c2247a", SECTORS, (enum doubt_kind)_i);
	for (uint64_t k = 1 + (unsigned)_i; !over; k += 3)
		cut_and_look(&doubt, k, k % 2 ? SIM_CUT_RANDOM : SIM_CUT_TORN,
			     k / 2 % 2, &over);
	doubt_fini(&doubt);
}
END_TEST

/* Commits at any angle take no revolution: the nearest slot is used, before or
 * behind the last. */
START_TEST(records_skip_to_the_head)
{
	struct doubt doubt;
	uint64_t took[120], rng = 3, cut = 0, chain = 0, tail = 1, rev_ns;
	unsigned back = 0, mirrors = 0, n;
	struct log_stats stats;
	static struct seen s;
	struct rig r;

	doubt_init(&doubt, "hp-c2247a", SECTORS, DOUBT_NONE);
	rev_ns = doubt.is->mech.period_ps / 1000;
	r = rig_new_on(&doubt, false, TRACKS, 512);
	for (n = 0; n < 120; n++) {
		uint64_t begun;

		add_with_room(&r, n + 1, 1500, &cut, &chain, &tail);
		sim_advance(r.sim, test_random(&rng) % (2 * rev_ns));
		begun = sim_now_ns(r.sim);
		ck_assert_int_eq(commit(&r), 0);
		took[n] = sim_now_ns(r.sim) - begun;
	}
	for (n = 2; n <= 20; n++)
		back += find_record(&r, n, false) <
			find_record(&r, n - 1, false);
	ck_assert_uint_ge(back, 3);
	qsort(took, 120, sizeof(took[0]), sort_u64_cmp);
	/* The command is 0.07 of it, a record and its transfer 0.04. */
	ck_assert_uint_le(took[60], rev_ns * 25 / 100);
	/* Mirrors wait for quiet, and never lie beside their record. */
	log_get_stats(r.log, &stats);
	ck_assert_uint_eq(stats.mirror_writes, 0);
	sim_advance(r.sim, 60000000);
	log_run(r.log, sim_now_ns(r.sim));
	ck_assert_int_eq(queue_drain(r.queue), 0);
	for (n = 1; n <= 120; n++) {
		const uint64_t a = find_record(&r, n, false);
		const uint64_t b = find_record(&r, n, true);

		if (!a || !b)
			continue;
		ck_assert_uint_ne(a / 10000, b / 10000);
		mirrors++;
	}
	ck_assert_uint_ge(mirrors, 40);
	ck_assert_uint_le(took[118], rev_ns * 15 / 10);
	ck_assert_uint_le(took[119], rev_ns * 4);
	reboot(&r, SIM_CUT_DROP);
	ck_assert_int_eq(recover_from(&r, cut, chain, tail, &s), 0);
	ck_assert_uint_eq(s.last, 120);
	rig_free(&r);
	doubt_fini(&doubt);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("log");
	TCase *tc = tcase_create("log");

	tcase_add_loop_test(tc, commits_survive, 0, 2);
	tcase_add_test(tc, commits_share_a_write);
	tcase_add_test(tc, full_records_go_out_by_themselves);
	tcase_add_test(tc, flushes_what_it_speaks_of);
	tcase_add_test(tc, nothing_is_acknowledged_after_a_failed_flush);
	tcase_add_test(tc, a_failed_flush_of_others_counts);
	tcase_add_loop_test(tc, failed_writes_take_no_room, 0, 12);
	tcase_add_test(tc, torn_tail_is_the_end);
	tcase_add_test(tc, goes_on_near_what_was_written);
	tcase_add_test(tc, mirrors_wait_for_quiet);
	tcase_add_test(tc, nobody_waits_for_mirrors);
	tcase_add_test(tc, little_memory_keeps_few_copies);
	tcase_add_loop_test(tc, relied_upon_has_a_mirror, 0, 3);
	tcase_add_test(tc, full_log_leaves_mirrors_out);
	tcase_add_test(tc, drain_writes_everything);
	tcase_add_loop_test(tc, mirror_heals, 0, 6);
	tcase_add_loop_test(tc, loss_of_both_is_told, 0, 9);
	tcase_add_loop_test(tc, one_bad_unit_is_rebuilt, 0, 12);
	tcase_add_loop_test(tc, rebuilt_records_are_read_again, 0, 3);
	tcase_add_loop_test(tc, two_unreadable_units_are_told, 0, 36);
	tcase_add_test(tc, torn_sectors_are_written_again);
	tcase_add_test(tc, unreadable_units_of_others_say_nothing);
	tcase_add_loop_test(tc, a_torn_record_is_the_end, 2, 6);
	tcase_add_loop_test(tc, nothing_of_an_earlier_life, 0, 2);
	tcase_add_loop_test(tc, a_log_that_wraps_around_loses_nothing, 0, 8);
	tcase_add_loop_test(tc, promises_are_kept, 0, 16);
	tcase_add_test(tc, held_records_are_kept);
	tcase_add_test(tc, lost_data_record_is_told);
	tcase_add_test(tc, reserves_keep_the_log_from_filling);
	tcase_add_test(tc, the_last_room_is_for_one_alone);
	tcase_add_loop_test(tc, write_errors_are_retried, 0, 2);
	tcase_add_test(tc, a_bad_track_is_left);
	tcase_add_loop_test(tc, errors_everywhere_fail_the_log, 0, 2);
	tcase_add_loop_test(tc, a_disk_that_is_away_is_waited_for, 0, 2);
	tcase_add_loop_test(tc, a_bad_place_is_left_for_others, 0, 2);
	tcase_add_loop_test(tc, mirrors_may_fail, 3, 5);
	tcase_add_loop_test(tc, power_cut_at_every_write, 0, 8);
	tcase_add_loop_test(tc, power_cuts_with_a_head, 0, DOUBT_KINDS);
	tcase_add_test(tc, records_skip_to_the_head);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return test_run(suite());
}

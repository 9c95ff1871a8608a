/*
 * sim.c - the simulated disk: data, durability, power, faults.
 *
 * The drive (drive.h) decides when a request is done; this file does what then
 * happens to the data.  A request is an op from submit to delivery:
 *
 *   submit -> in the drive -> complete -> ready -> delivered (disk_poll)
 *      |          |              |
 *      |          |              +- op_complete: data move, durability counted
 *      |          +- late: held back by SIM_SLOW or the host;  stuck: for ever
 *      |          +- sent: on its way to the drive, with a slow host
 *      +- power cut: every op is dropped, done() is never called
 *
 * There are two media: `now` is what reads return, `durable` what a power cut
 * leaves at least.  Writes that completed into a volatile cache are listed in
 * `unflushed`, in order of completion, until a flush that was submitted later
 * completes.  Without a volatile cache `durable` is NULL and `now` stands for
 * both: what is completed is durable.
 *
 * A FUA write that completes while older ones are unflushed is listed as well,
 * marked durable, so that a cut does not put an older write over it.
 */
#include "sim/sim.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "sim/drive.h"
#include "sim/faults.h"
#include "sim/sim_internal.h"
#include "sim/writes.h"

/* Time of every request on a flat drive: short against any real drive. */
#define DEFAULT_LATENCY_NS 100000u
#define DEFAULT_MAX_SECTORS 2048u	/* Most sectors of a request, 1 MiB. */
/* How long a discard takes at least: as long as some of the file system's
 * writes behind each other, so that they meet it where they may not. */
#define DISCARD_NS 5000000u
/* The volatile cache holds this many writes at most; older ones are on the
 * medium. */
#define UNFLUSHED_MAX 65536u
/* Delays of a busy host, in medians: half of one, and an exponential part on
 * top; HOST_ODD of them are longer by up to HOST_ODD_MOST. */
#define HOST_SPREAD 0.7213
#define HOST_ODD 0.01
#define HOST_ODD_MOST 10
/* Virtual wall clock at time 0: 2026-01-01. */
#define WALL_START_NS INT64_C(1767225600000000000)

static struct sim *sim_of(struct disk *disk)
{
	return container_of(disk, struct sim, disk);
}

/* ---- requests ---- */

static size_t request_bytes(const struct disk_request *req)
{
	size_t bytes = 0;

	assert(req->iov_n <= DISK_MAX_IOV);
	for (unsigned i = 0; i < req->iov_n; i++)
		bytes += req->iov[i].iov_len;
	return bytes;
}

static bool changes(const struct disk_request *req)
{
	return req->op == DISK_WRITE || req->op == DISK_DISCARD;
}

/* Reads get on with each other, and with a discard: what is read there is not
 * said. */
static bool overlap(const struct disk_request *a, const struct disk_request *b)
{
	bool harmless = (a->op == DISK_READ || b->op == DISK_READ) &&
			a->op != DISK_WRITE && b->op != DISK_WRITE;

	return !harmless && a->sector < b->sector + b->sectors &&
	       b->sector < a->sector + a->sectors;
}

/* Asserts everything that the contract of disk.h demands of the caller. */
static void request_assert(const struct sim *sim,
			   const struct disk_request *req)
{
	const struct disk_limits *l = &sim->disk.limits;
	uint32_t unit = l->logical_bytes / SECTOR_BYTES;
	struct list *pos;

	assert(req->done);
	if (req->op == DISK_FLUSH) {
		assert(!req->sectors && !req->iov_n);
		return;
	}
	assert(req->sectors && (req->op == DISK_DISCARD ||
				req->sectors <= l->max_sectors));
	assert(req->sector % unit == 0 && req->sectors % unit == 0);
	assert(req->sector < l->sectors &&
	       req->sectors <= l->sectors - req->sector);
	assert(req->op == DISK_DISCARD ? !req->iov_n : request_bytes(req) ==
	       (size_t)req->sectors * SECTOR_BYTES);
	for (unsigned i = 0; i < req->iov_n; i++)
		assert(req->iov[i].iov_len % l->logical_bytes == 0);
	list_for_each(pos, &sim->air)
		assert(!overlap(list_entry(pos, struct op, link)->req, req));
}

static void op_free(struct op *op)
{
	writes_put(op->write);
	free(op);
}

/* Finds the fault that a request meets, if any. */
static void op_fault(struct sim *sim, struct op *op)
{
	const struct sim_fault *f = faults_meet(&sim->faults, op->req);
	uint64_t to;

	if (!f)
		return;
	op->failed = f->kind == SIM_FAIL;
	op->error = f->error;
	op->stuck = f->kind == SIM_STUCK;
	op->flip = f->kind == SIM_FLIP;
	if (f->kind == SIM_SLOW)
		op->late_ns = f->delay_ns;
	if (!op->write)
		return;
	if (f->kind == SIM_LOSE || f->kind == SIM_FAIL) {
		writes_put(op->write);
		op->write = NULL;
	} else if (f->kind == SIM_MISDIRECT) {
		to = op->write->sector + (uint64_t)f->shift;
		if (to < sim->disk.limits.sectors &&
		    op->write->sectors <= sim->disk.limits.sectors - to)
			op->write->sector = to;
	} else if (f->kind == SIM_FLIP) {
		op->write->data[op->write->sectors * SECTOR_BYTES / 2] ^= 0x10;
	}
}

static struct op *op_new(struct sim *sim, struct disk_request *req)
{
	struct op *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	op->req = req;
	op->order = sim->completed;
	op->timing.op = changes(req) ? DISK_WRITE : req->op;
	op->timing.fua = req->fua;
	op->timing.lbn = req->sector;
	op->timing.sectors = req->sectors;
	if (changes(req)) {
		op->write = writes_new(req);
		if (!op->write) {
			free(op);
			return NULL;
		}
	}
	op_fault(sim, op);
	if (req->op == DISK_DISCARD)
		op->late_ns += DISCARD_NS;
	return op;
}

static void count_down_to_cut(struct sim *sim, const struct disk_request *req)
{
	if (!changes(req) || !sim->cut_at || --sim->cut_at)
		return;
	sim_power_cut(sim, sim->cut, sim->cut_seed);
}

/* Delay of the host for one event. */
static uint64_t host_late_ns(struct sim *sim)
{
	double u = (double)((random_next(&sim->host_seed) >> 11) + 1) *
		   0x1p-53;
	double late = 0.5 - HOST_SPREAD * log(u);

	if (!sim->host_ns)
		return 0;
	u = random_part(&sim->host_seed);
	if (u < HOST_ODD)
		late += HOST_ODD_MOST * u / HOST_ODD;
	return (uint64_t)(late * (double)sim->host_ns);
}

/* Sends a request to the drive; it does not overtake an earlier one. */
static void op_send(struct sim *sim, struct op *op)
{
	op->reach_ns = sim->now_ns + host_late_ns(sim);
	if (op->reach_ns < sim->reach_ns)
		op->reach_ns = sim->reach_ns;
	sim->reach_ns = op->reach_ns;
	op->host_ns = host_late_ns(sim);
	list_add(&sim->sent, &op->way);
}

static void run_until(struct sim *sim, uint64_t until_ns);

static void sim_submit(struct disk *disk, struct disk_request *req)
{
	struct sim *sim = sim_of(disk);
	struct op *op;

	if (sim->off)
		return;
	request_assert(sim, req);
	req->submit_ns = sim->now_ns;
	sim->outstanding++;
	op = op_new(sim, req);
	if (op) {
		list_add(&sim->air, &op->link);
		op_send(sim, op);
		run_until(sim, sim->now_ns);
	} else {
		req->next = sim->refused;
		sim->refused = req;
	}
	if (sim->hook)
		sim->hook(sim, req, sim->hook_arg);
	count_down_to_cut(sim, req);
}

/* ---- durability ---- */

/* Puts the oldest `n` unflushed writes on the medium. */
static int make_durable(struct sim *sim, size_t n)
{
	int err = 0;

	if (n == sim->unflushed_n) {
		struct media *clone = media_clone(sim->now);

		if (!clone)
			return -ENOMEM;
		media_free(sim->durable);
		sim->durable = clone;
	}
	for (size_t i = 0; i < n && !err; i++) {
		if (n != sim->unflushed_n)
			err = writes_apply(sim->unflushed[i], sim->durable);
	}
	if (err)
		return err;
	for (size_t i = 0; i < n; i++)
		writes_put(sim->unflushed[i]);
	sim->unflushed_n -= n;
	memmove(sim->unflushed, sim->unflushed + n,
		sim->unflushed_n * sizeof(*sim->unflushed));
	sim->flushed += n;
	return 0;
}

static int list_unflushed(struct sim *sim, struct write *write)
{
	size_t room = sim->unflushed_room ? 2 * sim->unflushed_room : 64;
	struct write **list;
	int err = 0;

	if (sim->unflushed_n == UNFLUSHED_MAX)
		err = make_durable(sim, UNFLUSHED_MAX / 2);
	if (err)
		return err;
	if (sim->unflushed_n == sim->unflushed_room) {
		list = reallocarray(sim->unflushed, room, sizeof(*list));
		if (!list)
			return -ENOMEM;
		sim->unflushed = list;
		sim->unflushed_room = room;
	}
	sim->unflushed[sim->unflushed_n++] = writes_get(write);
	return 0;
}

static int complete_write(struct sim *sim, struct op *op)
{
	struct write *w = op->write;
	int err;

	if (!w)
		return 0;
	err = writes_apply(w, sim->now);
	if (err || !sim->durable)
		return err;
	if (op->req->fua) {
		w->durable = true;
		err = writes_apply(w, sim->durable);
	}
	if (!err)
		err = list_unflushed(sim, w);
	if (!err)
		sim->completed++;
	return err;
}

static int complete_flush(struct sim *sim, const struct op *op)
{
	if (!sim->durable || op->order <= sim->flushed)
		return 0;
	return make_durable(sim, (size_t)(op->order - sim->flushed));
}

/* ---- completion ---- */

static int complete_read(struct sim *sim, const struct op *op)
{
	struct disk_request *req = op->req;
	uint64_t at = req->sector;
	int err = 0, result = 0;

	for (unsigned i = 0; i < req->iov_n; i++) {
		uint64_t n = req->iov[i].iov_len / SECTOR_BYTES;

		err = media_read(sim->now, at, n, req->iov[i].iov_base, NULL);
		if (err)
			result = err;
		at += n;
	}
	if (op->flip)
		((uint8_t *)req->iov[0].iov_base)[0] ^= 0x10;
	return result;
}

/* Asserts that the data of a write is still what it was when it was
 * submitted. */
static void write_assert(const struct op *op)
{
	const uint8_t *data = op->write->data;

	for (unsigned i = 0; i < op->req->iov_n; i++) {
		const struct iovec *v = &op->req->iov[i];

		assert(memcmp(data, v->iov_base, v->iov_len) == 0);
		data += v->iov_len;
	}
}

static void op_complete(struct sim *sim, struct op *op, uint64_t at_ns)
{
	struct disk_request *req = op->req;

	req->complete_ns = at_ns;
	if (op->failed) {
		req->result = op->error;
	} else if (req->op == DISK_READ) {
		req->result = complete_read(sim, op);
	} else if (changes(req)) {
		if (op->write && !op->flip)
			write_assert(op);
		req->result = complete_write(sim, op);
	} else {
		req->result = complete_flush(sim, op);
	}
	list_del(&op->link);
	list_add(&sim->ready, &op->link);
}

static struct op *late_first(const struct sim *sim)
{
	struct op *first = NULL;
	struct list *pos;

	list_for_each(pos, &sim->late) {
		struct op *op = list_entry(pos, struct op, way);

		if (!first || op->late_ns < first->late_ns)
			first = op;
	}
	return first;
}

/* Time at which the next request reaches the drive. */
static uint64_t sent_ns(const struct sim *sim)
{
	const struct op *op = list_first(&sim->sent, struct op, way);

	return op ? op->reach_ns : UINT64_MAX;
}

uint64_t sim_next_ns(struct sim *sim)
{
	const struct op *late = late_first(sim);
	uint64_t next = drive_next_ns(sim->drive);

	if (!list_empty(&sim->ready) || sim->refused)
		return sim->now_ns;
	if (sent_ns(sim) < next)
		next = sent_ns(sim);
	return late && late->late_ns < next ? late->late_ns : next;
}

/* Time when the host delivers a completion: no answer overtakes another. */
static uint64_t op_answer_ns(struct sim *sim, const struct op *op)
{
	uint64_t answer_ns = op->timing.done_ns + op->host_ns;

	if (sim->answer_ns < answer_ns)
		sim->answer_ns = answer_ns;
	return sim->answer_ns;
}

/* Completes everything up to a moment, in the order of time. */
static void run_until(struct sim *sim, uint64_t until_ns)
{
	for (;;) {
		struct op *late = late_first(sim);
		uint64_t late_ns = late ? late->late_ns : UINT64_MAX;
		uint64_t next_ns = late_ns < until_ns ? late_ns : until_ns;
		struct drive_op *timing;
		struct op *op;

		if (sent_ns(sim) < next_ns)
			next_ns = sent_ns(sim);
		timing = drive_run(sim->drive, next_ns);
		if (!timing && sent_ns(sim) <= next_ns) {
			op = list_first(&sim->sent, struct op, way);
			list_del(&op->way);
			drive_submit(sim->drive, &op->timing, op->reach_ns);
			continue;
		}
		if (!timing && (!late || late_ns > until_ns))
			return;
		op = timing ? container_of(timing, struct op, timing) : late;
		if (!timing) {
			list_del(&op->way);
			op_complete(sim, op, late_ns);
		} else if (op->late_ns || op->host_ns) {
			op->late_ns += op_answer_ns(sim, op);
			list_add(&sim->late, &op->way);
		} else if (!op->stuck) {
			op_complete(sim, op, timing->done_ns);
		}
	}
}

static void count(struct sim *sim, const struct disk_request *req)
{
	struct sim_counts *c = &sim->counts;

	if (req->op == DISK_READ) {
		c->reads++;
		c->read_sectors += req->sectors;
	} else if (req->op == DISK_WRITE) {
		c->writes++;
		c->written_sectors += req->sectors;
	} else if (req->op == DISK_FLUSH) {
		c->flushes++;
	}
}

static void deliver_one(struct sim *sim, struct disk_request *req)
{
	count(sim, req);
	sim->outstanding--;
	req->done(req);
}

/* Delivers only what is ready at the beginning: done() may submit, and even cut
 * the power. */
static int deliver(struct sim *sim)
{
	struct disk_request *refused = sim->refused;
	int n = 0;

	sim->refused = NULL;
	while (refused) {
		struct disk_request *req = refused;

		refused = req->next;
		req->result = -ENOMEM;
		req->complete_ns = sim->now_ns;
		deliver_one(sim, req);
		n++;
	}
	while (!list_empty(&sim->ready)) {
		struct op *op = list_first(&sim->ready, struct op, link);
		struct disk_request *req = op->req;

		list_del(&op->link);
		op_free(op);
		deliver_one(sim, req);
		n++;
	}
	return n;
}

static int sim_poll(struct disk *disk, int64_t timeout_ns)
{
	struct sim *sim = sim_of(disk);
	uint64_t limit = timeout_ns < 0 ? UINT64_MAX :
		sim->now_ns + (uint64_t)timeout_ns;
	uint64_t next;

	if (sim->off)
		return -ESHUTDOWN;
	run_until(sim, sim->now_ns);
	if (!sim->outstanding) {
		if (timeout_ns > 0)
			sim->now_ns = limit + host_late_ns(sim);
		return 0;
	}
	next = sim_next_ns(sim);
	if (next <= limit && next != UINT64_MAX) {
		if (next > sim->now_ns)
			sim->now_ns = next;
		run_until(sim, sim->now_ns);
	} else if (limit != UINT64_MAX) {
		sim->now_ns = limit + (timeout_ns ? host_late_ns(sim) : 0);
		run_until(sim, sim->now_ns);
	}
	return deliver(sim);
}

static int sim_event_fd(struct disk *disk)
{
	(void)disk;
	return -1;
}

static void sim_close(struct disk *disk)
{
	sim_free(sim_of(disk));
}

static const struct disk_ops sim_ops = {
	.submit = sim_submit,
	.poll = sim_poll,
	.event_fd = sim_event_fd,
	.discards = true,
	.close = sim_close,
};

/* ---- environment ---- */

static uint64_t env_sim_now(struct env *env)
{
	return container_of(env, struct sim, env)->now_ns;
}

static int64_t env_sim_wall(struct env *env)
{
	return WALL_START_NS + (int64_t)env_sim_now(env);
}

static void env_sim_wait(struct env *env, uint64_t ns)
{
	sim_advance(container_of(env, struct sim, env), ns);
}

static uint64_t env_sim_random(struct env *env)
{
	return random_next(&container_of(env, struct sim, env)->env_seed);
}

/* ---- making ---- */

static uint32_t either(uint32_t given, uint32_t otherwise)
{
	return given ? given : otherwise;
}

static void set_limits(struct sim *sim, const struct spec *spec,
		       uint64_t sectors, const struct sim_options *o)
{
	struct disk_limits *l = &sim->disk.limits;

	l->sectors = sectors ? sectors : geom_sectors(drive_geom(sim->drive));
	l->logical_bytes = either(o->logical_bytes,
				  spec ? spec->logical_bytes : SECTOR_BYTES);
	l->physical_bytes = either(o->physical_bytes,
				   spec ? spec->physical_bytes : 4096);
	l->atomic_bytes = either(o->atomic_bytes, l->logical_bytes);
	l->max_sectors = either(o->max_sectors, DEFAULT_MAX_SECTORS);
	l->volatile_cache = o->volatile_cache ||
			    (spec && spec->write_cache_lbns);
	l->rotational = true;
}

static int set_drive(struct sim *sim, const struct spec *spec,
		     const struct sim_options *o)
{
	uint64_t latency_ns = o->latency_ns ? o->latency_ns :
					      DEFAULT_LATENCY_NS;

	if (spec)
		return drive_new(spec, o->seed, &sim->drive);
	sim->drive = drive_new_flat(latency_ns);
	return sim->drive ? 0 : -ENOMEM;
}

static int set_content(struct sim *sim, const struct sim_options *o)
{
	sim->now = o->content ? media_clone(o->content) :
				media_new(sim->disk.limits.sectors);
	if (!sim->now)
		return -ENOMEM;
	if (!sim->disk.limits.volatile_cache)
		return 0;
	sim->durable = media_clone(sim->now);
	return sim->durable ? 0 : -ENOMEM;
}

struct sim *sim_new(const struct spec *spec, uint64_t sectors,
		    const struct sim_options *options)
{
	static const struct sim_options defaults;
	const struct sim_options *o = options ? options : &defaults;
	struct sim *sim = calloc(1, sizeof(*sim));

	if (!sim)
		return NULL;
	sim->disk.ops = &sim_ops;
	sim->disk.name = "sim";
	sim->env = (struct env){
		.now_ns = env_sim_now, .wall_ns = env_sim_wall,
		.random = env_sim_random, .wait = env_sim_wait,
	};

	sim->env_seed = o->seed;

	sim->host_ns = o->host_ns;

	sim->host_seed = o->seed;

	list_init(&sim->sent);

	list_init(&sim->air);

	list_init(&sim->late);

	list_init(&sim->ready);

	if (set_drive(sim, spec, o)) {
		free(sim);
		return NULL;
	}
	set_limits(sim, spec, sectors, o);
	if (set_content(sim, o)) {
		sim_free(sim);
		return NULL;
	}
	assert(media_sectors(sim->now) == sim->disk.limits.sectors);
	return sim;
}

static void ops_drop(struct list *ops)
{
	while (!list_empty(ops)) {
		struct op *op = list_first(ops, struct op, link);

		list_del(&op->link);
		op_free(op);
	}
}

void sim_drop_all(struct sim *sim)
{
	drive_reset(sim->drive, sim->now_ns);
	list_init(&sim->sent);
	list_init(&sim->late);
	ops_drop(&sim->air);
	ops_drop(&sim->ready);
	sim->refused = NULL;
	sim->outstanding = 0;
	for (size_t i = 0; i < sim->unflushed_n; i++)
		writes_put(sim->unflushed[i]);
	sim->unflushed_n = 0;
	sim->flushed = sim->completed;
}

int sim_set_flat(struct sim *sim, bool flat)
{
	struct drive *now = sim->drive;

	assert(!sim->outstanding);
	if (flat == sim->is_flat)
		return 0;
	if (!sim->other)
		sim->other = drive_new_flat(DEFAULT_LATENCY_NS);
	if (!sim->other)
		return -ENOMEM;
	sim->drive = sim->other;
	sim->other = now;
	sim->is_flat = flat;
	drive_reset(sim->drive, sim->now_ns);
	return 0;
}

void sim_free(struct sim *sim)
{
	if (!sim)
		return;
	sim_drop_all(sim);
	drive_free(sim->drive);
	if (sim->other)
		drive_free(sim->other);
	media_free(sim->now);
	media_free(sim->durable);
	faults_fini(&sim->faults);
	free(sim->unflushed);
	free(sim);
}

struct disk *sim_disk(struct sim *sim)
{
	return &sim->disk;
}

struct env *sim_env(struct sim *sim)
{
	return &sim->env;
}

uint64_t sim_now_ns(const struct sim *sim)
{
	return sim->now_ns;
}

void sim_advance(struct sim *sim, uint64_t ns)
{
	uint64_t until = sim->now_ns + ns;

	if (!sim->off)
		run_until(sim, until);
	sim->now_ns = until;
}

unsigned sim_outstanding(const struct sim *sim)
{
	return sim->outstanding;
}

int sim_drain(struct sim *sim)
{
	int total = 0;

	while (sim->outstanding && sim_next_ns(sim) != UINT64_MAX) {
		int n = sim_poll(&sim->disk, -1);

		if (n < 0)
			return n;
		total += n;
	}
	return sim->off ? -ESHUTDOWN : total;
}

void sim_set_hook(struct sim *sim, sim_hook hook, void *arg)
{
	sim->hook = hook;
	sim->hook_arg = arg;
}

int sim_fault_add(struct sim *sim, const struct sim_fault *fault)
{
	return faults_add(&sim->faults, fault);
}

void sim_fault_clear(struct sim *sim)
{
	faults_fini(&sim->faults);
}

uint64_t sim_fault_hits(const struct sim *sim)
{
	return sim->faults.hits;
}

struct drive *sim_drive(struct sim *sim)
{
	return sim->drive;
}

const struct sim_counts *sim_counts(const struct sim *sim)
{
	return &sim->counts;
}

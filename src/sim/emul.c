/*
 * emul.c - runs the drive by the machine's clock.
 *
 * One mutex guards the drive.  Its time is real time since the start divided by
 * `slow`.  A drive has to be run up to a moment before a request is submitted
 * at that moment (drive.h), so a submitter may find that other requests are
 * done: these wait in `due` for the thread.
 *
 * The thread sleeps until shortly before the next event and spins for the rest
 * (timers wake tens of microseconds late on virtual machines), unless an
 * eventfd tells it that something earlier has come up.  It never spins for
 * events that nobody waits for.
 *
 * A late thread does not make the drive late: completions carry the time they
 * should have had, and whatever follows is computed from there.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "sim/emul.h"

/* The thread wakes this much early and spins for the rest. */
#define SPIN_NS 60000u
/* Lateness is counted in steps of 5 us up to 20 ms. */
#define LATE_STEP_NS 5000u
#define LATE_STEPS 4000u

struct emul {
	struct drive *drive;
	struct emul_options options;
	uint64_t start_ns;	/* real */
	pthread_t thread;
	bool running;
	int wake;		/* eventfd */
	_Atomic bool kicked, stopping;

	pthread_mutex_t lock;	/* all below, and the drive */
	struct list due;
	uint64_t fast_ns;	/* the drive's time, when it is not that of the
				 * machine */
	uint64_t waits_ns;	/* the thread sleeps until then */
	uint64_t reset_ns;
	struct emul_stats counts;
	uint32_t late[LATE_STEPS + 1];
};

static uint64_t real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The drive's time. */
static uint64_t drive_now(const struct emul *e)
{
	uint64_t ns = real_ns() - e->start_ns;

	if (e->options.fast)
		return e->fast_ns;
	return e->options.slow == 1 ? ns :
		(uint64_t)((double)ns / e->options.slow);
}

/* The inverse: the machine's time. */
static uint64_t real_of(const struct emul *e, uint64_t drive_ns)
{
	if (drive_ns == UINT64_MAX)
		return UINT64_MAX;
	if (e->options.slow == 1)
		return e->start_ns + drive_ns;
	return e->start_ns +
	       (uint64_t)ceil((double)drive_ns * e->options.slow);
}

static void count(struct emul *e, const struct drive_op *op)
{
	struct emul_stats *c = &e->counts;

	if (op->op == DISK_READ) {
		c->reads++;
		c->read_sectors += op->sectors;
	} else if (op->op == DISK_WRITE) {
		c->writes++;
		c->written_sectors += op->sectors;
	} else {
		c->flushes++;
	}
}

static void count_late(struct emul *e, uint64_t late_ns)
{
	uint64_t step = late_ns / LATE_STEP_NS;

	e->late[step < LATE_STEPS ? step : LATE_STEPS]++;
	e->counts.late_n++;
	if (late_ns > e->counts.late_max_ns)
		e->counts.late_max_ns = late_ns;
}

static void trace(struct emul *e, const struct drive_op *op,
		  uint64_t late_ns)
{
	static const char letters[] = { 'R', 'W', 'F' };
	const struct service *s = &op->service;

	if (!e->options.trace)
		return;
	fprintf(e->options.trace, "%.6f %c %ju %u %.6f %.6f %.6f %.6f %.6f "
		"%.6f %.6f%s%s\n", (double)op->arrive_ns / 1e6, letters[op->op],
		(uintmax_t)op->lbn, op->sectors, (double)op->start_ns / 1e6,
		(double)op->done_ns / 1e6, (double)s->seek_ns / 1e6,
		(double)s->switch_ns / 1e6, (double)s->rotation_ns / 1e6,
		(double)s->transfer_ns / 1e6, (double)late_ns / 1e6,
		op->hit ? " hit" : "", op->joined ? " joined" : "");
}

/* Moves what is done by now to `due`. */
static void collect(struct emul *e, uint64_t now_ns)
{
	struct drive_op *op;

	while ((op = drive_run(e->drive, now_ns)))
		list_add(&e->due, &op->link);
}

/* ---- the thread ---- */

void emul_expedite(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
}

static void sleep_until(struct emul *e, uint64_t at_ns)
{
	struct pollfd fd = { .fd = e->wake, .events = POLLIN };
	uint64_t now = real_ns(), left = at_ns > now ? at_ns - now : 0;
	struct timespec ts = { (time_t)(left / 1000000000u),
			       (long)(left % 1000000000u) };
	uint64_t n;

	if (ppoll(&fd, 1, at_ns == UINT64_MAX ? NULL : &ts, NULL) > 0 &&
	    read(e->wake, &n, sizeof(n)) < 0)
		return;
}

static void wait_until(struct emul *e, uint64_t at_ns, bool precise)
{
	uint64_t spin_ns = precise ? SPIN_NS : 0;

	if (at_ns == UINT64_MAX || real_ns() + spin_ns < at_ns)
		sleep_until(e, at_ns == UINT64_MAX ? at_ns : at_ns - spin_ns);
	while (precise && !atomic_load(&e->kicked) && real_ns() < at_ns)
		;
}

static void answer(struct emul *e)
{
	while (!list_empty(&e->due)) {
		struct drive_op *op =
			list_first(&e->due, struct drive_op, link);
		struct emul_request *request =
			container_of(op, struct emul_request, timing);
		struct drive_op was = *op;	/* a copy, because the request
						 * is gone when it is done */
		uint64_t late_ns;

		list_del(&op->link);
		pthread_mutex_unlock(&e->lock);
		request->done(request);
		late_ns = real_ns() - real_of(e, was.done_ns);
		pthread_mutex_lock(&e->lock);
		count(e, &was);
		count_late(e, late_ns);
		trace(e, &was, late_ns);
	}
}

static void *emul_thread(void *arg)
{
	struct emul *e = arg;

	emul_expedite(2);
	pthread_mutex_lock(&e->lock);
	while (!atomic_load(&e->stopping)) {
		bool precise;
		uint64_t next;

		atomic_store(&e->kicked, false);
		collect(e, drive_now(e));
		if (!list_empty(&e->due)) {
			answer(e);
			continue;
		}
		next = drive_next_ns(e->drive);
		precise = next != UINT64_MAX && drive_next_is_done(e->drive);
		e->waits_ns = next;
		pthread_mutex_unlock(&e->lock);
		wait_until(e, real_of(e, next), precise);
		pthread_mutex_lock(&e->lock);
		e->waits_ns = 0;
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

static void kick(struct emul *e)
{
	uint64_t one = 1;

	atomic_store(&e->kicked, true);
	if (write(e->wake, &one, sizeof(one)) < 0)
		return;		/* it is awake anyway */
}

/* ---- the interface ---- */

static int emul_init(struct emul *e, const struct spec *spec)
{
	pthread_mutexattr_t attr;
	int err;

	if (!e->options.slow)
		e->options.slow = 1;
	list_init(&e->due);
	/* A submitter that loses the processor must not make the thread wait
	 * until it gets it back. */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&e->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	e->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->wake < 0)
		return -errno;
	err = drive_new(spec, e->options.seed, &e->drive);
	if (err)
		return err;
	e->start_ns = real_ns();
	if (e->options.fast)
		return 0;
	err = pthread_create(&e->thread, NULL, emul_thread, e);
	e->running = !err;
	return -err;
}

int emul_start(const struct spec *spec, const struct emul_options *options,
	       struct emul **emul)
{
	struct emul *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	e->options = *options;
	err = emul_init(e, spec);
	if (err) {
		emul_stop(e);
		return err;
	}
	*emul = e;
	return 0;
}

void emul_stop(struct emul *emul)
{
	if (!emul)
		return;
	if (emul->running) {
		atomic_store(&emul->stopping, true);
		kick(emul);
		pthread_join(emul->thread, NULL);
	}
	drive_free(emul->drive);
	if (emul->wake >= 0)
		close(emul->wake);
	pthread_mutex_destroy(&emul->lock);
	free(emul);
}

/* The drive's time jumps to the end of the request. */
static void submit_fast(struct emul *e, struct emul_request *request)
{
	struct drive_op *op = NULL;

	pthread_mutex_lock(&e->lock);
	drive_submit(e->drive, &request->timing, e->fast_ns);
	while (op != &request->timing) {
		op = drive_run(e->drive, e->fast_ns);
		if (!op)
			e->fast_ns = drive_next_ns(e->drive);
	}
	count(e, op);
	trace(e, op, 0);
	pthread_mutex_unlock(&e->lock);
	request->done(request);
}

void emul_submit(struct emul *emul, struct emul_request *request)
{
	uint64_t now_ns;
	bool early;

	if (emul->options.fast) {
		submit_fast(emul, request);
		return;
	}
	pthread_mutex_lock(&emul->lock);
	now_ns = drive_now(emul);
	collect(emul, now_ns);
	drive_submit(emul->drive, &request->timing, now_ns);
	early = !list_empty(&emul->due) ||
		drive_next_ns(emul->drive) < emul->waits_ns;
	pthread_mutex_unlock(&emul->lock);
	if (early)
		kick(emul);
}

static uint64_t late_quantile(const struct emul *e, double q)
{
	uint64_t rank = (uint64_t)((double)e->counts.late_n * q), seen = 0;
	uint32_t i;

	for (i = 0; i < LATE_STEPS; i++) {
		seen += e->late[i];
		if (seen > rank)
			break;
	}
	return e->counts.late_n ? (uint64_t)i * LATE_STEP_NS + LATE_STEP_NS / 2
				: 0;
}

void emul_get_stats(struct emul *emul, struct emul_stats *stats)
{
	uint64_t now_ns;

	pthread_mutex_lock(&emul->lock);
	now_ns = drive_now(emul);
	collect(emul, now_ns);
	*stats = emul->counts;
	stats->elapsed_ns = now_ns - emul->reset_ns;
	stats->late_median_ns = late_quantile(emul, 0.5);
	stats->late_p99_ns = late_quantile(emul, 0.99);
	drive_get_times(emul->drive, now_ns, &stats->times);
	pthread_mutex_unlock(&emul->lock);
	kick(emul);
}

void emul_reset_stats(struct emul *emul)
{
	pthread_mutex_lock(&emul->lock);
	emul->reset_ns = drive_now(emul);
	collect(emul, emul->reset_ns);
	emul->counts = (struct emul_stats){ 0 };
	for (uint32_t i = 0; i <= LATE_STEPS; i++)
		emul->late[i] = 0;
	drive_clear_times(emul->drive, emul->reset_ns);
	pthread_mutex_unlock(&emul->lock);
	kick(emul);
}

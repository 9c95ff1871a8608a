/*
 * session.c - the loop.
 *
 * A turn: read and start up to INTAKE_MAX requests, run the file system if
 * something has come or its time has, wait (epoll) until the connection, the
 * disk or a signal is ready or the file system's time has come.  While requests
 * follow each other at once (burst.h) there is no wait, and every LOOK_TURNS
 * turns a look at what else is ready.  The connection is non-blocking.
 * Requests are not read while large buffers are short: they wait in the
 * kernel's queue.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/msg.h"
#include "fuse/burst.h"
#include "fuse/session_internal.h"
#include "fuse/ops.h"
#include "fuse/room.h"
#include "fuse/scan_file.h"
#include "fuse/session.h"
#include "fuse/sync.h"
#include "fuse/uring.h"
#include "fuse/written.h"

#define INTAKE_MAX 64u		/* requests of one turn */
/* Turns without a wait after which signals and the notify thread are looked at:
 * some 0.2 ms, and a sixteenth of what such turns cost. */
#define LOOK_TURNS 16u
/* The kernel sends INIT at once; ten seconds are for a machine that is busy. */
#define INIT_WAIT_MS 10000

/*
 * A remount waits until nothing else is outstanding, and so does growing.  No
 * more requests are taken meanwhile, unless a direct WRITE waits for the kernel
 * to drop pages, which may wait for a READ.
 */
static bool may_take(const struct session *session)
{
	return !session->alone || session->noticed;
}

/* Is there a receive buffer, and another one for a reply? */
static bool may_receive(struct session *session)
{
	if (!session->receive)
		session->receive = session_take_large(session);
	if (!session->receive)
		return false;
	return session->large_free ||
	       session->large_made < session->large_most;
}

/* The descriptors that epoll watches. */
enum source { SOURCE_KERNEL, SOURCE_DISK, SOURCE_SIGNAL, SOURCE_NOTIFY,
	      SOURCES };

static int watch(struct session *session, int op, int fd, uint32_t events,
		 enum source source)
{
	struct epoll_event event = { .events = events, .data.u32 = source };

	if (fd < 0)
		return 0;
	return epoll_ctl(session->epoll_fd, op, fd, &event) ? -errno : 0;
}

static int watch_all(struct session *session)
{
	int fd = session->options.fd;
	int flags = fcntl(fd, F_GETFL);
	int rc;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	session->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (session->epoll_fd < 0)
		return -errno;
	session->listening = true;
	rc = watch(session, EPOLL_CTL_ADD, fd, EPOLLIN, SOURCE_KERNEL);
	if (!rc)
		rc = watch(session, EPOLL_CTL_ADD, fs_event_fd(session->fs),
			   EPOLLIN | EPOLLET, SOURCE_DISK);
	if (!rc)
		rc = watch(session, EPOLL_CTL_ADD, session->options.signal_fd,
			   EPOLLIN, SOURCE_SIGNAL);
	return rc;
}

/* The kernel's count of background requests has 16 bits, and no disk gains from
 * more that wait. */
#define LARGE_MOST 1024u

static unsigned large_most(const struct fs *fs)
{
	size_t fit = fs_request_bytes(fs) / SESSION_LARGE_BYTES;

	if (fit > LARGE_MOST)
		return LARGE_MOST;
	return fit > SESSION_MIN_LARGE ? (unsigned)fit : SESSION_MIN_LARGE;
}

int session_new(struct fs *fs, const struct session_options *options,
		struct session **out)
{
	struct session *session = calloc(1, sizeof(*session));
	int rc;

	if (!session)
		return -ENOMEM;
	session->fs = fs;
	session->options = *options;
	session->large_most = large_most(fs);
	session->attached = true;
	session->epoll_fd = -1;
	list_init(&session->requests);
	list_init(&session->syncs);
	session->writers = hashmap_new();
	session->written = hashmap_new();
	session->burst = burst_new(options->awake);
	rc = session->writers && session->written && session->burst ?
			room_new(session, &session->room) : -ENOMEM;
	if (!rc)
		rc = view_new(session, &session->view);
	if (!rc)
		rc = scan_files_new(session, &session->scan_files);
	if (!rc)
		rc = watch_all(session);
	if (rc) {
		session_free(session);
		return rc;
	}
	*out = session;
	return 0;
}

void session_set_low_room(struct session *session, uint64_t bytes)
{
	room_set_low(session, bytes);
}

void session_set_tasks(struct session *session, struct scrub *scrub,
		       struct refine *refine, struct file_scans *scans,
		       struct moves *moves)
{
	scan_files_forget(session->scan_files);
	session->scrub = scrub;
	session->scans = scans;
	session->refine = refine;
	session->moves = moves;
}

/* 1: a message has been read; 0: none there or the session has ended. */
static int receive(struct session *session, size_t *bytes)
{
	uint8_t *to = (uint8_t *)session->receive + SESSION_MESSAGE_OFFSET;
	ssize_t n;

	for (;;) {
		n = read(session->options.fd, to,
			 SESSION_LARGE_BYTES - SESSION_MESSAGE_OFFSET);
		if (n > 0) {
			*bytes = (size_t)n;
			return 1;
		}
		/* ENOENT: the request was withdrawn before it was read. */
		if (n < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (n < 0 && errno == EAGAIN) {
			session->drained = true;
			return 0;
		}
		session->ended = true;
		session->attached = false;
		if (n < 0 && errno != ENODEV && errno != ECONNABORTED) {
			session->error = -errno;
			msg_error("FUSE: read: %s", strerror(errno));
		}
		return 0;
	}
}

static struct request *new_request(struct session *session)
{
	struct request *req = request_new(session);

	session->received++;
	if (!req) {
		session->error = -ENOMEM;
		session->ended = true;
		msg_error("FUSE: no memory for a request");
	}
	return req;
}

/* Reads one request and starts it. */
static bool intake_one(struct session *session)
{
	struct request *req;
	size_t bytes;
	bool kept;

	session->drained = false;
	if (session->ended || !may_receive(session) ||
	    !receive(session, &bytes))
		return false;
	req = new_request(session);
	if (!req)
		return false;
	if (request_parse(req, session->receive, bytes, &kept)) {
		msg_error("FUSE: malformed request of %zu bytes", bytes);
		request_drop(req);
		return true;
	}
	if (kept)
		session->receive = NULL;
	ops_dispatch(req);
	return true;
}

/* Takes one request from the ring and starts it. */
static bool take_one(struct session *session)
{
	struct uring_message message;
	struct request *req;

	session->drained = false;
	if (session->ended)
		return false;
	switch (uring_next(session->uring, &message)) {
	case URING_NONE:
		session->drained = true;
		return false;
	case URING_POLLED:
		session->polled = true;
		return true;
	case URING_GONE:
		session->ended = true;
		session->attached = false;
		return false;
	case URING_MESSAGE:
		break;
	}
	req = new_request(session);
	if (!req)
		return false;
	if (request_take(req, &message)) {
		msg_error("FUSE: malformed request in a slot");
		request_reply(req, -EIO, NULL, 0);
		return true;
	}
	ops_dispatch(req);
	return true;
}

/* Returns whether there may be more to read. */
static bool intake(struct session *session)
{
	unsigned n;

	for (n = 0; n < INTAKE_MAX && may_take(session); n++)
		if (!(session->uring ? take_one(session) :
				       intake_one(session)))
			break;
	if (session->uring)
		uring_push(session->uring);
	return n == INTAKE_MAX;
}

void session_set_fs(struct session *session, struct fs *fs)
{
	session->fs = fs;
	if (fs)
		return;
	session->ended = true;
	session->error = -EIO;
}

static void run_alone(struct session *session)
{
	const unsigned others = session->outstanding - 1;

	if (others)
		sync_stop(session);
	else
		ops_alone(session->alone);
}

static void leave(struct session *session)
{
	session->leaving = true;
	if (session->options.leave &&
	    session->options.leave(session->options.leave_arg,
				   session->leave_attempt++))
		return;
	session->ended = true;
}

/* The process that leave() started has ended. */
static void reap(struct session *session)
{
	int status;

	while (waitpid(-1, &status, WNOHANG) > 0)
		if (session->leaving && status != 0)
			leave(session);
}

static void take_signals(struct session *session)
{
	struct signalfd_siginfo info;

	while (read(session->options.signal_fd, &info, sizeof(info)) ==
	       sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(session);
		else if (!session->leaving)
			leave(session);
	}
}

/* The connection is watched only while there is room for a request. */
static void listen_if_room(struct session *session)
{
	bool room = may_receive(session) && may_take(session);

	if (room == session->listening)
		return;
	session->listening = room;
	if (watch(session, EPOLL_CTL_MOD, session->options.fd,
		  room ? EPOLLIN : 0, SOURCE_KERNEL))
		msg_error("FUSE: epoll: %s", strerror(errno));
}

/* Requests for which the notify thread has dropped pages go on. */
static void take_noticed(struct session *session)
{
	struct request *req;

	while ((req = notify_next(session->notify))) {
		session->noticed--;
		ops_noticed(req);
	}
}

/* Takes what the descriptors have; waits up to `wait` for the first. */
static void take_events(struct session *session, const struct timespec *wait)
{
	struct epoll_event events[SOURCES];
	int n = epoll_pwait2(session->epoll_fd, events, SOURCES, wait, NULL);

	/* Nothing would be heard of any more, not even a signal. */
	if (n < 0 && errno != EINTR) {
		session->error = -errno;
		session->ended = true;
		msg_error("FUSE: epoll: %s", strerror(errno));
	}
	while (n-- > 0) {
		if (events[n].data.u32 == SOURCE_SIGNAL)
			take_signals(session);
		else if (events[n].data.u32 == SOURCE_NOTIFY)
			take_noticed(session);
		else if (events[n].data.u32 == SOURCE_KERNEL)
			session->readable = true;
	}
}

/* Reads what comes by the descriptor even with a ring: FORGET, INTERRUPT. */
static void take_polled(struct session *session)
{
	static const struct timespec none;

	session->polled = false;
	take_events(session, &none);
	while (session->readable && intake_one(session))
		;
	session->readable = false;
}

/* Counts the turn that began at begin_ns; returns the time. */
static uint64_t measure_turn(struct session *session, uint64_t begin_ns)
{
	struct env *env = session->options.env;
	const uint64_t now_ns = env_now_ns(env);

	turn_measured(&env->turn, now_ns - begin_ns);
	return now_ns;
}

/* Waits from now_ns until next_ns or the next event; sends what replies the
 * ring has before that. */
static void wait_for_work(struct session *session, uint64_t now_ns,
			  uint64_t next_ns)
{
	uint64_t wait = next_ns == UINT64_MAX ? next_ns :
			next_ns > now_ns ? next_ns - now_ns : 0;
	struct timespec timeout = {
		.tv_sec = (time_t)(wait / 1000000000u),
		.tv_nsec = (long)(wait % 1000000000u),
	};

	listen_if_room(session);
	if (session->uring)
		uring_wait(session->uring, wait);
	else
		take_events(session, wait == UINT64_MAX ? NULL : &timeout);
}

bool session_make_uring(struct session *session)
{
	int rc = uring_new(session->options.fd, session->epoll_fd,
			   REQUEST_MAX_WRITE, SESSION_MAX_SLOTS,
			   &session->uring);

	if (rc)
		msg_info("FUSE: io_uring is offered and not used: %s",
			 strerror(-rc));
	return rc == 0;
}

void session_register_uring(struct session *session)
{
	int rc;

	if (!session->uring)
		return;
	rc = uring_register(session->uring);
	if (!rc) {
		msg_debug("FUSE: requests come by io_uring");
		return;
	}
	msg_warn("FUSE: io_uring is not used: %s", strerror(-rc));
	uring_free(session->uring);
	session->uring = NULL;
}

int session_start(struct session *session)
{
	struct pollfd fd = { .fd = session->options.fd, .events = POLLIN };

	if (poll(&fd, 1, INIT_WAIT_MS) > 0)
		intake_one(session);
	if (session->started)
		return 0;
	return session->error ? session->error : -EPROTO;
}

/* Runs the file system and all that works beside it; returns when one of them
 * has something to do next. */
static uint64_t session_work(struct session *session)
{
	struct scrub *scrub = session->scrub;
	struct refine *refine = session->refine;
	struct moves *moves = session->moves;
	uint64_t next_ns, scrub_ns, refine_ns, view_ns, scan_ns, read_ns;
	uint64_t moves_ns, room_ns, written_ns;

	/* What this submits is sent to the disk by fs_run. */
	view_run(session->view);
	room_run(session);
	next_ns = fs_run(session->fs, 0);
	scrub_ns = scrub ? scrub_run(scrub) : UINT64_MAX;
	refine_ns = refine ? refine_run(refine) : UINT64_MAX;
	scan_ns = session->scans ? file_scans_run(session->scans) : UINT64_MAX;
	moves_ns = moves ? moves_run(moves) : UINT64_MAX;
	read_ns = scan_files_run(session->scan_files);
	view_ns = view_next_ns(session->view);
	room_ns = room_next_ns(session);
	written_ns = written_run(session);
	next_ns = room_ns < next_ns ? room_ns : next_ns;
	next_ns = written_ns < next_ns ? written_ns : next_ns;
	next_ns = scan_ns < next_ns ? scan_ns : next_ns;
	next_ns = moves_ns < next_ns ? moves_ns : next_ns;
	next_ns = read_ns < next_ns ? read_ns : next_ns;
	next_ns = view_ns < next_ns ? view_ns : next_ns;
	next_ns = scrub_ns < next_ns ? scrub_ns : next_ns;
	return refine_ns < next_ns ? refine_ns : next_ns;
}

/* Ends all requests but those that the notify thread may never give back. */
static void session_drain(struct session *session)
{
	view_stop(session->view);
	scan_files_stop(session->scan_files);
	sync_stop(session);
	room_stop(session);
	burst_run(session->burst, UINT64_MAX);
	if (session->alone)
		request_reply(session->alone, -EIO, NULL, 0);
	while (session->outstanding > session->noticed) {
		view_run(session->view);
		fs_run(session->fs, 100);
		if (session->uring)
			uring_push(session->uring);
	}
}

int session_run(struct session *session)
{
	struct env *env = session->options.env;
	uint64_t begin_ns = env_now_ns(env), end_ns;
	uint64_t next_ns = 0, received = 0, burst_ns;
	unsigned unseen = 0;	/* turns since the last wait or look */
	bool woken = true;

	/* Its thread begins only now, and so is confined like this one. */
	session->error = notify_new(session->options.fd, &session->notify);
	if (!session->error)
		session->error = watch(session, EPOLL_CTL_ADD,
				       notify_event_fd(session->notify),
				       EPOLLIN, SOURCE_NOTIFY);
	if (session->error) {
		msg_error("FUSE: %s", strerror(-session->error));
		session->ended = true;
	}
	while (!session->ended) {
		bool more = intake(session), drained = session->drained;
		bool spins, polled = session->polled;
		bool asked;

		/* This consumes the event that the disk has ended something,
		 * which comes once: session_work must poll the disk after
		 * it. */
		if (polled)
			take_polled(session);
		asked = session->received != received;
		received = session->received;
		woken |= asked;
		woken |= sync_run(session, drained && session->drained);
		if (session->alone) {
			run_alone(session);
			woken = true;
		}
		if (session->ended)
			break;
		if (woken || polled || begin_ns >= next_ns ||
		    !fs_idle(session->fs))
			next_ns = session_work(session);
		end_ns = measure_turn(session, begin_ns);
		if (asked)
			burst_asked(session->burst, begin_ns, end_ns);
		begin_ns = end_ns;
		burst_ns = burst_run(session->burst, end_ns);
		spins = more || sync_is_due(session) ||
			burst_spins(session->burst, end_ns);
		woken = !spins || unseen == LOOK_TURNS;
		if (session->ended ||
		    (spins && unseen++ < LOOK_TURNS && !session->uring))
			continue;
		/* A ring is asked even when nothing is waited for. */
		unseen = 0;
		wait_for_work(session, end_ns,
			      spins ? 0 :
			      burst_ns < next_ns ? burst_ns : next_ns);
		if (!spins)
			begin_ns = env_now_ns(env);
	}
	session_drain(session);
	return session->error;
}

bool session_attached(const struct session *session)
{
	return session->attached;
}

void session_free(struct session *session)
{
	struct request *req;

	if (session->notify)
		notify_free(session->notify, !session->attached);
	if (session->destroyed && session->destroy_slot) {
		uring_reply(session->destroy_slot, session->destroy_unique, 0,
			    NULL, 0);
		uring_push(session->uring);
	} else if (session->destroyed) {
		struct fuse_out_header header = {
			.len = sizeof(header),
			.unique = session->destroy_unique,
		};

		if (write(session->options.fd, &header, sizeof(header)) < 0)
			msg_warn("FUSE: answer to DESTROY: %s",
				 strerror(errno));
	}
	while ((req = list_first(&session->requests, struct request, link))) {
		list_del(&req->link);
		free(req);
	}
	if (session->uring)
		uring_free(session->uring);
	view_free(session->view);
	scan_files_free(session->scan_files);
	room_free(session->room);
	hashmap_free(session->writers);
	hashmap_free(session->written);
	burst_free(session->burst);
	if (session->epoll_fd >= 0)
		close(session->epoll_fd);
	if (session->receive)
		session_give_large(session, session->receive);
	while (session->large_free)
		munmap(session->large[--session->large_free],
		       SESSION_LARGE_BYTES);
	free(session);
}

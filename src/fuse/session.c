/*
 * session.c - the loop.
 *
 * A turn: read and start up to INTAKE_MAX requests, run the file system, wait
 * (epoll) until the connection, the disk or a signal is ready or the file
 * system's time has come.  The connection is non-blocking.  Requests are not
 * read while large buffers are short: they wait in the kernel's queue.
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
#include "fuse/session_internal.h"
#include "fuse/ops.h"
#include "fuse/session.h"
#include "fuse/sync.h"

#define INTAKE_MAX 64u		/* requests of one turn */
#define INIT_WAIT_MS 10000

void *session_take_large(struct session *session)
{
	void *buffer;

	if (session->large_free)
		return session->large[--session->large_free];
	if (session->large_made == SESSION_MAX_LARGE)
		return NULL;
	buffer = mmap(NULL, SESSION_LARGE_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer == MAP_FAILED)
		return NULL;
	session->large_made++;
	return buffer;
}

void session_give_large(struct session *session, void *buffer)
{
	session->large[session->large_free++] = buffer;
}

/* Is there a receive buffer, and one for a reply besides? */
static bool may_receive(struct session *session)
{
	if (!session->receive)
		session->receive = session_take_large(session);
	if (!session->receive)
		return false;
	return session->large_free ||
	       session->large_made < SESSION_MAX_LARGE;
}

/* What epoll says is ready. */
/*
 * Who has just been answered often asks again at once: for so long the loop
 * looks for that instead of sleeping, as waking costs more than the request.
 */
#define SPIN_NS 30000u

enum source { SOURCE_KERNEL, SOURCE_DISK, SOURCE_SIGNAL, SOURCES };

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

int session_new(struct fs *fs, const struct session_options *options,
		struct session **out)
{
	struct session *session = calloc(1, sizeof(*session));
	int rc;

	if (!session)
		return -ENOMEM;
	session->fs = fs;
	session->options = *options;
	session->attached = true;
	session->spins = sysconf(_SC_NPROCESSORS_ONLN) > 1;
	session->epoll_fd = -1;
	list_init(&session->requests);
	list_init(&session->syncs);
	rc = view_new(session, &session->view);
	if (!rc)
		rc = watch_all(session);
	if (rc) {
		session_free(session);
		return rc;
	}
	*out = session;
	return 0;
}

void session_set_tasks(struct session *session, struct scrub *scrub,
		       struct refine *refine)
{
	session->scrub = scrub;
	session->refine = refine;
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
	session->received++;
	req = request_new(session);
	if (!req) {
		session->error = -ENOMEM;
		session->ended = true;
		msg_error("FUSE: no memory for a request");
		return false;
	}
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

/* Returns whether there may be more to read. */
static bool intake(struct session *session)
{
	unsigned n;

	for (n = 0; n < INTAKE_MAX; n++)
		if (!intake_one(session))
			return false;
	return true;
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
	bool room = may_receive(session);

	if (room == session->listening)
		return;
	session->listening = room;
	if (watch(session, EPOLL_CTL_MOD, session->options.fd,
		  room ? EPOLLIN : 0, SOURCE_KERNEL))
		msg_error("FUSE: epoll: %s", strerror(errno));
}

static void wait_for_work(struct session *session, uint64_t next_ns)
{
	struct epoll_event events[SOURCES];
	struct timespec timeout, *limit = NULL;
	int n;

	listen_if_room(session);
	if (next_ns != UINT64_MAX) {
		uint64_t now = env_now_ns(session->options.env);
		uint64_t wait = next_ns > now ? next_ns - now : 0;

		timeout.tv_sec = (time_t)(wait / 1000000000u);
		timeout.tv_nsec = (long)(wait % 1000000000u);
		limit = &timeout;
	}
	n = epoll_pwait2(session->epoll_fd, events, SOURCES, limit, NULL);
	while (n-- > 0)
		if (events[n].data.u32 == SOURCE_SIGNAL)
			take_signals(session);
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

/* Whoever has something to do does it; when that is next. */
static uint64_t session_work(struct session *session)
{
	struct scrub *scrub = session->scrub;
	struct refine *refine = session->refine;
	uint64_t next_ns, scrub_ns, refine_ns, view_ns;

	/* What this submits is sent to the disk by fs_run. */
	view_run(session->view);
	next_ns = fs_run(session->fs, 0);
	scrub_ns = scrub ? scrub_run(scrub) : UINT64_MAX;
	refine_ns = refine ? refine_run(refine) : UINT64_MAX;
	view_ns = view_next_ns(session->view);
	next_ns = view_ns < next_ns ? view_ns : next_ns;
	next_ns = scrub_ns < next_ns ? scrub_ns : next_ns;
	return refine_ns < next_ns ? refine_ns : next_ns;
}

int session_run(struct session *session)
{
	struct env *env = session->options.env;
	uint64_t busy_until_ns = 0;

	/* Its thread must be confined as this one has been meanwhile. */
	session->error = notify_new(session->options.fd, &session->notify);
	if (session->error)
		session->ended = true;
	while (!session->ended) {
		uint64_t received = session->received;
		bool more = intake(session);
		uint64_t next_ns;

		sync_run(session, session->drained);
		next_ns = session_work(session);
		if (session->received != received)
			busy_until_ns = env_now_ns(env) + SPIN_NS;
		if (!more && !session->ended && !sync_is_due(session) &&
		    !(session->spins && env_now_ns(env) < busy_until_ns))
			wait_for_work(session, next_ns);
	}
	view_stop(session->view);
	sync_stop(session);
	while (session->outstanding) {
		view_run(session->view);
		fs_run(session->fs, 100);
	}
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
	if (session->destroyed) {
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
	view_free(session->view);
	if (session->epoll_fd >= 0)
		close(session->epoll_fd);
	if (session->receive)
		session_give_large(session, session->receive);
	while (session->large_free)
		munmap(session->large[--session->large_free],
		       SESSION_LARGE_BYTES);
	free(session);
}

/*
 * notify.c - see notify.h.  One thread, one list, in order of arrival.
 */
#include "fuse/notify.h"

#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/list.h"
#include "base/msg.h"

struct notice {
	struct list link;
	uint64_t ino;
	int64_t offset;		/* negative: the attributes only */
	uint32_t bytes;
	struct request *req;	/* the WRITE to be given back, or NULL */
};

struct notify {
	int fd;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int event_fd;
	struct list notices;	/* under the lock, as are: */
	struct list done;	/* notices with a request */
	bool ended;
};

static void carry_out(const struct notify *notify, const struct notice *notice)
{
	struct fuse_notify_inval_inode_out inode = {
		.ino = notice->ino,
		.off = notice->offset,
		.len = notice->bytes,
	};
	struct fuse_out_header header = {
		.len = sizeof(header) + sizeof(inode),
		.error = FUSE_NOTIFY_INVAL_INODE,
	};
	struct iovec iov[2] = {
		{ &header, sizeof(header) },
		{ &inode, sizeof(inode) },
	};

	/* ENOENT: the kernel has forgotten the inode itself. */
	if (writev(notify->fd, iov, 2) < 0 && errno != ENOENT)
		msg_debug("FUSE: notice: %s", strerror(errno));
}

/* Gives the request back, or frees the notice. */
static void finish(struct notify *notify, struct notice *notice)
{
	const uint64_t one = 1;

	if (!notice->req) {
		free(notice);
		return;
	}
	pthread_mutex_lock(&notify->lock);
	list_add(&notify->done, &notice->link);
	pthread_mutex_unlock(&notify->lock);
	if (write(notify->event_fd, &one, sizeof(one)) < 0)
		msg_error("FUSE: eventfd: %s", strerror(errno));
}

int notify_event_fd(const struct notify *notify)
{
	return notify->event_fd;
}

struct request *notify_next(struct notify *notify)
{
	struct request *req = NULL;
	struct notice *notice;
	uint64_t count;

	if (read(notify->event_fd, &count, sizeof(count)) < 0 &&
	    errno != EAGAIN)
		msg_error("FUSE: eventfd: %s", strerror(errno));
	pthread_mutex_lock(&notify->lock);
	notice = list_first(&notify->done, struct notice, link);
	if (notice)
		list_del(&notice->link);
	pthread_mutex_unlock(&notify->lock);
	if (notice)
		req = notice->req;
	free(notice);
	return req;
}

/* The next notice; NULL: there will be none. */
static struct notice *next(struct notify *notify)
{
	struct notice *notice;

	pthread_mutex_lock(&notify->lock);
	while (list_empty(&notify->notices) && !notify->ended)
		pthread_cond_wait(&notify->wake, &notify->lock);
	notice = list_first(&notify->notices, struct notice, link);
	if (notice)
		list_del(&notice->link);
	pthread_mutex_unlock(&notify->lock);
	return notice;
}

static void *run(void *arg)
{
	struct notify *notify = arg;
	struct notice *notice;

	while ((notice = next(notify))) {
		carry_out(notify, notice);
		finish(notify, notice);
	}
	return NULL;
}

int notify_new(int fd, struct notify **out)
{
	struct notify *notify = calloc(1, sizeof(*notify));
	sigset_t all, before;
	int rc;

	if (!notify)
		return -ENOMEM;
	notify->fd = fd;
	list_init(&notify->notices);
	list_init(&notify->done);
	notify->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (notify->event_fd < 0) {
		rc = errno;
		free(notify);
		return -rc;
	}
	pthread_mutex_init(&notify->lock, NULL);
	pthread_cond_init(&notify->wake, NULL);
	/* Signals are for the session. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&notify->thread, NULL, run, notify);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		close(notify->event_fd);
		free(notify);
		return -rc;
	}
	*out = notify;
	return 0;
}

static bool add(struct notify *notify, const struct notice *what)
{
	struct notice *notice = malloc(sizeof(*notice));

	if (!notice)
		return false;
	*notice = *what;
	list_init(&notice->link);
	pthread_mutex_lock(&notify->lock);
	list_add(&notify->notices, &notice->link);
	pthread_cond_signal(&notify->wake);
	pthread_mutex_unlock(&notify->lock);
	return true;
}

bool notify_write(struct notify *notify, struct request *req, uint64_t ino,
		  uint64_t offset, uint32_t bytes)
{
	return add(notify, &(struct notice){
		.ino = ino, .offset = (int64_t)offset, .bytes = bytes,
		.req = req,
	});
}

void notify_pages(struct notify *notify, uint64_t ino)
{
	add(notify, &(struct notice){ .ino = ino });
}

void notify_attr(struct notify *notify, uint64_t ino)
{
	add(notify, &(struct notice){ .ino = ino, .offset = -1 });
}

void notify_free(struct notify *notify, bool wait)
{
	pthread_mutex_lock(&notify->lock);
	notify->ended = true;
	pthread_cond_signal(&notify->wake);
	pthread_mutex_unlock(&notify->lock);
	if (!wait) {
		pthread_detach(notify->thread);
		return;
	}
	pthread_join(notify->thread, NULL);
	close(notify->event_fd);
	pthread_mutex_destroy(&notify->lock);
	pthread_cond_destroy(&notify->wake);
	free(notify);
}

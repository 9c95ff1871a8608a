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
#include <sys/uio.h>

#include "base/list.h"
#include "base/msg.h"

struct notice {
	struct list link;
	uint64_t ino;
	int64_t offset;		/* negative: the attributes only */
	uint32_t bytes;
	uint64_t unique;	/* of the WRITE to be answered; 0: none */
};

struct notify {
	int fd;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct list notices;	/* under the lock, as is: */
	bool ended;
};

static void say(const struct notify *notify, int error, uint64_t unique,
		const void *data, size_t bytes)
{
	struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + bytes),
		.error = error,
		.unique = unique,
	};
	struct iovec iov[2] = {
		{ &header, sizeof(header) },
		{ (void *)data, bytes },
	};

	/* The kernel knows the inode, or the request, no more. */
	if (writev(notify->fd, iov, 2) < 0 && errno != ENOENT)
		msg_debug("FUSE: notice: %s", strerror(errno));
}

static void carry_out(const struct notify *notify, const struct notice *notice)
{
	const struct fuse_notify_inval_inode_out inode = {
		.ino = notice->ino,
		.off = notice->offset,
		.len = notice->bytes,
	};
	const struct fuse_write_out written = { .size = notice->bytes };

	say(notify, FUSE_NOTIFY_INVAL_INODE, 0, &inode, sizeof(inode));
	if (notice->unique)
		say(notify, 0, notice->unique, &written, sizeof(written));
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
		free(notice);
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
	pthread_mutex_init(&notify->lock, NULL);
	pthread_cond_init(&notify->wake, NULL);
	/* Signals are for the session. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&notify->thread, NULL, run, notify);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
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

bool notify_write(struct notify *notify, uint64_t unique, uint64_t ino,
		  uint64_t offset, uint32_t bytes)
{
	return add(notify, &(struct notice){
		.ino = ino, .offset = (int64_t)offset, .bytes = bytes,
		.unique = unique,
	});
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
	pthread_mutex_destroy(&notify->lock);
	pthread_cond_destroy(&notify->wake);
	free(notify);
}

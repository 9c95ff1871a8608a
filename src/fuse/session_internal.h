/*
 * session_internal.h - the session as request.c, session.c and ops.c see it.
 */
#ifndef TRAX_FUSE_SESSION_INTERNAL_H
#define TRAX_FUSE_SESSION_INTERNAL_H

#include "base/hashmap.h"
#include "base/list.h"
#include "fuse/notify.h"
#include "fuse/request.h"
#include "fuse/session.h"
#include "fuse/view.h"
#include "tasks/tasks.h"

/*
 * Large buffers, of a little over 1 MiB: the receive buffer, data of large
 * WRITEs that wait, replies while they are made (a READ that waits for the disk
 * has none).  Their number follows the memory for requests under way, and is at
 * least SESSION_MIN_LARGE.  When fewer than two are left no more requests are
 * read, so that what has been read can always be answered.  The kernel is told
 * to keep fewer in the background (ops_init.c), so that this takes a dozen
 * threads with large direct WRITEs.  Free ones beyond SESSION_KEEP_LARGE go
 * back to the system.
 */
#define SESSION_MIN_LARGE 48u
#define SESSION_KEEP_LARGE 16u

/* Slots of io_uring in all, each with a payload of 1 MiB. */
#define SESSION_MAX_SLOTS 64u

/* Slots of files whose pages the kernel may hold, by inode number. */
#define SESSION_PAGE_SLOTS 4096u

struct burst;

struct session {
	struct fs *fs;
	struct notify *notify;
	struct session_options options;
	struct scrub *scrub;		/* NULL: this mount does not scrub */
	struct refine *refine;		/* NULL: nothing is measured */
	struct file_scans *scans;	/* NULL: none are served */
	struct moves *moves;		/* NULL: nothing is moved */
	struct scan_files *scan_files;
	struct view *view;
	int epoll_fd;
	struct uring *uring;		/* requests come by it; NULL: by read */
	bool polled;			/* the ring has seen epoll_fd ready */
	bool readable;			/* epoll has seen that the connection
					 * can be read */
	uint64_t received;		/* requests received so far */
	struct burst *burst;
	bool drained;			/* the last look at the connection
					 * found nothing to read */
	bool listening;			/* epoll_fd watches the connection */
	void *receive;			/* the next request goes here */
	void *large[SESSION_KEEP_LARGE];	/* free ones */
	unsigned large_free;
	unsigned large_made;
	unsigned large_most;		/* large buffers there may be */
	struct list requests;		/* free ones */
	unsigned outstanding;		/* requests not yet ended */
	unsigned max_background;	/* requests that nobody waits for */
	unsigned changing;		/* outstanding requests that change a
					 * file */
	struct list syncs;		/* requests that wait in sync.c */
	struct request *alone;		/* waits until no other request is
					 * outstanding; NULL: none does */
	uint64_t page_writes;		/* WRITEs of pages so far */
	unsigned noticed;		/* requests that wait for the notify
					 * thread */
	bool started;			/* INIT has been answered */
	bool ended;			/* nothing more is read */
	bool attached;			/* the kernel has not let go */
	bool leaving;			/* a signal has come */
	unsigned leave_attempt;
	bool destroyed;			/* DESTROY waits for its answer */
	uint64_t destroy_unique;
	struct uring_slot *destroy_slot;	/* slot of io_uring by which
						 * DESTROY came, or NULL */
	int error;			/* why the connection failed */
	struct room_state *room;
	struct hashmap *writers;	/* inodes that are open for writing, and
					   how often: pages of no others can be
					   dirty */
	struct hashmap *written;	/* those of them whose pages were
					 * written (written.h) */
	uint64_t written_due_ns;	/* when the kernel is to hear of it */
	bool writers_lost;		/* some writers are missing in
					 * `writers` */
	bool paged[SESSION_PAGE_SLOTS];	/* pages were read, of one of the files
					   that share the slot */
};

/* What works in the background. */
static inline struct tasks session_tasks(const struct session *session)
{
	return (struct tasks){ session->fs, session->scrub, session->scans,
				session->moves };
}

/* Makes a ring for requests, before INIT is answered; false: io_uring cannot be
 * used. */
bool session_make_uring(struct session *session);

/* Begins to use the ring, after INIT has been answered; when that fails
 * requests go on coming by the descriptor. */
void session_register_uring(struct session *session);

/* A large buffer, with room for a message with REQUEST_MAX_WRITE bytes of data
 * that begin at a multiple of 4096. NULL: there is none left. */
void *session_take_large(struct session *session);
void session_give_large(struct session *session, void *buffer);

/* Offset in a large buffer at which a message is read, and the longest
 * message. */
#define SESSION_HEAD_BYTES 4096u
#define SESSION_LARGE_BYTES (SESSION_HEAD_BYTES + REQUEST_MAX_WRITE + 4096u)
#define SESSION_MESSAGE_OFFSET                                     \
	(SESSION_HEAD_BYTES - sizeof(struct fuse_in_header) -      \
	 sizeof(struct fuse_write_in))

#endif

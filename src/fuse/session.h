/*
 * session.h - the loop between the kernel's FUSE connection and a file
 * system: one thread, no policy.
 *
 * The session reads requests, ops.c turns each into one operation of fs/fs.h,
 * and its done() writes the reply.  In between the loop runs the file system
 * and waits for whichever comes first: a request, a completion, a signal, the
 * file system's next time.
 *
 * Ending.  The kernel's side has ended when read(2) says so (unmounted) or a
 * DESTROY has come (a fuseblk mount: umount(2) waits for the answer).  After
 * session_run the caller closes the file system and the disk, and only then
 * calls session_free, which answers a DESTROY.
 */
#ifndef TRAX_FUSE_SESSION_H
#define TRAX_FUSE_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/env.h"
#include "fs/fs.h"
#include "move/move.h"
#include "refine/refine.h"
#include "scan/file_scan.h"
#include "scrub/scrub.h"

struct session;
struct trax_grown;

struct session_options {
	struct env *env;
	int fd;			/* descriptor of the connection; it stays the
				 * caller's */
	int signal_fd;		/* signalfd of whatever is to end the session
				   and of SIGCHLD; -1: none */
	bool direct;		/* all files are opened past the kernel's cache
				 * (FOPEN_DIRECT_IO): read(2) and write(2) say
				 * what the file system says */
	bool awake;		/* processors are kept awake while requests
				 * follow each other (burst.h) */
	uid_t owner;		/* the user who mounted it, who may use
				 * control.h */
	/*
	 * A signal asks to end: called with attempt = 0, and again with the
	 * next number each time the process it started has failed.  Starts
	 * something that will make the kernel let go.  False: nothing left to
	 * try, the session ends by itself.
	 */
	bool (*leave)(void *arg, unsigned attempt);
	void *leave_arg;
	/*
	 * TRAX_CONTROL_REMOUNT: called with the server when no request
	 * is outstanding but the one that asks.  May replace the file system
	 * (session_set_fs).  0, or a negative errno with a reason of at most
	 * `bytes` in `why`.
	 */
	int (*remount)(void *arg, const char *options, char *why,
		       size_t bytes);
	/* TRAX_CONTROL_GROW: the same; where it began and ended in `grown`. */
	int (*grow)(void *arg, struct trax_grown *grown, char *why,
		    size_t bytes);
	void *server;		/* argument of both functions */
};

/* -ENOMEM.  fs must stay until session_run has returned. */
int session_new(struct fs *fs, const struct session_options *options,
		struct session **session);

/* Answers the first request (INIT); waits for it.  -EPROTO: something else
 * came, or a kernel too old. */
int session_start(struct session *session);

/* With less than `bytes` left, each write(2) asks whether there is room
 * (room.h).  0 at first: none asks. */
void session_set_low_room(struct session *session, uint64_t bytes);

/* What runs beside the file system; each may be NULL. */
void session_set_tasks(struct session *session, struct scrub *scrub,
		       struct refine *refine, struct file_scans *scans,
		       struct moves *moves);

/* Another file system on the same disk, from now on; NULL: there is none any
 * more, the session ends. */
void session_set_fs(struct session *session, struct fs *fs);

/* Serves until the end and until every operation has ended.  0, or a negative
 * errno when the connection failed. */
int session_run(struct session *session);

/* After session_run: has the kernel let go, or does the mount still stand? */
bool session_attached(const struct session *session);

/* Lets the kernel go on (DESTROY), frees. */
void session_free(struct session *session);

#endif

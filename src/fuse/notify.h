/*
 * notify.h - what must be said to the kernel while it may wait for us: by a
 * thread of its own.
 *
 * Invalidating pages waits for those that are being read, and their READs are
 * answered by the session; looking up an inode that is being evicted waits for
 * its last WRITE.  So the session's thread never does either; it hands them
 * over and goes on.
 */
#ifndef TRAX_FUSE_NOTIFY_H
#define TRAX_FUSE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

struct notify;
struct request;

/* Starts the thread, for the connection `fd`.  -ENOMEM, -EAGAIN. */
int notify_new(int fd, struct notify **notify);

/*
 * Drops the kernel's pages of [offset, offset + bytes) of a file, of all behind
 * offset when bytes is 0, then gives the request back by notify_next; dirty
 * ones are written out before.  False: no memory, nothing is done.
 */
bool notify_write(struct notify *notify, struct request *req, uint64_t ino,
		  uint64_t offset, uint32_t bytes);

/* Drops all of the kernel's pages of a file.  Best effort. */
void notify_pages(struct notify *notify, uint64_t ino);

/* Becomes readable when notify_next has something. */
int notify_event_fd(const struct notify *notify);

/* A request whose pages have been dropped; NULL: none. */
struct request *notify_next(struct notify *notify);

/* Has the kernel ask for an inode's attributes anew.  Best effort. */
void notify_attr(struct notify *notify, uint64_t ino);

/*
 * Does what is left and ends the thread.  `wait` false: the kernel still holds
 * the mount and may wait for replies that nobody will give; the thread is left
 * behind.
 */
void notify_free(struct notify *notify, bool wait);

#endif

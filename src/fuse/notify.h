/*
 * notify.h - notices to the kernel that may have to wait for the session, sent
 * by a thread of their own.
 *
 * Invalidating pages waits for those that are being read, whose READs the
 * session answers; looking up an inode that is being evicted waits for its last
 * WRITE.  So the session's thread does neither: it hands them over and goes on.
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
 * Drops the kernel's pages of [offset, offset + bytes) of a file (bytes 0: all
 * from offset on), after writing out the dirty ones, then gives the request
 * back by notify_next.  False: there is no memory, and nothing happens.
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
 * Sends the notices that are left and ends the thread.  `wait` false: the
 * kernel still holds the mount and may wait for replies that will never come,
 * so the thread is left behind.
 */
void notify_free(struct notify *notify, bool wait);

#endif

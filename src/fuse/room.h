/*
 * room.h - whoever writes hears that the disk is full.
 *
 * write(2) goes to the kernel's cache and ends before we know of the data.  But
 * it asks for the file's attributes when we have invalidated them, and that
 * question can be answered -ENOSPC.  That is done
 *
 *   after the fact: pages of the file could not be written out;
 *
 *   before it, while little room is left (session_set_low_room).  Attributes of
 *   files that are open for writing are invalid then, so each write(2) asks.
 *   We look every few questions, the more often the less is left: the kernel
 *   writes out the pages behind the end of the file that we know, so that what
 *   is left is known exactly.  Of a file that has grown each write is taken to
 *   go on with as much; what others were let grow by counts as gone.  What does
 *   not fit is refused.
 *
 * The question after that may come from a write of what has a place already,
 * like that by which a database goes back.  So it is let go on, as long as it
 * would do no harm if it were not: the file system keeps some room for pages
 * that were accepted (FS_WRITE_ACCEPTED).  A program that always tries again
 * uses that up, a write each time; then a file that has ever grown while little
 * was left is refused each time, until there is room.  Some of it stays for
 * files that have not grown, so that what has a place can be overwritten.
 *
 * What files were let grow by is expected in the file system, so that no other
 * write, fallocate or copy takes its room.  So is what the kernel may have of
 * writes that did not ask, as much as it may keep dirty.  Whoever finds no room
 * beside that waits until the kernel has written out what it has, file by file
 * (room_flush.c), then tries again; for 5 s at most.
 *
 * So a program that writes bit by bit is told by write(2), at most two
 * writes too early, what write(2) has accepted is there, and close(2) has
 * nothing left to say.  A single write(2) that is longer than the room, what
 * fills holes, and what is written through a mapping are told by close(2) and
 * fsync(2).  A read(2) across the end of the file asks only when attributes
 * have expired, as those of a file do that was made, linked or changed while
 * little room was left: then it cannot be told from a write, and by a handle
 * that may write it gets the same answer.
 */
#ifndef TRAX_FUSE_ROOM_H
#define TRAX_FUSE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct fs_attr;
struct request;
struct room_state;
struct session;

/* -ENOMEM. */
int room_new(struct session *session, struct room_state **room);
void room_free(struct room_state *room);	/* NULL: nothing */
void room_set_low(struct session *session, uint64_t bytes);

/* Is each write(2) to this file to ask?  Then its attributes are not to be kept
 * by the kernel. */
bool room_asks(struct session *session, uint64_t ino);

/* GETATTR by a handle that may write. */
enum room_answer {
	ROOM_THERE,	/* the attributes are to be told */
	ROOM_FULL,	/* -ENOSPC */
	ROOM_LOOK,	/* the pages behind the end of the file are to be
			 * written out, then room_may_grow says it */
};
enum room_answer room_question(struct session *session, uint64_t ino);

/* May the file, whose attributes are these, grow by one more write? */
bool room_may_grow(struct session *session, const struct fs_attr *attr);

/* A WRITE of the kernel's pages has been answered so. */
void room_page_written(struct session *session, uint64_t ino, int rc);

/* Nothing is known any more of how the file grows: it has grown otherwise. */
void room_forget(struct session *session, uint64_t ino);
/* Nobody has the file open for writing any more. */
void room_closed(struct session *session, uint64_t ino);
/* To be called after changes of session->writers. */
void room_writers_changed(struct session *session);

/*
 * The op of a request has ended, well or not.  True: it has found no room,
 * because of what is expected; again() is called later, which submits the op
 * once more, or the request is answered -ENOSPC.
 */
bool room_wait(struct request *req, void (*again)(struct request *req));
/* The pages of a request without opcode, of room_flush.c, are written. */
void room_flushed(struct request *req);
/* To be called in each turn; room_next_ns: when the next one is to be. */
void room_run(struct session *session);
uint64_t room_next_ns(const struct session *session);
/* Ends all that wait; nobody waits any more. */
void room_stop(struct session *session);

#endif

/*
 * room_internal.h - what room.c and room_flush.c share.
 */
#ifndef TRAX_FUSE_ROOM_INTERNAL_H
#define TRAX_FUSE_ROOM_INTERNAL_H

#include "base/hashmap.h"
#include "base/list.h"
#include "base/units.h"
#include "fuse/room.h"

/* A write(2) that was let go on has its data in the kernel's cache by then. */
#define ROOM_SETTLE_NS NS_PER_SECOND

/* A file that is open for writing, and has asked while little room was left, or
 * pages of it found none. */
struct grower {
	uint64_t size, used;	/* bytes, when we looked last */
	uint64_t write_bytes;	/* bytes that each write took when the file
				 * last grew; 0: it has not grown yet */
	uint64_t granted;	/* bytes that it may have grown by since */
	uint64_t asked_ns;	/* when it was last let go on */
	unsigned writes;	/* writes that it was granted then */
	unsigned left;		/* of these, not asked for yet */
	uint64_t refused_ns;	/* when pages found no room; 0: never, or a
				 * write got the error */
};

struct room_state {
	struct session *session;
	uint64_t low_bytes;	/* with less than this left, each write(2)
				 * has to ask */
	bool low;		/* less than that was left at the last look,
				 * or a request waits for room */
	uint64_t low_ns;	/* when that began */
	struct hashmap *growers;	/* by inode */
	uint64_t granted;	/* bytes that growers may grow by */

	/* room_flush.c */
	bool unasked;		/* the kernel may have pages of writes that did
				 * not ask */
	bool first_round;	/* no round has ended since little room began */
	uint64_t *inos;		/* files whose pages are still to be written
				 * out in this round */
	size_t inos_n;
	bool in_round;
	bool flushing;		/* pages of one are being written out */
	uint64_t round_ns;	/* when the last round began */
	uint64_t next_ns;	/* not before this time does another begin */
	struct list waiting;	/* requests of room_wait, except those that are
				 * being tried again */
	unsigned waiting_n;	/* all of them */
	unsigned holding_n;	/* those of them that keep one of the kernel's
				 * places in the background from others */
	unsigned buffers_n;	/* those of them that keep a large buffer */
	bool stopped;		/* nobody may wait any more */
};

/* Bytes of accepted data that are to come; room_expect tells the file system
 * of them. */
uint64_t room_expected(const struct room_state *room);
void room_expect(struct room_state *room);
/* Has each write(2) ask from now on, while little is left or somebody waits. */
bool room_is_low(struct room_state *room);
/* The pages of a file that were accepted before `before_ns` have been written
 * out. */
void room_settled(struct room_state *room, uint64_t ino, uint64_t before_ns);

#endif

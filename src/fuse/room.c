/*
 * room.c - see room.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/env.h"
#include "format/format.h"
#include "fuse/room_internal.h"
#include "fuse/session_internal.h"

/* How long the error of pages that found no room is kept for the next write(2)
 * to their file, which gets it even if there is room again by then. */
#define REFUSED_NEWS_NS (3 * NS_PER_SECOND)

/* A file that asks for room is granted several writes at once, for which it
 * need not ask again: as many as take one part in WRITES_PART of what is left,
 * and MOST_WRITES at most. */
#define MOST_WRITES 64u
#define WRITES_PART 8u
/* A write is expected to be no shorter than this. */
#define LEAST_WRITE_BYTES (128u << 10)

/* While a write is done nodes take room as well, by whole tracks.  So there
 * has to be room for it twice, or for it and this much more. */
#define SPARE_BYTES (1u << 20)

/* The part of the room for accepted pages that is kept for files that have not
 * grown while little room was left; they get one block at a time. */
#define UNGROWN_BYTES (256u << 10)

/* Number of closed files of which it is remembered how they grew: a program
 * that opens its file anew for each write gets the error as others do. */
#define CLOSED_MOST 4096u

/* Little room ends when one part in four more is left than where it began, so
 * that it does not begin again and again. */
#define LOW_END_PART 4u

/* ---- Little room ---- */

/* Bytes of writes that did not ask which the kernel's cache may still hold:
 * low_room() of tools/traxfs.c is more than twice that. */
static uint64_t unasked_bytes(const struct room_state *room)
{
	return room->low_bytes / 2;
}

uint64_t room_expected(const struct room_state *room)
{
	return room->granted + (room->unasked ? unasked_bytes(room) : 0);
}

void room_expect(struct room_state *room)
{
	fs_expect(room->session->fs, room_expected(room));
}

/* How files grew when little room was left before says nothing. */
static void forget_growth(struct room_state *room)
{
	struct grower *grower;
	size_t pos = 0;
	uint64_t ino;

	while ((grower = hashmap_next(room->growers, &pos, &ino))) {
		*grower = (struct grower){ .refused_ns = grower->refused_ns };
		if (!hashmap_get(room->session->writers, ino))
			free(hashmap_del(room->growers, ino));
	}
	room->granted = 0;
}

static uint64_t now_of(const struct room_state *room)
{
	return env_now_ns(room->session->options.env);
}

static bool has_writers(const struct session *session)
{
	return !session->options.direct &&
	       (session->writers_lost || hashmap_count(session->writers));
}

bool room_is_low(struct room_state *room)
{
	const uint64_t low = room->low_bytes;
	const bool was_low = room->low;

	room->low = room->waiting_n ||
		    fs_room(room->session->fs) <
			    low + (was_low ? low / LOW_END_PART : 0);
	if (room->low && !was_low) {
		room->low_ns = now_of(room);
		room->first_round = true;
		forget_growth(room);
	}
	if (!room->low && was_low) {
		forget_growth(room);
		room->unasked = has_writers(room->session);
		room_expect(room);
	}
	return room->low;
}

void room_writers_changed(struct session *session)
{
	struct room_state *room = session->room;

	if (!has_writers(session))
		room->unasked = false;
	else if (!room_is_low(room))
		room->unasked = true;
	room_expect(room);
}

bool room_asks(struct session *session, uint64_t ino)
{
	return hashmap_get(session->writers, ino) &&
	       room_is_low(session->room);
}

static void take_grant_back(struct room_state *room, struct grower *grower)
{
	room->granted -= grower->granted;
	grower->granted = 0;
	grower->left = 0;
}

void room_settled(struct room_state *room, uint64_t ino, uint64_t before_ns)
{
	struct grower *grower = hashmap_get(room->growers, ino);

	if (grower && grower->asked_ns + ROOM_SETTLE_NS <= before_ns)
		take_grant_back(room, grower);
}

void room_forget(struct session *session, uint64_t ino)
{
	struct room_state *room = session->room;
	struct grower *grower = hashmap_del(room->growers, ino);

	if (!grower)
		return;
	take_grant_back(room, grower);
	room_expect(room);
	free(grower);
}

void room_closed(struct session *session, uint64_t ino)
{
	struct room_state *room = session->room;
	struct grower *grower = hashmap_get(room->growers, ino);

	if (!grower || !room->low || !grower->writes ||
	    hashmap_count(room->growers) > CLOSED_MOST) {
		room_forget(session, ino);
		return;
	}
	take_grant_back(room, grower);
	room_expect(room);
}

int room_new(struct session *session, struct room_state **out)
{
	struct room_state *room = calloc(1, sizeof(*room));

	if (!room)
		return -ENOMEM;
	room->session = session;
	list_init(&room->waiting);
	room->growers = hashmap_new();
	if (!room->growers) {
		free(room);
		return -ENOMEM;
	}
	*out = room;
	return 0;
}

void room_free(struct room_state *room)
{
	struct grower *grower;
	size_t pos = 0;

	if (!room)
		return;
	while ((grower = hashmap_next(room->growers, &pos, NULL)))
		free(grower);
	hashmap_free(room->growers);
	free(room->inos);
	free(room);
}

void room_set_low(struct session *session, uint64_t bytes)
{
	session->room->low_bytes = bytes;
}

static struct grower *grower_of(struct room_state *room, uint64_t ino)
{
	struct grower *grower = hashmap_get(room->growers, ino);

	if (grower)
		return grower;
	grower = calloc(1, sizeof(*grower));
	if (grower && hashmap_put(room->growers, ino, grower)) {
		free(grower);
		return NULL;
	}
	return grower;
}

/* ---- Pages that could not be written ---- */

static void note_refused(struct session *session, uint64_t ino)
{
	struct grower *grower;

	if (!hashmap_get(session->writers, ino))
		return;
	grower = grower_of(session->room, ino);
	if (!grower)
		return;
	grower->refused_ns = env_now_ns(session->options.env);
	if (!grower->write_bytes)
		grower->write_bytes = TRAX_BLOCK_BYTES;
}

/* Must the next write to this file get that error?  Once each time. */
static bool refused(struct session *session, struct grower *grower)
{
	uint64_t at_ns = grower->refused_ns;

	grower->refused_ns = 0;
	return at_ns && env_now_ns(session->options.env) - at_ns <
			REFUSED_NEWS_NS;
}

/* ---- Writes ---- */

static uint64_t more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Does one more write of so many bytes fit, and may more follow it? */
static bool fits(uint64_t room, uint64_t bytes)
{
	return room >= bytes + (bytes < SPARE_BYTES ? bytes : SPARE_BYTES);
}

/*
 * Is there room for a write to a file that has grown by such writes before, but
 * not by the last write, or never (0)?  It may grow all the same, by whatever
 * falls into a block more; then its pages may have what is kept for them.
 */
static bool may_go_on(uint64_t room, uint64_t bytes)
{
	uint64_t kept = bytes ? UNGROWN_BYTES : 0;

	return room >= bytes + TRAX_BLOCK_BYTES + kept;
}

/* By how much has each write made the file longer since we looked last? */
static uint64_t growth_of(const struct grower *grower,
			 const struct fs_attr *attr)
{
	uint64_t longer = more(attr->size, grower->size);
	uint64_t used = more(attr->sectors * SECTOR_BYTES, grower->used);
	uint64_t by = longer < used ? longer : used;

	/* Of one that has not asked before it is known that what is empty
	 * needs a block. */
	if (!grower->writes)
		return attr->size ? 0 : TRAX_BLOCK_BYTES;
	return (by + grower->writes - 1) / grower->writes;
}

/* How many such writes may be done before we look again? */
static unsigned writes_of(uint64_t room, uint64_t bytes)
{
	uint64_t n;

	bytes = bytes < LEAST_WRITE_BYTES ? LEAST_WRITE_BYTES : bytes;
	n = room / WRITES_PART / bytes;
	n = n < MOST_WRITES ? n : MOST_WRITES;
	return n ? (unsigned)n : 1;
}

bool room_may_grow(struct session *session, const struct fs_attr *attr)
{
	struct room_state *room = session->room;
	struct grower *grower = grower_of(room, attr->ino);
	uint64_t left, taken, grown, bytes;
	bool known, reported, there;

	/* Without memory for it, close(2) tells. */
	if (!grower)
		return true;
	known = grower->writes;
	reported = refused(session, grower);
	room->granted -= grower->granted;
	grown = growth_of(grower, attr);
	bytes = grown ? grown : grower->write_bytes;
	taken = room->granted +
		(room->first_round ? unasked_bytes(room) : 0);
	left = more(fs_room(session->fs), taken);
	there = grown ? fits(left, grown) :
			may_go_on(more(fs_room_accepted(session->fs), taken),
				  bytes);
	*grower = (struct grower){
		.size = attr->size,
		.used = attr->sectors * SECTOR_BYTES,
		.write_bytes = bytes,
		.writes = 1,
		.asked_ns = now_of(room),
	};
	if (reported || !there) {
		room_expect(room);
		return false;
	}
	if (known)
		grower->writes = writes_of(left, bytes);
	grower->left = grower->writes - 1;
	grower->granted = grower->writes *
			  (bytes ? bytes : TRAX_BLOCK_BYTES);
	room->granted += grower->granted;
	room_expect(room);
	return true;
}

enum room_answer room_question(struct session *session, uint64_t ino)
{
	struct room_state *room = session->room;
	struct grower *grower = hashmap_get(room->growers, ino);

	if (grower && refused(session, grower))
		return ROOM_FULL;
	if (!room_is_low(room))
		return ROOM_THERE;
	if (!grower || !grower->left)
		return ROOM_LOOK;
	grower->left--;
	grower->asked_ns = now_of(room);
	return ROOM_THERE;
}

void room_page_written(struct session *session, uint64_t ino, int rc)
{
	if (rc == -ENOSPC)
		note_refused(session, ino);
	if (rc == -ENOSPC || (room_asks(session, ino) &&
			      !hashmap_get(session->room->growers, ino)))
		notify_attr(session->notify, ino);
}

/*
 * room.c - see room.h.
 */
#include "fuse/room.h"

#include <errno.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/units.h"
#include "format/format.h"
#include "fuse/session_internal.h"

/* The disk counts as full for a file for this long after a write of it failed
 * for lack of room. */
#define FULL_REPORTED_NS (3 * NS_PER_SECOND)

/* So many questions at most are answered without looking, as long as so many
 * times what they are expected to take is left. */
#define MOST_PIECES 64u
#define PIECES_PART 8u
/* Pieces are expected to be no shorter than this. */
#define LEAST_PIECE_BYTES (128u << 10)

/* While a piece is written nodes take room as well, by whole tracks: it has to
 * fit twice, or with so much to spare. */
#define SPARE_BYTES (1u << 20)

/* A file that is open for writing, and has asked while little room was left. */
struct grower {
	uint64_t size, used;	/* bytes, when we looked last */
	uint64_t granted;	/* bytes that it may have grown by since */
	unsigned pieces;	/* writes that it was granted then */
	unsigned left;		/* of these, not asked for yet */
};

/* ---- Pages that could not be written ---- */

static void note_full(struct session *session, uint64_t ino)
{
	uint64_t now = env_now_ns(session->options.env);
	unsigned i;

	for (i = 0; i < SESSION_FULL_FILES; i++)
		if (session->full[i].ino == ino)
			break;
	if (i == SESSION_FULL_FILES)
		i = session->full_next++ % SESSION_FULL_FILES;
	session->full[i].ino = ino;
	session->full[i].ns = now;
}

/* Must the next write to this file be told of a full disk?  Once each time. */
static bool full_reported(struct session *session, uint64_t ino)
{
	uint64_t now = env_now_ns(session->options.env);
	unsigned i;

	for (i = 0; i < SESSION_FULL_FILES; i++) {
		if (session->full[i].ino != ino)
			continue;
		session->full[i].ino = 0;
		return now - session->full[i].ns < FULL_REPORTED_NS;
	}
	return false;
}

/* ---- Little room ---- */

static bool is_low(const struct session *session)
{
	return fs_room(session->fs) < session->low_room;
}

bool room_asks(const struct session *session, uint64_t ino)
{
	return hashmap_get(session->writers, ino) && is_low(session);
}

void room_forget(struct session *session, uint64_t ino)
{
	struct grower *grower = hashmap_del(session->growers, ino);

	if (!grower)
		return;
	session->granted -= grower->granted;
	free(grower);
}

void room_forget_all(struct session *session)
{
	struct grower *grower;
	size_t pos = 0;

	if (!session->growers)
		return;
	while ((grower = hashmap_next(session->growers, &pos, NULL)))
		free(grower);
	hashmap_free(session->growers);
}

static struct grower *grower_of(struct session *session, uint64_t ino)
{
	struct grower *grower = hashmap_get(session->growers, ino);

	if (grower)
		return grower;
	grower = calloc(1, sizeof(*grower));
	if (grower && hashmap_put(session->growers, ino, grower)) {
		free(grower);
		return NULL;
	}
	return grower;
}

static uint64_t more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* By how much has each write made the file longer since we looked last? */
static uint64_t piece_of(const struct grower *grower,
			 const struct fs_attr *attr)
{
	uint64_t longer = more(attr->size, grower->size);
	uint64_t used = more(attr->sectors * SECTOR_BYTES, grower->used);
	uint64_t by = longer < used ? longer : used;

	/* Of one that has not asked before it is known that what is empty
	 * needs a block. */
	if (!grower->pieces)
		return attr->size ? 0 : TRAX_BLOCK_SECTORS * SECTOR_BYTES;
	return (by + grower->pieces - 1) / grower->pieces;
}

/* How many such pieces may be written before we look again? */
static unsigned pieces_of(uint64_t room, uint64_t piece)
{
	uint64_t n;

	piece = piece < LEAST_PIECE_BYTES ? LEAST_PIECE_BYTES : piece;
	n = room / PIECES_PART / piece;
	n = n < MOST_PIECES ? n : MOST_PIECES;
	return n ? (unsigned)n : 1;
}

bool room_may_grow(struct session *session, const struct fs_attr *attr)
{
	struct grower *grower = grower_of(session, attr->ino);
	uint64_t room, piece;
	bool known;

	/* Without memory for it, close(2) tells. */
	if (!grower)
		return true;
	known = grower->pieces;
	session->granted -= grower->granted;
	piece = piece_of(grower, attr);
	room = more(fs_room(session->fs), session->granted);
	*grower = (struct grower){
		.size = attr->size,
		.used = attr->sectors * SECTOR_BYTES,
		.pieces = 1,
	};
	if (room < piece + (piece < SPARE_BYTES ? piece : SPARE_BYTES))
		return false;
	if (known)
		grower->pieces = pieces_of(room, piece);
	grower->left = grower->pieces - 1;
	grower->granted = grower->pieces * piece;
	session->granted += grower->granted;
	return true;
}

enum room_answer room_question(struct session *session, uint64_t ino)
{
	struct grower *grower = hashmap_get(session->growers, ino);

	if (full_reported(session, ino))
		return ROOM_FULL;
	if (!is_low(session))
		return ROOM_THERE;
	if (!grower || !grower->left)
		return ROOM_LOOK;
	grower->left--;
	return ROOM_THERE;
}

void room_page_written(struct session *session, uint64_t ino, int rc)
{
	if (rc == -ENOSPC)
		note_full(session, ino);
	if (rc == -ENOSPC || (room_asks(session, ino) &&
			      !hashmap_get(session->growers, ino)))
		notify_attr(session->notify, ino);
}

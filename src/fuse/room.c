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

/* So long after pages of a file found no room its next write gets the error,
 * whatever is left then. */
#define REFUSED_NEWS_NS (3 * NS_PER_SECOND)

/* So many questions at most are answered without looking, as long as so many
 * times what they are expected to take is left. */
#define MOST_PIECES 64u
#define PIECES_PART 8u
/* Pieces are expected to be no shorter than this. */
#define LEAST_PIECE_BYTES (128u << 10)

/* While a piece is written nodes take room as well, by whole tracks: it has to
 * fit twice, or with so much to spare. */
#define SPARE_BYTES (1u << 20)

/* Of the room for accepted pages, so much is for files that have not grown
 * while little room was left, a block each time. */
#define UNGROWN_BYTES (256u << 10)

/* Little room ends with so much more than it began with, one part of that, so
 * that it does not begin again and again. */
#define LOW_END_PART 4u

/* A file that is open for writing, and has asked while little room was left, or
 * pages of it found none. */
struct grower {
	uint64_t size, used;	/* bytes, when we looked last */
	uint64_t piece;		/* bytes that each write took when the file
				 * last grew; 0: it has not grown yet */
	uint64_t granted;	/* bytes that it may have grown by since */
	unsigned pieces;	/* writes that it was granted then */
	unsigned left;		/* of these, not asked for yet */
	uint64_t refused_ns;	/* when pages found no room; 0: never, or a
				 * write got the error */
};

/* ---- Little room ---- */

/* The kernel may have as many dirty pages of files that have not asked yet:
 * low_room() of tools/traxfs.c is more than twice that. */
static uint64_t unasked_bytes(const struct session *session)
{
	return session->low_flush_n || session->low_flushing ?
		       session->low_room / 2 : 0;
}

/* All files that are open for writing are to be written out (low_flush.h).
 * Without memory for it, fsync(2) reports what finds no room. */
static void flush_all(struct session *session)
{
	size_t n = hashmap_count(session->writers), found = 0, pos = 0;
	uint64_t *inos = malloc((n ? n : 1) * sizeof(*inos));

	if (!inos)
		return;
	while (found < n && hashmap_next(session->writers, &pos, &inos[found]))
		found++;
	free(session->low_flush);
	session->low_flush = inos;
	session->low_flush_n = found;
}

/* How files grew when little room was left before says nothing. */
static void forget_growth(struct session *session)
{
	struct grower *grower;
	size_t pos = 0;

	while ((grower = hashmap_next(session->growers, &pos, NULL)))
		*grower = (struct grower){ .refused_ns = grower->refused_ns };
	session->granted = 0;
}

static bool is_low(struct session *session)
{
	uint64_t low = session->low_room;
	bool was_low = session->low;

	session->low = fs_room(session->fs) <
		       low + (was_low ? low / LOW_END_PART : 0);
	if (session->low && !was_low) {
		forget_growth(session);
		flush_all(session);
	}
	return session->low;
}

bool room_asks(struct session *session, uint64_t ino)
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

/* ---- Pages that could not be written ---- */

static void note_refused(struct session *session, uint64_t ino)
{
	struct grower *grower;

	if (!hashmap_get(session->writers, ino))
		return;
	grower = grower_of(session, ino);
	if (!grower)
		return;
	grower->refused_ns = env_now_ns(session->options.env);
	if (!grower->piece)
		grower->piece = TRAX_BLOCK_BYTES;
}

/* Must the next write to this file get that error?  Once each time. */
static bool refused(struct session *session, struct grower *grower)
{
	uint64_t at_ns = grower->refused_ns;

	grower->refused_ns = 0;
	return at_ns && env_now_ns(session->options.env) - at_ns <
			REFUSED_NEWS_NS;
}

/* ---- Pieces ---- */

static uint64_t more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Does one more piece fit, and may more follow it? */
static bool fits(uint64_t room, uint64_t piece)
{
	return room >= piece + (piece < SPARE_BYTES ? piece : SPARE_BYTES);
}

/*
 * Is there room for a write to a file that has grown by such pieces before, but
 * not by the last write, or never (0)?  It may grow all the same, by whatever
 * falls into a block more; then its pages may have what is kept for them.
 */
static bool may_go_on(uint64_t room, uint64_t piece)
{
	uint64_t kept = piece ? UNGROWN_BYTES : 0;

	return room >= piece + TRAX_BLOCK_BYTES + kept;
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
		return attr->size ? 0 : TRAX_BLOCK_BYTES;
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
	uint64_t room, taken, grown, piece;
	bool known, reported, there;

	/* Without memory for it, close(2) tells. */
	if (!grower)
		return true;
	known = grower->pieces;
	reported = refused(session, grower);
	session->granted -= grower->granted;
	grown = piece_of(grower, attr);
	piece = grown ? grown : grower->piece;
	taken = session->granted + unasked_bytes(session);
	room = more(fs_room(session->fs), taken);
	there = grown ? fits(room, grown) :
			may_go_on(more(fs_room_accepted(session->fs), taken),
				  piece);
	*grower = (struct grower){
		.size = attr->size,
		.used = attr->sectors * SECTOR_BYTES,
		.piece = piece,
		.pieces = 1,
	};
	if (reported || !there)
		return false;
	if (known)
		grower->pieces = pieces_of(room, piece);
	grower->left = grower->pieces - 1;
	grower->granted = grower->pieces *
			  (piece ? piece : TRAX_BLOCK_BYTES);
	session->granted += grower->granted;
	return true;
}

enum room_answer room_question(struct session *session, uint64_t ino)
{
	struct grower *grower = hashmap_get(session->growers, ino);

	if (grower && refused(session, grower))
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
		note_refused(session, ino);
	if (rc == -ENOSPC || (room_asks(session, ino) &&
			      !hashmap_get(session->growers, ino)))
		notify_attr(session->notify, ino);
}

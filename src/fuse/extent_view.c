/*
 * extent_view.c - extents cut at tracks, as JSON and as text.
 */
#include <stdio.h>
#include <string.h>

#include "disk/disk.h"
#include "fuse/extent_view.h"

struct view_piece {
	struct fs_extent part;		/* offset, bytes, lbn, flags */
	struct geom_track track;	/* the first of `tracks` */
	uint64_t tracks;		/* 0: inline, on no track */
	bool whole;
};

struct cursor {
	const struct geom *geom;
	const struct fs_extent *extents;
	size_t n, next;
	struct fs_extent rest;		/* the rest of a run that was cut at a
					 * track; bytes = 0: none */
	bool join;			/* whole tracks in one piece */
	unsigned looked;		/* tracks looked at so far */
};

static bool follows(const struct fs_extent *run, const struct fs_extent *e)
{
	return !run->is_inline && !e->is_inline &&
	       run->unwritten == e->unwritten && run->known == e->known &&
	       run->offset + run->bytes == e->offset &&
	       run->bytes % SECTOR_BYTES == 0 &&
	       run->lbn + run->bytes / SECTOR_BYTES == e->lbn;
}

static bool next_run(struct cursor *c)
{
	if (c->next == c->n)
		return false;
	c->rest = c->extents[c->next++];
	while (c->next < c->n && follows(&c->rest, &c->extents[c->next]))
		c->rest.bytes += c->extents[c->next++].bytes;
	return true;
}

/* How many sectors from the start of `track` are whole tracks. */
static uint64_t whole_tracks(struct cursor *c,
			     const struct geom_track *track, uint64_t sectors,
			     uint64_t *tracks)
{
	uint64_t count = geom_tracks(c->geom), sum = 0;
	struct geom_track t = *track;

	*tracks = 0;
	while (sum + t.sectors <= sectors && t.known == track->known) {
		sum += t.sectors;
		c->looked++;
		if (++*tracks == EXTENT_VIEW_TRACKS || !c->join ||
		    t.index + 1 == count)
			break;
		geom_track_at(c->geom, t.index + 1, &t);
	}
	return sum;
}

static void cut_piece(struct cursor *c, struct view_piece *p)
{
	uint64_t sectors = (c->rest.bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
	uint64_t n = 0;

	geom_track_of(c->geom, c->rest.lbn, &p->track);
	c->looked++;
	if (p->track.first == c->rest.lbn)
		n = whole_tracks(c, &p->track, sectors, &p->tracks);
	p->whole = n > 0;
	if (!p->whole) {
		p->tracks = 1;
		n = p->track.first + p->track.sectors - c->rest.lbn;
	}
	if (n * SECTOR_BYTES < p->part.bytes)
		p->part.bytes = n * SECTOR_BYTES;
	c->rest.lbn += n;
}

static bool next_piece(struct cursor *c, struct view_piece *p)
{
	if (!c->rest.bytes && !next_run(c))
		return false;
	*p = (struct view_piece){ .part = c->rest };
	if (!c->rest.is_inline && c->rest.lbn < geom_sectors(c->geom))
		cut_piece(c, p);
	c->rest.offset += p->part.bytes;
	c->rest.bytes -= p->part.bytes;
	return true;
}

/*
 * Goes on to the track of the run that holds byte `from` of the file: the
 * tracks of a long run before it are not walked again for each page.
 */
static void skip_to(struct cursor *c, uint64_t from)
{
	struct geom_track track;
	uint64_t lbn, skip;

	if (!next_run(c) || from <= c->rest.offset || c->rest.is_inline ||
	    from - c->rest.offset >= c->rest.bytes)
		return;
	lbn = c->rest.lbn + (from - c->rest.offset) / SECTOR_BYTES;
	if (lbn >= geom_sectors(c->geom))
		return;
	geom_track_of(c->geom, lbn, &track);
	if (track.first <= c->rest.lbn)
		return;
	skip = track.first - c->rest.lbn;
	c->rest.lbn = track.first;
	c->rest.offset += skip * SECTOR_BYTES;
	c->rest.bytes -= skip * SECTOR_BYTES;
}

#define PIECE_BYTES 320		/* the longest text of a piece fits in */

static const char *truth(bool yes)
{
	return yes ? "true" : "false";
}

static size_t piece_json(const struct view_piece *p, char *s)
{
	unsigned long long offset = p->part.offset, bytes = p->part.bytes;
	int n = snprintf(s, PIECE_BYTES, "{\"offset\":%llu,\"length\":%llu",
			 offset, bytes);

	if (p->part.is_inline)
		n += snprintf(s + n, PIECE_BYTES - n, ",\"inline\":true");
	if (p->tracks)
		n += snprintf(s + n, PIECE_BYTES - n,
			      ",\"lbn\":%llu,\"track\":%llu,\"tracks\":%llu,"
			      "\"cylinder\":%u,\"surface\":%u,\"whole\":%s,"
			      "\"known\":%s,\"placed_known\":%s",
			      (unsigned long long)p->part.lbn,
			      (unsigned long long)p->track.index,
			      (unsigned long long)p->tracks,
			      p->track.cylinder, p->track.surface,
			      truth(p->whole), truth(p->track.known),
			      truth(p->part.known));
	if (p->part.unwritten)
		n += snprintf(s + n, PIECE_BYTES - n, ",\"unwritten\":true");
	return (size_t)n + (size_t)snprintf(s + n, PIECE_BYTES - n, "}");
}

static size_t piece_text(const struct view_piece *p, char *s)
{
	unsigned long long offset = p->part.offset, bytes = p->part.bytes;

	if (p->part.is_inline)
		return (size_t)snprintf(s, PIECE_BYTES, "%llu %llu inline\n",
					offset, bytes);
	return (size_t)snprintf(s, PIECE_BYTES,
				"%llu %llu lbn %llu track %llu cylinder %u "
				"surface %u %s%s\n", offset, bytes,
				(unsigned long long)p->part.lbn,
				(unsigned long long)p->track.index,
				p->track.cylinder, p->track.surface,
				p->whole ? "whole" : "part",
				p->track.known ? "" : " guessed");
}

/* Appends the piece or, when there is no room, nothing. */
static bool print_piece(struct pieces *pieces, const struct view_piece *p)
{
	bool json = pieces->style == EXTENT_VIEW_JSON, comma;
	char s[PIECE_BYTES];
	size_t n;

	if (p->part.offset + p->part.bytes <= pieces->from)
		return true;
	n = json ? piece_json(p, s) : piece_text(p, s);
	comma = json && pieces->used > 1;
	/* One byte stays free for the closing bracket. */
	if (pieces->used + comma + n + json > pieces->room)
		return false;
	if (comma)
		pieces->buffer[pieces->used++] = ',';
	memcpy(pieces->buffer + pieces->used, s, n);
	pieces->used += n;
	pieces->from = p->part.offset + p->part.bytes;
	return true;
}

void extent_view_begin(struct pieces *pieces, const struct geom *geom,
		  enum pieces_style style, uint64_t from, char *buffer,
		  size_t room)
{
	*pieces = (struct pieces){
		.geom = geom, .style = style, .buffer = buffer, .room = room,
		.from = from,
	};
	if (style == EXTENT_VIEW_JSON)
		buffer[pieces->used++] = '[';
}

/*
 * The last piece of a page may continue in the next page, so it is left to
 * that page, unless it is the only piece.
 */
bool extent_view_add(struct pieces *pieces, const struct fs_extent *extents,
		size_t n, bool last)
{
	struct cursor c = {
		.geom = pieces->geom, .extents = extents, .n = n,
		.join = pieces->style == EXTENT_VIEW_JSON,
	};
	uint64_t from = pieces->from;
	struct view_piece p, next;
	bool more;

	skip_to(&c, from);
	more = next_piece(&c, &p);
	while (more) {
		more = next_piece(&c, &next);
		if (!more && !last && pieces->from > from)
			return true;
		if (!print_piece(pieces, &p))
			return false;
		if (more && c.looked >= EXTENT_VIEW_TRACKS &&
		    pieces->from > from)
			return true;
		p = next;
	}
	return !last;
}

size_t extent_view_end(struct pieces *pieces)
{
	if (pieces->style == EXTENT_VIEW_JSON)
		pieces->buffer[pieces->used++] = ']';
	pieces->buffer[pieces->used] = 0;
	return pieces->used;
}

/*
 * extent_view.c - extents cut at tracks, as JSON and as text.
 */
#include <stdio.h>
#include <string.h>

#include "disk/disk.h"
#include "fuse/extent_view.h"

/* A row: the part of a run that lies on one track, or on whole ones. */
struct extent_row {
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
	bool join;			/* whole tracks in one row */
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

static void cut_row(struct cursor *c, struct extent_row *row)
{
	uint64_t sectors = (c->rest.bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
	uint64_t n = 0;

	geom_track_of(c->geom, c->rest.lbn, &row->track);
	c->looked++;
	if (row->track.first == c->rest.lbn)
		n = whole_tracks(c, &row->track, sectors, &row->tracks);
	row->whole = n > 0;
	if (!row->whole) {
		row->tracks = 1;
		n = row->track.first + row->track.sectors - c->rest.lbn;
	}
	if (n * SECTOR_BYTES < row->part.bytes)
		row->part.bytes = n * SECTOR_BYTES;
	c->rest.lbn += n;
}

static bool next_row(struct cursor *c, struct extent_row *row)
{
	if (!c->rest.bytes && !next_run(c))
		return false;
	*row = (struct extent_row){ .part = c->rest };
	if (!c->rest.is_inline && c->rest.lbn < geom_sectors(c->geom))
		cut_row(c, row);
	c->rest.offset += row->part.bytes;
	c->rest.bytes -= row->part.bytes;
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

#define ROW_BYTES 320		/* the longest text of a row fits in */

static const char *truth(bool yes)
{
	return yes ? "true" : "false";
}

static size_t row_json(const struct extent_row *row, char *s)
{
	unsigned long long offset = row->part.offset, bytes = row->part.bytes;
	int n = snprintf(s, ROW_BYTES, "{\"offset\":%llu,\"length\":%llu",
			 offset, bytes);

	if (row->part.is_inline)
		n += snprintf(s + n, ROW_BYTES - n, ",\"inline\":true");
	if (row->tracks)
		n += snprintf(s + n, ROW_BYTES - n,
			      ",\"lbn\":%llu,\"track\":%llu,\"tracks\":%llu,"
			      "\"cylinder\":%u,\"surface\":%u,\"whole\":%s,"
			      "\"known\":%s,\"placed_known\":%s",
			      (unsigned long long)row->part.lbn,
			      (unsigned long long)row->track.index,
			      (unsigned long long)row->tracks,
			      row->track.cylinder, row->track.surface,
			      truth(row->whole), truth(row->track.known),
			      truth(row->part.known));
	if (row->part.unwritten)
		n += snprintf(s + n, ROW_BYTES - n, ",\"unwritten\":true");
	return (size_t)n + (size_t)snprintf(s + n, ROW_BYTES - n, "}");
}

static size_t row_text(const struct extent_row *row, char *s)
{
	unsigned long long offset = row->part.offset, bytes = row->part.bytes;

	if (row->part.is_inline)
		return (size_t)snprintf(s, ROW_BYTES, "%llu %llu inline\n",
					offset, bytes);
	return (size_t)snprintf(s, ROW_BYTES,
				"%llu %llu lbn %llu track %llu cylinder %u "
				"surface %u %s%s\n", offset, bytes,
				(unsigned long long)row->part.lbn,
				(unsigned long long)row->track.index,
				row->track.cylinder, row->track.surface,
				row->whole ? "whole" : "part",
				row->track.known ? "" : " guessed");
}

/* Appends the row or, when there is no room, nothing. */
static bool print_row(struct extent_view *view, const struct extent_row *row)
{
	bool json = view->style == EXTENT_VIEW_JSON, comma;
	char s[ROW_BYTES];
	size_t n;

	if (row->part.offset + row->part.bytes <= view->from)
		return true;
	n = json ? row_json(row, s) : row_text(row, s);
	comma = json && view->used > 1;
	/* One byte stays free for the closing bracket. */
	if (view->used + comma + n + json > view->room)
		return false;
	if (comma)
		view->buffer[view->used++] = ',';
	memcpy(view->buffer + view->used, s, n);
	view->used += n;
	view->from = row->part.offset + row->part.bytes;
	return true;
}

void extent_view_begin(struct extent_view *view, const struct geom *geom,
		  enum extent_view_style style, uint64_t from, char *buffer,
		  size_t room)
{
	*view = (struct extent_view){
		.geom = geom, .style = style, .buffer = buffer, .room = room,
		.from = from,
	};
	if (style == EXTENT_VIEW_JSON)
		buffer[view->used++] = '[';
}

/*
 * The last row of a page may continue in the next page, so it is left to
 * that page, unless it is the only row.
 */
bool extent_view_add(struct extent_view *view, const struct fs_extent *extents,
		size_t n, bool last)
{
	struct cursor c = {
		.geom = view->geom, .extents = extents, .n = n,
		.join = view->style == EXTENT_VIEW_JSON,
	};
	uint64_t from = view->from;
	struct extent_row row, next;
	bool more;

	skip_to(&c, from);
	more = next_row(&c, &row);
	while (more) {
		more = next_row(&c, &next);
		if (!more && !last && view->from > from)
			return true;
		if (!print_row(view, &row))
			return false;
		if (more && c.looked >= EXTENT_VIEW_TRACKS &&
		    view->from > from)
			return true;
		row = next;
	}
	return !last;
}

size_t extent_view_end(struct extent_view *view)
{
	if (view->style == EXTENT_VIEW_JSON)
		view->buffer[view->used++] = ']';
	view->buffer[view->used] = 0;
	return view->used;
}

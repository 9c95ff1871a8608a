/*
 * pieces.c - extents cut at tracks, as JSON and as text.
 */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk/disk.h"
#include "fuse/pieces.h"

struct piece {
	struct fs_extent part;		/* offset, bytes, lbn, flags */
	struct geom_track track;	/* the first of `tracks` */
	uint64_t tracks;		/* 0: inline, on no track */
	bool whole;
};

struct cursor {
	const struct geom *geom;
	const struct fs_extent *extents;
	size_t n, next;
	struct fs_extent rest;		/* of the run; bytes = 0: none */
	bool join;			/* whole tracks in one piece */
};

struct text {
	char *buffer;
	size_t used, room;
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
static uint64_t whole_tracks(const struct cursor *c,
			     const struct geom_track *track, uint64_t sectors,
			     uint64_t *tracks)
{
	uint64_t count = geom_tracks(c->geom), sum = 0;
	struct geom_track t = *track;

	*tracks = 0;
	while (sum + t.sectors <= sectors && t.known == track->known) {
		sum += t.sectors;
		++*tracks;
		if (!c->join || t.index + 1 == count)
			break;
		geom_track_at(c->geom, t.index + 1, &t);
	}
	return sum;
}

static void cut_piece(struct cursor *c, struct piece *p)
{
	uint64_t sectors = (c->rest.bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
	uint64_t n = 0;

	geom_track_of(c->geom, c->rest.lbn, &p->track);
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

static bool next_piece(struct cursor *c, struct piece *p)
{
	if (!c->rest.bytes && !next_run(c))
		return false;
	*p = (struct piece){ .part = c->rest };
	if (!c->rest.is_inline && c->rest.lbn < geom_sectors(c->geom))
		cut_piece(c, p);
	c->rest.offset += p->part.bytes;
	c->rest.bytes -= p->part.bytes;
	return true;
}

/* Appends all of the string or, when there is no room, nothing. */
static bool add(struct text *t, const char *s)
{
	size_t n = strlen(s);

	if (n > t->room - t->used)
		return false;
	memcpy(t->buffer + t->used, s, n + 1);
	t->used += n;
	return true;
}

static char *piece_json(const struct piece *p)
{
	json_t *o = json_pack("{s:I,s:I}", "offset",
			      (json_int_t)p->part.offset, "length",
			      (json_int_t)p->part.bytes);
	char *s;

	if (o && p->part.is_inline)
		json_object_set_new(o, "inline", json_true());
	if (o && p->tracks) {
		json_t *place = json_pack(
			"{s:I,s:I,s:I,s:i,s:i,s:b,s:b,s:b}", "lbn",
			(json_int_t)p->part.lbn, "track",
			(json_int_t)p->track.index, "tracks",
			(json_int_t)p->tracks, "cylinder",
			(int)p->track.cylinder, "surface",
			(int)p->track.surface, "whole", (int)p->whole,
			"known", (int)p->track.known, "placed_known",
			(int)p->part.known);

		json_object_update(o, place);
		json_decref(place);
	}
	if (o && p->part.unwritten)
		json_object_set_new(o, "unwritten", json_true());
	s = o ? json_dumps(o, JSON_COMPACT) : NULL;
	json_decref(o);
	return s;
}

static char *piece_text(const struct piece *p)
{
	char *s;
	int n;

	if (p->part.is_inline)
		n = asprintf(&s, "%llu %llu inline\n",
			     (unsigned long long)p->part.offset,
			     (unsigned long long)p->part.bytes);
	else
		n = asprintf(&s,
			     "%llu %llu lbn %llu track %llu cylinder %u "
			     "surface %u %s%s\n",
			     (unsigned long long)p->part.offset,
			     (unsigned long long)p->part.bytes,
			     (unsigned long long)p->part.lbn,
			     (unsigned long long)p->track.index,
			     p->track.cylinder, p->track.surface,
			     p->whole ? "whole" : "part",
			     p->track.known ? "" : " guessed");
	return n < 0 ? NULL : s;
}

static bool text_open(struct text *t, size_t room)
{
	t->buffer = malloc(room + 1);
	t->used = 0;
	t->room = room;
	if (t->buffer)
		t->buffer[0] = 0;
	return t->buffer;
}

/* Adds pieces behind `from` until there is no room; `between` goes between
 * two, and `reserve` bytes stay free. */
static void add_pieces(struct text *t, struct cursor *c, uint64_t from,
		       char *(*print)(const struct piece *p),
		       const char *between, size_t reserve)
{
	size_t first = t->used;
	struct piece p;

	t->room -= reserve;
	while (next_piece(c, &p)) {
		size_t before = t->used;
		bool added;
		char *s;

		if (p.part.offset + p.part.bytes <= from)
			continue;
		s = print(&p);
		added = s && (t->used == first || add(t, between)) &&
			add(t, s);
		free(s);
		if (!added) {
			t->buffer[t->used = before] = 0;
			break;
		}
	}
	t->room += reserve;
}

char *pieces_json(const struct fs_extent *extents, size_t n,
		  const struct geom *geom, uint64_t from, size_t room)
{
	struct cursor c = { .geom = geom, .extents = extents, .n = n,
			    .join = true };
	struct text t;

	if (!text_open(&t, room))
		return NULL;
	add(&t, "[");
	add_pieces(&t, &c, from, piece_json, ",", 1);
	add(&t, "]");
	return t.buffer;
}

char *pieces_text(const struct fs_extent *extents, size_t n,
		  const struct geom *geom, uint64_t from, size_t room)
{
	struct cursor c = { .geom = geom, .extents = extents, .n = n };
	struct text t;

	if (!text_open(&t, room))
		return NULL;
	add_pieces(&t, &c, from, piece_text, "", 0);
	return t.buffer;
}

/*
 * tracks.c - which slot of which log track comes next.
 *
 * A track without a role is free when all records in it are below the tail.
 * A role takes the free track that is nearest to the last one, so that a busy
 * log does not wander over the disk, and its slots in order.  Records may take
 * the twins' track when there is no other; twins take nothing away from what is
 * promised to records.
 *
 * A promise is kept whatever records it comes in: see tracks_hold.
 */
#include "log/internal.h"

#define SECTORS_OF(bytes) ((uint32_t)((bytes) / SECTOR_BYTES))

void log_tracks_init(struct log *log, const struct super *super)
{
	const uint64_t unit = SECTORS_OF(log->unit_bytes);

	log->tracks = super->log_tracks;
	for (unsigned i = 0; i < log->tracks; i++) {
		const struct super_track *from = &super->log[i];
		const uint32_t skip = (uint32_t)(-from->sector & (unit - 1));
		struct log_track *t = &log->track[i];

		t->first = from->sector + skip;
		t->sectors = (uint32_t)((from->sectors - skip) / unit * unit);
		log->total_bytes += (uint64_t)t->sectors * SECTOR_BYTES;
	}
}

bool log_track_is_free(const struct log *log, const struct log_track *t)
{
	return t->max_seq < log->tail_seq;
}

static bool has_room(const struct log_track *t, size_t bytes)
{
	return t && t->sectors - t->next >= SECTORS_OF(bytes);
}

static uint64_t distance(const struct log_track *a, const struct log_track *b)
{
	return a->first > b->first ? a->first - b->first : b->first - a->first;
}

/* The free track nearest to the present one that is neither of the two; at
 * first the outermost. */
static struct log_track *track_nearest(struct log *log,
				       const struct log_track *not1,
				       const struct log_track *not2)
{
	const struct log_track *from = log->main ? log->main : &log->track[0];
	struct log_track *best = NULL;

	for (unsigned i = 0; i < log->tracks; i++) {
		struct log_track *t = &log->track[i];

		if (t != not1 && t != not2 && log_track_is_free(log, t) &&
		    (!best || distance(t, from) < distance(best, from)))
			best = t;
	}
	return best;
}

/*
 * Where a record of this size goes; `elsewhere`: not to the present track.
 *   1. the present track;
 *   2. the nearest free one;
 *   3. the twins' track;
 *   4. the present one all the same.
 */
struct log_track *log_place_main(struct log *log, size_t bytes, bool elsewhere)
{
	struct log_track *t;

	if (!elsewhere && has_room(log->main, bytes))
		return log->main;
	t = track_nearest(log, log->twin, elsewhere ? log->main : NULL);
	if (t)
		t->next = 0;
	else if (!log->sending && has_room(log->twin, bytes)) {
		t = log->twin;
		log->twin = NULL;
	}
	if (t)
		log->main = t;
	return has_room(log->main, bytes) ? log->main : NULL;
}

/*
 * Do the tracks hold `need` bytes of records, in whatever records they come,
 * when twins take `takes` bytes of `twin`?  They do if one track alone does.
 * Else: a track is left when a record does not fit, so less than the longest
 * record is lost at the end of each.
 */
static bool tracks_hold(const struct log *log, uint64_t need,
			const struct log_track *twin, uint64_t takes)
{
	const uint64_t longest = need < TRAX_MAX_RECORD_BYTES ?
		need : TRAX_MAX_RECORD_BYTES;
	uint64_t sum = 0;

	for (unsigned i = 0; i < log->tracks; i++) {
		const struct log_track *t = &log->track[i];
		uint64_t room = 0;

		if (t == log->main || t == log->twin)
			room = t->sectors - t->next;
		else if (log_track_is_free(log, t))
			room = t->sectors;
		room *= SECTOR_BYTES;
		if (t == twin)
			room -= takes;
		else if (t == log->twin)
			room = 0;	/* twins leave it */
		if (room >= need)
			return true;
		if (room + log->unit_bytes > longest)
			sum += room + log->unit_bytes - longest;
	}
	return sum >= need;
}

bool log_tracks_hold(const struct log *log, uint64_t need)
{
	return tracks_hold(log, need, log->twin, 0);
}

/* Where twins go, `first` bytes at least, `bytes` if they fit. */
struct log_track *log_place_twin(struct log *log, size_t first, size_t bytes,
				 bool elsewhere)
{
	struct log_track *t = log->twin;
	bool fresh = elsewhere || !has_room(t, first);
	uint64_t room;

	/* That may be the same one, when all in it is forgotten. */
	if (fresh)
		t = track_nearest(log, log->main, elsewhere ? t : NULL);
	if (!t)
		return NULL;
	if (fresh && t == log->twin)
		t->next = 0;
	room = (uint64_t)(t->sectors - (fresh ? 0 : t->next)) * SECTOR_BYTES;
	if (!tracks_hold(log, log_needed_bytes(log), t,
			 bytes < room ? bytes : room))
		return NULL;
	if (fresh)
		t->next = 0;
	log->twin = t;
	return t;
}

/* The rest of a track that has no role any more is lost until it is free. */
uint64_t log_tracks_used_bytes(const struct log *log)
{
	uint64_t sectors = 0;

	for (unsigned i = 0; i < log->tracks; i++) {
		const struct log_track *t = &log->track[i];

		if (t == log->main || t == log->twin)
			sectors += t->next;
		else if (!log_track_is_free(log, t))
			sectors += t->sectors;
	}
	return sectors * SECTOR_BYTES;
}

/* After the tail has moved: a track with a role may begin again. */
void log_tracks_rewind(struct log *log)
{
	if (log->main && !log->writing && log_track_is_free(log, log->main))
		log->main->next = 0;
	if (log->twin && !log->sending && log_track_is_free(log, log->twin))
		log->twin->next = 0;
}

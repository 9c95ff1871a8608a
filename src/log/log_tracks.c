/*
 * log_tracks.c - which slots of which log track come next.
 *
 * A track is cut into units; a unit is free when the record in it is below the
 * tail.  A record takes a run of free units:
 *
 *   where the head is known, the run that passes under it first on the tracks
 *   near it (log skipping; Anand et al., FAST 2008, section 6), if all promises
 *   can still be kept then;
 *   otherwise the beginning of a free run: on the present track, on the nearest
 *   free one to what was written or read last, on any.
 *
 * A promise is kept whatever records it comes in (tracks_hold): taking the
 * beginning of a run never breaks one, cutting a run in two may.  While room
 * in long runs is short, only runs that are broken already are cut, and others
 * near their beginning.
 *
 * Mirrors go to a track that holds none of their originals: behind records that
 * have gone on to another track, or wherever there is room.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "log/log_internal.h"
#include "sched/queue/range_write.h"

#define SECTORS_OF(bytes) ((uint32_t)((bytes) / SECTOR_BYTES))

/* A commit that follows the last one within this time (3 ms) would have to wait
 * for anything that is written in between. */
#define COMMIT_WAITS_NS (3 * NS_PER_MS)

/* While long runs are scarce, a record may begin this far behind the beginning
 * of one: the head passes that much while a command is decoded. */
#define SKIPPED_BYTES (64u << 10)

/* Long runs may be cut in two while this much more than promised is left in
 * long runs. */
#define EASY_BYTES (2u * TRAX_MAX_RECORD_BYTES)

/* A track as the superblock has it; it has no memory for its units yet. */
static struct log_track track_at(const struct log *log,
				 const struct super_track *from)
{
	const uint32_t unit = SECTORS_OF(log->unit_bytes);
	const uint32_t skip = (uint32_t)(-from->sector & (unit - 1));

	return (struct log_track){
		.first = from->sector + skip,
		.units = from->sectors > skip ?
			 (from->sectors - skip) / unit : 0,
	};
}

int log_tracks_init(struct log *log, const struct super *super)
{
	log->tracks = super->log_tracks;
	for (unsigned i = 0; i < log->tracks; i++) {
		struct log_track *t = &log->track[i];

		*t = track_at(log, &super->log[i]);
		t->seq = calloc(t->units, sizeof(*t->seq));
		if (!t->seq)
			return -ENOMEM;
		log->total_bytes += t->units * (uint64_t)log->unit_bytes;
	}
	return 0;
}

void log_tracks_fini(struct log *log)
{
	for (unsigned i = 0; i < log->tracks; i++)
		free(log->track[i].seq);
}

static uint32_t units_of(const struct log *log, uint64_t bytes)
{
	return (uint32_t)((bytes + log->unit_bytes - 1) / log->unit_bytes);
}

static uint64_t sector_of(const struct log *log, const struct log_track *t,
			  uint32_t unit)
{
	return t->first + (uint64_t)unit * SECTORS_OF(log->unit_bytes);
}

static bool unit_is_free(const struct log *log, const struct log_track *t,
			 uint32_t unit)
{
	return !t->seq[unit] || t->seq[unit] < log->tail_seq;
}

/* The end of the free run that begins at a unit, or `most` if it goes on
 * there. */
static uint32_t run_end(const struct log *log, const struct log_track *t,
			uint32_t unit, uint32_t most)
{
	most = most < t->units ? most : t->units;
	while (unit < most && unit_is_free(log, t, unit))
		unit++;
	return unit;
}

struct log_track *log_track_of(struct log *log, uint64_t sector)
{
	for (unsigned i = 0; i < log->tracks; i++) {
		struct log_track *t = &log->track[i];

		if (sector >= t->first && sector < sector_of(log, t, t->units))
			return t;
	}
	return NULL;
}

void log_tracks_forget_beyond(struct log *log, uint64_t last)
{
	for (unsigned i = 0; i < log->tracks; i++)
		for (uint32_t u = 0; u < log->track[i].units; u++)
			if (log->track[i].seq[u] > last)
				log->track[i].seq[u] = 0;
}

/* ---- Promises ---- */

/* Adds the room that records find for sure in a run. Records leave a run when
 * the next one does not fit, so less than the longest record is lost at its
 * end. */
static void room_add(const struct log *log, struct log_room *room, uint32_t run)
{
	const uint32_t most = units_of(log, TRAX_MAX_RECORD_BYTES);

	if (run > room->longest)
		room->longest = run;
	if (run + 1 > most)
		room->sure += run + 1 - most;
}

/* The room that a track has left when units [first, first + n) are taken. */
static struct log_room room_without(const struct log *log,
				    const struct log_track *t, uint32_t first,
				    uint32_t n)
{
	struct log_room room = { .used = 0 };
	uint32_t run = 0;

	for (uint32_t u = 0; u < t->units; u++) {
		if (unit_is_free(log, t, u) && (u < first || u >= first + n)) {
			run++;
			continue;
		}
		room_add(log, &room, run);
		room.used++;
		run = 0;
	}
	room_add(log, &room, run);
	return room;
}

static void track_refresh(const struct log *log, struct log_track *t)
{
	t->room = room_without(log, t, 0, 0);
}

void log_track_mark(struct log *log, struct log_track *t, uint64_t sector,
		    uint64_t bytes, uint64_t seq)
{
	const uint32_t first = (uint32_t)((sector - t->first) /
					  SECTORS_OF(log->unit_bytes));
	const uint32_t end = first + units_of(log, bytes);

	for (uint32_t u = first; u < end && u < t->units; u++)
		if (seq > t->seq[u])
			t->seq[u] = seq;
	t->next = end;
	track_refresh(log, t);
}

void log_track_unmark(struct log *log, uint64_t sector, uint64_t bytes)
{
	struct log_track *t = log_track_of(log, sector);
	const uint32_t first = (uint32_t)((sector - t->first) /
					  SECTORS_OF(log->unit_bytes));

	memset(&t->seq[first], 0, units_of(log, bytes) * sizeof(t->seq[0]));
	track_refresh(log, t);
}

/* The room that all tracks have left when units of one are taken (NULL: when
 * none are). */
static struct log_room room_of_all(const struct log *log,
				   const struct log_track *not, uint32_t first,
				   uint32_t n)
{
	struct log_room sum = { .used = 0 }, room;

	for (unsigned i = 0; i < log->tracks; i++) {
		const struct log_track *t = &log->track[i];

		room = t == not ? room_without(log, t, first, n) : t->room;
		sum.used += room.used;
		sum.sure += room.sure;
		if (room.longest > sum.longest)
			sum.longest = room.longest;
	}
	return sum;
}

/* Do `need` bytes of records fit, however they are divided into records? If one
 * run alone takes them all they do. */
static bool room_holds(const struct log *log, const struct log_room *room,
		       uint64_t need)
{
	const uint64_t units = (need + log->unit_bytes - 1) / log->unit_bytes;

	return room->longest >= units || room->sure >= units;
}

bool log_tracks_hold(const struct log *log, uint64_t need)
{
	const struct log_room room = room_of_all(log, NULL, 0, 0);

	return room_holds(log, &room, need);
}

uint64_t log_tracks_used_bytes(const struct log *log)
{
	return room_of_all(log, NULL, 0, 0).used * (uint64_t)log->unit_bytes;
}

void log_tracks_refresh(struct log *log)
{
	for (unsigned i = 0; i < log->tracks; i++)
		track_refresh(log, &log->track[i]);
}

/* ---- Without a head ---- */

/* Finds the beginning of a free run of n units at or behind `from`, or of the
 * run that `from` lies in. */
static bool run_find(const struct log *log, const struct log_track *t,
		     uint32_t from, uint32_t n, uint32_t *unit)
{
	while (from && from < t->units && unit_is_free(log, t, from) &&
	       unit_is_free(log, t, from - 1))
		from--;
	while (from < t->units) {
		const uint32_t end = run_end(log, t, from, t->units);

		if (end - from >= n) {
			*unit = from;
			return true;
		}
		from = end + 1;
	}
	return false;
}

static uint64_t distance(const struct log_track *t, uint64_t sector)
{
	return t->first > sector ? t->first - sector : sector - t->first;
}

/* Should the log go on with a rather than b? Wholly free tracks come first,
 * then those near `from`. */
static bool track_is_better(const struct log_track *a,
			    const struct log_track *b, uint64_t from)
{
	if (!b || !a->room.used != !b->room.used)
		return !b || !a->room.used;
	return distance(a, from) < distance(b, from);
}

/* The best track with n free units in a row, other than these two. */
static struct log_track *track_best(struct log *log, uint32_t n,
				    const struct log_track *not1,
				    const struct log_track *not2, uint64_t from)
{
	struct log_track *best = NULL;

	for (unsigned i = 0; i < log->tracks; i++) {
		struct log_track *t = &log->track[i];

		if (t != not1 && t != not2 && t->room.longest >= n &&
		    track_is_better(t, best, from))
			best = t;
	}
	return best;
}

/*
 * Finds n units in order; `elsewhere`: not on the present track.
 *
 *   1. the present track, on from where it is, then from its beginning;
 *   2. the nearest free one, then the nearest with room;
 *   3. the mirrors' track;
 *   4. the present one all the same.
 */
static bool find_in_order(struct log *log, uint32_t n, bool elsewhere,
			  uint64_t *sector)
{
	/* What was written last is mostly the data that the next records speak
	 * of: a track near that spares two long seeks a record, there and back
	 * to more data. */
	const uint64_t from = queue_head_sector(log->queue);
	struct log_track *t = log->main;
	uint32_t unit = 0;

	if (!t || elsewhere || (!run_find(log, t, t->next, n, &unit) &&
				!run_find(log, t, 0, n, &unit))) {
		t = track_best(log, n, log->mirror, log->main, from);
		if (!t)
			t = track_best(log, n, log->main, NULL, from);
		if (!t)
			t = log->main;
		if (!t || !run_find(log, t, 0, n, &unit))
			return false;
	}
	*sector = sector_of(log, t, unit);
	return true;
}

/* ---- With a head ---- */

/* The places where a record may be put. */
struct free_places {
	struct range_set set;
	struct log *log;
	const struct log_track *not;
	bool tight;		/* only in runs that are cut already, or near
				 * the beginning of others */
	uint32_t least;		/* only on tracks with a run this long, or that
				 * are mostly free */
};

/* May the free run around unit `at` be cut there?  What lies further away than
 * the longest record makes no difference, and is not looked at. */
static bool run_may_be_cut(const struct free_places *p,
			   const struct log_track *t, uint32_t at)
{
	const uint32_t most = units_of(p->log, TRAX_MAX_RECORD_BYTES);
	uint32_t from = at;

	if (!p->tight)
		return true;
	while (from && at - from < most && unit_is_free(p->log, t, from - 1))
		from--;
	return at - from <= SKIPPED_BYTES / p->log->unit_bytes ||
	       run_end(p->log, t, at, from + most) - from < most;
}

/* The first place for n units at or behind `unit` that ends at `last` or
 * before.  It is looked for at each choice of the queue, many times over: a
 * long free run is not walked for that. */
static bool track_next(const struct free_places *p, const struct log_track *t,
		       uint32_t unit, uint32_t last, uint32_t n,
		       uint32_t *found)
{
	const struct log *log = p->log;

	while (unit + n <= last) {
		uint32_t end = run_end(log, t, unit, unit + n);

		if (end - unit >= n && run_may_be_cut(p, t, unit)) {
			*found = unit;
			return true;
		}
		if (end - unit >= n)
			end = run_end(log, t, end, t->units);
		unit = end + 1;
	}
	return false;
}

/*
 * Waiting for the last slots of a track takes longer on the whole than going to
 * a fresh one: when the share f of its N slots is free, the next passes after
 * 1/(f N) of a turn.
 */
static bool track_is_used_up(const struct log_track *t)
{
	return t->room.used > t->units / 3 * 2;
}

static bool places_next(const struct range_set *set, uint64_t from,
			uint64_t end, uint32_t sectors, uint64_t *place)
{
	const struct free_places *p =
		container_of(set, const struct free_places, set);
	const uint32_t size = SECTORS_OF(p->log->unit_bytes);
	struct log_track *t = log_track_of(p->log, from);
	uint32_t unit;

	if (!t || t == p->not || end <= t->first ||
	    (t->room.longest < p->least &&
	     t->room.longest < t->units / 4 * 3) ||
	    !track_next(p, t, (uint32_t)((from - t->first + size - 1) / size),
			(uint32_t)((end - t->first) / size), sectors / size,
			&unit))
		return false;
	*place = sector_of(p->log, t, unit);
	return true;
}

/* Is there still room for `need` bytes of records when n units are taken? */
static bool is_kept(const struct log *log, const struct log_track *t,
		    uint64_t sector, uint32_t n, uint64_t need)
{
	const struct log_room room =
		room_of_all(log, t, (uint32_t)((sector - t->first) /
				    SECTORS_OF(log->unit_bytes)), n);

	return room_holds(log, &room, need);
}

static struct range range_of(const struct log *log, const struct log_track *t)
{
	return (struct range){ t->first,
			       sector_of(log, t, t->units) - t->first };
}

/* Finds the place on one track that passes under the head first. */
static bool find_on(struct log *log, const struct head_state *head_state,
		    const struct log_track *t, uint32_t n, uint64_t *sector,
		    uint64_t *cost_ns)
{
	const struct free_places places = {
		.set = { places_next }, .log = log,
	};
	const struct range within = range_of(log, t);
	const struct range_query query = {
		.set = &places.set, .within = &within, .within_n = 1,
		.sectors = n * SECTORS_OF(log->unit_bytes),
	};
	struct range_answer answer;

	if (range_find(head_state, &query, &answer))
		return false;
	*sector = answer.sector;
	*cost_ns = answer.cost_ns;
	return true;
}

/* Finds the allowed place that passes under the head first. */
static bool find_allowed(struct log *log, const struct head_state *head_state,
			 const struct free_places *places, uint32_t n,
			 uint64_t need, uint64_t *sector, uint64_t *cost_ns)
{
	struct range within[TRAX_MAX_LOG_TRACKS];
	struct range_query query = {
		.set = &places->set, .within = within,
		.sectors = n * SECTORS_OF(log->unit_bytes),
	};
	struct range_answer answer;

	for (unsigned i = 0; i < log->tracks; i++)
		within[query.within_n++] = range_of(log, &log->track[i]);
	if (range_find(head_state, &query, &answer) ||
	    !is_kept(log, log_track_of(log, answer.sector), answer.sector, n,
		     need))
		return false;
	*sector = answer.sector;
	*cost_ns = answer.cost_ns;
	return true;
}

/* A commit that others follow at once gains little by a fresh track, and the
 * move takes long. */
static bool is_used_up(const struct log *log)
{
	return log->main && track_is_used_up(log->main) &&
	       log->gap_ns >= COMMIT_WAITS_NS;
}

/* Finds a place on another track, which must have room for what is staged as
 * well, and for long. */
static bool find_on_next(struct log *log, const struct head_state *head_state,
			 uint32_t n, uint64_t need, uint64_t *sector,
			 uint64_t *cost_ns)
{
	const uint32_t staged = units_of(log, log_mirror_staged_bytes(log));
	const struct free_places places = {
		.set = { places_next }, .log = log, .not = log->main,
		.least = log->main && 2 * staged < log->main->units / 2 ?
			 log->main->units / 2 : 2 * staged,
	};

	return find_allowed(log, head_state, &places, n, need, sector, cost_ns);
}

/* Is there so little room in long runs, compared with what is promised, that
 * they must not be cut? */
static bool is_tight(const struct log *log, uint64_t need)
{
	const struct log_room room = room_of_all(log, NULL, 0, 0);

	return !room_holds(log, &room, need + EASY_BYTES);
}

/* Finds the place that passes under the head first and keeps all promises. */
static bool find_nearest(struct log *log, const struct head_state *head_state,
			 uint32_t n, bool elsewhere, uint64_t *sector,
			 uint64_t *cost_ns)
{
	/* Room for the other records only: log_needed_bytes counts the one to
	 * be placed, too. */
	const uint64_t bytes = n * (uint64_t)log->unit_bytes;
	const uint64_t need = log_needed_bytes(log) - bytes;
	const struct free_places places = {
		.set = { places_next }, .log = log,
		.not = elsewhere ? log->main : NULL,
		.tight = is_tight(log, need + bytes),
	};

	if (!places.tight && is_used_up(log) &&
	    find_on_next(log, head_state, n, need, sector, cost_ns))
		return true;
	return find_allowed(log, head_state, &places, n, need, sector, cost_ns);
}

size_t log_place_room(const struct log *log)
{
	const struct log_room room = room_of_all(log, NULL, 0, 0);
	const struct log_track *t = log->main;
	const uint32_t most = units_of(log, TRAX_MAX_RECORD_BYTES);
	uint32_t run = t ? run_end(log, t, t->next, t->units) - t->next : 0;

	if (room.sure < units_of(log, log_needed_bytes(log)) +
			4 * LOG_AT_ONCE * most)
		return 0;
	if (run < most)		/* the next record goes to another track */
		run = room.longest;
	return run * log->unit_bytes;
}

bool log_place_find(struct log *log, const struct head_state *head_state,
		    size_t bytes, bool elsewhere, uint64_t *sector,
		    uint64_t *cost_ns)
{
	const uint32_t n = units_of(log, bytes);

	if (head_state &&
	    find_nearest(log, head_state, n, elsewhere, sector, cost_ns))
		return true;
	*cost_ns = 0;
	return find_in_order(log, n, elsewhere, sector);
}

void log_place_take(struct log *log, uint64_t sector, size_t bytes,
		    uint64_t seq)
{
	log->main = log_track_of(log, sector);
	log_track_mark(log, log->main, sector, bytes, seq);
}

/* ---- Mirrors ---- */

/*
 * Chooses the track for mirrors, never that of the original, in this order:
 *
 *   1. the present track of records, where the head is, if all mirrors fit;
 *   2. the track of the last mirrors;
 *   3. the nearest free track, the nearest with room.
 */
const struct log_track *log_mirror_track(struct log *log, size_t first,
				       size_t bytes, unsigned original,
				       bool elsewhere, size_t *room_bytes)
{
	const struct log_track *not = &log->track[original];
	const uint32_t n = units_of(log, first);
	struct log_track *t = log->main;
	const uint64_t from = (t ? t : &log->track[0])->first;

	if (!t || t == not || elsewhere ||
	    t->room.longest < units_of(log, bytes))
		t = log->mirror;
	if (!t || t == not || elsewhere || t->room.longest < n)
		t = track_best(log, n, not, log->mirror, from);
	if (!t)
		t = track_best(log, n, not, NULL, from);
	if (!t)
		return NULL;
	*room_bytes = t->room.longest * log->unit_bytes;
	log->mirror = t;
	return t;
}

bool log_mirror_find(struct log *log, const struct log_track *track,
		   const struct head_state *head_state, size_t bytes,
		   uint64_t *sector, uint64_t *cost_ns)
{
	const uint32_t n = units_of(log, bytes);
	uint32_t unit;

	*cost_ns = 0;
	if (!head_state ||
	    !find_on(log, head_state, track, n, sector, cost_ns)) {
		if (!run_find(log, track, track->next, n, &unit) &&
		    !run_find(log, track, 0, n, &unit))
			return false;
		*sector = sector_of(log, track, unit);
	}
	return is_kept(log, track, *sector, n, log_needed_bytes(log));
}

/* ---- What lies there ---- */

/* Is a mirror of this record being written just now? */
static bool is_being_written(const struct log *log, const struct log_track *t,
			     uint64_t seq)
{
	const struct log_stage *s = log->sending;
	const struct log_header *h;

	if (!s || s->track != t)
		return false;
	for (size_t at = s->done; at < s->upto; at += le32_get(h->bytes)) {
		h = (const void *)(s->buf + at);
		if (le64_get(h->seq) == seq)
			return true;
	}
	return false;
}

/* Finds the first unit of a record that is needed and on the disk, from `unit`
 * on. */
static bool record_from(const struct log *log, const struct log_track *t,
			uint32_t unit, struct log_found *found)
{
	uint32_t end;

	for (; unit < t->units; unit++) {
		const uint64_t seq = t->seq[unit];

		if (unit_is_free(log, t, unit) || seq > log->durable_seq ||
		    (unit && t->seq[unit - 1] == seq) ||
		    is_being_written(log, t, seq))
			continue;
		for (end = unit; end < t->units && t->seq[end] == seq; end++)
			;
		*found = (struct log_found){
			.sector = sector_of(log, t, unit), .seq = seq,
			.sectors = (end - unit) * SECTORS_OF(log->unit_bytes),
		};
		return true;
	}
	return false;
}

bool log_record_next(const struct log *log, uint64_t from, uint64_t end,
		     struct log_found *found)
{
	const uint32_t size = SECTORS_OF(log->unit_bytes);

	for (unsigned i = 0; i < log->tracks && log->started; i++) {
		const struct log_track *t = &log->track[i];
		const uint64_t at = from > t->first ? from - t->first : 0;

		if (end <= t->first || from >= sector_of(log, t, t->units) ||
		    !record_from(log, t, (uint32_t)((at + size - 1) / size),
				 found))
			continue;
		return found->sector < end;
	}
	return false;
}

const char *log_record_verify(const struct log *log,
			      const struct log_found *found, const void *bytes)
{
	const struct log_header *h = bytes;
	const char *why = log_header_verify(h, (size_t)found->sectors *
					    SECTOR_BYTES, log->uuid,
					    found->sector);

	if (!why && le64_get(h->seq) != found->seq)
		why = "log: another record than the one written";
	return why;
}

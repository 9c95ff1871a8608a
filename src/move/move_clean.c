/*
 * move_clean.c - empties tracks with little data in them, so that there are
 * whole free tracks when large files come (Lumb et al., OSDI 2000, 5.1).
 *
 * 1. A group in which most of the free room is whole tracks is left alone.
 * 2. The data of several tracks goes, in the order in which files are read, to
 *    fewer free tracks of their group, one behind the other, so that the next
 *    move goes on where the last one ended: data that was together stays so,
 *    and is not moved again soon.  Only where that gains no track the data goes
 *    to free parts of other tracks.
 * 3. Of the tracks with most free room the one with the best ratio of benefit
 *    to cost is emptied: (1 - u) * age / (1 + u), with the share u in use and
 *    the age of the last change (Rosenblum and Ousterhout 1992).  Data that was
 *    just written will soon be deleted or overwritten, or its directory's track
 *    is being filled.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/sort.h"
#include "fs/op/inode_item.h"
#include "move/move_internal.h"

/* Files of a track whose age is looked up: each may read a leaf. */
#define SAMPLES 8u
/* A group with less than one 64th of its sectors free has no room to move
 * anything to. */
#define GROUP_SHARE 64u
#define PICK_ROOM 32u		/* leaves that looking at a candidate may
				 * need */

/* ---- Which tracks have most room ---- */

static bool was_tried(const struct moves *moves, uint64_t first)
{
	uint64_t now_ns = env_now_ns(moves->fs->env);
	unsigned i;

	for (i = 0; i < CLEAN_TRIED; i++)
		if (moves->clean.tried[i].first == first &&
		    moves->clean.tried[i].until_ns > now_ns)
			return true;
	return false;
}

static void tried(struct moves *moves, uint64_t first)
{
	struct clean *clean = &moves->clean;

	clean->tried[clean->tried_next].first = first;
	clean->tried[clean->tried_next].until_ns =
		env_now_ns(moves->fs->env) + moves->limits.again_ns;
	clean->tried_next = (clean->tried_next + 1) % CLEAN_TRIED;
}

static void candidate_add(struct clean *clean, const struct clean_track *track)
{
	unsigned i;

	if (clean->candidates < CLEAN_CANDIDATES)
		clean->candidates++;
	else if (clean->candidate[CLEAN_CANDIDATES - 1].free >= track->free)
		return;
	for (i = clean->candidates - 1;
	     i && clean->candidate[i - 1].free < track->free; i--)
		clean->candidate[i] = clean->candidate[i - 1];
	clean->candidate[i] = *track;
}

/* Takes in a track whose free sectors have been counted. */
static void track_seen(struct moves *moves, const struct clean_track *track,
		       uint64_t *whole)
{
	uint64_t n = track->track.n;

	if (!n)
		return;
	if (track->free == n) {
		*whole += n;
		return;
	}
	moves->clean.holes += track->free;
	if (track->free * UINT64_C(100) >= n * moves->limits.free_percent &&
	    track->parts <= MOVE_CLAIMS / MOVE_TRACKS &&
	    moves->clean.open - track->track.first >= n &&
	    !was_tried(moves, track->track.first))
		candidate_add(&moves->clean, track);
}

/* Adds a track to those that are emptied together with the best one: as many as
 * a move has room for. */
static void best_add(struct clean *clean, const struct clean_track *track,
		     double gain)
{
	unsigned i;

	if (clean->bests < MOVE_TRACKS)
		clean->bests++;
	else if (clean->best[MOVE_TRACKS - 1].gain >= gain)
		return;
	for (i = clean->bests - 1; i && clean->best[i - 1].gain < gain; i--)
		clean->best[i] = clean->best[i - 1];
	clean->best[i] = *track;
	clean->best[i].gain = gain;
}

/* Ranks the tracks of a group whose free set is in memory. */
static void group_rank(struct moves *moves)
{
	struct clean *clean = &moves->clean;
	uint64_t at = (uint64_t)clean->group * TRAX_GROUP_SECTORS, end, stop;
	uint64_t to = at + TRAX_GROUP_SECTORS, whole = 0;
	const struct rangeset *set =
		space_free_set(tree_space(moves->fs->tree));
	struct clean_track track = { .free = 0 };
	struct range run, next;

	clean->candidates = clean->looked = 0;
	clean->holes = 0;
	while (at < to && rangeset_next(set, at, &run) && run.first < to) {
		at = run.first > at ? run.first : at;
		end = run.first + run.n < to ? run.first + run.n : to;
		for (; at < end; at = stop) {
			alloc_track(moves->fs->alloc, at, &next);
			stop = next.first + next.n;
			stop = stop > at && stop < end ? stop : end;
			if (next.first != track.track.first) {
				track_seen(moves, &track, &whole);
				track = (struct clean_track){ .track = next };
			}
			track.free += (uint32_t)(stop - at);
			track.parts++;
		}
	}
	track_seen(moves, &track, &whole);
	if (whole * 100 >= (whole + clean->holes) * moves->limits.whole_percent)
		clean->candidates = 0;
	clean->ranked = true;
}

/* ---- What is on them ---- */

struct track_use {
	uint32_t sectors;	/* sectors with an owner */
	uint32_t samples;	/* files whose age was looked up */
	int64_t changed_seconds;	/* the last change of any of these */
};

static int sample_age(struct fs_txn *txn, uint64_t ino, struct track_use *use)
{
	struct inode_item item;
	int64_t seconds;
	int rc = inode_get(txn, ino, &item);

	if (rc)
		return rc;
	seconds = (int64_t)le64_get(item.mtime.seconds);
	if (seconds > use->changed_seconds)
		use->changed_seconds = seconds;
	use->samples++;
	return 0;
}

/* Appends an owner to the ranges of a move, in whole blocks. */
static int range_add(struct move *move, uint64_t ino, uint64_t off,
		     uint64_t n)
{
	uint64_t first = off / BLOCK_SECTORS;
	uint64_t end = (off + n + BLOCK_SECTORS - 1) / BLOCK_SECTORS;

	for (; first < end; first += MOVE_RANGE_BLOCKS) {
		if (move->ranges == MOVE_RANGES)
			return -E2BIG;
		move->range[move->ranges++] = (struct move_range){
			.ino = ino, .first = first,
			.blocks = (uint32_t)(end - first < MOVE_RANGE_BLOCKS ?
				end - first : MOVE_RANGE_BLOCKS),
		};
	}
	return 0;
}

/* Takes an owner of the track, at `sector`. */
static int owner_look(struct fs_txn *txn, const struct clean_track *track,
		      uint64_t sector, const struct owner_item *owner,
		      struct track_use *use, struct move *move)
{
	uint64_t n = le64_get(owner->sectors);

	if (owner->kind != OWNER_DATA || sector < track->track.first ||
	    sector + n > track->track.first + track->track.n)
		return -EBUSY;
	use->sectors += (uint32_t)n;
	if (move)
		return range_add(move, le64_get(owner->ino),
				 le64_get(owner->off), n);
	return use->samples < SAMPLES ?
		       sample_age(txn, le64_get(owner->ino), use) : 0;
}

/*
 * Looks at the owners of a track. -EBUSY: it has something else than data, or
 * sectors that have no owner yet or no more.
 */
static int track_look(struct fs_txn *txn, const struct clean_track *track,
		      struct track_use *use, struct move *move)
{
	uint64_t at = track->track.first, end = at + track->track.n;
	const struct owner_item *owner;
	struct tree_item item;
	int rc;

	*use = (struct track_use){ 0 };
	rc = at ? tree_seek_le(txn->tree_txn,
			       key_make(0, ITEM_OWNER, addr_make(0, at - 1)),
			       key_make(0, ITEM_OWNER, 0), &item) : -ENOENT;
	owner = rc ? NULL : item.value;
	if (owner && addr_sector(item.key.off) + le64_get(owner->sectors) > at)
		return -EBUSY;
	while (!rc || rc == -ENOENT) {
		rc = at < end ? tree_seek_ge(txn->tree_txn,
			key_make(0, ITEM_OWNER, addr_make(0, at)),
			key_make(0, ITEM_OWNER, addr_make(0, end - 1)), &item) :
			-ENOENT;
		if (rc)
			break;
		at = addr_sector(item.key.off);
		owner = item.value;
		rc = owner_look(txn, track, at, owner, use, move);
		at += le64_get(owner->sectors);
	}
	if (rc != -ENOENT)
		return rc;
	return use->sectors + track->free == track->track.n ? 0 : -EBUSY;
}

/* Number of free tracks among the two beside one. */
static unsigned free_beside(const struct moves *moves,
			    const struct range *track)
{
	const struct rangeset *set =
		space_free_set(tree_space(moves->fs->tree));
	struct range next;
	unsigned n = 0;

	if (track->first) {
		alloc_track(moves->fs->alloc, track->first - 1, &next);
		n += next.n && rangeset_has(set, next.first, next.n);
	}
	alloc_track(moves->fs->alloc, track->first + track->n, &next);
	n += next.n && rangeset_has(set, next.first, next.n);
	return n;
}

/* A track beside free ones is worth more: writes go on there without a seek. */
static double track_gain(const struct moves *moves,
			 const struct clean_track *track,
			 const struct track_use *use)
{
	int64_t now = env_wall_seconds(moves->fs->env);
	int64_t age = now - use->changed_seconds;
	double u = (double)use->sectors / (double)track->track.n;

	if (age < moves->limits.age_seconds || !use->sectors ||
	    use->sectors > MOVE_BLOCKS * BLOCK_SECTORS ||
	    moves->clean.holes < track->free + (uint64_t)use->sectors)
		return 0;
	return (1 - u) * (double)(age + 1) / (1 + u) *
	       (1 + free_beside(moves, &track->track));
}

static int pick_run(struct fs_txn *txn)
{
	struct moves *moves = txn->state;
	struct clean *clean = &moves->clean;
	struct space *space = tree_space(txn->fs->tree);
	struct track_use use;
	double gain;
	int rc;

	if (moves->closing)
		return -ESHUTDOWN;
	if (!space_group_loaded(space, clean->group)) {
		clean->ranked = false;
		return fs_txn_wait_group(txn, clean->group);
	}
	if (!clean->ranked)
		group_rank(moves);
	for (; clean->looked < clean->candidates; clean->looked++) {
		const struct clean_track *track =
			&clean->candidate[clean->looked];

		if (tree_txn_room(txn->tree_txn) < PICK_ROOM)
			return 0;
		rc = track_look(txn, track, &use, NULL);
		if (rc && rc != -EBUSY && rc != -ENOENT)
			return rc;
		gain = rc ? 0 : track_gain(moves, track, &use);
		if (gain <= 0)
			tried(moves, track->track.first);
		else
			best_add(clean, track, gain);
	}
	return 0;
}

/* ---- Emptying some ---- */

/* Takes the free part of the track, so that no allocation gets it.  Its room,
 * and the room that the data takes elsewhere until the old places are free, is
 * reserved like that of users, so users are never refused room that was
 * promised to them. */
static int move_claim(struct move *move, const struct clean_track *track,
		      uint32_t used)
{
	struct space *space = tree_space(move->moves->fs->tree);
	uint64_t at = track->track.first, end = at + track->track.n;
	struct range run;
	int rc = space_reserve(space, track->free + (uint64_t)used);

	if (rc)
		return rc;
	move->reserved += track->free + (uint64_t)used;
	while (!rc && rangeset_next(space_free_set(space), at, &run) &&
	       run.first < end) {
		at = run.first > at ? run.first : at;
		run.n = (run.first + run.n < end ? run.first + run.n : end) -
			at;
		rc = move->claims < MOVE_CLAIMS ?
			     space_take(space, at, run.n) : -E2BIG;
		if (!rc)
			move->claim[move->claims++] =
				(struct range){ at, run.n };
		at += run.n;
	}
	return rc;
}

/* Adds a track to a move. -E2BIG: the move has no room for it. */
static int empty_add(struct fs_txn *txn, struct move *move,
		     const struct clean_track *track)
{
	unsigned before = move->ranges;
	struct track_use use;
	int rc = track_look(txn, track, &use, move);

	if (!rc && move->emptied + use.sectors > MOVE_BLOCKS * BLOCK_SECTORS)
		rc = -E2BIG;
	if (!rc)
		rc = move_claim(move, track, use.sectors);
	if (rc) {
		move->ranges = before;
		return rc;
	}
	move->emptied += use.sectors;
	move->track[move->tracks++] = track->track;
	return 0;
}

/* Adds the best tracks, as many as there is room for. */
static int empty_run(struct fs_txn *txn)
{
	struct move *move = txn->state;
	struct clean *clean = &move->moves->clean;
	int rc;

	if (move->moves->closing)
		return -ESHUTDOWN;
	if (!space_group_loaded(tree_space(txn->fs->tree), clean->group))
		return -EBUSY;
	for (; clean->taken < clean->bests; clean->taken++) {
		if (tree_txn_room(txn->tree_txn) < PICK_ROOM)
			return 0;
		rc = empty_add(txn, move, &clean->best[clean->taken]);
		if (rc && rc != -EBUSY && rc != -E2BIG && rc != -ENOSPC)
			return rc;
		if (rc != -E2BIG || !move->tracks)
			tried(move->moves,
			      clean->best[clean->taken].track.first);
	}
	return move->tracks ? 0 : -EBUSY;
}

static int by_file(const void *a, const void *b)
{
	const struct move_range *x = a, *y = b;

	return sort_order(x->ino, y->ino) ?:
	       sort_order(x->first, y->first);
}

/* Sorts the ranges in the order in which files are read; a block that lies in
 * two extents was found twice. */
static void ranges_sort(struct move *move)
{
	struct move_range *range, *last = NULL;
	unsigned i, n = 0;

	qsort(move->range, move->ranges, sizeof(move->range[0]), by_file);
	for (i = 0; i < move->ranges; i++) {
		range = &move->range[i];
		if (last && last->ino == range->ino &&
		    last->first + last->blocks > range->first) {
			range->first++;
			range->blocks--;
		}
		if (range->blocks) {
			last = &move->range[n++];
			*last = *range;
		}
	}
	move->ranges = n;
}

static void empty_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct move *move = txn->state;
	struct moves *moves = move->moves;

	(void)seq;
	if (!rc && moves->clean.taken < moves->clean.bests) {
		fs_txn_restart(txn);
		return;
	}
	fs_txn_finish(txn, 0);
	move->in_txn = false;
	clean_picked(moves);
	if (rc || moves->closing) {
		move_end(move);
		return;
	}
	ranges_sort(move);
	move_start(move);
}

static const struct fs_txn_type empty_type = {
	.name = "empty tracks",
	.bounds = { .nodes = 60 },
	.stages = 60,
	.run = empty_run,
	.end = empty_end,
};

static void pick_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct moves *moves = txn->state;
	struct clean *clean = &moves->clean;
	struct move *move;

	(void)seq;
	if (!rc && clean->looked < clean->candidates) {
		fs_txn_restart(txn);
		return;
	}
	fs_txn_finish(txn, 0);
	move = rc || !clean->bests ? NULL : move_new(moves);
	if (!move) {
		clean->group++;
		clean->barren++;
		clean_picked(moves);
		return;
	}
	clean->barren = 0;
	clean->taken = 0;
	move->in_txn = !fs_txn_start(moves->fs, &empty_type, NULL, move);
	if (!move->in_txn) {
		clean_picked(moves);
		move_end(move);
	}
}

static const struct fs_txn_type pick_type = {
	.name = "look for a track to empty",
	.bounds = { .nodes = 60 },
	.stages = 60,
	.run = pick_run,
	.end = pick_end,
};

/* Is nothing to be gained in the group, as little is free, or a long run?  If
 * the longest run is a guess the group has to be loaded. */
static bool group_is_well(const struct moves *moves, uint32_t group)
{
	const struct space *space = tree_space(moves->fs->tree);
	uint64_t free = space_group_free(space, group);

	return free < TRAX_GROUP_SECTORS / GROUP_SHARE ||
	       (!space_group_is_guessed(space, group) &&
		space_group_largest(space, group) * UINT64_C(100) >=
			free * moves->limits.whole_percent);
}

void clean_pick(struct moves *moves)
{
	uint32_t groups = space_groups(tree_space(moves->fs->tree));
	struct clean *clean = &moves->clean;

	clean->group %= groups;
	while (clean->barren < groups &&
	       group_is_well(moves, clean->group)) {
		clean->group = (clean->group + 1) % groups;
		clean->barren++;
	}
	clean->ranked = false;
	clean->bests = 0;
	clean->picking = true;
	if (clean->barren == groups ||
	    fs_txn_start(moves->fs, &pick_type, NULL, moves))
		clean_picked(moves);
}

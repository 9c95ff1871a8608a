/*
 * relocate.c - moves log tracks onto true tracks.
 *
 *   wait -> begin -> zeros -> leave -> checkpoint -> superblocks -> end
 *
 * Room near the old place gets an owner (relocate_txn.h); it is filled with
 * zeros, because old content might look like records; the old track takes no
 * more records (leave), and when no root needs its records any more
 * (checkpoint) the superblocks name the new place.
 *
 * What cannot be done now is left for the next geometry or the next mount.
 * Node tracks stay where they are: on true tracks they would gain nothing.
 */
#include "fs/drive/relocate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "base/units.h"
#include "fs/drive/profile_save.h"
#include "fs/drive/relocate_txn.h"
#include "fs/drive/super_write.h"
#include "fs/replica/access_trace.h"
#include "sched/queue/queue.h"

/* Pause before the first move and between two of them, in which data of users
 * goes first; and time until the next check whether users are quiet. */
#define APART_NS (2 * NS_PER_SECOND)
#define QUIET_NS (NS_PER_SECOND / 10)
/* Pause before the next try to leave the old track: by then logged data on it
 * has been destaged; after TRIES it is used on. */
#define DESTAGE_NS (3 * NS_PER_SECOND)
#define TRIES 5u
/* Sectors of one write of zeros (64 KiB), so that requests of users wait little
 * for it. */
#define CHUNK_SECTORS 128u
/* Tracks looked at on either side for one that is free. */
#define NEAR_TRACKS 1024u
/* The new place is no further away than this part of the distance between log
 * tracks. */
#define NEAR_SHARE 4u
/* A track that is this many times as long as a log place gives only a part of
 * itself. */
#define PART 2u

enum relocate_state { RELOCATE_WAIT, RELOCATE_LOG };

struct relocate {
	struct fs *fs;
	enum relocate_state state;
	bool wanted, now, closing;
	uint64_t at_ns;		/* nothing is done before this time */
	unsigned log;		/* index of the next log track to look at */
	unsigned tries;
	struct relocate_stats stats;

	/* The log track that is moved: its index in the superblock. */
	unsigned index;
	struct relocation relocation;
	struct super_write supers;
	uint64_t zeroed;
	bool left;		/* the old track takes no more records */

	struct waiter waiter;
	uint8_t *buf;		/* buffer of CHUNK_SECTORS */
	struct queue_request req;
	struct iovec iov;
};

/* ---- Opening ---- */

static void log_named(void *arg, int rc);

int relocate_open(struct fs *fs, struct relocate **out)
{
	struct relocate *s;

	*out = NULL;
	if (fs->options.read_only)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->fs = fs;
	s->buf = aligned_alloc(TRAX_BLOCK_BYTES, CHUNK_SECTORS * SECTOR_BYTES);
	if (!s->buf || super_write_init(&s->supers, fs, log_named, s)) {
		relocate_free(s);
		return -ENOMEM;
	}
	relocate_wanted(s);
	*out = s;
	return 0;
}

void relocate_free(struct relocate *s)
{
	if (!s)
		return;
	super_write_fini(&s->supers);
	free(s->buf);
	free(s);
}

void relocate_wanted(struct relocate *s)
{
	if (!s)
		return;
	s->wanted = true;
	s->log = 0;
	/* A move under way sets the time itself when it goes on. */
	if (s->state == RELOCATE_WAIT)
		s->at_ns = env_now_ns(s->fs->env) + APART_NS;
}

void relocate_now(struct relocate *s)
{
	if (!s)
		return;
	s->now = true;
	if (s->state == RELOCATE_WAIT)
		s->at_ns = 0;
}

void relocate_close(struct relocate *s)
{
	if (!s)
		return;
	s->closing = true;
	if (s->state != RELOCATE_WAIT && s->at_ns != UINT64_MAX)
		s->at_ns = 0;
}

bool relocate_idle(const struct relocate *s)
{
	return !s || s->state == RELOCATE_WAIT;
}

void relocate_get_stats(const struct relocate *s, struct relocate_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	if (s)
		*stats = s->stats;
}

/* The move of one track has ended, well or not. */
static void relocate_next(struct relocate *s, bool well)
{
	s->stats.given_up += !well;
	s->state = RELOCATE_WAIT;
	s->tries = 0;
	s->at_ns = env_now_ns(s->fs->env) + (s->now ? 0 : APART_NS);
}

static void relocate_checkpoint(struct relocate *s,
			      void (*done)(struct waiter *waiter, int rc))
{
	s->waiter.done = done;
	s->waiter.owner = s;
	list_init(&s->waiter.link);
	tree_checkpoint(s->fs->tree, &s->waiter);
}

/* ---- Is a log place on true tracks? ---- */

/* Does the range lie inside one known track? */
static bool is_inside(const struct geom *geom, uint64_t first, uint64_t n)
{
	struct geom_track t;

	geom_track_of(geom, first, &t);
	return t.known && first + n <= t.first + t.sectors;
}

/* Does it lie inside one known track, or is it a run of whole known tracks? */
static bool is_settled(const struct geom *geom, uint64_t first, uint64_t n)
{
	uint64_t at = first, end = first + n;
	struct geom_track t;

	if (is_inside(geom, first, n))
		return true;
	while (at < end) {
		geom_track_of(geom, at, &t);
		if (!t.known || t.first != at || at + t.sectors > end)
			return false;
		at += t.sectors;
	}
	return true;
}

/* ---- Log tracks: where to ---- */

/* Is the range free? -ENOSPC: something in it has an owner; -EAGAIN: the free
 * set of *group is not loaded. */
static int is_free(const struct relocate *s, uint64_t first, uint64_t n,
		   uint32_t *group)
{
	const struct space *space = tree_space(s->fs->tree);
	uint64_t g;

	for (g = first / TRAX_GROUP_SECTORS;
	     g <= (first + n - 1) / TRAX_GROUP_SECTORS; g++) {
		if (space_group_largest(space, (uint32_t)g) < n)
			return -ENOSPC;
		if (!space_group_loaded(space, (uint32_t)g)) {
			*group = (uint32_t)g;
			return -EAGAIN;
		}
	}
	return rangeset_has(space_free_set(space), first, n) ? 0 : -ENOSPC;
}

/* Chooses a part of a long track, or whole tracks from this one on, for about n
 * sectors. */
static bool place_at(const struct relocate *s, const struct geom_track *from,
		     uint64_t n, struct super_track *out)
{
	const struct geom *geom = s->fs->geom;
	uint64_t unit = super_write_unit(tree_super(s->fs->tree)) /
			SECTOR_BYTES;
	uint64_t sectors = tree_super(s->fs->tree)->sectors;
	uint64_t first = (from->first + unit - 1) / unit * unit;
	struct geom_track t = *from;
	uint64_t end;

	if (!t.known)
		return false;
	if (t.sectors >= PART * n && first + n <= t.first + t.sectors) {
		*out = (struct super_track){ first, (uint32_t)n };
		return first + n <= sectors;
	}
	for (end = t.first + t.sectors; end - from->first < n / 4 * 3;
	     end += t.sectors) {
		if (t.index + 1 >= geom_tracks(geom))
			return false;
		geom_track_at(geom, t.index + 1, &t);
		if (!t.known)
			return false;
	}
	*out = (struct super_track){ from->first,
				     (uint32_t)(end - from->first) };
	return end <= sectors;
}

static int try_place(struct relocate *s, struct relocation *relocation,
		     const struct geom_track *t, uint32_t *group)
{
	struct super_track place;
	int rc;

	if (!place_at(s, t, relocation->from_sectors, &place) ||
	    log_track_fits(tree_log(s->fs->tree), s->index, &place))
		return -ENOSPC;
	rc = is_free(s, place.sector, place.sectors, group);
	if (rc)
		return rc;
	rc = space_take(tree_space(s->fs->tree), place.sector, place.sectors);
	if (rc)
		return rc;
	relocation->to = place.sector;
	relocation->to_sectors = place.sectors;
	return 0;
}

/* Looks for room near the old place, as log tracks are spread over the disk. */
static int try_near(struct relocate *s, struct relocation *relocation,
		    uint64_t index, uint32_t *group)
{
	const struct super *super = tree_super(s->fs->tree);
	uint64_t far = super->sectors / super->log_tracks / NEAR_SHARE;
	struct geom_track t;

	geom_track_at(s->fs->geom, index, &t);
	if (t.first > relocation->from + far ||
	    t.first + far < relocation->from)
		return -ENOSPC;
	return try_place(s, relocation, &t, group);
}

/* Tries the nearest tracks on either side. */
static int log_find(struct relocation *relocation, uint32_t *group)
{
	struct relocate *s = relocation->arg;
	uint64_t all = geom_tracks(s->fs->geom), i;
	struct geom_track t;
	int rc = -ENOSPC;

	geom_track_of(s->fs->geom, relocation->from, &t);
	for (i = 0; i < NEAR_TRACKS && rc == -ENOSPC; i++) {
		if (t.index + i < all)
			rc = try_near(s, relocation, t.index + i, group);
		if (rc == -ENOSPC && i && t.index >= i)
			rc = try_near(s, relocation, t.index - i, group);
	}
	return rc;
}

/* ---- Log tracks: the move ---- */

static void log_ended(struct relocation *relocation, int rc)
{
	struct relocate *s = relocation->arg;

	s->stats.logs += relocation->landed && !rc;
	relocate_next(s, relocation->landed && !rc);
}

static void log_end(struct relocate *s, bool landed)
{
	s->relocation.done = log_ended;
	relocation_end(&s->relocation, landed);
}

/* The move has failed: the old track takes records again. */
static void log_give_up(struct relocate *s)
{
	log_track_reuse(tree_log(s->fs->tree), s->index);
	log_end(s, false);
}

/* After an error it is not known which place the superblocks name: neither is
 * used before the next mount, which ends the move. */
static void log_named(void *arg, int rc)
{
	struct relocate *s = arg;
	const struct super_track *track =
		&tree_super(s->fs->tree)->log[s->index];

	if (rc) {
		s->wanted = false;
		s->closing = true;
		relocate_next(s, false);
		return;
	}
	/* Without memory the move is ended by the next mount. */
	log_track_replace(tree_log(s->fs->tree), s->index, track);
	log_end(s, true);
}

static void log_name(struct relocate *s)
{
	struct super next = *tree_super(s->fs->tree);

	next.log[s->index] = (struct super_track){
		s->relocation.to, (uint32_t)s->relocation.to_sectors,
	};
	if (super_write_start(&s->supers, &next))
		log_give_up(s);
}

static void log_wait(struct relocate *s)
{
	s->tries++;
	s->at_ns = env_now_ns(s->fs->env) + (s->now ? 0 : DESTAGE_NS);
}

static void log_rooted(struct waiter *waiter, int rc)
{
	struct relocate *s = waiter->owner;

	if (!rc && log_track_is_retired(tree_log(s->fs->tree), s->index))
		log_name(s);
	else if (rc || s->tries >= TRIES || s->closing)
		log_give_up(s);
	else
		log_wait(s);
}

/* Called repeatedly until nothing needs the old track. */
static void log_leave(struct relocate *s)
{
	int rc = 0;

	s->at_ns = UINT64_MAX;
	if (!s->left)
		rc = log_track_retire(tree_log(s->fs->tree), s->index);
	if (rc == -EAGAIN && s->tries < TRIES && !s->closing) {
		log_wait(s);
		return;
	}
	if (rc) {
		log_end(s, false);
		return;
	}
	s->left = true;
	relocate_checkpoint(s, log_rooted);
}

static void log_zero(struct relocate *s);

static void log_zeroed(struct disk_request *req)
{
	struct relocate *s = req->owner;

	if (req->result)
		log_end(s, false);
	else if (s->zeroed < s->relocation.to_sectors)
		log_zero(s);
	else
		log_leave(s);
}

static void log_zero(struct relocate *s)
{
	uint64_t n = s->relocation.to_sectors - s->zeroed;

	n = n < CHUNK_SECTORS ? n : CHUNK_SECTORS;
	s->iov = (struct iovec){ s->buf, n * SECTOR_BYTES };
	s->req = (struct queue_request){
		.disk =
			{
				.op = DISK_WRITE,
				.sector = s->relocation.to + s->zeroed,
				.sectors = (uint32_t)n,
				.iov = &s->iov,
				.iov_n = 1,
				.done = log_zeroed,
				.owner = s,
			},
		.class = QUEUE_WRITE_BACK,
	};
	s->zeroed += n;
	queue_submit(s->fs->queue, &s->req);
}

static void log_begun(struct relocation *relocation, int rc)
{
	struct relocate *s = relocation->arg;

	if (rc) {
		relocate_next(s, false);
		return;
	}
	memset(s->buf, 0, CHUNK_SECTORS * SECTOR_BYTES);
	s->zeroed = 0;
	s->left = false;
	log_zero(s);
}

static bool log_begin(struct relocate *s)
{
	const struct super *super = tree_super(s->fs->tree);
	const struct super_track *old;

	while (s->log < super->log_tracks &&
	       is_settled(s->fs->geom, super->log[s->log].sector,
			  super->log[s->log].sectors))
		s->log++;
	if (s->log >= super->log_tracks)
		return false;
	s->index = s->log++;
	old = &super->log[s->index];
	s->state = RELOCATE_LOG;
	s->at_ns = UINT64_MAX;
	s->relocation = (struct relocation){
		.fs = s->fs, .kind = OWNER_LOG, .from = old->sector,
		.from_sectors = old->sectors, .to_sectors = old->sectors,
		.find = log_find, .done = log_begun, .arg = s,
	};
	relocation_begin(&s->relocation);
	return true;
}

/* ---- When ---- */

uint64_t relocate_run(struct relocate *s, uint64_t now_ns)
{
	if (!s || !s->wanted)
		return UINT64_MAX;
	if (tree_failed(s->fs->tree)) {
		if (s->at_ns != UINT64_MAX)	/* without a time this would not
						 * be called again */
			s->state = RELOCATE_WAIT;
		return UINT64_MAX;
	}
	if (s->state == RELOCATE_WAIT && (s->closing || s->fs->options.doubt ||
					!geom_known(s->fs->geom)))
		return UINT64_MAX;
	if (s->state == RELOCATE_WAIT &&
	    (!profile_save_idle(s->fs->profile_save) || s->fs->super_edit))
		return now_ns + QUIET_NS;
	if (now_ns < s->at_ns)
		return s->at_ns;
	if (s->state == RELOCATE_LOG) {
		log_leave(s);
		return UINT64_MAX;
	}
	if (!s->now && !access_trace_quiet(s->fs))
		return now_ns + QUIET_NS;
	if (log_begin(s))
		return now_ns;
	s->wanted = false;
	return UINT64_MAX;
}

/*
 * profile_save.c - writes the record of the drive's profile.
 *
 *   wait -> [encode] -> record -> flush -> superblocks -> wait
 *             |  no room                      |  it had moved
 *             +-> relocation_begin ----> record     +-> relocation_end -> wait
 *
 * The write of the superblocks (super_write.h) is the commit point.  All writes
 * have the class of write-back: small, one at a time.
 */
#include "fs/drive/profile_save.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/msg.h"
#include "base/units.h"
#include "fs/drive/relocate_txn.h"
#include "fs/drive/profile_load.h"
#include "fs/drive/super_write.h"
#include "sched/head/head.h"
#include "sched/queue/queue.h"

/* Least time between two records. */
#define APART_NS (300 * NS_PER_SECOND)
/* Time until the next try after an error. */
#define AGAIN_NS (3600 * NS_PER_SECOND)
/* Time between two looks at what the head has learned; and differences that are
 * worth a new record: of durations, a 512th of a turn; of the period, one in
 * five million.  LEARNED_PPM is the confidence of learned values, which were
 * measured by no extraction. */
#define LOOK_NS (1800 * NS_PER_SECOND)
#define LEAST_TURNS 512u
#define LEAST_PERIOD 5000000u
#define LEARNED_PPM 500000u
/* Time until the next try while the superblocks are being written. */
#define BUSY_NS (NS_PER_SECOND / 10)
/* Sectors of one write of the record (64 KiB), so that requests of users wait
 * little for it. */
#define CHUNK_SECTORS 128u

enum profile_save_state {
	PROFILE_SAVE_WAIT,
	PROFILE_SAVE_ROOM,
	PROFILE_SAVE_RECORD,
	PROFILE_SAVE_SUPERS,
	PROFILE_SAVE_LEAVE
};

struct profile_save {
	struct fs *fs;
	enum profile_save_state state;
	bool wanted, closing;
	uint64_t at_ns;		/* no record is written before this time */
	uint64_t look_ns;	/* time of the next look at what the head has
				 * learned */
	uint8_t *record;	/* the encoded record, padded to whole blocks */
	uint64_t sectors, done;	/* its sectors, and those written */
	struct super next;
	struct super_write supers;
	struct relocation relocation;
	bool moving;
	struct queue_request req;
	struct iovec iov;
	struct profile_save_stats stats;
};

static void profile_save_named(void *arg, int rc);

int profile_save_open(struct fs *fs, struct profile_save **out)
{
	struct profile_save *save;

	*out = NULL;
	if (fs->options.read_only)
		return 0;
	save = calloc(1, sizeof(*save));
	if (!save)
		return -ENOMEM;
	if (super_write_init(&save->supers, fs, profile_save_named, save)) {
		free(save);
		return -ENOMEM;
	}
	save->fs = fs;
	save->at_ns = env_now_ns(fs->env) + APART_NS / 5;
	save->look_ns = env_now_ns(fs->env) + LOOK_NS;
	*out = save;
	return 0;
}

void profile_save_free(struct profile_save *save)
{
	if (!save)
		return;
	free(save->record);
	super_write_fini(&save->supers);
	free(save);
}

void profile_save_wanted(struct profile_save *save)
{
	if (save)
		save->wanted = true;
}

bool profile_save_idle(const struct profile_save *save)
{
	return !save || (save->state == PROFILE_SAVE_WAIT &&
			 !(save->closing && save->wanted &&
			   !save->stats.error && !tree_failed(save->fs->tree)));
}

void profile_save_get_stats(const struct profile_save *save,
			    struct profile_save_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	if (save)
		*stats = save->stats;
}

/* ---- The end ---- */

static void profile_save_over(struct profile_save *save, int rc)
{
	uint64_t now_ns = env_now_ns(save->fs->env);

	if (rc && rc != save->stats.error)
		msg_warn("%s: what was learned of the drive could not be "
			 "written back: %s", save->fs->disk->name,
			 strerror(-rc));
	save->stats.error = rc;
	save->wanted |= rc != 0;
	save->at_ns = save->closing ? 0 :
		      now_ns + (rc ? AGAIN_NS : APART_NS);
	save->state = PROFILE_SAVE_WAIT;
	save->moving = false;
	free(save->record);
	save->record = NULL;
}

static void profile_save_left(struct relocation *relocation, int rc)
{
	struct profile_save *save = relocation->arg;

	save->stats.moved += relocation->landed;
	profile_save_over(save, rc ? rc : save->stats.error);
}

/* The superblocks have been written or, after an error, it is not known which
 * version they have: the next mount finds out. */
static void profile_save_named(void *arg, int rc)
{
	struct profile_save *save = arg;

	if (!rc) {
		save->stats.written++;
		save->stats.bytes = save->next.geom_bytes;
	}
	if (!save->moving || rc) {
		profile_save_over(save, rc);
		return;
	}
	save->stats.error = 0;
	save->state = PROFILE_SAVE_LEAVE;
	save->relocation.done = profile_save_left;
	relocation_end(&save->relocation, true);
}

/* The record cannot be written: ends what was begun for it. */
static void profile_save_stop(struct profile_save *save, int rc)
{
	if (!save->moving) {
		profile_save_over(save, rc);
		return;
	}
	save->stats.error = rc;
	save->state = PROFILE_SAVE_LEAVE;
	save->relocation.done = profile_save_left;
	relocation_end(&save->relocation, false);
}

/* ---- Writing ---- */

static void profile_save_go(struct profile_save *save);

static void profile_save_chunk_done(struct disk_request *req)
{
	struct profile_save *save = req->owner;

	if (req->result)
		profile_save_stop(save, req->result);
	else
		profile_save_go(save);
}

static void profile_save_flushed(struct disk_request *req)
{
	struct profile_save *save = req->owner;
	int rc = req->result;

	save->state = PROFILE_SAVE_SUPERS;
	if (!rc)
		rc = super_write_start(&save->supers, &save->next);
	if (rc)
		profile_save_stop(save, rc);
}

/* Writes the next part of the record; when all of it is durable, the
 * superblocks. */
static void profile_save_go(struct profile_save *save)
{
	uint64_t at = save->done, n = save->sectors - at;

	n = n < CHUNK_SECTORS ? n : CHUNK_SECTORS;
	save->done += n;
	save->iov = (struct iovec){ save->record + at * SECTOR_BYTES,
				    n * SECTOR_BYTES };
	save->req = (struct queue_request){
		.disk =
			{
				.op = DISK_WRITE,
				.sector = save->next.geom_sector + at,
				.sectors = (uint32_t)n,
				.iov = &save->iov,
				.iov_n = 1,
				.done = profile_save_chunk_done,
				.owner = save,
			},
		.class = QUEUE_WRITE_BACK,
	};
	if (n) {
		queue_submit(save->fs->queue, &save->req);
		return;
	}
	save->req.disk = (struct disk_request){ .done = profile_save_flushed,
						.owner = save };
	queue_flush(save->fs->queue, &save->req);
}

/* ---- The beginning ---- */

static void profile_save_start(struct profile_save *save)
{
	save->state = PROFILE_SAVE_RECORD;
	save->done = 0;
	profile_save_go(save);
}

static void profile_save_has_room(struct relocation *relocation, int rc)
{
	struct profile_save *save = relocation->arg;

	if (rc) {
		save->moving = false;
		profile_save_over(save, rc);
		return;
	}
	save->next.room_sector = save->next.geom_sector = relocation->to;
	save->next.room_sectors = (uint32_t)relocation->to_sectors;
	profile_save_start(save);
}

/* Has the record move to larger room: two places of twice its present size, or
 * less if the format allows no more. */
static void profile_save_move(struct profile_save *save)
{
	const struct super *super = tree_super(save->fs->tree);
	struct super_run run = super_geom_run(super);
	uint64_t unit = super_write_unit(super) / SECTOR_BYTES;
	uint64_t half = (2 * save->sectors + unit - 1) / unit * unit;
	const uint64_t most = TRAX_MAX_GEOM_BYTES / SECTOR_BYTES;

	half = half < most ? half : most;
	save->state = PROFILE_SAVE_ROOM;
	save->moving = true;
	save->relocation = (struct relocation){
		.fs = save->fs, .kind = OWNER_GEOM,
		.from = run.sectors ? run.sector : 0,
		.from_sectors = run.sectors,
		.to_sectors = 2 * half,
		.done = profile_save_has_room, .arg = save,
	};
	relocation_begin(&save->relocation);
}

/* ---- What the head has learned ---- */

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Times of seeks must not decrease with their length. */
static uint64_t longer(uint64_t most_ns, uint64_t ns)
{
	return ns > most_ns ? ns : most_ns;
}

/* Is the difference worth a new record? */
static bool differs(const struct profile *p, const struct head_learned *now)
{
	uint64_t least_ns = p->mech.period_ps / 1000 / LEAST_TURNS;
	uint64_t most_ns = 0;
	uint32_t i;

	if (apart(p->mech.period_ps, now->mech->period_ps) >
		    p->mech.period_ps / LEAST_PERIOD ||
	    apart(p->read_overhead_ns, now->read_overhead_ns) > least_ns)
		return true;
	if (now->writes &&
	    (apart(p->write_overhead_ns, now->write_overhead_ns) > least_ns ||
	     apart(p->mech.write_settle_ns, now->mech->write_settle_ns) >
		     least_ns))
		return true;
	for (i = 0; i < p->mech.seek_n; i++) {
		most_ns = longer(most_ns, now->mech->seek[i].ns);
		if (apart(p->mech.seek[i].ns, most_ns) > least_ns)
			return true;
	}
	return false;
}

static void take_seeks(struct profile *p, const struct service_mech *mech)
{
	uint64_t most_ns = 0;
	uint32_t i;

	for (i = 0; i < p->mech.seek_n; i++) {
		most_ns = longer(most_ns, mech->seek[i].ns);
		p->mech.seek[i].ns = most_ns;
	}
}

static void take_part(struct profile *p, enum profile_part part)
{
	p->part[part].method = PROFILE_TIMING;
	if (!p->part[part].confidence_ppm)
		p->part[part].confidence_ppm = LEARNED_PPM;
}

/* Puts what the head has learned into a profile. */
static void profile_save_take(struct profile *p, const struct head_learned *now)
{
	p->mech.period_ps = now->mech->period_ps;
	p->read_overhead_ns = now->read_overhead_ns;
	p->mech.head_switch_ns = now->mech->head_switch_ns;
	take_seeks(p, now->mech);
	take_part(p, PROFILE_SEEK);
	take_part(p, PROFILE_OVERHEAD);
	if (!now->writes)
		return;
	p->write_overhead_ns = now->write_overhead_ns;
	p->mech.write_settle_ns = now->mech->write_settle_ns;
	take_part(p, PROFILE_SETTLE);
}

static bool profile_save_learned(const struct profile_save *save,
				 struct head_learned *now)
{
	const struct fs *fs = save->fs;

	return fs->own_head && head_get_learned(fs->own_head, now) &&
	       now->mech->seek_n == fs->profile->mech.seek_n;
}

/* Compares profile and head from time to time. */
static void profile_save_look(struct profile_save *save, uint64_t now_ns)
{
	struct head_learned now;

	if (now_ns < save->look_ns)
		return;
	save->look_ns = save->closing ? UINT64_MAX : now_ns + LOOK_NS;
	if (profile_save_learned(save, &now) &&
	    differs(save->fs->profile, &now))
		save->wanted = true;
}

/* ---- The record, and the superblock that will name it ---- */

static int profile_save_bytes(const struct profile_save *save, void **buf,
			      size_t *bytes)
{
	struct profile *p = save->fs->profile;
	struct head_learned now;

	if (profile_save_learned(save, &now))
		profile_save_take(p, &now);
	return profile_verify(p) ? -EUCLEAN : profile_encode(p, buf, bytes);
}

static int profile_save_encode(struct profile_save *save)
{
	size_t bytes, room;
	void *buf;
	int rc = profile_save_bytes(save, &buf, &bytes);

	if (rc)
		return rc;
	save->sectors = (bytes + TRAX_BLOCK_BYTES - 1) / TRAX_BLOCK_BYTES *
			TRAX_BLOCK_SECTORS;
	room = save->sectors * SECTOR_BYTES;
	save->record = aligned_alloc(TRAX_BLOCK_BYTES, room);
	if (save->record) {
		memset(save->record, 0, room);
		memcpy(save->record, buf, bytes);
		save->next = *tree_super(save->fs->tree);
		save->next.geom_bytes = (uint32_t)bytes;
		save->next.geom_csum = csum(buf, bytes);
	}
	free(buf);
	return save->record ? 0 : -ENOMEM;
}

static void profile_save_begin(struct profile_save *save)
{
	struct super *next = &save->next;
	uint32_t half;
	int rc = profile_save_encode(save);

	save->wanted = false;
	if (rc) {
		profile_save_over(save, rc);
		return;
	}
	half = next->room_sectors / 2;
	if (save->sectors > half) {
		profile_save_move(save);
		return;
	}
	next->geom_sector = next->geom_sector == next->room_sector ?
				    next->room_sector + half :
				    next->room_sector;
	profile_save_start(save);
}

uint64_t profile_save_run(struct profile_save *save, uint64_t now_ns)
{
	if (!save || save->state != PROFILE_SAVE_WAIT ||
	    tree_failed(save->fs->tree))
		return UINT64_MAX;
	if (save->fs->super_edit)	/* it is writing the superblocks */
		return now_ns + BUSY_NS;
	profile_save_look(save, now_ns);
	if (!save->wanted)
		return UINT64_MAX;
	if (now_ns < save->at_ns)
		return save->at_ns;
	profile_save_begin(save);
	return now_ns;
}

void profile_save_now(struct profile_save *save)
{
	if (save && !save->stats.error)
		save->at_ns = 0;
}

void profile_save_close(struct profile_save *save)
{
	if (!save)
		return;
	save->closing = true;
	save->look_ns = 0;
	profile_save_now(save);
}

/*
 * mkfs.c - lays out a new file system and writes it.
 *
 *   0    boot block, superblock, root areas 0 and 1, geometry record,
 *        first node tracks, then data ...
 *   1/2  superblock 2, second copy of area 0        3/4  of area 1
 *   end  superblock 3
 *
 * Log tracks: four lie side by side, so that the log goes on to another by a
 * switch of heads and not by a seek.  On large disks half of these groups from
 * the outer edge on at distances that double, so that whatever a growing file
 * system has filled, some lie in the middle of it; the rest evenly over the
 * disk.  A log place is a run of whole tracks that holds 1 MiB, or its part of
 * the log's share of the disk, but at least the longest record; on small disks,
 * where whole tracks would be too much, it is a part of one.
 *
 * A root area has room for the slot map of a disk half of which is node tracks
 * (a disk full of files of 2 KiB), and its group table.
 */
#include "fs/mkfs.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/csum.h"
#include "base/msg.h"
#include "fs/op/fs_internal.h"
#include "tree/tree_format.h"

/* The smallest disk: 16 MiB.  Below that the log, the node tracks and the root
 * areas leave little for files. */
#define MIN_BYTES (16ull << 20)
#define LOG_SHARE 128u		/* The log takes at most this part of the disk,
				 * so that the log of a small disk does not take
				 * its room from files. */
#define LOG_TOGETHER 4u		/* Log places that lie side by side: the log
				 * goes from one to the next by a switch of
				 * heads, without a seek. */
/* Log places on the smallest disk.  TRAX_MIN_LOG_TRACKS would do for a record
 * and its mirror; with more a place is seldom the one that is being emptied. */
#define LOG_MIN_TRACKS 4u
#define LOG_MIN_SECTORS 1024u	/* The least size of a log place: 512 KiB, two
				 * of the longest records
				 * (TRAX_MAX_RECORD_BYTES). */
/* The size of a log place where LOG_SHARE allows it: 1 MiB, so that all 64 have
 * 64 MiB together, as the logs of other file systems, and checkpoints are due
 * by age and not because the log is full. */
#define LOG_PLACE_SECTORS 2048u
/* The first node tracks take this part of the disk, but at least NODE_MIN_SLOTS
 * and at most NODE_MAX_SLOTS nodes (2 MiB and 32 MiB).  It is no limit: the
 * file system makes more when the tree grows. */
#define NODE_SHARE 2048u
#define NODE_MIN_SLOTS 128u
#define NODE_MAX_SLOTS 2048u
#define WIPE_SECTORS 2048u	/* Sectors wiped at either end of the disk: 1
				 * MiB, where other file systems have their
				 * signatures. */
#define MAX_TAKEN 160u
/* Known tracks are looked for in 1/64 of the disk from the wanted place on;
 * where there are none the nearest track is taken. */
#define NEAR_SHARE 64u
/* Tracks that are looked at, spread over the disk, to see whether the drive's
 * sectors are as small as it says. */
#define TELLING_TRACKS 1024u
/* Bytes of the place for the profile, beside twice what it takes now: see
 * room_bytes. 32 KiB for the drive's other data, a byte for each 16,384 sectors
 * for tracks found later, and no more than 1/256 of the disk. */
#define ROOM_BYTES 32768u
#define ROOM_SHARE 16384u
#define ROOM_MOST 256u

struct layout_taken {
	uint64_t first, n;
	enum owner_kind kind;
};

struct layout {
	const struct geom *geom;
	struct super *super;
	uint32_t unit;		/* physical block of the drive, in sectors */
	struct layout_taken taken[MAX_TAKEN];
	unsigned n;
};

static uint64_t round_up(uint64_t x, uint64_t unit)
{
	return (x + unit - 1) / unit * unit;
}

/* ---- Places ---- */

/* Returns the end of a range taken that overlaps [first, first + n); 0: all of
 * it is free. */
static uint64_t layout_meets(const struct layout *layout, uint64_t first,
			     uint64_t n)
{
	unsigned i;

	for (i = 0; i < layout->n; i++)
		if (first < layout->taken[i].first + layout->taken[i].n &&
		    layout->taken[i].first < first + n)
			return layout->taken[i].first + layout->taken[i].n;
	return 0;
}

static void layout_take(struct layout *layout, uint64_t first, uint64_t n,
			enum owner_kind kind)
{
	layout->taken[layout->n++] = (struct layout_taken){ first, n, kind };
}

/* Takes the first free place of n sectors at or behind `from`, else the first
 * one of the disk; aligned to the drive's physical block and to blocks. */
static int layout_place(struct layout *layout, uint64_t from, uint64_t n,
			enum owner_kind kind, uint64_t *place)
{
	uint64_t unit = layout->unit > TRAX_BLOCK_SECTORS ?
		layout->unit : TRAX_BLOCK_SECTORS;
	uint64_t at = round_up(from, unit), end;

	while (at + n <= layout->super->sectors) {
		end = layout_meets(layout, at, n);
		if (!end) {
			layout_take(layout, at, n, kind);
			*place = at;
			return 0;
		}
		at = round_up(end, unit);
	}
	return from ? layout_place(layout, 0, n, kind, place) : -ENOSPC;
}

/* Finds the first run of whole free tracks in [from, to) of at least `least`
 * sectors, of known tracks only if `known`.  False: there is none. */
static bool layout_run(struct layout *layout, uint64_t from, uint64_t to,
		       uint64_t least, bool known, struct super_track *out)
{
	struct geom_track track;
	struct super_track run = { 0 };
	uint64_t end;

	geom_track_of(layout->geom, from, &track);
	if (track.first < from)
		track.first += track.sectors;
	while (track.first < to) {
		geom_track_of(layout->geom, track.first, &track);
		end = track.first + track.sectors;
		if (end > to)
			break;
		if ((known && !track.known) ||
		    layout_meets(layout, track.first, track.sectors))
			run.sectors = 0;
		else if (run.sectors)
			run.sectors += track.sectors;
		else
			run = (struct super_track){ track.first,
						    track.sectors };
		if (run.sectors >= least) {
			*out = run;
			return true;
		}
		track.first = end;
	}
	return false;
}

/*
 * Finds a run of whole free tracks: of known tracks within NEAR_SHARE behind
 * `from`; else the first one behind `from`; else the first one of the disk.
 */
static int layout_tracks(struct layout *layout, uint64_t from, uint64_t least,
			 struct super_track *out)
{
	uint64_t sectors = layout->super->sectors;
	uint64_t near = sectors / NEAR_SHARE;

	near = from < sectors - near ? from + near : sectors;
	if ((geom_known(layout->geom) &&
	     layout_run(layout, from, near, least, true, out)) ||
	    layout_run(layout, from, sectors, least, false, out))
		return 0;
	return from ? layout_tracks(layout, 0, least, out) : -ENOSPC;
}

/* ---- What goes where ---- */

static void layout_supers(struct layout *layout)
{
	uint64_t place[3];

	super_places(layout->super, place);
	layout_take(layout, 0, TRAX_SUPER_SECTOR + TRAX_BLOCK_SECTORS,
		    OWNER_SUPER);
	layout_take(layout, place[1], TRAX_BLOCK_SECTORS, OWNER_SUPER);
	layout_take(layout, place[2], TRAX_BLOCK_SECTORS, OWNER_SUPER);
}

uint32_t mkfs_area_sectors(uint64_t sectors, uint64_t tracks)
{
	uint64_t groups = (sectors + TRAX_GROUP_SECTORS - 1) /
			  TRAX_GROUP_SECTORS;
	uint64_t slots = sectors / TRAX_NODE_SECTORS / 2;
	uint64_t payload = tree_format_payload(tracks / 2 + 1, slots, groups);

	return (uint32_t)(TRAX_BLOCK_SECTORS +
		round_up(payload, TRAX_BLOCK_BYTES) / SECTOR_BYTES);
}

static int layout_areas(struct layout *layout)
{
	struct super *super = layout->super;
	uint64_t from[2][2] = {
		{ 0, super->sectors / 2 },
		{ 0, super->sectors / 4 * 3 },
	};
	int rc = 0, i;

	super->area_sectors = mkfs_area_sectors(super->sectors,
						geom_tracks(layout->geom));
	for (i = 0; i < 4 && !rc; i++)
		rc = layout_place(layout, from[i / 2][i % 2],
				  super->area_sectors, OWNER_AREA,
				  &super->area_sector[i / 2][i % 2]);
	return rc;
}

/* Encodes the profile, or the geometry alone where there is no profile. */
static int encode_record(const struct mkfs_options *options, void **buf,
			 size_t *bytes)
{
	return options->profile ?
		       profile_encode(options->profile, buf, bytes) :
		       geom_encode(options->geom, buf, bytes);
}

/* Bytes of one place for the profile: twice what it takes now, and more where
 * tracks are still to be found; little on a small disk. */
static uint64_t room_bytes(const struct super *super, uint64_t bytes)
{
	uint64_t want = 2 * bytes + ROOM_BYTES + super->sectors / ROOM_SHARE;
	uint64_t most = super->sectors * SECTOR_BYTES / ROOM_MOST;

	want = want < most ? want : most;
	want = want < TRAX_MAX_GEOM_BYTES ? want : TRAX_MAX_GEOM_BYTES;
	return want > bytes ? want : bytes;
}

/* Takes two places for the profile, which is stored in each by turns; the first
 * version goes to the first one. */
static int layout_geom(struct layout *layout,
		       const struct mkfs_options *options)
{
	struct super *super = layout->super;
	uint64_t half;
	size_t bytes;
	void *buf;
	int rc;

	if (!options->geom)
		return 0;
	rc = encode_record(options, &buf, &bytes);
	if (rc)
		return rc;
	super->geom_bytes = (uint32_t)bytes;
	super->geom_csum = csum(buf, bytes);
	free(buf);
	half = round_up(room_bytes(super, bytes), super_write_unit(super)) /
	       SECTOR_BYTES;
	super->room_sectors = (uint32_t)(2 * half);
	rc = layout_place(layout, 0, 2 * half, OWNER_GEOM,
			  &super->room_sector);
	super->geom_sector = super->room_sector;
	return rc;
}

/* Reduces a track to whole slots, aligned to the drive's physical block. */
static void layout_slots(const struct layout *layout, struct super_track *track)
{
	uint64_t first = round_up(track->sector, layout->unit);
	uint64_t skip = first - track->sector;
	uint64_t n = track->sectors > skip ? track->sectors - skip : 0;

	track->sector = first;
	track->sectors = (uint32_t)(n / TRAX_NODE_SECTORS * TRAX_NODE_SECTORS);
}

static int layout_nodes(struct layout *layout, struct mkfs_plan *plan)
{
	uint64_t slots = layout->super->sectors / NODE_SHARE /
			 TRAX_NODE_SECTORS;
	uint64_t have = 0;
	struct super_track track;
	int rc;

	if (slots < NODE_MIN_SLOTS)
		slots = NODE_MIN_SLOTS;
	if (slots > NODE_MAX_SLOTS)
		slots = NODE_MAX_SLOTS;
	plan->node_tracks = 0;
	while (have < slots && plan->node_tracks < 64) {
		rc = layout_tracks(layout, 0, TRAX_NODE_SECTORS + layout->unit,
				   &track);
		if (rc)
			return rc;
		layout_slots(layout, &track);
		layout_take(layout, track.sector, track.sectors, OWNER_NODES);
		plan->nodes[plan->node_tracks++] = track;
		have += track.sectors / TRAX_NODE_SECTORS;
	}
	return 0;
}

/* The sector from which a place for the i-th of n log places is looked for. */
static uint64_t layout_log_from(const struct layout *layout, unsigned i,
				unsigned n)
{
	const unsigned most = TRAX_MAX_LOG_TRACKS / LOG_TOGETHER;
	uint64_t sectors = layout->super->sectors;
	unsigned outer;

	i /= LOG_TOGETHER;
	n = (n + LOG_TOGETHER - 1) / LOG_TOGETHER;
	outer = 1 + n * n / (2 * most);
	if (i < outer)
		return i ? sectors / 4 >> (outer - 1 - i) : 0;
	i -= outer;
	n -= outer;
	return sectors / n * i + sectors / n / 2;
}

static int layout_log(struct layout *layout)
{
	struct super *super = layout->super;
	uint32_t record_unit = super_write_unit(super) / SECTOR_BYTES;
	uint64_t least = TRAX_MAX_RECORD_BYTES / SECTOR_BYTES + 2 * record_unit;
	uint64_t room = super->sectors / LOG_SHARE;
	uint64_t size, n;
	struct super_track track;
	unsigned i;
	int rc;

	if (least < room / TRAX_MAX_LOG_TRACKS)
		least = room / TRAX_MAX_LOG_TRACKS < LOG_PLACE_SECTORS ?
			room / TRAX_MAX_LOG_TRACKS : LOG_PLACE_SECTORS;
	rc = layout_tracks(layout, 0, least, &track);
	if (rc)
		return rc;
	n = room / track.sectors;
	n = n > TRAX_MAX_LOG_TRACKS ? TRAX_MAX_LOG_TRACKS : n;
	size = n < LOG_MIN_TRACKS ? room / LOG_MIN_TRACKS : 0;
	if (size && size < LOG_MIN_SECTORS)
		size = LOG_MIN_SECTORS;
	n = n < LOG_MIN_TRACKS ? LOG_MIN_TRACKS : n;
	for (i = 0; i < n; i++) {
		uint64_t from = layout_log_from(layout, i, (unsigned)n);

		track.sectors = (uint32_t)size;
		if (size) {
			rc = layout_place(layout, from, size, OWNER_LOG,
					  &track.sector);
		} else {
			rc = layout_tracks(layout, from, least, &track);
			if (!rc)
				layout_take(layout, track.sector,
					    track.sectors, OWNER_LOG);
		}
		if (rc)
			return rc;
		super->log[i] = track;
	}
	super->log_tracks = (uint32_t)n;
	return 0;
}

/*
 * Does the drive really have physical blocks of 512 bytes?  Many drives that
 * say so have larger ones.  Then every track begins at a multiple of these.
 */
static bool has_small_sectors(const struct mkfs_options *options)
{
	uint64_t tracks, step, i;
	struct geom_track track;

	if (!options->geom)
		return false;
	tracks = geom_tracks(options->geom);
	step = tracks / TELLING_TRACKS + 1;
	for (i = 0; i < tracks; i += step) {
		geom_track_at(options->geom, i, &track);
		if (track.known && track.first % TRAX_BLOCK_SECTORS)
			return true;
	}
	return false;
}

/* ---- The plan ---- */

/* The UUID in the structures is always a new one, so that what an earlier file
 * system with the same shown UUID has left on the disk is not taken for this
 * one's. */
static void plan_uuid(struct env *env, const struct mkfs_options *options,
		      struct super *super)
{
	uint64_t random[2] = { env_random(env), env_random(env) };

	memcpy(super->uuid, random, sizeof(super->uuid));
	super->uuid[6] = (super->uuid[6] & 0x0f) | 0x40; /* RFC 4122: random */
	super->uuid[8] = (super->uuid[8] & 0x3f) | 0x80;
	memcpy(super->shown_uuid, options->uuid ? options->uuid : super->uuid,
	       sizeof(super->shown_uuid));
}

static int plan_super(struct env *env, const struct disk_limits *limits,
		      const struct mkfs_options *options, struct super *super)
{
	uint32_t physical = limits->physical_bytes;
	uint32_t track = options->pseudo_track_sectors;
	uint64_t place[3];

	memset(super, 0, sizeof(*super));
	super->sectors = options->sectors ? options->sectors : limits->sectors;
	if (super->sectors > limits->sectors)
		return -EINVAL;
	super->sectors -= super->sectors % TRAX_BLOCK_SECTORS;
	if (super->sectors < MIN_BYTES / SECTOR_BYTES)
		return -ENOSPC;
	if (track && track < TRAX_MIN_PSEUDO_SECTORS)
		return -EINVAL;
	if (options->label && strlen(options->label) >= sizeof(super->label))
		return -EINVAL;
	if (options->label)
		memcpy(super->label, options->label, strlen(options->label));
	if (physical < limits->logical_bytes || physical & (physical - 1) ||
	    physical > TRAX_MAX_PHYSICAL_BYTES)
		physical = limits->logical_bytes;
	super->logical_bytes = limits->logical_bytes;
	super->physical_bytes = physical;
	if (physical < TRAX_BLOCK_BYTES && has_small_sectors(options)) {
		super->record_bytes = physical;
		super->incompat |= TRAX_INCOMPAT_RECORD_BYTES;
	}
	super->pseudo_track_sectors = track ? track : GEOM_PSEUDO_SECTORS;
	super_usual_places(super->sectors, place);
	super->second_sector = place[1];
	super->created_wall_ns = env_wall_ns(env);
	super->version = 1;
	super->hash_seed = env_random(env);
	plan_uuid(env, options, super);
	return 0;
}

static int plan_layout(struct layout *layout,
		       const struct mkfs_options *options,
		       struct mkfs_plan *plan)
{
	uint64_t fixed, nodes = 0;
	unsigned i;
	int rc;

	layout_supers(layout);
	rc = layout_areas(layout);
	if (!rc)
		rc = layout_geom(layout, options);
	if (!rc)
		rc = layout_nodes(layout, plan);
	if (!rc)
		rc = layout_log(layout);
	if (rc)
		return rc;
	for (i = 0; i < plan->node_tracks; i++)
		nodes += plan->nodes[i].sectors;
	fixed = super_fixed_sectors(&plan->super);
	plan->data_sectors = plan->super.sectors - fixed - nodes;
	return 0;
}

int mkfs_plan(struct env *env, const struct disk_limits *limits,
	      const struct mkfs_options *options, struct mkfs_plan *plan)
{
	struct layout layout = { .super = &plan->super };
	struct geom *regular = NULL;
	int rc;

	memset(plan, 0, sizeof(*plan));
	rc = plan_super(env, limits, options, &plan->super);
	if (rc)
		return rc;
	layout.unit = plan->super.physical_bytes / SECTOR_BYTES;
	layout.geom = options->geom;
	if (options->geom && geom_sectors(options->geom) != limits->sectors)
		return -EINVAL;
	if (!options->geom) {
		rc = geom_regular(plan->super.sectors,
				  plan->super.pseudo_track_sectors, &regular);
		if (rc)
			return rc;
		layout.geom = regular;
	}
	rc = plan_layout(&layout, options, plan);
	geom_free(regular);
	return rc;
}

/* ---- Writing ---- */

/* Zeroes [first, first + n); `zeros` has WIPE_SECTORS of zeros. */
static int write_zeros(struct disk *disk, uint64_t first, uint64_t n,
		       const void *zeros)
{
	uint32_t most = disk->limits.max_sectors;
	uint64_t at, part;
	int rc = 0;

	if (most > WIPE_SECTORS)
		most = WIPE_SECTORS;
	for (at = 0; at < n && !rc; at += part) {
		part = n - at < most ? n - at : most;
		rc = disk_write(disk, first + at, (uint32_t)part, zeros);
	}
	return rc;
}

/* Wipes the signatures of other file systems, and the superblocks of an earlier
 * traxfs. */
static int write_wipe(struct disk *disk, const struct super *super)
{
	void *zeros = aligned_alloc(TRAX_BLOCK_BYTES,
				    WIPE_SECTORS * SECTOR_BYTES);
	uint64_t place[3];
	int rc, i;

	if (!zeros)
		return -ENOMEM;
	memset(zeros, 0, WIPE_SECTORS * SECTOR_BYTES);
	super_places(super, place);
	rc = write_zeros(disk, 0, WIPE_SECTORS, zeros);
	if (!rc)
		rc = write_zeros(disk, disk->limits.sectors - WIPE_SECTORS,
				 WIPE_SECTORS, zeros);
	for (i = 0; i < 3 && !rc; i++)
		rc = write_zeros(disk, place[i], TRAX_BLOCK_SECTORS, zeros);
	free(zeros);
	return rc;
}

static int write_geom(struct disk *disk, const struct super *super,
		      const struct mkfs_options *options)
{
	size_t bytes, room, at, part;
	void *record;
	uint8_t *buf;
	int rc = 0;

	if (!super->geom_sector)
		return 0;
	rc = encode_record(options, &record, &bytes);
	if (rc)
		return rc;
	room = round_up(bytes, TRAX_BLOCK_BYTES);
	assert(room >= TRAX_BLOCK_BYTES);
	buf = aligned_alloc(TRAX_BLOCK_BYTES, room);
	if (!buf) {
		free(record);
		return -ENOMEM;
	}
	memset(buf, 0, room);
	memcpy(buf, record, bytes);
	free(record);
	for (at = 0; at < room && !rc; at += part) {
		part = room - at < TRAX_BLOCK_BYTES * 16 ?
			room - at : TRAX_BLOCK_BYTES * 16;
		rc = disk_write(disk, super->geom_sector + at / SECTOR_BYTES,
				(uint32_t)(part / SECTOR_BYTES), buf + at);
	}
	/* Recovery must not find the profile of an earlier file system in the
	 * second place. */
	memset(buf, 0, TRAX_BLOCK_BYTES);
	if (!rc)
		rc = disk_write(disk, super->room_sector +
				super->room_sectors / 2, TRAX_BLOCK_SECTORS,
				buf);
	free(buf);
	return rc;
}

/* The last first, so that the one that is looked for first is last. */
static int write_supers(struct disk *disk, const struct super *super)
{
	void *buf = aligned_alloc(TRAX_BLOCK_BYTES, TRAX_BLOCK_BYTES);
	uint64_t place[3];
	int rc = 0, i;

	if (!buf)
		return -ENOMEM;
	super_places(super, place);
	for (i = 2; i >= 0 && !rc; i--) {
		super_encode(super, place[i], buf);
		rc = disk_write(disk, place[i], TRAX_BLOCK_SECTORS, buf);
	}
	free(buf);
	return rc ? rc : disk_flush(disk);
}

/* ---- The first items ---- */

struct first_items {
	struct tree_format_item item[MAX_TAKEN];
	struct owner_item owner[MAX_TAKEN];
	struct inode_item root;
	unsigned n;
};

static void items_add_owner(struct first_items *items, uint64_t first,
			    uint64_t n, enum owner_kind kind)
{
	struct owner_item *owner = &items->owner[items->n];

	owner->sectors = le64_put(n);
	owner->kind = (uint8_t)kind;
	items->item[items->n++] = (struct tree_format_item){
		.key = key_make(0, ITEM_OWNER, addr_make(0, first)),
		.value = owner,
		.bytes = sizeof(*owner),
	};
}

static int items_cmp(const void *a, const void *b)
{
	const struct tree_format_item *x = a, *y = b;

	return key_cmp(x->key, y->key);
}

static void items_owners(struct first_items *items,
			 const struct mkfs_plan *plan)
{
	const struct super *super = &plan->super;
	const struct super_run geom = super_geom_run(super);
	uint64_t place[3];
	unsigned i;

	super_places(super, place);
	items_add_owner(items, 0, TRAX_SUPER_SECTOR + TRAX_BLOCK_SECTORS,
			OWNER_SUPER);
	for (i = 1; i < 3; i++)
		items_add_owner(items, place[i], TRAX_BLOCK_SECTORS,
				OWNER_SUPER);
	for (i = 0; i < 4; i++)
		items_add_owner(items, super->area_sector[i / 2][i % 2],
				super->area_sectors, OWNER_AREA);
	if (geom.sectors)
		items_add_owner(items, geom.sector, geom.sectors, OWNER_GEOM);
	for (i = 0; i < super->log_tracks; i++)
		items_add_owner(items, super->log[i].sector,
				super->log[i].sectors, OWNER_LOG);
	for (i = 0; i < plan->node_tracks; i++)
		items_add_owner(items, plan->nodes[i].sector,
				plan->nodes[i].sectors, OWNER_NODES);
	qsort(items->item, items->n, sizeof(items->item[0]), items_cmp);
}

static void items_root(struct first_items *items, struct env *env,
		       const struct mkfs_options *options)
{
	struct inode_item *root = &items->root;
	uint32_t mode = options->root_mode ? options->root_mode : 0755;

	root->mode = le32_put(S_IFDIR | (mode & 07777));
	root->uid = le32_put(options->root_uid);
	root->gid = le32_put(options->root_gid);
	root->nlink = le32_put(2);
	inode_set_time(&root->mtime, env_wall_ns(env));
	root->atime = root->ctime = root->btime = root->mtime;
	root->parent = le64_put(TRAX_ROOT_INO);
	root->next_seq = le64_put(TRAX_FIRST_SEQ);
	root->generation = le32_put(1);
	items->item[items->n++] = (struct tree_format_item){
		.key = key_make(TRAX_ROOT_INO, ITEM_INODE, 0),
		.value = root,
		.bytes = sizeof(*root),
	};
}

static int write_tree(struct env *env, struct disk *disk,
		      const struct mkfs_options *options,
		      const struct mkfs_plan *plan)
{
	struct first_items *items = calloc(1, sizeof(*items));
	struct tree_format format = {
		.super = &plan->super,
		.next_ino_seq = TRAX_ROOT_INO + 1,
		.next_dirgroup = 1,	/* 0 is the root's */
		.inodes = 1,
	};
	int rc;

	if (!items)
		return -ENOMEM;
	items_owners(items, plan);
	items_root(items, env, options);
	format.items = items->item;
	format.n = items->n;
	rc = tree_format(env, disk, &format);
	free(items);
	return rc;
}

int mkfs_write(struct env *env, struct disk *disk,
	       const struct mkfs_options *options,
	       const struct mkfs_plan *plan)
{
	int rc = write_wipe(disk, &plan->super);

	if (!rc)
		rc = write_geom(disk, &plan->super, options);
	if (!rc)
		rc = write_tree(env, disk, options, plan);
	if (!rc)
		rc = disk_flush(disk);
	if (!rc)
		rc = write_supers(disk, &plan->super);
	if (rc)
		msg_error("%s: could not write the file system: %s",
			  disk->name, strerror(-rc));
	return rc;
}

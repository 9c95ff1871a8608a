/*
 * super.c - the superblock.
 *
 * It is one block, at three places; each copy names its own sector, so that a
 * copy that was read elsewhere is refused.  Everything that it points at must
 * lie inside the file system and must not overlap: the layers above write there
 * without checking again.
 */
#include <string.h>

#include "base/csum.h"
#include "format/format.h"

struct disk_super {
	le64 magic;
	le64 sector;
	uint8_t shown_uuid[16];
	char label[64];
	le64 compat, ro_compat, incompat;
	le64 sectors;
	le32 logical_bytes, physical_bytes;
	le64 created_wall_ns;
	le64 version;
	le64 hash_seed;
	le64 area_sector[2][2];
	le32 area_sectors;
	le32 pseudo_track_sectors;
	le64 geom_sector;
	le64 geom_csum;
	le32 geom_bytes;
	le32 log_tracks;
	struct {
		le64 sector;
		le32 sectors;
	} log[TRAX_MAX_LOG_TRACKS];
	le64 room_sector;
	le32 room_sectors;
	le32 record_bytes;
	le64 second_sector;
	uint8_t uuid[16];
	uint8_t zero[3056];
	le64 csum;
};
static_assert(sizeof(struct disk_super) == TRAX_BLOCK_BYTES, "disk_super");
static_assert(offsetof(struct disk_super, sectors) == 120, "sectors");
static_assert(offsetof(struct disk_super, area_sector) == 160, "area_sector");
static_assert(offsetof(struct disk_super, geom_sector) == 200, "geom_sector");
static_assert(offsetof(struct disk_super, log) == 224, "log");
static_assert(offsetof(struct disk_super, room_sector) == 992, "room_sector");
static_assert(offsetof(struct disk_super, record_bytes) == 1004,
	      "record_bytes");
static_assert(offsetof(struct disk_super, second_sector) == 1008,
	      "second_sector");
static_assert(offsetof(struct disk_super, uuid) == 1016, "uuid");
static_assert(offsetof(struct disk_super, csum) == 4088, "csum");

#define MAGIC_VERSION_BITS 8	/* the version is the highest byte of the
				 * magic */
/* The smallest and the largest file system: 16 MiB, and as many sectors as an
 * address has bits for. */
#define MIN_SECTORS ((16u << 20) / 512)
#define MAX_SECTORS (1ull << 56)
#define MAX_ROOM_SECTORS (2 * TRAX_MAX_GEOM_BYTES / 512)
#define MAX_LOG_SECTORS (64u << 11)	/* 64 MiB: a mount reads them all */
#define MAX_REGIONS (3 + 4 + 1 + TRAX_MAX_LOG_TRACKS)

void super_usual_places(uint64_t sectors, uint64_t place[3])
{
	const uint64_t mask = ~(uint64_t)(TRAX_BLOCK_SECTORS - 1);

	place[0] = TRAX_SUPER_SECTOR;
	place[1] = sectors / 2 & mask;
	place[2] = (sectors - TRAX_BLOCK_SECTORS) & mask;
}

void super_places(const struct super *super, uint64_t place[3])
{
	super_usual_places(super->sectors, place);
	place[1] = super->second_sector;
}

void super_encode(const struct super *super, uint64_t sector, void *buf)
{
	struct disk_super *d = buf;

	memset(d, 0, sizeof(*d));
	d->magic = le64_put(TRAX_SUPER_MAGIC);
	d->sector = le64_put(sector);
	memcpy(d->uuid, super->uuid, sizeof(d->uuid));
	memcpy(d->shown_uuid, super->shown_uuid, sizeof(d->shown_uuid));
	memcpy(d->label, super->label, strnlen(super->label,
					       sizeof(d->label) - 1));
	d->compat = le64_put(super->compat);
	d->ro_compat = le64_put(super->ro_compat);
	d->incompat = le64_put(super->incompat);
	d->sectors = le64_put(super->sectors);
	d->logical_bytes = le32_put(super->logical_bytes);
	d->physical_bytes = le32_put(super->physical_bytes);
	d->created_wall_ns = le64_put((uint64_t)super->created_wall_ns);
	d->version = le64_put(super->version);
	d->hash_seed = le64_put(super->hash_seed);
	for (unsigned i = 0; i < 4; i++)
		d->area_sector[i / 2][i % 2] =
			le64_put(super->area_sector[i / 2][i % 2]);
	d->area_sectors = le32_put(super->area_sectors);
	d->pseudo_track_sectors = le32_put(super->pseudo_track_sectors);
	d->geom_sector = le64_put(super->geom_sector);
	d->geom_csum = le64_put(super->geom_csum);
	d->geom_bytes = le32_put(super->geom_bytes);
	d->room_sector = le64_put(super->room_sector);
	d->room_sectors = le32_put(super->room_sectors);
	d->record_bytes = le32_put(super->record_bytes);
	d->second_sector = le64_put(super->second_sector);
	d->log_tracks = le32_put(super->log_tracks);
	for (unsigned i = 0; i < super->log_tracks; i++) {
		d->log[i].sector = le64_put(super->log[i].sector);
		d->log[i].sectors = le32_put(super->log[i].sectors);
	}
	d->csum = le64_put(csum(d, offsetof(struct disk_super, csum)));
}

static void super_load(const struct disk_super *d, struct super *super)
{
	memset(super, 0, sizeof(*super));
	memcpy(super->uuid, d->uuid, sizeof(super->uuid));
	memcpy(super->shown_uuid, d->shown_uuid, sizeof(super->shown_uuid));
	memcpy(super->label, d->label, sizeof(super->label));
	super->compat = le64_get(d->compat);
	super->ro_compat = le64_get(d->ro_compat);
	super->incompat = le64_get(d->incompat);
	super->sectors = le64_get(d->sectors);
	super->logical_bytes = le32_get(d->logical_bytes);
	super->physical_bytes = le32_get(d->physical_bytes);
	super->created_wall_ns = (int64_t)le64_get(d->created_wall_ns);
	super->version = le64_get(d->version);
	super->hash_seed = le64_get(d->hash_seed);
	for (unsigned i = 0; i < 4; i++)
		super->area_sector[i / 2][i % 2] =
			le64_get(d->area_sector[i / 2][i % 2]);
	super->area_sectors = le32_get(d->area_sectors);
	super->pseudo_track_sectors = le32_get(d->pseudo_track_sectors);
	super->geom_sector = le64_get(d->geom_sector);
	super->geom_csum = le64_get(d->geom_csum);
	super->geom_bytes = le32_get(d->geom_bytes);
	super->room_sector = le64_get(d->room_sector);
	super->room_sectors = le32_get(d->room_sectors);
	super->record_bytes = le32_get(d->record_bytes);
	super->second_sector = le64_get(d->second_sector);
	super->log_tracks = le32_get(d->log_tracks);
	for (unsigned i = 0;
	     i < super->log_tracks && i < TRAX_MAX_LOG_TRACKS; i++) {
		super->log[i].sector = le64_get(d->log[i].sector);
		super->log[i].sectors = le32_get(d->log[i].sectors);
	}
}

static bool is_power_of_2(uint32_t x)
{
	return x && !(x & (x - 1));
}

static const char *check_device(const struct super *super)
{
	if (memchr(super->label, 0, sizeof(super->label)) == NULL)
		return "label is not terminated";
	if (super->incompat & ~TRAX_INCOMPAT_KNOWN)
		return "incompatible feature that this version does not know";
	if (super->sectors < MIN_SECTORS || super->sectors > MAX_SECTORS)
		return "size is out of range";
	if (super->logical_bytes != 512 && super->logical_bytes != 4096)
		return "logical block size is neither 512 nor 4096";
	if (!is_power_of_2(super->physical_bytes) ||
	    super->physical_bytes < super->logical_bytes ||
	    super->physical_bytes > TRAX_MAX_PHYSICAL_BYTES)
		return "physical block size is out of range";
	if (!super->record_bytes !=
	    !(super->incompat & TRAX_INCOMPAT_RECORD_BYTES))
		return "unit of log records without its feature, or none";
	if (super->record_bytes &&
	    (!is_power_of_2(super->record_bytes) ||
	     super->record_bytes < super->physical_bytes ||
	     super->record_bytes > super_write_unit(super)))
		return "unit of log records is out of range";
	return NULL;
}

static const char *check_areas(const struct super *super)
{
	if (super->second_sector % TRAX_BLOCK_SECTORS)
		return "second superblock is not aligned";
	if (super->area_sectors < 2 * TRAX_BLOCK_SECTORS ||
	    super->area_sectors % TRAX_BLOCK_SECTORS)
		return "length of the root areas is wrong";
	for (unsigned i = 0; i < 4; i++)
		if (super->area_sector[i / 2][i % 2] % TRAX_BLOCK_SECTORS)
			return "root area is not aligned";
	return NULL;
}

static uint64_t geom_sectors_used(const struct super *super)
{
	return (super->geom_bytes + TRAX_BLOCK_BYTES - 1ull) /
	       TRAX_BLOCK_BYTES * TRAX_BLOCK_SECTORS;
}

struct super_run super_geom_run(const struct super *super)
{
	if (super->room_sectors)
		return (struct super_run){ super->room_sector,
					   super->room_sectors };
	return (struct super_run){ super->geom_sector, super->geom_sector ?
				   geom_sectors_used(super) : 0 };
}

static const char *check_room(const struct super *super)
{
	uint32_t half = super->room_sectors / 2;

	if (!super->room_sectors)
		return super->room_sector ? "room of the geometry is empty" :
					    NULL;
	if (super->room_sector % TRAX_BLOCK_SECTORS ||
	    super->room_sectors % (2 * TRAX_BLOCK_SECTORS))
		return "room of the geometry is not aligned";
	if (super->room_sectors > MAX_ROOM_SECTORS)
		return "room of the geometry is too large";
	if (super->geom_sector != super->room_sector &&
	    super->geom_sector != super->room_sector + half)
		return "geometry does not begin a half of its room";
	return geom_sectors_used(super) > half ?
		       "geometry is larger than half its room" : NULL;
}

static const char *check_geom(const struct super *super)
{
	const char *why = check_room(super);

	if (why)
		return why;
	if (!super->geom_sector)
		return super->pseudo_track_sectors < TRAX_MIN_PSEUDO_SECTORS ?
			"pseudo-tracks are too short" : NULL;
	if (super->geom_sector % TRAX_BLOCK_SECTORS)
		return "geometry is not aligned";
	if (!super->geom_bytes || super->geom_bytes > TRAX_MAX_GEOM_BYTES)
		return "length of the geometry is out of range";
	return NULL;
}

static const char *check_log(const struct super *super)
{
	const uint64_t unit = super_record_unit(super) / 512;

	if (super->log_tracks < TRAX_MIN_LOG_TRACKS ||
	    super->log_tracks > TRAX_MAX_LOG_TRACKS)
		return "number of log tracks is out of range";
	for (unsigned i = 0; i < super->log_tracks; i++) {
		const struct super_track *t = &super->log[i];
		uint64_t skip = -t->sector & (unit - 1);
		uint64_t usable = t->sectors > skip ?
			(t->sectors - skip) / unit * unit : 0;

		if (usable < TRAX_MAX_RECORD_BYTES / 512)
			return "log track is too short for a record";
		if (t->sectors > MAX_LOG_SECTORS)
			return "log track is too long";
	}
	return NULL;
}

struct region {
	uint64_t first, n;
};

/* Lists all regions that the superblock points at; returns their number. */
static unsigned super_regions(const struct super *super,
			      struct region region[MAX_REGIONS])
{
	const struct super_run geom = super_geom_run(super);
	uint64_t place[3];
	unsigned n = 0;

	super_places(super, place);
	for (unsigned i = 0; i < 3; i++)
		region[n++] = (struct region){ place[i], TRAX_BLOCK_SECTORS };
	for (unsigned i = 0; i < 4; i++)
		region[n++] = (struct region){
			super->area_sector[i / 2][i % 2], super->area_sectors
		};
	if (geom.sectors)
		region[n++] = (struct region){ geom.sector, geom.sectors };
	for (unsigned i = 0; i < super->log_tracks; i++)
		region[n++] = (struct region){
			super->log[i].sector, super->log[i].sectors
		};
	return n;
}

static const char *check_regions(const struct super *super)
{
	struct region r[MAX_REGIONS];
	const unsigned n = super_regions(super, r);

	for (unsigned i = 0; i < n; i++) {
		if (r[i].first < TRAX_SUPER_SECTOR ||
		    r[i].first > super->sectors ||
		    r[i].n > super->sectors - r[i].first)
			return "something lies outside the file system";
		for (unsigned k = 0; k < i; k++)
			if (r[i].first < r[k].first + r[k].n &&
			    r[k].first < r[i].first + r[i].n)
				return "fixed places overlap";
	}
	return NULL;
}

const char *super_decode(const void *buf, uint64_t sector,
			 struct super *super)
{
	static const char *(*const checks[])(const struct super *) = {
		check_device, check_areas, check_geom, check_log,
		check_regions,
	};
	const struct disk_super *d = buf;
	struct super s;

	if (le64_get(d->magic) != TRAX_SUPER_MAGIC)
		return (le64_get(d->magic) ^ TRAX_SUPER_MAGIC) <<
		       MAGIC_VERSION_BITS ? "no superblock magic" :
		       "the format has another version than this program";
	if (le64_get(d->csum) != csum(d, offsetof(struct disk_super, csum)))
		return "superblock checksum is wrong";
	if (le64_get(d->sector) != sector)
		return "superblock belongs to another sector";
	super_load(d, &s);
	for (unsigned i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		const char *why = checks[i](&s);

		if (why)
			return why;
	}
	*super = s;
	return NULL;
}

uint64_t super_fixed_sectors(const struct super *super)
{
	struct region r[MAX_REGIONS];
	const unsigned n = super_regions(super, r);
	uint64_t sum = TRAX_SUPER_SECTOR;	/* counts the boot block */

	for (unsigned i = 0; i < n; i++)
		sum += r[i].n;
	return sum;
}

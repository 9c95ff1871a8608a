/*
 * format.h - every structure on disk: layout, codec, verifier, printer.
 *
 * doc/format.md is the specification; this header and it change together.  All
 * integers are little-endian; every structure has a magic number, a version
 * (the last byte of the magic number, or the superblock's), and a checksum
 * (base/csum.h).  Decoders trust nothing: they return NULL if the structure is
 * good, else the reason as a constant string; the caller adds the place and
 * reports it once.
 *
 * Units: sector = 512 bytes, block = 4096 bytes, node = 16 KiB.  An address is
 * (device << 56) | sector.
 */
#ifndef TRAX_FORMAT_FORMAT_H
#define TRAX_FORMAT_FORMAT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/csum.h"
#include "base/le.h"

/* Units of the format: a block of file data (a page of most machines), and a
 * node of the tree. */
#define TRAX_BLOCK_BYTES 4096u
#define TRAX_BLOCK_SECTORS 8u
#define TRAX_NODE_BYTES 16384u
#define TRAX_NODE_SECTORS 32u
#define TRAX_GROUP_SECTORS (1u << 21)	/* 1 GiB: unit of free-space summary */
/* highest level of a node: more than any disk needs */
#define TRAX_MAX_LEVEL 8u
#define TRAX_MAX_ITEM_BYTES 4096u	/* largest value of an item */
#define TRAX_MAX_INLINE_BYTES 2048u	/* file data kept in its leaf */
/* longest name, as in Linux (NAME_MAX) */
#define TRAX_MAX_NAME_BYTES 255u
/* most log places: with more the nearest one is hardly nearer */
#define TRAX_MAX_LOG_TRACKS 64u
#define TRAX_MIN_LOG_TRACKS 2u	/* a mirror lies on another track */
/* longest log record: it holds the largest transaction */
#define TRAX_MAX_RECORD_BYTES (256u << 10)
#define TRAX_MAX_UNIT_BYTES 65536u	/* largest unit of records: that of the
					 * largest block */
#define TRAX_MAX_GEOM_BYTES (64u << 20)	/* largest profile record */
#define TRAX_MAX_PHYSICAL_BYTES 65536u	/* largest physical block of a drive */
#define TRAX_MIN_PSEUDO_SECTORS 64u	/* shortest pseudo-track */
#define TRAX_MAX_INO ((uint64_t)1 << 63)	/* above all inode numbers */
#define TRAX_MAX_FILE_BLOCKS ((uint64_t)1 << 51) /* a file has 2^63 bytes */
#define TRAX_FIRST_SEQ 3u		/* sequence of a directory's first
					 * entry; 1 and 2 are "." and ".." */
#define TRAX_XATTR_PROBES 4u		/* keys that an attribute may have */
/* Bytes hashed at most to make broken log records whole again: half a second's
 * work. */
#define TRAX_REBUILD_BYTES (UINT64_C(4) << 30)

/* The features that this code knows. super_decode refuses a superblock with an
 * unknown incompatible one; with an unknown read-only compatible one the mount
 * is read-only. */
#define TRAX_RO_COMPAT_KNOWN 0ull
#define TRAX_INCOMPAT_RECORD_BYTES 1ull	/* super.record_bytes counts */
#define TRAX_INCOMPAT_KNOWN TRAX_INCOMPAT_RECORD_BYTES

typedef uint64_t traxaddr;

static inline traxaddr addr_make(unsigned device, uint64_t sector)
{
	return (uint64_t)device << 56 | sector;
}

static inline uint64_t addr_sector(traxaddr addr)
{
	return addr & ((1ull << 56) - 1);
}

static inline unsigned addr_device(traxaddr addr)
{
	return addr >> 56;
}

/* ---- Superblock: 4096 bytes at sector 8 and at two more places ---- */

/* Its last byte is the version of the format, as a digit. */
#define TRAX_SUPER_MAGIC 0x3453465841525400ull
#define TRAX_SUPER_SECTOR 8u

struct super_track {		/* decoded run of sectors */
	uint64_t sector;
	uint32_t sectors;
};

/* A superblock, decoded. All sectors are on device 0. */
struct super {
	uint8_t uuid[16];		/* is in roots, nodes and log records;
					 * never changes */
	uint8_t shown_uuid[16];		/* what users see and may change */
	char label[64];			/* NUL-terminated UTF-8 */
	uint64_t compat, ro_compat, incompat;
	uint64_t sectors;		/* size of the file system */
	uint32_t logical_bytes;		/* logical block of the device it was
					 * made for */
	uint32_t physical_bytes;
	int64_t created_wall_ns;
	uint64_t version;		/* goes up with each superblock write */
	uint64_t hash_seed;		/* seed of the hashes of names and of
					 * xattr names */
	/* Root places: generation g writes area g & 1; two copies of each.
	 * Aligned to blocks, as is geom_sector. */
	uint64_t area_sector[2][2];
	uint32_t area_sectors;		/* length of each of the four */
	uint64_t geom_sector;		/* where the profile record is; 0: there
					 * is none, and pseudo-tracks are
					 * used */
	uint32_t geom_bytes;
	uint64_t geom_csum;
	uint64_t second_sector;		/* place of the second superblock */
	/* Room in which the profile record is written by turns: two halves,
	 * with the record in one of them. 0: the record stands alone, in whole
	 * blocks. */
	uint64_t room_sector;
	uint32_t room_sectors;		/* length of both halves together */
	uint32_t pseudo_track_sectors;	/* length of a pseudo-track, used
					 * without a geometry */
	/* At least TRAX_MIN_LOG_TRACKS; each holds TRAX_MAX_RECORD_BYTES when
	 * its ends are aligned to super_record_unit (short tracks are joined:
	 * an entry is a run of whole tracks). */
	uint32_t record_bytes;		/* unit of log records; 0: the same as
					 * of everything else */
	uint32_t log_tracks;		/* entries used in log[] */
	struct super_track log[TRAX_MAX_LOG_TRACKS];
};

/* Alignment, in bytes, of all structures that keep their place for long. */
static inline uint32_t super_write_unit(const struct super *super)
{
	return super->physical_bytes > TRAX_BLOCK_BYTES ?
		super->physical_bytes : TRAX_BLOCK_BYTES;
}

/* A log record is a multiple of this many bytes, and aligned to it. */
static inline uint32_t super_record_unit(const struct super *super)
{
	return super->record_bytes ? super->record_bytes :
				     super_write_unit(super);
}

/* The number of sectors of superblocks, root areas, profile record and log:
 * users never get them. */
uint64_t super_fixed_sectors(const struct super *super);

/* The run of the profile record, with both halves if there are two; 0 sectors:
 * there is no record. */
struct super_run {
	uint64_t sector, sectors;
};
struct super_run super_geom_run(const struct super *super);

/* The three places of the superblock. */
void super_places(const struct super *super, uint64_t place[3]);
/* The places on a new file system of `sectors`. The second one stays where it
 * is when the file system grows. */
void super_usual_places(uint64_t sectors, uint64_t place[3]);

/* `buf` has TRAX_BLOCK_BYTES; `sector` is where the copy will be, or was
 * read. */
void super_encode(const struct super *super, uint64_t sector, void *buf);
const char *super_decode(const void *buf, uint64_t sector,
			 struct super *super);

/* ---- Keys and pointers ---- */

/*
 * Items are ordered by (ino, type, off).  ino 0 holds what belongs to the
 * whole file system.
 */
enum item_type {
	ITEM_INODE = 1,		/* off 0: struct inode_item */
	ITEM_INLINE = 2,	/* off 0: file data, or a symlink's target */
	ITEM_XATTR = 3,		/* off hash << 8 | piece */
	ITEM_NAME = 4,		/* off hash of name: name records, see below */
	ITEM_ENTRY = 5,		/* off sequence: one name record */
	ITEM_EXTENT = 6,	/* off file offset in sectors: extent_item */
	ITEM_CSUM = 7,		/* off first block of a 256-KiB window */
	ITEM_REPLICA = 8,	/* off replica_off(): replica_item */
	ITEM_ORPHAN = 16,	/* ino 0, off inode number: orphan_item */
	ITEM_OWNER = 17,	/* ino 0, off address: owner_item */
	ITEM_SCRUB = 18,	/* ino 0: where the scrub is (scrub_item) */
	ITEM_ERROR = 19,	/* ino 0, off the damage's number: error_item */
	ITEM_REGION = 20,	/* ino 0, off address: region_item */
	ITEM_COPIES = 21,	/* ino 0, off address: copy_entry records */
	ITEM_HEAT = 22,		/* ino 0, off a number: a part of what was
				 * learned */
	ITEM_MOVE = 23,		/* ino 0, off its owner_kind: move_item */
	ITEM_CLEAN = 24,	/* ino 0, off 0: clean_item */
};

struct key {
	uint64_t ino;
	uint8_t type;
	uint64_t off;
};

struct disk_key {
	le64 ino;
	uint8_t type;
	le64 off;
};
static_assert(sizeof(struct disk_key) == 17, "disk_key");

#define KEY_MIN ((struct key){ 0, 0, 0 })
#define KEY_MAX ((struct key){ UINT64_MAX, UINT8_MAX, UINT64_MAX })

static inline struct key key_make(uint64_t ino, enum item_type type,
				  uint64_t off)
{
	return (struct key){ ino, (uint8_t)type, off };
}

static inline int key_cmp(struct key a, struct key b)
{
	if (a.ino != b.ino)
		return a.ino < b.ino ? -1 : 1;
	if (a.type != b.type)
		return a.type < b.type ? -1 : 1;
	if (a.off != b.off)
		return a.off < b.off ? -1 : 1;
	return 0;
}

static inline struct key key_get(const struct disk_key *k)
{
	return (struct key){ le64_get(k->ino), k->type, le64_get(k->off) };
}

static inline struct disk_key key_put(struct key k)
{
	return (struct disk_key){ le64_put(k.ino), k.type, le64_put(k.off) };
}

/* Smallest key greater than k (KEY_MAX stays). */
struct key key_after(struct key k);
/* Greatest key smaller than k (KEY_MIN stays). */
struct key key_before(struct key k);

/* Writes "ino/type/off" with the type's name, for messages. Returns buf. */
char *key_text(struct key k, char *buf, size_t bytes);

/* A pointer to a node: where it is, what it must contain. */
struct node_ptr {
	traxaddr addr;		/* 0: none */
	traxaddr addr2;		/* mirror of an interior node; 0: none */
	uint64_t csum;		/* checksum of the whole node */
	uint64_t gen;		/* the generation in which it was written */
};

/* ---- Nodes: 16 KiB, kept in memory as they are on disk ---- */

#define TRAX_NODE_MAGIC 0x4e585254u	/* "TRXN" */

/*
 * A leaf: header, n leaf_slot in key order growing up, values growing down from
 * the end (there may be unused bytes between values).
 * An interior node: header, n child_slot in key order; child i holds the keys
 * in [key i, key i+1), the last child those up to `high`.
 */
struct node_header {
	le32 magic;
	uint8_t level;		/* 0: leaf */
	uint8_t pad;
	le16 n;
	le64 fsid;		/* first eight bytes of the uuid */
	le64 addr;		/* the node's own address */
	le64 addr2;		/* the mirror's address; the two copies are
				 * identical */
	le64 gen;
	le16 heap;		/* leaf: offset of the lowest value byte */
	le16 used;		/* leaf: bytes of values that are alive */
	struct disk_key low;	/* lowest and highest key it may hold */
	struct disk_key high;
};
static_assert(sizeof(struct node_header) == 78, "node_header");

struct leaf_slot {
	struct disk_key key;
	le16 off;		/* offset of the value from the beginning of the
				 * node */
	le16 bytes;
};
static_assert(sizeof(struct leaf_slot) == 21, "leaf_slot");

struct child_slot {
	struct disk_key key;
	le64 addr, addr2, csum, gen;
};
static_assert(sizeof(struct child_slot) == 49, "child_slot");

/*
 * Verifies everything a node can say of itself: magic, fsid, level, counts,
 * order of keys, key range, values inside the node and not overlapping the
 * slots, and each value by the rules of its type (item_verify).  `ptr` is the
 * pointer it was read through; the caller has compared the checksum.
 */
const char *node_verify(const void *node, uint64_t fsid,
			const struct node_ptr *ptr, unsigned level,
			struct key low, struct key high);

/* ---- Values ---- */

struct disk_time {
	le64 seconds;		/* signed */
	le32 ns;
};

struct inode_item {
	le32 mode, uid, gid, nlink;
	le32 rdev;
	le32 flags;		/* INODE_* */
	le64 size;		/* size of the file in bytes */
	le64 sectors;		/* sectors that the data takes on the disk, for
				 * st_blocks */
	struct disk_time atime, mtime, ctime, btime;
	le64 parent;		/* the directory it was made in or moved to */
	le64 goal;		/* address near which its data should go */
	le64 next_seq;		/* directory: sequence of the next entry */
	le64 entries;		/* directory: number of entries */
	le64 dirgroup;		/* directory: group of its children's numbers */
	le32 xattrs;		/* number of extended attributes */
	le32 generation;	/* always 1: numbers are never reused */
};
static_assert(sizeof(struct inode_item) == 136, "inode_item");

#define INODE_IMMUTABLE 0x1u
#define INODE_APPEND 0x2u
#define INODE_NOATIME 0x4u
#define INODE_NODUMP 0x8u
#define INODE_HAS_CAPS 0x10u	/* security.capability is stored */
#define INODE_HAS_ACL 0x20u	/* any system.posix_acl_* is stored */
#define INODE_HAS_COPIES 0x40u	/* may have REPLICA items */
#define INODE_DATA_LOST 0x80u	/* a repair has lost data of this file, so that
				 * what has no extent is not zeros */

/*
 * Inode numbers: directory group (23 bits) << 40 | sequence (40 bits).  The
 * sequence is never used twice: at 1,000 creates a second 40 bits last for 34
 * years.  The group only brings together the inodes of a directory, so it is
 * taken modulo the number of groups.
 */
#define TRAX_ROOT_INO 1u
#define TRAX_INO_SEQ_BITS 40u
#define TRAX_INO_SEQS (1ull << TRAX_INO_SEQ_BITS)
#define TRAX_DIRGROUPS (1ull << (63 - TRAX_INO_SEQ_BITS))

static inline uint64_t ino_make(uint64_t dirgroup, uint64_t seq)
{
	return dirgroup % TRAX_DIRGROUPS << TRAX_INO_SEQ_BITS | seq;
}

/* A NAME value is one or more of these back to back, with the same hash; an
 * ENTRY value is exactly one. */
struct name_record {
	le64 ino;
	le64 seq;		/* sequence number of its ENTRY item */
	uint8_t type;		/* DT_* */
	uint8_t bytes;		/* length of the name */
	/* The name follows, not terminated. */
};
static_assert(sizeof(struct name_record) == 18, "name_record");

/* The value of piece 0 of an extended attribute begins with this; the pieces
 * from 1 on are raw bytes. */
struct xattr_head {
	le32 value_bytes;	/* of all pieces together; at most 64 KiB */
	uint8_t name_bytes;
	uint8_t pieces;
	/* The full name with its prefix follows, then the first bytes of the
	 * value. */
};
static_assert(sizeof(struct xattr_head) == 6, "xattr_head");
/* Bytes of an item of an attribute, less than TRAX_MAX_ITEM_BYTES; the first
 * one begins with the head and the name.  And bytes of the largest value:
 * Linux's limit. */
#define TRAX_XATTR_PIECE_BYTES 3800u
#define TRAX_MAX_XATTR_BYTES 65536u

struct extent_item {
	le64 addr;
	le64 sectors;
	le32 flags;		/* EXTENT_* */
};
static_assert(sizeof(struct extent_item) == 20, "extent_item");

#define EXTENT_UNWRITTEN 0x1u	/* allocated, reads as zeros */
#define EXTENT_KNOWN 0x2u	/* its track was known when it was placed */

/*
 * The value of a CSUM item holds the checksums of the 64 blocks of one 256-KiB
 * window of a file:
 *
 *   le16 mask[4] bit i of chunk p is set if block 16 p + i has a checksum
 *   le32 for each bit that is set, in order
 *
 * A block without a checksum is a hole or unwritten.
 */
#define TRAX_CSUM_WINDOW_BLOCKS 64u
#define TRAX_CSUM_CHUNK_BLOCKS 16u
#define TRAX_CSUM_CHUNKS 4u

struct csum_window {		/* the same, decoded */
	uint16_t mask[TRAX_CSUM_CHUNKS];	/* bit i of chunk p: block 16 p
						 * + i has a checksum */
	uint32_t sum[TRAX_CSUM_CHUNKS][TRAX_CSUM_CHUNK_BLOCKS];
};

/* The checksum that a CSUM item has of a block of file data. */
static inline uint32_t csum_block(const void *block)
{
	return (uint32_t)csum(block, TRAX_BLOCK_BYTES);
}

/* Returns the number of bytes used, 0 if no block has a checksum. `buf` has
 * TRAX_MAX_ITEM_BYTES. */
size_t csum_window_encode(const struct csum_window *w, void *buf);
const char *csum_window_decode(const void *buf, size_t bytes,
			       struct csum_window *w);

/* What [off, off + sectors) of the device is used for. */
struct owner_item {
	le64 sectors;
	uint8_t kind;		/* OWNER_* */
	le64 ino;		/* OWNER_DATA: the file's inode number */
	le64 off;		/* OWNER_DATA: file offset in sectors */
};
static_assert(sizeof(struct owner_item) == 25, "owner_item");

enum owner_kind {
	OWNER_DATA = 1,		/* exactly one EXTENT item says the same */
	OWNER_NODES = 2,	/* a node track */
	OWNER_LOG = 3,
	OWNER_SUPER = 4,	/* superblocks and the boot block */
	OWNER_AREA = 5,		/* root areas */
	OWNER_GEOM = 6,
	OWNER_REPLICA = 7,
	OWNER_BAD = 8,		/* not to be used any more */
};

/*
 * Replicas.  A region is a run of sectors inside one track that holds copies of
 * file blocks: an OWNER item of kind OWNER_REPLICA and a REGION item at the
 * same address.  Its COPIES items say in order of address what was copied
 * there.  A copy counts only while the original's REPLICA item points into the
 * region and names its number, which is never used again: so a region is
 * dropped with its OWNER and REGION items alone, and REPLICA items that name
 * it mean nothing from then on.
 */
struct region_item {
	le64 number;		/* random number of the region, not 0 */
	le32 sectors;		/* multiple of 8, as the OWNER item says */
	le32 uses;		/* reads that it had served when this was
				 * written */
	le64 used_seconds;	/* time of the last of these, since 1970; 0:
				 * never */
	le64 made_seconds;
	le32 copies;		/* number of copies that were made in it */
};
static_assert(sizeof(struct region_item) == 36, "region_item");

/* Most sectors of a region: 32 MiB. */
#define TRAX_MAX_REGION_SECTORS (1u << 16)

/* Copies lie back to back from the address of the item on. */
struct copy_entry {
	le64 ino;		/* inode number; 0: these sectors hold
				 * nothing */
	le64 block;
	le16 blocks;		/* 1 to 16 */
};
static_assert(sizeof(struct copy_entry) == 18, "copy_entry");
/* Most entries of an item, so that it fits TRAX_MAX_ITEM_BYTES. */
#define TRAX_COPIES_PER_ITEM 128u

/* Where a replica of blocks of one 64-KiB chunk of a file lies. */
struct replica_item {
	le64 addr;
	le64 region;		/* address of the region that holds it */
	le64 number;		/* number of that region */
	le16 blocks;		/* 1 to 16 blocks, all of one chunk */
};
static_assert(sizeof(struct replica_item) == 26, "replica_item");

#define TRAX_MAX_REPLICAS 4u	/* most replicas of one block */

/* Key offset of the k-th copy of blocks that begin at `block`. */
static inline uint64_t replica_off(uint64_t block, unsigned k)
{
	return block * TRAX_MAX_REPLICAS + k;
}

/* Damage that was found. Its number is one more than the last and is never used
 * again. */
struct error_item {
	le64 ino;		/* inode number of the file; 0: the damage is in
				 * a node of the tree */
	le64 off;		/* offset in the file, in bytes */
	le64 addr;		/* address of the damage on the device */
	le32 sectors;
	uint8_t what;		/* ERROR_* */
	uint8_t healed;		/* the content was found elsewhere and is whole
				 * again */
	le64 seconds;		/* when it was found, in seconds since 1970 */
};
static_assert(sizeof(struct error_item) == 38, "error_item");

/* How far the scrub is: one item with off 0, which is advice only. The disk is
 * divided into `bands` equal parts, a multiple of 128 sectors each. Behind the
 * struct each band has a le32: how many of its sectors, in units of 128, have
 * been read from its beginning; all ones: all of them. */
struct scrub_item {
	uint8_t version;	/* version of this item: 3 */
	uint8_t state;		/* SCRUB_* of scrub/scrub.h */
	le16 bands;		/* not 0 */
	le64 sectors;		/* sectors of the disk; on a disk of another
				 * size the pass begins anew */
	le64 done_sectors;	/* sectors read in this pass */
	le64 passes;		/* passes that have ended */
	le64 begun_seconds;	/* beginning of this pass, since 1970; 0: there
				 * is none */
	le64 ended_seconds;	/* end of the last pass, since 1970 */
};
static_assert(sizeof(struct scrub_item) == 44, "scrub_item");

/* What cleaning has done: one item, off 0, which is advice only.  Behind the
 * struct are `months` of clean_month: sectors written while the file system was
 * less than 30 days old, then less than 60, and so on; the last one holds the
 * rest. */
struct clean_item {
	uint8_t version;	/* version of this item: 1 */
	uint8_t paused;		/* cleaning is paused */
	le16 months;		/* at most CLEAN_MONTHS */
	le64 begun_seconds;	/* time of the first mount, in seconds since
				 * 1970 */
	le64 tracks;		/* tracks emptied */
};
static_assert(sizeof(struct clean_item) == 20, "clean_item");
#define CLEAN_MONTHS 24u	/* Months that are counted. */
struct clean_month {
	le64 data_sectors;	/* sectors written for users */
	/* sectors read and written to move data */
	le64 read_sectors, written_sectors;
};
static_assert(sizeof(struct clean_month) == 24, "clean_month");

enum error_what {
	ERROR_READ = 1,		/* the drive could not read the sectors */
	ERROR_CSUM = 2,		/* the sectors were read, but with another
				 * checksum */
	ERROR_LOST = 3,		/* the data could be written nowhere; addr is
				 * 0 */
};

/* Work that takes several steps or goes on after a crash. */
struct orphan_item {
	uint8_t what;		/* ORPHAN_* */
	le64 size;		/* ORPHAN_TRUNCATE: the number of bytes to
				 * keep */
};
static_assert(sizeof(struct orphan_item) == 9, "orphan_item");

/* A structure that the superblock points at is being moved.  Both places have
 * owners until the superblocks name the one that counts; then the other one
 * loses its owner. */
struct move_item {
	le64 from;		/* address of the old place; 0: there was
				 * none */
	le64 from_sectors;
	le64 to;
	le64 to_sectors;
};
static_assert(sizeof(struct move_item) == 32, "move_item");

enum orphan_what {
	ORPHAN_DELETE = 1,	/* nlink is 0: delete when nobody has it open */
	ORPHAN_TRUNCATE = 2,	/* items beyond size are to be dropped */
};

/* Checks a value by the rules of its key's type. */
const char *item_verify(struct key key, const void *value, size_t bytes);

/* ---- Root areas ---- */

#define TRAX_ROOT_MAGIC 0x3152465841525400ull

/*
 * A recovery or repair writes its first root with a generation this much higher
 * than that of the last root that counts. The log may hold records of the two
 * generations above the last root (the next root was being written, and the one
 * after it had begun), and no record may seem to follow a newer root that is
 * lost. The number is odd, so that the root goes to the other area.
 */
#define TRAX_ROOT_GEN_STEP 3u

/*
 * An area holds one root block (4096 bytes) and, right behind it, the payload:
 * the slot map, then the group table.  Both copies of an area are the same but
 * for their own sector.
 */
struct root {			/* a root, decoded */
	uint64_t gen;
	uint64_t epoch;		/* random number, new at each mount */
	bool clean;		/* the file system was unmounted, so there is no
				 * log to read */
	struct node_ptr tree;
	unsigned level;		/* level of the tree's root node */
	uint64_t cut_seq;	/* log records up to this one are in the tree */
	uint64_t cut_chain;	/* chain value of record cut_seq */
	uint64_t tail_seq; /* oldest record with data that may not be
			    * destaged */
	uint64_t next_ino_seq;		/* next sequence for an inode number;
					 * TRAX_INO_SEQS: none is left */
	uint64_t next_dirgroup;		/* next directory group; it counts on
					 * beyond TRAX_DIRGROUPS */
	uint64_t inodes;	/* number of inodes in use */
	int64_t wall_ns;	/* wall-clock time of the checkpoint */
	uint32_t slotmap_bytes;
	uint32_t group_bytes;
	uint64_t payload_csum;	/* checksum of slot map and group table
				 * together */
};

void root_encode(const struct root *root, const uint8_t uuid[16],
		 uint64_t sector, void *buf);
const char *root_decode(const void *buf, const uint8_t uuid[16],
			uint64_t sector, struct root *root);
/* Is this block of a root area all zeros: was no root written to it? */
bool root_is_blank(const uint8_t *block);

/* The slot map has one of these for each node track, in order of address.
 * Behind each is a bitmap of (slots + 7) / 8 bytes, lowest bit first: bit i is
 * set if this tree uses slot i. */
struct slot_track {
	le64 addr;		/* first sector of slot 0 */
	le16 slots;
};
static_assert(sizeof(struct slot_track) == 10, "slot_track");

/* The group table has one of these for each 1-GiB group. */
struct group_item {
	le32 free;		/* sectors without an owner */
	le32 largest;		/* no run of sectors without an owner is
				 * longer; groups with less than what is wanted
				 * are not looked at */
};
static_assert(sizeof(struct group_item) == 8, "group_item");

/* ---- Log records ---- */

#define TRAX_LOG_MAGIC 0x4c585254u	/* "TRXL" */

/* A record's length is a multiple of super_record_unit, and it is aligned to
 * that. */
struct log_header {
	le32 magic;
	le32 bytes;		/* length of the whole record with its
				 * padding */
	le32 payload;		/* bytes of entries behind this header */
	le32 flags;		/* LOG_MIRROR, LOG_PARITY */
	uint8_t uuid[16];
	le64 epoch, gen, seq;
	le64 addr;		/* the record's own address */
	le64 original;		/* of a mirror: where the original is; else 0 */
	le64 acked;		/* all records up to here were durable when
				   this one was sent */
	le64 prev;		/* chain value of record seq - 1 */
	le64 chain;		/* csum of le64 epoch, seq, prev and csum of the
				   payload: the same in the mirror */
	le64 csum;		/* checksum of this header, with 0 in this
				 * field; `chain` covers the payload */
};
static_assert(sizeof(struct log_header) == 104, "log_header");

#define LOG_MIRROR 0x1u		/* Flags of a header. */
#define LOG_PARITY 0x2u		/* the last unit is parity; mirrors have none */

/* Entries, back to back; a record is applied whole or not at all. */
enum log_entry_type {
	LOG_PUT = 1,		/* disk_key, le16 bytes, value */
	LOG_DEL = 2,		/* disk_key */
	LOG_DEL_RANGE = 3,	/* disk_key first, disk_key last (inclusive) */
	LOG_DATA = 4,		/* le64 ino, le64 block, le16 n, n le64
				 * checksums, n blocks of data */
};

struct log_entry {		/* decoded; its pointers point into the
				 * record */
	enum log_entry_type type;
	struct key key, last;
	const void *value;	/* PUT: value; DATA: the blocks */
	size_t bytes;
	uint64_t ino, block;
	unsigned n;
	const le64 *sums;
};

/* Goes over the entries of a record; *off starts at 0.  Returns NULL with
 * entry->type = 0 at the end. */
const char *log_entry_next(const void *payload, size_t bytes, size_t *off,
			   struct log_entry *entry);

/* These append an entry to buf and return the number of bytes written. */
size_t log_entry_put(void *buf, struct key key, const void *value,
		     size_t bytes);
size_t log_entry_del(void *buf, struct key key);
size_t log_entry_del_range(void *buf, struct key first, struct key last);
/* Writes the header of a DATA entry; the caller adds the n blocks behind it. */
size_t log_entry_data(void *buf, uint64_t ino, uint64_t block, unsigned n,
		      const uint64_t *sums);

/* The chain value of a record with this payload. */
uint64_t log_chain(uint64_t epoch, uint64_t seq, uint64_t prev,
		   const void *payload, size_t bytes);

/* Sets csum, which is the last field to be set. */
void log_header_seal(struct log_header *header);

/* Checks the header alone of a record that was read at `sector`. */
const char *log_header_check(const void *record, size_t available,
			     const uint8_t uuid[16], uint64_t sector);
/* Checks header and checksums of a record that was read at `sector`; it need
 * not know the log's unit. */
const char *log_header_verify(const void *record, size_t available,
			      const uint8_t uuid[16], uint64_t sector);

/* Makes the unit of parity of the `bytes` of whole units before it. */
void log_parity(const void *record, size_t bytes, size_t unit, void *parity);

/*
 * Rebuilds in `out` (TRAX_MAX_RECORD_BYTES) a record at `sector` that
 * log_header_verify refuses, if at most one of its units is bad.  *budget is
 * the number of bytes that may be hashed for that, and is reduced by those that
 * were.
 */
bool log_record_rebuild(const void *record, size_t available, size_t unit,
			const uint8_t uuid[16], uint64_t sector, void *out,
			uint64_t *budget);

#endif

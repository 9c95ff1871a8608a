/*
 * check_internal.h - what the parts of the check share.
 *
 *   check.c    the order of things             problem.c  the table of problems
 *   check_io.c  reads and writes           super_root.c  superblocks and roots
 *   tree_walk.c  nodes                           slot_map.c  node slots
 *   mirrors.c  second copies of nodes
 *   owners.c   owners, extents, free space     inodes.c   items of one inode
 *   file_blocks.c  extents, checksums      dirs.c     names in a directory
 *   links.c    names and inodes                data_sums.c  file data
 *   replica_scan.c  replicas
 *
 * Memory that cannot be had and devices that fail are remembered in check->rc,
 * the first one; whoever goes on for long looks there.
 */
#ifndef TRAX_SCAN_CHECK_INTERNAL_H
#define TRAX_SCAN_CHECK_INTERNAL_H

#include "check/check.h"
#include "check/scan/problem.h"
#include "check/scan/vec.h"
#include "diskmodel/geom.h"
#include "format/format.h"

/* A range of sectors on the device, and what owns it. */
struct claim {
	uint64_t sector, n;
	uint64_t ino, off;	/* OWNER_DATA, extents */
	uint8_t kind;		/* OWNER_* */
	bool extent;		/* read from an extent of the file; otherwise
				 * from an owner item */
	bool matched;
};

/* One entry for each kind of structure that can be relocated. */
#define OWNERS_MOVES 2u

struct owners_move {
	uint8_t kind;
	uint64_t from, from_n, to, to_n;
};

struct owners {
	uint32_t groups;
	uint64_t *sum;		/* by group: sum over owners minus sum over
				 * extents */
	uint32_t *owned;	/* by group: number of sectors */
	uint64_t end;		/* end of the owners so far */
	uint64_t last;		/* begin of the last owner */
	struct vec fixed;	/* struct claim, all that is not data, in
				 * order */
	struct vec exact;	/* struct claim, of the groups that differ */
	struct owners_move move[OWNERS_MOVES];
	unsigned moves_n;
};

/* Blocks of a file that have been written, in order, with a cursor. */
struct written {
	struct vec ranges;	/* struct block_range */
	size_t at;
};

struct orphan {
	uint64_t ino;
	uint64_t size;
	bool delete;
	bool used;
};

/* The inode whose items are being read. */
struct inode_state {
	uint64_t ino;		/* inode number; 0: none */
	bool have;		/* its INODE item has been read */
	struct inode_item item;
	struct orphan *orphan;	/* its orphan item; NULL: none */
	uint32_t seen;		/* bit set: an item of this type has been
				 * read */
	size_t inline_bytes;
	bool inline_zero;	/* its inline data holds a zero byte */

	uint32_t xattrs;
	uint64_t xattr_next;	/* offset of the piece expected next */
	uint32_t xattr_pieces;	/* number of pieces still to come */
	uint64_t xattr_left;	/* bytes still to come */
	uint32_t xattr_flags;	/* INODE_HAS_* flags that the attributes ask
				 * for */

	uint64_t extent_end;	/* end of the last extent, in file sectors */
	uint64_t sectors;
	struct written written;
	uint64_t summed_to;	/* blocks below this one have been compared */

	uint64_t names, entries, subdirs, next_seq;
	uint64_t pair_sum;	/* sum over names minus sum over entries */
};

struct inodes {
	struct inode_state now;
	struct vec orphans;	/* struct orphan, by inode number */
	size_t orphan_at;
	uint64_t max_seq, max_dirgroup;
	bool have_root;
};

/* One name of a directory, as a NAME or an ENTRY item has it. */
struct name_seen {
	uint64_t dir, ino, seq, hash;
	uint8_t type, bytes;
	bool entry;
	char name[TRAX_MAX_NAME_BYTES];
};

struct dirs {
	struct vec differ;	/* uint64_t, directories whose sums differ */
	struct vec exact;	/* struct name_seen */
};

struct dir_parent {
	uint64_t ino, parent;
	uint32_t mark;
};

struct link_seen {
	uint64_t ino;
	uint64_t dir;		/* of an entry: its directory; of an inode: its
				 * parent */
	uint64_t seq;
	uint32_t nlink;
	uint8_t type;
	bool entry;
};

/* Number of sums over links, 32 KiB in all.  One wrong link makes the second
 * walk collect one part in this many of all inodes. */
#define LINK_SUMS 4096u

struct links {
	uint64_t sum[LINK_SUMS];
	struct vec dirs;	/* struct dir_parent, by inode number */
	struct vec exact;	/* struct link_seen */
	bool differ;
};

/* A range of keys whose nodes cannot be read. */
struct lost_range {
	struct key low, high;
	uint64_t leaf;		/* sector of the leaf that had them; 0: a node
				 * above it is lost */
};

/* A replica that counts. */
struct copy_seen {
	uint64_t ino, block, sector;
	unsigned blocks;
};

struct copies {
	struct vec regions;
	struct vec list;	/* struct copy_seen, in order of file, block */
	size_t at;		/* cursor of data_sums.c */
};

struct paths {
	struct vec asked;	/* uint64_t, inodes that problems name */
	struct vec kept;	/* uint64_t, inodes for the pass after the
				 * repair */
	struct vec sorted;	/* struct named (paths.c) */
};

struct data_check;
struct salvage;
struct log_scan_state;
struct item_set;

struct check {
	struct env *env;
	struct disk *disk;
	struct check_options options;
	struct check_result *result;
	int rc;
	bool again;		/* this is the check after a repair */

	/* super_root.c */
	struct super super;
	uint64_t fsid;
	struct root root;
	unsigned area;		/* the area with the root */
	bool have_root;
	bool roots_doubted;	/* a copy of a root is bad, and not blank */
	uint64_t newest_gen;	/* of the records in the log; 0: not read */
	uint8_t *payload;	/* NULL: it cannot be trusted */
	struct geom *geom;

	/* problem.c */
	bool rewrite;		/* a node cannot be written at its old place */
	uint64_t problem_found[PROBLEMS];
	bool problem_repair[PROBLEMS];
	uint64_t found, left;

	struct vec nodes;	/* uint64_t, sectors of both copies of each
				 * node */
	struct vec mirrors;	/* mirrors.c */
	struct vec lost;	/* struct lost_range */
	uint64_t nodes_total;	/* number of nodes expected, for progress */
	struct owners owners;
	struct inodes inodes;
	struct dirs dirs;
	struct links links;
	struct copies copies;
	struct paths paths;
	struct data_check *data;	/* data_sums.c, while it runs */
	struct item_set *set;	/* of a repair: the set that collects items */
	struct salvage *salvage;
	struct log_scan_state *logread;	/* of a repair: the state of reading the
					 * log; NULL: not read */
};

/* Remembers the first failure; returns rc. */
int check_fail(struct check *check, int rc);
/* Like vec_add; remembers that memory is out. */
void *check_add(struct check *check, struct vec *vec);
void check_progress(struct check *check, const char *step, uint64_t done,
		    uint64_t total);

/* ---- check_io.c ---- */

struct device_read {
	uint64_t sector;
	uint32_t sectors;
	void *buf;		/* the buffer, aligned to 4096 */
	int rc;
};

void *device_buffer(struct check *check, size_t bytes);	/* aligned; free() */
/* Reads any length. -ERANGE: it lies outside the device, or against its
 * alignment. */
int device_read(struct check *check, uint64_t sector, uint64_t sectors,
		void *buf);
/* Refused unless a repair is allowed. */
int device_write(struct check *check, uint64_t sector, uint64_t sectors,
		 const void *buf);
/* Has a write failed because of its place, so that another place may do? */
bool device_place_failed(int rc);
int device_flush(struct check *check);
/* Reads all of them in the order of addresses, for which it sorts `reads`. Each
 * has a result of its own. */
void device_read_many(struct check *check, struct device_read *reads,
		      size_t n);

/* ---- super_root.c ---- */

int super_root_load_super(struct check *check);
/* The best root, without any checks of what it points to; -ENOENT: there is
 * none. */
int super_root_best_root(struct check *check, struct root *root);
int super_root_load_root(struct check *check);
/* Writes a root as given, with this payload, to both copies of an area. A copy
 * that cannot be written is left to the next check. */
int super_root_write_root(struct check *check, unsigned area,
		      const struct root *root, const void *payload);
void super_root_free(struct check *check);

/* ---- tree_walk.c ---- */

typedef void (*walk_item)(struct check *check, struct key key,
			  const void *value, size_t bytes);

/* Walks the tree of the root. `first`: this is the first walk, which counts and
 * reports. */
void walk_tree(struct check *check, bool first, walk_item item);
/* Calls back for each good item of a leaf; reports bad ones when `report` is
 * set. Returns NULL, or why the node as a whole cannot be trusted. */
const char *walk_leaf(struct check *check, const void *node, bool report,
		      walk_item item);

/* ---- mirrors.c ---- */

void mirrors_begin(struct check *check);
/* A good node was read; its mirror is still to be verified. */
void mirrors_note(struct check *check, const struct node_ptr *ptr);
/* Why a copy of a node cannot be trusted; NULL: it can. rc: result of its
 * read. */
const char *mirrors_damage(const void *node, int rc, uint64_t sum);
/* Reports a bad copy at `sector`, and writes the good one there. */
void mirrors_repair(struct check *check, uint64_t sector, const void *node,
		    const char *why);
/* Verifies all mirrors that were noted. */
void mirrors_verify(struct check *check);
void mirrors_free(struct check *check);

/* ---- slot_map.c: after the first walk ---- */

void slots_finish(struct check *check);

/* ---- owners.c ---- */

void owners_begin(struct check *check);
void owners_item(struct check *check, struct key key,
		 const struct owner_item *item);
/* A log track or the geometry is being relocated: both places may have
 * owners. */
void owners_move(struct check *check, struct key key,
		 const struct move_item *item);
void owners_extent(struct check *check, uint64_t ino, uint64_t off,
		   const struct extent_item *item);
/* Compares; true when a second walk is needed. */
bool owners_finish(struct check *check);
void owners_exact_item(struct check *check, struct key key, const void *value);
void owners_exact_finish(struct check *check);
void owners_free(struct check *check);

/* ---- inodes.c: items in key order ---- */

void inodes_item(struct check *check, struct key key, const void *value,
		 size_t bytes);
void inodes_finish(struct check *check);	/* called after the last item */
void inodes_free(struct check *check);

/* ---- file_blocks.c ---- */

struct block_range {
	uint64_t first, n;	/* blocks of a file */
};

/* Extents come in order; those that touch become one range. */
void blocks_written_add(struct check *check, struct written *written,
			uint64_t off, uint64_t sectors);
/* The first written block in [first, end), or end when there is none. The
 * cursor only moves forward. */
uint64_t blocks_written_next(struct written *written, uint64_t first,
			     uint64_t end);
/* The bits of the written blocks of the chunk that begins at `block`. */
uint16_t blocks_written_mask(struct written *written, uint64_t block);
void blocks_extent(struct check *check, struct inode_state *now,
		   uint64_t off, const struct extent_item *item);
void blocks_csum(struct check *check, struct inode_state *now, uint64_t block,
		 const void *value, size_t bytes);
void blocks_finish(struct check *check, struct inode_state *now);

/* ---- dirs.c ---- */

void dirs_names(struct check *check, struct inode_state *now, uint64_t hash,
		const void *value, size_t bytes);
void dirs_entry(struct check *check, struct inode_state *now, uint64_t seq,
		const void *value, size_t bytes);
void dirs_finish(struct check *check, struct inode_state *now);
bool dirs_need_exact(const struct check *check);
void dirs_exact_item(struct check *check, struct key key, const void *value,
		     size_t bytes);
void dirs_exact_finish(struct check *check);
void dirs_free(struct check *check);
/* The hash under which a name must lie. */
uint64_t dirs_hash(const struct check *check, const void *name, size_t bytes);

/* ---- links.c ---- */

void links_inode(struct check *check, const struct inode_state *now);
void links_entry(struct check *check, uint64_t dir,
		 const struct name_record *record);
/* Compares; true when a second walk is needed. */
bool links_finish(struct check *check);
void links_exact_item(struct check *check, struct key key, const void *value);
void links_exact_finish(struct check *check);
void links_free(struct check *check);
/* The parent that a directory names; the root when it names none. */
uint64_t links_parent(struct check *check, uint64_t dir);

/* ---- paths.c ---- */

void paths_init(struct check *check);
void paths_fini(struct check *check);
void paths_begin(struct check *check);
/* A problem names this inode (0: none). */
void paths_ask(struct check *check, uint64_t ino);
/* A repair names this inode: the pass after the repair looks up its path. */
void paths_keep(struct check *check, uint64_t ino);
/* Reports paths to options.named, after everything else. */
void paths_finish(struct check *check);
void paths_free(struct check *check);

/* ---- replica_scan.c ---- */

void copies_begin(struct check *check);
/* Handles REGION and COPIES items. */
void copies_system(struct check *check, struct key key, const void *value,
		   size_t bytes);
void copies_replica(struct check *check, const struct inode_state *now,
		    uint64_t off, const struct replica_item *item);
void copies_wrong(struct check *check, uint64_t ino, uint64_t block,
		  uint64_t sector, const char *why);
void copies_finish(struct check *check);
void copies_free(struct check *check);

/* ---- data_sums.c ---- */

void data_verify(struct check *check);

#endif

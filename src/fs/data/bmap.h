/*
 * bmap.h - extents and checksums of a file in the tree.
 */
#ifndef TRAX_DATA_BMAP_H
#define TRAX_DATA_BMAP_H

#include "fs/data/file_data.h"

struct extent {
	uint64_t off, n;	/* range of the file, in sectors */
	uint64_t addr;
	uint32_t flags;
};

/* Extents that one plan replaces and puts, at most.  A plan that would meet
 * more than BMAP_OLD / 2 covers fewer blocks (plan_room); each cut at a track's
 * end may add one to the new ones. */
#define BMAP_OLD 24
#define BMAP_NEW 32

/* A planned change of what [off, off + n) of a file is mapped to. */
struct bmap_plan {
	uint64_t off, n;	/* range of the file; bmap_probe may shorten it,
				 * to whole blocks */
	struct extent old[BMAP_OLD];
	unsigned old_n;
	struct extent new[BMAP_NEW];
	unsigned new_n;
};

/* Finds the extent that holds a sector of the file, or else the first one
 * behind it; -ENOENT. */
int bmap_extent(struct fs_txn *txn, uint64_t ino, uint64_t sector,
	       struct extent *extent);
/* Compares an extent of the file with the OWNER items of its sectors. -EUCLEAN,
 * reported: the OWNER item does not match, or another one has some of the
 * sectors. */
int bmap_verify_owner(struct fs_txn *txn, uint64_t ino,
		      const struct extent *extent);
/* Finds the last extent that begins before a sector of the file. */
int bmap_extent_before(struct fs_txn *txn, uint64_t ino, uint64_t sector,
		      struct extent *extent);
/*
 * Plans to map [off, off + n) to `added` (in order, their sum at least n;
 * added_n = 0: to nothing).  Looks up every key that bmap_apply will change.
 */
int bmap_probe(struct fs_txn *txn, uint64_t ino, uint64_t off, uint64_t n,
	      const struct extent *added, unsigned added_n,
	      struct bmap_plan *plan);
void bmap_apply(struct fs_txn *txn, uint64_t ino,
	       const struct bmap_plan *plan, struct inode_item *item);

/* A change of the checksums of blocks. */
struct bmap_sums {
	uint64_t first;
	unsigned n;
	/* Returns the checksum of block first + i; NULL: all are cleared. */
	uint32_t (*sum)(void *arg, unsigned i);
	void *arg;
};
/* Looks up the items (windows) that a change of checksums touches; errors are
 * those of tree_get. */
int bmap_sums_probe(struct fs_txn *txn, uint64_t ino,
		   const struct bmap_sums *sums);
void bmap_sums_apply(struct fs_txn *txn, struct file *file,
		    const struct bmap_sums *sums);
int bmap_window(struct fs_txn *txn, uint64_t ino, uint64_t window,
	       struct csum_window *out);

/* Bytes of log for a transaction that maps TXN_BLOCKS. */
#define BMAP_LOG_BYTES (24u << 10)

#endif

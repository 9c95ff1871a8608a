/*
 * lab.h - a small file system made of known items, and functions to damage it.
 *
 * Made without the file system's code: mkfs, then items put together here and
 * written by the check's own rebuild.
 */
#ifndef TRAX_RIG_LAB_H
#define TRAX_RIG_LAB_H

#include "check/repair/repair_internal.h"
#include "sim/sim.h"

#define LAB_SECTORS (64u << 11)	/* 64 MiB */

/* Inodes of the lab's files. */
enum {
	LAB_DIR = 2,		/* /d */
	LAB_BIG,		/* /d/big and /d/big2: 40 blocks, two extents */
	LAB_SMALL,		/* /d/small: inline, attributes */
	LAB_SYMLINK,		/* /d/symlink */
	LAB_SUB,		/* /d/sub */
	LAB_DEEP,		/* /d/sub/deep: 3 blocks */
	LAB_DEVICE,		/* /d/device */
	LAB_HOLES,		/* /d/holes: block 0, hole, block 300; more
				   room behind the end */
	LAB_MANY,		/* /many, with LAB_MANY_FILES in it */
	LAB_MANY_FIRST,
};
#define LAB_MANY_FILES 600u	/* names on several leaves */

struct lab {
	struct sim *sim;
	struct check_result result;	/* of check */
	struct check check;	/* as the parts of a repair want it */
	struct item_set set;		/* all items, when loaded */
};

/* Makes a lab with nothing but a root directory, as mkfs leaves it. */
void lab_init_empty(struct lab *lab);
void lab_init(struct lab *lab);
/* Begins with this content, a clone of that of another lab's disk. */
void lab_init_from(struct lab *lab, const struct media *content);
void lab_fini(struct lab *lab);

/* Reads all items into lab->set; lab_store writes what is changed there. */
void lab_load(struct lab *lab);
void lab_store(struct lab *lab);

/* Forgets the loaded set; nothing is written. */
void lab_unload(struct lab *lab);

/* Change the loaded set. */
void lab_put(struct lab *lab, struct key key, const void *value,
	     size_t bytes);
void lab_kill(struct lab *lab, struct key key);
/* Returns the value of an item, which may be changed in place. */
void *lab_value(struct lab *lab, struct key key);
struct inode_item *lab_inode(struct lab *lab, uint64_t ino);
/* The key of a name. */
struct key lab_name_key(struct lab *lab, uint64_t dir, const char *name);
/* Adds a name; counts in the inodes are not touched. */
void lab_add_name(struct lab *lab, uint64_t dir, uint64_t seq,
		  const char *name, uint64_t ino, uint8_t type);

/*
 * Changes a leaf as it is on the disk, and the checksums above it.  edit gets
 * the slot of the item with this key.
 */
void lab_edit(struct lab *lab, struct key key,
	      void (*edit)(struct node_header *leaf, struct leaf_slot *slot,
			   void *value));
/* The same for the leaf below child `index` (modulo their number) of the root
 * node. */
void lab_edit_leaf(struct lab *lab, unsigned index,
		   void (*edit)(struct node_header *leaf, void *arg),
		   void *arg);
/* The same for the root node (two copies). */
void lab_edit_root_node(struct lab *lab,
			void (*edit)(struct lab *lab,
				     struct node_header *node));
/* Gives the sectors of a leaf and of its mirror. */
void lab_leaf_sectors(struct lab *lab, struct key key, uint64_t sector[2]);

/* Changes the root and its payload, in both copies. */
void lab_edit_root(struct lab *lab,
		   void (*edit)(struct root *root, uint8_t *payload));

void lab_zero(struct lab *lab, uint64_t sector, uint64_t sectors);

/* Is this file of the loaded set as it was made?  Its names, size, data.
 * NULL, or what is not. */
const char *lab_whole(struct lab *lab, uint64_t ino);

#endif

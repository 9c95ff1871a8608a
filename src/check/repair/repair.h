/*
 * repair.h - what the parts of mending share.
 *
 * Each part reads the settled set, kills and puts items, and settles it.  What
 * the answers to the problems refused stays as it is; what follows from
 * another repair is always done.
 */
#ifndef TRAX_REPAIR_REPAIR_H
#define TRAX_REPAIR_REPAIR_H

#include <sys/stat.h>

#include "check/repair/repair_internal.h"

/* It was found, and its repair was refused. */
static inline bool mend_refused(const struct check *check, enum problem problem)
{
	return check->problem_found[problem] &&
	       !check->problem_repair[problem];
}

static inline int mend_put_inode(struct set *set, uint64_t ino,
				 const struct inode_item *item)
{
	return set_put(set, key_make(ino, ITEM_INODE, 0), item, sizeof(*item));
}

/* false: there is none. */
static inline bool mend_get_inode(const struct set *set, uint64_t ino,
				  struct inode_item *item)
{
	const struct set_item *found = set_find(set,
						key_make(ino, ITEM_INODE, 0));

	if (found)
		*item = *(const struct inode_item *)set_value(set, found);
	return found != NULL;
}

/* A new inode of this mode, owned by root, made now. */
void mend_new_inode(struct check *check, uint32_t mode,
		    struct inode_item *item);

/* Lost extents of which owners are left. */
int mend_strays(struct check *check, struct set *set);

/* Extents that lie outside the device or on something else. */
int mend_shared(struct check *check, struct set *set);

/* Items of each inode: type, attributes, extents, checksums, sizes, counts. */
int mend_files(struct check *check, struct set *set);

/* Names, links, directories, orphans, lost+found. */
int mend_names(struct check *check, struct set *set);

/* Reads a block of a file by the settled set; -ENODATA: it is not mapped. */
int mend_read_block(struct check *check, const struct set *set, uint64_t ino,
		    uint64_t block, void *buf);
/* The same by the set as it was settled, whatever has been killed since. */
int mend_read_block_before(struct check *check, const struct set *set,
			   uint64_t ino, uint64_t block, void *buf);

#endif

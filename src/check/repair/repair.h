/*
 * repair.h - what the parts of repairing share.
 *
 * Each part reads the settled set, kills and puts items, and settles it.  What
 * the answers to the problems refused stays as it is; what follows from
 * another repair is always done.
 */
#ifndef TRAX_REPAIR_REPAIR_H
#define TRAX_REPAIR_REPAIR_H

#include <sys/stat.h>

#include "check/repair/repair_internal.h"

/* The problem was found, and its repair was refused. */
static inline bool repair_refused(const struct check *check,
				  enum problem problem)
{
	return check->problem_found[problem] &&
	       !check->problem_repair[problem];
}

static inline int repair_put_inode(struct item_set *set, uint64_t ino,
				 const struct inode_item *item)
{
	return item_set_put(set, key_make(ino, ITEM_INODE, 0), item,
			    sizeof(*item));
}

/* Reads an inode item; false: there is none. */
static inline bool repair_get_inode(const struct item_set *set, uint64_t ino,
				  struct inode_item *item)
{
	const struct item_set_item *found = item_set_find(set,
						key_make(ino, ITEM_INODE, 0));

	if (found)
		*item = *(const struct inode_item *)item_set_value(set, found);
	return found != NULL;
}

/* Fills in a new inode with this mode, owned by root, with the present time. */
void repair_new_inode(struct check *check, uint32_t mode,
		    struct inode_item *item);

/* Restores lost extents whose owners are left. */
int repair_strays(struct check *check, struct item_set *set);

/* Resolves extents that lie outside the device or share sectors. */
int repair_shared(struct check *check, struct item_set *set);

/* Repairs the items of each inode: type, attributes, extents, checksums, sizes,
 * counts. */
int repair_files(struct check *check, struct item_set *set);

/* Repairs names, links, directories, orphans and lost+found. */
int repair_names(struct check *check, struct item_set *set);

/* Reads a block of a file as the set maps it; -ENODATA: it is not mapped. */
int repair_read_block(struct check *check, const struct item_set *set,
		      uint64_t ino, uint64_t block, void *buf);

#endif

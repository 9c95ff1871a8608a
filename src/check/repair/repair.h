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

/* It was found, and its repair was refused. */
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

/* false: there is none. */
static inline bool repair_get_inode(const struct item_set *set, uint64_t ino,
				  struct inode_item *item)
{
	const struct item_set_item *found = item_set_find(set,
						key_make(ino, ITEM_INODE, 0));

	if (found)
		*item = *(const struct inode_item *)item_set_value(set, found);
	return found != NULL;
}

/* A new inode of this mode, owned by root, made now. */
void repair_new_inode(struct check *check, uint32_t mode,
		    struct inode_item *item);

/* Lost extents of which owners are left. */
int repair_strays(struct check *check, struct item_set *set);

/* Extents that lie outside the device or on something else. */
int repair_shared(struct check *check, struct item_set *set);

/* Items of each inode: type, attributes, extents, checksums, sizes, counts. */
int repair_files(struct check *check, struct item_set *set);

/* Names, links, directories, orphans, lost+found. */
int repair_names(struct check *check, struct item_set *set);

/* Reads a block of a file by the settled set; -ENODATA: it is not mapped. */
int repair_read_block(struct check *check, const struct item_set *set,
		      uint64_t ino, uint64_t block, void *buf);

#endif

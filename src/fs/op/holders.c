/*
 * holders.c - references and handles that outlive a close: see fs.h.
 */
#include "fs/op/fs_internal.h"

#include <errno.h>
#include <stdlib.h>

struct holder {
	uint64_t ino, refs;
	uint32_t opens;
};

struct fs_holders {
	uint64_t handles;	/* open file descriptions of the process */
	size_t n;
	struct holder holder[];
};

int fs_holders_take(struct fs *fs, struct fs_holders **out)
{
	struct fs_holders *holders;
	struct vnode *vnode;
	size_t pos = 0;
	uint64_t ino;

	holders = malloc(sizeof(*holders) + hashmap_count(fs->vnodes) *
						    sizeof(struct holder));
	if (!holders)
		return -ENOMEM;
	holders->handles = fs->handles;
	holders->n = 0;
	while ((vnode = hashmap_next(fs->vnodes, &pos, &ino))) {
		if (!vnode->refs && !vnode->opens)
			continue;
		if (vnode->unlinked) {
			free(holders);
			return -EBUSY;
		}
		holders->holder[holders->n++] = (struct holder){
			vnode->ino, vnode->refs, vnode->opens,
		};
	}
	*out = holders;
	return 0;
}

int fs_holders_give(struct fs *fs, const struct fs_holders *holders)
{
	size_t i;

	fs->handles = holders->handles;
	for (i = 0; i < holders->n; i++) {
		const struct holder *holder = &holders->holder[i];
		struct vnode *vnode = vnode_get(fs, holder->ino);

		if (!vnode)
			return -ENOMEM;
		vnode->refs = holder->refs;
		if (holder->opens)
			vnode_opened(fs, vnode);
		vnode->opens = holder->opens;
	}
	return 0;
}

void fs_holders_free(struct fs_holders *holders)
{
	free(holders);
}

/*
 * unwritten.c - see unwritten.h.
 */
#include "fs/data/unwritten.h"

#include "base/msg.h"
#include "base/units.h"
#include "fs/op/op.h"

/* How much is left to write is logged when somebody has waited this long, as
 * nobody wonders before, and then each time that the second time has passed. */
#define MESSAGE_FIRST_NS NS_PER_SECOND
#define MESSAGE_NEXT_NS (10 * NS_PER_SECOND)

void unwritten_wait(struct files *files)
{
	if (!files->unwritten.waiting++)
		files->unwritten.message_ns = env_now_ns(files->fs->env) +
					  MESSAGE_FIRST_NS;
}

void unwritten_over(struct files *files)
{
	files->unwritten.waiting--;
}

uint64_t unwritten_run(const struct fs *fs, uint64_t now_ns)
{
	struct files *files = fs->files;
	size_t blocks = files->dirty_count;
	struct tree_stats tree;

	if (!files->unwritten.waiting)
		return UINT64_MAX;
	if (now_ns < files->unwritten.message_ns)
		return files->unwritten.message_ns;
	files->unwritten.message_ns = now_ns + MESSAGE_NEXT_NS;
	tree_get_stats(fs->tree, &tree);
	/* A sync leaves logged data in the log, and the tree as it is. */
	if (fs->closing)
		msg_info("%s: being closed, %.1f MiB of data and %.1f MiB of "
			 "metadata are left to write", fs->disk->name,
			 (double)(blocks + files->pinned_count) *
			 TRAX_BLOCK_BYTES / (1 << 20),
			 (double)tree.nodes_dirty * TRAX_NODE_BYTES /
			 (1 << 20));
	else
		msg_info("%s: a sync or unmount waits, %.1f MiB of data are "
			 "left to write", fs->disk->name,
			 (double)blocks * TRAX_BLOCK_BYTES / (1 << 20));
	return files->unwritten.message_ns;
}

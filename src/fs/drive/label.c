/*
 * label.c - see label.h.  The superblocks have one writer at a time: as long as
 * fs->label is set neither a profile is saved nor a track moved.
 */
#include "fs/drive/label.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/drive/profile_save.h"
#include "fs/drive/relocate.h"
#include "fs/drive/super_write.h"

#define BUSY_NS 100000000ull	/* before another look at who writes them */

struct label_change {
	struct fs_op *op;
	struct super_write supers;
	bool writing;
};

static void label_over(struct fs *fs, int rc)
{
	struct label_change *change = fs->label;
	struct fs_op *op = change->op;

	fs->label = NULL;
	super_write_fini(&change->supers);
	free(change);
	fs_answer(fs, op, rc);
}

static void label_written(void *arg, int rc)
{
	label_over(arg, rc);
}

void label_op(struct fs *fs, struct fs_op *op)
{
	struct label_change *change;
	int rc = 0;

	if (strlen(op->name) >= sizeof(tree_super(fs->tree)->label))
		rc = -EINVAL;
	else if (fs->label)
		rc = -EBUSY;
	change = rc ? NULL : calloc(1, sizeof(*change));
	if (!rc && !change)
		rc = -ENOMEM;
	if (!rc)
		rc = super_write_init(&change->supers, fs, label_written, fs);
	if (rc) {
		free(change);
		fs_answer(fs, op, rc);
		return;
	}
	change->op = op;
	fs->label = change;
}

uint64_t label_run(struct fs *fs, uint64_t now_ns)
{
	struct label_change *change = fs->label;
	struct super next;
	int rc;

	if (!change || change->writing)
		return UINT64_MAX;
	if (tree_failed(fs->tree)) {
		label_over(fs, -EROFS);
		return now_ns;
	}
	if (!profile_save_idle(fs->profile_save) ||
	    !relocate_idle(fs->relocate))
		return now_ns + BUSY_NS;
	next = *tree_super(fs->tree);
	memset(next.label, 0, sizeof(next.label));
	strcpy(next.label, change->op->name);
	change->writing = true;
	rc = super_write_start(&change->supers, &next);
	if (rc)
		label_over(fs, rc);
	return UINT64_MAX;
}

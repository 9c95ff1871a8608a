/*
 * super_edit.c - see super_edit.h.  The superblocks have one writer at a time:
 * while fs->super_edit is set no profile is saved.
 */
#include "fs/drive/super_edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "fs/drive/profile_save.h"
#include "fs/drive/super_write.h"

/* While the superblocks are being written, a change of them is tried again
 * after this time. */
#define BUSY_NS (100 * NS_PER_MS)

struct super_edit {
	struct fs_op *op;
	struct super_write supers;
	bool writing;
};

static void super_edit_over(struct fs *fs, int rc)
{
	struct super_edit *edit = fs->super_edit;
	struct fs_op *op = edit->op;

	fs->super_edit = NULL;
	super_write_fini(&edit->supers);
	free(edit);
	fs_answer(fs, op, rc);
}

static void super_edit_written(void *arg, int rc)
{
	super_edit_over(arg, rc);
}

void super_edit_op(struct fs *fs, struct fs_op *op)
{
	struct super_edit *edit;
	int rc = 0;

	if (op->type == FS_SET_LABEL &&
	    strlen(op->name) >= sizeof(tree_super(fs->tree)->label))
		rc = -EINVAL;
	else if (fs->super_edit)
		rc = -EBUSY;
	edit = rc ? NULL : calloc(1, sizeof(*edit));
	if (!rc && !edit)
		rc = -ENOMEM;
	if (!rc)
		rc = super_write_init(&edit->supers, fs, super_edit_written,
				      fs);
	if (rc) {
		free(edit);
		fs_answer(fs, op, rc);
		return;
	}
	edit->op = op;
	fs->super_edit = edit;
}

static void super_edit_apply(const struct fs_op *op, struct super *next)
{
	if (op->type == FS_SET_UUID) {
		memcpy(next->shown_uuid, op->data, sizeof(next->shown_uuid));
		return;
	}
	memset(next->label, 0, sizeof(next->label));
	strcpy(next->label, op->name);
}

uint64_t super_edit_run(struct fs *fs, uint64_t now_ns)
{
	struct super_edit *edit = fs->super_edit;
	struct super next;
	int rc;

	if (!edit || edit->writing)
		return UINT64_MAX;
	if (tree_failed(fs->tree)) {
		super_edit_over(fs, -EROFS);
		return now_ns;
	}
	if (!profile_save_idle(fs->profile_save))
		return now_ns + BUSY_NS;
	next = *tree_super(fs->tree);
	super_edit_apply(edit->op, &next);
	edit->writing = true;
	rc = super_write_start(&edit->supers, &next);
	if (rc)
		super_edit_over(fs, rc);
	return UINT64_MAX;
}

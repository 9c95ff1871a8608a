/*
 * scan_slow.c - reads data as a user would: inline files, and blocks whose
 * place did not hold content that matches the checksum.  They may be in the log
 * only, have moved, or be damaged; a user's read handles all of these.
 */
#include "scan/scan_internal.h"

#include <errno.h>
#include <stdlib.h>

void scan_slow_add(struct scan_file *file, struct scan_run *run, unsigned block)
{
	struct scan_slow *slow = calloc(1, sizeof(*slow));

	if (!slow) {
		scan_file_touch(file, -ENOMEM);
		return;
	}
	slow->file = file;
	slow->run = run;
	slow->block = block;
	list_add(&file->scan->slow, &slow->link);
	file->slow++;
}

/* An inline file is a record of its own. */
static int give_inline(struct scan_file *file, const struct fs_op *op)
{
	struct scan_record head = {
		.type = op->rc ? SCAN_ERROR : SCAN_DATA,
		.error = op->rc,
		.ino = file->ino,
		.bytes = op->rc ? file->size : op->result,
	};

	if (scan_give(file->scan, &head, op->buffer))
		return -ENOMEM;
	file->sent = true;
	if (!op->rc)
		file->scan->given_bytes += head.bytes;
	return 0;
}

static void slow_done(struct fs_op *op)
{
	struct file_scan *scan = op->owner;
	struct scan_slow *slow = scan->slow_read.at;
	struct scan_file *file;
	int rc;

	scan->slow_read.busy = false;
	if (!slow)
		return;
	scan->slow_read.at = NULL;
	file = slow->file;
	if (slow->run)
		rc = scan_give_blocks(slow->run, slow->block, 1,
				      op->rc ? NULL : op->buffer);
	else
		rc = give_inline(file, op);
	if (rc) {
		list_add(&scan->slow, &slow->link);
		return;
	}
	free(slow);
	file->slow--;
	scan_file_touch(file, 0);
	scan_sweep(scan);
}

void scan_slow_next(struct file_scan *scan)
{
	struct scan_slow *slow =
		list_first(&scan->slow, struct scan_slow, link);
	struct fs_op *op = &scan->slow_read.op;
	struct fs *fs = scan->scans->fs;

	if (!slow || scan->slow_read.busy || scan->paused ||
	    !scan_give_room(scan))
		return;
	list_del(&slow->link);
	scan->slow_read.busy = true;
	scan->slow_read.at = slow;
	*op = (struct fs_op){
		.type = FS_READ,
		.done = slow_done,
		.owner = scan,
		.ino = slow->file->ino,
		.size = BLOCK_BYTES,
		.buffer = scan->slow_read.data,
	};
	if (slow->run)
		op->offset = (slow->run->first + slow->block) * BLOCK_BYTES;
	/* Nobody has accessed the file: its access time stays. */
	op_begin(fs, op);
	file_read(fs, op);
}

void scan_slow_drop(struct file_scan *scan, const struct scan_file *file)
{
	struct list *pos, *next;
	struct scan_slow *slow;

	list_for_each_safe(pos, next, &scan->slow) {
		slow = list_entry(pos, struct scan_slow, link);
		if (slow->file != file)
			continue;
		list_del(&slow->link);
		free(slow);
	}
	slow = scan->slow_read.at;
	if (slow && slow->file == file) {
		scan->slow_read.at = NULL;
		free(slow);
	}
}

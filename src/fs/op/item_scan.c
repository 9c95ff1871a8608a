/*
 * item_scan.c - see item_scan.h.  A scan takes several runs of a transaction,
 * each of as many items as its bounds allow.
 */
#include "fs/op/item_scan.h"

#include <errno.h>

#include "fs/op/fs_txn.h"
#include "fs/op/op.h"

struct item_scan {
	enum item_type type;
	int (*take)(struct fs *fs, const struct tree_item *item);
	uint64_t next;		/* offset of the key from which the scan goes
				 * on */
	bool over;
	int rc;
};

static int item_scan_run(struct fs_txn *txn)
{
	struct item_scan *scan = txn->state;
	struct tree_item item;
	int rc = 0;

	while (!rc && tree_txn_room(txn->tree_txn) >= TREE_SEEK_NODES) {
		rc = tree_seek_ge(txn->tree_txn,
				  key_make(0, scan->type, scan->next),
				  key_make(0, scan->type, UINT64_MAX), &item);
		if (rc == -ENOENT) {
			scan->over = true;
			return 0;
		}
		if (!rc)
			rc = scan->take(txn->fs, &item);
		if (!rc)
			scan->next = item.key.off + 1;
	}
	return rc;
}

static void item_scan_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct item_scan *scan = txn->state;

	(void)seq;
	scan->rc = rc;
	if (rc)
		scan->over = true;
	if (scan->over)
		fs_txn_finish(txn, rc);
	else
		fs_txn_restart(txn);
}

static const struct fs_txn_type item_scan_type = {
	.name = "scan items",
	.bounds = { .nodes = 16 },
	.stages = 16,
	.run = item_scan_run,
	.end = item_scan_end,
};

int item_scan(struct fs *fs, enum item_type type,
	      int (*take)(struct fs *fs, const struct tree_item *item))
{
	struct item_scan scan = { .type = type, .take = take };
	int rc = fs_txn_start(fs, &item_scan_type, NULL, &scan);

	if (!rc)
		rc = fs_wait(fs, &scan.over);
	return rc ? rc : scan.rc;
}

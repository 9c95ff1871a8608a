/*
 * rename.c - renaming.  Moves of directories must not make a cycle.
 *
 *   run: look everything up, decide -> [ a directory gets another parent ]
 *          -> get the right to move (one transaction at a time:
 *          fs->rename_locker) -> walk from the new parent up to the root,
 *          WALK_STEPS a transaction; if it meets the directory itself: -EINVAL
 *          -> run again: only the owner of the right changes parents, so the
 *          result of the walk is still true
 *   apply: names, parents, link counts; a replaced inode loses its name.
 *
 * A whiteout, by which overlayfs hides a name of the layer below, is a new
 * inode that gets the old name in the same transaction.
 */
#include "fs/name/names.h"

#include <errno.h>
#include <stdlib.h>

/* Directories that one transaction goes up, and the greatest depth: a deeper
 * directory is not moved (ELOOP). */
#define WALK_STEPS 8u
#define WALK_MAX 1024u

struct ancestor_walk {
	uint64_t at;		/* directory that is looked at next; 0: there is
				 * no walk */
	uint64_t against;	/* directory that the walk must not meet */
	unsigned depth;
	unsigned steps;		/* number of directories looked at in this
				 * transaction */
};

struct rename {
	struct ancestor_walk walk;
	uint64_t walked[2][2];	/* {from, against} of walks that met nothing */
};

/* Everything that one run has looked up. */
struct rename_lookup {
	struct dir_slot from, to;
	struct inode_item dirs[2];	/* the directory of `from`, and that of
					 * `to` if it is another */
	struct inode_item from_item, to_item;
	struct inode_item *from_dir, *to_dir;
	bool exchange, whiteout;
};

/* ---- The walk ---- */

static int rename_walk(struct fs_txn *txn, struct ancestor_walk *walk)
{
	struct inode_item item;
	int rc;

	if (txn->runs == 1)
		walk->steps = 0;
	while (walk->steps < WALK_STEPS && walk->at) {
		if (walk->at == walk->against)
			return -EINVAL;
		if (walk->at == TRAX_ROOT_INO) {
			walk->at = 0;
			break;
		}
		if (walk->depth >= WALK_MAX)
			return -ELOOP;
		rc = inode_get(txn, walk->at, &item);
		if (rc)
			return rc == -ENOENT ? -EUCLEAN : rc;
		walk->at = le64_get(item.parent);
		walk->steps++;
		walk->depth++;
	}
	fs_txn_restart(txn);
	return FS_TXN_WAIT;
}

/* Has this walk been made?  If not it is made next. */
static bool rename_walked(struct rename *rename, unsigned which, uint64_t from,
			  uint64_t against)
{
	uint64_t *walked = rename->walked[which];

	if (walked[0] == from && walked[1] == against)
		return true;
	walked[0] = from;
	walked[1] = against;
	rename->walk = (struct ancestor_walk){ .at = from, .against = against };
	return false;
}

static int rename_check_cycle(struct fs_txn *txn,
			      const struct rename_lookup *look)
{
	struct rename *rename = txn->state;
	struct fs_op *op = txn->op;
	struct fs *fs = txn->fs;
	bool moves = S_ISDIR(inode_mode(&look->from_item));
	bool moves_back = look->exchange &&
			  S_ISDIR(inode_mode(&look->to_item));

	if (op->ino == op->ino2 || (!moves && !moves_back))
		return 0;
	if (fs->rename_locker && fs->rename_locker != txn) {
		list_add(&fs->rename_lock_waits, &txn->link);
		return FS_TXN_WAIT;
	}
	fs->rename_locker = txn;
	if ((moves && !rename_walked(rename, 0, op->ino2, look->from.ino)) ||
	    (moves_back &&
	     !rename_walked(rename, 1, op->ino, look->to.ino))) {
		fs_txn_restart(txn);
		return FS_TXN_WAIT;
	}
	return 0;
}

/* ---- Probe and decide ---- */

static int rename_check_replace(const struct rename_lookup *look)
{
	bool from_is_dir = S_ISDIR(inode_mode(&look->from_item));
	bool to_is_dir = S_ISDIR(inode_mode(&look->to_item));

	if (from_is_dir && !to_is_dir)
		return -ENOTDIR;
	if (!from_is_dir && to_is_dir)
		return -EISDIR;
	if (to_is_dir && le64_get(look->to_item.entries))
		return -ENOTEMPTY;
	return 0;
}

static int rename_check(const struct fs_op *op,
			const struct rename_lookup *look)
{
	bool from_is_dir = S_ISDIR(inode_mode(&look->from_item));
	int rc;

	if (!look->from.found)
		return -ENOENT;
	if (op->flags & FS_RENAME_NOREPLACE && look->to.found)
		return -EEXIST;
	if (look->exchange && !look->to.found)
		return -ENOENT;
	if (look->to.found && look->from.ino == look->to.ino)
		return 0;	/* two names of one inode: nothing is done */
	if (look->from.ino == op->ino2)
		return -EINVAL;
	if (look->to.found && look->to.ino == op->ino)
		return look->exchange ? -EINVAL : -ENOTEMPTY;
	rc = inode_may_unlink(&look->from_item);
	if (!rc && look->to.found)
		rc = inode_may_unlink(&look->to_item);
	if (rc)
		return rc;
	if (look->to.found && !look->exchange)
		return rename_check_replace(look);
	if (from_is_dir && op->ino != op->ino2 &&
	    le32_get(look->to_dir->nlink) >= NAMES_MAX_LINKS)
		return -EMLINK;
	return 0;
}

static void rename_probe_entries(struct fs_txn *txn, struct rename_lookup *look,
				 struct probe *probe)
{
	struct fs_op *op = txn->op;
	uint64_t seq = le64_get(look->to_dir->next_seq);

	if (op->ino == op->ino2 && !look->exchange && !look->whiteout) {
		probe_ok(probe, dir_probe_retitle(txn, &look->from,
						  &look->to));
	} else {
		probe_ok(probe, dir_probe_entry(txn, &look->from));
		probe_ok(probe, look->to.found ?
			 dir_probe_entry(txn, &look->to) :
			 dir_probe_add(txn, &look->to, seq));
	}
	if (look->whiteout)
		probe_ok(probe, names_probe_new(txn, look->from_dir));
	if (look->to.found && !look->exchange)
		probe_ok(probe, names_probe_drop(txn, look->to.ino,
						 &look->to_item));
}

static int rename_probe(struct fs_txn *txn, struct rename_lookup *look)
{
	struct fs_op *op = txn->op;
	struct probe probe = { 0 };
	int rc;

	look->from_dir = look->to_dir = &look->dirs[0];
	look->exchange = op->flags & FS_RENAME_EXCHANGE;
	look->whiteout = op->flags & FS_RENAME_WHITEOUT;
	probe_ok(&probe, inode_of_changed_dir(txn, op->ino, true,
					      look->from_dir));
	probe_ok(&probe, dir_find(txn, op->ino, op->name, &look->from));
	probe_ok(&probe, dir_find(txn, op->ino2, op->name2, &look->to));
	if (op->ino2 != op->ino) {
		look->to_dir = &look->dirs[1];
		probe_ok(&probe, inode_of_changed_dir(txn, op->ino2,
						      look->to.found,
						      look->to_dir));
	}
	if (look->from.found)
		probe_ok(&probe, inode_of_entry(txn, op->ino,
						look->from.ino,
						&look->from_item));
	if (look->to.found)
		probe_ok(&probe, inode_of_entry(txn, op->ino2,
						look->to.ino,
						&look->to_item));
	rc = probe_result(&probe);
	if (!rc)
		rc = rename_check(op, look);
	if (rc)
		return rc;
	rename_probe_entries(txn, look, &probe);
	return probe_result(&probe);
}

/* ---- Apply ---- */

static void rename_add_link(struct inode_item *dir, uint32_t change)
{
	dir->nlink = le32_put(le32_get(dir->nlink) + change);
}

/* If the inode is a directory, the link of its ".." moves from directory a to
 * b. */
static void rename_move_links(struct inode_item *a, struct inode_item *b,
			      const struct inode_item *item)
{
	if (S_ISDIR(inode_mode(item))) {
		rename_add_link(a, UINT32_MAX);
		rename_add_link(b, 1);
	}
}

static void rename_apply_exchange(struct fs_txn *txn,
				  struct rename_lookup *look)
{
	struct dir_slot *from = &look->from, *to = &look->to;
	struct fs_op *op = txn->op;
	uint64_t ino = from->ino;
	uint8_t type = from->type;

	dir_point(txn, from, to->ino, to->type);
	if (key_cmp(from->key, to->key) == 0)
		memcpy(to->value, from->value, from->value_bytes);
	dir_point(txn, to, ino, type);
	rename_move_links(look->from_dir, look->to_dir, &look->from_item);
	rename_move_links(look->to_dir, look->from_dir, &look->to_item);
	look->from_item.parent = le64_put(op->ino2);
	look->to_item.parent = le64_put(op->ino);
	inode_ctime(txn->fs, &look->from_item);
	inode_ctime(txn->fs, &look->to_item);
	inode_put(txn, ino, &look->from_item);
	inode_put(txn, from->ino, &look->to_item);
}

/* Has the new name lead to the inode, and the old one to a whiteout. */
static void rename_apply_whiteout(struct fs_txn *txn,
				  struct rename_lookup *look)
{
	struct dir_slot *from = &look->from, *to = &look->to;
	uint64_t whiteout = txn->op->attr.ino;
	struct inode_item item;

	if (to->found)
		dir_point(txn, to, from->ino, from->type);
	else
		dir_add(txn, to, look->to_dir, from->ino, from->type);
	if (key_cmp(from->key, to->key) == 0) {
		memcpy(from->value, to->value, to->value_bytes);
		from->value_bytes = to->value_bytes;
	}
	names_fill(txn, look->from_dir, S_IFCHR, &item);
	item.mode = le32_put(S_IFCHR);
	dir_point(txn, from, whiteout, dir_type(S_IFCHR));
	inode_put(txn, whiteout, &item);
}

static void rename_apply_move(struct fs_txn *txn, struct rename_lookup *look)
{
	struct dir_slot *from = &look->from, *to = &look->to;
	uint64_t ino = from->ino, replaced = to->ino;
	bool replaces = to->found;
	struct fs_op *op = txn->op;
	uint8_t type = from->type;

	if (look->whiteout) {
		rename_apply_whiteout(txn, look);
	} else if (look->from_dir == look->to_dir) {
		dir_retitle(txn, from, to, look->from_dir);
	} else {
		dir_remove(txn, from, look->from_dir);
		if (replaces)
			dir_point(txn, to, ino, type);
		else
			dir_add(txn, to, look->to_dir, ino, type);
	}
	if (look->from_dir != look->to_dir)
		rename_move_links(look->from_dir, look->to_dir,
				  &look->from_item);
	look->from_item.parent = le64_put(op->ino2);
	inode_ctime(txn->fs, &look->from_item);
	inode_put(txn, ino, &look->from_item);
	if (!replaces)
		return;
	if (S_ISDIR(inode_mode(&look->to_item)))
		rename_add_link(look->to_dir, UINT32_MAX);
	names_drop(txn, replaced, &look->to_item);
}

static int rename_run(struct fs_txn *txn)
{
	struct rename *rename = txn->state;
	struct fs_op *op = txn->op;
	struct rename_lookup look;
	int rc;

	if (rename->walk.at)
		return rename_walk(txn, &rename->walk);
	rc = rename_probe(txn, &look);
	if (rc)
		return rc;
	if (look.to.found && look.from.ino == look.to.ino)
		return 0;
	rc = rename_check_cycle(txn, &look);
	if (!rc && look.to.found && !look.exchange &&
	    S_ISREG(inode_mode(&look.from_item)))
		rc = txn->fs->data_ops->order(txn, look.from.ino);
	if (rc)
		return rc;
	if (look.exchange)
		rename_apply_exchange(txn, &look);
	else
		rename_apply_move(txn, &look);
	inode_changed(txn->fs, look.from_dir);
	inode_put(txn, op->ino, look.from_dir);
	if (look.to_dir != look.from_dir) {
		inode_changed(txn->fs, look.to_dir);
		inode_put(txn, op->ino2, look.to_dir);
	}
	return 0;
}

static void rename_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct fs *fs = txn->fs;
	struct fs_txn *next;

	(void)seq;
	if (fs->rename_locker == txn) {
		fs->rename_locker = NULL;
		next = list_first(&fs->rename_lock_waits, struct fs_txn, link);
		if (next) {
			list_del(&next->link);
			fs_txn_restart(next);
		}
	}
	free(txn->state);
	fs_txn_finish(txn, rc);
}

static const struct fs_txn_type rename_type = {
	.name = "rename",
	.bounds = { .log_bytes = 5 * NAMES_LOG_INODE + 2 * NAMES_LOG_NAME +
				 2 * NAMES_LOG_ENTRY + 128 },
	.paths = 11,
	.changes = 11,
	.stages = WALK_STEPS + 3,
	.run = rename_run,
	.end = rename_end,
	.free_state = fs_txn_free_state,
};

static int rename_check_op(const struct fs_op *op)
{
	uint32_t known = FS_RENAME_NOREPLACE | FS_RENAME_EXCHANGE |
			 FS_RENAME_WHITEOUT;
	int rc;

	if (op->flags & ~known ||
	    (op->flags & FS_RENAME_EXCHANGE && op->flags != FS_RENAME_EXCHANGE))
		return -EINVAL;
	rc = dir_check_name(op->name);
	if (!rc)
		rc = dir_check_name(op->name2);
	if (!rc && (dir_is_dots(op->name) || dir_is_dots(op->name2)))
		rc = op->flags & FS_RENAME_NOREPLACE ? -EEXIST : -EBUSY;
	return rc;
}

void rename_op(struct fs *fs, struct fs_op *op)
{
	int rc = rename_check_op(op);
	struct rename *rename;

	op->attr.ino = 0;

	if (rc) {
		fs_answer(fs, op, rc);
		return;
	}
	rename = calloc(1, sizeof(*rename));
	if (!rename)
		fs_answer(fs, op, -ENOMEM);
	else if (fs_txn_start(fs, &rename_type, op, rename))
		free(rename);
}

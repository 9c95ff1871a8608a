/*
 * relocate_txn.c - two transactions around a write of the superblocks.
 *
 * The first is waited for until a root holds it, so that whatever the
 * superblocks name has an owner in any root that a recovery may begin from.
 */
#include "fs/drive/relocate_txn.h"

#include <errno.h>
#include <stdlib.h>

#include "base/msg.h"

static struct key owner_key(uint64_t sector)
{
	return key_make(0, ITEM_OWNER, addr_make(0, sector));
}

/* ---- Room ---- */

static bool find_in(struct relocation *relocation, uint32_t group,
		    uint64_t unit)
{
	struct space *space = tree_space(relocation->fs->tree);
	uint64_t at = (uint64_t)group * TRAX_GROUP_SECTORS, first;
	uint64_t end = at + TRAX_GROUP_SECTORS;
	struct range range;

	while (rangeset_next(space_free_set(space), at, &range) &&
	       range.first < end) {
		first = (range.first + unit - 1) / unit * unit;
		at = range.first + range.n;
		if (first + relocation->to_sectors > at ||
		    space_take(space, first, relocation->to_sectors))
			continue;
		relocation->to = first;
		return true;
	}
	return false;
}

/* Looks from the outer edge on.  -EAGAIN: *group must be loaded; -ENOSPC. */
static int find_room(struct relocation *relocation, uint32_t *group)
{
	struct space *space = tree_space(relocation->fs->tree);
	uint64_t unit = super_write_unit(tree_super(relocation->fs->tree)) /
			SECTOR_BYTES;
	uint32_t g;

	for (g = 0; g < space_groups(space); g++) {
		if (space_group_largest(space, g) < relocation->to_sectors)
			continue;
		if (!space_group_loaded(space, g)) {
			*group = g;
			return -EAGAIN;
		}
		if (find_in(relocation, g, unit))
			return 0;
	}
	return -ENOSPC;
}

/* Reserves the room, so that it is not taken from what was promised to
 * users. */
static int relocation_room(struct relocation *relocation, uint32_t *group)
{
	struct space *space = tree_space(relocation->fs->tree);
	int rc;

	if (relocation->to)
		return 0;
	if (!relocation->promised) {
		rc = space_reserve(space, relocation->to_sectors);
		if (rc)
			return rc;
		relocation->promised = relocation->to_sectors;
	}
	return find_room(relocation, group);
}

/* ---- Begin ---- */

static void begin_over(struct relocation *relocation, int rc)
{
	struct space *space = tree_space(relocation->fs->tree);

	space_release(space, relocation->promised);
	relocation->promised = 0;
	if (rc && relocation->to) {
		space_give_back(space, relocation->to, relocation->to_sectors);
		relocation->to = 0;
	}
}

static int begin_run(struct fs_txn *txn)
{
	struct relocation *relocation = txn->state;
	struct key key = key_make(0, ITEM_MOVE, relocation->kind);
	struct owner_item owner = { .kind = (uint8_t)relocation->kind };
	struct move_item item;
	struct tree_item old;
	uint32_t group = 0;
	int rc = relocation_room(relocation, &group), rc2;

	if (rc == -EAGAIN)
		return fs_txn_wait_group(txn, group);
	if (rc)
		return rc;
	rc = tree_get(txn->tree_txn, owner_key(relocation->to), &old);
	rc2 = tree_get(txn->tree_txn, key, &old);
	if (rc != -ENOENT || rc2 != -ENOENT)
		return rc && rc != -ENOENT ? rc :
		       rc2 && rc2 != -ENOENT ? rc2 : -EUCLEAN;
	owner.sectors = le64_put(relocation->to_sectors);
	item = (struct move_item){
		.from = le64_put(relocation->from),
		.from_sectors = le64_put(relocation->from_sectors),
		.to = le64_put(relocation->to),
		.to_sectors = le64_put(relocation->to_sectors),
	};
	tree_put(txn->tree_txn, owner_key(relocation->to), &owner,
		 sizeof(owner));
	tree_put(txn->tree_txn, key, &item, sizeof(item));
	return 0;
}

static void begin_rooted(struct waiter *waiter, int rc)
{
	struct relocation *relocation = waiter->owner;

	relocation->done(relocation, rc);
}

static void begin_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct relocation *relocation = txn->state;

	(void)seq;
	begin_over(relocation, rc);
	fs_txn_finish(txn, 0);
	if (rc) {
		relocation->done(relocation, rc);
		return;
	}
	relocation->waiter.done = begin_rooted;
	relocation->waiter.owner = relocation;
	list_init(&relocation->waiter.link);
	tree_checkpoint(relocation->fs->tree, &relocation->waiter);
}

static const struct fs_txn_type begin_type = {
	.name = "move begins",
	.bounds = { .log_bytes = 512 },
	.paths = 3,
	.changes = 3,
	.run = begin_run,
	.end = begin_end,
};

void relocation_begin(struct relocation *relocation)
{
	int rc = fs_txn_start(relocation->fs, &begin_type, NULL, relocation);

	if (rc)
		relocation->done(relocation, rc);
}

/* ---- End ---- */

static int end_run(struct fs_txn *txn)
{
	struct relocation *relocation = txn->state;
	uint64_t gone = relocation->landed ? relocation->from : relocation->to;
	uint64_t n = relocation->landed ? relocation->from_sectors
					: relocation->to_sectors;
	struct key key = key_make(0, ITEM_MOVE, relocation->kind);
	const struct owner_item *owner;
	struct tree_item item;
	bool owned = false;
	int rc, rc2 = tree_get(txn->tree_txn, key, &item);

	rc = gone ? tree_get(txn->tree_txn, owner_key(gone), &item) : -ENOENT;
	if (rc == 0) {
		owner = item.value;
		owned = owner->kind == relocation->kind &&
			le64_get(owner->sectors) == n;
	}
	if ((rc && rc != -ENOENT) || rc2)
		return rc && rc != -ENOENT ? rc : rc2;
	if (owned)
		tree_del(txn->tree_txn, owner_key(gone));
	tree_del(txn->tree_txn, key);
	return 0;
}

static void end_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct relocation *relocation = txn->state;

	(void)seq;
	fs_txn_finish(txn, 0);
	relocation->done(relocation, rc);
}

static const struct fs_txn_type end_type = {
	.name = "move ends",
	.bounds = { .log_bytes = 512, .urgent = true },
	.paths = 3,
	.changes = 3,
	.run = end_run,
	.end = end_end,
};

void relocation_end(struct relocation *relocation, bool landed)
{
	int rc;

	relocation->landed = landed;
	rc = fs_txn_start(relocation->fs, &end_type, NULL, relocation);
	if (rc)
		relocation->done(relocation, rc);
}

/* ---- At mount ---- */

struct relocation_resume {
	struct relocation relocation;
	bool over, found;
	int rc;
};

/* Do the superblocks name the new place? */
static bool resume_landed(const struct relocation *relocation)
{
	const struct super *super = tree_super(relocation->fs->tree);
	struct super_run geom = super_geom_run(super);
	uint32_t i;

	if (relocation->kind == OWNER_GEOM)
		return geom.sector == relocation->to &&
		       geom.sectors == relocation->to_sectors;
	for (i = 0; i < super->log_tracks; i++)
		if (super->log[i].sector == relocation->to)
			return true;
	return false;
}

static int resume_run(struct fs_txn *txn)
{
	struct relocation_resume *r = txn->state;
	const struct move_item *m;
	struct tree_item item;
	int rc = tree_seek_ge(txn->tree_txn, key_make(0, ITEM_MOVE, 0),
			      key_make(0, ITEM_MOVE, UINT64_MAX), &item);

	if (rc)
		return rc;
	m = item.value;
	r->relocation.kind = (enum owner_kind)item.key.off;
	r->relocation.from = le64_get(m->from);
	r->relocation.from_sectors = le64_get(m->from_sectors);
	r->relocation.to = le64_get(m->to);
	r->relocation.to_sectors = le64_get(m->to_sectors);
	r->found = true;
	return 0;
}

static void resume_looked(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct relocation_resume *r = txn->state;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (r->found) {
		relocation_end(&r->relocation, resume_landed(&r->relocation));
		return;
	}
	r->rc = rc == -ENOENT ? 0 : rc;
	r->over = true;
}

static const struct fs_txn_type resume_type = {
	.name = "moves begun",
	.paths = 2,
	.run = resume_run,
	.end = resume_looked,
};

static void resume_ended(struct relocation *relocation, int rc)
{
	struct relocation_resume *r = relocation->arg;

	r->found = false;
	r->rc = rc;
	if (!rc)
		rc = fs_txn_start(relocation->fs, &resume_type, NULL, r);
	r->over = rc != 0;
}

int relocation_resume(struct fs *fs)
{
	struct relocation_resume r = {
		.relocation = {.fs = fs, .done = resume_ended}};
	int rc;

	r.relocation.arg = &r;
	rc = fs_txn_start(fs, &resume_type, NULL, &r);
	if (!rc)
		rc = fs_wait(fs, &r.over);
	return rc ? rc : r.rc;
}

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

static bool find_in(struct move *move, uint32_t group, uint64_t unit)
{
	struct space *space = tree_space(move->fs->tree);
	uint64_t at = (uint64_t)group * TRAX_GROUP_SECTORS, first;
	uint64_t end = at + TRAX_GROUP_SECTORS;
	struct range range;

	while (rangeset_next(space_free_set(space), at, &range) &&
	       range.first < end) {
		first = (range.first + unit - 1) / unit * unit;
		at = range.first + range.n;
		if (first + move->to_sectors > at ||
		    space_take(space, first, move->to_sectors))
			continue;
		move->to = first;
		return true;
	}
	return false;
}

int move_find_any(struct move *move, uint32_t *group)
{
	struct space *space = tree_space(move->fs->tree);
	uint64_t unit = super_write_unit(tree_super(move->fs->tree)) /
			SECTOR_BYTES;
	uint32_t g;

	for (g = 0; g < space_groups(space); g++) {
		if (space_group_largest(space, g) < move->to_sectors)
			continue;
		if (!space_group_loaded(space, g)) {
			*group = g;
			return -EAGAIN;
		}
		if (find_in(move, g, unit))
			return 0;
	}
	return -ENOSPC;
}

/* Users' room is not taken behind their backs. */
static int move_room(struct move *move, uint32_t *group)
{
	struct space *space = tree_space(move->fs->tree);
	int rc;

	if (move->to)
		return 0;
	if (!move->promised) {
		rc = space_reserve(space, move->to_sectors);
		if (rc)
			return rc;
		move->promised = move->to_sectors;
	}
	return move->find(move, group);
}

/* ---- Begin ---- */

static void begin_over(struct move *move, int rc)
{
	struct space *space = tree_space(move->fs->tree);

	space_release(space, move->promised);
	move->promised = 0;
	if (rc && move->to) {
		space_give_back(space, move->to, move->to_sectors);
		move->to = 0;
	}
}

static int begin_run(struct ticket *ticket)
{
	struct move *move = ticket->state;
	struct key key = key_make(0, ITEM_MOVE, move->kind);
	struct owner_item owner = { .kind = (uint8_t)move->kind };
	struct move_item item;
	struct tree_item old;
	uint32_t group;
	int rc = move_room(move, &group), rc2;

	if (rc == -EAGAIN)
		return ticket_wait_group(ticket, group);
	if (rc)
		return rc;
	rc = tree_get(ticket->txn, owner_key(move->to), &old);
	rc2 = tree_get(ticket->txn, key, &old);
	if (rc != -ENOENT || rc2 != -ENOENT)
		return rc && rc != -ENOENT ? rc :
		       rc2 && rc2 != -ENOENT ? rc2 : -EUCLEAN;
	owner.sectors = le64_put(move->to_sectors);
	item = (struct move_item){
		.from = le64_put(move->from),
		.from_sectors = le64_put(move->from_sectors),
		.to = le64_put(move->to),
		.to_sectors = le64_put(move->to_sectors),
	};
	tree_put(ticket->txn, owner_key(move->to), &owner, sizeof(owner));
	tree_put(ticket->txn, key, &item, sizeof(item));
	return 0;
}

static void begin_rooted(struct waiter *waiter, int rc)
{
	struct move *move = waiter->owner;

	move->done(move, rc);
}

static void begin_end(struct ticket *ticket, int rc, uint64_t seq)
{
	struct move *move = ticket->state;

	(void)seq;
	begin_over(move, rc);
	ticket_finish(ticket, 0);
	if (rc) {
		move->done(move, rc);
		return;
	}
	move->waiter.done = begin_rooted;
	move->waiter.owner = move;
	list_init(&move->waiter.link);
	tree_checkpoint(move->fs->tree, &move->waiter);
}

static const struct ticket_type begin_type = {
	.name = "move begins",
	.bounds = { .log_bytes = 512 },
	.paths = 3,
	.changes = 3,
	.run = begin_run,
	.end = begin_end,
};

void move_begin(struct move *move)
{
	int rc = ticket_start(move->fs, &begin_type, NULL, move);

	if (rc)
		move->done(move, rc);
}

/* ---- End ---- */

static int end_run(struct ticket *ticket)
{
	struct move *move = ticket->state;
	uint64_t gone = move->landed ? move->from : move->to;
	uint64_t n = move->landed ? move->from_sectors : move->to_sectors;
	struct key key = key_make(0, ITEM_MOVE, move->kind);
	const struct owner_item *owner;
	struct tree_item item;
	bool owned = false;
	int rc, rc2 = tree_get(ticket->txn, key, &item);

	rc = gone ? tree_get(ticket->txn, owner_key(gone), &item) : -ENOENT;
	if (rc == 0) {
		owner = item.value;
		owned = owner->kind == move->kind &&
			le64_get(owner->sectors) == n;
	}
	if ((rc && rc != -ENOENT) || rc2)
		return rc && rc != -ENOENT ? rc : rc2;
	if (owned)
		tree_del(ticket->txn, owner_key(gone));
	tree_del(ticket->txn, key);
	return 0;
}

static void end_end(struct ticket *ticket, int rc, uint64_t seq)
{
	struct move *move = ticket->state;

	(void)seq;
	ticket_finish(ticket, 0);
	move->done(move, rc);
}

static const struct ticket_type end_type = {
	.name = "move ends",
	.bounds = { .log_bytes = 512, .urgent = true },
	.paths = 3,
	.changes = 3,
	.run = end_run,
	.end = end_end,
};

void move_end(struct move *move, bool landed)
{
	int rc;

	move->landed = landed;
	rc = ticket_start(move->fs, &end_type, NULL, move);
	if (rc)
		move->done(move, rc);
}

/* ---- At mount ---- */

struct resume {
	struct move move;
	bool over, found;
	int rc;
};

/* Do the superblocks name where it was going? */
static bool resume_landed(const struct move *move)
{
	const struct super *super = tree_super(move->fs->tree);
	struct super_run geom = super_geom_run(super);
	uint32_t i;

	if (move->kind == OWNER_GEOM)
		return geom.sector == move->to &&
		       geom.sectors == move->to_sectors;
	for (i = 0; i < super->log_tracks; i++)
		if (super->log[i].sector == move->to)
			return true;
	return false;
}

static int resume_run(struct ticket *ticket)
{
	struct resume *r = ticket->state;
	const struct move_item *m;
	struct tree_item item;
	int rc = tree_seek_ge(ticket->txn, key_make(0, ITEM_MOVE, 0),
			      key_make(0, ITEM_MOVE, UINT64_MAX), &item);

	if (rc)
		return rc;
	m = item.value;
	r->move.kind = (enum owner_kind)item.key.off;
	r->move.from = le64_get(m->from);
	r->move.from_sectors = le64_get(m->from_sectors);
	r->move.to = le64_get(m->to);
	r->move.to_sectors = le64_get(m->to_sectors);
	r->found = true;
	return 0;
}

static void resume_looked(struct ticket *ticket, int rc, uint64_t seq)
{
	struct resume *r = ticket->state;

	(void)seq;
	ticket_finish(ticket, 0);
	if (r->found) {
		move_end(&r->move, resume_landed(&r->move));
		return;
	}
	r->rc = rc == -ENOENT ? 0 : rc;
	r->over = true;
}

static const struct ticket_type resume_type = {
	.name = "moves begun",
	.paths = 2,
	.run = resume_run,
	.end = resume_looked,
};

static void resume_ended(struct move *move, int rc)
{
	struct resume *r = move->arg;

	r->found = false;
	r->rc = rc;
	if (!rc)
		rc = ticket_start(move->fs, &resume_type, NULL, r);
	r->over = rc != 0;
}

int move_resume(struct fs *fs)
{
	struct resume r = { .move = { .fs = fs, .done = resume_ended } };
	int rc;

	r.move.arg = &r;
	rc = ticket_start(fs, &resume_type, NULL, &r);
	if (!rc)
		rc = fs_wait(fs, &r.over);
	return rc ? rc : r.rc;
}

/*
 * move.c - all moves of a mount: how many at a time, and when the next begins.
 */
#include "move/move.h"

#include <errno.h>

#include "base/units.h"
#include "fs/op/op.h"
#include "fs/op/quiet.h"
#include "move/move_internal.h"

/* The data of all moves takes at most this part of the memory of the file
 * system. */
#define MEMORY_SHARE 16u
/* A move that has found no gap for this long goes to the queue like a user's
 * request: with MOVE_MOST moves of 50 ms each that is less than 1 % of the
 * time. */
#define PATIENCE_NS UINT64_C(60000000000)
/* Pause after all groups were looked at in vain, and before a track is tried
 * again. */
#define AGAIN_NS UINT64_C(600000000000)
/* No move begins when less than one 64th of the sectors is free, and less than
 * twice the room that all moves can take: the rest is for users. */
#define LEAST_SHARE 64u
#define LEAST_SECTORS (2u * MOVE_MOST * MOVE_BLOCKS * BLOCK_SECTORS)
/* Percent of a track that must be free for it to be emptied: with less,
 * emptying costs more than it gains. */
#define LEAST_FREE_PERCENT 10u
/* A group is left alone when this percentage of its free room is in whole
 * tracks. */
#define WHOLE_PERCENT 80u
/* The least age of data that is moved: the kernel keeps dirty data for 30 s,
 * and data that has lived for a minute is not likely to be deleted within the
 * next moments. */
#define LEAST_AGE_SECONDS 60
/* The counters are stored this often while data moves, and at the end. */
#define STORE_NS UINT64_C(600000000000)
/* Longest time that cleaning waits for order: a pass over a large file system
 * takes days. */
#define ORDER_FIRST_NS UINT64_C(3600000000000)
#define LOOK_NS UINT64_C(1000000000)
/* While users are quiet a checkpoint follows after this many sectors have been
 * brought together: as many as all moves have at a time. */
#define UNFREED_SECTORS (MOVE_MOST * MOVE_BLOCKS * BLOCK_SECTORS)
/* Moves change leaves, so these are brought together when the moves are over,
 * and this often while they go on.  Then as many checkpoints do that, one after
 * the other, as bring leaves together, but GATHERS at most: slots that one
 * gives up are free for the next. */
#define GATHER_NS UINT64_C(600000000000)
#define GATHERS 4u

int moves_open(struct fs *fs, struct moves **out)
{
	struct moves *moves = abandon_alloc(fs, sizeof(*moves));

	if (!moves)
		return -ENOMEM;
	moves->fs = fs;
	moves->limits = (struct move_limits){
		.age_seconds = LEAST_AGE_SECONDS,
		.free_percent = LEAST_FREE_PERCENT,
		.whole_percent = WHOLE_PERCENT,
		.again_ns = AGAIN_NS,
		.patience_ns = PATIENCE_NS,
	};
	if (moves_recall(moves)) {
		abandon_free(moves);
		return -ENOMEM;
	}
	moves->walk.begun_ns = env_now_ns(fs->env);
	notice_begin(moves);
	*out = moves;
	return 0;
}

void moves_pause(struct moves *moves, bool paused)
{
	moves->status.paused = paused;
	moves_store(moves);
}

static unsigned under_way(const struct moves *moves)
{
	unsigned i, n = 0;

	for (i = 0; i < MOVE_SLOTS; i++)
		n += moves->move[i] != NULL;
	return n;
}

/* Number of moves that have data in memory. */
static unsigned with_data(const struct moves *moves)
{
	unsigned i, n = 0;

	for (i = 0; i < MOVE_SLOTS; i++)
		n += moves->move[i] && moves->move[i]->step != MOVE_DRAIN;
	return n;
}

static bool is_busy(const struct moves *moves)
{
	return moves->clean.picking || moves->order.looking ||
	       moves->walk.looking ||
	       moves->checkpointing || under_way(moves);
}

/* If the disk is gone fs_abandon frees the rest. */
void moves_close(struct moves *moves)
{
	unsigned i;

	if (!moves)
		return;
	moves->closing = true;
	notice_end(moves);
	for (i = 0; i < MOVE_SLOTS; i++)
		if (moves->move[i])
			move_end(moves->move[i]);
	if (moves->known && !moves->fs->disk_gone)
		moves_store(moves);
	while ((is_busy(moves) || moves->storing) && !moves->fs->disk_gone) {
		uint64_t next_ns = fs_run(moves->fs, 0);

		if ((is_busy(moves) || moves->storing) && !moves->fs->disk_gone)
			fs_sleep(moves->fs, next_ns);
	}
	if (moves->task)
		freeblock_close(moves->task);
	moves->task = NULL;
	if (moves->fs->disk_gone)
		return;
	order_close(moves);
	abandon_free(moves);
}

/* ---- When the next one begins ---- */

static unsigned moves_most(const struct moves *moves)
{
	size_t n = fs_memory_bytes(moves->fs) / MEMORY_SHARE /
		   (MOVE_BLOCKS * BLOCK_BYTES);

	return n < 1 ? 1 : n < MOVE_MOST ? (unsigned)n : MOVE_MOST;
}

static bool may_begin(const struct moves *moves)
{
	const struct fs *fs = moves->fs;
	struct space_counts count;
	uint64_t least;

	if (moves->closing || !moves->known ||
	    with_data(moves) >= moves_most(moves) ||
	    under_way(moves) == MOVE_SLOTS ||
	    fs_read_only(fs) || fs->closing || tree_failed(fs->tree) ||
	    fs_may_sleep(fs))
		return false;
	space_count(tree_space(fs->tree), &count);
	least = count.total / LEAST_SHARE;
	least = least < LEAST_SECTORS ? least : LEAST_SECTORS;
	return count.free > count.reserved + count.own + least;
}

/* Does order come before cleaning?  Data that is brought together leaves holes
 * where it was: cleaned before or meanwhile, the same data would move twice. */
static bool order_comes_first(struct moves *moves, uint64_t now_ns)
{
	const struct ordering *order = &moves->order;
	bool at_work = !order->paused &&
		       (order->looking || order->extents ||
			order_has_work(moves) || moves->walk.looking ||
			walk_is_due(moves));

	if (!at_work)
		moves->order_ns = 0;
	else if (!moves->order_ns)
		moves->order_ns = now_ns;
	return at_work && now_ns - moves->order_ns < ORDER_FIRST_NS;
}

static bool may_clean(struct moves *moves, uint64_t now_ns)
{
	if (moves->status.paused || moves->clean.picking ||
	    !may_begin(moves))
		return false;
	return (fs_is_quiet(moves->fs) || moves->limits.beside_users) &&
	       now_ns >= moves->next_pick_ns &&
	       !order_comes_first(moves, now_ns);
}

static bool may_walk(const struct moves *moves)
{
	return !moves->order.paused && !moves->order.wanted_n &&
	       fs_is_quiet(moves->fs) && may_begin(moves) &&
	       walk_is_due(moves);
}

void clean_picked(struct moves *moves)
{
	uint64_t now_ns = env_now_ns(moves->fs->env);
	struct clean *clean = &moves->clean;

	clean->picking = false;
	moves->next_pick_ns = now_ns;
	if (clean->barren < space_groups(tree_space(moves->fs->tree)))
		return;
	clean->barren = 0;
	moves->next_pick_ns = now_ns + moves->limits.again_ns;
}

/* ---- Moves that are under way ---- */

static void checkpoint_over(struct waiter *waiter, int rc)
{
	(void)rc;
	container_of(waiter, struct moves, waiter)->checkpointing = false;
}

static void checkpoint(struct moves *moves, bool gather, uint64_t now_ns)
{
	moves->checkpointing = true;
	moves->waiter = (struct waiter){ .done = checkpoint_over };
	list_init(&moves->waiter.link);
	if (gather) {
		tree_gather(moves->fs->tree);
		moves->gathered_ns = now_ns;
	}
	tree_checkpoint(moves->fs->tree, &moves->waiter);
}

/* Frees the old places of moved data by a checkpoint: one that users do not
 * notice, or their next one. */
static void ask_checkpoint(struct moves *moves, unsigned draining,
			   uint64_t now_ns)
{
	bool quiet = fs_is_quiet(moves->fs);

	if (moves->checkpointing ||
	    (draining < (quiet ? MOVE_MOST / 2 : MOVE_SLOTS) &&
	     !(quiet && moves->unfreed >= UNFREED_SECTORS)))
		return;
	moves->unfreed = 0;
	moves->gathers = GATHERS;
	checkpoint(moves, quiet && now_ns - moves->gathered_ns >= GATHER_NS,
		   now_ns);
}

/* The moves are over for now: brings leaves of the tree together. */
static void gather(struct moves *moves, uint64_t now_ns)
{
	struct tree_stats stats;

	tree_get_stats(moves->fs->tree, &stats);
	if (moves->gathers < GATHERS && stats.gathered == moves->gathered)
		moves->gathers = 0;
	if (!moves->gathers)
		return;
	moves->gathers--;
	moves->gathered = stats.gathered;
	checkpoint(moves, true, now_ns);
}

static int task_set(struct moves *moves, bool wanted)
{
	const struct freeblock_options options = {
		.name = "moves",
	};

	/* While a task exists the queue looks for gaps, so it is closed when it
	 * is not needed. */
	if (!wanted && moves->task) {
		freeblock_close(moves->task);
		moves->task = NULL;
	}
	if (!wanted || moves->task)
		return 0;
	moves->promoted = false;
	return freeblock_open(moves->fs->queue, &options, &move_ops, moves,
			      &moves->task);
}

/* While users are quiet moves go to the queue: idle time would begin anew after
 * each of their own transactions. */
static void moves_go_on(struct moves *moves, uint64_t now_ns)
{
	unsigned i, draining = 0;
	bool late = fs_is_quiet(moves->fs);

	for (i = 0; i < MOVE_SLOTS; i++)
		if (moves->move[i])
			move_run(moves->move[i], now_ns);
	for (i = 0; i < MOVE_SLOTS; i++) {
		const struct move *move = moves->move[i];

		if (!move)
			continue;
		if (move->step == MOVE_DRAIN)
			draining++;
		else if (move->step == MOVE_READ || move->step == MOVE_WRITE ||
			 move->step == MOVE_COMPARE)
			late |= now_ns - move->step_ns >=
				moves->limits.patience_ns;
	}
	if (moves->task && late != moves->promoted)
		freeblock_promote(moves->task, late);
	moves->promoted = late;
	ask_checkpoint(moves, draining, now_ns);
}

uint64_t moves_run(struct moves *moves)
{
	uint64_t now_ns = env_now_ns(moves->fs->env), begin_ns;

	if (moves->closing)
		return UINT64_MAX;
	if (moves->known && !moves->storing && is_busy(moves) &&
	    now_ns - moves->stored_ns >= STORE_NS)
		moves_store(moves);
	if (under_way(moves))
		moves_go_on(moves, now_ns);
	while (order_has_work(moves) && may_begin(moves) &&
	       !task_set(moves, true) && order_pick(moves))
		;
	if (may_walk(moves))
		walk_pick(moves);
	if (may_clean(moves, now_ns) && !task_set(moves, true))
		clean_pick(moves);
	if (!is_busy(moves))
		task_set(moves, false);
	if (!is_busy(moves) && !order_has_work(moves) &&
	    fs_is_quiet(moves->fs))
		gather(moves, now_ns);
	begin_ns = moves->next_pick_ns > now_ns + LOOK_NS ?
			   moves->next_pick_ns : now_ns + LOOK_NS;
	return is_busy(moves) ? now_ns + LOOK_NS : begin_ns;
}

void moves_get_status(const struct moves *moves, struct moves_status *status)
{
	*status = moves->status;
	if (status->under_way)
		status->run_ns += env_now_ns(moves->fs->env) -
				  moves->busy_since_ns;
}

/*
 * scrub.c - passes, and how far they are.
 *
 * waiting --(time, start)--> running --(end of the disk)--> waiting
 *                            |    ^
 *                            v    |
 *                            paused
 *
 * Paused while it waits, it is held: no pass begins until it is resumed.
 *
 * Running: bands are read from their beginning to their end (scrub_bands.c);
 * from time to time, when every suspect was looked at, the cursors are stored.
 * What is under way when the file system is closed is read again.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "base/text.h"
#include "base/units.h"
#include "fs/op/errors.h"
#include "fs/op/quiet.h"
#include "scrub/scrub_internal.h"

#define ITEM_VERSION 3u	/* Version of scrub_item (format.h). */
/* The cursors of a running pass are stored once a minute; after a crash no more
 * than that is read again. */
#define STORE_NS (60 * NS_PER_SECOND)
/* Alignment of buffers that nodes are read into, in bytes. */
#define NODE_ALIGN 4096u

/* ---- the stored item ---- */

static struct key item_key(void)
{
	return key_make(0, ITEM_SCRUB, 0);
}

struct scrub_stored {
	struct scrub_item item;
	le32 cursor[SCRUB_BANDS];
};
static_assert(sizeof(struct scrub_stored) <= TRAX_MAX_ITEM_BYTES, "stored");

static bool item_is_known(const struct tree_item *found)
{
	const struct scrub_item *item = found->value;

	return found->bytes >= sizeof(*item) &&
	       item->version == ITEM_VERSION && item->state <= SCRUB_HELD &&
	       le16_get(item->bands) &&
	       found->bytes == sizeof(*item) +
				le16_get(item->bands) * sizeof(le32);
}

/* Are the stored cursors those of a disk of this size? */
static bool item_fits(const struct scrub *scrub, const struct tree_item *found)
{
	const struct scrub_item *item = found->value;

	return item_is_known(found) &&
	       le64_get(item->sectors) == scrub->fs->disk->limits.sectors;
}

/* While there are suspects the stored cursors stay where they were, as a crash
 * or the end of the mount forgets suspects. */
static unsigned store_cursors(const struct scrub *scrub,
			      const struct tree_item *old,
			      struct scrub_stored *stored)
{
	if (scrub->suspects && old && item_fits(scrub, old) &&
	    old->bytes <= sizeof(*stored)) {
		memcpy(stored, old->value, old->bytes);
		return le16_get(stored->item.bands);
	}
	scrub_bands_put(scrub, stored->cursor);
	return scrub->bands;
}

static int store_run(struct fs_txn *txn)
{
	const struct scrub *scrub = txn->state;
	struct tree_item old;
	struct scrub_stored stored;
	unsigned bands;
	int rc = tree_get(txn->tree_txn, item_key(), &old);

	if (rc && rc != -ENOENT)
		return rc;
	bands = store_cursors(scrub, rc ? NULL : &old, &stored);
	stored.item = (struct scrub_item){
		.version = ITEM_VERSION,
		.state = (uint8_t)scrub->state,
		.bands = le16_put((uint16_t)bands),
		.sectors = le64_put(scrub->fs->disk->limits.sectors),
		.done_sectors = le64_put(scrub->done_sectors),
		.passes = le64_put(scrub->passes),
		.begun_seconds = le64_put((uint64_t)scrub->begun_seconds),
		.ended_seconds = le64_put((uint64_t)scrub->ended_seconds),
	};
	tree_put(txn->tree_txn, item_key(), &stored,
		 sizeof(stored.item) + bands * sizeof(le32));
	return 0;
}

static void scrub_store(struct scrub *scrub);

static void store_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct scrub *scrub = txn->state;

	(void)rc;
	(void)seq;
	fs_txn_finish(txn, 0);
	scrub->storing = false;
	if (scrub->store_again)
		scrub_store(scrub);
}

static const struct fs_txn_type store_type = {
	.name = "store scrub",
	.bounds = { .log_bytes = sizeof(struct scrub_stored) + 128 },
	.paths = 1,
	.changes = 1,
	.run = store_run,
	.end = store_end,
};

/* Stores the cursors in the background.  If that is lost some windows are read
 * again. */
static void scrub_store(struct scrub *scrub)
{
	scrub->store_again = scrub->storing;
	scrub->moved = false;
	scrub->stored_ns = env_now_ns(scrub->fs->env);
	if (scrub->storing || fs_read_only(scrub->fs))
		return;
	scrub->storing = !fs_txn_start(scrub->fs, &store_type, NULL, scrub);
}

static int recall_run(struct fs_txn *txn)
{
	struct scrub *scrub = txn->state;
	const struct scrub_item *item;
	struct tree_item found;
	int rc = tree_get(txn->tree_txn, item_key(), &found);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	if (!item_is_known(&found))
		return 0;
	item = found.value;
	scrub->state = item->state;
	if (item_fits(scrub, &found)) {
		scrub_bands_recall(scrub, (const le32 *)(item + 1),
				   le16_get(item->bands));
		scrub->done_sectors = le64_get(item->done_sectors);
	}
	scrub->run_since_ns = env_now_ns(scrub->fs->env);
	scrub->passes = le64_get(item->passes);
	scrub->begun_seconds = (int64_t)le64_get(item->begun_seconds);
	scrub->ended_seconds = (int64_t)le64_get(item->ended_seconds);
	return 0;
}

static void recall_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct scrub *scrub = txn->state;

	(void)rc;
	(void)seq;
	fs_txn_finish(txn, 0);
	scrub->storing = false;
	scrub->known = true;
	if (scrub->begun_seconds)
		return;
	/* The period counts from the first mount on. */
	scrub->begun_seconds = env_wall_seconds(scrub->fs->env);
	if (scrub->period_seconds)
		scrub_store(scrub);
}

static const struct fs_txn_type recall_type = {
	.name = "recall scrub",
	.paths = 1,
	.run = recall_run,
	.end = recall_end,
};

/* ---- opening and closing ---- */

static void scrub_free(struct scrub *scrub)
{
	unsigned i;

	freeblock_close(scrub->task);
	for (i = 0; i < SCRUB_PARTS; i++)
		if (scrub->part[i].data)
			abandon_free(scrub->part[i].data);
	scrub_bands_close(scrub);
	free(scrub->node);
	free(scrub->fixed);
	free(scrub);
}

int scrub_open(struct fs *fs, unsigned days, struct scrub **out)
{
	const struct freeblock_options options = { .name = "scrub" };
	struct scrub *scrub = calloc(1, sizeof(*scrub));
	int err;

	if (!scrub)
		return -ENOMEM;
	scrub->fs = fs;
	scrub->window_loaded = scrub_bands_loaded;
	scrub->suspect_over = scrub_suspect_over;
	scrub->period_seconds = (int64_t)days * SECONDS_PER_DAY;
	scrub->lock.granted = scrub_suspect_again;
	scrub->node = aligned_alloc(NODE_ALIGN, TRAX_NODE_BYTES);
	err = scrub->node ? scrub_bands_open(scrub) : -ENOMEM;
	if (!err)
		err = freeblock_open(fs->queue, &options, &scrub_verify_ops,
				     scrub, &scrub->task);
	if (err) {
		scrub_free(scrub);
		return err;
	}
	scrub->errors_before = errors_count(fs);
	scrub->storing = true;
	if (fs_txn_start(fs, &recall_type, NULL, scrub)) {
		scrub_free(scrub);
		return -ENOMEM;
	}
	*out = scrub;
	return 0;
}

static bool scrub_is_busy(const struct scrub *scrub)
{
	return scrub->loading || scrub->storing || scrub->suspecting ||
	       scrub->recheck.busy;
}

void scrub_close(struct scrub *scrub)
{
	if (!scrub)
		return;
	scrub->closing = true;
	freeblock_pause(scrub->task, true);
	if (scrub->moved && !scrub->suspects && !scrub->fs->disk_gone)
		scrub_store(scrub);
	while (scrub_is_busy(scrub) && !scrub->fs->disk_gone) {
		uint64_t next_ns = fs_run(scrub->fs, 0);

		if (scrub_is_busy(scrub) && !scrub->fs->disk_gone)
			fs_sleep(scrub->fs, next_ns);
	}
	scrub_free(scrub);
}

/* ---- passes ---- */

/* Damage that was met in this pass; less what was removed from the notes. */
static uint64_t errors_met(const struct scrub *scrub)
{
	uint64_t count = errors_count(scrub->fs);

	return count > scrub->errors_before ? count - scrub->errors_before : 0;
}

static void pass_end(struct scrub *scrub)
{
	uint64_t errors;

	scrub->passes++;
	scrub->ended_seconds = env_wall_seconds(scrub->fs->env);
	scrub->state = SCRUB_WAITING;
	scrub->run_ns += env_now_ns(scrub->fs->env) - scrub->run_since_ns;
	scrub_bands_rewind(scrub);
	scrub_store(scrub);
	if (scrub->overflow)
		msg_warn("%s: scrub: more is suspect than can be looked at; "
			 "some of it was left to the next pass",
			 scrub->fs->disk->name);
	scrub->overflow = false;
	errors = errors_met(scrub);
	msg_info("%s: scrub: all of it has been read, %s",
		 scrub->fs->disk->name, count_text(errors, "error").s);
	/* Older notes may not be true any more. */
	scrub_recheck(scrub);
}

/* ---- what is due ---- */

static int64_t next_pass_seconds(const struct scrub *scrub)
{
	/* Before the first pass the period counts from the first mount. */
	int64_t from = scrub->ended_seconds ? scrub->ended_seconds :
					      scrub->begun_seconds;

	return scrub->period_seconds ? from + scrub->period_seconds : 0;
}

static void pass_begin(struct scrub *scrub)
{
	scrub->state = SCRUB_RUNNING;
	scrub_bands_rewind(scrub);
	scrub->done_sectors = 0;
	scrub->run_ns = scrub->run_sectors = 0;
	scrub->run_since_ns = env_now_ns(scrub->fs->env);
	scrub->begun_seconds = env_wall_seconds(scrub->fs->env);
	scrub->errors_before = errors_count(scrub->fs);
	scrub_store(scrub);
}

/* Corrects stored times that lie in the future, as the clock was set back: the
 * period counts from now on, or there would be no pass until then. */
static void correct_times(struct scrub *scrub, int64_t now)
{
	if (scrub->begun_seconds <= now && scrub->ended_seconds <= now)
		return;
	if (scrub->begun_seconds > now)
		scrub->begun_seconds = now;
	if (scrub->ended_seconds > now)
		scrub->ended_seconds = now;
	scrub_store(scrub);
}

/* When the next pass is due, on the environment's clock; 0: it has begun.
 * While the drive may sleep one begins only when it was asked for. */
static uint64_t wait_for_pass(struct scrub *scrub, uint64_t now_ns)
{
	int64_t next, now = env_wall_seconds(scrub->fs->env);

	correct_times(scrub, now);
	next = next_pass_seconds(scrub);
	if (!next && !scrub->start_wanted)
		return UINT64_MAX;
	if (!scrub->start_wanted && next <= now && fs_may_sleep(scrub->fs))
		return UINT64_MAX;
	if (scrub->start_wanted || next <= now) {
		scrub->start_wanted = false;
		pass_begin(scrub);
		return 0;
	}
	return now_ns + (uint64_t)(next - now) * NS_PER_SECOND;
}

/* Continues a pass. */
static uint64_t pass_run(struct scrub *scrub)
{
	uint64_t now_ns = env_now_ns(scrub->fs->env);
	uint64_t next_ns = scrub_bands_run(scrub);

	/* Suspects may be forgotten by a crash after this. */
	if (scrub->suspects || scrub->loading)
		return next_ns;
	if (scrub_bands_done(scrub)) {
		pass_end(scrub);
		return now_ns;
	}
	if (scrub->moved && now_ns - scrub->stored_ns >= STORE_NS)
		scrub_store(scrub);
	return next_ns;
}

uint64_t scrub_run(struct scrub *scrub)
{
	bool was_busy = scrub_is_busy(scrub);
	uint64_t now_ns, next_ns = UINT64_MAX;

	if (!scrub->known || scrub->closing)
		return UINT64_MAX;
	now_ns = env_now_ns(scrub->fs->env);
	if (now_ns < scrub->retry_ns)
		return scrub->retry_ns;
	scrub_recheck_run(scrub);
	if (scrub->state == SCRUB_WAITING) {
		next_ns = wait_for_pass(scrub, now_ns);
		if (!scrub->recheck.active || !next_ns)
			return next_ns ? next_ns : now_ns;
	}
	while (scrub_suspect_next(scrub))
		;
	if (scrub->state == SCRUB_RUNNING)
		next_ns = pass_run(scrub);
	/* Requests that were submitted here have to reach the disk. */
	return scrub_is_busy(scrub) != was_busy ||
			       scrub_recheck_is_due(scrub) ? now_ns : next_ns;
}

void scrub_start(struct scrub *scrub)
{
	scrub_resume(scrub);
	if (scrub->state == SCRUB_WAITING)
		scrub->start_wanted = true;
}

void scrub_pause(struct scrub *scrub)
{
	scrub->start_wanted = false;
	if (scrub->state == SCRUB_WAITING) {
		scrub->state = SCRUB_HELD;
		scrub_store(scrub);
	}
	if (scrub->state != SCRUB_RUNNING)
		return;
	scrub->state = SCRUB_PAUSED;
	scrub->run_ns += env_now_ns(scrub->fs->env) - scrub->run_since_ns;
	freeblock_pause(scrub->task, true);
	scrub_store(scrub);
}

void scrub_resume(struct scrub *scrub)
{
	if (scrub->state == SCRUB_HELD) {
		scrub->state = SCRUB_WAITING;
		scrub_store(scrub);
	}
	if (scrub->state != SCRUB_PAUSED)
		return;
	scrub->state = SCRUB_RUNNING;
	scrub->run_since_ns = env_now_ns(scrub->fs->env);
	freeblock_pause(scrub->task, false);
	scrub_store(scrub);
}

/* ---- status ---- */

static uint64_t allocated_sectors(const struct scrub *scrub)
{
	struct space_counts count;

	space_count(tree_space(scrub->fs->tree), &count);
	return super_fixed_sectors(fs_super(scrub->fs)) + count.total -
	       count.free;
}

void scrub_get_status(struct scrub *scrub, struct scrub_status *status)
{
	*status = (struct scrub_status){
		.state = scrub->start_wanted ? SCRUB_RUNNING : scrub->state,
		.passes = scrub->passes,
		.done_sectors = scrub->done_sectors,
		.all_sectors = allocated_sectors(scrub),
		.run_ns = scrub->run_ns,
		.run_sectors = scrub->run_sectors,
		.errors = errors_met(scrub),
		.suspects = scrub->looked_again,
		.begun_seconds = scrub->begun_seconds,
		.ended_seconds = scrub->ended_seconds,
		.next_seconds = scrub->state == SCRUB_HELD ?
					0 : next_pass_seconds(scrub),
	};
	status->done_sectors += scrub_bands_read_sectors(scrub);
	if (scrub->state == SCRUB_RUNNING)
		status->run_ns += env_now_ns(scrub->fs->env) -
				  scrub->run_since_ns;
	if (status->all_sectors < status->done_sectors)
		status->all_sectors = status->done_sectors;
}

static const char *state_name(enum scrub_state state)
{
	static const char *const names[] = {
		[SCRUB_WAITING] = "waiting",
		[SCRUB_RUNNING] = "running",
		[SCRUB_PAUSED] = "paused",
		[SCRUB_HELD] = "paused",
	};

	return names[state];
}

/* Seconds until the end of the pass, at the speed so far; -1: not known. */
static json_int_t eta_seconds(const struct scrub_status *s)
{
	double rate = s->run_ns ? (double)s->run_sectors / (double)s->run_ns :
				  0;

	if (s->state != SCRUB_RUNNING || rate <= 0)
		return -1;
	return (json_int_t)((double)(s->all_sectors - s->done_sectors) / rate /
			    1e9);
}

char *scrub_json(struct scrub *scrub)
{
	struct freeblock_stats free_stats;
	struct scrub_status s;
	json_t *json;
	char *text;

	scrub_get_status(scrub, &s);
	freeblock_get_stats(scrub->fs->queue, NULL, &free_stats);
	json = json_pack(
		"{s:s, s:b, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:I,"
		" s:I,"
		" s:{s:I, s:f, s:f, s:f}, s:{s:f, s:f, s:I, s:I, s:I}}",
		"state", state_name(s.state),
		"rechecking", scrub->recheck.active,
		"passes", (json_int_t)s.passes,
		"done_bytes", (json_int_t)(s.done_sectors * SECTOR_BYTES),
		"all_bytes", (json_int_t)(s.all_sectors * SECTOR_BYTES),
		"percent", s.all_sectors ? 100.0 * (double)s.done_sectors /
					    (double)s.all_sectors : 0.0,
		"mb_per_s", s.run_ns ? (double)s.run_sectors * SECTOR_BYTES *
					1e3 / (double)s.run_ns : 0.0,
		"eta_seconds", eta_seconds(&s),
		"errors", (json_int_t)s.errors,
		"looked_again", (json_int_t)s.suspects,
		"begun_seconds", (json_int_t)s.begun_seconds,
		"ended_seconds", (json_int_t)s.ended_seconds,
		"next_seconds", (json_int_t)s.next_seconds,
		"foreground_delay",
		"requests", (json_int_t)free_stats.delays,
		"mean_ms", free_stats.delays ? (double)free_stats.delay_ns /
				(double)free_stats.delays / 1e6 : 0.0,
		"p99_ms", (double)free_stats.p99_delay_ns / 1e6,
		"worst_ms", (double)free_stats.max_delay_ns / 1e6,
		"free_bandwidth",
		"potential_s", (double)free_stats.potential_ns / 1e9,
		"used_s", (double)free_stats.used_ns / 1e9,
		"gap_bytes",
		(json_int_t)(free_stats.gap_sectors * SECTOR_BYTES),
		"idle_bytes",
		(json_int_t)(free_stats.idle_sectors * SECTOR_BYTES),
		"passed_bytes",
		(json_int_t)(free_stats.passed_sectors * SECTOR_BYTES));
	text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
	json_decref(json);
	return text;
}

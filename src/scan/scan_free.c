/*
 * scan_free.c - scans of the free space: all that has no owner is read, group
 * by group, so that bad sectors are found before something is written there.
 *
 * A sector that becomes a file's meanwhile is read all the same.  One that
 * cannot be read is taken, so that nobody gets it, and looked at as after a
 * failed write: a drive gives a bad sector another place when it is written,
 * and what stays bad is not used any more (fs/data/bad_sectors.h).
 */
#include "fs/data/bad_sectors.h"
#include "fs/op/fs_state.h"
#include "scan/scan_internal.h"

#include <errno.h>

/* Free runs that are wanted at a time count with this many bytes each: a run on
 * a track that is wanted in part, and the track. */
#define RUN_BYTES 64u
/* Free runs that are wanted in one turn of the loop: about a millisecond's
 * work, where free space lies in single blocks. */
#define RUNS_A_TURN 1000u

static struct space *space_of(const struct file_scan *scan)
{
	return tree_space(scan->scans->fs->tree);
}

static uint32_t group_of(const struct file_scan *scan)
{
	return (uint32_t)(scan->free.at / TRAX_GROUP_SECTORS);
}

static uint64_t group_first(uint32_t group)
{
	return group * (uint64_t)TRAX_GROUP_SECTORS;
}

/* It begins with a whole group. */
void scan_free_begin(struct file_scan *scan)
{
	uint32_t groups = space_groups(space_of(scan)), i;
	uint64_t first = scan->options.first /
			 (TRAX_GROUP_SECTORS * SECTOR_BYTES);
	struct space_counts counts;
	uint64_t left;

	space_count(space_of(scan), &counts);
	left = counts.free - counts.replicas - counts.pending;
	scan->free.passed = first < groups ? (uint32_t)first : groups;
	for (i = 0; i < scan->free.passed; i++) {
		uint64_t before = space_group_free(space_of(scan), i);

		left -= before < left ? before : left;
	}
	scan->free.at = group_first(scan->free.passed);
	scan->options.total_bytes = left * SECTOR_BYTES;
}

/* ---- wanting ---- */

static uint64_t group_end(const struct file_scan *scan)
{
	return group_first(group_of(scan) + 1);
}

static void free_loaded(struct waiter *waiter, int rc)
{
	struct file_scan *scan =
		container_of(waiter, struct file_scan, free.loaded);

	scan->free.loading = false;
	/* A group whose owners cannot be read is left out. */
	if (rc)
		scan->free.at = group_end(scan);
}

/* Wants the next free runs of a group that is in memory. */
static void runs_want(struct file_scan *scan)
{
	uint64_t unit = queue_limits(scan->scans->fs->queue)->logical_bytes /
			SECTOR_BYTES;
	uint64_t at = scan->free.at, last = group_end(scan), end;
	unsigned left = RUNS_A_TURN;
	struct range run;

	while (left &&
	       rangeset_next(space_free_set(space_of(scan)), at, &run) &&
	       run.first < last) {
		end = run.first + run.n < last ? run.first + run.n : last;
		at = run.first > at ? run.first : at;
		at += (unit - at % unit) % unit;
		end -= end % unit;
		/* Without memory the rest of the run is not read. */
		if (end > at && !freeblock_want(scan->task, at, end - at))
			scan->bytes += RUN_BYTES;
		at = run.first + run.n;
		left--;
	}
	scan->free.at = left || at > last ? last : at;
}

/* Says which groups are through, as the program may keep that. */
static void groups_passed(struct file_scan *scan)
{
	struct scan_record head = { .type = SCAN_PASSED };
	uint32_t passed = scan->free.passed;

	while (passed < group_of(scan) &&
	       !freeblock_wants(scan->task, group_first(passed),
				TRAX_GROUP_SECTORS))
		passed++;
	head.offset = group_first(passed) * SECTOR_BYTES;
	/* Without memory it is said later. */
	if (passed > scan->free.passed && !scan_give(scan, &head, NULL))
		scan->free.passed = passed;
}

uint64_t scan_free_next(struct file_scan *scan)
{
	struct fs *fs = scan->scans->fs;
	uint64_t now_ns = env_now_ns(fs->env), pause_ns;
	bool little = freeblock_wanted(scan->task) < FREEBLOCK_FEW_SECTORS;

	groups_passed(scan);
	if (scan->free.loading || scan->paused || scan_free_all(scan))
		return UINT64_MAX;
	if (little)
		scan->bytes = 0;
	else if (scan->bytes >= scan->options.memory_bytes)
		return UINT64_MAX;
	else if (now_ns < scan->load_ns)
		return scan->load_ns;
	if (!space_group_loaded(space_of(scan), group_of(scan))) {
		scan->free.loading = true;
		scan->free.loaded = (struct waiter){ .done = free_loaded };
		list_init(&scan->free.loaded.link);
		scan->load.begun_ns = now_ns;
		tree_load_group(fs->tree, group_of(scan), &scan->free.loaded);
		return 0;
	}
	runs_want(scan);
	/* Looking up what is free has cost users time. */
	pause_ns = scan->load.begun_ns ? (now_ns - scan->load.begun_ns) *
					 FREEBLOCK_LOAD_PART : 0;
	scan->load.begun_ns = 0;
	scan->load_ns = now_ns + (pause_ns < FREEBLOCK_PAUSE_NS ?
				  pause_ns : FREEBLOCK_PAUSE_NS);
	return now_ns;
}

bool scan_free_all(const struct file_scan *scan)
{
	return group_of(scan) >= space_groups(space_of(scan));
}

/* ---- arriving ---- */

/* Has sectors that cannot be read looked at, if they are still free; with a
 * block on either side if that is free: if it can be written it is the place
 * that is bad, and not the disk that is in trouble. */
static void free_is_bad(struct file_scan *scan, uint64_t sector, uint32_t n)
{
	const struct rangeset *free = space_free_set(space_of(scan));
	struct fs *fs = scan->scans->fs;

	if (fs_read_only(fs) || !rangeset_has(free, sector, n))
		return;
	if (sector >= BLOCK_SECTORS &&
	    rangeset_has(free, sector - BLOCK_SECTORS, BLOCK_SECTORS)) {
		sector -= BLOCK_SECTORS;
		n += BLOCK_SECTORS;
	}
	if (rangeset_has(free, sector + n, BLOCK_SECTORS))
		n += BLOCK_SECTORS;
	if (!space_take(space_of(scan), sector, n))
		bad_sectors_suspect(fs->files, sector, n);
}

void scan_free_arrive(struct file_scan *scan, uint64_t sector, uint32_t sectors,
		      const uint8_t *data)
{
	struct scan_record head = {
		.type = data ? SCAN_DATA : SCAN_ERROR,
		.error = data ? 0 : -EIO,
	};
	uint32_t n;

	for (; sectors; sectors -= n, sector += n) {
		n = sectors < SCAN_DATA_MOST / SECTOR_BYTES ?
			    sectors : SCAN_DATA_MOST / SECTOR_BYTES;
		head.offset = sector * SECTOR_BYTES;
		head.bytes = (uint64_t)n * SECTOR_BYTES;
		if (scan_give(scan, &head, data)) {
			scan->failed = true;
			return;
		}
		scan->given_bytes += head.bytes;
		if (data)
			data += head.bytes;
		else
			free_is_bad(scan, sector, n);
	}
}

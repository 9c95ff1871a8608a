/*
 * bad_stretch.c - see bad_stretch.h.
 *
 * Data whose write has failed goes elsewhere, and the nearest free place is
 * often in the same bad stretch.  So the free sectors around a failed write are
 * held back: FIRST_SECTORS on each side at first, and with each failure at the
 * edge twice as much as is known to be bad, until writes get out of the
 * stretch.  A few failures pass over a stretch of any size.  Sectors that are
 * held back have no owner: they are free again after HOLD_NS without another
 * failure, or when there is no other room.  Later writes to them find out which
 * are bad for good (bad_sectors.c).
 */
#include "fs/data/bad_stretch.h"

#include "base/env.h"
#include "base/units.h"
#include "fs/data/file.h"

/* Sectors held back on each side of the first failed write: 256 KiB, as a
 * scratch or a bad spot is a few tracks wide. */
#define FIRST_SECTORS 512u
/* Free runs held back for one failure, so that it takes no long turn. */
#define MAX_RUNS 256u
/* At most this part of the free room that is not reserved is held back; the
 * rest is for data and nodes. */
#define HOLD_SHARE 4u
/* Held back for 30 s after the last failure: long enough for the data that is
 * being written now to be placed elsewhere. */
#define HOLD_NS (30 * NS_PER_SECOND)

static void window_widen(struct range *window, uint64_t sector, uint64_t n)
{
	uint64_t end = sector + n, step = window->n + n + FIRST_SECTORS;

	if (!window->n || end + step < window->first ||
	    sector > window->first + window->n + step) {
		*window = (struct range){ sector, 0 };
		step = n + FIRST_SECTORS;
	}
	if (sector < window->first) {
		window->n += window->first - sector;
		window->first = sector;
		step = step < sector ? step : sector;
		window->first -= step;
		window->n += step;
	}
	if (end > window->first + window->n)
		window->n = end + step - window->first;
}

/* Holds back the free sectors of the window.  Of a run that is longer than may
 * be held a part is taken: in the middle of free room the stretch could not be
 * passed otherwise. */
static void hold(struct files *files, const struct range *window)
{
	struct space *space = tree_space(files->fs->tree);
	struct rangeset *held = &files->stretch.held;
	uint64_t end = window->first + window->n, at = window->first, stop;
	struct space_counts counts;
	struct range run;
	unsigned runs;
	uint64_t most;

	space_count(space, &counts);
	most = counts.free > counts.reserved ?
		       (counts.free - counts.reserved) / HOLD_SHARE : 0;
	most -= most % BLOCK_SECTORS;

	for (runs = 0; runs < MAX_RUNS && at < end &&
	     rangeset_next(space_free_set(space), at, &run) &&
	     run.first < end; runs++) {
		at = run.first > at ? run.first : at;
		stop = run.first + run.n < end ? run.first + run.n : end;
		if (held->total >= most)
			return;
		if (stop - at > most - held->total)
			stop = at + (most - held->total);
		if (rangeset_add(held, at, stop - at))
			return;
		if (space_take(space, at, stop - at)) {
			rangeset_remove(held, at, stop - at);
			return;
		}
		at = stop;
	}
}

void bad_stretch_failed(struct files *files, uint64_t sector, uint64_t n)
{
	struct bad_stretch *stretch = &files->stretch;

	if (tree_failed(files->fs->tree) || files->fs->closing)
		return;
	window_widen(&stretch->window, sector, n);
	hold(files, &stretch->window);
	stretch->until_ns = env_now_ns(files->fs->env) + HOLD_NS;
	files_wake_at(files, stretch->until_ns);
}

bool bad_stretch_give_back(struct files *files)
{
	struct space *space = tree_space(files->fs->tree);
	struct bad_stretch *stretch = &files->stretch;
	bool any = stretch->held.count;
	struct range run;

	while (rangeset_next(&stretch->held, 0, &run)) {
		/* This removes whole ranges, which needs no memory. */
		rangeset_remove(&stretch->held, run.first, run.n);
		space_give_back(space, run.first, run.n);
	}
	stretch->window.n = 0;
	return any;
}

void bad_stretch_run(struct files *files, uint64_t now_ns)
{
	struct bad_stretch *stretch = &files->stretch;

	if (!stretch->window.n)
		return;
	if (now_ns >= stretch->until_ns)
		bad_stretch_give_back(files);
	else
		files_wake_at(files, stretch->until_ns);
}

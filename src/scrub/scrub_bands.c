/*
 * scrub_bands.c - the disk in bands, each read from its beginning to its end by
 * windows of its own, so that there are wanted sectors all over the disk at any
 * time.  A head that moves at random seldom passes over a single window, which
 * is small against the disk; with some hundred windows it finds most of what is
 * possible (traxbench sched pass).
 *
 * Loading a window costs reads of tree leaves, which must not disturb users.
 * It is done at once when few sectors are wanted, otherwise after a pause that
 * is a multiple of the time that the last window took.  Bands take turns in an
 * order that spreads the loaded windows evenly.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "base/units.h"
#include "fs/op/quiet.h"
#include "scrub/scrub_internal.h"

#define BAND_SECTORS_LEAST 131072u	/* 64 MiB */
#define RETRY_NS (60 * NS_PER_SECOND)	/* Pause after a lack of memory. */
#define SKIP_SECTORS 131072u		/* sectors passed over when a leaf with
					 * owners cannot be read: 64 MiB */
#define STORED_SECTORS CHUNK_SECTORS	/* unit of a stored cursor */
#define STORED_DONE UINT32_MAX

static uint64_t band_first(const struct scrub *scrub, unsigned i)
{
	return i * scrub->band_sectors;
}

/* ---- memory ---- */

static size_t memory_bytes(const struct scrub *scrub)
{
	return scrub->fs->budget.nodes / 8;
}

static size_t window_bytes(size_t runs, size_t chunks, size_t sums)
{
	return sizeof(struct scrub_window) +
	       runs * sizeof(struct scrub_extent) +
	       chunks * sizeof(struct scrub_sums) + sums * sizeof(uint32_t);
}

#define WINDOW_BYTES window_bytes(SCRUB_RUNS, SCRUB_CHUNKS, SCRUB_SUMS)

/* Makes a window; NULL: no memory. */
static struct scrub_window *window_new(size_t runs, size_t chunks, size_t sums)
{
	size_t bytes = window_bytes(runs, chunks, sums);
	struct scrub_window *w = calloc(1, bytes);

	if (!w)
		return NULL;
	w->bytes = bytes;
	w->run = (struct scrub_extent *)(w + 1);
	w->chunk = (struct scrub_sums *)(w->run + runs);
	w->sum = (uint32_t *)(w->chunk + chunks);
	return w;
}

/* Copies a window to one with room for its content only. */
static struct scrub_window *window_copy(const struct scrub_window *from)
{
	struct scrub_window *w =
		window_new(from->runs, from->chunks, from->sums);
	struct scrub_window arrays;
	uint32_t i;

	if (!w)
		return NULL;
	memcpy(w->run, from->run, from->runs * sizeof(*w->run));
	memcpy(w->chunk, from->chunk, from->chunks * sizeof(*w->chunk));
	memcpy(w->sum, from->sum, from->sums * sizeof(*w->sum));
	for (i = 0; i < from->chunks; i++)
		if (w->chunk[i].sum)
			w->chunk[i].sum = w->sum + (w->chunk[i].sum -
						    from->sum);
	arrays = *w;
	*w = *from;
	w->run = arrays.run;
	w->chunk = arrays.chunk;
	w->sum = arrays.sum;
	w->bytes = arrays.bytes;
	return w;
}

/* Number of bands: a power of two, for the order of turns. */
static unsigned scrub_bands_count(const struct scrub *scrub)
{
	size_t most = memory_bytes(scrub) / WINDOW_BYTES;
	unsigned n = 1;

	while (n < SCRUB_BANDS && n * 2 <= most &&
	       scrub->fs->disk->limits.sectors / BAND_SECTORS_LEAST >= n * 2)
		n *= 2;
	return n;
}

int scrub_bands_open(struct scrub *scrub)
{
	uint64_t sectors = scrub->fs->disk->limits.sectors;

	scrub->bands = scrub_bands_count(scrub);
	scrub->band_sectors = (sectors / scrub->bands / CHUNK_SECTORS + 1) *
			      CHUNK_SECTORS;
	scrub->band = calloc(scrub->bands, sizeof(*scrub->band));
	scrub->window = window_new(SCRUB_RUNS, SCRUB_CHUNKS, SCRUB_SUMS);
	if (!scrub->band || !scrub->window)
		return -ENOMEM;
	scrub_bands_rewind(scrub);
	return 0;
}

/* Frees the oldest window of a band. */
static void window_leave(struct scrub *scrub, struct scrub_band *band)
{
	struct scrub_window *w = band->first;

	band->first = w->next;
	band->windows--;
	scrub->windows_bytes -= w->bytes;
	free(w);
}

void scrub_bands_close(struct scrub *scrub)
{
	unsigned i;

	for (i = 0; scrub->band && i < scrub->bands; i++)
		while (scrub->band[i].first)
			window_leave(scrub, &scrub->band[i]);
	free(scrub->band);
	free(scrub->window);
}

/* ---- cursors ---- */

void scrub_bands_rewind(struct scrub *scrub)
{
	unsigned i;

	for (i = 0; i < scrub->bands; i++)
		scrub->band[i].cursor = scrub->band[i].loaded =
			band_first(scrub, i);
}

void scrub_bands_recall(struct scrub *scrub, const le32 *cursor, unsigned bands)
{
	uint64_t sectors = scrub->fs->disk->limits.sectors;
	uint64_t each = (sectors / bands / CHUNK_SECTORS + 1) * CHUNK_SECTORS;
	unsigned i;

	for (i = 0; i < scrub->bands; i++) {
		uint64_t at = band_first(scrub, i);
		uint64_t end = band_first(scrub, i + 1);
		uint64_t k, stored;

		/* All that follows it without a gap. */
		for (k = at / each; k < bands && at < end; k = at / each) {
			stored = le32_get(cursor[k]);
			if (stored != STORED_DONE &&
			    stored * STORED_SECTORS < (k + 1) * each) {
				if (stored * STORED_SECTORS > at)
					at = stored * STORED_SECTORS;
				break;
			}
			at = (k + 1) * each;
		}
		scrub->band[i].cursor = at < end && k < bands ? at : UINT64_MAX;
		scrub->band[i].loaded = scrub->band[i].cursor;
	}
}

void scrub_bands_put(const struct scrub *scrub, le32 *cursor)
{
	unsigned i;

	for (i = 0; i < scrub->bands; i++) {
		uint64_t at = scrub->band[i].cursor;

		/* An owner that goes on in the next band is begun again. */
		if (at != UINT64_MAX && at >= band_first(scrub, i + 1))
			at = band_first(scrub, i + 1) - STORED_SECTORS;
		cursor[i] = le32_put(at == UINT64_MAX ? STORED_DONE :
				     (uint32_t)(at / STORED_SECTORS));
	}
}

bool scrub_bands_done(const struct scrub *scrub)
{
	unsigned i;

	for (i = 0; i < scrub->bands; i++)
		if (scrub->band[i].cursor != UINT64_MAX)
			return false;
	return true;
}

uint64_t scrub_bands_read_sectors(const struct scrub *scrub)
{
	const struct scrub_window *w;
	uint64_t sectors = 0;
	unsigned i;

	for (i = 0; i < scrub->bands; i++)
		for (w = scrub->band[i].first; w; w = w->next)
			sectors += w->sectors - w->left;
	return sectors;
}

/* ---- windows ---- */

/* Frees windows of a band that have ended.  Their sectors are not counted for
 * this: if room has changed hands during a pass, sectors may be in windows of
 * two bands, and wanted by both. */
static void windows_over(struct scrub *scrub, struct scrub_band *band)
{
	struct scrub_window *w;

	while ((w = band->first) && w->arrived) {
		w->arrived = false;
		if (freeblock_wants(scrub->task, w->from, w->end - w->from))
			return;
		scrub_verify_rest(scrub, w);
		scrub->done_sectors += w->sectors;
		scrub->moved = true;
		band->cursor = w->last ? UINT64_MAX : w->end;
		window_leave(scrub, band);
	}
}

/* Passes over the sectors of a leaf that cannot be read: their owners are not
 * known. */
static void window_skip(struct scrub *scrub, struct scrub_window *w)
{
	if (w->end < w->from + SKIP_SECTORS)
		w->end = w->from + SKIP_SECTORS;
	msg_error("%s: scrub: what lies behind sector %llu cannot be looked "
		  "up; %llu sectors are left out", scrub->fs->disk->name,
		  (unsigned long long)w->from,
		  (unsigned long long)(w->end - w->from));
	w->last = w->end >= w->limit;
	w->runs = w->chunks = w->sums = 0;
	w->sectors = 0;
}

static void window_want(struct scrub *scrub, struct scrub_window *w)
{
	uint64_t wanted = freeblock_wanted(scrub->task);
	int err = 0;
	uint32_t i;

	for (i = 0; i < w->runs && !err; i++)
		err = freeblock_want(scrub->task, w->run[i].sector,
				     w->run[i].n);
	w->left = freeblock_wanted(scrub->task) - wanted;
	w->arrived = true;
	if (err)
		msg_warn("%s: scrub: %s", scrub->fs->disk->name,
			 strerror(-err));
}

void scrub_bands_loaded(struct scrub *scrub, int rc)
{
	struct scrub_band *band = &scrub->band[scrub->turn];
	uint64_t now_ns = env_now_ns(scrub->fs->env);
	uint64_t pause_ns = (now_ns - scrub->load_begun_ns) *
			    FREEBLOCK_LOAD_PART;
	struct scrub_window *w = NULL, **at = &band->first;

	scrub->loading = false;
	scrub->load_ns = now_ns + (pause_ns < FREEBLOCK_PAUSE_NS ?
				   pause_ns : FREEBLOCK_PAUSE_NS);
	if (scrub->closing)
		return;
	if (rc && rc != -ENOMEM)
		window_skip(scrub, scrub->window);
	if (rc != -ENOMEM)
		w = window_copy(scrub->window);
	if (!w) {
		scrub->retry_ns = now_ns + RETRY_NS;
		return;
	}
	while (*at)
		at = &(*at)->next;
	*at = w;
	band->windows++;
	band->loaded = w->last ? UINT64_MAX : w->end;
	scrub->windows_bytes += w->bytes;
	window_want(scrub, w);
}

static void window_load(struct scrub *scrub, unsigned i)
{
	struct scrub_window *w = scrub->window;

	w->from = w->end = scrub->band[i].loaded;
	w->limit = band_first(scrub, i + 1);
	w->runs = w->chunks = w->sums = 0;
	w->sectors = 0;
	w->last = false;
	scrub->turn = i;
	scrub->loading = true;
	scrub->load_begun_ns = env_now_ns(scrub->fs->env);
	scrub_load_start(scrub);
}

/* Chooses the next band in turn among those with the fewest windows; `bands`:
 * nothing is to be loaded. */
static unsigned next_turn(const struct scrub *scrub)
{
	/* Odd, so that it comes round to all, and about the golden section. */
	unsigned step = scrub->bands * 5 / 8 | 1, i = scrub->turn, n;
	unsigned best = scrub->bands;

	for (n = 0; n < scrub->bands; n++) {
		i = (i + step) % scrub->bands;
		if (scrub->band[i].loaded != UINT64_MAX &&
		    (best == scrub->bands ||
		     scrub->band[i].windows < scrub->band[best].windows))
			best = i;
	}
	return best;
}

uint64_t scrub_bands_run(struct scrub *scrub)
{
	uint64_t now_ns = env_now_ns(scrub->fs->env);
	unsigned i;

	for (i = 0; i < scrub->bands; i++)
		windows_over(scrub, &scrub->band[i]);
	i = next_turn(scrub);
	if (scrub->loading || i == scrub->bands ||
	    scrub->suspects > SCRUB_SUSPECTS / 2 || fs_may_sleep(scrub->fs) ||
	    (scrub->windows_bytes &&
	     scrub->windows_bytes + WINDOW_BYTES > memory_bytes(scrub)))
		return UINT64_MAX;
	if (freeblock_wanted(scrub->task) >= FREEBLOCK_FEW_SECTORS &&
	    now_ns < scrub->load_ns)
		return scrub->load_ns;
	window_load(scrub, i);
	return now_ns;
}

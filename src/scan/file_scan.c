/*
 * file_scan.c - scans: their files, changes of these, and the end.
 */
#include "scan/scan_internal.h"

#include <errno.h>
#include <stdlib.h>

/* All scans together may take a fourth of the memory for nodes, but at least
 * MEMORY_LEAST each. */
#define MEMORY_SHARE (4u * FILE_SCANS_MOST)
#define MEMORY_LEAST (4u << 20)
/* Reads at a time, for the last part of a scan. */
#define PROMOTED_DEPTH 2u

/* ---- files ---- */

static void run_free(struct scan_run *run)
{
	struct file_scan *scan = run->file->scan;

	interval_remove(&scan->runs, &run->at);
	scan->bytes -= run->bytes;
	list_del(&run->link);
	free(run);
}

static bool is_other(const struct interval *at, const void *arg)
{
	return at != arg;
}

/* Takes the sectors of a run out of the wanted set, but for those that have
 * become another file's. */
static void run_unwant(struct scan_run *run)
{
	struct file_scan *scan = run->file->scan;

	if (!interval_any(scan->runs, run->at.first, run->at.end, is_other,
			  &run->at))
		freeblock_unwant(scan->task, run->at.first,
				 run->at.end - run->at.first);
}

/* Frees everything that is known of a file's place on the disk. */
static void file_unload(struct scan_file *file)
{
	struct file_scan *scan = file->scan;
	struct scan_run *run;

	scan_load_drop(scan, file);
	scan_slow_drop(scan, file);
	scan_arrive_drop(scan, file);
	file->slow = 0;
	while ((run = list_first(&file->runs, struct scan_run, link))) {
		run_unwant(run);
		run_free(run);
	}
	while ((run = list_first(&file->over, struct scan_run, link)))
		run_free(run);
	list_del(&file->touched);
}

static void file_free(struct scan_file *file)
{
	struct file_scan *scan = file->scan;

	file_unload(file);
	hashmap_del(scan->by_ino, file->ino);
	list_del(&file->link);
	scan->bytes -= sizeof(*file);
	free(file);
}

/* Removes a file from the scan because the records given of it are void. rc 0:
 * it has changed. */
static void scan_file_void(struct scan_file *file, int rc)
{
	struct file_scan *scan = file->scan;
	struct scan_record head = {
		.type = SCAN_CHANGED, .error = rc, .ino = file->ino,
	};

	/* Without memory for the record the scan cannot go on. */
	if (scan_give(scan, &head, NULL))
		scan->failed = true;
	scan->changed_files++;
	file_free(file);
}

static void file_whole(struct scan_file *file)
{
	struct file_scan *scan = file->scan;
	struct scan_record head = {
		.type = SCAN_WHOLE, .ino = file->ino, .offset = file->size,
	};

	if (scan_give(scan, &head, NULL)) {
		scan_file_void(file, -ENOMEM);
		return;
	}
	scan->whole_files++;
	file_free(file);
}

void scan_sweep(struct file_scan *scan)
{
	struct scan_file *file;
	struct scan_run *run;

	while ((file = list_first(&scan->touched, struct scan_file,
				  touched))) {
		list_del(&file->touched);
		while ((run = list_first(&file->over, struct scan_run, link)))
			run_free(run);
		if (file->failed)
			scan_file_void(file, file->failed);
		else if (file->begun && !file->strands && !file->slow &&
			 list_empty(&file->runs))
			file_whole(file);
	}
}

static int first_strand(struct scan_file *file)
{
	struct file_scan *scan = file->scan;
	struct scan_strand *strand = malloc(sizeof(*strand));

	if (!strand)
		return -ENOMEM;
	*strand = (struct scan_strand){ .file = file, .end = 1 };
	list_add(&scan->strands, &strand->link);
	scan->bytes += sizeof(*strand);
	file->strands++;
	return 0;
}

/* Begins a file anew that has changed before any record of it was given. */
static int file_again(struct scan_file *file)
{
	file_unload(file);
	file->begun = false;
	file->tries++;
	return first_strand(file);
}

static void scan_changed(struct content_watch *watch, uint64_t ino,
			 bool gone)
{
	struct file_scans *scans =
		container_of(watch, struct file_scans, watch);
	struct scan_file *file;
	struct list *pos;

	list_for_each(pos, &scans->all) {
		struct file_scan *scan =
			list_entry(pos, struct file_scan, link);

		file = hashmap_get(scan->by_ino, ino);
		if (file && gone)
			scan_file_void(file, -ENOENT);
		else if (!file || !file->begun)
			continue;
		else if (file->sent || file->tries >= SCAN_TRIES ||
			 file_again(file))
			scan_file_void(file, 0);
	}
}

int file_scan_add(struct file_scan *scan, uint64_t ino)
{
	struct scan_file *file;

	if (scan->sealed)
		return -EINVAL;
	if (hashmap_get(scan->by_ino, ino))
		return -EEXIST;
	if (scan->bytes > scan->options.memory_bytes / 2 ||
	    !scan_give_room(scan))
		return -EAGAIN;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->scan = scan;
	file->ino = ino;
	list_init(&file->runs);
	list_init(&file->over);
	list_init(&file->touched);
	if (first_strand(file) || hashmap_put(scan->by_ino, ino, file)) {
		scan_load_drop(scan, file);
		free(file);
		return -ENOMEM;
	}
	list_add(&scan->files, &file->link);
	scan->bytes += sizeof(*file);
	return 0;
}

/* ---- scans ---- */

static void scan_lists(struct file_scan *scan)
{
	list_init(&scan->files);
	list_init(&scan->strands);
	list_init(&scan->parts);
	list_init(&scan->slow);
	list_init(&scan->touched);
	list_init(&scan->queue);
}

static unsigned scans_open(const struct file_scans *scans)
{
	struct list *pos;
	unsigned n = 0;

	list_for_each(pos, &scans->all)
		n += !list_entry(pos, struct file_scan, link)->ended;
	return n;
}

static size_t memory_bytes(const struct fs *fs)
{
	size_t bytes = fs->budget.nodes / MEMORY_SHARE;

	return bytes > MEMORY_LEAST ? bytes : MEMORY_LEAST;
}

int file_scan_begin(struct file_scans *scans,
		    const struct file_scan_options *options,
		    struct file_scan **out)
{
	struct fs *fs = scans->fs;
	struct freeblock_options free_options = { .name = "file scan" };
	struct file_scan *scan;
	int rc;

	if (scans_open(scans) >= FILE_SCANS_MOST)
		return -EBUSY;
	scan = calloc(1, sizeof(*scan));
	if (!scan)
		return -ENOMEM;
	scan->scans = scans;
	scan->options = *options;
	if (!scan->options.memory_bytes)
		scan->options.memory_bytes = memory_bytes(fs);
	scan->id = ++scans->made;
	scan->begun_ns = env_now_ns(fs->env);
	if (options->free_space) {
		scan->sealed = true;
		scan_free_begin(scan);
	}
	scan_lists(scan);
	scan->by_ino = hashmap_new();
	rc = scan->by_ino ? freeblock_open(fs->queue, &free_options,
					   &scan_arrive_ops, scan,
					   &scan->task) : -ENOMEM;
	if (rc) {
		if (scan->by_ino)
			hashmap_free(scan->by_ino);
		free(scan);
		return rc;
	}
	list_add(&scans->all, &scan->link);
	fs->content_watch = &scans->watch;
	*out = scan;
	return 0;
}

static bool scan_busy(const struct file_scan *scan)
{
	return scan->load.busy || scan->slow_read.busy || scan->free.loading;
}

static void scan_free(struct file_scan *scan)
{
	freeblock_close(scan->task);
	hashmap_free(scan->by_ino);
	list_del(&scan->link);
	if (list_empty(&scan->scans->all))
		scan->scans->fs->content_watch = NULL;
	free(scan);
}

/* Drops all files without records about them. */
static void drop_files(struct file_scan *scan)
{
	struct scan_file *file;

	while ((file = list_first(&scan->files, struct scan_file, link)))
		file_free(file);
}

static void drop_queue(struct file_scan *scan)
{
	struct scan_queued *queued;

	while ((queued = list_first(&scan->queue, struct scan_queued, link))) {
		list_del(&queued->link);
		free(queued);
	}
	scan->queue_bytes = 0;
}

/* The scan is freed when nothing of it is under way. */
void file_scan_end(struct file_scan *scan)
{
	scan->ended = true;
	drop_files(scan);
	drop_queue(scan);
	freeblock_pause(scan->task, true);
}

void file_scan_seal(struct file_scan *scan)
{
	scan->sealed = true;
}

void file_scan_pause(struct file_scan *scan, bool paused)
{
	uint64_t now_ns = env_now_ns(scan->scans->fs->env);

	if (scan->paused == paused)
		return;
	scan->paused = paused;
	if (paused)
		scan->paused_since_ns = now_ns;
	else
		scan->paused_ns += now_ns - scan->paused_since_ns;
	freeblock_pause(scan->task, scan->paused || scan->blocked);
}

void file_scan_promote(struct file_scan *scan, unsigned depth)
{
	scan->promoted = depth;
	freeblock_promote(scan->task, depth);
}

uint64_t file_scan_id(const struct file_scan *scan)
{
	return scan->id;
}

struct file_scan *file_scan_at(struct file_scans *scans, unsigned i)
{
	struct list *pos;

	list_for_each(pos, &scans->all) {
		struct file_scan *scan =
			list_entry(pos, struct file_scan, link);

		if (!scan->ended && !i--)
			return scan;
	}
	return NULL;
}

static enum scan_state state_of(const struct file_scan *scan)
{
	if (scan->failed)
		return SCAN_FAILED;
	if (scan->ended || scan->over_said)
		return SCAN_ENDED;
	if (scan->paused)
		return SCAN_PAUSED;
	return scan->blocked ? SCAN_BLOCKED : SCAN_RUNNING;
}

void file_scan_get_status(const struct file_scan *scan,
			  struct scan_status *status)
{
	uint64_t until_ns = scan->paused ? scan->paused_since_ns :
					   env_now_ns(scan->scans->fs->env);
	struct freeblock_stats stats;

	freeblock_get_stats(scan->scans->fs->queue, scan->task, &stats);
	*status = (struct scan_status){
		.id = scan->id,
		.state = state_of(scan),
		.promoted = scan->promoted,
		.files = hashmap_count(scan->by_ino),
		.whole_files = scan->whole_files,
		.changed_files = scan->changed_files,
		.given_bytes = scan->given_bytes,
		.total_bytes = scan->options.total_bytes,
		.wanted_bytes = freeblock_wanted(scan->task) * SECTOR_BYTES,
		.run_ns = until_ns - scan->begun_ns - scan->paused_ns,
		.gap_bytes = stats.gap_sectors * SECTOR_BYTES,
		.idle_bytes = stats.idle_sectors * SECTOR_BYTES,
		.promoted_bytes = stats.promoted_sectors * SECTOR_BYTES,
		.passed_bytes = stats.passed_sectors * SECTOR_BYTES,
	};
}

/* ---- what is due ---- */

/* Has everything of all files, or of the free space, been given? */
static bool scan_is_through(const struct file_scan *scan)
{
	if (scan->options.free_space)
		return scan_free_all(scan) && !scan->free.loading &&
		       !freeblock_wanted(scan->task);
	return scan->sealed && list_empty(&scan->files);
}

/* Has enough of a sample been given, or everything? */
static bool scan_is_over(const struct file_scan *scan)
{
	const struct file_scan_options *o = &scan->options;

	return scan_is_through(scan) ||
	       (o->sample_bytes && scan->given_bytes >= o->sample_bytes);
}

static void scan_over(struct file_scan *scan)
{
	const struct scan_record head = { .type = SCAN_OVER };

	if (scan->over_said || scan_give(scan, &head, NULL))
		return;
	scan->over_said = true;
	drop_files(scan);
}

static void promote_last(struct file_scan *scan)
{
	const struct file_scan_options *o = &scan->options;

	if (!scan->promoted && o->last_bytes &&
	    scan->given_bytes + o->last_bytes >= o->total_bytes)
		file_scan_promote(scan, PROMOTED_DEPTH);
}

/* Stops reading while the program does not take the records. */
static void block_or_not(struct file_scan *scan)
{
	bool blocked = !scan_give_room(scan);

	if (blocked == scan->blocked)
		return;
	scan->blocked = blocked;
	freeblock_pause(scan->task, scan->paused || scan->blocked);
}

static uint64_t scan_run(struct file_scan *scan)
{
	uint64_t next_ns;

	block_or_not(scan);
	if (scan_is_over(scan)) {
		scan_over(scan);
		return UINT64_MAX;
	}
	promote_last(scan);
	scan_slow_next(scan);
	next_ns = scan->options.free_space ? scan_free_next(scan) :
					     scan_load_next(scan);
	/* What was begun has to reach the disk. */
	return next_ns ? next_ns : env_now_ns(scan->scans->fs->env);
}

uint64_t file_scans_run(struct file_scans *scans)
{
	uint64_t next_ns = UINT64_MAX, ns;
	struct list *pos, *next;

	list_for_each_safe(pos, next, &scans->all) {
		struct file_scan *scan =
			list_entry(pos, struct file_scan, link);

		if (scan->ended && !scan_busy(scan)) {
			scan_free(scan);
			continue;
		}
		ns = scan->ended || scan->failed ? UINT64_MAX : scan_run(scan);
		next_ns = ns < next_ns ? ns : next_ns;
	}
	return next_ns;
}

int file_scans_open(struct fs *fs, struct file_scans **out)
{
	struct file_scans *scans = calloc(1, sizeof(*scans));

	if (!scans)
		return -ENOMEM;
	scans->fs = fs;
	scans->watch.changed = scan_changed;
	list_init(&scans->all);
	*out = scans;
	return 0;
}

void file_scans_close(struct file_scans *scans)
{
	struct list *pos;

	if (!scans)
		return;
	list_for_each(pos, &scans->all)
		file_scan_end(list_entry(pos, struct file_scan, link));
	file_scans_run(scans);
	while (!list_empty(&scans->all) && !scans->fs->disk_gone) {
		uint64_t next_ns = fs_run(scans->fs, 0);

		file_scans_run(scans);
		if (!list_empty(&scans->all))
			fs_sleep(scans->fs, next_ns);
	}
	while (!list_empty(&scans->all))
		scan_free(list_entry(scans->all.next, struct file_scan, link));
	free(scans);
}

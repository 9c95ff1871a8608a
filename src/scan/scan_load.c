/*
 * scan_load.c - where the data of the files lies, and its checksums.
 *
 * Files are loaded in strands: a large one in several, which take turns, so
 * that what is wanted lies all over the disk.  A load takes one strand: the
 * file's dirty data is written back first, then one transaction after the
 * other looks up extents and checksums.
 *
 * Reading leaves costs users time, so a load is followed by a pause that is a
 * multiple of it, unless little is wanted.
 */
#include "fs/data/file.h"
#include "fs/data/bmap.h"
#include "fs/data/file_sync.h"
#include "scan/scan_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_NS UINT64_C(1000000000)	/* pause after a lack of memory, or
					 * while data stays dirty */
/* Blocks of a strand of a large file, and how many strands a file has at most;
 * the strands of a larger file are longer. */
#define STRAND_BLOCKS 8192u	/* 32 MiB */
#define STRANDS_MOST 64u

static struct file_scan *scan_of(struct scan_load *load)
{
	return container_of(load, struct file_scan, load);
}

/* ---- runs ---- */

static size_t run_bytes(const struct file_scan *scan, unsigned blocks)
{
	return sizeof(struct scan_run) + blocks * sizeof(uint32_t) +
	       (scan->options.file_order ? blocks * BLOCK_BYTES : 0);
}

/* Makes a run of `n` sectors at `sector`, from `off` of the file on, whose
 * blocks all have checksums in load->csums. */
static struct scan_run *run_new(struct scan_load *load, uint64_t sector,
				uint64_t off, uint64_t n)
{
	struct file_scan *scan = scan_of(load);
	uint64_t first = off / BLOCK_SECTORS;
	unsigned blocks = (unsigned)((off + n - 1) / BLOCK_SECTORS - first + 1);
	size_t bytes = run_bytes(scan, blocks);
	struct scan_run *run = calloc(1, bytes), *last;
	unsigned i, at;

	if (!run)
		return NULL;
	run->at.first = sector;
	run->at.end = sector + n;
	run->at.order = ++scan->runs_made;
	run->file = load->strand->file;
	run->off = off;
	run->first = first;
	run->blocks = blocks;
	run->bytes = bytes;
	if (scan->options.file_order)
		run->data = (uint8_t *)&run->sum[blocks];
	for (i = 0; i < blocks; i++) {
		at = (unsigned)((first + i) % TRAX_CSUM_WINDOW_BLOCKS);
		run->sum[i] = load->csums.sum[at / CHUNK_BLOCKS]
					     [at % CHUNK_BLOCKS];
	}
	run->own = blocks < 64 ? (UINT64_C(1) << blocks) - 1 : UINT64_MAX;
	/* A block that begins in the run before belongs to that one. */
	last = list_empty(&load->runs) ? NULL :
		list_entry(load->runs.prev, struct scan_run, link);
	if (off % BLOCK_SECTORS && last)
		run->own &= ~UINT64_C(1);
	return run;
}

static bool has_sum(const struct scan_load *load, uint64_t sector)
{
	unsigned at = (unsigned)(sector / BLOCK_SECTORS %
				 TRAX_CSUM_WINDOW_BLOCKS);

	return load->csums.mask[at / CHUNK_BLOCKS] >> at % CHUNK_BLOCKS & 1;
}

/* Makes the runs of [from, end) of the file, within a window, which begins at
 * `sector`. */
static int add_runs(struct scan_load *load, uint64_t sector, uint64_t from,
		    uint64_t end)
{
	uint64_t at = from, to;
	struct scan_run *run;

	for (; at < end; at = to) {
		to = (at / BLOCK_SECTORS + 1) * BLOCK_SECTORS;
		while (to < end && has_sum(load, to) == has_sum(load, at))
			to += BLOCK_SECTORS;
		to = to < end ? to : end;
		if (!has_sum(load, at))
			continue;
		run = run_new(load, sector + (at - from), at, to - at);
		if (!run)
			return -ENOMEM;
		list_add(&load->runs, &run->link);
	}
	return 0;
}

/* ---- the transaction ---- */

static int load_window(struct fs_txn *txn, struct scan_load *load)
{
	uint64_t window = load->sector / BLOCK_SECTORS /
			  TRAX_CSUM_WINDOW_BLOCKS;
	int rc;

	if (load->window == window)
		return 0;
	load->window = UINT64_MAX;
	rc = bmap_window(txn, load->file->ino, window, &load->csums);
	if (!rc)
		load->window = window;
	return rc;
}

/* Looks up the data at load->sector, to the end of its window or extent. */
static int load_extent(struct fs_txn *txn, struct scan_load *load)
{
	const uint64_t each = TRAX_CSUM_WINDOW_BLOCKS * BLOCK_SECTORS;
	uint64_t end = load->end * BLOCK_SECTORS, to;
	struct extent extent;
	int rc = bmap_extent(txn, load->file->ino, load->sector, &extent);

	if (rc == -ENOENT || (!rc && extent.off >= end)) {
		load->sector = end;
		return 0;
	}
	if (rc)
		return rc;
	if (extent.off > load->sector)
		load->sector = extent.off;
	to = extent.off + extent.n;
	if (extent.flags & EXTENT_UNWRITTEN) {
		load->sector = to < end ? to : end;
		return 0;
	}
	rc = load_window(txn, load);
	if (rc)
		return rc;
	to = to < end ? to : end;
	if (to > (load->sector / each + 1) * each)
		to = (load->sector / each + 1) * each;
	rc = add_runs(load, addr_sector(extent.addr) +
		      (load->sector - extent.off), load->sector, to);
	if (!rc)
		load->sector = to;
	return rc;
}

static int load_run(struct fs_txn *txn)
{
	struct scan_load *load = txn->state;
	int rc = 0;

	while (!rc && load->strand &&
	       load->sector < load->end * BLOCK_SECTORS &&
	       tree_txn_room(txn->tree_txn) >= 2 * TRAX_MAX_LEVEL)
		rc = load_extent(txn, load);
	return rc;
}

static void load_over(struct scan_load *load, int rc);

static void load_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct scan_load *load = txn->state;

	(void)seq;
	if (!rc && load->strand && load->sector < load->end * BLOCK_SECTORS) {
		fs_txn_restart(txn);
		return;
	}
	fs_txn_finish(txn, 0);
	load_over(load, rc);
}

static const struct fs_txn_type load_type = {
	.name = "load for file scan",
	.bounds = { .nodes = 48 },
	.stages = 60,
	.run = load_run,
	.end = load_end,
};

/* ---- the end of a load ---- */

static void strand_free(struct scan_strand *strand)
{
	strand->file->strands--;
	strand->file->scan->bytes -= sizeof(*strand);
	list_del(&strand->link);
	free(strand);
}

static void drop_runs(struct list *runs)
{
	struct scan_run *run;

	while ((run = list_first(runs, struct scan_run, link))) {
		list_del(&run->link);
		free(run);
	}
}

static void want_runs(struct file_scan *scan, struct scan_file *file)
{
	struct scan_run *run;

	while ((run = list_first(&scan->load.runs, struct scan_run, link))) {
		list_del(&run->link);
		list_add(&file->runs, &run->link);
		interval_insert(&scan->runs, &run->at);
		scan->bytes += run->bytes;
		if (freeblock_want(scan->task, run->at.first,
				   run->at.end - run->at.first))
			scan_file_touch(file, -ENOMEM);
	}
}

/* Puts a strand back that goes on later: in file order as the first one. */
static void strand_back(struct file_scan *scan, struct scan_strand *strand)
{
	if (scan->options.file_order && strand->file->begun)
		list_add_front(&scan->strands, &strand->link);
	else
		list_add(&scan->strands, &strand->link);
}

/* A strand that could not be loaded. */
static void strand_failed(struct file_scan *scan, struct scan_strand *strand,
			  int rc)
{
	struct scan_file *file = strand->file;

	if (rc != -ENOMEM && rc != -EBUSY) {
		strand_free(strand);
		scan_file_touch(file, rc);
		return;
	}
	scan->retry_ns = env_now_ns(scan->scans->fs->env) + RETRY_NS;
	strand_back(scan, strand);
	if (file->tries++ >= SCAN_TRIES)
		scan_file_touch(file, rc);
}

/* The strand's data up to load->end is in load->runs. */
static void strand_loaded(struct file_scan *scan, struct scan_strand *strand)
{
	scan_file_touch(strand->file, 0);
	want_runs(scan, strand->file);
	strand->at = scan->load.end;
	if (strand->at < strand->end)
		strand_back(scan, strand);
	else
		strand_free(strand);
}

static void load_over(struct scan_load *load, int rc)
{
	struct file_scan *scan = scan_of(load);
	struct scan_strand *strand = load->strand;
	uint64_t now_ns = env_now_ns(scan->scans->fs->env);
	uint64_t pause_ns = (now_ns - load->begun_ns) * FREEBLOCK_LOAD_PART;

	load->busy = false;
	load->strand = NULL;
	if (load->file)
		file_put(load->file);
	scan->load_ns = now_ns + (pause_ns < FREEBLOCK_PAUSE_NS ?
				  pause_ns : FREEBLOCK_PAUSE_NS);
	if (strand && !rc)
		strand_loaded(scan, strand);
	else if (strand)
		strand_failed(scan, strand, rc);
	drop_runs(&load->runs);
	scan_sweep(scan);
}

/* ---- the beginning ---- */

/* Cuts the first strand of a file, whose length is known now. */
static int cut_strands(struct file_scan *scan, struct scan_strand *strand)
{
	uint64_t blocks = (strand->file->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	uint64_t n = blocks / STRAND_BLOCKS, i, each;
	struct scan_strand *more;

	n = n > STRANDS_MOST ? STRANDS_MOST : n;
	if (scan->options.file_order || n < 2) {
		strand->end = blocks;
		return 0;
	}
	/* A strand begins with a window of checksums. */
	each = (blocks / n / TRAX_CSUM_WINDOW_BLOCKS + 1) *
	       TRAX_CSUM_WINDOW_BLOCKS;
	strand->end = each;
	for (i = 1; i * each < blocks; i++) {
		more = malloc(sizeof(*more));
		if (!more)
			return -ENOMEM;
		*more = (struct scan_strand){
			.file = strand->file, .at = i * each,
			.end = (i + 1) * each < blocks ? (i + 1) * each :
							 blocks,
		};
		list_add(&scan->strands, &more->link);
		strand->file->strands++;
		scan->bytes += sizeof(*more);
	}
	return 0;
}

/* Begins a file: all of its data has a place, and changes from now on are
 * noticed. */
static int file_begin(struct file_scan *scan, struct scan_load *load)
{
	struct scan_file *file = load->strand->file;

	file->begun = true;
	file->size = load->file->size;
	if (load->file->has_inline && file->size)
		scan_slow_add(file, NULL, 0);
	return cut_strands(scan, load->strand);
}

static void load_synced(struct sync *sync, int rc);

static void load_step(struct scan_load *load)
{
	struct file_scan *scan = scan_of(load);
	const unsigned most = scan->options.file_order ?
				      SCAN_LOAD_ORDER_BLOCKS : SCAN_LOAD_BLOCKS;
	int rc = file_lock_shared(load->file, &load->lock);

	if (rc == FS_TXN_WAIT)
		return;
	if (!rc && load->strand && !load->strand->file->begun) {
		if (!sync_is_over(load->file) && !load->synced) {
			load->synced = true;
			sync_start(scan->scans->fs->files, &load->sync);
			return;
		}
		rc = sync_is_over(load->file) ? file_begin(scan, load) : -EBUSY;
	}
	if (rc || !load->strand) {
		load_over(load, rc);
		return;
	}
	load->at = load->strand->at;
	load->end = load->strand->end;
	if (load->end > load->at + most)
		load->end = load->at + most;
	load->sector = load->at * BLOCK_SECTORS;
	load->window = UINT64_MAX;
	if (load->file->has_inline || load->at == load->end)
		load_over(load, 0);
	else if (fs_txn_start(scan->scans->fs, &load_type, NULL, load))
		load_over(load, -ENOMEM);
}

static void load_synced(struct sync *sync, int rc)
{
	struct scan_load *load = container_of(sync, struct scan_load, sync);

	if (rc)
		load_over(load, rc);
	else
		load_step(load);
}

static void load_granted(struct shared_lock *lock)
{
	load_step(container_of(lock, struct scan_load, lock));
}

static void load_start(struct file_scan *scan)
{
	struct scan_load *load = &scan->load;
	struct scan_strand *strand =
		list_first(&scan->strands, struct scan_strand, link);

	list_del(&strand->link);
	*load = (struct scan_load){
		.busy = true,
		.strand = strand,
		.lock.granted = load_granted,
		.sync.done = load_synced,
		.begun_ns = env_now_ns(scan->scans->fs->env),
		.file = file_get(scan->scans->fs, strand->file->ino),
	};
	load->sync.file = load->file;
	list_init(&load->lock.link);
	list_init(&load->runs);
	if (load->file)
		load_step(load);
	else
		load_over(load, -ENOMEM);
}

uint64_t scan_load_next(struct file_scan *scan)
{
	const unsigned most = scan->options.file_order ?
				      SCAN_LOAD_ORDER_BLOCKS : SCAN_LOAD_BLOCKS;
	uint64_t now_ns = env_now_ns(scan->scans->fs->env);

	if (scan->load.busy || list_empty(&scan->strands) || scan->paused)
		return UINT64_MAX;
	if (scan->runs && scan->bytes + run_bytes(scan, most) >
				  scan->options.memory_bytes)
		return UINT64_MAX;
	if (now_ns < scan->retry_ns)
		return scan->retry_ns;
	if (freeblock_wanted(scan->task) >= FREEBLOCK_FEW_SECTORS &&
	    now_ns < scan->load_ns)
		return scan->load_ns;
	load_start(scan);
	return 0;
}

void scan_load_drop(struct file_scan *scan, const struct scan_file *file)
{
	struct list *pos, *next;

	list_for_each_safe(pos, next, &scan->strands)
		if (list_entry(pos, struct scan_strand, link)->file == file)
			strand_free(list_entry(pos, struct scan_strand, link));
	if (scan->load.strand && scan->load.strand->file == file) {
		strand_free(scan->load.strand);
		scan->load.strand = NULL;
	}
}

/*
 * scrub_load.c - loads a window: owners in order of address, then the checksums
 * of those of data, some leaves a transaction.  A window ends with its band, or
 * when one of its arrays is full.  An owner belongs to the band in which it
 * begins.
 */
#include <errno.h>
#include <string.h>

#include "scrub/scrub_internal.h"

static bool is_read(const struct owner_item *owner)
{
	return owner->kind != OWNER_BAD;
}

/* Cuts a run to the chunks that the window has room for. */
static void run_cut(const struct scrub_window *w, struct scrub_extent *run)
{
	uint64_t most = (uint64_t)(SCRUB_CHUNKS - w->chunks) * CHUNK_SECTORS -
			run->off % CHUNK_SECTORS;

	if (run->n > most)
		run->n = most;
}

uint32_t scrub_load_chunks(const struct scrub_extent *run)
{
	return (uint32_t)((run->off + run->n - 1) / CHUNK_SECTORS -
			  run->off / CHUNK_SECTORS + 1);
}

/* Adds an owner, from the cursor on; false: the window is full. */
static bool window_add(struct scrub_window *w, uint64_t sector,
		       const struct owner_item *owner)
{
	struct scrub_extent run = {
		.sector = sector,
		.n = le64_get(owner->sectors),
		.kind = owner->kind,
		.ino = le64_get(owner->ino),
		.off = le64_get(owner->off),
		.chunk = w->chunks,
	};

	if (sector < w->end) {
		if (sector + run.n <= w->end)
			return true;
		run.n -= w->end - sector;
		run.off += w->end - sector;
		run.sector = w->end;
	}
	if (w->runs == SCRUB_RUNS || w->chunks == SCRUB_CHUNKS)
		return false;
	if (run.kind == OWNER_DATA) {
		run_cut(w, &run);
		w->chunks += scrub_load_chunks(&run);
	}
	w->run[w->runs++] = run;
	w->sectors += run.n;
	w->end = run.sector + run.n;
	return w->end == sector + le64_get(owner->sectors);
}

static int load_owner(struct fs_txn *txn, struct scrub *scrub,
		      uint64_t sector, const struct owner_item *owner)
{
	uint64_t end = sector + le64_get(owner->sectors);

	if (owner->kind == OWNER_REPLICA)
		return end > scrub->window->end ?
			       scrub_replicas_load(txn, scrub, sector, end) : 0;
	return window_add(scrub->window, sector, owner) ? 0 : -ENOSPC;
}

/* Adds the owner that begins before the cursor and reaches beyond it, if it
 * belongs to this band. */
static int load_first(struct fs_txn *txn, struct scrub *scrub)
{
	struct scrub_window *w = scrub->window;
	struct tree_item item;
	int rc;

	if (scrub->region_end)
		return scrub_replicas_load(txn, scrub, scrub->region_from,
				   scrub->region_end);
	if (w->runs || w->from + scrub->band_sectors == w->limit)
		return 0;
	rc = tree_seek_le(txn->tree_txn,
			  key_make(0, ITEM_OWNER, addr_make(0, w->from - 1)),
			  key_make(0, ITEM_OWNER, 0), &item);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	return is_read(item.value) ?
		       load_owner(txn, scrub, addr_sector(item.key.off),
				  item.value) : 0;
}

static int load_owners(struct fs_txn *txn, struct scrub *scrub)
{
	struct scrub_window *w = scrub->window;
	struct tree_item item;
	int rc = load_first(txn, scrub);

	while (!rc && tree_txn_room(txn->tree_txn) >= TREE_SEEK_NODES) {
		w->last = w->end >= w->limit;
		if (w->last)
			return 0;
		rc = tree_seek_ge(txn->tree_txn,
				  key_make(0, ITEM_OWNER,
					   addr_make(0, w->end)),
				  key_make(0, ITEM_OWNER,
					   addr_make(0, w->limit - 1)), &item);
		if (rc == -ENOENT) {
			rc = 0;
			w->end = w->limit;
			continue;
		}
		if (rc)
			break;
		if (!is_read(item.value)) {
			const struct owner_item *owner = item.value;

			w->end = addr_sector(item.key.off) +
				 le64_get(owner->sectors);
			continue;
		}
		rc = load_owner(txn, scrub, addr_sector(item.key.off),
				item.value);
	}
	if (rc == -ENOSPC)
		return 0;
	return rc ? rc : -EINPROGRESS;
}

static void sums_take(struct scrub_window *w, const struct csum_window *from,
		      unsigned chunk, struct scrub_sums *to)
{
	unsigned i;

	*to = (struct scrub_sums){ .sum = w->sum + w->sums };
	to->mask = from->mask[chunk];
	for (i = 0; i < CHUNK_BLOCKS; i++)
		if (to->mask >> i & 1)
			w->sum[w->sums++] = from->sum[chunk][i];
}

/* Loads the checksums of a run; -EINPROGRESS: the rest needs another
 * transaction. */
static int load_run_sums(struct fs_txn *txn, struct scrub *scrub,
			 const struct scrub_extent *run)
{
	struct scrub_window *w = scrub->window;
	uint32_t n = scrub_load_chunks(run), *i = &scrub->loaded_chunks;
	struct csum_window csums = { 0 };
	uint64_t at = UINT64_MAX, base, chunk;
	struct tree_item item;
	bool named = run->kind == OWNER_DATA;
	int rc = named ? 0 : scrub_replicas_are_named(txn, run, &named);

	if (rc)
		return rc;
	for (; !named && *i < n; (*i)++)
		w->chunk[run->chunk + *i] = (struct scrub_sums){ 0 };
	for (; *i < n; (*i)++) {
		chunk = run->off / CHUNK_SECTORS + *i;
		base = chunk * CHUNK_BLOCKS / TRAX_CSUM_WINDOW_BLOCKS *
		       TRAX_CSUM_WINDOW_BLOCKS;
		if (base != at) {
			if (tree_txn_room(txn->tree_txn) < TREE_SEEK_NODES)
				return -EINPROGRESS;
			rc = tree_get(txn->tree_txn,
				      key_make(run->ino, ITEM_CSUM, base),
				      &item);
			if (rc && rc != -ENOENT)
				return rc;
			if (rc)
				csums = (struct csum_window){ 0 };
			else if (csum_window_decode(item.value, item.bytes,
						    &csums))
				return -EUCLEAN;
			at = base;
		}
		sums_take(w, &csums, (unsigned)(chunk % TRAX_CSUM_CHUNKS),
			  &w->chunk[run->chunk + *i]);
	}
	*i = 0;
	return 0;
}

static int load_sums(struct fs_txn *txn, struct scrub *scrub)
{
	struct scrub_window *w = scrub->window;
	int rc;

	while (scrub->loaded < w->runs) {
		const struct scrub_extent *run = &w->run[scrub->loaded];

		if (tree_txn_room(txn->tree_txn) < TREE_SEEK_NODES)
			return -EINPROGRESS;
		rc = run->kind == OWNER_DATA || run->kind == OWNER_REPLICA ?
			     load_run_sums(txn, scrub, run) : 0;
		if (rc)
			return rc;
		scrub->loaded++;
	}
	return 0;
}

static int load_run(struct fs_txn *txn)
{
	struct scrub *scrub = txn->state;
	int rc = scrub->owners_loaded ? load_sums(txn, scrub) :
					load_owners(txn, scrub);

	if (!rc)
		scrub->owners_loaded = true;
	return rc == -EINPROGRESS ? 0 : rc;
}

static void load_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct scrub *scrub = txn->state;

	(void)seq;
	if (!rc && (!scrub->owners_loaded ||
		    scrub->loaded < scrub->window->runs)) {
		fs_txn_restart(txn);
		return;
	}
	fs_txn_finish(txn, 0);
	scrub->loading = false;
	scrub->window_loaded(scrub, rc);
}

static const struct fs_txn_type load_type = {
	.name = "load for scrub",
	.bounds = { .nodes = 32 },
	.stages = 32,
	.run = load_run,
	.end = load_end,
};

void scrub_load_start(struct scrub *scrub)
{
	scrub->loaded = scrub->loaded_chunks = 0;
	scrub->region_end = 0;
	scrub->owners_loaded = false;
	scrub->loading = true;
	if (!fs_txn_start(scrub->fs, &load_type, NULL, scrub))
		return;
	scrub->loading = false;
	scrub->window_loaded(scrub, -ENOMEM);
}

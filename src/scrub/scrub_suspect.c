/*
 * scrub_suspect.c - looks at the suspects, one after the other.
 *
 * For a file the blocks are loaded by their present mapping, as for a reader
 * (from memory, from the disk, from replicas; blocks that cannot be read are
 * noted there).  Then healing reads the places of the suspected blocks once
 * more and compares: blocks that were overwritten, moved or deleted meanwhile
 * pass.
 */
#include <errno.h>
#include <string.h>

#include "base/msg.h"
#include "fs/data/cache_chunk.h"
#include "fs/data/dirty_block.h"
#include "fs/data/file.h"
#include "fs/op/errors.h"
#include "scrub/scrub_internal.h"

/* ---- the list ---- */

static bool scrub_suspect_is_known(const struct scrub *scrub,
			     const struct scrub_suspect *suspect)
{
	unsigned i;

	/* Only the last few are compared: blocks of a chunk come one after the
	 * other. */
	for (i = scrub->suspects; i && i + 8 > scrub->suspects; i--)
		if (scrub->suspect[i - 1].ino == suspect->ino &&
		    scrub->suspect[i - 1].chunk == suspect->chunk &&
		    scrub->suspect[i - 1].copy == suspect->copy &&
		    scrub->suspect[i - 1].sector == suspect->sector)
			return true;
	return false;
}

bool scrub_suspect_put(struct scrub *scrub,
		       const struct scrub_suspect *suspect)
{
	if (scrub->suspects == SCRUB_SUSPECTS)
		return false;
	scrub->suspect[scrub->suspects++] = *suspect;
	return true;
}

static void scrub_suspect_add(struct scrub *scrub,
			      const struct scrub_suspect *suspect)
{
	if (!scrub_suspect_put(scrub, suspect))
		scrub->overflow = true;
}

void scrub_suspect_file(struct scrub *scrub, uint64_t ino, uint64_t chunk,
		  uint16_t blocks)
{
	struct scrub_suspect suspect = { .ino = ino, .chunk = chunk,
				   .blocks = blocks };
	unsigned last = scrub->suspects - 1;

	if (!blocks)
		return;
	if (!scrub_suspect_is_known(scrub, &suspect)) {
		scrub_suspect_add(scrub, &suspect);
		return;
	}
	while (scrub->suspect[last].ino != ino ||
	       scrub->suspect[last].chunk != chunk ||
	       scrub->suspect[last].copy)
		last--;
	/* The first suspect is being looked at, and gets no more blocks. */
	if (last || !scrub->suspecting)
		scrub->suspect[last].blocks |= blocks;
	else
		scrub_suspect_add(scrub, &suspect);
}

void scrub_suspect_copy(struct scrub *scrub, uint64_t ino, uint64_t chunk,
		  uint64_t place, uint16_t blocks, bool unreadable)
{
	/* A suspect that finds no room here is found by its reader. */
	if (blocks && scrub->suspects < SCRUB_SUSPECTS)
		scrub_suspect_add(scrub, &(struct scrub_suspect){
			.ino = ino, .chunk = chunk, .sector = place,
			.blocks = blocks, .copy = true,
			.unreadable = unreadable });
}

void scrub_suspect_fixed(struct scrub *scrub, uint64_t sector)
{
	struct scrub_suspect suspect = { .sector = sector, .fixed = true };

	if (!scrub_suspect_is_known(scrub, &suspect))
		scrub_suspect_add(scrub, &suspect);
}

void scrub_suspect_node(struct scrub *scrub, uint64_t sector)
{
	struct scrub_suspect suspect = { .sector = sector };

	if (!scrub_suspect_is_known(scrub, &suspect))
		scrub_suspect_add(scrub, &suspect);
}

void scrub_suspect_over(struct scrub *scrub)
{
	scrub->looked_again++;
	scrub->suspecting = false;
	scrub->suspects--;
	memmove(scrub->suspect, scrub->suspect + 1,
		scrub->suspects * sizeof(*scrub->suspect));
}

/* ---- files ---- */

/* Blocks whose content on the disk should be that of the tree. */
static uint16_t blocks_place(const struct scrub *scrub)
{
	const struct scrub_suspect *suspect = &scrub->suspect[0];
	uint16_t blocks = suspect->blocks;
	const struct block *block;
	unsigned i;

	for (i = 0; i < CHUNK_BLOCKS; i++) {
		block = block_find(scrub->file,
				   suspect->chunk * CHUNK_BLOCKS + i);
		if (block && (block->pin || block->wb))
			blocks &= (uint16_t)~(1u << i);
	}
	return blocks;
}

/* The chunk is in memory: its places are compared with it. */
static void file_loaded(struct scrub *scrub, int rc)
{
	uint16_t blocks;

	if (!rc) {
		blocks = blocks_place(scrub);
		if (blocks)
			heal_start(scrub->file, scrub->suspect[0].chunk,
				   blocks);
	}
	read_wait_end(&scrub->rwait);
	file_put(scrub->file);
	scrub->file = NULL;
	scrub_suspect_over(scrub);
}

static void file_ready(struct read_wait *rwait, int rc)
{
	file_loaded(rwait->owner, rc);
}

/* Loads the chunk of a suspect; false: that was done at once. */
static bool file_load_chunk(struct scrub *scrub)
{
	const struct scrub_suspect *suspect = &scrub->suspect[0];
	struct file *file = scrub->file;
	uint64_t first = suspect->chunk * CHUNK_BLOCKS +
			 (unsigned)__builtin_ctz(suspect->blocks);
	uint64_t end = (file->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	uint64_t last = suspect->chunk * CHUNK_BLOCKS + 31 -
			(unsigned)__builtin_clz(suspect->blocks);
	int rc = file_lock_shared(file, &scrub->lock);

	if (rc == FS_TXN_WAIT)
		return true;
	if (rc || file->dead || file->has_inline || first >= end)
		return false;
	scrub->rwait = (struct read_wait){
		.file = file, .first = first,
		.n = (unsigned)((last < end ? last + 1 : end) - first),
		.tree = true, .background = true, .ready = file_ready,
		.owner = scrub,
	};
	list_init(&scrub->rwait.link);
	rc = read_wait_start(&scrub->rwait);
	if (rc != -EINPROGRESS)
		file_loaded(scrub, rc);
	return true;
}

static void file_skip(struct scrub *scrub)
{
	file_put(scrub->file);
	scrub->file = NULL;
	scrub_suspect_over(scrub);
}

void scrub_suspect_again(struct shared_lock *lock)
{
	struct scrub *scrub = container_of(lock, struct scrub, lock);

	if (!file_load_chunk(scrub))
		file_skip(scrub);
}

static void file_begin(struct scrub *scrub)
{
	scrub->file = file_get(scrub->fs, scrub->suspect[0].ino);
	if (!scrub->file) {
		scrub_suspect_over(scrub);
		return;
	}
	list_init(&scrub->lock.link);
	if (!file_load_chunk(scrub))
		file_skip(scrub);
}

/* ---- one after the other ---- */

bool scrub_suspect_next(struct scrub *scrub)
{
	if (scrub->suspecting || !scrub->suspects)
		return false;
	scrub->suspecting = true;
	if (scrub->suspect[0].fixed)
		scrub_fixed_look(scrub);
	else if (scrub->suspect[0].copy)
		scrub_replicas_look(scrub);
	else if (scrub->suspect[0].ino)
		file_begin(scrub);
	else
		scrub_node_look(scrub);
	return !scrub->suspecting;
}

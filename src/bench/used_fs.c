/*
 * used_fs.c - a file system that has been in use.
 */
#include "bench/used_fs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "format/format.h"

#define DRIVE "wd800"
#define MEMORY_MIB 64u
/* Most files; bytes of a small one at most, and of a large one; bytes of a
 * write. */
#define MAX_FILES 60000u
#define SMALL_BYTES (64u << 10)
#define LARGE_BYTES (2u << 20)
#define CHUNK (1u << 20)
/* Bytes of the log, of the first node tracks, and of what is left over. */
#define META_BYTES (UINT64_C(96) << 20)
/* Bytes of the nodes of the tree in the end. */
#define NODE_BYTES (UINT64_C(48) << 20)

/* ---- operations ---- */

/* Time passes unless an operation that was waited for is over. */
void used_turn(struct used *u, bool waits)
{
	uint64_t next_ns = fs_run(u->fs, 0), to_ns, now_ns;

	if (waits && !u->busy)
		return;
	u->moves_ns = u->moves ? moves_run(u->moves) : UINT64_MAX;
	to_ns = sim_next_ns(u->rig.sim);
	now_ns = sim_now_ns(u->rig.sim);
	to_ns = next_ns < to_ns ? next_ns : to_ns;
	to_ns = u->moves_ns < to_ns ? u->moves_ns : to_ns;
	if (to_ns == UINT64_MAX)
		to_ns = now_ns + NS_PER_SECOND;
	if (to_ns > now_ns)
		sim_advance(u->rig.sim, to_ns - now_ns);
}

static void op_done(struct fs_op *op)
{
	((struct used *)op->owner)->busy = false;
}

static int used_op(struct used *u, struct fs_op *op)
{
	op->done = op_done;
	op->owner = u;
	u->busy = true;
	fs_submit(u->fs, op);
	while (u->busy)
		used_turn(u, true);
	return op->rc;
}

int used_sync(struct used *u)
{
	struct fs_op op = { .type = FS_SYNCFS, .ino = TRAX_ROOT_INO };

	return used_op(u, &op);
}

int used_io(struct used *u, uint64_t ino, enum fs_op_type type,
	    uint64_t from, uint64_t end)
{
	int err = 0;

	for (; from < end && !err; from += CHUNK) {
		struct fs_op op = {
			.type = type, .ino = ino, .offset = from,
			.size = end - from < CHUNK ? end - from : CHUNK,
			.data = u->bytes, .buffer = u->bytes,
		};

		err = used_op(u, &op);
	}
	return err;
}

static uint64_t file_room(uint64_t bytes)
{
	return (bytes + TRAX_BLOCK_BYTES - 1) / TRAX_BLOCK_BYTES *
	       TRAX_BLOCK_BYTES;
}

/* Makes a file, which is then the last one. */
static int used_file_make(struct used *u)
{
	struct used_file *file = &u->file[u->files];
	char name[16];
	struct fs_op op = { .type = FS_MKNOD, .name = name, .mode = 0100644 };
	struct fs_op forget = { .type = FS_FORGET, .size = 1 };
	bool large = rig_random(&u->seed) % u->large_share == 0;
	int err;

	if (u->files == MAX_FILES)
		return -ENFILE;
	*file = (struct used_file){ .number = u->made++ };
	file->bytes = large ? LARGE_BYTES :
		4096 + (uint32_t)(rig_random(&u->seed) % (SMALL_BYTES - 4096));
	snprintf(name, sizeof(name), "f%u", file->number);
	op.ino = u->dir[file->number % USED_DIRS];
	err = used_op(u, &op);
	if (err)
		return err;
	file->ino = forget.ino = op.attr.ino;
	err = used_io(u, file->ino, FS_WRITE, 0, file->bytes);
	u->data_bytes += file_room(file->bytes);
	u->files++;
	return err ? err : used_op(u, &forget);
}

int used_file_delete(struct used *u, uint32_t i)
{
	char name[16];
	struct fs_op op = { .type = FS_UNLINK, .name = name };

	snprintf(name, sizeof(name), "f%u", u->file[i].number);
	op.ino = u->dir[u->file[i].number % USED_DIRS];
	u->data_bytes -= file_room(u->file[i].bytes);
	u->file[i] = u->file[--u->files];
	return used_op(u, &op);
}

int used_count_fragments(struct used *u, uint32_t since)
{
	static struct fs_extent list[1024];
	int err = 0;

	for (uint32_t i = 0; i < u->files && !err; i++) {
		const struct used_file *file = &u->file[i];
		struct fs_op op = { .type = FS_EXTENTS, .ino = file->ino,
				    .buffer = list, .size = 1024 };

		if (file->number < since || file->bytes < LARGE_BYTES)
			continue;
		err = used_op(u, &op);
		u->large_bytes += file->bytes;
		u->large_extents += op.result;
	}
	return err;
}

uint32_t used_any(struct used *u)
{
	return (uint32_t)(rig_random(&u->seed) % u->files);
}

/* ---- a used file system ---- */

int used_fill(struct used *u)
{
	return used_make(u, USED_BYTES > u->data_bytes ?
				    USED_BYTES - u->data_bytes : 0);
}

int used_make(struct used *u, uint64_t bytes)
{
	const uint64_t end = u->data_bytes + bytes;
	int err = 0;

	while (!err && u->data_bytes < end)
		err = used_file_make(u);
	return err ? err : used_sync(u);
}

static uint64_t room_of(unsigned percent)
{
	return (USED_BYTES + NODE_BYTES) / percent * 100 / TRAX_BLOCK_BYTES *
	       TRAX_BLOCK_BYTES;
}

/* Leaves so much room that the files and the tree's nodes fill `percent` of all
 * that is free, with what is kept from users. */
static int take_rest(struct used *u, unsigned percent)
{
	struct fs_op stat = { .type = FS_STATFS, .ino = TRAX_ROOT_INO };
	struct fs_op make = { .type = FS_MKNOD, .ino = TRAX_ROOT_INO,
			      .name = "rest", .mode = 0100644 };
	int err = used_op(u, &stat);
	struct fs_op op = {
		.type = FS_FALLOCATE,
		.size = stat.statfs.free * TRAX_BLOCK_BYTES - room_of(percent),
	};

	u->room_blocks = room_of(percent) / TRAX_BLOCK_BYTES;

	if (!err)
		err = used_op(u, &make);
	op.ino = make.attr.ino;
	return err ? err : used_op(u, &op);
}

double used_full(struct used *u)
{
	struct fs_op stat = { .type = FS_STATFS, .ino = TRAX_ROOT_INO };
	double room = (double)u->room_blocks;

	return used_op(u, &stat) ? 0 : 1 - (double)stat.statfs.free / room;
}

static int make_dirs(struct used *u)
{
	int err = 0;

	for (unsigned i = 0; i < USED_DIRS && !err; i++) {
		char name[16];
		struct fs_op op = { .type = FS_MKDIR, .ino = TRAX_ROOT_INO,
				    .name = name, .mode = 040755 };

		snprintf(name, sizeof(name), "d%u", i);
		err = used_op(u, &op);
		u->dir[i] = op.attr.ino;
	}
	return err;
}

int used_open(const struct sched_options *options, unsigned percent,
	      struct used *u)
{
	const struct rig_options rig_options = {
		.drive = options->drive ? options->drive : DRIVE,
		.seed = options->seed,
	};
	int err;

	*u = (struct used){ .seed = options->seed,
			    .large_share = USED_LARGE_SHARE };
	u->options.memory_bytes = (size_t)(options->memory_mib ?
		options->memory_mib : MEMORY_MIB) << 20;
	u->file = calloc(MAX_FILES, sizeof(*u->file));
	u->bytes = calloc(1, CHUNK);
	err = u->file && u->bytes ? rig_open(&rig_options, &u->rig) : -ENOMEM;
	u->rig.fs_sectors = (room_of(percent) + META_BYTES) / SECTOR_BYTES;
	if (!err)
		err = rig_make_fs(&u->rig, &u->options, &u->fs);
	if (!err)
		err = take_rest(u, percent);
	return err ? err : make_dirs(u);
}

int used_remount(struct used *u)
{
	bool moves = u->moves;
	int err;

	moves_close(u->moves);
	u->moves = NULL;
	fs_close(u->fs);
	u->fs = NULL;
	err = fs_open(u->rig.env, sim_disk(u->rig.sim), &u->options, &u->fs);
	return err || !moves ? err : moves_open(u->fs, &u->moves);
}

void used_close(struct used *u)
{
	moves_close(u->moves);
	if (u->fs)
		fs_close(u->fs);
	rig_close(&u->rig);
	free(u->file);
	free(u->bytes);
}

int used_append(struct used *u, uint32_t i, uint32_t more)
{
	struct used_file *file = &u->file[i];
	uint32_t end = file->bytes + more;
	int err = used_io(u, file->ino, FS_WRITE, file->bytes, end);

	u->data_bytes += file_room(end) - file_room(file->bytes);
	file->bytes = end;
	return err;
}

int used_transaction(struct used *u)
{
	uint32_t i = used_any(u);
	const struct used_file *file = &u->file[i];
	uint32_t more = (uint32_t)(rig_random(&u->seed) % 8192);
	int err;

	if (rig_random(&u->seed) % 2) {
		err = used_io(u, file->ino, FS_READ, 0, file->bytes);
	} else {
		err = used_append(u, i, more);
	}
	if (err)
		return err;
	return u->data_bytes >= USED_BYTES ?
		       used_file_delete(u, used_any(u)) : used_file_make(u);
}


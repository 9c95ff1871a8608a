/*
 * used_fs.h - a file system on a simulated drive whose files are made, appended
 * to and deleted in a known order: the same whatever room there is.
 *
 * USED_BYTES of files of 4 to 64 KiB and, one in large_share, of 2 MiB, in
 * USED_DIRS directories by turns, fill with the tree a given share of the room,
 * which is what statfs shows: the file system is on the outer tracks of the
 * drive, and one file takes what is more.
 */
#ifndef TRAX_BENCH_USED_FS_H
#define TRAX_BENCH_USED_FS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/rig.h"
#include "bench/sched.h"
#include "fs/fs.h"
#include "move/move.h"

/* Bytes of all files, and number of directories. */
#define USED_BYTES (UINT64_C(640) << 20)
#define USED_DIRS 32u
#define USED_LARGE_SHARE 64u	/* The usual large_share. */

struct used_file {
	uint64_t ino;
	uint32_t bytes, number;	/* it is in directory number % USED_DIRS */
};

struct used {
	struct rig rig;
	struct fs_options options;
	struct fs *fs;
	struct moves *moves;	/* NULL: nothing moves now */
	uint64_t moves_ns;	/* when they want to be called again */
	uint64_t dir[USED_DIRS];
	struct used_file *file;
	uint32_t files, made;
	uint32_t large_share;
	uint64_t data_bytes;	/* bytes of all files, in whole blocks */
	uint64_t room_blocks;	/* blocks that files and tree may have */
	uint8_t *bytes;
	uint64_t seed;
	bool busy;
	/* See used_count_fragments. */
	uint64_t large_bytes, large_extents;
};

/* Opens an empty file system: USED_BYTES and the tree will be `percent` of its
 * room.  Close it after an error, too. */
int used_open(const struct sched_options *options, unsigned percent,
	      struct used *used);
void used_close(struct used *used);
/* Unmounts and mounts, so that the caches are empty. */
int used_remount(struct used *used);

/* The share of the room that is in use now, by statfs. */
double used_full(struct used *used);

/* Advances time to the next event, unless an operation that is waited for is
 * over. */
void used_turn(struct used *used, bool waits);

/* Operations; all return 0 or a negative errno.  Files are numbers below
 * used->files. */
uint32_t used_any(struct used *used);	/* a file by chance */
int used_file_delete(struct used *used, uint32_t i);	/* the last one gets
							 * its number */
int used_append(struct used *used, uint32_t i, uint32_t more);
int used_io(struct used *used, uint64_t ino, enum fs_op_type type,
	    uint64_t from, uint64_t end);
int used_sync(struct used *used);
/* Counts bytes and extents of the large files that were made since then and are
 * still there; all is on the disk. */
int used_count_fragments(struct used *used, uint32_t since);
/* Makes files until there are USED_BYTES, or `bytes` more. */
int used_fill(struct used *used);
int used_make(struct used *used, uint64_t bytes);
/* Reads a file or appends to it, and makes a file or deletes one. */
int used_transaction(struct used *used);

#endif

/*
 * replicas_work.c - the workloads of `traxbench replicas`: their files, and
 * the order in which they are read.
 */
#include "bench/replicas_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "format/format.h"
#include "fs/fs.h"

/* Bytes that one operation preallocates to fill the disk. */
#define RESERVE_BYTES (1ull << 30)
#define DIR_FILES 10u		/* files in a directory of a tree */

static uint32_t replicas_random(struct bench *bench, uint32_t n)
{
	return (uint32_t)(random_next(&bench->rng) % n);
}

/* ---- Files ---- */

/* Makes another directory in directory `parent`, both given by their
 * numbers. */
static int make_dir(struct bench *bench, uint32_t parent, uint32_t *dir)
{
	char name[32];
	struct fs_op op = { .type = FS_MKDIR, .name = name,
			    .ino = bench->dir[parent].ino,
			    .mode = S_IFDIR | 0755 };
	int rc;

	if (bench->dirs == MAX_DIRS)
		return -ENOSPC;
	snprintf(name, sizeof(name), "d%u", bench->dirs);
	rc = bench_do(bench, &op);
	*dir = bench->dirs;
	bench->dir[bench->dirs++] = (struct dir){
		.ino = op.attr.ino, .parent = parent,
	};
	return rc;
}

static int make_inode(struct bench *bench, uint32_t dir, uint32_t bytes,
		      uint64_t *ino)
{
	uint32_t room = bench->files_room ? 2 * bench->files_room : 1024;
	char name[32];
	struct fs_op op = { .type = FS_MKNOD, .ino = bench->dir[dir].ino,
			    .name = name, .mode = S_IFREG | 0644 };
	int rc;

	if (bench->files == bench->files_room) {
		bench->file = realloc(bench->file,
				      room * sizeof(*bench->file));
		if (!bench->file)
			return -ENOMEM;
		bench->files_room = room;
	}
	snprintf(name, sizeof(name), "f%u", bench->files);
	rc = bench_do(bench, &op);
	*ino = op.attr.ino;
	bench->file[bench->files++] = (struct bench_file){
		.ino = *ino, .bytes = bytes, .dir = dir,
	};
	return rc;
}

static int write_at(struct bench *bench, uint64_t ino, uint64_t offset,
		    uint64_t bytes)
{
	static uint8_t data[CHUNK_BYTES];
	struct fs_op op = { .type = FS_WRITE, .ino = ino, .data = data };
	uint64_t done = 0;
	int rc = 0;
	unsigned i;

	while (!rc && done < bytes) {
		for (i = 0; i < CHUNK_BYTES; i += 512)
			memcpy(data + i, &(uint64_t){ random_next(&bench->rng)
						     }, 8);
		op.offset = offset + done;
		op.size = bytes - done < CHUNK_BYTES ? bytes - done :
						       CHUNK_BYTES;
		rc = bench_do(bench, &op);
		done += op.size;
	}
	return rc;
}

static int make_file(struct bench *bench, uint32_t dir, uint32_t bytes)
{
	uint64_t ino;
	int rc = make_inode(bench, dir, bytes, &ino);

	return rc ? rc : write_at(bench, ino, 0, bytes);
}

static int replicas_sync(struct bench *bench)
{
	struct fs_op op = { .type = FS_SYNCFS, .ino = 1 };

	return bench_do(bench, &op);
}

/* Fills the disk so far that the files made next lie far away. */
static int make_gap(struct bench *bench, unsigned percent)
{
	uint64_t bytes = geom_sectors(bench->geom) / 100 * percent * 512;
	uint64_t done = 0;
	struct fs_op op = { .type = FS_FALLOCATE };
	int rc = replicas_sync(bench);

	if (!rc)
		rc = make_inode(bench, 0, 0, &op.ino);
	for (; !rc && done < bytes; done += RESERVE_BYTES) {
		op.offset = done;
		op.size = bytes - done < RESERVE_BYTES ? bytes - done :
							 RESERVE_BYTES;
		rc = bench_do(bench, &op);
	}
	return rc;
}

static int note_read(struct bench *bench, uint32_t file, uint32_t offset,
		     uint32_t bytes)
{
	uint32_t room = bench->reads_room ? 2 * bench->reads_room : 4096;

	if (bench->reads == bench->reads_room) {
		bench->read = realloc(bench->read,
				      room * sizeof(*bench->read));
		if (!bench->read)
			return -ENOMEM;
		bench->reads_room = room;
	}
	bench->read[bench->reads++] = (struct read){ file, offset, bytes };
	return 0;
}

static uint32_t replicas_scaled(const struct bench *bench, uint32_t n)
{
	n = n * bench->options->percent / 100;
	return n ? n : 1;
}

/* ---- Workloads: set up once, then `order` before each run ---- */

/* Makes files in directories, a few in each. */
static int make_tree(struct bench *bench, uint32_t n, uint32_t most)
{
	uint32_t top, dir = 0, i;
	int rc = make_dir(bench, 0, &top);

	for (i = 0; !rc && i < n; i++) {
		if (i % DIR_FILES == 0)
			rc = make_dir(bench, top, &dir);
		if (!rc)
			rc = make_file(bench, dir,
				       2500 + replicas_random(bench, most));
	}
	return rc;
}

int replicas_trees(struct bench *bench)
{
	uint32_t n = replicas_scaled(bench, 700), i, half;
	int rc;

	bench->think_ns = 200000;
	rc = make_tree(bench, n, 14000);
	if (!rc)
		rc = make_gap(bench, 30);
	half = bench->files;
	if (!rc)
		rc = make_tree(bench, n, 18000);
	for (i = 0; !rc && i < n; i++) {
		rc = note_read(bench, i, 0, bench->file[i].bytes);
		if (!rc)
			rc = note_read(bench, half + i, 0,
				       bench->file[half + i].bytes);
	}
	return rc;
}

int replicas_aged(struct bench *bench)
{
	int rc = replicas_trees(bench);
	uint32_t n = bench->reads / (2 * DIR_FILES), i, k;

	for (i = n; !rc && i > 1; i--) {
		struct read *a = bench->read + (i - 1) * 2 * DIR_FILES;
		struct read *b = bench->read + replicas_random(bench, i) * 2 *
				 DIR_FILES;

		for (k = 0; k < 2 * DIR_FILES; k++) {
			struct read swap = a[k];

			a[k] = b[k];
			b[k] = swap;
		}
	}
	return rc;
}

int replicas_oltp(struct bench *bench)
{
	uint64_t blocks = geom_sectors(bench->geom) / 8 / 5, ino;
	uint32_t n = replicas_scaled(bench, 250), i, k, reads;
	struct fs_op op = { .type = FS_FALLOCATE };
	int rc = make_inode(bench, 0, 0, &ino);

	bench->think_ns = 500000;
	if (blocks > UINT32_MAX / TRAX_BLOCK_BYTES)
		blocks = UINT32_MAX / TRAX_BLOCK_BYTES;
	op.ino = ino;
	op.size = blocks * TRAX_BLOCK_BYTES;
	if (!rc)
		rc = bench_do(bench, &op);
	for (i = 0; !rc && i < n; i++) {
		reads = 5 + replicas_random(bench, 16);
		for (k = 0; !rc && k < reads; k++) {
			uint32_t block =
				replicas_random(bench, (uint32_t)blocks);

			rc = write_at(bench, ino,
				      (uint64_t)block * TRAX_BLOCK_BYTES,
				      TRAX_BLOCK_BYTES);
			if (!rc)
				rc = note_read(bench, i,
					       block * TRAX_BLOCK_BYTES,
					       TRAX_BLOCK_BYTES);
		}
	}
	return rc;
}

void replicas_oltp_order(struct bench *bench)
{
	uint32_t n = bench->read[bench->reads - 1].file + 1, at = 0, i, k;
	struct read *read = malloc(bench->reads * sizeof(*read));
	uint32_t *order = malloc(bench->reads * sizeof(*order));

	if (!read || !order)
		abort();
	memcpy(read, bench->read, bench->reads * sizeof(*read));
	n = 0;
	for (i = 0; i < bench->reads; i++)
		if (!i || read[i].file != read[i - 1].file)
			order[n++] = i;
	for (i = n; i > 1; i--) {
		uint32_t other = replicas_random(bench, i), swap = order[i - 1];

		order[i - 1] = order[other];
		order[other] = swap;
	}
	for (i = 0; i < n; i++)
		for (k = order[i]; k < bench->reads &&
		     read[k].file == read[order[i]].file; k++)
			bench->read[at++] = read[k];
	free(read);
	free(order);
}

int replicas_web(struct bench *bench)
{
	uint32_t n = replicas_scaled(bench, 1000), i, k;
	uint32_t dir;
	int rc = make_dir(bench, 0, &dir);

	bench->think_ns = 1000000;
	for (k = 0; !rc && k < 2; k++) {
		for (i = 0; !rc && i < n; i++) {
			double u = (1 + replicas_random(bench, 999)) / 1000.0;

			rc = make_file(bench, dir, (uint32_t)(2500 *
							      pow(u, -0.7)));
		}
		if (!rc && !k)
			rc = make_gap(bench, 30);
		if (!rc && !k)
			rc = make_dir(bench, 0, &dir);
	}
	for (i = 0; !rc && i < 3 * n; i++)
		rc = note_read(bench, 0, 0, 0);
	return rc;
}

void replicas_web_order(struct bench *bench)
{
	uint32_t n = replicas_scaled(bench, 1000), i;

	for (i = 0; i < bench->reads; i++) {
		double u = (1 + replicas_random(bench, 9999)) / 10000.0;
		uint32_t rank = (uint32_t)pow(n, u) - 1, k;

		k = replicas_random(bench, 2);
		rank = rank * 733u % n;		/* Popular files lie
						 * anywhere. */
		bench->read[i].file = k * (n + 1) + rank;
		bench->read[i].offset = 0;
		bench->read[i].bytes = bench->file[k * (n + 1) + rank].bytes;
	}
}

int replicas_desktop(struct bench *bench)
{
	uint32_t libraries = replicas_scaled(bench, 250),
		 small = replicas_scaled(bench, 400);
	uint32_t i, k, half;
	uint32_t dir;
	int rc = make_dir(bench, 0, &dir);

	bench->think_ns = 400000;
	for (i = 0; !rc && i < libraries; i++)
		rc = make_file(bench, dir,
			       40000 + replicas_random(bench, 600000));
	if (!rc)
		rc = make_gap(bench, 10);
	half = bench->files;
	if (!rc)
		rc = make_dir(bench, 0, &dir);
	for (i = 0; !rc && i < small; i++)
		rc = make_file(bench, dir, 2500 + replicas_random(bench, 6000));
	for (i = 0; !rc && i < libraries; i++) {
		uint32_t file = replicas_random(bench, libraries);

		rc = note_read(bench, file, 0, 8192);
		for (k = 0; !rc && k < 4; k++)
			rc = note_read(bench, file, replicas_random(bench,
				bench->file[file].bytes / TRAX_BLOCK_BYTES) *
				TRAX_BLOCK_BYTES,
				       32768);
		file = half + replicas_random(bench, small);
		if (!rc)
			rc = note_read(bench, file, 0, bench->file[file].bytes);
	}
	return rc;
}

void replicas_change_order(struct bench *bench)
{
	uint32_t i;

	for (i = bench->reads; i > 1; i--) {
		uint32_t other = replicas_random(bench, i);
		struct read swap = bench->read[i - 1];

		bench->read[i - 1] = bench->read[other];
		bench->read[other] = swap;
	}
}

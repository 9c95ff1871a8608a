/*
 * prefix.c - for each directory a ring of the files that were read last.
 *
 * A file counts as read in part if somebody read it from its start and not to
 * its end.  If half of the last files or more were read in part, and none
 * longer than these parts was read whole, the next file is expected to be read
 * as far as the furthest of them.  So three files read in part are enough to
 * stop reading whole files ahead, and one that is read whole to begin again.
 */
#include "fs/data/prefix.h"

#include <stdlib.h>

#include "fs/data/file_data.h"

/* Directories remembered; the one in which a file was begun least recently is
 * replaced. */
#define DIRS 32u
#define RING 8u	/* Files remembered for each directory. */
/* Files that must be known before anything is expected of the next one. */
#define LEAST_KNOWN 3u
/* A read that begins up to 256 KiB behind the last one continues it: the kernel
 * reads ahead by itself, and not always in order. */
#define SLACK_BYTES (256u << 10)

struct prefix_file {
	uint64_t ino, end;
	bool whole;
};

struct prefix_dir {
	uint64_t ino;		/* 0: none */
	uint64_t used;		/* clock when a file in it was last begun */
	unsigned n;		/* number of files begun in it so far */
	struct prefix_file file[RING];
};

struct prefixes {
	uint64_t clock;
	struct prefix_dir dir[DIRS];
};

struct prefixes *prefixes_new(void)
{
	return calloc(1, sizeof(struct prefixes));
}

void prefixes_free(struct prefixes *prefixes)
{
	free(prefixes);
}

static struct prefix_dir *dir_find(struct prefixes *prefixes, uint64_t ino)
{
	struct prefix_dir *dir;

	for (dir = prefixes->dir; dir < prefixes->dir + DIRS; dir++)
		if (dir->ino == ino)
			return dir;
	return NULL;
}

static struct prefix_dir *dir_get(struct prefixes *prefixes, uint64_t ino)
{
	struct prefix_dir *dir = dir_find(prefixes, ino), *other;

	if (dir)
		return dir;
	dir = prefixes->dir;
	for (other = dir; other < prefixes->dir + DIRS; other++)
		if (other->used < dir->used)
			dir = other;
	*dir = (struct prefix_dir){ .ino = ino };
	return dir;
}

static unsigned dir_known(const struct prefix_dir *dir)
{
	return dir->n < RING ? dir->n : RING;
}

static struct prefix_file *dir_file(struct prefix_dir *dir, uint64_t ino)
{
	unsigned i;

	for (i = 0; i < dir_known(dir); i++)
		if (dir->file[i].ino == ino)
			return &dir->file[i];
	return NULL;
}

void prefix_read(struct file *file, uint64_t offset, uint64_t end)
{
	struct prefixes *prefixes = file->files->prefixes;
	struct prefix_dir *dir = offset ? dir_find(prefixes, file->parent) :
					  dir_get(prefixes, file->parent);
	struct prefix_file *known = dir ? dir_file(dir, file->ino) : NULL;

	if (!known && offset)
		return;
	if (!known) {
		dir->used = ++prefixes->clock;
		known = &dir->file[dir->n++ % RING];
		*known = (struct prefix_file){ .ino = file->ino };
	}
	if (offset > known->end + SLACK_BYTES)
		return;
	if (end > known->end)
		known->end = end;
	known->whole = known->end >= file->size;
}

uint64_t prefix_expected(const struct file *file)
{
	struct prefix_dir *dir = dir_find(file->files->prefixes, file->parent);
	uint64_t part = 0, whole = 0;
	unsigned i, parts = 0, n = 0;

	for (i = 0; dir && i < dir_known(dir); i++) {
		const struct prefix_file *known = &dir->file[i];

		if (known->ino == file->ino)
			continue;
		n++;
		parts += !known->whole;
		if (!known->whole && known->end > part)
			part = known->end;
		if (known->whole && known->end > whole)
			whole = known->end;
	}
	if (n < LEAST_KNOWN)
		return PREFIX_UNKNOWN;
	return 2 * parts >= n && part >= whole ? part : PREFIX_WHOLE;
}

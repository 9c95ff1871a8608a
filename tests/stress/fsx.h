/*
 * fsx.h - operations on files that have a model in memory (fsx_ops.c).
 *
 * An operation is a row of numbers that mean something in any state: offsets
 * and lengths are cut to what the file allows when it runs.  So any operations
 * may be left out of a list and the rest still runs.
 */
#ifndef TRAX_STRESS_FSX_H
#define TRAX_STRESS_FSX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FSX_FILES_MAX 16
#define FSX_KINDS_MAX 32

#define FSX_FROM_END 1u		/* `at` counts back from the end of the file */
#define FSX_ALIGN 2u		/* at and bytes are cut to blocks */
#define FSX_FLAVOUR 4u		/* kind's own choice */

struct fsx_op {
	unsigned kind, file, file2, flags;
	uint64_t at, at2, seed;
	uint32_t bytes;
};

struct fsx_file {
	char path[512];
	int fd, append_fd, direct_fd;
	uint8_t *model;
	size_t size;
	size_t low, high;	/* where this process may write */
	bool fixed;		/* the size stays: others write beside us */
};

struct fsx_world {
	struct fsx_file files[FSX_FILES_MAX];
	unsigned nfiles;
	size_t max_bytes;
	size_t direct_bytes;	/* alignment that O_DIRECT takes */
	uint8_t *buffer;	/* max_bytes */
	bool root;
	bool unsupported[FSX_KINDS_MAX];
	char wrong[512];	/* what was found, when an op returned false */
};

/* Rows of the table of kinds; weight is how often one is chosen. */
struct fsx_kind {
	const char *name;
	unsigned weight;
	bool (*run)(struct fsx_world *w, const struct fsx_op *op);
	bool changes_size;	/* not for fixed files */
};

extern const struct fsx_kind fsx_kinds[];
unsigned fsx_kind_count(void);

/* Opens files 0 to nfiles - 1 in `directory`; new and empty. */
void fsx_world_open(struct fsx_world *w, const char *directory,
		    unsigned process, unsigned nfiles, size_t max_bytes);

/* One more file, shared with others, that exists with this size. */
void fsx_world_share(struct fsx_world *w, const char *path, size_t size,
		     size_t low, size_t high);
void fsx_world_close(struct fsx_world *w);

/* False: the file system is wrong, and w->wrong says how. */
bool fsx_run(struct fsx_world *w, const struct fsx_op *op);

/* Compares size and every byte of all files. */
bool fsx_verify(struct fsx_world *w);

#endif

/*
 * check.h - is a file system whole, and if not, what can be done.
 *
 * Reads the device itself, with nothing of the tree's or the log's code, so
 * that it does not share their bugs.  Three steps:
 *   1. superblocks, roots, and the payload behind the best root;
 *   2. one walk of the tree in key order, each node and item verified; counts
 *      and order-free sums are kept, not the items.  Where two sums that must
 *      agree differ, a second walk looks at just those parts exactly;
 *   3. repair, when allowed: everything that survives is collected, made to
 *      agree with itself, and written as a new tree beside the old one; then
 *      the check runs again.
 *
 * Each problem is a row of a table (check_problems).  A file system that was
 * not unmounted is brought up to date by opening and closing it, when writing
 * is allowed; otherwise the state of its last root is checked.
 *
 * Where there were problems, two more walks find paths for inodes they name.
 *
 * Memory: 40 bytes a node, 16 bytes a directory, 12 bytes a group of 1 GiB, and
 * 1 MiB for each level of the tree.  A repair keeps the items it collects in a
 * file without a name under `scratch`.
 *
 * Waits for its I/O.  One thread.
 */
#ifndef TRAX_CHECK_CHECK_H
#define TRAX_CHECK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "disk/disk.h"

enum check_severity {
	CHECK_NOTE,		/* nothing is wrong */
	CHECK_MINOR,		/* nothing is lost: advice, or a second copy */
	CHECK_ERROR,		/* structures contradict each other */
	CHECK_LOSS,		/* something that users stored is lost */
	CHECK_FATAL,		/* the check cannot go on */
};

/* A row of the table. */
struct check_problem {
	const char *name;	/* stable, for scripts and tests */
	enum check_severity severity;
	bool safe;		/* may be repaired without asking (-p) */
	const char *text;	/* printf format of the report */
	const char *question;	/* NULL: there is no repair */
};

extern const struct check_problem check_problems[];
extern const unsigned check_problems_n;

/* What was found; valid during the call. */
struct check_found {
	const struct check_problem *problem;
	uint64_t ino;		/* inode number; 0: none in particular */
	uint64_t sector;	/* sector; 0: none in particular */
	const char *text;	/* the whole sentence */
	bool again;		/* it was found by the check after the repair */
};

struct check_options {
	bool repair;		/* may write; otherwise the check never does */
	bool safe_only;		/* repair only what is safe; when there is
				   anything else, repair nothing */
	bool data;		/* read and verify all file data */
	bool skip_clean;	/* a file system that was unmounted is not
				 * walked */
	const char *scratch;	/* directory for temporary files of a repair;
				 * NULL: memory */
	uint64_t name_mask;	/* bits of name hashes that count; 0: all (see
				 * fs.h) */
	/*
	 * Called for each problem.  The answer counts once for each row of the
	 * table, the first time it is found: true = repair all like this.
	 * NULL: repair all that `repair` and `safe_only` allow.
	 */
	bool (*found)(void *arg, const struct check_found *found);
	/* Called for inodes that problems have named, after all of these:
	 * a path to it, as the directories have it.  May be NULL. */
	void (*named)(void *arg, uint64_t ino, const char *path);
	/* Called now and then: `done` of `total` of a step (total 0:
	 * unknown).  false: stop as soon as possible, with -ECANCELED; a
	 * repair under way leaves the old state. */
	bool (*progress)(void *arg, const char *step, uint64_t done,
			 uint64_t total);
	void *arg;
};

struct check_result {
	uint64_t found;		/* number of problems of severity MINOR and
				 * more */
	uint64_t left;		/* number of them that are left at the end */
	bool changed;		/* something was written */
	bool replayed;		/* the log was replayed */
	bool was_clean;
	uint64_t generation;
	uint64_t nodes, levels, items;
	uint64_t inodes, directories, extents;
	uint64_t data_sectors;	/* sectors owned by files */
	uint64_t free_sectors;
	uint64_t bytes_verified, bytes_bad;	/* bytes of data, verified and
						 * bad */
};

/*
 * Checks the file system on `disk`, which stays the caller's. 0: done, see
 * *result; -EINVAL: there is none; -EFBIG: the device is smaller than the file
 * system; -EIO: the device fails; -ENOMEM; -ECANCELED; from a repair -ENOSPC:
 * there is no room for a new tree. Any other reason why it stops has been
 * reported to found() before.
 */
int check_run(struct env *env, struct disk *disk,
	      const struct check_options *options, struct check_result *result);

#endif

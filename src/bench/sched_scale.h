/*
 * sched_scale.h - a file system on a simulated disk whose operations are waited
 * for, in virtual time.
 */
#ifndef TRAX_BENCH_SCHED_SCALE_H
#define TRAX_BENCH_SCHED_SCALE_H

#include <stdint.h>

#include "bench/rig.h"
#include "bench/sched.h"
#include "fs/fs.h"

/* The time of the processor for each turn, that of the simulated disk included.
 * The same run repeated has the same turns; then for each the least time, as
 * what else runs on the machine only adds to it. */
struct turn_times {
	uint32_t *ns;
	size_t known, room;
	size_t n;		/* turns of the present run */
};

struct scale {
	struct rig rig;
	struct fs *fs;
	struct fs_options options;
	uint64_t dirs;
	struct turn_times *turns;	/* NULL: they are not noted */
};

/* All return 0 or a negative errno. */

/* Makes and mounts an empty file system of 20 TB.  Close it after an error,
 * too. */
int scale_open(struct scale *s, const struct sched_options *options);
void scale_close(struct scale *s);
int scale_mount(struct scale *s);
int scale_unmount(struct scale *s);

/* Runs the file system once; then advances time to its next event, unless
 * *done. */
void scale_turn(struct scale *s, const bool *done);
/* Does one operation. */
int scale_do(struct scale *s, struct fs_op *op);
/* *ino may be NULL; nobody refers to what has been made. */
int scale_make(struct scale *s, uint64_t dir, enum fs_op_type type,
	       const char *name, uint64_t *ino);

#endif

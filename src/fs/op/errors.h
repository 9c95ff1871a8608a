/*
 * errors.h - damage that was met: noted for good, listed with file names.
 *
 * Whoever meets damage (a read, the scrub) adds it once it is sure: the mapping
 * was looked up again, the place was read again.  It is put into the tree in
 * the background; the newest ERRORS_KEPT stay.
 */
#ifndef TRAX_OP_ERRORS_H
#define TRAX_OP_ERRORS_H

#include "fs/op/fs_internal.h"

#define ERRORS_KEPT 1000u

struct errors;

struct error {
	uint64_t ino;		/* 0: of the file system itself */
	uint64_t off;		/* bytes in the file */
	uint64_t sector;
	uint32_t sectors;
	enum error_what what;
	bool healed;
};

/* Same place, same kind: noted once a mount. */
void errors_add(struct fs *fs, const struct error *error);
uint64_t errors_count(const struct fs *fs);	/* met since the mount */
bool errors_idle(const struct fs *fs);
void errors_free(struct fs *fs);

/*
 * FS_ERRORS: op->buffer gets a JSON array of objects, oldest first, from number
 * op->offset2 on and as many as fit into an attribute, allocated (the caller
 * frees), op->result its length.  "path" is where the file was
 * made or last moved to; null when it is not there any more.
 */
void errors_op_list(struct fs *fs, struct fs_op *op);

#endif

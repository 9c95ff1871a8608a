/*
 * errors.h - damage that was met: noted for good, and listed with file names.
 *
 * Code that meets damage (a read, the scrub) adds it when it is certain: the
 * mapping was looked up again and the place was read again.  It is put into the
 * tree in the background; the newest ERRORS_KEPT notes stay.
 */
#ifndef TRAX_OP_ERRORS_H
#define TRAX_OP_ERRORS_H

#include "fs/op/fs_internal.h"

/* Notes of damage that are kept; each is an item of some 50 bytes.  A round
 * number: more than a person reads, and little beside the tree. */
#define ERRORS_KEPT 1000u

struct error {
	uint64_t ino;		/* inode of the file; 0: damage of the file
				 * system's own structures */
	uint64_t off;		/* offset in the file, in bytes */
	uint64_t sector;
	uint32_t sectors;
	enum error_what what;
	bool healed;
};

/* Damage of the same kind at the same place is noted once a mount. */
void errors_add(struct fs *fs, const struct error *error);
/* Noted since the mount, less those that were removed. */
uint64_t errors_count(const struct fs *fs);
/* None is being added or removed. */
bool errors_idle(const struct fs *fs);
void errors_free(struct fs *fs);

/*
 * A place of which a note says that it is damaged is looked at again, from
 * errors_watch() to errors_unwatch(), which returns whether damage was met
 * there: that is not noted once more.  One place at a time.
 */
void errors_watch(struct fs *fs, const struct error *error);
bool errors_unwatch(struct fs *fs);

/* Removes a note, in the background. */
void errors_remove(struct fs *fs, uint64_t number);

/*
 * FS_ERRORS: op->buffer gets a JSON array of objects, oldest first, from number
 * op->offset2 on and as many as fit into an attribute, allocated (the caller
 * frees), op->result its length.  "path" is where the file was
 * made or last moved to; null when it is not there any more.
 */
void errors_op_list(struct fs *fs, struct fs_op *op);

/* FS_ERRORS_CLEAR: removes the notes with numbers from op->offset2 on, and
 * before op->size. */
void errors_op_clear(struct fs *fs, struct fs_op *op);

#endif

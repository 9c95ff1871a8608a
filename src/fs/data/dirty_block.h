/*
 * dirty_block.h - the blocks of a file that are newer than the disk, and log
 * pins.
 */
#ifndef TRAX_DATA_DIRTY_BLOCK_H
#define TRAX_DATA_DIRTY_BLOCK_H

#include "fs/data/file_data.h"

/* The block, or NULL. */
struct block *block_find(const struct file *file, uint64_t index);
/* The first at or behind index. */
struct block *block_at_or_after(const struct file *file, uint64_t index);
/* Adds a block that is not there; its data is not set.  NULL: pool empty. */
struct block *block_add(struct file *file, uint64_t index);
/* The same with a buffer of the dirty pool that is full already, and in the
 * log.  There is a descriptor for each buffer. */
struct block *block_add_held(struct file *file, uint64_t index, void *data,
			     struct log_pin *pin);
/* The same with data of abandon_alloc, which neither the pool nor the number of
 * its buffers bounds.  NULL: no memory. */
struct block *block_add_foreign(struct file *file, uint64_t index,
				const void *data);
/* Before data is changed: a block in a write-back, or pinned, gets a buffer of
 * its own. false: pool empty. */
bool block_unshare(struct files *files, struct block *block);
void block_dirty(struct file *file, struct block *block);
/* The file's data is about to change, or to go with the file: whoever watches
 * it hears of it. */
void content_changes(const struct file *file, bool gone);
/* Not dirty any more; keeps it. */
void block_clean(struct file *file, struct block *block);
/* Dirty again because it could not be written: as old as it was. */
void block_redirty(struct file *file, struct block *block, uint64_t stamp);
void block_unreserve(struct file *file, struct block *block);
/* Removes it, whatever it was; not in a write-back. */
void block_drop(struct file *file, struct block *block);
/* Drops it unless it is dirty, pinned or in a write-back. */
void block_drop_clean(struct file *file, struct block *block);
/*
 * The same for a block that has been written.  One of a small file stays as
 * long as its buffer is not needed and somebody knows the file: it may be read
 * or changed soon, and the kernel does not have to have kept its page.
 */
void block_keep(struct file *file, struct block *block);
/* Drops the kept blocks among [first, end). */
void blocks_forget(struct file *file, uint64_t first, uint64_t end);
/* Buffers of the dirty pool that may be taken. */
size_t buffers_free(const struct files *files);

/* Holds. */
void log_pin_set(struct file *file, struct block *block, struct log_pin *pin);
/* Gives up a block's hold: at once (it is destaged), or when record seq (0: the
 * newest) is durable. */
void log_pin_drop(struct file *file, struct block *block);
void log_pin_drop_later(struct file *file, struct block *block, uint64_t seq);
/* Gives up what has become durable; `committed`: the commit that began after
 * log_pin_cover has succeeded. */
void log_pin_run(struct files *files, bool committed);
void log_pin_cover(struct files *files);

#endif

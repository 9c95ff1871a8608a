/*
 * dirty_block.h - the blocks of a file that are newer than the disk, and log
 * pins.
 */
#ifndef TRAX_DATA_DIRTY_BLOCK_H
#define TRAX_DATA_DIRTY_BLOCK_H

#include "fs/data/file_data.h"

/* The block of this index; NULL: it is not in memory. */
struct block *block_find(const struct file *file, uint64_t index);
/* The first block at or behind an index; NULL. */
struct block *block_at_or_after(const struct file *file, uint64_t index);
/* Adds a block that is not in memory; its data is not set. NULL: the pool is
 * empty. */
struct block *block_add(struct file *file, uint64_t index);
/* Adds a pinned block: `data` is a buffer of the dirty pool with the content,
 * which a log record has, too.  It cannot fail, as there is a descriptor for
 * each buffer. */
struct block *block_add_held(struct file *file, uint64_t index, void *data,
			     struct log_pin *pin);
/* Adds a block whose memory comes from abandon_alloc, so that the pool does not
 * bound it.  NULL: no memory. */
struct block *block_add_foreign(struct file *file, uint64_t index,
				const void *data);
/* Called before the content changes: a block that a write-back or a log pin
 * shares gets a buffer of its own. false: the pool is empty. */
bool block_unshare(struct files *files, struct block *block);
void block_dirty(struct file *file, struct block *block);

/* The list (group_link) that has the dirty files of the file's directory, and
 * those of a few others. */
struct list *file_group(const struct file *file);
void file_set_parent(struct file *file, uint64_t parent);
/* Calls the content watch: the file's data is about to change, or to be deleted
 * with the file (`gone`). */
void content_changes(const struct file *file, bool gone);
/* The block is no longer dirty, and stays. */
void block_clean(struct file *file, struct block *block);
/* The block could not be written: it is dirty again, as old as before. */
void block_redirty(struct file *file, struct block *block, uint64_t stamp);
void block_unreserve(struct file *file, struct block *block);
/* Removes a block that is in no write-back, whatever its state is. */
void block_drop(struct file *file, struct block *block);
/* Removes a block unless it is dirty, pinned or in a write-back. */
void block_drop_clean(struct file *file, struct block *block);
/* Are so few buffers of the dirty pool left that no write-back may wait for a
 * gap? */
bool buffers_short(const struct files *files);

/* Log pins. */
void log_pin_set(struct file *file, struct block *block, struct log_pin *pin);
/* Drops a block's pin: log_pin_drop at once, after the destage;
 * log_pin_drop_later when record seq (0: the newest) is durable. */
void log_pin_drop(struct file *file, struct block *block);
void log_pin_drop_later(struct file *file, struct block *block, uint64_t seq);
/* Called when a commit begins: it covers all pins that are to be dropped by
 * now.  Several commits may be under way; returns the number of this one. */
uint64_t log_pin_cover(struct files *files);
/* Drops the pins whose records have become durable.  `committed`: the number of
 * a commit that has succeeded; 0: none has. */
void log_pin_run(struct files *files, uint64_t committed);

#endif

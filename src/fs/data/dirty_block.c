/*
 * dirty_block.c - the blocks of a file that are in memory, in order, and the
 * log records that hold them.
 *
 * They are in a treap whose priorities come from the index, threaded in order.
 * Descriptors and buffers are made once, at mount.
 *
 * A log pin stands for one transaction with logged data.  Its record may be
 * forgotten when each of its blocks was destaged, or has been superseded by a
 * change that is itself durable.  A pinned block keeps the pinned content
 * beside the new one when it is written to, so that a destage never has to read
 * the log.
 */
#include "fs/data/dirty_block.h"

#include <stdlib.h>

#include "base/units.h"
#include "fs/data/file.h"
#include "fs/op/content_watch.h"

/* With at most this part of the pool free no write-back waits for gaps. */
#define SHORT_PART 4u

static uint32_t block_priority(uint64_t index)
{
	uint64_t z = (index + 1) * 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	return (uint32_t)(z >> 32);
}

struct block *block_at_or_after(const struct file *file, uint64_t index)
{
	struct block *block = file->root, *best = NULL;

	while (block) {
		if (block->index == index)
			return block;
		if (block->index > index) {
			best = block;
			block = block->left;
		} else {
			block = block->right;
		}
	}
	return best;
}

struct block *block_find(const struct file *file, uint64_t index)
{
	struct block *block = block_at_or_after(file, index);

	return block && block->index == index ? block : NULL;
}

/* Splits a treap into indices below `index`, and the others. */
static void treap_split(struct block *root, uint64_t index,
			struct block **low, struct block **high)
{
	while (root) {
		if (root->index < index) {
			*low = root;
			low = &root->right;
			root = root->right;
		} else {
			*high = root;
			high = &root->left;
			root = root->left;
		}
	}
	*low = NULL;
	*high = NULL;
}

static struct block *treap_join(struct block *low, struct block *high)
{
	struct block *root, **at = &root;

	while (low && high) {
		if (low->priority >= high->priority) {
			*at = low;
			at = &low->right;
			low = low->right;
		} else {
			*at = high;
			at = &high->left;
			high = high->left;
		}
	}
	*at = low ? low : high;
	return root;
}

static void treap_insert(struct file *file, struct block *block)
{
	struct block **at = &file->root, *prev = NULL, *next = NULL;

	while (*at && (*at)->priority >= block->priority) {
		if ((*at)->index < block->index) {
			prev = *at;
			at = &(*at)->right;
		} else {
			next = *at;
			at = &(*at)->left;
		}
	}
	treap_split(*at, block->index, &block->left, &block->right);
	*at = block;
	if (block->left)
		for (prev = block->left; prev->right; prev = prev->right)
			;
	if (block->right)
		for (next = block->right; next->left; next = next->left)
			;
	block->prev = prev;
	block->next = next;
	if (prev)
		prev->next = block;
	else
		file->head = block;
	if (next)
		next->prev = block;
}

static void treap_remove(struct file *file, struct block *block)
{
	struct block **at = &file->root;

	while (*at != block)
		at = (*at)->index < block->index ? &(*at)->right : &(*at)->left;
	*at = treap_join(block->left, block->right);
	if (block->prev)
		block->prev->next = block->next;
	else
		file->head = block->next;
	if (block->next)
		block->next->prev = block->prev;
}

static void block_init(struct file *file, struct block *block, uint64_t index,
		       void *data)
{
	*block = (struct block){
		.index = index, .data = data, .file = file,
		.priority = block_priority(index),
	};
	list_init(&block->link);
	treap_insert(file, block);
	file->blocks++;
}

bool buffers_short(const struct files *files)
{
	return pool_available(files->dirty_pool) <=
	       pool_count(files->dirty_pool) / SHORT_PART;
}

/* Counts a new block of a small file.  Both counts are halved now and then, so
 * that they follow what happens now. */
static void block_born(struct files *files)
{
	if (++files->small_born < pool_count(files->dirty_pool) / 2)
		return;
	files->small_born /= 2;
	files->small_died /= 2;
}

struct block *block_add(struct file *file, uint64_t index)
{
	struct files *files = file->files;
	void *data = pool_get(files->dirty_pool);
	struct block *block = files->block_free;

	if (!data)
		return NULL;
	files->block_free = block->next;
	block_init(file, block, index, data);
	if (file->size <= SMALL_FILE_BYTES)
		block_born(files);
	return block;
}

struct block *block_add_held(struct file *file, uint64_t index, void *data,
			     struct log_pin *pin)
{
	struct files *files = file->files;
	struct block *block = files->block_free;

	files->block_free = block->next;
	block_init(file, block, index, data);
	log_pin_set(file, block, pin);
	return block;
}

struct block *block_add_foreign(struct file *file, uint64_t index,
				const void *data)
{
	struct block *block = abandon_alloc(file->files->fs, sizeof(*block));

	if (!block)
		return NULL;
	block_init(file, block, index, (void *)data);
	block->foreign = true;
	return block;
}

bool block_unshare(struct files *files, struct block *block)
{
	void *data;

	if (!pool_is_shared(files->dirty_pool, block->data))
		return true;
	data = pool_get(files->dirty_pool);
	if (!data)
		return false;
	memcpy(data, block->data, BLOCK_BYTES);
	pool_put(files->dirty_pool, block->data);
	block->data = data;
	return true;
}

/* The kernel writes dirty pages after 30 s (dirty_expire_centisecs), or when
 * the file is closed. */
#define KERNEL_AGE_NS (30 * NS_PER_SECOND)

/* Time since which the kernel may have had the data that arrives now. */
static uint64_t first_written_ns(const struct file *file)
{
	uint64_t now_ns = env_now_ns(file->files->fs->env);
	uint64_t opened_ns = file->vnode->opened_ns;
	uint64_t ns = now_ns > KERNEL_AGE_NS ? now_ns - KERNEL_AGE_NS : 0;

	return ns > opened_ns ? ns : opened_ns;
}

void content_changes(const struct file *file, bool gone)
{
	struct content_watch *watch = file->files->fs->content_watch;

	if (watch)
		watch->changed(watch, file->ino, gone);
}

/* The list for the files of a directory, and of others with the same hash. */
struct list *file_group(const struct file *file)
{
	uint64_t hash = file->parent * UINT64_C(0x9e3779b97f4a7c15);

	return &file->files->dirty_groups[(hash >> 32) % DIRTY_GROUPS];
}

void file_set_parent(struct file *file, uint64_t parent)
{
	if (file->parent == parent)
		return;
	file->parent = parent;
	if (!file->dirty_count)
		return;
	list_del(&file->group_link);
	list_add(file_group(file), &file->group_link);
}

void block_dirty(struct file *file, struct block *block)
{
	struct files *files = file->files;

	if (block->dirty)
		return;
	content_changes(file, false);
	block->dirty = true;
	block->stamp = ++files->stamp;
	block->dirty_ns = first_written_ns(file);
	list_add(&file->dirty, &block->link);
	if (file->dirty_count++ == 0) {
		list_add(&files->dirty_files, &file->dirty_link);
		list_add(file_group(file), &file->group_link);
	}
	files->dirty_count++;
}

/* Walks that would go on with this file go on with the next one. */
static void leave_walks(struct file *file)
{
	struct flush_walk *walk = file->files->walks;
	enum flush_walks kind;

	for (kind = 0; kind < FLUSH_WALKS; kind++)
		if (walk[kind].next == &file->dirty_link)
			walk[kind].next = file->dirty_link.next;
}

void block_clean(struct file *file, struct block *block)
{
	if (!block->dirty)
		return;
	block->dirty = false;
	list_del(&block->link);
	if (--file->dirty_count == 0) {
		leave_walks(file);
		list_del(&file->dirty_link);
		list_del(&file->group_link);
	}
	file->files->dirty_count--;
}

void block_redirty(struct file *file, struct block *block, uint64_t stamp)
{
	if (block->dirty)
		return;
	block_dirty(file, block);
	block->stamp = stamp;
	list_del(&block->link);
	list_add_front(&file->dirty, &block->link);
}

void block_unreserve(struct file *file, struct block *block)
{
	if (!block->reserved)
		return;
	block->reserved = false;
	file->reserved_count--;
	space_release(tree_space(file->files->fs->tree), BLOCK_SECTORS);
}

void block_drop(struct file *file, struct block *block)
{
	struct files *files = file->files;

	block_clean(file, block);
	block_unreserve(file, block);
	if (block->pin)
		log_pin_drop_later(file, block, 0);
	treap_remove(file, block);
	if (!block->foreign)
		pool_put(files->dirty_pool, block->data);
	file->blocks--;
	block->next = files->block_free;
	files->block_free = block;
}

void block_drop_clean(struct file *file, struct block *block)
{
	if (!block->dirty && !block->pin && !block->wb && !block->foreign)
		block_drop(file, block);
}

/* ---- Log pins ---- */

static void log_pin_unref(struct files *files, struct log_pin *pin,
			  unsigned refs)
{
	pin->refs -= refs;
	if (pin->refs)
		return;
	tree_log_unpin(files->fs->tree, pin->seq);
	list_del(&pin->link);
	abandon_free(pin);
}

static void log_pin_detach(struct file *file, struct block *block)
{
	pool_put(file->files->dirty_pool, block->pinned_data);
	block->pinned_data = NULL;
	block->pin = NULL;
	if (--file->pinned_count == 0)
		list_del(&file->pinned_link);
	file->files->pinned_count--;
}

void log_pin_set(struct file *file, struct block *block, struct log_pin *pin)
{
	if (block->pin)
		log_pin_drop_later(file, block, pin->seq);
	if (file->files->pinned_count == 0)
		file->files->oldest_pinned_ns =
			env_now_ns(file->files->fs->env);
	block->pin = pin;
	block->pinned_data = pool_share(file->files->dirty_pool, block->data);
	pin->refs++;
	if (file->pinned_count++ == 0)
		list_add(&file->files->pinned_files, &file->pinned_link);
	file->files->pinned_count++;
}

void log_pin_drop(struct file *file, struct block *block)
{
	struct log_pin *pin = block->pin;

	log_pin_detach(file, block);
	log_pin_unref(file->files, pin, 1);
}

/* The pin is dropped when the last of its blocks may go, so the latest record
 * of all blocks counts. */
void log_pin_drop_later(struct file *file, struct block *block, uint64_t seq)
{
	struct log_pin *pin = block->pin;

	log_pin_detach(file, block);
	if (!pin->dropped++) {
		list_add(&file->files->log_unpins, &pin->drop_link);
		pin->drop_seq = seq;
	} else if (!seq || (pin->drop_seq && seq > pin->drop_seq)) {
		pin->drop_seq = seq;
	}
	pin->drop_commit = file->files->commits + 1;
}

uint64_t log_pin_cover(struct files *files)
{
	return ++files->commits;
}

void log_pin_run(struct files *files, uint64_t committed)
{
	struct log *log = tree_log(files->fs->tree);
	uint64_t durable = log_durable_seq(log);
	bool pending = log_has_pending(log);
	struct list *pos, *tmp;

	list_for_each_safe(pos, tmp, &files->log_unpins) {
		struct log_pin *pin = list_entry(pos, struct log_pin,
						 drop_link);
		const uint64_t seq = pin->drop_seq;
		const unsigned dropped = pin->dropped;

		if ((seq ? seq > durable : pending) &&
		    pin->drop_commit > committed)
			continue;
		/* The next root may free the older record. */
		log_depend_on(log, seq ? seq : durable);
		list_del(&pin->drop_link);
		pin->dropped = 0;
		log_pin_unref(files, pin, dropped);
	}
}

/*
 * logged_data.c - logged data found by recovery: for each block the place in
 * the log of its last content.
 *
 * A map from a hash of (ino, block) to a chain; a later content replaces an
 * earlier one in place.  The list is given in the order of the last contents.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/hashmap.h"
#include "tree/tree_internal.h"

struct logged_block {
	struct tree_data data;
	struct logged_block *chain;	/* next block with the same hash */
	struct list link;		/* all blocks, the oldest content
					 * first */
};

struct logged_data {
	struct hashmap *map;
	struct list blocks;
	size_t n;
	struct tree_data *list;
	size_t list_n;
};

int logged_data_new(struct logged_data **log)
{
	struct logged_data *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	list_init(&d->blocks);
	d->map = hashmap_new();
	if (!d->map) {
		free(d);
		return -ENOMEM;
	}
	*log = d;
	return 0;
}

void logged_data_free(struct logged_data *log)
{
	if (!log)
		return;
	while (!list_empty(&log->blocks)) {
		struct logged_block *b = list_first(&log->blocks,
						  struct logged_block, link);

		list_del(&b->link);
		free(b);
	}
	hashmap_free(log->map);
	free(log->list);
	free(log);
}

static struct logged_block *find(const struct logged_data *log, uint64_t hash,
			       uint64_t ino, uint64_t block)
{
	struct logged_block *b = hashmap_get(log->map, hash);

	while (b && (b->data.ino != ino || b->data.block != block))
		b = b->chain;
	return b;
}

int logged_data_add(struct logged_data *log, const struct tree_data *data)
{
	const uint64_t name[2] = { data->ino, data->block };
	const uint64_t hash = csum(name, sizeof(name));
	struct logged_block *b = find(log, hash, data->ino, data->block);

	if (b) {
		list_del(&b->link);
	} else {
		b = calloc(1, sizeof(*b));
		if (!b)
			return -ENOMEM;
		b->chain = hashmap_get(log->map, hash);
		if (hashmap_put(log->map, hash, b)) {
			free(b);
			return -ENOMEM;
		}
		list_init(&b->link);
		log->n++;
	}
	b->data = *data;
	list_add(&log->blocks, &b->link);
	return 0;
}

int logged_data_close(struct logged_data *log)
{
	struct list *pos;

	if (!log->n)
		return 0;
	log->list = calloc(log->n, sizeof(*log->list));
	if (!log->list)
		return -ENOMEM;
	list_for_each(pos, &log->blocks)
		log->list[log->list_n++] = list_entry(pos, struct logged_block,
						      link)->data;
	return 0;
}

size_t logged_data_list(const struct logged_data *log,
			const struct tree_data **data)
{
	*data = log ? log->list : NULL;
	return log ? log->list_n : 0;
}

uint64_t replay_tail(const struct tree *tree)
{
	const struct tree_data *data;

	return logged_data_list(tree->data, &data) ? data[0].seq : UINT64_MAX;
}

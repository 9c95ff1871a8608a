/*
 * node.h - operations on one node in place, in the form it has on disk.
 *
 * Pure memory on TRAX_NODE_BYTES that node_verify has accepted or node_init
 * made.  Positions count from 0.  Nothing here fails: what must fit is asked
 * first (node_fits).
 */
#ifndef TRAX_TREE_NODE_H
#define TRAX_TREE_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "format/format.h"

#define NODE_BODY_BYTES (TRAX_NODE_BYTES - sizeof(struct node_header))
/* Bytes of an item in a leaf beside its value. */
#define NODE_ITEM_BYTES sizeof(struct leaf_slot)
#define NODE_MAX_CHILDREN (NODE_BODY_BYTES / sizeof(struct child_slot))

/* An empty node without a place. */
void node_init(void *node, uint64_t fsid, unsigned level, struct key low,
	       struct key high);
void node_set_place(void *node, traxaddr addr, traxaddr addr2, uint64_t gen);
void node_set_low(void *node, struct key low);
void node_set_high(void *node, struct key high);

unsigned node_count(const void *node);
unsigned node_level(const void *node);
struct key node_low(const void *node);
struct key node_high(const void *node);
/* The key of item or child i. */
struct key node_key(const void *node, unsigned i);

/* ---- Leaves ---- */

/* First position whose key is >= key (n: none); *found: it is equal. */
unsigned node_find(const void *node, struct key key, bool *found);
const void *node_value(const void *node, unsigned i, size_t *bytes);
/* Bytes of all slots and of the values that are in use. */
size_t node_used(const void *node);
/* Is there room for one more item with a value of `bytes`? */
bool node_fits(const void *node, size_t bytes);
void node_insert(void *node, unsigned i, struct key key, const void *value,
		 size_t bytes);
void node_remove(void *node, unsigned i);
/* Removes the items [i, i + n). */
void node_remove_run(void *node, unsigned i, unsigned n);
/*
 * Where to cut a leaf so that an item of `bytes` can go to position i: items
 * from the result on go to the right, and so does the new item if *right. If i
 * is the very end no item moves, so that ascending inserts fill leaves;
 * otherwise each half gets half of the bytes.
 */
unsigned node_split_point(const void *node, unsigned i, size_t bytes,
			  bool *right);

/* ---- Interior nodes ---- */

/* The child that covers key. */
unsigned node_child_find(const void *node, struct key key);
struct node_ptr node_child(const void *node, unsigned i);
void node_child_set(void *node, unsigned i, const struct node_ptr *ptr);
void node_child_set_key(void *node, unsigned i, struct key key);
bool node_child_full(const void *node);
void node_child_insert(void *node, unsigned i, struct key key,
		       const struct node_ptr *ptr);
void node_child_remove(void *node, unsigned i);
/* Highest key that child i may hold. */
struct key node_child_high(const void *node, unsigned i);

/* ---- Both ---- */

/* Moves items or children [i, n) to the end of `to`, where there is room. */
void node_move(void *node, unsigned i, void *to);

#endif

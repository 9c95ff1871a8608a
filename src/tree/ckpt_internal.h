/*
 * ckpt_internal.h - checkpoints from inside: checkpoint.c (cut, root, when),
 * ckpt_write.c (nodes), ckpt_spill.c (some leaves without a root),
 * ckpt_gather.c (leaves that lie apart).
 */
#ifndef TRAX_TREE_CKPT_INTERNAL_H
#define TRAX_TREE_CKPT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "tree/tree_internal.h"

/* Charged for a leaf that a checkpoint moves, in nanoseconds. */
#define CKPT_TAKE_NS 1500u

/* ---- checkpoint.c ---- */

/* ckpt_add adds a buffer to those that are to be written; ckpt_freeze freezes
 * it, too. */
void ckpt_add(struct checkpoint *ckpt, struct buffer *buffer);
void ckpt_freeze(struct tree *tree, struct buffer *buffer);

/* Begins to write all nodes that are not written yet, and then the mirrors. */
void ckpt_begin_writing(struct tree *tree);

/* ---- ckpt_write.c ---- */

/* Begins to sort the buffers: by level and place, or by the mirrors' places.
 * ckpt_pump goes on with it. */
void ckpt_order(struct tree *tree, bool mirrors);

/* Seals and submits as many as there is room for, in this turn. */
void ckpt_pump(struct tree *tree);

/* Has everything been submitted? */
bool ckpt_all_submitted(const struct checkpoint *ckpt);

/* Called when no write is outstanding and some have failed. The nodes that
 * failed move, and all nodes above them are written again after the pause;
 * these then name the new places of the nodes that moved the time before. */
void ckpt_write_again(struct tree *tree, uint64_t now_ns);

/* ---- ckpt_spill.c ---- */

/* Begins to write some dirty leaves without a root; false: too few. */
bool ckpt_spill_begin(struct tree *tree);
void ckpt_spill_run(struct tree *tree);

/* Gives a dirty leaf slots behind those of the leaf before, if there are
 * any. */
void ckpt_take_next(struct tree *tree, struct buffer *leaf);

/* ---- ckpt_gather.c ---- */

/* Before a cut: brings leaves together, if that was asked for; and gives leaves
 * that are written anyway slots in the order of their keys. */
void ckpt_gather(struct tree *tree);
void ckpt_line_up(struct tree *tree);

#endif

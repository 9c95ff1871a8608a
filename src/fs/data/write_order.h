/*
 * write_order.h - writes data before the names and sizes that lead to it, where
 * files are replaced.
 */
#ifndef TRAX_DATA_WRITE_ORDER_H
#define TRAX_DATA_WRITE_ORDER_H

#include "fs/data/file_data.h"

/* order_cut: the file has been truncated to nothing. order_closed: its last
 * handle is gone. */
void order_cut(struct file *file);
void order_closed(struct file *file);
/* Must a commit that somebody asked for wait?  Then go() follows. */
bool order_waits(struct files *files, struct order_wait *wait);
/* Ends waits that have lasted long enough; returns when the next one has. */
uint64_t order_run(struct files *files, uint64_t now_ns);
/* Until when the commit by age is to wait (see tree_set_order). */
uint64_t order_commit(void *files);

#endif

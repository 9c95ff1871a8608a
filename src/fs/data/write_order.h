/*
 * write_order.h - data before names and sizes: files that are replaced.
 */
#ifndef TRAX_DATA_WRITE_ORDER_H
#define TRAX_DATA_WRITE_ORDER_H

#include "fs/data/file_data.h"

/* The file has been truncated to nothing; its last handle is gone. */
void order_cut(struct file *file);
void order_closed(struct file *file);
/* Has a commit that somebody asked for to wait?  Then go() follows. */
bool order_waits(struct files *files, struct order_wait *wait);
/* Ends waits that have been long enough; when that is next. */
uint64_t order_run(struct files *files, uint64_t now_ns);
/* Until when the commit by age is to wait (see tree_set_order). */
uint64_t order_commit(void *files);

#endif

/*
 * box.h - a control group with little memory, for a file system's daemon and
 * what uses it.
 */
#ifndef TRAX_BENCH_BOX_H
#define TRAX_BENCH_BOX_H

/*
 * This process and those that it starts from now on have memory_mib MiB, pages
 * of files included.  What must be undone is written to a file, for guard.h.
 * 0 or a negative errno, reported through msg.
 */
int box_enter(const char *undo_file, unsigned memory_mib);
/* Goes back to the group of all. */
void box_leave(const char *undo_file);

#endif

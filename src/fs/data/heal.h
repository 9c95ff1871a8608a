/*
 * heal.h - blocks whose place is bad move to another one.
 */
#ifndef TRAX_DATA_HEAL_H
#define TRAX_DATA_HEAL_H

#include "fs/data/file_data.h"
#include "fs/data/read_events.h"

/*
 * Some of these blocks of a chunk, which is valid in memory, cannot be read
 * where they lie (they were found elsewhere).  In the background each is read
 * once more there and compared; what is bad is written to a new place, and the
 * old one is not used again.  Noted as errors (errors.h).  What is not begun
 * here the next read finds again.
 */
void heal_start(struct file *file, uint64_t piece, uint16_t blocks);

/* The same for what a read has found. */
extern const struct read_events heal_events;

#endif

/*
 * heal.h - moves blocks whose place is bad to another one.
 */
#ifndef TRAX_DATA_HEAL_H
#define TRAX_DATA_HEAL_H

#include "fs/data/file_data.h"
#include "fs/data/read_events.h"

/*
 * Some of these blocks of a chunk could not be read at their place, but were
 * found in a replica or the log; the chunk is valid.  In the background each is
 * read once more at its place and compared.  A bad one is written to a new
 * place, its old one is not used again, and an error is noted (errors.h).
 * Where this cannot begin now, the next read that finds the damage calls it
 * again.
 */
void heal_start(struct file *file, uint64_t chunk, uint16_t blocks);

/* Calls it for damage that a read has found. */
extern const struct read_events heal_events;

#endif

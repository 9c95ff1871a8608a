/*
 * prefix.h - how far users read into the files of a directory.
 *
 * A program that reads the first bytes of each file (a file manager, a search
 * for types) wants no more of the next one, and one that packs a tree wants all
 * of it.  For each directory that is read in, the last files are remembered,
 * with how far users read into each; the read-ahead of the next file follows
 * from that.
 */
#ifndef TRAX_DATA_PREFIX_H
#define TRAX_DATA_PREFIX_H

#include <stdint.h>

struct file;
struct files;
struct prefixes;

/* Results of prefix_expected: all of the file; nothing is known of its
 * directory. */
#define PREFIX_WHOLE UINT64_MAX
#define PREFIX_UNKNOWN 0u

/* NULL: no memory. */
struct prefixes *prefixes_new(void);
void prefixes_free(struct prefixes *prefixes);

/* A user reads [offset, end) of a file that is loaded. */
void prefix_read(struct file *file, uint64_t offset, uint64_t end);

/* How many bytes of this file, from its start, users will want. */
uint64_t prefix_expected(const struct file *file);

#endif

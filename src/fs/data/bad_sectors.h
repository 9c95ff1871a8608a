/*
 * bad_sectors.h - sectors that could not be written.
 */
#ifndef TRAX_DATA_BAD_SECTORS_H
#define TRAX_DATA_BAD_SECTORS_H

#include "fs/data/file_data.h"

/* A write to these sectors has failed.  They were taken and belong to nobody:
 * what is good of them is given back, what is bad is owned by that. */
void bad_sectors_suspect(struct files *files, uint64_t sector, uint64_t n);
/* Goes on with those that wait. */
void bads_run(struct files *files, uint64_t now_ns);

#endif

/*
 * bad_sectors.h - sectors that could not be written.
 */
#ifndef TRAX_DATA_BAD_SECTORS_H
#define TRAX_DATA_BAD_SECTORS_H

#include "fs/data/file_data.h"

/* A write to these sectors has failed.  They were taken (space_take) and have
 * no owner.  Good ones are given back, bad ones get the owner OWNER_BAD. */
void bad_sectors_suspect(struct files *files, uint64_t sector, uint64_t n);
/* Goes on with tries that wait for their time. */
void bads_run(struct files *files, uint64_t now_ns);

#endif

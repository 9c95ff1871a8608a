/*
 * block_units.h - the units in which file data is kept: blocks of 4 KiB, and
 * chunks of 64 KiB, which may have one checksum for all of it.
 */
#ifndef TRAX_OP_BLOCK_UNITS_H
#define TRAX_OP_BLOCK_UNITS_H

#include "format/format.h"

#define BLOCK_BYTES TRAX_BLOCK_BYTES
#define BLOCK_SECTORS TRAX_BLOCK_SECTORS
#define CHUNK_BLOCKS TRAX_CSUM_CHUNK_BLOCKS
#define CHUNK_BYTES (CHUNK_BLOCKS * BLOCK_BYTES)

#endif

/*
 * translate.h - where a block lies, by the drive's own word: SEND and RECEIVE
 * DIAGNOSTIC with the Translate Address page (40h).
 *
 * Which of the formats of blocks and ways of asking a drive takes is found out
 * once.  Every translation costs a pair of commands, about 1.3 to 2.3 ms on
 * drives of the papers; they are counted.
 */
#ifndef TRAX_SCSI_TRANSLATE_H
#define TRAX_SCSI_TRANSLATE_H

#include <stddef.h>

#include "extract/scsi/scsi.h"

struct translate;

struct translate_place {
	uint32_t cylinder, head, sector;
	bool alternate;		/* not where it was made: reassigned */
};

/* Formats of addresses. */
enum translate_format {
	TRANSLATE_SHORT_BLOCK = 0,	/* 32-bit LBA */
	TRANSLATE_LONG_BLOCK = 3,	/* 64-bit LBA */
	TRANSLATE_SECTOR = 5,		/* cylinder, head, sector */
};

/* The port outlives it.  -EOPNOTSUPP: the drive does not translate; -ERANGE:
 * not up to its last block, as an address has three bytes for the cylinder. */
int translate_open(struct scsi_port *port, uint64_t blocks,
		   struct translate **translate);
void translate_close(struct translate *translate);

/* -ENODATA: the drive does not say. */
int translate_block(struct translate *translate, uint64_t lba,
		    struct translate_place *out);

/* Commands that were sent. */
uint64_t translate_count(const struct translate *translate);

#endif

/*
 * scsi_target.h - a SCSI drive that answers as real ones do, from a geometry.
 *
 * Its habits are those that drives are known to have.  It does not store
 * anything: reads bring zeros.  For tests of src/extract, and behind a real
 * kernel's SCSI stack in tests/lab/scsi_daemon.c.
 */
#ifndef TRAX_RIG_SCSI_TARGET_H
#define TRAX_RIG_SCSI_TARGET_H

#include "diskmodel/geom.h"
#include "extract/scsi/translate.h"

struct scsi_target_habits {
	uint32_t block_bytes;	/* bytes of a block; 0: 512 */
	bool no_page;		/* translates nothing */
	bool no_end;		/* or not the last block */
	bool short_only;	/* knows 32-bit blocks only */
	bool last_page_only;	/* it refuses RECEIVE with PCV */
	bool two_places;	/* a block's second one, behind the first */
	bool alternate_track;	/* ALTTRK always: it cannot tell */
	bool capacity_10_only;
	unsigned attention;	/* commands from one UNIT ATTENTION to the next;
				 * 0: there is none */
};

struct scsi_target;

/* The geometry outlives it.  NULL: out of memory. */
struct scsi_target *scsi_target_new(const struct geom *geom,
				    const struct scsi_target_habits *habits);
void scsi_target_free(struct scsi_target *target);

/* A port to it; scsi_close leaves the target alone. */
struct scsi_port *scsi_target_port(struct scsi_target *target);

/* Answers one command: for those who get it from elsewhere.  in_bytes is the
 * room; sets got_bytes and the sense. */
void scsi_target_answer(struct scsi_target *target,
			struct scsi_command *command);

/* A mode page as it is now (its code, a subpage's above it), *n bytes. */
const uint8_t *scsi_target_page(const struct scsi_target *target,
				unsigned page, unsigned *n);

uint64_t scsi_target_commands(const struct scsi_target *target);

#endif

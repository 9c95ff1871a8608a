/*
 * scsi.h - what SCSI drives are asked to tell about themselves.
 *
 * A port carries commands to one drive: SG_IO (scsi_open), or an emulated
 * target in tests.  It is owned by who opened it.  The functions below build a
 * command, repeat it while the drive reports a unit attention or is becoming
 * ready, and decode the answer, of which nothing is believed.
 *
 * Errors: -EOPNOTSUPP: the drive does not know the command, page or field;
 * -ENODATA: it has nothing to tell; -EBADMSG: an answer that cannot be;
 * -EIO: medium or hardware; -ENODEV, -ETIMEDOUT...: the way to it.
 *
 * LBAs and lengths are in the drive's logical blocks.
 */
#ifndef TRAX_SCSI_SCSI_H
#define TRAX_SCSI_SCSI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scsi_command {
	const uint8_t *cdb;
	unsigned cdb_bytes;
	const void *out;	/* to the drive, or NULL */
	uint32_t out_bytes;
	void *in;		/* from the drive, or NULL */
	uint32_t in_bytes;

	/* Set by the port. */
	uint32_t got_bytes;	/* of in */
	uint8_t key, asc, ascq;	/* sense; key 0: good */
};

struct scsi_port {
	/* 0 when the drive has answered, with a sense key or without. */
	int (*command)(struct scsi_port *port, struct scsi_command *command);
	void (*close)(struct scsi_port *port);
};

/* SG_IO on a block device or /dev/sg.  The caller sees to it that nobody else
 * uses the device: another's SEND DIAGNOSTIC would change our answers.
 * -EOPNOTSUPP: not SCSI. */
int scsi_open(const char *path, struct scsi_port **port);
void scsi_close(struct scsi_port *port);

/* One command; what the sense data says as an errno, -EAGAIN when it is
 * something that passes. */
int scsi_try(struct scsi_port *port, struct scsi_command *command);
/* The same, repeated while it passes; at last -EBUSY. */
int scsi_do(struct scsi_port *port, struct scsi_command *command);

struct scsi_capacity {
	uint64_t blocks;
	uint32_t block_bytes;
};
int scsi_read_capacity(struct scsi_port *port, struct scsi_capacity *out);

/* A mode page's current (0), changeable (1), default (2) or saved (3) values,
 * with its header of two bytes, or four of a subpage; *n is its length. */
#define SCSI_SUBPAGE(page, sub) ((page) | (sub) << 8)
int scsi_mode_sense(struct scsi_port *port, unsigned page, unsigned control,
		    uint8_t *buf, unsigned room, unsigned *n);

/* Sets a page, as it was given; until the drive is switched off.  At most 240
 * bytes. */
int scsi_mode_select(struct scsi_port *port, const uint8_t *page, unsigned n);

/* ---- addresses ---- */

#endif

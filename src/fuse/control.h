/*
 * control.h - the one way in which traxctl changes something: an ioctl on the
 * root directory, for root and the mounting user only.
 *
 * What can be *seen* are the trax.* attributes (fuse/view.h).  The structure
 * is passed in and out; `result` is the command's, errors are the ioctl's:
 * EPERM, EOPNOTSUPP (unknown command), ENOTTY (not the root directory), EIO.
 */
#ifndef TRAX_FUSE_CONTROL_H
#define TRAX_FUSE_CONTROL_H

#include <stdint.h>
#include <sys/ioctl.h>

#define TRAX_CONTROL_PAYLOAD_BYTES 1008u

enum trax_control_command {
	TRAX_CONTROL_SYNC = 1,	/* all that was acknowledged to the medium */
};

struct trax_control {
	uint32_t command;	/* enum trax_control_command */
	uint32_t payload_bytes;	/* used of payload; 0: none */
	uint64_t result;
	uint8_t payload[TRAX_CONTROL_PAYLOAD_BYTES];
};

#define TRAX_IOC_CONTROL _IOWR('t', 0x58, struct trax_control)

#endif

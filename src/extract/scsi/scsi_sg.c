/*
 * scsi_sg.c - commands through SG_IO.
 */
#include <errno.h>
#include <fcntl.h>
#include <scsi/sg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <scsi/sg_lib.h>

#include "base/msg.h"
#include "extract/scsi/scsi.h"

#define TIMEOUT_MS 60000
#define SENSE_BYTES 64
/* What Linux says of the way to a drive. */
#define HOST_NO_CONNECT 0x01
#define HOST_TIME_OUT 0x03
#define HOST_BAD_TARGET 0x04

struct sg_port {
	struct scsi_port port;
	int fd;
};

static int way_error(const struct sg_io_hdr *io)
{
	switch (io->host_status) {
	case 0:		/* busy, reservation conflict */
		return io->status ? -EBUSY : 0;
	case HOST_NO_CONNECT:
	case HOST_BAD_TARGET:
		return -ENODEV;
	case HOST_TIME_OUT:
		return -ETIMEDOUT;
	default:
		return -EIO;
	}
}

static int sg_command(struct scsi_port *port, struct scsi_command *command)
{
	const struct sg_port *sg = (struct sg_port *)port;
	struct sg_scsi_sense_hdr header;
	uint8_t sense[SENSE_BYTES];
	struct sg_io_hdr io = {
		.interface_id = 'S',
		.cmd_len = (unsigned char)command->cdb_bytes,
		.cmdp = (unsigned char *)command->cdb,
		.sbp = sense,
		.mx_sb_len = SENSE_BYTES,
		.timeout = TIMEOUT_MS,
		.dxfer_direction = command->in ? SG_DXFER_FROM_DEV :
				   command->out ? SG_DXFER_TO_DEV :
						  SG_DXFER_NONE,
		.dxferp = command->in ? command->in : (void *)command->out,
		.dxfer_len = command->in ? command->in_bytes :
					   command->out_bytes,
	};

	if (ioctl(sg->fd, SG_IO, &io))
		return errno == ENOTTY || errno == EINVAL ? -EOPNOTSUPP :
		       errno == ENXIO ? -ENODEV : -errno;
	if (!io.sb_len_wr || !sg_scsi_normalize_sense(sense, io.sb_len_wr,
						      &header)) {
		int err = way_error(&io);

		if (err)
			return err;
	} else {
		command->key = header.sense_key;
		command->asc = header.asc;
		command->ascq = header.ascq;
	}
	command->got_bytes = command->in_bytes;
	if (io.resid > 0)
		command->got_bytes -= (uint32_t)io.resid < command->in_bytes ?
				      (uint32_t)io.resid : command->in_bytes;
	return 0;
}

static void sg_close(struct scsi_port *port)
{
	struct sg_port *sg = (struct sg_port *)port;

	close(sg->fd);
	free(sg);
}

int scsi_open(const char *path, struct scsi_port **port)
{
	struct sg_port *sg = calloc(1, sizeof(*sg));
	int err;

	if (!sg)
		return -ENOMEM;
	sg->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (sg->fd < 0) {
		err = -errno;
		msg_error("%s: %s", path, strerror(errno));
		free(sg);
		return err;
	}
	sg->port.command = sg_command;
	sg->port.close = sg_close;
	*port = &sg->port;
	return 0;
}

void scsi_close(struct scsi_port *port)
{
	if (port)
		port->close(port);
}

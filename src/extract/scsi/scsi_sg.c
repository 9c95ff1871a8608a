/*
 * scsi_sg.c - commands through SG_IO, by libsgutils2's pass-through: one object
 * for all commands, because tens of thousands follow each other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <scsi/sg_cmds_basic.h>
#include <scsi/sg_lib.h>
#include <scsi/sg_pt.h>

#include "base/msg.h"
#include "extract/scsi/scsi.h"

#define TIMEOUT_S 60
#define SENSE_BYTES 64
/* What Linux says of the way to a drive. */
#define HOST_NO_CONNECT 0x01
#define HOST_TIME_OUT 0x03
#define HOST_BAD_TARGET 0x04

struct sg_port {
	struct scsi_port port;
	struct sg_pt_base *pt;
	int fd;
	uint8_t sense[SENSE_BYTES];
};

static int sg_answer(struct sg_port *sg, struct scsi_command *command)
{
	struct sg_scsi_sense_hdr header;
	int n;

	switch (get_scsi_pt_result_category(sg->pt)) {
	case SCSI_PT_RESULT_GOOD:
		break;
	case SCSI_PT_RESULT_SENSE:
		n = get_scsi_pt_sense_len(sg->pt);
		if (!sg_scsi_normalize_sense(sg->sense, n, &header))
			return -EIO;
		command->key = header.sense_key;
		command->asc = header.asc;
		command->ascq = header.ascq;
		break;
	case SCSI_PT_RESULT_STATUS:	/* busy, reservation conflict */
		return -EBUSY;
	case SCSI_PT_RESULT_OS_ERR:
		n = get_scsi_pt_os_err(sg->pt);
		return n == ENOTTY || n == EINVAL ? -EOPNOTSUPP :
		       n == ENXIO ? -ENODEV : -n;
	case SCSI_PT_RESULT_TRANSPORT_ERR:
		switch (get_scsi_pt_transport_err(sg->pt)) {
		case HOST_NO_CONNECT:
		case HOST_BAD_TARGET:
			return -ENODEV;
		case HOST_TIME_OUT:
			return -ETIMEDOUT;
		}
		return -EIO;
	default:
		return -EIO;
	}
	n = get_scsi_pt_resid(sg->pt);
	command->got_bytes = command->in_bytes;
	if (n > 0)
		command->got_bytes -= (uint32_t)n < command->in_bytes ?
					      (uint32_t)n : command->in_bytes;
	return 0;
}

static int sg_command(struct scsi_port *port, struct scsi_command *command)
{
	struct sg_port *sg = (struct sg_port *)port;
	int rc;

	/* Or it would remember the command before. */
	clear_scsi_pt_obj(sg->pt);
	set_scsi_pt_cdb(sg->pt, command->cdb, command->cdb_bytes);
	set_scsi_pt_sense(sg->pt, sg->sense, sizeof(sg->sense));
	if (command->in)
		set_scsi_pt_data_in(sg->pt, command->in, command->in_bytes);
	if (command->out)
		set_scsi_pt_data_out(sg->pt, command->out, command->out_bytes);
	rc = do_scsi_pt(sg->pt, sg->fd, TIMEOUT_S, 0);
	if (rc < 0)
		return rc == -ENOTTY || rc == -EINVAL ? -EOPNOTSUPP :
		       rc == -ENXIO ? -ENODEV : rc;
	if (rc == SCSI_PT_DO_TIMEOUT)
		return -ETIMEDOUT;
	if (rc)
		return -EINVAL;
	return sg_answer(sg, command);
}

static void sg_close(struct scsi_port *port)
{
	struct sg_port *sg = (struct sg_port *)port;

	if (sg->pt)
		destruct_scsi_pt_obj(sg->pt);
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
	sg->pt = construct_scsi_pt_obj_with_fd(sg->fd, 0);
	if (!sg->pt) {
		sg_close(&sg->port);
		return -ENOMEM;
	}
	*port = &sg->port;
	return 0;
}

void scsi_close(struct scsi_port *port)
{
	if (port)
		port->close(port);
}

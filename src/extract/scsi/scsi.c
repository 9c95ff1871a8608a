/*
 * scsi.c - commands and their answers: SPC-4 and SBC-3 where they agree with
 * what drives do; the exceptions are told where they are made.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include <scsi/sg_unaligned.h>

#include "base/msg.h"
#include "extract/scsi/scsi.h"

#define REPEATS 20u
#define RECOVERED_ERROR 0x1
#define NOT_READY 0x2
#define ILLEGAL_REQUEST 0x5
#define UNIT_ATTENTION 0x6
#define ABORTED_COMMAND 0xb

#define PAGE_HAS_SUBPAGE 0x40

/* Those of sg_unaligned.h shift a byte into the sign of an int. */
static uint32_t get_be32(const uint8_t *p)
{
	return (uint32_t)sg_get_unaligned_be16(p) << 16 |
	       sg_get_unaligned_be16(p + 2);
}

static uint64_t get_be64(const uint8_t *p)
{
	return (uint64_t)get_be32(p) << 32 | get_be32(p + 4);
}

static bool sense_passes(const struct scsi_command *command)
{
	return command->key == UNIT_ATTENTION ||
	       command->key == ABORTED_COMMAND ||
	       (command->key == NOT_READY && command->asc == 0x04);
}

int scsi_try(struct scsi_port *port, struct scsi_command *command)
{
	int err;

	command->key = command->asc = command->ascq = 0;
	command->got_bytes = 0;
	err = port->command(port, command);
	if (err)
		return err;
	if (sense_passes(command))
		return -EAGAIN;
	switch (command->key) {
	case 0:
	case RECOVERED_ERROR:
		return 0;
	case ILLEGAL_REQUEST:
		/* The logical unit is not there any more. */
		return command->asc == 0x25 ? -ENODEV : -EOPNOTSUPP;
	default:
		return -EIO;
	}
}

int scsi_do(struct scsi_port *port, struct scsi_command *command)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	unsigned i;
	int err;

	for (i = 0; i < REPEATS; i++) {
		err = scsi_try(port, command);
		if (err != -EAGAIN)
			return err;
		if (command->key == NOT_READY)
			nanosleep(&pause, NULL);
	}
	return -EBUSY;
}

/* A command that brings data; at least `least` bytes of it. */
static int scsi_get(struct scsi_port *port, const uint8_t *cdb,
		    unsigned cdb_bytes, void *buf, uint32_t room,
		    uint32_t least, uint32_t *got)
{
	struct scsi_command command = {
		.cdb = cdb, .cdb_bytes = cdb_bytes,
		.in = buf, .in_bytes = room,
	};
	int err;

	memset(buf, 0, room);
	err = scsi_do(port, &command);
	if (!err && command.got_bytes < least)
		err = -EBADMSG;
	if (!err && got)
		*got = command.got_bytes;
	return err;
}

/* ---- what it is ---- */

static int read_capacity_10(struct scsi_port *port, struct scsi_capacity *out)
{
	static const uint8_t cdb[10] = { 0x25 };
	uint8_t buf[8];
	int err = scsi_get(port, cdb, sizeof(cdb), buf, sizeof(buf), 8, NULL);

	if (err)
		return err;
	/* More than it can say. */
	if (get_be32(buf) == UINT32_MAX)
		return -EOPNOTSUPP;
	out->blocks = (uint64_t)get_be32(buf) + 1;
	out->block_bytes = get_be32(buf + 4);
	return 0;
}

static int read_capacity_16(struct scsi_port *port, struct scsi_capacity *out)
{
	static const uint8_t cdb[16] = { 0x9e, 0x10, [13] = 32 };
	uint8_t buf[32];
	int err = scsi_get(port, cdb, sizeof(cdb), buf, sizeof(buf), 12, NULL);

	if (err)
		return err;
	out->blocks = get_be64(buf) + 1;
	out->block_bytes = get_be32(buf + 8);
	return 0;
}

int scsi_read_capacity(struct scsi_port *port, struct scsi_capacity *out)
{
	int err = read_capacity_16(port, out);

	if (err == -EOPNOTSUPP || err == -EBADMSG)
		err = read_capacity_10(port, out);
	if (err)
		return err;
	if (!out->blocks || out->block_bytes < 512 ||
	    out->block_bytes > 65536 || out->block_bytes % 512) {
		msg_error("READ CAPACITY: %llu blocks of %u bytes",
			  (unsigned long long)out->blocks, out->block_bytes);
		return -EBADMSG;
	}
	return 0;
}

/* ---- mode pages ---- */

/* The page is its own header, of which there are two kinds. */
static unsigned page_bytes(const uint8_t *page)
{
	return page[0] & PAGE_HAS_SUBPAGE ?
		       sg_get_unaligned_be16(page + 2) + 4u : page[1] + 2u;
}

int scsi_mode_sense(struct scsi_port *port, unsigned page, unsigned control,
		    uint8_t *buf, unsigned room, unsigned *n)
{
	uint8_t cdb[10] = { 0x5a, 0x08, (uint8_t)(control << 6 | (page & 0x3f)),
			    (uint8_t)(page >> 8) };
	uint8_t all[512];
	uint32_t got, at;
	int err;

	sg_put_unaligned_be16(sizeof(all), cdb + 7);
	err = scsi_get(port, cdb, sizeof(cdb), all, sizeof(all), 10, &got);
	if (err)
		return err;
	/* Block descriptors come even to those who asked for none. */
	at = 8u + sg_get_unaligned_be16(all + 6);
	if (at + 4 > got || (all[at] & 0x3f) != (page & 0x3f) ||
	    !(all[at] & PAGE_HAS_SUBPAGE) != !(page >> 8) ||
	    (page >> 8 && all[at + 1] != page >> 8))
		return -EOPNOTSUPP;
	*n = page_bytes(all + at);
	if (at + *n > got)
		return -EBADMSG;
	if (*n > room)
		*n = room;
	memcpy(buf, all + at, *n);
	return 0;
}

int scsi_mode_select(struct scsi_port *port, const uint8_t *page, unsigned n)
{
	uint8_t all[8 + 240] = { 0 };
	uint8_t cdb[10] = { 0x55, 0x10 };
	struct scsi_command command = {
		.cdb = cdb, .cdb_bytes = sizeof(cdb),
		.out = all, .out_bytes = 8 + n,
	};

	if (n < 4 || n > 240 || page_bytes(page) != n)
		return -EINVAL;
	memcpy(all + 8, page, n);
	all[8] &= 0x7f;		/* whether it can be saved is not ours to say */
	sg_put_unaligned_be16((uint16_t)(8 + n), cdb + 7);
	return scsi_do(port, &command);
}

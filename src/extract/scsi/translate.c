/*
 * translate.c - asking one address after another.
 *
 * What drives do differently (extraction of formats at translate_open):
 *  - block addresses of 32 or of 64 bits, the one as input and the other as
 *    output (HGST takes both and answers physical input in 64 bits only);
 *  - RECEIVE with PCV = 1 and the page's code, or PCV = 0: the page of the
 *    last SEND;
 *  - RAREA with an address that is left out (page length 2): the address is a
 *    defect, a spare or beyond the last block;
 *  - several addresses for one block: the first is where it begins;
 *  - ALTTRK where they cannot tell, which is to say everywhere: it is left out
 *    of account.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <scsi/sg_unaligned.h>

#include "extract/scsi/translate.h"

#define PAGE 0x40
#define OUT_BYTES 14u
#define IN_BYTES 64u
#define RESERVED_AREA 0x80
#define ALTERNATE_SECTOR 0x40
#define REPEATS 5u

struct translate {
	struct scsi_port *port;
	uint64_t blocks;
	bool by_code;		/* RECEIVE with PCV */
	enum translate_format block;
	uint64_t count;
};

struct answer {
	uint8_t flags;
	uint8_t address[8];
};

static int page_receive(struct translate *t, uint8_t *page, uint32_t *got)
{
	const uint8_t cdb[6] = { 0x1c, t->by_code, t->by_code ? PAGE : 0, 0,
				 IN_BYTES };
	struct scsi_command command = {
		.cdb = cdb, .cdb_bytes = sizeof(cdb),
		.in = page, .in_bytes = IN_BYTES,
	};
	int err = scsi_try(t->port, &command);

	*got = command.got_bytes;
	return err;
}

/* What interrupts the pair may have made the drive forget the first half: both
 * are repeated. */
static int page_exchange(struct translate *t, const uint8_t *send,
			 uint8_t *page, uint32_t *got)
{
	static const uint8_t cdb[6] = { 0x1d, 0x10, 0, 0, OUT_BYTES };
	struct scsi_command command = {
		.cdb = cdb, .cdb_bytes = sizeof(cdb),
		.out = send, .out_bytes = OUT_BYTES,
	};
	unsigned i;
	int err;

	for (i = 0; i < REPEATS; i++) {
		t->count++;
		err = scsi_do(t->port, &command);
		if (!err)
			err = page_receive(t, page, got);
		if (err != -EAGAIN)
			return err;
	}
	return -EBUSY;
}

static int page_ask(struct translate *t, const uint8_t address[8],
		    struct answer *out)
{
	uint8_t send[OUT_BYTES] = { PAGE, 0, 0, OUT_BYTES - 4, t->block,
				    TRANSLATE_SECTOR };
	uint8_t page[IN_BYTES] = { 0 };
	uint32_t got = 0, n;
	int err;

	memcpy(send + 6, address, 8);
	err = page_exchange(t, send, page, &got);
	if (err)
		return err;
	if (got < 6 || page[0] != PAGE)
		return -EBADMSG;
	n = sg_get_unaligned_be16(page + 2);
	if ((page[4] & 7) != send[4] || (page[5] & 7) != send[5])
		return -EBADMSG;
	out->flags = page[5];
	memset(out->address, 0, 8);
	if (n < 6 || got < 10)
		return page[5] & RESERVED_AREA ? -ENODATA : -EBADMSG;
	/* Some send 4 bytes of a short block. */
	memcpy(out->address, page + 6, n >= 10 && got >= 14 ? 8 : 4);
	return 0;
}

/* ---- One address ---- */

int translate_block(struct translate *t, uint64_t lba,
		    struct translate_place *out)
{
	uint8_t address[8] = { 0 };
	struct answer answer;
	const uint8_t *a = answer.address;
	int err;

	if (lba >= t->blocks ||
	    (t->block == TRANSLATE_SHORT_BLOCK && lba > UINT32_MAX))
		return -EINVAL;
	if (t->block == TRANSLATE_LONG_BLOCK)
		sg_put_unaligned_be64(lba, address);
	else
		sg_put_unaligned_be32((uint32_t)lba, address);
	err = page_ask(t, address, &answer);
	if (err)
		return err;
	*out = (struct translate_place){
		.cylinder = sg_get_unaligned_be24(a),
		.head = a[3],
		.sector = (uint32_t)sg_get_unaligned_be16(a + 4) << 16 |
			  sg_get_unaligned_be16(a + 6),
		.alternate = answer.flags & ALTERNATE_SECTOR,
	};
	return 0;
}

/* Asks for the last block, whose address is all zeros nowhere. */
static int find_formats(struct translate *t)
{
	static const enum translate_format blocks[] = {
		TRANSLATE_LONG_BLOCK, TRANSLATE_SHORT_BLOCK,
	};
	struct translate_place place;
	int err;

	for (unsigned i = 0; i < 4; i++) {
		t->block = blocks[i / 2];
		t->by_code = !(i % 2);
		err = translate_block(t, t->blocks - 1, &place);
		if (!err || err == -ENODATA)
			return err ? -ERANGE : 0;
	}
	return -EOPNOTSUPP;
}

int translate_open(struct scsi_port *port, uint64_t blocks,
		   struct translate **out)
{
	struct translate *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->port = port;
	t->blocks = blocks;
	err = find_formats(t);
	if (err) {
		free(t);
		return err;
	}
	*out = t;
	return 0;
}

void translate_close(struct translate *t)
{
	free(t);
}

uint64_t translate_count(const struct translate *t)
{
	return t->count;
}

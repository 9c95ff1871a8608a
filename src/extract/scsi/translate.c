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
 *  - ALTTRK where they cannot tell, which is to say everywhere.
 *
 * Nothing is asked twice: answers don't change, and a map that goes back asks
 * most of it once more.
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
#define ALTERNATE_TRACK 0x20
#define REPEATS 5u
#define LOOKS 4u

/* What was asked (one way or the other) and what was answered. */
struct told {
	uint64_t question;	/* a block, or cylinder, head and sector */
	uint64_t answer;	/* the other */
	uint8_t flags;
};

/* Of told.flags. */
#define TOLD_BACK 1u
#define TOLD_ALTERNATE 2u
#define TOLD_NOWHERE 4u		/* -ENODATA */
#define TOLD_HERE 8u		/* this one is in use */
/* Of more answers, 100 MB, the first are remembered. */
#define TOLD_MOST (4u << 20)

struct translate {
	struct told *told;	/* hashed by question */
	size_t told_n, told_room;
	struct scsi_port *port;
	uint64_t blocks;
	bool by_code;		/* RECEIVE with PCV */
	enum scsi_address_format block, place, back;
	bool can_back;
	uint8_t alternate;	/* flags that say so */
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

static int page_ask(struct translate *t, enum scsi_address_format from,
		    const uint8_t address[8], enum scsi_address_format to,
		    struct answer *out)
{
	uint8_t send[OUT_BYTES] = { PAGE, 0, 0, OUT_BYTES - 4, from, to };
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
	if ((page[4] & 7) != from || (page[5] & 7) != to)
		return -EBADMSG;
	out->flags = page[5];
	memset(out->address, 0, 8);
	if (n < 6 || got < 10)
		return page[5] & RESERVED_AREA ? -ENODATA : -EBADMSG;
	/* Some send 4 bytes of a short block. */
	memcpy(out->address, page + 6, n >= 10 && got >= 14 ? 8 : 4);
	return 0;
}

/* ---- What has been told before ---- */

static uint64_t told_place(const struct scsi_address *a)
{
	return (uint64_t)a->cylinder << 40 | (uint64_t)(a->head & 0xff) << 32 |
	       a->at;
}

static struct scsi_address told_address(uint64_t place)
{
	return (struct scsi_address){
		.cylinder = (uint32_t)(place >> 40),
		.head = (uint32_t)(place >> 32 & 0xff),
		.at = (uint32_t)place,
	};
}

/* Is there such an address?  The kept form of others is that of another one. */
static bool is_address(const struct scsi_address *a)
{
	struct scsi_address kept = told_address(told_place(a));

	return kept.cylinder == a->cylinder && kept.head == a->head &&
	       kept.at == a->at;
}

/* The place of a question: what was told of it, or a free one. */
static struct told *told_at(const struct translate *t, uint64_t question,
			    unsigned back)
{
	uint64_t at = (question + back) * UINT64_C(0x9e3779b97f4a7c15);
	struct told *told;

	for (at >>= 20;; at++) {
		told = &t->told[at & (t->told_room - 1)];
		if (!told->flags || (told->question == question &&
				     (told->flags & TOLD_BACK) == back))
			return told;
	}
}

static const struct told *told_again(const struct translate *t,
				     uint64_t question, unsigned back)
{
	const struct told *told = t->told_n ? told_at(t, question, back) : NULL;

	return told && told->flags ? told : NULL;
}

static bool told_grow(struct translate *t)
{
	struct told *was = t->told;
	size_t room = t->told_room;

	t->told_room = room ? 2 * room : 4096;
	t->told = calloc(t->told_room, sizeof(*t->told));
	if (!t->told) {
		t->told = was;
		t->told_room = room;
		return false;
	}
	for (size_t i = 0; i < room; i++) {
		if (was[i].flags)
			*told_at(t, was[i].question,
				 was[i].flags & TOLD_BACK) = was[i];
	}
	free(was);
	return true;
}

/* Of errors only that there is nothing: others may pass.  Without memory for
 * it, or when it is too much, nothing more is remembered. */
static void tell(struct translate *t, uint64_t question, unsigned flags,
		 int err, uint64_t answer)
{
	if ((err && err != -ENODATA) || t->told_n == TOLD_MOST ||
	    (2 * t->told_n >= t->told_room && !told_grow(t)))
		return;
	flags |= TOLD_HERE | (err ? TOLD_NOWHERE : 0);
	*told_at(t, question, flags & TOLD_BACK) = (struct told){
		question, answer, (uint8_t)flags,
	};
	t->told_n++;
}

/* ---- One address ---- */

static int ask_block(struct translate *t, uint64_t lba,
		     struct translate_place *out)
{
	struct answer answer;
	uint8_t address[8];
	int err;

	if (lba >= t->blocks || !scsi_address_put_lba(t->block, lba, address))
		return -EINVAL;
	err = page_ask(t, t->block, address, t->place, &answer);
	if (err)
		return err;
	scsi_address_get(t->place, answer.address, &out->address);
	out->alternate = answer.flags & t->alternate;
	return 0;
}

static int ask_back(struct translate *t, const struct scsi_address *from,
		    uint64_t *lba)
{
	struct answer answer;
	uint8_t address[8];
	int err;

	if (!t->can_back)
		return -EOPNOTSUPP;
	if (!scsi_address_put(t->place, from, address))
		return -EINVAL;
	err = page_ask(t, t->place, address, t->back, &answer);
	if (err == -EOPNOTSUPP)
		return -ENODATA;	/* no such place */
	if (err)
		return err;
	if (answer.flags & RESERVED_AREA)
		return -ENODATA;
	*lba = scsi_address_lba(t->back, answer.address);
	return *lba < t->blocks ? 0 : -ENODATA;
}

int translate_block(struct translate *t, uint64_t lba,
		    struct translate_place *out)
{
	const struct told *told = told_again(t, lba, 0);
	int err;

	if (told) {
		out->address = told_address(told->answer);
		out->alternate = told->flags & TOLD_ALTERNATE;
		return told->flags & TOLD_NOWHERE ? -ENODATA : 0;
	}
	err = ask_block(t, lba, out);
	tell(t, lba, !err && out->alternate ? TOLD_ALTERNATE : 0, err,
	     err ? 0 : told_place(&out->address));
	return err;
}

int translate_back(struct translate *t, const struct scsi_address *from,
		   uint64_t *lba)
{
	uint64_t place = told_place(from);
	const struct told *told;
	int err;

	if (!is_address(from))
		return -ENODATA;
	told = told_again(t, place, TOLD_BACK);
	if (told) {
		*lba = told->answer;
		return told->flags & TOLD_NOWHERE ? -ENODATA : 0;
	}
	err = ask_back(t, from, lba);
	tell(t, place, TOLD_BACK, err, err ? 0 : *lba);
	return err;
}

/* ---- Its habits ---- */

/* Asks for the last block, whose address is all zeros nowhere. */
static bool formats_work(struct translate *t)
{
	struct translate_place place;

	return !ask_block(t, t->blocks - 1, &place);
}

static int find_formats(struct translate *t)
{
	static const enum scsi_address_format places[] = {
		SCSI_PHYSICAL_SECTOR, SCSI_EXT_SECTOR, SCSI_BYTES_FROM_INDEX,
		SCSI_EXT_BYTES,
	};
	static const enum scsi_address_format blocks[] = {
		SCSI_LONG_BLOCK, SCSI_SHORT_BLOCK,
	};
	unsigned i;

	for (i = 0; i < 16; i++) {
		t->place = places[i / 4];
		t->block = blocks[i / 2 % 2];
		t->by_code = !(i % 2);
		if (formats_work(t))
			return 0;
	}
	return -EOPNOTSUPP;
}

/* The way back is tried with an address that the drive gave itself. */
static void find_back(struct translate *t)
{
	static const enum scsi_address_format blocks[] = {
		SCSI_LONG_BLOCK, SCSI_SHORT_BLOCK,
	};
	struct translate_place place;
	uint64_t lba;
	unsigned i;

	if (ask_block(t, t->blocks / 2, &place))
		return;
	for (i = 0; i < 2 && !t->can_back; i++) {
		t->back = blocks[i];
		t->can_back = true;
		if (ask_back(t, &place.address, &lba) ||
		    lba != t->blocks / 2)
			t->can_back = false;
	}
}

/* "On an alternate track, or not to be told": on all tracks that is no news. */
static void find_alternates(struct translate *t)
{
	struct translate_place place;
	unsigned i, tracks = 0;

	t->alternate = ALTERNATE_TRACK;
	for (i = 0; i < LOOKS; i++)
		tracks += !ask_block(t, t->blocks / LOOKS * i, &place) &&
			  place.alternate;
	t->alternate = ALTERNATE_SECTOR;
	if (tracks < LOOKS)
		t->alternate |= ALTERNATE_TRACK;
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
	find_alternates(t);
	find_back(t);
	*out = t;
	return 0;
}

void translate_close(struct translate *t)
{
	if (t)
		free(t->told);
	free(t);
}

bool translate_in_bytes(const struct translate *t)
{
	return t->place == SCSI_BYTES_FROM_INDEX || t->place == SCSI_EXT_BYTES;
}

bool translate_goes_back(const struct translate *t)
{
	return t->can_back;
}

uint64_t translate_count(const struct translate *t)
{
	return t->count;
}

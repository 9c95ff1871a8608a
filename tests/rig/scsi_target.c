/*
 * scsi_target.c - a table of commands, each answered from the geometry.
 */
#include <stdlib.h>
#include <string.h>

#include "diskmodel/geom_build.h"
#include "tests/rig/scsi_target.h"

#define ILLEGAL 0x5
#define BAD_OPCODE 0x2000
#define BAD_CDB 0x2400
#define BAD_PARAMETER 0x2600
#define HEADS 256u		/* a byte */
#define PAGES 4u

/* Its code, with that of the subpage above; what it is and which bits can be
 * changed. */
struct mode_page {
	unsigned page, n;
	uint8_t is[40], can[40];
};

struct scsi_target {
	struct scsi_port port;
	const struct geom *geom;
	struct scsi_target_habits habits;
	uint32_t unit;
	uint64_t blocks;
	uint64_t commands;
	uint8_t sent[14];	/* the last SEND DIAGNOSTIC */
	struct mode_page page[PAGES];
};

static void refuse(struct scsi_command *command, unsigned code)
{
	command->key = ILLEGAL;
	command->asc = (uint8_t)(code >> 8);
	command->ascq = (uint8_t)code;
}

/* What was asked for, at most as much as there is room. */
static void give(struct scsi_command *command, const void *bytes, uint32_t n)
{
	if (n > command->in_bytes)
		n = command->in_bytes;
	memcpy(command->in, bytes, n);
	command->got_bytes = n;
}

static void put_be(uint64_t v, uint8_t *to, unsigned bytes)
{
	while (bytes) {
		to[--bytes] = (uint8_t)v;
		v >>= 8;
	}
}

/* ---- where things are ---- */

static void where_is(const struct scsi_target *t, uint64_t block,
		     struct translate_place *out)
{
	struct geom_track track;
	struct geom_place place;

	geom_track_of(t->geom, block * t->unit, &track);
	geom_place_of(t->geom, block * t->unit, &place);
	out->cylinder = place.cylinder;
	out->head = place.surface % HEADS;
	out->sector = place.sector / t->unit;
	out->alternate = place.cylinder != track.cylinder ||
			 place.surface != track.surface;
}

/* ---- the Translate Address page ---- */

static bool is_block(unsigned format)
{
	return format == TRANSLATE_SHORT_BLOCK ||
	       format == TRANSLATE_LONG_BLOCK;
}

static bool knows_format(const struct scsi_target *t, unsigned format)
{
	return format == TRANSLATE_SHORT_BLOCK || format == TRANSLATE_SECTOR ||
	       (format == TRANSLATE_LONG_BLOCK && !t->habits.short_only);
}

/* Only from blocks to places. */
static bool pair_is_legal(const struct scsi_target *t, unsigned from,
			  unsigned to)
{
	return knows_format(t, from) && knows_format(t, to) && is_block(from) &&
	       !is_block(to);
}

static void answer_send(struct scsi_target *t, struct scsi_command *command)
{
	const uint8_t *page = command->out;

	if (t->habits.no_page || command->out_bytes != sizeof(t->sent) ||
	    page[0] != 0x40) {
		refuse(command, BAD_CDB);
		return;
	}
	if (!pair_is_legal(t, page[4] & 7, page[5] & 7)) {
		refuse(command, BAD_PARAMETER);
		return;
	}
	memcpy(t->sent, page, sizeof(t->sent));
}

/* A place in its format.  false: it does not fit. */
static bool place_put(const struct scsi_target *t, uint64_t block,
		      uint8_t *flags, uint8_t address[8])
{
	struct translate_place place;

	where_is(t, block, &place);
	if (place.alternate)
		*flags |= 0x40;
	put_be(place.cylinder, address, 3);
	put_be(place.head, address + 3, 1);
	put_be(place.sector, address + 4, 4);
	return place.cylinder < 1u << 24 &&
	       !(t->habits.no_end && block + 1 == t->blocks);
}

/* Fills the address; false: there is none. */
static bool translate_sent(struct scsi_target *t, uint8_t *flags,
			   uint8_t address[8])
{
	unsigned from = t->sent[4] & 7;
	uint64_t block = 0;

	for (unsigned i = 0; i < (from == TRANSLATE_LONG_BLOCK ? 8u : 4u); i++)
		block = block << 8 | t->sent[6 + i];
	return block < t->blocks && place_put(t, block, flags, address);
}

static void answer_receive(struct scsi_target *t, struct scsi_command *command)
{
	uint8_t page[22] = { 0x40, 0, 0, 10, t->sent[4] & 7, t->sent[5] & 7 };
	const struct scsi_target_habits *h = &t->habits;
	bool by_code = command->cdb[1] & 1;

	if (t->habits.no_page || t->sent[0] != 0x40 ||
	    (by_code && t->habits.last_page_only) ||
	    (by_code && command->cdb[2] != 0x40)) {
		refuse(command, BAD_CDB);
		return;
	}
	if (!translate_sent(t, &page[5], page + 6)) {
		page[5] |= 0x80;
		page[3] = 2;
	} else if (h->two_places) {
		page[3] = 18;
		memset(page + 14, 0x11, 8);
	}
	if (h->alternate_track)
		page[5] |= 0x20;
	give(command, page, page[3] + 4u);
}

/* ---- what every drive answers ---- */

static void answer_vpd(const struct scsi_target *t,
		       struct scsi_command *command)
{
	uint8_t page[64] = { 0, command->cdb[2] };

	switch (page[1]) {
	case 0x00:
		memcpy(page + 4, "\x00\x80\xb0\xb1", page[3] = 4);
		break;
	case 0x80:
		memcpy(page + 4, "TRAX0001", page[3] = 8);
		break;
	case 0xb0:
		page[3] = 60;
		put_be(0x4000 / t->unit, page + 8, 4);
		put_be(0x400 / t->unit, page + 12, 4);
		break;
	case 0xb1:
		page[3] = 60;
		put_be(10000, page + 4, 2);
		break;
	default:
		refuse(command, BAD_CDB);
		return;
	}
	give(command, page, page[3] + 4u);
}

static void answer_inquiry(struct scsi_target *t, struct scsi_command *command)
{
	uint8_t page[36] = { 0, 0, 5, 2, 31 };

	if (command->cdb[1] & 1) {
		answer_vpd(t, command);
		return;
	}
	page[7] = 2;		/* queues commands */
	memcpy(page + 8, "TRAXFS  EMULATED DISK   0001", 28);
	give(command, page, sizeof(page));
}

static void answer_capacity(struct scsi_target *t, struct scsi_command *command,
			    bool sixteen)
{
	uint8_t buf[32] = { 0 };

	if (sixteen) {
		if (t->habits.capacity_10_only ||
		    (command->cdb[1] & 0x1f) != 0x10) {
			refuse(command, BAD_CDB);
			return;
		}
		put_be(t->blocks - 1, buf, 8);
		put_be(t->habits.block_bytes, buf + 8, 4);
		give(command, buf, 32);
		return;
	}
	put_be(t->blocks > UINT32_MAX ?
				      UINT32_MAX : (uint32_t)t->blocks - 1,
			      buf, 4);
	put_be(t->habits.block_bytes, buf + 4, 4);
	give(command, buf, 8);
}

/* ---- mode pages ---- */

/* As the drive comes. */
static const struct mode_page mode_pages[PAGES] = {
	{ 0x0003, 24, { 0x03, 22, [10] = 0x01, 0xf4 }, { 0 } },
	/* Write cache on, read-ahead on; DRA can't be changed. */
	{ 0x0008, 20, { 0x08, 18, 0x04 }, { [2] = 0x05 } },
	/* Scans in the background; power conditions by timers. */
	{ 0x011c, 16, { 0x5c, 0x01, 0, 12, 0x01 }, { [4] = 0x01 } },
	{ 0x001a, 40, { 0x1a, 38, 0x01, 0x0f },
	  { [2] = 0x01, [3] = 0x0f } },
};

const uint8_t *scsi_target_page(const struct scsi_target *t, unsigned page,
				unsigned *n)
{
	for (unsigned i = 0; i < PAGES; i++) {
		*n = t->page[i].n;
		if (t->page[i].page == page)
			return t->page[i].is;
	}
	return NULL;
}

static bool page_asked(const struct mode_page *p, const uint8_t *cdb)
{
	unsigned page = cdb[2] & 0x3f;

	return page == 0x3f ? !(p->page >> 8) || cdb[3] == 0xff :
			      page == (p->page & 0x3f) &&
				      cdb[3] == p->page >> 8;
}

static void answer_mode_sense(struct scsi_target *t,
			      struct scsi_command *command, bool ten)
{
	unsigned header = ten ? 8 : 4, n = 0, i, k;
	uint8_t buf[256] = { 0 };

	for (i = 0; i < PAGES; i++) {
		const struct mode_page *p = &t->page[i];
		uint8_t *at = buf + header + n;

		if (!page_asked(p, command->cdb))
			continue;
		memcpy(at, p->is, p->n);
		for (k = p->page >> 8 ? 4 : 2;
		     command->cdb[2] >> 6 == 1 && k < p->n; k++)
			at[k] = p->can[k];
		at[0] |= 0x80;	/* could be saved */
		n += p->n;
	}
	if (!n) {
		refuse(command, BAD_CDB);
		return;
	}
	if (ten)
		put_be(header + n - 2, buf, 2);
	else
		buf[0] = (uint8_t)(header + n - 1);
	give(command, buf, header + n);
}

static void answer_mode_select(struct scsi_target *t,
			       struct scsi_command *command)
{
	const uint8_t *out = command->out, *page = out + 8;
	unsigned i, k;

	for (i = 0; command->out_bytes > 12 && i < PAGES; i++) {
		struct mode_page *p = &t->page[i];

		if (page[0] != p->is[0] || command->out_bytes != 8 + p->n ||
		    (p->page >> 8 && page[1] != p->page >> 8))
			continue;
		for (k = 0; k < p->n && !((page[k] ^ p->is[k]) & ~p->can[k]);
		     k++)
			;
		if (k < p->n)
			break;
		memcpy(p->is, page, p->n);
		return;
	}
	refuse(command, BAD_PARAMETER);
}

static void answer_luns(struct scsi_command *command)
{
	uint8_t buf[16] = { 0, 0, 0, 8 };

	give(command, buf, sizeof(buf));
}

static void answer_read(struct scsi_command *command)
{
	if (command->in)
		memset(command->in, 0, command->in_bytes);
	command->got_bytes = command->in_bytes;
}

void scsi_target_answer(struct scsi_target *t, struct scsi_command *command)
{
	command->key = command->asc = command->ascq = 0;
	command->got_bytes = 0;
	t->commands++;
	if (t->habits.attention && t->commands % t->habits.attention == 0 &&
	    command->cdb[0] != 0x12) {
		command->key = 0x6;
		command->asc = 0x29;
		memset(t->sent, 0, sizeof(t->sent));
		return;
	}
	switch (command->cdb[0]) {
	case 0x00:		/* TEST UNIT READY */
	case 0x1b:		/* START STOP UNIT */
	case 0x35:		/* SYNCHRONIZE CACHE */
		break;
	case 0x12:
		answer_inquiry(t, command);
		break;
	case 0x1a:
	case 0x5a:
		answer_mode_sense(t, command, command->cdb[0] == 0x5a);
		break;
	case 0x55:
		answer_mode_select(t, command);
		break;
	case 0x1c:
		answer_receive(t, command);
		break;
	case 0x1d:
		answer_send(t, command);
		break;
	case 0x25:
	case 0x9e:
		answer_capacity(t, command, command->cdb[0] == 0x9e);
		break;
	case 0x08:
	case 0x28:
	case 0x88:
		answer_read(command);
		break;
	case 0xa0:
		answer_luns(command);
		break;
	default:
		refuse(command, BAD_OPCODE);
	}
}

static int target_command(struct scsi_port *port, struct scsi_command *command)
{
	scsi_target_answer((struct scsi_target *)port, command);
	return 0;
}

static void target_close(struct scsi_port *port)
{
	(void)port;
}

struct scsi_target *scsi_target_new(const struct geom *geom,
				    const struct scsi_target_habits *habits)
{
	struct scsi_target *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->port.command = target_command;
	t->port.close = target_close;
	t->geom = geom;
	t->habits = *habits;
	memcpy(t->page, mode_pages, sizeof(t->page));
	if (!t->habits.block_bytes)
		t->habits.block_bytes = 512;
	t->unit = t->habits.block_bytes / 512;
	t->blocks = geom_sectors(geom) / t->unit;
	return t;
}

void scsi_target_free(struct scsi_target *t)
{
	free(t);
}

struct scsi_port *scsi_target_port(struct scsi_target *t)
{
	return &t->port;
}

uint64_t scsi_target_commands(const struct scsi_target *t)
{
	return t->commands;
}

/*
 * settings.c - saving, setting, putting back.
 *
 * A value is text, whatever it is of: the word of a sysfs file, the bytes of a
 * mode page in hexadecimal, 0 or 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/msg.h"
#include "extract/drive/settings.h"

#define PAGE_CACHING 0x08
#define PAGE_BACKGROUND SCSI_SUBPAGE(0x1c, 0x01)
#define PAGE_POWER 0x1a
#define PAGE_ROOM 72

static const char *const kinds[] = { "sysfs", "mode-page", "look-ahead" };

/* ---- Files of sysfs ---- */

/* Of "none [mq-deadline] kyber" the one in brackets. */
static void chosen(char *text)
{
	char *from = strchr(text, '['), *to;

	text[strcspn(text, "\n")] = 0;
	if (!from)
		return;
	to = strchr(from, ']');
	if (!to)
		return;
	*to = 0;
	memmove(text, from + 1, strlen(from + 1) + 1);
}

static int read_file(const char *path, char *buf, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, bytes - 1);
	close(fd);
	if (n < 0)
		return -EIO;
	buf[n] = 0;
	chosen(buf);
	return 0;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static struct setting *add(struct settings *s, enum setting_kind kind,
			   const char *where)
{
	struct setting *v;

	if (s->n == SETTINGS_MAX)
		return NULL;
	v = &s->v[s->n];
	*v = (struct setting){ .kind = kind };
	if (strlen(where) >= sizeof(v->where))
		return NULL;
	memcpy(v->where, where, strlen(where) + 1);
	return v;
}

static void look_file(struct settings *s, const char *queue, const char *name,
		      const char *want)
{
	char path[192];
	struct setting *v;

	if (snprintf(path, sizeof(path), "%s/%s", queue, name) >=
	    (int)sizeof(path))
		return;
	v = add(s, SETTING_SYSFS, path);
	if (!v || read_file(path, v->was, sizeof(v->was)))
		return;
	snprintf(v->want, sizeof(v->want), "%s", want);
	s->n += strcmp(v->was, v->want) != 0;
}

static void look_queue(struct settings *s, const char *queue)
{
	char path[192], most[64];

	look_file(s, queue, "scheduler", "none");
	look_file(s, queue, "read_ahead_kb", "0");
	look_file(s, queue, "nomerges", "2");
	if (snprintf(path, sizeof(path), "%s/max_hw_sectors_kb", queue) <
		    (int)sizeof(path) && !read_file(path, most, sizeof(most)))
		look_file(s, queue, "max_sectors_kb", most);
}

/* ---- SCSI's mode pages ---- */

static void to_hex(const uint8_t *bytes, size_t n, char *text)
{
	for (size_t i = 0; i < n; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
}

static size_t from_hex(const char *text, uint8_t *bytes, size_t room)
{
	size_t n = 0;
	unsigned v;

	while (n < room && text[0] && text[1] && sscanf(text, "%2x", &v) == 1) {
		bytes[n++] = (uint8_t)v;
		text += 2;
	}
	return n;
}

/* Bits of a page, as they should be. */
struct wish {
	unsigned page;
	uint8_t at;		/* byte of the page */
	uint8_t bits;
	bool on;
	bool writes;		/* only where writes are measured */
};

static const struct wish wishes[] = {
	{ PAGE_CACHING, 2, 0x01, true, false },		/* RCD */
	{ PAGE_CACHING, 2, 0x04, false, true },		/* WCE */
	{ PAGE_CACHING, 12, 0x20, true, false },	/* DRA */
	{ PAGE_BACKGROUND, 4, 0x01, false, false },	/* EN_BMS */
	{ PAGE_POWER, 2, 0x01, false, false },		/* STANDBY_Y */
	{ PAGE_POWER, 3, 0x0f, false, false },	/* STANDBY_Z, IDLE_A to _C */
};
#define WISHES (sizeof(wishes) / sizeof(wishes[0]))

static void look_page(struct settings *s, struct scsi_port *port,
		      const char *path, unsigned page, bool writes)
{
	struct setting *v = add(s, SETTING_MODE_PAGE, path);
	uint8_t is[PAGE_ROOM], can[PAGE_ROOM];
	unsigned n, m;

	/* A page that is not whole could not be put back. */
	if (!v || scsi_mode_sense(port, page, 0, is, sizeof(is), &n) ||
	    n == sizeof(is))
		return;
	/* What can't be changed is refused with all that could be. */
	if (scsi_mode_sense(port, page, 1, can, sizeof(can), &m) || m != n)
		memset(can, 0xff, sizeof(can));
	to_hex(is, n, v->was);
	for (unsigned i = 0; i < WISHES; i++) {
		const struct wish *w = &wishes[i];

		if (w->page != page || w->at >= n || (w->writes && !writes))
			continue;
		if (w->on)
			is[w->at] |= w->bits & can[w->at];
		else
			is[w->at] &= (uint8_t)~(w->bits & can[w->at]);
	}
	to_hex(is, n, v->want);
	s->n += strcmp(v->was, v->want) != 0;
}

void settings_look_pages(struct settings *s, struct scsi_port *port,
			 const char *path, bool writes)
{
	look_page(s, port, path, PAGE_CACHING, writes);
	look_page(s, port, path, PAGE_BACKGROUND, writes);
	look_page(s, port, path, PAGE_POWER, writes);
}

int settings_set_page(struct scsi_port *port, const char *value)
{
	uint8_t page[PAGE_ROOM];
	size_t n = from_hex(value, page, sizeof(page));

	return scsi_mode_select(port, page, (unsigned)n);
}

/* ---- ATA's look-ahead ---- */

/* A command without data or with one sector in; ATA PASS-THROUGH(16). */
static int ata_command(struct scsi_port *port, uint8_t ata, uint8_t features,
		       void *data)
{
	const uint8_t cdb[16] = {
		0x85,
		[1] = data ? 4 << 1 : 3 << 1,	/* PIO in, or no data */
		[2] = data ? 0x0e : 0,		/* count: sectors, from us */
		[4] = features,
		[6] = data ? 1 : 0,
		[14] = ata,
	};
	struct scsi_command command = {
		.cdb = cdb, .cdb_bytes = sizeof(cdb),
		.in = data, .in_bytes = data ? 512 : 0,
	};

	return scsi_do(port, &command);
}

/* IDENTIFY DEVICE words 82 and 85, bit 6: look-ahead is there, is on. */
static void look_ata(struct settings *s, struct scsi_port *port,
		     const char *path)
{
	struct setting *v = add(s, SETTING_LOOK_AHEAD, path);
	uint8_t data[512] = { 0 };

	if (!v || ata_command(port, 0xec, 0, data) ||
	    !(data[2 * 82] & 0x40) || !(data[2 * 85] & 0x40))
		return;
	strcpy(v->was, "1");
	strcpy(v->want, "0");
	s->n++;
}

/* SET FEATURES AAh: on, 55h: off. */
static int set_look_ahead(struct scsi_port *port, const char *text)
{
	return ata_command(port, 0xef, text[0] == '1' ? 0xaa : 0x55, NULL);
}

static void look_drive(struct settings *s, const char *path, bool writes)
{
	struct scsi_port *port;

	if (access(path, W_OK) || scsi_open(path, &port))
		return;
	settings_look_pages(s, port, path, writes);
	look_ata(s, port, path);
	scsi_close(port);
}

static int set_drive(const struct setting *v, const char *value)
{
	struct scsi_port *port;
	int err = scsi_open(v->where, &port);

	if (err)
		return err;
	err = v->kind == SETTING_MODE_PAGE ? settings_set_page(port, value) :
					     set_look_ahead(port, value);
	scsi_close(port);
	return err;
}

/* ---- All of them ---- */

void settings_look(const struct identity *identity, const char *path,
		   bool writes, struct settings *settings)
{
	*settings = (struct settings){ 0 };
	if (!identity->block)
		return;
	look_queue(settings, identity->queue);
	if (identity->loop)
		return;
	look_drive(settings, path, writes);
}

static int set(const struct setting *v, const char *value)
{
	return v->kind == SETTING_SYSFS ? write_file(v->where, value) :
					  set_drive(v, value);
}

unsigned settings_apply(struct settings *settings)
{
	unsigned n = 0;

	for (unsigned i = 0; i < settings->n; i++) {
		struct setting *v = &settings->v[i];

		v->applied = !set(v, v->want);
		n += v->applied;
	}
	return n;
}

int settings_restore(struct settings *settings)
{
	int first = 0;

	for (unsigned i = settings->n; i-- > 0;) {
		struct setting *v = &settings->v[i];
		int err = v->applied ? set(v, v->was) : 0;

		if (err) {
			msg_error("%s: could not be set back to \"%s\": %s",
				  v->where, v->was, strerror(-err));
			first = first ? first : err;
		}
		v->applied = false;
	}
	return first;
}

size_t settings_text(const struct settings *settings, char *buf, size_t bytes)
{
	size_t n = 0;

	if (bytes)
		buf[0] = 0;
	for (unsigned i = 0; i < settings->n; i++) {
		const struct setting *v = &settings->v[i];

		n += (size_t)snprintf(n < bytes ? buf + n : NULL,
				      n < bytes ? bytes - n : 0,
				      "setting %s %s %s\n", kinds[v->kind],
				      v->where, v->was);
	}
	return n;
}

bool settings_parse(struct settings *settings, const char *line)
{
	char kind[32], where[192], was[160];

	if (settings->n == SETTINGS_MAX ||
	    sscanf(line, "setting %31s %191s %159s", kind, where, was) != 3)
		return false;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct setting *v = &settings->v[settings->n];

		if (strcmp(kind, kinds[i]))
			continue;
		*v = (struct setting){ .kind = (enum setting_kind)i,
				       .applied = true };
		memcpy(v->where, where, sizeof(where));
		memcpy(v->was, was, sizeof(was));
		settings->n++;
		return true;
	}
	return false;
}

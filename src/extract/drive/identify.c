/*
 * identify.c - the words of sysfs.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "extract/drive/identify.h"

/* Printable, without blanks at either end. */
static void tidy(char *text)
{
	size_t from = 0, n;

	while (text[from] == ' ')
		from++;
	memmove(text, text + from, strlen(text + from) + 1);
	for (n = 0; text[n]; n++) {
		if (!isprint((unsigned char)text[n]))
			text[n] = ' ';
	}
	while (n && text[n - 1] == ' ')
		text[--n] = 0;
}

static size_t read_bytes(const char *folder, const char *name, char *buf,
			 size_t bytes)
{
	char path[512];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(buf, 1, bytes, f);
	fclose(f);
	return n;
}

static void read_word(const char *folder, const char *name, char *buf,
		      size_t bytes)
{
	size_t n = read_bytes(folder, name, buf, bytes - 1);

	buf[n] = 0;
	buf[strcspn(buf, "\n")] = 0;
	tidy(buf);
}

static bool is_word(const char *folder, const char *name, const char *word)
{
	char buf[64];

	read_word(folder, name, buf, sizeof(buf));
	return !strcmp(buf, word);
}

/* SPC: Unit Serial Number page (80h), the length in bytes 2 and 3. */
static void read_serial(const char *device, char *buf, size_t bytes)
{
	unsigned char page[256];
	size_t n = read_bytes(device, "vpd_pg80", (char *)page, sizeof(page));
	size_t length = n > 4 ? (size_t)page[2] << 8 | page[3] : 0;

	if (!length) {
		read_word(device, "serial", buf, bytes);
		return;
	}
	if (length > n - 4)
		length = n - 4;
	if (length > bytes - 1)
		length = bytes - 1;
	memcpy(buf, page + 4, length);
	buf[length] = 0;
	tidy(buf);
}

/* Linux 5.16 and later: one folder for each range. */
static unsigned count_ranges(const char *queue)
{
	char path[512];
	unsigned n = 0;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/independent_access_ranges", queue);
	dir = opendir(path);
	if (!dir)
		return 1;
	while ((e = readdir(dir)))
		n += isdigit((unsigned char)e->d_name[0]) != 0;
	closedir(dir);
	return n ? n : 1;
}

static void read_device(const char *sysfs, dev_t dev, struct identity *id)
{
	char folder[128], device[256], file[256];

	snprintf(folder, sizeof(folder), "%s/dev/block/%u:%u", sysfs,
		 major(dev), minor(dev));
	id->partition = read_bytes(folder, "partition", file, 1) > 0;
	if (id->partition)
		strcat(folder, "/..");
	snprintf(id->queue, sizeof(id->queue), "%.110s/queue", folder);
	snprintf(device, sizeof(device), "%s/device", folder);
	read_word(device, "model", id->model, sizeof(id->model));
	read_word(device, "rev", id->firmware, sizeof(id->firmware));
	if (!id->firmware[0])
		read_word(device, "firmware_rev", id->firmware,
			  sizeof(id->firmware));
	read_serial(device, id->serial, sizeof(id->serial));
	read_word(device, "wwid", id->wwn, sizeof(id->wwn));
	id->rotational = !is_word(id->queue, "rotational", "0");
	id->host_managed = is_word(id->queue, "zoned", "host-managed");
	id->actuators = count_ranges(id->queue);
	read_word(folder, "loop/backing_file", file, sizeof(file));
	id->loop = file[0] != 0;
	if (id->loop && !id->model[0])
		snprintf(id->model, sizeof(id->model), "loop device");
}

int identify(const char *path, const char *sysfs, struct identity *identity)
{
	const char *base = strrchr(path, '/');
	struct stat st;

	*identity = (struct identity){ .actuators = 1, .rotational = true };
	snprintf(identity->name, sizeof(identity->name), "%s",
		 base ? base + 1 : path);
	if (stat(path, &st))
		return -errno;
	identity->block = S_ISBLK(st.st_mode);
	if (identity->block)
		read_device(sysfs, st.st_rdev, identity);
	return 0;
}

const char *identify_refusal(const struct identity *identity)
{
	if (identity->host_managed)
		return "its zones must be written in order: not for a file "
		       "system that writes in place";
	if (identity->actuators > 1)
		return "more than one actuator: the head of one says nothing "
		       "of the other's";
	return NULL;
}

/*
 * settings.h - what has to be set otherwise in a drive and its queue while it
 * is measured, and put back afterwards.
 *
 * The order that survives everything: settings_look, write down what
 * settings_text says (and fsync it), settings_apply, measure,
 * settings_restore.  Who finds such a text later gives it to settings_parse
 * and restores from that.
 *
 * Of the queue: scheduler, read-ahead, merging, size of requests (sysfs).  Of
 * the drive, by SCSI's mode pages: read cache and read-ahead, the write cache
 * where writes are measured, timers that let it slow down, its own scans in the
 * background; or an ATA drive's look-ahead by SET FEATURES.  What the kernel,
 * the drive or our rights do not allow stays as it is.
 */
#ifndef TRAX_DRIVE_SETTINGS_H
#define TRAX_DRIVE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "extract/drive/identify.h"
#include "extract/scsi/scsi.h"

#define SETTINGS_MAX 8u

enum setting_kind { SETTING_SYSFS, SETTING_MODE_PAGE, SETTING_LOOK_AHEAD };

struct setting {
	enum setting_kind kind;
	char where[192];	/* a file, or the device */
	char was[160], want[160];
	bool applied;
};

struct settings {
	struct setting v[SETTINGS_MAX];
	unsigned n;
};

/* What there is to set, also what only matters to `writes`.  The device is
 * opened for a moment. */
void settings_look(const struct identity *identity, const char *path,
		   bool writes, struct settings *settings);

/* The drive's part of it, added; and one of its settings' values put in force.
 * For those who have a port to the drive. */
void settings_look_pages(struct settings *settings, struct scsi_port *port,
			 const char *path, bool writes);
int settings_set_page(struct scsi_port *port, const char *value);

/* Lines for a state file; buf is filled and ended.  How many bytes it takes. */
size_t settings_text(const struct settings *settings, char *buf, size_t bytes);

/* One such line; false: it is none. */
bool settings_parse(struct settings *settings, const char *line);

/* How many could be set. */
unsigned settings_apply(struct settings *settings);

/* Everything back to what it was.  0, or the first error; each is reported. */
int settings_restore(struct settings *settings);

#endif

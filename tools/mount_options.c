/*
 * mount_options.c - a table of options.
 *
 * Three kinds: ours; flags that are handed on to the kernel as they are; and
 * those that only mount(8) and systemd care for, which are ignored.
 */
#include "tools/mount_options.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "fuse/control.h"

#define MAX_COMMIT_SECONDS 300u
#define MAX_SCRUB_DAYS 36500u
#define MAX_QUIET_MS 3600000u
#define MAX_REPLICAS 4u		/* see format.h */
#define MIN_MEMORY_BYTES (32u << 20)	/* see cache/pool.h */

static bool set_ro(struct mount_settings *s, const char *value)
{
	(void)value;
	s->read_only = true;
	return true;
}

static bool set_rw(struct mount_settings *s, const char *value)
{
	(void)value;
	s->read_only = false;
	return true;
}

static bool set_accept_loss(struct mount_settings *s, const char *value)
{
	(void)value;
	s->accept_loss = true;
	return true;
}

static bool set_relatime(struct mount_settings *s, const char *value)
{
	(void)value;
	s->noatime = s->strictatime = false;
	return true;
}

static bool set_strictatime(struct mount_settings *s, const char *value)
{
	(void)value;
	s->noatime = false;
	s->strictatime = true;
	return true;
}

static bool set_nodiratime(struct mount_settings *s, const char *value)
{
	(void)value;
	s->nodiratime = true;
	return true;
}

static bool set_nosymfollow(struct mount_settings *s, const char *value)
{
	(void)value;
	s->nosymfollow = true;
	return true;
}

static bool set_allow_other(struct mount_settings *s, const char *value)
{
	(void)value;
	s->allow_other = true;
	return true;
}

static bool set_commit(struct mount_settings *s, const char *value)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	s->commit_seconds = (unsigned)n;
	return end != value && !*end && n >= 1 && n <= MAX_COMMIT_SECONDS;
}

static bool set_memory(struct mount_settings *s, const char *value)
{
	static const char units[] = "KMGT";
	char *end;
	unsigned long long n = strtoull(value, &end, 10);
	const char *unit;

	if (end == value || *value == '-')
		return false;
	unit = *end ? strchr(units, *end & ~0x20) : NULL;
	if (*end && (!unit || end[1]))
		return false;
	if (unit) {
		unsigned shift = 10 * (unsigned)(unit - units + 1);

		if (n > SIZE_MAX >> shift)
			return false;
		n <<= shift;
	}
	s->memory_bytes = n;
	return n >= MIN_MEMORY_BYTES;
}

static bool set_replicas(struct mount_settings *s, const char *value)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	s->replicas = (unsigned)n;
	return end != value && !*end && n <= MAX_REPLICAS;
}

/* "HIGH/LOW/CRITICAL", in percent. */
static bool set_watermarks(struct mount_settings *s, const char *value)
{
	char *end = (char *)value;
	unsigned i;

	for (i = 0; i < 3; i++) {
		const char *from = i ? end + 1 : end;
		unsigned long n;

		if (i && *end != '/')
			return false;
		n = strtoul(from, &end, 10);
		if (end == from || n > 99 ||
		    (i && n >= s->watermarks[i - 1]))
			return false;
		s->watermarks[i] = (unsigned)n;
	}
	return !*end;
}

static bool set_scrub(struct mount_settings *s, const char *value)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	s->scrub_days = (unsigned)n;
	return end != value && !*end && n <= MAX_SCRUB_DAYS;
}

static bool set_quiet(struct mount_settings *s, const char *value)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	s->quiet_ms = (unsigned)n;
	return end != value && !*end && n >= 1 && n <= MAX_QUIET_MS;
}

/* In percent. */
static bool set_budget(struct mount_settings *s, const char *value)
{
	char *end;
	double percent = strtod(value, &end);

	if (end == value || *end ||
	    !(percent >= 0 && percent * 1e4 <= TRAX_BUDGET_MOST_PPM))
		return false;
	s->budget_ppm = (unsigned)(percent * 1e4 + 0.5);
	return true;
}

static bool set_refine(struct mount_settings *s, const char *value)
{
	s->refine = !strcmp(value, "1");
	return s->refine || !strcmp(value, "0");
}

/* Appends to what the kernel gets. */
static bool add_flag(struct mount_settings *s, const char *name)
{
	size_t used = strlen(s->flags), n = strlen(name);

	if (used + n + 2 > sizeof(s->flags))
		return false;
	if (used)
		s->flags[used++] = ',';
	memcpy(s->flags + used, name, n + 1);
	return true;
}

static bool set_noatime(struct mount_settings *s, const char *value)
{
	(void)value;
	s->noatime = true;
	return add_flag(s, "noatime");
}

static const struct row {
	const char *name;	/* "x=": takes a value; "x-*": a prefix */
	bool (*set)(struct mount_settings *s, const char *value);
} rows[] = {
	{ "ro", set_ro },
	{ "rw", set_rw },
	{ "accept_loss", set_accept_loss },
	{ "noatime", set_noatime },
	{ "relatime", set_relatime },
	{ "strictatime", set_strictatime },
	{ "nodiratime", set_nodiratime },
	{ "nosymfollow", set_nosymfollow },
	{ "allow_other", set_allow_other },
	{ "commit=", set_commit },
	{ "memory=", set_memory },
	{ "scrub=", set_scrub },
	{ "quiet=", set_quiet },
	{ "budget=", set_budget },
	{ "refine=", set_refine },
	{ "replicas=", set_replicas },
	{ "watermarks=", set_watermarks },
};

static const char *const kernel_flags[] = {
	"suid", "nosuid", "dev", "nodev", "exec", "noexec", "sync", "async",
	"dirsync",
};

static const char *const ignored[] = {
	"defaults", "auto", "noauto", "user", "nouser", "users", "owner",
	"group", "nofail", "_netdev", "diratime", "lazytime", "nolazytime",
	"x-*", "X-*", "comment=*",
};

static bool in_list(const char *const *list, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++) {
		size_t len = strlen(list[i]);

		if (list[i][len - 1] == '*' ?
			    !strncmp(list[i], name, len - 1) :
			    !strcmp(list[i], name))
			return true;
	}
	return false;
}

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool set_one(struct mount_settings *s, const char *option)
{
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		size_t n = strlen(rows[i].name);

		if (rows[i].name[n - 1] == '=' ?
			    !strncmp(rows[i].name, option, n) :
			    !strcmp(rows[i].name, option))
			return rows[i].set(s, option + n);
	}
	if (in_list(kernel_flags, COUNT(kernel_flags), option))
		return add_flag(s, option);
	return in_list(ignored, COUNT(ignored), option);
}

int mount_settings_parse(struct mount_settings *s, const char *list)
{
	char *copy = strdup(list);
	char *rest = copy, *option;
	int rc = copy ? 0 : -ENOMEM;

	while (!rc && (option = strsep(&rest, ","))) {
		if (*option && !set_one(s, option)) {
			msg_error(!strcmp(option, "remount") ?
				  "mount option \"%s\": unmount it, and mount "
				  "it anew" :
				  "mount option \"%s\": unknown or malformed",
				  option);
			rc = -EINVAL;
		}
	}
	free(copy);
	return rc;
}

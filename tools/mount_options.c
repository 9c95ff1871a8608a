/*
 * mount_options.c - tables of options.
 *
 * There are four kinds: options of this file system; options that are passed to
 * the kernel as they are; options that only mount(8) and systemd care for, or
 * that ask for what is so anyway, which are accepted and change nothing; and
 * options of other file systems that would promise something wrong here, which
 * are refused with the reason.
 */
#include "tools/mount_options.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/msg.h"
#include "fuse/control.h"
#include "sched/queue/queue.h"

#define SCRUB_DAYS 14u		/* from one scrub to the next, by default */
#define MAX_COMMIT_SECONDS 300u
#define MAX_SCRUB_DAYS 36500u	/* a century */
#define MAX_IDLE_MINUTES 10000ul	/* a week */
#define MAX_QUIET_MS 3600000u	/* an hour */
#define MAX_REPLICAS 4u		/* see format.h */
#define MIN_MEMORY_BYTES (32u << 20)	/* see cache/pool.h */

#define FLAG_SETTER(name, field, value)                                 \
	static bool name(struct mount_settings *s, const char *text)    \
	{                                                               \
		(void)text;                                             \
		s->field = value;                                       \
		return true;                                            \
	}

FLAG_SETTER(set_ro, read_only, true)
FLAG_SETTER(set_rw, read_only, false)
FLAG_SETTER(set_remount, remount, true)
FLAG_SETTER(set_accept_loss, accept_loss, true)
FLAG_SETTER(set_norecovery, norecovery, true)
FLAG_SETTER(set_nodiratime, nodiratime, true)
FLAG_SETTER(set_diratime, nodiratime, false)
FLAG_SETTER(set_nosymfollow, nosymfollow, true)
FLAG_SETTER(set_symfollow, nosymfollow, false)
FLAG_SETTER(set_allow_other, allow_other, true)
FLAG_SETTER(set_silent, silent, true)
FLAG_SETTER(set_loud, silent, false)
FLAG_SETTER(set_loop, no_loop, false)
FLAG_SETTER(set_noloop, no_loop, true)

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

/* Parses a number from `least` to `most`; false: it is none. */
static bool take_number(const char *value, unsigned long least,
			unsigned long most, unsigned *number)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	*number = (unsigned)n;
	return end != value && !*end && n >= least && n <= most;
}

/* Parses "0" or "1"; false: it is neither. */
static bool take_switch(const char *value, bool *on)
{
	*on = !strcmp(value, "1");
	return *on || !strcmp(value, "0");
}

static bool set_commit(struct mount_settings *s, const char *value)
{
	return take_number(value, 1, MAX_COMMIT_SECONDS, &s->commit_seconds);
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
	return take_number(value, 0, MAX_REPLICAS, &s->replicas);
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
	return take_number(value, 0, MAX_SCRUB_DAYS, &s->scrub_days);
}

static bool set_quiet(struct mount_settings *s, const char *value)
{
	return take_number(value, 1, MAX_QUIET_MS, &s->quiet_ms);
}

static bool set_idle(struct mount_settings *s, const char *value)
{
	return take_number(value, 0, MAX_IDLE_MINUTES, &s->idle_minutes);
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

static bool set_moves(struct mount_settings *s, const char *value)
{
	return take_switch(value, &s->moves);
}

static bool set_awake(struct mount_settings *s, const char *value)
{
	return take_switch(value, &s->awake);
}

static bool set_refine(struct mount_settings *s, const char *value)
{
	return take_switch(value, &s->refine);
}

/* Appends to the flags for the kernel. */
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
	s->strictatime = false;
	return add_flag(s, "noatime");
}

/* Accepts what happens anyway when something can't be written any more. */
static bool set_errors(struct mount_settings *s, const char *value)
{
	(void)s;
	return !strcmp(value, "remount-ro");
}

#define FIXED(name)                           \
	offsetof(struct mount_settings, name), \
		sizeof(((struct mount_settings *)NULL)->name)

/* Sets what a storage engine wants that keeps copies on other machines. */
static bool set_brick(struct mount_settings *s, const char *value)
{
	s->brick = true;
	return set_noatime(s, value);
}

static const struct row {
	const char *name;	/* "x=": takes a value */
	bool (*set)(struct mount_settings *s, const char *value);
	const char *wanted;	/* what a value must be; NULL: it has none */
	/* The field of a setting that a remount cannot change; 0 bytes: it
	 * can. */
	size_t field, bytes;
} rows[] = {
	{ "ro", set_ro, NULL, 0, 0 },
	{ "rw", set_rw, NULL, 0, 0 },
	{ "remount", set_remount, NULL, 0, 0 },
	{ "accept_loss", set_accept_loss, NULL, 0, 0 },
	{ "norecovery", set_norecovery, NULL, FIXED(norecovery) },
	{ "noload", set_norecovery, NULL, FIXED(norecovery) },
	{ "noatime", set_noatime, NULL, 0, 0 },
	{ "relatime", set_relatime, NULL, 0, 0 },
	{ "strictatime", set_strictatime, NULL, 0, 0 },
	{ "nostrictatime", set_relatime, NULL, 0, 0 },
	{ "nodiratime", set_nodiratime, NULL, 0, 0 },
	{ "diratime", set_diratime, NULL, 0, 0 },
	{ "nosymfollow", set_nosymfollow, NULL, 0, 0 },
	{ "symfollow", set_symfollow, NULL, 0, 0 },
	{ "allow_other", set_allow_other, NULL, 0, 0 },
	{ "brick", set_brick, NULL, FIXED(brick) },
	{ "silent", set_silent, NULL, 0, 0 },
	{ "loud", set_loud, NULL, 0, 0 },
	{ "loop", set_loop, NULL, FIXED(no_loop) },
	{ "noloop", set_noloop, NULL, FIXED(no_loop) },
	{ "errors=", set_errors, "remount-ro: whatever cannot be written makes "
	  "the file system read-only", 0, 0 },
	{ "commit=", set_commit, "1 to 300 seconds", FIXED(commit_seconds) },
	{ "memory=", set_memory, "at least 32M", FIXED(memory_bytes) },
	{ "scrub=", set_scrub, "0 to 36500 days; 0: by hand",
	  FIXED(scrub_days) },
	{ "idle=", set_idle, "0 to 10000 minutes", 0, 0 },
	{ "quiet=", set_quiet, "1 to 3600000 milliseconds", 0, 0 },
	{ "budget=", set_budget, "0 to 50 percent", 0, 0 },
	{ "awake=", set_awake, "0 or 1", FIXED(awake) },
	{ "moves=", set_moves, "0 or 1", FIXED(moves) },
	{ "refine=", set_refine, "0 or 1", FIXED(refine) },
	{ "replicas=", set_replicas, "0 to 4", FIXED(replicas) },
	{ "watermarks=", set_watermarks,
	  "HIGH/LOW/CRITICAL, each less than the one before, below 100",
	  FIXED(watermarks) },
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *const for_kernel[] = {
	"suid", "nosuid", "dev", "nodev", "exec", "noexec", "sync", "async",
	"dirsync", "context=*", "fscontext=*", "defcontext=*",
	"rootcontext=*",
};

/* The last two lines have what the kernel shows of a mount, and mount(8) passes
 * back when it remounts. */
static const char *const ignored[] = {
	"defaults", "auto", "noauto", "user", "user=*", "nouser", "users",
	"nousers", "owner", "noowner", "group", "nogroup", "nofail", "_netdev",
	"norelatime", "lazytime", "nolazytime", "nomand", "noiversion",
	"noquota", "acl", "user_xattr", "nodiscard", "x-*", "X-*", "comment=*",
	"user_id=*", "group_id=*", "default_permissions", "blksize=*",
	"max_read=*", "seclabel",
};

static const struct refusal {
	const char *name, *why;
} refused[] = {
	{ "discard", "what is freed is not discarded at once; fstrim(8) "
	  "discards what is free" },
	{ "iversion", "FUSE has no counter of changes" },
	{ "noacl", "ACLs are always there" },
	{ "nouser_xattr", "extended attributes are always there" },
	{ "mand", "Linux has no mandatory locks any more" },
	{ "quota", "there are no quotas" },
	{ "usrquota", "there are no quotas" },
	{ "grpquota", "there are no quotas" },
	{ "prjquota", "there are no quotas" },
	{ "offset=*", "make a loop device with losetup -o, and mount that" },
	{ "sizelimit=*", "make a loop device with losetup --sizelimit, and "
	  "mount that" },
	{ "nobarrier", "what is acknowledged is on the medium, always" },
	{ "barrier=0", "what is acknowledged is on the medium, always" },
};

/* Does the option match?  "x*" matches all that begins with x. */
static bool names(const char *pattern, const char *option)
{
	size_t n = strlen(pattern);

	return pattern[n - 1] == '*' ? !strncmp(pattern, option, n - 1) :
				       !strcmp(pattern, option);
}

static bool in_list(const char *const *list, size_t n, const char *option)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (names(list[i], option))
			return true;
	return false;
}

static int set_row(struct mount_settings *s, size_t i, const char *option)
{
	if (!rows[i].set(s, option + strlen(rows[i].name))) {
		msg_error("mount option \"%s\": it must be %s", option,
			  rows[i].wanted ? rows[i].wanted : "shorter");
		return -EINVAL;
	}
	return 0;
}

static int set_one(struct mount_settings *s, const char *option)
{
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		size_t n = strlen(rows[i].name);

		if (rows[i].name[n - 1] == '=' ?
			    !strncmp(rows[i].name, option, n) :
			    !strcmp(rows[i].name, option))
			return set_row(s, i, option);
	}
	if (in_list(ignored, COUNT(ignored), option))
		return 0;
	if (in_list(for_kernel, COUNT(for_kernel), option)) {
		if (add_flag(s, option))
			return 0;
		msg_error("mount option \"%s\": too many options", option);
		return -EINVAL;
	}
	for (i = 0; i < COUNT(refused); i++) {
		if (!names(refused[i].name, option))
			continue;
		msg_error("mount option \"%s\" is not possible: %s", option,
			  refused[i].why);
		return -EINVAL;
	}
	msg_error("mount option \"%s\" is not known; traxfs(8) has the list",
		  option);
	return -EINVAL;
}

/* Where an option ends: at a comma outside double quotes. */
static char *end_of(char *option)
{
	bool quoted = false;

	for (; *option && (quoted || *option != ','); option++)
		quoted ^= *option == '"';
	return option;
}

void mount_settings_init(struct mount_settings *s)
{
	*s = (struct mount_settings){
		.replicas = 1, .scrub_days = SCRUB_DAYS, .refine = true,
		.moves = true, .awake = true,
		.budget_ppm = QUEUE_BUDGET_PPM,
	};
}

int mount_settings_parse(struct mount_settings *s, const char *list)
{
	char *copy = strdup(list);
	char *option = copy, *end;
	bool more = true;
	int rc = copy ? 0 : -ENOMEM;

	for (; !rc && more; option = end + 1) {
		end = end_of(option);
		more = *end;
		*end = 0;
		if (*option)
			rc = set_one(s, option);
	}
	free(copy);
	return rc;
}

void mount_settings_print(void)
{
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		printf("%s%s%s\n", rows[i].name, rows[i].wanted ? " " : "",
		       rows[i].wanted ? rows[i].wanted : "");
	for (i = 0; i < COUNT(for_kernel); i++)
		printf("%.*s\n", (int)strcspn(for_kernel[i], "*"),
		       for_kernel[i]);
}

const char *mount_settings_fixed(const struct mount_settings *before,
				 const struct mount_settings *after)
{
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		if (memcmp((const char *)before + rows[i].field,
			   (const char *)after + rows[i].field, rows[i].bytes))
			return rows[i].name;
	return NULL;
}

/* Which of two words that negate each other is the last one? */
static bool last_is(const char *list, const char *on, const char *off)
{
	bool is = false;

	for (; *list; list += strcspn(list, ","), list += *list == ',') {
		size_t n = strcspn(list, ",");

		if (n == strlen(on) && !strncmp(list, on, n))
			is = true;
		else if (n == strlen(off) && !strncmp(list, off, n))
			is = false;
	}
	return is;
}

unsigned long mount_settings_flags(const struct mount_settings *s)
{
	static const struct {
		const char *on, *off;
		unsigned long flag;
	} map[] = {
		{ "nosuid", "suid", MS_NOSUID },
		{ "nodev", "dev", MS_NODEV },
		{ "noexec", "exec", MS_NOEXEC },
		{ "sync", "async", MS_SYNCHRONOUS },
		{ "dirsync", "", MS_DIRSYNC },
	};
	unsigned long flags = 0;
	size_t i;

	flags |= s->read_only ? MS_RDONLY : 0;
	flags |= s->noatime ? MS_NOATIME : 0;
	flags |= s->strictatime ? MS_STRICTATIME : 0;
	flags |= s->nodiratime ? MS_NODIRATIME : 0;
	flags |= s->nosymfollow ? MS_NOSYMFOLLOW : 0;
	for (i = 0; i < COUNT(map); i++)
		if (last_is(s->flags, map[i].on, map[i].off))
			flags |= map[i].flag;
	return flags;
}

/*
 * server.c - see server.h.
 */
#include "tools/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/msg.h"
#include "base/text.h"
#include "base/units.h"
#include "disk/disk.h"
#include "format/format.h"
#include "fs/grow.h"
#include "fuse/control.h"
#include "tools/amounts.h"

static void say_recovered(const struct server *s, uint64_t ns)
{
	struct fs_recovery found;

	fs_get_recovery(s->fs, &found);
	if (!found.was_clean)
		msg_info("%s: was not unmounted; %s replayed in %.1f s",
			 s->name, count_text(found.records, "log record").s,
			 (double)ns / 1e9);
}

int server_open_fs(struct server *s, bool read_only)
{
	uint64_t begun = env_now_ns(env_real());
	int rc;

	s->options.read_only = read_only;
	s->options.accept_loss = s->settings.accept_loss;
	rc = fs_open(env_real(), s->disk, &s->options, &s->fs);
	if (!rc)
		say_recovered(s, env_now_ns(env_real()) - begun);
	return rc;
}

static void set_quiet(struct server *s, const struct mount_settings *set)
{
	fs_set_quiet(s->fs, set->quiet_ms * NS_PER_MS,
		     set->idle_minutes * 60 * NS_PER_SECOND);
}

int server_start_tasks(struct server *s)
{
	const struct mount_settings *set = &s->settings;
	int rc = scrub_open(s->fs, set->scrub_days, &s->scrub);

	if (rc)
		return rc;
	set_quiet(s, set);
	fs_set_budget(s->fs, set->budget_ppm);
	if (set->refine)
		rc = refine_open(s->fs, &s->refine);
	if (!rc)
		rc = file_scans_open(s->fs, &s->scans);
	/* Without rotation a better place gains nothing. */
	if (!rc && set->moves && s->disk->limits.rotational)
		rc = moves_open(s->fs, &s->moves);
	session_set_tasks(s->session, s->scrub, s->refine, s->scans, s->moves);
	return rc;
}

static void stop_tasks(struct server *s)
{
	session_set_tasks(s->session, NULL, NULL, NULL, NULL);
	moves_close(s->moves);
	refine_close(s->refine);
	file_scans_close(s->scans);
	scrub_close(s->scrub);
	s->refine = NULL;
	s->moves = NULL;
	s->scans = NULL;
	s->scrub = NULL;
}

/* A change that is made while the file system is closed. */
struct closed_change {
	bool read_only;		/* how it is opened again */
	struct fs_grown *grown;	/* the new size, while it grows; NULL: it does
				 * not grow */
};

static int change_closed(struct server *s, const struct closed_change *change)
{
	int rc;

	if (!change->grown)
		return disk_set_read_only(s->disk, change->read_only);
	rc = disk_renew_size(s->disk);
	return rc ? rc : fs_grow(env_real(), s->disk, change->grown);
}

/*
 * Closes the file system, makes the change and opens it anew, so that all is
 * done that an unmount and a mount do.  The kernel's references to inodes are
 * carried over.
 */
static int reopen_fs(struct server *s, const struct closed_change *change)
{
	bool before = fs_read_only(s->fs);
	struct fs_holders *holders;
	int rc = fs_holders_take(s->fs, &holders), rc2;

	if (rc)
		return rc;
	stop_tasks(s);
	rc = fs_close(s->fs);
	s->fs = NULL;
	if (!rc)
		rc = change_closed(s, change);
	rc2 = server_open_fs(s, rc ? before : change->read_only);
	if (rc2 && !rc)
		rc2 = server_open_fs(s, true);
	if (s->fs)
		rc2 = fs_holders_give(s->fs, holders);
	fs_holders_free(holders);
	session_set_fs(s->session, rc2 ? NULL : s->fs);
	if (!rc2)
		rc2 = server_start_tasks(s);
	if (rc2)
		msg_error("%s: cannot go on after a remount: %s", s->name,
			  strerror(-rc2));
	return rc ? rc : rc2;
}

/* Makes the file system read-only or writable, as the settings want it; after
 * an error `why` has the reason. */
static int change_writing(struct server *s, const struct mount_settings *next,
			  char *why, size_t bytes)
{
	const struct closed_change change = { .read_only = next->read_only };
	int rc;

	if (next->read_only == fs_read_only(s->fs))
		return 0;
	if (s->settings.norecovery) {
		snprintf(why, bytes, "%s is mounted without what is in its "
			 "log: unmount it, and mount it anew", s->name);
		return -EINVAL;
	}
	rc = reopen_fs(s, &change);
	if (!rc && s->fs && fs_read_only(s->fs) != next->read_only)
		rc = -EROFS;
	if (rc == -EROFS)
		snprintf(why, bytes, "%s cannot be written: it is "
			 "write-protected, or damaged (see the system's log)",
			 s->name);
	else if (rc == -EBUSY)
		snprintf(why, bytes, "%s is in use elsewhere, or deleted files "
			 "are still open", s->name);
	else if (rc)
		snprintf(why, bytes, "%s: %s", s->name, strerror(-rc));
	return rc;
}

int server_remount(void *arg, const char *list, char *why, size_t bytes)
{
	struct server *s = arg;
	struct mount_settings next = s->settings;
	const char *fixed;
	int rc;

	next.flags[0] = 0;
	if (mount_settings_parse(&next, list)) {
		snprintf(why, bytes, "the daemon does not know one of the "
			 "options: %s", list);
		return -EINVAL;
	}
	fixed = mount_settings_fixed(&s->settings, &next);
	if (fixed) {
		snprintf(why, bytes, "\"%s\" cannot be changed while it is "
			 "mounted: unmount it, and mount it anew", fixed);
		return -EINVAL;
	}
	rc = change_writing(s, &next, why, bytes);
	if (rc)
		return rc;
	s->settings = next;
	s->options.noatime = next.noatime;
	s->options.strictatime = next.strictatime;
	s->options.nodiratime = next.nodiratime;
	fs_set_access_times(s->fs, next.noatime, next.strictatime,
			    next.nodiratime);
	fs_set_budget(s->fs, next.budget_ppm);
	set_quiet(s, &next);
	msg_info("%s: remounted %s", s->name,
		 next.read_only ? "read-only" : "for writing");
	return 0;
}

/* Has the device become larger?  True if that cannot be found out. */
static bool has_grown(struct server *s)
{
	const uint64_t before = s->disk->limits.sectors;
	int rc = disk_renew_size(s->disk);
	const uint64_t now = s->disk->limits.sectors;

	s->disk->limits.sectors = before;
	return rc || now >= fs_super(s->fs)->sectors + TRAX_BLOCK_SECTORS;
}

int server_grow(void *arg, struct trax_grown *out, char *why, size_t bytes)
{
	struct server *s = arg;
	struct fs_grown grown = { fs_super(s->fs)->sectors,
				  fs_super(s->fs)->sectors };
	const struct closed_change change = { .grown = &grown };
	int rc = 0;

	if (fs_read_only(s->fs))
		rc = -EROFS;
	else if (has_grown(s))
		rc = reopen_fs(s, &change);
	if (rc == -EROFS)
		snprintf(why, bytes, "%s is mounted read-only: remount it for "
			 "writing first", s->name);
	else if (rc == -EBUSY)
		snprintf(why, bytes, "deleted files are still open: end who "
			 "has them (lsof +L1), or grow it unmounted");
	else if (rc == -ENOSPC)
		snprintf(why, bytes, "%s has too little more than the file "
			 "system (see the system's log)", s->name);
	else if (rc)
		snprintf(why, bytes, "%s: %s", s->name, strerror(-rc));
	if (rc)
		return rc;
	out->was = grown.was * SECTOR_BYTES;
	out->now = grown.now * SECTOR_BYTES;
	if (out->was != out->now)
		msg_info("%s: grown from %s to %s", s->name,
			 size_text((double)out->was).s,
			 size_text((double)out->now).s);
	return 0;
}

/*
 * replay_by_mount.c - the log of a file system that was not unmounted.
 *
 * The only place where the check trusts the file system's own code: it opens
 * it, which replays the log, and closes it.  Where an extent and its owner do
 * not agree it is not known yet whose sectors these are, and nothing is written
 * there: the log is then read record by record (log_scan.c).
 */
#include <errno.h>
#include <string.h>

#include "check/repair/repair_internal.h"
#include "fs/fs.h"

static const char *replay_try(struct check *check)
{
	struct fs_options options = { .verify_owners = true };
	const char *why = NULL;
	struct fs *fs;
	int rc = fs_open(check->env, check->disk, &options, &fs);

	if (rc)
		return strerror(-rc);
	if (fs_read_only(fs))
		why = "part of it is damaged";
	rc = fs_close(fs);
	if (rc && !why)
		why = strerror(-rc);
	return why;
}

static bool replay_due(struct check *check)
{
	return !super_root_best_root(check, &check->root) &&
	       (!check->root.clean || check->roots_doubted);
}

int replay_run(struct check *check)
{
	const char *why;

	if (!replay_due(check))
		return check->rc;
	why = replay_try(check);
	check->result->changed = true;
	check->result->replayed = !why;
	if (why)
		problem_report(check, PROBLEM_LOG_REPLAY,
			       (struct problem_place){ 0 }, why);
	return super_root_load_super(check);
}

/*
 * box.c - see box.h.  Both kinds of control groups: with a tree for memory
 * alone, and with one tree for all.
 */
#include "bench/box.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/msg.h"
#include "bench/shell.h"

static const struct {
	const char *root, *limit;
} trees[] = {
	{ "/sys/fs/cgroup/memory", "memory.limit_in_bytes" },
	{ "/sys/fs/cgroup", "memory.max" },
};

static int move_to(const char *group)
{
	char path[PATH_MAX], self[32];

	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	snprintf(self, sizeof(self), "%d", (int)getpid());
	return shell_write(path, self);
}

int box_enter(const char *undo_file, unsigned memory_mib)
{
	const unsigned own = access("/sys/fs/cgroup/memory/cgroup.procs", F_OK)
				     ? 1 : 0;
	char group[256], path[PATH_MAX], limit[32];
	int rc;

	snprintf(group, sizeof(group), "%s/traxbench-%d", trees[own].root,
		 (int)getpid());
	if (own)
		shell_write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	if (mkdir(group, 0755)) {
		msg_error("%s: %s", group, strerror(errno));
		return -errno;
	}
	rc = shell_run("echo '%s' > '%s'", group, undo_file);
	snprintf(path, sizeof(path), "%s/%s", group, trees[own].limit);
	snprintf(limit, sizeof(limit), "%lluM",
		 (unsigned long long)memory_mib);
	if (!rc)
		rc = shell_write(path, limit);
	return rc ? rc : move_to(group);
}

void box_leave(const char *undo_file)
{
	char group[256];

	if (shell_word(undo_file, group, sizeof(group)))
		return;
	move_to(access("/sys/fs/cgroup/memory/cgroup.procs", F_OK) ?
			trees[1].root : trees[0].root);
}

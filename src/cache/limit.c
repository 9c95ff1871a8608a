/*
 * limit.c - finds the memory controller's mount in mountinfo and the group's
 * path in /proc/self/cgroup, then reads the limits of the group and of each one
 * above it: memory.max in version 2, memory.limit_in_bytes in version 1.
 *
 * In a container the group's path may begin with the mounted part of the
 * hierarchy (the mount's root field); that part is cut off.  A limit that
 * cannot be read counts as none.
 */
#include "cache/limit.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cgroup {
	char path[PATH_MAX];	/* path of the group within the hierarchy */
	char top[PATH_MAX];	/* part of the hierarchy that is mounted */
	char mount[PATH_MAX];	/* mount point */
};

static bool has_word(const char *list, const char *word)
{
	const size_t n = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += n)
		if ((p == list || p[-1] == ',') &&
		    (p[n] == '\0' || p[n] == ',' || p[n] == '\n'))
			return true;
	return false;
}

static FILE *open_below(const char *root, const char *path)
{
	char name[PATH_MAX];

	if (snprintf(name, sizeof(name), "%s%s", root, path) >=
	    (int)sizeof(name))
		return NULL;
	return fopen(name, "re");
}

/* "id:controllers:path"; version 2 has no controllers. */
static bool find_path(const char *root, bool v2, struct cgroup *group)
{
	FILE *f = open_below(root, "/proc/self/cgroup");
	char line[PATH_MAX + 256];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		char *list = strchr(line, ':');
		char *path = list ? strchr(list + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		found = v2 ? !list[1] : has_word(list + 1, "memory");
		if (found)
			snprintf(group->path, sizeof(group->path), "%.*s",
				 PATH_MAX - 1, path);
	}
	if (f)
		fclose(f);
	return found;
}

/* "id parent dev root mount options ... - type source superoptions" */
static bool find_mount(const char *root, bool v2, struct cgroup *group)
{
	FILE *f = open_below(root, "/proc/self/mountinfo");
	char line[2 * PATH_MAX + 512];
	char type[64], options[512];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *dash = strstr(line, " - ");

		if (!dash || sscanf(dash, " - %63s %*s %511s", type,
				    options) != 2 ||
		    sscanf(line, "%*s %*s %*s %4095s %4095s", group->top,
			   group->mount) != 2)
			continue;
		found = v2 ? !strcmp(type, "cgroup2") :
			     !strcmp(type, "cgroup") &&
			     has_word(options, "memory");
	}
	if (f)
		fclose(f);
	return found;
}

static uint64_t read_limit(const char *root, const struct cgroup *group,
			   const char *path, const char *file)
{
	char name[3 * PATH_MAX];
	uint64_t bytes;
	FILE *f;
	int n;

	snprintf(name, sizeof(name), "%s%s/%s", group->mount, path, file);
	f = open_below(root, name);
	if (!f)
		return UINT64_MAX;
	n = fscanf(f, "%" SCNu64, &bytes);	/* "max" is no number, and no
						 * limit. */
	fclose(f);
	return n == 1 ? bytes : UINT64_MAX;
}

/* The tightest limit of the group and all above it. */
static uint64_t tightest(const char *root, bool v2)
{
	const char *file = v2 ? "memory.max" : "memory.limit_in_bytes";
	struct cgroup group;
	uint64_t least = UINT64_MAX;
	size_t cut;
	char *path, *slash;

	if (!find_path(root, v2, &group) || !find_mount(root, v2, &group))
		return UINT64_MAX;
	path = group.path;
	cut = strlen(group.top);
	if (cut > 1 && !strncmp(path, group.top, cut))
		path += cut;
	for (;;) {
		const uint64_t bytes = read_limit(root, &group, path, file);

		if (bytes < least)
			least = bytes;
		slash = strrchr(path, '/');
		if (!slash)
			return least;
		*slash = '\0';
	}
}

uint64_t limit_memory(const char *root)
{
	const uint64_t v1 = tightest(root, false), v2 = tightest(root, true);

	return v1 < v2 ? v1 : v2;
}

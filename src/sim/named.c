/*
 * named.c - where a drive's specification is looked for.
 */
#include "sim/named.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/specgen.h"

/* Beside a build that is not installed lie the sources, with their drives. */
static bool find_beside(const char *name, char path[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return false;
	self[n] = 0;
	n = snprintf(path, PATH_MAX, "%s/../drives/%s.json", dirname(self),
		     name);
	return n < PATH_MAX && access(path, R_OK) == 0;
}

int named_spec(const char *name, struct spec **spec)
{
	struct specgen options;
	char path[PATH_MAX];
	int rc;

	if (!strncmp(name, "random:", 7)) {
		rc = specgen_parse(name + 7, &options);
		return rc ? rc : specgen_make(&options, spec);
	}
	if (strchr(name, '/') || access(name, R_OK) == 0)
		return spec_read(name, spec);
	if (!find_beside(name, path))
		snprintf(path, sizeof(path), TRAX_DATADIR "/drives/%s.json",
			 name);
	return spec_read(path, spec);
}

/*
 * traxdisk.h - what the files of traxdisk share.
 */
#ifndef TRAX_TOOLS_TRAXDISK_H
#define TRAX_TOOLS_TRAXDISK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "sim/emul.h"

struct server {
	struct fuse_session *session;
	struct emul *emul;
	const struct spec *spec;
	int image;
	uint64_t bytes;
	double slow;
	bool fast;
	_Atomic bool passing;	/* nothing takes time, for the moment */
	time_t started;
	sigset_t ending;	/* signals */
};

struct arguments {
	const char *args[3];
	unsigned args_n;
	bool foreground, fast, json;
	double slow;
	uint64_t seed;
	const char *trace, *mount_options;
	int show;		/* OPT_PROFILE ..., or 0: serve */
};

/* ---- traxdisk_serve.c ---- */

int server_run(struct server *s, const struct arguments *a,
	       const struct emul_options *options);

#endif

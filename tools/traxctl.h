/*
 * traxctl.h - what the files of traxctl share.
 */
#ifndef TRAX_TOOLS_TRAXCTL_H
#define TRAX_TOOLS_TRAXCTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/control_call.h"

enum exit_code { EXIT_FAILED = 1, EXIT_WRONG_USE = 2 };

struct command;

struct arguments {
	const struct command *command;
	const char *path;	/* first operand */
	char **paths;		/* all operands, ended by NULL */
	unsigned paths_n;
	uint64_t given;		/* options: option_bit of each */
	bool json;
	bool all;
	bool drop;
	bool wait;
	bool recheck, clear;
	const char *near;	/* --near */
	uint64_t at;		/* --at; 0: not given */
	const char *svg;	/* --svg */
	const char *output;	/* --output */
	long set;		/* --set; -1: not given */
};

/* A bit for the key of an option, which is a letter or '?', the first of them
 * in ASCII. */
static inline uint64_t option_bit(int key)
{
	return 1ull << (key - '?');
}

/* traxctl_mount.c */
/* The mount point that a path lies in, which may be it; the caller frees.
 * NULL: errno says why. */
char *mount_point(const char *path);
/* The same where a traxfs is mounted; NULL elsewhere. */
char *traxfs_mount_point(const char *path);
/* What is mounted on the mount point of a path; false: that is not known. */
bool mount_device(const char *path, char *device, size_t bytes);
/* Reports errno for `what` and a->path; returns EXIT_FAILED. */
int complain(const struct arguments *a, const char *what);

/* traxctl_facts.c */
int run_extents(const struct arguments *a);
int run_tracks(const struct arguments *a);
/* Reads a JSON attribute; NULL: errno says why. The caller drops the
 * reference. */
json_t *read_json(const char *path, const char *name);
int print_json(json_t *json);
/* Reads a JSON attribute of a->path and prints it, with --json as it is;
 * returns the exit code. */
int show_attribute(const struct arguments *a, const char *name,
		   void (*print)(json_t *json));
/* Prints names and values of an object. */
int print_facts(json_t *object);
/* Prints an array of objects as a table. */
int print_objects(json_t *array, const char *const *columns, unsigned n);

/* traxctl_status.c */
int run_status(const struct arguments *a);

/* traxctl_label.c */
int run_label(const struct arguments *a);
int run_uuid(const struct arguments *a);

/* traxctl_grow.c */
int run_grow(const struct arguments *a);

/* traxctl_metrics.c */
int run_metrics(const struct arguments *a);

/* traxctl_scrub.c */
int run_scrub(const struct arguments *a);
int run_budget(const struct arguments *a);

/* traxctl_copies.c */
int run_errors(const struct arguments *a);
int run_replicas(const struct arguments *a);
int run_replicate(const struct arguments *a);
int run_heat(const struct arguments *a);
/* Reads all of trax.heat; the caller frees it with json_decref. NULL: errno
 * says why. */
json_t *read_heat(const char *path);
/* Draws where the disk was used over time. */
void heat_svg(FILE *f, json_t *heat);

/* Calls each() for every file below the paths, by name, until it fails: its
 * result. */
int walk_files(char **paths, int (*each)(void *arg, uint64_t ino), void *arg);

/* traxctl_order.c */
int run_order(const struct arguments *a);

/* traxctl_model.c */
int run_model(const struct arguments *a);

/* traxctl_report.c */
int run_report(const struct arguments *a);

/* traxctl_top.c */
int run_top(const struct arguments *a);

/* traxctl_tasks.c */
int run_tasks(const struct arguments *a);

/* traxctl_streams.c */
int run_streams(const struct arguments *a);

/* scan, with its own arguments: the exit code. */
int scan_main(int argc, char **argv);

#endif

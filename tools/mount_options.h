/*
 * mount_options.h - the options of a mount (-o).
 */
#ifndef TRAX_TOOLS_MOUNT_OPTIONS_H
#define TRAX_TOOLS_MOUNT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct mount_settings {
	bool remount;		/* change an existing mount */
	bool read_only;
	bool accept_loss;	/* see tree/tree.h */
	bool norecovery;	/* likewise; only with read_only */
	bool noatime, strictatime, nodiratime;
	bool nosymfollow;
	bool allow_other;
	bool silent;		/* only errors are reported */
	bool brick;		/* reads pass by the kernel's cache */
	bool no_loop;		/* an image is served as it is */
	unsigned commit_seconds;	/* 0: not given */
	size_t memory_bytes;		/* 0: not given */
	unsigned scrub_days;		/* period; 0: by hand */
	unsigned idle_minutes;	/* minutes without requests after which idle
				 * time ends; 0: it never does */
	unsigned quiet_ms;		/* ms without requests before idle time;
					 * 0: not given */
	unsigned budget_ppm;		/* budget of background work, in
					 * millionths of the head's time */
	bool refine;		/* measure unknown tracks in idle time */
	bool awake;		/* processors are kept awake in bursts */
	bool moves;		/* move data to better places */
	unsigned replicas;
	unsigned watermarks[3];		/* per cent: high, low, critical; 0: not
					 * given */
	char flags[1024];	/* flags for the kernel, as "nosuid,noexec" */
};

/* Sets the defaults. */
void mount_settings_init(struct mount_settings *settings);

/*
 * Adds a list of options; later ones win.  A comma inside double quotes
 * separates nothing.  -EINVAL: unknown, refused or malformed, reported through
 * msg with the reason.
 */
int mount_settings_parse(struct mount_settings *settings, const char *list);

/* Prints all options, one a line, with what a value must be. */
void mount_settings_print(void);

/* The name of an option that differs and that a remount cannot change; NULL:
 * there is none. */
const char *mount_settings_fixed(const struct mount_settings *before,
				 const struct mount_settings *after);

/* The flags of mount(2) that these options stand for. */
unsigned long mount_settings_flags(const struct mount_settings *settings);

#endif

/*
 * server.h - what the daemon serves (a device, its file system, the mount), and
 * how it is opened, and changed while it is mounted.
 */
#ifndef TRAX_TOOLS_SERVER_H
#define TRAX_TOOLS_SERVER_H

#include "fs/fs.h"
#include "fuse/mount.h"
#include "fuse/session.h"
#include "tools/mount_options.h"

struct server {
	const char *name;	/* the device or image as it was given: the name
				 * in messages */
	const char *device;	/* what is opened: a loop device of the image,
				 * or what was given */
	const char *mountpoint;
	struct mount_settings settings;
	struct fs_options options;	/* options of the file system, except
					 * `ro` */
	int loop_fd;		/* keeps the loop device; -1: there is none */
	char loop[64];
	bool block_device;
	uint32_t logical_bytes;
	uint8_t uuid[16];
	struct disk *disk;
	struct fuse_mount *mount;
	struct fs *fs;
	struct scrub *scrub;
	struct file_scans *scans;
	struct refine *refine;
	struct moves *moves;
	struct session *session;
	int signal_fd;
	bool said_why;		/* an error was reported */
};

/* Opens the file system with s->options; reports when it was recovered. */
int server_open_fs(struct server *s, bool read_only);

/* Starts scrub, file scans, moves and refine.  They may have threads, which are
 * confined like the caller. */
int server_start_tasks(struct server *s);

/* For session_options.remount: `arg` is the server, as for all of these. */
int server_remount(void *arg, const char *list, char *why, size_t bytes);
/* For session_options.grow. */
int server_grow(void *arg, struct trax_grown *grown, char *why, size_t bytes);

#endif

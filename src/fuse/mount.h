/*
 * mount.h - attaching to the kernel: the mount itself and what belongs to it.
 *
 * libfuse does the mounting (as root with mount(2), otherwise through
 * fusermount3).  A block device becomes a fuseblk mount: the kernel then holds
 * the device exclusively, so it must not be open with O_EXCL at that moment,
 * umount(2) waits for our DESTROY, and syncfs(2) is passed on.  An image file
 * becomes a plain fuse mount.  The source in /proc/mounts is the path given.
 */
#ifndef TRAX_FUSE_MOUNT_H
#define TRAX_FUSE_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

struct fuse_mount;

struct mount_options {
	const char *source;	/* absolute path */
	const char *mountpoint;	/* absolute path */
	unsigned block_bytes;	/* logical block of the device; 0: an image */
	bool read_only;
	bool allow_other;
	bool no_symlinks;	/* symbolic links are not followed
				 * (nosymfollow) */
	const char *flags;	/* more mount flags ("noexec,nosuid") or NULL */
};

/*
 * Mounts.  The file system answers nobody yet.  -EIO, or what mount(2) said;
 * libfuse's words go through msg.
 */
int mount_open(const struct mount_options *options, struct fuse_mount **mount);

/* The descriptor of the connection to the kernel. */
int mount_fd(const struct fuse_mount *mount);

/*
 * Raises limits that the kernel sets for FUSE mounts: read-ahead, to at least
 * 1 MiB, and the share of dirty pages.  In a control group with little memory,
 * and on a small disk of `disk_bytes`, few pages may be dirty: the group's
 * writers would leave no memory to the daemon, and pages are promised no room
 * before they are written.  Needs root; without it the mount is only slower, so
 * this never fails.  The session must have started.  Returns how many bytes may
 * be dirty at most; UINT64_MAX: that is not known.
 */
uint64_t mount_tune(const struct fuse_mount *mount, unsigned readahead_bytes,
		    uint64_t disk_bytes);

/*
 * For session_options.leave: has the shell unmount or, when the mount is busy,
 * write back and detach it.
 */
bool mount_leave(void *mount, unsigned attempt);

/* Closes the connection; `attached`: the kernel has not let go of it, so
 * detach it first. */
void mount_close(struct fuse_mount *mount, bool attached);

/*
 * Makes the process fit to serve a mount: it keeps no directory busy, is not
 * swapped out and not throttled in the kernel's reclaim.  What the caller's
 * rights don't allow is left out.
 */
void mount_prepare_process(void);

#endif

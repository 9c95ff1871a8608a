/*
 * fs.h - the file system as a library: names, files, durability.
 *
 * An operation is a struct fs_op, filled by the caller and submitted; done()
 * is called exactly once, later or at once from inside fs_submit, with op->rc
 * 0 or a negative errno as POSIX has it (-EIO for anything wrong below).
 * Everything an op points to belongs to the caller and stays until done().
 * Operations that conflict may be outstanding together; each is atomic, and
 * they take effect in some order that is consistent with what done() showed.
 *
 * The kernel above (or the test) checks permissions; this layer checks only
 * what depends on content (types, limits, immutable and append-only flags,
 * sticky rules are the kernel's).  The caller's ids are stored in new inodes
 * (set-gid directories and default ACLs are honoured here).
 *
 * References: each op that returns an entry (FS_LOOKUP, FS_CREATE ..., FS_LINK,
 * FS_TMPFILE, and FS_READDIR with `plus`) adds one reference to its inode;
 * FS_FORGET drops n.  FS_OPEN adds a handle, FS_RELEASE drops it.  An inode
 * without names lives until both are gone.  A file that was truncated to
 * nothing while open is written back when its last handle is gone
 * (write_order.c).
 *
 * Durability: what FS_FSYNC, FS_SYNCFS returned for is on the medium.
 */
#ifndef TRAX_FS_FS_H
#define TRAX_FS_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/env.h"
#include "base/list.h"
#include "disk/disk.h"

struct fs;
struct head;
struct head_past_read;

/* May write-back wait for gaps between the requests of users?  With
 * FS_GAP_WRITEBACK_NEVER gaps are not used for read-ahead either. */
enum fs_gap_writeback {
	/* while users read, if the position of the head is predicted */
	FS_GAP_WRITEBACK_WHILE_READ,
	FS_GAP_WRITEBACK_NEVER,
	FS_GAP_WRITEBACK_ALWAYS,	/* for measurements and tests */
};

struct fs_options {
	bool read_only;
	bool accept_loss;	/* see tree/tree.h */
	bool no_replay;		/* likewise */
	/* before logged data is written to its place, the OWNER item of the
	 * sectors is looked up; if it names another file the file system
	 * becomes read-only */
	bool verify_owners;
	size_t memory_bytes;	/* 0: see cache/pool.h */
	unsigned commit_seconds; /* 0: 5 */
	bool noatime;		/* no access times (relatime if neither this nor
				 * strictatime is set) */
	bool strictatime;	/* every access sets the access time */
	bool nodiratime;	/* no access times of directories */
	enum fs_gap_writeback gap_writeback;
	bool fixed_places;	/* places of data are chosen when a write-back
				 * begins, never at dispatch: for
				 * measurements */
	unsigned replicas;	/* replicas of a block that may be made, at most
				 * 4; 0: none */
	/* Watermarks for replicas, in percent of a group that are free, see
	 * access_trace.c. 0, 0, 0: 15, 10, 5. */
	unsigned high_percent, low_percent, critical_percent;
	/* predicts the head (sched/head/head.h); outlives the file system;
	 * NULL: one is made from the profile */
	struct head *head;
	bool doubt;		/* the profile does not fit the disk: data still
				 * keeps to its track boundaries, but the head
				 * is not predicted by it */
	bool measure;		/* a disk without a profile may be measured by
				 * refine from the beginning */
	/* Reads that the caller has just made, with their times
	 * (sched/head/head.h), from which the phase of the platter follows.
	 * NULL: none. */
	const struct head_past_read *past_reads;
	size_t past_reads_n;
};

/*
 * Opens the file system on a disk (which the caller still owns) and recovers
 * it; waits for its I/O. -EINVAL: this is no traxfs; other errors as in
 * tree/tree.h.  Every error is reported through msg with place and reason.
 */
int fs_open(struct env *env, struct disk *disk,
	    const struct fs_options *options, struct fs **fs);

/*
 * Writes everything, leaves a clean file system, frees fs.  Waits.  All ops
 * must have ended; open handles and references are dropped (inodes without
 * names are deleted).  -EIO when something could not be written.
 */
int fs_close(struct fs *fs);

/* Frees everything without writing, as a crash does; for tests. */
void fs_abandon(struct fs *fs);

/*
 * Does what is due: completions, timers, write-back, checkpoints.  If there is
 * nothing to do it waits up to timeout_ms for the first completion (0: not at
 * all).  Returns the time (env clock) at which it must be called again at the
 * latest; UINT64_MAX: not before a submit or fs_event_fd becoming readable.
 */
uint64_t fs_run(struct fs *fs, int timeout_ms);
int fs_event_fd(struct fs *fs);		/* see disk_event_fd; -1: none */

/* Share of the memory for requests under way, in bytes. */
size_t fs_request_bytes(const struct fs *fs);

/* True: the disk has no request, and every op was answered. */
bool fs_idle(const struct fs *fs);

enum fs_op_type {
	FS_LOOKUP, FS_FORGET, FS_GETATTR, FS_SETATTR, FS_READLINK,
	FS_MKNOD,		/* makes any type but a directory or a
				 * symlink */
	FS_MKDIR, FS_SYMLINK, FS_TMPFILE, FS_LINK, FS_UNLINK, FS_RMDIR,
	FS_RENAME, FS_OPEN, FS_RELEASE,
	FS_READ, FS_WRITE, FS_FSYNC,
	FS_SYNCFS, FS_READDIR, FS_STATFS, FS_SETXATTR, FS_GETXATTR,
	FS_LISTXATTR, FS_REMOVEXATTR, FS_FALLOCATE, FS_COPY_RANGE,
	FS_GETFLAGS, FS_SETFLAGS, /* INODE_* of format.h, user-visible ones */
	FS_EXTENTS,		/* part of the mapping of a file: the extent
				 * that holds `offset`, and those behind it */
	/* These give a JSON text, see `buffer`. */
	FS_ERRORS,		/* damage that was met and noted, for
				 * trax.errors */
	FS_COPIES,		/* replicas of a file, or of all files (root
				 * directory): trax.replicas */
	FS_HEAT,		/* how often each part of the disk was used:
				 * trax.heat */
	FS_COPIES_MAKE,		/* makes replicas of files near a sector
				 * (offset; -ERANGE: not on the disk) */
	FS_COPIES_DROP,		/* drops the replicas of a file, or all (root
				 * directory) */
	FS_COPIES_SET,		/* sets how many replicas of a block are made
				 * from now on (size) */
	FS_SEEK,		/* flags: FS_SEEK_DATA or FS_SEEK_HOLE from
				   offset on; -ENXIO: none up to the end */
	/* discards free room from byte `offset` on, in `size` bytes of the
	 * disk, in runs of at least `offset2` bytes; -EBUSY: another FS_TRIM is
	 * under way */
	FS_TRIM,
	FS_SET_LABEL,		/* name: up to 63 bytes */
	FS_ERRORS_CLEAR,	/* forgets noted damage: numbers from offset2
				 * on, before `size` */
	FS_SET_UUID,		/* data: 16 bytes, the one that is shown */
	FS_SHUTDOWN,		/* commits; after that the file system behaves
				 * as after a power cut: it writes nothing more
				 * and reads no content of files */
	FS_OP_TYPES
};

struct fs_attr {
	uint64_t ino;
	uint32_t mode, nlink, uid, gid, rdev, flags;
	uint64_t size;
	uint64_t sectors;	/* st_blocks */
	struct timespec atime, mtime, ctime, btime;
	bool name_gone;		/* one of its several names was removed a short
				 * while ago */
};

/* FS_SETATTR: which fields of attr are to be set. */
#define FS_SET_MODE 0x1u
#define FS_SET_UID 0x2u
#define FS_SET_GID 0x4u
#define FS_SET_SIZE 0x8u
#define FS_SET_ATIME 0x10u
#define FS_SET_MTIME 0x20u
#define FS_SET_CTIME 0x40u
#define FS_SET_ATIME_NOW 0x80u
#define FS_SET_MTIME_NOW 0x100u
#define FS_SET_KILL_PRIV 0x200u	/* drop set-uid, set-gid (if the group may
				 * execute it) and file capabilities */

#define FS_WRITE_ACCEPTED 0x400u	/* WRITE: a program takes the data for
					 * written, so it may have room that
					 * others may not */
#define FS_WRITE_PART 0x800u	/* WRITE: before an error `result` says how much
				 * was written, if that is something; without it
				 * the error is told */

/* FS_RENAME flags */
#define FS_RENAME_NOREPLACE 1u
#define FS_RENAME_EXCHANGE 2u
#define FS_RENAME_WHITEOUT 4u	/* a device 0:0 takes the old name */

/* FS_SEEK */
#define FS_SEEK_DATA 0u
#define FS_SEEK_HOLE 1u		/* the end of the file counts as a hole */

/* One extent as FS_EXTENTS reports it. */
struct fs_extent {
	uint64_t offset;	/* bytes in the file */
	uint64_t bytes;
	uint64_t lbn;		/* sectors of 512 bytes; 0 and inline = true:
				   the data is in the tree */
	bool is_inline, unwritten, known;
};

struct fs_statfs {
	uint64_t blocks, free, avail;	/* in blocks of 4096 bytes */
	uint64_t files, files_free;
};

/*
 * FS_READDIR calls this for each entry, from inside the op's run; returns
 * false when the buffer is full (that entry is not counted and gets no
 * reference).  `next` is the offset to continue behind this entry.  attr is
 * given when `plus` was asked (NULL for "." and "..").
 */
typedef bool (*fs_dir_fill)(void *arg, const char *name, size_t bytes,
			    uint64_t ino, unsigned d_type, uint64_t next,
			    const struct fs_attr *attr);

struct fs_op {
	enum fs_op_type type;
	void (*done)(struct fs_op *op);
	void *owner;		/* for the caller; not used here */
	int rc;

	/* In.  Each field names the ops that use it. */
	uint64_t ino;		/* all ops: the inode, or the directory in which
				 * `name` is */
	const char *name;	/* terminated by 0; a name that is too long is
				 * answered with -ENAMETOOLONG */
	uint64_t ino2;		/* RENAME: new directory; LINK: the inode to be
				   linked (ino/name: where); COPY_RANGE:
				   target inode */
	const char *name2;	/* RENAME: new name; SYMLINK: target; xattrs:
				   attribute name */
	uint32_t thread;	/* READ: number of the calling thread; 0: not
				 * known */
	uint32_t uid, gid;	/* owner of new inodes; LISTXATTR: trusted.* is
				 * listed for uid 0 only */
	uint32_t mode;		/* MKNOD, MKDIR, TMPFILE: with type bits */
	uint32_t umask;		/* applied here unless a default ACL rules */
	uint32_t rdev;
	bool opens;		/* MKNOD, TMPFILE: adds a handle, as OPEN */
	uint32_t flags;		/* RENAME; SETATTR: FS_SET_*; SETXATTR:
				   XATTR_CREATE/REPLACE, FS_SET_KILL_PRIV: an
				   ACL drops sgid; FALLOCATE: mode;
				   FSYNC: 1 = data only; SETFLAGS: flags;
				   WRITE, FALLOCATE: FS_SET_KILL_PRIV;
				   WRITE: FS_WRITE_ACCEPTED, FS_WRITE_PART;
				   READ: O_DIRECT; OPEN: O_* flags;
				   O_TRUNC: it will be truncated by a
				   SETATTR */
	uint64_t handle;	/* FSYNC, RELEASE: the open file description,
				   by its number of fs_new_handle; 0: one that
				   has been there from the beginning */
	uint64_t offset;	/* READ, WRITE, FALLOCATE, COPY_RANGE, EXTENTS;
				   READDIR: cookie, 0 = start */
	uint64_t offset2;	/* COPY_RANGE: target offset; COPIES, HEAT:
				   from where on; ERRORS: from this number on,
				   as many as fit into an attribute;
				   ERRORS_CLEAR: the first number */
	uint64_t size;		/* READ, WRITE, FALLOCATE, COPY_RANGE: bytes;
				   FORGET: count; xattrs: buffer size, 0 =
				   only ask for the size; READDIR: bytes of the
				   caller's buffer, a hint (0: unknown);
				   ERRORS_CLEAR: the number behind the last */
	const void *data;	/* WRITE (`size` bytes), SETXATTR; COPIES_MAKE:
				   `size` inode numbers */
	void *buffer;		/* READ, READLINK (4096), GETXATTR, LISTXATTR:
				   where to put it; EXTENTS: array of
				   struct fs_extent with room for `size`;
				   out, ERRORS, COPIES, HEAT: JSON text, the
				   caller frees */
	void *(*room)(struct fs_op *op); /* READ with buffer == NULL: gives the
				   buffer for `size` bytes when the data is
				   there, so that a read that waits needs none;
				   NULL: there is no memory */
	fs_dir_fill fill;	/* READDIR */
	void *fill_arg;
	bool plus;		/* READDIR with attributes and references */
	struct fs_attr attr;	/* In: SETATTR.  Out: every op that returns an
				   entry, GETATTR, SETATTR */

	/* Out. */
	uint64_t result;	/* READ, COPY_RANGE: bytes; WRITE: bytes, also
				   those before an error; GETXATTR,
				   LISTXATTR, READLINK: size; EXTENTS: how many
				   were put, fewer than `size`: there are no
				   more; SEEK: offset; TRIM: bytes; GETFLAGS;
				   OPEN: 1 if the access time
				   was set; ERRORS and the like: length of
				   the text; COPIES_MAKE: copies made */
	struct fs_statfs statfs;

	/* Private to the library. */
	struct list link;
	void *txn;
	uint64_t start_ns;
};

void fs_submit(struct fs *fs, struct fs_op *op);

/*
 * Gives an open file description its number (op->handle).  When data of a file
 * is given up, because it could be written nowhere, one FS_FSYNC of each
 * description is answered with the error, as the kernel does it (errseq): of
 * each that was opened before the first of them was answered so.  One FS_SYNCFS
 * reports it, too.
 */
uint64_t fs_new_handle(struct fs *fs);

/*
 * Takes the references and handles that callers have from a file system that is
 * about to be closed, and gives them to the same one once it has been opened
 * again, so that its callers notice nothing.  No op may be outstanding. take:
 * -EBUSY: an inode without a name is referred to, which would not outlive the
 * close; -ENOMEM. give: -ENOMEM.
 */
struct fs_holders;
int fs_holders_take(struct fs *fs, struct fs_holders **holders);
int fs_holders_give(struct fs *fs, const struct fs_holders *holders);
void fs_holders_free(struct fs_holders *holders);

/* Bytes that can still be written to new places before a write fails with
 * -ENOSPC.  UINT64_MAX: writes wait for room that is being given back. */
uint64_t fs_room(const struct fs *fs);
/* The same for a write with FS_WRITE_ACCEPTED. */
uint64_t fs_room_accepted(const struct fs *fs);
/* Writes with FS_WRITE_ACCEPTED are to come that need `bytes` of this room:
 * nothing else gets it, -ENOSPC instead.  Takes the place of what was expected
 * before. */
void fs_expect(struct fs *fs, uint64_t bytes);

/* Calls each() for every inode in memory, among them all that callers refer to
 * or have open. */
void fs_each_inode(const struct fs *fs,
		   void (*each)(void *arg, uint64_t ino), void *arg);

/* What recovery found when the file system was opened. */
struct fs_recovery {
	bool was_clean;
	/* records of the log that were applied, and blocks of data in them */
	uint64_t records, blocks;
};
void fs_get_recovery(const struct fs *fs, struct fs_recovery *out);

/* Facts for trax.* attributes; JSON text allocated, caller frees.  NULL: no
 * memory.  See traxctl(8). */
char *fs_stats_json(struct fs *fs);
/* The readers that have a pace, and the rates that were promised to them
 * (traxctl streams). */
char *fs_streams_json(struct fs *fs);

struct fs_promise {
	uint64_t ino;
	uint64_t rate;		/* bytes a second; 0 gives a promise back */
	uint32_t uid;		/* the user who asks */
	bool admin;		/* this user is not limited, and may change the
				 * promises of others */
};

/*
 * Promises the readers of a file a rate, instead of what they had
 * (fuse/trax_stream.h).  *rate_all and *files say how many bytes a second are
 * promised then, and to how many files.  The promise ends when the file is
 * deleted, or was not read for a minute.
 *
 * -EBUSY: the disk cannot keep it beside the others; -EDQUOT: the user would
 * have more than half of what the disk can do; -EPERM: another user has a
 * promise for this file; -EOPNOTSUPP: it is not known what the disk can do;
 * -ENOMEM.
 */
int fs_promise(struct fs *fs, const struct fs_promise *ask, uint64_t *rate_all,
	       unsigned *files);
char *fs_model_json(struct fs *fs);
/* Shows what lies where: the number of "sectors" of the disk and, for equally
 * large "parts" of it in the order of sectors, one array each: the shares of
 * the part that are free, belong to the log, and hold replicas (0 to 1); the
 * sectors of the track in its middle; whether that track is known.  The
 * remaining share holds files and the tree.  Where the free set of a group is
 * not in memory, its free room counts as spread evenly over the group. */
char *fs_platter_json(struct fs *fs);

struct geom;
/* The track layout by which data is placed; never NULL. */
const struct geom *fs_geom(const struct fs *fs);
struct super;
const struct super *fs_super(const struct fs *fs);
bool fs_read_only(const struct fs *fs);
/* Bytes of memory that it was opened with, given by the caller or chosen by
 * itself. */
size_t fs_memory_bytes(const struct fs *fs);

/* Changes these options of struct fs_options from now on. */
void fs_set_access_times(struct fs *fs, bool noatime, bool strictatime,
			 bool nodiratime);

/* Limits the head's time that may be spent on larger gaps, in millionths: see
 * queue_set_budget. */
void fs_set_budget(struct fs *fs, unsigned ppm);

/* Sets the least time without operations of users after which they are quiet,
 * for all background work (0: 100 ms, or as before), and that after which the
 * drive may spin down (0: never): see fs/op/quiet.h.  Without background tasks
 * there is nothing to be set. */
void fs_set_quiet(struct fs *fs, uint64_t quiet_ns, uint64_t sleep_ns);

#endif

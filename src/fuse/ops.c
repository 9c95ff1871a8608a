/*
 * ops.c - the table of opcodes.  <linux/fuse.h> of the build machine may be
 * older than the kernel: newer opcodes are named here.
 */
#include <errno.h>
#include <string.h>

#include "base/msg.h"
#include "fuse/session_internal.h"
#include "fuse/ops.h"
#include "fuse/scan_file.h"
#include "fuse/statx.h"

struct op_row {
	const char *name;
	uint16_t fixed_bytes;		/* size of the fixed part of the
					 * request */
	uint8_t names;			/* strings behind it */
	void (*handle)(struct request *req);
};

/*
 * An operation that has begun ends as if nobody had asked to stop it: none
 * waits for anything but the disk, or on a full one for the kernel to write out
 * what it has (room.h), which has a limit.  Calls that write to a file do not
 * end with EINTR for any signal, and nothing tells one that kills from others.
 */
static void handle_interrupt(struct request *req)
{
	request_drop(req);
}

static const struct op_row rows[] = {
	[FUSE_LOOKUP] = { "LOOKUP", 0, 1, ops_lookup },
	[FUSE_FORGET] = { "FORGET", sizeof(struct fuse_forget_in), 0,
			  ops_forget },
	[FUSE_GETATTR] = { "GETATTR", sizeof(struct fuse_getattr_in), 0,
			   ops_getattr },
	[FUSE_SETATTR] = { "SETATTR", sizeof(struct fuse_setattr_in), 0,
			   ops_setattr },
	[FUSE_READLINK] = { "READLINK", 0, 0, ops_readlink },
	[FUSE_SYMLINK] = { "SYMLINK", 0, 2, ops_symlink },
	[FUSE_MKNOD] = { "MKNOD", sizeof(struct fuse_mknod_in), 1, ops_mknod },
	[FUSE_MKDIR] = { "MKDIR", sizeof(struct fuse_mkdir_in), 1, ops_mkdir },
	[FUSE_UNLINK] = { "UNLINK", 0, 1, ops_unlink },
	[FUSE_RMDIR] = { "RMDIR", 0, 1, ops_rmdir },
	[FUSE_RENAME] = { "RENAME", sizeof(struct fuse_rename_in), 2,
			  ops_rename },
	[FUSE_LINK] = { "LINK", sizeof(struct fuse_link_in), 1, ops_link },
	[FUSE_OPEN] = { "OPEN", sizeof(struct fuse_open_in), 0, ops_open },
	[FUSE_CREATE] = { "CREATE", sizeof(struct fuse_create_in), 1,
			  ops_create },
	[FUSE_READ] = { "READ", sizeof(struct fuse_read_in), 0, ops_read },
	[FUSE_WRITE] = { "WRITE", sizeof(struct fuse_write_in), 0, ops_write },
	[FUSE_STATFS] = { "STATFS", 0, 0, ops_statfs },
	[FUSE_RELEASE] = { "RELEASE", sizeof(struct fuse_release_in), 0,
			   ops_release },
	[FUSE_FSYNC] = { "FSYNC", sizeof(struct fuse_fsync_in), 0, ops_fsync },
	[FUSE_SETXATTR] = { "SETXATTR", sizeof(struct fuse_setxattr_in), 1,
			    ops_setxattr },
	[FUSE_GETXATTR] = { "GETXATTR", sizeof(struct fuse_getxattr_in), 1,
			    ops_getxattr },
	[FUSE_LISTXATTR] = { "LISTXATTR", sizeof(struct fuse_getxattr_in), 0,
			     ops_listxattr },
	[FUSE_REMOVEXATTR] = { "REMOVEXATTR", 0, 1, ops_removexattr },
	[FUSE_INIT] = { "INIT", 16, 0, ops_init },
	[FUSE_OPENDIR] = { "OPENDIR", sizeof(struct fuse_open_in), 0,
			   ops_opendir },
	[FUSE_READDIR] = { "READDIR", sizeof(struct fuse_read_in), 0,
			   ops_readdir },
	[FUSE_RELEASEDIR] = { "RELEASEDIR", sizeof(struct fuse_release_in), 0,
			      ops_releasedir },
	[FUSE_FSYNCDIR] = { "FSYNCDIR", sizeof(struct fuse_fsync_in), 0,
			    ops_fsync },
	[FUSE_INTERRUPT] = { "INTERRUPT", 0, 0, handle_interrupt },
	[FUSE_DESTROY] = { "DESTROY", 0, 0, ops_destroy },
	[FUSE_IOCTL] = { "IOCTL", sizeof(struct fuse_ioctl_in), 0, ops_ioctl },
	[FUSE_BATCH_FORGET] = { "BATCH_FORGET",
				sizeof(struct fuse_batch_forget_in), 0,
				ops_batch_forget },
	[FUSE_FALLOCATE] = { "FALLOCATE", sizeof(struct fuse_fallocate_in), 0,
			     ops_fallocate },
	[FUSE_READDIRPLUS] = { "READDIRPLUS", sizeof(struct fuse_read_in), 0,
			       ops_readdirplus },
	[FUSE_LSEEK] = { "LSEEK", sizeof(struct fuse_lseek_in), 0, ops_lseek },
	[FUSE_RENAME2] = { "RENAME2", sizeof(struct fuse_rename2_in), 2,
			   ops_rename2 },
	[FUSE_COPY_FILE_RANGE] = { "COPY_FILE_RANGE",
				   sizeof(struct fuse_copy_file_range_in), 0,
				   ops_copy_file_range },
	[FUSE_SYNCFS] = { "SYNCFS", 0, 0, ops_syncfs },
	[FUSE_TMPFILE] = { "TMPFILE", sizeof(struct fuse_create_in), 0,
			   ops_tmpfile },
	[STATX_OPCODE] = { "STATX", sizeof(struct statx_in), 0, ops_statx },
};

static const struct op_row *find(uint32_t opcode)
{
	if (opcode >= sizeof(rows) / sizeof(rows[0]) || !rows[opcode].handle)
		return NULL;
	return &rows[opcode];
}

void ops_dispatch(struct request *req)
{
	const struct op_row *row = find(req->opcode);

	if (!row) {
		request_reply(req, -ENOSYS, NULL, 0);
		return;
	}
	msg_debug("FUSE: %s node %llu", row->name,
		  (unsigned long long)req->op.ino);
	if (!req->session->started && req->opcode != FUSE_INIT) {
		request_reply(req, -EIO, NULL, 0);
		return;
	}
	if (request_split(req, row->fixed_bytes, row->names)) {
		msg_error("FUSE: malformed %s", row->name);
		request_reply(req, -EINVAL, NULL, 0);
		return;
	}
	if (req->op.ino == SCAN_FILE_INO)
		scan_file_dispatch(req);
	else
		row->handle(req);
}

/*
 * ops_attr.c - attributes, plain and extended.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fuse/session_internal.h"
#include "fuse/ops.h"
#include "fuse/room.h"
#include "fuse/statx.h"
#include "fuse/view.h"

#define ACL_ACCESS "system.posix_acl_access"

/*
 * A file whose writers are to ask is invalidated before the reply to GETATTR or
 * STATX, and to a LOOKUP or READDIRPLUS that finds it.  So the kernel does not
 * apply the attributes, which would expire, and asks again for the mode, which
 * write(2) wants.  Its size the kernel owns: a read(2) across the end does not
 * ask before attributes expire.
 */
static void done_attr(struct fs_op *op)
{
	struct request *req = request_of(op);
	struct fuse_attr_out out = {
		.attr_valid = ops_valid_seconds(req->session, &op->attr)
	};

	if (!op->rc)
		ops_fill_attr(&op->attr, &out.attr);
	if (!op->rc && op->type == FS_GETATTR)
		ops_forget_asking(req->session, op->ino);
	request_reply(req, op->rc, &out, sizeof(out));
}

static void done_looked(struct fs_op *op)
{
	struct request *req = request_of(op);

	if (!op->rc && !room_may_grow(req->session, &op->attr))
		request_reply(req, -ENOSPC, NULL, 0);
	else
		done_attr(op);
}

void ops_getattr_looked(struct request *req)
{
	request_submit(req, FS_GETATTR, done_looked);
}

static void done_look(struct fs_op *op)
{
	struct request *req = request_of(op);
	struct session *session = req->session;

	if (!op->rc && S_ISREG(op->attr.mode) &&
	    notify_write(session->notify, req, op->ino, op->attr.size, 0))
		session->noticed++;
	else
		done_attr(op);
}

/* A request with an open file comes from write(2), or from a read at the end of
 * the file. */
void ops_getattr(struct request *req)
{
	const struct fuse_getattr_in *in = req->fixed;
	bool open = in->getattr_flags & FUSE_GETATTR_FH;
	enum room_answer answer = ROOM_THERE;

	if (open && in->fh & OPS_HANDLE_WRITABLE)
		answer = room_question(req->session, req->op.ino);
	if (answer == ROOM_FULL)
		request_reply(req, -ENOSPC, NULL, 0);
	else
		request_submit(req, FS_GETATTR,
			       answer == ROOM_LOOK ? done_look : done_attr);
}

/*
 * chown(2) drops suid, sgid and capabilities, for every caller.  The kernel
 * leaves it to the file system without saying so: it asks to set an owner, or
 * nothing but the change time (chown to the same owner, or another call that
 * drops them).
 */
static bool drops_privileges(uint32_t valid)
{
	if (valid & (FATTR_UID | FATTR_GID | FATTR_KILL_SUIDGID))
		return true;
	return !(valid & ~(uint32_t)(FATTR_FH | FATTR_LOCKOWNER |
				     FATTR_CTIME));
}

static uint32_t set_flags(uint32_t valid)
{
	static const struct {
		uint32_t fattr, flag;
	} map[] = {
		{ FATTR_MODE, FS_SET_MODE },
		{ FATTR_UID, FS_SET_UID },
		{ FATTR_GID, FS_SET_GID },
		{ FATTR_SIZE, FS_SET_SIZE },
		{ FATTR_ATIME, FS_SET_ATIME },
		{ FATTR_MTIME, FS_SET_MTIME },
		{ FATTR_CTIME, FS_SET_CTIME },
	};
	uint32_t flags = 0;
	size_t i;

	for (i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (valid & map[i].fattr)
			flags |= map[i].flag;
	if (valid & FATTR_ATIME_NOW)
		flags = (flags & ~FS_SET_ATIME) | FS_SET_ATIME_NOW;
	if (valid & FATTR_MTIME_NOW)
		flags = (flags & ~FS_SET_MTIME) | FS_SET_MTIME_NOW;
	if (drops_privileges(valid))
		flags |= FS_SET_KILL_PRIV;
	return flags;
}

static struct timespec time_of(uint64_t seconds, uint32_t ns)
{
	return (struct timespec){ (time_t)seconds, ns };
}

void ops_setattr(struct request *req)
{
	const struct fuse_setattr_in *in = req->fixed;

	req->op.flags = set_flags(in->valid);
	req->op.attr = (struct fs_attr){
		.mode = in->mode,
		.uid = in->uid,
		.gid = in->gid,
		.size = in->size,
		.atime = time_of(in->atime, in->atimensec),
		.mtime = time_of(in->mtime, in->mtimensec),
		.ctime = time_of(in->ctime, in->ctimensec),
	};
	request_submit(req, FS_SETATTR, done_attr);
}

static struct statx_time statx_time_of(struct timespec t)
{
	return (struct statx_time){ t.tv_sec, (uint32_t)t.tv_nsec, 0 };
}

static void done_statx(struct fs_op *op)
{
	const struct fs_attr *a = &op->attr;
	struct statx_out out = {
		.attr_valid = ops_valid_seconds(request_of(op)->session, a),
		.mask = STATX_BASIC_STATS | STATX_BTIME,
		.blksize = 4096,
		.nlink = a->nlink,
		.uid = a->uid,
		.gid = a->gid,
		.mode = (uint16_t)a->mode,
		.ino = a->ino,
		.size = a->size,
		.blocks = a->sectors,
		.atime = statx_time_of(a->atime),
		.btime = statx_time_of(a->btime),
		.ctime = statx_time_of(a->ctime),
		.mtime = statx_time_of(a->mtime),
		/* The kernel packs device numbers in 32 bits like this. */
		.rdev_major = (a->rdev & 0xfff00) >> 8,
		.rdev_minor = (a->rdev & 0xff) | (a->rdev >> 12 & 0xfff00),
	};

	if (!op->rc)
		ops_forget_asking(request_of(op)->session, op->ino);
	request_reply(request_of(op), op->rc, &out, sizeof(out));
}

void ops_statx(struct request *req)
{
	request_submit(req, FS_GETATTR, done_statx);
}

static void done_statfs(struct fs_op *op)
{
	struct fuse_statfs_out out = {
		.st = {
			.blocks = op->statfs.blocks,
			.bfree = op->statfs.free,
			.bavail = op->statfs.avail,
			.files = op->statfs.files,
			.ffree = op->statfs.files_free,
			.bsize = 4096,
			.frsize = 4096,
			.namelen = 255,
		},
	};

	request_reply(request_of(op), op->rc, &out, sizeof(out));
}

void ops_statfs(struct request *req)
{
	request_submit(req, FS_STATFS, done_statfs);
}

/* ---- Extended attributes ---- */

/* The ACL is stored; now the mode loses its set-gid bit. */
static void done_acl_attr(struct fs_op *op)
{
	struct request *req = request_of(op);

	if (op->rc || !(op->attr.mode & S_ISGID)) {
		request_reply(req, op->rc, NULL, 0);
		return;
	}
	op->flags = FS_SET_MODE;
	op->attr.mode &= ~(uint32_t)S_ISGID;
	request_submit(req, FS_SETATTR, ops_done_status);
}

static void done_acl(struct fs_op *op)
{
	if (op->rc)
		ops_done_status(op);
	else
		request_submit(request_of(op), FS_GETATTR, done_acl_attr);
}

void ops_setxattr(struct request *req)
{
	const struct fuse_setxattr_in *in = req->fixed;
	bool kill_sgid = in->setxattr_flags & FUSE_SETXATTR_ACL_KILL_SGID &&
			 strcmp(req->name[0], ACL_ACCESS) == 0;

	if (view_is_name(req->name[0])) {
		request_reply(req, -EOPNOTSUPP, NULL, 0);
		return;
	}
	if (in->size > req->data_bytes) {
		request_reply(req, -EINVAL, NULL, 0);
		return;
	}
	req->op.name2 = req->name[0];
	req->op.data = req->data;
	req->op.size = in->size;
	req->op.flags = in->flags;
	request_submit(req, FS_SETXATTR,
		       kill_sgid ? done_acl : ops_done_status);
}

/* GETXATTR and LISTXATTR: the value, or its size when no room was given. */
static void done_value(struct fs_op *op)
{
	struct request *req = request_of(op);
	struct fuse_getxattr_out size = { .size = (uint32_t)op->result };

	if (op->rc || req->room)
		request_reply(req, op->rc, op->buffer, op->result);
	else
		request_reply(req, 0, &size, sizeof(size));
}

static void submit_value(struct request *req, enum fs_op_type type)
{
	req->op.size = req->room;
	req->op.buffer = request_room(req, req->room);
	if (req->op.buffer)
		request_submit(req, type, done_value);
	else
		request_reply(req, -ENOMEM, NULL, 0);
}

/* Room that the kernel has for the value. */
static void take_room(struct request *req)
{
	const struct fuse_getxattr_in *in = req->fixed;

	req->room = in->size < REQUEST_MAX_WRITE ? in->size :
						   REQUEST_MAX_WRITE;
}

void ops_getxattr(struct request *req)
{
	take_room(req);
	req->op.name2 = req->name[0];
	if (view_is_name(req->name[0]))
		view_get(req, req->name[0]);
	else
		submit_value(req, FS_GETXATTR);
}

void ops_listxattr(struct request *req)
{
	take_room(req);
	submit_value(req, FS_LISTXATTR);
}

void ops_removexattr(struct request *req)
{
	req->op.name2 = req->name[0];
	if (view_is_name(req->name[0]))
		request_reply(req, -EOPNOTSUPP, NULL, 0);
	else
		request_submit(req, FS_REMOVEXATTR, ops_done_status);
}

/*
 * ops_reply.c - what replies of several operations are made of.
 */
#include "fuse/ops.h"
#include "fuse/room.h"
#include "fuse/session_internal.h"

void ops_fill_attr(const struct fs_attr *attr, struct fuse_attr *out)
{
	*out = (struct fuse_attr){
		.ino = attr->ino,
		.size = attr->size,
		.blocks = attr->sectors,
		.atime = (uint64_t)attr->atime.tv_sec,
		.mtime = (uint64_t)attr->mtime.tv_sec,
		.ctime = (uint64_t)attr->ctime.tv_sec,
		.atimensec = (uint32_t)attr->atime.tv_nsec,
		.mtimensec = (uint32_t)attr->mtime.tv_nsec,
		.ctimensec = (uint32_t)attr->ctime.tv_nsec,
		.mode = attr->mode,
		.nlink = attr->nlink,
		.uid = attr->uid,
		.gid = attr->gid,
		.rdev = attr->rdev,
		.blksize = 4096,
	};
}

uint64_t ops_valid_seconds(struct session *session,
			   const struct fs_attr *attr)
{
	return attr->name_gone || room_asks(session, attr->ino) ?
					0 : OPS_VALID_SECONDS;
}

void ops_fill_entry(struct session *session, const struct fs_attr *attr,
		    struct fuse_entry_out *out)
{
	*out = (struct fuse_entry_out){
		.nodeid = attr->ino,
		/* Numbers are never used again; the root has none. */
		.generation = attr->ino != FUSE_ROOT_ID,
		.entry_valid = OPS_VALID_SECONDS,
		.attr_valid = ops_valid_seconds(session, attr),
	};
	ops_fill_attr(attr, &out->attr);
}

void ops_forget_asking(struct session *session, uint64_t ino)
{
	if (room_asks(session, ino))
		request_forget_attr(session, ino);
}

void ops_done_status(struct fs_op *op)
{
	request_reply(request_of(op), op->rc, NULL, 0);
}

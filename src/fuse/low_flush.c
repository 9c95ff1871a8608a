/*
 * low_flush.c - see low_flush.h.
 */
#include "fuse/low_flush.h"

#include "fuse/session_internal.h"

static void done_attr(struct fs_op *op)
{
	struct request *req = request_of(op);
	struct session *session = req->session;

	if (notify_write(session->notify, req, op->ino,
			 op->rc ? 0 : op->attr.size, 0))
		session->noticed++;
	else
		low_flush_next(req);
}

void low_flush_run(struct session *session)
{
	struct request *req;

	if (session->low_flushing || !session->low_flush_n)
		return;
	req = request_new(session);
	if (!req) {
		session->low_flush_n = 0;
		return;
	}
	req->op.ino = session->low_flush[--session->low_flush_n];
	session->low_flushing = true;
	request_submit(req, FS_GETATTR, done_attr);
}

void low_flush_next(struct request *req)
{
	req->session->low_flushing = false;
	request_drop(req);
}

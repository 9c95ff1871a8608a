/*
 * ops_data.c - contents of files.
 *
 * The kernel owns size and times of regular files (write-back cache) and says
 * when a file must lose suid and sgid (HANDLE_KILLPRIV_V2) for WRITE and
 * truncation.  For fallocate and copy_file_range it does not say; for these
 * every user but root counts as one without CAP_FSETID.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/units.h"
#include "fuse/session_internal.h"
#include "fuse/ops.h"
#include "fuse/room.h"
#include "fuse/scan_file.h"
#include "fuse/written.h"

#define MAX_COPY_BYTES (1u << 30)	/* the most that one COPY_FILE_RANGE
					 * copies */

static uint32_t kill_flag(const struct request *req)
{
	return req->op.uid ? FS_SET_KILL_PRIV : 0;
}

/* ---- Opening ---- */

void ops_note_writer(struct session *session, uint64_t ino, uint32_t flags,
		     int change)
{
	uintptr_t n = (uintptr_t)hashmap_get(session->writers, ino);

	if ((flags & O_ACCMODE) == O_RDONLY)
		return;
	n += (uintptr_t)change;
	/* Without memory for the entry any file may have dirty pages from now
	 * on, see ops_lseek. */
	if (!n) {
		hashmap_del(session->writers, ino);
		room_closed(session, ino);
		written_forget(session, ino);
	} else if (hashmap_put(session->writers, ino, (void *)n)) {
		session->writers_lost = true;
	}
	room_writers_changed(session);
}

static void done_drop(struct fs_op *op)
{
	request_drop(request_of(op));
}

void ops_drop_handle(struct session *session, uint64_t ino)
{
	struct request *req = request_new(session);

	if (!req)
		return;
	req->op.ino = ino;
	request_submit(req, FS_RELEASE, done_drop);
}

uint64_t ops_new_handle(struct session *session, uint32_t flags)
{
	uint64_t handle = fs_new_handle(session->fs);

	if ((flags & O_ACCMODE) != O_WRONLY)
		handle |= SCAN_FILE_READABLE;
	if ((flags & O_ACCMODE) != O_RDONLY)
		handle |= OPS_HANDLE_WRITABLE;
	return handle;
}

static uint64_t handle_number(uint64_t handle)
{
	return handle & ~(SCAN_FILE_READABLE | OPS_HANDLE_WRITABLE);
}

uint32_t ops_open_flags(const struct session *session)
{
	return session->options.direct ? FOPEN_DIRECT_IO : FOPEN_KEEP_CACHE;
}

static void done_open(struct fs_op *op)
{
	struct fuse_open_out out = { 0 };
	struct session *session = request_of(op)->session;
	uint64_t ino = op->ino;
	uint32_t flags;
	int rc = op->rc;

	out.open_flags = ops_open_flags(session);
	out.fh = ops_new_handle(session, op->flags);
	if (!rc)
		ops_note_writer(session, ino, op->flags, 1);
	if (!rc && (op->result || room_asks(session, ino)))
		request_forget_attr(session, ino);
	flags = op->flags;
	if (!request_reply(request_of(op), rc, &out, sizeof(out)) && !rc) {
		ops_note_writer(session, ino, flags, -1);
		ops_drop_handle(session, ino);
	}
}

void ops_open(struct request *req)
{
	const struct fuse_open_in *in = req->fixed;

	req->op.flags = in->flags;
	request_submit(req, FS_OPEN, done_open);
}

void ops_release(struct request *req)
{
	const struct fuse_release_in *in = req->fixed;

	ops_note_writer(req->session, req->op.ino, in->flags, -1);
	req->op.handle = handle_number(in->fh);
	request_submit(req, FS_RELEASE, ops_done_status);
}

/* ---- Reading and writing ---- */

static void done_read(struct fs_op *op)
{
	request_reply(request_of(op), op->rc, op->buffer, op->result);
}

/* Notes that the kernel may hold pages of the file.  Only a direct READ, which
 * leaves no pages, has a lock owner. */
static void note_pages(struct request *req, uint32_t read_flags)
{
	if (!(read_flags & FUSE_READ_LOCKOWNER))
		req->session->paged[req->op.ino % SESSION_PAGE_SLOTS] = true;
}

static void *room_of_read(struct fs_op *op)
{
	return request_room(request_of(op), op->size);
}

void ops_read(struct request *req)
{
	const struct fuse_read_in *in = req->fixed;

	note_pages(req, in->read_flags);
	if (in->size > REQUEST_MAX_WRITE) {
		request_reply(req, -EINVAL, NULL, 0);
		return;
	}
	req->op.buffer = NULL;
	req->op.room = room_of_read;
	req->op.offset = in->offset;
	req->op.size = in->size;
	req->op.flags = in->flags;
	request_submit(req, FS_READ, done_read);
}

/*
 * A write by a user without CAP_FSETID clears suid and sgid, but the kernel
 * still has the old mode, with which the overwritten file must not be executed.
 * So the kernel's attributes are invalidated before the reply.
 */
static void tell_mode(struct fs_op *op)
{
	uint64_t ino = op->type == FS_COPY_RANGE ? op->ino2 : op->ino;

	if (op->flags & FS_SET_KILL_PRIV)
		request_forget_attr(request_of(op)->session, ino);
}

static void reply_written(struct fs_op *op)
{
	struct fuse_write_out out = { .size = (uint32_t)op->result };

	tell_mode(op);
	request_reply(request_of(op), op->rc, &out, sizeof(out));
}

static void write_again(struct request *req)
{
	request_submit(req, FS_WRITE, req->op.done);
}

static void done_written(struct fs_op *op)
{
	if (!room_wait(request_of(op), write_again))
		reply_written(op);
}

static void done_page_write(struct fs_op *op)
{
	struct session *session = request_of(op)->session;
	uint64_t ino = op->ino;
	int rc = op->rc;

	reply_written(op);
	room_page_written(session, ino, rc);
	written_note(session, ino);
}

/*
 * The kernel drops the pages before a direct write, but after an asynchronous
 * one it does not look again: a buffered read meanwhile leaves old content in
 * its cache.  So they are dropped once more, before the reply.  That waits for
 * READs, so the data is given back first.
 */
static void done_direct_write(struct fs_op *op)
{
	struct request *req = request_of(op);
	struct session *session = req->session;

	if (room_wait(req, write_again))
		return;
	if (op->rc || !session->paged[op->ino % SESSION_PAGE_SLOTS] ||
	    !notify_write(session->notify, req, op->ino, op->offset,
			  (uint32_t)op->result)) {
		reply_written(op);
		return;
	}
	session->noticed++;
	request_shrink(req);
}

static void done_seek(struct fs_op *op)
{
	struct fuse_lseek_out out = { .offset = op->result };

	request_reply(request_of(op), op->rc, &out, sizeof(out));
}

void ops_noticed(struct request *req)
{
	if (!req->opcode)
		room_flushed(req);
	else if (req->opcode == FUSE_GETATTR)
		ops_getattr_looked(req);
	else if (req->opcode == FUSE_LSEEK)
		request_submit(req, FS_SEEK, done_seek);
	else if (req->opcode == FUSE_IOCTL)
		ops_reply_ioctl(req, NULL, 0);
	else
		reply_written(&req->op);
}

/*
 * Dirty pages are data that only the kernel knows of.  A file can have some
 * while it is open for writing: the last close, of mappings too, writes them
 * out.  Dropping pages writes them out as well, and write(2) adds none before
 * the answer.
 */
void ops_lseek(struct request *req)
{
	const struct fuse_lseek_in *in = req->fixed;
	struct session *session = req->session;

	if (in->whence != SEEK_DATA && in->whence != SEEK_HOLE) {
		request_reply(req, -EINVAL, NULL, 0);
		return;
	}
	req->op.offset = in->offset;
	req->op.flags = in->whence == SEEK_DATA ? FS_SEEK_DATA : FS_SEEK_HOLE;
	if (!session->writers_lost &&
	    !hashmap_get(session->writers, req->op.ino))
		ops_noticed(req);
	else if (notify_write(session->notify, req, req->op.ino, 0, 0))
		session->noticed++;
	else
		request_reply(req, -ENOMEM, NULL, 0);
}

void ops_write(struct request *req)
{
	const struct fuse_write_in *in = req->fixed;

	if (in->size > req->data_bytes) {
		request_reply(req, -EINVAL, NULL, 0);
		return;
	}
	req->op.offset = in->offset;
	req->op.size = in->size;
	req->op.data = req->data;
	if (in->write_flags & FUSE_WRITE_KILL_SUIDGID)
		req->op.flags = FS_SET_KILL_PRIV;
	/* write(2) says how much was written of a file that was opened with
	 * FOPEN_DIRECT_IO.  Of any other the kernel takes all or an error. */
	if (ops_open_flags(req->session) & FOPEN_DIRECT_IO)
		req->op.flags |= FS_WRITE_PART;
	if (in->write_flags & FUSE_WRITE_CACHE) {
		req->op.flags |= FS_WRITE_ACCEPTED;
		req->session->page_writes++;
	}
	request_submit(req, FS_WRITE,
		       in->write_flags & FUSE_WRITE_CACHE ? done_page_write :
		       in->write_flags & FUSE_WRITE_LOCKOWNER ?
						done_direct_write :
						done_written);
}

/* Answers FSYNCDIR as well. */
void ops_fsync(struct request *req)
{
	const struct fuse_fsync_in *in = req->fixed;

	req->op.handle = handle_number(in->fh);
	req->op.flags = in->fsync_flags & FUSE_FSYNC_FDATASYNC ? 1 : 0;
	request_submit(req, FS_FSYNC, ops_done_status);
}

void ops_syncfs(struct request *req)
{
	request_submit(req, FS_SYNCFS, ops_done_status);
}

static void fallocate_again(struct request *req)
{
	request_submit(req, FS_FALLOCATE, req->op.done);
}

static void done_fallocate(struct fs_op *op)
{
	if (room_wait(request_of(op), fallocate_again))
		return;
	tell_mode(op);
	room_forget(request_of(op)->session, op->ino);
	ops_done_status(op);
}

void ops_fallocate(struct request *req)
{
	const struct fuse_fallocate_in *in = req->fixed;

	req->op.offset = in->offset;
	req->op.size = in->length;
	req->op.flags = in->mode | kill_flag(req);
	request_submit(req, FS_FALLOCATE, done_fallocate);
}

static void copy_again(struct request *req)
{
	request_submit(req, FS_COPY_RANGE, req->op.done);
}

static void done_copied(struct fs_op *op)
{
	if (room_wait(request_of(op), copy_again))
		return;
	room_forget(request_of(op)->session, op->ino2);
	reply_written(op);
}

void ops_copy_file_range(struct request *req)
{
	const struct fuse_copy_file_range_in *in = req->fixed;

	if (in->flags) {
		request_reply(req, -EINVAL, NULL, 0);
		return;
	}
	req->op.offset = in->off_in;
	req->op.ino2 = in->nodeid_out;
	req->op.offset2 = in->off_out;
	req->op.size = in->len < MAX_COPY_BYTES ? in->len : MAX_COPY_BYTES;
	req->op.flags = kill_flag(req);
	request_submit(req, FS_COPY_RANGE, done_copied);
}

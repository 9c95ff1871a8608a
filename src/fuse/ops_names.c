/*
 * ops_names.c - names, directories, references.
 */
#include <errno.h>
#include <string.h>

#include "fuse/session_internal.h"
#include "fuse/ops.h"
#include "fuse/scan_file.h"

/* ---- References ---- */

static void done_forget(struct fs_op *op)
{
	request_drop(request_of(op));
}

static void submit_forget(struct request *req, uint64_t ino, uint64_t n)
{
	req->op.ino = ino;
	req->op.size = n;
	request_submit(req, FS_FORGET, done_forget);
}

/* Drops references that were in a reply which the kernel did not take. */
static void forget(struct session *session, uint64_t ino, uint64_t n)
{
	struct request *req = request_new(session);

	if (req)
		submit_forget(req, ino, n);
}

void ops_forget(struct request *req)
{
	const struct fuse_forget_in *in = req->fixed;

	submit_forget(req, req->op.ino, in->nlookup);
}

void ops_batch_forget(struct request *req)
{
	const struct fuse_batch_forget_in *in = req->fixed;
	size_t n = req->data_bytes / sizeof(struct fuse_forget_one);
	size_t i;

	for (i = 0; i < n && i < in->count; i++) {
		struct fuse_forget_one one;

		memcpy(&one, req->data + i * sizeof(one), sizeof(one));
		forget(req->session, one.nodeid, one.nlookup);
	}
	request_drop(req);
}

/* ---- Operations that return an entry ---- */

static void done_entry(struct fs_op *op)
{
	struct request *req = request_of(op);
	struct session *session = req->session;
	struct fuse_entry_out out;
	uint64_t ino = op->attr.ino;

	if (op->rc) {
		request_reply(req, op->rc, NULL, 0);
		return;
	}
	ops_fill_entry(session, &op->attr, &out);
	ops_forget_asking(session, ino);
	if (!request_reply(req, 0, &out, sizeof(out)))
		forget(session, ino, 1);
}

static void done_lookup(struct fs_op *op)
{
	struct fuse_entry_out none = { .entry_valid = OPS_VALID_SECONDS };
	struct request *req = request_of(op);

	if (op->rc == -ENOENT) {
		request_reply(req, 0, &none, sizeof(none));
	} else if (!op->rc && !op->attr.nlink) {
		/* "." of a deleted file, which a handle of name_to_handle_at(2)
		 * still names. */
		forget(req->session, op->attr.ino, 1);
		request_reply(req, -ESTALE, NULL, 0);
	} else {
		done_entry(op);
	}
}

void ops_lookup(struct request *req)
{
	if (scan_file_lookup(req))
		return;
	req->op.name = req->name[0];
	request_submit(req, FS_LOOKUP, done_lookup);
}

void ops_mknod(struct request *req)
{
	const struct fuse_mknod_in *in = req->fixed;

	req->op.name = req->name[0];
	req->op.mode = in->mode;
	req->op.umask = in->umask;
	req->op.rdev = in->rdev;
	request_submit(req, FS_MKNOD, done_entry);
}

void ops_mkdir(struct request *req)
{
	const struct fuse_mkdir_in *in = req->fixed;

	req->op.name = req->name[0];
	req->op.mode = S_IFDIR | (in->mode & ~(uint32_t)S_IFMT);
	req->op.umask = in->umask;
	request_submit(req, FS_MKDIR, done_entry);
}

void ops_symlink(struct request *req)
{
	req->op.name = req->name[0];
	req->op.name2 = req->name[1];
	request_submit(req, FS_SYMLINK, done_entry);
}

void ops_link(struct request *req)
{
	const struct fuse_link_in *in = req->fixed;

	req->op.name = req->name[0];
	req->op.ino2 = in->oldnodeid;
	request_submit(req, FS_LINK, done_entry);
}

/* Created and opened in one request. */
static void done_created(struct fs_op *op)
{
	struct request *req = request_of(op);
	struct session *session = req->session;
	uint64_t ino = op->attr.ino;
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out = { .open.open_flags = ops_open_flags(session) };
	uint32_t flags;

	if (op->rc) {
		request_reply(req, op->rc, NULL, 0);
		return;
	}
	out.open.fh = ops_new_handle(session, op->flags);
	ops_note_writer(session, ino, op->flags, 1);
	ops_fill_entry(session, &op->attr, &out.entry);
	flags = op->flags;
	if (!request_reply(req, 0, &out, sizeof(out))) {
		ops_note_writer(session, ino, flags, -1);
		ops_drop_handle(session, ino);
		forget(session, ino, 1);
	}
}

static void submit_create(struct request *req, enum fs_op_type type)
{
	const struct fuse_create_in *in = req->fixed;

	req->op.name = req->name[0];
	req->op.mode = S_IFREG | (in->mode & ~(uint32_t)S_IFMT);
	req->op.umask = in->umask;
	req->op.opens = true;
	req->op.flags = in->flags;
	request_submit(req, type, done_created);
}

/* The kernel sends this only where it knows that there is no such name. */
void ops_create(struct request *req)
{
	submit_create(req, FS_MKNOD);
}

void ops_tmpfile(struct request *req)
{
	submit_create(req, FS_TMPFILE);
}

/* ---- Operations that return nothing ---- */

void ops_unlink(struct request *req)
{
	req->op.name = req->name[0];
	request_submit(req, FS_UNLINK, ops_done_status);
}

void ops_rmdir(struct request *req)
{
	req->op.name = req->name[0];
	request_submit(req, FS_RMDIR, ops_done_status);
}

static void submit_rename(struct request *req, uint64_t new_dir,
			  uint32_t flags)
{
	req->op.name = req->name[0];
	req->op.ino2 = new_dir;
	req->op.name2 = req->name[1];
	req->op.flags = flags;
	request_submit(req, FS_RENAME, ops_done_status);
}

void ops_rename(struct request *req)
{
	const struct fuse_rename_in *in = req->fixed;

	submit_rename(req, in->newdir, 0);
}

void ops_rename2(struct request *req)
{
	const struct fuse_rename2_in *in = req->fixed;

	/* The kernel's flags are FS_RENAME_*. */
	submit_rename(req, in->newdir, in->flags);
}

static void done_readlink(struct fs_op *op)
{
	request_reply(request_of(op), op->rc, op->buffer, op->result);
}

void ops_readlink(struct request *req)
{
	req->op.buffer = req->out;
	req->op.size = sizeof(req->out);
	request_submit(req, FS_READLINK, done_readlink);
}

/* ---- Directories ---- */

/*
 * An open directory has no state here.  But with OPENDIR declined the kernel
 * would cache listings (FOPEN_CACHE_DIR), and that cache is wrong (Linux 6.18,
 * fuse_readdir_cached): a listing that has begun before a name was removed
 * fills the cache with it, and another one that begins behind the removal goes
 * on from there.
 */
void ops_opendir(struct request *req)
{
	struct fuse_open_out out = { 0 };

	request_reply(req, 0, &out, sizeof(out));
}

void ops_releasedir(struct request *req)
{
	request_reply(req, 0, NULL, 0);
}

/* Appends the entry itself at `to`, padded; returns what it takes. */
static void put_dirent(uint8_t *to, const char *name, size_t bytes,
		       uint64_t ino, unsigned type, uint64_t next)
{
	struct fuse_dirent head = {
		.ino = ino,
		.off = next,
		.namelen = (uint32_t)bytes,
		.type = type,
	};
	size_t end = FUSE_NAME_OFFSET + bytes;

	memcpy(to, &head, FUSE_NAME_OFFSET);
	memcpy(to + FUSE_NAME_OFFSET, name, bytes);
	memset(to + end, 0, FUSE_DIRENT_ALIGN(end) - end);
}

static bool fill_plain(void *arg, const char *name, size_t bytes, uint64_t ino,
		       unsigned type, uint64_t next,
		       const struct fs_attr *attr)
{
	struct request *req = arg;
	size_t n = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + bytes);

	(void)attr;
	if (n > req->room - req->filled)
		return false;
	put_dirent((uint8_t *)req->op.buffer + req->filled, name, bytes, ino,
		   type, next);
	req->filled += n;
	return true;
}

/* "." and ".." come without attributes: node 0 tells the kernel so. */
static bool fill_plus(void *arg, const char *name, size_t bytes, uint64_t ino,
		      unsigned type, uint64_t next,
		      const struct fs_attr *attr)
{
	struct request *req = arg;
	uint8_t *to = (uint8_t *)req->op.buffer + req->filled;
	struct fuse_entry_out entry = { 0 };
	size_t n = sizeof(entry) + FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + bytes);

	if (n > req->room - req->filled)
		return false;
	if (attr) {
		ops_fill_entry(req->session, attr, &entry);
		ops_forget_asking(req->session, ino);
	}
	memcpy(to, &entry, sizeof(entry));
	put_dirent(to + sizeof(entry), name, bytes, ino, type, next);
	req->filled += n;
	return true;
}

static void done_readdir(struct fs_op *op)
{
	struct request *req = request_of(op);

	/* An error behind entries is met again by the next request. */
	request_reply(req, req->filled ? 0 : op->rc, op->buffer, req->filled);
}

static void submit_readdir(struct request *req, fs_dir_fill fill, bool plus)
{
	const struct fuse_read_in *in = req->fixed;

	req->room = in->size < REQUEST_MAX_WRITE ? in->size :
						   REQUEST_MAX_WRITE;
	req->op.buffer = request_room(req, req->room);
	if (!req->op.buffer) {
		request_reply(req, -ENOMEM, NULL, 0);
		return;
	}
	req->op.offset = in->offset;
	req->op.flags = in->flags;
	req->op.fill = fill;
	req->op.fill_arg = req;
	req->op.plus = plus;
	request_submit(req, FS_READDIR, done_readdir);
}

void ops_readdir(struct request *req)
{
	submit_readdir(req, fill_plain, false);
}

void ops_readdirplus(struct request *req)
{
	submit_readdir(req, fill_plus, true);
}

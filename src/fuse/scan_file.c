/*
 * scan_file.c - opens of the scan file, their reads and ioctls.
 *
 * A read waits for records; after WAIT_NS it gets the scan's status instead, so
 * that a program can show how far the scan is, and can be interrupted.
 */
#include "fuse/scan_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/units.h"
#include "fuse/ops.h"
#include "fuse/session_internal.h"

/* A read waits for records this long: half a second. */
#define WAIT_NS (500 * NS_PER_MS)

struct scan_open {
	uint64_t handle;		/* 0: free */
	uint64_t key;			/* what a program must know to add */
	struct file_scan *scan;		/* NULL: it has not begun */
	struct request *reader;		/* a READ that waits; NULL: none */
	uint64_t reader_ns;		/* when it gets the scan's status */
};

struct scan_files {
	struct session *session;
	uint64_t handles;
	struct scan_open open[FILE_SCANS_MOST];
};

int scan_files_new(struct session *session, struct scan_files **out)
{
	struct scan_files *files = calloc(1, sizeof(*files));

	if (!files)
		return -ENOMEM;
	files->session = session;
	*out = files;
	return 0;
}

void scan_files_free(struct scan_files *files)
{
	free(files);
}

/* NULL: no such handle. */
static struct scan_open *open_find(struct scan_files *files, uint64_t handle)
{
	struct scan_open *open = files->open;

	for (; open < files->open + FILE_SCANS_MOST; open++)
		if (open->handle == handle)
			return open;
	return NULL;
}

/* ---- names and attributes ---- */

static void fill_attr(struct fuse_attr *attr)
{
	*attr = (struct fuse_attr){
		.ino = SCAN_FILE_INO,
		.mode = S_IFREG | 0666,
		.nlink = 1,
		.blksize = SCAN_READ_LEAST,
	};
}

bool scan_file_lookup(struct request *req)
{
	struct fuse_entry_out out = {
		.nodeid = SCAN_FILE_INO,
		.generation = 1,
		.entry_valid = OPS_VALID_SECONDS,
		.attr_valid = OPS_VALID_SECONDS,
	};

	if (req->op.ino != FUSE_ROOT_ID || !req->session->scans ||
	    strcmp(req->name[0], SCAN_FILE_NAME))
		return false;
	fill_attr(&out.attr);
	request_reply(req, 0, &out, sizeof(out));
	return true;
}

static void reply_attr(struct request *req)
{
	struct fuse_attr_out out = { .attr_valid = OPS_VALID_SECONDS };

	fill_attr(&out.attr);
	request_reply(req, 0, &out, sizeof(out));
}

/* ---- opening and closing ---- */

static void scan_open(struct request *req)
{
	struct scan_files *files = req->session->scan_files;
	struct scan_open *open = open_find(files, 0);
	struct fuse_open_out out = {
		.open_flags = FOPEN_DIRECT_IO | FOPEN_NONSEEKABLE,
	};

	if (!open) {
		request_reply(req, -EBUSY, NULL, 0);
		return;
	}
	*open = (struct scan_open){ .handle = ++files->handles };
	out.fh = open->handle;
	if (!request_reply(req, 0, &out, sizeof(out)))
		open->handle = 0;
}

static void scan_release(struct request *req)
{
	const struct fuse_release_in *in = req->fixed;
	struct scan_open *open = open_find(req->session->scan_files, in->fh);

	if (in->fh && open) {
		if (open->scan)
			file_scan_end(open->scan);
		if (open->reader)
			request_reply(open->reader, -EINTR, NULL, 0);
		*open = (struct scan_open){ .handle = 0 };
	}
	request_reply(req, 0, NULL, 0);
}

/* ---- reading ---- */

/* Answers the READ that waits with records or, if it is `due` and there are
 * none, with the status.  False: it goes on waiting. */
static bool read_answer(struct scan_open *open, bool due)
{
	struct request *req = open->reader;
	const struct fuse_read_in *in = req->fixed;
	struct scan_record head = {
		.type = SCAN_STATUS, .bytes = sizeof(struct scan_status),
	};
	struct scan_status status;
	uint8_t *to;
	size_t n;

	if (!due && !file_scan_readable(open->scan))
		return false;
	to = request_room(req, in->size);
	if (!to)
		return false;
	open->reader = NULL;
	n = file_scan_read(open->scan, to, in->size);
	if (!n) {
		file_scan_get_status(open->scan, &status);
		memcpy(to, &head, sizeof(head));
		memcpy(to + sizeof(head), &status, sizeof(status));
		n = sizeof(head) + sizeof(status);
	}
	request_reply(req, 0, to, n);
	return true;
}

static void scan_read(struct request *req)
{
	const struct fuse_read_in *in = req->fixed;
	struct scan_open *open = open_find(req->session->scan_files, in->fh);
	uint64_t now_ns = env_now_ns(req->session->options.env);

	if (!in->fh || !open || !open->scan || in->size < SCAN_READ_LEAST ||
	    in->size > REQUEST_MAX_WRITE) {
		request_reply(req, -EINVAL, NULL, 0);
	} else if (open->reader) {
		request_reply(req, -EBUSY, NULL, 0);
	} else {
		open->reader = req;
		open->reader_ns = now_ns + WAIT_NS;
		read_answer(open, false);
	}
}

uint64_t scan_files_run(struct scan_files *files)
{
	uint64_t now_ns = env_now_ns(files->session->options.env);
	uint64_t next_ns = UINT64_MAX;
	struct scan_open *open = files->open;

	for (; open < files->open + FILE_SCANS_MOST; open++) {
		if (!open->reader ||
		    read_answer(open, now_ns >= open->reader_ns))
			continue;
		/* If there was no buffer for the answer it is tried later. */
		if (open->reader_ns <= now_ns)
			open->reader_ns = now_ns + WAIT_NS;
		if (open->reader_ns < next_ns)
			next_ns = open->reader_ns;
	}
	return next_ns;
}

void scan_files_forget(struct scan_files *files)
{
	struct scan_open *open = files->open;

	for (; open < files->open + FILE_SCANS_MOST; open++) {
		if (open->reader)
			request_reply(open->reader, -EIO, NULL, 0);
		open->reader = NULL;
		open->scan = NULL;
	}
}

void scan_files_stop(struct scan_files *files)
{
	struct scan_open *open = files->open;

	for (; open < files->open + FILE_SCANS_MOST; open++) {
		if (open->reader)
			request_reply(open->reader, -EINTR, NULL, 0);
		*open = (struct scan_open){ .handle = 0 };
	}
}

/* ---- ioctls ---- */

static void scan_begin(struct request *req, struct scan_open *open)
{
	struct scan_begin begin;
	struct file_scan_options options;
	int rc;

	memcpy(&begin, req->data, sizeof(begin));
	options = (struct file_scan_options){
		.total_bytes = begin.total_bytes,
		.sample_bytes = begin.sample_bytes,
		.last_bytes = begin.last_bytes,
		.file_order = begin.flags & SCAN_FILE_ORDER,
		.free_space = begin.flags & SCAN_FREE_SPACE,
		.first = begin.first,
	};
	if (open->scan || !req->session->scans)
		rc = -EBUSY;
	else if (begin.flags > SCAN_FREE_SPACE)
		rc = -EINVAL;
	else if (options.free_space && !request_by_admin(req))
		rc = -EPERM;
	else if (getrandom(&open->key, sizeof(open->key), 0) !=
		 sizeof(open->key))
		rc = -EIO;
	else
		rc = file_scan_begin(req->session->scans, &options,
				     &open->scan);
	if (rc) {
		request_reply(req, rc, NULL, 0);
		return;
	}
	begin.id = (uint32_t)file_scan_id(open->scan);
	begin.key = open->key;
	ops_reply_ioctl(req, &begin, sizeof(begin));
}

static void scan_act(struct request *req, struct scan_open *open)
{
	struct scan_act act;

	memcpy(&act, req->data, sizeof(act));
	switch (act.action) {
	case SCAN_SEAL:
		file_scan_seal(open->scan);
		break;
	case SCAN_PAUSE:
	case SCAN_RESUME:
		file_scan_pause(open->scan, act.action == SCAN_PAUSE);
		break;
	case SCAN_PROMOTE:
		file_scan_promote(open->scan, act.value);
		break;
	default:
		request_reply(req, -EINVAL, NULL, 0);
		return;
	}
	ops_reply_ioctl(req, NULL, 0);
}

static void scan_ioctl(struct request *req)
{
	const struct fuse_ioctl_in *in = req->fixed;
	struct scan_open *open = open_find(req->session->scan_files, in->fh);
	struct scan_status status;

	if (!in->fh || !open) {
		request_reply(req, -EBADF, NULL, 0);
	} else if (in->cmd == SCAN_IOC_BEGIN &&
		   req->data_bytes >= sizeof(struct scan_begin)) {
		scan_begin(req, open);
	} else if (!open->scan) {
		request_reply(req, -EINVAL, NULL, 0);
	} else if (in->cmd == SCAN_IOC_ACT &&
		   req->data_bytes >= sizeof(struct scan_act)) {
		scan_act(req, open);
	} else if (in->cmd == SCAN_IOC_STATUS) {
		file_scan_get_status(open->scan, &status);
		ops_reply_ioctl(req, &status, sizeof(status));
	} else {
		request_reply(req, -ENOTTY, NULL, 0);
	}
}

void scan_file_add(struct request *req)
{
	const struct fuse_ioctl_in *in = req->fixed;
	struct scan_files *files = req->session->scan_files;
	struct scan_open *open = files->open;
	struct scan_add add;
	int rc = -ENOENT;

	memcpy(&add, req->data, sizeof(add));
	for (; open < files->open + FILE_SCANS_MOST; open++)
		if (open->scan && open->key == add.key &&
		    file_scan_id(open->scan) == add.id) {
			rc = in->fh & SCAN_FILE_READABLE ?
				     file_scan_add(open->scan, req->op.ino) :
				     -EACCES;
			break;
		}
	if (rc)
		request_reply(req, rc, NULL, 0);
	else
		ops_reply_ioctl(req, NULL, 0);
}

/* ---- requests ---- */

void scan_file_dispatch(struct request *req)
{
	switch (req->opcode) {
	case FUSE_OPEN:
		scan_open(req);
		break;
	case FUSE_READ:
		scan_read(req);
		break;
	case FUSE_RELEASE:
		scan_release(req);
		break;
	case FUSE_IOCTL:
		scan_ioctl(req);
		break;
	case FUSE_GETATTR:
		reply_attr(req);
		break;
	case FUSE_GETXATTR:
		/* The kernel asks for an access list when somebody else than
		 * the owner opens it, and takes other errors for its own. */
		request_reply(req, -ENODATA, NULL, 0);
		break;
	case FUSE_FORGET:
		request_drop(req);
		break;
	default:
		request_reply(req, -EOPNOTSUPP, NULL, 0);
	}
}

/*
 * view.c - trax.*: rows of name, kind and maker.
 *
 * For a file: flush its data so that it has places (a read-only file system
 * refuses, which is no harm), ask how many extents there are, then for them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/internal.h"
#include "fuse/ops.h"
#include "fuse/pieces.h"
#include "fuse/view.h"

#define PREFIX "trax."
#define MAX_VALUE_BYTES 65536u	/* of an attribute, by the kernel */
#define SPARE_EXTENTS 64u	/* that may be added between two questions */

typedef char *(*print_pieces)(const struct fs_extent *extents, size_t n,
			      const struct geom *geom, uint64_t from,
			      size_t room);

static const struct view_row {
	const char *name;
	char *(*root)(struct fs *fs);	/* of the whole file system */
	print_pieces file;		/* of a file */
	enum fs_op_type text;		/* an operation that gives a text; 0:
					   none */
	bool any;			/* of files too */
	bool scrub;			/* what the scrub says */
} rows[] = {
	{ "extents", NULL, pieces_json, 0, false, false },
	{ "tracks", NULL, pieces_text, 0, false, false },
	{ "stats", fs_stats_json, NULL, 0, false, false },
	{ "model", fs_model_json, NULL, 0, false, false },
	{ "errors", NULL, NULL, FS_ERRORS, false, false },
	{ "replicas", NULL, NULL, FS_COPIES, true, false },
	{ "heat", NULL, NULL, FS_HEAT, false, false },
	{ "scrub", NULL, NULL, 0, false, true },
};

bool view_is_name(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

/* Replies with a text; takes it over. */
static void reply_text(struct request *req, char *text)
{
	size_t bytes = text ? strlen(text) : 0;
	struct fuse_getxattr_out size = { .size = (uint32_t)bytes };

	if (!text)
		request_reply(req, -ENOMEM, NULL, 0);
	else if (bytes > MAX_VALUE_BYTES)
		request_reply(req, -E2BIG, NULL, 0);
	else if (!req->room)
		request_reply(req, 0, &size, sizeof(size));
	else if (bytes > req->room)
		request_reply(req, -ERANGE, NULL, 0);
	else
		request_reply(req, 0, text, bytes);
	free(text);
}

static void reply_pieces(struct request *req)
{
	const struct view_row *row = req->fixed;
	size_t n = req->op.result < req->op.size ? req->op.result :
						   req->op.size;

	reply_text(req, row->file(req->extra, n, fs_geom(req->session->fs),
				  req->op.offset2, MAX_VALUE_BYTES));
}

static void done_text(struct fs_op *op)
{
	struct request *req = request_of(op);

	if (op->rc)
		request_reply(req, op->rc, NULL, 0);
	else
		reply_text(req, op->buffer);
}

static void done_extents(struct fs_op *op)
{
	struct request *req = request_of(op);

	if (op->rc)
		request_reply(req, op->rc, NULL, 0);
	else
		reply_pieces(req);
}

static void done_count(struct fs_op *op)
{
	struct request *req = request_of(op);

	if (op->rc) {
		request_reply(req, op->rc, NULL, 0);
		return;
	}
	op->size = op->result + SPARE_EXTENTS;
	req->extra = calloc(op->size, sizeof(struct fs_extent));
	if (!req->extra) {
		request_reply(req, -ENOMEM, NULL, 0);
		return;
	}
	op->buffer = req->extra;
	request_submit(req, FS_EXTENTS, done_extents);
}

static void done_flush(struct fs_op *op)
{
	op->size = 0;
	op->buffer = NULL;
	request_submit(request_of(op), FS_EXTENTS, done_count);
}

static void done_attr(struct fs_op *op)
{
	struct request *req = request_of(op);

	if (op->rc || !S_ISREG(op->attr.mode)) {
		request_reply(req, op->rc ? op->rc : -ENODATA, NULL, 0);
		return;
	}
	op->flags = 1;
	request_submit(req, FS_FSYNC, done_flush);
}

/* "NAME" or "NAME:OFFSET". */
static bool row_matches(const struct view_row *row, const char *name,
			uint64_t *from)
{
	size_t n = strlen(row->name);
	char *end;

	*from = 0;
	if (strncmp(name, row->name, n) != 0)
		return false;
	if (!name[n])
		return true;
	if ((!row->file && !row->text) || name[n] != ':' || !name[n + 1])
		return false;
	*from = strtoull(name + n + 1, &end, 10);
	return !*end;
}

void view_get(struct request *req, const char *name)
{
	uint64_t from = 0;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (row_matches(&rows[i], name + strlen(PREFIX), &from))
			break;
	if (i == sizeof(rows) / sizeof(rows[0]) ||
	    ((rows[i].root || rows[i].scrub ||
	      (rows[i].text && !rows[i].any)) &&
	     req->op.ino != FUSE_ROOT_ID)) {
		request_reply(req, -ENODATA, NULL, 0);
	} else if (rows[i].text) {
		req->op.offset2 = from;
		request_submit(req, rows[i].text, done_text);
	} else if (rows[i].scrub) {
		reply_text(req, req->session->options.scrub ?
			   scrub_json(req->session->options.scrub) :
			   strdup("null"));
	} else if (rows[i].root == fs_model_json &&
		   req->session->options.refine) {
		reply_text(req, refine_model_json(
					req->session->options.refine));
	} else if (rows[i].root) {
		reply_text(req, rows[i].root(req->session->fs));
	} else {
		req->fixed = &rows[i];
		req->op.offset2 = from;
		request_submit(req, FS_GETATTR, done_attr);
	}
}

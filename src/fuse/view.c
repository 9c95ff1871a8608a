/*
 * view.c - trax.*: rows of name, kind and maker.
 *
 * Anybody who may read a file may ask, as often and from as many threads as
 * they like.  So values are made one at a time, in one text and one page of
 * extents that belong to the session, and in steps: a turn of the session's
 * loop makes one step at most, and after a step during which others asked for
 * something else it rests for REST times what the step took.  Requests wait in
 * a queue for that; users take turns.
 *
 * For a file: flush its data so that it has places (a read-only file system
 * refuses, which is no harm; a request for a later page finds it flushed), then
 * ask for its extents, page by page, until the value is full.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/session_internal.h"
#include "fuse/ops.h"
#include "fuse/extent_view.h"
#include "fuse/view.h"

#define PREFIX "trax."
#define MAX_VALUE_BYTES 65536u	/* the kernel's limit for an attribute */
/* Extents of a page: looking them up and printing them is to cost less than
 * 0.1 ms. */
#define PAGE_EXTENTS 64u

/* So at most a fifth of what others ask for meets a step: the median of their
 * waiting times hardly changes. */
#define REST 4u

struct view {
	struct session *session;
	uint64_t asked;			/* requests for values so far */
	uint64_t others;		/* number of other requests at the last
					 * step */
	uint64_t rest_until_ns;
	struct list waiting;		/* requests */
	struct request *active;		/* whose value is being made */
	bool busy;			/* an operation is under way for it */
	bool stopped;			/* the session ends */
	uint32_t uid;			/* the user for whom the last value was
					 * made */
	struct extent_view extents;
	struct fs_extent page[PAGE_EXTENTS];
	char text[MAX_VALUE_BYTES + 1];
};

static char *text_stats(struct request *req)
{
	return fs_stats_json(req->session->fs);
}

static char *text_platter(struct request *req)
{
	return fs_platter_json(req->session->fs);
}

/* The serial number identifies the machine: it is not for everybody. */
static char *without_serial(char *text)
{
	json_t *json = text ? json_loads(text, 0, NULL) : NULL;

	free(text);
	text = NULL;
	if (json) {
		json_object_del(json_object_get(json, "profile"), "serial");
		text = json_dumps(json, JSON_INDENT(2));
	}
	json_decref(json);
	return text;
}

static char *text_model(struct request *req)
{
	struct session *session = req->session;
	char *text = session->refine ?
			     refine_model_json(session->refine) :
			     fs_model_json(session->fs);

	return request_by_admin(req) ? text : without_serial(text);
}

static char *text_scrub(struct request *req)
{
	struct scrub *scrub = req->session->scrub;

	return scrub ? scrub_json(scrub) : strdup("null");
}

static char *text_moves(struct request *req)
{
	struct moves *moves = req->session->moves;

	return moves ? moves_json(moves) : strdup("null");
}

static char *text_streams(struct request *req)
{
	return fs_streams_json(req->session->fs);
}

static char *text_tasks(struct request *req)
{
	const struct tasks tasks = session_tasks(req->session);

	return tasks_json(&tasks);
}

static const struct view_row {
	const char *name;
	/* A text that is made at once, of the whole file system. */
	char *(*root)(struct request *req);
	/* An operation that gives a text; 0: none. */
	enum fs_op_type text;
	bool extents;			/* of a file, in this style: */
	enum extent_view_style style;
	bool any;			/* `text` is of files too */
	bool admin;			/* shows what not everybody may know:
					   names in closed directories, who
					   reads where */
} rows[] = {
	{ .name = "extents", .extents = true, .style = EXTENT_VIEW_JSON },
	{ .name = "tracks", .extents = true, .style = EXTENT_VIEW_TEXT },
	{ .name = "stats", .root = text_stats },
	{ .name = "model", .root = text_model },
	{ .name = "platter", .root = text_platter },
	{ .name = "errors", .text = FS_ERRORS, .admin = true },
	{ .name = "replicas", .text = FS_COPIES, .any = true },
	{ .name = "heat", .text = FS_HEAT, .admin = true },
	{ .name = "scrub", .root = text_scrub },
	{ .name = "moves", .root = text_moves },
	{ .name = "tasks", .root = text_tasks },
	{ .name = "streams", .root = text_streams, .admin = true },
};

bool view_is_name(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

int view_new(struct session *session, struct view **out)
{
	struct view *view = calloc(1, sizeof(*view));

	if (!view)
		return -ENOMEM;
	view->session = session;
	list_init(&view->waiting);
	*out = view;
	return 0;
}

void view_free(struct view *view)
{
	free(view);
}

/* ---- The end of a request ---- */

static void view_over(struct view *view)
{
	view->active = NULL;
	view->busy = false;
}

static void reply_value(struct request *req, const char *text, size_t bytes)
{
	struct fuse_getxattr_out size = { .size = (uint32_t)bytes };

	view_over(req->session->view);
	if (bytes > MAX_VALUE_BYTES)
		request_reply(req, -E2BIG, NULL, 0);
	else if (!req->room)
		request_reply(req, 0, &size, sizeof(size));
	else if (bytes > req->room)
		request_reply(req, -ERANGE, NULL, 0);
	else
		request_reply(req, 0, text, bytes);
}

static void reply_failed(struct request *req, int rc)
{
	view_over(req->session->view);
	request_reply(req, rc, NULL, 0);
}

/* Takes the text over. */
static void reply_text(struct request *req, char *text)
{
	if (text)
		reply_value(req, text, strlen(text));
	else
		reply_failed(req, -ENOMEM);
	free(text);
}

static void done_text(struct fs_op *op)
{
	struct request *req = request_of(op);

	if (op->rc)
		reply_failed(req, op->rc);
	else
		reply_text(req, op->buffer);
}

/* ---- Extents of a file ---- */

static void done_page(struct fs_op *op)
{
	request_of(op)->session->view->busy = false;
}

static void fetch_page(struct view *view, struct request *req)
{
	view->busy = true;
	req->op.offset = view->extents.from;
	req->op.buffer = view->page;
	req->op.size = PAGE_EXTENTS;
	request_submit(req, FS_EXTENTS, done_page);
}

static void print_page(struct view *view, struct request *req)
{
	uint64_t n = req->op.result;

	if (req->op.rc)
		reply_failed(req, req->op.rc);
	else if (view->stopped)
		reply_failed(req, -EIO);
	else if (n && extent_view_add(&view->extents, view->page, n,
				 n < PAGE_EXTENTS))
		fetch_page(view, req);
	else
		reply_value(req, view->text, extent_view_end(&view->extents));
}

/* ---- The queue ---- */

/* The longest waiting request of another user than the last one's, if any. */
static struct request *next_request(struct view *view)
{
	struct request *req;
	struct list *pos;

	list_for_each(pos, &view->waiting) {
		req = list_entry(pos, struct request, link);
		if (req->op.uid != view->uid)
			return req;
	}
	return list_first(&view->waiting, struct request, link);
}

static void start_request(struct view *view, struct request *req)
{
	const struct view_row *row = req->fixed;

	list_del(&req->link);
	view->active = req;
	view->uid = req->op.uid;
	if (row->extents) {
		extent_view_begin(&view->extents, fs_geom(req->session->fs),
			     row->style, req->op.offset2, view->text,
			     MAX_VALUE_BYTES);
		fetch_page(view, req);
	} else if (row->text) {
		view->busy = true;
		request_submit(req, row->text, done_text);
	} else {
		reply_text(req, row->root(req));
	}
}

uint64_t view_next_ns(const struct view *view)
{
	if (view->busy || (!view->active && list_empty(&view->waiting)))
		return UINT64_MAX;
	return view->rest_until_ns;
}

static void view_step(struct view *view)
{
	struct request *req = view->active;

	if (req)
		print_page(view, req);
	else
		start_request(view, next_request(view));
}

void view_run(struct view *view)
{
	struct session *session = view->session;
	uint64_t next_ns = view_next_ns(view), begun_ns, over_ns, others;

	if (next_ns == UINT64_MAX)
		return;
	begun_ns = env_now_ns(session->options.env);
	if (begun_ns < next_ns && !view->stopped)
		return;
	view_step(view);
	others = session->received - view->asked;
	view->rest_until_ns = 0;
	if (others != view->others) {
		over_ns = env_now_ns(session->options.env);
		view->rest_until_ns = over_ns + REST * (over_ns - begun_ns);
	}
	view->others = others;
}

void view_stop(struct view *view)
{
	struct request *req;

	view->stopped = true;
	while ((req = list_first(&view->waiting, struct request, link))) {
		list_del(&req->link);
		request_reply(req, -EIO, NULL, 0);
	}
}

/* ---- The beginning of a request ---- */

static void enqueue(struct request *req)
{
	struct view *view = req->session->view;

	if (view->stopped)
		request_reply(req, -EIO, NULL, 0);
	else
		list_add(&view->waiting, &req->link);
}

static void done_flush(struct fs_op *op)
{
	enqueue(request_of(op));
}

static void done_attr(struct fs_op *op)
{
	struct request *req = request_of(op);

	if (op->rc || !S_ISREG(op->attr.mode)) {
		request_reply(req, op->rc ? op->rc : -ENODATA, NULL, 0);
	} else if (op->offset2) {
		enqueue(req);
	} else {
		op->flags = 1;
		request_submit(req, FS_FSYNC, done_flush);
	}
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
	if (row->root || name[n] != ':' || !name[n + 1])
		return false;
	*from = strtoull(name + n + 1, &end, 10);
	return !*end;
}

void view_get(struct request *req, const char *name)
{
	const struct view_row *row = rows;
	const struct view_row *end = rows + sizeof(rows) / sizeof(rows[0]);
	bool is_root = req->op.ino == FUSE_ROOT_ID;
	uint64_t from = 0;

	req->session->view->asked++;
	while (row < end && !row_matches(row, name + strlen(PREFIX), &from))
		row++;
	if (row == end || (!is_root && !row->extents && !row->any)) {
		request_reply(req, -ENODATA, NULL, 0);
		return;
	}
	if (row->admin && !request_by_admin(req)) {
		request_reply(req, -EPERM, NULL, 0);
		return;
	}
	req->fixed = row;
	req->op.offset2 = from;
	if (row->extents)
		request_submit(req, FS_GETATTR, done_attr);
	else
		enqueue(req);
}

/*
 * ops_ioctl.c - ioctls: file flags, those of a file system as a whole, and the
 * control of control.h.
 *
 * The kernel copies as many bytes in and out as the ioctl's number says, and
 * checks whether a user may change flags (owner, CAP_LINUX_IMMUTABLE).
 */
#include <errno.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>

#include "format/format.h"
#include "fuse/control.h"
#include "fuse/session_internal.h"
#include "fuse/ops.h"
#include "fuse/scan_file.h"
#include "fuse/sync.h"
#include "fuse/trax_stream.h"

/* One flag as the kernel's two ioctls and the inode item have it. */
static const struct {
	uint32_t fs, flag, xflag;
} flag_map[] = {
	{ INODE_IMMUTABLE, FS_IMMUTABLE_FL, FS_XFLAG_IMMUTABLE },
	{ INODE_APPEND, FS_APPEND_FL, FS_XFLAG_APPEND },
	{ INODE_NOATIME, FS_NOATIME_FL, FS_XFLAG_NOATIME },
	{ INODE_NODUMP, FS_NODUMP_FL, FS_XFLAG_NODUMP },
};
#define FLAGS (sizeof(flag_map) / sizeof(flag_map[0]))

/* XFS_IOC_GOINGDOWN, as other file systems have it, too. */
#define IOC_SHUTDOWN _IOR('X', 125, uint32_t)

struct ioctl_row {
	uint32_t command;
	size_t in_bytes;		/* bytes that must come with the
					 * request */
	void (*handle)(struct request *req);
};

/* Replies with data in the size that the kernel asked for: for flags it takes
 * no other. */
void ops_reply_ioctl(struct request *req, const void *data, size_t bytes)
{
	const struct fuse_ioctl_in *in = req->fixed;
	struct fuse_ioctl_out head = { .result = 0 };
	size_t room = sizeof(req->out) - sizeof(head);
	size_t want = in->out_size < room ? in->out_size : room;

	memset(req->out, 0, sizeof(head) + want);
	memcpy(req->out, &head, sizeof(head));
	if (bytes)
		memcpy(req->out + sizeof(head), data,
		       bytes < want ? bytes : want);
	request_reply(req, 0, req->out, sizeof(head) + want);
}

static void ioctl_done(struct fs_op *op)
{
	if (op->rc)
		ops_done_status(op);
	else
		ops_reply_ioctl(request_of(op), NULL, 0);
}

static void done_getflags(struct fs_op *op)
{
	struct request *req = request_of(op);
	uint32_t flags = 0;
	size_t i;

	if (op->rc) {
		request_reply(req, op->rc, NULL, 0);
		return;
	}
	for (i = 0; i < FLAGS; i++)
		if (op->result & flag_map[i].fs)
			flags |= flag_map[i].flag;
	ops_reply_ioctl(req, &flags, sizeof(flags));
}

static void ioctl_getflags(struct request *req)
{
	request_submit(req, FS_GETFLAGS, done_getflags);
}

static void ioctl_setflags(struct request *req)
{
	uint32_t flags, known = 0;
	size_t i;

	memcpy(&flags, req->data, sizeof(flags));
	req->op.flags = 0;
	for (i = 0; i < FLAGS; i++) {
		known |= flag_map[i].flag;
		if (flags & flag_map[i].flag)
			req->op.flags |= flag_map[i].fs;
	}
	if (flags & ~known)
		request_reply(req, -EOPNOTSUPP, NULL, 0);
	else
		request_submit(req, FS_SETFLAGS, ioctl_done);
}

static void done_getxflags(struct fs_op *op)
{
	struct request *req = request_of(op);
	struct fsxattr x = { 0 };
	size_t i;

	if (op->rc) {
		request_reply(req, op->rc, NULL, 0);
		return;
	}
	for (i = 0; i < FLAGS; i++)
		if (op->result & flag_map[i].fs)
			x.fsx_xflags |= flag_map[i].xflag;
	ops_reply_ioctl(req, &x, sizeof(x));
}

static void ioctl_getxflags(struct request *req)
{
	request_submit(req, FS_GETFLAGS, done_getxflags);
}

static void ioctl_setxflags(struct request *req)
{
	uint32_t known = FS_XFLAG_HASATTR;
	struct fsxattr x;
	size_t i;

	memcpy(&x, req->data, sizeof(x));
	req->op.flags = 0;
	for (i = 0; i < FLAGS; i++) {
		known |= flag_map[i].xflag;
		if (x.fsx_xflags & flag_map[i].xflag)
			req->op.flags |= flag_map[i].fs;
	}
	if (x.fsx_xflags & ~known || x.fsx_extsize || x.fsx_projid ||
	    x.fsx_cowextsize)
		request_reply(req, -EOPNOTSUPP, NULL, 0);
	else
		request_submit(req, FS_SETFLAGS, ioctl_done);
}

/* Does root or the mounting user ask?  If not, the request is refused here. */
static bool ioctl_allowed(struct request *req)
{
	if (request_by_admin(req))
		return true;
	request_reply(req, -EPERM, NULL, 0);
	return false;
}

static void done_trim(struct fs_op *op)
{
	struct request *req = request_of(op);
	struct fstrim_range range;

	if (op->rc) {
		request_reply(req, op->rc, NULL, 0);
		return;
	}
	memcpy(&range, req->data, sizeof(range));
	range.len = op->result;
	ops_reply_ioctl(req, &range, sizeof(range));
}

static void ioctl_trim(struct request *req)
{
	struct fstrim_range range;

	memcpy(&range, req->data, sizeof(range));
	if (!ioctl_allowed(req))
		return;
	req->op.offset = range.start;
	req->op.size = range.len;
	req->op.offset2 = range.minlen;
	request_submit(req, FS_TRIM, done_trim);
}

static void ioctl_getlabel(struct request *req)
{
	char label[FSLABEL_MAX] = "";

	strcpy(label, fs_super(req->session->fs)->label);
	ops_reply_ioctl(req, label, sizeof(label));
}

static void ioctl_setlabel(struct request *req)
{
	const char *label = (const char *)req->data;

	if (!ioctl_allowed(req))
		return;
	if (!memchr(label, 0, FSLABEL_MAX)) {
		request_reply(req, -EINVAL, NULL, 0);
		return;
	}
	req->op.name = label;
	request_submit(req, FS_SET_LABEL, ioctl_done);
}

static void drop_pages(void *session, uint64_t ino)
{
	notify_pages(((struct session *)session)->notify, ino);
}

/* After a shutdown the kernel's dirty pages never reach the disk: they are
 * dropped before the answer, and reading them again gives an error. */
static void done_shutdown(struct fs_op *op)
{
	struct request *req = request_of(op);
	struct session *session = req->session;

	if (!op->rc) {
		fs_each_inode(session->fs, drop_pages, session);
		if (notify_write(session->notify, req, op->ino, 0, 0)) {
			session->noticed++;
			return;
		}
	}
	ioctl_done(op);
}

/* The kernel passes the command without its argument, which says what is to be
 * written before the shutdown: the log is written, and no data. */
static void ioctl_shutdown(struct request *req)
{
	if (ioctl_allowed(req))
		request_submit(req, FS_SHUTDOWN, done_shutdown);
}

/* ---- Control ---- */

static void done_control(struct fs_op *op)
{
	struct request *req = request_of(op);
	struct trax_control control = { .result = op->result };

	if (op->rc)
		request_reply(req, op->rc, NULL, 0);
	else
		ops_reply_ioctl(req, &control, sizeof(control));
}

static void done_sync(struct fs_op *op)
{
	op->result = request_of(op)->page_writes;
	done_control(op);
}

void ops_syncfs_control(struct request *req)
{
	request_submit(req, FS_SYNCFS, done_sync);
}

/* Copies the first bytes of the payload.  False: it has fewer, and the request
 * has been answered. */
static bool control_payload(struct request *req, void *to, size_t bytes)
{
	struct trax_control control;

	memcpy(&control, req->data, sizeof(control));
	if (control.payload_bytes < bytes ||
	    bytes > TRAX_CONTROL_PAYLOAD_BYTES) {
		request_reply(req, -EINVAL, NULL, 0);
		return false;
	}
	memcpy(to, control.payload, bytes);
	return true;
}

static void control_replicate(struct request *req)
{
	struct trax_copies copies;

	if (!control_payload(req, &copies, sizeof(copies)))
		return;
	if (!copies.n || copies.n > TRAX_COPIES_FILES) {
		request_reply(req, -EINVAL, NULL, 0);
		return;
	}
	/* Copied before the call returns. */
	req->op.data = copies.ino;
	req->op.size = copies.n;
	req->op.offset = copies.near;
	request_submit(req, FS_COPIES_MAKE, done_control);
}

static void control_drop_replicas(struct request *req)
{
	uint64_t ino;

	if (!control_payload(req, &ino, sizeof(ino)))
		return;
	req->op.ino = ino;
	request_submit(req, FS_COPIES_DROP, done_control);
}

static void control_set_replicas(struct request *req)
{
	uint64_t n;

	if (!control_payload(req, &n, sizeof(n)))
		return;
	req->op.size = n;
	request_submit(req, FS_COPIES_SET, done_control);
}

static void control_set_budget(struct request *req)
{
	struct trax_control control = { 0 };
	uint64_t ppm;

	if (!control_payload(req, &ppm, sizeof(ppm)))
		return;
	if (ppm > TRAX_BUDGET_MOST_PPM) {
		request_reply(req, -EINVAL, NULL, 0);
		return;
	}
	fs_set_budget(req->session->fs, (unsigned)ppm);
	ops_reply_ioctl(req, &control, sizeof(control));
}

static void control_set_uuid(struct request *req)
{
	const struct trax_control *control = (const void *)req->data;

	if (control->payload_bytes != TRAX_UUID_BYTES) {
		request_reply(req, -EINVAL, NULL, 0);
		return;
	}
	req->op.data = control->payload;
	request_submit(req, FS_SET_UUID, done_control);
}

static void control_scrub(struct request *req,
			  void (*act)(struct scrub *scrub))
{
	struct trax_control control = { 0 };

	if (!req->session->scrub) {
		request_reply(req, -EOPNOTSUPP, NULL, 0);
		return;
	}
	act(req->session->scrub);
	ops_reply_ioctl(req, &control, sizeof(control));
}

static void control_scrub_start(struct request *req)
{
	control_scrub(req, scrub_start);
}

static void control_scrub_pause(struct request *req)
{
	control_scrub(req, scrub_pause);
}

static void control_scrub_resume(struct request *req)
{
	control_scrub(req, scrub_resume);
}

static void control_errors_recheck(struct request *req)
{
	struct trax_control control = { 0 };
	int rc = req->session->scrub ? scrub_recheck(req->session->scrub) :
				       -EOPNOTSUPP;

	if (rc)
		request_reply(req, rc, NULL, 0);
	else
		ops_reply_ioctl(req, &control, sizeof(control));
}

static void control_errors_clear(struct request *req)
{
	uint64_t end;

	if (!control_payload(req, &end, sizeof(end)))
		return;
	req->op.offset2 = 0;
	req->op.size = end;
	request_submit(req, FS_ERRORS_CLEAR, done_control);
}

/* The payload as a text; NULL: it has no end. */
static char *control_text(struct trax_control *control)
{
	char *text = (char *)control->payload;

	return memchr(text, 0, sizeof(control->payload)) ? text : NULL;
}

/* Keeps a request that is answered once nothing else is outstanding
 * (session_run). */
static void control_alone(struct request *req)
{
	if (req->session->alone)
		request_reply(req, -EBUSY, NULL, 0);
	else
		req->session->alone = req;
}

static void control_remount(struct request *req)
{
	struct trax_control control;

	memcpy(&control, req->data, sizeof(control));
	if (!control_text(&control) || !req->session->options.remount)
		request_reply(req, -EINVAL, NULL, 0);
	else
		control_alone(req);
}

static void control_grow(struct request *req)
{
	if (!req->session->options.grow)
		request_reply(req, -EINVAL, NULL, 0);
	else
		control_alone(req);
}

static int grow_alone(const struct session_options *options,
		      struct trax_control *reply)
{
	struct trax_grown grown = { 0 };
	int rc = options->grow(options->server, &grown, (char *)reply->payload,
			       sizeof(reply->payload));

	if (!rc)
		memcpy(reply->payload, &grown, sizeof(grown));
	return rc;
}

void ops_alone(struct request *req)
{
	const struct session_options *options = &req->session->options;
	struct trax_control control, reply = { 0 };
	int rc;

	memcpy(&control, req->data, sizeof(control));
	req->session->alone = NULL;
	if (control.command == TRAX_CONTROL_GROW)
		rc = grow_alone(options, &reply);
	else
		rc = options->remount(options->server, control_text(&control),
				      (char *)reply.payload,
				      sizeof(reply.payload));
	reply.result = (uint64_t)-rc;
	ops_reply_ioctl(req, &reply, sizeof(reply));
}

static void control_task(struct request *req, bool paused)
{
	const struct tasks tasks = session_tasks(req->session);
	struct trax_control control = { 0 };
	char name[TRAX_TASK_NAME_BYTES];
	int rc;

	if (!control_payload(req, name, sizeof(name)))
		return;
	name[sizeof(name) - 1] = '\0';
	rc = tasks_pause(&tasks, name, paused);
	if (rc)
		request_reply(req, rc, NULL, 0);
	else
		ops_reply_ioctl(req, &control, sizeof(control));
}

static void control_task_pause(struct request *req)
{
	control_task(req, true);
}

static void control_task_resume(struct request *req)
{
	control_task(req, false);
}

static void control_order(struct request *req)
{
	struct moves *moves = req->session->moves;
	struct trax_control control, reply = { 0 };
	uint64_t ino;

	memcpy(&control, req->data, sizeof(control));
	if (!moves || control.payload_bytes > sizeof(control.payload) ||
	    control.payload_bytes % sizeof(ino)) {
		request_reply(req, moves ? -EINVAL : -EOPNOTSUPP, NULL, 0);
		return;
	}
	while (reply.result * sizeof(ino) < control.payload_bytes) {
		memcpy(&ino, control.payload + reply.result * sizeof(ino),
		       sizeof(ino));
		if (moves_order(moves, ino))
			break;
		reply.result++;
	}
	ops_reply_ioctl(req, &reply, sizeof(reply));
}

static const struct {
	enum trax_control_command command;
	void (*handle)(struct request *req);
} controls[] = {
	{ TRAX_CONTROL_SYNC, sync_wait },
	{ TRAX_CONTROL_SCRUB_START, control_scrub_start },
	{ TRAX_CONTROL_SCRUB_PAUSE, control_scrub_pause },
	{ TRAX_CONTROL_SCRUB_RESUME, control_scrub_resume },
	{ TRAX_CONTROL_TASK_PAUSE, control_task_pause },
	{ TRAX_CONTROL_TASK_RESUME, control_task_resume },
	{ TRAX_CONTROL_ORDER, control_order },
	{ TRAX_CONTROL_SET_BUDGET, control_set_budget },
	{ TRAX_CONTROL_REPLICATE, control_replicate },
	{ TRAX_CONTROL_DROP_REPLICAS, control_drop_replicas },
	{ TRAX_CONTROL_SET_REPLICAS, control_set_replicas },
	{ TRAX_CONTROL_REMOUNT, control_remount },
	{ TRAX_CONTROL_GROW, control_grow },
	{ TRAX_CONTROL_SET_UUID, control_set_uuid },
	{ TRAX_CONTROL_ERRORS_RECHECK, control_errors_recheck },
	{ TRAX_CONTROL_ERRORS_CLEAR, control_errors_clear },
};

static void ioctl_control(struct request *req)
{
	struct trax_control control;
	size_t i;

	memcpy(&control, req->data, sizeof(control));
	if (req->op.ino != FUSE_ROOT_ID) {
		request_reply(req, -ENOTTY, NULL, 0);
		return;
	}
	if (!request_by_admin(req)) {
		request_reply(req, -EPERM, NULL, 0);
		return;
	}
	for (i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
		if (controls[i].command == control.command) {
			controls[i].handle(req);
			return;
		}
	}
	request_reply(req, -EOPNOTSUPP, NULL, 0);
}

static void ioctl_stream(struct request *req)
{
	struct fs_promise ask = { .ino = req->op.ino, .uid = req->op.uid,
				  .admin = request_by_admin(req) };
	struct trax_stream stream;
	const struct fuse_ioctl_in *in = req->fixed;
	unsigned files = 0;
	int rc;

	if (in->flags & FUSE_IOCTL_DIR) {
		request_reply(req, -ENOTTY, NULL, 0);
		return;
	}
	memcpy(&stream, req->data, sizeof(stream));
	ask.rate = stream.rate;
	rc = fs_promise(req->session->fs, &ask, &stream.promised, &files);
	stream.streams = files;
	if (rc)
		request_reply(req, rc, NULL, 0);
	else
		ops_reply_ioctl(req, &stream, sizeof(stream));
}

static const struct ioctl_row rows[] = {
	{ FS_IOC_GETFLAGS, 0, ioctl_getflags },
	{ FS_IOC_SETFLAGS, sizeof(uint32_t), ioctl_setflags },
	{ FS_IOC_FSGETXATTR, 0, ioctl_getxflags },
	{ FS_IOC_FSSETXATTR, sizeof(struct fsxattr), ioctl_setxflags },
	{ SCAN_IOC_ADD, sizeof(struct scan_add), scan_file_add },
	{ FITRIM, sizeof(struct fstrim_range), ioctl_trim },
	{ FS_IOC_GETFSLABEL, 0, ioctl_getlabel },
	{ FS_IOC_SETFSLABEL, FSLABEL_MAX, ioctl_setlabel },
	{ IOC_SHUTDOWN, 0, ioctl_shutdown },
	{ TRAX_IOC_CONTROL, sizeof(struct trax_control), ioctl_control },
	{ TRAX_IOC_STREAM, sizeof(struct trax_stream), ioctl_stream },
};

void ops_ioctl(struct request *req)
{
	const struct fuse_ioctl_in *in = req->fixed;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].command != in->cmd)
			continue;
		if (req->data_bytes < rows[i].in_bytes)
			break;
		rows[i].handle(req);
		return;
	}
	request_reply(req, -ENOTTY, NULL, 0);
}

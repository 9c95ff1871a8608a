/*
 * op.c - see op.h.
 */
#include "fs/op/op.h"

#include <errno.h>

#include "base/units.h"
#include "sched/queue/queue.h"

static const char *const op_names[FS_OP_TYPES] = {
	[FS_LOOKUP] = "lookup",
	[FS_FORGET] = "forget",
	[FS_GETATTR] = "getattr",
	[FS_SETATTR] = "setattr",
	[FS_READLINK] = "readlink",
	[FS_MKNOD] = "mknod",
	[FS_MKDIR] = "mkdir",
	[FS_SYMLINK] = "symlink",
	[FS_TMPFILE] = "tmpfile",
	[FS_LINK] = "link",
	[FS_UNLINK] = "unlink",
	[FS_RMDIR] = "rmdir",
	[FS_RENAME] = "rename",
	[FS_OPEN] = "open",
	[FS_RELEASE] = "release",
	[FS_READ] = "read",
	[FS_WRITE] = "write",
	[FS_FSYNC] = "fsync",
	[FS_SYNCFS] = "syncfs",
	[FS_READDIR] = "readdir",
	[FS_STATFS] = "statfs",
	[FS_SETXATTR] = "setxattr",
	[FS_GETXATTR] = "getxattr",
	[FS_LISTXATTR] = "listxattr",
	[FS_REMOVEXATTR] = "removexattr",
	[FS_FALLOCATE] = "fallocate",
	[FS_COPY_RANGE] = "copy_range",
	[FS_GETFLAGS] = "getflags",
	[FS_SETFLAGS] = "setflags",
	[FS_EXTENTS] = "extents",
	[FS_ERRORS] = "errors",
	[FS_COPIES] = "copies",
	[FS_HEAT] = "heat",
	[FS_COPIES_MAKE] = "copies_make",
	[FS_COPIES_DROP] = "copies_drop",
	[FS_COPIES_SET] = "copies_set",
	[FS_SEEK] = "seek",
	[FS_TRIM] = "trim",
	[FS_SET_LABEL] = "set_label",
	[FS_ERRORS_CLEAR] = "errors_clear",
	[FS_SET_UUID] = "set_uuid",
	[FS_SHUTDOWN] = "shutdown",
};

const char *fs_op_name(enum fs_op_type type)
{
	return op_names[type];
}

void op_begin(struct fs *fs, struct fs_op *op)
{
	op->rc = 0;
	op->txn = NULL;
	op->start_ns = env_now_ns(fs->env);
	list_add(&fs->ops, &op->link);
	fs->op_count++;
}

/* Errors that only the inside of the file system tells apart are -EIO to
 * callers. */
static int fs_outer_error(int rc)
{
	return rc == -EBADMSG || rc == -EUCLEAN ? -EIO : rc;
}

void fs_answer(struct fs *fs, struct fs_op *op, int rc)
{
	list_del(&op->link);
	fs->op_count--;
	if ((unsigned)op->type < FS_OP_TYPES)
		fs->stat_ops[op->type]++;
	fs->answers++;
	fs->answer_ns = env_now_ns(fs->env);
	op->rc = fs_outer_error(rc);
	op->done(op);
}

/* Shortens the time that the caller allows to that until next_ns. */
int op_timeout_ms(int timeout_ms, uint64_t now_ns, uint64_t next_ns)
{
	uint64_t ms;

	if (next_ns == UINT64_MAX || timeout_ms == 0)
		return timeout_ms;
	if (next_ns <= now_ns)
		return 0;
	ms = (next_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
	if (timeout_ms > 0 && ms > (uint64_t)timeout_ms)
		return timeout_ms;
	return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/* When the disk has no request, the next thing to do comes only with time. */
void fs_sleep(struct fs *fs, uint64_t next_ns)
{
	uint64_t now_ns = env_now_ns(fs->env);

	if (!queue_idle(fs->queue))
		fs->disk_gone = queue_poll(fs->queue, op_timeout_ms(-1, now_ns,
							    next_ns)) < 0;
	else if (next_ns > now_ns && next_ns != UINT64_MAX)
		env_wait(fs->env, next_ns - now_ns);
}

int fs_wait(struct fs *fs, const bool *over)
{
	uint64_t next_ns;

	while (!*over && !fs->disk_gone) {
		next_ns = fs->run(fs, 0);
		if (!*over && !fs->disk_gone)
			fs_sleep(fs, next_ns);
	}
	return *over ? 0 : -EIO;
}

bool fs_read_only(const struct fs *fs)
{
	return fs->options.read_only || tree_failed(fs->tree);
}

/*
 * mount.c - mounting by libfuse, kernel limits, leaving.
 */
#define FUSE_USE_VERSION 314

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/msg.h"
#include "cache/limit.h"
#include "fuse/mount.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

/* The kernel may read ahead at least this much, about a track; its default for
 * a mount is 128 KiB. */
#define MIN_READAHEAD_BYTES (1u << 20)
/* Percentage of the machine's dirty pages that may be of this mount, where no
 * limit in bytes applies. */
#define MAX_DIRTY_PERCENT 50u
/* Percentage of memory that may be dirty on the machine: the kernel's
 * default. */
#define MACHINE_DIRTY_PERCENT 20u
/* One part in this many of a control group's memory may be dirty pages of this
 * mount. */
#define GROUP_SHARE 8u
/* On disks smaller than this, one part in DIRTY_SHARE of the disk may be
 * dirty. */
#define DIRTY_DISK_BYTES (64ull << 30)
#define DIRTY_SHARE 64u
/* With fewer dirty pages than this allowed, writers wait for each page. */
#define MIN_DIRTY_BYTES (4ull << 20)
/* Where nothing limits the dirty pages of a control group with at least this
 * much memory, the daemon touches all its memory at the start: that is its
 * budget (cache/pool.h) and 40 MB, no more than half of the group's. */
#define TOUCHED_LIMIT (160ull << 20)
/* The kernel's OOM killer chooses almost any other process first: what this
 * mount has not written would be lost with the daemon. */
#define OOM_SCORE "-900"
/* The daemon sleeps most of the time, and a completion that it hears of late
 * does not tell where the head is. */
#define NICENESS (-15)
/* Until requests are served, blocks from TABLE_BYTES on are mapped: what of the
 * tables is never used takes no memory then, and what recovery needed goes
 * back.  From the heap calloc() gives memory that was used before, and clears
 * it. */
#define TABLE_BYTES (128 << 10)
/* Then blocks of up to HEAP_BLOCK_BYTES come from the heap, which keeps
 * HEAP_KEEP_BYTES of free memory: mapping anew costs a fault for each page. */
#define HEAP_BLOCK_BYTES (16 << 20)
#define HEAP_KEEP_BYTES (64 << 20)

struct fuse_mount {
	struct fuse_session *fuse;
	char *mountpoint;
	bool leaving;		/* the shell has been told to unmount */
	int order_fd;		/* pipe to the shell; -1: there is no shell */
};

static void log_fuse(enum fuse_log_level level, const char *fmt, va_list ap)
{
	char line[512];
	size_t n;

	vsnprintf(line, sizeof(line), fmt, ap);
	n = strlen(line);
	while (n && line[n - 1] == '\n')
		line[--n] = 0;
	msg(level <= FUSE_LOG_ERR ? MSG_ERROR : MSG_DEBUG, "%s", line);
}

/* The options of mount(2), as libfuse wants them. */
static int make_options(const struct mount_options *o, char **text)
{
	char block[64] = "";
	char *list = NULL, *name = NULL;

	if (o->block_bytes)
		snprintf(block, sizeof(block), ",blkdev,blksize=%u",
			 o->block_bytes < 512 ? 512 : o->block_bytes);
	if (asprintf(&name, "fsname=%s", o->source) < 0)
		return -ENOMEM;
	/* Only fsname may hold a comma, which has to be escaped. */
	if (fuse_opt_add_opt_escaped(&list, name) ||
	    asprintf(text, "%s,subtype=traxfs,default_permissions%s,%s%s%s%s",
		     list, block, o->read_only ? "ro" : "rw",
		     o->allow_other ? ",allow_other" : "",
		     o->flags && *o->flags ? "," : "",
		     o->flags ? o->flags : "") < 0)
		*text = NULL;
	free(name);
	free(list);
	return *text ? 0 : -ENOMEM;
}

static int new_session(const char *text, struct fuse_session **fuse)
{
	static const struct fuse_lowlevel_ops none;
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);

	*fuse = NULL;
	if (!fuse_opt_add_arg(&args, "traxfs") &&
	    !fuse_opt_add_arg(&args, "-o") && !fuse_opt_add_arg(&args, text))
		*fuse = fuse_session_new(&args, &none, sizeof(none), NULL);
	fuse_opt_free_args(&args);
	return *fuse ? 0 : -EINVAL;
}

/*
 * Unmounting takes rights that the daemon gives up, so a shell that has them
 * waits for a line that says to do it.  "leave": a mount that is in use is
 * written back and detached; that the shell then fails says that the kernel
 * will not end the session.  "detach": whatever the state.  When the daemon
 * ends without a word, so does the shell.  Signals of the terminal or of a
 * service manager are for the daemon.
 */
static const char order_head[] =
	"trap '' HUP INT TERM; read -r order || exit 0; ";
static const char order_root[] =
	"[ $order = leave ] || exec umount -i -l \"$0\"; "
	"umount -i \"$0\" 2>/dev/null || "
	"{ sync -f \"$0\"; umount -i -l \"$0\"; exit 1; }";
static const char order_user[] =
	"[ $order = leave ] || exec fusermount3 -u -z \"$0\"; "
	"fusermount3 -u \"$0\" 2>/dev/null || "
	"{ sync -f \"$0\"; fusermount3 -u -z \"$0\"; exit 1; }";

static int spawn_shell(const struct fuse_mount *m, int in)
{
	char *const envp[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	char script[1024];
	char *const argv[] = { "sh", "-c", script, m->mountpoint, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;
	int rc;

	snprintf(script, sizeof(script), "%s%s", order_head,
		 geteuid() ? order_user : order_root);
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK |
					POSIX_SPAWN_SETPGROUP);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in, 0);
	/* Whoever reads what the daemon has said must not wait for it. */
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	rc = posix_spawn(&pid, "/bin/sh", &files, &attr, argv, envp);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return -rc;
}

static void start_shell(struct fuse_mount *m)
{
	int pipes[2], rc;

	if (pipe2(pipes, O_CLOEXEC)) {
		msg_warn("%s: pipe: %s", m->mountpoint, strerror(errno));
		return;
	}
	rc = spawn_shell(m, pipes[0]);
	close(pipes[0]);
	m->order_fd = pipes[1];
	if (rc)
		msg_warn("%s: /bin/sh: %s", m->mountpoint, strerror(-rc));
}

/* Returns whether the shell has got the order: it may be gone. */
static bool give_order(struct fuse_mount *m, const char *order)
{
	size_t n = strlen(order);
	bool given = write(m->order_fd, order, n) == (ssize_t)n;

	if (m->order_fd >= 0)
		close(m->order_fd);
	m->order_fd = -1;
	return given;
}

/* libfuse does not know this flag; the mount as such has it. */
static int forbid_symlinks(const char *mountpoint)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSYMFOLLOW };

	return mount_setattr(AT_FDCWD, mountpoint, 0, &attr, sizeof(attr)) ?
		       -errno : 0;
}

int mount_open(const struct mount_options *options, struct fuse_mount **out)
{
	struct fuse_mount *m = calloc(1, sizeof(*m));
	bool mounted = false;
	char *text = NULL;
	int rc = -ENOMEM;

	if (!m)
		return -ENOMEM;
	m->order_fd = -1;
	fuse_set_log_func(log_fuse);
	m->mountpoint = strdup(options->mountpoint);
	if (m->mountpoint)
		rc = make_options(options, &text);
	if (!rc)
		rc = new_session(text, &m->fuse);
	free(text);
	if (!rc) {
		errno = 0;
		if (fuse_session_mount(m->fuse, m->mountpoint))
			rc = errno ? -errno : -EIO;
		mounted = !rc;
	}
	if (!rc && options->no_symlinks)
		rc = forbid_symlinks(m->mountpoint);
	if (rc) {
		if (mounted)
			fuse_session_unmount(m->fuse);
		if (m->fuse)
			fuse_session_destroy(m->fuse);
		free(m->mountpoint);
		free(m);
		return rc;
	}
	start_shell(m);
	*out = m;
	return 0;
}

int mount_fd(const struct fuse_mount *m)
{
	return fuse_session_fd(m->fuse);
}

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, text, strlen(text)) >= 0;
	if (!ok)
		msg_debug("%s: %s", path, strerror(errno));
	close(fd);
	return ok;
}

static bool tune_one(const struct statx *st, const char *suffix,
		     const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u%s/%s",
		 st->stx_dev_major, st->stx_dev_minor, suffix, name);
	return write_text(path, value);
}

/*
 * Returns how many bytes of dirty pages the kernel may keep for this mount, or
 * UINT64_MAX for as many as the machine's own settings allow.
 *
 * A writer may be in the daemon's own control group: its dirty pages must leave
 * most of a small group to the daemon, which could not write them out any more
 * without memory.  And ENOSPC is known when a page is written out, not when the
 * program wrote it: on a small disk, what a machine may keep dirty by default
 * can be more than there is room for.
 */
static uint64_t dirty_limit(uint64_t group_bytes, uint64_t disk_bytes)
{
	uint64_t bytes = UINT64_MAX;

	if (group_bytes != UINT64_MAX)
		bytes = group_bytes / GROUP_SHARE;
	if (disk_bytes < DIRTY_DISK_BYTES && disk_bytes / DIRTY_SHARE < bytes)
		bytes = disk_bytes / DIRTY_SHARE;
	return bytes < MIN_DIRTY_BYTES ? MIN_DIRTY_BYTES : bytes;
}

/*
 * Kernels before 6.2 know no limit in bytes; they get it in percent, rounded
 * up, of what the whole machine may keep dirty by default.  Returns whether the
 * kernel keeps to the limit, if there is one.
 */
static bool tune_dirty(const struct statx *st, const char *suffix,
		       uint64_t bytes)
{
	unsigned percent = MAX_DIRTY_PERCENT;
	struct sysinfo info;
	bool strict, ratio;
	char text[32];

	if (bytes != UINT64_MAX && !sysinfo(&info)) {
		uint64_t ram = (uint64_t)info.totalram * info.mem_unit;
		uint64_t part = bytes * 100 /
			(ram / 100 * MACHINE_DIRTY_PERCENT + 1) + 1;

		if (part < percent)
			percent = (unsigned)part;
	}
	strict = tune_one(st, suffix, "strict_limit",
			  bytes != UINT64_MAX ? "1" : "0");
	snprintf(text, sizeof(text), "%u", percent);
	ratio = tune_one(st, suffix, "max_ratio", text);
	if (bytes == UINT64_MAX)
		return true;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	return strict && (tune_one(st, suffix, "max_bytes", text) || ratio);
}

/* Every page that is touched stays in memory: see lock_memory. */
static bool memory_is_locked;

/*
 * Dirty pages of the mount may fill a control group with little memory.  A page
 * that the daemon then touches for the first time is charged to the group, and
 * waits for pages which the daemon is to write.  So the daemon touches all its
 * memory at the start, where the group's limit leaves room for it.
 */
static void touch_memory(uint64_t group_bytes)
{
	struct sysinfo info;

	if (memory_is_locked && group_bytes >= TOUCHED_LIMIT &&
	    !sysinfo(&info) && group_bytes / info.mem_unit < info.totalram)
		mlockall(MCL_CURRENT | MCL_FUTURE);
}

/* A fuseblk mount's number is the device's, which has a bdi of its own. */
uint64_t mount_tune(const struct fuse_mount *m, unsigned readahead_bytes,
		    uint64_t disk_bytes)
{
	static const char *const suffixes[] = { "-fuseblk", "" };
	const uint64_t group = limit_memory("");
	const uint64_t dirty = dirty_limit(group, disk_bytes);
	char kb[16], path[128];
	struct statx st;
	size_t i;

	mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_BYTES);
	/* The kernel has to answer from what it knows: a request would wait for
	 * this thread. */
	if (statx(AT_FDCWD, m->mountpoint, AT_STATX_DONT_SYNC, 0, &st)) {
		touch_memory(group);
		return UINT64_MAX;
	}
	if (readahead_bytes < MIN_READAHEAD_BYTES)
		readahead_bytes = MIN_READAHEAD_BYTES;
	snprintf(kb, sizeof(kb), "%u", readahead_bytes / 1024);
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u%s",
			 st.stx_dev_major, st.stx_dev_minor, suffixes[i]);
		if (access(path, F_OK))
			continue;
		tune_one(&st, suffixes[i], "read_ahead_kb", kb);
		if (tune_dirty(&st, suffixes[i], dirty))
			return dirty;
		break;
	}
	touch_memory(group);
	return UINT64_MAX;
}

bool mount_leave(void *arg, unsigned attempt)
{
	struct fuse_mount *m = arg;

	if (attempt)
		return false;
	m->leaving = give_order(m, "leave\n");
	return m->leaving;
}

void mount_close(struct fuse_mount *m, bool attached)
{
	if (attached && !m->leaving && !give_order(m, "detach\n"))
		fuse_session_unmount(m->fuse);
	fuse_session_destroy(m->fuse);
	if (m->order_fd >= 0)
		close(m->order_fd);
	free(m->mountpoint);
	free(m);
}

/*
 * Locks all memory, also what is allocated later, as soon as it is touched:
 * memory that the daemon never touches is left to the page cache of its control
 * group.  If locked memory is limited and the process may not exceed the limit,
 * later allocations would fail.  A mapping that is larger than the limit shows
 * whether it may: CAP_IPC_LOCK in a user namespace does not count.
 */
static void lock_memory(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	size_t bytes;
	void *p;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) &&
	    getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT))
		return;
	memory_is_locked = true;
	if (limit.rlim_cur == RLIM_INFINITY)
		return;
	bytes = (size_t)limit.rlim_cur + (1 << 20);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p != MAP_FAILED) {
		munmap(p, bytes);
		return;
	}
	munlockall();
	memory_is_locked = false;
	msg_info("memory is not locked, as the limit is %llu KiB and "
		 "CAP_IPC_LOCK is not there",
		 (unsigned long long)limit.rlim_cur / 1024);
}

void mount_prepare_process(void)
{
	if (chdir("/"))
		msg_warn("/: %s", strerror(errno));
	umask(0);
	mallopt(M_MMAP_THRESHOLD, TABLE_BYTES);
	mallopt(M_TRIM_THRESHOLD, HEAP_KEEP_BYTES);
	prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
	if (geteuid() == 0) {
		lock_memory();
		write_text("/proc/self/oom_score_adj", OOM_SCORE);
		setpriority(PRIO_PROCESS, 0, NICENESS);
	}
}

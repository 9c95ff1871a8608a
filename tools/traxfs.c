/*
 * traxfs.c - the daemon: mounts a device or image and serves it.
 *
 * Order matters.  The child is forked before anything has threads or rings.
 * A block device is opened exclusively, looked at and closed again, because
 * the kernel claims it for the mount (fuseblk); then it is reopened and must
 * still be the same file system.  For an image root gets a loop device, so that
 * it is a block device as well; else it stays locked all the time, also while
 * everything is written at the end.  The parent waits for one line from the
 * child: its exit code.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/msg.h"
#include "diskmodel/profile.h"
#include "extract/drive/fit.h"
#include "extract/drive/identify.h"
#include "extract/probe/prober_disk.h"
#include "fs/drive/profile_load.h"
#include "fuse/confine.h"
#include "fuse/mount.h"
#include "sched/head/head.h"
#include "sched/queue/queue.h"
#include "tools/amounts.h"
#include "tools/device.h"
#include "tools/loop.h"
#include "tools/notify_ready.h"
#include "tools/remount.h"
#include "tools/second_view.h"
#include "tools/server.h"
#include "tools/server_log.h"

enum exit_code {
	EXIT_USAGE = 1,
	EXIT_SYSTEM = 2,
	EXIT_FOREIGN = 3,	/* the device holds no traxfs */
	EXIT_DAMAGED = 4,
	EXIT_BUSY = 5,
	EXIT_TOO_SMALL = 6,
	EXIT_UNSUPPORTED = 7,	/* host-managed zones, unknown features */
	EXIT_MOUNT = 32,
};

/* The kernel reads ahead two tracks, but no more than this: it would take its
 * memory from other files. */
#define MAX_READAHEAD_BYTES (16u << 20)
/* write(2) asks whether there is room when less than this is left, where it is
 * not known what the kernel may have in its cache; and what is added for the
 * writes of programs, at most one part in this many of the disk. */
#define LOW_ROOM_BYTES (64u << 20)
#define WRITES_ROOM_BYTES (32u << 20)
#define WRITES_ROOM_PART 8u

struct arguments {
	char *device;
	char *mountpoint;
	struct mount_settings settings;
	char *list;		/* all options as they were given */
	bool foreground;
	bool debug;
	bool again;
};

const char *argp_program_version = "traxfs " PACKAGE_VERSION;

static const struct argp_option options[] = {
	{ "options", 'o', "LIST", 0, "Mount options, separated by commas; "
	  "\"help\" lists them", 0 },
	{ "read-only", 'r', NULL, 0, "The same as -o ro", 0 },
	{ "again", 'a', NULL, 0, "Mount a device in a second place (the same "
	  "file system)", 0 },
	{ "foreground", 'f', NULL, 0, "Stay in the foreground", 0 },
	{ "debug", 'd', NULL, 0, "Print each request; implies -f", 0 },
	{ 0 },
};

static void take_options(struct arguments *a, const char *list)
{
	char *both = NULL;

	if (!strcmp(list, "help")) {
		mount_settings_print();
		exit(EXIT_SUCCESS);
	}
	if (mount_settings_parse(&a->settings, list))
		exit(EXIT_USAGE);
	if (asprintf(&both, "%s%s%s", a->list ? a->list : "",
		     a->list ? "," : "", list) < 0)
		exit(EXIT_SYSTEM);
	free(a->list);
	a->list = both;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'o':
		take_options(a, arg);
		return 0;
	case 'r':
		take_options(a, "ro");
		return 0;
	case 'a':
		a->again = true;
		return 0;
	case 'd':
		a->debug = true;
		a->foreground = true;
		return 0;
	case 'f':
		a->foreground = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			return ARGP_ERR_UNKNOWN;
		*(state->arg_num ? &a->mountpoint : &a->device) = arg;
		return 0;
	case ARGP_KEY_END:
		if (state->arg_num < 2)
			argp_usage(state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static enum exit_code exit_code_of(int rc)
{
	static const struct {
		int rc;
		enum exit_code code;
	} map[] = {
		{ -EINVAL, EXIT_FOREIGN },
		{ -EBADMSG, EXIT_DAMAGED },
		{ -EUCLEAN, EXIT_DAMAGED },
		{ -EBUSY, EXIT_BUSY },
		{ -EFBIG, EXIT_TOO_SMALL },
		{ -EOPNOTSUPP, EXIT_UNSUPPORTED },
		{ -ENOMEM, EXIT_SYSTEM },
	};
	size_t i;

	for (i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (map[i].rc == rc)
			return map[i].code;
	return EXIT_MOUNT;
}

/* ---- Steps ---- */

static int look_at_device(struct server *s)
{
	struct super super;
	int rc = device_read_super(s->disk, &super);

	if (rc == -EINVAL)
		msg_error("%s: no traxfs is on it; \"blkid -p\" shows what "
			  "is, mkfs.traxfs(8) makes one", s->name);
	if (rc)
		return rc;
	if (s->disk->limits.sectors >= super.sectors + TRAX_GROUP_SECTORS / 64)
		msg_warn("%s: the device has %s more than the file system; "
			 "\"traxctl grow\" makes use of that", s->name,
			 size_text((double)(s->disk->limits.sectors -
					    super.sectors) *
				   SECTOR_BYTES).s);
	memcpy(s->uuid, super.shown_uuid, sizeof(s->uuid));
	s->logical_bytes = s->disk->limits.logical_bytes;
	return 0;
}

/* Explains a refusal of SELinux labels, the only options that are passed to the
 * kernel unread. */
static void say_refused_label(const struct server *s)
{
	if (strstr(s->settings.flags, "context="))
		msg_error("%s: the kernel refuses labels (\"%s\"): %s", s->name,
			  s->settings.flags, access("/sys/fs/selinux", F_OK) ?
			  "it has no SELinux, leave them out" :
			  "SELinux does not know or allow them");
}

/* The kernel's -EINVAL becomes -EPERM, as -EINVAL stands for a device without a
 * traxfs. */
static int attach(struct server *s)
{
	const struct mount_settings *set = &s->settings;
	struct mount_options o = {
		.source = s->device,
		.mountpoint = s->mountpoint,
		.block_bytes = s->block_device ? s->logical_bytes : 0,
		.read_only = set->read_only,
		.allow_other = set->allow_other || geteuid() == 0,
		.flags = set->flags,
		.no_symlinks = set->nosymfollow,
	};

	int rc = mount_open(&o, &s->mount);

	if (rc != -EINVAL)
		return rc;
	say_refused_label(s);
	return -EPERM;
}

/* Opens the device again, which the kernel has now, and checks that it is still
 * the same file system. */
static int reopen(struct server *s)
{
	struct disk_open_options o = {
		.read_only = s->settings.read_only,
		.writable_later = true,
		.locked = true,
	};
	struct super super;
	int rc = disk_open(s->device, &o, &s->disk);

	if (s->loop_fd >= 0)
		close(s->loop_fd);
	s->loop_fd = -1;
	if (rc)
		return rc;
	rc = device_read_super(s->disk, &super);
	if (!rc && memcmp(super.shown_uuid, s->uuid, sizeof(s->uuid))) {
		msg_error("%s: another file system than a moment ago",
			  s->name);
		rc = -EBUSY;
	}
	return rc;
}

/* Does the profile in the file system contradict the drive? If that can't be
 * found out it counts as contradicted. */
static bool doubt_profile(struct server *s, struct drive_fit *fit)
{
	struct prober *prober;
	struct profile *profile;
	struct super super;
	int rc;

	if (device_read_super(s->disk, &super) ||
	    profile_record_read(s->disk, &super, &profile))
		return false;
	prober = prober_disk_new(env_real(), s->disk, false, NULL);
	device_realtime(true);
	rc = prober ? fit_check(prober, profile, env_random(env_real()),
				fit) : -ENOMEM;
	device_realtime(false);
	if (!rc && fit->verdict > FIT_UNKNOWN)
		msg_warn("%s: the profile of the drive does not fit: %s; "
			 "rotation is not predicted", s->name,
			 fit_verdict_text(fit->verdict));
	if (prober)
		prober_disk_free(prober);
	profile_free(profile);
	return rc || fit->verdict > FIT_UNKNOWN;
}

/* What that has read says where the head is. */
static size_t past_reads_of(const struct drive_fit *fit,
			    struct head_past_read *past_reads)
{
	const struct probe_access *read;
	size_t n = 0;
	unsigned i;

	for (i = 0; i < fit->reads; i++) {
		read = &fit->read[i];
		if (!read->result)
			past_reads[n++] = (struct head_past_read){
				read->sector, read->sectors, read->submit_ns,
				read->complete_ns,
			};
	}
	return n;
}

/* As mkfs: what says by itself that it does not rotate is not asked. */
static bool may_measure(const char *device)
{
	struct identity id = { .rotational = true };

	return !identify(device, "/sys", &id) && !identify_refusal(&id) &&
	       (!id.block || id.rotational || id.loop);
}

static int open_fs(struct server *s)
{
	const struct mount_settings *set = &s->settings;
	struct drive_fit fit = { .verdict = FIT_UNKNOWN };
	struct head_past_read past_reads[FIT_READS];
	int rc;

	s->options = (struct fs_options){
		.accept_loss = set->accept_loss,
		.no_replay = set->norecovery,
		.memory_bytes = set->memory_bytes,
		.commit_seconds = set->commit_seconds,
		.noatime = set->noatime,
		.strictatime = set->strictatime,
		.nodiratime = set->nodiratime,
		.replicas = set->replicas,
		.high_percent = set->watermarks[0],
		.low_percent = set->watermarks[1],
		.critical_percent = set->watermarks[2],
		.doubt = doubt_profile(s, &fit),
		.measure = may_measure(s->device),
		.past_reads = past_reads,
	};

	s->options.past_reads_n = past_reads_of(&fit, past_reads);
	rc = server_open_fs(s, set->read_only);
	s->options.past_reads = NULL;
	s->options.past_reads_n = 0;
	/* Limits can't be looked up any more when it is opened anew. */
	if (!rc)
		s->options.memory_bytes = fs_memory_bytes(s->fs);
	return rc;
}

/* Two tracks: one is read while the other one is used; the outermost tracks are
 * the longest. */
static unsigned readahead_bytes(const struct fs *fs)
{
	struct geom_track track;

	geom_track_at(fs_geom(fs), 0, &track);
	if (track.sectors > MAX_READAHEAD_BYTES / SECTOR_BYTES / 2)
		return MAX_READAHEAD_BYTES;
	return 2 * track.sectors * SECTOR_BYTES;
}

/*
 * What the kernel may have in its cache has to fit when write(2) begins to ask
 * whether there is room, and as much again, because the kernel keeps the limit
 * only about.
 */
static uint64_t low_room(uint64_t dirty, uint64_t disk_bytes)
{
	uint64_t writes = disk_bytes / WRITES_ROOM_PART;

	if (dirty == UINT64_MAX)
		return LOW_ROOM_BYTES;
	writes = writes < WRITES_ROOM_BYTES ? writes : WRITES_ROOM_BYTES;
	return 2 * dirty + writes;
}

static int start_session(struct server *s)
{
	struct session_options o = {
		.env = env_real(),
		.fd = mount_fd(s->mount),
		.owner = geteuid(),
		.direct = s->settings.brick,
		.awake = s->settings.awake,
		.leave = mount_leave,
		.leave_arg = s->mount,
		.remount = server_remount,
		.grow = server_grow,
		.server = s,
	};
	const uint64_t disk_bytes = s->disk->limits.sectors * SECTOR_BYTES;
	uint64_t dirty;
	sigset_t set;
	int rc;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	o.signal_fd = s->signal_fd =
		signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (o.signal_fd < 0)
		return -errno;
	rc = session_new(s->fs, &o, &s->session);
	if (!rc)
		rc = session_start(s->session);
	if (rc)
		return rc;
	dirty = mount_tune(s->mount, readahead_bytes(s->fs), disk_bytes);
	session_set_low_room(s->session, low_room(dirty, disk_bytes));
	return 0;
}

/* Is the device or file write-protected, for root as well? */
static bool is_protected(const char *path, bool block_device)
{
	int fd, set = 0;

	if (!block_device)
		return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) &&
		       (errno == EROFS || errno == EACCES);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (ioctl(fd, BLKROGET, &set))
		set = 0;
	close(fd);
	return set;
}

/* An image that is mounted read-only is opened again with a lock that can
 * become one for writing. */
static int open_device(struct server *s)
{
	int rc = device_open(s->device, s->settings.read_only, &s->disk);

	if (!rc)
		rc = look_at_device(s);
	if (rc || s->block_device || !s->settings.read_only)
		return rc;
	disk_close(s->disk);
	s->disk = NULL;
	return reopen(s);
}

/*
 * For root an image gets a loop device, as mount(8) makes one for other file
 * systems: on a block device sync(2), syncfs(2) and umount(2) wait for data
 * that is still to be written.
 */
static void make_loop(struct server *s)
{
	int fd;

	if (s->block_device || s->settings.no_loop || geteuid() != 0)
		return;
	fd = loop_attach(s->device, s->settings.read_only, s->loop,
			 sizeof(s->loop));
	if (fd < 0) {
		msg_warn("%s: mounted without a loop device (%s): sync(1) and "
			 "umount(8) do not wait for it", s->name,
			 strerror(-fd));
		return;
	}
	s->loop_fd = fd;
	s->device = s->loop;
	s->block_device = true;
}

/*
 * A child that waits for a device must not mount it when its parent has ended,
 * so it ends with its parent.  Once the kernel has the mount, go_background
 * notices that the parent has gone.
 */
static int live_as_parent(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGTERM))
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

static int start(struct server *s)
{
	int rc = device_in_use(s->device) ? -EBUSY : 0;

	if (!rc && !s->settings.read_only &&
	    is_protected(s->device, s->block_device)) {
		msg_warn("%s: write-protected, mounting read-only", s->name);
		s->settings.read_only = true;
	}
	if (!rc) {
		make_loop(s);
		rc = open_device(s);
	}
	if (!rc && s->block_device) {
		disk_close(s->disk);
		s->disk = NULL;
	} else if (!rc) {
		rc = open_fs(s);
	}
	/* From here on there is a mount that has to be taken away in order. */
	if (!rc && prctl(PR_SET_PDEATHSIG, 0))
		rc = -errno;
	if (!rc)
		rc = attach(s);
	if (!rc && s->block_device)
		rc = reopen(s);
	if (!rc && s->block_device)
		rc = open_fs(s);
	if (!rc)
		rc = start_session(s);
	if (!rc)
		rc = confine();
	return rc ? rc : server_start_tasks(s);
}

/* Closes everything: the disk is idle before the kernel hears that the unmount
 * is over. */
static int finish(struct server *s)
{
	bool attached = !s->session || session_attached(s->session);
	int rc = 0;

	/* No process may wait for the mount while the last data is written. */
	if (s->mount && attached) {
		if (s->session)
			session_free(s->session);
		mount_close(s->mount, true);
		s->mount = NULL;
		s->session = NULL;
	}
	moves_close(s->moves);
	refine_close(s->refine);
	file_scans_close(s->scans);
	scrub_close(s->scrub);
	if (s->fs) {
		/* A user may have changed it. */
		memcpy(s->uuid, fs_super(s->fs)->shown_uuid, sizeof(s->uuid));
		rc = fs_close(s->fs);
	}
	if (s->disk)
		disk_close(s->disk);
	if (s->session)
		session_free(s->session);
	if (s->mount)
		mount_close(s->mount, false);
	return rc;
}

/* ---- Foreground and background ---- */

/*
 * Tells the parent that the mount stands; from here on nobody reads stderr.
 * False: the parent has gone, and its mount was given up.
 */
static bool go_background(struct server *s, int ready_fd, int null_fd)
{
	char code = 0;
	bool expected;

	server_log_only(s);
	dup2(null_fd, 0);
	dup2(null_fd, 1);
	dup2(null_fd, 2);
	close(null_fd);
	expected = write(ready_fd, &code, 1) == 1;
	if (!expected)
		msg_warn("%s: what asked for the mount has ended: unmounting",
			 s->name);
	close(ready_fd);
	return expected;
}

/* The parent waits for a byte on *ready_fd; -1: there is none. */
static enum exit_code serve(const struct arguments *a, int *ready_fd)
{
	struct server s = {
		.name = a->device, .device = a->device,
		.mountpoint = a->mountpoint,
		.settings = a->settings, .loop_fd = -1, .signal_fd = -1,
	};
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct stat st;
	int rc, rc2;

	if (null_fd < 0 || stat(a->device, &st)) {
		msg_error("%s: %s", a->device, strerror(errno));
		return EXIT_MOUNT;
	}
	s.block_device = S_ISBLK(st.st_mode);
	if (!s.block_device && !S_ISREG(st.st_mode)) {
		msg_error("%s: neither a block device nor an image file",
			  a->device);
		return EXIT_MOUNT;
	}
	server_log_begin(&s, *ready_fd >= 0);
	mount_prepare_process();
	rc = start(&s);
	if (!rc) {
		server_say_mounted(&s);
		notify_ready();
		if (*ready_fd < 0 || go_background(&s, *ready_fd, null_fd))
			rc = session_run(s.session);
		*ready_fd = -1;
		rc2 = finish(&s);
		server_say_unmounted(&s, rc ? rc : rc2);
	} else {
		rc2 = finish(&s);
		server_say_not_mounted(&s, rc);
	}
	rc = rc ? rc : rc2;
	msg_set_sink(NULL, NULL);
	return rc ? exit_code_of(rc) : EXIT_SUCCESS;
}

static enum exit_code serve_in_background(const struct arguments *a)
{
	pid_t pid, parent = getpid();
	unsigned char code;
	int pipes[2];

	pid = pipe2(pipes, O_CLOEXEC) ? -1 : fork();
	if (pid < 0) {
		msg_error("%s: not mounted: %s", a->device, strerror(errno));
		return EXIT_SYSTEM;
	}
	if (pid == 0) {
		close(pipes[0]);
		setsid();
		if (live_as_parent(parent))
			_exit(EXIT_SYSTEM);
		code = (unsigned char)serve(a, &pipes[1]);
		if (pipes[1] >= 0 && write(pipes[1], &code, 1) != 1)
			code = EXIT_SYSTEM;
		_exit(code);
	}
	close(pipes[1]);
	if (read(pipes[0], &code, 1) != 1)
		code = EXIT_SYSTEM;
	return code;
}

#ifdef __SANITIZE_ADDRESS__
/* libfuse does not free the name of a mount point that another process has
 * unmounted. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:fuse_session_mount\n";
}
#endif

static void say_ended(const char *mountpoint)
{
	msg_error("%s: a file system there has ended without unmounting: "
		  "umount %s first", mountpoint, mountpoint);
}

/* Makes a path absolute, as the daemon leaves its working directory.  `wanted`:
 * what the path should name. */
static bool make_absolute(char **path, char full[PATH_MAX], const char *wanted)
{
	if (realpath(*path, full)) {
		*path = full;
		return true;
	}
	if (errno == ENOTCONN)
		say_ended(*path);
	else if (errno == ENOENT)
		msg_error("%s: there is no such %s", **path ? *path : "\"\"",
			  wanted);
	else
		msg_error("%s: %s; wanted is a %s", *path, strerror(errno),
			  wanted);
	return false;
}

/* May a file system be mounted there?  Says so if not. */
static bool is_mount_point(const char *path)
{
	struct stat st;
	int err = stat(path, &st) ? errno : 0;

	if (!err && S_ISDIR(st.st_mode))
		return true;
	if (err == ENOTCONN)
		say_ended(path);
	else
		msg_error("%s: not a directory; it is mounted on one", path);
	return false;
}

static enum exit_code run(struct arguments *a)
{
	struct stat st;
	int nobody = -1, rc;

	msg_set_level(a->debug ? MSG_DEBUG : a->settings.silent ? MSG_ERROR :
								  MSG_INFO);
	if (a->settings.remount)
		return remount(a->mountpoint, &a->settings, a->list) ?
			       EXIT_MOUNT : EXIT_SUCCESS;
	if (a->settings.norecovery && !a->settings.read_only &&
	    !is_protected(a->device, !stat(a->device, &st) &&
				     S_ISBLK(st.st_mode))) {
		msg_error("mount option \"norecovery\": only with \"ro\", for "
			  "writing the log has to be replayed");
		return EXIT_USAGE;
	}
	if (!is_mount_point(a->mountpoint))
		return EXIT_MOUNT;
	rc = a->again ? second_view(a->device, a->mountpoint, &a->settings) :
			-ENOENT;
	if (!rc)
		return EXIT_SUCCESS;
	if (rc == -EBUSY) {
		msg_error("%s: is mounted on %s already", a->device,
			  a->mountpoint);
		return EXIT_BUSY;
	}
	return a->foreground ? serve(a, &nobody) : serve_in_background(a);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse, "DEVICE MOUNTPOINT",
		"Mounts a traxfs file system.", NULL, NULL, NULL,
	};
	static char device[PATH_MAX], mountpoint[PATH_MAX];
	struct arguments a = { .list = NULL };
	enum exit_code code = EXIT_MOUNT;
	int err = confine_descriptors();

	if (err) {
		msg_error("/dev/null: %s", strerror(-err));
		return EXIT_SYSTEM;
	}
	mount_settings_init(&a.settings);
	/* libfuse's own default is nosuid,nodev. */
	if (geteuid() == 0)
		mount_settings_parse(&a.settings, "suid,dev");
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if ((a.settings.remount ||
	     make_absolute(&a.device, device, "device or image file")) &&
	    make_absolute(&a.mountpoint, mountpoint, "directory to mount on"))
		code = run(&a);
	free(a.list);
	return code;
}

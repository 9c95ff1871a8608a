/*
 * ram.c - see ram.h.
 *
 * The steps go over one set of files, in the order of the table; all of them
 * are done in each round, only those listed are shown.  A cold step begins with
 * a new mount and empty caches; the bare server keeps its mount, as its files
 * would be gone with it.
 */
#include "bench/ram.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/msg.h"
#include "base/sort.h"
#include "bench/guard.h"
#include "bench/shell.h"

/* MiB of the image and of the large file, bytes of a call, and how often the
 * file is read from the cache. */
#define IMAGE_MIB 4096u
#define DATA_MIB 512u
#define DATA_CALL_BYTES (1u << 20)
#define CACHED_PASSES 4u
/* Number of empty files, of files that are unpacked, and of appends.  All sizes
 * are round numbers that keep a step within seconds. */
#define FILES 20000u
#define UNPACKED 5000u
#define UNPACKED_BYTES 6000u	/* a source file's usual size */
#define APPENDS 2000u
#define APPEND_BYTES 4096u
#define MAX_ROUNDS 16u	/* Most rounds; more are cut off. */

struct step {
	const char *name, *about;
	double wanted;		/* ratio to reach: ext4's time over traxfs's */
	bool cold;
	int (*run)(const char *dir, unsigned percent);
};

static unsigned part(unsigned n, unsigned percent)
{
	unsigned long s = (unsigned long)n * percent / 100;

	return s ? s : 1;
}

static int failed(const char *path)
{
	int rc = -errno;

	msg_error("%s: %s", path, strerror(errno));
	return rc;
}

/* ---- One large file ---- */

static uint8_t data_buf[DATA_CALL_BYTES] __attribute__((aligned(4096)));

static int data_open(const char *dir, int flags)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/data", dir);
	return open(path, flags, 0644);
}

static int write_run(const char *dir, unsigned percent)
{
	int fd = data_open(dir, O_CREAT | O_WRONLY);
	int rc = 0;

	memset(data_buf, 0x5a, sizeof(data_buf));
	for (unsigned i = 0; !rc && i < part(DATA_MIB, percent); i++)
		if (write(fd, data_buf, sizeof(data_buf)) !=
		    (ssize_t)sizeof(data_buf))
			rc = failed(dir);
	if (!rc && fsync(fd))
		rc = failed(dir);
	close(fd);
	return rc;
}

static int read_run(const char *dir, unsigned percent)
{
	int fd = data_open(dir, O_RDONLY);
	ssize_t n;

	(void)percent;
	while ((n = read(fd, data_buf, sizeof(data_buf))) > 0)
		continue;
	n = n < 0 ? failed(dir) : 0;
	close(fd);
	return (int)n;
}

static int cached_run(const char *dir, unsigned percent)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < CACHED_PASSES; i++)
		rc = read_run(dir, percent);
	return rc;
}

/* ---- Many empty files ---- */

static int each_file(const char *dir, unsigned percent,
		     int (*one)(const char *path))
{
	unsigned n = part(FILES, percent);
	char path[PATH_MAX];

	for (unsigned i = 0; i < n; i++) {
		/* Each number comes once, but not in order: 7919 is prime. */
		snprintf(path, sizeof(path), "%s/files/f%u", dir,
			 (unsigned)((uint64_t)i * 7919 % n));
		if (one(path))
			return failed(path);
	}
	return 0;
}

static int create_one(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0644);

	return fd < 0 ? -1 : close(fd);
}

static int stat_one(const char *path)
{
	struct stat st;

	return stat(path, &st);
}

static int rename_one(const char *path)
{
	char to[PATH_MAX + 2];

	snprintf(to, sizeof(to), "%s.r", path);
	return rename(path, to);
}

static int unlink_one(const char *path)
{
	char name[PATH_MAX + 2];

	snprintf(name, sizeof(name), "%s.r", path);
	return unlink(name);
}

static int create_run(const char *dir, unsigned percent)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/files", dir);
	if (mkdir(path, 0755))
		return failed(path);
	return each_file(dir, percent, create_one);
}

static int stat_run(const char *dir, unsigned percent)
{
	return each_file(dir, percent, stat_one);
}

static int ls_run(const char *dir, unsigned percent)
{
	char path[PATH_MAX];
	struct dirent *entry;
	struct stat st;
	DIR *files;
	int rc = 0;

	(void)percent;
	snprintf(path, sizeof(path), "%s/files", dir);
	files = opendir(path);
	if (!files)
		return failed(path);
	while (!rc && (entry = readdir(files)))
		if (fstatat(dirfd(files), entry->d_name, &st,
			    AT_SYMLINK_NOFOLLOW))
			rc = failed(path);
	closedir(files);
	return rc;
}

static int rename_run(const char *dir, unsigned percent)
{
	return each_file(dir, percent, rename_one);
}

static int unlink_run(const char *dir, unsigned percent)
{
	return each_file(dir, percent, unlink_one);
}

/* ---- What tar(1) does when it unpacks small files ---- */

static int unpack_one(const char *path)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   { .tv_sec = 1 } };
	int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);
	bool done;

	if (fd < 0)
		return -1;
	done = write(fd, data_buf, UNPACKED_BYTES) == UNPACKED_BYTES &&
	       !futimens(fd, times) && !fchown(fd, 0, 0) && !fchmod(fd, 0644);
	return close(fd) || !done ? -1 : 0;
}

static int unpack_run(const char *dir, unsigned percent)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/tree", dir);
	if (mkdir(path, 0755))
		return failed(path);
	for (unsigned i = 0; i < part(UNPACKED, percent); i++) {
		snprintf(path, sizeof(path), "%s/tree/f%u", dir, i);
		if (unpack_one(path))
			return failed(path);
	}
	return 0;
}

/* ---- Append and fsync ---- */

static int append_run(const char *dir, unsigned percent)
{
	char path[PATH_MAX];
	int fd, rc = 0;

	snprintf(path, sizeof(path), "%s/log", dir);
	fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0644);
	if (fd < 0)
		return failed(path);
	for (unsigned i = 0; !rc && i < part(APPENDS, percent); i++)
		if (write(fd, data_buf, APPEND_BYTES) != APPEND_BYTES ||
		    fsync(fd))
			rc = failed(path);
	close(fd);
	return rc;
}

static const struct step steps[] = {
	{ "write", "buffered write of 512 MiB and fsync", 0.6, false,
	  write_run },
	{ "read", "read it, nothing cached", 0.8, true, read_run },
	{ "cached", "read it again, 4 times", 0.9, false, cached_run },
	{ "create", "20,000 empty files", 0.5, false, create_run },
	{ "stat", "stat them in another order, nothing cached", 0.6, true,
	  stat_run },
	{ "ls", "list them with attributes, nothing cached", 0.6, true,
	  ls_run },
	{ "rename", "rename them", 0.5, false, rename_run },
	{ "unlink", "unlink them", 0.5, false, unlink_run },
	{ "unpack", "5,000 files of 6,000 bytes, as tar does it", 0.5, false,
	  unpack_run },
	{ "append", "2,000 x (append 4 KiB + fsync)", 1.2, false,
	  append_run },
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

/* ---- Rounds ---- */

struct ram_system {
	const char *name, *mkfs, *mount;	/* no mount: the bare server */
};
/* The FUSE server that does nothing: nothing is formatted. */
#define BARE { "bare", ": '%s'", NULL }

/* The second one is compared with the first; the third is the bare server. */
static const struct ram_system with_ext4[] = {
	{ "traxfs", "mkfs.traxfs -f --measure=0 '%s' >/dev/null",
	  "traxfs '%s' '%s'" },
	{ "ext4", "mkfs.ext4 -q -F '%s'", "mount -t ext4 '%s' '%s'" },
	BARE,
};
static const struct ram_system with_other[] = {
	{ "traxfs", "mkfs.traxfs -f --measure=0 '%s' >/dev/null",
	  "traxfs '%s' '%s'" },
	{ "other", "\"$OTHER\"/mkfs.traxfs -f --measure=0 '%s' >/dev/null",
	  "\"$OTHER\"/traxfs '%s' '%s'" },
	BARE,
};
#define SYSTEMS 3u	/* Number of systems in either list below. */

struct ram {
	const struct ram_system *systems;
	char dir[PATH_MAX], mnt[PATH_MAX + 8], loop[64];
	struct guard guard;
	int (*mount_bare)(const char *device, const char *mnt, pid_t *pid);
	pid_t bare;		/* the bare server while it is mounted, or 0 */
	unsigned rounds, percent;
	double seconds[SYSTEMS][STEPS][MAX_ROUNDS];
};

static int ram_command(const struct ram *ram, const char *format)
{
	char command[2 * PATH_MAX + 256];

	snprintf(command, sizeof(command), format, ram->loop, ram->mnt);
	return shell_run("%s", command);
}

static int ram_mount(struct ram *ram, unsigned s)
{
	if (ram->systems[s].mount)
		return ram_command(ram, ram->systems[s].mount);
	return ram->mount_bare(ram->loop, ram->mnt, &ram->bare);
}

static int ram_unmount(struct ram *ram)
{
	int rc = shell_unmount(ram->mnt);

	if (ram->bare > 0)
		waitpid(ram->bare, NULL, 0);
	ram->bare = 0;
	return rc;
}

static int ram_cool(struct ram *ram, unsigned s)
{
	int rc;

	if (!ram->systems[s].mount)
		return shell_drop_caches();
	rc = ram_unmount(ram);
	if (!rc)
		rc = shell_drop_caches();
	return rc ? rc : ram_mount(ram, s);
}

static int ram_round(struct ram *ram, unsigned s, unsigned round)
{
	struct env *env = env_real();
	uint64_t start;
	int rc = ram_command(ram, ram->systems[s].mkfs);

	if (!rc)
		rc = ram_mount(ram, s);
	if (rc)
		return rc;
	for (unsigned i = 0; !rc && i < STEPS; i++) {
		if (steps[i].cold)
			rc = ram_cool(ram, s);
		start = env_now_ns(env);
		if (!rc)
			rc = steps[i].run(ram->mnt, ram->percent);
		ram->seconds[s][i][round] = (env_now_ns(env) - start) / 1e9;
	}
	ram_unmount(ram);
	return rc;
}

static double median(double *values, unsigned n)
{
	qsort(values, n, sizeof(*values), sort_double_cmp);
	return values[n / 2];
}

static bool is_listed(const char *list, const char *name)
{
	size_t n = strlen(name);
	const char *at = list;

	while (at && *at) {
		if (!strncmp(at, name, n) && (!at[n] || at[n] == ','))
			return true;
		at = strchr(at, ',');
		at += at != NULL;
	}
	return !list;
}

/* `bare` is the price of FUSE: what the same requests take when nothing is done
 * with them. */
static void report(struct ram *ram, const char *work)
{
	printf("%-8s %8s_s %8s_s %8s_s %7s %7s %9s\n", "work",
	       ram->systems[0].name, ram->systems[1].name,
	       ram->systems[2].name, "ratio", "wanted", "bare/ours");
	for (unsigned i = 0; i < STEPS; i++) {
		double ours = median(ram->seconds[0][i], ram->rounds);
		double theirs = median(ram->seconds[1][i], ram->rounds);
		double bare = median(ram->seconds[2][i], ram->rounds);

		if (is_listed(work, steps[i].name))
			printf("%-8s %10.4f %10.4f %10.4f %7.2f %7.2f %9.2f"
			       "  %s\n", steps[i].name, ours, theirs, bare,
			       theirs / ours, steps[i].wanted, bare / ours,
			       steps[i].about);
	}
}

static int ram_start(struct ram *ram)
{
	char path[PATH_MAX + 16];
	int rc;

	snprintf(ram->mnt, sizeof(ram->mnt), "%s/mnt", ram->dir);
	rc = shell_run("mkdir '%s' && truncate -s %uM '%s/image' && "
		       "losetup --find --show '%s/image' > '%s/loop'",
		       ram->mnt, IMAGE_MIB, ram->dir, ram->dir, ram->dir);
	snprintf(path, sizeof(path), "%s/loop", ram->dir);
	return rc ? rc : shell_word(path, ram->loop, sizeof(ram->loop));
}

int ram_run(const struct ram_options *options)
{
	struct ram *ram = calloc(1, sizeof(*ram));
	int rc;

	if (!ram)
		return -ENOMEM;
	ram->mount_bare = options->mount_bare;
	ram->systems = options->other ? with_other : with_ext4;
	ram->rounds = options->rounds ? options->rounds : 3;
	if (ram->rounds > MAX_ROUNDS)
		ram->rounds = MAX_ROUNDS;
	ram->percent = options->percent ? options->percent : 100;
	snprintf(ram->dir, sizeof(ram->dir), "%s/traxbench-XXXXXX",
		 options->image_dir ? options->image_dir : "/dev/shm");
	if (!mkdtemp(ram->dir)) {
		rc = failed(ram->dir);
		free(ram);
		return rc;
	}
	rc = guard_begin(&ram->guard, ram->dir);
	if (rc) {
		free(ram);
		return rc;
	}
	rc = ram_start(ram);
	for (unsigned r = 0; !rc && r < ram->rounds; r++)
		for (unsigned s = 0; !rc && s < SYSTEMS; s++)
			rc = ram_round(ram, s, r);
	if (!rc)
		report(ram, options->work);
	guard_end(&ram->guard, ram->dir);
	free(ram);
	return rc;
}

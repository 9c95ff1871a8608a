/*
 * work.c - see work.h.  Data are pseudo-random, so that nothing compresses,
 * and the same for every file system.
 */
#include "bench/work.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/msg.h"

#define MIB (1u << 20)
/* MiB of the file that is scanned, and of each of the two that are compared. */
#define SCAN_MIB 256u
#define DIFF_MIB 96u
/* Files of which the first block is read, and bytes of each. */
#define FIRST_FILES 1000u
#define FIRST_BYTES 65536u
/* Files of the source tree, files in a directory, and mean bytes of a file. */
#define TREE_FILES 10000u
#define TREE_PER_DIR 100u
#define TREE_MEAN_BYTES 6144u
/* Appends, and random reads.  All sizes are round numbers; --percent scales
 * them. */
#define APPENDS 1000u
#define RANDOM_READS 1000u

static unsigned scaled(unsigned n, unsigned percent)
{
	unsigned long s = (unsigned long)n * percent / 100;

	return s ? s : 1;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void fill(void *buf, size_t bytes, uint64_t seed)
{
	uint64_t *at = buf, state = seed * 0x9e3779b97f4a7c15ull + 1;

	for (size_t i = 0; i < bytes / 8; i++)
		at[i] = next_random(&state);
}

static int failed(const char *what, const char *path)
{
	int rc = -errno;

	msg_error("%s %s: %s", what, path, strerror(errno));
	return rc;
}

/* ---- Pieces ---- */

static int write_file(const char *path, uint64_t bytes, uint64_t seed)
{
	static char buf[MIB] __attribute__((aligned(4096)));
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);

	if (fd < 0)
		return failed("create", path);
	while (bytes) {
		size_t n = bytes < MIB ? bytes : MIB;

		fill(buf, (n + 7) & ~7ul, seed++);
		if (write(fd, buf, n) != (ssize_t)n) {
			close(fd);
			return failed("write", path);
		}
		bytes -= n;
	}
	return close(fd) ? failed("close", path) : 0;
}

static int read_file(const char *path, uint64_t most)
{
	static char buf[MIB];
	int fd = open(path, O_RDONLY);
	ssize_t n = 1;

	if (fd < 0)
		return failed("open", path);
	while (most && n > 0) {
		n = read(fd, buf, most < MIB ? most : MIB);
		most -= n > 0 ? n : 0;
	}
	close(fd);
	return n < 0 ? failed("read", path) : 0;
}

static void path_of(char *path, const char *dir, const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", dir, name);
}

/* ---- scan, diff, copy ---- */

static int scan_prepare(const char *dir, unsigned percent)
{
	char path[PATH_MAX];

	path_of(path, dir, "scan");
	return write_file(path, (uint64_t)scaled(SCAN_MIB, percent) * MIB, 1);
}

static int scan_run(const char *dir, unsigned percent)
{
	char path[PATH_MAX];

	(void)percent;
	path_of(path, dir, "scan");
	return read_file(path, UINT64_MAX);
}

static double transfer(const struct work_drive *drive, double bytes)
{
	return bytes / drive->media_bytes_per_second;
}

static double scan_limit(const struct work_drive *drive, unsigned percent)
{
	return transfer(drive, (double)scaled(SCAN_MIB, percent) * MIB);
}

static int diff_prepare(const char *dir, unsigned percent)
{
	char path[PATH_MAX];
	int rc;

	path_of(path, dir, "a");
	rc = write_file(path, (uint64_t)scaled(DIFF_MIB, percent) * MIB, 7);
	path_of(path, dir, "b");
	return rc ? rc
		  : write_file(path,
			       (uint64_t)scaled(DIFF_MIB, percent) * MIB, 7);
}

static int diff_run(const char *dir, unsigned percent)
{
	char a[PATH_MAX], b[PATH_MAX];
	static char buf[2][65536];
	int rc = 0, fd[2];
	ssize_t n;

	(void)percent;
	path_of(a, dir, "a");
	path_of(b, dir, "b");
	fd[0] = open(a, O_RDONLY);
	fd[1] = open(b, O_RDONLY);
	if (fd[0] < 0 || fd[1] < 0)
		return failed("open", a);
	while ((n = read(fd[0], buf[0], sizeof(buf[0]))) > 0)
		if (read(fd[1], buf[1], n) != n ||
		    memcmp(buf[0], buf[1], n)) {
			msg_error("%s and %s differ", a, b);
			rc = -EIO;
			break;
		}
	close(fd[0]);
	close(fd[1]);
	return n < 0 ? -EIO : rc;
}

static double diff_limit(const struct work_drive *drive, unsigned percent)
{
	return transfer(drive, 2.0 * scaled(DIFF_MIB, percent) * MIB);
}

static int copy_prepare(const char *dir, unsigned percent)
{
	char path[PATH_MAX];

	path_of(path, dir, "from");
	return write_file(path, (uint64_t)scaled(DIFF_MIB, percent) * MIB, 3);
}

static int copy_run(const char *dir, unsigned percent)
{
	static char buf[131072];
	char from[PATH_MAX], to[PATH_MAX];
	int in, out, rc = 0;
	ssize_t n;

	(void)percent;
	path_of(from, dir, "from");
	path_of(to, dir, "to");
	in = open(from, O_RDONLY);
	out = open(to, O_CREAT | O_WRONLY | O_TRUNC, 0644);
	if (in < 0 || out < 0)
		return failed("open", to);
	while (!rc && (n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			rc = failed("write", to);
	close(in);
	return close(out) ? failed("close", to) : rc;
}

/* ---- first bytes ---- */

static int first_path(char *path, const char *dir, unsigned i)
{
	return snprintf(path, PATH_MAX, "%s/first%u", dir, i);
}

static int first_prepare(const char *dir, unsigned percent)
{
	char path[PATH_MAX];
	int rc = 0;

	for (unsigned i = 0; i < scaled(FIRST_FILES, percent) && !rc; i++) {
		first_path(path, dir, i);
		rc = write_file(path, FIRST_BYTES, i);
	}
	return rc;
}

static int first_run(const char *dir, unsigned percent)
{
	char path[PATH_MAX];
	int rc = 0;

	for (unsigned i = 0; i < scaled(FIRST_FILES, percent) && !rc; i++) {
		first_path(path, dir, i);
		rc = read_file(path, 1);
	}
	return rc;
}

static double first_limit(const struct work_drive *drive, unsigned percent)
{
	return transfer(drive, 4096.0 * scaled(FIRST_FILES, percent));
}

/* ---- a tree of small files ---- */

static int tree_path(char *path, const char *dir, unsigned i)
{
	return snprintf(path, PATH_MAX, "%s/tree/d%u/f%u", dir,
			i / TREE_PER_DIR, i);
}

static int nothing(const char *dir, unsigned percent)
{
	(void)dir;
	(void)percent;
	return 0;
}

static int unpack_run(const char *dir, unsigned percent)
{
	char path[PATH_MAX];
	uint64_t state = 99;
	int rc = 0;

	path_of(path, dir, "tree");
	if (mkdir(path, 0755))
		return failed("mkdir", path);
	for (unsigned i = 0; i < scaled(TREE_FILES, percent) && !rc; i++) {
		if (i % TREE_PER_DIR == 0) {
			snprintf(path, sizeof(path), "%s/tree/d%u", dir,
				 i / TREE_PER_DIR);
			if (mkdir(path, 0755))
				return failed("mkdir", path);
		}
		tree_path(path, dir, i);
		rc = write_file(path,
				1 + next_random(&state) %
					    (2 * TREE_MEAN_BYTES),
				i);
	}
	return rc;
}

static int readtree_run(const char *dir, unsigned percent)
{
	char path[PATH_MAX];
	int rc = 0;

	for (unsigned i = 0; i < scaled(TREE_FILES, percent) && !rc; i++) {
		tree_path(path, dir, i);
		rc = read_file(path, UINT64_MAX);
	}
	return rc;
}

static double tree_limit(const struct work_drive *drive, unsigned percent)
{
	return transfer(drive,
			(double)scaled(TREE_FILES, percent) * TREE_MEAN_BYTES);
}

/* ---- append + fsync ---- */

static int append_run(const char *dir, unsigned percent)
{
	static char buf[4096];
	char path[PATH_MAX];
	int fd, rc = 0;

	path_of(path, dir, "log");
	fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0644);
	if (fd < 0)
		return failed("create", path);
	for (unsigned i = 0; i < scaled(APPENDS, percent) && !rc; i++) {
		fill(buf, sizeof(buf), i);
		if (write(fd, buf, sizeof(buf)) != sizeof(buf) || fsync(fd))
			rc = failed("append to", path);
	}
	close(fd);
	return rc;
}

static double append_limit(const struct work_drive *drive, unsigned percent)
{
	return transfer(drive, 4096.0 * scaled(APPENDS, percent));
}

/* ---- random reads ---- */

struct bench_reader {
	pthread_t thread;
	int fd, rc;
	unsigned reads;
	uint64_t blocks, seed;
};

static void *read_random(void *arg)
{
	struct bench_reader *r = arg;
	void *buf;

	if (posix_memalign(&buf, 4096, 4096)) {
		r->rc = -ENOMEM;
		return NULL;
	}
	for (unsigned i = 0; i < r->reads && !r->rc; i++) {
		uint64_t block = next_random(&r->seed) % r->blocks;

		if (pread(r->fd, buf, 4096, block * 4096) != 4096)
			r->rc = -EIO;
	}
	free(buf);
	return NULL;
}

static int random_reads(const char *dir, unsigned reads, unsigned depth)
{
	struct bench_reader reader[16];
	char path[PATH_MAX];
	struct stat st;
	int fd, rc = 0;

	path_of(path, dir, "scan");
	fd = open(path, O_RDONLY | O_DIRECT);
	if (fd < 0 || fstat(fd, &st))
		return failed("open", path);
	for (unsigned i = 0; i < depth; i++) {
		reader[i] = (struct bench_reader){ .fd = fd,
					     .reads = reads / depth,
					     .blocks = st.st_size / 4096,
					     .seed = 12345 + i };
		if (pthread_create(&reader[i].thread, NULL, read_random,
				   &reader[i]))
			return -EAGAIN;
	}
	for (unsigned i = 0; i < depth; i++) {
		pthread_join(reader[i].thread, NULL);
		if (reader[i].rc)
			rc = reader[i].rc;
	}
	close(fd);
	if (rc)
		msg_error("read %s: %s", path, strerror(-rc));
	return rc;
}

static int random1_run(const char *dir, unsigned percent)
{
	return random_reads(dir, scaled(RANDOM_READS, percent), 1);
}

static int random16_run(const char *dir, unsigned percent)
{
	return random_reads(dir, scaled(RANDOM_READS, percent), 16);
}

const struct work work_table[] = {
	{ "scan", "read a file of 256 MiB", false, scan_prepare, scan_run,
	  scan_limit },
	{ "diff", "compare two files of 96 MiB", false, diff_prepare, diff_run,
	  diff_limit },
	{ "copy", "copy a file of 96 MiB, with sync", true, copy_prepare,
	  copy_run, diff_limit },
	{ "first", "first byte of 1,000 files of 64 KiB", false, first_prepare,
	  first_run, first_limit },
	{ "unpack", "create a tree of 10,000 small files, with sync", true,
	  nothing, unpack_run, tree_limit },
	{ "readtree", "read that tree", false, unpack_run, readtree_run,
	  tree_limit },
	{ "append", "1,000 x (append 4 KiB + fsync)", true, nothing,
	  append_run, append_limit },
	{ "random1", "1,000 random reads of 4 KiB in 256 MiB, one at a time",
	  false, scan_prepare, random1_run, NULL },
	{ "random16", "the same, sixteen at a time", false, scan_prepare,
	  random16_run, NULL },
	{ NULL, NULL, false, NULL, NULL, NULL },
};


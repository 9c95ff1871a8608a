/*
 * work.c - see work.h.  Data are pseudo-random, so that nothing compresses,
 * and the same for every file system.
 */
#include "bench/work_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/msg.h"

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
/* Reads of the two readers that think, and nanoseconds of a thought. */
#define THINKING_READS 600u
#define THINK_NS 10000000u

unsigned work_scaled(unsigned n, unsigned percent)
{
	unsigned long s = (unsigned long)n * percent / 100;

	return s ? s : 1;
}

uint64_t work_random(uint64_t *state)
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
		at[i] = work_random(&state);
}

int work_failed(const char *what, const char *path)
{
	int rc = -errno;

	msg_error("%s %s: %s", what, path, strerror(errno));
	return rc;
}

void work_took(struct work_result *result, uint64_t begun_ns)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const double took = (double)(env_now_ns(env_real()) - begun_ns) / 1e9;
	double *more;

	pthread_mutex_lock(&lock);
	if (result->n == result->room) {
		result->room = result->room ? 2 * result->room : 1024;
		more = realloc(result->latency,
			       result->room * sizeof(*result->latency));
		if (!more)
			abort();
		result->latency = more;
	}
	result->latency[result->n++] = took;
	pthread_mutex_unlock(&lock);
}

/* ---- Parts ---- */

int work_write_file(const char *path, uint64_t bytes, uint64_t seed)
{
	static char buf[MIB] __attribute__((aligned(4096)));
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);

	if (fd < 0)
		return work_failed("create", path);
	while (bytes) {
		size_t n = bytes < MIB ? bytes : MIB;

		fill(buf, (n + 7) & ~7ul, seed++);
		if (write(fd, buf, n) != (ssize_t)n) {
			close(fd);
			return work_failed("write", path);
		}
		bytes -= n;
	}
	return close(fd) ? work_failed("close", path) : 0;
}

int work_read_file(const char *path, uint64_t most)
{
	static char buf[MIB];
	int fd = open(path, O_RDONLY);
	ssize_t n = 1;

	if (fd < 0)
		return work_failed("open", path);
	while (most && n > 0) {
		n = read(fd, buf, most < MIB ? most : MIB);
		most -= n > 0 ? n : 0;
	}
	close(fd);
	return n < 0 ? work_failed("read", path) : 0;
}

static void path_of(char *path, const char *dir, const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", dir, name);
}

/* ---- scan, diff, copy ---- */

/* `mib` MiB in bytes, scaled. */
static uint64_t mib(unsigned n, unsigned percent)
{
	return (uint64_t)work_scaled(n, percent) * MIB;
}

static int scan_prepare(const char *dir, unsigned percent)
{
	char path[PATH_MAX];

	path_of(path, dir, "scan");
	return work_write_file(path, mib(SCAN_MIB, percent), 1);
}

static int scan_run(const char *dir, unsigned percent,
		    struct work_result *result)
{
	char path[PATH_MAX];

	(void)result;
	(void)percent;
	path_of(path, dir, "scan");
	return work_read_file(path, UINT64_MAX);
}

static double transfer(const struct work_drive *drive, double bytes)
{
	return bytes / drive->media_bytes_per_second;
}

static double scan_limit(const struct work_drive *drive, unsigned percent)
{
	return transfer(drive, (double)work_scaled(SCAN_MIB, percent) * MIB);
}

static int diff_prepare(const char *dir, unsigned percent)
{
	char path[PATH_MAX];
	int rc;

	path_of(path, dir, "a");
	rc = work_write_file(path, mib(DIFF_MIB, percent), 7);
	path_of(path, dir, "b");
	return rc ? rc : work_write_file(path, mib(DIFF_MIB, percent), 7);
}

static int diff_run(const char *dir, unsigned percent,
		    struct work_result *result)
{
	char a[PATH_MAX], b[PATH_MAX];
	static char buf[2][65536];
	int rc = 0, fd[2];
	ssize_t n;

	(void)result;
	(void)percent;
	path_of(a, dir, "a");
	path_of(b, dir, "b");
	fd[0] = open(a, O_RDONLY);
	fd[1] = open(b, O_RDONLY);
	if (fd[0] < 0 || fd[1] < 0)
		return work_failed("open", a);
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
	return transfer(drive, 2.0 * work_scaled(DIFF_MIB, percent) * MIB);
}

static int copy_prepare(const char *dir, unsigned percent)
{
	char path[PATH_MAX];

	path_of(path, dir, "from");
	return work_write_file(path, mib(DIFF_MIB, percent), 3);
}

static int copy_run(const char *dir, unsigned percent,
		    struct work_result *result)
{
	static char buf[131072];
	char from[PATH_MAX], to[PATH_MAX];
	int in, out, rc = 0;
	ssize_t n;

	(void)result;
	(void)percent;
	path_of(from, dir, "from");
	path_of(to, dir, "to");
	in = open(from, O_RDONLY);
	out = open(to, O_CREAT | O_WRONLY | O_TRUNC, 0644);
	if (in < 0 || out < 0)
		return work_failed("open", to);
	while (!rc && (n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			rc = work_failed("write", to);
	close(in);
	return close(out) ? work_failed("close", to) : rc;
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

	for (unsigned i = 0; i < work_scaled(FIRST_FILES, percent) && !rc;
	     i++) {
		first_path(path, dir, i);
		rc = work_write_file(path, FIRST_BYTES, i);
	}
	return rc;
}

static int first_run(const char *dir, unsigned percent,
		    struct work_result *result)
{
	char path[PATH_MAX];
	int rc = 0;

	(void)result;
	for (unsigned i = 0; i < work_scaled(FIRST_FILES, percent) && !rc;
	     i++) {
		first_path(path, dir, i);
		rc = work_read_file(path, 1);
	}
	return rc;
}

static double first_limit(const struct work_drive *drive, unsigned percent)
{
	return transfer(drive, 4096.0 * work_scaled(FIRST_FILES, percent));
}

/* ---- a tree of small files ---- */

static int tree_path(char *path, const char *dir, unsigned i)
{
	return snprintf(path, PATH_MAX, "%s/tree/d%u/f%u", dir,
			i / TREE_PER_DIR, i);
}

/* Prepares a workload that needs nothing before it. */
static int work_nothing(const char *dir, unsigned percent)
{
	(void)dir;
	(void)percent;
	return 0;
}

static int unpack_run(const char *dir, unsigned percent,
		    struct work_result *result)
{
	char path[PATH_MAX];
	uint64_t state = 99;
	int rc = 0;

	(void)result;
	path_of(path, dir, "tree");
	if (mkdir(path, 0755))
		return work_failed("mkdir", path);
	for (unsigned i = 0; i < work_scaled(TREE_FILES, percent) && !rc; i++) {
		if (i % TREE_PER_DIR == 0) {
			snprintf(path, sizeof(path), "%s/tree/d%u", dir,
				 i / TREE_PER_DIR);
			if (mkdir(path, 0755))
				return work_failed("mkdir", path);
		}
		tree_path(path, dir, i);
		rc = work_write_file(path,
				1 + work_random(&state) %
					    (2 * TREE_MEAN_BYTES),
				i);
	}
	return rc;
}

static int tree_prepare(const char *dir, unsigned percent)
{
	return unpack_run(dir, percent, NULL);
}

static int readtree_run(const char *dir, unsigned percent,
		    struct work_result *result)
{
	char path[PATH_MAX];
	int rc = 0;

	(void)result;
	for (unsigned i = 0; i < work_scaled(TREE_FILES, percent) && !rc; i++) {
		tree_path(path, dir, i);
		rc = work_read_file(path, UINT64_MAX);
	}
	return rc;
}

static double tree_limit(const struct work_drive *drive, unsigned percent)
{
	return transfer(drive, (double)TREE_MEAN_BYTES *
			       work_scaled(TREE_FILES, percent));
}

/* ---- append + fsync ---- */

static int append_run(const char *dir, unsigned percent,
		    struct work_result *result)
{
	static char buf[4096];
	char path[PATH_MAX];
	uint64_t begun_ns;
	int fd, rc = 0;

	path_of(path, dir, "log");
	fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0644);
	if (fd < 0)
		return work_failed("create", path);
	for (unsigned i = 0; i < work_scaled(APPENDS, percent) && !rc; i++) {
		begun_ns = env_now_ns(env_real());
		fill(buf, sizeof(buf), i);
		if (write(fd, buf, sizeof(buf)) != sizeof(buf) || fsync(fd))
			rc = work_failed("append to", path);
		work_took(result, begun_ns);
	}
	close(fd);
	return rc;
}

static double append_limit(const struct work_drive *drive, unsigned percent)
{
	return transfer(drive, 4096.0 * work_scaled(APPENDS, percent));
}

/* ---- random reads ---- */

struct bench_reader {
	pthread_t thread;
	int fd, rc;
	unsigned reads;
	uint64_t blocks, seed;
	uint64_t think_ns;
	struct work_result *result;
};

static void *read_random(void *arg)
{
	struct bench_reader *r = arg;
	const struct timespec think = { .tv_nsec = (long)r->think_ns };
	void *buf;

	if (posix_memalign(&buf, 4096, 4096)) {
		r->rc = -ENOMEM;
		return NULL;
	}
	for (unsigned i = 0; i < r->reads && !r->rc; i++) {
		uint64_t block = work_random(&r->seed) % r->blocks;
		uint64_t begun_ns = env_now_ns(env_real());

		if (pread(r->fd, buf, 4096, block * 4096) != 4096)
			r->rc = -EIO;
		work_took(r->result, begun_ns);
		if (r->think_ns)
			nanosleep(&think, NULL);
	}
	free(buf);
	return NULL;
}

static int random_reads(const char *dir, unsigned reads, unsigned depth,
			uint64_t think_ns, struct work_result *result)
{
	const uint64_t begun_ns = env_now_ns(env_real());
	struct bench_reader reader[16];
	unsigned begun = 0;
	char path[PATH_MAX];
	struct stat st;
	int fd, rc = 0;

	path_of(path, dir, "scan");
	fd = open(path, O_RDONLY | O_DIRECT);
	if (fd < 0 || fstat(fd, &st))
		return work_failed("open", path);
	for (; begun < depth && !rc; begun += !rc) {
		reader[begun] = (struct bench_reader){
			.fd = fd, .reads = reads / depth,
			.blocks = st.st_size / 4096, .seed = 12345 + begun,
			.think_ns = think_ns, .result = result };
		rc = -pthread_create(&reader[begun].thread, NULL, read_random,
				     &reader[begun]);
	}
	for (unsigned i = 0; i < begun; i++) {
		pthread_join(reader[i].thread, NULL);
		rc = rc ? rc : reader[i].rc;
	}
	close(fd);
	if (rc)
		msg_error("read %s: %s", path, strerror(-rc));
	result->value = result->n * 1e9 /
			(double)(env_now_ns(env_real()) - begun_ns);
	return rc;
}

static int random1_run(const char *dir, unsigned percent,
		    struct work_result *result)
{
	return random_reads(dir, work_scaled(RANDOM_READS, percent), 1, 0,
			    result);
}

static int random16_run(const char *dir, unsigned percent,
		    struct work_result *result)
{
	return random_reads(dir, work_scaled(RANDOM_READS, percent), 16, 0,
			    result);
}

static int thinking_run(const char *dir, unsigned percent,
			struct work_result *result)
{
	return random_reads(dir, work_scaled(THINKING_READS, percent), 2,
			    THINK_NS, result);
}

/* Half a revolution for each read; seeks are left out. */
static double random1_limit(const struct work_drive *drive, unsigned percent)
{
	return work_scaled(RANDOM_READS, percent) *
	       drive->revolution_seconds / 2;
}

const struct work work_table[] = {
	{ "scan", "read a file of 256 MiB", .prepare = scan_prepare,
	  .run = scan_run, .limit_seconds = scan_limit },
	{ "diff", "compare two files of 96 MiB", .prepare = diff_prepare,
	  .run = diff_run, .limit_seconds = diff_limit },
	{ "copy", "copy a file of 96 MiB, with sync", .writes = true,
	  .prepare = copy_prepare, .run = copy_run,
	  .limit_seconds = diff_limit },
	{ "first", "first byte of 1,000 files of 64 KiB",
	  .prepare = first_prepare, .run = first_run,
	  .limit_seconds = first_limit },
	{ "unpack", "create a tree of 10,000 small files, with sync",
	  .writes = true, .prepare = work_nothing, .run = unpack_run,
	  .limit_seconds = tree_limit },
	{ "readtree", "read that tree", .prepare = tree_prepare,
	  .run = readtree_run, .limit_seconds = tree_limit },
	{ "twotrees", "read two trees interleaved, the third time", .before = 2,
	  .prepare = work_pair_prepare, .run = work_pair_run,
	  .limit_seconds = work_pair_limit },
	{ "append", "1,000 x (append 4 KiB + fsync)", .writes = true,
	  .prepare = work_nothing, .run = append_run,
	  .limit_seconds = append_limit },
	{ "random1", "1,000 random reads of 4 KiB in 256 MiB, one at a time",
	  .unit = "reads/s", .prepare = scan_prepare, .run = random1_run,
	  .limit_seconds = random1_limit },
	{ "random16", "the same, sixteen at a time", .unit = "reads/s",
	  .prepare = scan_prepare, .run = random16_run },
	{ "readers", "two random readers that think for 10 ms",
	  .unit = "reads/s", .prepare = scan_prepare, .run = thinking_run },
	{ "beside", "the same beside a scrub, or a scan of the disk",
	  .unit = "reads/s", .beside = true, .prepare = scan_prepare,
	  .run = thinking_run },
	{ "mail", "20,000 small files and 20,000 transactions, as Postmark",
	  .writes = true, .prepare = work_nothing, .run = work_mail_run,
	  .limit_seconds = work_mail_limit },
	{ "video", "streams of 4 Mbit/s in their deadlines, O_DIRECT",
	  .unit = "streams", .prepare = work_video_prepare,
	  .run = work_video_run },
	{ "buffered", "the same through the page cache", .unit = "streams",
	  .prepare = work_video_prepare, .run = work_video_buffered_run },
	{ NULL, NULL, .prepare = NULL },
};

/*
 * work_small.c - workloads of many small files: two trees that are read
 * interleaved, a mail server as Postmark imitates it, and the use that makes a
 * file system old.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "bench/work_internal.h"

static int make_dirs(const char *dir, const char *name, unsigned n)
{
	char path[PATH_MAX];

	for (unsigned i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s%u", dir, name, i);
		if (mkdir(path, 0755))
			return work_failed("mkdir", path);
	}
	return 0;
}

/* ---- two trees ---- */

/* Files of a tree, and its directories; bytes of a file at most. */
#define PAIR_FILES 700u
#define PAIR_DIRS 40u
#define PAIR_BYTES 16384u

static void pair_path(char *path, const char *dir, const char *tree,
		      unsigned i)
{
	snprintf(path, PATH_MAX, "%s/%s%u/f%u", dir, tree, i % PAIR_DIRS, i);
}

/* Bytes of a file, the same for its counterpart and in every round. */
static unsigned pair_bytes(unsigned i)
{
	uint64_t state = i + 1;

	work_random(&state);
	return 1 + (unsigned)(work_random(&state) % PAIR_BYTES);
}

/* One tree is made after the other one, the files of all its directories in
 * any order, as a tree that has grown. */
int work_pair_prepare(const char *dir, unsigned percent)
{
	const unsigned n = work_scaled(PAIR_FILES, percent);
	static const char *const trees[] = { "here", "there" };
	unsigned order[PAIR_FILES * 100];
	uint64_t seed = 5;
	char path[PATH_MAX];
	int rc = n > PAIR_FILES * 100 ? -EINVAL : 0;

	for (unsigned tree = 0; tree < 2 && !rc; tree++) {
		rc = make_dirs(dir, trees[tree], PAIR_DIRS);
		for (unsigned i = 0; i < n; i++) {
			unsigned j = (unsigned)(work_random(&seed) % (i + 1));

			order[i] = order[j];
			order[j] = i;
		}
		for (unsigned i = 0; i < n && !rc; i++) {
			pair_path(path, dir, trees[tree], order[i]);
			rc = work_write_file(path, pair_bytes(order[i]), i);
		}
	}
	return rc;
}

int work_pair_run(const char *dir, unsigned percent,
		  struct work_result *result)
{
	const unsigned n = work_scaled(PAIR_FILES, percent);
	char path[PATH_MAX];
	int rc = 0;

	(void)result;
	for (unsigned d = 0; d < PAIR_DIRS && !rc; d++)
		for (unsigned i = d; i < n && !rc; i += PAIR_DIRS) {
			pair_path(path, dir, "here", i);
			rc = work_read_file(path, UINT64_MAX);
			pair_path(path, dir, "there", i);
			rc = rc ? rc : work_read_file(path, UINT64_MAX);
		}
	return rc;
}

double work_pair_limit(const struct work_drive *drive, unsigned percent)
{
	const unsigned n = work_scaled(PAIR_FILES, percent);
	double bytes = 0;

	for (unsigned i = 0; i < n; i++)
		bytes += 2.0 * pair_bytes(i);
	return bytes / drive->media_bytes_per_second;
}

/* ---- mail ---- */

/* Files in the beginning, transactions, directories, and bytes of a file: those
 * of Postmark's usual setting. */
#define MAIL_FILES 20000u
#define MAIL_TRANSACTIONS 20000u
#define MAIL_DIRS 100u
#define MAIL_LEAST 5120u
#define MAIL_MOST 10240u
#define APPEND_BYTES 4096u

struct mail {
	const char *dir;
	unsigned *number;	/* of each file that exists */
	unsigned files, made;
	uint64_t seed;
};

static void mail_path(const struct mail *m, char *path, unsigned number)
{
	snprintf(path, PATH_MAX, "%s/m%u/%u", m->dir, number % MAIL_DIRS,
		 number);
}

static int mail_create(struct mail *m)
{
	char path[PATH_MAX];
	const unsigned number = m->made++;
	const uint64_t bytes = MAIL_LEAST + work_random(&m->seed) %
						    (MAIL_MOST - MAIL_LEAST);

	m->number[m->files++] = number;
	mail_path(m, path, number);
	return work_write_file(path, bytes, number);
}

static int mail_delete(struct mail *m)
{
	unsigned i = (unsigned)(work_random(&m->seed) % m->files);
	char path[PATH_MAX];

	mail_path(m, path, m->number[i]);
	m->number[i] = m->number[--m->files];
	return unlink(path) ? work_failed("unlink", path) : 0;
}

static int mail_append(const char *path)
{
	static const char data[APPEND_BYTES];
	int fd = open(path, O_WRONLY | O_APPEND);
	ssize_t n;

	if (fd < 0)
		return work_failed("open", path);
	n = write(fd, data, sizeof(data));
	close(fd);
	return n == (ssize_t)sizeof(data) ? 0 : work_failed("append to", path);
}

/* Reads a file or appends to one; makes one or deletes one. */
static int mail_transaction(struct mail *m)
{
	unsigned i = (unsigned)(work_random(&m->seed) % m->files);
	char path[PATH_MAX];
	int rc;

	mail_path(m, path, m->number[i]);
	rc = work_random(&m->seed) % 2 ? work_read_file(path, UINT64_MAX) :
					 mail_append(path);
	if (rc)
		return rc;
	return m->files < 2 || work_random(&m->seed) % 2 ? mail_create(m) :
							   mail_delete(m);
}

int work_mail_run(const char *dir, unsigned percent,
		  struct work_result *result)
{
	const unsigned n = work_scaled(MAIL_FILES, percent);
	const unsigned transactions = work_scaled(MAIL_TRANSACTIONS, percent);
	struct mail m = { .dir = dir, .seed = 42 };
	int rc = make_dirs(dir, "m", MAIL_DIRS);

	(void)result;
	m.number = malloc((n + transactions) * sizeof(*m.number));
	if (!m.number)
		return -ENOMEM;
	for (unsigned i = 0; i < n && !rc; i++)
		rc = mail_create(&m);
	for (unsigned i = 0; i < transactions && !rc; i++)
		rc = mail_transaction(&m);
	while (m.files && !rc)
		rc = mail_delete(&m);
	free(m.number);
	return rc;
}

/* The files of the beginning, written once: all else may be gone before it is
 * written. */
double work_mail_limit(const struct work_drive *drive, unsigned percent)
{
	return (double)work_scaled(MAIL_FILES, percent) *
	       (MAIL_LEAST + MAIL_MOST) / 2 / drive->media_bytes_per_second;
}

/* ---- age ---- */

/* Directories; bytes of small files; one file in this many is large. */
#define AGE_DIRS 32u
#define AGE_LEAST 4096u
#define AGE_MOST 65536u
#define AGE_LARGE_BYTES (2 * MIB)
#define AGE_LARGE_SHARE 64u
/* How often one file in this many is deleted and others are made. */
#define AGE_DAYS 5u
#define AGE_DELETE_SHARE 10u
/* Files that are made between two looks at how full it is. */
#define AGE_STEP 16u

static bool is_full(const char *dir, unsigned percent, int *rc)
{
	struct statvfs st;

	if (statvfs(dir, &st)) {
		*rc = work_failed("statvfs", dir);
		return true;
	}
	return (st.f_blocks - st.f_bavail) * 100 >= st.f_blocks * percent;
}

static void age_path(char *path, const char *dir, unsigned i)
{
	snprintf(path, PATH_MAX, "%s/a%u/%u", dir, i % AGE_DIRS, i);
}

static int age_fill(const char *dir, unsigned percent, unsigned *made,
		    uint64_t *seed)
{
	char path[PATH_MAX];
	int rc = 0;

	while (!rc && !is_full(dir, percent, &rc))
		for (unsigned i = 0; i < AGE_STEP && !rc; i++) {
			uint64_t bytes = AGE_LARGE_BYTES;

			if (work_random(seed) % AGE_LARGE_SHARE)
				bytes = AGE_LEAST + work_random(seed) %
						(AGE_MOST - AGE_LEAST);
			age_path(path, dir, *made);
			rc = work_write_file(path, bytes, (*made)++);
		}
	return rc;
}

int work_age(const char *dir, unsigned full_percent)
{
	char path[PATH_MAX];
	uint64_t seed = 17;
	unsigned made = 0;
	int rc = make_dirs(dir, "a", AGE_DIRS);

	for (unsigned day = 0; day <= AGE_DAYS && !rc; day++) {
		for (unsigned i = 0; day && i < made; i++) {
			age_path(path, dir, i);
			if (work_random(&seed) % AGE_DELETE_SHARE == 0 &&
			    unlink(path) && errno != ENOENT)
				return work_failed("unlink", path);
		}
		sync();
		rc = age_fill(dir, full_percent, &made, &seed);
	}
	return rc;
}

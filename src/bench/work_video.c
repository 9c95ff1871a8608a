/*
 * work_video.c - how many streams a file system serves in time: readers of
 * files of their own, each of which reads half a second's worth in each half
 * second.  The number is searched by halving; an attempt holds when at most one
 * read of a thousand came too late.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/units.h"
#include "bench/work_internal.h"

/* Files, and so the most streams; half-seconds that each lasts. */
#define VIDEOS 240u
#define VIDEOS_MOST 1024u
#define PERIODS 10u
#define PERIOD_NS (UINT64_C(500) * NS_PER_MS)
/* 4 Mbit/s for half a second; with O_DIRECT in whole blocks. */
#define PERIOD_BYTES 250000u
#define DIRECT_BYTES 249856u
/* One read in this many may be late. */
#define LATE_SHARE 1000u
/* Most attempts: a search of 1,000 needs ten. */
#define ATTEMPTS 10u

struct viewer {
	pthread_t thread;
	const char *dir;
	unsigned number, bytes;
	int flags;
	uint64_t begin_ns;	/* when its first period begins */
	unsigned late;
	int rc;
	struct work_result *result;
};

static unsigned videos(unsigned percent)
{
	const unsigned n = work_scaled(VIDEOS, percent);

	return n < VIDEOS_MOST ? n : VIDEOS_MOST;
}

static void video_path(char *path, const char *dir, unsigned i)
{
	snprintf(path, PATH_MAX, "%s/v%u", dir, i);
}

int work_video_prepare(const char *dir, unsigned percent)
{
	char path[PATH_MAX];
	int rc = 0;

	for (unsigned i = 0; i < videos(percent) && !rc; i++) {
		video_path(path, dir, i);
		rc = work_write_file(path, PERIODS * PERIOD_BYTES, i);
	}
	return rc;
}

static void wait_until(uint64_t ns)
{
	const uint64_t now_ns = env_now_ns(env_real());
	const uint64_t left_ns = ns > now_ns ? ns - now_ns : 0;

	nanosleep(&(struct timespec){ .tv_sec = left_ns / NS_PER_SECOND,
				      .tv_nsec = left_ns % NS_PER_SECOND },
		  NULL);
}

static void *view(void *arg)
{
	struct viewer *v = arg;
	char path[PATH_MAX];
	void *buf;
	int fd;

	video_path(path, v->dir, v->number);
	fd = open(path, O_RDONLY | v->flags);
	if (fd < 0 || posix_memalign(&buf, 4096, PERIOD_BYTES)) {
		v->rc = fd < 0 ? work_failed("open", path) : -ENOMEM;
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	for (unsigned i = 0; i < PERIODS && !v->rc; i++) {
		const uint64_t asked_ns = v->begin_ns + i * PERIOD_NS;

		wait_until(asked_ns);
		if (pread(fd, buf, v->bytes, (off_t)i * v->bytes) !=
		    (ssize_t)v->bytes)
			v->rc = work_failed("read", path);
		v->late += env_now_ns(env_real()) > asked_ns + PERIOD_NS;
		work_took(v->result, asked_ns);
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	free(buf);
	return NULL;
}

/* How many reads of n streams came too late; negative: an errno. */
static int attempt(const char *dir, unsigned n, int flags,
		   struct work_result *result)
{
	struct viewer *viewer = calloc(n, sizeof(*viewer));
	const uint64_t begin_ns = env_now_ns(env_real()) + PERIOD_NS;
	unsigned begun = 0, late = 0;
	int rc = 0;

	if (!viewer)
		return -ENOMEM;
	for (; begun < n && !rc; begun += !rc) {
		viewer[begun] = (struct viewer){
			.dir = dir, .number = begun, .flags = flags,
			.bytes = flags & O_DIRECT ? DIRECT_BYTES :
						    PERIOD_BYTES,
			.begin_ns = begin_ns, .result = result };
		rc = -pthread_create(&viewer[begun].thread, NULL, view,
				     &viewer[begun]);
	}
	for (unsigned i = 0; i < begun; i++) {
		pthread_join(viewer[i].thread, NULL);
		late += viewer[i].late;
		rc = rc ? rc : viewer[i].rc;
	}
	free(viewer);
	return rc ? rc : (int)late;
}

static int search_most(const char *dir, unsigned percent, int flags,
		       struct work_result *result)
{
	unsigned good = 0, bad = videos(percent) + 1;
	int late = 0;

	for (unsigned i = 0; bad - good > 1 && i < ATTEMPTS; i++) {
		const unsigned n = (good + bad) / 2;

		late = attempt(dir, n, flags, result);
		if (late < 0)
			return late;
		if ((unsigned)late * LATE_SHARE <= n * PERIODS)
			good = n;
		else
			bad = n;
	}
	result->value = good;
	return 0;
}

int work_video_run(const char *dir, unsigned percent,
		   struct work_result *result)
{
	return search_most(dir, percent, O_DIRECT, result);
}

int work_video_buffered_run(const char *dir, unsigned percent,
			    struct work_result *result)
{
	return search_most(dir, percent, 0, result);
}

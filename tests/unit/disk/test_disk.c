/*
 * test_disk.c - the real back ends on image files, through io_uring and through
 * plain system calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/msg.h"
#include "disk/disk.h"
#include "disk/device_file.h"
#include "tests/rig/test.h"

#define IMAGE_SECTORS 16384u
#define REQUESTS 200u
#define REQUEST_SECTORS 64u	/* at most; a multiple of 8 */

enum back_end { RING, PLAIN, BACK_ENDS };

static char dir[] = "/tmp/traxfs-disk-XXXXXX";
static char image[64];

static void quiet(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

static void setup(void)
{
	int fd;

	msg_set_sink(quiet, NULL);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(image, sizeof(image), "%s/image", dir);
	fd = open(image, O_CREAT | O_RDWR, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, IMAGE_SECTORS * SECTOR_BYTES + 100), 0);
	close(fd);
}

static void teardown(void)
{
	unlink(image);
	rmdir(dir);
}

static struct disk *open_as(enum back_end back_end, unsigned depth)
{
	struct disk_open_options options = { .depth = depth };
	struct disk *disk = NULL;
	struct device_file file;

	ck_assert_int_eq(device_file_init(&file, image, &options), 0);
	if (back_end == PLAIN || ring_open(&file, depth, &disk))
		ck_assert_int_eq(plain_open(&file, &disk), 0);
	return disk;
}

static void *buffer(size_t bytes)
{
	void *buf;

	ck_assert_int_eq(posix_memalign(&buf, 4096, bytes), 0);
	memset(buf, 0, bytes);
	return buf;
}

START_TEST(limits_are_told)
{
	struct disk *disk = open_as((enum back_end)_i, 4);

	ck_assert_uint_eq(disk->limits.sectors, IMAGE_SECTORS);
	ck_assert_uint_eq(disk->limits.physical_bytes, 4096);
	ck_assert(disk->limits.volatile_cache);
	ck_assert(!disk->limits.read_only);
	ck_assert_str_eq(disk->name, image);
	disk_close(disk);
}
END_TEST

START_TEST(sync_helpers_work)
{
	struct disk *disk = open_as((enum back_end)_i, 4);
	uint32_t sectors = 3 * disk->limits.max_sectors;
	size_t bytes = (size_t)sectors * SECTOR_BYTES, i;
	unsigned char *in = buffer(bytes), *out = buffer(bytes);

	for (i = 0; i < bytes; i++)
		in[i] = (unsigned char)(i * 7 + i / 512);
	ck_assert_int_eq(disk_write(disk, 800, sectors, in), 0);
	ck_assert_int_eq(disk_flush(disk), 0);
	ck_assert_int_eq(disk_read(disk, 800, sectors, out), 0);
	ck_assert_mem_eq(in, out, bytes);
	disk_close(disk);
	disk = open_as(RING, 1);
	memset(out, 0, bytes);
	ck_assert_int_eq(disk_read(disk, 808, 8, out), 0);
	ck_assert_mem_eq(in + 4096, out, 4096);
	disk_close(disk);
	free(in);
	free(out);
}
END_TEST

struct job {
	struct disk_request req;
	struct iovec iov[2];
	unsigned char *buf;
	unsigned done;
};

static void job_done(struct disk_request *req)
{
	struct job *job = req->owner;

	job->done++;
}

/* In places of their own, so that all may be outstanding at once. */
static void job_submit(struct disk *disk, struct job *job, unsigned i,
		       enum disk_op op, bool fua)
{
	uint32_t sectors = 8 + i * 8 % REQUEST_SECTORS;
	size_t first = 4096 * (i % 2), all = sectors * (size_t)SECTOR_BYTES;

	if (first >= all)
		first = 0;
	job->iov[0] = (struct iovec){ job->buf, first };
	job->iov[1] = (struct iovec){ job->buf + first, all - first };
	job->req = (struct disk_request){
		.op = op,
		.fua = fua,
		.sector = i * REQUEST_SECTORS,
		.sectors = sectors,
		.iov = first ? job->iov : job->iov + 1,
		.iov_n = first ? 2 : 1,
		.done = job_done,
		.owner = job,
	};
	disk_submit(disk, &job->req);
	ck_assert_uint_eq(job->done, op == DISK_READ);
}

static void wait_for(struct disk *disk, unsigned n)
{
	struct pollfd event = { disk_event_fd(disk), POLLIN, 0 };
	int got;

	while (n) {
		ck_assert_int_eq(poll(&event, 1, 10000), 1);
		got = disk_poll(disk, 0);
		ck_assert_int_ge(got, 0);
		ck_assert_uint_le((unsigned)got, n);
		n -= (unsigned)got;
	}
	ck_assert_int_eq(disk_poll(disk, -1), 0);
}

static void jobs_check(const struct job *jobs, unsigned times)
{
	unsigned i;

	for (i = 0; i < REQUESTS; i++) {
		ck_assert_uint_eq(jobs[i].done, times);
		ck_assert_int_eq(jobs[i].req.result, 0);
		ck_assert_uint_le(jobs[i].req.submit_ns,
				  jobs[i].req.complete_ns);
	}
}

START_TEST(many_outstanding_requests_all_complete)
{
	struct disk *disk = open_as((enum back_end)_i, 4);
	size_t bytes = REQUEST_SECTORS * (size_t)SECTOR_BYTES;
	static struct job jobs[REQUESTS];
	unsigned i;

	for (i = 0; i < REQUESTS; i++) {
		jobs[i].buf = buffer(bytes);
		memset(jobs[i].buf, (int)i + 1, bytes);
		job_submit(disk, &jobs[i], i, DISK_WRITE, i % 10 == 0);
	}
	wait_for(disk, REQUESTS);
	jobs_check(jobs, 1);
	for (i = 0; i < REQUESTS; i++) {
		memset(jobs[i].buf, 0, bytes);
		job_submit(disk, &jobs[i], i, DISK_READ, false);
	}
	wait_for(disk, REQUESTS);
	jobs_check(jobs, 2);
	for (i = 0; i < REQUESTS; i++) {
		bytes = jobs[i].req.sectors * (size_t)SECTOR_BYTES;
		ck_assert_uint_eq(jobs[i].buf[0], (i + 1) & 255);
		ck_assert_uint_eq(jobs[i].buf[bytes - 1], (i + 1) & 255);
		free(jobs[i].buf);
	}
	disk_close(disk);
}
END_TEST

START_TEST(bad_requests_complete_with_errors)
{
	struct disk_open_options options = { .read_only = true };
	struct disk *disk = open_as((enum back_end)_i, 2);
	void *buf = buffer(8192);

	ck_assert_int_eq(disk_read(disk, IMAGE_SECTORS, 8, buf), -EINVAL);
	ck_assert_int_eq(disk_read(disk, IMAGE_SECTORS - 8, 16, buf), -EINVAL);
	ck_assert_int_eq(disk_write(disk, UINT64_MAX - 7, 8, buf), -EINVAL);
	ck_assert_int_eq(disk_read(disk, 0, 0, buf), -EINVAL);
	/* The image shrinks under us: an error, not zeroes, not a hang. */
	ck_assert_int_eq(truncate(image, 4096), 0);
	ck_assert_int_eq(disk_read(disk, 0, 16, buf), -EIO);
	ck_assert_int_eq(disk_read(disk, 64, 8, buf), -EIO);
	ck_assert_int_eq(disk_read(disk, 0, 8, buf), 0);
	disk_close(disk);
	ck_assert_int_eq(disk_open(image, &options, &disk), 0);
	ck_assert(disk->limits.read_only);
	ck_assert_int_eq(disk_write(disk, 0, 8, buf), -EROFS);
	ck_assert_int_eq(disk_read(disk, 0, 8, buf), 0);
	disk_close(disk);
	free(buf);
}
END_TEST

START_TEST(what_is_no_disk_is_refused)
{
	struct disk_open_options options = { .exclusive = true };
	struct disk *disk, *other;

	ck_assert_int_eq(disk_open(dir, &options, &disk), -ENOTBLK);
	ck_assert_int_eq(disk_open("/dev/null", &options, &disk), -ENOTBLK);
	ck_assert_int_eq(disk_open("/none", &options, &disk), -ENOENT);
	ck_assert_int_eq(disk_open(image, &options, &disk), 0);
	ck_assert_int_eq(disk_open(image, &options, &other), -EBUSY);
	options.read_only = true;
	ck_assert_int_eq(disk_open(image, &options, &other), -EBUSY);
	options.exclusive = false;
	ck_assert_int_eq(disk_open(image, &options, &other), 0);
	disk_close(other);
	disk_close(disk);
	ck_assert_int_eq(truncate(image, 511), 0);
	ck_assert_int_eq(disk_open(image, &options, &disk), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("disk");
	TCase *all = tcase_create("all");

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_loop_test(all, limits_are_told, 0, BACK_ENDS);
	tcase_add_loop_test(all, sync_helpers_work, 0, BACK_ENDS);
	tcase_add_loop_test(all, many_outstanding_requests_all_complete,
			    0, BACK_ENDS);
	tcase_add_loop_test(all, bad_requests_complete_with_errors, 0,
			    BACK_ENDS);
	tcase_add_test(all, what_is_no_disk_is_refused);
	suite_add_tcase(suite, all);
	return test_run(suite);
}

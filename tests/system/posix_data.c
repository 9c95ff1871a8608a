/*
 * posix_data.c - contents: reading, writing, mapping, allocating, locking.
 */
#include "tests/system/posix_check.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#define BLOCK 4096

static int open_new(const char *name)
{
	int fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0644);

	CHECK(fd >= 0);
	return fd;
}

/* Bytes that differ from place to place. */
static void fill(unsigned char *buf, size_t n, unsigned seed)
{
	size_t i;

	for (i = 0; i < n; i++)
		buf[i] = (unsigned char)(i * 31 + i / 251 + seed);
}

static bool all_zero(const unsigned char *buf, size_t n)
{
	while (n--)
		if (*buf++)
			return false;
	return true;
}

static void check_boundary_sizes(void)
{
	static const size_t sizes[] = { 0, 1, 511, 512, 2047, 2048, 2049, 4095,
					4096, 4097, 65535, 65536, 65537,
					1048575, 1048576, 1048577, 3000000 };
	unsigned char *data = malloc(3000001), *back = malloc(3000001);
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ssize_t n = (ssize_t)sizes[i];
		int fd = open_new("f");

		fill(data, sizes[i], (unsigned)i);
		CHECK(write(fd, data, sizes[i]) == n);
		CHECK(fsync(fd) == 0);
		CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
		CHECK(pread(fd, back, sizes[i] + 1, 0) == n);
		CHECK(!memcmp(data, back, sizes[i]));
		CHECK(close(fd) == 0);
		CHECK(posix_stat("f").st_size == n);
	}
	free(data);
	free(back);
}

static void check_sparse(void)
{
	unsigned char buf[BLOCK];
	off_t far = 1ll << 40;
	struct stat st;
	int fd = open_new("f");

	CHECK(pwrite(fd, "end", 3, far) == 3);
	CHECK(fsync(fd) == 0);
	CHECK(fstat(fd, &st) == 0 && st.st_size == far + 3);
	CHECK(st.st_blocks < 1000);
	memset(buf, 1, sizeof(buf));
	CHECK(pread(fd, buf, BLOCK, far / 2) == BLOCK && all_zero(buf, BLOCK));
	CHECK(pread(fd, buf, BLOCK, far) == 3 && !memcmp(buf, "end", 3));
	CHECK(pread(fd, buf, BLOCK, far + 3) == 0);
	/* Nothing that is there may be called a hole. */
	CHECK(lseek(fd, far, SEEK_DATA) == far);
	FAILS_WITH(ENXIO, lseek(fd, far + 3, SEEK_DATA));
	FAILS_WITH(EINVAL, pwrite(fd, "x", 1, -1));
	CHECK(close(fd) == 0);
}

static void check_dirty_is_data(void)
{
	int fd = open_new("f");

	CHECK(ftruncate(fd, 1 << 20) == 0 && fsync(fd) == 0);
	CHECK(pwrite(fd, "x", 1, 500000) == 1);
	CHECK(lseek(fd, 0, SEEK_DATA) <= 500000);
	CHECK(close(fd) == 0);
}

/* What a file once had beyond its end never comes back. */
static void check_truncate(void)
{
	unsigned char buf[3 * BLOCK];
	int fd = open_new("f");

	memset(buf, 'x', sizeof(buf));
	CHECK(write(fd, buf, sizeof(buf)) == sizeof(buf));
	CHECK(fsync(fd) == 0);
	CHECK(ftruncate(fd, 100) == 0);
	CHECK(ftruncate(fd, sizeof(buf)) == 0);
	CHECK(pread(fd, buf, sizeof(buf), 0) == sizeof(buf));
	CHECK(buf[99] == 'x' && all_zero(buf + 100, sizeof(buf) - 100));
	CHECK(ftruncate(fd, 0) == 0 && posix_stat("f").st_size == 0);
	CHECK(posix_stat("f").st_blocks == 0);
	FAILS_WITH(EINVAL, ftruncate(fd, -1));
	CHECK(close(fd) == 0);
	FAILS_WITH(EISDIR, truncate(".", 0));
	fd = open("f", O_RDONLY);
	FAILS_WITH(EINVAL, ftruncate(fd, 0));
	FAILS_WITH(EBADF, write(fd, "x", 1));
	CHECK(close(fd) == 0);
}

static void check_append(void)
{
	int a = open("f", O_CREAT | O_WRONLY | O_APPEND, 0644);
	int b = open("f", O_WRONLY | O_APPEND);
	char buf[16] = "";

	CHECK(write(a, "one", 3) == 3);
	CHECK(write(b, "two", 3) == 3);
	CHECK(lseek(a, 0, SEEK_SET) == 0);
	CHECK(write(a, "three", 5) == 5);
	CHECK(close(a) == 0 && close(b) == 0);
	a = open("f", O_RDONLY);
	CHECK(read(a, buf, sizeof(buf)) == 11 && !strcmp(buf, "onetwothree"));
	CHECK(close(a) == 0);
}

static void check_open_flags(void)
{
	posix_make("f", "text");
	CHECK(close(open("f", O_WRONLY | O_TRUNC)) == 0);
	CHECK(posix_stat("f").st_size == 0);
	CHECK(close(open("g", O_CREAT | O_EXCL | O_RDWR, 0600)) == 0);
	CHECK(close(open("f", O_RDWR | O_SYNC)) == 0);
	CHECK(close(open("f", O_PATH)) == 0);
	FAILS_WITH(ENOENT, open("h", O_RDWR));
}

static void check_mmap(void)
{
	unsigned char *map;
	char buf[6] = "";
	int fd = open_new("f");

	CHECK(ftruncate(fd, 10 * BLOCK) == 0);
	map = mmap(NULL, 10 * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	CHECK(all_zero(map, 10 * BLOCK));
	memcpy(map + 5 * BLOCK - 2, "map", 3);
	CHECK(msync(map, 10 * BLOCK, MS_SYNC) == 0);
	CHECK(pread(fd, buf, 3, 5 * BLOCK - 2) == 3 && !strcmp(buf, "map"));
	CHECK(pwrite(fd, "file", 4, 7 * BLOCK) == 4);
	CHECK(!memcmp(map + 7 * BLOCK, "file", 4));
	CHECK(munmap(map, 10 * BLOCK) == 0 && close(fd) == 0);
	fd = open("f", O_RDONLY);
	map = mmap(NULL, 10 * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd,
		   0);
	map[0] = 'p';
	CHECK(pread(fd, buf, 1, 0) == 1 && !buf[0]);
	CHECK(munmap(map, 10 * BLOCK) == 0 && close(fd) == 0);
}

static void check_direct(void)
{
	unsigned char *buf = aligned_alloc(BLOCK, 16 * BLOCK);
	unsigned char *back = aligned_alloc(BLOCK, 16 * BLOCK);
	int fd = open("f", O_CREAT | O_RDWR | O_DIRECT, 0644);
	int plain = open("f", O_RDWR);

	CHECK(fd >= 0);
	fill(buf, 16 * BLOCK, 3);
	CHECK(pwrite(fd, buf, 16 * BLOCK, 0) == 16 * BLOCK);
	CHECK(pread(plain, back, 16 * BLOCK, 0) == 16 * BLOCK);
	CHECK(!memcmp(buf, back, 16 * BLOCK));
	CHECK(pwrite(plain, "cached", 6, 2 * BLOCK) == 6);
	CHECK(pread(fd, back, BLOCK, 2 * BLOCK) == BLOCK);
	CHECK(!memcmp(back, "cached", 6));
	CHECK(pwrite(fd, buf, BLOCK, 2 * BLOCK) == BLOCK);
	CHECK(pread(plain, back, BLOCK, 2 * BLOCK) == BLOCK);
	CHECK(!memcmp(back, buf, BLOCK));
	CHECK(close(fd) == 0 && close(plain) == 0);
	free(buf);
	free(back);
}

static void check_fallocate(void)
{
	unsigned char buf[BLOCK];
	struct stat st;
	int fd = open_new("f");

	CHECK(fallocate(fd, 0, 0, 1 << 20) == 0);
	CHECK(fstat(fd, &st) == 0 && st.st_size == 1 << 20);
	CHECK(st.st_blocks >= (1 << 20) / 512);
	CHECK(pread(fd, buf, BLOCK, 77777) == BLOCK && all_zero(buf, BLOCK));
	CHECK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 1 << 20, 1 << 20) == 0);
	CHECK(fstat(fd, &st) == 0 && st.st_size == 1 << 20);
	CHECK(pwrite(fd, "data", 4, 5000) == 4);
	CHECK(pread(fd, buf, 4, 5000) == 4 && !memcmp(buf, "data", 4));
	FAILS_WITH(EINVAL, fallocate(fd, 0, 0, 0));
	FAILS_WITH(EINVAL, fallocate(fd, 0, -1, 10));
	CHECK(close(fd) == 0);
	fd = open("f", O_RDONLY);
	FAILS_WITH(EBADF, fallocate(fd, 0, 0, 10));
	CHECK(close(fd) == 0);
}

static void check_punch_and_zero(void)
{
	enum { N = 64 * BLOCK };
	unsigned char *data = malloc(N), *back = malloc(N);
	int hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	int fd = open_new("f");
	struct stat before, after;

	fill(data, N, 9);
	CHECK(write(fd, data, N) == N && fsync(fd) == 0);
	/* Until then FUSE shows the blocks of before. */
	CHECK(close(dup(fd)) == 0);
	CHECK(fstat(fd, &before) == 0);
	CHECK(fallocate(fd, hole, 8 * BLOCK, 16 * BLOCK) == 0);
	memset(data + 8 * BLOCK, 0, 16 * BLOCK);
	CHECK(fsync(fd) == 0 && fstat(fd, &after) == 0);
	CHECK(after.st_blocks == before.st_blocks - 16 * BLOCK / 512);
	/* Parts of blocks, the first byte, across the end. */
	CHECK(fallocate(fd, hole, 30 * BLOCK + 10, BLOCK) == 0);
	memset(data + 30 * BLOCK + 10, 0, BLOCK);
	CHECK(fallocate(fd, hole, 0, 1) == 0);
	data[0] = 0;
	CHECK(fallocate(fd, hole, N - 5, 2 * BLOCK) == 0);
	memset(data + N - 5, 0, 5);
	CHECK(fallocate(fd, FALLOC_FL_ZERO_RANGE, 40 * BLOCK + 7,
			4 * BLOCK) == 0);
	memset(data + 40 * BLOCK + 7, 0, 4 * BLOCK);
	CHECK(fsync(fd) == 0);
	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	CHECK(pread(fd, back, N, 0) == N && !memcmp(data, back, N));
	CHECK(posix_stat("f").st_size == N);
	CHECK(fallocate(fd, FALLOC_FL_ZERO_RANGE, N, BLOCK) == 0);
	CHECK(posix_stat("f").st_size == N + BLOCK);
	FAILS_WITH(EOPNOTSUPP, fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, BLOCK));
	CHECK(close(fd) == 0);
	free(data);
	free(back);
}

static void check_copy_range(void)
{
	enum { N = 300000 };
	unsigned char *data = malloc(N), *back = malloc(N);
	off_t in = 1000, out = 5;
	ssize_t n, done = 0;
	int a = open_new("a"), b = open_new("b");

	fill(data, N, 4);
	CHECK(write(a, data, N) == N);
	CHECK(write(b, "01234567", 8) == 8);
	while (done < N - 1000) {
		n = copy_file_range(a, &in, b, &out, N - 1000 - done, 0);
		CHECK(n > 0);
		if (n <= 0)
			break;
		done += n;
	}
	CHECK(copy_file_range(a, &in, b, &out, 100, 0) == 0);
	CHECK(posix_stat("b").st_size == N - 1000 + 5);
	CHECK(pread(b, back, N, 0) == N - 1000 + 5);
	CHECK(!memcmp(back, "01234", 5));
	CHECK(!memcmp(back + 5, data + 1000, N - 1000));
	CHECK(close(a) == 0 && close(b) == 0);
	free(data);
	free(back);
}

static void check_locks(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
			      .l_len = 10 };
	int a = open_new("f"), b = open("f", O_RDWR);

	CHECK(flock(a, LOCK_EX | LOCK_NB) == 0);
	FAILS_WITH(EWOULDBLOCK, flock(b, LOCK_SH | LOCK_NB));
	CHECK(flock(a, LOCK_UN) == 0);
	CHECK(flock(b, LOCK_SH | LOCK_NB) == 0 && flock(b, LOCK_UN) == 0);
	CHECK(fcntl(a, F_OFD_SETLK, &lock) == 0);
	FAILS_WITH(EAGAIN, fcntl(b, F_OFD_SETLK, &lock));
	lock.l_start = 10;
	CHECK(fcntl(b, F_OFD_SETLK, &lock) == 0);
	CHECK(close(a) == 0);
	lock.l_start = 0;
	CHECK(fcntl(b, F_OFD_SETLK, &lock) == 0);
	CHECK(close(b) == 0);
}

static void check_unlinked_open(void)
{
	enum { N = 200000 };
	unsigned char *data = malloc(N), *back = malloc(N);
	int fd = open_new("f"), fd2;

	fill(data, N, 6);
	CHECK(unlink("f") == 0);
	CHECK(write(fd, data, N) == N && fsync(fd) == 0);
	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	CHECK(pread(fd, back, N, 0) == N && !memcmp(data, back, N));
	fd2 = open_new("f");
	posix_make("g", "g");
	CHECK(write(fd2, "new", 3) == 3);
	CHECK(rename("g", "f") == 0);
	CHECK(pread(fd2, back, 3, 0) == 3 && !memcmp(back, "new", 3));
	CHECK(close(fd2) == 0 && close(fd) == 0);
	free(data);
	free(back);
}

static void check_sync(void)
{
	int dir = open(".", O_RDONLY | O_DIRECTORY);
	int fd = open("f", O_CREAT | O_WRONLY | O_DSYNC, 0644);

	CHECK(write(fd, "text", 4) == 4);
	CHECK(fdatasync(fd) == 0 && fsync(fd) == 0 && fsync(dir) == 0);
	CHECK(syncfs(dir) == 0);
	CHECK(sync_file_range(fd, 0, 4, SYNC_FILE_RANGE_WRITE) == 0);
	CHECK(close(fd) == 0 && close(dir) == 0);
}

static void check_statfs(void)
{
	struct statfs before, after;
	int fd;

	CHECK(syncfs(open(".", O_RDONLY | O_DIRECTORY)) == 0);
	CHECK(statfs(".", &before) == 0);
	CHECK(before.f_namelen == 255 && before.f_blocks > before.f_bfree);
	fd = open_new("f");
	CHECK(fallocate(fd, 0, 0, 4 << 20) == 0 && fsync(fd) == 0);
	CHECK(statfs(".", &after) == 0);
	CHECK((before.f_bfree - after.f_bfree) * (size_t)after.f_bsize >=
	      4 << 20);
	CHECK(close(fd) == 0 && unlink("f") == 0);
}

static void check_limits(void)
{
	int fd = open_new("f");
	int error = ERRNO_OF(ftruncate(fd, 0x7ffffffffffff000));
	char byte = 0;

	/* ext4 ends at 16 TiB. */
	if (!error) {
		CHECK(posix_stat("f").st_size == 0x7ffffffffffff000);
		CHECK(pread(fd, &byte, 1, 0x7fffffffffffe000) == 1 && !byte);
	} else {
		CHECK(error == EFBIG);
	}
	CHECK(ftruncate(fd, 0) == 0);
	CHECK(close(fd) == 0);
}

const struct posix_check posix_checks_data[] = {
	{ "boundary-sizes", check_boundary_sizes },
	{ "sparse", check_sparse },
	{ "dirty-is-data", check_dirty_is_data },
	{ "truncate", check_truncate },
	{ "append", check_append },
	{ "open-flags", check_open_flags },
	{ "mmap", check_mmap },
	{ "direct", check_direct },
	{ "fallocate", check_fallocate },
	{ "punch-and-zero", check_punch_and_zero },
	{ "copy-range", check_copy_range },
	{ "locks", check_locks },
	{ "unlinked-open", check_unlinked_open },
	{ "sync", check_sync },
	{ "statfs", check_statfs },
	{ "limits", check_limits },
	{ NULL, NULL },
};

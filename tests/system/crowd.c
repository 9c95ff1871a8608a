/*
 * crowd.c - many files are open, each with a little at its end that only the
 * kernel's cache has, when another program takes the rest of the disk.
 *
 *   crowd write DIR SIZES FILES WAY ROOM   leaves ROOM KiB of the disk (0:
 *              all), appends to FILES files, has a child take the rest by
 *              `fallocate`, `copy` or `direct`, and syncs and reads the files
 *   crowd check DIR SIZES   what was accepted is there
 *
 * What write(2) took for a file is there, whatever the child got.  SIZES, a
 * file elsewhere, has how much that was.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/system/open_in.h"

#define FIRST_BYTES 700u	/* what each file has before */
#define FRAME_BYTES 4120u	/* what is appended, as logs of databases do */
#define MOST_BYTES (FIRST_BYTES + FRAME_BYTES)
#define MOST_FILES 20000u
#define PIECE_BYTES (1u << 20)	/* the child begins with such pieces */
#define LEAST_BYTES 4096u	/* and ends with these */
#define SPARE_FILES 50u		/* descriptors for all else */

static const char *dir, *sizes;

static int open_member(unsigned file, int flags)
{
	char name[32];

	snprintf(name, sizeof(name), "member%u", file);
	return open_in(dir, name, flags);
}

static void make_bytes(unsigned file, uint8_t *bytes)
{
	for (unsigned i = 0; i < MOST_BYTES; i++)
		bytes[i] = (uint8_t)((file + 1) * 2654435761u >> i % 24) ^ i;
}

static uint64_t room_bytes(void)
{
	struct statvfs st;

	if (statvfs(dir, &st))
		give_up("statvfs");
	return (uint64_t)st.f_bavail * st.f_frsize;
}

/* ---- The other program ---- */

static bool take_piece(int fd, int from, const char *way, off_t at,
		       const void *bytes, size_t n)
{
	off_t in = 0;
	ssize_t got;

	if (!strcmp(way, "fallocate"))
		return !fallocate(fd, 0, at, (off_t)n);
	got = strcmp(way, "copy") ? pwrite(fd, bytes, n, at) :
		copy_file_range(from, &in, fd, &at, n, 0);
	return got == (ssize_t)n;
}

/* Takes all that is there, in ever smaller pieces. */
static void take_rest(const char *way)
{
	int flags = strcmp(way, "direct") ? 0 : O_DIRECT;
	int from = open_in(dir, "fill", O_RDONLY);
	int fd = open_in(dir, "rest", O_CREAT | O_WRONLY | flags);
	void *bytes = aligned_alloc(LEAST_BYTES, PIECE_BYTES);
	off_t at = 0;

	if (!bytes)
		give_up("memory");
	memset(bytes, 'r', PIECE_BYTES);
	/* At once, before the kernel has written out anything. */
	for (uint64_t n = room_bytes() / LEAST_BYTES * LEAST_BYTES;
	     n >= LEAST_BYTES && !strcmp(way, "fallocate"); n /= 2)
		if (take_piece(fd, from, way, at, bytes, n)) {
			at += (off_t)n;
			break;
		}
	for (size_t n = PIECE_BYTES; n >= LEAST_BYTES; n /= 2)
		while (take_piece(fd, from, way, at, bytes, n))
			at += (off_t)n;
	if (errno != ENOSPC)
		give_up(way);
	printf("%s took %lld KiB\n", way, (long long)at >> 10);
	exit(0);
}

static void have_taken(const char *way)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		give_up("fork");
	if (!pid)
		take_rest(way);
	if (waitpid(pid, &status, 0) != pid || status)
		give_up("the other program");
}

/* ---- The crowd ---- */

static void leave_room(uint64_t bytes)
{
	static char piece[PIECE_BYTES];
	int fd = open_in(dir, "fill", O_CREAT | O_WRONLY);

	memset(piece, 'f', sizeof(piece));
	for (;;) {
		if (write(fd, piece, sizeof(piece)) != (ssize_t)sizeof(piece) ||
		    fsync(fd) || !bytes ||
		    room_bytes() < bytes + sizeof(piece))
			break;
	}
	close(fd);
}

/* Reads across the end, which is no write, by whatever handle. */
static bool is_there(unsigned file, int fd, uint64_t bytes)
{
	uint8_t want[MOST_BYTES], got[MOST_BYTES + 1];
	ssize_t n = pread(fd, got, sizeof(got), 0);

	make_bytes(file, want);
	if (n == (ssize_t)bytes && !memcmp(want, got, bytes))
		return true;
	fprintf(stderr, "file %u: %lld of %llu bytes\n", file, (long long)n,
		(unsigned long long)bytes);
	return false;
}

static void put_sizes(const uint64_t *size, unsigned files)
{
	FILE *file = fopen(sizes, "w");

	if (!file || fwrite(size, sizeof(*size), files, file) != files ||
	    fclose(file))
		give_up(sizes);
}

static int write_all(unsigned files, const char *way, uint64_t room)
{
	static uint64_t size[MOST_FILES];
	static int fd[MOST_FILES];
	uint8_t bytes[MOST_BYTES];
	unsigned lost = 0, appended = 0;

	for (unsigned i = 0; i < files; i++) {
		fd[i] = open_member(i, O_CREAT | O_RDWR);
		make_bytes(i, bytes);
		if (write(fd[i], bytes, FIRST_BYTES) != (int)FIRST_BYTES)
			give_up("write");
	}
	sync();
	leave_room(room);
	for (unsigned i = 0; i < files; i++) {
		size[i] = FIRST_BYTES;
		make_bytes(i, bytes);
		if (write(fd[i], bytes + FIRST_BYTES, FRAME_BYTES) ==
		    (int)FRAME_BYTES) {
			size[i] += FRAME_BYTES;
			appended++;
		}
	}
	have_taken(way);
	for (unsigned i = 0; i < files; i++)
		lost += fsync(fd[i]) || !is_there(i, fd[i], size[i]);
	put_sizes(size, files);
	printf("%u of %u files appended to, %u have lost it\n", appended, files,
	       lost);
	return lost != 0;
}

static int check_all(void)
{
	static uint64_t size[MOST_FILES];
	FILE *file = fopen(sizes, "r");
	size_t n = file ? fread(size, sizeof(*size), MOST_FILES, file) : 0;
	unsigned lost = 0;

	if (!n)
		give_up(sizes);
	for (unsigned i = 0; i < n; i++) {
		int fd = open_member(i, O_RDONLY);

		lost += !is_there(i, fd, size[i]);
		close(fd);
	}
	return lost != 0;
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	unsigned files;

	if (argc < 4)
		return 2;
	dir = argv[2];
	sizes = argv[3];
	if (argc == 4 && !strcmp(argv[1], "check"))
		return check_all();
	if (argc != 7 || strcmp(argv[1], "write"))
		return 2;
	files = (unsigned)atoi(argv[4]);
	limit.rlim_cur = limit.rlim_max = files + SPARE_FILES;
	if (!files || files > MOST_FILES ||
	    (setrlimit(RLIMIT_NOFILE, &limit) &&
	     setrlimit(RLIMIT_NOFILE, &limit)))
		give_up("descriptors");
	return write_all(files, argv[5], (uint64_t)atoi(argv[6]) << 10);
}

/*
 * go_back.c - a program that goes on writing on a full disk, as the log of a
 * database does: it writes frames in groups, and after an error the next group
 * begins where the last good one ended.
 *
 *   go_back write DIR SEED   fills the disk but for ROOM_BYTES, writes groups
 *                            to DIR/log, reads now and then what it has
 *                            written, and prints how many bytes are good
 *   go_back check DIR BYTES  are they still there?
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/system/open_in.h"

#define FRAME_WORDS 515u	/* of 8 bytes: a page of 4096 and its head */
#define FRAME_BYTES (FRAME_WORDS * 8)
#define GROUPS 150u
#define ROOM_BYTES (512 << 10)
#define PAUSE_US 5000		/* after each group, so that pages are written
				 * out between some of them */

static void make_frame(uint64_t at, uint64_t *words)
{
	for (unsigned i = 0; i < FRAME_WORDS; i++)
		words[i] = (at + i * 8 + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void fill(const char *dir)
{
	static char bytes[1 << 20];
	int fd = open_in(dir, "fill", O_CREAT | O_WRONLY | O_APPEND);
	size_t size = sizeof(bytes);
	struct stat st;

	memset(bytes, 'x', sizeof(bytes));
	while (size >= 512)
		if (write(fd, bytes, size) != (ssize_t)size)
			size /= 2;
	close(fd);
	fd = open_in(dir, "fill", O_WRONLY);
	if (fstat(fd, &st) || ftruncate(fd, st.st_size - ROOM_BYTES) ||
	    close(fd))
		give_up("fill");
	sync();
}

static bool is_good(int fd, uint64_t bytes)
{
	uint64_t want[FRAME_WORDS], got[FRAME_WORDS], at;

	for (at = 0; at < bytes; at += FRAME_BYTES) {
		make_frame(at, want);
		if (pread(fd, got, FRAME_BYTES, (off_t)at) != FRAME_BYTES ||
		    memcmp(want, got, FRAME_BYTES)) {
			fprintf(stderr, "%llu of %llu bytes are good\n",
				(unsigned long long)at,
				(unsigned long long)bytes);
			return false;
		}
	}
	return true;
}

/* Writes n frames behind the good bytes; how many bytes are good then? */
static uint64_t write_group(int fd, uint64_t good, unsigned n)
{
	uint64_t frame[FRAME_WORDS], at = good;

	while (n--) {
		make_frame(at, frame);
		if (pwrite(fd, frame, FRAME_BYTES, (off_t)at) != FRAME_BYTES)
			return good;
		at += FRAME_BYTES;
	}
	return at;
}

static int write_groups(const char *dir, unsigned seed)
{
	static const unsigned frames[] = { 1, 2, 5, 10, 30 };
	uint64_t good = 0, end;
	unsigned refused = 0;
	int fd;

	fill(dir);
	fd = open_in(dir, "log", O_CREAT | O_RDWR);
	srandom(seed);
	for (unsigned i = 0; i < GROUPS; i++) {
		end = write_group(fd, good, frames[(unsigned)random() % 5]);
		refused += end == good;
		good = end;
		usleep(PAUSE_US);
		if (i % 10 == 0 && !is_good(fd, good))
			return 1;
	}
	/* Whatever was refused, what was not is there. */
	if (fsync(fd) || close(fd))
		give_up("log");
	if (!refused) {
		fprintf(stderr, "nothing was refused\n");
		return 1;
	}
	printf("%llu\n", (unsigned long long)good);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "write"))
		return write_groups(argv[2], (unsigned)atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "check"))
		return !is_good(open_in(argv[2], "log", O_RDONLY),
				strtoull(argv[3], NULL, 10));
	return 2;
}

/*
 * calls.c - system calls that shells have no command for, for
 * tests/system/mount_calls.sh:
 *
 *   calls holes FILE      prints its parts: "data FROM TO", "hole FROM TO"
 *   calls dirty FILE AT   writes a page at AT and prints the parts before it is
 *                         synced
 *   calls mapped FILE AT  the same through a mapping whose descriptor is closed
 *   calls label DIR [NEW] the label, by ioctl; changes it
 *   calls uuid DIR        the UUID, by ioctl
 *   calls shutdown DIR
 *   calls read FILE       one read(2) of 512 KiB from its beginning: how much
 *                         came, or why it did not
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096
#define IOC_SHUTDOWN _IOR('X', 125, uint32_t)

static int failed(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return 1;
}

static int print_parts(int fd)
{
	off_t at = 0, next;
	struct stat st;

	if (fstat(fd, &st))
		return failed("fstat");
	while (at < st.st_size) {
		next = lseek(fd, at, SEEK_DATA);
		if (next < 0 && errno == ENXIO)
			next = st.st_size;
		if (next < at)
			return failed("SEEK_DATA");
		if (next > at)
			printf("hole %lld %lld\n", (long long)at,
			       (long long)next);
		at = next;
		if (at == st.st_size)
			break;
		next = lseek(fd, at, SEEK_HOLE);
		if (next <= at)
			return failed("SEEK_HOLE");
		printf("data %lld %lld\n", (long long)at, (long long)next);
		at = next;
	}
	if (lseek(fd, st.st_size, SEEK_DATA) >= 0 || errno != ENXIO)
		return failed("SEEK_DATA at the end");
	return 0;
}

static int mapped_part(int fd, off_t at, const char *path)
{
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
	int again;

	if (p == MAP_FAILED)
		return failed("mmap");
	close(fd);
	p[17] = 1;
	again = open(path, O_RDONLY);
	return again < 0 ? failed(path) : print_parts(again);
}

static int dirty_part(int fd, off_t at)
{
	static const char page[PAGE] = "x";

	if (pwrite(fd, page, PAGE, at) != PAGE)
		return failed("pwrite");
	return print_parts(fd);
}

static int label(int fd, const char *new)
{
	char text[FSLABEL_MAX] = "";

	if (new) {
		snprintf(text, sizeof(text), "%s", new);
		if (ioctl(fd, FS_IOC_SETFSLABEL, text))
			return failed("FS_IOC_SETFSLABEL");
	}
	if (ioctl(fd, FS_IOC_GETFSLABEL, text))
		return failed("FS_IOC_GETFSLABEL");
	puts(text);
	return 0;
}

/* struct fsuuid2 of newer headers. */
struct uuid_answer {
	uint8_t len;
	uint8_t uuid[16];
};
#define IOC_GETFSUUID _IOR(0x15, 0, struct uuid_answer)

static int uuid(int fd)
{
	struct uuid_answer answer;

	if (ioctl(fd, IOC_GETFSUUID, &answer))
		return failed("FS_IOC_GETFSUUID");
	for (unsigned i = 0; i < answer.len && i < 16; i++)
		printf("%02x", answer.uuid[i]);
	putchar('\n');
	return 0;
}

static int one_read(int fd)
{
	static char buf[512 << 10];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n < 0)
		printf("%s\n", errno == EIO ? "EIO" : strerror(errno));
	else
		printf("%zd\n", n);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	off_t at = argc > 3 ? strtoll(argv[3], NULL, 0) : 0;
	uint32_t flags = 2;	/* without writing the log */
	int fd = argc > 2 ? open(argv[2], O_RDONLY) : -1;

	if (fd < 0)
		return failed("open");
	if (!strcmp(what, "holes"))
		return print_parts(fd);
	if (!strcmp(what, "label"))
		return label(fd, argc > 3 ? argv[3] : NULL);
	if (!strcmp(what, "uuid"))
		return uuid(fd);
	if (!strcmp(what, "read"))
		return one_read(fd);
	if (!strcmp(what, "shutdown"))
		return ioctl(fd, IOC_SHUTDOWN, &flags) ? failed(what) : 0;
	close(fd);
	fd = open(argv[2], O_RDWR);
	if (!strcmp(what, "dirty"))
		return dirty_part(fd, at);
	if (!strcmp(what, "mapped"))
		return mapped_part(fd, at, argv[2]);
	return 2;
}

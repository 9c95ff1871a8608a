/*
 * pages.c - mappings of memory are kept when they are given back, and used
 * again as they are.
 *
 * A campaign of power cuts opens a file system thousands of times, each with
 * pools of its own; half of its time would go to the kernel, which gives pages
 * of zeros.  Programs that are linked with --wrap=mmap,--wrap=munmap get those
 * that were used before instead, with what lies in them, on which nothing may
 * rely.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#define PLAIN (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)	/* a pool's */
#define KEPT 64u

void *__real_mmap(void *at, size_t bytes, int rights, int flags, int fd,
		  off_t offset);
int __real_munmap(void *at, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int rights, int flags, int fd,
		  off_t offset);
int __wrap_munmap(void *at, size_t bytes);

static struct {
	void *at;
	size_t bytes;
	bool used;
} kept[KEPT];

void *__wrap_mmap(void *at, size_t bytes, int rights, int flags, int fd,
		  off_t offset)
{
	void *new;
	unsigned i;

	for (i = 0; i < KEPT && flags == PLAIN; i++)
		if (!kept[i].used && kept[i].bytes == bytes) {
			kept[i].used = true;
			return kept[i].at;
		}
	new = __real_mmap(at, bytes, rights, flags, fd, offset);
	if (new == MAP_FAILED || flags != PLAIN)
		return new;
	for (i = 0; i < KEPT; i++)
		if (!kept[i].at) {
			kept[i].at = new;
			kept[i].bytes = bytes;
			kept[i].used = true;
			break;
		}
	return new;
}

int __wrap_munmap(void *at, size_t bytes)
{
	for (unsigned i = 0; i < KEPT; i++)
		if (kept[i].at == at) {
			kept[i].used = false;
			return 0;
		}
	return __real_munmap(at, bytes);
}

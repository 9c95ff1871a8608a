/*
 * tmp_array.c - arrays in a mapped file.
 */
#include "check/scan/tmp_array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_BYTES (64u << 10)

int spill_init(struct spill *spill, size_t size, const char *directory)
{
	*spill = (struct spill){ .size = size, .fd = -1 };
	if (!directory)
		return 0;
	spill->fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return spill->fd < 0 ? -errno : 0;
}

void spill_fini(struct spill *spill)
{
	if (spill->base)
		munmap(spill->base, spill->room);
	if (spill->fd >= 0)
		close(spill->fd);
	*spill = (struct spill){ .size = spill->size, .fd = -1 };
}

/* Real room on the scratch disk: a page that cannot be written back would
 * kill the program later. */
static int spill_extend(const struct spill *spill, size_t room)
{
	if (spill->fd < 0)
		return 0;
	return posix_fallocate(spill->fd, (off_t)spill->room,
			       (off_t)(room - spill->room));
}

static int spill_grow(struct spill *spill, size_t bytes)
{
	size_t room = spill->room ? spill->room : FIRST_BYTES;
	int flags = spill->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *base;

	while (room < bytes)
		room *= 2;
	if (spill_extend(spill, room))
		return -ENOSPC;
	if (spill->base)
		base = mremap(spill->base, spill->room, room, MREMAP_MAYMOVE);
	else
		base = mmap(NULL, room, PROT_READ | PROT_WRITE, flags,
			    spill->fd, 0);
	if (base == MAP_FAILED)
		return -ENOMEM;
	spill->base = base;
	spill->room = room;
	return 0;
}

void *spill_add(struct spill *spill, size_t n)
{
	size_t end = (spill->n + n) * spill->size;

	if (end > spill->room && spill_grow(spill, end))
		return NULL;
	spill->n += n;
	return spill_at(spill, spill->n - n);
}

void spill_sort(struct spill *spill, int (*cmp)(const void *a, const void *b))
{
	if (spill->n)
		qsort(spill->base, spill->n, spill->size, cmp);
}

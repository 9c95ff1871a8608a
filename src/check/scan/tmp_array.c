/*
 * tmp_array.c - arrays in a mapped file.
 */
#include "check/scan/tmp_array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Room of an array that gets its first item; it is doubled from there. */
#define FIRST_BYTES (64u << 10)

int tmp_array_init(struct tmp_array *tmp_array, size_t size,
		   const char *directory)
{
	*tmp_array = (struct tmp_array){ .size = size, .fd = -1 };
	if (!directory)
		return 0;
	tmp_array->fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return tmp_array->fd < 0 ? -errno : 0;
}

void tmp_array_fini(struct tmp_array *tmp_array)
{
	if (tmp_array->base)
		munmap(tmp_array->base, tmp_array->room);
	if (tmp_array->fd >= 0)
		close(tmp_array->fd);
	*tmp_array = (struct tmp_array){ .size = tmp_array->size, .fd = -1 };
}

/* Allocates real room on the scratch disk: a page that cannot be written back
 * would later kill the program. */
static int tmp_array_extend(const struct tmp_array *tmp_array, size_t room)
{
	if (tmp_array->fd < 0)
		return 0;
	return posix_fallocate(tmp_array->fd, (off_t)tmp_array->room,
			       (off_t)(room - tmp_array->room));
}

static int tmp_array_grow(struct tmp_array *tmp_array, size_t bytes)
{
	size_t room = tmp_array->room ? tmp_array->room : FIRST_BYTES;
	int flags =
		tmp_array->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *base;

	while (room < bytes)
		room *= 2;
	if (tmp_array_extend(tmp_array, room))
		return -ENOSPC;
	if (tmp_array->base)
		base = mremap(tmp_array->base, tmp_array->room, room,
			      MREMAP_MAYMOVE);
	else
		base = mmap(NULL, room, PROT_READ | PROT_WRITE, flags,
			    tmp_array->fd, 0);
	if (base == MAP_FAILED)
		return -ENOMEM;
	tmp_array->base = base;
	tmp_array->room = room;
	return 0;
}

void *tmp_array_add(struct tmp_array *tmp_array, size_t n)
{
	size_t end = (tmp_array->n + n) * tmp_array->size;

	if (end > tmp_array->room && tmp_array_grow(tmp_array, end))
		return NULL;
	tmp_array->n += n;
	return tmp_array_at(tmp_array, tmp_array->n - n);
}

void tmp_array_sort(struct tmp_array *tmp_array,
		    int (*cmp)(const void *a, const void *b))
{
	if (tmp_array->n)
		qsort(tmp_array->base, tmp_array->n, tmp_array->size, cmp);
}

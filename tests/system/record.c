/*
 * record.c - linked to the daemon with --wrap=fs_submit,--wrap=fs_new_handle it
 * writes down what the front end sends, as tests/rig/trace.h has it.
 *
 *   TRAX_RECORD=FILE tests/system/traxfs_record DEVICE DIRECTORY
 *
 * FILE is one of zeros with room for all, made by the caller: it is mapped
 * before the daemon closes its descriptors and drops its rights.  Zeros behind
 * the last line are room that was left.
 */
#include <assert.h>
#include <ctype.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fs/fs.h"
#include "tests/rig/trace.h"

#define UNDER_WAY 4096u		/* operations at once */

void __real_fs_submit(struct fs *fs, struct fs_op *op);
uint64_t __real_fs_new_handle(struct fs *fs);
void __wrap_fs_submit(struct fs *fs, struct fs_op *op);
uint64_t __wrap_fs_new_handle(struct fs *fs);

struct recorded {
	struct fs_op *op;	/* NULL: free */
	void (*done)(struct fs_op *op);
	fs_dir_fill fill;
	void *fill_arg;
	unsigned number;
};

static char *text;
static size_t room, used;
static unsigned last_number;
static uint64_t start_ns;
static struct recorded under_way[UNDER_WAY];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((constructor)) static void record_open(void)
{
	const char *path = getenv("TRAX_RECORD");
	struct stat st;
	int fd = path ? open(path, O_RDWR) : -1;

	if (fd < 0 || fstat(fd, &st))
		return;
	text = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
	assert(text != MAP_FAILED);
	room = (size_t)st.st_size;
	close(fd);
}

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	used += (size_t)vsnprintf(text + used, room - used, format, args);
	va_end(args);
	assert(used < room);
}

static void put_number(char letter, uint64_t n)
{
	if (n)
		put(" %c%lu", letter, (long)n);
}

static void put_bytes(char letter, const char *bytes, size_t n)
{
	put(" %c", letter);
	for (; n--; bytes++)
		if (isalnum((unsigned char)*bytes) || *bytes == '.' ||
		    *bytes == '_' || *bytes == '-')
			put("%c", *bytes);
		else
			put("%%%02x", (unsigned char)*bytes);
}

static void put_name(char letter, const char *name)
{
	if (name)
		put_bytes(letter, name, strlen(name));
}

static void put_op(const struct fs_op *op)
{
	put_number('t', (now_ns() - start_ns) / 1000000);
	put_number('i', op->ino);
	put_number('I', op->ino2);
	put_name('n', op->name);
	put_name('N', op->name2);
	put_number('u', op->uid);
	put_number('g', op->gid);
	put_number('m', op->mode);
	put_number('k', op->umask);
	put_number('d', op->rdev);
	put_number('O', op->opens);
	put_number('f', op->flags);
	put_number('h', op->handle);
	put_number('o', op->offset);
	put_number('p', op->offset2);
	put_number('s', op->size);
	put_number('P', op->plus);
	if (op->type == FS_SETXATTR)
		put_bytes('x', op->data, op->size);
	if (op->type != FS_SETATTR)
		return;
	put_number('M', op->attr.mode);
	put_number('U', op->attr.uid);
	put_number('G', op->attr.gid);
	put_number('S', op->attr.size);
}

static struct recorded *find(const struct fs_op *op)
{
	for (unsigned i = 0; i < UNDER_WAY; i++)
		if (under_way[i].op == op)
			return &under_way[i];
	return NULL;
}

static void record_done(struct fs_op *op)
{
	struct recorded *r = find(op);

	put("< %u", r->number);
	put_number('c', (uint64_t)-(int64_t)op->rc);
	put_number('r', op->result);
	if (!op->rc) {
		put_number('i', op->attr.ino);
		put_number('m', op->attr.mode);
	}
	put("\n");
	op->fill = r->fill;
	op->fill_arg = r->fill_arg;
	r->op = NULL;
	r->done(op);
}

static bool record_fill(void *arg, const char *name, size_t bytes,
			uint64_t ino, unsigned d_type, uint64_t next,
			const struct fs_attr *attr)
{
	struct recorded *r = arg;

	if (!r->fill(r->fill_arg, name, bytes, ino, d_type, next, attr))
		return false;
	if (attr)
		put("+ %u i%lu\n", r->number, (long)ino);
	return true;
}

void __wrap_fs_submit(struct fs *fs, struct fs_op *op)
{
	struct recorded *r = text && trace_types[op->type] ? find(NULL) : NULL;

	if (!r) {
		__real_fs_submit(fs, op);
		return;
	}
	if (!start_ns)
		start_ns = now_ns();
	*r = (struct recorded){ op, op->done, op->fill, op->fill_arg,
				last_number++ };
	put("> %u =%s", r->number, trace_types[op->type]);
	put_op(op);
	put("\n");
	op->done = record_done;
	if (op->fill) {
		op->fill = record_fill;
		op->fill_arg = r;
	}
	__real_fs_submit(fs, op);
}

uint64_t __wrap_fs_new_handle(struct fs *fs)
{
	uint64_t handle = __real_fs_new_handle(fs);

	if (text)
		put("@ h%lu\n", (long)handle);
	return handle;
}

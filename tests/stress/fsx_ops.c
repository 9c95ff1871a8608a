/*
 * fsx_ops.c - what fsx does to files, each with the same done to the model.
 *
 * A file has three descriptors: a plain one, one with O_APPEND and one with
 * O_DIRECT, so that cached, appending and direct access meet.
 */
#include "tests/stress/fsx.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/stress/stress.h"

#define PAGE 4096u

/* ---- Saying what is wrong ---- */

static bool wrong(struct fsx_world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static bool wrong(struct fsx_world *w, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(w->wrong, sizeof(w->wrong), format, ap);
	va_end(ap);
	return false;
}

static bool wrong_call(struct fsx_world *w, const char *call)
{
	return wrong(w, "%s: %s", call, strerror(errno));
}

/* Compares what was read at `at` with the model. */
static bool same(struct fsx_world *w, const struct fsx_file *f, size_t at,
		 const uint8_t *is, size_t bytes, const char *how)
{
	const uint8_t *must = f->model + at;
	size_t first, last, bad = 0;

	if (memcmp(is, must, bytes) == 0)
		return true;
	for (first = 0; is[first] == must[first]; first++)
		continue;
	for (last = bytes; is[last - 1] == must[last - 1]; last--)
		continue;
	for (size_t i = first; i < last; i++)
		bad += is[i] != must[i];
	return wrong(w, "%s: %s of %zu at %zu: %zu bytes wrong in %zu..%zu "
		     "(block %zu), first is %02x, must be %02x; size %zu",
		     how, strrchr(f->path, '/') + 1, bytes, at, bad,
		     at + first, at + last, (at + first) / PAGE, is[first],
		     must[first], f->size);
}

/* ---- Ranges ---- */

struct range {
	size_t at, bytes;
};

/* The op's range within what may be written; may be empty. */
static struct range range_to_write(const struct fsx_world *w,
				   const struct fsx_file *f,
				   const struct fsx_op *op, size_t align)
{
	size_t span = f->high - f->low;
	struct range r;

	if (op->flags & FSX_FROM_END && !f->fixed)
		r.at = f->size - (op->at % (4 * PAGE)) % (f->size + 1);
	else
		r.at = f->low + op->at % span;
	if (op->flags & FSX_ALIGN && align < PAGE)
		align = PAGE;
	r.at = (r.at + align - 1) / align * align;
	r.bytes = op->bytes;
	if (r.at >= f->high || r.at >= w->max_bytes)
		return (struct range){ 0, 0 };
	if (r.bytes > f->high - r.at)
		r.bytes = f->high - r.at;
	r.bytes -= r.bytes % align;
	return r;
}

static struct range range_inside(const struct fsx_world *w,
				 const struct fsx_file *f,
				 const struct fsx_op *op)
{
	struct range r = range_to_write(w, f, op, 1);

	if (r.at >= f->size)
		return (struct range){ 0, 0 };
	if (r.bytes > f->size - r.at)
		r.bytes = f->size - r.at;
	return r;
}

static void model_set_size(struct fsx_file *f, size_t size)
{
	if (size < f->size)
		memset(f->model + size, 0, f->size - size);
	f->size = size;
}

static void model_write(struct fsx_file *f, size_t at, const void *from,
			size_t bytes)
{
	if (bytes == 0)
		return;
	if (at + bytes > f->size)
		model_set_size(f, at + bytes);
	memcpy(f->model + at, from, bytes);
}

/* ---- Reading ---- */

static bool check_read(struct fsx_world *w, struct fsx_file *f, int fd,
		       size_t at, size_t bytes, const char *how)
{
	ssize_t n = pread(fd, w->buffer, bytes, (off_t)at);
	size_t must = at >= f->size ? 0 : f->size - at;

	if (must > bytes)
		must = bytes;
	if (n < 0)
		return wrong_call(w, how);
	if ((size_t)n != must)
		return wrong(w, "%s: %s of %zu at %zu gave %zd, must be %zu; "
			     "size %zu", how, strrchr(f->path, '/') + 1, bytes,
			     at, n, must, f->size);
	if (f->fixed) {
		if (at < f->low || at + must > f->high)
			return true;
	}
	return must == 0 || same(w, f, at, w->buffer, must, how);
}

static bool run_read(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];
	struct range r = range_to_write(w, f, op, 1);

	return check_read(w, f, f->fd, r.at, r.bytes, "read");
}

static bool run_direct_read(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];
	struct range r = range_to_write(w, f, op, w->direct_bytes);

	if (f->direct_fd < 0)
		return true;
	return check_read(w, f, f->direct_fd, r.at, r.bytes, "direct read");
}

static bool run_map_read(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];
	struct range r = range_inside(w, f, op);
	size_t start = r.at / PAGE * PAGE;
	size_t end = (r.at + r.bytes + PAGE - 1) / PAGE * PAGE;
	size_t i;
	uint8_t *map;
	bool ok;

	if (r.bytes == 0)
		return true;
	map = mmap(NULL, end - start, PROT_READ, MAP_SHARED, f->fd,
		   (off_t)start);
	if (map == MAP_FAILED)
		return wrong_call(w, "mmap");
	ok = same(w, f, r.at, map + (r.at - start), r.bytes, "mapped read");
	for (i = f->size; ok && !f->fixed && i < end; i++)
		if (map[i - start])
			ok = wrong(w, "mapped byte %zu behind the end (%zu) "
				   "is not 0", i, f->size);
	munmap(map, end - start);
	return ok;
}

static bool check_stat(struct fsx_world *w, struct fsx_file *f)
{
	struct stat st;

	if (fstat(f->fd, &st))
		return wrong_call(w, "fstat");
	if ((size_t)st.st_size != f->size)
		return wrong(w, "fstat: size of %s is %zu, must be %zu",
			     strrchr(f->path, '/') + 1, (size_t)st.st_size,
			     f->size);
	return true;
}

static bool run_stat(struct fsx_world *w, const struct fsx_op *op)
{
	return check_stat(w, &w->files[op->file]);
}

/* Whatever is called a hole reads as zeros. */
static bool run_seek(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];
	struct range r = range_inside(w, f, op);
	off_t data, hole;
	size_t i, end;

	if (r.bytes == 0 || f->fixed)
		return true;
	data = lseek(f->fd, (off_t)r.at, SEEK_DATA);
	if (data < 0 && errno != ENXIO)
		return wrong_call(w, "SEEK_DATA");
	end = data < 0 ? f->size : (size_t)data;
	for (i = r.at; i < end; i++)
		if (f->model[i])
			return wrong(w, "SEEK_DATA from %zu gives %zd, but "
				     "there is data at %zu", r.at,
				     (ssize_t)data, i);
	hole = lseek(f->fd, (off_t)r.at, SEEK_HOLE);
	if (hole < (off_t)r.at || (size_t)hole > f->size)
		return wrong(w, "SEEK_HOLE from %zu gives %zd, size %zu", r.at,
			     (ssize_t)hole, f->size);
	return true;
}

/* ---- Writing ---- */

static bool wrote(struct fsx_world *w, struct fsx_file *f, ssize_t n,
		  struct range r, const char *how)
{
	if (n < 0)
		return wrong_call(w, how);
	model_write(f, r.at, w->buffer, (size_t)n);
	if ((size_t)n != r.bytes)
		return wrong(w, "%s: %zd of %zu bytes at %zu written", how, n,
			     r.bytes, r.at);
	return true;
}

static bool run_write(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];
	struct range r = range_to_write(w, f, op, 1);
	struct iovec parts[3];

	if (r.bytes == 0)
		return true;
	stress_fill(w->buffer, op->seed, r.at, r.bytes);
	if (!(op->flags & FSX_FLAVOUR))
		return wrote(w, f, pwrite(f->fd, w->buffer, r.bytes,
					  (off_t)r.at), r, "write");
	parts[0] = (struct iovec){ w->buffer, r.bytes / 5 };
	parts[1] = (struct iovec){ w->buffer + r.bytes / 5, r.bytes / 3 };
	parts[2] = (struct iovec){ w->buffer + r.bytes / 5 + r.bytes / 3,
				   r.bytes - r.bytes / 5 - r.bytes / 3 };
	return wrote(w, f, pwritev(f->fd, parts, 3, (off_t)r.at), r, "writev");
}

static bool run_direct_write(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];
	struct range r = range_to_write(w, f, op, w->direct_bytes);
	ssize_t n;

	if (r.bytes == 0 || f->direct_fd < 0)
		return true;
	stress_fill(w->buffer, op->seed, r.at, r.bytes);
	n = pwrite(f->direct_fd, w->buffer, r.bytes, (off_t)r.at);
	if (n < 0 && errno == EINVAL && w->direct_bytes < PAGE) {
		w->direct_bytes = PAGE;
		return true;
	}
	return wrote(w, f, n, r, "direct write");
}

static bool run_append(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];
	struct range r = { f->size, op->bytes };

	if (r.bytes > w->max_bytes - f->size)
		r.bytes = w->max_bytes - f->size;
	if (r.bytes == 0)
		return true;
	stress_fill(w->buffer, op->seed, r.at, r.bytes);
	return wrote(w, f, write(f->append_fd, w->buffer, r.bytes), r,
		     "append");
}

static bool run_map_write(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];
	struct range r = range_inside(w, f, op);
	size_t start = r.at / PAGE * PAGE;
	size_t length = r.at + r.bytes - start;
	uint8_t *map;
	bool ok = true;

	if (r.bytes == 0)
		return true;
	map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd,
		   (off_t)start);
	if (map == MAP_FAILED)
		return wrong_call(w, "mmap");
	stress_fill(map + (r.at - start), op->seed, r.at, r.bytes);
	stress_fill(f->model + r.at, op->seed, r.at, r.bytes);
	if (op->flags & FSX_FLAVOUR && msync(map, length, MS_SYNC))
		ok = wrong_call(w, "msync");
	else if (op->seed % 3 == 0 && msync(map, length, MS_ASYNC))
		ok = wrong_call(w, "msync");
	munmap(map, length);
	return ok;
}

/* ---- Sizes and space ---- */

static bool run_truncate(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];
	struct range r = range_to_write(w, f, op, 1);
	int rc = op->flags & FSX_FLAVOUR ? truncate(f->path, (off_t)r.at) :
					   ftruncate(f->fd, (off_t)r.at);

	if (rc)
		return wrong_call(w, "truncate");
	model_set_size(f, r.at);
	return true;
}

/* Returns 1 when done, 0 when there is no such thing here, -1: wrong. */
static int allocate(struct fsx_world *w, const struct fsx_op *op, int mode,
		    struct range r)
{
	struct fsx_file *f = &w->files[op->file];

	if (r.bytes == 0 || w->unsupported[op->kind])
		return 0;
	if (fallocate(f->fd, mode, (off_t)r.at, (off_t)r.bytes) == 0)
		return 1;
	if (errno == EOPNOTSUPP || errno == ENOSYS) {
		w->unsupported[op->kind] = true;
		return 0;
	}
	wrong(w, "fallocate mode %d of %zu at %zu: %s", mode, r.bytes, r.at,
	      strerror(errno));
	return -1;
}

static bool zero_with(struct fsx_world *w, const struct fsx_op *op, int mode)
{
	struct fsx_file *f = &w->files[op->file];
	struct range r = range_to_write(w, f, op, 1);
	int done = allocate(w, op, mode, r);
	size_t end = r.at + r.bytes;

	if (done != 1)
		return done == 0;
	if (end > f->size && !(mode & FALLOC_FL_KEEP_SIZE))
		model_set_size(f, end);
	if (end > f->size)
		end = f->size;
	if (r.at < end)
		memset(f->model + r.at, 0, end - r.at);
	return true;
}

static bool run_punch(struct fsx_world *w, const struct fsx_op *op)
{
	return zero_with(w, op, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
}

static bool run_zero(struct fsx_world *w, const struct fsx_op *op)
{
	return zero_with(w, op, FALLOC_FL_ZERO_RANGE);
}

static bool run_zero_keep(struct fsx_world *w, const struct fsx_op *op)
{
	return zero_with(w, op, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE);
}

static bool run_allocate(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];
	struct range r = range_to_write(w, f, op, 1);
	int done = allocate(w, op, 0, r);

	if (done == 1 && r.at + r.bytes > f->size)
		model_set_size(f, r.at + r.bytes);
	return done >= 0;
}

static bool run_allocate_keep(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];

	return allocate(w, op, FALLOC_FL_KEEP_SIZE,
			range_to_write(w, f, op, 1)) >= 0;
}

static bool run_collapse(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];
	struct range r = range_to_write(w, f, op, PAGE);
	size_t end = r.at + r.bytes;

	if (end >= f->size)
		return true;
	switch (allocate(w, op, FALLOC_FL_COLLAPSE_RANGE, r)) {
	case 1:
		memmove(f->model + r.at, f->model + end, f->size - end);
		memset(f->model + f->size - r.bytes, 0, r.bytes);
		f->size -= r.bytes;
		return true;
	case 0:
		return true;
	}
	return false;
}

static bool run_insert(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];
	struct range r = range_to_write(w, f, op, PAGE);

	if (r.at >= f->size || f->size + r.bytes > w->max_bytes)
		return true;
	switch (allocate(w, op, FALLOC_FL_INSERT_RANGE, r)) {
	case 1:
		memmove(f->model + r.at + r.bytes, f->model + r.at,
			f->size - r.at);
		memset(f->model + r.at, 0, r.bytes);
		f->size += r.bytes;
		return true;
	case 0:
		return true;
	}
	return false;
}

/* ---- Copies ---- */

static bool run_copy(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *from = &w->files[op->file];
	struct fsx_file *to = &w->files[op->file2];
	struct fsx_op op2 = *op;
	struct range r = range_inside(w, from, op), r2;
	off_t in, out;
	ssize_t n;

	op2.at = op->at2;
	r2 = range_to_write(w, to, &op2, 1);
	if (r.bytes > r2.bytes)
		r.bytes = r2.bytes;
	if (r.bytes == 0 || (to->fixed && from != to))
		return true;
	if (from == to && r.at < r2.at + r.bytes && r2.at < r.at + r.bytes)
		return true;
	in = (off_t)r.at;
	out = (off_t)r2.at;
	n = copy_file_range(from->fd, &in, to->fd, &out, r.bytes, 0);
	if (n <= 0)
		return wrong(w, "copy_file_range of %zu from %zu to %zu: %s",
			     r.bytes, r.at, r2.at,
			     n ? strerror(errno) : "nothing copied");
	memcpy(w->buffer, from->model + r.at, (size_t)n);
	model_write(to, r2.at, w->buffer, (size_t)n);
	return true;
}

/* ---- Caches, durability, descriptors ---- */

static bool run_sync(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];
	int rc;

	switch (op->seed % 4) {
	case 0:
		rc = fdatasync(f->fd);
		break;
	case 1:
		rc = sync_file_range(f->fd, 0, 0, SYNC_FILE_RANGE_WRITE |
				     SYNC_FILE_RANGE_WAIT_AFTER);
		break;
	case 2:
		rc = op->flags & FSX_FLAVOUR ? syncfs(f->fd) : fsync(f->fd);
		break;
	default:
		rc = fsync(f->fd);
	}
	return rc == 0 || wrong_call(w, "sync");
}

static bool run_forget(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];

	posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
	return run_read(w, op);
}

static bool run_drop_caches(struct fsx_world *w, const struct fsx_op *op)
{
	int fd;

	if (!w->root)
		return true;
	fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
	if (fd < 0)
		return true;
	if (write(fd, op->flags & FSX_FLAVOUR ? "3" : "1", 1) != 1)
		w->root = false;
	close(fd);
	return run_read(w, op);
}

static void close_files(struct fsx_file *f)
{
	close(f->fd);
	close(f->append_fd);
	if (f->direct_fd >= 0)
		close(f->direct_fd);
}

static bool open_files(struct fsx_world *w, struct fsx_file *f, int flags)
{
	f->fd = open(f->path, O_RDWR | flags, 0644);
	if (f->fd < 0)
		return wrong_call(w, f->path);
	f->append_fd = open(f->path, O_WRONLY | O_APPEND);
	if (f->append_fd < 0)
		return wrong_call(w, f->path);
	f->direct_fd = open(f->path, O_RDWR | O_DIRECT);
	return true;
}

static bool check_all(struct fsx_world *w, struct fsx_file *f)
{
	size_t end = f->fixed ? f->high : f->size;

	return check_stat(w, f) &&
	       check_read(w, f, f->fd, f->low, end - f->low, "whole file");
}

static bool run_reopen(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];

	close_files(f);
	return open_files(w, f, 0) && check_all(w, f);
}

/* A new file under the old name; the old one is read once more. */
static bool run_replace(struct fsx_world *w, const struct fsx_op *op)
{
	struct fsx_file *f = &w->files[op->file];

	if (op->flags & FSX_FLAVOUR) {
		if (unlink(f->path))
			return wrong_call(w, "unlink");
		if (!check_all(w, f))
			return false;
	}
	close_files(f);
	model_set_size(f, 0);
	return open_files(w, f, O_CREAT | O_TRUNC) && check_all(w, f);
}

const struct fsx_kind fsx_kinds[] = {
	{ "read", 100, run_read, false },
	{ "mapread", 50, run_map_read, false },
	{ "dread", 40, run_direct_read, false },
	{ "write", 130, run_write, false },
	{ "mapwrite", 60, run_map_write, false },
	{ "dwrite", 40, run_direct_write, true },
	{ "append", 60, run_append, true },
	{ "truncate", 60, run_truncate, true },
	{ "punch", 40, run_punch, false },
	{ "zero", 25, run_zero, true },
	{ "zerokeep", 25, run_zero_keep, false },
	{ "allocate", 25, run_allocate, true },
	{ "allockeep", 25, run_allocate_keep, false },
	{ "collapse", 10, run_collapse, true },
	{ "insert", 10, run_insert, true },
	{ "copy", 40, run_copy, false },
	{ "sync", 40, run_sync, false },
	{ "forget", 30, run_forget, false },
	{ "dropcaches", 1, run_drop_caches, false },
	{ "reopen", 15, run_reopen, false },
	{ "replace", 3, run_replace, true },
	{ "stat", 20, run_stat, false },
	{ "seek", 30, run_seek, false },
};

unsigned fsx_kind_count(void)
{
	return sizeof(fsx_kinds) / sizeof(fsx_kinds[0]);
}

/* ---- The world ---- */

void fsx_world_open(struct fsx_world *w, const char *directory,
		    unsigned process, unsigned nfiles, size_t max_bytes)
{
	unsigned i;

	memset(w, 0, sizeof(*w));
	w->max_bytes = max_bytes;
	w->direct_bytes = 512;
	w->root = geteuid() == 0;
	if (posix_memalign((void **)&w->buffer, PAGE, max_bytes + PAGE))
		stress_die("no memory");
	for (i = 0; i < nfiles; i++) {
		struct fsx_file *f = &w->files[i];

		snprintf(f->path, sizeof(f->path), "%s/fsx.%u.%u", directory,
			 process, i);
		unlink(f->path);
		f->high = max_bytes;
		f->model = calloc(1, max_bytes + PAGE);
		if (!f->model || !open_files(w, f, O_CREAT | O_EXCL))
			stress_die("%s", f->path);
	}
	w->nfiles = nfiles;
}

void fsx_world_share(struct fsx_world *w, const char *path, size_t size,
		     size_t low, size_t high)
{
	struct fsx_file *f = &w->files[w->nfiles++];

	snprintf(f->path, sizeof(f->path), "%s", path);
	f->size = size;
	f->low = low;
	f->high = high;
	f->fixed = true;
	f->model = calloc(1, size + PAGE);
	if (!f->model || !open_files(w, f, 0))
		stress_die("%s", f->path);
}

void fsx_world_close(struct fsx_world *w)
{
	unsigned i;

	for (i = 0; i < w->nfiles; i++) {
		close_files(&w->files[i]);
		free(w->files[i].model);
	}
	free(w->buffer);
}

bool fsx_run(struct fsx_world *w, const struct fsx_op *op)
{
	const struct fsx_file *f = &w->files[op->file];

	if (f->fixed && fsx_kinds[op->kind].changes_size)
		return true;
	return fsx_kinds[op->kind].run(w, op);
}

bool fsx_verify(struct fsx_world *w)
{
	unsigned i;

	for (i = 0; i < w->nfiles; i++)
		if (!check_all(w, &w->files[i]))
			return false;
	return true;
}

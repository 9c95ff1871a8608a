/*
 * scan_copy.c - files of a scan, written below another directory.
 *
 * The part of a path behind the scan's root is used.  A file is opened for each
 * record, because the parts of all files come mixed.
 */
#include "tools/scan_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR_MODE 0777

int scan_copy_open(struct scan_copy *copy, const char *to, const char *root)
{
	if (mkdir(to, DIR_MODE) && errno != EEXIST)
		return -errno;
	copy->root = root;
	copy->dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return copy->dir < 0 ? -errno : 0;
}

void scan_copy_close(struct scan_copy *copy)
{
	close(copy->dir);
}

/* A scan of a single file has its root as the path. */
static const char *name_of(const struct scan_copy *copy, const char *path)
{
	size_t n = strlen(copy->root);
	const char *slash = strrchr(path, '/');

	if (!path[n])
		return slash ? slash + 1 : path;
	for (path += n; *path == '/'; path++)
		;
	return path;
}

/* Opens a directory in another one without following a link, or returns a
 * negative errno.  With `make` it is made if it is not there. */
static int dir_enter(int in, const char *name, bool make)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(in, name, flags);

	if (fd < 0 && errno == ENOENT && make) {
		if (mkdirat(in, name, DIR_MODE) && errno != EEXIST)
			return -errno;
		fd = openat(in, name, flags);
	}
	return fd < 0 ? -errno : fd;
}

/* Opens the directory that a name is in; *last is the last part of the name.
 * Others may write below the target and put links there, so each part is opened
 * by itself. */
static int parent_open(const struct scan_copy *copy, const char *name,
		       bool make, const char **last)
{
	int dir = fcntl(copy->dir, F_DUPFD_CLOEXEC, 0), in;
	char part[NAME_MAX + 1];
	const char *slash;
	size_t n;

	if (dir < 0)
		return -errno;
	while (dir >= 0 && (slash = strchr(name, '/'))) {
		n = (size_t)(slash - name);
		in = dir;
		if (n < sizeof(part)) {
			memcpy(part, name, n);
			part[n] = 0;
			dir = dir_enter(in, part, make);
		} else {
			dir = -ENAMETOOLONG;
		}
		close(in);
		name = slash + 1;
	}
	*last = name;
	return dir;
}

/* Opens the file, which is made if it is not there; or a negative errno. */
static int file_open(struct scan_copy *copy, const char *name)
{
	const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
	const char *last;
	int dir = parent_open(copy, name, true, &last), fd;

	if (dir < 0)
		return dir;
	fd = openat(dir, last, flags, S_IRUSR | S_IWUSR);
	if (fd < 0)
		fd = -errno;
	close(dir);
	return fd;
}

static int file_delete(struct scan_copy *copy, const char *name)
{
	const char *last;
	int dir = parent_open(copy, name, false, &last), rc;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	rc = unlinkat(dir, last, 0) && errno != ENOENT ? -errno : 0;
	close(dir);
	return rc;
}

/* With its first record a file loses what an earlier copy has left of it. */
static int file_begin(struct scan_copy *copy, const struct trax_record *r,
		      const char *name)
{
	if (*r->user)
		return 0;
	*r->user = copy;
	return file_delete(copy, name);
}

static int write_all(int fd, const char *bytes, uint64_t n, uint64_t offset)
{
	ssize_t done;

	for (; n; n -= (uint64_t)done) {
		done = pwrite(fd, bytes, n, (off_t)offset);
		if (done < 0)
			return -errno;
		bytes += done;
		offset += (uint64_t)done;
	}
	return 0;
}

static int file_end(int fd, const struct trax_record *r)
{
	const struct timespec times[2] = { r->stat->st_atim,
					   r->stat->st_mtim };

	if (ftruncate(fd, (off_t)r->offset))
		return -errno;
	if (!geteuid() && fchown(fd, r->stat->st_uid, r->stat->st_gid))
		return -errno;
	if (fchmod(fd, r->stat->st_mode & 07777) || futimens(fd, times))
		return -errno;
	return 0;
}

static int file_put(struct scan_copy *copy, const struct trax_record *r,
		    const char *name)
{
	int rc = file_begin(copy, r, name), fd;

	if (rc)
		return rc;
	fd = file_open(copy, name);
	if (fd < 0)
		return fd;
	rc = r->type == TRAX_DATA ?
		     write_all(fd, r->data, r->bytes, r->offset) :
		     file_end(fd, r);
	return close(fd) && !rc ? -errno : rc;
}

int scan_copy_take(struct scan_copy *copy, const struct trax_record *r)
{
	const char *name = name_of(copy, r->path);

	switch (r->type) {
	case TRAX_DATA:
	case TRAX_WHOLE:
		return file_put(copy, r, name);
	case TRAX_ERROR:
		return 0;
	default:
		*r->user = NULL;
		return file_delete(copy, name);
	}
}

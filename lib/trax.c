/*
 * trax.c - see trax.h.  Files are added to the scan as there is room in it;
 * what has changed meanwhile is added again some time later.
 */
#include "lib/trax.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "scan/scan_record.h"

#define READ_BYTES (1u << 20)
#define WALK_FDS 64
#define ADD_MOST 64u		/* files added between two reads */
#define TRIES 3u		/* for a file that changes */
#define TRY_NS UINT64_C(500000000)	/* between two, times their number */
/* A file that changes in each of them is read here, if it is not larger, when
 * nobody has written to it for SETTLED_NS: more than a tick of the clock that
 * the kernel takes change times from.  It has OWN_TRIES times SETTLED_NS for
 * that. */
#define OWN_MOST (64u << 20)
#define OWN_TRIES 100u
#define SETTLED_NS 20000000L

struct entry {
	char *path;
	struct stat stat;
	void *user;
	unsigned tries;
	uint64_t again_ns;	/* to be added then; 0: at once */
	bool added, over;
};

struct trax_scan {
	int fd;
	struct scan_begin begin;
	struct entry *entry;	/* as they were found */
	size_t n, room;
	struct entry **by_ino;
	char *cursor_path;
	FILE *cursor;		/* NULL: none is kept */
	struct entry *said;	/* said to be whole, and not in the cursor
				   before the next record is asked for */
	size_t next;		/* to be added first */
	size_t over, retries;	/* files that are through; that wait */
	bool sealed, ended;
	struct trax_status status;
	struct {
		struct entry *entry;	/* NULL: none */
		uint8_t *data;
		uint64_t size;
		bool given;
	} own;				/* a file that was read here */
	size_t at, filled;	/* of buffer */
	uint8_t buffer[READ_BYTES];
};

/* ---- the walk ---- */

/* nftw(3) passes nothing on. */
static __thread struct {
	struct trax_scan *scan;
	dev_t dev;
} walk;

static int add_entry(struct trax_scan *scan, const char *path,
		     const struct stat *st)
{
	struct entry *more;

	if (scan->n == scan->room) {
		scan->room = scan->room ? 2 * scan->room : 1024;
		more = reallocarray(scan->entry, scan->room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		scan->entry = more;
	}
	scan->entry[scan->n] = (struct entry){ .path = strdup(path),
					       .stat = *st };
	if (!scan->entry[scan->n].path)
		return -ENOMEM;
	scan->n++;
	return 0;
}

static int walk_one(const char *path, const struct stat *st, int type,
		    struct FTW *ftw)
{
	(void)ftw;
	if (type != FTW_F || !S_ISREG(st->st_mode) || st->st_dev != walk.dev)
		return 0;
	return add_entry(walk.scan, path, st) ? -1 : 0;
}

static int compare_inos(const void *a, const void *b)
{
	const struct entry *const *x = a, *const *y = b;

	if ((*x)->stat.st_ino != (*y)->stat.st_ino)
		return (*x)->stat.st_ino < (*y)->stat.st_ino ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

/* Of several names of a file only the first is in the scan. */
static int index_entries(struct trax_scan *scan)
{
	size_t i, k = 0;

	scan->by_ino = calloc(scan->n + 1, sizeof(*scan->by_ino));
	if (!scan->by_ino)
		return -ENOMEM;
	for (i = 0; i < scan->n; i++)
		scan->by_ino[i] = &scan->entry[i];
	qsort(scan->by_ino, scan->n, sizeof(*scan->by_ino), compare_inos);
	for (i = 0; i < scan->n; i++) {
		struct entry *entry = scan->by_ino[i];

		if (k && scan->by_ino[k - 1]->stat.st_ino ==
				 entry->stat.st_ino) {
			entry->added = entry->over = true;
			scan->over++;
			continue;
		}
		scan->by_ino[k++] = entry;
		scan->status.total_bytes += (uint64_t)entry->stat.st_size;
	}
	scan->status.files = k;
	return 0;
}

static struct entry *find_entry(const struct trax_scan *scan, uint64_t ino)
{
	size_t lo = 0, hi = scan->status.files;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (scan->by_ino[mid]->stat.st_ino < ino)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < scan->status.files &&
	       scan->by_ino[lo]->stat.st_ino == ino ? scan->by_ino[lo] : NULL;
}

static int find_files(struct trax_scan *scan, const char *path,
		      const struct stat *st)
{
	walk.scan = scan;
	walk.dev = st->st_dev;
	errno = 0;
	if (nftw(path, walk_one, WALK_FDS, FTW_PHYS | FTW_MOUNT))
		return errno ? -errno : -ENOMEM;
	return index_entries(scan);
}

/* ---- the cursor ---- */

/* What tells that a file is the one that was through. */
static int print_mark(char *text, size_t bytes, const struct stat *st)
{
	return snprintf(text, bytes, "%llu %lld %lld.%09ld\n",
			(unsigned long long)st->st_ino, (long long)st->st_size,
			(long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
}

#define MARK_BYTES 96u

/* A last line that was cut off by a crash is no mark of any file. */
static void skip_marked(struct trax_scan *scan)
{
	char line[MARK_BYTES], mark[MARK_BYTES];
	struct entry *entry;

	while (fgets(line, sizeof(line), scan->cursor)) {
		entry = find_entry(scan, strtoull(line, NULL, 10));
		if (!entry || entry->over)
			continue;
		print_mark(mark, sizeof(mark), &entry->stat);
		if (strcmp(mark, line))
			continue;
		entry->added = entry->over = true;
		scan->over++;
		scan->status.total_bytes -= (uint64_t)entry->stat.st_size;
	}
}

/* For free space: where it goes on.  A number that was cut off by a crash is
 * less than what it was, so more is read again. */
static void find_passed(struct trax_scan *scan)
{
	char line[MARK_BYTES];
	unsigned long long offset;

	while (fgets(line, sizeof(line), scan->cursor))
		if (sscanf(line, "free %llu", &offset) == 1 &&
		    offset > scan->begin.first)
			scan->begin.first = offset;
}

/* All free space before this has been given, and the program has done with
 * it. */
static int mark_passed(struct trax_scan *scan, uint64_t offset)
{
	if (!scan->cursor)
		return 0;
	return fprintf(scan->cursor, "free %llu\n",
		       (unsigned long long)offset) < 0 ||
	       fflush(scan->cursor) ? -errno : 0;
}

static int open_cursor(struct trax_scan *scan, const char *path)
{
	if (!path)
		return 0;
	scan->cursor_path = strdup(path);
	scan->cursor = scan->cursor_path ? fopen(path, "a+e") : NULL;
	if (!scan->cursor)
		return scan->cursor_path ? -errno : -ENOMEM;
	rewind(scan->cursor);
	if (scan->begin.flags & SCAN_FREE_SPACE)
		find_passed(scan);
	else
		skip_marked(scan);
	/* Behind a line that was cut off. */
	return fseek(scan->cursor, 0, SEEK_END) ||
	       fputc('\n', scan->cursor) == EOF ? -errno : 0;
}

/* The program has done with the file that it last heard was whole. */
static int mark_said(struct trax_scan *scan)
{
	char mark[MARK_BYTES];
	struct entry *entry = scan->said;

	scan->said = NULL;
	if (!entry || !scan->cursor)
		return 0;
	print_mark(mark, sizeof(mark), &entry->stat);
	return fputs(mark, scan->cursor) == EOF || fflush(scan->cursor) ?
		       -errno : 0;
}

static void close_cursor(struct trax_scan *scan)
{
	if (scan->cursor)
		fclose(scan->cursor);
	if (scan->ended && scan->cursor)
		unlink(scan->cursor_path);
	free(scan->cursor_path);
}

/* ---- opening ---- */

/* The scan file is in the root directory of the mount: upwards from `path`. */
static int open_scan_file(const char *path, const struct stat *st)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW;
	char real[PATH_MAX + sizeof(SCAN_FILE_NAME) + 1], *slash;
	struct stat above;
	int fd;

	if (!realpath(path, real))
		return -errno;
	for (;;) {
		slash = strrchr(real, '/');
		if (slash == real)
			break;
		*slash = '\0';
		if (stat(real, &above) || above.st_dev != st->st_dev) {
			*slash = '/';
			break;
		}
	}
	strcat(real, "/" SCAN_FILE_NAME);
	fd = open(real, flags);
	if (fd < 0)
		return errno == EBUSY ? -EBUSY : -ENOTSUP;
	return fd;
}

static uint64_t part_of(uint64_t bytes, double percent)
{
	uint64_t part = (uint64_t)((double)bytes * percent / 100);

	return percent > 0 && !part ? 1 : part;
}

/* The free space counts as one file, of number 0. */
static int find_free_space(struct trax_scan *scan, const char *path,
			   const struct trax_scan_options *options)
{
	struct stat st = { 0 };
	struct statvfs fs;
	int rc;

	if (options->flags & TRAX_FILE_ORDER)
		return -EINVAL;
	if (statvfs(path, &fs))
		return -errno;
	rc = add_entry(scan, path, &st);
	if (!rc)
		rc = index_entries(scan);
	if (rc)
		return rc;
	scan->entry[0].added = true;
	scan->next = scan->n;
	scan->sealed = true;
	scan->status.total_bytes = (uint64_t)fs.f_bfree * fs.f_frsize;
	scan->begin.flags = SCAN_FREE_SPACE;
	return 0;
}

int trax_scan_new(const char *path, const struct trax_scan_options *options,
		  struct trax_scan **out)
{
	bool free_space = options->flags & TRAX_FREE_SPACE;
	struct trax_scan *scan;
	struct stat st;
	int rc;

	if (stat(path, &st))
		return -errno;
	scan = calloc(1, sizeof(*scan));
	if (!scan)
		return -ENOMEM;
	scan->fd = open_scan_file(path, &st);
	if (scan->fd < 0)
		rc = scan->fd;
	else if (free_space)
		rc = find_free_space(scan, path, options);
	else
		rc = find_files(scan, path, &st);
	if (!rc)
		rc = open_cursor(scan, options->cursor);
	if (!rc) {
		scan->begin.total_bytes = scan->status.total_bytes;
		scan->begin.sample_bytes = part_of(scan->begin.total_bytes,
						   options->sample_percent);
		scan->begin.last_bytes = part_of(scan->begin.total_bytes,
						 options->last_percent);
		if (options->flags & TRAX_FILE_ORDER)
			scan->begin.flags = SCAN_FILE_ORDER;
		rc = ioctl(scan->fd, SCAN_IOC_BEGIN, &scan->begin) ? -errno : 0;
		rc = rc == -ENOTTY ? -ENOTSUP : rc;
	}
	if (rc)
		trax_scan_free(scan);
	else
		*out = scan;
	return rc;
}

void trax_scan_free(struct trax_scan *scan)
{
	size_t i;

	if (!scan)
		return;
	if (scan->fd >= 0)
		close(scan->fd);
	for (i = 0; i < scan->n; i++)
		free(scan->entry[i].path);
	close_cursor(scan);
	free(scan->own.data);
	free(scan->entry);
	free(scan->by_ino);
	free(scan);
}

/* ---- adding files ---- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What the kernel has of its data is passed to the file system first.  -ENOENT:
 * the name is gone, or another file's. */
static int add_file(struct trax_scan *scan, struct entry *entry)
{
	struct scan_add add = { .id = scan->begin.id, .key = scan->begin.key };
	int fd = open(entry->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
				   O_NOATIME | O_NONBLOCK);
	struct stat st;
	int rc = 0;

	if (fd < 0 && errno == EPERM)
		fd = open(entry->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
				       O_NONBLOCK);
	if (fd < 0)
		return errno == ELOOP ? -ENOENT : -errno;
	if (fstat(fd, &st) || st.st_ino != entry->stat.st_ino ||
	    st.st_dev != entry->stat.st_dev)
		rc = -ENOENT;
	else
		entry->stat = st;
	if (!rc && sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE |
				   SYNC_FILE_RANGE_WRITE |
				   SYNC_FILE_RANGE_WAIT_AFTER))
		rc = -errno;
	if (!rc && ioctl(fd, SCAN_IOC_ADD, &add))
		rc = -errno;
	close(fd);
	return rc;
}

/* Is the file as it was when it was added?  The scan begins a file anew without a
 * word that changes before anything of it was given.  After a crash the earlier
 * content may be back, which is not what was given. */
static bool is_as_added(const struct entry *entry)
{
	struct stat now;

	return !lstat(entry->path, &now) && now.st_ino == entry->stat.st_ino &&
	       now.st_size == entry->stat.st_size &&
	       !memcmp(&now.st_mtim, &entry->stat.st_mtim,
		       sizeof(now.st_mtim));
}

static int entry_record(struct trax_scan *scan, struct entry *entry,
			enum trax_record_type type, int error,
			struct trax_record *record)
{
	*record = (struct trax_record){
		.type = type, .error = error, .path = entry->path,
		.stat = &entry->stat, .user = &entry->user,
	};
	if (type == TRAX_WHOLE || type == TRAX_GONE || type == TRAX_BUSY) {
		entry->over = true;
		scan->over++;
		scan->said = type == TRAX_WHOLE && is_as_added(entry) ?
				     entry : NULL;
	}
	return 1;
}

/* 1: a file could not be added, and the record says so. */
static int add_one(struct trax_scan *scan, struct entry *entry,
		   struct trax_record *record)
{
	int rc = add_file(scan, entry);

	if (rc == -EAGAIN)
		return rc;
	entry->added = true;
	if (!rc)
		return 0;
	return entry_record(scan, entry, rc == -ENOENT ? TRAX_GONE : TRAX_BUSY,
			    rc == -ENOENT ? 0 : rc, record);
}

static int add_again(struct trax_scan *scan, struct trax_record *record)
{
	uint64_t now = now_ns();
	size_t i;
	int rc = 0;

	for (i = 0; scan->retries && i < scan->n && !rc; i++) {
		struct entry *entry = &scan->entry[i];

		if (entry->added || !entry->tries || entry->over ||
		    entry->again_ns > now)
			continue;
		rc = add_one(scan, entry, record);
		scan->retries -= entry->added;
	}
	return rc;
}

/* 1: a record. */
static int add_files(struct trax_scan *scan, struct trax_record *record)
{
	unsigned added = 0;
	int rc = 0;

	while (!rc && scan->next < scan->n && added < ADD_MOST) {
		struct entry *entry = &scan->entry[scan->next];

		if (!entry->added) {
			rc = add_one(scan, entry, record);
			added++;
		}
		scan->next += rc != -EAGAIN;
	}
	if (!rc && scan->next == scan->n)
		rc = add_again(scan, record);
	return rc == -EAGAIN ? 0 : rc;
}

static int act(struct trax_scan *scan, uint32_t action, uint32_t value)
{
	struct scan_act a = { .action = action, .value = value };

	return ioctl(scan->fd, SCAN_IOC_ACT, &a) ? -errno : 0;
}

/* ---- files that change all the time ---- */

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size &&
	       !memcmp(&a->st_mtim, &b->st_mtim, sizeof(a->st_mtim)) &&
	       !memcmp(&a->st_ctim, &b->st_ctim, sizeof(a->st_ctim));
}

static bool has_settled(const struct stat *st)
{
	struct timespec now;
	int64_t ns;

	clock_gettime(CLOCK_REALTIME, &now);
	ns = (int64_t)(now.tv_sec - st->st_mtim.tv_sec) * 1000000000 +
	     now.tv_nsec - st->st_mtim.tv_nsec;
	return ns >= SETTLED_NS;
}

/* All of the file; false: it was written to meanwhile. */
static bool read_all(struct trax_scan *scan, int fd, const struct stat *st)
{
	uint64_t at = 0;
	struct stat after;
	ssize_t n = 1;

	for (; n > 0 && at < (uint64_t)st->st_size; at += (uint64_t)n)
		n = pread(fd, scan->own.data + at,
			  (size_t)((uint64_t)st->st_size - at), (off_t)at);
	return n > 0 && !fstat(fd, &after) && is_same(st, &after);
}

/* A write that begins sets the change time before it copies anything, so what
 * is read between two equal times, the first of them some time ago, is whole.
 * 0: it is in scan->own. */
static int read_own(struct trax_scan *scan, struct entry *entry)
{
	const struct timespec pause = { .tv_nsec = SETTLED_NS };
	int fd = open(entry->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	unsigned i;
	int rc = -EBUSY;

	if (fd < 0)
		return -errno;
	for (i = 0; rc == -EBUSY && i < OWN_TRIES; i++) {
		if (fstat(fd, &st) || st.st_ino != entry->stat.st_ino) {
			rc = -ENOENT;
		} else if (st.st_size > OWN_MOST) {
			break;
		} else if (!has_settled(&st)) {
			nanosleep(&pause, NULL);
		} else {
			free(scan->own.data);
			scan->own.data = malloc((size_t)st.st_size + 1);
			if (!scan->own.data)
				rc = -ENOMEM;
			else if (read_all(scan, fd, &st))
				rc = 0;
		}
	}
	close(fd);
	scan->own.entry = rc ? NULL : entry;
	scan->own.size = rc ? 0 : (uint64_t)st.st_size;
	scan->own.given = false;
	return rc;
}

static int give_own(struct trax_scan *scan, struct trax_record *record)
{
	struct entry *entry = scan->own.entry;

	if (!scan->own.given && scan->own.size) {
		scan->own.given = true;
		entry_record(scan, entry, TRAX_DATA, 0, record);
		record->bytes = scan->own.size;
		record->data = scan->own.data;
		return 1;
	}
	scan->own.entry = NULL;
	entry_record(scan, entry, TRAX_WHOLE, 0, record);
	record->offset = scan->own.size;
	return 1;
}

/* ---- reading ---- */

static int read_more(struct trax_scan *scan)
{
	ssize_t n;

	do
		n = read(scan->fd, scan->buffer, sizeof(scan->buffer));
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? -errno : -EIO;
	scan->at = 0;
	scan->filled = (size_t)n;
	return 0;
}

/* A file has changed, or cannot be read. */
static int changed(struct trax_scan *scan, struct entry *entry, int error,
		   struct trax_record *record)
{
	if (error == -ENOENT || error == -ESTALE)
		return entry_record(scan, entry, TRAX_GONE, 0, record);
	if (++entry->tries >= TRIES) {
		error = read_own(scan, entry);
		return entry_record(scan, entry, error == -ENOENT ? TRAX_GONE :
				    error ? TRAX_BUSY : TRAX_VOID, error,
				    record);
	}
	entry->added = false;
	entry->again_ns = now_ns() + entry->tries * TRY_NS;
	scan->retries++;
	return entry_record(scan, entry, TRAX_VOID, error, record);
}

static int take_status(struct trax_scan *scan, const uint8_t *data,
		       struct trax_record *record)
{
	struct scan_status status;

	memcpy(&status, data, sizeof(status));
	if (status.state == SCAN_FAILED)
		return -ENOMEM;
	scan->status.whole_files = status.whole_files;
	scan->status.given_bytes = status.given_bytes;
	if (scan->begin.flags & SCAN_FREE_SPACE)
		scan->status.total_bytes = status.total_bytes;
	scan->status.run_ns = status.run_ns;
	scan->status.gap_bytes = status.gap_bytes;
	scan->status.idle_bytes = status.idle_bytes;
	scan->status.promoted_bytes = status.promoted_bytes;
	scan->status.passed_bytes = status.passed_bytes;
	*record = (struct trax_record){ .type = TRAX_STATUS,
					.status = scan->status };
	return 1;
}

static int take_record(struct trax_scan *scan, struct trax_record *record)
{
	struct scan_record r;
	struct entry *entry;
	uint8_t *data = scan->buffer + scan->at + sizeof(r);
	size_t left = scan->filled - scan->at;

	if (left < sizeof(r))
		return -EPROTO;
	memcpy(&r, scan->buffer + scan->at, sizeof(r));
	scan->at += sizeof(r);
	if (r.type == SCAN_DATA || r.type == SCAN_STATUS) {
		if (r.bytes > left - sizeof(r))
			return -EPROTO;
		scan->at += r.bytes;
	}
	if (r.type == SCAN_OVER) {
		scan->ended = true;
		return 0;
	}
	if (r.type == SCAN_PASSED)
		return mark_passed(scan, r.offset);
	if (r.type == SCAN_STATUS)
		return r.bytes >= sizeof(struct scan_status) ?
			       take_status(scan, data, record) : -EPROTO;
	entry = find_entry(scan, r.ino);
	if (!entry)
		return -EPROTO;
	if (r.type == SCAN_CHANGED)
		return changed(scan, entry, r.error, record);
	entry_record(scan, entry, r.type == SCAN_DATA ? TRAX_DATA :
		     r.type == SCAN_WHOLE ? TRAX_WHOLE : TRAX_ERROR, r.error,
		     record);
	record->offset = r.offset;
	record->bytes = r.bytes;
	record->data = r.type == SCAN_DATA ? data : NULL;
	return 1;
}

int trax_scan_next(struct trax_scan *scan, struct trax_record *record)
{
	int rc = mark_said(scan);

	if (!rc && scan->own.entry)
		return give_own(scan, record);
	while (!rc && !scan->ended) {
		if (scan->at < scan->filled) {
			rc = take_record(scan, record);
			continue;
		}
		rc = add_files(scan, record);
		if (!rc && scan->over == scan->n && !scan->sealed) {
			rc = act(scan, SCAN_SEAL, 0);
			scan->sealed = true;
		}
		if (!rc)
			rc = read_more(scan);
	}
	return rc;
}

int trax_scan_pause(struct trax_scan *scan)
{
	return act(scan, SCAN_PAUSE, 0);
}

int trax_scan_resume(struct trax_scan *scan)
{
	return act(scan, SCAN_RESUME, 0);
}

int trax_scan_promote(struct trax_scan *scan, unsigned depth)
{
	return act(scan, SCAN_PROMOTE, depth);
}

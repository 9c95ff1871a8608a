/*
 * durable.c - what was acknowledged must be there after a crash.
 *
 *   durable write [--seed N] [--workers N] [--no-syncfs] ACKS DIRECTORY
 *   durable verify ACKS DIRECTORY
 *
 * "write" works in the directory until the file system goes away (or SIGTERM
 * comes) and notes in the file ACKS, which lies elsewhere, what it is about to
 * do and what has been acknowledged.  The caller kills the server, or copies
 * the image while the server is stopped, mounts again and runs "verify".
 * Each worker repeats one row of `works`, see there.
 * Exit: 0, 1 (something acknowledged is not there), 2 (usage).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/stress/stress.h"

#define SLOTS 48u
#define SLOT_BYTES 12288u
#define WORKERS_MAX 64u
#define KEPT 6u			/* files of "names" that stay */
#define BATCH 12u

/*
 * Each number is stored at once: what is begun before the call, what is
 * acknowledged after it.
 */
struct acks {
	_Atomic uint64_t begun, acked;
	struct {
		_Atomic uint64_t begun, acked;
	} slot[SLOTS];
};

struct ack_file {
	uint64_t seed;
	unsigned workers;
	bool syncfs;
	_Atomic bool made;	/* the directories are acknowledged */
	struct acks worker[WORKERS_MAX];
};

struct worker {
	struct acks *acks;
	uint64_t seed, random;
	unsigned number;
	char directory[512];
	int dir_fd, fd;
	bool failed;		/* verify: something is wrong */
};

struct work {
	const char *name;
	bool (*begin)(struct worker *w);
	bool (*step)(struct worker *w);	/* false: the file system is gone */
	void (*verify)(struct worker *w);
	bool syncfs;			/* is only promised with syncfs */
};

static void wrong(struct worker *w, const struct work *work,
		  const char *what, uint64_t a, uint64_t b)
{
	printf("durable: %s (worker %u): %s (%lu, %lu)\n", work->name,
	       w->number, what, (long)a, (long)b);
	w->failed = true;
}

static const struct work works[];
static const struct work *work_of(const struct worker *w);

/* ---- Records appended to a file ---- */

static size_t record_bytes(const struct worker *w, uint64_t k)
{
	uint64_t z = w->seed + k;

	return 1 + stress_below(&z, k % 10 ? 5000 : 40000);
}

static bool append_begin(struct worker *w)
{
	w->fd = openat(w->dir_fd, "appended", O_CREAT | O_RDWR | O_APPEND,
		       0644);
	return w->fd >= 0 && fsync(w->dir_fd) == 0;
}

static bool append_step(struct worker *w)
{
	uint64_t k = w->acks->acked + 1;
	uint8_t buffer[40001];
	size_t bytes = record_bytes(w, k);

	stress_fill(buffer, w->seed + k, 0, bytes);
	w->acks->begun = k;
	if (write(w->fd, buffer, bytes) != (ssize_t)bytes)
		return false;
	if (k % 2 ? fsync(w->fd) : fdatasync(w->fd))
		return false;
	w->acks->acked = k;
	return true;
}

/* What is not acknowledged may be missing in parts, but be nothing else. */
static void verify_record(struct worker *w, uint64_t k, const uint8_t *is,
			  ssize_t bytes)
{
	ssize_t i;

	for (i = 0; i < bytes; i++)
		if (is[i] != stress_byte(w->seed + k, i) &&
		    (k <= w->acks->acked || is[i] != 0)) {
			wrong(w, work_of(w), "record is wrong at", k, i);
			return;
		}
}

static void append_verify(struct worker *w)
{
	uint8_t buffer[40001];
	uint64_t k, acked = w->acks->acked;
	ssize_t got, bytes;
	struct stat st;

	if (w->acks->begun == 0)
		return;
	w->fd = openat(w->dir_fd, "appended", O_RDONLY);
	if (w->fd < 0) {
		wrong(w, work_of(w), "no file", acked, 0);
		return;
	}
	for (k = 1; k <= w->acks->begun; k++) {
		bytes = (ssize_t)record_bytes(w, k);
		got = read(w->fd, buffer, (size_t)bytes);
		if (k <= acked && got != bytes)
			wrong(w, work_of(w), "record is short", k, acked);
		verify_record(w, k, buffer, got);
		if (w->failed || got != bytes)
			break;
	}
	fstat(w->fd, &st);
	if (!w->failed && st.st_size != lseek(w->fd, 0, SEEK_CUR))
		wrong(w, work_of(w), "longer than all records", st.st_size, k);
	close(w->fd);
}

/* ---- A file replaced by rename ---- */

static bool replace_step(struct worker *w)
{
	uint64_t k = w->acks->acked + 1;
	uint8_t buffer[40001];
	size_t bytes = record_bytes(w, k);
	int fd;

	stress_fill(buffer, w->seed + k, 0, bytes);
	w->acks->begun = k;
	fd = openat(w->dir_fd, "new", O_CREAT | O_TRUNC | O_WRONLY, 0644);
	if (fd < 0 || write(fd, buffer, bytes) != (ssize_t)bytes || fsync(fd) ||
	    close(fd) || renameat(w->dir_fd, "new", w->dir_fd, "current") ||
	    fsync(w->dir_fd))
		return false;
	w->acks->acked = k;
	return true;
}

/* The file is whole and of version `acked`, or of the one begun. */
static void replace_verify(struct worker *w)
{
	uint64_t k, acked = w->acks->acked, begun = w->acks->begun;
	int fd = openat(w->dir_fd, "current", O_RDONLY);
	uint8_t buffer[40001];
	ssize_t got;

	if (fd < 0 && acked)
		wrong(w, work_of(w), "no file", acked, begun);
	if (fd < 0)
		return;
	got = read(fd, buffer, sizeof(buffer));
	close(fd);
	for (k = acked; k <= begun; k++)
		if (k && got == (ssize_t)record_bytes(w, k) &&
		    stress_compare(buffer, w->seed + k, 0, got) == (size_t)got)
			return;
	wrong(w, work_of(w), "neither the old nor the new", acked, got);
}

/* ---- Slots overwritten in place, in several ways ---- */

static uint64_t slot_seed(const struct worker *w, unsigned slot, uint64_t k)
{
	return w->seed + k * SLOTS + slot;
}

/* Odd places; slots do not touch.  `direct`: whole blocks. */
static size_t slot_at(unsigned slot, bool direct)
{
	return slot * SLOT_BYTES + (direct ? 0 : slot * 37 % 700);
}

static size_t slot_bytes(unsigned slot, bool direct)
{
	return direct ? 4096 * (1 + slot % 3) : 1 + slot * 997 % 11000;
}

static bool slots_open(struct worker *w, int flags)
{
	w->fd = openat(w->dir_fd, "slots", O_CREAT | O_RDWR | flags, 0644);
	return w->fd >= 0 && fsync(w->dir_fd) == 0;
}

static bool slots_begin(struct worker *w)
{
	return slots_open(w, 0);
}

static bool slots_begin_dsync(struct worker *w)
{
	return slots_open(w, O_DSYNC);
}

static bool slots_begin_direct(struct worker *w)
{
	return slots_open(w, O_DIRECT);
}

static bool slots_begin_allocated(struct worker *w)
{
	return slots_open(w, 0) &&
	       posix_fallocate(w->fd, 0, SLOTS * SLOT_BYTES) == 0 &&
	       fsync(w->fd) == 0;
}

static bool slots_begin_mapped(struct worker *w)
{
	return slots_open(w, 0) &&
	       ftruncate(w->fd, SLOTS * SLOT_BYTES) == 0 && fsync(w->fd) == 0;
}

/* Writes a new version of a slot with `put`, which makes it durable. */
static bool slot_change(struct worker *w, bool direct,
			bool (*put)(struct worker *w, const uint8_t *from,
				    size_t bytes, size_t at))
{
	static _Alignas(4096) uint8_t buffer[SLOT_BYTES];
	unsigned slot = stress_below(&w->random, SLOTS);
	uint64_t k = w->acks->slot[slot].acked + 1;
	size_t bytes = slot_bytes(slot, direct);

	stress_fill(buffer, slot_seed(w, slot, k), 0, bytes);
	w->acks->slot[slot].begun = k;
	if (!put(w, buffer, bytes, slot_at(slot, direct)))
		return false;
	w->acks->slot[slot].acked = k;
	return true;
}

static bool put_fdatasync(struct worker *w, const uint8_t *from, size_t bytes,
			  size_t at)
{
	return pwrite(w->fd, from, bytes, (off_t)at) == (ssize_t)bytes &&
	       fdatasync(w->fd) == 0;
}

static bool put_plain(struct worker *w, const uint8_t *from, size_t bytes,
		      size_t at)
{
	return pwrite(w->fd, from, bytes, (off_t)at) == (ssize_t)bytes;
}

/* A server that dies takes the mapping with it: SIGBUS ends the worker. */
static bool put_mapped(struct worker *w, const uint8_t *from, size_t bytes,
		       size_t at)
{
	size_t start = at / 4096 * 4096;
	uint8_t *map = mmap(NULL, at + bytes - start, PROT_READ | PROT_WRITE,
			    MAP_SHARED, w->fd, (off_t)start);
	int rc;

	if (map == MAP_FAILED)
		return false;
	memcpy(map + (at - start), from, bytes);
	rc = msync(map, at + bytes - start, MS_SYNC);
	munmap(map, at + bytes - start);
	return rc == 0;
}

static bool slots_step(struct worker *w)
{
	return slot_change(w, false, put_fdatasync);
}

static bool slots_step_dsync(struct worker *w)
{
	return slot_change(w, false, put_plain);
}

static bool slots_step_direct(struct worker *w)
{
	return slot_change(w, true, put_fdatasync);
}

static bool slots_step_mapped(struct worker *w)
{
	return slot_change(w, false, put_mapped);
}

/* Each byte is the acknowledged one or one of the version begun. */
static void verify_slot(struct worker *w, unsigned slot, bool direct)
{
	uint64_t acked = w->acks->slot[slot].acked;
	uint64_t begun = w->acks->slot[slot].begun;
	size_t i, bytes = slot_bytes(slot, direct);
	uint8_t buffer[SLOT_BYTES] = { 0 };
	ssize_t got = pread(w->fd, buffer, bytes,
			    (off_t)slot_at(slot, direct));

	if (got < 0 || (acked && got != (ssize_t)bytes)) {
		wrong(w, work_of(w), "slot is short", slot, acked);
		return;
	}
	for (i = 0; i < (size_t)got; i++) {
		uint8_t old = acked ? stress_byte(slot_seed(w, slot, acked),
						  i) : 0;

		if (buffer[i] != old &&
		    (begun == acked ||
		     buffer[i] != stress_byte(slot_seed(w, slot, begun), i))) {
			wrong(w, work_of(w), "slot is wrong at", slot, i);
			return;
		}
	}
}

static void verify_slots(struct worker *w, bool direct)
{
	unsigned slot;
	uint64_t any = 0;

	for (slot = 0; slot < SLOTS; slot++)
		any |= w->acks->slot[slot].acked;
	w->fd = openat(w->dir_fd, "slots", O_RDONLY);
	if (w->fd < 0) {
		if (any)
			wrong(w, work_of(w), "no file", any, 0);
		return;
	}
	for (slot = 0; slot < SLOTS; slot++)
		verify_slot(w, slot, direct);
	close(w->fd);
}

static void slots_verify(struct worker *w)
{
	verify_slots(w, false);
}

static void slots_verify_direct(struct worker *w)
{
	verify_slots(w, true);
}

/* ---- Names that come and go ---- */

/* File k comes, in a directory of its own and under a second name; file
 * k - KEPT goes. */
static bool names_step(struct worker *w)
{
	uint64_t k = w->acks->acked + 1;
	char dir[32], first[32], second[32], old[32];
	int fd;

	snprintf(dir, sizeof(dir), "d.%lu", (long)k);
	snprintf(first, sizeof(first), "d.%lu/f", (long)k);
	snprintf(second, sizeof(second), "s.%lu", (long)k);
	snprintf(old, sizeof(old), "s.%lu", (long)(k - KEPT));
	w->acks->begun = k;
	if (mkdirat(w->dir_fd, dir, 0755))
		return false;
	fd = openat(w->dir_fd, first, O_CREAT | O_EXCL | O_WRONLY, 0644);
	if (fd < 0 || write(fd, &k, sizeof(k)) != sizeof(k) || fsync(fd) ||
	    close(fd) || linkat(w->dir_fd, first, w->dir_fd, second, 0))
		return false;
	if (k > KEPT && unlinkat(w->dir_fd, old, 0))
		return false;
	if (fsync(w->dir_fd))
		return false;
	w->acks->acked = k;
	return true;
}

static void names_verify(struct worker *w)
{
	uint64_t k, is, acked = w->acks->acked;
	char first[32], second[32];
	struct stat st, st2;
	int fd;

	for (k = 1; k <= acked; k++) {
		snprintf(first, sizeof(first), "d.%lu/f", (long)k);
		snprintf(second, sizeof(second), "s.%lu", (long)k);
		fd = openat(w->dir_fd, first, O_RDONLY);
		if (fd < 0 || read(fd, &is, sizeof(is)) != sizeof(is) ||
		    is != k) {
			wrong(w, work_of(w), "file is not there", k, acked);
			return;
		}
		fstat(fd, &st);
		close(fd);
		if (fstatat(w->dir_fd, second, &st2, 0))
			st2.st_ino = 0;
		if (k + KEPT <= acked && st2.st_ino)
			wrong(w, work_of(w), "name is there again", k, acked);
		if (k + KEPT > w->acks->begun && st2.st_ino != st.st_ino)
			wrong(w, work_of(w), "name is not there", k, acked);
		if (st.st_nlink != 1u + (st2.st_ino == st.st_ino))
			wrong(w, work_of(w), "link count", k, st.st_nlink);
	}
}

/* ---- Batches made durable by syncfs ---- */

static bool batch_step(struct worker *w)
{
	uint64_t k = w->acks->acked + 1;
	uint8_t buffer[40001];
	char name[32];
	unsigned i;
	int fd;

	w->acks->begun = k;
	for (i = 0; i < BATCH; i++) {
		size_t bytes = record_bytes(w, k * BATCH + i);

		snprintf(name, sizeof(name), "b.%lu.%u", (long)k, i);
		stress_fill(buffer, w->seed + k * BATCH + i, 0, bytes);
		fd = openat(w->dir_fd, name, O_CREAT | O_WRONLY, 0644);
		if (fd < 0 || write(fd, buffer, bytes) != (ssize_t)bytes ||
		    close(fd))
			return false;
		snprintf(name, sizeof(name), "b.%lu.%u", (long)(k - 2), i);
		if (k > 2 && unlinkat(w->dir_fd, name, 0))
			return false;
	}
	if (syncfs(w->dir_fd))
		return false;
	w->acks->acked = k;
	return true;
}

static void batch_verify(struct worker *w)
{
	uint64_t k, acked = w->acks->acked;
	uint8_t buffer[40001];
	char name[32];
	unsigned i;
	int fd;

	for (k = 1; k <= acked; k++)
		for (i = 0; i < BATCH; i++) {
			size_t bytes = record_bytes(w, k * BATCH + i);

			snprintf(name, sizeof(name), "b.%lu.%u", (long)k, i);
			fd = openat(w->dir_fd, name, O_RDONLY);
			if (fd >= 0 && k + 2 <= acked)
				wrong(w, work_of(w), "is there again", k, i);
			if (fd < 0 && k + 2 > w->acks->begun)
				wrong(w, work_of(w), "is not there", k, i);
			if (fd < 0)
				continue;
			if (read(fd, buffer, sizeof(buffer)) !=
				    (ssize_t)bytes ||
			    stress_compare(buffer, w->seed + k * BATCH + i, 0,
					   bytes) != bytes)
				wrong(w, work_of(w), "content", k, i);
			close(fd);
		}
}

/* ---- Sizes and attributes ---- */

/* Truncates up and down and sets an attribute to the same number. */
static bool sizes_begin(struct worker *w)
{
	w->fd = openat(w->dir_fd, "sized", O_CREAT | O_RDWR, 0644);
	return w->fd >= 0 && fsync(w->dir_fd) == 0;
}

static size_t size_of(const struct worker *w, uint64_t k)
{
	return record_bytes(w, k) * 7;
}

static bool sizes_step(struct worker *w)
{
	uint64_t k = w->acks->acked + 1;
	struct timespec times[2] = { { (time_t)k, 0 }, { (time_t)k, 7 } };

	w->acks->begun = k;
	if (ftruncate(w->fd, (off_t)size_of(w, k)) ||
	    fchmod(w->fd, 0400 | (k & 0177)) || futimens(w->fd, times) ||
	    fsync(w->fd))
		return false;
	w->acks->acked = k;
	return true;
}

static void sizes_verify(struct worker *w)
{
	uint64_t acked = w->acks->acked, begun = w->acks->begun;
	struct stat st;

	if (acked == 0)
		return;
	if (fstatat(w->dir_fd, "sized", &st, 0)) {
		wrong(w, work_of(w), "no file", acked, 0);
		return;
	}
	if (st.st_size != (off_t)size_of(w, acked) &&
	    st.st_size != (off_t)size_of(w, begun))
		wrong(w, work_of(w), "size", st.st_size, acked);
	if ((st.st_mode & 07777) != (0400 | (acked & 0177)) &&
	    (st.st_mode & 07777) != (0400 | (begun & 0177)))
		wrong(w, work_of(w), "mode", st.st_mode, acked);
	if (begun == acked && st.st_mtim.tv_sec != (time_t)acked)
		wrong(w, work_of(w), "time", st.st_mtim.tv_sec, acked);
}

/* ---- Workers ---- */

static bool begin_nothing(struct worker *w)
{
	return w->dir_fd >= 0;
}

static const struct work works[] = {
	{ "append, fsync", append_begin, append_step, append_verify, false },
	{ "replace by rename", begin_nothing, replace_step, replace_verify,
	  false },
	{ "overwrite, fdatasync", slots_begin, slots_step, slots_verify,
	  false },
	{ "O_DSYNC", slots_begin_dsync, slots_step_dsync, slots_verify,
	  false },
	{ "O_DIRECT, fdatasync", slots_begin_direct, slots_step_direct,
	  slots_verify_direct, false },
	{ "fallocated, fdatasync", slots_begin_allocated, slots_step,
	  slots_verify, false },
	{ "mapped, msync", slots_begin_mapped, slots_step_mapped,
	  slots_verify, false },
	{ "names, fsync of the directory", begin_nothing, names_step,
	  names_verify, false },
	{ "sizes and times, fsync", sizes_begin, sizes_step, sizes_verify,
	  false },
	{ "batch, syncfs", begin_nothing, batch_step, batch_verify, true },
};

#define WORKS (sizeof(works) / sizeof(works[0]))

static const struct work *work_of(const struct worker *w)
{
	return &works[w->number % WORKS];
}

static void worker_init(struct worker *w, struct ack_file *file,
			unsigned number, const char *directory)
{
	memset(w, 0, sizeof(*w));
	w->acks = &file->worker[number];
	w->number = number;
	w->random = file->seed * 1000 + number;
	w->seed = stress_random(&w->random) >> 8;
	snprintf(w->directory, sizeof(w->directory), "%s/w%u", directory,
		 number);
}

static bool make_directories(const struct ack_file *file,
			     const char *directory)
{
	char path[512];
	unsigned i;
	int fd;

	for (i = 0; i < file->workers; i++) {
		snprintf(path, sizeof(path), "%s/w%u", directory, i);
		if (mkdir(path, 0755))
			return false;
	}
	fd = open(directory, O_RDONLY);
	return fd >= 0 && fsync(fd) == 0 && close(fd) == 0;
}

static void write_until_the_end(struct worker *w)
{
	w->dir_fd = open(w->directory, O_RDONLY | O_DIRECTORY);
	if (w->dir_fd < 0 || !work_of(w)->begin(w))
		return;
	while (work_of(w)->step(w))
		continue;
	if (errno != ENOTCONN && errno != ECONNABORTED && errno != EIO)
		printf("durable: %s ended: %s\n", work_of(w)->name,
		       strerror(errno));
}

static int write_all(struct ack_file *file, const char *directory)
{
	struct worker w;
	unsigned i;

	if (!make_directories(file, directory))
		stress_die("%s", directory);
	file->made = true;
	for (i = 0; i < file->workers; i++) {
		worker_init(&w, file, i, directory);
		if (work_of(&w)->syncfs && !file->syncfs)
			continue;
		if (fork() == 0) {
			write_until_the_end(&w);
			fflush(stdout);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		continue;
	return 0;
}

static int verify_all(struct ack_file *file, const char *directory)
{
	uint64_t acked = 0;
	bool failed = false;
	struct worker w;
	unsigned i, k;

	for (i = 0; file->made && i < file->workers; i++) {
		worker_init(&w, file, i, directory);
		w.dir_fd = open(w.directory, O_RDONLY | O_DIRECTORY);
		if (w.dir_fd < 0)
			wrong(&w, work_of(&w), "no directory", 0, 0);
		else
			work_of(&w)->verify(&w);
		close(w.dir_fd);
		failed |= w.failed;
		acked += w.acks->acked;
		for (k = 0; k < SLOTS; k++)
			acked += w.acks->slot[k].acked;
	}
	printf("durable: %lu acknowledgements, %s\n", (long)acked,
	       failed ? "WRONG" : "all there");
	return failed;
}

static struct ack_file *open_acks(const char *path, bool create)
{
	int fd = open(path, O_RDWR | (create ? O_CREAT | O_TRUNC : 0), 0644);
	struct ack_file *file;

	if (fd < 0 || (create && ftruncate(fd, sizeof(*file))))
		stress_die("%s", path);
	file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED,
		    fd, 0);
	if (file == MAP_FAILED)
		stress_die("%s", path);
	return file;
}

static const struct option options[] = {
	{ "seed", 1, NULL, 's' }, { "workers", 1, NULL, 'w' },
	{ "no-syncfs", 0, NULL, 'n' }, { 0 },
};

int main(int argc, char **argv)
{
	struct ack_file *file, set = { .seed = 1, .workers = WORKS,
				       .syncfs = true };
	int key;

	while ((key = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (key) {
		case 's': set.seed = strtoull(optarg, NULL, 0); break;
		case 'w': set.workers = atoi(optarg); break;
		case 'n': set.syncfs = false; break;
		default: return 2;
		}
	if (optind + 3 != argc || set.workers == 0 ||
	    set.workers > WORKERS_MAX) {
		fprintf(stderr, "usage: durable write|verify [options] "
			"ACKS DIRECTORY\n");
		return 2;
	}
	if (strcmp(argv[optind], "verify") == 0)
		return verify_all(open_acks(argv[optind + 1], false),
				  argv[optind + 2]);
	file = open_acks(argv[optind + 1], true);
	file->seed = set.seed;
	file->workers = set.workers;
	file->syncfs = set.syncfs;
	return write_all(file, argv[optind + 2]);
}

/*
 * traxdisk_serve.c - the files that traxdisk shows: requests to the disk, its
 * statistics, and the loop that answers them.
 */
#include "tools/traxdisk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <linux/fuse.h>

#include "base/msg.h"

/* The flag exists since Linux 6.2; the headers of a cross compiler may be
 * older. */
#ifndef FOPEN_PARALLEL_DIRECT_WRITES
#define FOPEN_PARALLEL_DIRECT_WRITES (1 << 6)
#endif

/* The two files in the mounted directory. */
#define DISK_INO 2u
#define STATS_INO 3u
/* Seconds for which the kernel may keep attributes: nothing changes them. */
#define TIMEOUT 3600.0

/* A request to the disk, until it is answered. */
struct request {
	struct emul_request emulated;
	struct server *server;
	uint64_t unique;
	int error;		/* 0 or negative errno */
	uint32_t bytes;		/* read: of data; write: written */
	bool read, write;
	_Atomic unsigned left;	/* the drive and the data to be done */
	char data[];
};

/* ---- answers ---- */

static void reply(const struct server *s, uint64_t unique, int error,
		  const void *data, size_t bytes)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + bytes),
		.error = error,
		.unique = unique,
	};
	struct iovec iov[] = {
		{ &out, sizeof(out) },
		{ (void *)(uintptr_t)data, bytes },
	};

	/* ENOENT says that the request was interrupted, ENODEV that the file
	 * system was unmounted. In both cases no process waits for the
	 * answer. */
	if (writev(fuse_session_fd(s->session), iov, bytes ? 2 : 1) < 0 &&
	    errno != ENOENT && errno != ENODEV)
		msg_error("answering: %s", strerror(errno));
}

/* To be called when the drive has finished a request, and when its data have
 * been moved; the second call answers it. */
static void request_over(struct request *r)
{
	struct fuse_write_out written = { .size = r->bytes };

	if (atomic_fetch_sub(&r->left, 1) > 1)
		return;
	if (r->error)
		reply(r->server, r->unique, r->error, NULL, 0);
	else if (r->write)
		reply(r->server, r->unique, 0, &written, sizeof(written));
	else
		reply(r->server, r->unique, 0, r->data, r->bytes);
	free(r);
}

static void request_done(struct emul_request *emulated)
{
	request_over((struct request *)emulated);
}

static struct request *request_new(struct server *s, uint64_t unique,
				   enum disk_op op, uint64_t offset,
				   uint32_t bytes)
{
	struct request *r = malloc(sizeof(*r) +
				   (op == DISK_READ ? bytes : 0));

	if (!r) {
		reply(s, unique, -ENOMEM, NULL, 0);
		return NULL;
	}
	memset(r, 0, sizeof(*r));
	r->server = s;
	r->unique = unique;
	r->bytes = bytes;
	r->read = op == DISK_READ;
	r->write = op == DISK_WRITE;
	atomic_init(&r->left, op == DISK_FLUSH ? 1 : 2);
	r->emulated.done = request_done;
	r->emulated.timing.op = op;
	if (op != DISK_FLUSH) {
		r->emulated.timing.lbn = offset / SECTOR_BYTES;
		r->emulated.timing.sectors =
			(uint32_t)((offset + bytes - 1) / SECTOR_BYTES -
				   offset / SECTOR_BYTES + 1);
	}
	return r;
}

/* Returns how many bytes of a request lie on the disk. */
static uint32_t clip(const struct server *s, uint64_t offset, uint32_t bytes)
{
	if (offset >= s->bytes)
		return 0;
	return s->bytes - offset < bytes ? (uint32_t)(s->bytes - offset) :
					   bytes;
}

/* Reads all of the bytes, or returns -errno. What lies beyond the end of the
 * image reads as zeros. */
static int image_read(int fd, char *buf, uint32_t bytes, uint64_t offset)
{
	while (bytes) {
		ssize_t n = pread(fd, buf, bytes, (off_t)offset);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0) {
			memset(buf, 0, bytes);
			return 0;
		}
		if (n > 0) {
			buf += n;
			offset += (uint64_t)n;
			bytes -= (uint32_t)n;
		}
	}
	return 0;
}

static int image_write(int fd, const char *buf, uint32_t bytes,
		       uint64_t offset)
{
	while (bytes) {
		ssize_t n = pwrite(fd, buf, bytes, (off_t)offset);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			buf += n;
			offset += (uint64_t)n;
			bytes -= (uint32_t)n;
		}
	}
	return 0;
}

/* ---- requests to the disk ---- */

/* Gives the request to the emulated drive. While the drive is told to take no
 * time the request ends at once. */
static void begin(struct server *s, struct request *r)
{
	if (atomic_load(&s->passing))
		r->emulated.done(&r->emulated);
	else
		emul_submit(s->emul, &r->emulated);
}

static void take_read(struct server *s, uint64_t unique,
		      const struct fuse_read_in *in)
{
	uint32_t bytes = clip(s, in->offset, in->size);
	struct request *r;

	if (!bytes) {
		reply(s, unique, 0, NULL, 0);
		return;
	}
	r = request_new(s, unique, DISK_READ, in->offset, bytes);
	if (!r)
		return;
	begin(s, r);
	r->error = image_read(s->image, r->data, bytes, in->offset);
	request_over(r);
}

static void take_write(struct server *s, uint64_t unique,
		       const struct fuse_write_in *in)
{
	uint32_t bytes = clip(s, in->offset, in->size);
	struct request *r;

	if (!bytes) {
		reply(s, unique, in->size ? -ENOSPC : 0, NULL, 0);
		return;
	}
	r = request_new(s, unique, DISK_WRITE, in->offset, bytes);
	if (!r)
		return;
	begin(s, r);
	r->error = image_write(s->image, (const char *)(in + 1), bytes,
			       in->offset);
	request_over(r);
}

static void take_open(struct server *s, uint64_t unique)
{
	struct fuse_open_out out = {
		.open_flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES,
	};

	reply(s, unique, 0, &out, sizeof(out));
}

static void take_fsync(struct server *s, uint64_t unique)
{
	struct request *r = request_new(s, unique, DISK_FLUSH, 0, 0);

	if (r)
		begin(s, r);
}

/* Takes a message from the kernel; false when it is libfuse's. */
static bool take(struct server *s, const void *message)
{
	const struct fuse_in_header *in = message;

	if (in->opcode == FUSE_INTERRUPT)
		return true;
	if (in->nodeid != DISK_INO)
		return false;
	switch (in->opcode) {
	case FUSE_OPEN:
		take_open(s, in->unique);
		return true;
	case FUSE_READ:
		take_read(s, in->unique, (const void *)(in + 1));
		return true;
	case FUSE_WRITE:
		take_write(s, in->unique, (const void *)(in + 1));
		return true;
	case FUSE_FSYNC:
		take_fsync(s, in->unique);
		return true;
	case FUSE_RELEASE:
		reply(s, in->unique, 0, NULL, 0);
		return true;
	default:
		return false;
	}
}

static void *receive(void *arg)
{
	struct server *s = arg;
	struct fuse_buf buf = { .mem = NULL };
	int n;

	if (!s->fast)
		emul_expedite(1);
	while (!fuse_session_exited(s->session)) {
		n = fuse_session_receive_buf(s->session, &buf);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			break;
		if (!take(s, buf.mem))
			fuse_session_process_buf(s->session, &buf);
	}
	fuse_session_exit(s->session);
	free(buf.mem);
	return NULL;
}

/* ---- statistics ---- */

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void stats_head(FILE *f, const struct drive_times *t)
{
	fprintf(f, "  \"head_ms\": {\n"
		"    \"seek\": %.3f,\n    \"switch\": %.3f,\n"
		"    \"rotation\": %.3f,\n    \"transfer\": %.3f,\n"
		"    \"prefetch\": %.3f,\n    \"overhead\": %.3f,\n"
		"    \"idle\": %.3f\n  },\n",
		ms(t->seek_ns), ms(t->switch_ns), ms(t->rotation_ns),
		ms(t->transfer_ns), ms(t->prefetch_ns), ms(t->overhead_ns),
		ms(t->idle_ns));
	fprintf(f, "  \"accesses\": %" PRIu64 ",\n  \"joined\": %" PRIu64
		",\n  \"read_hits\": %" PRIu64 ",\n  \"prefetched_bytes\": %"
		PRIu64 ",\n  \"energy_j\": %.3f,\n", t->accesses, t->joined,
		t->read_hits, t->prefetched_sectors * SECTOR_BYTES,
		t->energy_j);
}

/* Returns all statistics as text, which the caller frees; NULL: out of
 * memory. */
static char *stats_text(struct server *s)
{
	struct emul_stats st;
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);

	if (!f)
		return NULL;
	emul_get_stats(s->emul, &st);
	fprintf(f, "{\n  \"elapsed_ms\": %.3f,\n  \"slow\": %g,\n",
		ms(st.elapsed_ns), s->slow);
	fprintf(f, "  \"reads\": %" PRIu64 ",\n  \"writes\": %" PRIu64
		",\n  \"flushes\": %" PRIu64 ",\n", st.reads, st.writes,
		st.flushes);
	fprintf(f, "  \"read_bytes\": %" PRIu64 ",\n  \"written_bytes\": %"
		PRIu64 ",\n", st.read_sectors * SECTOR_BYTES,
		st.written_sectors * SECTOR_BYTES);
	stats_head(f, &st.times);
	fprintf(f, "  \"late_us\": { \"median\": %.1f, \"p99\": %.1f, "
		"\"max\": %.1f, \"requests\": %" PRIu64 " }\n}\n",
		(double)st.late_median_ns / 1e3,
		(double)st.late_p99_ns / 1e3, (double)st.late_max_ns / 1e3,
		st.late_n);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- what libfuse answers: names, attributes, the statistics ---- */

static struct server *server_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static void disk_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	conn->max_background = 256;
	conn->congestion_threshold = 256;
	conn->want |= conn->capable & FUSE_CAP_ASYNC_DIO;
	conn->want &= ~(unsigned)FUSE_CAP_SPLICE_READ;
}

static bool attr_of(const struct server *s, fuse_ino_t ino, struct stat *st)
{
	*st = (struct stat){
		.st_ino = ino,
		.st_nlink = 1,
		.st_uid = geteuid(),
		.st_gid = getegid(),
		.st_blksize = s->spec->physical_bytes,
		.st_atime = s->started,
		.st_mtime = s->started,
		.st_ctime = s->started,
	};
	if (ino == FUSE_ROOT_ID) {
		st->st_mode = S_IFDIR | 0755;
		st->st_nlink = 2;
	} else if (ino == DISK_INO) {
		st->st_mode = S_IFREG | 0660;
		st->st_size = (off_t)s->bytes;
		st->st_blocks = (blkcnt_t)(s->bytes / SECTOR_BYTES);
	} else if (ino == STATS_INO) {
		st->st_mode = S_IFREG | 0664;
	} else {
		return false;
	}
	return true;
}

static void disk_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = { .attr_timeout = TIMEOUT,
				      .entry_timeout = TIMEOUT };

	if (parent == FUSE_ROOT_ID && !strcmp(name, "disk"))
		e.ino = DISK_INO;
	else if (parent == FUSE_ROOT_ID && !strcmp(name, "stats"))
		e.ino = STATS_INO;
	if (e.ino && attr_of(server_of(req), e.ino, &e.attr))
		fuse_reply_entry(req, &e);
	else
		fuse_reply_err(req, ENOENT);
}

static void disk_getattr(fuse_req_t req, fuse_ino_t ino,
			 struct fuse_file_info *fi)
{
	struct stat st;

	(void)fi;
	if (attr_of(server_of(req), ino, &st))
		fuse_reply_attr(req, &st, TIMEOUT);
	else
		fuse_reply_err(req, ENOENT);
}

/* The size of the file stays that of the disk, so truncation is ignored. */
static void disk_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr,
			 int to_set, struct fuse_file_info *fi)
{
	(void)attr;
	(void)to_set;
	disk_getattr(req, ino, fi);
}

static void disk_readdir(fuse_req_t req, fuse_ino_t ino, size_t size,
			 off_t off, struct fuse_file_info *fi)
{
	static const struct {
		const char *name;
		fuse_ino_t ino;
	} names[] = { { ".", FUSE_ROOT_ID }, { "..", FUSE_ROOT_ID },
		      { "disk", DISK_INO }, { "stats", STATS_INO } };
	char buf[1024];
	size_t used = 0;

	(void)fi;
	if (ino != FUSE_ROOT_ID) {
		fuse_reply_err(req, ENOTDIR);
		return;
	}
	if (size > sizeof(buf))
		size = sizeof(buf);
	for (size_t i = (size_t)off; i < 4; i++) {
		struct stat st;
		size_t n;

		attr_of(server_of(req), names[i].ino, &st);
		n = fuse_add_direntry(req, buf + used, size - used,
				      names[i].name, &st, (off_t)i + 1);
		if (n > size - used)
			break;
		used += n;
	}
	fuse_reply_buf(req, buf, used);
}

/* A reader gets the statistics as they were when it opened the file. */
static void stats_open(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	char *text;

	if (ino != STATS_INO) {
		fuse_reply_err(req, EISDIR);
		return;
	}
	text = stats_text(server_of(req));
	if (!text) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	fi->fh = (uintptr_t)text;
	fi->direct_io = 1;
	fuse_reply_open(req, fi);
}

static void stats_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	const char *text = (const char *)(uintptr_t)fi->fh;
	size_t bytes = strlen(text);

	(void)ino;
	if ((size_t)off >= bytes)
		fuse_reply_buf(req, NULL, 0);
	else
		fuse_reply_buf(req, text + off,
			       bytes - (size_t)off < size ?
				       bytes - (size_t)off : size);
}

/* Carries out a word that was written to the statistics; false: the word is not
 * known. */
static bool command(struct server *s, const char *word, size_t n)
{
	static const char *const words[] = { "reset", "full", "real" };
	unsigned i = 0;

	while (i < 3 && (n != strlen(words[i]) || memcmp(word, words[i], n)))
		i++;
	if (i == 3)
		return false;
	if (!i)
		emul_reset_stats(s->emul);
	else
		atomic_store(&s->passing, i == 1);
	return true;
}

static void stats_write(fuse_req_t req, fuse_ino_t ino, const char *buf,
			size_t size, off_t off, struct fuse_file_info *fi)
{
	size_t n = size;

	(void)ino;
	(void)off;
	(void)fi;
	while (n && (buf[n - 1] == '\n' || buf[n - 1] == ' '))
		n--;
	if (command(server_of(req), buf, n))
		fuse_reply_write(req, size);
	else
		fuse_reply_err(req, EINVAL);
}

static void stats_release(fuse_req_t req, fuse_ino_t ino,
			  struct fuse_file_info *fi)
{
	(void)ino;
	free((void *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops operations = {
	.init = disk_init,
	.lookup = disk_lookup,
	.getattr = disk_getattr,
	.setattr = disk_setattr,
	.readdir = disk_readdir,
	.open = stats_open,
	.read = stats_read,
	.write = stats_write,
	.release = stats_release,
};

/* ---- serving ---- */

static void woken(int signal)
{
	(void)signal;
}

/* Ends a receiver. It sleeps in read(2) when another one has received the order
 * to end. */
static void end_receiver(pthread_t thread)
{
	struct timespec moment = { .tv_nsec = 1000000 };

	while (pthread_tryjoin_np(thread, NULL)) {
		pthread_kill(thread, SIGUSR1);
		nanosleep(&moment, NULL);
	}
}

static void serve(struct server *s)
{
	struct sigaction wake = { .sa_handler = woken };
	pthread_t thread;
	bool two;

	sigaction(SIGUSR1, &wake, NULL);
	two = !pthread_create(&thread, NULL, receive, s);
	pthread_sigmask(SIG_UNBLOCK, &s->ending, NULL);
	receive(s);
	if (two)
		end_receiver(thread);
}

static int serve_mounted(struct server *s, const struct arguments *a,
			 const struct emul_options *options)
{
	int err;

	/* fuse_daemonize forks, and only the calling thread survives a fork, so
	 * threads are started after it. The main thread takes the signals that
	 * end the program. */
	if (fuse_daemonize(a->foreground) < 0)
		return -errno;
	sigemptyset(&s->ending);
	sigaddset(&s->ending, SIGTERM);
	sigaddset(&s->ending, SIGINT);
	sigaddset(&s->ending, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &s->ending, NULL);
	err = emul_start(s->spec, options, &s->emul);
	if (err)
		return err;
	serve(s);
	emul_stop(s->emul);
	return 0;
}

int server_run(struct server *s, const struct arguments *a,
	       const struct emul_options *options)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	/* The path is made absolute, because a daemon changes to the root
	 * directory. */
	char *where = realpath(a->args[2], NULL);
	int err = -ENOMEM;

	if (!where) {
		err = -errno;
		msg_error("%s: %s", a->args[2], strerror(errno));
		return err;
	}
	if (fuse_opt_add_arg(&args, "traxdisk") ||
	    fuse_opt_add_arg(&args, "-ofsname=traxdisk,subtype=traxdisk") ||
	    (a->mount_options &&
	     (fuse_opt_add_arg(&args, "-o") ||
	      fuse_opt_add_arg(&args, a->mount_options))))
		goto out;
	err = -EINVAL;
	s->session = fuse_session_new(&args, &operations, sizeof(operations),
				      s);
	if (!s->session)
		goto out;
	if (fuse_set_signal_handlers(s->session))
		goto out_session;
	if (fuse_session_mount(s->session, where))
		goto out_signals;
	err = serve_mounted(s, a, options);
	fuse_session_unmount(s->session);
out_signals:
	fuse_remove_signal_handlers(s->session);
out_session:
	fuse_session_destroy(s->session);
out:
	fuse_opt_free_args(&args);
	free(where);
	return err;
}

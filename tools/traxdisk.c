/*
 * traxdisk.c - an emulated drive as a file: DIRECTORY/disk, and how it fares
 * in DIRECTORY/stats.
 *
 * Bytes go to and from a sparse image as soon as a request arrives; the answer
 * is held back until the drive would have given it (sim/emul.h).
 *
 * The requests that matter (open, read, write and fsync of the disk) are taken
 * from the FUSE channel before libfuse sees them and answered with writev: the
 * answer comes from another thread later, and open asks for parallel direct
 * writes, which libfuse 3.14 does not know.  Everything else is libfuse's.
 *
 * Opening for direct I/O keeps the page cache out: each read or write of the
 * caller is a request here, in pieces of up to 1 MiB.
 */
#include <argp.h>
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
#include "diskmodel/spec.h"
#include "sim/emul.h"
#include "sim/named.h"

#define DISK_INO 2u
#define STATS_INO 3u
#define TIMEOUT 3600.0

struct server {
	struct fuse_session *session;
	struct emul *emul;
	const struct spec *spec;
	int image;
	uint64_t bytes;
	double slow;
	bool fast;
	_Atomic bool passing;	/* nothing takes time, for the moment */
	time_t started;
	sigset_t ending;	/* signals */
};

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

enum { OPT_SLOW = 256, OPT_FAST, OPT_TRACE, OPT_SEED, OPT_PROFILE, OPT_TRACKS,
       OPT_INFO, OPT_JSON };

struct arguments {
	const char *args[3];
	unsigned args_n;
	bool foreground, fast, json;
	double slow;
	uint64_t seed;
	const char *trace, *mount_options;
	int show;		/* OPT_PROFILE ..., or 0: serve */
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

	/* ENOENT: interrupted; ENODEV: unmounted.  Nobody to tell. */
	if (writev(fuse_session_fd(s->session), iov, bytes ? 2 : 1) < 0 &&
	    errno != ENOENT && errno != ENODEV)
		msg_error("answering: %s", strerror(errno));
}

/* The drive is done with it, or its data are moved: the last one answers. */
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

/* How much of a request lies on the disk. */
static uint32_t clip(const struct server *s, uint64_t offset, uint32_t bytes)
{
	if (offset >= s->bytes)
		return 0;
	return s->bytes - offset < bytes ? (uint32_t)(s->bytes - offset) :
					   bytes;
}

/* All of it, or -errno.  An image that ends early reads as zeros. */
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

/* What it waits for: the drive's moment, or nothing. */
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

/* All there is to say, as text; NULL: out of memory. */
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

/* Sizes stay what they are, as a disk's does: truncation is ignored. */
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

/* A reader sees the moment of its open. */
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

/* A word that was written to the statistics; false: none that is known. */
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

/* The other receiver sleeps in read(2) when this one was told to end. */
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

	/* Threads do not survive the fork in here: none before it.  The
	 * signals that end us are the main thread's. */
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

static int mount_and_serve(struct server *s, const struct arguments *a,
			   const struct emul_options *options)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	/* Absolute: a daemon lives in the root directory. */
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

/* Opens the image, makes it as large as the drive.  A descriptor or -errno. */
static int image_open(const char *path, uint64_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	struct stat st;
	int err = 0;

	if (fd < 0 || fstat(fd, &st) < 0) {
		err = -errno;
		msg_error("%s: %s", path, strerror(errno));
	} else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		err = -EBUSY;
		msg_error("%s: in use by another drive", path);
	} else if ((uint64_t)st.st_size > bytes) {
		err = -EINVAL;
		msg_error("%s: larger than the drive", path);
	} else if (ftruncate(fd, (off_t)bytes) < 0) {
		err = -errno;
		msg_error("%s: %s", path, strerror(errno));
	}
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

static int run(const struct spec *spec, const struct geom *geom,
	       const struct arguments *a)
{
	struct server s = {
		.spec = spec,
		.bytes = geom_sectors(geom) * SECTOR_BYTES,
		.slow = a->slow,
		.fast = a->fast,
		.started = time(NULL),
	};
	struct emul_options options = {
		.seed = a->seed,
		.slow = a->slow,
		.fast = a->fast,
	};
	int err = 0;

	s.image = image_open(a->args[1], s.bytes);
	if (s.image < 0)
		return s.image;
	if (a->trace) {
		options.trace = fopen(a->trace, "we");
		if (!options.trace) {
			err = -errno;
			msg_error("%s: %s", a->trace, strerror(errno));
		}
	}
	if (!err)
		err = mount_and_serve(&s, a, &options);
	if (options.trace && fclose(options.trace) && !err)
		err = -EIO;
	close(s.image);
	return err;
}

/* ---- facts ---- */

static void show_tracks(const struct geom *geom, bool json)
{
	struct geom_track t;

	if (!json)
		printf("# first sectors cylinder surface angle\n");
	for (uint64_t i = 0; i < geom_tracks(geom); i++) {
		geom_track_at(geom, i, &t);
		printf(json ? "%s{ \"first\": %" PRIu64 ", \"sectors\": %u, "
			      "\"cylinder\": %u, \"surface\": %u, "
			      "\"angle\": %.10f }" :
			      "%s%" PRIu64 " %u %u %u %.10f\n",
		       !json ? "" : i ? ",\n  " : "[\n  ", t.first, t.sectors,
		       t.cylinder, t.surface, t.start / 4294967296.0);
	}
	if (json)
		printf("\n]\n");
}

static void show_info(const struct spec *spec, const struct geom *geom,
		      bool json)
{
	double rpm = 60e12 / (double)spec->mech.period_ps;
	uint64_t bytes = geom_sectors(geom) * SECTOR_BYTES;
	struct geom_track first, last;

	geom_track_at(geom, 0, &first);
	/* The very last one may be cut short. */
	geom_track_at(geom, geom_tracks(geom) * 999 / 1000, &last);
	printf(json ? "{ \"bytes\": %" PRIu64 ", \"tracks\": %" PRIu64
		      ", \"surfaces\": %u, \"rpm\": %.3f, "
		      "\"physical_bytes\": %u, \"outer_track_sectors\": %u, "
		      "\"inner_track_sectors\": %u }\n" :
		      "bytes           %" PRIu64 "\ntracks          %" PRIu64
		      "\nsurfaces        %u\nrpm             %.3f\n"
		      "physical block  %u bytes\n"
		      "outer track     %u sectors\n"
		      "inner track     %u sectors\n",
	       bytes, geom_tracks(geom), spec->surfaces, rpm,
	       spec->physical_bytes, first.sectors, last.sectors);
}

static int show(const struct spec *spec, const struct geom *geom,
		const struct arguments *a)
{
	int err = 0;

	if (a->show == OPT_PROFILE)
		err = spec_write(spec, stdout);
	else if (a->show == OPT_TRACKS)
		show_tracks(geom, a->json);
	else
		show_info(spec, geom, a->json);
	if (!err && fflush(stdout))
		err = -errno;
	if (err)
		msg_error("standard output: %s", strerror(-err));
	return err;
}

/* ---- the command line ---- */

const char *argp_program_version = "traxdisk " PACKAGE_VERSION;

static const char doc[] =
	"Emulates a rotating disk in real time: serves the file MOUNTPOINT/disk"
	" from IMAGE, with the timing of the drive that SPEC describes (a file"
	" as in traxfs-profile(5), the name of a drive that came with it, or"
	" random:SEED for one that nobody has seen),"
	" and its statistics as MOUNTPOINT/stats.";

static const struct argp_option option_list[] = {
	{ "foreground", 'f', NULL, 0, "Stay in the foreground", 0 },
	{ "options", 'o', "OPTIONS", 0, "Mount options, as allow_other", 0 },
	{ "slow", OPT_SLOW, "N", 0, "Stretch all times by N", 0 },
	{ "fast", OPT_FAST, NULL, 0, "Count time, do not wait", 0 },
	{ "seed", OPT_SEED, "N", 0, "Of jitter and phase; 0 by default", 0 },
	{ "trace", OPT_TRACE, "FILE", 0, "Write a line for each request", 0 },
	{ "profile", OPT_PROFILE, NULL, 0,
	  "Print the true profile of SPEC and exit", 1 },
	{ "tracks", OPT_TRACKS, NULL, 0,
	  "Print a table of all its tracks and exit", 1 },
	{ "info", OPT_INFO, NULL, 0, "Print its size and shape and exit", 1 },
	{ "json", OPT_JSON, NULL, 0, "Print tracks or info as JSON", 1 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static double parse_number(struct argp_state *state, const char *arg,
			   const char *what)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(arg, &end);
	if (errno || end == arg || *end || !(v >= 0) || v > 1e9)
		argp_error(state, "%s: not a number: %s", what, arg);
	return v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'f':
		a->foreground = true;
		return 0;
	case 'o':
		a->mount_options = arg;
		return 0;
	case OPT_SLOW:
		a->slow = parse_number(state, arg, "--slow");
		if (a->slow < 0.001)
			argp_error(state, "--slow: too small");
		return 0;
	case OPT_FAST:
		a->fast = true;
		return 0;
	case OPT_SEED:
		a->seed = (uint64_t)parse_number(state, arg, "--seed");
		return 0;
	case OPT_TRACE:
		a->trace = arg;
		return 0;
	case OPT_PROFILE:
	case OPT_TRACKS:
	case OPT_INFO:
		a->show = key;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->args_n == 3)
			return ARGP_ERR_UNKNOWN;
		a->args[a->args_n++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (a->args_n != (a->show ? 1 : 3))
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		option_list, parse, "SPEC [IMAGE MOUNTPOINT]", doc,
		NULL, NULL, NULL
	};
	struct arguments a = { .slow = 1 };
	struct geom *geom = NULL;
	struct spec *spec = NULL;
	int err;

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	err = named_spec(a.args[0], &spec);
	if (!err)
		err = spec_geom(spec, &geom);
	if (!err)
		err = a.show ? show(spec, geom, &a) : run(spec, geom, &a);
	geom_free(geom);
	spec_free(spec);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

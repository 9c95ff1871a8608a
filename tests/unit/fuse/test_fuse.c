/*
 * test_fuse.c - src/fuse without a kernel: requests go in at one end of a
 * socket pair as the kernel would write them, replies come out there.  The
 * session runs in a thread of its own on the file system of fake_fs.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/fs.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/msg.h"
#include "fuse/control.h"
#include "fuse/extent_view.h"
#include "fuse/request.h"
#include "fuse/session.h"
#include "fuse/statx.h"
#include "tests/rig/test.h"

#define OWNER 1000u
#define LARGE (128u << 10)
#define SMALL (12u << 10)
#define LOW_ROOM (4u << 20)	/* of 8 MiB */

static struct {
	struct fs *fs;
	struct session *session;
	pthread_t thread;
	int kernel, server;		/* the two ends */
	uint64_t unique;
	uint32_t uid;
	uint8_t reply[1 << 20];
	size_t bytes;			/* of the reply behind its header */
} t;

/* A clock that stands still: whatever follows, follows at once. */
static uint64_t still_ns(struct env *env)
{
	(void)env;
	return 1000000000u;
}

static struct env still = { .now_ns = still_ns };

static unsigned background;		/* that INIT has allowed */

/* ---- Talking ---- */

static void send_request(uint32_t opcode, uint64_t node, const void *fixed,
			 size_t n, const void *tail, size_t tail_bytes)
{
	struct fuse_in_header header = {
		.len = (uint32_t)(sizeof(header) + n + tail_bytes),
		.opcode = opcode,
		.unique = ++t.unique,
		.nodeid = node,
		.uid = t.uid,
	};
	struct iovec iov[3] = {
		{ &header, sizeof(header) },
		{ (void *)fixed, n },
		{ (void *)tail, tail_bytes },
	};

	ck_assert_int_eq(writev(t.kernel, iov, 3), header.len);
}

static int take_reply_to(uint64_t unique)
{
	struct fuse_out_header header;
	struct iovec iov[2] = {
		{ &header, sizeof(header) },
		{ t.reply, sizeof(t.reply) },
	};
	ssize_t n = readv(t.kernel, iov, 2);

	ck_assert_int_ge(n, sizeof(header));
	ck_assert_int_eq(n, header.len);
	ck_assert_uint_eq(header.unique, unique);
	t.bytes = (size_t)n - sizeof(header);
	return header.error;
}

static int take_reply(void)
{
	return take_reply_to(t.unique);
}

/* A request with a fixed part and what follows it; its error. */
static int ask(uint32_t opcode, uint64_t node, const void *fixed, size_t n,
	       const void *tail, size_t tail_bytes)
{
	send_request(opcode, node, fixed, n, tail, tail_bytes);
	return take_reply();
}

static int ask_name(uint32_t opcode, uint64_t node, const char *name)
{
	return ask(opcode, node, NULL, 0, name, strlen(name) + 1);
}

static uint64_t reply_node(void)
{
	struct fuse_entry_out entry;

	ck_assert_uint_ge(t.bytes, sizeof(entry));
	memcpy(&entry, t.reply, sizeof(entry));
	return entry.nodeid;
}

static uint64_t make_file(const char *name)
{
	struct fuse_mknod_in in = { .mode = S_IFREG | 0666, .umask = 022 };

	ck_assert_int_eq(ask(FUSE_MKNOD, 1, &in, sizeof(in), name,
			     strlen(name) + 1), 0);
	return reply_node();
}

static int ask_attr_flags(uint64_t node, uint32_t flags)
{
	struct fuse_getattr_in in = { .getattr_flags = flags };

	return ask(FUSE_GETATTR, node, &in, sizeof(in), NULL, 0);
}

static int ask_attr(uint64_t node)
{
	return ask_attr_flags(node, 0);
}

static uint64_t open_file(uint64_t node, uint32_t flags)
{
	struct fuse_open_in in = { .flags = flags };
	struct fuse_open_out out;

	ck_assert_int_eq(ask(FUSE_OPEN, node, &in, sizeof(in), NULL, 0), 0);
	memcpy(&out, t.reply, sizeof(out));
	return out.fh;
}

/* As read(2) and write(2) ask. */
static void send_attr_by(uint64_t node, uint64_t handle)
{
	struct fuse_getattr_in in = { .getattr_flags = FUSE_GETATTR_FH,
				      .fh = handle };

	send_request(FUSE_GETATTR, node, &in, sizeof(in), NULL, 0);
}

static int ask_attr_by(uint64_t node, uint64_t handle)
{
	send_attr_by(node, handle);
	return take_reply();
}

/* ---- Set-up ---- */

/* After a failure nobody is to wait for replies. */
static void *run_session(void *arg)
{
	int rc = session_run(t.session);

	(void)arg;
	if (rc)
		shutdown(t.server, SHUT_RDWR);
	return (void *)(intptr_t)rc;
}

static void say_nothing(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

static void send_init(uint32_t minor, uint32_t flags)
{
	struct fuse_init_in in = { .major = 7, .minor = minor, .flags = flags };

	send_request(FUSE_INIT, 0, &in, sizeof(in), NULL, 0);
}

static void open_session_in(struct env *env)
{
	struct session_options o = { .env = env, .signal_fd = -1,
				     .owner = OWNER };
	int ends[2];

	t.uid = 0;
	msg_set_sink(say_nothing, NULL);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	t.kernel = ends[0];
	o.fd = t.server = ends[1];
	ck_assert_int_eq(fs_open(NULL, NULL, NULL, &t.fs), 0);
	ck_assert_int_eq(session_new(t.fs, &o, &t.session), 0);
	session_set_low_room(t.session, LOW_ROOM);
}

static void open_session(void)
{
	open_session_in(env_real());
}

static void setup_in(struct env *env)
{
	struct fuse_init_out out;

	open_session_in(env);
	send_init(45, 0xffffffff);
	ck_assert_int_eq(session_start(t.session), 0);
	ck_assert_int_eq(take_reply(), 0);
	memcpy(&out, t.reply, sizeof(out));
	background = out.max_background;
	ck_assert_int_eq(pthread_create(&t.thread, NULL, run_session, NULL),
			 0);
}

static void setup(void)
{
	setup_in(env_real());
}

/* Our end shut is the kernel gone. */
static void end_session(void)
{
	void *rc;

	shutdown(t.kernel, SHUT_WR);
	ck_assert_int_eq(pthread_join(t.thread, &rc), 0);
	ck_assert_ptr_null(rc);
}

static void teardown(void)
{
	end_session();
	fs_close(t.fs);
	session_free(t.session);
	close(t.kernel);
	close(t.server);
}

/* ---- Negotiation ---- */

START_TEST(init_takes_what_is_offered)
{
	struct fuse_init_out out;

	open_session();
	send_init(45, 0xffffffff);
	ck_assert_int_eq(session_start(t.session), 0);
	ck_assert_int_eq(take_reply(), 0);
	ck_assert_uint_eq(t.bytes, sizeof(out));
	memcpy(&out, t.reply, sizeof(out));
	ck_assert_uint_eq(out.major, 7);
	ck_assert_uint_eq(out.max_write, 1 << 20);
	ck_assert_int_eq(out.max_pages * sysconf(_SC_PAGESIZE), 1 << 20);
	/* Read-ahead is never dropped as that of a congested connection. */
	ck_assert_uint_gt(out.congestion_threshold, out.max_background);
	ck_assert(out.flags & FUSE_WRITEBACK_CACHE);
	ck_assert(out.flags & FUSE_HANDLE_KILLPRIV_V2);
	ck_assert(out.flags & FUSE_POSIX_ACL);
	/* Not ours: locks are the kernel's, holes too. */
	ck_assert(!(out.flags & (FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS)));
	ck_assert(!(out.flags & FUSE_AUTO_INVAL_DATA));
	fs_close(t.fs);
	session_free(t.session);
}
END_TEST

START_TEST(init_refuses_an_old_kernel)
{
	open_session();
	send_init(20, 0xffffffff);
	ck_assert_int_eq(session_start(t.session), -EPROTO);
	ck_assert_int_eq(take_reply(), -EPROTO);
	fs_close(t.fs);
	session_free(t.session);
}
END_TEST

START_TEST(init_refuses_a_poor_kernel)
{
	open_session();
	send_init(45, FUSE_BIG_WRITES);
	ck_assert_int_eq(session_start(t.session), -EPROTO);
	ck_assert_int_eq(take_reply(), -EPROTO);
	fs_close(t.fs);
	session_free(t.session);
}
END_TEST

/* ---- Bad requests ---- */

START_TEST(unknown_opcodes_are_enosys)
{
	ck_assert_int_eq(ask(FUSE_BMAP, 1, NULL, 0, NULL, 0), -ENOSYS);
	ck_assert_int_eq(ask(FUSE_LSEEK, 1, NULL, 0, NULL, 0), -EINVAL);
	ck_assert_int_eq(ask(12345, 1, NULL, 0, NULL, 0), -ENOSYS);
}
END_TEST

START_TEST(malformed_requests_are_einval)
{
	struct fuse_write_in w = { .size = 100 };

	ck_assert_int_eq(ask(FUSE_LOOKUP, 1, NULL, 0, "abc", 3), -EINVAL);
	ck_assert_int_eq(ask(FUSE_SETATTR, 1, "1234", 4, NULL, 0), -EINVAL);
	ck_assert_int_eq(ask(FUSE_SYMLINK, 1, NULL, 0, "a\0b", 3), -EINVAL);
	ck_assert_int_eq(ask(FUSE_WRITE, 1, &w, sizeof(w), "x", 1), -EINVAL);
}
END_TEST

/* ---- Notices ---- */

/* The next message has the kernel forget this; offset -1: attributes. */
static void take_notice(uint64_t node, int64_t offset, int64_t bytes)
{
	struct {
		struct fuse_out_header header;
		struct fuse_notify_inval_inode_out inode;
	} told;

	ck_assert_int_eq(read(t.kernel, &told, sizeof(told)), sizeof(told));
	ck_assert_uint_eq(told.header.unique, 0);
	ck_assert_int_eq(told.header.error, FUSE_NOTIFY_INVAL_INODE);
	ck_assert_uint_eq(told.inode.ino, node);
	ck_assert_int_eq(told.inode.off, offset);
	ck_assert_int_eq(told.inode.len, bytes);
}

/* Pages that were read while a direct write was on its way may be old. */
START_TEST(direct_writes_drop_pages)
{
	struct fuse_write_in w = { .size = 3, .offset = 5,
				   .write_flags = FUSE_WRITE_LOCKOWNER };
	struct fuse_read_in r = { .size = 4096,
				  .read_flags = FUSE_READ_LOCKOWNER };
	struct fuse_write_out out;
	uint64_t node = make_file("f");

	ck_assert_int_eq(ask(FUSE_READ, node, &r, sizeof(r), NULL, 0), 0);
	ck_assert_int_eq(ask(FUSE_WRITE, node, &w, sizeof(w), "abc", 3), 0);
	r.read_flags = 0;
	ck_assert_int_eq(ask(FUSE_READ, node, &r, sizeof(r), NULL, 0), 0);
	send_request(FUSE_WRITE, node, &w, sizeof(w), "abc", 3);
	take_notice(node, 5, 3);
	ck_assert_int_eq(take_reply(), 0);
	memcpy(&out, t.reply, sizeof(out));
	ck_assert_uint_eq(out.size, 3);
	w.write_flags = FUSE_WRITE_CACHE;
	ck_assert_int_eq(ask(FUSE_WRITE, node, &w, sizeof(w), "abc", 3), 0);
}
END_TEST

/* ---- Modes ---- */

/* Whoever writes takes set-uid from the file: the kernel is to forget the mode
 * before it hears that the data is written. */
START_TEST(the_mode_is_forgotten_first)
{
	struct fuse_write_in w = { .size = 1,
				   .write_flags = FUSE_WRITE_KILL_SUIDGID };
	uint64_t node = make_file("f");

	send_request(FUSE_WRITE, node, &w, sizeof(w), "x", 1);
	take_notice(node, -1, 0);
	ck_assert_int_eq(take_reply(), 0);
	w.write_flags = 0;
	ck_assert_int_eq(ask(FUSE_WRITE, node, &w, sizeof(w), "x", 1), 0);
}
END_TEST

START_TEST(the_root_has_no_generation)
{
	struct fuse_entry_out entry;

	ck_assert_int_eq(ask_name(FUSE_LOOKUP, 1, "."), 0);
	memcpy(&entry, t.reply, sizeof(entry));
	ck_assert_uint_eq(entry.generation, 0);
	make_file("f");
	memcpy(&entry, t.reply, sizeof(entry));
	ck_assert_uint_eq(entry.generation, 1);
}
END_TEST

/* ---- Names ---- */

START_TEST(names_come_and_go)
{
	uint64_t node;

	ck_assert_int_eq(ask_name(FUSE_LOOKUP, 1, "f"), 0);
	ck_assert_uint_eq(reply_node(), 0);
	node = make_file("f");
	ck_assert_int_eq(ask_name(FUSE_LOOKUP, 1, "f"), 0);
	ck_assert_uint_eq(reply_node(), node);
	ck_assert_int_eq(ask_name(FUSE_UNLINK, 1, "f"), 0);
	ck_assert_int_eq(ask_name(FUSE_UNLINK, 1, "f"), -ENOENT);
	/* Two references are left: the node is there until both are gone. */
	ck_assert_int_eq(ask_attr(node), 0);
	ck_assert_int_eq(ask_name(FUSE_LOOKUP, node, "."), -ESTALE);
}
END_TEST

START_TEST(forget_drops_references)
{
	struct fuse_forget_in one = { .nlookup = 1 };
	struct {
		struct fuse_batch_forget_in head;
		struct fuse_forget_one list[2];
	} batch = { .head.count = 2 };
	uint64_t a = make_file("a"), b = make_file("b");

	ck_assert_int_eq(ask_name(FUSE_UNLINK, 1, "a"), 0);
	ck_assert_int_eq(ask_name(FUSE_UNLINK, 1, "b"), 0);
	send_request(FUSE_FORGET, a, &one, sizeof(one), NULL, 0);
	ck_assert_int_eq(ask_attr(a), -ESTALE);
	ck_assert_int_eq(ask_attr(b), 0);
	batch.list[0] = (struct fuse_forget_one){ b, 1 };
	batch.list[1] = (struct fuse_forget_one){ 999, 7 };
	send_request(FUSE_BATCH_FORGET, 0, &batch, sizeof(batch), NULL, 0);
	ck_assert_int_eq(ask_attr(b), -ESTALE);
}
END_TEST

START_TEST(rename_flags_are_passed)
{
	struct fuse_rename2_in in = { .newdir = 1, .flags = 8 };

	make_file("f");
	ck_assert_int_eq(ask(FUSE_RENAME2, 1, &in, sizeof(in), "f\0g", 4),
			 -EINVAL);
	in.flags = 1;
	ck_assert_int_eq(ask(FUSE_RENAME2, 1, &in, sizeof(in), "f\0g", 4), 0);
}
END_TEST

START_TEST(tmpfile_is_entry_and_handle)
{
	struct fuse_create_in in = { .mode = 0600 };
	struct fuse_entry_out entry;

	ck_assert_int_eq(ask(FUSE_TMPFILE, 1, &in, sizeof(in), "/", 2), 0);
	ck_assert_uint_eq(t.bytes,
			  sizeof(entry) + sizeof(struct fuse_open_out));
	memcpy(&entry, t.reply, sizeof(entry));
	ck_assert_uint_eq(entry.attr.nlink, 0);
	ck_assert_uint_eq(entry.attr.mode, S_IFREG | 0600);
}
END_TEST

static void ask_forget(uint64_t node, uint64_t n)
{
	struct fuse_forget_in in = { .nlookup = n };

	send_request(FUSE_FORGET, node, &in, sizeof(in), NULL, 0);
}

/* What is open stays, however it was opened, until the last RELEASE. */
START_TEST(handles_are_counted)
{
	struct fuse_create_in create = { .mode = 0600, .flags = O_RDWR };
	struct fuse_open_in open = { .flags = O_RDONLY };
	struct fuse_release_in release = { .flags = O_RDWR };
	uint64_t node;

	ck_assert_int_eq(ask(FUSE_CREATE, 1, &create, sizeof(create), "f", 2),
			 0);
	node = reply_node();
	ck_assert_int_eq(ask(FUSE_OPEN, node, &open, sizeof(open), NULL, 0), 0);
	ck_assert_int_eq(ask_name(FUSE_UNLINK, 1, "f"), 0);
	ask_forget(node, 1);
	ck_assert_int_eq(ask_attr(node), 0);
	ck_assert_int_eq(ask(FUSE_RELEASE, node, &release, sizeof(release),
			     NULL, 0), 0);
	ck_assert_int_eq(ask_attr(node), 0);
	ck_assert_int_eq(ask(FUSE_RELEASE, node, &release, sizeof(release),
			     NULL, 0), 0);
	ck_assert_int_eq(ask_attr(node), -ESTALE);
}
END_TEST

/* Reads a directory in small view; how many names. */
static unsigned read_names(uint32_t opcode, size_t head)
{
	struct fuse_read_in in = { .size = 1024 };
	unsigned names = 0;

	for (;;) {
		size_t at = 0;

		ck_assert_int_eq(ask(opcode, 1, &in, sizeof(in), NULL, 0), 0);
		if (!t.bytes)
			return names;
		ck_assert_uint_le(t.bytes, in.size);
		while (at < t.bytes) {
			struct fuse_dirent d;

			memcpy(&d, t.reply + at + head, FUSE_NAME_OFFSET);
			at += head + FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET +
						       d.namelen);
			in.offset = d.off;
			names++;
		}
		ck_assert_uint_eq(at, t.bytes);
	}
}

START_TEST(directories_are_read_in_pieces)
{
	char name[32];
	int i;

	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "a-name-%d", i);
		make_file(name);
	}
	ck_assert_uint_eq(read_names(FUSE_READDIR, 0), 102);
	ck_assert_uint_eq(read_names(FUSE_READDIRPLUS,
				     sizeof(struct fuse_entry_out)), 102);
}
END_TEST

/* ---- Data and attributes ---- */

START_TEST(large_writes_come_back)
{
	uint64_t node = make_file("f");
	struct fuse_write_in w = { .size = LARGE, .offset = 10 };
	struct fuse_read_in r = { .size = LARGE, .offset = 10 };
	uint8_t *data = malloc(LARGE);
	size_t i;
	int turn;

	for (turn = 0; turn < 50; turn++) {
		for (i = 0; i < LARGE; i++)
			data[i] = (uint8_t)(i * 7 + (unsigned)turn);
		ck_assert_int_eq(ask(FUSE_WRITE, node, &w, sizeof(w), data,
				     LARGE), 0);
		ck_assert_int_eq(ask(FUSE_READ, node, &r, sizeof(r), NULL, 0),
				 0);
		ck_assert_uint_eq(t.bytes, LARGE);
		ck_assert_mem_eq(t.reply, data, LARGE);
	}
	r.size = (1 << 20) + 1;
	ck_assert_int_eq(ask(FUSE_READ, node, &r, sizeof(r), NULL, 0),
			 -EINVAL);
	free(data);
}
END_TEST

/* Ends the n requests from number `first` on, which wait in the fake file
 * system. */
static void end_waiting(uint64_t first, unsigned n)
{
	unsigned i;

	send_request(FUSE_SYNCFS, 1, NULL, 0, NULL, 0);
	for (i = 0; i < n; i++)
		ck_assert_int_eq(take_reply_to(first + i), -ENOSPC);
	ck_assert_int_eq(take_reply(), 0);
}

/*
 * As many large WRITEs as the kernel keeps in the background and any number of
 * small ones wait for memory: other requests are read and answered.
 */
START_TEST(waiting_writes_stop_nobody_else)
{
	uint64_t node = make_file("f"), first;
	struct fuse_write_in w = { .offset = 1ull << 41 };
	uint8_t *data = calloc(1, LARGE);
	unsigned i, n = 0;

	first = t.unique + 1;
	w.size = LARGE;
	for (; n < background; n++)
		send_request(FUSE_WRITE, node, &w, sizeof(w), data, LARGE);
	w.size = SMALL;
	for (i = 0; i < 100; i++, n++)
		send_request(FUSE_WRITE, node, &w, sizeof(w), data, SMALL);
	ck_assert_int_eq(ask_attr(node), 0);
	end_waiting(first, n);
	free(data);
}
END_TEST

/* However many READs wait for the disk: none has a buffer before its data is
 * there. */
START_TEST(waiting_reads_stop_nobody_else)
{
	uint64_t node = make_file("f"), first;
	struct fuse_read_in r = { .size = LARGE, .offset = 1ull << 41 };
	unsigned i, n = 150;

	first = t.unique + 1;
	for (i = 0; i < n; i++)
		send_request(FUSE_READ, node, &r, sizeof(r), NULL, 0);
	ck_assert_int_eq(ask_attr(node), 0);
	end_waiting(first, n);
}
END_TEST

/* Replies to READ have room when WRITEs hold all buffers but the last. */
START_TEST(a_read_is_answered_beside_waiting_writes)
{
	uint64_t node = make_file("f"), first;
	struct fuse_write_in w = { .size = LARGE, .offset = 1ull << 41 };
	struct fuse_read_in r = { .size = LARGE };
	uint8_t *data = calloc(1, LARGE);
	unsigned i;

	first = t.unique + 1;
	for (i = 0; i < background; i++)
		send_request(FUSE_WRITE, node, &w, sizeof(w), data, LARGE);
	ck_assert_int_eq(ask(FUSE_READ, node, &r, sizeof(r), NULL, 0), 0);
	end_waiting(first, background);
	free(data);
}
END_TEST

/* The kernel took the data long ago: the next write(2) is told instead. */
START_TEST(writers_hear_of_a_full_disk)
{
	uint64_t node = make_file("f"), other = make_file("g");
	struct fuse_write_in w = { .size = 1, .offset = 1ull << 40,
				   .write_flags = FUSE_WRITE_CACHE };

	uint64_t handle = open_file(node, O_WRONLY);
	uint64_t reader = open_file(node, O_RDONLY);
	uint64_t second = open_file(other, O_RDWR);

	ck_assert_int_eq(ask_attr_by(node, handle), 0);
	ck_assert_int_eq(ask(FUSE_WRITE, node, &w, sizeof(w), "x", 1),
			 -ENOSPC);
	take_notice(node, -1, 0);
	ck_assert_int_eq(ask_attr(node), 0);
	ck_assert_int_eq(ask_attr_by(other, second), 0);
	ck_assert_int_eq(ask_attr_by(node, reader), 0);
	ck_assert_int_eq(ask_attr_by(node, handle), -ENOSPC);
	ck_assert_int_eq(ask_attr_by(node, handle), 0);
}
END_TEST

/* Pages of a file have been written, and end here. */
static void write_page(uint64_t node, uint64_t end)
{
	struct fuse_write_in w = { .size = 1, .offset = end - 1,
				   .write_flags = FUSE_WRITE_CACHE };

	ck_assert_int_eq(ask(FUSE_WRITE, node, &w, sizeof(w), "x", 1), 0);
}

/* Is the next thing that the kernel gets a notice? */
static bool notice_is_next(void)
{
	struct fuse_out_header header;

	ck_assert_int_eq(recv(t.kernel, &header, sizeof(header), MSG_PEEK),
			 sizeof(header));
	return !header.unique;
}

/* What write(2) asks while little is left: first the pages behind the end are
 * written out.  Attributes of the answer are not to be kept. */
static int ask_room(uint64_t node, uint64_t handle, uint64_t end)
{
	struct fuse_attr_out out;
	int rc;

	send_attr_by(node, handle);
	take_notice(node, (int64_t)end, 0);
	if (notice_is_next())
		take_notice(node, -1, 0);
	rc = take_reply();
	memcpy(&out, t.reply, sizeof(out));
	if (!rc)
		ck_assert_uint_eq(out.attr_valid, 0);
	return rc;
}

/* A file that grows by view is refused the one that does not fit, once. */
START_TEST(writers_hear_before_the_disk_is_full)
{
	const uint64_t mb = 1 << 20;
	uint64_t node = make_file("f"), other = make_file("g");
	uint64_t handle = open_file(node, O_WRONLY);
	struct fuse_open_in open = { .flags = O_WRONLY };
	struct fuse_open_out opened;
	uint64_t reader = open_file(node, O_RDONLY);

	write_page(node, 4 * mb);
	ck_assert_int_eq(ask_attr_by(node, handle), 0);
	write_page(node, 5 * mb);
	take_notice(node, -1, 0);
	take_notice(node, 5 * mb, 0);
	ck_assert_int_eq(ask_room(node, handle, 5 * mb), 0);
	write_page(node, 6 * mb);
	ck_assert_int_eq(ask_room(node, handle, 6 * mb), 0);
	send_attr_by(node, reader);
	take_notice(node, -1, 0);
	ck_assert_int_eq(take_reply(), 0);
	send_request(FUSE_OPEN, other, &open, sizeof(open), NULL, 0);
	take_notice(other, -1, 0);
	ck_assert_int_eq(take_reply(), 0);
	memcpy(&opened, t.reply, sizeof(opened));
	ck_assert_int_eq(ask_room(other, opened.fh, 0), 0);
	/* The first one may grow by 1 MiB of the 1.4 that are left. */
	write_page(other, 600 << 10);
	ck_assert_int_eq(ask_room(other, opened.fh, 600 << 10), -ENOSPC);
	/* A write in place may come. */
	ck_assert_int_eq(ask_room(other, opened.fh, 600 << 10), 0);
}
END_TEST

/* Attributes that a lookup brings would expire, and a read across the end of
 * the file would ask then and be refused.  So the kernel is told to drop them,
 * if it knows the file. */
START_TEST(a_lookup_expires_nothing)
{
	const uint64_t mb = 1 << 20;
	uint64_t node = make_file("f");

	open_file(node, O_RDWR);
	ck_assert_int_eq(ask_name(FUSE_LOOKUP, 1, "f"), 0);
	write_page(node, 5 * mb);
	take_notice(node, -1, 0);
	take_notice(node, 5 * mb, 0);
	send_request(FUSE_LOOKUP, 1, NULL, 0, "f", 2);
	take_notice(node, -1, 0);
	ck_assert_int_eq(take_reply(), 0);
	make_file("g");
	ck_assert_int_eq(ask_name(FUSE_LOOKUP, 1, "g"), 0);
}
END_TEST

/* The same by statx(2), which anybody may call. */
START_TEST(a_statx_expires_nothing)
{
	const uint64_t mb = 1 << 20;
	const struct statx_in in = { .mask = STATX_BASIC_STATS };
	uint64_t node = make_file("f");

	open_file(node, O_RDWR);
	write_page(node, 5 * mb);
	take_notice(node, -1, 0);
	take_notice(node, 5 * mb, 0);
	send_request(STATX_OPCODE, node, &in, sizeof(in), NULL, 0);
	take_notice(node, -1, 0);
	ck_assert_int_eq(take_reply(), 0);
}
END_TEST

/* Who tries again after a refusal has what is kept for that, and no more: what
 * has been accepted has room. */
START_TEST(no_write_is_accepted_without_room)
{
	const uint64_t mb = 1 << 20;
	uint64_t node = make_file("f");
	uint64_t handle = open_file(node, O_WRONLY);
	struct fuse_setattr_in cut = { .valid = FATTR_SIZE, .size = 5 * mb };
	uint64_t end;

	write_page(node, 5 * mb);
	take_notice(node, -1, 0);
	take_notice(node, 5 * mb, 0);
	for (end = 5 * mb; end < 7 * mb; end += mb) {
		ck_assert_int_eq(ask_room(node, handle, end), 0);
		write_page(node, end + mb);
	}
	ck_assert_int_eq(ask_room(node, handle, end), -ENOSPC);
	/* One of the two that the file system keeps for pages. */
	ck_assert_int_eq(ask_room(node, handle, end), 0);
	write_page(node, end + mb);
	end += mb;
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(ask_room(node, handle, end), -ENOSPC);
	ck_assert_int_eq(ask(FUSE_SETATTR, node, &cut, sizeof(cut), NULL, 0),
			 0);
	ck_assert_int_eq(ask_room(node, handle, 5 * mb), 0);
}
END_TEST

/* What the kernel may have of a file that did not ask is kept from others, who
 * wait until that is written out. */
START_TEST(room_of_accepted_pages_is_kept)
{
	struct fuse_fallocate_in in = { .length = 7 << 20 };
	uint64_t node = make_file("f"), other = make_file("g");

	open_file(node, O_WRONLY);
	send_request(FUSE_FALLOCATE, other, &in, sizeof(in), NULL, 0);
	do
		take_notice(node, 0, 0);
	while (notice_is_next());
	ck_assert_int_eq(take_reply(), 0);
	in.length = 9 << 20;
	ck_assert_int_eq(ask(FUSE_FALLOCATE, other, &in, sizeof(in), NULL, 0),
			 -ENOSPC);
}
END_TEST

START_TEST(chown_drops_suid)
{
	uint64_t node = make_file("f");
	struct fuse_setattr_in in = { .valid = FATTR_MODE, .mode = 04755 };
	struct fuse_attr_out out;

	ck_assert_int_eq(ask(FUSE_SETATTR, node, &in, sizeof(in), NULL, 0), 0);
	memcpy(&out, t.reply, sizeof(out));
	ck_assert_uint_eq(out.attr.mode & 07777, 04755);
	/* Times alone change nothing else. */
	in = (struct fuse_setattr_in){ .valid = FATTR_MTIME | FATTR_CTIME,
				       .mtime = 5, .mtimensec = 6 };
	ck_assert_int_eq(ask(FUSE_SETATTR, node, &in, sizeof(in), NULL, 0), 0);
	memcpy(&out, t.reply, sizeof(out));
	ck_assert_uint_eq(out.attr.mode & 07777, 04755);
	ck_assert_uint_eq(out.attr.mtime, 5);
	ck_assert_uint_eq(out.attr.mtimensec, 6);
	in = (struct fuse_setattr_in){ .valid = FATTR_UID, .uid = 3 };
	ck_assert_int_eq(ask(FUSE_SETATTR, node, &in, sizeof(in), NULL, 0), 0);
	memcpy(&out, t.reply, sizeof(out));
	ck_assert_uint_eq(out.attr.mode & 07777, 0755);
}
END_TEST

START_TEST(statx_has_the_birth_time)
{
	uint64_t node = make_file("f");
	struct statx_in in = { .mask = STATX_BTIME };
	struct statx_out out;

	ck_assert_int_eq(ask(STATX_OPCODE, node, &in, sizeof(in), NULL, 0), 0);
	ck_assert_uint_eq(t.bytes, sizeof(out));
	memcpy(&out, t.reply, sizeof(out));
	ck_assert_uint_eq(out.ino, node);
	ck_assert_int_gt(out.btime.seconds, 0);
}
END_TEST

static int get_attribute(uint64_t node, const char *name, uint32_t size)
{
	struct fuse_getxattr_in in = { .size = size };

	return ask(FUSE_GETXATTR, node, &in, sizeof(in), name,
		   strlen(name) + 1);
}

static int set_attribute(uint64_t node, const char *name, const char *value)
{
	struct fuse_setxattr_in in = { .size = (uint32_t)strlen(value) };
	char tail[256];
	size_t n = strlen(name) + 1;

	memcpy(tail, name, n);
	memcpy(tail + n, value, in.size);
	return ask(FUSE_SETXATTR, node, &in, sizeof(in), tail, n + in.size);
}

START_TEST(attributes_of_the_user)
{
	uint64_t node = make_file("f");
	struct fuse_getxattr_out size;

	ck_assert_int_eq(set_attribute(node, "user.a", "value"), 0);
	ck_assert_int_eq(get_attribute(node, "user.a", 100), 0);
	ck_assert_uint_eq(t.bytes, 5);
	ck_assert_mem_eq(t.reply, "value", 5);
	ck_assert_int_eq(get_attribute(node, "user.a", 4), -ERANGE);
	ck_assert_int_eq(get_attribute(node, "user.a", 0), 0);
	memcpy(&size, t.reply, sizeof(size));
	ck_assert_uint_eq(size.size, 5);
	ck_assert_int_eq(get_attribute(node, "user.b", 4), -ENODATA);
}
END_TEST

START_TEST(attributes_of_ours)
{
	uint64_t node = make_file("f");
	struct fuse_write_in w = { .size = 1000 };
	json_t *array;
	char data[1000] = "";

	ck_assert_int_eq(get_attribute(node, "trax.extents", 100), 0);
	ck_assert_uint_eq(t.bytes, 2);
	ck_assert_int_eq(ask(FUSE_WRITE, node, &w, sizeof(w), data, 1000), 0);
	ck_assert_int_eq(get_attribute(node, "trax.extents", 1000), 0);
	array = json_loadb((char *)t.reply, t.bytes, 0, NULL);
	ck_assert_uint_eq(json_array_size(array), 1);
	json_decref(array);
	ck_assert_int_eq(get_attribute(node, "trax.extents:1000", 1000), 0);
	ck_assert_uint_eq(t.bytes, 2);
	ck_assert_int_eq(get_attribute(node, "trax.extents", 3), -ERANGE);
	ck_assert_int_eq(get_attribute(node, "trax.extents:x", 1000),
			 -ENODATA);
	ck_assert_int_eq(get_attribute(node, "trax.nothing", 100), -ENODATA);
	ck_assert_int_eq(get_attribute(node, "trax.stats", 100), -ENODATA);
	ck_assert_int_eq(get_attribute(1, "trax.stats", 100), 0);
	ck_assert_int_eq(get_attribute(1, "trax.extents", 100), -ENODATA);
	ck_assert_int_eq(set_attribute(1, "trax.stats", "x"), -EOPNOTSUPP);
}
END_TEST

/* Names in closed directories, who reads where, what identifies a machine. */
START_TEST(secrets_are_for_root_and_owner)
{
	uint32_t uid[] = { 0, OWNER };
	size_t i;

	t.uid = 55;
	ck_assert_int_eq(get_attribute(1, "trax.errors", 1000), -EPERM);
	ck_assert_int_eq(get_attribute(1, "trax.heat", 1000), -EPERM);
	ck_assert_int_eq(get_attribute(1, "trax.stats", 1000), 0);
	ck_assert_int_eq(get_attribute(1, "trax.model", 1000), 0);
	ck_assert(!memmem(t.reply, t.bytes, "serial", 6));
	ck_assert(memmem(t.reply, t.bytes, "firmware", 8));
	for (i = 0; i < 2; i++) {
		t.uid = uid[i];
		ck_assert_int_eq(get_attribute(1, "trax.errors", 1000), 0);
		ck_assert_int_eq(get_attribute(1, "trax.heat", 1000), 0);
		ck_assert_int_eq(get_attribute(1, "trax.model", 1000), 0);
		ck_assert(memmem(t.reply, t.bytes, "\"serial\"", 8));
	}
}
END_TEST

/* A hundred questions of one user before one of another: that is the second. */
START_TEST(views_take_turns)
{
	struct fuse_getxattr_in in = { .size = 1000 };
	uint64_t first, i;

	open_session();
	send_init(45, 0xffffffff);
	ck_assert_int_eq(session_start(t.session), 0);
	ck_assert_int_eq(take_reply(), 0);
	t.uid = 55;
	first = t.unique + 1;
	for (i = 0; i <= 100; i++) {
		t.uid = i < 100 ? 55 : 66;
		send_request(FUSE_GETXATTR, 1, &in, sizeof(in),
			     "trax.stats", 11);
	}
	ck_assert_int_eq(pthread_create(&t.thread, NULL, run_session, NULL),
			 0);
	ck_assert_int_eq(take_reply_to(first), 0);
	ck_assert_int_eq(take_reply_to(first + 100), 0);
	for (i = 1; i < 100; i++)
		ck_assert_int_eq(take_reply_to(first + i), 0);
	teardown();
}
END_TEST

/* ---- ioctls ---- */

static int do_ioctl(uint64_t node, uint32_t command, const void *data,
		    uint32_t in_bytes, uint32_t out_bytes)
{
	struct fuse_ioctl_in in = { .cmd = command, .in_size = in_bytes,
				    .out_size = out_bytes };

	return ask(FUSE_IOCTL, node, &in, sizeof(in), data, in_bytes);
}

START_TEST(flags_have_their_size)
{
	uint64_t node = make_file("f");
	uint32_t flags = FS_NODUMP_FL, back;

	ck_assert_int_eq(do_ioctl(node, FS_IOC_SETFLAGS, &flags, 4, 4), 0);
	ck_assert_uint_eq(t.bytes, sizeof(struct fuse_ioctl_out) + 4);
	ck_assert_int_eq(do_ioctl(node, FS_IOC_GETFLAGS, NULL, 0, 4), 0);
	memcpy(&back, t.reply + sizeof(struct fuse_ioctl_out), 4);
	ck_assert_uint_eq(back, flags);
	flags = FS_COMPR_FL;
	ck_assert_int_eq(do_ioctl(node, FS_IOC_SETFLAGS, &flags, 4, 4),
			 -EOPNOTSUPP);
	ck_assert_int_eq(do_ioctl(node, FS_IOC_SETFLAGS, &flags, 2, 4),
			 -ENOTTY);
	ck_assert_int_eq(do_ioctl(node, 0x1234, NULL, 0, 4), -ENOTTY);
	ck_assert_int_eq(do_ioctl(node, FITRIM, NULL, 0, 24), -ENOTTY);
	ck_assert_int_eq(do_ioctl(node, FS_IOC_GETFSLABEL, NULL, 0,
				  FSLABEL_MAX), 0);
	ck_assert_uint_eq(t.bytes, sizeof(struct fuse_ioctl_out) + FSLABEL_MAX);
	ck_assert_str_eq((char *)t.reply + sizeof(struct fuse_ioctl_out),
			 "fake");
}
END_TEST

START_TEST(control_is_for_root_and_owner)
{
	struct trax_control c = { .command = TRAX_CONTROL_SYNC };
	uint64_t node = make_file("f");
	uint32_t n = sizeof(c), command = TRAX_IOC_CONTROL;

	ck_assert_int_eq(do_ioctl(1, command, &c, n, n), 0);
	ck_assert_int_eq(do_ioctl(node, command, &c, n, n), -ENOTTY);
	t.uid = 55;
	ck_assert_int_eq(do_ioctl(1, command, &c, n, n), -EPERM);
	t.uid = OWNER;
	ck_assert_int_eq(do_ioctl(1, command, &c, n, n), 0);
	c.command = 999;
	ck_assert_int_eq(do_ioctl(1, command, &c, n, n), -EOPNOTSUPP);
}
END_TEST

/* However fast requests follow each other, one that waits for the kernel to
 * write out pages goes on. */
START_TEST(a_burst_keeps_no_notice_waiting)
{
	struct fuse_lseek_in in = { .whence = SEEK_DATA };
	struct pollfd fd = { .events = POLLIN };
	uint64_t node;

	setup_in(&still);
	node = make_file("file");
	open_file(node, O_RDWR);
	send_request(FUSE_LSEEK, node, &in, sizeof(in), NULL, 0);
	take_notice(node, 0, 0);
	fd.fd = t.kernel;
	ck_assert_int_eq(poll(&fd, 1, 2000), 1);
	take_reply();
	teardown();
}
END_TEST

/* What the kernel has of any file is dropped before the answer. */
START_TEST(a_shutdown_drops_pages)
{
	uint64_t node = make_file("f");
	struct fuse_ioctl_in in = { .cmd = _IOR('X', 125, uint32_t),
				    .out_size = 4 };

	send_request(FUSE_IOCTL, 1, &in, sizeof(in), NULL, 0);
	take_notice(1, 0, 0);
	take_notice(node, 0, 0);
	take_notice(1, 0, 0);
	ck_assert_int_eq(take_reply(), 0);
	t.uid = 55;
	ck_assert_int_eq(ask(FUSE_IOCTL, 1, &in, sizeof(in), NULL, 0), -EPERM);
}
END_TEST

/* A sync overtakes the pages that are still in the kernel's queue. */
START_TEST(sync_waits_for_pages)
{
	struct trax_control c = { .command = TRAX_CONTROL_SYNC };
	struct fuse_ioctl_in in = { .cmd = TRAX_IOC_CONTROL,
				    .in_size = sizeof(c),
				    .out_size = sizeof(c) };
	struct fuse_write_in w = { .size = 3,
				   .write_flags = FUSE_WRITE_CACHE };
	uint64_t sync;

	open_session();
	send_init(45, 0xffffffff);
	ck_assert_int_eq(session_start(t.session), 0);
	ck_assert_int_eq(take_reply(), 0);
	/* All are there before the session looks. */
	send_request(FUSE_IOCTL, 1, &in, sizeof(in), &c, sizeof(c));
	sync = t.unique;
	send_request(FUSE_WRITE, 1, &w, sizeof(w), "abc", 3);
	ck_assert_int_eq(pthread_create(&t.thread, NULL, run_session, NULL),
			 0);
	ck_assert_int_eq(take_reply(), 0);
	ck_assert_int_eq(take_reply_to(sync), 0);
	memcpy(&c, t.reply + sizeof(struct fuse_ioctl_out), sizeof(c));
	ck_assert_uint_eq(c.result, 1);
	teardown();
}
END_TEST

/* ---- The end ---- */

START_TEST(destroy_is_answered_last)
{
	uint8_t byte;
	void *rc;

	send_request(FUSE_DESTROY, 0, NULL, 0, NULL, 0);
	ck_assert_int_eq(pthread_join(t.thread, &rc), 0);
	ck_assert(!session_attached(t.session));
	ck_assert_int_eq(recv(t.kernel, &byte, 1, MSG_DONTWAIT), -1);
	fs_close(t.fs);
	session_free(t.session);
	ck_assert_int_eq(take_reply(), 0);
}
END_TEST

/* ---- Pieces ---- */

/*
 * All of it, in buffers of `room` bytes and pages of `page` extents.  Each
 * call of extent_view_add gets the page that FS_EXTENTS would give.  Tracks of
 * 100 sectors.
 */
static size_t view_part(const struct fs_extent *e, size_t n, uint64_t *from,
			  char *text, size_t room, size_t page,
			  enum extent_view_style style)
{
	struct extent_view view;
	struct geom *geom;
	size_t i = 0, m;

	ck_assert_int_eq(geom_regular(4000000, 100, &geom), 0);
	extent_view_begin(&view, geom, style, *from, text, room);
	do {
		while (i < n && e[i].offset + e[i].bytes <= view.from)
			i++;
		m = n - i < page ? n - i : page;
	} while (m && extent_view_add(&view, e + i, m, i + m == n));
	geom_free(geom);
	*from = view.from;
	return extent_view_end(&view);
}

static char *view_of(const struct fs_extent *e, size_t n, uint64_t from,
		       size_t room, bool json)
{
	char *text = malloc(room + 1);
	size_t bytes = view_part(e, n, &from, text, room, n,
				   json ? EXTENT_VIEW_JSON : EXTENT_VIEW_TEXT);

	ck_assert_uint_eq(bytes, strlen(text));
	return text;
}

START_TEST(extents_are_cut_at_tracks)
{
	/* Two extents that are one run: 50 + 300 + 10 sectors. */
	struct fs_extent e[2] = {
		{ .offset = 0, .bytes = 200 * 512, .lbn = 150 },
		{ .offset = 200 * 512, .bytes = 159 * 512 + 7, .lbn = 350 },
	};
	char *text = view_of(e, 2, 0, 10000, false);
	json_t *array;

	ck_assert_str_eq(
		text,
		"0 25600 lbn 150 track 1 cylinder 1 surface 0 part guessed\n"
		"25600 51200 lbn 200 track 2 cylinder 2 surface 0 whole "
		"guessed\n"
		"76800 51200 lbn 300 track 3 cylinder 3 surface 0 whole "
		"guessed\n"
		"128000 51200 lbn 400 track 4 cylinder 4 surface 0 whole "
		"guessed\n"
		"179200 4615 lbn 500 track 5 cylinder 5 surface 0 part "
		"guessed\n");
	free(text);
	text = view_of(e, 2, 0, 10000, true);
	array = json_loads(text, 0, NULL);
	ck_assert_uint_eq(json_array_size(array), 3);
	ck_assert_int_eq(json_integer_value(json_object_get(
				 json_array_get(array, 1), "tracks")), 3);
	json_decref(array);
	free(text);
}
END_TEST

START_TEST(extents_keep_to_the_room)
{
	struct fs_extent e[100];
	uint64_t from = 0;
	unsigned seen = 0;
	size_t i;

	for (i = 0; i < 100; i++)
		e[i] = (struct fs_extent){ .offset = i * 4096, .bytes = 4096,
					   .lbn = i * 16 + 8 };
	for (;;) {
		char *text = view_of(e, 100, from, 500, true);
		json_t *array = json_loads(text, 0, NULL), *last;

		ck_assert_uint_le(strlen(text), 500);
		ck_assert(json_is_array(array));
		last = json_array_get(array, json_array_size(array) - 1);
		seen += json_array_size(array);
		if (last)
			from = (uint64_t)(json_integer_value(json_object_get(
						  last, "offset")) +
					  json_integer_value(json_object_get(
						  last, "length")));
		json_decref(array);
		free(text);
		if (!last)
			break;
	}
	/* Six of them lie across two tracks. */
	ck_assert_uint_eq(from, 100 * 4096);
	ck_assert_uint_ge(seen, 100);
}
END_TEST

/* Whatever pages the extents come in, and wherever a value ends. */
START_TEST(extents_come_in_pages)
{
	enum { N = 300 };
	static struct fs_extent e[N];
	static char whole[200000], text[200000], part[3000];
	uint64_t lbn = 37, from = 0, before;
	size_t page, used, i;

	for (i = 0; i < N; i++) {
		e[i] = (struct fs_extent){ .offset = i * 4096, .bytes = 4096,
					   .lbn = lbn };
		lbn += i % 7 && i % 11 ? 8 : 8 + 8 * (i % 5);
	}
	view_part(e, N, &from, whole, sizeof(whole) - 1, N, EXTENT_VIEW_TEXT);
	for (page = 1; page < N; page += 1 + page / 4) {
		from = 0;
		used = 0;
		text[0] = 0;
		do {
			before = from;
			used += view_part(e, N, &from, part,
					    400 + page, page < 30 ? 30 : page,
					    EXTENT_VIEW_TEXT);
			strcat(text, part);
		} while (from > before);
		ck_assert_uint_eq(used, strlen(whole));
		ck_assert_str_eq(text, whole);
	}
}
END_TEST

/* A run of 30,000 tracks is walked in steps, and each is found at once. */
START_TEST(long_runs_are_walked_in_steps)
{
	struct fs_extent e = { .bytes = 30000ull * 51200, .lbn = 100 };
	uint64_t from = 0, end = 0;
	struct extent_view view;
	struct geom *geom;
	unsigned calls = 1;
	char text[65537];
	json_t *array, *o;
	size_t i;

	ck_assert_int_eq(geom_regular(4000000, 100, &geom), 0);
	extent_view_begin(&view, geom, EXTENT_VIEW_JSON, 0, text, 65536);
	while (extent_view_add(&view, &e, 1, true))
		calls++;
	ck_assert_uint_eq(calls, 30);
	extent_view_end(&view);
	array = json_loads(text, 0, NULL);
	json_array_foreach(array, i, o) {
		ck_assert_int_eq(json_integer_value(json_object_get(
					 o, "offset")), (json_int_t)end);
		end += (uint64_t)json_integer_value(
			json_object_get(o, "length"));
	}
	ck_assert_uint_eq(end, e.bytes);
	json_decref(array);
	from = 20000ull * 51200 + 5;
	extent_view_begin(&view, geom, EXTENT_VIEW_TEXT, from, text, 100);
	ck_assert(!extent_view_add(&view, &e, 1, true));
	extent_view_end(&view);
	ck_assert(strncmp(text, "1024000000 51200 lbn 2000100 ", 29) == 0);
	geom_free(geom);
}
END_TEST

START_TEST(inline_data_has_no_place)
{
	struct fs_extent e = { .bytes = 77, .is_inline = true };
	char *text = view_of(&e, 1, 0, 1000, true);

	ck_assert_str_eq(text, "[{\"offset\":0,\"length\":77,"
			       "\"inline\":true}]");
	free(text);
	text = view_of(&e, 1, 0, 1000, false);
	ck_assert_str_eq(text, "0 77 inline\n");
	free(text);
}
END_TEST

static TCase *session_tests(void)
{
	TCase *c = tcase_create("session");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, unknown_opcodes_are_enosys);
	tcase_add_test(c, malformed_requests_are_einval);
	tcase_add_test(c, direct_writes_drop_pages);
	tcase_add_test(c, a_shutdown_drops_pages);
	tcase_add_test(c, the_mode_is_forgotten_first);
	tcase_add_test(c, the_root_has_no_generation);
	tcase_add_test(c, names_come_and_go);
	tcase_add_test(c, forget_drops_references);
	tcase_add_test(c, rename_flags_are_passed);
	tcase_add_test(c, tmpfile_is_entry_and_handle);
	tcase_add_test(c, handles_are_counted);
	tcase_add_test(c, directories_are_read_in_pieces);
	tcase_add_test(c, large_writes_come_back);
	tcase_add_test(c, waiting_writes_stop_nobody_else);
	tcase_add_test(c, waiting_reads_stop_nobody_else);
	tcase_add_test(c, a_read_is_answered_beside_waiting_writes);
	tcase_add_test(c, writers_hear_of_a_full_disk);
	tcase_add_test(c, writers_hear_before_the_disk_is_full);
	tcase_add_test(c, a_lookup_expires_nothing);
	tcase_add_test(c, a_statx_expires_nothing);
	tcase_add_test(c, no_write_is_accepted_without_room);
	tcase_add_test(c, room_of_accepted_pages_is_kept);
	tcase_add_test(c, chown_drops_suid);
	tcase_add_test(c, statx_has_the_birth_time);
	tcase_add_test(c, attributes_of_the_user);
	tcase_add_test(c, attributes_of_ours);
	tcase_add_test(c, secrets_are_for_root_and_owner);
	tcase_add_test(c, flags_have_their_size);
	tcase_add_test(c, control_is_for_root_and_owner);
	return c;
}

int main(void)
{
	Suite *suite = suite_create("fuse");
	TCase *init = tcase_create("init"), *end = tcase_create("end");
	TCase *view = tcase_create("view");

	tcase_add_test(init, init_takes_what_is_offered);
	tcase_add_test(init, init_refuses_an_old_kernel);
	tcase_add_test(init, init_refuses_a_poor_kernel);
	tcase_add_test(init, views_take_turns);
	tcase_add_test(init, sync_waits_for_pages);
	tcase_add_test(init, a_burst_keeps_no_notice_waiting);
	tcase_add_checked_fixture(end, setup, NULL);
	tcase_add_test(end, destroy_is_answered_last);
	tcase_add_test(view, extents_are_cut_at_tracks);
	tcase_add_test(view, extents_keep_to_the_room);
	tcase_add_test(view, extents_come_in_pages);
	tcase_add_test(view, long_runs_are_walked_in_steps);
	tcase_add_test(view, inline_data_has_no_place);
	suite_add_tcase(suite, init);
	suite_add_tcase(suite, session_tests());
	suite_add_tcase(suite, end);
	suite_add_tcase(suite, view);
	return test_run(suite);
}

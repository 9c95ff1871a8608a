/*
 * test_room.c - who waits for room, and how long: src/fuse/room_flush.c on the
 * file system of fake_fs.c, in time that the test lets pass.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/units.h"
#include "fuse/ops.h"
#include "fuse/room.h"
#include "fuse/session_internal.h"
#include "fuse/sync.h"
#include "tests/rig/test.h"

#define LOW_ROOM (4u << 20)	/* of 8 MiB */
#define BACKGROUND 4u		/* as with a ring of many queues */
#define WRITER 99u		/* an inode that cannot be written out, as it
				 * does not exist */
#define BEGIN_NS NS_PER_SECOND
#define LIMIT_NS (5 * NS_PER_SECOND)
#define MANY 40u

static struct {
	struct env env;
	uint64_t now_ns;
	struct fs *fs;
	struct session *session;
	int kernel, server;		/* the two ends */
	struct request *tried;		/* by the last round */
	struct request *done;		/* the last whose operation ended */
} t;

static uint64_t now_ns(struct env *env)
{
	(void)env;
	return t.now_ns;
}

static void setup(void)
{
	struct session_options o = { .env = &t.env, .signal_fd = -1 };
	int ends[2];

	t.env.now_ns = now_ns;
	t.now_ns = BEGIN_NS;
	t.tried = t.done = NULL;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	t.kernel = ends[0];
	o.fd = t.server = ends[1];
	ck_assert_int_eq(fs_open(NULL, NULL, NULL, &t.fs), 0);
	ck_assert_int_eq(session_new(t.fs, &o, &t.session), 0);
	session_set_low_room(t.session, LOW_ROOM);
	t.session->max_background = BACKGROUND;
	ops_note_writer(t.session, WRITER, O_WRONLY, 1);
}

static void teardown(void)
{
	room_stop(t.session);
	ops_note_writer(t.session, WRITER, O_WRONLY, -1);
	ck_assert_uint_eq(t.session->outstanding, 0);
	session_free(t.session);
	fs_close(t.fs);
	close(t.kernel);
	close(t.server);
}

static void again(struct request *req)
{
	t.tried = req;
}

static void done(struct fs_op *op)
{
	t.done = request_of(op);
	if (!room_wait(t.done, again))
		request_reply(t.done, op->rc, NULL, 0);
}

static struct request *new_request(uint32_t opcode, uint64_t unique)
{
	struct request *req = request_new(t.session);

	ck_assert_ptr_nonnull(req);
	req->opcode = opcode;
	req->unique = unique;
	sync_note_begin(req);
	req->op.rc = -ENOSPC;
	req->op.done = done;
	return req;
}

static struct request *new_write(uint64_t unique)
{
	return new_request(FUSE_WRITE, unique);
}

static struct request *write_without_room(uint64_t unique)
{
	struct request *req = new_write(unique);

	ck_assert(room_wait(req, again));
	return req;
}

/* Runs until the round has ended. */
static void run_round(void)
{
	t.tried = NULL;
	for (unsigned turn = 0; !t.tried; turn++) {
		ck_assert_uint_lt(turn, 10);
		room_run(t.session);
	}
}

/* The request that was answered -ENOSPC; 0: none was. */
static uint64_t refused(void)
{
	struct fuse_out_header header;
	ssize_t n = recv(t.kernel, &header, sizeof(header), MSG_DONTWAIT);

	if (n < 0)
		return 0;
	ck_assert_int_eq(n, sizeof(header));
	ck_assert_int_eq(header.error, -ENOSPC);
	return header.unique;
}

/* One that was tried again stands where it stood, and so does its time. */
START_TEST(nobody_waits_too_long)
{
	struct request *first = write_without_room(1);

	run_round();
	ck_assert_ptr_eq(t.tried, first);
	t.now_ns += NS_PER_SECOND / 2;
	write_without_room(2);
	ck_assert(room_wait(first, again));
	t.now_ns = BEGIN_NS + LIMIT_NS;
	room_run(t.session);
	/* Whatever else belongs to its end is done. */
	ck_assert_ptr_eq(t.done, first);
	ck_assert_uint_eq(refused(), 1);
	ck_assert_uint_eq(refused(), 0);
}
END_TEST

/* Until it has ended well others keep out of the room that it waits for. */
START_TEST(who_tries_again_still_waits)
{
	struct request *req = write_without_room(1);

	run_round();
	room_run(t.session);
	ck_assert(room_asks(t.session, WRITER));
	req->op.rc = 0;
	ck_assert(!room_wait(req, again));
	request_reply(req, 0, NULL, 0);
	ck_assert(!room_asks(t.session, WRITER));
}
END_TEST

START_TEST(the_end_waits_for_nobody)
{
	struct request *first = write_without_room(1);
	struct request *second = write_without_room(2);

	run_round();
	ck_assert(room_wait(first, again));
	room_stop(t.session);
	ck_assert_uint_eq(refused(), 1);
	ck_assert_uint_eq(refused(), 0);
	ck_assert(!room_wait(second, again));
	request_reply(second, -ENOSPC, NULL, 0);
	ck_assert_uint_eq(refused(), 2);
}
END_TEST

/* What the kernel has could not come in if all that it may send waited with its
 * data. */
START_TEST(pages_can_come_meanwhile)
{
	struct request *req = new_write(BACKGROUND);

	for (unsigned i = 0; i < BACKGROUND / 2; i++)
		write_without_room(1 + i);
	ck_assert(!room_wait(req, again));
	request_reply(req, -ENOSPC, NULL, 0);
	ck_assert_uint_eq(refused(), BACKGROUND);
}
END_TEST

/* How many wait follows what there is.  Small ones have memory of their own. */
START_TEST(writes_wait_while_there_are_buffers)
{
	const unsigned large = t.session->large_most / 4;

	t.session->max_background = 2 * MANY;
	ck_assert_uint_lt(large, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		struct request *req = new_write(1 + i);

		if (i <= large)
			req->held = session_take_large(t.session);
		ck_assert(room_wait(req, again) == (i != large));
		if (i == large)
			request_reply(req, -ENOSPC, NULL, 0);
	}
}
END_TEST

/* Those without data are in nobody's way. */
START_TEST(many_wait_without_data)
{
	for (unsigned i = 0; i < MANY; i++)
		ck_assert(room_wait(new_request(FUSE_FALLOCATE, 2 + i), again));
	write_without_room(1);
	t.now_ns += LIMIT_NS;
	room_run(t.session);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_uint_eq(refused(), 2 + i);
	ck_assert_uint_eq(refused(), 1);
	ck_assert_uint_eq(refused(), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("room");
	TCase *c = tcase_create("room");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, nobody_waits_too_long);
	tcase_add_test(c, who_tries_again_still_waits);
	tcase_add_test(c, the_end_waits_for_nobody);
	tcase_add_test(c, pages_can_come_meanwhile);
	tcase_add_test(c, writes_wait_while_there_are_buffers);
	tcase_add_test(c, many_wait_without_data);
	suite_add_tcase(suite, c);
	return test_run(suite);
}
